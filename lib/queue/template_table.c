/* SPDX-License-Identifier: MIT */
#include "queue/template_table.h"

void hdrt__template_table_init(hdrt__template_table *table)
{
    table->credit[HDRT__TEMPLATE_CHAIN] = table->credit[HDRT__TEMPLATE_OPEN] = HDRT__TEMPLATE_CREDIT_NS;
    table->credit[HDRT__TEMPLATE_RINGING] = HDRT__TEMPLATE_CREDIT_NS;
    table->credit[HDRT__TEMPLATE_WIDE] = HDRT__TEMPLATE_WIDE_CREDIT_NS;
    table->limit = HDRT__TEMPLATE_MEMORY;
    table->clock = UINT32_MAX / 2; /* what was never seen was seen at 0, long ago */
}

/* ---- sequences --------------------------------------------------------------------------------------------------- */

hdrt__template_sequence *hdrt__template_find(const hdrt__template_table *table, uint64_t key,
                                             const hdrt__run_launch *launches, uint32_t count,
                                             hdrt__template_kind kind)
{
    hdrt__template_sequence *sequence = table->buckets[key % HDRT__TEMPLATE_BUCKETS];
    while (sequence && (sequence->key != key || sequence->leaving ||
                        !hdrt__template_sequence_is(sequence, launches, count, kind))) {
        sequence = sequence->next;
    }
    return sequence;
}

void hdrt__template_enter(hdrt__template_table *table, hdrt__template_sequence *sequence)
{
    hdrt__template_sequence **bucket = &table->buckets[sequence->key % HDRT__TEMPLATE_BUCKETS];
    sequence->next = *bucket;
    *bucket = sequence;
    if (sequence->count == 1) {
        *hdrt__template_single(sequence->kernels[0], sequence->kind) = sequence;
    }
    table->counts.sequences++;
}

void hdrt__template_leave(hdrt__template_table *table, hdrt__template_sequence *sequence)
{
    hdrt__template_sequence **link = &table->buckets[sequence->key % HDRT__TEMPLATE_BUCKETS];
    while (*link != sequence) {
        link = &(*link)->next;
    }
    *link = sequence->next;
    sequence->next = NULL;
    table->counts.sequences--;
}

/* ---- instances --------------------------------------------------------------------------------------------------- */

static void link_newest(hdrt__template_table *table, hdrt__template_instance *instance)
{
    instance->newer = NULL;
    instance->older = table->newest;
    if (table->newest) {
        table->newest->newer = instance;
    } else {
        table->oldest = instance;
    }
    table->newest = instance;
}

static void unlink_use(hdrt__template_table *table, hdrt__template_instance *instance)
{
    if (instance->newer) {
        instance->newer->older = instance->older;
    } else {
        table->newest = instance->older;
    }
    if (instance->older) {
        instance->older->newer = instance->newer;
    } else {
        table->oldest = instance->newer;
    }
}

void hdrt__template_instance_enter(hdrt__template_table *table, hdrt__template_instance *instance)
{
    instance->next = instance->sequence->instances;
    instance->sequence->instances = instance;
    instance->used_at = table->clock;
    link_newest(table, instance);
    table->counts.instances++;
}

void hdrt__template_instance_leave(hdrt__template_table *table, hdrt__template_instance *instance)
{
    hdrt__template_instance **link = &instance->sequence->instances;
    while (*link != instance) {
        link = &(*link)->next;
    }
    *link = instance->next;
    instance->next = NULL;
    unlink_use(table, instance);
    table->counts.instances--;
    table->counts.bytes -= hdrt__template_bytes(instance->sequence->count, instance->sequence->branches);
}

void hdrt__template_instance_used(hdrt__template_table *table, hdrt__template_instance *instance)
{
    instance->used_at = table->clock;
    if (table->newest != instance) {
        unlink_use(table, instance);
        link_newest(table, instance);
    }
}

/* ---- what was seen ----------------------------------------------------------------------------------------------- */

/* The sequence's place, or the place that it takes over: a free one, or that of the one seen least. */
static hdrt__template_seen *place_of(hdrt__template_table *table, uint64_t key)
{
    /* Other bits than choose the bucket, which are the low ones too. */
    hdrt__template_seen *set = table->seen[(key >> 20) % HDRT__TEMPLATE_SEEN_SETS], *least = set;
    for (uint32_t i = 0; i < HDRT__TEMPLATE_SEEN_WAYS; i++) {
        if (set[i].key == key) {
            return &set[i];
        }
        if (least->key && (!set[i].key || set[i].count < least->count)) {
            least = &set[i];
        }
    }
    if (least->key) {
        /* Full: the others age, so that what was once seen often does not stay for ever. */
        for (uint32_t i = 0; i < HDRT__TEMPLATE_SEEN_WAYS; i++) {
            set[i].count -= set[i].count > 0;
        }
    }
    *least = (hdrt__template_seen){.key = key};
    return least;
}

int32_t hdrt__template_see(hdrt__template_table *table, uint64_t key)
{
    hdrt__template_seen *place = place_of(table, key);
    place->count += place->count < INT32_MAX;
    return place->count;
}

void hdrt__template_set_seen(hdrt__template_table *table, uint64_t key, int32_t count)
{
    place_of(table, key)->count = count;
}

/* ---- the credit -------------------------------------------------------------------------------------------------- */

void hdrt__template_earn(hdrt__template_table *table, hdrt__template_kind kind, int64_t ns)
{
    int64_t *credit = &table->credit[kind];
    int64_t most = kind == HDRT__TEMPLATE_WIDE ? HDRT__TEMPLATE_WIDE_CREDIT_MOST_NS : HDRT__TEMPLATE_CREDIT_MOST_NS;
    int64_t then = *credit + ns;
    *credit = then < 0 ? 0 : then < most ? then : most;
}

int32_t hdrt__template_sights(uint32_t count, int64_t gain)
{
    int64_t sights = gain > 0 ? hdrt__template_build_ns(count, false) / gain : INT32_MAX;
    return sights < 2 ? 2 : (int32_t)(sights < INT32_MAX ? sights : INT32_MAX);
}
