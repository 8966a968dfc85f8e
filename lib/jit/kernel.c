/* SPDX-License-Identifier: MIT */
#include "jit/kernel.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/device.h"
#include "jit/module.h"

/* One attribute of the function, inside the device's scope. Negative answers count as zero. */
static hdrt_status attribute(hdrt_device *device, hdcu_function function, unsigned which, const char *kernel,
                             uint32_t *out)
{
    int value = 0;
    hdrt__call call = HDRT__CALL(device->driver, cuFuncGetAttribute, &value, which, function);
    *out = value > 0 ? (uint32_t)value : 0;
    return hdrt__device_check(device, call, "attribute %u of kernel '%s'", which, kernel);
}

/* Parameters as the driver knows them (12.4), for cubins whose file does not tell, and to check what the table says. */
static hdrt_status driver_parameters(hdrt_device *device, hdcu_function function, const hdrt__kernel_entry *entry,
                                     hdrt__kernel_entry *out)
{
    for (uint32_t i = 0; i < HDRT__PARAMETER_LIMIT; i++) {
        size_t offset = 0, size = 0;
        hdrt__call call = HDRT__CALL(device->driver, cuFuncGetParamInfo, function, i, &offset, &size);
        if (call.result == HDCU_ERROR_INVALID_VALUE)
            return HDRT_OK;
        hdrt_status status = hdrt__device_check(device, call, "parameter %u of kernel '%s'", i, entry->name);
        if (status != HDRT_OK)
            return status;
        hdrt_parameter parameter = {(uint32_t)offset, (uint32_t)size, 1, HDRT_CLASS_UNKNOWN};
        if (!hdrt__kernel_entry_add(out, &parameter))
            return hdrt__fail_memory(sizeof(parameter), "a kernel's parameters");
    }
    return HDRT_OK;
}

static hdrt_status compare_parameters(const hdrt__kernel_entry *table, const hdrt__kernel_entry *driver)
{
    if (table->parameter_count != driver->parameter_count)
        return hdrt__fail(HDRT_ERROR_INVALID_IMAGE, "kernel '%s' has %u parameters by its table and %u by the driver",
                          table->name, table->parameter_count, driver->parameter_count);
    for (uint32_t i = 0; i < table->parameter_count; i++) {
        const hdrt_parameter *ours = &table->parameters[i], *theirs = &driver->parameters[i];
        if (ours->offset != theirs->offset || ours->size != theirs->size)
            return hdrt__fail(HDRT_ERROR_INVALID_IMAGE,
                              "parameter %u of kernel '%s' has %u bytes at %u by its table, and "
                              "%u at %u by the driver",
                              i, table->name, ours->size, ours->offset, theirs->size, theirs->offset);
    }
    return HDRT_OK;
}

/* Inside the device's scope: sets the kernel's parameters, from the table or else from the driver. */
static hdrt_status take_parameters(hdrt_kernel *kernel, const hdrt__kernel_entry *entry)
{
    hdrt__kernel_entry driver = {0};
    const hdrt__kernel_entry *chosen = entry;
    hdrt_status status = HDRT_OK;
    bool asks = kernel->device->driver->cuFuncGetParamInfo && kernel->device->limits.parameter_info;
    if (asks)
        status = driver_parameters(kernel->device, kernel->function, entry, &driver);
    if (status == HDRT_OK && asks && entry->parameters_known)
        status = compare_parameters(entry, &driver);
    if (status == HDRT_OK && !entry->parameters_known) {
        chosen = &driver;
        if (!asks)
            status = hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                                "the parameters of kernel '%s' cannot be read from its code, and this driver does not "
                                "tell them (CUDA 12.4 does): load it as PTX", entry->name);
    }
    hdrt_parameter *copy = NULL;
    if (status == HDRT_OK && chosen->parameter_count) {
        copy = calloc(chosen->parameter_count, sizeof(*copy));
        if (!copy)
            status = hdrt__fail_memory(chosen->parameter_count * sizeof(*copy), "a kernel's parameters");
    }
    if (copy) {
        memcpy(copy, chosen->parameters, chosen->parameter_count * sizeof(*copy));
        const hdrt_parameter *last = &copy[chosen->parameter_count - 1];
        kernel->parameter_bytes = last->offset + last->size;
    }
    if (status == HDRT_OK)
        kernel->parameter_count = chosen->parameter_count;
    kernel->parameters = copy;
    free(driver.parameters);
    return status;
}

