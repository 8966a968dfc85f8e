/* SPDX-License-Identifier: MIT */
/**
 * \file hdrt/queue.h
 * Queues, launches, events of queues, host calls and timers.
 *
 * A queue takes effect in enqueue order. Operations on different queues are unordered unless hdrt_queue_wait orders
 * them. Queues are cheap: one that is idle owns no stream and takes at most 512 bytes, and to create or destroy one
 * makes no driver call. Their operations go out in streams that all queues of a device share; see `exclusive`.
 *
 * An operation is written into the queue's ring and handed to the driver (committed) a moment later by the device's
 * dispatcher, a thread of the library, or at once by the calling thread where nothing goes before it. A call of the
 * driver's may so fail after the call that enqueued it has returned HDRT_OK. A failure that arguments, attributes and
 * limits cannot tell fails the queue: operations from the failing one on are dropped, events at or after it complete
 * as failed, queues that wait for such an event fail with its cause, and every further call returns the error until
 * hdrt_queue_clear_error.
 */
#ifndef HDRT_QUEUE_H
#define HDRT_QUEUE_H

#ifndef HDRT_H
#error "include <hdrt.h>, not its parts"
#endif

/** What a call does when the queue's ring is full. */
typedef enum hdrt_back_pressure {
    HDRT_BACK_PRESSURE_BLOCK = 0,       /**< wait until operations complete */
    HDRT_BACK_PRESSURE_WOULD_BLOCK = 1, /**< return HDRT_WOULD_BLOCK, and enqueue nothing */
    HDRT_BACK_PRESSURE_GROW = 2,        /**< take more memory, without a limit */
} hdrt_back_pressure;

/** Who hands operations to the driver. The effect is the same; what differs is when, and what the call costs. */
typedef enum hdrt_submission {
    HDRT_SUBMISSION_AUTO = 0,       /**< the calling thread if nothing goes before the operation, else the dispatcher */
    HDRT_SUBMISSION_INLINE = 1,     /**< the calling thread, during the call, if what goes before is handed over: then a
                                         failure is told by the call itself */
    HDRT_SUBMISSION_DISPATCHER = 2, /**< the device's dispatcher: no call makes a driver call */
} hdrt_submission;

/** Options of hdrt_queue_create. Start from HDRT_QUEUE_OPTIONS_INIT. */
typedef struct hdrt_queue_options {
    size_t size;                      /**< sizeof(hdrt_queue_options) */
    const char *name;                 /**< for messages and traces; NULL: "queue N". Copied. */
    int32_t priority;                 /**< 0 normal, negative more urgent, positive less; clamped to what the device has */
    bool exclusive;                   /**< a stream that nothing else ever shares: for kernels that wait for the host or
                                           for other kernels */
    uint32_t ring_limit;              /**< most operations not yet complete; 0: 4096 */
    hdrt_back_pressure back_pressure; /**< when the ring is full */
    hdrt_submission submission;       /**< who commits */
    uint32_t reserved[9];             /**< zero */
} hdrt_queue_options;

#define HDRT_QUEUE_OPTIONS_INIT HDRT_INIT_(hdrt_queue_options)

/** Create a queue. \return HDRT_OK, HDRT_ERROR_INVALID_ARGUMENT, HDRT_ERROR_UNSUPPORTED, HDRT_ERROR_OUT_OF_MEMORY,
 *     HDRT_ERROR_OUT_OF_DEVICE_MEMORY, HDRT_ERROR_DEVICE_LOST, HDRT_ERROR_FORKED. */
HDRT_EXPORT hdrt_status hdrt_queue_create(hdrt_device *device, const hdrt_queue_options *options, hdrt_queue **out_queue);

/** Drop the caller's reference. Returns at once; operations already enqueued still run, and their events stay good. */
HDRT_EXPORT void hdrt_queue_destroy(hdrt_queue *queue);

/** The device's default queue, made on first use. Borrowed: lives as long as the device. NULL on failure. */
HDRT_EXPORT hdrt_queue *hdrt_device_default_queue(hdrt_device *device);

