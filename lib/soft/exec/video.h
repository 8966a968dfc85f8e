/* SPDX-License-Identifier: MIT */
/* The scalar video instructions, as the decoder tells the handler of them: it all fits an instruction's immediate. */
#ifndef HDSOFT_VIDEO_H
#define HDSOFT_VIDEO_H

#include <stdint.h>
#include <string.h>

typedef enum hdsoft_video_operation {
    HDSOFT_VIDEO_ADD,
    HDSOFT_VIDEO_SUB,
    HDSOFT_VIDEO_ABSDIFF,
    HDSOFT_VIDEO_MIN,
    HDSOFT_VIDEO_MAX,
    HDSOFT_VIDEO_SHL,
    HDSOFT_VIDEO_SHR,
    HDSOFT_VIDEO_MAD,
    HDSOFT_VIDEO_SET,
} hdsoft_video_operation;

/* Part of a register: all of it, a byte, a half. */
enum { HDSOFT_PART_WORD, HDSOFT_PART_BYTE_0, HDSOFT_PART_HALF_0 = 5 };
/* What c is for: nothing, a second operation, what the result is put into. */
enum { HDSOFT_VIDEO_ALONE, HDSOFT_VIDEO_THEN_ADD, HDSOFT_VIDEO_THEN_MIN, HDSOFT_VIDEO_THEN_MAX, HDSOFT_VIDEO_MERGE };

typedef struct hdsoft_video {
    uint64_t operation : 4;
    uint64_t to_part : 3, first_part : 3, second_part : 3;
    uint64_t to_signed : 1, first_signed : 1, second_signed : 1;
    uint64_t saturate : 1, clamp : 1;
    uint64_t then : 3;
    uint64_t relation : 3;          /* eq, ne, lt, le, gt, ge */
    uint64_t scale : 4;             /* vmad: right shift of the sum */
    uint64_t plus_one : 1, negate_product : 1, negate_third : 1;
} hdsoft_video;

_Static_assert(sizeof(hdsoft_video) == sizeof(int64_t), "an instruction's immediate holds it");

#endif
