/* SPDX-License-Identifier: MIT */
#include "jit/shared.h"

#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/status.h"
#include "device/device.h"

struct entry {
    hdrt__digest name;
    hdrt_module *module;
    bool kept;
    size_t bytes;
    UT_hash_handle hh; /* least recently kept first, those in use anywhere between */
};

struct table {
    pthread_mutex_t lock; /* a leaf */
    struct entry *entries;
    uint32_t kept;
    size_t kept_bytes;
};

static void destroy_table(void *state)
{
    struct table *table = state;
    struct entry *entry, *next;
    HASH_ITER(hh, table->entries, entry, next)
    {
        HASH_DEL(table->entries, entry);
        if (entry->kept)
            hdrt__module_unload(entry->module);
        free(entry);
    }
    pthread_mutex_destroy(&table->lock);
    free(table);
}

static void *create_table(void *argument)
{
    (void)argument;
    struct table *table = calloc(1, sizeof(*table));
    if (table)
        pthread_mutex_init(&table->lock, NULL);
    else
        hdrt__fail_memory(sizeof(*table), "the table of modules");
    return table;
}

static struct table *table_of(hdrt_device *device)
{
    return hdrt__attachment_get(&device->jit, &device->lock, create_table, NULL, destroy_table);
}

hdrt_module *hdrt__shared_find(hdrt_device *device, const hdrt__digest *name)
{
    struct table *table = table_of(device);
    struct entry *entry = NULL;
    hdrt_module *found = NULL;
    if (!table)
        return NULL;
    pthread_mutex_lock(&table->lock);
    HASH_FIND(hh, table->entries, name, sizeof(*name), entry);
    if (entry && entry->kept) {
        entry->kept = false;
        table->kept--;
        table->kept_bytes -= entry->bytes;
        hdrt__device_hold(device);
        found = entry->module;
        atomic_store(&found->references, 1);
    } else if (entry) {
        /* One whose last reference is gone is about to be kept or unloaded, and waits for this lock. */
        uint64_t count = atomic_load(&entry->module->references);
        while (count != 0 && !atomic_compare_exchange_weak(&entry->module->references, &count, count + 1))
            continue;
        found = count != 0 ? entry->module : NULL;
    }
    pthread_mutex_unlock(&table->lock);
    return found;
}

void hdrt__shared_enter(hdrt_device *device, hdrt_module *module)
{
    struct table *table = table_of(device);
    struct entry *there = NULL, *entry = table ? calloc(1, sizeof(*entry)) : NULL;
    if (!entry)
        return;
    *entry = (struct entry){.name = module->code->name, .module = module, .bytes = hdrt__code_bytes(module->code)};
    pthread_mutex_lock(&table->lock);
    HASH_FIND(hh, table->entries, &entry->name, sizeof(entry->name), there);
    if (!there)
        HASH_ADD(hh, table->entries, name, sizeof(entry->name), entry);
    module->shared = !there && entry->hh.tbl;
    pthread_mutex_unlock(&table->lock);
    if (!module->shared)
        free(entry);
}

/* Under the lock: takes out the entry, the module is the caller's. */
static hdrt_module *remove_entry(struct table *table, struct entry *entry)
{
    hdrt_module *module = entry->module;
    HASH_DEL(table->entries, entry);
    if (entry->kept) {
        table->kept--;
        table->kept_bytes -= entry->bytes;
    }
    free(entry);
    return module;
}

/* Under the lock: the kept module that was let go the longest time ago, if there are too many. */
static struct entry *one_too_many(struct table *table)
{
    if (table->kept <= HDRT__KEPT_MODULES && table->kept_bytes <= HDRT__KEPT_BYTES)
        return NULL;
    struct entry *entry = table->entries;
    while (entry && !entry->kept)
        entry = entry->hh.next;
    return entry;
}

hdrt_module *hdrt__shared_keep(hdrt_module *module, bool keep)
{
    struct table *table = table_of(module->device);
    struct entry *entry = NULL, *oldest;
    hdrt_module *unwanted = NULL;
    pthread_mutex_lock(&table->lock);
    HASH_FIND(hh, table->entries, &module->code->name, sizeof(module->code->name), entry);
    if (!keep || entry->bytes > HDRT__KEPT_BYTES) {
        unwanted = remove_entry(table, entry);
        goto unlock;
    }
    HASH_DEL(table->entries, entry); /* to the end of the order */
    HASH_ADD(hh, table->entries, name, sizeof(entry->name), entry);
    if (!entry->hh.tbl) { /* memory is out: it is in no table now */
        free(entry);
        unwanted = module;
        goto unlock;
    }
    entry->kept = true;
    table->kept++;
    table->kept_bytes += entry->bytes;
    oldest = one_too_many(table);
    if (oldest)
        unwanted = remove_entry(table, oldest);
unlock:
    pthread_mutex_unlock(&table->lock);
    return unwanted;
}
