/* SPDX-License-Identifier: MIT */
/* Timers: points in device time, each a CUevent with timing. */
#include <stdlib.h>

#include "base/status.h"
#include "queue/enqueue.h"
#include "queue/timer.h"

/*
 * States: UNSET --hdrt_queue_timestamp--> SET, which may be set again. `set` is the event of the last timestamp.
 */
struct hdrt_timer {
    atomic_uint references; /* the caller's, each operation's */
    hdrt_device *device; /* held */
    hdcu_event event;
    pthread_mutex_t lock; /* guards set: a leaf, taken under a queue's */
    hdrt_event set;       /* the zero event: never enqueued */
};

hdrt_status hdrt_timer_create(hdrt_device *device, hdrt_timer **out_timer)
{
    hdrt__scope scope;
    if (!out_timer) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_timer_create: out_timer is NULL");
    }
    *out_timer = NULL;
    hdrt_status status = hdrt__device_begin(device, "hdrt_timer_create");
    if (status == HDRT_OK) {
        status = hdrt__device_enter(device, &scope);
    }
    if (status != HDRT_OK) {
        return status;
    }
    hdrt_timer *timer = calloc(1, sizeof *timer);
    if (!timer) {
        status = hdrt__fail_memory(sizeof *timer, "a timer");
        goto leave;
    }
    hdrt__call call = HDRT__CALL(device->driver, cuEventCreate, &timer->event, HDCU_EVENT_DEFAULT);
    status = hdrt__device_check(device, call, "a timer");
    if (status != HDRT_OK) {
        free(timer);
        goto leave;
    }
    pthread_mutex_init(&timer->lock, NULL);
    atomic_init(&timer->references, 1);
    timer->device = device;
    hdrt__device_hold(device);
    *out_timer = timer;
leave:
    hdrt__device_leave(device, &scope);
    return status;
}

hdcu_event hdrt__timer_event(const hdrt_timer *timer)
{
    return timer->event;
}

void hdrt__timer_hold(hdrt_timer *timer)
{
    atomic_fetch_add_explicit(&timer->references, 1, memory_order_relaxed);
}

void hdrt__timer_drop(hdrt_timer *timer)
{
    hdrt__scope scope;
    if (atomic_fetch_sub_explicit(&timer->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    hdrt_device *device = timer->device;
    if (hdrt__device_enter(device, &scope) == HDRT_OK) {
        /* The driver keeps an event that is still to be recorded. */
        hdrt__device_check(device, HDRT__CALL(device->driver, cuEventDestroy, timer->event), "destroying a timer");
        hdrt__device_leave(device, &scope);
    }
    pthread_mutex_destroy(&timer->lock);
    free(timer);
    hdrt__device_drop(device);
}

void hdrt_timer_destroy(hdrt_timer *timer)
{
    if (timer && !hdrt__runtime_forked(timer->device->runtime)) {
        hdrt__timer_drop(timer);
    }
}

static hdrt_status enqueue_timestamp(hdrt__enqueue *enqueue, hdrt_timer *timer)
{
    hdrt__op *op;
    hdrt_status status = hdrt__enqueue_reserve(enqueue, HDRT__OP_TIMESTAMP, &op);
    if (status != HDRT_OK) {
        return status;
    }
    op->timer = timer;
    hdrt__timer_hold(timer);
    pthread_mutex_lock(&timer->lock);
    timer->set = hdrt__enqueue_event(enqueue);
    pthread_mutex_unlock(&timer->lock);
    return hdrt__enqueue_publish(enqueue);
}

hdrt_status hdrt_queue_timestamp(hdrt_queue *queue, hdrt_timer *timer)
{
    hdrt__enqueue enqueue;
    hdrt_status status = hdrt__enqueue_begin(&enqueue, queue, "hdrt_queue_timestamp");
    if (status != HDRT_OK) {
        return status;
    }
    if (!timer) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_queue_timestamp: the timer is NULL");
    }
    if (timer->device->context != queue->device->context) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "hdrt_queue_timestamp: the timer is of device %u, queue '%s' of device %u",
                          timer->device->index, HDRT__QUEUE_NAME(queue), queue->device->index);
    }
    return enqueue_timestamp(&enqueue, timer);
}

/* Whether the timer was enqueued; what became of it. */
static hdrt_status check_timer(hdrt_timer *timer, const char *which)
{
    pthread_mutex_lock(&timer->lock);
    hdrt_event set = timer->set;
    pthread_mutex_unlock(&timer->lock);
    if (!set.timeline) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_timer_elapsed: the %s timer was never enqueued", which);
    }
    return HDRT_OK;
}

/* A timer that was not reached: its CUevent may still have the time before. \return HDRT_OK: it was, or will never be. */
static hdrt_status check_reached(hdrt_timer *timer)
{
    pthread_mutex_lock(&timer->lock);
    hdrt_event set = timer->set;
    pthread_mutex_unlock(&timer->lock);
    hdrt_runtime *runtime = timer->device->runtime;
    hdrt_status status = hdrt__event_look(runtime, set, true, NULL);
    if (status == HDRT_OK) {
        hdrt__order_known(runtime->order, set);
    }
    return hdrt__status_over(status) ? HDRT_OK : status;
}

static hdrt_status elapsed(hdrt_device *device, hdrt_timer *start, hdrt_timer *end, int64_t *out_ns)
{
    hdrt__scope scope;
    float milliseconds = 0;
    hdrt_status status = hdrt__device_enter(device, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__call call = HDRT__CALL(device->driver, cuEventElapsedTime, &milliseconds, start->event, end->event);
    if (call.result == HDCU_ERROR_NOT_READY) {
        status = HDRT_NOT_READY;
    } else {
        status = hdrt__device_check(device, call, "hdrt_timer_elapsed");
    }
    hdrt__device_leave(device, &scope);
    if (status == HDRT_OK) {
        *out_ns = (int64_t)((double)milliseconds * 1e6 + (milliseconds < 0 ? -0.5 : 0.5));
    }
    return status;
}

hdrt_status hdrt_timer_elapsed(hdrt_timer *start, hdrt_timer *end, int64_t *out_ns)
{
    if (!start || !end || !out_ns) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_timer_elapsed: %s is NULL",
                          !start ? "start" : !end ? "end" : "out_ns");
    }
    *out_ns = 0;
    hdrt_status status = hdrt__device_begin(start->device, "hdrt_timer_elapsed");
    if (status == HDRT_OK && start->device->context != end->device->context) {
        status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_timer_elapsed: the timers are of devices %u and %u",
                            start->device->index, end->device->index);
    }
    if (status == HDRT_OK) {
        status = check_timer(start, "start");
    }
    if (status == HDRT_OK) {
        status = check_timer(end, "end");
    }
    if (status == HDRT_OK) {
        status = check_reached(start);
    }
    if (status == HDRT_OK) {
        status = check_reached(end);
    }
    return status == HDRT_OK ? elapsed(start->device, start, end, out_ns) : status;
}
