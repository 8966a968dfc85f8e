/* SPDX-License-Identifier: MIT */
/*
 * The drawn timeline of pipe --stats: a row a queue, time to the right, as introductions to CUDA streams draw it, but
 * from measured times.
 */
#ifndef HDJIT_TIMELINE_H
#define HDJIT_TIMELINE_H

#include <stdint.h>
#include <stdio.h>

enum timeline_row {
    ROW_COPY_IN,
    ROW_KERNEL,
    ROW_COPY_OUT,
    ROW_COUNT,
};

/* A batch's way through the queues, in nanoseconds from a common beginning. */
typedef struct timeline_batch {
    uint64_t number;
    int64_t start[ROW_COUNT], end[ROW_COUNT];
} timeline_batch;

/* Draws `count` batches, at least one. Each is drawn with the last digit of its number. */
void timeline_draw(FILE *file, const timeline_batch *batches, uint32_t count);

#endif
