/* SPDX-License-Identifier: MIT */
/*
 * The error model, point by point: failed queues and events, clearing, the lost device; and every driver call and every
 * allocation failing in turn under every public function.
 */
#include "device_fixture.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "child.h"
#include "failing_malloc.h"

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

static unsigned long long all_calls(void)
{
    static const char *const calls[] = {"cuEventQuery", "cuEventRecord", "cuEventDestroy", "cuStreamDestroy",
                                        "cuMemFree", "cuMemFreeAsync", "cuMemFreeHost", "cuMemPoolDestroy",
                                        "cuModuleUnload", "cuDevicePrimaryCtxRelease", "cuCtxPushCurrent",
                                        "cuLaunchKernel", "cuMemsetD8Async", "cuStreamWaitEvent", "cuMemAllocFromPoolAsync"};
    unsigned long long sum = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        sum += calls_of(calls[i]);
    }
    return sum;
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

/* ---- every driver call and every allocation fails in turn -------------------------------------------------------- */

typedef struct scene {
    hdrt_ptr memory, other;
    unsigned char *pinned;
    unsigned char *pageable;
    hdrt_timer *timer;
    hdrt_module *module;
    hdrt_event of_b;
} scene;

static scene here;

static hdrt_status do_alloc(void)
{
    hdrt_ptr memory;
    hdrt_status status = hdrt_alloc(a, 4096, &memory);
    if (status == HDRT_OK) {
        hdrt_free(a, memory);
    }
    return status;
}

static hdrt_status do_free(void)
{
    hdrt_ptr memory;
    hdrt_status status = hdrt_alloc(a, 4096, &memory);
    if (status == HDRT_OK && (status = hdrt_free(a, memory)) != HDRT_OK) {
        hdrt_free(a, memory); /* the one that failed has left it as it was */
    }
    return status;
}

static hdrt_status do_host(void)
{
    void *memory;
    hdrt_status status = hdrt_host_alloc(dev, 4096, &memory);
    if (status == HDRT_OK) {
        status = hdrt_copy_htod(a, here.memory, memory, 64);
        hdrt_status freed = hdrt_host_free(dev, memory);
        if (freed != HDRT_OK) {
            hdrt_host_free(dev, memory);
            status = freed;
        }
    }
    return status;
}

static hdrt_status do_register(void)
{
    hdrt_status status = hdrt_host_register(dev, here.pageable, 65536);
    if (status == HDRT_OK) {
        hdrt_copy_htod(a, here.memory, here.pageable, 64);
        status = hdrt_host_unregister(dev, here.pageable);
        if (status != HDRT_OK) {
            hdrt_host_unregister(dev, here.pageable);
        }
    }
    return status;
}

static hdrt_status do_htod(void)
{
    return hdrt_copy_htod(a, here.memory, here.pinned, 4096);
}

static hdrt_status do_htod_pageable(void)
{
    return hdrt_copy_htod(a, here.memory, here.pageable, 100000);
}

static hdrt_status do_htod_small(void)
{
    return hdrt_copy_htod(a, here.memory, here.pageable, 100);
}

static hdrt_status do_dtoh(void)
{
    return hdrt_copy_dtoh(a, here.pinned, here.memory, 4096);
}

static hdrt_status do_dtoh_pageable(void)
{
    return hdrt_copy_dtoh(a, here.pageable, here.memory, 4096);
}

static hdrt_status do_dtod(void)
{
    return hdrt_copy_dtod(a, here.memory, here.other, 4096);
}

static hdrt_status do_region(void)
{
    hdrt_region_side device = {.device = here.memory, .row_pitch = 64, .slice_pitch = 640};
    hdrt_region_side host = {.host = here.pinned, .row_pitch = 64, .slice_pitch = 640};
    hdrt_status status = hdrt_copy_region(a, &device, &host, 60, 10, 2);
    return status == HDRT_OK ? hdrt_copy_region(a, &host, &device, 60, 10, 1) : status;
}

