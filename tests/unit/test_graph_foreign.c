/* SPDX-License-Identifier: MIT */
/* Explicit graphs that hold what the caller enqueued himself on the streams of recorded queues. */
#include "foreign_fixture.h"

#include <poll.h>

/* ---- recording and replaying ------------------------------------------------------------------------------------- */

START_TEST(it_is_in_call_order_with_the_queues_operations)
{
    begin(own);
    ck_assert_int_eq(cu.set(x, 1, N, stream), 0);
    ck_assert_int_eq(launch_add(stream, x, 2), 0);
    CK_OK(enqueue_add(own, x, 10)); /* 13 */
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 2);
    CK_OK(hdrt_copy_dtod(own, y, x, BYTES));
    ck_assert_int_eq(cu.set(x, 100, N, stream), 0);
    ck_assert_int_eq(launch_add(stream, y, 1000), 0); /* 1013 */
    CK_OK(hdrt_fill(own, x, "\5\0\0\0", 4, N));
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 5);
    ck_assert_int_eq(launch_add(stream, x, 1), 0); /* 6 */
    CK_OK(hdrt_graph_end(graph));
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 6);
    ck_assert_uint_eq(value_at(x), 0); /* nothing has run */
    for (int i = 0; i < 5; i++) {
        CK_OK(hdrt_graph_replay(i & 1 ? own : a, graph));
        ck_assert_uint_eq(value_at(x), 6);
        ck_assert_uint_eq(value_at(y), 1013);
    }
    check_usable(stream);
}
END_TEST

START_TEST(where_there_is_none_there_is_no_node)
{
    begin(own);
    CK_OK(enqueue_add(own, x, 1));
    hdrt_event event = hdrt_queue_record(own);
    CK_OK(hdrt_queue_wait(own, event));
    CK_OK(enqueue_add(own, x, 10));
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 2);
    CK_OK(hdrt_graph_end(graph));
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 2);
    CK_OK(hdrt_graph_replay(own, graph));
    ck_assert_uint_eq(value_at(x), 11);
    begin(own);
    CK_OK(hdrt_graph_end(graph));
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 0);
}
END_TEST

START_TEST(a_stream_that_was_given_out_is_the_same)
{
    struct CUstream_st *again = NULL;
    begin(lent);
    CK_OK(hdrt_fill(lent, x, "\1\0\0\0", 4, N));
    CK_OK(hdrt_queue_stream(lent, &again));
    ck_assert_ptr_eq(again, given);
    ck_assert_int_eq(launch_add(again, x, 2), 0);
    CK_OK(enqueue_add(lent, x, 10));
    CK_OK(hdrt_graph_end(graph));
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 3);
    CK_OK(hdrt_graph_replay(lent, graph));
    ck_assert_int_eq(launch_add(given, x, 100), 0); /* behind it, as ever */
    CK_OK(hdrt_queue_synchronize(lent));
    ck_assert_uint_eq(value_at(x), 113);
}
END_TEST

START_TEST(events_order_it_with_other_queues)
{
    hdrt_queue *three[] = {a, own, lent};
    CK_OK(hdrt_graph_begin(graph, three, 3));
    ck_assert_int_eq(cu.set(x, 1, N, stream), 0);
    CK_OK(hdrt_queue_wait(a, hdrt_queue_record(own))); /* of own work alone */
    CK_OK(enqueue_add(a, x, 10)); /* 11 */
    CK_OK(hdrt_queue_wait(own, hdrt_queue_record(a)));
    ck_assert_int_eq(cu.copy(y, x, BYTES, stream), 0);
    CK_OK(hdrt_queue_wait(lent, hdrt_queue_record(own)));
    ck_assert_int_eq(launch_add(given, y, 100), 0); /* 111 */
    CK_OK(hdrt_queue_wait(own, hdrt_queue_record(lent)));
    ck_assert_int_eq(launch_add(stream, y, 1000), 0); /* 1111 */
    CK_OK(hdrt_queue_wait(a, hdrt_queue_record(own)));
    CK_OK(hdrt_copy_dtod(a, x, y, BYTES));
    CK_OK(hdrt_graph_end(graph));
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 6);
    for (int i = 0; i < 20; i++) {
        CK_OK(hdrt_fill(a, x, "\0", 1, BYTES));
        CK_OK(hdrt_graph_replay(a, graph));
        ck_assert_uint_eq(value_at(x), 1111);
    }
}
END_TEST

