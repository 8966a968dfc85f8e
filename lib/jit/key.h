/* SPDX-License-Identifier: MIT */
/*
 * The key of a compile: a digest of everything that can change its result, except the headers, which only the compiler
 * finds (manifest.h). Every field is tagged and length-prefixed.
 */
#ifndef HDRT_JIT_KEY_H
#define HDRT_JIT_KEY_H

#include <hdrt.h>

#include "base/digest.h"
#include "jit/options.h"

/* Raised when the meaning of a field or the worker's own share of a compile changes. */
#define HDRT__KEY_FORMAT 1u

typedef struct hdrt__text_pair {
    char *name, *text;
} hdrt__text_pair;

/* A compile as the cache and the worker see it. Borrowed members, alive as long as the request. */
typedef struct hdrt__request {
    hdrt_compiler compiler; /* NVRTC or CLANG */
    hdrt_code_kind kind;    /* PTX, CUBIN or LTO_IR */
    const char *arch;
    uint32_t lower_arch; /* enum hdrt_cc_lower */
    const char *source; /* without a byte-order mark */
    size_t source_size;
    const char *name;      /* what the compiler calls it: absolute path, or a name */
    const char *directory; /* absolute: where quoted includes of a bare name and the compile itself are */
    const hdrt__option_list *options;
    const hdrt__text_pair *headers; /* in memory: name and text */
    uint32_t header_count;
    char *const *names; /* name expressions */
    uint32_t name_count;
    const hdrt__digest *identity; /* of the compiler */
    const char *libdevice;        /* to be linked if functions are missing; NULL: never */
    uint32_t time_limit_ms;       /* not in the key, as the next */
    uint64_t memory_limit_bytes;
} hdrt__request;

hdrt__digest hdrt__request_key(const hdrt__request *request);

/* Whether the source may read other files, now or through a macro: "include", "embed", "import", or spliced lines. */
bool hdrt__may_include(const char *source, size_t size);

#endif
