/* SPDX-License-Identifier: MIT */
/* The error model, point by point: failed queues and events, clearing, the lost device. test_errors_in_turn does the rest. */
#include "device_fixture.h"

#include <stdatomic.h>

static hdrt_queue *a, *b;
static atomic_int called;

static void count_call(void *argument)
{
    (void)argument;
    atomic_fetch_add(&called, 1);
}

static void setup(void)
{
    setup_device();
    a = make_queue("a");
    b = make_queue("b");
}

static void setup_inline(void)
{
    setup_device();
    a = make_inline_queue("a");
    b = make_inline_queue("b");
}

static void teardown(void)
{
    if (!on_cuda()) {
        inject(NULL);
    }
    hdrt_queue_destroy(a);
    hdrt_queue_destroy(b);
    teardown_device();
}

static hdrt_ptr allocate(uint64_t bytes)
{
    hdrt_ptr memory;
    CK_OK(hdrt_alloc(a, bytes, &memory));
    CK_OK(hdrt_queue_synchronize(a));
    return memory;
}

/* ---- a failed queue ---------------------------------------------------------------------------------------------- */

START_TEST(a_late_failure_fails_the_queue_from_there_on)
{
    static gate g = GATE_INIT;
    hdrt_ptr memory = allocate(64);
    unsigned char *back;
    CK_OK(hdrt_host_alloc(dev, 64, (void **)&back));
    memset(back, 0, 64);

    CK_OK(hdrt_fill(a, memory, "1", 1, 64));
    gate_hold(&g, a);
    CK_OK(hdrt_copy_dtoh(a, back, memory, 64));
    hdrt_event good = hdrt_queue_record(a);
    inject("cuMemsetD8Async:1=999");
    CK_STATUS(hdrt_fill(a, memory, "2", 1, 64), HDRT_ERROR_QUEUE_FAILED);
    /* what, which call and code, what to do */
    CK_MESSAGE("queue 'a' failed");
    CK_MESSAGE("filling 64 times 1 bytes");
    CK_MESSAGE("cuMemsetD8Async");
    CK_MESSAGE("CUDA_ERROR_UNKNOWN (999)");
    CK_MESSAGE("hdrt_queue_clear_error");

    /* Events at or after the failing position are failed, those before are not. */
    hdrt_event failed = hdrt_queue_record(a);
    ck_assert_uint_eq(failed.value, good.value + 1);
    CK_STATUS(hdrt_event_query(rt, failed), HDRT_ERROR_EVENT_FAILED);
    CK_MESSAGE("filling 64 times");
    CK_STATUS(hdrt_event_wait(rt, failed, HDRT_FOREVER), HDRT_ERROR_EVENT_FAILED);
    CK_STATUS(hdrt_event_query(rt, good), HDRT_NOT_READY);

    /* What is enqueued now is dropped, with the cause for whoever asks. */
    CK_STATUS(hdrt_queue_host_call(a, count_call, NULL), HDRT_ERROR_QUEUE_FAILED);
    CK_MESSAGE("filling 64 times");
    CK_STATUS(hdrt_copy_dtoh(a, back, memory, 64), HDRT_ERROR_QUEUE_FAILED);
    CK_STATUS(hdrt_write(a, memory, back, 64), HDRT_ERROR_QUEUE_FAILED);
    CK_STATUS(hdrt_queue_wait(a, good), HDRT_ERROR_QUEUE_FAILED);
    hdrt_ptr more;
    CK_STATUS(hdrt_alloc(a, 64, &more), HDRT_ERROR_QUEUE_FAILED);
    CK_STATUS(hdrt_queue_error(a), HDRT_ERROR_QUEUE_FAILED);
    CK_MESSAGE("filling 64 times");

    /* What was before it still takes place, and synchronising waits for it. */
    gate_open(&g);
    CK_STATUS(hdrt_queue_synchronize(a), HDRT_ERROR_QUEUE_FAILED);
    CK_MESSAGE("filling 64 times");
    CK_OK(hdrt_event_query(rt, good));
    ck_assert_uint_eq(back[63], '1');
    ck_assert_int_eq(called, 0);
    CK_STATUS(hdrt_device_synchronize(dev), HDRT_ERROR_QUEUE_FAILED);
    CK_MESSAGE("queue 'a' failed");

    /* Other queues are not concerned; freeing works, so that nothing leaks. */
    CK_OK(hdrt_fill(b, memory, "3", 1, 64));
    CK_OK(hdrt_queue_synchronize(b));
    CK_OK(hdrt_free(a, memory));

    CK_OK(hdrt_queue_clear_error(a));
    CK_OK(hdrt_queue_error(a));
    CK_STATUS(hdrt_event_query(rt, failed), HDRT_ERROR_EVENT_FAILED);
    CK_OK(hdrt_event_wait(rt, hdrt_queue_record(a), HDRT_FOREVER));
    CK_OK(hdrt_queue_host_call(a, count_call, NULL));
    hdrt_event after = hdrt_queue_record(a);
    CK_OK(hdrt_event_wait(rt, after, HDRT_FOREVER));
    CK_OK(hdrt_queue_synchronize(a));
    ck_assert_int_eq(called, 1);
    CK_STATUS(hdrt_event_query(rt, failed), HDRT_ERROR_EVENT_FAILED);
    CK_OK(hdrt_event_query(rt, good));
    CK_OK(hdrt_device_synchronize(dev));
    CK_OK(hdrt_host_free(dev, back));
}
END_TEST

