/* SPDX-License-Identifier: MIT */
/*
 * Where the dynamic loader would find a shared library, without loading it: NVRTC must not be opened in the
 * application's process, and clang's libraries belong to its identity.
 */
#ifndef HDRT_JIT_LOADER_CACHE_H
#define HDRT_JIT_LOADER_CACHE_H

#include <stddef.h>

#include "base/buffer.h"

/*
 * The path of library `name` in the bytes of an ld.so.cache (glibc's format, for this machine's kind of code);
 * malloc'ed, NULL if it is not in it or the bytes are damaged.
 */
char *hdrt__loader_cache_find(const unsigned char *cache, size_t size, const char *name);

/* /etc/ld.so.cache read whole, malloc'ed; NULL if there is none. */
unsigned char *hdrt__loader_cache_read(size_t *out_size);

/* Folders that the loader looks into after its cache, ended by NULL. */
extern const char *const hdrt__loader_folders[];

/*
 * Libraries that an ELF file asks for (DT_NEEDED), whose names begin with one of `prefixes` (ended by NULL), found as
 * the loader would without LD_LIBRARY_PATH: its DT_RUNPATH or DT_RPATH, the cache, the default folders. Each real path
 * is appended to `paths` with its NUL; one that is not found is appended by its bare name.
 */
void hdrt__elf_needed(const char *path, const char *const *prefixes, hdrt__buffer *paths);

#endif
