/* SPDX-License-Identifier: MIT */
#include "soft/model/pool.h"

#include <stdlib.h>

#include "soft/api/entry.h"
#include "soft/model/capture.h"

static bool is_pool(hdcu_pool pool)
{
    return hdsoft__handle_is(pool, HDSOFT__POOL);
}

/* A stream for stream-ordered memory. If it is not captured itself these calls spoil captures as cuMemAlloc does. */
static int stream_for_memory(hdcu_stream handle, hdsoft__stream **out)
{
    int status = hdsoft__stream_of(handle, out);
    if (!status && !(*out)->capture)
        status = hdsoft__capture_unsafe_call(hdsoft__thread_state());
    return status ? status : hdsoft__stream_for_work(handle, out);
}

/* `leaving` is for a free, which owns it if all goes well. */
static int enqueue_range(hdsoft__stream *stream, hdsoft__task_kind kind, hdsoft__device *device, hdsoft__pool *pool,
                         const hdsoft_range *range, hdsoft__leaving *leaving)
{
    hdsoft__task *task = hdsoft__task_new(kind);
    if (!task)
        return HDCU_ERROR_OUT_OF_MEMORY;
    task->range.memory = device->memory;
    task->range.pool = pool;
    task->range.of = *range;
    int status = hdsoft__submit(stream, task, NULL);
    if (!status && leaving) {
        /* The lock is held since: the command is still there, and nothing of it was done. */
        leaving->range = *range;
        if (pool) {
            leaving->counter = &pool->used;
            leaving->counted = range->end - range->base;
        }
        hdsoft__memory_leave(device->memory, &stream->leaving, leaving);
        task->range.leaving = leaving;
    }
    return status;
}

static hdcu_result allocate(hdcu_pointer *out, size_t bytes, hdsoft__pool *pool, hdcu_stream handle)
{
    hdsoft__stream *stream;
    if (!out)
        return HDCU_ERROR_INVALID_VALUE;
    int status = stream_for_memory(handle, &stream);
    if (status)
        return (hdcu_result)status;
    if (!bytes) {
        *out = 0;
        return 0;
    }
    if (!pool)
        pool = stream->context->device->current_pool;
    hdsoft__allocation like = hdsoft__born(HDSOFT__RANGE_PENDING);
    like.owner = stream->context;
    like.pool = stream->capture ? NULL : pool; /* a graph's memory is no pool's */
    hdsoft_range range;
    hdsoft__leaving_list *leaving = stream->capture ? NULL : &stream->leaving; /* a graph is in no stream's order */
    status = hdsoft__memory_take(pool->device->memory, bytes, &like, leaving, &range);
    if (status)
        return (hdcu_result)status;
    status = enqueue_range(stream, HDSOFT__TASK_ALLOCATE, pool->device, pool, &range, NULL);
    if (status) {
        like.range = range;
        hdsoft__memory_remove(pool->device->memory, &like);
        return (hdcu_result)status;
    }
    if (!stream->capture)
        hdsoft__pool_took(pool, bytes);
    *out = range.base;
    return 0;
}

hdcu_result hdsoft__cuMemAllocAsync(hdcu_pointer *out, size_t bytes, hdcu_stream stream)
{
    return allocate(out, bytes, NULL, stream);
}

hdcu_result hdsoft__cuMemAllocFromPoolAsync(hdcu_pointer *out, size_t bytes, hdcu_pool pool, hdcu_stream stream)
{
    return is_pool(pool) ? allocate(out, bytes, pool, stream) : HDCU_ERROR_INVALID_VALUE;
}

hdcu_result hdsoft__cuMemFreeAsync(hdcu_pointer address, hdcu_stream handle)
{
    hdsoft__stream *stream;
    int status = stream_for_memory(handle, &stream);
    if (status || !address)
        return (hdcu_result)status;
    hdsoft__device *device;
    hdsoft__allocation allocation;
    if (!hdsoft__range_of(address, &allocation, &device) || !device || allocation.range.base != address ||
        allocation.range.kind != HDSOFT_RANGE_DEVICE || !allocation.owner)
        return HDCU_ERROR_INVALID_VALUE;
    if (stream->capture)
        return (hdcu_result)enqueue_range(stream, HDSOFT__TASK_SUSPEND, device, NULL, &allocation.range, NULL);
    if (!hdsoft__memory_claim_free(device->memory, address))
        return HDCU_ERROR_INVALID_VALUE;
    hdsoft__leaving *leaving = calloc(1, sizeof *leaving);
    status = leaving ? enqueue_range(stream, HDSOFT__TASK_FREE, device, allocation.pool, &allocation.range, leaving)
                     : HDCU_ERROR_OUT_OF_MEMORY;
    if (status) {
        hdsoft__memory_unclaim_free(device->memory, &allocation.range);
        free(leaving);
    }
    return (hdcu_result)status;
}

/* ---- pools ---- */

