/* SPDX-License-Identifier: MIT */
#include "queue/template_sequence.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "driver/error.h"

/* Values of so many bytes are remembered of a node that may hold any kernel; of larger ones, all are set each time. */
#define OPEN_VALUES 64u

hdrt__template_sequence *hdrt__template_sequence_create(const hdrt__run_launch *launches, uint32_t count, uint64_t key,
                                                        hdrt__template_kind kind)
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
    sequence->kind = kind;
    for (uint32_t i = 0; i < count; i++) {
        sequence->kernels[i] = launches[kind == HDRT__TEMPLATE_WIDE ? 0 : i].kernel;
        sequence->offsets[i + 1] =
            sequence->offsets[i] + (kind == HDRT__TEMPLATE_OPEN ? OPEN_VALUES : sequence->kernels[i]->parameter_bytes);
        hdrt__module_hold_cached(sequence->kernels[i]->module);
    }
    return sequence;
}

bool hdrt__template_sequence_is(const hdrt__template_sequence *sequence, const hdrt__run_launch *launches,
                                uint32_t count, hdrt__template_kind kind)
{
    static const uint32_t compared[HDRT__TEMPLATE_KINDS] = {UINT32_MAX, 0, 1, 1};
    bool same = sequence->count == count && sequence->kind == kind;
    for (uint32_t i = 0; same && i < count && i < compared[kind]; i++) {
        same = sequence->kernels[i] == launches[i].kernel;
    }
    return same;
}

static bool some_unwanted(hdrt_kernel *const *kernels, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && !hdrt__module_is_unwanted(kernels[i]->module)) {
        i++;
    }
    return i < count;
}

bool hdrt__template_sequence_is_unwanted(const hdrt__template_sequence *sequence)
{
    return some_unwanted(sequence->kernels, sequence->count);
}

bool hdrt__template_instance_is_unwanted(const hdrt__template_instance *instance)
{
    return instance->open && some_unwanted(instance->kernels, instance->sequence->count);
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
        hdrt__module_release_cached(sequence->kernels[i]->module);
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
    sequence->refuses_order = sequence->kind == HDRT__TEMPLATE_WIDE && !sequence->branches &&
                              (call.result == HDCU_ERROR_INVALID_VALUE || call.result == HDCU_ERROR_NOT_SUPPORTED);
}

/*
 * A kernel that follows in launch order begins as soon as all blocks of the one before it have begun. So a row of them runs
 * side by side like independent ones; but since it is one, an H200's driver launches 64 in 2 to 4 us, not 60, from a single
 * hardware queue, and without the device memory that a branch takes.
 *
 * By an edge of the programmatic type, that is: one of the default type takes 22 us. But where such a kernel waits for the
 * grids which it depends on (griddepcontrol.wait), it would wait for the one before it, which is a stranger's.
 */
