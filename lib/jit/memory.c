/* SPDX-License-Identifier: MIT */
#include "jit/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/status.h"

/* Out of memory inside the hash table is told by the element's not being there. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define IMAGE_BYTES_LIMIT ((size_t)64 << 20)
#define KEY_LIMIT 1024u
#define REJECTED_LIMIT 32u

struct key_entry {
    hdrt__manifest manifest; /* first: what claimers get is turned back into the entry */
    bool claimed;
    unsigned waiting;
    UT_hash_handle hh;
};

struct image_entry {
    hdrt__digest name;
    hdrt__code *code; /* held */
    size_t bytes;
    UT_hash_handle hh;
};

struct hdrt__memory_cache {
    pthread_mutex_t lock; /* guards all of it; held for table operations only */
    pthread_cond_t released;
    struct key_entry *keys;     /* oldest first, as uthash keeps the order of insertion */
    struct image_entry *images; /* least recently used first */
    size_t image_bytes;
    hdrt__digest rejected[REJECTED_LIMIT]; /* a ring */
    uint32_t rejected_count;
};

hdrt_status hdrt__memory_cache_create(hdrt__memory_cache **out_cache)
{
    hdrt__memory_cache *cache = calloc(1, sizeof(*cache));
    *out_cache = cache;
    if (!cache)
        return hdrt__fail_memory(sizeof(*cache), "the memory cache");
    pthread_mutex_init(&cache->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&cache->released, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return HDRT_OK;
}

static void drop_key(hdrt__memory_cache *cache, struct key_entry *entry)
{
    HASH_DEL(cache->keys, entry);
    hdrt__manifest_free(&entry->manifest);
    free(entry);
}

static void drop_image(hdrt__memory_cache *cache, struct image_entry *entry)
{
    HASH_DEL(cache->images, entry);
    cache->image_bytes -= entry->bytes;
    hdrt__code_drop(entry->code);
    free(entry);
}

void hdrt__memory_cache_destroy(hdrt__memory_cache *cache)
{
    if (!cache)
        return;
    while (cache->keys)
        drop_key(cache, cache->keys);
    while (cache->images)
        drop_image(cache, cache->images);
    pthread_cond_destroy(&cache->released);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* Lets the oldest key go that nobody has or waits for. */
static void limit_keys(hdrt__memory_cache *cache)
{
    if (HASH_COUNT(cache->keys) < KEY_LIMIT)
        return;
    for (struct key_entry *entry = cache->keys; entry; entry = entry->hh.next)
        if (!entry->claimed && entry->waiting == 0) {
            drop_key(cache, entry);
            return;
        }
}

static struct key_entry *add_key(hdrt__memory_cache *cache, const hdrt__digest *key)
{
    limit_keys(cache);
    struct key_entry *entry = calloc(1, sizeof(*entry)), *found = NULL;
    if (!entry)
        return NULL;
    entry->manifest.key = *key;
    HASH_ADD(hh, cache->keys, manifest.key, sizeof(*key), entry);
    HASH_FIND(hh, cache->keys, key, sizeof(*key), found);
    if (!found)
        free(entry);
    return found;
}

hdrt__manifest *hdrt__memory_claim(hdrt__memory_cache *cache, const hdrt__digest *key, uint64_t deadline_ns)
{
    struct key_entry *entry = NULL;
    const struct timespec until = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                                   .tv_nsec = (long)(deadline_ns % 1000000000u)};
    bool late = false;
    pthread_mutex_lock(&cache->lock);
    HASH_FIND(hh, cache->keys, key, sizeof(*key), entry);
    if (!entry)
        entry = add_key(cache, key);
    while (entry && entry->claimed && !late) {
        entry->waiting++;
        late = pthread_cond_timedwait(&cache->released, &cache->lock, &until) == ETIMEDOUT;
        entry->waiting--;
    }
    if (entry && entry->claimed)
        entry = NULL;
    if (entry)
        entry->claimed = true;
    pthread_mutex_unlock(&cache->lock);
    return entry ? &entry->manifest : NULL;
}

void hdrt__memory_release(hdrt__memory_cache *cache, hdrt__manifest *manifest)
{
    struct key_entry *entry = (struct key_entry *)manifest;
    if (!entry)
        return;
    pthread_mutex_lock(&cache->lock);
    entry->claimed = false;
    pthread_cond_broadcast(&cache->released);
    pthread_mutex_unlock(&cache->lock);
}

hdrt__code *hdrt__memory_image(hdrt__memory_cache *cache, const hdrt__digest *name)
{
    struct image_entry *entry = NULL;
    hdrt__code *code = NULL;
    pthread_mutex_lock(&cache->lock);
    HASH_FIND(hh, cache->images, name, sizeof(*name), entry);
    if (entry) {
        code = hdrt__code_hold(entry->code);
        HASH_DEL(cache->images, entry); /* to the end of the order */
        HASH_ADD(hh, cache->images, name, sizeof(*name), entry);
        if (!entry->hh.tbl) { /* memory is out: it is in no table now */
            cache->image_bytes -= entry->bytes;
            hdrt__code_drop(entry->code);
            free(entry);
        }
    }
    pthread_mutex_unlock(&cache->lock);
    return code;
}

void hdrt__memory_keep(hdrt__memory_cache *cache, hdrt__code *code)
{
    struct image_entry *entry = NULL, *there = NULL;
    size_t bytes = hdrt__code_bytes(code);
    if (bytes > IMAGE_BYTES_LIMIT / 4 || !(entry = calloc(1, sizeof(*entry))))
        return;
    *entry = (struct image_entry){.name = code->name, .code = code, .bytes = bytes};
    pthread_mutex_lock(&cache->lock);
    HASH_FIND(hh, cache->images, &code->name, sizeof(code->name), there);
    if (!there) {
        while (cache->images && cache->image_bytes + bytes > IMAGE_BYTES_LIMIT)
            drop_image(cache, cache->images);
        HASH_ADD(hh, cache->images, name, sizeof(entry->name), entry);
        if (entry->hh.tbl) {
            hdrt__code_hold(code);
            cache->image_bytes += bytes;
            entry = NULL;
        }
    }
    pthread_mutex_unlock(&cache->lock);
    free(entry);
}

void hdrt__memory_reject(hdrt__memory_cache *cache, const hdrt__digest *name)
{
    struct image_entry *entry = NULL;
    pthread_mutex_lock(&cache->lock);
    cache->rejected[cache->rejected_count++ % REJECTED_LIMIT] = *name;
    HASH_FIND(hh, cache->images, name, sizeof(*name), entry);
    if (entry)
        drop_image(cache, entry);
    pthread_mutex_unlock(&cache->lock);
}

bool hdrt__memory_rejected(hdrt__memory_cache *cache, const hdrt__digest *name)
{
    bool found = false;
    pthread_mutex_lock(&cache->lock);
    for (uint32_t i = 0; i < cache->rejected_count && i < REJECTED_LIMIT && !found; i++)
        found = hdrt__digest_equal(&cache->rejected[i], name);
    pthread_mutex_unlock(&cache->lock);
    return found;
}
