/* SPDX-License-Identifier: MIT */
#include "queue/dispatcher.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/number.h"
#include "base/status.h"
#include "driver/loader.h"
#include "driver/thread.h"
#include "queue/commit.h"
#include "queue/park.h"
#include "queue/together.h"
#include "queue/watchdog.h"

/* How long it looks for more before it sleeps, how often where more are just coming, and for how long it sleeps at most while
 * something is stalled, or in flight. */
#define SPIN_NS 30000u
#define GATHER_NS 3000u
#define PAUSE_FIRST_NS 20000u
#define PAUSE_WANTED_NS 100000u
#define PAUSE_FLYING_NS 4000000u
#define PAUSE_LISTING_NS 50000u
/* Served queues after which it looks whether launches have pended for long. */
#define FLUSHED 8u
/* After long kernels that came together, so many may wake it that come without others. */
#define COMPANY 8u
/* Served queues after which it asks for what somebody waits for. */
#define SERVED 16u

struct hdrt__dispatcher {
    atomic_uint references; /* the scheduler's and the thread's */
    hdrt__scheduler *scheduler;
    hdrt_device *device;
    uint32_t index;
    pthread_t thread;
    hdrt__listing listed[HDRT__CLASSES]; /* by urgency */
    _Atomic uint32_t signals;   /* what it sleeps on */
    atomic_bool sleeping, stop, look, urged;
    atomic_bool serving; /* queues, one after the other, or what was held back of them */
    _Atomic uint32_t sleeps, woken; /* how often it went to sleep, and from which of these it was woken last */
    _Atomic uint32_t company; /* long kernels that may wake it before there is anything for it */
    _Atomic uint32_t wanted; /* threads that wait for what is in flight */
    /* The thread's: */
    hdrt_queue *stalled;
    hdrt__together *together; /* NULL: not this one, or no memory */
    uint64_t round;
    uint64_t pause;
    bool spins; /* there are processors to spare */
};

/* ---- from other threads ------------------------------------------------------------------------------------------ */

