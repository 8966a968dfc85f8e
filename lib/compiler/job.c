/* SPDX-License-Identifier: MIT */
#include "compiler/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* More reasons than these tell nobody anything. */
#define NO_STORE_REASONS 8u

int64_t hdrt__cc_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* -- the request --------------------------------------------------------------------------------------------------- */

static bool take_u32(const hdrt__cc_field *field, uint32_t *out)
{
    if (field->size != 4)
        return false;
    *out = hdrt__cc_read_u32(field->bytes);
    return true;
}

static bool add_text_to(hdrt__cc_texts *list, const char *text)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 16;
        const char **items = reallocarray(list->items, capacity, sizeof *items);
        if (items == NULL)
            return false;
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = text;
    return true;
}

/* Which list a repeated text belongs to; NULL for tags that are none. */
static hdrt__cc_texts *text_list(hdrt__cc_request *request, uint32_t tag)
{
    switch (tag) {
    case HDRT_CC_OPTION: return &request->options;
    case HDRT_CC_HEADER_NAME: return &request->header_names;
    case HDRT_CC_HEADER_TEXT: return &request->header_texts;
    case HDRT_CC_EXPRESSION: return &request->expressions;
    default: return NULL;
    }
}

/* Where a text field goes; NULL for tags that are no texts. */
static const char **text_place(hdrt__cc_request *request, uint32_t tag)
{
    switch (tag) {
    case HDRT_CC_COMPILER_PATH: return &request->compiler_path;
    case HDRT_CC_BUILTINS_PATH: return &request->builtins_path;
    case HDRT_CC_NAME: return &request->name;
    case HDRT_CC_DIRECTORY: return &request->directory;
    case HDRT_CC_ARCH: return &request->arch;
    case HDRT_CC_PRELUDE: return &request->prelude;
    case HDRT_CC_RECORDER: return &request->recorder;
    case HDRT_CC_RANDOM_SEED: return &request->random_seed;
    case HDRT_CC_LIBDEVICE: return &request->libdevice;
    default: return NULL;
    }
}

/* As take_field. What is spared of the field's own head makes up for NUL and alignment. */
static const char *take_input(hdrt__cc_request *request, const hdrt__cc_field *field, char **next)
{
    uint32_t type = field->size >= 8 ? hdrt__cc_read_u32(field->bytes) : 0;
    size_t name_size = field->size >= 8 ? hdrt__cc_read_u32(field->bytes + 4) : 0;
    if (field->size < 8 || type < HDRT_CC_INPUT_CUBIN || type > HDRT_CC_INPUT_LIBRARY || name_size > field->size - 8 ||
        memchr(field->bytes + 8, '\0', name_size) != NULL)
        return "an input of a link is damaged";
    if (request->input_count == request->input_capacity) {
        size_t capacity = request->input_capacity ? request->input_capacity * 2 : 8;
        hdrt__cc_input *inputs = reallocarray(request->inputs, capacity, sizeof *inputs);
        if (inputs == NULL)
            return "";
        request->inputs = inputs;
        request->input_capacity = capacity;
    }
    size_t size = field->size - 8 - name_size;
    char *bytes = (char *)(((uintptr_t)*next + 15) & ~(uintptr_t)15), *name = bytes + size + 1;
    memcpy(bytes, field->bytes + 8 + name_size, size);
    bytes[size] = '\0';
    memcpy(name, field->bytes + 8, name_size);
    name[name_size] = '\0';
    *next = name + name_size + 1;
    request->inputs[request->input_count++] = (hdrt__cc_input){type, name, bytes, size};
    return NULL;
}

