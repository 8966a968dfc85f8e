/* SPDX-License-Identifier: MIT */
#include "queue/commit.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/status.h"
#include "device/callbacks.h"
#include "queue/mark.h"

hdrt_status hdrt__commit_check_capture(hdrt_queue *queue, const char *function)
{
    unsigned capturing = HDCU_STREAM_CAPTURE_STATUS_NONE;
    if (!atomic_load_explicit(&queue->foreign_work, memory_order_relaxed)) {
        return HDRT_OK;
    }
    hdrt__call call = HDRT__CALL(queue->device->driver, cuStreamIsCapturing, queue->stream, &capturing);
    hdrt_status status = hdrt__device_check(queue->device, call, "%s: queue '%s'", function, queue->entry.name);
    if (status == HDRT_OK && capturing != HDCU_STREAM_CAPTURE_STATUS_NONE) {
        status = hdrt__fail(HDRT_ERROR_CAPTURING,
                            "%s: the stream of queue '%s' is being captured: end the capture first", function,
                            queue->entry.name);
    }
    return status;
}

/* OPEN, or the failure. Under the commit lock. */
static hdrt_status check_state(const hdrt_queue *queue)
{
    if (hdrt__device_is_lost(queue->device)) {
        return hdrt__device_lost_status(queue->device);
    }
    return atomic_load(&queue->state) == HDRT__QUEUE_FAILED ? hdrt__queue_failed_status(queue) : HDRT_OK;
}

hdrt_status hdrt__commit_begin(hdrt__commit *commit, hdrt_queue *queue, const char *function)
{
    commit->state = HDRT__COMMIT_OUTSIDE;
    commit->queue = queue;
    commit->function = function;
    hdrt_status status = hdrt__queue_begin(queue, function);
    if (status == HDRT_OK && atomic_load(&queue->state) == HDRT__QUEUE_FAILED) {
        pthread_mutex_lock(&queue->commit);
        status = check_state(queue);
        pthread_mutex_unlock(&queue->commit);
    }
    if (status == HDRT_OK) {
        status = hdrt__device_enter(queue->device, &commit->scope);
    }
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__queue_hold(queue); /* a host function that this call enqueues may destroy the queue before the call returns */
    commit->state = HDRT__COMMIT_INSIDE;
    status = hdrt__commit_check_capture(queue, function);
    return status == HDRT_OK ? HDRT_OK : hdrt__commit_leave(commit, status);
}

/* Under the commit lock. */
static bool wish_fulfilled(const hdrt_queue *queue, hdrt__commit_wish wish)
{
    uint64_t committed = atomic_load(&queue->committed), completed = atomic_load(&queue->entry.timeline->completed);
    uint64_t pending = committed > completed ? committed - completed : 0;
    if (wish == HDRT__COMMIT_QUIET) {
        return pending == 0 && hdrt__queue_outstanding(queue) == 0;
    }
    return pending < queue->ring_limit && hdrt__queue_outstanding(queue) < HDRT__COMMAND_LIMIT;
}

/* What to wait for: all, or only the oldest that is marked. Under the commit lock. */
static uint64_t position_to_wait_for(const hdrt_queue *queue, hdrt__commit_wish wish)
{
    if (wish == HDRT__COMMIT_ROOM && queue->mark_count) {
        return queue->marks[queue->mark_first].position;
    }
    return atomic_load(&queue->committed);
}

/* Without the lock, once the wish was not fulfilled. */
static hdrt_status wait_for(hdrt__commit *commit, hdrt__commit_wish wish, uint64_t position)
{
    hdrt_queue *queue = commit->queue;
    bool own = hdrt__callback_current().timeline == hdrt__timeline_event(queue->entry.timeline, 0).timeline;
    if (wish == HDRT__COMMIT_ROOM && (own || queue->back_pressure == HDRT_BACK_PRESSURE_WOULD_BLOCK)) {
        return HDRT_WOULD_BLOCK; /* a host function would wait for its own call to be over */
    }
    hdrt_event event = hdrt__timeline_event(queue->entry.timeline, position);
    hdrt_status status = hdrt__event_wait_until(queue->device->runtime, event, HDRT_FOREVER, NULL);
    if (status == HDRT_ERROR_CYCLE) {
        return hdrt__fail(status,
                          "%s: pageable memory is copied when queue '%s' has come to the copy, and this is a host "
                          "function that it waits for: use pinned memory",
                          commit->function, queue->entry.name);
    }
    return hdrt__status_over(status) ? HDRT_OK : status; /* what failed shows in the queue's state */
}

