/* SPDX-License-Identifier: MIT */
/*
 * The entry points' bodies, one function for each, named hdsoft__cu... after the entry. table.c puts a wrapper around
 * each: it counts the call, injects failures, checks that the driver is there, the context, the sticky fault and
 * whether the call spoils a capture, and holds the driver's lock while the body runs. So bodies are short, return at
 * once, and give the lock away only inside hdsoft__wait... and where they say so.
 */
#ifndef HDSOFT_API_ENTRY_H
#define HDSOFT_API_ENTRY_H

#include "driver/cuda_symbols.h"
#include "soft/model/driver.h"

#define HDSOFT_DECLARE_BODY(name, symbol, version, need, parameters) hdcu_result hdsoft__##name parameters;
HDCU_SYMBOL_LIST(HDSOFT_DECLARE_BODY)
#undef HDSOFT_DECLARE_BODY

/* The version that cuDriverGetVersion tells; HDSOFT_DRIVER_VERSION lowers it and hides what is newer. */
int hdsoft__api_version(void);
/* The current context; the wrapper has seen to it that there is one. */
hdsoft__context *hdsoft__here(void);
/* The device with that ordinal; NULL: there is none. */
hdsoft__device *hdsoft__device_at(hdcu_device ordinal);
/* The device in whose window an address lies; NULL: none. */
hdsoft__device *hdsoft__device_of(uint64_t address);
/* The range that holds an address: a device's, or of pinned host memory. *device is NULL for the latter. */
bool hdsoft__range_of(uint64_t address, hdsoft__allocation *out, hdsoft__device **device);
/* After a synchronisation: what kernels printed goes out, without the lock. Passes the status on. */
hdcu_result hdsoft__synchronised(int status);
/* A new allocation's owner, state and birth. */
hdsoft__allocation hdsoft__born(hdsoft__range_state state);
/* Launch checks and packing shared by launches and kernel nodes: a task for the geometry and arguments. */
int hdsoft__kernel_task(hdcu_function function, const unsigned grid[3], const unsigned block[3], unsigned shared,
                        bool cooperative, void **params, void **extra, hdsoft__task **out);
/* A checked copy; task is NULL if there is nothing to copy. */
typedef struct hdsoft__copy_plan {
    hdsoft__task *task;
    bool pageable_source, pageable_destination, any_host, all_host;
} hdsoft__copy_plan;
int hdsoft__plan_copy(const hdcu_memcpy3d *region, hdsoft__copy_plan *out);
/* The checked task of a memset; NULL in *out: nothing to set. *pinned: the target is host memory. */
int hdsoft__fill_task(uint64_t address, size_t pitch, uint32_t value, unsigned element, size_t width, size_t height,
                      hdsoft__task **out, bool *pinned);
/* The checked task of a wait for, or a write of, a value of 4 or 8 bytes. */
int hdsoft__value_task(hdsoft__task_kind kind, uint64_t address, uint64_t value, unsigned bytes, unsigned condition,
                       hdsoft__task **out);
/* Blocks of a function that fit a multiprocessor of an H200. */
int hdsoft__blocks_per_multiprocessor(const hdsoft__function *function, int threads, size_t dynamic);
unsigned hdsoft__registers(const hdsoft_entry *entry);

#endif