static void signal_it(hdrt__dispatcher *dispatcher)
{
    uint32_t sleep = atomic_load(&dispatcher->sleeps);
    if (atomic_load(&dispatcher->sleeping) && atomic_load(&dispatcher->woken) != sleep) {
        atomic_fetch_add(&dispatcher->signals, 1);
        syscall(SYS_futex, &dispatcher->signals, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        atomic_store(&dispatcher->woken, sleep); /* whoever comes until it runs need not */
    }
}

static uint8_t class_of(const hdrt_queue *queue)
{
    uint8_t urgency = atomic_load(&queue->urgency);
    uint8_t class = urgency < queue->class ? urgency : queue->class;
    return class < HDRT__CLASSES ? class : HDRT__CLASSES - 1;
}

static hdrt__dispatcher *dispatcher_of(const hdrt_queue *queue)
{
    uint32_t shard = atomic_load_explicit(&queue->shard, memory_order_relaxed);
    return queue->scheduler->dispatchers[shard < queue->scheduler->dispatcher_count ? shard : 0];
}

bool hdrt__dispatcher_list_held(hdrt_queue *queue)
{
    hdrt__dispatcher *dispatcher = dispatcher_of(queue);
    if (atomic_exchange(&queue->listed, true)) {
        return false;
    }
    uint8_t class = class_of(queue);
    hdrt__listing_link *before = hdrt__listing_enter(&dispatcher->listed[class], &queue->listing);
    if (class_of(queue) < class) {
        atomic_store(&dispatcher->urged, true); /* it was urged meanwhile, and perhaps not found when they were sorted */
    }
    hdrt__listing_join(before, &queue->listing);
    signal_it(dispatcher);
    return true;
}

void hdrt__dispatcher_list(hdrt_queue *queue)
{
    if (atomic_load(&queue->listed)) {
        return;
    }
    hdrt__queue_hold(queue);
    if (!hdrt__dispatcher_list_held(queue)) {
        hdrt__queue_drop(queue); /* not the last: the caller has one */
    }
}

void hdrt__dispatcher_wake(hdrt_queue *queue)
{
    if (atomic_load(&queue->committer) == HDRT__COMMITTER_NONE &&
        atomic_load(&queue->ring.consumed) != atomic_load(&queue->ring.published)) {
        hdrt__dispatcher_list(queue);
    }
}

void hdrt__dispatcher_rouse(hdrt__scheduler *scheduler)
{
    hdrt__dispatcher *dispatcher = scheduler->dispatchers[0];
    uint32_t left = atomic_load_explicit(&dispatcher->company, memory_order_relaxed);
    if (left && dispatcher->spins) {
        atomic_store_explicit(&dispatcher->company, left - 1, memory_order_relaxed);
        signal_it(dispatcher);
    }
}

void hdrt__dispatcher_urge(hdrt_queue *queue, uint8_t class)
{
    uint8_t urgency = atomic_load(&queue->urgency);
    while (class < urgency && !atomic_compare_exchange_weak(&queue->urgency, &urgency, class)) {
    }
    if (class < urgency && class < queue->class) {
        atomic_store(&dispatcher_of(queue)->urged, true);
    }
}

void hdrt__dispatcher_want(hdrt__scheduler *scheduler, bool begins)
{
    hdrt__dispatcher *dispatcher = scheduler->dispatchers[0];
    if (begins) {
        atomic_fetch_add(&dispatcher->wanted, 1);
        atomic_store(&dispatcher->look, true);
        signal_it(dispatcher);
    } else {
        atomic_fetch_sub(&dispatcher->wanted, 1);
    }
}

static bool rests(const hdrt__dispatcher *dispatcher)
{
    bool rests = !atomic_load_explicit(&dispatcher->serving, memory_order_relaxed);
    for (uint32_t i = 0; rests && i < HDRT__CLASSES; i++) {
        rests = !hdrt__listing_was_entered(&dispatcher->listed[i]);
    }
    return rests;
}

bool hdrt__dispatchers_rest(const hdrt__scheduler *scheduler)
{
    bool all = true;
    for (uint32_t i = 0; all && i < scheduler->dispatcher_count; i++) {
        all = rests(scheduler->dispatchers[i]);
    }
    return all;
}

bool hdrt__dispatcher_is_wanted(const hdrt__scheduler *scheduler)
{
    return atomic_load(&scheduler->dispatchers[0]->wanted) != 0;
}

void hdrt__dispatcher_look(hdrt__scheduler *scheduler)
{
    hdrt__dispatcher *dispatcher = scheduler->dispatchers[0];
    atomic_store(&dispatcher->look, true);
    signal_it(dispatcher);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

bool hdrt__dispatcher_serves_first(const hdrt_queue *producer, const hdrt_queue *queue)
{
    return atomic_load(&producer->listed) && dispatcher_of(producer) == dispatcher_of(queue) &&
           class_of(producer) <= class_of(queue);
}

static hdrt_queue *queue_of(hdrt__listing_link *link)
{
    return (hdrt_queue *)((char *)link - offsetof(hdrt_queue, listing));
}

/* Whether nothing is listed. */
static bool is_idle(const hdrt__dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < HDRT__CLASSES; i++) {
        if (!hdrt__listing_is_empty(&dispatcher->listed[i])) {
            return false;
        }
    }
    return true;
}

/* Whether something is listed that can be taken: else somebody may just be listing it. */
static bool has_listed(const hdrt__dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < HDRT__CLASSES; i++) {
        if (hdrt__listing_has(&dispatcher->listed[i])) {
            return true;
        }
    }
    return false;
}

/* Somebody urgent waits for one of them: sort them again. */
static void sort_again(hdrt__dispatcher *dispatcher)
{
    hdrt__listing sorted[HDRT__CLASSES];
    hdrt__listing_link *link, *next;
    for (uint32_t i = 0; i < HDRT__CLASSES; i++) {
        hdrt__listing_init(&sorted[i]);
    }
    for (uint32_t i = 0; i < HDRT__CLASSES; i++) {
        while ((link = hdrt__listing_take(&dispatcher->listed[i], &next))) {
            hdrt__listing_append(&sorted[class_of(queue_of(link))], link);
        }
        if (!hdrt__listing_is_empty(&dispatcher->listed[i])) {
            atomic_store(&dispatcher->urged, true); /* one is just being appended: perhaps it is that one */
        }
    }
    for (uint32_t i = 0; i < HDRT__CLASSES; i++) {
        while ((link = hdrt__listing_take(&sorted[i], &next))) {
            hdrt__listing_append(&dispatcher->listed[i], link);
        }
    }
}

