/* SPDX-License-Identifier: MIT */
/*
 * The files that a compile read and those it looked for in vain, packed for manifests: grouped by folder, so that a
 * look costs one short status call for each file read, and one for each folder where nothing was found. A folder's own
 * times tell that nothing has come into it, on file systems that are known to keep them.
 *
 * Used on every look-up: checks in place, allocates nothing. The bytes come out of an entry whose checksum was right;
 * they are bounds-checked all the same.
 */
#ifndef HDRT_JIT_FILES_H
#define HDRT_JIT_FILES_H

#include <hdrt.h>

#include "jit/record.h"

typedef struct hdrt__files {
    unsigned char *bytes;
    size_t size;
    void *block; /* owned: what the bytes lie in, often themselves */
} hdrt__files;

/*
 * Pack a settled record. `when_ns`: a folder changed around then is not trusted yet. false: out of memory, or a path
 * that cannot be kept. The folders' stamps are taken first, the absent paths looked for again after that.
 */
bool hdrt__files_pack(const hdrt__record *record, uint64_t when_ns, hdrt__files *out);
bool hdrt__files_copy(const hdrt__files *files, hdrt__files *out);
void hdrt__files_free(hdrt__files *files);
/* Whether the bytes can be walked without an error: to be asked of bytes that were just read. */
bool hdrt__files_valid(const hdrt__files *files);

/*
 * Whether all is as it was: HDRT_CACHE_HIT, or HDRT_CACHE_FILE_CHANGED, _GONE, _APPEARED with the path appended to
 * `path` (unless NULL). A file or folder whose stamp differs is looked at closely; if nothing changed, its stamp is
 * brought up to date and *out_refreshed set, so that the next look is cheap again.
 */
hdrt_cache_reason hdrt__files_current(hdrt__files *files, bool *out_refreshed, hdrt__buffer *path);

/* Whether the file system of a folder changes its times whenever a name comes into it or leaves it. */
bool hdrt__folders_tell(const char *path);

/* Every file: `digest` NULL for one that was looked for in vain. Paths are valid during the call. */
typedef void (*hdrt__files_visitor)(void *context, const char *path, const hdrt__digest *digest);
void hdrt__files_each(const hdrt__files *files, hdrt__files_visitor visitor, void *context);
void hdrt__files_count(const hdrt__files *files, uint32_t *out_read, uint32_t *out_absent);

#endif
