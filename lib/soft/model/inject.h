/* SPDX-License-Identifier: MIT */
/*
 * Failures on request: HDSOFT_FAIL in the environment, hdsoft_inject from C. Rules are separated by semicolons:
 *
 *   cuMemAlloc_v2:3=2     the third call from now returns 2, once; the symbol or the plain name
 *   cuLaunchKernel:*=701  every call
 *   fault@5=700           the fifth kernel executed from now ends with that fault
 *
 * Codes that are sticky on an H200 poison the current context's device here too. Thread-safe.
 */
#ifndef HDSOFT_MODEL_INJECT_H
#define HDSOFT_MODEL_INJECT_H

#include "soft/model/entries.h"

/* Add rules; NULL forgets all of them. 0, or 1 (a rule that cannot be read: none of them counts). */
int hdsoft__inject(const char *rules);
void hdsoft__inject_from_environment(void);
/* A call begins: counted. Returns the code that it must fail with, or 0. */
unsigned hdsoft__inject_call(hdsoft__entry entry);
/* A kernel begins: the same. */
unsigned hdsoft__inject_kernel(void);
uint64_t hdsoft__call_count(const char *name);

#endif
