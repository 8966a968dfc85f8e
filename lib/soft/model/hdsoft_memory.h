/* SPDX-License-Identifier: MIT */
/*
 * One soft device's memory, as the execution engine and the copies see it: a table of live ranges. An address that a
 * program holds (a CUdeviceptr, or a pinned host pointer) is found in the table and turned into the host bytes behind
 * it. Any thread may allocate and free while kernels run; the epoch changes whenever a range goes away, so a cached
 * range is good for as long as the epoch that it was found under.
 */
#ifndef HDSOFT_MEMORY_H
#define HDSOFT_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hdsoft_memory hdsoft_memory;

typedef enum hdsoft_range_kind {
    HDSOFT_RANGE_DEVICE = 1, /* cuMemAlloc and friends */
    HDSOFT_RANGE_HOST,       /* pinned or registered host memory: base is the host address itself */
    HDSOFT_RANGE_GLOBAL,     /* a module's .global variables */
    HDSOFT_RANGE_CONSTANT,   /* a module's .const variables: kernels may not write */
    HDSOFT_RANGE_HEAP,       /* what a kernel's malloc gave */
} hdsoft_range_kind;

typedef struct hdsoft_range {
    uint64_t base, end;      /* [base, end) of what the caller asked for, padding excluded */
    unsigned char *host;     /* host bytes of base */
    hdsoft_range_kind kind;
    uint64_t id;             /* number of the allocation, for messages */
} hdsoft_range;

/* The live range that holds `address`; false if there is none. Thread-safe. */
bool hdsoft_memory_find(hdsoft_memory *memory, uint64_t address, hdsoft_range *out);

/* Describe what lies around an address that is in no live range ("12 bytes past allocation #7 of 400 bytes", "inside
 * allocation #7 of 400 bytes, freed"). Always writes a NUL-terminated text. Thread-safe. */
void hdsoft_memory_explain(hdsoft_memory *memory, uint64_t address, char *text, size_t capacity);

/* Changes whenever a range goes away. */
uint64_t hdsoft_memory_epoch(hdsoft_memory *memory);

/* Allocate or free a range of kind GLOBAL or CONSTANT for a module's variables, GLOBAL for the engine's workspace, or
 * HEAP, of which there is a limited amount; align is a power of two up to 4096. Returns 0, or 2 (OUT_OF_MEMORY).
 * Thread-safe. */
int hdsoft_memory_allocate(hdsoft_memory *memory, uint64_t size, uint32_t align, hdsoft_range_kind kind, hdsoft_range *out);
void hdsoft_memory_release(hdsoft_memory *memory, uint64_t base);

#endif
