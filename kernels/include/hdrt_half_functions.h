/* SPDX-License-Identifier: MIT */
/*
 * What f16 and bf16 have in common, included once for each by cuda_fp16.h and cuda_bf16.h, which have defined
 *
 *   HDRT_T, HDRT_T2, HDRT_NAME  the type, the pair of it, and what conversions call it
 *   HDRT_FROM_FLOAT(x)          float to HDRT_T, to nearest
 *   HDRT_FROM_BITS(x)           16 bits to HDRT_T
 *   HDRT_ONE, HDRT_NAN          the bits of 1 and of the NaN that arithmetic makes
 *   __hdrt_float(T), __hdrt_raw(T), __hdrt_raw(T2), __hdrt_pair(T, T), and
 *   __hdrt_add, _sub, _mul, _fma, _min, _max, _min_nan, _max_nan for T and for T2
 *
 * A single operation through float, rounded once more, is the correctly rounded one: float has more than twice the
 * digits. So comparisons, quotients and roots are made there.
 */

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

__HDRT_HD HDRT_T2 __lowhigh2highlow(HDRT_T2 a) { return __hdrt_pair(a.y, a.x); }
__HDRT_HD float __low2float(HDRT_T2 a) { return __hdrt_float(a.x); }
__HDRT_HD float __high2float(HDRT_T2 a) { return __hdrt_float(a.y); }

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

__HDRT_HD bool __hisnan(HDRT_T a) { return __hdrt_float(a) != __hdrt_float(a); }
__HDRT_HD int __hisinf(HDRT_T a)
{
    float value = __hdrt_float(a);
    return value == __builtin_inff() ? 1 : value == -__builtin_inff() ? -1 : 0;
}

__HDRT_HD HDRT_T __hdrt_saturate(HDRT_T a)
{
    float value = __hdrt_float(a);
    return value > 0.0f ? (value < 1.0f ? a : HDRT_FROM_BITS(HDRT_ONE)) : HDRT_FROM_BITS(0);
}
__HDRT_HD HDRT_T2 __hdrt_saturate(HDRT_T2 a) { return __hdrt_pair(__hdrt_saturate(a.x), __hdrt_saturate(a.y)); }

__HDRT_HD HDRT_T __hdrt_relu(HDRT_T a)
{
    return __hisnan(a) ? HDRT_FROM_BITS(HDRT_NAN) : __hdrt_float(a) > 0.0f ? a : HDRT_FROM_BITS(0);
}
__HDRT_HD HDRT_T2 __hdrt_relu(HDRT_T2 a) { return __hdrt_pair(__hdrt_relu(a.x), __hdrt_relu(a.y)); }

__HDRT_HD HDRT_T __hdrt_divide(HDRT_T a, HDRT_T b) { return HDRT_FROM_FLOAT(__hdrt_float(a) / __hdrt_float(b)); }
__HDRT_HD HDRT_T2 __hdrt_divide(HDRT_T2 a, HDRT_T2 b)
{
    return __hdrt_pair(__hdrt_divide(a.x, b.x), __hdrt_divide(a.y, b.y));
}

#define __HDRT_HALF_ARITHMETIC(T, two)                                                                                 \
    __HDRT_HD T __hadd##two(T a, T b) { return __hdrt_add(a, b); }                                                     \
    __HDRT_HD T __hsub##two(T a, T b) { return __hdrt_sub(a, b); }                                                     \
    __HDRT_HD T __hmul##two(T a, T b) { return __hdrt_mul(a, b); }                                                     \
    __HDRT_HD T __hadd##two##_rn(T a, T b) { return __hdrt_add(a, b); }                                                \
    __HDRT_HD T __hsub##two##_rn(T a, T b) { return __hdrt_sub(a, b); }                                                \
    __HDRT_HD T __hmul##two##_rn(T a, T b) { return __hdrt_mul(a, b); }                                                \
    __HDRT_HD T __hadd##two##_sat(T a, T b) { return __hdrt_saturate(__hdrt_add(a, b)); }                              \
    __HDRT_HD T __hsub##two##_sat(T a, T b) { return __hdrt_saturate(__hdrt_sub(a, b)); }                              \
    __HDRT_HD T __hmul##two##_sat(T a, T b) { return __hdrt_saturate(__hdrt_mul(a, b)); }                              \
    __HDRT_HD T __hfma##two(T a, T b, T c) { return __hdrt_fma(a, b, c); }                                             \
    __HDRT_HD T __hfma##two##_sat(T a, T b, T c) { return __hdrt_saturate(__hdrt_fma(a, b, c)); }                      \
    __HDRT_HD T __hfma##two##_relu(T a, T b, T c) { return __hdrt_relu(__hdrt_fma(a, b, c)); }                         \
    __HDRT_HD T __hmin##two(T a, T b) { return __hdrt_min(a, b); }                                                     \
    __HDRT_HD T __hmax##two(T a, T b) { return __hdrt_max(a, b); }                                                     \
    __HDRT_HD T __hmin##two##_nan(T a, T b) { return __hdrt_min_nan(a, b); }                                           \
    __HDRT_HD T __hmax##two##_nan(T a, T b) { return __hdrt_max_nan(a, b); }                                           \
    __HDRT_HD T operator+(T a, T b) { return __hdrt_add(a, b); }                                                       \
    __HDRT_HD T operator-(T a, T b) { return __hdrt_sub(a, b); }                                                       \
    __HDRT_HD T operator*(T a, T b) { return __hdrt_mul(a, b); }                                                       \
    __HDRT_HD T operator/(T a, T b) { return __hdrt_divide(a, b); }                                                    \
    __HDRT_HD T operator+(T a) { return a; }                                                                           \
    __HDRT_HD T &operator+=(T &a, T b) { return a = __hdrt_add(a, b); }                                                \
    __HDRT_HD T &operator-=(T &a, T b) { return a = __hdrt_sub(a, b); }                                                \
    __HDRT_HD T &operator*=(T &a, T b) { return a = __hdrt_mul(a, b); }                                                \
    __HDRT_HD T &operator/=(T &a, T b) { return a = __hdrt_divide(a, b); }

