/* SPDX-License-Identifier: MIT */
/* Comparisons, selections and logic of predicates. */
#include "soft/exec/lanes.h"

#define INTEGER_TESTS(TEST, type, letters) \
    TEST(setp_eq_##type, letters, type, a == b) \
    TEST(setp_ne_##type, letters, type, a != b) \
    TEST(setp_lt_##type, letters, type, a < b) \
    TEST(setp_le_##type, letters, type, a <= b) \
    TEST(setp_gt_##type, letters, type, a > b) \
    TEST(setp_ge_##type, letters, type, a >= b)

/* Ordered comparisons are false with a NaN, those that end in u are true. */
#define FLOAT_TESTS(TEST, how, type, letters, A, B) \
    TEST(setp_eq_##how##type, letters, type, A == B) \
    TEST(setp_ne_##how##type, letters, type, A < B || A > B) \
    TEST(setp_lt_##how##type, letters, type, A < B) \
    TEST(setp_le_##how##type, letters, type, A <= B) \
    TEST(setp_gt_##how##type, letters, type, A > B) \
    TEST(setp_ge_##how##type, letters, type, A >= B) \
    TEST(setp_equ_##how##type, letters, type, !(A < B || A > B)) \
    TEST(setp_neu_##how##type, letters, type, A != B) \
    TEST(setp_ltu_##how##type, letters, type, !(A >= B)) \
    TEST(setp_leu_##how##type, letters, type, !(A > B)) \
    TEST(setp_gtu_##how##type, letters, type, !(A <= B)) \
    TEST(setp_geu_##how##type, letters, type, !(A < B)) \
    TEST(setp_num_##how##type, letters, type, A == A && B == B) \
    TEST(setp_nan_##how##type, letters, type, A != A || B != B)

#define COMPARISONS(TEST) \
    INTEGER_TESTS(TEST, u16, "p:hh") \
    INTEGER_TESTS(TEST, s16, "p:hh") \
    INTEGER_TESTS(TEST, u32, "p:ww") \
    INTEGER_TESTS(TEST, s32, "p:ww") \
    INTEGER_TESTS(TEST, u64, "p:qq") \
    INTEGER_TESTS(TEST, s64, "p:qq") \
    FLOAT_TESTS(TEST, , f32, "p:ff", a, b) \
    FLOAT_TESTS(TEST, ftz_, f32, "p:ff", flush(a), flush(b)) \
    FLOAT_TESTS(TEST, , f64, "p:dd", a, b)

#define DEFINE_TEST(name, letters, A, expression) LANES_TEST(name, A, expression)
#define ROW(name, letters, ...) {#name, handle_##name, letters},

COMPARISONS(DEFINE_TEST)

/* Predicates are one word of 32 bits. */
#define PREDICATES(X) \
    X(and_pred, "p:pp", a & b) \
    X(or_pred, "p:pp", a | b) \
    X(xor_pred, "p:pp", a ^ b) \
    X(not_pred, "p:p", ~a) \
    X(mov_pred, "p:p", a)
#define DEFINE_PREDICATE(name, letters, expression)                                       \
    HANDLER(name)                                                                         \
    {                                                                                     \
        uint32_t *to = (uint32_t *)(void *)(warp->frame + instruction->operand[0]);       \
        uint32_t a = *(const uint32_t *)hdsoft_source(warp, instruction->operand[1]);     \
        uint32_t b = letters[3] ? *(const uint32_t *)hdsoft_source(warp, instruction->operand[2]) : 0; \
        (void)b;                                                                          \
        *to = (*to & ~warp->active) | ((expression) & warp->active);                      \
        return instruction + 1;                                                           \
    }
PREDICATES(DEFINE_PREDICATE)

#define SELECT(name, T)                                                                   \
    HANDLER(name)                                                                         \
    {                                                                                     \
        LANES_BEGIN(T)                                                                    \
        const COLUMN_##T *first = SOURCE(T, 1), *second = SOURCE(T, 2);                   \
        uint32_t predicate = *(const uint32_t *)hdsoft_source(warp, instruction->operand[3]); \
        HDSOFT_EACH_LANE out[lane] = predicate >> lane & 1 ? first[lane] : second[lane];  \
        LANES_END()                                                                       \
    }
SELECT(selp_32, u32)
SELECT(selp_64, u64)

/* mov with braces: parts of 8, 16 or 32 bits to and from one register. */
#define PART(number) ((uint64_t)SOURCE(u32, number)[lane])
#define PACK(name, T, expression)                                       \
    HANDLER(name)                                                       \
    {                                                                   \
        LANES_BEGIN(T)                                                  \
        for (unsigned lane = 0; lane < HDSOFT_LANES; lane++)            \
            out[lane] = (COLUMN_##T)(expression);                       \
        LANES_END()                                                     \
    }
PACK(pack_16_2, u32, (PART(1) & 0xff) | (PART(2) & 0xff) << 8)
PACK(pack_32_2, u32, (PART(1) & 0xffff) | PART(2) << 16)
PACK(pack_32_4, u32, (PART(1) & 0xff) | (PART(2) & 0xff) << 8 | (PART(3) & 0xff) << 16 | PART(4) << 24)
PACK(pack_64_2, u64, PART(1) | PART(2) << 32)
PACK(pack_64_4, u64, (PART(1) & 0xffff) | (PART(2) & 0xffff) << 16 | (PART(3) & 0xffff) << 32 | PART(4) << 48)

#define UNPACK(name, T, parts, bits)                                                              \
    HANDLER(name)                                                                                 \
    {                                                                                             \
        const COLUMN_##T *from = SOURCE(T, 0);                                                    \
        for (unsigned lane = 0; lane < HDSOFT_LANES; lane++) {                                    \
            uint64_t value = from[lane];                                                          \
            for (unsigned part = 0; part < (parts) && (warp->active >> lane & 1); part++)         \
                ((column_32 *)(void *)(warp->frame + instruction->operand[1 + part]))[lane] =     \
                    (uint32_t)(value >> (bits) * part & ((UINT64_C(1) << (bits)) - 1));           \
        }                                                                                         \
        return instruction + 1;                                                                   \
    }
UNPACK(unpack_16_2, u32, 2, 8)
UNPACK(unpack_32_2, u32, 2, 16)
UNPACK(unpack_32_4, u32, 4, 8)
UNPACK(unpack_64_2, u64, 2, 32)
UNPACK(unpack_64_4, u64, 4, 16)

extern const hdsoft_form HDSOFT_TABLE(compare)[];
const hdsoft_form HDSOFT_TABLE(compare)[] = {
    COMPARISONS(ROW) PREDICATES(ROW)
    {"selp_32", handle_selp_32, "w:wwp"},
    {"selp_64", handle_selp_64, "q:qqp"},
    {"pack_16_2", handle_pack_16_2, "h:hh"},
    {"pack_32_2", handle_pack_32_2, "w:hh"},
    {"pack_32_4", handle_pack_32_4, "w:hhhh"},
    {"pack_64_2", handle_pack_64_2, "q:ww"},
    {"pack_64_4", handle_pack_64_4, "q:hhhh"},
    {"unpack_16_2", handle_unpack_16_2, "hh:h"},
    {"unpack_32_2", handle_unpack_32_2, "hh:w"},
    {"unpack_32_4", handle_unpack_32_4, "hhhh:w"},
    {"unpack_64_2", handle_unpack_64_2, "ww:q"},
    {"unpack_64_4", handle_unpack_64_4, "hhhh:q"},
    {NULL, NULL, NULL},
};
