/* SPDX-License-Identifier: MIT */
/* Integer arithmetic, logic and bit fields. */
#include "soft/exec/lanes.h"

/* What a division by zero gives is unspecified; an H200 answers all ones, as quotient and as remainder. */
#define DIVIDE(a, b) ((b) == 0 ? (__typeof__(a))-1 : (__typeof__(a))((a) / (b)))
#define REMAINDER(a, b) ((b) == 0 ? (__typeof__(a))-1 : (__typeof__(a))((a) % (b)))
/* The most negative number by -1 wraps. */
#define DIVIDE_SIGNED(T, a, b) ((b) == -1 ? (T)(0 - (uint64_t)(a)) : DIVIDE(a, b))
#define REMAINDER_SIGNED(a, b) ((b) == -1 ? 0 : REMAINDER(a, b))

static inline uint64_t mul_high_u64(uint64_t a, uint64_t b)
{
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
}

static inline uint64_t mul_high_s64(int64_t a, int64_t b)
{
    return (uint64_t)(((__int128)a * b) >> 64);
}

static inline int32_t saturate_s32(int64_t value)
{
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

static inline uint32_t reverse_32(uint32_t a)
{
    a = (a >> 1 & 0x55555555u) | (a & 0x55555555u) << 1;
    a = (a >> 2 & 0x33333333u) | (a & 0x33333333u) << 2;
    a = (a >> 4 & 0x0f0f0f0fu) | (a & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(a);
}

static inline uint64_t reverse_64(uint64_t a)
{
    return (uint64_t)reverse_32((uint32_t)a) << 32 | reverse_32((uint32_t)(a >> 32));
}

/* Position of the highest bit that differs from the sign; all ones if there is none. */
static inline uint32_t find_64(uint64_t a)
{
    return a ? 63u - (uint32_t)__builtin_clzll(a) : UINT32_MAX;
}

static inline uint32_t find_shift(uint32_t found, uint32_t highest)
{
    return found == UINT32_MAX ? found : highest - found;
}

/* Positions and lengths are 8 bits wide; the 64-bit forms, which an H200 makes of several, do not cut them off. */
static inline unsigned field_size(uint32_t value, unsigned bits)
{
    return bits == 32 ? value & 0xff : value > 255 ? 255 : value;
}

static inline uint64_t extract(uint64_t a, uint32_t b, uint32_t c, unsigned bits, bool is_signed)
{
    unsigned position = field_size(b, bits), length = field_size(c, bits);
    uint64_t sign = 0;
    if (is_signed && length) {
        unsigned last = position + length - 1 < bits - 1 ? position + length - 1 : bits - 1;
        sign = 0 - (a >> last & 1);
    }
    uint64_t field = position < bits ? a >> position : 0;
    unsigned kept = position >= bits ? 0 : bits - position < length ? bits - position : length;
    uint64_t mask = kept >= 64 ? UINT64_MAX : (UINT64_C(1) << kept) - 1;
    return length == 0 ? 0 : (field & mask) | (sign & ~mask);
}

static inline uint64_t insert(uint64_t a, uint64_t b, uint32_t c, uint32_t d, unsigned bits)
{
    unsigned position = field_size(c, bits), length = field_size(d, bits);
    if (position >= bits || length == 0)
        return b;
    if (length > bits - position)
        length = bits - position;
    uint64_t mask = (length >= 64 ? UINT64_MAX : (UINT64_C(1) << length) - 1) << position;
    return (b & ~mask) | (a << position & mask);
}

static inline uint32_t permute(uint32_t a, uint32_t b, uint32_t selector)
{
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned choice = selector >> 4 * i & 15;
        uint32_t byte = (uint32_t)(bytes >> 8 * (choice & 7) & 0xff);
        if (choice & 8)
            byte = byte & 0x80 ? 0xff : 0;
        result |= byte << 8 * i;
    }
    return result;
}

static inline uint32_t permute_mode(uint32_t a, uint32_t b, uint32_t c, unsigned mode)
{
    static const uint16_t selectors[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, /* f4e */
        {0x5670, 0x6701, 0x7012, 0x0123}, /* b4e */
        {0x0000, 0x1111, 0x2222, 0x3333}, /* rc8 */
        {0x3210, 0x3211, 0x3222, 0x3333}, /* ecl */
        {0x0000, 0x1110, 0x2210, 0x3210}, /* ecr */
        {0x1010, 0x3232, 0x1010, 0x3232}, /* rc16 */
    };
    return permute(a, b, selectors[mode][c & 3]);
}

static inline uint32_t funnel_left(uint32_t a, uint32_t b, uint32_t amount)
{
    return (uint32_t)(((uint64_t)b << 32 | a) << amount >> 32);
}

static inline uint32_t funnel_right(uint32_t a, uint32_t b, uint32_t amount)
{
    return (uint32_t)(((uint64_t)b << 32 | a) >> amount);
}

static inline uint32_t clamp_32(uint32_t amount)
{
    return amount > 32 ? 32 : amount;
}

static inline uint32_t logic_3(uint32_t a, uint32_t b, uint32_t c, uint32_t table)
{
    uint32_t result = 0;
    for (unsigned i = 0; i < 8; i++)
        if (table >> i & 1)
            result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return result;
}

static inline uint32_t dot_4(uint32_t a, uint32_t b, uint32_t c, bool a_signed, bool b_signed)
{
    for (unsigned i = 0; i < 4; i++) {
        int32_t x = a_signed ? (int8_t)(a >> 8 * i) : (int32_t)(a >> 8 * i & 0xff);
        int32_t y = b_signed ? (int8_t)(b >> 8 * i) : (int32_t)(b >> 8 * i & 0xff);
        c += (uint32_t)(x * y);
    }
    return c;
}

static inline uint32_t dot_2(uint32_t a, uint32_t b, uint32_t c, bool a_signed, bool b_signed, unsigned first)
{
    for (unsigned i = 0; i < 2; i++) {
        int64_t x = a_signed ? (int16_t)(a >> 16 * i) : (int64_t)(a >> 16 * i & 0xffff);
        int64_t y = b_signed ? (int8_t)(b >> 8 * (first + i)) : (int64_t)(b >> 8 * (first + i) & 0xff);
        c += (uint32_t)(x * y);
    }
    return c;
}

static inline int64_t extend_24(uint32_t a)
{
    return (int32_t)(a << 8) >> 8;
}

/* The position of the offset-th set bit from base on; all ones if there is none. */
static inline uint32_t find_nth(uint32_t mask, uint32_t base, int32_t offset)
{
    if (base > 31)
        return UINT32_MAX;
    if (offset == 0)
        return mask >> base & 1 ? base : UINT32_MAX;
    int step = offset > 0 ? 1 : -1, found = 0;
    for (int at = (int)base; at >= 0 && at < 32; at += step) {
        found += mask >> at & 1;
        if ((mask >> at & 1) && found == offset * step)
            return (uint32_t)at;
    }
    return UINT32_MAX;
}

static inline uint32_t bit_mask(uint32_t a, uint32_t b, bool wrap)
{
    uint32_t start = wrap ? a & 31 : a, width = wrap ? b & 31 : clamp_32(b);
    if (start > 31)
        return 0;
    uint32_t ones = width >= 32 ? UINT32_MAX : (1u << width) - 1;
    return ones << start;
}

static inline uint32_t extend_field(uint32_t a, uint32_t b, bool is_signed, bool wrap)
{
    uint32_t width = wrap ? b & 31 : clamp_32(b);
    if (width == 0)
        return 0;
    if (width == 32)
        return a;
    return is_signed ? (uint32_t)((int32_t)(a << (32 - width)) >> (32 - width)) : a & ((1u << width) - 1);
}

static inline uint32_t differ_4(uint32_t a, uint32_t b, bool is_signed, bool add, uint32_t c)
{
    uint32_t result = 0, sum = c;
    for (unsigned i = 0; i < 4; i++) {
        int32_t x = is_signed ? (int8_t)(a >> 8 * i) : (int32_t)(a >> 8 * i & 0xff);
        int32_t y = is_signed ? (int8_t)(b >> 8 * i) : (int32_t)(b >> 8 * i & 0xff);
        uint32_t d = (uint32_t)(x > y ? x - y : y - x);
        result |= (d & 0xff) << 8 * i;
        sum += d & 0xff;
    }
    return add ? sum : result;
}

/* The same operation for the widths that it has. */
#define WIDTHS_2(TWO, op, e) \
    TWO(op##_u16, "h:hh", u16, u16, u16, e) TWO(op##_u32, "w:ww", u32, u32, u32, e) \
    TWO(op##_u64, "q:qq", u64, u64, u64, e)
#define SIGNED_2(TWO, op, e) \
    TWO(op##_s16, "h:hh", s16, s16, s16, e) TWO(op##_s32, "w:ww", s32, s32, s32, e) \
    TWO(op##_s64, "q:qq", s64, s64, s64, e)

#define INTEGER_1(ONE) \
    ONE(neg_u16, "h:h", u16, u16, 0 - a) \
    ONE(neg_u32, "w:w", u32, u32, 0 - a) \
    ONE(neg_u64, "q:q", u64, u64, 0 - a) \
    ONE(abs_s16, "h:h", u16, s16, a < 0 ? 0 - (uint16_t)a : (uint16_t)a) \
    ONE(abs_s32, "w:w", u32, s32, a < 0 ? 0 - (uint32_t)a : (uint32_t)a) \
    ONE(abs_s64, "q:q", u64, s64, a < 0 ? 0 - (uint64_t)a : (uint64_t)a) \
    ONE(not_u16, "h:h", u16, u16, ~a) \
    ONE(not_u32, "w:w", u32, u32, ~a) \
    ONE(not_u64, "q:q", u64, u64, ~a) \
    ONE(cnot_u16, "h:h", u16, u16, a == 0) \
    ONE(cnot_u32, "w:w", u32, u32, a == 0) \
    ONE(cnot_u64, "q:q", u64, u64, a == 0) \
    ONE(popc_u32, "w:w", u32, u32, (uint32_t)__builtin_popcount(a)) \
    ONE(popc_u64, "w:q", u32, u64, (uint32_t)__builtin_popcountll(a)) \
    ONE(clz_u32, "w:w", u32, u32, a ? (uint32_t)__builtin_clz(a) : 32u) \
    ONE(clz_u64, "w:q", u32, u64, a ? (uint32_t)__builtin_clzll(a) : 64u) \
    ONE(brev_u32, "w:w", u32, u32, reverse_32(a)) \
    ONE(brev_u64, "q:q", u64, u64, reverse_64(a)) \
    ONE(bfind_u32, "w:w", u32, u32, find_64(a)) \
    ONE(bfind_s32, "w:w", u32, s32, find_64((uint32_t)(a < 0 ? ~a : a))) \
    ONE(bfind_u64, "w:q", u32, u64, find_64(a)) \
    ONE(bfind_s64, "w:q", u32, s64, find_64((uint64_t)(a < 0 ? ~a : a))) \
    ONE(bfind_shiftamt_u32, "w:w", u32, u32, find_shift(find_64(a), 31)) \
    ONE(bfind_shiftamt_s32, "w:w", u32, s32, find_shift(find_64((uint32_t)(a < 0 ? ~a : a)), 31)) \
    ONE(bfind_shiftamt_u64, "w:q", u32, u64, find_shift(find_64(a), 63)) \
    ONE(bfind_shiftamt_s64, "w:q", u32, s64, find_shift(find_64((uint64_t)(a < 0 ? ~a : a)), 63)) \
    ONE(mov_32, "w:w", u32, u32, a) \
    ONE(mov_64, "q:q", u64, u64, a) \
    ONE(low_64, "w:q", u32, u64, (uint32_t)a)

#define INTEGER_2(TWO) \
    WIDTHS_2(TWO, add, a + b) \
    WIDTHS_2(TWO, sub, a - b) \
    TWO(mul_lo_u16, "h:hh", u16, u16, u16, (uint32_t)a * b) \
    TWO(mul_lo_u32, "w:ww", u32, u32, u32, a * b) \
    TWO(mul_lo_u64, "q:qq", u64, u64, u64, a * b) \
    TWO(add_sat_s32, "w:ww", s32, s32, s32, saturate_s32((int64_t)a + b)) \
    TWO(sub_sat_s32, "w:ww", s32, s32, s32, saturate_s32((int64_t)a - b)) \
    TWO(mul_hi_u16, "h:hh", u16, u16, u16, (uint32_t)a * b >> 16) \
    TWO(mul_hi_s16, "h:hh", u16, s16, s16, (uint32_t)((int32_t)a * b) >> 16) \
    TWO(mul_hi_u32, "w:ww", u32, u32, u32, (uint64_t)a * b >> 32) \
    TWO(mul_hi_s32, "w:ww", u32, s32, s32, (uint64_t)((int64_t)a * b) >> 32) \
    TWO(mul_hi_u64, "q:qq", u64, u64, u64, mul_high_u64(a, b)) \
    TWO(mul_hi_s64, "q:qq", u64, s64, s64, mul_high_s64(a, b)) \
    TWO(mul_wide_u16, "w:hh", u32, u16, u16, (uint32_t)a * b) \
    TWO(mul_wide_s16, "w:hh", s32, s16, s16, (int32_t)a * b) \
    TWO(mul_wide_u32, "q:ww", u64, u32, u32, (uint64_t)a * b) \
    TWO(mul_wide_s32, "q:ww", s64, s32, s32, (int64_t)a * b) \
    WIDTHS_2(TWO, div, DIVIDE(a, b)) \
    TWO(div_s16, "h:hh", s16, s16, s16, DIVIDE_SIGNED(int16_t, a, b)) \
    TWO(div_s32, "w:ww", s32, s32, s32, DIVIDE_SIGNED(int32_t, a, b)) \
    TWO(div_s64, "q:qq", s64, s64, s64, DIVIDE_SIGNED(int64_t, a, b)) \
    WIDTHS_2(TWO, rem, REMAINDER(a, b)) \
    SIGNED_2(TWO, rem, REMAINDER_SIGNED(a, b)) \
    WIDTHS_2(TWO, min, a < b ? a : b) \
    SIGNED_2(TWO, min, a < b ? a : b) \
    WIDTHS_2(TWO, max, a > b ? a : b) \
    SIGNED_2(TWO, max, a > b ? a : b) \
    WIDTHS_2(TWO, and, a & b) \
    WIDTHS_2(TWO, or, a | b) \
    WIDTHS_2(TWO, xor, a ^ b) \
    TWO(shl_u16, "h:hw", u16, u16, u32, b > 15 ? 0 : (uint32_t)a << b) \
    TWO(shl_u32, "w:ww", u32, u32, u32, b > 31 ? 0 : a << b) \
    TWO(shl_u64, "q:qw", u64, u64, u32, b > 63 ? 0 : a << b) \
    TWO(shr_u16, "h:hw", u16, u16, u32, b > 15 ? 0 : a >> b) \
    TWO(shr_u32, "w:ww", u32, u32, u32, b > 31 ? 0 : a >> b) \
    TWO(shr_u64, "q:qw", u64, u64, u32, b > 63 ? 0 : a >> b) \
    TWO(shr_s16, "h:hw", s16, s16, u32, a >> (b > 15 ? 15 : b)) \
    TWO(shr_s32, "w:ww", s32, s32, u32, a >> (b > 31 ? 31 : b)) \
    TWO(shr_s64, "q:qw", s64, s64, u32, a >> (b > 63 ? 63 : b)) \
    TWO(mul24_lo_u32, "w:ww", u32, u32, u32, (uint64_t)(a & 0xffffff) * (b & 0xffffff)) \
    TWO(mul24_lo_s32, "w:ww", u32, u32, u32, (uint64_t)(extend_24(a) * extend_24(b))) \
    TWO(mul24_hi_u32, "w:ww", u32, u32, u32, (uint64_t)(a & 0xffffff) * (b & 0xffffff) >> 16) \
    TWO(mul24_hi_s32, "w:ww", u32, u32, u32, (uint64_t)(extend_24(a) * extend_24(b)) >> 16) \
    TWO(bmsk_clamp_u32, "w:ww", u32, u32, u32, bit_mask(a, b, false)) \
    TWO(bmsk_wrap_u32, "w:ww", u32, u32, u32, bit_mask(a, b, true)) \
    TWO(szext_clamp_u32, "w:ww", u32, u32, u32, extend_field(a, b, false, false)) \
    TWO(szext_clamp_s32, "w:ww", u32, u32, u32, extend_field(a, b, true, false)) \
    TWO(szext_wrap_u32, "w:ww", u32, u32, u32, extend_field(a, b, false, true)) \
    TWO(szext_wrap_s32, "w:ww", u32, u32, u32, extend_field(a, b, true, true))

/* Two numbers of 16 bits in a word; relu: nothing below zero. */
static inline uint32_t add_packed(uint32_t a, uint32_t b)
{
    return ((a + b) & 0xffff) | ((a & 0xffff0000u) + (b & 0xffff0000u));
}

static inline int32_t choose_s32(int32_t a, int32_t b, bool greatest, bool relu)
{
    int32_t chosen = (a > b) == greatest ? a : b;
    return relu && chosen < 0 ? 0 : chosen;
}

static inline uint32_t choose_packed(uint32_t a, uint32_t b, bool is_signed, bool greatest, bool relu)
{
    int32_t low = choose_s32(is_signed ? (int16_t)a : (int32_t)(a & 0xffff),
                             is_signed ? (int16_t)b : (int32_t)(b & 0xffff), greatest, relu);
    int32_t high = choose_s32(is_signed ? (int32_t)a >> 16 : (int32_t)(a >> 16),
                              is_signed ? (int32_t)b >> 16 : (int32_t)(b >> 16), greatest, relu);
    return ((uint32_t)low & 0xffff) | (uint32_t)high << 16;
}

#define PACKED_2(TWO) \
    TWO(add_u16x2, "w:ww", u32, u32, u32, add_packed(a, b)) \
    TWO(add_s16x2, "w:ww", u32, u32, u32, add_packed(a, b)) \
    TWO(min_u16x2, "w:ww", u32, u32, u32, choose_packed(a, b, false, false, false)) \
    TWO(max_u16x2, "w:ww", u32, u32, u32, choose_packed(a, b, false, true, false)) \
    TWO(min_s16x2, "w:ww", u32, u32, u32, choose_packed(a, b, true, false, false)) \
    TWO(max_s16x2, "w:ww", u32, u32, u32, choose_packed(a, b, true, true, false)) \
    TWO(min_s16x2_relu, "w:ww", u32, u32, u32, choose_packed(a, b, true, false, true)) \
    TWO(max_s16x2_relu, "w:ww", u32, u32, u32, choose_packed(a, b, true, true, true)) \
    TWO(min_s32_relu, "w:ww", s32, s32, s32, choose_s32(a, b, false, true)) \
    TWO(max_s32_relu, "w:ww", s32, s32, s32, choose_s32(a, b, true, true))

#define INTEGER_3(THREE) \
    THREE(mad_lo_u16, "h:hhh", u16, u16, u16, u16, (uint32_t)a * b + c) \
    THREE(mad_lo_u32, "w:www", u32, u32, u32, u32, a * b + c) \
    THREE(mad_lo_u64, "q:qqq", u64, u64, u64, u64, a * b + c) \
    THREE(mad_hi_u16, "h:hhh", u16, u16, u16, u16, ((uint32_t)a * b >> 16) + c) \
    THREE(mad_hi_s16, "h:hhh", u16, s16, s16, u16, ((uint32_t)((int32_t)a * b) >> 16) + c) \
    THREE(mad_hi_u32, "w:www", u32, u32, u32, u32, ((uint64_t)a * b >> 32) + c) \
    THREE(mad_hi_s32, "w:www", u32, s32, s32, u32, ((uint64_t)((int64_t)a * b) >> 32) + c) \
    THREE(mad_hi_u64, "q:qqq", u64, u64, u64, u64, mul_high_u64(a, b) + c) \
    THREE(mad_hi_s64, "q:qqq", u64, s64, s64, u64, mul_high_s64(a, b) + c) \
    THREE(mad_hi_sat_s32, "w:www", s32, s32, s32, s32, saturate_s32(((int64_t)a * b >> 32) + c)) \
    THREE(mad_wide_u16, "w:hhw", u32, u16, u16, u32, (uint32_t)a * b + c) \
    THREE(mad_wide_s16, "w:hhw", u32, s16, s16, u32, (uint32_t)((int32_t)a * b) + c) \
    THREE(mad_wide_u32, "q:wwq", u64, u32, u32, u64, (uint64_t)a * b + c) \
    THREE(mad_wide_s32, "q:wwq", u64, s32, s32, u64, (uint64_t)((int64_t)a * b) + c) \
    THREE(mad24_lo_u32, "w:www", u32, u32, u32, u32, (uint64_t)(a & 0xffffff) * (b & 0xffffff) + c) \
    THREE(mad24_lo_s32, "w:www", u32, u32, u32, u32, (uint64_t)(extend_24(a) * extend_24(b)) + c) \
    THREE(mad24_hi_u32, "w:www", u32, u32, u32, u32, ((uint64_t)(a & 0xffffff) * (b & 0xffffff) >> 16) + c) \
    THREE(mad24_hi_s32, "w:www", u32, u32, u32, u32, ((uint64_t)(extend_24(a) * extend_24(b)) >> 16) + c) \
    THREE(mad24_hi_sat_s32, "w:www", s32, u32, u32, s32, saturate_s32((extend_24(a) * extend_24(b) >> 16) + c)) \
    THREE(sad_u16, "h:hhh", u16, u16, u16, u16, c + (a > b ? a - b : b - a)) \
    THREE(sad_u32, "w:www", u32, u32, u32, u32, c + (a > b ? a - b : b - a)) \
    THREE(sad_u64, "q:qqq", u64, u64, u64, u64, c + (a > b ? a - b : b - a)) \
    THREE(sad_s16, "h:hhh", u16, s16, s16, u16, c + (a > b ? a - b : b - a)) \
    THREE(sad_s32, "w:www", u32, s32, s32, u32, c + (a > b ? (uint32_t)a - (uint32_t)b : (uint32_t)b - (uint32_t)a)) \
    THREE(sad_s64, "q:qqq", u64, s64, s64, u64, c + (a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a)) \
    THREE(bfe_u32, "w:www", u32, u32, u32, u32, extract(a, b, c, 32, false)) \
    THREE(bfe_s32, "w:www", u32, u32, u32, u32, extract(a, b, c, 32, true)) \
    THREE(bfe_u64, "q:qww", u64, u64, u32, u32, extract(a, b, c, 64, false)) \
    THREE(bfe_s64, "q:qww", u64, u64, u32, u32, extract(a, b, c, 64, true)) \
    THREE(prmt_u32, "w:www", u32, u32, u32, u32, permute(a, b, c)) \
    THREE(prmt_b32_f4e, "w:www", u32, u32, u32, u32, permute_mode(a, b, c, 0)) \
    THREE(prmt_b32_b4e, "w:www", u32, u32, u32, u32, permute_mode(a, b, c, 1)) \
    THREE(prmt_b32_rc8, "w:www", u32, u32, u32, u32, permute_mode(a, b, c, 2)) \
    THREE(prmt_b32_ecl, "w:www", u32, u32, u32, u32, permute_mode(a, b, c, 3)) \
    THREE(prmt_b32_ecr, "w:www", u32, u32, u32, u32, permute_mode(a, b, c, 4)) \
    THREE(prmt_b32_rc16, "w:www", u32, u32, u32, u32, permute_mode(a, b, c, 5)) \
    THREE(shf_l_wrap_u32, "w:www", u32, u32, u32, u32, funnel_left(a, b, c & 31)) \
    THREE(shf_r_wrap_u32, "w:www", u32, u32, u32, u32, funnel_right(a, b, c & 31)) \
    THREE(shf_l_clamp_u32, "w:www", u32, u32, u32, u32, funnel_left(a, b, clamp_32(c))) \
    THREE(shf_r_clamp_u32, "w:www", u32, u32, u32, u32, funnel_right(a, b, clamp_32(c))) \
    THREE(lop3_u32, "w:wwwi", u32, u32, u32, u32, logic_3(a, b, c, (uint32_t)instruction->immediate)) \
    THREE(dp4a_u32_u32, "w:www", u32, u32, u32, u32, dot_4(a, b, c, false, false)) \
    THREE(dp4a_u32_s32, "w:www", u32, u32, u32, u32, dot_4(a, b, c, false, true)) \
    THREE(dp4a_s32_u32, "w:www", u32, u32, u32, u32, dot_4(a, b, c, true, false)) \
    THREE(dp4a_s32_s32, "w:www", u32, u32, u32, u32, dot_4(a, b, c, true, true)) \
    THREE(dp2a_lo_u32_u32, "w:www", u32, u32, u32, u32, dot_2(a, b, c, false, false, 0)) \
    THREE(dp2a_lo_u32_s32, "w:www", u32, u32, u32, u32, dot_2(a, b, c, false, true, 0)) \
    THREE(dp2a_lo_s32_u32, "w:www", u32, u32, u32, u32, dot_2(a, b, c, true, false, 0)) \
    THREE(dp2a_lo_s32_s32, "w:www", u32, u32, u32, u32, dot_2(a, b, c, true, true, 0)) \
    THREE(dp2a_hi_u32_u32, "w:www", u32, u32, u32, u32, dot_2(a, b, c, false, false, 2)) \
    THREE(dp2a_hi_u32_s32, "w:www", u32, u32, u32, u32, dot_2(a, b, c, false, true, 2)) \
    THREE(dp2a_hi_s32_u32, "w:www", u32, u32, u32, u32, dot_2(a, b, c, true, false, 2)) \
    THREE(dp2a_hi_s32_s32, "w:www", u32, u32, u32, u32, dot_2(a, b, c, true, true, 2)) \
    THREE(fns_u32, "w:www", u32, u32, u32, s32, find_nth(a, b, c)) \
    THREE(vabsdiff4_u32_u32_u32, "w:www", u32, u32, u32, u32, differ_4(a, b, false, false, c)) \
    THREE(vabsdiff4_u32_u32_u32_add, "w:www", u32, u32, u32, u32, differ_4(a, b, false, true, c)) \
    THREE(vabsdiff4_u32_s32_s32, "w:www", u32, u32, u32, u32, differ_4(a, b, true, false, c)) \
    THREE(vabsdiff4_u32_s32_s32_add, "w:www", u32, u32, u32, u32, differ_4(a, b, true, true, c)) \
    THREE(vabsdiff4_s32_s32_s32_add, "w:www", u32, u32, u32, u32, differ_4(a, b, true, true, c))

#define DEFINE_1(name, signature, D, A, e) LANES_1(name, D, A, e)
#define DEFINE_2(name, signature, D, A, B, e) LANES_2(name, D, A, B, e)
#define DEFINE_3(name, signature, D, A, B, C, e) LANES_3(name, D, A, B, C, e)
#define ROW(name, signature, ...) {#name, handle_##name, signature},

INTEGER_1(DEFINE_1)
INTEGER_2(DEFINE_2)
PACKED_2(DEFINE_2)
INTEGER_3(DEFINE_3)

/* bfi takes four sources. */
#define INSERT(name, T, bits)                                                       \
    HANDLER(name)                                                                   \
    {                                                                               \
        LANES_BEGIN(T)                                                              \
        const COLUMN_##T *first = SOURCE(T, 1), *second = SOURCE(T, 2);             \
        const column_32 *third = SOURCE(u32, 3), *fourth = SOURCE(u32, 4);          \
        HDSOFT_EACH_LANE out[lane] =                                                \
            (COLUMN_##T)insert(first[lane], second[lane], third[lane], fourth[lane], bits); \
        LANES_END()                                                                 \
    }
INSERT(bfi_u32, u32, 32)
INSERT(bfi_u64, u64, 64)

/* Extended precision: sum and carry are expressions over a, b, c and the lane's carry flag `in`. */
#define CARRY(name, T, sources, sum, overflow, writes)                                                \
    HANDLER(name)                                                                                  \
    {                                                                                              \
        LANES_BEGIN(T)                                                                             \
        const COLUMN_##T *first = SOURCE(T, 1), *second = SOURCE(T, 2);                            \
        const COLUMN_##T *third = (sources) > 2 ? SOURCE(T, 3) : first;                            \
        uint32_t carries = 0;                                                                      \
        for (unsigned lane = 0; lane < HDSOFT_LANES; lane++) {                                     \
            VALUE_##T a = first[lane], b = second[lane], c = third[lane];                          \
            VALUE_##T in = warp->carry >> lane & 1;                                                \
            VALUE_##T result = (VALUE_##T)(sum);                                                   \
            carries |= (uint32_t)((overflow) != 0) << lane;                                           \
            (void)c, (void)in;                                                                     \
            out[lane] = result;                                                                    \
        }                                                                                          \
        if (writes)                                                                                \
            warp->carry = (warp->carry & ~warp->active) | (carries & warp->active);                \
        LANES_END()                                                                                \
    }
#define LOW_32 (a * b)
#define HIGH_32 ((uint32_t)((uint64_t)a * b >> 32))
#define LOW_64 (a * b)
#define HIGH_64 mul_high_u64(a, b)
#define HIGH_S32 ((uint32_t)((uint64_t)((int64_t)(int32_t)a * (int32_t)b) >> 32))
#define HIGH_S64 mul_high_s64((int64_t)a, (int64_t)b)

#define CARRY_FORMS(X) \
    X(add_cc_u32, "w:ww", u32, 2, a + b, result < a, 1) \
    X(addc_u32, "w:ww", u32, 2, a + b + in, 0, 0) \
    X(addc_cc_u32, "w:ww", u32, 2, a + b + in, result < a || (in && result == a), 1) \
    X(sub_cc_u32, "w:ww", u32, 2, a - b, a < b, 1) \
    X(subc_u32, "w:ww", u32, 2, a - b - in, 0, 0) \
    X(subc_cc_u32, "w:ww", u32, 2, a - b - in, a < b || (in && a == b), 1) \
    X(mad_lo_cc_u32, "w:www", u32, 3, LOW_32 + c, result < c, 1) \
    X(madc_lo_u32, "w:www", u32, 3, LOW_32 + c + in, 0, 0) \
    X(madc_lo_cc_u32, "w:www", u32, 3, LOW_32 + c + in, result < c || (in && result == c), 1) \
    X(mad_hi_cc_u32, "w:www", u32, 3, HIGH_32 + c, result < c, 1) \
    X(madc_hi_u32, "w:www", u32, 3, HIGH_32 + c + in, 0, 0) \
    X(madc_hi_cc_u32, "w:www", u32, 3, HIGH_32 + c + in, result < c || (in && result == c), 1) \
    X(mad_hi_cc_s32, "w:www", u32, 3, HIGH_S32 + c, result < c, 1) \
    X(madc_hi_s32, "w:www", u32, 3, HIGH_S32 + c + in, 0, 0) \
    X(madc_hi_cc_s32, "w:www", u32, 3, HIGH_S32 + c + in, result < c || (in && result == c), 1) \
    X(add_cc_u64, "q:qq", u64, 2, a + b, result < a, 1) \
    X(addc_u64, "q:qq", u64, 2, a + b + in, 0, 0) \
    X(addc_cc_u64, "q:qq", u64, 2, a + b + in, result < a || (in && result == a), 1) \
    X(sub_cc_u64, "q:qq", u64, 2, a - b, a < b, 1) \
    X(subc_u64, "q:qq", u64, 2, a - b - in, 0, 0) \
    X(subc_cc_u64, "q:qq", u64, 2, a - b - in, a < b || (in && a == b), 1) \
    X(mad_lo_cc_u64, "q:qqq", u64, 3, LOW_64 + c, result < c, 1) \
    X(madc_lo_u64, "q:qqq", u64, 3, LOW_64 + c + in, 0, 0) \
    X(madc_lo_cc_u64, "q:qqq", u64, 3, LOW_64 + c + in, result < c || (in && result == c), 1) \
    X(mad_hi_cc_u64, "q:qqq", u64, 3, HIGH_64 + c, result < c, 1) \
    X(madc_hi_u64, "q:qqq", u64, 3, HIGH_64 + c + in, 0, 0) \
    X(madc_hi_cc_u64, "q:qqq", u64, 3, HIGH_64 + c + in, result < c || (in && result == c), 1) \
    X(mad_hi_cc_s64, "q:qqq", u64, 3, HIGH_S64 + c, result < c, 1) \
    X(madc_hi_s64, "q:qqq", u64, 3, HIGH_S64 + c + in, 0, 0) \
    X(madc_hi_cc_s64, "q:qqq", u64, 3, HIGH_S64 + c + in, result < c || (in && result == c), 1)
#define DEFINE_CARRY(name, signature, T, sources, sum, carry, writes) CARRY(name, T, sources, sum, carry, writes)
CARRY_FORMS(DEFINE_CARRY)

extern const hdsoft_form HDSOFT_TABLE(integer)[];
const hdsoft_form HDSOFT_TABLE(integer)[] = {
    INTEGER_1(ROW) INTEGER_2(ROW) PACKED_2(ROW) INTEGER_3(ROW) CARRY_FORMS(ROW)
    {"bfi_u32", handle_bfi_u32, "w:wwww"},
    {"bfi_u64", handle_bfi_u64, "q:qqww"},
    {NULL, NULL, NULL},
};
