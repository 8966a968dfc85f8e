/* SPDX-License-Identifier: MIT */
#include "queue/commit.h"

#include <stdlib.h>

#include "base/status.h"
#include "queue/dispatcher.h"
#include "queue/follow.h"
#include "queue/park.h"
#include "queue/pending.h"
#include "queue/run.h"

/* Operations that are handed over one by one under one lock of the stream: others may want it meanwhile. */
#define GROUP_LIMIT 24u
/* How often an idle stream is looked for, when others who look for one are quicker. */
#define CHOICES 4
/* Launches of one queue that need not wait for those of others. */
#define LONG_RUN 32u

/* ---- groups ------------------------------------------------------------------------------------------------------ */

/* The same, but launches may be pending in the stream. */
static hdrt_status begin_behind(hdrt_queue *queue, hdrt__stream **out_stream)
{
    hdrt_status status = HDRT_WOULD_BLOCK;
    for (int tries = 0; status == HDRT_WOULD_BLOCK; tries++) {
        status = hdrt__follow_choose(queue, out_stream);
        if (status == HDRT_OK) {
            bool idle = tries < CHOICES && hdrt__stream_outstanding(*out_stream) == 0;
            status = hdrt__follow_points(queue, *out_stream, idle);
        }
    }
    if (status == HDRT_OK && !hdrt__stream_reserve_flights(*out_stream, 1)) {
        pthread_mutex_unlock(&(*out_stream)->commit);
        status = hdrt__fail_memory(sizeof(hdrt__flight), "what is in flight in a stream");
    }
    return status;
}

hdrt_status hdrt__group_begin(hdrt_queue *queue, hdrt__stream **out_stream)
{
    hdrt_status status = begin_behind(queue, out_stream);
    if (status == HDRT_OK) {
        hdrt__pending_flush(*out_stream);
        if (atomic_load(&queue->state) == HDRT__QUEUE_FAILED) { /* by a launch that was pending */
            pthread_mutex_unlock(&(*out_stream)->commit);
            status = HDRT_ERROR_QUEUE_FAILED;
        }
    }
    return status;
}

void hdrt__group_end(hdrt_queue *queue, hdrt__stream *stream, uint64_t position)
{
    hdrt__point old[HDRT__POINTS];
    if (atomic_load_explicit(&queue->foreign_work, memory_order_relaxed)) {
        hdrt__stream_mark_end(stream); /* later the caller may be capturing it, and a mark would get into that */
    } else {
        hdrt__stream_mark_by_count(stream);
    }
    hdrt__stream_fly(stream, queue, position);
    uint64_t sequence = atomic_load_explicit(&stream->sequence, memory_order_relaxed);
    bool complete = hdrt__stream_outstanding(stream) == 0;
    hdrt__stream_hold(stream);
    hdrt__points_lock(queue);
    uint8_t count = queue->point_count;
    for (uint8_t i = 0; i < count; i++) {
        old[i] = hdrt__points(queue)[i];
    }
    hdrt__point *unused = hdrt__points_shrink(queue, 0);
    queue->points_inline[0] = (hdrt__point){stream, sequence, 0};
    queue->point_count = 1;
    queue->point_own = true;
    hdrt__points_unlock(queue);
    pthread_mutex_unlock(&stream->commit);
    free(unused);
    hdrt__timeline_commit(queue->entry.timeline, position);
    for (uint8_t i = 0; i < count; i++) {
        hdrt__stream_drop(old[i].stream);
    }
    if (complete) { /* it had no commands */
        hdrt__stream_poll(stream, sequence);
    }
}

/* The operation at the head took its position, and needs no command. */
static void commit_position(hdrt_queue *queue, uint64_t position)
{
    bool settled = hdrt__queue_settle(queue);
    hdrt__timeline_commit(queue->entry.timeline, position);
    if (settled) {
        hdrt__queue_landed(queue, position);
    }
}

/* All points become one, in a stream that waits for them, and a flight. */
static hdrt_status gather_points(hdrt_queue *queue, uint64_t position)
{
    hdrt__stream *stream;
    if (hdrt__queue_settle(queue)) {
        return HDRT_OK;
    }
    hdrt_status status = hdrt__group_begin(queue, &stream);
    if (status == HDRT_OK) {
        hdrt__group_end(queue, stream, position);
    }
    return status;
}

/* ---- operations without commands --------------------------------------------------------------------------------- */

static uint64_t head_position(const hdrt_queue *queue)
{
    return atomic_load_explicit(&queue->ring.consumed, memory_order_relaxed) + 1;
}

