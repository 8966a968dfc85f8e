/* SPDX-License-Identifier: MIT */
#include "driver/loader.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/number.h"
#include "base/status.h"
#include "driver/error.h"
#include "driver/fork.h"

enum need { OPTIONAL, REQUIRED };

static const struct entry {
    const char *name, *symbol;
    int version;
    enum need need;
    size_t offset;
} entries[] = {
#define ENTRY(name, symbol, version, need, parameters)                                                                 \
    {#name, symbol, version, need, offsetof(hdrt__driver_table, name)},
    HDCU_SYMBOL_LIST(ENTRY)
#undef ENTRY
};
#define ENTRY_COUNT (sizeof entries / sizeof *entries)

/* For "%d.%d". */
#define MAJOR_MINOR(version) (version) / 1000, (version) % 1000 / 10
#define MIN_TEXT "11.4"
_Static_assert(HDRT__DRIVER_VERSION_MIN == 11040, "MIN_TEXT says the same");

/* NVIDIA's driver: by the loader's rules, then where Windows puts it. A privileged program's loader ignores the
 * environment by itself. */
static const char *const cuda_names[] = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};

typedef struct loaded {
    hdrt__driver driver;
    uint64_t generation; /* of the process that initialised it */
    struct loaded *next;
} loaded;

/*
 * The one global: the drivers of this process, never freed, found again by library handle and kind. `lock` is held
 * over loading and cuInit; in a child of fork it is made anew, since whoever held it is not there.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static loaded *drivers;
static bool cuda_initialised; /* cuInit of NVIDIA's driver was at least begun, by the process of: */
static uint64_t cuda_generation;

static pthread_once_t lock_once = PTHREAD_ONCE_INIT;
static bool lock_watched;

static void renew_lock(void)
{
    pthread_mutex_init(&lock, NULL);
}

static void watch_lock(void)
{
    lock_watched = pthread_atfork(NULL, NULL, renew_lock) == 0;
}

hdrt_status hdrt__driver_choose(hdrt_driver_kind asked, hdrt_driver_kind *out_kind)
{
    const char *wanted = hdrt__environment(HDRT__ENV_DRIVER);
    *out_kind = asked;
    switch (asked) {
    case HDRT_DRIVER_CUDA:
    case HDRT_DRIVER_SOFT:
    case HDRT_DRIVER_NONE:
        return HDRT_OK;
    case HDRT_DRIVER_DEFAULT:
        if (!wanted || strcmp(wanted, "cuda") == 0) {
            *out_kind = HDRT_DRIVER_CUDA;
            return HDRT_OK;
        }
        if (strcmp(wanted, "soft") == 0) {
            *out_kind = HDRT_DRIVER_SOFT;
            return HDRT_OK;
        }
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "HDRT_DRIVER is '%s', expected 'cuda' or 'soft'", wanted);
    }
    return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "driver kind %d: expected one of hdrt_driver_kind", (int)asked);
}

static void *open_library(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

static hdrt_status open_soft(const char *path, void **out_library)
{
    if (!path)
        return hdrt__fail(HDRT_ERROR_COMPANION, "the soft driver (libhdsoft.so) was not found");
    /* A name without a slash would be searched for by the loader; this driver is never searched for. */
    char *absolute = realpath(path, NULL);
    if (!absolute)
        return hdrt__fail(HDRT_ERROR_COMPANION, "the soft driver '%s' cannot be opened: %m", path);
    *out_library = open_library(absolute);
    free(absolute);
    if (!*out_library)
        return hdrt__fail(HDRT_ERROR_COMPANION, "the soft driver cannot be loaded: %s", dlerror());
    return HDRT_OK;
}

static hdrt_status open_cuda(const char *path, void **out_library)
{
    const char *const *names = path ? &path : cuda_names;
    size_t count = path ? 1 : sizeof cuda_names / sizeof *cuda_names;
    hdrt__buffer tried = HDRT__BUFFER_INIT;
    for (size_t i = 0; i < count; i++) {
        *out_library = open_library(names[i]);
        if (*out_library)
            break;
        const char *words = dlerror();
        hdrt__buffer_format(&tried, "%s%s (%s)", i ? ", " : "", names[i], words ? words : "no reason given");
    }
    hdrt_status status = HDRT_OK;
    if (!*out_library && tried.failed)
        status = hdrt__fail_memory(0, "the reasons why no NVIDIA driver library could be loaded");
    else if (!*out_library)
        status = hdrt__fail(HDRT_ERROR_NO_DRIVER,
                            "no NVIDIA driver library could be loaded; tried %s; install NVIDIA's driver, or run on "
                            "the CPU with HDRT_DRIVER=soft",
                            (const char *)tried.bytes);
    hdrt__buffer_free(&tried);
    return status;
}

/* The file that the loader mapped; the name asked for where it does not tell. malloc'ed. */
static char *library_path(void *library, const char *asked)
{
    struct link_map *map = NULL;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && map->l_name[0])
        asked = map->l_name;
    return strdup(asked ? asked : cuda_names[0]);
}