/* One field. NULL: taken; "": no memory; else what is wrong with it. `next` is where texts are copied to. */
static const char *take_field(hdrt__cc_request *request, const hdrt__cc_field *field, char **next)
{
    uint32_t number = 0;
    switch (field->tag) {
    case HDRT_CC_BACK_END: return take_u32(field, &request->back_end) ? NULL : "the back end is not a number";
    case HDRT_CC_KIND: return take_u32(field, &request->kind) ? NULL : "the kind is not a number";
    case HDRT_CC_TIME_LIMIT:
        return take_u32(field, &request->time_limit_ms) ? NULL : "the time limit is not a number";
    case HDRT_CC_ARCH_LOWER:
        if (!take_u32(field, &number) || number > HDRT_CC_LOWER_CUBIN)
            return "the permission to lower the target is neither 0 nor 1 nor 2";
        request->arch_lower = number;
        return NULL;
    case HDRT_CC_MEMORY_LIMIT:
        if (field->size != 8)
            return "the memory limit is not a number";
        request->memory_limit = hdrt__cc_read_u64(field->bytes);
        return NULL;
    case HDRT_CC_INPUT: return take_input(request, field, next);
    default: break;
    }

    char *text = *next;
    if (field->size > 0)
        memcpy(text, field->bytes, field->size);
    text[field->size] = '\0';
    *next += field->size + 1;
    if (field->tag == HDRT_CC_SOURCE) {
        request->source = text;
        request->source_size = field->size;
        return NULL;
    }
    if (memchr(text, '\0', field->size) != NULL)
        return "a text holds a NUL";
    hdrt__cc_texts *list = text_list(request, field->tag);
    if (list != NULL)
        return add_text_to(list, text) ? NULL : "";
    const char **place = text_place(request, field->tag);
    if (place == NULL)
        return "a field with an unknown tag";
    if (*place != NULL)
        return "a field that is there twice";
    *place = text;
    return NULL;
}

static bool absolute_or_absent(const char *path)
{
    return path == NULL || path[0] == '/';
}

/* sm_ or compute_ is the client's; here it is sm_, two or three digits, and perhaps a or f. */
static bool arch_is_well_formed(const char *arch)
{
    if (strncmp(arch, "sm_", 3) != 0)
        return false;
    size_t digits = strspn(arch + 3, "0123456789");
    const char *suffix = arch + 3 + digits;
    return digits >= 2 && digits <= 3 && (*suffix == '\0' || (strchr("af", *suffix) != NULL && suffix[1] == '\0'));
}

/* Relative and plain: it becomes a path below a folder that is nowhere. */
static bool header_name_is_well_formed(const char *name)
{
    if (strpbrk(name, "\"\\\r\n") != NULL)
        return false;
    for (const char *part = name; part != NULL;) {
        size_t size = strcspn(part, "/");
        if (size == 0 || (size == 1 && part[0] == '.') || (size == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part = part[size] == '/' ? part + size + 1 : NULL;
    }
    return true;
}

/* What is missing or out of range; NULL: nothing. */
static const char *request_defect(const hdrt__cc_request *request)
{
    if (request->back_end < HDRT_CC_NVRTC || request->back_end > HDRT_CC_NVJITLINK)
        return "the back end is neither NVRTC nor clang nor nvJitLink";
    if ((request->back_end == HDRT_CC_NVJITLINK) != (request->input_count > 0))
        return "inputs are for a link, which needs some";
    if (request->back_end == HDRT_CC_NVJITLINK && request->kind == HDRT_CC_LTO_IR)
        return "a link gives no LTO-IR";
    if (request->kind < HDRT_CC_PTX || request->kind > HDRT_CC_LTO_IR)
        return "the kind is neither PTX nor cubin nor LTO-IR";
    if (request->header_names.count != request->header_texts.count)
        return "an in-memory header has no text";
    for (size_t i = 0; i < request->header_names.count; i++)
        if (!header_name_is_well_formed(request->header_names.items[i]))
            return "an in-memory header has no relative name";
    if (request->compiler_path == NULL || request->source == NULL || request->name == NULL ||
        request->directory == NULL || request->arch == NULL)
        return "one of compiler path, source, name, folder and arch is missing";
    if (request->name[0] == '\0')
        return "the name is empty";
    if (!arch_is_well_formed(request->arch))
        return "the arch is not sm_ and two or three digits, perhaps with a or f";
    if (!absolute_or_absent(request->compiler_path) || !absolute_or_absent(request->builtins_path) ||
        !absolute_or_absent(request->directory) || !absolute_or_absent(request->prelude) ||
        !absolute_or_absent(request->recorder) || !absolute_or_absent(request->libdevice))
        return "a path that has to be absolute is not";
    if (request->back_end == HDRT_CC_CLANG && (request->prelude == NULL || request->recorder == NULL))
        return "prelude and recorder are needed for clang";
    return NULL;
}

/* Every text costs its bytes and a NUL; a field's header is longer than that. */
bool hdrt__cc_request_parse(hdrt__cc_request *request, const unsigned char *payload, size_t size,
                            hdrt__cc_reply *reply)
{
    *request = (hdrt__cc_request){.deadline_ns = INT64_MAX};
    request->texts = malloc(size + 1);
    const char *defect = request->texts == NULL ? "" : NULL;
    char *next = request->texts;
    size_t at = 0;
    bool malformed = false;
    hdrt__cc_field field;
    while (defect == NULL && hdrt__cc_next_field(payload, size, &at, &field, &malformed))
        defect = take_field(request, &field, &next);
    if (defect == NULL && malformed)
        defect = "a field is longer than its message";
    if (defect == NULL)
        defect = request_defect(request);
    if (defect != NULL && defect[0] == '\0')
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_MEMORY, "out of memory while reading the request");
    else if (defect != NULL)
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_PROTOCOL, "malformed request: %s", defect);
    if (defect != NULL)
        return false;
    if (request->time_limit_ms > 0)
        request->deadline_ns = hdrt__cc_now_ns() + (int64_t)request->time_limit_ms * 1000000;
    return true;
}

