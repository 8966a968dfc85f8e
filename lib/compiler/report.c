/* SPDX-License-Identifier: MIT */
#include "compiler/report.h"

#include <limits.h>

typedef struct report_context {
    hdrt__cc_reply *reply;
    hdrt__cc_errors errors;
} report_context;

static void take(const hdrt__cc_diagnostic *diagnostic, void *context)
{
    report_context *report = context;
    hdrt__cc_reply_diagnostic(report->reply, diagnostic->file, diagnostic->file_length, diagnostic->line,
                              diagnostic->column, diagnostic->severity, diagnostic->text, diagnostic->text_length);
    if (diagnostic->severity == 3 && report->errors.count++ == 0)
        report->errors.first = *diagnostic;
}

hdrt__cc_errors hdrt__cc_report_diagnostics(hdrt__cc_reply *reply, hdrt__cc_parser *parser, const hdrt__cc_buffer *text,
                                            const char *name)
{
    report_context report = {.reply = reply};
    if (text->size > 0)
        parser((const char *)text->bytes, text->size, name, take, &report);
    return report.errors;
}

static int shown(size_t length)
{
    return length > INT_MAX ? INT_MAX : (int)length;
}

/* An unknown line or column is left out, as compilers do. */
void hdrt__cc_report_first_error(hdrt__cc_reply *reply, enum hdrt_cc_status status, const hdrt__cc_errors *errors,
                                 const char *otherwise)
{
    const hdrt__cc_diagnostic *first = &errors->first;
    int text = shown(first->text_length), file = shown(first->file_length);
    if (errors->count == 0)
        hdrt__cc_reply_fail(reply, status, "%s", otherwise);
    else if (first->file == NULL)
        hdrt__cc_reply_fail(reply, status, "%.*s", text, first->text);
    else if (first->column == 0)
        hdrt__cc_reply_fail(reply, status, "%.*s:%u: %.*s", file, first->file, first->line, text, first->text);
    else
        hdrt__cc_reply_fail(reply, status, "%.*s:%u:%u: %.*s", file, first->file, first->line, first->column, text,
                            first->text);
}
