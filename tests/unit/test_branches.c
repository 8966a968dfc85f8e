/* SPDX-License-Identifier: MIT */
/* What happens rarely: first uses that fail, drivers that lack something, foreign memory, threads that cannot start. */
#include "device_fixture.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "child.h"
#include "device/device.h"
#include "failing_malloc.h"
#include "memory/registry.h"

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument);

static atomic_bool no_threads;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument)
{
    return atomic_load(&no_threads) ? EAGAIN : __real_pthread_create(thread, attributes, function, argument);
}

static atomic_int called;

static void count_call(void *argument)
{
    (void)argument;
    atomic_fetch_add(&called, 1);
}

static hdrt_ptr allocate(hdrt_queue *queue, uint64_t bytes)
{
    hdrt_ptr memory;
    CK_OK(hdrt_alloc(queue, bytes, &memory));
    CK_OK(hdrt_queue_synchronize(queue));
    return memory;
}

static void *open_soon(void *argument)
{
    usleep(20000);
    gate_open(argument);
    return NULL;
}

/* ---- drivers that lack something --------------------------------------------------------------------------------- */

static void inner_calls(void *argument)
{
    hdrt_queue *other = argument;
    CK_OK(hdrt_queue_host_call(other, count_call, NULL));
    count_call(NULL);
}

/*
 * The driver has no part in host calls, but on streams where the caller's own work may follow. 0: these wait for 64-bit
 * words, 1: for 32-bit ones, 2: they cannot.
 */
START_TEST(host_calls_on_any_driver)
{
    if (_i == 2) {
        setenv("HDSOFT_DRIVER_VERSION", "11040", 1);
    }
    rt = make_runtime();
    if (_i == 1) {
        inject("cuDeviceGetAttribute:4=1"); /* the fourth that opening asks: 64-bit stream memory operations */
    }
    CK_OK(hdrt_device_open(rt, 0, NULL, &dev));
    hdrt_queue *queue = make_queue("a"), *other = make_queue("b");
    unsigned long long waits[2] = {calls_of("cuStreamWaitValue32"), calls_of("cuStreamWaitValue64")};
    for (int i = 0; i < 20; i++) {
        CK_OK(hdrt_queue_host_call(queue, inner_calls, other));
    }
    CK_OK(hdrt_queue_wait(other, hdrt_queue_record(queue)));
    CK_OK(hdrt_queue_host_call(other, count_call, NULL));
    CK_OK(hdrt_queue_synchronize(queue));
    CK_OK(hdrt_queue_synchronize(other)); /* with what the host functions have enqueued on it */
    ck_assert_int_eq(called, 41);
    ck_assert_uint_eq(calls_of("cuLaunchHostFunc"), 0);
    hdrt_queue *own;
    struct CUstream_st *stream;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.exclusive = true;
    CK_OK(hdrt_queue_create(dev, &options, &own));
    CK_OK(hdrt_queue_host_call(own, count_call, NULL)); /* the stream is not known to the caller yet */
    CK_OK(hdrt_queue_synchronize(own));
    CK_OK(hdrt_queue_stream(own, &stream));
    ck_assert_uint_eq(calls_of("cuLaunchHostFunc"), 0);
    CK_STATUS(hdrt_queue_host_call(own, count_call, NULL), _i == 2 ? HDRT_ERROR_UNSUPPORTED : HDRT_OK);
    CK_OK(hdrt_queue_synchronize(own));
    ck_assert_int_eq(called, _i == 2 ? 42 : 43);
    ck_assert_int_eq(calls_of("cuStreamWaitValue32") != waits[0], _i == 1);
    ck_assert_int_eq(calls_of("cuStreamWaitValue64") != waits[1], _i == 0);
    hdrt_queue_destroy(own);
    static gate g = GATE_INIT;
    called = 41;
    CK_OK(hdrt_queue_host_call(queue, gate_wait, &g));
    CK_OK(hdrt_queue_host_call(queue, count_call, NULL));
    hdrt_queue_destroy(queue);
    hdrt_queue_destroy(other);
    teardown_device();
    gate_open(&g);
    for (int i = 0; i < 5000 && called < 42; i++) {
        usleep(1000);
    }
    ck_assert_int_eq(called, 42);
}
END_TEST

START_TEST(a_fault_while_a_notification_stands)
{
    static gate g = GATE_INIT;
    setup_device();
    hdrt_queue *queue = make_queue("a"), *other = make_inline_queue("b");
    hdrt_ptr memory = allocate(other, 64);
    gate_hold(&g, queue);
    CK_OK(hdrt_queue_host_call(queue, count_call, NULL));
    inject("cuMemsetD8Async:1=700");
    CK_STATUS(hdrt_fill(other, memory, "x", 1, 64), HDRT_ERROR_DEVICE_LOST);
    hdrt_queue_destroy(queue);
    hdrt_queue_destroy(other);
    teardown_device();
    gate_open(&g);
    usleep(5000);
    ck_assert_int_eq(called, 0);
}
END_TEST

