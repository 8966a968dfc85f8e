/* SPDX-License-Identifier: MIT */
#include "compiler/diagnostics.h"

#include <stdbool.h>
#include <string.h>

enum { NOTE = 1, WARNING = 2, ERROR = 3 };

/* A piece of the log. */
typedef struct span {
    const char *at, *end;
} span;

static size_t length_of(span text)
{
    return (size_t)(text.end - text.at);
}

static bool skip_text(span *text, const char *word)
{
    size_t length = strlen(word);
    if (length_of(*text) < length || memcmp(text->at, word, length) != 0)
        return false;
    text->at += length;
    return true;
}

/* A decimal number without a sign that fits. */
static bool skip_number(span *text, uint32_t *out)
{
    uint64_t value = 0;
    const char *at = text->at;
    for (; at < text->end && *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (uint64_t)(*at - '0');
        if (value > UINT32_MAX)
            return false;
    }
    if (at == text->at)
        return false;
    text->at = at;
    *out = (uint32_t)value;
    return true;
}

/* The line that begins at `at`, without its end; *next is where the following one begins. */
static span line_at(const char *at, const char *end, const char **next)
{
    const char *feed = memchr(at, '\n', (size_t)(end - at));
    span line = {at, feed != NULL ? feed : end};
    *next = feed != NULL ? feed + 1 : end;
    if (line.end > line.at && line.end[-1] == '\r')
        line.end--;
    return line;
}

typedef struct severity_word {
    const char *word;
    uint32_t severity;
} severity_word;

