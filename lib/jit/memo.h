/* SPDX-License-Identifier: MIT */
/*
 * What was found out about files and holds as long as their status stays as it is: a text, kept in the store with the
 * stamps of all the files that it was made from. Spares reading compilers and the device prelude at each start.
 */
#ifndef HDRT_JIT_MEMO_H
#define HDRT_JIT_MEMO_H

#include "jit/stamp.h"
#include "jit/store.h"

typedef struct hdrt__memo_file {
    char *path;        /* absolute; links are followed */
    hdrt__stamp stamp; /* of a file or folder; all zeros: nothing is there */
} hdrt__memo_file;

/* The text of an entry whose files are all as they were, malloc'ed, or NULL. The files are malloc'ed with it. */
char *hdrt__memo_read(hdrt__store *store, const hdrt__digest *name, hdrt__memo_file **out_files, uint32_t *out_count);
/* Keeps a text; not if one of the files is so young that its stamp would not tell a change. */
void hdrt__memo_write(hdrt__store *store, const hdrt__digest *name, const char *text, const hdrt__memo_file *files,
                      uint32_t count);
void hdrt__memo_files_free(hdrt__memo_file *files, uint32_t count);

/* The stamp of what is at a path now, a file or folder; zeros if nothing is. */
hdrt__stamp hdrt__memo_stamp(const char *path);
bool hdrt__memo_current(const char *path, const hdrt__stamp *stamp);

/* Whether bytes are an undamaged memo of that name. */
hdrt_cache_reason hdrt__memo_check(const unsigned char *bytes, size_t size, const hdrt__digest *name);

#endif
