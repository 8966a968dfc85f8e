/* SPDX-License-Identifier: MIT */
/*
 * Which of `many` kernels launch number i is of: the patterns by which launches are measured. Their numbers come one after
 * the other, from 0 on, with one state, which is not 0 at first.
 */
#ifndef HDRT_BENCH_PATTERNS_H
#define HDRT_BENCH_PATTERNS_H

#include <stdint.h>

/* Xorshift: of a period that no measurement sees the end of, in its low bits too. */
static inline uint32_t pattern_number(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

typedef uint32_t pattern_function(uint32_t i, uint32_t many, uint32_t *state);

/* One after the other, again and again. */
static inline uint32_t pattern_in_turn(uint32_t i, uint32_t many, uint32_t *state)
{
    (void)state;
    return i % many;
}

static inline uint32_t pattern_random(uint32_t i, uint32_t many, uint32_t *state)
{
    (void)i;
    return pattern_number(state) % many;
}

/* Runs of one kernel that are just long enough to look like a loop, each of another one. */
static inline uint32_t pattern_seventeen(uint32_t i, uint32_t many, uint32_t *state)
{
    (void)state;
    return i / 17 * 37 % many;
}

/* Sequences of 64 that each come exactly twice. */
static inline uint32_t pattern_twice(uint32_t i, uint32_t many, uint32_t *state)
{
    static uint32_t sequence[64];
    if (i % 128 < 64) {
        sequence[i % 64] = pattern_number(state) % many;
    }
    return sequence[i % 64];
}

#endif
