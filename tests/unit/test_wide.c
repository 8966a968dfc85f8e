/* SPDX-License-Identifier: MIT */
/*
 * A piece of kernels side by side between its launch and its end (wide.h, together.h): this file plays the dispatcher,
 * which hands the next piece over before it finishes the last one.
 */
#include "queue/wide.h"

#include "device_fixture.h"

#include "base/number.h"
#include "device/device.h"
#include "jit/kernel.h"
#include "queue/commit.h"
#include "queue/scheduler.h"
#include "queue/together.h"

#define COUNT HDRT__TEMPLATE_WIDE_LEAST

static hdrt_module *module, *spinning, *meeting;
static hdrt_kernel *stamp, *spin, *meet;
static hdrt_queue *queues[COUNT];
static hdrt_ptr words;
static hdrt__wide *wide;
static hdrt__stream *stream;
static hdrt__scope scope;

/* Waits until n of them are there, but not for ever: then it says so in the second word. */
static const char meet_ptx[] =
    ".version 7.4\n.target sm_75\n.address_size 64\n.visible .entry meet(.param .u64 p, .param .u32 n)\n{\n .reg .pred %q;\n"
    " .reg .b32 %r<3>;\n .reg .b64 %d<4>;\n ld.param.u64 %d1, [p];\n ld.param.u32 %r1, [n];\n"
    " cvta.to.global.u64 %d1, %d1;\n atom.global.add.u32 %r2, [%d1], 1;\n mov.u64 %d2, %globaltimer;\n"
    " add.u64 %d2, %d2, 5000000000;\nAGAIN:\n ld.volatile.global.u32 %r2, [%d1];\n setp.ge.u32 %q, %r2, %r1;\n"
    " @%q ret;\n mov.u64 %d3, %globaltimer;\n setp.lt.u64 %q, %d3, %d2;\n @%q bra AGAIN;\n mov.u32 %r2, 1;\n"
    " st.global.u32 [%d1+4], %r2;\n ret;\n}\n";

/* The same, but if w is not 0 it waits first for the kernels that it depends on (no others may do that for it). */
static const char dependent_ptx[] =
    ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry dependent(.param .u64 p, .param .u32 n, .param .u32 w)\n{\n"
    " .reg .pred %q;\n .reg .b32 %r<3>;\n .reg .b64 %d<4>;\n ld.param.u32 %r1, [w];\n setp.eq.u32 %q, %r1, 0;\n"
    " @%q bra MEET;\n griddepcontrol.wait;\nMEET:\n ld.param.u64 %d1, [p];\n ld.param.u32 %r1, [n];\n"
    " cvta.to.global.u64 %d1, %d1;\n atom.global.add.u32 %r2, [%d1], 1;\n mov.u64 %d2, %globaltimer;\n"
    " add.u64 %d2, %d2, 5000000000;\nAGAIN:\n ld.volatile.global.u32 %r2, [%d1];\n setp.ge.u32 %q, %r2, %r1;\n"
    " @%q ret;\n mov.u64 %d3, %globaltimer;\n setp.lt.u64 %q, %d3, %d2;\n @%q bra AGAIN;\n mov.u32 %r2, 1;\n"
    " st.global.u32 [%d1+4], %r2;\n ret;\n}\n";

static void setup(void)
{
    setup_device();
    module = load_kernels();
    stamp = kernel_of(module, "stamp");
    spinning = load_spin(&spin);
    CK_OK(hdrt_module_load(dev, meet_ptx, sizeof meet_ptx - 1, NULL, &meeting));
    meet = kernel_of(meeting, "meet");
    for (uint32_t i = 0; i < COUNT; i++) {
        queues[i] = make_queue("piece");
    }
    CK_OK(hdrt_alloc(queues[0], 8, &words));
    CK_OK(hdrt_device_synchronize(dev));
    wide = hdrt__wide_create();
    CK_OK(hdrt__device_enter(dev, &scope));
    CK_OK(hdrt__scheduler_stream(queues[0]->scheduler, queues[0]->class, &stream));
}

static void setup_one_stream(void)
{
    setenv("HDRT_STREAMS", "1", 1); /* so that whatever else is launched comes into the piece's stream */
    setup();
}

static void teardown(void)
{
    hdrt__device_leave(dev, &scope);
    hdrt__wide_destroy(wide);
    CK_OK(hdrt_free(queues[0], words));
    for (uint32_t i = 0; i < COUNT; i++) {
        hdrt_queue_destroy(queues[i]);
    }
    hdrt_module_destroy(meeting);
    hdrt_module_destroy(spinning);
    hdrt_module_destroy(module);
    teardown_device();
}

/* A launch in each queue, whose committer this thread is, handed over together. \return whether that built something. */
static bool hand_over_kernel(hdrt_kernel *kernel, uint32_t value)
{
    uint32_t launched = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        ck_assert(hdrt__committer_take(queues[i], HDRT__COMMITTER_NONE));
        uint32_t awaits = on_cuda();
        CK_OK(kernel->parameter_count == 3
                  ? hdrt_launch(queues[i], kernel, hdrt_grid_1d(1, 1), HDRT_ARGS(words, value, awaits))
                  : hdrt_launch(queues[i], kernel, hdrt_grid_1d(1, 1), HDRT_ARGS(words, value)));
        ck_assert(hdrt__wide_may(queues[i]));
    }
    bool ready = hdrt__wide_is_ready(wide, queues, COUNT);
    for (int tries = 0; tries < 3 && !launched; tries++) { /* a template is made when it is wanted again */
        launched = hdrt__wide_hand_over(wide, stream, queues, COUNT);
    }
    ck_assert_uint_eq(launched, COUNT);
    return !ready;
}

