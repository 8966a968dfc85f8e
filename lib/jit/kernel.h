/* SPDX-License-Identifier: MIT */
/*
 * Loaded modules and their kernels, as the queue needs them: what a launch passes to the driver, the check of its
 * arguments, opting in to dynamic shared memory, and keeping the code loaded while operations are in flight.
 *
 * A kernel is borrowed from its module and lives as long; all its members but the atomic ones, and what the template cache
 * knows of it, are set before it is handed out and never change, so readers need no lock.
 */
#ifndef HDRT_JIT_KERNEL_H
#define HDRT_JIT_KERNEL_H

#include <pthread.h>
#include <stdatomic.h>

#include <hdrt.h>

#include "device/device.h"
#include "driver/cuda_abi.h"

/* What a launch reads comes first. */
struct hdrt_kernel {
    hdrt_module *module;
    hdrt_device *device; /* the module's */
    const char *name;
    hdcu_function function;
    uint32_t parameter_count;
    uint32_t parameter_bytes;         /* end of the last parameter */
    const hdrt_parameter *parameters; /* in order, with offsets */
    uint32_t max_threads_per_block;   /* for this kernel on this device */
    uint32_t static_shared_bytes;
    _Atomic uint32_t dynamic_shared_bytes; /* what the function is set to allow; raised under raising, never lowered */
    _Atomic uint32_t expected_us; /* how long a launch took at most, as the scheduler saw it last; 0: not known */
    _Atomic uint8_t measured;     /* how often that was found out, up to a few; about, since not counted under a lock */
    _Atomic uint8_t unmeasured;   /* launches until it is to be found out again */
    bool may_await_grids; /* it, or another of its module, has griddepcontrol.wait, or its PTX is not known */
    bool in_clusters;  /* its blocks are */
    char label[HDRT__LABEL_BYTES]; /* the name, by which streams remember launches */
    struct { /* the template cache's, under its lock (queue/template_choose.c), but for left */
        struct hdrt__template_sequence *sequence; /* of this kernel alone, if there is one */
        struct hdrt__template_sequence *ringing;  /* and with the write of a number behind it */
        uint32_t seen_at;                         /* the cache's clock at the last sight */
        uint32_t distance;                        /* from one to the next, on average of late */
        int32_t sights;                           /* that counted; below 0: a build failed */
        uint32_t ringing_off;                     /* sights until the next try of a ringing one, which failed */
        bool refuses_order;                       /* beside others it must be a branch */
        uint8_t refused_changes;                  /* how often a node that held another kernel did not take it */
        hdrt_kernel *left;                        /* the next whose module only the cache holds yet: of whoever has that hold */
    } single;
    pthread_mutex_t raising;
    _Atomic uint64_t access_read, access_none; /* a bit for each parameter: hdrt_kernel_set_access */
};

/*
 * Check arguments against the kernel's parameters: count, then each one's size and class. Tens of nanoseconds, no
 * driver call. HDRT_OK; HDRT_ERROR_LAUNCH, HDRT_ERROR_INVALID_ARGUMENT (missing args or kinds) with a message that
 * names kernel, parameter, what was given and what is expected.
 */
hdrt_status hdrt__kernel_check_arguments(const hdrt_kernel *kernel, const void *const *args, const uint32_t *kinds,
                                         uint32_t count);

/*
 * Check the block and shared memory sizes of a launch against the kernel and its device, and opt in to that much
 * dynamic shared memory if that is more than the kernel allows so far (a driver call, once per raise). Grid limits are the
 * queue's to check. HDRT_OK, HDRT_ERROR_LAUNCH, HDRT_ERROR_DRIVER, ...
 */
hdrt_status hdrt__kernel_check_block(hdrt_kernel *kernel, const hdrt_grid *grid);

/* For operations in flight: they hold the module of their kernel, so that its code stays loaded. Any thread. */
void hdrt__module_hold(hdrt_module *module);
/* The last release unloads the code: enters a driver scope of its own, must not be called under a lock of the queue. */
void hdrt__module_release(hdrt_module *module);

/* The same for launch templates, which are to let go of code that nobody else holds: then device->unwanted is called. */
void hdrt__module_hold_cached(hdrt_module *module);
void hdrt__module_release_cached(hdrt_module *module);
/* Let go if others hold it too, which makes no driver call. \return whether it was so: else the hold is the last one, and
 * still the caller's. */
bool hdrt__module_release_cached_shared(hdrt_module *module);
/* Whether only templates hold it. Not of code that other compiles of the same may still want: that stays. */
bool hdrt__module_is_unwanted(const hdrt_module *module);

#endif
