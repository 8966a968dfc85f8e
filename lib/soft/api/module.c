/* SPDX-License-Identifier: MIT */
#include "soft/model/module.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "soft/api/entry.h"

/* ---- JIT options ---- */

typedef struct jit_log {
    char *bytes;
    size_t capacity;
    void **written; /* where the caller reads how much was written */
} jit_log;

typedef struct jit_options {
    jit_log info, error;
    float *wall_time;
} jit_options;

/* Of the targets only that they are written as cuda.h's are: 90, or with 0x10000 or 0x20000 for 90a and 90f. */
static bool is_target(unsigned target)
{
    unsigned number = target & 0xffff;
    return target >> 16 <= 2 && number >= 30 && number <= 121;
}

static int read_options(unsigned count, const unsigned *options, void **values, jit_options *out)
{
    memset(out, 0, sizeof *out);
    if (count && (!options || !values))
        return HDCU_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        switch (options[i]) {
        case HDCU_JIT_INFO_LOG_BUFFER: out->info.bytes = values[i]; break;
        case HDCU_JIT_ERROR_LOG_BUFFER: out->error.bytes = values[i]; break;
        case HDCU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            out->info.capacity = (unsigned)(uintptr_t)values[i];
            out->info.written = &values[i];
            break;
        case HDCU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            out->error.capacity = (unsigned)(uintptr_t)values[i];
            out->error.written = &values[i];
            break;
        case HDCU_JIT_WALL_TIME: out->wall_time = (float *)&values[i]; break;
        case HDCU_JIT_TARGET:
            if (!is_target((unsigned)(uintptr_t)values[i]))
                return HDCU_ERROR_INVALID_VALUE;
            break;
        default:
            if (options[i] > HDCU_JIT_SPLIT_COMPILE)
                return HDCU_ERROR_INVALID_VALUE;
        }
    }
    return 0;
}

static void write_log(const jit_log *log, const char *text)
{
    size_t length = strlen(text);
    if (log->bytes && log->capacity) {
        /* What was cut counts its terminating zero. */
        size_t copied = length < log->capacity ? length : log->capacity - 1;
        memcpy(log->bytes, text, copied);
        log->bytes[copied] = '\0';
        length = length < log->capacity ? length : log->capacity;
    } else {
        length = 0;
    }
    if (log->written)
        *log->written = (void *)(uintptr_t)length;
}

/* ---- loading ---- */

static hdcu_result parse(const void *bytes, const jit_options *options, hdsoft__image **image)
{
    char words[4096] = "", line[4200] = "";
    hdsoft_text log = {words, sizeof words, 0};
    /* Parsing may take long and touches nothing of ours. */
    hdsoft__unlock();
    uint64_t begin = hdsoft__now();
    int status = hdsoft__image_parse(bytes, image, &log);
    uint64_t end = hdsoft__now();
    hdsoft__lock();
    if (status) {
        strcat(line, "soft driver: ");
        strcat(line, words[0] ? words : "the image cannot be loaded");
        strcat(line, "\n");
    }
    write_log(&options->error, line);
    write_log(&options->info, "");
    if (options->wall_time)
        *options->wall_time = (float)((double)(end - begin) / 1e6);
    return (hdcu_result)status;
}

/* As measured: loading code waits for what runs, and nobody launches meanwhile. */
static int wait_to_load(hdsoft__device *device)
{
    device->loading++;
    int status = hdsoft__wait_all(device, NULL);
    device->loading--;
    hdsoft__wake();
    return status;
}

static hdcu_result load(hdcu_module *out, const void *bytes, const jit_options *options)
{
    hdsoft__context *context = hdsoft__here();
    hdsoft__image *image;
    if (!out || !bytes)
        return HDCU_ERROR_INVALID_VALUE;
    hdcu_result status = parse(bytes, options, &image);
    if (status)
        return status;
    status = hdsoft__synchronised(wait_to_load(context->device));
    if (!status && context->destroyed)
        status = HDCU_ERROR_CONTEXT_IS_DESTROYED;
    if (status)
        hdsoft__image_release(image);
    else
        status = (hdcu_result)hdsoft__module_create(context, image, NULL, out, NULL);
    return status;
}

hdcu_result hdsoft__cuModuleLoadData(hdcu_module *out, const void *bytes)
{
    return load(out, bytes, &(jit_options){0});
}

hdcu_result hdsoft__cuModuleLoadDataEx(hdcu_module *out, const void *bytes, unsigned count, unsigned *options,
                                       void **values)
{
    jit_options read;
    int status = read_options(count, options, values, &read);
    return status ? (hdcu_result)status : load(out, bytes, &read);
}