static void *table_get(const hdrt__driver_table *table, const struct entry *entry)
{
    void *function;
    memcpy(&function, (const char *)table + entry->offset, sizeof function);
    return function;
}

static void *resolve_entry(const hdrt__driver *driver, hdcu_soft_lookup soft, const struct entry *entry)
{
    if (soft)
        return soft(entry->symbol);
    void *function = NULL;
    /* Legacy default stream whatever the caller was compiled for; asking for the pinned version, never the newest. */
    hdcu_result result = HDCU_ERROR_NOT_FOUND;
    if (driver->table.cuGetProcAddress)
        result = driver->table.cuGetProcAddress(entry->name, &function, entry->version,
                                                HDCU_GET_PROC_ADDRESS_LEGACY_STREAM);
    return result == HDCU_SUCCESS && function ? function : dlsym(driver->library, entry->symbol);
}

/* Fill the table, from its first entry on: cuGetProcAddress is among the first, and finds the others. */
static hdrt_status resolve(hdrt__driver *driver, hdcu_soft_lookup soft)
{
    size_t absent = 0;
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        const struct entry *entry = &entries[i];
        void *function = resolve_entry(driver, soft, entry);
        memcpy((char *)&driver->table + entry->offset, &function, sizeof function);
        if (function)
            continue;
        if (entry->need == REQUIRED)
            return hdrt__fail(soft ? HDRT_ERROR_COMPANION : HDRT_ERROR_NO_DRIVER,
                              "the driver '%s' (CUDA %d.%d) lacks %s (symbol %s), which every driver since " MIN_TEXT
                              " has: it is damaged or not what its name says",
                              driver->path, MAJOR_MINOR(driver->version), entry->name, entry->symbol);
        absent++;
        hdrt__log(HDRT_LOG_DEBUG, "driver '%s' has no %s (optional)", driver->path, entry->symbol);
    }
    hdrt__log(HDRT_LOG_DEBUG, "driver '%s': %zu of %zu entry points", driver->path, ENTRY_COUNT - absent, ENTRY_COUNT);
    return HDRT_OK;
}

static hdrt_status stub_found(const hdrt__driver *driver)
{
    return hdrt__fail(HDRT_ERROR_DRIVER_STUB,
                      "'%s' is the CUDA toolkit's stub, which is only for linking: take its folder out of "
                      "LD_LIBRARY_PATH and the loader's configuration, so that the driver's own libcuda.so.1 is found",
                      driver->path);
}

/* Ask the version before anything else: an old driver lacks entries, and must be called old, not damaged. */
static hdrt_status check_version(hdrt__driver *driver, hdcu_soft_lookup soft)
{
    static const char symbol[] = "cuDriverGetVersion";
    hdcu_result (*get_version)(int *);
    void *function = soft ? soft(symbol) : dlsym(driver->library, symbol);
    if (!function)
        return hdrt__fail(soft ? HDRT_ERROR_COMPANION : HDRT_ERROR_NO_DRIVER,
                          "'%s' is not a CUDA driver: it lacks %s", driver->path, symbol);
    memcpy(&get_version, &function, sizeof get_version);
    hdrt__call call = {get_version(&driver->version), "cuDriverGetVersion(&version)"};
    if (call.result == HDCU_ERROR_STUB_LIBRARY)
        return stub_found(driver);
    if (call.result)
        return hdrt__call_failed(call, "asking the driver '%s' for its version", driver->path);
    if (driver->version < HDRT__DRIVER_VERSION_MIN)
        return hdrt__fail(HDRT_ERROR_DRIVER_TOO_OLD,
                          "the driver '%s' supports CUDA %d.%d, and libhdrt needs " MIN_TEXT
                          ": install a newer NVIDIA driver",
                          driver->path, MAJOR_MINOR(driver->version));
    return HDRT_OK;
}