START_TEST(a_wait_does_not_hold_up_what_was_before_it)
{
    hdrt_queue *both[] = {own, a};
    CK_OK(hdrt_graph_begin(graph, both, 2));
    ck_assert_int_eq(cu.set(x, 1, N, stream), 0);
    hdrt_event first = hdrt_queue_record(own);
    CK_OK(hdrt_queue_wait(a, first));
    CK_OK(enqueue_add(a, x, 2));
    hdrt_event second = hdrt_queue_record(a);
    ck_assert_int_eq(cu.set(y, 1, N, stream), 0);
    CK_OK(hdrt_queue_wait(own, second)); /* cuts: the set of y does not come after it */
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 3);
    ck_assert_int_eq(launch_add(stream, x, 4), 0);
    CK_OK(hdrt_graph_end(graph));
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 4);
    CK_OK(hdrt_graph_replay(own, graph));
    ck_assert_uint_eq(value_at(x), 7);
    ck_assert_uint_eq(value_at(y), 1);
}
END_TEST

START_TEST(several_replays_are_in_flight)
{
    static gate g = GATE_INIT;
    hdrt_queue *queues[] = {a, own, lent};
    gate_hold(&g, a);
    hdrt_event gated = hdrt_queue_record(a);
    begin(own);
    ck_assert_int_eq(launch_add(stream, x, 1), 0);
    CK_OK(enqueue_add(own, x, 1));
    CK_OK(hdrt_graph_end(graph));
    for (int i = 0; i < 10; i++) {
        for (int k = 0; k < 3; k++) { /* one after the other: they add to the same */
            CK_OK(hdrt_queue_wait(queues[k], gated));
            CK_OK(hdrt_graph_replay(queues[k], graph));
            gated = hdrt_queue_record(queues[k]);
        }
    }
    hdrt_graph_destroy(graph);
    graph = NULL;
    gate_open(&g);
    ck_assert_uint_eq(value_at(x), 60);
}
END_TEST

START_TEST(streams_may_fork_and_join_in_it)
{
    begin(own);
    CK_OK(hdrt_fill(own, x, "\1\0\0\0", 4, N));
    ck_assert_int_eq(launch_add(stream, x, 2), 0);
    fork_to(side, stream);
    ck_assert_int_eq(launch_add(side, x, 10), 0);
    ck_assert_int_eq(cu.set(y, 7, N, stream), 0);
    fork_to(stream, side);
    ck_assert_int_eq(launch_add(stream, x, 100), 0);
    CK_OK(hdrt_copy_dtod(own, y, x, BYTES));
    CK_OK(hdrt_graph_end(graph));
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 3);
    for (int i = 0; i < 10; i++) {
        CK_OK(hdrt_graph_replay(a, graph));
        ck_assert_uint_eq(value_at(y), 113);
    }
}
END_TEST

START_TEST(earlier_work_goes_on)
{
    static gate g = GATE_INIT;
    int fd = -1;
    gate_hold(&g, own);
    CK_OK(enqueue_add(own, x, 1));
    hdrt_event before = hdrt_queue_record(own);
    begin(own);
    ck_assert_int_eq(launch_add(stream, x, 100), 0);
    CK_OK(hdrt_queue_wait(a, before));
    CK_OK(enqueue_add(a, x, 10));
    CK_STATUS(hdrt_event_query(rt, before), HDRT_NOT_READY);
    CK_OK(hdrt_event_notify_fd(rt, before, &fd));
    gate_open(&g);
    CK_OK(hdrt_event_wait(rt, before, HDRT_FOREVER));
    struct pollfd told = {.fd = fd, .events = POLLIN};
    ck_assert_int_eq(poll(&told, 1, patience_ms()), 1);
    close(fd);
    CK_OK(hdrt_queue_synchronize(a));
    CK_OK(hdrt_queue_synchronize(own));
    ck_assert_uint_eq(value_at(x), 11);
    CK_OK(enqueue_add(own, x, 1000));
    CK_OK(hdrt_graph_end(graph));
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 2);
    CK_OK(hdrt_graph_replay(own, graph));
    ck_assert_uint_eq(value_at(x), 1111);
}
END_TEST

