/* SPDX-License-Identifier: MIT */
#include "jit/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "jit/container.h"

static const char magic[HDRT__CONTAINER_MAGIC_SIZE] = {'H', 'D', 'R', 'T', 'I', 'M', 'G', '\n'};

/* Sections of an image file. Numbers never change; new ones get new numbers. */
enum image_section {
    IMAGE_NAME = 1,       /* the digest that the file is found by */
    IMAGE_KIND = 2,       /* u32 hdrt_code_kind, u32 hdrt_compiler */
    IMAGE_CUBIN = 3,
    IMAGE_PTX = 4,
    IMAGE_ARCH = 5,
    IMAGE_COMPILER_PATH = 6,
    IMAGE_COMPILER_VERSION = 7,
    IMAGE_LOG = 8,
    IMAGE_NOTE = 9,
    IMAGE_UNRESOLVED = 10,
    IMAGE_DIAGNOSTIC = 11, /* u32 severity, line, column, length of file; file; text */
    IMAGE_TABLE = 12,
    IMAGE_LOWERED = 13, /* u32 length of expression; expression; name */
    IMAGE_LTO_IR = 14,
    IMAGE_SOURCE_NAME = 15,
    IMAGE_OPTIONS = 16,
    IMAGE_COMMAND = 17,
};

hdrt__code *hdrt__code_create(void)
{
    hdrt__code *code = calloc(1, sizeof(*code));
    if (!code)
        return NULL;
    atomic_init(&code->references, 1);
    code->arch = strdup("");
    code->compiler_path = strdup("");
    code->compiler_version = strdup("");
    code->log = strdup("");
    code->source_name = strdup("");
    code->options = strdup("");
    code->command = strdup("");
    if (!code->arch || !code->compiler_path || !code->compiler_version || !code->log || !code->source_name ||
        !code->options || !code->command) {
        hdrt__code_drop(code);
        return NULL;
    }
    return code;
}

hdrt__code *hdrt__code_hold(hdrt__code *code)
{
    atomic_fetch_add_explicit(&code->references, 1, memory_order_relaxed);
    return code;
}

