/* SPDX-License-Identifier: MIT */
/*
 * What a compiler is, for the key: what all the files that make its output have in them (the program or library and
 * those it cannot do without, the device prelude, the worker that drives it). A file is told by its build identifier
 * and size, which the linker made from its content; one without is read whole. Where it lies and when it was installed
 * say nothing.
 */
#ifndef HDRT_JIT_IDENTITY_H
#define HDRT_JIT_IDENTITY_H

#include <hdrt.h>

#include "base/digest.h"
#include "jit/find.h"
#include "jit/memo.h"
#include "jit/store.h"

typedef struct hdrt__identity {
    hdrt__digest digest; /* of the lines */
    char *lines;         /* one for each file, for explanations; ended by a line end each */
    hdrt__memo_file *files; /* watched: what else would change the lines */
    uint32_t count, capacity;
} hdrt__identity;

/*
 * The identity of what was found. `worker`, `prelude` (a folder) and `recorder` may be NULL; so may `store`, which
 * keeps it for the next start as long as no file of it changes.
 * HDRT_OK; HDRT_ERROR_NO_COMPILER  a file of it cannot be looked at; HDRT_ERROR_OUT_OF_MEMORY.
 */
hdrt_status hdrt__identity_of(hdrt_compiler compiler, const hdrt__found *found, const char *worker, const char *prelude,
                              const char *recorder, hdrt__store *store, hdrt__identity *out);

/* Whether none of the files changed since. A few system calls, nothing is read. */
bool hdrt__identity_current(const hdrt__identity *identity);
void hdrt__identity_free(hdrt__identity *identity);

#endif
