/* SPDX-License-Identifier: MIT */
#include "jit/module.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/buffer.h"
#include "base/log.h"
#include "base/status.h"
#include "device/device.h"
#include "driver/error.h"
#include "jit/jit.h"
#include "memory/registry.h"

#define DRIVER_LOG_SIZE 8192u

/* Loaded modules that may be shared, by the name of their code. They are not held here. */
struct shared_entry {
    hdrt__digest name;
    hdrt_module *module;
    UT_hash_handle hh;
};

struct shared_table {
    pthread_mutex_t lock; /* a leaf */
    struct shared_entry *entries;
};

static void destroy_table(void *state)
{
    struct shared_table *table = state;
    struct shared_entry *entry, *next;
    HASH_ITER(hh, table->entries, entry, next)
    {
        HASH_DEL(table->entries, entry);
        free(entry);
    }
    pthread_mutex_destroy(&table->lock);
    free(table);
}

static void *create_table(void *argument)
{
    struct shared_table *table = calloc(1, sizeof(*table));
    if (table)
        pthread_mutex_init(&table->lock, NULL);
    else
        hdrt__fail_memory(sizeof(*table), "the table of modules");
    return table;
}

static struct shared_table *table_of(hdrt_device *device)
{
    return hdrt__attachment_get(&device->jit, &device->lock, create_table, NULL, destroy_table);
}

/* The module that already has this code, held; NULL if there is none. */
static hdrt_module *find_shared(struct shared_table *table, const hdrt__digest *name)
{
    struct shared_entry *entry = NULL;
    hdrt_module *found = NULL;
    pthread_mutex_lock(&table->lock);
    HASH_FIND(hh, table->entries, name, sizeof(*name), entry);
    if (entry) {
        /* One whose last reference is gone is being unloaded and waits for this lock to leave the table. */
        unsigned count = atomic_load(&entry->module->references);
        while (count != 0 && !atomic_compare_exchange_weak(&entry->module->references, &count, count + 1))
            continue;
        found = count != 0 ? entry->module : NULL;
    }
    pthread_mutex_unlock(&table->lock);
    return found;
}

/* Enter a loaded module, unless another with the same code is there by now. */
static void enter_table(struct shared_table *table, hdrt_module *module)
{
    struct shared_entry *there = NULL, *entry = calloc(1, sizeof(*entry));
    if (!entry)
        return;
    *entry = (struct shared_entry){.name = module->code->name, .module = module};
    pthread_mutex_lock(&table->lock);
    HASH_FIND(hh, table->entries, &entry->name, sizeof(entry->name), there);
    if (!there)
        HASH_ADD(hh, table->entries, name, sizeof(entry->name), entry);
    module->shared = !there && entry->hh.tbl;
    pthread_mutex_unlock(&table->lock);
    if (!module->shared)
        free(entry);
}

static void leave_table(struct shared_table *table, hdrt_module *module)
{
    struct shared_entry *entry = NULL;
    pthread_mutex_lock(&table->lock);
    HASH_FIND(hh, table->entries, &module->code->name, sizeof(module->code->name), entry);
    if (entry && entry->module == module)
        HASH_DEL(table->entries, entry);
    else
        entry = NULL;
    pthread_mutex_unlock(&table->lock);
    free(entry);
}

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

