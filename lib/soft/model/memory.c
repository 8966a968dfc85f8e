/* SPDX-License-Identifier: MIT */
#include "soft/model/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "soft/check/check.h"
#include "soft/model/address_space.h"

/* Everything is a multiple of it, and that much lies between any two allocations. */
#define GRAIN ((uint64_t)512)
#define BIG ((uint64_t)2 << 20)
/* While accesses are checked, as much as the allocation itself lies behind it, up to this, so that who overruns it does
 * not land in the next one. */
#define MOST_GAP ((uint64_t)1 << 20)
#define PEERS 8
#define HEAP_STEP 16 /* what a block of the device heap is rounded up to */
/* Freed blocks whose addresses are not given out again yet. */
#define QUARANTINE 1024

typedef struct freed_block {
    hdsoft_range range;
    uint64_t block, block_bytes;
    const hdsoft__site *made, *freed;
} freed_block;

/* A PENDING range whose addresses are still those of ranges being freed ahead of it in its stream. */
typedef struct successor {
    struct successor *next, *previous;
    hdsoft__allocation allocation;
} successor;

struct hdsoft_memory {
    pthread_rwlock_t lock;
    hdsoft__allocation *ranges; /* sorted by base; there is always room for the successors too */
    size_t count, capacity;
    successor *successor_first, *successor_last; /* in the order in which they were made */
    size_t successor_count, successor_current;   /* all of them; those not being freed */
    hdsoft__space space;
    uint64_t total, used, next_id;
    _Atomic uint64_t epoch, heap_limit, heap_used;
    freed_block *quarantine; /* a ring of QUARANTINE, the oldest at quarantine_first */
    size_t quarantine_first, quarantine_count;
    uint64_t quarantine_bytes;
    _Atomic(hdsoft_memory *) peers[PEERS];
    hdsoft_memory *hosts;
    pthread_rwlock_t use; /* of the host table only */
};

static void init_lock(pthread_rwlock_t *lock)
{
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    /* Those who free must get in although kernels look addresses up all the time. */
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
}

hdsoft_memory *hdsoft__memory_create(uint64_t total, hdsoft_memory *hosts)
{
    hdsoft_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    memory->hosts = hosts;
    memory->total = total;
    memory->next_id = 1;
    memory->space.pattern_file = -1;
    atomic_init(&memory->epoch, 1);
    atomic_init(&memory->heap_limit, UINT64_C(8) << 20);
    atomic_init(&memory->heap_used, 0);
    init_lock(&memory->lock);
    init_lock(&memory->use);
    if (hosts) {
        memory->quarantine = calloc(QUARANTINE, sizeof *memory->quarantine);
        uint64_t least = total + total / 4;
        if (!memory->quarantine || hdsoft__space_create(&memory->space, 2 * total + (8 * BIG), least)) {
            hdsoft__memory_destroy(memory);
            return NULL;
        }
    }
    return memory;
}

void hdsoft__memory_destroy(hdsoft_memory *memory)
{
    if (!memory)
        return;
    for (successor *at = memory->successor_first, *next; at; at = next) {
        next = at->next;
        free(at);
    }
    hdsoft__space_destroy(&memory->space);
    pthread_rwlock_destroy(&memory->use);
    pthread_rwlock_destroy(&memory->lock);
    free(memory->quarantine);
    free(memory->ranges);
    free(memory);
}

/* To change which ranges there are, of which the checks are told. */
static bool change_begin(hdsoft_memory *memory)
{
    bool told = hdsoft__checking_memory();
    if (told)
        hdsoft__check_lock();
    pthread_rwlock_wrlock(&memory->lock);
    return told;
}

static void change_end(hdsoft_memory *memory, bool told)
{
    pthread_rwlock_unlock(&memory->lock);
    if (told)
        hdsoft__check_unlock();
}

