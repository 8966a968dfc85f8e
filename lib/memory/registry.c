/* SPDX-License-Identifier: MIT */
#include "memory/registry.h"

#include <stdlib.h>

#include "base/number.h"
#include "base/status.h"
#include "device/device.h"

typedef struct registry {
    pthread_mutex_t lock;
    hdrt__range *roots[2]; /* device, host */
    uint32_t random;
    uint64_t serials;
} registry;

static void *registry_create(void *argument)
{
    (void)argument;
    registry *made = calloc(1, sizeof *made);
    if (!made) {
        hdrt__fail_memory(sizeof *made, "the registry of memory");
        return NULL;
    }
    pthread_mutex_init(&made->lock, NULL);
    made->random = 2463534242u;
    return made;
}

static void registry_destroy(void *state)
{
    registry *ending = state; /* empty: each device has taken its ranges out */
    pthread_mutex_destroy(&ending->lock);
    free(ending);
}

static registry *registry_of(hdrt_runtime *runtime)
{
    return hdrt__attachment_get(&runtime->memory, &runtime->lock, registry_create, NULL, registry_destroy);
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

/* The range with the highest beginning not above `address`. */
static hdrt__range *tree_at(hdrt__range *root, uint64_t address)
{
    hdrt__range *best = NULL;
    while (root) {
        if (root->address <= address) {
            best = root;
            root = root->higher;
        } else {
            root = root->lower;
        }
    }
    return best;
}

/* Cut a tree in what begins below `address` and the rest. */
static void tree_split(hdrt__range *root, uint64_t address, hdrt__range **lower, hdrt__range **higher)
{
    while (root) {
        if (root->address < address) {
            *lower = root;
            lower = &root->higher;
            root = root->higher;
        } else {
            *higher = root;
            higher = &root->lower;
            root = root->lower;
        }
    }
    *lower = NULL;
    *higher = NULL;
}

static hdrt__range *tree_join(hdrt__range *lower, hdrt__range *higher)
{
    hdrt__range *root, **link = &root;
    while (lower && higher) {
        if (lower->priority >= higher->priority) {
            *link = lower;
            link = &lower->higher;
            lower = lower->higher;
        } else {
            *link = higher;
            link = &higher->lower;
            higher = higher->lower;
        }
    }
    *link = lower ? lower : higher;
    return root;
}

static void tree_insert(hdrt__range **root, hdrt__range *range)
{
    while (*root && (*root)->priority >= range->priority) {
        root = range->address < (*root)->address ? &(*root)->lower : &(*root)->higher;
    }
    tree_split(*root, range->address, &range->lower, &range->higher);
    *root = range;
}

static void tree_remove(hdrt__range **root, hdrt__range *range)
{
    while (*root != range) {
        root = range->address < (*root)->address ? &(*root)->lower : &(*root)->higher;
    }
    *root = tree_join(range->lower, range->higher);
}

/* ---- entering and taking out ------------------------------------------------------------------------------------- */

static uint32_t next_random(registry *of)
{
    of->random ^= of->random << 13;
    of->random ^= of->random >> 17;
    of->random ^= of->random << 5;
    return of->random;
}

/* Under the lock: a range that has a byte in common with these. */
static hdrt__range *overlapping(hdrt__range *root, uint64_t address, uint64_t bytes)
{
    hdrt__range *range = tree_at(root, address + bytes - 1);
    return range && range->address + range->bytes > address ? range : NULL;
}

hdrt_status hdrt__registry_add(hdrt_device *device, hdrt__range_kind kind, uint64_t address, uint64_t bytes)
{
    registry *of = registry_of(device->runtime);
    if (!of) {
        return HDRT_ERROR_OUT_OF_MEMORY;
    }
    hdrt__range *range = calloc(1, sizeof *range);
    if (!range) {
        return hdrt__fail_memory(sizeof *range, "the record of a memory range");
    }
    range->address = address;
    range->bytes = bytes;
    range->kind = kind;
    range->device = device;
    pthread_mutex_lock(&of->lock);
    hdrt__range **root = &of->roots[hdrt__range_is_host(kind)];
    hdrt__range *other = overlapping(*root, address, bytes);
    uint64_t other_address = other ? other->address : 0, other_bytes = other ? other->bytes : 0;
    if (!other) {
        range->priority = next_random(of);
        range->serial = ++of->serials;
        tree_insert(root, range);
    }
    pthread_mutex_unlock(&of->lock);
    if (other) {
        free(range);
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "%llu bytes at 0x%llx overlap the %llu bytes at 0x%llx that are known already",
                          (unsigned long long)bytes, (unsigned long long)address, (unsigned long long)other_bytes,
                          (unsigned long long)other_address);
    }
    return HDRT_OK;
}

