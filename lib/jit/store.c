/* SPDX-License-Identifier: MIT */
#include "jit/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/number.h"
#include "base/status.h"
#include "jit/folder.h"
#include "jit/sweep.h"

#define PUBLISH_TRIES 8
#define NAME_SIZE (2 * HDRT__DIGEST_SIZE + 3)

/* A folder of the cache. */
struct tier {
    char *directory; /* NULL: none */
    _Atomic(char *) reason;
    int root; /* <directory>/v1, -1 until it was opened; guarded by the store's lock */
};

struct hdrt__store {
    struct tier *tiers; /* the 0th is written */
    uint32_t count;
    uint64_t limit_bytes;
    pthread_mutex_t lock;
    _Atomic uint64_t pending; /* bytes that are not in the folder's own account yet */
    _Atomic uint64_t evicted;
    atomic_bool emptied; /* room was made once because the disk was full */
};

static const char tag_text[] = "Signature: 8a477f597d28d172789f06886806bc55\n"
                               "# The kernel cache of libhdrt. It may be deleted at any time.\n";

/* Keeps and logs the first reason; later ones change nothing, so that a full disk is told once. */
static void explain(struct tier *tier, hdrt_log_level level, const char *what, const char *path, const char *why)
{
    hdrt__buffer text = HDRT__BUFFER_INIT;
    if (atomic_load(&tier->reason))
        return;
    if (path)
        hdrt__buffer_format(&text, "%s %s: ", what, path);
    hdrt__buffer_text(&text, why);
    char *reason = hdrt__buffer_take(&text, NULL), *expected = NULL;
    if (!reason)
        return;
    if (atomic_compare_exchange_strong(&tier->reason, &expected, reason))
        hdrt__log(level, "kernel cache: %s", reason);
    else
        free(reason);
}

static hdrt__folder_use use_of(const hdrt__store *store, const struct tier *tier, bool make)
{
    return tier != store->tiers ? HDRT__FOLDER_READ_ONLY : make ? HDRT__FOLDER_MAKE : HDRT__FOLDER_READ;
}

