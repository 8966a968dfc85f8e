/* SPDX-License-Identifier: MIT */
/*
 * What one compile read and what it looked for in vain, as the worker told it: made from its answer, checked once
 * more when the compile is over, then packed (files.h) into a manifest.
 */
#ifndef HDRT_JIT_RECORD_H
#define HDRT_JIT_RECORD_H

#include "base/buffer.h"
#include "base/digest.h"
#include "jit/stamp.h"

typedef struct hdrt__dependency {
    char *path; /* absolute */
    hdrt__stamp stamp; /* times 0: so young when read that only its content tells */
    hdrt__digest digest;
} hdrt__dependency;

typedef struct hdrt__record {
    hdrt__dependency *dependencies;
    uint32_t dependency_count, dependency_capacity;
    char **absent; /* absolute */
    uint32_t absent_count, absent_capacity;
} hdrt__record;

/* Texts are copied, not NUL-terminated. false: out of memory. */
bool hdrt__record_add_dependency(hdrt__record *record, const char *path, size_t path_size, const hdrt__stamp *stamp,
                                 const hdrt__digest *digest);
bool hdrt__record_add_absent(hdrt__record *record, const char *path, size_t path_size);
void hdrt__record_free(hdrt__record *record);

/* The image's name: key, what was read, what was not there. */
hdrt__digest hdrt__record_image(const hdrt__digest *key, const hdrt__record *record);

/*
 * After a compile that began at `began_ns` of the wall clock: read every file again, and say why the result must not be
 * stored: one changed since the compiler opened it, appeared, or takes the date or time into the code. NULL: store it.
 * Marks stamps that are too young to tell anything. `text` is for the reason's words.
 */
const char *hdrt__record_settle(hdrt__record *record, uint64_t began_ns, hdrt__buffer *text);

/*
 * Whether the bytes have __DATE__, __TIME__ or __TIMESTAMP__ in them, also over spliced lines, or pieces that could be
 * pasted to one. Says yes too often rather than too seldom.
 */
bool hdrt__has_time_macro(const char *bytes, size_t size);

/* As a compiler's search sees it: anything there, even a folder, is not absent. */
bool hdrt__is_absent(const char *path);

#endif
