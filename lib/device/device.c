/* SPDX-License-Identifier: MIT */
#include "device/device.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/callbacks.h"
#include "device/describe.h"
#include "driver/error.h"
#include "driver/loader.h"

#include <hdrt/interop.h>

/* ---- the context ------------------------------------------------------------------------------------------------- */

/* Inside a scope without a context: get the context that the options ask for. */
static hdrt_status get_context(hdrt_device *device, const hdrt_device_options *options)
{
    const hdrt__driver_table *table = device->driver;
    hdcu_context unused;
    hdcu_device of_context = -1;
    hdrt__call call;
    switch (options->context_kind) {
    case HDRT_CONTEXT_PRIMARY:
        call = HDRT__CALL(table, cuDevicePrimaryCtxRetain, &device->context, device->ordinal);
        return hdrt__device_check(device, call, "primary context of device %u", device->index);
    case HDRT_CONTEXT_OWN:
        call = HDRT__CALL(table, cuCtxCreate, &device->context, HDCU_CTX_SCHED_AUTO, device->ordinal);
        if (!call.result) { /* it was made current, too */
            call = HDRT__CALL(table, cuCtxPopCurrent, &unused);
        }
        return hdrt__device_check(device, call, "new context of device %u", device->index);
    default:
        device->context = options->context;
        call = HDRT__CALL(table, cuCtxPushCurrent, device->context);
        if (!call.result) {
            call = HDRT__CALL(table, cuCtxGetDevice, &of_context);
            (void)HDRT__CALL(table, cuCtxPopCurrent, &unused);
        }
        hdrt_status status = hdrt__device_check(device, call, "adopted context of device %u", device->index);
        if (status == HDRT_OK && of_context != device->ordinal) {
            status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                                "hdrt_device_open: the context to adopt is of device %d, not of device %d", of_context,
                                device->ordinal);
        }
        return status;
    }
}

/* Inside a scope, with or without a current context. Not on a lost device, and only once. */
static void give_context_back(hdrt_device *device)
{
    hdrt__call call = {HDCU_SUCCESS, ""};
    if (device->context_kind == HDRT_CONTEXT_PRIMARY) {
        call = HDRT__CALL(device->driver, cuDevicePrimaryCtxRelease, device->ordinal);
    } else if (device->context_kind == HDRT_CONTEXT_OWN) {
        call = HDRT__CALL(device->driver, cuCtxDestroy, device->context);
    }
    hdrt__device_check(device, call, "giving back the context of device %u", device->index);
    device->context = NULL;
}

static hdrt_status set_limit(hdrt_device *device, unsigned limit, size_t bytes, const char *name)
{
    if (!bytes) {
        return HDRT_OK;
    }
    hdrt__call call = HDRT__CALL(device->driver, cuCtxSetLimit, limit, bytes);
    return hdrt__device_check(device, call, "%s of %zu bytes on device %u", name, bytes, device->index);
}

