/* SPDX-License-Identifier: MIT */
/* Graphs made by hand: their nodes, edges and misuse. Instances are in area_exec.c. */
#include "areas.h"
#include "graphs.h"
#include "support.h"

static void create_misuse(const check *self)
{
    (void)self;
    hdcu_graph graph = NULL;
    STATUS(cuGraphCreate(NULL, 0));
    STATUS(cuGraphCreate(&graph, 1));
    STATUS(cuGraphDestroy(NULL));
}

static void count_up(void *argument)
{
    ++*(volatile uint32_t *)argument;
}

static void say_type(hdcu_graph_node node)
{
    unsigned type = 77;
    STATUS(cuGraphNodeGetType(node, &type));
    say("%u", type);
}

/* ---- each kind of node ---- */

static void kernel(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 21;
    hdcu_graph graph = graph_made();
    hdcu_graph_node node = NULL;
    hdcu_kernel_node_params of = store_params(ARGUMENTS(&p, &value)), got = {0};
    STATUS(cuGraphAddKernelNode(&node, graph, NULL, 0, &of));
    value = 22;
    say_type(node);
    STATUS(cuGraphKernelNodeGetParams(node, &got));
    say("%u:%u:%d:%d", got.grid_x, got.block_x, got.function == of.function, got.params != NULL);
    graph_run(graph);
    say("%u", word_at(p));
}

static void kernel_set(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 21;
    hdcu_graph graph = graph_made();
    hdcu_kernel_node_params of = store_params(ARGUMENTS(&p, &value));
    hdcu_graph_node node = kernel_added(graph, NULL, &of);
    value = 23;
    STATUS(cuGraphKernelNodeSetParams(node, &of));
    of.block_x = 0;
    STATUS(cuGraphKernelNodeSetParams(node, &of));
    graph_run(graph);
    say("%u", word_at(p));
}

static void kernel_misuse(const check *self)
{
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 21;
    hdcu_graph graph = graph_made();
    hdcu_graph_node node = NULL;
    hdcu_kernel_node_params of = store_params(ARGUMENTS(&p, &value));
    hdcu_graph_node foreign = NULL;
    switch (self->number) {
    case 0: of.function = NULL; break;
    case 1: of.block_x = 1025; break;
    case 2: of.grid_x = 0; break;
    case 3: of.shared_bytes = 49153; break;
    case 4: of.params = NULL; break;
    case 5: of.grid_y = 65536; break;
    case 6: foreign = kernel_added(graph_made(), NULL, &of); break;
    default: break;
    }
    STATUS(cuGraphAddKernelNode(self->number == 8 ? NULL : &node, graph, foreign ? &foreign : NULL, foreign ? 1 : 0,
                                self->number == 7 ? NULL : &of));
}

static void fill(const check *self)
{
    hdcu_pointer p = new_bytes(64);
    hdcu_graph graph = graph_made();
    hdcu_graph_node node = NULL;
    const uint64_t *in = self->inputs[0];
    hdcu_memset_node_params of = {.destination = p, .pitch = in[2] >> 8, .value = 0x01020304,
                                  .element_size = (unsigned)in[0], .width = in[1], .height = in[2] & 255};
    if (in[0] < 4)
        of.value &= (1u << 8 * in[0]) - 1;
    NEED(cuMemsetD8(p, 0xee, 64));
    NEED(cuCtxSynchronize());
    hdcu_result status = cu.cuGraphAddMemsetNode(&node, graph, NULL, 0, &of, own_context);
    say("%u", status);
    if (status)
        return;
    say_type(node);
    graph_run(graph);
    say_words(p, 8);
}

static void fill_too_wide_a_value(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(64);
    hdcu_graph_node node = NULL;
    hdcu_memset_node_params of = {.destination = p, .value = 0x1ff, .element_size = 1, .width = 4, .height = 1};
    STATUS(cuGraphAddMemsetNode(&node, graph_made(), NULL, 0, &of, own_context));
    of.value = 1;
    of.destination = p + 1;
    of.element_size = 4;
    STATUS(cuGraphAddMemsetNode(&node, graph_made(), NULL, 0, &of, own_context));
    of.destination = p;
    STATUS(cuGraphAddMemsetNode(&node, graph_made(), NULL, 0, NULL, own_context));
    STATUS(cuGraphAddMemsetNode(&node, graph_made(), NULL, 0, &of, NULL));
}

