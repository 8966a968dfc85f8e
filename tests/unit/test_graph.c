/* SPDX-License-Identifier: MIT */
/* Explicit graphs: recording, replaying, changing, and what may go wrong. */
#include "device_fixture.h"

#include "failing_malloc.h"

#include "jit/kernel.h"

enum { N = 256, BYTES = N * 4 };

static hdrt_queue *a, *b, *c;
static hdrt_module *module;
static hdrt_kernel *add, *stamp;
static hdrt_ptr x, y;
static unsigned *host, *other;
static hdrt_graph *graph;

static void setup(void)
{
    setup_device();
    a = make_queue("a");
    b = make_queue("b");
    c = make_queue("c");
    module = load_kernels();
    add = kernel_of(module, "add");
    stamp = kernel_of(module, "stamp");
    CK_OK(hdrt_alloc(a, BYTES, &x));
    CK_OK(hdrt_alloc(a, BYTES, &y));
    CK_OK(hdrt_fill(a, x, "\0", 1, BYTES));
    CK_OK(hdrt_fill(a, y, "\0", 1, BYTES));
    CK_OK(hdrt_host_alloc(dev, BYTES, (void **)&host));
    CK_OK(hdrt_host_alloc(dev, BYTES, (void **)&other));
    memset(host, 0, BYTES);
    memset(other, 0, BYTES);
    CK_OK(hdrt_queue_synchronize(a));
    CK_OK(hdrt_graph_create(dev, NULL, &graph));
}

static void teardown(void)
{
    hdrt_graph_destroy(graph);
    CK_OK(hdrt_device_synchronize(dev));
    hdrt_host_free(dev, host);
    hdrt_host_free(dev, other);
    hdrt_free(a, x);
    hdrt_free(a, y);
    hdrt_module_destroy(module);
    hdrt_queue_destroy(a);
    hdrt_queue_destroy(b);
    hdrt_queue_destroy(c);
    teardown_device();
}

static void begin(hdrt_queue *queue)
{
    CK_OK(hdrt_graph_begin(graph, &queue, 1));
}

static void enqueue_add(hdrt_queue *queue, hdrt_ptr at, unsigned value)
{
    CK_OK(hdrt_launch(queue, add, hdrt_grid_1d(N, 64), HDRT_ARGS(at, (unsigned)N, value)));
}

/* The graph adds v to x, as its node 0. */
static void record_add(unsigned v)
{
    begin(a);
    enqueue_add(a, x, v);
    CK_OK(hdrt_graph_end(graph));
}

