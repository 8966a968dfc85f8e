/* SPDX-License-Identifier: MIT */
/* The order check (HDRT_CHECK=order): what nothing orders is reported, however it went, and what is ordered is not. */
#include "device_fixture.h"
#include "race_programs.h"

enum { BYTES = 4096 };

static hdrt_queue *a, *b, *c;
static hdrt_module *module;
static hdrt_kernel *add, *stamp;
static hdrt_ptr x, y;
static unsigned char *host;
static char told[8][1200];
static unsigned told_count;

static void tell(void *context, hdrt_log_level level, const char *line)
{
    (void)context;
    if (level == HDRT_LOG_WARN && told_count < 8) {
        snprintf(told[told_count++], sizeof told[0], "%s", line);
    }
}

static void setup(void)
{
    setenv("HDRT_CHECK", "order", 1);
    hdrt_log_set(HDRT_LOG_WARN, tell, NULL);
    setup_device();
    a = make_queue("a");
    b = make_queue("b");
    c = make_queue("c");
    module = load_kernels();
    add = kernel_of(module, "add");
    stamp = kernel_of(module, "stamp");
    CK_OK(hdrt_alloc(a, BYTES, &x));
    CK_OK(hdrt_alloc(a, BYTES, &y));
    CK_OK(hdrt_host_alloc(dev, BYTES, (void **)&host));
    memset(host, 0, BYTES);
    CK_OK(hdrt_queue_synchronize(a));
}

static void teardown(void)
{
    CK_OK(hdrt_device_synchronize(dev));
    hdrt_free(a, x);
    hdrt_free(a, y);
    hdrt_host_free(dev, host);
    hdrt_module_destroy(module);
    hdrt_queue_destroy(a);
    hdrt_queue_destroy(b);
    hdrt_queue_destroy(c);
    teardown_device();
    hdrt_log_set(HDRT_LOG_NONE, NULL, NULL);
}

/* So many since the last time. */
static void expect(unsigned count)
{
    static uint64_t before;
    uint64_t now = hdrt_runtime_race_count(rt);
    ck_assert_msg(now - before == count, "%llu races instead of %u: %s", (unsigned long long)(now - before), count,
                  told_count ? told[told_count - 1] : "nothing was told");
    before = now;
    told_count = 0;
}

static void order(hdrt_queue *after, hdrt_queue *before)
{
    CK_OK(hdrt_queue_wait(after, hdrt_queue_record(before)));
}

/* ---- what orders ------------------------------------------------------------------------------------------------- */

START_TEST(an_event_orders)
{
    CK_OK(hdrt_fill(a, x, "1", 1, 64));
    order(b, a);
    CK_OK(hdrt_fill(b, x, "2", 1, 64));
    order(c, b); /* and so behind a too */
    CK_OK(hdrt_copy_dtod(c, y, x, 64));
    CK_OK(hdrt_device_synchronize(dev));
    order(b, c); /* complete, and nothing to wait for; but declared */
    CK_OK(hdrt_fill(b, y, "3", 1, 64));
    expect(0);
    CK_OK(hdrt_fill(a, x, "4", 1, 64)); /* the host knew that all before was over */
    expect(0);
    CK_OK(hdrt_fill(b, x, "5", 1, 64));
    expect(1);
}
END_TEST

/* A wait for what is over already: what the queue is recorded for after it, or waited for, comes behind it. */
START_TEST(a_wait_for_what_is_over_orders_on)
{
    CK_OK(hdrt_fill(a, x, "1", 1, 64));
    hdrt_event first = hdrt_queue_record(a);
    usleep(50000); /* the host asks nobody and does not know; the wait below finds it over */
    CK_OK(hdrt_queue_wait(b, first));
    order(c, b);
    CK_OK(hdrt_fill(c, x, "2", 1, 64));
    expect(0);
    CK_OK(hdrt_fill(b, y, "1", 1, 64));
    first = hdrt_queue_record(b);
    usleep(50000);
    CK_OK(hdrt_queue_wait(a, first));
    CK_OK(hdrt_queue_synchronize(a));
    CK_OK(hdrt_fill(c, y, "2", 1, 64)); /* the host knows now */
    expect(0);
    CK_OK(hdrt_fill(b, y, "3", 1, 64));
    expect(1);
}
END_TEST

