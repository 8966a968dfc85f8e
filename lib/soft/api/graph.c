/* SPDX-License-Identifier: MIT */
#include "soft/model/graph.h"

#include <stdlib.h>
#include <string.h>

#include "soft/api/entry.h"
#include "soft/model/capture.h"
#include "soft/model/module.h"

static bool is_graph(hdcu_graph graph)
{
    return hdsoft__handle_is(graph, HDSOFT__GRAPH);
}

static bool is_node(hdcu_graph_node node)
{
    return hdsoft__handle_is(node, HDSOFT__NODE);
}

static bool is_exec(hdcu_graph_exec exec)
{
    return hdsoft__handle_is(exec, HDSOFT__EXEC);
}

/* ---- graphs ---- */

hdcu_result hdsoft__cuGraphCreate(hdcu_graph *out, unsigned flags)
{
    if (!out || flags)
        return HDCU_ERROR_INVALID_VALUE;
    hdsoft__graph *graph = hdsoft__graph_create();
    if (!graph || !hdsoft__handle_add(graph, HDSOFT__GRAPH)) {
        hdsoft__graph_destroy(graph);
        return HDCU_ERROR_OUT_OF_MEMORY;
    }
    *out = graph;
    return 0;
}

hdcu_result hdsoft__cuGraphDestroy(hdcu_graph graph)
{
    if (!is_graph(graph))
        return HDCU_ERROR_INVALID_VALUE;
    hdsoft__graph_destroy(graph);
    return 0;
}

hdcu_result hdsoft__cuGraphClone(hdcu_graph *out, hdcu_graph graph)
{
    if (!out || !is_graph(graph))
        return HDCU_ERROR_INVALID_VALUE;
    hdsoft__graph *copy;
    int status = hdsoft__graph_clone(graph, &copy);
    if (!status && !hdsoft__handle_add(copy, HDSOFT__GRAPH)) {
        hdsoft__graph_destroy(copy);
        status = HDCU_ERROR_OUT_OF_MEMORY;
    }
    if (!status)
        *out = copy;
    return (hdcu_result)status;
}

/* ---- nodes ---- */

static int check_add(const hdcu_graph_node *out, hdcu_graph graph, const hdcu_graph_node *dependencies, size_t count)
{
    if (!out || !is_graph(graph) || (count && !dependencies))
        return HDCU_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (!is_node(dependencies[i]) || dependencies[i]->graph != graph)
            return HDCU_ERROR_INVALID_VALUE;
        for (size_t j = 0; j < i; j++) {
            if (dependencies[j] == dependencies[i])
                return HDCU_ERROR_INVALID_VALUE;
        }
    }
    return 0;
}

static hdcu_result add(hdcu_graph_node *out, hdcu_graph graph, const hdcu_graph_node *dependencies, size_t count,
                       unsigned type, hdsoft__task *task)
{
    *out = hdsoft__graph_add(graph, type, task, (hdsoft__node *const *)dependencies, count);
    return *out ? 0 : HDCU_ERROR_OUT_OF_MEMORY;
}

static int kernel_task(const hdcu_kernel_node_params *params, hdsoft__task **out)
{
    if (!params)
        return HDCU_ERROR_INVALID_VALUE;
    const unsigned grid[3] = {params->grid_x, params->grid_y, params->grid_z};
    const unsigned block[3] = {params->block_x, params->block_y, params->block_z};
    hdcu_function function = params->function ? params->function : (hdcu_function)(void *)params->kernel;
    return hdsoft__kernel_task(function, grid, block, params->shared_bytes, false, params->params, params->extra, out);
}

static int copy_task(const hdcu_memcpy3d *region, hdsoft__task **out)
{
    hdsoft__copy_plan plan;
    int status = hdsoft__plan_copy(region, &plan);
    *out = plan.task;
    return status ? status : plan.task ? 0 : HDCU_ERROR_INVALID_VALUE;
}

