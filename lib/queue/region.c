/* SPDX-License-Identifier: MIT */
/* Copies of boxes between strided memories. */
#include <stdlib.h>

#include "base/number.h"
#include "base/status.h"
#include "memory/registry.h"
#include "queue/check.h"
#include "queue/enqueue.h"
#include "queue/region.h"

typedef hdrt__region region;

/* The bytes from a side's first to its last: (depth - 1) slices, (height - 1) rows and a width. */
static bool extent(const region *box, const hdrt_region_side *side, uint64_t *out_bytes)
{
    size_t slices = 0, rows, sum;
    if (box->depth > 1 && !hdrt__size_multiply(box->depth - 1, side->slice_pitch, &slices)) {
        return false;
    }
    if (!hdrt__size_multiply(box->height - 1, side->row_pitch, &rows) || !hdrt__size_add(slices, rows, &sum) ||
        !hdrt__size_add(sum, box->width, &sum)) {
        return false;
    }
    *out_bytes = sum;
    return true;
}

static hdrt_status check_pitches(const hdrt_device *device, const region *box, const hdrt_region_side *side,
                                 const char *what)
{
    uint64_t bytes, pitch_max = device->limits.pitch_max;
    if ((box->height > 1 || box->depth > 1) && (side->row_pitch < box->width || side->row_pitch > pitch_max)) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "%s: a row pitch of %llu bytes: rows have %llu bytes, and the device allows %llu", what,
                          (unsigned long long)side->row_pitch, (unsigned long long)box->width,
                          (unsigned long long)pitch_max);
    }
    if (box->depth > 1 && (side->slice_pitch % side->row_pitch || side->slice_pitch / side->row_pitch < box->height)) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "%s: a slice pitch of %llu bytes is no multiple of the row pitch of %llu that holds %llu "
                          "rows",
                          what, (unsigned long long)side->slice_pitch, (unsigned long long)side->row_pitch,
                          (unsigned long long)box->height);
    }
    if (!extent(box, side, &bytes)) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s: the box passes the end of the address space", what);
    }
    return HDRT_OK;
}

static hdrt_status check_side(hdrt_device *device, region *box, const hdrt_region_side *side, const char *what,
                              hdcu_context *out_context)
{
    uint64_t bytes = 0;
    hdrt_status status = check_pitches(device, box, side, what);
    if (status != HDRT_OK) {
        return status;
    }
    extent(box, side, &bytes);
    return side->host ? hdrt__check_host_range(device, side->host, bytes, what, &box->pinned)
                      : hdrt__check_device_range(device, side->device, bytes, what, out_context);
}

hdrt_status hdrt__check_region(hdrt_device *device, region *box)
{
    if (box->dst.host && box->src.host) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_copy_region: both sides are on the host: use memcpy");
    }
    hdrt_status status = check_side(device, box, &box->dst, "hdrt_copy_region: the destination", &box->dst_context);
    return status == HDRT_OK ? check_side(device, box, &box->src, "hdrt_copy_region: the source", &box->src_context)
                             : status;
}

/* Memory of a peer is told by its address alone. */
static unsigned side_type(const hdrt_region_side *side, bool peers)
{
    return side->host ? HDCU_MEMORYTYPE_HOST : peers ? HDCU_MEMORYTYPE_UNIFIED : HDCU_MEMORYTYPE_DEVICE;
}

static hdrt__call copy_plane(hdrt_queue *queue, hdcu_stream stream, const region *box, bool peers)
{
    hdcu_memcpy2d copy = {
        .source_type = side_type(&box->src, peers),
        .source_host = box->src.host,
        .source_device = box->src.host ? 0 : box->src.device,
        .source_pitch = box->height > 1 ? box->src.row_pitch : box->width,
        .destination_type = side_type(&box->dst, peers),
        .destination_host = box->dst.host,
        .destination_device = box->dst.host ? 0 : box->dst.device,
        .destination_pitch = box->height > 1 ? box->dst.row_pitch : box->width,
        .width_bytes = box->width,
        .height = box->height,
    };
    return HDRT__CALL(queue->device->driver, cuMemcpy2DAsync, &copy, stream);
}

