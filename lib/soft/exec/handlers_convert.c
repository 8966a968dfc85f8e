/* SPDX-License-Identifier: MIT */
/* cvt between all integer and floating types. */
#include "soft/exec/lanes.h"

#define EACH_INTEGER(X, other) \
    X(u8, other) X(s8, other) X(u16, other) X(s16, other) X(u32, other) X(s32, other) X(u64, other) X(s64, other)

#define LOWEST_u8 0
#define LOWEST_s8 INT8_MIN
#define LOWEST_u16 0
#define LOWEST_s16 INT16_MIN
#define LOWEST_u32 0
#define LOWEST_s32 INT32_MIN
#define LOWEST_u64 0
#define LOWEST_s64 INT64_MIN
#define HIGHEST_u8 UINT8_MAX
#define HIGHEST_s8 INT8_MAX
#define HIGHEST_u16 UINT16_MAX
#define HIGHEST_s16 INT16_MAX
#define HIGHEST_u32 UINT32_MAX
#define HIGHEST_s32 INT32_MAX
#define HIGHEST_u64 UINT64_MAX
#define HIGHEST_s64 INT64_MAX

static inline __int128 saturate(__int128 value, __int128 lowest, __int128 highest)
{
    return value < lowest ? lowest : value > highest ? highest : value;
}

/* Integer to integer: a narrow result is extended to its column by its own sign. */
#define TO_INTEGER(D, S) LANES_1(cvt_##D##_##S, D, S, a)
#define TO_INTEGER_SATURATED(D, S) \
    LANES_1(cvt_sat_##D##_##S, D, S, (VALUE_##D)saturate(a, LOWEST_##D, HIGHEST_##D))
#define ROW_INTEGER(D, S) {"cvt_" #D "_" #S, handle_cvt_##D##_##S, "w:w"},
#define ROW_SATURATED(D, S) {"cvt_sat_" #D "_" #S, handle_cvt_sat_##D##_##S, "w:w"},
#define EACH_PAIR(X) \
    EACH_INTEGER(X, u8) EACH_INTEGER(X, s8) EACH_INTEGER(X, u16) EACH_INTEGER(X, s16) \
    EACH_INTEGER(X, u32) EACH_INTEGER(X, s32) EACH_INTEGER(X, u64) EACH_INTEGER(X, s64)
EACH_PAIR(TO_INTEGER)
EACH_PAIR(TO_INTEGER_SATURATED)

/* Integer to floating: in the processor's rounding mode. */
#define TO_FLOAT(S, D) LANES_1(cvt_##D##_##S, D, S, a)
#define ROW_FLOAT(S, D) {"cvt_" #D "_" #S, handle_cvt_##D##_##S, "w:w"},
EACH_INTEGER(TO_FLOAT, f32)
EACH_INTEGER(TO_FLOAT, f64)

/* Floating to integer: always saturated. A NaN gives 0, or the highest bit where 64 bits are involved. */
#define BITS_u8 8
#define BITS_s8 8
#define BITS_u16 16
#define BITS_s16 16
#define BITS_u32 32
#define BITS_s32 32
#define BITS_u64 64
#define BITS_s64 64
#define WIDE_f32 false
#define WIDE_f64 true
#define NOT_A_NUMBER(D, S) \
    ((VALUE_##D)(WIDE_##S || BITS_##D == 64 ? UINT64_C(1) << (BITS_##D - 1) : 0))
#define CLAMP(D, S, value)                                                            \
    ((value) != (value) ? NOT_A_NUMBER(D, S)                                          \
     : (value) <= (double)LOWEST_##D ? (VALUE_##D)LOWEST_##D                          \
     : (value) >= (double)HIGHEST_##D ? (VALUE_##D)HIGHEST_##D                        \
                                      : (VALUE_##D)(value))
#define FROM_FLOAT(D, S)                                                              \
    LANES_1(cvt_rni_##D##_##S, D, S, CLAMP(D, S, rint((double)a)))                    \
    LANES_1(cvt_rzi_##D##_##S, D, S, CLAMP(D, S, trunc((double)a)))                   \
    LANES_1(cvt_rmi_##D##_##S, D, S, CLAMP(D, S, floor((double)a)))                   \
    LANES_1(cvt_rpi_##D##_##S, D, S, CLAMP(D, S, ceil((double)a)))
#define ROW_FROM_FLOAT(D, S)                                        \
    {"cvt_rni_" #D "_" #S, handle_cvt_rni_##D##_##S, "w:w"},        \
    {"cvt_rzi_" #D "_" #S, handle_cvt_rzi_##D##_##S, "w:w"},        \
    {"cvt_rmi_" #D "_" #S, handle_cvt_rmi_##D##_##S, "w:w"},        \
    {"cvt_rpi_" #D "_" #S, handle_cvt_rpi_##D##_##S, "w:w"},
EACH_INTEGER(FROM_FLOAT, f32)
EACH_INTEGER(FROM_FLOAT, f64)

/* What would be below the normal floats even with all their digits becomes zero (tiny after rounding). */
static inline double flush_before(double a, unsigned rounding)
{
    bool away = (rounding == HDSOFT_ROUND_UP && a > 0) || (rounding == HDSOFT_ROUND_DOWN && a < 0);
    double least = rounding == HDSOFT_ROUND_NEAREST ? 0x1p-126 - 0x1p-151 : 0x1p-126;
    bool tiny = away ? fabs(a) <= 0x1p-126 - 0x1p-150 : fabs(a) < least;
    return tiny ? copysign(0.0, a) : a;
}

#define FLOATS(X) \
    X(cvt_f64_f32, "d:f", f64, f32, (double)a) \
    X(cvt_f32_f64, "f:d", f32, f64, canonical((float)a)) \
    X(cvt_flush_f64_f64, "d:d", f64, f64, flush_before(a, instruction->option[1])) \
    X(cvt_f32_f32, "f:f", f32, f32, a) \
    X(cvt_f64_f64, "d:d", f64, f64, a) \
    X(cvt_rni_f32_f32, "f:f", f32, f32, canonical(rintf(a))) \
    X(cvt_rzi_f32_f32, "f:f", f32, f32, canonical(truncf(a))) \
    X(cvt_rmi_f32_f32, "f:f", f32, f32, canonical(floorf(a))) \
    X(cvt_rpi_f32_f32, "f:f", f32, f32, canonical(ceilf(a))) \
    X(cvt_rni_f64_f64, "d:d", f64, f64, rint(a)) \
    X(cvt_rzi_f64_f64, "d:d", f64, f64, trunc(a)) \
    X(cvt_rmi_f64_f64, "d:d", f64, f64, floor(a)) \
    X(cvt_rpi_f64_f64, "d:d", f64, f64, ceil(a))
#define DEFINE_FLOAT(name, letters, D, S, e) LANES_1(name, D, S, e)
#define ROW(name, letters, ...) {#name, handle_##name, letters},
FLOATS(DEFINE_FLOAT)

extern const hdsoft_form HDSOFT_TABLE(convert)[];
const hdsoft_form HDSOFT_TABLE(convert)[] = {
    EACH_PAIR(ROW_INTEGER) EACH_PAIR(ROW_SATURATED) EACH_INTEGER(ROW_FLOAT, f32) EACH_INTEGER(ROW_FLOAT, f64)
    EACH_INTEGER(ROW_FROM_FLOAT, f32) EACH_INTEGER(ROW_FROM_FLOAT, f64) FLOATS(ROW)
    {NULL, NULL, NULL},
};
