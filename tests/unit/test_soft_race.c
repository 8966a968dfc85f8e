/* SPDX-License-Identifier: MIT */
/*
 * The soft driver's race check: for each way in which one operation may come after another, a program that uses it and
 * is clean, and the same without it, in which the race must be found; under every policy, as it must not depend on who
 * happens to run first.
 */
#include "soft_race.h"

#define BYTES 4096u

static hdcu_stream one, two;
static hdcu_pointer memory;

/* Streams that the legacy stream does not order. */
static void begin(int policy)
{
    race_start(race_policies[policy]);
    one = new_stream(HDCU_STREAM_NON_BLOCKING);
    two = new_stream(HDCU_STREAM_NON_BLOCKING);
    memory = new_memory(BYTES);
}

START_TEST(streams)
{
    begin(_i);
    race_launch(one, "store", memory, 100);
    race_launch(one, "load", memory, 100);
    race_launch(one, "store", memory, 100);
    NO_RACE();
    race_launch(one, "store", memory, 100);
    race_launch(two, "load", memory, 100);
    A_RACE();
    race_launch(one, "load", memory, 100);
    race_launch(two, "load", memory, 100);
    NO_RACE();
    race_launch(one, "load", memory, 100);
    race_launch(two, "store", memory, 100);
    A_RACE();
    OK(cuMemsetD8Async(memory, 1, 64, one));
    OK(cuMemcpyDtoDAsync(memory + 1024, memory + 32, 64, two));
    A_RACE();
    OK(cuMemcpyDtoDAsync(memory + 1024, memory, 64, one));
    OK(cuMemcpyDtoDAsync(memory + 1087, memory, 64, two));
    A_RACE();
}
END_TEST

START_TEST(bytes)
{
    begin(_i);
    for (unsigned at = 0; at < 8; at++) {
        race_launch(one, "store", memory, 33 + at);
        race_launch(two, "store", memory + 33 + at, 100);
        NO_RACE();
        race_launch(one, "store", memory, 34 + at);
        race_launch(two, "store", memory + 33 + at, 100);
        A_RACE();
        OK(cuMemsetD8Async(memory, 1, 1001 + at, one));
        OK(cuMemsetD8Async(memory + 1001 + at, 1, 1001, two));
        NO_RACE();
        OK(cuMemsetD8Async(memory, 1, 1002 + at, one));
        OK(cuMemsetD8Async(memory + 1001 + at, 1, 1001, two));
        A_RACE();
    }
}
END_TEST

/* Many readers at once; a writer that waits for all but one of them. */
START_TEST(readers)
{
    enum { READERS = 12 };
    begin(_i);
    hdcu_stream stream[READERS];
    hdcu_event event[READERS];
    for (int i = 0; i < READERS; i++) {
        stream[i] = new_stream(HDCU_STREAM_NON_BLOCKING);
        event[i] = new_event(0);
    }
    for (int missing = -1; missing < READERS; missing++) {
        for (int i = 0; i < READERS; i++) {
            race_launch(stream[i], "load", memory, 40);
            OK(cuEventRecord(event[i], stream[i]));
            if (i != missing)
                OK(cuStreamWaitEvent(one, event[i], 0));
        }
        race_launch(one, "store", memory, 40);
        if (missing < 0)
            NO_RACE();
        else
            A_RACE();
    }
}
END_TEST