/* Inside the device's scope. */
static hdrt_status set_limits(hdrt_device *device, const hdrt_device_options *options)
{
    hdrt_status status = hdrt__describe_limits(device->driver, device->ordinal, &device->limits);
    if (status == HDRT_OK) {
        status = set_limit(device, HDCU_LIMIT_PRINTF_FIFO_SIZE, options->printf_fifo_bytes, "printf buffer");
    }
    if (status == HDRT_OK) {
        status = set_limit(device, HDCU_LIMIT_MALLOC_HEAP_SIZE, options->malloc_heap_bytes, "heap of kernels");
    }
    if (status == HDRT_OK) {
        status = set_limit(device, HDCU_LIMIT_STACK_SIZE, options->stack_bytes, "stack of kernels");
    }
    return status;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static void device_free(hdrt_device *device)
{
    hdrt__callbacks_destroy(device->callbacks);
    hdrt__reaper_destroy(device->reaper);
    hdrt__failure_drop(device->lost);
    pthread_mutex_destroy(&device->lock);
    pthread_mutex_destroy(&device->marks_lock);
    pthread_mutex_destroy(&device->queues_lock);
    hdrt__runtime_drop(device->runtime);
    free(device);
}

static void free_marks(hdrt_device *device)
{
    hdrt__scope scope;
    bool inside = device->marks && hdrt__device_enter(device, &scope) == HDRT_OK;
    for (hdrt__mark *mark = device->marks, *next; mark; mark = next) {
        next = mark->next;
        if (inside && !hdrt__device_is_lost(device)) {
            hdrt__device_check(device, HDRT__CALL(device->driver, cuEventDestroy, mark->event), "destroying an event");
        }
        free(mark);
    }
    if (inside) {
        hdrt__device_leave(device, &scope);
    }
}

static void device_end(hdrt_device *device)
{
    hdrt__scope scope;
    if (atomic_load(&device->runtime->faults[device->index].lost)) {
        hdrt__device_share_fault(device);
    }
    hdrt__attachment_end(&device->scheduler); /* its templates hold modules */
    hdrt__attachment_end(&device->jit);
    hdrt__attachment_end(&device->memory);
    free_marks(device);
    if (device->context && !hdrt__device_is_lost(device) &&
        !hdrt__scope_enter(device->driver, NULL, &scope).result) {
        give_context_back(device);
        hdrt__scope_leave(device->driver, &scope);
    }
    device_free(device);
}

void hdrt__device_hold(hdrt_device *device)
{
    atomic_fetch_add_explicit(&device->references, 1, memory_order_relaxed);
}

bool hdrt__device_try_hold(hdrt_device *device)
{
    unsigned references = atomic_load(&device->references);
    while (references && !atomic_compare_exchange_weak(&device->references, &references, references + 1)) {
    }
    return references != 0;
}

void hdrt__device_drop(hdrt_device *device)
{
    if (atomic_fetch_sub_explicit(&device->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    hdrt_queue *queue = device->default_queue;
    if (queue) {
        /* Its work may still run: it gets the hold that every other queue has, and the device ends with it. */
        device->default_queue = NULL;
        atomic_store(&device->references, 1);
        device->default_queue_end(queue);
        return;
    }
    device_end(device);
}

static hdrt_device *device_new(hdrt_runtime *runtime, uint32_t index)
{
    hdrt_device *device = calloc(1, sizeof *device);
    if (!device) {
        hdrt__fail_memory(sizeof *device, "a device");
        return NULL;
    }
    atomic_init(&device->references, 1);
    pthread_mutex_init(&device->queues_lock, NULL);
    pthread_mutex_init(&device->marks_lock, NULL);
    pthread_mutex_init(&device->lock, NULL);
    device->runtime = runtime;
    hdrt__runtime_hold(runtime);
    device->driver = &runtime->driver->table;
    device->index = index;
    device->info = runtime->infos[index];
    if (hdrt__reaper_create(&device->reaper) != HDRT_OK) {
        device_free(device);
        return NULL;
    }
    return device;
}

static hdrt_status check_open(hdrt_runtime *runtime, uint32_t index, const hdrt_device_options *options)
{
    if (index >= runtime->device_count) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_device_open: no device %u: there are %u, counted from 0",
                          index, runtime->device_count);
    }
    if ((unsigned)options->context_kind > HDRT_CONTEXT_ADOPTED) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "hdrt_device_open: context_kind is %d, none of hdrt_context_kind",
                          (int)options->context_kind);
    }
    if ((options->context != NULL) != (options->context_kind == HDRT_CONTEXT_ADOPTED)) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_device_open: %s",
                          options->context ? "a context is given, but context_kind is not HDRT_CONTEXT_ADOPTED"
                                           : "context_kind is HDRT_CONTEXT_ADOPTED, but no context is given");
    }
    if (atomic_load(&runtime->faults[index].lost)) {
        return hdrt__fail_with(HDRT_ERROR_DEVICE_LOST, hdrt__failure_text(runtime->faults[index].failure));
    }
    return HDRT_OK;
}

