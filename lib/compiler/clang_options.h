/* SPDX-License-Identifier: MIT */
/*
 * Options in NVRTC's spelling, said in clang's. What clang cannot do, and what nobody knows, is refused by name: an
 * option that is silently dropped gives another program than the one asked for.
 */
#ifndef HDRT_COMPILER_CLANG_OPTIONS_H
#define HDRT_COMPILER_CLANG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler/job.h"

/* A growing, NULL-terminated list of strings of its own. */
typedef struct hdrt__cc_arguments {
    char **items;
    size_t count, capacity;
    bool failed; /* out of memory; adds do nothing from then on */
} hdrt__cc_arguments;

void hdrt__cc_arguments_add(hdrt__cc_arguments *arguments, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void hdrt__cc_arguments_free(hdrt__cc_arguments *arguments);

typedef struct hdrt__cc_clang_options {
    hdrt__cc_arguments arguments; /* for clang */
    hdrt__cc_buffer macros;       /* of -D and -U, as directives: they come after the prelude, whose names they would
                                     otherwise replace (-DT=float) */
    hdrt__cc_arguments folders;   /* of -I, as given: one that is not there is a dependency too */
    uint32_t max_registers;       /* --maxrregcount, to be written into the PTX; 0: none */
    bool debug;                   /* -G: no optimisation */
    bool no_source_include;       /* the source's own folder is not searched */
} hdrt__cc_clang_options;

/* false: `reply` says which option and why, or that memory ran out. Free in either case. */
bool hdrt__cc_clang_translate(const hdrt__cc_request *request, hdrt__cc_clang_options *out, hdrt__cc_reply *reply);
void hdrt__cc_clang_options_free(hdrt__cc_clang_options *options);

#endif
