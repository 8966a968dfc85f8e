/* SPDX-License-Identifier: MIT */
/*
 * Queues that wait for what is not yet committed, or not yet signalled, are parked on the host: no stream waits, and
 * nobody else does. A watch of the timeline wakes them. Who would wait for ever, because queues wait for each other in
 * a ring, is told.
 */
#ifndef HDRT_QUEUE_PARK_H
#define HDRT_QUEUE_PARK_H

#include "queue/queue.h"

typedef enum hdrt__parked {
    HDRT__PARKED_OK,    /* the queue must not be touched any more; the producer's hold went with it */
    HDRT__PARKED_NOT,   /* the value came meanwhile */
    HDRT__PARKED_CYCLE, /* it never would; the thread's message says why */
} hdrt__parked;

/* The committer: park the queue until `value` of a timeline is committed, or never will be. `producer`: the
 * queue that the timeline is of, with a hold, or NULL. */
hdrt__parked hdrt__park(hdrt_queue *queue, hdrt__timeline *timeline, bool pinned, hdrt_queue *producer,
                        uint64_t value);

/* The committer, under no lock: drop what those who woke the queue left. Must have a hold of its own. */
void hdrt__park_tidy(hdrt_queue *queue);

#endif
