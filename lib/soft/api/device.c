/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "soft/api/entry.h"
#include "soft/model/memory.h"

#define DEVICE_NAME "HD software device (H200 profile)"

/* What an H200 answers (driver 580, CUDA 13.0), but zero where the soft driver does not do it: textures, surfaces,
 * clusters, managed memory, virtual memory management, shared handles. */
static const int attributes[] = {
    [HDCU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024,
    [HDCU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X] = 1024,
    [HDCU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y] = 1024,
    [HDCU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] = 64,
    [HDCU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X] = 2147483647,
    [HDCU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y] = 65535,
    [HDCU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z] = 65535,
    [HDCU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK] = 49152,
    [HDCU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY] = 65536,
    [HDCU_DEVICE_ATTRIBUTE_WARP_SIZE] = 32,
    [HDCU_DEVICE_ATTRIBUTE_MAX_PITCH] = 2147483647,
    [HDCU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK] = 65536,
    [HDCU_DEVICE_ATTRIBUTE_CLOCK_RATE] = 1980000,
    [HDCU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT] = 512,
    [HDCU_DEVICE_ATTRIBUTE_GPU_OVERLAP] = 1,
    [HDCU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = 132,
    [HDCU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY] = 1,
    [HDCU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT] = 512,
    [HDCU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS] = 1,
    [HDCU_DEVICE_ATTRIBUTE_ECC_ENABLED] = 1,
    [HDCU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE] = 3201000,
    [HDCU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH] = 6016,
    [HDCU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE] = 62914560,
    [HDCU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = 2048,
    [HDCU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT] = 3,
    [HDCU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING] = 1,
    [HDCU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT] = 32,
    [HDCU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 9,
    [HDCU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED] = 1,
    [HDCU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED] = 1,
    [HDCU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED] = 1,
    [HDCU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] = 233472,
    [HDCU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR] = 65536,
    [HDCU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO] = 2,
    [HDCU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED] = 1,
    [HDCU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM] = 1,
    [HDCU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH] = 1,
    [HDCU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH] = 1,
    [HDCU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] = 232448,
    [HDCU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED] = 1,
    [HDCU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR] = 32,
    [HDCU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE] = 39321600,
    [HDCU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE] = 134217728,
    [HDCU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK] = 1024,
    [HDCU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED] = 1,
    [HDCU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 1,
    [HDCU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS] = 1,
    [HDCU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR] = 1,
    [HDCU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT] = 4,
    [HDCU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS] = 1,
    [HDCU_DEVICE_ATTRIBUTE_NUMA_ID] = -1,
};

static int attribute(const hdsoft__device *device, unsigned number, int *out)
{
    switch (number) {
    case HDCU_DEVICE_ATTRIBUTE_PCI_BUS_ID: *out = (int)device->ordinal + 1; return 0;
    case HDCU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED: *out = 0; return 0;
    default: break;
    }
    if (!number || number > HDCU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED)
        return HDCU_ERROR_INVALID_VALUE;
    *out = number < sizeof attributes / sizeof *attributes ? attributes[number] : 0;
    return 0;
}

hdcu_result hdsoft__cuDeviceGetCount(int *count)
{
    if (!count)
        return HDCU_ERROR_INVALID_VALUE;
    *count = (int)hdsoft__the.device_count;
    return 0;
}

hdcu_result hdsoft__cuDeviceGet(hdcu_device *out, int ordinal)
{
    if (!out)
        return HDCU_ERROR_INVALID_VALUE;
    if (!hdsoft__device_at(ordinal))
        return HDCU_ERROR_INVALID_DEVICE;
    *out = ordinal;
    return 0;
}

hdcu_result hdsoft__cuDeviceGetName(char *name, int length, hdcu_device ordinal)
{
    if (!name || length <= 0)
        return HDCU_ERROR_INVALID_VALUE;
    if (!hdsoft__device_at(ordinal))
        return HDCU_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)length, "%s", DEVICE_NAME);
    return 0;
}

hdcu_result hdsoft__cuDeviceGetUuid(hdcu_uuid *uuid, hdcu_device ordinal)
{
    if (!uuid)
        return HDCU_ERROR_INVALID_VALUE;
    if (!hdsoft__device_at(ordinal))
        return HDCU_ERROR_INVALID_DEVICE;
    memcpy(uuid->bytes, "HDSOFT-DEVICE-00", sizeof uuid->bytes);
    uuid->bytes[15] = (char)ordinal;
    return 0;
}

hdcu_result hdsoft__cuDeviceTotalMem(size_t *bytes, hdcu_device ordinal)
{
    if (!bytes)
        return HDCU_ERROR_INVALID_VALUE;
    const hdsoft__device *device = hdsoft__device_at(ordinal);
    if (!device)
        return HDCU_ERROR_INVALID_DEVICE;
    *bytes = hdsoft__memory_total(device->memory);
    return 0;
}

hdcu_result hdsoft__cuDeviceGetAttribute(int *value, unsigned number, hdcu_device ordinal)
{
    if (!value)
        return HDCU_ERROR_INVALID_VALUE;
    const hdsoft__device *device = hdsoft__device_at(ordinal);
    return device ? (hdcu_result)attribute(device, number, value) : HDCU_ERROR_INVALID_DEVICE;
}

hdcu_result hdsoft__cuDeviceGetPCIBusId(char *text, int length, hdcu_device ordinal)
{
    const hdsoft__device *device = hdsoft__device_at(ordinal);
    if (!text || length < 13)
        return HDCU_ERROR_INVALID_VALUE;
    if (!device)
        return HDCU_ERROR_INVALID_DEVICE;
    snprintf(text, (size_t)length, "0000:%02X:00.0", device->ordinal + 1);
    return 0;
}

hdcu_result hdsoft__cuDeviceGetByPCIBusId(hdcu_device *out, const char *text)
{
    unsigned domain, bus, device, function;
    if (!out || !text || sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
        return HDCU_ERROR_INVALID_VALUE;
    if (domain || device || function || !bus || bus > hdsoft__the.device_count)
        return HDCU_ERROR_INVALID_DEVICE;
    *out = (hdcu_device)bus - 1;
    return 0;
}

hdcu_result hdsoft__cuDeviceCanAccessPeer(int *can, hdcu_device one, hdcu_device other)
{
    if (!can)
        return HDCU_ERROR_INVALID_VALUE;
    if (!hdsoft__device_at(one) || !hdsoft__device_at(other))
        return HDCU_ERROR_INVALID_DEVICE;
    *can = one != other;
    return 0;
}

hdcu_result hdsoft__cuDeviceGetP2PAttribute(int *value, unsigned number, hdcu_device one, hdcu_device other)
{
    if (!hdsoft__device_at(one) || !hdsoft__device_at(other) || one == other)
        return HDCU_ERROR_INVALID_DEVICE;
    if (!value || !number || number > HDCU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
        return HDCU_ERROR_INVALID_VALUE;
    *value = number == HDCU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
             number == HDCU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    return 0;
}

/* ---- the primary context ---- */

static bool valid_flags(unsigned flags)
{
    unsigned scheduling = flags & HDCU_CTX_SCHED_MASK;
    return flags < 256 && (scheduling & (scheduling - 1)) == 0;
}

static bool active(const hdsoft__device *device)
{
    return device->primary && !device->primary->destroyed;
}

hdcu_result hdsoft__cuDevicePrimaryCtxRetain(hdcu_context *out, hdcu_device ordinal)
{
    hdsoft__device *device = hdsoft__device_at(ordinal);
    if (!out)
        return HDCU_ERROR_INVALID_VALUE;
    if (!device)
        return HDCU_ERROR_INVALID_DEVICE;
    if (atomic_load(&device->fault))
        return atomic_load(&device->fault);
    if (!active(device))
        return (hdcu_result)hdsoft__context_create(device, device->primary_flags, true, out);
    device->primary->retained++;
    *out = device->primary;
    return 0;
}

hdcu_result hdsoft__cuDevicePrimaryCtxRelease(hdcu_device ordinal)
{
    hdsoft__device *device = hdsoft__device_at(ordinal);
    if (!device)
        return HDCU_ERROR_INVALID_DEVICE;
    if (!active(device))
        return HDCU_ERROR_INVALID_CONTEXT;
    if (!--device->primary->retained)
        hdsoft__context_destroy(device->primary);
    return hdsoft__synchronised(0);
}

hdcu_result hdsoft__cuDevicePrimaryCtxReset(hdcu_device ordinal)
{
    hdsoft__device *device = hdsoft__device_at(ordinal);
    if (!device)
        return HDCU_ERROR_INVALID_DEVICE;
    if (active(device)) {
        hdsoft__context_destroy(device->primary);
        device->primary->retained = 0;
    }
    return hdsoft__synchronised(0);
}

hdcu_result hdsoft__cuDevicePrimaryCtxSetFlags(hdcu_device ordinal, unsigned flags)
{
    hdsoft__device *device = hdsoft__device_at(ordinal);
    if (!device)
        return HDCU_ERROR_INVALID_DEVICE;
    if (!valid_flags(flags) || (flags & HDCU_CTX_MAP_HOST))
        return HDCU_ERROR_INVALID_VALUE;
    device->primary_flags = flags;
    if (active(device))
        device->primary->flags = flags;
    return 0;
}

hdcu_result hdsoft__cuDevicePrimaryCtxGetState(hdcu_device ordinal, unsigned *flags, int *is_active)
{
    const hdsoft__device *device = hdsoft__device_at(ordinal);
    if (!device)
        return HDCU_ERROR_INVALID_DEVICE;
    if (!flags || !is_active)
        return HDCU_ERROR_INVALID_VALUE;
    *flags = device->primary_flags;
    *is_active = active(device);
    return 0;
}

hdcu_result hdsoft__cuCtxCreate(hdcu_context *out, unsigned flags, hdcu_device ordinal)
{
    hdsoft__device *device = hdsoft__device_at(ordinal);
    if (!device)
        return HDCU_ERROR_INVALID_DEVICE;
    if (!out || !valid_flags(flags))
        return HDCU_ERROR_INVALID_VALUE;
    if (atomic_load(&device->fault))
        return atomic_load(&device->fault);
    hdsoft__context *context;
    int status = hdsoft__context_create(device, flags, false, &context);
    if (status)
        return (hdcu_result)status;
    status = (int)hdsoft__cuCtxPushCurrent(context);
    if (status)
        hdsoft__context_destroy(context);
    else
        *out = context;
    return (hdcu_result)status;
}