static int memset_task(const hdcu_memset_node_params *params, hdsoft__task **out)
{
    bool pinned;
    if (!params)
        return HDCU_ERROR_INVALID_VALUE;
    int status = hdsoft__fill_task(params->destination, params->pitch, params->value, params->element_size,
                                   params->width, params->height, out, &pinned);
    return status ? status : *out ? 0 : HDCU_ERROR_INVALID_VALUE;
}

hdcu_result hdsoft__cuGraphAddKernelNode(hdcu_graph_node *out, hdcu_graph graph, const hdcu_graph_node *dependencies,
                                         size_t count, const hdcu_kernel_node_params *params)
{
    hdsoft__task *task;
    int status = check_add(out, graph, dependencies, count);
    if (!status)
        status = kernel_task(params, &task);
    return status ? (hdcu_result)status : add(out, graph, dependencies, count, HDCU_GRAPH_NODE_TYPE_KERNEL, task);
}

hdcu_result hdsoft__cuGraphAddMemcpyNode(hdcu_graph_node *out, hdcu_graph graph, const hdcu_graph_node *dependencies,
                                         size_t count, const hdcu_memcpy3d *region, hdcu_context context)
{
    hdsoft__task *task;
    int status = check_add(out, graph, dependencies, count);
    if (!status)
        status = copy_task(region, &task);
    return status ? (hdcu_result)status : add(out, graph, dependencies, count, HDCU_GRAPH_NODE_TYPE_MEMCPY, task);
}

hdcu_result hdsoft__cuGraphAddMemsetNode(hdcu_graph_node *out, hdcu_graph graph, const hdcu_graph_node *dependencies,
                                         size_t count, const hdcu_memset_node_params *params, hdcu_context context)
{
    hdsoft__task *task;
    int status = check_add(out, graph, dependencies, count);
    if (!status)
        status = memset_task(params, &task);
    return status ? (hdcu_result)status : add(out, graph, dependencies, count, HDCU_GRAPH_NODE_TYPE_MEMSET, task);
}

/* One write of a 64-bit value: what the library asks for. */
static int write_task(const hdcu_batch_mem_op_node_params *params, hdsoft__task **out)
{
    if (!params || !params->count || !params->ops || params->flags)
        return HDCU_ERROR_INVALID_VALUE;
    const hdcu_stream_mem_op *op = params->ops;
    if (params->count > 1 || op->operation != HDCU_STREAM_MEM_OP_WRITE_VALUE_64)
        return HDCU_ERROR_NOT_SUPPORTED;
    if (op->write.flags != HDCU_STREAM_WRITE_VALUE_DEFAULT)
        return HDCU_ERROR_INVALID_VALUE;
    return hdsoft__value_task(HDSOFT__TASK_WRITE_VALUE, op->write.address, op->write.value, 8, 0, out);
}

hdcu_result hdsoft__cuGraphAddBatchMemOpNode(hdcu_graph_node *out, hdcu_graph graph,
                                             const hdcu_graph_node *dependencies, size_t count,
                                             const hdcu_batch_mem_op_node_params *params)
{
    hdsoft__task *task;
    int status = check_add(out, graph, dependencies, count);
    if (!status)
        status = write_task(params, &task);
    return status ? (hdcu_result)status
                  : add(out, graph, dependencies, count, HDCU_GRAPH_NODE_TYPE_BATCH_MEM_OP, task);
}

hdcu_result hdsoft__cuGraphAddHostNode(hdcu_graph_node *out, hdcu_graph graph, const hdcu_graph_node *dependencies,
                                       size_t count, const hdcu_host_node_params *params)
{
    int status = check_add(out, graph, dependencies, count);
    if (status || !params || !params->function)
        return status ? (hdcu_result)status : HDCU_ERROR_INVALID_VALUE;
    hdsoft__task *task = hdsoft__task_new(HDSOFT__TASK_HOST);
    if (!task)
        return HDCU_ERROR_OUT_OF_MEMORY;
    task->host.function = params->function;
    task->host.argument = params->argument;
    return add(out, graph, dependencies, count, HDCU_GRAPH_NODE_TYPE_HOST, task);
}