START_TEST(an_earlier_event_is_not_enough)
{
    hdrt_event early;
    CK_OK(hdrt_fill(a, x, "1", 1, 64));
    early = hdrt_queue_record(a);
    CK_OK(hdrt_fill(a, x + 64, "2", 1, 64));
    CK_OK(hdrt_queue_wait(b, early));
    CK_OK(hdrt_fill(b, x, "3", 1, 64));
    expect(0);
    CK_OK(hdrt_fill(b, x + 127, "4", 1, 1));
    expect(1);
}
END_TEST

START_TEST(readers_need_no_order)
{
    CK_OK(hdrt_copy_htod(a, x, host, 64));
    order(b, a);
    CK_OK(hdrt_copy_dtod(b, y, x, 64));
    CK_OK(hdrt_copy_dtod(a, y + 64, x, 64));
    order(c, a);
    CK_OK(hdrt_copy_dtod(c, y + 128, x, 64));
    expect(0);
    CK_OK(hdrt_copy_htod(c, x + 63, host, 1)); /* b may still read */
    expect(1);
}
END_TEST

START_TEST(neighbours_need_no_order)
{
    for (unsigned i = 0; i < 100; i++) { /* at odd bytes */
        CK_OK(hdrt_fill(i & 1 ? a : b, x + i * 7, "1", 1, 7));
    }
    expect(0);
    CK_OK(hdrt_fill(c, x + 6, "1", 1, 2)); /* of b, and of a */
    expect(2);
    hdrt_region_side to = {y, NULL, 64, 0}, from = {0, host, 64, 0};
    CK_OK(hdrt_copy_region(a, &to, &from, 16, 8, 1)); /* the left of rows of 64 bytes */
    to.device += 16;
    from.host = host + 16;
    CK_OK(hdrt_copy_region(b, &to, &from, 48, 8, 1)); /* the right */
    expect(0);
    to.device -= 1;
    CK_OK(hdrt_copy_region(c, &to, &from, 1, 8, 1)); /* a column of a */
    expect(1);
}
END_TEST

START_TEST(the_host_orders)
{
    CK_OK(hdrt_fill(a, x, "1", 1, 64));
    CK_OK(hdrt_event_wait(rt, hdrt_queue_record(a), HDRT_FOREVER));
    CK_OK(hdrt_fill(b, x, "2", 1, 64));
    CK_OK(hdrt_queue_synchronize(b));
    CK_OK(hdrt_fill(c, x, "3", 1, 64));
    hdrt_event last = hdrt_queue_record(c);
    while (hdrt_event_query(rt, last) == HDRT_NOT_READY) {
        usleep(100);
    }
    CK_OK(hdrt_fill(a, x, "4", 1, 64));
    char bytes[64];
    CK_OK(hdrt_copy_dtoh(a, bytes, x, 64)); /* pageable: the bytes are there */
    CK_OK(hdrt_fill(b, x, "5", 1, 64));
    expect(0);
}
END_TEST

static void fill_from_host(void *argument)
{
    (void)argument;
    CK_OK(hdrt_fill(c, x, "3", 1, 64)); /* behind what is before the call in a */
}

START_TEST(a_host_call_orders)
{
    CK_OK(hdrt_fill(a, x, "1", 1, 64));
    CK_OK(hdrt_queue_host_call(a, fill_from_host, NULL));
    CK_OK(hdrt_queue_synchronize(a));
    order(b, c);
    CK_OK(hdrt_fill(b, x, "4", 1, 64));
    expect(0);
}
END_TEST

START_TEST(a_host_timeline_orders)
{
    hdrt_timeline *timeline;
    CK_OK(hdrt_timeline_create(rt, &timeline));
    CK_OK(hdrt_queue_wait(b, hdrt_timeline_event(timeline, 1)));
    CK_OK(hdrt_fill(b, x, "2", 1, 64));
    CK_OK(hdrt_queue_wait(c, hdrt_timeline_event(timeline, 2)));
    CK_OK(hdrt_fill(c, x + 64, "2", 1, 64));
    CK_OK(hdrt_fill(a, x, "1", 1, 128));
    CK_OK(hdrt_timeline_signal(timeline, 1)); /* nobody has waited for a */
    expect(1);
    CK_OK(hdrt_queue_synchronize(a));
    CK_OK(hdrt_timeline_signal(timeline, 2));
    expect(0);
    CK_OK(hdrt_device_synchronize(dev));
    hdrt_timeline_destroy(timeline);
}
END_TEST

