/* SPDX-License-Identifier: MIT */
#include "soft/check/clock.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

hdsoft__clock *hdsoft__clock_hold(hdsoft__clock *clock)
{
    if (clock)
        atomic_fetch_add_explicit(&clock->references, 1, memory_order_relaxed);
    return clock;
}

void hdsoft__clock_release(hdsoft__clock *clock)
{
    if (clock && atomic_fetch_sub(&clock->references, 1) == 1)
        free(clock);
}

/* A copy with room for `count` chains; the rest is 0. */
static hdsoft__clock *copy(const hdsoft__clock *clock, uint32_t count)
{
    uint32_t known = clock ? clock->count : 0;
    count = count > known ? count : known;
    hdsoft__clock *made = malloc(sizeof *made + count * sizeof *made->times);
    if (!made)
        return NULL;
    made->references = 1;
    made->count = count;
    if (known)
        memcpy(made->times, clock->times, known * sizeof *made->times);
    memset(made->times + known, 0, (count - known) * sizeof *made->times);
    return made;
}

static bool includes(const hdsoft__clock *clock, const hdsoft__clock *other)
{
    for (uint32_t i = 0; i < other->count; i++) {
        if (!hdsoft__clock_knows(clock, i, other->times[i]))
            return false;
    }
    return true;
}

bool hdsoft__clock_join(hdsoft__clock **clock, hdsoft__clock *other)
{
    if (!other || *clock == other || includes(*clock, other))
        return true;
    if (!*clock || includes(other, *clock)) {
        hdsoft__clock_release(*clock);
        *clock = hdsoft__clock_hold(other);
        return true;
    }
    hdsoft__clock *made = copy(*clock, other->count);
    if (!made)
        return false;
    for (uint32_t i = 0; i < other->count; i++)
        made->times[i] = made->times[i] > other->times[i] ? made->times[i] : other->times[i];
    hdsoft__clock_release(*clock);
    *clock = made;
    return true;
}

bool hdsoft__clock_learn(hdsoft__clock **clock, uint32_t chain, uint64_t time)
{
    if (hdsoft__clock_knows(*clock, chain, time))
        return true;
    hdsoft__clock *made = copy(*clock, chain + 1);
    if (!made)
        return false;
    made->times[chain] = time;
    hdsoft__clock_release(*clock);
    *clock = made;
    return true;
}