/* Whether the code asks for clusters of blocks. A driver that does not know them has none. */
static bool is_in_clusters(const hdrt_kernel *kernel)
{
    static const unsigned asked[] = {HDCU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, HDCU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
                                     HDCU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, HDCU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        int value = 0;
        hdrt__call call = HDRT__CALL(kernel->device->driver, cuFuncGetAttribute, &value, asked[i], kernel->function);
        if (!call.result && value > 0)
            return true;
    }
    return false;
}

/* Inside the device's scope. */
static hdrt_status describe(hdrt_kernel *kernel)
{
    uint32_t dynamic = 0, fits = kernel->device->info.max_shared_per_block;
    hdrt_status status = attribute(kernel->device, kernel->function, HDCU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                   kernel->name, &kernel->max_threads_per_block);
    if (status == HDRT_OK)
        status = attribute(kernel->device, kernel->function, HDCU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel->name,
                           &kernel->static_shared_bytes);
    if (status == HDRT_OK)
        status = attribute(kernel->device, kernel->function, HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                           kernel->name, &dynamic);
    /* Static and dynamic together must fit without opting in, whatever the attribute says of the latter alone. */
    fits = fits > kernel->static_shared_bytes ? fits - kernel->static_shared_bytes : 0;
    atomic_store(&kernel->dynamic_shared_bytes, dynamic < fits ? dynamic : fits);
    kernel->in_clusters = status == HDRT_OK && is_in_clusters(kernel);
    return status;
}

hdrt_status hdrt__kernel_create(hdrt_module *loaded, uint32_t index, hdrt_kernel **out_kernel)
{
    const hdrt__kernel_entry *entry = &loaded->code->table.kernels[index];
    hdrt__scope scope;
    hdrt_kernel *kernel = calloc(1, sizeof(*kernel));
    if (!kernel)
        return hdrt__fail_memory(sizeof(*kernel), "a kernel");
    kernel->module = loaded;
    kernel->device = loaded->device;
    kernel->name = entry->name;
    kernel->may_await_grids = loaded->may_await_grids;
    hdrt__device_label(kernel->label, entry->name);
    pthread_mutex_init(&kernel->raising, NULL);
    hdrt_status status = hdrt__device_enter(loaded->device, &scope);
    if (status != HDRT_OK)
        goto free_kernel;
    hdrt__call call = HDRT__CALL(loaded->device->driver, cuModuleGetFunction, &kernel->function, loaded->handle,
                                 kernel->name);
    status = hdrt__device_check(loaded->device, call, "kernel '%s' of '%s'", kernel->name, loaded->name);
    if (status == HDRT_OK)
        status = describe(kernel);
    if (status == HDRT_OK)
        status = take_parameters(kernel, entry);
    hdrt__device_leave(loaded->device, &scope);
free_kernel:
    if (status != HDRT_OK) {
        hdrt__kernel_free(kernel);
        kernel = NULL;
    }
    *out_kernel = kernel;
    return status;
}

void hdrt__kernel_free(hdrt_kernel *kernel)
{
    if (!kernel)
        return;
    free((hdrt_parameter *)kernel->parameters);
    pthread_mutex_destroy(&kernel->raising);
    free(kernel);
}