static hdrt_queue *next_listed(hdrt__dispatcher *dispatcher)
{
    if (atomic_load_explicit(&dispatcher->urged, memory_order_relaxed) && atomic_exchange(&dispatcher->urged, false)) {
        sort_again(dispatcher);
    }
    for (uint32_t i = 0; i < HDRT__CLASSES; i++) {
        hdrt__listing_link *next, *link = hdrt__listing_take(&dispatcher->listed[i], &next);
        if (link) {
            if (next) { /* others wrote it */
                const char *memory = (const char *)queue_of(next);
                for (unsigned line = 0; line < sizeof(hdrt_queue) / 64; line++) {
                    __builtin_prefetch(memory + line * 64);
                }
            }
            return queue_of(link);
        }
    }
    return NULL;
}

/* ---- serving ----------------------------------------------------------------------------------------------------- */

/* The queue has more, and others wait for their turn: every second such queue goes to the other dispatcher. */
static void share(const hdrt__dispatcher *dispatcher, hdrt_queue *queue)
{
    if (dispatcher->index == 0 && dispatcher->scheduler->dispatcher_count > 1 && queue->entry.number % 2 &&
        !is_idle(dispatcher)) {
        atomic_store_explicit(&queue->shard, 1, memory_order_relaxed);
    }
}

/* The committer, with a hold of the queue's to give away. \return false: the device may be over. */
static bool serve(hdrt__dispatcher *dispatcher, hdrt_queue *queue)
{
    hdrt__park_tidy(queue);
    switch (hdrt__queue_drain(queue, HDRT__QUANTUM, true)) {
    case HDRT__DRAINED_EMPTY:
        atomic_store(&queue->urgency, UINT8_MAX);
        hdrt__committer_leave(queue);
        break;
    case HDRT__DRAINED_QUANTUM:
        share(dispatcher, queue);
        hdrt__committer_leave(queue);
        break;
    case HDRT__DRAINED_PARKED:
        break;
    case HDRT__DRAINED_STALLED:
        atomic_store(&queue->committer, HDRT__COMMITTER_STALLED);
        queue->next_stalled = dispatcher->stalled;
        dispatcher->stalled = queue;
        return true;
    }
    hdrt__queue_drop(queue);
    return !atomic_load(&dispatcher->stop);
}

/* Take the queue from the list, as its committer. \return false: somebody else is, and looks into the ring again. */
static bool take_listed(hdrt_queue *queue)
{
    atomic_store(&queue->listed, false);
    if (hdrt__committer_take(queue, HDRT__COMMITTER_NONE)) {
        return true;
    }
    hdrt__queue_drop(queue);
    return false;
}

/* Launch what has come together, side by side as far as it can be. */
static bool look_at_together(hdrt__dispatcher *dispatcher)
{
    hdrt_queue *queue;
    bool alive = true;
    while (alive && (queue = hdrt__together_next(dispatcher->together))) {
        alive = serve(dispatcher, queue);
    }
    return alive && !atomic_load(&dispatcher->stop);
}

static bool serve_listed(hdrt__dispatcher *dispatcher, hdrt_queue *queue)
{
    if (!take_listed(queue)) {
        return !atomic_load(&dispatcher->stop);
    }
    if (!dispatcher->together) {
        return serve(dispatcher, queue);
    }
    if (!hdrt__together_add(dispatcher->together, queue)) {
        hdrt__together_finish(dispatcher->together);
        return serve(dispatcher, queue);
    }
    atomic_store_explicit(&dispatcher->company, COMPANY, memory_order_relaxed);
    return hdrt__together_is_due(dispatcher->together) ? look_at_together(dispatcher) : !atomic_load(&dispatcher->stop);
}

/* ---- looking at the GPU ------------------------------------------------------------------------------------------ */

/* Ask for a stream, once in a round. */
static void ask(hdrt__dispatcher *dispatcher, hdrt__stream *stream, uint64_t sequence)
{
    uint64_t round = dispatcher->round * HDRT__DISPATCHERS + dispatcher->index;
    if (atomic_exchange_explicit(&stream->polled, round, memory_order_relaxed) != round) {
        hdrt__stream_poll(stream, sequence);
    }
}

