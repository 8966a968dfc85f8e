/* SPDX-License-Identifier: MIT */
/* What may go wrong where graphs hold the caller's own work: by him, by the driver, for want of memory. */
#include "foreign_fixture.h"

#include "failing_malloc.h"

/* ---- what the caller does wrong ---------------------------------------------------------------------------------- */

/* After the recording was broken by a call on `own`: until its end nothing runs, and every call says why. */
static void check_broken(const char *words)
{
    hdrt_event event = hdrt_queue_record(own);
    CK_STATUS(enqueue_add(own, x, 1), HDRT_ERROR_CAPTURING);
    CK_MESSAGE(words);
    CK_STATUS(enqueue_add(a, x, 1), HDRT_ERROR_CAPTURING);
    CK_STATUS(hdrt_queue_wait(a, event), HDRT_ERROR_CAPTURING);
    CK_MESSAGE(words);
    CK_OK(hdrt_queue_error(own));
    CK_STATUS(hdrt_graph_end(graph), HDRT_ERROR_CAPTURING);
    CK_MESSAGE(words);
    CK_STATUS(hdrt_graph_end(graph), HDRT_ERROR_INVALID_ARGUMENT);
    check_usable(stream);
    ck_assert_uint_eq(value_at(x), 0);
    check_unchanged(1);
    record_foreign(4);
    check_unchanged(4);
}

static void begin_both(void)
{
    hdrt_queue *both[] = {own, a};
    record_foreign(1);
    CK_OK(hdrt_graph_begin(graph, both, 2));
    CK_OK(enqueue_add(a, x, 100));
    ck_assert_int_eq(launch_add(stream, x, 1000), 0);
}

START_TEST(what_is_not_joined_is_told)
{
    begin_both();
    fork_to(side, stream);
    ck_assert_int_eq(launch_add(side, x, 2000), 0);
    CK_STATUS(enqueue_add(own, x, 1), HDRT_ERROR_CAPTURING);
    CK_MESSAGE("hdrt_launch");
    CK_MESSAGE("queue 'own'");
    CK_MESSAGE("joined");
    ck_assert_int_eq(launch_add(stream, x, 3000), 0); /* goes nowhere */
    check_broken("joined");
}
END_TEST

START_TEST(an_invalidated_capture_is_told)
{
    begin_both();
    ck_assert_int_eq(cu.stream_query(stream), 900);
    CK_STATUS(enqueue_add(own, x, 1), HDRT_ERROR_CAPTURING);
    CK_MESSAGE("invalidated");
    ck_assert_int_eq(launch_add(stream, x, 3000), 0);
    check_broken("invalidated");
}
END_TEST

START_TEST(an_event_is_where_it_shows_too)
{
    begin_both();
    ck_assert_int_eq(cu.stream_query(stream), 900);
    hdrt_event event = hdrt_queue_record(own);
    CK_STATUS(hdrt_queue_wait(a, event), HDRT_ERROR_CAPTURING);
    CK_MESSAGE("invalidated");
    check_broken("invalidated");
}
END_TEST

START_TEST(the_end_is_where_it_shows_too)
{
    begin_both();
    fork_to(side, stream);
    ck_assert_int_eq(launch_add(side, x, 2000), 0);
    CK_STATUS(hdrt_graph_end(graph), HDRT_ERROR_CAPTURING);
    CK_MESSAGE("joined");
    check_usable(stream);
    check_usable(side);
    check_unchanged(1);
}
END_TEST

START_TEST(captures_of_two_queues_are_not_merged)
{
    hdrt_queue *both[] = {own, lent};
    struct CUevent_st *event;
    record_foreign(1);
    CK_OK(hdrt_graph_begin(graph, both, 2));
    ck_assert_int_eq(launch_add(stream, x, 1000), 0);
    ck_assert_int_eq(cu.event_create(&event, 2), 0);
    ck_assert_int_eq(cu.event_record(event, stream), 0);
    ck_assert_int_ne(cu.wait(given, event, 0), 0);
    ck_assert_int_eq(cu.event_destroy(event), 0);
    CK_STATUS(hdrt_graph_end(graph), HDRT_ERROR_CAPTURING);
    check_usable(stream);
    check_usable(given);
    check_unchanged(1);
}
END_TEST

