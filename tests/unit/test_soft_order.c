/* SPDX-License-Identifier: MIT */
/*
 * The soft driver's order of things: streams, events, the legacy stream, host functions, policies, injected
 * failures, threads, forks. Codes are an H200's, as in test_soft_api.c.
 */
#include "soft.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>

/* ---- streams ---- */

START_TEST(stream_questions)
{
    soft_start();
    hdcu_stream stream, other;
    unsigned flags;
    int priority;
    unsigned long long one, two;
    hdcu_context owner;
    hdcu_device device;
    IS(cuStreamCreate(&stream, 2), 1);
    IS(cuStreamCreate(NULL, 0), 1);
    OK(cuStreamCreateWithPriority(&stream, 1, -100));
    OK(cuStreamGetPriority(stream, &priority));
    ck_assert_int_eq(priority, -5);
    OK(cuStreamCreateWithPriority(&other, 0, 100));
    OK(cuStreamGetPriority(other, &priority));
    ck_assert_int_eq(priority, 0);
    OK(cuStreamGetFlags(stream, &flags));
    ck_assert_uint_eq(flags, 1);
    for (uintptr_t handle = 0; handle < 3; handle++) {
        OK(cuStreamGetFlags((hdcu_stream)handle, &flags));
        ck_assert_uint_eq(flags, 0);
        OK(cuStreamQuery((hdcu_stream)handle));
        IS(cuStreamDestroy((hdcu_stream)handle), 400);
    }
    OK(cuStreamGetId(NULL, &one));
    OK(cuStreamGetId(HDCU_STREAM_LEGACY, &two));
    ck_assert_uint_eq(one, two);
    OK(cuStreamGetId(HDCU_STREAM_PER_THREAD, &two));
    ck_assert_uint_ne(one, two);
    OK(cuStreamGetCtx(stream, &owner));
    ck_assert_ptr_eq(owner, context);
    OK(cuStreamGetDevice(stream, &device));
    ck_assert_int_eq(device, 0);
    OK(cuStreamDestroy(stream));
    IS(cuStreamQuery(stream), 400);
    IS(cuStreamDestroy(stream), 400);
    IS(cuStreamSynchronize((hdcu_stream)(uintptr_t)0x1234560), 400);
}
END_TEST

START_TEST(streams_do_not_hold_each_other_up)
{
    soft_start();
    hdcu_stream one = new_stream(1), other = new_stream(1);
    hdcu_pointer memory = new_memory(64);
    gate closed = gate_on(one);
    OK(cuMemsetD8Async(memory, 1, 64, other));
    OK(cuStreamSynchronize(other));
    IS(cuStreamQuery(one), 600);
    gate_open(closed);
    OK(cuStreamSynchronize(one));
}
END_TEST

START_TEST(destroyed_stream_finishes)
{
    soft_start();
    hdcu_stream stream = new_stream(1);
    hdcu_pointer memory = new_memory(4);
    unsigned char byte;
    gate closed = gate_on(stream);
    OK(cuMemsetD8Async(memory, 9, 4, stream));
    OK(cuStreamDestroy(stream)); /* returns at once */
    gate_open(closed);
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(&byte, memory, 1));
    ck_assert_uint_eq(byte, 9);
}
END_TEST

/* Which order of calls on a blocking stream B, the legacy stream 0 and a non-blocking stream N comes out. */
static _Atomic unsigned sequence_length;
static char sequence[16];

static void note(void *letter)
{
    sequence[atomic_fetch_add(&sequence_length, 1)] = *(const char *)letter;
}

START_TEST(legacy_stream)
{
    soft_start();
    static const char letters[] = "BLbN";
    hdcu_stream blocking = new_stream(0), apart = new_stream(1);
    gate closed = gate_on(blocking);
    OK(cuLaunchHostFunc(blocking, note, (void *)&letters[0]));
    OK(cuLaunchHostFunc(NULL, note, (void *)&letters[1]));
    OK(cuLaunchHostFunc(blocking, note, (void *)&letters[2]));
    OK(cuLaunchHostFunc(apart, note, (void *)&letters[3]));
    OK(cuStreamSynchronize(apart));
    ck_assert_int_eq(sequence[0], 'N');
    IS(cuStreamQuery(NULL), 600);
    IS(cuStreamQuery(blocking), 600);
    gate_open(closed);
    OK(cuStreamSynchronize(NULL));
    OK(cuStreamSynchronize(blocking));
    ck_assert(!memcmp(sequence, "NBLb", 4));
}
END_TEST

