/* SPDX-License-Identifier: MIT */
/* Instances of graphs: launching, updating, changing nodes. */
#include "areas.h"
#include "graphs.h"
#include "support.h"

static void instantiate_misuse(const check *self)
{
    (void)self;
    hdcu_graph graph = graph_made();
    hdcu_graph_exec exec = NULL;
    STATUS(cuGraphInstantiateWithFlags(NULL, graph, 0));
    STATUS(cuGraphInstantiateWithFlags(&exec, NULL, 0));
    STATUS(cuGraphInstantiateWithFlags(&exec, graph, 1ull << 40));
    STATUS(cuGraphLaunch(NULL, NULL));
    STATUS(cuGraphExecDestroy(NULL));
}

static void launch_many(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t one = 1;
    hdcu_graph graph = graph_made();
    hdcu_kernel_node_params of = add_params(ARGUMENTS(&p, &one));
    kernel_added(graph, NULL, &of);
    hdcu_graph_exec exec = exec_made(graph);
    hdcu_stream a = new_stream(HDCU_STREAM_NON_BLOCKING), b = new_stream(HDCU_STREAM_NON_BLOCKING);
    set_word(p, 0);
    for (int i = 0; i < 50; i++) {
        NEED(cuGraphLaunch(exec, a));
        NEED(cuGraphLaunch(exec, b));
    }
    STATUS(cuStreamSynchronize(a));
    STATUS(cuStreamSynchronize(b));
    say("%u", word_at(p));
}

/* An instance that is under way holds up its next launch, whatever the stream. */
static void one_at_a_time(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t one = 1;
    hdcu_graph graph = graph_made();
    hdcu_kernel_node_params of = add_params(ARGUMENTS(&p, &one));
    kernel_added(graph, NULL, &of);
    hdcu_graph_exec exec = exec_made(graph);
    hdcu_stream a = new_stream(HDCU_STREAM_NON_BLOCKING), b = new_stream(HDCU_STREAM_NON_BLOCKING);
    set_word(p, 0);
    hold *held = hold_up(a);
    STATUS(cuGraphLaunch(exec, a));
    STATUS(cuGraphLaunch(exec, b));
    STATUS(cuStreamQuery(b));
    release(held);
    STATUS(cuStreamSynchronize(b));
    STATUS(cuStreamSynchronize(a));
    say("%u", word_at(p));
}

static void in_stream_order(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(8), q = p + 4;
    uint32_t value = 5;
    hdcu_graph graph = graph_made();
    hdcu_kernel_node_params of = store_params(ARGUMENTS(&p, &value));
    kernel_added(graph, NULL, &of);
    hdcu_graph_exec exec = exec_made(graph);
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    STATUS(cuMemsetD32Async(p, 1, 2, stream));
    STATUS(cuGraphLaunch(exec, stream));
    STATUS(LAUNCH(KERNEL("copy"), 1, 1, stream, &p, &q));
    STATUS(cuMemsetD32Async(p, 9, 1, stream));
    STATUS(cuStreamSynchronize(stream));
    say_words(p, 2);
}

static void launch_in_legacy(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 5;
    hdcu_graph graph = graph_made();
    hdcu_kernel_node_params of = store_params(ARGUMENTS(&p, &value));
    kernel_added(graph, NULL, &of);
    hdcu_graph_exec exec = exec_made(graph);
    STATUS(cuGraphUpload(exec, NULL));
    STATUS(cuGraphLaunch(exec, NULL));
    STATUS(cuCtxSynchronize());
    say("%u", word_at(p));
}

static void outlives_graph(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 6;
    hdcu_graph graph = graph_made();
    hdcu_kernel_node_params of = store_params(ARGUMENTS(&p, &value));
    kernel_added(graph, NULL, &of);
    hdcu_graph_exec exec = exec_made(graph);
    STATUS(cuGraphDestroy(graph));
    exec_run(exec);
    say("%u", word_at(p));
    STATUS(cuGraphExecDestroy(exec));
}

static void destroyed_while_pending(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 7;
    hdcu_graph graph = graph_made();
    hdcu_kernel_node_params of = store_params(ARGUMENTS(&p, &value));
    kernel_added(graph, NULL, &of);
    hdcu_graph_exec exec = exec_made(graph);
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    hold *held = hold_up(stream);
    STATUS(cuGraphLaunch(exec, stream));
    STATUS(cuGraphExecDestroy(exec));
    release(held);
    STATUS(cuStreamSynchronize(stream));
    say("%u", word_at(p));
}

static void changing_the_graph_changes_no_instance(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 7;
    hdcu_graph graph = graph_made();
    hdcu_kernel_node_params of = store_params(ARGUMENTS(&p, &value));
    hdcu_graph_node node = kernel_added(graph, NULL, &of);
    hdcu_graph_exec exec = exec_made(graph);
    value = 8;
    STATUS(cuGraphKernelNodeSetParams(node, &of));
    exec_run(exec);
    say("%u", word_at(p));
}

/* ---- changing nodes of an instance ---- */