/* What a queue waits for before the recording is no part of it, also where it is handed over late. */
START_TEST(a_wait_before_it_is_not_captured)
{
    static gate g = GATE_INIT;
    hdrt_queue *queue, *both[2] = {own};
    int fd = -1;
    CK_OK(hdrt_queue_adopt(dev, side, NULL, &queue));
    both[1] = queue;
    gate_hold(&g, a);
    hdrt_event gated = hdrt_queue_record(a);
    CK_OK(hdrt_queue_wait(queue, gated));
    CK_OK(hdrt_queue_wait(own, gated));
    hdrt_event before = hdrt_queue_record(own);
    CK_OK(hdrt_graph_begin(graph, both, 2));
    CK_OK(hdrt_event_notify_fd(rt, before, &fd)); /* enqueues a flight, as does the end of a queue */
    hdrt_queue_destroy(queue);
    usleep(10000);
    ck_assert_int_eq(launch_add(stream, x, 1), 0);
    ck_assert_int_eq(cu.set(y, 5, N, side), 0);
    CK_OK(hdrt_graph_end(graph));
    CK_OK(hdrt_graph_replay(lent, graph));
    CK_OK(hdrt_queue_synchronize(lent)); /* the gate is still shut */
    gate_open(&g);
    ck_assert_uint_eq(value_at(x), 1);
    ck_assert_uint_eq(value_at(y), 5);
    close(fd);
}
END_TEST

/* ---- changing and recording again -------------------------------------------------------------------------------- */

