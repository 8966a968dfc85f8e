/* SPDX-License-Identifier: MIT */
/*
 * A bounds-checked reader over bytes that nobody vouches for, with a sticky failure flag: read a whole record, check
 * once. After a failure every read gives zero or NULL. Numbers are little-endian and need no alignment.
 */
#ifndef HDRT_JIT_CURSOR_H
#define HDRT_JIT_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hdrt__cursor {
    const unsigned char *bytes;
    size_t left;
    bool failed;
} hdrt__cursor;

/* The next `size` bytes, borrowed; *out_size is `size`, or 0 on failure. */
static inline const unsigned char *hdrt__cursor_bytes(hdrt__cursor *cursor, uint64_t size, size_t *out_size)
{
    *out_size = 0;
    if (cursor->failed || size > cursor->left) {
        cursor->failed = true;
        return NULL;
    }
    const unsigned char *start = cursor->bytes;
    cursor->bytes += size;
    cursor->left -= (size_t)size;
    *out_size = (size_t)size;
    return start;
}

static inline uint64_t hdrt__cursor_number(hdrt__cursor *cursor, unsigned width)
{
    size_t size;
    const unsigned char *bytes = hdrt__cursor_bytes(cursor, width, &size);
    uint64_t value = 0;
    for (size_t i = size; i > 0; i--)
        value = value << 8 | bytes[i - 1];
    return value;
}

static inline uint16_t hdrt__cursor_u16(hdrt__cursor *cursor)
{
    return (uint16_t)hdrt__cursor_number(cursor, 2);
}

static inline uint32_t hdrt__cursor_u32(hdrt__cursor *cursor)
{
    return (uint32_t)hdrt__cursor_number(cursor, 4);
}

static inline uint64_t hdrt__cursor_u64(hdrt__cursor *cursor)
{
    return hdrt__cursor_number(cursor, 8);
}

/* A cursor over [offset, offset + size) of the bytes; failed if that is not inside. */
static inline hdrt__cursor hdrt__cursor_within(const unsigned char *bytes, size_t total, uint64_t offset, uint64_t size)
{
    if (offset > total || size > total - offset)
        return (hdrt__cursor){bytes, 0, true};
    return (hdrt__cursor){bytes + offset, (size_t)size, false};
}

#endif