void hdrt__cc_request_free(hdrt__cc_request *request)
{
    free(request->inputs);
    free(request->options.items);
    free(request->header_names.items);
    free(request->header_texts.items);
    free(request->expressions.items);
    free(request->texts);
    *request = (hdrt__cc_request){0};
}

/* -- the reply ----------------------------------------------------------------------------------------------------- */

void hdrt__cc_reply_fail(hdrt__cc_reply *reply, enum hdrt_cc_status status, const char *format, ...)
{
    if (reply->status != HDRT_CC_STATUS_OK)
        return;
    reply->status = status;
    va_list arguments;
    va_start(arguments, format);
    hdrt__cc_buffer_vformat(&reply->message, format, arguments);
    va_end(arguments);
}

void hdrt__cc_reply_fail_by_memory(hdrt__cc_reply *reply, const hdrt__cc_request *request)
{
    if (request->memory_limit > 0)
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_LIMIT,
                            "'%s' ran out of memory and ended under a memory limit of %llu bytes of address space; "
                            "memory_limit_bytes (hdjit: --memory-limit) raises it",
                            request->compiler_path, (unsigned long long)request->memory_limit);
    else
        hdrt__cc_reply_fail(reply, HDRT_CC_STATUS_LIMIT, "'%s' ran out of memory", request->compiler_path);
}

static void add_text(hdrt__cc_reply *reply, uint32_t tag, const char *format, va_list arguments)
{
    hdrt__cc_buffer text = {0};
    hdrt__cc_buffer_vformat(&text, format, arguments);
    if (text.failed)
        reply->fields.failed = true;
    else
        hdrt__cc_buffer_field(&reply->fields, tag, text.bytes, text.size);
    hdrt__cc_buffer_free(&text);
}

void hdrt__cc_reply_text(hdrt__cc_reply *reply, uint32_t tag, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_text(reply, tag, format, arguments);
    va_end(arguments);
}

void hdrt__cc_reply_no_store(hdrt__cc_reply *reply, const char *format, ...)
{
    if (reply->no_store_count++ >= NO_STORE_REASONS)
        return;
    va_list arguments;
    va_start(arguments, format);
    add_text(reply, HDRT_CC_NO_STORE, format, arguments);
    va_end(arguments);
}

