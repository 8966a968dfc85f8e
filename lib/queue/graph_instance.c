/* SPDX-License-Identifier: MIT */
#include "queue/graph_instance.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "driver/error.h"
#include "jit/kernel.h"
#include "queue/foreign.h"

bool hdrt__graph_instance_possible(const hdrt__driver_table *driver)
{
    return driver->cuGraphCreate && driver->cuGraphDestroy && driver->cuGraphAddKernelNode &&
           driver->cuGraphAddMemcpyNode && driver->cuGraphAddMemsetNode && driver->cuGraphAddEmptyNode &&
           driver->cuGraphInstantiateWithFlags && driver->cuGraphExecKernelNodeSetParams &&
           driver->cuGraphExecMemcpyNodeSetParams && driver->cuGraphExecMemsetNodeSetParams && driver->cuGraphLaunch &&
           driver->cuGraphExecDestroy;
}

/* ---- what the driver is told of a node --------------------------------------------------------------------------- */

static hdcu_memset_node_params fill_params(const hdrt__plan_node *node)
{
    return (hdcu_memset_node_params){
        .destination = node->fill.dst,
        .pitch = node->fill.count * node->fill.element_bytes,
        .value = node->fill.value,
        .element_size = node->fill.element_bytes,
        .width = node->fill.count,
        .height = 1,
    };
}

/* `pointers`: room for one to each parameter. */
static hdcu_kernel_node_params launch_params(const hdrt__plan_node *node, void **pointers)
{
    const hdrt_kernel *kernel = node->launch.kernel;
    const hdrt_grid *g = &node->launch.grid;
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        pointers[i] = node->launch.parameters + kernel->parameters[i].offset;
    }
    return (hdcu_kernel_node_params){
        .function = kernel->function,
        .grid_x = g->grid[0],
        .grid_y = g->grid[1],
        .grid_z = g->grid[2],
        .block_x = g->block[0],
        .block_y = g->block[1],
        .block_z = g->block[2],
        .shared_bytes = g->shared,
        .params = pointers,
    };
}

/* Room for pointers to the parameters of any of the plan's launches. */
static void **parameter_pointers(const hdrt__plan *plan)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < plan->count; i++) {
        const hdrt__plan_node *node = &plan->nodes[i];
        if (node->kind == HDRT__PLAN_LAUNCH && node->launch.kernel->parameter_count > most) {
            most = node->launch.kernel->parameter_count;
        }
    }
    return malloc(most * sizeof(void *));
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

static hdrt__call add_node(hdrt_device *device, hdrt__graph_instance *instance, const hdrt__plan_node *node,
                           const hdcu_graph_node *after, hdcu_graph_node *out_node, void **pointers)
{
    const hdrt__driver_table *driver = device->driver;
    hdcu_kernel_node_params launch;
    hdcu_memset_node_params fill;
    hdcu_memcpy3d copy;
    size_t count = node->after_count;
    switch ((hdrt__plan_kind)node->kind) {
    case HDRT__PLAN_LAUNCH:
        launch = launch_params(node, pointers);
        return HDRT__CALL(driver, cuGraphAddKernelNode, out_node, instance->graph, after, count, &launch);
    case HDRT__PLAN_COPY:
        copy = hdrt__region_params(&node->copy);
        return HDRT__CALL(driver, cuGraphAddMemcpyNode, out_node, instance->graph, after, count, &copy,
                          device->context);
    case HDRT__PLAN_FILL:
        fill = fill_params(node);
        return HDRT__CALL(driver, cuGraphAddMemsetNode, out_node, instance->graph, after, count, &fill,
                          device->context);
    case HDRT__PLAN_FOREIGN:
        return HDRT__CALL(driver, cuGraphAddChildGraphNode, out_node, instance->graph, after, count,
                          node->foreign->graph);
    case HDRT__PLAN_NOTHING:
        break;
    }
    return HDRT__CALL(driver, cuGraphAddEmptyNode, out_node, instance->graph, after, count);
}

static hdrt__call add_nodes(hdrt_device *device, hdrt__graph_instance *instance, const hdrt__plan *plan,
                            void **pointers)
{
    hdrt__call call = HDRT__CALL(device->driver, cuGraphCreate, &instance->graph, 0);
    hdcu_graph_node after[HDRT_GRAPH_QUEUES + 1];
    if (call.result) {
        instance->graph = NULL;
    }
    for (uint32_t i = 0; i < plan->count && !call.result; i++) {
        const hdrt__plan_node *node = &plan->nodes[i];
        for (uint32_t k = 0; k < node->after_count; k++) {
            after[k] = instance->nodes[plan->after[node->after_first + k]];
        }
        call = add_node(device, instance, node, node->after_count ? after : NULL, &instance->nodes[i], pointers);
        instance->stamps[i] = node->stamp;
    }
    return call;
}

