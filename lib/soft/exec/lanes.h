/* SPDX-License-Identifier: MIT */
/*
 * How an arithmetic handler is written: an expression over one lane's a, b, c, from which these macros make the loop
 * over 32 lanes. With some lanes inactive the loop computes all of them aside and merges; so an expression must be
 * safe for any values. Included by the handler files only, which are compiled once for each x86 level
 * (HDSOFT_LEVEL is the suffix of their tables).
 */
#ifndef HDSOFT_LANES_H
#define HDSOFT_LANES_H

#include <math.h>
#include <string.h>

#include "soft/exec/forms.h"
#include "soft/exec/warp.h"

#define HDSOFT_PASTE2(a, b) a##b
#define HDSOFT_PASTE(a, b) HDSOFT_PASTE2(a, b)
#define HDSOFT_TABLE(name) HDSOFT_PASTE(hdsoft_forms_##name##_, HDSOFT_LEVEL)

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* not every expression has a vector form */
#define HDSOFT_VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety)")
#define HDSOFT_UNROLLED _Pragma("clang loop unroll(full)")
#else
#define HDSOFT_VECTOR_LOOP _Pragma("GCC ivdep")
#define HDSOFT_UNROLLED _Pragma("GCC unroll 8")
#endif
#define HDSOFT_EACH_LANE HDSOFT_VECTOR_LOOP for (unsigned lane = 0; lane < HDSOFT_LANES; lane++)

/* Columns are read as integers or as floating point. */
typedef uint32_t __attribute__((may_alias)) column_32;
typedef uint64_t __attribute__((may_alias)) column_64;
typedef float __attribute__((may_alias)) column_f32;
typedef double __attribute__((may_alias)) column_f64;

/* The lane types: how a value of the type sits in its column. */
#define COLUMN_u8 column_32
#define COLUMN_s8 column_32
#define COLUMN_u16 column_32
#define COLUMN_s16 column_32
#define COLUMN_u32 column_32
#define COLUMN_s32 column_32
#define COLUMN_u64 column_64
#define COLUMN_s64 column_64
#define COLUMN_f32 column_f32
#define COLUMN_f64 column_f64
#define VALUE_u8 uint8_t
#define VALUE_s8 int8_t
#define VALUE_u16 uint16_t
#define VALUE_s16 int16_t
#define VALUE_u32 uint32_t
#define VALUE_s32 int32_t
#define VALUE_u64 uint64_t
#define VALUE_s64 int64_t
#define VALUE_f32 float
#define VALUE_f64 double

static __attribute__((noinline, unused)) void merge_32(column_32 *to, const column_32 *from, uint32_t active)
{
    HDSOFT_EACH_LANE {
        uint32_t keep = (active >> lane & 1) - 1;
        to[lane] = (to[lane] & keep) | (from[lane] & ~keep);
    }
}

static __attribute__((noinline, unused)) void merge_64(column_64 *to, const column_64 *from, uint32_t active)
{
    HDSOFT_EACH_LANE {
        uint64_t keep = (uint64_t)(active >> lane & 1) - 1;
        to[lane] = (to[lane] & keep) | (from[lane] & ~keep);
    }
}

#define MERGE(to, from, active)                                                     \
    (sizeof *(to) == 8 ? merge_64((column_64 *)(void *)(to), (const column_64 *)(const void *)(from), active) \
                       : merge_32((column_32 *)(void *)(to), (const column_32 *)(const void *)(from), active))

#define SOURCE(type, number) ((const COLUMN_##type *)hdsoft_source(warp, instruction->operand[number]))
#define HANDLER(name) \
    static const hdsoft_instruction *handle_##name(hdsoft_warp *warp, const hdsoft_instruction *instruction)

/* The NaN that NVIDIA's arithmetic makes: 0x7fffffff. */
static inline float canonical(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = value != value ? UINT32_C(0x7fffffff) : bits;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float flush(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits & UINT32_C(0x7f800000)) == 0 ? bits & UINT32_C(0x80000000) : bits;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define LANES_BEGIN(D)                                                                        \
    COLUMN_##D *to = (COLUMN_##D *)(void *)(warp->frame + instruction->operand[0]);           \
    COLUMN_##D aside[HDSOFT_LANES];                                                           \
    COLUMN_##D *out = warp->active == HDSOFT_ALL_LANES ? to : aside;
#define LANES_END()                             \
    if (warp->active != HDSOFT_ALL_LANES)       \
        MERGE(to, aside, warp->active);         \
    return instruction + 1;

#define LANES_1(name, D, A, expression)              \
    HANDLER(name)                                    \
    {                                                \
        LANES_BEGIN(D)                               \
        const COLUMN_##A *first = SOURCE(A, 1);      \
        HDSOFT_EACH_LANE {                           \
            VALUE_##A a = (VALUE_##A)first[lane];    \
            out[lane] = (COLUMN_##D)(VALUE_##D)(expression); \
        }                                            \
        LANES_END()                                  \
    }

#define LANES_2(name, D, A, B, expression)           \
    HANDLER(name)                                    \
    {                                                \
        LANES_BEGIN(D)                               \
        const COLUMN_##A *first = SOURCE(A, 1);      \
        const COLUMN_##B *second = SOURCE(B, 2);     \
        HDSOFT_EACH_LANE {                           \
            VALUE_##A a = (VALUE_##A)first[lane];    \
            VALUE_##B b = (VALUE_##B)second[lane];   \
            out[lane] = (COLUMN_##D)(VALUE_##D)(expression); \
        }                                            \
        LANES_END()                                  \
    }

#define LANES_3(name, D, A, B, C, expression)        \
    HANDLER(name)                                    \
    {                                                \
        LANES_BEGIN(D)                               \
        const COLUMN_##A *first = SOURCE(A, 1);      \
        const COLUMN_##B *second = SOURCE(B, 2);     \
        const COLUMN_##C *third = SOURCE(C, 3);      \
        HDSOFT_EACH_LANE {                           \
            VALUE_##A a = (VALUE_##A)first[lane];    \
            VALUE_##B b = (VALUE_##B)second[lane];   \
            VALUE_##C c = (VALUE_##C)third[lane];    \
            out[lane] = (COLUMN_##D)(VALUE_##D)(expression); \
        }                                            \
        LANES_END()                                  \
    }

/* A comparison: one bit of a predicate per lane. */
#define LANES_TEST(name, A, expression)                                                \
    HANDLER(name)                                                                      \
    {                                                                                  \
        uint32_t *to = (uint32_t *)(void *)(warp->frame + instruction->operand[0]);    \
        const COLUMN_##A *first = SOURCE(A, 1);                                        \
        const COLUMN_##A *second = SOURCE(A, 2);                                       \
        uint32_t result = 0;                                                           \
        HDSOFT_EACH_LANE {                                                             \
            VALUE_##A a = (VALUE_##A)first[lane], b = (VALUE_##A)second[lane];         \
            result |= (uint32_t)((expression) != 0) << lane;                           \
        }                                                                              \
        *to = (*to & ~warp->active) | (result & warp->active);                         \
        return instruction + 1;                                                        \
    }

#endif
