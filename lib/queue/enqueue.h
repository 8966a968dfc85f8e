/* SPDX-License-Identifier: MIT */
/*
 * The one way to enqueue an operation:
 *
 *     hdrt__enqueue enqueue;
 *     status = hdrt__enqueue_begin(&enqueue, queue, "hdrt_fill");          not usable: leave at once
 *     ... what arguments can tell
 *     status = hdrt__enqueue_reserve(&enqueue, HDRT__OP_FILL, &op);        a place in the ring, under the queue's lock
 *     ... fill it in; on failure hdrt__enqueue_cancel(&enqueue)
 *     return hdrt__enqueue_publish(&enqueue);                              and commit it, or let the dispatcher do so
 *
 * States: OUTSIDE --begin--> INSIDE --reserve--> RESERVED --publish or cancel--> over
 *
 * The calling thread commits if the queue asks for it, or, by default, if nothing is in flight before the operation:
 * then no hand-over is quicker. Otherwise it costs the caller no driver call.
 */
#ifndef HDRT_QUEUE_ENQUEUE_H
#define HDRT_QUEUE_ENQUEUE_H

#include "queue/queue.h"

typedef struct hdrt__enqueue {
    hdrt_queue *queue;
    const char *function;
    uint64_t position; /* of the operation, once RESERVED; of the one before it, if it is recorded */
    bool at_once;      /* the calling thread is to commit it if it can: it will fail */
    bool is_recorded;  /* once RESERVED: it goes into a graph */
    const hdrt_access_range *accesses; /* of a launch, for the order check; NULL: not given */
    uint32_t access_count;
    hdrt__op recorded; /* the operation's place then */
} hdrt__enqueue;

/* \return HDRT_OK; HDRT_ERROR_INVALID_ARGUMENT (NULL), _FORKED, _DEVICE_LOST, _QUEUE_FAILED, _CAPTURING, _DRIVER. */
hdrt_status hdrt__enqueue_begin(hdrt__enqueue *enqueue, hdrt_queue *queue, const char *function);

/* A place for an operation, by the queue's back-pressure policy. \return HDRT_OK, and the queue's lock is held;
 * HDRT_WOULD_BLOCK; as hdrt__enqueue_begin; HDRT_ERROR_OUT_OF_MEMORY. */
hdrt_status hdrt__enqueue_reserve(hdrt__enqueue *enqueue, hdrt__op_kind kind, hdrt__op **out_op);
/* The same without a place: whether one could be had now, for who has a call to make before. */
hdrt_status hdrt__enqueue_room(hdrt__enqueue *enqueue);
/* Give the place up. \return `status`. */
hdrt_status hdrt__enqueue_cancel(hdrt__enqueue *enqueue, hdrt_status status);
/* \return HDRT_OK, or, if it was committed and failed, HDRT_ERROR_QUEUE_FAILED or _DEVICE_LOST. */
hdrt_status hdrt__enqueue_publish(hdrt__enqueue *enqueue);

/* An operation that only takes its position. */
hdrt_status hdrt__enqueue_nothing(hdrt__enqueue *enqueue);

/* ---- operations whose driver call is made during the call -------------------------------------------------------- */

typedef enum hdrt__direct_wish {
    HDRT__DIRECT_COMMITTED, /* all before it handed over; does not wait for that */
    HDRT__DIRECT_COMPLETE,  /* all before it complete; waits for that */
} hdrt__direct_wish;

/*
 * Take the next position and be the queue's committer, inside the device's scope, under no lock. \return HDRT_OK;
 * HDRT_WOULD_BLOCK  for HDRT__DIRECT_COMMITTED; HDRT_ERROR_CYCLE  a host function waits for its own queue; as reserve.
 */
hdrt_status hdrt__direct_begin(hdrt__enqueue *enqueue, hdrt__direct_wish wish, hdrt__scope *scope);
/* The operation at the position was handed over, or took none of it. */
void hdrt__direct_end(hdrt__enqueue *enqueue, hdrt__scope *scope);
/* Hand over an operation whose call may wait for the GPU, after all before it. The operation is the caller's. */
hdrt_status hdrt__enqueue_blocking(hdrt__enqueue *enqueue, hdrt__op *op);

/* The event of the operation that is RESERVED. */
static inline hdrt_event hdrt__enqueue_event(const hdrt__enqueue *enqueue)
{
    return hdrt__timeline_event(enqueue->queue->entry.timeline, enqueue->position);
}

/* Whether the policy lets the calling thread wait: a host function would wait for its own call to be over. */
bool hdrt__may_wait(const hdrt_queue *queue);
/* Wait until what was enqueued up to `position` is handed over, by the back-pressure policy; or whatever that is. */
hdrt_status hdrt__wait_committed(hdrt_queue *queue, uint64_t position, const char *function);
hdrt_status hdrt__wait_handed_over(hdrt_queue *queue, uint64_t position);
/*
 * An operation that stands for the caller's own work on the queue's stream: what the queue waits for, the stream waits for
 * then too, and a mark comes after it.
 */
hdrt_status hdrt__enqueue_foreign(hdrt_queue *queue, const char *function);
/* HDRT_ERROR_CAPTURING while the stream, on which the caller may enqueue too, is being captured by him. */
hdrt_status hdrt__check_capture(hdrt_queue *queue, const char *function);
/* Free a range when what is enqueued now is complete. */
void hdrt__free_later(hdrt_queue *queue, hdrt__range *range);

#endif
