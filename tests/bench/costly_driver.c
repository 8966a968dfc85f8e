/* SPDX-License-Identifier: MIT */
/*
 * A driver for `make bench-overhead`: the soft driver, but what launches, marks and asks does nothing, and takes as long
 * as on an H200 (RESULTS.md). So what the library itself takes can be measured, and profiled, on any machine.
 *
 * Costs in ns by the environment: COSTLY_LAUNCH, COSTLY_GRAPH, COSTLY_NODE, COSTLY_SCALE (times all; 0: nothing costs).
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "driver/cuda_abi.h"
#include "driver/cuda_symbols.h"

#include "clock.h"
#include "costly_driver.h"

static double scale = 1, launch_ns = 2900, graph_ns = 820, node_ns = 800;
static const double build_ns = 17000, build_node_ns = 9500, record_ns = 1000, query_ns = 1500, write_ns = 850;
static const double write_node_ns = 1000; /* behind a kernel in the same graph */
static const double change_ns = 500; /* a node that runs another function than the last time */
/* A graph of one or two is dearer when it was launched long ago; in launches since, and ns. */
static const struct {
    unsigned since;
    double one, two;
} cold[] = {{64, 0, 0}, {128, 400, 0}, {256, 800, 400}, {UINT32_MAX, 1250, 850}};

#define NODES_MOST 256u

struct costly_graph {
    unsigned nodes, changed;
    hdcu_function functions[NODES_MOST];
    unsigned long launched; /* when */
    uint64_t *word;         /* NULL: there is no write behind the kernels */
    uint64_t value;
};
static unsigned long launches; /* by the one thread that launches at a time */

__attribute__((visibility("default"))) unsigned long costly_counts[COUNTS];

static hdcu_result spend(int what, double ns)
{
    double start = now(), end = start;
    while (end - start < ns * scale) {
        end = now();
    }
    __atomic_fetch_add(&costly_counts[what], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&costly_counts[SPENT_NS], (unsigned long)(end - start), __ATOMIC_RELAXED);
    return HDCU_SUCCESS;
}

#define UNUSED __attribute__((unused))

static hdcu_result launch(UNUSED hdcu_function function, UNUSED unsigned grid_x, UNUSED unsigned grid_y,
                          UNUSED unsigned grid_z, UNUSED unsigned block_x, UNUSED unsigned block_y,
                          UNUSED unsigned block_z, UNUSED unsigned shared, UNUSED hdcu_stream stream,
                          UNUSED void **params, UNUSED void **extra)
{
    launches++;
    return spend(LAUNCHES, launch_ns);
}

static hdcu_result graph_create(hdcu_graph *out_graph, UNUSED unsigned flags)
{
    *out_graph = calloc(1, sizeof(struct costly_graph));
    return *out_graph ? HDCU_SUCCESS : HDCU_ERROR_OUT_OF_MEMORY;
}

static hdcu_result add_node(hdcu_graph_node *out_node, hdcu_graph graph, UNUSED const hdcu_graph_node *after,
                            UNUSED size_t count, const hdcu_kernel_node_params *params)
{
    struct costly_graph *made = (struct costly_graph *)graph;
    if (made->nodes == NODES_MOST) {
        return HDCU_ERROR_NOT_SUPPORTED;
    }
    made->functions[made->nodes] = params->function;
    *out_node = (hdcu_graph_node)(uintptr_t)++made->nodes;
    return HDCU_SUCCESS;
}

/* At the end of what is before it; the one such node has no number. */
static void set_write(struct costly_graph *of, const hdcu_batch_mem_op_node_params *params)
{
    of->word = (uint64_t *)(uintptr_t)params->ops->write.address;
    of->value = params->ops->write.value;
}

static hdcu_result add_write(hdcu_graph_node *out_node, hdcu_graph graph, UNUSED const hdcu_graph_node *after,
                             UNUSED size_t count, const hdcu_batch_mem_op_node_params *params)
{
    set_write((struct costly_graph *)graph, params);
    *out_node = NULL;
    return HDCU_SUCCESS;
}

/* Nodes are numbers, from 1. */
static void set(struct costly_graph *of, hdcu_graph_node node, const hdcu_kernel_node_params *params)
{
    hdcu_function *function = &of->functions[(uintptr_t)node - 1];
    of->changed += *function != params->function;
    *function = params->function;
}

static hdcu_result instantiate(hdcu_graph_exec *out_exec, hdcu_graph graph, UNUSED unsigned long long flags)
{
    const struct costly_graph *made_of = (struct costly_graph *)graph;
    struct costly_graph *exec = malloc(sizeof *exec);
    *out_exec = (hdcu_graph_exec)exec;
    if (!exec) {
        return HDCU_ERROR_OUT_OF_MEMORY;
    }
    *exec = *made_of;
    return spend(BUILDS, build_ns + build_node_ns * exec->nodes);
}