static void set_kernel(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 7;
    hdcu_graph graph = graph_made();
    hdcu_kernel_node_params of = store_params(ARGUMENTS(&p, &value));
    hdcu_graph_node node = kernel_added(graph, NULL, &of);
    hdcu_graph_exec exec = exec_made(graph);
    value = 8;
    STATUS(cuGraphExecKernelNodeSetParams(exec, node, &of));
    value = 9;
    exec_run(exec);
    say("%u", word_at(p));
    of.function = KERNEL("add");
    STATUS(cuGraphExecKernelNodeSetParams(exec, node, &of));
    exec_run(exec);
    say("%u", word_at(p));
}

static void set_kernel_while_pending(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(8), q = p + 4;
    uint32_t value = 1;
    hdcu_graph graph = graph_made();
    hdcu_kernel_node_params of = add_params(ARGUMENTS(&p, &value));
    hdcu_graph_node node = kernel_added(graph, NULL, &of);
    hdcu_graph_exec exec = exec_made(graph);
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    NEED(cuMemsetD32(p, 0, 2));
    NEED(cuCtxSynchronize());
    hold *held = hold_up(stream);
    STATUS(cuGraphLaunch(exec, stream));
    of.params = ARGUMENTS(&q, &value);
    STATUS(cuGraphExecKernelNodeSetParams(exec, node, &of));
    STATUS(cuGraphLaunch(exec, stream));
    release(held);
    STATUS(cuStreamSynchronize(stream));
    say_words(p, 2);
}

static void set_kernel_misuse(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 7;
    hdcu_graph graph = graph_made(), other = graph_made();
    hdcu_kernel_node_params of = store_params(ARGUMENTS(&p, &value));
    hdcu_graph_node node = kernel_added(graph, NULL, &of), foreign = kernel_added(other, NULL, &of);
    hdcu_graph_node plain = empty_added(graph, NULL);
    hdcu_graph_exec exec = exec_made(graph);
    STATUS(cuGraphExecKernelNodeSetParams(exec, foreign, &of));
    STATUS(cuGraphExecKernelNodeSetParams(exec, plain, &of));
    STATUS(cuGraphExecKernelNodeSetParams(exec, node, NULL));
    STATUS(cuGraphExecKernelNodeSetParams(NULL, node, &of));
    of.block_x = 1025;
    STATUS(cuGraphExecKernelNodeSetParams(exec, node, &of));
    of.block_x = 1;
    of.function = NULL;
    STATUS(cuGraphExecKernelNodeSetParams(exec, node, &of));
    exec_run(exec);
}

static void set_copy(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(16);
    hdcu_graph graph = graph_made();
    hdcu_graph_node node = NULL;
    hdcu_memcpy3d of = linear_copy(p + 4, p, 4);
    NEED(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &of, own_context));
    hdcu_graph_exec exec = exec_made(graph);
    NEED(cuMemsetD32(p, 0, 4));
    set_word(p, 3);
    of = linear_copy(p + 8, p, 4);
    STATUS(cuGraphExecMemcpyNodeSetParams(exec, node, &of, own_context));
    exec_run(exec);
    say_words(p, 4);
    STATUS(cuGraphExecMemcpyNodeSetParams(exec, node, NULL, own_context));
}

static void set_fill(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(16);
    hdcu_graph graph = graph_made();
    hdcu_graph_node node = NULL;
    hdcu_memset_node_params of = {.destination = p, .value = 1, .element_size = 4, .width = 2, .height = 1};
    NEED(cuGraphAddMemsetNode(&node, graph, NULL, 0, &of, own_context));
    hdcu_graph_exec exec = exec_made(graph);
    NEED(cuMemsetD32(p, 0, 4));
    NEED(cuCtxSynchronize());
    of.destination = p + 8;
    of.value = 2;
    STATUS(cuGraphExecMemsetNodeSetParams(exec, node, &of, own_context));
    exec_run(exec);
    say_words(p, 4);
}

/* A 64-bit value behind a fill, set to another one, and to what cannot be. */
static void set_write(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(32);
    hdcu_graph graph = graph_made();
    hdcu_graph_node fill = NULL, write = NULL;
    hdcu_memset_node_params of = {.destination = p, .value = 1, .element_size = 4, .width = 4, .height = 1};
    hdcu_stream_mem_op op = {.words = {0}};
    hdcu_batch_mem_op_node_params params = {own_context, 1, &op, 0};
    op.write.operation = HDCU_STREAM_MEM_OP_WRITE_VALUE_64;
    op.write.address = p + 8;
    op.write.value = 7;
    NEED(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &of, own_context));
    STATUS(cuGraphAddBatchMemOpNode(&write, graph, &fill, 1, &params));
    hdcu_graph_exec exec = exec_made(graph);
    NEED(cuMemsetD32(p, 0, 8));
    NEED(cuCtxSynchronize());
    exec_run(exec);
    say_words(p, 8);
    op.write.address = p + 24;
    op.write.value = UINT64_C(0x500000004);
    STATUS(cuGraphExecBatchMemOpNodeSetParams(exec, write, &params));
    exec_run(exec);
    say_words(p, 8);
    op.write.address = p + 4;
    STATUS(cuGraphExecBatchMemOpNodeSetParams(exec, write, &params));
    op.write.address = p;
    STATUS(cuGraphExecBatchMemOpNodeSetParams(exec, fill, &params));
    params.flags = 1;
    STATUS(cuGraphExecBatchMemOpNodeSetParams(exec, write, &params));
    params.flags = 0;
    params.count = 0;
    STATUS(cuGraphExecBatchMemOpNodeSetParams(exec, write, &params));
    STATUS(cuGraphExecBatchMemOpNodeSetParams(exec, write, NULL));
}

