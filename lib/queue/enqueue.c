/* SPDX-License-Identifier: MIT */
#include "queue/enqueue.h"

#include "base/number.h"
#include "base/status.h"
#include "device/callbacks.h"
#include "queue/accesses.h"
#include "queue/commit.h"
#include "queue/dispatcher.h"
#include "queue/record.h"
#include "queue/scheduler.h"
#include "queue/together.h"

#include <errno.h>
#include <time.h>

/* ---- beginning --------------------------------------------------------------------------------------------------- */

hdrt_status hdrt__check_capture(hdrt_queue *queue, const char *function)
{
    unsigned capturing = HDCU_STREAM_CAPTURE_STATUS_NONE;
    hdrt__scope scope;
    if (!atomic_load_explicit(&queue->foreign_work, memory_order_relaxed) || !queue->stream) {
        return HDRT_OK;
    }
    hdrt_status status = hdrt__device_enter(queue->device, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__call call = {HDCU_SUCCESS, "cuStreamIsCapturing"};
    pthread_mutex_lock(&queue->stream->commit); /* under which a recording begins */
    if (!hdrt__is_recorded(queue)) {
        call = HDRT__CALL(queue->device->driver, cuStreamIsCapturing, queue->stream->handle, &capturing);
    }
    pthread_mutex_unlock(&queue->stream->commit);
    status = hdrt__device_check(queue->device, call, "%s: queue '%s'", function, HDRT__QUEUE_NAME(queue));
    hdrt__device_leave(queue->device, &scope);
    if (status == HDRT_OK && capturing != HDCU_STREAM_CAPTURE_STATUS_NONE) {
        status = hdrt__fail(HDRT_ERROR_CAPTURING,
                            "%s: the stream of queue '%s' is being captured: end the capture first", function,
                            HDRT__QUEUE_NAME(queue));
    }
    return status;
}

/* OPEN, or the failure. Under the queue's lock. */
static hdrt_status check_state(const hdrt_queue *queue)
{
    if (hdrt__device_is_lost(queue->device)) {
        return hdrt__device_lost_status(queue->device);
    }
    return atomic_load_explicit(&queue->state, memory_order_relaxed) == HDRT__QUEUE_FAILED
               ? hdrt__queue_failed_status(queue)
               : HDRT_OK;
}

hdrt_status hdrt__enqueue_begin(hdrt__enqueue *enqueue, hdrt_queue *queue, const char *function)
{
    enqueue->queue = queue;
    enqueue->function = function;
    enqueue->at_once = false;
    enqueue->accesses = NULL;
    enqueue->access_count = 0;
    hdrt_status status = hdrt__queue_begin(queue, function);
    if (status == HDRT_OK && atomic_load_explicit(&queue->state, memory_order_relaxed) == HDRT__QUEUE_FAILED) {
        pthread_mutex_lock(&queue->lock);
        status = check_state(queue);
        pthread_mutex_unlock(&queue->lock);
    }
    return status == HDRT_OK ? hdrt__check_capture(queue, function) : status;
}

/* ---- waiting for a step of the queue's timeline ------------------------------------------------------------------ */

/* How often who waits for completion asks himself. */
#define ASK_EACH_NS 4000000

typedef struct step_watch {
    hdrt__timeline_watch watch; /* first */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;
} step_watch;

static void watch_over(hdrt__timeline_watch *watch)
{
    step_watch *mine = (step_watch *)watch;
    pthread_mutex_lock(&mine->lock);
    mine->over = true;
    pthread_cond_signal(&mine->changed);
    pthread_mutex_unlock(&mine->lock);
}

/* Under its lock. \return whether it was as long as it may be. */
static bool wait_a_while(step_watch *mine)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ASK_EACH_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    return pthread_cond_timedwait(&mine->changed, &mine->lock, &until) == ETIMEDOUT;
}

/* Ask whether the queue has come to the value, and if not, at least to what is enough. A failure, or HDRT_OK. */
static hdrt_status poll_for(hdrt_queue *queue, uint64_t value, uint64_t enough, bool patient)
{
    hdrt_status status = hdrt__queue_poll(queue, value, patient);
    if (status == HDRT_OK && enough < value && atomic_load(&queue->entry.timeline->completed) < enough) {
        status = hdrt__queue_poll(queue, enough, patient);
    }
    return status < 0 ? status : HDRT_OK;
}

/*
 * Sleep until the queue has come to the step, or never will. Whoever commits or finds out tells. Of completion less will
 * do when it has taken long: from `enough` on.
 */