START_TEST(events)
{
    begin(_i);
    hdcu_event event = new_event(0), late = new_event(0);
    race_launch(one, "store", memory, 100);
    OK(cuEventRecord(event, one));
    OK(cuStreamWaitEvent(two, event, 0));
    race_launch(two, "load", memory, 100);
    NO_RACE();
    /* What comes after the record is not waited for, whatever the event is recorded to later. */
    OK(cuEventRecord(event, one));
    race_launch(one, "store", memory, 100);
    OK(cuStreamWaitEvent(two, event, 0));
    OK(cuEventRecord(event, one));
    race_launch(two, "load", memory, 100);
    A_RACE();
    /* Through a third stream, and a fourth place. */
    hdcu_stream three = new_stream(HDCU_STREAM_NON_BLOCKING);
    race_launch(one, "store", memory, 100);
    OK(cuEventRecord(event, one));
    OK(cuStreamWaitEvent(three, event, 0));
    OK(cuEventRecord(late, three));
    OK(cuStreamWaitEvent(two, late, 0));
    race_launch(two, "store", memory, 100);
    NO_RACE();
    /* An event that was reached long ago is an edge as well, and does not cover what came later. */
    race_launch(one, "store", memory, 50);
    OK(cuEventRecord(event, one));
    OK(cuEventRecord(late, one));
    OK(cuStreamSynchronize(one));
    race_launch(one, "store", memory, 50);
    OK(cuStreamWaitEvent(two, late, 0));
    race_launch(two, "load", memory, 50);
    A_RACE();
}
END_TEST

START_TEST(host)
{
    begin(_i);
    hdcu_event event = new_event(0);
    race_launch(one, "store", memory, 100);
    OK(cuStreamSynchronize(one));
    race_launch(two, "load", memory, 100);
    NO_RACE();
    race_launch(one, "store", memory, 100);
    OK(cuEventRecord(event, one));
    OK(cuEventSynchronize(event));
    race_launch(two, "load", memory, 100);
    NO_RACE();
    /* The wrong stream, and an event that says less. */
    race_launch(one, "store", memory, 100);
    OK(cuStreamSynchronize(two));
    race_launch(two, "load", memory, 100);
    A_RACE();
    OK(cuEventRecord(event, one));
    race_launch(one, "store", memory, 100);
    OK(cuEventSynchronize(event));
    race_launch(two, "load", memory, 100);
    A_RACE();
    /* What was enqueued before the host knew comes not after it. */
    gate closed = gate_on(two);
    race_launch(one, "store", memory, 100);
    OK(cuStreamSynchronize(one));
    gate_open(closed);
    race_launch(two, "load", memory, 100);
    NO_RACE();
}
END_TEST

static void wait_query(hdcu_stream stream, hdcu_event event)
{
    hdcu_result status;
    do
        status = event ? cu.cuEventQuery(event) : cu.cuStreamQuery(stream);
    while (status == 600);
    ck_assert_uint_eq(status, 0);
}

START_TEST(queries)
{
    begin(_i);
    hdcu_event event = new_event(0);
    race_launch(one, "store", memory, 100);
    wait_query(one, NULL);
    race_launch(two, "load", memory, 100);
    NO_RACE();
    race_launch(one, "store", memory, 100);
    OK(cuEventRecord(event, one));
    wait_query(NULL, event);
    race_launch(two, "load", memory, 100);
    NO_RACE();
    /* An unsuccessful one says nothing. */
    gate closed = gate_on(one);
    race_launch(one, "store", memory, 100);
    IS(cuStreamQuery(one), 600);
    race_launch(two, "load", memory, 100);
    gate_open(closed);
    A_RACE();
}
END_TEST

START_TEST(copies_that_wait)
{
    begin(_i);
    char pageable[64];
    void *pinned = new_pinned(64);
    race_launch(one, "store", memory, 64);
    OK(cuMemcpyDtoHAsync(pageable, memory, 64, one)); /* pageable: it is done at the return */
    race_launch(two, "store", memory, 64);
    NO_RACE();
    race_launch(one, "store", memory, 64);
    OK(cuMemcpyDtoHAsync(pinned, memory, 64, one));
    race_launch(two, "store", memory, 64);
    A_RACE();
    OK(cuMemcpyDtoHAsync(pinned, memory, 64, one));
    OK(cuMemcpyHtoDAsync(memory + 512, pinned, 64, two));
    A_RACE();
    /* A synchronous copy out of pageable memory may still be under way. */
    OK(cuMemcpyHtoD(memory, pageable, 64));
    race_launch(two, "load", memory, 64);
    A_RACE();
    OK(cuMemcpyHtoD(memory, pinned, 64));
    race_launch(two, "load", memory, 64);
    NO_RACE();
}
END_TEST

