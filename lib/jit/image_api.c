/* SPDX-License-Identifier: MIT */
/* The public functions of images. */
#include "jit/image_api.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/status.h"
#include "device/device.h"
#include "device/runtime.h"
#include "jit/bundle.h"
#include "jit/module.h"

/* ---- their lives ------------------------------------------------------------------------------------------------- */

hdrt_image *hdrt__image_create(const char *name)
{
    hdrt_image *image = calloc(1, sizeof(*image));
    if (image)
        image->name = strdup(name);
    if (!image || !image->name) {
        free(image);
        hdrt__fail_memory(sizeof(*image), "an image");
        return NULL;
    }
    atomic_init(&image->references, 1);
    return image;
}

hdrt_status hdrt__image_finish(const char *name, hdrt_status status, hdrt__result *result, hdrt_image **out_image)
{
    hdrt_image *image = hdrt__image_create(name);
    if (!image)
        return HDRT_ERROR_OUT_OF_MEMORY;
    image->status = status;
    if (status != HDRT_OK)
        image->message = strdup(hdrt_last_error());
    image->result = *result;
    *result = (hdrt__result){0};
    *out_image = image;
    return status;
}

void hdrt__image_release(hdrt_image *image)
{
    if (atomic_fetch_sub_explicit(&image->references, 1, memory_order_acq_rel) != 1)
        return;
    hdrt__result_free(&image->result);
    hdrt__future *future = image->future;
    free(image->message);
    free(image->written);
    free(image->name);
    free(image);
    hdrt__future_destroy(future); /* last: it may end the runtime */
}

void hdrt_image_destroy(hdrt_image *image)
{
    if (!image || (image->future && hdrt__future_forked(image->future)))
        return;
    if (image->future)
        hdrt__future_cancel(image->future);
    hdrt__image_release(image);
}

hdrt_status hdrt_image_status(const hdrt_image *image)
{
    if (!image)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_image_status: the image is NULL");
    if (image->future)
        return hdrt__future_status(image->future);
    if (image->status == HDRT_OK)
        return HDRT_OK;
    return hdrt__fail_with(image->status, image->message ? image->message : hdrt_status_text(image->status));
}

void hdrt_image_cancel(hdrt_image *image)
{
    if (image && image->future && !hdrt__future_forked(image->future))
        hdrt__future_cancel(image->future);
}

hdrt_status hdrt__image_code(const hdrt_image *image, const char *function, hdrt__code **out_code)
{
    if (!image)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s: the image is NULL", function);
    hdrt_status status = hdrt_image_status(image);
    if (status == HDRT_NOT_READY)
        return status;
    *out_code = image->result.code;
    return *out_code ? HDRT_OK : status;
}

/* ---- what is in them --------------------------------------------------------------------------------------------- */

hdrt_status hdrt_image_get_info(const hdrt_image *image, hdrt_image_info *out_info)
{
    hdrt__code *code;
    hdrt_status status = hdrt__image_code(image, "hdrt_image_get_info", &code);
    if (status != HDRT_OK)
        return status;
    hdrt_image_info info = HDRT_IMAGE_INFO_INIT;
    info.kind = code->kind;
    if (code->kind == HDRT_CODE_CUBIN) {
        info.code = code->cubin;
        info.code_size = code->cubin_size;
        info.ptx = code->ptx;
        info.ptx_size = code->ptx ? code->ptx_size : 0;
    } else if (code->kind == HDRT_CODE_LTO_IR) {
        info.code = code->lto_ir;
        info.code_size = code->lto_ir_size;
    } else {
        info.code = code->ptx;
        info.code_size = code->ptx_size;
    }
    info.arch = code->arch;
    info.compiler = code->compiler;
    info.compiler_path = code->compiler_path;
    info.log = code->log;
    info.from_cache = image->result.from_cache;
    info.note = code->note;
    info.compiler_version = code->compiler_version;
    info.kernel_count = code->table.kernel_count;
    info.dependency_count = image->result.dependency_count;
    info.source_name = code->source_name;
    info.options = code->options;
    info.command = code->command;
    info.cache_reason = image->result.from_cache ? HDRT_CACHE_HIT : code->reason;
    info.cache_words = image->result.from_cache || !code->reason_words ? "" : code->reason_words;
    return hdrt__info_write("hdrt_image_info", out_info, &info, sizeof(info));
}

hdrt_status hdrt_image_diagnostic(const hdrt_image *image, uint32_t index, hdrt_diagnostic *out_diagnostic)
{
    hdrt__code *code;
    if (image && !out_diagnostic)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_image_diagnostic: out_diagnostic is NULL");
    hdrt_status status = hdrt__image_code(image, "hdrt_image_diagnostic", &code);
    if (status != HDRT_OK)
        return status;
    if (index >= code->diagnostic_count)
        return hdrt__fail(HDRT_ERROR_NOT_FOUND, "the image has %u diagnostics: there is none of index %u",
                          code->diagnostic_count, index);
    *out_diagnostic = code->diagnostics[index];
    return HDRT_OK;
}

