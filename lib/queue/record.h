/* SPDX-License-Identifier: MIT */
/*
 * Recordings: what is enqueued on a graph's recording queues becomes nodes of a plan instead of operations in a ring.
 * hdrt__enqueue_reserve and _publish (enqueue.h) come here while queue->is_recorded, and so do waits and events.
 *
 * Each queue has a frontier: of each recording queue, the last node that its next node comes after. An event of the
 * recording is a copy of a frontier; its timeline has failed from the beginning, so that whoever else waits for it is
 * told.
 *
 * What the caller enqueues himself on the stream of such a queue is captured (foreign.h). Each call that adds a node,
 * takes an event or waits cuts first, so that what was captured becomes a node before it. If captured work is lost the
 * recording is broken: from there on each such call says why, and so does its end.
 *
 * Locks: queue->is_recorded is set and read under the queue's lock (or read without, and then again with it); the
 * recording's own lock is taken under that, and is a leaf but for the timelines'. A capture begins and ends under its
 * stream's commit lock, which comes before both.
 */
#ifndef HDRT_QUEUE_RECORD_H
#define HDRT_QUEUE_RECORD_H

#include "queue/enqueue.h"
#include "queue/foreign.h"
#include "queue/graph.h"

typedef struct hdrt__recorded_queue {
    struct hdrt__graph_recording *recording;
    hdrt_queue *queue; /* held */
    uint32_t index;
    hdrt__held held; /* in the queue's list */
    uint32_t *frontier; /* numbers of nodes, from 1; 0: none. One for each recording queue */
    hdrt__capture capture; /* of its stream, if the caller may enqueue there */
} hdrt__recorded_queue;

/* Begin to record the queues, checked to be of the graph's device. */
hdrt_status hdrt__graph_recording_create(hdrt_graph *graph, hdrt_queue *const *queues, uint32_t count,
                                   struct hdrt__graph_recording **out_recording);
/* Let go of the queues: they run again what they are given. What is still captured becomes nodes, or, not to `keep` it,
 * is dropped. \return HDRT_OK, or what broke the recording. */
hdrt_status hdrt__graph_recording_end(struct hdrt__graph_recording *recording, bool keep);
/* Ended. \return its plan, the caller's. */
hdrt__plan *hdrt__graph_recording_destroy(struct hdrt__graph_recording *recording);
uint32_t hdrt__graph_recording_count(struct hdrt__graph_recording *recording);

/* Whether an operation of this kind can be recorded at all. \return HDRT_OK, HDRT_ERROR_UNSUPPORTED. */
hdrt_status hdrt__record_check(const char *function, hdrt__op_kind kind);
/* Always HDRT_ERROR_UNSUPPORTED. `what`: a kind of operation. */
hdrt_status hdrt__record_refuse(const char *function, const char *what);
/* Under no lock: if the queue is being recorded, what the caller enqueued on its stream himself becomes a node.
 * \return HDRT_OK, or what broke the recording. */
hdrt_status hdrt__record_cut(hdrt_queue *queue, const char *function);
/* Under the queue's lock: enqueue->recorded becomes a node, and what it has outside is given up. */
hdrt_status hdrt__record_operation(hdrt__enqueue *enqueue);
/* If the queue is being recorded: true, and the outcome. */
bool hdrt__record_wait(hdrt_queue *queue, hdrt_event event, hdrt_status *out_status);
bool hdrt__record_event(hdrt_queue *queue, hdrt_event *out_event);

static inline bool hdrt__is_recorded(const hdrt_queue *queue)
{
    return atomic_load_explicit(&queue->is_recorded, memory_order_relaxed);
}

#endif
