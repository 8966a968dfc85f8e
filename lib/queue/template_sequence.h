/* SPDX-License-Identifier: MIT */
/*
 * One sequence of kernels as a graph, and its instances: the driver's side of the template cache. A sequence has the
 * graph, whose nodes are named when an instance is refilled; each instance is an exec of its own and remembers what its
 * nodes hold, so that only what differs is set again.
 *
 * Called by template.c only, inside the device's scope, without its lock: whoever has taken an instance or is building
 * one has it alone. The links belong to the tables and are guarded by their lock.
 */
#ifndef HDRT_QUEUE_TEMPLATE_SEQUENCE_H
#define HDRT_QUEUE_TEMPLATE_SEQUENCE_H

#include "device/device.h"
#include "queue/template.h"

typedef struct hdrt__template_sequence hdrt__template_sequence;

typedef struct hdrt__template_instance {
    hdrt__template_sequence *sequence;
    struct hdrt__template_instance *next;          /* of the sequence, the last used first */
    struct hdrt__template_instance *newer, *older; /* by last use, of the cache */
    hdcu_graph_exec exec;
    uint32_t index;  /* stream of the last launch */
    uint64_t number; /* and its number there; 0: never launched */
    bool taken;      /* a committer has it */
    bool filled;     /* values and grids are what the nodes hold */
    uint32_t enabled; /* nodes that run, the first ones: of a wide one perhaps not all */
    hdrt_grid *grids;
    unsigned char *values; /* of all nodes' parameters, node i's at sequence->offsets[i] */
} hdrt__template_instance;

struct hdrt__template_sequence {
    hdrt__template_sequence *next; /* in its bucket, or of those to release */
    uint64_t key;
    uint32_t count;
    bool wide;     /* the nodes are independent of each other */
    bool branches; /* and so they are in the graph; else each follows the one before it in launch order */
    bool refuses_order; /* which the driver did not take */
    bool leaving; /* not to be used any more */
    bool building; /* a committer makes an instance; one at a time, for the graph takes no two calls at once */
    uint32_t takers; /* committers that have an instance of it or make one */
    hdrt__template_instance *instances;
    hdcu_graph graph;
    hdcu_graph_node *nodes;
    hdrt_kernel **kernels; /* each with a hold of its module */
    size_t *offsets;             /* count + 1 */
};

/* The sequence of these launches, of a wide one of so many like the first, without a graph yet. Holds their modules. NULL:
 * no memory. No driver call. */
hdrt__template_sequence *hdrt__template_sequence_create(const hdrt__run_launch *launches, uint32_t count, uint64_t key,
                                                        bool wide);
bool hdrt__template_sequence_is(const hdrt__template_sequence *sequence, const hdrt__run_launch *launches,
                                uint32_t count, bool wide);
bool hdrt__template_sequence_uses(const hdrt__template_sequence *sequence, const hdrt_module *module);
/* Destroy the graph; `driver` NULL: the device is lost, call nothing. The modules stay held. */
void hdrt__template_sequence_end(hdrt__template_sequence *sequence, const hdrt__driver_table *driver);
/* Release the modules and free it, once it was ended and has no instances. Not under a lock. */
void hdrt__template_sequence_release(hdrt__template_sequence *sequence);

/* An instance of the sequence for `count` launches, whose graph is made from these if there is none yet. A wide one may have
 * more nodes. NULL: no memory, or the driver refused. It is in no list. */
hdrt__template_instance *hdrt__template_instance_create(hdrt__template_sequence *sequence,
                                                        const hdrt__driver_table *driver,
                                                        const hdrt__run_launch *launches, uint32_t count);
/* Not in flight, or the device is lost (`driver` NULL). */
void hdrt__template_instance_destroy(hdrt__template_instance *instance, const hdrt__driver_table *driver);

/* Set what differs from the launches. In failure the instance is as good as before. */
hdrt__call hdrt__template_instance_fill(hdrt__template_instance *instance, const hdrt__driver_table *driver,
                                        const hdrt__run_launch *launches, uint32_t count);
/* Let the first `count` nodes be what runs. In failure it is not good for anything any more. */
hdrt__call hdrt__template_instance_enable(hdrt__template_instance *instance, const hdrt__driver_table *driver,
                                          uint32_t count);

#endif