static hdrt_status load_code(hdrt_module *module)
{
    const hdrt__code *code = module->code;
    hdrt__scope scope;
    hdrt_status status = hdrt__device_enter(module->device, &scope);
    if (status != HDRT_OK)
        return status;
    if (code->cubin) {
        status = load(module, code->cubin, "the cubin");
        /* A driver that does not take this cubin may still compile the PTX that was kept beside it. */
        if (status == HDRT_ERROR_INVALID_IMAGE && code->ptx) {
            hdrt__log(HDRT_LOG_WARN, "%s; trying its PTX", hdrt_last_error());
            status = load(module, code->ptx, "the PTX");
        }
    } else {
        status = load(module, code->ptx, "the PTX");
    }
    hdrt__device_leave(module->device, &scope);
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

static void free_module(hdrt_module *module)
{
    hdrt_device *device = module->device;
    if (module->kernels)
        for (uint32_t i = 0; i < module->code->table.kernel_count; i++)
            hdrt__kernel_free(module->kernels[i]);
    free(module->kernels);
    free(module->symbols);
    free(module->name);
    hdrt__code_drop(module->code);
    pthread_mutex_destroy(&module->lock);
    free(module);
    hdrt__device_drop(device);
}

void hdrt__module_hold(hdrt_module *module)
{
    atomic_fetch_add_explicit(&module->references, 1, memory_order_relaxed);
}

void hdrt__module_release(hdrt_module *module)
{
    if (atomic_fetch_sub_explicit(&module->references, 1, memory_order_acq_rel) != 1)
        return;
    if (module->loaded != module) {
        hdrt__module_release(module->loaded);
    } else {
        if (module->shared)
            leave_table(table_of(module->device), module);
        unload(module);
    }
    free_module(module);
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
    module->loaded = module;
    module->name = copy;
    return module;
}

static hdrt_status open_handle(hdrt_module *loaded, bool from_cache, hdrt_module **out_module)
{
    hdrt_module *handle = create(loaded->device, NULL);
    if (!handle) {
        hdrt__module_release(loaded);
        return HDRT_ERROR_OUT_OF_MEMORY;
    }
    handle->loaded = loaded;
    handle->from_cache = from_cache;
    *out_module = handle;
    return HDRT_OK;
}

hdrt_status hdrt__module_open(hdrt_device *device, hdrt__code *code, const char *name, bool from_cache, bool shareable,
                              hdrt_module **out_module)
{
    static const hdrt__digest unnamed;
    struct shared_table *table = NULL;
    bool soft = device->runtime->kind == HDRT_DRIVER_SOFT;
    *out_module = NULL;
    if (!code->ptx && !code->cubin)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "the image of '%s' has no code: its compile failed", name);
    if (soft && !code->ptx)
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED, "'%s' is a cubin: the soft driver runs PTX only", name);
    if (soft && code->compiler == HDRT_COMPILER_NVRTC)
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                          "'%s' was compiled by NVRTC, whose output is for NVIDIA GPUs only: for "
                          "the soft driver compile it with clang",
                          name);
    if (!soft && hdrt__jit_unresolved(code) != HDRT_OK)
        return HDRT_ERROR_UNSUPPORTED;
    if (shareable && !code->table.writable_variables && !hdrt__digest_equal(&code->name, &unnamed)) {
        table = table_of(device);
        if (!table)
            return HDRT_ERROR_OUT_OF_MEMORY;
        hdrt_module *loaded = find_shared(table, &code->name);
        if (loaded)
            return open_handle(loaded, from_cache, out_module);
    }
    hdrt_module *module = create(device, name);
    if (!module)
        return HDRT_ERROR_OUT_OF_MEMORY;
    module->code = hdrt__code_hold(code);
    module->from_cache = from_cache;
    hdrt_status status = HDRT_OK;
    module->kernels = calloc(code->table.kernel_count + 1u, sizeof(*module->kernels));
    if (!module->kernels)
        status = hdrt__fail_memory(code->table.kernel_count * sizeof(*module->kernels), "a module's kernels");
    if (status == HDRT_OK)
        status = load_code(module);
    if (status != HDRT_OK) {
        hdrt__module_release(module);
        return status;
    }
    if (table)
        enter_table(table, module);
    *out_module = module;
    return HDRT_OK;
}

/* ---- the public functions --------------------------------------------------------------------------------------- */

void hdrt_module_destroy(hdrt_module *module)
{
    /* In a forked child other threads' locks may be held for ever, and the driver is not to be called. */
    if (module && !hdrt__runtime_forked(module->device->runtime))
        hdrt__module_release(module);
}

bool hdrt_module_from_cache(const hdrt_module *module)
{
    return module && module->from_cache;
}

const char *hdrt_module_log(const hdrt_module *module)
{
    return module ? module->loaded->code->log : "";
}

const char *hdrt_module_kernel_name(const hdrt_module *module, uint32_t index)
{
    const hdrt__kernel_table *table = module ? &module->loaded->code->table : NULL;
    return table && index < table->kernel_count ? table->kernels[index].name : NULL;
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
    if (!module || !name || !out_kernel)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_module_kernel: %s is NULL",
                          !module ? "the module" : !name ? "the name" : "out_kernel");
    *out_kernel = NULL;
    hdrt_module *loaded = module->loaded;
    hdrt_status status = hdrt__device_begin(loaded->device, "hdrt_module_kernel");
    if (status != HDRT_OK)
        return status;
    if (!hdrt__kernel_table_find(&loaded->code->table, name, &index))
        return no_such_kernel(loaded, name);
    pthread_mutex_lock(&loaded->lock);
    hdrt_kernel *kernel = loaded->kernels[index], *made = NULL;
    pthread_mutex_unlock(&loaded->lock);
    if (!kernel) {
        status = hdrt__kernel_create(loaded, index, &made);
        if (status != HDRT_OK)
            return status;
        pthread_mutex_lock(&loaded->lock);
        kernel = loaded->kernels[index]; /* another thread may have been first */
        if (!kernel) {
            kernel = loaded->kernels[index] = made;
            made = NULL;
        }
        pthread_mutex_unlock(&loaded->lock);
        hdrt__kernel_free(made);
    }
    *out_kernel = kernel;
    return HDRT_OK;
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
    hdrt_module *loaded = module->loaded;
    hdrt_status status = hdrt__device_begin(loaded->device, "hdrt_module_global");
    if (status == HDRT_OK)
        status = hdrt__device_enter(loaded->device, &scope);
    if (status != HDRT_OK)
        return status;
    hdcu_pointer address = 0;
    size_t bytes = 0;
    hdrt__call call = HDRT__CALL(loaded->device->driver, cuModuleGetGlobal, &address, &bytes, loaded->handle, name);
    hdrt__device_leave(loaded->device, &scope);
    if (call.result == HDCU_ERROR_NOT_FOUND)
        return no_such_variable(loaded, name);
    status = hdrt__device_check(loaded->device, call, "variable '%s' of '%s'", name, loaded->name);
    if (status != HDRT_OK)
        return status;
    enter_symbol(loaded, address, bytes);
    if (out_ptr)
        *out_ptr = address;
    if (out_bytes)
        *out_bytes = bytes;
    return HDRT_OK;
}
