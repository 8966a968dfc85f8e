/* SPDX-License-Identifier: MIT */
/* Changing nodes of explicit graphs, for replays enqueued later. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "jit/kernel.h"
#include "queue/check.h"
#include "queue/graph.h"

/* A change: between begin and end the graph's lock is held, and the plan is nobody else's. */
typedef struct change {
    hdrt_graph *graph;
    hdrt__plan_node *node;
} change;

static const char *const kind_names[] = {"nothing", "a launch", "a copy", "a fill", "the caller's own work"};

/* Under the graph's lock. */
static hdrt_status check_node(const hdrt_graph *graph, uint32_t number, hdrt__plan_kind kind, const char *function)
{
    if (graph->state != HDRT__GRAPH_IDLE) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s: graph '%s' is being recorded: end that first", function,
                          graph->name);
    }
    if (number >= graph->plan->count) {
        return hdrt__fail(HDRT_ERROR_NOT_FOUND, "%s: graph '%s' has %u nodes, counted from 0: there is no node %u",
                          function, graph->name, graph->plan->count, number);
    }
    if (graph->plan->nodes[number].kind != kind) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s: node %u of graph '%s' is %s", function, number, graph->name,
                          kind_names[graph->plan->nodes[number].kind]);
    }
    return HDRT_OK;
}

/* On HDRT_OK the graph's lock is held. *out_old: to be dropped after hdrt__change_end. */
static hdrt_status change_begin(change *of, hdrt_graph *graph, uint32_t number, hdrt__plan_kind kind,
                                const char *function, hdrt__plan **out_old)
{
    *out_old = NULL;
    pthread_mutex_lock(&graph->lock);
    hdrt_status status = check_node(graph, number, kind, function);
    if (status == HDRT_OK && atomic_load(&graph->plan->references) > 1) {
        hdrt__plan *copy = hdrt__plan_copy(graph->plan); /* replays go on with the old one */
        if (copy) {
            *out_old = hdrt__graph_take_plan(graph, copy);
        } else {
            status = HDRT_ERROR_OUT_OF_MEMORY;
        }
    }
    if (status != HDRT_OK) {
        pthread_mutex_unlock(&graph->lock);
        return status;
    }
    *of = (change){graph, &graph->plan->nodes[number]};
    return HDRT_OK;
}

static void change_end(change *of, hdrt__plan *old)
{
    of->node->stamp = ++of->graph->stamps;
    pthread_mutex_unlock(&of->graph->lock);
    hdrt__plan_drop(old);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* The kernel of a launch, with a hold of its module, and its grid. */
static hdrt_status look_at_launch(hdrt_graph *graph, uint32_t number, hdrt_kernel **out_kernel, hdrt_grid *out_grid)
{
    pthread_mutex_lock(&graph->lock);
    hdrt_status status = check_node(graph, number, HDRT__PLAN_LAUNCH, "hdrt_graph_set_launch");
    if (status == HDRT_OK) {
        *out_kernel = graph->plan->nodes[number].launch.kernel;
        *out_grid = graph->plan->nodes[number].launch.grid;
        hdrt__module_hold((*out_kernel)->module);
    }
    pthread_mutex_unlock(&graph->lock);
    return status;
}

static hdrt_status change_launch(hdrt_graph *graph, uint32_t number, const hdrt_kernel *kernel, const hdrt_grid *grid,
                                 const hdrt_args *args)
{
    change of;
    hdrt__plan *old;
    hdrt_status status = change_begin(&of, graph, number, HDRT__PLAN_LAUNCH, "hdrt_graph_set_launch", &old);
    if (status != HDRT_OK) {
        return status;
    }
    if (of.node->launch.kernel != kernel) { /* another thread has recorded it anew */
        pthread_mutex_unlock(&graph->lock);
        hdrt__plan_drop(old);
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "hdrt_graph_set_launch: node %u of graph '%s' was just recorded anew",
                          number, graph->name);
    }
    of.node->launch.grid = *grid;
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        memcpy(of.node->launch.parameters + kernel->parameters[i].offset, args->pointers[i],
               kernel->parameters[i].size);
    }
    change_end(&of, old);
    return HDRT_OK;
}

