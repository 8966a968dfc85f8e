/* SPDX-License-Identifier: MIT */
#include "jit/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/number.h"
#include "base/status.h"

#define FORMAT_FOLDER "v1"
#define STALE_SECONDS (24 * 3600)
#define STALE_LOOKED_AT 256

struct hdrt__store {
    char *directory; /* NULL: none */
    _Atomic(char *) reason;
    pthread_mutex_t lock; /* guards root and the setting of reason */
    int root;             /* <directory>/v1, -1 until it was opened */
};

static const char tag_text[] = "Signature: 8a477f597d28d172789f06886806bc55\n"
                               "# The kernel cache of libhdrt. It may be deleted at any time.\n";

/* Keeps and logs the first reason; later ones change nothing, so that a full disk is told once. */
static void explain(hdrt__store *store, hdrt_log_level level, const char *what, const char *path, const char *why)
{
    hdrt__buffer text = HDRT__BUFFER_INIT;
    if (path)
        hdrt__buffer_format(&text, "%s %s: ", what, path);
    hdrt__buffer_text(&text, why);
    char *reason = hdrt__buffer_take(&text, NULL), *expected = NULL;
    if (!reason)
        return;
    if (atomic_compare_exchange_strong(&store->reason, &expected, reason))
        hdrt__log(level, "kernel cache: %s", reason);
    else
        free(reason);
}

/* Why a folder of the cache may not be used; NULL if it may. */
static const char *not_ours(const struct stat *status)
{
    if (!S_ISDIR(status->st_mode))
        return "is no folder";
    if (status->st_uid != geteuid())
        return "belongs to another user";
    if (status->st_mode & (S_IWGRP | S_IWOTH))
        return "may be written by other users (chmod go-w it)";
    return NULL;
}

/*
 * Opens `name` in `parent` as a folder of ours; makes it if asked to. -1 on failure: *why is then set, but for a folder
 * that is not there and was not to be made.
 */
static int open_folder(int parent, const char *name, bool make, const char **why)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    *why = NULL;
    int folder = openat(parent, name, flags);
    if (folder < 0 && errno == ENOENT && make) {
        if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST) {
            *why = strerrordesc_np(errno);
            return -1;
        }
        folder = openat(parent, name, flags);
    }
    struct stat status;
    if (folder < 0) {
        int error = errno;
        if ((error == ELOOP || error == ENOTDIR) && fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
            *why = S_ISLNK(status.st_mode) ? "is a symbolic link (name the folder itself)" : "is no folder";
        else if (error != ENOENT || make)
            *why = strerrordesc_np(error);
        return -1;
    }
    *why = fstat(folder, &status) == 0 ? not_ours(&status) : strerrordesc_np(errno);
    if (*why) {
        close(folder);
        return -1;
    }
    return folder;
}

