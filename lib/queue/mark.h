/* SPDX-License-Identifier: MIT */
/*
 * Marks: the CUevents in a stream, and what is known from them. A wait for a position uses the oldest mark at or after
 * it; if there is none, one is recorded then. All functions: under the queue's commit lock, inside the device's scope.
 */
#ifndef HDRT_QUEUE_MARK_H
#define HDRT_QUEUE_MARK_H

#include "queue/queue.h"

/* Commands that are not known complete. */
static inline uint64_t hdrt__queue_outstanding(const hdrt_queue *queue)
{
    return queue->commands - queue->commands_completed;
}

/*
 * The oldest mark at or after `position` (not above committed), recorded if there is none; NULL if the position is
 * complete. The ring's: hold it to use it without the lock.
 */
hdrt__call hdrt__mark_for(hdrt_queue *queue, uint64_t position, hdrt__mark **out_mark);

/*
 * Ask the driver how far the stream is: first the mark for `position`, so that one call is enough if that is complete.
 * Tells the timeline. \return HDRT_OK, or the status of a failed driver call.
 */
hdrt_status hdrt__mark_progress(hdrt_queue *queue, uint64_t position);

/* Record a mark if one is due by count. A failure that is no fault is left to who needs the mark. */
void hdrt__mark_by_count(hdrt_queue *queue);
/*
 * Record a mark if a position was given out by record and has none: what follows would make those who wait for it wait
 * for more, a host call for instance.
 */
void hdrt__mark_recorded(hdrt_queue *queue);
/* All commands are known complete: positions without commands are too. */
void hdrt__mark_idle(hdrt_queue *queue);

/* Give all marks back; the queue is over. Without lock and scope. */
void hdrt__marks_free(hdrt_queue *queue);

/* Modules that nothing in flight uses any more, taken off the queue, to be released with hdrt__modules_release. */
hdrt__held_module *hdrt__modules_done(hdrt_queue *queue);
/* Under no lock. */
void hdrt__modules_release(hdrt__held_module *modules);

#endif
