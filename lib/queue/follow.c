/* SPDX-License-Identifier: MIT */
#include "queue/follow.h"

#include "base/status.h"
#include "queue/dispatcher.h"
#include "queue/park.h"
#include "queue/pending.h"

#include <stdlib.h>
#include <string.h>

/* Kernels that take no longer go one after the other where many queues have one. */
#define SHORT_US 20u

/* ---- points ------------------------------------------------------------------------------------------------------ */

/* The committer, under no lock: memory for more points than have a place, if one more is; *out_room: whether it has. */
static hdrt__point *make_place(const hdrt_queue *queue, bool *out_room)
{
    *out_room = queue->point_count < HDRT__POINTS;
    if (queue->point_count != HDRT__POINTS_INLINE) {
        return NULL;
    }
    hdrt__point *many = malloc(HDRT__POINTS * sizeof *many);
    if (many) {
        memcpy(many, queue->points_inline, sizeof queue->points_inline);
    }
    *out_room = many != NULL;
    return many;
}

bool hdrt__follow_point(hdrt_queue *queue, hdrt__point point)
{
    bool room = true;
    hdrt__point *many = NULL;
    point.since = atomic_load_explicit(&queue->ring.consumed, memory_order_relaxed) + 1;
    if (hdrt__point_complete(&point) && queue->scheduler->elision != HDRT__ELISION_NONE) {
        return true;
    }
    uint8_t i = 0;
    while (i < queue->point_count && hdrt__points(queue)[i].stream != point.stream) {
        i++;
    }
    if (i == queue->point_count) {
        many = make_place(queue, &room);
    }
    hdrt__points_lock(queue);
    if (i < queue->point_count) {
        if (point.sequence > hdrt__points(queue)[i].sequence) {
            hdrt__points(queue)[i].sequence = point.sequence;
        }
    } else if (room) {
        hdrt__stream_hold(point.stream);
        if (many) {
            queue->points_many = many;
        }
        queue->point_count++;
        hdrt__points(queue)[i] = point;
    }
    hdrt__points_unlock(queue);
    return room;
}