START_TEST(legacy)
{
    begin(_i);
    hdcu_stream blocking = new_stream(0), other = new_stream(0);
    race_launch(blocking, "store", memory, 100);
    race_launch(NULL, "load", memory, 100);
    race_launch(other, "store", memory, 100);
    NO_RACE();
    race_launch(blocking, "store", memory, 100);
    race_launch(other, "load", memory, 100);
    A_RACE();
    race_launch(NULL, "store", memory, 100);
    race_launch(two, "load", memory, 100);
    A_RACE();
    /* The legacy stream's own record comes after all blocking ones; to wait for it is to wait for them. */
    race_launch(blocking, "store", memory, 100);
    OK(cuStreamSynchronize(NULL));
    race_launch(two, "load", memory, 100);
    NO_RACE();
    race_launch(one, "store", memory, 100);
    OK(cuStreamSynchronize(NULL));
    race_launch(two, "load", memory, 100);
    A_RACE();
    /* A stream that is gone has still done what it did. */
    race_launch(blocking, "store", memory, 100);
    OK(cuStreamDestroy(blocking));
    race_launch(NULL, "load", memory, 100);
    NO_RACE();
}
END_TEST

START_TEST(atomics)
{
    begin(_i);
    race_launch(one, "count", memory, 1);
    race_launch(two, "count", memory, 1);
    NO_RACE();
    race_launch(one, "count", memory, 1);
    race_launch(two, "load", memory, 4);
    A_RACE();
    race_launch(one, "store", memory, 4);
    race_launch(two, "count", memory, 1);
    A_RACE();
    /* Those on both sides of an atomic access are still told apart. */
    hdcu_event event = new_event(0);
    race_launch(one, "store", memory, 4);
    OK(cuEventRecord(event, one));
    hdcu_stream three = new_stream(HDCU_STREAM_NON_BLOCKING);
    OK(cuStreamWaitEvent(three, event, 0));
    race_launch(three, "count", memory, 1);
    race_launch(two, "count", memory, 1);
    A_RACE();
    race_launch(one, "count", memory, 1);
    OK(cuMemsetD8Async(memory, 0, 4, two));
    A_RACE();
}
END_TEST

START_TEST(values)
{
    begin(_i);
    hdcu_pointer flag = memory + 1024;
    OK(cuMemsetD32(flag, 0, 1));
    OK(cuCtxSynchronize());
    race_launch(one, "store", memory, 100);
    OK(cuStreamWriteValue32(one, flag, 1, 0));
    OK(cuStreamWaitValue32(two, flag, 1, HDCU_STREAM_WAIT_VALUE_GEQ));
    race_launch(two, "load", memory, 100);
    NO_RACE();
    /* What comes after the write has not been waited for. */
    OK(cuStreamWriteValue32(one, flag, 2, 0));
    race_launch(one, "store", memory, 100);
    OK(cuStreamWaitValue32(two, flag, 2, HDCU_STREAM_WAIT_VALUE_GEQ));
    race_launch(two, "load", memory, 100);
    A_RACE();
    /* A kernel's release and a copy can be waited for as well, a value without any order says nothing. */
    OK(cuMemsetD32(flag, 0, 1));
    OK(cuCtxSynchronize());
    race_launch(one, "hand_over", memory, flag);
    OK(cuStreamWaitValue32(two, flag, 1, HDCU_STREAM_WAIT_VALUE_GEQ));
    race_launch(two, "load", memory, 4);
    NO_RACE();
    OK(cuMemsetD32(flag, 0, 1));
    OK(cuCtxSynchronize());
    race_launch(one, "hand_over_early", memory, flag);
    OK(cuStreamWaitValue32(two, flag, 1, HDCU_STREAM_WAIT_VALUE_GEQ));
    race_launch(two, "load", memory, 4);
    A_RACE();
    uint32_t *pinned = new_pinned(4);
    *pinned = 7;
    race_launch(one, "store", memory, 100);
    OK(cuMemcpyHtoDAsync(flag, pinned, 4, one));
    OK(cuStreamWaitValue32(two, flag, 7, HDCU_STREAM_WAIT_VALUE_EQ));
    race_launch(two, "load", memory, 100);
    NO_RACE();
}
END_TEST

