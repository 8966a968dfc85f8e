/* SPDX-License-Identifier: MIT */
/*
 * Random yields of the processor where the state of a queue changes: linked with --wrap for each function below, so the
 * library's own calls of them come here. Between two such calls lie the windows in which another thread matters.
 */
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "queue/commit.h"
#include "queue/dispatcher.h"
#include "queue/follow.h"
#include "queue/park.h"
#include "yields.h"

static _Atomic uint32_t seeds;
static _Thread_local uint32_t state;
static _Atomic uint32_t rarity; /* one call of so many yields; 0: none */

void yields_set(uint32_t one_of)
{
    atomic_store_explicit(&rarity, one_of, memory_order_relaxed);
}

static void maybe_yield(void)
{
    if (!state) {
        state = 1 + atomic_fetch_add(&seeds, 0x9e3779b9u);
    }
    uint32_t one_of = atomic_load_explicit(&rarity, memory_order_relaxed);
    state = state * 1664525u + 1013904223u;
    if (one_of && (state >> 8) % one_of == 0) {
        sched_yield();
    }
}

/* A function of no result: yields before and after. */
#define YIELD_AROUND(name, parameters, arguments)                                                                      \
    void __real_##name parameters;                                                                                     \
    void __wrap_##name parameters;                                                                                     \
    void __wrap_##name parameters                                                                                      \
    {                                                                                                                  \
        maybe_yield();                                                                                                 \
        __real_##name arguments;                                                                                       \
        maybe_yield();                                                                                                 \
    }

YIELD_AROUND(hdrt__committer_leave, (hdrt_queue *queue), (queue))
YIELD_AROUND(hdrt__queue_commit, (hdrt_queue *queue), (queue))
YIELD_AROUND(hdrt__dispatcher_list, (hdrt_queue *queue), (queue))
YIELD_AROUND(hdrt__dispatcher_wake, (hdrt_queue *queue), (queue))
YIELD_AROUND(hdrt__park_tidy, (hdrt_queue *queue), (queue))
YIELD_AROUND(hdrt__queue_landed, (hdrt_queue *queue, uint64_t position), (queue, position))
YIELD_AROUND(hdrt__timeline_commit, (hdrt__timeline *timeline, uint64_t value), (timeline, value))
YIELD_AROUND(hdrt__ring_consume,
             (hdrt__ring *ring, uint32_t count, hdrt__segments *segments, pthread_mutex_t *lock),
             (ring, count, segments, lock))

bool __real_hdrt__timeline_watch_begin(hdrt__timeline *timeline, hdrt__timeline_watch *watch);
bool __wrap_hdrt__timeline_watch_begin(hdrt__timeline *timeline, hdrt__timeline_watch *watch);
bool __wrap_hdrt__timeline_watch_begin(hdrt__timeline *timeline, hdrt__timeline_watch *watch)
{
    maybe_yield();
    bool begun = __real_hdrt__timeline_watch_begin(timeline, watch);
    maybe_yield();
    return begun;
}

hdrt__drained __real_hdrt__queue_drain(hdrt_queue *queue, uint32_t quantum);
hdrt__drained __wrap_hdrt__queue_drain(hdrt_queue *queue, uint32_t quantum);
hdrt__drained __wrap_hdrt__queue_drain(hdrt_queue *queue, uint32_t quantum)
{
    maybe_yield();
    hdrt__drained drained = __real_hdrt__queue_drain(queue, quantum);
    maybe_yield();
    return drained;
}
