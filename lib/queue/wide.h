/* SPDX-License-Identifier: MIT */
/*
 * Many queues that each hold one kernel: launched side by side by one template, in one stream. Only launches of the same
 * function with the same grid go together, since none of them should outlast the others: their queues are complete when
 * all of them are.
 */
#ifndef HDRT_QUEUE_WIDE_H
#define HDRT_QUEUE_WIDE_H

#include "queue/queue.h"

/*
 * Kernels side by side in one template, and how much is in flight at once (together.h): in so many streams, in each of them
 * as many templates one behind the other. So there is always more than the 128 kernels that run at once on an H200, and they
 * end about in the order in which they were launched. Where the device knows no launch order each kernel is a branch
 * (template.h); there none may wait behind another, and there are as many streams as the templates' share of the device's
 * memory allows.
 */
#define HDRT__WIDE_LIMIT 64u
#define HDRT__WIDE_STREAMS 3u
#define HDRT__WIDE_DEPTH 2u
#define HDRT__WIDE_BRANCH_STREAMS 5u

/* Whether a queue, whose committer the caller is, holds one launch that may go with others, and nothing before it. */
bool hdrt__wide_may(hdrt_queue *queue);
/* How long its kernel is expected to take, in microseconds, as far as is known. */
uint32_t hdrt__wide_expected_us(hdrt_queue *queue);
/* Whether two such queues may go together. */
bool hdrt__wide_match(hdrt_queue *one, hdrt_queue *other);

/* Whoever serves wide launches: room for the most that go together. */
typedef struct hdrt__wide hdrt__wide;
hdrt__wide *hdrt__wide_create(void); /* NULL: no memory */
void hdrt__wide_destroy(hdrt__wide *wide);

/*
 * The committer of all of them, inside the device's scope: launch the queues' kernels side by side in the stream, as many
 * of the first as one template takes, at most HDRT__WIDE_LIMIT. \return how many. They can be waited for; what can be done
 * later is to mark the stream, and to finish each of them. The rest is as before.
 */
uint32_t hdrt__wide_hand_over(hdrt__wide *wide, hdrt__stream *stream, hdrt_queue **queues, uint32_t count);
/* How many of so many queues fit into nothing that is launched side by side. */
uint32_t hdrt__wide_rest(hdrt_queue *queue, uint32_t count);
/* Whether to hand them over takes no longer than a launch. */
bool hdrt__wide_is_ready(hdrt__wide *wide, hdrt_queue **queues, uint32_t count);
/* Whether the stream is idle is soon asked: let it tell. */
void hdrt__wide_mark(hdrt__stream *stream);
/* The committer still: take the launch, which was handed over, out of the queue's ring. */
void hdrt__wide_finish(hdrt_queue *queue);

#endif
