/* SPDX-License-Identifier: MIT */
/* Events of queues, and the order between queues and with the host. */
#include <stdlib.h>

#include <hdrt/interop.h>

#include "base/status.h"
#include "device/callbacks.h"
#include "queue/commit.h"
#include "queue/mark.h"

/* ---- recording --------------------------------------------------------------------------------------------------- */

/* Under the commit lock: a position after what the caller may have enqueued on the stream himself. */
static void take_foreign_position(hdrt_queue *queue)
{
    if (!atomic_load(&queue->foreign_work) || atomic_load(&queue->state) != HDRT__QUEUE_OPEN) {
        return;
    }
    queue->position++;
    queue->commands++; /* counts as one, so that a mark must come after it */
    atomic_store(&queue->committed, queue->position);
    hdrt__timeline_enqueue(queue->entry.timeline, queue->position);
}

hdrt_event hdrt_queue_record(hdrt_queue *queue)
{
    if (!queue) {
        return (hdrt_event){0, 0};
    }
    if (hdrt__runtime_forked(queue->device->runtime)) {
        return hdrt__timeline_event(queue->entry.timeline, UINT64_MAX);
    }
    hdrt__timeline *timeline = queue->entry.timeline;
    pthread_mutex_lock(&queue->commit);
    uint64_t value;
    if (hdrt__device_is_lost(queue->device)) {
        value = atomic_load(&timeline->completed) + 1; /* all from there on failed when the device was lost */
    } else {
        take_foreign_position(queue);
        value = queue->position;
        queue->recorded = value;
    }
    pthread_mutex_unlock(&queue->commit);
    return value ? hdrt__timeline_event(timeline, value) : (hdrt_event){0, 0};
}

/* ---- waiting for events ------------------------------------------------------------------------------------------ */

/*
 * A mark that stands for a queue's position, with a hold of the caller's; NULL if the position is complete by now. The
 * two queues' locks are never held together, so this is done before the waiting queue is locked.
 */
