/* SPDX-License-Identifier: MIT */
/* The error model everywhere: each driver call and each allocation fails in turn under every public function. */
#include "device_fixture.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include "child.h"
#include "failing_malloc.h"

static hdrt_queue *a, *b;

static void call_nothing(void *argument)
{
    (void)argument;
}

static void setup(void)
{
    setup_device();
    a = make_queue("a");
    b = make_queue("b");
}

static void teardown(void)
{
    inject(NULL);
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
        status = hdrt_queue_host_call(queue, call_nothing, NULL);
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

int main(void)
{
    Suite *suite = suite_create("errors in turn");
    TCase *injected = tcase_create("injected"), *faults = tcase_create("faults");
    tcase_add_checked_fixture(injected, setup, teardown);
    tcase_set_timeout(injected, 120);
    tcase_add_loop_test(injected, every_driver_call_may_fail, 0, ACTIONS);
    tcase_add_loop_test(injected, every_allocation_may_fail, 0, ACTIONS);
    add_soft_tcase(suite, injected, "injected failures");
    tcase_set_timeout(faults, 300);
    tcase_add_loop_test(faults, every_driver_call_may_fault, 0, ACTIONS - 1); /* the last has no device */
    add_soft_tcase(suite, faults, "injected faults");
    return run_suite(suite);
}
