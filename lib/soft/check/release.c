/* SPDX-License-Identifier: MIT */
#include "soft/check/release.h"

#include <stdlib.h>

typedef struct released {
    struct released *next;
    uint64_t address;
    hdsoft__clock *clock;
} released;

static struct {
    released **buckets;
    size_t count, bucket_count; /* a power of two */
} all;

static released **bucket_of(uint64_t address, released **buckets, size_t count)
{
    return &buckets[((address >> 2) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (count - 1)];
}

static released *find(uint64_t address)
{
    released *at = all.count ? *bucket_of(address, all.buckets, all.bucket_count) : NULL;
    while (at && at->address != address)
        at = at->next;
    return at;
}

static bool grow(void)
{
    size_t count = all.bucket_count ? 2 * all.bucket_count : 256;
    released **buckets = calloc(count, sizeof *buckets);
    if (!buckets)
        return false;
    for (size_t i = 0; i < all.bucket_count; i++) {
        for (released *at = all.buckets[i], *next; at; at = next) {
            next = at->next;
            released **bucket = bucket_of(at->address, buckets, count);
            at->next = *bucket;
            *bucket = at;
        }
    }
    free(all.buckets);
    all.buckets = buckets;
    all.bucket_count = count;
    return true;
}

bool hdsoft__release(uint64_t address, hdsoft__clock *clock, bool more)
{
    released *at = find(address);
    if (at && more)
        return hdsoft__clock_join(&at->clock, clock);
    if (!at) {
        if (all.count >= all.bucket_count && !grow())
            return false;
        at = calloc(1, sizeof *at);
        if (!at)
            return false;
        released **bucket = bucket_of(address, all.buckets, all.bucket_count);
        at->address = address;
        at->next = *bucket;
        *bucket = at;
        all.count++;
    }
    hdsoft__clock_release(at->clock);
    at->clock = hdsoft__clock_hold(clock);
    return true;
}

hdsoft__clock *hdsoft__released(uint64_t address)
{
    const released *at = find(address);
    return at ? at->clock : NULL;
}

void hdsoft__release_forget(uint64_t base, uint64_t end)
{
    for (size_t i = 0; all.count && i < all.bucket_count; i++) {
        for (released **link = &all.buckets[i]; *link;) {
            released *at = *link;
            if (at->address < base || at->address >= end) {
                link = &at->next;
                continue;
            }
            *link = at->next;
            hdsoft__clock_release(at->clock);
            free(at);
            all.count--;
        }
    }
}
