/* SPDX-License-Identifier: MIT */
/* f16 and bf16 by their values only: what a result is, is found by searching the value nearest to an exact number. */
#ifndef HALF_FORMATS_H
#define HALF_FORMATS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define NOT_A_NUMBER 0x7fffu

enum format { F16, BF16 };

static inline uint16_t infinity_of(enum format format) { return format == F16 ? 0x7c00 : 0x7f80; }

static inline double value_of(enum format format, uint16_t bits)
{
    int digits = format == F16 ? 10 : 7, bias = format == F16 ? 15 : 127;
    int exponent = (bits & 0x7fff) >> digits, fraction = bits & ((1 << digits) - 1);
    double value = exponent ? ldexp((1 << digits) + fraction, exponent - bias - digits)
                            : ldexp(fraction, 1 - bias - digits);
    if ((bits & 0x7fff) >= infinity_of(format))
        value = (bits & 0x7fff) == infinity_of(format) ? INFINITY : NAN;
    return bits & 0x8000 ? -value : value;
}

/* The largest of the format's values that is not above `size`; beyond the largest finite one, that of infinity. */
static inline uint16_t below(enum format format, long double size)
{
    unsigned low = 0, high = infinity_of(format);
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        *(value_of(format, (uint16_t)middle) <= size ? &low : &high) = middle;
    }
    return (uint16_t)(isinf((double)size) ? high : low);
}

/* The numbers are exact in long double; infinity stands where the next value would have been. */
static inline uint16_t rounded(enum format format, long double exact, char mode)
{
    if (isnan((double)exact))
        return NOT_A_NUMBER;
    uint16_t sign = signbit(exact) ? 0x8000 : 0;
    long double size = fabsl(exact);
    uint16_t bits = below(format, size);
    if (bits == infinity_of(format) || (long double)value_of(format, bits) == size)
        return sign | bits;
    long double here = value_of(format, bits), next = value_of(format, (uint16_t)(bits + 1));
    if (isinf((double)next))
        next = 2 * here - value_of(format, (uint16_t)(bits - 1));
    bool up = mode == 'u' ? !sign : mode == 'd' ? sign != 0 : size - here > next - size;
    if (mode == 'n' && size - here == next - size)
        up = bits & 1;
    return (uint16_t)(sign | (bits + (mode != 'z' && up)));
}

static inline uint16_t better(enum format format, uint16_t a, uint16_t b, bool greatest)
{
    double x = value_of(format, a), y = value_of(format, b);
    if (isnan(x) && isnan(y))
        return NOT_A_NUMBER;
    if (isnan(x) || isnan(y))
        return isnan(x) ? b : a;
    if (x == y)
        return greatest ? a & b : a | b;
    return (x > y) == greatest ? a : b;
}

static inline bool same(enum format format, uint16_t a, uint16_t b)
{
    return a == b || (isnan(value_of(format, a)) && isnan(value_of(format, b)));
}

#endif