hdrt__range *hdrt__registry_take(hdrt_device *device, hdrt__range_kind kind, uint64_t address)
{
    registry *of = registry_of(device->runtime);
    if (!of) {
        return NULL;
    }
    pthread_mutex_lock(&of->lock);
    hdrt__range **root = &of->roots[hdrt__range_is_host(kind)];
    hdrt__range *range = tree_at(*root, address);
    if (range && range->address == address && range->kind == kind && range->device == device) {
        tree_remove(root, range);
    } else {
        range = NULL;
    }
    pthread_mutex_unlock(&of->lock);
    return range;
}

void hdrt__registry_restore(hdrt__range *range)
{
    registry *of = registry_of(range->device->runtime); /* it is there: the range came from it */
    pthread_mutex_lock(&of->lock);
    tree_insert(&of->roots[hdrt__range_is_host(range->kind)], range);
    pthread_mutex_unlock(&of->lock);
}

void hdrt__range_free(hdrt__range *range)
{
    if (range) {
        hdrt__uses_free(&range->uses);
        free(range);
    }
}

/* Depth first; trees are as deep as a logarithm of what they hold. */
static hdrt__range *tree_find_device(hdrt__range *root, const hdrt_device *device)
{
    while (root) {
        if (root->device == device) {
            return root;
        }
        hdrt__range *found = tree_find_device(root->lower, device);
        if (found) {
            return found;
        }
        root = root->higher;
    }
    return NULL;
}

hdrt__range *hdrt__registry_take_any(hdrt_device *device)
{
    registry *of = atomic_load(&device->runtime->memory.state);
    hdrt__range *range = NULL;
    if (!of) {
        return NULL;
    }
    pthread_mutex_lock(&of->lock);
    for (int i = 0; i < 2 && !range; i++) {
        range = tree_find_device(of->roots[i], device);
        if (range) {
            tree_remove(&of->roots[i], range);
        }
    }
    pthread_mutex_unlock(&of->lock);
    return range;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* Under the lock. */
static hdrt__range *holding(registry *of, bool host, uint64_t address)
{
    hdrt__range *range = tree_at(of->roots[host], address);
    return range && address - range->address < range->bytes ? range : NULL;
}

bool hdrt__registry_find(hdrt_runtime *runtime, bool host, uint64_t address, hdrt__place *out_place)
{
    registry *of = atomic_load(&runtime->memory.state);
    if (!of) {
        return false;
    }
    pthread_mutex_lock(&of->lock);
    const hdrt__range *range = holding(of, host, address);
    if (range) {
        *out_place = (hdrt__place){range->address, range->bytes, range->serial, range->kind, range->device->context};
    }
    pthread_mutex_unlock(&of->lock);
    return range != NULL;
}

hdrt_status hdrt__registry_use(hdrt_runtime *runtime, const void *address, hdrt_event event)
{
    registry *of = atomic_load(&runtime->memory.state);
    hdrt_status status = HDRT_OK;
    if (!of) {
        return HDRT_OK;
    }
    pthread_mutex_lock(&of->lock);
    hdrt__range *range = holding(of, true, (uint64_t)(uintptr_t)address);
    if (range) {
        status = hdrt__uses_add(&range->uses, runtime, event);
    }
    pthread_mutex_unlock(&of->lock);
    return status;
}
