/* SPDX-License-Identifier: MIT */
#include "soft/api/entry.h"
#include "soft/model/module.h"

#define BINARY_VERSION 90
#define SHARED_OPT_IN 232448
#define MOST_REGISTERS 255

static bool is_function(hdcu_function function)
{
    return hdsoft__handle_is(function, HDSOFT__FUNCTION);
}

static bool is_kernel(hdcu_kernel kernel)
{
    return hdsoft__handle_is(kernel, HDSOFT__KERNEL);
}

unsigned hdsoft__registers(const hdsoft_entry *entry)
{
    unsigned registers = entry->register_count < MOST_REGISTERS ? entry->register_count : MOST_REGISTERS;
    return registers > 4 ? registers : 4;
}

/* ---- attributes ---- */

static int fixed_attribute(const hdsoft__image *image, const hdsoft_entry *entry, unsigned attribute, int *out)
{
    switch (attribute) {
    case HDCU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *out = (int)entry->max_threads; return 0;
    case HDCU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *out = (int)entry->static_shared_bytes; return 0;
    case HDCU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *out = (int)image->constant_bytes; return 0;
    case HDCU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *out = (int)entry->local_bytes; return 0;
    case HDCU_FUNC_ATTRIBUTE_NUM_REGS: *out = (int)hdsoft__registers(entry); return 0;
    case HDCU_FUNC_ATTRIBUTE_PTX_VERSION: *out = (int)image->target; return 0;
    case HDCU_FUNC_ATTRIBUTE_BINARY_VERSION: *out = BINARY_VERSION; return 0;
    default:
        if (attribute > HDCU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
            return HDCU_ERROR_INVALID_VALUE;
        *out = 0;
        return 0;
    }
}

hdcu_result hdsoft__cuFuncGetAttribute(int *out, unsigned attribute, hdcu_function function)
{
    if (!out)
        return HDCU_ERROR_INVALID_VALUE;
    if (!is_function(function))
        return HDCU_ERROR_INVALID_HANDLE;
    switch (attribute) {
    case HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *out = function->dynamic_limit; return 0;
    case HDCU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *out = function->carveout; return 0;
    case HDCU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: *out = function->non_portable_cluster; return 0;
    case HDCU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *out = function->cluster_policy; return 0;
    default: return (hdcu_result)fixed_attribute(function->module->image, function->entry, attribute, out);
    }
}

static int check_setting(const hdsoft_entry *entry, unsigned attribute, int value)
{
    switch (attribute) {
    case HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return value >= 0 && (unsigned)value + entry->static_shared_bytes <= SHARED_OPT_IN ? 0
                                                                                            : HDCU_ERROR_INVALID_VALUE;
    case HDCU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return value >= -1 && value <= 100 ? 0 : HDCU_ERROR_INVALID_VALUE;
    case HDCU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case HDCU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: return 0;
    case HDCU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case HDCU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case HDCU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: return HDCU_ERROR_NOT_SUPPORTED;
    default: return HDCU_ERROR_INVALID_VALUE;
    }
}

static void set_attribute(hdsoft__function *function, unsigned attribute, int value)
{
    switch (attribute) {
    case HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: function->dynamic_limit = value; break;
    case HDCU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: function->carveout = value; break;
    case HDCU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: function->non_portable_cluster = value; break;
    default: function->cluster_policy = value;
    }
}

hdcu_result hdsoft__cuFuncSetAttribute(hdcu_function function, unsigned attribute, int value)
{
    if (!is_function(function))
        return HDCU_ERROR_INVALID_HANDLE;
    int status = check_setting(function->entry, attribute, value);
    if (!status)
        set_attribute(function, attribute, value);
    return (hdcu_result)status;
}

hdcu_result hdsoft__cuFuncSetCacheConfig(hdcu_function function, unsigned config)
{
    if (!is_function(function))
        return HDCU_ERROR_INVALID_HANDLE;
    return config <= HDCU_FUNC_CACHE_PREFER_EQUAL ? 0 : HDCU_ERROR_INVALID_VALUE;
}

/* ---- kernels of libraries ---- */

hdcu_result hdsoft__cuKernelGetAttribute(int *out, unsigned attribute, hdcu_kernel kernel, hdcu_device ordinal)
{
    if (!out)
        return HDCU_ERROR_INVALID_VALUE;
    if (!is_kernel(kernel))
        return HDCU_ERROR_INVALID_HANDLE;
    if (!hdsoft__device_at(ordinal))
        return HDCU_ERROR_INVALID_DEVICE;
    const hdsoft_entry *entry = kernel->entry;
    switch (attribute) {
    case HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *out = kernel->dynamic_limit;
        if (*out < 0)
            *out = entry->static_shared_bytes < 49152 ? (int)(49152 - entry->static_shared_bytes) : 0;
        return 0;
    case HDCU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *out = kernel->carveout; return 0;
    default: return (hdcu_result)fixed_attribute(kernel->library->image, entry, attribute, out);
    }
}

hdcu_result hdsoft__cuKernelSetAttribute(unsigned attribute, int value, hdcu_kernel kernel, hdcu_device ordinal)
{
    if (!is_kernel(kernel))
        return HDCU_ERROR_INVALID_HANDLE;
    const hdsoft__device *device = hdsoft__device_at(ordinal);
    if (!device)
        return HDCU_ERROR_INVALID_DEVICE;
    int status = check_setting(kernel->entry, attribute, value);
    if (status)
        return (hdcu_result)status;
    if (attribute == HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        kernel->dynamic_limit = value;
    else if (attribute == HDCU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        kernel->carveout = value;
    for (hdsoft__context *context = hdsoft__the.contexts; context; context = context->next) {
        for (hdsoft__module *module = context->modules; module; module = module->next) {
            if (module->library == kernel->library && context->device == device)
                set_attribute(&module->functions[kernel->index], attribute, value);
        }
    }
    return 0;
}

/* ---- names and parameters ---- */

hdcu_result hdsoft__cuFuncGetModule(hdcu_module *out, hdcu_function function)
{
    if (!out)
        return HDCU_ERROR_INVALID_VALUE;
    if (!is_function(function))
        return HDCU_ERROR_INVALID_HANDLE;
    *out = function->module;
    return 0;
}

hdcu_result hdsoft__cuFuncGetName(const char **out, hdcu_function function)
{
    if (!out)
        return HDCU_ERROR_INVALID_VALUE;
    if (!is_function(function))
        return HDCU_ERROR_INVALID_HANDLE;
    *out = function->entry->name;
    return 0;
}

hdcu_result hdsoft__cuKernelGetName(const char **out, hdcu_kernel kernel)
{
    if (!out)
        return HDCU_ERROR_INVALID_VALUE;
    if (!is_kernel(kernel))
        return HDCU_ERROR_INVALID_HANDLE;
    *out = kernel->entry->name;
    return 0;
}

static hdcu_result parameter_info(const hdsoft_entry *entry, size_t index, size_t *offset, size_t *size)
{
    if (!offset || index >= entry->parameter_count)
        return HDCU_ERROR_INVALID_VALUE;
    *offset = entry->parameters[index].offset;
    if (size)
        *size = entry->parameters[index].size;
    return 0;
}

hdcu_result hdsoft__cuFuncGetParamInfo(hdcu_function function, size_t index, size_t *offset, size_t *size)
{
    return is_function(function) ? parameter_info(function->entry, index, offset, size) : HDCU_ERROR_INVALID_HANDLE;
}

hdcu_result hdsoft__cuKernelGetParamInfo(hdcu_kernel kernel, size_t index, size_t *offset, size_t *size)
{
    return is_kernel(kernel) ? parameter_info(kernel->entry, index, offset, size) : HDCU_ERROR_INVALID_HANDLE;
}

hdcu_result hdsoft__cuFuncLoad(hdcu_function function)
{
    if (!is_function(function))
        return HDCU_ERROR_INVALID_HANDLE;
    function->loaded = true;
    return 0;
}

hdcu_result hdsoft__cuFuncIsLoaded(unsigned *state, hdcu_function function)
{
    if (!state)
        return HDCU_ERROR_INVALID_VALUE;
    if (!is_function(function))
        return HDCU_ERROR_INVALID_HANDLE;
    *state = function->loaded ? HDCU_FUNCTION_LOADING_STATE_LOADED : HDCU_FUNCTION_LOADING_STATE_UNLOADED;
    return 0;
}