START_TEST(flags_in_kernels)
{
    begin(_i);
    hdcu_pointer flag = memory + 1024;
    OK(cuMemsetD32(flag, 0, 1));
    OK(cuCtxSynchronize());
    race_launch(one, "hand_over", memory, flag);
    race_launch(two, "take_over", memory, flag);
    NO_RACE();
    OK(cuMemsetD32(flag, 0, 1));
    OK(cuCtxSynchronize());
    race_launch(one, "hand_over_loosely", memory, flag);
    race_launch(two, "take_over", memory, flag);
    A_RACE();
    OK(cuMemsetD32(flag, 0, 1));
    OK(cuCtxSynchronize());
    race_launch(one, "hand_over", memory, flag);
    race_launch(two, "take_over_loosely", memory, flag);
    A_RACE();
    OK(cuMemsetD32(flag, 0, 1));
    OK(cuCtxSynchronize());
    race_launch(one, "hand_over", memory, flag);
    race_launch(two, "take_over_behind_a_fence", memory, flag);
    NO_RACE();
}
END_TEST

/* Sees to it that all that the stream was given is done, by looking at memory, of which no driver knows. Eager only:
 * nothing else gets work done that nobody asks for. */
static void see_done(hdcu_stream stream)
{
    uint32_t *done = new_pinned(4);
    __atomic_store_n(done, 0, __ATOMIC_RELEASE);
    race_launch(stream, "count", (hdcu_pointer)(uintptr_t)done, 1);
    size_t ignored, all;
    while (!__atomic_load_n(done, __ATOMIC_ACQUIRE)) {
        OK(cuMemGetInfo(&ignored, &all)); /* it fails where work has */
        usleep(100);
    }
    usleep(20000); /* the command ends, too */
}

/* Streams that are gone before anybody waits for them. */
START_TEST(departed_streams)
{
    begin(0);
    for (int way = 0; way < 4; way++) {
        hdcu_stream gone = new_stream(way == 3 ? HDCU_STREAM_NON_BLOCKING : 0);
        race_launch(gone, "store", memory, 100);
        see_done(gone);
        OK(cuStreamDestroy(gone));
        if (way == 1)
            OK(cuStreamSynchronize(NULL));
        else if (way >= 2)
            OK(cuCtxSynchronize());
        race_launch(way == 0 ? NULL : two, "load", memory, 100);
        NO_RACE();
        gone = new_stream(0);
        race_launch(gone, "store", memory, 100);
        see_done(gone);
        OK(cuStreamDestroy(gone));
        race_launch(two, "load", memory, 100);
        A_RACE();
    }
}
END_TEST

static void do_nothing(void *ignored)
{
    (void)ignored;
}

START_TEST(host_functions)
{
    begin(_i);
    race_launch(one, "store", memory, 100);
    OK(cuLaunchHostFunc(one, do_nothing, NULL));
    OK(cuStreamSynchronize(two));
    OK(cuEventRecord(new_event(0), two));
    race_launch(one, "load", memory, 100);
    NO_RACE();
    gate closed = gate_on(one);
    race_launch(one, "store", memory, 100);
    OK(cuLaunchHostFunc(one, do_nothing, NULL));
    race_launch(two, "load", memory, 100); /* it could not have been told */
    gate_open(closed);
    A_RACE();
}
END_TEST

START_TEST(frees)
{
    begin(_i);
    hdcu_event event = new_event(0);
    hdcu_pointer range;
    /* Used by another stream without order, after the allocation and before the free. */
    OK(cuMemAllocAsync(&range, 1024, one));
    OK(cuEventRecord(event, one));
    OK(cuStreamWaitEvent(two, event, 0));
    race_launch(two, "store", range, 100);
    OK(cuEventRecord(event, two));
    OK(cuStreamWaitEvent(one, event, 0));
    OK(cuMemFreeAsync(range, one));
    NO_RACE();
}
END_TEST

