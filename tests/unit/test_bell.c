/* SPDX-License-Identifier: MIT */
/* Waiting on the host by a word that the GPU writes (bell.h): what is asked and what is not, and where it cannot be had. */
#include "queue/bell.h"

#include "device_fixture.h"

#include <poll.h>

#include "device/device.h"
#include "jit/kernel.h"
#include "memory/memory.h"
#include "queue/commit.h"
#include "queue/pending.h"
#include "queue/scheduler.h"
#include "queue/wide.h"

#define ROUNDS 64
#define SET_RING "cuGraphExecBatchMemOpNodeSetParams" /* once for each launch that rings, but for the first */

static hdrt_module *module, *spinning;
static hdrt_kernel *stamp, *spin;
static hdrt_queue *queue;
static hdrt_ptr word;
static _Atomic uint32_t *flags; /* 16, each on a line of its own */

static void setup(void)
{
    setup_device();
    module = load_kernels();
    stamp = kernel_of(module, "stamp");
    spinning = load_spin(&spin);
    queue = make_inline_queue("rings");
    CK_OK(hdrt_alloc(queue, 4, &word));
    CK_OK(hdrt_host_alloc(dev, 16 * 64, (void **)&flags));
    memset((void *)flags, 0, 16 * 64);
    CK_OK(hdrt_device_synchronize(dev));
}

static void setup_without(void)
{
    setenv("HDSOFT_FAIL", "hide=cuStreamWriteValue64", 1);
    setup();
}

static void teardown(void)
{
    CK_OK(hdrt_host_free(dev, (void *)flags));
    CK_OK(hdrt_free(queue, word));
    hdrt_queue_destroy(queue);
    hdrt_module_destroy(spinning);
    hdrt_module_destroy(module);
    teardown_device();
}

static void enqueue_stamp(uint32_t value)
{
    CK_OK(hdrt_launch(queue, stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(word, value)));
}

static void enqueue_spin(unsigned flag)
{
    hdrt_ptr address = (hdrt_ptr)(uintptr_t)(flags + 16 * flag);
    CK_OK(hdrt_launch(queue, spin, hdrt_grid_1d(1, 1), HDRT_ARGS(address)));
}

static void open_spin(unsigned flag)
{
    atomic_store(flags + 16 * flag, 1);
}

static void check_stamp(uint32_t value)
{
    uint32_t read = 0;
    CK_OK(hdrt_copy_dtoh(queue, &read, word, sizeof read));
    CK_OK(hdrt_queue_synchronize(queue));
    ck_assert_uint_eq(read, value);
}

/* Launch and wait, so often; \return the marks that were recorded. */
static unsigned long long round_trips(void)
{
    unsigned long long before = calls_of("cuEventRecord");
    for (uint32_t i = 0; i < ROUNDS; i++) {
        enqueue_stamp(i);
        CK_OK(hdrt_queue_synchronize(queue));
    }
    return calls_of("cuEventRecord") - before;
}

/* Mostly without a mark and the asking for it; from when the kernel has a template, it rings itself. */
START_TEST(a_wait_is_told_by_memory)
{
    unsigned long long written = calls_of("cuStreamWriteValue64"), rings = calls_of(SET_RING);
    ck_assert_uint_le(round_trips(), ROUNDS / 2); /* the dispatcher marks what it finds when it looks */
    written = calls_of("cuStreamWriteValue64") - written;
    rings = calls_of(SET_RING) - rings;
    ck_assert_uint_ge(written, 2); /* nobody knew that somebody would wait */
    ck_assert_uint_ge(written + rings, ROUNDS / 4);
    ck_assert_uint_le(written + rings, ROUNDS + 2);
    check_stamp(ROUNDS - 1);
}
END_TEST

