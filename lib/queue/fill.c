/* SPDX-License-Identifier: MIT */
/* Filling device memory with a pattern. */
#include <string.h>

#include "base/number.h"
#include "base/status.h"
#include "queue/check.h"
#include "queue/enqueue.h"

hdrt_status hdrt__check_fill(hdrt_device *device, hdrt_ptr dst, const void *pattern, uint32_t pattern_bytes,
                             uint64_t count)
{
    hdcu_context context;
    size_t bytes;
    if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 && pattern_bytes != 8 && pattern_bytes != 16) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "hdrt_fill: a pattern of %u bytes: 1, 2, 4, 8 or 16 are expected",
                          pattern_bytes);
    }
    if (!count) {
        return HDRT_OK;
    }
    if (!pattern) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_fill: the pattern is NULL");
    }
    if (dst % pattern_bytes) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "hdrt_fill: 0x%llx is not aligned to the pattern's %u bytes", dst,
                          pattern_bytes);
    }
    if (!hdrt__size_multiply(count, pattern_bytes, &bytes)) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "hdrt_fill: %llu times %u bytes are more than an address can count",
                          (unsigned long long)count, pattern_bytes);
    }
    return hdrt__check_device_range(device, dst, bytes, "hdrt_fill: the destination", &context);
}

hdrt_status hdrt_fill(hdrt_queue *queue, hdrt_ptr dst, const void *pattern, uint32_t pattern_bytes, uint64_t count)
{
    hdrt__enqueue enqueue;
    hdrt__op *op;
    hdrt_status status = hdrt__enqueue_begin(&enqueue, queue, "hdrt_fill");
    if (status == HDRT_OK) {
        status = hdrt__check_fill(queue->device, dst, pattern, pattern_bytes, count);
    }
    if (status != HDRT_OK) {
        return status;
    }
    if (!count) {
        return hdrt__enqueue_nothing(&enqueue);
    }
    status = hdrt__enqueue_reserve(&enqueue, HDRT__OP_FILL, &op);
    if (status != HDRT_OK) {
        return status;
    }
    op->fill.dst = dst;
    op->fill.count = count;
    op->fill.pattern_bytes = pattern_bytes;
    memcpy(op->fill.pattern, pattern, pattern_bytes);
    return hdrt__enqueue_publish(&enqueue);
}
