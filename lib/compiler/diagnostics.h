/* SPDX-License-Identifier: MIT */
/*
 * From what a compiler printed to structs. Pure functions over text that nobody vouches for: source lines, names and
 * messages are the user's. Called by both back ends after a compile, and by a fuzzer.
 */
#ifndef HDRT_COMPILER_DIAGNOSTICS_H
#define HDRT_COMPILER_DIAGNOSTICS_H

#include <stddef.h>
#include <stdint.h>

typedef struct hdrt__cc_diagnostic {
    const char *file;      /* into the log, not terminated; NULL: none */
    size_t file_length;
    uint32_t line, column; /* from 1; 0: not known */
    uint32_t severity;     /* 1 note, 2 warning, 3 error, as the protocol has it */
    const char *text;      /* into the log, one line */
    size_t text_length;
} hdrt__cc_diagnostic;

typedef void hdrt__cc_diagnostic_sink(const hdrt__cc_diagnostic *diagnostic, void *context);

/*
 * Call `sink` for each diagnostic in order. \param name  the program name, so that one with colons, parentheses or
 * line feeds in it is still recognised; NULL: none. \return how many.
 */
size_t hdrt__cc_parse_clang(const char *log, size_t size, const char *name, hdrt__cc_diagnostic_sink *sink,
                            void *context);
size_t hdrt__cc_parse_nvrtc(const char *log, size_t size, const char *name, hdrt__cc_diagnostic_sink *sink,
                            void *context);

#endif
