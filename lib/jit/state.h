/* SPDX-License-Identifier: MIT */
/*
 * The jit's inside, for jit.c, which makes it and finds its compilers, and compile.c, which takes sources through it.
 */
#ifndef HDRT_JIT_STATE_H
#define HDRT_JIT_STATE_H

#include <pthread.h>

#include "jit/find.h"
#include "jit/identity.h"
#include "jit/jit.h"
#include "jit/memory.h"
#include "jit/recording.h"
#include "jit/worker.h"

/* Compilers of one kind that were looked for. An identity is made again when one of its files changes. */
typedef struct hdrt__jit_compilers {
    bool searched, all; /* all: in every place, not only up to one that was good enough */
    hdrt__found_list list;
    hdrt__identity *identities; /* one for each in the list */
    struct hdrt__jit_compilers *before; /* earlier searches, whose strings somebody may still have */
} hdrt__jit_compilers;

struct hdrt__jit {
    char *worker, *recorder, *prelude, *searched, *nvrtc, *clang;
    uint32_t compile_workers;
    uint64_t fork_generation;
    hdrt__store *store;
    hdrt__memory_cache *memory;
    hdrt__stats stats;
    hdrt__recording *recording; /* NULL: not asked for */
    pthread_mutex_t lock; /* guards what follows */
    hdrt__jit_compilers compilers[HDRT_COMPILER_CLANG + 1];
    bool libdevice_searched;
    char *libdevice;
    hdrt__worker_pool *pool; /* made by the first compile */
    hdrt__service *service;  /* made by the first asynchronous one */
};

/* What a compile needs to know of its compiler, copied under the lock: it may be searched again meanwhile. */
typedef struct hdrt__chosen_compiler {
    hdrt_compiler compiler;
    hdrt__digest identity;
    uint32_t index; /* in the list of its kind */
    char *identity_lines; /* what it is made of */
    hdrt__found found;
    bool newer_than_driver; /* the driver takes its cubins, maybe, but not its PTX */
    char *libdevice; /* to link where needed; NULL: none, or not wanted */
} hdrt__chosen_compiler;

/*
 * The compiler for `asked` and a target, as it is now. HDRT_OK; HDRT_ERROR_NO_COMPILER with all that was tried;
 * HDRT_ERROR_UNSUPPORTED  NVRTC for the soft driver; HDRT_ERROR_OUT_OF_MEMORY. Free with hdrt__chosen_free either way.
 */
hdrt_status hdrt__jit_choose(hdrt__jit *jit, hdrt_compiler asked, const hdrt__target *target,
                             hdrt__chosen_compiler *out);
void hdrt__chosen_free(hdrt__chosen_compiler *chosen);
void hdrt__jit_compilers_free(hdrt__jit *jit);

/*
 * nvJitLink: the one beside the NVRTC of that path (may be NULL), or else the newest. HDRT_OK, with a path of the
 * caller's; HDRT_ERROR_UNSUPPORTED  there is none, with where it was looked for; HDRT_ERROR_OUT_OF_MEMORY.
 */
hdrt_status hdrt__jit_linker(hdrt__jit *jit, const char *nvrtc, char **out_path);

/* The worker's status in the caller's terms, with its message. */
struct hdrt__reply;
hdrt_status hdrt__jit_judge(const struct hdrt__reply *reply);

#define HDRT__TIME_LIMIT_MS 60000u
#define HDRT__MEMORY_LIMIT_BYTES (UINT64_C(8) << 30)

/* Whether the compiler's files are still those that were chosen. */
bool hdrt__jit_still(hdrt__jit *jit, const hdrt__chosen_compiler *chosen);

/* The workers, made on first use. HDRT_ERROR_COMPANION without hdrt-cc. */
hdrt_status hdrt__jit_pool(hdrt__jit *jit, hdrt__worker_pool **out_pool);
hdrt_status hdrt__jit_missing_companion(const hdrt__jit *jit, const char *what);

#endif
