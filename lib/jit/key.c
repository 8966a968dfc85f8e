/* SPDX-License-Identifier: MIT */
#include "jit/key.h"

#include <string.h>

#include "compiler/protocol.h"
#include "jit/stamp.h"

enum {
    TAG_FORMAT = 1,
    TAG_PROTOCOL,
    TAG_COMPILER,
    TAG_KIND,
    TAG_ARCH,
    TAG_LOWER_ARCH,
    TAG_SOURCE,
    TAG_NAME,
    TAG_DIRECTORY,
    TAG_OPTION_COUNT,
    TAG_OPTION,
    TAG_IDENTITY,
    TAG_LIBDEVICE,
    TAG_LIBDEVICE_SIZE,
    TAG_LIBDEVICE_TIME,
    TAG_HEADER_NAME,
    TAG_HEADER_TEXT,
    TAG_NAME_EXPRESSION,
};

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

hdrt__digest hdrt__request_key(const hdrt__request *request)
{
    hdrt__hasher hasher;
    hdrt__hasher_begin(&hasher, "hdrt compile");
    hdrt__hasher_number(&hasher, TAG_FORMAT, HDRT__KEY_FORMAT);
    hdrt__hasher_number(&hasher, TAG_PROTOCOL, HDRT_CC_VERSION);
    hdrt__hasher_number(&hasher, TAG_COMPILER, request->compiler);
    hdrt__hasher_number(&hasher, TAG_KIND, request->kind);
    hdrt__hasher_text(&hasher, TAG_ARCH, request->arch);
    hdrt__hasher_number(&hasher, TAG_LOWER_ARCH, request->lower_arch);
    hdrt__hasher_field(&hasher, TAG_SOURCE, request->source, request->source_size);
    hdrt__hasher_text(&hasher, TAG_NAME, request->name);
    /* The folder matters only where something is looked up in it, or where debug information keeps it. */
    bool directory = request->options->debug_paths || request->options->includes ||
                     hdrt__may_include(request->source, request->source_size);
    hdrt__hasher_text(&hasher, TAG_DIRECTORY, directory ? request->directory : NULL);
    hdrt__hasher_number(&hasher, TAG_OPTION_COUNT, request->options->count);
    for (uint32_t i = 0; i < request->options->count; i++)
        hdrt__hasher_text(&hasher, TAG_OPTION, request->options->items[i]);
    for (uint32_t i = 0; i < request->header_count; i++) {
        hdrt__hasher_text(&hasher, TAG_HEADER_NAME, request->headers[i].name);
        hdrt__hasher_text(&hasher, TAG_HEADER_TEXT, request->headers[i].text);
    }
    for (uint32_t i = 0; i < request->name_count; i++)
        hdrt__hasher_text(&hasher, TAG_NAME_EXPRESSION, request->names[i]);
    hdrt__hasher_field(&hasher, TAG_IDENTITY, request->identity->bytes, sizeof(request->identity->bytes));
    hdrt__hasher_text(&hasher, TAG_LIBDEVICE, request->libdevice);
    hdrt__stamp stamp;
    if (request->libdevice && hdrt__stamp_file(request->libdevice, &stamp)) {
        hdrt__hasher_number(&hasher, TAG_LIBDEVICE_SIZE, stamp.size);
        hdrt__hasher_number(&hasher, TAG_LIBDEVICE_TIME, stamp.mtime_ns);
    }
    return hdrt__hasher_end(&hasher);
}
