/* SPDX-License-Identifier: MIT */
/*
 * bf16 under the names of CUDA's header, for clang; part of the device prelude, which comes first. sm_90 has the
 * arithmetic, sm_80 the fused product and sum, from which sum and product come; below that float has to do.
 */
#ifndef HDRT_CUDA_BF16_H
#define HDRT_CUDA_BF16_H

#ifndef HDRT_DEVICE_H
#error "this cuda_bf16.h goes with hdrt_device.h; for another compiler put CUDA's own headers first"
#endif
#pragma clang system_header
#include "hdrt_half.h"

struct __align__(2) __nv_bfloat16_raw {
    unsigned short x;
};
struct __align__(4) __nv_bfloat162_raw {
    unsigned short x, y;
};

/* A NaN is 0x7fff. What lies between two bf16 is in the lower half of the float. */
#if __CUDA_ARCH__ >= 800
__HDRT_HD unsigned short __hdrt_bf16_rn(float a)
{
    unsigned short result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(a));
    return result;
}
#else
__HDRT_HD unsigned short __hdrt_bf16_rn(float a)
{
    unsigned int bits = __builtin_bit_cast(unsigned int, a);
    return a != a ? 0x7fff : (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}
#endif
__HDRT_HD unsigned short __hdrt_bf16_rz(float a)
{
    return a != a ? 0x7fff : (unsigned short)(__builtin_bit_cast(unsigned int, a) >> 16);
}
__HDRT_HD unsigned short __hdrt_bf16_away(float a, bool away)
{
    unsigned int bits = __builtin_bit_cast(unsigned int, a);
    return a != a ? 0x7fff : (unsigned short)((bits + (away ? 0xffffu : 0u)) >> 16);
}
__HDRT_HD float __hdrt_bf16_float(unsigned int bits) { return __builtin_bit_cast(float, bits << 16); }

struct __align__(2) __nv_bfloat16 {
    unsigned short __x;

    __nv_bfloat16() = default;
#define __HDRT_BFLOAT_MEMBER(type, expression)                                                                         \
    __host__ __device__ __nv_bfloat16(type a) : __x(__hdrt_bf16_rn(expression)) {}                                     \
    __host__ __device__ __nv_bfloat16 &operator=(type a) { return __x = __hdrt_bf16_rn(expression), *this; }
    __HDRT_BFLOAT_MEMBER(float, a)
    __HDRT_BFLOAT_MEMBER(double, __hdrt_odd_float(a))
    __HDRT_BFLOAT_MEMBER(short, (float)a)
    __HDRT_BFLOAT_MEMBER(unsigned short, (float)a)
    __HDRT_BFLOAT_MEMBER(int, __hdrt_odd_float(a))
    __HDRT_BFLOAT_MEMBER(unsigned int, __hdrt_odd_float(a))
    __HDRT_BFLOAT_MEMBER(long, __hdrt_odd_float((long long)a))
    __HDRT_BFLOAT_MEMBER(unsigned long, __hdrt_odd_float((unsigned long long)a))
    __HDRT_BFLOAT_MEMBER(long long, __hdrt_odd_float(a))
    __HDRT_BFLOAT_MEMBER(unsigned long long, __hdrt_odd_float(a))
#undef __HDRT_BFLOAT_MEMBER
    constexpr __host__ __device__ __nv_bfloat16(__nv_bfloat16_raw raw) : __x(raw.x) {}
    __host__ __device__ operator __nv_bfloat16_raw() const { return __nv_bfloat16_raw{__x}; }
    __host__ __device__ operator float() const { return __hdrt_bf16_float(__x); }
    __host__ __device__ operator bool() const { return (__x & 0x7fff) != 0; }
};
typedef __nv_bfloat16 nv_bfloat16;

struct __align__(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;

    __nv_bfloat162() = default;
    __host__ __device__ __nv_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) : x(a), y(b) {}
    __host__ __device__ __nv_bfloat162(__nv_bfloat162_raw raw)
        : x(__nv_bfloat16_raw{raw.x}), y(__nv_bfloat16_raw{raw.y}) {}
    __host__ __device__ operator __nv_bfloat162_raw() const { return __nv_bfloat162_raw{x.__x, y.__x}; }
};
typedef __nv_bfloat162 nv_bfloat162;

/* ---- what the common functions are made of ----------------------------------------------------------------------- */

