/* SPDX-License-Identifier: MIT */
/*
 * The device's inside: one GPU's context, its description, its lost state, its queues as far as the device must know
 * them, its pool of CUevents, and the threads that serve it. Every folder above uses it.
 *
 * Driver calls: between hdrt__device_enter and hdrt__device_leave, each result through hdrt__device_check. State:
 *
 *     OPEN --hdrt__device_lose: a driver call returned a code of the lost set--> LOST, for ever
 *
 * After that hdrt__device_enter fails and no driver call is made; a call that was on its way gives back the caller's
 * context and no more.
 *
 * Locks, in the order in which they may be taken: device->lock; a queue's commit lock; queues_lock; runtime->lock;
 * then the leaves: marks_lock, recent_lock, a timeline's, the callbacks'. From queues_lock on none is held over a
 * driver call.
 */
#ifndef HDRT_DEVICE_DEVICE_H
#define HDRT_DEVICE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include <hdrt.h>

#include "device/deferred.h"
#include "device/runtime.h"
#include "driver/call.h"
#include "driver/scope.h"

struct hdrt__buffer;
struct hdrt__callbacks;

typedef enum hdrt__device_state {
    HDRT__DEVICE_OPEN,
    HDRT__DEVICE_LOST,
} hdrt__device_state;

/* Operations that a stream remembers, to name those in flight when the device is lost. */
#define HDRT__RECENT_LAUNCHES 16u
#define HDRT__LABEL_BYTES 64u

typedef struct hdrt__recent_launch {
    uint64_t sequence; /* in the stream */
    uint64_t position; /* in the queue */
    char queue[32], label[HDRT__LABEL_BYTES]; /* cut where they are longer; a queue without a name has its number */
    uint32_t queue_number;
    hdrt_grid grid; /* no threads: it is no launch, and the label says what */
} hdrt__recent_launch;

/* A stream as its device knows it: to name what was in flight. Embedded in the stream. */
typedef struct hdrt__device_stream {
    struct hdrt__device_stream *next, *previous; /* under queues_lock */
    uint32_t index;                              /* among the device's streams */
    _Atomic uint64_t completed;                  /* commands of it that are known complete */
    pthread_mutex_t recent_lock;                 /* a leaf: guards recent */
    uint64_t recent_count;
    hdrt__recent_launch recent[HDRT__RECENT_LAUNCHES];
} hdrt__device_stream;

/* A CUevent without timing, shared by the stream's ring and those who are about to wait for it. Kept for reuse. */
typedef struct hdrt__mark {
    hdcu_event event;
    atomic_uint references;
    struct hdrt__mark *next;
} hdrt__mark;

/* A queue as its device knows it: to list, to fail and to wait for. Embedded in the queue. */
typedef struct hdrt__device_queue {
    struct hdrt__device_queue *next, *previous; /* under queues_lock */
    hdrt__timeline *timeline;
    char *name; /* NULL: "queue N" with its number */
    uint32_t number;
    bool exclusive;
    _Atomic uint64_t last_launch; /* position of the last launch, 0: none */
} hdrt__device_queue;

/* Attributes that decide what is done how, read when the device is opened. */
typedef struct hdrt__device_limits {
    int priority_least, priority_greatest; /* 0 and a negative number, say */
    uint64_t pitch_max;
    bool memory_pools, stream_wait_32, stream_wait_64, stream_write_64, unified_addressing, parameter_info;
    bool launch_order; /* kernels can wait for the begin of others, and not for their end: Hopper, and what came after it */
} hdrt__device_limits;

struct hdrt_device {
    atomic_uint references; /* the caller's, each queue's, module's, timer's, deferred item's */
    hdrt_runtime *runtime;  /* held */
    const hdrt__driver_table *driver;
    uint32_t index;
    hdcu_device ordinal;
    hdcu_context context;
    hdrt_context_kind context_kind;
    hdrt_device_info info;
    hdrt__device_limits limits;
    uint64_t watchdog_ns; /* 0: none */

    _Atomic hdrt__device_state state;
    hdrt__failure *lost; /* set before state becomes LOST */

    pthread_mutex_t queues_lock;
    hdrt__device_queue *queues;
    hdrt__device_stream *streams;
    uint32_t queues_made; /* for names */

    pthread_mutex_t marks_lock;
    hdrt__mark *marks; /* those that nobody uses */

    hdrt__reaper *reaper;
    pthread_mutex_t lock; /* guards attachments' creation and the four below; held over driver calls, taken first */
    struct hdrt__callbacks *callbacks; /* made on the first host call */
    hdrt_queue *default_queue;         /* made on first use; has no hold of the device while it is here */
    void (*default_queue_end)(hdrt_queue *queue); /* at the device's end: the queue has a hold again, destroy it */
    void (*close)(hdrt_device *device); /* when the caller closes it: let go of what holds it; NULL: nothing does */
    void (*_Atomic unwanted)(hdrt_device *device); /* only launch templates hold some code any more; NULL: there are none */
    hdrt__attachment memory, jit, scheduler;
};

