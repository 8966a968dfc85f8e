/* SPDX-License-Identifier: MIT */
/*
 * Launches that are committed to a stream and wait there for a moment for more, of whichever queues: what goes out by
 * one template must be in one stream, not of one queue. The dispatcher puts single launches there and hands them over
 * when enough have gathered, when it has nothing else to do, or after some microseconds; anything else that is to happen
 * in the stream, or to be known of it, hands them over first. So nobody ever sees the difference, but that a launch may
 * fail a moment after its position was committed: then its queue fails there, and so do those behind it that wait.
 *
 *     empty --add--> open, with a sequence number of its own --flush--> empty
 *
 * All functions: under the stream's commit lock, inside the device's scope.
 */
#ifndef HDRT_QUEUE_PENDING_H
#define HDRT_QUEUE_PENDING_H

#include "queue/queue.h"

typedef struct hdrt__pending hdrt__pending;

/* Whether a launch may wait there: of moderate size, and not one that others on other streams wait for. */
bool hdrt__pending_may(const hdrt__stream *stream, const hdrt__op *op);
/*
 * Take over a launch of the queue's, at this position, leaving its place in the ring with nothing to release.
 * \return false: there is no memory; hand it over otherwise.
 */
bool hdrt__pending_add(hdrt__stream *stream, hdrt_queue *queue, uint64_t position, hdrt__op *op);
/* Whether one more would be too many. */
bool hdrt__pending_full(const hdrt__stream *stream);
/* Hand over what waits. \return HDRT_OK, or the failure: then the queues concerned have failed. */
hdrt_status hdrt__pending_flush(hdrt__stream *stream);
/* Nothing waits any more. */
void hdrt__pending_free(hdrt__pending *pending);

#endif
