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
 * Kernels side by side in one template: as many as run at once on the GPU; more would take 84 KiB of device memory each.
 * Such templates go to two streams in turn, with an instance each: 512 kernels of 500 us reach a concurrency of 118, in one
 * stream, where each waits for the one before, 45.
 */
#define HDRT__WIDE_LIMIT 128u
#define HDRT__WIDE_STREAMS 2u

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
 * The committer of all of them, inside the device's scope: launch the queues' kernels side by side, as many of the first
 * as one template takes. \return how many; the rest is as before.
 */
uint32_t hdrt__wide_hand_over(hdrt__wide *wide, hdrt_queue **queues, uint32_t count);

#endif