static void copy(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(16);
    uint32_t *pinned = new_pinned(16);
    hdcu_graph graph = graph_made();
    hdcu_graph_node first = NULL, second = NULL;
    pinned[0] = 11;
    hdcu_memcpy3d there = linear_copy(p, (uintptr_t)pinned, 4), back = linear_copy((uintptr_t)(pinned + 1), p, 4);
    STATUS(cuGraphAddMemcpyNode(&first, graph, NULL, 0, &there, own_context));
    STATUS(cuGraphAddMemcpyNode(&second, graph, &first, 1, &back, own_context));
    say_type(first);
    graph_run(graph);
    say("%u", pinned[1]);
    STATUS(cuGraphAddMemcpyNode(&first, graph, NULL, 0, NULL, own_context));
    there.source_type = 0;
    STATUS(cuGraphAddMemcpyNode(&first, graph, NULL, 0, &there, own_context));
}

static void host(const check *self)
{
    (void)self;
    volatile uint32_t count = 0;
    hdcu_graph graph = graph_made();
    hdcu_graph_node node = NULL;
    hdcu_host_node_params of = {count_up, (void *)&count};
    STATUS(cuGraphAddHostNode(&node, graph, NULL, 0, &of));
    say_type(node);
    graph_run(graph);
    say("%u", count);
    STATUS(cuGraphAddHostNode(&node, graph, NULL, 0, NULL));
    of.function = NULL;
    STATUS(cuGraphAddHostNode(&node, graph, NULL, 0, &of));
}

static void empty(const check *self)
{
    (void)self;
    hdcu_graph graph = graph_made();
    hdcu_graph_node node = NULL;
    STATUS(cuGraphAddEmptyNode(&node, graph, NULL, 0));
    say_type(node);
    STATUS(cuGraphAddEmptyNode(NULL, graph, NULL, 0));
    STATUS(cuGraphAddEmptyNode(&node, graph, NULL, 1));
    STATUS(cuGraphAddEmptyNode(&node, NULL, NULL, 0));
    graph_run(graph);
}

static void child(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 33;
    hdcu_graph inner = graph_made(), graph = graph_made();
    hdcu_kernel_node_params of = store_params(ARGUMENTS(&p, &value));
    kernel_added(inner, NULL, &of);
    hdcu_graph_node node = NULL;
    STATUS(cuGraphAddChildGraphNode(&node, graph, NULL, 0, inner));
    say_type(node);
    STATUS(cuGraphDestroy(inner));
    graph_run(graph);
    say("%u", word_at(p));
}

static void events(const check *self)
{
    (void)self;
    hdcu_event event = new_event(HDCU_EVENT_DISABLE_TIMING);
    hdcu_graph graph = graph_made();
    hdcu_graph_node record = NULL, wait = NULL;
    STATUS(cuGraphAddEventRecordNode(&record, graph, NULL, 0, event));
    STATUS(cuGraphAddEventWaitNode(&wait, graph, &record, 1, event));
    say_type(record);
    say_type(wait);
    graph_run(graph);
    STATUS(cuEventQuery(event));
}

static void general(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 44;
    hdcu_graph graph = graph_made();
    hdcu_graph_node node = NULL;
    hdcu_graph_node_params of = {.type = HDCU_GRAPH_NODE_TYPE_KERNEL};
    of.kernel = store_params(ARGUMENTS(&p, &value));
    STATUS(cuGraphAddNode(&node, graph, NULL, NULL, 0, &of));
    say_type(node);
    graph_run(graph);
    say("%u", word_at(p));
    of.reserved0[0] = 1;
    STATUS(cuGraphAddNode(&node, graph, NULL, NULL, 0, &of));
}

/* ---- edges ---- */

static void order(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 0;
    hdcu_graph graph = graph_made();
    hdcu_graph_node last = NULL;
    for (value = 1; value <= 5; value++) {
        hdcu_kernel_node_params of = store_params(ARGUMENTS(&p, &value));
        last = kernel_added(graph, last, &of);
    }
    graph_run(graph);
    say("%u", word_at(p));
}

