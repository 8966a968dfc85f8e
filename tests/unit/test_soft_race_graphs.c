/* SPDX-License-Identifier: MIT */
/*
 * The race check on random programs: operations on byte ranges of a few buffers, spread over streams, with just the
 * edges that they need, each of them needed. As it is, a program has no race; without any one of its edges it has. The
 * same as graphs, whose nodes have no other order than their edges. Under every policy.
 */
#include "soft_race.h"

#define PROGRAMS 500
#define STREAMS 4
#define MOST_OPERATIONS 16
#define BUFFERS 3
#define BUFFER_BYTES 96u

static uint64_t random_state;

static unsigned below(unsigned limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 33) % limit;
}

typedef enum operation_kind { STORE, LOAD, FILL, COPY, COUNT } operation_kind;

typedef struct range {
    unsigned buffer, first, count; /* count 0: none */
} range;

typedef struct operation {
    operation_kind kind;
    unsigned stream;
    range read, write;
    unsigned before; /* a bit for each operation that an edge leads here from */
} operation;

typedef struct program {
    operation operations[MOST_OPERATIONS];
    unsigned count, edges;
} program;

static hdcu_pointer buffers[BUFFERS];
static hdcu_stream streams[STREAMS];
static hdcu_event events[MOST_OPERATIONS], fork_event;

/* ---- making a program ---- */

static bool overlap(range a, range b)
{
    return a.count && b.count && a.buffer == b.buffer && a.first < b.first + b.count && b.first < a.first + a.count;
}

static bool conflict(const operation *a, const operation *b)
{
    if (a->kind == COUNT && b->kind == COUNT)
        return false;
    return overlap(a->write, b->write) || overlap(a->write, b->read) || overlap(a->read, b->write);
}

static range random_range(void)
{
    range made = {below(BUFFERS), below(BUFFER_BYTES - 1), 1 + below(40)};
    if (made.first + made.count > BUFFER_BYTES)
        made.count = BUFFER_BYTES - made.first;
    return made;
}

static void random_operation(operation *made)
{
    memset(made, 0, sizeof *made);
    made->kind = (operation_kind)below(5);
    made->stream = below(STREAMS);
    if (made->kind == LOAD || made->kind == COPY)
        made->read = random_range();
    if (made->kind != LOAD)
        made->write = random_range();
    if (made->kind == COPY) { /* of one size, from one buffer to another */
        made->write.buffer = (made->read.buffer + 1 + below(BUFFERS - 1)) % BUFFERS;
        unsigned most = BUFFER_BYTES - made->write.first;
        made->read.count = made->write.count = made->read.count < most ? made->read.count : most;
    }
    if (made->kind == COUNT)
        made->write = (range){made->write.buffer, made->write.first / 4 * 4, 4};
}

/* For each operation those that come before it, by streams and edges. */
static void reach(const program *p, unsigned *before)
{
    for (unsigned i = 0; i < p->count; i++) {
        before[i] = 0;
        for (unsigned j = 0; j < i; j++) {
            if (p->operations[j].stream == p->operations[i].stream || p->operations[i].before >> j & 1)
                before[i] |= before[j] | 1u << j;
        }
    }
}

/* Edges where a conflict needs one, and of those only the ones that no other makes superfluous. */
static void random_program(program *p)
{
    unsigned before[MOST_OPERATIONS];
    do {
        p->count = 5 + below(MOST_OPERATIONS - 5);
        p->edges = 0;
        for (unsigned i = 0; i < p->count; i++) {
            random_operation(&p->operations[i]);
            for (unsigned j = i; j-- > 0;) {
                reach(p, before);
                if (conflict(&p->operations[i], &p->operations[j]) && !(before[i] >> j & 1))
                    p->operations[i].before |= 1u << j;
            }
        }
        for (unsigned i = 0; i < p->count; i++) {
            for (unsigned j = 0; j < i; j++) {
                if (!(p->operations[i].before >> j & 1))
                    continue;
                p->operations[i].before &= ~(1u << j);
                reach(p, before);
                if (!(before[i] >> j & 1)) {
                    p->operations[i].before |= 1u << j;
                    p->edges++;
                }
            }
        }
    } while (!p->edges);
}

static void remove_edge(program *p)
{
    unsigned chosen = below(p->edges);
    for (unsigned i = 0; i < p->count; i++) {
        for (unsigned j = 0; j < i; j++) {
            if (p->operations[i].before >> j & 1 && chosen-- == 0) {
                p->operations[i].before &= ~(1u << j);
                return;
            }
        }
    }
}

/* ---- running it ---- */

static void enqueue(const operation *o, hdcu_stream stream)
{
    hdcu_pointer from = buffers[o->read.buffer] + o->read.first, to = buffers[o->write.buffer] + o->write.first;
    switch (o->kind) {
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
        const operation *o = &p->operations[i];
        for (unsigned j = 0; j < i; j++) {
            if (o->before >> j & 1)
                OK(cuStreamWaitEvent(streams[o->stream], events[j], 0));
        }
        enqueue(o, streams[o->stream]);
        OK(cuEventRecord(events[i], streams[o->stream]));
    }
}

/* The streams' order and the events become a graph's edges. */
static void launch_captured(const program *p)
{
    hdcu_graph graph;
    hdcu_graph_exec exec;
    OK(cuStreamBeginCapture(streams[0], HDCU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuEventRecord(fork_event, streams[0]));
    for (unsigned s = 1; s < STREAMS; s++)
        OK(cuStreamWaitEvent(streams[s], fork_event, 0));
    enqueue_all(p);
    for (unsigned s = 1; s < STREAMS; s++) {
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
    for (int i = 0; i < STREAMS; i++)
        streams[i] = new_stream(HDCU_STREAM_NON_BLOCKING);
    for (int i = 0; i < MOST_OPERATIONS; i++)
        events[i] = new_event(HDCU_EVENT_DISABLE_TIMING);
    fork_event = new_event(HDCU_EVENT_DISABLE_TIMING);
    for (int i = 0; i < BUFFERS; i++) {
        buffers[i] = new_memory(BUFFER_BYTES);
        OK(cuMemsetD8(buffers[i], 0, BUFFER_BYTES));
    }
    OK(cuCtxSynchronize());
    random_state = 88172645463325252u;
}

static void try_programs(void (*launch)(const program *p))
{
    unsigned edges = 0, found = 0, clean = 0;
    for (int i = 0; i < PROGRAMS; i++) {
        program p;
        random_program(&p);
        edges += p.edges;
        launch(&p);
        clean += races() == 0;
        ck_assert_msg(clean == (unsigned)i + 1, "program %d has no race, but: %s", i, race_text);
        remove_edge(&p);
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

static hdcu_graph_node kernel_node(hdcu_graph graph, const char *name, unsigned n, const hdcu_graph_node *after,
                                   size_t count)
{
    hdcu_function function;
    hdcu_graph_node node;
    OK(cuModuleGetFunction(&function, race_module, name));
    void *arguments[] = {&buffers[0], &n};
    hdcu_kernel_node_params parameters = {.function = function, .grid_x = 1, .grid_y = 1, .grid_z = 1, .block_x = 32,
                                          .block_y = 1, .block_z = 1, .params = arguments};
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
    tcase_add_loop_test(all, launches, 0, RACE_POLICIES);
    tcase_add_test(all, events_of_graphs);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_ENV);
    srunner_free(runner);
    return 0;
}
