/* SPDX-License-Identifier: MIT */
#include "queue/wide.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "queue/commit.h"
#include "queue/pending.h"
#include "queue/run.h"
#include "queue/scheduler.h"

/* Parameters of all launches together. */
#define WIDE_POINTERS (HDRT__WIDE_LIMIT * 16u)

struct hdrt__wide {
    hdrt__run_launch launches[HDRT__WIDE_LIMIT];
    void *pointers[WIDE_POINTERS];
};

hdrt__wide *hdrt__wide_create(void)
{
    return malloc(sizeof(hdrt__wide));
}

void hdrt__wide_destroy(hdrt__wide *wide)
{
    free(wide);
}

bool hdrt__wide_may(hdrt_queue *queue)
{
    const hdrt__op *op = hdrt__ring_ahead(&queue->ring, 0);
    __builtin_prefetch(op ? &op->launch.inside[sizeof(void *)] : NULL); /* on another line, and read next */
    return op && !hdrt__ring_ahead(&queue->ring, 1) && op->kind == HDRT__OP_LAUNCH && !op->cooperative &&
           !queue->entry.exclusive && !queue->adopted && hdrt__queue_settle(queue) &&
           atomic_load(&queue->state) == HDRT__QUEUE_OPEN && !atomic_load(&op->flagged);
}

uint32_t hdrt__wide_expected_us(hdrt_queue *queue)
{
    const hdrt__op *op = hdrt__ring_ahead(&queue->ring, 0);
    return atomic_load_explicit(&op->launch.kernel->expected_us, memory_order_relaxed);
}

bool hdrt__wide_match(hdrt_queue *one, hdrt_queue *other)
{
    const hdrt__op *first = hdrt__ring_ahead(&one->ring, 0), *second = hdrt__ring_ahead(&other->ring, 0);
    return one->class == other->class && first->launch.kernel->function == second->launch.kernel->function &&
           memcmp(&first->launch.grid, &second->launch.grid, sizeof first->launch.grid) == 0;
}

/* \return how many fit. */
static uint32_t gather(hdrt__wide *wide, hdrt_queue **queues, uint32_t count)
{
    uint32_t used = 0, gathered = 0;
    while (gathered < count) {
        hdrt__op *op = hdrt__ring_ahead(&queues[gathered]->ring, 0);
        uint32_t needed = op->launch.kernel->parameter_count;
        if (used + needed > WIDE_POINTERS) {
            break;
        }
        hdrt__run_point_at(op, wide->pointers + used);
        wide->launches[gathered++] = (hdrt__run_launch){op->launch.kernel, &op->launch.grid, wide->pointers + used};
        used += needed;
    }
    return gathered;
}

void hdrt__wide_mark(hdrt__stream *stream)
{
    pthread_mutex_lock(&stream->commit);
    hdrt__stream_mark_end(stream);
    pthread_mutex_unlock(&stream->commit);
}

/* The queue's launch is in the stream, whose lock is no longer held: from now on it can be asked for. */
static void publish(hdrt_queue *queue, hdrt__stream *stream, uint64_t sequence)
{
    hdrt__stream_hold(stream);
    hdrt__points_lock(queue); /* it had no points */
    queue->points_inline[0] = (hdrt__point){stream, sequence, 0};
    queue->point_count = 1;
    queue->point_own = true;
    hdrt__points_unlock(queue);
    hdrt__timeline_commit(queue->entry.timeline, atomic_load(&queue->ring.consumed) + 1);
}

void hdrt__wide_finish(hdrt_queue *queue)
{
    hdrt__op_release(queue, hdrt__ring_ahead(&queue->ring, 0), false);
    hdrt__ring_consume(&queue->ring, 1, &queue->scheduler->segments, &queue->lock);
}

uint32_t hdrt__wide_rest(hdrt_queue *queue, uint32_t count)
{
    hdrt__templates *templates = hdrt__scheduler_use_templates(queue->scheduler);
    uint32_t rest = count;
    if (templates) {
        rest = hdrt__templates_wide_rest(templates, count);
        hdrt__scheduler_leave_templates(queue->scheduler);
    }
    return rest;
}

bool hdrt__wide_is_ready(hdrt__wide *wide, hdrt_queue **queues, uint32_t count)
{
    hdrt__scheduler *scheduler = queues[0]->scheduler;
    hdrt__templates *templates = hdrt__scheduler_use_templates(scheduler);
    if (!templates) {
        return false;
    }
    bool ready = hdrt__templates_wide_is_ready(templates, wide->launches, gather(wide, queues, count));
    hdrt__scheduler_leave_templates(scheduler);
    return ready;
}

uint32_t hdrt__wide_hand_over(hdrt__wide *wide, hdrt__stream *stream, hdrt_queue **queues, uint32_t count)
{
    hdrt__scheduler *scheduler = queues[0]->scheduler;
    hdrt_device *device = scheduler->device;
    hdrt__call call = {HDCU_SUCCESS, "cuGraphLaunch"};
    hdrt__templates *templates = hdrt__scheduler_use_templates(scheduler);
    if (!templates) {
        return 0;
    }
    uint32_t launched = 0;
    count = gather(wide, queues, count);
    pthread_mutex_lock(&stream->commit);
    hdrt__pending_flush(stream);
    hdrt__run_place place = {
        .stream = stream->handle, .index = stream->entry.index, .sequence = atomic_load(&stream->sequence) + 1};
    if (hdrt__stream_outstanding(stream) < HDRT__COMMAND_LIMIT && hdrt__stream_reserve_flights(stream, count)) {
        hdrt__stream_due(stream, queues[0]);
        atomic_store_explicit(&scheduler->launching, true, memory_order_relaxed);
        launched = hdrt__templates_wide(templates, &place, wide->launches, count, &call);
    }
    if (launched) {
        hdrt__device_stream_launch(&stream->entry, place.sequence, &queues[0]->entry,
                                   atomic_load(&queues[0]->ring.consumed) + 1, wide->launches[0].kernel->label,
                                   wide->launches[0].grid);
        hdrt__stream_advance(stream, 1);
        hdrt__stream_work(stream, launched);
        for (uint32_t i = 0; i < launched; i++) {
            hdrt__stream_fly(stream, queues[i], atomic_load(&queues[i]->ring.consumed) + 1);
        }
        stream->due = UINT8_MAX; /* no other command gets between it and its mark */
    }
    uint64_t sequence = atomic_load(&stream->sequence);
    pthread_mutex_unlock(&stream->commit);
    atomic_store_explicit(&scheduler->launching, false, memory_order_relaxed);
    hdrt__scheduler_leave_templates(scheduler);
    for (uint32_t i = 0; i < launched; i++) {
        publish(queues[i], stream, sequence);
    }
    if (call.result && hdrt__device_check(device, call, "%u kernels side by side", count) != HDRT_ERROR_DEVICE_LOST) {
        hdrt__log(HDRT_LOG_WARN, "%s; they are launched one by one", hdrt_last_error());
    }
    return launched;
}
