/* SPDX-License-Identifier: MIT */
#include "jit/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/log.h"
#include "base/status.h"
#include "device/device.h"
#include "driver/error.h"
#include "driver/loader.h"
#include "jit/jit.h"
#include "jit/shared.h"
#include "memory/registry.h"

#define DRIVER_LOG_SIZE 8192u

/* ---- loading ---------------------------------------------------------------------------------------------------- */

/* One attempt, inside the device's scope; the driver's own words go into the message. */
static hdrt_status load(hdrt_module *module, const void *image, const char *what)
{
    char log[DRIVER_LOG_SIZE] = "";
    unsigned options[] = {HDCU_JIT_ERROR_LOG_BUFFER, HDCU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof(log) - 1)};
    hdrt__call call =
        HDRT__CALL(module->device->driver, cuModuleLoadDataEx, &module->handle, image, 2, options, values);
    hdrt_status status = hdrt__device_check(module->device, call, "loading %s of '%s'", what, module->name);
    if (status == HDRT_OK || status == HDRT_ERROR_DEVICE_LOST)
        return status;
    log[sizeof(log) - 1] = '\0';
    size_t size = strlen(log);
    while (size > 0 && (log[size - 1] == '\n' || log[size - 1] == ' '))
        log[--size] = '\0';
    if (size > 0)
        hdrt__fail(status, "%s; the driver says: %s", hdrt_last_error(), log);
    return status;
}

/* Drivers take PTX only of their own version and older ones. `out` gets who made it, for messages. */
static bool newer_than_driver(const hdrt_module *module, char out[256])
{
    const hdrt__code *code = module->code;
    const hdrt_runtime *runtime = module->device->runtime;
    unsigned major, minor, version = runtime->driver ? (unsigned)runtime->driver->version : 0;
    if (runtime->kind != HDRT_DRIVER_CUDA || version == 0 ||
        sscanf(code->compiler_version, "NVRTC %u.%u", &major, &minor) != 2 || 1000 * major + 10 * minor <= version)
        return false;
    snprintf(out, 256, "it was made for %s by %s ('%.128s'), and the driver is of CUDA %u.%u, which takes no PTX and "
             "maybe no cubin that is newer", code->arch, code->compiler_version, code->compiler_path, version / 1000,
             version % 1000 / 10);
    return true;
}

static hdrt_status load_code(hdrt_module *module)
{
    char maker[256];
    bool newer = newer_than_driver(module, maker);
    const hdrt__code *code = module->code;
    hdrt__scope scope;
    hdrt_status status = hdrt__device_enter(module->device, &scope);
    if (status != HDRT_OK)
        return status;
    if (code->cubin) {
        status = load(module, code->cubin, "the cubin");
        /* A driver that does not take this cubin may still compile the PTX that was kept beside it. */
        if (status == HDRT_ERROR_INVALID_IMAGE && code->ptx && !newer) {
            hdrt__log(HDRT_LOG_WARN, "%s; trying its PTX", hdrt_last_error());
            status = load(module, code->ptx, "the PTX");
        }
    } else {
        status = load(module, code->ptx, "the PTX");
    }
    hdrt__device_leave(module->device, &scope);
    if (status == HDRT_ERROR_INVALID_IMAGE && newer)
        hdrt__fail(status, "%s; %s", hdrt_last_error(), maker);
    return status;
}

static void unload(hdrt_module *module)
{
    hdrt__scope scope;
    for (uint32_t i = 0; i < module->symbol_count; i++) {
        hdrt__range *range = hdrt__registry_take(module->device, HDRT__RANGE_SYMBOL, module->symbols[i]);
        if (range)
            hdrt__range_free(range);
    }
    if (module->handle && !hdrt__device_is_lost(module->device) &&
        hdrt__device_enter(module->device, &scope) == HDRT_OK) {
        hdrt__call call = HDRT__CALL(module->device->driver, cuModuleUnload, module->handle);
        hdrt__device_leave(module->device, &scope);
        if (call.result && hdrt__result_is_lost(call.result))
            hdrt__device_lose(module->device, call, "unloading a module");
        else if (call.result)
            hdrt__log(HDRT_LOG_ERROR, "unloading '%s': %s failed: %s", module->name, call.text,
                      hdrt__result_name(call.result));
    }
}

