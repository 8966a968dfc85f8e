/* SPDX-License-Identifier: MIT */
#include "queue/follow.h"

#include "base/status.h"
#include "queue/dispatcher.h"
#include "queue/park.h"
#include "queue/pending.h"

/* Kernels that take no longer go one after the other where many queues have one. */
#define SHORT_US 20u

/* ---- points ------------------------------------------------------------------------------------------------------ */

bool hdrt__follow_point(hdrt_queue *queue, hdrt__point point)
{
    bool taken = true;
    point.since = atomic_load_explicit(&queue->ring.consumed, memory_order_relaxed) + 1;
    if (hdrt__point_complete(&point) && queue->scheduler->elision != HDRT__ELISION_NONE) {
        return true;
    }
    hdrt__points_lock(queue);
    uint8_t i = 0;
    while (i < queue->point_count && queue->points[i].stream != point.stream) {
        i++;
    }
    if (i < queue->point_count) {
        if (point.sequence > queue->points[i].sequence) {
            queue->points[i].sequence = point.sequence;
        }
    } else if (queue->point_count < HDRT__POINTS) {
        hdrt__stream_hold(point.stream);
        queue->points[queue->point_count++] = point;
    } else {
        taken = false;
    }
    hdrt__points_unlock(queue);
    return taken;
}

