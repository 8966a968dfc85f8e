/* SPDX-License-Identifier: MIT */
/* Kernel launches. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "jit/kernel.h"
#include "queue/check.h"
#include "queue/enqueue.h"

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
    if (options->access_count && !options->accesses) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_launch_options: %u accesses, but accesses is NULL",
                          options->access_count);
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

/* All blocks of a cooperative launch must be resident at once. */
static hdrt_status check_cooperative(hdrt_device *device, const hdrt_kernel *kernel, const hdrt_grid *grid)
{
    hdrt__scope scope;
    int resident = 0;
    uint64_t threads = (uint64_t)grid->block[0] * grid->block[1] * grid->block[2];
    if (!hdrt_device_supports(device, HDRT_FEATURE_COOPERATIVE_LAUNCH)) {
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED, "kernel '%s': device %u has no cooperative launches", kernel->name,
                          device->index);
    }
    hdrt_status status = hdrt__device_enter(device, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__call call = HDRT__CALL(device->driver, cuOccupancyMaxActiveBlocksPerMultiprocessor, &resident,
                                 kernel->function, (int)threads, grid->shared);
    status = hdrt__device_check(device, call, "occupancy of kernel '%s'", kernel->name);
    hdrt__device_leave(device, &scope);
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

hdrt_status hdrt__check_launch(hdrt_device *device, hdrt_kernel *kernel, const hdrt_grid *grid,
                               const void *const *args, const uint32_t *kinds, uint32_t count)
{
    hdrt_status status = hdrt__kernel_check_arguments(kernel, args, kinds, count);
    if (status == HDRT_OK) {
        status = check_grid(device, kernel, grid);
    }
    return status == HDRT_OK ? hdrt__kernel_check_block(kernel, grid) : status;
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
                          kernel->name, kernel->device->index, HDRT__QUEUE_NAME(queue), queue->device->index);
    }
    hdrt_status status = check_options(options);
    if (status == HDRT_OK) {
        status = hdrt__check_launch(queue->device, kernel, &options->grid, args, kinds, count);
    }
    if (status == HDRT_OK && options->cooperative && !is_empty(&options->grid)) {
        status = check_cooperative(queue->device, kernel, &options->grid);
    }
    return status;
}

/* ---- enqueueing -------------------------------------------------------------------------------------------------- */

/* RESERVED: keep the kernel's code loaded until the operation is over. */
static hdrt_status hold_module(const hdrt__enqueue *enqueue, hdrt_module *module)
{
    hdrt_queue *queue = enqueue->queue;
    hdrt__held *held = queue->held;
    while (held && held->module != module) {
        held = held->next;
    }
    if (!held) {
        held = malloc(sizeof *held);
        if (!held) {
            return hdrt__fail_memory(sizeof *held, "the hold of a module");
        }
        *held = (hdrt__held){.next = queue->held, .module = module};
        queue->held = held;
        hdrt__module_hold(module);
    }
    held->position = enqueue->position;
    return HDRT_OK;
}

/* RESERVED: the arguments' bytes, where the kernel has its parameters. */
static hdrt_status take_arguments(hdrt__op *op, const hdrt_kernel *kernel, const void *const *args)
{
    unsigned char *bytes = op->launch.inside;
    op->launch.outside = NULL;
    if (kernel->parameter_bytes > HDRT__OP_INLINE_PARAMETERS) {
        op->launch.outside = bytes = malloc(kernel->parameter_bytes);
        if (!bytes) {
            return hdrt__fail_memory(kernel->parameter_bytes, "the arguments of a launch");
        }
    }
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        const hdrt_parameter *parameter = &kernel->parameters[i];
        switch (parameter->size) { /* the usual sizes without a call */
        case 8:
            memcpy(bytes + parameter->offset, args[i], 8);
            break;
        case 4:
            memcpy(bytes + parameter->offset, args[i], 4);
            break;
        default:
            memcpy(bytes + parameter->offset, args[i], parameter->size);
            break;
        }
    }
    return HDRT_OK;
}

static hdrt_status enqueue_launch(hdrt__enqueue *enqueue, hdrt_kernel *kernel, const hdrt_launch_options *options,
                                  const void *const *args)
{
    hdrt__op *op;
    hdrt_status status = hdrt__enqueue_reserve(enqueue, HDRT__OP_LAUNCH, &op);
    if (status != HDRT_OK) {
        return status;
    }
    status = take_arguments(op, kernel, args);
    if (status != HDRT_OK) {
        return hdrt__enqueue_cancel(enqueue, status);
    }
    status = hold_module(enqueue, kernel->module);
    if (status != HDRT_OK) {
        free(op->launch.outside);
        return hdrt__enqueue_cancel(enqueue, status);
    }
    op->launch.kernel = kernel;
    op->launch.grid = options->grid;
    enqueue->accesses = options->accesses;
    enqueue->access_count = options->access_count;
    op->cooperative = options->cooperative;
    atomic_store_explicit(&enqueue->queue->entry.last_launch, enqueue->position, memory_order_release);
    return hdrt__enqueue_publish(enqueue);
}

/* Options of this version with nothing in the reserved part, as hdrt_launch gives them: no copy is needed. */
static bool is_plain(const hdrt_launch_options *options)
{
    uint32_t any = 0;
    for (size_t i = 0; i < sizeof options->reserved / sizeof options->reserved[0]; i++) {
        any |= options->reserved[i];
    }
    return options->size == sizeof *options && !any;
}

hdrt_status hdrt_launch_with(hdrt_queue *queue, hdrt_kernel *kernel, const hdrt_launch_options *options,
                             const void *const *args, const uint32_t *kinds, uint32_t count)
{
    hdrt__enqueue enqueue;
    hdrt_launch_options known;
    if (!options) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_launch: no options, which have the grid");
    }
    hdrt_status status = HDRT_OK;
    if (!is_plain(options)) {
        status = hdrt__options_read("hdrt_launch_options", options, &known, sizeof known,
                                    offsetof(hdrt_launch_options, reserved));
        options = &known;
    }
    if (status == HDRT_OK) {
        status = hdrt__enqueue_begin(&enqueue, queue, "hdrt_launch");
    }
    if (status == HDRT_OK) {
        status = check_launch(queue, kernel, options, args, kinds, count);
    }
    if (status != HDRT_OK) {
        return status;
    }
    return is_empty(&options->grid) ? hdrt__enqueue_nothing(&enqueue) : enqueue_launch(&enqueue, kernel, options, args);
}
