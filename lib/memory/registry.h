/* SPDX-License-Identifier: MIT */
/*
 * The registry: which addresses the library knows, per runtime, so that ranges can be checked before the driver sees
 * them, a double free is told, and pinned memory is told from pageable. The queue's operations ask it; allocations and
 * the jit's symbols enter what they make. Device and host ranges are kept apart.
 *
 * Lock: the registry's own, a leaf but for what hdrt__uses_add asks of a timeline; no driver call under it.
 */
#ifndef HDRT_MEMORY_REGISTRY_H
#define HDRT_MEMORY_REGISTRY_H

#include <hdrt.h>

#include "device/deferred.h"
#include "driver/cuda_abi.h"

typedef enum hdrt__range_kind {
    HDRT__RANGE_ALLOCATED,  /* device memory of hdrt_alloc */
    HDRT__RANGE_SYMBOL,     /* a module's global or constant variable */
    HDRT__RANGE_PINNED,     /* host memory of hdrt_host_alloc */
    HDRT__RANGE_REGISTERED, /* host memory of hdrt_host_register */
} hdrt__range_kind;

static inline bool hdrt__range_is_host(hdrt__range_kind kind)
{
    return kind == HDRT__RANGE_PINNED || kind == HDRT__RANGE_REGISTERED;
}

typedef struct hdrt__range {
    uint64_t address, bytes;
    uint64_t serial; /* that no other range of the runtime has; from 1 */
    hdrt__range_kind kind;
    hdrt_device *device; /* not held: ranges go before their device does */
    hdrt__uses uses;     /* of host ranges: what operations in flight use them until */
    hdrt__deferred deferred; /* for its freeing, once it is out of the registry */
    struct hdrt__range *lower, *higher; /* the tree's: a treap by address */
    uint32_t priority;
} hdrt__range;

/* Enter a range. HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY, HDRT_ERROR_INVALID_ARGUMENT (overlaps one that is there). */
hdrt_status hdrt__registry_add(hdrt_device *device, hdrt__range_kind kind, uint64_t address, uint64_t bytes);

/*
 * Take out the range that begins at `address`, if it is of this kind and device. \return it, the caller's to free with
 * hdrt__range_free; NULL if there is none.
 */
hdrt__range *hdrt__registry_take(hdrt_device *device, hdrt__range_kind kind, uint64_t address);
/* Put back what was taken a moment ago. */
void hdrt__registry_restore(hdrt__range *range);
void hdrt__range_free(hdrt__range *range);

/* Take out any range of the device, host or not; NULL when there is none left. For the device's end. */
hdrt__range *hdrt__registry_take_any(hdrt_device *device);

/* Where an address lies. */
typedef struct hdrt__place {
    uint64_t address, bytes; /* the range */
    uint64_t serial;
    hdrt__range_kind kind;
    hdcu_context context; /* its device's */
} hdrt__place;

/* Whether a device (or host) range holds the byte at `address`. */
bool hdrt__registry_find(hdrt_runtime *runtime, bool host, uint64_t address, hdrt__place *out_place);

/* Note that the host range that holds `address`, if there is one, is used until `event`. \return HDRT_OK,
 * HDRT_ERROR_OUT_OF_MEMORY. */
hdrt_status hdrt__registry_use(hdrt_runtime *runtime, const void *address, hdrt_event event);

#endif