/* What x has everywhere. */
static unsigned value_at(hdrt_ptr at)
{
    CK_OK(hdrt_device_synchronize(dev));
    CK_OK(hdrt_copy_dtoh(c, other, at, BYTES));
    CK_OK(hdrt_queue_synchronize(c));
    for (int i = 1; i < N; i++) {
        ck_assert_uint_eq(other[i], other[0]);
    }
    return other[0];
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

START_TEST(arguments_are_checked)
{
    hdrt_graph *made = graph;
    hdrt_graph_options options = HDRT_GRAPH_OPTIONS_INIT;
    hdrt_queue *twice[] = {a, a}, *with_null[] = {a, NULL}, *many[HDRT_GRAPH_QUEUES + 1] = {a};
    CK_STATUS(hdrt_graph_create(dev, NULL, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_graph_create(NULL, NULL, &made), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_null(made);
    options.reserved[0] = 1;
    CK_STATUS(hdrt_graph_create(dev, &options, &made), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_graph_begin(NULL, &a, 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_graph_begin(graph, NULL, 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_graph_begin(graph, &a, 0), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_graph_begin(graph, many, HDRT_GRAPH_QUEUES + 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_graph_begin(graph, with_null, 2), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_graph_begin(graph, twice, 2), HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("is being recorded already");
    CK_STATUS(hdrt_graph_end(graph), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_graph_end(NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_graph_replay(a, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_graph_replay(NULL, graph), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_uint_eq(hdrt_graph_node_count(NULL), 0);
    hdrt_graph_destroy(NULL);
    begin(a);
    CK_STATUS(hdrt_graph_begin(graph, &b, 1), HDRT_ERROR_INVALID_ARGUMENT);
    hdrt_graph *second;
    CK_OK(hdrt_graph_create(dev, NULL, &second));
    CK_STATUS(hdrt_graph_begin(second, &a, 1), HDRT_ERROR_INVALID_ARGUMENT);
    hdrt_graph_destroy(second);
    CK_OK(hdrt_graph_end(graph));
    CK_OK(hdrt_graph_replay(b, graph)); /* it has no nodes */
    CK_OK(hdrt_queue_synchronize(b));
}
END_TEST

START_TEST(a_stream_is_not_given_out_during_a_recording)
{
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    hdrt_queue *exclusive;
    struct CUstream_st *stream;
    options.exclusive = true;
    CK_OK(hdrt_queue_create(dev, &options, &exclusive));
    begin(exclusive);
    CK_STATUS(hdrt_queue_stream(exclusive, &stream), HDRT_ERROR_UNSUPPORTED);
    enqueue_add(exclusive, x, 3);
    CK_OK(hdrt_graph_end(graph));
    CK_OK(hdrt_graph_replay(exclusive, graph));
    CK_OK(hdrt_queue_synchronize(exclusive));
    ck_assert_uint_eq(value_at(x), 3);
    CK_OK(hdrt_queue_stream(exclusive, &stream));
    CK_OK(hdrt_graph_replay(exclusive, graph));
    CK_OK(hdrt_queue_synchronize(exclusive));
    ck_assert_uint_eq(value_at(x), 6);
    hdrt_queue_destroy(exclusive);
}
END_TEST

/* ---- recording and replaying ------------------------------------------------------------------------------------- */

START_TEST(what_is_recorded_runs_when_it_is_replayed)
{
    hdrt_region_side device = {x, NULL, 32, 0}, rows = {0, other, 64, 0};
    begin(a);
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 0);
    CK_OK(hdrt_fill(a, x, "\1\0\0\0", 4, N));
    enqueue_add(a, x, 41);
    CK_OK(hdrt_copy_dtod(a, y, x, BYTES));
    CK_OK(hdrt_launch(a, add, hdrt_grid_1d(0, 64), HDRT_ARGS(x, (unsigned)N, 1u)));
    CK_OK(hdrt_copy_dtoh(a, host, y, BYTES));
    CK_OK(hdrt_copy_region(a, &rows, &device, 16, 4, 1));
    CK_OK(hdrt_copy_htod(a, x, host, 0));
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 7);
    CK_OK(hdrt_graph_end(graph));
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 7);
    CK_OK(hdrt_queue_synchronize(a));
    ck_assert_uint_eq(host[0], 0); /* nothing has run */
    CK_OK(hdrt_graph_replay(b, graph));
    CK_OK(hdrt_queue_synchronize(b));
    ck_assert_uint_eq(host[0], 42);
    ck_assert_uint_eq(host[N - 1], 42);
    ck_assert_uint_eq(other[0], 42);
    ck_assert_uint_eq(other[3], 42);
    ck_assert_uint_eq(other[4], 0); /* between two rows */
    ck_assert_uint_eq(other[16], 42);
    ck_assert_uint_eq(other[64], 0); /* after the fourth */
}
END_TEST

START_TEST(a_replay_is_ordered_like_any_operation)
{
    static gate g = GATE_INIT;
    record_add(1);
    gate_hold(&g, b);
    CK_OK(hdrt_fill(b, x, "\5\0\0\0", 4, N));
    CK_OK(hdrt_graph_replay(b, graph));
    hdrt_event one = hdrt_queue_record(b);
    CK_OK(hdrt_queue_wait(a, one));
    CK_OK(hdrt_copy_dtoh(a, host, x, BYTES));
    CK_OK(hdrt_queue_wait(b, hdrt_queue_record(a)));
    CK_OK(hdrt_graph_replay(b, graph));
    CK_STATUS(hdrt_event_wait(rt, one, 2000000), HDRT_TIMEOUT);
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(b));
    ck_assert_uint_eq(host[N - 1], 6);
    ck_assert_uint_eq(value_at(x), 7);
}
END_TEST

START_TEST(queues_of_a_recording_wait_for_each_other)
{
    hdrt_queue *both[] = {a, b};
    CK_OK(hdrt_graph_begin(graph, both, 2));
    CK_OK(hdrt_queue_wait(b, hdrt_queue_record(a))); /* of nothing */
    CK_OK(hdrt_fill(a, x, "\1\0\0\0", 4, N));
    hdrt_event filled = hdrt_queue_record(a);
    CK_STATUS(hdrt_event_query(rt, filled), HDRT_ERROR_EVENT_FAILED);
    CK_MESSAGE("recording");
    CK_OK(hdrt_queue_wait(b, filled));
    hdrt_event inherited = hdrt_queue_record(b); /* without a node of its own */
    CK_OK(hdrt_fill(b, y, "\2\0\0\0", 4, N));
    enqueue_add(b, x, 10);
    CK_OK(hdrt_queue_wait(a, hdrt_queue_record(b)));
    CK_OK(hdrt_queue_wait(a, inherited));
    enqueue_add(a, x, 100);
    CK_OK(hdrt_copy_dtoh(a, host, x, BYTES));
    CK_OK(hdrt_queue_wait(b, hdrt_queue_record(a)));
    CK_OK(hdrt_copy_dtod(b, y, x, BYTES));
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 6);
    CK_OK(hdrt_graph_end(graph));
    for (int i = 0; i < 20; i++) {
        memset(host, 0, BYTES);
        CK_OK(hdrt_graph_replay(c, graph));
        CK_OK(hdrt_queue_synchronize(c));
        ck_assert_uint_eq(host[0], 111);
        ck_assert_uint_eq(host[N - 1], 111);
    }
    ck_assert_uint_eq(value_at(y), 111);
    hdrt_queue_wait(c, filled); /* its recording is over */
    CK_STATUS(hdrt_queue_synchronize(c), HDRT_ERROR_QUEUE_FAILED);
    CK_MESSAGE("recording");
    CK_OK(hdrt_queue_clear_error(c));
}
END_TEST

START_TEST(what_cannot_be_recorded_is_told)
{
    static gate g = GATE_INIT;
    char pageable[64] = {0};
    hdrt_ptr memory;
    hdrt_timer *timer;
    hdrt_graph *inner;
    unsigned long long pattern = 0x0123456789abcdefull;
    hdrt_launch_options options = HDRT_LAUNCH_OPTIONS_INIT;
    hdrt_args args = HDRT_ARGS(x, (unsigned)N, 1u);
    options.grid = hdrt_grid_1d(N, 64);
    options.cooperative = true;
    CK_OK(hdrt_timer_create(dev, &timer));
    CK_OK(hdrt_graph_create(dev, NULL, &inner));
    gate_hold(&g, b);
    hdrt_event outside = hdrt_queue_record(b);
    hdrt_event done = hdrt_queue_record(a);
    begin(a);
    enqueue_add(a, x, 1);
    CK_STATUS(hdrt_queue_host_call(a, gate_wait, &g), HDRT_ERROR_UNSUPPORTED);
    CK_STATUS(hdrt_alloc(a, 64, &memory), HDRT_ERROR_UNSUPPORTED);
    CK_STATUS(hdrt_free(a, x), HDRT_ERROR_UNSUPPORTED);
    CK_STATUS(hdrt_copy_htod(a, x, pageable, sizeof pageable), HDRT_ERROR_UNSUPPORTED);
    CK_STATUS(hdrt_copy_dtoh(a, pageable, x, sizeof pageable), HDRT_ERROR_UNSUPPORTED);
    CK_STATUS(hdrt_write(a, x, pageable, sizeof pageable), HDRT_ERROR_UNSUPPORTED);
    CK_STATUS(hdrt_queue_timestamp(a, timer), HDRT_ERROR_UNSUPPORTED);
    CK_STATUS(hdrt_graph_replay(a, inner), HDRT_ERROR_UNSUPPORTED);
    CK_STATUS(hdrt_fill(a, x, &pattern, 8, 4), HDRT_ERROR_UNSUPPORTED);
    CK_STATUS(hdrt_launch_with(a, add, &options, args.pointers, args.kinds, args.count), HDRT_ERROR_UNSUPPORTED);
    CK_STATUS(hdrt_queue_wait(a, outside), HDRT_ERROR_UNSUPPORTED);
    CK_OK(hdrt_queue_wait(a, done));
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 1);
    CK_OK(hdrt_queue_error(a));
    CK_OK(hdrt_graph_end(graph));
    gate_open(&g);
    CK_OK(hdrt_queue_host_call(a, gate_wait, &g)); /* and now it runs again */
    CK_OK(hdrt_graph_replay(a, graph));
    CK_OK(hdrt_queue_synchronize(a));
    ck_assert_uint_eq(value_at(x), 1);
    hdrt_graph_destroy(inner);
    hdrt_timer_destroy(timer);
}
END_TEST

START_TEST(a_recording_leaves_what_was_before_alone)
{
    static gate g = GATE_INIT;
    gate_hold(&g, a);
    enqueue_add(a, x, 1);
    begin(a);
    enqueue_add(a, x, 10);
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(a));
    ck_assert_uint_eq(value_at(x), 1);
    CK_OK(hdrt_graph_end(graph));
    enqueue_add(a, x, 100);
    ck_assert_uint_eq(value_at(x), 101);
}
END_TEST

/* ---- many replays ------------------------------------------------------------------------------------------------ */

START_TEST(several_replays_are_in_flight)
{
    static gate g = GATE_INIT;
    hdrt_queue *queues[] = {a, b, c};
    hdrt_ptr places[3];
    gate_hold(&g, a);
    hdrt_event gated = hdrt_queue_record(a);
    CK_OK(hdrt_queue_wait(b, gated));
    CK_OK(hdrt_queue_wait(c, gated));
    record_add(1);
    for (int i = 0; i < 3; i++) {
        CK_OK(hdrt_alloc(queues[i], BYTES, &places[i]));
        CK_OK(hdrt_fill(queues[i], places[i], "\0", 1, BYTES));
    }
    for (unsigned k = 0; k < 20; k++) {
        for (int i = 0; i < 3; i++) {
            CK_OK(hdrt_graph_set_launch(graph, 0, NULL, HDRT_ARGS(places[i], (unsigned)N, k + 1)));
            CK_OK(hdrt_graph_replay(queues[i], graph));
        }
    }
    gate_open(&g);
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(value_at(places[i]), 210);
        CK_OK(hdrt_free(queues[i], places[i]));
    }
}
END_TEST

START_TEST(one_gated_replay_holds_up_no_other)
{
    static gate g = GATE_INIT;
    record_add(1);
    gate_hold(&g, a);
    unsigned long long launched = on_cuda() ? 0 : calls_of("cuGraphLaunch");
    CK_OK(hdrt_graph_replay(a, graph));
    while (!on_cuda() && calls_of("cuGraphLaunch") == launched) {
        usleep(100);
    }
    CK_OK(hdrt_graph_replay(b, graph)); /* by an instance of its own */
    hdrt_event done = hdrt_queue_record(b);
    CK_OK(hdrt_event_wait(rt, done, HDRT_FOREVER));
    gate_open(&g);
    ck_assert_uint_eq(value_at(x), 2);
}
END_TEST

static void *replay_many(void *argument)
{
    hdrt_queue *queue = argument;
    for (int i = 0; i < 200; i++) {
        CK_OK(hdrt_graph_replay(queue, graph));
    }
    return NULL;
}

/* The replays touch no memory, for nothing orders them. */
START_TEST(threads_replay_it_at_once)
{
    hdrt_queue *queues[] = {a, b, c};
    pthread_t threads[3];
    begin(a);
    CK_OK(hdrt_launch(a, add, hdrt_grid_1d(N, 64), HDRT_ARGS(x, 0u, 1u)));
    CK_OK(hdrt_graph_end(graph));
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, replay_many, queues[i]), 0);
    }
    for (unsigned i = 0; i < 100; i++) {
        CK_OK(hdrt_graph_set_launch(graph, 0, NULL, HDRT_ARGS(x, 0u, i)));
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    CK_OK(hdrt_device_synchronize(dev));
    CK_OK(hdrt_graph_set_launch(graph, 0, NULL, HDRT_ARGS(x, (unsigned)N, 7u)));
    CK_OK(hdrt_graph_replay(a, graph));
    ck_assert_uint_eq(value_at(x), 7);
}
END_TEST

