/* SPDX-License-Identifier: MIT */
/*
 * The one way to call the driver: the result and the call's text stay together, so that whoever reports the failure
 * can name the call. Used inside a scope (scope.h) by everything that makes driver calls.
 *
 *     hdrt__call call = HDRT__CALL(table, cuMemAlloc, &pointer, bytes);
 *     if (call.result)
 *         return hdrt__call_failed(call, "allocating %zu bytes", bytes);
 */
#ifndef HDRT_DRIVER_CALL_H
#define HDRT_DRIVER_CALL_H

#include "driver/cuda_table.h"

typedef struct hdrt__call {
    hdcu_result result;
    const char *text; /* "cuMemAlloc": our names for the arguments would tell the reader nothing */
} hdrt__call;

/* Call `entry` of the table; HDCU_ERROR_NOT_SUPPORTED, without a call, where this driver lacks it. */
#define HDRT__CALL(table, entry, ...)                                                                                  \
    ((hdrt__call){(table)->entry ? (table)->entry(__VA_ARGS__) : (hdcu_result)HDCU_ERROR_NOT_SUPPORTED,                \
                  #entry})

#endif
