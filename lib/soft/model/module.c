/* SPDX-License-Identifier: MIT */
#include "soft/model/module.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/check/check.h"

#define CAPABILITY 90
#define MACHINE_CUDA 190
#define DEFAULT_SHARED 49152

/* ---- images ---- */

static void say(hdsoft_text *log, const char *text)
{
    if (!log || !log->capacity)
        return;
    int length = snprintf(log->bytes, log->capacity, "%s", text);
    log->length = length < (int)log->capacity ? (size_t)length : log->capacity - 1;
}

static const char *skip_space(const char *text)
{
    for (;;) {
        while (isspace((unsigned char)*text))
            text++;
        if (text[0] == '/' && text[1] == '/') {
            while (*text && *text != '\n')
                text++;
        } else if (text[0] == '/' && text[1] == '*') {
            const char *end = strstr(text + 2, "*/");
            if (!end)
                return text + strlen(text);
            text = end + 2;
        } else {
            return text;
        }
    }
}

/* The kinds of code that are for real GPUs only. */
static int refuse_binary(const unsigned char *bytes, hdsoft_text *log)
{
    static const unsigned char wrapper[4] = {0xb1, 0x43, 0x62, 0x46}, fat[4] = {0x50, 0xed, 0x55, 0xba};
    if (!memcmp(bytes, "\177ELF", 4)) {
        bool cuda = bytes[4] == 2 && bytes[5] == 1 && bytes[18] == MACHINE_CUDA && bytes[19] == 0;
        say(log, cuda ? "this is a cubin: the soft driver runs PTX only; compile to PTX" : "an ELF file, but no cubin");
        return cuda ? HDCU_ERROR_NO_BINARY_FOR_GPU : HDCU_ERROR_INVALID_IMAGE;
    }
    if (bytes[0] && bytes[1] && bytes[2] && (!memcmp(bytes, wrapper, 4) || !memcmp(bytes, fat, 4))) {
        say(log, "this is a fat binary: the soft driver runs PTX only; compile to PTX");
        return HDCU_ERROR_NO_BINARY_FOR_GPU;
    }
    return 0;
}

static unsigned find_target(const char *ptx)
{
    const char *target = strstr(ptx, ".target");
    const char *number = target ? strstr(target, "sm_") : NULL;
    return number ? (unsigned)strtoul(number + 3, NULL, 10) : CAPABILITY;
}

int hdsoft__image_parse(const void *bytes, hdsoft__image **out, hdsoft_text *log)
{
    const char *ptx = bytes;
    /* Reading byte by byte: an image may be as short as its terminating zero. */
    if (ptx[0] && ptx[1] && ptx[2] && ptx[3]) {
        int status = refuse_binary(bytes, log);
        if (status)
            return status;
    }
    if (strncmp(skip_space(ptx), ".version", 8)) {
        say(log, "neither PTX text, which begins with .version, nor a cubin nor a fat binary");
        return HDCU_ERROR_INVALID_IMAGE;
    }
    hdsoft__image *image = calloc(1, sizeof *image);
    if (!image)
        return HDCU_ERROR_OUT_OF_MEMORY;
    int status = hdsoft_program_parse_level(ptx, strlen(ptx), CAPABILITY, hdsoft__the.level, &image->program, log);
    if (status) {
        free(image);
        /* An H200 gives the PTX of a newer architecture to its compiler, which fails. */
        return status == HDCU_ERROR_NO_BINARY_FOR_GPU ? HDCU_ERROR_INVALID_PTX : status;
    }
    image->references = 1;
    image->target = find_target(ptx);
    for (size_t i = 0; i < hdsoft_program_variable_count(image->program); i++) {
        const hdsoft_variable *variable = hdsoft_program_variable(image->program, i);
        if (variable->constant)
            image->constant_bytes += (uint32_t)variable->size;
    }
    *out = image;
    return 0;
}

void hdsoft__image_release(hdsoft__image *image)
{
    if (!image || --image->references)
        return;
    hdsoft__lines_release(image->lines);
    hdsoft_program_destroy(image->program);
    free(image);
}

/* ---- modules ---- */

static int add_functions(hdsoft__module *module)
{
    size_t count = hdsoft_program_entry_count(module->image->program);
    module->functions = calloc(count ? count : 1, sizeof *module->functions);
    if (!module->functions)
        return HDCU_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        hdsoft__function *function = &module->functions[i];
        function->module = module;
        function->entry = hdsoft_program_entry(module->image->program, i);
        uint32_t fixed = function->entry->static_shared_bytes;
        function->dynamic_limit = fixed < DEFAULT_SHARED ? (int)(DEFAULT_SHARED - fixed) : 0;
        function->carveout = -1;
        if (module->library && module->library->kernels[i].dynamic_limit >= 0)
            function->dynamic_limit = module->library->kernels[i].dynamic_limit;
        if (module->library)
            function->carveout = module->library->kernels[i].carveout;
        if (!hdsoft__handle_add(function, HDSOFT__FUNCTION))
            return HDCU_ERROR_OUT_OF_MEMORY;
        module->function_count = i + 1;
    }
    return hdsoft__handle_add(module, HDSOFT__MODULE) ? 0 : HDCU_ERROR_OUT_OF_MEMORY;
}

