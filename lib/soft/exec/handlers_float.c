/* SPDX-License-Identifier: MIT */
/*
 * Floating-point arithmetic. Rounding to nearest is what the processor does; other modes come from the "rounded" form,
 * which sets the processor's mode around one of these. Approximations are computed from a wider type: closer to the
 * true value than NVIDIA's, so not bit for bit the same.
 */
#include "soft/exec/lanes.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t bits_of_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double flush_double(double a)
{
    return fabs(a) < 0x1p-1022 ? copysign(0.0, a) : a;
}

/* A number wins over a NaN; -0 is less than +0. */
static inline float least(float a, float b)
{
    float equal = float_of(bits_of(a) | bits_of(b));
    float number = a < b ? a : b < a ? b : equal;
    return canonical(a != a ? b : b != b ? a : number);
}

static inline float greatest(float a, float b)
{
    float equal = float_of(bits_of(a) & bits_of(b));
    float number = a > b ? a : b > a ? b : equal;
    return canonical(a != a ? b : b != b ? a : number);
}

static inline double least_double(double a, double b)
{
    double equal = double_of(bits_of_double(a) | bits_of_double(b));
    double number = a < b ? a : b < a ? b : equal;
    return a != a ? b : b != b ? a : number;
}

static inline double greatest_double(double a, double b)
{
    double equal = double_of(bits_of_double(a) & bits_of_double(b));
    double number = a > b ? a : b > a ? b : equal;
    return a != a ? b : b != b ? a : number;
}

static inline float any_nan(float a, float b, float otherwise)
{
    return a != a || b != b ? float_of(0x7fffffff) : otherwise;
}

/* Of the magnitudes, with the sign of the product. */
static inline float with_product_sign(float a, float b, float magnitude)
{
    uint32_t sign = (bits_of(a) ^ bits_of(b)) & 0x80000000u;
    return magnitude != magnitude ? magnitude : float_of(bits_of(magnitude) | sign);
}

#define SIZE(value) float_of(bits_of(value) & 0x7fffffff)

#define FLOAT_1(ONE) \
    ONE(abs_f32, "f:f", f32, f32, canonical(float_of(bits_of(a) & 0x7fffffff))) \
    ONE(abs_ftz_f32, "f:f", f32, f32, canonical(float_of(bits_of(flush(a)) & 0x7fffffff))) \
    ONE(neg_f32, "f:f", f32, f32, canonical(float_of(bits_of(a) ^ 0x80000000))) \
    ONE(neg_ftz_f32, "f:f", f32, f32, canonical(float_of(bits_of(flush(a)) ^ 0x80000000))) \
    ONE(flush_f32, "f:f", f32, f32, canonical(flush(a))) \
    ONE(saturate_f32, "f:f", f32, f32, a > 0 ? (a < 1 ? a : 1) : 0) \
    ONE(saturate_f64, "d:d", f64, f64, a > 0 ? (a < 1 ? a : 1) : 0) \
    ONE(rcp_f32, "f:f", f32, f32, canonical(1.0f / a)) \
    ONE(sqrt_f32, "f:f", f32, f32, canonical(sqrtf(a))) \
    ONE(rsqrt_f32, "f:f", f32, f32, canonical((float)(1.0 / sqrt((double)a)))) \
    ONE(sin_f32, "f:f", f32, f32, canonical((float)sin((double)a))) \
    ONE(cos_f32, "f:f", f32, f32, canonical((float)cos((double)a))) \
    ONE(ex2_f32, "f:f", f32, f32, canonical((float)exp2((double)a))) \
    ONE(lg2_f32, "f:f", f32, f32, canonical((float)log2((double)a))) \
    ONE(tanh_f32, "f:f", f32, f32, canonical((float)tanh((double)a))) \
    ONE(abs_f64, "d:d", f64, f64, double_of(bits_of_double(a) & INT64_MAX)) \
    ONE(neg_f64, "d:d", f64, f64, double_of(bits_of_double(a) ^ UINT64_C(1) << 63)) \
    ONE(rcp_f64, "d:d", f64, f64, 1.0 / a) \
    ONE(rcp_ftz_f64, "d:d", f64, f64, flush_double(1.0 / flush_double(a))) \
    ONE(rsqrt_ftz_f64, "d:d", f64, f64, 1.0 / sqrt(flush_double(a))) \
    ONE(sqrt_f64, "d:d", f64, f64, sqrt(a)) \
    ONE(rsqrt_f64, "d:d", f64, f64, 1.0 / sqrt(a))

