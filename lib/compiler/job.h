/* SPDX-License-Identifier: MIT */
/*
 * One compile: the request as it came off the socket, checked, and the reply under construction. main.c makes both, a
 * back end (clang.c, nvrtc.c) reads the one and fills the other. A back end may assume that what is documented as
 * always there is there, that texts have no NUL and that folders and program paths are absolute.
 */
#ifndef HDRT_COMPILER_JOB_H
#define HDRT_COMPILER_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler/buffer.h"
#include "compiler/protocol.h"

/* A growing array of texts that belong to somebody else. */
typedef struct hdrt__cc_texts {
    const char **items;
    size_t count, capacity;
} hdrt__cc_texts;

/* An input of a link. */
typedef struct hdrt__cc_input {
    uint32_t type;     /* enum hdrt_cc_input */
    const char *name;
    const char *bytes; /* aligned to 16; a NUL behind them */
    size_t size;
} hdrt__cc_input;

typedef struct hdrt__cc_request {
    uint32_t back_end, kind;
    uint32_t arch_lower; /* enum hdrt_cc_lower */
    uint32_t time_limit_ms;
    int64_t deadline_ns;        /* of the monotonic clock; INT64_MAX: none */
    uint64_t memory_limit;      /* 0: none */
    const char *compiler_path, *name, *directory, *arch; /* always there; for clang prelude and recorder too */
    const char *builtins_path, *prelude, *recorder, *random_seed, *libdevice; /* NULL: absent */
    const char *source;         /* NUL-terminated behind source_size; has no NUL */
    size_t source_size;
    hdrt__cc_input *inputs;     /* of a link: there is at least one */
    size_t input_count, input_capacity;
    hdrt__cc_texts options, header_names, header_texts, expressions;
    char *texts;                /* what the pointers above point into */
} hdrt__cc_request;

/*
 * Check and copy a request. false: it is malformed or memory ran out, `reply` says which. Free in either case.
 */
struct hdrt__cc_reply;
bool hdrt__cc_request_parse(hdrt__cc_request *request, const unsigned char *payload, size_t size,
                            struct hdrt__cc_reply *reply);
void hdrt__cc_request_free(hdrt__cc_request *request);

typedef struct hdrt__cc_reply {
    uint32_t status;         /* enum hdrt_cc_status */
    hdrt__cc_buffer message; /* in words, empty with HDRT_CC_STATUS_OK */
    hdrt__cc_buffer log;     /* what the compiler said */
    hdrt__cc_buffer command; /* as in HDRT_CC_COMMAND, of the latest attempt; may be empty */
    hdrt__cc_buffer fields;  /* everything else, ready to send */
    unsigned no_store_count;
} hdrt__cc_reply;

/* Set status and message; the first failure stays. */
void hdrt__cc_reply_fail(hdrt__cc_reply *reply, enum hdrt_cc_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* HDRT_CC_STATUS_LIMIT for want of memory. */
void hdrt__cc_reply_fail_by_memory(hdrt__cc_reply *reply, const hdrt__cc_request *request);
/* A text field. */
void hdrt__cc_reply_text(hdrt__cc_reply *reply, uint32_t tag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* HDRT_CC_COMMAND: replaces what was there by a program (NULL: the first word is it) and words. */
void hdrt__cc_reply_command(hdrt__cc_reply *reply, const char *program, const char *const *words, size_t count);
/* HDRT_CC_NO_STORE; only the first few reasons are kept. */
void hdrt__cc_reply_no_store(hdrt__cc_reply *reply, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* HDRT_CC_DIAGNOSTIC. */
void hdrt__cc_reply_diagnostic(hdrt__cc_reply *reply, const char *file, size_t file_length, uint32_t line,
                               uint32_t column, uint32_t severity, const char *text, size_t text_length);
/* HDRT_CC_LOWERED_NAME. */
void hdrt__cc_reply_lowered(hdrt__cc_reply *reply, const char *expression, const char *name, size_t name_length);
/* The whole message, header included; empty and failed if memory ran out on the way. */
void hdrt__cc_reply_finish(hdrt__cc_reply *reply, hdrt__cc_buffer *out);
void hdrt__cc_reply_free(hdrt__cc_reply *reply);

/* Monotonic nanoseconds. */
int64_t hdrt__cc_now_ns(void);

/* Where quoted includes start: the folder of the program name, made absolute. malloc'ed, NULL without memory. */
char *hdrt__cc_source_directory(const hdrt__cc_request *request);
/*
 * `path` as seen from the request's folder: itself if absolute; in either case without `.` and empty components.
 * malloc'ed, NULL without memory.
 */
char *hdrt__cc_absolute(const hdrt__cc_request *request, const char *path);
/* Whether the source or an option can include anything, seen as text. */
bool hdrt__cc_includes_anything(const hdrt__cc_request *request);
/* HDRT_CC_NO_STORE if the source or an option has a date or time macro. */
void hdrt__cc_refuse_time_macros(const hdrt__cc_request *request, hdrt__cc_reply *reply);
/* A date or time macro in the text, NULL if there is none. */
const char *hdrt__cc_time_macro(const char *text, size_t size);

#endif
