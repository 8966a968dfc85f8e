/* SPDX-License-Identifier: MIT */
/*
 * The entry points of CUDA 13.0 that lie outside of what the soft driver does. They are found by name as on a real
 * driver, and each answers 801 (not supported) and says which area it belongs to: on stderr the first time, and
 * through hdsoft_last_unsupported. table.c looks them up; inject_rules.c lets them be hidden.
 */
#ifndef HDSOFT_API_OUTSIDE_H
#define HDSOFT_API_OUTSIDE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hdsoft__outside {
    const char *name, *symbol; /* what cuda.h calls it, and what it is exported as */
    int version;               /* the first at which cuGetProcAddress knows it */
    void *function;            /* whatever its parameters: they are not looked at */
} hdsoft__outside;

/* The one with that name, or that symbol; NULL: there is none. */
const hdsoft__outside *hdsoft__outside_by_name(const char *name);
const hdsoft__outside *hdsoft__outside_by_symbol(const char *symbol);
/* Whether one of them fits a pattern of fnmatch. */
bool hdsoft__outside_matches(const char *pattern);
/* Say that a call is not supported, and why; 801. */
unsigned hdsoft__outside_answer(const char *name, const char *area, bool *said);
/* What was said last; "" before. */
const char *hdsoft__outside_said(void);

#endif
