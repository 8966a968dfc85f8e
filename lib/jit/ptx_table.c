/* SPDX-License-Identifier: MIT */
/*
 * The reader of PTX declarations: a tokenizer and just enough grammar for module-scope directives. Bodies,
 * initialisers and debug sections are skipped by their brackets; the driver judges the rest.
 */
#include "jit/kernel_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

struct token {
    const char *text;
    size_t size;
    char kind; /* 'w' word (directive, name or number), 's' string, 0 end, else the character itself */
};

struct lexer {
    const char *next, *end;
    unsigned line;
    struct token now;
};

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           c == '%' || c == '.' || (c & 0x80);
}

static void skip_blank(struct lexer *lexer)
{
    while (lexer->next < lexer->end) {
        const char *p = lexer->next;
        size_t left = (size_t)(lexer->end - p);
        if (*p == '\n') {
            lexer->line++;
            lexer->next++;
        } else if (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\f' || *p == '\v') {
            lexer->next++;
        } else if (left >= 2 && p[0] == '/' && p[1] == '/') {
            const char *end_of_line = memchr(p, '\n', left);
            lexer->next = end_of_line ? end_of_line : lexer->end;
        } else if (left >= 2 && p[0] == '/' && p[1] == '*') {
            const char *close = memmem(p + 2, left - 2, "*/", 2);
            lexer->next = close ? close + 2 : lexer->end;
            for (; p < lexer->next; p++)
                lexer->line += *p == '\n';
        } else {
            return;
        }
    }
}

static void advance(struct lexer *lexer)
{
    skip_blank(lexer);
    const char *start = lexer->next;
    if (start == lexer->end) {
        lexer->now = (struct token){start, 0, 0};
        return;
    }
    if (is_word(*start)) {
        while (lexer->next < lexer->end && is_word(*lexer->next))
            lexer->next++;
        lexer->now = (struct token){start, (size_t)(lexer->next - start), 'w'};
    } else if (*start == '"') {
        lexer->next++;
        while (lexer->next < lexer->end && *lexer->next != '"') {
            lexer->line += *lexer->next == '\n';
            lexer->next += *lexer->next == '\\' && lexer->next + 1 < lexer->end ? 2 : 1;
        }
        lexer->next += lexer->next < lexer->end;
        lexer->now = (struct token){start, (size_t)(lexer->next - start), 's'};
    } else {
        lexer->next++;
        lexer->now = (struct token){start, 1, *start ? *start : '?'};
    }
}

static bool is(const struct lexer *lexer, const char *word)
{
    return lexer->now.kind == 'w' && lexer->now.size == strlen(word) &&
           memcmp(lexer->now.text, word, lexer->now.size) == 0;
}

static bool begins(const struct token *token, const char *prefix)
{
    size_t size = strlen(prefix);
    return token->kind == 'w' && token->size >= size && memcmp(token->text, prefix, size) == 0;
}

/* Numbers as declarations have them: decimal, or hexadecimal behind 0x, with an optional U. */
static bool number(const struct token *token, uint64_t *out)
{
    size_t i = 0, size = token->size;
    unsigned base = 10;
    if (token->kind != 'w' || size == 0)
        return false;
    if (size > 2 && token->text[0] == '0' && (token->text[1] | 0x20) == 'x') {
        base = 16;
        i = 2;
    }
    if (size > 1 && token->text[size - 1] == 'U')
        size--;
    uint64_t value = 0;
    for (; i < size; i++) {
        unsigned char c = (unsigned char)token->text[i];
        unsigned digit = c >= '0' && c <= '9'                     ? c - '0' + 0u
                         : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10u
                                                                  : 99;
        if (digit >= base || value > (UINT64_MAX - digit) / base)
            return false;
        value = value * base + digit;
    }
    *out = value;
    return true;
}

/* Consumes a bracketed group, brackets of the other sorts included. The current token is its opening one. */
static bool skip_group(struct lexer *lexer)
{
    unsigned depth = 0;
    do {
        char kind = lexer->now.kind;
        if (kind == 0)
            return false;
        if (kind == '{' || kind == '(' || kind == '[')
            depth++;
        else if (kind == '}' || kind == ')' || kind == ']')
            depth--;
        advance(lexer);
    } while (depth > 0);
    return true;
}

/* What a declaration says before and behind the name. */
struct declaration {
    uint32_t element, vector, align, argument_class;
    struct token name;
    uint64_t count;
    bool array, known;
};

