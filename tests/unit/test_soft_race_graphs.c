/* SPDX-License-Identifier: MIT */
/*
 * The race check on random programs (race_programs.h) of streams; the same as graphs, whose nodes have no other order
 * than their edges. Under every policy.
 */
#include "soft_race.h"

#include "race_programs.h"

#define PROGRAMS 500
#define MOST_OPERATIONS 16

typedef enum operation_kind { STORE, LOAD, FILL, COPY, COUNT } operation_kind;

static const program_access kinds[] = {
    [STORE] = PROGRAM_WRITES,
    [LOAD] = PROGRAM_READS,
    [FILL] = PROGRAM_WRITES,
    [COPY] = PROGRAM_COPIES,
    [COUNT] = PROGRAM_COUNTS,
};

static hdcu_pointer buffers[PROGRAM_BUFFERS];
static hdcu_stream streams[PROGRAM_LANES];
static hdcu_event events[MOST_OPERATIONS], fork_event;

/* ---- random programs ---- */

static void enqueue(const program_operation *o, hdcu_stream stream)
{
    hdcu_pointer from = buffers[o->read.buffer] + o->read.first, to = buffers[o->write.buffer] + o->write.first;
    switch ((operation_kind)o->kind) {
    case STORE: race_launch(stream, "store", to, o->write.count); break;
    case LOAD: race_launch(stream, "load", from, o->read.count); break;
    case FILL: OK(cuMemsetD8Async(to, 1, o->write.count, stream)); break;
    case COPY: OK(cuMemcpyDtoDAsync(to, from, o->read.count, stream)); break;
    case COUNT: race_launch(stream, "count", to, 1); break;
    }
}

static void enqueue_all(const program *p)
{
    for (unsigned i = 0; i < p->count; i++) {
        const program_operation *o = &p->operations[i];
        for (unsigned j = 0; j < i; j++) {
            if (o->before >> j & 1)
                OK(cuStreamWaitEvent(streams[o->lane], events[j], 0));
        }
        enqueue(o, streams[o->lane]);
        OK(cuEventRecord(events[i], streams[o->lane]));
    }
}

/* The streams' order and the events become a graph's edges. */
static void launch_captured(const program *p)
{
    hdcu_graph graph;
    hdcu_graph_exec exec;
    OK(cuStreamBeginCapture(streams[0], HDCU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuEventRecord(fork_event, streams[0]));
    for (unsigned s = 1; s < PROGRAM_LANES; s++)
        OK(cuStreamWaitEvent(streams[s], fork_event, 0));
    enqueue_all(p);
    for (unsigned s = 1; s < PROGRAM_LANES; s++) {
        OK(cuEventRecord(fork_event, streams[s]));
        OK(cuStreamWaitEvent(streams[0], fork_event, 0));
    }
    OK(cuStreamEndCapture(streams[0], &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, streams[1]));
    OK(cuGraphLaunch(exec, streams[1])); /* one comes after the other */
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

static void begin(int policy)
{
    race_start(race_policies[policy]);
    for (int i = 0; i < PROGRAM_LANES; i++)
        streams[i] = new_stream(HDCU_STREAM_NON_BLOCKING);
    for (int i = 0; i < MOST_OPERATIONS; i++)
        events[i] = new_event(HDCU_EVENT_DISABLE_TIMING);
    fork_event = new_event(HDCU_EVENT_DISABLE_TIMING);
    for (int i = 0; i < PROGRAM_BUFFERS; i++) {
        buffers[i] = new_memory(PROGRAM_BUFFER_BYTES);
        OK(cuMemsetD8(buffers[i], 0, PROGRAM_BUFFER_BYTES));
    }
    OK(cuCtxSynchronize());
}

static void try_programs(void (*launch)(const program *p))
{
    unsigned edges = 0, found = 0, clean = 0;
    program_generator generator = {kinds, sizeof kinds / sizeof kinds[0], MOST_OPERATIONS, 88172645463325252u};
    for (int i = 0; i < PROGRAMS; i++) {
        program p;
        program_draw(&generator, &p);
        edges += p.edges;
        launch(&p);
        clean += races() == 0;
        ck_assert_msg(clean == (unsigned)i + 1, "program %d has no race, but: %s", i, race_text);
        program_remove_edge(&generator, &p);
        launch(&p);
        found += races() > 0;
        ck_assert_msg(found == (unsigned)i + 1, "the race of program %d without an edge was not found", i);
    }
    ck_assert_uint_gt(edges, 2 * PROGRAMS);
}

START_TEST(programs_of_streams)
{
    begin(_i);
    try_programs(enqueue_all);
}
END_TEST

START_TEST(programs_as_graphs)
{
    begin(_i);
    try_programs(launch_captured);
}
END_TEST

/* ---- graphs by hand ---- */

static hdcu_kernel_node_params kernel_parameters(const char *name, void **arguments)
{
    hdcu_function function;
    OK(cuModuleGetFunction(&function, race_module, name));
    return (hdcu_kernel_node_params){.function = function, .grid_x = 1, .grid_y = 1, .grid_z = 1, .block_x = 32,
                                     .block_y = 1, .block_z = 1, .params = arguments};
}

static hdcu_graph_node kernel_node(hdcu_graph graph, const char *name, unsigned n, const hdcu_graph_node *after,
                                   size_t count)
{
    hdcu_graph_node node;
    void *arguments[] = {&buffers[0], &n};
    hdcu_kernel_node_params parameters = kernel_parameters(name, arguments);
    OK(cuGraphAddKernelNode(&node, graph, after, count, &parameters));
    return node;
}

static unsigned long long races_of(hdcu_graph graph)
{
    hdcu_graph_exec exec;
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, streams[0]));
    unsigned long long count = races();
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    return count;
}

