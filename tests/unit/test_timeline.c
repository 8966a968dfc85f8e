/* SPDX-License-Identifier: MIT */
/* Timelines, events and host timelines, without a driver. */
#include <hdrt.h>

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "device/runtime.h"
#include "device/uses.h"
#include "failing_malloc.h"

static hdrt_runtime *runtime;

static void setup(void)
{
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    options.driver = HDRT_DRIVER_NONE;
    ck_assert_int_eq(hdrt_runtime_create(&options, &runtime), HDRT_OK);
}

static void teardown(void)
{
    hdrt_runtime_destroy(runtime);
}

/* ---- host timelines ---------------------------------------------------------------------------------------------- */

START_TEST(signal_completes_values_in_order)
{
    hdrt_timeline *timeline;
    ck_assert_int_eq(hdrt_timeline_create(runtime, &timeline), HDRT_OK);
    hdrt_event one = hdrt_timeline_event(timeline, 1), five = hdrt_timeline_event(timeline, 5);
    ck_assert_int_eq(hdrt_event_query(runtime, hdrt_timeline_event(timeline, 0)), HDRT_OK);
    ck_assert_int_eq(hdrt_event_query(runtime, one), HDRT_NOT_READY);
    ck_assert_int_eq(hdrt_timeline_signal(timeline, 4), HDRT_OK);
    ck_assert_int_eq(hdrt_event_query(runtime, one), HDRT_OK);
    ck_assert_int_eq(hdrt_event_query(runtime, five), HDRT_NOT_READY);
    ck_assert_int_eq(hdrt_timeline_signal(timeline, 4), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_timeline_signal(timeline, 3), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "must go up"));
    ck_assert_int_eq(hdrt_timeline_signal(timeline, 5), HDRT_OK);
    ck_assert_int_eq(hdrt_event_wait(runtime, five, HDRT_FOREVER), HDRT_OK);
    hdrt_timeline_destroy(timeline);
    ck_assert_int_eq(hdrt_event_query(runtime, five), HDRT_OK);
}
END_TEST

START_TEST(failure_reaches_only_what_was_not_signalled)
{
    hdrt_timeline *timeline;
    ck_assert_int_eq(hdrt_timeline_create(runtime, &timeline), HDRT_OK);
    ck_assert_int_eq(hdrt_timeline_signal(timeline, 2), HDRT_OK);
    ck_assert_int_eq(hdrt_timeline_fail(timeline, HDRT_OK, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_timeline_fail(timeline, HDRT_ERROR_IO, "the disk is full"), HDRT_OK);
    ck_assert_int_eq(hdrt_event_query(runtime, hdrt_timeline_event(timeline, 2)), HDRT_OK);
    ck_assert_int_eq(hdrt_event_query(runtime, hdrt_timeline_event(timeline, 3)), HDRT_ERROR_EVENT_FAILED);
    ck_assert_str_eq(hdrt_last_error(), "the disk is full");
    ck_assert_int_eq(hdrt_timeline_signal(timeline, 3), HDRT_ERROR_EVENT_FAILED);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "the disk is full"));
    ck_assert_int_eq(hdrt_timeline_fail(timeline, HDRT_ERROR_IO, "again"), HDRT_ERROR_EVENT_FAILED);
    hdrt_event three = hdrt_timeline_event(timeline, 3), two = hdrt_timeline_event(timeline, 2);
    hdrt_timeline_destroy(timeline);
    ck_assert_int_eq(hdrt_event_query(runtime, three), HDRT_ERROR_EVENT_FAILED);
    ck_assert_str_eq(hdrt_last_error(), "the disk is full");
    ck_assert_int_eq(hdrt_event_query(runtime, two), HDRT_OK);
}
END_TEST

START_TEST(a_lost_device_is_only_told_by_devices)
{
    hdrt_timeline *timeline;
    ck_assert_int_eq(hdrt_timeline_create(runtime, &timeline), HDRT_OK);
    ck_assert_int_eq(hdrt_timeline_fail(timeline, HDRT_ERROR_DEVICE_LOST, NULL), HDRT_OK);
    ck_assert_int_eq(hdrt_event_query(runtime, hdrt_timeline_event(timeline, 1)), HDRT_ERROR_EVENT_FAILED);
    ck_assert_str_eq(hdrt_last_error(), hdrt_status_text(HDRT_ERROR_DEVICE_LOST));
    hdrt_timeline_destroy(timeline);
}
END_TEST

