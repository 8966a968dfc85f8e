/* SPDX-License-Identifier: MIT */
#include "timeline.h"

#include <string.h>

#define COLUMNS 72

/* The column in which a moment falls, inside the drawing. */
static int column(int64_t moment, int64_t begin, int64_t span)
{
    double place = (double)(moment - begin) * COLUMNS / (double)span;

    return place < 0 ? 0 : place >= COLUMNS ? COLUMNS - 1 : (int)place;
}

static void draw_row(char row[COLUMNS + 1], const timeline_batch *batches, uint32_t count, enum timeline_row which,
                     int64_t begin, int64_t span)
{
    int next = 0;

    memset(row, ' ', COLUMNS);
    row[COLUMNS] = 0;
    for (uint32_t i = 0; i < count; i++) {
        int first = column(batches[i].start[which], begin, span), last = column(batches[i].end[which], begin, span);
        int most = COLUMNS - (int)(count - i); /* the batches behind it need a column each */

        /*
         * The end is the first moment after: no column of its own. But each batch has at least one, and where several
         * are shorter than a column they stand side by side: the batches of a queue never overlap.
         */
        if (last > first)
            last--;
        if (first < next)
            first = next;
        if (last < first)
            last = first;
        first = first < most ? first : most;
        last = last < most ? last : most;
        for (int c = first; c <= last; c++)
            row[c] = (char)('0' + batches[i].number % 10);
        next = last + 1;
    }
}

void timeline_draw(FILE *file, const timeline_batch *batches, uint32_t count)
{
    static const char *const names[ROW_COUNT] = {"copy in", "kernel", "copy out"};
    int64_t begin = batches[0].start[0], end = batches[0].end[0];
    char row[COLUMNS + 1];

    for (uint32_t i = 0; i < count; i++)
        for (int r = 0; r < ROW_COUNT; r++) {
            begin = batches[i].start[r] < begin ? batches[i].start[r] : begin;
            end = batches[i].end[r] > end ? batches[i].end[r] : end;
        }
    if (end <= begin)
        end = begin + 1;
    fprintf(file, "timeline of batches %llu to %llu, a digit a batch, %d columns are %.3f ms\n",
            (unsigned long long)batches[0].number, (unsigned long long)batches[count - 1].number, COLUMNS,
            (double)(end - begin) / 1e6);
    for (int r = 0; r < ROW_COUNT; r++) {
        draw_row(row, batches, count, (enum timeline_row)r, begin, end - begin);
        fprintf(file, "  %-8s |%s|\n", names[r], row);
    }
}
