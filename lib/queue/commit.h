/* SPDX-License-Identifier: MIT */
/*
 * Committing: handing a queue's operations to the driver, in order. Done by whoever is the queue's committer
 * (queue.h), on the enqueuing thread or the dispatcher's; nothing in it waits for the GPU or for another queue.
 *
 * Operations with commands go out in groups: the stream is chosen and made to follow the queue's points (follow.h),
 * then under its commit lock as many operations as may go are handed over (commands.c), and the queue gets a flight in
 * the stream and one point, its end. Waits only add points; host calls wait until the queue has none.
 */
#ifndef HDRT_QUEUE_COMMIT_H
#define HDRT_QUEUE_COMMIT_H

#include "queue/queue.h"
#include "queue/scheduler.h"

typedef enum hdrt__drained {
    HDRT__DRAINED_EMPTY,
    HDRT__DRAINED_QUANTUM, /* more could go */
    HDRT__DRAINED_PARKED,  /* the queue belongs to whoever wakes it: it must not be touched any more */
    HDRT__DRAINED_STALLED, /* queue->stalled_by says by what */
} hdrt__drained;

/* Become the queue's committer. */
static inline bool hdrt__committer_take(hdrt_queue *queue, hdrt__committer from)
{
    uint8_t expected = (uint8_t)from;
    return atomic_compare_exchange_strong(&queue->committer, &expected, HDRT__COMMITTER_BUSY);
}

/* As the committer, under no lock, inside the device's scope: hand over about `quantum` operations; if launches may pend,
 * the caller sees to it that they are flushed (hdrt__scheduler_flush). */
hdrt__drained hdrt__queue_drain(hdrt_queue *queue, uint32_t quantum, bool may_pend);
/* Stop being the committer; the dispatcher is told if something is left. */
void hdrt__committer_leave(hdrt_queue *queue);
/* Be the committer for as long as it takes the calling thread, and leave. Enters the scope itself. */
void hdrt__queue_commit(hdrt_queue *queue);

/* ---- a group, for operations that are handed over outside the ring too ------------------------------------------- */

/* The committer: choose a stream for the queue's next command and let it follow. On HDRT_OK its commit lock is held, and
 * no launches are pending there. */
hdrt_status hdrt__group_begin(hdrt_queue *queue, hdrt__stream **out_stream);
/* The queue's work up to `position` is in the stream now. Lets go of the lock and tells who waits. */
void hdrt__group_end(hdrt_queue *queue, hdrt__stream *stream, uint64_t position);

/* Hand over one operation that has commands, under the stream's lock. *out_commands counts what went over, on failure
 * too; *out_call has a failed call. `what` gets words for it. */
hdrt_status hdrt__op_hand_over(hdrt_queue *queue, hdrt__stream *stream, hdrt__op *op, uint64_t position,
                               uint32_t *out_commands);
/* What an operation holds besides its place: after it was handed over, or instead (`dropped`). Under no lock. */
void hdrt__op_release(hdrt_queue *queue, hdrt__op *op, bool dropped);

#endif
