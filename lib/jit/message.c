/* SPDX-License-Identifier: MIT */
#include "jit/message.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "compiler/protocol.h"
#include "jit/container.h"
#include "jit/cursor.h"

static void put(hdrt__buffer *bytes, uint32_t tag, const void *value, size_t size)
{
    hdrt__buffer_u32(bytes, tag);
    hdrt__buffer_u64(bytes, size);
    hdrt__buffer_append(bytes, value, size);
}

static void put_text(hdrt__buffer *bytes, uint32_t tag, const char *text)
{
    if (text)
        put(bytes, tag, text, strlen(text));
}

static void put_u32(hdrt__buffer *bytes, uint32_t tag, uint32_t value)
{
    hdrt__buffer_u32(bytes, tag);
    hdrt__buffer_u64(bytes, sizeof(value));
    hdrt__buffer_u32(bytes, value);
}

static void put_u64(hdrt__buffer *bytes, uint32_t tag, uint64_t value)
{
    hdrt__buffer_u32(bytes, tag);
    hdrt__buffer_u64(bytes, sizeof(value));
    hdrt__buffer_u64(bytes, value);
}

void hdrt__message_request(const hdrt__request *request, const hdrt__compile_setting *setting, hdrt__buffer *bytes)
{
    bool clang = request->compiler == HDRT_COMPILER_CLANG;
    put_u32(bytes, HDRT_CC_BACK_END, clang ? HDRT_CC_CLANG : HDRT_CC_NVRTC);
    put_text(bytes, HDRT_CC_COMPILER_PATH, setting->compiler->path);
    put_text(bytes, HDRT_CC_BUILTINS_PATH, setting->compiler->builtins);
    put(bytes, HDRT_CC_SOURCE, request->source, request->source_size);
    put_text(bytes, HDRT_CC_NAME, request->name);
    put_text(bytes, HDRT_CC_DIRECTORY, request->directory);
    put_text(bytes, HDRT_CC_ARCH, request->arch);
    put_u32(bytes, HDRT_CC_ARCH_LOWER, request->lower_arch);
    put_u32(bytes, HDRT_CC_KIND, request->kind == HDRT_CODE_CUBIN    ? HDRT_CC_CUBIN
                                 : request->kind == HDRT_CODE_LTO_IR ? HDRT_CC_LTO_IR : HDRT_CC_PTX);
    for (uint32_t i = 0; i < request->header_count; i++) {
        put_text(bytes, HDRT_CC_HEADER_NAME, request->headers[i].name);
        put_text(bytes, HDRT_CC_HEADER_TEXT, request->headers[i].text);
    }
    for (uint32_t i = 0; i < request->name_count; i++)
        put_text(bytes, HDRT_CC_EXPRESSION, request->names[i]);
    for (uint32_t i = 0; i < request->options->count; i++)
        put_text(bytes, HDRT_CC_OPTION, request->options->items[i]);
    if (clang) {
        put_text(bytes, HDRT_CC_PRELUDE, setting->prelude);
        put_text(bytes, HDRT_CC_RECORDER, setting->recorder);
        put_text(bytes, HDRT_CC_LIBDEVICE, setting->libdevice);
    } else {
        put_text(bytes, HDRT_CC_RANDOM_SEED, setting->random_seed);
    }
    put_u32(bytes, HDRT_CC_TIME_LIMIT, request->time_limit_ms);
    put_u64(bytes, HDRT_CC_MEMORY_LIMIT, request->memory_limit_bytes);
}

void hdrt__message_link(const hdrt__link_request *request, hdrt__buffer *bytes)
{
    put_u32(bytes, HDRT_CC_BACK_END, HDRT_CC_NVJITLINK);
    put_text(bytes, HDRT_CC_COMPILER_PATH, request->linker);
    put_text(bytes, HDRT_CC_SOURCE, "");
    put_text(bytes, HDRT_CC_NAME, "link");
    put_text(bytes, HDRT_CC_DIRECTORY, "/");
    put_text(bytes, HDRT_CC_ARCH, request->arch);
    put_u32(bytes, HDRT_CC_KIND, request->ptx ? HDRT_CC_PTX : HDRT_CC_CUBIN);
    for (uint32_t i = 0; i < request->options->count; i++)
        put_text(bytes, HDRT_CC_OPTION, request->options->items[i]);
    for (uint32_t i = 0; i < request->piece_count; i++) {
        const hdrt__link_piece *piece = &request->pieces[i];
        size_t name_size = strlen(piece->name);
        hdrt__buffer_u32(bytes, HDRT_CC_INPUT);
        hdrt__buffer_u64(bytes, 8 + (uint64_t)name_size + piece->size);
        hdrt__buffer_u32(bytes, piece->type);
        hdrt__buffer_u32(bytes, (uint32_t)name_size);
        hdrt__buffer_append(bytes, piece->name, name_size);
        hdrt__buffer_append(bytes, piece->bytes, piece->size);
    }
    put_u32(bytes, HDRT_CC_TIME_LIMIT, request->time_limit_ms);
    put_u64(bytes, HDRT_CC_MEMORY_LIMIT, request->memory_limit_bytes);
}

