/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "soft/api/entry.h"
#include "soft/check/history.h"

/* An H200 reads so much of a pageable source at the call; above it the call waits for its turn in the stream. */
#define STAGED_MOST ((uint64_t)1 << 20)

/* ---- checks ---- */

typedef struct end_request {
    unsigned type;
    uint64_t host, device;
    size_t x, y, z, pitch, height;
    hdcu_array array;
} end_request;

/* The layout of one end, and how many bytes it spans from its first. */
static int lay_out(const end_request *request, const hdcu_memcpy3d *region, hdsoft__copy_end *end, uint64_t *span)
{
    uint64_t width = request->x + region->width_bytes, rows = request->y + region->height;
    end->pitch = request->pitch ? request->pitch : width;
    uint64_t height = request->height ? request->height : rows;
    bool one_row = region->height == 1 && region->depth == 1 && !request->y && !request->z;
    if (width < request->x || rows < request->y || (!one_row && end->pitch < width) ||
        (region->depth > 1 && height < rows))
        return HDCU_ERROR_INVALID_VALUE;
    uint64_t offset, last, row_bytes;
    if (__builtin_mul_overflow(end->pitch, height, &end->slice) ||
        __builtin_mul_overflow(end->slice, request->z, &offset) ||
        __builtin_mul_overflow(end->pitch, request->y, &row_bytes) ||
        __builtin_add_overflow(offset, row_bytes + request->x, &offset) ||
        __builtin_mul_overflow(end->slice, region->depth - 1, &last) ||
        __builtin_mul_overflow(end->pitch, region->height - 1, &row_bytes) ||
        __builtin_add_overflow(last, row_bytes, &last) ||
        __builtin_add_overflow(last, region->width_bytes, span) ||
        __builtin_add_overflow(end->address, offset, &end->address))
        return HDCU_ERROR_INVALID_VALUE;
    return 0;
}

/* What an end's memory is: all of it in one range, or all of it unknown to the driver. */
static int classify(uint64_t span, bool must_be_known, hdsoft__copy_end *end, bool *host)
{
    hdsoft__device *device;
    hdsoft__allocation allocation;
    uint64_t last = end->address + span - 1;
    if (!end->address || last < end->address)
        return HDCU_ERROR_INVALID_VALUE;
    if (hdsoft__range_of(end->address, &allocation, &device)) {
        *host = !device;
        return last < allocation.range.end ? 0 : HDCU_ERROR_INVALID_VALUE;
    }
    /* Half pinned and half not is an error on an H200, as is what only looks like device memory. */
    if (device || must_be_known || hdsoft__range_of(last, &allocation, &device) || device)
        return HDCU_ERROR_INVALID_VALUE;
    *host = end->pageable = true;
    return 0;
}

static int plan_end(const end_request *request, const hdcu_memcpy3d *region, hdsoft__copy_end *end, bool *host)
{
    uint64_t span;
    switch (request->type) {
    case HDCU_MEMORYTYPE_HOST: end->address = request->host; break;
    case HDCU_MEMORYTYPE_DEVICE:
    case HDCU_MEMORYTYPE_UNIFIED: end->address = request->device; break;
    case HDCU_MEMORYTYPE_ARRAY: return request->array ? HDCU_ERROR_NOT_SUPPORTED : HDCU_ERROR_INVALID_VALUE;
    default: return HDCU_ERROR_INVALID_VALUE;
    }
    if (!end->address)
        return HDCU_ERROR_INVALID_VALUE;
    int status = lay_out(request, region, end, &span);
    return status ? status : classify(span, request->type == HDCU_MEMORYTYPE_DEVICE, end, host);
}

int hdsoft__plan_copy(const hdcu_memcpy3d *region, hdsoft__copy_plan *plan)
{
    memset(plan, 0, sizeof *plan);
    if (!region)
        return HDCU_ERROR_INVALID_VALUE;
    uint64_t bytes;
    if (!region->width_bytes || !region->height || !region->depth)
        return 0;
    if (__builtin_mul_overflow(region->width_bytes, region->height, &bytes) ||
        __builtin_mul_overflow(bytes, region->depth, &bytes))
        return HDCU_ERROR_INVALID_VALUE;
    end_request source = {region->source_type, (uint64_t)(uintptr_t)region->source_host, region->source_device,
                          region->source_x_bytes, region->source_y, region->source_z, region->source_pitch,
                          region->source_height, region->source_array};
    end_request destination = {region->destination_type, (uint64_t)(uintptr_t)region->destination_host,
                               region->destination_device, region->destination_x_bytes, region->destination_y,
                               region->destination_z, region->destination_pitch, region->destination_height,
                               region->destination_array};
    hdsoft__copy copy = {.width = region->width_bytes, .height = region->height, .depth = region->depth};
    bool source_host = false, destination_host = false;
    int status = plan_end(&source, region, &copy.source, &source_host);
    if (!status)
        status = plan_end(&destination, region, &copy.destination, &destination_host);
    if (status)
        return status;
    plan->task = hdsoft__task_new(HDSOFT__TASK_COPY);
    if (!plan->task)
        return HDCU_ERROR_OUT_OF_MEMORY;
    plan->task->copy = copy;
    plan->pageable_source = copy.source.pageable;
    plan->pageable_destination = copy.destination.pageable;
    plan->any_host = source_host || destination_host;
    plan->all_host = source_host && destination_host;
    return 0;
}

