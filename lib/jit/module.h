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
#include "jit/future.h"
#include "jit/image.h"
#include "jit/kernel.h"
#include "jit/source.h"

struct hdrt_module {
    _Atomic uint64_t references; /* and in the upper half, how many of them are launch templates' */
    hdrt_device *device;  /* held */
    hdrt_module *_Atomic loaded; /* itself, or what this is a handle to (held); NULL: a compile under way or failed */
    bool from_cache;
    hdrt__future *future; /* of an asynchronous compile; NULL: made by a blocking call */
    /* What follows belongs to loaded code only. */
    char *name;
    hdrt__code *code; /* held: table, log */
    hdcu_module handle;
    bool may_await_grids;   /* its PTX has griddepcontrol.wait, or is not known: what that waits for must not be anybody's */
    bool shared;            /* in the device's table of modules by key */
    pthread_mutex_t lock;   /* guards the two below; no driver call under it */
    hdrt_kernel **kernels;  /* by index in the table; NULL: not asked for yet */
    uint64_t *symbols;      /* addresses entered in the registry */
    uint32_t symbol_count, symbol_capacity;
};

/* A launch template's hold, counted in both halves at once. They let go when there are no others. */
#define HDRT__MODULE_CACHED ((UINT64_C(1) << 32) + 1)

/* Unload and free a module that nobody refers to; its hold of the device, if any, stays the caller's to drop. */
void hdrt__module_unload(hdrt_module *module);
/* The kernel at `index` of the loaded module's table, made from the driver's function. */
hdrt_status hdrt__kernel_create(hdrt_module *loaded, uint32_t index, hdrt_kernel **out_kernel);
void hdrt__kernel_free(hdrt_kernel *kernel);

typedef struct hdrt__open_options {
    const char *name; /* copied */
    bool from_cache;
    bool shareable; /* by the code's name, with other compiles of the same key, unless it has variables to be written */
    bool lazy;      /* kernels are made when asked for */
} hdrt__open_options;

/* Load code into a device. HDRT_OK; statuses as hdrt_module_load. */
hdrt_status hdrt__module_open(hdrt_device *device, hdrt__code *code, const hdrt__open_options *options,
                              hdrt_module **out_module);

/* From source to a loaded module, memory and disk cache first. `cancel` may be NULL. */
hdrt_status hdrt__module_from_input(hdrt_device *device, const hdrt__input *input, hdrt__cancel *cancel,
                                    hdrt_module **out_module);

/* A module under way, with its future. HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY. */
hdrt_status hdrt__module_create_pending(hdrt_device *device, hdrt_module **out_module);
/* It is a handle to `loaded` from now on, whose reference it takes over. */
void hdrt__module_become(hdrt_module *module, hdrt_module *loaded, bool from_cache);
/* What there is of a module, borrowed: HDRT_OK, or as hdrt_module_status. */
hdrt_status hdrt__module_loaded(const hdrt_module *module, hdrt_module **out_loaded);

#endif