/** The queue's device, borrowed. */
HDRT_EXPORT hdrt_device *hdrt_queue_device(const hdrt_queue *queue);

/** The event of the position after the last enqueued operation. Cannot fail and makes no driver call: on a failed
 *  queue or lost device it is an event that has failed. */
HDRT_EXPORT hdrt_event hdrt_queue_record(hdrt_queue *queue);

/**
 * Let operations enqueued on `queue` from now on take effect after `event`. Does not wait on the host.
 *
 * Events of any queue or host timeline of the same runtime, and of compiles. The value need not be enqueued or
 * signalled yet: until it is, the queue's further operations stay in its ring, and nobody else is held up. A wait for an
 * event that has failed, fails, or never comes because its queue or timeline was destroyed before, fails the queue with
 * that cause. So do queues that wait for each other in a cycle: one of them is told the cycle, and the others fail
 * through it.
 *
 * \return HDRT_OK; HDRT_ERROR_EVENT_FAILED  the event had failed, and now the queue has; HDRT_ERROR_CYCLE  a later
 *     position of the queue itself: nothing was enqueued; HDRT_ERROR_INVALID_ARGUMENT;
 *     HDRT_WOULD_BLOCK  the stream is the caller's too, and cannot wait for the event yet (hdrt/interop.h): nothing was
 *     enqueued; HDRT_ERROR_QUEUE_FAILED, HDRT_ERROR_DEVICE_LOST, HDRT_ERROR_FORKED; HDRT_ERROR_DRIVER  as
 *     hdrt_launch_with.
 */
HDRT_EXPORT hdrt_status hdrt_queue_wait(hdrt_queue *queue, hdrt_event event);

/** Wait on the host until all that was enqueued before is complete. \return HDRT_OK; HDRT_ERROR_QUEUE_FAILED with the
 *     cause; HDRT_ERROR_DEVICE_LOST; HDRT_ERROR_CYCLE  in a host function of this queue; HDRT_ERROR_FORKED. */
HDRT_EXPORT hdrt_status hdrt_queue_synchronize(hdrt_queue *queue);

/** HDRT_OK, HDRT_ERROR_QUEUE_FAILED or HDRT_ERROR_DEVICE_LOST, with the failed operation's message. Does not wait. */
HDRT_EXPORT hdrt_status hdrt_queue_error(hdrt_queue *queue);

/** Make a failed queue usable again. Events that failed stay failed. \return HDRT_OK (also if it had not failed);
 *     HDRT_ERROR_DEVICE_LOST  there is no recovery in this process. */
HDRT_EXPORT hdrt_status hdrt_queue_clear_error(hdrt_queue *queue);

/** A function that the library calls on its callback thread. May call the library, which gives HDRT_WOULD_BLOCK where a
 *  call would have to wait for the function's own queue; should not block for long: a device's host calls are run one
 *  after the other, unless one waits inside the library. */
typedef void (*hdrt_host_function)(void *argument);

/**
 * Call a host function in queue order: when all before it is complete; what comes after it begins when it is over. If
 * the queue fails before it, it is not called. No stream stands still for it, unless the caller may enqueue on the
 * stream too (hdrt_queue_stream, hdrt_queue_adopt): then the call is made in the stream, for the sake of his own work.
 *
 * \return as hdrt_launch; HDRT_ERROR_OUT_OF_MEMORY  the thread for it cannot be started; HDRT_ERROR_UNSUPPORTED  the
 *     caller may enqueue on the stream too, and this device's streams cannot wait for memory.
 */
HDRT_EXPORT hdrt_status hdrt_queue_host_call(hdrt_queue *queue, hdrt_host_function function, void *argument);

/* ---- launches ------------------------------------------------------------------------------------------------ */

/** A launch's geometry. Frozen. A zero in grid: an ordered no-op. A zero in block: an error. */
typedef struct hdrt_grid {
    uint32_t grid[3];  /**< blocks, x y z */
    uint32_t block[3]; /**< threads in a block, x y z */
    uint32_t shared;   /**< dynamic shared memory, bytes */
} hdrt_grid;