hdcu_result hdsoft__cuGraphAddEmptyNode(hdcu_graph_node *out, hdcu_graph graph, const hdcu_graph_node *dependencies,
                                        size_t count)
{
    int status = check_add(out, graph, dependencies, count);
    return status ? (hdcu_result)status : add(out, graph, dependencies, count, HDCU_GRAPH_NODE_TYPE_EMPTY, NULL);
}

static hdcu_result add_event_node(hdcu_graph_node *out, hdcu_graph graph, const hdcu_graph_node *dependencies,
                                  size_t count, hdcu_event event, hdsoft__task_kind kind, unsigned type)
{
    int status = check_add(out, graph, dependencies, count);
    if (!status && !hdsoft__handle_is(event, HDSOFT__EVENT))
        status = HDCU_ERROR_INVALID_HANDLE;
    if (status)
        return (hdcu_result)status;
    hdsoft__task *task = hdsoft__event_task(kind, event);
    return task ? add(out, graph, dependencies, count, type, task) : HDCU_ERROR_OUT_OF_MEMORY;
}

hdcu_result hdsoft__cuGraphAddEventRecordNode(hdcu_graph_node *out, hdcu_graph graph,
                                              const hdcu_graph_node *dependencies, size_t count, hdcu_event event)
{
    return add_event_node(out, graph, dependencies, count, event, HDSOFT__TASK_RECORD_EVENT,
                          HDCU_GRAPH_NODE_TYPE_EVENT_RECORD);
}

hdcu_result hdsoft__cuGraphAddEventWaitNode(hdcu_graph_node *out, hdcu_graph graph,
                                            const hdcu_graph_node *dependencies, size_t count, hdcu_event event)
{
    return add_event_node(out, graph, dependencies, count, event, HDSOFT__TASK_WAIT_EVENT,
                          HDCU_GRAPH_NODE_TYPE_WAIT_EVENT);
}

/* Only the graph that makes an allocation itself can be instantiated with it. */
static bool allocates(hdcu_graph graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        unsigned type = graph->nodes[i]->type;
        if (type == HDCU_GRAPH_NODE_TYPE_MEM_ALLOC || type == HDCU_GRAPH_NODE_TYPE_MEM_FREE)
            return true;
    }
    return false;
}

hdcu_result hdsoft__cuGraphAddChildGraphNode(hdcu_graph_node *out, hdcu_graph graph,
                                             const hdcu_graph_node *dependencies, size_t count, hdcu_graph child)
{
    hdsoft__graph *copy;
    int status = check_add(out, graph, dependencies, count);
    if (!status && (!is_graph(child) || child == graph))
        status = HDCU_ERROR_INVALID_VALUE;
    if (!status)
        status = allocates(child) ? HDCU_ERROR_NOT_SUPPORTED : hdsoft__graph_clone(child, &copy);
    if (status)
        return (hdcu_result)status;
    hdcu_result added = add(out, graph, dependencies, count, HDCU_GRAPH_NODE_TYPE_GRAPH, NULL);
    if (added)
        hdsoft__graph_destroy(copy);
    else
        (*out)->child = copy;
    return added;
}

/* Kernels may follow in launch order, once all blocks of another have begun: whatever the type, as an H200's driver has it. */
static bool is_in_launch_order(const hdcu_graph_edge *edge)
{
    return edge->from_port == HDCU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER;
}

static int check_edge(const hdcu_graph_edge *edge, hdcu_graph_node from, unsigned type)
{
    static const hdcu_graph_edge plain;
    bool kernels = type == HDCU_GRAPH_NODE_TYPE_KERNEL && is_node(from) && from->type == HDCU_GRAPH_NODE_TYPE_KERNEL;
    if (edge->to_port || edge->type > HDCU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC ||
        memcmp(edge->reserved, plain.reserved, sizeof plain.reserved))
        return HDCU_ERROR_INVALID_VALUE;
    switch (edge->from_port) {
    case HDCU_GRAPH_KERNEL_NODE_PORT_DEFAULT: return edge->type ? HDCU_ERROR_INVALID_VALUE : 0;
    case HDCU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER: return kernels ? 0 : HDCU_ERROR_INVALID_VALUE;
    case HDCU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC: return HDCU_ERROR_NOT_SUPPORTED;
    default: return HDCU_ERROR_INVALID_VALUE;
    }
}