static bool hand_over(void)
{
    return hand_over_kernel(stamp, 7);
}

static void finish_only(void)
{
    hdrt__wide_mark(stream);
    for (uint32_t i = 0; i < COUNT; i++) {
        hdrt__wide_finish(queues[i]);
    }
}

static void leave_all(void)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        hdrt__committer_leave(queues[i]);
        CK_OK(hdrt_queue_synchronize(queues[i]));
    }
}

static void finish(void)
{
    finish_only();
    leave_all();
}

/* The next piece may take a build, and whoever waits for this one must not wait for that. */
START_TEST(a_piece_can_be_waited_for_at_once)
{
    ck_assert(hand_over());
    for (uint32_t i = 0; i < COUNT; i++) {
        ck_assert_uint_eq(queues[i]->point_count, 1); /* what to ask */
        CK_OK(hdrt_event_wait(rt, hdrt_queue_record(queues[i]), (uint64_t)patience_ms() * 1000000));
    }
    finish();
    ck_assert(!hand_over()); /* and its template is ready for the next one */
    finish();
}
END_TEST

/* Its mark comes later, but before whatever else gets into the stream: that may last, or wait for the host. */
START_TEST(nothing_gets_before_its_mark)
{
    hdrt_queue *other = make_inline_queue("other");
    void *memory;
    CK_OK(hdrt_host_alloc(dev, 64, &memory));
    _Atomic uint32_t *flag = memory;
    hdrt_ptr address = (hdrt_ptr)(uintptr_t)memory;
    atomic_store(flag, 1);
    CK_OK(hdrt_launch(other, spin, hdrt_grid_1d(1, 1), HDRT_ARGS(address))); /* loaded and made ready */
    CK_OK(hdrt_queue_synchronize(other));
    atomic_store(flag, 0);
    hand_over();
    atomic_store(&other->scheduler->asked_at, hdrt__now_ns()); /* it asks, and so marks, no stream now */
    CK_OK(hdrt_launch(other, spin, hdrt_grid_1d(1, 1), HDRT_ARGS(address)));
    ck_assert_ptr_eq(hdrt__points(other)[0].stream, stream);
    hdrt_status status = hdrt_event_wait(rt, hdrt_queue_record(queues[COUNT - 1]), (uint64_t)patience_ms() * 1000000);
    atomic_store(flag, 1);
    ck_assert_int_eq(status, HDRT_OK);
    finish();
    CK_OK(hdrt_queue_synchronize(other));
    hdrt_queue_destroy(other);
    CK_OK(hdrt_host_free(dev, memory));
}
END_TEST