START_TEST(a_launch_that_is_waited_for_rings_itself)
{
    round_trips();
    unsigned long long written = calls_of("cuStreamWriteValue64"), rings = calls_of(SET_RING);
    ck_assert_uint_le(round_trips(), ROUNDS / 2);
    written = calls_of("cuStreamWriteValue64") - written;
    rings = calls_of(SET_RING) - rings;
    ck_assert_uint_ge(rings, ROUNDS / 4);
    ck_assert_uint_lt(written, rings);
    check_stamp(ROUNDS - 1);
}
END_TEST

/* A queue whose launches of `spin` ring, as far as can be. */
static void wait_for_spins(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        open_spin(0);
        enqueue_spin(0);
        CK_OK(hdrt_queue_synchronize(queue));
    }
    atomic_store(flags, 0);
}

static hdrt__stream *stream_of(void)
{
    return hdrt__points(queue)[0].stream;
}

/* \return whether the launch rings. */
static bool spin_rings(unsigned flag)
{
    unsigned long long rings = calls_of(SET_RING);
    enqueue_spin(flag);
    return calls_of(SET_RING) > rings;
}

/* What follows it is no part of what it tells, and is the last time that it rings unasked. */
START_TEST(who_does_not_wait_is_not_rung_for)
{
    unsigned rang = 0;
    for (int i = 0; i < 10; i++) {
        wait_for_spins();
        bool rings = spin_rings(0);
        rang += rings;
        hdrt_event first = hdrt_queue_record(queue);
        uint32_t value = (uint32_t)i;
        CK_OK(hdrt_launch(queue, stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(word, value)));
        enqueue_spin(1);
        open_spin(0);
        if (rings) { /* else nothing tells of the first but what tells of all */
            CK_OK(hdrt_event_wait(rt, first, (uint64_t)patience_ms() * 1000000));
            CK_STATUS(hdrt_event_query(rt, hdrt_queue_record(queue)), HDRT_NOT_READY);
        }
        open_spin(1);
        CK_OK(hdrt_queue_synchronize(queue));
        ck_assert(!spin_rings(0)); /* the one before it was not waited for by itself */
        CK_OK(hdrt_queue_synchronize(queue));
        check_stamp(value);
        atomic_store(flags + 16, 0);
    }
    ck_assert_uint_ge(rang, 1);
}
END_TEST

/* \return whether the bell was rung, which is then for once, and others who look ask nothing; else the dispatcher had looked
 * first, and left a mark. */
static bool wait_long(unsigned flag)
{
    unsigned long long written = calls_of("cuStreamWriteValue64"), asked = calls_of("cuEventQuery");
    unsigned long long recorded = calls_of("cuEventRecord");
    enqueue_spin(flag);
    hdrt_event event = hdrt_queue_record(queue);
    for (int i = 0; i < 3; i++) {
        CK_STATUS(hdrt_event_wait(rt, event, 3000000), HDRT_TIMEOUT);
        CK_STATUS(hdrt_event_query(rt, event), HDRT_NOT_READY);
    }
    bool rung = calls_of("cuStreamWriteValue64") > written;
    if (rung) {
        ck_assert_uint_eq(calls_of("cuStreamWriteValue64"), written + 1);
        ck_assert_uint_eq(calls_of("cuEventQuery"), asked);
    }
    open_spin(flag);
    CK_OK(hdrt_event_wait(rt, event, (uint64_t)patience_ms() * 1000000));
    ck_assert(!rung || calls_of("cuEventRecord") == recorded);
    return rung;
}

START_TEST(a_long_wait_rings_once)
{
    unsigned rung = 0;
    for (unsigned flag = 0; flag < 8; flag++) {
        rung += wait_long(flag);
    }
    ck_assert_uint_ge(rung, 2);
}
END_TEST

