/* SPDX-License-Identifier: MIT */
/* Objects end in any order, from any thread, at any moment; forked children and exits. */
#include "device_fixture.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "child.h"

static atomic_int called;

static void count_call(void *argument)
{
    (void)argument;
    atomic_fetch_add(&called, 1);
}

/* ---- any order --------------------------------------------------------------------------------------------------- */

enum { OBJECTS = 6 };

typedef struct objects {
    hdrt_runtime *runtime;
    hdrt_device *device;
    hdrt_queue *queue;
    hdrt_module *module;
    hdrt_timer *timer;
    hdrt_timeline *timeline;
} objects;

static void destroy_one(objects *o, int which)
{
    switch (which) {
    case 0:
        hdrt_runtime_destroy(o->runtime);
        break;
    case 1:
        hdrt_device_close(o->device);
        break;
    case 2:
        hdrt_queue_destroy(o->queue);
        break;
    case 3:
        hdrt_module_destroy(o->module);
        break;
    case 4:
        hdrt_timer_destroy(o->timer);
        break;
    default:
        hdrt_timeline_destroy(o->timeline);
        break;
    }
}

/* The index-th permutation. */
static void permute(int index, int order[OBJECTS])
{
    int left[OBJECTS] = {0, 1, 2, 3, 4, 5}, count = OBJECTS;
    for (int i = 0; i < OBJECTS; i++) {
        int pick = index % count;
        index /= count;
        order[i] = left[pick];
        memmove(&left[pick], &left[pick + 1], (size_t)(count - pick - 1) * sizeof *left);
        count--;
    }
}

static void one_life(const int order[OBJECTS], bool busy)
{
    objects o;
    static gate g = GATE_INIT;
    hdrt_ptr memory;
    unsigned char *pinned;
    g.entered = g.open = false;
    o.runtime = rt = make_runtime();
    CK_OK(hdrt_device_open(rt, 0, NULL, &o.device));
    dev = o.device;
    o.queue = make_queue("living");
    o.module = load_kernels();
    CK_OK(hdrt_timer_create(dev, &o.timer));
    CK_OK(hdrt_timeline_create(rt, &o.timeline));
    CK_OK(hdrt_alloc(o.queue, 4096, &memory)); /* never freed by the caller */
    CK_OK(hdrt_host_alloc(dev, 4096, (void **)&pinned));
    CK_OK(hdrt_queue_synchronize(o.queue));
    if (busy) {
        gate_hold(&g, o.queue);
    }
    CK_OK(hdrt_launch(o.queue, kernel_of(o.module, "add"), hdrt_grid_1d(16, 16), HDRT_ARGS(memory, 16u, 1u)));
    CK_OK(hdrt_queue_timestamp(o.queue, o.timer));
    CK_OK(hdrt_copy_dtoh(o.queue, pinned, memory, 64));
    CK_OK(hdrt_host_free(dev, pinned));
    int before = called;
    CK_OK(hdrt_queue_host_call(o.queue, count_call, NULL));
    for (int i = 0; i < OBJECTS; i++) {
        destroy_one(&o, order[i]);
    }
    if (busy) {
        ck_assert_int_eq(called, before);
        gate_open(&g);
    }
    for (int i = 0, most = patience_ms(); i < most && called == before; i++) {
        usleep(1000);
    }
    ck_assert_int_eq(called, before + 1); /* work that was enqueued still ran */
}

START_TEST(idle_objects_end_in_any_order)
{
    int order[OBJECTS];
    for (int i = _i; i < 720; i += 48) {
        permute(i, order);
        one_life(order, false);
    }
}
END_TEST

START_TEST(busy_objects_end_in_any_order)
{
    int order[OBJECTS];
    for (int i = _i; i < 720; i += 48) {
        permute(i, order);
        one_life(order, true);
    }
}
END_TEST

