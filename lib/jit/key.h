/* SPDX-License-Identifier: MIT */
/*
 * The key of a compile: a digest of everything that can change its result, except the headers, which only the compiler
 * finds (manifest.h). Every field is tagged and length-prefixed.
 *
 * The same list of fields is kept in manifests, so that an explanation can name the one that differs: what is in the
 * key can be explained, and nothing else.
 */
#ifndef HDRT_JIT_KEY_H
#define HDRT_JIT_KEY_H

#include <hdrt.h>

#include "base/digest.h"
#include "jit/options.h"

/* Raised when the meaning of a field or the worker's own share of a compile changes. */
#define HDRT__KEY_FORMAT_NUMBER 3u

/* Fields, as manifests keep them: numbers never change, new ones get new numbers. X(tag, number, label, reason) */
#define HDRT__KEY_FIELDS(X)                                                                                            \
    X(FORMAT, 1, "format of the cache", HDRT_CACHE_OTHER_VERSION)                                                      \
    X(PROTOCOL, 2, "version of the compile worker", HDRT_CACHE_COMPILER_CHANGED)                                       \
    X(COMPILER, 3, "kind of compiler", HDRT_CACHE_OPTION_CHANGED)                                                      \
    X(KIND, 4, "kind of code", HDRT_CACHE_OPTION_CHANGED)                                                              \
    X(ARCH, 5, "target", HDRT_CACHE_OPTION_CHANGED)                                                                    \
    X(LOWER_ARCH, 6, "whether the target may be lowered", HDRT_CACHE_OPTION_CHANGED)                                   \
    X(SOURCE, 7, "source", HDRT_CACHE_SOURCE_CHANGED)                                                                  \
    X(NAME, 8, "name of the source", HDRT_CACHE_OPTION_CHANGED)                                                        \
    X(DIRECTORY, 9, "folder of the compile", HDRT_CACHE_OPTION_CHANGED)                                                \
    X(OPTION, 10, "option", HDRT_CACHE_OPTION_CHANGED)                                                                 \
    X(COMPILER_FILE, 11, "file of the compiler", HDRT_CACHE_COMPILER_CHANGED)                                          \
    X(LIBDEVICE, 12, "libdevice", HDRT_CACHE_COMPILER_CHANGED)                                                         \
    X(HOST, 13, "kind of machine", HDRT_CACHE_OTHER_VERSION)                                                      \
    X(HEADER_NAME, 14, "name of an in-memory header", HDRT_CACHE_OPTION_CHANGED)                                       \
    X(HEADER_TEXT, 15, "in-memory header", HDRT_CACHE_SOURCE_CHANGED)                                                  \
    X(NAME_EXPRESSION, 16, "name expression", HDRT_CACHE_OPTION_CHANGED)

typedef enum hdrt__key_tag {
#define HDRT__KEY_TAG(tag, number, label, reason) HDRT__KEY_##tag = number,
    HDRT__KEY_FIELDS(HDRT__KEY_TAG)
#undef HDRT__KEY_TAG
} hdrt__key_tag;

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
    const char *identity_lines;   /* what the identity is made of, a line each; NULL: not known */
    const char *libdevice;        /* to be linked if functions are missing; NULL: never */
    uint32_t time_limit_ms;       /* not in the key, as the next */
    uint64_t memory_limit_bytes;
} hdrt__request;

hdrt__digest hdrt__request_key(const hdrt__request *request);

/* The fields of the key in order: value NULL for an absent one; valid during the call. */
typedef void (*hdrt__field_visitor)(void *context, hdrt__key_tag tag, const char *value, size_t size);
void hdrt__request_fields(const hdrt__request *request, hdrt__field_visitor visitor, void *context);

/* "target" and so on; HDRT_CACHE_... of a difference. For unknown tags "field" and HDRT_CACHE_OTHER_VERSION. */
const char *hdrt__key_label(uint32_t tag);
hdrt_cache_reason hdrt__key_reason(uint32_t tag);

/* Whether the source may read other files, now or through a macro: "include", "embed", "import", or spliced lines. */
bool hdrt__may_include(const char *source, size_t size);

#endif
