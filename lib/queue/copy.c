/* SPDX-License-Identifier: MIT */
/* Copies between host and device and within devices, and snapshots of host bytes. */
#include <string.h>

#include "base/status.h"
#include "memory/registry.h"
#include "queue/commit.h"
#include "queue/mark.h"

/* ---- host memory ------------------------------------------------------------------------------------------------- */

/*
 * Take the lock for an operation on host memory. Pinned memory is used until the operation is over; for pageable
 * memory the driver's call would wait until the stream has come to the copy, under the lock, so that is waited for
 * before; this also keeps what earlier operations of the queue write to the host ahead of what the call reads at once.
 */
static hdrt_status lock_for_host(hdrt__commit *commit, const void *memory, bool pinned)
{
    hdrt_status status = hdrt__commit_lock(commit, pinned ? HDRT__COMMIT_ROOM : HDRT__COMMIT_QUIET);
    if (status == HDRT_OK && pinned) {
        status = hdrt__registry_use(commit->queue->device->runtime, memory, hdrt__commit_event(commit));
    }
    return status;
}

/* ---- snapshots --------------------------------------------------------------------------------------------------- */

/* INSIDE, checked: copy the bytes now and enqueue their copy to the device. */
static hdrt_status write_snapshot(hdrt__commit *commit, hdrt_ptr dst, const void *src, uint64_t bytes)
{
    hdrt_queue *queue = commit->queue;
    hdrt__snapshot *snapshot;
    hdrt_status status = hdrt__snapshot_take(queue->memory, bytes, &snapshot);
    if (status != HDRT_OK) {
        return status;
    }
    memcpy(snapshot->bytes, src, bytes);
    status = hdrt__commit_lock(commit, HDRT__COMMIT_ROOM);
    if (status != HDRT_OK) {
        goto give_snapshot;
    }
    hdrt__call call = HDRT__CALL(queue->device->driver, cuMemcpyHtoDAsync, dst, snapshot->bytes, bytes, queue->stream);
    if (call.result) {
        status = hdrt__commit_failed(commit, call, "writing %llu bytes to 0x%llx", (unsigned long long)bytes, dst);
        goto give_snapshot;
    }
    hdrt__snapshot_until(queue->memory, snapshot, hdrt__commit_event(commit));
    hdrt__commit_done(commit, 1);
    return HDRT_OK;

give_snapshot:
    hdrt__snapshot_give(queue->memory, snapshot);
    return status;
}

hdrt_status hdrt_write(hdrt_queue *queue, hdrt_ptr dst, const void *src, uint64_t bytes)
{
    hdrt__commit commit;
    hdcu_context context;
    hdrt_status status = hdrt__commit_begin(&commit, queue, "hdrt_write");
    if (status != HDRT_OK) {
        return status;
    }
    if (!bytes) {
        return hdrt__commit_nothing(&commit);
    }
    if (bytes > HDRT_WRITE_LIMIT) {
        status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                            "hdrt_write: %llu bytes, at most %u are written: use hdrt_copy_htod",
                            (unsigned long long)bytes, HDRT_WRITE_LIMIT);
    } else if (!src) {
        status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_write: the source is NULL");
    } else {
        status = hdrt__check_device_range(queue->device, dst, bytes, "hdrt_write: the destination", &context);
    }
    if (status == HDRT_OK) {
        status = write_snapshot(&commit, dst, src, bytes);
    }
    return hdrt__commit_leave(&commit, status);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* Whether nothing that may still write host memory, or wait for who does, is before an operation of the queue. */
static bool host_is_settled(hdrt_queue *queue)
{
    hdrt_event hazard = hdrt__timeline_event(queue->entry.timeline, atomic_load(&queue->hazard));
    return hdrt__event_look(queue->device->runtime, hazard, true, NULL) == HDRT_OK;
}

static hdrt_status copy_htod(hdrt__commit *commit, hdrt_ptr dst, const void *src, uint64_t bytes, bool pinned)
{
    hdrt_queue *queue = commit->queue;
    hdrt_status status;
    if (!pinned && bytes <= HDRT_WRITE_LIMIT && host_is_settled(queue)) {
        /* The source's bytes cannot change any more before the copy: take them now and wait for nothing. */
        status = write_snapshot(commit, dst, src, bytes);
        if (status != HDRT_WOULD_BLOCK) {
            return status;
        }
    }
    status = lock_for_host(commit, src, pinned);
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__call call = HDRT__CALL(queue->device->driver, cuMemcpyHtoDAsync, dst, src, bytes, queue->stream);
    if (call.result) {
        return hdrt__commit_failed(commit, call, "copying %llu bytes from host %p to 0x%llx", (unsigned long long)bytes,
                                   src, dst);
    }
    hdrt__commit_done(commit, 1);
    return HDRT_OK;
}

