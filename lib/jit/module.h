/* SPDX-License-Identifier: MIT */
/*
 * The module's inside. A module is either loaded code, or a handle to loaded code that another compile of the same key
 * brought in: handles keep apart what each caller is told (from_cache), kernels and functions are shared.
 *
 * Lifetime: counted. The caller, each handle and each operation in flight hold the loaded module; the last one to let
 * go unloads the code. Modules hold their device.
 */
#ifndef HDRT_JIT_MODULE_H
#define HDRT_JIT_MODULE_H

#include <pthread.h>
#include <stdatomic.h>

#include <hdrt.h>

#include "driver/cuda_abi.h"
#include "jit/image.h"
#include "jit/kernel.h"

struct hdrt_module {
    atomic_uint references;
    hdrt_device *device;  /* held */
    hdrt_module *loaded;  /* itself, or what this is a handle to (held) */
    bool from_cache;
    /* What follows belongs to loaded code only. */
    char *name;
    hdrt__code *code; /* held: table, log */
    hdcu_module handle;
    bool shared;            /* in the device's table of modules by key */
    pthread_mutex_t lock;   /* guards the two below; no driver call under it */
    hdrt_kernel **kernels;  /* by index in the table; NULL: not asked for yet */
    uint64_t *symbols;      /* addresses entered in the registry */
    uint32_t symbol_count, symbol_capacity;
};

/* The kernel at `index` of the loaded module's table, made from the driver's function. */
hdrt_status hdrt__kernel_create(hdrt_module *loaded, uint32_t index, hdrt_kernel **out_kernel);
void hdrt__kernel_free(hdrt_kernel *kernel);

/*
 * Load code into a device. `shareable`: by the code's name, with other compiles of the same key, unless it has
 * variables that could be written. HDRT_OK; statuses as hdrt_module_load.
 */
hdrt_status hdrt__module_open(hdrt_device *device, hdrt__code *code, const char *name, bool from_cache, bool shareable,
                              hdrt_module **out_module);

#endif