/* A field being read. `malformed` tells a bad reply from memory being out: both end in false. */
struct reader {
    hdrt__reply *reply;
    hdrt__buffer notes, unresolved;
    bool status_seen, malformed;
};

static bool take_text(struct reader *reader, char **member, const hdrt__section *field)
{
    if (field->size && memchr(field->bytes, 0, field->size)) {
        reader->malformed = true;
        return false;
    }
    char *text = hdrt__section_text(field);
    if (!text)
        return false;
    free(*member);
    *member = text;
    return true;
}

static bool take_code(struct reader *reader, char **member, size_t *size, const hdrt__section *field)
{
    if (*member || field->size == 0) {
        reader->malformed = true;
        return false;
    }
    char *copy = malloc(field->size + 1);
    if (!copy)
        return false;
    memcpy(copy, field->bytes, field->size);
    copy[field->size] = '\0';
    *member = copy;
    *size = field->size;
    return true;
}

static bool take_status(struct reader *reader, const hdrt__section *field)
{
    hdrt__cursor cursor = {field->bytes, field->size, false};
    reader->reply->status = hdrt__cursor_u32(&cursor);
    reader->status_seen = true;
    reader->malformed = cursor.failed;
    return !cursor.failed;
}

static bool take_diagnostic(struct reader *reader, const hdrt__section *field)
{
    hdrt__cursor cursor = {field->bytes, field->size, false};
    uint32_t line = hdrt__cursor_u32(&cursor), column = hdrt__cursor_u32(&cursor), severity = hdrt__cursor_u32(&cursor);
    size_t file_size;
    const unsigned char *file = hdrt__cursor_bytes(&cursor, hdrt__cursor_u32(&cursor), &file_size);
    if (cursor.failed || severity < HDRT_SEVERITY_NOTE || severity > HDRT_SEVERITY_ERROR) {
        reader->malformed = true;
        return false;
    }
    return hdrt__code_add_diagnostic(reader->reply->code, (hdrt_severity)severity, line, column, (const char *)file,
                                     file_size, (const char *)cursor.bytes, cursor.left);
}

static bool take_dependency(struct reader *reader, const hdrt__section *field)
{
    hdrt__cursor cursor = {field->bytes, field->size, false};
    hdrt__stamp stamp;
    hdrt__digest digest;
    size_t digest_size;
    stamp.size = hdrt__cursor_u64(&cursor);
    stamp.mtime_ns = hdrt__cursor_u64(&cursor);
    stamp.ctime_ns = hdrt__cursor_u64(&cursor);
    stamp.device = hdrt__cursor_u64(&cursor);
    stamp.inode = hdrt__cursor_u64(&cursor);
    const unsigned char *bytes = hdrt__cursor_bytes(&cursor, HDRT__DIGEST_SIZE, &digest_size);
    if (cursor.failed || cursor.left == 0 || cursor.bytes[0] != '/' || memchr(cursor.bytes, 0, cursor.left)) {
        reader->malformed = true;
        return false;
    }
    memcpy(digest.bytes, bytes, digest_size);
    return hdrt__record_add_dependency(&reader->reply->record, (const char *)cursor.bytes, cursor.left, &stamp,
                                       &digest);
}

static bool take_absent(struct reader *reader, const hdrt__section *field)
{
    if (field->size == 0 || field->bytes[0] != '/' || memchr(field->bytes, 0, field->size)) {
        reader->malformed = true;
        return false;
    }
    return hdrt__record_add_absent(&reader->reply->record, (const char *)field->bytes, field->size);
}