static void sleep_until(hdrt_queue *queue, uint64_t value, uint64_t enough, hdrt__timeline_step step)
{
    hdrt__timeline *timeline = queue->entry.timeline;
    step_watch mine = {.watch = {.value = value, .step = step, .wake = watch_over}};
    pthread_mutex_init(&mine.lock, NULL);
    pthread_cond_init(&mine.changed, NULL);
    if (hdrt__timeline_watch_begin(timeline, &mine.watch)) {
        hdrt__callback_wait_begin();
        pthread_mutex_lock(&mine.lock);
        while (!mine.over) {
            if (step == HDRT__TIMELINE_COMMITTED) {
                pthread_cond_wait(&mine.changed, &mine.lock);
            } else if (wait_a_while(&mine)) {
                /* A position that only waited is in no stream: nobody else finds out that it is complete. */
                pthread_mutex_unlock(&mine.lock);
                poll_for(queue, value, enough, true);
                bool back = atomic_load(&timeline->completed) >= enough && hdrt__timeline_unwatch(timeline, &mine.watch);
                pthread_mutex_lock(&mine.lock);
                mine.over |= back;
            }
        }
        pthread_mutex_unlock(&mine.lock);
        hdrt__callback_wait_end();
    }
    pthread_cond_destroy(&mine.changed);
    pthread_mutex_destroy(&mine.lock);
}

/* ---- room -------------------------------------------------------------------------------------------------------- */

/* Under the queue's lock. What is known of the timeline is looked at only when it was not enough the last time. */
static bool is_full(hdrt_queue *queue)
{
    uint64_t position = atomic_load_explicit(&queue->ring.published, memory_order_relaxed);
    if (position < queue->room_until || queue->back_pressure == HDRT_BACK_PRESSURE_GROW) {
        return false;
    }
    uint64_t completed = atomic_load_explicit(&queue->entry.timeline->completed, memory_order_relaxed);
    queue->room_until = completed + queue->ring_limit;
    return position >= queue->room_until;
}

/* In a host function that the queue waits for. */
static bool in_own_call(const hdrt_queue *queue)
{
    return hdrt__callback_current().timeline == hdrt__timeline_event(queue->entry.timeline, 0).timeline;
}

bool hdrt__may_wait(const hdrt_queue *queue)
{
    return !in_own_call(queue) && queue->back_pressure != HDRT_BACK_PRESSURE_WOULD_BLOCK;
}

/* Under the lock: whether an operation would not be handed over at once, on a stream where the caller's own work may
 * follow it, and the caller may not wait for that. */
static bool stands(const hdrt_queue *queue)
{
    return atomic_load(&queue->foreign_work) && !hdrt__may_wait(queue) &&
           (atomic_load(&queue->entry.timeline->committed) <
                atomic_load_explicit(&queue->ring.published, memory_order_relaxed) ||
            (queue->stream && hdrt__stream_outstanding(queue->stream) >= HDRT__COMMAND_LIMIT));
}

/*
 * Without the lock: wait until an eighth of the ring is free, or say that it would block. A single place is enough where
 * no more come free: what is behind it may wait for something that the caller does later.
 */
static hdrt_status make_room(hdrt_queue *queue)
{
    uint64_t position = hdrt__queue_position(queue);
    uint64_t needed = position - queue->ring_limit + 1, value = needed + queue->ring_limit / 8;
    value = value < position ? value : position;
    hdrt_status status = poll_for(queue, value, needed, !hdrt__may_wait(queue));
    uint64_t completed = atomic_load(&queue->entry.timeline->completed);
    if (status < 0 || completed >= value) {
        return status;
    }
    if (!hdrt__may_wait(queue)) {
        return completed >= needed ? HDRT_OK : HDRT_WOULD_BLOCK;
    }
    /* The dispatcher asks the driver meanwhile: two threads that do would be in each other's way. */
    hdrt__dispatcher_want(queue->scheduler, true);
    hdrt__dispatcher_wake(queue);
    sleep_until(queue, value, needed, HDRT__TIMELINE_COMPLETED);
    hdrt__dispatcher_want(queue->scheduler, false);
    return HDRT_OK; /* what failed shows in the queue's state */
}

