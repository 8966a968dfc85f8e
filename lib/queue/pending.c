/* SPDX-License-Identifier: MIT */
#include "queue/pending.h"

#include <stdlib.h>

#include "base/status.h"
#include "queue/run.h"
#include "queue/scheduler.h"

#define PENDING_POINTERS 512u

struct hdrt__pending {
    uint32_t count, pointer_count;
    hdrt__op ops[HDRT__TEMPLATE_CHAIN_LIMIT];
    hdrt_queue *queues[HDRT__TEMPLATE_CHAIN_LIMIT]; /* held by their flights */
    uint64_t positions[HDRT__TEMPLATE_CHAIN_LIMIT];
    hdrt__run_launch launches[HDRT__TEMPLATE_CHAIN_LIMIT];
    void *pointers[PENDING_POINTERS];
};

bool hdrt__pending_may(const hdrt__stream *stream, const hdrt__op *op)
{
    return stream->shared && op->kind == HDRT__OP_LAUNCH && !op->cooperative &&
           op->launch.kernel->parameter_count <= PENDING_POINTERS / 8 &&
           atomic_load_explicit(&op->flagged, memory_order_relaxed) <= 1;
}

bool hdrt__pending_full(const hdrt__stream *stream)
{
    const hdrt__pending *pending = stream->pending;
    return pending && (pending->count == HDRT__TEMPLATE_CHAIN_LIMIT ||
                       pending->pointer_count + PENDING_POINTERS / 8 > PENDING_POINTERS);
}

bool hdrt__pending_add(hdrt__stream *stream, hdrt_queue *queue, uint64_t position, hdrt__op *op)
{
    hdrt__pending *pending = stream->pending;
    if (!pending) {
        stream->pending = pending = malloc(sizeof *pending);
        if (!pending) {
            return false;
        }
        pending->count = pending->pointer_count = 0;
    }
    if (!pending->count) {
        hdrt__stream_advance(stream, 1);
        stream->is_pending = true;
    }
    uint32_t i = pending->count++;
    hdrt__op *kept = &pending->ops[i];
    kept->kind = op->kind; /* not all of it: who waits may flag the place just now */
    kept->parameter_bytes = op->parameter_bytes;
    kept->launch = op->launch;
    op->launch.outside = NULL;
    void **pointers = pending->pointers + pending->pointer_count;
    hdrt__run_point_at(kept, pointers);
    pending->pointer_count += kept->launch.kernel->parameter_count;
    pending->queues[i] = queue;
    pending->positions[i] = position;
    pending->launches[i] = (hdrt__run_launch){kept->launch.kernel, &kept->launch.grid, pointers};
    return true;
}

/* From the launch that failed on: each queue fails at its first position among them. */
static void fail_from(hdrt__pending *pending, uint32_t first)
{
    for (uint32_t i = first; i < pending->count; i++) {
        hdrt_queue *queue = pending->queues[i];
        if (atomic_load(&queue->state) == HDRT__QUEUE_OPEN) {
            hdrt__queue_fail(queue, pending->positions[i]);
        }
    }
}

hdrt_status hdrt__pending_flush(hdrt__stream *stream)
{
    hdrt__pending *pending = stream->pending;
    hdrt_status status = HDRT_OK;
    if (!stream->is_pending) {
        return HDRT_OK;
    }
    stream->is_pending = false;
    uint64_t sequence = atomic_load(&stream->sequence);
    atomic_store(&stream->sequence, sequence - 1); /* the commands count themselves */
    uint32_t done = 0;
    while (done < pending->count && status == HDRT_OK && !hdrt__device_is_lost(stream->device)) {
        done += hdrt__run_some(pending->queues[done], stream, pending->positions[done], pending->launches + done,
                               pending->count - done, &status);
    }
    if (atomic_load(&stream->sequence) < sequence) {
        atomic_store(&stream->sequence, sequence); /* those who fly at it are told with what comes next */
    }
    if (status != HDRT_OK) {
        fail_from(pending, done);
    }
    for (uint32_t i = 0; i < pending->count; i++) {
        free(pending->ops[i].launch.outside);
    }
    pending->count = pending->pointer_count = 0;
    return status;
}

void hdrt__pending_free(hdrt__pending *pending)
{
    free(pending);
}
