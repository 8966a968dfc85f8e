/* SPDX-License-Identifier: MIT */
/* From what a compiler printed into the reply: used by both back ends. */
#ifndef HDRT_COMPILER_REPORT_H
#define HDRT_COMPILER_REPORT_H

#include "compiler/diagnostics.h"
#include "compiler/job.h"

typedef size_t hdrt__cc_parser(const char *log, size_t size, const char *name, hdrt__cc_diagnostic_sink *sink,
                               void *context);

typedef struct hdrt__cc_errors {
    hdrt__cc_diagnostic first; /* points into the text that was parsed */
    size_t count;
} hdrt__cc_errors;

/* Put all diagnostics of `text` into the reply, and give back what is known of its errors. */
hdrt__cc_errors hdrt__cc_report_diagnostics(hdrt__cc_reply *reply, hdrt__cc_parser *parser, const hdrt__cc_buffer *text,
                                            const char *name);
/* Fail with the first error, "file:line:column: text", or with `otherwise` if there is none. */
void hdrt__cc_report_first_error(hdrt__cc_reply *reply, enum hdrt_cc_status status, const hdrt__cc_errors *errors,
                                 const char *otherwise);

#endif
