/* SPDX-License-Identifier: MIT */
#include "memory/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "device/device.h"
#include "memory/registry.h"

#define WORDS_IN_PAGE (4096u / sizeof(uint64_t))

typedef struct word_page {
    struct word_page *next;
    void *host;
    hdrt__word words[WORDS_IN_PAGE];
} word_page;

typedef struct snapshot_list {
    hdrt__snapshot *first, **last;
} snapshot_list;

struct hdrt__memory {
    hdrt_device *device;
    hdcu_pool pool; /* NULL: this device has no pools */
    pthread_mutex_t scan, lock;
    word_page *pages;
    hdrt__word *free_words;
    void *slab; /* of all snapshots; NULL until the first is taken */
    hdrt__snapshot *snapshots;
    snapshot_list free_snapshots[2], busy_snapshots[2]; /* small, large */
};

/* ---- making and ending ------------------------------------------------------------------------------------------- */

/* A pool of our own, so that its attributes are nobody else's business. Inside the device's scope. */
static hdrt_status make_pool(hdrt__memory *memory)
{
    hdrt_device *device = memory->device;
    hdcu_pool_properties properties = {.allocation_type = HDCU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = {HDCU_MEM_LOCATION_TYPE_DEVICE, device->ordinal}};
    uint64_t keep_all = UINT64_MAX;
    int no = 0;
    hdrt__call call = HDRT__CALL(device->driver, cuMemPoolCreate, &memory->pool, &properties);
    if (call.result == HDCU_ERROR_NOT_SUPPORTED) {
        memory->pool = NULL;
        device->limits.memory_pools = false;
        return HDRT_OK;
    }
    hdrt_status status = hdrt__device_check(device, call, "the memory pool of device %u", device->index);
    if (status != HDRT_OK) {
        memory->pool = NULL;
        return status;
    }
    /* By default each synchronisation gives memory back, and the driver makes streams depend on others to reuse it. */
    call = HDRT__CALL(device->driver, cuMemPoolSetAttribute, memory->pool, HDCU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                      &keep_all);
    if (!call.result) {
        call = HDRT__CALL(device->driver, cuMemPoolSetAttribute, memory->pool,
                          HDCU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &no);
    }
    return hdrt__device_check(device, call, "the memory pool of device %u", device->index);
}

static void free_range(hdrt_device *device, hdrt__range *range)
{
    void *host = (void *)(uintptr_t)range->address;
    hdrt__call call = {HDCU_SUCCESS, ""};
    switch (range->kind) {
    case HDRT__RANGE_ALLOCATED:
        call = HDRT__CALL(device->driver, cuMemFree, range->address);
        break;
    case HDRT__RANGE_PINNED:
        call = HDRT__CALL(device->driver, cuMemFreeHost, host);
        break;
    case HDRT__RANGE_REGISTERED:
        call = HDRT__CALL(device->driver, cuMemHostUnregister, host);
        break;
    case HDRT__RANGE_SYMBOL:
        break;
    }
    if (call.result) {
        hdrt__device_check(device, call, "freeing %llu bytes at 0x%llx", (unsigned long long)range->bytes,
                           (unsigned long long)range->address);
        hdrt__log(HDRT_LOG_ERROR, "%s", hdrt_last_error());
    }
}

/* Give everything back to the driver, the caller's allocations that are left included. */
static void memory_empty(hdrt__memory *memory)
{
    hdrt_device *device = memory->device;
    hdrt__scope scope;
    bool inside = hdrt__device_enter(device, &scope) == HDRT_OK;
    hdrt__range *range;
    while ((range = hdrt__registry_take_any(device))) {
        if (inside && !hdrt__device_is_lost(device)) {
            free_range(device, range);
        }
        hdrt__range_free(range);
    }
    for (word_page *page = memory->pages; page; page = page->next) {
        if (inside && !hdrt__device_is_lost(device)) {
            (void)HDRT__CALL(device->driver, cuMemFreeHost, page->host);
        }
    }
    if (inside && memory->slab && !hdrt__device_is_lost(device)) {
        (void)HDRT__CALL(device->driver, cuMemFreeHost, memory->slab);
    }
    if (inside && memory->pool && !hdrt__device_is_lost(device)) {
        (void)HDRT__CALL(device->driver, cuMemPoolDestroy, memory->pool);
    }
    if (inside) {
        hdrt__device_leave(device, &scope);
    }
}

static void memory_destroy(void *state)
{
    hdrt__memory *memory = state;
    memory_empty(memory);
    for (word_page *page = memory->pages, *next; page; page = next) {
        next = page->next;
        free(page);
    }
    free(memory->snapshots);
    pthread_mutex_destroy(&memory->lock);
    pthread_mutex_destroy(&memory->scan);
    free(memory);
}

static void list_init(snapshot_list *list)
{
    list->first = NULL;
    list->last = &list->first;
}

