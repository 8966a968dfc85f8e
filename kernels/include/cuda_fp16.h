/* SPDX-License-Identifier: MIT */
/*
 * f16 under the names of CUDA's header, for clang; part of the device prelude, which comes first. Arithmetic is inline
 * PTX, since clang 14 and 16 have no half type for these targets.
 */
#ifndef HDRT_CUDA_FP16_H
#define HDRT_CUDA_FP16_H

#ifndef HDRT_DEVICE_H
#error "this cuda_fp16.h goes with hdrt_device.h; for another compiler put CUDA's own headers first"
#endif
#pragma clang system_header
#include "hdrt_half.h"

struct __align__(2) __half_raw {
    unsigned short x;
};
struct __align__(4) __half2_raw {
    unsigned short x, y;
};

#define __HDRT_TO_F16(name, mode, from, letter, type)                                                                  \
    __HDRT_HD unsigned short name(type a)                                                                              \
    {                                                                                                                  \
        unsigned short result;                                                                                         \
        asm("cvt." mode ".f16." from " %0, %1;" : "=h"(result) : letter(a));                                           \
        return result;                                                                                                 \
    }
__HDRT_TO_F16(__hdrt_f16_rn, "rn", "f32", "f", float)
__HDRT_TO_F16(__hdrt_f16_rz, "rz", "f32", "f", float)
__HDRT_TO_F16(__hdrt_f16_rd, "rm", "f32", "f", float)
__HDRT_TO_F16(__hdrt_f16_ru, "rp", "f32", "f", float)
__HDRT_TO_F16(__hdrt_f16_rn, "rn", "f64", "d", double)
__HDRT_TO_F16(__hdrt_f16_rn, "rn", "s32", "r", int)
__HDRT_TO_F16(__hdrt_f16_rn, "rn", "u32", "r", unsigned int)
__HDRT_TO_F16(__hdrt_f16_rn, "rn", "s16", "h", short)
__HDRT_TO_F16(__hdrt_f16_rn, "rn", "u16", "h", unsigned short)
__HDRT_TO_F16(__hdrt_f16_rn, "rn", "s64", "l", long long)
__HDRT_TO_F16(__hdrt_f16_rn, "rn", "u64", "l", unsigned long long)
#undef __HDRT_TO_F16

__HDRT_HD float __hdrt_f16_float(unsigned short bits)
{
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(bits));
    return result;
}

struct __align__(2) __half {
    unsigned short __x;

    __half() = default;
#define __HDRT_HALF_MEMBER(type, core)                                                                                 \
    __host__ __device__ __half(type a) : __x(__hdrt_f16_rn((core)a)) {}                                                \
    __host__ __device__ __half &operator=(type a) { return __x = __hdrt_f16_rn((core)a), *this; }
    __HDRT_HALF_MEMBER(float, float)
    __HDRT_HALF_MEMBER(double, double)
    __HDRT_HALF_MEMBER(short, short)
    __HDRT_HALF_MEMBER(unsigned short, unsigned short)
    __HDRT_HALF_MEMBER(int, int)
    __HDRT_HALF_MEMBER(unsigned int, unsigned int)
    __HDRT_HALF_MEMBER(long, long long)
    __HDRT_HALF_MEMBER(unsigned long, unsigned long long)
    __HDRT_HALF_MEMBER(long long, long long)
    __HDRT_HALF_MEMBER(unsigned long long, unsigned long long)
#undef __HDRT_HALF_MEMBER
    constexpr __host__ __device__ __half(__half_raw raw) : __x(raw.x) {}
    __host__ __device__ operator __half_raw() const { return __half_raw{__x}; }
    __host__ __device__ operator float() const { return __hdrt_f16_float(__x); }
    __host__ __device__ operator bool() const { return (__x & 0x7fff) != 0; }
};
typedef __half half, nv_half;

struct __align__(4) __half2 {
    __half x, y;

    __half2() = default;
    __host__ __device__ __half2(__half a, __half b) : x(a), y(b) {}
    __host__ __device__ __half2(__half2_raw raw) : x(__half_raw{raw.x}), y(__half_raw{raw.y}) {}
    __host__ __device__ operator __half2_raw() const { return __half2_raw{x.__x, y.__x}; }
};
typedef __half2 half2, nv_half2;