/* Of a box of any depth: pitches that do not matter are made to fit. */
static hdcu_memcpy3d box_params(const region *box, bool peers)
{
    uint64_t dst_row = box->height > 1 || box->depth > 1 ? box->dst.row_pitch : box->width;
    uint64_t src_row = box->height > 1 || box->depth > 1 ? box->src.row_pitch : box->width;
    return (hdcu_memcpy3d){
        .source_type = side_type(&box->src, peers),
        .source_host = box->src.host,
        .source_device = box->src.host ? 0 : box->src.device,
        .source_pitch = src_row,
        .source_height = box->depth > 1 ? box->src.slice_pitch / src_row : box->height,
        .destination_type = side_type(&box->dst, peers),
        .destination_host = box->dst.host,
        .destination_device = box->dst.host ? 0 : box->dst.device,
        .destination_pitch = dst_row,
        .destination_height = box->depth > 1 ? box->dst.slice_pitch / dst_row : box->height,
        .width_bytes = box->width,
        .height = box->height,
        .depth = box->depth,
    };
}

hdcu_memcpy3d hdrt__region_params(const hdrt__region *box)
{
    return box_params(box, false);
}

static hdrt__call copy_box(hdrt_queue *queue, hdcu_stream stream, const region *box, bool peers)
{
    hdcu_memcpy3d copy = box_params(box, peers);
    return HDRT__CALL(queue->device->driver, cuMemcpy3DAsync, &copy, stream);
}

hdrt__call hdrt__region_copy(hdrt_queue *queue, hdcu_stream stream, const hdrt__region *box)
{
    bool peers = box->dst_context && box->src_context && box->dst_context != box->src_context;
    return box->depth > 1 ? copy_box(queue, stream, box, peers) : copy_plane(queue, stream, box, peers);
}

static hdrt_status enqueue_region(hdrt__enqueue *enqueue, const region *box)
{
    const void *host = box->dst.host ? box->dst.host : box->src.host;
    hdrt__op blocking = {.kind = HDRT__OP_REGION, .region = (region *)(uintptr_t)box}, *op;
    if (host && !box->pinned) {
        return hdrt__enqueue_blocking(enqueue, &blocking);
    }
    region *kept = malloc(sizeof *kept);
    if (!kept) {
        return hdrt__fail_memory(sizeof *kept, "a copy of a region");
    }
    *kept = *box;
    hdrt_status status = hdrt__enqueue_reserve(enqueue, HDRT__OP_REGION, &op);
    if (status != HDRT_OK) {
        free(kept);
        return status;
    }
    if (host) {
        status = hdrt__registry_use(enqueue->queue->device->runtime, host, hdrt__enqueue_event(enqueue));
    }
    if (status != HDRT_OK) {
        free(kept);
        return hdrt__enqueue_cancel(enqueue, status);
    }
    op->region = kept;
    if (box->dst.host) {
        atomic_store(&enqueue->queue->hazard, enqueue->position);
    }
    return hdrt__enqueue_publish(enqueue);
}

hdrt_status hdrt_copy_region(hdrt_queue *queue, const hdrt_region_side *dst, const hdrt_region_side *src,
                             uint64_t width, uint64_t height, uint64_t depth)
{
    hdrt__enqueue enqueue;
    region box = {.width = width, .height = height, .depth = depth};
    hdrt_status status = hdrt__enqueue_begin(&enqueue, queue, "hdrt_copy_region");
    if (status != HDRT_OK) {
        return status;
    }
    if (!width || !height || !depth) {
        return hdrt__enqueue_nothing(&enqueue);
    }
    if (!dst || !src) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_copy_region: a side is NULL");
    }
    box.dst = *dst;
    box.src = *src;
    status = hdrt__check_region(queue->device, &box);
    return status == HDRT_OK ? enqueue_region(&enqueue, &box) : status;
}
