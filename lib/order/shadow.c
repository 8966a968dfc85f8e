/* SPDX-License-Identifier: MIT */
#include "order/shadow.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

typedef struct segment {
    uint64_t first, end;
    hdrt__toucher *write;  /* NULL: none known */
    hdrt__toucher **reads; /* since then, unordered among each other */
    uint32_t read_count;
} segment;

typedef struct block {
    uint64_t number;
    segment *segments; /* ascending, without overlap */
    size_t count, capacity;
    UT_hash_handle hh;
} block;

struct hdrt__shadow {
    block *blocks;
};

/* ---- touchers ---------------------------------------------------------------------------------------------------- */

hdrt__toucher *hdrt__toucher_create(uint32_t line, uint64_t at, const char *text)
{
    size_t bytes = strlen(text) + 1;
    hdrt__toucher *toucher = malloc(sizeof *toucher + bytes);
    if (toucher) {
        toucher->references = 1;
        toucher->line = line;
        toucher->at = at;
        toucher->told_line = UINT32_MAX;
        toucher->told_at = 0;
        memcpy(toucher->text, text, bytes);
    }
    return toucher;
}

static hdrt__toucher *hold(hdrt__toucher *toucher)
{
    toucher->references++;
    return toucher;
}

void hdrt__toucher_drop(hdrt__toucher *toucher)
{
    if (toucher && --toucher->references == 0) {
        free(toucher);
    }
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

static void drop_reads(segment *of)
{
    for (uint32_t i = 0; i < of->read_count; i++) {
        hdrt__toucher_drop(of->reads[i]);
    }
    free(of->reads);
    of->reads = NULL;
    of->read_count = 0;
}

static void clear(segment *of)
{
    drop_reads(of);
    hdrt__toucher_drop(of->write);
    of->write = NULL;
}

/* A place before `index`. */
static bool insert(block *in, size_t index, segment new_one)
{
    if (in->count == in->capacity) {
        size_t capacity = in->capacity ? in->capacity * 2 : 4;
        segment *segments = realloc(in->segments, capacity * sizeof *segments);
        if (!segments) {
            return false;
        }
        in->segments = segments;
        in->capacity = capacity;
    }
    memmove(in->segments + index + 1, in->segments + index, (in->count - index) * sizeof new_one);
    in->segments[index] = new_one;
    in->count++;
    return true;
}

/* Cut the segment so that one begins at `address`, which lies inside it. */
static bool cut(block *in, size_t index, uint64_t address)
{
    segment *whole = &in->segments[index], second = *whole;
    second.first = address;
    second.reads = NULL;
    if (whole->read_count) {
        second.reads = malloc(whole->read_count * sizeof(hdrt__toucher *));
        if (!second.reads) {
            return false;
        }
        memcpy(second.reads, whole->reads, whole->read_count * sizeof(hdrt__toucher *));
    }
    if (!insert(in, index + 1, second)) {
        free(second.reads);
        return false;
    }
    in->segments[index].end = address;
    if (second.write) {
        hold(second.write);
    }
    for (uint32_t i = 0; i < second.read_count; i++) {
        hold(second.reads[i]);
    }
    return true;
}

/* The first segment that ends behind `address`. */
static size_t find(const block *in, uint64_t address)
{
    size_t low = 0, high = in->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (in->segments[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Let exactly the bytes from `first` to `end` be segments of their own. \return how many from *out_index on, 0: no
 * memory. */
static size_t isolate(block *in, uint64_t first, uint64_t end, size_t *out_index)
{
    size_t index = find(in, first), at;
    if (index < in->count && in->segments[index].first < first) {
        if (!cut(in, index, first)) {
            return 0;
        }
        index++;
    }
    *out_index = index;
    for (at = index; first < end; at++) {
        uint64_t next = at < in->count && in->segments[at].first < end ? in->segments[at].first : end;
        if (next > first) { /* bytes that nobody has touched */
            if (!insert(in, at, (segment){.first = first, .end = next})) {
                return 0;
            }
        } else if (in->segments[at].end > end && !cut(in, at, end)) {
            return 0;
        }
        first = in->segments[at].end;
    }
    return at - index;
}

/* Segments of the same history are one again. */
static void merge(block *in, size_t index, size_t count)
{
    size_t from = index ? index - 1 : 0, end = index + count < in->count ? index + count + 1 : in->count, kept = from;
    for (size_t i = from + 1; i < end; i++) {
        segment *before = &in->segments[kept], *here = &in->segments[i];
        bool same = before->end == here->first && before->write == here->write &&
                    before->read_count == here->read_count &&
                    (!here->read_count ||
                     memcmp(before->reads, here->reads, here->read_count * sizeof *here->reads) == 0);
        if (same) {
            before->end = here->end;
            clear(here);
        } else {
            in->segments[++kept] = *here;
        }
    }
    if (end > from + 1) {
        memmove(in->segments + kept + 1, in->segments + end, (in->count - end) * sizeof *in->segments);
        in->count -= end - kept - 1;
    }
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

typedef struct touch {
    const hdrt__access *access;
    hdrt__toucher *toucher;
    const hdrt__clock *clock;
    hdrt__shadow_conflict conflict;
    void *context;
} touch;

static bool is_before(const touch *now, const hdrt__toucher *other)
{
    return other->line == now->toucher->line || hdrt__clock_get(now->clock, other->line) >= other->at;
}

static void compare(touch *now, const hdrt__toucher *other, bool writes, uint64_t address)
{
    hdrt__toucher *toucher = now->toucher;
    if (other && !is_before(now, other) && (other->line != toucher->told_line || other->at != toucher->told_at)) {
        toucher->told_line = other->line;
        toucher->told_at = other->at;
        now->conflict(now->context, now->access, now->toucher, other, writes, address);
    }
}

/* Readers that this one comes after need not be remembered: who comes after it comes after them. */
static bool add_read(segment *of, const touch *now)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < of->read_count; i++) {
        if (is_before(now, of->reads[i])) {
            hdrt__toucher_drop(of->reads[i]);
        } else {
            of->reads[kept++] = of->reads[i];
        }
    }
    of->read_count = kept;
    hdrt__toucher **reads = realloc(of->reads, (kept + 1u) * sizeof *reads);
    if (!reads) {
        return false;
    }
    reads[kept] = hold(now->toucher);
    of->reads = reads;
    of->read_count = kept + 1;
    return true;
}

static bool touch_segment(segment *of, touch *now)
{
    compare(now, of->write, true, of->first);
    if (!now->access->writes) {
        return add_read(of, now);
    }
    for (uint32_t i = 0; i < of->read_count; i++) {
        compare(now, of->reads[i], false, of->first);
    }
    clear(of);
    of->write = hold(now->toucher);
    return true;
}

static block *block_of(hdrt__shadow *shadow, uint64_t number)
{
    block *found;
    HASH_FIND(hh, shadow->blocks, &number, sizeof number, found);
    if (!found && (found = calloc(1, sizeof *found))) {
        found->number = number;
        HASH_ADD(hh, shadow->blocks, number, sizeof number, found);
        if (!found->hh.tbl) {
            free(found);
            found = NULL;
        }
    }
    return found;
}

bool hdrt__shadow_touch(hdrt__shadow *shadow, const hdrt__access *access, hdrt__toucher *toucher,
                        const hdrt__clock *clock, hdrt__shadow_conflict conflict, void *context)
{
    touch now = {access, toucher, clock, conflict, context};
    block *in = block_of(shadow, access->block);
    size_t index = 0, count = in ? isolate(in, access->address, access->address + access->bytes, &index) : 0;
    if (!count) {
        return !access->bytes;
    }
    for (size_t i = index; i < index + count; i++) {
        if (!touch_segment(&in->segments[i], &now)) {
            return false;
        }
    }
    merge(in, index, count);
    return true;
}

static void free_block(hdrt__shadow *shadow, block *gone)
{
    HASH_DEL(shadow->blocks, gone);
    for (size_t i = 0; i < gone->count; i++) {
        clear(&gone->segments[i]);
    }
    free(gone->segments);
    free(gone);
}

void hdrt__shadow_forget(hdrt__shadow *shadow, uint64_t number)
{
    block *found;
    HASH_FIND(hh, shadow->blocks, &number, sizeof number, found);
    if (found) {
        free_block(shadow, found);
    }
}

hdrt__shadow *hdrt__shadow_create(void)
{
    return calloc(1, sizeof(hdrt__shadow));
}

void hdrt__shadow_destroy(hdrt__shadow *shadow)
{
    while (shadow && shadow->blocks) {
        free_block(shadow, shadow->blocks);
    }
    free(shadow);
}
