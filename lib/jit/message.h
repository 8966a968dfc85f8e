/* SPDX-License-Identifier: MIT */
/*
 * The fields of compile requests and replies: from a request to bytes, and from bytes (which nobody vouches for, since
 * a compiler that went wrong may be at the other end) to what the cache and the caller need.
 */
#ifndef HDRT_JIT_MESSAGE_H
#define HDRT_JIT_MESSAGE_H

#include <hdrt.h>

#include "base/buffer.h"
#include "jit/find.h"
#include "jit/image.h"
#include "jit/key.h"
#include "jit/manifest.h"

/* What the worker needs besides the request. */
typedef struct hdrt__compile_setting {
    const hdrt__found *compiler;
    const char *prelude, *recorder; /* for clang; may be NULL */
    const char *libdevice;          /* NULL: do not link it */
    const char *random_seed;
} hdrt__compile_setting;

/* Appends the payload of a compile request; then look at bytes->failed. */
void hdrt__message_request(const hdrt__request *request, const hdrt__compile_setting *setting, hdrt__buffer *bytes);

/* A link as the worker sees it; all borrowed. */
typedef struct hdrt__link_piece {
    uint32_t type; /* enum hdrt_cc_input */
    const char *name;
    const void *bytes;
    size_t size;
} hdrt__link_piece;

typedef struct hdrt__link_request {
    const char *linker, *arch;
    bool ptx;
    const hdrt__option_list *options;
    const hdrt__link_piece *pieces;
    uint32_t piece_count;
    uint32_t time_limit_ms;
    uint64_t memory_limit_bytes;
} hdrt__link_request;

/* Appends the payload of a link request; then look at bytes->failed. */
void hdrt__message_link(const hdrt__link_request *request, hdrt__buffer *bytes);

typedef struct hdrt__reply {
    uint32_t status;   /* enum hdrt_cc_status */
    char *message;     /* "" if none */
    hdrt__code *code;  /* log and diagnostics, and on success the code; without a table yet */
    hdrt__record record;
    char *no_store;    /* why it must not be cached; NULL: it may be */
    bool missing_libdevice; /* some unresolved function is one of libdevice's */
} hdrt__reply;

/* HDRT_OK; HDRT_ERROR_COMPANION  malformed; HDRT_ERROR_OUT_OF_MEMORY. Free with hdrt__reply_free. */
hdrt_status hdrt__message_reply(const unsigned char *bytes, size_t size, hdrt__reply *out);
void hdrt__reply_free(hdrt__reply *reply);

#endif