/* Opts in to `bytes` of dynamic shared memory if that is more than so far. */
static hdrt_status raise_shared(hdrt_kernel *kernel, uint32_t bytes)
{
    hdrt__scope scope;
    hdrt_status status = hdrt__device_enter(kernel->device, &scope);
    if (status != HDRT_OK)
        return status;
    pthread_mutex_lock(&kernel->raising);
    if (bytes > atomic_load(&kernel->dynamic_shared_bytes)) {
        hdrt__call call = HDRT__CALL(kernel->device->driver, cuFuncSetAttribute, kernel->function,
                                     HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes);
        status = hdrt__device_check(kernel->device, call, "%u bytes of dynamic shared memory for kernel '%s'", bytes,
                                    kernel->name);
        if (status == HDRT_OK)
            atomic_store(&kernel->dynamic_shared_bytes, bytes);
    }
    pthread_mutex_unlock(&kernel->raising);
    hdrt__device_leave(kernel->device, &scope);
    return status;
}

static hdrt_status check_shared(const hdrt_kernel *kernel, uint32_t bytes)
{
    uint64_t total = (uint64_t)kernel->static_shared_bytes + bytes;
    uint32_t most = kernel->device->info.max_shared_per_block_optin;
    if (most < kernel->device->info.max_shared_per_block)
        most = kernel->device->info.max_shared_per_block;
    if (total <= most)
        return HDRT_OK;
    return hdrt__fail(HDRT_ERROR_LAUNCH,
                      "kernel '%s' would need %llu bytes of shared memory (%u of its own and %u "
                      "dynamic); a block on device %u has at most %u",
                      kernel->name, (unsigned long long)total, kernel->static_shared_bytes, bytes,
                      kernel->device->index, most);
}

hdrt_status hdrt__kernel_check_block(hdrt_kernel *kernel, const hdrt_grid *grid)
{
    static const char axes[] = "xyz";
    uint64_t threads = 1;
    for (unsigned i = 0; i < 3; i++) {
        uint32_t most = kernel->device->info.max_block[i];
        if (grid->block[i] == 0 || grid->block[i] > most)
            return hdrt__fail(HDRT_ERROR_LAUNCH, "launch of '%s': block %c is %u: expected 1 to %u", kernel->name,
                              axes[i], grid->block[i], most);
        threads *= grid->block[i]; /* each is at most a few thousand */
    }
    if (threads > kernel->max_threads_per_block)
        return hdrt__fail(HDRT_ERROR_LAUNCH,
                          "launch of '%s': a block of %u x %u x %u has %llu threads; this kernel allows "
                          "at most %u",
                          kernel->name, grid->block[0], grid->block[1], grid->block[2], (unsigned long long)threads,
                          kernel->max_threads_per_block);
    if (grid->shared <= atomic_load_explicit(&kernel->dynamic_shared_bytes, memory_order_relaxed))
        return HDRT_OK;
    hdrt_status status = check_shared(kernel, grid->shared);
    return status == HDRT_OK ? raise_shared(kernel, grid->shared) : status;
}

/* ---- the public functions --------------------------------------------------------------------------------------- */

const char *hdrt_kernel_name(const hdrt_kernel *kernel)
{
    return kernel ? kernel->name : NULL;
}

hdrt_status hdrt_kernel_parameter(const hdrt_kernel *kernel, uint32_t index, hdrt_parameter *out_parameter)
{
    if (!kernel || !out_parameter)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_kernel_parameter: %s is NULL",
                          kernel ? "out_parameter" : "the kernel");
    if (index >= kernel->parameter_count)
        return hdrt__fail(HDRT_ERROR_NOT_FOUND, "kernel '%s' has %u parameters: there is none of index %u",
                          kernel->name, kernel->parameter_count, index);
    *out_parameter = kernel->parameters[index];
    return HDRT_OK;
}

/* Public functions of a kernel begin so: inside the device's scope on HDRT_OK. */
static hdrt_status begin(hdrt_kernel *kernel, const char *function, hdrt__scope *scope)
{
    if (!kernel)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s: the kernel is NULL", function);
    hdrt_status status = hdrt__device_begin(kernel->device, function);
    return status == HDRT_OK ? hdrt__device_enter(kernel->device, scope) : status;
}

