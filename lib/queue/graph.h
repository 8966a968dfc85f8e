/* SPDX-License-Identifier: MIT */
/*
 * Explicit graphs. A graph has a plan (plan.h), which a recording (record.h) makes and updates change, and instances
 * (graph_instance.h) that replays are launched by. A replay keeps the plan of its moment: changing the graph then
 * copies the plan first. Callers: the public functions (graph.c, graph_update.c) and whoever commits a replay.
 *
 *     IDLE --begin--> RECORDING --end--> BUILDING --built, or not--> IDLE
 *
 * Instances are built by who enqueues: one, and another while a replay of another queue may be in flight. Who commits
 * takes one for the moment of its driver calls: best the one that was last in the same stream, then one that is
 * complete, then the oldest; if it is in flight, the driver lets its next launch wait for it. Those of older
 * topologies go when they are complete.
 *
 * References: the caller's, and each queue's for replays. The last one ends it, under no lock.
 *
 * Lock: `lock` is taken under a queue's or a stream's lock; under it are only the timelines'. No driver call.
 */
#ifndef HDRT_QUEUE_GRAPH_H
#define HDRT_QUEUE_GRAPH_H

#include <pthread.h>
#include <stdatomic.h>

#include <hdrt.h>

#include "queue/graph_instance.h"
#include "queue/plan.h"
#include "queue/queue.h"

struct hdrt__graph_recording;

/* Instances of a topology that are made because others are in flight. */
#define HDRT__GRAPH_INSTANCES 4u

typedef enum hdrt__graph_state {
    HDRT__GRAPH_IDLE,
    HDRT__GRAPH_RECORDING,
    HDRT__GRAPH_BUILDING,
} hdrt__graph_state;

struct hdrt_graph {
    atomic_uint references;
    hdrt_device *device; /* held */
    char *name;
    pthread_mutex_t lock;
    /* Under lock: */
    hdrt__graph_state state;
    struct hdrt__graph_recording *recording; /* RECORDING */
    hdrt__plan *plan;
    uint64_t stamps, topologies, turns; /* the last numbers given out */
    hdrt__graph_instance *instances;
    hdrt_event last; /* of the newest replay */
};

/* The beginning of public functions: NULL, forked, lost. */
hdrt_status hdrt__graph_begin_call(hdrt_graph *graph, const char *function);
void hdrt__graph_hold(hdrt_graph *graph);
/* Under no lock. */
void hdrt__graph_drop(hdrt_graph *graph);

/* As who enqueues, under no lock: see that there is an instance for the plan. Enters the scope itself. `queue`: where
 * it is to be replayed, NULL: nowhere yet. */
hdrt_status hdrt__graph_provide(hdrt_graph *graph, const hdrt__plan *plan, const hdrt_queue *queue);
/* The plan becomes the graph's, with stamps, and a topology if it has another. The caller's hold goes with it.
 * \return the old one, to be dropped. Under the graph's lock. */
hdrt__plan *hdrt__graph_take_plan(hdrt_graph *graph, hdrt__plan *plan);
/* Give a plan that is not yet the graph's its stamps and topology. Under the graph's lock. */
void hdrt__graph_stamp(hdrt_graph *graph, hdrt__plan *plan);

/* Launch a replay: under the stream's commit lock. As hdrt__op_hand_over. */
hdrt_status hdrt__graph_hand_over(hdrt_queue *queue, hdrt__stream *stream, const hdrt__op *op, uint64_t position,
                                  uint32_t *out_commands);

#endif
