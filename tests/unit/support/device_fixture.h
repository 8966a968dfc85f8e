/* SPDX-License-Identifier: MIT */
/*
 * A runtime and a device for tests that run on the soft driver, or on NVIDIA's with HDRT_TEST_DRIVER=cuda. The driver
 * lives in each test's own process: use setup_device and teardown_device as a checked fixture.
 */
#ifndef TEST_DEVICE_FIXTURE_H
#define TEST_DEVICE_FIXTURE_H

#include <hdrt.h>
#include <hdrt/interop.h>

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static hdrt_runtime *rt;
static hdrt_device *dev;

static inline bool on_cuda(void)
{
    const char *driver = getenv("HDRT_TEST_DRIVER");
    return driver && strcmp(driver, "cuda") == 0;
}

#define CK_OK(call)                                                                                                    \
    do {                                                                                                               \
        hdrt_status ok_status_ = (call);                                                                               \
        ck_assert_msg(ok_status_ == HDRT_OK, "%s: %s: %s", #call, hdrt_status_name(ok_status_), hdrt_last_error());    \
    } while (0)

#define CK_STATUS(call, expected)                                                                                      \
    do {                                                                                                               \
        hdrt_status is_status_ = (call);                                                                               \
        ck_assert_msg(is_status_ == (expected), "%s: %s, expected %s: %s", #call, hdrt_status_name(is_status_),        \
                      hdrt_status_name(expected), hdrt_last_error());                                                  \
    } while (0)

#define CK_MESSAGE(words)                                                                                              \
    ck_assert_msg(strstr(hdrt_last_error(), words) != NULL, "'%s' is not in: %s", words, hdrt_last_error())

static inline hdrt_runtime *make_runtime(void)
{
    hdrt_runtime *runtime = NULL;
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    options.driver = on_cuda() ? HDRT_DRIVER_CUDA : HDRT_DRIVER_SOFT;
    options.cache_dir = "";
    CK_OK(hdrt_runtime_create(&options, &runtime));
    return runtime;
}

static inline void setup_device(void)
{
    rt = make_runtime();
    CK_OK(hdrt_device_open(rt, 0, NULL, &dev));
}

static inline void teardown_device(void)
{
    hdrt_device_close(dev);
    hdrt_runtime_destroy(rt);
}

static inline hdrt_queue *make_queue(const char *name)
{
    hdrt_queue *queue;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.name = name;
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    return queue;
}

/* For how many milliseconds a test waits for what must come; not long where it may well never come (sweep.c). */
static inline int patience_ms(void)
{
    return getenv("HDRT_SWEEP") ? 200 : 5000;
}

/* One whose operations are handed over, and fail, during the call. */
static inline hdrt_queue *make_inline_queue(const char *name)
{
    hdrt_queue *queue;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.name = name;
    options.submission = HDRT_SUBMISSION_INLINE;
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    return queue;
}

/* ---- a gate: what keeps a queue's stream standing still until it is opened --------------------------------------- */

/* Static in each test: its host function may be on its way out when the test has ended. */

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool entered, open;
} gate;

#define GATE_INIT {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false}

static inline struct timespec moment_in(long milliseconds)
{
    struct timespec moment;
    clock_gettime(CLOCK_REALTIME, &moment);
    moment.tv_sec += milliseconds / 1000;
    moment.tv_nsec += milliseconds % 1000 * 1000000;
    if (moment.tv_nsec >= 1000000000) {
        moment.tv_nsec -= 1000000000;
        moment.tv_sec++;
    }
    return moment;
}

/* A sweep's gate opens by itself: after a failure a call may wait that else would not, and the test with it. */
static inline void gate_wait(void *argument)
{
    gate *g = argument;
    struct timespec last = moment_in(getenv("HDRT_SWEEP") ? 500 : 3600000);
    pthread_mutex_lock(&g->lock);
    g->entered = true;
    pthread_cond_broadcast(&g->changed);
    while (!g->open && pthread_cond_timedwait(&g->changed, &g->lock, &last) != ETIMEDOUT) {
    }
    pthread_mutex_unlock(&g->lock);
}

