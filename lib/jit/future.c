/* SPDX-License-Identifier: MIT */
#include "jit/future.h"

#include <stdlib.h>

#include "base/status.h"
#include "device/runtime.h"
#include "device/timeline.h"

#define DONE 1u /* the value of its timeline that stands for the result */

struct hdrt__future {
    hdrt_runtime *runtime;
    hdrt__timeline *timeline;
    hdrt__cancel cancel;
    pthread_mutex_t lock; /* held while the result is put in place; taken before the leaves */
    _Atomic int status;   /* HDRT_NOT_READY until it is over */
    hdrt__failure *failure; /* set before status becomes a failure; NULL: its text found no memory */
};

hdrt_status hdrt__future_create(hdrt_runtime *runtime, hdrt__future **out_future)
{
    *out_future = NULL;
    hdrt__future *future = calloc(1, sizeof(*future));
    if (!future)
        return hdrt__fail_memory(sizeof(*future), "an asynchronous compile");
    hdrt_status status = hdrt__timeline_acquire(runtime, NULL, NULL, &future->timeline);
    if (status != HDRT_OK) {
        free(future);
        return status;
    }
    hdrt__runtime_hold(runtime);
    future->runtime = runtime;
    hdrt__cancel_init(&future->cancel);
    pthread_mutex_init(&future->lock, NULL);
    atomic_init(&future->status, HDRT_NOT_READY);
    *out_future = future;
    return HDRT_OK;
}

void hdrt__future_destroy(hdrt__future *future)
{
    if (!future)
        return;
    hdrt_runtime *runtime = future->runtime;
    hdrt__timeline_retire(future->timeline, future->failure);
    hdrt__failure_drop(future->failure);
    pthread_mutex_destroy(&future->lock);
    hdrt__cancel_end(&future->cancel);
    free(future);
    hdrt__runtime_drop(runtime);
}

hdrt_event hdrt__future_event(const hdrt__future *future)
{
    return hdrt__timeline_event(future->timeline, DONE);
}

hdrt_status hdrt__future_status(const hdrt__future *future)
{
    if (!future)
        return HDRT_OK;
    hdrt_status status = (hdrt_status)atomic_load_explicit(&future->status, memory_order_acquire);
    return status < 0 ? hdrt__fail_with(status, future->failure ? hdrt__failure_text(future->failure)
                                                                : hdrt_status_text(status)) : status;
}

bool hdrt__future_pending(const hdrt__future *future)
{
    return atomic_load_explicit(&future->status, memory_order_acquire) == HDRT_NOT_READY;
}

bool hdrt__future_forked(const hdrt__future *future)
{
    return hdrt__runtime_forked(future->runtime);
}

hdrt__cancel *hdrt__future_cancel_token(hdrt__future *future)
{
    return &future->cancel;
}

/* Under the lock, once. */
static void end(hdrt__future *future, hdrt_status status, const char *text)
{
    if (status < 0)
        future->failure = hdrt__failure_create(status, text);
    atomic_store_explicit(&future->status, status, memory_order_release);
    if (status < 0)
        hdrt__timeline_fail(future->timeline, DONE, future->failure);
    else
        hdrt__timeline_complete(future->timeline, DONE);
}

bool hdrt__future_keep(hdrt__future *future, hdrt_status status, void (*keep)(void *argument), void *argument)
{
    pthread_mutex_lock(&future->lock);
    bool first = atomic_load(&future->status) == HDRT_NOT_READY;
    if (first && keep)
        keep(argument);
    if (first)
        end(future, status, status < 0 ? hdrt_last_error() : NULL);
    pthread_mutex_unlock(&future->lock);
    return first;
}

void hdrt__future_cancel(hdrt__future *future)
{
    pthread_mutex_lock(&future->lock);
    if (atomic_load(&future->status) == HDRT_NOT_READY)
        end(future, HDRT_ERROR_CANCELLED, "the compile was cancelled");
    pthread_mutex_unlock(&future->lock);
    hdrt__cancel_now(&future->cancel);
}