static hdrt_status do_write(void)
{
    hdrt_status status = hdrt_write(a, here.memory, here.pageable, 64);
    return status == HDRT_OK ? hdrt_write(a, here.memory, here.pageable, 60000) : status;
}

static hdrt_status do_fill(void)
{
    hdrt_status status = hdrt_fill(a, here.memory, "ab", 2, 100);
    if (status == HDRT_OK) {
        status = hdrt_fill(a, here.memory, "abcd", 4, 100);
    }
    return status == HDRT_OK ? hdrt_fill(a, here.memory, "abcdefghijklmnop", 16, 100) : status;
}

static hdrt_status do_host_call(void)
{
    hdrt_queue *queue;
    hdrt_status status = hdrt_queue_create(dev, NULL, &queue); /* for a channel of its own */
    if (status == HDRT_OK) {
        status = hdrt_queue_host_call(queue, count_call, NULL);
        hdrt_queue_destroy(queue);
    }
    return status;
}

static hdrt_status do_wait(void)
{
    hdrt_status status = hdrt_fill(b, here.other, "w", 1, 64);
    if (status == HDRT_OK) {
        status = hdrt_queue_wait(a, hdrt_queue_record(b));
    }
    return status;
}

static hdrt_status do_query(void)
{
    hdrt_status status = hdrt_fill(b, here.other, "w", 1, 64);
    if (status == HDRT_OK) {
        status = hdrt_event_query(rt, hdrt_queue_record(b));
        status = status == HDRT_NOT_READY ? HDRT_OK : status;
    }
    return status;
}

static hdrt_status do_synchronize(void)
{
    hdrt_status status = hdrt_fill(b, here.other, "w", 1, 64);
    return status == HDRT_OK ? hdrt_queue_synchronize(b) : status;
}

static hdrt_status do_device_synchronize(void)
{
    hdrt_status status = hdrt_fill(b, here.other, "w", 1, 64);
    return status == HDRT_OK ? hdrt_device_synchronize(dev) : status;
}

static hdrt_status do_launch(void)
{
    hdrt_kernel *kernel;
    hdrt_status status = hdrt_module_kernel(here.module, "add", &kernel);
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt_launch(a, kernel, hdrt_grid_1d(16, 16), HDRT_ARGS(here.memory, 16u, 1u));
    hdrt_launch_options options = HDRT_LAUNCH_OPTIONS_INIT;
    options.grid = hdrt_grid_1d(16, 16);
    options.cooperative = true;
    hdrt_args args = HDRT_ARGS(here.memory, 16u, 1u);
    return status == HDRT_OK ? hdrt_launch_with(a, kernel, &options, args.pointers, args.kinds, args.count) : status;
}

static hdrt_status do_timer(void)
{
    hdrt_timer *timer;
    int64_t ns;
    hdrt_status status = hdrt_timer_create(dev, &timer);
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt_queue_timestamp(a, timer);
    if (status == HDRT_OK) {
        status = hdrt_timer_elapsed(timer, timer, &ns);
        status = status == HDRT_NOT_READY ? HDRT_OK : status;
    }
    hdrt_timer_destroy(timer);
    return status;
}

static hdrt_status do_queue(void)
{
    hdrt_queue *queue;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.name = "made";
    hdrt_status status = hdrt_queue_create(dev, &options, &queue);
    if (status == HDRT_OK) {
        status = hdrt_fill(queue, here.memory, "q", 1, 16);
        hdrt_queue_destroy(queue);
    }
    return status;
}

static hdrt_status do_adopt(void)
{
    hdrt_queue *queue, *adopted;
    struct CUstream_st *stream;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.exclusive = true;
    hdrt_status status = hdrt_queue_create(dev, &options, &queue);
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt_queue_stream(queue, &stream);
    if (status == HDRT_OK && (status = hdrt_queue_adopt(dev, stream, NULL, &adopted)) == HDRT_OK) {
        status = hdrt_fill(adopted, here.memory, "q", 1, 16);
        hdrt_queue_synchronize(adopted);
        hdrt_queue_destroy(adopted);
    }
    hdrt_queue_destroy(queue);
    return status;
}

