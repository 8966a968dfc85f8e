/* SPDX-License-Identifier: MIT */
/*
 * A growable byte buffer with a sticky failure flag, and the fields of protocol.h on top of it. hdrt-cc uses nothing of
 * the library, so that it stays a program of its own; this is all that it needs of the kind.
 */
#ifndef HDRT_COMPILER_BUFFER_H
#define HDRT_COMPILER_BUFFER_H

#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hdrt__cc_buffer {
    unsigned char *bytes; /* NUL-terminated beyond size once anything was appended */
    size_t size, capacity;
    bool failed; /* an allocation failed, or a size overflowed; appends do nothing from then on */
} hdrt__cc_buffer;

void hdrt__cc_buffer_append(hdrt__cc_buffer *buffer, const void *bytes, size_t size);
void hdrt__cc_buffer_text(hdrt__cc_buffer *buffer, const char *text);
void hdrt__cc_buffer_format(hdrt__cc_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hdrt__cc_buffer_vformat(hdrt__cc_buffer *buffer, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
void hdrt__cc_buffer_u32(hdrt__cc_buffer *buffer, uint32_t value); /* little-endian */
void hdrt__cc_buffer_u64(hdrt__cc_buffer *buffer, uint64_t value);
void hdrt__cc_buffer_field(hdrt__cc_buffer *buffer, uint32_t tag, const void *bytes, size_t size);
void hdrt__cc_buffer_free(hdrt__cc_buffer *buffer);

/* Little-endian numbers out of a message. */
uint32_t hdrt__cc_read_u32(const unsigned char *bytes);
uint64_t hdrt__cc_read_u64(const unsigned char *bytes);

/* The next field of a payload. true: *at moved past it; false at the end or on a malformed field, see *malformed. */
typedef struct hdrt__cc_field {
    uint32_t tag;
    const unsigned char *bytes;
    size_t size;
} hdrt__cc_field;

bool hdrt__cc_next_field(const unsigned char *payload, size_t size, size_t *at, hdrt__cc_field *out, bool *malformed);

#endif