/* Under the queue's lock, which stays held on HDRT_OK. */
static hdrt_status reserve_recorded(hdrt__enqueue *enqueue, hdrt__op_kind kind, hdrt__op **out_op)
{
    hdrt_status status = hdrt__record_check(enqueue->function, kind);
    if (status != HDRT_OK) {
        return hdrt__enqueue_cancel(enqueue, status);
    }
    enqueue->recorded.kind = (uint8_t)kind;
    enqueue->recorded.detail = 0;
    enqueue->recorded.cooperative = false;
    enqueue->position = hdrt__queue_position(enqueue->queue);
    *out_op = &enqueue->recorded;
    return HDRT_OK;
}

/* The caller's own work comes before an operation that can be recorded. */
static hdrt_status cut_before(const hdrt__enqueue *enqueue, hdrt__op_kind kind)
{
    hdrt_status status = hdrt__record_check(enqueue->function, kind);
    return status == HDRT_OK ? hdrt__record_cut(enqueue->queue, enqueue->function) : status;
}

/* On HDRT_OK there is room, and the lock is held. */
static hdrt_status lock_with_room(hdrt_queue *queue)
{
    for (bool asked = false;;) {
        pthread_mutex_lock(&queue->lock);
        hdrt_status status = check_state(queue);
        bool takes_room = status == HDRT_OK && !hdrt__is_recorded(queue);
        bool full = takes_room && is_full(queue);
        bool standing = takes_room && !full && stands(queue);
        if (status == HDRT_OK && !full && !standing) {
            return HDRT_OK;
        }
        pthread_mutex_unlock(&queue->lock);
        if (full) {
            status = make_room(queue);
        } else if (standing) {
            status = asked ? (hdrt_status)HDRT_WOULD_BLOCK : hdrt__queue_poll(queue, hdrt__queue_position(queue), true);
            asked = true;
        }
        if (status != HDRT_OK) {
            return status;
        }
    }
}

hdrt_status hdrt__enqueue_room(hdrt__enqueue *enqueue)
{
    hdrt_status status = lock_with_room(enqueue->queue);
    if (status == HDRT_OK) {
        pthread_mutex_unlock(&enqueue->queue->lock);
    }
    return status;
}

hdrt_status hdrt__enqueue_reserve(hdrt__enqueue *enqueue, hdrt__op_kind kind, hdrt__op **out_op)
{
    hdrt_queue *queue = enqueue->queue;
    hdrt_status status = hdrt__is_recorded(queue) ? cut_before(enqueue, kind) : HDRT_OK;
    if (status == HDRT_OK) {
        status = lock_with_room(queue);
    }
    if (status != HDRT_OK) {
        return status;
    }
    enqueue->is_recorded = hdrt__is_recorded(queue);
    if (enqueue->is_recorded) {
        return reserve_recorded(enqueue, kind, out_op);
    }
    hdrt__op *op = hdrt__ring_reserve(&queue->ring, &queue->scheduler->segments);
    if (!op) {
        pthread_mutex_unlock(&queue->lock);
        return hdrt__fail_memory(sizeof(hdrt__segment) + HDRT__SEGMENT_LARGE * sizeof(hdrt__op),
                                 "a queue's operations");
    }
    op->kind = (uint8_t)kind;
    op->detail = 0;
    op->cooperative = false;
    enqueue->position = atomic_load_explicit(&queue->ring.published, memory_order_relaxed) + 1;
    *out_op = op;
    return HDRT_OK;
}

hdrt_status hdrt__enqueue_cancel(hdrt__enqueue *enqueue, hdrt_status status)
{
    pthread_mutex_unlock(&enqueue->queue->lock);
    return status;
}

/* ---- publishing -------------------------------------------------------------------------------------------------- */

/* Operations that come this close together are a burst, which the dispatcher hands over better. */
#define BURST_NS 30000u

/* Whether the last command that some thread handed over itself is not known complete, and was, or what has come close
   behind it, only a moment ago. */
static bool is_burst(hdrt__scheduler *scheduler)
{
    const hdrt__stream *stream = atomic_load_explicit(&scheduler->inline_stream, memory_order_acquire);
    if (!stream || atomic_load_explicit(&scheduler->inline_sequence, memory_order_relaxed) <=
                       atomic_load_explicit(&stream->entry.completed, memory_order_relaxed)) {
        return false;
    }
    uint64_t now = hdrt__now_ns(), since = now - atomic_load_explicit(&scheduler->inline_time, memory_order_relaxed);
    if (since < BURST_NS && since > BURST_NS / 4) { /* it goes on */
        atomic_store_explicit(&scheduler->inline_time, now, memory_order_relaxed);
    }
    return since < BURST_NS;
}