/* ".u32" and its like: size in bytes and class of its values. */
static bool scalar_type(const struct token *token, uint32_t *size, uint32_t *argument_class)
{
    static const struct {
        const char *name;
        uint32_t size, argument_class;
    } types[] = {
        {".u8", 1, HDRT_CLASS_INTEGER},  {".u16", 2, HDRT_CLASS_INTEGER}, {".u32", 4, HDRT_CLASS_INTEGER},
        {".u64", 8, HDRT_CLASS_INTEGER}, {".s8", 1, HDRT_CLASS_INTEGER},  {".s16", 2, HDRT_CLASS_INTEGER},
        {".s32", 4, HDRT_CLASS_INTEGER}, {".s64", 8, HDRT_CLASS_INTEGER}, {".f32", 4, HDRT_CLASS_FLOAT},
        {".f64", 8, HDRT_CLASS_FLOAT},   {".b8", 1, HDRT_CLASS_UNKNOWN},  {".b16", 2, HDRT_CLASS_UNKNOWN},
        {".b32", 4, HDRT_CLASS_UNKNOWN}, {".b64", 8, HDRT_CLASS_UNKNOWN}, {".b128", 16, HDRT_CLASS_UNKNOWN},
        {".f16", 2, HDRT_CLASS_UNKNOWN}, {".f16x2", 4, HDRT_CLASS_UNKNOWN}, {".bf16", 2, HDRT_CLASS_UNKNOWN},
        {".texref", 8, HDRT_CLASS_INTEGER}, {".samplerref", 8, HDRT_CLASS_INTEGER}, {".surfref", 8, HDRT_CLASS_INTEGER},
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (token->size == strlen(types[i].name) && memcmp(token->text, types[i].name, token->size) == 0) {
            *size = types[i].size;
            *argument_class = types[i].argument_class;
            return true;
        }
    return false;
}

/* Reads ".align 8 .b8" up to and with the name; `known` stays false if a type or size is not understood. */
static void read_declarator_head(struct lexer *lexer, struct declaration *declaration)
{
    bool pointer = false;
    while (lexer->now.kind == 'w') {
        uint64_t value;
        if (is(lexer, ".align")) {
            advance(lexer);
            if (number(&lexer->now, &value) && value > 0 && value <= 1u << 20 && (value & (value - 1)) == 0) {
                /* Behind .ptr it is the alignment of what is pointed to. */
                if (!pointer)
                    declaration->align = (uint32_t)value;
            } else {
                declaration->known = false;
            }
        } else if (is(lexer, ".ptr")) {
            pointer = true;
        } else if (is(lexer, ".v2") || is(lexer, ".v4")) {
            declaration->vector = (uint32_t)(lexer->now.text[2] - '0');
        } else if (is(lexer, ".attribute")) {
            advance(lexer);
            if (lexer->now.kind == '(' && !skip_group(lexer))
                return;
            continue;
        } else if (scalar_type(&lexer->now, &declaration->element, &declaration->argument_class)) {
            /* kept */
        } else if (lexer->now.text[0] != '.') {
            declaration->name = lexer->now;
            advance(lexer);
            return;
        }
        advance(lexer);
    }
}

/* "[16]", "[4][4]", "[]" behind a name. */
static void read_extents(struct lexer *lexer, struct declaration *declaration)
{
    declaration->count = 1;
    while (lexer->now.kind == '[') {
        uint64_t extent = 0;
        declaration->array = true;
        advance(lexer);
        if (lexer->now.kind != ']') {
            if (!number(&lexer->now, &extent))
                declaration->known = false;
            advance(lexer);
        }
        if (__builtin_mul_overflow(declaration->count, extent, &declaration->count))
            declaration->known = false;
        while (lexer->now.kind != ']' && lexer->now.kind != 0) {
            declaration->known = false;
            advance(lexer);
        }
        advance(lexer);
    }
}

static uint64_t declared_bytes(const struct declaration *declaration)
{
    uint64_t bytes;
    if (!declaration->known || declaration->element == 0 ||
        __builtin_mul_overflow((uint64_t)declaration->element * declaration->vector, declaration->count, &bytes))
        return 0;
    return bytes;
}

static bool read_parameters(struct lexer *lexer, hdrt__kernel_entry *entry)
{
    uint64_t offset = 0;
    advance(lexer);
    while (lexer->now.kind != ')' && lexer->now.kind != 0) {
        struct declaration declaration = {.vector = 1, .known = true};
        if (is(lexer, ".param"))
            advance(lexer);
        read_declarator_head(lexer, &declaration);
        read_extents(lexer, &declaration);
        uint64_t bytes = declared_bytes(&declaration);
        uint32_t align = declaration.align ? declaration.align : declaration.element * declaration.vector;
        offset = align ? (offset + align - 1) / align * align : offset;
        if (!declaration.name.text || bytes == 0 || offset + bytes > UINT32_MAX) {
            entry->parameters_known = false;
        } else {
            bool bytes_only = declaration.array || declaration.vector > 1;
            hdrt_parameter parameter = {(uint32_t)offset, (uint32_t)bytes, align,
                                        bytes_only ? HDRT_CLASS_UNKNOWN : declaration.argument_class};
            if (entry->parameter_count >= HDRT__PARAMETER_LIMIT)
                entry->parameters_known = false;
            else if (!hdrt__kernel_entry_add(entry, &parameter))
                return false;
            offset += bytes;
        }
        /* What follows a declaration that was not understood. */
        while (lexer->now.kind != ',' && lexer->now.kind != ')' && lexer->now.kind != 0) {
            entry->parameters_known = false;
            advance(lexer);
        }
        if (lexer->now.kind == ',')
            advance(lexer);
    }
    advance(lexer);
    return true;
}

struct reader {
    hdrt__kernel_table *table;
    bool out_of_memory;
    bool declarations; /* some entry was declared without a body: its definition makes it appear twice */
};

/* ".entry name (parameters) performance directives { body }" or a declaration that ends in ";". */
static bool read_entry(struct lexer *lexer, struct reader *reader)
{
    advance(lexer);
    if (lexer->now.kind != 'w')
        return false;
    hdrt__kernel_entry *entry = hdrt__kernel_table_add(reader->table, lexer->now.text, lexer->now.size);
    advance(lexer);
    if (!entry || (lexer->now.kind == '(' && !read_parameters(lexer, entry))) {
        reader->out_of_memory = true;
        return false;
    }
    while (lexer->now.kind != '{' && lexer->now.kind != ';' && lexer->now.kind != 0)
        advance(lexer);
    if (lexer->now.kind == '{')
        return skip_group(lexer);
    reader->declarations = true;
    advance(lexer);
    return true;
}

static void drop_repeated(hdrt__kernel_table *table)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < table->kernel_count; i++) {
        bool again = false;
        for (uint32_t k = 0; k < kept && !again; k++)
            again = strcmp(table->kernels[k].name, table->kernels[i].name) == 0;
        if (again) {
            free(table->kernels[i].name);
            free(table->kernels[i].parameters);
        } else {
            table->kernels[kept++] = table->kernels[i];
        }
    }
    table->kernel_count = kept;
}

