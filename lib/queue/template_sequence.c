/* SPDX-License-Identifier: MIT */
#include "queue/template_sequence.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "driver/error.h"

hdrt__template_sequence *hdrt__template_sequence_create(const hdrt__run_launch *launches, uint32_t count, uint64_t key,
                                                        bool wide)
{
    hdrt__template_sequence *sequence = calloc(1, sizeof *sequence);
    if (!sequence) {
        return NULL;
    }
    sequence->nodes = calloc(count, sizeof *sequence->nodes);
    sequence->kernels = calloc(count, sizeof *sequence->kernels);
    sequence->offsets = calloc(count + 1u, sizeof *sequence->offsets);
    if (!sequence->nodes || !sequence->kernels || !sequence->offsets) {
        hdrt__template_sequence_release(sequence);
        return NULL;
    }
    sequence->key = key;
    sequence->count = count;
    sequence->wide = wide;
    for (uint32_t i = 0; i < count; i++) {
        sequence->kernels[i] = launches[wide ? 0 : i].kernel;
        sequence->offsets[i + 1] = sequence->offsets[i] + sequence->kernels[i]->parameter_bytes;
        hdrt__module_hold(sequence->kernels[i]->module);
    }
    return sequence;
}

bool hdrt__template_sequence_is(const hdrt__template_sequence *sequence, const hdrt__run_launch *launches,
                                uint32_t count, bool wide)
{
    bool same = sequence->count == count && sequence->wide == wide;
    for (uint32_t i = 0; same && i < (wide ? 1 : count); i++) {
        same = sequence->kernels[i] == launches[i].kernel;
    }
    return same;
}

bool hdrt__template_sequence_uses(const hdrt__template_sequence *sequence, const hdrt_module *module)
{
    for (uint32_t i = 0; i < sequence->count; i++) {
        if (sequence->kernels[i]->module == module) {
            return true;
        }
    }
    return false;
}

/* Destroying is the last that we do with it: nobody can do anything about a failure. */
static void report(hdrt__call call)
{
    if (call.result) {
        hdrt__log(HDRT_LOG_WARN, "a launch template: %s failed: %s", call.text, hdrt__result_name(call.result));
    }
}

void hdrt__template_sequence_end(hdrt__template_sequence *sequence, const hdrt__driver_table *driver)
{
    if (sequence->graph && driver) {
        report(HDRT__CALL(driver, cuGraphDestroy, sequence->graph));
    }
    sequence->graph = NULL;
}

void hdrt__template_sequence_release(hdrt__template_sequence *sequence)
{
    for (uint32_t i = 0; i < sequence->count; i++) {
        hdrt__module_release(sequence->kernels[i]->module);
    }
    free(sequence->offsets);
    free(sequence->kernels);
    free(sequence->nodes);
    free(sequence);
}

/* ---- instances --------------------------------------------------------------------------------------------------- */

static hdcu_kernel_node_params node_params(const hdrt__run_launch *launch)
{
    const hdrt_grid *g = launch->grid;
    return (hdcu_kernel_node_params){
        .function = launch->kernel->function,
        .grid_x = g->grid[0],
        .grid_y = g->grid[1],
        .grid_z = g->grid[2],
        .block_x = g->block[0],
        .block_y = g->block[1],
        .block_z = g->block[2],
        .shared_bytes = g->shared,
        .params = launch->params,
    };
}

/* What node i holds at first: its launch, or if there are fewer launches than nodes something that it can hold. */
static const hdrt__run_launch *launch_of(const hdrt__run_launch *launches, uint32_t count, uint32_t i)
{
    return &launches[i < count ? i : 0];
}

/* What a driver says that does not take launch order, or not for such kernels. */
static void note_refusal(hdrt__template_sequence *sequence, hdrt__call call)
{
    sequence->refuses_order = sequence->wide && !sequence->branches &&
                              (call.result == HDCU_ERROR_INVALID_VALUE || call.result == HDCU_ERROR_NOT_SUPPORTED);
}

