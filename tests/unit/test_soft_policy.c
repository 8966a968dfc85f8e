/* SPDX-License-Identifier: MIT */
/*
 * The soft driver's execution policies: what runs when. That observers force nothing, that under random a seed decides,
 * and that every seed keeps the order that was asked for. Virtual time is test_soft_virtual.c's.
 */
#include "soft_policy.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "child.h"

/* ---- choosing a policy ---- */

static const char *const no_policies[] = {
    "", "lazier", "random", "random:", "random:x", "random:1x", "eager:1", "lazy:launch=1", "virtual:nothing=1",
    "virtual:copy", "virtual:copy=", "virtual:copy=-1", "virtual:copy=1,,", "virtual:sms=0", "virtual:sms=99999",
    "lazy:patience=1s", "random:1,copy=3",
};

START_TEST(what_is_no_policy)
{
    start("eager");
    ck_assert_int_eq(set_policy(no_policies[_i]), 1);
    ck_assert_int_eq(set_policy(NULL), 1);
}
END_TEST

START_TEST(a_policy_is_chosen_before_the_first_work)
{
    start("eager");
    ck_assert_int_eq(set_policy("virtual:copy=1.5,h2d=0.25,patience=0"), 0);
    ck_assert_int_eq(set_policy("random:18446744073709551615,patience=5"), 0);
    ck_assert_int_eq(set_policy("lazy"), 0);
    OK(cuMemsetD8Async(new_memory(4), 1, 4, NULL));
    ck_assert_int_eq(set_policy("eager"), 1);
    OK(cuCtxSynchronize());
}
END_TEST

/* ---- observers ---- */

typedef struct watched_work {
    hdcu_event event;
    hdcu_stream stream;
    _Atomic int state;
    unsigned long long unsuccessful;
} watched_work;

static void *watch(void *argument)
{
    watched_work *watched = argument;
    ck_assert_uint_eq(cu.cuCtxSetCurrent(context), 0);
    observe(true);
    for (int i = 0; i < 200; i++)
        watched->unsuccessful += cu.cuEventQuery(watched->event) == 600;
    for (int i = 0; i < 200; i++)
        watched->unsuccessful += cu.cuStreamQuery(watched->stream) == 600;
    atomic_store(&watched->state, 1);
    ck_assert_uint_eq(cu.cuEventSynchronize(watched->event), 0);
    atomic_store(&watched->state, 2);
    return NULL;
}

static const char *const waiting_policies[] = {"lazy:patience=0", "random:7,patience=0", "virtual:patience=0"};

/* A library's own thread asks 400 times and then waits: nothing happens until the program itself waits. */
START_TEST(observers_force_nothing)
{
    start(waiting_policies[_i]);
    pthread_t thread;
    watched_work watched = {.event = new_event(0), .stream = new_stream(1)};
    unsigned char *pinned = new_pinned(1);
    *pinned = 0;
    OK(cuMemsetD8Async((uintptr_t)pinned, 5, 1, watched.stream));
    OK(cuEventRecord(watched.event, watched.stream));
    unsigned char before = *pinned;
    ck_assert_int_eq(pthread_create(&thread, NULL, watch, &watched), 0);
    while (!atomic_load(&watched.state))
        usleep(1000);
    usleep(20000);
    if (before == 0) { /* the seed may have let it happen at once */
        ck_assert_uint_eq(watched.unsuccessful, 400);
        ck_assert_uint_eq(*pinned, 0);
        ck_assert_int_eq(atomic_load(&watched.state), 1);
    }
    OK(cuStreamSynchronize(watched.stream));
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(atomic_load(&watched.state), 2);
    ck_assert_uint_eq(*pinned, 5);
}
END_TEST

START_TEST(queries_make_progress)
{
    start(waiting_policies[_i]);
    hdcu_stream stream = new_stream(1);
    hdcu_event event = new_event(0);
    launch("empty", 1, 32, stream, NULL);
    OK(cuEventRecord(event, stream));
    unsigned asked = 0;
    while (cu.cuEventQuery(event) == 600) {
        ck_assert_uint_lt(++asked, 100000);
        if (asked > 100)
            usleep(100); /* lazy gets to it beside the program */
    }
    launch("empty", 1, 32, stream, NULL);
    for (asked = 0; cu.cuStreamQuery(stream) == 600; asked++) {
        ck_assert_uint_lt(asked, 100000);
        if (asked > 100)
            usleep(100);
    }
}
END_TEST

