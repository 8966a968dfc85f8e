/* SPDX-License-Identifier: MIT */
/*
 * Counters of the kernel cache: of one jit, in memory, and of a folder, in a file that jits add theirs to when they
 * end. The file is only an account: whoever cannot lock it soon drops its share.
 */
#ifndef HDRT_JIT_STATS_H
#define HDRT_JIT_STATS_H

#include <stdatomic.h>

#include <hdrt.h>

typedef enum hdrt__stat {
    HDRT__STAT_MEMORY_HITS,
    HDRT__STAT_DISK_HITS,
    HDRT__STAT_READ_ONLY_HITS,
    HDRT__STAT_SHARED_COMPILES,
    HDRT__STAT_COMPILES,
    HDRT__STAT_COMPILE_NS,
    HDRT__STAT_STORED,
    HDRT__STAT_NOT_CACHEABLE,
    HDRT__STAT_STORE_FAILURES,
    HDRT__STAT_EVICTED,
    HDRT__STAT_MISSES = 16, /* and HDRT_CACHE_REASON_LIMIT of them */
    HDRT__STAT_COUNT = HDRT__STAT_MISSES + HDRT_CACHE_REASON_LIMIT,
} hdrt__stat;

typedef struct hdrt__stats {
    _Atomic uint64_t values[HDRT__STAT_COUNT];
} hdrt__stats;

static inline void hdrt__stats_count(hdrt__stats *stats, unsigned stat, uint64_t amount)
{
    atomic_fetch_add_explicit(&stats->values[stat], amount, memory_order_relaxed);
}

void hdrt__stats_get(const hdrt__stats *stats, uint64_t values[HDRT__STAT_COUNT]);
void hdrt__stats_fill(const uint64_t values[HDRT__STAT_COUNT], hdrt_cache_stats *out);

/* The folder's, zeros if there are none. `root` as hdrt__store_root gives it; -1 accepted. */
void hdrt__stats_read(int root, uint64_t values[HDRT__STAT_COUNT]);
/* Adds to the folder's; `values` NULL: sets them to zero. */
void hdrt__stats_merge(int root, const uint64_t values[HDRT__STAT_COUNT]);

#endif
