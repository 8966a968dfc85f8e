/* SPDX-License-Identifier: MIT */
#include "soft/api/entry.h"
#include "soft/check/history.h"

int hdsoft__fill_task(uint64_t address, size_t pitch, uint32_t value, unsigned element, size_t width, size_t height,
                      hdsoft__task **out, bool *pinned)
{
    hdsoft__device *device;
    hdsoft__allocation allocation;
    uint64_t row, span;
    *out = NULL;
    *pinned = false;
    if (element != 1 && element != 2 && element != 4)
        return HDCU_ERROR_INVALID_VALUE;
    if (!width || !height)
        return 0;
    if (address % element || (height > 1 && pitch % element) || __builtin_mul_overflow(width, element, &row) ||
        (height > 1 && pitch < row) || __builtin_mul_overflow(pitch, height - 1, &span) ||
        __builtin_add_overflow(span, row, &span))
        return HDCU_ERROR_INVALID_VALUE;
    if (!hdsoft__range_of(address, &allocation, &device) || allocation.range.end - address < span)
        return HDCU_ERROR_INVALID_VALUE;
    *pinned = !device;
    *out = hdsoft__task_new(HDSOFT__TASK_FILL);
    if (!*out)
        return HDCU_ERROR_OUT_OF_MEMORY;
    (*out)->fill = (hdsoft__fill){address, pitch, width, height, value, element};
    return 0;
}

static hdcu_result fill(uint64_t address, size_t pitch, uint32_t value, unsigned element, size_t width, size_t height,
                        hdcu_stream handle, bool async)
{
    hdsoft__stream *stream;
    hdsoft__task *task;
    bool pinned;
    uint64_t position;
    int status = hdsoft__stream_for_work(handle, &stream);
    if (!status)
        status = hdsoft__fill_task(address, pitch, value, element, width, height, &task, &pinned);
    if (status || !task)
        return (hdcu_result)status;
    status = hdsoft__submit(stream, task, &position);
    /* Only a synchronous one into host memory waits. */
    if (status || async || !pinned)
        return (hdcu_result)status;
    hdsoft__history *seen = hdsoft__history_hold(stream->history);
    status = hdsoft__wait(stream, position);
    hdsoft__history_saw(seen, !status);
    return hdsoft__synchronised(status);
}

hdcu_result hdsoft__cuMemsetD8(hdcu_pointer to, unsigned char value, size_t count)
{
    return fill(to, 0, value, 1, count, 1, NULL, false);
}

hdcu_result hdsoft__cuMemsetD16(hdcu_pointer to, unsigned short value, size_t count)
{
    return fill(to, 0, value, 2, count, 1, NULL, false);
}

hdcu_result hdsoft__cuMemsetD32(hdcu_pointer to, unsigned value, size_t count)
{
    return fill(to, 0, value, 4, count, 1, NULL, false);
}

hdcu_result hdsoft__cuMemsetD8Async(hdcu_pointer to, unsigned char value, size_t count, hdcu_stream stream)
{
    return fill(to, 0, value, 1, count, 1, stream, true);
}

hdcu_result hdsoft__cuMemsetD16Async(hdcu_pointer to, unsigned short value, size_t count, hdcu_stream stream)
{
    return fill(to, 0, value, 2, count, 1, stream, true);
}

hdcu_result hdsoft__cuMemsetD32Async(hdcu_pointer to, unsigned value, size_t count, hdcu_stream stream)
{
    return fill(to, 0, value, 4, count, 1, stream, true);
}

hdcu_result hdsoft__cuMemsetD2D8Async(hdcu_pointer to, size_t pitch, unsigned char value, size_t width, size_t height,
                                      hdcu_stream stream)
{
    return fill(to, pitch, value, 1, width, height, stream, true);
}

hdcu_result hdsoft__cuMemsetD2D32Async(hdcu_pointer to, size_t pitch, unsigned value, size_t width, size_t height,
                                       hdcu_stream stream)
{
    return fill(to, pitch, value, 4, width, height, stream, true);
}