/* The number of ranges whose base is at or below the address. */
static size_t ranges_up_to(const hdsoft_memory *memory, uint64_t address)
{
    size_t low = 0, high = memory->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (memory->ranges[middle].range.base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static hdsoft__allocation *range_at(hdsoft_memory *memory, uint64_t address)
{
    size_t index = ranges_up_to(memory, address);
    if (!index || address >= memory->ranges[index - 1].range.end)
        return NULL;
    return &memory->ranges[index - 1];
}

static hdsoft__allocation *range_from(hdsoft_memory *memory, uint64_t base)
{
    hdsoft__allocation *allocation = range_at(memory, base);
    return allocation && allocation->range.base == base ? allocation : NULL;
}

/* Have room for one range more. */
static bool reserve_range(hdsoft_memory *memory)
{
    if (memory->count + memory->successor_count < memory->capacity)
        return true;
    size_t capacity = memory->capacity ? 2 * memory->capacity : 64;
    hdsoft__allocation *grown = realloc(memory->ranges, capacity * sizeof *grown);
    if (!grown)
        return false;
    memory->ranges = grown;
    memory->capacity = capacity;
    return true;
}

/* There is room for it. */
static void insert_range(hdsoft_memory *memory, const hdsoft__allocation *allocation)
{
    size_t index = ranges_up_to(memory, allocation->range.base);
    memmove(memory->ranges + index + 1, memory->ranges + index, (memory->count - index) * sizeof *memory->ranges);
    memory->ranges[index] = *allocation;
    memory->count++;
}

static void remove_range(hdsoft_memory *memory, hdsoft__allocation *allocation)
{
    size_t index = (size_t)(allocation - memory->ranges);
    if (hdsoft__checking_memory())
        hdsoft__check_vanished(&allocation->range);
    memory->count--;
    memmove(allocation, allocation + 1, (memory->count - index) * sizeof *memory->ranges);
    atomic_fetch_add_explicit(&memory->epoch, 1, memory_order_release);
}

static void add_successor(hdsoft_memory *memory, successor *added)
{
    added->previous = memory->successor_last;
    if (added->previous)
        added->previous->next = added;
    else
        memory->successor_first = added;
    memory->successor_last = added;
    memory->successor_count++;
    memory->successor_current++;
}

static void remove_successor(hdsoft_memory *memory, successor *gone)
{
    *(gone->previous ? &gone->previous->next : &memory->successor_first) = gone->next;
    *(gone->next ? &gone->next->previous : &memory->successor_last) = gone->previous;
    memory->successor_count--;
    memory->successor_current -= !gone->allocation.freeing;
    free(gone);
}

static successor *successor_of(hdsoft_memory *memory, uint64_t id)
{
    /* From both ends: who comes about is among the oldest, who is freed among the latest. */
    successor *first = memory->successor_first, *last = memory->successor_last;
    for (size_t i = 0; i < memory->successor_count; i += 2, first = first->next, last = last->previous) {
        if (first->allocation.range.id == id)
            return first;
        if (last->allocation.range.id == id)
            return last;
    }
    return NULL;
}

/* That very range, wherever it is. */
static hdsoft__allocation *find_range(hdsoft_memory *memory, const hdsoft_range *range)
{
    hdsoft__allocation *allocation = range_from(memory, range->base);
    if (allocation && allocation->range.id == range->id)
        return allocation;
    successor *heir = successor_of(memory, range->id);
    return heir ? &heir->allocation : NULL;
}

/* The range that an address means to those who enqueue now. */
static hdsoft__allocation *latest_at(hdsoft_memory *memory, uint64_t address)
{
    size_t left = memory->successor_current;
    for (successor *at = memory->successor_last; at && left; at = at->previous) {
        hdsoft__allocation *allocation = &at->allocation;
        if (!allocation->freeing && address >= allocation->range.base && address < allocation->range.end)
            return allocation;
        left -= !allocation->freeing;
    }
    return range_at(memory, address);
}

static hdsoft__allocation *latest_from(hdsoft_memory *memory, uint64_t base)
{
    hdsoft__allocation *allocation = latest_at(memory, base);
    return allocation && allocation->range.base == base ? allocation : NULL;
}

static uint64_t rounded_size(uint64_t size)
{
    return (size + GRAIN - 1) & ~(GRAIN - 1);
}

uint64_t hdsoft__memory_used(hdsoft_memory *memory)
{
    pthread_rwlock_rdlock(&memory->lock);
    uint64_t used = memory->used;
    pthread_rwlock_unlock(&memory->lock);
    return used;
}

uint64_t hdsoft__memory_total(const hdsoft_memory *memory)
{
    return memory->total;
}

bool hdsoft__memory_charge(hdsoft_memory *memory, uint64_t bytes)
{
    pthread_rwlock_wrlock(&memory->lock);
    bool fits = memory->total - memory->used >= bytes;
    if (fits)
        memory->used += bytes;
    pthread_rwlock_unlock(&memory->lock);
    return fits;
}

void hdsoft__memory_uncharge(hdsoft_memory *memory, uint64_t bytes)
{
    pthread_rwlock_wrlock(&memory->lock);
    memory->used -= bytes;
    pthread_rwlock_unlock(&memory->lock);
}

void hdsoft__memory_window(const hdsoft_memory *memory, uint64_t *base, uint64_t *bytes)
{
    *base = memory->space.base;
    *bytes = memory->space.bytes;
}

bool hdsoft__memory_is_device(const hdsoft_memory *memory, uint64_t address)
{
    return hdsoft__space_holds(&memory->space, address);
}

void hdsoft__memory_set_peer(hdsoft_memory *memory, hdsoft_memory *peer, unsigned ordinal, bool reachable)
{
    atomic_store_explicit(&memory->peers[ordinal % PEERS], reachable ? peer : NULL, memory_order_release);
    atomic_fetch_add_explicit(&memory->epoch, 1, memory_order_release);
}

/* Give the oldest quarantined block's addresses back. */
static void release_oldest(hdsoft_memory *memory)
{
    freed_block *oldest = &memory->quarantine[memory->quarantine_first];
    memory->quarantine_bytes -= oldest->block_bytes;
    hdsoft__space_give(&memory->space, oldest->block, oldest->block_bytes);
    memory->quarantine_first = (memory->quarantine_first + 1) % QUARANTINE;
    memory->quarantine_count--;
}

/* Keep a freed range's addresses for a while, if they are still its own. */
static void quarantine(hdsoft_memory *memory, const hdsoft_range *range, uint64_t block, uint64_t block_bytes,
                       const hdsoft__site *made, const hdsoft__site *freed)
{
    if (!block_bytes)
        return;
    if (memory->quarantine_count == QUARANTINE)
        release_oldest(memory);
    size_t index = (memory->quarantine_first + memory->quarantine_count++) % QUARANTINE;
    memory->quarantine[index] = (freed_block){*range, block, block_bytes, made, freed};
    memory->quarantine_bytes += block_bytes;
    while (memory->quarantine_count > 1 && memory->quarantine_bytes > memory->space.bytes / 4)
        release_oldest(memory);
}

/* ---- taking over from frees that are ahead in the stream ---- */

static void unlink_leaving(hdsoft__leaving *leaving)
{
    hdsoft__leaving_list *list = leaving->list;
    if (!list)
        return;
    *(leaving->previous ? &leaving->previous->next : &list->first) = leaving->next;
    *(leaving->next ? &leaving->next->previous : &list->last) = leaving->previous;
    list->charge -= leaving->charge;
    leaving->list = NULL;
}

/* Whether that many bytes are free, or will be. */
static bool enough_bytes(const hdsoft_memory *memory, const hdsoft__leaving_list *list, uint64_t bytes)
{
    uint64_t there = memory->total - memory->used;
    for (const hdsoft__leaving *at = list ? list->last : NULL; at && there < bytes; at = at->previous)
        there += at->memory == memory ? at->charge : 0;
    return there >= bytes;
}

/* Let up to `wanted` bytes that leave count as an allocation's: the latest first, as older ones have least left. */
static uint64_t inherit_bytes(hdsoft_memory *memory, hdsoft__leaving_list *list, uint64_t wanted)
{
    uint64_t inherited = 0;
    for (hdsoft__leaving *at = list ? list->last : NULL, *next; at && list->charge && inherited < wanted; at = next) {
        next = at->previous;
        if (at->memory != memory)
            continue;
        uint64_t part = at->charge < wanted - inherited ? at->charge : wanted - inherited;
        uint64_t counted = at->counted < part ? at->counted : part;
        at->charge -= part;
        list->charge -= part;
        inherited += part;
        at->counted -= counted;
        if (at->counter)
            *at->counter -= counted;
        if (!at->charge && !at->block_bytes)
            unlink_leaving(at);
    }
    return inherited;
}

/* After a try to take [base, end): the stretches that were not taken go back to those whose they are. */
static void keep_the_rest(hdsoft_memory *memory, hdsoft__leaving_list *list, uint64_t base, uint64_t end,
                          hdsoft__allocation *allocation)
{
    for (hdsoft__leaving *at = list->first, *next; at; at = next) {
        next = at->next;
        if (at->memory != memory || !at->block_bytes)
            continue;
        uint64_t first = at->block, last = at->block + at->block_bytes;
        if (first < end && last > base) {
            /* What alignment leaves at the front goes along, so that what stays is in one piece. */
            if (first < base) {
                hdsoft__space_take_at(&memory->space, first, base - first);
                allocation->block = first;
                allocation->block_bytes = end - first;
            }
            first = end < last ? end : last;
            at->block = first;
            at->block_bytes = last - first;
        }
        if (at->block_bytes)
            hdsoft__space_take_at(&memory->space, at->block, at->block_bytes);
        else if (!at->charge)
            unlink_leaving(at);
    }
}

/* Addresses among those that leave, and the free ones between them. Sets the allocation's block; false: none. */
static bool inherit_addresses(hdsoft_memory *memory, hdsoft__leaving_list *list, uint64_t bytes, uint64_t align,
                              hdsoft__allocation *allocation)
{
    size_t pieces = 2;
    for (const hdsoft__leaving *at = list->first; at; at = at->next)
        pieces += 2;
    if (!hdsoft__space_reserve(&memory->space, pieces))
        return false;
    for (const hdsoft__leaving *at = list->first; at; at = at->next) {
        if (at->memory == memory && at->block_bytes)
            hdsoft__space_give(&memory->space, at->block, at->block_bytes);
    }
    uint64_t base = hdsoft__space_take(&memory->space, bytes, align);
    allocation->range.base = allocation->block = base;
    allocation->block_bytes = bytes;
    keep_the_rest(memory, list, base, base ? base + bytes : 0, allocation);
    return base;
}

/* ---- taking and giving ---- */

/* Addresses: never used ones, else the longest in quarantine, else what leaves (then *heir is the range's). */
static bool take_addresses(hdsoft_memory *memory, hdsoft__leaving_list *list, uint64_t bytes, uint64_t align,
                           hdsoft__allocation *allocation, successor **heir)
{
    uint64_t base = hdsoft__space_take(&memory->space, bytes, align);
    while (!base && memory->quarantine_count) {
        release_oldest(memory);
        base = hdsoft__space_take(&memory->space, bytes, align);
    }
    allocation->range.base = allocation->block = base;
    allocation->block_bytes = bytes;
    if (base || !list)
        return base;
    *heir = calloc(1, sizeof **heir);
    if (*heir && inherit_addresses(memory, list, bytes, align, allocation))
        return true;
    free(*heir);
    *heir = NULL;
    return false;
}

static uint64_t gap_behind(uint64_t rounded)
{
    uint64_t gap = rounded < MOST_GAP ? rounded : MOST_GAP;
    return hdsoft__checking(HDSOFT_CHECK_MEMORY) ? gap : GRAIN;
}

static int take(hdsoft_memory *memory, uint64_t size, uint32_t align, hdsoft__leaving_list *list,
                hdsoft__allocation *allocation)
{
    if (!size || size > memory->total)
        return 2;
    uint64_t rounded = rounded_size(size);
    uint64_t wanted = align < GRAIN ? GRAIN : align;
    if (size >= BIG)
        wanted = BIG;
    int status = 2;
    successor *heir = NULL;
    bool told = change_begin(memory);
    if (!enough_bytes(memory, list, rounded) || !reserve_range(memory))
        goto unlock;
    if (!take_addresses(memory, list, rounded + gap_behind(rounded), wanted, allocation, &heir) &&
        !take_addresses(memory, list, rounded + GRAIN, wanted, allocation, &heir))
        goto unlock;
    allocation->range.end = allocation->range.base + size;
    allocation->range.host = hdsoft__space_host(&memory->space, allocation->range.base);
    allocation->range.id = memory->next_id++;
    allocation->charge = rounded;
    memory->used += rounded - inherit_bytes(memory, list, rounded);
    if (heir) {
        heir->allocation = *allocation;
        add_successor(memory, heir);
    } else {
        insert_range(memory, allocation);
    }
    if (allocation->state == HDSOFT__RANGE_LIVE && told)
        hdsoft__check_appeared(&allocation->range);
    if (allocation->state == HDSOFT__RANGE_LIVE)
        hdsoft__space_fill(&memory->space, allocation->range.base, rounded);
    status = 0;
unlock:
    change_end(memory, told);
    return status;
}

int hdsoft__memory_take(hdsoft_memory *memory, uint64_t size, const hdsoft__allocation *like,
                        hdsoft__leaving_list *leaving, hdsoft_range *out)
{
    hdsoft__allocation allocation = *like;
    allocation.range.kind = HDSOFT_RANGE_DEVICE;
    int status = take(memory, size, 0, leaving, &allocation);
    if (!status)
        *out = allocation.range;
    return status;
}

void hdsoft__memory_limit_heap(hdsoft_memory *memory, uint64_t bytes)
{
    atomic_store(&memory->heap_limit, bytes);
}

static uint64_t heap_charge(uint64_t size)
{
    return (size + HEAP_STEP - 1) / HEAP_STEP * HEAP_STEP;
}

static bool take_from_heap(hdsoft_memory *memory, uint64_t size)
{
    uint64_t limit = atomic_load(&memory->heap_limit);
    if (size > limit)
        return false;
    uint64_t charge = heap_charge(size);
    if (atomic_fetch_add(&memory->heap_used, charge) + charge <= limit)
        return true;
    atomic_fetch_sub(&memory->heap_used, charge);
    return false;
}

int hdsoft_memory_allocate(hdsoft_memory *memory, uint64_t size, uint32_t align, hdsoft_range_kind kind,
                           hdsoft_range *out)
{
    hdsoft__allocation allocation = {
        .range = {.kind = kind}, .state = HDSOFT__RANGE_LIVE, .made = hdsoft__site_here()};
    if (kind == HDSOFT_RANGE_HEAP && !take_from_heap(memory, size))
        return 2;
    int status = take(memory, size, align, NULL, &allocation);
    if (!status)
        *out = allocation.range;
    else if (kind == HDSOFT_RANGE_HEAP)
        atomic_fetch_sub(&memory->heap_used, heap_charge(size));
    return status;
}

/* Called under the lock. */
static void release(hdsoft_memory *memory, hdsoft__allocation *allocation)
{
    hdsoft__allocation gone = *allocation;
    remove_range(memory, allocation);
    memory->used -= gone.charge;
    if (gone.range.kind == HDSOFT_RANGE_HEAP)
        atomic_fetch_sub(&memory->heap_used, heap_charge(gone.range.end - gone.range.base));
    hdsoft__space_discard(&memory->space, gone.range.base, gone.range.end - gone.range.base);
    quarantine(memory, &gone.range, gone.block, gone.block_bytes, gone.made, gone.freed);
}

void hdsoft_memory_release(hdsoft_memory *memory, uint64_t base)
{
    bool told = change_begin(memory);
    hdsoft__allocation *allocation = range_from(memory, base);
    if (allocation)
        release(memory, allocation);
    change_end(memory, told);
}

void hdsoft__memory_remove(hdsoft_memory *memory, const hdsoft__allocation *allocation)
{
    bool told = change_begin(memory);
    hdsoft__allocation *found = range_from(memory, allocation->range.base);
    successor *heir = found && found->range.id == allocation->range.id ? NULL
                                                                      : successor_of(memory, allocation->range.id);
    if (heir) {
        memory->used -= heir->allocation.charge;
        quarantine(memory, &heir->allocation.range, heir->allocation.block, heir->allocation.block_bytes,
                   heir->allocation.made, heir->allocation.freed);
        remove_successor(memory, heir);
    } else if (found && found->range.id == allocation->range.id) {
        release(memory, found);
    }
    change_end(memory, told);
}

void hdsoft__memory_leave(hdsoft_memory *memory, hdsoft__leaving_list *list, hdsoft__leaving *leaving)
{
    pthread_rwlock_wrlock(&memory->lock);
    hdsoft__allocation *allocation = find_range(memory, &leaving->range);
    leaving->memory = memory;
    leaving->list = list;
    leaving->charge = allocation->charge;
    leaving->block = allocation->block;
    leaving->block_bytes = allocation->block_bytes;
    leaving->made = allocation->made;
    leaving->freed = allocation->freed;
    allocation->charge = allocation->block_bytes = 0;
    pthread_rwlock_unlock(&memory->lock);
    list->charge += leaving->charge;
    leaving->previous = list->last;
    *(list->last ? &list->last->next : &list->first) = leaving;
    list->last = leaving;
}

void hdsoft__memory_vacate(hdsoft_memory *memory, const hdsoft_range *range)
{
    bool told = change_begin(memory);
    hdsoft__allocation *found = range_from(memory, range->base);
    if (found && found->range.id == range->id) {
        remove_range(memory, found);
        hdsoft__space_discard(&memory->space, range->base, range->end - range->base);
    } else {
        successor *heir = successor_of(memory, range->id); /* on a faulted device nothing was allocated */
        if (heir)
            remove_successor(memory, heir);
    }
    change_end(memory, told);
}

void hdsoft__memory_left(hdsoft__leaving *leaving)
{
    hdsoft_memory *memory = leaving->memory;
    unlink_leaving(leaving);
    pthread_rwlock_wrlock(&memory->lock);
    memory->used -= leaving->charge;
    quarantine(memory, &leaving->range, leaving->block, leaving->block_bytes, leaving->made, leaving->freed);
    pthread_rwlock_unlock(&memory->lock);
}

/* Whether [base, end) touches a range of the table. Called under its lock. */
static bool overlaps(hdsoft_memory *memory, uint64_t base, uint64_t end)
{
    size_t index = ranges_up_to(memory, end - 1);
    return index && memory->ranges[index - 1].range.end > base;
}

static int add_host(hdsoft_memory *hosts, void *at, uint64_t size, const hdsoft__allocation *like, bool registered)
{
    uint64_t base = (uint64_t)(uintptr_t)at;
    int status = 0;
    hdsoft__allocation allocation = *like;
    allocation.state = HDSOFT__RANGE_LIVE;
    allocation.registered = registered;
    allocation.block = base;
    allocation.block_bytes = size;
    bool told = change_begin(hosts);
    allocation.range = (hdsoft_range){base, base + size, at, HDSOFT_RANGE_HOST, hosts->next_id};
    if (overlaps(hosts, base, base + size))
        status = 712;
    else if (!reserve_range(hosts))
        status = 2;
    if (!status) {
        insert_range(hosts, &allocation);
        if (told)
            hdsoft__check_appeared(&allocation.range);
        hosts->next_id++;
    }
    change_end(hosts, told);
    return status;
}

int hdsoft__memory_map_host(hdsoft_memory *hosts, uint64_t size, const hdsoft__allocation *like, void **out)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return 2;
    int status = add_host(hosts, at, size, like, false);
    if (status)
        munmap(at, size);
    else
        *out = at;
    return status;
}

int hdsoft__memory_register_host(hdsoft_memory *hosts, void *at, uint64_t size, const hdsoft__allocation *like)
{
    return add_host(hosts, at, size, like, true);
}

void hdsoft__memory_unmap_host(hdsoft_memory *hosts, uint64_t base)
{
    hdsoft__allocation gone = {.registered = true};
    bool told = change_begin(hosts);
    hdsoft__allocation *allocation = range_from(hosts, base);
    if (allocation) {
        gone = *allocation;
        remove_range(hosts, allocation);
    }
    change_end(hosts, told);
    /* Whoever found the range before it went is done with it once this lock has been had. */
    pthread_rwlock_wrlock(&hosts->use);
    if (!gone.registered)
        munmap(gone.range.host, gone.block_bytes);
    pthread_rwlock_unlock(&hosts->use);
}

bool hdsoft__memory_lookup(hdsoft_memory *memory, uint64_t address, hdsoft__allocation *out)
{
    pthread_rwlock_rdlock(&memory->lock);
    const hdsoft__allocation *allocation = latest_at(memory, address);
    if (allocation)
        *out = *allocation;
    pthread_rwlock_unlock(&memory->lock);
    return allocation;
}

bool hdsoft__memory_next_owned(hdsoft_memory *memory, const void *owner, uint64_t from, hdsoft__allocation *out)
{
    bool found = false;
    pthread_rwlock_rdlock(&memory->lock);
    for (size_t i = from ? ranges_up_to(memory, from - 1) : 0; i < memory->count && !found; i++) {
        found = memory->ranges[i].owner == owner;
        if (found)
            *out = memory->ranges[i];
    }
    for (const successor *at = memory->successor_first; at && !found; at = at->next) {
        found = at->allocation.owner == owner;
        if (found)
            *out = at->allocation;
    }
    pthread_rwlock_unlock(&memory->lock);
    return found;
}

void hdsoft__memory_activate(hdsoft_memory *memory, const hdsoft_range *range)
{
    uint64_t base = range->base;
    bool told = change_begin(memory);
    hdsoft__allocation *allocation = range_from(memory, base);
    if (!allocation || allocation->range.id != range->id) {
        successor *heir = successor_of(memory, range->id);
        if (heir) {
            hdsoft__allocation made = heir->allocation;
            remove_successor(memory, heir);
            insert_range(memory, &made);
        }
        allocation = heir ? range_from(memory, base) : NULL;
    }
    if (allocation && allocation->state == HDSOFT__RANGE_PENDING) {
        allocation->state = HDSOFT__RANGE_LIVE;
        if (told)
            hdsoft__check_appeared(&allocation->range);
        hdsoft__space_fill(&memory->space, base, rounded_size(allocation->range.end - base));
    }
    change_end(memory, told);
}

void hdsoft__memory_suspend(hdsoft_memory *memory, uint64_t base)
{
    bool told = change_begin(memory);
    hdsoft__allocation *allocation = range_from(memory, base);
    if (allocation && allocation->state == HDSOFT__RANGE_LIVE) {
        allocation->state = HDSOFT__RANGE_PENDING;
        if (told)
            hdsoft__check_vanished(&allocation->range);
        atomic_fetch_add_explicit(&memory->epoch, 1, memory_order_release);
    }
    change_end(memory, told);
}

/* Mark a range as claimed for a free, or as not claimed. */
static bool set_freeing(hdsoft_memory *memory, hdsoft__allocation *allocation, bool freeing)
{
    if (!allocation || allocation->freeing == freeing)
        return false;
    allocation->freeing = freeing;
    allocation->freed = freeing ? hdsoft__site_here() : NULL;
    bool in_table = memory->count && allocation >= memory->ranges && allocation < memory->ranges + memory->count;
    if (!in_table)
        memory->successor_current += freeing ? (size_t)-1 : 1;
    return true;
}

bool hdsoft__memory_claim_free(hdsoft_memory *memory, uint64_t base)
{
    pthread_rwlock_wrlock(&memory->lock);
    bool claimed = set_freeing(memory, latest_from(memory, base), true);
    pthread_rwlock_unlock(&memory->lock);
    return claimed;
}

void hdsoft__memory_unclaim_free(hdsoft_memory *memory, const hdsoft_range *range)
{
    pthread_rwlock_wrlock(&memory->lock);
    set_freeing(memory, find_range(memory, range), false);
    pthread_rwlock_unlock(&memory->lock);
}

void hdsoft__memory_use_begin(hdsoft_memory *hosts)
{
    pthread_rwlock_rdlock(&hosts->use);
}

void hdsoft__memory_use_end(hdsoft_memory *hosts)
{
    pthread_rwlock_unlock(&hosts->use);
}

/* The table that answers for an address: this device's, a reachable peer's, or that of host memory. */
static hdsoft_memory *table_of(hdsoft_memory *memory, uint64_t address)
{
    if (hdsoft__memory_is_device(memory, address))
        return memory;
    for (size_t i = 0; i < PEERS; i++) {
        hdsoft_memory *peer = atomic_load_explicit(&memory->peers[i], memory_order_acquire);
        if (peer && hdsoft__memory_is_device(peer, address))
            return peer;
    }
    return memory->hosts ? memory->hosts : memory;
}

bool hdsoft_memory_find(hdsoft_memory *memory, uint64_t address, hdsoft_range *out)
{
    hdsoft_memory *table = table_of(memory, address);
    pthread_rwlock_rdlock(&table->lock);
    const hdsoft__allocation *allocation = range_at(table, address);
    bool found = allocation && allocation->state != HDSOFT__RANGE_PENDING;
    if (found)
        *out = allocation->range;
    pthread_rwlock_unlock(&table->lock);
    return found;
}

uint64_t hdsoft_memory_epoch(hdsoft_memory *memory)
{
    /* Each only grows, so the sum changes whenever one does. */
    uint64_t epoch = atomic_load_explicit(&memory->epoch, memory_order_acquire);
    if (memory->hosts)
        epoch += atomic_load_explicit(&memory->hosts->epoch, memory_order_acquire);
    for (size_t i = 0; i < PEERS; i++) {
        hdsoft_memory *peer = atomic_load_explicit(&memory->peers[i], memory_order_acquire);
        if (peer)
            epoch += atomic_load_explicit(&peer->epoch, memory_order_acquire);
    }
    return epoch;
}

static const char *kind_name(hdsoft_range_kind kind)
{
    switch (kind) {
    case HDSOFT_RANGE_HOST: return "pinned host memory";
    case HDSOFT_RANGE_GLOBAL: return "global variable";
    case HDSOFT_RANGE_CONSTANT: return "constant variable";
    default: return "allocation";
    }
}

/* The freed block that an address lies in, if its memory is still remembered. */
static const freed_block *freed_at(const hdsoft_memory *memory, uint64_t address)
{
    for (size_t i = memory->quarantine_count; i-- > 0;) {
        const freed_block *block = &memory->quarantine[(memory->quarantine_first + i) % QUARANTINE];
        if (address >= block->range.base && address >= block->block && address < block->block + block->block_bytes)
            return block;
    }
    return NULL;
}

static void explain_freed(const hdsoft_range *range, uint64_t address, char *text, size_t capacity)
{
    uint64_t size = range->end - range->base;
    if (address < range->end)
        snprintf(text, capacity, "byte %llu of %s #%llu of %llu bytes, which was freed",
                 (unsigned long long)(address - range->base), kind_name(range->kind), (unsigned long long)range->id,
                 (unsigned long long)size);
    else
        snprintf(text, capacity, "%llu bytes past %s #%llu of %llu bytes, which was freed",
                 (unsigned long long)(address - range->end), kind_name(range->kind), (unsigned long long)range->id,
                 (unsigned long long)size);
}

/* The range that holds an address, or the nearest one; NULL: there is none near. */
static const hdsoft__allocation *nearest(hdsoft_memory *table, uint64_t address)
{
    size_t index = ranges_up_to(table, address);
    const hdsoft__allocation *before = index ? &table->ranges[index - 1] : NULL;
    const hdsoft__allocation *after = index < table->count ? &table->ranges[index] : NULL;
    if (before && address < before->range.end)
        return before;
    uint64_t past = before ? address - before->range.end : UINT64_MAX;
    uint64_t ahead = after ? after->range.base - address : UINT64_MAX;
    return (past < ahead ? past : ahead) > ((uint64_t)1 << 30) ? NULL : past <= ahead ? before : after;
}

static void explain_near(hdsoft_memory *table, uint64_t address, char *text, size_t capacity)
{
    const hdsoft__allocation *near = nearest(table, address);
    if (!near) {
        snprintf(text, capacity, "in no allocation and near none");
        return;
    }
    const hdsoft_range *range = &near->range;
    const char *kind = kind_name(range->kind);
    bool past = address >= range->end;
    if (!past && address >= range->base) {
        bool pending = near->state == HDSOFT__RANGE_PENDING;
        snprintf(text, capacity, "byte %llu of %s #%llu of %llu bytes%s", (unsigned long long)(address - range->base),
                 kind, (unsigned long long)range->id, (unsigned long long)(range->end - range->base),
                 pending ? ", which its stream has not allocated yet" : ", and beyond it");
        return;
    }
    snprintf(text, capacity, "%llu bytes %s %s #%llu of %llu bytes",
             (unsigned long long)(past ? address - range->end : range->base - address), past ? "past" : "before", kind,
             (unsigned long long)range->id, (unsigned long long)(range->end - range->base));
}

bool hdsoft__memory_neighbour(hdsoft_memory *memory, uint64_t address, hdsoft__allocation *out, bool *gone)
{
    hdsoft_memory *table = table_of(memory, address);
    if (address < 65536)
        return false;
    pthread_rwlock_rdlock(&table->lock);
    const freed_block *freed = freed_at(table, address);
    const hdsoft__allocation *near = freed ? NULL : nearest(table, address);
    *gone = freed;
    if (freed)
        *out = (hdsoft__allocation){.range = freed->range, .made = freed->made, .freed = freed->freed};
    else if (near)
        *out = *near;
    pthread_rwlock_unlock(&table->lock);
    return freed || near;
}

void hdsoft_memory_explain(hdsoft_memory *memory, uint64_t address, char *text, size_t capacity)
{
    hdsoft_memory *table = table_of(memory, address);
    if (address < 65536) {
        snprintf(text, capacity, "a null pointer plus %llu bytes", (unsigned long long)address);
        return;
    }
    pthread_rwlock_rdlock(&table->lock);
    const freed_block *freed = freed_at(table, address);
    if (freed)
        explain_freed(&freed->range, address, text, capacity);
    else if (table != memory && !hdsoft__space_holds(&table->space, address) && !range_at(table, address))
        snprintf(text, capacity, "not memory of this device; if it is a host pointer, it is not pinned");
    else
        explain_near(table, address, text, capacity);
    pthread_rwlock_unlock(&table->lock);
}