static void consume(hdrt_queue *queue, uint32_t count)
{
    hdrt__ring_consume(&queue->ring, count, &queue->scheduler->segments, &queue->lock);
}

/* Points for which there was no place: what is there becomes one before each. */
static hdrt_status take_rest(hdrt_queue *queue, hdrt__rest *rest, uint64_t position)
{
    hdrt_status status = HDRT_OK;
    for (uint32_t i = 0; i < rest->count; i++) {
        if (status == HDRT_OK) {
            status = gather_points(queue, position);
        }
        if (status == HDRT_OK) {
            hdrt__follow_point(queue, rest->points[i]);
        }
        hdrt__stream_drop(rest->points[i].stream);
    }
    return status;
}

/* \return PARKED, LATER, or DONE: go on with what is there then. */
static hdrt__waited drain_wait(hdrt_queue *queue, hdrt__op *op)
{
    uint64_t position = head_position(queue);
    hdrt__waited waited = HDRT__WAITED_DONE;
    hdrt__rest rest = {.count = 0};
    bool foreign = atomic_load_explicit(&queue->foreign_work, memory_order_relaxed);
    if (foreign && hdrt__stream_outstanding(queue->stream) >= HDRT__COMMAND_LIMIT) {
        hdrt__stream_hold(queue->stream);
        queue->stalled_by = queue->stream;
        return HDRT__WAITED_STALLED;
    }
    if (op->kind == HDRT__OP_WAIT) {
        waited = hdrt__follow_event(queue, op->wait.event, op->wait.producer, &rest);
    } else if (!hdrt__follow_point(queue, op->point)) {
        hdrt__stream_hold(op->point.stream);
        rest = (hdrt__rest){.points = {op->point}, .count = 1};
        waited = HDRT__WAITED_FULL;
    }
    switch (waited) {
    case HDRT__WAITED_PARKED:
    case HDRT__WAITED_LATER:
    case HDRT__WAITED_STALLED:
        return waited;
    case HDRT__WAITED_FULL:
        if (take_rest(queue, &rest, position - 1) != HDRT_OK) {
            if (atomic_load(&queue->state) == HDRT__QUEUE_OPEN) {
                hdrt__queue_fail(queue, position);
            }
            return HDRT__WAITED_DONE;
        }
        break;
    case HDRT__WAITED_FAILED:
        hdrt__queue_fail(queue, position);
        return HDRT__WAITED_DONE;
    case HDRT__WAITED_DONE:
        break;
    }
    /* The caller's own work on the stream comes after the wait too. */
    if (foreign && gather_points(queue, position) != HDRT_OK) {
        if (atomic_load(&queue->state) == HDRT__QUEUE_OPEN) {
            hdrt__queue_fail(queue, position);
        }
        return HDRT__WAITED_DONE;
    }
    hdrt__op_release(queue, op, false);
    commit_position(queue, position);
    consume(queue, 1);
    return HDRT__WAITED_DONE;
}

/* A host call of a queue that stands still meanwhile. */
typedef struct queue_call {
    hdrt__host_job job; /* first */
    hdrt_queue *queue;  /* held */
} queue_call;

/* On a callback thread: the function is over. */
static void host_over(hdrt__host_job *job, bool called)
{
    hdrt_queue *queue = ((queue_call *)job)->queue;
    (void)called; /* on a lost device everything is dropped */
    free(job);
    queue->host_called = true;
    atomic_store(&queue->committer, HDRT__COMMITTER_NONE);
    hdrt__dispatcher_list(queue);
    hdrt__queue_drop(queue);
}

/* All before it is complete: let the function be called. On HDRT_OK the queue belongs to who calls. */
static hdrt_status call_host(hdrt_queue *queue, const hdrt__op *op, uint64_t position)
{
    hdrt__callbacks *callbacks = hdrt__device_callbacks(queue->device);
    queue_call *call = callbacks ? malloc(sizeof *call) : NULL;
    if (!call) {
        hdrt__fail_memory(sizeof *call, "a host call");
        return hdrt__queue_fail(queue, position);
    }
    call->queue = queue;
    call->job = (hdrt__host_job){.function = op->host.function,
                                 .argument = op->host.argument,
                                 .event = hdrt__timeline_event(queue->entry.timeline, position),
                                 .device = queue->device,
                                 .over = host_over};
    hdrt__queue_hold(queue);
    atomic_store(&queue->committer, HDRT__COMMITTER_PARKED);
    hdrt_status status = hdrt__callbacks_submit(callbacks, &call->job);
    if (status != HDRT_OK) {
        atomic_store(&queue->committer, HDRT__COMMITTER_BUSY);
        free(call);
        status = hdrt__queue_fail(queue, position);
        hdrt__queue_drop(queue); /* not the last: the committer has one */
    }
    return status;
}

