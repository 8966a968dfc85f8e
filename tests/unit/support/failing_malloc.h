/* SPDX-License-Identifier: MIT */
/*
 * Allocation failure on demand, for unit tests of internals. They link libhdrt-core.la with UNIT_LINK, which turns
 * every malloc, calloc, realloc and strdup of the core (and of a statically linked Check) into a call of this file.
 * Arm, run the code under test, disarm, and only then assert: Check allocates in its assertions too.
 */
#ifndef FAILING_MALLOC_H
#define FAILING_MALLOC_H

#include <stdbool.h>

/* Fail the n-th allocation from now (1 is the next one), of any thread, once; count from 0. */
void failing_malloc_arm(long n);

/* Fail the n-th allocation from now and every later one, until disarmed. */
void failing_malloc_arm_from(long n);

/* Stop failing. Returns whether an allocation was failed since arming. */
bool failing_malloc_disarm(void);

/* Allocations since the last arming (or the start of the program). */
long failing_malloc_count(void);

/*
 * Run `body` once for every allocation that it makes, failing the first, the second and so on, until a run in which
 * none was failed. FAILING_MALLOC_EACH(n) { status = thing(); } leaves n allocations counted. `body` must not assert.
 */
#define FAILING_MALLOC_EACH(n)                                                                                         \
    for (long n = 1, hit_ = 1; hit_; n++)                                                                              \
        for (int once_ = (failing_malloc_arm(n), 1); once_; once_ = 0, hit_ = failing_malloc_disarm())

#endif