START_TEST(such_a_node_cannot_be_changed)
{
    hdrt_region_side to = {0, host, 0, 0}, from = {x, NULL, 0, 0};
    begin(own);
    ck_assert_int_eq(launch_add(stream, x, 1), 0);
    CK_OK(enqueue_add(own, x, 10));
    CK_OK(hdrt_graph_end(graph));
    CK_STATUS(hdrt_graph_set_launch(graph, 0, NULL, HDRT_ARGS(x, (unsigned)N, 1u)), HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("the caller's own work");
    CK_STATUS(hdrt_graph_set_copy(graph, 0, &to, &from, 4, 1, 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_graph_set_fill(graph, 0, x, "\1", 1, 4), HDRT_ERROR_INVALID_ARGUMENT);
    static gate g = GATE_INIT;
    gate_hold(&g, a);
    CK_OK(hdrt_graph_replay(a, graph));
    CK_OK(hdrt_graph_set_launch(graph, 1, NULL, HDRT_ARGS(x, (unsigned)N, 100u))); /* in a copy that shares node 0 */
    CK_OK(hdrt_graph_replay(a, graph));
    gate_open(&g);
    ck_assert_uint_eq(value_at(x), 112);
}
END_TEST

START_TEST(another_shape_is_built_anew)
{
    static gate g = GATE_INIT;
    record_foreign(1);
    gate_hold(&g, a);
    CK_OK(hdrt_graph_replay(a, graph));
    begin(own);
    ck_assert_int_eq(launch_add(stream, x, 10), 0);
    ck_assert_int_eq(launch_add(stream, x, 20), 0); /* more nodes */
    CK_OK(hdrt_graph_end(graph));
    CK_OK(hdrt_graph_replay(a, graph));
    begin(own);
    ck_assert_int_eq(launch_add(stream, x, 100), 0);
    ck_assert_int_eq(cu.set(y, 9, N, stream), 0); /* as many, of another kind */
    CK_OK(hdrt_graph_end(graph));
    CK_OK(hdrt_graph_replay(a, graph));
    begin(own);
    ck_assert_int_eq(launch_add(stream, x, 1000), 0); /* the same kinds, in another order */
    fork_to(side, stream);
    ck_assert_int_eq(cu.set(y, 5, N, side), 0);
    fork_to(stream, side);
    CK_OK(hdrt_graph_end(graph));
    CK_OK(hdrt_graph_replay(a, graph));
    gate_open(&g);
    ck_assert_uint_eq(value_at(x), 1131);
    ck_assert_uint_eq(value_at(y), 5);
    CK_OK(hdrt_graph_replay(lent, graph));
    ck_assert_uint_eq(value_at(x), 2131);
}
END_TEST

/* Whoever hands it over must not have to build. */
START_TEST(another_shape_is_built_at_the_end)
{
    for (unsigned i = 0; i < 6; i++) {
        begin(own);
        ck_assert_int_eq(launch_add(stream, x, 1), 0);
        ck_assert_int_eq(i % 2 ? cu.set(y, i, N, stream) : launch_add(stream, x, 1), 0);
        unsigned long long built = calls_of("cuGraphInstantiateWithFlags");
        CK_OK(hdrt_graph_end(graph));
        ck_assert_uint_eq(calls_of("cuGraphInstantiateWithFlags"), built + 1);
        CK_OK(hdrt_graph_replay(a, graph));
        CK_OK(hdrt_queue_synchronize(a));
        ck_assert_uint_eq(calls_of("cuGraphInstantiateWithFlags"), built + 1);
    }
    ck_assert_uint_eq(value_at(x), 9);
    ck_assert_uint_eq(value_at(y), 5);
}
END_TEST

/* A captured kernel's node that is set to another's would keep what is no parameter: the shape of its clusters, say. */
START_TEST(recording_again_may_change_attributes)
{
    hdrt_kernel *kernels[2];
    hdrt_module *clusters = load_clusters(&kernels[0], &kernels[1]);
    unsigned in_pair = on_cuda() ? 2 : 1;
    unsigned long long built = on_cuda() ? 0 : calls_of("cuGraphInstantiateWithFlags");
    for (int i = 0; i < 12; i++) {
        struct CUfunc_st *function = hdrt_kernel_function(kernels[i / 2 % 2]);
        void *params[] = {&x};
        begin(own);
        ck_assert_int_eq(i < 6 ? cu.launch(function, 4, 1, 1, 1, 1, 1, 0, stream, params, NULL)
                               : cu.cooperate(function, 4, 1, 1, 1, 1, 1, 0, stream, params),
                         0);
        CK_OK(hdrt_graph_end(graph));
        CK_OK(hdrt_graph_replay(a, graph));
        CK_OK(hdrt_copy_dtoh(a, host, x, BYTES));
        CK_OK(hdrt_queue_synchronize(a));
        ck_assert_uint_eq(host[0], i / 2 % 2 ? in_pair : 1);
    }
    if (!on_cuda()) { /* where there are no clusters it is built anew for the cooperative ones alone */
        ck_assert_uint_eq(calls_of("cuGraphInstantiateWithFlags") - built, 2);
    }
    hdrt_module_destroy(clusters);
}
END_TEST

START_TEST(recording_again_is_cheap_where_only_values_change)
{
    record_foreign(1);
    CK_OK(hdrt_graph_replay(a, graph));
    CK_OK(hdrt_queue_synchronize(a));
    unsigned long long built = calls_of("cuGraphInstantiateWithFlags");
    unsigned long long set = calls_of("cuGraphExecChildGraphNodeSetParams");
    for (unsigned i = 0; i < 10; i++) {
        record_foreign(10 + i);
        CK_OK(hdrt_graph_replay(a, graph));
        CK_OK(hdrt_graph_replay(a, graph));
    }
    ck_assert_uint_eq(value_at(x), 1 + 2 * 145);
    ck_assert_uint_eq(calls_of("cuGraphInstantiateWithFlags"), built);
    ck_assert_uint_eq(calls_of("cuGraphExecChildGraphNodeSetParams"), set + 10);
}
END_TEST

START_TEST(an_operation_after_none_costs_two_calls)
{
    begin(own);
    CK_OK(enqueue_add(own, x, 1));
    unsigned long long ends = calls_of("cuStreamEndCapture"), begins = calls_of("cuStreamBeginCapture");
    unsigned long long asks = calls_of("cuStreamGetCaptureInfo"), nodes = calls_of("cuGraphGetNodes");
    for (int i = 0; i < 10; i++) {
        CK_OK(enqueue_add(own, x, 1));
    }
    ck_assert_uint_eq(calls_of("cuStreamEndCapture"), ends);
    ck_assert_uint_eq(calls_of("cuStreamBeginCapture"), begins);
    ck_assert_uint_eq(calls_of("cuStreamGetCaptureInfo"), asks + 10);
    ck_assert_uint_eq(calls_of("cuGraphGetNodes"), nodes + 10);
    CK_OK(hdrt_graph_end(graph));
}
END_TEST

/* ---- ending ------------------------------------------------------------------------------------------------------ */

START_TEST(a_recording_may_be_given_up)
{
    hdrt_queue *both[] = {own, lent};
    hdrt_graph *given_up;
    for (int i = 0; i < 3; i++) {
        CK_OK(hdrt_graph_create(dev, NULL, &given_up));
        CK_OK(hdrt_graph_begin(given_up, both, 2));
        ck_assert_int_eq(launch_add(stream, x, 1), 0);
        CK_OK(enqueue_add(own, x, 1));
        ck_assert_int_eq(launch_add(stream, x, 1), 0);
        if (i == 1) {
            fork_to(side, stream);
            ck_assert_int_eq(launch_add(side, x, 1), 0);
        } else if (i == 2) {
            ck_assert_int_eq(cu.stream_query(stream), 900);
        }
        hdrt_graph_destroy(given_up);
        check_usable(stream);
        check_usable(given);
        check_usable(side);
    }
    CK_OK(enqueue_add(own, x, 4));
    ck_assert_uint_eq(value_at(x), 4);
}
END_TEST

START_TEST(everything_may_be_destroyed_while_it_is_in_flight)
{
    static gate g = GATE_INIT;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    hdrt_queue *queue;
    hdrt_graph *doomed;
    struct CUstream_st *raw;
    options.exclusive = true;
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    CK_OK(hdrt_queue_stream(queue, &raw));
    CK_OK(hdrt_graph_create(dev, NULL, &doomed));
    CK_OK(hdrt_graph_begin(doomed, &queue, 1));
    ck_assert_int_eq(launch_add(raw, x, 8), 0);
    hdrt_queue_destroy(queue); /* its recording goes on */
    ck_assert_int_eq(launch_add(raw, x, 8), 0);
    CK_OK(hdrt_graph_end(doomed));
    ck_assert_uint_eq(hdrt_graph_node_count(doomed), 1);
    gate_hold(&g, a);
    CK_OK(hdrt_graph_replay(a, doomed));
    CK_OK(hdrt_graph_begin(doomed, &own, 1));
    ck_assert_int_eq(launch_add(stream, x, 1), 0);
    hdrt_graph_destroy(doomed);
    gate_open(&g);
    ck_assert_uint_eq(value_at(x), 16);
}
END_TEST

/* ---- threads ----------------------------------------------------------------------------------------------------- */

typedef struct other_capture {
    pthread_t thread;
    pthread_barrier_t begun, done;
    int begin, end;
    struct CUgraph_st *graph;
} other_capture;

static void *capture_meanwhile(void *argument)
{
    other_capture *me = argument;
    cu.push(hdrt_device_context(dev));
    me->begin = cu.begin(side, 0); /* global mode: the strictest */
    cu.set(y, 1, 16, side);
    pthread_barrier_wait(&me->begun);
    pthread_barrier_wait(&me->done);
    cu.set(y, 2, 16, side);
    me->end = cu.end(side, &me->graph);
    return NULL;
}

START_TEST(captures_of_other_threads_survive)
{
    other_capture other = {.begin = -1, .end = -1};
    struct CUgraph_st *none = NULL;
    pthread_barrier_init(&other.begun, NULL, 2);
    pthread_barrier_init(&other.done, NULL, 2);
    ck_assert_int_eq(pthread_create(&other.thread, NULL, capture_meanwhile, &other), 0);
    pthread_barrier_wait(&other.begun);
    begin(own);
    ck_assert_int_eq(launch_add(stream, x, 1), 0);
    CK_OK(enqueue_add(own, x, 10));
    ck_assert_int_eq(launch_add(stream, x, 100), 0);
    CK_OK(hdrt_queue_wait(own, hdrt_queue_record(own)));
    CK_OK(hdrt_graph_end(graph));
    CK_OK(hdrt_graph_replay(a, graph));
    begin(own);
    ck_assert_int_eq(launch_add(stream, x, 1000), 0);
    CK_OK(hdrt_graph_end(graph));
    CK_OK(hdrt_queue_wait(own, hdrt_queue_record(a)));
    CK_OK(hdrt_graph_replay(own, graph));
    begin(own);
    ck_assert_int_eq(launch_add(stream, x, 1), 0);
    hdrt_graph_destroy(graph);
    graph = NULL;
    CK_OK(hdrt_queue_synchronize(a));
    CK_OK(hdrt_queue_synchronize(own));
    pthread_barrier_wait(&other.done);
    pthread_join(other.thread, NULL);
    ck_assert_int_eq(other.begin, 0);
    ck_assert_int_eq(other.end, 0);
    ck_assert_ptr_nonnull(other.graph);
    ck_assert_int_eq(cu.graph_destroy(other.graph), 0);
    ck_assert_int_eq(cu.end(side, &none), 401);
    ck_assert_uint_eq(value_at(x), 1111);
    pthread_barrier_destroy(&other.begun);
    pthread_barrier_destroy(&other.done);
}
END_TEST

typedef struct recorder {
    pthread_t thread;
    hdrt_queue *queue;
    struct CUstream_st *stream;
    hdrt_ptr at;
    int failed;
} recorder;

static void *record_some(void *argument)
{
    recorder *me = argument;
    cu.push(hdrt_device_context(dev));
    for (int i = 0; i < 20; i++) {
        me->failed += launch_add(me->stream, me->at, 1) != 0;
        me->failed += enqueue_add(me->queue, me->at, 1) != HDRT_OK;
        hdrt_queue_record(me->queue);
    }
    return NULL;
}

START_TEST(each_queue_may_be_a_threads)
{
    hdrt_queue *both[] = {own, lent};
    recorder recorders[] = {{.queue = own, .stream = stream, .at = x}, {.queue = lent, .stream = given, .at = y}};
    CK_OK(hdrt_graph_begin(graph, both, 2));
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_create(&recorders[i].thread, NULL, record_some, &recorders[i]), 0);
    }
    for (int i = 0; i < 100; i++) { /* who waits asks meanwhile */
        hdrt_event_query(rt, hdrt_queue_record(a));
        hdrt_graph_node_count(graph);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(recorders[i].thread, NULL);
        ck_assert_int_eq(recorders[i].failed, 0);
    }
    CK_OK(hdrt_graph_end(graph)); /* by a thread that captured nothing */
    ck_assert_uint_eq(hdrt_graph_node_count(graph), 80);
    CK_OK(hdrt_graph_replay(a, graph));
    ck_assert_uint_eq(value_at(x), 40);
    ck_assert_uint_eq(value_at(y), 40);
}
END_TEST