static bool can_go_on(hdrt__dispatcher *dispatcher, hdrt_queue *queue)
{
    if (hdrt__device_is_lost(dispatcher->device)) {
        return true;
    }
    if (!queue->stalled_by) {
        hdrt__queue_poll(queue, atomic_load(&queue->entry.timeline->committed), true);
        return hdrt__queue_settle(queue);
    }
    /* Not at the first free place: a few at a time. */
    uint64_t completed = atomic_load(&queue->stalled_by->entry.completed);
    ask(dispatcher, queue->stalled_by, completed + HDRT__COMMAND_LIMIT / 4);
    return hdrt__stream_outstanding(queue->stalled_by) <= HDRT__COMMAND_LIMIT * 3 / 4;
}

/* \return whether one of them goes on; *out_alive: false when the device may be over. */
static bool look_at_stalled(hdrt__dispatcher *dispatcher, bool *out_alive)
{
    bool moved = false;
    hdrt_queue *queue = dispatcher->stalled;
    dispatcher->stalled = NULL;
    while (queue) {
        hdrt_queue *next = queue->next_stalled;
        if (*out_alive && can_go_on(dispatcher, queue)) {
            hdrt__stream *stream = queue->stalled_by;
            queue->stalled_by = NULL;
            atomic_store(&queue->committer, HDRT__COMMITTER_BUSY);
            hdrt__stream_drop(stream);
            moved = true;
            *out_alive = serve(dispatcher, queue);
        } else {
            queue->next_stalled = dispatcher->stalled;
            dispatcher->stalled = queue;
        }
        queue = next;
    }
    return moved;
}

/* Streams with something in flight, each with a hold. */
static uint32_t list_flying(hdrt_device *device, hdrt__stream **streams, uint32_t capacity)
{
    uint32_t count = 0;
    pthread_mutex_lock(&device->queues_lock);
    for (hdrt__device_stream *entry = device->streams; entry && count < capacity; entry = entry->next) {
        hdrt__stream *stream = (hdrt__stream *)entry;
        unsigned references = atomic_load(&stream->references);
        if (hdrt__stream_outstanding(stream) == 0) {
            continue;
        }
        while (references && !atomic_compare_exchange_weak(&stream->references, &references, references + 1)) {
        }
        if (references) {
            streams[count++] = stream;
        }
    }
    pthread_mutex_unlock(&device->queues_lock);
    return count;
}

/* Ask for all that is in flight, or only for what is marked. \return whether something still is. */
static bool look_at_streams(hdrt__dispatcher *dispatcher, bool marked)
{
    hdrt__stream *streams[HDRT__STREAM_LIMIT + 64];
    bool flying = false;
    uint32_t count = list_flying(dispatcher->device, streams, sizeof streams / sizeof streams[0]);
    for (uint32_t i = 0; i < count; i++) {
        ask(dispatcher, streams[i], marked ? HDRT__STREAM_MARKED : UINT64_MAX);
        hdrt__watchdog_look(streams[i]);
        flying |= hdrt__stream_outstanding(streams[i]) != 0;
        hdrt__stream_drop(streams[i]);
    }
    return flying;
}

