/* SPDX-License-Identifier: MIT */
#include "jit/container.h"

#include <stdlib.h>
#include <string.h>

#define HEADER_SIZE 32u
#define LENGTH_AT 16u

void hdrt__container_begin(hdrt__buffer *buffer, const char magic[HDRT__CONTAINER_MAGIC_SIZE])
{
    hdrt__buffer_append(buffer, magic, HDRT__CONTAINER_MAGIC_SIZE);
    hdrt__buffer_u32(buffer, HDRT__CONTAINER_VERSION);
    hdrt__buffer_u32(buffer, 0);
    hdrt__buffer_u64(buffer, 0); /* the length, known at the end */
    hdrt__buffer_u64(buffer, 0); /* its complement */
}

void hdrt__container_section(hdrt__buffer *buffer, uint32_t tag, const void *bytes, size_t size)
{
    hdrt__buffer_u32(buffer, tag);
    hdrt__buffer_u32(buffer, 0);
    hdrt__buffer_u64(buffer, size);
    hdrt__buffer_append(buffer, bytes, size);
}

void hdrt__container_text(hdrt__buffer *buffer, uint32_t tag, const char *text)
{
    if (text)
        hdrt__container_section(buffer, tag, text, strlen(text));
}

void hdrt__container_end(hdrt__buffer *buffer)
{
    if (buffer->failed)
        return;
    uint64_t total = (uint64_t)buffer->size + HDRT__CHECKSUM_SIZE;
    for (unsigned i = 0; i < 8; i++) {
        buffer->bytes[LENGTH_AT + i] = (unsigned char)(total >> (8 * i));
        buffer->bytes[LENGTH_AT + 8 + i] = (unsigned char)(~total >> (8 * i));
    }
    unsigned char checksum[HDRT__CHECKSUM_SIZE];
    hdrt__checksum_of(buffer->bytes, buffer->size, checksum);
    hdrt__buffer_append(buffer, checksum, sizeof(checksum));
}

/* What became of bytes whose checksum is wrong. Only words depend on it. */
static hdrt_cache_reason describe_damage(const unsigned char *bytes, size_t size, const char *magic)
{
    size_t begins = size < HDRT__CONTAINER_MAGIC_SIZE ? size : HDRT__CONTAINER_MAGIC_SIZE;
    if (begins && memcmp(bytes, magic, begins) != 0)
        return HDRT_CACHE_DAMAGED;
    if (size < HEADER_SIZE)
        return HDRT_CACHE_TRUNCATED;
    hdrt__cursor cursor = {bytes + LENGTH_AT, HEADER_SIZE - LENGTH_AT, false};
    uint64_t length = hdrt__cursor_u64(&cursor), complement = hdrt__cursor_u64(&cursor);
    if (length != ~complement || length == size)
        return HDRT_CACHE_DAMAGED;
    return length > size ? HDRT_CACHE_TRUNCATED : HDRT_CACHE_EXTENDED;
}

hdrt_cache_reason hdrt__container_open(const unsigned char *bytes, size_t size,
                                       const char magic[HDRT__CONTAINER_MAGIC_SIZE], hdrt__cursor *out_sections)
{
    unsigned char checksum[HDRT__CHECKSUM_SIZE];
    if (size < HEADER_SIZE + HDRT__CHECKSUM_SIZE)
        return describe_damage(bytes, size, magic);
    size_t covered = size - HDRT__CHECKSUM_SIZE;
    hdrt__checksum_of(bytes, covered, checksum);
    if (memcmp(checksum, bytes + covered, sizeof(checksum)) != 0)
        return describe_damage(bytes, size, magic);
    size_t magic_size;
    hdrt__cursor cursor = {bytes, covered, false};
    const unsigned char *found = hdrt__cursor_bytes(&cursor, HDRT__CONTAINER_MAGIC_SIZE, &magic_size);
    if (memcmp(found, magic, HDRT__CONTAINER_MAGIC_SIZE) != 0)
        return HDRT_CACHE_MISPLACED;
    if (hdrt__cursor_u32(&cursor) != HDRT__CONTAINER_VERSION)
        return HDRT_CACHE_OTHER_VERSION;
    uint32_t zero = hdrt__cursor_u32(&cursor);
    uint64_t length = hdrt__cursor_u64(&cursor), complement = hdrt__cursor_u64(&cursor);
    if (zero != 0 || length != size || length != ~complement)
        return HDRT_CACHE_DAMAGED;
    *out_sections = cursor;
    return HDRT_CACHE_HIT;
}

bool hdrt__container_next(hdrt__cursor *sections, hdrt__section *out)
{
    if (sections->failed || sections->left == 0)
        return false;
    out->tag = hdrt__cursor_u32(sections);
    hdrt__cursor_u32(sections);
    out->bytes = hdrt__cursor_bytes(sections, hdrt__cursor_u64(sections), &out->size);
    return !sections->failed;
}

char *hdrt__section_text(const hdrt__section *section)
{
    if (section->size && memchr(section->bytes, 0, section->size))
        return NULL;
    char *text = malloc(section->size + 1);
    if (text) {
        if (section->size)
            memcpy(text, section->bytes, section->size);
        text[section->size] = '\0';
    }
    return text;
}