static hdrt_status take_mark(hdrt_queue *producer, uint64_t value, hdrt__mark **out_mark)
{
    hdrt__scope scope;
    *out_mark = NULL;
    hdrt_status status = hdrt__device_enter(producer->device, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    pthread_mutex_lock(&producer->commit);
    if (value > atomic_load(&producer->committed)) {
        status = HDRT_ERROR_EVENT_FAILED; /* since the caller looked */
    } else if (!producer->finished) {
        hdrt__call call = hdrt__mark_for(producer, value, out_mark);
        status = hdrt__device_check(producer->device, call, "marking queue '%s' at position %llu", producer->entry.name,
                                    (unsigned long long)value);
        if (status == HDRT_OK && *out_mark) {
            hdrt__mark_hold(*out_mark);
        }
    }
    pthread_mutex_unlock(&producer->commit);
    hdrt__device_leave(producer->device, &scope);
    return status;
}

/* The event has failed: so does the waiting queue. */
static hdrt_status wait_failed(hdrt__commit *commit, hdrt__failure *failure)
{
    hdrt_status status = hdrt__commit_lock(commit, HDRT__COMMIT_ROOM);
    if (status == HDRT_OK) {
        hdrt__fail(HDRT_ERROR_EVENT_FAILED, "it waits for an event that failed: %s", hdrt__failure_text(failure));
        status = hdrt__commit_failed_as(commit, HDRT_ERROR_EVENT_FAILED);
    }
    return status;
}

static hdrt_status wait_for_mark(hdrt__commit *commit, hdrt__mark *mark, const char *producer)
{
    hdrt_queue *queue = commit->queue;
    hdrt_status status = hdrt__commit_lock(commit, HDRT__COMMIT_ROOM);
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__mark_recorded(queue);
    hdrt__call call = HDRT__CALL(queue->device->driver, cuStreamWaitEvent, queue->stream, mark->event,
                                 HDCU_EVENT_WAIT_DEFAULT);
    if (call.result) {
        return hdrt__commit_failed(commit, call, "waiting for queue '%s'", producer);
    }
    atomic_store(&queue->hazard, commit->position);
    hdrt__commit_done(commit, 1);
    return HDRT_OK;
}

/* An event that is not known complete, of the queue that is pinned with its timeline. */
static hdrt_status wait_for_queue(hdrt__commit *commit, hdrt_queue *producer, uint64_t value)
{
    hdrt__mark *mark;
    if (producer == commit->queue) {
        return HDRT_OK; /* its own order does it */
    }
    hdrt_status status = take_mark(producer, value, &mark);
    if (status == HDRT_ERROR_DEVICE_LOST || status == HDRT_ERROR_EVENT_FAILED) {
        return status; /* the event has failed by now: the caller looks again */
    }
    if (status != HDRT_OK) {
        hdrt_status locked = hdrt__commit_lock(commit, HDRT__COMMIT_ROOM);
        return locked == HDRT_OK ? hdrt__commit_failed_as(commit, HDRT_ERROR_QUEUE_FAILED) : locked;
    }
    if (!mark) {
        return HDRT_OK;
    }
    status = wait_for_mark(commit, mark, producer->entry.name);
    hdrt__mark_drop(producer->device, mark);
    return status;
}

/* The event was not complete, and had not failed, a moment ago. */
static hdrt_status wait_for_pending(hdrt__commit *commit, hdrt_event event)
{
    hdrt_runtime *runtime = commit->queue->device->runtime;
    hdrt__timeline *timeline = hdrt__timeline_pin(runtime, event);
    hdrt_status status = HDRT_OK;
    if (!timeline) {
        return HDRT_OK; /* its generation is over: complete */
    }
    if (event.value > atomic_load(&timeline->enqueued)) {
        status = hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                            "hdrt_queue_wait: queue '%s' would wait for value %llu, which is not yet enqueued or "
                            "signalled: that is not in this version",
                            commit->queue->entry.name, (unsigned long long)event.value);
    } else {
        hdrt_queue *producer = hdrt__timeline_owner(timeline, &hdrt__queue_source);
        if (producer) {
            status = wait_for_queue(commit, producer, event.value);
            hdrt__queue_drop(producer);
        }
    }
    hdrt__timeline_unpin(timeline);
    return status;
}

static hdrt_status wait_for_event(hdrt__commit *commit, hdrt_event event)
{
    hdrt_device *device = commit->queue->device;
    hdrt__failure *failure;
    hdrt_status status = hdrt__event_look(device->runtime, event, false, &failure);
    if (status == HDRT_NOT_READY) {
        status = wait_for_pending(commit, event);
        if (status != HDRT_ERROR_DEVICE_LOST && status != HDRT_ERROR_EVENT_FAILED) {
            return status;
        }
        status = hdrt__event_look(device->runtime, event, false, &failure);
    }
    if (status == HDRT_ERROR_EVENT_FAILED || (status == HDRT_ERROR_DEVICE_LOST && !hdrt__device_is_lost(device))) {
        status = wait_failed(commit, failure);
    } else if (status == HDRT_ERROR_DEVICE_LOST) {
        status = hdrt__device_lost_status(device);
    } else if (status == HDRT_ERROR_INVALID_ARGUMENT) {
        hdrt__fail(status, "hdrt_queue_wait: event {0x%llx, %llu} is of no timeline of this runtime",
                   (unsigned long long)event.timeline, (unsigned long long)event.value);
    }
    hdrt__failure_drop(failure);
    return status;
}

hdrt_status hdrt_queue_wait(hdrt_queue *queue, hdrt_event event)
{
    hdrt__commit commit;
    hdrt_status status = hdrt__commit_begin(&commit, queue, "hdrt_queue_wait");
    if (status != HDRT_OK) {
        return status;
    }
    return hdrt__commit_leave(&commit, wait_for_event(&commit, event));
}

/* ---- waiting on the host ----------------------------------------------------------------------------------------- */