START_TEST(entries_with_the_threads_own_stream)
{
    soft_start();
    hdcu_result (*query)(hdcu_stream stream);
    void *function;
    OK(cuGetProcAddress("cuStreamQuery", &function, 12000, HDCU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
    *(void **)&query = function;
    gate closed = gate_on(new_stream(0));
    IS(cuStreamQuery(NULL), 600);
    ck_assert_uint_eq(query(NULL), 0);
    ck_assert_uint_eq(query(HDCU_STREAM_LEGACY), 600);
    gate_open(closed);
    OK(cuCtxSynchronize());
}
END_TEST

START_TEST(per_thread_stream_is_a_blocking_one)
{
    soft_start();
    static const char letters[] = "PL";
    gate closed = gate_on(HDCU_STREAM_PER_THREAD);
    OK(cuLaunchHostFunc(HDCU_STREAM_PER_THREAD, note, (void *)&letters[0]));
    OK(cuLaunchHostFunc(HDCU_STREAM_LEGACY, note, (void *)&letters[1]));
    IS(cuStreamQuery(NULL), 600);
    gate_open(closed);
    OK(cuCtxSynchronize());
    ck_assert(!memcmp(sequence, "PL", 2));
}
END_TEST

static const struct {
    unsigned condition;
    uint64_t value, before, after;
} conditions[] = {
    {HDCU_STREAM_WAIT_VALUE_GEQ, 5, 4, 6}, {HDCU_STREAM_WAIT_VALUE_EQ, 5, 6, 5},
    {HDCU_STREAM_WAIT_VALUE_AND, 6, 9, 2}, {HDCU_STREAM_WAIT_VALUE_NOR, 0xf, ~(uint64_t)0xf, 0x10},
    {HDCU_STREAM_WAIT_VALUE_GEQ, 0x80000000u, 1, 0x80000001u},
};

START_TEST(wait_values)
{
    soft_start();
    hdcu_stream stream = new_stream(1);
    uint64_t *flag = new_pinned(8);
    uint32_t *narrow = new_pinned(4);
    *flag = conditions[_i].before;
    *narrow = (uint32_t)conditions[_i].before;
    OK(cuStreamWaitValue64(stream, (uintptr_t)flag, conditions[_i].value, conditions[_i].condition));
    OK(cuStreamWaitValue32(stream, (uintptr_t)narrow, (uint32_t)conditions[_i].value, conditions[_i].condition));
    usleep(2000);
    IS(cuStreamQuery(stream), 600);
    __atomic_store_n(flag, conditions[_i].after, __ATOMIC_RELEASE);
    usleep(2000);
    IS(cuStreamQuery(stream), 600);
    __atomic_store_n(narrow, (uint32_t)conditions[_i].after, __ATOMIC_RELEASE);
    OK(cuStreamSynchronize(stream));
}
END_TEST

START_TEST(value_codes)
{
    soft_start();
    hdcu_stream stream = new_stream(1);
    hdcu_pointer device = new_memory(64), pinned = (uintptr_t)new_pinned(64);
    uint32_t page = 0, result;
    OK(cuStreamWriteValue32(stream, device, 77, 0));
    OK(cuStreamWriteValue32(stream, pinned, 1, 0));
    IS(cuStreamWriteValue32(stream, (uintptr_t)&page, 1, 0), 1);
    IS(cuStreamWriteValue32(stream, device + 1, 1, 0), 1);
    IS(cuStreamWriteValue64(stream, device + 4, 1, 0), 1);
    IS(cuStreamWriteValue32(stream, device, 1, 9), 1);
    IS(cuStreamWriteValue32(stream, 0, 1, 0), 1);
    IS(cuStreamWriteValue32(stream, device + 64, 1, 0), 1);
    OK(cuStreamWaitValue32(stream, pinned, 1, 0));
    IS(cuStreamWaitValue32(stream, pinned, 1, 4), 1);
    IS(cuStreamWaitValue32(stream, (uintptr_t)&page, 1, 0), 1);
    IS(cuStreamWaitValue32(stream, pinned, 1, HDCU_STREAM_WAIT_VALUE_FLUSH), 801);
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(&result, device, 4));
    ck_assert_uint_eq(result, 77);
}
END_TEST

/* ---- host functions ---- */

static hdcu_result answers[9];

static void call_back(void *argument)
{
    hdcu_pointer pointer;
    hdcu_context current;
    const char *name;
    int number;
    unsigned mode = HDCU_STREAM_CAPTURE_MODE_RELAXED;
    answers[0] = cu.cuMemAlloc(&pointer, 16);
    answers[1] = cu.cuStreamQuery(NULL);
    answers[2] = cu.cuCtxGetCurrent(&current);
    answers[3] = cu.cuDeviceGetCount(&number);
    answers[4] = cu.cuLaunchHostFunc(NULL, call_back, argument);
    answers[5] = cu.cuDriverGetVersion(&number);
    answers[6] = cu.cuGetErrorName(1, &name);
    answers[7] = cu.cuThreadExchangeStreamCaptureMode(&mode);
    answers[8] = cu.cuInit(0);
}

START_TEST(host_functions_may_not_call)
{
    soft_start();
    hdcu_stream stream = new_stream(1);
    OK(cuLaunchHostFunc(stream, call_back, NULL));
    OK(cuStreamSynchronize(stream));
    for (size_t i = 0; i < 9; i++)
        ck_assert_uint_eq(answers[i], i < 5 ? 800 : 0);
    IS(cuLaunchHostFunc(stream, NULL, NULL), 1);
}
END_TEST

static void told(hdcu_stream stream, hdcu_result status, void *argument)
{
    *(hdcu_result *)argument = status + 1;
}

START_TEST(stream_callbacks)
{
    soft_start();
    hdcu_stream stream = new_stream(1);
    hdcu_result status = 0;
    OK(cuStreamAddCallback(stream, told, &status, 0));
    OK(cuStreamSynchronize(stream));
    ck_assert_uint_eq(status, 1);
}
END_TEST

/* ---- events ---- */

START_TEST(event_codes)
{
    soft_start();
    hdcu_stream stream = new_stream(1);
    hdcu_event first = new_event(0), last = new_event(0), untimed, other;
    float ms = 0;
    IS(cuEventCreate(&other, HDCU_EVENT_INTERPROCESS), 1);
    OK(cuEventCreate(&other, HDCU_EVENT_INTERPROCESS | HDCU_EVENT_DISABLE_TIMING));
    IS(cuEventCreate(&other, 0x10), 1);
    IS(cuEventElapsedTime(&ms, first, last), 400);
    OK(cuEventQuery(first));
    OK(cuEventSynchronize(first));
    OK(cuStreamWaitEvent(stream, first, 0));
    IS(cuStreamWaitEvent(stream, first, 1), 401);
    IS(cuStreamWaitEvent(stream, first, 2), 1);
    IS(cuStreamWaitEvent(stream, NULL, 0), 400);
    IS(cuEventRecord(NULL, stream), 400);
    IS(cuEventRecordWithFlags(first, stream, 1), 401);
    IS(cuEventRecordWithFlags(first, stream, 2), 1);
    OK(cuEventRecord(first, stream));
    OK(cuEventSynchronize(first));
    IS(cuEventElapsedTime(&ms, first, last), 400);
    gate closed = gate_on(stream);
    OK(cuEventRecord(last, stream));
    IS(cuEventQuery(last), 600);
    IS(cuEventElapsedTime(&ms, first, last), 600);
    usleep(5000);
    gate_open(closed);
    OK(cuEventSynchronize(last));
    OK(cuEventElapsedTime(&ms, first, last));
    ck_assert_float_gt(ms, 4.0f);
    OK(cuEventElapsedTime(&ms, last, first));
    ck_assert_float_lt(ms, -4.0f);
    untimed = new_event(HDCU_EVENT_DISABLE_TIMING);
    OK(cuEventRecord(untimed, stream));
    OK(cuEventSynchronize(untimed));
    IS(cuEventElapsedTime(&ms, first, untimed), 400);
    OK(cuEventDestroy(first));
    IS(cuEventQuery(first), 400);
    IS(cuEventDestroy(NULL), 400);
}
END_TEST

/* A wait stands for the record that was there at the call; recording again does not move it, destroying does no
 * harm. */
START_TEST(waits_are_bound_at_the_call)
{
    soft_start();
    hdcu_stream one = new_stream(1), other = new_stream(1), third = new_stream(1);
    hdcu_event event = new_event(HDCU_EVENT_DISABLE_TIMING);
    gate first = gate_on(one);
    OK(cuEventRecord(event, one));
    OK(cuStreamWaitEvent(other, event, 0));
    gate second = gate_on(third);
    OK(cuEventRecord(event, third)); /* the wait of `other` is still for `one` */
    gate_open(first);
    OK(cuStreamSynchronize(other));
    IS(cuEventQuery(event), 600);
    OK(cuStreamWaitEvent(other, event, 0));
    OK(cuEventDestroy(event));
    IS(cuStreamQuery(other), 600);
    gate_open(second);
    OK(cuStreamSynchronize(other));
}
END_TEST

START_TEST(events_of_another_context)
{
    soft_start();
    hdcu_event event = new_event(0);
    hdcu_stream stream = new_stream(1);
    hdcu_context own;
    OK(cuCtxCreate(&own, 0, 0));
    IS(cuEventRecord(event, NULL), 400);
    OK(cuEventRecord(event, stream));
    OK(cuStreamWaitEvent(NULL, event, 0));
    OK(cuStreamSynchronize(stream));
    OK(cuEventQuery(event));
    OK(cuEventDestroy(event));
    OK(cuStreamDestroy(stream));
}
END_TEST

/* ---- memory in a stream's order ---- */

#define BLOCKS 15
#define GIB ((size_t)1 << 30)

static size_t free_bytes(void)
{
    size_t there, total;
    OK(cuMemGetInfo(&there, &total));
    return there;
}

/* Most of the device in pieces, time and again, and nothing waited for. Each round reads back what it wrote. */
static void use_all_of_it(hdcu_stream stream, unsigned rounds, size_t bytes, uint32_t *seen)
{
    for (unsigned round = 0; round < rounds; round++) {
        hdcu_pointer blocks[BLOCKS];
        for (unsigned i = 0; i < BLOCKS; i++) {
            OK(cuMemAllocAsync(&blocks[i], bytes, stream));
            OK(cuMemsetD32Async(blocks[i] + bytes - 4, round * BLOCKS + i, 1, stream));
        }
        for (unsigned i = 0; i < BLOCKS; i++)
            OK(cuMemcpyDtoHAsync(&seen[round * BLOCKS + i], blocks[i] + bytes - 4, 4, stream));
        for (unsigned i = 0; i < BLOCKS; i++)
            OK(cuMemFreeAsync(blocks[i], stream));
    }
}

static void check_seen(const uint32_t *seen, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        ck_assert_uint_eq(seen[i], i);
}

static void memory_rounds(hdcu_stream stream, bool gated)
{
    enum { ROUNDS = 20 };
    uint32_t *seen = new_pinned(ROUNDS * BLOCKS * sizeof *seen);
    size_t before = free_bytes();
    gate closed = gated ? gate_on(stream) : (gate){NULL};
    use_all_of_it(stream, ROUNDS, GIB, seen);
    if (gated)
        gate_open(closed);
    OK(cuStreamSynchronize(stream));
    check_seen(seen, ROUNDS * BLOCKS);
    ck_assert_uint_eq(free_bytes(), before);
}

START_TEST(memory_of_frees_ahead)
{
    soft_start();
    memory_rounds(new_stream(1), _i);
}
END_TEST

START_TEST(lazy_memory_of_frees_ahead)
{
    soft_start_lazy();
    memory_rounds(new_stream(1), _i);
}
END_TEST

/* A host that waited for the gate here would wait for ever. */
START_TEST(memory_that_is_really_short)
{
    soft_start();
    hdcu_stream stream = new_stream(1), other = new_stream(1);
    hdcu_pointer blocks[BLOCKS], more;
    hdcu_pool pool;
    uint64_t used;
    size_t before = free_bytes();
    gate closed = gate_on(stream);
    for (unsigned i = 0; i < BLOCKS; i++)
        OK(cuMemAllocAsync(&blocks[i], GIB, stream));
    IS(cuMemAllocAsync(&more, GIB, stream), 2);
    OK(cuMemFreeAsync(blocks[0], stream));
    IS(cuMemAllocAsync(&more, GIB, other), 2); /* whose order says nothing about the free */
    IS(cuMemAlloc(&more, GIB), 2);
    IS(cuMemAllocAsync(&more, 2 * GIB, stream), 2);
    OK(cuMemAllocAsync(&blocks[0], GIB, stream));
    IS(cuMemAllocAsync(&more, GIB, stream), 2); /* a free serves once */
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemPoolGetAttribute(pool, HDCU_MEMPOOL_ATTR_USED_MEM_HIGH, &used));
    ck_assert_uint_eq(used, BLOCKS * GIB);
    for (unsigned i = 0; i < BLOCKS; i++)
        OK(cuMemFreeAsync(blocks[i], stream));
    gate_open(closed);
    OK(cuStreamSynchronize(stream));
    ck_assert_uint_eq(free_bytes(), before);
    OK(cuMemPoolGetAttribute(pool, HDCU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    ck_assert_uint_eq(used, 0);
}
END_TEST

/* Sizes that fit each other's places badly, behind a gate, in more addresses than a device has. */
START_TEST(addresses_of_frees_ahead)
{
    soft_start();
    enum { ROUNDS = 30 };
    static const size_t sizes[] = {GIB * 15, GIB * 7 + 12345, GIB / 3, GIB * 11, 4096, GIB * 5};
    hdcu_stream stream = new_stream(1);
    hdcu_pointer kept, block, second, base;
    uint32_t *seen = new_pinned(ROUNDS * sizeof *seen);
    size_t before = free_bytes(), bytes;
    gate closed = gate_on(stream);
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t size = sizes[round % 6];
        OK(cuMemAllocAsync(&block, size, stream));
        OK(cuMemGetAddressRange(&base, &bytes, block + size - 1));
        ck_assert_uint_eq(base, block);
        ck_assert_uint_eq(bytes, size);
        if (round == 20) /* lies among the others to the end */
            OK(cuMemAllocAsync(&kept, 1 << 20, stream));
        OK(cuMemAllocAsync(&second, 1 << 20, stream));
        ck_assert(second >= block + size || second + (1 << 20) <= block);
        OK(cuMemsetD32Async(block, round, 1, stream));
        OK(cuMemsetD32Async(second, ~round, 1, stream));
        OK(cuMemcpyDtoHAsync(&seen[round], block, 4, stream));
        OK(cuMemFreeAsync(block, stream));
        IS(cuMemFreeAsync(block, stream), 1);
        OK(cuMemFreeAsync(second, stream));
    }
    gate_open(closed);
    OK(cuStreamSynchronize(stream));
    check_seen(seen, ROUNDS);
    OK(cuMemFree(kept));
    ck_assert_uint_eq(free_bytes(), before);
}
END_TEST

/*/* Whatever is held up, every round needs the same as the first. */
START_TEST(many_rounds_of_memory)
{
    soft_start();
    hdcu_stream stream = new_stream(1);
    hdcu_pointer block;
    size_t before = free_bytes();
    for (unsigned round = 0; round < 10000; round++) {
        gate closed = {NULL};
        if (round % 2500 == 0)
            closed = gate_on(stream);
        OK(cuMemAllocAsync(&block, 15 * GIB / (round % 2500 < 8 ? 1 : 262144), stream));
        OK(cuMemFreeAsync(block, stream));
        if (closed.flag)
            gate_open(closed);
    }
    OK(cuStreamSynchronize(stream));
    ck_assert_uint_eq(free_bytes(), before);
}
END_TEST

/* Addresses that were taken over are not those of the old block once its free is done, and the fault says which. */
START_TEST(a_fault_among_frees)
{
    soft_start();
    hdcu_stream stream = new_stream(1), other = new_stream(1);
    hdcu_pointer first = 0, block;
    gate closed = gate_on(stream);
    for (unsigned round = 0; round < 10; round++) {
        OK(cuMemAllocAsync(&block, 12 * GIB, stream));
        first = first ? first : block;
        OK(cuMemFreeAsync(block, stream));
    }
    OK(cuMemAllocAsync(&block, 64, other));
    OK(cuMemFreeAsync(block, other));
    OK(cuMemsetD8Async(first, 1, 4, other));
    IS(cuStreamSynchronize(other), 700);
    ck_assert_ptr_nonnull(strstr(soft_last_fault(), "has not allocated yet"));
    gate_open(closed);
    IS(cuMemFreeAsync(first, stream), 700);
    OK(cuDevicePrimaryCtxReset(0));
}
END_TEST

/* ---- the lazy policy ---- */

START_TEST(lazy_shows_a_missing_synchronisation)
{
    soft_start_lazy();
    hdcu_stream one = new_stream(1), other = new_stream(1);
    unsigned char *pinned = new_pinned(1);
    hdcu_pointer memory = new_memory(4);
    *pinned = 0;
    OK(cuMemsetD8Async(memory, 1, 4, one));
    OK(cuMemcpyDtoHAsync(pinned, memory, 1, one));
    usleep(2000);
    ck_assert_uint_eq(*pinned, 0); /* forgot to synchronise: nothing has happened, on purpose */
    OK(cuStreamSynchronize(other));
    ck_assert_uint_eq(*pinned, 0);
    OK(cuStreamSynchronize(one));
    ck_assert_uint_eq(*pinned, 1);
}
END_TEST

START_TEST(lazy_forces_only_what_is_needed)
{
    soft_start_lazy();
    hdcu_stream one = new_stream(1), other = new_stream(1);
    unsigned char *pinned = new_pinned(3);
    hdcu_pointer memory = new_memory(4);
    hdcu_event event = new_event(HDCU_EVENT_DISABLE_TIMING);
    memset(pinned, 0, 3);
    OK(cuMemsetD8(memory, 1, 4));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoHAsync(pinned, memory, 1, one));
    OK(cuEventRecord(event, one));
    OK(cuMemcpyDtoHAsync(pinned + 1, memory, 1, one));
    OK(cuStreamWaitEvent(other, event, 0));
    OK(cuMemcpyDtoHAsync(pinned + 2, memory, 1, other));
    OK(cuStreamSynchronize(other)); /* needs the first of `one`, not the second */
    ck_assert_uint_eq(pinned[0], 1);
    ck_assert_uint_eq(pinned[1], 0);
    ck_assert_uint_eq(pinned[2], 1);
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(pinned[1], 1);
}
END_TEST

