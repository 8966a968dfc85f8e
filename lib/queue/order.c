/* SPDX-License-Identifier: MIT */
/* Events of queues, and the order between queues and with the host. */
#include <stdlib.h>

#include <hdrt/interop.h>

#include "base/status.h"
#include "queue/accesses.h"
#include "queue/commit.h"
#include "queue/enqueue.h"
#include "queue/pending.h"
#include "queue/record.h"

/* ---- recording --------------------------------------------------------------------------------------------------- */

/* A position after what the caller may have enqueued on the stream himself. */
static void take_foreign_position(hdrt_queue *queue)
{
    hdrt__enqueue enqueue;
    hdrt__op *op;
    if (!atomic_load_explicit(&queue->foreign_work, memory_order_relaxed) || hdrt__is_recorded(queue)) {
        return;
    }
    enqueue.queue = queue;
    enqueue.function = "hdrt_queue_record";
    enqueue.at_once = false;
    enqueue.accesses = NULL;
    if (hdrt__enqueue_reserve(&enqueue, HDRT__OP_FOREIGN, &op) == HDRT_OK) {
        hdrt__enqueue_publish(&enqueue);
    }
}

hdrt_event hdrt_queue_record(hdrt_queue *queue)
{
    hdrt_event recorded;
    if (!queue) {
        return (hdrt_event){0, 0};
    }
    if (hdrt__runtime_forked(queue->device->runtime)) {
        return hdrt__timeline_event(queue->entry.timeline, UINT64_MAX);
    }
    hdrt__timeline *timeline = queue->entry.timeline;
    if (hdrt__device_is_lost(queue->device)) {
        /* All from there on failed when the device was lost. */
        return hdrt__timeline_event(timeline, atomic_load(&timeline->completed) + 1);
    }
    if (hdrt__record_event(queue, &recorded)) {
        return recorded;
    }
    take_foreign_position(queue);
    uint64_t value = hdrt__queue_position(queue);
    return value ? hdrt__timeline_event(timeline, value) : (hdrt_event){0, 0};
}

/* ---- waiting for events ------------------------------------------------------------------------------------------ */

/*
 * The queue that the event is of, with a hold; NULL: none. If it has yet to commit it, it is to end a group there, and
 * to mark exactly there.
 */
static hdrt_queue *take_producer(hdrt_runtime *runtime, hdrt_event event)
{
    hdrt__timeline *timeline = hdrt__timeline_pin(runtime, event);
    if (!timeline) {
        return NULL;
    }
    hdrt_queue *producer = hdrt__timeline_owner(timeline, &hdrt__queue_source);
    if (producer && event.value > atomic_load(&timeline->committed)) {
        pthread_mutex_lock(&producer->lock);
        hdrt__ring_flag(&producer->ring, event.value);
        pthread_mutex_unlock(&producer->lock);
    }
    hdrt__timeline_unpin(timeline);
    return producer;
}

static bool is_own_future(hdrt_queue *queue, hdrt_event event)
{
    return event.timeline == hdrt__timeline_event(queue->entry.timeline, 0).timeline &&
           event.value > hdrt__queue_position(queue);
}

/* Whether the stream, on which the caller may enqueue next, could not wait for the event yet, and he may not be held up. */
static bool stands_before(hdrt_queue *queue, const hdrt_queue *producer, hdrt_event event)
{
    return atomic_load(&queue->foreign_work) && !hdrt__may_wait(queue) &&
           (!producer || event.value > atomic_load(&producer->entry.timeline->committed));
}