static bool take_lowered(struct reader *reader, const hdrt__section *field)
{
    hdrt__cursor cursor = {field->bytes, field->size, false};
    size_t size;
    const unsigned char *expression = hdrt__cursor_bytes(&cursor, hdrt__cursor_u32(&cursor), &size);
    if (cursor.failed || size == 0 || cursor.left == 0 || memchr(expression, 0, size) ||
        memchr(cursor.bytes, 0, cursor.left)) {
        reader->malformed = true;
        return false;
    }
    return hdrt__code_add_lowered(reader->reply->code, (const char *)expression, size, (const char *)cursor.bytes,
                                  cursor.left);
}

static bool append_item(hdrt__buffer *list, const char *separator, const hdrt__section *field)
{
    if (list->size)
        hdrt__buffer_text(list, separator);
    hdrt__buffer_format(list, "%.*s", (int)(field->size < 4096 ? field->size : 4096), (const char *)field->bytes);
    return !list->failed;
}

static bool take_field(struct reader *reader, const hdrt__section *field)
{
    hdrt__reply *reply = reader->reply;
    switch ((enum hdrt_cc_reply_tag)field->tag) {
    case HDRT_CC_STATUS:
        return take_status(reader, field);
    case HDRT_CC_MESSAGE:
        return take_text(reader, &reply->message, field);
    case HDRT_CC_LOG:
        return take_text(reader, &reply->code->log, field);
    case HDRT_CC_DIAGNOSTIC:
        return take_diagnostic(reader, field);
    case HDRT_CC_CODE_PTX:
        return take_code(reader, &reply->code->ptx, &reply->code->ptx_size, field);
    case HDRT_CC_CODE_CUBIN:
        return take_code(reader, (char **)&reply->code->cubin, &reply->code->cubin_size, field);
    case HDRT_CC_CODE_LTO_IR:
        return take_code(reader, (char **)&reply->code->lto_ir, &reply->code->lto_ir_size, field);
    case HDRT_CC_LOWERED_NAME:
        return take_lowered(reader, field);
    case HDRT_CC_ARCH_USED:
        return take_text(reader, &reply->code->arch, field);
    case HDRT_CC_DEPENDENCY:
        return take_dependency(reader, field);
    case HDRT_CC_ABSENT:
        return take_absent(reader, field);
    case HDRT_CC_NO_STORE:
        return take_text(reader, &reply->no_store, field);
    case HDRT_CC_COMPILER_VERSION:
        return take_text(reader, &reply->code->compiler_version, field);
    case HDRT_CC_NOTE:
        return append_item(&reader->notes, "; ", field);
    case HDRT_CC_COMMAND:
        return take_text(reader, &reply->code->command, field);
    case HDRT_CC_UNRESOLVED:
        reply->missing_libdevice = reply->missing_libdevice ||
                                   (field->size >= 5 && memcmp(field->bytes, "__nv_", 5) == 0);
        return append_item(&reader->unresolved, ", ", field);
    }
    return true; /* protocol.h: unknown tags of a reply are skipped */
}

hdrt_status hdrt__message_reply(const unsigned char *bytes, size_t size, hdrt__reply *out)
{
    hdrt__cursor cursor = {bytes, size, false};
    *out = (hdrt__reply){.message = strdup(""), .code = hdrt__code_create()};
    struct reader reader = {.reply = out};
    bool good = out->message && out->code;
    while (good && cursor.left > 0) {
        hdrt__section field;
        field.tag = hdrt__cursor_u32(&cursor);
        field.bytes = hdrt__cursor_bytes(&cursor, hdrt__cursor_u64(&cursor), &field.size);
        if (cursor.failed)
            reader.malformed = true;
        good = !cursor.failed && take_field(&reader, &field);
    }
    if (good && !reader.status_seen) {
        reader.malformed = true;
        good = false;
    }
    if (good && reader.notes.size)
        good = (out->code->note = hdrt__buffer_take(&reader.notes, NULL)) != NULL;
    if (good && reader.unresolved.size)
        good = (out->code->unresolved = hdrt__buffer_take(&reader.unresolved, NULL)) != NULL;
    hdrt__buffer_free(&reader.notes);
    hdrt__buffer_free(&reader.unresolved);
    if (good)
        return HDRT_OK;
    hdrt__reply_free(out);
    if (reader.malformed)
        return hdrt__fail(HDRT_ERROR_COMPANION,
                          "the compile worker's answer is malformed: hdrt-cc is not of this build");
    return hdrt__fail_memory(size, "the compile worker's answer");
}

void hdrt__reply_free(hdrt__reply *reply)
{
    free(reply->message);
    free(reply->no_store);
    hdrt__code_drop(reply->code);
    hdrt__record_free(&reply->record);
    *reply = (hdrt__reply){0};
}
