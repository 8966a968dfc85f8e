/* SPDX-License-Identifier: MIT */
#include "output.h"

#include "message.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_ATTEMPTS 16
#define WRITE_STEP (1u << 30) /* one write takes at most 2 GiB */

void protect_standard_streams(void)
{
    /* The wrong direction on purpose: reading or writing fails with EBADF, as on the closed descriptor. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
            return;
}

int take_standard_output(void)
{
    int flags = fcntl(STDOUT_FILENO, F_GETFL), taken;

    if (flags < 0)
        return -1;
    if ((flags & O_ACCMODE) == O_RDONLY) {
        errno = EBADF;
        return -1;
    }
    fflush(stdout);
    taken = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (taken >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        close(taken);
        taken = -1;
    }
    return taken;
}

bool write_all(int fd, const void *data, uint64_t bytes)
{
    const unsigned char *at = data;

    while (bytes > 0) {
        ssize_t put = write(fd, at, bytes < WRITE_STEP ? (size_t)bytes : WRITE_STEP);

        if (put >= 0) {
            at += put;
            bytes -= (uint64_t)put;
        } else if (errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};

            if (poll(&wait, 1, -1) < 0 && errno != EINTR)
                return false;
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

/* The folder part of a path, with its slash; "" for a bare name. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* A name in the folder of out->path that nobody else uses. */
static char *temporary_name(const output *out)
{
    unsigned long long number;
    char *name;

    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return NULL;
    return asprintf(&name, "%.*s.hdjit-%016llx", (int)folder_length(out->path), out->path, number) < 0 ? NULL : name;
}

/* Where O_TMPFILE does not work: a named file from the start. */
static int open_named(output *out)
{
    for (int i = 0; i < NAME_ATTEMPTS; i++) {
        out->temporary = temporary_name(out);
        if (!out->temporary)
            return -1;
        out->fd = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (out->fd >= 0)
            return 0;
        free(out->temporary);
        out->temporary = NULL;
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* A file without a name vanishes by itself, whatever ends the process. */
static int open_temporary(output *out)
{
    size_t length = folder_length(out->path);
    char *folder = length ? strndup(out->path, length) : strdup(".");

    if (!folder)
        return -1;
    /* Without /proc it could not be given a name later. */
    out->fd = access("/proc/self/fd", X_OK) == 0 ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
    free(folder);
    if (out->fd < 0 && open_named(out) != 0)
        return -1;
    out->owned = true;
    return 0;
}

/* A link is followed, so that it stays one; a path that does not exist yet is taken as it is. */
static int resolve(output *out, const char *path, bool exists)
{
    char target[4096];
    ssize_t length;

    out->path = exists ? realpath(path, NULL) : strdup(path);
    if (!out->path)
        return -1;
    length = exists ? -1 : readlink(path, target, sizeof target - 1);
    if (length < 0)
        return 0;
    /* A link to nothing yet: to be created where it points. */
    free(out->path);
    target[length] = 0;
    if (asprintf(&out->path, "%.*s%s", target[0] == '/' ? 0 : (int)folder_length(path), path, target) < 0)
        out->path = NULL;
    return out->path ? 0 : -1;
}

static int refuse(output *out, int error)
{
    const char *name = out->name;

    output_close(out);
    return fail(EXIT_CODE_FAILED, "%s: cannot be written: %s", name, strerror(error));
}

int output_open(output *out, const char *path, int standard_output)
{
    struct stat about;
    bool exists;

    *out = (output){.name = path, .fd = -1};
    if (strcmp(path, "-") == 0) {
        out->name = "standard output";
        out->fd = standard_output;
        out->owned = standard_output >= 0;
        return standard_output >= 0 ? 0 : refuse(out, EBADF);
    }
    exists = stat(path, &about) == 0;
    if (!exists && errno != ENOENT)
        return refuse(out, errno);
    if (exists && S_ISDIR(about.st_mode))
        return refuse(out, EISDIR);
    if (exists && !S_ISREG(about.st_mode)) {
        out->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        out->owned = true;
        return out->fd >= 0 ? 0 : refuse(out, errno);
    }
    if (exists && access(path, W_OK) != 0)
        return refuse(out, errno);
    if (resolve(out, path, exists) != 0 || open_temporary(out) != 0)
        return refuse(out, errno);
    if (exists && fchmod(out->fd, about.st_mode & 07777) != 0)
        return refuse(out, errno);
    return 0;
}

int output_write(output *out, const void *data, uint64_t bytes)
{
    if (write_all(out->fd, data, bytes))
        return 0;
    return fail(EXIT_CODE_FAILED, "%s: cannot be written: %s", out->name, strerror(errno));
}

/* Gives a file without a name a temporary one: only a rename replaces another file in one step. */
static int name_file(output *out)
{
    char self[64];

    snprintf(self, sizeof self, "/proc/self/fd/%d", out->fd);
    for (int i = 0; i < NAME_ATTEMPTS; i++) {
        out->temporary = temporary_name(out);
        if (!out->temporary)
            return -1;
        if (linkat(AT_FDCWD, self, AT_FDCWD, out->temporary, AT_SYMLINK_FOLLOW) == 0)
            return 0;
        free(out->temporary);
        out->temporary = NULL;
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

int output_finish(output *out)
{
    bool owned = out->owned;

    if (out->path && !out->temporary && name_file(out) != 0)
        return refuse(out, errno);
    /* Some file systems tell of a full disk only now. */
    out->owned = false;
    if (owned && close(out->fd) != 0)
        return refuse(out, errno);
    if (out->path && rename(out->temporary, out->path) != 0)
        return refuse(out, errno);
    free(out->temporary);
    out->temporary = NULL;
    return 0;
}

void output_close(output *out)
{
    if (out->temporary)
        unlink(out->temporary);
    free(out->temporary);
    free(out->path);
    if (out->owned)
        close(out->fd);
    *out = (output){.fd = -1};
}
