/* SPDX-License-Identifier: MIT */
#include "jit/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/protocol.h"

#if defined(__x86_64__)
#define HOST "x86_64, 64-bit pointers, Linux"
#elif defined(__aarch64__)
#define HOST "aarch64, 64-bit pointers, Linux"
#else
#define HOST "another machine, Linux"
#endif

static bool contains(const char *text, size_t size, const char *word)
{
    return memmem(text, size, word, strlen(word)) != NULL;
}

bool hdrt__may_include(const char *source, size_t size)
{
    /* A backslash before a line end, or the trigraph for it, can hide the word. */
    return contains(source, size, "include") || contains(source, size, "embed") || contains(source, size, "import") ||
           contains(source, size, "\\\n") || contains(source, size, "\\\r") || contains(source, size, "?\?/");
}

/* ---- the fields ------------------------------------------------------------------------------------------------- */

struct visit {
    hdrt__field_visitor visitor;
    void *context;
};

static void text_field(const struct visit *visit, hdrt__key_tag tag, const char *text)
{
    visit->visitor(visit->context, tag, text, text ? strlen(text) : 0);
}

static void number_field(const struct visit *visit, hdrt__key_tag tag, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    text_field(visit, tag, text);
}

static void identity_fields(const struct visit *visit, const hdrt__request *request)
{
    char hex[2 * HDRT__DIGEST_SIZE + 1];
    hdrt__digest_hex(request->identity, hex);
    text_field(visit, HDRT__KEY_COMPILER_FILE, hex);
    for (const char *line = request->identity_lines; line && *line;) {
        size_t size = strcspn(line, "\n");
        visit->visitor(visit->context, HDRT__KEY_COMPILER_FILE, line, size);
        line += size + (line[size] == '\n');
    }
}

static const char *kind_words(hdrt_code_kind kind)
{
    return kind == HDRT_CODE_CUBIN ? "cubin" : kind == HDRT_CODE_LTO_IR ? "LTO-IR" : "PTX";
}

void hdrt__request_fields(const hdrt__request *request, hdrt__field_visitor visitor, void *context)
{
    const struct visit visit = {visitor, context};
    number_field(&visit, HDRT__KEY_FORMAT, HDRT__KEY_FORMAT_NUMBER);
    number_field(&visit, HDRT__KEY_PROTOCOL, HDRT_CC_VERSION);
    text_field(&visit, HDRT__KEY_HOST, HOST);
    text_field(&visit, HDRT__KEY_COMPILER, request->compiler == HDRT_COMPILER_NVRTC ? "NVRTC" : "clang");
    text_field(&visit, HDRT__KEY_KIND, kind_words(request->kind));
    text_field(&visit, HDRT__KEY_ARCH, request->arch);
    number_field(&visit, HDRT__KEY_LOWER_ARCH, (uint64_t)request->lower_arch);
    visitor(context, HDRT__KEY_SOURCE, request->source, request->source_size);
    text_field(&visit, HDRT__KEY_NAME, request->name);
    /* The folder matters only where something is looked up in it, or where debug information keeps it. */
    bool directory = request->options->debug_paths || request->options->includes ||
                     hdrt__may_include(request->source, request->source_size);
    text_field(&visit, HDRT__KEY_DIRECTORY, directory ? request->directory : NULL);
    for (uint32_t i = 0; i < request->options->count; i++)
        text_field(&visit, HDRT__KEY_OPTION, request->options->items[i]);
    for (uint32_t i = 0; i < request->header_count; i++) {
        text_field(&visit, HDRT__KEY_HEADER_NAME, request->headers[i].name);
        text_field(&visit, HDRT__KEY_HEADER_TEXT, request->headers[i].text);
    }
    for (uint32_t i = 0; i < request->name_count; i++)
        text_field(&visit, HDRT__KEY_NAME_EXPRESSION, request->names[i]);
    identity_fields(&visit, request);
    /* What is in it is known where it was read: it is then among the files of the manifest. */
    text_field(&visit, HDRT__KEY_LIBDEVICE, request->libdevice);
    /* No environment variable: the worker's has none that steers a compiler. */
}

static void hash_field(void *context, hdrt__key_tag tag, const char *value, size_t size)
{
    if (value)
        hdrt__hasher_field(context, tag, value, size);
    else
        hdrt__hasher_text(context, tag, NULL);
}

hdrt__digest hdrt__request_key(const hdrt__request *request)
{
    hdrt__hasher hasher;
    hdrt__hasher_begin(&hasher, "hdrt compile");
    hdrt__request_fields(request, hash_field, &hasher);
    return hdrt__hasher_end(&hasher);
}

/* ---- in words --------------------------------------------------------------------------------------------------- */

static const struct {
    uint32_t tag;
    const char *label;
    hdrt_cache_reason reason;
} labels[] = {
#define LABEL(tag, number, label, reason) {number, label, reason},
    HDRT__KEY_FIELDS(LABEL)
#undef LABEL
};

const char *hdrt__key_label(uint32_t tag)
{
    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
        if (labels[i].tag == tag)
            return labels[i].label;
    return "field";
}

hdrt_cache_reason hdrt__key_reason(uint32_t tag)
{
    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
        if (labels[i].tag == tag)
            return labels[i].reason;
    return HDRT_CACHE_OTHER_VERSION;
}