/** ceil(n / block) blocks of `block` threads; more blocks than the device allows fail at the launch. */
static inline hdrt_grid hdrt_grid_1d(uint64_t n, uint32_t block)
{
    uint64_t blocks = block ? n / block + (n % block != 0) : 0;
    hdrt_grid grid = {{blocks > UINT32_MAX ? UINT32_MAX : (uint32_t)blocks, 1, 1}, {block, 1, 1}, 0};
    return grid;
}

/** ceil(nx / bx) by ceil(ny / by) blocks of bx by by threads. */
static inline hdrt_grid hdrt_grid_2d(uint64_t nx, uint64_t ny, uint32_t bx, uint32_t by)
{
    hdrt_grid x = hdrt_grid_1d(nx, bx), y = hdrt_grid_1d(ny, by);
    x.grid[1] = y.grid[0];
    x.block[1] = by;
    return x;
}

/** ceil(nx / bx) by ceil(ny / by) by ceil(nz / bz) blocks of bx by by by bz threads. */
static inline hdrt_grid hdrt_grid_3d(uint64_t nx, uint64_t ny, uint64_t nz, uint32_t bx, uint32_t by, uint32_t bz)
{
    hdrt_grid xy = hdrt_grid_2d(nx, ny, bx, by), z = hdrt_grid_1d(nz, bz);
    xy.grid[2] = z.grid[0];
    xy.block[2] = bz;
    return xy;
}

/** The same grid with dynamic shared memory. */
static inline hdrt_grid hdrt_grid_shared(hdrt_grid grid, uint32_t bytes)
{
    grid.shared = bytes;
    return grid;
}

/** What an operation does with memory, for HDRT_CHECK=order. */
typedef enum hdrt_access {
    HDRT_ACCESS_WRITE = 0, /**< may write it, and read it */
    HDRT_ACCESS_READ = 1,  /**< only reads it */
    HDRT_ACCESS_NONE = 2,  /**< does not touch it */
} hdrt_access;

/** Memory that a launch touches, for HDRT_CHECK=order. */
typedef struct hdrt_access_range {
    hdrt_ptr ptr;       /**< first byte; pinned host memory too, by its address */
    uint64_t bytes;     /**< how many */
    hdrt_access access; /**< what with */
} hdrt_access_range;

/** Options of hdrt_launch_with. Start from HDRT_LAUNCH_OPTIONS_INIT. */
typedef struct hdrt_launch_options {
    size_t size;                /**< sizeof(hdrt_launch_options) */
    hdrt_grid grid;             /**< geometry */
    bool cooperative;           /**< grid-wide synchronisation: all blocks resident at once */
    bool programmatic;          /**< programmatic dependent launch (HDRT_ERROR_UNSUPPORTED in this version) */
    uint32_t cluster[3];        /**< blocks in a cluster (HDRT_ERROR_UNSUPPORTED in this version); zeros: none */
    int32_t priority;           /**< reserved: zero */
    const hdrt_access_range *accesses; /**< with HDRT_CHECK=order: all the memory that the launch touches; NULL: what its
                                     arguments point into, see hdrt_kernel_set_access. Read during the call. */
    uint32_t access_count;      /**< how many accesses */
    uint32_t reserved[5];       /**< zero */
} hdrt_launch_options;

#define HDRT_LAUNCH_OPTIONS_INIT HDRT_INIT_(hdrt_launch_options)

/** Most arguments of HDRT_ARGS. */
#define HDRT_ARGS_LIMIT 32

/** An argument's kind: its size in the low 24 bits, its class above. */
#define HDRT_KIND(class_, size_) ((uint32_t)(class_) << 24 | (uint32_t)(size_))
#define HDRT_CLASS_UNKNOWN 0u /**< checked by size alone: structs, half */
#define HDRT_CLASS_INTEGER 1u /**< integer or pointer */
#define HDRT_CLASS_FLOAT 2u   /**< float or double */

