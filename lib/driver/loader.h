/* SPDX-License-Identifier: MIT */
/*
 * Loading a driver: NVIDIA's libcuda or the soft driver becomes a filled table, or a status that says exactly what is
 * missing. lib/device calls it once per runtime. A driver is loaded once per file and process and never unloaded:
 * what libcuda does at its unloading is not for us to try.
 */
#ifndef HDRT_DRIVER_LOADER_H
#define HDRT_DRIVER_LOADER_H

#include <hdrt.h>

#include "driver/cuda_table.h"

#include <stdbool.h>

/* CUDA 11.4: cuDeviceGetUuid_v2, cuGetProcAddress, stream-ordered allocation, and the oldest driver still patched. */
#define HDRT__DRIVER_VERSION_MIN 11040

/* A loaded and initialised driver with at least one device. Immutable; lives as long as the process. */
typedef struct hdrt__driver {
    hdrt__driver_table table;
    hdrt_driver_kind kind; /* HDRT_DRIVER_CUDA or HDRT_DRIVER_SOFT */
    char *path;            /* the file that was loaded */
    int version;           /* CUDA version that it supports: 1000 * major + 10 * minor */
    int device_count;      /* visible to this process, at least 1 */
    void *library;         /* from dlopen */
    void (*observe)(bool observing); /* the soft driver's; NULL: there is none */
} hdrt__driver;

/*
 * Which driver is meant: `asked`, or for HDRT_DRIVER_DEFAULT what HDRT_DRIVER says, else HDRT_DRIVER_CUDA.
 * \return HDRT_OK, HDRT_ERROR_INVALID_ARGUMENT.
 */
hdrt_status hdrt__driver_choose(hdrt_driver_kind asked, hdrt_driver_kind *out_kind);

/*
 * Load and initialise (cuInit) a driver, or return the one that was loaded before from the same file. Thread-safe.
 *
 * \param kind  HDRT_DRIVER_CUDA or HDRT_DRIVER_SOFT
 * \param path  this file and no other; NULL: NVIDIA's by its name from the loader, then the WSL folder (not for SOFT)
 * \return as hdrt_runtime_create, and HDRT_ERROR_FORKED where a parent process had initialised NVIDIA's driver.
 */
hdrt_status hdrt__driver_load(hdrt_driver_kind kind, const char *path, hdrt__driver **out_driver);

/*
 * From now on (until false) the calling thread only observes: what it asks and waits for must not make device work
 * happen that would not happen without it. For the library's own completion threads, which would otherwise hide a
 * missing wait of the program from the soft driver's lazy and random policies. NVIDIA's driver needs no such thing.
 */
void hdrt__driver_observe(const hdrt__driver *driver, bool observing);

/* The table's entry with this exact exported symbol, or with this name in cuda.h; NULL if this driver has none. */
void *hdrt__driver_symbol(const hdrt__driver *driver, const char *name);

#endif
