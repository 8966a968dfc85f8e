/* SPDX-License-Identifier: MIT */
/*
 * What the driver's result codes mean: names and words of our own, because a lost driver is not asked any more, and
 * the one place where a CUresult becomes an hdrt_status.
 */
#ifndef HDRT_DRIVER_ERROR_H
#define HDRT_DRIVER_ERROR_H

#include <stdarg.h>

#include <hdrt.h>

#include "driver/call.h"

/* "CUDA_ERROR_OUT_OF_MEMORY"; "CUDA_ERROR_?" for a code that this library does not know. Static storage. */
const char *hdrt__result_name(hdcu_result result);

/* The code's meaning in words, lower case, no full stop. Static storage. */
const char *hdrt__result_text(hdcu_result result);

/* HDRT_ERROR_DEVICE_LOST exactly for the lost set; HDRT_ERROR_DRIVER for what has no status of its own. */
hdrt_status hdrt__result_status(hdcu_result result);

/* Whether the code means that this process can no longer use the GPU: 226, 700, 702, 710, 714-719, 721, 810, 911. */
bool hdrt__result_is_lost(hdcu_result result);

/*
 * Keep "WHAT: CALL failed: NAME (number): text" as the thread's message. `format` says what was attempted on what.
 * \return hdrt__result_status(result); for HDCU_SUCCESS HDRT_OK, and no message.
 */
hdrt_status hdrt__call_failed(hdrt__call call, const char *format, ...) __attribute__((format(printf, 2, 3)));
hdrt_status hdrt__call_failed_with(hdcu_result result, const char *call, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

#endif
