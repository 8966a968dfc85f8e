/* SPDX-License-Identifier: MIT */
/*
 * The soft driver's stream capture and graphs. Codes are an H200's, as in test_soft_api.c; which calls spoil another
 * thread's capture was measured call by call.
 */
#include "soft.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- capture ---- */

typedef struct other_thread {
    hdcu_stream stream;
    unsigned mode;
    _Atomic int phase;
    hdcu_result end;
} other_thread;

static void *capture_elsewhere(void *argument)
{
    other_thread *other = argument;
    hdcu_graph graph;
    OK(cuCtxSetCurrent(context));
    OK(cuStreamBeginCapture(other->stream, other->mode));
    other->phase = 1;
    while (other->phase != 2)
        usleep(100);
    other->end = cu.cuStreamEndCapture(other->stream, &graph);
    if (!other->end)
        OK(cuGraphDestroy(graph));
    return NULL;
}

/* What a call of ours does to a capture of another thread. */
enum {
    EVENT_QUERY, EVENT_SYNCHRONIZE, STREAM_QUERY, STREAM_SYNCHRONIZE, MEM_ALLOC, MEM_FREE, MEM_ALLOC_ASYNC,
    MEM_FREE_ASYNC, HOST_ALLOC, HOST_FREE, HOST_REGISTER, POOL_CREATE, POOL_TRIM, POOL_SET, SET_LIMIT, ALLOC_PITCH,
    INSTANTIATE, EXEC_DESTROY, CTX_SYNCHRONIZE, LAST_UNSAFE = CTX_SYNCHRONIZE, STREAM_CREATE, STREAM_DESTROY,
    EVENT_CREATE, EVENT_DESTROY, EVENT_RECORD, WAIT_EVENT, MEMCPY, MEMCPY_ASYNC, MEMCPY_BACK, MEMSET, MEM_INFO,
    GRAPH_CREATE, GRAPH_LAUNCH, HOST_FUNCTION, POINTER_ATTRIBUTE, WRITE_VALUE, ADDRESS_RANGE, GET_LIMIT, CALLS,
};

static struct {
    hdcu_stream stream;
    hdcu_event event;
    hdcu_pointer memory;
    void *pinned;
    hdcu_graph graph;
    hdcu_graph_exec exec;
    hdcu_pool pool;
} mine;

static char registered[16];

static void nothing(void *argument)
{
}

