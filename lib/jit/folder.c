/* SPDX-License-Identifier: MIT */
#include "jit/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TOUCH_SECONDS 3600

/* Why a folder of the cache may not be used; NULL if it may. */
static const char *not_ours(const struct stat *status, hdrt__folder_use use)
{
    if (!S_ISDIR(status->st_mode))
        return "is no folder";
    if (status->st_uid != geteuid() && !(use == HDRT__FOLDER_READ_ONLY && status->st_uid == 0))
        return "belongs to another user";
    if (status->st_mode & (S_IWGRP | S_IWOTH))
        return "may be written by other users (chmod go-w it)";
    return NULL;
}

int hdrt__folder_open(int parent, const char *name, hdrt__folder_use use, const char **why)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    bool make = use == HDRT__FOLDER_MAKE;
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
    *why = fstat(folder, &status) == 0 ? not_ours(&status, use) : strerrordesc_np(errno);
    if (*why) {
        close(folder);
        return -1;
    }
    return folder;
}

void hdrt__folder_make_parents(const char *given)
{
    char *path = strdup(given);
    if (!path)
        return;
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    free(path);
}

bool hdrt__file_is_ours(const struct stat *status, hdrt__folder_use use)
{
    bool shipped = use == HDRT__FOLDER_READ_ONLY;
    /* No name at all is as good as one: another writer replaced the entry since it was opened. Packages may link. */
    return S_ISREG(status->st_mode) && (status->st_uid == geteuid() || (shipped && status->st_uid == 0)) &&
           !(status->st_mode & (S_IWGRP | S_IWOTH)) && (shipped || status->st_nlink <= 1);
}

bool hdrt__file_get(int file, void *bytes, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(file, (char *)bytes + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

/* Modification time as the last use; a file that is not ours to change stays as it is. */
static void note_use(int file, const struct stat *status)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
    time_t now = time(NULL);
    if (now - status->st_mtime > TOUCH_SECONDS || now < status->st_mtime)
        futimens(file, times);
}

unsigned char *hdrt__file_take(int folder, const char *name, hdrt__folder_use use, size_t limit, bool touch,
                               size_t *out_size, hdrt_cache_reason *out_reason)
{
    struct stat status;
    unsigned char *bytes = NULL;
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0) {
        *out_reason = errno == ENOENT ? HDRT_CACHE_NEW
                      : errno == ELOOP || errno == ENXIO || errno == ENODEV ? HDRT_CACHE_REFUSED
                                                                             : HDRT_CACHE_UNREADABLE;
        return NULL;
    }
    *out_reason = HDRT_CACHE_UNREADABLE;
    if (fstat(file, &status) != 0)
        goto close_file;
    *out_reason = HDRT_CACHE_REFUSED;
    if (!hdrt__file_is_ours(&status, use) || (uint64_t)status.st_size > limit)
        goto close_file;
    *out_reason = HDRT_CACHE_TRUNCATED;
    if (status.st_size == 0)
        goto close_file;
    *out_reason = HDRT_CACHE_UNREADABLE;
    bytes = malloc((size_t)status.st_size);
    if (!bytes)
        goto close_file;
    if (!hdrt__file_get(file, bytes, (size_t)status.st_size)) {
        free(bytes);
        bytes = NULL;
        goto close_file;
    }
    *out_size = (size_t)status.st_size;
    *out_reason = HDRT_CACHE_HIT;
    if (touch)
        note_use(file, &status);
close_file:
    close(file);
    return bytes;
}

int hdrt__file_put(int file, const void *bytes, size_t size)
{
    sigset_t limit, before, pending;
    int error = 0;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &limit, &before);
    for (size_t done = 0; done < size && error == 0;) {
        ssize_t wrote = write(file, (const char *)bytes + done, size - done);
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
