/* SPDX-License-Identifier: MIT */
/*
 * Host calls: the library's callback threads, one set per device. A queue submits a call when all that was before it is
 * complete, and stands still until the function is over; the driver takes no part in it, so a host function may call
 * the library, no stream waits for it, and nothing but its own queue does.
 *
 * One thread as a rule; one more whenever all are inside a wait of the library and a call is due, so a host function
 * that waits for another's effect gets it. Threads end when the device does. A call:
 *
 *     submitted --a thread is free--> running --returns--> over
 *         +--- the device was lost meanwhile ------------> over, and the function is not called
 *
 * Locks: the set's `lock` guards everything here and is a leaf; functions run without it.
 */
#ifndef HDRT_DEVICE_CALLBACKS_H
#define HDRT_DEVICE_CALLBACKS_H

#include <hdrt.h>

typedef struct hdrt__callbacks hdrt__callbacks;

/* Most callback threads of a device. */
#define HDRT__CALLBACK_THREADS 64u

/* One call; embedded in the queue, which has one at a time, and alive until `over` was called. */
typedef struct hdrt__host_job {
    struct hdrt__host_job *next;
    hdrt_host_function function;
    void *argument;
    hdrt_event event; /* what the call stands for */
    const hdrt_device *device;
    void (*over)(struct hdrt__host_job *job, bool called); /* on a callback thread, with no lock held */
} hdrt__host_job;

/* The device's set, made on first use. NULL with a message if there is no memory. */
hdrt__callbacks *hdrt__device_callbacks(hdrt_device *device);
/* At the device's end. Never waits: threads keep what they still need. NULL accepted. */
void hdrt__callbacks_destroy(hdrt__callbacks *callbacks);

/* Start the first thread, so that a call that is submitted later finds one. \return as hdrt__callbacks_submit. */
hdrt_status hdrt__callbacks_start(hdrt__callbacks *callbacks);

/* Call job->function. Starts the first thread if need be. \return HDRT_OK; HDRT_ERROR_OUT_OF_MEMORY. */
hdrt_status hdrt__callbacks_submit(hdrt__callbacks *callbacks, hdrt__host_job *job);

/* The event of the host call that this thread is running; the zero event elsewhere. */
hdrt_event hdrt__callback_current(void);
/* Around a wait of the library, on any thread: on a callback thread another one may be started meanwhile. */
void hdrt__callback_wait_begin(void);
void hdrt__callback_wait_end(void);

#endif
