/* SPDX-License-Identifier: MIT */
/*
 * The runtime's inside: the loaded driver, the companions, the options that the compiler parts need, the timelines,
 * and what the process knows of each GPU. Every folder above uses it. Immutable after creation but where a member says
 * otherwise.
 */
#ifndef HDRT_DEVICE_RUNTIME_H
#define HDRT_DEVICE_RUNTIME_H

#include <pthread.h>
#include <stdatomic.h>

#include <hdrt.h>

#include "device/timeline.h"
#include "order/order.h"

struct hdrt__companions;
struct hdrt__driver;

/*
 * State that another folder keeps with a runtime or device, made on first use by hdrt__attachment_get. `destroy` runs
 * at the owner's end, before the context is given back; on a lost device it must not call the driver.
 */
typedef struct hdrt__attachment {
    void *_Atomic state;
    void (*destroy)(void *state);
} hdrt__attachment;

/*
 * The attachment's state; made by create(argument) if there is none. `lock` is the owner's attachment lock, held over
 * create. \return NULL when create returned NULL, whose message stands.
 */
void *hdrt__attachment_get(hdrt__attachment *attachment, pthread_mutex_t *lock, void *(*create)(void *argument),
                           void *argument, void (*destroy)(void *state));
void hdrt__attachment_end(hdrt__attachment *attachment);

/* That the process lost a GPU; set once. */
typedef struct hdrt__device_fault {
    atomic_bool lost;
    hdrt__failure *failure; /* set before lost */
} hdrt__device_fault;

struct hdrt_runtime {
    atomic_uint references; /* the caller's, each device's, each host timeline's */
    uint64_t fork_generation;
    hdrt_driver_kind kind;
    struct hdrt__driver *driver; /* NULL for HDRT_DRIVER_NONE */
    uint32_t device_count;
    /* Options as given, NULL where not: the jit looks further by its own rules. */
    char *cache_dir_option, *nvrtc_option, *clang_option;
    uint32_t compile_workers;
    hdrt_wait wait;
    bool spare_processors; /* for threads that look again and again */
    char **cache_read_only_option; /* NULL: not given */
    uint32_t cache_read_only_count;
    uint64_t cache_limit_bytes;
    struct hdrt__companions *companions;
    hdrt_device_info *infos; /* by device index */
    hdrt__timeline_table *timelines;
    hdrt__order *order; /* NULL: it is not checked */
    hdrt__device_fault *faults; /* by device index: what ended the process's use of it */
    pthread_mutex_t lock;       /* guards attachments' creation and the making of faults */
    pthread_mutex_t parking;    /* guards what queues that wait for queues know of each other; a leaf */
    hdrt__attachment memory, jit;
};

void hdrt__runtime_hold(hdrt_runtime *runtime);
void hdrt__runtime_drop(hdrt_runtime *runtime);

/*
 * The beginning of every public function: HDRT_ERROR_INVALID_ARGUMENT for NULL (with `function` in the message),
 * HDRT_ERROR_FORKED in a child of the process that created the runtime. Takes no lock.
 */
hdrt_status hdrt__runtime_begin(const hdrt_runtime *runtime, const char *function);
/* Whether this process is such a child. */
bool hdrt__runtime_forked(const hdrt_runtime *runtime);

#endif
