/* SPDX-License-Identifier: MIT */
#include "queue/run.h"

#include <stdlib.h>

#include "base/status.h"
#include "queue/bell.h"
#include "queue/scheduler.h"
#include "queue/template.h"

/* Pointers to the parameters of a run; a launch with more than that goes alone. */
#define RUN_POINTERS 1024u
/* Launches that are looked at together: more than a template takes, so that it need not be cut where they end; fewer where
 * the last ones went out in small parts, since most would be looked at again. */
#define RUN_LAUNCHES (3 * HDRT__TEMPLATE_CHAIN_LIMIT)
#define RUN_LAUNCHES_FEW (HDRT__TEMPLATE_CHAIN_LIMIT + 16)
/* Templates and single launches under one lock of the stream: others may want it meanwhile. */
#define RUN_PARTS 16u

typedef struct launch_run {
    hdrt__run_launch launches[RUN_LAUNCHES];
    void *pointers[RUN_POINTERS];
    uint32_t count, pointer_count;
    uint8_t flagged; /* how many wait for the last one */
    bool more;    /* the ring goes on with launches */
} launch_run;

void hdrt__run_point_at(hdrt__op *op, void **pointers)
{
    const hdrt_kernel *kernel = op->launch.kernel;
    unsigned char *bytes = hdrt__op_parameters(op);
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        pointers[i] = bytes + kernel->parameters[i].offset;
    }
}

/* What will be read of the launches that come, as far as they are in the same segment: the operations, which the producer
 * wrote on another processor, and the kernels, which may be many. `ready`: how many of them are there. */
static void prefetch(const hdrt__op *op, uint64_t ready)
{
    __builtin_prefetch(op + 6);
    __builtin_prefetch((const char *)(op + 6) + 64);
    if (ready > 4 && op[4].kind == HDRT__OP_LAUNCH) {
        __builtin_prefetch(op[4].launch.kernel);
        __builtin_prefetch(op[4].launch.kernel->label);
        __builtin_prefetch(op[4].launch.kernel->label + HDRT__LABEL_BYTES - 1);
    }
    if (ready > 2 && op[2].kind == HDRT__OP_LAUNCH) {
        __builtin_prefetch(op[2].launch.kernel->parameters);
    }
}

/* The launches from `ahead` on, up to `limit` and up to a flag, as far as there is room. */
static void gather(hdrt_queue *queue, uint32_t ahead, uint32_t limit, launch_run *run)
{
    uint64_t ready = hdrt__ring_ready(&queue->ring);
    hdrt__segment *segment = NULL;
    uint32_t index = 0;
    run->count = run->pointer_count = 0;
    run->flagged = 0;
    run->more = false;
    for (; !run->flagged && ahead < ready; ahead++, index++) {
        if (!segment || index == segment->capacity) {
            segment = hdrt__ring_segment_at(&queue->ring, ahead, &index);
        }
        hdrt__op *op = &segment->ops[index];
        if (op->kind != HDRT__OP_LAUNCH || op->cooperative) {
            return;
        }
        uint32_t count = op->launch.kernel->parameter_count;
        if (run->count == limit || run->pointer_count + count > RUN_POINTERS) {
            run->more = true;
            return;
        }
        uint64_t here = segment->capacity - index;
        prefetch(op, here < ready - ahead ? here : ready - ahead);
        void **pointers = run->pointers + run->pointer_count;
        hdrt__run_point_at(op, pointers);
        run->pointer_count += count;
        run->launches[run->count++] = (hdrt__run_launch){op->launch.kernel, &op->launch.grid, pointers};
        run->flagged = atomic_load_explicit(&op->flagged, memory_order_relaxed);
        if (queue->scheduler->eager) {
            return;
        }
    }
}

static hdrt_status launch_one(hdrt_queue *queue, hdrt__stream *stream, uint64_t position,
                              const hdrt__run_launch *launch)
{
    const hdrt_grid *g = launch->grid;
    uint64_t begin_ns = hdrt__stream_measure_from(stream, launch->kernel);
    hdrt__device_stream_launch(&stream->entry, atomic_load(&stream->sequence) + 1, &queue->entry, position,
                               launch->kernel->label, g);
    hdrt__call call = HDRT__CALL(queue->device->driver, cuLaunchKernel, launch->kernel->function, g->grid[0], g->grid[1],
                                 g->grid[2], g->block[0], g->block[1], g->block[2], g->shared, stream->handle,
                                 launch->params, NULL);
    if (call.result) {
        return hdrt__device_check(queue->device, call, "kernel '%s' <<<(%u,%u,%u), (%u,%u,%u), %u>>>",
                                  launch->kernel->name, g->grid[0], g->grid[1], g->grid[2], g->block[0], g->block[1],
                                  g->block[2], g->shared);
    }
    hdrt__stream_advance(stream, 1);
    hdrt__stream_work(stream, 1);
    hdrt__stream_measure(stream, (hdrt_kernel *)(uintptr_t)launch->kernel, begin_ns);
    return HDRT_OK;
}

