/* SPDX-License-Identifier: MIT */
/*
 * Runs of launches: what of a queue's ring goes out by a template, and what one by one.
 */
#ifndef HDRT_QUEUE_RUN_H
#define HDRT_QUEUE_RUN_H

#include "queue/queue.h"
#include "queue/template.h"

/* Let the pointers, one for each parameter of the launch's kernel, point into it. */
void hdrt__run_point_at(hdrt__op *op, void **pointers);

/*
 * Under the stream's commit lock: hand over, of launches that come one after the other, what one template takes, or what
 * is not to be in one; the queue and the position are the first one's. \return how many went over.
 */
uint32_t hdrt__run_some(hdrt_queue *queue, hdrt__stream *stream, uint64_t position, const hdrt__run_launch *launches,
                        uint32_t length, hdrt_status *out_status);

/*
 * The committer, under the stream's commit lock: hand over launches of the ring from `ahead` on, of which there is one.
 * *out_ends: how many wait for the last one. *single counts those that went one by one. \return how many went over.
 */
uint32_t hdrt__run_hand_over(hdrt_queue *queue, hdrt__stream *stream, uint32_t ahead, uint8_t *out_ends, uint32_t *single,
                             hdrt_status *out_status);

#endif
