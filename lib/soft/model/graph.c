/* SPDX-License-Identifier: MIT */
#include "soft/model/graph.h"

#include <stdlib.h>
#include <string.h>

hdsoft__graph *hdsoft__graph_create(void)
{
    return calloc(1, sizeof(hdsoft__graph));
}

static void free_node(hdsoft__node *node)
{
    hdsoft__handle_remove(node);
    hdsoft__task_release(node->task);
    hdsoft__graph_destroy(node->child);
    free(node->dependencies);
    free(node->parameters);
    free(node);
}

void hdsoft__graph_destroy(hdsoft__graph *graph)
{
    if (!graph)
        return;
    hdsoft__handle_remove(graph);
    for (size_t i = 0; i < graph->count; i++)
        free_node(graph->nodes[i]);
    free(graph->nodes);
    free(graph);
}

static bool reserve(hdsoft__graph *graph)
{
    if (graph->count < graph->capacity)
        return true;
    size_t capacity = graph->capacity ? 2 * graph->capacity : 16;
    hdsoft__node **grown = realloc(graph->nodes, capacity * sizeof *grown);
    if (!grown)
        return false;
    graph->nodes = grown;
    graph->capacity = capacity;
    return true;
}

hdsoft__node *hdsoft__graph_add(hdsoft__graph *graph, unsigned type, hdsoft__task *task,
                                hdsoft__node *const *dependencies, size_t count)
{
    hdsoft__node *node = reserve(graph) ? calloc(1, sizeof *node) : NULL;
    if (!node)
        goto release_task;
    node->dependencies = malloc(count * sizeof *node->dependencies + 1);
    if (!node->dependencies || !hdsoft__handle_add(node, HDSOFT__NODE))
        goto free_node;
    for (size_t i = 0; i < count; i++)
        node->dependencies[i] = (hdsoft__edge){dependencies[i], false};
    node->dependency_count = count;
    node->graph = graph;
    node->type = type;
    node->task = task;
    graph->nodes[graph->count++] = node;
    return node;

free_node:
    free(node->dependencies);
    free(node);
release_task:
    hdsoft__task_release(task);
    return NULL;
}

int hdsoft__graph_undepend(hdsoft__node *node, const hdsoft__node *dependency)
{
    for (size_t i = 0; i < node->dependency_count; i++) {
        if (node->dependencies[i].from == dependency) {
            node->dependency_count--;
            memmove(node->dependencies + i, node->dependencies + i + 1,
                    (node->dependency_count - i) * sizeof *node->dependencies);
            return 0;
        }
    }
    return HDCU_ERROR_INVALID_VALUE;
}

void hdsoft__graph_remove(hdsoft__node *node)
{
    hdsoft__graph *graph = node->graph;
    size_t kept = 0;
    for (size_t i = 0; i < graph->count; i++) {
        if (graph->nodes[i] == node)
            continue;
        hdsoft__graph_undepend(graph->nodes[i], node);
        graph->nodes[kept++] = graph->nodes[i];
    }
    graph->count = kept;
    free_node(node);
}

int hdsoft__graph_depend(hdsoft__node *node, hdsoft__edge dependency)
{
    if (node == dependency.from || node->graph != dependency.from->graph)
        return HDCU_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < node->dependency_count; i++) {
        if (node->dependencies[i].from == dependency.from)
            return HDCU_ERROR_INVALID_VALUE;
    }
    hdsoft__edge *grown = realloc(node->dependencies, (node->dependency_count + 1) * sizeof *grown);
    if (!grown)
        return HDCU_ERROR_OUT_OF_MEMORY;
    node->dependencies = grown;
    grown[node->dependency_count++] = dependency;
    return 0;
}

void hdsoft__node_set_task(hdsoft__node *node, hdsoft__task *task)
{
    hdsoft__task_release(node->task);
    node->task = task;
    free(node->parameters);
    node->parameters = NULL;
}