__HDRT_HD __nv_bfloat16 __hdrt_bf16(unsigned int bits)
{
    return __nv_bfloat16(__nv_bfloat16_raw{(unsigned short)bits});
}
__HDRT_HD float __hdrt_float(__nv_bfloat16 a) { return __hdrt_bf16_float(a.__x); }
__HDRT_HD unsigned short __hdrt_raw(__nv_bfloat16 a) { return a.__x; }
__HDRT_HD unsigned int __hdrt_raw(__nv_bfloat162 a) { return (unsigned int)a.y.__x << 16 | a.x.__x; }
__HDRT_HD __nv_bfloat162 __hdrt_pair(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
__HDRT_HD __nv_bfloat162 __hdrt_bf16x2(unsigned int bits)
{
    return __nv_bfloat162(__hdrt_bf16(bits), __hdrt_bf16(bits >> 16));
}

/* The pair's operation from that of one. */
#define __HDRT_BF16_EACH(name)                                                                                         \
    __HDRT_HD __nv_bfloat162 name(__nv_bfloat162 a, __nv_bfloat162 b)                                                  \
    {                                                                                                                  \
        return __nv_bfloat162(name(a.x, b.x), name(a.y, b.y));                                                         \
    }
#define __HDRT_BF16_2(name, ptx)                                                                                       \
    __HDRT_HD __nv_bfloat16 name(__nv_bfloat16 a, __nv_bfloat16 b)                                                     \
    {                                                                                                                  \
        unsigned short result;                                                                                         \
        asm(ptx ".bf16 %0, %1, %2;" : "=h"(result) : "h"(a.__x), "h"(b.__x));                                          \
        return __hdrt_bf16(result);                                                                                    \
    }                                                                                                                  \
    __HDRT_HD __nv_bfloat162 name(__nv_bfloat162 a, __nv_bfloat162 b)                                                  \
    {                                                                                                                  \
        unsigned int result;                                                                                           \
        asm(ptx ".bf16x2 %0, %1, %2;" : "=r"(result) : "r"(__hdrt_raw(a)), "r"(__hdrt_raw(b)));                      \
        return __hdrt_bf16x2(result);                                                                                  \
    }

#if __CUDA_ARCH__ >= 800
__HDRT_HD __nv_bfloat16 __hdrt_fma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c)
{
    unsigned short result;
    asm("fma.rn.bf16 %0, %1, %2, %3;" : "=h"(result) : "h"(a.__x), "h"(b.__x), "h"(c.__x));
    return __hdrt_bf16(result);
}
__HDRT_HD __nv_bfloat162 __hdrt_fma(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c)
{
    unsigned int result;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;"
        : "=r"(result)
        : "r"(__hdrt_raw(a)), "r"(__hdrt_raw(b)), "r"(__hdrt_raw(c)));
    return __hdrt_bf16x2(result);
}
__HDRT_BF16_2(__hdrt_min, "min")
__HDRT_BF16_2(__hdrt_max, "max")
__HDRT_BF16_2(__hdrt_min_nan, "min.NaN")
__HDRT_BF16_2(__hdrt_max_nan, "max.NaN")
#else
__HDRT_HD __nv_bfloat16 __hdrt_fma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c)
{
    float x = __hdrt_float(a), y = __hdrt_float(b), z = __hdrt_float(c);
    return __nv_bfloat16(__hdrt_make_odd(__fmaf_rz(x, y, z), __fmaf_rd(x, y, z) == __fmaf_ru(x, y, z)));
}
__HDRT_HD __nv_bfloat162 __hdrt_fma(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c)
{
    return __nv_bfloat162(__hdrt_fma(a.x, b.x, c.x), __hdrt_fma(a.y, b.y, c.y));
}
#define __HDRT_BF16_BEST(name, builtin)                                                                                \
    __HDRT_HD __nv_bfloat16 __hdrt_##name(__nv_bfloat16 a, __nv_bfloat16 b)                                            \
    {                                                                                                                  \
        return __nv_bfloat16(builtin(__hdrt_float(a), __hdrt_float(b)));                                               \
    }                                                                                                                  \
    __HDRT_HD __nv_bfloat16 __hdrt_##name##_nan(__nv_bfloat16 a, __nv_bfloat16 b)                                      \
    {                                                                                                                  \
        float x = __hdrt_float(a), y = __hdrt_float(b);                                                                \
        return x != x || y != y ? __hdrt_bf16(0x7fff) : __nv_bfloat16(builtin(x, y));                                  \
    }                                                                                                                  \
    __HDRT_BF16_EACH(__hdrt_##name)                                                                                    \
    __HDRT_BF16_EACH(__hdrt_##name##_nan)
__HDRT_BF16_BEST(min, __builtin_fminf)
__HDRT_BF16_BEST(max, __builtin_fmaxf)
#undef __HDRT_BF16_BEST
#endif

#if __CUDA_ARCH__ >= 900
__HDRT_BF16_2(__hdrt_add, "add.rn")
__HDRT_BF16_2(__hdrt_sub, "sub.rn")
__HDRT_BF16_2(__hdrt_mul, "mul.rn")
#else /* float holds more than twice the digits */
#define __HDRT_BF16_BY_FLOAT(name, op)                                                                                 \
    __HDRT_HD __nv_bfloat16 name(__nv_bfloat16 a, __nv_bfloat16 b)                                                     \
    {                                                                                                                  \
        return __nv_bfloat16(op(__hdrt_float(a), __hdrt_float(b)));                                                    \
    }                                                                                                                  \
    __HDRT_BF16_EACH(name)
__HDRT_BF16_BY_FLOAT(__hdrt_add, __fadd_rn)
__HDRT_BF16_BY_FLOAT(__hdrt_sub, __fsub_rn)
__HDRT_BF16_BY_FLOAT(__hdrt_mul, __fmul_rn)
#undef __HDRT_BF16_BY_FLOAT
#endif
#undef __HDRT_BF16_2
#undef __HDRT_BF16_EACH

/* ---- conversions ------------------------------------------------------------------------------------------------- */

__HDRT_HD __nv_bfloat16 __float2bfloat16_rn(float a) { return __hdrt_bf16(__hdrt_bf16_rn(a)); }
__HDRT_HD __nv_bfloat16 __float2bfloat16_rz(float a) { return __hdrt_bf16(__hdrt_bf16_rz(a)); }
__HDRT_HD __nv_bfloat16 __float2bfloat16_rd(float a) { return __hdrt_bf16(__hdrt_bf16_away(a, __builtin_signbitf(a))); }
__HDRT_HD __nv_bfloat16 __float2bfloat16_ru(float a)
{
    return __hdrt_bf16(__hdrt_bf16_away(a, !__builtin_signbitf(a)));
}
__HDRT_HD __nv_bfloat16 __float2bfloat16(float a) { return __float2bfloat16_rn(a); }
__HDRT_HD __nv_bfloat16 __double2bfloat16(double a) { return __float2bfloat16_rn(__hdrt_odd_float(a)); }
__HDRT_HD float __bfloat162float(__nv_bfloat16 a) { return __hdrt_float(a); }
__HDRT_HD __nv_bfloat162 __float2bfloat162_rn(float a)
{
    return __nv_bfloat162(__float2bfloat16_rn(a), __float2bfloat16_rn(a));
}
__HDRT_HD __nv_bfloat162 __floats2bfloat162_rn(float a, float b)
{
    return __nv_bfloat162(__float2bfloat16_rn(a), __float2bfloat16_rn(b));
}
__HDRT_HD __nv_bfloat162 __float22bfloat162_rn(float2 a) { return __floats2bfloat162_rn(a.x, a.y); }
__HDRT_HD float2 __bfloat1622float2(__nv_bfloat162 a) { return make_float2(__hdrt_float(a.x), __hdrt_float(a.y)); }
__HDRT_HD __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) { return a.x; }
__HDRT_HD __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) { return a.y; }
__HDRT_HD __nv_bfloat162 __low2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.x, a.x); }
__HDRT_HD __nv_bfloat162 __high2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.y, a.y); }
__HDRT_HD __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(a.x, b.x); }
__HDRT_HD __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(a.y, b.y); }
__HDRT_HD __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
__HDRT_HD __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return __nv_bfloat162(a, a); }
__HDRT_HD __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
__HDRT_HD short __bfloat16_as_short(__nv_bfloat16 a) { return (short)a.__x; }
__HDRT_HD unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) { return a.__x; }
__HDRT_HD __nv_bfloat16 __short_as_bfloat16(short a) { return __hdrt_bf16((unsigned short)a); }
__HDRT_HD __nv_bfloat16 __ushort_as_bfloat16(unsigned short a) { return __hdrt_bf16(a); }