START_TEST(a_capture_that_the_caller_ended_is_told)
{
    struct CUgraph_st *his = NULL;
    begin_both();
    ck_assert_int_eq(cu.end(stream, &his), 0);
    ck_assert_int_eq(cu.graph_destroy(his), 0);
    CK_STATUS(enqueue_add(own, x, 1), HDRT_ERROR_CAPTURING);
    CK_MESSAGE("ended the stream's capture himself");
    ck_assert_int_eq(launch_add(stream, x, 3000), 0);
    check_broken("himself");
}
END_TEST

START_TEST(a_capture_of_the_callers_instead_stays_his)
{
    struct CUgraph_st *his = NULL;
    begin_both();
    ck_assert_int_eq(cu.end(stream, &his), 0);
    ck_assert_int_eq(cu.graph_destroy(his), 0);
    ck_assert_int_eq(cu.begin(stream, RELAXED), 0);
    ck_assert_int_eq(launch_add(stream, x, 5), 0);
    CK_STATUS(hdrt_graph_end(graph), HDRT_ERROR_CAPTURING);
    CK_MESSAGE("himself");
    ck_assert_int_eq(launch_add(stream, x, 5), 0);
    ck_assert_int_eq(cu.end(stream, &his), 0);
    ck_assert_int_eq(cu.graph_destroy(his), 0);
    check_usable(stream);
    check_unchanged(1);
}
END_TEST

/* ---- beginning --------------------------------------------------------------------------------------------------- */

