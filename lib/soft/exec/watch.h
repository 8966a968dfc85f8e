/* SPDX-License-Identifier: MIT */
/*
 * What a checked run tells of every access to global and constant memory, before it is made. The checks
 * (lib/soft/check) pass an hdsoft_watch with a launch; the run then works on a copy of the code in which the memory
 * instructions call it first, so that an unchecked run costs nothing. Called on the thread that steps the run.
 */
#ifndef HDSOFT_WATCH_H
#define HDSOFT_WATCH_H

#include "soft/exec/engine.h"

/* What an instruction does to memory: in hdsoft_instruction.access, with the bytes of a lane from bit 8 on. */
enum {
    HDSOFT_ACCESS_READ = 1,
    HDSOFT_ACCESS_WRITE = 2,
    HDSOFT_ACCESS_STRONG = 4,   /* an atomic operation, volatile, or .relaxed and above */
    HDSOFT_ACCESS_ACQUIRE = 8,  /* it says so itself */
    HDSOFT_ACCESS_RELEASE = 16,
    HDSOFT_ACCESS_COPY = 32,    /* cp.async */
    HDSOFT_ACCESS_FENCE = 64,   /* a fence of the device or the system: no memory */
};

typedef struct hdsoft_access {
    const void *warp;          /* for hdsoft_access_thread */
    uint32_t instruction;      /* for hdsoft_program_where */
    uint32_t active;           /* lanes that touch global memory; never 0 */
    uint32_t bytes;            /* of each lane, at most 32 */
    uint32_t flags;            /* HDSOFT_ACCESS_... */
    const uint64_t *addresses; /* of 32 lanes; what inactive ones hold means nothing */
} hdsoft_access;

/* What was read from memory that nobody has written is used (exec/follow.h). */
typedef struct hdsoft_unwritten_use {
    const void *warp;
    uint32_t instruction, origin; /* the use, and the load */
    uint32_t lanes, bytes;        /* which threads; how much each loaded */
    bool shared;                  /* the first of them, from shared memory */
    uint64_t address;             /* what the first of them loaded; of shared memory, its offset */
} hdsoft_unwritten_use;

/* Addresses may be wild: the access itself faults afterwards. */
struct hdsoft_watch {
    void *context;
    void (*access)(void *context, const hdsoft_access *access);
    void (*fence)(void *context);
    /* Who wants to know of uninitialised reads; NULL: nobody, and the other two are not called. Asked before a load:
     * the bytes of each active lane that nobody has written, the first in bit 0; false: there are none, and masks are
     * not set. */
    bool (*unwritten)(void *context, const hdsoft_access *access, uint32_t masks[32]);
    /* After a store: these bytes are still as if never written. */
    void (*left)(void *context, const hdsoft_access *access, const uint32_t masks[32]);
    void (*used)(void *context, const hdsoft_unwritten_use *use);
};

/* Which thread of which block a lane of the access is. */
void hdsoft_access_thread(const hdsoft_access *access, unsigned lane, uint32_t block[3], uint32_t thread[3]);

/* Where an instruction came from; file: NULL without -lineinfo. */
typedef struct hdsoft_place {
    const char *function, *file;
    uint32_t line, ptx_line;
} hdsoft_place;
void hdsoft_program_where(const hdsoft_program *program, uint32_t instruction, hdsoft_place *place);
uint32_t hdsoft_program_size(const hdsoft_program *program); /* in instructions */

#endif