START_TEST(the_default_queue_ends_with_its_device)
{
    static gate g = GATE_INIT;
    setup_device();
    hdrt_queue *queue = hdrt_device_default_queue(dev);
    ck_assert_ptr_nonnull(queue);
    gate_hold(&g, queue);
    CK_OK(hdrt_queue_host_call(queue, count_call, NULL));
    hdrt_event event = hdrt_queue_record(queue);
    hdrt_device_close(dev);
    CK_STATUS(hdrt_event_query(rt, event), HDRT_NOT_READY);
    gate_open(&g);
    CK_OK(hdrt_event_wait(rt, event, HDRT_FOREVER));
    ck_assert_int_eq(called, 1);
    CK_OK(hdrt_device_open(rt, 0, NULL, &dev));
    ck_assert_ptr_nonnull(hdrt_device_default_queue(dev));
    teardown_device();
}
END_TEST

/* ---- flat resources ---------------------------------------------------------------------------------------------- */

/* 0 in sanitizer builds, which keep freed memory back. */
static long resident_pages(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 0;
#endif
    long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%ld %ld", &total, &resident), 2);
    fclose(file);
    return resident;
}

START_TEST(queues_come_and_go)
{
    setup_device();
    hdrt_ptr memory;
    hdrt_queue *keeper = make_queue("keeper");
    CK_OK(hdrt_alloc(keeper, 64, &memory));
    CK_OK(hdrt_queue_synchronize(keeper));
    long pages = 0;
    for (int i = 0; i < 600; i++) {
        hdrt_queue *queue = make_queue(NULL);
        CK_OK(hdrt_fill(queue, memory, "c", 1, 64));
        CK_OK(hdrt_queue_wait(keeper, hdrt_queue_record(queue)));
        hdrt_queue_destroy(queue);
        if (i == 200) {
            CK_OK(hdrt_device_synchronize(dev));
            pages = resident_pages();
        }
    }
    CK_OK(hdrt_device_synchronize(dev));
    ck_assert_int_lt(resident_pages() - pages, 1024); /* 4 MiB */
    hdrt_queue_destroy(keeper);
    teardown_device();
}
END_TEST

START_TEST(operations_leave_nothing)
{
    setup_device();
    hdrt_queue *queue = make_queue("long");
    long pages = 0;
    void *pinned;
    for (int i = 0; i < 3000; i++) {
        hdrt_ptr memory;
        CK_OK(hdrt_alloc(queue, 4096, &memory));
        CK_OK(hdrt_host_alloc(dev, 4096, &pinned));
        CK_OK(hdrt_copy_dtoh(queue, pinned, memory, 4096));
        CK_OK(hdrt_write(queue, memory, &i, sizeof i));
        CK_OK(hdrt_host_free(dev, pinned));
        CK_OK(hdrt_free(queue, memory));
        if (i % 64 == 0) {
            CK_OK(hdrt_queue_synchronize(queue));
        }
        if (i == 1000) {
            pages = resident_pages();
        }
    }
    CK_OK(hdrt_queue_synchronize(queue));
    ck_assert_int_lt(resident_pages() - pages, 1024);
    hdrt_queue_destroy(queue);
    teardown_device();
}
END_TEST

/* Runs of two kernels, single ones, and some that are waited for: by templates of every kind. */
static void launch_often(hdrt_queue *queue, hdrt_module *module, hdrt_ptr memory)
{
    hdrt_kernel *stamp = kernel_of(module, "stamp"), *add = kernel_of(module, "add");
    uint32_t one = 1;
    for (uint32_t i = 0; i < 1000; i++) {
        CK_OK(hdrt_launch(queue, stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(memory, i)));
        CK_OK(hdrt_launch(queue, add, hdrt_grid_1d(1, 1), HDRT_ARGS(memory, one, i)));
    }
    for (uint32_t i = 0; i < 40; i++) {
        CK_OK(hdrt_launch(queue, stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(memory, i)));
        CK_OK(hdrt_queue_synchronize(queue));
    }
}

