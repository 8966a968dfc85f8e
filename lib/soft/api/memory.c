/* SPDX-License-Identifier: MIT */
#include <sys/mman.h>

#include "soft/api/entry.h"
#include "soft/check/history.h"
#include "soft/model/pool.h"

#define PITCH_ALIGNMENT 512
#define PAGE ((uintptr_t)4096)

hdcu_result hdsoft__cuMemGetInfo(size_t *free_bytes, size_t *total)
{
    hdsoft_memory *memory = hdsoft__here()->device->memory;
    if (total)
        *total = hdsoft__memory_total(memory);
    if (free_bytes)
        *free_bytes = hdsoft__memory_total(memory) - hdsoft__memory_used(memory);
    return 0;
}

hdcu_result hdsoft__cuMemAlloc(hdcu_pointer *out, size_t bytes)
{
    if (!out)
        return HDCU_ERROR_INVALID_VALUE;
    *out = 0;
    if (!bytes)
        return HDCU_ERROR_INVALID_VALUE;
    hdsoft__allocation like = hdsoft__born(HDSOFT__RANGE_LIVE);
    hdsoft_range range;
    int status = hdsoft__memory_take(hdsoft__here()->device->memory, bytes, &like, NULL, &range);
    if (!status)
        *out = range.base;
    return (hdcu_result)status;
}

hdcu_result hdsoft__cuMemAllocPitch(hdcu_pointer *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
    size_t bytes;
    if (!out || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return HDCU_ERROR_INVALID_VALUE;
    size_t row = (width + PITCH_ALIGNMENT - 1) / PITCH_ALIGNMENT * PITCH_ALIGNMENT;
    if (row < width || __builtin_mul_overflow(row, height, &bytes))
        return HDCU_ERROR_INVALID_VALUE;
    hdcu_result status = hdsoft__cuMemAlloc(out, bytes);
    if (!status)
        *pitch = row;
    return status;
}

/* Nothing waits for those who use the range: the free must come after them. */
static void freed_now(const hdsoft_range *range)
{
    hdsoft__operation *operation = hdsoft__history_host_operation(HDSOFT__OPERATION_FREE);
    if (!operation)
        return;
    hdsoft__check_lock();
    hdsoft__check_freed(operation, range);
    hdsoft__check_unlock();
    hdsoft__operation_release(operation);
}

hdcu_result hdsoft__cuMemFree(hdcu_pointer address)
{
    hdsoft__context *context;
    int status = hdsoft__current(&context);
    if (!address && status == HDCU_ERROR_INVALID_CONTEXT)
        return 0;
    if (status || !address)
        return (hdcu_result)status;
    hdsoft__device *device;
    hdsoft__allocation allocation;
    if (!hdsoft__range_of(address, &allocation, &device) || !device || allocation.range.base != address ||
        allocation.range.kind != HDSOFT_RANGE_DEVICE || !allocation.owner ||
        !hdsoft__memory_claim_free(device->memory, address))
        return HDCU_ERROR_INVALID_VALUE;
    /* Stream-ordered memory is freed at once, unless its stream has not even allocated it. */
    if (!allocation.pool)
        status = hdsoft__wait_since(device, allocation.birth);
    else if (allocation.state == HDSOFT__RANGE_PENDING)
        status = hdsoft__wait_all(device, NULL);
    else
        freed_now(&allocation.range);
    hdsoft__memory_remove(device->memory, &allocation);
    if (allocation.pool)
        hdsoft__pool_gave(allocation.pool, allocation.range.end - allocation.range.base);
    return (hdcu_result)status;
}

hdcu_result hdsoft__cuMemGetAddressRange(hdcu_pointer *base, size_t *bytes, hdcu_pointer address)
{
    hdsoft__device *device;
    hdsoft__allocation allocation;
    if (!hdsoft__range_of(address, &allocation, &device))
        return HDCU_ERROR_NOT_FOUND;
    if (base)
        *base = allocation.range.base;
    if (bytes)
        *bytes = allocation.range.end - allocation.range.base;
    return 0;
}

/* ---- pinned memory ---- */

hdcu_result hdsoft__cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    if (!out || flags > (HDCU_MEMHOSTALLOC_PORTABLE | HDCU_MEMHOSTALLOC_DEVICEMAP | HDCU_MEMHOSTALLOC_WRITECOMBINED))
        return HDCU_ERROR_INVALID_VALUE;
    if (!bytes) {
        *out = NULL;
        return 0;
    }
    hdsoft__allocation like = hdsoft__born(HDSOFT__RANGE_LIVE);
    like.flags = flags;
    return (hdcu_result)hdsoft__memory_map_host(hdsoft__the.hosts, bytes, &like, out);
}