static hdcu_result unsafe_or_not(int call)
{
    hdcu_pointer pointer;
    hdcu_stream stream;
    hdcu_event event;
    hdcu_pool pool;
    hdcu_graph graph;
    void *host;
    size_t one, other;
    uint64_t zero = 0;
    char bytes[4] = {0};
    hdcu_pool_properties properties = {.allocation_type = 1, .location = {1, 0}};
    switch (call) {
    case EVENT_QUERY: return cu.cuEventQuery(mine.event);
    case EVENT_SYNCHRONIZE: return cu.cuEventSynchronize(mine.event);
    case STREAM_QUERY: return cu.cuStreamQuery(mine.stream);
    case STREAM_SYNCHRONIZE: return cu.cuStreamSynchronize(mine.stream);
    case MEM_ALLOC: return cu.cuMemAlloc(&pointer, 64);
    case MEM_FREE: return cu.cuMemFree(mine.memory);
    case MEM_ALLOC_ASYNC: return cu.cuMemAllocAsync(&pointer, 64, mine.stream);
    case MEM_FREE_ASYNC: return cu.cuMemFreeAsync(mine.memory, mine.stream);
    case HOST_ALLOC: return cu.cuMemHostAlloc(&host, 64, 0);
    case HOST_FREE: return cu.cuMemFreeHost(mine.pinned);
    case HOST_REGISTER: return cu.cuMemHostRegister(registered, sizeof registered, 0);
    case POOL_CREATE: return cu.cuMemPoolCreate(&pool, &properties);
    case POOL_TRIM: return cu.cuMemPoolTrimTo(mine.pool, 0);
    case POOL_SET: return cu.cuMemPoolSetAttribute(mine.pool, HDCU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &zero);
    case SET_LIMIT: return cu.cuCtxSetLimit(0, 2048);
    case ALLOC_PITCH: return cu.cuMemAllocPitch(&pointer, &one, 100, 4, 4);
    case INSTANTIATE: return cu.cuGraphInstantiateWithFlags(&mine.exec, mine.graph, 0);
    case EXEC_DESTROY: return cu.cuGraphExecDestroy(mine.exec);
    case CTX_SYNCHRONIZE: return cu.cuCtxSynchronize();
    case STREAM_CREATE: return cu.cuStreamCreate(&stream, 1);
    case STREAM_DESTROY: return cu.cuStreamDestroy(mine.stream);
    case EVENT_CREATE: return cu.cuEventCreate(&event, 0);
    case EVENT_DESTROY: return cu.cuEventDestroy(mine.event);
    case EVENT_RECORD: return cu.cuEventRecord(mine.event, mine.stream);
    case WAIT_EVENT: return cu.cuStreamWaitEvent(mine.stream, mine.event, 0);
    case MEMCPY: return cu.cuMemcpyHtoD(mine.memory, bytes, 4);
    case MEMCPY_ASYNC: return cu.cuMemcpyHtoDAsync(mine.memory, mine.pinned, 4, mine.stream);
    case MEMCPY_BACK: return cu.cuMemcpyDtoH(bytes, mine.memory, 4);
    case MEMSET: return cu.cuMemsetD8(mine.memory, 1, 4);
    case MEM_INFO: return cu.cuMemGetInfo(&one, &other);
    case GRAPH_CREATE: return cu.cuGraphCreate(&graph, 0);
    case GRAPH_LAUNCH: return cu.cuGraphLaunch(mine.exec, mine.stream);
    case HOST_FUNCTION: return cu.cuLaunchHostFunc(mine.stream, nothing, NULL);
    case POINTER_ATTRIBUTE: return cu.cuPointerGetAttribute(&pointer, HDCU_POINTER_ATTRIBUTE_CONTEXT, mine.memory);
    case WRITE_VALUE: return cu.cuStreamWriteValue32(mine.stream, mine.memory, 1, 0);
    case ADDRESS_RANGE: return cu.cuMemGetAddressRange(&pointer, &one, mine.memory);
    default: return cu.cuCtxGetLimit(&one, 0);
    }
}

static void make_mine(void)
{
    hdcu_graph_node node;
    mine.stream = new_stream(1);
    mine.event = new_event(0);
    mine.memory = new_memory(64);
    mine.pinned = new_pinned(64);
    OK(cuGraphCreate(&mine.graph, 0));
    OK(cuGraphAddEmptyNode(&node, mine.graph, NULL, 0));
    OK(cuGraphInstantiateWithFlags(&mine.exec, mine.graph, 0));
    OK(cuDeviceGetDefaultMemPool(&mine.pool, 0));
}

static void capture_beside(int call, unsigned their_mode, unsigned my_mode, bool breaks)
{
    other_thread other = {.mode = their_mode};
    pthread_t thread;
    unsigned status = 9, mode = my_mode;
    make_mine();
    other.stream = new_stream(1);
    ck_assert_int_eq(pthread_create(&thread, NULL, capture_elsewhere, &other), 0);
    while (other.phase != 1)
        usleep(100);
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    hdcu_result result = unsafe_or_not(call);
    ck_assert_msg(result == (breaks ? 900u : 0u), "call %d returned %u", call, result);
    OK(cuStreamIsCapturing(other.stream, &status));
    ck_assert_msg(status == (breaks ? HDCU_STREAM_CAPTURE_STATUS_INVALIDATED : HDCU_STREAM_CAPTURE_STATUS_ACTIVE),
                  "call %d left status %u", call, status);
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    other.phase = 2;
    pthread_join(thread, NULL);
    ck_assert_uint_eq(other.end, breaks ? 901 : 0);
    cu.cuMemHostUnregister(registered);
}