/* Whatever order they are launched in: none waits for another. */
static void check_at_once(hdrt_kernel *kernel)
{
    uint32_t seen[2] = {0, 0};
    CK_OK(hdrt_copy_htod(queues[0], words, seen, sizeof seen));
    CK_OK(hdrt_queue_synchronize(queues[0]));
    hand_over_kernel(kernel, COUNT);
    finish();
    CK_OK(hdrt_copy_dtoh(queues[0], seen, words, sizeof seen));
    CK_OK(hdrt_queue_synchronize(queues[0]));
    ck_assert_uint_eq(seen[0], COUNT);
    ck_assert_uint_eq(seen[1], 0);
}

START_TEST(all_of_a_piece_run_at_once)
{
    check_at_once(meet);
}
END_TEST

/* On a GPU these wait for the grids that they depend on, which are none: not for each other. */
START_TEST(what_waits_for_grids_waits_for_none)
{
    hdrt_module *depending;
    CK_OK(hdrt_module_load(dev, dependent_ptx, sizeof dependent_ptx - 1, NULL, &depending));
    hdrt_kernel *kernel = kernel_of(depending, "dependent");
    ck_assert(kernel->may_await_grids);
    ck_assert(!meet->may_await_grids);
    check_at_once(kernel);
    hdrt_module_destroy(depending);
}
END_TEST

/* Some of a kernel's launches are measured, the first ones among them, wherever in its stream they come, and however often
 * it is asked whether they are to be. */
START_TEST(some_launches_are_measured)
{
    for (int asked = 1; asked <= 3; asked++) {
        uint32_t measured = 0, first = 0;
        atomic_store(&stamp->measured, 0);
        atomic_store(&stamp->unmeasured, 0);
        atomic_store(&stamp->expected_us, 100000); /* the first one was asked for late */
        for (int i = 0; i < 64; i++) {
            uint64_t begin_ns = 0;
            CK_OK(hdrt_device_synchronize(dev));
            CK_OK(hdrt__stream_poll(stream, UINT64_MAX)); /* whatever was measured is over */
            ck_assert_uint_eq(hdrt__stream_outstanding(stream), 0);
            for (int j = 0; j < asked; j++) { /* for a template, and then for the kernel by itself */
                begin_ns = hdrt__stream_measure_from(stream, stamp);
            }
            pthread_mutex_lock(&stream->commit);
            hdrt__stream_measure(stream, stamp, begin_ns);
            pthread_mutex_unlock(&stream->commit);
            measured += begin_ns != 0;
            first += begin_ns != 0 && i < 4;
        }
        ck_assert_uint_eq(first, 4);
        ck_assert_uint_ge(measured, 10);
        ck_assert_uint_le(measured, 32);
        CK_OK(hdrt__stream_poll(stream, UINT64_MAX));
        ck_assert_uint_lt(atomic_load(&stamp->expected_us), 100000);
    }
}
END_TEST

/* Where streams are few pieces leave them to others too. */
START_TEST(few_streams_are_for_all)
{
    hdrt__scheduler *scheduler = queues[0]->scheduler;
    uint8_t class = queues[0]->class;
    ck_assert_uint_eq(scheduler->stream_limit, 1);
    ck_assert_ptr_eq(hdrt__scheduler_wide(scheduler, class, true), stream);
    ck_assert_ptr_eq(hdrt__scheduler_idle(scheduler, class), stream);
    hand_over();
    ck_assert_ptr_eq(hdrt__scheduler_wide(scheduler, class, false), stream); /* which has room for one more */
    finish();
}
END_TEST