__HDRT_HALF_ARITHMETIC(HDRT_T, )
__HDRT_HALF_ARITHMETIC(HDRT_T2, 2)
#undef __HDRT_HALF_ARITHMETIC

__HDRT_HD HDRT_T __hdiv(HDRT_T a, HDRT_T b) { return __hdrt_divide(a, b); }
__HDRT_HD HDRT_T2 __h2div(HDRT_T2 a, HDRT_T2 b) { return __hdrt_divide(a, b); }
__HDRT_HD HDRT_T __hneg(HDRT_T a) { return HDRT_FROM_BITS(__hdrt_raw(a) ^ 0x8000u); }
__HDRT_HD HDRT_T __habs(HDRT_T a) { return HDRT_FROM_BITS(__hdrt_raw(a) & 0x7fffu); }
__HDRT_HD HDRT_T2 __hneg2(HDRT_T2 a) { return __hdrt_pair(__hneg(a.x), __hneg(a.y)); }
__HDRT_HD HDRT_T2 __habs2(HDRT_T2 a) { return __hdrt_pair(__habs(a.x), __habs(a.y)); }
__HDRT_HD HDRT_T operator-(HDRT_T a) { return __hneg(a); }
__HDRT_HD HDRT_T2 operator-(HDRT_T2 a) { return __hneg2(a); }
__HDRT_HD HDRT_T &operator++(HDRT_T &a) { return a = __hdrt_add(a, HDRT_FROM_BITS(HDRT_ONE)); }
__HDRT_HD HDRT_T &operator--(HDRT_T &a) { return a = __hdrt_sub(a, HDRT_FROM_BITS(HDRT_ONE)); }
__HDRT_HD HDRT_T operator++(HDRT_T &a, int)
{
    HDRT_T before = a;
    ++a;
    return before;
}
__HDRT_HD HDRT_T operator--(HDRT_T &a, int)
{
    HDRT_T before = a;
    --a;
    return before;
}
/* The products' sums of a complex number: (a * b + c) with both parts. */
__HDRT_HD HDRT_T2 __hcmadd(HDRT_T2 a, HDRT_T2 b, HDRT_T2 c)
{
    HDRT_T real = __hdrt_fma(a.x, b.x, c.x), imaginary = __hdrt_fma(a.x, b.y, c.y);
    return __hdrt_pair(__hdrt_fma(__hneg(a.y), b.y, real), __hdrt_fma(a.y, b.x, imaginary));
}

/* ---- comparisons ------------------------------------------------------------------------------------------------- */

