/* SPDX-License-Identifier: MIT */
/* Kernel launches. */
#include <stddef.h>
#include <stdlib.h>

#include "base/status.h"
#include "jit/kernel.h"
#include "queue/commit.h"

/* ---- what arguments, attributes and limits can tell -------------------------------------------------------------- */

static hdrt_status check_options(const hdrt_launch_options *options)
{
    if (options->programmatic) {
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                          "hdrt_launch_options: programmatic dependent launch is not in this version");
    }
    if (options->cluster[0] || options->cluster[1] || options->cluster[2]) {
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED, "hdrt_launch_options: thread block clusters are not in this version");
    }
    if (options->priority) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_launch_options: priority is reserved, it must be 0");
    }
    return HDRT_OK;
}

static hdrt_status check_grid(const hdrt_device *device, const hdrt_kernel *kernel, const hdrt_grid *grid)
{
    const hdrt_device_info *info = &device->info;
    for (int i = 0; i < 3; i++) {
        if (!grid->block[i]) {
            return hdrt__fail(HDRT_ERROR_LAUNCH,
                              "kernel '%s': a block of (%u,%u,%u) threads has a zero: 1 or more each",
                              kernel->name, grid->block[0], grid->block[1], grid->block[2]);
        }
    }
    for (int i = 0; i < 3; i++) {
        if (grid->grid[i] > info->max_grid[i]) {
            return hdrt__fail(HDRT_ERROR_LAUNCH,
                              "kernel '%s': a grid of (%u,%u,%u) blocks is too large: device %u allows (%u,%u,%u)",
                              kernel->name, grid->grid[0], grid->grid[1], grid->grid[2], device->index,
                              info->max_grid[0], info->max_grid[1], info->max_grid[2]);
        }
    }
    return HDRT_OK;
}

/* All blocks of a cooperative launch must be resident at once. Inside the device's scope. */
static hdrt_status check_cooperative(hdrt_device *device, const hdrt_kernel *kernel, const hdrt_grid *grid)
{
    int resident = 0;
    uint64_t threads = (uint64_t)grid->block[0] * grid->block[1] * grid->block[2];
    if (!hdrt_device_supports(device, HDRT_FEATURE_COOPERATIVE_LAUNCH)) {
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED, "kernel '%s': device %u has no cooperative launches", kernel->name,
                          device->index);
    }
    hdrt__call call = HDRT__CALL(device->driver, cuOccupancyMaxActiveBlocksPerMultiprocessor, &resident,
                                 kernel->function, (int)threads, grid->shared);
    hdrt_status status = hdrt__device_check(device, call, "occupancy of kernel '%s'", kernel->name);
    if (status != HDRT_OK) {
        return status;
    }
    uint64_t most = (uint64_t)(resident > 0 ? resident : 0) * device->info.multiprocessors;
    /* Three 32-bit numbers: the product of two fits, of three may not. */
    uint64_t plane = (uint64_t)grid->grid[0] * grid->grid[1];
    if (plane > most || plane * grid->grid[2] > most) {
        return hdrt__fail(HDRT_ERROR_LAUNCH,
                          "kernel '%s': a cooperative grid of (%u,%u,%u) blocks of %llu threads is too large: %llu "
                          "such blocks are resident at once on device %u",
                          kernel->name, grid->grid[0], grid->grid[1], grid->grid[2], (unsigned long long)threads,
                          (unsigned long long)most, device->index);
    }
    return HDRT_OK;
}

static bool is_empty(const hdrt_grid *grid)
{
    return !grid->grid[0] || !grid->grid[1] || !grid->grid[2];
}

