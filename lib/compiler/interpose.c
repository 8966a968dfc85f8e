/* SPDX-License-Identifier: MIT */
/*
 * Definitions that stand before the C library's for the calls by which compilers look at files: what clang 14 to 19
 * and NVRTC 11 to 13 import, and their neighbours. A watched call is noted, hit or miss, and reaches nothing but
 * regular files: a compiler that opens a named pipe waits for ever, a device can do anything.
 */
#include "compiler/record.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* The next definition of a symbol. Looking it up twice at once does no harm: both find the same. */
static void *next_definition(_Atomic(void *) *place, const char *name)
{
    void *function = *place;
    if (function == NULL) {
        function = dlsym(RTLD_NEXT, name);
        *place = function;
    }
    return function;
}

typedef int openat_call(int folder, const char *path, int flags, ...);
typedef FILE *fopen_call(const char *path, const char *mode);
typedef int fstatat_call(int folder, const char *path, struct stat *status, int flags);
typedef int fxstatat_call(int version, int folder, const char *path, struct stat *status, int flags);
typedef int faccessat_call(int folder, const char *path, int mode, int flags);
typedef int statx_call(int folder, const char *path, int flags, unsigned mask, struct statx *status);

static int next_openat(int folder, const char *path, int flags, mode_t mode)
{
    static _Atomic(void *) place;
    openat_call *function = (openat_call *)next_definition(&place, "openat");
    if (function != NULL)
        return function(folder, path, flags, mode);
    errno = ENOSYS;
    return -1;
}

static FILE *next_fopen(const char *path, const char *mode)
{
    static _Atomic(void *) place;
    fopen_call *function = (fopen_call *)next_definition(&place, "fopen");
    if (function != NULL)
        return function(path, mode);
    errno = ENOSYS;
    return NULL;
}

/* glibc before 2.33 has __fxstatat only, in the same binary form on 64-bit machines. */
static int next_fstatat(int folder, const char *path, struct stat *status, int flags)
{
    static _Atomic(void *) place, older_place;
    fstatat_call *function = (fstatat_call *)next_definition(&place, "fstatat");
    if (function != NULL)
        return function(folder, path, status, flags);
    fxstatat_call *older = (fxstatat_call *)next_definition(&older_place, "__fxstatat");
    if (older != NULL)
        return older(1, folder, path, status, flags);
    errno = ENOSYS;
    return -1;
}

static int next_faccessat(int folder, const char *path, int mode, int flags)
{
    static _Atomic(void *) place;
    faccessat_call *function = (faccessat_call *)next_definition(&place, "faccessat");
    if (function != NULL)
        return function(folder, path, mode, flags);
    errno = ENOSYS;
    return -1;
}

static int next_statx(int folder, const char *path, int flags, unsigned mask, struct statx *status)
{
    static _Atomic(void *) place;
    statx_call *function = (statx_call *)next_definition(&place, "statx");
    if (function != NULL)
        return function(folder, path, flags, mask, status);
    errno = ENOSYS;
    return -1;
}

static int64_t nanoseconds(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* A path relative to an open folder is noted with that folder's own path. */
static void note(int folder, const char *path, hdrt__cc_record_head head)
{
    int error = errno;
    char full[2 * PATH_MAX];
    if (folder != AT_FDCWD && path[0] != '/') {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, full, PATH_MAX);
        if (length > 0 && strlen(path) < PATH_MAX) {
            full[length] = '/';
            strcpy(full + length + 1, path);
            path = full;
        }
    }
    hdrt__cc_record(&head, path);
    errno = error;
}

static hdrt__cc_record_head now_head(bool opening)
{
    hdrt__cc_record_head head = {.opened = opening};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    head.seen_ns = nanoseconds(now);
    return head;
}

/* Note what a call found. false: the compiler is to be told ENOENT (in errno). */
static bool note_found(int folder, const char *path, hdrt__cc_record_head head, const struct stat *status)
{
    if (!head.opened && S_ISDIR(status->st_mode))
        return true;
    head.kind = S_ISREG(status->st_mode) ? HDRT__CC_RECORD_FILE : HDRT__CC_RECORD_REFUSED;
    head.mode = (uint32_t)status->st_mode;
    head.device = (uint64_t)status->st_dev;
    head.inode = (uint64_t)status->st_ino;
    head.size = (uint64_t)status->st_size;
    head.mtime_ns = nanoseconds(status->st_mtim);
    head.ctime_ns = nanoseconds(status->st_ctim);
    note(folder, path, head);
    if (head.kind == HDRT__CC_RECORD_REFUSED)
        errno = ENOENT;
    return head.kind == HDRT__CC_RECORD_FILE;
}

