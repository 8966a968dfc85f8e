/* SPDX-License-Identifier: MIT */
/* The public functions of compiling, of loading, and of what a runtime has for it. */
#include "jit/image_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/device.h"
#include "device/runtime.h"
#include "driver/companions.h"
#include "driver/loader.h"
#include "jit/bundle.h"
#include "jit/module.h"

static void *create_jit(void *argument)
{
    const hdrt_runtime *runtime = argument;
    const hdrt__companions *companions = runtime->companions;
    hdrt__jit_config config = {
        .worker = companions->worker,
        .recorder = companions->recorder,
        .prelude = companions->prelude,
        .searched = companions->searched,
        .cache_dir = runtime->cache_dir_option,
        .nvrtc = runtime->nvrtc_option,
        .clang = runtime->clang_option,
        .compile_workers = runtime->compile_workers,
        .cache_read_only = (const char *const *)runtime->cache_read_only_option,
        .cache_read_only_count = runtime->cache_read_only_count,
        .cache_limit_bytes = runtime->cache_limit_bytes,
    };
    hdrt__jit *jit;
    return hdrt__jit_create(&config, &jit) == HDRT_OK ? jit : NULL;
}

static void destroy_jit(void *state)
{
    hdrt__jit_destroy(state);
}

hdrt__jit *hdrt__runtime_jit(hdrt_runtime *runtime)
{
    return hdrt__attachment_get(&runtime->jit, &runtime->lock, create_jit, runtime, destroy_jit);
}

void hdrt__runtime_target(const hdrt_runtime *runtime, hdrt__target *out)
{
    /* Code for a file may be for any driver: NVRTC is allowed, libdevice linked unless the soft driver is meant. */
    *out = (hdrt__target){.nvidia = runtime->kind != HDRT_DRIVER_SOFT};
}

void hdrt__device_target(const hdrt_device *device, char arch[16], hdrt__target *out)
{
    uint32_t capability = device->info.compute_capability;
    snprintf(arch, 16, "sm_%u", capability);
    out->soft = device->runtime->kind == HDRT_DRIVER_SOFT;
    out->nvidia = !out->soft;
    out->arch = capability ? arch : NULL;
    out->driver_version = out->soft ? 0 : (uint32_t)device->runtime->driver->version;
}

static hdrt_status compile_image(hdrt_runtime *runtime, const hdrt_source *source, const hdrt_compile_options *options,
                                 const hdrt__target *target, hdrt_image **out_image)
{
    hdrt__input input;
    hdrt__result result;
    hdrt__jit *jit = hdrt__runtime_jit(runtime);
    hdrt_status status = jit ? hdrt__input_read(source, options, &input) : HDRT_ERROR_OUT_OF_MEMORY;
    if (status != HDRT_OK)
        return status;
    status = hdrt__jit_obtain(jit, &input, target, true, NULL, &result);
    if (result.code)
        status = hdrt__image_finish(input.name, status, &result, out_image);
    hdrt__result_free(&result);
    hdrt__input_free(&input);
    return status;
}

hdrt_status hdrt_image_compile(hdrt_runtime *runtime, const hdrt_source *source, const hdrt_compile_options *options,
                               hdrt_image **out_image)
{
    if (!out_image)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_image_compile: out_image is NULL");
    *out_image = NULL;
    hdrt_status status = hdrt__runtime_begin(runtime, "hdrt_image_compile");
    if (status != HDRT_OK)
        return status;
    hdrt__target target;
    hdrt__runtime_target(runtime, &target);
    return compile_image(runtime, source, options, &target, out_image);
}

hdrt_status hdrt_image_compile_for(hdrt_device *device, const hdrt_source *source, const hdrt_compile_options *options,
                                   hdrt_image **out_image)
{
    char arch[16];
    hdrt__target target;
    if (!out_image)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_image_compile_for: out_image is NULL");
    *out_image = NULL;
    if (!device)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_image_compile_for: the device is NULL");
    /* A lost device compiles as well as any: nothing here calls its driver. */
    hdrt_status status = hdrt__runtime_begin(device->runtime, "hdrt_image_compile_for");
    if (status != HDRT_OK)
        return status;
    hdrt__device_target(device, arch, &target);
    return compile_image(device->runtime, source, options, &target, out_image);
}

hdrt_status hdrt__module_from_input(hdrt_device *device, const hdrt__input *input, hdrt__cancel *cancel,
                                    hdrt_module **out_module)
{
    char arch[16];
    hdrt__target target;
    hdrt__result result;
    hdrt__jit *jit = hdrt__runtime_jit(device->runtime);
    if (!jit)
        return HDRT_ERROR_OUT_OF_MEMORY;
    hdrt__device_target(device, arch, &target);
    /*
     * Code from the cache that the driver does not take is set aside and compiled once more: damage that a digest
     * cannot show, or a driver that became another.
     */
    hdrt_status status = HDRT_OK;
    bool again = true;
    for (unsigned attempt = 0; again; attempt++) {
        again = false;
        status = hdrt__jit_obtain(jit, input, &target, false, cancel, &result);
        if (status == HDRT_OK) {
            hdrt__open_options options = {
                .name = input->name, .from_cache = result.from_cache, .shareable = true, .lazy = input->asked.lazy};
            status = hdrt__module_open(device, result.code, &options, out_module);
            if (status == HDRT_ERROR_INVALID_IMAGE) {
                hdrt__jit_reject(jit, result.code);
                again = result.from_cache && attempt == 0;
            }
        }
        hdrt__result_free(&result);
    }
    return status;
}