hdrt_status hdrt_kernel_set_access(hdrt_kernel *kernel, uint32_t parameter, hdrt_access access)
{
    if (!kernel) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_kernel_set_access: the kernel is NULL");
    }
    if (parameter >= kernel->parameter_count || parameter >= 64) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "hdrt_kernel_set_access: kernel '%s' has %u parameters, and the first 64 can be told of; %u is "
                          "none of them",
                          kernel->name, kernel->parameter_count, parameter);
    }
    if (access != HDRT_ACCESS_WRITE && access != HDRT_ACCESS_READ && access != HDRT_ACCESS_NONE) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_kernel_set_access: %d is no access", (int)access);
    }
    uint64_t bit = UINT64_C(1) << parameter;
    if (access == HDRT_ACCESS_READ) {
        atomic_fetch_or(&kernel->access_read, bit);
    } else {
        atomic_fetch_and(&kernel->access_read, ~bit);
    }
    if (access == HDRT_ACCESS_NONE) {
        atomic_fetch_or(&kernel->access_none, bit);
    } else {
        atomic_fetch_and(&kernel->access_none, ~bit);
    }
    return HDRT_OK;
}

hdrt_status hdrt_kernel_attributes(hdrt_kernel *kernel, hdrt_kernel_info *out_info)
{
    hdrt_kernel_info info = HDRT_KERNEL_INFO_INIT;
    const struct {
        unsigned which;
        uint32_t *member;
    } asked[] = {
        {HDCU_FUNC_ATTRIBUTE_NUM_REGS, &info.registers},
        {HDCU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &info.static_shared_bytes},
        {HDCU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &info.local_bytes},
        {HDCU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &info.constant_bytes},
        {HDCU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &info.max_threads_per_block},
        {HDCU_FUNC_ATTRIBUTE_PTX_VERSION, &info.ptx_version},
        {HDCU_FUNC_ATTRIBUTE_BINARY_VERSION, &info.binary_version},
    };
    hdrt__scope scope;
    hdrt_status status = begin(kernel, "hdrt_kernel_attributes", &scope);
    if (status != HDRT_OK)
        return status;
    info.parameter_count = kernel->parameter_count;
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]) && status == HDRT_OK; i++)
        status = attribute(kernel->device, kernel->function, asked[i].which, kernel->name, asked[i].member);
    hdrt__device_leave(kernel->device, &scope);
    if (status != HDRT_OK)
        return status;
    return hdrt__info_write("hdrt_kernel_info", out_info, &info, sizeof(info));
}

hdrt_status hdrt_kernel_occupancy(hdrt_kernel *kernel, uint32_t block_threads, uint32_t shared, uint32_t *out_blocks)
{
    hdrt__scope scope;
    int blocks = 0;
    if (!out_blocks)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_kernel_occupancy: out_blocks is NULL");
    *out_blocks = 0;
    hdrt_status status = begin(kernel, "hdrt_kernel_occupancy", &scope);
    if (status != HDRT_OK)
        return status;
    hdrt_grid grid = {{1, 1, 1}, {1, 1, 1}, shared};
    if (block_threads == 0 || block_threads > kernel->max_threads_per_block)
        status = hdrt__fail(HDRT_ERROR_LAUNCH, "occupancy of '%s': a block of %u threads: expected 1 to %u",
                            kernel->name, block_threads, kernel->max_threads_per_block);
    if (status == HDRT_OK)
        status = hdrt__kernel_check_block(kernel, &grid);
    if (status == HDRT_OK) {
        hdrt__call call = HDRT__CALL(kernel->device->driver, cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks,
                                     kernel->function, (int)block_threads, shared);
        status = hdrt__device_check(kernel->device, call, "occupancy of kernel '%s'", kernel->name);
    }
    hdrt__device_leave(kernel->device, &scope);
    *out_blocks = blocks > 0 ? (uint32_t)blocks : 0;
    return status;
}