START_TEST(a_stream_that_he_captures_is_refused)
{
    struct CUgraph_st *his = NULL;
    hdrt_queue *both[] = {lent, own}, *twice[] = {own, own}, *recorded[] = {own, a};
    hdrt_graph *other;
    record_foreign(1);
    ck_assert_int_eq(cu.begin(stream, RELAXED), 0);
    ck_assert_int_eq(launch_add(stream, x, 5), 0);
    CK_STATUS(hdrt_graph_begin(graph, both, 2), HDRT_ERROR_CAPTURING);
    CK_MESSAGE("queue 'own'");
    check_usable(given);
    CK_OK(enqueue_add(lent, x, 2)); /* and is not recorded */
    ck_assert_int_eq(launch_add(stream, x, 5), 0);
    ck_assert_int_eq(cu.end(stream, &his), 0);
    ck_assert_ptr_nonnull(his);
    ck_assert_int_eq(cu.graph_destroy(his), 0);
    ck_assert_uint_eq(value_at(x), 2);
    CK_STATUS(hdrt_graph_begin(graph, twice, 2), HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("is being recorded already");
    check_usable(stream);
    CK_OK(hdrt_graph_create(dev, NULL, &other));
    CK_OK(hdrt_graph_begin(other, &a, 1));
    CK_STATUS(hdrt_graph_begin(graph, recorded, 2), HDRT_ERROR_INVALID_ARGUMENT);
    check_usable(stream);
    CK_OK(hdrt_graph_end(other));
    CK_OK(hdrt_graph_begin(other, &own, 1));
    CK_STATUS(hdrt_graph_begin(graph, &own, 1), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(launch_add(stream, x, 5), 0); /* still captured */
    CK_OK(hdrt_graph_end(other));
    ck_assert_uint_eq(hdrt_graph_node_count(other), 1);
    hdrt_graph_destroy(other);
    check_unchanged(1);
}
END_TEST

START_TEST(a_default_stream_is_refused)
{
    hdrt_queue *queue;
    CK_OK(hdrt_queue_adopt(dev, (struct CUstream_st *)1, NULL, &queue)); /* CU_STREAM_LEGACY */
    CK_STATUS(hdrt_graph_begin(graph, &queue, 1), HDRT_ERROR_UNSUPPORTED);
    CK_MESSAGE("default stream");
    CK_OK(enqueue_add(queue, x, 1));
    CK_OK(hdrt_queue_synchronize(queue));
    ck_assert_uint_eq(value_at(x), 1);
    hdrt_queue_destroy(queue);
}
END_TEST

START_TEST(a_queue_that_may_not_wait_is_told_so)
{
    static gate g = GATE_INIT;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    hdrt_queue *queue, *both[2];
    options.back_pressure = HDRT_BACK_PRESSURE_WOULD_BLOCK;
    CK_OK(hdrt_queue_adopt(dev, side, &options, &queue));
    both[0] = own;
    both[1] = queue;
    gate_close(&g, a);
    hdrt_event event = hdrt_queue_record(a); /* not handed over: the stream cannot wait for it */
    CK_STATUS(hdrt_queue_wait(queue, event), HDRT_WOULD_BLOCK);
    ck_assert_int_eq(launch_add(side, x, 1), 0); /* comes after nothing */
    CK_OK(hdrt_queue_synchronize(queue));
    CK_STATUS(hdrt_event_query(rt, event), HDRT_NOT_READY);
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(a));
    CK_OK(hdrt_queue_wait(queue, event));
    CK_OK(hdrt_graph_begin(graph, both, 2));
    ck_assert_int_eq(launch_add(side, x, 1), 0);
    CK_OK(hdrt_graph_end(graph));
    CK_OK(hdrt_graph_replay(a, graph));
    ck_assert_uint_eq(value_at(x), 2);
    hdrt_queue_destroy(queue);
    CK_OK(hdrt_device_synchronize(dev));
}
END_TEST

/* ---- failures ---------------------------------------------------------------------------------------------------- */

/* Everything that a recording of this kind does, as far as it goes. */
static hdrt_status record_and_replay(void)
{
    hdrt_queue *both[] = {own, a};
    hdrt_graph *made;
    hdrt_status status = hdrt_graph_create(dev, NULL, &made);
    if (status != HDRT_OK) {
        return status;
    }
    for (unsigned i = 0; i < 2 && status == HDRT_OK; i++) {
        status = hdrt_graph_begin(made, both, 2);
        if (status != HDRT_OK) {
            break;
        }
        launch_add(stream, x, 1);
        status = enqueue_add(own, x, 1);
        launch_add(stream, x, i);
        hdrt_event event = hdrt_queue_record(own);
        status = status == HDRT_OK ? hdrt_queue_wait(a, event) : status;
        status = status == HDRT_OK ? hdrt_copy_dtoh(a, host, x, BYTES) : status;
        launch_add(stream, y, 1);
        hdrt_status ended = hdrt_graph_end(made);
        status = status == HDRT_OK ? ended : status;
        if (status == HDRT_OK) {
            status = hdrt_graph_replay(lent, made);
        }
    }
    hdrt_graph_destroy(made);
    hdrt_status end = hdrt_queue_synchronize(lent);
    return status == HDRT_OK ? end : status;
}

static void clear_errors(void)
{
    hdrt_queue *queues[] = {own, lent, a};
    for (int i = 0; i < 3; i++) {
        hdrt_queue_clear_error(queues[i]);
        hdrt_queue_synchronize(queues[i]);
    }
}

START_TEST(every_driver_call_may_fail)
{
    static const char *const calls[] = {
        "cuStreamIsCapturing", "cuStreamBeginCapture", "cuStreamGetCaptureInfo", "cuGraphGetNodes",
        "cuGraphNodeGetType", "cuGraphGetEdges", "cuStreamEndCapture", "cuGraphAddChildGraphNode",
        "cuGraphExecChildGraphNodeSetParams", "cuGraphInstantiateWithFlags", "cuGraphDestroy", "cuGraphLaunch",
        "cuEventRecord", "cuCtxPushCurrent", "cuThreadExchangeStreamCaptureMode"};
    CK_OK(record_and_replay());
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        bool hit = true;
        for (unsigned k = 1; hit && k < 40; k++) {
            char rule[64];
            snprintf(rule, sizeof rule, "%s:%u=2", calls[i], k);
            unsigned long long before = calls_of(calls[i]);
            inject(rule);
            record_and_replay();
            inject(NULL);
            hit = calls_of(calls[i]) - before >= k;
            ck_assert_msg(hit || k > 1, "%s is not called", calls[i]);
            clear_errors();
            check_usable(stream);
        }
    }
    CK_OK(record_and_replay());
}
END_TEST