/* A launch whose parameters are more than a run has pointers for. */
static hdrt_status launch_large(hdrt_queue *queue, hdrt__stream *stream, uint64_t position, hdrt__op *op)
{
    size_t bytes = op->launch.kernel->parameter_count * sizeof(void *);
    hdrt__run_launch launch = {op->launch.kernel, &op->launch.grid, malloc(bytes)};
    if (!launch.params) {
        return hdrt__fail_memory(bytes, "the parameters of a launch");
    }
    hdrt__run_point_at(op, launch.params);
    hdrt_status status = launch_one(queue, stream, position, &launch);
    free(launch.params);
    return status;
}

/* \return how many went out by a template. */
static uint32_t launch_template(hdrt_queue *queue, hdrt__stream *stream, uint64_t position,
                                const hdrt__run_launch *launches, uint32_t length, bool more, uint32_t *out_direct,
                                hdrt_status *out_status)
{
    hdrt__call call = {HDCU_SUCCESS, "cuGraphLaunch"};
    *out_direct = length;
    *out_status = HDRT_OK;
    if (stream->adopted || atomic_load(&queue->foreign_work) || stream->entry.index >= HDRT__INDICES) {
        return 0;
    }
    hdrt__templates *templates = hdrt__scheduler_use_templates(queue->scheduler);
    if (!templates) {
        return 0;
    }
    uint64_t begin_ns = length == 1 ? hdrt__stream_measure_from(stream, launches[0].kernel) : 0;
    hdrt__run_place place = {.stream = stream->handle,
                             .index = stream->entry.index,
                             .sequence = atomic_load(&stream->sequence) + 1,
                             .word = length == 1 && !more ? hdrt__bell_expect(stream) : 0};
    uint32_t count =
        hdrt__templates_chain(templates, &place, launches, length, more, out_direct, &call);
    hdrt__scheduler_leave_templates(queue->scheduler);
    if (call.result) {
        *out_status = hdrt__device_check(queue->device, call, "%u kernels, the first of them '%s'", length,
                                         launches[0].kernel->name);
        return 0;
    }
    /* The last ones are remembered by name: to copy all would cost more than to launch them. */
    for (uint32_t i = count > 2 ? count - 2 : 0; i < count; i++) {
        hdrt__device_stream_launch(&stream->entry, place.sequence, &queue->entry, position + i,
                                   launches[i].kernel->label, launches[i].grid);
    }
    if (count) {
        hdrt__stream_advance(stream, 1);
        hdrt__stream_work(stream, count);
        hdrt__stream_measure(stream, (hdrt_kernel *)(uintptr_t)launches[0].kernel, begin_ns);
    }
    if (place.rings) {
        hdrt__bell_rings(stream);
    }
    return count;
}

/* Hand over what one template takes, or what is not to be in one. \return how many went over. */
static uint32_t hand_over_some(hdrt_queue *queue, hdrt__stream *stream, uint64_t position,
                               const hdrt__run_launch *launches, uint32_t length, bool more, hdrt_status *out_status)
{
    uint32_t direct, count = launch_template(queue, stream, position, launches, length, more, &direct, out_status);
    if (count || *out_status != HDRT_OK) {
        return count;
    }
    direct = direct ? direct : 1;
    while (count < direct && count < length && *out_status == HDRT_OK) {
        *out_status = launch_one(queue, stream, position + count, &launches[count]);
        count += *out_status == HDRT_OK;
    }
    return count;
}

uint32_t hdrt__run_some(hdrt_queue *queue, hdrt__stream *stream, uint64_t position, const hdrt__run_launch *launches,
                        uint32_t length, hdrt_status *out_status)
{
    return hand_over_some(queue, stream, position, launches, length, false, out_status);
}

uint32_t hdrt__run_hand_over(hdrt_queue *queue, hdrt__stream *stream, uint32_t ahead, uint8_t *out_ends, uint32_t *single,
                             hdrt_status *out_status)
{
    launch_run run;
    uint64_t position = atomic_load(&queue->ring.consumed) + 1 + ahead;
    gather(queue, ahead, stream->small_runs ? RUN_LAUNCHES_FEW : RUN_LAUNCHES, &run);
    if (!run.count) {
        *out_status = launch_large(queue, stream, position, hdrt__ring_ahead(&queue->ring, ahead));
        *out_ends = UINT8_MAX; /* whether it is flagged or not */
        return *out_status == HDRT_OK;
    }
    uint32_t count = 0, parts = 0;
    while (count < run.count && parts++ < RUN_PARTS && *out_status == HDRT_OK &&
           hdrt__stream_outstanding(stream) < HDRT__COMMAND_LIMIT) {
        uint32_t length = run.count - count;
        bool more = run.more || length > HDRT__TEMPLATE_CHAIN_LIMIT;
        if (length < HDRT__TEMPLATE_CHAIN_LIMIT && run.more && count) {
            break; /* the next round sees more of them */
        }
        length = length < HDRT__TEMPLATE_CHAIN_LIMIT ? length : HDRT__TEMPLATE_CHAIN_LIMIT;
        count += hand_over_some(queue, stream, position + count, run.launches + count, length, more, out_status);
    }
    stream->small_runs = count < HDRT__TEMPLATE_CHAIN_LIMIT;
    *out_ends = count == run.count ? run.flagged : 0;
    *single += parts;
    return count;
}