/* ---- lazy ---- */

/* Whoever waits for memory needs whoever may write it. */
START_TEST(lazy_waits_for_memory)
{
    start(_i ? "lazy:patience=0" : "random:3,patience=0");
    hdcu_stream waiter = new_stream(1), writer = new_stream(1);
    uint32_t *flag = new_pinned(4);
    *flag = 0;
    OK(cuStreamWaitValue32(waiter, (uintptr_t)flag, 1, HDCU_STREAM_WAIT_VALUE_GEQ));
    OK(cuStreamWriteValue32(writer, (uintptr_t)flag, 1, 0));
    OK(cuStreamSynchronize(waiter));
}
END_TEST

START_TEST(patience_ends)
{
    start("lazy:patience=30");
    uint32_t *pinned = new_pinned(4);
    *pinned = 0;
    OK(cuStreamWriteValue32(new_stream(1), (uintptr_t)pinned, 5, 0));
    for (int i = 0; i < 20000 && !__atomic_load_n(pinned, __ATOMIC_ACQUIRE); i++)
        usleep(1000);
    ck_assert_uint_eq(__atomic_load_n(pinned, __ATOMIC_ACQUIRE), 5);
}
END_TEST

/* ---- random: programs that run in a process of their own ---- */

typedef struct run_outcome {
    unsigned long long hash;
    unsigned sum;
    char order[32];
} run_outcome;

typedef void program(run_outcome *outcome);

static run_outcome run(program *body, const char *policy)
{
    run_outcome *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), result;
    ck_assert(shared != MAP_FAILED);
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        start(policy);
        body(shared);
        shared->hash = trace_hash();
        child_exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "policy %s: status %x", policy, status);
    result = *shared;
    munmap(shared, sizeof *shared);
    return result;
}

static run_outcome run_seed(program *body, unsigned seed)
{
    char policy[64];
    snprintf(policy, sizeof policy, "random:%u,patience=0", seed);
    return run(body, policy);
}

#define STREAMS 5
#define NUMBERS 200

/* Kernels, copies and fills over several streams, each of whose results depends on its order; joined by events. */
static void mixture(run_outcome *outcome)
{
    hdcu_stream streams[STREAMS];
    hdcu_pointer memory[STREAMS];
    uint32_t *result = new_pinned(NUMBERS * 4);
    for (unsigned i = 0; i < STREAMS; i++) {
        OK(cuStreamCreateWithPriority(&streams[i], 1, -(int)i));
        memory[i] = new_memory(NUMBERS * 4);
        OK(cuMemsetD32Async(memory[i], i, NUMBERS, streams[i]));
    }
    for (unsigned round = 0; round < 12; round++) {
        unsigned one = round % STREAMS, other = round * 3 % STREAMS;
        void *params[] = {&memory[one], &round};
        launch("mix", 10, NUMBERS / 10, streams[one], params);
        if (one == other)
            continue;
        hdcu_event event = new_event(HDCU_EVENT_DISABLE_TIMING);
        OK(cuEventRecord(event, streams[one]));
        OK(cuStreamWaitEvent(streams[other], event, 0));
        OK(cuMemcpyDtoDAsync(memory[other], memory[one], NUMBERS * 2, streams[other]));
        OK(cuEventRecord(event, streams[other]));
        OK(cuStreamWaitEvent(streams[one], event, 0));
        OK(cuEventDestroy(event));
        if (round == 7)
            OK(cuStreamSynchronize(streams[2]));
    }
    OK(cuCtxSynchronize());
    for (unsigned i = 0; i < STREAMS; i++) {
        OK(cuMemcpyDtoH(result, memory[i], NUMBERS * 4));
        for (unsigned j = 0; j < NUMBERS; j++)
            outcome->sum = outcome->sum * 31 + result[j];
    }
}

