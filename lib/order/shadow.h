/* SPDX-License-Identifier: MIT */
/*
 * Shadows: of each byte of a block of memory, which operation wrote it last, and which have read it since, so that an
 * access that is not ordered after one of them is found. Bytes with the same history are one segment.
 *
 * Operations must come in an order in which each comes after all that it is ordered after. An operation that conflicts
 * with an earlier one is told once for each of these; the later one then takes its place.
 */
#ifndef HDRT_ORDER_SHADOW_H
#define HDRT_ORDER_SHADOW_H

#include <stddef.h>

#include "order/clock.h"

/* What touched memory. Counted by the segments that name it. */
typedef struct hdrt__toucher {
    uint32_t references;
    uint32_t line;
    uint64_t at; /* in the line's part of clocks */
    uint32_t told_line; /* the last conflict of it that was told */
    uint64_t told_at;
    char text[]; /* "queue 'a' at position 3: kernel 'add' <<<...>>>" */
} hdrt__toucher;

/* One reference, the caller's; NULL: no memory. */
hdrt__toucher *hdrt__toucher_create(uint32_t line, uint64_t at, const char *text);
void hdrt__toucher_drop(hdrt__toucher *toucher);

typedef struct hdrt__access {
    uint64_t block;          /* a number of the memory's that no other memory ever has; 0: not known */
    uint64_t block_address, block_bytes; /* where the block is; bytes 0: not known */
    uint64_t address, bytes; /* what of it */
    bool writes;
} hdrt__access;

typedef struct hdrt__shadow hdrt__shadow;

/* Bytes from `address` on were touched by `other` in a way that conflicts with `toucher`. */
typedef void (*hdrt__shadow_conflict)(void *context, const hdrt__access *access, const hdrt__toucher *toucher,
                                      const hdrt__toucher *other, bool other_writes, uint64_t address);

hdrt__shadow *hdrt__shadow_create(void);
void hdrt__shadow_destroy(hdrt__shadow *shadow);

/* The access of an operation that comes after `clock`. \return false: no memory; nothing can be said from then on. */
bool hdrt__shadow_touch(hdrt__shadow *shadow, const hdrt__access *access, hdrt__toucher *toucher,
                        const hdrt__clock *clock, hdrt__shadow_conflict conflict, void *context);
/* The block is gone. */
void hdrt__shadow_forget(hdrt__shadow *shadow, uint64_t block);

#endif