/* ---- enqueueing ---- */

static bool stage(hdsoft__copy *copy)
{
    unsigned char *to = copy->staged = malloc(copy->width * copy->height * copy->depth);
    if (!to)
        return false;
    for (uint64_t slice = 0; slice < copy->depth; slice++) {
        for (uint64_t row = 0; row < copy->height; row++, to += copy->width) {
            uint64_t from = copy->source.address + slice * copy->source.slice + row * copy->source.pitch;
            memcpy(to, (const void *)(uintptr_t)from, copy->width);
        }
    }
    return true;
}

/* Wait until all that was enqueued on the stream before is done. */
static int settle(hdsoft__stream *stream)
{
    uint64_t position;
    int status = hdsoft__enqueue(stream, NULL, NULL, 0, &position);
    return status ? status : hdsoft__wait(stream, position);
}

static int copy_on(hdsoft__stream *stream, hdsoft__copy_plan *plan, bool async)
{
    hdsoft__copy *copy = &plan->task->copy;
    uint64_t position;
    if (stream->capture)
        return hdsoft__submit(stream, plan->task, NULL);
    bool small = copy->width * copy->height * copy->depth <= STAGED_MOST;
    bool wait = plan->pageable_source || plan->pageable_destination || plan->all_host || (!async && plan->any_host);
    if (plan->pageable_source && !plan->pageable_destination && small) {
        /* A synchronous copy reads its source only when its turn has come. */
        int status = async ? 0 : settle(stream);
        if (status) {
            hdsoft__task_release(plan->task);
            return status;
        }
        wait = !stage(copy);
    }
    /* CUDA promises that it has been made in these cases; that it waits in others is this driver's way. */
    bool promised = plan->pageable_destination || plan->all_host || (!async && plan->any_host && !plan->pageable_source);
    int status = hdsoft__enqueue(stream, plan->task, NULL, 0, &position);
    hdsoft__history *seen = !status && promised ? hdsoft__history_hold(stream->history) : NULL;
    if (!status && wait)
        status = (int)hdsoft__synchronised(hdsoft__wait(stream, position));
    hdsoft__history_saw(seen, !status);
    return status;
}

static hdcu_result copy_region(const hdcu_memcpy3d *region, hdcu_stream handle, bool async)
{
    hdsoft__stream *stream;
    hdsoft__copy_plan plan;
    int status = hdsoft__stream_for_work(handle, &stream);
    if (!status)
        status = hdsoft__plan_copy(region, &plan);
    if (status || !plan.task)
        return (hdcu_result)status;
    stream->references++; /* it may be destroyed by another thread while this one waits */
    /* Of a synchronous copy from pageable memory CUDA promises only that its stream had got to it. */
    bool settled = !async && plan.pageable_source && !plan.pageable_destination && !stream->capture;
    hdsoft__history *seen = settled ? hdsoft__history_expect(stream) : NULL;
    status = copy_on(stream, &plan, async);
    hdsoft__history_saw(seen, !status);
    hdsoft__stream_release(stream);
    return (hdcu_result)status;
}

static hdcu_result copy_line(unsigned destination_type, uint64_t destination, unsigned source_type, uint64_t source,
                             size_t bytes, hdcu_stream stream, bool async)
{
    hdcu_memcpy3d region = {
        .source_type = source_type, .source_host = (const void *)(uintptr_t)source, .source_device = source,
        .destination_type = destination_type, .destination_host = (void *)(uintptr_t)destination,
        .destination_device = destination, .width_bytes = bytes, .height = 1, .depth = 1,
    };
    return copy_region(&region, stream, async);
}

/* ---- lines ---- */

hdcu_result hdsoft__cuMemcpy(hdcu_pointer to, hdcu_pointer from, size_t bytes)
{
    return copy_line(HDCU_MEMORYTYPE_UNIFIED, to, HDCU_MEMORYTYPE_UNIFIED, from, bytes, NULL, false);
}

hdcu_result hdsoft__cuMemcpyAsync(hdcu_pointer to, hdcu_pointer from, size_t bytes, hdcu_stream stream)
{
    return copy_line(HDCU_MEMORYTYPE_UNIFIED, to, HDCU_MEMORYTYPE_UNIFIED, from, bytes, stream, true);
}

hdcu_result hdsoft__cuMemcpyHtoD(hdcu_pointer to, const void *from, size_t bytes)
{
    return copy_line(HDCU_MEMORYTYPE_DEVICE, to, HDCU_MEMORYTYPE_HOST, (uintptr_t)from, bytes, NULL, false);
}

