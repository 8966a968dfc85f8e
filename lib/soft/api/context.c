/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "soft/api/entry.h"
#include "soft/model/capture.h"

/* ---- the calling thread's stack ---- */

hdcu_result hdsoft__cuCtxPushCurrent(hdcu_context context)
{
    if (!context)
        return HDCU_ERROR_INVALID_VALUE;
    if (!hdsoft__handle_is(context, HDSOFT__CONTEXT))
        return HDCU_ERROR_INVALID_CONTEXT;
    hdsoft__thread *thread = hdsoft__thread_state();
    if (thread->depth == thread->capacity) {
        size_t capacity = thread->capacity ? 2 * thread->capacity : 8;
        hdsoft__context **grown = realloc(thread->stack, capacity * sizeof *grown);
        if (!grown)
            return HDCU_ERROR_OUT_OF_MEMORY;
        thread->stack = grown;
        thread->capacity = capacity;
    }
    thread->stack[thread->depth++] = context;
    return 0;
}

hdcu_result hdsoft__cuCtxPopCurrent(hdcu_context *out)
{
    hdsoft__thread *thread = hdsoft__thread_state();
    if (!thread->depth)
        return HDCU_ERROR_INVALID_CONTEXT;
    hdsoft__context *top = thread->stack[--thread->depth];
    if (out)
        *out = top;
    return 0;
}

hdcu_result hdsoft__cuCtxSetCurrent(hdcu_context context)
{
    hdsoft__thread *thread = hdsoft__thread_state();
    if (!context) {
        thread->depth -= thread->depth > 0;
        return 0;
    }
    if (!hdsoft__handle_is(context, HDSOFT__CONTEXT))
        return HDCU_ERROR_INVALID_CONTEXT;
    if (!thread->depth)
        return hdsoft__cuCtxPushCurrent(context);
    thread->stack[thread->depth - 1] = context;
    return 0;
}

hdcu_result hdsoft__cuCtxGetCurrent(hdcu_context *out)
{
    if (!out)
        return HDCU_ERROR_INVALID_VALUE;
    *out = hdsoft__here();
    return 0;
}

hdcu_result hdsoft__cuCtxDestroy(hdcu_context context)
{
    if (!context)
        return HDCU_ERROR_INVALID_VALUE;
    if (!hdsoft__handle_is(context, HDSOFT__CONTEXT) || context->primary)
        return HDCU_ERROR_INVALID_CONTEXT;
    if (context->destroyed)
        return HDCU_ERROR_CONTEXT_IS_DESTROYED;
    hdsoft__thread *thread = hdsoft__thread_state();
    if (thread->depth && thread->stack[thread->depth - 1] == context)
        thread->depth--;
    hdsoft__context_destroy(context);
    return hdsoft__synchronised(0);
}

/* ---- the current context ---- */

hdcu_result hdsoft__cuCtxGetDevice(hdcu_device *out)
{
    if (!out)
        return HDCU_ERROR_INVALID_VALUE;
    *out = (hdcu_device)hdsoft__here()->device->ordinal;
    return 0;
}

hdcu_result hdsoft__cuCtxGetFlags(unsigned *flags)
{
    if (!flags)
        return HDCU_ERROR_INVALID_VALUE;
    const hdsoft__context *context = hdsoft__here();
    *flags = context->flags | (context->primary ? HDCU_CTX_MAP_HOST : 0);
    return 0;
}

/* A context that is named, or the current one. */
static hdcu_result named_context(hdsoft__context **context)
{
    if (*context)
        return hdsoft__handle_is(*context, HDSOFT__CONTEXT) ? 0 : HDCU_ERROR_INVALID_CONTEXT;
    *context = hdsoft__here();
    return *context ? 0 : HDCU_ERROR_INVALID_CONTEXT;
}

hdcu_result hdsoft__cuCtxGetId(hdcu_context context, unsigned long long *id)
{
    if (!id)
        return HDCU_ERROR_INVALID_VALUE;
    hdcu_result status = named_context(&context);
    if (status)
        return status;
    *id = 1; /* contexts stay in the list for ever, the newest first */
    for (const hdsoft__context *older = context->next; older; older = older->next)
        ++*id;
    return 0;
}

hdcu_result hdsoft__cuCtxGetApiVersion(hdcu_context context, unsigned *version)
{
    if (!version)
        return HDCU_ERROR_INVALID_VALUE;
    hdcu_result status = named_context(&context);
    if (!status)
        *version = 3020; /* that of cuCtxCreate_v2 and all later ones */
    return status;
}

