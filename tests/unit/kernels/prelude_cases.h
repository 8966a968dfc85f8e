/* SPDX-License-Identifier: MIT */
/*
 * What sources may call, each with the same thing said for the CPU: X(name, on the device, on the host). Included by
 * prelude.cu, which takes the middle column, and by test_prelude.c, which takes the right one.
 */
#ifndef PRELUDE_CASES_H
#define PRELUDE_CASES_H

/* unsigned a, b, c; the result's 32 bits. */
#define CASES_32(X)                                                                                                    \
    X(clz, __clz((int)a), a ? __builtin_clz(a) : 32)                                                                   \
    X(popc, __popc(a), __builtin_popcount(a))                                                                          \
    X(brev, __brev(a), host_reverse(a) >> 32)                                                                          \
    X(ffs, __ffs((int)a), __builtin_ffs((int)a))                                                                       \
    X(mulhi, __mulhi((int)a, (int)b), ((long long)(int)a * (int)b) >> 32)                                              \
    X(umulhi, __umulhi(a, b), ((unsigned long long)a * b) >> 32)                                                       \
    X(mul24, __mul24((int)a, (int)b), host_signed_24(a) * host_signed_24(b))                                           \
    X(umul24, __umul24(a, b), (unsigned long long)(a & 0xffffff) * (b & 0xffffff))                                     \
    X(sad, __sad((int)a, (int)b, c), host_distance((int)a, (int)b) + c)                                                \
    X(usad, __usad(a, b, c), host_distance(a, b) + c)                                                                  \
    X(hadd, __hadd((int)a, (int)b), ((long long)(int)a + (int)b) >> 1)                                                 \
    X(rhadd, __rhadd((int)a, (int)b), ((long long)(int)a + (int)b + 1) >> 1)                                           \
    X(uhadd, __uhadd(a, b), ((unsigned long long)a + b) >> 1)                                                          \
    X(urhadd, __urhadd(a, b), ((unsigned long long)a + b + 1) >> 1)                                                    \
    X(bswap, __nv_bswap32(a), __builtin_bswap32(a))                                                                    \
    X(byte_perm, __byte_perm(a, b, c & 0x7777), host_bytes(a, b, c))                                                   \
    X(funnel_l, __funnelshift_l(a, b, c), (host_pair(a, b) << (c & 31)) >> 32)                                         \
    X(funnel_lc, __funnelshift_lc(a, b, c), (host_pair(a, b) << (c < 32 ? c : 32)) >> 32)                              \
    X(funnel_r, __funnelshift_r(a, b, c), host_pair(a, b) >> (c & 31))                                                 \
    X(funnel_rc, __funnelshift_rc(a, b, c), host_pair(a, b) >> (c < 32 ? c : 32))                                      \
    X(dp4a, __dp4a((int)a, (int)b, (int)c), host_dot(a, b, c, 8, 0, true))                                             \
    X(udp4a, __dp4a(a, b, c), host_dot(a, b, c, 8, 0, false))                                                          \
    X(dp2a_lo, __dp2a_lo((int)a, (int)b, (int)c), host_dot(a, b, c, 16, 0, true))                                      \
    X(dp2a_hi, __dp2a_hi((int)a, (int)b, (int)c), host_dot(a, b, c, 16, 2, true))                                      \
    X(udp2a_lo, __dp2a_lo(a, b, c), host_dot(a, b, c, 16, 0, false))                                                   \
    X(udp2a_hi, __dp2a_hi(a, b, c), host_dot(a, b, c, 16, 2, false))                                                   \
    X(min, min((int)a, (int)b), (int)a < (int)b ? a : b)                                                               \
    X(max, max((int)a, (int)b), (int)a > (int)b ? a : b)                                                               \
    X(umin, min(a, b), a < b ? a : b)                                                                                  \
    X(mixed_max, max((int)a, b), a > b ? a : b)                                                                        \
    X(abs, abs((int)a), (int)a < 0 ? 0u - a : a)                                                                       \
    X(vadd4, __vadd4(a, b), HOST_LANES(8, unsigned char, x + y))                                                       \
    X(vsub2, __vsub2(a, b), HOST_LANES(16, unsigned short, x - y))                                                     \
    X(vaddss2, __vaddss2(a, b), HOST_LANES(16, short, host_clip(x + y, -32768, 32767)))                                \
    X(vsubss4, __vsubss4(a, b), HOST_LANES(8, signed char, host_clip(x - y, -128, 127)))                               \
    X(vaddus4, __vaddus4(a, b), HOST_LANES(8, unsigned char, host_clip(x + y, 0, 255)))                                \
    X(vsubus2, __vsubus2(a, b), HOST_LANES(16, unsigned short, host_clip(x - y, 0, 65535)))                            \
    X(vavgs4, __vavgs4(a, b), HOST_LANES(8, signed char, host_half(x + y)))                                            \
    X(vavgu2, __vavgu2(a, b), HOST_LANES(16, unsigned short, host_half(x + y)))                                        \
    X(vhaddu4, __vhaddu4(a, b), HOST_LANES(8, unsigned char, (x + y) / 2))                                             \
    X(vmaxs2, __vmaxs2(a, b), HOST_LANES(16, short, x > y ? x : y))                                                    \
    X(vminu4, __vminu4(a, b), HOST_LANES(8, unsigned char, x < y ? x : y))                                             \
    X(vabsdiffs4, __vabsdiffs4(a, b), HOST_LANES(8, signed char, x > y ? x - y : y - x))                               \
    X(vabsdiffu4, __vabsdiffu4(a, b), HOST_LANES(8, unsigned char, x > y ? x - y : y - x))                             \
    X(vabs4, __vabs4(a), HOST_LANES(8, signed char, x < 0 ? -x : x))                                                   \
    X(vabsss2, __vabsss2(a), HOST_LANES(16, short, x == -32768 ? 32767 : x < 0 ? -x : x))                              \
    X(vnegss4, __vnegss4(a), HOST_LANES(8, signed char, x == -128 ? 127 : -x))                                         \
    X(vcmpgts2, __vcmpgts2(a, b), HOST_LANES(16, short, x > y ? -1 : 0))                                               \
    X(vcmpleu4, __vcmpleu4(a, b), HOST_LANES(8, unsigned char, x <= y ? -1 : 0))                                       \
    X(vseteq4, __vseteq4(a, b), HOST_LANES(8, unsigned char, x == y))                                                  \
    X(vsads4, __vsads4(a, b), host_lanes_distance(a, b, true))                                                         \
    X(vsadu4, __vsadu4(a, b), host_lanes_distance(a, b, false))                                                        \
    X(viaddmax, __viaddmax_s32((int)a, (int)b, (int)c), (int)(a + b) > (int)c ? a + b : c)                             \
    X(viaddmin_relu, __viaddmin_s32_relu((int)a, (int)b, (int)c), host_relu((int)(a + b) < (int)c ? a + b : c))        \
    X(viaddmax_16, __viaddmax_s16x2(a, b, b), HOST_LANES(16, short, (short)(x + y) > y ? x + y : y))                   \
    X(viaddmin_u16, __viaddmin_u16x2(a, b, a), HOST_LANES(16, unsigned short, ((x + y) & 0xffff) < x ? x + y : x))     \
    X(vimax3, __vimax3_u32(a, b, c), a > b ? (a > c ? a : c) : (b > c ? b : c))                                        \
    X(vimin_relu, __vimin_s16x2_relu(a, b), HOST_LANES(16, short, host_clip(x < y ? x : y, 0, 32767)))                 \
    X(vibmax, device_vibmax(a, b), (a >= b ? a : b) + (a >= b))                                                        \
    X(vibmin, device_vibmin_halves(a, b), HOST_LANES(16, short, x < y ? x : y) + ((short)a <= (short)b))

