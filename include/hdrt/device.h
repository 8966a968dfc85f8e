/* SPDX-License-Identifier: MIT */
/**
 * \file hdrt/device.h
 * Devices: what they are, what they can do, and waiting for all of their work.
 */
#ifndef HDRT_DEVICE_H
#define HDRT_DEVICE_H

#ifndef HDRT_H
#error "include <hdrt.h>, not its parts"
#endif

/** Which CUDA context a device uses. */
typedef enum hdrt_context_kind {
    HDRT_CONTEXT_PRIMARY = 0, /**< the primary one, shared with cudart, PyTorch, cuBLAS, NCCL; its flags stay as they are */
    HDRT_CONTEXT_OWN = 1,     /**< a context of our own */
    HDRT_CONTEXT_ADOPTED = 2, /**< the CUcontext given in `context`; it must outlive the device */
} hdrt_context_kind;

/** Options of hdrt_device_open. Start from HDRT_DEVICE_OPTIONS_INIT. */
typedef struct hdrt_device_options {
    size_t size;                /**< sizeof(hdrt_device_options) */
    hdrt_context_kind context_kind; /**< which context */
    void *context;              /**< CUcontext to adopt, else NULL */
    size_t printf_fifo_bytes;   /**< CU_LIMIT_PRINTF_FIFO_SIZE; 0: leave. Set before the first module is loaded. */
    size_t malloc_heap_bytes;   /**< CU_LIMIT_MALLOC_HEAP_SIZE; 0: leave */
    size_t stack_bytes;         /**< CU_LIMIT_STACK_SIZE per thread; 0: leave */
    uint64_t watchdog_ns;       /**< tell the log (HDRT_LOG_WARN), once, of an operation that has been in flight for at
                                     least so long: which, of which queue, at which position; 0: never */
    uint32_t reserved[6];       /**< zero */
} hdrt_device_options;

#define HDRT_DEVICE_OPTIONS_INIT HDRT_INIT_(hdrt_device_options)

/**
 * Open a device and retain its context. Opening one twice gives two devices that share the primary context.
 *
 * \param index  0 to device_count - 1
 * \return HDRT_OK; HDRT_ERROR_INVALID_ARGUMENT  no such index (the message says how many there are);
 *     HDRT_ERROR_DEVICE_LOST  the process had a fault on it; HDRT_ERROR_OUT_OF_DEVICE_MEMORY, HDRT_ERROR_OUT_OF_MEMORY,
 *     HDRT_ERROR_DRIVER, HDRT_ERROR_FORKED.
 */
HDRT_EXPORT hdrt_status hdrt_device_open(hdrt_runtime *runtime, uint32_t index, const hdrt_device_options *options,
                                         hdrt_device **out_device);

/** Drop the caller's reference. Work already enqueued still runs. */
HDRT_EXPORT void hdrt_device_close(hdrt_device *device);

/** The device's description. Also available without opening it: hdrt_runtime_device_info. */
typedef struct hdrt_device_info {
    size_t size;                     /**< set by the caller to sizeof(hdrt_device_info) */
    char name[256];                  /**< as the driver gives it */
    unsigned char uuid[16];          /**< as the driver gives it */
    char pci[16];                    /**< "0000:00:00.0" */
    uint32_t compute_capability;     /**< 10 * major + minor: 90 for an H200 */
    uint32_t multiprocessors;        /**< count */
    uint64_t memory_bytes;           /**< total */
    uint32_t warp_size;              /**< threads */
    uint32_t max_threads_per_block;  /**< threads */
    uint32_t max_threads_per_multiprocessor; /**< threads */
    uint32_t max_block[3];           /**< threads, x y z */
    uint32_t max_grid[3];            /**< blocks, x y z */
    uint32_t max_shared_per_block;   /**< bytes without opting in */
    uint32_t max_shared_per_block_optin; /**< bytes with opting in, which hdrt_launch does by itself */
    uint32_t max_registers_per_block; /**< 32-bit registers */
    uint32_t async_engines;          /**< copy engines */
    uint32_t clock_khz;              /**< peak */
    uint32_t l2_bytes;               /**< level 2 cache */
    bool concurrent_kernels;         /**< kernels of several streams at once */
    bool cooperative_launch;         /**< grid-wide synchronisation */
    bool integrated;                 /**< shares memory with the host */
} hdrt_device_info;

#define HDRT_DEVICE_INFO_INIT HDRT_INIT_(hdrt_device_info)

/** Describe device `index` without opening it (no context). \return HDRT_OK, HDRT_ERROR_INVALID_ARGUMENT, HDRT_ERROR_DRIVER. */
HDRT_EXPORT hdrt_status hdrt_runtime_device_info(hdrt_runtime *runtime, uint32_t index, hdrt_device_info *out_info);

/** Describe an open device. */
HDRT_EXPORT hdrt_status hdrt_device_get_info(hdrt_device *device, hdrt_device_info *out_info);

/** What a driver and device may or may not have. */
typedef enum hdrt_feature {
    HDRT_FEATURE_MEMORY_POOLS = 1,       /**< queue-ordered allocation without synchronising */
    HDRT_FEATURE_COOPERATIVE_LAUNCH = 2, /**< hdrt_launch_options.cooperative */
    HDRT_FEATURE_CLUSTER_LAUNCH = 3,     /**< thread block clusters (not in this version) */
    HDRT_FEATURE_PROGRAMMATIC_LAUNCH = 4, /**< programmatic dependent launch (not in this version) */
    HDRT_FEATURE_PARAMETER_INFO = 5,     /**< the driver tells parameter sizes (12.4) */
    HDRT_FEATURE_WAIT_UNSIGNALLED = 6,   /**< hdrt_queue_wait for values not yet enqueued or signalled */
    HDRT_FEATURE_NOTIFY_FD = 7,          /**< hdrt_event_notify_fd */
    HDRT_FEATURE_ASYNC_COMPILE = 8,      /**< hdrt_module_compile_async and hdrt_image_compile_async */
    HDRT_FEATURE_ASYNC_PAGEABLE = 9,     /**< copies of pageable memory never block (not in this version) */
    HDRT_FEATURE_SOFTWARE = 10,          /**< the device is the soft driver's */
} hdrt_feature;

/** Whether `feature` is there. false for unknown numbers. No driver call. */
HDRT_EXPORT bool hdrt_device_supports(const hdrt_device *device, hdrt_feature feature);

/** Free and total device memory in bytes, of the whole GPU, other processes included. */
HDRT_EXPORT hdrt_status hdrt_device_memory_info(hdrt_device *device, uint64_t *out_free, uint64_t *out_total);

/**
 * Wait until all work enqueued on the device's queues before the call is complete.
 * \return HDRT_OK, HDRT_ERROR_QUEUE_FAILED  the first failed queue's cause in the message, HDRT_ERROR_DEVICE_LOST,
 *     HDRT_ERROR_FORKED. Never uses cuCtxSynchronize: foreign streams are not waited for.
 */
HDRT_EXPORT hdrt_status hdrt_device_synchronize(hdrt_device *device);

/** The device's runtime, borrowed. */
HDRT_EXPORT hdrt_runtime *hdrt_device_runtime(const hdrt_device *device);

#endif