/* While others are served: somebody waits for room, say. \return false: the device may be over. */
static bool look_for_wanted(hdrt__dispatcher *dispatcher)
{
    if (hdrt__device_try_hold(dispatcher->device)) {
        dispatcher->round++;
        look_at_streams(dispatcher, true);
        hdrt__device_drop(dispatcher->device);
    }
    return !atomic_load(&dispatcher->stop);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* Whether somebody wants something of it that is in no list. */
static bool is_called(const hdrt__dispatcher *dispatcher)
{
    return atomic_load(&dispatcher->stop) || atomic_load(&dispatcher->look);
}

/* Where many long kernels are likely to come soon stay awake, if there are processors to spare: to wake takes as long as to
 * gather 200 of them. \return how much of the pause is left. */
static uint64_t wait_awake(hdrt__dispatcher *dispatcher, uint64_t pause)
{
    const hdrt_runtime *runtime = dispatcher->device->runtime;
    bool spins = dispatcher->together && runtime->spare_processors && runtime->wait != HDRT_WAIT_BLOCK;
    uint64_t awaited = spins ? hdrt__together_awaited_until(dispatcher->together) : 0;
    uint64_t begin = hdrt__now_ns(), now = begin;
    while (now < awaited && now - begin < pause) {
        if (!is_idle(dispatcher) || is_called(dispatcher)) {
            return 0;
        }
        sched_yield();
        now = hdrt__now_ns();
    }
    return pause == UINT64_MAX ? pause : pause - (now - begin < pause ? now - begin : pause);
}

static void sleep_for(hdrt__dispatcher *dispatcher, uint64_t pause)
{
    bool listing = !is_idle(dispatcher); /* by somebody who has lost its processor, or is soon done, and signals then */
    if (listing) {
        pause = pause < PAUSE_LISTING_NS ? pause : PAUSE_LISTING_NS;
    } else {
        pause = wait_awake(dispatcher, pause);
    }
    struct timespec time = {(time_t)(pause / 1000000000u), (long)(pause % 1000000000u)};
    uint32_t signals = atomic_load(&dispatcher->signals);
    atomic_fetch_add(&dispatcher->sleeps, 1);
    atomic_store(&dispatcher->sleeping, true);
    if (pause && (listing ? !has_listed(dispatcher) : is_idle(dispatcher)) && !is_called(dispatcher)) {
        syscall(SYS_futex, &dispatcher->signals, FUTEX_WAIT_PRIVATE, signals, pause == UINT64_MAX ? NULL : &time, NULL,
                0);
    }
    atomic_store(&dispatcher->sleeping, false);
}

/* More are likely to come at once: look again when there are some. Each look takes lines of memory from who lists them. */
static void let_gather(void)
{
    uint64_t begin = hdrt__now_ns();
    do {
        hdrt__relax(); /* to yield may take as long as others like to run */
    } while (hdrt__now_ns() - begin < GATHER_NS);
}

/* How long it may not look at the streams, for the watchdog. */
static uint64_t watch_ns(const hdrt__dispatcher *dispatcher)
{
    uint64_t limit = dispatcher->device->watchdog_ns;
    return limit ? limit / 2 + 1 : UINT64_MAX;
}

/* Nothing is ready; what is held back may be looked at again after `held`. \return false: the device may be over. */
static bool idle(hdrt__dispatcher *dispatcher, uint64_t since, uint64_t held)
{
    bool alive = true, flying = true, left = false;
    if (dispatcher->spins && hdrt__now_ns() - since < SPIN_NS) {
        if (dispatcher->stalled) {
            dispatcher->round++;
            look_at_stalled(dispatcher, &alive);
        }
        return alive;
    }
    if (!hdrt__device_try_hold(dispatcher->device)) {
        sleep_for(dispatcher, PAUSE_FLYING_NS); /* it is ending, and will say stop */
        return true;
    }
    atomic_store(&dispatcher->look, false);
    dispatcher->round++;
    if (look_at_stalled(dispatcher, &alive)) {
        dispatcher->pause = PAUSE_FIRST_NS;
    } else {
        flying = dispatcher->index == 0 && look_at_streams(dispatcher, false);
        if (dispatcher->index == 0) {
            left = hdrt__scheduler_tidy(dispatcher->scheduler, flying || dispatcher->stalled);
            hdrt__relief_give(dispatcher->scheduler);
        }
        uint64_t most = atomic_load(&dispatcher->wanted) ? PAUSE_WANTED_NS : PAUSE_FLYING_NS;
        most = held < most ? held : most;
        uint64_t pause = dispatcher->pause < most ? dispatcher->pause : most;
        dispatcher->pause = pause * 2;
        if (alive && !dispatcher->stalled && !flying && !left && held == UINT64_MAX) {
            pause = UINT64_MAX;
        }
        if (dispatcher->index == 0 && watch_ns(dispatcher) < pause) {
            pause = watch_ns(dispatcher); /* work may go out by others, who do not wake it */
        }
        hdrt__device_drop(dispatcher->device);
        if (atomic_load(&dispatcher->stop)) {
            return false;
        }
        sleep_for(dispatcher, pause);
        return true;
    }
    hdrt__device_drop(dispatcher->device);
    return !atomic_load(&dispatcher->stop);
}

static void set_serving(hdrt__dispatcher *dispatcher, bool serving)
{
    if (atomic_load_explicit(&dispatcher->serving, memory_order_relaxed) != serving) {
        atomic_store_explicit(&dispatcher->serving, serving, memory_order_relaxed);
    }
}

static void dispatcher_drop(hdrt__dispatcher *dispatcher)
{
    if (atomic_fetch_sub_explicit(&dispatcher->references, 1, memory_order_acq_rel) == 1) {
        hdrt__together_destroy(dispatcher->together);
        free(dispatcher);
    }
}

static void *dispatch(void *argument)
{
    hdrt__dispatcher *dispatcher = argument;
    uint64_t since = 0, served = 0;
    hdrt__call call = hdrt__device_stay(dispatcher->device);
    hdrt__driver_observe(dispatcher->device->runtime->driver, true); /* what it asks forces nothing */
    if (call.result) {
        hdrt__device_check(dispatcher->device, call, "the dispatcher of device %u", dispatcher->device->index);
        hdrt__log(HDRT_LOG_ERROR, "%s", hdrt_last_error());
    }
    for (bool alive = true; alive && !atomic_load(&dispatcher->stop);) {
        hdrt_queue *queue = next_listed(dispatcher);
        if (queue) {
            set_serving(dispatcher, true);
            alive = serve_listed(dispatcher, queue);
            if (alive && served % FLUSHED == 0) {
                hdrt__scheduler_flush(dispatcher->scheduler, false);
            }
            if (alive && ++served % SERVED == 0 && atomic_load_explicit(&dispatcher->wanted, memory_order_relaxed)) {
                alive = look_for_wanted(dispatcher);
            }
            if (alive && dispatcher->together && served % SERVED == 0) {
                alive = look_at_together(dispatcher);
            }
            since = 0;
            dispatcher->pause = PAUSE_FIRST_NS;
            continue;
        }
        if (atomic_load(&dispatcher->scheduler->pending_count)) {
            hdrt__scheduler_flush(dispatcher->scheduler, true);
        } else {
            uint64_t held = dispatcher->together ? hdrt__together_pause(dispatcher->together) : UINT64_MAX;
            if (held != UINT64_MAX) {
                alive = look_at_together(dispatcher);
            }
            if (alive && dispatcher->together) {
                hdrt__together_finish(dispatcher->together);
                alive = !atomic_load(&dispatcher->stop);
            }
            if (alive && held) {
                since = since ? since : hdrt__now_ns();
                set_serving(dispatcher, false);
                alive = idle(dispatcher, since, held);
            } else if (alive) {
                let_gather();
            }
        }
    }
    dispatcher_drop(dispatcher);
    return NULL;
}

hdrt__dispatcher *hdrt__dispatcher_create(hdrt__scheduler *scheduler, uint32_t index)
{
    hdrt__dispatcher *dispatcher = calloc(1, sizeof *dispatcher);
    if (!dispatcher) {
        hdrt__fail_memory(sizeof *dispatcher, "a device's dispatcher");
        return NULL;
    }
    dispatcher->scheduler = scheduler;
    dispatcher->index = index;
    dispatcher->device = scheduler->device;
    dispatcher->spins = hdrt__processors() > 2;
    for (uint32_t i = 0; i < HDRT__CLASSES; i++) {
        hdrt__listing_init(&dispatcher->listed[i]);
    }
    dispatcher->together = index == 0 ? hdrt__together_create() : NULL;
    atomic_init(&dispatcher->references, 2);
    if (hdrt__thread_start(&dispatcher->thread, "hdrt-dispatch", dispatch, dispatcher) != HDRT_OK) {
        hdrt__together_destroy(dispatcher->together);
        free(dispatcher);
        return NULL;
    }
    return dispatcher;
}

void hdrt__dispatcher_destroy(hdrt__dispatcher *dispatcher)
{
    if (!dispatcher) {
        return;
    }
    atomic_store(&dispatcher->stop, true);
    if (pthread_equal(pthread_self(), dispatcher->thread)) {
        pthread_detach(dispatcher->thread);
    } else {
        signal_it(dispatcher);
        pthread_join(dispatcher->thread, NULL);
    }
    dispatcher_drop(dispatcher);
}
