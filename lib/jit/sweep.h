/* SPDX-License-Identifier: MIT */
/*
 * Work on a cache's folder as a whole: walking over its files, and removing what was not used for longest. Safe beside
 * any number of readers and writers: names are removed, never contents, and who has a file open keeps it.
 */
#ifndef HDRT_JIT_SWEEP_H
#define HDRT_JIT_SWEEP_H

#include <hdrt.h>

#include "jit/folder.h"
#include "jit/store.h"

/* A file in a folder of shards. */
typedef struct hdrt__swept {
    int shard;          /* descriptor of its folder */
    char shard_name[3];
    const char *name;   /* in it */
    hdrt_cache_kind kind;
    bool regular;
    uint64_t bytes, used_ns;
} hdrt__swept;

/* false ends the walk. */
typedef bool (*hdrt__sweep_visitor)(void *context, const hdrt__swept *file);

/* Every file of the folders that entries are in. HDRT_OK, also without a folder; HDRT_ERROR_IO  one cannot be listed. */
hdrt_status hdrt__sweep_walk(int root, hdrt__folder_use use, hdrt__sweep_visitor visitor, void *context);

/*
 * Remove files until the rest is at most `limit_bytes`, those not used for `max_age_s` (0: any age), and temporary
 * files that nobody is writing. HDRT_OK, HDRT_ERROR_IO, HDRT_ERROR_OUT_OF_MEMORY.
 */
hdrt_status hdrt__sweep_trim(int root, uint64_t limit_bytes, uint64_t max_age_s, hdrt_cache_summary *out_summary);

/* What killed writers left in a folder of entries, an hour ago or earlier. Looks at a bounded number of names. */
void hdrt__sweep_leftovers(int shard);

/* Remove everything that libhdrt made. */
hdrt_status hdrt__sweep_clear(int root, hdrt_cache_summary *out_summary);

/*
 * The folder's size is kept in a file of its own, which is only an estimate: a killed writer's share is lost, and an
 * entry that is replaced counts twice until the next count.
 */
typedef enum hdrt__sweep_account_result {
    HDRT__SWEEP_ACCOUNTED,
    HDRT__SWEEP_BUSY, /* another is at it, or it cannot be written: add these bytes to the next ones */
    HDRT__SWEEP_FULL, /* above the limit, or not known: make room */
} hdrt__sweep_account_result;

hdrt__sweep_account_result hdrt__sweep_account(int root, uint64_t bytes, uint64_t limit_bytes);

/* Trims to `target_bytes` unless another is at it, and corrects the account; how many entries were removed. */
uint64_t hdrt__sweep_make_room(int root, uint64_t target_bytes);
#define HDRT__SWEEP_THREE_QUARTERS UINT64_MAX /* as target: of what there is */

#endif
