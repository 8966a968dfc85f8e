/* SPDX-License-Identifier: MIT */
/* What cuda_fp16.h and cuda_bf16.h need before the functions that they share: arithmetic of float that loses nothing
 * when it is rounded once more, to 16 bits. Include one of those instead. */
#ifndef HDRT_HALF_H
#define HDRT_HALF_H

#pragma clang system_header

#define __HDRT_PASTE_AGAIN(a, b, c) a##b##c
#define __HDRT_PASTE(a, b, c) __HDRT_PASTE_AGAIN(a, b, c)

/* The floats around a number that is none: the one whose last bit is set. What rounds it again, rounds the number. */
__HDRT_HD float __hdrt_make_odd(float towards_zero, bool exact)
{
    return __builtin_bit_cast(float, __builtin_bit_cast(unsigned int, towards_zero) | !exact);
}

#define __HDRT_ODD_FLOAT(type, ptx, letter)                                                                            \
    __HDRT_HD float __hdrt_odd_float(type a)                                                                           \
    {                                                                                                                  \
        float result;                                                                                                  \
        asm("cvt.rz.f32." ptx " %0, %1;" : "=f"(result) : letter(a));                                                  \
        return __hdrt_make_odd(result, (type)result == a);                                                             \
    }
__HDRT_ODD_FLOAT(int, "s32", "r")
__HDRT_ODD_FLOAT(unsigned int, "u32", "r")
__HDRT_ODD_FLOAT(long long, "s64", "l")
__HDRT_ODD_FLOAT(unsigned long long, "u64", "l")
__HDRT_ODD_FLOAT(double, "f64", "d")

/* 2 to the x times `factor`, which is the sum of two floats. */
__HDRT_FN float __hdrt_half_power(float x, float factor, float rest)
{
    float product = x * factor;
    return __nvvm_ex2_approx_f(product + __builtin_fmaf(x, rest, __builtin_fmaf(x, factor, -product)));
}

/* The sine of x, or with `quarters` 1 the cosine; good for 16 bits of any number that 16 bits of f16 hold, and for
 * larger ones of bf16 as good as float's reduction by pi/2 in three parts. */
__HDRT_FN float __hdrt_half_sine(float x, int quarters)
{
    float turns = __builtin_rintf(x * 0.63661977f);
    float angle = __builtin_fmaf(turns, -1.57079601e+00f, x);
    angle = __builtin_fmaf(turns, -3.13916473e-07f, angle);
    angle = __builtin_fmaf(turns, -5.39030253e-15f, angle);
    int quarter = (int)turns + quarters;
    float square = angle * angle;
    float sine = __builtin_fmaf(square, -1.95152959e-4f, 8.33216087e-3f);
    sine = __builtin_fmaf(sine, square, -1.66666546e-1f);
    sine = __builtin_fmaf(sine * square, angle, angle);
    float cosine = __builtin_fmaf(square, 2.44331571e-5f, -1.38873162e-3f);
    cosine = __builtin_fmaf(cosine, square, 4.16666456e-2f);
    cosine = __builtin_fmaf(cosine, square, -0.5f);
    cosine = __builtin_fmaf(cosine, square, 1.0f);
    float result = quarter & 1 ? cosine : sine;
    return quarter & 2 ? -result : result;
}

__HDRT_FN float __hdrt_half_tanh(float x)
{
    float size = __builtin_fabsf(x), square = x * x;
    if (size < 0.25f) { /* the quotient below would lose the digits of small numbers */
        float series = __builtin_fmaf(square, -0.05396825f, 0.13333333f);
        series = __builtin_fmaf(series, square, -0.33333333f);
        return __builtin_fmaf(series * square, x, x);
    }
    float power = __nvvm_ex2_approx_f(size * 2.8853901f);
    float result = 1.0f - 2.0f / (power + 1.0f);
    return __builtin_copysignf(x != x ? x : result, x);
}

#endif