/* ---- what the common functions are made of ----------------------------------------------------------------------- */

__HDRT_HD __half __hdrt_f16(unsigned int bits) { return __half(__half_raw{(unsigned short)bits}); }
__HDRT_HD float __hdrt_float(__half a) { return __hdrt_f16_float(a.__x); }
__HDRT_HD unsigned short __hdrt_raw(__half a) { return a.__x; }
__HDRT_HD unsigned int __hdrt_raw(__half2 a) { return (unsigned int)a.y.__x << 16 | a.x.__x; }
__HDRT_HD __half2 __hdrt_pair(__half a, __half b) { return __half2(a, b); }
__HDRT_HD __half2 __hdrt_f16x2(unsigned int bits) { return __half2(__hdrt_f16(bits), __hdrt_f16(bits >> 16)); }

#define __HDRT_F16_2(name, ptx)                                                                                        \
    __HDRT_HD __half name(__half a, __half b)                                                                          \
    {                                                                                                                  \
        unsigned short result;                                                                                         \
        asm(ptx ".f16 %0, %1, %2;" : "=h"(result) : "h"(a.__x), "h"(b.__x));                                           \
        return __hdrt_f16(result);                                                                                     \
    }                                                                                                                  \
    __HDRT_HD __half2 name(__half2 a, __half2 b)                                                                       \
    {                                                                                                                  \
        unsigned int result;                                                                                           \
        asm(ptx ".f16x2 %0, %1, %2;" : "=r"(result) : "r"(__hdrt_raw(a)), "r"(__hdrt_raw(b)));                       \
        return __hdrt_f16x2(result);                                                                                   \
    }
__HDRT_F16_2(__hdrt_add, "add.rn")
__HDRT_F16_2(__hdrt_sub, "sub.rn")
__HDRT_F16_2(__hdrt_mul, "mul.rn")

__HDRT_HD __half __hdrt_fma(__half a, __half b, __half c)
{
    unsigned short result;
    asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(result) : "h"(a.__x), "h"(b.__x), "h"(c.__x));
    return __hdrt_f16(result);
}
__HDRT_HD __half2 __hdrt_fma(__half2 a, __half2 b, __half2 c)
{
    unsigned int result;
    asm("fma.rn.f16x2 %0, %1, %2, %3;"
        : "=r"(result)
        : "r"(__hdrt_raw(a)), "r"(__hdrt_raw(b)), "r"(__hdrt_raw(c)));
    return __hdrt_f16x2(result);
}