/* Remember where the queue's command went. */
static void note_inline(hdrt_queue *queue)
{
    hdrt__scheduler *scheduler = queue->scheduler;
    hdrt__points_lock(queue);
    if (queue->point_count == 1 && hdrt__points(queue)[0].stream->shared) {
        atomic_store_explicit(&scheduler->inline_sequence, hdrt__points(queue)[0].sequence, memory_order_relaxed);
        atomic_store_explicit(&scheduler->inline_time, hdrt__now_ns(), memory_order_relaxed);
        atomic_store_explicit(&scheduler->inline_stream, hdrt__points(queue)[0].stream, memory_order_release);
    }
    hdrt__points_unlock(queue);
}

/* Whether nothing is known to be before the queue's next command, and a stream is there that has nothing to do. */
static bool goes_at_once(hdrt_queue *queue)
{
    bool idle = true;
    hdrt__points_lock(queue);
    for (uint8_t i = 0; i < queue->point_count; i++) {
        idle &= hdrt__point_complete(&hdrt__points(queue)[i]);
    }
    hdrt__points_unlock(queue);
    if (!idle) {
        return false;
    }
    if (queue->entry.exclusive) {
        return true;
    }
    hdrt__scheduler *scheduler = queue->scheduler;
    if (is_burst(scheduler)) {
        return false;
    }
    return atomic_load_explicit(&scheduler->stream_count, memory_order_relaxed) == 0 ||
           hdrt__scheduler_idle(scheduler, queue->class);
}

/* Under the queue's lock, the operation published: whether the calling thread commits it. */
static bool commits_itself(hdrt_queue *queue, uint64_t position, hdrt__op_kind kind)
{
    if (queue->submission == HDRT_SUBMISSION_INLINE || atomic_load(&queue->foreign_work)) {
        return true;
    }
    return queue->submission == HDRT_SUBMISSION_AUTO && kind != HDRT__OP_WAIT &&
           atomic_load(&queue->committer) == HDRT__COMMITTER_NONE &&
           atomic_load(&queue->entry.timeline->committed) + 1 == position && goes_at_once(queue);
}

/*
 * Whether the dispatcher need not know of the operation: a wait alone changes nothing for the GPU. The next operation,
 * or whoever asks for the queue, lets it be looked at.
 */
static bool can_lie(hdrt_queue *queue, hdrt__op_kind kind)
{
    return kind == HDRT__OP_WAIT && queue->submission == HDRT_SUBMISSION_AUTO && !atomic_load(&queue->foreign_work) &&
           !atomic_load(&queue->entry.timeline->watched);
}

/* What became of an operation that this thread has committed. */
static hdrt_status outcome(hdrt_queue *queue, uint64_t position)
{
    if (atomic_load(&queue->state) == HDRT__QUEUE_OPEN && !hdrt__device_is_lost(queue->device)) {
        return HDRT_OK;
    }
    pthread_mutex_lock(&queue->lock);
    hdrt_status status = check_state(queue);
    if (status == HDRT_ERROR_QUEUE_FAILED && atomic_load(&queue->entry.timeline->committed) >= position) {
        status = HDRT_OK; /* one after it */
    }
    pthread_mutex_unlock(&queue->lock);
    return status;
}