/* Templates hold the code of their kernels, but not when nobody else does. */
START_TEST(code_that_is_destroyed_is_unloaded)
{
    setup_device();
    hdrt_ptr memory;
    hdrt_queue *queue = make_queue("loads"), *other = make_inline_queue("loads too");
    CK_OK(hdrt_alloc(queue, 64, &memory));
    CK_OK(hdrt_queue_synchronize(queue));
    unsigned long long before = calls_of("cuModuleUnload"), graphs = calls_of("cuGraphLaunch");
    for (unsigned i = 0; i < 10; i++) {
        hdrt_module *module = load_kernels();
        launch_often(queue, module, memory);
        launch_often(other, module, memory);
        hdrt_module_destroy(module);
    }
    ck_assert_uint_ge(calls_of("cuGraphLaunch"), graphs + 100);
    for (long left = patience_ms(); left > 0 && calls_of("cuModuleUnload") < before + 10; left--) {
        usleep(1000);
    }
    ck_assert_uint_eq(calls_of("cuModuleUnload"), before + 10);
    CK_OK(hdrt_free(queue, memory));
    hdrt_queue_destroy(other);
    hdrt_queue_destroy(queue);
    teardown_device();
}
END_TEST

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void *live_and_die(void *argument)
{
    hdrt_status *status = argument;
    for (int i = 0; i < 30 && *status == HDRT_OK; i++) {
        hdrt_device *device;
        hdrt_queue *queue;
        hdrt_ptr memory;
        if ((*status = hdrt_device_open(rt, 0, NULL, &device)) != HDRT_OK) {
            return NULL;
        }
        if ((*status = hdrt_queue_create(device, NULL, &queue)) == HDRT_OK) {
            if ((*status = hdrt_alloc(queue, 256, &memory)) == HDRT_OK) {
                *status = hdrt_queue_host_call(queue, count_call, NULL);
            }
            hdrt_device_close(device);
            hdrt_queue_destroy(queue);
        } else {
            hdrt_device_close(device);
        }
    }
    return NULL;
}

static atomic_uint at_the_line;

static void *make_first_queue(void *argument)
{
    hdrt_status *status = argument;
    hdrt_queue *queue;
    hdrt_ptr memory;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.submission = HDRT_SUBMISSION_INLINE;
    atomic_fetch_add(&at_the_line, 1);
    while (atomic_load(&at_the_line) % 4 != 0) {
    }
    *status = hdrt_queue_create(dev, &options, &queue);
    if (*status == HDRT_OK) {
        *status = hdrt_alloc(queue, 64, &memory);
        if (*status == HDRT_OK) {
            *status = hdrt_fill(queue, memory, "q", 1, 64);
            hdrt_free(queue, memory);
        }
        hdrt_queue_destroy(queue);
    }
    return NULL;
}