hdcu_result hdsoft__cuGraphAddNode(hdcu_graph_node *out, hdcu_graph graph, const hdcu_graph_node *dependencies,
                                   const hdcu_graph_edge *edges, size_t count, hdcu_graph_node_params *params)
{
    static const hdcu_graph_node_params none;
    if (!params || memcmp(params->reserved0, none.reserved0, sizeof none.reserved0))
        return HDCU_ERROR_INVALID_VALUE;
    int status = 0;
    for (size_t i = 0; !status && edges && dependencies && i < count; i++)
        status = check_edge(&edges[i], dependencies[i], params->type);
    if (status)
        return (hdcu_result)status;
    switch (params->type) {
    case HDCU_GRAPH_NODE_TYPE_KERNEL:
        status = hdsoft__cuGraphAddKernelNode(out, graph, dependencies, count, &params->kernel);
        for (size_t i = 0; !status && edges && i < count; i++)
            (*out)->dependencies[i].in_launch_order = is_in_launch_order(&edges[i]);
        return (hdcu_result)status;
    case HDCU_GRAPH_NODE_TYPE_EMPTY: return hdsoft__cuGraphAddEmptyNode(out, graph, dependencies, count);
    default: return HDCU_ERROR_NOT_SUPPORTED;
    }
}

hdcu_result hdsoft__cuGraphDestroyNode(hdcu_graph_node node)
{
    if (!is_node(node))
        return HDCU_ERROR_INVALID_VALUE;
    hdsoft__graph_remove(node);
    return 0;
}

/* ---- kernel nodes ---- */

static bool is_kernel_node(hdcu_graph_node node)
{
    return is_node(node) && node->type == HDCU_GRAPH_NODE_TYPE_KERNEL;
}

hdcu_result hdsoft__cuGraphKernelNodeGetParams(hdcu_graph_node node, hdcu_kernel_node_params *out)
{
    if (!out || !is_kernel_node(node))
        return HDCU_ERROR_INVALID_VALUE;
    const hdsoft__launch *launch = &node->task->launch;
    const hdsoft_entry *entry = launch->function->entry;
    if (!node->parameters) {
        node->parameters = calloc(entry->parameter_count + 1, sizeof *node->parameters);
        if (!node->parameters)
            return HDCU_ERROR_OUT_OF_MEMORY;
        for (uint32_t i = 0; i < entry->parameter_count; i++)
            node->parameters[i] = (unsigned char *)launch->parameters + entry->parameters[i].offset;
    }
    *out = (hdcu_kernel_node_params){
        .function = launch->function, .grid_x = launch->grid[0], .grid_y = launch->grid[1], .grid_z = launch->grid[2],
        .block_x = launch->block[0], .block_y = launch->block[1], .block_z = launch->block[2],
        .shared_bytes = launch->shared_bytes, .params = entry->parameter_count ? node->parameters : NULL,
        .context = launch->function->module->context,
    };
    return 0;
}

/* Of those that an H200 tells; there are no clusters here, and the rest cannot be set. */
hdcu_result hdsoft__cuGraphKernelNodeGetAttribute(hdcu_graph_node node, unsigned attribute,
                                                  hdcu_launch_attribute_value *out)
{
    if (!out || !is_kernel_node(node))
        return HDCU_ERROR_INVALID_VALUE;
    switch (attribute) {
    case HDCU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: out->access_window = (hdcu_access_window){.base = NULL}; return 0;
    case HDCU_LAUNCH_ATTRIBUTE_COOPERATIVE: out->cooperative = node->task->launch.cooperative; return 0;
    case HDCU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: out->cluster.x = out->cluster.y = out->cluster.z = 0; return 0;
    case HDCU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: out->cluster_scheduling = 1; return 0;
    case HDCU_LAUNCH_ATTRIBUTE_PRIORITY: out->priority = 0; return 0;
    case HDCU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: out->shared_carveout = 0; return 0;
    default: return HDCU_ERROR_INVALID_VALUE;
    }
}

