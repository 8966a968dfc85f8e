/* SPDX-License-Identifier: MIT */
/*
 * The caller's own work in a recording: what he enqueues himself on a recorded queue's stream is captured by the
 * driver, and each part of it, from one call on the queue to the next, is a graph that becomes a node of the plan.
 * Caller: record.c.
 *
 *     OFF --begin--> ON --cut: nothing was captured--> ON
 *                    ON --cut: a part, or leave--> OFF
 *
 * A mark recorded in a captured stream would become part of the capture. So all that is in the stream is marked before
 * it begins, and nothing else is enqueued there until it is over: a recorded queue hands over no commands.
 */
#ifndef HDRT_QUEUE_FOREIGN_H
#define HDRT_QUEUE_FOREIGN_H

#include "queue/queue.h"

/* A part, which nobody changes. Shared by the plans that have it. */
typedef struct hdrt__foreign {
    atomic_uint references;
    hdrt_device *device; /* held */
    hdcu_graph graph;
    uint64_t shape; /* a hash of its nodes' kinds and its edges: another one is another topology */
} hdrt__foreign;

void hdrt__foreign_hold(hdrt__foreign *part);
/* The last one to let go destroys the graph: under no lock but a stream's, in or out of the scope. NULL accepted. */
void hdrt__foreign_drop(hdrt__foreign *part);

/* Of a recorded queue's stream; under the stream's commit lock. */
typedef struct hdrt__capture {
    bool is_on;
    uint64_t id; /* the driver's, to tell it from one that the caller began instead; 0: not known */
} hdrt__capture;

/* ---- under the stream's commit lock, inside the device's scope --------------------------------------------------- */

/* \return HDRT_OK; HDRT_ERROR_CAPTURING  the caller captures the stream; HDRT_ERROR_UNSUPPORTED  it is a default
 * stream, or the driver is too old; as hdrt__device_check. After a failure it may be ON: leave it. */
hdrt_status hdrt__capture_begin(hdrt__capture *capture, hdrt_queue *queue, const char *function);
/* *out_part: the caller's, or NULL if nothing was captured. \return HDRT_OK; HDRT_ERROR_CAPTURING  the caller spoilt
 * the capture or ended it; HDRT_ERROR_OUT_OF_MEMORY; as hdrt__device_check: what was captured is lost; leave it. */
hdrt_status hdrt__capture_cut(hdrt__capture *capture, hdrt_queue *queue, const char *function,
                              hdrt__foreign **out_part);
/* Be OFF, whatever it was. What is captured is dropped. */
void hdrt__capture_leave(hdrt__capture *capture, hdrt_queue *queue);

#endif