START_TEST(waiting_for_a_failed_event_fails_the_waiter)
{
    hdrt_ptr memory = allocate(64);
    inject("cuMemsetD8Async:1=999");
    CK_STATUS(hdrt_fill(a, memory, "2", 1, 64), HDRT_ERROR_QUEUE_FAILED);
    hdrt_event failed = hdrt_queue_record(a);
    hdrt_event fine = hdrt_queue_record(b);
    CK_STATUS(hdrt_queue_wait(b, failed), HDRT_ERROR_EVENT_FAILED);
    CK_MESSAGE("queue 'b' failed");
    CK_MESSAGE("filling 64 times");
    CK_STATUS(hdrt_queue_error(b), HDRT_ERROR_QUEUE_FAILED);
    CK_MESSAGE("filling 64 times");
    CK_STATUS(hdrt_event_query(rt, hdrt_queue_record(b)), HDRT_ERROR_EVENT_FAILED);
    CK_OK(hdrt_event_query(rt, fine));
    CK_OK(hdrt_queue_clear_error(a));
    CK_STATUS(hdrt_queue_error(b), HDRT_ERROR_QUEUE_FAILED); /* each is cleared by itself */
    CK_STATUS(hdrt_queue_wait(a, failed), HDRT_ERROR_EVENT_FAILED); /* its own failed event, too */
    CK_OK(hdrt_queue_clear_error(a));
    CK_OK(hdrt_queue_clear_error(b));

    hdrt_timeline *timeline;
    CK_OK(hdrt_timeline_create(rt, &timeline));
    CK_OK(hdrt_timeline_fail(timeline, HDRT_ERROR_IO, "the file ended early"));
    CK_STATUS(hdrt_queue_wait(b, hdrt_timeline_event(timeline, 1)), HDRT_ERROR_EVENT_FAILED);
    CK_MESSAGE("the file ended early");
    hdrt_timeline_destroy(timeline);
    CK_OK(hdrt_queue_clear_error(b));

    /* Of a destroyed queue as well. */
    hdrt_queue *queue = make_inline_queue("gone");
    inject("cuMemsetD8Async:1=999");
    CK_STATUS(hdrt_fill(queue, memory, "2", 1, 64), HDRT_ERROR_QUEUE_FAILED);
    failed = hdrt_queue_record(queue);
    hdrt_queue_destroy(queue);
    CK_STATUS(hdrt_event_query(rt, failed), HDRT_ERROR_EVENT_FAILED);
    CK_STATUS(hdrt_queue_wait(b, failed), HDRT_ERROR_EVENT_FAILED);
    CK_MESSAGE("queue 'gone' failed");
}
END_TEST