static bool skip_severity(span *text, const severity_word *words, size_t count, uint32_t *out)
{
    for (size_t i = 0; i < count; i++)
        if (skip_text(text, words[i].word)) {
            *out = words[i].severity;
            return true;
        }
    return false;
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void give(hdrt__cc_diagnostic diagnostic, span text, hdrt__cc_diagnostic_sink *sink, void *context)
{
    diagnostic.text = text.at;
    diagnostic.text_length = length_of(text);
    sink(&diagnostic, context);
}

/* -- clang: "file:line:column: error: text", "clang-19: error: text", "fatal error: text" -------------------------- */

static const severity_word clang_words[] = {
    {"fatal error: ", ERROR}, {"error: ", ERROR}, {"warning: ", WARNING}, {"note: ", NOTE}, {"remark: ", NOTE},
};

/* Take ":number" off the end of a span. */
static bool drop_number(span *text, uint32_t *out)
{
    const char *at = text->end;
    while (at > text->at && at[-1] >= '0' && at[-1] <= '9')
        at--;
    span digits = {at, text->end};
    if (at == text->at || at[-1] != ':' || !skip_number(&digits, out))
        return false;
    text->end = at - 1;
    return true;
}

/* What stands before the severity: a location, or the compiler's own name, which is no file. */
static bool clang_location(span prefix, hdrt__cc_diagnostic *out)
{
    uint32_t last, before;
    if (drop_number(&prefix, &last)) {
        out->line = last;
        if (drop_number(&prefix, &before)) {
            out->line = before;
            out->column = last;
        }
        out->file = prefix.at;
        out->file_length = length_of(prefix);
        return out->file_length > 0;
    }
    for (const char *at = prefix.at; at < prefix.end; at++)
        if (*at == ' ' || *at == '/' || *at == '\t')
            return false;
    return length_of(prefix) > 0;
}

/* One line. true: `out` and `text` are set. */
static bool clang_line(span line, hdrt__cc_diagnostic *out, span *text)
{
    *text = line;
    if (skip_severity(text, clang_words, COUNT(clang_words), &out->severity))
        return true;
    for (const char *at = line.at; at + 2 < line.end; at++) {
        if (at[0] != ':' || at[1] != ' ')
            continue;
        *text = (span){at + 2, line.end};
        hdrt__cc_diagnostic found = {0};
        if (skip_severity(text, clang_words, COUNT(clang_words), &found.severity) &&
            clang_location((span){line.at, at}, &found)) {
            *out = found;
            return true;
        }
    }
    return false;
}

/* "name:line:column: error: text" where the name is known, and may hold anything. */
static bool clang_named(span rest, const char *name, hdrt__cc_diagnostic *out, span *text)
{
    *text = rest;
    if (name == NULL || !skip_text(text, name))
        return false;
    out->file = rest.at;
    out->file_length = strlen(name);
    if (!skip_text(text, ":") || !skip_number(text, &out->line) || !skip_text(text, ":"))
        return false;
    if (skip_number(text, &out->column) && !skip_text(text, ":"))
        return false;
    return skip_text(text, " ") && skip_severity(text, clang_words, COUNT(clang_words), &out->severity);
}

size_t hdrt__cc_parse_clang(const char *log, size_t size, const char *name, hdrt__cc_diagnostic_sink *sink,
                            void *context)
{
    const char *at = log, *end = log + size;
    size_t count = 0;
    while (at < end) {
        const char *next;
        span line = line_at(at, end, &next), text;
        hdrt__cc_diagnostic diagnostic = {0};
        if (clang_named((span){at, end}, name, &diagnostic, &text))
            text = line_at(text.at, end, &next);
        else {
            diagnostic = (hdrt__cc_diagnostic){0};
            if (!clang_line(line, &diagnostic, &text)) {
                at = next;
                continue;
            }
        }
        give(diagnostic, text, sink, context);
        count++;
        at = next;
    }
    return count;
}

/* -- NVRTC: "file(line): error #20-D: text", an excerpt, a caret; "nvrtc: error: text"; lines of ptxas ------------- */

static const severity_word nvrtc_words[] = {
    {"catastrophic error", ERROR}, {"internal error", ERROR}, {"command-line error", ERROR}, {"fatal error", ERROR},
    {"error", ERROR}, {"warning", WARNING}, {"remark", NOTE}, {"note", NOTE},
};

/* "error #20-D: ": the number is optional, and stays out of the text. */
static bool skip_nvrtc_severity(span *text, uint32_t *out)
{
    uint32_t number;
    if (!skip_severity(text, nvrtc_words, COUNT(nvrtc_words), out))
        return false;
    if (skip_text(text, " #")) {
        if (!skip_number(text, &number))
            return false;
        skip_text(text, "-D");
    }
    return skip_text(text, ": ");
}

/* "(line): error: text" */
static bool nvrtc_after_file(span *text, hdrt__cc_diagnostic *out)
{
    return skip_text(text, "(") && skip_number(text, &out->line) && skip_text(text, "): ") &&
           skip_nvrtc_severity(text, &out->severity);
}

/* "ptxas warning : text", "ptxas application ptx input, line 38; error   : text". Its lines are the PTX's: no use. */
static bool ptxas_line(span line, hdrt__cc_diagnostic *out, span *text)
{
    static const severity_word words[] = {
        {"fatal ", ERROR}, {"error ", ERROR}, {"warning ", WARNING}, {"info ", NOTE},
    };
    if (!skip_text(&line, "ptxas "))
        return false;
    for (const char *at = line.at; at < line.end; at++) {
        if (at != line.at && (at[-1] != ' ' || at[-2] != ';'))
            continue;
        *text = (span){at, line.end};
        if (!skip_severity(text, words, COUNT(words), &out->severity))
            continue;
        while (skip_text(text, " "))
            continue;
        if (skip_text(text, ": "))
            return true;
    }
    return false;
}

static bool nvrtc_line(span line, hdrt__cc_diagnostic *out, span *text)
{
    *text = line;
    if (ptxas_line(line, out, text))
        return true;
    *text = line;
    if (skip_text(text, "nvrtc: ") && skip_nvrtc_severity(text, &out->severity))
        return true;
    for (const char *at = line.at; at < line.end; at++) {
        if (*at != '(' || at == line.at)
            continue;
        hdrt__cc_diagnostic found = {.file = line.at, .file_length = (size_t)(at - line.at)};
        *text = (span){at, line.end};
        if (nvrtc_after_file(text, &found)) {
            *out = found;
            return true;
        }
    }
    return false;
}

/*
 * The excerpt and the caret under it, each indented by two: skip both and take the column, so that a source line that
 * looks like a message is not taken for one. 0: there is none.
 */
static uint32_t skip_excerpt(const char **at, const char *end)
{
    const char *next, *after;
    span excerpt = line_at(*at, end, &next);
    span caret = line_at(next, end, &after);
    const char *mark = caret.at;
    while (mark < caret.end && (*mark == ' ' || *mark == '\t'))
        mark++;
    if (!skip_text(&excerpt, "  ") || mark - caret.at < 2 || mark + 1 != caret.end || *mark != '^' ||
        mark - caret.at > UINT32_MAX)
        return 0;
    *at = after;
    return (uint32_t)(mark - caret.at) - 1;
}

size_t hdrt__cc_parse_nvrtc(const char *log, size_t size, const char *name, hdrt__cc_diagnostic_sink *sink,
                            void *context)
{
    const char *at = log, *end = log + size;
    size_t count = 0;
    while (at < end) {
        const char *next;
        span line = line_at(at, end, &next), text = {at, end};
        hdrt__cc_diagnostic diagnostic = {.file = at, .file_length = name != NULL ? strlen(name) : 0};
        if (name != NULL && skip_text(&text, name) && nvrtc_after_file(&text, &diagnostic))
            text = line_at(text.at, end, &next);
        else {
            diagnostic = (hdrt__cc_diagnostic){0};
            if (!nvrtc_line(line, &diagnostic, &text)) {
                at = next;
                continue;
            }
        }
        if (diagnostic.file != NULL)
            diagnostic.column = skip_excerpt(&next, end);
        give(diagnostic, text, sink, context);
        count++;
        at = next;
    }
    return count;
}
