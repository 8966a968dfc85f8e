/* SPDX-License-Identifier: MIT */
/**
 * \file hdrt/runtime.h
 * The runtime: one loaded driver, its devices, host timelines, and events.
 */
#ifndef HDRT_RUNTIME_H
#define HDRT_RUNTIME_H

#ifndef HDRT_H
#error "include <hdrt.h>, not its parts"
#endif

/** Which driver a runtime loads. */
typedef enum hdrt_driver_kind {
    HDRT_DRIVER_DEFAULT = 0, /**< what HDRT_DRIVER says ("cuda" or "soft"), else HDRT_DRIVER_CUDA */
    HDRT_DRIVER_CUDA = 1,    /**< NVIDIA's libcuda.so.1, found by the loader, then in the WSL folder */
    HDRT_DRIVER_SOFT = 2,    /**< libhdrt's soft driver, which runs PTX on the CPU; never chosen silently */
    HDRT_DRIVER_NONE = 3,    /**< no driver and no devices: for compiling only */
} hdrt_driver_kind;

/** How a thread waits in hdrt_event_wait, hdrt_queue_synchronize and hdrt_device_synchronize. */
typedef enum hdrt_wait {
    HDRT_WAIT_AUTO = 0,  /**< spins for 60 microseconds, where it may use 8 processors looks every few microseconds for
                              a millisecond, giving way to other threads; then sleeps and looks at growing intervals,
                              half a millisecond at most */
    HDRT_WAIT_SPIN = 1,  /**< takes a processor until the event is there: the least latency */
    HDRT_WAIT_YIELD = 2, /**< the same, giving way to other threads */
    HDRT_WAIT_BLOCK = 3, /**< sleeps at once and looks more seldom, every eight milliseconds in the end: under 1 % of a
                              processor */
} hdrt_wait;

/** Options of hdrt_runtime_create. Start from HDRT_RUNTIME_OPTIONS_INIT. */
typedef struct hdrt_runtime_options {
    size_t size;             /**< sizeof(hdrt_runtime_options) */
    hdrt_driver_kind driver; /**< which driver */
    const char *driver_path; /**< this file instead of the search; NULL: search. Copied. */
    const char *libexec;     /**< folder of the companions (hdrt-cc, libhdsoft.so, prelude); NULL: HDRT_LIBEXEC, the
                                  place of libhdrt itself, the configured folder. Copied. */
    const char *cache_dir;   /**< kernel cache; NULL: HDRT_CACHE_DIR, $XDG_CACHE_HOME/hdrt, ~/.cache/hdrt;
                                  "": no disk cache. Copied. */
    const char *nvrtc;       /**< NVRTC library file or folder; NULL: HDRT_NVRTC, CUDA_HOME, CUDA_PATH, the loader. Copied. */
    const char *clang;       /**< clang program; NULL: HDRT_CLANG, clang-N from high to low, clang. Copied. */
    uint32_t compile_workers; /**< most compile workers at once; 0: the number of processors, at most 8 */
    uint32_t cache_read_only_count; /**< how many cache_read_only */
    const char *const *cache_read_only; /**< further kernel caches that are only read, such as one that is shipped with
                                  an application; NULL: HDRT_CACHE_READ_ONLY. Copied. */
    uint64_t cache_limit_bytes; /**< size that the kernel cache is kept below; 0: HDRT_CACHE_LIMIT, or 1 GiB */
    hdrt_wait wait;          /**< how threads wait */
    uint32_t reserved[1];    /**< zero */
} hdrt_runtime_options;

#define HDRT_RUNTIME_OPTIONS_INIT HDRT_INIT_(hdrt_runtime_options)

/**
 * Load a driver and list its devices. Creates no context and compiles nothing.
 *
 * \param options  NULL for defaults
 * \param out_runtime  the new runtime, the caller's until hdrt_runtime_destroy; NULL on failure
 * \return HDRT_OK;
 *     HDRT_ERROR_NO_DRIVER  no libcuda: the message has every name tried and the loader's words;
 *     HDRT_ERROR_DRIVER_STUB  the toolkit's stub was found; HDRT_ERROR_DRIVER_TOO_OLD  older than CUDA 11.4;
 *     HDRT_ERROR_NO_DEVICE  no device, or all hidden by CUDA_VISIBLE_DEVICES, as the message says;
 *     HDRT_ERROR_COMPANION  the soft driver's file is missing; HDRT_ERROR_DRIVER  cuInit failed otherwise;
 *     HDRT_ERROR_FORKED  a parent of this process had initialised the driver;
 *     HDRT_ERROR_INVALID_ARGUMENT, HDRT_ERROR_OUT_OF_MEMORY.
 */
HDRT_EXPORT hdrt_status hdrt_runtime_create(const hdrt_runtime_options *options, hdrt_runtime **out_runtime);

/** Drop the caller's reference; the runtime goes when its devices are gone too. The driver library stays loaded. */
HDRT_EXPORT void hdrt_runtime_destroy(hdrt_runtime *runtime);

/** Races between queues that HDRT_CHECK=order has found; 0 without it, or for NULL. Any thread. */
HDRT_EXPORT uint64_t hdrt_runtime_race_count(const hdrt_runtime *runtime);