void hdrt__cc_reply_diagnostic(hdrt__cc_reply *reply, const char *file, size_t file_length, uint32_t line,
                               uint32_t column, uint32_t severity, const char *text, size_t text_length)
{
    hdrt__cc_buffer *fields = &reply->fields;
    hdrt__cc_buffer_u32(fields, HDRT_CC_DIAGNOSTIC);
    hdrt__cc_buffer_u64(fields, 16 + (uint64_t)file_length + text_length);
    hdrt__cc_buffer_u32(fields, line);
    hdrt__cc_buffer_u32(fields, column);
    hdrt__cc_buffer_u32(fields, severity);
    hdrt__cc_buffer_u32(fields, (uint32_t)file_length);
    hdrt__cc_buffer_append(fields, file, file_length);
    hdrt__cc_buffer_append(fields, text, text_length);
}

void hdrt__cc_reply_lowered(hdrt__cc_reply *reply, const char *expression, const char *name, size_t name_length)
{
    hdrt__cc_buffer *fields = &reply->fields;
    size_t length = strlen(expression);
    hdrt__cc_buffer_u32(fields, HDRT_CC_LOWERED_NAME);
    hdrt__cc_buffer_u64(fields, 4 + (uint64_t)length + name_length);
    hdrt__cc_buffer_u32(fields, (uint32_t)length);
    hdrt__cc_buffer_append(fields, expression, length);
    hdrt__cc_buffer_append(fields, name, name_length);
}

/* Single quotes keep everything but themselves. */
static void quote_word(hdrt__cc_buffer *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%^";
    if (out->size > 0)
        hdrt__cc_buffer_append(out, " ", 1);
    if (*word != '\0' && word[strspn(word, plain)] == '\0') {
        hdrt__cc_buffer_append(out, word, strlen(word));
        return;
    }
    hdrt__cc_buffer_append(out, "'", 1);
    for (; *word != '\0'; word++)
        if (*word == '\'')
            hdrt__cc_buffer_append(out, "'\\''", 4);
        else
            hdrt__cc_buffer_append(out, word, 1);
    hdrt__cc_buffer_append(out, "'", 1);
}

void hdrt__cc_reply_command(hdrt__cc_reply *reply, const char *program, const char *const *words, size_t count)
{
    hdrt__cc_buffer_free(&reply->command);
    if (program != NULL)
        quote_word(&reply->command, program);
    for (size_t i = 0; i < count; i++)
        quote_word(&reply->command, words[i]);
}

void hdrt__cc_reply_finish(hdrt__cc_reply *reply, hdrt__cc_buffer *out)
{
    unsigned char status[4];
    for (int i = 0; i < 4; i++)
        status[i] = (unsigned char)(reply->status >> (8 * i));
    hdrt__cc_buffer payload = {0};
    hdrt__cc_buffer_field(&payload, HDRT_CC_STATUS, status, sizeof status);
    if (reply->message.size > 0)
        hdrt__cc_buffer_field(&payload, HDRT_CC_MESSAGE, reply->message.bytes, reply->message.size);
    if (reply->log.size > 0)
        hdrt__cc_buffer_field(&payload, HDRT_CC_LOG, reply->log.bytes, reply->log.size);
    if (reply->command.size > 0 && !reply->command.failed) /* for people: a failure here is none of the compile */
        hdrt__cc_buffer_field(&payload, HDRT_CC_COMMAND, reply->command.bytes, reply->command.size);
    hdrt__cc_buffer_append(&payload, reply->fields.bytes, reply->fields.size);

    hdrt__cc_buffer_u32(out, HDRT_CC_MAGIC);
    hdrt__cc_buffer_u32(out, HDRT_CC_VERSION);
    hdrt__cc_buffer_u32(out, HDRT_CC_REPLY_COMPILE);
    hdrt__cc_buffer_u32(out, 0);
    hdrt__cc_buffer_u64(out, payload.size);
    hdrt__cc_buffer_append(out, payload.bytes, payload.size);
    if (payload.failed || payload.size > HDRT_CC_MESSAGE_LIMIT || reply->message.failed || reply->log.failed ||
        reply->fields.failed)
        out->failed = true;
    hdrt__cc_buffer_free(&payload);
}