static hdrt_status do_device(void)
{
    hdrt_device *device;
    hdrt_status status = hdrt_device_open(rt, 0, NULL, &device);
    if (status == HDRT_OK) {
        hdrt_queue *queue = hdrt_device_default_queue(device);
        hdrt_ptr memory;
        status = queue ? hdrt_alloc(queue, 64, &memory) : HDRT_ERROR_OUT_OF_MEMORY;
        hdrt_device_close(device);
    }
    return status;
}

static hdrt_status do_runtime(void)
{
    hdrt_runtime *runtime;
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    options.driver = HDRT_DRIVER_SOFT;
    hdrt_status status = hdrt_runtime_create(&options, &runtime);
    if (status == HDRT_OK) {
        hdrt_runtime_destroy(runtime);
    }
    return status;
}

static const struct {
    const char *name;
    hdrt_status (*run)(void);
} actions[] = {
    {"alloc", do_alloc}, {"free", do_free}, {"host", do_host}, {"register", do_register}, {"htod", do_htod},
    {"htod pageable", do_htod_pageable}, {"htod small", do_htod_small}, {"dtoh", do_dtoh},
    {"dtoh pageable", do_dtoh_pageable}, {"dtod", do_dtod}, {"region", do_region}, {"write", do_write},
    {"fill", do_fill}, {"host call", do_host_call}, {"wait", do_wait}, {"query", do_query},
    {"synchronize", do_synchronize}, {"device synchronize", do_device_synchronize}, {"launch", do_launch},
    {"timer", do_timer}, {"queue", do_queue}, {"adopt", do_adopt}, {"device", do_device}, {"runtime", do_runtime},
};
enum { ACTIONS = sizeof actions / sizeof *actions };

static void build_scene(void)
{
    here.memory = allocate(1 << 20);
    here.other = allocate(1 << 20);
    CK_OK(hdrt_host_alloc(dev, 1 << 20, (void **)&here.pinned));
    here.pageable = aligned_alloc(4096, 1 << 20);
    memset(here.pageable, 0, 1 << 20);
    memset(here.pinned, 0, 1 << 20);
    here.module = load_kernels();
}

/* Make everything usable again, and prove it. */
static void recover(const char *what)
{
    hdrt_device_synchronize(dev); /* what was handed over after its call may have failed since */
    hdrt_queue_clear_error(a);
    hdrt_queue_clear_error(b);
    ck_assert_msg(hdrt_device_synchronize(dev) == HDRT_OK, "%s: %s", what, hdrt_last_error());
    hdrt_status status = hdrt_fill(a, here.memory, "r", 1, 16);
    if (status == HDRT_OK) {
        status = hdrt_copy_dtoh(a, here.pinned, here.memory, 16);
    }
    if (status == HDRT_OK) {
        status = hdrt_queue_synchronize(a);
    }
    ck_assert_msg(status == HDRT_OK && here.pinned[15] == 'r', "%s: not usable afterwards: %s", what, hdrt_last_error());
}

/* Each entry of the driver in turn: its n-th call during an action fails, for n = 1, 2, ... while that is reached. */
static const char *const entries[] = {
    "cuCtxPushCurrent", "cuThreadExchangeStreamCaptureMode", "cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuMemGetInfo",
    "cuMemPoolCreate", "cuMemPoolSetAttribute", "cuMemPoolTrimTo", "cuMemPoolDestroy", "cuMemHostAlloc",
    "cuMemFreeHost", "cuMemHostRegister", "cuMemHostUnregister", "cuMemHostGetDevicePointer", "cuPointerGetAttribute",
    "cuMemGetAddressRange", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync", "cuMemcpy2DAsync",
    "cuMemcpy3DAsync", "cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async", "cuStreamCreateWithPriority",
    "cuStreamDestroy", "cuStreamQuery", "cuStreamWaitEvent", "cuStreamWaitValue64", "cuLaunchHostFunc",
    "cuStreamIsCapturing", "cuStreamGetCtx", "cuEventCreate", "cuEventRecord", "cuEventQuery", "cuEventDestroy",
    "cuEventElapsedTime", "cuLaunchKernel", "cuLaunchCooperativeKernel",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease",
    "cuDeviceGetAttribute", "cuDeviceGet", "cuCtxGetStreamPriorityRange", "cuInit", "cuDeviceGetName",
};