/* Rung for the first, which is told; what came after it is another matter. */
START_TEST(later_work_is_not_told)
{
    enqueue_spin(0);
    hdrt_event first = hdrt_queue_record(queue);
    CK_STATUS(hdrt_event_wait(rt, first, 1000000), HDRT_TIMEOUT);
    enqueue_spin(1);
    enqueue_stamp(7);
    hdrt_event last = hdrt_queue_record(queue);
    open_spin(0);
    CK_OK(hdrt_event_wait(rt, first, (uint64_t)patience_ms() * 1000000));
    CK_STATUS(hdrt_event_wait(rt, last, 3000000), HDRT_TIMEOUT);
    open_spin(1);
    CK_OK(hdrt_event_wait(rt, last, (uint64_t)patience_ms() * 1000000));
    check_stamp(7);
}
END_TEST

/* Who wants no more than what it was rung for is not told with what followed. */
START_TEST(what_follows_comes_after_a_mark)
{
    hdrt_queue *other = make_queue("other");
    enqueue_spin(0);
    hdrt_event first = hdrt_queue_record(queue);
    CK_STATUS(hdrt_event_wait(rt, first, 1000000), HDRT_TIMEOUT);
    enqueue_spin(1);
    CK_OK(hdrt_queue_wait(other, first));
    uint32_t value = 9;
    CK_OK(hdrt_launch(other, stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(word, value)));
    open_spin(0);
    hdrt_status status = hdrt_event_wait(rt, hdrt_queue_record(other), (uint64_t)patience_ms() * 1000000);
    open_spin(1);
    ck_assert_int_eq(status, HDRT_OK);
    check_stamp(9);
    hdrt_queue_destroy(other);
}
END_TEST

typedef struct waiter {
    pthread_t thread;
    hdrt_event event;
    hdrt_status status;
} waiter;

static void *wait_for_it(void *argument)
{
    waiter *me = argument;
    me->status = hdrt_event_wait(rt, me->event, (uint64_t)patience_ms() * 1000000);
    return NULL;
}

/* Many who wait for one after the other in one stream: some ring, for others there are marks. */
START_TEST(many_wait_in_one_stream)
{
    waiter waiters[16];
    for (unsigned i = 0; i < 16; i++) {
        enqueue_spin(i);
        waiters[i].event = hdrt_queue_record(queue);
        ck_assert_int_eq(pthread_create(&waiters[i].thread, NULL, wait_for_it, &waiters[i]), 0);
    }
    for (unsigned i = 0; i < 16; i++) {
        CK_STATUS(hdrt_event_query(rt, waiters[i].event), HDRT_NOT_READY);
        open_spin(i);
    }
    for (unsigned i = 0; i < 16; i++) {
        pthread_join(waiters[i].thread, NULL);
        ck_assert_int_eq(waiters[i].status, HDRT_OK);
    }
}
END_TEST

/* Somebody was promised to be told of the first, and somebody else waits for all. */
START_TEST(earlier_marks_are_still_asked_for)
{
    waiter all;
    int fd;
    enqueue_spin(0);
    CK_OK(hdrt_event_notify_fd(rt, hdrt_queue_record(queue), &fd));
    usleep(50000); /* marked meanwhile */
    enqueue_spin(1);
    all.event = hdrt_queue_record(queue);
    ck_assert_int_eq(pthread_create(&all.thread, NULL, wait_for_it, &all), 0);
    usleep(20000);
    open_spin(0);
    struct pollfd told = {.fd = fd, .events = POLLIN};
    int ready = poll(&told, 1, patience_ms());
    open_spin(1);
    pthread_join(all.thread, NULL);
    ck_assert_int_eq(ready, 1);
    ck_assert_int_eq(all.status, HDRT_OK);
    close(fd);
}
END_TEST