void hdrt__cc_reply_free(hdrt__cc_reply *reply)
{
    hdrt__cc_buffer_free(&reply->message);
    hdrt__cc_buffer_free(&reply->log);
    hdrt__cc_buffer_free(&reply->command);
    hdrt__cc_buffer_free(&reply->fields);
    *reply = (hdrt__cc_reply){0};
}

/* -- what both back ends ask about a source ------------------------------------------------------------------------ */

/* Take out "." and empty components; ".." stays, because of what links make of it. */
static void drop_empty_components(char *path)
{
    char *to = path;
    for (const char *at = path; *at != '\0';) {
        const char *name = at + strspn(at, "/");
        size_t length = strcspn(name, "/");
        at = name + length;
        if (length == 0 || (length == 1 && *name == '.'))
            continue;
        *to++ = '/';
        memmove(to, name, length);
        to += length;
    }
    if (to == path)
        *to++ = '/';
    *to = '\0';
}

char *hdrt__cc_absolute(const hdrt__cc_request *request, const char *path)
{
    char *absolute = NULL;
    if (path[0] == '/')
        absolute = strdup(path);
    else if (asprintf(&absolute, "%s/%s", request->directory, path) < 0)
        absolute = NULL;
    if (absolute != NULL)
        drop_empty_components(absolute);
    return absolute;
}

char *hdrt__cc_source_directory(const hdrt__cc_request *request)
{
    char *path = hdrt__cc_absolute(request, request->name);
    if (path == NULL)
        return NULL;
    char *slash = strrchr(path, '/');
    slash[slash == path ? 1 : 0] = '\0';
    return path;
}

/* Whether the line that leads up to `at` has a # on it, in any of its spellings; a backslash continues a line. */
static bool is_directive(const char *source, const char *at)
{
    for (const char *p = at; p > source; p--) {
        if (p[-1] == '\n' && (p - 1 == source || (p[-2] != '\\' && p[-2] != '\r')))
            return false;
        if (p[-1] == '#' || (p[-1] == ':' && p - 1 > source && p[-2] == '%') ||
            (p[-1] == '=' && p - 2 > source && p[-2] == '?' && p[-3] == '?'))
            return true;
    }
    return false;
}

bool hdrt__cc_includes_anything(const hdrt__cc_request *request)
{
    static const char *const words[] = {"include", "embed"};
    const char *end = request->source + request->source_size;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = request->source;
        while ((at = memmem(at, (size_t)(end - at), words[i], strlen(words[i]))) != NULL) {
            if (is_directive(request->source, at)) /* __has_include too: it stands behind #if */
                return true;
            at++;
        }
    }
    for (size_t i = 0; i < request->options.count; i++) {
        const char *option = request->options.items[i];
        if (strstr(option, "-include=") != NULL || strcmp(option, "-include") == 0 ||
            strcmp(option, "--pre-include") == 0 || strcmp(option, "-pre-include") == 0)
            return true;
    }
    return false;
}

void hdrt__cc_refuse_time_macros(const hdrt__cc_request *request, hdrt__cc_reply *reply)
{
    const char *macro = hdrt__cc_time_macro(request->source, request->source_size);
    for (size_t i = 0; macro == NULL && i < request->options.count; i++)
        macro = hdrt__cc_time_macro(request->options.items[i], strlen(request->options.items[i]));
    if (macro != NULL)
        hdrt__cc_reply_no_store(reply, "the source uses %s", macro);
    macro = NULL;
    for (size_t i = 0; macro == NULL && i < request->header_texts.count; i++)
        macro = hdrt__cc_time_macro(request->header_texts.items[i], strlen(request->header_texts.items[i]));
    if (macro != NULL)
        hdrt__cc_reply_no_store(reply, "an in-memory header uses %s", macro);
}

const char *hdrt__cc_time_macro(const char *text, size_t size)
{
    static const char *const macros[] = {"__DATE__", "__TIME__", "__TIMESTAMP__"};
    for (size_t i = 0; i < sizeof macros / sizeof *macros; i++)
        if (memmem(text, size, macros[i], strlen(macros[i])) != NULL)
            return macros[i];
    return NULL;
}
