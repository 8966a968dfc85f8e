/* SPDX-License-Identifier: MIT */
/**
 * \file hdrt/memory.h
 * Device and pinned memory, copies, writes and fills.
 *
 * All sizes are in bytes. A size of 0 in a copy, write or fill is an ordered no-op. Operations take effect in queue
 * order; the calls return when the operation is enqueued.
 */
#ifndef HDRT_MEMORY_H
#define HDRT_MEMORY_H

#ifndef HDRT_H
#error "include <hdrt.h>, not its parts"
#endif

/**
 * Allocate device memory in queue order: usable by operations enqueued after this one, and by other queues after an
 * event recorded behind it. Aligned to 256 bytes, content undefined.
 *
 * \param bytes  1 or more
 * \return HDRT_OK; HDRT_ERROR_OUT_OF_DEVICE_MEMORY (the message has size and what is free); HDRT_ERROR_INVALID_ARGUMENT;
 *     HDRT_ERROR_QUEUE_FAILED, HDRT_ERROR_DEVICE_LOST, HDRT_WOULD_BLOCK (ring full), HDRT_ERROR_FORKED;
 *     HDRT_ERROR_DRIVER  the ring is full, and the driver cannot be asked how far the queue is: nothing was enqueued,
 *     and the queue has not failed. *out_ptr is 0 on failure.
 */
HDRT_EXPORT hdrt_status hdrt_alloc(hdrt_queue *queue, uint64_t bytes, hdrt_ptr *out_ptr);

/**
 * Free device memory in queue order: after all operations enqueued on `queue` before. Operations on other queues that
 * use it must be ordered before by an event. 0 is accepted. Also works on a failed queue, so that nothing leaks; and a
 * free that fails the queue is made up for by the library when the queue's work is over.
 *
 * \return HDRT_OK; HDRT_ERROR_QUEUE_FAILED  it has failed the queue; HDRT_ERROR_INVALID_ARGUMENT  not an address that
 *     hdrt_alloc returned on this device, or freed twice.
 */
HDRT_EXPORT hdrt_status hdrt_free(hdrt_queue *queue, hdrt_ptr ptr);

/**
 * Allocate pinned host memory, readable and writable by the host at once and by the device's copies at full speed.
 * Page-aligned, content undefined. Does not wait for the GPU.
 * \return HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY, HDRT_ERROR_INVALID_ARGUMENT (0 bytes), HDRT_ERROR_DEVICE_LOST, HDRT_ERROR_FORKED.
 */
HDRT_EXPORT hdrt_status hdrt_host_alloc(hdrt_device *device, uint64_t bytes, void **out_memory);

/**
 * Free memory of hdrt_host_alloc. Operations in flight that use it keep it alive; the call does not wait.
 * NULL is accepted. \return HDRT_OK, HDRT_ERROR_INVALID_ARGUMENT  not from hdrt_host_alloc on this device.
 */
HDRT_EXPORT hdrt_status hdrt_host_free(hdrt_device *device, void *memory);

/** Pin memory that the caller has; it must stay mapped until hdrt_host_unregister. \return as hdrt_host_alloc. */
HDRT_EXPORT hdrt_status hdrt_host_register(hdrt_device *device, void *memory, uint64_t bytes);

/** Undo hdrt_host_register, after waiting for operations in flight that use the memory. */
HDRT_EXPORT hdrt_status hdrt_host_unregister(hdrt_device *device, void *memory);

/**
 * Copy host memory to device memory. Contract *borrow*: `src` must stay valid and unchanged until the operation's
 * event. Any host memory; in this version a pageable source may block the caller until the queue has come to the copy.
 *
 * \return HDRT_OK; HDRT_ERROR_INVALID_ARGUMENT  NULL, or a range that is not inside one allocation of this library;
 *     HDRT_ERROR_QUEUE_FAILED, HDRT_ERROR_DEVICE_LOST, HDRT_WOULD_BLOCK (ring full), HDRT_ERROR_FORKED;
 *     HDRT_ERROR_DRIVER  the ring is full or the memory pageable, and the driver cannot be asked how far the queue is:
 *     nothing was enqueued, and the queue has not failed.
 */