/*
 * A kernel that follows in launch order begins as soon as all blocks of the one before it have begun. So a row of them runs
 * side by side like independent ones; but since it is one, an H200's driver launches 64 in 4 us, not 60, from a single
 * hardware queue, and without the device memory that a branch takes.
 */
static hdrt__call add_in_launch_order(const hdrt__driver_table *driver, hdcu_graph graph, hdcu_graph_node after,
                                      const hdcu_kernel_node_params *params, hdcu_graph_node *out)
{
    static const hdcu_graph_edge edge = {.from_port = HDCU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER,
                                         .type = HDCU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    hdcu_graph_node_params of = {.type = HDCU_GRAPH_NODE_TYPE_KERNEL};
    of.kernel = *params;
    return HDRT__CALL(driver, cuGraphAddNode, out, graph, &after, &edge, 1, &of);
}

static hdrt__call add_node(hdrt__template_sequence *sequence, const hdrt__driver_table *driver, uint32_t i,
                           const hdcu_kernel_node_params *params)
{
    hdcu_graph_node *node = &sequence->nodes[i];
    bool follows = i > 0 && !sequence->branches;
    if (follows && sequence->wide) {
        hdrt__call call = add_in_launch_order(driver, sequence->graph, node[-1], params, node);
        note_refusal(sequence, call);
        return call;
    }
    return HDRT__CALL(driver, cuGraphAddKernelNode, node, sequence->graph, follows ? node - 1 : NULL, follows ? 1 : 0,
                      params);
}

static bool make_graph(hdrt__template_sequence *sequence, const hdrt__driver_table *driver,
                       const hdrt__run_launch *launches, uint32_t count)
{
    hdrt__call call = HDRT__CALL(driver, cuGraphCreate, &sequence->graph, 0);
    if (call.result) {
        sequence->graph = NULL;
        return false;
    }
    for (uint32_t i = 0; i < sequence->count && !call.result; i++) {
        hdcu_kernel_node_params params = node_params(launch_of(launches, count, i));
        call = add_node(sequence, driver, i, &params);
    }
    if (call.result) {
        hdrt__template_sequence_end(sequence, driver);
    }
    return call.result == 0;
}

/* Bring the graph's own nodes to the launches, so that an instance made from it has them. */
static bool set_graph(hdrt__template_sequence *sequence, const hdrt__driver_table *driver,
                      const hdrt__run_launch *launches, uint32_t count)
{
    hdrt__call call = {driver->cuGraphKernelNodeSetParams ? HDCU_SUCCESS : HDCU_ERROR_NOT_SUPPORTED, NULL};
    for (uint32_t i = 0; i < sequence->count && !call.result; i++) {
        hdcu_kernel_node_params params = node_params(launch_of(launches, count, i));
        call = HDRT__CALL(driver, cuGraphKernelNodeSetParams, sequence->nodes[i], &params);
    }
    return call.result == 0;
}

static void note(hdrt__template_instance *instance, uint32_t i, const hdrt__run_launch *launch)
{
    const hdrt_kernel *kernel = instance->sequence->kernels[i];
    unsigned char *values = instance->values + instance->sequence->offsets[i];
    instance->grids[i] = *launch->grid;
    for (uint32_t p = 0; p < kernel->parameter_count; p++) {
        memcpy(values + kernel->parameters[p].offset, launch->params[p], kernel->parameters[p].size);
    }
}

hdrt__template_instance *hdrt__template_instance_create(hdrt__template_sequence *sequence,
                                                        const hdrt__driver_table *driver,
                                                        const hdrt__run_launch *launches, uint32_t count)
{
    hdrt__template_instance *instance = calloc(1, sizeof *instance);
    if (!instance) {
        return NULL;
    }
    instance->sequence = sequence;
    instance->grids = calloc(sequence->count, sizeof *instance->grids);
    instance->values = malloc(sequence->offsets[sequence->count] + 1);
    if (!instance->grids || !instance->values) {
        goto destroy_instance;
    }
    /*
     * Where an instance's nodes are set before its first launch, which is what brings it to the device, each kernel of
     * a chain takes a fifth longer on an H200 for as long as it lives. So it begins with the right values.
     */
    bool made = !sequence->graph;
    if (made && !make_graph(sequence, driver, launches, count)) {
        goto destroy_instance;
    }
    bool filled = made || set_graph(sequence, driver, launches, count);
    hdrt__call call = HDRT__CALL(driver, cuGraphInstantiateWithFlags, &instance->exec, sequence->graph, 0);
    if (call.result) {
        instance->exec = NULL;
        if (made) {
            note_refusal(sequence, call);
        }
        goto destroy_instance;
    }
    for (uint32_t i = 0; filled && i < sequence->count; i++) {
        note(instance, i, launch_of(launches, count, i));
    }
    instance->filled = filled;
    instance->enabled = sequence->count;
    return instance;

destroy_instance:
    hdrt__template_instance_destroy(instance, driver);
    return NULL;
}

void hdrt__template_instance_destroy(hdrt__template_instance *instance, const hdrt__driver_table *driver)
{
    if (instance->exec && driver) {
        report(HDRT__CALL(driver, cuGraphExecDestroy, instance->exec));
    }
    free(instance->values);
    free(instance->grids);
    free(instance);
}

/* The common sizes without a call. */
static bool equal(const unsigned char *a, const void *b, uint32_t size)
{
    if (size == 8) {
        return memcmp(a, b, 8) == 0;
    }
    return size == 4 ? memcmp(a, b, 4) == 0 : memcmp(a, b, size) == 0;
}

static bool node_has(const hdrt__template_instance *instance, uint32_t i, const hdrt__run_launch *launch)
{
    const hdrt_kernel *kernel = instance->sequence->kernels[i];
    const unsigned char *values = instance->values + instance->sequence->offsets[i];
    bool same = memcmp(&instance->grids[i], launch->grid, sizeof *launch->grid) == 0;
    for (uint32_t p = 0; same && p < kernel->parameter_count; p++) {
        same = equal(values + kernel->parameters[p].offset, launch->params[p], kernel->parameters[p].size);
    }
    return same;
}

hdrt__call hdrt__template_instance_fill(hdrt__template_instance *instance, const hdrt__driver_table *driver,
                                        const hdrt__run_launch *launches, uint32_t count)
{
    hdrt__template_sequence *sequence = instance->sequence;
    for (uint32_t i = 0; i < count; i++) {
        if (instance->filled && node_has(instance, i, &launches[i])) {
            continue;
        }
        hdcu_kernel_node_params params = node_params(&launches[i]);
        hdrt__call call =
            HDRT__CALL(driver, cuGraphExecKernelNodeSetParams, instance->exec, sequence->nodes[i], &params);
        if (call.result) {
            /* Of a first filling, nodes from here on hold the graph's own values, which were not noted. */
            return call;
        }
        note(instance, i, &launches[i]);
    }
    instance->filled |= count == sequence->count;
    return (hdrt__call){0, "cuGraphExecKernelNodeSetParams"};
}

hdrt__call hdrt__template_instance_enable(hdrt__template_instance *instance, const hdrt__driver_table *driver,
                                          uint32_t count)
{
    hdrt__call call = {HDCU_SUCCESS, "cuGraphNodeSetEnabled"};
    while (!call.result && instance->enabled != count) {
        bool more = instance->enabled < count;
        uint32_t next = more ? instance->enabled + 1 : instance->enabled - 1;
        hdcu_graph_node node = instance->sequence->nodes[more ? instance->enabled : next];
        call = HDRT__CALL(driver, cuGraphNodeSetEnabled, instance->exec, node, more);
        instance->enabled = call.result ? instance->enabled : next;
    }
    return call;
}
