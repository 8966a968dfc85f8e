/* SPDX-License-Identifier: MIT */
/*
 * A growable byte buffer with a sticky failure flag: append as often as needed, check once. Used for messages, cache
 * files and the worker protocol.
 */
#ifndef HDRT_BASE_BUFFER_H
#define HDRT_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hdrt__buffer {
    unsigned char *bytes; /* NUL-terminated beyond size once anything was appended */
    size_t size, capacity;
    bool failed; /* an allocation failed, or a size overflowed; appends do nothing from then on */
} hdrt__buffer;

#define HDRT__BUFFER_INIT {0}

void hdrt__buffer_append(hdrt__buffer *buffer, const void *bytes, size_t size);
void hdrt__buffer_text(hdrt__buffer *buffer, const char *text);
void hdrt__buffer_format(hdrt__buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Little-endian numbers. */
void hdrt__buffer_u32(hdrt__buffer *buffer, uint32_t value);
void hdrt__buffer_u64(hdrt__buffer *buffer, uint64_t value);
/* Give the bytes (malloc'ed, NUL-terminated) to the caller and empty the buffer; NULL if it failed. */
char *hdrt__buffer_take(hdrt__buffer *buffer, size_t *out_size);
void hdrt__buffer_free(hdrt__buffer *buffer);

#endif