/* One that becomes idle while another is looked for is not that other one; and single kernels go elsewhere. */
START_TEST(streams_for_pieces_are_different)
{
    hdrt__scheduler *scheduler = queues[0]->scheduler;
    uint8_t class = queues[0]->class;
    stream = hdrt__scheduler_wide(scheduler, class, true);
    ck_assert_ptr_nonnull(stream);
    ck_assert_ptr_ne(hdrt__scheduler_idle(scheduler, class), stream);
    hand_over();
    finish_only();
    ck_assert_int_eq(dev->driver->cuStreamSynchronize(stream->handle), HDCU_SUCCESS); /* of which the library is told nothing */
    ck_assert_ptr_nonnull(hdrt__scheduler_wide(scheduler, class, false)); /* the same, if the dispatcher has asked meanwhile */
    ck_assert_ptr_ne(scheduler->wide[class].streams[1], stream);
    leave_all();
}
END_TEST

/* A launch in each queue, whose committer this thread is, through the pieces. `us`: how long it is expected to take. */
static void add_together(hdrt__together *together, hdrt_queue **many, uint32_t count, hdrt_kernel *kernel, hdrt_ptr address,
                         uint32_t us)
{
    uint32_t value = 7;
    for (uint32_t i = 0; i < count; i++) {
        ck_assert(hdrt__committer_take(many[i], HDRT__COMMITTER_NONE));
        CK_OK(kernel == stamp ? hdrt_launch(many[i], kernel, hdrt_grid_1d(1, 1), HDRT_ARGS(address, value))
                              : hdrt_launch(many[i], kernel, hdrt_grid_1d(1, 1), HDRT_ARGS(address)));
        atomic_store(&kernel->expected_us, us);
        hdrt__queue_hold(many[i]);
        ck_assert(hdrt__together_add(together, many[i]));
    }
    while (hdrt__together_pause(together) != UINT64_MAX) {
        hdrt_queue *single = hdrt__together_next(together);
        if (single) {
            hdrt__queue_drain(single, 1, false);
            hdrt__committer_leave(single);
            hdrt__queue_drop(single);
        }
    }
    hdrt__together_finish(together);
}

/* \return how many commands that took, when all is over. */
static unsigned long long go_together(hdrt__together *together, hdrt_queue **many, uint32_t count)
{
    unsigned long long before = calls_of("cuGraphLaunch") + calls_of("cuLaunchKernel");
    add_together(together, many, count, stamp, words, 2 * HDRT__TOGETHER_LEAST_US);
    for (uint32_t i = 0; i < count; i++) {
        CK_OK(hdrt_queue_synchronize(many[i]));
    }
    return calls_of("cuGraphLaunch") + calls_of("cuLaunchKernel") - before;
}

/* What is left when all pieces are full is few, and goes like these where it can: one by one they may get behind others. */
START_TEST(the_last_few_are_a_piece_too)
{
    enum { MANY = HDRT__WIDE_LIMIT + 3 };
    hdrt_queue *many[MANY];
    hdrt__together *together = hdrt__together_create();
    unsigned long long commands = MANY;
    ck_assert_ptr_nonnull(together);
    for (uint32_t i = 0; i < MANY; i++) {
        many[i] = make_queue("many");
    }
    hand_over(); /* so there is a template for eight */
    finish();
    ck_assert_uint_ge(go_together(together, many, 3), 3); /* but so few by themselves are no piece */
    for (int round = 0; round < 50 && commands > 2; round++) { /* until that for a full piece is there too */
        commands = go_together(together, many, MANY);
    }
    ck_assert_uint_eq(commands, 2);
    hdrt__together_destroy(together);
    for (uint32_t i = 0; i < MANY; i++) {
        hdrt_queue_destroy(many[i]);
    }
}
END_TEST

