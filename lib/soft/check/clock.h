/* SPDX-License-Identifier: MIT */
/*
 * Vector clocks. A chain is a sequence of operations each of which happens before the next (a stream is one; a graph's
 * launch may need several), numbered from 1 in time; a clock says for each chain how much of it has happened before.
 * A clock never changes while somebody else holds it, so threads share clocks without a lock. NULL knows nothing.
 */
#ifndef HDSOFT_CHECK_CLOCK_H
#define HDSOFT_CHECK_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hdsoft__clock {
    _Atomic unsigned references;
    uint32_t count;
    uint64_t times[];
} hdsoft__clock;

hdsoft__clock *hdsoft__clock_hold(hdsoft__clock *clock); /* NULL is fine, for release too */
void hdsoft__clock_release(hdsoft__clock *clock);

static inline bool hdsoft__clock_knows(const hdsoft__clock *clock, uint32_t chain, uint64_t time)
{
    return time == 0 || (clock && chain < clock->count && clock->times[chain] >= time);
}

/* Have *clock, whose reference is the caller's, know all that `other` knows, or one time more. False: no memory, and
 * nothing changed. */
bool hdsoft__clock_join(hdsoft__clock **clock, hdsoft__clock *other);
bool hdsoft__clock_learn(hdsoft__clock **clock, uint32_t chain, uint64_t time);

#endif
