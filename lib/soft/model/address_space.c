/* SPDX-License-Identifier: MIT */
#include "soft/model/address_space.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FRESH_WORD 0x7ff7a5a5u
/* Above it fresh memory is mapped copy-on-write from one file, so that a 10 GiB allocation costs no 10 GiB. */
#define FILL_BY_MAPPING ((uint64_t)16 << 20)
#define PATTERN_BYTES ((uint64_t)8 << 20)
/* Freed blocks below it keep their pages: the system call costs more than they are worth. */
#define DISCARD_FROM ((uint64_t)64 << 10)
#define PAGE ((uint64_t)4096)
/* The backing is opened in such steps: leak checkers read all that can be read. */
#define OPEN_STEP ((uint64_t)64 << 20)

static void *map_reserved(uint64_t bytes, int protection)
{
    void *at = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

int hdsoft__space_create(hdsoft__space *space, uint64_t wished, uint64_t least)
{
    memset(space, 0, sizeof *space);
    space->pattern_file = -1;
    for (uint64_t bytes = wished; bytes >= least; bytes /= 2) {
        void *window = map_reserved(bytes, PROT_NONE);
        void *backing = window ? map_reserved(bytes, PROT_NONE) : NULL;
        if (backing) {
            /* A forked child may not use the driver, so it need not copy the page tables; dumps stay small. */
            madvise(backing, bytes, MADV_DONTFORK);
            madvise(backing, bytes, MADV_DONTDUMP);
            space->base = (uint64_t)(uintptr_t)window;
            space->bytes = bytes;
            space->backing = backing;
            space->top = space->base + ((uint64_t)2 << 20);
            space->opened = space->base;
            return 0;
        }
        if (window)
            munmap(window, bytes);
    }
    return 2;
}

void hdsoft__space_destroy(hdsoft__space *space)
{
    if (space->backing) {
        munmap(space->backing, space->bytes);
        munmap((void *)(uintptr_t)space->base, space->bytes);
    }
    if (space->pattern_file >= 0)
        close(space->pattern_file);
    free(space->free);
    memset(space, 0, sizeof *space);
    space->pattern_file = -1;
}

bool hdsoft__space_reserve(hdsoft__space *space, size_t more)
{
    size_t capacity = space->free_capacity ? space->free_capacity : 64;
    while (capacity - space->free_count < more)
        capacity *= 2;
    if (capacity == space->free_capacity)
        return true;
    hdsoft__extent *grown = realloc(space->free, capacity * sizeof *grown);
    if (!grown)
        return false;
    space->free = grown;
    space->free_capacity = capacity;
    return true;
}

static bool insert_extent(hdsoft__space *space, size_t index, uint64_t base, uint64_t bytes)
{
    if (!hdsoft__space_reserve(space, 1))
        return false;
    memmove(space->free + index + 1, space->free + index, (space->free_count - index) * sizeof *space->free);
    space->free[index] = (hdsoft__extent){base, bytes};
    space->free_count++;
    return true;
}

static void remove_extent(hdsoft__space *space, size_t index)
{
    space->free_count--;
    memmove(space->free + index, space->free + index + 1, (space->free_count - index) * sizeof *space->free);
}

/* Make the backing usable up to an address. */
static bool open_backing(hdsoft__space *space, uint64_t end)
{
    if (end <= space->opened)
        return true;
    uint64_t wanted = (end - space->base + OPEN_STEP - 1) / OPEN_STEP * OPEN_STEP;
    wanted = wanted < space->bytes ? wanted : space->bytes;
    if (mprotect(space->backing + (space->opened - space->base), space->base + wanted - space->opened,
                 PROT_READ | PROT_WRITE))
        return false;
    space->opened = space->base + wanted;
    return true;
}

uint64_t hdsoft__space_take(hdsoft__space *space, uint64_t bytes, uint64_t align)
{
    for (size_t i = 0; i < space->free_count; i++) {
        const hdsoft__extent *extent = &space->free[i];
        uint64_t start = (extent->base + align - 1) & ~(align - 1);
        uint64_t lead = start - extent->base;
        if (lead > extent->bytes || extent->bytes - lead < bytes)
            continue;
        if (!hdsoft__space_reserve(space, 1))
            break;
        hdsoft__space_take_at(space, start, bytes);
        return start;
    }
    uint64_t start = (space->top + align - 1) & ~(align - 1);
    uint64_t end = space->base + space->bytes;
    if (start > end || end - start < bytes || !open_backing(space, start + bytes))
        return 0;
    uint64_t lead = start - space->top, lead_base = space->top;
    space->top = start + bytes;
    if (lead)
        hdsoft__space_give(space, lead_base, lead);
    return start;
}

/* The number of free stretches that begin below the address. */
static size_t extents_below(const hdsoft__space *space, uint64_t address)
{
    size_t low = 0, high = space->free_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (space->free[middle].base < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void hdsoft__space_take_at(hdsoft__space *space, uint64_t base, uint64_t bytes)
{
    size_t index = extents_below(space, base + 1) - 1;
    hdsoft__extent *extent = &space->free[index];
    uint64_t lead = base - extent->base, tail = extent->bytes - lead - bytes;
    if (lead) {
        extent->bytes = lead;
        if (tail)
            insert_extent(space, index + 1, base + bytes, tail);
    } else if (tail) {
        *extent = (hdsoft__extent){base + bytes, tail};
    } else {
        remove_extent(space, index);
    }
}

void hdsoft__space_give(hdsoft__space *space, uint64_t base, uint64_t bytes)
{
    size_t low = extents_below(space, base);
    bool joins_before = low > 0 && space->free[low - 1].base + space->free[low - 1].bytes == base;
    bool joins_after = low < space->free_count && base + bytes == space->free[low].base;
    if (joins_before && joins_after) {
        space->free[low - 1].bytes += bytes + space->free[low].bytes;
        remove_extent(space, low);
    } else if (joins_before) {
        space->free[low - 1].bytes += bytes;
    } else if (joins_after) {
        space->free[low].base = base;
        space->free[low].bytes += bytes;
    } else {
        (void)insert_extent(space, low, base, bytes);
    }
}

static void fill_words(unsigned char *at, uint64_t bytes)
{
    uint32_t words[16];
    for (size_t i = 0; i < 16; i++)
        words[i] = FRESH_WORD;
    while (bytes) {
        size_t part = bytes < sizeof words ? bytes : sizeof words;
        memcpy(at, words, part);
        at += part;
        bytes -= part;
    }
}

static int pattern_file(hdsoft__space *space)
{
    if (space->pattern_file >= 0)
        return space->pattern_file;
    int file = memfd_create("hdsoft-fresh", MFD_CLOEXEC);
    if (file < 0)
        return -1;
    unsigned char *at = MAP_FAILED;
    if (!ftruncate(file, (off_t)PATTERN_BYTES))
        at = mmap(NULL, PATTERN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) {
        close(file);
        return -1;
    }
    fill_words(at, PATTERN_BYTES);
    munmap(at, PATTERN_BYTES);
    space->pattern_file = file;
    return file;
}

void hdsoft__space_fill(hdsoft__space *space, uint64_t base, uint64_t bytes)
{
    unsigned char *at = hdsoft__space_host(space, base), *end = at + bytes;
    if (bytes >= FILL_BY_MAPPING && pattern_file(space) >= 0) {
        unsigned char *page = at + (-(uintptr_t)at & (PAGE - 1));
        fill_words(at, (uint64_t)(page - at));
        at = page;
        while ((uint64_t)(end - at) >= PAGE) {
            uint64_t part = (uint64_t)(end - at) & ~(PAGE - 1);
            part = part < PATTERN_BYTES ? part : PATTERN_BYTES;
            if (mmap(at, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, space->pattern_file,
                     0) == MAP_FAILED)
                break;
            madvise(at, part, MADV_DONTFORK);
            madvise(at, part, MADV_DONTDUMP);
            at += part;
        }
    }
    fill_words(at, (uint64_t)(end - at));
}

void hdsoft__space_discard(hdsoft__space *space, uint64_t base, uint64_t bytes)
{
    uint64_t first = (base + PAGE - 1) & ~(PAGE - 1), last = (base + bytes) & ~(PAGE - 1);
    if (bytes < DISCARD_FROM || last <= first)
        return;
    void *at = hdsoft__space_host(space, first);
    if (bytes < FILL_BY_MAPPING) {
        madvise(at, last - first, MADV_DONTNEED);
        return;
    }
    if (mmap(at, last - first, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
             0) != MAP_FAILED) {
        madvise(at, last - first, MADV_DONTFORK);
        madvise(at, last - first, MADV_DONTDUMP);
    }
}
