/* SPDX-License-Identifier: MIT */
/*
 * The self-checking file of the cache: a header, typed sections, and a checksum of all that comes before it.
 *
 *     magic 8 bytes, format version u32, zero u32, total length u64 and its complement u64,
 *     { tag u32, zero u32, length u64, bytes }... and the checksum, 16 bytes
 *
 * Nothing of a file is parsed before its checksum was found right. Readers skip sections whose tag they do not know.
 * The checksum is against damage, not malice: who may write a folder may write anything into it, which is why a
 * folder's owner and mode are looked at. What is named by its content keeps its BLAKE2b-256. With a wrong checksum the
 * header is looked at only to say what happened: the length twice tells a file that was cut from one whose length was
 * damaged.
 */
#ifndef HDRT_JIT_CONTAINER_H
#define HDRT_JIT_CONTAINER_H

#include <hdrt.h>

#include "base/buffer.h"
#include "base/digest.h"
#include "jit/cursor.h"

#define HDRT__CONTAINER_VERSION 3u
#define HDRT__CONTAINER_MAGIC_SIZE 8u

/* Write: begin, sections, end; then look at buffer->failed. */
void hdrt__container_begin(hdrt__buffer *buffer, const char magic[HDRT__CONTAINER_MAGIC_SIZE]);
void hdrt__container_section(hdrt__buffer *buffer, uint32_t tag, const void *bytes, size_t size);
void hdrt__container_text(hdrt__buffer *buffer, uint32_t tag, const char *text); /* nothing for NULL */
void hdrt__container_end(hdrt__buffer *buffer);

/*
 * Read: HDRT_CACHE_HIT if the bytes are a whole, undamaged container of that magic, and *out_sections is for next.
 * Else HDRT_CACHE_TRUNCATED, _EXTENDED, _DAMAGED, _OTHER_VERSION, or _MISPLACED for another magic.
 */
hdrt_cache_reason hdrt__container_open(const unsigned char *bytes, size_t size,
                                       const char magic[HDRT__CONTAINER_MAGIC_SIZE], hdrt__cursor *out_sections);

typedef struct hdrt__section {
    uint32_t tag;
    const unsigned char *bytes; /* borrowed from the container */
    size_t size;
} hdrt__section;

/* The next section; false at the end, with sections->failed set if there was half a section. */
bool hdrt__container_next(hdrt__cursor *sections, hdrt__section *out);

/* A copy of a section as a C string; NULL if out of memory or there is a NUL in it. */
char *hdrt__section_text(const hdrt__section *section);

#endif