/* Wait for all that was handed over, whether or not what came after it failed. */
static hdrt_status wait_committed(hdrt_queue *queue, const char *function)
{
    hdrt_event last = hdrt__timeline_event(queue->entry.timeline, atomic_load(&queue->committed));
    hdrt_status status = hdrt__event_wait_until(queue->device->runtime, last, HDRT_FOREVER, NULL);
    if (status == HDRT_ERROR_CYCLE) {
        return hdrt__fail(status, "%s: a host function waits for queue '%s', which waits for the function", function,
                          queue->entry.name);
    }
    if (status == HDRT_ERROR_DEVICE_LOST) {
        return hdrt__device_lost_status(queue->device);
    }
    return status;
}

hdrt_status hdrt_queue_synchronize(hdrt_queue *queue)
{
    hdrt_status status = hdrt__queue_begin(queue, "hdrt_queue_synchronize");
    if (status != HDRT_OK) {
        return status;
    }
    if (atomic_load(&queue->foreign_work)) {
        hdrt_queue_record(queue); /* the caller's own work counts too */
    }
    status = wait_committed(queue, "hdrt_queue_synchronize");
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
            entry->hold(entry);
            queues[count++] = (hdrt_queue *)entry;
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
        status = wait_committed(queue, "hdrt_device_synchronize");
        pthread_mutex_lock(&queue->commit);
        if (!failed && !atomic_load(&queue->closed) && atomic_load(&queue->state) == HDRT__QUEUE_FAILED) {
            failed = true;
            failure = hdrt__failure_hold(queue->failure);
        }
        pthread_mutex_unlock(&queue->commit);
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
    hdrt__memory *memory = hdrt__device_memory(device); /* takes device->lock itself, so before it */
    hdrt__device_leave(device, &scope);
    if (!memory) {
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

hdrt_status hdrt_queue_wait_cuda_event(hdrt_queue *queue, struct CUevent_st *event)
{
    hdrt__commit commit;
    hdrt_status status = hdrt__commit_begin(&commit, queue, "hdrt_queue_wait_cuda_event");
    if (status != HDRT_OK) {
        return status;
    }
    if (!event) {
        status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_queue_wait_cuda_event: the event is NULL");
        return hdrt__commit_leave(&commit, status);
    }
    status = hdrt__commit_lock(&commit, HDRT__COMMIT_ROOM);
    if (status != HDRT_OK) {
        return hdrt__commit_leave(&commit, status);
    }
    hdrt__mark_recorded(queue);
    hdrt__call call = HDRT__CALL(queue->device->driver, cuStreamWaitEvent, queue->stream, event,
                                 HDCU_EVENT_WAIT_DEFAULT);
    if (call.result) {
        status = hdrt__commit_failed(&commit, call, "waiting for a CUevent of the caller's");
    } else {
        atomic_store(&queue->hazard, commit.position);
        hdrt__commit_done(&commit, 1);
    }
    return hdrt__commit_leave(&commit, status);
}

hdrt_status hdrt_queue_record_cuda_event(hdrt_queue *queue, struct CUevent_st *event)
{
    hdrt__commit commit;
    hdrt_status status = hdrt__commit_begin(&commit, queue, "hdrt_queue_record_cuda_event");
    if (status != HDRT_OK) {
        return status;
    }
    if (!event) {
        status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_queue_record_cuda_event: the event is NULL");
        return hdrt__commit_leave(&commit, status);
    }
    status = hdrt__commit_lock(&commit, HDRT__COMMIT_ROOM);
    if (status != HDRT_OK) {
        return hdrt__commit_leave(&commit, status);
    }
    hdrt__call call = HDRT__CALL(queue->device->driver, cuEventRecord, event, queue->stream);
    if (call.result) {
        status = hdrt__commit_failed(&commit, call, "recording a CUevent of the caller's");
    } else {
        hdrt__commit_done(&commit, 1);
    }
    return hdrt__commit_leave(&commit, status);
}