static hdrt__call add_in_launch_order(const hdrt__driver_table *driver, hdcu_graph graph, hdcu_graph_node after,
                                      bool may_await, const hdcu_kernel_node_params *params, hdcu_graph_node *out)
{
    const hdcu_graph_edge edge = {.from_port = HDCU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER,
                                  .type = may_await ? HDCU_GRAPH_DEPENDENCY_TYPE_DEFAULT
                                                    : HDCU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    hdcu_graph_node_params of = {.type = HDCU_GRAPH_NODE_TYPE_KERNEL};
    of.kernel = *params;
    return HDRT__CALL(driver, cuGraphAddNode, out, graph, &after, &edge, 1, &of);
}

static hdrt__call add_node(hdrt__template_sequence *sequence, const hdrt__driver_table *driver, uint32_t i,
                           const hdcu_kernel_node_params *params)
{
    hdcu_graph_node *node = &sequence->nodes[i];
    bool follows = i > 0 && !sequence->branches;
    if (follows && sequence->kind == HDRT__TEMPLATE_WIDE) {
        hdrt__call call = add_in_launch_order(driver, sequence->graph, node[-1], sequence->kernels[0]->may_await_grids,
                                              params, node);
        note_refusal(sequence, call);
        return call;
    }
    return HDRT__CALL(driver, cuGraphAddKernelNode, node, sequence->graph, follows ? node - 1 : NULL, follows ? 1 : 0,
                      params);
}

static hdcu_stream_mem_op write_to(const hdrt__run_place *place)
{
    hdcu_stream_mem_op op = {.words = {0}};
    op.write.operation = HDCU_STREAM_MEM_OP_WRITE_VALUE_64;
    op.write.address = place->word;
    op.write.value = place->sequence;
    op.write.flags = HDCU_STREAM_WRITE_VALUE_DEFAULT;
    return op;
}

static hdrt__call add_ringing(hdrt__template_sequence *sequence, const hdrt__driver_table *driver,
                              const hdrt__run_place *place)
{
    hdcu_stream_mem_op op = write_to(place);
    hdcu_batch_mem_op_node_params params = {sequence->kernels[0]->device->context, 1, &op, 0};
    return HDRT__CALL(driver, cuGraphAddBatchMemOpNode, &sequence->ringing, sequence->graph, sequence->nodes, 1, &params);
}

static bool make_graph(hdrt__template_sequence *sequence, const hdrt__driver_table *driver, const hdrt__run_place *place,
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
    if (!call.result && sequence->kind == HDRT__TEMPLATE_RINGING) {
        call = add_ringing(sequence, driver, place);
    }
    if (call.result) {
        hdrt__template_sequence_end(sequence, driver);
    }
    return call.result == 0;
}

/* Hold this kernel's module for a node instead of that of the one before. */
static void hold_instead(hdrt_kernel **node, hdrt_kernel *kernel, hdrt_kernel **left)
{
    hdrt_kernel *old = *node;
    if (old == kernel) {
        return; /* also since others may be reading what a chain's nodes hold */
    }
    if (old->module != kernel->module) {
        hdrt__module_hold_cached(kernel->module);
        if (!hdrt__module_release_cached_shared(old->module)) {
            old->single.left = *left;
            *left = old;
        }
    }
    *node = kernel;
}

/* Bring the graph's own nodes to the launches, so that an instance made from it has them. */
static bool set_graph(hdrt__template_sequence *sequence, const hdrt__driver_table *driver,
                      const hdrt__run_launch *launches, uint32_t count, hdrt_kernel **left)
{
    hdrt__call call = {driver->cuGraphKernelNodeSetParams ? HDCU_SUCCESS : HDCU_ERROR_NOT_SUPPORTED, NULL};
    for (uint32_t i = 0; i < sequence->count && !call.result; i++) {
        hdcu_kernel_node_params params = node_params(launch_of(launches, count, i));
        call = HDRT__CALL(driver, cuGraphKernelNodeSetParams, sequence->nodes[i], &params);
        if (!call.result) {
            hold_instead(&sequence->kernels[i], launch_of(launches, count, i)->kernel, left);
        }
    }
    return call.result == 0;
}

/* Whether node i's values are remembered. */
static bool has_room(const hdrt__template_sequence *sequence, uint32_t i, const hdrt_kernel *kernel)
{
    return kernel->parameter_bytes <= sequence->offsets[i + 1] - sequence->offsets[i];
}

static void note(hdrt__template_instance *instance, uint32_t i, const hdrt__run_launch *launch)
{
    const hdrt_kernel *kernel = launch->kernel;
    unsigned char *values = instance->values + instance->sequence->offsets[i];
    instance->grids[i] = *launch->grid;
    for (uint32_t p = 0; has_room(instance->sequence, i, kernel) && p < kernel->parameter_count; p++) {
        memcpy(values + kernel->parameters[p].offset, launch->params[p], kernel->parameters[p].size);
    }
}

hdrt__template_instance *hdrt__template_instance_create(hdrt__template_sequence *sequence,
                                                        const hdrt__driver_table *driver, const hdrt__run_place *place,
                                                        const hdrt__run_launch *launches, uint32_t count,
                                                        hdrt_kernel **left)
{
    hdrt__template_instance *instance = calloc(1, sizeof *instance);
    if (!instance) {
        return NULL;
    }
    instance->sequence = sequence;
    instance->grids = calloc(sequence->count, sizeof *instance->grids);
    instance->values = malloc(sequence->offsets[sequence->count] + 1);
    instance->open = sequence->kind == HDRT__TEMPLATE_OPEN;
    instance->kernels = instance->open ? calloc(sequence->count, sizeof *instance->kernels) : sequence->kernels;
    if (!instance->grids || !instance->values || !instance->kernels) {
        goto destroy_instance;
    }
    /*
     * Where an instance's nodes are set before its first launch, which is what brings it to the device, each kernel of
     * a chain takes a fifth longer on an H200 for as long as it lives. So it begins with the right values. (Where there is
     * another instance of a ringing one, its write is set before that; what this costs was not measured.)
     */
    bool made = !sequence->graph;
    if (made && !make_graph(sequence, driver, place, launches, count)) {
        goto destroy_instance;
    }
    bool filled = made || set_graph(sequence, driver, launches, count, left);
    hdrt__call call = HDRT__CALL(driver, cuGraphInstantiateWithFlags, &instance->exec, sequence->graph, 0);
    if (call.result) {
        instance->exec = NULL;
        if (made) {
            note_refusal(sequence, call);
        }
        goto destroy_instance;
    }
    for (uint32_t i = 0; instance->open && i < sequence->count; i++) {
        instance->kernels[i] = sequence->kernels[i];
        hdrt__module_hold_cached(instance->kernels[i]->module);
        instance->held++;
    }
    for (uint32_t i = 0; filled && i < sequence->count; i++) {
        note(instance, i, launch_of(launches, count, i));
    }
    instance->filled = filled;
    instance->word = made ? place->word : 0;
    instance->rings = made ? place->sequence : 0;
    instance->enabled = sequence->count;
    return instance;

destroy_instance:
    hdrt__template_instance_release(instance);
    return NULL;
}

void hdrt__template_instance_end(hdrt__template_instance *instance, const hdrt__driver_table *driver)
{
    if (instance->exec && driver) {
        report(HDRT__CALL(driver, cuGraphExecDestroy, instance->exec));
    }
    instance->exec = NULL;
}

void hdrt__template_instance_release(hdrt__template_instance *instance)
{
    for (uint32_t i = 0; i < instance->held; i++) {
        hdrt__module_release_cached(instance->kernels[i]->module);
    }
    if (instance->open) {
        free(instance->kernels);
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
    const hdrt_kernel *kernel = launch->kernel;
    const unsigned char *values = instance->values + instance->sequence->offsets[i];
    bool same = instance->kernels[i] == kernel && has_room(instance->sequence, i, kernel) &&
                memcmp(&instance->grids[i], launch->grid, sizeof *launch->grid) == 0;
    for (uint32_t p = 0; same && p < kernel->parameter_count; p++) {
        same = equal(values + kernel->parameters[p].offset, launch->params[p], kernel->parameters[p].size);
    }
    return same;
}

hdrt__call hdrt__template_instance_fill(hdrt__template_instance *instance, const hdrt__driver_table *driver,
                                        const hdrt__run_launch *launches, uint32_t count, uint32_t *refused,
                                        hdrt_kernel **left)
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
            *refused = i;
            return call;
        }
        if (instance->open) {
            hold_instead(&instance->kernels[i], launches[i].kernel, left);
        }
        note(instance, i, &launches[i]);
    }
    instance->filled |= count == sequence->count;
    return (hdrt__call){0, "cuGraphExecKernelNodeSetParams"};
}

hdrt__call hdrt__template_instance_ring(hdrt__template_instance *instance, const hdrt__driver_table *driver,
                                        const hdrt__run_place *place)
{
    hdrt__template_sequence *sequence = instance->sequence;
    if (instance->word == place->word && instance->rings == place->sequence) {
        return (hdrt__call){0, "cuGraphExecBatchMemOpNodeSetParams"};
    }
    hdcu_stream_mem_op op = write_to(place);
    hdcu_batch_mem_op_node_params params = {sequence->kernels[0]->device->context, 1, &op, 0};
    hdrt__call call =
        HDRT__CALL(driver, cuGraphExecBatchMemOpNodeSetParams, instance->exec, sequence->ringing, &params);
    instance->word = call.result ? 0 : place->word;
    instance->rings = place->sequence;
    return call;
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
