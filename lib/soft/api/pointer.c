/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "soft/api/entry.h"

/* A range as these questions see it. */
typedef struct subject {
    uint64_t address;
    hdsoft__allocation allocation;
    hdsoft__device *device; /* NULL: host memory */
} subject;

static void put(void *out, const void *value, size_t bytes)
{
    memcpy(out, value, bytes);
}

static void put_pointer(void *out, uint64_t value)
{
    put(out, &value, sizeof value);
}

static void put_number(void *out, unsigned value)
{
    put(out, &value, sizeof value);
}

/* Pools belong to devices. Module variables have no owner in the table. */
static const hdsoft__context *owner_of(const subject *of)
{
    const hdsoft__context *owner = of->allocation.owner;
    if (of->allocation.pool)
        return NULL;
    return owner ? owner : of->device ? of->device->primary : NULL;
}

static int answer(const subject *of, unsigned attribute, void *out)
{
    const hdsoft_range *range = &of->allocation.range;
    const hdsoft__context *owner = owner_of(of);
    bool host = !of->device;
    switch (attribute) {
    case HDCU_POINTER_ATTRIBUTE_CONTEXT: put_pointer(out, (uint64_t)(uintptr_t)owner); return 0;
    case HDCU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        put_number(out, host ? HDCU_MEMORYTYPE_HOST : HDCU_MEMORYTYPE_DEVICE);
        return 0;
    case HDCU_POINTER_ATTRIBUTE_DEVICE_POINTER: put_pointer(out, of->address); return 0;
    case HDCU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!host)
            return HDCU_ERROR_INVALID_VALUE;
        put_pointer(out, of->address);
        return 0;
    case HDCU_POINTER_ATTRIBUTE_SYNC_MEMOPS: put_number(out, 0); return 0;
    case HDCU_POINTER_ATTRIBUTE_BUFFER_ID:
    case HDCU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: put_pointer(out, range->id); return 0;
    case HDCU_POINTER_ATTRIBUTE_IS_MANAGED:
    case HDCU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case HDCU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case HDCU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: put(out, &(bool){false}, sizeof(bool)); return 0;
    case HDCU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        put_number(out, of->device ? of->device->ordinal : owner ? owner->device->ordinal : 0);
        return 0;
    case HDCU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case HDCU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: put_pointer(out, range->base); return 0;
    case HDCU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case HDCU_POINTER_ATTRIBUTE_MAPPING_SIZE: put_pointer(out, range->end - range->base); return 0;
    case HDCU_POINTER_ATTRIBUTE_MAPPED: put(out, &(bool){true}, sizeof(bool)); return 0;
    case HDCU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: put_pointer(out, 0); return 0;
    case HDCU_POINTER_ATTRIBUTE_ACCESS_FLAGS: put_number(out, HDCU_MEM_ACCESS_FLAGS_PROT_READWRITE); return 0;
    case HDCU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        put_pointer(out, (uint64_t)(uintptr_t)of->allocation.pool);
        return 0;
    default: return HDCU_ERROR_INVALID_VALUE;
    }
}

hdcu_result hdsoft__cuPointerGetAttribute(void *out, unsigned attribute, hdcu_pointer address)
{
    subject of = {.address = address};
    if (!out || !hdsoft__range_of(address, &of.allocation, &of.device))
        return HDCU_ERROR_INVALID_VALUE;
    return (hdcu_result)answer(&of, attribute, out);
}

static size_t size_of(unsigned attribute)
{
    switch (attribute) {
    case HDCU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case HDCU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case HDCU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case HDCU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return sizeof(unsigned);
    case HDCU_POINTER_ATTRIBUTE_IS_MANAGED:
    case HDCU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case HDCU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case HDCU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case HDCU_POINTER_ATTRIBUTE_MAPPED: return sizeof(bool);
    default: return sizeof(uint64_t);
    }
}

hdcu_result hdsoft__cuPointerGetAttributes(unsigned count, unsigned *which, void **values, hdcu_pointer address)
{
    subject of = {.address = address};
    if (!count || !which || !values)
        return HDCU_ERROR_INVALID_VALUE;
    bool known = hdsoft__range_of(address, &of.allocation, &of.device);
    for (unsigned i = 0; i < count; i++) {
        if (which[i] < HDCU_POINTER_ATTRIBUTE_CONTEXT || which[i] > HDCU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE)
            return HDCU_ERROR_INVALID_VALUE;
        /* Memory that no device knows is no error here: zeros, itself as host memory, and -2 for its device. */
        if (known && !answer(&of, which[i], values[i]))
            continue;
        memset(values[i], 0, size_of(which[i]));
        if (!known && which[i] == HDCU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            put_number(values[i], (unsigned)-2);
        if (!known && which[i] == HDCU_POINTER_ATTRIBUTE_HOST_POINTER)
            put_pointer(values[i], address);
    }
    return 0;
}