hdrt_status hdrt_image_kernel(const hdrt_image *image, uint32_t index, hdrt_image_kernel_info *out_info)
{
    hdrt__code *code;
    hdrt_status status = hdrt__image_code(image, "hdrt_image_kernel", &code);
    if (status != HDRT_OK)
        return status;
    if (index >= code->table.kernel_count)
        return hdrt__fail(HDRT_ERROR_NOT_FOUND, "the image has %u kernels: there is none of index %u",
                          code->table.kernel_count, index);
    const hdrt__kernel_entry *kernel = &code->table.kernels[index];
    hdrt_image_kernel_info info = HDRT_IMAGE_KERNEL_INFO_INIT;
    info.name = kernel->name;
    for (uint32_t i = 0; i < code->lowered_count && !info.expression; i++)
        if (strcmp(code->lowered[i].name, kernel->name) == 0)
            info.expression = code->lowered[i].expression;
    info.parameters_known = kernel->parameters_known;
    if (kernel->parameters_known) {
        info.parameters = kernel->parameters;
        info.parameter_count = kernel->parameter_count;
    }
    info.resources_known = kernel->resources_known;
    info.registers = kernel->registers;
    info.static_shared_bytes = kernel->static_shared_bytes;
    info.local_bytes = kernel->local_bytes;
    return hdrt__info_write("hdrt_image_kernel_info", out_info, &info, sizeof(info));
}

hdrt_status hdrt_image_lowered_name(const hdrt_image *image, const char *expression, const char **out_name)
{
    hdrt__code *code;
    if (!expression || !out_name)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_image_lowered_name: %s is NULL",
                          expression ? "out_name" : "the expression");
    *out_name = NULL;
    hdrt_status status = hdrt__image_code(image, "hdrt_image_lowered_name", &code);
    if (status != HDRT_OK)
        return status;
    *out_name = hdrt__code_lowered(code, expression);
    if (*out_name)
        return HDRT_OK;
    hdrt__buffer names = HDRT__BUFFER_INIT;
    for (uint32_t i = 0; i < code->lowered_count && i < 12; i++)
        hdrt__buffer_format(&names, "%s'%s'", i ? ", " : "", code->lowered[i].expression);
    status = hdrt__fail(HDRT_ERROR_NOT_FOUND, "'%s' was compiled without the name expression '%s'; there: %s",
                        image->name, expression, names.size ? (const char *)names.bytes : "none");
    hdrt__buffer_free(&names);
    return status;
}

const char *hdrt_image_dependency(const hdrt_image *image, uint32_t index)
{
    if (!image || (image->future && hdrt__future_pending(image->future)) || index >= image->result.dependency_count)
        return NULL;
    return image->result.dependencies[index];
}

/* ---- as bytes ---------------------------------------------------------------------------------------------------- */

static hdrt_status read_image_file(const void *bytes, size_t size, const char *name, hdrt__code **out_code)
{
    hdrt_cache_reason reason;
    *out_code = hdrt__code_read(bytes, size, NULL, &reason);
    if (*out_code)
        return HDRT_OK;
    if (reason == HDRT_CACHE_UNREADABLE)
        return hdrt__fail_memory(size, "an image");
    return hdrt__fail(HDRT_ERROR_INVALID_IMAGE, "the image file '%s' cannot be used: %s", name,
                      hdrt_cache_reason_text(reason));
}

hdrt_status hdrt_image_read(const void *bytes, size_t size, const char *name, hdrt_image **out_image)
{
    hdrt__result result = {.from_cache = true};
    if (!out_image)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_image_read: out_image is NULL");
    *out_image = NULL;
    if (!bytes || size == 0)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_image_read: the bytes are %s", bytes ? "none" : "NULL");
    const char *words = name ? name : "image";
    if (hdrt__is_bundle(bytes, size))
        return hdrt__fail(HDRT_ERROR_INVALID_IMAGE, "'%s' is a bundle of images: hdrt_bundle_image gives them one by "
                          "one", words);
    hdrt_status status = hdrt__is_image_file(bytes, size) ? read_image_file(bytes, size, words, &result.code)
                                                          : hdrt__code_from_bytes(bytes, size, words, &result.code);
    if (status == HDRT_OK)
        status = hdrt__image_finish(words, HDRT_OK, &result, out_image);
    hdrt__result_free(&result);
    return status;
}

hdrt_status hdrt_image_write(hdrt_image *image, const void **out_bytes, size_t *out_size)
{
    hdrt__buffer bytes = HDRT__BUFFER_INIT;
    hdrt__code *code;
    if (!out_bytes || !out_size)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_image_write: %s is NULL",
                          out_bytes ? "out_size" : "out_bytes");
    hdrt_status status = hdrt__image_code(image, "hdrt_image_write", &code);
    if (status != HDRT_OK)
        return status;
    if (!code->ptx && !code->cubin && !code->lto_ir)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "the image of '%s' has no code: its compile failed",
                          image->name);
    hdrt__code_write(code, &bytes);
    char *written = hdrt__buffer_take(&bytes, out_size);
    hdrt__buffer_free(&bytes);
    if (!written)
        return hdrt__fail_memory(hdrt__code_bytes(code), "an image file");
    free(image->written);
    image->written = written;
    *out_bytes = written;
    return HDRT_OK;
}

hdrt_status hdrt_module_load_image(hdrt_device *device, const hdrt_image *image, hdrt_module **out_module)
{
    hdrt__code *code;
    if (!image || !out_module)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_module_load_image: %s is NULL",
                          image ? "out_module" : "the image");
    *out_module = NULL;
    hdrt_status status = hdrt__device_begin(device, "hdrt_module_load_image");
    if (status == HDRT_OK)
        status = hdrt__image_code(image, "hdrt_module_load_image", &code);
    if (status != HDRT_OK)
        return status;
    hdrt__open_options options = {.name = image->name, .from_cache = image->result.from_cache, .shareable = true};
    return hdrt__module_open(device, code, &options, out_module);
}