/* What waits for what is not enqueued yet is judged when that is known. */
START_TEST(a_later_event_orders)
{
    CK_OK(hdrt_fill(a, x, "1", 1, 64));
    hdrt_event later = hdrt_queue_record(a);
    later.value += 2;
    CK_OK(hdrt_queue_wait(b, later));
    CK_OK(hdrt_fill(b, x, "2", 1, 128));
    CK_OK(hdrt_fill(a, x + 64, "3", 1, 64));
    order(c, b);
    CK_OK(hdrt_fill(c, x, "4", 1, 128));
    expect(0);
    CK_OK(hdrt_fill(a, x + 128, "3", 1, 64)); /* this is the one */
    expect(0);
    CK_OK(hdrt_fill(c, x + 128, "3", 1, 64)); /* b waits for it, and c for b */
    expect(0);
    CK_OK(hdrt_fill(a, x + 63, "5", 1, 1)); /* behind it in a: nothing orders it with b and c, who come first here */
    expect(1);
}
END_TEST

/* Two queues that share the only stream are in order by accident. */
START_TEST(sharing_a_stream_does_not_order)
{
    setenv("HDRT_STREAMS", "1", 1);
    setup();
    CK_OK(hdrt_fill(a, x, "1", 1, 64));
    CK_OK(hdrt_fill(b, x, "2", 1, 64));
    CK_OK(hdrt_device_synchronize(dev));
    expect(1);
    teardown();
}
END_TEST

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

START_TEST(kernels_touch_what_they_are_given)
{
    CK_OK(hdrt_launch(a, stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(x, 1u)));
    CK_OK(hdrt_launch(b, stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(y, 1u)));
    expect(0);
    CK_OK(hdrt_launch(c, stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(x + 64, 1u))); /* the whole allocation */
    expect(1);
    CK_OK(hdrt_device_synchronize(dev));

    CK_OK(hdrt_kernel_set_access(stamp, 0, HDRT_ACCESS_READ));
    CK_OK(hdrt_launch(a, stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(x, 1u)));
    CK_OK(hdrt_launch(b, stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(x, 1u)));
    expect(0);
    CK_OK(hdrt_fill(c, x, "1", 1, 1));
    expect(2);
    CK_OK(hdrt_device_synchronize(dev));

    CK_OK(hdrt_kernel_set_access(stamp, 0, HDRT_ACCESS_NONE));
    CK_OK(hdrt_launch(a, stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(x, 1u)));
    CK_OK(hdrt_fill(b, x, "1", 1, BYTES));
    expect(0);
    CK_OK(hdrt_device_synchronize(dev));

    hdrt_launch_options options = HDRT_LAUNCH_OPTIONS_INIT;
    hdrt_access_range ranges[] = {{x, 16, HDRT_ACCESS_WRITE}, {y, 16, HDRT_ACCESS_READ}, {y, BYTES, HDRT_ACCESS_NONE}};
    options.grid = hdrt_grid_1d(4, 4);
    options.accesses = ranges;
    options.access_count = 3;
    hdrt_args args = HDRT_ARGS(x, 4u, 1u);
    CK_OK(hdrt_launch_with(a, add, &options, args.pointers, args.kinds, args.count));
    ranges[0].ptr += 16;
    args = HDRT_ARGS(x + 16, 4u, 1u);
    CK_OK(hdrt_launch_with(b, add, &options, args.pointers, args.kinds, args.count));
    expect(0);
    CK_OK(hdrt_fill(c, x + 15, "1", 1, 2));
    expect(2);
    CK_OK(hdrt_fill(c, y + 15, "1", 1, 2));
    expect(2);
}
END_TEST