/* unsigned long long q, r. */
#define CASES_64(X)                                                                                                    \
    X(clzll, __clzll((long long)q), q ? __builtin_clzll(q) : 64)                                                       \
    X(popcll, __popcll(q), __builtin_popcountll(q))                                                                    \
    X(brevll, __brevll(q), host_reverse(q))                                                                            \
    X(ffsll, __ffsll((long long)q), __builtin_ffsll((long long)q))                                                     \
    X(mul64hi, __mul64hi((long long)q, (long long)r), ((__int128)(long long)q * (long long)r) >> 64)                   \
    X(umul64hi, __umul64hi(q, r), ((unsigned __int128)q * r) >> 64)                                                    \
    X(llmin, min((long long)q, (long long)r), (long long)q < (long long)r ? q : r)                                     \
    X(ullmax, max(q, r), q > r ? q : r)                                                                                \
    X(llabs, llabs((long long)q), (long long)q < 0 ? 0 - q : q)                                                        \
    X(bswap64, __nv_bswap64(q), __builtin_bswap64(q))                                                                  \
    X(quotient, r ? (long long)(q / r) : 0, r ? q / r : 0)                                                             \
    X(remainder, r ? (long long)q % (long long)(r >> 1 | 1) : 0, r ? (long long)q % (long long)(r >> 1 | 1) : 0)

