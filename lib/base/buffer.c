/* SPDX-License-Identifier: MIT */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

/* Make room for `more` bytes and the NUL behind them. */
static bool reserve(hdrt__buffer *buffer, size_t more)
{
    size_t needed;
    if (buffer->failed)
        return false;
    if (!hdrt__size_add(buffer->size, more, &needed) || !hdrt__size_add(needed, 1, &needed)) {
        buffer->failed = true;
        return false;
    }
    if (needed <= buffer->capacity)
        return true;
    size_t capacity = buffer->capacity ? buffer->capacity : 64;
    while (capacity < needed)
        if (!hdrt__size_multiply(capacity, 2, &capacity))
            capacity = needed;
    unsigned char *bytes = realloc(buffer->bytes, capacity);
    if (!bytes) {
        buffer->failed = true;
        return false;
    }
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return true;
}

void hdrt__buffer_append(hdrt__buffer *buffer, const void *bytes, size_t size)
{
    if (!reserve(buffer, size))
        return;
    if (size)
        memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
    buffer->bytes[buffer->size] = 0;
}

void hdrt__buffer_text(hdrt__buffer *buffer, const char *text)
{
    hdrt__buffer_append(buffer, text, strlen(text));
}

void hdrt__buffer_format(hdrt__buffer *buffer, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        buffer->failed = true;
    else if (reserve(buffer, (size_t)length)) {
        vsnprintf((char *)buffer->bytes + buffer->size, (size_t)length + 1, format, again);
        buffer->size += (size_t)length;
    }
    va_end(again);
}

void hdrt__buffer_u32(hdrt__buffer *buffer, uint32_t value)
{
    unsigned char bytes[4];
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    hdrt__buffer_append(buffer, bytes, sizeof bytes);
}

void hdrt__buffer_u64(hdrt__buffer *buffer, uint64_t value)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    hdrt__buffer_append(buffer, bytes, sizeof bytes);
}

char *hdrt__buffer_take(hdrt__buffer *buffer, size_t *out_size)
{
    hdrt__buffer_append(buffer, "", 0); /* an empty buffer gives an empty text, not NULL */
    char *taken = NULL;
    size_t size = 0;
    if (!buffer->failed) {
        taken = (char *)buffer->bytes;
        size = buffer->size;
        *buffer = (hdrt__buffer)HDRT__BUFFER_INIT;
    }
    if (out_size)
        *out_size = size;
    hdrt__buffer_free(buffer);
    return taken;
}

void hdrt__buffer_free(hdrt__buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (hdrt__buffer)HDRT__BUFFER_INIT;
}