static hdrt__drained drain_host(hdrt_queue *queue, hdrt__op *op)
{
    uint64_t position = head_position(queue);
    if (queue->host_called) {
        queue->host_called = false;
        consume(queue, 1);
        hdrt__timeline_commit(queue->entry.timeline, position);
        hdrt__queue_landed(queue, position);
        return HDRT__DRAINED_QUANTUM;
    }
    if (!hdrt__queue_settle(queue)) {
        queue->stalled_by = NULL;
        return HDRT__DRAINED_STALLED;
    }
    if (position > 1) {
        hdrt__queue_landed(queue, position - 1);
    }
    return call_host(queue, op, position) == HDRT_OK ? HDRT__DRAINED_PARKED : HDRT__DRAINED_QUANTUM;
}

/* ---- operations with commands ------------------------------------------------------------------------------------ */

static bool has_commands(const hdrt_queue *queue, const hdrt__op *op)
{
    switch (op->kind) {
    case HDRT__OP_HOST:
        return atomic_load_explicit(&queue->foreign_work, memory_order_relaxed);
    case HDRT__OP_NOTHING:
        return op->detail;
    default:
        return op->kind < HDRT__OP_WAIT;
    }
}

/* How much of a group was handed over. */
typedef struct group_result {
    uint32_t count;   /* operations */
    hdrt_status status; /* of the one after them */
} group_result;

/* Whether the queue has a run of launches there that need not wait for others'. */
static bool is_long_run(hdrt_queue *queue, uint32_t ahead)
{
    const hdrt__op *next = hdrt__ring_ahead(&queue->ring, ahead + 1);
    return next && next->kind == HDRT__OP_LAUNCH && hdrt__ring_ahead(&queue->ring, ahead + LONG_RUN - 1);
}

/* Under the stream's commit lock: let the launch at the place pend. \return whether it does. */
static bool pend(hdrt_queue *queue, hdrt__stream *stream, uint32_t ahead, hdrt__op *op)
{
    if (!hdrt__pending_may(stream, op) || (!stream->is_pending && is_long_run(queue, ahead))) {
        return false;
    }
    if (hdrt__pending_full(stream)) {
        hdrt__pending_flush(stream);
    }
    return atomic_load(&queue->state) == HDRT__QUEUE_OPEN &&
           hdrt__pending_add(stream, queue, head_position(queue) + ahead, op);
}

/* Under the stream's commit lock: hand over from the head on, as far as it goes. */
static group_result hand_over(hdrt_queue *queue, hdrt__stream *stream, uint32_t quantum, bool may_pend)
{
    group_result group = {0, HDRT_OK};
    uint8_t ends = 0;
    for (uint32_t single = 0; single < GROUP_LIMIT && group.count < quantum && !ends;) {
        hdrt__op *op = hdrt__ring_ahead(&queue->ring, group.count);
        if (!op || !has_commands(queue, op) || hdrt__stream_outstanding(stream) >= HDRT__COMMAND_LIMIT) {
            break;
        }
        uint64_t position = head_position(queue) + group.count;
        if (may_pend && pend(queue, stream, group.count, op)) {
            ends = atomic_load_explicit(&op->flagged, memory_order_relaxed);
            group.count++;
            continue;
        }
        hdrt__pending_flush(stream);
        if (atomic_load(&queue->state) == HDRT__QUEUE_FAILED) {
            break;
        }
        if (op->kind == HDRT__OP_LAUNCH && !op->cooperative) {
            group.count += hdrt__run_hand_over(queue, stream, group.count, &ends, &single, &group.status);
        } else {
            uint32_t commands = 0;
            group.status = hdrt__op_hand_over(queue, stream, op, position, &commands);
            hdrt__stream_advance(stream, commands);
            ends = atomic_load_explicit(&op->flagged, memory_order_relaxed);
            group.count += group.status == HDRT_OK;
            single++;
        }
        if (group.status != HDRT_OK) {
            break;
        }
        if (queue->scheduler->eager) {
            hdrt__stream_mark_end(stream);
            break;
        }
    }
    stream->due = ends;
    if (stream->is_pending) {
        hdrt__scheduler_pend(queue->scheduler, stream);
    }
    return group;
}

