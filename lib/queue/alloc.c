/* SPDX-License-Identifier: MIT */
/* Device memory in queue order. */
#include <stddef.h>

#include "base/log.h"
#include "base/status.h"
#include "memory/registry.h"
#include "queue/accesses.h"
#include "queue/commit.h"
#include "queue/enqueue.h"
#include "queue/follow.h"
#include "queue/record.h"

/* ---- allocating -------------------------------------------------------------------------------------------------- */

/* The driver has no memory. That is the caller's to know and fails no queue. Inside the device's scope. */
static hdrt_status out_of_memory(hdrt_queue *queue, uint64_t bytes)
{
    size_t free_bytes = 0, total_bytes = 0;
    hdrt__call call = HDRT__CALL(queue->device->driver, cuMemGetInfo, &free_bytes, &total_bytes);
    hdrt_status status = hdrt__device_check(queue->device, call, "allocating %llu bytes", (unsigned long long)bytes);
    return status == HDRT_ERROR_DEVICE_LOST
               ? status
               : hdrt__fail(HDRT_ERROR_OUT_OF_DEVICE_MEMORY,
                            "hdrt_alloc: no %llu bytes of device memory: %zu of %zu are free on device %u",
                            (unsigned long long)bytes, free_bytes, total_bytes, queue->device->index);
}

/* Under the stream's lock: undo an allocation of this moment. */
static void give_back(hdrt_queue *queue, hdrt__stream *stream, hdcu_pointer pointer)
{
    hdrt__call call = hdrt__memory_pooled(hdrt__queue_memory(queue))
                          ? HDRT__CALL(queue->device->driver, cuMemFreeAsync, pointer, stream->handle)
                          : HDRT__CALL(queue->device->driver, cuMemFree, pointer);
    hdrt__device_check(queue->device, call, "freeing device memory");
}