/* Frees all but the hold of the device. */
static void free_module(hdrt_module *module)
{
    if (module->kernels)
        for (uint32_t i = 0; i < module->code->table.kernel_count; i++)
            hdrt__kernel_free(module->kernels[i]);
    free(module->kernels);
    free(module->symbols);
    free(module->name);
    hdrt__code_drop(module->code);
    pthread_mutex_destroy(&module->lock);
    free(module);
}

void hdrt__module_unload(hdrt_module *module)
{
    unload(module);
    free_module(module);
}

void hdrt__module_hold(hdrt_module *module)
{
    atomic_fetch_add_explicit(&module->references, 1, memory_order_relaxed);
}

void hdrt__module_hold_cached(hdrt_module *module)
{
    atomic_fetch_add_explicit(&module->references, HDRT__MODULE_CACHED, memory_order_relaxed);
}

/* So many holds, and all of them templates'. */
static bool is_unwanted(const hdrt_module *module, uint64_t references)
{
    return !module->shared && references && (uint32_t)references == references >> 32;
}

bool hdrt__module_is_unwanted(const hdrt_module *module)
{
    return is_unwanted(module, atomic_load(&module->references));
}

/* That others hold it, and whether nobody but templates does, is not changed by a template. */
bool hdrt__module_release_cached_shared(hdrt_module *module)
{
    uint64_t references = atomic_load_explicit(&module->references, memory_order_acquire);
    while ((uint32_t)references > 1 &&
           !atomic_compare_exchange_weak_explicit(&module->references, &references, references - HDRT__MODULE_CACHED,
                                                  memory_order_release, memory_order_acquire)) {
    }
    return (uint32_t)references > 1;
}

/* The last reference to loaded code went. */
static void release_loaded(hdrt_module *module)
{
    hdrt_device *device = module->device;
    hdrt_module *unwanted = module->shared ? hdrt__shared_keep(module, !hdrt__device_is_lost(device)) : module;
    if (unwanted)
        hdrt__module_unload(unwanted);
    hdrt__device_drop(device);
}

/* The last reference went. */
static void release_last(hdrt_module *module)
{
    hdrt_module *loaded = atomic_load(&module->loaded);
    if (loaded == module) {
        release_loaded(module);
        return;
    }
    hdrt_device *device = module->device;
    hdrt__future *future = module->future;
    if (loaded)
        hdrt__module_release(loaded);
    free_module(module);
    hdrt__device_drop(device);
    hdrt__future_destroy(future);
}

void hdrt__module_release_cached(hdrt_module *module)
{
    if (atomic_fetch_sub_explicit(&module->references, HDRT__MODULE_CACHED, memory_order_acq_rel) == HDRT__MODULE_CACHED)
        release_last(module);
}

void hdrt__module_release(hdrt_module *module)
{
    hdrt_device *device = module->device;
    uint64_t references = atomic_load_explicit(&module->references, memory_order_relaxed);
    bool unwanted, held = false;
    do {
        unwanted = is_unwanted(module, references - 1);
        if (unwanted && !held)
            hdrt__device_hold(device); /* what templates hold may go at any time, when this does not any more */
        held |= unwanted;
    } while (!atomic_compare_exchange_weak_explicit(&module->references, &references, references - 1,
                                                    memory_order_acq_rel, memory_order_relaxed));
    if (references == 1)
        release_last(module);
    if (unwanted)
        hdrt__device_code_unwanted(device);
    if (held)
        hdrt__device_drop(device);
}

static hdrt_module *create(hdrt_device *device, const char *name)
{
    hdrt_module *module = calloc(1, sizeof(*module));
    char *copy = name ? strdup(name) : NULL;
    if (!module || (name && !copy)) {
        free(module);
        free(copy);
        hdrt__fail_memory(sizeof(*module), "a module");
        return NULL;
    }
    atomic_init(&module->references, 1);
    pthread_mutex_init(&module->lock, NULL);
    hdrt__device_hold(device);
    module->device = device;
    atomic_init(&module->loaded, module);
    module->name = copy;
    return module;
}

hdrt_status hdrt__module_create_pending(hdrt_device *device, hdrt_module **out_module)
{
    hdrt_module *module = create(device, NULL);
    if (!module)
        return HDRT_ERROR_OUT_OF_MEMORY;
    atomic_store(&module->loaded, NULL);
    hdrt_status status = hdrt__future_create(device->runtime, &module->future);
    if (status != HDRT_OK) {
        hdrt__module_release(module);
        return status;
    }
    *out_module = module;
    return HDRT_OK;
}

