/* SPDX-License-Identifier: MIT */
/*
 * Overflow-checked sizes, the monotonic clock, and small file helpers that several folders need.
 */
#ifndef HDRT_BASE_NUMBER_H
#define HDRT_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool hdrt__size_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool hdrt__size_multiply(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t hdrt__now_ns(void);

/* now + timeout, UINT64_MAX when that overflows or timeout is HDRT_FOREVER. */
uint64_t hdrt__deadline(uint64_t timeout_ns);

/* malloc'ed "directory/name"; NULL if out of memory. */
char *hdrt__path_join(const char *directory, const char *name);

#endif