hdrt_status hdrt__graph_instance_create(hdrt_device *device, const char *name, const hdrt__plan *plan,
                                        hdrt__graph_instance **out_instance)
{
    hdrt_status status = HDRT_ERROR_OUT_OF_MEMORY;
    hdrt__graph_instance *instance = calloc(1, sizeof *instance);
    void **pointers = parameter_pointers(plan);
    if (!instance || !pointers) {
        hdrt__fail_memory(sizeof *instance, "a graph's instance");
        goto free_pointers;
    }
    instance->topology = plan->topology;
    instance->count = plan->count;
    instance->nodes = calloc(plan->count, sizeof *instance->nodes);
    instance->stamps = calloc(plan->count, sizeof *instance->stamps);
    if (!instance->nodes || !instance->stamps) {
        hdrt__fail_memory(plan->count * sizeof *instance->nodes, "a graph's instance");
        goto free_pointers;
    }
    hdrt__call call = add_nodes(device, instance, plan, pointers);
    if (!call.result) {
        call = HDRT__CALL(device->driver, cuGraphInstantiateWithFlags, &instance->exec, instance->graph, 0);
        instance->exec = call.result ? NULL : instance->exec;
    }
    status = hdrt__device_check(device, call, "building graph '%s' of %u nodes", name, plan->count);

free_pointers:
    free(pointers);
    if (status != HDRT_OK) {
        hdrt__graph_instance_destroy(device, instance);
        instance = NULL;
    }
    *out_instance = instance;
    return status;
}

/* Destroying is the last that we do with it: nobody can do anything about a failure. */
static void report(hdrt__call call)
{
    if (call.result) {
        hdrt__log(HDRT_LOG_WARN, "a graph: %s failed: %s", call.text, hdrt__result_name(call.result));
    }
}

void hdrt__graph_instance_destroy(hdrt_device *device, hdrt__graph_instance *instance)
{
    if (!instance) {
        return;
    }
    if (instance->exec && !hdrt__device_is_lost(device)) {
        report(HDRT__CALL(device->driver, cuGraphExecDestroy, instance->exec));
    }
    if (instance->graph && !hdrt__device_is_lost(device)) {
        report(HDRT__CALL(device->driver, cuGraphDestroy, instance->graph));
    }
    free(instance->stamps);
    free(instance->nodes);
    free(instance);
}

/* ---- filling ----------------------------------------------------------------------------------------------------- */

static hdrt__call set_node(hdrt_device *device, hdrt__graph_instance *instance, uint32_t i, const hdrt__plan_node *node,
                           void **pointers)
{
    const hdrt__driver_table *driver = device->driver;
    hdcu_kernel_node_params launch;
    hdcu_memset_node_params fill;
    hdcu_memcpy3d copy;
    switch ((hdrt__plan_kind)node->kind) {
    case HDRT__PLAN_LAUNCH:
        launch = launch_params(node, pointers);
        return HDRT__CALL(driver, cuGraphExecKernelNodeSetParams, instance->exec, instance->nodes[i], &launch);
    case HDRT__PLAN_COPY:
        copy = hdrt__region_params(&node->copy);
        return HDRT__CALL(driver, cuGraphExecMemcpyNodeSetParams, instance->exec, instance->nodes[i], &copy,
                          device->context);
    case HDRT__PLAN_FILL:
        fill = fill_params(node);
        return HDRT__CALL(driver, cuGraphExecMemsetNodeSetParams, instance->exec, instance->nodes[i], &fill,
                          device->context);
    case HDRT__PLAN_FOREIGN:
        return HDRT__CALL(driver, cuGraphExecChildGraphNodeSetParams, instance->exec, instance->nodes[i],
                          node->foreign->graph);
    case HDRT__PLAN_NOTHING:
        break;
    }
    return (hdrt__call){HDCU_SUCCESS, ""};
}

hdrt__call hdrt__graph_instance_fill(hdrt_device *device, hdrt__graph_instance *instance, const hdrt__plan *plan)
{
    hdrt__call call = {HDCU_SUCCESS, "cuGraphExecKernelNodeSetParams"};
    void **pointers = NULL;
    for (uint32_t i = 0; i < plan->count && !call.result; i++) {
        const hdrt__plan_node *node = &plan->nodes[i];
        if (instance->stamps[i] == node->stamp) {
            continue;
        }
        if (!pointers && !(pointers = parameter_pointers(plan))) {
            call.result = HDCU_ERROR_OUT_OF_MEMORY;
            break;
        }
        call = set_node(device, instance, i, node, pointers);
        instance->stamps[i] = call.result ? 0 : node->stamp;
    }
    free(pointers);
    return call;
}
