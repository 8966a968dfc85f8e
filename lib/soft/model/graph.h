/* SPDX-License-Identifier: MIT */
/*
 * Graphs: nodes with dependencies, and executable graphs, which are a list of tasks in an order that the dependencies
 * allow. All under the driver's lock.
 */
#ifndef HDSOFT_MODEL_GRAPH_H
#define HDSOFT_MODEL_GRAPH_H

#include "soft/model/driver.h"

struct CUgraphNode_st {
    hdsoft__graph *graph;
    unsigned type;          /* HDCU_GRAPH_NODE_TYPE_... */
    hdsoft__task *task;     /* NULL: an empty node or a child graph */
    hdsoft__graph *child;   /* the node's own copy */
    hdsoft__node **dependencies;
    size_t dependency_count;
    void **parameters;      /* what cuGraphKernelNodeGetParams points at */
    size_t mark;            /* scratch of a walk */
};

struct CUgraph_st {
    hdsoft__node **nodes;   /* in the order of their making */
    size_t count, capacity;
};

typedef struct hdsoft__exec_entry {
    const hdsoft__node *source; /* only compared; may be gone */
    hdsoft__task *task;
    bool enabled;
} hdsoft__exec_entry;

struct CUgraphExec_st {
    hdsoft__exec_entry *entries; /* in an order that every dependency allows */
    size_t count;
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
int hdsoft__graph_depend(hdsoft__node *node, hdsoft__node *dependency);
int hdsoft__graph_undepend(hdsoft__node *node, const hdsoft__node *dependency);
void hdsoft__node_set_task(hdsoft__node *node, hdsoft__task *task);

/* 0; 1 (a cycle); 2. */
int hdsoft__exec_create(hdsoft__graph *graph, hdsoft__exec **out);
void hdsoft__exec_destroy(hdsoft__exec *exec);
hdsoft__exec_entry *hdsoft__exec_find(hdsoft__exec *exec, const hdsoft__node *node);
/* Take over another graph's tasks if the shapes agree. *result is a HDCU_GRAPH_EXEC_UPDATE_...; 0, 2 or 910. */
int hdsoft__exec_update(hdsoft__exec *exec, hdsoft__graph *graph, unsigned *result, hdsoft__node **at);
int hdsoft__exec_launch(hdsoft__exec *exec, hdsoft__stream *stream);

#endif