#define FILE_BYTES (1 << 30)

/* A file's bytes with a NUL behind them. 0, 2 or 301. */
static int read_file(const char *path, char **out)
{
    struct stat about;
    int status = HDCU_ERROR_FILE_NOT_FOUND;
    size_t length = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return status;
    *out = NULL;
    if (!fstat(file, &about) && S_ISREG(about.st_mode) && about.st_size <= FILE_BYTES) {
        status = HDCU_ERROR_OUT_OF_MEMORY;
        *out = malloc((size_t)about.st_size + 1);
    }
    while (*out && length < (size_t)about.st_size) {
        ssize_t got = read(file, *out + length, (size_t)about.st_size - length);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    close(file);
    if (!*out)
        return status;
    (*out)[length] = '\0';
    return 0;
}

hdcu_result hdsoft__cuModuleLoad(hdcu_module *out, const char *path)
{
    char *bytes;
    if (!out || !path)
        return HDCU_ERROR_INVALID_VALUE;
    int status = read_file(path, &bytes);
    if (status)
        return (hdcu_result)status;
    hdcu_result loaded = load(out, bytes, &(jit_options){0});
    free(bytes);
    return loaded;
}

static bool is_module(hdcu_module module)
{
    return hdsoft__handle_is(module, HDSOFT__MODULE);
}

hdcu_result hdsoft__cuModuleUnload(hdcu_module module)
{
    if (!is_module(module) || module->library)
        return HDCU_ERROR_INVALID_HANDLE;
    int status = hdsoft__wait_since(module->context->device, module->birth);
    if (is_module(module)) /* another thread may have been quicker */
        hdsoft__module_unload(module);
    return hdsoft__synchronised(status);
}

hdcu_result hdsoft__cuModuleGetLoadingMode(unsigned *mode)
{
    if (!mode)
        return HDCU_ERROR_INVALID_VALUE;
    *mode = HDCU_MODULE_LAZY_LOADING;
    return 0;
}

/* ---- what is in a module ---- */

static size_t find_entry(const hdsoft__image *image, const char *name)
{
    size_t count = hdsoft_program_entry_count(image->program);
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(hdsoft_program_entry(image->program, i)->name, name))
            return i;
    }
    return SIZE_MAX;
}

hdcu_result hdsoft__cuModuleGetFunction(hdcu_function *out, hdcu_module module, const char *name)
{
    if (!out || !name || !*name)
        return HDCU_ERROR_INVALID_VALUE;
    if (!is_module(module))
        return HDCU_ERROR_INVALID_HANDLE;
    size_t index = find_entry(module->image, name);
    if (index == SIZE_MAX)
        return HDCU_ERROR_NOT_FOUND;
    module->functions[index].loaded = true;
    *out = &module->functions[index];
    return 0;
}

hdcu_result hdsoft__cuModuleGetFunctionCount(unsigned *count, hdcu_module module)
{
    if (!count)
        return HDCU_ERROR_INVALID_VALUE;
    if (!is_module(module))
        return HDCU_ERROR_INVALID_HANDLE;
    *count = (unsigned)module->function_count;
    return 0;
}

hdcu_result hdsoft__cuModuleEnumerateFunctions(hdcu_function *out, unsigned count, hdcu_module module)
{
    if (!out)
        return HDCU_ERROR_INVALID_VALUE;
    if (!is_module(module))
        return HDCU_ERROR_INVALID_HANDLE;
    for (size_t i = 0; i < count && i < module->function_count; i++)
        out[i] = &module->functions[i];
    return 0;
}

static hdcu_result find_global(const hdsoft__module *module, const char *name, hdcu_pointer *address, size_t *bytes)
{
    const hdsoft_program *program = module->image->program;
    for (size_t i = 0; i < hdsoft_program_variable_count(program); i++) {
        const hdsoft_variable *variable = hdsoft_program_variable(program, i);
        if (strcmp(variable->name, name))
            continue;
        if (address)
            *address = hdsoft_instance_address(module->instance, i);
        if (bytes)
            *bytes = variable->size;
        return 0;
    }
    return find_entry(module->image, name) == SIZE_MAX ? HDCU_ERROR_NOT_FOUND : HDCU_ERROR_INVALID_VALUE;
}

hdcu_result hdsoft__cuModuleGetGlobal(hdcu_pointer *address, size_t *bytes, hdcu_module module, const char *name)
{
    if ((!address && !bytes) || !name)
        return HDCU_ERROR_INVALID_VALUE;
    return is_module(module) ? find_global(module, name, address, bytes) : HDCU_ERROR_INVALID_HANDLE;
}

