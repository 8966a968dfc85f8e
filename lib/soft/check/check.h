/* SPDX-License-Identifier: MIT */
/*
 * The checks that follow what operations do to memory, byte by byte: races between streams, and uninitialised reads.
 * An operation is one task of a command, or what an entry point does to memory itself (a free). The model makes an
 * operation when a task starts and tells of what it touches; kernels tell of it through exec/watch.h.
 *
 * check.c hands each event to the checks that are on. They keep their books under one lock, hdsoft__check_lock, which
 * the executor of a device holds for a whole step of a command, so that no access pays for it. Lock order: the
 * driver's lock, this one, those of memory tables and reports. Nothing here calls the program back.
 */
#ifndef HDSOFT_CHECK_CHECK_H
#define HDSOFT_CHECK_CHECK_H

#include "soft/check/report.h"
#include "soft/check/site.h"
#include "soft/exec/watch.h"
#include "soft/model/hdsoft_memory.h"

typedef enum hdsoft__operation_kind {
    HDSOFT__OPERATION_KERNEL, HDSOFT__OPERATION_COPY, HDSOFT__OPERATION_FILL, HDSOFT__OPERATION_WAIT_VALUE,
    HDSOFT__OPERATION_WRITE_VALUE, HDSOFT__OPERATION_ALLOCATE, HDSOFT__OPERATION_FREE, HDSOFT__OPERATION_OTHER,
} hdsoft__operation_kind;

/* The lines of a program's instructions, which outlive its module: reports name them. Counted. */
typedef struct hdsoft__lines hdsoft__lines;
hdsoft__lines *hdsoft__lines_new(const hdsoft_program *program); /* NULL: no memory */
void hdsoft__lines_release(hdsoft__lines *lines);                /* NULL is fine */
/* False: nothing is known. The strings last as long as `lines`. */
bool hdsoft__lines_find(const hdsoft__lines *lines, uint32_t instruction, hdsoft_place *place);

/* Counted: the running command's, and those of whoever remembers it. What a report needs stays as long as that. */
typedef struct hdsoft__operation {
    _Atomic unsigned references;
    hdsoft__operation_kind kind;
    uint64_t stream;              /* its id; 0: the host */
    char *kernel;                 /* NULL: no kernel */
    hdsoft__lines *lines;         /* of a kernel */
    const hdsoft__site *enqueued; /* where the program asked for it */
    struct hdsoft__race *race;    /* what the race check knows of it; NULL while that is off */
    hdsoft_watch watch;           /* of a kernel's run */
} hdsoft__operation;

/* One access, as reports name it. */
typedef struct hdsoft__touch {
    const hdsoft__operation *operation;
    uint32_t instruction; /* of a kernel */
    bool write, atomic, known_thread;
    uint32_t block[3], thread[3];
} hdsoft__touch;

/* Some check that follows memory is on. */
static inline bool hdsoft__checking_memory(void)
{
    return hdsoft__checking(HDSOFT_CHECK_RACE | HDSOFT_CHECK_INIT);
}

void hdsoft__check_lock(void);   /* may be taken again by who has it */
void hdsoft__check_unlock(void);

/* NULL: no memory for it; every function here then does nothing. `kernel` and `lines`, which is held, are of kernels. */
hdsoft__operation *hdsoft__operation_new(hdsoft__operation_kind kind, uint64_t stream, const hdsoft__site *enqueued,
                                         const char *kernel, hdsoft__lines *lines);
hdsoft__operation *hdsoft__operation_hold(hdsoft__operation *operation);
void hdsoft__operation_release(hdsoft__operation *operation); /* NULL is fine */
/* What a kernel's run tells, for as long as the operation lasts. */
const hdsoft_watch *hdsoft__operation_watch(hdsoft__operation *operation);

/* What operations do; all under hdsoft__check_lock. A kernel's accesses come through its watch. */
void hdsoft__check_read(hdsoft__operation *operation, uint64_t address, uint64_t bytes);
void hdsoft__check_write(hdsoft__operation *operation, uint64_t address, uint64_t bytes);
/* After those two: the bytes went from here to there; 0: an end that no device knows. */
void hdsoft__check_moved(hdsoft__operation *operation, uint64_t from, uint64_t to, uint64_t bytes);

/* A stream's order has got to the range's allocation, or to its free: before it goes, after it came about. */
void hdsoft__check_allocated(hdsoft__operation *operation, const hdsoft_range *range);
void hdsoft__check_freed(hdsoft__operation *operation, const hdsoft_range *range);

/* A range came about, or goes. Under hdsoft__check_lock, which comes before a memory table's own. */
void hdsoft__check_appeared(const hdsoft_range *range);
void hdsoft__check_vanished(const hdsoft_range *range);

/* "kernel 'upper' at upper.cu:14 (PTX line 30), block (0,0,0) thread (3,0,0), reading, in stream 5, launched by:" and
 * the frames of the call. */
void hdsoft__describe_touch(const hdsoft__touch *touch, hdsoft_text *text);

#endif
