/* SPDX-License-Identifier: MIT */
/*
 * For explanations only: which invocations of a source's name there were lately. A small entry of the store for each
 * name, with the keys of its latest manifests. Two writers at once may lose one's key.
 */
#ifndef HDRT_JIT_NAMES_H
#define HDRT_JIT_NAMES_H

#include "jit/store.h"

#define HDRT__NAMES_LIMIT 12u

/* The keys, newest first; how many. */
uint32_t hdrt__names_read(hdrt__store *store, uint32_t folder, const char *name, hdrt__digest keys[HDRT__NAMES_LIMIT]);
/* Puts a key in front. */
void hdrt__names_add(hdrt__store *store, const char *name, const hdrt__digest *key);
/* The name that an entry is for, malloc'ed; NULL if the bytes are damaged, with *out_reason. */
char *hdrt__names_name(const unsigned char *bytes, size_t size, hdrt_cache_reason *out_reason);

#endif
