/* SPDX-License-Identifier: MIT */
/*
 * Where in the host program something was made or freed: the entry point that was called and the frames of its
 * caller. Captured by the entry points while a check is on, before they take a lock, kept for as long as the process
 * lives, each place once, so that whoever holds one need not care who else does. Thread-safe; the lock is a leaf.
 */
#ifndef HDSOFT_CHECK_SITE_H
#define HDSOFT_CHECK_SITE_H

#include "soft/ptx/text.h"

#define HDSOFT__SITE_FRAMES 12

typedef struct hdsoft__site {
    const char *entry; /* the symbol of the entry point */
    const char *through; /* the function of libhdrt that called it; NULL: another caller */
    unsigned frame_count;
    void *frames[HDSOFT__SITE_FRAMES]; /* return addresses, the innermost first */
} hdsoft__site;

/* An entry point begins, and no lock is held: what it is called, and where it returns to. Captures the place for this
 * thread; NULL: there is none. */
void hdsoft__site_enter(const char *entry, void *return_address);
/* The place that this thread's call came from; NULL when no check is on, or there is no memory for it. */
const hdsoft__site *hdsoft__site_here(void);
/* "cuMemAlloc_v2 through hdrt_alloc" and a line for each frame, indented; "an unknown call" for NULL. */
void hdsoft__site_describe(const hdsoft__site *site, hdsoft_text *text);

#endif
