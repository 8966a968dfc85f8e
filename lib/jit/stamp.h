/* SPDX-License-Identifier: MIT */
/*
 * What a file's status says about its content: the fields that change when it does, and the content's digest. Used for
 * headers (manifests) and for compilers and their libraries (identity).
 */
#ifndef HDRT_JIT_STAMP_H
#define HDRT_JIT_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"

typedef struct hdrt__stamp {
    uint64_t size, mtime_ns, ctime_ns, device, inode;
} hdrt__stamp;

struct stat;
hdrt__stamp hdrt__stamp_of(const struct stat *status);
/* Of the regular file that `path` leads to; false if there is none. */
bool hdrt__stamp_file(const char *path, hdrt__stamp *out);
bool hdrt__stamp_equal(const hdrt__stamp *a, const hdrt__stamp *b);

/* CLOCK_REALTIME in nanoseconds, to be compared with files' times. */
uint64_t hdrt__wall_ns(void);

/*
 * Whether a file with this stamp could have changed around `when_ns` without the stamp showing it: file times move in
 * steps (of milliseconds here, of two seconds elsewhere), so that two writes can have one time.
 */
bool hdrt__stamp_racy(const hdrt__stamp *stamp, uint64_t when_ns);

/*
 * Read a regular file whole: malloc'ed with a NUL behind; NULL if it cannot be (errno), is no regular file (EINVAL) or
 * is larger than `limit` (EFBIG). Never waits for a pipe. *out_stamp, if not NULL, is of the file that was opened.
 */
unsigned char *hdrt__file_read(const char *path, size_t limit, size_t *out_size, hdrt__stamp *out_stamp);
#define HDRT__HEADER_LIMIT ((size_t)256 << 20)

#endif