/* Whoever goes first: the free finds the access, or the access, which faults, finds the free. */
START_TEST(unordered_frees)
{
    begin(_i / 2);
    hdcu_pointer range;
    OK(cuMemAllocAsync(&range, 1024, one));
    OK(cuStreamSynchronize(one));
    if (_i % 2) /* this keeps the other stream for a while */
        race_launch(two, "store", new_memory(1 << 20), 1 << 20);
    race_launch(two, "store", range, 100);
    OK(cuMemFreeAsync(range, one));
    cu.cuCtxSynchronize();
    ck_assert_uint_gt(race_count(), 0);
    ck_assert_msg(strstr(race_text, "by a free, in stream") != NULL, "%s", race_text);
}
END_TEST

START_TEST(reuse)
{
    begin(_i);
    hdcu_pointer range, again;
    OK(cuMemAllocAsync(&range, 1024, one));
    race_launch(one, "store", range, 100);
    OK(cuMemFreeAsync(range, one));
    OK(cuMemAllocAsync(&again, 1024, one));
    race_launch(one, "store", again, 100);
    NO_RACE();
    /* Another stream's memory before that stream has allocated it. */
    OK(cuMemFreeAsync(again, one));
    OK(cuCtxSynchronize());
    OK(cuMemAllocAsync(&range, 1024, one));
    hdcu_event event = new_event(0);
    OK(cuEventRecord(event, one));
    OK(cuStreamWaitEvent(two, event, 0));
    race_launch(two, "store", range, 100);
    NO_RACE();
}
END_TEST

/* Another stream may use memory only behind its allocation. */
START_TEST(unordered_allocations)
{
    begin(0);
    hdcu_pointer range;
    OK(cuMemAllocAsync(&range, 1024, one));
    see_done(one);
    race_launch(two, "store", range, 100);
    A_RACE();
    ck_assert_msg(strstr(race_text, "by an allocation, in stream") != NULL, "%s", race_text);
    race_launch(two, "store", range, 100);
    NO_RACE();
}
END_TEST

static long resident_pages(void)
{
    long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%ld %ld", &size, &resident), 2);
    fclose(file);
    return resident;
}

/* What nobody can race with any more is forgotten; what somebody can is not, however much came between. */
START_TEST(long_programs)
{
    enum { ROUNDS = 60, EACH = 1500 };
    begin(0);
    race_launch(one, "store", memory, 4);
    race_launch(one, "load", memory + 2000, 4);
    long pages = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < EACH; i++)
            OK(cuMemsetD8Async(memory + 8 + i % 1000, 1, 1 + i % 7, two));
        OK(cuStreamSynchronize(two));
        if (round == ROUNDS / 2)
            pages = resident_pages();
    }
    ck_assert_uint_eq(race_count(), 0);
    ck_assert_int_lt(resident_pages() - pages, 16 * 256); /* MiB */
    race_launch(two, "load", memory, 4);
    A_RACE();
    race_launch(one, "load", memory + 2000, 4);
    OK(cuStreamSynchronize(two));
    race_launch(two, "load", memory + 2000, 4);
    NO_RACE();
}
END_TEST

/* The same where the host never asks: one stream's order is enough. */
START_TEST(programs_without_end)
{
    begin(0);
    for (unsigned i = 0; i < 70000; i++)
        OK(cuMemsetD8Async(memory + i % 1000, 1, 1 + i % 7, two));
    race_launch(one, "load", memory + 990, 4);
    A_RACE();
}
END_TEST