static void *enqueue_many(void *argument)
{
    recorder *me = argument;
    cu.push(hdrt_device_context(dev));
    for (int i = 0; i < 200; i++) {
        me->failed += enqueue_add(me->queue, me->at, 1) != HDRT_OK;
    }
    return NULL;
}

/* Each goes into a graph or runs, whichever it is. */
START_TEST(recordings_begin_and_end_while_others_enqueue)
{
    recorder other = {.queue = own, .stream = stream, .at = x};
    uint32_t recorded = 0;
    ck_assert_int_eq(pthread_create(&other.thread, NULL, enqueue_many, &other), 0);
    for (int i = 0; i < 20; i++) {
        begin(own);
        usleep(100);
        CK_OK(hdrt_graph_end(graph));
        recorded += hdrt_graph_node_count(graph);
    }
    pthread_join(other.thread, NULL);
    ck_assert_int_eq(other.failed, 0);
    ck_assert_uint_eq(value_at(x), 200 - recorded);
}
END_TEST

/* ---- the order check --------------------------------------------------------------------------------------------- */

static unsigned races;

static void count_races(void *argument, hdrt_log_level level, const char *message)
{
    (void)argument;
    (void)level;
    races += strstr(message, "race") != NULL;
}

static void setup_checked(void)
{
    setenv("HDRT_CHECK", "order", 1);
    setup();
}

