/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "soft/api/entry.h"
#include "soft/check/fault.h"
#include "soft/model/module.h"

#define MOST_THREADS 1024
#define DEFAULT_SHARED 49152
#define REGISTERS 65536
#define MULTIPROCESSORS 132

/* ---- checks, with an H200's codes ---- */

static int check_geometry(const hdsoft_entry *entry, const unsigned grid[3], const unsigned block[3])
{
    static const unsigned most_grid[3] = {2147483647, 65535, 65535}, most_block[3] = {1024, 1024, 64};
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        if (!grid[i] || !block[i] || grid[i] > most_grid[i] || block[i] > most_block[i])
            return HDCU_ERROR_INVALID_VALUE;
        threads *= block[i];
    }
    if (threads > MOST_THREADS || threads > entry->max_threads)
        return HDCU_ERROR_INVALID_VALUE;
    const uint32_t *required = entry->required_block;
    if (required[0] && (block[0] != required[0] || block[1] != (required[1] ? required[1] : 1) ||
                        block[2] != (required[2] ? required[2] : 1)))
        return HDCU_ERROR_INVALID_VALUE;
    uint64_t registers = (hdsoft__registers(entry) + 7) / 8 * 8;
    return threads * registers > REGISTERS ? HDCU_ERROR_LAUNCH_OUT_OF_RESOURCES : 0;
}

static int check_launch(const hdsoft__function *function, const unsigned grid[3], const unsigned block[3],
                        unsigned shared, bool cooperative)
{
    const hdsoft_entry *entry = function->entry;
    int status = check_geometry(entry, grid, block);
    if (status)
        return status;
    unsigned most = entry->static_shared_bytes < DEFAULT_SHARED ? DEFAULT_SHARED - entry->static_shared_bytes : 0;
    if (shared > most && shared > (unsigned)function->dynamic_limit)
        return HDCU_ERROR_INVALID_VALUE;
    if (cooperative) {
        int threads = (int)(block[0] * block[1] * block[2]);
        uint64_t fit = (uint64_t)hdsoft__blocks_per_multiprocessor(function, threads, shared) * MULTIPROCESSORS;
        uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
        if (blocks > fit) {
            hdsoft__check_cooperative(entry->name, blocks, fit);
            return HDCU_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
        }
    }
    return 0;
}

/* ---- arguments ---- */

static int pack_extra(const hdsoft_entry *entry, void **extra, unsigned char *to)
{
    const void *buffer = NULL;
    size_t size = 0;
    for (; (uintptr_t)extra[0] != HDCU_LAUNCH_PARAM_END; extra += 2) {
        switch ((uintptr_t)extra[0]) {
        case HDCU_LAUNCH_PARAM_BUFFER_POINTER: buffer = extra[1]; break;
        case HDCU_LAUNCH_PARAM_BUFFER_SIZE: size = *(const size_t *)extra[1]; break;
        default: return HDCU_ERROR_INVALID_VALUE;
        }
    }
    if (size > entry->parameter_bytes)
        return HDCU_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (size ? !buffer : entry->parameter_count)
        return HDCU_ERROR_INVALID_VALUE;
    if (size)
        memcpy(to, buffer, size);
    return 0;
}

static int pack(const hdsoft_entry *entry, void **params, void **extra, unsigned char *to)
{
    if (params && extra)
        return HDCU_ERROR_INVALID_VALUE;
    if (extra)
        return pack_extra(entry, extra, to);
    if (!params)
        return entry->parameter_count ? HDCU_ERROR_INVALID_VALUE : 0;
    for (uint32_t i = 0; i < entry->parameter_count; i++) {
        if (!params[i])
            return HDCU_ERROR_INVALID_VALUE;
        memcpy(to + entry->parameters[i].offset, params[i], entry->parameters[i].size);
    }
    return 0;
}

