/* SPDX-License-Identifier: MIT */
#include "soft/api/entry.h"
#include "soft/check/history.h"
#include "soft/model/capture.h"

#define LEAST_PRIORITY 0
#define GREATEST_PRIORITY (-5)

static hdcu_result create(hdcu_stream *out, unsigned flags, int priority)
{
    if (!out || flags > HDCU_STREAM_NON_BLOCKING)
        return HDCU_ERROR_INVALID_VALUE;
    if (priority < GREATEST_PRIORITY)
        priority = GREATEST_PRIORITY;
    if (priority > LEAST_PRIORITY)
        priority = LEAST_PRIORITY;
    hdsoft__stream *stream = hdsoft__stream_create(hdsoft__here(), flags, priority);
    if (!stream)
        return HDCU_ERROR_OUT_OF_MEMORY;
    *out = stream;
    return 0;
}

hdcu_result hdsoft__cuStreamCreate(hdcu_stream *out, unsigned flags)
{
    return create(out, flags, 0);
}

hdcu_result hdsoft__cuStreamCreateWithPriority(hdcu_stream *out, unsigned flags, int priority)
{
    return create(out, flags, priority);
}

hdcu_result hdsoft__cuStreamDestroy(hdcu_stream stream)
{
    if (!hdsoft__handle_is(stream, HDSOFT__STREAM))
        return HDCU_ERROR_INVALID_HANDLE;
    hdsoft__stream_destroy(stream);
    return 0;
}

/* ---- questions ---- */

static hdcu_result find(hdcu_stream handle, const void *out, hdsoft__stream **stream)
{
    return out ? (hdcu_result)hdsoft__stream_of(handle, stream) : HDCU_ERROR_INVALID_VALUE;
}

hdcu_result hdsoft__cuStreamGetFlags(hdcu_stream handle, unsigned *flags)
{
    hdsoft__stream *stream;
    hdcu_result status = find(handle, flags, &stream);
    if (!status)
        *flags = stream->flags;
    return status;
}

hdcu_result hdsoft__cuStreamGetPriority(hdcu_stream handle, int *priority)
{
    hdsoft__stream *stream;
    hdcu_result status = find(handle, priority, &stream);
    if (!status)
        *priority = stream->priority;
    return status;
}

hdcu_result hdsoft__cuStreamGetId(hdcu_stream handle, unsigned long long *id)
{
    hdsoft__stream *stream;
    hdcu_result status = find(handle, id, &stream);
    if (!status)
        *id = stream->id;
    return status;
}

hdcu_result hdsoft__cuStreamGetCtx(hdcu_stream handle, hdcu_context *context)
{
    hdsoft__stream *stream;
    hdcu_result status = find(handle, context, &stream);
    if (!status)
        *context = stream->context;
    return status;
}

hdcu_result hdsoft__cuStreamGetDevice(hdcu_stream handle, hdcu_device *device)
{
    hdsoft__stream *stream;
    hdcu_result status = find(handle, device, &stream);
    if (!status)
        *device = (hdcu_device)stream->context->device->ordinal;
    return status;
}

/* ---- waiting ---- */