/* Under the stream's lock. \return HDRT_ERROR_OUT_OF_DEVICE_MEMORY without a message. */
static hdrt_status allocate(hdrt_queue *queue, hdrt__stream *stream, uint64_t bytes, hdrt_ptr *out_ptr)
{
    hdrt__memory *memory = hdrt__queue_memory(queue);
    hdcu_pointer pointer = 0;
    hdrt__call call = hdrt__memory_alloc(memory, stream->handle, bytes, &pointer);
    if (call.result == HDCU_ERROR_OUT_OF_MEMORY) {
        hdrt__memory_trim(memory);
        call = hdrt__memory_alloc(memory, stream->handle, bytes, &pointer);
    }
    if (call.result == HDCU_ERROR_OUT_OF_MEMORY) {
        return HDRT_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    hdrt_status status = hdrt__device_check(queue->device, call, "allocating %llu bytes of device memory",
                                            (unsigned long long)bytes);
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt__registry_add(queue->device, HDRT__RANGE_ALLOCATED, pointer, bytes);
    if (status != HDRT_OK) {
        give_back(queue, stream, pointer);
        return status == HDRT_ERROR_OUT_OF_MEMORY ? status : HDRT_ERROR_OUT_OF_MEMORY;
    }
    hdrt__stream_advance(stream, hdrt__memory_pooled(memory));
    *out_ptr = pointer;
    return HDRT_OK;
}

/* The queue's committer, at its own position: in its stream, so that what it freed before is found again. */
static hdrt_status allocate_in_order(hdrt__enqueue *enqueue, uint64_t bytes, hdrt_ptr *out_ptr)
{
    hdrt_queue *queue = enqueue->queue;
    hdrt__stream *stream;
    hdrt_status status = hdrt__group_begin(queue, &stream);
    if (status != HDRT_OK) {
        return status == HDRT_ERROR_QUEUE_FAILED ? status : hdrt__queue_fail(queue, enqueue->position);
    }
    if (hdrt__stream_outstanding(stream) >= HDRT__COMMAND_LIMIT) {
        pthread_mutex_unlock(&stream->commit);
        return HDRT_WOULD_BLOCK;
    }
    status = allocate(queue, stream, bytes, out_ptr);
    if (status == HDRT_OK) {
        hdrt__group_end(queue, stream, enqueue->position);
        return HDRT_OK;
    }
    pthread_mutex_unlock(&stream->commit);
    if (status == HDRT_ERROR_OUT_OF_DEVICE_MEMORY) {
        return out_of_memory(queue, bytes);
    }
    return status == HDRT_ERROR_OUT_OF_MEMORY ? status : hdrt__queue_fail(queue, enqueue->position);
}

/* What the queue has enqueued is not handed over yet: allocate in a stream that waits for nothing, and follow that. */
static hdrt_status allocate_aside(hdrt__enqueue *enqueue, uint64_t bytes, hdrt_ptr *out_ptr)
{
    hdrt_queue *queue = enqueue->queue;
    hdrt__stream *stream;
    hdrt__scope scope;
    hdrt__op *op;
    hdrt_status status = hdrt__device_enter(queue->device, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt__scheduler_blocking(queue->scheduler, &stream);
    uint64_t sequence = 0;
    if (status == HDRT_OK) {
        pthread_mutex_lock(&stream->commit);
        status = allocate(queue, stream, bytes, out_ptr);
        sequence = atomic_load(&stream->sequence);
        pthread_mutex_unlock(&stream->commit);
    }
    if (status == HDRT_ERROR_OUT_OF_DEVICE_MEMORY) {
        status = out_of_memory(queue, bytes);
    }
    if (status == HDRT_OK) {
        hdrt__stream_poll(stream, sequence);
    }
    hdrt__device_leave(queue->device, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt__enqueue_reserve(enqueue, HDRT__OP_FOLLOW, &op);
    if (status == HDRT_OK) {
        hdrt__stream_hold(stream);
        op->point = (hdrt__point){stream, sequence, 0};
        return hdrt__enqueue_publish(enqueue);
    }
    hdrt__range *range = hdrt__registry_take(queue->device, HDRT__RANGE_ALLOCATED, *out_ptr);
    if (range) {
        hdrt__free_later(queue, range);
    }
    *out_ptr = 0;
    return status;
}

static hdrt_status enqueue_allocation(hdrt__enqueue *enqueue, uint64_t bytes, hdrt_ptr *out_ptr)
{
    hdrt__scope scope;
    hdrt_status status = hdrt__direct_begin(enqueue, HDRT__DIRECT_COMMITTED, &scope);
    if (status == HDRT_OK) {
        status = allocate_in_order(enqueue, bytes, out_ptr);
        hdrt__direct_end(enqueue, &scope);
    }
    return status == HDRT_WOULD_BLOCK ? allocate_aside(enqueue, bytes, out_ptr) : status;
}

hdrt_status hdrt_alloc(hdrt_queue *queue, uint64_t bytes, hdrt_ptr *out_ptr)
{
    hdrt__enqueue enqueue;
    if (!out_ptr) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_alloc: out_ptr is NULL");
    }
    *out_ptr = 0;
    hdrt_status status = hdrt__enqueue_begin(&enqueue, queue, "hdrt_alloc");
    if (status != HDRT_OK) {
        return status;
    }
    if (!bytes) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_alloc: 0 bytes, 1 or more are expected");
    }
    hdrt__device_drain(queue->device);
    status = enqueue_allocation(&enqueue, bytes, out_ptr);
    if (status == HDRT_OK) {
        hdrt__accesses_alloc(queue, enqueue.position, *out_ptr);
    }
    return status;
}

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

/* Deferred until the queue has come past the free, for devices without pools and queues that have failed. */
static void free_now(hdrt_device *device, hdrt__deferred *item)
{
    hdrt__range *range = (hdrt__range *)((char *)item - offsetof(hdrt__range, deferred));
    hdrt__scope scope;
    if (hdrt__device_enter(device, &scope) == HDRT_OK) {
        hdrt__call call = HDRT__CALL(device->driver, cuMemFree, range->address);
        if (hdrt__device_check(device, call, "freeing %llu bytes of device memory", (unsigned long long)range->bytes)) {
            hdrt__log(HDRT_LOG_ERROR, "%s", hdrt_last_error());
        }
        hdrt__device_leave(device, &scope);
    }
    hdrt__range_free(range);
}

void hdrt__free_later(hdrt_queue *queue, hdrt__range *range)
{
    bool open = atomic_load(&queue->state) == HDRT__QUEUE_OPEN;
    uint64_t after = open ? hdrt__queue_position(queue) : atomic_load(&queue->entry.timeline->committed);
    hdrt__uses_add(&range->deferred.uses, queue->device->runtime, /* one event needs no memory */
                   hdrt__timeline_event(queue->entry.timeline, after));
    range->deferred.run = free_now;
    hdrt__device_defer(queue->device, &range->deferred);
}

/* Free in the queue's order. On a failed queue it takes no position: nothing waits for it. */
static hdrt_status enqueue_free(hdrt_queue *queue, hdrt__range *range)
{
    hdrt__enqueue enqueue = {.queue = queue, .function = "hdrt_free"}; /* the rest is zero */
    hdrt__op *op;
    hdrt_status status = hdrt__enqueue_reserve(&enqueue, HDRT__OP_FREE, &op);
    if (status == HDRT_OK) {
        op->range = range;
        return hdrt__enqueue_publish(&enqueue);
    }
    if (status == HDRT_ERROR_DEVICE_LOST) {
        hdrt__range_free(range);
        return HDRT_OK;
    }
    hdrt__free_later(queue, range);
    return HDRT_OK;
}

hdrt_status hdrt_free(hdrt_queue *queue, hdrt_ptr ptr)
{
    if (!queue) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_free: the queue is NULL");
    }
    hdrt_device *device = queue->device;
    hdrt_status status = hdrt__runtime_begin(device->runtime, "hdrt_free");
    if (status != HDRT_OK || !ptr) {
        return status;
    }
    hdrt__range *range = hdrt__registry_take(device, HDRT__RANGE_ALLOCATED, ptr);
    if (!range) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "hdrt_free: 0x%llx is no address that hdrt_alloc returned on device %u, or it was freed "
                          "before",
                          (unsigned long long)ptr, device->index);
    }
    if (hdrt__device_is_lost(device)) {
        hdrt__range_free(range); /* the memory went with the device */
        return HDRT_OK;
    }
    status = hdrt__check_capture(queue, "hdrt_free");
    if (status == HDRT_OK && hdrt__is_recorded(queue)) {
        status = hdrt__record_check("hdrt_free", HDRT__OP_FREE);
    }
    if (status != HDRT_OK) {
        hdrt__registry_restore(range);
        return status;
    }
    if (!hdrt__memory_pooled(hdrt__queue_memory(queue))) {
        hdrt__accesses_free(queue, range);
        hdrt__free_later(queue, range);
        return HDRT_OK;
    }
    return enqueue_free(queue, range);
}