static void counts(const check *self)
{
    (void)self;
    hdcu_graph graph = graph_made();
    hdcu_graph_node a = empty_added(graph, NULL), b = empty_added(graph, a), c = empty_added(graph, a);
    hdcu_graph_node both[2] = {b, c}, d = NULL, found[4] = {0}, from[4], to[4];
    NEED(cuGraphAddEmptyNode(&d, graph, both, 2));
    size_t count = 0;
    STATUS(cuGraphGetNodes(graph, NULL, &count));
    say("%zu", count);
    STATUS(cuGraphGetRootNodes(graph, NULL, &count));
    say("%zu", count);
    STATUS(cuGraphGetEdges(graph, NULL, NULL, &count));
    say("%zu", count);
    STATUS(cuGraphNodeGetDependencies(d, NULL, &count));
    say("%zu", count);
    STATUS(cuGraphNodeGetDependentNodes(a, NULL, &count));
    say("%zu", count);
    count = 4;
    STATUS(cuGraphNodeGetDependencies(b, found, &count));
    say("%zu:%d", count, found[0] == a);
    say("%d", found[1] == NULL);
    count = 2;
    STATUS(cuGraphGetEdges(graph, from, to, &count));
    say("%zu", count);
    STATUS(cuGraphGetNodes(graph, NULL, NULL));
}

static void edges_misuse(const check *self)
{
    (void)self;
    hdcu_graph graph = graph_made();
    hdcu_graph_node a = empty_added(graph, NULL), b = empty_added(graph, NULL), other = empty_added(graph_made(), NULL);
    STATUS(cuGraphAddDependencies(graph, &a, &b, 1));
    STATUS(cuGraphAddDependencies(graph, &a, &b, 1));
    STATUS(cuGraphAddDependencies(graph, &a, &a, 1));
    STATUS(cuGraphAddDependencies(graph, &b, &a, 1));
    STATUS(cuGraphAddDependencies(graph, &other, &a, 1));
    STATUS(cuGraphAddDependencies(graph, NULL, NULL, 0));
    STATUS(cuGraphAddDependencies(graph, NULL, &a, 1));
}

static void cycle(const check *self)
{
    (void)self;
    hdcu_graph graph = graph_made();
    hdcu_graph_exec exec = NULL;
    hdcu_graph_node a = empty_added(graph, NULL), b = empty_added(graph, a), c = empty_added(graph, b);
    STATUS(cuGraphAddDependencies(graph, &c, &a, 1));
    STATUS(cuGraphInstantiateWithFlags(&exec, graph, 0));
    say("%s", exec ? "exec" : "null");
}

static void remove_edges(const check *self)
{
    (void)self;
    hdcu_graph graph = graph_made();
    hdcu_graph_node a = empty_added(graph, NULL), b = empty_added(graph, a);
    size_t count = 77;
    STATUS(cuGraphRemoveDependencies(graph, &a, &b, 1));
    STATUS(cuGraphRemoveDependencies(graph, &a, &b, 1));
    STATUS(cuGraphGetEdges(graph, NULL, NULL, &count));
    say("%zu", count);
}

static void destroy_node(const check *self)
{
    (void)self;
    hdcu_graph graph = graph_made();
    hdcu_graph_node a = empty_added(graph, NULL), b = empty_added(graph, a), c = empty_added(graph, b);
    size_t count = 77;
    STATUS(cuGraphDestroyNode(b));
    STATUS(cuGraphGetNodes(graph, NULL, &count));
    say("%zu", count);
    STATUS(cuGraphGetEdges(graph, NULL, NULL, &count));
    say("%zu", count);
    STATUS(cuGraphNodeGetDependencies(c, NULL, &count));
    say("%zu", count);
    STATUS(cuGraphDestroyNode(NULL));
}

static void duplicate_dependency(const check *self)
{
    (void)self;
    hdcu_graph graph = graph_made();
    hdcu_graph_node a = empty_added(graph, NULL), twice[2] = {a, a}, node = NULL;
    STATUS(cuGraphAddEmptyNode(&node, graph, twice, 2));
}

static void clone(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 55;
    hdcu_graph graph = graph_made(), copied = NULL;
    hdcu_kernel_node_params of = store_params(ARGUMENTS(&p, &value));
    hdcu_graph_node node = kernel_added(graph, NULL, &of);
    size_t count = 77;
    STATUS(cuGraphClone(&copied, graph));
    value = 56;
    STATUS(cuGraphKernelNodeSetParams(node, &of));
    STATUS(cuGraphGetNodes(copied, NULL, &count));
    say("%zu", count);
    STATUS(cuGraphDestroy(graph));
    graph_run(copied);
    say("%u", word_at(p));
    STATUS(cuGraphClone(NULL, copied));
}

