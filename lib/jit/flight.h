/* SPDX-License-Identifier: MIT */
/*
 * One compile of a key at a time among all processes that share a cache's folder: a lock on one byte of one file, which
 * byte the key says. The kernel lets go of it when its holder dies. It saves work and nothing else: whoever waited long
 * enough, or has no locks, compiles.
 */
#ifndef HDRT_JIT_FLIGHT_H
#define HDRT_JIT_FLIGHT_H

#include <hdrt.h>

#include "jit/store.h"

typedef struct hdrt__flight {
    int file; /* -1: no lock is held */
    int64_t byte;
} hdrt__flight;

typedef enum hdrt__flight_result {
    HDRT__FLIGHT_LEADS,  /* nobody else is at it, or there are no locks: look once more, then compile */
    HDRT__FLIGHT_LANDED, /* another was at it, and is no longer: look again */
    HDRT__FLIGHT_LATE,   /* the deadline passed, or *cancelled became true: compile, or give up */
} hdrt__flight_result;

/*
 * Try to take a key's lock; where another has it, wait until it is free, the deadline (of hdrt__now_ns) passed, or
 * `cancelled` (may be NULL) asks to stop. Only _LEADS holds the lock. End with hdrt__flight_end whatever came of it.
 */
hdrt__flight_result hdrt__flight_begin(hdrt__store *store, const hdrt__digest *key, uint64_t deadline_ns,
                                       bool (*cancelled)(void *), void *context, hdrt__flight *flight);
void hdrt__flight_end(hdrt__flight *flight);

#endif