static void note_missed(int folder, const char *path, hdrt__cc_record_head head)
{
    head.kind = HDRT__CC_RECORD_MISS;
    head.error = (uint32_t)errno;
    note(folder, path, head);
}

/* What is there is looked at before it is opened, because opening a device can act on it, and again when it is open. */
static int watched_open(int folder, const char *path, int flags)
{
    hdrt__cc_record_head head = now_head(true);
    struct stat status;
    if (next_fstatat(folder, path, &status, 0) != 0) {
        note_missed(folder, path, head);
        return -1;
    }
    if (!S_ISREG(status.st_mode)) {
        note_found(folder, path, head, &status);
        return -1;
    }
    int fd = next_openat(folder, path, flags | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0 || fstat(fd, &status) != 0) {
        note_missed(folder, path, head);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (!note_found(folder, path, head, &status)) {
        close(fd);
        errno = ENOENT;
        return -1;
    }
    if ((flags & O_NONBLOCK) == 0)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

/* Files that a compiler writes are not ours to judge: its options were. */
static int open_file(int folder, const char *path, int flags, mode_t mode)
{
    bool reads = (flags & O_ACCMODE) == O_RDONLY && (flags & (O_CREAT | O_DIRECTORY | O_PATH)) == 0;
    enum hdrt__cc_watch watch = reads ? hdrt__cc_watch(path, true) : HDRT__CC_PASS;
    if (watch == HDRT__CC_WATCH)
        return watched_open(folder, path, flags);
    if (watch == HDRT__CC_DENY) {
        errno = ENOENT;
        return -1;
    }
    return next_openat(folder, path, flags, mode);
}

static int look_at(int folder, const char *path, struct stat *status, int flags)
{
    enum hdrt__cc_watch watch = path[0] == '\0' ? HDRT__CC_PASS : hdrt__cc_watch(path, false);
    if (watch == HDRT__CC_DENY) {
        errno = ENOENT;
        return -1;
    }
    if (watch == HDRT__CC_PASS)
        return next_fstatat(folder, path, status, flags);
    hdrt__cc_record_head head = now_head(false);
    int result = next_fstatat(folder, path, status, flags);
    if (result != 0) {
        note_missed(folder, path, head);
        return result;
    }
    if (S_ISLNK(status->st_mode)) /* lstat: what it leads to comes out when that is opened */
        return 0;
    return note_found(folder, path, head, status) ? 0 : -1;
}

static bool has_mode(int flags)
{
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

#define TAKE_MODE(flags, mode) \
    mode_t mode = 0; \
    if (has_mode(flags)) { \
        va_list arguments; \
        va_start(arguments, flags); \
        mode = va_arg(arguments, mode_t); \
        va_end(arguments); \
    }

/*
 * The exported names. The 64-bit spellings are the same calls on 64-bit machines; the headers declare each with its
 * own struct, so they are given assembler names here instead of second prototypes.
 */
EXPORT int open(const char *path, int flags, ...)
{
    TAKE_MODE(flags, mode)
    return open_file(AT_FDCWD, path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
    TAKE_MODE(flags, mode)
    return open_file(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

EXPORT int openat(int folder, const char *path, int flags, ...)
{
    TAKE_MODE(flags, mode)
    return open_file(folder, path, flags, mode);
}

EXPORT int openat64(int folder, const char *path, int flags, ...)
{
    TAKE_MODE(flags, mode)
    return open_file(folder, path, flags | O_LARGEFILE, mode);
}

/* What fortified callers call instead, when the flags are not known while compiling. */
int hdrt__cc_open_2(const char *path, int flags) __asm__("__open_2");
int hdrt__cc_open64_2(const char *path, int flags) __asm__("__open64_2");
int hdrt__cc_openat_2(int folder, const char *path, int flags) __asm__("__openat_2");
int hdrt__cc_openat64_2(int folder, const char *path, int flags) __asm__("__openat64_2");

EXPORT int hdrt__cc_open_2(const char *path, int flags)
{
    return open_file(AT_FDCWD, path, flags, 0);
}

EXPORT int hdrt__cc_open64_2(const char *path, int flags)
{
    return open_file(AT_FDCWD, path, flags | O_LARGEFILE, 0);
}

EXPORT int hdrt__cc_openat_2(int folder, const char *path, int flags)
{
    return open_file(folder, path, flags, 0);
}

EXPORT int hdrt__cc_openat64_2(int folder, const char *path, int flags)
{
    return open_file(folder, path, flags | O_LARGEFILE, 0);
}

/* Reading by stdio: our own descriptor, so that it is one open and not two. */
static FILE *open_stream(const char *path, const char *mode)
{
    if (mode[0] != 'r' || strchr(mode, '+') != NULL || hdrt__cc_watch(path, true) == HDRT__CC_PASS)
        return next_fopen(path, mode);
    int fd = open_file(AT_FDCWD, path, strchr(mode, 'e') != NULL ? O_RDONLY | O_CLOEXEC : O_RDONLY, 0);
    if (fd < 0)
        return NULL;
    FILE *stream = fdopen(fd, mode);
    if (stream == NULL)
        close(fd);
    return stream;
}

EXPORT FILE *fopen(const char *restrict path, const char *restrict mode)
{
    return open_stream(path, mode);
}

EXPORT FILE *fopen64(const char *restrict path, const char *restrict mode)
{
    return open_stream(path, mode);
}

/* Note the look that another call is about to take. false: it is to fail, errno says how. */
static bool may_look(int folder, const char *path, int flags)
{
    struct stat status;
    return path[0] == '\0' || hdrt__cc_watch(path, false) == HDRT__CC_PASS ||
           look_at(folder, path, &status, flags & AT_SYMLINK_NOFOLLOW) == 0;
}

EXPORT int access(const char *path, int mode)
{
    return may_look(AT_FDCWD, path, 0) ? next_faccessat(AT_FDCWD, path, mode, 0) : -1;
}

EXPORT int faccessat(int folder, const char *path, int mode, int flags)
{
    return may_look(folder, path, flags) ? next_faccessat(folder, path, mode, flags) : -1;
}

EXPORT int statx(int folder, const char *restrict path, int flags, unsigned mask, struct statx *restrict status)
{
    return may_look(folder, path, flags) ? next_statx(folder, path, flags, mask, status) : -1;
}

EXPORT int stat(const char *restrict path, struct stat *restrict status)
{
    return look_at(AT_FDCWD, path, status, 0);
}

EXPORT int lstat(const char *restrict path, struct stat *restrict status)
{
    return look_at(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

EXPORT int fstatat(int folder, const char *restrict path, struct stat *restrict status, int flags)
{
    return look_at(folder, path, status, flags);
}

#if defined __LP64__
/* struct stat64 is struct stat here; the older __xstat family differs by a version number that has one value. */
int hdrt__cc_stat64(const char *path, struct stat *status) __asm__("stat64");
int hdrt__cc_lstat64(const char *path, struct stat *status) __asm__("lstat64");
int hdrt__cc_fstatat64(int folder, const char *path, struct stat *status, int flags) __asm__("fstatat64");
int hdrt__cc_xstat(int version, const char *path, struct stat *status) __asm__("__xstat");
int hdrt__cc_xstat64(int version, const char *path, struct stat *status) __asm__("__xstat64");
int hdrt__cc_lxstat(int version, const char *path, struct stat *status) __asm__("__lxstat");
int hdrt__cc_lxstat64(int version, const char *path, struct stat *status) __asm__("__lxstat64");
int hdrt__cc_fxstatat(int version, int folder, const char *path, struct stat *status, int flags) __asm__("__fxstatat");

EXPORT int hdrt__cc_stat64(const char *path, struct stat *status)
{
    return look_at(AT_FDCWD, path, status, 0);
}

EXPORT int hdrt__cc_lstat64(const char *path, struct stat *status)
{
    return look_at(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

EXPORT int hdrt__cc_fstatat64(int folder, const char *path, struct stat *status, int flags)
{
    return look_at(folder, path, status, flags);
}

EXPORT int hdrt__cc_xstat(int version, const char *path, struct stat *status)
{
    return look_at(AT_FDCWD, path, status, 0);
}

EXPORT int hdrt__cc_xstat64(int version, const char *path, struct stat *status)
{
    return look_at(AT_FDCWD, path, status, 0);
}

EXPORT int hdrt__cc_lxstat(int version, const char *path, struct stat *status)
{
    return look_at(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

EXPORT int hdrt__cc_lxstat64(int version, const char *path, struct stat *status)
{
    return look_at(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

EXPORT int hdrt__cc_fxstatat(int version, int folder, const char *path, struct stat *status, int flags)
{
    return look_at(folder, path, status, flags);
}
#endif
