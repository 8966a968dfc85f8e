/* SPDX-License-Identifier: MIT */
/*
 * Order between streams: what a queue's next command comes after, and which stream is best for that. The rules of
 * leaving a wait out, in order: the same stream; known complete; covered by the stream's clock; else a wait of the GPU
 * for the oldest mark at or after the point. A wait only ever names a mark that is recorded.
 */
#ifndef HDRT_QUEUE_FOLLOW_H
#define HDRT_QUEUE_FOLLOW_H

#include "queue/queue.h"
#include "queue/scheduler.h"

/* What a wait for an event came to. */
typedef enum hdrt__waited {
    HDRT__WAITED_DONE,   /* it is complete, or a point */
    HDRT__WAITED_FULL,   /* there are too many points: make them one, then take the rest */
    HDRT__WAITED_STALLED, /* its stream has as many commands as it may have: see queue->stalled_by */
    HDRT__WAITED_LATER,  /* the producer is about to be served: the queue is to be served again behind it */
    HDRT__WAITED_PARKED, /* the queue was parked: do not touch it any more */
    HDRT__WAITED_FAILED, /* the event has failed, or would never come: the thread's message says */
} hdrt__waited;

/* Points of an event for which there is no place, each with a hold. */
typedef struct hdrt__rest {
    hdrt__point points[HDRT__POINTS];
    uint32_t count;
} hdrt__rest;

/* The committer: take an event as points, or park the queue until it is committed. `producer`: the queue that it is of,
 * if that is known. FULL: what is in `rest` is still to be taken, one by one; to begin again might never end. */
hdrt__waited hdrt__follow_event(hdrt_queue *queue, hdrt_event event, hdrt_queue *producer, hdrt__rest *rest);
/* The committer: take a point. \return false: there are too many. */
bool hdrt__follow_point(hdrt_queue *queue, hdrt__point point);
/* The stream for the queue's next command. Inside the device's scope. Not held: it is the queue's, or shared. */
hdrt_status hdrt__follow_choose(hdrt_queue *queue, hdrt__stream **out_stream);
/*
 * Make the stream come after the queue's points. On HDRT_OK its commit lock is held. `idle`: it was chosen because it had
 * nothing to do; HDRT_WOULD_BLOCK if another committer has put something there meanwhile: choose again.
 */
hdrt_status hdrt__follow_points(hdrt_queue *queue, hdrt__stream *stream, bool idle);

#endif
