/* SPDX-License-Identifier: MIT */
/*
 * The first level of the cache: for one source and invocation, which files the compiler read and which it looked for in
 * vain, and which image came of it. Several states of the same headers are kept side by side, newest first, so that
 * switching back to an earlier state finds its image again.
 */
#ifndef HDRT_JIT_MANIFEST_H
#define HDRT_JIT_MANIFEST_H

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
    char **absent;
    uint32_t absent_count, absent_capacity;
    hdrt__digest image;
} hdrt__record;

#define HDRT__RECORD_LIMIT 16u

typedef struct hdrt__manifest {
    hdrt__digest key;
    hdrt__record records[HDRT__RECORD_LIMIT];
    uint32_t count;
} hdrt__manifest;

/* Texts are copied, not NUL-terminated. false: out of memory. */
bool hdrt__record_add_dependency(hdrt__record *record, const char *path, size_t path_size, const hdrt__stamp *stamp,
                                 const hdrt__digest *digest);
bool hdrt__record_add_absent(hdrt__record *record, const char *path, size_t path_size);
bool hdrt__record_copy(const hdrt__record *record, hdrt__record *out);
void hdrt__record_free(hdrt__record *record);

/* The image's name: key, what was read, what was not there. */
hdrt__digest hdrt__record_image(const hdrt__digest *key, const hdrt__record *record);

/*
 * Whether the files are still as recorded. A file whose stamp differs is read and compared; if its content is the same,
 * its stamp is brought up to date and *out_refreshed set, so that the next look is cheap again.
 */
bool hdrt__record_current(hdrt__record *record, bool *out_refreshed);

/*
 * After a compile that began at `began_ns` of the wall clock: read every file again, and say why the result must not be
 * stored: one changed since the compiler opened it, appeared, or takes the date or time into the code. NULL: store it.
 * Marks stamps that are too young to tell anything. `text` is for the reason's words.
 */
const char *hdrt__record_settle(hdrt__record *record, uint64_t began_ns, hdrt__buffer *text);

/* Whether the bytes have __DATE__, __TIME__ or __TIMESTAMP__ in them. */
bool hdrt__has_time_macro(const char *bytes, size_t size);

/* Put a record in front (moved from *record), instead of one for the same image; the oldest of many goes. */
void hdrt__manifest_add(hdrt__manifest *manifest, hdrt__record *record);
void hdrt__manifest_write(const hdrt__manifest *manifest, hdrt__buffer *bytes);
/* false: no undamaged manifest of that key. */
bool hdrt__manifest_read(const unsigned char *bytes, size_t size, const hdrt__digest *key, hdrt__manifest *out);
void hdrt__manifest_free(hdrt__manifest *manifest);

#endif
