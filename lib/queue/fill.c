/* SPDX-License-Identifier: MIT */
/* Filling device memory with a pattern. */
#include <string.h>

#include "base/number.h"
#include "base/status.h"
#include "queue/commit.h"

/* Patterns of up to 4 bytes, and longer ones that repeat 4: one command. */
static hdrt__call fill_short(hdrt_queue *queue, hdrt_ptr dst, const unsigned char *pattern, uint32_t pattern_bytes,
                             uint64_t count)
{
    const hdrt__driver_table *driver = queue->device->driver;
    uint16_t half;
    uint32_t word;
    switch (pattern_bytes) {
    case 1:
        return HDRT__CALL(driver, cuMemsetD8Async, dst, pattern[0], count, queue->stream);
    case 2:
        memcpy(&half, pattern, sizeof half);
        return HDRT__CALL(driver, cuMemsetD16Async, dst, half, count, queue->stream);
    default:
        memcpy(&word, pattern, sizeof word);
        return HDRT__CALL(driver, cuMemsetD32Async, dst, word, count * (pattern_bytes / 4), queue->stream);
    }
}

/*
 * Longer patterns: the first copy is set word by word, then what is there is copied behind itself, doubling each time.
 * Ordered by the stream like any other operation, and as exact. \return the first call that failed, or the last.
 */
static hdrt__call fill_long(hdrt_queue *queue, hdrt_ptr dst, const unsigned char *pattern, uint32_t pattern_bytes,
                            uint64_t count, uint32_t *commands)
{
    const hdrt__driver_table *driver = queue->device->driver;
    uint64_t total = count * pattern_bytes, done = pattern_bytes;
    hdrt__call call = {HDCU_SUCCESS, "cuMemsetD32Async"};
    for (uint32_t i = 0; i < pattern_bytes && !call.result; i += 4) {
        uint32_t word;
        memcpy(&word, pattern + i, sizeof word);
        call = HDRT__CALL(driver, cuMemsetD32Async, dst + i, word, 1, queue->stream);
        *commands += !call.result;
    }
    while (done < total && !call.result) {
        uint64_t next = done <= total - done ? done : total - done;
        call = HDRT__CALL(driver, cuMemcpyDtoDAsync, dst + done, dst, next, queue->stream);
        *commands += !call.result;
        done += next;
    }
    return call;
}

static bool repeats_a_word(const unsigned char *pattern, uint32_t pattern_bytes)
{
    for (uint32_t i = 4; i < pattern_bytes; i += 4) {
        if (memcmp(pattern, pattern + i, 4) != 0) {
            return false;
        }
    }
    return true;
}

static hdrt_status fill(hdrt__commit *commit, hdrt_ptr dst, const unsigned char *pattern, uint32_t pattern_bytes,
                        uint64_t count)
{
    hdrt_queue *queue = commit->queue;
    uint32_t commands = 1;
    hdrt_status status = hdrt__commit_lock(commit, HDRT__COMMIT_ROOM);
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__call call;
    bool is_long = pattern_bytes > 4 && !repeats_a_word(pattern, pattern_bytes);
    if (is_long) {
        commands = 0;
        call = fill_long(queue, dst, pattern, pattern_bytes, count, &commands);
    } else {
        call = fill_short(queue, dst, pattern, pattern_bytes, count);
    }
    if (call.result) {
        if (is_long && commands) {
            hdrt__commit_part(commit, commands);
        }
        return hdrt__commit_failed(commit, call, "filling %llu times %u bytes at 0x%llx", (unsigned long long)count,
                                   pattern_bytes, dst);
    }
    hdrt__commit_done(commit, commands);
    return HDRT_OK;
}

static hdrt_status check_fill(hdrt_queue *queue, hdrt_ptr dst, const void *pattern, uint32_t pattern_bytes,
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
    return hdrt__check_device_range(queue->device, dst, bytes, "hdrt_fill: the destination", &context);
}

hdrt_status hdrt_fill(hdrt_queue *queue, hdrt_ptr dst, const void *pattern, uint32_t pattern_bytes, uint64_t count)
{
    hdrt__commit commit;
    hdrt_status status = hdrt__commit_begin(&commit, queue, "hdrt_fill");
    if (status != HDRT_OK) {
        return status;
    }
    status = check_fill(queue, dst, pattern, pattern_bytes, count);
    if (status != HDRT_OK) {
        return hdrt__commit_leave(&commit, status);
    }
    if (!count) {
        return hdrt__commit_nothing(&commit);
    }
    return hdrt__commit_leave(&commit, fill(&commit, dst, pattern, pattern_bytes, count));
}