/* ---- changing ---------------------------------------------------------------------------------------------------- */

START_TEST(changes_are_for_later_replays)
{
    static gate g = GATE_INIT;
    begin(a);
    enqueue_add(a, x, 1);
    CK_OK(hdrt_copy_dtoh(a, host, x, BYTES));
    CK_OK(hdrt_fill(a, y, "\1\0\0\0", 4, N));
    CK_OK(hdrt_graph_end(graph));
    gate_hold(&g, b);
    CK_OK(hdrt_graph_replay(b, graph));
    hdrt_grid half = hdrt_grid_1d(N / 2, 32);
    hdrt_region_side to = {0, other, 0, 0}, from = {x, NULL, 0, 0};
    CK_OK(hdrt_graph_set_launch(graph, 0, &half, HDRT_ARGS(x, (unsigned)N / 2, 10u)));
    CK_OK(hdrt_graph_set_copy(graph, 1, &to, &from, 8, 1, 1));
    CK_OK(hdrt_graph_set_fill(graph, 2, y, "\11\0", 2, N * 2));
    CK_OK(hdrt_graph_replay(b, graph));
    CK_OK(hdrt_graph_set_launch(graph, 0, NULL, HDRT_ARGS(x, (unsigned)N / 2, 100u)));
    CK_OK(hdrt_graph_replay(b, graph));
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(b));
    ck_assert_uint_eq(host[0], 1);
    ck_assert_uint_eq(host[N - 1], 1);
    ck_assert_uint_eq(other[0], 111);
    ck_assert_uint_eq(other[2], 0); /* two values were copied */
    ck_assert_uint_eq(value_at(y), 0x00090009);
    CK_OK(hdrt_copy_dtoh(a, host, x, BYTES));
    CK_OK(hdrt_queue_synchronize(a));
    ck_assert_uint_eq(host[N / 2 - 1], 111);
    ck_assert_uint_eq(host[N / 2], 1);
}
END_TEST

