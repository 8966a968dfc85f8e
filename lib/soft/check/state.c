/* SPDX-License-Identifier: MIT */
#include "soft/check/state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soft/check/race.h"
#include "soft/check/shadow.h"

#define BIT(kind) (1u << HDSOFT__TOUCH_##kind)
#define FIRST_SWEEP 65536u

/* With which others an access of each kind conflicts. */
static const unsigned conflicts[] = {
    [HDSOFT__TOUCH_READ] = BIT(WRITE) | BIT(COMMAND_WRITE) | BIT(STRONG_WRITE),
    [HDSOFT__TOUCH_WRITE] =
        BIT(READ) | BIT(WRITE) | BIT(COMMAND_WRITE) | BIT(STRONG_READ) | BIT(STRONG_WRITE) | BIT(POLL),
    [HDSOFT__TOUCH_COMMAND_WRITE] = BIT(READ) | BIT(WRITE) | BIT(COMMAND_WRITE) | BIT(STRONG_READ) | BIT(STRONG_WRITE),
    [HDSOFT__TOUCH_STRONG_READ] = BIT(WRITE) | BIT(COMMAND_WRITE),
    [HDSOFT__TOUCH_STRONG_WRITE] = BIT(READ) | BIT(WRITE) | BIT(COMMAND_WRITE),
    [HDSOFT__TOUCH_POLL] = BIT(WRITE),
};

static struct {
    hdsoft__state **states;  /* by number; NULL: free */
    uint32_t count, capacity; /* numbers given out so far, from 1 on */
    uint32_t *free_numbers;  /* room for all of them */
    uint32_t free_count, live, sweep_at;
    uint32_t *buckets;
    uint32_t bucket_count;   /* a power of two */
    uint64_t bytes, most_bytes;
    const hdsoft__clock *floor; /* of the sweep */
} all;

bool hdsoft__conflict(hdsoft__touch_kind one, hdsoft__touch_kind other)
{
    return conflicts[one] >> other & 1;
}

bool hdsoft__covers(hdsoft__touch_kind one, hdsoft__touch_kind other)
{
    return (conflicts[other] & ~conflicts[one]) == 0;
}

const hdsoft__state *hdsoft__state_get(uint32_t number)
{
    return all.states[number];
}

static uint32_t hash_of(const hdsoft__state_entry *entries, uint32_t count)
{
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++) {
        hash = (hash ^ (uintptr_t)entries[i].operation) * UINT64_C(0x9e3779b97f4a7c15);
        hash = (hash ^ (hash >> 29) ^ entries[i].time) * UINT64_C(0xbf58476d1ce4e5b9);
        hash ^= (uint64_t)entries[i].instruction << 16 | (uint64_t)entries[i].kind << 8 | entries[i].mask;
    }
    hash *= UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(hash >> 32);
}

static bool same(const hdsoft__state *state, const hdsoft__state_entry *entries, uint32_t count)
{
    bool equal = state->count == count;
    for (uint32_t i = 0; i < count && equal; i++) {
        const hdsoft__state_entry *a = &state->entries[i], *b = &entries[i];
        equal = a->operation == b->operation && a->time == b->time && a->instruction == b->instruction &&
                a->kind == b->kind && a->mask == b->mask;
    }
    return equal;
}

static bool reserve(void)
{
    if (all.count + 2 >= all.capacity) {
        if (all.capacity > UINT32_MAX / 4)
            return false;
        uint32_t capacity = all.capacity ? 2 * all.capacity : 1024;
        hdsoft__state **states = realloc(all.states, capacity * sizeof *states);
        if (!states)
            return false;
        all.states = states;
        uint32_t *numbers = realloc(all.free_numbers, capacity * sizeof *numbers);
        if (!numbers)
            return false;
        all.free_numbers = numbers;
        all.capacity = capacity;
    }
    if (2 * all.live < all.bucket_count)
        return true;
    uint32_t count = all.bucket_count ? 2 * all.bucket_count : 1024;
    uint32_t *buckets = calloc(count, sizeof *buckets);
    if (!buckets)
        return false;
    for (uint32_t i = 1; i <= all.count; i++) {
        if (all.states[i]) {
            all.states[i]->next = buckets[all.states[i]->hash & (count - 1)];
            buckets[all.states[i]->hash & (count - 1)] = i;
        }
    }
    free(all.buckets);
    all.buckets = buckets;
    all.bucket_count = count;
    return true;
}

/* Half of the machine's memory is the program's own. */
static uint64_t most_bytes(void)
{
    if (!all.most_bytes) {
        long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
        all.most_bytes = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 2 : UINT64_MAX;
    }
    return all.most_bytes;
}

uint32_t hdsoft__state_number(const hdsoft__state_entry *entries, uint32_t count)
{
    if (!count)
        return 0;
    uint32_t hash = hash_of(entries, count);
    uint32_t found = all.bucket_count ? all.buckets[hash & (all.bucket_count - 1)] : 0;
    while (found && !(all.states[found]->hash == hash && same(all.states[found], entries, count)))
        found = all.states[found]->next;
    if (found)
        return found;
    if (!reserve() || all.bytes + hdsoft__shadow_bytes() > most_bytes())
        return UINT32_MAX;
    hdsoft__state *state = malloc(sizeof *state + count * sizeof *entries);
    if (!state)
        return UINT32_MAX;
    *state = (hdsoft__state){.count = count, .hash = hash};
    memcpy(state->entries, entries, count * sizeof *entries);
    for (uint32_t i = 0; i < count; i++)
        hdsoft__operation_hold(entries[i].operation);
    uint32_t number = all.free_count ? all.free_numbers[--all.free_count] : ++all.count;
    all.states[number] = state;
    all.live++;
    all.bytes += sizeof *state + count * sizeof *entries;
    state->next = all.buckets[hash & (all.bucket_count - 1)];
    all.buckets[hash & (all.bucket_count - 1)] = number;
    return number;
}

/* ---- sweeping ---- */

static bool known(const hdsoft__state *state)
{
    for (uint32_t i = 0; i < state->count; i++) {
        const hdsoft__state_entry *entry = &state->entries[i];
        if (!hdsoft__race_known(entry->operation, entry->time, all.floor))
            return false;
    }
    return true;
}

static uint32_t keep(uint32_t number)
{
    hdsoft__state *state = all.states[number];
    if (!state->used && known(state))
        return 0;
    state->used = true;
    return number;
}

static void forget(uint32_t number)
{
    hdsoft__state *state = all.states[number];
    uint32_t *link = &all.buckets[state->hash & (all.bucket_count - 1)];
    while (*link != number)
        link = &all.states[*link]->next;
    *link = state->next;
    all.states[number] = NULL;
    all.free_numbers[all.free_count++] = number;
    all.live--;
    all.bytes -= sizeof *state + state->count * sizeof *state->entries;
    for (uint32_t i = 0; i < state->count; i++)
        hdsoft__operation_release(state->entries[i].operation);
    free(state);
}

bool hdsoft__states_are_many(void)
{
    return all.live >= (all.sweep_at ? all.sweep_at : FIRST_SWEEP);
}

void hdsoft__states_sweep(const hdsoft__clock *floor)
{
    all.floor = floor;
    hdsoft__shadow_replace(keep);
    all.floor = NULL;
    for (uint32_t i = 1; i <= all.count; i++) {
        if (all.states[i] && !all.states[i]->used)
            forget(i);
        else if (all.states[i])
            all.states[i]->used = false;
    }
    all.sweep_at = 2 * all.live > FIRST_SWEEP ? 2 * all.live : FIRST_SWEEP;
}
