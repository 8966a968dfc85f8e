/* SPDX-License-Identifier: MIT */
/* The soft driver's virtual policy: times are what the costs say, to the nanosecond. */
#include "soft_policy.h"

#include <stdio.h>

#define MIB ((size_t)1 << 20)
/* Costs that are easy to add up: a byte takes a nanosecond, a block 1000, all else what a case says. */
#define PLAIN "virtual:patience=0,launch=0,node=0,copy=0,fill=0,record=0,wait=0,value=0,host=0,instruction=0,"         \
              "h2d=1,d2h=1,d2d=1,p2p=1,set=1,block=1000"

static void is_ms(hdcu_event from, hdcu_event to, uint64_t ns)
{
    float ms;
    OK(cuEventElapsedTime(&ms, from, to));
    ck_assert_msg(ms == (float)((double)ns / 1e6), "%.9f ms, not %.9f", (double)ms, (double)ns / 1e6);
}

static hdcu_event recorded(hdcu_stream stream)
{
    hdcu_event event = new_event(0);
    OK(cuEventRecord(event, stream));
    return event;
}

/* Two copies of 1 MiB: in opposite directions they overlap, in one they follow each other; not with two engines. */
static const struct {
    const char *policy;
    bool opposite;
    uint64_t ns;
} copy_pairs[] = {
    {PLAIN, true, MIB}, {PLAIN, false, 2 * MIB}, {PLAIN ",engines=2", false, MIB},
    {PLAIN ",copy=500", false, 2 * MIB + 1000}, {PLAIN ",copy=500", true, MIB + 500},
    {PLAIN ",d2h=2,h2d=0.5", true, 2 * MIB}, {PLAIN ",h2d=0,copy=7", false, 14},
    {PLAIN ",h2d=3", false, 2 * 349526},
};

START_TEST(pairs_of_copies)
{
    start(copy_pairs[_i].policy);
    hdcu_stream one = new_stream(1), other = new_stream(1);
    unsigned char *pinned = new_pinned(2 * MIB);
    hdcu_pointer memory = new_memory(2 * MIB);
    hdcu_event begin = recorded(one);
    memset(pinned, 7, MIB);
    OK(cuMemcpyHtoDAsync(memory, pinned, MIB, one));
    if (copy_pairs[_i].opposite)
        OK(cuMemcpyDtoHAsync(pinned + MIB, memory + MIB, MIB, other));
    else
        OK(cuMemcpyHtoDAsync(memory + MIB, pinned, MIB, other));
    OK(cuStreamWaitEvent(one, recorded(other), 0));
    hdcu_event end = recorded(one);
    OK(cuEventSynchronize(end));
    is_ms(begin, end, copy_pairs[_i].ns);
    ck_assert_uint_eq(makespan(), copy_pairs[_i].ns);
    ck_assert_uint_eq(clock_now(), copy_pairs[_i].ns);
    ck_assert_uint_eq(gpu_waits(), 1);
    OK(cuMemcpyDtoH(pinned, memory + MIB - 1, 1));
    ck_assert_uint_eq(pinned[0], 7);
}
END_TEST

START_TEST(fixed_costs)
{
    start("virtual:patience=0,launch=11,fill=7,record=3,wait=5,value=13,host=17,instruction=0,block=100,set=0");
    hdcu_stream stream = new_stream(1), other = new_stream(1);
    uint32_t *pinned = new_pinned(4);
    *pinned = 0;
    hdcu_event begin = recorded(stream); /* 3 */
    OK(cuMemsetD8Async(new_memory(64), 0, 64, stream)); /* 10 */
    launch("empty", 1, 32, stream, NULL); /* 121 */
    hdcu_event middle = recorded(stream); /* 124 */
    OK(cuStreamWaitEvent(other, middle, 0)); /* 129 */
    OK(cuStreamWriteValue32(other, (uintptr_t)pinned, 9, 0)); /* 142 */
    OK(cuStreamWaitValue32(stream, (uintptr_t)pinned, 9, HDCU_STREAM_WAIT_VALUE_EQ)); /* 155 */
    noted = 0;
    OK(cuLaunchHostFunc(stream, note, (void *)"h")); /* 172 */
    hdcu_event end = recorded(stream); /* 175 */
    OK(cuStreamSynchronize(stream));
    ck_assert_uint_eq(clock_now(), 175);
    is_ms(begin, middle, 121);
    is_ms(middle, end, 51);
    ck_assert_uint_eq(noted, 1);
}
END_TEST