START_TEST(every_driver_call_may_fail)
{
    static const int codes[] = {999, 2, 1, 801};
    build_scene();
    int reached = 0;
    for (size_t e = 0; e < sizeof entries / sizeof *entries; e++) {
        for (int nth = 1; nth <= 3; nth++) {
            char rule[128];
            int code = codes[(e + (size_t)nth) % (sizeof codes / sizeof *codes)];
            snprintf(rule, sizeof rule, "%s:%d=%d", entries[e], nth, code);
            unsigned long long before = calls_of(entries[e]);
            inject(rule);
            hdrt_status status = actions[_i].run();
            hdrt_device_synchronize(dev);
            unsigned long long made = calls_of(entries[e]) - before;
            inject(NULL);
            reached += made >= (unsigned long long)nth;
            ck_assert_msg(status <= 0 && status != HDRT_ERROR_INTERNAL && status != HDRT_ERROR_DEVICE_LOST,
                          "%s with %s: %s: %s", actions[_i].name, rule, hdrt_status_name(status), hdrt_last_error());
            if (status != HDRT_OK) {
                ck_assert_str_ne(hdrt_last_error(), "");
            }
            recover(rule);
            if (made < (unsigned long long)nth) {
                break;
            }
        }
    }
    ck_assert_int_gt(reached, 2);
    hdrt_module_destroy(here.module);
    CK_OK(hdrt_host_free(dev, here.pinned));
    free(here.pageable);
}
END_TEST

enum { ENTRIES = sizeof entries / sizeof *entries };

/* The parent of these children never calls the driver: a device can be lost once in a process. */
static void begin_child(void)
{
    alarm(60);
    setup_device();
    a = make_queue("a");
    b = make_queue("b");
    build_scene();
}

/* In a child: which entries an action calls, once it does no longer what only a first run does. */
static int list_reached(int action, bool reached[ENTRIES])
{
    unsigned long long before[ENTRIES];
    begin_child();
    actions[action].run();
    hdrt_device_synchronize(dev);
    for (size_t e = 0; e < ENTRIES; e++) {
        before[e] = calls_of(entries[e]);
    }
    actions[action].run();
    hdrt_device_synchronize(dev);
    for (size_t e = 0; e < ENTRIES; e++) {
        reached[e] = calls_of(entries[e]) != before[e];
    }
    return 0;
}