/* Handed over by the dispatcher: the call knows nothing of it. */
START_TEST(a_failure_after_the_call_fails_the_queue)
{
    static gate g = GATE_INIT;
    hdrt_ptr memory = allocate(64);
    hdrt_queue *queue;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.submission = HDRT_SUBMISSION_DISPATCHER;
    options.name = "late";
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    CK_OK(hdrt_fill(queue, memory, "1", 1, 64));
    hdrt_event good = hdrt_queue_record(queue);
    inject("cuMemsetD16Async:1=999");
    CK_OK(hdrt_queue_host_call(queue, gate_wait, &g)); /* so that all of it is enqueued before any of it fails */
    CK_OK(hdrt_fill(queue, memory, "22", 2, 32));
    hdrt_event failed = hdrt_queue_record(queue);
    CK_OK(hdrt_queue_host_call(queue, count_call, NULL));
    CK_OK(hdrt_queue_wait(b, failed));
    CK_OK(hdrt_queue_host_call(b, count_call, NULL));
    gate_open(&g);
    CK_STATUS(hdrt_event_wait(rt, failed, HDRT_FOREVER), HDRT_ERROR_EVENT_FAILED);
    CK_MESSAGE("queue 'late' failed at position 3: filling 32 times 2 bytes");
    CK_OK(hdrt_event_query(rt, good));
    CK_STATUS(hdrt_queue_synchronize(queue), HDRT_ERROR_QUEUE_FAILED);
    CK_STATUS(hdrt_queue_synchronize(b), HDRT_ERROR_QUEUE_FAILED);
    CK_MESSAGE("queue 'b' failed at position 1");
    CK_MESSAGE("filling 32 times 2 bytes");
    CK_STATUS(hdrt_fill(queue, memory, "1", 1, 64), HDRT_ERROR_QUEUE_FAILED);
    ck_assert_int_eq(called, 0);
    CK_OK(hdrt_queue_clear_error(queue));
    CK_OK(hdrt_queue_clear_error(b));
    CK_OK(hdrt_queue_host_call(queue, count_call, NULL));
    CK_OK(hdrt_queue_synchronize(queue));
    ck_assert_int_eq(called, 1);
    CK_STATUS(hdrt_event_query(rt, failed), HDRT_ERROR_EVENT_FAILED);
    hdrt_queue_destroy(queue);
}
END_TEST

typedef struct waiter {
    pthread_t thread;
    hdrt_event event;
    hdrt_status status;
    char message[512];
} waiter;

static void *wait_for_it(void *argument)
{
    waiter *me = argument;
    me->status = hdrt_event_wait(rt, me->event, HDRT_FOREVER);
    snprintf(me->message, sizeof me->message, "%s", hdrt_last_error());
    return NULL;
}

START_TEST(launch_failures_name_the_kernel)
{
    hdrt_module *module = load_kernels();
    hdrt_ptr memory = allocate(64);
    inject("cuLaunchKernel:1=701");
    CK_STATUS(hdrt_launch(a, kernel_of(module, "add"), hdrt_grid_2d(12, 3, 4, 1), HDRT_ARGS(memory, 4u, 1u)),
              HDRT_ERROR_QUEUE_FAILED);
    CK_MESSAGE("kernel 'add' <<<(3,3,1), (4,1,1), 0>>>");
    CK_MESSAGE("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)");
    inject(NULL);
    hdrt_module_destroy(module);
    CK_OK(hdrt_queue_clear_error(a)); /* what goes on in the stream has nothing to do with the kernel that is gone */
    CK_OK(hdrt_fill(a, memory, "1", 1, 64));
    CK_OK(hdrt_queue_synchronize(a));
    CK_OK(hdrt_free(a, memory));
}
END_TEST

/* ---- a lost device ----------------------------------------------------------------------------------------------- */