/* ---- libraries ---- */

static bool is_library(hdcu_library library)
{
    return hdsoft__handle_is(library, HDSOFT__LIBRARY);
}

hdcu_result hdsoft__cuLibraryLoadData(hdcu_library *out, const void *bytes, unsigned *jit, void **jit_values,
                                      unsigned jit_count, unsigned *options, void **values, unsigned count)
{
    jit_options read;
    hdsoft__image *image = NULL;
    if (!out || !bytes || (count && !options))
        return HDCU_ERROR_INVALID_VALUE;
    int status = read_options(jit_count, jit, jit_values, &read);
    if (status)
        return (hdcu_result)status;
    /* The log is written now, but as on an H200 only who wants a kernel is told what is wrong with the code. */
    status = (int)parse(bytes, &read, &image);
    return (hdcu_result)(status == HDCU_ERROR_OUT_OF_MEMORY ? status : hdsoft__library_create(image, status, out));
}

hdcu_result hdsoft__cuLibraryUnload(hdcu_library library)
{
    if (!is_library(library))
        return HDCU_ERROR_INVALID_HANDLE;
    int status = 0;
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        int fault = hdsoft__wait_all(&hdsoft__the.devices[i], NULL);
        status = status ? status : fault;
    }
    if (is_library(library))
        hdsoft__library_unload(library);
    return hdsoft__synchronised(status);
}

hdcu_result hdsoft__cuLibraryGetKernel(hdcu_kernel *out, hdcu_library library, const char *name)
{
    if (!out || !name || !*name)
        return HDCU_ERROR_INVALID_VALUE;
    if (!is_library(library))
        return HDCU_ERROR_INVALID_HANDLE;
    if (library->broken)
        return (hdcu_result)library->broken;
    size_t index = find_entry(library->image, name);
    if (index == SIZE_MAX)
        return HDCU_ERROR_NOT_FOUND;
    *out = &library->kernels[index];
    return 0;
}

hdcu_result hdsoft__cuLibraryGetKernelCount(unsigned *count, hdcu_library library)
{
    if (!count)
        return HDCU_ERROR_INVALID_VALUE;
    if (!is_library(library))
        return HDCU_ERROR_INVALID_HANDLE;
    *count = (unsigned)library->kernel_count;
    return 0;
}

hdcu_result hdsoft__cuLibraryEnumerateKernels(hdcu_kernel *out, unsigned count, hdcu_library library)
{
    if (!out || !count)
        return HDCU_ERROR_INVALID_VALUE;
    if (!is_library(library))
        return HDCU_ERROR_INVALID_HANDLE;
    for (size_t i = 0; i < count && i < library->kernel_count; i++)
        out[i] = &library->kernels[i];
    return 0;
}

/* The library's module here; the first time is a load, with its waiting. */
static int module_here(hdsoft__library *library, hdsoft__module **out)
{
    hdsoft__context *context = hdsoft__here();
    for (hdsoft__module *module = context->modules; module; module = module->next) {
        if (module->library == library) {
            *out = module;
            return 0;
        }
    }
    int status = wait_to_load(context->device);
    if (!status && !is_library(library))
        status = HDCU_ERROR_INVALID_HANDLE;
    return status ? status : hdsoft__library_module(library, context, out);
}

hdcu_result hdsoft__cuLibraryGetModule(hdcu_module *out, hdcu_library library)
{
    if (!out)
        return HDCU_ERROR_INVALID_VALUE;
    return is_library(library) ? (hdcu_result)module_here(library, out) : HDCU_ERROR_INVALID_HANDLE;
}

hdcu_result hdsoft__cuLibraryGetGlobal(hdcu_pointer *address, size_t *bytes, hdcu_library library, const char *name)
{
    hdsoft__module *module;
    if ((!address && !bytes) || !name)
        return HDCU_ERROR_INVALID_VALUE;
    int status = is_library(library) ? module_here(library, &module) : HDCU_ERROR_INVALID_HANDLE;
    return status ? (hdcu_result)status : find_global(module, name, address, bytes);
}

hdcu_result hdsoft__cuKernelGetFunction(hdcu_function *out, hdcu_kernel kernel)
{
    hdsoft__module *module;
    if (!out)
        return HDCU_ERROR_INVALID_VALUE;
    if (!hdsoft__handle_is(kernel, HDSOFT__KERNEL))
        return HDCU_ERROR_INVALID_HANDLE;
    size_t index = kernel->index;
    int status = module_here(kernel->library, &module);
    if (!status) {
        module->functions[index].loaded = true;
        *out = &module->functions[index];
    }
    return (hdcu_result)status;
}
