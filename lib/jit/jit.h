/* SPDX-License-Identifier: MIT */
/*
 * The jit of a runtime: compilers, workers and caches, and the way from a source to code through them. Made on the
 * runtime's first compile; knows no driver, so that tests and the tool's compile need none.
 *
 *     source -> key -> manifest (memory, disk) -> headers still as they were? -> image (memory, disk) -> code
 *                                                  no: worker -> code; manifest and image stored
 */
#ifndef HDRT_JIT_JIT_H
#define HDRT_JIT_JIT_H

#include <hdrt.h>

#include "jit/cancel.h"
#include "jit/find.h"
#include "jit/image.h"
#include "jit/key.h"
#include "jit/service.h"
#include "jit/source.h"
#include "jit/stats.h"
#include "jit/store.h"

typedef struct hdrt__jit hdrt__jit;

/* Copied. NULL members: not there, or search. */
typedef struct hdrt__jit_config {
    const char *worker, *recorder, *prelude; /* companions, as the runtime found them */
    const char *searched;                    /* where companions were looked for, for messages */
    const char *cache_dir, *nvrtc, *clang;   /* the runtime's options */
    uint32_t compile_workers;
    const char *const *cache_read_only;
    uint32_t cache_read_only_count;
    uint64_t cache_limit_bytes;
} hdrt__jit_config;

hdrt_status hdrt__jit_create(const hdrt__jit_config *config, hdrt__jit **out_jit);
void hdrt__jit_destroy(hdrt__jit *jit);

/* For whom a compile is. */
typedef struct hdrt__target {
    bool soft;        /* the soft driver: clang only */
    bool nvidia;      /* NVIDIA's driver will load it: libdevice is linked where needed */
    const char *arch; /* what the device is, where options do not say; lowered to what the compiler knows */
    uint32_t driver_version; /* CUDA's: 1000 * major + 10 * minor; 0: any driver may get the code */
} hdrt__target;

/* What came of a compile. */
typedef struct hdrt__result {
    hdrt__code *code; /* held; NULL on most failures */
    bool from_cache;
    char **dependencies; /* files that were read, where asked for */
    uint32_t dependency_count;
} hdrt__result;

void hdrt__result_free(hdrt__result *result);

/*
 * Code for a source: from the caches, or compiled. Statuses as hdrt_image_compile. On HDRT_ERROR_COMPILE *out_code has
 * the log and diagnostics, on other failures it is NULL.
 */
hdrt_status hdrt__jit_compile(hdrt__jit *jit, const hdrt_source *source, const hdrt_compile_options *options,
                              const hdrt__target *target, hdrt__code **out_code, bool *out_from_cache);

/*
 * The same for an input that was read before, with all that is known of the result; `dependencies`: those too. `cancel`
 * may be NULL; HDRT_ERROR_CANCELLED once it is asked for.
 */
hdrt_status hdrt__jit_obtain(hdrt__jit *jit, const hdrt__input *input, const hdrt__target *target, bool dependencies,
                             hdrt__cancel *cancel, hdrt__result *out_result);

/* A compile's request and key without the compile: what the visitor returns. */
typedef hdrt_status (*hdrt__request_visitor)(void *context, const hdrt__request *request, const hdrt__digest *key);
hdrt_status hdrt__jit_request(hdrt__jit *jit, const hdrt__input *input, const hdrt__target *target,
                              hdrt__request_visitor visitor, void *context);

/* The driver did not take this code: forget it, so that the next compile makes it again. */
void hdrt__jit_reject(hdrt__jit *jit, const hdrt__code *code);

/* The threads for asynchronous compiles; HDRT_ERROR_OUT_OF_MEMORY. */
hdrt_status hdrt__jit_service(hdrt__jit *jit, hdrt__service **out_service);

/*
 * The index-th compiler of a kind; if there is none at all, the 0th says in its rule what was tried. Strings live as
 * long as the jit. HDRT_OK, HDRT_ERROR_NOT_FOUND past the end, HDRT_ERROR_OUT_OF_MEMORY.
 */
hdrt_status hdrt__jit_compiler(hdrt__jit *jit, hdrt_compiler compiler, uint32_t index, hdrt__found *out_found);

/* The functions that the code calls and NVIDIA's driver does not have, in words, with what to do. */
hdrt_status hdrt__jit_unresolved(const hdrt__code *code);

hdrt__store *hdrt__jit_store(hdrt__jit *jit);
hdrt__stats *hdrt__jit_stats(hdrt__jit *jit);
/* Compile workers started so far, for tests and statistics. */
uint64_t hdrt__jit_workers_started(hdrt__jit *jit);

/* The runtime's, made on first use; NULL with a message if that fails. */
hdrt__jit *hdrt__runtime_jit(hdrt_runtime *runtime);
/* What a compile without a device is for. */
void hdrt__runtime_target(const hdrt_runtime *runtime, hdrt__target *out);
/* What a device is as a target. `arch` must stay as long as the target. */
void hdrt__device_target(const hdrt_device *device, char arch[16], hdrt__target *out);

#endif
