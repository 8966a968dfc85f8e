/* SPDX-License-Identifier: MIT */
#include "compiler/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for `more` bytes and the NUL behind them. */
static bool reserve(hdrt__cc_buffer *buffer, size_t more)
{
    if (buffer->failed)
        return false;
    size_t needed;
    if (__builtin_add_overflow(buffer->size, more, &needed) || __builtin_add_overflow(needed, (size_t)1, &needed)) {
        buffer->failed = true;
        return false;
    }
    if (needed <= buffer->capacity)
        return true;
    size_t capacity = buffer->capacity < 256 ? 256 : buffer->capacity;
    while (capacity < needed)
        capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
    unsigned char *bytes = realloc(buffer->bytes, capacity);
    if (bytes == NULL) {
        buffer->failed = true;
        return false;
    }
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return true;
}

void hdrt__cc_buffer_append(hdrt__cc_buffer *buffer, const void *bytes, size_t size)
{
    if (!reserve(buffer, size))
        return;
    if (size > 0)
        memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
    buffer->bytes[buffer->size] = '\0';
}

void hdrt__cc_buffer_text(hdrt__cc_buffer *buffer, const char *text)
{
    hdrt__cc_buffer_append(buffer, text, strlen(text));
}

void hdrt__cc_buffer_vformat(hdrt__cc_buffer *buffer, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    if (length < 0)
        buffer->failed = true;
    else if (reserve(buffer, (size_t)length)) {
        vsnprintf((char *)buffer->bytes + buffer->size, (size_t)length + 1, format, again);
        buffer->size += (size_t)length;
    }
    va_end(again);
}

void hdrt__cc_buffer_format(hdrt__cc_buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    hdrt__cc_buffer_vformat(buffer, format, arguments);
    va_end(arguments);
}

void hdrt__cc_buffer_u32(hdrt__cc_buffer *buffer, uint32_t value)
{
    unsigned char bytes[4];
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    hdrt__cc_buffer_append(buffer, bytes, sizeof bytes);
}

void hdrt__cc_buffer_u64(hdrt__cc_buffer *buffer, uint64_t value)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    hdrt__cc_buffer_append(buffer, bytes, sizeof bytes);
}

void hdrt__cc_buffer_field(hdrt__cc_buffer *buffer, uint32_t tag, const void *bytes, size_t size)
{
    hdrt__cc_buffer_u32(buffer, tag);
    hdrt__cc_buffer_u64(buffer, size);
    hdrt__cc_buffer_append(buffer, bytes, size);
}

void hdrt__cc_buffer_free(hdrt__cc_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (hdrt__cc_buffer){0};
}

uint32_t hdrt__cc_read_u32(const unsigned char *bytes)
{
    uint32_t value = 0;
    for (int i = 3; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

uint64_t hdrt__cc_read_u64(const unsigned char *bytes)
{
    return (uint64_t)hdrt__cc_read_u32(bytes + 4) << 32 | hdrt__cc_read_u32(bytes);
}

bool hdrt__cc_next_field(const unsigned char *payload, size_t size, size_t *at, hdrt__cc_field *out, bool *malformed)
{
    *malformed = false;
    if (*at == size)
        return false;
    if (size - *at < 12) {
        *malformed = true;
        return false;
    }
    uint64_t length = hdrt__cc_read_u64(payload + *at + 4);
    if (length > size - *at - 12) {
        *malformed = true;
        return false;
    }
    out->tag = hdrt__cc_read_u32(payload + *at);
    out->bytes = payload + *at + 12;
    out->size = (size_t)length;
    *at += 12 + (size_t)length;
    return true;
}
