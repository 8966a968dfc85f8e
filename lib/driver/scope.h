/* SPDX-License-Identifier: MIT */
/*
 * Living with others: a driver section on a user's thread leaves the caller's current context and everyone's stream
 * captures as they were. Most calls of ours would break a capture that another thread has going in global mode, unless
 * the calling thread is in relaxed mode; swapping there and back costs 22 ns.
 *
 * Not nested on one thread, except that a scope within a scope is harmless and wasteful.
 */
#ifndef HDRT_DRIVER_SCOPE_H
#define HDRT_DRIVER_SCOPE_H

#include <stdbool.h>

#include "driver/call.h"

typedef struct hdrt__scope {
    unsigned capture_mode; /* the thread's mode outside */
    bool pushed;
    bool resident; /* the thread is always inside: nothing to undo */
} hdrt__scope;

/*
 * Put the thread in relaxed capture mode and make `context` current (NULL: leave the current one alone).
 * On failure nothing is changed, there is nothing to leave, and the result tells which call failed.
 */
hdrt__call hdrt__scope_enter(const hdrt__driver_table *table, hdcu_context context, hdrt__scope *scope);

/* Undo hdrt__scope_enter. Right on a lost device too: both calls concern the thread alone. */
void hdrt__scope_leave(const hdrt__driver_table *table, hdrt__scope *scope);

/* For a library thread, once, at its beginning: relaxed capture mode for good. */
hdrt__call hdrt__scope_relax_thread(const hdrt__driver_table *table);

#endif