void hdrt__module_become(hdrt_module *module, hdrt_module *loaded, bool from_cache)
{
    module->from_cache = from_cache;
    atomic_store_explicit(&module->loaded, loaded, memory_order_release);
}

hdrt_status hdrt__module_loaded(const hdrt_module *module, hdrt_module **out_loaded)
{
    hdrt_status status = hdrt__future_status(module->future);
    if (status == HDRT_OK)
        *out_loaded = atomic_load_explicit(&module->loaded, memory_order_acquire);
    return status;
}

static hdrt_status open_handle(hdrt_module *loaded, bool from_cache, hdrt_module **out_module)
{
    hdrt_module *handle = create(loaded->device, NULL);
    if (!handle) {
        hdrt__module_release(loaded);
        return HDRT_ERROR_OUT_OF_MEMORY;
    }
    atomic_store(&handle->loaded, loaded);
    handle->from_cache = from_cache;
    *out_module = handle;
    return HDRT_OK;
}

/* The kernel at `index`, made unless it is there. */
static hdrt_status make_kernel(hdrt_module *loaded, uint32_t index, hdrt_kernel **out_kernel)
{
    hdrt_kernel *made = NULL;
    pthread_mutex_lock(&loaded->lock);
    *out_kernel = loaded->kernels[index];
    pthread_mutex_unlock(&loaded->lock);
    if (*out_kernel)
        return HDRT_OK;
    hdrt_status status = hdrt__kernel_create(loaded, index, &made);
    if (status != HDRT_OK)
        return status;
    pthread_mutex_lock(&loaded->lock);
    *out_kernel = loaded->kernels[index]; /* another thread may have been first */
    if (!*out_kernel) {
        *out_kernel = loaded->kernels[index] = made;
        made = NULL;
    }
    pthread_mutex_unlock(&loaded->lock);
    hdrt__kernel_free(made);
    return HDRT_OK;
}

/* Whether the device can run code of this kind at all. */
static hdrt_status check_kind(const hdrt_device *device, const hdrt__code *code, const char *name)
{
    bool soft = device->runtime->kind == HDRT_DRIVER_SOFT;
    if (code->kind == HDRT_CODE_LTO_IR)
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED, "'%s' is LTO-IR, which is no code yet: link it first "
                          "(hdrt_image_link)", name);
    if (!code->ptx && !code->cubin)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "the image of '%s' has no code: its compile failed", name);
    if (soft && !code->ptx)
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED, "'%s' is a cubin: the soft driver runs PTX only", name);
    if (soft && code->compiler == HDRT_COMPILER_NVRTC)
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                          "'%s' was compiled by NVRTC, whose output is for NVIDIA GPUs only: for "
                          "the soft driver compile it with clang",
                          name);
    return soft ? HDRT_OK : hdrt__jit_unresolved(code);
}

/*
 * Make all kernels, so that no launch has to load code later. One that cannot be made is left for who asks for it, who
 * is then told why; but code that the driver finds damaged only now counts as not loadable.
 */
static hdrt_status make_kernels(hdrt_module *module)
{
    hdrt_kernel *kernel;
    for (uint32_t i = 0; i < module->code->table.kernel_count; i++) {
        hdrt_status status = make_kernel(module, i, &kernel);
        if (status == HDRT_ERROR_DEVICE_LOST || status == HDRT_ERROR_INVALID_IMAGE)
            return status;
        if (status != HDRT_OK)
            hdrt__log(HDRT_LOG_DEBUG, "%s", hdrt_last_error());
    }
    return HDRT_OK;
}

static bool may_await_grids(const hdrt__code *code)
{
    static const char instruction[] = "griddepcontrol.wait";
    return !code->ptx || memmem(code->ptx, code->ptx_size, instruction, sizeof(instruction) - 1);
}

