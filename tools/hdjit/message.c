/* SPDX-License-Identifier: MIT */
#include "message.h"

#include "json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Set while the command line is read, before there are threads. */
static bool as_json;

void message_json(bool wanted)
{
    as_json = wanted;
}

static void say_json(json_t *object)
{
    char *line = object ? json_dumps(object, JSON_COMPACT) : NULL;

    fprintf(stderr, "%s\n", line ? line : "{\"severity\":\"error\",\"text\":\"out of memory\"}");
    free(line);
    json_decref(object);
}

/* hdjit's own message. */
static void say_own(const char *severity, const char *format, va_list values, const char *tail)
{
    char *text = NULL, *whole = NULL;

    if (vasprintf(&text, format, values) < 0)
        text = NULL;
    if (tail && text && asprintf(&whole, "%s: %s", text, tail) < 0)
        whole = NULL;
    say_json(json_pack("{s:s, s:o, s:s}", "severity", severity, "text", json_text(tail ? whole : text), "from", "hdjit"));
    free(whole);
    free(text);
}

/* One fprintf a line, so that lines of several threads do not mix: standard error is locked for the whole line. */
static void say(const char *severity, const char *format, va_list values, const char *tail)
{
    if (as_json) {
        say_own(severity, format, values, tail);
        return;
    }
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
    say("note", format, values, NULL);
    va_end(values);
}

int fail(int code, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    say("error", format, values, NULL);
    va_end(values);
    return code;
}

int fail_status(int code, hdrt_status status, const char *format, ...)
{
    const char *text = status < 0 ? hdrt_last_error() : "";
    va_list values;

    va_start(values, format);
    say("error", format, values, *text ? text : hdrt_status_text(status));
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

static const char *severity_word(hdrt_severity severity)
{
    return severity == HDRT_SEVERITY_NOTE ? "note" : severity == HDRT_SEVERITY_WARNING ? "warning" : "error";
}

void message_diagnostic(const hdrt_diagnostic *d)
{
    json_t *object;

    if (as_json) {
        object = json_object();
        if (d->file)
            json_object_set_new(object, "file", json_text(d->file));
        if (d->file && d->line)
            json_object_set_new(object, "line", json_integer(d->line));
        if (d->file && d->line && d->column)
            json_object_set_new(object, "column", json_integer(d->column));
        json_object_set_new(object, "severity", json_string(severity_word(d->severity)));
        json_object_set_new(object, "text", json_text(d->text));
        json_object_set_new(object, "from", json_string("compiler"));
        say_json(object);
        return;
    }
    flockfile(stderr);
    if (d->file)
        fputs(d->file, stderr);
    if (d->file && d->line)
        fprintf(stderr, ":%u", d->line);
    if (d->file && d->line && d->column)
        fprintf(stderr, ":%u", d->column);
    fprintf(stderr, "%s%s: %s\n", d->file ? ": " : "", severity_word(d->severity), d->text ? d->text : "");
    funlockfile(stderr);
}

void message_log(const char *text)
{
    if (as_json)
        say_json(json_pack("{s:s, s:o, s:s}", "severity", "note", "text", json_text(text), "from", "compiler"));
    else
        fprintf(stderr, "%s%s", text, text[strlen(text) - 1] == '\n' ? "" : "\n");
}
