/* SPDX-License-Identifier: MIT */
#include "order/clock.h"

#include <stdlib.h>
#include <string.h>

static bool grow(hdrt__clock *clock, uint32_t count)
{
    if (count <= clock->count) {
        return true;
    }
    uint64_t *at = realloc(clock->at, count * sizeof *at);
    if (!at) {
        return false;
    }
    memset(at + clock->count, 0, (count - clock->count) * sizeof *at);
    clock->at = at;
    clock->count = count;
    return true;
}

bool hdrt__clock_raise(hdrt__clock *clock, uint32_t line, uint64_t at)
{
    if (hdrt__clock_get(clock, line) >= at) {
        return true;
    }
    if (!grow(clock, line + 1)) {
        return false;
    }
    clock->at[line] = at;
    return true;
}

bool hdrt__clock_join(hdrt__clock *clock, const hdrt__clock *other)
{
    if (!grow(clock, other->count)) {
        return false;
    }
    for (uint32_t i = 0; i < other->count; i++) {
        clock->at[i] = other->at[i] > clock->at[i] ? other->at[i] : clock->at[i];
    }
    return true;
}

bool hdrt__clock_copy(hdrt__clock *clock, const hdrt__clock *other)
{
    *clock = (hdrt__clock)HDRT__CLOCK_INIT;
    return hdrt__clock_join(clock, other);
}

void hdrt__clock_free(hdrt__clock *clock)
{
    free(clock->at);
    *clock = (hdrt__clock)HDRT__CLOCK_INIT;
}