START_TEST(nodes)
{
    begin(_i);
    hdcu_graph graph, inner;
    hdcu_graph_node first, second, between;
    OK(cuGraphCreate(&graph, 0));
    first = kernel_node(graph, "store", 20, NULL, 0);
    OK(cuGraphAddEmptyNode(&between, graph, &first, 1));
    second = kernel_node(graph, "load", 20, &between, 1);
    ck_assert_uint_eq(races_of(graph), 0);
    OK(cuGraphCreate(&graph, 0));
    first = kernel_node(graph, "store", 20, NULL, 0);
    second = kernel_node(graph, "load", 20, NULL, 0);
    ck_assert_uint_gt(races_of(graph), 0);
    ck_assert_msg(strstr(race_text, "enqueued by cuGraphLaunch") != NULL, "%s", race_text);
    /* A graph within: all of it comes after what its node comes after, and before what comes after that. */
    OK(cuGraphCreate(&inner, 0));
    kernel_node(inner, "load", 20, NULL, 0);
    kernel_node(inner, "load", 30, NULL, 0);
    OK(cuGraphCreate(&graph, 0));
    first = kernel_node(graph, "store", 20, NULL, 0);
    OK(cuGraphAddChildGraphNode(&between, graph, &first, 1, inner));
    second = kernel_node(graph, "store", 25, &between, 1);
    ck_assert_uint_eq(races_of(graph), 0);
    OK(cuGraphCreate(&graph, 0));
    first = kernel_node(graph, "store", 20, NULL, 0);
    OK(cuGraphAddChildGraphNode(&between, graph, NULL, 0, inner));
    second = kernel_node(graph, "store", 25, &between, 1);
    ck_assert_uint_gt(races_of(graph), 0);
    (void)second;
}
END_TEST

