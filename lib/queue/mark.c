/* SPDX-License-Identifier: MIT */
#include "queue/mark.h"

#include <stdlib.h>

#include "base/status.h"
#include "jit/kernel.h"

static hdrt__ring_mark *mark_at(hdrt_queue *queue, uint32_t index)
{
    return &queue->marks[(queue->mark_first + index) & (queue->mark_capacity - 1)];
}

static bool make_room(hdrt_queue *queue)
{
    if (queue->mark_count < queue->mark_capacity) {
        return true;
    }
    uint32_t capacity = queue->mark_capacity ? queue->mark_capacity * 2 : 8;
    if (capacity > HDRT__MARK_LIMIT) {
        return false;
    }
    hdrt__ring_mark *marks = malloc(capacity * sizeof *marks);
    if (!marks) {
        return false;
    }
    for (uint32_t i = 0; i < queue->mark_count; i++) {
        marks[i] = *mark_at(queue, i);
    }
    free(queue->marks);
    queue->marks = marks;
    queue->mark_first = 0;
    queue->mark_capacity = capacity;
    return true;
}

static hdrt__call record(hdrt_queue *queue)
{
    hdrt__mark *mark;
    if (!make_room(queue)) {
        return (hdrt__call){HDCU_ERROR_OUT_OF_MEMORY, "cuEventRecord"};
    }
    hdrt__call call = hdrt__device_mark_take(queue->device, &mark);
    if (call.result) {
        return call;
    }
    call = HDRT__CALL(queue->device->driver, cuEventRecord, mark->event, queue->stream);
    if (call.result) {
        hdrt__mark_drop(queue->device, mark);
        return call;
    }
    *mark_at(queue, queue->mark_count++) = (hdrt__ring_mark){atomic_load(&queue->committed), queue->commands, mark};
    return call;
}

/* The newest mark, if no command was enqueued after it: it stands for all positions there are. */
static hdrt__ring_mark *newest_at_end(hdrt_queue *queue)
{
    if (!queue->mark_count) {
        return NULL;
    }
    hdrt__ring_mark *newest = mark_at(queue, queue->mark_count - 1);
    if (newest->commands != queue->commands) {
        return NULL;
    }
    newest->position = atomic_load(&queue->committed);
    return newest;
}

