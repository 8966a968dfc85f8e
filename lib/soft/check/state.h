/* SPDX-License-Identifier: MIT */
/*
 * The states that words may be in: which accesses a later one must still be held against. Each state is kept once and
 * has a number; 0 is that of words without any. Under hdsoft__check_lock.
 */
#ifndef HDSOFT_CHECK_STATE_H
#define HDSOFT_CHECK_STATE_H

#include "soft/check/check.h"
#include "soft/check/clock.h"

/* What an access does. Whether two of them conflict is a matter of both. */
typedef enum hdsoft__touch_kind {
    HDSOFT__TOUCH_READ,
    HDSOFT__TOUCH_WRITE,
    HDSOFT__TOUCH_COMMAND_WRITE, /* a copy's, a memset's */
    HDSOFT__TOUCH_STRONG_READ,   /* atomic, volatile */
    HDSOFT__TOUCH_STRONG_WRITE,
    HDSOFT__TOUCH_POLL,          /* a stream's wait for a value, which commands may set */
} hdsoft__touch_kind;

bool hdsoft__conflict(hdsoft__touch_kind one, hdsoft__touch_kind other);
/* Whatever conflicts with `other` conflicts with `one` too. */
bool hdsoft__covers(hdsoft__touch_kind one, hdsoft__touch_kind other);

typedef struct hdsoft__state_entry {
    hdsoft__operation *operation; /* held by the state */
    uint64_t time;                /* of its chain */
    uint32_t instruction;
    uint8_t kind, mask;           /* mask: which of the word's bytes */
} hdsoft__state_entry;

typedef struct hdsoft__state {
    uint32_t count, hash, next;   /* next: in its bucket */
    bool used;
    hdsoft__state_entry entries[];
} hdsoft__state;

const hdsoft__state *hdsoft__state_get(uint32_t number); /* not of 0 */
/* The number of the state with those entries; UINT32_MAX: no memory, or too much of it. */
uint32_t hdsoft__state_number(const hdsoft__state_entry *entries, uint32_t count);
/* It is time to sweep: forget those that nobody can conflict with, as all in them is known to the clock. Their words
 * get 0; nobody else may have a number of theirs at hand. */
bool hdsoft__states_are_many(void);
void hdsoft__states_sweep(const hdsoft__clock *floor);

#endif