hdrt_status hdrt_device_open(hdrt_runtime *runtime, uint32_t index, const hdrt_device_options *options,
                             hdrt_device **out_device)
{
    hdrt_device_options known;
    hdrt__scope scope;
    if (!out_device) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_device_open: out_device is NULL");
    }
    *out_device = NULL;
    hdrt_status status = hdrt__runtime_begin(runtime, "hdrt_device_open");
    if (status == HDRT_OK) {
        status = hdrt__options_read("hdrt_device_options", options, &known, sizeof known,
                                    offsetof(hdrt_device_options, reserved));
    }
    if (status == HDRT_OK) {
        status = check_open(runtime, index, &known);
    }
    if (status != HDRT_OK) {
        return status;
    }
    hdrt_device *device = device_new(runtime, index);
    if (!device) {
        return HDRT_ERROR_OUT_OF_MEMORY;
    }
    device->context_kind = known.context_kind;
    device->watchdog_ns = known.watchdog_ns;
    hdrt__call call = hdrt__scope_enter(device->driver, NULL, &scope);
    if (!call.result) {
        call = HDRT__CALL(device->driver, cuDeviceGet, &device->ordinal, (int)index);
        status = hdrt__device_check(device, call, "device %u", index);
        if (status == HDRT_OK) {
            status = get_context(device, &known);
        }
        hdrt__scope_leave(device->driver, &scope);
    } else {
        status = hdrt__device_check(device, call, "opening device %u", index);
    }
    if (status == HDRT_OK && (status = hdrt__device_enter(device, &scope)) == HDRT_OK) {
        status = set_limits(device, &known);
        hdrt__device_leave(device, &scope);
    }
    if (status != HDRT_OK) {
        device_end(device);
        return status;
    }
    *out_device = device;
    return HDRT_OK;
}

void hdrt__device_code_unwanted(hdrt_device *device)
{
    void (*unwanted)(hdrt_device *device) = atomic_load(&device->unwanted);
    if (unwanted) {
        unwanted(device);
    }
}

void hdrt_device_close(hdrt_device *device)
{
    if (device && !hdrt__runtime_forked(device->runtime)) {
        hdrt__device_drain(device);
        if (device->close) {
            device->close(device);
        }
        hdrt__device_drop(device);
    }
}

/* ---- entering ---------------------------------------------------------------------------------------------------- */

hdrt_status hdrt__device_begin(hdrt_device *device, const char *function)
{
    if (!device) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s: the device is NULL", function);
    }
    hdrt_status status = hdrt__runtime_begin(device->runtime, function);
    return status == HDRT_OK && hdrt__device_is_lost(device) ? hdrt__device_lost_status(device) : status;
}

/* The device that this thread never leaves. */
static _Thread_local const hdrt_device *resident;

hdrt__call hdrt__device_stay(hdrt_device *device)
{
    hdrt__call call = {HDCU_SUCCESS, "cuCtxPushCurrent"};
    if (hdrt__device_is_lost(device)) {
        return call; /* nothing will be called on it */
    }
    call = hdrt__scope_relax_thread(device->driver);
    if (!call.result && !hdrt__device_is_lost(device)) {
        call = HDRT__CALL(device->driver, cuCtxPushCurrent, device->context);
    }
    if (!call.result && !hdrt__device_is_lost(device)) {
        resident = device;
    }
    return call;
}

hdrt_status hdrt__device_enter(hdrt_device *device, hdrt__scope *scope)
{
    if (hdrt__runtime_forked(device->runtime)) {
        return hdrt__runtime_begin(device->runtime, "libhdrt");
    }
    if (atomic_load_explicit(&device->runtime->faults[device->index].lost, memory_order_acquire)) {
        hdrt__device_share_fault(device);
        return hdrt__device_lost_status(device);
    }
    if (resident == device) {
        *scope = (hdrt__scope){.resident = true};
        return HDRT_OK;
    }
    hdrt__call call = hdrt__scope_enter(device->driver, device->context, scope);
    return hdrt__device_check(device, call, "entering device %u", device->index);
}

void hdrt__device_leave(hdrt_device *device, hdrt__scope *scope)
{
    if (!scope->resident) {
        hdrt__scope_leave(device->driver, scope);
    }
}

hdrt_status hdrt__device_check(hdrt_device *device, hdrt__call call, const char *format, ...)
{
    char what[512];
    va_list arguments;
    if (!call.result) {
        return HDRT_OK;
    }
    va_start(arguments, format);
    if (hdrt__result_is_lost(call.result)) {
        vsnprintf(what, sizeof what, format, arguments);
        va_end(arguments);
        hdrt__device_lose(device, call, what);
        return hdrt__device_lost_status(device);
    }
    hdrt_status status = hdrt__call_failed_with(call.result, call.text, format, arguments);
    va_end(arguments);
    return status;
}