/* What is made for the first one is whole before the others see it. */
START_TEST(threads_make_the_first_queues)
{
    for (int round = 0; round < (on_cuda() ? 2 : 10); round++) {
        pthread_t threads[4];
        hdrt_status status[4];
        setup_device();
        for (int i = 0; i < 4; i++) {
            ck_assert_int_eq(pthread_create(&threads[i], NULL, make_first_queue, &status[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
            ck_assert_int_eq(status[i], HDRT_OK);
        }
        teardown_device();
    }
}
END_TEST

START_TEST(threads_open_and_close)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    hdrt_status statuses[THREADS] = {HDRT_OK};
    rt = make_runtime();
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, live_and_die, &statuses[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CK_STATUS(statuses[i], HDRT_OK);
    }
    hdrt_runtime_destroy(rt);
    for (int i = 0; i < 5000 && called < THREADS * 30; i++) {
        usleep(1000);
    }
    ck_assert_int_eq(called, THREADS * 30);
}
END_TEST

static sigset_t seen;

static void look_at_signals(void *argument)
{
    (void)argument;
    pthread_sigmask(SIG_SETMASK, NULL, &seen);
}

START_TEST(library_threads_take_no_signals)
{
    setup_device();
    hdrt_queue *queue = make_queue("signals");
    CK_OK(hdrt_queue_host_call(queue, look_at_signals, NULL));
    CK_OK(hdrt_queue_synchronize(queue));
    ck_assert(sigismember(&seen, SIGTERM) == 1);
    ck_assert(sigismember(&seen, SIGINT) == 1);
    ck_assert(sigismember(&seen, SIGCHLD) == 1);
    hdrt_queue_destroy(queue);
    teardown_device();
}
END_TEST

/* ---- fork -------------------------------------------------------------------------------------------------------- */

static int child_of_fork(hdrt_queue *queue, hdrt_module *module, hdrt_timer *timer, hdrt_timeline *timeline,
                         hdrt_ptr memory, void *pinned, hdrt_event event)
{
    hdrt_queue *other;
    hdrt_device *device;
    hdrt_timer *another;
    hdrt_timeline *more;
    hdrt_runtime_info info = HDRT_RUNTIME_INFO_INIT;
    hdrt_device_info device_info = HDRT_DEVICE_INFO_INIT;
    hdrt_ptr ptr;
    void *host;
    char bytes[64];
    int64_t ns;
    alarm(20);
    const hdrt_status statuses[] = {
        hdrt_runtime_get_info(rt, &info),
        hdrt_runtime_device_info(rt, 0, &device_info),
        hdrt_device_get_info(dev, &device_info),
        hdrt_device_open(rt, 0, NULL, &device),
        hdrt_device_synchronize(dev),
        hdrt_device_memory_info(dev, NULL, NULL),
        hdrt_event_query(rt, event),
        hdrt_event_wait(rt, event, HDRT_FOREVER),
        hdrt_event_query(rt, hdrt_queue_record(queue)),
        hdrt_timeline_create(rt, &more),
        hdrt_timeline_signal(timeline, 1),
        hdrt_timeline_fail(timeline, HDRT_ERROR_IO, NULL),
        hdrt_queue_create(dev, NULL, &other),
        hdrt_queue_wait(queue, event),
        hdrt_queue_synchronize(queue),
        hdrt_queue_error(queue),
        hdrt_queue_clear_error(queue),
        hdrt_queue_host_call(queue, count_call, NULL),
        hdrt_queue_timestamp(queue, timer),
        hdrt_timer_create(dev, &another),
        hdrt_timer_elapsed(timer, timer, &ns),
        hdrt_alloc(queue, 64, &ptr),
        hdrt_free(queue, memory),
        hdrt_host_alloc(dev, 64, &host),
        hdrt_host_free(dev, pinned),
        hdrt_host_register(dev, bytes, 64),
        hdrt_host_unregister(dev, bytes),
        hdrt_copy_htod(queue, memory, bytes, 64),
        hdrt_copy_dtoh(queue, bytes, memory, 64),
        hdrt_copy_dtod(queue, memory, memory, 64),
        hdrt_copy_region(queue, NULL, NULL, 1, 1, 1),
        hdrt_write(queue, memory, bytes, 64),
        hdrt_fill(queue, memory, "x", 1, 64),
    };
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        if (statuses[i] != HDRT_ERROR_FORKED) {
            fprintf(stderr, "# call %zu in a forked child: %s\n", i, hdrt_status_name(statuses[i]));
            return 1;
        }
    }
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    hdrt_runtime *made;
    options.driver = on_cuda() ? HDRT_DRIVER_CUDA : HDRT_DRIVER_SOFT;
    if (hdrt_runtime_create(&options, &made) != HDRT_ERROR_FORKED || made) {
        return 3;
    }
    if (!strstr(hdrt_last_error(), "fork") || hdrt_device_default_queue(dev)) {
        return 2;
    }
    hdrt_timer_destroy(timer);
    hdrt_timeline_destroy(timeline);
    hdrt_module_destroy(module);
    hdrt_queue_destroy(queue);
    hdrt_device_close(dev);
    hdrt_runtime_destroy(rt);
    return 0;
}

START_TEST(a_forked_child_is_told)
{
    static gate g = GATE_INIT;
    setup_device();
    hdrt_queue *queue = make_queue("forked");
    hdrt_module *module = load_kernels();
    hdrt_timer *timer;
    hdrt_timeline *timeline;
    hdrt_ptr memory;
    void *pinned;
    CK_OK(hdrt_timer_create(dev, &timer));
    CK_OK(hdrt_timeline_create(rt, &timeline));
    CK_OK(hdrt_alloc(queue, 64, &memory));
    CK_OK(hdrt_host_alloc(dev, 64, &pinned));
    CK_OK(hdrt_queue_timestamp(queue, timer));
    gate_hold(&g, queue);
    hdrt_event event = hdrt_queue_record(queue);
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        child_exit(child_of_fork(queue, module, timer, timeline, memory, pinned, event));
    }
    int result;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_msg(WIFEXITED(result) && WEXITSTATUS(result) == 0, "child: status 0x%x", result);
    gate_open(&g); /* the parent goes on */
    CK_OK(hdrt_queue_synchronize(queue));
    CK_OK(hdrt_fill(queue, memory, "p", 1, 64));
    CK_OK(hdrt_queue_synchronize(queue));
    hdrt_timer_destroy(timer);
    hdrt_timeline_destroy(timeline);
    hdrt_module_destroy(module);
    hdrt_queue_destroy(queue);
    teardown_device();
}
END_TEST