/* In a steady flow nothing is what is left of many: each kernel goes by itself. */
START_TEST(one_at_a_time_is_no_piece)
{
    hdrt__together *together = hdrt__together_create();
    unsigned long long switched;
    uint32_t quiet = 0;
    ck_assert_ptr_nonnull(together);
    for (int round = 0; round < 8; round++) {
        go_together(together, queues, COUNT); /* now there is a template that could serve fewer */
    }
    for (int i = 0; i < 50; i++) {
        usleep(300);
        switched = calls_of("cuGraphNodeSetEnabled");
        go_together(together, queues, 1);
        quiet += calls_of("cuGraphNodeSetEnabled") == switched;
    }
    ck_assert_uint_eq(quiet, 50);
    hdrt__together_destroy(together);
}
END_TEST

/* As many pieces are in flight as may be, in as many streams. */
static void check_full(hdrt__scheduler *scheduler, uint8_t class)
{
    hdrt__stream **streams = scheduler->wide[class].streams;
    ck_assert_ptr_null(hdrt__scheduler_wide(scheduler, class, true));
    for (uint32_t i = 0; i < HDRT__WIDE_BRANCH_STREAMS; i++) {
        ck_assert_int_eq(streams[i] != NULL, i < HDRT__WIDE_STREAMS);
        for (uint32_t j = 0; j < i && i < HDRT__WIDE_STREAMS; j++) {
            ck_assert_ptr_ne(streams[i], streams[j]);
        }
        ck_assert_uint_eq(streams[i] ? hdrt__stream_outstanding(streams[i]) : HDRT__WIDE_DEPTH, HDRT__WIDE_DEPTH);
    }
}

/* Few are not held back until one of the streams for pieces is idle: perhaps that waits for them. */
START_TEST(few_are_not_held)
{
    enum { MANY = HDRT__WIDE_LIMIT, PIECES = HDRT__WIDE_STREAMS * HDRT__WIDE_DEPTH * COUNT, LONG_US = 1000000 };
    hdrt_queue *many[MANY];
    hdrt__together *together = hdrt__together_create();
    void *memory;
    CK_OK(hdrt_host_alloc(dev, 64, &memory));
    _Atomic uint32_t *flag = memory;
    hdrt_ptr address = (hdrt_ptr)(uintptr_t)memory;
    ck_assert_ptr_nonnull(together);
    for (uint32_t i = 0; i < MANY; i++) {
        many[i] = make_queue("many");
    }
    atomic_store(flag, 1);
    for (int round = 0; round < 4; round++) { /* a larger template is there, and free */
        add_together(together, many, MANY, spin, address, 2 * HDRT__TOGETHER_LEAST_US);
        for (uint32_t i = 0; i < MANY; i++) {
            CK_OK(hdrt_queue_synchronize(many[i]));
        }
    }
    for (int round = 0; round < 4; round++) {
        atomic_store(flag, round < 3); /* the last one spins until the host says so */
        for (uint32_t i = 0; i < PIECES; i += COUNT) {
            add_together(together, many + i, COUNT, spin, address, 2 * HDRT__TOGETHER_LEAST_US);
        }
        if (round == 3) {
            check_full(many[0]->scheduler, many[0]->class);
        }
        uint64_t begin = hdrt__now_ns();
        add_together(together, many + PIECES, 1, spin, address, LONG_US);
        ck_assert_uint_lt(hdrt__now_ns() - begin, LONG_US * UINT64_C(1000));
        atomic_store(flag, 1);
        for (uint32_t i = 0; i < MANY; i++) {
            CK_OK(hdrt_queue_synchronize(many[i]));
        }
    }
    hdrt__together_destroy(together);
    for (uint32_t i = 0; i < MANY; i++) {
        hdrt_queue_destroy(many[i]);
    }
    CK_OK(hdrt_host_free(dev, memory));
}
END_TEST

static uint64_t pieces_in_flight(const hdrt__scheduler *scheduler, uint8_t class)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < HDRT__WIDE_BRANCH_STREAMS; i++) {
        const hdrt__stream *one = scheduler->wide[class].streams[i];
        sum += one ? hdrt__stream_outstanding(one) : 0;
    }
    return sum;
}