hdcu_result hdsoft__cuGraphKernelNodeSetParams(hdcu_graph_node node, const hdcu_kernel_node_params *params)
{
    hdsoft__task *task;
    if (!is_kernel_node(node))
        return HDCU_ERROR_INVALID_VALUE;
    int status = kernel_task(params, &task);
    if (!status)
        hdsoft__node_set_task(node, task);
    return (hdcu_result)status;
}

/* ---- edges and lists ---- */

static int check_edges(hdcu_graph graph, const hdcu_graph_node *from, const hdcu_graph_node *to, size_t count)
{
    if (!is_graph(graph) || (count && (!from || !to)))
        return HDCU_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (!is_node(from[i]) || !is_node(to[i]) || from[i]->graph != graph || to[i]->graph != graph)
            return HDCU_ERROR_INVALID_VALUE;
    }
    return 0;
}

hdcu_result hdsoft__cuGraphAddDependencies(hdcu_graph graph, const hdcu_graph_node *from, const hdcu_graph_node *to,
                                           size_t count)
{
    int status = check_edges(graph, from, to, count);
    for (size_t i = 0; !status && i < count; i++)
        status = hdsoft__graph_depend(to[i], (hdsoft__edge){from[i], false});
    return (hdcu_result)status;
}

hdcu_result hdsoft__cuGraphRemoveDependencies(hdcu_graph graph, const hdcu_graph_node *from,
                                              const hdcu_graph_node *to, size_t count)
{
    int status = check_edges(graph, from, to, count);
    for (size_t i = 0; !status && i < count; i++)
        status = hdsoft__graph_undepend(to[i], from[i]);
    return (hdcu_result)status;
}

/* The protocol of all these lists: without an array only the count; else at most *count, the rest NULL. What cannot be told
 * in a list of nodes is no answer. */
typedef struct node_list {
    hdcu_graph_node *nodes;
    size_t capacity, count;
    bool lossy;
} node_list;

static node_list begin_list(hdcu_graph_node *nodes, const size_t *count)
{
    return (node_list){nodes, nodes ? *count : 0, 0, false};
}

static void put(node_list *list, hdsoft__node *node)
{
    if (list->count < list->capacity)
        list->nodes[list->count] = node;
    list->count++;
}

static void put_end(node_list *list, hdsoft__node *node, const hdsoft__edge *edge)
{
    put(list, node);
    list->lossy |= list->nodes && edge->in_launch_order;
}

static hdcu_result end_list(const node_list *list, size_t *count)
{
    if (list->lossy)
        return HDCU_ERROR_LOSSY_QUERY;
    for (size_t i = list->count; i < list->capacity; i++)
        list->nodes[i] = NULL;
    *count = list->nodes && list->count > list->capacity ? list->capacity : list->count;
    return 0;
}

hdcu_result hdsoft__cuGraphGetNodes(hdcu_graph graph, hdcu_graph_node *nodes, size_t *count)
{
    if (!is_graph(graph) || !count)
        return HDCU_ERROR_INVALID_VALUE;
    node_list list = begin_list(nodes, count);
    for (size_t i = 0; i < graph->count; i++)
        put(&list, graph->nodes[i]);
    return end_list(&list, count);
}

hdcu_result hdsoft__cuGraphGetRootNodes(hdcu_graph graph, hdcu_graph_node *nodes, size_t *count)
{
    if (!is_graph(graph) || !count)
        return HDCU_ERROR_INVALID_VALUE;
    node_list list = begin_list(nodes, count);
    for (size_t i = 0; i < graph->count; i++) {
        if (!graph->nodes[i]->dependency_count)
            put(&list, graph->nodes[i]);
    }
    return end_list(&list, count);
}

hdcu_result hdsoft__cuGraphGetEdges(hdcu_graph graph, hdcu_graph_node *from, hdcu_graph_node *to, size_t *count)
{
    if (!is_graph(graph) || !count || !from != !to)
        return HDCU_ERROR_INVALID_VALUE;
    node_list sources = begin_list(from, count), targets = begin_list(to, count);
    for (size_t i = 0; i < graph->count; i++) {
        for (size_t d = 0; d < graph->nodes[i]->dependency_count; d++) {
            const hdsoft__edge *edge = &graph->nodes[i]->dependencies[d];
            put_end(&sources, edge->from, edge);
            put_end(&targets, graph->nodes[i], edge);
        }
    }
    end_list(&targets, count);
    return end_list(&sources, count);
}