#define FLOAT_2(TWO) \
    TWO(add_f32, "f:ff", f32, f32, f32, canonical(a + b)) \
    TWO(sub_f32, "f:ff", f32, f32, f32, canonical(a - b)) \
    TWO(mul_f32, "f:ff", f32, f32, f32, canonical(a * b)) \
    TWO(div_f32, "f:ff", f32, f32, f32, canonical(a / b)) \
    TWO(add_ftz_f32, "f:ff", f32, f32, f32, canonical(flush(flush(a) + flush(b)))) \
    TWO(sub_ftz_f32, "f:ff", f32, f32, f32, canonical(flush(flush(a) - flush(b)))) \
    TWO(mul_ftz_f32, "f:ff", f32, f32, f32, canonical(flush(flush(a) * flush(b)))) \
    TWO(min_f32, "f:ff", f32, f32, f32, least(a, b)) \
    TWO(max_f32, "f:ff", f32, f32, f32, greatest(a, b)) \
    TWO(min_ftz_f32, "f:ff", f32, f32, f32, least(flush(a), flush(b))) \
    TWO(max_ftz_f32, "f:ff", f32, f32, f32, greatest(flush(a), flush(b))) \
    TWO(min_NaN_f32, "f:ff", f32, f32, f32, any_nan(a, b, least(a, b))) \
    TWO(max_NaN_f32, "f:ff", f32, f32, f32, any_nan(a, b, greatest(a, b))) \
    TWO(min_xorsign_abs_f32, "f:ff", f32, f32, f32, with_product_sign(a, b, least(SIZE(a), SIZE(b)))) \
    TWO(max_xorsign_abs_f32, "f:ff", f32, f32, f32, with_product_sign(a, b, greatest(SIZE(a), SIZE(b)))) \
    TWO(min_ftz_xorsign_abs_f32, "f:ff", f32, f32, f32, \
        with_product_sign(a, b, least(SIZE(flush(a)), SIZE(flush(b))))) \
    TWO(max_ftz_xorsign_abs_f32, "f:ff", f32, f32, f32, \
        with_product_sign(a, b, greatest(SIZE(flush(a)), SIZE(flush(b))))) \
    TWO(min_NaN_xorsign_abs_f32, "f:ff", f32, f32, f32, \
        any_nan(a, b, with_product_sign(a, b, least(SIZE(a), SIZE(b))))) \
    TWO(max_NaN_xorsign_abs_f32, "f:ff", f32, f32, f32, \
        any_nan(a, b, with_product_sign(a, b, greatest(SIZE(a), SIZE(b))))) \
    TWO(copysign_f32, "f:ff", f32, f32, f32, float_of((bits_of(b) & 0x7fffffff) | (bits_of(a) & 0x80000000))) \
    TWO(add_f64, "d:dd", f64, f64, f64, a + b) \
    TWO(sub_f64, "d:dd", f64, f64, f64, a - b) \
    TWO(mul_f64, "d:dd", f64, f64, f64, a * b) \
    TWO(div_f64, "d:dd", f64, f64, f64, a / b) \
    TWO(min_f64, "d:dd", f64, f64, f64, least_double(a, b)) \
    TWO(max_f64, "d:dd", f64, f64, f64, greatest_double(a, b)) \
    TWO(copysign_f64, "d:dd", f64, f64, f64, \
        double_of((bits_of_double(b) & INT64_MAX) | (bits_of_double(a) & UINT64_C(1) << 63)))

#define FLOAT_3(THREE) \
    THREE(fma_f64, "d:ddd", f64, f64, f64, f64, fma(a, b, c)) \
    THREE(mad_f64, "d:ddd", f64, f64, f64, f64, fma(a, b, c))

#define FUSED(THREE) \
    THREE(fma_f32, "f:fff", f32, f32, f32, f32, canonical(fmaf(a, b, c))) \
    THREE(mad_f32, "f:fff", f32, f32, f32, f32, canonical(fmaf(a, b, c)))

#define FUSED_FLUSHED(THREE) \
    THREE(fma_ftz_f32, "f:fff", f32, f32, f32, f32, canonical(flush(fmaf(flush(a), flush(b), flush(c))))) \
    THREE(mad_ftz_f32, "f:fff", f32, f32, f32, f32, canonical(flush(fmaf(flush(a), flush(b), flush(c)))))

#define DEFINE_1(name, signature, D, A, e) LANES_1(name, D, A, e)
#define DEFINE_2(name, signature, D, A, B, e) LANES_2(name, D, A, B, e)
#define DEFINE_3(name, signature, D, A, B, C, e) LANES_3(name, D, A, B, C, e)
#define ROW(name, signature, ...) {#name, handle_##name, signature},

FLOAT_1(DEFINE_1)
FLOAT_2(DEFINE_2)
FLOAT_3(DEFINE_3)

#if defined(FP_FAST_FMAF) || !defined(__SSE2__)
FUSED(DEFINE_3)
FUSED_FLUSHED(DEFINE_3)
#else
/*
 * fma without an instruction for it: the product is exact in double, the sum is rounded to odd there, which keeps all
 * that the rounding to float needs to know. In the other rounding modes rounding twice changes nothing, and an odd last
 * bit neither.
 */
typedef double __attribute__((vector_size(16))) two_doubles;
typedef uint64_t __attribute__((vector_size(16))) two_words;

static inline two_doubles widen_two(const column_f32 *from)
{
    return (two_doubles)_mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)from)));
}