hdcu_result hdsoft__cuMemAllocHost(void **out, size_t bytes)
{
    return hdsoft__cuMemHostAlloc(out, bytes, 0);
}

/* The pinned range that begins at `at`. */
static bool pinned_at(const void *at, hdsoft__allocation *out)
{
    return hdsoft__memory_lookup(hdsoft__the.hosts, (uint64_t)(uintptr_t)at, out) && out->range.host == at;
}

static int wait_for_users(const hdsoft__allocation *allocation)
{
    int status = 0;
    for (unsigned i = 0; i < hdsoft__the.device_count && !status; i++)
        status = hdsoft__wait_since(&hdsoft__the.devices[i], allocation->birth);
    return status;
}

static hdcu_result give_up_host(void *at, bool registered, hdcu_result unknown)
{
    hdsoft__allocation allocation;
    if (!pinned_at(at, &allocation) || allocation.registered != registered ||
        !hdsoft__memory_claim_free(hdsoft__the.hosts, allocation.range.base))
        return unknown;
    int status = wait_for_users(&allocation);
    hdsoft__memory_unmap_host(hdsoft__the.hosts, allocation.range.base);
    return (hdcu_result)status;
}

hdcu_result hdsoft__cuMemFreeHost(void *at)
{
    if (!at)
        return 0;
    return hdsoft__here() ? give_up_host(at, false, HDCU_ERROR_INVALID_VALUE) : HDCU_ERROR_INVALID_CONTEXT;
}

hdcu_result hdsoft__cuMemHostUnregister(void *at)
{
    hdsoft__allocation allocation;
    if (!at)
        return HDCU_ERROR_INVALID_VALUE;
    /* Inside of a registered range, or pinned otherwise, is another error than unknown. */
    if (hdsoft__memory_lookup(hdsoft__the.hosts, (uint64_t)(uintptr_t)at, &allocation) &&
        (allocation.range.host != at || !allocation.registered))
        return HDCU_ERROR_INVALID_VALUE;
    return give_up_host(at, true, HDCU_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

/* Whether every page of the range is mapped. */
static bool is_mapped(const void *at, size_t bytes)
{
    unsigned char present[256];
    uintptr_t page = (uintptr_t)at & ~(PAGE - 1), end = (uintptr_t)at + bytes;
    while (page < end) {
        size_t part = end - page < sizeof present * PAGE ? end - page : sizeof present * PAGE;
        if (mincore((void *)page, part, present))
            return false;
        page += sizeof present * PAGE;
    }
    return true;
}

hdcu_result hdsoft__cuMemHostRegister(void *at, size_t bytes, unsigned flags)
{
    if (!at || !bytes || flags > 15 || (uintptr_t)at + bytes < (uintptr_t)at || !is_mapped(at, bytes) ||
        hdsoft__device_of((uint64_t)(uintptr_t)at))
        return HDCU_ERROR_INVALID_VALUE;
    hdsoft__allocation like = hdsoft__born(HDSOFT__RANGE_LIVE);
    like.flags = flags;
    hdsoft__allocation there;
    if (hdsoft__memory_lookup(hdsoft__the.hosts, (uint64_t)(uintptr_t)at, &there) && !there.registered)
        return HDCU_ERROR_INVALID_VALUE;
    return (hdcu_result)hdsoft__memory_register_host(hdsoft__the.hosts, at, bytes, &like);
}

hdcu_result hdsoft__cuMemHostGetDevicePointer(hdcu_pointer *out, void *at, unsigned flags)
{
    hdsoft__allocation allocation;
    uint64_t address = (uint64_t)(uintptr_t)at;
    if (!out || flags || !hdsoft__memory_lookup(hdsoft__the.hosts, address, &allocation))
        return HDCU_ERROR_INVALID_VALUE;
    *out = address;
    return 0;
}

hdcu_result hdsoft__cuMemHostGetFlags(unsigned *flags, void *at)
{
    hdsoft__allocation allocation;
    if (!flags || !hdsoft__memory_lookup(hdsoft__the.hosts, (uint64_t)(uintptr_t)at, &allocation))
        return HDCU_ERROR_INVALID_VALUE;
    *flags = allocation.flags | HDCU_MEMHOSTALLOC_DEVICEMAP;
    return 0;
}
