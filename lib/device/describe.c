/* SPDX-License-Identifier: MIT */
#include "device/describe.h"

#include <string.h>

#include "driver/error.h"

typedef struct wanted_attribute {
    unsigned attribute;
    size_t offset; /* of a uint32_t in hdrt_device_info */
} wanted_attribute;

#define WANTED(attribute, member) {HDCU_DEVICE_ATTRIBUTE_##attribute, offsetof(hdrt_device_info, member)}

static const wanted_attribute wanted_attributes[] = {
    WANTED(MULTIPROCESSOR_COUNT, multiprocessors),
    WANTED(WARP_SIZE, warp_size),
    WANTED(MAX_THREADS_PER_BLOCK, max_threads_per_block),
    WANTED(MAX_THREADS_PER_MULTIPROCESSOR, max_threads_per_multiprocessor),
    WANTED(MAX_BLOCK_DIM_X, max_block[0]),
    WANTED(MAX_BLOCK_DIM_Y, max_block[1]),
    WANTED(MAX_BLOCK_DIM_Z, max_block[2]),
    WANTED(MAX_GRID_DIM_X, max_grid[0]),
    WANTED(MAX_GRID_DIM_Y, max_grid[1]),
    WANTED(MAX_GRID_DIM_Z, max_grid[2]),
    WANTED(MAX_SHARED_MEMORY_PER_BLOCK, max_shared_per_block),
    WANTED(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, max_shared_per_block_optin),
    WANTED(MAX_REGISTERS_PER_BLOCK, max_registers_per_block),
    WANTED(ASYNC_ENGINE_COUNT, async_engines),
    WANTED(CLOCK_RATE, clock_khz),
    WANTED(L2_CACHE_SIZE, l2_bytes),
};

/* An attribute that this driver does not know counts as absent; any other failure is one. */
static hdrt_status read_attribute(const hdrt__driver_table *table, hdcu_device ordinal, unsigned attribute,
                                  int *out_value)
{
    *out_value = 0;
    hdrt__call call = HDRT__CALL(table, cuDeviceGetAttribute, out_value, attribute, ordinal);
    if (call.result == HDCU_ERROR_INVALID_VALUE) {
        *out_value = 0;
        return HDRT_OK;
    }
    return hdrt__call_failed(call, "attribute %u of device %d", attribute, ordinal);
}

static hdrt_status read_flag(const hdrt__driver_table *table, hdcu_device ordinal, unsigned attribute, bool *out_flag)
{
    int value;
    hdrt_status status = read_attribute(table, ordinal, attribute, &value);
    *out_flag = value != 0;
    return status;
}

static hdrt_status read_identity(const hdrt__driver_table *table, hdcu_device ordinal, hdrt_device_info *info)
{
    size_t total = 0;
    hdcu_uuid uuid = {{0}};
    hdrt__call call = HDRT__CALL(table, cuDeviceGetName, info->name, sizeof info->name, ordinal);
    if (!call.result) {
        call = HDRT__CALL(table, cuDeviceGetUuid, &uuid, ordinal);
    }
    if (!call.result) {
        call = HDRT__CALL(table, cuDeviceGetPCIBusId, info->pci, sizeof info->pci, ordinal);
    }
    if (!call.result) {
        call = HDRT__CALL(table, cuDeviceTotalMem, &total, ordinal);
    }
    info->name[sizeof info->name - 1] = 0;
    info->pci[sizeof info->pci - 1] = 0;
    memcpy(info->uuid, uuid.bytes, sizeof info->uuid);
    info->memory_bytes = total;
    return hdrt__call_failed(call, "describing device %d", ordinal);
}

hdrt_status hdrt__describe_device(const hdrt__driver_table *table, uint32_t index, hdrt_device_info *out_info)
{
    hdcu_device ordinal;
    int value, major = 0, minor = 0;
    memset(out_info, 0, sizeof *out_info);
    out_info->size = sizeof *out_info;
    hdrt__call call = HDRT__CALL(table, cuDeviceGet, &ordinal, (int)index);
    hdrt_status status = hdrt__call_failed(call, "device %u", index);
    if (status == HDRT_OK) {
        status = read_identity(table, ordinal, out_info);
    }
    for (size_t i = 0; i < sizeof wanted_attributes / sizeof wanted_attributes[0] && status == HDRT_OK; i++) {
        status = read_attribute(table, ordinal, wanted_attributes[i].attribute, &value);
        uint32_t number = value < 0 ? 0 : (uint32_t)value;
        memcpy((char *)out_info + wanted_attributes[i].offset, &number, sizeof number);
    }
    if (status == HDRT_OK) {
        status = read_attribute(table, ordinal, HDCU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major);
    }
    if (status == HDRT_OK) {
        status = read_attribute(table, ordinal, HDCU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor);
    }
    out_info->compute_capability = (uint32_t)(10 * major + minor);
    if (status == HDRT_OK) {
        status = read_flag(table, ordinal, HDCU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, &out_info->concurrent_kernels);
    }
    if (status == HDRT_OK) {
        status = read_flag(table, ordinal, HDCU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, &out_info->cooperative_launch);
    }
    if (status == HDRT_OK) {
        status = read_flag(table, ordinal, HDCU_DEVICE_ATTRIBUTE_INTEGRATED, &out_info->integrated);
    }
    if (out_info->max_shared_per_block_optin < out_info->max_shared_per_block) {
        out_info->max_shared_per_block_optin = out_info->max_shared_per_block;
    }
    return status;
}

hdrt_status hdrt__describe_limits(const hdrt__driver_table *table, hdcu_device ordinal, hdrt__device_limits *out_limits)
{
    int pitch, major = 0;
    bool wait_64;
    memset(out_limits, 0, sizeof *out_limits);
    hdrt_status status = read_attribute(table, ordinal, HDCU_DEVICE_ATTRIBUTE_MAX_PITCH, &pitch);
    out_limits->pitch_max = pitch > 0 ? (uint64_t)pitch : INT32_MAX;
    if (status == HDRT_OK) {
        status = read_flag(table, ordinal, HDCU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &out_limits->memory_pools);
    }
    if (status == HDRT_OK) {
        status = read_flag(table, ordinal, HDCU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, &out_limits->unified_addressing);
    }
    if (status == HDRT_OK) {
        status = read_flag(table, ordinal, HDCU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, &wait_64);
    }
    if (status == HDRT_OK) {
        status = read_attribute(table, ordinal, HDCU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major);
    }
    if (status != HDRT_OK) {
        return status;
    }
    /* The _v2 calls need no opt-in: 32 bits work wherever the entry is, 64 where the attribute says so. */
    out_limits->stream_wait_32 = table->cuStreamWaitValue32 != NULL;
    out_limits->stream_wait_64 = wait_64 && table->cuStreamWaitValue64 != NULL;
    out_limits->stream_write_64 = wait_64 && table->cuStreamWriteValue64 != NULL;
    out_limits->parameter_info = table->cuFuncGetParamInfo != NULL;
    out_limits->launch_order = major >= 9;
    hdrt__call call = HDRT__CALL(table, cuCtxGetStreamPriorityRange, &out_limits->priority_least,
                                 &out_limits->priority_greatest);
    return hdrt__call_failed(call, "stream priorities of device %d", ordinal);
}