START_TEST(wrong_declarations_are_refused)
{
    hdrt_launch_options options = HDRT_LAUNCH_OPTIONS_INIT;
    hdrt_args args = HDRT_ARGS(x, 1u);
    CK_STATUS(hdrt_kernel_set_access(NULL, 0, HDRT_ACCESS_READ), HDRT_ERROR_INVALID_ARGUMENT);
    CK_STATUS(hdrt_kernel_set_access(stamp, 2, HDRT_ACCESS_READ), HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("kernel 'stamp' has 2 parameters");
    CK_STATUS(hdrt_kernel_set_access(stamp, 0, (hdrt_access)3), HDRT_ERROR_INVALID_ARGUMENT);
    options.grid = hdrt_grid_1d(1, 1);
    options.access_count = 1;
    CK_STATUS(hdrt_launch_with(a, stamp, &options, args.pointers, args.kinds, args.count),
              HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("1 accesses, but accesses is NULL");
    expect(0);
}
END_TEST

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Until the device has done what was handed over, by a way that the library does not see. */
static void wait_unseen(void)
{
    int (*push)(struct CUctx_st *), (*pop)(struct CUctx_st **), (*synchronize)(void);
    struct CUctx_st *context = hdrt_device_context(dev);
    *(void **)&push = hdrt_runtime_driver_symbol(rt, "cuCtxPushCurrent_v2");
    *(void **)&pop = hdrt_runtime_driver_symbol(rt, "cuCtxPopCurrent_v2");
    *(void **)&synchronize = hdrt_runtime_driver_symbol(rt, "cuCtxSynchronize");
    ck_assert(push && pop && synchronize);
    ck_assert_int_eq(push(context), 0);
    ck_assert_int_eq(synchronize(), 0);
    ck_assert_int_eq(pop(&context), 0);
}

START_TEST(memory_is_there_from_its_allocation_to_its_free)
{
    hdrt_ptr memory, again;
    CK_OK(hdrt_alloc(a, BYTES, &memory));
    wait_unseen();
    CK_OK(hdrt_fill(b, memory, "1", 1, 64)); /* before the allocation, for all that b knows */
    expect(1);
    order(a, b);
    CK_OK(hdrt_free(a, memory));
    expect(0);
    hdrt_queue *now = make_inline_queue("now");
    CK_OK(hdrt_alloc(now, BYTES, &memory));
    CK_OK(hdrt_event_wait(rt, hdrt_queue_record(now), HDRT_FOREVER));
    CK_OK(hdrt_fill(now, memory + 64, "1", 1, 64));
    wait_unseen();
    CK_OK(hdrt_free(a, memory)); /* for all that was said, it may still be used */
    expect(1);
    CK_OK(hdrt_queue_synchronize(a));
    hdrt_queue_destroy(now);
    CK_OK(hdrt_alloc(c, BYTES, &again)); /* other memory, though it may be the same address */
    CK_OK(hdrt_fill(c, again, "1", 1, BYTES));
    CK_OK(hdrt_free(c, again));
    expect(0);
}
END_TEST

START_TEST(pinned_memory_is_checked_too)
{
    CK_OK(hdrt_copy_dtoh(a, host, x, 64));
    CK_OK(hdrt_copy_htod(b, y, host + 64, 64));
    expect(0);
    CK_OK(hdrt_copy_htod(b, y, host + 63, 1));
    expect(1);
    for (int i = 0; i < 200; i++) { /* snapshots: the library's memory is its own */
        CK_OK(hdrt_write(i & 1 ? a : c, x + 1024 + (hdrt_ptr)(i & 1) * 64, &i, sizeof i));
    }
    expect(0);
}
END_TEST

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

START_TEST(graphs_are_checked_inside_and_outside)
{
    hdrt_graph *graph;
    hdrt_queue *both[] = {a, b};
    CK_OK(hdrt_graph_create(dev, NULL, &graph));
    CK_OK(hdrt_graph_begin(graph, both, 2));
    CK_OK(hdrt_fill(a, x, "1", 1, 64));
    order(b, a);
    CK_OK(hdrt_fill(b, x, "2", 1, 64));
    CK_OK(hdrt_fill(a, x + 64, "3", 1, 64));
    CK_OK(hdrt_graph_end(graph));
    expect(0);
    CK_OK(hdrt_graph_replay(c, graph));
    CK_OK(hdrt_graph_replay(c, graph)); /* one after the other */
    expect(0);
    CK_OK(hdrt_fill(a, x + 127, "4", 1, 1));
    expect(1);
    order(a, c);
    CK_OK(hdrt_fill(a, x + 127, "4", 1, 1));
    expect(0);
    CK_OK(hdrt_device_synchronize(dev));

    CK_OK(hdrt_graph_begin(graph, both, 2));
    CK_OK(hdrt_fill(a, x, "1", 1, 64));
    CK_OK(hdrt_fill(b, x + 63, "2", 1, 64));
    CK_OK(hdrt_graph_end(graph));
    ck_assert_msg(strstr(told[0], "a fill (node 1) writes") && strstr(told[0], "(byte 63 of the 4096 at ") &&
                      strstr(told[0], "which a fill (node 0) writes; in graph 'graph' no node orders"),
                  "%s", told[0]);
    expect(1);
    hdrt_graph_destroy(graph);
}
END_TEST

/* ---- what is said ------------------------------------------------------------------------------------------------ */

START_TEST(a_report_names_both)
{
    CK_OK(hdrt_launch(a, stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(x, 1u)));
    CK_OK(hdrt_copy_dtoh(b, host, x + 256, 16));
    ck_assert_uint_eq(told_count, 1);
    char expected[400];
    snprintf(expected, sizeof expected,
             "race: a copy to the host of queue 'b' (position 1) reads 0x%llx (byte 256 of the 4096 at 0x%llx), which "
             "kernel 'stamp' <<<(1,1,1), (1,1,1)>>> of queue 'a' (position %llu) writes; nothing that was enqueued orders "
             "them: let the later one's queue wait for an event",
             x + 256, x, (unsigned long long)hdrt_queue_record(a).value);
    ck_assert_msg(strncmp(told[0], expected, strlen(expected)) == 0, "%s\n%s", told[0], expected);
    expect(1);
}
END_TEST

START_TEST(only_order_can_be_checked)
{
    hdrt_runtime *runtime;
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    options.driver = HDRT_DRIVER_NONE;
    setenv("HDRT_CHECK", "everything", 1);
    CK_STATUS(hdrt_runtime_create(&options, &runtime), HDRT_ERROR_INVALID_ARGUMENT);
    CK_MESSAGE("HDRT_CHECK is 'everything': the library checks 'order'");
    unsetenv("HDRT_CHECK");
    CK_OK(hdrt_runtime_create(&options, &runtime));
    ck_assert_uint_eq(hdrt_runtime_race_count(runtime), 0);
    ck_assert_uint_eq(hdrt_runtime_race_count(NULL), 0);
    hdrt_runtime_destroy(runtime);
}
END_TEST

/* Queues that have ended give their numbers away when the host knows that they are over. */
START_TEST(queues_come_and_go)
{
    for (int i = 0; i < 2000; i++) {
        hdrt_queue *queue = make_queue("short");
        CK_OK(hdrt_fill(queue, x, "1", 1, 64));
        if (i & 1) {
            CK_OK(hdrt_queue_synchronize(queue));
        } else {
            order(a, queue);
        }
        hdrt_queue_destroy(queue);
        CK_OK(hdrt_queue_synchronize(a));
    }
    expect(0);
    hdrt_queue *queue = make_queue("short");
    CK_OK(hdrt_fill(queue, x, "1", 1, 64));
    hdrt_event last = hdrt_queue_record(queue);
    hdrt_queue_destroy(queue);
    CK_OK(hdrt_fill(a, x, "1", 1, 64)); /* it is gone, and what it did is not */
    expect(1);
    CK_OK(hdrt_queue_wait(b, last));
    order(b, a);
    CK_OK(hdrt_fill(b, x, "1", 1, 64));
    expect(0);
}
END_TEST

/* ---- random programs --------------------------------------------------------------------------------------------- */

/* race_programs.h says what they are. */
enum { PROGRAMS = 500 };

typedef enum operation_kind { FILL, COPY_TO_HOST, COPY, KERNEL } operation_kind;

static const program_access kinds[] = {
    [FILL] = PROGRAM_WRITES,
    [COPY_TO_HOST] = PROGRAM_READS,
    [COPY] = PROGRAM_COPIES,
    [KERNEL] = PROGRAM_COPIES,
};

static void enqueue(const program *p, hdrt_queue **queues, const hdrt_ptr *buffers)
{
    hdrt_event events[PROGRAM_MOST];
    for (unsigned i = 0; i < p->count; i++) {
        const program_operation *o = &p->operations[i];
        hdrt_queue *queue = queues[o->lane];
        hdrt_ptr from = buffers[o->read.buffer] + o->read.first, to = buffers[o->write.buffer] + o->write.first;
        hdrt_access_range ranges[] = {{from, o->read.count, HDRT_ACCESS_READ}, {to, o->write.count, HDRT_ACCESS_WRITE}};
        hdrt_launch_options options = HDRT_LAUNCH_OPTIONS_INIT;
        hdrt_args args = HDRT_ARGS(to, 0u, 0u);
        for (unsigned j = 0; j < i; j++) {
            if (o->before >> j & 1) {
                CK_OK(hdrt_queue_wait(queue, events[j]));
            }
        }
        switch ((operation_kind)o->kind) {
        case FILL: CK_OK(hdrt_fill(queue, to, "1", 1, o->write.count)); break;
        case COPY_TO_HOST: CK_OK(hdrt_copy_dtoh(queue, host + i * PROGRAM_BUFFER_BYTES, from, o->read.count)); break;
        case COPY: CK_OK(hdrt_copy_dtod(queue, to, from, o->read.count)); break;
        case KERNEL:
            options.grid = hdrt_grid_1d(1, 1);
            options.accesses = ranges;
            options.access_count = 2;
            CK_OK(hdrt_launch_with(queue, add, &options, args.pointers, args.kinds, args.count));
            break;
        }
        events[i] = hdrt_queue_record(queue);
    }
}

START_TEST(random_programs)
{
    program p;
    hdrt_ptr buffers[PROGRAM_BUFFERS];
    hdrt_queue *queues[PROGRAM_LANES] = {a, b, c, make_queue("d")};
    for (unsigned i = 0; i < PROGRAM_BUFFERS; i++) {
        CK_OK(hdrt_alloc(a, PROGRAM_BUFFER_BYTES, &buffers[i]));
    }
    for (unsigned seed = 1; seed <= PROGRAMS; seed++) {
        program_generator generator = {kinds, sizeof kinds / sizeof kinds[0], PROGRAM_MOST,
                                       seed * UINT64_C(0x9e3779b97f4a7c15)};
        program_draw(&generator, &p);
        CK_OK(hdrt_device_synchronize(dev));
        uint64_t before = hdrt_runtime_race_count(rt);
        enqueue(&p, queues, buffers);
        ck_assert_msg(hdrt_runtime_race_count(rt) == before, "program %u has no race: %s", seed, told[0]);
        CK_OK(hdrt_device_synchronize(dev));
        program_remove_edge(&generator, &p);
        enqueue(&p, queues, buffers);
        ck_assert_msg(hdrt_runtime_race_count(rt) > before, "program %u has a race", seed);
        told_count = 0;
    }
    CK_OK(hdrt_device_synchronize(dev));
    for (unsigned i = 0; i < PROGRAM_BUFFERS; i++) {
        CK_OK(hdrt_free(a, buffers[i]));
    }
    hdrt_queue_destroy(queues[3]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("races");
    TCase *all = tcase_create("all"), *alone = tcase_create("alone");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_set_timeout(all, 60);
    tcase_add_test(all, an_event_orders);
    tcase_add_test(all, a_wait_for_what_is_over_orders_on);
    tcase_add_test(all, an_earlier_event_is_not_enough);
    tcase_add_test(all, readers_need_no_order);
    tcase_add_test(all, neighbours_need_no_order);
    tcase_add_test(all, the_host_orders);
    tcase_add_test(all, a_host_call_orders);
    tcase_add_test(all, a_host_timeline_orders);
    tcase_add_test(all, a_later_event_orders);
    tcase_add_test(all, kernels_touch_what_they_are_given);
    tcase_add_test(all, wrong_declarations_are_refused);
    tcase_add_test(all, memory_is_there_from_its_allocation_to_its_free);
    tcase_add_test(all, pinned_memory_is_checked_too);
    tcase_add_test(all, graphs_are_checked_inside_and_outside);
    tcase_add_test(all, a_report_names_both);
    tcase_add_test(all, queues_come_and_go);
    tcase_add_test(all, random_programs);
    suite_add_tcase(suite, all);
    tcase_add_test(alone, sharing_a_stream_does_not_order);
    tcase_add_test(alone, only_order_can_be_checked);
    suite_add_tcase(suite, alone);
    return run_suite(suite);
}
