/* SPDX-License-Identifier: MIT */
/*
 * Where a run of kernels is cut into templates, from the sequence of kernels alone: the same content must be cut at the
 * same places each time it comes, or nothing is ever found again. Pure functions, called by the template cache.
 *
 *   a loop      whole periods: as many as fit in a template, so that the next cut has the same phase
 *   its rest    a period times a power of two
 *   no loop     all of a short run that ends; of a longer one a piece that ends where the content says, so that a loop
 *               too long for a template is soon cut at the same places each time round
 */
#ifndef HDRT_QUEUE_TEMPLATE_CUT_H
#define HDRT_QUEUE_TEMPLATE_CUT_H

#include "queue/template.h"

/* A hash of a growing sequence; what a sequence is found by is its key. */
#define HDRT__TEMPLATE_HASH_START UINT64_C(0x243f6a8885a308d3)

static inline uint64_t hdrt__template_hash(uint64_t hash, const hdrt_kernel *kernel)
{
    hash = (hash ^ (uintptr_t)kernel) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* `kind`: of hdrt__template_kind. */
static inline uint64_t hdrt__template_key(uint64_t hash, uint32_t count, uint32_t kind)
{
    hash = (hash + count * 4u + kind) * UINT64_C(0xd6e8feb86659fd93);
    hash ^= hash >> 32;
    return hash ? hash : 1; /* 0 is a free place in the tables */
}

/* How many of the first `count` (1 to HDRT__TEMPLATE_CHAIN_LIMIT) launches make the next template. */
uint32_t hdrt__template_cut(const hdrt__run_launch *launches, uint32_t count, bool more);

#endif
