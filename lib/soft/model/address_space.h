/* SPDX-License-Identifier: MIT */
/*
 * A device's addresses. What programs see is a window that nobody can read (PROT_NONE), so that a host that follows a
 * device pointer dies as it does beside a real GPU; the bytes lie at a fixed distance, in pages that appear when they
 * are first touched. Called by memory.c only, under its lock.
 */
#ifndef HDSOFT_MODEL_ADDRESS_SPACE_H
#define HDSOFT_MODEL_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hdsoft__extent {
    uint64_t base, bytes;
} hdsoft__extent;

typedef struct hdsoft__space {
    uint64_t base, bytes;      /* the window */
    unsigned char *backing;    /* the byte behind address `base` */
    uint64_t top;              /* addresses at and above it were never given out */
    uint64_t opened;           /* up to there the backing can be read and written */
    hdsoft__extent *free;      /* below top and free again; sorted, no two touch */
    size_t free_count, free_capacity;
    int pattern_file;          /* one stretch of fresh memory to map many times; -1: none */
} hdsoft__space;

/* Reserve at least `least` bytes, `wished` if the system allows. Returns 0 or 2 (OUT_OF_MEMORY). */
int hdsoft__space_create(hdsoft__space *space, uint64_t wished, uint64_t least);
void hdsoft__space_destroy(hdsoft__space *space);

static inline bool hdsoft__space_holds(const hdsoft__space *space, uint64_t address)
{
    return address - space->base < space->bytes;
}

static inline unsigned char *hdsoft__space_host(const hdsoft__space *space, uint64_t address)
{
    return space->backing + (address - space->base);
}

/* Lowest free stretch of `bytes`, its start a multiple of `align` (a power of two); 0: none is left. */
uint64_t hdsoft__space_take(hdsoft__space *space, uint64_t bytes, uint64_t align);
/* Have room for `more` further entries in the list of free stretches; false: out of memory. */
bool hdsoft__space_reserve(hdsoft__space *space, size_t more);
/* Take just this stretch, which must be free; it needs no memory if one entry is reserved. */
void hdsoft__space_take_at(hdsoft__space *space, uint64_t base, uint64_t bytes);
/* Give a stretch back; may fail for want of memory, then those addresses are never used again. */
void hdsoft__space_give(hdsoft__space *space, uint64_t base, uint64_t bytes);

/* Make fresh memory look fresh: every 32-bit word a float NaN, every 64-bit one a double NaN, no valid pointer. */
void hdsoft__space_fill(hdsoft__space *space, uint64_t base, uint64_t bytes);
/* Return the pages of freed memory to the system where that pays. */
void hdsoft__space_discard(hdsoft__space *space, uint64_t base, uint64_t bytes);

#endif