static hdcu_result graph_launch(hdcu_graph_exec handle, UNUSED hdcu_stream stream)
{
    struct costly_graph *exec = (struct costly_graph *)handle;
    unsigned long since = launches - exec->launched;
    unsigned i = 0;
    while (since > cold[i].since) {
        i++;
    }
    launches += exec->nodes;
    exec->launched = launches;
    costly_counts[NODES] += exec->nodes;
    double extra = exec->nodes == 1 ? cold[i].one : exec->nodes == 2 ? cold[i].two : 0;
    unsigned changed = exec->changed;
    exec->changed = 0;
    extra += exec->word ? write_node_ns : 0;
    spend(GRAPHS, graph_ns + node_ns * exec->nodes + change_ns * changed + extra);
    if (exec->word) {
        costly_counts[WRITES]++;
        __atomic_store_n(exec->word, exec->value, __ATOMIC_RELEASE);
    }
    return HDCU_SUCCESS;
}

static hdcu_result set_exec_node(hdcu_graph_exec exec, hdcu_graph_node node, const hdcu_kernel_node_params *params)
{
    set((struct costly_graph *)exec, node, params);
    return HDCU_SUCCESS;
}

static hdcu_result set_exec_write(hdcu_graph_exec exec, UNUSED hdcu_graph_node node,
                                  const hdcu_batch_mem_op_node_params *params)
{
    set_write((struct costly_graph *)exec, params);
    return HDCU_SUCCESS;
}

static hdcu_result set_node(UNUSED hdcu_graph_node node, UNUSED const hdcu_kernel_node_params *params)
{
    return HDCU_SUCCESS;
}

static hdcu_result upload(UNUSED hdcu_graph_exec exec, UNUSED hdcu_stream stream)
{
    return HDCU_SUCCESS;
}

static hdcu_result destroy_exec(hdcu_graph_exec exec)
{
    free(exec);
    return HDCU_SUCCESS;
}

static hdcu_result destroy_graph(hdcu_graph graph)
{
    free(graph);
    return HDCU_SUCCESS;
}

static hdcu_result record(UNUSED hdcu_event event, UNUSED hdcu_stream stream)
{
    return spend(RECORDS, record_ns);
}

static hdcu_result query(UNUSED hdcu_event event)
{
    return spend(QUERIES, query_ns);
}

static hdcu_result write_value(UNUSED hdcu_stream stream, hdcu_pointer address, uint64_t value, UNUSED unsigned flags)
{
    spend(WRITES, write_ns);
    __atomic_store_n((uint64_t *)(uintptr_t)address, value, __ATOMIC_RELEASE);
    return HDCU_SUCCESS;
}

static const struct {
    const char *symbol;
    void *function;
} costly[] = {
    {"cuLaunchKernel", (void *)launch},
    {"cuGraphCreate", (void *)graph_create},
    {"cuGraphAddKernelNode_v2", (void *)add_node},
    {"cuGraphAddBatchMemOpNode", (void *)add_write},
    {"cuGraphExecBatchMemOpNodeSetParams", (void *)set_exec_write},
    {"cuGraphInstantiateWithFlags", (void *)instantiate},
    {"cuGraphLaunch", (void *)graph_launch},
    {"cuGraphExecKernelNodeSetParams_v2", (void *)set_exec_node},
    {"cuGraphKernelNodeSetParams_v2", (void *)set_node},
    {"cuGraphUpload", (void *)upload},
    {"cuGraphExecDestroy", (void *)destroy_exec},
    {"cuGraphDestroy", (void *)destroy_graph},
    {"cuEventRecord", (void *)record},
    {"cuEventQuery", (void *)query},
    {"cuStreamWriteValue64_v2", (void *)write_value},
};

static void read_cost(const char *name, double *cost)
{
    const char *value = getenv(name);
    *cost = value ? atof(value) : *cost;
}

__attribute__((visibility("default"))) void *hdsoft_get_proc_address(const char *symbol);
void *hdsoft_get_proc_address(const char *symbol)
{
    static void *(*real)(const char *symbol);
    if (!real) {
        void *library = dlopen(getenv("COSTLY_SOFT"), RTLD_NOW);
        void *lookup = library ? dlsym(library, HDCU_SOFT_LOOKUP) : NULL;
        memcpy(&real, &lookup, sizeof real);
        read_cost("COSTLY_SCALE", &scale);
        read_cost("COSTLY_LAUNCH", &launch_ns);
        read_cost("COSTLY_GRAPH", &graph_ns);
        read_cost("COSTLY_NODE", &node_ns);
    }
    for (size_t i = 0; i < sizeof costly / sizeof costly[0]; i++) {
        if (strcmp(symbol, costly[i].symbol) == 0) {
            return costly[i].function;
        }
    }
    return real ? real(symbol) : NULL;
}
