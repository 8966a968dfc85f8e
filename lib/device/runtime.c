/* SPDX-License-Identifier: MIT */
#include "device/runtime.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "device/describe.h"
#include "driver/companions.h"
#include "driver/error.h"
#include "driver/fork.h"
#include "driver/loader.h"
#include "driver/scope.h"
#include "driver/thread.h"

#include <hdrt/interop.h>

/* Processors from which on a waiting thread may look again and again. */
#define PROCESSORS_TO_SPARE 8

/* ---- attachments ------------------------------------------------------------------------------------------------- */

void *hdrt__attachment_get(hdrt__attachment *attachment, pthread_mutex_t *lock, void *(*create)(void *argument),
                           void *argument, void (*destroy)(void *state))
{
    void *state = atomic_load_explicit(&attachment->state, memory_order_acquire);
    if (state) {
        return state;
    }
    pthread_mutex_lock(lock);
    state = atomic_load(&attachment->state);
    if (!state && (state = create(argument))) {
        attachment->destroy = destroy;
        atomic_store_explicit(&attachment->state, state, memory_order_release);
    }
    pthread_mutex_unlock(lock);
    return state;
}

void hdrt__attachment_end(hdrt__attachment *attachment)
{
    void *state = atomic_exchange(&attachment->state, NULL);
    if (state) {
        attachment->destroy(state);
    }
}

/* ---- making and ending ------------------------------------------------------------------------------------------- */

static void runtime_free(hdrt_runtime *runtime)
{
    hdrt__attachment_end(&runtime->jit);
    hdrt__attachment_end(&runtime->memory);
    hdrt__timeline_table_destroy(runtime->timelines);
    hdrt__order_destroy(runtime->order);
    for (uint32_t i = 0; runtime->faults && i < runtime->device_count; i++) {
        hdrt__failure_drop(runtime->faults[i].failure);
    }
    free(runtime->faults);
    free(runtime->infos);
    hdrt__companions_free(runtime->companions);
    for (uint32_t i = 0; runtime->cache_read_only_option && i < runtime->cache_read_only_count; i++)
        free(runtime->cache_read_only_option[i]);
    free(runtime->cache_read_only_option);
    free(runtime->clang_option);
    free(runtime->nvrtc_option);
    free(runtime->cache_dir_option);
    pthread_mutex_destroy(&runtime->parking);
    pthread_mutex_destroy(&runtime->lock);
    free(runtime);
}

/* Copy an option's text; NULL stays NULL. */
static hdrt_status copy_text(const char *text, char **out_text)
{
    if (text && !(*out_text = strdup(text))) {
        return hdrt__fail_memory(strlen(text) + 1, "a runtime option");
    }
    return HDRT_OK;
}

static hdrt_status copy_read_only(const hdrt_runtime_options *options, hdrt_runtime *runtime)
{
    uint32_t count = options->cache_read_only_count;
    if (!options->cache_read_only) {
        if (count)
            return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                              "hdrt_runtime_options.cache_read_only is NULL, cache_read_only_count is %u", count);
        return HDRT_OK;
    }
    runtime->cache_read_only_option = calloc(count + 1u, sizeof(char *));
    if (!runtime->cache_read_only_option)
        return hdrt__fail_memory(count * sizeof(char *), "a runtime option");
    runtime->cache_read_only_count = count;
    for (uint32_t i = 0; i < count; i++) {
        const char *path = options->cache_read_only[i];
        if (!path || !*path)
            return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_runtime_options.cache_read_only[%u] is %s", i,
                              path ? "empty" : "NULL");
        hdrt_status status = copy_text(path, &runtime->cache_read_only_option[i]);
        if (status != HDRT_OK)
            return status;
    }
    return HDRT_OK;
}

static hdrt_status keep_options(hdrt_runtime *runtime, const hdrt_runtime_options *options)
{
    if ((unsigned)options->wait > HDRT_WAIT_BLOCK) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_runtime_options.wait is %d, none of hdrt_wait",
                          (int)options->wait);
    }
    runtime->compile_workers = options->compile_workers;
    runtime->wait = options->wait;
    runtime->spare_processors = hdrt__processors() >= PROCESSORS_TO_SPARE;
    runtime->cache_limit_bytes = options->cache_limit_bytes;
    hdrt_status status = copy_text(options->cache_dir, &runtime->cache_dir_option);
    if (status == HDRT_OK) {
        status = copy_text(options->nvrtc, &runtime->nvrtc_option);
    }
    if (status == HDRT_OK) {
        status = copy_text(options->clang, &runtime->clang_option);
    }
    if (status == HDRT_OK) {
        status = copy_read_only(options, runtime);
    }
    return status;
}

static hdrt_status load_driver(hdrt_runtime *runtime, const hdrt_runtime_options *options)
{
    const char *path = options->driver_path;
    if (runtime->kind == HDRT_DRIVER_NONE) {
        return HDRT_OK;
    }
    if (runtime->kind == HDRT_DRIVER_SOFT && !path) {
        path = runtime->companions->soft;
        if (!path) {
            return hdrt__companion_missing(runtime->companions, "libhdsoft.so", "the soft driver");
        }
    }
    hdrt_status status = hdrt__driver_load(runtime->kind, path, &runtime->driver);
    if (status == HDRT_OK) {
        runtime->device_count = (uint32_t)runtime->driver->device_count;
        hdrt__log(HDRT_LOG_INFO, "driver %s: CUDA %d.%d, %u devices", runtime->driver->path,
                  runtime->driver->version / 1000, runtime->driver->version % 1000 / 10, runtime->device_count);
    }
    return status;
}