/* A queue whose kernel was in a piece goes on elsewhere, so that the next piece does not wait for it. */
START_TEST(who_goes_on_leaves_the_pieces_stream)
{
    hdrt__together *together = hdrt__together_create();
    hdrt__scheduler *scheduler = queues[0]->scheduler;
    uint8_t class = queues[0]->class;
    uint32_t value = 3;
    void *memory;
    CK_OK(hdrt_host_alloc(dev, 64, &memory));
    _Atomic uint32_t *flag = memory;
    ck_assert_ptr_nonnull(together);
    for (int round = 0; round < 4; round++) {
        uint64_t until = hdrt__now_ns() + (uint64_t)patience_ms() * 1000000;
        atomic_store(flag, round < 3);
        add_together(together, queues, COUNT, spin, (hdrt_ptr)(uintptr_t)memory, 2 * HDRT__TOGETHER_LEAST_US);
        for (uint32_t i = 0; i < COUNT && round == 3; i++) {
            CK_OK(hdrt_fill(queues[i], words, &value, sizeof value, 1));
            while (atomic_load(&queues[i]->entry.timeline->committed) < hdrt_queue_record(queues[i]).value) {
                ck_assert_uint_lt(hdrt__now_ns(), until);
                usleep(100);
            }
        }
        ck_assert_uint_le(pieces_in_flight(scheduler, class), 1);
        atomic_store(flag, 1);
        for (uint32_t i = 0; i < COUNT; i++) {
            CK_OK(hdrt_queue_synchronize(queues[i]));
        }
    }
    hdrt__together_destroy(together);
    CK_OK(hdrt_host_free(dev, memory));
}
END_TEST

/* Others are awaited after many that came soon after many, and not for ever. */
START_TEST(others_are_awaited_where_they_came_again)
{
    hdrt__together *together = hdrt__together_create();
    uint64_t until = 0;
    ck_assert_ptr_nonnull(together);
    for (int tries = 0; tries < 100 && !until; tries++) { /* when there is a template, and the machine is not slow just then */
        usleep(3000);
        go_together(together, queues, COUNT);
        until = hdrt__together_awaited_until(together);
    }
    ck_assert_uint_ne(until, 0);
    ck_assert_uint_le(until, hdrt__now_ns() + 20000000);
    usleep(3000);
    go_together(together, queues, 3); /* not after few */
    ck_assert_uint_eq(hdrt__together_awaited_until(together), 0);
    usleep(30000);
    go_together(together, queues, COUNT); /* nor after many that came late */
    ck_assert_uint_eq(hdrt__together_awaited_until(together), 0);
    hdrt__together_destroy(together);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wide");
    TCase *anywhere = tcase_create("anywhere"), *one = tcase_create("one stream"), *streams = tcase_create("streams");
    tcase_add_checked_fixture(anywhere, setup, teardown);
    tcase_set_timeout(anywhere, 60);
    tcase_add_test(anywhere, all_of_a_piece_run_at_once);
    tcase_add_test(anywhere, what_waits_for_grids_waits_for_none);
    tcase_add_test(anywhere, some_launches_are_measured);
    tcase_add_test(anywhere, streams_for_pieces_are_different);
    suite_add_tcase(suite, anywhere);
    tcase_add_checked_fixture(one, setup_one_stream, teardown);
    tcase_set_timeout(one, 60);
    tcase_add_test(one, a_piece_can_be_waited_for_at_once);
    tcase_add_test(one, nothing_gets_before_its_mark);
    tcase_add_test(one, few_streams_are_for_all);
    add_soft_tcase(suite, one, "one stream");
    tcase_add_checked_fixture(streams, setup, teardown);
    tcase_set_timeout(streams, 60);
    tcase_add_test(streams, the_last_few_are_a_piece_too);
    tcase_add_test(streams, one_at_a_time_is_no_piece);
    tcase_add_test(streams, few_are_not_held);
    tcase_add_test(streams, who_goes_on_leaves_the_pieces_stream);
    tcase_add_test(streams, others_are_awaited_where_they_came_again);
    add_soft_tcase(suite, streams, "commands are counted");
    return run_suite(suite);
}
