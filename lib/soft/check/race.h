/* SPDX-License-Identifier: MIT */
/*
 * Races between operations: two that touch the same byte, one of them writing, not both atomically, of which neither
 * happened before the other by any edge of history.h.
 *
 * Every word (4 bytes) of a range has a state: the accesses that a later one must still be held against, each with the
 * bytes that it touched. States are shared: a word holds the number of its state, and what an access makes of a state
 * is looked up once, however many words it is done to. Under hdsoft__check_lock but where it says so.
 */
#ifndef HDSOFT_CHECK_RACE_H
#define HDSOFT_CHECK_RACE_H

#include "soft/check/check.h"
#include "soft/check/clock.h"

/* So many times of its chain an operation has, from its first on: what it does after a release is of a later one. */
#define HDSOFT__TIMES_OF_AN_OPERATION 4096u

/* An operation's clock: it begins at `time` of `chain`, and has happened after all that `clock` knows. Takes the clock
 * over; NULL: no memory. Any lock. */
struct hdsoft__race *hdsoft__race_new(uint32_t chain, uint64_t time, hdsoft__clock *clock);
void hdsoft__race_free(struct hdsoft__race *race); /* NULL is fine */
hdsoft__clock *hdsoft__race_clock(const struct hdsoft__race *race);
/* All that the operation did has happened: its clock knows so. */
void hdsoft__race_end(struct hdsoft__race *race);
/* Whether the clock knows what the operation did at that time. */
bool hdsoft__race_known(const hdsoft__operation *operation, uint64_t time, const hdsoft__clock *clock);
/* The operation comes after this too. */
void hdsoft__race_learn(struct hdsoft__race *race, hdsoft__clock *clock);

void hdsoft__race_access(hdsoft__operation *operation, const hdsoft_access *access);
void hdsoft__race_fence(hdsoft__operation *operation);
void hdsoft__race_read(hdsoft__operation *operation, uint64_t address, uint64_t bytes);
void hdsoft__race_write(hdsoft__operation *operation, uint64_t address, uint64_t bytes);
void hdsoft__race_allocated(hdsoft__operation *operation, const hdsoft_range *range);
void hdsoft__race_freed(hdsoft__operation *operation, const hdsoft_range *range);

/* No operation that begins from now on, or is at work, has happened without all that this clock knows. Takes it over;
 * any lock. */
void hdsoft__race_floor(hdsoft__clock *clock);
/* The check cannot go on: it says so, once, and is off. Any lock. */
void hdsoft__race_give_up(const char *why);

/* What the host knows to be done; any lock. The first answers a reference. */
hdsoft__clock *hdsoft__host_clock(void);
void hdsoft__host_learn(hdsoft__clock *clock);
/* One more operation of the host's own. */
uint64_t hdsoft__host_step(void);
#define HDSOFT__HOST_CHAIN 0u

#endif