/* A copy and kernels: an H200's multiprocessor holds two blocks of 1024 threads. */
static const struct {
    unsigned blocks, sms;
    uint64_t ns;
} grids[] = {{1, 1, 1000}, {2, 1, 1000}, {3, 1, 2000}, {64, 16, 2000}, {65, 16, 3000}, {264, 132, 1000},
             {1000, 132, 4000}};

START_TEST(blocks_take_multiprocessors)
{
    char policy[300];
    snprintf(policy, sizeof policy, "%s,sms=%u", PLAIN, grids[_i].sms);
    start(policy);
    hdcu_stream copies = new_stream(1), kernels = new_stream(1);
    hdcu_pointer memory = new_memory(8192);
    OK(cuMemcpyHtoDAsync(memory, new_pinned(8192), 5000, copies));
    launch("empty", grids[_i].blocks, 1024, kernels, NULL);
    OK(cuStreamSynchronize(kernels));
    ck_assert_uint_eq(clock_now(), grids[_i].ns);
    IS(cuStreamQuery(copies), grids[_i].ns < 5000 ? 600 : 0);
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(clock_now(), 5000);
}
END_TEST

/* Kernels beside each other, as long as there is room: in the order of their launches. */
START_TEST(what_does_not_fit_waits)
{
    start(PLAIN ",sms=2");
    hdcu_stream streams[4];
    hdcu_event ends[4];
    static const unsigned blocks[] = {3, 1, 2, 4};
    static const uint64_t end[] = {1000, 1000, 2000, 3000};
    for (int i = 0; i < 4; i++) {
        streams[i] = new_stream(1);
        launch("empty", blocks[i], 1024, streams[i], NULL);
        ends[i] = recorded(streams[i]);
    }
    for (int i = 0; i < 4; i++) {
        OK(cuEventSynchronize(ends[i]));
        ck_assert_uint_eq(clock_now(), end[i]);
    }
}
END_TEST

START_TEST(kernels_on_a_device_are_counted)
{
    start(PLAIN ",kernels=3");
    for (int i = 0; i < 7; i++)
        launch("empty", 1, 32, new_stream(1), NULL);
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(clock_now(), 3000);
}
END_TEST

/* A long kernel has begun when one of a higher priority comes: that gets the next blocks' places. */
START_TEST(priorities_get_room_first)
{
    start(PLAIN ",sms=1");
    hdcu_stream low = new_stream(1), middle, high;
    OK(cuStreamCreateWithPriority(&middle, 1, -1));
    OK(cuStreamCreateWithPriority(&high, 1, -5));
    launch("empty", 8, 1024, low, NULL);
    hdcu_event low_end = recorded(low);
    clock_advance(1500);
    ck_assert_uint_eq(clock_now(), 1500);
    launch("empty", 2, 1024, middle, NULL);
    hdcu_event middle_end = recorded(middle);
    launch("empty", 2, 1024, high, NULL);
    hdcu_event high_end = recorded(high);
    OK(cuEventSynchronize(high_end));
    ck_assert_uint_eq(clock_now(), 3000);
    OK(cuEventSynchronize(middle_end));
    ck_assert_uint_eq(clock_now(), 4000);
    OK(cuEventSynchronize(low_end));
    ck_assert_uint_eq(clock_now(), 6000);
}
END_TEST

/* Copy and kernel in turn over two streams: the classical formula. */
static const struct {
    unsigned copy, blocks, rounds;
} buffers[] = {{3000, 2, 1}, {3000, 2, 16}, {3000, 6, 16}, {500, 10, 33}};

