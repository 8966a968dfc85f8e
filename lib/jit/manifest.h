/* SPDX-License-Identifier: MIT */
/*
 * The first level of the cache: for one source and invocation, which files the compiler read and which it looked for in
 * vain, and which image came of it. Several states of the same headers are kept side by side, newest first, so that
 * switching back to an earlier state finds its image again.
 *
 * With them are kept, for explanations only, the fields that the key was made of and why each image had to be compiled.
 */
#ifndef HDRT_JIT_MANIFEST_H
#define HDRT_JIT_MANIFEST_H

#include <hdrt.h>

#include "base/buffer.h"
#include "base/digest.h"
#include "jit/files.h"
#include "jit/record.h"

/* One field of a key, as key.h numbers them; value NULL: absent. */
typedef struct hdrt__field {
    uint32_t tag;
    char *value;
} hdrt__field;

typedef struct hdrt__fields {
    hdrt__field *items;
    uint32_t count, capacity;
} hdrt__fields;

bool hdrt__fields_add(hdrt__fields *fields, uint32_t tag, const char *value, size_t size); /* value NULL: absent */
void hdrt__fields_free(hdrt__fields *fields);

/* One state of the headers. */
typedef struct hdrt__state {
    hdrt__digest image;
    hdrt__files files;
    char *reason; /* why it was compiled, in words; may be NULL */
} hdrt__state;

#define HDRT__STATE_LIMIT 16u

typedef struct hdrt__manifest {
    hdrt__digest key;
    hdrt__fields fields; /* none in memory's manifests */
    hdrt__state states[HDRT__STATE_LIMIT];
    uint32_t count;
} hdrt__manifest;

bool hdrt__state_copy(const hdrt__state *state, hdrt__state *out);
void hdrt__state_free(hdrt__state *state);

/* Put a state in front (moved from *state), instead of one for the same image; the oldest of many goes. */
void hdrt__manifest_add(hdrt__manifest *manifest, hdrt__state *state);
void hdrt__manifest_write(const hdrt__manifest *manifest, hdrt__buffer *bytes);
/*
 * HDRT_CACHE_HIT: an undamaged manifest of that key (NULL: of any). Else what it is instead, and *out is empty.
 * Without `fields` those are not read. The bytes, from malloc, are given away: a single state's files stay in them.
 */
hdrt_cache_reason hdrt__manifest_read(unsigned char *bytes, size_t size, const hdrt__digest *key, bool fields,
                                      hdrt__manifest *out);
void hdrt__manifest_free(hdrt__manifest *manifest);

#endif