void hdrt__device_hold(hdrt_device *device);
void hdrt__device_drop(hdrt_device *device);
/* Tell who keeps templates. Under no lock of the queue. */
void hdrt__device_code_unwanted(hdrt_device *device);
/* Unless the device is ending. */
bool hdrt__device_try_hold(hdrt_device *device);

/* The beginning of every public function with a device: as hdrt__runtime_begin, then HDRT_ERROR_DEVICE_LOST. */
hdrt_status hdrt__device_begin(hdrt_device *device, const char *function);

/*
 * Make the device's context current and put the thread in relaxed capture mode, until hdrt__device_leave undoes both.
 * \return HDRT_OK; HDRT_ERROR_FORKED, HDRT_ERROR_DEVICE_LOST, HDRT_ERROR_DRIVER: do not leave, call nothing.
 */
hdrt_status hdrt__device_enter(hdrt_device *device, hdrt__scope *scope);
void hdrt__device_leave(hdrt_device *device, hdrt__scope *scope);
/* For a library thread, once: it is inside the device's scope for good, and entering it costs nothing. */
hdrt__call hdrt__device_stay(hdrt_device *device);

/*
 * The status of a driver call. HDRT_OK for success. Otherwise keeps a message for the thread: the words of `format`
 * (what was attempted on what), the call, the code's name, number and text; a code of the lost set loses the device,
 * and the message is then the lost device's. Call it with no lock but commit locks held.
 */
hdrt_status hdrt__device_check(hdrt_device *device, hdrt__call call, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline bool hdrt__device_is_lost(const hdrt_device *device)
{
    return atomic_load_explicit(&device->state, memory_order_acquire) == HDRT__DEVICE_LOST;
}

/* Keep the lost device's message for the thread. \return HDRT_ERROR_DEVICE_LOST. */
hdrt_status hdrt__device_lost_status(const hdrt_device *device);

/* Make the device lost by this call's result, unless it is already. `what`: what was attempted. */
void hdrt__device_lose(hdrt_device *device, hdrt__call call, const char *what);

/* Take over a fault of the same GPU that was seen through another hdrt_device. */
void hdrt__device_share_fault(hdrt_device *device);

/* Take a mark that nobody uses, made on demand; the caller's. Inside the device's scope. */
hdrt__call hdrt__device_mark_take(hdrt_device *device, hdrt__mark **out_mark);
void hdrt__mark_hold(hdrt__mark *mark);
/* The last one to let go gives it back: no wait or query will name its record any more. No driver call. */
void hdrt__mark_drop(hdrt_device *device, hdrt__mark *mark);

/* Enter a queue in the device's list, or take it out. */
void hdrt__device_queue_enter(hdrt_device *device, hdrt__device_queue *queue);
void hdrt__device_queue_leave(hdrt_device *device, hdrt__device_queue *queue);
/* Enter a stream in the device's list, or take it out. */
void hdrt__device_stream_enter(hdrt_device *device, hdrt__device_stream *stream);
void hdrt__device_stream_leave(hdrt_device *device, hdrt__device_stream *stream);
/* Remember a launch that is about to be handed over; `label` is the kernel's (jit/kernel.h). */
void hdrt__device_stream_launch(hdrt__device_stream *stream, uint64_t sequence, const hdrt__device_queue *queue,
                                uint64_t position, const char label[HDRT__LABEL_BYTES], const hdrt_grid *grid);
/* The same of something else; `what`: "a copy", say. */
void hdrt__device_stream_note(hdrt__device_stream *stream, uint64_t sequence, const hdrt__device_queue *queue,
                              uint64_t position, const char *what);
/* Name the oldest operation that the stream remembers and that is not known complete. \return false: there is none. */
bool hdrt__device_stream_oldest(hdrt__device_stream *stream, struct hdrt__buffer *text);
/* A label of a name, cut where it is longer. */
void hdrt__device_label(char label[HDRT__LABEL_BYTES], const char *name);
/* A queue's name. \return it, or `buffer` with the default one. */
#define HDRT__QUEUE_NAME_BYTES 24u
const char *hdrt__device_queue_name(const hdrt__device_queue *queue, char buffer[HDRT__QUEUE_NAME_BYTES]);
/*
 * Add to `uses` the last launch of each of the device's queues that are not exclusive: an object that any of their
 * kernels may use is free after that. \return HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY.
 */
hdrt_status hdrt__device_launches(hdrt_device *device, hdrt__uses *uses);

#endif