/** What a runtime loaded. Strings belong to the runtime. */
typedef struct hdrt_runtime_info {
    size_t size;                /**< set by the caller to sizeof(hdrt_runtime_info) */
    hdrt_driver_kind driver;    /**< CUDA, SOFT or NONE */
    const char *driver_path;    /**< the file that was loaded, NULL for NONE */
    uint32_t driver_version;    /**< CUDA version that the driver supports: 1000 * major + 10 * minor; 0 for NONE */
    uint32_t device_count;      /**< devices visible to this process */
    const char *libexec_worker;  /**< path of hdrt-cc, NULL if not found */
    const char *libexec_soft;    /**< path of libhdsoft.so, NULL if not found */
    const char *libexec_recorder; /**< path of the file recorder preloaded into clang, NULL if not found */
    const char *libexec_prelude; /**< folder of the device prelude, NULL if not found */
    const char *libexec_rule;   /**< which rule found them: "option", "HDRT_LIBEXEC", "beside libhdrt", "configured" */
    const char *cache_dir;      /**< kernel cache folder, NULL if there is none */
    const char *cache_reason;   /**< why there is no cache folder or why it is not used or written, NULL if all is well */
} hdrt_runtime_info;

#define HDRT_RUNTIME_INFO_INIT HDRT_INIT_(hdrt_runtime_info)

/** Describe the runtime. \return HDRT_OK, HDRT_ERROR_INVALID_ARGUMENT. */
HDRT_EXPORT hdrt_status hdrt_runtime_get_info(hdrt_runtime *runtime, hdrt_runtime_info *out_info);

/* ---- events ------------------------------------------------------------------------------------------------- */

/**
 * Ask whether an event is complete. Makes no driver call if the answer is known. Does not wait.
 *
 * \return HDRT_OK  complete; HDRT_NOT_READY  not yet, or its value is not yet enqueued or signalled;
 *     HDRT_ERROR_EVENT_FAILED  completed as failed, the message has the cause; HDRT_ERROR_DEVICE_LOST;
 *     HDRT_ERROR_INVALID_ARGUMENT  no timeline of this runtime; HDRT_ERROR_DRIVER  the driver could not be asked, ask again;
 *     HDRT_ERROR_FORKED.
 */
HDRT_EXPORT hdrt_status hdrt_event_query(hdrt_runtime *runtime, hdrt_event event);

/** No time limit. */
#define HDRT_FOREVER UINT64_MAX

/**
 * Wait on the host until an event is complete.
 *
 * How it waits is hdrt_runtime_options.wait.
 *
 * \param timeout_ns  most nanoseconds to wait, never left before; HDRT_FOREVER for no limit; 0 asks as hdrt_event_query does
 * \return as hdrt_event_query, with HDRT_TIMEOUT instead of HDRT_NOT_READY; HDRT_ERROR_CYCLE  a host function waits
 *     for what comes after its own call in the same queue.
 */
HDRT_EXPORT hdrt_status hdrt_event_wait(hdrt_runtime *runtime, hdrt_event event, uint64_t timeout_ns);

/**
 * Get a file descriptor (an eventfd, non-blocking, closed by exec) that becomes readable, once, when the event completes,
 * fails, or can never come; hdrt_event_query then tells which. The caller closes it, at any time.
 *
 * \return HDRT_OK; HDRT_ERROR_INVALID_ARGUMENT  no timeline of this runtime, or out_fd is NULL; HDRT_ERROR_IO  no
 *     descriptor is left; HDRT_ERROR_OUT_OF_MEMORY, HDRT_ERROR_FORKED.
 */
HDRT_EXPORT hdrt_status hdrt_event_notify_fd(hdrt_runtime *runtime, hdrt_event event, int *out_fd);

/* ---- host timelines ----------------------------------------------------------------------------------------- */

/**
 * Create a timeline that the host signals: an ordered counter that starts at 0.
 * \return HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY, HDRT_ERROR_INVALID_ARGUMENT, HDRT_ERROR_FORKED.
 */
HDRT_EXPORT hdrt_status hdrt_timeline_create(hdrt_runtime *runtime, hdrt_timeline **out_timeline);

/** Drop it. Waiters for values that were never signalled wake with HDRT_ERROR_EVENT_FAILED. */
HDRT_EXPORT void hdrt_timeline_destroy(hdrt_timeline *timeline);

/** The event for `value` of this timeline; value 0 is complete. */
HDRT_EXPORT hdrt_event hdrt_timeline_event(const hdrt_timeline *timeline, uint64_t value);

/**
 * Complete all values up to `value`.
 * \return HDRT_OK; HDRT_ERROR_INVALID_ARGUMENT  value not above the last one signalled; HDRT_ERROR_EVENT_FAILED  the
 *     timeline has failed; HDRT_ERROR_FORKED.
 */
HDRT_EXPORT hdrt_status hdrt_timeline_signal(hdrt_timeline *timeline, uint64_t value);

/**
 * Fail the timeline: every value above the last one signalled completes as failed with this cause.
 * \param status  a negative status; \param text  the cause in words, copied, may be NULL
 */
HDRT_EXPORT hdrt_status hdrt_timeline_fail(hdrt_timeline *timeline, hdrt_status status, const char *text);

/* ---- environment -------------------------------------------------------------------------------------------- */

/** One environment variable that libhdrt reads. */
typedef struct hdrt_environment_variable {
    const char *name;    /**< "HDRT_..." */
    const char *type;    /**< "choice", "path", "number" */
    const char *meaning; /**< one sentence */
    const char *value;   /**< its value now, NULL if unset (or ignored, in a privileged program) */
} hdrt_environment_variable;

/** The index-th variable of the table; HDRT_ERROR_NOT_FOUND past the end. */
HDRT_EXPORT hdrt_status hdrt_environment_get(uint32_t index, hdrt_environment_variable *out_variable);

#endif