HDRT_EXPORT hdrt_status hdrt_copy_htod(hdrt_queue *queue, hdrt_ptr dst, const void *src, uint64_t bytes);

/** Copy device memory to host memory; otherwise as hdrt_copy_htod. `dst` holds the data at the operation's event. */
HDRT_EXPORT hdrt_status hdrt_copy_dtoh(hdrt_queue *queue, void *dst, hdrt_ptr src, uint64_t bytes);

/** Copy device memory to device memory, of this device or a peer's. The ranges may not overlap. */
HDRT_EXPORT hdrt_status hdrt_copy_dtod(hdrt_queue *queue, hdrt_ptr dst, hdrt_ptr src, uint64_t bytes);

/** One side of hdrt_copy_region: device memory if `host` is NULL. Distances in bytes. */
typedef struct hdrt_region_side {
    hdrt_ptr device;      /**< first byte, on the device */
    void *host;           /**< first byte, on the host; only read when it is the source */
    uint64_t row_pitch;   /**< from one row to the next; at least the region's width */
    uint64_t slice_pitch; /**< from one slice to the next; a multiple of row_pitch; ignored when depth is 1 */
} hdrt_region_side;

/**
 * Copy a box of width bytes, height rows and depth slices between strided memories (2-D when depth is 1).
 * \return as hdrt_copy_htod; HDRT_ERROR_INVALID_ARGUMENT also for pitches that do not fit the box, or both sides on
 *     the host.
 */
HDRT_EXPORT hdrt_status hdrt_copy_region(hdrt_queue *queue, const hdrt_region_side *dst, const hdrt_region_side *src,
                                         uint64_t width, uint64_t height, uint64_t depth);

/** One copy of a batch. */
typedef struct hdrt_copy {
    void *dst_host;
    const void *src_host;
    hdrt_ptr dst, src;
    uint64_t bytes;
} hdrt_copy;

/** Enqueue several copies as one operation. \return HDRT_ERROR_UNSUPPORTED  in this version. */
HDRT_EXPORT hdrt_status hdrt_copy_batch(hdrt_queue *queue, const hdrt_copy *copies, uint32_t count);

/** Most bytes of one hdrt_write. */
#define HDRT_WRITE_LIMIT 65536u

/**
 * Write host bytes to device memory. Contract *snapshot*: `src` is read during the call, so it may change afterwards;
 * the bytes are kept in memory whose turnover needs no progress of the GPU beyond a bounded amount.
 *
 * \param bytes  at most HDRT_WRITE_LIMIT
 * \return as hdrt_copy_htod, and HDRT_WOULD_BLOCK when the bounded memory for snapshots is in use.
 */
HDRT_EXPORT hdrt_status hdrt_write(hdrt_queue *queue, hdrt_ptr dst, const void *src, uint64_t bytes);

/**
 * Fill device memory with `count` copies of a pattern.
 * \param pattern_bytes  1, 2, 4, 8 or 16; dst must be aligned to it
 * \return as hdrt_copy_htod.
 */
HDRT_EXPORT hdrt_status hdrt_fill(hdrt_queue *queue, hdrt_ptr dst, const void *pattern, uint32_t pattern_bytes,
                                  uint64_t count);

/** State of the device's memory pool. */
typedef struct hdrt_pool_statistics {
    size_t size;              /**< set by the caller to sizeof(hdrt_pool_statistics) */
    uint64_t used_bytes, used_peak_bytes;
    uint64_t reserved_bytes, reserved_peak_bytes;
} hdrt_pool_statistics;

/** Read the pool's statistics. \return HDRT_ERROR_UNSUPPORTED  in this version. */
HDRT_EXPORT hdrt_status hdrt_device_pool_statistics(hdrt_device *device, hdrt_pool_statistics *out_statistics);

/** Give unused pool memory back to the driver. \return HDRT_ERROR_UNSUPPORTED  in this version. */
HDRT_EXPORT hdrt_status hdrt_device_pool_trim(hdrt_device *device, uint64_t keep_bytes);

#endif