/* What follows in launch order comes after what the other comes after, and after nothing of the other. */
static hdcu_graph_node in_launch_order(hdcu_graph graph, const char *name, unsigned n, hdcu_graph_node after)
{
    static const hdcu_graph_edge edge = {.from_port = HDCU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER,
                                         .type = HDCU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    hdcu_graph_node_params parameters = {.type = HDCU_GRAPH_NODE_TYPE_KERNEL};
    hdcu_graph_node node;
    void *arguments[] = {&buffers[0], &n};
    parameters.kernel = kernel_parameters(name, arguments);
    OK(cuGraphAddNode(&node, graph, &after, &edge, 1, &parameters));
    return node;
}

START_TEST(launch_order)
{
    begin(_i);
    hdcu_graph graph;
    hdcu_graph_node first, second;
    OK(cuGraphCreate(&graph, 0));
    first = kernel_node(graph, "store", 20, NULL, 0);
    second = kernel_node(graph, "load", 20, &first, 1);
    in_launch_order(graph, "load", 20, second);
    ck_assert_uint_eq(races_of(graph), 0);
    OK(cuGraphCreate(&graph, 0));
    first = kernel_node(graph, "store", 20, NULL, 0);
    in_launch_order(graph, "load", 20, first);
    ck_assert_uint_gt(races_of(graph), 0);
    OK(cuGraphCreate(&graph, 0));
    first = kernel_node(graph, "load", 20, NULL, 0);
    second = in_launch_order(graph, "load", 20, first);
    kernel_node(graph, "store", 20, &second, 1);
    ck_assert_uint_gt(races_of(graph), 0); /* the first may still run */
}
END_TEST

/* A launch is in its stream's order, and against other streams each of its nodes counts. */
START_TEST(launches)
{
    begin(_i);
    hdcu_graph graph;
    hdcu_graph_exec exec;
    OK(cuGraphCreate(&graph, 0));
    kernel_node(graph, "load", 20, NULL, 0);
    kernel_node(graph, "load", 30, NULL, 0);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    race_launch(streams[0], "store", buffers[0], 40);
    OK(cuGraphLaunch(exec, streams[0]));
    race_launch(streams[0], "store", buffers[0], 40);
    ck_assert_uint_eq(races(), 0);
    OK(cuGraphLaunch(exec, streams[0]));
    race_launch(streams[1], "store", buffers[0] + 29, 1);
    ck_assert_uint_gt(races(), 0);
    OK(cuGraphLaunch(exec, streams[0]));
    OK(cuEventRecord(events[0], streams[0]));
    OK(cuStreamWaitEvent(streams[1], events[0], 0));
    race_launch(streams[1], "store", buffers[0], 40);
    ck_assert_uint_eq(races(), 0);
}
END_TEST

static hdcu_graph_exec captured_exec(hdcu_stream stream)
{
    hdcu_graph graph;
    hdcu_graph_exec exec;
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    return exec;
}

/* A graph that records an event, and one that waits for it; the host sees to it that the record was made, by looking at
 * memory, of which no driver knows. Eager only: nothing else gets a launch done that nobody asks for. */
START_TEST(events_of_graphs)
{
    begin(0);
    uint32_t *done = new_pinned(4);
    for (int waits = 1; waits >= 0; waits--) {
        OK(cuStreamBeginCapture(streams[0], HDCU_STREAM_CAPTURE_MODE_RELAXED));
        race_launch(streams[0], "store", buffers[0], 20);
        OK(cuEventRecordWithFlags(events[0], streams[0], HDCU_EVENT_RECORD_EXTERNAL));
        race_launch(streams[0], "count", (hdcu_pointer)(uintptr_t)done, 1);
        hdcu_graph_exec send = captured_exec(streams[0]);
        OK(cuStreamBeginCapture(streams[1], HDCU_STREAM_CAPTURE_MODE_RELAXED));
        if (waits)
            OK(cuStreamWaitEvent(streams[1], events[0], HDCU_EVENT_WAIT_EXTERNAL));
        race_launch(streams[1], "load", buffers[0], 20);
        hdcu_graph_exec receive = captured_exec(streams[1]);
        __atomic_store_n(done, 0, __ATOMIC_RELEASE);
        OK(cuGraphLaunch(send, streams[0]));
        while (!__atomic_load_n(done, __ATOMIC_ACQUIRE))
            ;
        OK(cuGraphLaunch(receive, streams[1]));
        ck_assert_msg((races() == 0) == (waits == 1), "waits %d: %s", waits, race_text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("soft_race_graphs");
    TCase *all = tcase_create("graphs");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, programs_of_streams, 0, RACE_POLICIES);
    tcase_add_loop_test(all, programs_as_graphs, 0, RACE_POLICIES);
    tcase_add_loop_test(all, nodes, 0, RACE_POLICIES);
    tcase_add_loop_test(all, launch_order, 0, RACE_POLICIES);
    tcase_add_loop_test(all, launches, 0, RACE_POLICIES);
    tcase_add_test(all, events_of_graphs);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_ENV);
    srunner_free(runner);
    return 0;
}