hdrt_status hdrt__enqueue_publish(hdrt__enqueue *enqueue)
{
    hdrt_queue *queue = enqueue->queue;
    if (enqueue->is_recorded) {
        return hdrt__enqueue_cancel(enqueue, hdrt__record_operation(enqueue));
    }
    uint64_t position = enqueue->position;
    const hdrt__op *op = &queue->ring.tail->ops[position - queue->ring.tail->first];
    hdrt__op_kind kind = (hdrt__op_kind)op->kind;
    hdrt__order *order = queue->device->runtime->order;
    if (order) {
        hdrt__accesses_note(queue, position, op, enqueue->accesses, enqueue->access_count);
    }
    hdrt__ring_publish(&queue->ring);
    if (kind == HDRT__OP_WAIT && atomic_load(&queue->entry.timeline->watched) &&
        hdrt__dispatcher_is_wanted(queue->scheduler)) {
        hdrt__queue_add_flight(queue); /* a wait alone has none; without memory it is told later */
    }
    bool mine = (enqueue->at_once || commits_itself(queue, position, kind)) &&
                hdrt__committer_take(queue, HDRT__COMMITTER_NONE);
    bool takes_long = mine && kind == HDRT__OP_LAUNCH && queue->submission == HDRT_SUBMISSION_AUTO &&
                      atomic_load_explicit(&op->launch.kernel->expected_us, memory_order_relaxed) >= HDRT__TOGETHER_LEAST_US;
    if (mine) {
        hdrt__queue_hold(queue); /* a host function that this enqueues may destroy the queue before the call returns */
    }
    if (!mine && (enqueue->at_once || !can_lie(queue, kind)) && atomic_load(&queue->committer) == HDRT__COMMITTER_NONE) {
        hdrt__dispatcher_list(queue);
    }
    pthread_mutex_unlock(&queue->lock);
    hdrt__order_tell(order);
    hdrt_status status = HDRT_OK;
    if (mine) {
        if (takes_long) {
            hdrt__dispatcher_rouse(queue->scheduler);
        }
        hdrt__queue_commit(queue);
        if (queue->submission == HDRT_SUBMISSION_AUTO) {
            note_inline(queue);
        }
        status = outcome(queue, position);
    }
    if (status == HDRT_OK && atomic_load(&queue->foreign_work) && hdrt__may_wait(queue)) {
        status = hdrt__wait_handed_over(queue, position);
    }
    if (mine) {
        hdrt__queue_drop(queue);
    }
    return status;
}

hdrt_status hdrt__enqueue_nothing(hdrt__enqueue *enqueue)
{
    hdrt__op *op;
    hdrt_status status = hdrt__enqueue_reserve(enqueue, HDRT__OP_NOTHING, &op);
    return status == HDRT_OK ? hdrt__enqueue_publish(enqueue) : status;
}

hdrt_status hdrt__enqueue_foreign(hdrt_queue *queue, const char *function)
{
    hdrt__enqueue enqueue;
    hdrt__op *op;
    hdrt_status status = hdrt__enqueue_begin(&enqueue, queue, function);
    if (status == HDRT_OK) {
        status = hdrt__enqueue_reserve(&enqueue, HDRT__OP_FOREIGN, &op);
    }
    return status == HDRT_OK ? hdrt__enqueue_publish(&enqueue) : status;
}

/* ---- waiting for the hand-over ----------------------------------------------------------------------------------- */

hdrt_status hdrt__wait_handed_over(hdrt_queue *queue, uint64_t position)
{
    if (atomic_load(&queue->entry.timeline->committed) < position) {
        hdrt__dispatcher_wake(queue);
        sleep_until(queue, position, position, HDRT__TIMELINE_COMMITTED);
    }
    return outcome(queue, position);
}

hdrt_status hdrt__wait_committed(hdrt_queue *queue, uint64_t position, const char *function)
{
    if (atomic_load(&queue->entry.timeline->committed) >= position) {
        return HDRT_OK;
    }
    if (!hdrt__may_wait(queue)) {
        hdrt__dispatcher_wake(queue);
        hdrt__fail(HDRT_WOULD_BLOCK,
                   "%s: what was enqueued on queue '%s' before is not yet handed over to its stream, and its order with "
                   "the caller's own work there needs that",
                   function, HDRT__QUEUE_NAME(queue));
        return HDRT_WOULD_BLOCK;
    }
    return hdrt__wait_handed_over(queue, position);
}

/* ---- direct operations ------------------------------------------------------------------------------------------- */

/* Under the queue's lock: the wish is fulfilled, and the queue is the caller's. */
static bool take_direct(hdrt__enqueue *enqueue, hdrt__direct_wish wish)
{
    hdrt_queue *queue = enqueue->queue;
    hdrt__timeline *timeline = queue->entry.timeline;
    uint64_t position = hdrt__queue_position(queue);
    if (atomic_load(&timeline->committed) != position || atomic_load(&queue->ring.consumed) != position ||
        (wish == HDRT__DIRECT_COMPLETE && atomic_load(&timeline->completed) != position) ||
        !hdrt__committer_take(queue, HDRT__COMMITTER_NONE)) {
        return false;
    }
    /* It goes by the ring: nothing is in it. */
    enqueue->position = position + 1;
    atomic_store(&queue->ring.consumed, position + 1);
    hdrt__ring_publish(&queue->ring);
    return true;
}

