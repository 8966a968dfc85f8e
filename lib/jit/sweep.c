/* SPDX-License-Identifier: MIT */
#include "jit/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"

#define STALE_SECONDS (24 * 3600)
#define LEFTOVER_SECONDS 3600
#define LEFTOVERS_LOOKED_AT 256
#define QUARANTINE_SECONDS (7 * 24 * 3600)
#define ENTRY_NAME_SIZE (2 * HDRT__DIGEST_SIZE - 2 + 2) /* hex digits, a dot, a letter */
#define SECOND UINT64_C(1000000000)

/* ---- walking ---------------------------------------------------------------------------------------------------- */

static bool hex_only(const char *text, size_t size)
{
    return strspn(text, "0123456789abcdef") >= size;
}

static hdrt_cache_kind kind_of(const char *name)
{
    if (strncmp(name, HDRT__STORE_TEMPORARY, strlen(HDRT__STORE_TEMPORARY)) == 0)
        return HDRT_CACHE_TEMPORARY;
    if (strlen(name) != ENTRY_NAME_SIZE || !hex_only(name, ENTRY_NAME_SIZE - 2) || name[ENTRY_NAME_SIZE - 2] != '.')
        return HDRT_CACHE_OTHER;
    switch ((hdrt__entry_kind)name[ENTRY_NAME_SIZE - 1]) {
    case HDRT__ENTRY_IMAGE: return HDRT_CACHE_IMAGE;
    case HDRT__ENTRY_MANIFEST: return HDRT_CACHE_MANIFEST;
    case HDRT__ENTRY_NAMES: return HDRT_CACHE_NAMES;
    case HDRT__ENTRY_MEMO: return HDRT_CACHE_MEMO;
    case HDRT__ENTRY_QUARANTINE: return HDRT_CACHE_QUARANTINE;
    }
    return HDRT_CACHE_OTHER;
}

/* A stream of its own over an opened folder. */
static DIR *list(int folder)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy >= 0 ? fdopendir(copy) : NULL;
    if (!stream && copy >= 0)
        close(copy);
    return stream;
}

static hdrt_status cannot_list(void)
{
    return hdrt__fail(HDRT_ERROR_IO, "cannot list the kernel cache: %s", strerrordesc_np(errno));
}

