/* SPDX-License-Identifier: MIT */
/*
 * Numbers of 16 bits, f16 and bf16, as double precision holds them: every one of them is a double, and so is every
 * product of two. Sums that a double cannot hold are rounded to odd, so that rounding once more, to 16 bits, gives what
 * rounding the exact sum would. Independent of the thread's rounding mode only when that is "to nearest", as the
 * engine sets it. Used by handlers_half.c and handlers_atomic.c.
 */
#ifndef HDSOFT_HALF_H
#define HDSOFT_HALF_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "soft/exec/forms.h"

typedef struct half_layout {
    int fraction;         /* bits */
    int lowest;           /* exponent of the smallest normal number */
    uint32_t infinity;
} half_layout;

static inline half_layout half_layout_of(bool brain)
{
    return brain ? (half_layout){7, -126, 0x7f80} : (half_layout){10, -14, 0x7c00};
}

#define HALF_NAN 0x7fffu

static inline uint64_t half_double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double half_double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double half_decode(uint32_t half, bool brain)
{
    half_layout layout = half_layout_of(brain);
    uint32_t magnitude = half & 0x7fff, exponent = magnitude >> layout.fraction;
    uint64_t sign = (uint64_t)(half & 0x8000) << 48;
    uint64_t fraction = magnitude & ((1u << layout.fraction) - 1);
    if (magnitude >= layout.infinity)
        return half_double_of(sign | UINT64_C(0x7ff0000000000000) | fraction << (52 - layout.fraction));
    if (exponent == 0) {
        double least = half_double_of((uint64_t)(1023 + layout.lowest - layout.fraction) << 52);
        return half_double_of(sign | half_double_bits((double)fraction * least));
    }
    return half_double_of(sign | (uint64_t)(exponent - 1 + (unsigned)(1023 + layout.lowest)) << 52 |
                          fraction << (52 - layout.fraction));
}

/* What a result too large for the format becomes. */
static inline uint32_t half_overflow(half_layout layout, bool negative, unsigned rounding)
{
    bool away = rounding == HDSOFT_ROUND_NEAREST || (rounding == HDSOFT_ROUND_UP && !negative) ||
                (rounding == HDSOFT_ROUND_DOWN && negative);
    return away ? layout.infinity : layout.infinity - 1;
}

static inline uint16_t half_encode(double value, bool brain, unsigned rounding)
{
    half_layout layout = half_layout_of(brain);
    uint64_t bits = half_double_bits(value), magnitude = bits & INT64_MAX;
    uint32_t sign = (uint32_t)(bits >> 48) & 0x8000;
    if (value != value)
        return HALF_NAN;
    if (isinf(value))
        return (uint16_t)(sign | layout.infinity);
    if (magnitude == 0)
        return (uint16_t)sign;
    int exponent = (int)(magnitude >> 52) - 1023;
    uint64_t digits = (magnitude & ((UINT64_C(1) << 52) - 1)) | (exponent > -1023 ? UINT64_C(1) << 52 : 0);
    int drop = 52 - layout.fraction + (exponent < layout.lowest ? layout.lowest - exponent : 0);
    drop = drop > 62 ? 62 : drop; /* the digits have 53: more leaves nothing either */
    uint64_t rest = digits & ((UINT64_C(1) << drop) - 1), middle = UINT64_C(1) << (drop - 1);
    uint64_t kept = digits >> drop;
    if (rounding == HDSOFT_ROUND_NEAREST)
        kept += rest > middle || (rest == middle && (kept & 1));
    else if (rounding != HDSOFT_ROUND_ZERO)
        kept += rest != 0 && (rounding == HDSOFT_ROUND_UP) == !sign;
    if (exponent >= layout.lowest) /* the leading digit counts the exponent up by one */
        kept += (uint64_t)(exponent - layout.lowest) << layout.fraction;
    if (kept >= layout.infinity)
        kept = half_overflow(layout, sign != 0, rounding);
    return (uint16_t)(sign | (uint32_t)kept);
}

/* Zero for a subnormal number. */
static inline uint32_t half_flush(uint32_t half, bool brain)
{
    return (half & half_layout_of(brain).infinity) == 0 ? half & 0x8000 : half;
}

/* a + b; if a double cannot hold it, of the two doubles around it the one whose last digit is odd. */
static inline double half_sum(double a, double b)
{
    double sum = a + b, part = sum - a;
    double error = (a - (sum - part)) + (b - part);
    uint64_t bits = half_double_bits(sum);
    if (error != 0 && isfinite(sum) && !(bits & 1))
        bits += (error > 0) == (sum > 0) ? 1 : UINT64_MAX;
    return half_double_of(bits);
}

#endif
