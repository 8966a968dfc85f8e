/* SPDX-License-Identifier: MIT */
/*
 * What operations touch, for the order check (order/order.h): copies, fills, allocations and frees exactly; kernels by
 * the ranges of hdrt_launch_options, or else each allocation that an argument points into, which the kernel writes
 * unless hdrt_kernel_set_access says otherwise. Nothing here fails what it is called from. All return at once if the
 * runtime checks nothing.
 */
#ifndef HDRT_QUEUE_ACCESSES_H
#define HDRT_QUEUE_ACCESSES_H

#include "queue/enqueue.h"
#include "queue/plan.h"

/* Under the queue's lock, or as its committer: the operation takes the position. */
void hdrt__accesses_note(hdrt_queue *queue, uint64_t position, const hdrt__op *op, const hdrt_access_range *declared,
                         uint32_t count);
/* Memory that is there from the position on. */
void hdrt__accesses_alloc(hdrt_queue *queue, uint64_t position, hdrt_ptr ptr);
/* A range, out of the registry, that is freed behind what is enqueued now. */
void hdrt__accesses_free(hdrt_queue *queue, const hdrt__range *range);
/* Somebody waits for an event of this queue. */
void hdrt__accesses_awaited(hdrt_queue *producer, hdrt_event event);
/* What a recording has put into a graph. */
void hdrt__accesses_check_plan(hdrt_device *device, const char *graph, const hdrt__plan *plan);

#endif