/* Kernels that the caller's library launched to begin before others end: the list of edges does not tell of those. */
START_TEST(edges_may_be_of_a_kind_that_cannot_be_told)
{
    unsigned long long before = calls_of("cuGraphGetEdges"), updates;
    inject("cuGraphGetEdges:*=402");
    CK_OK(record_and_replay());
    ck_assert_uint_gt(calls_of("cuGraphGetEdges"), before);
    updates = calls_of("cuGraphExecChildGraphNodeSetParams");
    record_foreign(1);
    record_foreign(2); /* for all that is known it may be another graph */
    ck_assert_uint_eq(calls_of("cuGraphExecChildGraphNodeSetParams"), updates);
    inject(NULL);
    check_unchanged(2);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    hdrt_status status = HDRT_OK;
    uint32_t refused = 0;
    CK_OK(record_and_replay());
    FAILING_MALLOC_EACH(n) {
        status = record_and_replay();
        refused += status != HDRT_OK;
        clear_errors();
    }
    CK_OK(status);
    ck_assert_uint_ge(refused, 3);
    check_usable(stream);
    CK_OK(record_and_replay());
}
END_TEST

START_TEST(what_is_lost_breaks_the_recording)
{
    static const char *const calls[] = {"cuStreamGetCaptureInfo", "cuGraphGetNodes", "cuStreamEndCapture",
                                        "cuStreamBeginCapture"};
    record_foreign(1);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        char rule[64];
        begin(own);
        ck_assert_int_eq(launch_add(stream, x, 1000), 0);
        snprintf(rule, sizeof rule, "%s:1=2", calls[i]);
        inject(rule);
        hdrt_status status = enqueue_add(own, x, 1000);
        inject(NULL);
        CK_STATUS(status, HDRT_ERROR_OUT_OF_DEVICE_MEMORY);
        CK_MESSAGE(calls[i]);
        ck_assert_int_eq(launch_add(stream, x, 1000), 0);
        CK_STATUS(hdrt_graph_end(graph), HDRT_ERROR_OUT_OF_DEVICE_MEMORY);
        CK_MESSAGE(calls[i]);
        check_usable(stream);
        check_unchanged(1);
    }
}
END_TEST

START_TEST(what_cannot_be_built_leaves_the_graph_as_it_was)
{
    record_foreign(1);
    begin(own);
    ck_assert_int_eq(launch_add(stream, x, 10), 0);
    CK_OK(enqueue_add(own, x, 10));
    inject("cuGraphAddChildGraphNode:1=2");
    hdrt_status status = hdrt_graph_end(graph);
    inject(NULL);
    CK_STATUS(status, HDRT_ERROR_OUT_OF_DEVICE_MEMORY);
    CK_MESSAGE("building graph");
    check_usable(stream);
    check_unchanged(1);
}
END_TEST

START_TEST(allocations_are_not_among_it)
{
    int (*alloc)(hdrt_ptr *, size_t, struct CUstream_st *), (*release)(hdrt_ptr, struct CUstream_st *);
    hdrt_ptr memory;
    find(&alloc, "cuMemAllocAsync");
    find(&release, "cuMemFreeAsync");
    begin(own);
    ck_assert_int_eq(launch_add(stream, x, 1), 0);
    ck_assert_int_eq(cu.set(y, 1, N, stream), 0); /* as many nodes as those that follow, or another number */
    if (_i) {
        ck_assert_int_eq(cu.set(y, 2, N, stream), 0);
    }
    CK_OK(hdrt_graph_end(graph));
    begin(own);
    ck_assert_int_eq(alloc(&memory, BYTES, stream), 0);
    ck_assert_int_eq(release(memory, stream), 0);
    CK_STATUS(hdrt_graph_end(graph), HDRT_ERROR_UNSUPPORTED);
    CK_MESSAGE("cuGraphAddChildGraphNode");
    check_usable(stream);
    check_unchanged(1);
}
END_TEST

