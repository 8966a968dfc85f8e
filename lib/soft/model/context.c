/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "soft/check/leak.h"
#include "soft/model/module.h"

/* Device memory that a context takes on an H200. */
#define CONTEXT_BYTES ((uint64_t)8 << 20)

static void set_limits(hdsoft__context *context)
{
    static const uint64_t defaults[HDSOFT__LIMITS] = {
        [HDCU_LIMIT_STACK_SIZE] = 1024,
        [HDCU_LIMIT_PRINTF_FIFO_SIZE] = 8650752,
        [HDCU_LIMIT_MALLOC_HEAP_SIZE] = 8388608,
        [HDCU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
        [HDCU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
        [HDCU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 11796480,
        [HDCU_LIMIT_SHMEM_SIZE] = 232448,
    };
    for (size_t i = 0; i < HDSOFT__LIMITS; i++)
        context->limits[i] = defaults[i];
}

static hdsoft__context *new_context(hdsoft__device *device, bool primary)
{
    hdsoft__context *context = calloc(1, sizeof *context);
    if (!context || !hdsoft__handle_add(context, HDSOFT__CONTEXT)) {
        free(context);
        return NULL;
    }
    context->device = device;
    context->primary = primary;
    context->destroyed = true; /* until it has what it needs */
    context->next = hdsoft__the.contexts;
    hdsoft__the.contexts = context;
    return context;
}

int hdsoft__context_create(hdsoft__device *device, unsigned flags, bool primary, hdsoft__context **out)
{
    /* The primary context keeps its handle when it is retained again. */
    hdsoft__context *context = primary && device->primary ? device->primary : new_context(device, primary);
    if (!context)
        return HDCU_ERROR_OUT_OF_MEMORY;
    if (primary)
        device->primary = context;
    if (!hdsoft__memory_charge(device->memory, CONTEXT_BYTES))
        return HDCU_ERROR_OUT_OF_MEMORY;
    context->destroyed = false;
    context->legacy = hdsoft__stream_create(context, 0, 0);
    if (!context->legacy) {
        context->destroyed = true;
        hdsoft__memory_uncharge(device->memory, CONTEXT_BYTES);
        return HDCU_ERROR_OUT_OF_MEMORY;
    }
    hdsoft__handle_remove(context->legacy); /* it has no handle but 0 and 1 */
    context->legacy->legacy = true;
    context->flags = flags;
    context->retained = 1;
    context->peers = 0;
    set_limits(context);
    *out = context;
    return 0;
}

static void free_events(hdsoft__context *context)
{
    while (context->events) {
        hdsoft__event *event = context->events;
        context->events = event->next;
        hdsoft__handle_remove(event);
        hdsoft__event_release(event);
    }
}

static void free_memory(hdsoft__context *context)
{
    hdsoft__allocation allocation;
    hdsoft_memory *memory = context->device->memory;
    for (uint64_t from = 0; hdsoft__memory_next_owned(memory, context, from, &allocation); from = allocation.range.end)
        hdsoft__memory_remove(memory, &allocation);
    for (uint64_t from = 0; hdsoft__memory_next_owned(hdsoft__the.hosts, context, from, &allocation);
         from = allocation.range.end)
        hdsoft__memory_unmap_host(hdsoft__the.hosts, allocation.range.base);
}

void hdsoft__context_destroy(hdsoft__context *context)
{
    hdsoft__device *device = context->device;
    hdsoft__wait_all(device, context);
    if (context->destroyed)
        return; /* another thread was quicker */
    context->destroyed = true;
    hdsoft__check_leaks(context);
    while (context->modules)
        hdsoft__module_unload(context->modules);
    free_events(context);
    for (hdsoft__stream *stream = context->streams, *next; stream; stream = next) {
        next = stream->next;
        if (stream->destroyed)
            continue;
        /* A per-thread stream belongs to its thread, which looks at it once more when it ends. */
        if (stream->per_thread)
            stream->references++;
        hdsoft__stream_destroy(stream);
    }
    context->legacy = NULL;
    free_memory(context);
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        if (context->peers >> i & 1)
            hdsoft__memory_set_peer(device->memory, hdsoft__the.devices[i].memory, i, false);
    }
    hdsoft__memory_uncharge(device->memory, CONTEXT_BYTES);
    hdsoft__wake();
}
