/* SPDX-License-Identifier: MIT */
/* Copies between host and device and within devices, and snapshots of host bytes. */
#include <string.h>

#include "base/status.h"
#include "memory/registry.h"
#include "queue/enqueue.h"
#include "queue/record.h"

/* ---- host memory ------------------------------------------------------------------------------------------------- */

/*
 * A copy from or to host memory. Pinned memory is used until the operation is over; for pageable memory the driver's
 * call would wait until the stream has come to the copy, so all before it is waited for first; this also keeps what
 * earlier operations of the queue write to the host ahead of what the call reads at once.
 */
static hdrt_status copy_host(hdrt__enqueue *enqueue, hdrt__copy_kind kind, hdrt_ptr device, void *host, uint64_t bytes,
                             bool pinned)
{
    hdrt_queue *queue = enqueue->queue;
    hdrt__op pageable, *op = &pageable;
    if (pinned) {
        hdrt_status status = hdrt__enqueue_reserve(enqueue, HDRT__OP_COPY, &op);
        if (status != HDRT_OK) {
            return status;
        }
        status = hdrt__registry_use(queue->device->runtime, host, hdrt__enqueue_event(enqueue));
        if (status != HDRT_OK) {
            return hdrt__enqueue_cancel(enqueue, status);
        }
    }
    op->kind = HDRT__OP_COPY;
    op->detail = (uint8_t)kind;
    op->copy.dst = op->copy.src = device;
    op->copy.host = host;
    op->copy.bytes = bytes;
    if (!pinned) {
        return hdrt__enqueue_blocking(enqueue, op);
    }
    if (kind == HDRT__COPY_DTOH) {
        atomic_store(&queue->hazard, enqueue->position);
    }
    return hdrt__enqueue_publish(enqueue);
}

/* ---- snapshots --------------------------------------------------------------------------------------------------- */

/* Checked: copy the bytes now and enqueue their copy to the device. */
static hdrt_status write_snapshot(hdrt__enqueue *enqueue, hdrt_ptr dst, const void *src, uint64_t bytes)
{
    hdrt_queue *queue = enqueue->queue;
    hdrt__memory *memory = hdrt__queue_memory(queue);
    hdrt__snapshot *snapshot;
    hdrt__scope scope;
    hdrt__op *op;
    if (hdrt__is_recorded(queue)) {
        return hdrt__record_refuse(enqueue->function, "copies of pageable memory and no snapshots");
    }
    hdrt_status status = hdrt__device_enter(queue->device, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt__snapshot_take(memory, bytes, &snapshot);
    hdrt__device_leave(queue->device, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    memcpy(snapshot->bytes, src, bytes);
    status = hdrt__enqueue_reserve(enqueue, HDRT__OP_COPY, &op);
    if (status != HDRT_OK) {
        hdrt__snapshot_give(memory, snapshot);
        return status;
    }
    op->detail = HDRT__COPY_HTOD;
    op->copy.dst = dst;
    op->copy.host = snapshot->bytes;
    op->copy.bytes = bytes;
    hdrt__snapshot_until(memory, snapshot, hdrt__enqueue_event(enqueue));
    return hdrt__enqueue_publish(enqueue);
}

hdrt_status hdrt_write(hdrt_queue *queue, hdrt_ptr dst, const void *src, uint64_t bytes)
{
    hdrt__enqueue enqueue;
    hdcu_context context;
    hdrt_status status = hdrt__enqueue_begin(&enqueue, queue, "hdrt_write");
    if (status != HDRT_OK) {
        return status;
    }
    if (!bytes) {
        return hdrt__enqueue_nothing(&enqueue);
    }
    if (bytes > HDRT_WRITE_LIMIT) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "hdrt_write: %llu bytes, at most %u are written: use hdrt_copy_htod",
                          (unsigned long long)bytes, HDRT_WRITE_LIMIT);
    }
    if (!src) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_write: the source is NULL");
    }
    status = hdrt__check_device_range(queue->device, dst, bytes, "hdrt_write: the destination", &context);
    return status == HDRT_OK ? write_snapshot(&enqueue, dst, src, bytes) : status;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* Whether nothing that may still write host memory, or wait for who does, is before an operation of the queue. */