static void use_lost_device(hdrt_ptr memory, void *pinned, hdrt_timer *timer)
{
    hdrt_queue *queue;
    hdrt_device *device;
    hdrt_timer *another;
    hdrt_module *module;
    char host[64];
    void *other;
    hdrt_ptr more;
    int64_t ns;
    CK_STATUS(hdrt_queue_error(a), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_queue_clear_error(a), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_queue_synchronize(b), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_device_synchronize(dev), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_queue_create(dev, NULL, &queue), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_device_open(rt, 0, NULL, &device), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_alloc(b, 64, &more), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_fill(b, memory, "2", 1, 64), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_copy_htod(b, memory, host, 64), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_copy_dtoh(b, host, memory, 64), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_copy_dtod(b, memory, memory + 32, 8), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_write(b, memory, host, 64), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_queue_host_call(b, count_call, NULL), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_queue_wait(b, (hdrt_event){0, 0}), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_queue_timestamp(b, timer), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_timer_elapsed(timer, timer, &ns), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_timer_create(dev, &another), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_host_alloc(dev, 64, &other), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_host_register(dev, host, 64), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_module_load(dev, test_ptx, sizeof test_ptx - 1, NULL, &module), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_device_memory_info(dev, NULL, NULL), HDRT_ERROR_DEVICE_LOST);
    ck_assert_ptr_null(hdrt_device_default_queue(dev));
    CK_STATUS(hdrt_event_query(rt, hdrt_queue_record(a)), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_event_query(rt, hdrt_queue_record(b)), HDRT_ERROR_DEVICE_LOST);
    /* What is given back only leaves the books. */
    CK_OK(hdrt_free(a, memory));
    CK_OK(hdrt_host_free(dev, pinned));
    hdrt_device_info info = HDRT_DEVICE_INFO_INIT;
    CK_OK(hdrt_device_get_info(dev, &info));
    CK_OK(hdrt_runtime_device_info(rt, 0, &info));
}

/* The codes of the lost set, and that a waiter wakes, everything fails, and the driver is called no more. */
static const int lost_codes[] = {226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911};

START_TEST(a_fault_loses_the_device)
{
    static gate g = GATE_INIT;
    char rule[64];
    hdrt_timer *timer;
    void *pinned;
    hdrt_module *module = load_kernels();
    hdrt_ptr memory = allocate(64);
    CK_OK(hdrt_timer_create(dev, &timer));
    CK_OK(hdrt_queue_timestamp(b, timer));
    CK_OK(hdrt_host_alloc(dev, 64, &pinned));
    CK_OK(hdrt_queue_synchronize(b));
    hdrt_event complete = hdrt_queue_record(b);
    CK_OK(hdrt_launch(a, kernel_of(module, "add"), hdrt_grid_1d(4, 4), HDRT_ARGS(memory, 4u, 1u)));
    gate_hold(&g, a);
    CK_OK(hdrt_launch(a, kernel_of(module, "stamp"), hdrt_grid_1d(1, 1), HDRT_ARGS(memory, 1u)));
    CK_OK(hdrt_queue_host_call(a, count_call, NULL));
    waiter me = {.event = hdrt_queue_record(a)};
    ck_assert_int_eq(pthread_create(&me.thread, NULL, wait_for_it, &me), 0);
    usleep(2000);
    snprintf(rule, sizeof rule, "cuMemsetD8Async:1=%d", lost_codes[_i]);
    inject(rule);
    CK_STATUS(hdrt_fill(b, memory, "2", 1, 64), HDRT_ERROR_DEVICE_LOST);
    CK_MESSAGE("is lost"); /* as the fill or the waiter, whoever came first, met it */
    CK_MESSAGE("stamp <<<(1,1,1), (1,1,1), 0>>>");
    CK_MESSAGE("queue 'a'");
    CK_MESSAGE("start a new one");
    pthread_join(me.thread, NULL);
    CK_STATUS(me.status, HDRT_ERROR_DEVICE_LOST);
    ck_assert_ptr_nonnull(strstr(me.message, "is lost"));
    CK_OK(hdrt_event_query(rt, complete)); /* known before */

    unsigned long long calls = all_calls();
    use_lost_device(memory, pinned, timer);
    gate_open(&g);
    usleep(2000);
    hdrt_timer_destroy(timer);
    hdrt_module_destroy(module);
    ck_assert_uint_eq(all_calls(), calls);
    hdrt_queue_destroy(a);
    hdrt_queue_destroy(b);
    hdrt_device_close(dev);
    ck_assert_uint_eq(all_calls(), calls);
    ck_assert_int_eq(called, 0); /* a host call behind the fault is never called */
    hdrt_device *device;
    CK_STATUS(hdrt_device_open(rt, 0, NULL, &device), HDRT_ERROR_DEVICE_LOST);
    CK_MESSAGE("is lost");
    hdrt_runtime_destroy(rt);
}
END_TEST

