/* SPDX-License-Identifier: MIT */
/*
 * A number for every word (4 bytes) of every range of memory, 0 at first. Kept in pages that come about when a word of
 * theirs gets a number of its own; until then a page has one number for all. Under hdsoft__check_lock.
 */
#ifndef HDSOFT_CHECK_SHADOW_H
#define HDSOFT_CHECK_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

#include "soft/model/hdsoft_memory.h"

#define HDSOFT__PAGE_WORDS 4096u

typedef struct hdsoft__shadow_page {
    uint32_t *words; /* NULL: all are `same` */
    uint32_t same;
} hdsoft__shadow_page;

typedef struct hdsoft__shadow {
    hdsoft_range range;
    uint64_t first;       /* the number of its first word: address / 4 */
    uint64_t words;       /* how many */
    hdsoft__shadow_page *pages;
} hdsoft__shadow;

/* False: no memory. */
bool hdsoft__shadow_add(const hdsoft_range *range);
void hdsoft__shadow_remove(const hdsoft_range *range);
/* The range that holds an address; NULL: none. Good until ranges come or go. */
hdsoft__shadow *hdsoft__shadow_find(uint64_t address);
/* Words of a page of its own; NULL: no memory. */
uint32_t *hdsoft__shadow_words(hdsoft__shadow_page *page);
/* Changes when ranges come or go. */
uint64_t hdsoft__shadow_epoch(void);
/* What the pages take. */
uint64_t hdsoft__shadow_bytes(void);
/* Pass every number that a word has to the function and put what it answers in its place. */
void hdsoft__shadow_replace(uint32_t (*function)(uint32_t number));

static inline uint64_t hdsoft__shadow_page_count(const hdsoft__shadow *shadow)
{
    return (shadow->words + HDSOFT__PAGE_WORDS - 1) / HDSOFT__PAGE_WORDS;
}

#endif