hdrt_status hdrt_queue_wait(hdrt_queue *queue, hdrt_event event)
{
    hdrt__enqueue enqueue;
    hdrt__op *op;
    hdrt_status status = hdrt__enqueue_begin(&enqueue, queue, "hdrt_queue_wait");
    if (status != HDRT_OK || hdrt__record_wait(queue, event, &status)) {
        return status;
    }
    status = hdrt__event_look(queue->device->runtime, event, false, NULL);
    if (status == HDRT_ERROR_INVALID_ARGUMENT) {
        return hdrt__fail(status, "hdrt_queue_wait: event {0x%llx, %llu} is of no timeline of this runtime",
                          (unsigned long long)event.timeline, (unsigned long long)event.value);
    }
    if (status == HDRT_NOT_READY && is_own_future(queue, event)) {
        return hdrt__fail(HDRT_ERROR_CYCLE, "hdrt_queue_wait: queue '%s' would wait for its own position %llu, which "
                                            "comes later",
                          HDRT__QUEUE_NAME(queue), (unsigned long long)event.value);
    }
    bool failed = status != HDRT_OK && status != HDRT_NOT_READY;
    if (status == HDRT_OK && !queue->device->runtime->order) {
        return HDRT_OK; /* nothing to wait for; only the order check wants a position for it */
    }
    hdrt_queue *producer = failed ? NULL : take_producer(queue->device->runtime, event);
    if (producer == queue && event.value <= hdrt__queue_position(queue)) {
        hdrt__queue_drop(producer);
        return HDRT_OK; /* its own order does it */
    }
    if (status == HDRT_NOT_READY && stands_before(queue, producer, event)) {
        if (producer) {
            hdrt__queue_drop(producer);
        }
        hdrt__fail(HDRT_WOULD_BLOCK,
                   "hdrt_queue_wait: what queue '%s' would wait for is not yet handed over, and the caller's own work on "
                   "its stream would not come after it",
                   HDRT__QUEUE_NAME(queue));
        return HDRT_WOULD_BLOCK;
    }
    if (producer) {
        hdrt__accesses_awaited(producer, event);
    }
    status = hdrt__enqueue_reserve(&enqueue, HDRT__OP_WAIT, &op);
    if (status != HDRT_OK) {
        if (producer) {
            hdrt__queue_drop(producer);
        }
        return status;
    }
    op->wait.event = event;
    op->wait.producer = producer;
    if (producer && producer->device == queue->device) {
        /* Queues that depend on each other are served by one thread. */
        atomic_store_explicit(&queue->shard, atomic_load_explicit(&producer->shard, memory_order_relaxed),
                              memory_order_relaxed);
    }
    enqueue.at_once = failed;
    atomic_store(&queue->hazard, enqueue.position);
    status = hdrt__enqueue_publish(&enqueue);
    return failed && status == HDRT_ERROR_QUEUE_FAILED ? HDRT_ERROR_EVENT_FAILED : status;
}

/* ---- waiting on the host ----------------------------------------------------------------------------------------- */

/* Wait for all that was handed over, whether or not what came after it failed. */
static hdrt_status wait_all(hdrt_queue *queue, const char *function)
{
    pthread_mutex_lock(&queue->lock);
    uint64_t position = hdrt__queue_position(queue) - (atomic_load(&queue->closed) == HDRT__CLOSED_FLIGHT);
    pthread_mutex_unlock(&queue->lock);
    hdrt_runtime *runtime = queue->device->runtime;
    hdrt__timeline *timeline = queue->entry.timeline;
    hdrt_status status =
        hdrt__event_wait_until(runtime, hdrt__timeline_event(timeline, position), HDRT_FOREVER, NULL);
    if (status == HDRT_ERROR_EVENT_FAILED) {
        hdrt_event last = hdrt__timeline_event(timeline, atomic_load(&timeline->committed));
        status = hdrt__event_wait_until(runtime, last, HDRT_FOREVER, NULL);
        status = status == HDRT_ERROR_EVENT_FAILED ? HDRT_OK : status;
    }
    if (status == HDRT_OK) {
        hdrt__order_known(runtime->order, hdrt__timeline_event(timeline, position));
    }
    if (status == HDRT_ERROR_CYCLE) {
        return hdrt__fail(status, "%s: a host function waits for queue '%s', which waits for the function", function,
                          HDRT__QUEUE_NAME(queue));
    }
    return status == HDRT_ERROR_DEVICE_LOST ? hdrt__device_lost_status(queue->device) : status;
}