/* The driver says that the stream is through, when the word was not written; what pends there has not even begun. */
START_TEST(what_pends_is_not_complete)
{
    hdrt_queue *other = make_queue("pends");
    hdrt__scope scope;
    uint32_t value = 5;
    enqueue_spin(0);
    CK_STATUS(hdrt_event_wait(rt, hdrt_queue_record(queue), 1000000), HDRT_TIMEOUT);
    hdrt__stream *stream = stream_of();
    uint64_t rung = atomic_load(&stream->bell.rung), asked = rung;
    ck_assert(hdrt__committer_take(other, HDRT__COMMITTER_NONE)); /* this thread plays the dispatcher */
    CK_OK(hdrt_launch(other, stamp, hdrt_grid_1d(1, 1), HDRT_ARGS(word, value)));
    pthread_mutex_lock(&stream->commit);
    ck_assert(hdrt__stream_reserve_flights(stream, 1));
    ck_assert(hdrt__pending_add(stream, other, 1, hdrt__ring_ahead(&other->ring, 0)));
    hdrt__stream_fly(stream, other, 1);
    open_spin(0);
    while (hdrt__bell_heard(stream) < rung) {
        usleep(100);
    }
    atomic_store(stream->scheduler->bells[stream->entry.index]->host, 0); /* before anybody heard it */
    usleep(100);                                                          /* and it is overdue */
    pthread_mutex_unlock(&stream->commit);
    CK_OK(hdrt__stream_ask(stream, NULL, 0, &asked, true));
    pthread_mutex_lock(&stream->commit);
    ck_assert(!stream->is_pending || hdrt__stream_outstanding(stream));
    CK_OK(hdrt__device_enter(dev, &scope));
    CK_OK(hdrt__pending_flush(stream));
    hdrt__device_leave(dev, &scope);
    pthread_mutex_unlock(&stream->commit);
    hdrt__timeline_commit(other->entry.timeline, 1);
    hdrt__wide_finish(other);
    hdrt__committer_leave(other);
    CK_OK(hdrt__stream_poll(stream, UINT64_MAX));
    CK_OK(hdrt_device_synchronize(dev));
    check_stamp(5);
    hdrt_queue_destroy(other);
}
END_TEST

/* After the fault the word is never written; the driver says so when it is asked. */
START_TEST(a_fault_is_not_waited_for)
{
    enqueue_spin(0);
    CK_OK(hdrt_launch(queue, kernel_of(module, "fault"), hdrt_grid_1d(1, 1), HDRT_ARGS()));
    hdrt_event event = hdrt_queue_record(queue);
    unsigned long long written = calls_of("cuStreamWriteValue64");
    CK_STATUS(hdrt_event_wait(rt, event, 1000000), HDRT_TIMEOUT);
    ck_assert_uint_le(calls_of("cuStreamWriteValue64"), written + 1);
    open_spin(0);
    CK_STATUS(hdrt_event_wait(rt, event, (uint64_t)patience_ms() * 1000000), HDRT_ERROR_DEVICE_LOST);
}
END_TEST

/* Two that are waited for, and then one that is not: to ring for it was wrong once, and is not tried each time. */
START_TEST(a_pattern_that_misleads_is_learned)
{
    round_trips();
    unsigned long long rings = calls_of(SET_RING);
    for (uint32_t i = 0; i < 50; i++) {
        for (int alone = 0; alone < 3; alone++) {
            enqueue_stamp(i);
            if (alone < 2) {
                CK_OK(hdrt_queue_synchronize(queue));
            }
        }
        enqueue_stamp(i);
        CK_OK(hdrt_queue_synchronize(queue));
    }
    ck_assert_uint_le(calls_of(SET_RING), rings + 6);
    for (uint32_t i = 0; i < 300; i++) { /* and when it is over it is forgotten */
        enqueue_stamp(i);
        CK_OK(hdrt_queue_synchronize(queue));
    }
    ck_assert_uint_ge(calls_of(SET_RING), rings + 50);
    check_stamp(299);
}
END_TEST

/* No memory for a while, say. */
START_TEST(a_build_that_fails_is_tried_again)
{
    inject("cuGraphInstantiateWithFlags:p1=2");
    round_trips();
    inject(NULL);
    ck_assert_uint_eq(calls_of(SET_RING), 0);
    for (int i = 0; i < 40; i++) {
        round_trips();
    }
    ck_assert_uint_ge(calls_of(SET_RING), ROUNDS);
    check_stamp(ROUNDS - 1);
}
END_TEST