hdrt_status hdrt_copy_htod(hdrt_queue *queue, hdrt_ptr dst, const void *src, uint64_t bytes)
{
    hdrt__commit commit;
    hdcu_context context;
    bool pinned = false;
    hdrt_status status = hdrt__commit_begin(&commit, queue, "hdrt_copy_htod");
    if (status != HDRT_OK) {
        return status;
    }
    if (!bytes) {
        return hdrt__commit_nothing(&commit);
    }
    status = hdrt__check_device_range(queue->device, dst, bytes, "hdrt_copy_htod: the destination", &context);
    if (status == HDRT_OK) {
        status = hdrt__check_host_range(queue->device, src, bytes, "hdrt_copy_htod: the source", &pinned);
    }
    if (status == HDRT_OK) {
        status = copy_htod(&commit, dst, src, bytes, pinned);
    }
    return hdrt__commit_leave(&commit, status);
}

static hdrt_status copy_dtoh(hdrt__commit *commit, void *dst, hdrt_ptr src, uint64_t bytes, bool pinned)
{
    hdrt_queue *queue = commit->queue;
    hdrt_status status = lock_for_host(commit, dst, pinned);
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__call call = HDRT__CALL(queue->device->driver, cuMemcpyDtoHAsync, dst, src, bytes, queue->stream);
    if (call.result) {
        return hdrt__commit_failed(commit, call, "copying %llu bytes from 0x%llx to host %p", (unsigned long long)bytes,
                                   src, dst);
    }
    atomic_store(&queue->hazard, commit->position);
    hdrt__commit_done(commit, 1);
    return HDRT_OK;
}

hdrt_status hdrt_copy_dtoh(hdrt_queue *queue, void *dst, hdrt_ptr src, uint64_t bytes)
{
    hdrt__commit commit;
    hdcu_context context;
    bool pinned = false;
    hdrt_status status = hdrt__commit_begin(&commit, queue, "hdrt_copy_dtoh");
    if (status != HDRT_OK) {
        return status;
    }
    if (!bytes) {
        return hdrt__commit_nothing(&commit);
    }
    status = hdrt__check_device_range(queue->device, src, bytes, "hdrt_copy_dtoh: the source", &context);
    if (status == HDRT_OK) {
        status = hdrt__check_host_range(queue->device, dst, bytes, "hdrt_copy_dtoh: the destination", &pinned);
    }
    if (status == HDRT_OK) {
        status = copy_dtoh(&commit, dst, src, bytes, pinned);
    }
    return hdrt__commit_leave(&commit, status);
}

static hdrt_status copy_dtod(hdrt__commit *commit, hdrt_ptr dst, hdcu_context dst_context, hdrt_ptr src,
                             hdcu_context src_context, uint64_t bytes)
{
    hdrt_queue *queue = commit->queue;
    const hdrt__driver_table *driver = queue->device->driver;
    bool peers = dst_context && src_context && dst_context != src_context;
    hdrt_status status = hdrt__commit_lock(commit, HDRT__COMMIT_ROOM);
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__call call =
        peers ? HDRT__CALL(driver, cuMemcpyPeerAsync, dst, dst_context, src, src_context, bytes, queue->stream)
              : HDRT__CALL(driver, cuMemcpyDtoDAsync, dst, src, bytes, queue->stream);
    if (call.result) {
        return hdrt__commit_failed(commit, call, "copying %llu bytes from 0x%llx to 0x%llx", (unsigned long long)bytes,
                                   src, dst);
    }
    hdrt__commit_done(commit, 1);
    return HDRT_OK;
}

hdrt_status hdrt_copy_dtod(hdrt_queue *queue, hdrt_ptr dst, hdrt_ptr src, uint64_t bytes)
{
    hdrt__commit commit;
    hdcu_context dst_context = NULL, src_context = NULL;
    hdrt_status status = hdrt__commit_begin(&commit, queue, "hdrt_copy_dtod");
    if (status != HDRT_OK) {
        return status;
    }
    if (!bytes) {
        return hdrt__commit_nothing(&commit);
    }
    status = hdrt__check_device_range(queue->device, dst, bytes, "hdrt_copy_dtod: the destination", &dst_context);
    if (status == HDRT_OK) {
        status = hdrt__check_device_range(queue->device, src, bytes, "hdrt_copy_dtod: the source", &src_context);
    }
    if (status == HDRT_OK && (dst < src ? src - dst : dst - src) < bytes) {
        status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                            "hdrt_copy_dtod: %llu bytes at 0x%llx and at 0x%llx overlap: copy through a third place",
                            (unsigned long long)bytes, dst, src);
    }
    if (status == HDRT_OK) {
        status = copy_dtod(&commit, dst, dst_context, src, src_context, bytes);
    }
    return hdrt__commit_leave(&commit, status);
}

hdrt_status hdrt_copy_batch(hdrt_queue *queue, const hdrt_copy *copies, uint32_t count)
{
    hdrt_status status = hdrt__queue_begin(queue, "hdrt_copy_batch");
    (void)copies;
    (void)count;
    return status != HDRT_OK ? status
                             : hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                                          "hdrt_copy_batch: not in this version; enqueue the copies one by one");
}