static const struct {
    unsigned theirs, mine;
    int last_breaking; /* of the calls above; cuCtxSynchronize breaks every capture */
} beside[] = {
    {HDCU_STREAM_CAPTURE_MODE_GLOBAL, HDCU_STREAM_CAPTURE_MODE_GLOBAL, LAST_UNSAFE},
    {HDCU_STREAM_CAPTURE_MODE_GLOBAL, HDCU_STREAM_CAPTURE_MODE_THREAD_LOCAL, -1},
    {HDCU_STREAM_CAPTURE_MODE_GLOBAL, HDCU_STREAM_CAPTURE_MODE_RELAXED, -1},
    {HDCU_STREAM_CAPTURE_MODE_THREAD_LOCAL, HDCU_STREAM_CAPTURE_MODE_GLOBAL, -1},
    {HDCU_STREAM_CAPTURE_MODE_RELAXED, HDCU_STREAM_CAPTURE_MODE_GLOBAL, -1},
};

START_TEST(calls_beside_a_capture)
{
    soft_start();
    for (int call = 0; call < CALLS; call++)
        capture_beside(call, beside[_i].theirs, beside[_i].mine,
                       call <= beside[_i].last_breaking || call == CTX_SYNCHRONIZE);
}
END_TEST

static hdcu_graph graph_of_end;
#define BEGIN(stream) OK(cuStreamBeginCapture(stream, HDCU_STREAM_CAPTURE_MODE_GLOBAL))
#define END(stream, code)                                                                                              \
    do {                                                                                                               \
        IS(cuStreamEndCapture(stream, &graph_of_end), code);                                                           \
        ck_assert_int_eq(graph_of_end != NULL, !(code));                                                               \
    } while (0)

START_TEST(capture_states)
{
    soft_start();
    hdcu_stream stream = new_stream(1), blocking = new_stream(0);
    hdcu_event event = new_event(0);
    hdcu_pointer memory = new_memory(64);
    unsigned status;
    char page[4];
    IS(cuStreamBeginCapture(NULL, 0), 900);
    IS(cuStreamBeginCapture(stream, 7), 1);
    IS(cuStreamEndCapture(stream, &graph_of_end), 401);
    BEGIN(stream);
    IS(cuStreamBeginCapture(stream, 0), 401);
    END(stream, 0);
    BEGIN(stream);
    IS(cuStreamQuery(stream), 900);
    OK(cuStreamIsCapturing(stream, &status));
    ck_assert_uint_eq(status, 2);
    IS(cuMemsetD8Async(memory, 1, 4, stream), 901);
    END(stream, 901);
    BEGIN(stream);
    OK(cuEventRecord(event, stream));
    IS(cuEventQuery(event), 907);
    END(stream, 901);
    BEGIN(stream);
    OK(cuMemsetD8Async(memory, 1, 4, NULL)); /* the legacy stream has no business with non-blocking ones */
    END(stream, 0);
    BEGIN(blocking);
    IS(cuStreamIsCapturing(NULL, &status), 906);
    END(blocking, 0);
    BEGIN(blocking);
    IS(cuMemcpyHtoD(memory, page, 4), 906);
    END(blocking, 901);
    BEGIN(stream);
    OK(cuMemcpyHtoDAsync(memory, page, 4, stream));
    IS(cuMemAlloc(&memory, 4), 900);
    END(stream, 901);
    BEGIN(stream);
    OK(cuEventRecord(event, stream));
    END(stream, 0);
    IS(cuStreamWaitEvent(blocking, event, 0), 1);
    IS(cuEventQuery(event), 1);
    OK(cuEventRecord(event, blocking));
    OK(cuEventSynchronize(event));
    BEGIN(stream);
    OK(cuStreamDestroy(stream));
    OK(cuMemAlloc(&memory, 4));
}
END_TEST