static void two_devices(run_outcome *outcome)
{
    hdcu_context contexts[2];
    hdcu_stream streams[4];
    hdcu_pointer memory[4];
    uint32_t value[4];
    for (unsigned i = 0; i < 4; i++) {
        if (i < 2)
            OK(cuDevicePrimaryCtxRetain(&contexts[i], (int)i));
        OK(cuCtxSetCurrent(contexts[i % 2]));
        streams[i] = new_stream(1);
        memory[i] = new_memory(64);
    }
    for (unsigned round = 0; round < 6; round++) {
        for (unsigned i = 0; i < 4; i++) {
            OK(cuCtxSetCurrent(contexts[i % 2]));
            OK(cuMemsetD32Async(memory[i], round + i, 16, streams[i]));
        }
    }
    for (unsigned i = 0; i < 4; i++) {
        OK(cuCtxSetCurrent(contexts[i % 2]));
        OK(cuStreamSynchronize(streams[i]));
        OK(cuMemcpyDtoH(&value[i], memory[i], 4));
        outcome->sum = outcome->sum * 31 + value[i];
    }
}

static void number_blocks(run_outcome *outcome)
{
    uint32_t *numbers = new_pinned(33 * 4);
    hdcu_pointer address = (uintptr_t)numbers;
    void *params[] = {&address};
    memset(numbers, 0, 33 * 4);
    launch("number", 32, 1, NULL, params);
    OK(cuCtxSynchronize());
    for (unsigned i = 0; i < 31; i++)
        outcome->order[i] = (char)('0' + numbers[i + 1]);
    outcome->sum = numbers[0];
}

/* A graph: two chains, ab and cd, and e before both; f after all. And in another stream xyz. */
static void graph_letters(run_outcome *outcome)
{
    static const char letters[] = "eabcdfxyz";
    static const int after[6][2] = {{-1, -1}, {0, -1}, {1, -1}, {0, -1}, {3, -1}, {2, 4}};
    hdcu_graph graph;
    hdcu_graph_exec exec;
    hdcu_graph_node nodes[6];
    hdcu_stream stream = new_stream(1), other = new_stream(1);
    OK(cuGraphCreate(&graph, 0));
    for (int i = 0; i < 6; i++) {
        hdcu_host_node_params params = {.function = note, .argument = (void *)&letters[i]};
        hdcu_graph_node before[2];
        size_t count = 0;
        for (int d = 0; d < 2; d++) {
            if (after[i][d] >= 0)
                before[count++] = nodes[after[i][d]];
        }
        OK(cuGraphAddHostNode(&nodes[i], graph, before, count, &params));
    }
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    for (int i = 6; i < 9; i++)
        OK(cuLaunchHostFunc(other, note, (void *)&letters[i]));
    OK(cuCtxSynchronize());
    memcpy(outcome->order, notes, sizeof notes);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

static program *const programs[] = {mixture, two_devices, number_blocks, graph_letters};

#define SEEDS 12

/* Of every program, and seeds: twice the same, not all alike, and the result always right. */
START_TEST(a_seed_decides)
{
    if (programs[_i] == two_devices)
        setenv("HDSOFT_DEVICES", "2", 1);
    run_outcome eager = run(programs[_i], "eager");
    unsigned different = 0;
    unsigned long long hashes[SEEDS];
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        run_outcome one = run_seed(programs[_i], seed), again = run_seed(programs[_i], seed);
        ck_assert_msg(one.hash == again.hash, "seed %u", seed);
        ck_assert_mem_eq(one.order, again.order, sizeof one.order);
        ck_assert_msg(one.sum == eager.sum, "seed %u: %u, not %u", seed, one.sum, eager.sum);
        bool fresh = true;
        for (unsigned i = 0; i < seed; i++)
            fresh &= hashes[i] != one.hash;
        hashes[seed] = one.hash;
        different += fresh;
    }
    ck_assert_uint_ge(different, SEEDS - 1);
}
END_TEST

static int place(const char *order, char letter)
{
    const char *at = strchr(order, letter);
    ck_assert_msg(at != NULL, "%c is not in %s", letter, order);
    return (int)(at - order);
}

