/* SPDX-License-Identifier: MIT */
/*
 * Vector clocks: of each line (a queue, as the order check knows it) up to which of its positions something comes after.
 * Growable; what is not there is 0. All functions return false only if there is no memory, and then nothing changed.
 */
#ifndef HDRT_ORDER_CLOCK_H
#define HDRT_ORDER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hdrt__clock {
    uint64_t *at;
    uint32_t count;
} hdrt__clock;

#define HDRT__CLOCK_INIT {0}

static inline uint64_t hdrt__clock_get(const hdrt__clock *clock, uint32_t line)
{
    return line < clock->count ? clock->at[line] : 0;
}

/* At least `at` of the line. */
bool hdrt__clock_raise(hdrt__clock *clock, uint32_t line, uint64_t at);
/* At least what the other one has. */
bool hdrt__clock_join(hdrt__clock *clock, const hdrt__clock *other);
bool hdrt__clock_copy(hdrt__clock *clock, const hdrt__clock *other);
void hdrt__clock_free(hdrt__clock *clock);

#endif