START_TEST(double_buffer)
{
    start(PLAIN ",sms=1");
    hdcu_stream streams[2] = {new_stream(1), new_stream(1)};
    hdcu_pointer memory = new_memory(8192);
    void *pinned = new_pinned(4096);
    uint64_t copy = buffers[_i].copy, kernel = buffers[_i].blocks / 2 * 1000, rounds = buffers[_i].rounds;
    for (unsigned i = 0; i < rounds; i++) {
        OK(cuMemcpyHtoDAsync(memory + 4096 * (i % 2), pinned, copy, streams[i % 2]));
        launch("empty", buffers[_i].blocks, 1024, streams[i % 2], NULL);
    }
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(makespan(), copy + (rounds - 1) * (copy > kernel ? copy : kernel) + kernel);
}
END_TEST

/* `wide` chains of `deep` nodes between two others. */
static const struct {
    unsigned wide, deep, sms;
    uint64_t ns;
} shapes[] = {{1, 1, 132, 3100 * 3}, {32, 1, 132, 3 * 3100}, {32, 4, 132, 6 * 3100}, {1, 32, 132, 34 * 3100},
              {200, 1, 132, 3 * 3100 + 3000}};

START_TEST(graphs_run_wide)
{
    start("virtual:patience=0,node=100,launch=99999,instruction=0,block=3000");
    hdcu_graph graph;
    hdcu_graph_exec exec;
    hdcu_graph_node ends[200], first, last;
    hdcu_kernel_node_params params = {.function = function("empty"), .grid_x = 1, .grid_y = 1, .grid_z = 1,
                                      .block_x = 1024, .block_y = 1, .block_z = 1};
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddKernelNode(&first, graph, NULL, 0, &params));
    for (unsigned i = 0; i < shapes[_i].wide; i++) {
        ends[i] = first;
        for (unsigned j = 0; j < shapes[_i].deep; j++)
            OK(cuGraphAddKernelNode(&ends[i], graph, &ends[i], 1, &params));
    }
    OK(cuGraphAddKernelNode(&last, graph, ends, shapes[_i].wide, &params));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    hdcu_stream stream = new_stream(1);
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    ck_assert_uint_eq(clock_now(), shapes[_i].ns); /* 128 kernels at once; the others when those have ended */
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    ck_assert_uint_eq(clock_now(), 2 * shapes[_i].ns);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}
END_TEST

/* Kernels of so many blocks in launch order: each begins when all blocks of the one before have begun, a node's cost later.
 * Two multiprocessors have room for four blocks. */
static const struct {
    unsigned kernels, blocks;
    uint64_t ns;
} rows[] = {{1, 1, 3100}, {4, 1, 3400}, {5, 1, 2 * 3000 + 100}, {2, 2, 3200}, {3, 2, 2 * 3000 + 100},
          {2, 6, 3 * 3000 + 200}};