#define __HDRT_HALF_COMPARE(name, op)                                                                                  \
    __HDRT_HD bool __h##name(HDRT_T a, HDRT_T b)                                                                       \
    {                                                                                                                  \
        float x = __hdrt_float(a), y = __hdrt_float(b);                                                                \
        return op;                                                                                                     \
    }                                                                                                                  \
    __HDRT_HD HDRT_T2 __h##name##2(HDRT_T2 a, HDRT_T2 b)                                                               \
    {                                                                                                                  \
        return __hdrt_pair(HDRT_FROM_BITS(__h##name(a.x, b.x) ? HDRT_ONE : 0),                                         \
                           HDRT_FROM_BITS(__h##name(a.y, b.y) ? HDRT_ONE : 0));                                        \
    }                                                                                                                  \
    __HDRT_HD unsigned int __h##name##2_mask(HDRT_T2 a, HDRT_T2 b)                                                     \
    {                                                                                                                  \
        return (__h##name(a.x, b.x) ? 0xffffu : 0u) | (__h##name(a.y, b.y) ? 0xffff0000u : 0u);                        \
    }                                                                                                                  \
    __HDRT_HD bool __hb##name##2(HDRT_T2 a, HDRT_T2 b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); }

__HDRT_HALF_COMPARE(eq, x == y)
__HDRT_HALF_COMPARE(ne, x < y || x > y)
__HDRT_HALF_COMPARE(lt, x < y)
__HDRT_HALF_COMPARE(le, x <= y)
__HDRT_HALF_COMPARE(gt, x > y)
__HDRT_HALF_COMPARE(ge, x >= y)
__HDRT_HALF_COMPARE(equ, !(x < y || x > y))
__HDRT_HALF_COMPARE(neu, x != y)
__HDRT_HALF_COMPARE(ltu, !(x >= y))
__HDRT_HALF_COMPARE(leu, !(x > y))
__HDRT_HALF_COMPARE(gtu, !(x <= y))
__HDRT_HALF_COMPARE(geu, !(x < y))
#undef __HDRT_HALF_COMPARE

__HDRT_HD HDRT_T2 __hisnan2(HDRT_T2 a)
{
    return __hdrt_pair(HDRT_FROM_BITS(__hisnan(a.x) ? HDRT_ONE : 0), HDRT_FROM_BITS(__hisnan(a.y) ? HDRT_ONE : 0));
}

#define __HDRT_HALF_OPERATOR(op, name)                                                                                 \
    __HDRT_HD bool operator op(HDRT_T a, HDRT_T b) { return name(a, b); }
__HDRT_HALF_OPERATOR(==, __heq)
__HDRT_HALF_OPERATOR(!=, __hneu)
__HDRT_HALF_OPERATOR(<, __hlt)
__HDRT_HALF_OPERATOR(<=, __hle)
__HDRT_HALF_OPERATOR(>, __hgt)
__HDRT_HALF_OPERATOR(>=, __hge)
#undef __HDRT_HALF_OPERATOR
#define __HDRT_HALF_OPERATOR(op, name)                                                                                 \
    __HDRT_HD bool operator op(HDRT_T2 a, HDRT_T2 b) { return name(a, b); }
__HDRT_HALF_OPERATOR(==, __hbeq2)
__HDRT_HALF_OPERATOR(!=, __hbneu2)
__HDRT_HALF_OPERATOR(<, __hblt2)
__HDRT_HALF_OPERATOR(<=, __hble2)
__HDRT_HALF_OPERATOR(>, __hbgt2)
__HDRT_HALF_OPERATOR(>=, __hbge2)
#undef __HDRT_HALF_OPERATOR

/* ---- mathematics ------------------------------------------------------------------------------------------------- */

#define __HDRT_HALF_FUNCTION(name, expression)                                                                         \
    __HDRT_FN HDRT_T h##name(HDRT_T a)                                                                                 \
    {                                                                                                                  \
        float x = __hdrt_float(a);                                                                                     \
        return HDRT_FROM_FLOAT(expression);                                                                            \
    }                                                                                                                  \
    __HDRT_FN HDRT_T2 h2##name(HDRT_T2 a) { return __hdrt_pair(h##name(a.x), h##name(a.y)); }

__HDRT_HALF_FUNCTION(exp, __hdrt_half_power(x, 1.4426950408889634f, 1.925963033500e-8f))
__HDRT_HALF_FUNCTION(exp2, __nvvm_ex2_approx_f(x))
__HDRT_HALF_FUNCTION(exp10, __hdrt_half_power(x, 3.3219280948873622f, 7.0595369e-8f))
__HDRT_HALF_FUNCTION(log, __nvvm_lg2_approx_f(x) * 0.6931471805599453f)
__HDRT_HALF_FUNCTION(log2, __nvvm_lg2_approx_f(x))
__HDRT_HALF_FUNCTION(log10, __nvvm_lg2_approx_f(x) * 0.3010299956639812f)
__HDRT_HALF_FUNCTION(sqrt, __nvvm_sqrt_rn_f(x))
__HDRT_HALF_FUNCTION(rsqrt, __nvvm_rsqrt_approx_f(x))
__HDRT_HALF_FUNCTION(rcp, 1.0f / x)
__HDRT_HALF_FUNCTION(sin, __hdrt_half_sine(x, 0))
__HDRT_HALF_FUNCTION(cos, __hdrt_half_sine(x, 1))
__HDRT_HALF_FUNCTION(tanh, __hdrt_half_tanh(x))
__HDRT_HALF_FUNCTION(tanh_approx, __hdrt_half_tanh(x))
__HDRT_HALF_FUNCTION(floor, __builtin_floorf(x))
__HDRT_HALF_FUNCTION(ceil, __builtin_ceilf(x))
__HDRT_HALF_FUNCTION(trunc, __builtin_truncf(x))
__HDRT_HALF_FUNCTION(rint, __builtin_rintf(x))
#undef __HDRT_HALF_FUNCTION

/* ---- integers ---------------------------------------------------------------------------------------------------- */

/* A value out of range becomes the nearest that there is, a NaN what the float's conversion makes of it. */
#define __HDRT_HALF_TO_MODE(name, ptx, type, kept, letter)                                                             \
    __HDRT_HD type __HDRT_PASTE(__, HDRT_NAME, 2##name)(HDRT_T a)                                                      \
    {                                                                                                                  \
        kept result;                                                                                                   \
        asm("cvt." ptx ".f32 %0, %1;" : "=" letter(result) : "f"(__hdrt_float(a)));                                    \
        return (type)result;                                                                                           \
    }
#define __HDRT_HALF_TO(name, ptx, type, letter)                                                                        \
    __HDRT_HALF_TO_MODE(name##_rn, "rni." ptx, type, type, letter)                                                     \
    __HDRT_HALF_TO_MODE(name##_rz, "rzi." ptx, type, type, letter)                                                     \
    __HDRT_HALF_TO_MODE(name##_rd, "rmi." ptx, type, type, letter)                                                     \
    __HDRT_HALF_TO_MODE(name##_ru, "rpi." ptx, type, type, letter)

__HDRT_HALF_TO(int, "s32", int, "r")
__HDRT_HALF_TO(uint, "u32", unsigned int, "r")
__HDRT_HALF_TO(short, "s16", short, "h")
__HDRT_HALF_TO(ushort, "u16", unsigned short, "h")
__HDRT_HALF_TO(ll, "s64", long long, "l")
__HDRT_HALF_TO(ull, "u64", unsigned long long, "l")
__HDRT_HALF_TO_MODE(char_rz, "rzi.s8", signed char, short, "h")
__HDRT_HALF_TO_MODE(uchar_rz, "rzi.u8", unsigned char, unsigned short, "h")
#undef __HDRT_HALF_TO
#undef __HDRT_HALF_TO_MODE

#define __HDRT_HALF_FROM_MODE(name, type, odd, mode)                                                                   \
    __HDRT_HD HDRT_T __HDRT_PASTE(__##name##2, HDRT_NAME, mode)(type a)                                                \
    {                                                                                                                  \
        return __HDRT_PASTE(__float2, HDRT_NAME, mode)(odd(a));                                                        \
    }
#define __HDRT_HALF_FROM(name, type, odd)                                                                              \
    __HDRT_HALF_FROM_MODE(name, type, odd, _rn)                                                                        \
    __HDRT_HALF_FROM_MODE(name, type, odd, _rz)                                                                        \
    __HDRT_HALF_FROM_MODE(name, type, odd, _rd)                                                                        \
    __HDRT_HALF_FROM_MODE(name, type, odd, _ru)

__HDRT_HALF_FROM(int, int, __hdrt_odd_float)
__HDRT_HALF_FROM(uint, unsigned int, __hdrt_odd_float)
__HDRT_HALF_FROM(short, short, (float))
__HDRT_HALF_FROM(ushort, unsigned short, (float))
__HDRT_HALF_FROM(ll, long long, __hdrt_odd_float)
__HDRT_HALF_FROM(ull, unsigned long long, __hdrt_odd_float)
#undef __HDRT_HALF_FROM
#undef __HDRT_HALF_FROM_MODE

/* ---- warps ------------------------------------------------------------------------------------------------------- */

#define __HDRT_HALF_SHUFFLE(name, type)                                                                                \
    __HDRT_FN HDRT_T name(unsigned int mask, HDRT_T value, type lane, int width = 32)                                  \
    {                                                                                                                  \
        return HDRT_FROM_BITS((unsigned short)name(mask, (unsigned int)__hdrt_raw(value), lane, width));              \
    }                                                                                                                  \
    __HDRT_FN HDRT_T2 name(unsigned int mask, HDRT_T2 value, type lane, int width = 32)                                \
    {                                                                                                                  \
        return __builtin_bit_cast(HDRT_T2, name(mask, __hdrt_raw(value), lane, width));                               \
    }
__HDRT_HALF_SHUFFLE(__shfl_sync, int)
__HDRT_HALF_SHUFFLE(__shfl_up_sync, unsigned int)
__HDRT_HALF_SHUFFLE(__shfl_down_sync, unsigned int)
__HDRT_HALF_SHUFFLE(__shfl_xor_sync, int)
#undef __HDRT_HALF_SHUFFLE

#undef HDRT_T
#undef HDRT_T2
#undef HDRT_NAME
#undef HDRT_FROM_FLOAT
#undef HDRT_FROM_BITS
#undef HDRT_ONE
#undef HDRT_NAN
