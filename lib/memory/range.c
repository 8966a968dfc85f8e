/* SPDX-License-Identifier: MIT */
/* Checks of the addresses that callers give. */
#include "base/status.h"
#include "device/device.h"
#include "memory/memory.h"
#include "memory/registry.h"

/* The range begins in [base, base + size): does it end there? */
static hdrt_status check_end(uint64_t address, uint64_t bytes, uint64_t base, uint64_t size, const char *what)
{
    uint64_t left = size - (address - base);
    if (bytes <= left) {
        return HDRT_OK;
    }
    return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                      "%s: %llu bytes at 0x%llx end %llu bytes beyond the allocation of %llu bytes at 0x%llx", what,
                      (unsigned long long)bytes, (unsigned long long)address, (unsigned long long)(bytes - left),
                      (unsigned long long)size, (unsigned long long)base);
}

/* The registry does not know it. The driver forgets freed memory of our pool only when the stream has come to the free. */
static hdrt_status check_foreign_range(hdrt_device *device, hdrt_ptr pointer, uint64_t bytes, const char *what)
{
    hdcu_pointer base = 0;
    size_t size = 0;
    hdrt__scope scope;
    hdrt_status status = hdrt__device_enter(device, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__memory *memory = hdrt__device_memory(device);
    bool freed = memory && hdrt__memory_holds(memory, pointer);
    hdrt__call call = HDRT__CALL(device->driver, cuMemGetAddressRange, &base, &size, pointer);
    status = hdrt__device_check(device, call, "%s", what);
    hdrt__device_leave(device, &scope);
    if (freed) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s: 0x%llx is memory that hdrt_free was called for", what,
                          (unsigned long long)pointer);
    }
    if (status == HDRT_OK) {
        return check_end(pointer, bytes, base, size, what);
    }
    if (status == HDRT_ERROR_DEVICE_LOST) {
        return status;
    }
    return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                      "%s: 0x%llx is in no device memory that the library or the driver knows (freed already?)", what,
                      (unsigned long long)pointer);
}

hdrt_status hdrt__check_device_range(hdrt_device *device, hdrt_ptr pointer, uint64_t bytes, const char *what,
                                     hdcu_context *out_context)
{
    hdrt__place place;
    *out_context = NULL;
    if (!pointer) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s is 0, no address", what);
    }
    if (hdrt__registry_find(device->runtime, false, pointer, &place)) {
        *out_context = place.context;
        return check_end(pointer, bytes, place.address, place.bytes, what);
    }
    if (hdrt__registry_find(device->runtime, true, pointer, &place)) {
        return check_end(pointer, bytes, place.address, place.bytes, what);
    }
    return check_foreign_range(device, pointer, bytes, what);
}

/* What the driver knows of host memory that the library does not: pinned by others, or device memory by mistake. */
static hdrt_status ask_driver(hdrt_device *device, const void *memory, const char *what, bool *out_pinned)
{
    unsigned type = 0, managed = 0;
    hdcu_pointer address = (hdcu_pointer)(uintptr_t)memory;
    hdrt__call call =
        HDRT__CALL(device->driver, cuPointerGetAttribute, &type, HDCU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    if (call.result) {
        /* Memory that the driver does not know is pageable. */
        hdrt_status status = hdrt__device_check(device, call, "%s", what);
        return status == HDRT_ERROR_DEVICE_LOST ? status : HDRT_OK;
    }
    if (type == HDCU_MEMORYTYPE_HOST) {
        *out_pinned = true;
        return HDRT_OK;
    }
    call = HDRT__CALL(device->driver, cuPointerGetAttribute, &managed, HDCU_POINTER_ATTRIBUTE_IS_MANAGED, address);
    if (!call.result && managed) {
        return HDRT_OK;
    }
    return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s: %p is device memory, host memory is expected", what, memory);
}

static hdrt_status check_foreign_host(hdrt_device *device, const void *memory, const char *what, bool *out_pinned)
{
    hdrt__scope scope;
    hdrt_status status = hdrt__device_enter(device, &scope);
    if (status == HDRT_OK) {
        status = ask_driver(device, memory, what, out_pinned);
        hdrt__device_leave(device, &scope);
    }
    return status;
}

hdrt_status hdrt__check_host_range(hdrt_device *device, const void *memory, uint64_t bytes, const char *what,
                                   bool *out_pinned)
{
    hdrt__place place;
    uint64_t address = (uint64_t)(uintptr_t)memory;
    *out_pinned = false;
    if (!memory) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s is NULL", what);
    }
    if (bytes > UINT64_MAX - address) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s: %llu bytes at %p pass the end of the address space", what,
                          (unsigned long long)bytes, memory);
    }
    if (hdrt__registry_find(device->runtime, true, address, &place)) {
        *out_pinned = true;
        return check_end(address, bytes, place.address, place.bytes, what);
    }
    return check_foreign_host(device, memory, what, out_pinned);
}
