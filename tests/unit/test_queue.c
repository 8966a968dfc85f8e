/* SPDX-License-Identifier: MIT */
/* Queues: order, events, waits between queues, host calls, launches, timers, limits and foreign streams. */
#include "device_fixture.h"

#include <stdatomic.h>

static hdrt_queue *a, *b;

static void setup(void)
{
    setup_device();
    a = make_queue("a");
    b = make_queue("b");
}

static void teardown(void)
{
    hdrt_queue_destroy(a);
    hdrt_queue_destroy(b);
    teardown_device();
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

START_TEST(options_are_checked)
{
    hdrt_queue *queue = a;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    CK_STATUS(hdrt_queue_create(dev, NULL, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_queue_create(NULL, NULL, &queue), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_null(queue);
    options.back_pressure = HDRT_BACK_PRESSURE_GROW;
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    hdrt_queue_destroy(queue);
    options.back_pressure = (hdrt_back_pressure)9;
    CK_STATUS(hdrt_queue_create(dev, &options, &queue), HDRT_ERROR_INVALID_ARGUMENT);
    options.back_pressure = HDRT_BACK_PRESSURE_BLOCK;
    options.submission = (hdrt_submission)3;
    CK_STATUS(hdrt_queue_create(dev, &options, &queue), HDRT_ERROR_INVALID_ARGUMENT);
    options.submission = HDRT_SUBMISSION_DISPATCHER;
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    hdrt_queue_destroy(queue);
    options.submission = HDRT_SUBMISSION_INLINE;
    options.priority = -1000;
    options.name = "urgent";
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    ck_assert_ptr_eq(hdrt_queue_device(queue), dev);
    hdrt_queue_destroy(queue);
    options.priority = 1000;
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    hdrt_queue_destroy(queue);
    options.reserved[0] = 1;
    CK_STATUS(hdrt_queue_create(dev, &options, &queue), HDRT_ERROR_INVALID_ARGUMENT);
    hdrt_queue_destroy(NULL);
    ck_assert_ptr_null(hdrt_queue_device(NULL));
    ck_assert_uint_eq(hdrt_queue_record(NULL).timeline, 0);
    CK_STATUS(hdrt_queue_synchronize(NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_queue_error(NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_queue_clear_error(NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_OK(hdrt_queue_clear_error(a));
}
END_TEST

START_TEST(the_default_queue_is_the_devices)
{
    hdrt_queue *first = hdrt_device_default_queue(dev);
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_eq(hdrt_device_default_queue(dev), first);
    ck_assert_ptr_eq(hdrt_queue_device(first), dev);
    ck_assert_ptr_null(hdrt_device_default_queue(NULL));
    hdrt_queue_destroy(first); /* borrowed: that is for the device */
    hdrt_ptr memory;
    CK_OK(hdrt_alloc(first, 64, &memory));
    CK_OK(hdrt_free(first, memory));
    CK_OK(hdrt_queue_synchronize(first));
}
END_TEST

/* ---- events and order -------------------------------------------------------------------------------------------- */

static int order_log[4096];
static atomic_int order_count;

static void note(void *argument)
{
    int index = atomic_fetch_add(&order_count, 1);
    if (index < (int)(sizeof order_log / sizeof *order_log)) {
        order_log[index] = (int)(intptr_t)argument;
    }
}

static void enqueue_note(hdrt_queue *queue, int value)
{
    CK_OK(hdrt_queue_host_call(queue, note, (void *)(intptr_t)value));
}

START_TEST(an_empty_queue_is_complete)
{
    hdrt_event event = hdrt_queue_record(a);
    CK_OK(hdrt_event_query(rt, event));
    CK_OK(hdrt_event_wait(rt, event, HDRT_FOREVER));
    CK_OK(hdrt_queue_synchronize(a));
    CK_OK(hdrt_device_synchronize(dev));
}
END_TEST

START_TEST(host_calls_come_in_order)
{
    for (int i = 0; i < 200; i++) {
        enqueue_note(a, i);
    }
    CK_OK(hdrt_queue_synchronize(a));
    ck_assert_int_eq(order_count, 200);
    for (int i = 0; i < 200; i++) {
        ck_assert_int_eq(order_log[i], i);
    }
    CK_STATUS(hdrt_queue_host_call(a, NULL, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_queue_host_call(NULL, note, NULL), HDRT_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(events_tell_how_far_a_queue_is)
{
    static gate g = GATE_INIT;
    enqueue_note(a, 1);
    hdrt_event before = hdrt_queue_record(a);
    gate_hold(&g, a);
    hdrt_event at = hdrt_queue_record(a);
    enqueue_note(a, 2);
    hdrt_event after = hdrt_queue_record(a);
    CK_OK(hdrt_event_wait(rt, before, HDRT_FOREVER));
    CK_STATUS(hdrt_event_query(rt, at), HDRT_NOT_READY);
    CK_STATUS(hdrt_event_wait(rt, after, 5000000), HDRT_TIMEOUT);
    ck_assert_int_eq(order_count, 1);
    gate_open(&g);
    CK_OK(hdrt_event_wait(rt, after, HDRT_FOREVER));
    CK_OK(hdrt_event_query(rt, at));
    ck_assert_int_eq(order_count, 2);
}
END_TEST

START_TEST(known_answers_need_no_driver_call)
{
    enqueue_note(a, 1);
    hdrt_event event = hdrt_queue_record(a);
    CK_OK(hdrt_queue_synchronize(a));
    unsigned long long queries = calls_of("cuEventQuery"), records = calls_of("cuEventRecord");
    unsigned long long waits = calls_of("cuStreamWaitEvent");
    for (int i = 0; i < 100; i++) {
        CK_OK(hdrt_event_query(rt, event));
        CK_OK(hdrt_event_wait(rt, event, HDRT_FOREVER));
        CK_OK(hdrt_queue_wait(b, event));
        hdrt_queue_record(a);
    }
    ck_assert_uint_eq(calls_of("cuEventQuery"), queries);
    ck_assert_uint_eq(calls_of("cuEventRecord"), records);
    ck_assert_uint_eq(calls_of("cuStreamWaitEvent"), waits);
}
END_TEST

START_TEST(queues_wait_for_each_other)
{
    static gate g = GATE_INIT;
    gate_hold(&g, a);
    enqueue_note(a, 1);
    CK_OK(hdrt_queue_wait(a, hdrt_queue_record(a))); /* its own order */
    CK_OK(hdrt_queue_wait(b, hdrt_queue_record(a)));
    enqueue_note(b, 2);
    CK_OK(hdrt_queue_wait(a, hdrt_queue_record(b)));
    enqueue_note(a, 3);
    hdrt_event end = hdrt_queue_record(a);
    CK_STATUS(hdrt_event_wait(rt, end, 2000000), HDRT_TIMEOUT);
    ck_assert_int_eq(order_count, 0);
    gate_open(&g);
    CK_OK(hdrt_event_wait(rt, end, HDRT_FOREVER));
    ck_assert_int_eq(order_log[0], 1);
    ck_assert_int_eq(order_log[1], 2);
    ck_assert_int_eq(order_log[2], 3);
}
END_TEST

START_TEST(one_gated_queue_holds_up_no_other)
{
    static gate g = GATE_INIT;
    hdrt_ptr memory;
    unsigned char *pinned;
    CK_OK(hdrt_host_alloc(dev, 4096, (void **)&pinned));
    gate_hold(&g, a);
    for (int i = 0; i < 200; i++) {
        enqueue_note(a, i);
    }
    CK_OK(hdrt_alloc(b, 4096, &memory));
    CK_OK(hdrt_fill(b, memory, "z", 1, 4096));
    CK_OK(hdrt_copy_dtoh(b, pinned, memory, 4096));
    CK_OK(hdrt_free(b, memory));
    CK_OK(hdrt_queue_synchronize(b));
    ck_assert_uint_eq(pinned[4095], 'z');
    ck_assert_int_eq(order_count, 0);
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(a));
    ck_assert_int_eq(order_count, 200);
    CK_OK(hdrt_host_free(dev, pinned));
}
END_TEST

/* An event recorded before a host call is not made to wait for it by a mark that comes late. */
START_TEST(late_marks_are_exact)
{
    static gate g = GATE_INIT;
    hdrt_ptr memory;
    unsigned char *back;
    CK_OK(hdrt_host_alloc(dev, 64, (void **)&back));
    CK_OK(hdrt_alloc(a, 64, &memory));
    CK_OK(hdrt_fill(a, memory, "x", 1, 64));
    hdrt_event filled = hdrt_queue_record(a);
    gate_hold(&g, a);
    CK_OK(hdrt_queue_wait(b, filled));
    CK_OK(hdrt_copy_dtoh(b, back, memory, 64));
    CK_OK(hdrt_queue_synchronize(b)); /* although a stands */
    ck_assert_uint_eq(back[63], 'x');
    CK_OK(hdrt_event_wait(rt, filled, HDRT_FOREVER));
    gate_open(&g);
    CK_OK(hdrt_free(a, memory));
    CK_OK(hdrt_host_free(dev, back));
}
END_TEST

START_TEST(waits_on_host_timelines)
{
    hdrt_timeline *timeline;
    CK_OK(hdrt_timeline_create(rt, &timeline));
    CK_OK(hdrt_queue_wait(a, hdrt_timeline_event(timeline, 2))); /* not yet signalled */
    enqueue_note(a, 1);
    hdrt_event end = hdrt_queue_record(a);
    CK_STATUS(hdrt_event_wait(rt, end, 2000000), HDRT_TIMEOUT);
    enqueue_note(b, 2);
    CK_OK(hdrt_queue_synchronize(b)); /* nobody else waits */
    CK_OK(hdrt_timeline_signal(timeline, 1));
    CK_STATUS(hdrt_event_wait(rt, end, 2000000), HDRT_TIMEOUT);
    CK_OK(hdrt_timeline_signal(timeline, 2));
    CK_OK(hdrt_event_wait(rt, end, HDRT_FOREVER));
    ck_assert_int_eq(order_log[0], 2);
    ck_assert_int_eq(order_log[1], 1);
    CK_OK(hdrt_queue_wait(a, hdrt_timeline_event(timeline, 1)));
    CK_OK(hdrt_queue_wait(a, (hdrt_event){0, 0}));
    CK_STATUS(hdrt_queue_wait(a, (hdrt_event){12345, 1}), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_queue_wait(NULL, end), HDRT_ERROR_INVALID_ARGUMENT);
    CK_OK(hdrt_queue_error(a));
    /* One that never comes fails who waits. */
    CK_OK(hdrt_queue_wait(a, hdrt_timeline_event(timeline, 3)));
    enqueue_note(a, 3);
    hdrt_timeline_destroy(timeline);
    CK_STATUS(hdrt_queue_synchronize(a), HDRT_ERROR_QUEUE_FAILED);
    CK_MESSAGE("destroyed before this value");
    ck_assert_int_eq(order_count, 2);
}
END_TEST

START_TEST(waits_for_what_is_not_yet_enqueued)
{
    enqueue_note(b, 1);
    hdrt_event future = hdrt_queue_record(b);
    future.value++;
    CK_OK(hdrt_queue_wait(a, future));
    enqueue_note(a, 3);
    hdrt_event end = hdrt_queue_record(a);
    CK_STATUS(hdrt_event_query(rt, future), HDRT_NOT_READY);
    CK_STATUS(hdrt_event_wait(rt, end, 2000000), HDRT_TIMEOUT);
    enqueue_note(b, 2);
    CK_OK(hdrt_event_wait(rt, end, HDRT_FOREVER));
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(order_log[i], i + 1);
    }
}
END_TEST

START_TEST(events_outlive_their_queue)
{
    static gate g = GATE_INIT;
    hdrt_queue *queue = make_queue("short-lived");
    enqueue_note(queue, 1);
    gate_hold(&g, queue);
    enqueue_note(queue, 2);
    hdrt_event event = hdrt_queue_record(queue);
    hdrt_queue_destroy(queue); /* returns at once, the work still runs */
    CK_STATUS(hdrt_event_query(rt, event), HDRT_NOT_READY);
    CK_OK(hdrt_queue_wait(a, event));
    enqueue_note(a, 3);
    gate_open(&g);
    CK_OK(hdrt_event_wait(rt, event, HDRT_FOREVER));
    CK_OK(hdrt_queue_synchronize(a));
    ck_assert_int_eq(order_count, 3);
    ck_assert_int_eq(order_log[2], 3);
    for (int i = 0; i < 100; i++) {
        CK_OK(hdrt_event_query(rt, event));
        usleep(100);
    }
}
END_TEST

/* ---- host calls that call the library ---------------------------------------------------------------------------- */

typedef struct inner {
    hdrt_status statuses[6];
    hdrt_event event;
    hdrt_queue *queue;
} inner;

static void use_library(void *argument)
{
    inner *me = argument;
    hdrt_ptr memory;
    me->statuses[0] = hdrt_alloc(b, 4096, &memory);
    me->statuses[1] = hdrt_fill(b, memory, "h", 1, 4096);
    me->statuses[2] = hdrt_queue_host_call(b, note, (void *)1);
    me->statuses[3] = hdrt_queue_synchronize(b); /* needs another callback thread */
    me->statuses[4] = hdrt_free(b, memory);
    me->statuses[5] = hdrt_queue_host_call(a, note, (void *)2);
    me->event = hdrt_queue_record(a);
}

START_TEST(host_functions_may_call_the_library)
{
    inner me = {{HDRT_NOT_READY}, {0, 0}, NULL};
    CK_OK(hdrt_queue_host_call(a, use_library, &me));
    CK_OK(hdrt_queue_synchronize(a));
    for (int i = 0; i < 6; i++) {
        CK_STATUS(me.statuses[i], HDRT_OK);
    }
    CK_OK(hdrt_event_wait(rt, me.event, HDRT_FOREVER));
    ck_assert_int_eq(order_count, 2);
    ck_assert_int_eq(order_log[1], 2);
}
END_TEST

static atomic_bool enqueued;

static void wait_for_itself(void *argument)
{
    inner *me = argument;
    while (!atomic_load(&enqueued)) { /* until then it is not among what was enqueued before */
        usleep(100);
    }
    me->statuses[0] = hdrt_queue_synchronize(a);
    me->statuses[1] = hdrt_event_wait(rt, hdrt_queue_record(a), HDRT_FOREVER);
    me->statuses[2] = hdrt_event_wait(rt, hdrt_queue_record(a), 0);
    static char host[1 << 20];
    hdrt_ptr memory;
    me->statuses[3] = hdrt_alloc(a, sizeof host, &memory);
    me->statuses[4] = hdrt_copy_htod(a, memory, host, sizeof host); /* pageable: would wait for the queue */
    me->statuses[5] = hdrt_free(a, memory);
}

START_TEST(a_host_function_that_waits_for_itself_is_told)
{
    inner me = {{HDRT_NOT_READY}, {0, 0}, NULL};
    CK_OK(hdrt_queue_host_call(a, wait_for_itself, &me));
    atomic_store(&enqueued, true);
    CK_OK(hdrt_queue_synchronize(a));
    CK_STATUS(me.statuses[0], HDRT_ERROR_CYCLE);
    CK_STATUS(me.statuses[1], HDRT_ERROR_CYCLE);
    CK_STATUS(me.statuses[2], HDRT_TIMEOUT);
    CK_STATUS(me.statuses[3], HDRT_OK);
    CK_STATUS(me.statuses[4], HDRT_ERROR_CYCLE);
    CK_STATUS(me.statuses[5], HDRT_OK);
}
END_TEST

static atomic_int destroyed;

static void destroy_queue(void *argument)
{
    inner *me = argument;
    hdrt_queue_destroy(me->queue);
    atomic_fetch_add(&destroyed, 1);
}

START_TEST(a_host_function_may_destroy_its_queue)
{
    /* Often while the call that enqueues the function is still on its way out. */
    for (int i = 0; i < 50; i++) {
        static inner me;
        me.queue = make_queue("destroys itself");
        CK_OK(hdrt_queue_host_call(me.queue, destroy_queue, &me));
        CK_OK(hdrt_device_synchronize(dev));
        unsigned long long left = 1000;
        while (atomic_load(&destroyed) <= i && left--) {
            usleep(1000);
        }
        ck_assert_int_eq(atomic_load(&destroyed), i + 1);
    }
}
END_TEST

/* ---- limits ------------------------------------------------------------------------------------------------------ */

START_TEST(a_full_ring_would_block)
{
    static gate g = GATE_INIT;
    hdrt_queue *queue;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.ring_limit = 8;
    options.back_pressure = HDRT_BACK_PRESSURE_WOULD_BLOCK;
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    hdrt_ptr memory;
    CK_OK(hdrt_alloc(queue, 64, &memory));
    CK_OK(hdrt_queue_synchronize(queue));
    gate_hold(&g, queue);
    int count = 1;
    hdrt_status status;
    while ((status = hdrt_fill(queue, memory, "y", 1, 64)) == HDRT_OK && count < 100) {
        count++;
    }
    CK_STATUS(status, HDRT_WOULD_BLOCK);
    ck_assert_int_eq(count, 8);
    CK_STATUS(hdrt_queue_host_call(queue, note, NULL), HDRT_WOULD_BLOCK);
    CK_STATUS(hdrt_fill(queue, memory, "y", 1, 0), HDRT_WOULD_BLOCK); /* a no-op is an operation too */
    CK_OK(hdrt_queue_error(queue));
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(queue));
    for (int i = 0; i < 8; i++) {
        CK_OK(hdrt_fill(queue, memory, "y", 1, 64));
    }
    CK_OK(hdrt_free(queue, memory)); /* never blocked: nothing may leak */
    CK_OK(hdrt_queue_synchronize(queue));
    hdrt_queue_destroy(queue);
}
END_TEST

static void *open_soon(void *argument)
{
    usleep(20000);
    gate_open(argument);
    return NULL;
}

START_TEST(a_full_ring_blocks_until_there_is_room)
{
    static gate g = GATE_INIT;
    hdrt_queue *queue;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.ring_limit = 4;
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    gate_hold(&g, queue);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, open_soon, &g), 0);
    for (int i = 0; i < 50; i++) {
        enqueue_note(queue, i);
    }
    ck_assert(g.open);
    pthread_join(thread, NULL);
    CK_OK(hdrt_queue_synchronize(queue));
    ck_assert_int_eq(order_count, 50);
    hdrt_queue_destroy(queue);
}
END_TEST

/*
 * Behind a closed gate the driver takes few host functions in turn with other commands. On a stream where the caller's
 * own work may follow, all is handed over at once: the queue is full before the driver would stand still.
 */
START_TEST(host_calls_in_turn_with_commands_are_bounded)
{
    static gate g = GATE_INIT;
    hdrt_queue *queue;
    struct CUstream_st *stream;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.back_pressure = HDRT_BACK_PRESSURE_WOULD_BLOCK;
    options.exclusive = true;
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    hdrt_ptr memory;
    CK_OK(hdrt_alloc(queue, 64, &memory));
    CK_OK(hdrt_queue_synchronize(queue));
    CK_OK(hdrt_queue_stream(queue, &stream));
    gate_hold(&g, queue);
    int count = 0;
    hdrt_status status = HDRT_OK;
    while (status == HDRT_OK && count < 500) {
        status = hdrt_fill(queue, memory, "y", 1, 64);
        if (status == HDRT_OK) {
            status = hdrt_queue_host_call(queue, note, (void *)(intptr_t)count);
            count += status == HDRT_OK;
        }
    }
    CK_STATUS(status, HDRT_WOULD_BLOCK);
    ck_assert_int_ge(count, 20);
    ck_assert_int_le(count, 50);
    ck_assert_int_eq(order_count, 0);
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(queue));
    ck_assert_int_eq(order_count, count);
    for (int i = 0; i < count; i++) {
        ck_assert_int_eq(order_log[i], i);
    }
    CK_OK(hdrt_free(queue, memory));
    hdrt_queue_destroy(queue);
}
END_TEST

/* What the ring takes is the caller's to say; a gated stream is never filled so far that the driver's calls block. */
START_TEST(a_streams_depth_is_bounded)
{
    enum { FILLS = 5000 };
    static gate g = GATE_INIT;
    hdrt_queue *queue;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.ring_limit = 1 << 20;
    options.back_pressure = HDRT_BACK_PRESSURE_WOULD_BLOCK;
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    hdrt_ptr memory;
    CK_OK(hdrt_alloc(queue, 64, &memory));
    gate_hold(&g, queue);
    unsigned long long before = on_cuda() ? 0 : calls_of("cuMemsetD8Async"), made = 0;
    for (int i = 0; i < FILLS; i++) {
        CK_OK(hdrt_fill(queue, memory, "y", 1, 64));
    }
    for (int i = 0; !on_cuda() && i < 2000 && made < 200; i++) {
        usleep(1000);
        made = calls_of("cuMemsetD8Async") - before;
    }
    usleep(5000);
    if (!on_cuda()) {
        made = calls_of("cuMemsetD8Async") - before;
        ck_assert_uint_ge(made, 200);
        ck_assert_uint_le(made, 256);
    }
    hdrt_ptr more[200];
    for (int i = 0; i < 200; i++) {
        CK_OK(hdrt_alloc(b, 64, &more[i]));
    }
    for (int i = 0; i < 200; i++) {
        CK_OK(hdrt_free(queue, more[i]));
    }
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(queue));
    if (!on_cuda()) {
        ck_assert_uint_eq(calls_of("cuMemsetD8Async") - before, FILLS);
    }
    CK_OK(hdrt_free(queue, memory));
    hdrt_queue_destroy(queue);
}
END_TEST

/* ---- launches ---------------------------------------------------------------------------------------------------- */

START_TEST(launches_take_effect_in_order)
{
    enum { N = 1000 };
    hdrt_module *module = load_kernels();
    hdrt_kernel *add = kernel_of(module, "add"), *stamp = kernel_of(module, "stamp");
    unsigned *back = malloc(N * sizeof *back), zero = 0;
    hdrt_ptr memory;
    CK_OK(hdrt_alloc(a, N * sizeof *back, &memory));
    CK_OK(hdrt_fill(a, memory, &zero, 4, N));
    for (unsigned i = 0; i < 10; i++) {
        CK_OK(hdrt_launch(a, add, hdrt_grid_1d(N, 128), HDRT_ARGS(memory, (uint32_t)N, 1u)));
        CK_OK(hdrt_launch(a, stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(memory + 4, 100 * i)));
    }
    CK_OK(hdrt_copy_dtoh(a, back, memory, N * sizeof *back));
    CK_OK(hdrt_queue_synchronize(a));
    ck_assert_uint_eq(back[0], 10);
    ck_assert_uint_eq(back[1], 900);
    ck_assert_uint_eq(back[N - 1], 10);
    CK_OK(hdrt_free(a, memory));
    hdrt_module_destroy(module);
    free(back);
}
END_TEST

START_TEST(launches_are_checked)
{
    hdrt_module *module = load_kernels();
    hdrt_kernel *add = kernel_of(module, "add");
    hdrt_ptr memory;
    hdrt_grid grid = hdrt_grid_1d(4, 4);
    hdrt_launch_options options = HDRT_LAUNCH_OPTIONS_INIT;
    CK_OK(hdrt_alloc(a, 64, &memory));
    CK_STATUS(hdrt_launch(NULL, add, grid, HDRT_ARGS(memory, 4u, 1u)), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_launch(a, NULL, grid, HDRT_ARGS(memory, 4u, 1u)), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_launch_with(a, add, NULL, NULL, NULL, 0), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_launch(a, add, grid, HDRT_ARGS(memory, 4u)), HDRT_ERROR_LAUNCH);
    CK_STATUS(hdrt_launch(a, add, grid, HDRT_ARGS(memory, 4u, 1.0f)), HDRT_ERROR_LAUNCH);
    CK_STATUS(hdrt_launch(a, add, grid, HDRT_ARGS(memory, 4u, (uint64_t)1)), HDRT_ERROR_LAUNCH);
    grid.block[1] = 0;
    CK_STATUS(hdrt_launch(a, add, grid, HDRT_ARGS(memory, 4u, 1u)), HDRT_ERROR_LAUNCH);
    CK_MESSAGE("zero");
    grid = hdrt_grid_1d(1, 100000);
    CK_STATUS(hdrt_launch(a, add, grid, HDRT_ARGS(memory, 4u, 1u)), HDRT_ERROR_LAUNCH);
    grid = hdrt_grid_2d(1, (uint64_t)1 << 33, 1, 1);
    CK_STATUS(hdrt_launch(a, add, grid, HDRT_ARGS(memory, 4u, 1u)), HDRT_ERROR_LAUNCH);
    CK_MESSAGE("too large");
    grid = hdrt_grid_shared(hdrt_grid_1d(1, 1), 100u << 20);
    CK_STATUS(hdrt_launch(a, add, grid, HDRT_ARGS(memory, 4u, 1u)), HDRT_ERROR_LAUNCH);
    hdrt_args args = HDRT_ARGS(memory, 4u, 1u);
    options.grid = hdrt_grid_1d(1, 1);
    options.cluster[0] = 2;
    CK_STATUS(hdrt_launch_with(a, add, &options, args.pointers, args.kinds, 3), HDRT_ERROR_UNSUPPORTED);
    options.cluster[0] = 0;
    options.programmatic = true;
    CK_STATUS(hdrt_launch_with(a, add, &options, args.pointers, args.kinds, 3), HDRT_ERROR_UNSUPPORTED);
    options.programmatic = false;
    options.priority = 1;
    CK_STATUS(hdrt_launch_with(a, add, &options, args.pointers, args.kinds, 3), HDRT_ERROR_INVALID_ARGUMENT);
    options.priority = 0;
    options.cooperative = true;
    CK_OK(hdrt_launch_with(a, add, &options, args.pointers, args.kinds, 3));
    options.grid = hdrt_grid_1d((uint64_t)1 << 30, 1);
    CK_STATUS(hdrt_launch_with(a, add, &options, args.pointers, args.kinds, 3), HDRT_ERROR_LAUNCH);
    CK_MESSAGE("cooperative");
    CK_OK(hdrt_queue_synchronize(a));
    CK_OK(hdrt_queue_error(a)); /* none of them failed the queue */
    CK_OK(hdrt_free(a, memory));
    hdrt_module_destroy(module);
}
END_TEST

START_TEST(an_empty_grid_is_an_ordered_no_op)
{
    static gate g = GATE_INIT;
    hdrt_module *module = load_kernels();
    hdrt_kernel *add = kernel_of(module, "add");
    hdrt_event before = hdrt_queue_record(a);
    gate_hold(&g, a);
    CK_OK(hdrt_launch(a, add, hdrt_grid_1d(0, 128), HDRT_ARGS((hdrt_ptr)0, 0u, 0u)));
    hdrt_event after = hdrt_queue_record(a);
    ck_assert_uint_gt(after.value, before.value);
    CK_STATUS(hdrt_event_query(rt, after), HDRT_NOT_READY);
    gate_open(&g);
    CK_OK(hdrt_event_wait(rt, after, HDRT_FOREVER));
    CK_OK(hdrt_launch(a, add, hdrt_grid_1d(0, 128), HDRT_ARGS((hdrt_ptr)0, 0u, 0u)));
    CK_OK(hdrt_event_query(rt, hdrt_queue_record(a))); /* on an idle queue it is complete at once */
    hdrt_module_destroy(module);
}
END_TEST

START_TEST(code_stays_loaded_while_it_is_in_flight)
{
    static gate g = GATE_INIT;
    hdrt_module *module = load_kernels();
    unsigned zero = 0, *back;
    hdrt_ptr memory;
    CK_OK(hdrt_host_alloc(dev, 64, (void **)&back));
    CK_OK(hdrt_alloc(a, 64, &memory));
    CK_OK(hdrt_fill(a, memory, &zero, 4, 16));
    gate_hold(&g, a);
    CK_OK(hdrt_launch(a, kernel_of(module, "add"), hdrt_grid_1d(16, 16), HDRT_ARGS(memory, 16u, 5u)));
    CK_OK(hdrt_copy_dtoh(a, back, memory, 64));
    hdrt_module_destroy(module);
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(a));
    ck_assert_uint_eq(back[15], 5);
    CK_OK(hdrt_free(a, memory));
    CK_OK(hdrt_host_free(dev, back));
}
END_TEST

/* ---- timers ------------------------------------------------------------------------------------------------------ */

START_TEST(timers_measure)
{
    static gate g = GATE_INIT;
    hdrt_timer *start, *end, *unset;
    int64_t ns = 1;
    CK_OK(hdrt_timer_create(dev, &start));
    CK_OK(hdrt_timer_create(dev, &end));
    CK_OK(hdrt_timer_create(dev, &unset));
    CK_STATUS(hdrt_timer_create(dev, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_timer_elapsed(start, unset, &ns), HDRT_ERROR_INVALID_ARGUMENT);
    CK_OK(hdrt_queue_timestamp(a, start));
    CK_STATUS(hdrt_timer_elapsed(start, unset, &ns), HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("never enqueued");
    gate_hold(&g, a);
    CK_OK(hdrt_queue_timestamp(a, end));
    CK_STATUS(hdrt_timer_elapsed(start, end, &ns), HDRT_NOT_READY);
    usleep(20000);
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(a));
    CK_OK(hdrt_timer_elapsed(start, end, &ns));
    ck_assert_int_ge(ns, 15000000);
    ck_assert_int_lt(ns, (int64_t)60 * 1000000000);
    int64_t back;
    CK_OK(hdrt_timer_elapsed(end, start, &back));
    ck_assert_int_lt(llabs(back + ns), 2000);
    CK_OK(hdrt_queue_timestamp(a, start)); /* set again */
    CK_OK(hdrt_queue_synchronize(a));
    CK_OK(hdrt_timer_elapsed(start, end, &ns));
    ck_assert_int_le(ns, 0);
    CK_STATUS(hdrt_timer_elapsed(NULL, end, &ns), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_timer_elapsed(start, end, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_queue_timestamp(a, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_queue_timestamp(NULL, start), HDRT_ERROR_INVALID_ARGUMENT);

    hdrt_device *own;
    hdrt_timer *foreign;
    hdrt_device_options options = HDRT_DEVICE_OPTIONS_INIT;
    options.context_kind = HDRT_CONTEXT_OWN;
    CK_OK(hdrt_device_open(rt, 0, &options, &own));
    CK_OK(hdrt_timer_create(own, &foreign));
    CK_STATUS(hdrt_queue_timestamp(a, foreign), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_timer_elapsed(start, foreign, &ns), HDRT_ERROR_INVALID_ARGUMENT);
    hdrt_device_close(own);
    hdrt_timer_destroy(foreign);
    hdrt_timer_destroy(start);
    hdrt_timer_destroy(end);
    hdrt_timer_destroy(unset);
    hdrt_timer_destroy(NULL);
}
END_TEST

/* ---- foreign streams and events ---------------------------------------------------------------------------------- */

typedef int (*stream_create)(struct CUstream_st **, unsigned);
typedef int (*event_create)(struct CUevent_st **, unsigned);
typedef int (*event_call)(struct CUevent_st *);
typedef int (*stream_call)(struct CUstream_st *);
typedef int (*record_call)(struct CUevent_st *, struct CUstream_st *);
typedef int (*push_call)(struct CUctx_st *);
typedef int (*set_call)(unsigned long long, unsigned, size_t, struct CUstream_st *);

#define DRIVER(type, variable, name)                                                                                   \
    type variable;                                                                                                     \
    do {                                                                                                               \
        void *symbol_ = hdrt_runtime_driver_symbol(rt, name);                                                          \
        ck_assert_ptr_nonnull(symbol_);                                                                                \
        memcpy(&variable, &symbol_, sizeof variable);                                                                  \
    } while (0)

START_TEST(exclusive_queues_give_their_stream)
{
    struct CUstream_st *stream = NULL;
    hdrt_queue *queue;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    CK_STATUS(hdrt_queue_stream(a, &stream), HDRT_ERROR_UNSUPPORTED);
    CK_STATUS(hdrt_queue_stream(a, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_queue_stream(NULL, &stream), HDRT_ERROR_INVALID_ARGUMENT);
    options.exclusive = true;
    CK_OK(hdrt_queue_create(dev, &options, &queue));
    CK_OK(hdrt_queue_stream(queue, &stream));
    ck_assert_ptr_nonnull(stream);
    /* The caller's own work on the stream counts in the order of calls. */
    DRIVER(set_call, set, "cuMemsetD32Async");
    DRIVER(push_call, push, "cuCtxPushCurrent_v2");
    ck_assert_int_eq(push(hdrt_device_context(dev)), 0);
    static gate g = GATE_INIT;
    hdrt_ptr memory;
    unsigned *back;
    CK_OK(hdrt_host_alloc(dev, 64, (void **)&back));
    CK_OK(hdrt_alloc(queue, 64, &memory));
    gate_hold(&g, queue);
    ck_assert_int_eq(set(memory, 77, 16, stream), 0);
    hdrt_event event = hdrt_queue_record(queue);
    CK_STATUS(hdrt_event_query(rt, event), HDRT_NOT_READY);
    CK_OK(hdrt_queue_wait(b, event));
    CK_OK(hdrt_copy_dtoh(b, back, memory, 64));
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(b));
    ck_assert_uint_eq(back[15], 77);
    ck_assert_int_eq(set(memory, 78, 16, stream), 0);
    CK_OK(hdrt_queue_synchronize(queue));
    CK_OK(hdrt_copy_dtoh(b, back, memory, 64));
    CK_OK(hdrt_queue_synchronize(b));
    ck_assert_uint_eq(back[15], 78);
    CK_OK(hdrt_free(queue, memory));
    CK_OK(hdrt_host_free(dev, back));
    hdrt_queue_destroy(queue);
}
END_TEST

START_TEST(foreign_streams_are_adopted)
{
    struct CUstream_st *stream = NULL, *same;
    hdrt_queue *queue = a;
    DRIVER(push_call, push, "cuCtxPushCurrent_v2");
    DRIVER(stream_create, create, "cuStreamCreate");
    DRIVER(stream_call, destroy, "cuStreamDestroy_v2");
    ck_assert_int_eq(push(hdrt_device_context(dev)), 0);
    ck_assert_int_eq(create(&stream, 1), 0);
    CK_STATUS(hdrt_queue_adopt(dev, NULL, NULL, &queue), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_null(queue);
    CK_STATUS(hdrt_queue_adopt(dev, stream, NULL, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_queue_adopt(NULL, stream, NULL, &queue), HDRT_ERROR_INVALID_ARGUMENT);
    CK_OK(hdrt_queue_adopt(dev, stream, NULL, &queue));
    CK_OK(hdrt_queue_stream(queue, &same));
    ck_assert_ptr_eq(same, stream);
    enqueue_note(queue, 5);
    CK_OK(hdrt_queue_synchronize(queue));
    ck_assert_int_eq(order_count, 1);
    hdrt_queue_destroy(queue);
    CK_OK(hdrt_device_synchronize(dev));
    ck_assert_int_eq(destroy(stream), 0); /* still the caller's */

    hdrt_device *own;
    hdrt_device_options options = HDRT_DEVICE_OPTIONS_INIT;
    options.context_kind = HDRT_CONTEXT_OWN;
    CK_OK(hdrt_device_open(rt, 0, &options, &own));
    ck_assert_int_eq(create(&stream, 1), 0);
    CK_STATUS(hdrt_queue_adopt(own, stream, NULL, &queue), HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("another context");
    hdrt_device_close(own);
    ck_assert_int_eq(destroy(stream), 0);
}
END_TEST

START_TEST(the_callers_events_work_both_ways)
{
    static gate g = GATE_INIT;
    struct CUevent_st *event = NULL;
    DRIVER(push_call, push, "cuCtxPushCurrent_v2");
    DRIVER(event_create, create, "cuEventCreate");
    DRIVER(event_call, query, "cuEventQuery");
    DRIVER(event_call, destroy, "cuEventDestroy_v2");
    ck_assert_int_eq(push(hdrt_device_context(dev)), 0);
    ck_assert_int_eq(create(&event, 2), 0);
    CK_STATUS(hdrt_queue_wait_cuda_event(a, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_queue_record_cuda_event(a, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_queue_wait_cuda_event(NULL, event), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_queue_record_cuda_event(NULL, event), HDRT_ERROR_INVALID_ARGUMENT);
    gate_hold(&g, a);
    CK_OK(hdrt_queue_record_cuda_event(a, event));
    CK_OK(hdrt_queue_wait_cuda_event(b, event));
    enqueue_note(b, 1);
    ck_assert_int_eq(query(event), 600);
    CK_STATUS(hdrt_event_wait(rt, hdrt_queue_record(b), 2000000), HDRT_TIMEOUT);
    gate_open(&g);
    CK_OK(hdrt_queue_synchronize(b));
    ck_assert_int_eq(query(event), 0);
    ck_assert_int_eq(destroy(event), 0);
}
END_TEST

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 60 };

static void *enqueue_many(void *argument)
{
    hdrt_status *status = argument;
    hdrt_queue *own;
    *status = hdrt_queue_create(dev, NULL, &own);
    for (int i = 0; i < ROUNDS && *status == HDRT_OK; i++) {
        hdrt_ptr memory;
        unsigned char byte = (unsigned char)i, back[64];
        if ((*status = hdrt_alloc(own, 64, &memory)) || (*status = hdrt_fill(own, memory, &byte, 1, 64)) ||
            (*status = hdrt_queue_wait(a, hdrt_queue_record(own))) ||
            (*status = hdrt_queue_host_call(a, note, NULL)) ||
            (*status = hdrt_queue_wait(own, hdrt_queue_record(a))) ||
            (*status = hdrt_copy_dtoh(own, back, memory, 64)) || (*status = hdrt_free(own, memory))) {
            break;
        }
        if (i % 8 == 0) {
            *status = hdrt_queue_synchronize(own);
        }
        if (back[63] != byte) {
            *status = HDRT_ERROR_INTERNAL;
        }
    }
    hdrt_queue_destroy(own);
    return NULL;
}

START_TEST(threads_share_a_queue)
{
    pthread_t threads[THREADS];
    hdrt_status statuses[THREADS];
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, enqueue_many, &statuses[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CK_STATUS(statuses[i], HDRT_OK);
    }
    CK_OK(hdrt_device_synchronize(dev));
    ck_assert_int_eq(order_count, THREADS * ROUNDS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("queue");
    TCase *tcase = tcase_create("queue"), *counted = tcase_create("counted");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, options_are_checked);
    tcase_add_test(tcase, the_default_queue_is_the_devices);
    tcase_add_test(tcase, an_empty_queue_is_complete);
    tcase_add_test(tcase, host_calls_come_in_order);
    tcase_add_test(tcase, events_tell_how_far_a_queue_is);
    tcase_add_test(tcase, queues_wait_for_each_other);
    tcase_add_test(tcase, one_gated_queue_holds_up_no_other);
    tcase_add_test(tcase, late_marks_are_exact);
    tcase_add_test(tcase, waits_on_host_timelines);
    tcase_add_test(tcase, waits_for_what_is_not_yet_enqueued);
    tcase_add_test(tcase, events_outlive_their_queue);
    tcase_add_test(tcase, host_functions_may_call_the_library);
    tcase_add_test(tcase, a_host_function_that_waits_for_itself_is_told);
    tcase_add_test(tcase, a_host_function_may_destroy_its_queue);
    tcase_add_test(tcase, a_full_ring_would_block);
    tcase_add_test(tcase, a_full_ring_blocks_until_there_is_room);
    tcase_add_test(tcase, host_calls_in_turn_with_commands_are_bounded);
    tcase_add_test(tcase, a_streams_depth_is_bounded);
    tcase_add_test(tcase, launches_take_effect_in_order);
    tcase_add_test(tcase, launches_are_checked);
    tcase_add_test(tcase, an_empty_grid_is_an_ordered_no_op);
    tcase_add_test(tcase, code_stays_loaded_while_it_is_in_flight);
    tcase_add_test(tcase, timers_measure);
    tcase_add_test(tcase, exclusive_queues_give_their_stream);
    tcase_add_test(tcase, foreign_streams_are_adopted);
    tcase_add_test(tcase, the_callers_events_work_both_ways);
    tcase_add_test(tcase, threads_share_a_queue);
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(counted, setup, teardown);
    tcase_add_test(counted, known_answers_need_no_driver_call);
    add_soft_tcase(suite, counted, "counted driver calls");
    return run_suite(suite);
}
