/* SPDX-License-Identifier: MIT */
/*
 * Memory pools: numbers only. Addresses come from the device's memory like all others; a pool counts what is used and
 * pretends to keep what was freed until its release threshold or a trim says otherwise. Everything here is called
 * under the driver's lock.
 */
#ifndef HDSOFT_MODEL_POOL_H
#define HDSOFT_MODEL_POOL_H

#include "soft/model/driver.h"

hdsoft__pool *hdsoft__pool_create(hdsoft__device *device, bool is_default); /* NULL: out of memory */
/* The handle dies at once; the pool when its last allocation does. */
void hdsoft__pool_destroy(hdsoft__pool *pool);
void hdsoft__pool_took(hdsoft__pool *pool, uint64_t bytes);
void hdsoft__pool_gave(hdsoft__pool *pool, uint64_t bytes);
void hdsoft__pool_trim(hdsoft__pool *pool, uint64_t keep);
/* 0 or 1 (no such attribute, or one that cannot be set so). */
int hdsoft__pool_get(const hdsoft__pool *pool, unsigned attribute, void *value);
int hdsoft__pool_set(hdsoft__pool *pool, unsigned attribute, const void *value);

#endif