static void enabled(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 7;
    unsigned on = 77;
    hdcu_graph graph = graph_made();
    hdcu_kernel_node_params of = store_params(ARGUMENTS(&p, &value));
    hdcu_graph_node node = kernel_added(graph, NULL, &of), plain = empty_added(graph, node);
    hdcu_graph_exec exec = exec_made(graph);
    set_word(p, 1);
    STATUS(cuGraphNodeGetEnabled(exec, node, &on));
    say("%u", on);
    STATUS(cuGraphNodeSetEnabled(exec, node, 0));
    STATUS(cuGraphNodeGetEnabled(exec, node, &on));
    say("%u", on);
    exec_run(exec);
    say("%u", word_at(p));
    STATUS(cuGraphNodeSetEnabled(exec, node, 1));
    exec_run(exec);
    say("%u", word_at(p));
    STATUS(cuGraphNodeSetEnabled(exec, plain, 0));
}

/* ---- updates ---- */

enum { SAME, OTHER_VALUE, MORE_NODES, FEWER_NODES, OTHER_TYPE, OTHER_FUNCTION, OTHER_EDGE, OTHER_GRID };

static hdcu_graph variant(long which, hdcu_pointer p)
{
    uint32_t value = which == OTHER_VALUE ? 70 : 7;
    hdcu_graph graph = graph_made();
    hdcu_kernel_node_params of = store_params(ARGUMENTS(&p, &value));
    if (which == OTHER_FUNCTION)
        of.function = KERNEL("add");
    if (which == OTHER_GRID)
        of.grid_x = 2;
    hdcu_graph_node first = kernel_added(graph, NULL, &of);
    hdcu_graph_node second = which == OTHER_EDGE ? NULL : first;
    if (which == OTHER_TYPE)
        empty_added(graph, second);
    else if (which != FEWER_NODES)
        kernel_added(graph, second, &of);
    if (which == MORE_NODES)
        kernel_added(graph, first, &of);
    return graph;
}

static void update(const check *self)
{
    hdcu_pointer p = new_bytes(4);
    hdcu_graph_exec exec = exec_made(variant(SAME, p));
    hdcu_graph_update_result result = {77, NULL, NULL};
    set_word(p, 0);
    STATUS(cuGraphExecUpdate(exec, variant(self->number, p), &result));
    say("%u", result.result);
    exec_run(exec);
    say("%u", word_at(p));
}

static void update_misuse(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    hdcu_graph graph = variant(SAME, p);
    hdcu_graph_exec exec = exec_made(graph);
    hdcu_graph_update_result result = {77, NULL, NULL};
    STATUS(cuGraphExecUpdate(NULL, graph, &result));
    STATUS(cuGraphExecUpdate(exec, NULL, &result));
    STATUS(cuGraphExecUpdate(exec, graph, NULL));
}

#define UPDATE(text, which) {.name = "update: " text, .run = update, .number = which}

static const check checks[] = {
    {.name = "instantiate misuse", .run = instantiate_misuse},
    {.name = "launch many", .run = launch_many},
    {.name = "one at a time", .run = one_at_a_time},
    {.name = "in stream order", .run = in_stream_order},
    {.name = "launch in the legacy stream", .run = launch_in_legacy},
    {.name = "outlives its graph", .run = outlives_graph},
    {.name = "destroyed while pending", .run = destroyed_while_pending},
    {.name = "the graph changes, the instance does not", .run = changing_the_graph_changes_no_instance},
    {.name = "set kernel", .run = set_kernel},
    {.name = "set kernel while pending", .run = set_kernel_while_pending},
    {.name = "set kernel misuse", .run = set_kernel_misuse},
    {.name = "set memcpy", .run = set_copy},
    {.name = "set memset", .run = set_fill},
    {.name = "set write", .run = set_write},
    {.name = "enabled", .run = enabled},
    UPDATE("the same", SAME),
    UPDATE("another value", OTHER_VALUE),
    UPDATE("more nodes", MORE_NODES),
    UPDATE("fewer nodes", FEWER_NODES),
    UPDATE("another type", OTHER_TYPE),
    UPDATE("another function", OTHER_FUNCTION),
    UPDATE("another edge", OTHER_EDGE),
    UPDATE("another grid", OTHER_GRID),
    {.name = "update misuse", .run = update_misuse},
};

const area area_exec = {"exec", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