/* The compilers' own string literals, which nothing writes: $str (NVRTC), _$_str (clang). */
static bool string_literal(const struct token *name)
{
    return begins(name, "$str") || begins(name, "_$_str");
}

/* ".global .align 4 .u32 a = 1, b[2] = {1, 2};", behind .global or .const. */
static bool read_variables(struct lexer *lexer, struct reader *reader, bool external)
{
    struct declaration declaration = {.vector = 1, .known = true};
    advance(lexer);
    do {
        declaration.name = (struct token){0};
        declaration.array = false;
        read_declarator_head(lexer, &declaration);
        read_extents(lexer, &declaration);
        if (declaration.name.text) {
            if (!string_literal(&declaration.name))
                reader->table->writable_variables = true;
            uint64_t bytes = external ? 0 : declared_bytes(&declaration);
            if (!hdrt__kernel_table_add_variable(reader->table, declaration.name.text, declaration.name.size, bytes)) {
                reader->out_of_memory = true;
                return false;
            }
        }
        while (lexer->now.kind != ',' && lexer->now.kind != ';') {
            if (lexer->now.kind == 0)
                return false;
            if (lexer->now.kind == '{' || lexer->now.kind == '(') {
                if (!skip_group(lexer))
                    return false;
            } else {
                advance(lexer);
            }
        }
        if (lexer->now.kind == ',')
            advance(lexer);
    } while (lexer->now.kind != ';');
    advance(lexer);
    return true;
}

hdrt_status hdrt__kernel_table_from_ptx(const char *ptx, size_t size, hdrt__kernel_table *table)
{
    struct lexer lexer = {.next = ptx, .end = ptx + size, .line = 1};
    struct reader reader = {.table = table};
    bool version = false, external = false, read = true;
    *table = (hdrt__kernel_table){0};
    if (size && ptx[size - 1] == '\0')
        lexer.end--;
    advance(&lexer);
    while (lexer.now.kind != 0 && read) {
        unsigned line = lexer.line;
        if (is(&lexer, ".version")) {
            version = true;
            advance(&lexer);
        } else if (is(&lexer, ".extern")) {
            external = true;
            advance(&lexer);
            continue;
        } else if (is(&lexer, ".entry")) {
            read = read_entry(&lexer, &reader);
        } else if (is(&lexer, ".global") || is(&lexer, ".const")) {
            read = read_variables(&lexer, &reader, external);
        } else if (lexer.now.kind == '{' || lexer.now.kind == '(' || lexer.now.kind == '[') {
            read = skip_group(&lexer);
        } else if (is(&lexer, ".visible") || is(&lexer, ".weak") || is(&lexer, ".common")) {
            advance(&lexer);
            continue;
        } else {
            advance(&lexer);
        }
        external = false;
        if (!read) {
            hdrt__kernel_table_free(table);
            if (reader.out_of_memory)
                return hdrt__fail_memory(size, "the kernel table");
            return hdrt__fail(HDRT_ERROR_INVALID_IMAGE,
                              "the PTX is incomplete: what begins at line %u is not closed before its end", line);
        }
    }
    if (reader.declarations)
        drop_repeated(table);
    if (version)
        return HDRT_OK;
    hdrt__kernel_table_free(table);
    return hdrt__fail(HDRT_ERROR_INVALID_IMAGE, "this is no PTX: there is no .version directive");
}

bool hdrt__is_ptx(const void *bytes, size_t size)
{
    const char *text = bytes;
    if (size && text[size - 1] == '\0')
        size--;
    struct lexer lexer = {.next = text, .end = text + size, .line = 1};
    if (size == 0 || memchr(text, 0, size))
        return false;
    advance(&lexer);
    return is(&lexer, ".version");
}