START_TEST(bad_events_and_arguments_are_refused)
{
    hdrt_timeline *timeline;
    hdrt_event event = {0, 0};
    int fd = 7;
    ck_assert_int_eq(hdrt_event_query(runtime, event), HDRT_OK);
    ck_assert_int_eq(hdrt_event_wait(runtime, event, 0), HDRT_OK);
    event.value = 1;
    ck_assert_int_eq(hdrt_event_query(runtime, event), HDRT_ERROR_INVALID_ARGUMENT);
    event.timeline = UINT64_MAX;
    ck_assert_int_eq(hdrt_event_wait(runtime, event, HDRT_FOREVER), HDRT_ERROR_INVALID_ARGUMENT);
    event.timeline = (uint64_t)7 << 32;
    ck_assert_int_eq(hdrt_event_query(runtime, event), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_event_query(NULL, event), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_event_notify_fd(runtime, event, &fd), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(fd, -1);
    ck_assert_int_eq(hdrt_timeline_create(runtime, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_timeline_create(NULL, &timeline), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_null(timeline);
    ck_assert_int_eq(hdrt_timeline_signal(NULL, 1), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_timeline_fail(NULL, HDRT_ERROR_IO, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    hdrt_timeline_destroy(NULL);
    ck_assert_uint_eq(hdrt_timeline_event(NULL, 3).timeline, 0);
}
END_TEST

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

typedef struct waiter {
    pthread_t thread;
    hdrt_event event;
    hdrt_status status;
    char message[256];
} waiter;

static void *wait_for_it(void *argument)
{
    waiter *me = argument;
    me->status = hdrt_event_wait(runtime, me->event, HDRT_FOREVER);
    snprintf(me->message, sizeof me->message, "%s", hdrt_last_error());
    return NULL;
}

START_TEST(waiters_wake_by_signal_failure_and_destruction)
{
    hdrt_timeline *timelines[3];
    waiter waiters[3];
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(hdrt_timeline_create(runtime, &timelines[i]), HDRT_OK);
        waiters[i].event = hdrt_timeline_event(timelines[i], 2);
        ck_assert_int_eq(pthread_create(&waiters[i].thread, NULL, wait_for_it, &waiters[i]), 0);
    }
    usleep(20000);
    ck_assert_int_eq(hdrt_timeline_signal(timelines[0], 1), HDRT_OK);
    ck_assert_int_eq(hdrt_timeline_signal(timelines[0], 2), HDRT_OK);
    ck_assert_int_eq(hdrt_timeline_fail(timelines[1], HDRT_ERROR_CANCELLED, "cancelled by the test"), HDRT_OK);
    hdrt_timeline_destroy(timelines[2]);
    for (int i = 0; i < 3; i++) {
        pthread_join(waiters[i].thread, NULL);
    }
    ck_assert_int_eq(waiters[0].status, HDRT_OK);
    ck_assert_int_eq(waiters[1].status, HDRT_ERROR_EVENT_FAILED);
    ck_assert_str_eq(waiters[1].message, "cancelled by the test");
    ck_assert_int_eq(waiters[2].status, HDRT_ERROR_EVENT_FAILED);
    ck_assert_ptr_nonnull(strstr(waiters[2].message, "destroyed before"));
    hdrt_timeline_destroy(timelines[0]);
    hdrt_timeline_destroy(timelines[1]);
}
END_TEST

START_TEST(time_outs_are_kept)
{
    hdrt_timeline *timeline;
    ck_assert_int_eq(hdrt_timeline_create(runtime, &timeline), HDRT_OK);
    hdrt_event event = hdrt_timeline_event(timeline, 1);
    ck_assert_int_eq(hdrt_event_wait(runtime, event, 0), HDRT_TIMEOUT);
    uint64_t begin = hdrt__now_ns();
    ck_assert_int_eq(hdrt_event_wait(runtime, event, 30000000), HDRT_TIMEOUT);
    uint64_t waited = hdrt__now_ns() - begin;
    ck_assert_uint_ge(waited, 30000000);
    ck_assert_uint_lt(waited, 500000000);
    ck_assert_int_eq(hdrt_timeline_signal(timeline, 1), HDRT_OK);
    ck_assert_int_eq(hdrt_event_wait(runtime, event, 0), HDRT_OK);
    hdrt_timeline_destroy(timeline);
}
END_TEST

/* ---- slots ------------------------------------------------------------------------------------------------------- */

START_TEST(older_generations_are_complete)
{
    hdrt__timeline *slot, *again;
    ck_assert_int_eq(hdrt__timeline_acquire(runtime, NULL, NULL, &slot), HDRT_OK);
    hdrt_event old = hdrt__timeline_event(slot, 3), never = hdrt__timeline_event(slot, 9);
    hdrt__timeline_enqueue(slot, 4);
    hdrt__timeline_complete(slot, 4);
    hdrt__timeline_retire(slot, NULL);
    ck_assert_int_eq(hdrt_event_query(runtime, old), HDRT_OK);
    ck_assert_int_eq(hdrt_event_query(runtime, never), HDRT_ERROR_EVENT_FAILED);
    ck_assert_str_eq(hdrt_last_error(), "the queue was destroyed before this value was enqueued");
    /* Until the slot is taken again: all others come first. */
    for (int i = 0; i < 100000; i++) {
        ck_assert_int_eq(hdrt__timeline_acquire(runtime, NULL, NULL, &again), HDRT_OK);
        bool same = again == slot;
        hdrt__timeline_retire(again, NULL);
        if (same) {
            break;
        }
    }
    ck_assert_ptr_eq(again, slot);
    ck_assert_int_eq(hdrt_event_query(runtime, old), HDRT_OK);
    ck_assert_int_eq(hdrt_event_query(runtime, never), HDRT_OK);
    hdrt_event future = old;
    future.timeline += (uint64_t)5 << 32;
    ck_assert_int_eq(hdrt_event_query(runtime, future), HDRT_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(a_slot_is_not_reused_while_pinned)
{
    hdrt__timeline *slot, *other;
    ck_assert_int_eq(hdrt__timeline_acquire(runtime, NULL, NULL, &slot), HDRT_OK);
    hdrt_event event = hdrt__timeline_event(slot, 1);
    ck_assert_ptr_eq(hdrt__timeline_pin(runtime, event), slot);
    hdrt__timeline_retire(slot, NULL);
    for (unsigned i = 0; i < 3 * HDRT__TIMELINE_CHUNK; i++) {
        ck_assert_int_eq(hdrt__timeline_acquire(runtime, NULL, NULL, &other), HDRT_OK);
        ck_assert_ptr_ne(other, slot);
        hdrt__timeline_retire(other, NULL);
    }
    hdrt__timeline_unpin(slot);
    ck_assert_ptr_eq(hdrt__timeline_pin(runtime, event), slot);
    hdrt__timeline_unpin(slot);
    for (unsigned i = 0; i < 3 * HDRT__TIMELINE_CHUNK; i++) {
        ck_assert_int_eq(hdrt__timeline_acquire(runtime, NULL, NULL, &other), HDRT_OK);
        hdrt__timeline_retire(other, NULL);
    }
    ck_assert_ptr_null(hdrt__timeline_pin(runtime, event));
}
END_TEST

START_TEST(slots_that_failed_are_remembered_longest)
{
    hdrt__timeline *slot, *other;
    hdrt__failure *failure = hdrt__failure_create(HDRT_ERROR_DRIVER, "broken");
    ck_assert_int_eq(hdrt__timeline_acquire(runtime, NULL, NULL, &slot), HDRT_OK);
    hdrt_event event = hdrt__timeline_event(slot, 1);
    hdrt__timeline_enqueue(slot, 1);
    hdrt__timeline_fail(slot, 1, failure);
    hdrt__timeline_retire(slot, NULL);
    for (unsigned i = 0; i < 10 * HDRT__TIMELINE_CHUNK; i++) {
        ck_assert_int_eq(hdrt__timeline_acquire(runtime, NULL, NULL, &other), HDRT_OK);
        hdrt__timeline_retire(other, NULL);
    }
    ck_assert_int_eq(hdrt_event_query(runtime, event), HDRT_ERROR_EVENT_FAILED);
    ck_assert_str_eq(hdrt_last_error(), "broken");
    /* More failed slots than are remembered: the oldest is taken again. */
    for (unsigned i = 0; i < HDRT__TIMELINES_REMEMBERED + 2; i++) {
        ck_assert_int_eq(hdrt__timeline_acquire(runtime, NULL, NULL, &other), HDRT_OK);
        hdrt__timeline_fail(other, 1, failure);
        hdrt__timeline_retire(other, NULL);
    }
    hdrt__failure_drop(failure);
    ck_assert_int_eq(hdrt_event_query(runtime, event), HDRT_OK);
}
END_TEST

static hdrt_status status_of(hdrt__timeline *slot, uint64_t value)
{
    return hdrt__event_look(runtime, hdrt__timeline_event(slot, value), true, NULL);
}

START_TEST(failed_ranges_stay_failed)
{
    hdrt__timeline *slot;
    hdrt__failure *first = hdrt__failure_create(HDRT_ERROR_DRIVER, "first");
    hdrt__failure *second = hdrt__failure_create(HDRT_ERROR_DRIVER, "second");
    ck_assert_int_eq(hdrt__timeline_acquire(runtime, NULL, NULL, &slot), HDRT_OK);
    hdrt__timeline_enqueue(slot, 10);
    hdrt__timeline_fail(slot, 6, first);
    ck_assert_int_eq(status_of(slot, 5), HDRT_NOT_READY);
    ck_assert_int_eq(status_of(slot, 6), HDRT_ERROR_EVENT_FAILED);
    ck_assert_int_eq(status_of(slot, 1000), HDRT_ERROR_EVENT_FAILED);
    hdrt__timeline_complete(slot, 8); /* what failed cannot complete */
    ck_assert_int_eq(status_of(slot, 5), HDRT_OK);
    ck_assert_int_eq(status_of(slot, 6), HDRT_ERROR_EVENT_FAILED);
    hdrt__timeline_reopen(slot, 10);
    hdrt__timeline_complete(slot, 12);
    ck_assert_int_eq(status_of(slot, 5), HDRT_OK);
    for (uint64_t value = 6; value <= 10; value++) {
        ck_assert_int_eq(hdrt_event_query(runtime, hdrt__timeline_event(slot, value)), HDRT_ERROR_EVENT_FAILED);
        ck_assert_str_eq(hdrt_last_error(), "first");
    }
    ck_assert_int_eq(status_of(slot, 11), HDRT_OK);
    hdrt__timeline_fail(slot, 20, second);
    ck_assert_uint_eq(hdrt__timeline_fail_rest(slot, first), 13);
    ck_assert_int_eq(status_of(slot, 12), HDRT_OK);
    ck_assert_int_eq(hdrt_event_query(runtime, hdrt__timeline_event(slot, 19)), HDRT_ERROR_EVENT_FAILED);
    ck_assert_str_eq(hdrt_last_error(), "first");
    ck_assert_int_eq(hdrt_event_query(runtime, hdrt__timeline_event(slot, 20)), HDRT_ERROR_EVENT_FAILED);
    ck_assert_str_eq(hdrt_last_error(), "second");
    hdrt__timeline_retire(slot, NULL);
    hdrt__failure_drop(first);
    hdrt__failure_drop(second);
}
END_TEST

/* Fail and reopen very often: what failed never reads as fine, with and without memory for the ranges. */
START_TEST(many_failures_are_bounded)
{
    hdrt__timeline *slot;
    bool starve = _i == 1;
    hdrt__failure *failure = hdrt__failure_create(HDRT_ERROR_DRIVER, "often");
    ck_assert_int_eq(hdrt__timeline_acquire(runtime, NULL, NULL, &slot), HDRT_OK);
    if (starve) {
        failing_malloc_arm_from(1);
    }
    for (uint64_t i = 1; i <= 5000; i++) { /* odd values fail */
        hdrt__timeline_enqueue(slot, 2 * i - 1);
        hdrt__timeline_fail(slot, 2 * i - 1, failure);
        hdrt__timeline_reopen(slot, 2 * i - 1);
        hdrt__timeline_complete(slot, 2 * i);
    }
    failing_malloc_disarm();
    ck_assert_uint_le(slot->range_count, HDRT__RANGES_LIMIT);
    ck_assert_uint_eq(atomic_load(&slot->failures), slot->range_count);
    for (uint64_t i = 1; i <= 5000; i++) {
        ck_assert_int_eq(status_of(slot, 2 * i - 1), HDRT_ERROR_EVENT_FAILED);
    }
    ck_assert_int_eq(status_of(slot, 10000), HDRT_OK); /* the newest are exact */
    hdrt__timeline_retire(slot, NULL);
    hdrt__failure_drop(failure);
}
END_TEST

/* ---- sources ----------------------------------------------------------------------------------------------------- */

typedef struct counter {
    hdrt__timeline *slot;
    int held, asked, patiently; /* how often, and how often it had to answer */
    uint64_t complete_at;
    hdrt_status status, refusal; /* of who is not patient; HDRT_OK: none */
} counter;

static bool counter_hold(void *owner)
{
    ((counter *)owner)->held++;
    return true;
}

static void counter_drop(void *owner)
{
    ((counter *)owner)->held--;
}

static hdrt_status counter_progress(void *owner, uint64_t value, bool patient)
{
    counter *me = owner;
    me->asked++;
    me->patiently += patient;
    if (!patient && me->refusal != HDRT_OK) {
        return me->refusal;
    }
    if (me->status == HDRT_OK && (uint64_t)me->asked >= me->complete_at) {
        hdrt__timeline_complete(me->slot, value);
    }
    return me->status;
}

static const hdrt__timeline_source counter_source = {counter_hold, counter_drop, counter_progress, NULL, NULL};

START_TEST(sources_are_asked_until_they_know)
{
    counter me = {.complete_at = 5};
    ck_assert_int_eq(hdrt__timeline_acquire(runtime, &counter_source, &me, &me.slot), HDRT_OK);
    hdrt__timeline_enqueue(me.slot, 3);
    hdrt_event event = hdrt__timeline_event(me.slot, 2), future = hdrt__timeline_event(me.slot, 4);
    ck_assert_int_eq(hdrt__event_look(runtime, event, false, NULL), HDRT_NOT_READY);
    ck_assert_int_eq(me.asked, 0);
    ck_assert_int_eq(hdrt_event_query(runtime, event), HDRT_NOT_READY);
    ck_assert_int_eq(me.asked, 1);
    ck_assert_int_eq(hdrt_event_query(runtime, future), HDRT_NOT_READY);
    ck_assert_int_eq(me.asked, 2); /* whether it is enqueued is the source's to know */
    me.status = HDRT_ERROR_DRIVER;
    ck_assert_int_eq(hdrt_event_wait(runtime, event, HDRT_FOREVER), HDRT_ERROR_DRIVER);
    me.status = HDRT_OK;
    ck_assert_int_eq(hdrt_event_wait(runtime, event, HDRT_FOREVER), HDRT_OK);
    ck_assert_int_ge(me.asked, 5);
    int asked = me.asked;
    ck_assert_int_eq(hdrt_event_query(runtime, event), HDRT_OK);
    ck_assert_int_eq(me.asked, asked); /* known: no question */
    ck_assert_int_eq(me.held, 0);
    hdrt__timeline_retire(me.slot, NULL);
    ck_assert_int_eq(hdrt_event_query(runtime, hdrt__timeline_event(me.slot, 3)), HDRT_ERROR_EVENT_FAILED);
    ck_assert_int_eq(me.asked, asked);
}
END_TEST

/* Who waits does not press at once where asking is in others' way, but does so in the end; who only asks does at once. */
START_TEST(asking_is_put_off_but_not_for_ever)
{
    static const hdrt_status refusals[] = {HDRT_NOT_READY, HDRT_WOULD_BLOCK};
    for (int i = 0; i < 4; i++) {
        counter me = {.complete_at = 1, .refusal = refusals[i % 2]};
        runtime->spare_processors = i >= 2;
        ck_assert_int_eq(hdrt__timeline_acquire(runtime, &counter_source, &me, &me.slot), HDRT_OK);
        hdrt__timeline_enqueue(me.slot, 3);
        ck_assert_int_eq(hdrt_event_wait(runtime, hdrt__timeline_event(me.slot, 1), HDRT_FOREVER), HDRT_OK);
        ck_assert_int_ge(me.asked, 2);
        ck_assert_int_eq(me.patiently, 1);
        ck_assert_int_eq(hdrt_event_query(runtime, hdrt__timeline_event(me.slot, 2)), HDRT_OK);
        ck_assert_int_eq(me.patiently, 2);
        ck_assert_int_eq(hdrt_event_wait(runtime, hdrt__timeline_event(me.slot, 3), 1000), HDRT_OK); /* no other time */
        ck_assert_int_eq(me.patiently, 3);
        for (uint64_t value = 4; value < 40; value++) { /* however late it wakes, it really looks before it gives up */
            hdrt__timeline_enqueue(me.slot, value);
            ck_assert_int_eq(hdrt_event_wait(runtime, hdrt__timeline_event(me.slot, value), 600000), HDRT_OK);
        }
        hdrt__timeline_retire(me.slot, NULL);
    }
}
END_TEST

START_TEST(uses_keep_one_event_for_each_timeline)
{
    enum { COUNT = 7 };
    hdrt_timeline *timelines[COUNT];
    hdrt__uses uses = {0}, moved;
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(hdrt_timeline_create(runtime, &timelines[i]), HDRT_OK);
        ck_assert_int_eq(hdrt__uses_add(&uses, runtime, hdrt_timeline_event(timelines[i], 2)), HDRT_OK);
        ck_assert_int_eq(hdrt__uses_add(&uses, runtime, hdrt_timeline_event(timelines[i], 1)), HDRT_OK);
        ck_assert_uint_eq(uses.count, (uint32_t)i + 1);
    }
    ck_assert(!hdrt__uses_over(&uses, runtime));
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(hdrt_timeline_signal(timelines[i], 1), HDRT_OK);
    }
    ck_assert(!hdrt__uses_over(&uses, runtime)); /* the higher value counts */
    hdrt__uses_move(&uses, &moved);
    ck_assert_uint_eq(uses.count, 0);
    for (int i = 1; i < COUNT; i++) {
        ck_assert_int_eq(hdrt_timeline_signal(timelines[i], 2), HDRT_OK);
    }
    ck_assert_int_eq(hdrt_timeline_fail(timelines[0], HDRT_ERROR_IO, NULL), HDRT_OK);
    ck_assert_int_eq(hdrt__uses_wait(&moved, runtime), HDRT_OK);
    ck_assert(hdrt__uses_over(&moved, runtime));
    hdrt__uses_free(&moved);
    for (int i = 0; i < COUNT; i++) {
        hdrt_timeline_destroy(timelines[i]);
    }
}
END_TEST

START_TEST(uses_survive_without_memory)
{
    enum { COUNT = 4 };
    hdrt_timeline *timelines[COUNT];
    hdrt__uses uses = {0};
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(hdrt_timeline_create(runtime, &timelines[i]), HDRT_OK);
    }
    failing_malloc_arm_from(1);
    hdrt_status first = hdrt__uses_add(&uses, runtime, hdrt_timeline_event(timelines[0], 1));
    hdrt_status second = hdrt__uses_add(&uses, runtime, hdrt_timeline_event(timelines[1], 1));
    hdrt_status third = hdrt__uses_add(&uses, runtime, hdrt_timeline_event(timelines[2], 1));
    hdrt_timeline_signal(timelines[0], 1);
    hdrt_status fourth = hdrt__uses_add(&uses, runtime, hdrt_timeline_event(timelines[3], 1));
    failing_malloc_disarm();
    ck_assert_int_eq(first, HDRT_OK);
    ck_assert_int_eq(second, HDRT_OK);
    ck_assert_int_eq(third, HDRT_ERROR_OUT_OF_MEMORY);
    ck_assert_int_eq(fourth, HDRT_OK); /* in the place of one that is over */
    ck_assert_uint_eq(uses.count, 2);
    hdrt__uses_free(&uses);
    for (int i = 0; i < COUNT; i++) {
        hdrt_timeline_destroy(timelines[i]);
    }
}
END_TEST

START_TEST(no_memory_is_a_status)
{
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    options.driver = HDRT_DRIVER_NONE;
    options.cache_dir = "/nonexistent/cache";
    options.nvrtc = "/nonexistent/nvrtc";
    options.clang = "/nonexistent/clang";
    hdrt_status status = HDRT_OK;
    int failed = 0;
    FAILING_MALLOC_EACH(n) {
        hdrt_runtime *made = NULL;
        hdrt_timeline *timeline = NULL;
        status = hdrt_runtime_create(&options, &made);
        if (status == HDRT_OK) {
            status = hdrt_timeline_create(made, &timeline);
        }
        failed += status == HDRT_ERROR_OUT_OF_MEMORY;
        if (status != HDRT_OK && status != HDRT_ERROR_OUT_OF_MEMORY) {
            failed = -1000;
        }
        hdrt_timeline_destroy(timeline);
        hdrt_runtime_destroy(made);
    }
    ck_assert_int_eq(status, HDRT_OK);
    ck_assert_int_ge(failed, 6);
}
END_TEST

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 300 };
static hdrt_timeline *shared;

static void *signal_many(void *argument)
{
    (void)argument;
    for (uint64_t value = 1; value <= ROUNDS; value++) {
        hdrt_timeline_signal(shared, value);
    }
    return NULL;
}

static void *follow(void *argument)
{
    hdrt_status *status = argument;
    for (uint64_t value = 1; value <= ROUNDS && *status == HDRT_OK; value++) {
        *status = hdrt_event_wait(runtime, hdrt_timeline_event(shared, value), HDRT_FOREVER);
        hdrt_timeline *own;
        hdrt_event event;
        if (hdrt_timeline_create(runtime, &own) == HDRT_OK) {
            event = hdrt_timeline_event(own, 1);
            hdrt_timeline_signal(own, 1);
            hdrt_timeline_destroy(own);
            if (hdrt_event_query(runtime, event) != HDRT_OK) {
                *status = HDRT_ERROR_INTERNAL;
            }
        }
    }
    return NULL;
}

START_TEST(threads_wait_signal_create_and_destroy)
{
    pthread_t threads[THREADS + 1];
    hdrt_status statuses[THREADS] = {HDRT_OK};
    ck_assert_int_eq(hdrt_timeline_create(runtime, &shared), HDRT_OK);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, follow, &statuses[i]), 0);
    }
    ck_assert_int_eq(pthread_create(&threads[THREADS], NULL, signal_many, NULL), 0);
    for (int i = 0; i <= THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(statuses[i], HDRT_OK);
    }
    hdrt_timeline_destroy(shared);
}
END_TEST

