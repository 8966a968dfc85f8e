/* SPDX-License-Identifier: MIT */
/*
 * Compiled code: what a compile makes, what an image file of the cache holds, what modules are loaded from. Immutable
 * and counted, so that the memory cache, images and modules share one copy.
 */
#ifndef HDRT_JIT_IMAGE_H
#define HDRT_JIT_IMAGE_H

#include <stdatomic.h>

#include <hdrt.h>

#include "base/buffer.h"
#include "base/digest.h"
#include "jit/kernel_table.h"

typedef struct hdrt__lowered_name {
    char *expression, *name;
} hdrt__lowered_name;

typedef struct hdrt__code {
    atomic_uint references;
    hdrt__digest name; /* of the image in the cache; zero if it must not be stored */
    hdrt_compiler compiler;
    hdrt_code_kind kind; /* PTX, CUBIN or LTO_IR: what there is; 0 in one that only carries diagnostics */
    unsigned char *cubin;
    size_t cubin_size;
    char *ptx; /* NUL-terminated */
    size_t ptx_size;
    char *arch, *compiler_path, *compiler_version; /* "" if not known */
    char *log, *note;                              /* log "" and note NULL if there is none */
    unsigned char *lto_ir; /* alone in its code; kind LTO_IR */
    size_t lto_ir_size;
    struct hdrt__lowered_name *lowered; /* what name expressions became, in their order */
    uint32_t lowered_count;
    char *source_name, *options, *command; /* where it came from, for people; "" if not known */
    hdrt_cache_reason reason; /* of code that was compiled just now: why it was; not in image files */
    char *reason_words;       /* what that is about; NULL or "": nothing to say */
    char *unresolved; /* functions that the PTX calls and nobody defines, separated by ", "; NULL: none */
    hdrt_diagnostic *diagnostics;
    uint32_t diagnostic_count;
    hdrt__kernel_table table;
} hdrt__code;

/* An empty one with one reference; NULL if out of memory. Members are malloc'ed and belong to it. */
hdrt__code *hdrt__code_create(void);
hdrt__code *hdrt__code_hold(hdrt__code *code);
void hdrt__code_drop(hdrt__code *code);

/* Append a diagnostic (texts copied, not NUL-terminated; no file: file_size 0). false: out of memory. */
bool hdrt__code_add_diagnostic(hdrt__code *code, hdrt_severity severity, uint32_t line, uint32_t column,
                               const char *file, size_t file_size, const char *text, size_t text_size);

/* Append what an expression became (copied, not NUL-terminated). false: out of memory. */
bool hdrt__code_add_lowered(hdrt__code *code, const char *expression, size_t expression_size, const char *name,
                            size_t name_size);
/* The name in the code of an expression, given with or without its "&"; NULL if there is none. */
const char *hdrt__code_lowered(const hdrt__code *code, const char *expression);

/* Fills the kernel table from the PTX, or from the cubin where there is none; LTO-IR has none. */
hdrt_status hdrt__code_read_table(hdrt__code *code);

/*
 * The code as an image file, and back: NULL unless it is an undamaged image of that name (NULL: of any), with
 * *out_reason what it is instead; HDRT_CACHE_UNREADABLE if memory is out.
 */
void hdrt__code_write(const hdrt__code *code, hdrt__buffer *bytes);
hdrt__code *hdrt__code_read(const unsigned char *bytes, size_t size, const hdrt__digest *name,
                            hdrt_cache_reason *out_reason);

/* Code from a cubin or PTX, with its table; `name` is for messages. Statuses as hdrt_module_load. */
hdrt_status hdrt__code_from_bytes(const void *bytes, size_t size, const char *name, hdrt__code **out_code);

/* Whether bytes begin like an image file. */
bool hdrt__is_image_file(const void *bytes, size_t size);

/* Bytes that it takes in memory, for the memory cache's bound. */
size_t hdrt__code_bytes(const hdrt__code *code);

#endif
