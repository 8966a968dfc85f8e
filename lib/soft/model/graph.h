/* SPDX-License-Identifier: MIT */
/*
 * Graphs: nodes with dependencies, and executable graphs, which are a list of tasks and who waits for whom. All under
 * the driver's lock.
 */
#ifndef HDSOFT_MODEL_GRAPH_H
#define HDSOFT_MODEL_GRAPH_H

#include "soft/model/driver.h"

typedef struct hdsoft__edge {
    hdsoft__node *from;
    bool in_launch_order; /* it need only have begun */
} hdsoft__edge;

struct CUgraphNode_st {
    hdsoft__graph *graph;
    unsigned type;          /* HDCU_GRAPH_NODE_TYPE_... */
    hdsoft__task *task;     /* NULL: an empty node or a child graph */
    hdsoft__graph *child;   /* the node's own copy */
    hdsoft__edge *dependencies;
    size_t dependency_count;
    void **parameters;      /* what cuGraphKernelNodeGetParams points at */
    size_t mark;            /* scratch of a walk */
};

struct CUgraph_st {
    hdsoft__node **nodes;   /* in the order of their making */
    size_t count, capacity;
};

/* Which place waits for which; places as in an exec's entries. Shared by the exec and its launches in flight. */
struct hdsoft__precedence {
    unsigned references;
    uint32_t count;
    uint32_t *waits;         /* for each place: how many others come before it */
    uint32_t *first;         /* for each place, and one more: where its followers begin */
    uint32_t *followers;     /* with HDSOFT__IN_LAUNCH_ORDER: once it has begun, not once it is done */
};

#define HDSOFT__IN_LAUNCH_ORDER (UINT32_C(1) << 31)

typedef struct hdsoft__exec_entry {
    const hdsoft__node *source; /* only compared; may be gone */
    hdsoft__task *task;
    bool enabled;
} hdsoft__exec_entry;

struct CUgraphExec_st {
    hdsoft__exec_entry *entries; /* in an order that every dependency allows */
    size_t count;
    hdsoft__precedence *order;
    uint32_t *edges;             /* pairs: place, place that waits for it as in `followers`; until the order is made of them */
    size_t edge_count;
    size_t *shape;               /* types and dependencies, by which an update is judged */
    size_t shape_count;
};

hdsoft__graph *hdsoft__graph_create(void);               /* NULL: out of memory */
void hdsoft__graph_destroy(hdsoft__graph *graph);        /* NULL is fine */
/* Add a node; takes `task` over, in failure too. NULL: out of memory. */
hdsoft__node *hdsoft__graph_add(hdsoft__graph *graph, unsigned type, hdsoft__task *task,
                                hdsoft__node *const *dependencies, size_t count);
void hdsoft__graph_remove(hdsoft__node *node);
int hdsoft__graph_clone(const hdsoft__graph *graph, hdsoft__graph **out);
/* Add `dependency` to `node`: 0, 1 (there already, itself, or of another graph), 2. */
int hdsoft__graph_depend(hdsoft__node *node, hdsoft__edge dependency);
int hdsoft__graph_undepend(hdsoft__node *node, const hdsoft__node *dependency);
void hdsoft__node_set_task(hdsoft__node *node, hdsoft__task *task);

/* 0; 1 (a cycle); 2. */
int hdsoft__exec_create(hdsoft__graph *graph, hdsoft__exec **out);
void hdsoft__exec_destroy(hdsoft__exec *exec);
hdsoft__exec_entry *hdsoft__exec_find(hdsoft__exec *exec, const hdsoft__node *node);
/* Take over another graph's tasks if the shapes agree. *result is a HDCU_GRAPH_EXEC_UPDATE_...; 0, 2 or 910. */
int hdsoft__exec_update(hdsoft__exec *exec, hdsoft__graph *graph, unsigned *result, hdsoft__node **at);
/* The same for the part of it that came from a child graph's node; `entry` is that node's. 0, 2 or 910. */
int hdsoft__exec_update_child(hdsoft__exec *exec, hdsoft__exec_entry *entry, hdsoft__graph *before,
                              hdsoft__graph *after);
int hdsoft__exec_launch(hdsoft__exec *exec, hdsoft__stream *stream);
void hdsoft__precedence_release(hdsoft__precedence *order); /* NULL is fine */

#endif