START_TEST(every_seed_keeps_the_order)
{
    static const char *const pairs[] = {"ea", "ec", "ab", "cd", "bf", "df", "xy", "yz"};
    unsigned b_first = 0, x_first = 0;
    for (unsigned seed = 0; seed < 24; seed++) {
        run_outcome outcome = run_seed(graph_letters, seed);
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
            ck_assert_msg(place(outcome.order, pairs[i][0]) < place(outcome.order, pairs[i][1]), "seed %u: %s", seed,
                          outcome.order);
        b_first += place(outcome.order, 'b') < place(outcome.order, 'c');
        x_first += place(outcome.order, 'x') < place(outcome.order, 'e');
        ck_assert_uint_eq(strlen(outcome.order), 9);
    }
    ck_assert_uint_gt(b_first, 0);
    ck_assert_uint_lt(b_first, 24);
    ck_assert_uint_gt(x_first, 0);
    ck_assert_uint_lt(x_first, 24);
}
END_TEST

START_TEST(every_seed_numbers_blocks_its_own_way)
{
    run_outcome eager = run(number_blocks, "eager");
    unsigned different = 0;
    for (unsigned seed = 0; seed < 8; seed++) {
        run_outcome outcome = run_seed(number_blocks, seed);
        different += memcmp(outcome.order, eager.order, 31) != 0;
        uint32_t numbers = 0;
        for (int i = 0; i < 31; i++)
            numbers |= UINT32_C(1) << (outcome.order[i] - '0');
        ck_assert_int_eq(__builtin_popcount(numbers), 31);
        ck_assert_uint_eq(outcome.sum, 32);
    }
    ck_assert_uint_ge(different, 7);
}
END_TEST

/* Work that nobody waited for is done with some seeds and not with others. */
static void not_waited_for(run_outcome *outcome)
{
    unsigned char *pinned = new_pinned(2);
    memset(pinned, 0, 2);
    OK(cuMemsetD8Async((uintptr_t)pinned, 1, 1, new_stream(1)));
    OK(cuMemsetD8Async((uintptr_t)pinned + 1, 1, 1, new_stream(1)));
    outcome->sum = pinned[0] + 2u * pinned[1];
}

START_TEST(seeds_run_early_and_late)
{
    unsigned seen = 0;
    for (unsigned seed = 0; seed < 60; seed++)
        seen |= 1u << run_seed(not_waited_for, seed).sum;
    ck_assert_uint_eq(seen & 1, 1);
    ck_assert_uint_ne(seen & ~1u, 0);
}
END_TEST

static void letters_of_priorities(run_outcome *outcome)
{
    static const char letters[] = "lh";
    hdcu_stream low = new_stream(1), high;
    OK(cuStreamCreateWithPriority(&high, 1, -5));
    gate one = gate_on(low), other = gate_on(high);
    for (int i = 0; i < 12; i++) {
        OK(cuLaunchHostFunc(low, note, (void *)&letters[0]));
        OK(cuLaunchHostFunc(high, note, (void *)&letters[1]));
    }
    gate_open(one);
    gate_open(other);
    OK(cuCtxSynchronize());
    memcpy(outcome->order, notes, sizeof notes);
}

/* A hint, and no more: over many seeds the higher priority comes first in the mean. */
START_TEST(priorities_are_a_hint)
{
    int lead = 0;
    for (unsigned seed = 0; seed < 30; seed++) {
        run_outcome outcome = run_seed(letters_of_priorities, seed);
        for (int i = 0; i < 12; i++)
            lead += outcome.order[i] == 'h' ? 1 : -1;
    }
    ck_assert_int_gt(lead, 30);
}
END_TEST

static char *read_text(const char *path)
{
    static char text[8192];
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    fclose(file);
    return text;
}

static void a_little(run_outcome *outcome)
{
    hdcu_stream stream = new_stream(1);
    hdcu_pointer memory = new_memory(64);
    OK(cuMemsetD8Async(memory, 1, 64, stream));
    launch("empty", 2, 32, stream, NULL);
    OK(cuStreamSynchronize(stream));
}

