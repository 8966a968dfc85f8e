/* SPDX-License-Identifier: MIT */
/* Streams out and in. */
#include <stddef.h>

#include <hdrt/interop.h>

#include "base/status.h"
#include "queue/enqueue.h"
#include "queue/record.h"
#include "queue/scheduler.h"

/* The stream of an exclusive queue is otherwise made by its first commit. */
static hdrt_status make_stream(hdrt_queue *queue)
{
    hdrt__scope scope;
    hdrt__stream *stream;
    hdrt_status status = hdrt__device_enter(queue->device, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt__stream_create(queue->scheduler, queue->class, false, NULL, &stream);
    if (status == HDRT_OK) {
        pthread_mutex_lock(&queue->lock);
        bool first = !queue->stream;
        if (first) {
            queue->stream = stream;
        }
        pthread_mutex_unlock(&queue->lock);
        if (!first) {
            hdrt__stream_drop(stream);
        }
    }
    hdrt__device_leave(queue->device, &scope);
    return status;
}

/* From here on the caller may enqueue there: not if the queue is being recorded and was not his before. */
static hdrt_status give_stream(hdrt_queue *queue, bool *out_recorded)
{
    pthread_mutex_lock(&queue->lock);
    *out_recorded = hdrt__is_recorded(queue);
    bool given = !*out_recorded || atomic_load(&queue->foreign_work);
    if (given) {
        atomic_store(&queue->foreign_work, true);
    }
    pthread_mutex_unlock(&queue->lock);
    return given ? HDRT_OK
                 : hdrt__record_refuse("hdrt_queue_stream",
                                       "work of the caller's on a stream that he had not before it began");
}

/* Whether the queue waits for something that its stream does not wait for yet. */
static bool waits_for_others(hdrt_queue *queue)
{
    bool waits = false;
    hdrt__points_lock(queue);
    for (uint8_t i = 0; i < queue->point_count; i++) {
        const hdrt__point *point = &hdrt__points(queue)[i];
        waits |= point->stream != queue->stream && !hdrt__point_complete(point);
    }
    hdrt__points_unlock(queue);
    return waits;
}

/* What was enqueued before comes before the caller's own work; waits too, also those from when he had no stream. */
static hdrt_status bring_before(hdrt_queue *queue)
{
    hdrt_status status = hdrt__wait_committed(queue, hdrt__queue_position(queue), "hdrt_queue_stream");
    if (status == HDRT_OK && waits_for_others(queue)) {
        status = hdrt__enqueue_foreign(queue, "hdrt_queue_stream");
        if (hdrt__is_recorded(queue)) {
            return HDRT_OK; /* whoever began that meanwhile did the same before */
        }
        if (status == HDRT_OK) {
            status = hdrt__wait_committed(queue, hdrt__queue_position(queue), "hdrt_queue_stream");
        }
    }
    return status;
}

hdrt_status hdrt_queue_stream(hdrt_queue *queue, struct CUstream_st **out_stream)
{
    if (!out_stream) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_queue_stream: out_stream is NULL");
    }
    *out_stream = NULL;
    hdrt_status status = hdrt__queue_begin(queue, "hdrt_queue_stream");
    if (status != HDRT_OK) {
        return status;
    }
    if (!queue->entry.exclusive && !queue->adopted) {
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                          "hdrt_queue_stream: queue '%s' is not exclusive, its stream may change and be shared: create "
                          "it with hdrt_queue_options.exclusive",
                          HDRT__QUEUE_NAME(queue));
    }
    bool recorded;
    status = queue->stream ? HDRT_OK : make_stream(queue);
    if (status == HDRT_OK) {
        status = give_stream(queue, &recorded);
    }
    if (status != HDRT_OK) {
        return status;
    }
    if (recorded) { /* nothing is before that would have to be handed over */
        *out_stream = queue->stream->handle;
        return HDRT_OK;
    }
    hdrt__order_foreign(queue->device->runtime->order, hdrt__timeline_event(queue->entry.timeline, 0),
                        HDRT__QUEUE_NAME(queue));
    status = bring_before(queue);
    *out_stream = status == HDRT_OK ? queue->stream->handle : NULL;
    return status;
}

/* Inside the device's scope. */
static hdrt_status check_stream(hdrt_device *device, hdcu_stream stream)
{
    unsigned capturing = HDCU_STREAM_CAPTURE_STATUS_NONE;
    hdcu_context context = NULL;
    hdrt__call call = HDRT__CALL(device->driver, cuStreamIsCapturing, stream, &capturing);
    hdrt_status status = hdrt__device_check(device, call, "hdrt_queue_adopt: the stream");
    if (status != HDRT_OK) {
        return status;
    }
    if (capturing != HDCU_STREAM_CAPTURE_STATUS_NONE) {
        return hdrt__fail(HDRT_ERROR_CAPTURING,
                          "hdrt_queue_adopt: the stream is being captured: end the capture first");
    }
    call = HDRT__CALL(device->driver, cuStreamGetCtx, stream, &context);
    status = hdrt__device_check(device, call, "hdrt_queue_adopt: the stream's context");
    if (status == HDRT_OK && context != device->context) {
        status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                            "hdrt_queue_adopt: the stream is of another context than the device's: open the device "
                            "with HDRT_CONTEXT_ADOPTED and that context");
    }
    return status;
}

hdrt_status hdrt_queue_adopt(hdrt_device *device, struct CUstream_st *stream, const hdrt_queue_options *options,
                             hdrt_queue **out_queue)
{
    hdrt_queue_options known;
    hdrt__scope scope;
    if (!out_queue) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_queue_adopt: out_queue is NULL");
    }
    *out_queue = NULL;
    hdrt_status status = hdrt__device_begin(device, "hdrt_queue_adopt");
    if (status == HDRT_OK) {
        status = hdrt__options_read("hdrt_queue_options", options, &known, sizeof known,
                                    offsetof(hdrt_queue_options, reserved));
    }
    if (status == HDRT_OK && !stream) {
        status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                            "hdrt_queue_adopt: the stream is NULL, the legacy default stream, which orders itself with "
                            "others: create a stream");
    }
    if (status == HDRT_OK) {
        status = hdrt__device_enter(device, &scope);
    }
    if (status != HDRT_OK) {
        return status;
    }
    status = check_stream(device, stream);
    hdrt__device_leave(device, &scope);
    return status == HDRT_OK ? hdrt__queue_make(device, &known, stream, true, out_queue) : status;
}