START_TEST(the_order_check_knows_nothing_of_it)
{
    hdrt_queue *both[] = {own, a};
    hdrt_log_set(HDRT_LOG_WARN, count_races, NULL);
    CK_OK(hdrt_graph_begin(graph, both, 2));
    ck_assert_int_eq(launch_add(stream, x, 1), 0);
    CK_OK(hdrt_queue_wait(a, hdrt_queue_record(own)));
    CK_OK(enqueue_add(a, x, 10));
    CK_OK(hdrt_queue_wait(own, hdrt_queue_record(a)));
    ck_assert_int_eq(launch_add(stream, x, 100), 0);
    CK_OK(hdrt_graph_end(graph));
    CK_OK(hdrt_graph_replay(own, graph));
    CK_OK(hdrt_queue_wait(a, hdrt_queue_record(own)));
    CK_OK(hdrt_graph_replay(a, graph));
    ck_assert_uint_eq(value_at(x), 222);
    ck_assert_uint_eq(races, 0);
    hdrt_log_set(HDRT_LOG_NONE, NULL, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph_foreign");
    TCase *tcase = tcase_create("graph_foreign"), *checked = tcase_create("order"), *soft = tcase_create("soft");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, it_is_in_call_order_with_the_queues_operations);
    tcase_add_test(tcase, where_there_is_none_there_is_no_node);
    tcase_add_test(tcase, a_stream_that_was_given_out_is_the_same);
    tcase_add_test(tcase, events_order_it_with_other_queues);
    tcase_add_test(tcase, a_wait_does_not_hold_up_what_was_before_it);
    tcase_add_test(tcase, several_replays_are_in_flight);
    tcase_add_test(tcase, streams_may_fork_and_join_in_it);
    tcase_add_test(tcase, earlier_work_goes_on);
    tcase_add_test(tcase, a_wait_before_it_is_not_captured);
    tcase_add_test(tcase, such_a_node_cannot_be_changed);
    tcase_add_test(tcase, another_shape_is_built_anew);
    tcase_add_test(tcase, recording_again_may_change_attributes);
    tcase_add_test(tcase, a_recording_may_be_given_up);
    tcase_add_test(tcase, everything_may_be_destroyed_while_it_is_in_flight);
    tcase_add_test(tcase, captures_of_other_threads_survive);
    tcase_add_test(tcase, each_queue_may_be_a_threads);
    tcase_add_test(tcase, recordings_begin_and_end_while_others_enqueue);
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(checked, setup_checked, teardown);
    tcase_add_test(checked, the_order_check_knows_nothing_of_it);
    suite_add_tcase(suite, checked);
    tcase_add_checked_fixture(soft, setup, teardown);
    tcase_set_timeout(soft, 60);
    tcase_add_test(soft, another_shape_is_built_at_the_end);
    tcase_add_test(soft, recording_again_is_cheap_where_only_values_change);
    tcase_add_test(soft, an_operation_after_none_costs_two_calls);
    add_soft_tcase(suite, soft, "counted driver calls");
    return run_suite(suite);
}