hdrt_status hdrt_graph_set_launch(hdrt_graph *graph, uint32_t node, const hdrt_grid *grid, hdrt_args args)
{
    hdrt_kernel *kernel;
    hdrt_grid whole;
    hdrt_status status = hdrt__graph_begin_call(graph, "hdrt_graph_set_launch");
    if (status == HDRT_OK) {
        status = look_at_launch(graph, node, &kernel, &whole);
    }
    if (status != HDRT_OK) {
        return status;
    }
    whole = grid ? *grid : whole;
    if (!whole.grid[0] || !whole.grid[1] || !whole.grid[2]) {
        status = hdrt__fail(HDRT_ERROR_LAUNCH,
                            "hdrt_graph_set_launch: kernel '%s': a grid of (%u,%u,%u) blocks has a zero: a node of a "
                            "graph cannot be made to do nothing",
                            kernel->name, whole.grid[0], whole.grid[1], whole.grid[2]);
    } else {
        status = hdrt__check_launch(graph->device, kernel, &whole, args.pointers, args.kinds, args.count);
    }
    if (status == HDRT_OK) {
        status = change_launch(graph, node, kernel, &whole, &args);
    }
    hdrt__module_release(kernel->module);
    return status;
}

/* ---- copies and fills -------------------------------------------------------------------------------------------- */

static hdrt_status check_copy(hdrt_graph *graph, hdrt__region *box)
{
    if (!box->width || !box->height || !box->depth) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "hdrt_graph_set_copy: %llu x %llu x %llu bytes: a node of a graph cannot be made to do "
                          "nothing",
                          (unsigned long long)box->width, (unsigned long long)box->height,
                          (unsigned long long)box->depth);
    }
    hdrt_status status = hdrt__check_region(graph->device, box);
    if (status == HDRT_OK && (box->dst.host || box->src.host) && !box->pinned) {
        status = hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                            "hdrt_graph_set_copy: host memory at %p is not pinned: graphs copy pinned memory only",
                            box->dst.host ? box->dst.host : box->src.host);
    }
    if (status == HDRT_OK && !hdrt__plan_can_copy(box)) {
        status = hdrt__fail(HDRT_ERROR_UNSUPPORTED, "hdrt_graph_set_copy: a graph holds no copies between devices");
    }
    return status;
}

hdrt_status hdrt_graph_set_copy(hdrt_graph *graph, uint32_t node, const hdrt_region_side *dst,
                                const hdrt_region_side *src, uint64_t width, uint64_t height, uint64_t depth)
{
    change of;
    hdrt__plan *old;
    hdrt_status status = hdrt__graph_begin_call(graph, "hdrt_graph_set_copy");
    if (status == HDRT_OK && (!dst || !src)) {
        status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_graph_set_copy: a side is NULL");
    }
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__region box = {.width = width, .height = height, .depth = depth, .dst = *dst, .src = *src};
    status = check_copy(graph, &box);
    if (status == HDRT_OK) {
        status = change_begin(&of, graph, node, HDRT__PLAN_COPY, "hdrt_graph_set_copy", &old);
    }
    if (status != HDRT_OK) {
        return status;
    }
    if (!of.node->copy.dst.host != !box.dst.host || !of.node->copy.src.host != !box.src.host) {
        graph->plan->topology = ++graph->topologies; /* which side is the host cannot be set */
    }
    of.node->copy = box;
    change_end(&of, old);
    return HDRT_OK;
}

hdrt_status hdrt_graph_set_fill(hdrt_graph *graph, uint32_t node, hdrt_ptr dst, const void *pattern,
                                uint32_t pattern_bytes, uint64_t count)
{
    change of;
    hdrt__plan *old;
    hdrt__plan_fill fill;
    hdrt_status status = hdrt__graph_begin_call(graph, "hdrt_graph_set_fill");
    if (status == HDRT_OK) {
        status = hdrt__check_fill(graph->device, dst, pattern, pattern_bytes, count);
    }
    if (status == HDRT_OK && !count) {
        status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                            "hdrt_graph_set_fill: a count of 0: a node of a graph cannot be made to do nothing");
    }
    if (status == HDRT_OK && !hdrt__plan_fill_from(&fill, dst, pattern, pattern_bytes, count)) {
        status = hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                            "hdrt_graph_set_fill: a graph holds no fill with a pattern that does not repeat 4 bytes");
    }
    if (status == HDRT_OK) {
        status = change_begin(&of, graph, node, HDRT__PLAN_FILL, "hdrt_graph_set_fill", &old);
    }
    if (status != HDRT_OK) {
        return status;
    }
    of.node->fill = fill;
    change_end(&of, old);
    return HDRT_OK;
}