/* A module with its code loaded, in no table yet. */
static hdrt_status open_loaded(hdrt_device *device, hdrt__code *code, const hdrt__open_options *options,
                               hdrt_module **out_module)
{
    hdrt_module *module = create(device, options->name);
    if (!module)
        return HDRT_ERROR_OUT_OF_MEMORY;
    module->code = hdrt__code_hold(code);
    module->may_await_grids = may_await_grids(code);
    module->from_cache = options->from_cache;
    hdrt_status status = HDRT_OK;
    module->kernels = calloc(code->table.kernel_count + 1u, sizeof(*module->kernels));
    if (!module->kernels)
        status = hdrt__fail_memory(code->table.kernel_count * sizeof(*module->kernels), "a module's kernels");
    if (status == HDRT_OK)
        status = load_code(module);
    if (status == HDRT_OK && !options->lazy)
        status = make_kernels(module);
    if (status != HDRT_OK) {
        hdrt__module_release(module);
        return status;
    }
    *out_module = module;
    return HDRT_OK;
}

hdrt_status hdrt__module_open(hdrt_device *device, hdrt__code *code, const hdrt__open_options *options,
                              hdrt_module **out_module)
{
    static const hdrt__digest unnamed;
    *out_module = NULL;
    hdrt_status status = check_kind(device, code, options->name);
    if (status != HDRT_OK)
        return status;
    bool share = options->shareable && !code->table.writable_variables && !hdrt__digest_equal(&code->name, &unnamed);
    hdrt_module *loaded = share ? hdrt__shared_find(device, &code->name) : NULL;
    if (loaded) {
        if (!options->lazy)
            status = make_kernels(loaded); /* it may have been opened lazily before */
        if (status == HDRT_OK)
            return open_handle(loaded, options->from_cache, out_module);
        hdrt__module_release(loaded);
        return status;
    }
    status = open_loaded(device, code, options, out_module);
    if (status == HDRT_OK && share)
        hdrt__shared_enter(device, *out_module);
    return status;
}

/* ---- the public functions --------------------------------------------------------------------------------------- */

void hdrt_module_destroy(hdrt_module *module)
{
    /* In a forked child other threads' locks may be held for ever, and the driver is not to be called. */
    if (!module || hdrt__runtime_forked(module->device->runtime))
        return;
    if (module->future)
        hdrt__future_cancel(module->future);
    hdrt__module_release(module);
}

hdrt_status hdrt_module_status(const hdrt_module *module)
{
    if (!module)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_module_status: the module is NULL");
    return hdrt__future_status(module->future);
}

void hdrt_module_cancel(hdrt_module *module)
{
    if (module && module->future && !hdrt__runtime_forked(module->device->runtime))
        hdrt__future_cancel(module->future);
}

bool hdrt_module_from_cache(const hdrt_module *module)
{
    hdrt_module *loaded;
    return module && hdrt__module_loaded(module, &loaded) == HDRT_OK && module->from_cache;
}

const char *hdrt_module_log(const hdrt_module *module)
{
    hdrt_module *loaded;
    return module && hdrt__module_loaded(module, &loaded) == HDRT_OK ? loaded->code->log : "";
}

const char *hdrt_module_kernel_name(const hdrt_module *module, uint32_t index)
{
    hdrt_module *loaded;
    if (!module || hdrt__module_loaded(module, &loaded) != HDRT_OK)
        return NULL;
    const hdrt__kernel_table *table = &loaded->code->table;
    return index < table->kernel_count ? table->kernels[index].name : NULL;
}

static hdrt_status no_such_kernel(const hdrt_module *loaded, const char *name)
{
    const hdrt__kernel_table *table = &loaded->code->table;
    hdrt__buffer names = HDRT__BUFFER_INIT;
    bool mangled = false;
    hdrt__kernel_table_names(table, &names);
    for (uint32_t i = 0; i < table->kernel_count; i++)
        mangled = mangled || (strncmp(table->kernels[i].name, "_Z", 2) == 0 && strstr(table->kernels[i].name, name));
    hdrt_status status = hdrt__fail(HDRT_ERROR_NOT_FOUND, "there is no kernel '%s' in '%s'; there: %s%s", name,
                                    loaded->name, names.failed ? "?" : (const char *)names.bytes,
                                    mangled ? " (declare it extern \"C\" for a plain name)" : "");
    hdrt__buffer_free(&names);
    return status;
}