START_TEST(capture_across_streams)
{
    soft_start();
    hdcu_stream one = new_stream(1), other = new_stream(1);
    hdcu_event fork_event = new_event(2), join_event = new_event(2);
    hdcu_pointer memory = new_memory(64);
    size_t count = 0;
    BEGIN(one);
    OK(cuEventRecord(fork_event, one));
    OK(cuStreamWaitEvent(other, fork_event, 0));
    OK(cuMemsetD8Async(memory, 1, 4, other));
    END(one, 904);
    BEGIN(one);
    OK(cuMemsetD8Async(memory, 1, 4, one));
    OK(cuEventRecord(fork_event, one));
    OK(cuStreamWaitEvent(other, fork_event, 0));
    OK(cuMemsetD8Async(memory, 2, 4, other));
    OK(cuEventRecord(join_event, other));
    OK(cuMemsetD8Async(memory + 4, 3, 4, one));
    OK(cuStreamWaitEvent(one, join_event, 0));
    END(one, 0);
    OK(cuGraphGetNodes(graph_of_end, NULL, &count));
    ck_assert_uint_eq(count, 3);
    OK(cuGraphGetEdges(graph_of_end, NULL, NULL, &count));
    ck_assert_uint_eq(count, 2);
    BEGIN(one);
    OK(cuEventRecord(fork_event, one));
    OK(cuStreamWaitEvent(other, fork_event, 0));
    IS(cuStreamEndCapture(other, &graph_of_end), 903);
    END(one, 901);
    BEGIN(one);
    OK(cuEventRecord(join_event, other));
    IS(cuStreamWaitEvent(one, join_event, 0), 905);
    END(one, 901);
    BEGIN(one);
    BEGIN(other);
    OK(cuEventRecord(fork_event, one));
    IS(cuStreamWaitEvent(other, fork_event, 0), 902);
    END(other, 901);
    END(one, 901);
}
END_TEST

static void *end_elsewhere(void *argument)
{
    OK(cuCtxSetCurrent(context));
    return (void *)(uintptr_t)cu.cuStreamEndCapture(argument, &graph_of_end);
}

START_TEST(capture_ended_by_another_thread)
{
    soft_start();
    hdcu_stream stream = new_stream(1);
    pthread_t thread;
    void *status;
    BEGIN(stream);
    pthread_create(&thread, NULL, end_elsewhere, stream);
    pthread_join(thread, &status);
    ck_assert_uint_eq((uintptr_t)status, 908);
    END(stream, 401);
    OK(cuStreamBeginCapture(stream, HDCU_STREAM_CAPTURE_MODE_RELAXED));
    pthread_create(&thread, NULL, end_elsewhere, stream);
    pthread_join(thread, &status);
    ck_assert_uint_eq((uintptr_t)status, 0);
}
END_TEST

/* ---- graphs ---- */