hdrt_status hdrt_module_compile(hdrt_device *device, const hdrt_source *source, const hdrt_compile_options *options,
                                hdrt_module **out_module)
{
    hdrt__input input;
    if (!out_module)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_module_compile: out_module is NULL");
    *out_module = NULL;
    hdrt_status status = hdrt__device_begin(device, "hdrt_module_compile");
    if (status == HDRT_OK)
        status = hdrt__input_read(source, options, &input);
    if (status != HDRT_OK)
        return status;
    status = hdrt__module_from_input(device, &input, NULL, out_module);
    hdrt__input_free(&input);
    return status;
}

/* Whatever of the things that can be loaded the bytes are. */
static hdrt_status read_code(hdrt_device *device, const void *bytes, size_t size, const char *name,
                             hdrt__code **out_code)
{
    char arch[16];
    hdrt__target target;
    hdrt_image *image;
    if (hdrt__is_bundle(bytes, size)) {
        hdrt__device_target(device, arch, &target);
        return hdrt__bundle_choose(bytes, size, name, &target, out_code);
    }
    if (!hdrt__is_image_file(bytes, size))
        return hdrt__code_from_bytes(bytes, size, name, out_code);
    hdrt_status status = hdrt_image_read(bytes, size, name, &image);
    if (status != HDRT_OK)
        return status;
    *out_code = hdrt__code_hold(image->result.code);
    hdrt_image_destroy(image);
    return HDRT_OK;
}

hdrt_status hdrt_module_load(hdrt_device *device, const void *code, size_t size, const hdrt_load_options *options,
                             hdrt_module **out_module)
{
    hdrt_load_options known;
    hdrt__code *copy = NULL;
    if (!out_module)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_module_load: out_module is NULL");
    *out_module = NULL;
    hdrt_status status = hdrt__device_begin(device, "hdrt_module_load");
    if (status == HDRT_OK)
        status = hdrt__options_read("hdrt_load_options", options, &known, sizeof(known),
                                    offsetof(hdrt_load_options, reserved));
    if (status != HDRT_OK)
        return status;
    if (!code || size == 0)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_module_load: the code is %s", code ? "empty" : "NULL");
    for (size_t i = 0; i < sizeof(known.reserved_flags); i++)
        if (known.reserved_flags[i])
            return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_load_options.reserved_flags is not zero");
    const char *name = known.name ? known.name : "image";
    status = read_code(device, code, size, name, &copy);
    if (status != HDRT_OK)
        return status;
    hdrt__open_options open = {.name = name, .lazy = known.lazy};
    status = hdrt__module_open(device, copy, &open, out_module);
    hdrt__code_drop(copy);
    return status;
}

hdrt_status hdrt_runtime_compiler_at(hdrt_runtime *runtime, hdrt_compiler compiler, uint32_t index,
                                     hdrt_compiler_info *out_info)
{
    hdrt_compiler_info info = HDRT_COMPILER_INFO_INIT;
    hdrt__found found;
    hdrt_status status = hdrt__runtime_begin(runtime, "hdrt_runtime_compiler_at");
    if (status != HDRT_OK)
        return status;
    if (compiler != HDRT_COMPILER_NVRTC && compiler != HDRT_COMPILER_CLANG)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "there is no compiler of number %d", (int)compiler);
    hdrt__jit *jit = hdrt__runtime_jit(runtime);
    if (!jit)
        return HDRT_ERROR_OUT_OF_MEMORY;
    status = hdrt__jit_compiler(jit, compiler, index, &found);
    if (status != HDRT_OK)
        return status;
    info.path = found.path;
    info.rule = found.rule;
    info.linker_path = found.linker;
    info.version_major = found.major;
    info.version_minor = found.minor;
    return hdrt__info_write("hdrt_compiler_info", out_info, &info, sizeof(info));
}

hdrt_status hdrt_runtime_compiler(hdrt_runtime *runtime, hdrt_compiler compiler, hdrt_compiler_info *out_info)
{
    return hdrt_runtime_compiler_at(runtime, compiler, 0, out_info);
}

hdrt_status hdrt_runtime_get_info(hdrt_runtime *runtime, hdrt_runtime_info *out_info)
{
    hdrt_runtime_info info = HDRT_RUNTIME_INFO_INIT;
    hdrt_status status = hdrt__runtime_begin(runtime, "hdrt_runtime_get_info");
    if (status != HDRT_OK)
        return status;
    hdrt__jit *jit = hdrt__runtime_jit(runtime);
    if (!jit)
        return HDRT_ERROR_OUT_OF_MEMORY;
    info.driver = runtime->kind;
    if (runtime->driver) {
        info.driver_path = runtime->driver->path;
        info.driver_version = (uint32_t)runtime->driver->version;
    }
    info.device_count = runtime->device_count;
    info.libexec_worker = runtime->companions->worker;
    info.libexec_soft = runtime->companions->soft;
    info.libexec_recorder = runtime->companions->recorder;
    info.libexec_prelude = runtime->companions->prelude;
    info.libexec_rule = runtime->companions->rule;
    hdrt__store_check(hdrt__jit_store(jit));
    info.cache_dir = hdrt__store_directory(hdrt__jit_store(jit), 0);
    info.cache_reason = hdrt__store_reason(hdrt__jit_store(jit), 0);
    return hdrt__info_write("hdrt_runtime_info", out_info, &info, sizeof(info));
}
