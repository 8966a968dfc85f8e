/* SPDX-License-Identifier: MIT */
/*
 * One sequence of kernels as a graph, and its instances: the driver's side of the template cache. A sequence has the
 * graph, whose nodes are named when an instance is refilled; each instance is an exec of its own and remembers what its
 * nodes hold, so that only what differs is set again. In an open one that may be other kernels each time.
 *
 * Called by template.c only, inside the device's scope, without its lock: whoever has taken an instance or is building
 * one has it alone. The links belong to the tables and are guarded by their lock.
 */
#ifndef HDRT_QUEUE_TEMPLATE_SEQUENCE_H
#define HDRT_QUEUE_TEMPLATE_SEQUENCE_H

#include "device/device.h"
#include "queue/template.h"

typedef enum hdrt__template_kind {
    HDRT__TEMPLATE_CHAIN, /* these kernels, one after the other */
    HDRT__TEMPLATE_OPEN,  /* so many, whichever, one after the other */
    HDRT__TEMPLATE_WIDE,  /* so many of one kernel, independent of each other */
    HDRT__TEMPLATE_RINGING, /* this kernel alone, and then a write of the number */
    HDRT__TEMPLATE_KINDS
} hdrt__template_kind;

typedef struct hdrt__template_sequence hdrt__template_sequence;

typedef struct hdrt__template_instance {
    hdrt__template_sequence *sequence;
    struct hdrt__template_instance *next;          /* of the sequence, the last used first */
    struct hdrt__template_instance *newer, *older; /* by last use, of the cache */
    hdcu_graph_exec exec;
    uint64_t rings;  /* of a ringing one: the number that it is set to write, into this word */
    hdcu_pointer word;
    uint32_t index;  /* stream of the last launch */
    uint64_t number; /* and its number there; 0: never launched */
    uint32_t used_at; /* the table's clock then, or when it was built */
    bool taken;      /* a committer has it */
    bool filled;     /* values and grids are what the nodes hold */
    uint32_t enabled; /* nodes that run, the first ones: of a wide one perhaps not all */
    hdrt_kernel **kernels; /* what the nodes hold: the sequence's, or of an open one its own */
    bool open;             /* so these are its own */
    uint32_t held;         /* of which the first so many have a hold of their modules */
    hdrt_grid *grids;
    unsigned char *values; /* of all nodes' parameters, node i's at sequence->offsets[i], if there is room for them */
} hdrt__template_instance;

struct hdrt__template_sequence {
    hdrt__template_sequence *next; /* in its bucket, or of those to release */
    uint64_t key;
    uint32_t count;
    hdrt__template_kind kind;
    bool branches; /* of a wide one each node is a branch; else it follows the one before it in launch order */
    bool refuses_order; /* which the driver did not take */
    bool leaving; /* not to be used any more */
    bool building; /* a committer makes an instance; one at a time, for the graph takes no two calls at once */
    uint32_t takers; /* committers that have an instance of it or make one */
    int64_t saves_ns; /* by each launch of all of it */
    hdrt__template_instance *instances;
    hdcu_graph graph;
    hdcu_graph_node *nodes;
    hdcu_graph_node ringing; /* of a ringing one: the write */
    hdrt_kernel **kernels; /* what the graph's nodes hold, each with a hold of its module */
    size_t *offsets;       /* count + 1 */
};

/* So often a node that held another kernel may be refused this one, until it is in no such node any more. */
#define HDRT__TEMPLATE_CHANGES_REFUSED 3u

/* Whether the kernel's node may be another's before or after: what is set anew is its function, and not, say, the shape of
 * its clusters, which stays the first one's (on an H200, without an error). */
static inline bool hdrt__template_may_be_open(const hdrt_kernel *kernel)
{
    return !kernel->in_clusters && kernel->single.refused_changes < HDRT__TEMPLATE_CHANGES_REFUSED;
}

/* The sequence of these launches, of a wide one of so many like the first, without a graph yet. Holds their modules. NULL:
 * no memory. No driver call. */
hdrt__template_sequence *hdrt__template_sequence_create(const hdrt__run_launch *launches, uint32_t count, uint64_t key,
                                                        hdrt__template_kind kind);
bool hdrt__template_sequence_is(const hdrt__template_sequence *sequence, const hdrt__run_launch *launches,
                                uint32_t count, hdrt__template_kind kind);
/* Whether nodes hold code that nobody but templates does: of the sequence's graph, and of an instance, which is not taken. */
bool hdrt__template_sequence_is_unwanted(const hdrt__template_sequence *sequence);
bool hdrt__template_instance_is_unwanted(const hdrt__template_instance *instance);
/* Destroy the graph; `driver` NULL: the device is lost, call nothing. The modules stay held. */
void hdrt__template_sequence_end(hdrt__template_sequence *sequence, const hdrt__driver_table *driver);
/* Release the modules and free it, once it was ended and has no instances. Not under a lock. */
void hdrt__template_sequence_release(hdrt__template_sequence *sequence);

/* An instance of the sequence for `count` launches in this place, whose graph is made from these if there is none yet. A wide
 * one may have more nodes. NULL: no memory, or the driver refused. It is in no list. *left as hdrt__template_instance_fill. */
hdrt__template_instance *hdrt__template_instance_create(hdrt__template_sequence *sequence,
                                                        const hdrt__driver_table *driver, const hdrt__run_place *place,
                                                        const hdrt__run_launch *launches, uint32_t count,
                                                        hdrt_kernel **left);
/* Not in flight, or the device is lost (`driver` NULL). The modules stay held. */
void hdrt__template_instance_end(hdrt__template_instance *instance, const hdrt__driver_table *driver);
/* Release the modules and free it, once it was ended; its sequence may be gone. Not under a lock. */
void hdrt__template_instance_release(hdrt__template_instance *instance);

/* Set what differs from the launches. In failure the instance is as good as before, and *refused the launch that it was
 * about. Kernels whose modules are only held by what was a node's come before *left, a list by single.left. */
hdrt__call hdrt__template_instance_fill(hdrt__template_instance *instance, const hdrt__driver_table *driver,
                                        const hdrt__run_launch *launches, uint32_t count, uint32_t *refused,
                                        hdrt_kernel **left);
/* Let a ringing one write the place's number into its word. */
hdrt__call hdrt__template_instance_ring(hdrt__template_instance *instance, const hdrt__driver_table *driver,
                                        const hdrt__run_place *place);
/* Let the first `count` nodes be what runs. In failure it is not good for anything any more. */
hdrt__call hdrt__template_instance_enable(hdrt__template_instance *instance, const hdrt__driver_table *driver,
                                          uint32_t count);

#endif