/* Makes the folders above the cache's own, which may be links and others'. Opening the last one tells what failed. */
static void make_parents(const char *directory)
{
    char *path = strdup(directory);
    if (!path)
        return;
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    free(path);
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

static int open_root(hdrt__store *store, bool make)
{
    const char *why;
    if (make)
        make_parents(store->directory);
    int base = open_folder(AT_FDCWD, store->directory, make, &why);
    int root = -1;
    if (base >= 0) {
        root = open_folder(base, FORMAT_FOLDER, make, &why);
        if (root >= 0 && make)
            write_tag(base);
        close(base);
    }
    if (root < 0 && why)
        explain(store, HDRT_LOG_WARN, "not used:", store->directory, why);
    return root;
}

/* The root's descriptor, kept from the first success on. */
static int root_of(hdrt__store *store, bool make)
{
    if (!store->directory)
        return -1;
    pthread_mutex_lock(&store->lock);
    if (store->root < 0)
        store->root = open_root(store, make);
    int root = store->root;
    pthread_mutex_unlock(&store->lock);
    return root;
}

static int open_shard(hdrt__store *store, const char *hex, bool make)
{
    int root = root_of(store, make);
    if (root < 0)
        return -1;
    char shard[3] = {hex[0], hex[1], '\0'};
    const char *why;
    int folder = open_folder(root, shard, make, &why);
    if (folder < 0 && why)
        explain(store, HDRT_LOG_WARN, make ? "cannot write to" : "cannot use a folder in", store->directory, why);
    return folder;
}

static void entry_name(const hdrt__digest *digest, hdrt__entry_kind kind, char hex[2 * HDRT__DIGEST_SIZE + 1],
                       char name[2 * HDRT__DIGEST_SIZE + 3])
{
    hdrt__digest_hex(digest, hex);
    snprintf(name, 2 * HDRT__DIGEST_SIZE + 3, "%s.%c", hex + 2, kind == HDRT__ENTRY_MANIFEST ? 'm' : 'i');
}

/* No name at all is as good as one: another writer replaced the entry since it was opened. */
static bool entry_is_ours(const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_uid == geteuid() && !(status->st_mode & (S_IWGRP | S_IWOTH)) &&
           status->st_nlink <= 1 && status->st_size > 0 && (uint64_t)status->st_size <= HDRT__ENTRY_LIMIT;
}

static bool read_whole(int file, unsigned char *bytes, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(file, bytes + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

unsigned char *hdrt__store_read(hdrt__store *store, const hdrt__digest *name, hdrt__entry_kind kind, size_t *out_size)
{
    char hex[2 * HDRT__DIGEST_SIZE + 1], file_name[2 * HDRT__DIGEST_SIZE + 3];
    unsigned char *bytes = NULL;
    struct stat status;
    entry_name(name, kind, hex, file_name);
    int shard = open_shard(store, hex, false);
    if (shard < 0)
        return NULL;
    int file = openat(shard, file_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0)
        goto close_shard;
    if (fstat(file, &status) == 0 && entry_is_ours(&status)) {
        size_t size = (size_t)status.st_size;
        bytes = malloc(size);
        if (bytes && !read_whole(file, bytes, size)) {
            free(bytes);
            bytes = NULL;
        }
        *out_size = size;
    }
    close(file);
close_shard:
    close(shard);
    return bytes;
}

/* What a killed process left behind: temporary files that nobody can still be writing. */
static void remove_stale(int shard, const struct stat *now)
{
    int listed = openat(shard, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = listed >= 0 ? fdopendir(listed) : NULL;
    if (!folder) {
        if (listed >= 0)
            close(listed);
        return;
    }
    struct dirent *entry;
    for (unsigned i = 0; i < STALE_LOOKED_AT && (entry = readdir(folder)); i++) {
        struct stat status;
        if (strncmp(entry->d_name, ".tmp-", 5) == 0 &&
            fstatat(shard, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
            status.st_mtime < now->st_mtime - STALE_SECONDS)
            unlinkat(shard, entry->d_name, 0);
    }
    closedir(folder);
}

/*
 * Writes all of it. Past the process's file size limit the kernel sends SIGXFSZ, whose default ends the program: it is
 * blocked for the time and, if it came from us, taken away again.
 */
static int write_whole(int file, const unsigned char *bytes, size_t size)
{
    sigset_t limit, before, pending;
    int error = 0;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &limit, &before);
    for (size_t done = 0; done < size && error == 0;) {
        ssize_t wrote = write(file, bytes + done, size - done);
        if (wrote >= 0)
            done += (size_t)wrote;
        else if (errno != EINTR)
            error = errno;
    }
    if (error == EFBIG && !was_pending) {
        const struct timespec none = {0, 0};
        while (sigtimedwait(&limit, NULL, &none) < 0 && errno == EINTR)
            continue;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static bool publish(hdrt__store *store, int shard, const char *name, const void *bytes, size_t size)
{
    char temporary[64];
    unsigned char random[8];
    struct stat status;
    randombytes_buf(random, sizeof(random));
    snprintf(temporary, sizeof(temporary), ".tmp-%ld-%02x%02x%02x%02x%02x%02x%02x%02x", (long)getpid(), random[0],
             random[1], random[2], random[3], random[4], random[5], random[6], random[7]);
    int file = openat(shard, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) {
        explain(store, HDRT_LOG_WARN, "cannot write to", store->directory, strerrordesc_np(errno));
        return false;
    }
    int error = write_whole(file, bytes, size);
    if (error == 0 && fstat(file, &status) == 0)
        remove_stale(shard, &status);
    /* A delayed allocation on a full network file system is told by close. */
    if (close(file) != 0 && error == 0 && errno != EINTR)
        error = errno;
    if (error == 0 && renameat(shard, temporary, shard, name) != 0)
        error = errno;
    if (error != 0) {
        unlinkat(shard, temporary, 0);
        explain(store, HDRT_LOG_WARN, "cannot write to", store->directory, strerrordesc_np(error));
    }
    return error == 0;
}

bool hdrt__store_write(hdrt__store *store, const hdrt__digest *name, hdrt__entry_kind kind, const void *bytes,
                       size_t size)
{
    char hex[2 * HDRT__DIGEST_SIZE + 1], file_name[2 * HDRT__DIGEST_SIZE + 3];
    if (size == 0 || size > HDRT__ENTRY_LIMIT)
        return false;
    entry_name(name, kind, hex, file_name);
    int shard = open_shard(store, hex, true);
    if (shard < 0)
        return false;
    bool stored = publish(store, shard, file_name, bytes, size);
    close(shard);
    return stored;
}

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

hdrt_status hdrt__store_open(const char *option, hdrt__store **out_store)
{
    const char *reason;
    hdrt__store *store = calloc(1, sizeof(*store));
    *out_store = NULL;
    if (!store)
        return hdrt__fail_memory(sizeof(*store), "the kernel cache");
    store->root = -1;
    store->directory = find_directory(option, &reason);
    if (!store->directory && !reason) {
        free(store);
        return hdrt__fail_memory(0, "the kernel cache's path");
    }
    pthread_mutex_init(&store->lock, NULL);
    if (reason)
        explain(store, HDRT_LOG_INFO, NULL, NULL, reason);
    *out_store = store;
    return HDRT_OK;
}

void hdrt__store_close(hdrt__store *store)
{
    if (!store)
        return;
    if (store->root >= 0)
        close(store->root);
    pthread_mutex_destroy(&store->lock);
    free(atomic_load(&store->reason));
    free(store->directory);
    free(store);
}

void hdrt__store_check(hdrt__store *store)
{
    if (!store->directory)
        return;
    bool there = root_of(store, false) >= 0;
    if (atomic_load(&store->reason))
        return;
    /* Not there yet: the nearest folder that is decides. */
    char *path = strdup(store->directory);
    for (char *slash; path && access(path, F_OK) != 0 && (slash = strrchr(path, '/'));)
        slash[slash == path] = '\0';
    if (path && faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) != 0)
        explain(store, HDRT_LOG_WARN, there ? "cannot write to" : "cannot make", store->directory,
                strerrordesc_np(errno));
    free(path);
}

const char *hdrt__store_directory(const hdrt__store *store)
{
    return store->directory;
}

const char *hdrt__store_reason(const hdrt__store *store)
{
    return atomic_load(&store->reason);
}