/* Describe every device now, so that no later question needs a driver that may be lost by then. */
static hdrt_status describe_devices(hdrt_runtime *runtime)
{
    if (!runtime->device_count) {
        return HDRT_OK;
    }
    runtime->infos = calloc(runtime->device_count, sizeof *runtime->infos);
    runtime->faults = calloc(runtime->device_count, sizeof *runtime->faults);
    if (!runtime->infos || !runtime->faults) {
        return hdrt__fail_memory(runtime->device_count * sizeof *runtime->infos, "the devices' descriptions");
    }
    const hdrt__driver_table *table = &runtime->driver->table;
    hdrt__scope scope;
    hdrt__call call = hdrt__scope_enter(table, NULL, &scope);
    if (call.result) {
        return hdrt__call_failed(call, "describing devices");
    }
    hdrt_status status = HDRT_OK;
    for (uint32_t i = 0; i < runtime->device_count && status == HDRT_OK; i++) {
        status = hdrt__describe_device(table, i, &runtime->infos[i]);
    }
    hdrt__scope_leave(table, &scope);
    return status;
}

static hdrt_status fill_runtime(hdrt_runtime *runtime, const hdrt_runtime_options *options)
{
    hdrt_status status = hdrt__fork_watch(&runtime->fork_generation);
    if (status == HDRT_OK) {
        status = hdrt__driver_choose(options->driver, &runtime->kind);
    }
    if (status == HDRT_OK) {
        status = keep_options(runtime, options);
    }
    if (status == HDRT_OK) {
        status = hdrt__companions_find(options->libexec, &runtime->companions);
    }
    if (status == HDRT_OK) {
        status = hdrt__order_create(&runtime->order);
    }
    if (status == HDRT_OK) {
        status = hdrt__timeline_table_create(runtime, &runtime->timelines);
    }
    if (status == HDRT_OK) {
        status = load_driver(runtime, options);
    }
    if (status == HDRT_OK) {
        status = describe_devices(runtime);
    }
    return status;
}

hdrt_status hdrt_runtime_create(const hdrt_runtime_options *options, hdrt_runtime **out_runtime)
{
    hdrt_runtime_options known;
    if (!out_runtime) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_runtime_create: out_runtime is NULL");
    }
    *out_runtime = NULL;
    hdrt_status status = hdrt__options_read("hdrt_runtime_options", options, &known, sizeof known,
                                            offsetof(hdrt_runtime_options, reserved));
    if (status != HDRT_OK) {
        return status;
    }
    hdrt_runtime *runtime = calloc(1, sizeof *runtime);
    if (!runtime) {
        return hdrt__fail_memory(sizeof *runtime, "a runtime");
    }
    atomic_init(&runtime->references, 1);
    pthread_mutex_init(&runtime->lock, NULL);
    hdrt__mutex_init_short(&runtime->parking);
    status = fill_runtime(runtime, &known);
    if (status != HDRT_OK) {
        runtime_free(runtime);
        return status;
    }
    *out_runtime = runtime;
    return HDRT_OK;
}

void hdrt__runtime_hold(hdrt_runtime *runtime)
{
    atomic_fetch_add_explicit(&runtime->references, 1, memory_order_relaxed);
}

void hdrt__runtime_drop(hdrt_runtime *runtime)
{
    if (atomic_fetch_sub_explicit(&runtime->references, 1, memory_order_acq_rel) == 1) {
        runtime_free(runtime);
    }
}

void hdrt_runtime_destroy(hdrt_runtime *runtime)
{
    if (runtime && !hdrt__runtime_forked(runtime)) {
        hdrt__runtime_drop(runtime);
    }
}

/* ---- the beginning of public functions --------------------------------------------------------------------------- */

bool hdrt__runtime_forked(const hdrt_runtime *runtime)
{
    return hdrt__forked(runtime->fork_generation);
}

hdrt_status hdrt__runtime_begin(const hdrt_runtime *runtime, const char *function)
{
    if (!runtime) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s: the runtime is NULL", function);
    }
    if (hdrt__runtime_forked(runtime)) {
        return hdrt__fail(HDRT_ERROR_FORKED,
                          "%s: this process is a forked child of the one that created the runtime; CUDA does not "
                          "survive fork, so create runtimes after it, or start the child with exec",
                          function);
    }
    return HDRT_OK;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

uint64_t hdrt_runtime_race_count(const hdrt_runtime *runtime)
{
    return runtime ? hdrt__order_count(runtime->order) : 0;
}

hdrt_status hdrt_runtime_device_info(hdrt_runtime *runtime, uint32_t index, hdrt_device_info *out_info)
{
    hdrt_status status = hdrt__runtime_begin(runtime, "hdrt_runtime_device_info");
    if (status != HDRT_OK) {
        return status;
    }
    if (index >= runtime->device_count) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "no device %u: there are %u, counted from 0", index,
                          runtime->device_count);
    }
    return hdrt__info_write("hdrt_device_info", out_info, &runtime->infos[index], sizeof runtime->infos[index]);
}

void *hdrt_runtime_driver_symbol(hdrt_runtime *runtime, const char *name)
{
    if (hdrt__runtime_begin(runtime, "hdrt_runtime_driver_symbol") != HDRT_OK || !runtime->driver || !name) {
        return NULL;
    }
    return hdrt__driver_symbol(runtime->driver, name);
}