START_TEST(the_trace_is_written)
{
    char path[64];
    snprintf(path, sizeof path, "policy-trace-%d", (int)getpid());
    setenv("HDSOFT_TRACE", path, 1);
    run(a_little, "virtual:launch=10,fill=5,set=0,instruction=0");
    const char *text = read_text(path);
    const char *const lines[] = {"0 begin 0 stream ", " fill bytes 64\n", "\n5 end 0 stream ",
                                 "\n15 begin 0 stream ", " kernel empty grid 2,1,1 block 32,1,1 shared 0\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        ck_assert_msg(strstr(text, lines[i]) != NULL, "no '%s' in %s", lines[i], text);
    run_seed(a_little, 3);
    ck_assert_ptr_nonnull(strstr(read_text(path), " kernel empty"));
    unlink(path);
    unsetenv("HDSOFT_TRACE");
}
END_TEST

static void times(run_outcome *outcome)
{
    mixture(outcome);
    outcome->order[0] = 'v';
    snprintf(outcome->order, sizeof outcome->order, "%llu", clock_now());
}

START_TEST(virtual_time_is_repeatable)
{
    run_outcome eager = run(mixture, "eager");
    run_outcome one = run(times, "virtual:patience=0"), again = run(times, "virtual:patience=0");
    ck_assert_uint_eq(one.sum, eager.sum);
    ck_assert_str_eq(one.order, again.order);
    ck_assert(one.hash == again.hash);
}
END_TEST

/* ---- all policies ---- */

static const char *const policies[] = {"eager", "lazy", "random:1", "random:2", "virtual"};

static void *work(void *argument)
{
    uint32_t *sum = argument;
    uint32_t *pinned;
    if (cu.cuCtxSetCurrent(context) || cu.cuMemHostAlloc((void **)&pinned, 4, 0))
        return NULL;
    hdcu_stream stream;
    hdcu_event event;
    if (cu.cuStreamCreate(&stream, 1) || cu.cuEventCreate(&event, 0))
        return NULL;
    for (unsigned i = 0; i < 30; i++) {
        *pinned = 1;
        cu.cuMemsetD32Async((uintptr_t)pinned, i, 1, stream);
        cu.cuEventRecord(event, stream);
        if (i % 3 == 0)
            while (cu.cuEventQuery(event) == 600)
                sched_yield();
        else if (i % 3 == 1)
            cu.cuEventSynchronize(event);
        else
            cu.cuStreamSynchronize(stream);
        *sum += *pinned;
    }
    cu.cuStreamDestroy(stream);
    return argument;
}

START_TEST(many_host_threads)
{
    start(policies[_i]);
    pthread_t threads[4];
    uint32_t sums[4] = {0};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &sums[i]), 0);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_uint_eq(sums[i], 29 * 30 / 2);
    }
}
END_TEST

/* More launches than a stream takes: the host waits for room, under each policy. */
START_TEST(depth_is_no_end)
{
    start(policies[_i]);
    hdcu_stream stream = new_stream(1);
    for (int i = 0; i < 2500; i++)
        launch("empty", 1, 32, stream, NULL);
    OK(cuStreamSynchronize(stream));
}
END_TEST

#define LOOP(group, test, table) tcase_add_loop_test(group, test, 0, (int)(sizeof table / sizeof *table))

int main(void)
{
    Suite *suite = suite_create("soft_policy");
    TCase *group = tcase_create("policies");
    tcase_set_timeout(group, 120);
    LOOP(group, what_is_no_policy, no_policies);
    tcase_add_test(group, a_policy_is_chosen_before_the_first_work);
    LOOP(group, observers_force_nothing, waiting_policies);
    LOOP(group, queries_make_progress, waiting_policies);
    tcase_add_loop_test(group, lazy_waits_for_memory, 0, 2);
    tcase_add_test(group, patience_ends);
    LOOP(group, many_host_threads, policies);
    LOOP(group, depth_is_no_end, policies);
    suite_add_tcase(suite, group);
    group = tcase_create("random");
    tcase_set_timeout(group, 120);
    LOOP(group, a_seed_decides, programs);
    tcase_add_test(group, every_seed_keeps_the_order);
    tcase_add_test(group, every_seed_numbers_blocks_its_own_way);
    tcase_add_test(group, seeds_run_early_and_late);
    tcase_add_test(group, priorities_are_a_hint);
    tcase_add_test(group, the_trace_is_written);
    tcase_add_test(group, virtual_time_is_repeatable);
    suite_add_tcase(suite, group);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