#define CASES_MODES(X, device, host)                                                                                   \
    X(device##_rn, device##_rn, host, FE_TONEAREST)                                                                    \
    X(device##_rz, device##_rz, host, FE_TOWARDZERO)                                                                   \
    X(device##_ru, device##_ru, host, FE_UPWARD)                                                                       \
    X(device##_rd, device##_rd, host, FE_DOWNWARD)

/* float f, g, h, in a given rounding; X(name, function, operation of host_round, mode). */
#define CASES_F32_TWO(X)                                                                                               \
    CASES_MODES(X, __fadd, '+') CASES_MODES(X, __fsub, '-') CASES_MODES(X, __fmul, '*') CASES_MODES(X, __fdiv, '/')
#define CASES_F32_ONE(X) CASES_MODES(X, __frcp, 'r') CASES_MODES(X, __fsqrt, 's')
#define CASES_F32_THREE(X) CASES_MODES(X, __fmaf, 'f')
#define CASES_F64_TWO(X)                                                                                               \
    CASES_MODES(X, __dadd, '+') CASES_MODES(X, __dsub, '-') CASES_MODES(X, __dmul, '*') CASES_MODES(X, __ddiv, '/')
#define CASES_F64_ONE(X) CASES_MODES(X, __drcp, 'r') CASES_MODES(X, __dsqrt, 's')
#define CASES_F64_THREE(X) CASES_MODES(X, __fma, 'f')

/* float f, g, h; exact. */
#define CASES_F32(X)                                                                                                   \
    X(sqrtf, sqrtf(f), sqrtf(f))                                                                                       \
    X(fmaf, fmaf(f, g, h), fmaf(f, g, h))                                                                              \
    X(quotient, f / g, f / g)                                                                                          \
    X(floorf, floorf(f), floorf(f))                                                                                    \
    X(ceilf, ceilf(f), ceilf(f))                                                                                       \
    X(truncf, truncf(f), truncf(f))                                                                                    \
    X(rintf, rintf(f), rintf(f))                                                                                       \
    X(roundf, roundf(f), roundf(f))                                                                                    \
    X(fabsf, fabsf(f), fabsf(f))                                                                                       \
    X(copysignf, copysignf(f, g), copysignf(f, g))                                                                     \
    X(fminf, fminf(f, g), isnan(f) ? g : isnan(g) || f < g || (f == g && signbit(f)) ? f : g)                          \
    X(fmaxf, fmaxf(f, g), isnan(f) ? g : isnan(g) || f > g || (f == g && !signbit(f)) ? f : g)                         \
    X(fdimf, fdimf(f, g), fdimf(f, g))                                                                                 \
    X(modff, device_fraction(f), host_fraction(f))                                                                     \
    X(saturate, __saturatef(f) + 0.0f, f > 0.0f ? (f < 1.0f ? f : 1.0f) : 0.0f)                                        \
    X(frsqrt_rn, __frsqrt_rn(f), (float)(1.0 / sqrt((double)f)))

#define CASES_F64(X)                                                                                                   \
    X(sqrt, sqrt(d), sqrt(d))                                                                                          \
    X(fma, fma(d, e, k), fma(d, e, k))                                                                                 \
    X(quotient, d / e, d / e)                                                                                          \
    X(floor, floor(d), floor(d))                                                                                       \
    X(ceil, ceil(d), ceil(d))                                                                                          \
    X(trunc, trunc(d), trunc(d))                                                                                       \
    X(rint, rint(d), rint(d))                                                                                          \
    X(round, round(d), round(d))                                                                                       \
    X(fabs, fabs(d), fabs(d))                                                                                          \
    X(copysign, copysign(d, e), copysign(d, e))                                                                        \
    X(fmin, fmin(d, e), isnan(d) ? e : isnan(e) || d < e || (d == e && signbit(d)) ? d : e)                            \
    X(fmax, fmax(d, e), isnan(d) ? e : isnan(e) || d > e || (d == e && !signbit(d)) ? d : e)

/* To integers: X(name, function, mode, least, greatest), out of range the nearest. */
#define CASES_CONVERT(X, from)                                                                                         \
    CASES_CONVERT_MODES(X, __##from##2int, -0x1p31, 0x7fffffff)                                                        \
    CASES_CONVERT_MODES(X, __##from##2uint, 0, 0xffffffff)                                                             \
    CASES_CONVERT_MODES(X, __##from##2ll, -0x1p63, 0x7fffffffffffffff)                                                 \
    CASES_CONVERT_MODES(X, __##from##2ull, 0, 0xffffffffffffffff)
#define CASES_CONVERT_MODES(X, function, least, greatest)                                                              \
    X(function##_rn, function##_rn, FE_TONEAREST, least, greatest)                                                     \
    X(function##_rz, function##_rz, FE_TOWARDZERO, least, greatest)                                                    \
    X(function##_ru, function##_ru, FE_UPWARD, least, greatest)                                                        \
    X(function##_rd, function##_rd, FE_DOWNWARD, least, greatest)

/* From integers q: X(name, function, mode, type of the integer). */
#define CASES_F32_FROM(X)                                                                                              \
    CASES_FROM_MODES(X, __int2float, int) CASES_FROM_MODES(X, __uint2float, unsigned)                                  \
    CASES_FROM_MODES(X, __ll2float, long long) CASES_FROM_MODES(X, __ull2float, unsigned long long)
#define CASES_F64_FROM(X)                                                                                              \
    CASES_FROM_MODES(X, __ll2double, long long) CASES_FROM_MODES(X, __ull2double, unsigned long long)
#define CASES_FROM_MODES(X, function, type)                                                                            \
    X(function##_rn, function##_rn, FE_TONEAREST, type)                                                                \
    X(function##_rz, function##_rz, FE_TOWARDZERO, type)                                                               \
    X(function##_ru, function##_ru, FE_UPWARD, type)                                                                   \
    X(function##_rd, function##_rd, FE_DOWNWARD, type)

/* Approximations of float f in 0.01 to 3: X(name, on the device, on the host in double, allowed error). */
#define CASES_APPROXIMATE(X)                                                                                           \
    X(rsqrtf, rsqrtf(f), 1.0 / sqrt(f), 4e-7)                                                                          \
    X(rsqrt, (float)rsqrt((double)f), 1.0 / sqrt(f), 4e-7)                                                             \
    X(exp2f, exp2f(f), exp2(f), 4e-7)                                                                                  \
    X(fast_sin, __sinf(f), sin(f), 1e-6)                                                                               \
    X(fast_cos, __cosf(f), cos(f), 1e-6)                                                                               \
    X(fast_tan, __tanf(f * 0.4f), tan(f * 0.4f), 4e-6)                                                                 \
    X(fast_exp, __expf(f), exp(f), 2e-6)                                                                               \
    X(fast_exp10, __exp10f(f), pow(10.0, f), 4e-6)                                                                     \
    X(fast_log, __logf(f), log(f), 1e-6)                                                                               \
    X(fast_log2, __log2f(f), log2(f), 1e-6)                                                                            \
    X(fast_log10, __log10f(f), log10(f), 1e-6)                                                                         \
    X(fast_pow, __powf(f, 1.7f), pow(f, 1.7f), 4e-6)                                                                   \
    X(fast_quotient, __fdividef(1.0f, f), 1.0 / f, 4e-7)                                                               \
    X(fast_tanh, __tanhf(f), tanh(f), 1e-3)

/* Functions without an instruction, of f in 0.01 to 3 and g = 3 - f: X(name, on the device, on the host). */
#define CASES_LIBRARY_F32(X)                                                                                           \
    X(expf, expf(f), exp(f))                                                                                           \
    X(exp10f, exp10f(f), pow(10.0, f))                                                                                 \
    X(expm1f, expm1f(f), expm1(f))                                                                                     \
    X(logf, logf(f), log(f))                                                                                           \
    X(log2f, log2f(f), log2(f))                                                                                        \
    X(log10f, log10f(f), log10(f))                                                                                     \
    X(log1pf, log1pf(f), log1p(f))                                                                                     \
    X(logbf, logbf(f), logb(f))                                                                                        \
    X(ilogbf, (float)ilogbf(f), ilogb(f))                                                                              \
    X(powf, powf(f, g), pow(f, g))                                                                                     \
    X(powi, pow(f, 3), (double)f *f *f)                                                                                \
    X(sinf, sinf(f), sin(f))                                                                                           \
    X(cosf, cosf(f), cos(f))                                                                                           \
    X(tanf, tanf(f * 0.4f), tan(f * 0.4f))                                                                             \
    X(sincosf, device_sine_and_cosine(f), sin(f) + 2.0 * cos(f))                                                       \
    X(sinpif, sinpif(f), sin(f * 3.14159265358979))                                                                    \
    X(cospif, cospif(f), cos(f * 3.14159265358979))                                                                    \
    X(asinf, asinf(f * 0.3f), asin(f * 0.3f))                                                                          \
    X(acosf, acosf(f * 0.3f), acos(f * 0.3f))                                                                          \
    X(atanf, atanf(f), atan(f))                                                                                        \
    X(atan2f, atan2f(f, g), atan2(f, g))                                                                               \
    X(sinhf, sinhf(f), sinh(f))                                                                                        \
    X(coshf, coshf(f), cosh(f))                                                                                        \
    X(tanhf, tanhf(f), tanh(f))                                                                                        \
    X(asinhf, asinhf(f), asinh(f))                                                                                     \
    X(acoshf, acoshf(1.0f + f), acosh(1.0f + f))                                                                       \
    X(atanhf, atanhf(f * 0.3f), atanh(f * 0.3f))                                                                       \
    X(erff, erff(f), erf(f))                                                                                           \
    X(erfcf, erfcf(f), erfc(f))                                                                                        \
    X(normcdff, normcdff(f), 0.5 * erfc(-f / sqrt(2.0)))                                                               \
    X(tgammaf, tgammaf(f), tgamma(f))                                                                                  \
    X(lgammaf, lgammaf(f), lgamma(f))                                                                                  \
    X(cbrtf, cbrtf(f), cbrt(f))                                                                                        \
    X(rcbrtf, rcbrtf(f), 1.0 / cbrt(f))                                                                                \
    X(hypotf, hypotf(f, g), hypot(f, g))                                                                               \
    X(rhypotf, rhypotf(f, g), 1.0 / hypot(f, g))                                                                       \
    X(norm3df, norm3df(f, g, 2.0f), sqrt((double)f *f + (double)g * g + 4.0))                                          \
    X(fmodf, fmodf(f, 0.3f), fmod(f, 0.3f))                                                                            \
    X(remainderf, remainderf(f, 0.3f), remainder(f, 0.3f))                                                             \
    X(ldexpf, ldexpf(f, -5), f / 32.0)                                                                                 \
    X(scalbnf, scalbnf(f, 3), f * 8.0)                                                                                 \
    X(frexpf, device_mantissa_and_exponent(f), host_mantissa_and_exponent(f))                                          \
    X(nextafterf, (nextafterf(f, 9.0f) - f) / f, (nextafterf(f, 9.0f) - f) / f)                                        \
    X(j0f, j0f(f), j0(f))                                                                                              \
    X(y1f, y1f(f), y1(f))

/* The same in double: d, e. */
#define CASES_LIBRARY_F64(X)                                                                                           \
    X(exp, exp(d), exp(d))                                                                                             \
    X(exp2, exp2(d), exp2(d))                                                                                          \
    X(log, log(d), log(d))                                                                                             \
    X(log2, log2(d), log2(d))                                                                                          \
    X(pow, pow(d, e), pow(d, e))                                                                                       \
    X(powi, pow(d, 3), d *d *d)                                                                                        \
    X(sin, sin(d), sin(d))                                                                                             \
    X(cos, cos(d), cos(d))                                                                                             \
    X(tan, tan(d * 0.4), tan(d * 0.4))                                                                                 \
    X(atan2, atan2(d, e), atan2(d, e))                                                                                 \
    X(tanh, tanh(d), tanh(d))                                                                                          \
    X(erf, erf(d), erf(d))                                                                                             \
    X(normcdf, normcdf(d), 0.5 * erfc(-d / sqrt(2.0)))                                                                 \
    X(tgamma, tgamma(d), tgamma(d))                                                                                    \
    X(cbrt, cbrt(d), cbrt(d))                                                                                          \
    X(hypot, hypot(d, e), hypot(d, e))                                                                                 \
    X(fmod, fmod(d, 0.3), fmod(d, 0.3))                                                                                \
    X(ldexp, ldexp(d, -5), d / 32.0)

#endif
