/* SPDX-License-Identifier: MIT */
/*
 * Key to code without a compiler: memory's manifests and images, then the folders'; and the way back, what a compile
 * made into all of them. Counts what came of it.
 */
#ifndef HDRT_JIT_LOOKUP_H
#define HDRT_JIT_LOOKUP_H

#include "jit/image.h"
#include "jit/jit.h"
#include "jit/key.h"
#include "jit/manifest.h"

/* Why nothing was found: the reason, and what it is about in words ("" or a path). Free with hdrt__miss_free. */
typedef struct hdrt__miss {
    hdrt_cache_reason reason;
    hdrt__buffer text;
} hdrt__miss;

void hdrt__miss_free(hdrt__miss *miss);
/* The text, "" if there is none. */
const char *hdrt__miss_words(const hdrt__miss *miss);

/*
 * `memory`, the claimed manifest of the key, may be NULL. NULL: not found, and *miss says why. `out_files`, if not
 * NULL, gets a copy of the files that were read; empty if memory is out.
 */
hdrt__code *hdrt__look_up(hdrt__jit *jit, const hdrt__digest *key, hdrt__manifest *memory, hdrt__miss *miss,
                          hdrt__files *out_files);

/* The image of that name, from memory or a folder; NULL: not found, and *miss says why. */
hdrt__code *hdrt__find_image(hdrt__jit *jit, const hdrt__digest *name, hdrt__miss *miss);

/* What explanations are told: the state that matched or the one that nearly did, and where. */
typedef struct hdrt__finding {
    hdrt_cache_reason reason;
    hdrt__buffer path;     /* of the file that made the difference */
    hdrt__digest image;    /* on a hit */
    uint32_t image_folder; /* on a hit */
    uint32_t folder;       /* of the manifest */
    char *last_reason;     /* why the newest state was compiled */
} hdrt__finding;

/* Looks as hdrt__look_up does, past memory, and changes nothing. */
void hdrt__look_closely(hdrt__jit *jit, const hdrt__digest *key, hdrt__finding *out);
void hdrt__finding_free(hdrt__finding *finding);

/* What a compile made: its record is settled, its code complete, and nothing speaks against storing it. */
typedef struct hdrt__outcome {
    const hdrt__request *request;
    const hdrt__digest *key;
    const hdrt__record *record;
    hdrt__code *code; /* gets its name */
    const hdrt__miss *miss;
    uint64_t began_ns; /* of the wall clock */
} hdrt__outcome;

/* Memory and disk; false if it is not on disk. */
bool hdrt__keep(hdrt__jit *jit, const hdrt__outcome *outcome, hdrt__manifest *memory);

#endif
