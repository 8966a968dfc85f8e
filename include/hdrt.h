/* SPDX-License-Identifier: MIT */
/**
 * \file hdrt.h
 * libhdrt: a low-level GPU runtime on the CUDA driver API.
 *
 * Objects and who owns them: an hdrt_runtime holds a loaded driver; an hdrt_device is one of its GPUs; queues, modules
 * and timers belong to a device; a kernel is borrowed from its module. Children hold their parents: each `destroy`
 * drops the caller's reference, returns nothing, accepts NULL and may be called in any order.
 *
 * Threads: every function may be called from any thread at any time, several at once, unless its comment says
 * otherwise. The caller's current CUDA context and every thread's stream captures are left as they were.
 *
 * Fork: a child of a process that created a runtime gets HDRT_ERROR_FORKED from everything but `destroy`, which then
 * does nothing with the driver; a child may create no runtime on a driver that the parent had initialised.
 *
 * Options: structs that begin with their own size. Fill them with HDRT_..._INIT, then set members; NULL means all
 * defaults. Members beyond what this library knows must be zero (HDRT_ERROR_INVALID_ARGUMENT otherwise), and so must
 * reserved ones.
 */
#ifndef HDRT_H
#define HDRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Marks what libhdrt exports. */
#define HDRT_EXPORT __attribute__((visibility("default")))

#define HDRT_VERSION_MAJOR 0
#define HDRT_VERSION_MINOR 1
#define HDRT_VERSION_PATCH 0
/** The header's version as one number: major * 10000 + minor * 100 + patch. */
#define HDRT_VERSION (HDRT_VERSION_MAJOR * 10000 + HDRT_VERSION_MINOR * 100 + HDRT_VERSION_PATCH)

/** The library's version in the form of HDRT_VERSION; differs from it when another libhdrt was loaded. Any thread. */
HDRT_EXPORT unsigned hdrt_version(void);

/** Objects, opaque; each is described with the functions that make it. */
typedef struct hdrt_runtime hdrt_runtime;
typedef struct hdrt_device hdrt_device;
typedef struct hdrt_queue hdrt_queue;
typedef struct hdrt_module hdrt_module;
typedef struct hdrt_kernel hdrt_kernel;
typedef struct hdrt_graph hdrt_graph;
typedef struct hdrt_timer hdrt_timer;
typedef struct hdrt_timeline hdrt_timeline;

/** A device address, the same type as CUdeviceptr. 0 is no address. */
typedef unsigned long long hdrt_ptr;

/**
 * A value of a timeline: complete when the timeline has reached it.
 *
 * A plain value, 16 bytes for ever: copy it, keep it, drop it. The zero event is complete. Events never dangle: an
 * event of a destroyed queue is complete, or failed if what it stood for failed.
 */
typedef struct hdrt_event {
    uint64_t timeline; /**< which timeline: slot and generation, never to be computed with */
    uint64_t value;    /**< position on it */
} hdrt_event;

/* The initialiser behind each HDRT_..._INIT: all members zero but the size. */
#ifdef __cplusplus
extern "C++" {
namespace hdrt_detail {
template <typename T> T sized()
{
    T value = T();
    value.size = sizeof(T);
    return value;
}
}
}
#define HDRT_INIT_(type) (::hdrt_detail::sized<type>())
#else
#define HDRT_INIT_(type) {.size = sizeof(type)}
#endif

#include <hdrt/status.h>
#include <hdrt/runtime.h>
#include <hdrt/device.h>
#include <hdrt/memory.h>
#include <hdrt/cache.h>
#include <hdrt/jit.h>
#include <hdrt/queue.h>
#include <hdrt/graph.h>

#ifdef __cplusplus
}
#endif

#endif
