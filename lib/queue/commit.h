/* SPDX-License-Identifier: MIT */
/*
 * The one way to enqueue an operation:
 *
 *     hdrt__commit commit;
 *     status = hdrt__commit_begin(&commit, queue, "hdrt_fill");       not usable: leave at once
 *     ... what arguments can tell: on failure hdrt__commit_leave(&commit, status)
 *     status = hdrt__commit_lock(&commit, HDRT__COMMIT_ROOM);         on failure hdrt__commit_leave(&commit, status)
 *     call = HDRT__CALL(...);
 *     if (call.result) status = hdrt__commit_failed(&commit, call, "filling %llu bytes", ...);
 *     else hdrt__commit_done(&commit, 1);
 *     return hdrt__commit_leave(&commit, status);
 *
 * States: OUTSIDE --begin--> INSIDE --lock--> LOCKED --done, failed, unlock--> INSIDE --leave--> OUTSIDE
 */
#ifndef HDRT_QUEUE_COMMIT_H
#define HDRT_QUEUE_COMMIT_H

#include "queue/queue.h"

typedef enum hdrt__commit_state {
    HDRT__COMMIT_OUTSIDE,
    HDRT__COMMIT_INSIDE, /* in the device's scope */
    HDRT__COMMIT_LOCKED, /* and under the queue's commit lock, with room for the operation */
} hdrt__commit_state;

typedef enum hdrt__commit_wish {
    HDRT__COMMIT_ROOM,  /* room in the ring and the stream, by the queue's back-pressure policy */
    HDRT__COMMIT_QUIET, /* everything before complete: for calls in which the driver would wait for that */
} hdrt__commit_wish;

typedef struct hdrt__commit {
    hdrt__commit_state state;
    hdrt_queue *queue;
    const char *function;
    uint64_t position; /* of the operation, once LOCKED */
    hdrt__scope scope;
} hdrt__commit;

/* \return HDRT_OK; HDRT_ERROR_INVALID_ARGUMENT (NULL), _FORKED, _DEVICE_LOST, _QUEUE_FAILED, _CAPTURING, _DRIVER. */
hdrt_status hdrt__commit_begin(hdrt__commit *commit, hdrt_queue *queue, const char *function);

/* HDRT_ERROR_CAPTURING while the stream, on which the caller may enqueue too, is being captured. Inside the scope. */
hdrt_status hdrt__commit_check_capture(hdrt_queue *queue, const char *function);

/* Wait for what is wished and take the lock. \return HDRT_OK; HDRT_WOULD_BLOCK; as hdrt__commit_begin;
 * HDRT_ERROR_CYCLE  a host function wishes its own queue to be quiet. */
hdrt_status hdrt__commit_lock(hdrt__commit *commit, hdrt__commit_wish wish);

/* The operation went over in `commands` driver commands: give it its position and let go of the lock. */
void hdrt__commit_done(hdrt__commit *commit, uint32_t commands);

/*
 * A part of the operation went over in `commands` driver commands before the rest failed: it gets a position of its
 * own, so that who waits for the queue's work waits for it too, and the failure will be at the next. Stays LOCKED.
 */
void hdrt__commit_part(hdrt__commit *commit, uint32_t commands);

/*
 * The operation's driver call failed: the queue fails from its position, and the lock is let go. Of the words, format
 * says what was attempted. \return HDRT_ERROR_QUEUE_FAILED, HDRT_ERROR_DEVICE_LOST, with the message.
 */
hdrt_status hdrt__commit_failed(hdrt__commit *commit, hdrt__call call, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for an operation that failed otherwise: with the thread's last message. \return `status`. */
hdrt_status hdrt__commit_failed_as(hdrt__commit *commit, hdrt_status status);

/* Let go of the lock without an operation. */
void hdrt__commit_unlock(hdrt__commit *commit);

/* Leave from any state. \return `status`. */
hdrt_status hdrt__commit_leave(hdrt__commit *commit, hdrt_status status);

/* Enqueue an operation without commands: it only takes its position. */
hdrt_status hdrt__commit_nothing(hdrt__commit *commit);

/* The event of the operation that is LOCKED. */
static inline hdrt_event hdrt__commit_event(const hdrt__commit *commit)
{
    return hdrt__timeline_event(commit->queue->entry.timeline, commit->position);
}

#endif