/**
 * Enqueue a kernel launch. Arguments are checked against the kernel's parameters and copied during the call.
 *
 * \param args   count pointers to the arguments' values
 * \param kinds  count kinds (HDRT_KIND): each must have its parameter's size; a float for an integer or the other way
 *     round is an error; signed and unsigned, or a pointer and a 64-bit integer, cannot be told apart. NULL: unchecked
 *     kinds are not possible: HDRT_ERROR_INVALID_ARGUMENT unless count is 0.
 * \return HDRT_OK; HDRT_ERROR_LAUNCH  wrong count, size or class of arguments, zero or too large block, too large grid
 *     or shared memory: the message names kernel, parameter, what was given and what is allowed;
 *     HDRT_ERROR_INVALID_ARGUMENT  other devices' kernel, bad options; HDRT_WOULD_BLOCK  ring full;
 *     HDRT_ERROR_UNSUPPORTED, HDRT_ERROR_QUEUE_FAILED, HDRT_ERROR_DEVICE_LOST, HDRT_ERROR_FORKED;
 *     HDRT_ERROR_DRIVER  the ring is full, and the driver cannot be asked how far the queue is: nothing was enqueued,
 *     and the queue has not failed.
 */
HDRT_EXPORT hdrt_status hdrt_launch_with(hdrt_queue *queue, hdrt_kernel *kernel, const hdrt_launch_options *options,
                                         const void *const *args, const uint32_t *kinds, uint32_t count);

/** What HDRT_ARGS builds: argument pointers and kinds, alive until the end of the enclosing block. */
typedef struct hdrt_args {
    const void *const *pointers;
    const uint32_t *kinds;
    uint32_t count;
} hdrt_args;

/** Enqueue a launch with default options; see hdrt_launch_with. */
static inline hdrt_status hdrt_launch(hdrt_queue *queue, hdrt_kernel *kernel, hdrt_grid grid, hdrt_args args)
{
    hdrt_launch_options options = HDRT_LAUNCH_OPTIONS_INIT;
    options.grid = grid;
    return hdrt_launch_with(queue, kernel, &options, args.pointers, args.kinds, args.count);
}

#include <hdrt/args.h>

/**
 * Tell what a kernel does with the memory that a parameter points to, for HDRT_CHECK=order. The check takes the whole
 * allocation that the argument points into, and that the kernel may write it, until this says otherwise; what is only
 * read by several queues at once must be told, or it is reported. Costs nothing without the check. Any thread.
 *
 * \param parameter  from 0, below 64
 * \return HDRT_OK; HDRT_ERROR_INVALID_ARGUMENT  NULL, no such parameter, or no such access.
 */
HDRT_EXPORT hdrt_status hdrt_kernel_set_access(hdrt_kernel *kernel, uint32_t parameter, hdrt_access access);

/* ---- timers -------------------------------------------------------------------------------------------------- */

/** Create a timer: a point in device time, set by hdrt_queue_timestamp. \return HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY,
 *     HDRT_ERROR_DEVICE_LOST, HDRT_ERROR_FORKED. */
HDRT_EXPORT hdrt_status hdrt_timer_create(hdrt_device *device, hdrt_timer **out_timer);

/** Drop it; pending timestamps still take place. */
HDRT_EXPORT void hdrt_timer_destroy(hdrt_timer *timer);

/** Set the timer when the queue comes here; setting it again replaces the time. \return as hdrt_launch. */
HDRT_EXPORT hdrt_status hdrt_queue_timestamp(hdrt_queue *queue, hdrt_timer *timer);

/**
 * Nanoseconds from `start` to `end`, negative if `end` came first. Resolution as the driver's events (0.5 us).
 * \return HDRT_OK; HDRT_NOT_READY  one of them has not been reached; HDRT_ERROR_INVALID_ARGUMENT  one was never
 *     enqueued, or they are of different devices; HDRT_ERROR_DEVICE_LOST; HDRT_ERROR_FORKED.
 */
HDRT_EXPORT hdrt_status hdrt_timer_elapsed(hdrt_timer *start, hdrt_timer *end, int64_t *out_ns);

#endif
