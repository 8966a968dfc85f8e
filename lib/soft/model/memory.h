/* SPDX-License-Identifier: MIT */
/*
 * The model's side of hdsoft_memory.h: who owns a range, and whether the stream that allocates it has got there. There
 * is one hdsoft_memory per device, and one without addresses of its own that holds the host
 * memory which devices may touch (pinned or registered); every device's points to it.
 *
 * Locks: a table's rwlock guards its ranges and is a leaf. The host table's `use` lock is held shared by whoever reads
 * or writes bytes of host ranges on behalf of a device, and exclusively by those who unmap them.
 */
#ifndef HDSOFT_MODEL_MEMORY_H
#define HDSOFT_MODEL_MEMORY_H

#include "soft/check/site.h"
#include "soft/model/hdsoft_memory.h"

typedef enum hdsoft__range_state {
    HDSOFT__RANGE_LIVE = 1,
    HDSOFT__RANGE_PENDING, /* cuMemAllocAsync returned it; its stream has not got there */
} hdsoft__range_state;

typedef struct hdsoft__allocation {
    hdsoft_range range;
    hdsoft__range_state state;
    bool freeing;            /* cuMemFreeAsync is on its way */
    bool registered;         /* host memory of the caller's */
    unsigned flags;          /* of cuMemHostAlloc or cuMemHostRegister */
    void *owner;             /* the context, or NULL */
    void *pool;              /* its pool if it is stream-ordered */
    uint64_t birth;          /* number of the last command enqueued before it was made */
    uint64_t block, block_bytes, charge; /* its addresses, and the bytes that count as used; 0: they left already */
    const hdsoft__site *made, *freed; /* where, while checks are on */
} hdsoft__allocation;

/*
 * A free that is enqueued and not done. What it will give back, bytes and addresses, an allocation enqueued later in
 * the same stream may take over at once, for that one comes about only when this free is done. So a stream never needs
 * more than what is in use at one time in its own order. Guarded by the driver's lock.
 */
typedef struct hdsoft__leaving {
    struct hdsoft__leaving *next, *previous;
    struct hdsoft__leaving_list *list; /* NULL: all was taken over */
    hdsoft_memory *memory;
    hdsoft_range range;
    uint64_t charge, block, block_bytes; /* what is not taken over */
    const hdsoft__site *made, *freed;
    uint64_t *counter, counted;          /* its share in a pool's count, less what was taken over */
} hdsoft__leaving;

/* One stream's, in order. */
typedef struct hdsoft__leaving_list {
    hdsoft__leaving *first, *last;
    uint64_t charge;
} hdsoft__leaving_list;

/* A device's memory of `total` bytes, or with total 0 and hosts NULL the table of host memory. Returns NULL when the
 * system has no memory or no addresses for it. */
hdsoft_memory *hdsoft__memory_create(uint64_t total, hdsoft_memory *hosts);
/* How much of it kernels' malloc may have at a time: CU_LIMIT_MALLOC_HEAP_SIZE, at first 8 MiB. Thread-safe. */
void hdsoft__memory_limit_heap(hdsoft_memory *memory, uint64_t bytes);
void hdsoft__memory_destroy(hdsoft_memory *memory);

uint64_t hdsoft__memory_used(hdsoft_memory *memory);
uint64_t hdsoft__memory_total(const hdsoft_memory *memory);
/* Bytes taken by other things than ranges (a context, a stream), which count as used; false: there are not so many. */
bool hdsoft__memory_charge(hdsoft_memory *memory, uint64_t bytes);
void hdsoft__memory_uncharge(hdsoft_memory *memory, uint64_t bytes);

/* A device's addresses, allocated or not. */
void hdsoft__memory_window(const hdsoft_memory *memory, uint64_t *base, uint64_t *bytes);
/* Whether the address lies in this device's window, allocated or not. */
bool hdsoft__memory_is_device(const hdsoft_memory *memory, uint64_t address);
/* Let kernels and copies of this device follow addresses of `peer`. */
void hdsoft__memory_set_peer(hdsoft_memory *memory, hdsoft_memory *peer, unsigned ordinal, bool reachable);

/* Device memory of kind DEVICE with an owner, state, pool and birth from `like`; a PENDING range is seen by no kernel
 * until it is activated. Such a one may take over from `leaving`, the frees ahead of it in its stream; NULL: it may
 * not. Returns 0 or 2. */
int hdsoft__memory_take(hdsoft_memory *memory, uint64_t size, const hdsoft__allocation *like,
                        hdsoft__leaving_list *leaving, hdsoft_range *out);
/* Free a range of that table at once; nothing happens if it is gone. */
void hdsoft__memory_remove(hdsoft_memory *memory, const hdsoft__allocation *allocation);
/* Host memory: mapped by us, or the caller's own (registered); owner, flags and birth from `like`. Returns 0, 2, or
 * 712 (already registered). */
int hdsoft__memory_map_host(hdsoft_memory *hosts, uint64_t size, const hdsoft__allocation *like, void **out);
int hdsoft__memory_register_host(hdsoft_memory *hosts, void *at, uint64_t size, const hdsoft__allocation *like);
/* Remove a host range and, if it was mapped by us, unmap it. No device touches its bytes after the return. */
void hdsoft__memory_unmap_host(hdsoft_memory *hosts, uint64_t base);

/* The range that holds `address`, whatever its state, in this table only; if two do, one being freed and one that took
 * its addresses over, the latter. */
bool hdsoft__memory_lookup(hdsoft_memory *memory, uint64_t address, hdsoft__allocation *out);
/* What hdsoft_memory_explain speaks of, for those who tell where it was made; false: of no range. *gone: it was freed. */
bool hdsoft__memory_neighbour(hdsoft_memory *memory, uint64_t address, hdsoft__allocation *out, bool *gone);
/* The first range at or above `from` that `owner` owns, then any that waits for addresses it took over. */
bool hdsoft__memory_next_owned(hdsoft_memory *memory, const void *owner, uint64_t from, hdsoft__allocation *out);
/* PENDING to LIVE, its bytes fresh. */
void hdsoft__memory_activate(hdsoft_memory *memory, const hdsoft_range *range);
/* LIVE to PENDING. */
void hdsoft__memory_suspend(hdsoft_memory *memory, uint64_t base);
/* Claim a range for one cuMemFreeAsync; false if it is claimed already, or not there. */
bool hdsoft__memory_claim_free(hdsoft_memory *memory, uint64_t base);
/* The free of a claimed range could not be enqueued. */
void hdsoft__memory_unclaim_free(hdsoft_memory *memory, const hdsoft_range *range);
/* The free of leaving->range, claimed, is enqueued: what it holds goes over to `leaving`, the last of `list`. */
void hdsoft__memory_leave(hdsoft_memory *memory, hdsoft__leaving_list *list, hdsoft__leaving *leaving);
/* The stream got to the free: no kernel sees the range any more. Needs no lock of the driver's. */
void hdsoft__memory_vacate(hdsoft_memory *memory, const hdsoft_range *range);
/* After vacate: give back what nobody took over. */
void hdsoft__memory_left(hdsoft__leaving *leaving);

void hdsoft__memory_use_begin(hdsoft_memory *hosts);
void hdsoft__memory_use_end(hdsoft_memory *hosts);

#endif