#if __CUDA_ARCH__ >= 800
__HDRT_F16_2(__hdrt_min, "min")
__HDRT_F16_2(__hdrt_max, "max")
__HDRT_F16_2(__hdrt_min_nan, "min.NaN")
__HDRT_F16_2(__hdrt_max_nan, "max.NaN")
#else
#define __HDRT_F16_BEST(name, builtin)                                                                                 \
    __HDRT_HD __half __hdrt_##name(__half a, __half b) { return __half(builtin(__hdrt_float(a), __hdrt_float(b))); }   \
    __HDRT_HD __half __hdrt_##name##_nan(__half a, __half b)                                                           \
    {                                                                                                                  \
        float x = __hdrt_float(a), y = __hdrt_float(b);                                                                \
        return x != x || y != y ? __hdrt_f16(0x7fff) : __half(builtin(x, y));                                          \
    }                                                                                                                  \
    __HDRT_HD __half2 __hdrt_##name(__half2 a, __half2 b)                                                              \
    {                                                                                                                  \
        return __half2(__hdrt_##name(a.x, b.x), __hdrt_##name(a.y, b.y));                                              \
    }                                                                                                                  \
    __HDRT_HD __half2 __hdrt_##name##_nan(__half2 a, __half2 b)                                                        \
    {                                                                                                                  \
        return __half2(__hdrt_##name##_nan(a.x, b.x), __hdrt_##name##_nan(a.y, b.y));                                  \
    }
__HDRT_F16_BEST(min, __builtin_fminf)
__HDRT_F16_BEST(max, __builtin_fmaxf)
#undef __HDRT_F16_BEST
#endif
#undef __HDRT_F16_2

/* ---- conversions ------------------------------------------------------------------------------------------------- */

__HDRT_HD __half __float2half_rn(float a) { return __hdrt_f16(__hdrt_f16_rn(a)); }
__HDRT_HD __half __float2half_rz(float a) { return __hdrt_f16(__hdrt_f16_rz(a)); }
__HDRT_HD __half __float2half_rd(float a) { return __hdrt_f16(__hdrt_f16_rd(a)); }
__HDRT_HD __half __float2half_ru(float a) { return __hdrt_f16(__hdrt_f16_ru(a)); }
__HDRT_HD __half __float2half(float a) { return __float2half_rn(a); }
__HDRT_HD __half __double2half(double a) { return __hdrt_f16(__hdrt_f16_rn(a)); }
__HDRT_HD float __half2float(__half a) { return __hdrt_float(a); }
__HDRT_HD __half2 __float2half2_rn(float a) { return __half2(__float2half_rn(a), __float2half_rn(a)); }
__HDRT_HD __half2 __floats2half2_rn(float a, float b) { return __half2(__float2half_rn(a), __float2half_rn(b)); }
__HDRT_HD __half2 __float22half2_rn(float2 a) { return __floats2half2_rn(a.x, a.y); }
__HDRT_HD float2 __half22float2(__half2 a) { return make_float2(__hdrt_float(a.x), __hdrt_float(a.y)); }
__HDRT_HD __half __low2half(__half2 a) { return a.x; }
__HDRT_HD __half __high2half(__half2 a) { return a.y; }
__HDRT_HD __half2 __low2half2(__half2 a) { return __half2(a.x, a.x); }
__HDRT_HD __half2 __high2half2(__half2 a) { return __half2(a.y, a.y); }
__HDRT_HD __half2 __lows2half2(__half2 a, __half2 b) { return __half2(a.x, b.x); }
__HDRT_HD __half2 __highs2half2(__half2 a, __half2 b) { return __half2(a.y, b.y); }
__HDRT_HD __half2 __halves2half2(__half a, __half b) { return __half2(a, b); }
__HDRT_HD __half2 __half2half2(__half a) { return __half2(a, a); }
__HDRT_HD __half2 make_half2(__half a, __half b) { return __half2(a, b); }
__HDRT_HD short __half_as_short(__half a) { return (short)a.__x; }
__HDRT_HD unsigned short __half_as_ushort(__half a) { return a.__x; }
__HDRT_HD __half __short_as_half(short a) { return __hdrt_f16((unsigned short)a); }
__HDRT_HD __half __ushort_as_half(unsigned short a) { return __hdrt_f16(a); }

#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7c00u)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7bffu)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half((unsigned short)0x0001u)
#define CUDART_NAN_FP16 __ushort_as_half((unsigned short)0x7fffu)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half((unsigned short)0x8000u)
#define CUDART_ONE_FP16 __ushort_as_half((unsigned short)0x3c00u)
#define CUDART_ZERO_FP16 __ushort_as_half((unsigned short)0x0000u)

/* ---- atomics ----------------------------------------------------------------------------------------------------- */

__HDRT_FN __half atomicAdd(__half *p, __half v)
{
    unsigned short old;
    asm volatile("atom.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(p), "h"(v.__x) : "memory");
    return __hdrt_f16(old);
}
/* Each of the two is added at once, both together need not be. */
__HDRT_FN __half2 atomicAdd(__half2 *p, __half2 v)
{
    unsigned int old;
    asm volatile("atom.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(__hdrt_raw(v)) : "memory");
    return __hdrt_f16x2(old);
}

#define HDRT_T __half
#define HDRT_T2 __half2
#define HDRT_NAME half
#define HDRT_FROM_FLOAT(x) __float2half_rn(x)
#define HDRT_FROM_BITS(x) __hdrt_f16(x)
#define HDRT_ONE 0x3c00u
#define HDRT_NAN 0x7fffu
#include "hdrt_half_functions.h"

#endif
