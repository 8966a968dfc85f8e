/* SPDX-License-Identifier: MIT */
#include "jit/stamp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RACY_NS (2 * UINT64_C(1000000000))

static uint64_t nanoseconds(struct timespec time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

hdrt__stamp hdrt__stamp_of(const struct stat *status)
{
    return (hdrt__stamp){(uint64_t)status->st_size, nanoseconds(status->st_mtim), nanoseconds(status->st_ctim),
                         (uint64_t)status->st_dev, (uint64_t)status->st_ino};
}

bool hdrt__stamp_file(const char *path, hdrt__stamp *out)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    *out = hdrt__stamp_of(&status);
    return true;
}

bool hdrt__stamp_equal(const hdrt__stamp *a, const hdrt__stamp *b)
{
    return a->size == b->size && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns && a->device == b->device &&
           a->inode == b->inode;
}

uint64_t hdrt__wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return nanoseconds(now);
}

bool hdrt__stamp_racy(const hdrt__stamp *stamp, uint64_t when_ns)
{
    uint64_t latest = stamp->mtime_ns > stamp->ctime_ns ? stamp->mtime_ns : stamp->ctime_ns;
    return latest + RACY_NS >= when_ns;
}

static bool read_bytes(int file, unsigned char *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = read(file, bytes + done, size - done);
        if (got > 0) {
            done += (size_t)got;
        } else if (got == 0) {
            errno = EIO; /* became shorter meanwhile */
            return false;
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

unsigned char *hdrt__file_read(const char *path, size_t limit, size_t *out_size, hdrt__stamp *out_stamp)
{
    struct stat status;
    unsigned char *bytes = NULL;
    int error = 0;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0)
        return NULL;
    if (fstat(file, &status) != 0)
        error = errno;
    else if (!S_ISREG(status.st_mode))
        error = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    else if ((uint64_t)status.st_size > limit)
        error = EFBIG;
    else if (!(bytes = malloc((size_t)status.st_size + 1)))
        error = ENOMEM;
    else if (!read_bytes(file, bytes, (size_t)status.st_size))
        error = errno;
    close(file);
    if (error != 0) {
        free(bytes);
        errno = error;
        return NULL;
    }
    bytes[status.st_size] = '\0';
    *out_size = (size_t)status.st_size;
    if (out_stamp)
        *out_stamp = hdrt__stamp_of(&status);
    return bytes;
}