static hdrt_status check_launch(hdrt_queue *queue, hdrt_kernel *kernel, const hdrt_launch_options *options,
                                const void *const *args, const uint32_t *kinds, uint32_t count)
{
    if (!kernel) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_launch: the kernel is NULL");
    }
    if (kernel->device != queue->device && kernel->device->context != queue->device->context) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "hdrt_launch: kernel '%s' is of device %u, queue '%s' of device %u: load the module there "
                          "too",
                          kernel->name, kernel->device->index, queue->entry.name, queue->device->index);
    }
    hdrt_status status = check_options(options);
    if (status == HDRT_OK) {
        status = hdrt__kernel_check_arguments(kernel, args, kinds, count);
    }
    if (status == HDRT_OK) {
        status = check_grid(queue->device, kernel, &options->grid);
    }
    if (status == HDRT_OK) {
        status = hdrt__kernel_check_block(kernel, &options->grid);
    }
    if (status == HDRT_OK && options->cooperative && !is_empty(&options->grid)) {
        status = check_cooperative(queue->device, kernel, &options->grid);
    }
    return status;
}

/* ---- enqueueing -------------------------------------------------------------------------------------------------- */

/* LOCKED: keep the kernel's code loaded until the operation is over. */
static hdrt_status hold_module(hdrt__commit *commit, hdrt_module *module)
{
    hdrt_queue *queue = commit->queue;
    hdrt__held_module *held = queue->modules;
    while (held && held->module != module) {
        held = held->next;
    }
    if (!held) {
        held = malloc(sizeof *held);
        if (!held) {
            return hdrt__fail_memory(sizeof *held, "the hold of a module");
        }
        held->module = module;
        held->next = queue->modules;
        queue->modules = held;
        hdrt__module_hold(module);
    }
    held->position = commit->position;
    return HDRT_OK;
}

/* LOCKED. */
static hdrt_status enqueue_launch(hdrt__commit *commit, const hdrt_kernel *kernel, const hdrt_launch_options *options,
                                  const void *const *args)
{
    hdrt_queue *queue = commit->queue;
    const hdrt__driver_table *driver = queue->device->driver;
    const hdrt_grid *g = &options->grid;
    void **params = (void **)(uintptr_t)args; /* the driver only reads them */
    hdrt_status status = hold_module(commit, kernel->module);
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__device_queue_launch(&queue->entry, commit->position, kernel->name, g);
    hdrt__call call =
        options->cooperative
            ? HDRT__CALL(driver, cuLaunchCooperativeKernel, kernel->function, g->grid[0], g->grid[1], g->grid[2],
                         g->block[0], g->block[1], g->block[2], g->shared, queue->stream, params)
            : HDRT__CALL(driver, cuLaunchKernel, kernel->function, g->grid[0], g->grid[1], g->grid[2], g->block[0],
                         g->block[1], g->block[2], g->shared, queue->stream, params, NULL);
    if (call.result) {
        /* The call's text has many arguments that say nothing: its name does. */
        call.text = options->cooperative ? "cuLaunchCooperativeKernel" : "cuLaunchKernel";
        return hdrt__commit_failed(commit, call, "kernel '%s' <<<(%u,%u,%u), (%u,%u,%u), %u>>>", kernel->name,
                                   g->grid[0], g->grid[1], g->grid[2], g->block[0], g->block[1], g->block[2],
                                   g->shared);
    }
    hdrt__commit_done(commit, 1);
    return HDRT_OK;
}

hdrt_status hdrt_launch_with(hdrt_queue *queue, hdrt_kernel *kernel, const hdrt_launch_options *options,
                             const void *const *args, const uint32_t *kinds, uint32_t count)
{
    hdrt__commit commit;
    hdrt_launch_options known;
    if (!options) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_launch: no options, which have the grid");
    }
    hdrt_status status = hdrt__options_read("hdrt_launch_options", options, &known, sizeof known,
                                            offsetof(hdrt_launch_options, reserved));
    if (status == HDRT_OK) {
        status = hdrt__commit_begin(&commit, queue, "hdrt_launch");
    }
    if (status != HDRT_OK) {
        return status;
    }
    status = check_launch(queue, kernel, &known, args, kinds, count);
    if (status != HDRT_OK) {
        return hdrt__commit_leave(&commit, status);
    }
    if (is_empty(&known.grid)) {
        return hdrt__commit_nothing(&commit);
    }
    status = hdrt__commit_lock(&commit, HDRT__COMMIT_ROOM);
    if (status == HDRT_OK) {
        status = enqueue_launch(&commit, kernel, &known, args);
    }
    return hdrt__commit_leave(&commit, status);
}