int hdsoft__graph_clone(const hdsoft__graph *graph, hdsoft__graph **out)
{
    hdsoft__graph *copy = hdsoft__graph_create();
    int status = copy ? 0 : HDCU_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; !status && i < graph->count; i++) {
        hdsoft__node *node = graph->nodes[i], *twin;
        node->mark = i;
        twin = hdsoft__graph_add(copy, node->type, node->task ? hdsoft__task_hold(node->task) : NULL, NULL, 0);
        status = twin ? 0 : HDCU_ERROR_OUT_OF_MEMORY;
        if (!status && node->child)
            status = hdsoft__graph_clone(node->child, &twin->child);
    }
    /* A node may depend on one that was made later, so the marks must all be there first. */
    for (size_t i = 0; !status && i < graph->count; i++) {
        const hdsoft__node *node = graph->nodes[i];
        for (size_t d = 0; !status && d < node->dependency_count; d++) {
            hdsoft__edge edge = node->dependencies[d];
            edge.from = copy->nodes[edge.from->mark];
            status = hdsoft__graph_depend(copy->nodes[i], edge);
        }
    }
    if (status)
        hdsoft__graph_destroy(copy);
    else
        *out = copy;
    return status;
}

/* ---- executable graphs ---- */

/* The nodes in an order that every dependency allows, as far as there is one. Returns how many. */
static size_t sort(hdsoft__graph *graph, hdsoft__node **order)
{
    size_t done = 0;
    bool moved = true;
    for (size_t i = 0; i < graph->count; i++)
        graph->nodes[i]->mark = SIZE_MAX;
    while (moved) {
        moved = false;
        for (size_t i = 0; i < graph->count; i++) {
            hdsoft__node *node = graph->nodes[i];
            bool ready = node->mark == SIZE_MAX;
            for (size_t d = 0; ready && d < node->dependency_count; d++)
                ready = node->dependencies[d].from->mark != SIZE_MAX;
            if (!ready)
                continue;
            node->mark = done;
            order[done++] = node;
            moved = true;
        }
    }
    return done;
}

static int push_entry(hdsoft__exec *exec, const hdsoft__node *source, hdsoft__task *task)
{
    hdsoft__exec_entry *grown = realloc(exec->entries, (exec->count + 1) * sizeof *grown);
    if (!grown)
        return HDCU_ERROR_OUT_OF_MEMORY;
    exec->entries = grown;
    grown[exec->count++] = (hdsoft__exec_entry){source, task ? hdsoft__task_hold(task) : NULL, true};
    return 0;
}

static int push_shape(hdsoft__exec *exec, size_t value)
{
    size_t *grown = realloc(exec->shape, (exec->shape_count + 1) * sizeof *grown);
    if (!grown)
        return HDCU_ERROR_OUT_OF_MEMORY;
    exec->shape = grown;
    grown[exec->shape_count++] = value;
    return 0;
}

static int push_edge(hdsoft__exec *exec, size_t place, size_t follower, bool in_launch_order)
{
    uint32_t *grown = realloc(exec->edges, (exec->edge_count + 2) * sizeof *grown);
    if (!grown)
        return HDCU_ERROR_OUT_OF_MEMORY;
    exec->edges = grown;
    grown[exec->edge_count++] = (uint32_t)place;
    grown[exec->edge_count++] = (uint32_t)follower | (in_launch_order ? HDSOFT__IN_LAUNCH_ORDER : 0);
    return 0;
}

static int flatten(hdsoft__exec *exec, hdsoft__graph *graph, size_t parent, size_t *end);

