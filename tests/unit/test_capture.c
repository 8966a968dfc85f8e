/* SPDX-License-Identifier: MIT */
/* Another thread's stream capture, in global mode, survives every public function; captured streams are refused. */
#include "device_fixture.h"

#include <stdatomic.h>

struct CUgraph_st;
typedef int (*stream_create)(struct CUstream_st **, unsigned);
typedef int (*stream_call)(struct CUstream_st *);
typedef int (*begin_capture)(struct CUstream_st *, unsigned);
typedef int (*end_capture)(struct CUstream_st *, struct CUgraph_st **);
typedef int (*graph_call)(struct CUgraph_st *);
typedef int (*push_call)(struct CUctx_st *);
typedef int (*exchange_call)(unsigned *);
typedef int (*set_call)(unsigned long long, unsigned, size_t, struct CUstream_st *);

static struct {
    stream_create create;
    stream_call destroy;
    begin_capture begin;
    end_capture end;
    graph_call graph_destroy;
    push_call push;
    exchange_call exchange;
    set_call set;
} cu;

static void find(void *pointer, const char *name)
{
    void *symbol = hdrt_runtime_driver_symbol(rt, name);
    ck_assert_msg(symbol != NULL, "%s", name);
    memcpy(pointer, &symbol, sizeof symbol);
}

static struct CUstream_st *stream;
static hdrt_queue *a, *b;
static hdrt_ptr memory;
static unsigned char *pinned;
static hdrt_module *module;

static void setup(void)
{
    setup_device();
    find(&cu.create, "cuStreamCreate");
    find(&cu.destroy, "cuStreamDestroy_v2");
    find(&cu.begin, "cuStreamBeginCapture_v2");
    find(&cu.end, "cuStreamEndCapture");
    find(&cu.graph_destroy, "cuGraphDestroy");
    find(&cu.push, "cuCtxPushCurrent_v2");
    find(&cu.exchange, "cuThreadExchangeStreamCaptureMode");
    find(&cu.set, "cuMemsetD32Async");
    ck_assert_int_eq(cu.push(hdrt_device_context(dev)), 0);
    ck_assert_int_eq(cu.create(&stream, 1), 0);
    a = make_queue("a");
    b = make_queue("b");
    CK_OK(hdrt_alloc(a, 1 << 20, &memory));
    CK_OK(hdrt_host_alloc(dev, 1 << 20, (void **)&pinned));
    module = load_kernels();
    CK_OK(hdrt_queue_synchronize(a));
}

static void teardown(void)
{
    CK_OK(hdrt_host_free(dev, pinned));
    hdrt_module_destroy(module);
    hdrt_queue_destroy(a);
    hdrt_queue_destroy(b);
    ck_assert_int_eq(cu.destroy(stream), 0);
    teardown_device();
}

/* ---- what is done while another thread captures ------------------------------------------------------------------ */

static void nothing(void *argument)
{
    (void)argument;
}

static void do_memory(void)
{
    hdrt_ptr more;
    void *host, *own = aligned_alloc(4096, 8192);
    uint64_t free_bytes;
    CK_OK(hdrt_alloc(a, 100000, &more));
    CK_OK(hdrt_free(a, more));
    CK_OK(hdrt_host_alloc(dev, 100000, &host));
    CK_OK(hdrt_host_free(dev, host));
    CK_OK(hdrt_host_register(dev, own, 8192));
    CK_OK(hdrt_host_unregister(dev, own));
    CK_OK(hdrt_device_memory_info(dev, &free_bytes, NULL));
    free(own);
}