hdrt_status hdrt_module_kernel(hdrt_module *module, const char *name, hdrt_kernel **out_kernel)
{
    uint32_t index;
    hdrt_module *loaded;
    if (!module || !name || !out_kernel)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_module_kernel: %s is NULL",
                          !module ? "the module" : !name ? "the name" : "out_kernel");
    *out_kernel = NULL;
    hdrt_status status = hdrt__device_begin(module->device, "hdrt_module_kernel");
    if (status == HDRT_OK)
        status = hdrt__module_loaded(module, &loaded);
    if (status != HDRT_OK)
        return status;
    const hdrt__kernel_table *table = &loaded->code->table;
    if (!hdrt__kernel_table_find(table, name, &index)) {
        const char *lowered = hdrt__code_lowered(loaded->code, name);
        if (!lowered || !hdrt__kernel_table_find(table, lowered, &index))
            return no_such_kernel(loaded, name);
    }
    return make_kernel(loaded, index, out_kernel);
}

hdrt_status hdrt_module_preload(hdrt_module *module)
{
    hdrt_module *loaded;
    hdrt_kernel *kernel;
    if (!module)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_module_preload: the module is NULL");
    hdrt_status status = hdrt__device_begin(module->device, "hdrt_module_preload");
    if (status == HDRT_OK)
        status = hdrt__module_loaded(module, &loaded);
    for (uint32_t i = 0; status == HDRT_OK && i < loaded->code->table.kernel_count; i++)
        status = make_kernel(loaded, i, &kernel);
    return status;
}

/* Lets range checks know the variable; one that cannot be entered is only not known to them. */
static void enter_symbol(hdrt_module *loaded, uint64_t address, uint64_t bytes)
{
    bool known = bytes == 0;
    pthread_mutex_lock(&loaded->lock);
    for (uint32_t i = 0; i < loaded->symbol_count && !known; i++)
        known = loaded->symbols[i] == address;
    if (!known && loaded->symbol_count == loaded->symbol_capacity) {
        uint32_t capacity = loaded->symbol_capacity ? loaded->symbol_capacity * 2 : 4;
        uint64_t *bigger = reallocarray(loaded->symbols, capacity, sizeof(*bigger));
        known = !bigger;
        if (bigger) {
            loaded->symbols = bigger;
            loaded->symbol_capacity = capacity;
        }
    }
    if (!known && hdrt__registry_add(loaded->device, HDRT__RANGE_SYMBOL, address, bytes) == HDRT_OK)
        loaded->symbols[loaded->symbol_count++] = address;
    pthread_mutex_unlock(&loaded->lock);
}

static hdrt_status no_such_variable(const hdrt_module *loaded, const char *name)
{
    const hdrt__kernel_table *table = &loaded->code->table;
    hdrt__buffer names = HDRT__BUFFER_INIT;
    for (uint32_t i = 0; i < table->variable_count && i < 12; i++)
        hdrt__buffer_format(&names, "%s'%s'", i ? ", " : "", table->variables[i].name);
    hdrt_status status =
        hdrt__fail(HDRT_ERROR_NOT_FOUND, "there is no global or constant variable '%s' in '%s'; there: %s", name,
                   loaded->name, names.size ? (const char *)names.bytes : "none");
    hdrt__buffer_free(&names);
    return status;
}

hdrt_status hdrt_module_global(hdrt_module *module, const char *name, hdrt_ptr *out_ptr, uint64_t *out_bytes)
{
    hdrt__scope scope;
    if (!module || !name)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_module_global: the %s is NULL",
                          module ? "name" : "module");
    hdrt_module *loaded;
    hdrt_status status = hdrt__device_begin(module->device, "hdrt_module_global");
    if (status == HDRT_OK)
        status = hdrt__module_loaded(module, &loaded);
    if (status == HDRT_OK)
        status = hdrt__device_enter(loaded->device, &scope);
    if (status != HDRT_OK)
        return status;
    const char *lowered = hdrt__code_lowered(loaded->code, name), *asked = name;
    name = lowered ? lowered : name;
    hdcu_pointer address = 0;
    size_t bytes = 0;
    hdrt__call call = HDRT__CALL(loaded->device->driver, cuModuleGetGlobal, &address, &bytes, loaded->handle, name);
    hdrt__device_leave(loaded->device, &scope);
    if (call.result == HDCU_ERROR_NOT_FOUND)
        return no_such_variable(loaded, asked);
    status = hdrt__device_check(loaded->device, call, "variable '%s' of '%s'", asked, loaded->name);
    if (status != HDRT_OK)
        return status;
    enter_symbol(loaded, address, bytes);
    if (out_ptr)
        *out_ptr = address;
    if (out_bytes)
        *out_bytes = bytes;
    return HDRT_OK;
}