/* ---- exit -------------------------------------------------------------------------------------------------------- */

static void *keep_busy(void *argument)
{
    hdrt_queue *queue = argument;
    for (;;) {
        hdrt_queue_host_call(queue, count_call, NULL);
        hdrt_event_wait(rt, hdrt_queue_record(queue), 100000);
    }
    return NULL;
}

/* A child that ends with work in flight, threads inside the library, and nothing destroyed. */
static void leave_in_the_middle(int how)
{
    static gate g = GATE_INIT;
    pthread_t thread;
    setup_device();
    hdrt_queue *queue = make_queue("a"), *held = make_queue("held"), *busy = make_queue("busy");
    hdrt_module *module = load_kernels();
    hdrt_ptr memory;
    CK_OK(hdrt_alloc(queue, 64, &memory));
    CK_OK(hdrt_launch(queue, kernel_of(module, "add"), hdrt_grid_1d(16, 16), HDRT_ARGS(memory, 16u, 1u)));
    ck_assert_int_eq(pthread_create(&thread, NULL, keep_busy, busy), 0);
    if (how & 1) {
        gate_hold(&g, held);
        hdrt_queue_destroy(held); /* waits for its end on the reaper */
    }
    if (how & 2) {
        hdrt_queue_destroy(queue);
        hdrt_device_close(dev);
        hdrt_runtime_destroy(rt);
    }
    usleep(1000);
    alarm(20);
}

START_TEST(exit_at_any_moment)
{
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        leave_in_the_middle(_i);
        fclose(stdout);
        exit(7);
    }
    int result;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_msg(WIFEXITED(result) && WEXITSTATUS(result) == 7, "child: status 0x%x", result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lifetimes");
    TCase *tcase = tcase_create("lifetimes");
    tcase_set_timeout(tcase, 120);
    /* CUDA takes a third of a second for each runtime: fewer orders there. */
    tcase_add_loop_test(tcase, idle_objects_end_in_any_order, 0, on_cuda() ? 2 : 12);
    tcase_add_loop_test(tcase, busy_objects_end_in_any_order, 0, on_cuda() ? 2 : 12);
    tcase_add_test(tcase, the_default_queue_ends_with_its_device);
    tcase_add_test(tcase, queues_come_and_go);
    tcase_add_test(tcase, operations_leave_nothing);
    tcase_add_test(tcase, threads_make_the_first_queues);
    tcase_add_test(tcase, threads_open_and_close);
    tcase_add_test(tcase, library_threads_take_no_signals);
    tcase_add_test(tcase, a_forked_child_is_told);
    tcase_add_loop_test(tcase, exit_at_any_moment, 0, 4);
    suite_add_tcase(suite, tcase);
    TCase *counted = tcase_create("counted");
    tcase_set_timeout(counted, 120);
    tcase_add_test(counted, code_that_is_destroyed_is_unloaded);
    add_soft_tcase(suite, counted, "counted driver calls");
    return run_suite(suite);
}
