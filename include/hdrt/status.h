/* SPDX-License-Identifier: MIT */
/**
 * \file hdrt/status.h
 * Status codes, messages and the log.
 *
 * Every function that can fail returns an hdrt_status: 0 is success, negative numbers are failures, positive numbers
 * are answers that are no failures. Numbers never change.
 */
#ifndef HDRT_STATUS_H
#define HDRT_STATUS_H

#ifndef HDRT_H
#error "include <hdrt.h>, not its parts"
#endif

/**
 * All statuses: X(name, number, text).
 *
 * A macro, so that bindings and tests can walk the list; new ones get new numbers.
 */
#define HDRT_STATUS_LIST(X)                                                                                            \
    X(HDRT_OK, 0, "success")                                                                                           \
    X(HDRT_NOT_READY, 1, "not complete yet")                                                                           \
    X(HDRT_WOULD_BLOCK, 2, "the call would have to wait, and was asked not to")                                        \
    X(HDRT_TIMEOUT, 3, "the time limit passed first")                                                                  \
    X(HDRT_ERROR_INVALID_ARGUMENT, -1, "invalid argument")                                                             \
    X(HDRT_ERROR_OUT_OF_MEMORY, -2, "out of host memory")                                                              \
    X(HDRT_ERROR_OUT_OF_DEVICE_MEMORY, -3, "out of device memory")                                                     \
    X(HDRT_ERROR_UNSUPPORTED, -4, "not supported by this library, driver or device")                                   \
    X(HDRT_ERROR_NOT_FOUND, -5, "not found")                                                                           \
    X(HDRT_ERROR_NO_DRIVER, -6, "no usable CUDA driver library")                                                       \
    X(HDRT_ERROR_DRIVER_STUB, -7, "the CUDA library found is the toolkit's link-time stub")                            \
    X(HDRT_ERROR_DRIVER_TOO_OLD, -8, "the CUDA driver is too old")                                                     \
    X(HDRT_ERROR_NO_DEVICE, -9, "no CUDA device")                                                                      \
    X(HDRT_ERROR_FORKED, -10, "the runtime was created before fork and cannot be used in the child")                   \
    X(HDRT_ERROR_DEVICE_LOST, -11, "the device had a fault; this process can no longer use it")                        \
    X(HDRT_ERROR_QUEUE_FAILED, -12, "an earlier operation on the queue failed")                                        \
    X(HDRT_ERROR_EVENT_FAILED, -13, "the event completed as failed")                                                   \
    X(HDRT_ERROR_DRIVER, -14, "the CUDA driver reported an error")                                                     \
    X(HDRT_ERROR_LAUNCH, -15, "the launch does not fit the kernel or the device")                                      \
    X(HDRT_ERROR_NO_COMPILER, -16, "no usable kernel compiler")                                                        \
    X(HDRT_ERROR_COMPILE, -17, "the kernel source does not compile")                                                   \
    X(HDRT_ERROR_COMPILER_CRASHED, -18, "the kernel compiler ended abnormally")                                        \
    X(HDRT_ERROR_COMPILE_LIMIT, -19, "the compile passed its time or memory limit")                                    \
    X(HDRT_ERROR_INVALID_IMAGE, -20, "the code image is damaged or not for this device")                               \
    X(HDRT_ERROR_IO, -21, "input or output failed")                                                                    \
    X(HDRT_ERROR_CAPTURING, -22, "the stream is being captured")                                                       \
    X(HDRT_ERROR_COMPANION, -23, "a companion file of libhdrt is missing or does not fit")                             \
    X(HDRT_ERROR_CANCELLED, -24, "cancelled")                                                                          \
    X(HDRT_ERROR_CYCLE, -25, "the queues wait for each other in a cycle")                                              \
    X(HDRT_ERROR_INTERNAL, -26, "a defect in libhdrt")

/** Result of a call; see HDRT_STATUS_LIST for each value. */
typedef enum hdrt_status {
#define HDRT_STATUS_ENUM(name, number, text) name = number,
    HDRT_STATUS_LIST(HDRT_STATUS_ENUM)
#undef HDRT_STATUS_ENUM
} hdrt_status;

/** The status's name, e.g. "HDRT_ERROR_NO_DEVICE"; "HDRT_STATUS_?" for other numbers. Static storage. Any thread. */
HDRT_EXPORT const char *hdrt_status_name(hdrt_status status);

/** The status's meaning in words, lower case, no full stop. Static storage. Any thread. */
HDRT_EXPORT const char *hdrt_status_text(hdrt_status status);

/**
 * The calling thread's last message: what was attempted, on what, what failed, what to do.
 *
 * Set by every call that returned a negative status on this thread; successful calls leave it alone, so look only
 * after a failure. Never NULL; "" before the first failure. Valid until the thread's next failing call or its end.
 */
HDRT_EXPORT const char *hdrt_last_error(void);

/** How much the log says. */
typedef enum hdrt_log_level {
    HDRT_LOG_NONE = 0,  /**< nothing (the default) */
    HDRT_LOG_ERROR = 1, /**< failures that no call can return: in teardown, on library threads */
    HDRT_LOG_WARN = 2,  /**< what works, but not as one would expect: an unusable cache folder */
    HDRT_LOG_INFO = 3,  /**< choices: driver, compiler and companions found, and by which rule */
    HDRT_LOG_DEBUG = 4, /**< each compile, cache look-up and stream */
} hdrt_log_level;

/** Receives one line of log, without a line end. May be called from any thread, several at once; must not call hdrt. */
typedef void (*hdrt_log_function)(void *context, hdrt_log_level level, const char *line);

/**
 * Send log lines up to `level` to `function` (NULL: back to the default).
 *
 * The default is what the environment variable HDRT_LOG asks for ("error", "warn", "info", "debug": lines to standard
 * error), else nothing: the library never prints on its own. Process-wide. Any thread.
 */
HDRT_EXPORT void hdrt_log_set(hdrt_log_level level, hdrt_log_function function, void *context);

#endif