static hdrt_status walk_shard(int shard, const char *shard_name, hdrt__sweep_visitor visitor, void *context, bool *go_on)
{
    DIR *stream = list(shard);
    if (!stream)
        return cannot_list();
    struct dirent *entry;
    while (*go_on && (entry = readdir(stream))) {
        struct stat status;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(shard, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        hdrt__swept file = {.shard = shard,
                            .name = entry->d_name,
                            .kind = kind_of(entry->d_name),
                            .regular = S_ISREG(status.st_mode),
                            .bytes = (uint64_t)status.st_size,
                            .used_ns = (uint64_t)status.st_mtim.tv_sec * SECOND + (uint64_t)status.st_mtim.tv_nsec};
        memcpy(file.shard_name, shard_name, 3);
        *go_on = visitor(context, &file);
    }
    closedir(stream);
    return HDRT_OK;
}

hdrt_status hdrt__sweep_walk(int root, hdrt__folder_use use, hdrt__sweep_visitor visitor, void *context)
{
    hdrt_status status = HDRT_OK;
    bool go_on = true;
    DIR *stream = root >= 0 ? list(root) : NULL;
    if (root >= 0 && !stream)
        return cannot_list();
    struct dirent *entry;
    while (stream && status == HDRT_OK && go_on && (entry = readdir(stream))) {
        const char *why;
        if (strlen(entry->d_name) != 2 || !hex_only(entry->d_name, 2))
            continue;
        int shard = hdrt__folder_open(root, entry->d_name, use, &why);
        if (shard < 0)
            continue;
        status = walk_shard(shard, entry->d_name, visitor, context, &go_on);
        close(shard);
    }
    if (stream)
        closedir(stream);
    return status;
}

/* ---- removing --------------------------------------------------------------------------------------------------- */

struct kept {
    uint64_t bytes, used_ns;
    char shard[3], name[ENTRY_NAME_SIZE + 1];
};

struct trim {
    struct kept *files;
    size_t count, capacity;
    uint64_t now_ns, max_age_s, bytes;
    hdrt_cache_summary *summary;
    bool out_of_memory;
};

static bool older(const struct trim *trim, const hdrt__swept *file, uint64_t seconds)
{
    return file->used_ns + seconds * SECOND < trim->now_ns;
}

static void remove_file(struct trim *trim, int shard, const char *name, uint64_t bytes)
{
    if (unlinkat(shard, name, 0) != 0)
        return;
    trim->summary->removed_files++;
    trim->summary->removed_bytes += bytes;
}

/*
 * Remove a temporary file if its writer is gone, who holds a lock as long as he writes. Our own lock is held until it is
 * removed: a writer who has just made it finds that out.
 */
static void remove_abandoned(struct trim *trim, const hdrt__swept *temporary)
{
    int file = openat(temporary->shard, temporary->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return;
    bool free_of_locks = flock(file, LOCK_EX | LOCK_NB) == 0;
    bool unknown = !free_of_locks && errno != EWOULDBLOCK;
    if (free_of_locks || (unknown && older(trim, temporary, STALE_SECONDS)))
        remove_file(trim, temporary->shard, temporary->name, temporary->bytes);
    close(file);
}

static bool keep(struct trim *trim, const hdrt__swept *file)
{
    if (trim->count == trim->capacity) {
        size_t capacity = trim->capacity ? trim->capacity * 2 : 256;
        struct kept *bigger = reallocarray(trim->files, capacity, sizeof(*bigger));
        if (!bigger)
            return false;
        trim->files = bigger;
        trim->capacity = capacity;
    }
    struct kept *kept = &trim->files[trim->count++];
    *kept = (struct kept){.bytes = file->bytes, .used_ns = file->used_ns};
    memcpy(kept->shard, file->shard_name, 3);
    memcpy(kept->name, file->name, ENTRY_NAME_SIZE + 1);
    trim->bytes += file->bytes;
    return true;
}

static bool look_at(void *context, const hdrt__swept *file)
{
    struct trim *trim = context;
    if (!file->regular || file->kind == HDRT_CACHE_OTHER)
        return true;
    trim->summary->files++;
    trim->summary->bytes += file->bytes;
    if (file->kind == HDRT_CACHE_TEMPORARY) {
        remove_abandoned(trim, file);
    } else if ((trim->max_age_s && older(trim, file, trim->max_age_s)) ||
               (file->kind == HDRT_CACHE_QUARANTINE && older(trim, file, QUARANTINE_SECONDS))) {
        remove_file(trim, file->shard, file->name, file->bytes);
    } else {
        trim->out_of_memory = !keep(trim, file);
    }
    return !trim->out_of_memory;
}

static int by_use(const void *left, const void *right)
{
    const struct kept *a = left, *b = right;
    return a->used_ns < b->used_ns ? -1 : a->used_ns > b->used_ns;
}

static hdrt_status trim_to(int root, uint64_t limit_bytes, uint64_t max_age_s, hdrt_cache_summary *summary,
                           uint64_t *out_left)
{
    struct trim trim = {.now_ns = (uint64_t)time(NULL) * SECOND, .max_age_s = max_age_s, .summary = summary};
    hdrt_status status = hdrt__sweep_walk(root, HDRT__FOLDER_READ, look_at, &trim);
    if (trim.out_of_memory)
        status = hdrt__fail_memory(trim.count * sizeof(*trim.files), "the list of cache entries");
    if (limit_bytes == HDRT__SWEEP_THREE_QUARTERS)
        limit_bytes = trim.bytes / 4 * 3;
    if (status == HDRT_OK && trim.bytes > limit_bytes)
        qsort(trim.files, trim.count, sizeof(*trim.files), by_use);
    for (size_t i = 0; status == HDRT_OK && i < trim.count && trim.bytes > limit_bytes; i++) {
        const char *why;
        int shard = hdrt__folder_open(root, trim.files[i].shard, HDRT__FOLDER_READ, &why);
        if (shard < 0)
            continue;
        remove_file(&trim, shard, trim.files[i].name, trim.files[i].bytes);
        trim.bytes -= trim.files[i].bytes;
        close(shard);
    }
    free(trim.files);
    *out_left = trim.bytes;
    return status;
}

void hdrt__sweep_leftovers(int shard)
{
    hdrt_cache_summary summary = HDRT_CACHE_SUMMARY_INIT;
    struct trim trim = {.now_ns = (uint64_t)time(NULL) * SECOND, .summary = &summary};
    DIR *stream = list(shard);
    struct dirent *entry;
    for (unsigned i = 0; stream && i < LEFTOVERS_LOOKED_AT && (entry = readdir(stream)); i++) {
        hdrt__swept file = {.shard = shard, .name = entry->d_name, .kind = kind_of(entry->d_name)};
        struct stat status;
        if (file.kind != HDRT_CACHE_TEMPORARY || fstatat(shard, file.name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode))
            continue;
        file.used_ns = (uint64_t)status.st_mtim.tv_sec * SECOND;
        if (older(&trim, &file, LEFTOVER_SECONDS))
            remove_abandoned(&trim, &file);
    }
    if (stream)
        closedir(stream);
}

/* ---- the folder's size ------------------------------------------------------------------------------------------ */

/* The account, opened and locked; -1 if another has it or it cannot be. */
static int open_account(int root)
{
    struct stat status;
    int file = root < 0 ? -1 : openat(root, HDRT__STORE_USAGE, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                                      0600);
    if (file < 0)
        return -1;
    if (fstat(file, &status) != 0 || !hdrt__file_is_ours(&status, HDRT__FOLDER_READ) ||
        (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)) {
        close(file);
        return -1;
    }
    return file;
}

static void set_account(int file, uint64_t bytes)
{
    const uint64_t numbers[2] = {bytes, ~bytes};
    if (lseek(file, 0, SEEK_SET) == 0)
        hdrt__file_put(file, numbers, sizeof(numbers)); /* one that was half written is told by the complement */
}

hdrt__sweep_account_result hdrt__sweep_account(int root, uint64_t bytes, uint64_t limit_bytes)
{
    uint64_t numbers[2];
    int file = open_account(root);
    if (file < 0)
        return HDRT__SWEEP_BUSY;
    bool known = hdrt__file_get(file, numbers, sizeof(numbers)) && numbers[0] == ~numbers[1] &&
                 !__builtin_add_overflow(numbers[0], bytes, &bytes);
    if (known)
        set_account(file, bytes);
    close(file);
    return known && bytes <= limit_bytes ? HDRT__SWEEP_ACCOUNTED : HDRT__SWEEP_FULL;
}

uint64_t hdrt__sweep_make_room(int root, uint64_t target_bytes)
{
    hdrt_cache_summary summary = HDRT_CACHE_SUMMARY_INIT;
    uint64_t left;
    int file = open_account(root);
    if (file < 0)
        return 0;
    if (trim_to(root, target_bytes, 0, &summary, &left) == HDRT_OK)
        set_account(file, left);
    close(file);
    return summary.removed_files;
}

hdrt_status hdrt__sweep_trim(int root, uint64_t limit_bytes, uint64_t max_age_s, hdrt_cache_summary *out_summary)
{
    uint64_t left;
    *out_summary = (hdrt_cache_summary)HDRT_CACHE_SUMMARY_INIT;
    hdrt_status status = trim_to(root, limit_bytes, max_age_s, out_summary, &left);
    int file = status == HDRT_OK ? open_account(root) : -1;
    if (file >= 0) {
        set_account(file, left);
        close(file);
    }
    return status;
}

static bool clear_one(void *context, const hdrt__swept *file)
{
    struct trim *trim = context;
    if (!file->regular || file->kind == HDRT_CACHE_OTHER)
        return true;
    trim->summary->files++;
    trim->summary->bytes += file->bytes;
    if (file->kind == HDRT_CACHE_TEMPORARY)
        remove_abandoned(trim, file);
    else
        remove_file(trim, file->shard, file->name, file->bytes);
    return true;
}

hdrt_status hdrt__sweep_clear(int root, hdrt_cache_summary *out_summary)
{
    struct trim trim = {.now_ns = (uint64_t)time(NULL) * SECOND, .summary = out_summary};
    *out_summary = (hdrt_cache_summary)HDRT_CACHE_SUMMARY_INIT;
    hdrt_status status = hdrt__sweep_walk(root, HDRT__FOLDER_READ, clear_one, &trim);
    int file = status == HDRT_OK ? open_account(root) : -1;
    if (file >= 0) {
        set_account(file, 0);
        close(file);
    }
    return status;
}
