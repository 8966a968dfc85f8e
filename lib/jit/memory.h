/* SPDX-License-Identifier: MIT */
/*
 * The cache inside the process: manifests by key and images by name, so that a second compile of the same source
 * touches the headers' stamps and nothing else. It also lets one thread at a time work on one key: eight threads that
 * want the same kernel compile it once.
 *
 * Bounded: the oldest images and keys go when there are too many.
 */
#ifndef HDRT_JIT_MEMORY_H
#define HDRT_JIT_MEMORY_H

#include <hdrt.h>

#include "jit/image.h"
#include "jit/manifest.h"

typedef struct hdrt__memory_cache hdrt__memory_cache;

hdrt_status hdrt__memory_cache_create(hdrt__memory_cache **out_cache);
void hdrt__memory_cache_destroy(hdrt__memory_cache *cache);

/*
 * Claim a key, waiting while another thread has it; the manifest (empty at first) is the claimer's until the release.
 * NULL if memory is out, or the deadline (of hdrt__now_ns) passed: go on without.
 */
hdrt__manifest *hdrt__memory_claim(hdrt__memory_cache *cache, const hdrt__digest *key, uint64_t deadline_ns);
void hdrt__memory_release(hdrt__memory_cache *cache, hdrt__manifest *manifest);

/* The image of that name, held for the caller, or NULL. */
hdrt__code *hdrt__memory_image(hdrt__memory_cache *cache, const hdrt__digest *name);
/* Keep an image (held once more) as long as there is room. */
void hdrt__memory_keep(hdrt__memory_cache *cache, hdrt__code *code);
/* Forget an image that the driver did not take, and remember that it did not. */
void hdrt__memory_reject(hdrt__memory_cache *cache, const hdrt__digest *name);
bool hdrt__memory_rejected(hdrt__memory_cache *cache, const hdrt__digest *name);

#endif