void hdrt__code_drop(hdrt__code *code)
{
    if (!code || atomic_fetch_sub_explicit(&code->references, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < code->diagnostic_count; i++) {
        free((char *)code->diagnostics[i].file);
        free((char *)code->diagnostics[i].text);
    }
    free(code->diagnostics);
    for (uint32_t i = 0; i < code->lowered_count; i++) {
        free(code->lowered[i].expression);
        free(code->lowered[i].name);
    }
    free(code->lowered);
    free(code->lto_ir);
    hdrt__kernel_table_free(&code->table);
    free(code->cubin);
    free(code->ptx);
    free(code->arch);
    free(code->compiler_path);
    free(code->compiler_version);
    free(code->log);
    free(code->note);
    free(code->source_name);
    free(code->options);
    free(code->command);
    free(code->reason_words);
    free(code->unresolved);
    free(code);
}

bool hdrt__code_add_diagnostic(hdrt__code *code, hdrt_severity severity, uint32_t line, uint32_t column,
                               const char *file, size_t file_size, const char *text, size_t text_size)
{
    uint32_t count = code->diagnostic_count;
    if ((count & (count - 1)) == 0) { /* powers of two as capacities */
        hdrt_diagnostic *bigger = realloc(code->diagnostics, (count ? (size_t)count * 2 : 1) * sizeof(*bigger));
        if (!bigger)
            return false;
        code->diagnostics = bigger;
    }
    char *file_copy = file_size ? strndup(file, file_size) : NULL;
    char *text_copy = strndup(text ? text : "", text_size);
    if ((file_size && !file_copy) || !text_copy) {
        free(file_copy);
        free(text_copy);
        return false;
    }
    code->diagnostics[code->diagnostic_count++] = (hdrt_diagnostic){file_copy, line, column, severity, text_copy};
    return true;
}

bool hdrt__code_add_lowered(hdrt__code *code, const char *expression, size_t expression_size, const char *name,
                            size_t name_size)
{
    hdrt__lowered_name *bigger = reallocarray(code->lowered, code->lowered_count + 1u, sizeof(*bigger));
    if (!bigger)
        return false;
    code->lowered = bigger;
    hdrt__lowered_name made = {strndup(expression, expression_size), strndup(name, name_size)};
    if (!made.expression || !made.name) {
        free(made.expression);
        free(made.name);
        return false;
    }
    bigger[code->lowered_count++] = made;
    return true;
}

const char *hdrt__code_lowered(const hdrt__code *code, const char *expression)
{
    for (uint32_t i = 0; i < code->lowered_count; i++) {
        const char *known = code->lowered[i].expression;
        if (strcmp(known + (*known == '&'), expression + (*expression == '&')) == 0)
            return code->lowered[i].name;
    }
    return NULL;
}

hdrt_status hdrt__code_read_table(hdrt__code *code)
{
    if (code->lto_ir)
        return HDRT_OK;
    if (code->ptx) {
        hdrt_status status = hdrt__kernel_table_from_ptx(code->ptx, code->ptx_size, &code->table);
        /* A cubin that tells nothing leaves the resources unknown; whether it loads is the driver's to say. */
        if (status == HDRT_OK && code->cubin &&
            hdrt__kernel_table_add_resources(code->cubin, code->cubin_size, &code->table) == HDRT_ERROR_OUT_OF_MEMORY)
            status = HDRT_ERROR_OUT_OF_MEMORY;
        return status;
    }
    return hdrt__kernel_table_from_cubin(code->cubin, code->cubin_size, &code->table);
}

size_t hdrt__code_bytes(const hdrt__code *code)
{
    return sizeof(*code) + code->cubin_size + code->ptx_size + code->lto_ir_size + strlen(code->log) +
           code->table.kernel_count * 128u;
}

static void write_diagnostic(const hdrt_diagnostic *diagnostic, hdrt__buffer *bytes)
{
    hdrt__buffer payload = HDRT__BUFFER_INIT;
    size_t file_size = diagnostic->file ? strlen(diagnostic->file) : 0;
    hdrt__buffer_u32(&payload, diagnostic->severity);
    hdrt__buffer_u32(&payload, diagnostic->line);
    hdrt__buffer_u32(&payload, diagnostic->column);
    hdrt__buffer_u32(&payload, (uint32_t)file_size);
    hdrt__buffer_append(&payload, diagnostic->file ? diagnostic->file : "", file_size);
    hdrt__buffer_text(&payload, diagnostic->text);
    bytes->failed = bytes->failed || payload.failed;
    hdrt__container_section(bytes, IMAGE_DIAGNOSTIC, payload.bytes, payload.size);
    hdrt__buffer_free(&payload);
}

static void write_lowered(const hdrt__lowered_name *lowered, hdrt__buffer *bytes)
{
    hdrt__buffer payload = HDRT__BUFFER_INIT;
    hdrt__buffer_u32(&payload, (uint32_t)strlen(lowered->expression));
    hdrt__buffer_text(&payload, lowered->expression);
    hdrt__buffer_text(&payload, lowered->name);
    bytes->failed = bytes->failed || payload.failed;
    hdrt__container_section(bytes, IMAGE_LOWERED, payload.bytes, payload.size);
    hdrt__buffer_free(&payload);
}

void hdrt__code_write(const hdrt__code *code, hdrt__buffer *bytes)
{
    hdrt__buffer kind = HDRT__BUFFER_INIT, table = HDRT__BUFFER_INIT;
    hdrt__container_begin(bytes, magic);
    hdrt__container_section(bytes, IMAGE_NAME, code->name.bytes, sizeof(code->name.bytes));
    hdrt__buffer_u32(&kind, code->kind);
    hdrt__buffer_u32(&kind, code->compiler);
    hdrt__kernel_table_write(&code->table, &table);
    if (kind.failed || table.failed) {
        bytes->failed = true;
        goto free_parts;
    }
    hdrt__container_section(bytes, IMAGE_KIND, kind.bytes, kind.size);
    if (code->cubin)
        hdrt__container_section(bytes, IMAGE_CUBIN, code->cubin, code->cubin_size);
    if (code->ptx)
        hdrt__container_section(bytes, IMAGE_PTX, code->ptx, code->ptx_size);
    if (code->lto_ir)
        hdrt__container_section(bytes, IMAGE_LTO_IR, code->lto_ir, code->lto_ir_size);
    hdrt__container_text(bytes, IMAGE_ARCH, code->arch);
    hdrt__container_text(bytes, IMAGE_COMPILER_PATH, code->compiler_path);
    hdrt__container_text(bytes, IMAGE_COMPILER_VERSION, code->compiler_version);
    hdrt__container_text(bytes, IMAGE_LOG, code->log);
    hdrt__container_text(bytes, IMAGE_NOTE, code->note);
    hdrt__container_text(bytes, IMAGE_SOURCE_NAME, code->source_name);
    hdrt__container_text(bytes, IMAGE_OPTIONS, code->options);
    hdrt__container_text(bytes, IMAGE_COMMAND, code->command);
    hdrt__container_text(bytes, IMAGE_UNRESOLVED, code->unresolved);
    for (uint32_t i = 0; i < code->diagnostic_count; i++)
        write_diagnostic(&code->diagnostics[i], bytes);
    for (uint32_t i = 0; i < code->lowered_count; i++)
        write_lowered(&code->lowered[i], bytes);
    hdrt__container_section(bytes, IMAGE_TABLE, table.bytes, table.size);
    hdrt__container_end(bytes);
free_parts:
    hdrt__buffer_free(&kind);
    hdrt__buffer_free(&table);
}

/* Replaces a text member by a section's; false if it is none or memory is out. */
static bool take_text(char **member, const hdrt__section *section)
{
    char *text = hdrt__section_text(section);
    if (!text)
        return false;
    free(*member);
    *member = text;
    return true;
}

/* A copy with a NUL behind, so that PTX can be handed to the driver as it is. */
static bool take_bytes(char **member, size_t *size, const hdrt__section *section)
{
    char *copy = malloc(section->size + 1);
    if (!copy || *member) {
        free(copy);
        return false;
    }
    if (section->size)
        memcpy(copy, section->bytes, section->size);
    copy[section->size] = '\0';
    *member = copy;
    *size = section->size;
    return true;
}

static bool take_diagnostic(hdrt__code *code, const hdrt__section *section)
{
    hdrt__cursor cursor = {section->bytes, section->size, false};
    uint32_t severity = hdrt__cursor_u32(&cursor), line = hdrt__cursor_u32(&cursor), column = hdrt__cursor_u32(&cursor);
    size_t file_size;
    const unsigned char *file = hdrt__cursor_bytes(&cursor, hdrt__cursor_u32(&cursor), &file_size);
    return !cursor.failed && severity >= HDRT_SEVERITY_NOTE && severity <= HDRT_SEVERITY_ERROR &&
           hdrt__code_add_diagnostic(code, (hdrt_severity)severity, line, column, (const char *)file, file_size,
                                     (const char *)cursor.bytes, cursor.left);
}

static bool take_lowered(hdrt__code *code, const hdrt__section *section)
{
    hdrt__cursor cursor = {section->bytes, section->size, false};
    size_t size;
    const unsigned char *expression = hdrt__cursor_bytes(&cursor, hdrt__cursor_u32(&cursor), &size);
    return !cursor.failed && size && cursor.left && !memchr(section->bytes + 4, 0, section->size - 4) &&
           hdrt__code_add_lowered(code, (const char *)expression, size, (const char *)cursor.bytes, cursor.left);
}

static bool take_kind(hdrt__code *code, const hdrt__section *section)
{
    hdrt__cursor cursor = {section->bytes, section->size, false};
    uint32_t kind = hdrt__cursor_u32(&cursor), compiler = hdrt__cursor_u32(&cursor);
    code->kind = (hdrt_code_kind)kind;
    code->compiler = (hdrt_compiler)compiler;
    return !cursor.failed && kind >= HDRT_CODE_PTX && kind <= HDRT_CODE_LTO_IR &&
           compiler <= HDRT_COMPILER_CLANG; /* AUTO: code that was not compiled here */
}

static bool take_section(hdrt__code *code, const hdrt__section *section)
{
    switch ((enum image_section)section->tag) {
    case IMAGE_NAME:
        if (section->size != sizeof(code->name.bytes))
            return false;
        memcpy(code->name.bytes, section->bytes, section->size);
        return true;
    case IMAGE_KIND:
        return take_kind(code, section);
    case IMAGE_CUBIN:
        return take_bytes((char **)&code->cubin, &code->cubin_size, section);
    case IMAGE_PTX:
        return take_bytes(&code->ptx, &code->ptx_size, section);
    case IMAGE_ARCH:
        return take_text(&code->arch, section);
    case IMAGE_COMPILER_PATH:
        return take_text(&code->compiler_path, section);
    case IMAGE_COMPILER_VERSION:
        return take_text(&code->compiler_version, section);
    case IMAGE_LOG:
        return take_text(&code->log, section);
    case IMAGE_NOTE:
        return take_text(&code->note, section);
    case IMAGE_UNRESOLVED:
        return take_text(&code->unresolved, section);
    case IMAGE_DIAGNOSTIC:
        return take_diagnostic(code, section);
    case IMAGE_LOWERED:
        return take_lowered(code, section);
    case IMAGE_LTO_IR:
        return take_bytes((char **)&code->lto_ir, &code->lto_ir_size, section);
    case IMAGE_SOURCE_NAME:
        return take_text(&code->source_name, section);
    case IMAGE_OPTIONS:
        return take_text(&code->options, section);
    case IMAGE_COMMAND:
        return take_text(&code->command, section);
    case IMAGE_TABLE:
        hdrt__kernel_table_free(&code->table);
        return hdrt__kernel_table_read(section->bytes, section->size, &code->table);
    }
    return true; /* written by a later version */
}

hdrt__code *hdrt__code_read(const unsigned char *bytes, size_t size, const hdrt__digest *name,
                            hdrt_cache_reason *out_reason)
{
    hdrt__cursor sections;
    hdrt__section section;
    *out_reason = hdrt__container_open(bytes, size, magic, &sections);
    if (*out_reason != HDRT_CACHE_HIT)
        return NULL;
    hdrt__code *code = hdrt__code_create();
    if (!code) {
        *out_reason = HDRT_CACHE_UNREADABLE;
        return NULL;
    }
    bool good = true, table = false;
    while (good && hdrt__container_next(&sections, &section)) {
        good = take_section(code, &section);
        table = table || section.tag == IMAGE_TABLE;
    }
    good = good && table && !sections.failed &&
           (code->kind == HDRT_CODE_PTX     ? code->ptx != NULL
            : code->kind == HDRT_CODE_CUBIN ? code->cubin != NULL
                                            : code->lto_ir != NULL);
    if (!good)
        *out_reason = HDRT_CACHE_DAMAGED;
    else if (name && !hdrt__digest_equal(&code->name, name))
        *out_reason = HDRT_CACHE_MISPLACED;
    if (*out_reason == HDRT_CACHE_HIT)
        return code;
    hdrt__code_drop(code);
    return NULL;
}

bool hdrt__is_image_file(const void *bytes, size_t size)
{
    return size >= sizeof(magic) && memcmp(bytes, magic, sizeof(magic)) == 0;
}

/* ---- code without an image file ---------------------------------------------------------------------------------- */

/* What the line ".target sm_90a, ..." says; "" if there is none. */
static void ptx_arch(const char *ptx, char out[16])
{
    *out = '\0';
    for (const char *line = ptx; line && *out == '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        line += strspn(line, " \t");
        if (strncmp(line, ".target", 7) != 0 || (line[7] != ' ' && line[7] != '\t'))
            continue;
        line += 7 + strspn(line + 7, " \t");
        size_t size = strspn(line, "sm_0123456789af");
        if (size > 3 && size < 16 && strncmp(line, "sm_", 3) == 0) {
            memcpy(out, line, size);
            out[size] = '\0';
        }
    }
}

/*
 * The GPU in a cubin's ELF flags, whose place depends on the ABI version (LLVM's ELF.h, EF_CUDA_*): 8 since CUDA 13.
 */
static void cubin_arch(const unsigned char *cubin, size_t size, char out[16])
{
    enum { ABI_VERSION_AT = 8, FLAGS_AT = 48 };
    *out = '\0';
    if (size < FLAGS_AT + 4)
        return;
    hdrt__cursor cursor = {cubin + FLAGS_AT, 4, false};
    uint32_t flags = hdrt__cursor_u32(&cursor);
    bool newer = cubin[ABI_VERSION_AT] >= 8;
    unsigned number = newer ? flags >> 8 & 0xff : flags & 0xff;
    if (number)
        snprintf(out, 16, "sm_%u%s", number, flags & (newer ? 0x8 : 0x800) ? "a" : "");
}

static hdrt_status find_arch(hdrt__code *code)
{
    char arch[16];
    if (code->cubin)
        cubin_arch(code->cubin, code->cubin_size, arch);
    else
        ptx_arch(code->ptx, arch);
    char *copy = strdup(arch);
    if (!copy)
        return hdrt__fail_memory(sizeof(arch), "an image's target");
    free(code->arch);
    code->arch = copy;
    return HDRT_OK;
}

hdrt_status hdrt__code_from_bytes(const void *bytes, size_t size, const char *name, hdrt__code **out_code)
{
    hdrt__code *code = hdrt__code_create();
    char *copy = code ? malloc(size + 1) : NULL;
    hdrt_status status = HDRT_OK;
    if (!copy) {
        hdrt__code_drop(code);
        return hdrt__fail_memory(size, "a module's code");
    }
    memcpy(copy, bytes, size);
    copy[size] = '\0';
    if (hdrt__is_cubin(copy, size)) {
        code->kind = HDRT_CODE_CUBIN;
        code->cubin = (unsigned char *)copy;
        code->cubin_size = size;
    } else {
        code->kind = HDRT_CODE_PTX;
        code->ptx = copy;
        code->ptx_size = strlen(copy);
    }
    if (hdrt__is_fatbin(bytes, size))
        status = hdrt__fail(HDRT_ERROR_UNSUPPORTED, "it is a fatbin: load the cubin or PTX from it");
    else if (code->kind == HDRT_CODE_PTX && !hdrt__is_ptx(bytes, size))
        status = hdrt__fail(HDRT_ERROR_INVALID_IMAGE, "it is neither a cubin nor PTX text");
    if (status == HDRT_OK)
        status = hdrt__code_read_table(code);
    if (status == HDRT_OK)
        status = find_arch(code);
    if (status != HDRT_OK) {
        hdrt__fail_prefix("loading '%s'", name);
        hdrt__code_drop(code);
        return status;
    }
    *out_code = code;
    return HDRT_OK;
}