static void *memory_create(void *argument)
{
    hdrt_device *device = argument;
    hdrt__memory *memory = calloc(1, sizeof *memory);
    if (!memory) {
        hdrt__fail_memory(sizeof *memory, "a device's memory");
        return NULL;
    }
    memory->device = device;
    pthread_mutex_init(&memory->scan, NULL);
    pthread_mutex_init(&memory->lock, NULL);
    for (int i = 0; i < 2; i++) {
        list_init(&memory->free_snapshots[i]);
        list_init(&memory->busy_snapshots[i]);
    }
    if (device->limits.memory_pools && make_pool(memory) != HDRT_OK) {
        memory_destroy(memory);
        return NULL;
    }
    return memory;
}

hdrt__memory *hdrt__device_memory(hdrt_device *device)
{
    return hdrt__attachment_get(&device->memory, &device->lock, memory_create, device, memory_destroy);
}

/* ---- device memory ----------------------------------------------------------------------------------------------- */

bool hdrt__memory_pooled(const hdrt__memory *memory)
{
    return memory->pool != NULL;
}

hdrt__call hdrt__memory_alloc(hdrt__memory *memory, hdcu_stream stream, uint64_t bytes, hdcu_pointer *out_pointer)
{
    const hdrt__driver_table *driver = memory->device->driver;
    return memory->pool ? HDRT__CALL(driver, cuMemAllocFromPoolAsync, out_pointer, bytes, memory->pool, stream)
                        : HDRT__CALL(driver, cuMemAlloc, out_pointer, bytes);
}

void hdrt__memory_trim(hdrt__memory *memory)
{
    if (memory->pool) {
        (void)HDRT__CALL(memory->device->driver, cuMemPoolTrimTo, memory->pool, 0);
    }
}