START_TEST(no_cooperative_launches)
{
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    options.driver = HDRT_DRIVER_SOFT;
    rt = make_runtime();
    hdrt_runtime *plain = NULL;
    for (int nth = 1; nth < 40; nth++) {
        char rule[64];
        hdrt_device_info info = HDRT_DEVICE_INFO_INIT;
        snprintf(rule, sizeof rule, "cuDeviceGetAttribute:%d=1", nth);
        inject(NULL);
        inject(rule);
        CK_OK(hdrt_runtime_create(&options, &plain));
        CK_OK(hdrt_runtime_device_info(plain, 0, &info));
        if (!info.cooperative_launch) {
            break;
        }
        hdrt_runtime_destroy(plain);
        plain = NULL;
    }
    inject(NULL);
    ck_assert_ptr_nonnull(plain);
    CK_OK(hdrt_device_open(plain, 0, NULL, &dev));
    hdrt_queue *queue = make_queue("a");
    hdrt_module *module = load_kernels();
    hdrt_ptr memory = allocate(queue, 64);
    hdrt_launch_options launch = HDRT_LAUNCH_OPTIONS_INIT;
    launch.grid = hdrt_grid_1d(1, 1);
    launch.cooperative = true;
    hdrt_args args = HDRT_ARGS(memory, 1u, 1u);
    CK_STATUS(hdrt_launch_with(queue, kernel_of(module, "add"), &launch, args.pointers, args.kinds, args.count),
              HDRT_ERROR_UNSUPPORTED);
    CK_OK(hdrt_queue_error(queue));
    hdrt_module_destroy(module);
    hdrt_queue_destroy(queue);
    hdrt_device_close(dev);
    hdrt_runtime_destroy(plain);
    hdrt_runtime_destroy(rt);
}
END_TEST

/* ---- first uses -------------------------------------------------------------------------------------------------- */

static hdrt_status whole_life(void)
{
    hdrt_device *device;
    hdrt_queue *queue;
    hdrt_ptr memory;
    void *pinned;
    static unsigned char bytes[8192];
    hdrt_status status = hdrt_device_open(rt, 0, NULL, &device);
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt_queue_create(device, NULL, &queue);
    if (status == HDRT_OK) {
        if ((status = hdrt_alloc(queue, 65536, &memory)) == HDRT_OK &&
            (status = hdrt_host_alloc(device, 4096, &pinned)) == HDRT_OK &&
            (status = hdrt_queue_host_call(queue, count_call, NULL)) == HDRT_OK &&
            (status = hdrt_write(queue, memory, bytes, 16)) == HDRT_OK &&
            (status = hdrt_write(queue, memory, bytes, sizeof bytes)) == HDRT_OK &&
            (status = hdrt_copy_htod(queue, memory, pinned, 4096)) == HDRT_OK) {
            status = hdrt_host_free(device, pinned);
        }
        hdrt_queue_destroy(queue);
    }
    hdrt_device_close(device);
    return status;
}

/* On a device of its own each time, so that what only a first use does is met. */
START_TEST(first_uses_survive_every_failure)
{
    static const char *const entries[] = {"cuMemHostAlloc", "cuMemHostGetDevicePointer", "cuMemPoolCreate",
                                          "cuMemPoolSetAttribute", "cuStreamCreateWithPriority", "cuLaunchHostFunc",
                                          "cuStreamWaitValue64", "cuEventCreate", "cuMemFreeHost"};
    setup_device(); /* keeps the context, as another user of it would */
    for (size_t e = 0; e < sizeof entries / sizeof *entries; e++) {
        for (int nth = 1; nth <= 4; nth++) {
            char rule[64];
            snprintf(rule, sizeof rule, "%s:%d=999", entries[e], nth);
            inject(rule);
            unsigned long long before = calls_of(entries[e]);
            hdrt_status status = whole_life();
            bool reached = calls_of(entries[e]) - before >= (unsigned long long)nth;
            inject(NULL);
            ck_assert_msg(status <= 0 && status != HDRT_ERROR_DEVICE_LOST && status != HDRT_ERROR_INTERNAL, "%s: %s",
                          rule, hdrt_last_error());
            if (!reached) {
                break;
            }
        }
    }
    CK_OK(whole_life());
    teardown_device();
}
END_TEST

START_TEST(first_uses_survive_lack_of_memory)
{
    hdrt_status status = HDRT_OK;
    int failures = 0, bad = 0;
    setup_device();
    FAILING_MALLOC_EACH(n) {
        status = whole_life();
        failures += status == HDRT_ERROR_OUT_OF_MEMORY;
        bad += status > 0 || status == HDRT_ERROR_DEVICE_LOST || status == HDRT_ERROR_INTERNAL;
    }
    ck_assert_int_eq(bad, 0);
    CK_STATUS(status, HDRT_OK);
    ck_assert_int_ge(failures, 5);
    teardown_device();
}
END_TEST

START_TEST(threads_that_cannot_start)
{
    hdrt_queue *queue;
    setup_device();
    atomic_store(&no_threads, true);
    CK_STATUS(hdrt_queue_create(dev, NULL, &queue), HDRT_ERROR_OUT_OF_MEMORY); /* there is no dispatcher */
    CK_MESSAGE("hdrt-dispatch");
    ck_assert_ptr_null(hdrt_device_default_queue(dev));
    atomic_store(&no_threads, false);
    CK_OK(hdrt_queue_create(dev, NULL, &queue));
    atomic_store(&no_threads, true);
    CK_STATUS(hdrt_queue_host_call(queue, count_call, NULL), HDRT_ERROR_OUT_OF_MEMORY);
    CK_MESSAGE("hdrt-callback");
    CK_OK(hdrt_queue_error(queue));
    atomic_store(&no_threads, false);
    CK_OK(hdrt_queue_host_call(queue, count_call, NULL));
    CK_OK(hdrt_queue_synchronize(queue));
    ck_assert_int_eq(called, 1);
    hdrt_queue_destroy(queue);
    teardown_device();
}
END_TEST