hdcu_result hdsoft__cuMemPoolCreate(hdcu_pool *out, const hdcu_pool_properties *properties)
{
    if (!out || !properties || properties->allocation_type != HDCU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != HDCU_MEM_LOCATION_TYPE_DEVICE || properties->handle_types)
        return HDCU_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < sizeof properties->reserved; i++) {
        if (properties->reserved[i])
            return HDCU_ERROR_INVALID_VALUE;
    }
    hdsoft__device *device = hdsoft__device_at(properties->location.id);
    if (!device)
        return HDCU_ERROR_INVALID_VALUE;
    *out = hdsoft__pool_create(device, false);
    return *out ? 0 : HDCU_ERROR_OUT_OF_MEMORY;
}

hdcu_result hdsoft__cuMemPoolDestroy(hdcu_pool pool)
{
    if (!is_pool(pool) || pool->is_default)
        return HDCU_ERROR_INVALID_VALUE;
    hdsoft__pool_destroy(pool);
    return 0;
}

hdcu_result hdsoft__cuMemPoolTrimTo(hdcu_pool pool, size_t keep)
{
    if (!is_pool(pool))
        return HDCU_ERROR_INVALID_VALUE;
    hdsoft__pool_trim(pool, keep);
    return 0;
}

hdcu_result hdsoft__cuMemPoolSetAttribute(hdcu_pool pool, unsigned attribute, void *value)
{
    if (!is_pool(pool) || !value)
        return HDCU_ERROR_INVALID_VALUE;
    return (hdcu_result)hdsoft__pool_set(pool, attribute, value);
}

hdcu_result hdsoft__cuMemPoolGetAttribute(hdcu_pool pool, unsigned attribute, void *value)
{
    if (!is_pool(pool) || !value)
        return HDCU_ERROR_INVALID_VALUE;
    return (hdcu_result)hdsoft__pool_get(pool, attribute, value);
}

hdcu_result hdsoft__cuMemPoolSetAccess(hdcu_pool pool, const hdcu_memory_access *access, size_t count)
{
    if (!is_pool(pool) || (!access && count))
        return HDCU_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        const hdsoft__device *device = hdsoft__device_at(access[i].location.id);
        bool own = device == pool->device;
        bool all = access[i].flags == HDCU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        /* Its own device's access cannot be taken away. */
        if (access[i].location.type != HDCU_MEM_LOCATION_TYPE_DEVICE || !device || (own && !all))
            return HDCU_ERROR_INVALID_DEVICE;
        if (!all && access[i].flags)
            return HDCU_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        hdsoft__device *device = hdsoft__device_at(access[i].location.id);
        if (device == pool->device)
            continue;
        pool->peers &= ~(1u << device->ordinal);
        pool->peers |= (access[i].flags != 0) << device->ordinal;
        hdsoft__memory_set_peer(device->memory, pool->device->memory, pool->device->ordinal, access[i].flags != 0);
    }
    return 0;
}

hdcu_result hdsoft__cuMemPoolGetAccess(unsigned *flags, hdcu_pool pool, hdcu_memory_location *location)
{
    const hdsoft__device *device = location ? hdsoft__device_at(location->id) : NULL;
    if (!flags || !is_pool(pool) || !location || location->type != HDCU_MEM_LOCATION_TYPE_DEVICE)
        return HDCU_ERROR_INVALID_VALUE;
    if (!device)
        return HDCU_ERROR_INVALID_DEVICE;
    bool reachable = device == pool->device || (pool->peers >> device->ordinal & 1);
    *flags = reachable ? HDCU_MEM_ACCESS_FLAGS_PROT_READWRITE : HDCU_MEM_ACCESS_FLAGS_PROT_NONE;
    return 0;
}

static hdcu_result pool_of(hdcu_device ordinal, bool current, hdcu_pool *out)
{
    const hdsoft__device *device = hdsoft__device_at(ordinal);
    if (!out)
        return HDCU_ERROR_INVALID_VALUE;
    if (!device)
        return HDCU_ERROR_INVALID_DEVICE;
    *out = current ? device->current_pool : device->default_pool;
    return 0;
}

hdcu_result hdsoft__cuDeviceGetDefaultMemPool(hdcu_pool *out, hdcu_device ordinal)
{
    return pool_of(ordinal, false, out);
}

hdcu_result hdsoft__cuDeviceGetMemPool(hdcu_pool *out, hdcu_device ordinal)
{
    return pool_of(ordinal, true, out);
}

hdcu_result hdsoft__cuDeviceSetMemPool(hdcu_device ordinal, hdcu_pool pool)
{
    hdsoft__device *device = hdsoft__device_at(ordinal);
    if (!device)
        return HDCU_ERROR_INVALID_DEVICE;
    if (!is_pool(pool) || pool->device != device)
        return HDCU_ERROR_INVALID_VALUE;
    device->current_pool = pool;
    return 0;
}