static hdrt_status no_device(const hdrt__driver *driver)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (driver->kind == HDRT_DRIVER_CUDA && visible)
        return hdrt__fail(HDRT_ERROR_NO_DEVICE,
                          "no CUDA device is visible: CUDA_VISIBLE_DEVICES is '%s', which hides those that it does not "
                          "list; unset it to see all",
                          visible);
    return hdrt__fail(HDRT_ERROR_NO_DEVICE,
                      "the driver '%s' finds no device: is there an NVIDIA GPU, and may this user open /dev/nvidia*?",
                      driver->path);
}

/* What to do about a failed cuInit, where there is something. */
static const char *advice(hdcu_result result)
{
    switch (result) {
    case HDCU_ERROR_SYSTEM_DRIVER_MISMATCH:
        return "the driver was updated while its kernel module was loaded: reboot, or reload the nvidia modules";
    case HDCU_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return "take the cuda-compat package's folder out of LD_LIBRARY_PATH, or install a newer kernel driver";
    case HDCU_ERROR_SYSTEM_NOT_READY:
        return "start nvidia-fabricmanager, or wait until the system is up";
    case HDCU_ERROR_NOT_INITIALIZED:
        return "this process may be a forked child of one that used CUDA: use a new process";
    case HDCU_ERROR_OPERATING_SYSTEM:
    case HDCU_ERROR_UNKNOWN:
        return "see the kernel log; the nvidia_uvm module or its device files may be missing";
    default:
        return "see the kernel log and nvidia-smi";
    }
}

static hdrt_status initialise(hdrt__driver *driver, uint64_t generation)
{
    if (driver->kind == HDRT_DRIVER_CUDA) {
        cuda_initialised = true;
        cuda_generation = generation;
    }
    hdrt__call call = HDRT__CALL(&driver->table, cuInit, 0);
    if (call.result == HDCU_ERROR_STUB_LIBRARY)
        return stub_found(driver);
    if (call.result == HDCU_ERROR_NO_DEVICE)
        return no_device(driver);
    if (call.result) {
        hdrt_status status = hdrt__result_status(call.result);
        /* Whatever it was, no device of ours was lost: there was none yet. */
        if (status != HDRT_ERROR_DRIVER_TOO_OLD)
            status = HDRT_ERROR_DRIVER;
        return hdrt__fail(status, "initialising the driver '%s' (CUDA %d.%d): %s failed: %s (%u): %s; %s", driver->path,
                          MAJOR_MINOR(driver->version), call.text, hdrt__result_name(call.result), call.result,
                          hdrt__result_text(call.result), advice(call.result));
    }
    call = HDRT__CALL(&driver->table, cuDeviceGetCount, &driver->device_count);
    if (call.result && call.result != HDCU_ERROR_NO_DEVICE)
        return hdrt__call_failed(call, "counting the devices of the driver '%s'", driver->path);
    if (call.result || driver->device_count <= 0)
        return no_device(driver);
    return HDRT_OK;
}

