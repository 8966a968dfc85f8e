/* SPDX-License-Identifier: MIT */
#include "queue/template_cut.h"

/* A loop that breaks off sooner than this may be chance. */
#define LOOP_LEAST 16u
/* Content decides where to cut from here on. */
#define PIECE_LEAST 32u

/* The longest beginning that is a loop of two rounds or more. */
typedef struct loop {
    uint32_t length, period; /* 0: there is none */
} loop;

/* By the failure function of Knuth, Morris and Pratt, which gives the smallest period of every beginning. */
static loop find_loop(const hdrt__run_launch *launches, uint32_t count)
{
    uint32_t border[HDRT__TEMPLATE_CHAIN_LIMIT + 1]; /* of the first i launches */
    loop found = {0, 0};
    border[0] = border[1] = 0;
    for (uint32_t i = 1; i < count; i++) {
        uint32_t b = border[i];
        while (b && launches[b].kernel != launches[i].kernel) {
            b = border[b];
        }
        b += launches[b].kernel == launches[i].kernel;
        border[i + 1] = b;
        if (2 * (i + 1 - b) <= i + 1) {
            found = (loop){i + 1, i + 1 - b};
        }
    }
    return found;
}

static uint32_t cut_loop(loop found)
{
    uint32_t most = HDRT__TEMPLATE_CHAIN_LIMIT / found.period * found.period;
    if (most <= found.length) {
        return most;
    }
    uint32_t size = found.period;
    while (size * 2 <= found.length) {
        size *= 2;
    }
    return size;
}

/* Behind the two kernels whose hash is the largest in reach. */
static uint32_t cut_piece(const hdrt__run_launch *launches, uint32_t count)
{
    uint32_t size = count;
    uint64_t largest = 0;
    for (uint32_t i = PIECE_LEAST; i <= count; i++) {
        uint64_t hash = hdrt__template_hash(
            hdrt__template_hash(HDRT__TEMPLATE_HASH_START, launches[i - 2].kernel), launches[i - 1].kernel);
        if (hash > largest) {
            largest = hash;
            size = i;
        }
    }
    return size;
}

uint32_t hdrt__template_cut(const hdrt__run_launch *launches, uint32_t count, bool more)
{
    loop found = find_loop(launches, count);
    if (found.period && (found.length == count || found.length >= LOOP_LEAST)) {
        return cut_loop(found);
    }
    return more && count > PIECE_LEAST ? cut_piece(launches, count) : count;
}
