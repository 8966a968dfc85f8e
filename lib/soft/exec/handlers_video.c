/* SPDX-License-Identifier: MIT */
/* vadd, vsub, vabsdiff, vmin, vmax, vshl, vshr, vmad and vset: parts of registers, saturated, and a second operation or
 * a merge with the third operand. Hardware since sm_50 has no unit for most of them, so speed is nobody's concern. */
#include "soft/exec/control.h"
#include "soft/exec/video.h"
#include "soft/exec/warp.h"

static int64_t part_of(uint32_t word, unsigned part, bool is_signed)
{
    if (part == HDSOFT_PART_WORD)
        return is_signed ? (int64_t)(int32_t)word : (int64_t)word;
    if (part >= HDSOFT_PART_HALF_0) {
        uint16_t half = (uint16_t)(word >> 16 * (part - HDSOFT_PART_HALF_0));
        return is_signed ? (int64_t)(int16_t)half : (int64_t)half;
    }
    uint8_t byte = (uint8_t)(word >> 8 * (part - HDSOFT_PART_BYTE_0));
    return is_signed ? (int64_t)(int8_t)byte : (int64_t)byte;
}

static unsigned bits_of_part(unsigned part)
{
    return part == HDSOFT_PART_WORD ? 32 : part >= HDSOFT_PART_HALF_0 ? 16 : 8;
}

static __int128 clamp(__int128 value, unsigned bits, bool is_signed)
{
    __int128 lowest = is_signed ? -((__int128)1 << (bits - 1)) : 0;
    __int128 highest = ((__int128)1 << (bits - is_signed)) - 1;
    return value < lowest ? lowest : value > highest ? highest : value;
}

static bool holds(unsigned relation, int64_t a, int64_t b)
{
    bool results[] = {a == b, a != b, a < b, a <= b, a > b, a >= b};
    return relation < sizeof results && results[relation];
}

static __int128 multiply_add(hdsoft_video how, int64_t a, int64_t b, uint32_t third)
{
    bool is_signed = how.first_signed || how.second_signed || how.negate_product || how.negate_third;
    __int128 product = (__int128)a * b, c = is_signed ? (int64_t)(int32_t)third : (int64_t)third;
    __int128 sum = (how.negate_product ? -product : product) + (how.negate_third ? -c : c) + (int)how.plus_one;
    sum >>= how.scale;
    return how.saturate ? clamp(sum, 32, is_signed) : sum;
}

static __int128 first_step(hdsoft_video how, int64_t a, int64_t b, uint32_t third)
{
    unsigned distance = how.clamp ? (b > 32 ? 32u : (unsigned)b) : (unsigned)b & 31;
    switch (how.operation) {
    case HDSOFT_VIDEO_ADD:
        return (__int128)a + b;
    case HDSOFT_VIDEO_SUB:
        return (__int128)a - b;
    case HDSOFT_VIDEO_ABSDIFF:
        return a > b ? a - b : b - a;
    case HDSOFT_VIDEO_MIN:
        return a < b ? a : b;
    case HDSOFT_VIDEO_MAX:
        return a > b ? a : b;
    case HDSOFT_VIDEO_SHL:
        return (__int128)a * ((__int128)1 << distance);
    case HDSOFT_VIDEO_SHR:
        return a >> distance;
    case HDSOFT_VIDEO_SET:
        return holds(how.relation, a, b);
    default:
        return multiply_add(how, a, b, third);
    }
}

static uint32_t second_step(hdsoft_video how, uint32_t result, uint32_t third)
{
    bool less = how.to_signed ? (int32_t)result < (int32_t)third : result < third;
    unsigned bits = bits_of_part(how.to_part);
    unsigned shift = how.to_part == HDSOFT_PART_WORD         ? 0
                     : how.to_part >= HDSOFT_PART_HALF_0 ? 16 * (how.to_part - HDSOFT_PART_HALF_0)
                                                         : 8 * (how.to_part - HDSOFT_PART_BYTE_0);
    uint32_t mask = (uint32_t)(((UINT64_C(1) << bits) - 1) << shift);
    switch (how.then) {
    case HDSOFT_VIDEO_THEN_ADD:
        return result + third;
    case HDSOFT_VIDEO_THEN_MIN:
        return less ? result : third;
    case HDSOFT_VIDEO_THEN_MAX:
        return less ? third : result;
    case HDSOFT_VIDEO_MERGE:
        return (third & ~mask) | (result << shift & mask);
    default:
        return result;
    }
}

static const hdsoft_instruction *handle_video(hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    hdsoft_video how;
    memcpy(&how, &instruction->immediate, sizeof how);
    uint32_t *to = (uint32_t *)(void *)(warp->frame + instruction->operand[0]);
    const uint32_t *first = hdsoft_source(warp, instruction->operand[1]);
    const uint32_t *second = hdsoft_source(warp, instruction->operand[2]);
    const uint32_t *third = hdsoft_source(warp, instruction->operand[3]);
    for (uint32_t rest = warp->active; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint32_t c = third[lane];
        __int128 result = first_step(how, part_of(first[lane], how.first_part, how.first_signed),
                                     part_of(second[lane], how.second_part, how.second_signed), c);
        if (how.saturate && how.operation != HDSOFT_VIDEO_MAD)
            result = clamp(result, bits_of_part(how.to_part), how.to_signed);
        to[lane] = second_step(how, (uint32_t)result, c);
    }
    return instruction + 1;
}

const hdsoft_form hdsoft_forms_video[] = {
    {"video", handle_video, "w:www"},
    {NULL, NULL, NULL},
};