static inline two_doubles fuse_two(two_doubles a, two_doubles b, two_doubles c)
{
    const two_words magnitude = {INT64_MAX, INT64_MAX};
    two_doubles product = a * b, sum = product + c;
    two_words p = (two_words)product, q = (two_words)c;
    two_words swap = (p ^ q) & (two_words)((two_doubles)(p & magnitude) < (two_doubles)(q & magnitude));
    two_doubles larger = (two_doubles)(p ^ swap), smaller = (two_doubles)(q ^ swap);
    two_doubles lost = smaller - (sum - larger); /* exact, or rounded in the same direction; NaN beside infinity */
    two_words bits = (two_words)sum, inwards = (bits ^ (two_words)lost) >> 63;
    two_words inexact = (two_words)((lost < 0) | (lost > 0)) & 1;
    return (two_doubles)((bits - (inwards & inexact)) | inexact);
}

static void fuse_lanes(column_f32 *out, const column_f32 *a, const column_f32 *b, const column_f32 *c)
{
    HDSOFT_UNROLLED for (unsigned lane = 0; lane < HDSOFT_LANES; lane += 2) {
        two_doubles fused = fuse_two(widen_two(a + lane), widen_two(b + lane), widen_two(c + lane));
        _mm_storel_epi64((__m128i *)(void *)(out + lane), _mm_castps_si128(_mm_cvtpd_ps((__m128d)fused)));
    }
}

static void flush_lanes(column_f32 *out, const column_f32 *from)
{
    HDSOFT_EACH_LANE out[lane] = flush(from[lane]);
}

#define DEFINE_FUSED(name, signature, D, A, B, C, e)                                            \
    HANDLER(name)                                                                               \
    {                                                                                           \
        LANES_BEGIN(D)                                                                          \
        fuse_lanes(out, SOURCE(A, 1), SOURCE(B, 2), SOURCE(C, 3));                              \
        HDSOFT_EACH_LANE out[lane] = canonical(out[lane]);                                      \
        LANES_END()                                                                             \
    }
#define DEFINE_FUSED_FLUSHED(name, signature, D, A, B, C, e)                                    \
    HANDLER(name)                                                                               \
    {                                                                                           \
        LANES_BEGIN(D)                                                                          \
        column_f32 flushed[3][HDSOFT_LANES];                                                    \
        flush_lanes(flushed[0], SOURCE(A, 1));                                                  \
        flush_lanes(flushed[1], SOURCE(B, 2));                                                  \
        flush_lanes(flushed[2], SOURCE(C, 3));                                                  \
        fuse_lanes(out, flushed[0], flushed[1], flushed[2]);                                    \
        HDSOFT_EACH_LANE out[lane] = canonical(flush(out[lane]));                               \
        LANES_END()                                                                             \
    }
FUSED(DEFINE_FUSED)
FUSED_FLUSHED(DEFINE_FUSED_FLUSHED)
#endif

/* testp: classes by exponent and fraction. Zero counts as normal. */
#define EXPONENT_F32 (a & 0x7f800000u)
#define EXPONENT_F64 (a & UINT64_C(0x7ff0000000000000))
#define CLASSES(TEST, type, letters, column, exponent, infinite, sign) \
    TEST(testp_finite_##type, letters, column, (exponent) != (infinite)) \
    TEST(testp_infinite_##type, letters, column, (a & ~(sign)) == (infinite)) \
    TEST(testp_number_##type, letters, column, (a & ~(sign)) <= (infinite)) \
    TEST(testp_notanumber_##type, letters, column, (a & ~(sign)) > (infinite)) \
    TEST(testp_normal_##type, letters, column, (exponent) != (infinite) && ((exponent) != 0 || (a & ~(sign)) == 0)) \
    TEST(testp_subnormal_##type, letters, column, (exponent) == 0 && (a & ~(sign)) != 0)
#define TEST_FORMS(TEST) \
    CLASSES(TEST, f32, "p:f", u32, EXPONENT_F32, 0x7f800000u, 0x80000000u) \
    CLASSES(TEST, f64, "p:d", u64, EXPONENT_F64, UINT64_C(0x7ff0000000000000), UINT64_C(1) << 63)
#define DEFINE_TEST(name, letters, A, expression)                                      \
    HANDLER(name)                                                                      \
    {                                                                                  \
        uint32_t *to = (uint32_t *)(void *)(warp->frame + instruction->operand[0]);    \
        const COLUMN_##A *first = SOURCE(A, 1);                                        \
        uint32_t result = 0;                                                           \
        HDSOFT_EACH_LANE {                                                             \
            VALUE_##A a = first[lane];                                                 \
            result |= (uint32_t)((expression) != 0) << lane;                           \
        }                                                                              \
        *to = (*to & ~warp->active) | (result & warp->active);                         \
        return instruction + 1;                                                        \
    }
TEST_FORMS(DEFINE_TEST)

extern const hdsoft_form HDSOFT_TABLE(float)[];
const hdsoft_form HDSOFT_TABLE(float)[] = {
    FLOAT_1(ROW) FLOAT_2(ROW) FLOAT_3(ROW) FUSED(ROW) FUSED_FLUSHED(ROW) TEST_FORMS(ROW)
    {NULL, NULL, NULL},
};
