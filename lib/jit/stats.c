/* SPDX-License-Identifier: MIT */
#include "jit/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"
#include "jit/folder.h"
#include "jit/store.h"

#define LOCK_ATTEMPTS 20
#define LOCK_PAUSE_NS 1000000

/* The file: the numbers in this machine's order, and a digest, so that one written by halves counts as none. */
struct account {
    uint64_t values[HDRT__STAT_COUNT];
    hdrt__digest digest;
};

void hdrt__stats_get(const hdrt__stats *stats, uint64_t values[HDRT__STAT_COUNT])
{
    for (unsigned i = 0; i < HDRT__STAT_COUNT; i++)
        values[i] = atomic_load_explicit(&stats->values[i], memory_order_relaxed);
}

void hdrt__stats_fill(const uint64_t values[HDRT__STAT_COUNT], hdrt_cache_stats *out)
{
    *out = (hdrt_cache_stats){
        .size = sizeof(*out),
        .memory_hits = values[HDRT__STAT_MEMORY_HITS],
        .disk_hits = values[HDRT__STAT_DISK_HITS],
        .read_only_hits = values[HDRT__STAT_READ_ONLY_HITS],
        .shared_compiles = values[HDRT__STAT_SHARED_COMPILES],
        .compiles = values[HDRT__STAT_COMPILES],
        .compile_ns = values[HDRT__STAT_COMPILE_NS],
        .stored = values[HDRT__STAT_STORED],
        .not_cacheable = values[HDRT__STAT_NOT_CACHEABLE],
        .store_failures = values[HDRT__STAT_STORE_FAILURES],
        .evicted = values[HDRT__STAT_EVICTED],
    };
    memcpy(out->misses, &values[HDRT__STAT_MISSES], sizeof(out->misses));
}

static int open_account(int root, bool make)
{
    struct stat status;
    int flags = (make ? O_RDWR | O_CREAT : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int file = root < 0 ? -1 : openat(root, HDRT__STORE_STATS, flags, 0600);
    if (file >= 0 && (fstat(file, &status) != 0 || !hdrt__file_is_ours(&status, HDRT__FOLDER_READ))) {
        close(file);
        file = -1;
    }
    return file;
}

static void read_account(int file, uint64_t values[HDRT__STAT_COUNT])
{
    struct account account;
    memset(values, 0, sizeof(account.values));
    if (!hdrt__file_get(file, &account, sizeof(account)))
        return;
    hdrt__digest digest = hdrt__digest_of(account.values, sizeof(account.values));
    if (hdrt__digest_equal(&digest, &account.digest))
        memcpy(values, account.values, sizeof(account.values));
}

void hdrt__stats_read(int root, uint64_t values[HDRT__STAT_COUNT])
{
    memset(values, 0, HDRT__STAT_COUNT * sizeof(*values));
    int file = open_account(root, false);
    if (file < 0)
        return;
    read_account(file, values);
    close(file);
}

static bool lock(int file)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
    for (unsigned i = 0; i < LOCK_ATTEMPTS; i++) {
        if (flock(file, LOCK_EX | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK)
            return false;
        nanosleep(&pause, NULL);
    }
    return false;
}

void hdrt__stats_merge(int root, const uint64_t values[HDRT__STAT_COUNT])
{
    struct account account;
    int file = open_account(root, true);
    if (file < 0)
        return;
    if (lock(file)) {
        read_account(file, account.values);
        for (unsigned i = 0; i < HDRT__STAT_COUNT; i++)
            account.values[i] = values ? account.values[i] + values[i] : 0;
        account.digest = hdrt__digest_of(account.values, sizeof(account.values));
        if (lseek(file, 0, SEEK_SET) == 0)
            hdrt__file_put(file, &account, sizeof(account));
    }
    close(file);
}
