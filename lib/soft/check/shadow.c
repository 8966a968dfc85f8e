/* SPDX-License-Identifier: MIT */
#include "soft/check/shadow.h"

#include <stdlib.h>
#include <string.h>

static struct {
    hdsoft__shadow **ranges; /* sorted by base */
    size_t count, capacity;
    uint64_t epoch, bytes;
} shadows;

/* How many ranges begin at or below the address. */
static size_t ranges_up_to(uint64_t address)
{
    size_t low = 0, high = shadows.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (shadows.ranges[middle]->range.base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool hdsoft__shadow_add(const hdsoft_range *range)
{
    if (shadows.count == shadows.capacity) {
        size_t capacity = shadows.capacity ? 2 * shadows.capacity : 64;
        hdsoft__shadow **grown = realloc(shadows.ranges, capacity * sizeof *grown);
        if (!grown)
            return false;
        shadows.ranges = grown;
        shadows.capacity = capacity;
    }
    hdsoft__shadow *shadow = calloc(1, sizeof *shadow);
    if (!shadow)
        return false;
    shadow->range = *range;
    shadow->first = range->base / 4;
    shadow->words = (range->end + 3) / 4 - shadow->first;
    shadow->pages = calloc(hdsoft__shadow_page_count(shadow) + 1, sizeof *shadow->pages);
    if (!shadow->pages) {
        free(shadow);
        return false;
    }
    size_t index = ranges_up_to(range->base);
    memmove(shadows.ranges + index + 1, shadows.ranges + index, (shadows.count - index) * sizeof *shadows.ranges);
    shadows.ranges[index] = shadow;
    shadows.count++;
    shadows.epoch++;
    return true;
}

void hdsoft__shadow_remove(const hdsoft_range *range)
{
    size_t index = ranges_up_to(range->base);
    if (!index || shadows.ranges[index - 1]->range.base != range->base)
        return;
    hdsoft__shadow *shadow = shadows.ranges[index - 1];
    uint64_t count = hdsoft__shadow_page_count(shadow);
    for (uint64_t i = 0; i < count; i++) {
        if (shadow->pages[i].words) {
            shadows.bytes -= HDSOFT__PAGE_WORDS * sizeof *shadow->pages[i].words;
            free(shadow->pages[i].words);
        }
    }
    free(shadow->pages);
    free(shadow);
    shadows.count--;
    memmove(shadows.ranges + index - 1, shadows.ranges + index, (shadows.count - index + 1) * sizeof *shadows.ranges);
    shadows.epoch++;
}

hdsoft__shadow *hdsoft__shadow_find(uint64_t address)
{
    size_t index = ranges_up_to(address);
    return index && address < shadows.ranges[index - 1]->range.end ? shadows.ranges[index - 1] : NULL;
}

uint32_t *hdsoft__shadow_words(hdsoft__shadow_page *page)
{
    if (page->words)
        return page->words;
    page->words = malloc(HDSOFT__PAGE_WORDS * sizeof *page->words);
    if (!page->words)
        return NULL;
    shadows.bytes += HDSOFT__PAGE_WORDS * sizeof *page->words;
    for (uint32_t i = 0; i < HDSOFT__PAGE_WORDS; i++)
        page->words[i] = page->same;
    return page->words;
}

uint64_t hdsoft__shadow_epoch(void)
{
    return shadows.epoch;
}

uint64_t hdsoft__shadow_bytes(void)
{
    return shadows.bytes;
}

static void replace_page(hdsoft__shadow_page *page, uint32_t (*function)(uint32_t number))
{
    if (!page->words) {
        page->same = page->same ? function(page->same) : 0;
        return;
    }
    uint32_t last = 0, with = 0;
    for (uint32_t i = 0; i < HDSOFT__PAGE_WORDS; i++) {
        if (page->words[i] != last) {
            last = page->words[i];
            with = last ? function(last) : 0;
        }
        page->words[i] = with;
    }
}

void hdsoft__shadow_replace(uint32_t (*function)(uint32_t number))
{
    for (size_t r = 0; r < shadows.count; r++) {
        hdsoft__shadow *shadow = shadows.ranges[r];
        uint64_t count = hdsoft__shadow_page_count(shadow);
        for (uint64_t i = 0; i < count; i++)
            replace_page(&shadow->pages[i], function);
    }
}