START_TEST(other_codes_do_not_lose_the_device)
{
    static const int codes[] = {1, 2, 101, 201, 400, 600, 701, 703, 704, 708, 709, 713, 720, 800, 801, 811, 900, 910, 912, 999};
    hdrt_ptr memory = allocate(64);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        char rule[64];
        snprintf(rule, sizeof rule, "cuMemsetD8Async:1=%d", codes[i]);
        inject(rule);
        CK_STATUS(hdrt_fill(a, memory, "2", 1, 64), HDRT_ERROR_QUEUE_FAILED);
        CK_OK(hdrt_queue_clear_error(a));
        CK_OK(hdrt_fill(a, memory, "2", 1, 64));
        CK_OK(hdrt_queue_synchronize(a));
    }
}
END_TEST

START_TEST(a_fault_seen_by_asking_loses_the_device)
{
    static gate g = GATE_INIT;
    hdrt_device *second;
    hdrt_queue *other;
    CK_OK(hdrt_device_open(rt, 0, NULL, &second));
    CK_OK(hdrt_queue_create(second, NULL, &other));
    gate_hold(&g, a);
    hdrt_event event = hdrt_queue_record(a);
    inject("cuEventQuery:1=700");
    CK_STATUS(hdrt_event_wait(rt, event, HDRT_FOREVER), HDRT_ERROR_DEVICE_LOST);
    gate_open(&g);
    /* Another device object of the same GPU learns it without calling the driver. */
    CK_STATUS(hdrt_queue_host_call(other, count_call, NULL), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_queue_synchronize(other), HDRT_ERROR_DEVICE_LOST);
    hdrt_queue_destroy(other);
    hdrt_device_close(second);
}
END_TEST

/* A driver that cannot be asked has not said that anything is over: memory in use stays, whatever code it gives. */
START_TEST(asking_that_fails_ends_no_use)
{
    static gate g = GATE_INIT;
    static const int codes[] = {1, 2, 101, 400, 801, 999}; /* 1, 101 and 400: HDRT_ERROR_INVALID_ARGUMENT elsewhere */
    char rule[64];
    void *pinned, *registered = aligned_alloc(4096, 4096);
    hdrt_ptr memory = allocate(64);
    snprintf(rule, sizeof rule, "cuEventQuery:*=%d", codes[_i]);
    CK_OK(hdrt_host_alloc(dev, 4096, &pinned));
    CK_OK(hdrt_host_register(dev, registered, 4096));
    memset(pinned, 'p', 4096);
    gate_hold(&g, a);
    CK_OK(hdrt_copy_htod(a, memory, pinned, 64));
    CK_OK(hdrt_copy_htod(a, memory, registered, 64));
    hdrt_timer *timer;
    int64_t ns;
    CK_OK(hdrt_timer_create(dev, &timer));
    CK_OK(hdrt_queue_timestamp(a, timer));
    hdrt_event event = hdrt_queue_record(a);
    CK_STATUS(hdrt_event_query(rt, event), HDRT_NOT_READY);
    CK_STATUS(hdrt_timer_elapsed(timer, timer, &ns), HDRT_NOT_READY);
    hdrt_status expected = codes[_i] == 2     ? HDRT_ERROR_OUT_OF_DEVICE_MEMORY
                           : codes[_i] == 801 ? HDRT_ERROR_UNSUPPORTED
                                              : HDRT_ERROR_DRIVER;
    inject(rule);
    CK_STATUS(hdrt_event_query(rt, event), expected);
    CK_MESSAGE("asking for the work of stream");
    CK_STATUS(hdrt_event_wait(rt, event, HDRT_FOREVER), expected);
    CK_STATUS(hdrt_timer_elapsed(timer, timer, &ns), expected);
    unsigned long long unregistered = calls_of("cuMemHostUnregister"), freed = calls_of("cuMemFreeHost");
    CK_STATUS(hdrt_host_unregister(dev, registered), expected);
    ck_assert_uint_eq(calls_of("cuMemHostUnregister"), unregistered);
    CK_OK(hdrt_host_free(dev, pinned));
    ck_assert_uint_eq(calls_of("cuMemFreeHost"), freed);
    inject(NULL);
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(a));
    CK_OK(hdrt_host_unregister(dev, registered));
    hdrt_timer_destroy(timer);
    free(registered);
}
END_TEST