static void do_copies(void)
{
    static unsigned char pageable[200000];
    hdrt_region_side device = {.device = memory, .row_pitch = 64}, host = {.host = pinned, .row_pitch = 64};
    CK_OK(hdrt_copy_htod(a, memory, pinned, 65536));
    CK_OK(hdrt_copy_htod(a, memory, pageable, 100));
    CK_OK(hdrt_copy_htod(a, memory, pageable, sizeof pageable));
    CK_OK(hdrt_copy_dtoh(a, pinned, memory, 65536));
    CK_OK(hdrt_copy_dtoh(a, pageable, memory, sizeof pageable));
    CK_OK(hdrt_copy_dtod(a, memory, memory + 65536, 65536));
    CK_OK(hdrt_copy_region(a, &device, &host, 64, 8, 1));
    CK_OK(hdrt_write(a, memory, "abc", 3));
    CK_OK(hdrt_fill(a, memory, "abcdefgh", 8, 100));
}

static void do_order(void)
{
    CK_OK(hdrt_fill(a, memory, "a", 1, 100));
    hdrt_event event = hdrt_queue_record(a);
    hdrt_event_query(rt, event);
    CK_OK(hdrt_queue_wait(b, event));
    CK_OK(hdrt_queue_host_call(b, nothing, NULL));
    CK_OK(hdrt_event_wait(rt, event, HDRT_FOREVER));
    CK_OK(hdrt_queue_synchronize(b));
    CK_OK(hdrt_device_synchronize(dev));
    CK_OK(hdrt_queue_error(a));
    CK_OK(hdrt_queue_clear_error(a));
}

static void do_kernels(void)
{
    hdrt_module *another = load_kernels();
    hdrt_kernel *kernel = kernel_of(another, "add");
    hdrt_kernel_info info = HDRT_KERNEL_INFO_INIT;
    hdrt_ptr counter;
    uint64_t bytes;
    uint32_t blocks;
    CK_OK(hdrt_kernel_attributes(kernel, &info));
    CK_OK(hdrt_kernel_occupancy(kernel, 128, 0, &blocks));
    CK_OK(hdrt_module_global(another, "counter", &counter, &bytes));
    CK_OK(hdrt_launch(a, kernel, hdrt_grid_1d(16, 16), HDRT_ARGS(memory, 16u, 1u)));
    CK_OK(hdrt_launch(a, kernel, hdrt_grid_shared(hdrt_grid_1d(16, 16), 60000), HDRT_ARGS(memory, 16u, 1u)));
    CK_OK(hdrt_queue_synchronize(a));
    hdrt_module_destroy(another);
}

static void do_objects(void)
{
    hdrt_runtime *runtime = make_runtime();
    hdrt_device *device;
    hdrt_queue *queue, *adopted;
    hdrt_timer *timer;
    struct CUstream_st *raw;
    int64_t ns;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    hdrt_device_info info = HDRT_DEVICE_INFO_INIT;
    options.exclusive = true;
    CK_OK(hdrt_runtime_device_info(runtime, 0, &info));
    CK_OK(hdrt_device_open(runtime, 0, NULL, &device));
    CK_OK(hdrt_queue_create(device, &options, &queue));
    CK_OK(hdrt_queue_stream(queue, &raw));
    CK_OK(hdrt_queue_adopt(device, raw, NULL, &adopted));
    CK_OK(hdrt_timer_create(device, &timer));
    CK_OK(hdrt_queue_timestamp(queue, timer));
    CK_OK(hdrt_queue_synchronize(queue));
    CK_OK(hdrt_timer_elapsed(timer, timer, &ns));
    ck_assert_ptr_nonnull(hdrt_device_default_queue(device));
    hdrt_timer_destroy(timer);
    hdrt_queue_destroy(adopted);
    hdrt_queue_destroy(queue);
    hdrt_device_close(device);
    hdrt_runtime_destroy(runtime);
}

static void (*const groups[])(void) = {do_memory, do_copies, do_order, do_kernels, do_objects};
enum { GROUPS = sizeof groups / sizeof *groups };

typedef struct capture {
    pthread_t thread;
    pthread_barrier_t begun, done;
    int begin, end;
    struct CUgraph_st *graph;
    unsigned mode;
} capture;

static void *capture_meanwhile(void *argument)
{
    capture *me = argument;
    cu.push(hdrt_device_context(dev));
    me->begin = cu.begin(stream, 0); /* global mode: the strictest */
    cu.set(memory, 1, 16, stream);
    pthread_barrier_wait(&me->begun);
    pthread_barrier_wait(&me->done);
    cu.set(memory, 2, 16, stream);
    me->end = cu.end(stream, &me->graph);
    return NULL;
}