START_TEST(graphs_run)
{
    soft_start();
    hdcu_stream stream = new_stream(1);
    hdcu_pointer memory = new_memory(64);
    unsigned char *pinned = new_pinned(64);
    hdcu_graph_exec exec, built;
    hdcu_graph_update_result update;
    memset(pinned, 0, 64);
    BEGIN(stream);
    OK(cuMemsetD8Async(memory, 5, 64, stream));
    OK(cuMemcpyDtoHAsync(pinned, memory, 64, stream));
    END(stream, 0);
    OK(cuGraphInstantiateWithFlags(&exec, graph_of_end, 0));
    ck_assert_uint_eq(pinned[0], 0); /* captured, not run */
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    ck_assert_uint_eq(pinned[63], 5);
    hdcu_graph graph;
    hdcu_graph_node fill, copy;
    hdcu_memset_node_params params = {memory, 0, 7, 1, 64, 1};
    hdcu_memcpy3d region = {
        .source_type = HDCU_MEMORYTYPE_DEVICE, .source_device = memory, .destination_type = HDCU_MEMORYTYPE_HOST,
        .destination_host = pinned, .width_bytes = 64, .height = 1, .depth = 1,
    };
    OK(cuGraphCreate(&graph, 0));
    IS(cuGraphCreate(&graph, 1), 1);
    OK(cuGraphAddMemcpyNode(&copy, graph, NULL, 0, &region, context));
    OK(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &params, context));
    OK(cuGraphAddDependencies(graph, &fill, &copy, 1));
    IS(cuGraphAddDependencies(graph, &fill, &copy, 1), 1);
    OK(cuGraphInstantiateWithFlags(&built, graph, 0));
    OK(cuGraphLaunch(built, stream));
    params.value = 8;
    OK(cuGraphExecMemsetNodeSetParams(built, fill, &params, context)); /* the launch in flight keeps its 7 */
    OK(cuStreamSynchronize(stream));
    ck_assert_uint_eq(pinned[0], 7);
    OK(cuGraphLaunch(built, stream));
    OK(cuStreamSynchronize(stream));
    ck_assert_uint_eq(pinned[0], 8);
    OK(cuGraphNodeSetEnabled(built, fill, 0));
    OK(cuMemsetD8(memory, 9, 64));
    OK(cuCtxSynchronize());
    OK(cuGraphLaunch(built, stream));
    OK(cuStreamSynchronize(stream));
    ck_assert_uint_eq(pinned[0], 9);
    IS(cuGraphExecUpdate(built, graph_of_end, &update), 0); /* the same shape: a memset, then a copy */
    ck_assert_uint_eq(update.result, 0);
    OK(cuGraphDestroyNode(copy));
    IS(cuGraphExecUpdate(built, graph, &update), 910);
    ck_assert_uint_eq(update.result, HDCU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    OK(cuGraphDestroy(graph));
    IS(cuGraphDestroy(graph), 1);
    OK(cuGraphExecDestroy(built));
    IS(cuGraphLaunch(built, stream), 1);
    OK(cuGraphDestroy(graph_of_end));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
}
END_TEST

static hdcu_graph captured_fills(hdcu_stream stream, hdcu_pointer memory, unsigned char first, int count)
{
    BEGIN(stream);
    for (int i = 0; i < count; i++)
        OK(cuMemsetD8Async(memory + i, (unsigned char)(first + i), 1, stream));
    END(stream, 0);
    return graph_of_end;
}