/* A captured stream has nothing to wait for: asking spoils the capture, in every mode. */
static int find_to_wait(hdcu_stream handle, hdsoft__stream **stream)
{
    int status = hdsoft__stream_of(handle, stream);
    if (status || !(*stream)->capture)
        return status ? status : (*stream)->legacy ? hdsoft__capture_legacy_work((*stream)->context) : 0;
    hdsoft__capture_invalidate((*stream)->capture);
    return HDCU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* A stream with work left that a synchronisation of `stream` waits for: itself, or for the legacy stream any blocking
 * one too. */
static hdsoft__stream *unfinished(hdsoft__stream *stream)
{
    if (stream->first || !stream->legacy)
        return stream->first ? stream : NULL;
    hdsoft__stream *other = stream->context->streams;
    while (other && (!other->first || (other->flags & HDCU_STREAM_NON_BLOCKING)))
        other = other->next;
    return other;
}

hdcu_result hdsoft__cuStreamQuery(hdcu_stream handle)
{
    hdsoft__stream *stream;
    int status = find_to_wait(handle, &stream);
    if (status)
        return (hdcu_result)status;
    hdsoft__history *seen = hdsoft__history_expect(stream);
    hdsoft__stream *left = unfinished(stream);
    if (!left) {
        hdsoft__history_saw(seen, true);
        return 0;
    }
    stream->references++; /* both may be destroyed by another thread while this one waits */
    left->references++;
    bool reached = hdsoft__query(left, left->issued, &left->queries) && !unfinished(stream);
    hdsoft__stream_release(left);
    hdsoft__stream_release(stream);
    hdsoft__history_saw(seen, reached);
    return reached ? 0 : HDCU_ERROR_NOT_READY;
}

hdcu_result hdsoft__cuStreamSynchronize(hdcu_stream handle)
{
    hdsoft__stream *stream;
    uint64_t position;
    int status = find_to_wait(handle, &stream);
    if (status)
        return (hdcu_result)status;
    hdsoft__history *seen = hdsoft__history_expect(stream);
    if (unfinished(stream)) {
        /* For the legacy stream an empty command waits for whom it must. */
        position = stream->issued;
        if (stream->legacy)
            status = hdsoft__enqueue(stream, NULL, NULL, 0, &position);
        if (!status)
            status = hdsoft__wait(stream, position);
    }
    hdsoft__history_saw(seen, !status);
    return hdsoft__synchronised(status);
}

/* ---- host functions ---- */

static hdcu_result call_host(hdcu_stream handle, hdcu_host_function function, hdcu_stream_callback callback,
                             void *argument)
{
    hdsoft__stream *stream;
    int status = hdsoft__stream_for_work(handle, &stream);
    if (status)
        return (hdcu_result)status;
    if (callback && stream->capture) {
        hdsoft__capture_invalidate(stream->capture);
        return HDCU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    hdsoft__task *task = hdsoft__task_new(HDSOFT__TASK_HOST);
    if (!task)
        return HDCU_ERROR_OUT_OF_MEMORY;
    task->host.function = function;
    task->host.callback = callback;
    task->host.stream = handle;
    task->host.argument = argument;
    return (hdcu_result)hdsoft__submit(stream, task, NULL);
}

hdcu_result hdsoft__cuLaunchHostFunc(hdcu_stream stream, hdcu_host_function function, void *argument)
{
    return function ? call_host(stream, function, NULL, argument) : HDCU_ERROR_INVALID_VALUE;
}

hdcu_result hdsoft__cuStreamAddCallback(hdcu_stream stream, hdcu_stream_callback callback, void *argument,
                                        unsigned flags)
{
    return callback && !flags ? call_host(stream, NULL, callback, argument) : HDCU_ERROR_INVALID_VALUE;
}

/* ---- stream memory operations ---- */

int hdsoft__value_task(hdsoft__task_kind kind, uint64_t address, uint64_t value, unsigned bytes, unsigned condition,
                       hdsoft__task **out)
{
    hdsoft__device *device;
    hdsoft__allocation allocation;
    if (address % bytes || !hdsoft__range_of(address, &allocation, &device) ||
        allocation.range.end - address < bytes)
        return HDCU_ERROR_INVALID_VALUE;
    hdsoft__task *task = hdsoft__task_new(kind);
    if (!task)
        return HDCU_ERROR_OUT_OF_MEMORY;
    task->value.address = address;
    task->value.value = value;
    task->value.bytes = bytes;
    task->value.condition = condition;
    *out = task;
    return 0;
}

static hdcu_result value_command(hdcu_stream handle, hdsoft__task_kind kind, hdcu_pointer address, uint64_t value,
                                 unsigned bytes, unsigned condition)
{
    hdsoft__stream *stream;
    hdsoft__task *task;
    int status = hdsoft__stream_for_work(handle, &stream);
    if (!status)
        status = hdsoft__value_task(kind, address, value, bytes, condition, &task);
    return (hdcu_result)(status ? status : hdsoft__submit(stream, task, NULL));
}

static hdcu_result wait_value(hdcu_stream stream, hdcu_pointer address, uint64_t value, unsigned bytes, unsigned flags)
{
    if (flags & HDCU_STREAM_WAIT_VALUE_FLUSH)
        return HDCU_ERROR_NOT_SUPPORTED;
    if (flags > HDCU_STREAM_WAIT_VALUE_NOR)
        return HDCU_ERROR_INVALID_VALUE;
    return value_command(stream, HDSOFT__TASK_WAIT_VALUE, address, value, bytes, flags);
}

static hdcu_result write_value(hdcu_stream stream, hdcu_pointer address, uint64_t value, unsigned bytes, unsigned flags)
{
    if (flags != HDCU_STREAM_WRITE_VALUE_DEFAULT) /* an H200 does without the barrier only in its older interface */
        return HDCU_ERROR_INVALID_VALUE;
    return value_command(stream, HDSOFT__TASK_WRITE_VALUE, address, value, bytes, 0);
}

hdcu_result hdsoft__cuStreamWaitValue32(hdcu_stream stream, hdcu_pointer address, uint32_t value, unsigned flags)
{
    return wait_value(stream, address, value, 4, flags);
}

hdcu_result hdsoft__cuStreamWaitValue64(hdcu_stream stream, hdcu_pointer address, uint64_t value, unsigned flags)
{
    return wait_value(stream, address, value, 8, flags);
}

hdcu_result hdsoft__cuStreamWriteValue32(hdcu_stream stream, hdcu_pointer address, uint32_t value, unsigned flags)
{
    return write_value(stream, address, value, 4, flags);
}

hdcu_result hdsoft__cuStreamWriteValue64(hdcu_stream stream, hdcu_pointer address, uint64_t value, unsigned flags)
{
    return write_value(stream, address, value, 8, flags);
}
