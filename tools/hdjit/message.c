/* SPDX-License-Identifier: MIT */
#include "message.h"

#include <stdarg.h>
#include <stdio.h>

/* One fprintf a line, so that lines of several threads do not mix: standard error is locked for the whole line. */
static void say(const char *format, va_list values, const char *tail)
{
    flockfile(stderr);
    fputs("hdjit: ", stderr);
    vfprintf(stderr, format, values);
    if (tail)
        fprintf(stderr, ": %s", tail);
    fputc('\n', stderr);
    funlockfile(stderr);
}

void note(const char *format, ...)
{
    va_list values;

    va_start(values, format);
    say(format, values, NULL);
    va_end(values);
}

int fail(int code, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    say(format, values, NULL);
    va_end(values);
    return code;
}

int fail_status(int code, hdrt_status status, const char *format, ...)
{
    const char *text = status < 0 ? hdrt_last_error() : "";
    va_list values;

    va_start(values, format);
    say(format, values, *text ? text : hdrt_status_text(status));
    va_end(values);
    return code < 0 ? status_exit_code(status) : code;
}

int fail_last(hdrt_status status)
{
    return fail(status_exit_code(status), "%s", *hdrt_last_error() ? hdrt_last_error() : hdrt_status_text(status));
}

int status_exit_code(hdrt_status status)
{
    switch (status) {
    case HDRT_OK:
        return EXIT_CODE_OK;
    case HDRT_ERROR_NO_DRIVER:
    case HDRT_ERROR_DRIVER_STUB:
    case HDRT_ERROR_DRIVER_TOO_OLD:
    case HDRT_ERROR_NO_DEVICE:
        return EXIT_CODE_NO_DEVICE;
    case HDRT_ERROR_NO_COMPILER:
        return EXIT_CODE_NO_COMPILER;
    default:
        return EXIT_CODE_FAILED;
    }
}
