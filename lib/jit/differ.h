/* SPDX-License-Identifier: MIT */
/*
 * What differs between two invocations: the fields of one's key held against those of another, as manifests keep them.
 */
#ifndef HDRT_JIT_DIFFER_H
#define HDRT_JIT_DIFFER_H

#include <hdrt.h>

#include "jit/key.h"
#include "jit/manifest.h"
#include "jit/store.h"

/* The fields of a request as they are kept: long ones as a digest and a length. false: out of memory. */
bool hdrt__fields_of(const hdrt__request *request, hdrt__fields *out);

/* One difference; before or now NULL: there was, or is, none. Valid during the call. */
typedef void (*hdrt__difference_visitor)(void *context, uint32_t tag, const char *before, const char *now);
/* Visits all differences (visitor may be NULL), the most telling first; how many there are. */
uint32_t hdrt__fields_compare(const hdrt__fields *before, const hdrt__fields *now, hdrt__difference_visitor visitor,
                              void *context);

/* Of the latest manifests for a source's name, the one whose key is nearest; false if there is none. */
bool hdrt__nearest_manifest(hdrt__store *store, const char *name, const hdrt__fields *fields, hdrt__manifest *out);

/* Why a request of those fields is new: the first difference to the nearest, in words. */
hdrt_cache_reason hdrt__explain_new(hdrt__store *store, const char *name, const hdrt__fields *fields,
                                    hdrt__buffer *text);
/* "target: 'sm_80' before, 'sm_90' now". */
void hdrt__difference_words(hdrt__buffer *text, uint32_t tag, const char *before, const char *now);

#endif