static inline void gate_open(gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

/*
 * Let a queue stand at a gate: a host call in a stream that the caller may use too is made in that stream, which waits
 * for it, and the queue waits for the stream. What is enqueued behind it is handed to the driver, and not done.
 */
static inline void gate_hold(gate *g, hdrt_queue *queue)
{
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    hdrt_queue *keeper;
    struct CUstream_st *stream;
    options.exclusive = true;
    options.name = "keeper";
    CK_OK(hdrt_queue_create(hdrt_queue_device(queue), &options, &keeper));
    CK_OK(hdrt_queue_stream(keeper, &stream));
    CK_OK(hdrt_queue_host_call(keeper, gate_wait, g));
    hdrt_event event = hdrt_queue_record(keeper);
    hdrt_event_query(rt, event); /* asks the driver, for which a lazy one may wait */
    pthread_mutex_lock(&g->lock);
    while (!g->entered) {
        struct timespec moment = moment_in(1);
        pthread_cond_timedwait(&g->changed, &g->lock, &moment);
        pthread_mutex_unlock(&g->lock);
        hdrt_status status = hdrt_event_query(rt, event);
        ck_assert_msg(status == HDRT_NOT_READY || status == HDRT_OK, "the gate is never reached: %s",
                      hdrt_status_name(status));
        pthread_mutex_lock(&g->lock);
    }
    pthread_mutex_unlock(&g->lock);
    CK_OK(hdrt_queue_wait(queue, event));
    hdrt_queue_destroy(keeper);
}

/* The same where the host call itself is to be the queue's. */
static inline void gate_close(gate *g, hdrt_queue *queue)
{
    CK_OK(hdrt_queue_host_call(queue, gate_wait, g));
}

/* ---- failures on request, on the soft driver only ---------------------------------------------------------------- */

typedef int (*inject_function)(const char *rules);
typedef unsigned long long (*count_function)(const char *name);

static inline void inject(const char *rules)
{
    inject_function function;
    void *symbol = hdrt_runtime_driver_symbol(rt, "hdsoft_inject");
    ck_assert_ptr_nonnull(symbol);
    memcpy(&function, &symbol, sizeof function);
    ck_assert_int_eq(function(rules), 0);
}

/* How often a driver call was made, by its name. */
static inline unsigned long long calls_of(const char *name)
{
    count_function function;
    void *symbol = hdrt_runtime_driver_symbol(rt, "hdsoft_call_count");
    ck_assert_ptr_nonnull(symbol);
    memcpy(&function, &symbol, sizeof function);
    return function(name);
}

/* How often all the calls were made that a lost device must see no more. */
static inline unsigned long long all_calls(void)
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

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/*
 * add(unsigned *p, unsigned n, unsigned v): p[i] += v for i < n.   stamp(unsigned *p, unsigned v): *p = v.
 * fault(): a trap.   Hand-written.
 */
static const char test_ptx[] =
    ".version 7.4\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 4 .u32 counter;\n"
    ".visible .entry add(.param .u64 p, .param .u32 n, .param .u32 v)\n{\n"
    " .reg .pred %q;\n .reg .b32 %r<8>;\n .reg .b64 %d<4>;\n"
    " ld.param.u64 %d1, [p];\n ld.param.u32 %r1, [n];\n ld.param.u32 %r2, [v];\n"
    " cvta.to.global.u64 %d1, %d1;\n"
    " mov.u32 %r3, %ctaid.x;\n mov.u32 %r4, %ntid.x;\n mov.u32 %r5, %tid.x;\n"
    " mad.lo.s32 %r6, %r3, %r4, %r5;\n setp.ge.u32 %q, %r6, %r1;\n @%q bra DONE;\n"
    " mul.wide.u32 %d2, %r6, 4;\n add.s64 %d3, %d1, %d2;\n"
    " ld.global.u32 %r7, [%d3];\n add.s32 %r7, %r7, %r2;\n st.global.u32 [%d3], %r7;\n"
    "DONE:\n ret;\n}\n"
    ".visible .entry stamp(.param .u64 p, .param .u32 v)\n{\n"
    " .reg .b32 %r<2>;\n .reg .b64 %d<2>;\n"
    " ld.param.u64 %d1, [p];\n ld.param.u32 %r1, [v];\n cvta.to.global.u64 %d1, %d1;\n st.global.u32 [%d1], %r1;\n"
    " ret;\n}\n"
    ".visible .entry fault()\n{\n trap;\n ret;\n}\n";

static inline hdrt_module *load_kernels(void)
{
    hdrt_module *module;
    CK_OK(hdrt_module_load(dev, test_ptx, sizeof test_ptx - 1, NULL, &module));
    return module;
}

static inline hdrt_kernel *kernel_of(hdrt_module *module, const char *name)
{
    hdrt_kernel *kernel;
    CK_OK(hdrt_module_kernel(module, name, &kernel));
    return kernel;
}

/* spin(unsigned *p): until *p is not 0. */
static inline hdrt_module *load_spin(hdrt_kernel **spin)
{
    static const char text[] =
        ".version 7.4\n.target sm_75\n.address_size 64\n.visible .entry spin(.param .u64 p)\n{\n .reg .pred %q;\n"
        " .reg .b32 %r<2>;\n .reg .b64 %d<2>;\n ld.param.u64 %d1, [p];\n cvta.to.global.u64 %d1, %d1;\nAGAIN:\n"
        " ld.volatile.global.u32 %r1, [%d1];\n setp.eq.u32 %q, %r1, 0;\n @%q bra AGAIN;\n ret;\n}\n";
    hdrt_module *loaded;
    CK_OK(hdrt_module_load(dev, text, sizeof text - 1, NULL, &loaded));
    *spin = kernel_of(loaded, "spin");
    return loaded;
}

/*
 * Two kernels that write how many blocks a cluster has, (unsigned *p): single 1, and pair, which is in clusters, 2; but on
 * the soft driver, which has no clusters, both 1, and whoever tests must say himself that pair is in some.
 */
static inline hdrt_module *load_clusters(hdrt_kernel **single, hdrt_kernel **pair)
{
    static const char body[] = "{\n .reg .b32 %r;\n .reg .b64 %d;\n ld.param.u64 %d, [p];\n cvta.to.global.u64 %d, %d;\n"
                               " mov.u32 %r, %cluster_nctaid.x;\n st.global.u32 [%d], %r;\n ret;\n}\n";
    char text[1200];
    hdrt_module *loaded;
    int size = snprintf(text, sizeof text,
                        ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry single(.param .u64 p)\n%s"
                        ".visible .entry pair(.param .u64 p) %s\n%s",
                        body, on_cuda() ? ".explicitcluster .reqnctapercluster 2, 1, 1" : "", body);
    CK_OK(hdrt_module_load(dev, text, (size_t)size, NULL, &loaded));
    *single = kernel_of(loaded, "single");
    *pair = kernel_of(loaded, "pair");
    return loaded;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}

/* Add the tests only where failures can be injected; elsewhere say so. */
static inline void add_soft_tcase(Suite *suite, TCase *tcase, const char *name)
{
    if (on_cuda()) {
        printf("# SKIP %s: failures are injected on the soft driver only\n", name);
        fflush(stdout);
    } else {
        suite_add_tcase(suite, tcase);
    }
}

#endif