/* An H200's answers. */
START_TEST(child_graphs_are_set_anew)
{
    soft_start();
    hdcu_stream stream = new_stream(1);
    hdcu_pointer memory = new_memory(64), allocated;
    unsigned char *pinned = new_pinned(64);
    hdcu_graph one = captured_fills(stream, memory, 1, 2), other = captured_fills(stream, memory, 11, 2);
    hdcu_graph more = captured_fills(stream, memory, 21, 3), none = captured_fills(stream, memory, 0, 0), graph, kind;
    hdcu_graph_node before, child, after;
    hdcu_graph_exec exec;
    BEGIN(stream);
    OK(cuMemsetD8Async(memory, 1, 1, stream));
    OK(cuMemcpyDtoDAsync(memory, memory + 32, 1, stream));
    END(stream, 0);
    kind = graph_of_end;
    hdcu_memset_node_params params = {memory + 2, 0, 7, 1, 1, 1};
    hdcu_memcpy3d region = {
        .source_type = HDCU_MEMORYTYPE_DEVICE, .source_device = memory, .destination_type = HDCU_MEMORYTYPE_HOST,
        .destination_host = pinned, .width_bytes = 3, .height = 1, .depth = 1,
    };
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddMemsetNode(&before, graph, NULL, 0, &params, context));
    OK(cuGraphAddChildGraphNode(&child, graph, &before, 1, one));
    OK(cuGraphAddMemcpyNode(&after, graph, &child, 1, &region, context));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(one)); /* the node has its own */
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphExecChildGraphNodeSetParams(exec, child, other)); /* the launch in flight keeps its values */
    OK(cuGraphDestroy(other));
    OK(cuStreamSynchronize(stream));
    ck_assert_int_eq(memcmp(pinned, "\1\2\7", 3), 0);
    IS(cuGraphExecChildGraphNodeSetParams(exec, child, more), 910);
    IS(cuGraphExecChildGraphNodeSetParams(exec, child, kind), 910);
    IS(cuGraphExecChildGraphNodeSetParams(exec, child, none), 910);
    IS(cuGraphExecChildGraphNodeSetParams(exec, child, graph), 910);
    IS(cuGraphExecChildGraphNodeSetParams(exec, child, NULL), 1);
    IS(cuGraphExecChildGraphNodeSetParams(exec, NULL, more), 1);
    IS(cuGraphExecChildGraphNodeSetParams(exec, before, more), 1);
    IS(cuGraphExecChildGraphNodeSetParams(NULL, child, more), 1);
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    ck_assert_int_eq(memcmp(pinned, "\13\14\7", 3), 0);
    OK(cuGraphAddChildGraphNode(&child, graph, &after, 1, none));
    IS(cuGraphExecChildGraphNodeSetParams(exec, child, none), 1); /* made later than the exec */
    BEGIN(stream);
    OK(cuMemAllocAsync(&allocated, 64, stream));
    OK(cuMemFreeAsync(allocated, stream));
    END(stream, 0);
    IS(cuGraphAddChildGraphNode(&child, graph, NULL, 0, graph_of_end), 801);
}
END_TEST

/* A child's own child is set with it. */
START_TEST(nested_child_graphs_are_set_anew)
{
    soft_start();
    hdcu_stream stream = new_stream(1);
    hdcu_pointer memory = new_memory(64);
    unsigned char *pinned = new_pinned(64);
    hdcu_graph middle[2], graph;
    hdcu_graph_node node, child;
    hdcu_graph_exec exec;
    for (int i = 0; i < 2; i++) {
        hdcu_memset_node_params params = {memory + 2, 0, (unsigned)(7 + i), 1, 1, 1};
        OK(cuGraphCreate(&middle[i], 0));
        OK(cuGraphAddChildGraphNode(&node, middle[i], NULL, 0, captured_fills(stream, memory, i ? 11 : 1, 2)));
        OK(cuGraphAddMemsetNode(&node, middle[i], &node, 1, &params, context));
    }
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddChildGraphNode(&child, graph, NULL, 0, middle[0]));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphExecChildGraphNodeSetParams(exec, child, middle[1]));
    OK(cuGraphLaunch(exec, stream));
    OK(cuMemcpyDtoHAsync(pinned, memory, 3, stream));
    OK(cuStreamSynchronize(stream));
    ck_assert_int_eq(memcmp(pinned, "\13\14\10", 3), 0);
}
END_TEST