hdcu_result hdsoft__cuGraphNodeGetType(hdcu_graph_node node, unsigned *type)
{
    if (!is_node(node) || !type)
        return HDCU_ERROR_INVALID_VALUE;
    *type = node->type;
    return 0;
}

hdcu_result hdsoft__cuGraphNodeGetDependencies(hdcu_graph_node node, hdcu_graph_node *nodes, size_t *count)
{
    if (!is_node(node) || !count)
        return HDCU_ERROR_INVALID_VALUE;
    node_list list = begin_list(nodes, count);
    for (size_t i = 0; i < node->dependency_count; i++)
        put_end(&list, node->dependencies[i].from, &node->dependencies[i]);
    return end_list(&list, count);
}

hdcu_result hdsoft__cuGraphNodeGetDependentNodes(hdcu_graph_node node, hdcu_graph_node *nodes, size_t *count)
{
    if (!is_node(node) || !count)
        return HDCU_ERROR_INVALID_VALUE;
    node_list list = begin_list(nodes, count);
    for (size_t i = 0; i < node->graph->count; i++) {
        hdsoft__node *other = node->graph->nodes[i];
        for (size_t d = 0; d < other->dependency_count; d++) {
            if (other->dependencies[d].from == node)
                put_end(&list, other, &other->dependencies[d]);
        }
    }
    return end_list(&list, count);
}

/* ---- executable graphs ---- */

hdcu_result hdsoft__cuGraphInstantiateWithFlags(hdcu_graph_exec *out, hdcu_graph graph, unsigned long long flags)
{
    if (!out || !is_graph(graph) || flags > 15)
        return HDCU_ERROR_INVALID_VALUE;
    return (hdcu_result)hdsoft__exec_create(graph, out);
}

hdcu_result hdsoft__cuGraphExecDestroy(hdcu_graph_exec exec)
{
    if (!is_exec(exec))
        return HDCU_ERROR_INVALID_VALUE;
    hdsoft__exec_destroy(exec);
    return 0;
}

hdcu_result hdsoft__cuGraphUpload(hdcu_graph_exec exec, hdcu_stream handle)
{
    hdsoft__stream *stream;
    return is_exec(exec) ? (hdcu_result)hdsoft__stream_of(handle, &stream) : HDCU_ERROR_INVALID_VALUE;
}

