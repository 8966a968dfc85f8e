/* SPDX-License-Identifier: MIT */
#include "device/timeline.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/status.h"
#include "device/callbacks.h"
#include "device/runtime.h"
#include "driver/thread.h"

static hdrt__timeline_stripe *stripe_of(const hdrt__timeline *slot)
{
    return &slot->runtime->timelines->stripes[slot->index % HDRT__TIMELINE_STRIPES];
}

static void slot_lock(const hdrt__timeline *slot)
{
    pthread_mutex_lock(&stripe_of(slot)->lock);
}

static void slot_unlock(const hdrt__timeline *slot)
{
    pthread_mutex_unlock(&stripe_of(slot)->lock);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void list_init(hdrt__timeline_list *list)
{
    list->first = NULL;
    list->last = &list->first;
    list->count = 0;
}

static void list_append(hdrt__timeline_list *list, hdrt__timeline *slot)
{
    slot->next_free = NULL;
    *list->last = slot;
    list->last = &slot->next_free;
    list->count++;
}

/* Take out the first slot that nobody pins, and close it to new pins by moving it to its next generation. */
static hdrt__timeline *list_take(hdrt__timeline_list *list)
{
    for (hdrt__timeline **link = &list->first; *link; link = &(*link)->next_free) {
        hdrt__timeline *slot = *link;
        slot_lock(slot);
        bool usable = slot->pins == 0;
        if (usable) {
            slot->state = HDRT__TIMELINE_FREE;
            atomic_fetch_add(&slot->generation, 1);
        }
        slot_unlock(slot);
        if (usable) {
            *link = slot->next_free;
            if (list->last == &slot->next_free) {
                list->last = link;
            }
            list->count--;
            return slot;
        }
    }
    return NULL;
}

hdrt_status hdrt__timeline_table_create(hdrt_runtime *runtime, hdrt__timeline_table **out_table)
{
    (void)runtime;
    hdrt__timeline_table *table = calloc(1, sizeof *table);
    if (!table) {
        return hdrt__fail_memory(sizeof *table, "the table of timelines");
    }
    pthread_mutex_init(&table->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    for (uint32_t i = 0; i < HDRT__TIMELINE_STRIPES; i++) {
        hdrt__mutex_init_short(&table->stripes[i].lock);
        pthread_cond_init(&table->stripes[i].changed, &monotonic);
    }
    pthread_condattr_destroy(&monotonic);
    list_init(&table->free);
    list_init(&table->remembered);
    *out_table = table;
    return HDRT_OK;
}

static void forget_failures(hdrt__timeline *slot)
{
    for (uint32_t i = 0; i < slot->range_count; i++) {
        hdrt__failure_drop(slot->ranges[i].failure);
    }
    if (slot->ranges != slot->range_inline) {
        free(slot->ranges);
    }
    hdrt__failure_drop(slot->open_failure);
    slot->ranges = slot->range_inline;
    slot->range_count = 0;
    slot->range_capacity = HDRT__RANGES_INLINE;
    slot->open = slot->ending = false;
    slot->open_first = 0;
    slot->open_failure = NULL;
    atomic_store(&slot->failures, 0);
}

void hdrt__timeline_table_destroy(hdrt__timeline_table *table)
{
    if (!table) {
        return;
    }
    for (uint32_t i = 0; i < table->chunk_count; i++) {
        hdrt__timeline *chunk = atomic_load(&table->chunks[i]);
        for (uint32_t j = 0; j < HDRT__TIMELINE_CHUNK; j++) {
            forget_failures(&chunk[j]);
        }
        free(chunk);
    }
    for (uint32_t i = 0; i < HDRT__TIMELINE_STRIPES; i++) {
        pthread_cond_destroy(&table->stripes[i].changed);
        pthread_mutex_destroy(&table->stripes[i].lock);
    }
    pthread_mutex_destroy(&table->lock);
    free(table);
}

/* Under the table's lock. */
static hdrt_status add_chunk(hdrt_runtime *runtime, hdrt__timeline_table *table)
{
    if (table->chunk_count == HDRT__TIMELINE_CHUNKS) {
        return hdrt__fail(HDRT_ERROR_OUT_OF_MEMORY,
                          "a runtime has at most %u queues and timelines at once; destroy some",
                          HDRT__TIMELINE_CHUNK * HDRT__TIMELINE_CHUNKS);
    }
    hdrt__timeline *chunk = calloc(HDRT__TIMELINE_CHUNK, sizeof *chunk);
    if (!chunk) {
        return hdrt__fail_memory(HDRT__TIMELINE_CHUNK * sizeof *chunk, "timelines");
    }
    for (uint32_t i = 0; i < HDRT__TIMELINE_CHUNK; i++) {
        hdrt__timeline *slot = &chunk[i];
        slot->runtime = runtime;
        slot->index = table->chunk_count * HDRT__TIMELINE_CHUNK + i;
        slot->ranges = slot->range_inline;
        slot->range_capacity = HDRT__RANGES_INLINE;
        list_append(&table->free, slot);
    }
    atomic_store_explicit(&table->chunks[table->chunk_count], chunk, memory_order_release);
    table->chunk_count++;
    return HDRT_OK;
}

hdrt_status hdrt__timeline_acquire(hdrt_runtime *runtime, const hdrt__timeline_source *source, void *owner,
                                   hdrt__timeline **out_timeline)
{
    hdrt__timeline_table *table = runtime->timelines;
    hdrt_status status = HDRT_OK;
    hdrt__timeline *slot = NULL;
    pthread_mutex_lock(&table->lock);
    if (table->remembered.count > HDRT__TIMELINES_REMEMBERED) {
        slot = list_take(&table->remembered);
    }
    if (!slot) {
        slot = list_take(&table->free);
    }
    if (!slot) {
        status = add_chunk(runtime, table);
        slot = status == HDRT_OK ? list_take(&table->free) : list_take(&table->remembered);
    }
    pthread_mutex_unlock(&table->lock);
    if (!slot) {
        return status;
    }
    slot_lock(slot);
    forget_failures(slot);
    atomic_store(&slot->enqueued, 0);
    atomic_store(&slot->committed, 0);
    atomic_store(&slot->completed, 0);
    slot->source = source;
    slot->owner = owner;
    slot->state = HDRT__TIMELINE_LIVE;
    slot_unlock(slot);
    *out_timeline = slot;
    return HDRT_OK;
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

static hdrt_status failed_status(hdrt__failure *failure, hdrt__failure **out_failure)
{
    if (out_failure) {
        *out_failure = hdrt__failure_hold(failure);
    }
    return failure && failure->status == HDRT_ERROR_DEVICE_LOST ? HDRT_ERROR_DEVICE_LOST : HDRT_ERROR_EVENT_FAILED;
}

/* Under the slot's lock: what is known of a value. */
static hdrt_status known(const hdrt__timeline *slot, uint64_t value, hdrt__failure **out_failure)
{
    if (slot->open && value >= slot->open_first) {
        return failed_status(slot->open_failure, out_failure);
    }
    uint32_t low = 0, high = slot->range_count; /* the first range whose last is not below value */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (slot->ranges[middle].last < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < slot->range_count && slot->ranges[low].first <= value) {
        return failed_status(slot->ranges[low].failure, out_failure);
    }
    return value <= atomic_load(&slot->completed) ? HDRT_OK : HDRT_NOT_READY;
}

/* Under the slot's lock: whether a watch is over. */
static bool watch_over(const hdrt__timeline *slot, const hdrt__timeline_watch *watch)
{
    if (watch->step == HDRT__TIMELINE_COMMITTED && watch->value <= atomic_load(&slot->committed)) {
        return true;
    }
    return slot->state != HDRT__TIMELINE_LIVE || known(slot, watch->value, NULL) != HDRT_NOT_READY;
}

/* Under the slot's lock: take off the watches that are over, for unlock_and_wake. */
static hdrt__timeline_watch *take_over(hdrt__timeline *slot)
{
    hdrt__timeline_watch *over = NULL;
    for (hdrt__timeline_watch **link = &slot->watches; *link;) {
        hdrt__timeline_watch *watch = *link;
        if (watch_over(slot, watch)) {
            *link = watch->next;
            watch->next = over;
            over = watch;
            atomic_fetch_sub(&slot->watched, 1);
        } else {
            link = &watch->next;
        }
    }
    return over;
}

/* Under the slot's lock: something changed that those may sleep for who wait. \return as take_over. */
static hdrt__timeline_watch *tell(hdrt__timeline *slot)
{
    slot->changes++;
    pthread_cond_broadcast(&stripe_of(slot)->changed);
    return take_over(slot);
}

static void unlock_and_wake(hdrt__timeline *slot, hdrt__timeline_watch *over)
{
    slot_unlock(slot);
    while (over) {
        hdrt__timeline_watch *next = over->next; /* the watch may be gone once it was called */
        over->wake(over);
        over = next;
    }
}

/* Under the slot's lock. Completed values stay complete; those that never come are no reason to remember the slot. */
static void end_at(hdrt__timeline *slot, uint64_t last, hdrt__failure *failure)
{
    slot->open = slot->ending = true;
    slot->open_first = last + 1;
    slot->open_failure = hdrt__failure_hold(failure);
}

void hdrt__timeline_end(hdrt__timeline *slot, uint64_t last, hdrt__failure *failure)
{
    hdrt__timeline_watch *over = NULL;
    slot_lock(slot);
    if (!slot->open) {
        end_at(slot, last, failure);
        over = tell(slot);
    }
    unlock_and_wake(slot, over);
}

void hdrt__timeline_retire(hdrt__timeline *slot, hdrt__failure *failure)
{
    hdrt__timeline_table *table = slot->runtime->timelines;
    slot_lock(slot);
    slot->state = HDRT__TIMELINE_RETIRED;
    slot->source = NULL;
    slot->owner = NULL;
    if (!slot->open) {
        hdrt__failure *words = failure ? hdrt__failure_hold(failure)
                                       : hdrt__failure_create(HDRT_ERROR_EVENT_FAILED,
                                                              "the queue was destroyed before this value was enqueued");
        end_at(slot, atomic_load(&slot->enqueued), words);
        hdrt__failure_drop(words);
    }
    if (slot->ending && atomic_load(&slot->completed) < slot->open_first - 1) {
        slot->ending = false;
        slot->open_first = atomic_load(&slot->completed) + 1;
        atomic_fetch_add(&slot->failures, 1);
    }
    bool remember = atomic_load(&slot->failures) != 0;
    unlock_and_wake(slot, tell(slot));

    pthread_mutex_lock(&table->lock);
    list_append(remember ? &table->remembered : &table->free, slot);
    pthread_mutex_unlock(&table->lock);
}

/* ---- what owners tell -------------------------------------------------------------------------------------------- */

hdrt_event hdrt__timeline_event(const hdrt__timeline *slot, uint64_t value)
{
    uint64_t generation = atomic_load_explicit(&slot->generation, memory_order_relaxed);
    return (hdrt_event){.timeline = generation << 32 | slot->index, .value = value};
}

void hdrt__timeline_enqueue(hdrt__timeline *slot, uint64_t value)
{
    atomic_store_explicit(&slot->enqueued, value, memory_order_release);
}

void hdrt__timeline_commit(hdrt__timeline *slot, uint64_t value)
{
    if (value > atomic_load_explicit(&slot->enqueued, memory_order_relaxed)) {
        atomic_store_explicit(&slot->enqueued, value, memory_order_relaxed);
    }
    /* Sequentially consistent with `watched`: either the watcher sees the value, or this sees the watcher. */
    atomic_store(&slot->committed, value);
    if (atomic_load(&slot->watched)) {
        slot_lock(slot);
        unlock_and_wake(slot, take_over(slot));
    }
}

void hdrt__timeline_complete(hdrt__timeline *slot, uint64_t value)
{
    hdrt__timeline_watch *woken = NULL;
    if (value <= atomic_load_explicit(&slot->completed, memory_order_relaxed)) {
        return;
    }
    slot_lock(slot);
    if (slot->open && value >= slot->open_first) {
        value = slot->open_first - 1;
    }
    if (value > atomic_load(&slot->completed)) {
        if (value > atomic_load(&slot->enqueued)) {
            atomic_store(&slot->enqueued, value);
        }
        if (value > atomic_load(&slot->committed)) {
            atomic_store(&slot->committed, value);
        }
        atomic_store_explicit(&slot->completed, value, memory_order_release);
        woken = tell(slot);
    }
    unlock_and_wake(slot, woken);
}

/*
 * Under the slot's lock: keep first to last as failed, above all ranges there are. Without memory, and beyond the
 * limit, neighbours are joined: an event between them that was fine then reads as failed, never the other way round.
 */
static void add_range(hdrt__timeline *slot, uint64_t first, uint64_t last, hdrt__failure *failure)
{
    if (slot->range_count == slot->range_capacity && slot->range_capacity < HDRT__RANGES_LIMIT) {
        uint32_t capacity = slot->range_capacity * 4;
        hdrt__failed_range *ranges = malloc(capacity * sizeof *ranges);
        if (ranges) {
            memcpy(ranges, slot->ranges, slot->range_count * sizeof *ranges);
            if (slot->ranges != slot->range_inline) {
                free(slot->ranges);
            }
            slot->ranges = ranges;
            slot->range_capacity = capacity;
        }
    }
    if (slot->range_count == slot->range_capacity) {
        if (slot->range_count == 1) {
            slot->ranges[0].last = last;
            return;
        }
        slot->ranges[0].last = slot->ranges[1].last;
        hdrt__failure_drop(slot->ranges[1].failure);
        memmove(&slot->ranges[1], &slot->ranges[2], (slot->range_count - 2) * sizeof *slot->ranges);
        slot->range_count--;
        atomic_fetch_sub(&slot->failures, 1);
    }
    slot->ranges[slot->range_count++] = (hdrt__failed_range){first, last, hdrt__failure_hold(failure)};
    atomic_fetch_add(&slot->failures, 1);
}

/* Under the slot's lock. */
static void fail_from(hdrt__timeline *slot, uint64_t first, hdrt__failure *failure)
{
    if (first <= atomic_load(&slot->completed)) {
        first = atomic_load(&slot->completed) + 1;
    }
    if (slot->ending && first < slot->open_first) {
        hdrt__failure_drop(slot->open_failure);
        slot->open = slot->ending = false;
    }
    if (!slot->open) {
        slot->open = true;
        slot->open_first = first;
        slot->open_failure = hdrt__failure_hold(failure);
        atomic_fetch_add(&slot->failures, 1);
    } else if (first < slot->open_first) {
        add_range(slot, first, slot->open_first - 1, failure);
        /* Nothing below the open range can complete any more. */
    }
}

void hdrt__timeline_fail(hdrt__timeline *slot, uint64_t first, hdrt__failure *failure)
{
    slot_lock(slot);
    fail_from(slot, first, failure);
    unlock_and_wake(slot, tell(slot));
}

uint64_t hdrt__timeline_fail_rest(hdrt__timeline *slot, hdrt__failure *failure)
{
    slot_lock(slot);
    uint64_t first = atomic_load(&slot->completed) + 1;
    fail_from(slot, first, failure);
    unlock_and_wake(slot, tell(slot));
    return first;
}

void hdrt__timeline_reopen(hdrt__timeline *slot, uint64_t last)
{
    slot_lock(slot);
    if (slot->open) {
        if (last >= slot->open_first) {
            add_range(slot, slot->open_first, last, slot->open_failure);
        }
        hdrt__failure_drop(slot->open_failure);
        slot->open = false;
        slot->open_failure = NULL;
        atomic_fetch_sub(&slot->failures, 1);
    }
    slot_unlock(slot);
}

/* ---- who asks ---------------------------------------------------------------------------------------------------- */

static hdrt__timeline *find_slot(hdrt_runtime *runtime, hdrt_event event)
{
    uint32_t index = (uint32_t)event.timeline;
    if (index / HDRT__TIMELINE_CHUNK >= HDRT__TIMELINE_CHUNKS) {
        return NULL;
    }
    hdrt__timeline *chunk =
        atomic_load_explicit(&runtime->timelines->chunks[index / HDRT__TIMELINE_CHUNK], memory_order_acquire);
    return chunk ? &chunk[index % HDRT__TIMELINE_CHUNK] : NULL;
}

hdrt__timeline *hdrt__timeline_pin(hdrt_runtime *runtime, hdrt_event event)
{
    hdrt__timeline *slot = find_slot(runtime, event);
    if (!slot) {
        return NULL;
    }
    slot_lock(slot);
    bool there = slot->state != HDRT__TIMELINE_FREE && atomic_load(&slot->generation) == event.timeline >> 32;
    slot->pins += there;
    slot_unlock(slot);
    return there ? slot : NULL;
}

void hdrt__timeline_unpin(hdrt__timeline *slot)
{
    slot_lock(slot);
    slot->pins--;
    slot_unlock(slot);
}

bool hdrt__timeline_watch_begin(hdrt__timeline *slot, hdrt__timeline_watch *watch)
{
    slot_lock(slot);
    atomic_fetch_add(&slot->watched, 1);
    bool begun = !watch_over(slot, watch);
    if (begun) {
        watch->next = slot->watches;
        slot->watches = watch;
    } else {
        atomic_fetch_sub(&slot->watched, 1);
    }
    slot_unlock(slot);
    return begun;
}

bool hdrt__timeline_unwatch(hdrt__timeline *slot, hdrt__timeline_watch *watch)
{
    bool found = false;
    slot_lock(slot);
    for (hdrt__timeline_watch **link = &slot->watches; *link; link = &(*link)->next) {
        if (*link == watch) {
            *link = watch->next;
            atomic_fetch_sub(&slot->watched, 1);
            found = true;
            break;
        }
    }
    slot_unlock(slot);
    return found;
}

void *hdrt__timeline_owner(hdrt__timeline *slot, const hdrt__timeline_source *source)
{
    void *owner = NULL;
    slot_lock(slot);
    if (slot->state == HDRT__TIMELINE_LIVE && slot->source == source) {
        owner = source->hold(slot->owner) ? slot->owner : NULL;
    }
    slot_unlock(slot);
    return owner;
}

/* Answer without the lock where that is enough: complete, and nothing of the timeline ever failed. */
static bool plainly_complete(const hdrt__timeline *slot, hdrt_event event)
{
    return atomic_load_explicit(&slot->generation, memory_order_acquire) == event.timeline >> 32 &&
           atomic_load_explicit(&slot->failures, memory_order_acquire) == 0 &&
           event.value <= atomic_load_explicit(&slot->completed, memory_order_acquire) &&
           atomic_load_explicit(&slot->generation, memory_order_acquire) == event.timeline >> 32;
}

/* Find an event's slot, or the answer. \return the pinned slot, or NULL with *out_status set. */
static hdrt__timeline *resolve(hdrt_runtime *runtime, hdrt_event event, hdrt_status *out_status)
{
    *out_status = HDRT_OK;
    if (event.timeline == 0 && event.value == 0) {
        return NULL;
    }
    hdrt__timeline *slot = find_slot(runtime, event);
    uint32_t generation = (uint32_t)(event.timeline >> 32);
    if (!slot || generation == 0 || generation > atomic_load(&slot->generation)) {
        *out_status = HDRT_ERROR_INVALID_ARGUMENT;
        return NULL;
    }
    if (plainly_complete(slot, event)) {
        return NULL;
    }
    return hdrt__timeline_pin(runtime, event); /* NULL: an older generation, which is complete */
}

enum asking { ASK_NOT, ASK /* unless that is in others' way */, ASK_PATIENTLY };

/* `out_asked`: what the source said, HDRT_OK if it was not asked. */
static hdrt_status look_pinned(hdrt__timeline *slot, uint64_t value, enum asking asking, hdrt_status *out_asked,
                               hdrt__failure **out_failure)
{
    *out_asked = HDRT_OK;
    slot_lock(slot);
    hdrt_status status = known(slot, value, out_failure);
    const hdrt__timeline_source *source = slot->source;
    void *owner = NULL;
    if (status == HDRT_NOT_READY && asking != ASK_NOT && source) {
        owner = source->hold(slot->owner) ? slot->owner : NULL;
    }
    slot_unlock(slot);
    if (!owner) {
        return status;
    }
    hdrt_status progressed = source->progress(owner, value, asking == ASK_PATIENTLY);
    source->drop(owner);
    *out_asked = progressed;
    slot_lock(slot);
    status = known(slot, value, out_failure);
    slot_unlock(slot);
    if (status != HDRT_NOT_READY || progressed >= 0) {
        return status;
    }
    /* What the driver says of the asking is not said of the event: as its status it would read as over. */
    bool misleads = hdrt__status_over(progressed) && progressed != HDRT_ERROR_DEVICE_LOST;
    return misleads ? HDRT_ERROR_DRIVER : progressed;
}

hdrt_status hdrt__event_look(hdrt_runtime *runtime, hdrt_event event, bool progress, hdrt__failure **out_failure)
{
    hdrt_status status;
    if (out_failure) {
        *out_failure = NULL;
    }
    hdrt__timeline *slot = resolve(runtime, event, &status);
    if (!slot) {
        return status;
    }
    hdrt_status asked;
    status = look_pinned(slot, event.value, progress ? ASK_PATIENTLY : ASK_NOT, &asked, out_failure);
    hdrt__timeline_unpin(slot);
    return status;
}

void *hdrt__timeline_want(hdrt__timeline *slot, uint64_t value, const hdrt__timeline_source **out_source)
{
    void *owner = NULL;
    slot_lock(slot);
    const hdrt__timeline_source *source = slot->source;
    if (source && source->want) {
        owner = source->hold(slot->owner) ? slot->owner : NULL;
    }
    slot_unlock(slot);
    if (!owner) {
        return NULL;
    }
    void *wanted = source->want(owner, value);
    source->drop(owner);
    *out_source = source;
    return wanted;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/*
 * Waiting by default begins with a spin, so that what takes some ten microseconds is seen at once, also on a busy GPU.
 * Where there are processors to spare it looks every few microseconds from then on: a sleep is over some 60 too late.
 * Then it sleeps, at most so long before it looks again.
 */
#define SPIN_NS 60000u
#define YIELD_NS 1000000u
#define YIELD_EACH_NS 10000u
#define PAUSE_NS 500000u
/* For how long asking is put off while others are at the driver. */
#define PATIENCE_NS 250000u
/* A wait that blocks looks more seldom. */
#define PAUSE_BLOCK_NS 8000000u

/* How long to sleep before looking again: a part of the time waited so far, within bounds. */
static uint64_t pause_ns(uint64_t waited, bool blocks)
{
    uint64_t least = blocks ? 50000 : 10000, most = blocks ? PAUSE_BLOCK_NS : PAUSE_NS;
    uint64_t pause = waited / (blocks ? 8 : 16);
    return pause < least ? least : pause > most ? most : pause;
}

/* Sleep until something was told after `changes` was read, or until the moment `until` (UINT64_MAX: no limit). */
static void sleep_on(hdrt__timeline *slot, uint64_t changes, uint64_t until)
{
    slot_lock(slot);
    if (slot->changes == changes) {
        if (until == UINT64_MAX) {
            pthread_cond_wait(&stripe_of(slot)->changed, &stripe_of(slot)->lock);
        } else {
            struct timespec moment = {.tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u)};
            pthread_cond_timedwait(&stripe_of(slot)->changed, &stripe_of(slot)->lock, &moment);
        }
    }
    slot_unlock(slot);
}

static void yield_until(uint64_t until)
{
    do {
        sched_yield();
    } while (hdrt__now_ns() < until);
}

typedef struct waiter {
    hdrt__timeline *slot;
    uint64_t begin, deadline;
    uint64_t answered; /* when the owner last was asked */
    uint64_t changes;  /* before what is known was looked at */
    bool polled;       /* the owner has to be asked, for it tells nothing by itself */
} waiter;

/* Whether to ask even if that is in the way of others, who hand over more: not before it has been put off for long. */
static enum asking asking_of(const waiter *me, uint64_t now)
{
    bool last = me->deadline < now + PATIENCE_NS; /* it may be the only time */
    bool seldom = me->slot->runtime->wait == HDRT_WAIT_BLOCK;
    return last || seldom || now - me->answered >= PATIENCE_NS ? ASK_PATIENTLY : ASK;
}

/* Let time pass by the runtime's policy. `asked`: what the owner said. \return what time it is then. */
static uint64_t pass_time(const waiter *me, hdrt_status asked, uint64_t now)
{
    hdrt_wait policy = me->slot->runtime->wait;
    uint64_t waited = now - me->begin;
    bool looks = me->polled && policy == HDRT_WAIT_AUTO && asked != HDRT_WOULD_BLOCK;
    if (policy == HDRT_WAIT_SPIN || policy == HDRT_WAIT_YIELD || (looks && waited < SPIN_NS)) {
        if (policy == HDRT_WAIT_YIELD || asked != HDRT_OK) { /* who is at the stream may need this processor */
            sched_yield();
        }
        return now; /* about: to read the clock takes as long as much else here */
    }
    hdrt__callback_wait_begin();
    if (looks && waited < YIELD_NS && me->slot->runtime->spare_processors) {
        yield_until(now + (waited / 32 < YIELD_EACH_NS ? waited / 32 : YIELD_EACH_NS));
    } else {
        uint64_t until = me->polled ? now + pause_ns(waited, policy == HDRT_WAIT_BLOCK) : UINT64_MAX;
        sleep_on(me->slot, me->changes, until < me->deadline ? until : me->deadline);
    }
    hdrt__callback_wait_end();
    return hdrt__now_ns();
}

/* The owner is asked again and again; timelines without a source tell by themselves. */
static hdrt_status wait_pinned(hdrt__timeline *slot, uint64_t value, uint64_t deadline, hdrt__failure **out_failure)
{
    uint64_t now = hdrt__now_ns();
    waiter me = {.slot = slot, .begin = now, .deadline = deadline, .answered = now};
    for (;;) {
        slot_lock(slot);
        me.changes = slot->changes;
        me.polled = slot->source != NULL;
        slot_unlock(slot);
        hdrt_status asked, status = look_pinned(slot, value, asking_of(&me, now), &asked, out_failure);
        if (status != HDRT_NOT_READY) {
            return status;
        }
        now = hdrt__now_ns();
        if (now >= deadline) {
            if (asked != HDRT_OK) { /* it was not really looked at */
                status = look_pinned(slot, value, ASK_PATIENTLY, &asked, out_failure);
            }
            return status == HDRT_NOT_READY ? HDRT_TIMEOUT : status;
        }
        hdrt_event inside = hdrt__callback_current();
        if (inside.timeline == hdrt__timeline_event(slot, value).timeline && inside.value <= value) {
            return HDRT_ERROR_CYCLE;
        }
        me.answered = asked == HDRT_OK ? now : me.answered;
        now = pass_time(&me, asked, now);
    }
}

/* A thread that spins for another host function's effect counts as one that waits all the while. */
static hdrt_status wait_by_policy(hdrt__timeline *slot, uint64_t value, uint64_t deadline, hdrt__failure **out_failure)
{
    bool spins = slot->runtime->wait == HDRT_WAIT_SPIN || slot->runtime->wait == HDRT_WAIT_YIELD;
    if (spins) {
        hdrt__callback_wait_begin();
    }
    hdrt_status status = wait_pinned(slot, value, deadline, out_failure);
    if (spins) {
        hdrt__callback_wait_end();
    }
    return status;
}

hdrt_status hdrt__event_wait_until(hdrt_runtime *runtime, hdrt_event event, uint64_t deadline,
                                   hdrt__failure **out_failure)
{
    hdrt_status status;
    if (out_failure) {
        *out_failure = NULL;
    }
    hdrt__timeline *slot = resolve(runtime, event, &status);
    if (!slot) {
        return status;
    }
    status = wait_by_policy(slot, event.value, deadline, out_failure);
    hdrt__timeline_unpin(slot);
    return status;
}
