/* SPDX-License-Identifier: MIT */
#include "queue/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "jit/kernel.h"
#include "queue/foreign.h"

/* ---- making and ending ------------------------------------------------------------------------------------------- */

hdrt__plan *hdrt__plan_create(void)
{
    hdrt__plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        hdrt__fail_memory(sizeof *plan, "a graph's plan");
        return NULL;
    }
    atomic_init(&plan->references, 1);
    return plan;
}

void hdrt__plan_hold(hdrt__plan *plan)
{
    atomic_fetch_add_explicit(&plan->references, 1, memory_order_relaxed);
}

void hdrt__plan_drop(hdrt__plan *plan)
{
    if (!plan || atomic_fetch_sub_explicit(&plan->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (uint32_t i = 0; i < plan->count; i++) {
        if (plan->nodes[i].kind == HDRT__PLAN_LAUNCH) {
            free(plan->nodes[i].launch.parameters);
            hdrt__module_release(plan->nodes[i].launch.kernel->module);
        } else if (plan->nodes[i].kind == HDRT__PLAN_FOREIGN) {
            hdrt__foreign_drop(plan->nodes[i].foreign);
        }
    }
    free(plan->after);
    free(plan->nodes);
    free(plan);
}

/* A node's own copy of what it has outside. */
static bool copy_outside(hdrt__plan_node *node)
{
    if (node->kind == HDRT__PLAN_FOREIGN) {
        hdrt__foreign_hold(node->foreign);
    }
    if (node->kind != HDRT__PLAN_LAUNCH) {
        return true;
    }
    size_t bytes = node->launch.kernel->parameter_bytes;
    unsigned char *parameters = malloc(bytes ? bytes : 1);
    if (!parameters) {
        hdrt__fail_memory(bytes, "the arguments of a graph's launch");
        return false;
    }
    memcpy(parameters, node->launch.parameters, bytes);
    node->launch.parameters = parameters;
    hdrt__module_hold(node->launch.kernel->module);
    return true;
}

/* Room for one more node that comes after so many. */
static bool make_room(hdrt__plan *plan, uint32_t after_count)
{
    if (plan->count == plan->capacity) {
        uint32_t capacity = plan->capacity ? plan->capacity * 2 : 16;
        hdrt__plan_node *nodes = realloc(plan->nodes, capacity * sizeof *nodes);
        if (!nodes) {
            hdrt__fail_memory(capacity * sizeof *nodes, "a graph's nodes");
            return false;
        }
        plan->nodes = nodes;
        plan->capacity = capacity;
    }
    if (plan->after_capacity - plan->after_total < after_count) {
        uint32_t capacity = (plan->after_capacity ? plan->after_capacity * 2 : 16) + after_count;
        uint32_t *after = realloc(plan->after, capacity * sizeof *after);
        if (!after) {
            hdrt__fail_memory(capacity * sizeof *after, "a graph's dependencies");
            return false;
        }
        plan->after = after;
        plan->after_capacity = capacity;
    }
    return true;
}

hdrt__plan *hdrt__plan_copy(const hdrt__plan *plan)
{
    hdrt__plan *copy = hdrt__plan_create();
    if (!copy) {
        return NULL;
    }
    copy->topology = plan->topology;
    for (uint32_t i = 0; i < plan->count; i++) {
        hdrt__plan_node node = plan->nodes[i];
        if (!make_room(copy, node.after_count) || !copy_outside(&node)) {
            hdrt__plan_drop(copy);
            return NULL;
        }
        if (node.after_count) {
            memcpy(copy->after + copy->after_total, plan->after + node.after_first,
                   node.after_count * sizeof *plan->after);
        }
        node.after_first = copy->after_total;
        copy->after_total += node.after_count;
        copy->nodes[copy->count++] = node;
    }
    return copy;
}

/* ---- nodes from operations --------------------------------------------------------------------------------------- */

bool hdrt__plan_fill_from(hdrt__plan_fill *fill, hdrt_ptr dst, const void *pattern, uint32_t pattern_bytes,
                          uint64_t count)
{
    const unsigned char *bytes = pattern;
    uint16_t half;
    *fill = (hdrt__plan_fill){.dst = dst, .count = count, .element_bytes = pattern_bytes};
    switch (pattern_bytes) {
    case 1:
        fill->value = bytes[0];
        return true;
    case 2:
        memcpy(&half, bytes, sizeof half);
        fill->value = half;
        return true;
    default:
        memcpy(&fill->value, bytes, sizeof fill->value);
        fill->element_bytes = 4;
        fill->count = count * (pattern_bytes / 4); /* the bytes in all were checked to fit */
        break;
    }
    for (uint32_t i = 4; i < pattern_bytes; i += 4) {
        if (memcmp(bytes, bytes + i, 4) != 0) {
            return false;
        }
    }
    return true;
}

bool hdrt__plan_can_copy(const hdrt__region *region)
{
    return !region->dst_context || !region->src_context || region->dst_context == region->src_context;
}

static hdrt_status unsupported(const char *function, const char *what)
{
    return hdrt__fail(HDRT_ERROR_UNSUPPORTED, "%s: a graph records no %s: end the recording first", function, what);
}

static hdrt_status launch_node(hdrt__plan_node *node, const char *function, const hdrt__op *op)
{
    if (op->cooperative) {
        return unsupported(function, "cooperative launch");
    }
    node->kind = HDRT__PLAN_LAUNCH;
    node->launch.kernel = op->launch.kernel;
    node->launch.grid = op->launch.grid;
    node->launch.parameters = hdrt__op_parameters(op);
    return copy_outside(node) ? HDRT_OK : HDRT_ERROR_OUT_OF_MEMORY;
}

static hdrt_status copy_node(hdrt__plan_node *node, const char *function, const hdrt__op *op)
{
    uint64_t bytes = op->copy.bytes;
    bool from_host = op->detail == HDRT__COPY_HTOD, to_host = op->detail == HDRT__COPY_DTOH;
    if (op->detail == HDRT__COPY_PEER) {
        return unsupported(function, "copy between devices");
    }
    node->kind = HDRT__PLAN_COPY;
    node->copy = (hdrt__region){
        .width = bytes,
        .height = 1,
        .depth = 1,
        .dst = {to_host ? 0 : op->copy.dst, to_host ? op->copy.host : NULL, bytes, bytes},
        .src = {from_host ? 0 : op->copy.src, from_host ? op->copy.host : NULL, bytes, bytes},
        .pinned = from_host || to_host,
    };
    return HDRT_OK;
}

static hdrt_status fill_node(hdrt__plan_node *node, const char *function, const hdrt__op *op)
{
    node->kind = HDRT__PLAN_FILL;
    return hdrt__plan_fill_from(&node->fill, op->fill.dst, op->fill.pattern, op->fill.pattern_bytes, op->fill.count)
               ? HDRT_OK
               : unsupported(function, "fill with a pattern that does not repeat 4 bytes");
}

static hdrt_status node_from(hdrt__plan_node *node, const char *function, const hdrt__op *op)
{
    switch (op->kind) {
    case HDRT__OP_NOTHING:
        node->kind = HDRT__PLAN_NOTHING;
        return HDRT_OK;
    case HDRT__OP_LAUNCH:
        return launch_node(node, function, op);
    case HDRT__OP_COPY:
        return copy_node(node, function, op);
    case HDRT__OP_REGION:
        node->kind = HDRT__PLAN_COPY;
        node->copy = *op->region;
        return hdrt__plan_can_copy(&node->copy) ? HDRT_OK : unsupported(function, "copy between devices");
    case HDRT__OP_FILL:
        return fill_node(node, function, op);
    default:
        return unsupported(function, "such operation");
    }
}

static hdrt_status reserve(hdrt__plan *plan, const char *function, uint32_t after_count)
{
    if (plan->count == HDRT_GRAPH_NODES) {
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED, "%s: a graph has at most %u nodes: end this one and begin another",
                          function, HDRT_GRAPH_NODES);
    }
    return make_room(plan, after_count) ? HDRT_OK : HDRT_ERROR_OUT_OF_MEMORY;
}

/* There is room. */
static void append(hdrt__plan *plan, hdrt__plan_node *node, const uint32_t *after, uint32_t after_count)
{
    node->after_first = plan->after_total;
    node->after_count = after_count;
    if (after_count) {
        memcpy(plan->after + plan->after_total, after, after_count * sizeof *after);
    }
    plan->after_total += after_count;
    plan->nodes[plan->count++] = *node;
}

hdrt_status hdrt__plan_add(hdrt__plan *plan, const char *function, const hdrt__op *op, const uint32_t *after,
                           uint32_t after_count)
{
    hdrt__plan_node node = {.stamp = 0};
    hdrt_status status = reserve(plan, function, after_count);
    if (status == HDRT_OK) {
        status = node_from(&node, function, op);
    }
    if (status == HDRT_OK) {
        append(plan, &node, after, after_count);
    }
    return status;
}

hdrt_status hdrt__plan_add_foreign(hdrt__plan *plan, const char *function, hdrt__foreign *part, const uint32_t *after,
                                   uint32_t after_count)
{
    hdrt__plan_node node = {.kind = HDRT__PLAN_FOREIGN, .foreign = part};
    hdrt_status status = reserve(plan, function, after_count);
    if (status == HDRT_OK) {
        append(plan, &node, after, after_count);
    }
    return status;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

/* The driver lets a copy's addresses change, but not on which side the host is; and of captured work all but its shape. */
static bool same_shape(const hdrt__plan_node *a, const hdrt__plan_node *b)
{
    switch ((hdrt__plan_kind)a->kind) {
    case HDRT__PLAN_LAUNCH:
        /* A node that is set to another kernel keeps the clusters' shape of the one before (an H200, without an error). */
        return a->launch.kernel == b->launch.kernel ||
               (!a->launch.kernel->in_clusters && !b->launch.kernel->in_clusters);
    case HDRT__PLAN_COPY:
        return !a->copy.dst.host == !b->copy.dst.host && !a->copy.src.host == !b->copy.src.host;
    case HDRT__PLAN_FOREIGN:
        return a->foreign->shape == b->foreign->shape;
    default:
        return true;
    }
}

bool hdrt__plan_same_topology(const hdrt__plan *a, const hdrt__plan *b)
{
    if (a->count != b->count || a->after_total != b->after_total) {
        return false;
    }
    for (uint32_t i = 0; i < a->count; i++) {
        const hdrt__plan_node *x = &a->nodes[i], *y = &b->nodes[i];
        if (x->kind != y->kind || x->after_count != y->after_count || x->after_first != y->after_first ||
            !same_shape(x, y)) {
            return false;
        }
    }
    return a->after_total == 0 || memcmp(a->after, b->after, a->after_total * sizeof *a->after) == 0;
}

static bool same_side(const hdrt_region_side *a, const hdrt_region_side *b)
{
    return a->device == b->device && a->host == b->host && a->row_pitch == b->row_pitch &&
           a->slice_pitch == b->slice_pitch;
}

/* Padding between parameters is not theirs. */
static bool same_parameters(const hdrt__plan_node *a, const hdrt__plan_node *b)
{
    const hdrt_kernel *kernel = a->launch.kernel;
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        uint32_t offset = kernel->parameters[i].offset;
        if (memcmp(a->launch.parameters + offset, b->launch.parameters + offset, kernel->parameters[i].size) != 0) {
            return false;
        }
    }
    return true;
}

bool hdrt__plan_same_values(const hdrt__plan_node *a, const hdrt__plan_node *b)
{
    switch ((hdrt__plan_kind)a->kind) {
    case HDRT__PLAN_LAUNCH:
        return a->launch.kernel == b->launch.kernel &&
               memcmp(&a->launch.grid, &b->launch.grid, sizeof a->launch.grid) == 0 && same_parameters(a, b);
    case HDRT__PLAN_COPY:
        return a->copy.width == b->copy.width && a->copy.height == b->copy.height && a->copy.depth == b->copy.depth &&
               same_side(&a->copy.dst, &b->copy.dst) && same_side(&a->copy.src, &b->copy.src);
    case HDRT__PLAN_FILL:
        return a->fill.dst == b->fill.dst && a->fill.count == b->fill.count &&
               a->fill.element_bytes == b->fill.element_bytes && a->fill.value == b->fill.value;
    case HDRT__PLAN_FOREIGN:
        return a->foreign == b->foreign;
    case HDRT__PLAN_NOTHING:
        break;
    }
    return true;
}
