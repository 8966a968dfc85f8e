/* SPDX-License-Identifier: MIT */
/* The driver calls of single operations. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "memory/registry.h"
#include "queue/commit.h"
#include "queue/enqueue.h"
#include "queue/graph.h"
#include "queue/region.h"
#include "queue/stream_call.h"
#include "queue/timer.h"

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static hdrt_status copy(hdrt_queue *queue, hdrt__stream *stream, const hdrt__op *op)
{
    const hdrt__driver_table *driver = queue->device->driver;
    unsigned long long bytes = op->copy.bytes;
    hdrt__call call;
    switch (op->detail) {
    case HDRT__COPY_HTOD:
        call = HDRT__CALL(driver, cuMemcpyHtoDAsync, op->copy.dst, op->copy.host, op->copy.bytes, stream->handle);
        return hdrt__device_check(queue->device, call, "copying %llu bytes from host %p to 0x%llx", bytes,
                                  op->copy.host, op->copy.dst);
    case HDRT__COPY_DTOH:
        call = HDRT__CALL(driver, cuMemcpyDtoHAsync, op->copy.host, op->copy.src, op->copy.bytes, stream->handle);
        return hdrt__device_check(queue->device, call, "copying %llu bytes from 0x%llx to host %p", bytes,
                                  op->copy.src, op->copy.host);
    case HDRT__COPY_PEER:
        call = HDRT__CALL(driver, cuMemcpyPeerAsync, op->copy.dst, op->copy.dst_context, op->copy.src,
                          op->copy.src_context, op->copy.bytes, stream->handle);
        break;
    default:
        call = HDRT__CALL(driver, cuMemcpyDtoDAsync, op->copy.dst, op->copy.src, op->copy.bytes, stream->handle);
        break;
    }
    return hdrt__device_check(queue->device, call, "copying %llu bytes from 0x%llx to 0x%llx", bytes, op->copy.src,
                              op->copy.dst);
}

/* ---- fills ------------------------------------------------------------------------------------------------------- */

/* Patterns of up to 4 bytes, and longer ones that repeat 4: one command. */
static hdrt__call fill_short(hdrt_queue *queue, hdcu_stream stream, const hdrt__op *op)
{
    const hdrt__driver_table *driver = queue->device->driver;
    uint16_t half;
    uint32_t word;
    switch (op->fill.pattern_bytes) {
    case 1:
        return HDRT__CALL(driver, cuMemsetD8Async, op->fill.dst, op->fill.pattern[0], op->fill.count, stream);
    case 2:
        memcpy(&half, op->fill.pattern, sizeof half);
        return HDRT__CALL(driver, cuMemsetD16Async, op->fill.dst, half, op->fill.count, stream);
    default:
        memcpy(&word, op->fill.pattern, sizeof word);
        return HDRT__CALL(driver, cuMemsetD32Async, op->fill.dst, word, op->fill.count * (op->fill.pattern_bytes / 4),
                          stream);
    }
}

/*
 * Longer patterns: the first copy is set word by word, then what is there is copied behind itself, doubling each time.
 * Ordered by the stream like any other operation, and as exact. \return the first call that failed, or the last.
 */
static hdrt__call fill_long(hdrt_queue *queue, hdcu_stream stream, const hdrt__op *op, uint32_t *out_commands)
{
    const hdrt__driver_table *driver = queue->device->driver;
    hdrt_ptr dst = op->fill.dst;
    uint64_t total = op->fill.count * op->fill.pattern_bytes, done = op->fill.pattern_bytes;
    hdrt__call call = {HDCU_SUCCESS, "cuMemsetD32Async"};
    *out_commands = 0;
    for (uint32_t i = 0; i < op->fill.pattern_bytes && !call.result; i += 4) {
        uint32_t word;
        memcpy(&word, op->fill.pattern + i, sizeof word);
        call = HDRT__CALL(driver, cuMemsetD32Async, dst + i, word, 1, stream);
        *out_commands += !call.result;
    }
    while (done < total && !call.result) {
        uint64_t next = done <= total - done ? done : total - done;
        call = HDRT__CALL(driver, cuMemcpyDtoDAsync, dst + done, dst, next, stream);
        *out_commands += !call.result;
        done += next;
    }
    return call;
}

static bool repeats_a_word(const hdrt__op *op)
{
    for (uint32_t i = 4; i < op->fill.pattern_bytes; i += 4) {
        if (memcmp(op->fill.pattern, op->fill.pattern + i, 4) != 0) {
            return false;
        }
    }
    return true;
}