static void type_misuse(const check *self)
{
    (void)self;
    hdcu_graph graph = graph_made();
    hdcu_graph_node node = empty_added(graph, NULL);
    hdcu_kernel_node_params got;
    STATUS(cuGraphNodeGetType(node, NULL));
    STATUS(cuGraphKernelNodeGetParams(node, &got));
    STATUS(cuGraphKernelNodeGetParams(node, NULL));
}

/* ---- kernels in launch order ---- */

static const hdcu_graph_edge launch_order = {.from_port = HDCU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER,
                                             .type = HDCU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};

static hdcu_result add_behind(hdcu_graph graph, hdcu_graph_node after, hdcu_graph_edge edge,
                              const hdcu_kernel_node_params *params, hdcu_graph_node *out)
{
    hdcu_graph_node_params of = {.type = HDCU_GRAPH_NODE_TYPE_KERNEL};
    of.kernel = *params;
    return cu.cuGraphAddNode(out, graph, &after, &edge, 1, &of);
}

/* The first ends when the second has run. */
static hdcu_graph made_in_launch_order(hdcu_pointer *p, uint32_t *value, hdcu_graph_node nodes[2])
{
    hdcu_graph graph = graph_made();
    hdcu_kernel_node_params spins = store_params(ARGUMENTS(p)), stores = store_params(ARGUMENTS(p, value));
    spins.function = KERNEL("spin");
    nodes[0] = kernel_added(graph, NULL, &spins);
    say("%u", add_behind(graph, nodes[0], launch_order, &stores, &nodes[1]));
    return graph;
}

static void in_launch_order(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 3;
    hdcu_graph_node nodes[2] = {NULL, NULL};
    graph_run(made_in_launch_order(&p, &value, nodes));
    say("%u", word_at(p));
}

static void launch_order_copied(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 4;
    hdcu_graph_node nodes[2] = {NULL, NULL};
    hdcu_graph copied = NULL;
    STATUS(cuGraphClone(&copied, made_in_launch_order(&p, &value, nodes)));
    graph_run(copied);
    say("%u", word_at(p));
}

/* What is off has begun as soon as it can. */
static void launch_order_off(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 5;
    hdcu_graph_node nodes[2] = {NULL, NULL};
    hdcu_graph_exec exec = exec_made(made_in_launch_order(&p, &value, nodes));
    STATUS(cuGraphNodeSetEnabled(exec, nodes[0], 0));
    exec_run(exec);
    say("%u", word_at(p));
    STATUS(cuGraphNodeSetEnabled(exec, nodes[1], 0));
    set_word(p, 6);
    STATUS(cuGraphNodeSetEnabled(exec, nodes[0], 1));
    exec_run(exec);
    say("%u", word_at(p));
}

/* Those that know nothing of kinds of edges. */
static void launch_order_lists(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 7;
    hdcu_graph_node nodes[2] = {NULL, NULL}, from[2], to[2];
    hdcu_graph graph = made_in_launch_order(&p, &value, nodes);
    size_t count = 77;
    STATUS(cuGraphGetEdges(graph, NULL, NULL, &count));
    say("%zu", count);
    count = 2;
    STATUS(cuGraphGetEdges(graph, from, to, &count));
    say("%zu", count);
    STATUS(cuGraphNodeGetDependencies(nodes[1], NULL, &count));
    count = 2;
    STATUS(cuGraphNodeGetDependencies(nodes[1], from, &count));
    count = 2;
    STATUS(cuGraphNodeGetDependentNodes(nodes[0], to, &count));
    STATUS(cuGraphAddDependencies(graph, &nodes[0], &nodes[1], 1));
    STATUS(cuGraphRemoveDependencies(graph, &nodes[0], &nodes[1], 1));
    count = 77;
    STATUS(cuGraphGetEdges(graph, NULL, NULL, &count));
    say("%zu", count);
}