/* Memory of another device, whose executor is another thread. */
START_TEST(two_devices)
{
    setenv("HDSOFT_DEVICES", "2", 1);
    begin(_i);
    hdcu_context second;
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxEnablePeerAccess(second, 0));
    OK(cuCtxSetCurrent(second));
    OK(cuCtxEnablePeerAccess(context, 0));
    hdcu_pointer far = new_memory(1024);
    hdcu_stream there = new_stream(HDCU_STREAM_NON_BLOCKING);
    hdcu_event event = new_event(0);
    OK(cuMemsetD8Async(far, 1, 100, there));
    OK(cuEventRecord(event, there));
    OK(cuCtxSetCurrent(context));
    OK(cuStreamWaitEvent(one, event, 0));
    race_launch(one, "load", far, 100);
    NO_RACE();
    OK(cuCtxSetCurrent(second));
    OK(cuMemsetD8Async(far, 1, 100, there));
    OK(cuCtxSetCurrent(context));
    race_launch(one, "load", far, 100);
    OK(cuCtxSetCurrent(second));
    OK(cuCtxSynchronize());
    OK(cuCtxSetCurrent(context));
    A_RACE();
}
END_TEST

START_TEST(texts)
{
    begin(_i);
    unsigned long long id_one, id_two;
    char expected[64];
    OK(cuStreamGetId(one, &id_one));
    OK(cuStreamGetId(two, &id_two));
    race_launch(one, "store", memory, 100);
    race_launch(two, "load", memory + 99, 10);
    A_RACE();
    snprintf(expected, sizeof expected, "1 byte at 0x%llx", (unsigned long long)memory + 99);
    ck_assert_msg(strstr(race_text, expected) != NULL, "%s", race_text);
    ck_assert_msg(strstr(race_text, "write by kernel 'store' (PTX line 15)") != NULL, "%s", race_text);
    ck_assert_msg(strstr(race_text, "read by kernel 'load' (PTX line 30)") != NULL, "%s", race_text);
    snprintf(expected, sizeof expected, "in stream %llu, enqueued by cuLaunchKernel", id_one);
    ck_assert_msg(strstr(race_text, expected) != NULL, "%s", race_text);
    snprintf(expected, sizeof expected, "in stream %llu, enqueued by cuLaunchKernel", id_two);
    ck_assert_msg(strstr(race_text, expected) != NULL, "%s", race_text);
    ck_assert_msg(strstr(race_text, "cuMemAlloc") != NULL, "%s", race_text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("soft_race");
    TCase *all = tcase_create("edges");
    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, streams, 0, RACE_POLICIES);
    tcase_add_loop_test(all, bytes, 0, RACE_POLICIES);
    tcase_add_loop_test(all, readers, 0, RACE_POLICIES);
    tcase_add_loop_test(all, events, 0, RACE_POLICIES);
    tcase_add_loop_test(all, host, 0, RACE_POLICIES);
    tcase_add_loop_test(all, queries, 0, RACE_POLICIES);
    tcase_add_loop_test(all, copies_that_wait, 0, RACE_POLICIES);
    tcase_add_loop_test(all, legacy, 0, RACE_POLICIES);
    tcase_add_loop_test(all, atomics, 0, RACE_POLICIES);
    tcase_add_loop_test(all, values, 0, RACE_POLICIES);
    tcase_add_loop_test(all, flags_in_kernels, 0, RACE_POLICIES);
    tcase_add_test(all, departed_streams);
    tcase_add_test(all, unordered_allocations);
    tcase_add_loop_test(all, host_functions, 0, RACE_POLICIES);
    tcase_add_loop_test(all, frees, 0, RACE_POLICIES);
    tcase_add_loop_test(all, unordered_frees, 0, 2 * RACE_POLICIES);
    tcase_add_loop_test(all, reuse, 0, RACE_POLICIES);
    tcase_add_loop_test(all, texts, 0, RACE_POLICIES);
    tcase_add_loop_test(all, two_devices, 0, RACE_POLICIES);
    suite_add_tcase(suite, all);
    TCase *lengthy = tcase_create("long");
    tcase_set_timeout(lengthy, 400); /* under TSan on a busy machine */
    tcase_add_test(lengthy, long_programs);
    tcase_add_test(lengthy, programs_without_end);
    suite_add_tcase(suite, lengthy);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_ENV);
    srunner_free(runner);
    return 0;
}