START_TEST(lazy_queries_progress)
{
    soft_start_lazy();
    hdcu_stream stream = new_stream(1);
    hdcu_event event = new_event(HDCU_EVENT_DISABLE_TIMING);
    hdcu_pointer memory = new_memory(4);
    OK(cuMemsetD8Async(memory, 1, 4, stream));
    OK(cuEventRecord(event, stream));
    IS(cuEventQuery(event), 600);
    double begin = now_ms();
    while (cu.cuEventQuery(event) == 600)
        ck_assert_double_lt(now_ms() - begin, 900);
    OK(cuMemsetD8Async(memory, 1, 4, stream));
    while (cu.cuStreamQuery(stream) == 600)
        ck_assert_double_lt(now_ms() - begin, 1800);
    OK(cuMemsetD8Async(memory, 1, 4, stream));
    OK(cuStreamWriteValue32(stream, (uintptr_t)new_pinned(4), 1, 0));
}
END_TEST

/* ---- injected failures ---- */

START_TEST(injection)
{
    soft_start();
    hdcu_pointer pointer;
    unsigned long long calls = soft_call_count("cuMemAlloc_v2");
    ck_assert_int_eq(soft_inject("cuMemAlloc_v2:3=2;cuStreamQuery:1=600"), 0);
    OK(cuMemAlloc(&pointer, 4));
    OK(cuMemAlloc(&pointer, 4));
    pointer = 77;
    IS(cuMemAlloc(&pointer, 4), 2);
    ck_assert_uint_eq(pointer, 77); /* nothing was done */
    OK(cuMemAlloc(&pointer, 4));
    ck_assert_uint_eq(soft_call_count("cuMemAlloc"), calls + 4);
    IS(cuStreamQuery(NULL), 600);
    OK(cuStreamQuery(NULL));
    ck_assert_int_eq(soft_inject("cuMemAlloc:*=2"), 0);
    IS(cuMemAlloc(&pointer, 4), 2);
    IS(cuMemAlloc(&pointer, 4), 2);
    ck_assert_int_eq(soft_inject(NULL), 0);
    OK(cuMemAlloc(&pointer, 4));
    static const char *const bad[] = {"cuNope:1=2", "cuMemAlloc", "cuMemAlloc:=2", "cuMemAlloc:0=2", "cuMemAlloc:1=",
                                      "cuMemAlloc:1=2x", "fault:1=2", "cuMemAlloc@1=2", "cuMemAlloc:1=0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_int_eq(soft_inject(bad[i]), 1);
    OK(cuMemAlloc(&pointer, 4));
    IS(cuStreamQuery((hdcu_stream)(uintptr_t)0x4444), 400);
}
END_TEST

START_TEST(injection_from_the_environment)
{
    setenv("HDSOFT_FAIL", "cuCtxCreate:1=2", 1);
    soft_start();
    hdcu_context own;
    IS(cuCtxCreate(&own, 0, 0), 2);
    OK(cuCtxCreate(&own, 0, 0));
}
END_TEST

static void *wait_for(void *stream)
{
    OK(cuCtxSetCurrent(context));
    return (void *)(uintptr_t)cu.cuStreamSynchronize(stream);
}

/* As on an H200: after a fault nearly everything returns it, for ever; what does not is listed. */
START_TEST(faults_stay)
{
    soft_start();
    hdcu_stream stream = new_stream(1);
    hdcu_event done = new_event(0);
    hdcu_pointer memory = new_memory(64), pointer;
    hdcu_context other;
    hdcu_device device;
    unsigned flags, mode = 2;
    int number;
    pthread_t thread;
    void *status;
    hdcu_pool pool;
    OK(cuEventRecord(done, stream));
    OK(cuStreamSynchronize(stream));
    gate closed = gate_on(stream);
    pthread_create(&thread, NULL, wait_for, stream);
    usleep(10000);
    ck_assert_int_eq(soft_inject("cuMemGetInfo:1=700"), 0);
    size_t one, two;
    IS(cuMemGetInfo(&one, &two), 700);
    pthread_join(thread, &status); /* a waiter wakes although its stream would wait for ever */
    ck_assert_uint_eq((uintptr_t)status, 700);
    ck_assert_uint_gt(strlen(soft_last_fault()), 0);
    IS(cuEventQuery(done), 700);
    IS(cuStreamQuery(NULL), 700);
    IS(cuMemAlloc(&pointer, 4), 700);
    IS(cuMemFree(memory), 700);
    IS(cuStreamCreate(&stream, 0), 700);
    IS(cuEventDestroy(done), 700);
    IS(cuStreamDestroy(stream), 700);
    IS(cuCtxGetLimit(&one, 0), 700);
    IS(cuCtxSynchronize(), 700);
    OK(cuPointerGetAttribute(&flags, HDCU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
    OK(cuCtxGetCurrent(&other));
    OK(cuCtxGetDevice(&device));
    OK(cuCtxPushCurrent(context));
    OK(cuCtxPopCurrent(&other));
    OK(cuCtxSetCurrent(context));
    OK(cuCtxGetFlags(&flags));
    OK(cuDeviceGetCount(&number));
    OK(cuDeviceGetAttribute(&number, 1, 0));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuDevicePrimaryCtxRelease(0));
    IS(cuDevicePrimaryCtxRetain(&other, 0), 700);
    IS(cuCtxCreate(&other, 0, 0), 700);
    OK(cuDevicePrimaryCtxReset(0));
    IS(cuDevicePrimaryCtxRetain(&other, 0), 700);
    (void)closed;
}
END_TEST

static void *copy_back(void *memory)
{
    enum { N = 256 << 20 };
    OK(cuCtxSetCurrent(context));
    unsigned char *pageable = malloc(N);
    hdcu_result status = cu.cuMemcpyDtoH(pageable, *(hdcu_pointer *)memory, N);
    free(pageable); /* nobody may still write to it */
    return (void *)(uintptr_t)status;
}

START_TEST(a_fault_leaves_the_callers_memory_alone)
{
    soft_start();
    hdcu_pointer memory = new_memory(256 << 20);
    pthread_t thread;
    void *status;
    pthread_create(&thread, NULL, copy_back, &memory);
    usleep(5000);
    ck_assert_int_eq(soft_inject("cuStreamQuery:1=719"), 0);
    cu.cuStreamQuery(NULL);
    pthread_join(thread, &status);
    ck_assert((uintptr_t)status == 719 || !status);
}
END_TEST

START_TEST(a_fault_is_one_device_s)
{
    soft_start_two();
    hdcu_context second;
    hdcu_pointer pointer;
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    ck_assert_int_eq(soft_inject("cuMemAlloc:1=719"), 0);
    IS(cuMemAlloc(&pointer, 4), 719);
    OK(cuCtxSetCurrent(second));
    OK(cuMemAlloc(&pointer, 4));
    OK(cuMemsetD8(pointer, 1, 4));
    OK(cuCtxSynchronize());
}
END_TEST

/* ---- threads, forks, ends ---- */

static void *churn(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    unsigned char *pinned;
    OK(cuCtxSetCurrent(context));
    OK(cuMemHostAlloc((void **)&pinned, 4096, 0));
    for (int round = 0; round < 25; round++) {
        hdcu_stream one = new_stream(round & 1), other = new_stream(1);
        hdcu_event event = new_event(HDCU_EVENT_DISABLE_TIMING);
        hdcu_pointer memory;
        unsigned char value = (unsigned char)(seed * 31 + (unsigned)round);
        OK(cuMemAllocAsync(&memory, 4096, one));
        OK(cuMemsetD8Async(memory, value, 4096, one));
        OK(cuEventRecord(event, one));
        OK(cuStreamWaitEvent(other, event, 0));
        OK(cuMemcpyDtoHAsync(pinned, memory, 4096, other));
        OK(cuEventRecord(event, other));
        OK(cuStreamWaitEvent(one, event, 0));
        OK(cuMemFreeAsync(memory, one));
        OK(cuStreamDestroy(one));
        OK(cuEventSynchronize(event));
        ck_assert_uint_eq(pinned[0], value);
        ck_assert_uint_eq(pinned[4095], value);
        OK(cuStreamDestroy(other));
        OK(cuEventDestroy(event));
        OK(cuMemsetD8Async(memory = new_memory(64), 1, 64, HDCU_STREAM_PER_THREAD));
        OK(cuMemFree(memory));
    }
    OK(cuMemFreeHost(pinned));
    return NULL;
}

START_TEST(many_threads)
{
    soft_start();
    pthread_t threads[6];
    hdcu_pool pool;
    uint64_t used;
    for (uintptr_t i = 0; i < 6; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, churn, (void *)i), 0);
    for (size_t i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    OK(cuCtxSynchronize());
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemPoolGetAttribute(pool, HDCU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    ck_assert_uint_eq(used, 0);
}
END_TEST

START_TEST(forked_child)
{
    soft_start();
    hdcu_stream stream = new_stream(1);
    gate_on(stream);
    pid_t child = fork();
    if (!child) {
        hdcu_pointer pointer;
        int number;
        hdcu_context current;
        bool right = cu.cuInit(0) == 3 && cu.cuMemAlloc(&pointer, 4) == 3 && cu.cuDeviceGetCount(&number) == 3 &&
                     cu.cuDriverGetVersion(&number) == 0 && cu.cuCtxGetCurrent(&current) == 3;
#ifdef __SANITIZE_ADDRESS__
        _exit(right ? 0 : 1); /* its leak check waits for a lock that a thread of the parent may hold */
#endif
        exit(right ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* Ends with a stream at work, one held, and a host function running: nothing may crash or be said. */
static void sleep_a_while(void *argument)
{
    usleep(50000);
}

START_TEST(exit_at_any_moment)
{
    soft_start();
    hdcu_stream one = new_stream(1), other = new_stream(1), third = new_stream(1);
    enum { N = 64 << 20 };
    hdcu_pointer memory = new_memory(N);
    gate_on(one);
    OK(cuLaunchHostFunc(other, sleep_a_while, NULL));
    for (int i = 0; i < 20; i++)
        OK(cuMemsetD32Async(memory, 1, N / 4, third));
    usleep((useconds_t)_i * 3000);
    exit(0);
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
    Suite *suite = suite_create("soft_order");
    GROUP(suite, "streams", stream_questions, streams_do_not_hold_each_other_up, destroyed_stream_finishes,
          legacy_stream, entries_with_the_threads_own_stream, per_thread_stream_is_a_blocking_one, value_codes,
          host_functions_may_not_call,
          stream_callbacks);
    GROUP(suite, "events", event_codes, waits_are_bound_at_the_call, events_of_another_context);
    GROUP(suite, "lazy", lazy_shows_a_missing_synchronisation, lazy_forces_only_what_is_needed, lazy_queries_progress);
    GROUP(suite, "faults", injection, injection_from_the_environment, faults_stay,
          a_fault_leaves_the_callers_memory_alone, a_fault_is_one_device_s);
    GROUP(suite, "ends", many_threads, forked_child);
    GROUP(suite, "memory", memory_that_is_really_short, addresses_of_frees_ahead, many_rounds_of_memory,
          a_fault_among_frees);
    TCase *tables = tcase_create("tables");
    tcase_set_timeout(tables, 60);
    tcase_add_loop_test(tables, memory_of_frees_ahead, 0, 2);
    tcase_add_loop_test(tables, lazy_memory_of_frees_ahead, 0, 2);
    tcase_add_loop_test(tables, wait_values, 0, sizeof conditions / sizeof *conditions);
    for (int i = 0; i < 4; i++)
        tcase_add_loop_exit_test(tables, exit_at_any_moment, 0, i, i + 1);
    suite_add_tcase(suite, tables);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