static void setup_old(void)
{
    setenv("HDSOFT_FAIL", "hide=cuGraphExecChildGraphNodeSetParams", 1);
    setup();
}

START_TEST(an_old_driver_is_told)
{
    hdrt_queue *both[] = {a, own};
    CK_STATUS(hdrt_graph_begin(graph, both, 2), HDRT_ERROR_UNSUPPORTED);
    CK_MESSAGE("CUDA 12.0");
    CK_OK(enqueue_add(a, x, 1));
    begin(a);
    CK_OK(enqueue_add(a, x, 10));
    CK_OK(hdrt_graph_end(graph));
    CK_OK(hdrt_queue_wait(own, hdrt_queue_record(a)));
    CK_OK(hdrt_graph_replay(own, graph));
    ck_assert_uint_eq(value_at(x), 11);
}
END_TEST

START_TEST(a_lost_device_ends_it_all)
{
    hdrt_queue *both[] = {own, lent};
    record_foreign(1);
    CK_OK(hdrt_graph_begin(graph, both, 2));
    ck_assert_int_eq(launch_add(stream, x, 1), 0);
    CK_OK(enqueue_add(own, x, 1));
    ck_assert_int_eq(launch_add(stream, x, 1), 0);
    ck_assert_int_eq(launch_add(given, x, 1), 0);
    CK_OK(hdrt_launch(a, kernel_of(module, "fault"), hdrt_grid_1d(1, 1), HDRT_ARGS()));
    CK_STATUS(hdrt_queue_synchronize(a), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(enqueue_add(own, x, 1), HDRT_ERROR_DEVICE_LOST);
    unsigned long long calls = all_calls(), ends = calls_of("cuStreamEndCapture"), graphs = calls_of("cuGraphDestroy");
    CK_STATUS(hdrt_graph_end(graph), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_graph_begin(graph, both, 2), HDRT_ERROR_DEVICE_LOST);
    hdrt_graph_destroy(graph);
    hdrt_module_destroy(module);
    hdrt_queue_destroy(a);
    hdrt_queue_destroy(own);
    hdrt_queue_destroy(lent);
    hdrt_device_close(dev);
    ck_assert_uint_eq(calls_of("cuStreamEndCapture"), ends);
    ck_assert_uint_eq(calls_of("cuGraphDestroy"), graphs);
    ck_assert_uint_eq(all_calls(), calls);
    _exit(0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph_foreign_errors");
    TCase *tcase = tcase_create("graph_foreign_errors"), *soft = tcase_create("soft"), *old = tcase_create("old");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, what_is_not_joined_is_told);
    tcase_add_test(tcase, an_invalidated_capture_is_told);
    tcase_add_test(tcase, an_event_is_where_it_shows_too);
    tcase_add_test(tcase, the_end_is_where_it_shows_too);
    tcase_add_test(tcase, captures_of_two_queues_are_not_merged);
    tcase_add_test(tcase, a_capture_that_the_caller_ended_is_told);
    tcase_add_test(tcase, a_capture_of_the_callers_instead_stays_his);
    tcase_add_test(tcase, a_stream_that_he_captures_is_refused);
    tcase_add_test(tcase, a_default_stream_is_refused);
    tcase_add_test(tcase, a_queue_that_may_not_wait_is_told_so);
    tcase_add_loop_test(tcase, allocations_are_not_among_it, 0, 2);
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(soft, setup, teardown);
    tcase_set_timeout(soft, 60);
    tcase_add_test(soft, every_driver_call_may_fail);
    tcase_add_test(soft, edges_may_be_of_a_kind_that_cannot_be_told);
    tcase_add_test(soft, every_allocation_may_fail);
    tcase_add_test(soft, what_is_lost_breaks_the_recording);
    tcase_add_test(soft, what_cannot_be_built_leaves_the_graph_as_it_was);
    tcase_add_test(soft, a_lost_device_ends_it_all);
    add_soft_tcase(suite, soft, "failures");
    tcase_add_checked_fixture(old, setup_old, teardown);
    tcase_add_test(old, an_old_driver_is_told);
    add_soft_tcase(suite, old, "a driver without an entry point");
    return run_suite(suite);
}