/* There is no profiler to start, which is no failure on a real driver either. */
hdcu_result hdsoft__cuProfilerStart(void)
{
    return hdsoft__here() ? 0 : HDCU_ERROR_INVALID_CONTEXT;
}

hdcu_result hdsoft__cuProfilerStop(void)
{
    return hdsoft__here() ? 0 : HDCU_ERROR_INVALID_CONTEXT;
}

hdcu_result hdsoft__cuCtxSynchronize(void)
{
    hdsoft__context *context = hdsoft__here();
    int status = hdsoft__capture_synchronize(context);
    return status ? (hdcu_result)status : hdsoft__synchronised(hdsoft__wait_all(context->device, context));
}

hdcu_result hdsoft__cuCtxGetLimit(size_t *value, unsigned limit)
{
    if (!value || limit >= HDSOFT__LIMITS)
        return HDCU_ERROR_INVALID_VALUE;
    if (limit == HDCU_LIMIT_DEV_RUNTIME_SYNC_DEPTH || limit == HDCU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED)
        return HDCU_ERROR_UNSUPPORTED_LIMIT;
    *value = hdsoft__here()->limits[limit];
    return 0;
}

static size_t round_up(size_t value, size_t step)
{
    return value < step ? step : (value + step - 1) / step * step;
}

hdcu_result hdsoft__cuCtxSetLimit(unsigned limit, size_t value)
{
    hdsoft__context *context = hdsoft__here();
    switch (limit) {
    case HDCU_LIMIT_STACK_SIZE:
        if (value > ((size_t)512 << 10))
            return HDCU_ERROR_INVALID_VALUE;
        value = (value + 15) / 16 * 16;
        break;
    case HDCU_LIMIT_PRINTF_FIFO_SIZE:
        value = round_up(value, (size_t)512 << 10);
        hdsoft__print_limit(value);
        break;
    case HDCU_LIMIT_MALLOC_HEAP_SIZE: 
        value = round_up(value, (size_t)4 << 20);
        hdsoft__memory_limit_heap(context->device->memory, value);
        break;
    case HDCU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT: break;
    case HDCU_LIMIT_MAX_L2_FETCH_GRANULARITY:
        if (value > 128)
            return HDCU_ERROR_INVALID_VALUE;
        break;
    case HDCU_LIMIT_PERSISTING_L2_CACHE_SIZE: value = value < 39321600 ? value : 39321600; break;
    case HDCU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
    case HDCU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED: return HDCU_ERROR_UNSUPPORTED_LIMIT;
    case HDCU_LIMIT_SHMEM_SIZE:
    case HDCU_LIMIT_CIG_ENABLED: return HDCU_ERROR_NOT_PERMITTED;
    default: return HDCU_ERROR_INVALID_VALUE;
    }
    context->limits[limit] = value;
    return 0;
}

hdcu_result hdsoft__cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return 0;
}

static int peer_of(hdcu_context peer, int own, unsigned *ordinal)
{
    if (!hdsoft__handle_is(peer, HDSOFT__CONTEXT) || peer->destroyed)
        return HDCU_ERROR_INVALID_CONTEXT;
    if (peer->device == hdsoft__here()->device)
        return own;
    *ordinal = peer->device->ordinal;
    return 0;
}

hdcu_result hdsoft__cuCtxEnablePeerAccess(hdcu_context peer, unsigned flags)
{
    hdsoft__context *context = hdsoft__here();
    unsigned ordinal;
    int status = flags ? HDCU_ERROR_INVALID_VALUE : peer_of(peer, HDCU_ERROR_PEER_ACCESS_UNSUPPORTED, &ordinal);
    if (status)
        return (hdcu_result)status;
    if (context->peers >> ordinal & 1)
        return HDCU_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    context->peers |= 1u << ordinal;
    hdsoft__memory_set_peer(context->device->memory, peer->device->memory, ordinal, true);
    return 0;
}

hdcu_result hdsoft__cuCtxDisablePeerAccess(hdcu_context peer)
{
    hdsoft__context *context = hdsoft__here();
    unsigned ordinal;
    int status = peer_of(peer, HDCU_ERROR_PEER_ACCESS_NOT_ENABLED, &ordinal);
    if (status)
        return (hdcu_result)status;
    if (!(context->peers >> ordinal & 1))
        return HDCU_ERROR_PEER_ACCESS_NOT_ENABLED;
    context->peers &= ~(1u << ordinal);
    hdsoft__memory_set_peer(context->device->memory, peer->device->memory, ordinal, false);
    return 0;
}
