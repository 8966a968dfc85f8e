/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "soft/api/entry.h"
#include "soft/check/history.h"
#include "soft/model/capture.h"

#define ALL_FLAGS (HDCU_EVENT_BLOCKING_SYNC | HDCU_EVENT_DISABLE_TIMING | HDCU_EVENT_INTERPROCESS)

static bool is_event(hdcu_event event)
{
    return hdsoft__handle_is(event, HDSOFT__EVENT);
}

hdcu_result hdsoft__cuEventCreate(hdcu_event *out, unsigned flags)
{
    if (!out || flags > ALL_FLAGS || ((flags & HDCU_EVENT_INTERPROCESS) && !(flags & HDCU_EVENT_DISABLE_TIMING)))
        return HDCU_ERROR_INVALID_VALUE;
    hdsoft__event *event = calloc(1, sizeof *event);
    if (!event || !hdsoft__handle_add(event, HDSOFT__EVENT)) {
        free(event);
        return HDCU_ERROR_OUT_OF_MEMORY;
    }
    hdsoft__context *context = hdsoft__here();
    event->context = context;
    event->flags = flags;
    event->references = 1;
    event->made = hdsoft__site_here();
    event->next = context->events;
    if (event->next)
        event->next->previous = event;
    context->events = event;
    *out = event;
    return 0;
}

hdcu_result hdsoft__cuEventDestroy(hdcu_event event)
{
    if (!is_event(event))
        return HDCU_ERROR_INVALID_HANDLE;
    hdsoft__handle_remove(event);
    if (event->next)
        event->next->previous = event->previous;
    if (event->previous)
        event->previous->next = event->next;
    else
        event->context->events = event->next;
    hdsoft__event_release(event);
    return 0;
}

/* A node of the captured graph for a record or a wait that the graph's launches do. */
static int capture_event(hdsoft__stream *stream, hdsoft__task_kind kind, hdsoft__event *event)
{
    if (!stream->capture)
        return HDCU_ERROR_ILLEGAL_STATE;
    hdsoft__task *task = hdsoft__event_task(kind, event);
    return task ? hdsoft__capture_task(stream, task) : HDCU_ERROR_OUT_OF_MEMORY;
}

static hdcu_result record(hdcu_event event, hdcu_stream handle, unsigned flags)
{
    hdsoft__stream *stream;
    if (!is_event(event))
        return HDCU_ERROR_INVALID_HANDLE;
    if (flags > HDCU_EVENT_RECORD_EXTERNAL)
        return HDCU_ERROR_INVALID_VALUE;
    int status = hdsoft__stream_for_work(handle, &stream);
    if (!status && stream->context != event->context)
        status = HDCU_ERROR_INVALID_HANDLE;
    if (status)
        return (hdcu_result)status;
    if (flags)
        return (hdcu_result)capture_event(stream, HDSOFT__TASK_RECORD_EVENT, event);
    if (stream->capture)
        return (hdcu_result)hdsoft__capture_record(stream, event);
    hdsoft__mark *mark = hdsoft__mark_enqueue(stream);
    if (!mark)
        return HDCU_ERROR_OUT_OF_MEMORY;
    hdsoft__mark_release(event->mark);
    event->mark = mark;
    event->capture_id = 0;
    return 0;
}

hdcu_result hdsoft__cuEventRecord(hdcu_event event, hdcu_stream stream)
{
    return record(event, stream, 0);
}

hdcu_result hdsoft__cuEventRecordWithFlags(hdcu_event event, hdcu_stream stream, unsigned flags)
{
    return record(event, stream, flags);
}

hdcu_result hdsoft__cuStreamWaitEvent(hdcu_stream handle, hdcu_event event, unsigned flags)
{
    hdsoft__stream *stream;
    if (!is_event(event))
        return HDCU_ERROR_INVALID_HANDLE;
    if (flags > HDCU_EVENT_WAIT_EXTERNAL)
        return HDCU_ERROR_INVALID_VALUE;
    int status = hdsoft__stream_for_work(handle, &stream);
    if (status)
        return (hdcu_result)status;
    if (flags)
        return (hdcu_result)capture_event(stream, HDSOFT__TASK_WAIT_EVENT, event);
    if (!event->mark && !event->capture_id)
        return 0;
    if (stream->capture || event->capture_id)
        return (hdcu_result)hdsoft__capture_wait(stream, event);
    /* Bound now: what the event is recorded to later does not matter to this wait. */
    const hdsoft__mark *mark = event->mark;
    if (!mark || (hdsoft__reached(mark->at.stream, mark->at.position) && !mark->at.history))
        return 0;
    return (hdcu_result)hdsoft__enqueue_event_wait(stream, &mark->at);
}

/* Asking for an event of a capture spoils that; asking for any may spoil another's. */
static int check_question(hdcu_event event)
{
    if (!is_event(event))
        return HDCU_ERROR_INVALID_HANDLE;
    if (!event->capture_id)
        return hdsoft__capture_unsafe_call(hdsoft__thread_state());
    hdsoft__capture *capture = hdsoft__capture_of_event(event);
    if (!capture)
        return HDCU_ERROR_INVALID_VALUE;
    hdsoft__capture_invalidate(capture);
    return HDCU_ERROR_CAPTURED_EVENT;
}

hdcu_result hdsoft__cuEventQuery(hdcu_event event)
{
    int status = check_question(event);
    if (status)
        return (hdcu_result)status;
    hdsoft__mark *mark = event->mark;
    if (!mark)
        return 0;
    mark->references++; /* another thread may record or destroy the event meanwhile */
    bool reached = hdsoft__reached(mark->at.stream, mark->at.position) ||
                   hdsoft__query(mark->at.stream, mark->at.position, &mark->queries);
    hdsoft__history_saw(hdsoft__history_hold(mark->at.history), reached);
    hdsoft__mark_release(mark);
    return reached ? 0 : HDCU_ERROR_NOT_READY;
}

hdcu_result hdsoft__cuEventSynchronize(hdcu_event event)
{
    int status = check_question(event);
    if (status)
        return (hdcu_result)status;
    if (event->mark) {
        hdsoft__dependency at = event->mark->at; /* another thread may record or destroy the event meanwhile */
        hdsoft__history_hold(at.history);
        status = hdsoft__wait(at.stream, at.position);
        hdsoft__history_saw(at.history, !status);
    }
    return hdsoft__synchronised(status);
}

hdcu_result hdsoft__cuEventElapsedTime(float *milliseconds, hdcu_event from, hdcu_event to)
{
    if (!milliseconds || !is_event(from) || !is_event(to))
        return HDCU_ERROR_INVALID_HANDLE;
    if (hdsoft__capture_of_event(from) || hdsoft__capture_of_event(to))
        return HDCU_ERROR_CAPTURED_EVENT;
    if (!from->mark || !to->mark || from->capture_id || to->capture_id ||
        ((from->flags | to->flags) & HDCU_EVENT_DISABLE_TIMING))
        return HDCU_ERROR_INVALID_HANDLE;
    const hdsoft__mark *first = from->mark, *last = to->mark;
    if (!hdsoft__reached(first->at.stream, first->at.position) || !hdsoft__reached(last->at.stream, last->at.position))
        return HDCU_ERROR_NOT_READY;
    hdsoft__history_saw(hdsoft__history_hold(first->at.history), true);
    hdsoft__history_saw(hdsoft__history_hold(last->at.history), true);
    *milliseconds = (float)((double)(int64_t)(last->time - first->time) / 1e6);
    return 0;
}
