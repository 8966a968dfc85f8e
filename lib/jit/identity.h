/* SPDX-License-Identifier: MIT */
/*
 * What a compiler is, for the key: the real paths, sizes and times of all the files that make its output (the program
 * or library and those it cannot do without), the content of the device prelude, and the worker that drives it.
 */
#ifndef HDRT_JIT_IDENTITY_H
#define HDRT_JIT_IDENTITY_H

#include <hdrt.h>

#include "base/digest.h"
#include "jit/find.h"
#include "jit/stamp.h"

typedef struct hdrt__identity_file {
    char *path;
    hdrt__stamp stamp;
} hdrt__identity_file;

typedef struct hdrt__identity {
    hdrt__digest digest;
    hdrt__identity_file *files;
    uint32_t count, capacity;
} hdrt__identity;

/*
 * The identity of what was found. `worker`, `prelude` (a folder) and `recorder` may be NULL.
 * HDRT_OK; HDRT_ERROR_NO_COMPILER  a file of it cannot be looked at; HDRT_ERROR_OUT_OF_MEMORY.
 */
hdrt_status hdrt__identity_of(hdrt_compiler compiler, const hdrt__found *found, const char *worker, const char *prelude,
                              const char *recorder, hdrt__identity *out);

/* Whether none of the files changed since. A few system calls, nothing is read. */
bool hdrt__identity_current(const hdrt__identity *identity);
void hdrt__identity_free(hdrt__identity *identity);

#endif