START_TEST(captures_of_others_survive)
{
    capture me = {.begin = -1, .end = -1};
    pthread_barrier_init(&me.begun, NULL, 2);
    pthread_barrier_init(&me.done, NULL, 2);
    ck_assert_int_eq(pthread_create(&me.thread, NULL, capture_meanwhile, &me), 0);
    pthread_barrier_wait(&me.begun);
    ck_assert_int_eq(me.begin, 0);
    groups[_i]();
    pthread_barrier_wait(&me.done);
    pthread_join(me.thread, NULL);
    ck_assert_int_eq(me.end, 0);
    ck_assert_ptr_nonnull(me.graph);
    ck_assert_int_eq(cu.graph_destroy(me.graph), 0);
    pthread_barrier_destroy(&me.begun);
    pthread_barrier_destroy(&me.done);
}
END_TEST

/* The thread's own capture survives too, and its mode is as it was. */
START_TEST(captures_of_the_caller_survive)
{
    struct CUgraph_st *graph = NULL;
    unsigned mode = 1;
    ck_assert_int_eq(cu.exchange(&mode), 0); /* thread-local now */
    ck_assert_int_eq(cu.begin(stream, 1), 0);
    ck_assert_int_eq(cu.set(memory, 1, 16, stream), 0);
    groups[_i]();
    ck_assert_int_eq(cu.set(memory, 2, 16, stream), 0);
    ck_assert_int_eq(cu.end(stream, &graph), 0);
    ck_assert_ptr_nonnull(graph);
    ck_assert_int_eq(cu.graph_destroy(graph), 0);
    mode = 0;
    ck_assert_int_eq(cu.exchange(&mode), 0);
    ck_assert_uint_eq(mode, 1);
}
END_TEST

START_TEST(streams_that_are_captured_are_refused)
{
    struct CUgraph_st *graph = NULL;
    hdrt_queue *queue = a;
    ck_assert_int_eq(cu.begin(stream, 2), 0);
    CK_STATUS(hdrt_queue_adopt(dev, stream, NULL, &queue), HDRT_ERROR_CAPTURING);
    ck_assert_ptr_null(queue);
    ck_assert_int_eq(cu.end(stream, &graph), 0);
    cu.graph_destroy(graph);
    CK_OK(hdrt_queue_adopt(dev, stream, NULL, &queue));
    CK_OK(hdrt_fill(queue, memory, "a", 1, 16));
    hdrt_event event = hdrt_queue_record(queue);
    CK_OK(hdrt_queue_synchronize(queue));
    hdrt_ptr more;
    CK_OK(hdrt_alloc(queue, 64, &more));
    ck_assert_int_eq(cu.begin(stream, 2), 0);
    CK_STATUS(hdrt_fill(queue, memory, "b", 1, 16), HDRT_ERROR_CAPTURING);
    CK_MESSAGE("being captured");
    CK_STATUS(hdrt_free(queue, more), HDRT_ERROR_CAPTURING);
    CK_OK(hdrt_event_query(rt, event));
    CK_STATUS(hdrt_event_wait(rt, hdrt_queue_record(queue), 1000000), HDRT_TIMEOUT);
    ck_assert_int_eq(cu.end(stream, &graph), 0);
    cu.graph_destroy(graph);
    CK_OK(hdrt_fill(queue, memory, "b", 1, 16));
    CK_OK(hdrt_free(queue, more));
    CK_OK(hdrt_queue_synchronize(queue));
    hdrt_queue_destroy(queue);
    CK_OK(hdrt_device_synchronize(dev));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("capture");
    TCase *tcase = tcase_create("capture");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, captures_of_others_survive, 0, GROUPS);
    tcase_add_loop_test(tcase, captures_of_the_caller_survive, 0, GROUPS);
    tcase_add_test(tcase, streams_that_are_captured_are_refused);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