START_TEST(graphs_in_launch_order)
{
    start("virtual:patience=0,node=100,launch=99999,instruction=0,block=3000,sms=2");
    static const hdcu_graph_edge edge = {.from_port = HDCU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER,
                                         .type = HDCU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    hdcu_graph graph;
    hdcu_graph_exec exec;
    hdcu_graph_node node = NULL;
    hdcu_graph_node_params params = {.type = HDCU_GRAPH_NODE_TYPE_KERNEL};
    params.kernel = (hdcu_kernel_node_params){.function = function("empty"), .grid_x = rows[_i].blocks, .grid_y = 1,
                                              .grid_z = 1, .block_x = 1024, .block_y = 1, .block_z = 1};
    OK(cuGraphCreate(&graph, 0));
    for (unsigned i = 0; i < rows[_i].kernels; i++)
        OK(cuGraphAddNode(&node, graph, &node, &edge, i > 0, &params));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    hdcu_stream stream = new_stream(1);
    for (unsigned round = 1; round <= 2; round++) { /* a launch is over when all of it is */
        OK(cuGraphLaunch(exec, stream));
        OK(cuStreamSynchronize(stream));
        ck_assert_uint_eq(clock_now(), round * rows[_i].ns);
    }
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}
END_TEST

START_TEST(child_graphs_keep_their_place)
{
    start("virtual:patience=0,node=0,instruction=0,block=1000");
    hdcu_graph graph, child;
    hdcu_graph_exec exec;
    hdcu_graph_node node, before, inner;
    hdcu_kernel_node_params params = {.function = function("empty"), .grid_x = 1, .grid_y = 1, .grid_z = 1,
                                      .block_x = 32, .block_y = 1, .block_z = 1};
    hdcu_stream stream = new_stream(1);
    OK(cuGraphCreate(&child, 0));
    for (int i = 0; i < 5; i++) /* two after each other, and three beside */
        OK(cuGraphAddKernelNode(&inner, child, &inner, i == 1, &params));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddKernelNode(&before, graph, NULL, 0, &params));
    OK(cuGraphAddChildGraphNode(&node, graph, &before, 1, child));
    OK(cuGraphAddKernelNode(&node, graph, &node, 1, &params));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    ck_assert_uint_eq(clock_now(), 4000);
    hdcu_graph empty;
    OK(cuGraphCreate(&empty, 0));
    OK(cuGraphAddChildGraphNode(&node, graph, &node, 1, empty));
    OK(cuGraphAddKernelNode(&node, graph, &node, 1, &params));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    ck_assert_uint_eq(clock_now(), 9000);
    OK(cuGraphInstantiateWithFlags(&exec, empty, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    ck_assert_uint_eq(clock_now(), 9000);
}
END_TEST

/* The clock moves for who waits, and for who says so; asking is free at first. */
START_TEST(the_clock)
{
    start(PLAIN);
    hdcu_stream one = new_stream(1), other = new_stream(1);
    hdcu_pointer memory = new_memory(8192);
    ck_assert_uint_eq(clock_now(), 0);
    clock_advance(10);
    ck_assert_uint_eq(clock_now(), 10);
    OK(cuMemsetD8Async(memory, 1, 1000, one));
    OK(cuMemsetD8Async(memory + 4096, 1, 3000, other));
    hdcu_event end = recorded(one), later = recorded(other);
    IS(cuEventQuery(end), 600);
    ck_assert_uint_eq(clock_now(), 10);
    clock_advance(999);
    IS(cuEventQuery(end), 600);
    clock_advance(1);
    OK(cuEventQuery(end));
    ck_assert_uint_eq(clock_now(), 1010);
    unsigned asked = 1;
    while (cu.cuEventQuery(later) == 600)
        asked++;
    ck_assert_uint_lt(asked, 30);
    ck_assert_uint_eq(clock_now(), 3010);
    OK(cuMemsetD8Async(memory, 1, 100, other)); /* enqueued now, begun now */
    OK(cuStreamSynchronize(other));
    ck_assert_uint_eq(clock_now(), 3110);
}
END_TEST

/* Kernels that need each other, or memory that the host writes, do not hold up the clock. */
START_TEST(kernels_that_wait_for_each_other)
{
    start("virtual:patience=0");
    hdcu_stream one = new_stream(1), other = new_stream(1);
    uint32_t *flags = new_pinned(8);
    hdcu_pointer flag = (uintptr_t)flags;
    memset(flags, 0, 8);
    launch("wait_for", 1, 32, one, (void *[]){&flag});
    OK(cuMemcpyHtoDAsync(new_memory(64), new_pinned(64), 64, other));
    launch("raise", 1, 32, other, (void *[]){&flag});
    OK(cuCtxSynchronize());
    ck_assert_uint_gt(clock_now(), 2500);
    flags[0] = 0;
    launch("wait_for", 1, 32, one, (void *[]){&flag});
    OK(cuMemcpyHtoDAsync(new_memory(64), new_pinned(64), 64, other));
    OK(cuStreamSynchronize(other));
    IS(cuStreamQuery(one), 600);
    __atomic_store_n(flags, 1, __ATOMIC_RELEASE);
    OK(cuStreamSynchronize(one));
}
END_TEST

START_TEST(faults_in_virtual_time)
{
    start(PLAIN);
    hdcu_stream one = new_stream(1), other = new_stream(1);
    hdcu_pointer memory = new_memory(4096), nowhere = 64;
    OK(cuMemsetD8Async(memory, 1, 4096, other));
    launch("raise", 4, 32, one, (void *[]){&nowhere});
    launch("empty", 4, 32, one, NULL);
    OK(cuLaunchHostFunc(other, note, (void *)"x"));
    IS(cuStreamSynchronize(one), 700);
    IS(cuStreamSynchronize(other), 700);
    OK(cuDevicePrimaryCtxReset(0));
}
END_TEST

/* nanosleep makes kernels of any length. */
START_TEST(kernels_that_sleep)
{
    start("virtual:patience=0,launch=0,instruction=0,record=0");
    hdcu_stream one = new_stream(1), other = new_stream(1);
    uint64_t *told = new_pinned(16);
    hdcu_pointer address = (uintptr_t)told;
    unsigned time = 700;
    launch("sleep", 3, 96, one, (void *[]){&time});
    hdcu_event end = recorded(one);
    time = 300;
    launch("sleep", 1, 1, other, (void *[]){&time});
    launch("sleep", 1, 1, other, (void *[]){&time});
    OK(cuStreamSynchronize(other));
    ck_assert_uint_eq(clock_now(), 600);
    OK(cuEventSynchronize(end));
    ck_assert_uint_eq(clock_now(), 700);
    launch("times", 1, 1, one, (void *[]){&address});
    OK(cuStreamSynchronize(one));
    ck_assert_uint_eq(clock_now(), 700 + 5000 + 2 * 32); /* a look at the clock takes 32 */
    ck_assert_uint_eq(told[0], 700 + 32);
    ck_assert_uint_eq(told[1], 5000 + 32);
}
END_TEST

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % below;
}

/* Thousands of commands over many streams, with waits among them: the longest path is known without a simulation. */
START_TEST(a_random_graph)
{
    enum { COMMANDS = 6000, WIDTH = 24 };
    start("virtual:patience=0,record=3,wait=5,fill=7,set=1");
    random_state = 1 + (unsigned)_i;
    hdcu_stream streams[WIDTH];
    hdcu_event events[WIDTH];
    uint64_t at[WIDTH] = {0}, event_at[WIDTH], longest = 0, waits = 0;
    hdcu_pointer memory = new_memory(4096);
    for (int i = 0; i < WIDTH; i++) {
        streams[i] = new_stream(1);
        events[i] = recorded(streams[i]);
        at[i] = event_at[i] = 3;
    }
    double begin = now_ms();
    for (unsigned i = 0; i < COMMANDS; i++) {
        unsigned stream = (unsigned)draw(WIDTH), event = (unsigned)draw(WIDTH);
        uint64_t bytes = 1 + draw(1000);
        OK(cuMemsetD8Async(memory, 0, bytes, streams[stream]));
        at[stream] += 7 + bytes;
        if (draw(3) == 0) {
            OK(cuEventRecord(events[stream], streams[stream]));
            event_at[stream] = at[stream] += 3;
        }
        if (draw(3) == 0) {
            OK(cuStreamWaitEvent(streams[stream], events[event], 0));
            at[stream] = (at[stream] > event_at[event] ? at[stream] : event_at[event]) + 5;
            waits++;
        }
        longest = at[stream] > longest ? at[stream] : longest;
    }
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(makespan(), longest);
    ck_assert_uint_eq(gpu_waits(), waits);
    ck_assert_double_lt((now_ms() - begin) * 1e3 / COMMANDS, 200); /* us for a command; some 3 on a quiet machine */
}
END_TEST

#define LOOP(group, test, table) tcase_add_loop_test(group, test, 0, (int)(sizeof table / sizeof *table))

int main(void)
{
    Suite *suite = suite_create("soft_virtual");
    TCase *group = tcase_create("virtual");
    tcase_set_timeout(group, 120);
    LOOP(group, pairs_of_copies, copy_pairs);
    tcase_add_test(group, fixed_costs);
    LOOP(group, blocks_take_multiprocessors, grids);
    tcase_add_test(group, what_does_not_fit_waits);
    tcase_add_test(group, kernels_on_a_device_are_counted);
    tcase_add_test(group, priorities_get_room_first);
    LOOP(group, double_buffer, buffers);
    LOOP(group, graphs_run_wide, shapes);
    LOOP(group, graphs_in_launch_order, rows);
    tcase_add_test(group, child_graphs_keep_their_place);
    tcase_add_test(group, the_clock);
    tcase_add_test(group, kernels_that_wait_for_each_other);
    tcase_add_test(group, faults_in_virtual_time);
    tcase_add_test(group, kernels_that_sleep);
    tcase_add_loop_test(group, a_random_graph, 0, 3);
    suite_add_tcase(suite, group);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