bool hdrt__memory_holds(hdrt__memory *memory, hdcu_pointer pointer)
{
    hdcu_pool pool = NULL;
    if (!memory->pool) {
        return false;
    }
    hdrt__call call = HDRT__CALL(memory->device->driver, cuPointerGetAttribute, &pool,
                                 HDCU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer);
    return !call.result && pool == memory->pool;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* A page of them; without a message. */
static hdrt__call add_words(hdrt__memory *memory)
{
    hdrt_device *device = memory->device;
    hdcu_pointer address = 0;
    word_page *page = calloc(1, sizeof *page);
    if (!page) {
        return (hdrt__call){HDCU_ERROR_OUT_OF_MEMORY, NULL};
    }
    hdrt__call call = HDRT__CALL(device->driver, cuMemHostAlloc, &page->host, WORDS_IN_PAGE * sizeof(uint64_t),
                                 HDCU_MEMHOSTALLOC_PORTABLE | HDCU_MEMHOSTALLOC_DEVICEMAP);
    if (call.result) {
        free(page);
        return call;
    }
    call = HDRT__CALL(device->driver, cuMemHostGetDevicePointer, &address, page->host, 0);
    if (call.result) {
        if (!hdrt__device_is_lost(device)) {
            (void)HDRT__CALL(device->driver, cuMemFreeHost, page->host);
        }
        free(page);
        return call;
    }
    pthread_mutex_lock(&memory->lock);
    for (uint32_t i = 0; i < WORDS_IN_PAGE; i++) {
        page->words[i].host = (_Atomic uint64_t *)page->host + i;
        page->words[i].device = address + i * sizeof(uint64_t);
        page->words[i].next = memory->free_words;
        memory->free_words = &page->words[i];
    }
    page->next = memory->pages;
    memory->pages = page;
    pthread_mutex_unlock(&memory->lock);
    return call;
}

/* One of those there are. */
static hdrt__word *take_word(hdrt__memory *memory)
{
    pthread_mutex_lock(&memory->lock);
    hdrt__word *word = memory->free_words;
    if (word) {
        memory->free_words = word->next;
    }
    pthread_mutex_unlock(&memory->lock);
    if (word) {
        atomic_store(word->host, 0);
    }
    return word;
}

hdrt__word *hdrt__word_spare(hdrt__memory *memory)
{
    hdrt__word *word = take_word(memory);
    return word || add_words(memory).result ? word : take_word(memory);
}

hdrt_status hdrt__word_take(hdrt__memory *memory, hdrt__word **out_word)
{
    while (!(*out_word = take_word(memory))) {
        hdrt__call call = add_words(memory);
        if (call.result && !call.text) {
            return hdrt__fail_memory(sizeof(word_page), "words that streams wait on");
        }
        hdrt_status status = hdrt__device_check(memory->device, call, "words that streams of device %u wait on",
                                                memory->device->index);
        if (status != HDRT_OK) {
            return status;
        }
    }
    return HDRT_OK;
}

void hdrt__word_give(hdrt__memory *memory, hdrt__word *word)
{
    pthread_mutex_lock(&memory->lock);
    word->next = memory->free_words;
    memory->free_words = word;
    pthread_mutex_unlock(&memory->lock);
}

/* ---- snapshots --------------------------------------------------------------------------------------------------- */

static void list_append(snapshot_list *list, hdrt__snapshot *snapshot)
{
    snapshot->next = NULL;
    *list->last = snapshot;
    list->last = &snapshot->next;
}

static hdrt__snapshot *list_take(snapshot_list *list)
{
    hdrt__snapshot *snapshot = list->first;
    if (snapshot) {
        list->first = snapshot->next;
        if (!list->first) {
            list->last = &list->first;
        }
    }
    return snapshot;
}

/* Under scan: get the slab, once. */
static hdrt_status make_slab(hdrt__memory *memory)
{
    const uint32_t counts[2] = {HDRT__SNAPSHOT_SMALL_COUNT, HDRT__SNAPSHOT_LARGE_COUNT};
    const uint32_t sizes[2] = {HDRT__SNAPSHOT_SMALL, HDRT__SNAPSHOT_LARGE};
    hdrt_device *device = memory->device;
    hdrt__snapshot *snapshots = calloc(counts[0] + counts[1], sizeof *snapshots);
    if (!snapshots) {
        return hdrt__fail_memory((counts[0] + counts[1]) * sizeof *snapshots, "snapshots of writes");
    }
    size_t bytes = (size_t)counts[0] * sizes[0] + (size_t)counts[1] * sizes[1];
    hdrt__call call = HDRT__CALL(device->driver, cuMemHostAlloc, &memory->slab, bytes, HDCU_MEMHOSTALLOC_PORTABLE);
    hdrt_status status = hdrt__device_check(device, call, "%zu bytes for snapshots of writes", bytes);
    if (status != HDRT_OK) {
        memory->slab = NULL;
        free(snapshots);
        return status;
    }
    unsigned char *next = memory->slab;
    hdrt__snapshot *snapshot = memory->snapshots = snapshots;
    pthread_mutex_lock(&memory->lock);
    for (int large = 0; large < 2; large++) {
        for (uint32_t i = 0; i < counts[large]; i++, snapshot++, next += sizes[large]) {
            snapshot->bytes = next;
            snapshot->large = large;
            list_append(&memory->free_snapshots[large], snapshot);
        }
    }
    pthread_mutex_unlock(&memory->lock);
    return HDRT_OK;
}

/*
 * Under scan: free the slots whose events are over. All are asked, since one queue that stands still must not keep the
 * others' slots; whoever comes for one meanwhile waits for the scan.
 */
static void free_finished(hdrt__memory *memory, int large)
{
    pthread_mutex_lock(&memory->lock);
    hdrt__snapshot *snapshot = memory->busy_snapshots[large].first;
    list_init(&memory->busy_snapshots[large]);
    pthread_mutex_unlock(&memory->lock);
    while (snapshot) {
        hdrt__snapshot *next = snapshot->next;
        bool busy = !hdrt__event_over(memory->device->runtime, snapshot->until, true);
        pthread_mutex_lock(&memory->lock);
        list_append(busy ? &memory->busy_snapshots[large] : &memory->free_snapshots[large], snapshot);
        pthread_mutex_unlock(&memory->lock);
        snapshot = next;
    }
}

static hdrt__snapshot *take_free(hdrt__memory *memory, int large)
{
    pthread_mutex_lock(&memory->lock);
    hdrt__snapshot *snapshot = list_take(&memory->free_snapshots[large]);
    pthread_mutex_unlock(&memory->lock);
    return snapshot;
}

hdrt_status hdrt__snapshot_take(hdrt__memory *memory, uint64_t bytes, hdrt__snapshot **out_snapshot)
{
    int large = bytes > HDRT__SNAPSHOT_SMALL;
    hdrt_status status = HDRT_OK;
    hdrt__snapshot *snapshot = take_free(memory, large);
    if (!snapshot) {
        pthread_mutex_lock(&memory->scan);
        if (!memory->slab) {
            status = make_slab(memory);
        }
        if (status == HDRT_OK) {
            snapshot = take_free(memory, large); /* freed by who scanned before */
        }
        if (status == HDRT_OK && !snapshot) {
            free_finished(memory, large);
            snapshot = take_free(memory, large);
        }
        pthread_mutex_unlock(&memory->scan);
    }
    if (status == HDRT_OK && !snapshot) {
        return HDRT_WOULD_BLOCK;
    }
    *out_snapshot = snapshot;
    return status;
}

void hdrt__snapshot_until(hdrt__memory *memory, hdrt__snapshot *snapshot, hdrt_event event)
{
    pthread_mutex_lock(&memory->lock);
    snapshot->until = event;
    list_append(&memory->busy_snapshots[snapshot->large], snapshot);
    pthread_mutex_unlock(&memory->lock);
}

void hdrt__snapshot_give(hdrt__memory *memory, hdrt__snapshot *snapshot)
{
    pthread_mutex_lock(&memory->lock);
    list_append(&memory->free_snapshots[snapshot->large], snapshot);
    pthread_mutex_unlock(&memory->lock);
}
