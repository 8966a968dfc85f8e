/* SPDX-License-Identifier: MIT */
/*
 * The environment variables that libhdrt reads: one table, read through secure_getenv only. An empty value counts as
 * unset.
 */
#ifndef HDRT_BASE_ENVIRONMENT_H
#define HDRT_BASE_ENVIRONMENT_H

#include <hdrt.h>

/* X(identifier, name, type, meaning) */
#define HDRT__ENVIRONMENT_LIST(X)                                                                                      \
    X(DRIVER, "HDRT_DRIVER", "choice", "driver to load: cuda or soft (hdjit also: auto)")                              \
    X(DEVICE, "HDRT_DEVICE", "number", "device that hdjit uses, from 0")                                               \
    X(CACHE_DIR, "HDRT_CACHE_DIR", "path", "folder of the kernel cache; 'off' for no disk cache")                      \
    X(CACHE_LIMIT, "HDRT_CACHE_LIMIT", "size", "size that the kernel cache is kept below: 512M, 2G; 1G if not set")    \
    X(CACHE_READ_ONLY, "HDRT_CACHE_READ_ONLY", "paths", "further kernel caches, only read, separated by colons")       \
    X(NVRTC, "HDRT_NVRTC", "path", "NVRTC library, or the folder it is in")                                            \
    X(CLANG, "HDRT_CLANG", "path", "clang program for kernels")                                                        \
    X(LIBEXEC, "HDRT_LIBEXEC", "path", "folder of hdrt-cc, libhdsoft.so and the device prelude")                       \
    X(RECORD, "HDRT_RECORD", "path", "file to which each compile is appended, for 'hdjit precompile'")                 \
    X(STREAMS, "HDRT_STREAMS", "number", "most streams that queues share on a device; 128")                            \
    X(DISPATCHERS, "HDRT_DISPATCHERS", "number", "threads of a device that hand over: 1 or 2")                         \
    X(TEMPLATES, "HDRT_TEMPLATES", "choice", "off: launch kernels one by one, for comparison")                         \
    X(ELISION, "HDRT_ELISION", "choice", "waits left out: none, stream, pairwise or transitive, for comparison")       \
    X(RECORDING, "HDRT_RECORDING", "choice", "eager: a mark after every operation, for comparison")                    \
    X(CHECK, "HDRT_CHECK", "choice", "order: report operations of different queues that nothing orders")                \
    X(LOG, "HDRT_LOG", "choice", "log to standard error: error, warn, info or debug")

typedef enum hdrt__environment_id {
#define HDRT__ENVIRONMENT_ENUM(id, name, type, meaning) HDRT__ENV_##id,
    HDRT__ENVIRONMENT_LIST(HDRT__ENVIRONMENT_ENUM)
#undef HDRT__ENVIRONMENT_ENUM
    HDRT__ENV_COUNT,
} hdrt__environment_id;

/* The variable's value, NULL if unset, empty, or the program is privileged. */
const char *hdrt__environment(hdrt__environment_id id);

#endif