/* What `value` of a committed producer stands for, each point with a hold. \return how many. */
static uint32_t points_of(hdrt_queue *producer, uint64_t value, hdrt__point points[HDRT__POINTS])
{
    uint32_t count = 0;
    hdrt__points_lock(producer);
    for (uint8_t i = 0; i < producer->point_count; i++) {
        if (producer->points[i].since <= value && !hdrt__point_complete(&producer->points[i])) {
            points[count] = producer->points[i];
            hdrt__stream_hold(points[count++].stream);
        }
    }
    bool own = producer->point_own && count && points[0].stream == producer->points[0].stream;
    hdrt__points_unlock(producer);
    if (own) {
        /* Its own work may have gone on since: less is enough. */
        pthread_mutex_lock(&points[0].stream->commit);
        uint64_t sequence = hdrt__stream_sequence_of(points[0].stream, producer, value);
        pthread_mutex_unlock(&points[0].stream->commit);
        if (sequence < points[0].sequence) {
            points[0].sequence = sequence;
        }
    }
    return count;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static hdrt__waited follow_queue(hdrt_queue *queue, hdrt_queue *producer, uint64_t value, hdrt__rest *rest)
{
    hdrt__point points[HDRT__POINTS];
    if (producer == queue) {
        return HDRT__WAITED_DONE; /* its own order does it */
    }
    uint32_t count = points_of(producer, value, points);
    for (uint32_t i = 0; i < count; i++) {
        if (hdrt__follow_point(queue, points[i])) {
            hdrt__stream_drop(points[i].stream);
        } else {
            rest->points[rest->count++] = points[i];
        }
    }
    return rest->count ? HDRT__WAITED_FULL : HDRT__WAITED_DONE;
}

/* The event was neither complete nor failed a moment ago, and its timeline is pinned. *out_again: look again. */
static hdrt__waited follow_pending(hdrt_queue *queue, hdrt__timeline *timeline, uint64_t value, hdrt__rest *rest,
                                   bool *out_again)
{
    hdrt_queue *producer = hdrt__timeline_owner(timeline, &hdrt__queue_source);
    hdrt__waited waited = HDRT__WAITED_DONE;
    *out_again = false;
    if (producer && value <= atomic_load(&timeline->committed)) {
        waited = follow_queue(queue, producer, value, rest);
    } else if (producer == queue) {
        hdrt__fail(HDRT_ERROR_CYCLE, "queue '%s' would wait for its own position %llu, which comes later",
                   HDRT__QUEUE_NAME(queue), (unsigned long long)value);
        waited = HDRT__WAITED_FAILED;
    } else {
        switch (hdrt__park(queue, timeline, true, producer, value)) {
        case HDRT__PARKED_OK:
            return HDRT__WAITED_PARKED; /* with the hold of the producer */
        case HDRT__PARKED_CYCLE:
            waited = HDRT__WAITED_FAILED;
            break;
        case HDRT__PARKED_NOT:
            *out_again = true;
            break;
        }
    }
    if (producer) {
        hdrt__queue_drop(producer);
    }
    return waited;
}

/* The usual case: nothing of the producer ever failed. Without a lock if it has committed it, or it is even complete. */
static bool follow_quickly(hdrt_queue *queue, hdrt_event event, hdrt_queue *producer, hdrt__rest *rest,
                           hdrt__waited *out_waited)
{
    hdrt__timeline *timeline = producer->entry.timeline;
    if (atomic_load(&timeline->failures) || producer == queue) {
        return false;
    }
    if (event.value > atomic_load(&timeline->committed)) {
        hdrt__queue_hold(producer);
        hdrt__parked parked = hdrt__park(queue, timeline, false, producer, event.value);
        if (parked != HDRT__PARKED_OK) {
            hdrt__queue_drop(producer); /* not the last: the operation has one */
        }
        *out_waited = parked == HDRT__PARKED_OK ? HDRT__WAITED_PARKED : HDRT__WAITED_FAILED;
        return parked != HDRT__PARKED_NOT;
    }
    *out_waited = event.value <= atomic_load(&timeline->completed) ? HDRT__WAITED_DONE
                                                                   : follow_queue(queue, producer, event.value, rest);
    return true;
}

hdrt__waited hdrt__follow_event(hdrt_queue *queue, hdrt_event event, hdrt_queue *producer, hdrt__rest *rest)
{
    hdrt__waited quickly;
    rest->count = 0;
    if (producer && follow_quickly(queue, event, producer, rest, &quickly)) {
        return quickly;
    }
    hdrt_runtime *runtime = queue->device->runtime;
    hdrt__failure *failure = NULL;
    for (bool again = true; again;) {
        hdrt_status status = hdrt__event_look(runtime, event, false, &failure);
        if (status == HDRT_OK) {
            return HDRT__WAITED_DONE;
        }
        if (status != HDRT_NOT_READY) {
            hdrt__fail(HDRT_ERROR_EVENT_FAILED, "it waits for an event that failed: %s",
                       status == HDRT_ERROR_INVALID_ARGUMENT ? "no timeline of this runtime"
                                                             : hdrt__failure_text(failure));
            hdrt__failure_drop(failure);
            return HDRT__WAITED_FAILED;
        }
        hdrt__timeline *timeline = hdrt__timeline_pin(runtime, event);
        if (!timeline) {
            return HDRT__WAITED_DONE; /* its generation is over: complete */
        }
        hdrt__waited waited = follow_pending(queue, timeline, event.value, rest, &again);
        if (waited == HDRT__WAITED_PARKED) {
            return waited; /* whoever wakes it unpins */
        }
        hdrt__timeline_unpin(timeline);
        if (!again) {
            return waited;
        }
    }
    return HDRT__WAITED_DONE;
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

/* Whether the queue may go on where its producer ended: nothing came after that there. */
static bool can_join(const hdrt_queue *queue, const hdrt__point *point)
{
    const hdrt__stream *stream = point->stream;
    return stream->shared && stream->device == queue->device && stream->class == queue->class &&
           point->sequence == atomic_load_explicit(&stream->sequence, memory_order_relaxed);
}

/* Whether the queue's next command is a kernel that is over before it is worth a stream of its own. */
static bool is_short(hdrt_queue *queue)
{
    const hdrt__op *op = hdrt__ring_ahead(&queue->ring, 0);
    if (!op || op->kind != HDRT__OP_LAUNCH || op->cooperative) {
        return false;
    }
    uint32_t expected = atomic_load_explicit(&op->launch.kernel->expected_us, memory_order_relaxed);
    return expected && expected <= SHORT_US;
}

hdrt_status hdrt__follow_choose(hdrt_queue *queue, hdrt__stream **out_stream)
{
    hdrt_status status = HDRT_OK;
    if (queue->entry.exclusive || queue->adopted) {
        pthread_mutex_lock(&queue->lock);
        *out_stream = queue->stream;
        pthread_mutex_unlock(&queue->lock);
        if (!*out_stream) {
            hdrt__stream *stream;
            status = hdrt__stream_create(queue->scheduler, queue->class, false, NULL, &stream);
            if (status == HDRT_OK) {
                pthread_mutex_lock(&queue->lock);
                bool first = !queue->stream;
                queue->stream = first ? stream : queue->stream;
                pthread_mutex_unlock(&queue->lock);
                hdrt__stream_drop(first ? NULL : stream);
            }
        }
        *out_stream = queue->stream;
        return status;
    }
    hdrt__queue_settle(queue);
    const hdrt__point *first = queue->points;
    bool left = queue->point_own && first->sequence != atomic_load(&first->stream->sequence);
    if (left && (*out_stream = hdrt__scheduler_idle(queue->scheduler, queue->class))) {
        return HDRT_OK; /* others went on behind it: their work need not be waited for */
    }
    if (queue->point_count && queue->point_own && first->stream->shared) {
        *out_stream = first->stream;
        return HDRT_OK;
    }
    if (queue->point_count == 1 && can_join(queue, first)) {
        *out_stream = first->stream;
        return HDRT_OK;
    }
    if (!queue->point_count && is_short(queue) && (*out_stream = hdrt__scheduler_pending(queue->scheduler, queue->class))) {
        return HDRT_OK;
    }
    return hdrt__scheduler_stream(queue->scheduler, queue->class, out_stream);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* Under the stream's commit lock: whether the rules leave out the wait for a point. */
static bool left_out(const hdrt__stream *stream, const hdrt__point *point)
{
    hdrt__elision elision = stream->scheduler->elision;
    if (elision == HDRT__ELISION_NONE) {
        return false;
    }
    return point->stream == stream || hdrt__point_complete(point) ||
           (elision >= HDRT__ELISION_PAIRWISE && hdrt__stream_covers(stream, point));
}

/* A mark for a point, with a hold, and the clock that goes with it, of *out_count; NULL: complete. Under no lock. */
static hdrt_status take_mark(const hdrt__point *point, hdrt__mark **out_mark, uint64_t *out_sequence,
                             uint64_t clock[HDRT__CLOCKS], uint32_t *out_count)
{
    hdrt__stream *producer = point->stream;
    hdrt__stream_mark *mark;
    hdrt__scope scope;
    *out_mark = NULL;
    hdrt_status status = hdrt__device_enter(producer->device, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    pthread_mutex_lock(&producer->commit);
    hdrt__call call = hdrt__stream_mark_for(producer, point->sequence, &mark);
    status = hdrt__device_check(producer->device, call, "marking stream %u", producer->entry.index);
    if (status == HDRT_OK && mark) {
        *out_mark = mark->mark;
        *out_sequence = mark->sequence;
        *out_count = mark->clock ? hdrt__scheduler_clocks(producer->scheduler) : 0;
        for (uint32_t i = 0; i < *out_count; i++) {
            clock[i] = mark->clock[i];
        }
        hdrt__mark_hold(mark->mark);
    }
    pthread_mutex_unlock(&producer->commit);
    hdrt__device_leave(producer->device, &scope);
    return status;
}

/* Let the stream wait for a point. Takes the stream's lock for the call. */
static hdrt_status wait_for(hdrt_queue *queue, hdrt__stream *stream, const hdrt__point *point)
{
    uint64_t clock[HDRT__CLOCKS], sequence;
    uint32_t count = 0;
    hdrt__mark *mark;
    hdrt_status status = take_mark(point, &mark, &sequence, clock, &count);
    if (status != HDRT_OK || !mark) {
        return status;
    }
    pthread_mutex_lock(&stream->commit);
    hdrt__pending_flush(stream); /* they do not wait */
    hdrt__call call =
        HDRT__CALL(queue->device->driver, cuStreamWaitEvent, stream->handle, mark->event, HDCU_EVENT_WAIT_DEFAULT);
    if (!call.result) {
        hdrt__stream_advance(stream, 1);
        hdrt__stream_join(stream, point->stream, sequence, clock, count);
    }
    pthread_mutex_unlock(&stream->commit);
    status = hdrt__device_check(queue->device, call, "waiting for stream %u", point->stream->entry.index);
    hdrt__mark_drop(point->stream->device, mark);
    return status;
}

hdrt_status hdrt__follow_points(hdrt_queue *queue, hdrt__stream *stream)
{
    hdrt_status status = HDRT_OK;
    bool needed[HDRT__POINTS], any = false;
    /* The points are the committer's: only it changes them. */
    pthread_mutex_lock(&stream->commit);
    for (uint8_t i = 0; i < queue->point_count; i++) {
        needed[i] = !left_out(stream, &queue->points[i]);
        any |= needed[i];
    }
    hdrt__stream_due(stream, queue);
    if (!any) {
        return HDRT_OK;
    }
    pthread_mutex_unlock(&stream->commit);
    for (uint8_t i = 0; i < queue->point_count && status == HDRT_OK; i++) {
        if (needed[i]) {
            status = wait_for(queue, stream, &queue->points[i]);
        }
    }
    if (status == HDRT_OK) {
        pthread_mutex_lock(&stream->commit);
    }
    return status;
}