static hdrt__drained drain_commands(hdrt_queue *queue, uint32_t quantum, bool may_pend)
{
    hdrt__stream *stream;
    uint64_t first = head_position(queue);
    hdrt_status status = begin_behind(queue, &stream);
    if (status != HDRT_OK) {
        if (atomic_load(&queue->state) == HDRT__QUEUE_OPEN) {
            hdrt__queue_fail(queue, first);
        }
        return HDRT__DRAINED_QUANTUM;
    }
    if (hdrt__stream_outstanding(stream) >= HDRT__COMMAND_LIMIT) {
        pthread_mutex_unlock(&stream->commit);
        hdrt__stream_hold(stream);
        queue->stalled_by = stream;
        return HDRT__DRAINED_STALLED;
    }
    uint64_t before = atomic_load_explicit(&stream->sequence, memory_order_relaxed);
    group_result group = hand_over(queue, stream, quantum, may_pend);
    if (group.count || atomic_load_explicit(&stream->sequence, memory_order_relaxed) != before) {
        hdrt__group_end(queue, stream, first + group.count - 1);
    } else {
        pthread_mutex_unlock(&stream->commit);
    }
    for (uint32_t i = 0; i < group.count; i++) {
        hdrt__op_release(queue, hdrt__ring_ahead(&queue->ring, i), false);
    }
    if (group.count) {
        consume(queue, group.count);
    }
    if (group.status != HDRT_OK && atomic_load(&queue->state) == HDRT__QUEUE_OPEN) {
        hdrt__queue_fail(queue, first + group.count);
    }
    return HDRT__DRAINED_QUANTUM;
}

/* ---- draining ---------------------------------------------------------------------------------------------------- */

/* What was enqueued on a queue that has failed, or on a lost device, is dropped. */
static bool is_dropped(hdrt_queue *queue)
{
    return hdrt__device_is_lost(queue->device) || head_position(queue) <= queue->dropped;
}

hdrt__drained hdrt__queue_drain(hdrt_queue *queue, uint32_t quantum, bool may_pend)
{
    uint64_t end = head_position(queue) + quantum;
    hdrt__op *op;
    while ((op = hdrt__ring_ahead(&queue->ring, 0))) {
        uint64_t position = head_position(queue);
        if (position >= end) {
            return HDRT__DRAINED_QUANTUM;
        }
        if (is_dropped(queue)) {
            queue->host_called = false;
            hdrt__op_release(queue, op, true);
            consume(queue, 1);
        } else if (has_commands(queue, op)) {
            hdrt__drained drained = drain_commands(queue, (uint32_t)(end - position), may_pend);
            if (drained != HDRT__DRAINED_QUANTUM) {
                return drained;
            }
        } else if (op->kind == HDRT__OP_HOST) {
            hdrt__drained drained = drain_host(queue, op);
            if (drained != HDRT__DRAINED_QUANTUM) {
                return drained;
            }
        } else if (op->kind == HDRT__OP_NOTHING) {
            commit_position(queue, position);
            consume(queue, 1);
        } else {
            hdrt__waited waited = drain_wait(queue, op);
            if (waited == HDRT__WAITED_STALLED) {
                return HDRT__DRAINED_STALLED;
            }
            if (waited != HDRT__WAITED_DONE) {
                return waited == HDRT__WAITED_PARKED ? HDRT__DRAINED_PARKED : HDRT__DRAINED_QUANTUM;
            }
        }
    }
    return HDRT__DRAINED_EMPTY;
}

void hdrt__committer_leave(hdrt_queue *queue)
{
    atomic_store(&queue->committer, HDRT__COMMITTER_NONE);
    if (atomic_load(&queue->ring.consumed) != atomic_load(&queue->ring.published)) {
        hdrt__dispatcher_list(queue);
    }
}

void hdrt__queue_commit(hdrt_queue *queue)
{
    hdrt__scope scope;
    if (hdrt__device_enter(queue->device, &scope) != HDRT_OK) {
        hdrt__committer_leave(queue); /* the dispatcher drops what is there */
        return;
    }
    hdrt__park_tidy(queue);
    hdrt__drained drained = hdrt__queue_drain(queue, HDRT__QUANTUM, false);
    if (drained == HDRT__DRAINED_STALLED) {
        hdrt__stream *stream = queue->stalled_by;
        queue->stalled_by = NULL;
        hdrt__stream_drop(stream);
    }
    if (drained != HDRT__DRAINED_PARKED) {
        hdrt__committer_leave(queue);
    }
    hdrt__device_leave(queue->device, &scope);
}