/* In a child: run an action in which an entry reports a fault. \return 0, or what was wrong. */
static int faulted_run(int action, const char *entry)
{
    char rule[128];
    begin_child();
    actions[action].run();
    hdrt_device_synchronize(dev);
    snprintf(rule, sizeof rule, "%s:1=700", entry);
    unsigned long long before = calls_of(entry);
    inject(rule);
    hdrt_status status = actions[action].run();
    if (status > 0 || status == HDRT_ERROR_INTERNAL) {
        return 2;
    }
    /* Whoever calls the driver next knows (what was deferred may do that later), and nobody calls it after that. */
    for (int i = 0; i < 400 && hdrt_queue_error(b) != HDRT_ERROR_DEVICE_LOST; i++) {
        hdrt_device_synchronize(dev);
        hdrt_fill(b, here.memory, "f", 1, 16);
        usleep(i ? 5000 : 0);
    }
    inject(NULL);
    if (calls_of(entry) == before) {
        return 0; /* not reached this time: what a first run left behind was enough */
    }
    if (hdrt_fill(b, here.memory, "f", 1, 16) != HDRT_ERROR_DEVICE_LOST ||
        hdrt_queue_error(a) != HDRT_ERROR_DEVICE_LOST || !strstr(hdrt_last_error(), "is lost")) {
        return 3;
    }
    if (hdrt_event_query(rt, hdrt_queue_record(a)) != HDRT_ERROR_DEVICE_LOST ||
        hdrt_device_synchronize(dev) != HDRT_ERROR_DEVICE_LOST) {
        return 4;
    }
    usleep(20000); /* what other threads had begun is over */
    unsigned long long calls = all_calls();
    for (int i = 0; i < ACTIONS - 1; i++) {
        if (actions[i].run() != HDRT_ERROR_DEVICE_LOST) {
            fprintf(stderr, "# %s after a fault: %s\n", actions[i].name, hdrt_last_error());
            return 5;
        }
    }
    hdrt_free(a, here.memory);
    hdrt_host_free(dev, here.pinned);
    hdrt_queue_destroy(a);
    hdrt_module_destroy(here.module);
    hdrt_device_close(dev);
    hdrt_queue_destroy(b);
    int result = all_calls() == calls ? 0 : 6;
    hdrt_runtime_destroy(rt);
    free(here.pageable);
    return result;
}

static int wait_for_child(pid_t child)
{
    int result;
    ck_assert_int_ge(child, 0);
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    return result;
}

START_TEST(every_driver_call_may_fault)
{
    bool *reached = mmap(NULL, ENTRIES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int count = 0;
    ck_assert_ptr_ne(reached, MAP_FAILED);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        child_exit(list_reached(_i, reached));
    }
    ck_assert_int_eq(wait_for_child(child), 0);
    for (size_t e = 0; e < ENTRIES; e++) {
        if (!reached[e] || !strcmp(entries[e], "cuThreadExchangeStreamCaptureMode")) {
            continue; /* the latter concerns the thread alone, and reports no fault */
        }
        fflush(NULL);
        child = fork();
        if (child == 0) {
            child_exit(faulted_run(_i, entries[e]));
        }
        int result = wait_for_child(child);
        ck_assert_msg(result == 0, "%s with a fault of %s: status 0x%x", actions[_i].name, entries[e], result);
        count++;
    }
    ck_assert_int_ge(count, 1);
    munmap(reached, ENTRIES);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    build_scene();
    hdrt_status status = HDRT_OK;
    int failures = 0, bad = 0;
    FAILING_MALLOC_EACH(n) {
        status = actions[_i].run();
        failures += status != HDRT_OK;
        bad += status > 0 || status == HDRT_ERROR_INTERNAL || status == HDRT_ERROR_DEVICE_LOST;
        hdrt_queue_clear_error(a);
        hdrt_queue_clear_error(b);
    }
    ck_assert_int_eq(bad, 0);
    CK_STATUS(status, HDRT_OK);
    recover(actions[_i].name);
    hdrt_module_destroy(here.module);
    CK_OK(hdrt_host_free(dev, here.pinned));
    free(here.pageable);
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
    TCase *tcase = tcase_create("errors"), *injected = tcase_create("injected"), *faults = tcase_create("faults");
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
    tcase_add_loop_test(injected, every_driver_call_may_fail, 0, ACTIONS);
    tcase_add_loop_test(injected, every_allocation_may_fail, 0, ACTIONS);
    add_soft_tcase(suite, injected, "injected failures");
    tcase_set_timeout(faults, 300);
    tcase_add_loop_test(faults, every_driver_call_may_fault, 0, ACTIONS - 1); /* the last has no device */
    add_soft_tcase(suite, faults, "injected faults");
    TCase *lost = tcase_create("lost");
    tcase_add_checked_fixture(lost, setup_inline, NULL);
    tcase_add_loop_test(lost, a_fault_loses_the_device, 0, sizeof lost_codes / sizeof *lost_codes);
    add_soft_tcase(suite, lost, "injected lost devices");
    return run_suite(suite);
}
