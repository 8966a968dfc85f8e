/* SPDX-License-Identifier: MIT */
/*
 * Folders and files that must be ours alone before anything in them is used: opened without following links, looked at
 * through their descriptors, never by path again. For the store and what works on its folder.
 */
#ifndef HDRT_JIT_FOLDER_H
#define HDRT_JIT_FOLDER_H

#include <hdrt.h>

#include <sys/stat.h>

typedef enum hdrt__folder_use {
    HDRT__FOLDER_READ,      /* ours, to be there already */
    HDRT__FOLDER_MAKE,      /* ours, made (0700) if it is not there */
    HDRT__FOLDER_READ_ONLY, /* ours or root's: nothing will be written in it */
} hdrt__folder_use;

/*
 * Opens `name` in `parent` (AT_FDCWD for a path). -1 on failure: *why is then set, but for a folder that is not there
 * and was not to be made.
 */
int hdrt__folder_open(int parent, const char *name, hdrt__folder_use use, const char **why);

/* Makes the folders above a path's last part, which may be links and others'. Opening the last one tells what failed. */
void hdrt__folder_make_parents(const char *path);

/* Whether an opened file may be read: a plain one, nobody else's, that nobody else may write. */
bool hdrt__file_is_ours(const struct stat *status, hdrt__folder_use use);

/*
 * A file of `folder` whole, malloc'ed; NULL with *out_reason: HDRT_CACHE_NEW (not there), _TRUNCATED (empty),
 * _REFUSED (not ours, or larger than `limit`), _UNREADABLE. Never waits for a pipe. `touch`: note that it is used,
 * once an hour.
 */
unsigned char *hdrt__file_take(int folder, const char *name, hdrt__folder_use use, size_t limit, bool touch,
                               size_t *out_size, hdrt_cache_reason *out_reason);

/* The next `size` bytes of a descriptor; false if there are fewer or they cannot be read. */
bool hdrt__file_get(int file, void *bytes, size_t size);
/*
 * Writes all of it: 0 or an errno. Past the process's file size limit the kernel sends SIGXFSZ, whose default ends the
 * program: it is blocked for the time and, if it came from us, taken away again.
 */
int hdrt__file_put(int file, const void *bytes, size_t size);

#endif