static void wait_for_other(void *argument)
{
    hdrt_queue **queues = argument;
    hdrt_queue_host_call(queues[1], count_call, NULL);
    hdrt_event_wait(rt, hdrt_queue_record(queues[1]), 20000000);
    atomic_store(&no_threads, false);
}

START_TEST(no_second_callback_thread)
{
    setup_device();
    hdrt_queue *queues[2] = {make_queue("a"), make_queue("b")};
    CK_OK(hdrt_queue_host_call(queues[0], count_call, NULL));
    CK_OK(hdrt_queue_synchronize(queues[0]));
    atomic_store(&no_threads, true);
    CK_OK(hdrt_queue_host_call(queues[0], wait_for_other, queues));
    CK_OK(hdrt_queue_synchronize(queues[0])); /* by its time-out */
    CK_OK(hdrt_queue_synchronize(queues[1]));
    ck_assert_int_eq(called, 2);
    hdrt_queue_destroy(queues[0]);
    hdrt_queue_destroy(queues[1]);
    teardown_device();
}
END_TEST

START_TEST(runtimes_need_their_parts)
{
    hdrt_runtime *runtime = NULL;
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    CK_STATUS(hdrt_runtime_create(NULL, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    options.driver = HDRT_DRIVER_SOFT;
    options.libexec = "/nonexistent";
    CK_STATUS(hdrt_runtime_create(&options, &runtime), HDRT_ERROR_COMPANION);
    ck_assert_ptr_null(runtime);
    options.reserved[0] = 1;
    CK_STATUS(hdrt_runtime_create(&options, &runtime), HDRT_ERROR_INVALID_ARGUMENT);
    options = (hdrt_runtime_options)HDRT_RUNTIME_OPTIONS_INIT;
    options.driver = (hdrt_driver_kind)77;
    CK_STATUS(hdrt_runtime_create(&options, &runtime), HDRT_ERROR_INVALID_ARGUMENT);
    options.driver = HDRT_DRIVER_NONE;
    CK_OK(hdrt_runtime_create(&options, &runtime));
    hdrt_device *device;
    CK_STATUS(hdrt_device_open(runtime, 0, NULL, &device), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_null(hdrt_runtime_driver_symbol(runtime, "cuInit"));
    hdrt_runtime_destroy(runtime);
    hdrt_runtime_destroy(NULL);
    hdrt_device_close(NULL);
}
END_TEST

/* ---- foreign memory and contexts --------------------------------------------------------------------------------- */

typedef int (*alloc_call)(unsigned long long *, size_t);
typedef int (*host_alloc_call)(void **, size_t, unsigned);
typedef int (*free_call)(unsigned long long);
typedef int (*host_free_call)(void *);
typedef int (*push_call)(struct CUctx_st *);

static void find(void *pointer, const char *name)
{
    void *symbol = hdrt_runtime_driver_symbol(rt, name);
    ck_assert_msg(symbol != NULL, "%s", name);
    memcpy(pointer, &symbol, sizeof symbol);
}

START_TEST(memory_of_others_is_accepted)
{
    alloc_call alloc;
    host_alloc_call host_alloc;
    free_call free_device;
    host_free_call free_host;
    push_call push;
    unsigned long long foreign;
    void *foreign_host, *pinned;
    setup_device();
    find(&push, "cuCtxPushCurrent_v2");
    find(&alloc, "cuMemAlloc_v2");
    find(&free_device, "cuMemFree_v2");
    find(&host_alloc, "cuMemHostAlloc");
    find(&free_host, "cuMemFreeHost");
    ck_assert_int_eq(push(hdrt_device_context(dev)), 0);
    ck_assert_int_eq(alloc(&foreign, 1000), 0);
    ck_assert_int_eq(host_alloc(&foreign_host, 4096, 0), 0);
    CK_OK(hdrt_host_alloc(dev, 4096, &pinned));
    hdrt_queue *queue = make_queue("a");
    CK_OK(hdrt_fill(queue, foreign + 10, "f", 1, 990));
    CK_STATUS(hdrt_fill(queue, foreign + 10, "f", 1, 991), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_free(queue, foreign), HDRT_ERROR_INVALID_ARGUMENT);
    CK_OK(hdrt_copy_dtoh(queue, foreign_host, foreign + 10, 990));
    CK_OK(hdrt_queue_synchronize(queue));
    ck_assert_int_eq(((char *)foreign_host)[989], 'f');
    /* Pinned memory has a device address, its own; device memory is no host memory. */
    CK_OK(hdrt_copy_dtod(queue, (hdrt_ptr)(uintptr_t)pinned, foreign, 100));
    CK_STATUS(hdrt_copy_dtod(queue, (hdrt_ptr)(uintptr_t)pinned + 4000, foreign, 100), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_copy_dtoh(queue, (void *)(uintptr_t)foreign, foreign, 10), HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("is device memory");
    CK_OK(hdrt_queue_synchronize(queue));
    CK_OK(hdrt_host_free(dev, pinned));
    hdrt_queue_destroy(queue);
    ck_assert_int_eq(free_device(foreign), 0);
    ck_assert_int_eq(free_host(foreign_host), 0);
    teardown_device();
}
END_TEST

START_TEST(copies_and_launches_between_contexts)
{
    hdrt_device *own;
    hdrt_queue *there;
    hdrt_ptr far;
    unsigned char *back;
    hdrt_device_options options = HDRT_DEVICE_OPTIONS_INIT;
    setup_device();
    options.context_kind = HDRT_CONTEXT_OWN;
    CK_OK(hdrt_device_open(rt, 0, &options, &own));
    CK_OK(hdrt_queue_create(own, NULL, &there));
    hdrt_queue *here = make_queue("here");
    hdrt_ptr near = allocate(here, 64);
    CK_OK(hdrt_alloc(there, 64, &far));
    CK_OK(hdrt_fill(there, far, "p", 1, 64));
    CK_OK(hdrt_queue_wait(here, hdrt_queue_record(there)));
    CK_OK(hdrt_copy_dtod(here, near, far, 64));
    CK_OK(hdrt_host_alloc(dev, 64, (void **)&back));
    hdrt_region_side from = {.device = far, .row_pitch = 8}, to = {.device = near, .row_pitch = 8};
    CK_OK(hdrt_copy_region(here, &to, &from, 4, 8, 1));
    CK_OK(hdrt_copy_dtoh(here, back, near, 64));
    CK_OK(hdrt_queue_synchronize(here));
    ck_assert_int_eq(back[63], 'p');
    hdrt_module *module = load_kernels();
    CK_STATUS(hdrt_launch(there, kernel_of(module, "add"), hdrt_grid_1d(1, 1), HDRT_ARGS(far, 1u, 1u)),
              HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("kernel 'add' is of device");
    options.context_kind = HDRT_CONTEXT_ADOPTED;
    options.context = hdrt_device_context(own);
    hdrt_device *adopted;
    CK_OK(hdrt_device_open(rt, 0, &options, &adopted));
    hdrt_device_close(adopted);
    hdrt_module_destroy(module);
    CK_OK(hdrt_host_free(dev, back));
    hdrt_queue_destroy(there);
    hdrt_queue_destroy(here);
    hdrt_device_close(own);
    teardown_device();
}
END_TEST

/* ---- odds and ends ----------------------------------------------------------------------------------------------- */

START_TEST(many_queues_and_modules)
{
    enum { QUEUES = 70 };
    hdrt_queue *queues[QUEUES];
    setup_device();
    for (int i = 0; i < QUEUES; i++) {
        queues[i] = make_queue(NULL);
        CK_OK(hdrt_queue_host_call(queues[i], count_call, NULL));
    }
    CK_OK(hdrt_device_synchronize(dev));
    ck_assert_int_eq(called, QUEUES);
    hdrt_module *modules[3];
    hdrt_ptr memory = allocate(queues[0], 64);
    for (int i = 0; i < 3; i++) {
        modules[i] = load_kernels(); /* before the gate: loading may wait for what runs */
    }
    static gate g = GATE_INIT;
    gate_hold(&g, queues[0]);
    for (int i = 0; i < 9; i++) {
        CK_OK(hdrt_launch(queues[0], kernel_of(modules[i % 3], "add"), hdrt_grid_1d(1, 1), HDRT_ARGS(memory, 1u, 1u)));
    }
    for (int i = 0; i < 3; i++) {
        hdrt_module_destroy(modules[i]);
    }
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(queues[0]));
    for (int i = 0; i < QUEUES; i++) {
        hdrt_queue_destroy(queues[i]);
    }
    teardown_device();
}
END_TEST

START_TEST(many_launches_in_flight_are_told)
{
    static gate g = GATE_INIT;
    setup_device();
    hdrt_queue *queue = make_inline_queue("a"), *other = make_inline_queue("b");
    hdrt_module *module = load_kernels();
    hdrt_ptr memory = allocate(queue, 64);
    gate_hold(&g, queue);
    for (unsigned i = 0; i < 40; i++) {
        CK_OK(hdrt_launch(queue, kernel_of(module, "add"), hdrt_grid_1d(1, 1), HDRT_ARGS(memory, 1u, i)));
        CK_OK(hdrt_launch(other, kernel_of(module, "stamp"), hdrt_grid_1d(1, 1), HDRT_ARGS(memory, i)));
    }
    inject("cuMemsetD8Async:1=719");
    CK_STATUS(hdrt_fill(other, memory, "x", 1, 64), HDRT_ERROR_DEVICE_LOST);
    CK_MESSAGE("earlier ones, then add");
    gate_open(&g);
    hdrt_module_destroy(module);
    hdrt_queue_destroy(queue);
    hdrt_queue_destroy(other);
    teardown_device();
}
END_TEST

START_TEST(freeing_that_fails)
{
    setup_device();
    hdrt_queue *queue = make_inline_queue("a");
    hdrt_ptr memory = allocate(queue, 64);
    inject("cuMemsetD8Async:1=999");
    CK_STATUS(hdrt_fill(queue, memory, "x", 1, 64), HDRT_ERROR_QUEUE_FAILED);
    unsigned long long frees = calls_of("cuMemFree");
    inject("cuMemFree:1=999");
    CK_OK(hdrt_free(queue, memory)); /* the queue has failed: freed by itself, and a failure of that is for the log */
    for (int i = 0; i < 2000 && calls_of("cuMemFree") == frees; i++) {
        CK_STATUS(hdrt_device_synchronize(dev), HDRT_ERROR_QUEUE_FAILED);
    }
    ck_assert_uint_eq(calls_of("cuMemFree"), frees + 1);
    CK_STATUS(hdrt_free(queue, memory), HDRT_ERROR_INVALID_ARGUMENT);
    CK_OK(hdrt_queue_clear_error(queue));
    memory = allocate(queue, 64);
    inject("cuMemFreeAsync:1=999");
    CK_STATUS(hdrt_free(queue, memory), HDRT_ERROR_QUEUE_FAILED); /* which frees it later, in the same way */
    for (int i = 0; i < 2000 && calls_of("cuMemFree") == frees + 1; i++) {
        CK_STATUS(hdrt_device_synchronize(dev), HDRT_ERROR_QUEUE_FAILED);
    }
    ck_assert_uint_eq(calls_of("cuMemFree"), frees + 2);
    CK_OK(hdrt_queue_clear_error(queue));
    memory = allocate(queue, 64);
    inject("cuCtxPushCurrent:1=700");
    hdrt_fill(queue, memory, "x", 1, 64);
    CK_STATUS(hdrt_queue_synchronize(queue), HDRT_ERROR_DEVICE_LOST);
    CK_OK(hdrt_free(queue, memory)); /* went with the device */
    hdrt_queue_destroy(queue);
    teardown_device();
}
END_TEST

START_TEST(deferred_work_that_fails)
{
    static gate g = GATE_INIT;
    setup_device();
    hdrt_device *plain;
    hdrt_queue *queue;
    hdrt_ptr memory;
    CK_OK(hdrt_device_open(rt, 0, NULL, &plain));
    inject("cuMemPoolCreate:1=801");
    CK_OK(hdrt_queue_create(plain, NULL, &queue));
    CK_OK(hdrt_alloc(queue, 64, &memory));
    inject("cuMemFree:1=999");
    unsigned long long frees = calls_of("cuMemFree");
    CK_OK(hdrt_free(queue, memory)); /* the failure is only for the log */
    CK_OK(hdrt_queue_synchronize(queue));
    ck_assert_uint_eq(calls_of("cuMemFree"), frees + 1);
    inject(NULL);

    unsigned char *own = aligned_alloc(4096, 8192);
    CK_OK(hdrt_host_register(plain, own, 8192));
    CK_OK(hdrt_alloc(queue, 8192, &memory));
    CK_STATUS(hdrt_host_register(plain, own + 4096, 4096), HDRT_ERROR_INVALID_ARGUMENT);
    gate_hold(&g, queue);
    CK_OK(hdrt_copy_htod(queue, memory, own, 8192));
    inject("cuEventQuery:*=999;cuStreamQuery:*=999");
    CK_STATUS(hdrt_host_unregister(plain, own), HDRT_ERROR_DRIVER); /* it may still be in use: it stays */
    inject(NULL);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, open_soon, &g), 0);
    CK_OK(hdrt_host_unregister(plain, own));
    pthread_join(thread, NULL);
    CK_OK(hdrt_host_register(plain, own, 8192)); /* left to the device's end */
    hdrt_queue_destroy(queue);
    hdrt_device_close(plain);
    hdrt_status status = HDRT_ERROR_INVALID_ARGUMENT; /* so it will be given up, by whichever thread lets go last */
    for (int i = 0; i < 2000 && status == HDRT_ERROR_INVALID_ARGUMENT; i++) {
        status = hdrt_host_register(dev, own, 8192);
        usleep(status == HDRT_OK ? 0 : 1000);
    }
    CK_OK(status);
    CK_OK(hdrt_host_unregister(dev, own));
    free(own);
    teardown_device();
}
END_TEST

START_TEST(asking_without_marks)
{
    static gate g = GATE_INIT;
    setup_device();
    hdrt_queue *queue = make_inline_queue("a"), *other;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.submission = HDRT_SUBMISSION_INLINE;
    options.exclusive = true; /* it would else join the other's stream */
    CK_OK(hdrt_queue_create(dev, &options, &other));
    hdrt_ptr memory = allocate(queue, 64);
    gate_hold(&g, queue);
    CK_OK(hdrt_fill(queue, memory, "x", 1, 64));
    hdrt_event first = hdrt_queue_record(queue);
    CK_STATUS(hdrt_event_query(rt, first), HDRT_NOT_READY); /* has a mark now */
    inject("cuEventRecord:*=999");
    CK_OK(hdrt_fill(queue, memory, "y", 1, 64));
    hdrt_event second = hdrt_queue_record(queue);
    CK_STATUS(hdrt_event_query(rt, second), HDRT_NOT_READY); /* by asking the stream */
    CK_OK(hdrt_queue_wait(other, second));
    CK_STATUS(hdrt_fill(other, memory, "z", 1, 64), HDRT_ERROR_QUEUE_FAILED); /* nothing the GPU could wait for */
    CK_MESSAGE("marking stream");
    gate_open(&g);
    CK_OK(hdrt_event_wait(rt, second, HDRT_FOREVER));
    CK_OK(hdrt_event_query(rt, first));
    inject(NULL);
    CK_OK(hdrt_queue_clear_error(other));
    hdrt_queue_destroy(queue);
    hdrt_queue_destroy(other);
    teardown_device();
}
END_TEST

START_TEST(full_rings_and_failing_calls)
{
    static gate g = GATE_INIT;
    hdrt_queue *queue, *own;
    struct CUstream_st *stream;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    setup_device();
    hdrt_ptr memory = allocate(hdrt_device_default_queue(dev), 64);
    options.ring_limit = 3;
    options.back_pressure = HDRT_BACK_PRESSURE_WOULD_BLOCK;
    options.submission = HDRT_SUBMISSION_INLINE;
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    struct CUevent_st *event = (struct CUevent_st *)&g; /* never reached */
    hdrt_timer *timer;
    CK_OK(hdrt_timer_create(dev, &timer));
    gate_hold(&g, queue);
    CK_OK(hdrt_queue_host_call(queue, count_call, NULL));
    CK_STATUS(hdrt_queue_record_cuda_event(queue, event), HDRT_WOULD_BLOCK); /* the host call is not over */
    CK_OK(hdrt_fill(queue, memory, "x", 1, 64)); /* the third position */
    CK_STATUS(hdrt_write(queue, memory, "abc", 3), HDRT_WOULD_BLOCK);
    CK_STATUS(hdrt_queue_wait_cuda_event(queue, event), HDRT_WOULD_BLOCK);
    CK_STATUS(hdrt_queue_record_cuda_event(queue, event), HDRT_WOULD_BLOCK);
    CK_STATUS(hdrt_queue_timestamp(queue, timer), HDRT_WOULD_BLOCK);
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(queue));
    ck_assert_int_eq(called, 1);
    inject("cuStreamWaitEvent:1=999");
    CK_STATUS(hdrt_queue_wait_cuda_event(queue, event), HDRT_ERROR_DRIVER); /* nothing was enqueued */
    CK_OK(hdrt_queue_error(queue));
    inject("cuEventRecord:1=999");
    CK_STATUS(hdrt_queue_record_cuda_event(queue, event), HDRT_ERROR_QUEUE_FAILED);
    CK_OK(hdrt_queue_clear_error(queue));
    inject("cuMemcpyHtoDAsync:1=999");
    CK_STATUS(hdrt_write(queue, memory, "abc", 3), HDRT_ERROR_QUEUE_FAILED);
    CK_OK(hdrt_queue_clear_error(queue));
    CK_OK(hdrt_queue_synchronize(queue));
    /* Host calls in a stream of which the caller knows. */
    options.exclusive = true;
    CK_OK(hdrt_queue_create(dev, &options, &own));
    CK_OK(hdrt_queue_stream(own, &stream));
    inject("cuLaunchHostFunc:1=999");
    CK_STATUS(hdrt_queue_host_call(own, count_call, NULL), HDRT_ERROR_QUEUE_FAILED);
    CK_OK(hdrt_queue_clear_error(own));
    inject("cuStreamWaitValue64_v2:1=999");
    CK_STATUS(hdrt_queue_host_call(own, count_call, NULL), HDRT_ERROR_QUEUE_FAILED);
    CK_OK(hdrt_queue_clear_error(own));
    CK_OK(hdrt_queue_host_call(own, count_call, NULL));
    CK_OK(hdrt_queue_synchronize(own));
    ck_assert_int_eq(called, 2);
    hdrt_queue_destroy(own);
    hdrt_timer_destroy(timer);
    hdrt_queue_destroy(queue);
    teardown_device();
}
END_TEST

START_TEST(marks_that_are_not_needed_or_not_had)
{
    static gate g = GATE_INIT;
    setup_device();
    hdrt_queue *queue = make_queue("a");
    hdrt_ptr memory = allocate(queue, 64);
    gate_hold(&g, queue);
    CK_OK(hdrt_fill(queue, memory, "x", 1, 64));
    CK_STATUS(hdrt_event_query(rt, hdrt_queue_record(queue)), HDRT_NOT_READY);
    usleep(20000); /* the dispatcher has asked for all that is in flight, and so marked it */
    unsigned long long records = calls_of("cuEventRecord");
    CK_OK(hdrt_fill(queue, memory, "x", 1, 0)); /* a position without a command needs no mark of its own */
    hdrt_event event = hdrt_queue_record(queue);
    CK_STATUS(hdrt_event_query(rt, event), HDRT_NOT_READY);
    CK_OK(hdrt_fill(queue, memory, "x", 1, 0));
    hdrt_queue_record(queue);
    CK_OK(hdrt_queue_host_call(queue, count_call, NULL));
    ck_assert_uint_eq(calls_of("cuEventRecord"), records);
    inject("cuEventRecord:*=999");
    for (int i = 0; i < 200; i++) { /* marks by count are only tried */
        CK_OK(hdrt_fill(queue, memory, "x", 1, 64));
    }
    inject(NULL);
    gate_open(&g);
    CK_OK(hdrt_event_wait(rt, event, HDRT_FOREVER));
    CK_OK(hdrt_queue_synchronize(queue));
    hdrt_queue_destroy(queue);
    teardown_device();
}
END_TEST

START_TEST(freeing_pinned_memory_without_memory)
{
    static gate g = GATE_INIT;
    enum { QUEUES = 4 };
    hdrt_queue *queues[QUEUES];
    void *pinned;
    setup_device();
    hdrt_module *module = load_kernels();
    CK_OK(hdrt_host_alloc(dev, 4096, &pinned));
    hdrt_queue *first = make_queue("first");
    hdrt_ptr memory = allocate(first, 64);
    gate_hold(&g, first);
    for (int i = 0; i < QUEUES; i++) {
        queues[i] = make_queue(NULL);
        CK_OK(hdrt_queue_wait(queues[i], hdrt_queue_record(first)));
        CK_OK(hdrt_launch(queues[i], kernel_of(module, "stamp"), hdrt_grid_1d(1, 1), HDRT_ARGS(memory, 1u)));
    }
    failing_malloc_arm(1);
    hdrt_status status = hdrt_host_free(dev, pinned); /* any of these launches may use it */
    failing_malloc_disarm();
    CK_STATUS(status, HDRT_ERROR_OUT_OF_MEMORY);
    unsigned long long frees = calls_of("cuMemFreeHost");
    CK_OK(hdrt_host_free(dev, pinned));
    ck_assert_uint_eq(calls_of("cuMemFreeHost"), frees);
    gate_open(&g);
    CK_OK(hdrt_device_synchronize(dev));
    for (int i = 0; i < 2000 && calls_of("cuMemFreeHost") == frees; i++) {
        usleep(1000);
    }
    ck_assert_uint_eq(calls_of("cuMemFreeHost"), frees + 1);
    for (int i = 0; i < QUEUES; i++) {
        hdrt_queue_destroy(queues[i]);
    }
    hdrt_module_destroy(module);
    hdrt_queue_destroy(first);
    teardown_device();
}
END_TEST

START_TEST(ranges_do_not_overlap)
{
    hdrt__place place;
    setup_device();
    hdrt_queue *queue = make_queue("a"); /* makes the device's memory, which takes the ranges out at its end */
    CK_OK(hdrt__registry_add(dev, HDRT__RANGE_SYMBOL, 0x1000, 0x100));
    CK_STATUS(hdrt__registry_add(dev, HDRT__RANGE_SYMBOL, 0x10ff, 1), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt__registry_add(dev, HDRT__RANGE_SYMBOL, 0xfff, 2), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt__registry_add(dev, HDRT__RANGE_SYMBOL, 0x800, 0x1000), HDRT_ERROR_INVALID_ARGUMENT);
    CK_OK(hdrt__registry_add(dev, HDRT__RANGE_SYMBOL, 0x1100, 1));
    CK_OK(hdrt__registry_add(dev, HDRT__RANGE_PINNED, 0x1000, 0x100)); /* host addresses are others */
    ck_assert(!hdrt__registry_find(rt, false, 0xfff, &place));
    ck_assert(hdrt__registry_find(rt, false, 0x10ff, &place));
    ck_assert_uint_eq(place.address, 0x1000);
    ck_assert(hdrt__registry_find(rt, false, 0x1100, &place));
    ck_assert(!hdrt__registry_find(rt, false, 0x1101, &place));
    ck_assert_ptr_null(hdrt__registry_take(dev, HDRT__RANGE_ALLOCATED, 0x1000));
    ck_assert_ptr_null(hdrt__registry_take(dev, HDRT__RANGE_SYMBOL, 0x1001));
    hdrt__range_free(hdrt__registry_take(dev, HDRT__RANGE_PINNED, 0x1000));
    /* Many, in an order that is none, against a plain list. */
    enum { COUNT = 2000 };
    for (unsigned i = 0; i < COUNT; i++) {
        unsigned slot = i * 769 % COUNT;
        CK_OK(hdrt__registry_add(dev, HDRT__RANGE_SYMBOL, 0x100000 + slot * 64, 1 + slot % 64));
    }
    for (unsigned i = 0; i < COUNT; i += 3) {
        hdrt__range *range = hdrt__registry_take(dev, HDRT__RANGE_SYMBOL, 0x100000 + i * 64);
        ck_assert_ptr_nonnull(range);
        hdrt__range_free(range);
    }
    for (unsigned i = 0; i < COUNT * 64; i++) {
        unsigned slot = i / 64;
        bool expected = slot % 3 && i % 64 < 1 + slot % 64;
        ck_assert_int_eq(hdrt__registry_find(rt, false, 0x100000 + i, &place), expected);
    }
    hdrt_queue_destroy(queue);
    teardown_device(); /* takes the rest out */
}
END_TEST

START_TEST(pinned_memory_ends_with_its_device)
{
    void *pinned;
    rt = make_runtime();
    CK_OK(hdrt_device_open(rt, 0, NULL, &dev));
    CK_OK(hdrt_host_alloc(dev, 4096, &pinned)); /* no queue, and never freed by the caller */
    unsigned long long frees = calls_of("cuMemFreeHost");
    hdrt_device_close(dev);
    ck_assert_uint_eq(calls_of("cuMemFreeHost"), frees + 1);
    hdrt_runtime_destroy(rt);
}
END_TEST

START_TEST(two_devices)
{
    static gate g = GATE_INIT;
    setenv("HDSOFT_DEVICES", "2", 1);
    setup_device();
    hdrt_device *second, *wrong;
    hdrt_device_options options = HDRT_DEVICE_OPTIONS_INIT;
    CK_OK(hdrt_device_open(rt, 1, NULL, &second));
    options.context_kind = HDRT_CONTEXT_ADOPTED;
    options.context = hdrt_device_context(second);
    CK_STATUS(hdrt_device_open(rt, 0, &options, &wrong), HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("is of device 1, not of device 0");
    hdrt_queue *here = make_inline_queue("here"), *there;
    hdrt_queue_options inlined = HDRT_QUEUE_OPTIONS_INIT;
    inlined.submission = HDRT_SUBMISSION_INLINE;
    CK_OK(hdrt_queue_create(second, &inlined, &there));
    hdrt_ptr near = allocate(here, 4096), far = allocate(there, 4096);
    unsigned char *back;
    CK_OK(hdrt_host_alloc(dev, 4096, (void **)&back));
    gate_hold(&g, here);
    CK_OK(hdrt_fill(here, near, "2", 1, 4096));
    CK_OK(hdrt_queue_wait(there, hdrt_queue_record(here)));
    CK_OK(hdrt_copy_dtod(there, far, near, 4096));
    CK_OK(hdrt_copy_dtoh(there, back, far, 4096)); /* pinned by the other device */
    CK_STATUS(hdrt_event_wait(rt, hdrt_queue_record(there), 2000000), HDRT_TIMEOUT);
    CK_OK(hdrt_host_free(dev, back)); /* stays while the other device uses it */
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(there));
    CK_STATUS(hdrt_free(here, far), HDRT_ERROR_INVALID_ARGUMENT);
    /* A lost device fails whoever waits for it, and nobody else. */
    CK_OK(hdrt_host_alloc(second, 4096, (void **)&back));
    static gate h = GATE_INIT;
    gate_hold(&h, here);
    hdrt_event event = hdrt_queue_record(here);
    inject("cuMemsetD8Async:1=700");
    CK_STATUS(hdrt_fill(here, near, "2", 1, 4096), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_event_query(rt, event), HDRT_ERROR_DEVICE_LOST);
    CK_STATUS(hdrt_queue_wait(there, event), HDRT_ERROR_EVENT_FAILED);
    CK_MESSAGE("is lost");
    CK_STATUS(hdrt_event_query(rt, hdrt_queue_record(there)), HDRT_ERROR_EVENT_FAILED);
    CK_OK(hdrt_queue_clear_error(there));
    CK_OK(hdrt_copy_dtoh(there, back, far, 4096));
    CK_OK(hdrt_queue_synchronize(there));
    ck_assert_int_eq(back[4095], '2');
    gate_open(&h);
    CK_OK(hdrt_host_free(second, back));
    hdrt_queue_destroy(here);
    hdrt_queue_destroy(there);
    hdrt_device_close(second);
    teardown_device();
}
END_TEST

START_TEST(a_forked_child_enters_no_device)
{
    setup_device();
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        hdrt__scope scope;
        child_exit(hdrt__device_enter(dev, &scope) == HDRT_ERROR_FORKED ? 0 : 1);
    }
    int result;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_int_eq(result, 0);
    teardown_device();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("branches");
    TCase *tcase = tcase_create("branches"), *soft = tcase_create("soft");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, memory_of_others_is_accepted);
    tcase_add_test(tcase, copies_and_launches_between_contexts);
    tcase_add_test(tcase, many_queues_and_modules);
    tcase_add_test(tcase, ranges_do_not_overlap);
    tcase_add_test(tcase, a_forked_child_enters_no_device);
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(soft, 60);
    tcase_add_loop_test(soft, host_calls_on_any_driver, 0, 3);
    tcase_add_test(soft, a_fault_while_a_notification_stands);
    tcase_add_test(soft, no_cooperative_launches);
    tcase_add_test(soft, first_uses_survive_every_failure);
    tcase_add_test(soft, first_uses_survive_lack_of_memory);
    tcase_add_test(soft, threads_that_cannot_start);
    tcase_add_test(soft, no_second_callback_thread);
    tcase_add_test(soft, runtimes_need_their_parts);
    tcase_add_test(soft, many_launches_in_flight_are_told);
    tcase_add_test(soft, freeing_that_fails);
    tcase_add_test(soft, deferred_work_that_fails);
    tcase_add_test(soft, asking_without_marks);
    tcase_add_test(soft, full_rings_and_failing_calls);
    tcase_add_test(soft, marks_that_are_not_needed_or_not_had);
    tcase_add_test(soft, freeing_pinned_memory_without_memory);
    tcase_add_test(soft, pinned_memory_ends_with_its_device);
    tcase_add_test(soft, two_devices);
    add_soft_tcase(suite, soft, "rare branches");
    return run_suite(suite);
}
