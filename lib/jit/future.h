/* SPDX-License-Identifier: MIT */
/*
 * What an asynchronous compile promises: an event, how it came out, and that it can be cancelled. An image or module
 * under way has one; so has the job that works at it.
 *
 *     UNDER WAY --hdrt__future_keep: the job has its result--> OVER, as the result says
 *         +------hdrt__future_cancel--------------------> OVER, cancelled; the job's result is dropped
 */
#ifndef HDRT_JIT_FUTURE_H
#define HDRT_JIT_FUTURE_H

#include <hdrt.h>

#include "jit/cancel.h"

typedef struct hdrt__future hdrt__future;

/* Holds the runtime. HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY. */
hdrt_status hdrt__future_create(hdrt_runtime *runtime, hdrt__future **out_future);
/* Nobody else has it; over or never begun. Its event stays what it was. NULL accepted. */
void hdrt__future_destroy(hdrt__future *future);

hdrt_event hdrt__future_event(const hdrt__future *future);
/* HDRT_NOT_READY; or how it came out, a failure with its message. NULL: HDRT_OK. */
hdrt_status hdrt__future_status(const hdrt__future *future);
/* Whether it is under way. Keeps no message. */
bool hdrt__future_pending(const hdrt__future *future);
/* Whether this process is a forked child of its own: nothing of it may be touched. */
bool hdrt__future_forked(const hdrt__future *future);
hdrt__cancel *hdrt__future_cancel_token(hdrt__future *future);

/*
 * The job is done with `status`, and this thread's last message where that is a failure. `keep`, if not NULL, is called
 * first, unless the future was cancelled meanwhile: it puts the result where who asks will look for it once the future
 * is over. false: it was cancelled.
 */
bool hdrt__future_keep(hdrt__future *future, hdrt_status status, void (*keep)(void *argument), void *argument);
/* Over as cancelled, unless it is over already. Does not wait. */
void hdrt__future_cancel(hdrt__future *future);

#endif