static hdrt_status wait_complete(hdrt__enqueue *enqueue)
{
    hdrt_queue *queue = enqueue->queue;
    hdrt_event last = hdrt__timeline_event(queue->entry.timeline, hdrt__queue_position(queue));
    hdrt_status status = hdrt__event_wait_until(queue->device->runtime, last, HDRT_FOREVER, NULL);
    if (status == HDRT_ERROR_CYCLE) {
        return hdrt__fail(status,
                          "%s: pageable memory is copied when queue '%s' has come to the copy, and this is a host "
                          "function that it waits for: use pinned memory",
                          enqueue->function, HDRT__QUEUE_NAME(queue));
    }
    return hdrt__status_over(status) ? HDRT_OK : status; /* what failed shows in the queue's state */
}

hdrt_status hdrt__direct_begin(hdrt__enqueue *enqueue, hdrt__direct_wish wish, hdrt__scope *scope)
{
    hdrt_queue *queue = enqueue->queue;
    for (;;) {
        pthread_mutex_lock(&queue->lock);
        hdrt_status status = check_state(queue);
        if (status == HDRT_OK && hdrt__is_recorded(queue)) {
            status = hdrt__record_refuse(enqueue->function, "allocations and no copies of pageable memory");
        }
        bool taken = status == HDRT_OK && take_direct(enqueue, wish);
        pthread_mutex_unlock(&queue->lock);
        if (taken) {
            break;
        }
        if (status == HDRT_OK) {
            status = wish == HDRT__DIRECT_COMPLETE ? wait_complete(enqueue) : HDRT_WOULD_BLOCK;
        }
        if (status != HDRT_OK) {
            return status;
        }
    }
    hdrt__queue_hold(queue);
    hdrt_status status = hdrt__device_enter(queue->device, scope);
    if (status != HDRT_OK) {
        hdrt__queue_fail(queue, enqueue->position);
        hdrt__committer_leave(queue);
        hdrt__queue_drop(queue);
    }
    return status;
}

void hdrt__direct_end(hdrt__enqueue *enqueue, hdrt__scope *scope)
{
    hdrt_queue *queue = enqueue->queue;
    hdrt__timeline *timeline = queue->entry.timeline;
    if (atomic_load(&timeline->committed) < enqueue->position && atomic_load(&queue->state) == HDRT__QUEUE_OPEN) {
        /* It came to nothing: its position stands for what was before. */
        bool settled = hdrt__queue_settle(queue);
        hdrt__timeline_commit(timeline, enqueue->position);
        if (settled) {
            hdrt__queue_landed(queue, enqueue->position);
        }
    }
    hdrt__device_leave(queue->device, scope);
    hdrt__committer_leave(queue);
    hdrt__queue_drop(queue);
}

hdrt_status hdrt__enqueue_blocking(hdrt__enqueue *enqueue, hdrt__op *op)
{
    hdrt_queue *queue = enqueue->queue;
    hdrt__stream *stream = queue->stream;
    hdrt__scope scope;
    uint32_t commands = 0;
    hdrt_status status = hdrt__direct_begin(enqueue, HDRT__DIRECT_COMPLETE, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__order *order = queue->device->runtime->order;
    if (order) { /* the host has waited for what is before */
        hdrt__order_known(order, hdrt__timeline_event(queue->entry.timeline, enqueue->position - 1));
        hdrt__accesses_note(queue, enqueue->position, op, NULL, 0);
        hdrt__order_tell(order);
    }
    hdrt__queue_settle(queue);
    if (!stream) { /* no stream of other queues may stand still meanwhile */
        status = hdrt__scheduler_blocking(queue->scheduler, &stream);
    }
    if (status == HDRT_OK) {
        pthread_mutex_lock(&stream->commit);
        if (hdrt__stream_reserve_flights(stream, 1)) {
            status = hdrt__op_hand_over(queue, stream, op, enqueue->position, &commands);
        } else {
            status = hdrt__fail_memory(sizeof(hdrt__flight), "what is in flight in a stream");
        }
        hdrt__stream_advance(stream, commands);
        if (status == HDRT_OK) {
            hdrt__group_end(queue, stream, enqueue->position);
        } else {
            pthread_mutex_unlock(&stream->commit);
        }
    }
    if (status != HDRT_OK) {
        status = hdrt__queue_fail(queue, enqueue->position);
    } else if (op->kind == HDRT__OP_REGION ? op->region->dst.host != NULL : op->detail == HDRT__COPY_DTOH) {
        hdrt__order_known(order, hdrt__enqueue_event(enqueue)); /* the bytes are there */
    }
    hdrt__direct_end(enqueue, &scope);
    return status;
}