START_TEST(timelines_hold_their_runtime)
{
    hdrt_timeline *timeline;
    hdrt_runtime *own;
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    options.driver = HDRT_DRIVER_NONE;
    ck_assert_int_eq(hdrt_runtime_create(&options, &own), HDRT_OK);
    ck_assert_int_eq(hdrt_timeline_create(own, &timeline), HDRT_OK);
    hdrt_runtime_destroy(own);
    ck_assert_int_eq(hdrt_timeline_signal(timeline, 1), HDRT_OK);
    ck_assert_int_eq(hdrt_event_query(own, hdrt_timeline_event(timeline, 1)), HDRT_OK);
    hdrt_timeline_destroy(timeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("timeline");
    TCase *tcase = tcase_create("timeline");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, signal_completes_values_in_order);
    tcase_add_test(tcase, failure_reaches_only_what_was_not_signalled);
    tcase_add_test(tcase, a_lost_device_is_only_told_by_devices);
    tcase_add_test(tcase, bad_events_and_arguments_are_refused);
    tcase_add_test(tcase, waiters_wake_by_signal_failure_and_destruction);
    tcase_add_test(tcase, time_outs_are_kept);
    tcase_add_test(tcase, older_generations_are_complete);
    tcase_add_test(tcase, a_slot_is_not_reused_while_pinned);
    tcase_add_test(tcase, slots_that_failed_are_remembered_longest);
    tcase_add_test(tcase, failed_ranges_stay_failed);
    tcase_add_loop_test(tcase, many_failures_are_bounded, 0, 2);
    tcase_add_test(tcase, sources_are_asked_until_they_know);
    tcase_add_test(tcase, asking_is_put_off_but_not_for_ever);
    tcase_add_test(tcase, uses_keep_one_event_for_each_timeline);
    tcase_add_test(tcase, uses_survive_without_memory);
    tcase_add_test(tcase, no_memory_is_a_status);
    tcase_add_test(tcase, threads_wait_signal_create_and_destroy);
    tcase_add_test(tcase, timelines_hold_their_runtime);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