/* What `value` of a committed producer stands for, each point with a hold. \return how many. */
static uint32_t points_of(hdrt_queue *producer, uint64_t value, hdrt__point points[HDRT__POINTS])
{
    uint32_t count = 0;
    hdrt__points_lock(producer);
    for (uint8_t i = 0; i < producer->point_count; i++) {
        if (hdrt__points(producer)[i].since <= value && !hdrt__point_complete(&hdrt__points(producer)[i])) {
            points[count] = hdrt__points(producer)[i];
            hdrt__stream_hold(points[count++].stream);
        }
    }
    bool own = producer->point_own && count && points[0].stream == hdrt__points(producer)[0].stream;
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
        uint64_t position = atomic_load_explicit(&queue->ring.consumed, memory_order_relaxed) + 1;
        if (queue->later_at != position && hdrt__dispatcher_serves_first(producer, queue)) {
            queue->later_at = position; /* once: queues that wait for each other are to be found parked */
            *out_waited = HDRT__WAITED_LATER;
            return true;
        }
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

/* Of several points a stream that has come after all of them, and to whose end the queue may go without a wait. */
static hdrt__stream *last_of_all(const hdrt_queue *queue)
{
    for (uint8_t i = 0; i < queue->point_count; i++) {
        const hdrt__point *last = &hdrt__points(queue)[i];
        if (!can_join(queue, last)) {
            continue;
        }
        bool all = true;
        pthread_mutex_lock(&last->stream->commit);
        for (uint8_t k = 0; k < queue->point_count && all; k++) {
            all = k == i || hdrt__stream_covers(last->stream, &hdrt__points(queue)[k]);
        }
        pthread_mutex_unlock(&last->stream->commit);
        if (all) {
            return last->stream;
        }
    }
    return NULL;
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
    if (queue->point_count > 1 && (*out_stream = last_of_all(queue))) {
        return HDRT_OK;
    }
    const hdrt__point *first = hdrt__points(queue);
    if (queue->point_own && atomic_load_explicit(&first->stream->wide, memory_order_relaxed)) {
        return hdrt__scheduler_stream(queue->scheduler, queue->class, out_stream); /* the next piece is to come there */
    }
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

/* A mark for a point, with a hold, and what the point's stream came after there, of `count` streams. */
typedef struct taken_mark {
    hdrt__mark *mark; /* NULL: nothing to wait for */
    uint64_t sequence;
    uint32_t count;
    uint64_t clock[HDRT__CLOCKS];
} taken_mark;

/* Under no lock. */
static hdrt_status take_mark(const hdrt__point *point, taken_mark *taken)
{
    hdrt__stream *producer = point->stream;
    hdrt__stream_mark *mark;
    hdrt__scope scope;
    hdrt_status status = hdrt__device_enter(producer->device, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    pthread_mutex_lock(&producer->commit);
    hdrt__call call = hdrt__stream_mark_for(producer, point->sequence, &mark);
    status = hdrt__device_check(producer->device, call, "marking stream %u", producer->entry.index);
    if (status == HDRT_OK && mark) {
        taken->mark = mark->mark;
        taken->sequence = mark->sequence;
        taken->count = mark->clock ? hdrt__scheduler_clocks(producer->scheduler) : 0;
        for (uint32_t i = 0; i < taken->count; i++) {
            taken->clock[i] = mark->clock[i];
        }
        hdrt__mark_hold(mark->mark);
    }
    pthread_mutex_unlock(&producer->commit);
    hdrt__device_leave(producer->device, &scope);
    return status;
}

/* Let the stream wait for a point. Takes the stream's lock for the call. */
static hdrt_status wait_for(hdrt_queue *queue, hdrt__stream *stream, const hdrt__point *point, const taken_mark *taken)
{
    pthread_mutex_lock(&stream->commit);
    hdrt__pending_flush(stream); /* they do not wait */
    hdrt__stream_mark_before_wait(stream);
    hdrt__call call = HDRT__CALL(queue->device->driver, cuStreamWaitEvent, stream->handle, taken->mark->event,
                                 HDCU_EVENT_WAIT_DEFAULT);
    if (!call.result) {
        hdrt__stream_advance(stream, 1);
        hdrt__stream_join(stream, point->stream, taken->sequence, taken->clock, taken->count);
    }
    pthread_mutex_unlock(&stream->commit);
    return hdrt__device_check(queue->device, call, "waiting for stream %u", point->stream->entry.index);
}

/* Whether who waits for a mark comes after another point too. */
static bool brings(const hdrt__stream *marked, const taken_mark *taken, const hdrt__point *other)
{
    uint32_t index = other->stream->entry.index;
    return marked->scheduler->elision == HDRT__ELISION_TRANSITIVE && other->stream->device == marked->device &&
           index < taken->count && other->sequence <= taken->clock[index];
}

/* Wait for those points that are needed, and that none of the others brings. */
static hdrt_status wait_for_needed(hdrt_queue *queue, hdrt__stream *stream, bool needed[HDRT__POINTS])
{
    taken_mark taken[HDRT__POINTS];
    bool bringer[HDRT__POINTS] = {false};
    hdrt_status status = HDRT_OK;
    uint8_t count = queue->point_count;
    for (uint8_t i = 0; i < count; i++) {
        taken[i].mark = NULL;
        if (needed[i] && status == HDRT_OK) {
            status = take_mark(&hdrt__points(queue)[i], &taken[i]);
        }
        needed[i] = taken[i].mark != NULL;
    }
    for (uint8_t i = 0; i < count; i++) {
        for (uint8_t k = 0; k < count && needed[i] && !bringer[i]; k++) {
            if (k != i && needed[k] && brings(hdrt__points(queue)[k].stream, &taken[k], &hdrt__points(queue)[i])) {
                needed[i] = false;
                bringer[k] = true; /* its mark may be later than its point, so what brings the point is not enough */
            }
        }
    }
    for (uint8_t i = 0; i < count; i++) {
        if (needed[i] && status == HDRT_OK) {
            status = wait_for(queue, stream, &hdrt__points(queue)[i], &taken[i]);
        }
        if (taken[i].mark) {
            hdrt__mark_drop(hdrt__points(queue)[i].stream->device, taken[i].mark);
        }
    }
    return status;
}

hdrt_status hdrt__follow_points(hdrt_queue *queue, hdrt__stream *stream, bool idle)
{
    hdrt_status status = HDRT_OK;
    bool needed[HDRT__POINTS], any = false;
    pthread_mutex_lock(&stream->commit);
    if (idle && hdrt__stream_outstanding(stream)) {
        pthread_mutex_unlock(&stream->commit);
        return HDRT_WOULD_BLOCK;
    }
    /* The points are the committer's: only it changes them. The stream of a recorded queue may be captured, where no
       wait may come, also not one for itself, which is only ever made since somebody asked for all of them. */
    for (uint8_t i = 0; i < queue->point_count; i++) {
        const hdrt__point *point = &hdrt__points(queue)[i];
        needed[i] = !left_out(stream, point) && !(point->stream == stream && atomic_load(&queue->is_recorded));
        any |= needed[i];
    }
    hdrt__stream_due(stream, queue);
    if (!any) {
        return HDRT_OK;
    }
    pthread_mutex_unlock(&stream->commit);
    status = wait_for_needed(queue, stream, needed);
    if (status == HDRT_OK) {
        pthread_mutex_lock(&stream->commit);
    }
    return status;
}