/* One node: its shape, its place, what it follows. A child graph has a place at its begin and one at its end. */
static int flatten_node(hdsoft__exec *exec, hdsoft__node *node, size_t parent, size_t *last_place)
{
    size_t place = exec->count;
    int status = push_shape(exec, node->type);
    for (size_t d = 0; !status && d < node->dependency_count; d++)
        status = push_shape(exec, 1000 + 2 * node->dependencies[d].from->mark + node->dependencies[d].in_launch_order);
    if (!status)
        status = push_entry(exec, node, node->task);
    for (size_t d = 0; !status && d < node->dependency_count; d++)
        status = push_edge(exec, last_place[node->dependencies[d].from->mark], place,
                           node->dependencies[d].in_launch_order);
    if (!status && !node->dependency_count && parent != SIZE_MAX)
        status = push_edge(exec, parent, place, false);
    if (!status && node->child)
        status = flatten(exec, node->child, place, &place);
    last_place[node->mark] = place;
    return status;
}

/* Add a graph's nodes behind the place `parent` (SIZE_MAX: none); *end becomes a place behind all of them. */
static int flatten(hdsoft__exec *exec, hdsoft__graph *graph, size_t parent, size_t *end)
{
    hdsoft__node **order = malloc(graph->count * sizeof *order + 1);
    size_t *last_place = malloc(graph->count * sizeof *last_place + 1);
    int status = order && last_place ? 0 : HDCU_ERROR_OUT_OF_MEMORY;
    if (!status && sort(graph, order) != graph->count)
        status = HDCU_ERROR_INVALID_VALUE;
    for (size_t i = 0; !status && i < graph->count; i++)
        status = flatten_node(exec, order[i], parent, last_place);
    if (!status && end) {
        size_t place = exec->count;
        status = push_entry(exec, NULL, NULL);
        for (size_t i = 0; !status && i < graph->count; i++)
            status = push_edge(exec, last_place[i], place, false);
        if (!status)
            status = push_edge(exec, parent, place, false);
        *end = place;
    }
    free(last_place);
    free(order);
    return status;
}

static hdsoft__precedence *order_of(const hdsoft__exec *exec)
{
    if (exec->count >= HDSOFT__IN_LAUNCH_ORDER || exec->edge_count / 2 >= UINT32_MAX)
        return NULL;
    size_t count = exec->count ? exec->count : 1, edges = exec->edge_count / 2; /* an empty graph has a place too */
    hdsoft__precedence *order = calloc(1, sizeof *order + (2 * count + 1 + edges) * sizeof *order->waits);
    if (!order)
        return NULL;
    order->references = 1;
    order->count = (uint32_t)count;
    order->waits = (uint32_t *)(order + 1);
    order->first = order->waits + count;
    order->followers = order->first + count + 1;
    for (size_t i = 0; i < edges; i++) {
        order->waits[exec->edges[2 * i + 1] & ~HDSOFT__IN_LAUNCH_ORDER]++;
        order->first[exec->edges[2 * i]]++;
    }
    for (size_t i = 0; i < count; i++)
        order->first[i + 1] += order->first[i]; /* where it ends, until the followers are put in */
    for (size_t i = edges; i-- > 0;)
        order->followers[--order->first[exec->edges[2 * i]]] = exec->edges[2 * i + 1];
    return order;
}

void hdsoft__precedence_release(hdsoft__precedence *order)
{
    if (order && !--order->references)
        free(order);
}

static int build(hdsoft__exec *exec, hdsoft__graph *graph)
{
    int status = flatten(exec, graph, SIZE_MAX, NULL);
    if (!status && !(exec->order = order_of(exec)))
        status = HDCU_ERROR_OUT_OF_MEMORY;
    free(exec->edges);
    exec->edges = NULL;
    return status;
}

static void clear_exec(hdsoft__exec *exec)
{
    for (size_t i = 0; i < exec->count; i++)
        hdsoft__task_release(exec->entries[i].task);
    hdsoft__precedence_release(exec->order);
    free(exec->entries);
    free(exec->shape);
}

