/* SPDX-License-Identifier: MIT */
/*
 * Host calls in a stream on which the caller enqueues too: there the stream itself must stand still until the function
 * is over, or the caller's own work would go ahead of it. The driver notifies the library (no CUDA call is allowed
 * there), a callback thread runs the function and then writes a word of pinned memory, on which the stream waits.
 */
#ifndef HDRT_QUEUE_STREAM_CALL_H
#define HDRT_QUEUE_STREAM_CALL_H

#include "queue/queue.h"

/*
 * What a call counts for: behind a closed gate the driver takes only 55 host functions with waits in turn before its
 * call blocks (tests/bench/depth.c), so at most 50 are outstanding.
 */
#define HDRT__STREAM_CALL_COMMANDS (HDRT__COMMAND_LIMIT / 50 + 1)

/* The queue's committer, under the stream's commit lock. *out_commands counts what went over, on failure too. */
hdrt_status hdrt__stream_call(hdrt_queue *queue, hdrt__stream *stream, const hdrt__op *op, uint64_t position,
                              uint32_t *out_commands);

/* What is said where a stream cannot wait for memory. */
hdrt_status hdrt__stream_call_unsupported(const hdrt_queue *queue);

/* At the scheduler's end: calls that a lost device never notified. */
void hdrt__stream_calls_free(struct hdrt__scheduler *scheduler);

#endif
