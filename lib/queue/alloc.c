/* SPDX-License-Identifier: MIT */
/* Device memory in queue order. */
#include <stddef.h>

#include "base/log.h"
#include "base/status.h"
#include "memory/registry.h"
#include "queue/commit.h"
#include "queue/mark.h"

/* ---- allocating -------------------------------------------------------------------------------------------------- */

/* LOCKED or INSIDE: the driver has no memory. That is the caller's to know and fails no queue. */
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

/* LOCKED: undo an allocation of this moment. */
static void give_back(hdrt_queue *queue, hdcu_pointer pointer)
{
    hdrt__call call = hdrt__memory_pooled(queue->memory)
                          ? HDRT__CALL(queue->device->driver, cuMemFreeAsync, pointer, queue->stream)
                          : HDRT__CALL(queue->device->driver, cuMemFree, pointer);
    hdrt__device_check(queue->device, call, "freeing device memory");
}

/* LOCKED. */
static hdrt_status allocate(hdrt__commit *commit, uint64_t bytes, hdrt_ptr *out_ptr)
{
    hdrt_queue *queue = commit->queue;
    hdcu_pointer pointer = 0;
    hdrt__call call = hdrt__memory_alloc(queue->memory, queue->stream, bytes, &pointer);
    if (call.result == HDCU_ERROR_OUT_OF_MEMORY) {
        hdrt__memory_trim(queue->memory);
        call = hdrt__memory_alloc(queue->memory, queue->stream, bytes, &pointer);
    }
    if (call.result == HDCU_ERROR_OUT_OF_MEMORY) {
        return out_of_memory(queue, bytes);
    }
    if (call.result) {
        return hdrt__commit_failed(commit, call, "allocating %llu bytes of device memory", (unsigned long long)bytes);
    }
    hdrt_status status = hdrt__registry_add(queue->device, HDRT__RANGE_ALLOCATED, pointer, bytes);
    if (status != HDRT_OK) {
        give_back(queue, pointer);
        return status;
    }
    *out_ptr = pointer;
    hdrt__commit_done(commit, hdrt__memory_pooled(queue->memory) ? 1 : 0);
    return HDRT_OK;
}

hdrt_status hdrt_alloc(hdrt_queue *queue, uint64_t bytes, hdrt_ptr *out_ptr)
{
    hdrt__commit commit;
    if (!out_ptr) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_alloc: out_ptr is NULL");
    }
    *out_ptr = 0;
    hdrt_status status = hdrt__commit_begin(&commit, queue, "hdrt_alloc");
    if (status != HDRT_OK) {
        return status;
    }
    if (!bytes) {
        status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_alloc: 0 bytes, 1 or more are expected");
    } else {
        hdrt__device_drain(queue->device);
        status = hdrt__commit_lock(&commit, HDRT__COMMIT_ROOM);
    }
    if (status == HDRT_OK) {
        status = allocate(&commit, bytes, out_ptr);
    }
    return hdrt__commit_leave(&commit, status);
}

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

/* Deferred until the queue has come past the free, for devices without pools and streams that are full. */
static void free_later(hdrt_device *device, hdrt__deferred *item)
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

static void defer_free(hdrt_queue *queue, hdrt__range *range)
{
    hdrt_event after = hdrt__timeline_event(queue->entry.timeline, atomic_load(&queue->committed));
    hdrt__uses_add(&range->deferred.uses, queue->device->runtime, after); /* one event needs no memory */
    range->deferred.run = free_later;
    hdrt__device_defer(queue->device, &range->deferred);
}

/* Free in the stream's order. On a failed queue too, where it takes no position: nothing waits for it. */
static hdrt_status free_in_order(hdrt_queue *queue, hdrt__range *range, hdrt__scope *scope)
{
    hdrt__commit commit = {.state = HDRT__COMMIT_LOCKED, .queue = queue, .function = "hdrt_free", .scope = *scope};
    pthread_mutex_lock(&queue->commit);
    commit.position = queue->position + 1;
    if (hdrt__queue_outstanding(queue) >= HDRT__COMMAND_LIMIT_FREE) {
        hdrt__commit_unlock(&commit);
        defer_free(queue, range);
        return HDRT_OK;
    }
    bool failed = atomic_load(&queue->state) == HDRT__QUEUE_FAILED;
    unsigned long long address = range->address;
    hdrt__call call = HDRT__CALL(queue->device->driver, cuMemFreeAsync, address, queue->stream);
    if (!call.result) {
        if (failed) {
            queue->commands++;
            hdrt__commit_unlock(&commit);
        } else {
            hdrt__commit_done(&commit, 1);
        }
        hdrt__range_free(range);
        return HDRT_OK;
    }
    /* It stays allocated: another hdrt_free may succeed, and the device's end frees it. */
    hdrt__registry_restore(range);
    if (failed) {
        hdrt_status status = hdrt__device_check(queue->device, call, "freeing device memory at 0x%llx", address);
        hdrt__commit_unlock(&commit);
        return status;
    }
    return hdrt__commit_failed(&commit, call, "freeing device memory at 0x%llx", address);
}

hdrt_status hdrt_free(hdrt_queue *queue, hdrt_ptr ptr)
{
    hdrt__scope scope;
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
    if (!hdrt__memory_pooled(queue->memory)) {
        defer_free(queue, range);
        return HDRT_OK;
    }
    status = hdrt__device_enter(device, &scope);
    if (status != HDRT_OK) {
        if (status == HDRT_ERROR_DEVICE_LOST) {
            hdrt__range_free(range);
            return HDRT_OK;
        }
        hdrt__registry_restore(range);
        return status;
    }
    status = hdrt__commit_check_capture(queue, "hdrt_free");
    if (status == HDRT_OK) {
        status = free_in_order(queue, range, &scope);
    } else {
        hdrt__registry_restore(range);
    }
    hdrt__device_leave(device, &scope);
    return status;
}