/* ---- marks ------------------------------------------------------------------------------------------------------- */

hdrt__call hdrt__device_mark_take(hdrt_device *device, hdrt__mark **out_mark)
{
    hdrt__call call = {HDCU_SUCCESS, "cuEventCreate"};
    pthread_mutex_lock(&device->marks_lock);
    hdrt__mark *mark = device->marks;
    if (mark) {
        device->marks = mark->next;
    }
    pthread_mutex_unlock(&device->marks_lock);
    if (!mark) {
        mark = calloc(1, sizeof *mark);
        if (!mark) {
            call.result = HDCU_ERROR_OUT_OF_MEMORY;
            return call;
        }
        call = HDRT__CALL(device->driver, cuEventCreate, &mark->event, HDCU_EVENT_DISABLE_TIMING);
        if (call.result) {
            free(mark);
            return call;
        }
    }
    atomic_store(&mark->references, 1);
    *out_mark = mark;
    return call;
}

void hdrt__mark_hold(hdrt__mark *mark)
{
    atomic_fetch_add_explicit(&mark->references, 1, memory_order_relaxed);
}

void hdrt__mark_drop(hdrt_device *device, hdrt__mark *mark)
{
    if (atomic_fetch_sub_explicit(&mark->references, 1, memory_order_acq_rel) == 1) {
        pthread_mutex_lock(&device->marks_lock);
        mark->next = device->marks;
        device->marks = mark;
        pthread_mutex_unlock(&device->marks_lock);
    }
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

hdrt_status hdrt_device_get_info(hdrt_device *device, hdrt_device_info *out_info)
{
    if (!device) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_device_get_info: the device is NULL");
    }
    hdrt_status status = hdrt__runtime_begin(device->runtime, "hdrt_device_get_info");
    return status != HDRT_OK ? status
                             : hdrt__info_write("hdrt_device_info", out_info, &device->info, sizeof device->info);
}

bool hdrt_device_supports(const hdrt_device *device, hdrt_feature feature)
{
    if (!device) {
        return false;
    }
    switch (feature) {
    case HDRT_FEATURE_MEMORY_POOLS:
        return device->limits.memory_pools;
    case HDRT_FEATURE_COOPERATIVE_LAUNCH:
        return device->info.cooperative_launch && device->driver->cuLaunchCooperativeKernel;
    case HDRT_FEATURE_PARAMETER_INFO:
        return device->limits.parameter_info;
    case HDRT_FEATURE_ASYNC_COMPILE:
    case HDRT_FEATURE_WAIT_UNSIGNALLED:
    case HDRT_FEATURE_NOTIFY_FD:
        return true;
    case HDRT_FEATURE_SOFTWARE:
        return device->runtime->kind == HDRT_DRIVER_SOFT;
    default:
        return false;
    }
}

hdrt_status hdrt_device_memory_info(hdrt_device *device, uint64_t *out_free, uint64_t *out_total)
{
    hdrt__scope scope;
    size_t free_bytes = 0, total_bytes = 0;
    hdrt_status status = hdrt__device_begin(device, "hdrt_device_memory_info");
    if (status == HDRT_OK) {
        status = hdrt__device_enter(device, &scope);
    }
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__call call = HDRT__CALL(device->driver, cuMemGetInfo, &free_bytes, &total_bytes);
    status = hdrt__device_check(device, call, "memory of device %u", device->index);
    hdrt__device_leave(device, &scope);
    if (status == HDRT_OK && out_free) {
        *out_free = free_bytes;
    }
    if (status == HDRT_OK && out_total) {
        *out_total = total_bytes;
    }
    return status;
}

hdrt_runtime *hdrt_device_runtime(const hdrt_device *device)
{
    return device ? device->runtime : NULL;
}

struct CUctx_st *hdrt_device_context(const hdrt_device *device)
{
    return device ? device->context : NULL;
}

int hdrt_device_ordinal(const hdrt_device *device)
{
    return device ? device->ordinal : -1;
}