hdcu_result hdsoft__cuGraphLaunch(hdcu_graph_exec exec, hdcu_stream handle)
{
    hdsoft__stream *stream;
    if (!is_exec(exec))
        return HDCU_ERROR_INVALID_VALUE;
    int status = hdsoft__stream_for_work(handle, &stream);
    if (!status && stream->capture) {
        hdsoft__capture_invalidate(stream->capture);
        return HDCU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (!status)
        status = hdsoft__wait_for_room(stream);
    if (!status)
        status = is_exec(exec) ? hdsoft__exec_launch(exec, stream) : HDCU_ERROR_INVALID_VALUE;
    return (hdcu_result)status;
}

hdcu_result hdsoft__cuGraphExecUpdate(hdcu_graph_exec exec, hdcu_graph graph, hdcu_graph_update_result *result)
{
    unsigned told;
    hdsoft__node *at;
    if (!is_exec(exec) || !is_graph(graph))
        return HDCU_ERROR_INVALID_VALUE;
    int status = hdsoft__exec_update(exec, graph, &told, &at);
    if (result)
        *result = (hdcu_graph_update_result){told, at, NULL};
    return (hdcu_result)status;
}

static int find_entry(hdcu_graph_exec exec, hdcu_graph_node node, unsigned type, hdsoft__exec_entry **out)
{
    if (!is_exec(exec) || !is_node(node) || node->type != type)
        return HDCU_ERROR_INVALID_VALUE;
    *out = hdsoft__exec_find(exec, node);
    return *out ? 0 : HDCU_ERROR_INVALID_VALUE;
}

/* Launches in flight hold the old task. */
static hdcu_result replace(hdsoft__exec_entry *entry, int status, hdsoft__task *task)
{
    if (status)
        return (hdcu_result)status;
    hdsoft__task_release(entry->task);
    entry->task = task;
    return 0;
}

hdcu_result hdsoft__cuGraphExecKernelNodeSetParams(hdcu_graph_exec exec, hdcu_graph_node node,
                                                   const hdcu_kernel_node_params *params)
{
    hdsoft__exec_entry *entry;
    hdsoft__task *task = NULL;
    int status = find_entry(exec, node, HDCU_GRAPH_NODE_TYPE_KERNEL, &entry);
    if (!status)
        status = kernel_task(params, &task);
    return replace(entry, status, task);
}

hdcu_result hdsoft__cuGraphExecMemcpyNodeSetParams(hdcu_graph_exec exec, hdcu_graph_node node,
                                                   const hdcu_memcpy3d *region, hdcu_context context)
{
    hdsoft__exec_entry *entry;
    hdsoft__task *task = NULL;
    int status = find_entry(exec, node, HDCU_GRAPH_NODE_TYPE_MEMCPY, &entry);
    if (!status)
        status = copy_task(region, &task);
    return replace(entry, status, task);
}

hdcu_result hdsoft__cuGraphExecMemsetNodeSetParams(hdcu_graph_exec exec, hdcu_graph_node node,
                                                   const hdcu_memset_node_params *params, hdcu_context context)
{
    hdsoft__exec_entry *entry;
    hdsoft__task *task = NULL;
    int status = find_entry(exec, node, HDCU_GRAPH_NODE_TYPE_MEMSET, &entry);
    if (!status)
        status = memset_task(params, &task);
    return replace(entry, status, task);
}

hdcu_result hdsoft__cuGraphExecBatchMemOpNodeSetParams(hdcu_graph_exec exec, hdcu_graph_node node,
                                                       const hdcu_batch_mem_op_node_params *params)
{
    hdsoft__exec_entry *entry;
    hdsoft__task *task = NULL;
    int status = find_entry(exec, node, HDCU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &entry);
    if (!status)
        status = write_task(params, &task);
    return replace(entry, status, task);
}

hdcu_result hdsoft__cuGraphExecChildGraphNodeSetParams(hdcu_graph_exec exec, hdcu_graph_node node, hdcu_graph child)
{
    hdsoft__exec_entry *entry;
    int status = find_entry(exec, node, HDCU_GRAPH_NODE_TYPE_GRAPH, &entry);
    if (!status && !is_graph(child))
        status = HDCU_ERROR_INVALID_VALUE;
    if (!status)
        status = hdsoft__exec_update_child(exec, entry, node->child, child);
    return (hdcu_result)status;
}

static int find_switchable(hdcu_graph_exec exec, hdcu_graph_node node, hdsoft__exec_entry **out)
{
    if (!is_exec(exec) || !is_node(node) || node->type > HDCU_GRAPH_NODE_TYPE_MEMSET)
        return HDCU_ERROR_INVALID_VALUE;
    *out = hdsoft__exec_find(exec, node);
    return *out ? 0 : HDCU_ERROR_INVALID_VALUE;
}

hdcu_result hdsoft__cuGraphNodeSetEnabled(hdcu_graph_exec exec, hdcu_graph_node node, unsigned enabled)
{
    hdsoft__exec_entry *entry;
    int status = find_switchable(exec, node, &entry);
    if (!status)
        entry->enabled = enabled != 0;
    return (hdcu_result)status;
}

hdcu_result hdsoft__cuGraphNodeGetEnabled(hdcu_graph_exec exec, hdcu_graph_node node, unsigned *enabled)
{
    hdsoft__exec_entry *entry;
    int status = enabled ? find_switchable(exec, node, &entry) : HDCU_ERROR_INVALID_VALUE;
    if (!status)
        *enabled = entry->enabled;
    return (hdcu_result)status;
}