static void write_tag(int base)
{
    int tag = openat(base, "CACHEDIR.TAG", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (tag < 0)
        return;
    if (write(tag, tag_text, sizeof(tag_text) - 1) < 0)
        unlinkat(base, "CACHEDIR.TAG", 0);
    close(tag);
}

static int open_root(hdrt__store *store, struct tier *tier, bool make)
{
    const char *why;
    hdrt__folder_use use = use_of(store, tier, make);
    if (make)
        hdrt__folder_make_parents(tier->directory);
    int base = hdrt__folder_open(AT_FDCWD, tier->directory, use, &why);
    int root = -1;
    if (base >= 0) {
        root = hdrt__folder_open(base, HDRT__STORE_FOLDER, use, &why);
        if (root >= 0 && make)
            write_tag(base);
        close(base);
    }
    if (root < 0 && why)
        explain(tier, HDRT_LOG_WARN, "not used:", tier->directory, why);
    return root;
}

/* The root's descriptor, kept from the first success on. */
int hdrt__store_root(hdrt__store *store, uint32_t folder, bool make)
{
    struct tier *tier = &store->tiers[folder];
    if (!tier->directory)
        return -1;
    pthread_mutex_lock(&store->lock);
    if (tier->root < 0)
        tier->root = open_root(store, tier, make);
    int root = tier->root;
    pthread_mutex_unlock(&store->lock);
    return root;
}

static int open_shard(hdrt__store *store, uint32_t folder, const char *hex, bool make)
{
    int root = hdrt__store_root(store, folder, make);
    if (root < 0)
        return -1;
    struct tier *tier = &store->tiers[folder];
    char name[3] = {hex[0], hex[1], '\0'};
    const char *why;
    int shard = hdrt__folder_open(root, name, use_of(store, tier, make), &why);
    if (shard < 0 && why)
        explain(tier, HDRT_LOG_WARN, make ? "cannot write to" : "cannot use a folder in", tier->directory, why);
    return shard;
}

static void entry_name(const hdrt__digest *digest, hdrt__entry_kind kind, char hex[2 * HDRT__DIGEST_SIZE + 1],
                       char name[NAME_SIZE])
{
    hdrt__digest_hex(digest, hex);
    snprintf(name, NAME_SIZE, "%s.%c", hex + 2, (int)kind);
}

char *hdrt__store_path(const hdrt__store *store, uint32_t folder, const hdrt__digest *digest, hdrt__entry_kind kind)
{
    char hex[2 * HDRT__DIGEST_SIZE + 1], name[NAME_SIZE];
    hdrt__buffer path = HDRT__BUFFER_INIT;
    if (!store->tiers[folder].directory)
        return NULL;
    entry_name(digest, kind, hex, name);
    hdrt__buffer_format(&path, "%s/" HDRT__STORE_FOLDER "/%.2s/%s", store->tiers[folder].directory, hex, name);
    return hdrt__buffer_take(&path, NULL);
}

unsigned char *hdrt__store_read(hdrt__store *store, uint32_t folder, const hdrt__digest *digest, hdrt__entry_kind kind,
                                size_t *out_size, hdrt_cache_reason *out_reason)
{
    char hex[2 * HDRT__DIGEST_SIZE + 1], name[NAME_SIZE];
    struct tier *tier = &store->tiers[folder];
    entry_name(digest, kind, hex, name);
    int shard = open_shard(store, folder, hex, false);
    if (shard < 0) {
        *out_reason = tier->directory && !atomic_load(&tier->reason) ? HDRT_CACHE_NEW : HDRT_CACHE_OFF;
        return NULL;
    }
    unsigned char *bytes = hdrt__file_take(shard, name, use_of(store, tier, false), HDRT__ENTRY_LIMIT, folder == 0,
                                           out_size, out_reason);
    close(shard);
    return bytes;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/*
 * The temporary file is locked as long as it is written, so that one whose writer was killed can be told. Where there
 * are no locks its age tells. Whoever tidies up may have found it before it was locked: then it is given up.
 * \return a descriptor, or -1: *out_error is EAGAIN if another one should be made.
 */
static int make_temporary(int shard, const char *temporary, int *out_error)
{
    struct stat status;
    int file = openat(shard, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    *out_error = file < 0 ? errno : 0;
    if (file < 0)
        return -1;
    bool locked = flock(file, LOCK_EX | LOCK_NB) == 0, found = !locked && errno == EWOULDBLOCK;
    if (found || (locked && fstat(file, &status) == 0 && status.st_nlink == 0)) {
        unlinkat(shard, temporary, 0);
        close(file);
        *out_error = EAGAIN;
        return -1;
    }
    return file;
}

/* *out_lock: what keeps the file locked until it has its name; -1: nothing. \return 0 or an errno. */
static int write_temporary(int shard, const char *temporary, const void *bytes, size_t size, int *out_lock)
{
    int error, file = make_temporary(shard, temporary, &error);
    *out_lock = -1;
    if (file < 0)
        return error;
    error = hdrt__file_put(file, bytes, size);
    *out_lock = fcntl(file, F_DUPFD_CLOEXEC, 0);
    /* A delayed allocation on a full network file system is told by close. */
    if (close(file) != 0 && error == 0 && errno != EINTR)
        error = errno;
    return error;
}

/* 0 or an errno; EAGAIN: the temporary file was tidied away before it was locked. */
static int publish_once(int shard, const char *name, const void *bytes, size_t size)
{
    char temporary[64];
    unsigned char random[12];
    int lock;
    randombytes_buf(random, sizeof(random));
    strcpy(temporary, HDRT__STORE_TEMPORARY);
    sodium_bin2hex(temporary + strlen(temporary), 2 * sizeof(random) + 1, random, sizeof(random));
    int error = write_temporary(shard, temporary, bytes, size, &lock);
    if (error == 0 && renameat(shard, temporary, shard, name) != 0)
        error = errno;
    if (error != 0)
        unlinkat(shard, temporary, 0);
    if (lock >= 0)
        close(lock);
    return error;
}

static int publish(int shard, const char *name, const void *bytes, size_t size)
{
    int error = EAGAIN;
    for (int i = 0; i < PUBLISH_TRIES && error == EAGAIN; i++)
        error = publish_once(shard, name, bytes, size);
    return error;
}

/* After an entry was published. */
static void account(hdrt__store *store, uint64_t bytes)
{
    int root = hdrt__store_root(store, 0, false);
    bytes += atomic_exchange(&store->pending, 0);
    switch (hdrt__sweep_account(root, bytes, store->limit_bytes)) {
    case HDRT__SWEEP_ACCOUNTED:
        break;
    case HDRT__SWEEP_BUSY:
        atomic_fetch_add(&store->pending, bytes);
        break;
    case HDRT__SWEEP_FULL:
        atomic_fetch_add(&store->evicted, hdrt__sweep_make_room(root, store->limit_bytes / 5 * 4));
        break;
    }
}

/* A full disk: gives a quarter of the cache back, once; true if there may be room now. */
static bool give_back(hdrt__store *store)
{
    if (atomic_exchange(&store->emptied, true))
        return false;
    uint64_t removed = hdrt__sweep_make_room(hdrt__store_root(store, 0, false), HDRT__SWEEP_THREE_QUARTERS);
    atomic_fetch_add(&store->evicted, removed);
    return removed > 0;
}

bool hdrt__store_write(hdrt__store *store, const hdrt__digest *digest, hdrt__entry_kind kind, const void *bytes,
                       size_t size)
{
    char hex[2 * HDRT__DIGEST_SIZE + 1], name[NAME_SIZE];
    if (size == 0 || size > HDRT__ENTRY_LIMIT || size > store->limit_bytes / 4)
        return false;
    entry_name(digest, kind, hex, name);
    int shard = open_shard(store, 0, hex, true);
    if (shard < 0)
        return false;
    int error = publish(shard, name, bytes, size);
    if ((error == ENOSPC || error == EDQUOT) && give_back(store))
        error = publish(shard, name, bytes, size);
    if (error == 0)
        hdrt__sweep_leftovers(shard);
    close(shard);
    if (error != 0)
        explain(store->tiers, HDRT_LOG_WARN, "cannot write to", store->tiers[0].directory, strerrordesc_np(error));
    else
        account(store, size);
    return error == 0;
}

void hdrt__store_quarantine(hdrt__store *store, const hdrt__digest *image)
{
    char hex[2 * HDRT__DIGEST_SIZE + 1], name[NAME_SIZE], aside[NAME_SIZE];
    entry_name(image, HDRT__ENTRY_IMAGE, hex, name);
    entry_name(image, HDRT__ENTRY_QUARANTINE, hex, aside);
    int shard = open_shard(store, 0, hex, false);
    if (shard < 0)
        return;
    if (renameat(shard, name, shard, aside) != 0)
        unlinkat(shard, name, 0);
    close(shard);
}

/* ---- finding the folders ---------------------------------------------------------------------------------------- */

/* A relative folder counts from where the program stands now: it may go elsewhere later. */
static char *absolute(const char *path)
{
    if (*path == '/')
        return strdup(path);
    char *here = getcwd(NULL, 0);
    char *joined = here ? hdrt__path_join(here, path) : NULL;
    free(here);
    return joined;
}

/* The folder that options and environment ask for; NULL with a reason, or out of memory without one. */
static char *find_directory(const char *option, const char **reason)
{
    const char *asked = option ? option : hdrt__environment(HDRT__ENV_CACHE_DIR);
    *reason = NULL;
    if (getauxval(AT_SECURE)) {
        *reason = "no disk cache in a privileged program";
        return NULL;
    }
    if (option && !*option)
        *reason = "switched off by the runtime option cache_dir";
    else if (!option && asked && strcmp(asked, "off") == 0)
        *reason = "switched off by HDRT_CACHE_DIR=off";
    if (*reason)
        return NULL;
    if (asked)
        return absolute(asked);
    const char *base = secure_getenv("XDG_CACHE_HOME");
    if (base && *base == '/') /* a relative one is to be ignored, says its specification */
        return hdrt__path_join(base, "hdrt");
    base = secure_getenv("HOME");
    if (base && *base == '/')
        return hdrt__path_join(base, ".cache/hdrt");
    *reason = "neither HDRT_CACHE_DIR nor XDG_CACHE_HOME nor HOME names a folder";
    return NULL;
}

uint64_t hdrt__size_parse(const char *text)
{
    uint64_t number = 0;
    if (*text < '0' || *text > '9')
        return 0;
    for (; *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(number, 10u, &number) || __builtin_add_overflow(number, (unsigned)(*text - '0'), &number))
            return 0;
    static const char units[] = "KMGT";
    const char *unit = *text ? strchr(units, *text) : NULL;
    if (*text && (!unit || (text[1] && strcmp(text + 1, "iB") != 0)))
        return 0;
    for (const char *u = units; unit && u <= unit; u++)
        if (__builtin_mul_overflow(number, 1024u, &number))
            return 0;
    return number;
}

static uint64_t find_limit(uint64_t option)
{
    const char *text = hdrt__environment(HDRT__ENV_CACHE_LIMIT);
    uint64_t limit = option ? option : text ? hdrt__size_parse(text) : HDRT__STORE_LIMIT_DEFAULT;
    if (limit)
        return limit;
    hdrt__log(HDRT_LOG_WARN, "kernel cache: HDRT_CACHE_LIMIT is '%s', which is no size such as 512M or 2G; it is not "
                             "used", text);
    return HDRT__STORE_LIMIT_DEFAULT;
}

static bool add_read_only(hdrt__store *store, const char *path)
{
    struct tier *bigger = reallocarray(store->tiers, store->count + 1u, sizeof(*bigger));
    char *directory = bigger ? absolute(path) : NULL;
    if (bigger)
        store->tiers = bigger;
    if (!directory)
        return false;
    bigger[store->count] = (struct tier){.directory = directory, .root = -1};
    store->count++;
    return true;
}

/* Further folders: the option's, else the environment's; none in a privileged program. */
static bool find_read_only(hdrt__store *store, const hdrt__store_config *config)
{
    const char *list = hdrt__environment(HDRT__ENV_CACHE_READ_ONLY);
    bool good = true;
    if (getauxval(AT_SECURE))
        return true;
    for (uint32_t i = 0; config->read_only && i < config->read_only_count && good; i++)
        good = add_read_only(store, config->read_only[i]);
    while (!config->read_only && list && *list && good) {
        size_t size = strcspn(list, ":");
        char *path = strndup(list, size);
        good = path && (size == 0 || add_read_only(store, path));
        free(path);
        list += size + (list[size] == ':');
    }
    return good;
}

hdrt_status hdrt__store_open(const hdrt__store_config *config, hdrt__store **out_store)
{
    const char *reason;
    hdrt__store *store = calloc(1, sizeof(*store));
    *out_store = NULL;
    if (!store)
        return hdrt__fail_memory(sizeof(*store), "the kernel cache");
    pthread_mutex_init(&store->lock, NULL);
    store->tiers = calloc(1, sizeof(*store->tiers));
    if (!store->tiers)
        goto no_memory;
    store->tiers[0].root = -1;
    store->count = 1;
    store->tiers[0].directory = find_directory(config->directory, &reason);
    if ((!store->tiers[0].directory && !reason) || !find_read_only(store, config))
        goto no_memory;
    store->limit_bytes = find_limit(config->limit_bytes);
    if (reason)
        explain(&store->tiers[0], HDRT_LOG_INFO, NULL, NULL, reason);
    *out_store = store;
    return HDRT_OK;
no_memory:
    hdrt__store_close(store);
    return hdrt__fail_memory(0, "the kernel cache's path");
}

void hdrt__store_close(hdrt__store *store)
{
    if (!store)
        return;
    for (uint32_t i = 0; i < store->count; i++) {
        if (store->tiers[i].root >= 0)
            close(store->tiers[i].root);
        free(atomic_load(&store->tiers[i].reason));
        free(store->tiers[i].directory);
    }
    free(store->tiers);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

void hdrt__store_check(hdrt__store *store)
{
    struct tier *own = store->tiers;
    for (uint32_t i = 1; i < store->count; i++)
        if (hdrt__store_root(store, i, false) < 0)
            explain(&store->tiers[i], HDRT_LOG_WARN, "not used:", store->tiers[i].directory,
                    "there is no kernel cache in it");
    if (!own->directory)
        return;
    bool there = hdrt__store_root(store, 0, false) >= 0;
    if (atomic_load(&own->reason))
        return;
    /* Not there yet: the nearest folder that is decides. */
    char *path = strdup(own->directory);
    for (char *slash; path && access(path, F_OK) != 0 && (slash = strrchr(path, '/'));)
        slash[slash == path] = '\0';
    if (path && faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) != 0)
        explain(own, HDRT_LOG_WARN, there ? "cannot write to" : "cannot make", own->directory, strerrordesc_np(errno));
    free(path);
}

uint32_t hdrt__store_count(const hdrt__store *store)
{
    return store->count;
}

const char *hdrt__store_directory(const hdrt__store *store, uint32_t folder)
{
    return store->tiers[folder].directory;
}

const char *hdrt__store_reason(const hdrt__store *store, uint32_t folder)
{
    return atomic_load(&store->tiers[folder].reason);
}

uint64_t hdrt__store_limit(const hdrt__store *store)
{
    return store->limit_bytes;
}

uint64_t hdrt__store_evicted(const hdrt__store *store)
{
    return atomic_load(&store->evicted);
}