int hdsoft__exec_create(hdsoft__graph *graph, hdsoft__exec **out)
{
    hdsoft__exec *exec = calloc(1, sizeof *exec);
    if (!exec)
        return HDCU_ERROR_OUT_OF_MEMORY;
    int status = build(exec, graph);
    if (!status && !hdsoft__handle_add(exec, HDSOFT__EXEC))
        status = HDCU_ERROR_OUT_OF_MEMORY;
    if (status) {
        clear_exec(exec);
        free(exec);
    } else {
        *out = exec;
    }
    return status;
}

void hdsoft__exec_destroy(hdsoft__exec *exec)
{
    hdsoft__handle_remove(exec);
    clear_exec(exec);
    free(exec);
}

hdsoft__exec_entry *hdsoft__exec_find(hdsoft__exec *exec, const hdsoft__node *node)
{
    for (size_t i = 0; i < exec->count; i++) {
        if (exec->entries[i].source == node)
            return &exec->entries[i];
    }
    return NULL;
}

/* A shape is the nodes' types, below 1000, each with its dependencies, above it. */
static unsigned judge_update(const hdsoft__exec *exec, const hdsoft__exec *fresh)
{
    unsigned result = HDCU_GRAPH_EXEC_UPDATE_SUCCESS;
    if (fresh->count != exec->count || fresh->shape_count != exec->shape_count)
        return HDCU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < exec->shape_count; i++) {
        size_t before = exec->shape[i], after = fresh->shape[i];
        if (before == after)
            continue;
        if (before >= 1000 || after >= 1000)
            return HDCU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        result = HDCU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    }
    return result;
}

int hdsoft__exec_update(hdsoft__exec *exec, hdsoft__graph *graph, unsigned *result, hdsoft__node **at)
{
    hdsoft__exec fresh = {0};
    *at = NULL;
    *result = HDCU_GRAPH_EXEC_UPDATE_ERROR;
    int status = build(&fresh, graph);
    if (status) {
        clear_exec(&fresh);
        return status == HDCU_ERROR_OUT_OF_MEMORY ? status : HDCU_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    *result = judge_update(exec, &fresh);
    bool same = *result == HDCU_GRAPH_EXEC_UPDATE_SUCCESS;
    for (size_t i = 0; same && i < exec->count; i++) {
        /* The nodes by which the exec is addressed stay those that it was made from. */
        hdsoft__task *old = exec->entries[i].task;
        exec->entries[i].task = fresh.entries[i].task;
        fresh.entries[i].task = old;
    }
    clear_exec(&fresh);
    return same ? 0 : HDCU_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

int hdsoft__exec_update_child(hdsoft__exec *exec, hdsoft__exec_entry *entry, hdsoft__graph *before,
                              hdsoft__graph *after)
{
    hdsoft__exec old = {0}, fresh = {0};
    hdsoft__exec_entry *inner = entry + 1; /* a child's places follow that of its begin, in the order of `old` */
    int status = build(&old, before);
    if (!status)
        status = build(&fresh, after);
    if (!status && judge_update(&old, &fresh) != HDCU_GRAPH_EXEC_UPDATE_SUCCESS)
        status = HDCU_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    for (size_t i = 0; !status && i < fresh.count; i++) {
        hdsoft__task *task = inner[i].task;
        inner[i].task = fresh.entries[i].task;
        fresh.entries[i].task = task;
    }
    clear_exec(&fresh);
    clear_exec(&old);
    return status == HDCU_ERROR_INVALID_VALUE ? HDCU_ERROR_GRAPH_EXEC_UPDATE_FAILURE : status; /* it has a cycle */
}

int hdsoft__exec_launch(hdsoft__exec *exec, hdsoft__stream *stream)
{
    hdsoft__task **tasks = calloc(exec->order->count, sizeof *tasks);
    if (!tasks)
        return HDCU_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < exec->count; i++) {
        if (exec->entries[i].enabled && exec->entries[i].task)
            tasks[i] = hdsoft__task_hold(exec->entries[i].task);
    }
    int status = hdsoft__enqueue_graph(stream, tasks, exec->order, NULL);
    free(tasks);
    return status;
}