/* ---- a real fault ------------------------------------------------------------------------------------------------ */

START_TEST(a_trap_in_a_kernel_is_told)
{
    hdrt_module *module = load_kernels();
    unsigned char *back;
    hdrt_ptr memory;
    CK_OK(hdrt_host_alloc(dev, 64, (void **)&back));
    CK_OK(hdrt_alloc(a, 64, &memory));
    CK_OK(hdrt_launch(a, kernel_of(module, "fault"), hdrt_grid_1d(1, 32), HDRT_ARGS()));
    CK_STATUS(hdrt_queue_synchronize(a), HDRT_ERROR_DEVICE_LOST);
    CK_MESSAGE("is lost");
    CK_MESSAGE("fault <<<(1,1,1), (32,1,1), 0>>>");
    CK_STATUS(hdrt_copy_dtoh(b, back, memory, 64), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_event_query(rt, hdrt_queue_record(b)), HDRT_ERROR_DEVICE_LOST);
    hdrt_device *device;
    CK_STATUS(hdrt_device_open(rt, 0, NULL, &device), HDRT_ERROR_DEVICE_LOST);
    hdrt_runtime *second = make_runtime();
    CK_STATUS(hdrt_device_open(second, 0, NULL, &device), HDRT_ERROR_DEVICE_LOST); /* the driver says so */
    hdrt_runtime_destroy(second);
    hdrt_module_destroy(module);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("errors");
    TCase *tcase = tcase_create("errors"), *injected = tcase_create("injected");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_trap_in_a_kernel_is_told);
    suite_add_tcase(suite, tcase);
    TCase *at_once = tcase_create("at once");
    tcase_add_checked_fixture(at_once, setup_inline, teardown);
    tcase_add_test(at_once, a_late_failure_fails_the_queue_from_there_on);
    tcase_add_test(at_once, waiting_for_a_failed_event_fails_the_waiter);
    tcase_add_test(at_once, launch_failures_name_the_kernel);
    tcase_add_test(at_once, other_codes_do_not_lose_the_device);
    tcase_add_loop_test(at_once, asking_that_fails_ends_no_use, 0, 6);
    add_soft_tcase(suite, at_once, "injected failures of calls");
    tcase_add_checked_fixture(injected, setup, teardown);
    tcase_set_timeout(injected, 120);
    tcase_add_test(injected, a_failure_after_the_call_fails_the_queue);
    tcase_add_test(injected, a_fault_seen_by_asking_loses_the_device);
    add_soft_tcase(suite, injected, "injected failures");
    TCase *lost = tcase_create("lost");
    tcase_add_checked_fixture(lost, setup_inline, NULL);
    tcase_add_loop_test(lost, a_fault_loses_the_device, 0, sizeof lost_codes / sizeof *lost_codes);
    add_soft_tcase(suite, lost, "injected lost devices");
    return run_suite(suite);
}
