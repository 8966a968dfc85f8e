/* SPDX-License-Identifier: MIT */
/*
 * Plans: what an explicit graph does, as data. A plan is built node by node by a recording (record.h), belongs to a
 * graph (graph.h), and is what a replay keeps until it is over. Shared plans never change: whoever wants another
 * value copies first. No driver call is made here but by the last release of modules and captured work.
 *
 * A node's stamp changes with its values, so that an instance knows which of its nodes to set; two plans of the same
 * topology have nodes of the same kinds that come after the same ones.
 */
#ifndef HDRT_QUEUE_PLAN_H
#define HDRT_QUEUE_PLAN_H

#include <stdatomic.h>

#include <hdrt.h>

#include "queue/op.h"
#include "queue/region.h"

struct hdrt__foreign;

typedef enum hdrt__plan_kind {
    HDRT__PLAN_NOTHING,
    HDRT__PLAN_LAUNCH,
    HDRT__PLAN_COPY,
    HDRT__PLAN_FILL,
    HDRT__PLAN_FOREIGN,
} hdrt__plan_kind;

typedef struct hdrt__plan_fill {
    hdrt_ptr dst;
    uint64_t count; /* of elements */
    uint32_t element_bytes; /* 1, 2 or 4 */
    uint32_t value;
} hdrt__plan_fill;

typedef struct hdrt__plan_node {
    uint8_t kind; /* an hdrt__plan_kind */
    uint32_t after_first, after_count; /* in the plan's `after` */
    uint64_t stamp;
    union {
        struct {
            hdrt_kernel *kernel; /* its module is held */
            unsigned char *parameters; /* malloc'ed, kernel->parameter_bytes */
            hdrt_grid grid;
        } launch;
        hdrt__region copy;
        hdrt__plan_fill fill;
        struct hdrt__foreign *foreign; /* held */
    };
} hdrt__plan_node;

typedef struct hdrt__plan {
    atomic_uint references;
    uint64_t topology; /* a number of the graph's */
    hdrt__plan_node *nodes;
    uint32_t count, capacity;
    uint32_t *after; /* numbers of nodes, each below its own node's */
    uint32_t after_total, after_capacity;
} hdrt__plan;

/* An empty one. NULL with a message if there is no memory. */
hdrt__plan *hdrt__plan_create(void);
/* One of the caller's with the same nodes. NULL with a message if there is no memory. */
hdrt__plan *hdrt__plan_copy(const hdrt__plan *plan);
void hdrt__plan_hold(hdrt__plan *plan);
/* Under no lock: modules may be unloaded, and captured work destroyed. NULL accepted. */
void hdrt__plan_drop(hdrt__plan *plan);

/*
 * Add a node for an operation that comes after the `after_count` nodes. The operation stays the caller's. \return
 * HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY, HDRT_ERROR_UNSUPPORTED (with the words `function`), and then nothing was added.
 */
hdrt_status hdrt__plan_add(hdrt__plan *plan, const char *function, const hdrt__op *op, const uint32_t *after,
                           uint32_t after_count);

/* The same for a part of the caller's own work. On HDRT_OK the caller's hold goes with it. */
hdrt_status hdrt__plan_add_foreign(hdrt__plan *plan, const char *function, struct hdrt__foreign *part,
                                   const uint32_t *after, uint32_t after_count);

/* A fill as one node does it. \return false: the pattern is longer than 4 bytes and does not repeat them. */
bool hdrt__plan_fill_from(hdrt__plan_fill *fill, hdrt_ptr dst, const void *pattern, uint32_t pattern_bytes,
                          uint64_t count);
/* Whether a region's copy is one that a node does: within one device. */
bool hdrt__plan_can_copy(const hdrt__region *region);

bool hdrt__plan_same_topology(const hdrt__plan *a, const hdrt__plan *b);
/* Whether two nodes of the same kind do the same. */
bool hdrt__plan_same_values(const hdrt__plan_node *a, const hdrt__plan_node *b);

#endif