static bool host_is_settled(hdrt_queue *queue)
{
    hdrt_event hazard = hdrt__timeline_event(queue->entry.timeline, atomic_load(&queue->hazard));
    return hdrt__event_look(queue->device->runtime, hazard, true, NULL) == HDRT_OK;
}

static hdrt_status copy_htod(hdrt__enqueue *enqueue, hdrt_ptr dst, const void *src, uint64_t bytes, bool pinned)
{
    if (!pinned && bytes <= HDRT_WRITE_LIMIT && host_is_settled(enqueue->queue)) {
        /* The source's bytes cannot change any more before the copy: take them now and wait for nothing. */
        hdrt_status status = write_snapshot(enqueue, dst, src, bytes);
        if (status != HDRT_WOULD_BLOCK) {
            return status;
        }
    }
    return copy_host(enqueue, HDRT__COPY_HTOD, dst, (void *)(uintptr_t)src, bytes, pinned);
}

hdrt_status hdrt_copy_htod(hdrt_queue *queue, hdrt_ptr dst, const void *src, uint64_t bytes)
{
    hdrt__enqueue enqueue;
    hdcu_context context;
    bool pinned = false;
    hdrt_status status = hdrt__enqueue_begin(&enqueue, queue, "hdrt_copy_htod");
    if (status != HDRT_OK) {
        return status;
    }
    if (!bytes) {
        return hdrt__enqueue_nothing(&enqueue);
    }
    status = hdrt__check_device_range(queue->device, dst, bytes, "hdrt_copy_htod: the destination", &context);
    if (status == HDRT_OK) {
        status = hdrt__check_host_range(queue->device, src, bytes, "hdrt_copy_htod: the source", &pinned);
    }
    return status == HDRT_OK ? copy_htod(&enqueue, dst, src, bytes, pinned) : status;
}

hdrt_status hdrt_copy_dtoh(hdrt_queue *queue, void *dst, hdrt_ptr src, uint64_t bytes)
{
    hdrt__enqueue enqueue;
    hdcu_context context;
    bool pinned = false;
    hdrt_status status = hdrt__enqueue_begin(&enqueue, queue, "hdrt_copy_dtoh");
    if (status != HDRT_OK) {
        return status;
    }
    if (!bytes) {
        return hdrt__enqueue_nothing(&enqueue);
    }
    status = hdrt__check_device_range(queue->device, src, bytes, "hdrt_copy_dtoh: the source", &context);
    if (status == HDRT_OK) {
        status = hdrt__check_host_range(queue->device, dst, bytes, "hdrt_copy_dtoh: the destination", &pinned);
    }
    return status == HDRT_OK ? copy_host(&enqueue, HDRT__COPY_DTOH, src, dst, bytes, pinned) : status;
}

hdrt_status hdrt_copy_dtod(hdrt_queue *queue, hdrt_ptr dst, hdrt_ptr src, uint64_t bytes)
{
    hdrt__enqueue enqueue;
    hdrt__op *op;
    hdcu_context dst_context = NULL, src_context = NULL;
    hdrt_status status = hdrt__enqueue_begin(&enqueue, queue, "hdrt_copy_dtod");
    if (status != HDRT_OK) {
        return status;
    }
    if (!bytes) {
        return hdrt__enqueue_nothing(&enqueue);
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
        status = hdrt__enqueue_reserve(&enqueue, HDRT__OP_COPY, &op);
    }
    if (status != HDRT_OK) {
        return status;
    }
    bool peers = dst_context && src_context && dst_context != src_context;
    op->detail = peers ? HDRT__COPY_PEER : HDRT__COPY_DTOD;
    op->copy.dst = dst;
    op->copy.src = src;
    op->copy.bytes = bytes;
    op->copy.dst_context = dst_context;
    op->copy.src_context = src_context;
    return hdrt__enqueue_publish(&enqueue);
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
