/* SPDX-License-Identifier: MIT */
/* Pinned host memory: allocated and freed, registered and given up. */
#include <stddef.h>

#include "base/log.h"
#include "base/status.h"
#include "device/device.h"
#include "memory/memory.h"
#include "memory/registry.h"

/* The driver's one code for "no memory" means host memory here. */
static hdrt_status check_pinning(hdrt_device *device, hdrt__call call, uint64_t bytes, const char *what)
{
    hdrt_status status = hdrt__device_check(device, call, "%s %llu bytes of pinned memory on device %u", what,
                                            (unsigned long long)bytes, device->index);
    return status == HDRT_ERROR_OUT_OF_DEVICE_MEMORY ? HDRT_ERROR_OUT_OF_MEMORY : status;
}

static hdrt_status pin(hdrt_device *device, hdrt__range_kind kind, void **memory, uint64_t bytes)
{
    hdrt__scope scope;
    bool allocate = kind == HDRT__RANGE_PINNED;
    hdrt_status status = hdrt__device_enter(device, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    if (!hdrt__device_memory(device)) { /* whose end frees what the caller leaves */
        status = hdrt__device_is_lost(device) ? hdrt__device_lost_status(device) : HDRT_ERROR_OUT_OF_MEMORY;
        hdrt__device_leave(device, &scope);
        return status;
    }
    hdrt__call call = allocate ? HDRT__CALL(device->driver, cuMemHostAlloc, memory, bytes,
                                            HDCU_MEMHOSTALLOC_PORTABLE | HDCU_MEMHOSTALLOC_DEVICEMAP)
                               : HDRT__CALL(device->driver, cuMemHostRegister, *memory, bytes,
                                            HDCU_MEMHOSTREGISTER_PORTABLE | HDCU_MEMHOSTREGISTER_DEVICEMAP);
    status = check_pinning(device, call, bytes, allocate ? "allocating" : "registering");
    if (status == HDRT_OK) {
        status = hdrt__registry_add(device, kind, (uint64_t)(uintptr_t)*memory, bytes);
        if (status != HDRT_OK) {
            call = allocate ? HDRT__CALL(device->driver, cuMemFreeHost, *memory)
                            : HDRT__CALL(device->driver, cuMemHostUnregister, *memory);
        }
    }
    hdrt__device_leave(device, &scope);
    return status;
}

hdrt_status hdrt_host_alloc(hdrt_device *device, uint64_t bytes, void **out_memory)
{
    if (!out_memory) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_host_alloc: out_memory is NULL");
    }
    *out_memory = NULL;
    hdrt_status status = hdrt__device_begin(device, "hdrt_host_alloc");
    if (status != HDRT_OK) {
        return status;
    }
    if (!bytes) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_host_alloc: 0 bytes, 1 or more are expected");
    }
    hdrt__device_drain(device);
    void *memory = NULL;
    status = pin(device, HDRT__RANGE_PINNED, &memory, bytes);
    if (status == HDRT_OK) {
        *out_memory = memory;
    }
    return status;
}

/* Deferred until nothing uses it. */
static void free_pinned(hdrt_device *device, hdrt__deferred *item)
{
    hdrt__range *range = (hdrt__range *)((char *)item - offsetof(hdrt__range, deferred));
    hdrt__scope scope;
    if (hdrt__device_enter(device, &scope) == HDRT_OK) {
        hdrt__call call = HDRT__CALL(device->driver, cuMemFreeHost, (void *)(uintptr_t)range->address);
        if (hdrt__device_check(device, call, "freeing %llu bytes of pinned memory", (unsigned long long)range->bytes)) {
            hdrt__log(HDRT_LOG_ERROR, "%s", hdrt_last_error());
        }
        hdrt__device_leave(device, &scope);
    }
    hdrt__range_free(range);
}

/* As hdrt__device_begin, but fine on a lost device: what is given back then only leaves the registry. */
static hdrt_status begin_giving(hdrt_device *device, const char *function)
{
    if (!device) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s: the device is NULL", function);
    }
    return hdrt__runtime_begin(device->runtime, function);
}

/* Take a range out, with all that may still use it in its uses. */
static hdrt_status take_out(hdrt_device *device, hdrt__range_kind kind, void *memory, const char *function,
                            hdrt__range **out_range)
{
    hdrt__range *range = hdrt__registry_take(device, kind, (uint64_t)(uintptr_t)memory);
    if (!range) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s: %p is not what %s gave on device %u, or is no more",
                          function, memory, kind == HDRT__RANGE_PINNED ? "hdrt_host_alloc" : "hdrt_host_register",
                          device->index);
    }
    hdrt_status status = hdrt__device_launches(device, &range->uses);
    if (status != HDRT_OK) {
        hdrt__registry_restore(range);
        return status;
    }
    hdrt__order_forget(device->runtime->order, (hdrt_event){0, 0}, range->serial);
    *out_range = range;
    return HDRT_OK;
}

hdrt_status hdrt_host_free(hdrt_device *device, void *memory)
{
    hdrt__range *range;
    hdrt_status status = begin_giving(device, "hdrt_host_free");
    if (status != HDRT_OK || !memory) {
        return status;
    }
    hdrt__device_drain(device);
    status = take_out(device, HDRT__RANGE_PINNED, memory, "hdrt_host_free", &range);
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__uses_move(&range->uses, &range->deferred.uses);
    range->deferred.run = free_pinned;
    hdrt__device_defer(device, &range->deferred);
    return HDRT_OK;
}

hdrt_status hdrt_host_register(hdrt_device *device, void *memory, uint64_t bytes)
{
    hdrt_status status = hdrt__device_begin(device, "hdrt_host_register");
    if (status != HDRT_OK) {
        return status;
    }
    if (!memory || !bytes || bytes > UINT64_MAX - (uint64_t)(uintptr_t)memory) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_host_register: %llu bytes at %p are no range of memory",
                          (unsigned long long)bytes, memory);
    }
    return pin(device, HDRT__RANGE_REGISTERED, &memory, bytes);
}

hdrt_status hdrt_host_unregister(hdrt_device *device, void *memory)
{
    hdrt__scope scope;
    hdrt__range *range;
    hdrt_status status = begin_giving(device, "hdrt_host_unregister");
    if (status == HDRT_OK) {
        status = take_out(device, HDRT__RANGE_REGISTERED, memory, "hdrt_host_unregister", &range);
    }
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt__uses_wait(&range->uses, device->runtime);
    if (status != HDRT_OK) {
        hdrt__registry_restore(range);
        return status;
    }
    if (hdrt__device_enter(device, &scope) == HDRT_OK) {
        hdrt__call call = HDRT__CALL(device->driver, cuMemHostUnregister, memory);
        status = hdrt__device_check(device, call, "giving up %llu bytes of pinned memory at %p",
                                    (unsigned long long)range->bytes, memory);
        hdrt__device_leave(device, &scope);
    }
    if (status == HDRT_OK || status == HDRT_ERROR_DEVICE_LOST) {
        hdrt__range_free(range);
        return HDRT_OK;
    }
    hdrt__registry_restore(range);
    return status;
}