/* Index of the oldest mark at or after a position; mark_count if there is none. */
static uint32_t oldest_after(hdrt_queue *queue, uint64_t position)
{
    uint32_t low = 0, high = queue->mark_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (mark_at(queue, middle)->position < position) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void hdrt__mark_idle(hdrt_queue *queue)
{
    if (hdrt__queue_outstanding(queue) == 0) {
        hdrt__timeline_complete(queue->entry.timeline, atomic_load(&queue->committed));
    }
}

hdrt__call hdrt__mark_for(hdrt_queue *queue, uint64_t position, hdrt__mark **out_mark)
{
    hdrt__call call = {HDCU_SUCCESS, "cuEventRecord"};
    *out_mark = NULL;
    hdrt__mark_idle(queue);
    if (position <= atomic_load(&queue->entry.timeline->completed)) {
        return call;
    }
    uint32_t index = oldest_after(queue, position);
    if (index == queue->mark_count && newest_at_end(queue)) {
        index = queue->mark_count - 1;
    }
    if (index == queue->mark_count) {
        call = record(queue);
        if (call.result) {
            return call;
        }
    }
    *out_mark = mark_at(queue, index)->mark;
    return call;
}

/* The marks up to this one are complete. */
static void complete_up_to(hdrt_queue *queue, uint32_t index)
{
    uint64_t position = mark_at(queue, index)->position;
    queue->commands_completed = mark_at(queue, index)->commands;
    for (uint32_t i = 0; i <= index; i++) {
        hdrt__mark_drop(queue->device, mark_at(queue, i)->mark);
    }
    queue->mark_first = (queue->mark_first + index + 1) & (queue->mark_capacity - 1);
    queue->mark_count -= index + 1;
    hdrt__timeline_complete(queue->entry.timeline, position);
    hdrt__mark_idle(queue);
}

/* No mark can be had: the stream as a whole still answers. */
static hdrt_status ask_stream(hdrt_queue *queue)
{
    hdrt__call call = HDRT__CALL(queue->device->driver, cuStreamQuery, queue->stream);
    if (call.result == HDCU_ERROR_NOT_READY) {
        return HDRT_OK;
    }
    hdrt_status status = hdrt__device_check(queue->device, call, "queue '%s': asking for its work", queue->entry.name);
    if (status == HDRT_OK) {
        while (queue->mark_count) {
            complete_up_to(queue, queue->mark_count - 1);
        }
        queue->commands_completed = queue->commands;
        hdrt__mark_idle(queue);
    }
    return status;
}

/* \return HDRT_OK if complete, HDRT_NOT_READY, or a failure. */
static hdrt_status ask_mark(hdrt_queue *queue, uint32_t index)
{
    hdrt__call call = HDRT__CALL(queue->device->driver, cuEventQuery, mark_at(queue, index)->mark->event);
    if (call.result == HDCU_ERROR_NOT_READY) {
        return HDRT_NOT_READY;
    }
    return hdrt__device_check(queue->device, call, "queue '%s': asking for its work", queue->entry.name);
}

hdrt_status hdrt__mark_progress(hdrt_queue *queue, uint64_t position)
{
    hdrt__mark *mark;
    hdrt_status status = HDRT_OK;
    hdrt__call call = hdrt__mark_for(queue, position, &mark);
    if (call.result) {
        status = hdrt__device_check(queue->device, call, "queue '%s': marking its work", queue->entry.name);
        return status == HDRT_ERROR_DEVICE_LOST ? status : ask_stream(queue);
    }
    if (mark) {
        uint32_t index = oldest_after(queue, position);
        status = ask_mark(queue, index);
        if (status == HDRT_OK) {
            complete_up_to(queue, index);
            return HDRT_OK;
        }
        if (index == 0) {
            return status < 0 ? status : HDRT_OK;
        }
    }
    while (status >= 0 && queue->mark_count) { /* oldest first, to the first that is not complete */
        status = ask_mark(queue, 0);
        if (status != HDRT_OK) {
            break;
        }
        complete_up_to(queue, 0);
    }
    return status < 0 ? status : HDRT_OK;
}

/* Record a mark at the end. A fault loses the device; any other failure is met again by who needs a mark. */
static void mark_end(hdrt_queue *queue)
{
    if (hdrt__queue_outstanding(queue) == 0 || newest_at_end(queue) || hdrt__device_is_lost(queue->device)) {
        return;
    }
    hdrt__call call = record(queue);
    if (call.result) {
        hdrt__device_check(queue->device, call, "queue '%s': marking its work", queue->entry.name);
    }
}

void hdrt__mark_by_count(hdrt_queue *queue)
{
    uint64_t commands = queue->commands_completed, position = atomic_load(&queue->entry.timeline->completed);
    if (queue->mark_count) {
        const hdrt__ring_mark *newest = mark_at(queue, queue->mark_count - 1);
        commands = newest->commands;
        position = newest->position;
    }
    if (queue->commands - commands >= HDRT__MARK_INTERVAL ||
        atomic_load(&queue->committed) >= position + queue->mark_interval) {
        mark_end(queue);
    }
}

void hdrt__mark_recorded(hdrt_queue *queue)
{
    uint64_t marked = atomic_load(&queue->entry.timeline->completed);
    if (queue->mark_count && mark_at(queue, queue->mark_count - 1)->position > marked) {
        marked = mark_at(queue, queue->mark_count - 1)->position;
    }
    if (queue->recorded > marked) {
        mark_end(queue);
    }
}

void hdrt__marks_free(hdrt_queue *queue)
{
    for (uint32_t i = 0; i < queue->mark_count; i++) {
        hdrt__mark_drop(queue->device, mark_at(queue, i)->mark);
    }
    queue->mark_count = 0;
    free(queue->marks);
    queue->marks = NULL;
    queue->mark_capacity = 0;
}

hdrt__held_module *hdrt__modules_done(hdrt_queue *queue)
{
    hdrt__held_module *done = NULL;
    uint64_t completed = atomic_load(&queue->entry.timeline->completed);
    for (hdrt__held_module **link = &queue->modules; *link;) {
        hdrt__held_module *held = *link;
        if (held->position <= completed) {
            *link = held->next;
            held->next = done;
            done = held;
        } else {
            link = &held->next;
        }
    }
    return done;
}

void hdrt__modules_release(hdrt__held_module *modules)
{
    while (modules) {
        hdrt__held_module *next = modules->next;
        hdrt__module_release(modules->module);
        free(modules);
        modules = next;
    }
}