hdrt_status hdrt_queue_synchronize(hdrt_queue *queue)
{
    hdrt_status status = hdrt__queue_begin(queue, "hdrt_queue_synchronize");
    if (status != HDRT_OK) {
        return status;
    }
    take_foreign_position(queue); /* the caller's own work counts too */
    status = wait_all(queue, "hdrt_queue_synchronize");
    return status == HDRT_OK ? hdrt_queue_error(queue) : status;
}

/* All queues of the device, each with a hold. \return false if there is no memory. */
static bool list_queues(hdrt_device *device, hdrt_queue ***out_queues, uint32_t *out_count)
{
    uint32_t capacity = 16, count;
    for (;;) {
        hdrt_queue **queues = malloc(capacity * sizeof(hdrt_queue *));
        if (!queues) {
            return false;
        }
        count = 0;
        pthread_mutex_lock(&device->queues_lock);
        hdrt__device_queue *entry = device->queues;
        for (; entry && count < capacity; entry = entry->next) {
            if (hdrt__queue_source.hold(entry)) { /* not those that are ending */
                queues[count++] = (hdrt_queue *)entry;
            }
        }
        pthread_mutex_unlock(&device->queues_lock);
        if (!entry) {
            *out_queues = queues;
            *out_count = count;
            return true;
        }
        while (count) {
            hdrt__queue_drop(queues[--count]);
        }
        free(queues);
        capacity *= 2;
    }
}

hdrt_status hdrt_device_synchronize(hdrt_device *device)
{
    hdrt_queue **queues;
    uint32_t count;
    hdrt__failure *failure = NULL;
    bool failed = false;
    hdrt_status status = hdrt__device_begin(device, "hdrt_device_synchronize");
    if (status != HDRT_OK) {
        return status;
    }
    if (!list_queues(device, &queues, &count)) {
        return hdrt__fail_memory(16 * sizeof(hdrt_queue *), "the list of a device's queues");
    }
    /* The list has the newest first. */
    for (uint32_t i = count; i-- > 0 && (status == HDRT_OK);) {
        hdrt_queue *queue = queues[i];
        status = wait_all(queue, "hdrt_device_synchronize");
        pthread_mutex_lock(&queue->lock);
        if (!failed && !atomic_load(&queue->closed) && atomic_load(&queue->state) == HDRT__QUEUE_FAILED) {
            failed = true;
            failure = hdrt__failure_hold(queue->failure);
        }
        pthread_mutex_unlock(&queue->lock);
    }
    for (uint32_t i = 0; i < count; i++) {
        hdrt__queue_drop(queues[i]);
    }
    free(queues);
    hdrt__device_drain(device);
    if (status == HDRT_OK && failed) {
        status = hdrt__fail_with(HDRT_ERROR_QUEUE_FAILED, hdrt__failure_text(failure));
    }
    hdrt__failure_drop(failure);
    return status;
}

/* ---- the default queue ------------------------------------------------------------------------------------------- */

hdrt_queue *hdrt_device_default_queue(hdrt_device *device)
{
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    hdrt__scope scope;
    if (hdrt__device_begin(device, "hdrt_device_default_queue") != HDRT_OK ||
        hdrt__device_enter(device, &scope) != HDRT_OK) {
        return NULL;
    }
    hdrt__scheduler *scheduler = hdrt__device_scheduler(device); /* takes device->lock itself, so before it */
    hdrt__device_leave(device, &scope);
    if (!scheduler) {
        return NULL;
    }
    options.name = "default";
    pthread_mutex_lock(&device->lock);
    if (!device->default_queue &&
        hdrt__queue_make(device, &options, NULL, false, &device->default_queue) == HDRT_OK) {
        device->default_queue_end = hdrt__queue_close;
    }
    hdrt_queue *queue = device->default_queue;
    pthread_mutex_unlock(&device->lock);
    return queue;
}

