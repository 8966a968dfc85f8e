/* SPDX-License-Identifier: MIT */
#include "soft/model/pool.h"

#include <stdlib.h>

/* The step in which an H200's pool takes memory from the device. */
#define STEP ((uint64_t)32 << 20)

hdsoft__pool *hdsoft__pool_create(hdsoft__device *device, bool is_default)
{
    hdsoft__pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->device = device;
    pool->is_default = is_default;
    pool->reuse[0] = pool->reuse[1] = pool->reuse[2] = 1;
    if (!hdsoft__handle_add(pool, HDSOFT__POOL)) {
        free(pool);
        return NULL;
    }
    pool->next = hdsoft__the.pools;
    hdsoft__the.pools = pool;
    return pool;
}

static void free_pool(hdsoft__pool *pool)
{
    hdsoft__pool **link = &hdsoft__the.pools;
    while (*link != pool)
        link = &(*link)->next;
    *link = pool->next;
    free(pool);
}

void hdsoft__pool_destroy(hdsoft__pool *pool)
{
    hdsoft__handle_remove(pool);
    pool->destroyed = true;
    if (pool->device->current_pool == pool)
        pool->device->current_pool = pool->device->default_pool;
    if (!pool->live)
        free_pool(pool);
}

void hdsoft__pool_took(hdsoft__pool *pool, uint64_t bytes)
{
    pool->live++;
    pool->used += bytes;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    uint64_t wanted = (pool->used + STEP - 1) / STEP * STEP;
    if (wanted > pool->reserved)
        pool->reserved = wanted;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
}

void hdsoft__pool_trim(hdsoft__pool *pool, uint64_t keep)
{
    uint64_t least = (pool->used + STEP - 1) / STEP * STEP;
    uint64_t kept = keep > UINT64_MAX - STEP ? keep : (keep + STEP - 1) / STEP * STEP;
    kept = kept > least ? kept : least;
    if (pool->reserved > kept)
        pool->reserved = kept;
}

void hdsoft__pool_gave(hdsoft__pool *pool, uint64_t bytes)
{
    pool->live--;
    pool->used -= bytes;
    hdsoft__pool_trim(pool, pool->threshold);
    if (pool->destroyed && !pool->live)
        free_pool(pool);
}

int hdsoft__pool_get(const hdsoft__pool *pool, unsigned attribute, void *value)
{
    switch (attribute) {
    case HDCU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case HDCU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case HDCU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = (int)pool->reuse[attribute - 1];
        return 0;
    case HDCU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(uint64_t *)value = pool->threshold; return 0;
    case HDCU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *(uint64_t *)value = pool->reserved; return 0;
    case HDCU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *(uint64_t *)value = pool->reserved_high; return 0;
    case HDCU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(uint64_t *)value = pool->used; return 0;
    case HDCU_MEMPOOL_ATTR_USED_MEM_HIGH: *(uint64_t *)value = pool->used_high; return 0;
    default: return HDCU_ERROR_INVALID_VALUE;
    }
}

int hdsoft__pool_set(hdsoft__pool *pool, unsigned attribute, const void *value)
{
    switch (attribute) {
    case HDCU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case HDCU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case HDCU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool->reuse[attribute - 1] = *(const int *)value != 0;
        return 0;
    case HDCU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold = *(const uint64_t *)value; return 0;
    case HDCU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case HDCU_MEMPOOL_ATTR_USED_MEM_HIGH:
        /* The high-water marks may only be reset, to what is there now. */
        if (*(const uint64_t *)value)
            return HDCU_ERROR_INVALID_VALUE;
        if (attribute == HDCU_MEMPOOL_ATTR_USED_MEM_HIGH)
            pool->used_high = pool->used;
        else
            pool->reserved_high = pool->reserved;
        return 0;
    default: return HDCU_ERROR_INVALID_VALUE;
    }
}