static hdrt_status make_driver(hdrt_driver_kind kind, void *library, const char *path, uint64_t generation,
                               loaded **out_made)
{
    hdcu_soft_lookup soft = NULL;
    hdrt_status status;
    loaded *made = calloc(1, sizeof *made);
    if (!made)
        return hdrt__fail_memory(sizeof *made, "the driver table");
    made->driver.kind = kind;
    made->driver.library = library;
    made->generation = generation;
    made->driver.path = library_path(library, path);
    if (!made->driver.path) {
        status = hdrt__fail_memory(path ? strlen(path) + 1 : 0, "the driver's path");
        goto free_made;
    }
    if (kind == HDRT_DRIVER_SOFT) {
        void *lookup = dlsym(library, HDCU_SOFT_LOOKUP);
        memcpy(&soft, &lookup, sizeof soft);
        if (!soft) {
            status = hdrt__fail(HDRT_ERROR_COMPANION, "'%s' is not libhdrt's soft driver: it lacks " HDCU_SOFT_LOOKUP,
                                made->driver.path);
            goto free_path;
        }
    }
    if (soft) {
        void *observe = soft("hdsoft_observe");
        memcpy(&made->driver.observe, &observe, sizeof observe);
    }
    status = check_version(&made->driver, soft);
    if (status == HDRT_OK)
        status = resolve(&made->driver, soft);
    if (status == HDRT_OK)
        status = initialise(&made->driver, generation);
    if (status != HDRT_OK)
        goto free_path;
    *out_made = made;
    return HDRT_OK;

free_path:
    free(made->driver.path);
free_made:
    free(made);
    return status;
}

static hdrt_status load_locked(hdrt_driver_kind kind, const char *path, uint64_t generation, hdrt__driver **out_driver)
{
    if (kind == HDRT_DRIVER_CUDA && cuda_initialised && cuda_generation != generation)
        return hdrt__fail(HDRT_ERROR_FORKED,
                          "this process is a forked child of one that had initialised NVIDIA's driver, which does not "
                          "survive fork: use a new process (fork and exec, or spawn)");
    void *library = NULL;
    hdrt_status status = kind == HDRT_DRIVER_SOFT ? open_soft(path, &library) : open_cuda(path, &library);
    if (status != HDRT_OK)
        return status;
    for (loaded *known = drivers; known; known = known->next)
        if (known->driver.library == library && known->driver.kind == kind) {
            if (known->generation != generation)
                return hdrt__fail(HDRT_ERROR_FORKED,
                                  "this process is a forked child of one that had initialised the driver '%s', which "
                                  "does not survive fork: use a new process (fork and exec, or spawn)",
                                  known->driver.path);
            *out_driver = &known->driver;
            return HDRT_OK;
        }
    loaded *made = NULL;
    status = make_driver(kind, library, path, generation, &made);
    if (status != HDRT_OK)
        return status; /* the library stays: some do not survive being closed */
    made->next = drivers;
    drivers = made;
    *out_driver = &made->driver;
    return HDRT_OK;
}

hdrt_status hdrt__driver_load(hdrt_driver_kind kind, const char *path, hdrt__driver **out_driver)
{
    *out_driver = NULL;
    if (kind != HDRT_DRIVER_CUDA && kind != HDRT_DRIVER_SOFT)
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "driver kind %d cannot be loaded", (int)kind);
    uint64_t generation;
    hdrt_status status = hdrt__fork_watch(&generation);
    if (status != HDRT_OK)
        return status;
    pthread_once(&lock_once, watch_lock);
    if (!lock_watched)
        return hdrt__fail(HDRT_ERROR_OUT_OF_MEMORY, "out of host memory: cannot register a fork handler");
    pthread_mutex_lock(&lock);
    status = load_locked(kind, path, generation, out_driver);
    pthread_mutex_unlock(&lock);
    return status;
}

void hdrt__driver_observe(const hdrt__driver *driver, bool observing)
{
    if (driver->observe)
        driver->observe(observing);
}

void *hdrt__driver_symbol(const hdrt__driver *driver, const char *name)
{
    for (size_t i = 0; i < ENTRY_COUNT; i++)
        if (strcmp(entries[i].symbol, name) == 0)
            return table_get(&driver->table, &entries[i]);
    if (driver->kind == HDRT_DRIVER_CUDA)
        return dlsym(driver->library, name);
    hdcu_soft_lookup soft;
    void *lookup = dlsym(driver->library, HDCU_SOFT_LOOKUP);
    memcpy(&soft, &lookup, sizeof soft);
    return soft(name);
}