/* The same where the launch was to ring. */
START_TEST(a_fault_does_not_ring)
{
    wait_for_spins();
    ck_assert_uint_ge(calls_of(SET_RING), ROUNDS / 4); /* so the next one is expected to be waited for */
    hdrt_ptr nowhere = 64;
    CK_OK(hdrt_launch(queue, spin, hdrt_grid_1d(1, 1), HDRT_ARGS(nowhere)));
    hdrt_event event = hdrt_queue_record(queue);
    CK_STATUS(hdrt_event_wait(rt, event, (uint64_t)patience_ms() * 1000000), HDRT_ERROR_DEVICE_LOST);
}
END_TEST

/* No template rings then, and it is not tried again. Those that do not ring stay. */
static void refuse(const char *call, const char *plan)
{
    unsigned long long tried = calls_of(call), graphs = calls_of("cuGraphLaunch");
    inject(plan);
    round_trips();
    inject(NULL);
    round_trips();
    ck_assert_uint_eq(calls_of(call), tried + 1);
    ck_assert_uint_ge(calls_of("cuGraphLaunch"), graphs + ROUNDS);
    check_stamp(ROUNDS - 1);
}

START_TEST(a_node_that_is_refused_is_done_without)
{
    refuse("cuGraphAddBatchMemOpNode", "cuGraphAddBatchMemOpNode:p1=801");
    ck_assert_uint_eq(calls_of(SET_RING), 0);
}
END_TEST

START_TEST(a_number_that_is_refused_is_done_without)
{
    round_trips();
    refuse(SET_RING, SET_RING ":p1=1");
}
END_TEST

START_TEST(a_write_that_is_refused_leaves_marks)
{
    unsigned long long written = calls_of("cuStreamWriteValue64");
    inject("cuStreamWriteValue64:p1=801");
    ck_assert_uint_ge(round_trips(), ROUNDS);
    inject(NULL);
    ck_assert_uint_le(calls_of("cuStreamWriteValue64"), written + 1);
    check_stamp(ROUNDS - 1);
}
END_TEST

static hdrt_queue *make_exclusive(void)
{
    hdrt_queue *exclusive;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.exclusive = true;
    options.submission = HDRT_SUBMISSION_INLINE;
    CK_OK(hdrt_queue_create(dev, &options, &exclusive));
    return exclusive;
}

/* No word can be had: those that there are were taken. */
START_TEST(without_memory_there_are_marks)
{
    hdrt_queue *mine = queue;
    hdrt__memory *memory = mine->scheduler->memory;
    hdrt__word *words = NULL, *taken;
    hdrt__scope scope;
    inject("cuMemHostAlloc:p1=2");
    CK_OK(hdrt__device_enter(dev, &scope));
    while (hdrt__word_take(memory, &taken) == HDRT_OK) {
        taken->next = words;
        words = taken;
    }
    hdrt__device_leave(dev, &scope);
    char before[256];
    snprintf(before, sizeof before, "%s", hdrt_last_error());
    queue = make_exclusive();
    ck_assert_uint_ge(round_trips(), ROUNDS);
    inject(NULL);
    ck_assert_str_eq(hdrt_last_error(), before); /* nothing failed */
    hdrt_queue_destroy(queue);
    for (queue = mine; words; words = taken) {
        taken = words->next;
        hdrt__word_give(memory, words);
    }
    check_stamp(ROUNDS - 1);
}
END_TEST

START_TEST(a_driver_without_writes_has_marks)
{
    ck_assert_uint_ge(round_trips(), ROUNDS);
    check_stamp(ROUNDS - 1);
}
END_TEST