/* ---- the caller's CUevents --------------------------------------------------------------------------------------- */

/* What the event stands for now is taken into a stream that has nothing else to do, and the queue follows that. */
static hdrt_status wait_in_stream(hdrt_queue *queue, hdcu_event event, hdrt__point *out_point)
{
    hdrt__stream *stream = queue->stream;
    hdrt__scope scope;
    hdrt_status status = hdrt__device_enter(queue->device, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    if (!stream) {
        status = hdrt__scheduler_stream(queue->scheduler, queue->class, &stream);
    }
    if (status == HDRT_OK) {
        pthread_mutex_lock(&stream->commit);
        if (stream == queue->stream && hdrt__is_recorded(queue)) { /* it may be captured */
            pthread_mutex_unlock(&stream->commit);
            hdrt__device_leave(queue->device, &scope);
            return hdrt__record_check("hdrt_queue_wait_cuda_event", HDRT__OP_FOLLOW);
        }
        hdrt__pending_flush(stream);
        hdrt__stream_mark_before_wait(stream);
        hdrt__call call = HDRT__CALL(queue->device->driver, cuStreamWaitEvent, stream->handle, event,
                                     HDCU_EVENT_WAIT_DEFAULT);
        hdrt__stream_advance(stream, !call.result);
        *out_point = (hdrt__point){stream, atomic_load(&stream->sequence), 0};
        pthread_mutex_unlock(&stream->commit);
        status = hdrt__device_check(queue->device, call, "waiting for a CUevent of the caller's");
    }
    hdrt__device_leave(queue->device, &scope);
    return status;
}

hdrt_status hdrt_queue_wait_cuda_event(hdrt_queue *queue, struct CUevent_st *event)
{
    hdrt__enqueue enqueue;
    hdrt__point point;
    hdrt__op *op;
    hdrt_status status = hdrt__enqueue_begin(&enqueue, queue, "hdrt_queue_wait_cuda_event");
    if (status != HDRT_OK) {
        return status;
    }
    if (!event) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_queue_wait_cuda_event: the event is NULL");
    }
    if (hdrt__is_recorded(queue)) {
        return hdrt__record_check(enqueue.function, HDRT__OP_FOLLOW);
    }
    status = hdrt__enqueue_room(&enqueue);
    if (status != HDRT_OK) {
        return status;
    }
    status = wait_in_stream(queue, event, &point);
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt__enqueue_reserve(&enqueue, HDRT__OP_FOLLOW, &op);
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__stream_hold(point.stream);
    op->point = point;
    hdrt__order_wait_unknown(queue->device->runtime->order, hdrt__enqueue_event(&enqueue), HDRT__QUEUE_NAME(queue));
    atomic_store(&queue->hazard, enqueue.position);
    return hdrt__enqueue_publish(&enqueue);
}

hdrt_status hdrt_queue_record_cuda_event(hdrt_queue *queue, struct CUevent_st *event)
{
    hdrt__enqueue enqueue;
    hdrt__op *op;
    hdrt_status status = hdrt__enqueue_begin(&enqueue, queue, "hdrt_queue_record_cuda_event");
    if (status != HDRT_OK) {
        return status;
    }
    if (!event) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_queue_record_cuda_event: the event is NULL");
    }
    /* The caller goes on with the event as soon as this returns: if that would block, nothing may be enqueued. */
    status = hdrt__wait_committed(queue, hdrt__queue_position(queue), enqueue.function);
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt__enqueue_reserve(&enqueue, HDRT__OP_CUDA_RECORD, &op);
    if (status != HDRT_OK) {
        return status;
    }
    op->cuda_event = event;
    status = hdrt__enqueue_publish(&enqueue);
    return status == HDRT_OK ? hdrt__wait_handed_over(queue, enqueue.position) : status;
}