hdrt_status hdrt__commit_lock(hdrt__commit *commit, hdrt__commit_wish wish)
{
    hdrt_queue *queue = commit->queue;
    for (;;) {
        pthread_mutex_lock(&queue->commit);
        hdrt_status status = check_state(queue);
        if (status == HDRT_OK && !wish_fulfilled(queue, wish)) {
            status = hdrt__mark_progress(queue, position_to_wait_for(queue, wish));
        }
        hdrt__held_module *done = hdrt__modules_done(queue);
        if (status == HDRT_OK && wish_fulfilled(queue, wish)) {
            commit->state = HDRT__COMMIT_LOCKED;
            commit->position = queue->position + 1;
            if (!done) {
                return HDRT_OK;
            }
            /* Unloading a module may take a while, and not under the lock: look again after it. */
            commit->state = HDRT__COMMIT_INSIDE;
        }
        uint64_t position = position_to_wait_for(queue, wish);
        bool fulfilled = wish_fulfilled(queue, wish);
        pthread_mutex_unlock(&queue->commit);
        hdrt__modules_release(done);
        if (status == HDRT_OK && !fulfilled) {
            status = wait_for(commit, wish, position);
        }
        if (status != HDRT_OK) {
            return status;
        }
    }
}

void hdrt__commit_unlock(hdrt__commit *commit)
{
    pthread_mutex_unlock(&commit->queue->commit);
    commit->state = HDRT__COMMIT_INSIDE;
}

static void take_position(hdrt__commit *commit, uint32_t commands)
{
    hdrt_queue *queue = commit->queue;
    queue->position = commit->position;
    queue->commands += commands;
    atomic_store(&queue->committed, commit->position);
    hdrt__timeline_enqueue(queue->entry.timeline, commit->position);
}

void hdrt__commit_part(hdrt__commit *commit, uint32_t commands)
{
    take_position(commit, commands);
    commit->position++;
}

void hdrt__commit_done(hdrt__commit *commit, uint32_t commands)
{
    hdrt_queue *queue = commit->queue;
    take_position(commit, commands);
    hdrt__mark_idle(queue);
    hdrt__mark_by_count(queue);
    hdrt__commit_unlock(commit);
}

hdrt_status hdrt__commit_failed_as(hdrt__commit *commit, hdrt_status status)
{
    hdrt_queue *queue = commit->queue;
    hdrt__buffer text = HDRT__BUFFER_INIT;
    hdrt__buffer_format(&text, "queue '%s' failed at position %llu: %s; what is enqueued after it is dropped until "
                               "hdrt_queue_clear_error",
                        queue->entry.name, (unsigned long long)commit->position, hdrt_last_error());
    hdrt__failure *failure = text.failed ? NULL : hdrt__failure_create(HDRT_ERROR_QUEUE_FAILED, (char *)text.bytes);
    hdrt__buffer_free(&text);
    queue->position = commit->position;
    hdrt__failure_drop(queue->failure);
    queue->failure = failure;
    atomic_store(&queue->state, HDRT__QUEUE_FAILED);
    hdrt__timeline_enqueue(queue->entry.timeline, commit->position);
    hdrt__timeline_fail(queue->entry.timeline, commit->position, failure);
    hdrt__queue_failed_status(queue);
    hdrt__commit_unlock(commit);
    return status;
}

hdrt_status hdrt__commit_failed(hdrt__commit *commit, hdrt__call call, const char *format, ...)
{
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    hdrt_status status = hdrt__device_check(commit->queue->device, call, "%s", what);
    if (status == HDRT_ERROR_DEVICE_LOST) {
        hdrt__commit_unlock(commit);
        return status;
    }
    return hdrt__commit_failed_as(commit, HDRT_ERROR_QUEUE_FAILED);
}

hdrt_status hdrt__commit_leave(hdrt__commit *commit, hdrt_status status)
{
    if (commit->state == HDRT__COMMIT_LOCKED) {
        hdrt__commit_unlock(commit);
    }
    if (commit->state == HDRT__COMMIT_INSIDE) {
        hdrt__device_leave(commit->queue->device, &commit->scope);
        commit->state = HDRT__COMMIT_OUTSIDE;
        hdrt__queue_drop(commit->queue);
    }
    return status;
}

hdrt_status hdrt__commit_nothing(hdrt__commit *commit)
{
    hdrt_status status = hdrt__commit_lock(commit, HDRT__COMMIT_ROOM);
    if (status == HDRT_OK) {
        hdrt__commit_done(commit, 0);
    }
    return hdrt__commit_leave(commit, status);
}