START_TEST(graphs_record_events_and_allocate)
{
    soft_start();
    hdcu_stream stream = new_stream(1), other = new_stream(1);
    hdcu_event done = new_event(HDCU_EVENT_DISABLE_TIMING), before = new_event(HDCU_EVENT_DISABLE_TIMING);
    unsigned char *pinned = new_pinned(64);
    hdcu_pointer memory;
    hdcu_graph_exec exec;
    OK(cuStreamBeginCapture(stream, HDCU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuStreamWaitEvent(stream, before, HDCU_EVENT_WAIT_EXTERNAL));
    OK(cuMemAllocAsync(&memory, 64, stream));
    OK(cuMemsetD8Async(memory, 6, 64, stream));
    OK(cuMemcpyDtoHAsync(pinned, memory, 64, stream));
    OK(cuMemFreeAsync(memory, stream));
    OK(cuEventRecordWithFlags(done, stream, HDCU_EVENT_RECORD_EXTERNAL));
    OK(cuStreamEndCapture(stream, &graph_of_end));
    OK(cuGraphInstantiateWithFlags(&exec, graph_of_end, 0));
    gate closed = gate_on(other);
    OK(cuEventRecord(before, other));
    for (int launch = 0; launch < 2; launch++) { /* the same addresses in every launch */
        pinned[0] = 0;
        OK(cuGraphLaunch(exec, stream));
        usleep(5000);
        if (!launch) /* it waits for what was recorded outside */
            ck_assert_uint_eq(pinned[0], 0);
        gate_open(closed);
        OK(cuStreamSynchronize(stream));
        ck_assert_uint_eq(pinned[0], 6);
        OK(cuEventQuery(done));
    }
    OK(cuMemsetD8Async(memory, 6, 64, stream));
    IS(cuStreamSynchronize(stream), 700); /* and between launches they are nobody's */
}
END_TEST

START_TEST(cyclic_graphs_are_refused)
{
    soft_start();
    hdcu_graph graph;
    hdcu_graph_node one, other;
    hdcu_graph_exec exec;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddEmptyNode(&one, graph, NULL, 0));
    OK(cuGraphAddEmptyNode(&other, graph, &one, 1));
    OK(cuGraphAddDependencies(graph, &other, &one, 1));
    IS(cuGraphInstantiateWithFlags(&exec, graph, 0), 1);
}
END_TEST

static void *launch_more(void *argument)
{
    _Atomic int *done = argument;
    OK(cuCtxSetCurrent(context));
    for (int i = 0; i < 1021; i++)
        OK(cuGraphLaunch(mine.exec, mine.stream));
    atomic_store(done, 1);
    OK(cuGraphLaunch(mine.exec, mine.stream)); /* the 1022nd blocks */
    atomic_store(done, 2);
    return NULL;
}

START_TEST(launches_block_at_their_depth)
{
    soft_start();
    hdcu_graph_node node;
    hdcu_stream other = new_stream(1);
    pthread_t thread;
    _Atomic int done = 0;
    mine.stream = new_stream(1);
    OK(cuGraphCreate(&mine.graph, 0));
    OK(cuGraphAddEmptyNode(&node, mine.graph, NULL, 0));
    OK(cuGraphInstantiateWithFlags(&mine.exec, mine.graph, 0));
    gate closed = gate_on(mine.stream);
    pthread_create(&thread, NULL, launch_more, &done);
    while (atomic_load(&done) < 1)
        usleep(100);
    usleep(20000);
    ck_assert_int_eq(atomic_load(&done), 1);
    OK(cuGraphLaunch(mine.exec, other)); /* other streams are not held up */
    OK(cuStreamSynchronize(other));
    gate_open(closed);
    pthread_join(thread, NULL);
    OK(cuStreamSynchronize(mine.stream));
}
END_TEST

static void add(Suite *suite, const char *name, const TTest *const *tests, size_t count)
{
    TCase *group = tcase_create(name);
    tcase_set_timeout(group, 60);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(group, tests[i]);
    suite_add_tcase(suite, group);
}
#define GROUP(suite, name, ...)                                                                                        \
    add(suite, name, (const TTest *const[]){__VA_ARGS__},                                                              \
        sizeof((const TTest *const[]){__VA_ARGS__}) / sizeof(void *))

int main(void)
{
    Suite *suite = suite_create("soft_capture");
    GROUP(suite, "capture", capture_states, capture_across_streams, capture_ended_by_another_thread);
    GROUP(suite, "graphs", graphs_run, child_graphs_are_set_anew, nested_child_graphs_are_set_anew,
          graphs_record_events_and_allocate, cyclic_graphs_are_refused, launches_block_at_their_depth);
    TCase *tables = tcase_create("tables");
    tcase_set_timeout(tables, 60);
    tcase_add_loop_test(tables, calls_beside_a_capture, 0, sizeof beside / sizeof *beside);
    suite_add_tcase(suite, tables);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