static void remove_handles(hdsoft__module *module)
{
    hdsoft__handle_remove(module);
    for (size_t i = 0; i < module->function_count; i++)
        hdsoft__handle_remove(&module->functions[i]);
}

static void free_module(hdsoft__module *module)
{
    hdsoft_instance_destroy(module->instance);
    hdsoft__image_release(module->image);
    free(module->functions);
    free(module);
}

int hdsoft__module_create(hdsoft__context *context, hdsoft__image *image, hdsoft__library *library,
                          hdsoft__module **out, hdsoft_text *log)
{
    hdsoft__module *module = calloc(1, sizeof *module);
    if (!module) {
        hdsoft__image_release(image);
        return HDCU_ERROR_OUT_OF_MEMORY;
    }
    module->context = context;
    module->image = image;
    module->library = library;
    module->references = 1;
    module->birth = hdsoft__the.next_sequence;
    module->made = hdsoft__site_here();
    int status = hdsoft_instance_create(image->program, context->device->memory, &module->instance, log);
    if (!status)
        status = add_functions(module);
    if (status) {
        remove_handles(module);
        free_module(module);
        return status;
    }
    module->next = context->modules;
    if (module->next)
        module->next->previous = module;
    context->modules = module;
    *out = module;
    return 0;
}

void hdsoft__module_release(hdsoft__module *module)
{
    if (!--module->references)
        free_module(module);
}

void hdsoft__module_unload(hdsoft__module *module)
{
    remove_handles(module);
    module->unloaded = true;
    if (module->next)
        module->next->previous = module->previous;
    if (module->previous)
        module->previous->next = module->next;
    else
        module->context->modules = module->next;
    hdsoft__module_release(module);
}

/* ---- libraries ---- */

static void free_library(hdsoft__library *library)
{
    hdsoft__handle_remove(library);
    for (size_t i = 0; i < library->kernel_count; i++)
        hdsoft__handle_remove(&library->kernels[i]);
    hdsoft__image_release(library->image);
    free(library->kernels);
    free(library);
}

int hdsoft__library_create(hdsoft__image *image, int broken, hdsoft__library **out)
{
    hdsoft__library *library = calloc(1, sizeof *library);
    if (!library) {
        hdsoft__image_release(image);
        return HDCU_ERROR_OUT_OF_MEMORY;
    }
    library->image = image;
    library->broken = broken;
    size_t count = image ? hdsoft_program_entry_count(image->program) : 0;
    library->kernels = calloc(count ? count : 1, sizeof *library->kernels);
    bool ok = library->kernels && hdsoft__handle_add(library, HDSOFT__LIBRARY);
    for (size_t i = 0; ok && i < count; i++) {
        library->kernels[i] = (hdsoft__kernel){library, hdsoft_program_entry(image->program, i), i, -1, -1};
        ok = hdsoft__handle_add(&library->kernels[i], HDSOFT__KERNEL);
        library->kernel_count += ok;
    }
    if (!ok) {
        free_library(library);
        return HDCU_ERROR_OUT_OF_MEMORY;
    }
    *out = library;
    return 0;
}

static hdsoft__module *module_in(const hdsoft__library *library, hdsoft__context *context)
{
    hdsoft__module *module = context->modules;
    while (module && module->library != library)
        module = module->next;
    return module;
}

void hdsoft__library_unload(hdsoft__library *library)
{
    for (hdsoft__context *context = hdsoft__the.contexts; context; context = context->next) {
        hdsoft__module *module = module_in(library, context);
        if (module)
            hdsoft__module_unload(module);
    }
    free_library(library);
}

int hdsoft__library_module(hdsoft__library *library, hdsoft__context *context, hdsoft__module **out)
{
    *out = module_in(library, context);
    if (*out || library->broken)
        return library->broken;
    library->image->references++;
    return hdsoft__module_create(context, library->image, library, out, NULL);
}

int hdsoft__function_of(hdcu_function handle, hdsoft__function **out)
{
    if (hdsoft__handle_is(handle, HDSOFT__FUNCTION)) {
        *out = handle;
        return 0;
    }
    if (!hdsoft__handle_is(handle, HDSOFT__KERNEL))
        return HDCU_ERROR_INVALID_HANDLE;
    const hdsoft__kernel *kernel = (const void *)handle;
    hdsoft__context *context;
    hdsoft__module *module;
    int status = hdsoft__current(&context);
    if (!status)
        status = hdsoft__library_module(kernel->library, context, &module);
    if (!status)
        *out = &module->functions[kernel->index];
    return status;
}