START_TEST(a_copy_may_turn_round)
{
    begin(a);
    CK_OK(hdrt_copy_dtoh(a, host, x, BYTES));
    CK_OK(hdrt_graph_end(graph));
    CK_OK(hdrt_graph_replay(a, graph));
    CK_OK(hdrt_queue_synchronize(a));
    for (int i = 0; i < N; i++) {
        host[i] = 77;
    }
    hdrt_region_side from = {0, host, 0, 0}, to = {x, NULL, 0, 0};
    CK_OK(hdrt_graph_set_copy(graph, 0, &to, &from, BYTES, 1, 1));
    CK_OK(hdrt_graph_replay(a, graph));
    ck_assert_uint_eq(value_at(x), 77);
}
END_TEST

START_TEST(changes_are_checked)
{
    char pageable[64];
    hdrt_region_side to = {0, host, 0, 0}, from = {x, NULL, 0, 0}, wild = {0, pageable, 0, 0};
    hdrt_grid none = hdrt_grid_1d(0, 32), large = hdrt_grid_1d(N, 1 << 20);
    begin(a);
    enqueue_add(a, x, 1);
    CK_OK(hdrt_copy_dtoh(a, host, x, BYTES));
    CK_OK(hdrt_fill(a, y, "\1\0\0\0", 4, N));
    CK_STATUS(hdrt_graph_set_fill(graph, 2, y, "\1", 1, N), HDRT_ERROR_INVALID_ARGUMENT); /* being recorded */
    CK_OK(hdrt_graph_end(graph));
    hdrt_args good = HDRT_ARGS(x, (unsigned)N, 1u), few = HDRT_ARGS(x), floats = HDRT_ARGS(x, (unsigned)N, 1.0f);
    CK_STATUS(hdrt_graph_set_launch(NULL, 0, NULL, good), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_graph_set_launch(graph, 3, NULL, good), HDRT_ERROR_NOT_FOUND);
    CK_STATUS(hdrt_graph_set_launch(graph, 1, NULL, good), HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("is a copy");
    CK_STATUS(hdrt_graph_set_launch(graph, 0, NULL, few), HDRT_ERROR_LAUNCH);
    CK_STATUS(hdrt_graph_set_launch(graph, 0, NULL, floats), HDRT_ERROR_LAUNCH);
    CK_STATUS(hdrt_graph_set_launch(graph, 0, &none, good), HDRT_ERROR_LAUNCH);
    CK_STATUS(hdrt_graph_set_launch(graph, 0, &large, good), HDRT_ERROR_LAUNCH);
    CK_STATUS(hdrt_graph_set_copy(graph, 1, NULL, &from, 4, 1, 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_graph_set_copy(graph, 0, &to, &from, 4, 1, 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_graph_set_copy(graph, 1, &wild, &from, 4, 1, 1), HDRT_ERROR_UNSUPPORTED);
    CK_STATUS(hdrt_graph_set_copy(graph, 1, &to, &from, 0, 1, 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_graph_set_copy(graph, 1, &to, &from, BYTES + 4, 1, 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_graph_set_fill(graph, 2, y, "\1\2\3\4\5\6\7\10", 8, 4), HDRT_ERROR_UNSUPPORTED);
    CK_STATUS(hdrt_graph_set_fill(graph, 2, y, "\1", 1, 0), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_graph_set_fill(graph, 2, y + 2, "\1\0\0\0", 4, 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_OK(hdrt_graph_replay(a, graph)); /* it is what it was */
    CK_OK(hdrt_queue_synchronize(a));
    ck_assert_uint_eq(host[0], 1);
}
END_TEST

/* ---- recording again --------------------------------------------------------------------------------------------- */

START_TEST(recording_again_is_cheap_where_only_values_change)
{
    record_add(1);
    CK_OK(hdrt_graph_replay(a, graph));
    CK_OK(hdrt_queue_synchronize(a));
    unsigned long long built = calls_of("cuGraphInstantiateWithFlags");
    unsigned long long set = calls_of("cuGraphExecKernelNodeSetParams");
    for (unsigned i = 0; i < 10; i++) {
        record_add(1);
        CK_OK(hdrt_graph_replay(a, graph));
    }
    ck_assert_uint_eq(calls_of("cuGraphExecKernelNodeSetParams"), set);
    for (unsigned i = 0; i < 10; i++) {
        record_add(10 + i);
        CK_OK(hdrt_graph_replay(a, graph));
    }
    ck_assert_uint_eq(value_at(x), 11 + 145);
    ck_assert_uint_eq(calls_of("cuGraphExecKernelNodeSetParams"), set + 10);
    begin(b);
    CK_OK(hdrt_launch(b, stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(x, 5u)));
    CK_OK(hdrt_graph_end(graph));
    CK_OK(hdrt_graph_replay(a, graph)); /* another kernel is a value too */
    CK_OK(hdrt_copy_dtoh(a, host, x, BYTES));
    CK_OK(hdrt_queue_synchronize(a));
    ck_assert_uint_eq(host[0], 5);
    ck_assert_uint_eq(host[1], 156);
    ck_assert_uint_eq(calls_of("cuGraphInstantiateWithFlags"), built);
}
END_TEST

/* A node that is set to another kernel would keep the shape of its clusters. */
START_TEST(recording_again_may_change_clusters)
{
    hdrt_kernel *kernels[2];
    hdrt_module *clusters = load_clusters(&kernels[0], &kernels[1]);
    unsigned in_pair = on_cuda() ? 2 : 1;
    kernels[1]->in_clusters |= !on_cuda();
    ck_assert(kernels[1]->in_clusters);
    ck_assert(!kernels[0]->in_clusters);
    unsigned long long built = on_cuda() ? 0 : calls_of("cuGraphInstantiateWithFlags");
    for (int i = 0; i < 6; i++) {
        begin(a);
        CK_OK(hdrt_launch(a, kernels[i / 2 % 2], hdrt_grid_1d(4, 1), HDRT_ARGS(x)));
        CK_OK(hdrt_graph_end(graph));
        CK_OK(hdrt_graph_replay(a, graph));
        CK_OK(hdrt_copy_dtoh(a, host, x, BYTES));
        CK_OK(hdrt_queue_synchronize(a));
        ck_assert_uint_eq(host[0], i / 2 % 2 ? in_pair : 1);
    }
    if (!on_cuda()) {
        ck_assert_uint_eq(calls_of("cuGraphInstantiateWithFlags") - built, 3);
    }
    hdrt_module_destroy(clusters);
}
END_TEST

START_TEST(recording_again_may_change_everything)
{
    static gate g = GATE_INIT;
    record_add(1);
    gate_hold(&g, b);
    CK_OK(hdrt_graph_replay(b, graph));
    begin(a);
    CK_OK(hdrt_graph_replay(b, graph)); /* of what it still is */
    enqueue_add(a, x, 10);
    enqueue_add(a, x, 100);
    CK_OK(hdrt_graph_end(graph));
    CK_OK(hdrt_graph_replay(b, graph));
    gate_open(&g);
    ck_assert_uint_eq(value_at(x), 112);
    for (int i = 0; i < 5; i++) {
        CK_OK(hdrt_graph_replay(b, graph));
    }
    ck_assert_uint_eq(value_at(x), 112 + 550);
}
END_TEST

/* ---- ending ------------------------------------------------------------------------------------------------------ */

START_TEST(everything_may_be_destroyed_while_it_is_in_flight)
{
    static gate g = GATE_INIT;
    hdrt_queue *queue = make_queue("short");
    hdrt_module *mine = load_kernels();
    hdrt_kernel *kernel = kernel_of(mine, "add");
    hdrt_graph *doomed;
    CK_OK(hdrt_graph_create(dev, NULL, &doomed));
    CK_OK(hdrt_graph_begin(doomed, &queue, 1));
    CK_OK(hdrt_launch(queue, kernel, hdrt_grid_1d(N, 64), HDRT_ARGS(x, (unsigned)N, 8u)));
    CK_OK(hdrt_graph_end(doomed));
    hdrt_module_destroy(mine); /* the graph has it */
    gate_hold(&g, queue);
    CK_OK(hdrt_graph_replay(queue, doomed));
    CK_OK(hdrt_graph_replay(queue, doomed));
    hdrt_event last = hdrt_queue_record(queue);
    hdrt_graph_destroy(doomed);
    hdrt_queue_destroy(queue);
    gate_open(&g);
    CK_OK(hdrt_event_wait(rt, last, HDRT_FOREVER));
    ck_assert_uint_eq(value_at(x), 16);
}
END_TEST

START_TEST(a_recording_may_be_given_up)
{
    hdrt_queue *queue = make_queue("recorded");
    hdrt_queue *both[] = {a, queue};
    hdrt_graph *given_up;
    CK_OK(hdrt_graph_create(dev, NULL, &given_up));
    CK_OK(hdrt_graph_begin(given_up, both, 2));
    enqueue_add(a, x, 1);
    enqueue_add(queue, x, 1);
    hdrt_queue_destroy(queue);
    hdrt_graph_destroy(given_up);
    enqueue_add(a, x, 4);
    ck_assert_uint_eq(value_at(x), 4);
}
END_TEST

START_TEST(the_device_may_be_closed_first)
{
    hdrt_runtime *runtime = make_runtime();
    hdrt_device *device;
    hdrt_queue *queue;
    hdrt_graph *late;
    hdrt_ptr memory;
    char bytes[64];
    CK_OK(hdrt_device_open(runtime, 0, NULL, &device));
    CK_OK(hdrt_queue_create(device, NULL, &queue));
    CK_OK(hdrt_alloc(queue, 64, &memory));
    CK_OK(hdrt_graph_create(device, NULL, &late));
    CK_OK(hdrt_graph_begin(late, &queue, 1));
    CK_OK(hdrt_fill(queue, memory, "x", 1, 64));
    CK_OK(hdrt_graph_end(late));
    hdrt_runtime_destroy(runtime);
    hdrt_device_close(device);
    CK_OK(hdrt_fill(queue, memory, "y", 1, 64));
    CK_OK(hdrt_graph_replay(queue, late));
    CK_OK(hdrt_copy_dtoh(queue, bytes, memory, sizeof bytes));
    CK_OK(hdrt_queue_synchronize(queue));
    for (size_t i = 0; i < sizeof bytes; i++) {
        ck_assert_int_eq(bytes[i], 'x');
    }
    CK_OK(hdrt_free(queue, memory));
    CK_OK(hdrt_queue_synchronize(queue));
    hdrt_queue_destroy(queue);
    hdrt_graph_destroy(late);
}
END_TEST

/* ---- failures ---------------------------------------------------------------------------------------------------- */

START_TEST(what_cannot_be_built_leaves_the_graph_as_it_was)
{
    static const char *const calls[] = {"cuGraphCreate", "cuGraphAddKernelNode", "cuGraphAddMemcpyNode",
                                        "cuGraphAddMemsetNode", "cuGraphAddEmptyNode", "cuGraphInstantiateWithFlags"};
    record_add(1);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        char rule[64];
        begin(a);
        enqueue_add(a, x, 10);
        CK_OK(hdrt_copy_dtod(a, y, x, BYTES));
        CK_OK(hdrt_fill(a, y, "\1", 1, BYTES));
        CK_OK(hdrt_copy_dtod(a, y, x, 0));
        snprintf(rule, sizeof rule, "%s:1=2", calls[i]);
        inject(rule);
        hdrt_status status = hdrt_graph_end(graph);
        inject(NULL);
        CK_STATUS(status, HDRT_ERROR_OUT_OF_DEVICE_MEMORY);
        CK_MESSAGE("building graph");
        ck_assert_uint_eq(hdrt_graph_node_count(graph), 1);
        CK_OK(hdrt_graph_replay(a, graph));
        ck_assert_uint_eq(value_at(x), i + 1);
    }
}
END_TEST

START_TEST(what_cannot_be_set_is_built_anew)
{
    record_add(1);
    CK_OK(hdrt_graph_replay(a, graph));
    CK_OK(hdrt_queue_synchronize(a));
    inject("cuGraphExecKernelNodeSetParams:1=1");
    CK_OK(hdrt_graph_set_launch(graph, 0, NULL, HDRT_ARGS(x, (unsigned)N, 10u)));
    CK_OK(hdrt_graph_replay(a, graph));
    CK_OK(hdrt_queue_synchronize(a));
    inject(NULL);
    ck_assert_uint_eq(value_at(x), 11);
}
END_TEST

START_TEST(a_replay_that_fails_fails_its_queue)
{
    record_add(1);
    inject("cuGraphLaunch:1=1");
    hdrt_status status = hdrt_graph_replay(a, graph);
    hdrt_status end = hdrt_queue_synchronize(a);
    inject(NULL);
    ck_assert(status == HDRT_OK || status == HDRT_ERROR_QUEUE_FAILED);
    CK_STATUS(end, HDRT_ERROR_QUEUE_FAILED);
    CK_MESSAGE("replaying graph");
    CK_OK(hdrt_queue_clear_error(a));
    CK_OK(hdrt_graph_replay(a, graph));
    ck_assert_uint_eq(value_at(x), 1);
}
END_TEST

START_TEST(a_lost_device_ends_it_all)
{
    begin(a);
    CK_OK(hdrt_launch(a, kernel_of(module, "fault"), hdrt_grid_1d(1, 1), HDRT_ARGS()));
    CK_OK(hdrt_graph_end(graph));
    CK_OK(hdrt_graph_begin(graph, &b, 1));
    hdrt_graph_replay(a, graph);
    CK_STATUS(hdrt_queue_synchronize(a), HDRT_ERROR_DEVICE_LOST);
    CK_MESSAGE("graph 'graph'");
    CK_STATUS(hdrt_fill(b, x, "\1", 1, 4), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_graph_end(graph), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_graph_replay(b, graph), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_graph_set_fill(graph, 0, x, "\1", 1, 4), HDRT_ERROR_DEVICE_LOST);
    hdrt_graph_destroy(graph);
    graph = NULL;
    hdrt_module_destroy(module);
    hdrt_queue_destroy(a);
    hdrt_queue_destroy(b);
    hdrt_queue_destroy(c);
    teardown_device();
    _exit(0);
}
END_TEST

static hdrt_status record_and_replay(void)
{
    hdrt_queue *both[] = {a, b};
    hdrt_graph *made;
    hdrt_status status = hdrt_graph_create(dev, NULL, &made);
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt_graph_begin(made, both, 2);
    if (status == HDRT_OK) {
        status = hdrt_launch(a, add, hdrt_grid_1d(N, 64), HDRT_ARGS(x, (unsigned)N, 1u));
        status = status == HDRT_OK ? hdrt_queue_wait(b, hdrt_queue_record(a)) : status;
        status = status == HDRT_OK ? hdrt_copy_dtoh(b, host, x, BYTES) : status;
        hdrt_status ended = hdrt_graph_end(made);
        status = status == HDRT_OK ? ended : status;
    }
    if (status == HDRT_OK) {
        status = hdrt_graph_replay(c, made);
    }
    if (status == HDRT_OK) {
        status = hdrt_graph_set_launch(made, 0, NULL, HDRT_ARGS(x, (unsigned)N, 1u));
    }
    if (status == HDRT_OK) {
        status = hdrt_graph_replay(c, made);
    }
    hdrt_graph_destroy(made);
    hdrt_status end = hdrt_queue_synchronize(c);
    return status == HDRT_OK ? end : status;
}

START_TEST(every_allocation_may_fail)
{
    hdrt_status status = HDRT_OK;
    uint32_t refused = 0;
    CK_OK(record_and_replay());
    FAILING_MALLOC_EACH(n) {
        status = record_and_replay();
        refused += status != HDRT_OK;
        hdrt_queue_clear_error(c);
    }
    CK_OK(status);
    ck_assert_uint_ge(refused, 3);
    CK_OK(record_and_replay());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph");
    TCase *tcase = tcase_create("graph"), *soft = tcase_create("soft");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, arguments_are_checked);
    tcase_add_test(tcase, a_stream_is_not_given_out_during_a_recording);
    tcase_add_test(tcase, what_is_recorded_runs_when_it_is_replayed);
    tcase_add_test(tcase, a_replay_is_ordered_like_any_operation);
    tcase_add_test(tcase, queues_of_a_recording_wait_for_each_other);
    tcase_add_test(tcase, what_cannot_be_recorded_is_told);
    tcase_add_test(tcase, a_recording_leaves_what_was_before_alone);
    tcase_add_test(tcase, several_replays_are_in_flight);
    tcase_add_test(tcase, one_gated_replay_holds_up_no_other);
    tcase_add_test(tcase, threads_replay_it_at_once);
    tcase_add_test(tcase, changes_are_for_later_replays);
    tcase_add_test(tcase, a_copy_may_turn_round);
    tcase_add_test(tcase, changes_are_checked);
    tcase_add_test(tcase, recording_again_may_change_everything);
    tcase_add_test(tcase, recording_again_may_change_clusters);
    tcase_add_test(tcase, everything_may_be_destroyed_while_it_is_in_flight);
    tcase_add_test(tcase, a_recording_may_be_given_up);
    tcase_add_test(tcase, the_device_may_be_closed_first);
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(soft, setup, teardown);
    tcase_set_timeout(soft, 60);
    tcase_add_test(soft, recording_again_is_cheap_where_only_values_change);
    tcase_add_test(soft, what_cannot_be_built_leaves_the_graph_as_it_was);
    tcase_add_test(soft, what_cannot_be_set_is_built_anew);
    tcase_add_test(soft, a_replay_that_fails_fails_its_queue);
    tcase_add_test(soft, a_lost_device_ends_it_all);
    tcase_add_test(soft, every_allocation_may_fail);
    add_soft_tcase(suite, soft, "failures and counted driver calls");
    return run_suite(suite);
}