hdcu_result hdsoft__cuMemcpyHtoDAsync(hdcu_pointer to, const void *from, size_t bytes, hdcu_stream stream)
{
    return copy_line(HDCU_MEMORYTYPE_DEVICE, to, HDCU_MEMORYTYPE_HOST, (uintptr_t)from, bytes, stream, true);
}

hdcu_result hdsoft__cuMemcpyDtoH(void *to, hdcu_pointer from, size_t bytes)
{
    return copy_line(HDCU_MEMORYTYPE_HOST, (uintptr_t)to, HDCU_MEMORYTYPE_DEVICE, from, bytes, NULL, false);
}

hdcu_result hdsoft__cuMemcpyDtoHAsync(void *to, hdcu_pointer from, size_t bytes, hdcu_stream stream)
{
    return copy_line(HDCU_MEMORYTYPE_HOST, (uintptr_t)to, HDCU_MEMORYTYPE_DEVICE, from, bytes, stream, true);
}

hdcu_result hdsoft__cuMemcpyDtoD(hdcu_pointer to, hdcu_pointer from, size_t bytes)
{
    return copy_line(HDCU_MEMORYTYPE_DEVICE, to, HDCU_MEMORYTYPE_DEVICE, from, bytes, NULL, false);
}

hdcu_result hdsoft__cuMemcpyDtoDAsync(hdcu_pointer to, hdcu_pointer from, size_t bytes, hdcu_stream stream)
{
    return copy_line(HDCU_MEMORYTYPE_DEVICE, to, HDCU_MEMORYTYPE_DEVICE, from, bytes, stream, true);
}

/* NULL stands for the current context. */
static bool find_context(hdcu_context *context)
{
    if (!*context)
        *context = hdsoft__here();
    return hdsoft__handle_is(*context, HDSOFT__CONTEXT) && !(*context)->destroyed;
}

hdcu_result hdsoft__cuMemcpyPeer(hdcu_pointer to, hdcu_context to_context, hdcu_pointer from, hdcu_context from_context,
                                 size_t bytes)
{
    if (!find_context(&to_context) || !find_context(&from_context))
        return HDCU_ERROR_INVALID_CONTEXT;
    /* It is serialised with all that both contexts do, before and after: so it happens while they do nothing. */
    int status = hdsoft__wait_all(from_context->device, from_context);
    if (!status)
        status = hdsoft__wait_all(to_context->device, to_context);
    if (status)
        return hdsoft__synchronised(status);
    hdcu_result copied = copy_line(HDCU_MEMORYTYPE_DEVICE, to, HDCU_MEMORYTYPE_DEVICE, from, bytes, NULL, false);
    return copied ? copied : hdsoft__synchronised(hdsoft__wait_all(hdsoft__here()->device, hdsoft__here()));
}

hdcu_result hdsoft__cuMemcpyPeerAsync(hdcu_pointer to, hdcu_context to_context, hdcu_pointer from,
                                      hdcu_context from_context, size_t bytes, hdcu_stream stream)
{
    if (!find_context(&to_context) || !find_context(&from_context))
        return HDCU_ERROR_INVALID_CONTEXT;
    return copy_line(HDCU_MEMORYTYPE_DEVICE, to, HDCU_MEMORYTYPE_DEVICE, from, bytes, stream, true);
}

/* ---- regions ---- */

static hdcu_memcpy3d widen(const hdcu_memcpy2d *region)
{
    return (hdcu_memcpy3d){
        .source_x_bytes = region->source_x_bytes, .source_y = region->source_y, .source_type = region->source_type,
        .source_host = region->source_host, .source_device = region->source_device,
        .source_pitch = region->source_pitch,
        .destination_x_bytes = region->destination_x_bytes, .destination_y = region->destination_y,
        .destination_type = region->destination_type, .destination_host = region->destination_host,
        .destination_device = region->destination_device, .destination_pitch = region->destination_pitch,
        .width_bytes = region->width_bytes, .height = region->height, .depth = 1,
    };
}

hdcu_result hdsoft__cuMemcpy2D(const hdcu_memcpy2d *region)
{
    if (!region)
        return HDCU_ERROR_INVALID_VALUE;
    hdcu_memcpy3d wide = widen(region);
    return copy_region(&wide, NULL, false);
}

hdcu_result hdsoft__cuMemcpy2DAsync(const hdcu_memcpy2d *region, hdcu_stream stream)
{
    if (!region)
        return HDCU_ERROR_INVALID_VALUE;
    hdcu_memcpy3d wide = widen(region);
    return copy_region(&wide, stream, true);
}

hdcu_result hdsoft__cuMemcpy3D(const hdcu_memcpy3d *region)
{
    return copy_region(region, NULL, false);
}

hdcu_result hdsoft__cuMemcpy3DAsync(const hdcu_memcpy3d *region, hdcu_stream stream)
{
    return copy_region(region, stream, true);
}
