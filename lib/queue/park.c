/* SPDX-License-Identifier: MIT */
#include "queue/park.h"

#include <stddef.h>

#include "base/status.h"
#include "queue/dispatcher.h"

/* On any thread and, when a device is lost, under its lock: so nothing is dropped here. */
static void wake(hdrt__timeline_watch *watch)
{
    hdrt_queue *queue = (hdrt_queue *)((char *)watch - offsetof(hdrt_queue, watch));
    hdrt_runtime *runtime = queue->device->runtime;
    pthread_mutex_lock(&runtime->parking);
    hdrt__timeline *timeline = queue->parked_at;
    queue->parked = false;
    pthread_mutex_unlock(&runtime->parking);
    if (timeline) {
        hdrt__timeline_unpin(timeline);
    }
    atomic_store(&queue->committer, HDRT__COMMITTER_NONE);
    if (!hdrt__dispatcher_list_held(queue)) {
        atomic_fetch_add(&queue->wakes, 1); /* it is listed: whoever serves it drops this hold */
    }
}

void hdrt__park_tidy(hdrt_queue *queue)
{
    hdrt_queue *producer = queue->parked_on;
    queue->parked_on = NULL;
    for (uint8_t wakes = atomic_exchange(&queue->wakes, 0); wakes; wakes--) {
        hdrt__queue_drop(queue);
    }
    if (producer) {
        hdrt__queue_drop(producer);
    }
}

/* Under the parking lock: whether the producer waits, by way of others, for what the queue has yet to commit. */
static bool waits_for(const hdrt_queue *producer, const hdrt_queue *queue)
{
    for (const hdrt_queue *at = producer; at && at->parked; at = at->parked_on) {
        if (!at->parked_on || at->watch.value <= atomic_load(&at->parked_on->entry.timeline->committed)) {
            return false; /* it is just being woken */
        }
        if (at->parked_on == queue) {
            return true;
        }
    }
    return false;
}

hdrt__parked hdrt__park(hdrt_queue *queue, hdrt__timeline *timeline, bool pinned, hdrt_queue *producer,
                        uint64_t value)
{
    hdrt_runtime *runtime = queue->device->runtime;
    pthread_mutex_lock(&runtime->parking);
    /* What the producer has committed meanwhile it does not wait for, though it may since wait for what comes later here. */
    bool cycle = producer && value > atomic_load(&timeline->committed) && waits_for(producer, queue);
    if (!cycle) {
        queue->parked = true;
        queue->parked_on = producer;
        queue->parked_at = pinned ? timeline : NULL;
        queue->watch = (hdrt__timeline_watch){.value = value, .step = HDRT__TIMELINE_COMMITTED, .wake = wake};
        atomic_store(&queue->committer, HDRT__COMMITTER_PARKED);
    }
    pthread_mutex_unlock(&runtime->parking);
    if (cycle) {
        hdrt__fail(HDRT_ERROR_CYCLE,
                   "queue '%s' waits for position %llu of queue '%s', which waits, by itself or by way of others, for "
                   "what comes later in queue '%s': none of them can go on",
                   HDRT__QUEUE_NAME(queue), (unsigned long long)value, HDRT__QUEUE_NAME(producer),
                   HDRT__QUEUE_NAME(queue));
        return HDRT__PARKED_CYCLE;
    }
    if (producer) {
        hdrt__dispatcher_urge(producer, queue->class);
        hdrt__dispatcher_wake(producer);
    }
    hdrt__queue_hold(queue);
    if (producer) {
        hdrt__queue_hold(producer); /* it may be woken, and let go of its own hold, at once */
    }
    if (hdrt__timeline_watch_begin(timeline, &queue->watch)) {
        if (producer && atomic_load(&producer->closed) && value > hdrt__queue_position(producer)) {
            hdrt__queue_end_values(producer);
        }
        if (producer) {
            hdrt__queue_drop(producer);
        }
        return HDRT__PARKED_OK;
    }
    if (producer) {
        hdrt__queue_drop(producer); /* not the last: the caller has one */
    }
    pthread_mutex_lock(&runtime->parking);
    queue->parked = false;
    queue->parked_on = NULL;
    pthread_mutex_unlock(&runtime->parking);
    atomic_store(&queue->committer, HDRT__COMMITTER_BUSY);
    hdrt__queue_drop(queue); /* not the last: the committer has one */
    return HDRT__PARKED_NOT;
}