static hdrt_status fill(hdrt_queue *queue, hdrt__stream *stream, const hdrt__op *op, uint32_t *out_commands)
{
    hdrt__call call;
    if (op->fill.pattern_bytes > 4 && !repeats_a_word(op)) {
        call = fill_long(queue, stream->handle, op, out_commands);
    } else {
        call = fill_short(queue, stream->handle, op);
        *out_commands = !call.result;
    }
    return hdrt__device_check(queue->device, call, "filling %llu times %u bytes at 0x%llx",
                              (unsigned long long)op->fill.count, op->fill.pattern_bytes, op->fill.dst);
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static hdrt_status launch_cooperative(hdrt_queue *queue, hdrt__stream *stream, hdrt__op *op, uint64_t position)
{
    const hdrt_kernel *kernel = op->launch.kernel;
    const hdrt_grid *g = &op->launch.grid;
    unsigned char *bytes = hdrt__op_parameters(op);
    size_t size = (kernel->parameter_count ? kernel->parameter_count : 1) * sizeof(void *);
    void **params = malloc(size);
    if (!params) {
        return hdrt__fail_memory(size, "the parameters of a launch");
    }
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        params[i] = bytes + kernel->parameters[i].offset;
    }
    hdrt__device_stream_launch(&stream->entry, atomic_load(&stream->sequence) + 1, &queue->entry, position, kernel->label,
                               g);
    hdrt__call call = HDRT__CALL(queue->device->driver, cuLaunchCooperativeKernel, kernel->function, g->grid[0],
                                 g->grid[1], g->grid[2], g->block[0], g->block[1], g->block[2], g->shared,
                                 stream->handle, params);
    call.text = "cuLaunchCooperativeKernel"; /* its many arguments say nothing */
    free(params);
    return hdrt__device_check(queue->device, call, "kernel '%s' <<<(%u,%u,%u), (%u,%u,%u), %u>>>", kernel->name,
                              g->grid[0], g->grid[1], g->grid[2], g->block[0], g->block[1], g->block[2], g->shared);
}

static hdrt_status free_memory(hdrt_queue *queue, hdrt__stream *stream, const hdrt__op *op)
{
    hdrt__call call = HDRT__CALL(queue->device->driver, cuMemFreeAsync, op->range->address, stream->handle);
    return hdrt__device_check(queue->device, call, "freeing device memory at 0x%llx",
                              (unsigned long long)op->range->address);
}

const char *hdrt__op_words(const hdrt__op *op)
{
    switch ((hdrt__op_kind)op->kind) {
    case HDRT__OP_COPY:
        return op->detail == HDRT__COPY_HTOD   ? "a copy to the device"
               : op->detail == HDRT__COPY_DTOH ? "a copy to the host"
                                               : "a copy";
    case HDRT__OP_REGION:
        return "a copy of a region";
    case HDRT__OP_FILL:
        return "a fill";
    default:
        return NULL;
    }
}

hdrt_status hdrt__op_hand_over(hdrt_queue *queue, hdrt__stream *stream, hdrt__op *op, uint64_t position,
                               uint32_t *out_commands)
{
    hdrt_device *device = queue->device;
    hdrt_status status = HDRT_OK;
    const char *words = hdrt__op_words(op);
    *out_commands = 0;
    if (words) {
        hdrt__device_stream_note(&stream->entry, atomic_load(&stream->sequence) + 1, &queue->entry, position, words);
    }
    switch ((hdrt__op_kind)op->kind) {
    case HDRT__OP_LAUNCH:
        status = launch_cooperative(queue, stream, op, position);
        break;
    case HDRT__OP_COPY:
        status = copy(queue, stream, op);
        break;
    case HDRT__OP_REGION:
        status = hdrt__device_check(device, hdrt__region_copy(queue, stream->handle, op->region),
                                    "copying a region of %llu x %llu x %llu bytes",
                                    (unsigned long long)op->region->width, (unsigned long long)op->region->height,
                                    (unsigned long long)op->region->depth);
        break;
    case HDRT__OP_FILL:
        return fill(queue, stream, op, out_commands);
    case HDRT__OP_TIMESTAMP:
        status = hdrt__device_check(
            device, HDRT__CALL(device->driver, cuEventRecord, hdrt__timer_event(op->timer), stream->handle),
            "a timestamp");
        break;
    case HDRT__OP_CUDA_RECORD:
        status = hdrt__device_check(device, HDRT__CALL(device->driver, cuEventRecord, op->cuda_event, stream->handle),
                                    "recording a CUevent of the caller's");
        break;
    case HDRT__OP_REPLAY:
        return hdrt__graph_hand_over(queue, stream, op, position, out_commands);
    case HDRT__OP_FREE:
        status = free_memory(queue, stream, op);
        break;
    case HDRT__OP_FOREIGN: /* counts as one, so that a mark must come after it */
        break;
    case HDRT__OP_HOST:
        return hdrt__stream_call(queue, stream, op, position, out_commands);
    case HDRT__OP_NOTHING:
    case HDRT__OP_WAIT:
    case HDRT__OP_FOLLOW:
        return HDRT_OK;
    }
    *out_commands = status == HDRT_OK;
    return status;
}

void hdrt__op_release(hdrt_queue *queue, hdrt__op *op, bool dropped)
{
    switch ((hdrt__op_kind)op->kind) {
    case HDRT__OP_LAUNCH:
        free(op->launch.outside);
        break;
    case HDRT__OP_REGION:
        free(op->region);
        break;
    case HDRT__OP_TIMESTAMP:
        hdrt__timer_drop(op->timer);
        break;
    case HDRT__OP_FREE:
        if (dropped) {
            hdrt__free_later(queue, op->range);
        } else {
            hdrt__range_free(op->range);
        }
        break;
    case HDRT__OP_FOLLOW:
        hdrt__stream_drop(op->point.stream);
        break;
    case HDRT__OP_WAIT:
        if (op->wait.producer) {
            hdrt__queue_drop(op->wait.producer);
        }
        break;
    default:
        break;
    }
}