static void launch_order_misuse(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 8;
    hdcu_graph graph = graph_made();
    hdcu_kernel_node_params stores = store_params(ARGUMENTS(&p, &value));
    hdcu_graph_node first = kernel_added(graph, NULL, &stores), empty = empty_added(graph, NULL), node = NULL;
    hdcu_graph_edge edge = launch_order;
    say("%u", add_behind(graph, empty, edge, &stores, &node));
    edge.to_port = 1;
    say("%u", add_behind(graph, first, edge, &stores, &node));
    edge = launch_order;
    edge.reserved[4] = 1;
    say("%u", add_behind(graph, first, edge, &stores, &node));
    edge = (hdcu_graph_edge){.from_port = HDCU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER};
    say("%u", add_behind(graph, first, edge, &stores, &node));
    edge = (hdcu_graph_edge){.type = HDCU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    say("%u", add_behind(graph, first, edge, &stores, &node));
    hdcu_graph_node_params of = {.type = HDCU_GRAPH_NODE_TYPE_EMPTY};
    STATUS(cuGraphAddNode(&node, graph, &first, &launch_order, 1, &of));
    size_t count = 77;
    STATUS(cuGraphGetNodes(graph, NULL, &count));
    say("%zu", count);
}

/* An instance made with one kind of edge, and a graph with another. */
static void launch_order_update(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 9;
    hdcu_graph_node nodes[2] = {NULL, NULL}, behind = NULL;
    hdcu_graph_exec exec = exec_made(made_in_launch_order(&p, &value, nodes));
    hdcu_graph plain = graph_made(), same;
    hdcu_kernel_node_params spins = store_params(ARGUMENTS(&p)), stores = store_params(ARGUMENTS(&p, &value));
    spins.function = KERNEL("spin");
    behind = kernel_added(plain, NULL, &spins);
    kernel_added(plain, behind, &stores);
    hdcu_graph_update_result result = {0};
    STATUS(cuGraphExecUpdate(exec, plain, &result));
    say("%u", result.result);
    value = 10;
    same = made_in_launch_order(&p, &value, nodes);
    STATUS(cuGraphExecUpdate(exec, same, &result));
    exec_run(exec);
    say("%u", word_at(p));
}

#define BAD(text, which) {.name = "kernel node: " text, .run = kernel_misuse, .number = which}

static const check checks[] = {
    {.name = "create misuse", .run = create_misuse},
    {.name = "kernel node", .run = kernel},
    {.name = "kernel node: set parameters", .run = kernel_set},
    BAD("no function", 0),
    BAD("block of 1025", 1),
    BAD("grid of 0", 2),
    BAD("too much shared memory", 3),
    BAD("no parameters", 4),
    BAD("grid y of 65536", 5),
    BAD("dependency of another graph", 6),
    BAD("null", 7),
    BAD("null out", 8),
    {.name = "memset node 1 x 5", .run = fill, INPUTS({1, 5, 1})},
    {.name = "memset node 2 x 5", .run = fill, INPUTS({2, 5, 1})},
    {.name = "memset node 4 x 3", .run = fill, INPUTS({4, 3, 1})},
    {.name = "memset node two rows", .run = fill, INPUTS({4, 2, 16 << 8 | 2})},
    {.name = "memset node element 3", .run = fill, INPUTS({3, 2, 1})},
    {.name = "memset node height 0", .run = fill, INPUTS({4, 2, 0})},
    {.name = "memset node pitch too small", .run = fill, INPUTS({4, 4, 8 << 8 | 2})},
    {.name = "memset node misuse", .run = fill_too_wide_a_value},
    {.name = "memcpy node", .run = copy},
    {.name = "host node", .run = host},
    {.name = "empty node", .run = empty},
    {.name = "child graph node", .run = child},
    {.name = "event nodes", .run = events},
    {.name = "general node", .run = general},
    {.name = "order", .run = order},
    {.name = "counts", .run = counts},
    {.name = "edges misuse", .run = edges_misuse},
    {.name = "cycle", .run = cycle},
    {.name = "remove edges", .run = remove_edges},
    {.name = "destroy node", .run = destroy_node},
    {.name = "duplicate dependency", .run = duplicate_dependency},
    {.name = "clone", .run = clone},
    {.name = "type misuse", .run = type_misuse},
    {.name = "launch order", .run = in_launch_order},
    {.name = "launch order: clone", .run = launch_order_copied},
    {.name = "launch order: off", .run = launch_order_off},
    {.name = "launch order: lists", .run = launch_order_lists},
    {.name = "launch order: misuse", .run = launch_order_misuse},
    {.name = "launch order: update", .run = launch_order_update},
};

const area area_graph = {"graph", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