int hdsoft__kernel_task(hdcu_function handle, const unsigned grid[3], const unsigned block[3], unsigned shared,
                        bool cooperative, void **params, void **extra, hdsoft__task **out)
{
    hdsoft__function *function;
    int status = hdsoft__function_of(handle, &function);
    if (!status)
        status = check_launch(function, grid, block, shared, cooperative);
    if (status)
        return status;
    hdsoft__task *task = hdsoft__task_new(HDSOFT__TASK_KERNEL);
    if (!task)
        return HDCU_ERROR_OUT_OF_MEMORY;
    hdsoft__launch *launch = &task->launch;
    launch->parameters = calloc(1, function->entry->parameter_bytes + 1);
    status = launch->parameters ? pack(function->entry, params, extra, launch->parameters) : HDCU_ERROR_OUT_OF_MEMORY;
    if (status) {
        hdsoft__task_release(task);
        return status;
    }
    launch->function = function;
    if (hdsoft__the.policy == HDSOFT__VIRTUAL)
        launch->blocks_each =
            (uint32_t)hdsoft__blocks_per_multiprocessor(function, (int)(block[0] * block[1] * block[2]), shared);
    function->module->references++;
    function->loaded = true;
    memcpy(launch->grid, grid, sizeof launch->grid);
    memcpy(launch->block, block, sizeof launch->block);
    launch->shared_bytes = shared;
    launch->cooperative = cooperative;
    *out = task;
    return 0;
}

/* ---- launches ---- */

static hdcu_result launch(hdcu_function handle, const unsigned grid[3], const unsigned block[3], unsigned shared,
                          hdcu_stream stream_handle, bool cooperative, void **params, void **extra)
{
    hdsoft__stream *stream;
    hdsoft__task *task;
    int status = hdsoft__stream_for_work(stream_handle, &stream);
    if (!status && !stream->capture)
        status = hdsoft__wait_for_room(stream);
    if (!status)
        status = hdsoft__kernel_task(handle, grid, block, shared, cooperative, params, extra, &task);
    if (status)
        return (hdcu_result)status;
    if (task->launch.function->module->context != stream->context) {
        hdsoft__task_release(task);
        return HDCU_ERROR_INVALID_HANDLE;
    }
    return (hdcu_result)hdsoft__submit(stream, task, NULL);
}

hdcu_result hdsoft__cuLaunchKernel(hdcu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                   hdcu_stream stream, void **params, void **extra)
{
    const unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
    return launch(function, grid, block, shared, stream, false, params, extra);
}

hdcu_result hdsoft__cuLaunchCooperativeKernel(hdcu_function function, unsigned grid_x, unsigned grid_y,
                                              unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                                              unsigned shared, hdcu_stream stream, void **params)
{
    const unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
    return launch(function, grid, block, shared, stream, true, params, NULL);
}

/* What a launch attribute asks for: honoured, harmless to ignore, or not done here. */
static int read_attribute(const hdcu_launch_attribute *attribute, bool *cooperative)
{
    const hdcu_launch_attribute_value *value = &attribute->value;
    switch (attribute->id) {
    case HDCU_LAUNCH_ATTRIBUTE_COOPERATIVE: *cooperative = value->cooperative != 0; return 0;
    case HDCU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        return value->cluster.x <= 1 && value->cluster.y <= 1 && value->cluster.z <= 1 ? 0 : HDCU_ERROR_NOT_SUPPORTED;
    case HDCU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        return value->programmatic_event.event ? HDCU_ERROR_NOT_SUPPORTED : HDCU_ERROR_INVALID_HANDLE;
    case HDCU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        return value->completion_event.event ? HDCU_ERROR_NOT_SUPPORTED : HDCU_ERROR_INVALID_HANDLE;
    case HDCU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        return value->synchronization_policy >= 1 && value->synchronization_policy <= 4 ? 0 : HDCU_ERROR_INVALID_VALUE;
    case HDCU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: return HDCU_ERROR_NOT_SUPPORTED;
    case HDCU_LAUNCH_ATTRIBUTE_IGNORE:
    case HDCU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case HDCU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    /* A launch that waits for its predecessors as a whole keeps the promise of this one too. */
    case HDCU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case HDCU_LAUNCH_ATTRIBUTE_PRIORITY:
    case HDCU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case HDCU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case HDCU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case HDCU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case HDCU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING: return 0;
    default: return HDCU_ERROR_INVALID_VALUE;
    }
}

hdcu_result hdsoft__cuLaunchKernelEx(const hdcu_launch_config *config, hdcu_function function, void **params,
                                     void **extra)
{
    bool cooperative = false;
    if (!config || (config->attribute_count && !config->attributes))
        return HDCU_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config->attribute_count; i++) {
        int status = read_attribute(&config->attributes[i], &cooperative);
        if (status)
            return (hdcu_result)status;
    }
    const unsigned grid[3] = {config->grid_x, config->grid_y, config->grid_z};
    const unsigned block[3] = {config->block_x, config->block_y, config->block_z};
    return launch(function, grid, block, config->shared_bytes, config->stream, cooperative, params, extra);
}