#define CUDART_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7f80u)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16((unsigned short)0x7f7fu)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16((unsigned short)0x0001u)
#define CUDART_NAN_BF16 __ushort_as_bfloat16((unsigned short)0x7fffu)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x8000u)
#define CUDART_ONE_BF16 __ushort_as_bfloat16((unsigned short)0x3f80u)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x0000u)

/* ---- atomics ----------------------------------------------------------------------------------------------------- */

/* Below sm_90 by exchanges of the word around; each of the two is added at once, both together need not be. */
__HDRT_FN __nv_bfloat162 atomicAdd(__nv_bfloat162 *p, __nv_bfloat162 v)
{
    unsigned int old;
#if __CUDA_ARCH__ >= 900
    asm volatile("atom.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(__hdrt_raw(v)) : "memory");
#else
    unsigned int expected = *(volatile unsigned int *)p;
    do {
        old = expected;
        expected = atomicCAS((unsigned int *)p, old, __hdrt_raw(__hdrt_add(__hdrt_bf16x2(old), v)));
    } while (expected != old);
#endif
    return __hdrt_bf16x2(old);
}
__HDRT_FN __nv_bfloat16 atomicAdd(__nv_bfloat16 *p, __nv_bfloat16 v)
{
    unsigned short old;
#if __CUDA_ARCH__ >= 900
    asm volatile("atom.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(p), "h"(v.__x) : "memory");
#else
    unsigned short expected = *(volatile unsigned short *)p;
    do {
        old = expected;
        expected = atomicCAS((unsigned short *)p, old, __hdrt_raw(__hdrt_add(__hdrt_bf16(old), v)));
    } while (expected != old);
#endif
    return __hdrt_bf16(old);
}

#define HDRT_T __nv_bfloat16
#define HDRT_T2 __nv_bfloat162
#define HDRT_NAME bfloat16
#define HDRT_FROM_FLOAT(x) __float2bfloat16_rn(x)
#define HDRT_FROM_BITS(x) __hdrt_bf16(x)
#define HDRT_ONE 0x3f80u
#define HDRT_NAN 0x7fffu
#include "hdrt_half_functions.h"

#endif