/* One kernel in two streams at once: each launch tells of its own stream. */
START_TEST(streams_have_words_of_their_own)
{
    hdrt_queue *mine = queue, *both[2] = {make_exclusive(), make_exclusive()};
    unsigned rang = 0;
    for (int i = 0; i < 10; i++) {
        for (int q = 0; q < 2; q++) {
            queue = both[q];
            wait_for_spins();
        }
        hdrt_event events[2];
        for (unsigned q = 0; q < 2; q++) {
            queue = both[q];
            rang += spin_rings(q);
            events[q] = hdrt_queue_record(queue);
        }
        open_spin(1);
        CK_OK(hdrt_event_wait(rt, events[1], (uint64_t)patience_ms() * 1000000));
        CK_STATUS(hdrt_event_wait(rt, events[0], 300000), HDRT_TIMEOUT);
        open_spin(0);
        CK_OK(hdrt_event_wait(rt, events[0], (uint64_t)patience_ms() * 1000000));
        atomic_store(flags + 16, 0);
    }
    ck_assert_uint_ge(rang, 2);
    hdrt_queue_destroy(both[0]);
    hdrt_queue_destroy(both[1]);
    queue = mine;
}
END_TEST

/* The stream that has the index next begins with a larger number than its word can still get. */
START_TEST(an_index_goes_on)
{
    hdrt_queue *mine = queue;
    for (int i = 0; i < 20; i++) {
        queue = make_exclusive();
        enqueue_stamp((uint32_t)i);
        CK_OK(hdrt_queue_synchronize(queue));
        atomic_store(flags, 0);
        enqueue_spin(0);
        hdrt_event event = hdrt_queue_record(queue);
        CK_STATUS(hdrt_event_wait(rt, event, 300000), HDRT_TIMEOUT); /* not told by what the word had before */
        hdrt_queue_destroy(queue);
        CK_STATUS(hdrt_event_query(rt, event), HDRT_NOT_READY);
        open_spin(0);
        CK_OK(hdrt_event_wait(rt, event, (uint64_t)patience_ms() * 1000000));
        CK_OK(hdrt_device_synchronize(dev));
    }
    queue = mine;
    check_stamp(19);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bell");
    TCase *rung = tcase_create("rung"), *without = tcase_create("without");
    tcase_add_checked_fixture(rung, setup, teardown);
    tcase_set_timeout(rung, 60);
    tcase_add_test(rung, a_wait_is_told_by_memory);
    tcase_add_test(rung, a_launch_that_is_waited_for_rings_itself);
    tcase_add_test(rung, who_does_not_wait_is_not_rung_for);
    tcase_add_test(rung, streams_have_words_of_their_own);
    tcase_add_test(rung, a_pattern_that_misleads_is_learned);
    tcase_add_test(rung, a_build_that_fails_is_tried_again);
    tcase_add_test(rung, a_fault_does_not_ring);
    tcase_add_test(rung, a_node_that_is_refused_is_done_without);
    tcase_add_test(rung, a_number_that_is_refused_is_done_without);
    tcase_add_test(rung, a_long_wait_rings_once);
    tcase_add_test(rung, later_work_is_not_told);
    /* Often, since it may be the dispatcher's mark that tells. */
    tcase_add_loop_test(rung, what_follows_comes_after_a_mark, 0, 4);
    tcase_add_loop_test(rung, earlier_marks_are_still_asked_for, 0, 4);
    tcase_add_test(rung, what_pends_is_not_complete);
    tcase_add_test(rung, many_wait_in_one_stream);
    tcase_add_test(rung, a_fault_is_not_waited_for);
    tcase_add_test(rung, a_write_that_is_refused_leaves_marks);
    tcase_add_test(rung, without_memory_there_are_marks);
    tcase_add_test(rung, an_index_goes_on);
    add_soft_tcase(suite, rung, "counted driver calls and failures");
    tcase_add_checked_fixture(without, setup_without, teardown);
    tcase_add_test(without, a_driver_without_writes_has_marks);
    add_soft_tcase(suite, without, "a driver without an entry point");
    return run_suite(suite);
}
