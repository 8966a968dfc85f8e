/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "soft/ptx/parser.h"

#define DIMENSIONS 8
#define LARGEST_VARIABLE (UINT64_C(1) << 46)

bool hdsoft_parse_type(const char *text, size_t length, hdsoft_type *type)
{
    static const struct {
        char name[8];
        hdsoft_type type;
    } types[] = {
        {"u8", {'u', 8}},   {"u16", {'u', 16}}, {"u32", {'u', 32}}, {"u64", {'u', 64}}, {"s8", {'s', 8}},
        {"s16", {'s', 16}}, {"s32", {'s', 32}}, {"s64", {'s', 64}}, {"b8", {'b', 8}},   {"b16", {'b', 16}},
        {"b32", {'b', 32}}, {"b64", {'b', 64}}, {"b128", {'b', 128}}, {"f16", {'f', 16}}, {"f32", {'f', 32}},
        {"f64", {'f', 64}}, {"pred", {'p', 1}},   {"bf16", {'e', 16}}, {"f16x2", {'x', 32}}, {"bf16x2", {'y', 32}},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strlen(types[i].name) == length && memcmp(types[i].name, text, length) == 0) {
            *type = types[i].type;
            return true;
        }
    }
    return false;
}

/* --- constant expressions --- */

static int64_t parse_ternary(hdsoft_parser *parser, unsigned depth);

static int64_t parse_unary(hdsoft_parser *parser, unsigned depth)
{
    const hdsoft_token *token = &parser->lexer.token;
    if (depth > 100) {
        hdsoft_parser_fail(parser, 218, token->line, "an expression is nested too deeply");
        return 0;
    }
    if (token->kind == HDSOFT_TOKEN_INTEGER) {
        int64_t value = (int64_t)token->value;
        hdsoft_lexer_next(&parser->lexer);
        return value;
    }
    if (hdsoft_parser_accept_sign(parser, '-'))
        return (int64_t)(0 - (uint64_t)parse_unary(parser, depth + 1));
    if (hdsoft_parser_accept_sign(parser, '+'))
        return parse_unary(parser, depth + 1);
    if (hdsoft_parser_accept_sign(parser, '~'))
        return ~parse_unary(parser, depth + 1);
    if (hdsoft_parser_accept_sign(parser, '!'))
        return !parse_unary(parser, depth + 1);
    if (hdsoft_parser_accept_sign(parser, '(')) {
        if (hdsoft_parser_accept(parser, ".s64") || hdsoft_parser_accept(parser, ".u64")) {
            hdsoft_parser_expect_sign(parser, ')');
            return parse_unary(parser, depth + 1);
        }
        int64_t value = parse_ternary(parser, depth + 1);
        hdsoft_parser_expect_sign(parser, ')');
        return value;
    }
    hdsoft_parser_fail(parser, 218, token->line, "an integer is expected, not '%.*s'",
                       (int)(token->length < 40 ? token->length : 40), token->text);
    return 0;
}

/* The binary operator at the current token: its precedence, 0 if none; *second is the second sign of a pair, or 0. */
static int operator_at(const hdsoft_parser *parser, char *first, char *second)
{
    const hdsoft_token *token = &parser->lexer.token;
    if (token->kind != HDSOFT_TOKEN_SIGN)
        return 0;
    *first = token->sign;
    *second = parser->lexer.at < parser->lexer.end ? *parser->lexer.at : '\0';
    switch (*first) {
    case '*':
    case '/':
    case '%':
        *second = 0;
        return 10;
    case '+':
    case '-':
        *second = 0;
        return 9;
    case '<':
    case '>':
        if (*second == *first)
            return 8;
        *second = *second == '=' ? '=' : 0;
        return 7;
    case '=':
    case '!':
        return *second == '=' ? 6 : 0;
    case '&':
        *second = *second == '&' ? '&' : 0;
        return *second ? 2 : 5;
    case '^':
        *second = 0;
        return 4;
    case '|':
        *second = *second == '|' ? '|' : 0;
        return *second ? 1 : 3;
    default:
        return 0;
    }
}

static int64_t apply(hdsoft_parser *parser, char first, char second, int64_t a, int64_t b)
{
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    switch (first) {
    case '*':
        return (int64_t)(ua * ub);
    case '/':
    case '%':
        if (b == 0) {
            hdsoft_parser_fail(parser, 218, parser->lexer.token.line, "an expression divides by zero");
            return 0;
        }
        if (b == -1)
            return first == '/' ? (int64_t)(0 - ua) : 0;
        return first == '/' ? a / b : a % b;
    case '+':
        return (int64_t)(ua + ub);
    case '-':
        return (int64_t)(ua - ub);
    case '<':
        return second == '<' ? (ub < 64 ? (int64_t)(ua << ub) : 0) : second == '=' ? a <= b : a < b;
    case '>':
        return second == '>' ? a >> (ub < 63 ? ub : 63) : second == '=' ? a >= b : a > b;
    case '=':
        return a == b;
    case '!':
        return a != b;
    case '&':
        return second ? a && b : a & b;
    case '^':
        return a ^ b;
    default:
        return second ? a || b : a | b;
    }
}

static int64_t parse_binary(hdsoft_parser *parser, int lowest, unsigned depth)
{
    int64_t left = parse_unary(parser, depth + 1);
    for (;;) {
        char first, second;
        int precedence = operator_at(parser, &first, &second);
        if (precedence == 0 || precedence < lowest)
            return left;
        hdsoft_lexer_next(&parser->lexer);
        if (second)
            hdsoft_lexer_next(&parser->lexer);
        int64_t right = parse_binary(parser, precedence + 1, depth + 1);
        left = apply(parser, first, second, left, right);
    }
}

static int64_t parse_ternary(hdsoft_parser *parser, unsigned depth)
{
    int64_t value = parse_binary(parser, 1, depth);
    if (!hdsoft_parser_accept_sign(parser, '?'))
        return value;
    int64_t yes = parse_ternary(parser, depth + 1);
    hdsoft_parser_expect_sign(parser, ':');
    int64_t no = parse_ternary(parser, depth + 1);
    return value ? yes : no;
}

int64_t hdsoft_parse_expression(hdsoft_parser *parser)
{
    return parse_ternary(parser, 0);
}

/* --- variables --- */

typedef struct variable_declaration {
    hdsoft_declared declared;
    uint64_t dimension[DIMENSIONS]; /* 0: not given */
    unsigned dimensions;
    unsigned vector; /* elements of .v2, .v4; else 1 */
    unsigned element_bytes;
} variable_declaration;

static uint32_t parse_align(hdsoft_parser *parser)
{
    const hdsoft_token *token = &parser->lexer.token;
    uint64_t align = token->kind == HDSOFT_TOKEN_INTEGER ? token->value : 0;
    if (align == 0 || align > 4096 || (align & (align - 1))) {
        hdsoft_parser_fail(parser, 218, token->line, ".align must be a power of two up to 4096");
        return 1;
    }
    hdsoft_lexer_next(&parser->lexer);
    return (uint32_t)align;
}

static void skip_parentheses(hdsoft_parser *parser)
{
    hdsoft_parser_expect_sign(parser, '(');
    while (parser->lexer.token.kind != HDSOFT_TOKEN_END && !hdsoft_parser_accept_sign(parser, ')'))
        hdsoft_lexer_next(&parser->lexer);
}

/* Everything from .align to the name. */
static bool parse_qualifiers(hdsoft_parser *parser, variable_declaration *declaration)
{
    hdsoft_lexer *lexer = &parser->lexer;
    hdsoft_declared *declared = &declaration->declared;
    declaration->vector = 1;
    while (lexer->token.kind == HDSOFT_TOKEN_DIRECTIVE) {
        hdsoft_token word = lexer->token;
        hdsoft_lexer_next(lexer);
        if (hdsoft_token_is(&word, ".align"))
            declared->align = parse_align(parser);
        else if (hdsoft_token_is(&word, ".attribute"))
            skip_parentheses(parser);
        else if (hdsoft_token_is(&word, ".v2") || hdsoft_token_is(&word, ".v4") || hdsoft_token_is(&word, ".v8"))
            declaration->vector = (unsigned)(word.text[2] - '0');
        else if (hdsoft_token_is(&word, ".texref") || hdsoft_token_is(&word, ".samplerref") ||
                 hdsoft_token_is(&word, ".surfref"))
            declared->type = (hdsoft_type){'b', 64};
        else if (hdsoft_parse_type(word.text + 1, word.length - 1, &declared->type))
            continue;
        else if (hdsoft_token_is(&word, ".reg"))
            declared->is_register = true;
        else if (!hdsoft_token_is(&word, ".ptr") && !hdsoft_token_is(&word, ".global") &&
                 !hdsoft_token_is(&word, ".const") && !hdsoft_token_is(&word, ".shared") &&
                 !hdsoft_token_is(&word, ".local") && !hdsoft_token_is(&word, ".param")) {
            hdsoft_parser_fail(parser, 218, word.line, "'%.*s' is not known in a declaration",
                               (int)(word.length < 60 ? word.length : 60), word.text);
            return false;
        }
    }
    if (declared->type.kind == 0) {
        hdsoft_parser_fail(parser, 218, lexer->token.line, "a declaration has no type");
        return false;
    }
    declaration->element_bytes = declared->type.bits < 8 ? 1 : declared->type.bits / 8;
    if (declared->align < declaration->element_bytes * declaration->vector && declared->align == 0)
        declared->align = declaration->element_bytes * declaration->vector;
    return true;
}

static bool parse_name(hdsoft_parser *parser, variable_declaration *declaration)
{
    hdsoft_lexer *lexer = &parser->lexer;
    if (lexer->token.kind != HDSOFT_TOKEN_WORD) {
        hdsoft_parser_fail(parser, 218, lexer->token.line, "a declaration has no name");
        return false;
    }
    declaration->declared.name = lexer->token.text;
    declaration->declared.length = lexer->token.length;
    hdsoft_lexer_next(lexer);
    declaration->dimensions = 0;
    uint64_t size = (uint64_t)declaration->element_bytes * declaration->vector;
    while (hdsoft_parser_accept_sign(parser, '[')) {
        uint64_t count = 0;
        if (!hdsoft_parser_accept_sign(parser, ']')) {
            count = (uint64_t)hdsoft_parse_expression(parser);
            hdsoft_parser_expect_sign(parser, ']');
        } else if (declaration->dimensions > 0) {
            hdsoft_parser_fail(parser, 218, lexer->token.line, "only the first dimension may be left out");
            return false;
        }
        if (declaration->dimensions == DIMENSIONS) {
            hdsoft_parser_fail(parser, 218, lexer->token.line, "an array has more than %d dimensions", DIMENSIONS);
            return false;
        }
        if (count > LARGEST_VARIABLE / (size ? size : 1)) {
            hdsoft_parser_fail(parser, 218, lexer->token.line, "'%.*s' is too large",
                               (int)declaration->declared.length, declaration->declared.name);
            return false;
        }
        declaration->dimension[declaration->dimensions++] = count;
        size *= count;
    }
    declaration->declared.size = size;
    return parser->code == 0;
}

/* --- initialisers --- */

static void write_bytes(hdsoft_parser *parser, hdsoft_global *global, uint64_t offset, uint64_t value, unsigned width)
{
    uint64_t end = offset + width;
    uint64_t text = (uint64_t)(parser->lexer.end - parser->lexer.at) + 4096;
    if (end > global->filled) {
        /* A sparse initialiser must not make a small text take much memory. */
        uint64_t room = 64;
        while (room < end)
            room *= 2;
        uint64_t had = 64;
        while (had < global->filled)
            had *= 2;
        if (room > had || !global->bytes) {
            unsigned char *grown =
                end > 64 * text + (1u << 20) + 2 * global->filled ? NULL : realloc(global->bytes, room);
            if (!grown) {
                hdsoft_parser_fail(parser, 2, parser->lexer.token.line, "no memory for an initialiser of %llu bytes",
                                   (unsigned long long)end);
                return;
            }
            global->bytes = grown;
        }
        memset(global->bytes + global->filled, 0, end - global->filled);
        global->filled = end;
    }
    for (unsigned i = 0; i < width; i++) /* PTX is little-endian */
        global->bytes[offset + i] = (unsigned char)(value >> 8 * i);
}

/* symbol, symbol+4, generic(symbol)+4: adds a relocation of global `index`. */
static void parse_symbol_element(hdsoft_parser *parser, uint32_t index, uint64_t offset, unsigned width, unsigned shift)
{
    hdsoft_lexer *lexer = &parser->lexer;
    bool generic = hdsoft_parser_accept(parser, "generic");
    if (generic)
        hdsoft_parser_expect_sign(parser, '(');
    hdsoft_token word = lexer->token;
    uint32_t found = word.kind == HDSOFT_TOKEN_WORD ? hdsoft_symbol_find(parser, word.text, word.length) : HDSOFT_NONE;
    const hdsoft_symbol *symbol = found == HDSOFT_NONE ? NULL : &parser->symbols[found];
    if (!symbol || (symbol->binding != HDSOFT_BIND_GLOBAL && symbol->binding != HDSOFT_BIND_FUNCTION)) {
        hdsoft_parser_fail(parser, 218, word.line, "'%.*s' cannot be in an initialiser",
                           (int)(word.length < 100 ? word.length : 100), word.text);
        return;
    }
    hdsoft_relocation relocation = {
        .kind = symbol->binding == HDSOFT_BIND_GLOBAL ? HDSOFT_SYMBOL_GLOBAL : HDSOFT_SYMBOL_FUNCTION,
        .symbol = symbol->index, .width = (uint8_t)width, .shift = (uint8_t)shift, .global = index, .offset = offset};
    if (symbol->binding == HDSOFT_BIND_FUNCTION)
        hdsoft_address_taken(parser, symbol->index);
    hdsoft_lexer_next(lexer);
    if (generic)
        hdsoft_parser_expect_sign(parser, ')');
    const hdsoft_token *token = &lexer->token;
    bool minus = token->kind == HDSOFT_TOKEN_SIGN && token->sign == '-';
    if (hdsoft_parser_accept_sign(parser, '+') || minus)
        relocation.addend = hdsoft_parse_expression(parser);
    if (hdsoft_parser_room(parser, &parser->program->relocations, &parser->room.relocations,
                           parser->program->relocation_count, sizeof relocation))
        parser->program->relocations[parser->program->relocation_count++] = relocation;
    write_bytes(parser, &parser->program->globals[index], offset, 0, width);
}

static void parse_element(hdsoft_parser *parser, uint32_t index, const variable_declaration *declaration,
                          uint64_t offset)
{
    hdsoft_lexer *lexer = &parser->lexer;
    hdsoft_global *global = &parser->program->globals[index];
    unsigned width = declaration->element_bytes;
    if (lexer->token.kind == HDSOFT_TOKEN_WORD) {
        parse_symbol_element(parser, index, offset, width, 0);
        return;
    }
    hdsoft_lexer ahead = *lexer;
    bool integer = ahead.token.kind == HDSOFT_TOKEN_INTEGER;
    uint64_t mask = ahead.token.value;
    hdsoft_lexer_next(&ahead);
    if (integer && mask && ahead.token.kind == HDSOFT_TOKEN_SIGN && ahead.token.sign == '(') { /* 0xFF00(symbol) */
        *lexer = ahead;
        hdsoft_lexer_next(lexer);
        parse_symbol_element(parser, index, offset, width, (unsigned)__builtin_ctzll(mask));
        hdsoft_parser_expect_sign(parser, ')');
        return;
    }
    hdsoft_value value;
    if (!hdsoft_parse_value(parser, &value))
        return;
    uint64_t bits = value.integer;
    if (value.kind == HDSOFT_VALUE_FLOAT || declaration->declared.type.kind == 'f') {
        bool wide = width == 8;
        double as_double;
        float as_float;
        uint32_t low = (uint32_t)bits;
        if (value.kind == HDSOFT_VALUE_INTEGER)
            as_double = (double)(int64_t)bits;
        else if (value.single)
            memcpy(&as_float, &low, sizeof low), as_double = as_float;
        else
            memcpy(&as_double, &bits, sizeof bits);
        as_float = (float)as_double;
        if (wide) {
            memcpy(&bits, &as_double, sizeof bits);
        } else if (!value.single) {
            memcpy(&low, &as_float, sizeof low);
            bits = low;
        }
    }
    write_bytes(parser, global, offset, bits, width > 8 ? 8 : width);
}

/* The elements of dimension `level`, whose sub-arrays are `stride` bytes apart; answers how many there were. */
static uint64_t parse_initialiser(hdsoft_parser *parser, uint32_t index, const variable_declaration *declaration,
                                  unsigned level, uint64_t base)
{
    uint64_t stride = declaration->element_bytes;
    unsigned levels = declaration->dimensions + (declaration->vector > 1);
    for (unsigned i = level + 1; i < levels; i++)
        stride *= i < declaration->dimensions ? declaration->dimension[i] : declaration->vector;
    if (level >= levels || !hdsoft_parser_accept_sign(parser, '{')) {
        parse_element(parser, index, declaration, base);
        return 1;
    }
    uint64_t limit = level < declaration->dimensions ? declaration->dimension[level] : declaration->vector;
    uint64_t count = 0, flat = 0;
    if (hdsoft_parser_accept_sign(parser, '}'))
        return 0;
    do {
        bool nested = parser->lexer.token.kind == HDSOFT_TOKEN_SIGN && parser->lexer.token.sign == '{';
        uint64_t offset = nested ? count * stride : flat;
        if (limit && offset >= limit * stride) {
            hdsoft_parser_fail(parser, 218, parser->lexer.token.line, "an initialiser has too many elements");
            return 0;
        }
        if (nested) {
            parse_initialiser(parser, index, declaration, level + 1, base + offset);
            flat = (count + 1) * stride;
        } else {
            parse_element(parser, index, declaration, base + offset);
            flat += declaration->element_bytes;
        }
        count = (flat + (stride ? stride : 1) - 1) / (stride ? stride : 1);
    } while (parser->code == 0 && hdsoft_parser_accept_sign(parser, ','));
    hdsoft_parser_expect_sign(parser, '}');
    return count;
}

/* --- placing a variable --- */

static uint32_t global_new(hdsoft_parser *parser, const hdsoft_declared *declared, bool constant)
{
    hdsoft_program *program = parser->program;
    if (!hdsoft_parser_room(parser, &program->globals, &parser->room.globals, program->global_count,
                            sizeof *program->globals))
        return HDSOFT_NONE;
    char *name = hdsoft_parser_copy(parser, declared->name, declared->length);
    if (!name)
        return HDSOFT_NONE;
    program->globals[program->global_count] = (hdsoft_global){
        .variable = {.name = name, .size = declared->size, .align = declared->align ? declared->align : 1,
                     .constant = constant},
        .line = parser->lexer.token.line};
    return program->global_count++;
}

static void place_global(hdsoft_parser *parser, const variable_declaration *declaration, bool constant, bool external,
                         bool weak)
{
    const hdsoft_declared *declared = &declaration->declared;
    hdsoft_program *program = parser->program;
    uint32_t found = hdsoft_symbol_find(parser, declared->name, declared->length);
    uint32_t index;
    if (found != HDSOFT_NONE && parser->symbols[found].depth == parser->depth) {
        index = parser->symbols[found].index;
        bool global = parser->symbols[found].binding == HDSOFT_BIND_GLOBAL;
        if (!global || (program->globals[index].defined && !external && !(weak && program->globals[index].weak))) {
            hdsoft_parser_fail(parser, 218, parser->lexer.token.line, "'%.*s' is declared twice",
                               (int)declared->length, declared->name);
            return;
        }
        if (!external)
            program->globals[index].variable.size = declared->size;
    } else {
        index = global_new(parser, declared, constant);
        if (index == HDSOFT_NONE)
            return;
        hdsoft_symbol_bind(parser, hdsoft_name_intern(parser, declared->name, declared->length), HDSOFT_BIND_GLOBAL,
                           index);
    }
    program->globals[index].defined |= !external;
    program->globals[index].weak = weak;
    if (hdsoft_parser_accept_sign(parser, '=')) {
        program->globals[index].filled = 0;
        uint64_t count = parse_initialiser(parser, index, declaration, 0, 0);
        if (declaration->dimensions && declaration->dimension[0] == 0) {
            uint64_t stride = (uint64_t)declaration->element_bytes * declaration->vector;
            for (unsigned i = 1; i < declaration->dimensions; i++)
                stride *= declaration->dimension[i];
            program->globals[index].variable.size = count * stride;
        }
        if (program->globals[index].filled > program->globals[index].variable.size)
            program->globals[index].filled = program->globals[index].variable.size;
    }
}

static void place_shared(hdsoft_parser *parser, const variable_declaration *declaration, bool external)
{
    const hdsoft_declared *declared = &declaration->declared;
    hdsoft_program *program = parser->program;
    if (!hdsoft_parser_room(parser, &program->shared, &parser->room.shared, program->shared_count,
                            sizeof *program->shared))
        return;
    bool dynamic = external || declared->size == 0;
    if (declared->size > (1u << 28)) {
        hdsoft_parser_fail(parser, 218, parser->lexer.token.line, "shared variable '%.*s' of %llu bytes is too large",
                           (int)declared->length, declared->name, (unsigned long long)declared->size);
        return;
    }
    uint32_t found = hdsoft_symbol_find(parser, declared->name, declared->length);
    if (found != HDSOFT_NONE && parser->symbols[found].depth == parser->depth &&
        parser->symbols[found].binding == HDSOFT_BIND_SHARED)
        return; /* a weak or extern one once more */
    program->shared[program->shared_count] = (hdsoft_shared){
        .size = declared->size, .align = declared->align ? declared->align : 1, .dynamic = dynamic};
    hdsoft_symbol_bind(parser, hdsoft_name_intern(parser, declared->name, declared->length), HDSOFT_BIND_SHARED,
                       program->shared_count++);
}

static void place_local(hdsoft_parser *parser, const hdsoft_declared *declared)
{
    if (parser->function == HDSOFT_NONE) {
        hdsoft_parser_fail(parser, 218, parser->lexer.token.line, "'%.*s': .local outside of a function",
                           (int)declared->length, declared->name);
        return;
    }
    hdsoft_function *function = &parser->program->functions[parser->function];
    uint64_t align = declared->align ? declared->align : 1;
    uint64_t offset = (function->local_bytes + align - 1) / align * align;
    if (offset + declared->size > (1u << 24)) {
        hdsoft_parser_fail(parser, 218, parser->lexer.token.line, "local variable '%.*s' is too large",
                           (int)declared->length, declared->name);
        return;
    }
    hdsoft_symbol_bind(parser, hdsoft_name_intern(parser, declared->name, declared->length), HDSOFT_BIND_LOCAL,
                       (uint32_t)offset);
    function->local_bytes = (uint32_t)(offset + declared->size);
}

uint32_t hdsoft_cells_new(hdsoft_parser *parser, uint64_t size)
{
    uint32_t offset = parser->cell_bytes;
    if (size > (1u << 16) || offset > (1u << 20)) {
        hdsoft_parser_fail(parser, 218, parser->lexer.token.line, "a parameter of %llu bytes is too large",
                           (unsigned long long)size);
        return 0;
    }
    parser->cell_bytes = offset + (uint32_t)((size + 7) / 8 * 8);
    return offset;
}

static void place_cell(hdsoft_parser *parser, const hdsoft_declared *declared)
{
    if (parser->function == HDSOFT_NONE) {
        hdsoft_parser_fail(parser, 218, parser->lexer.token.line, ".param outside of a function");
        return;
    }
    uint32_t offset = hdsoft_cells_new(parser, declared->size);
    uint32_t symbol = hdsoft_symbol_bind(parser, hdsoft_name_intern(parser, declared->name, declared->length),
                                         HDSOFT_BIND_CELL, offset);
    if (symbol != HDSOFT_NONE)
        parser->symbols[symbol].size = declared->size;
}

void hdsoft_parse_variable(hdsoft_parser *parser, hdsoft_space space, bool external, bool weak)
{
    variable_declaration declaration;
    memset(&declaration, 0, sizeof declaration);
    if (!parse_qualifiers(parser, &declaration))
        return;
    do {
        if (!parse_name(parser, &declaration))
            return;
        switch (space) {
        case HDSOFT_SPACE_SHARED:
            place_shared(parser, &declaration, external);
            break;
        case HDSOFT_SPACE_LOCAL:
            place_local(parser, &declaration.declared);
            break;
        case HDSOFT_SPACE_PARAMETER:
            place_cell(parser, &declaration.declared);
            break;
        default:
            place_global(parser, &declaration, space == HDSOFT_SPACE_CONSTANT, external, weak);
        }
    } while (parser->code == 0 && hdsoft_parser_accept_sign(parser, ','));
    hdsoft_parser_expect_sign(parser, ';');
}

/* .reg .b32 %r<5>, %x; with ".reg" already read. */
void hdsoft_parse_registers(hdsoft_parser *parser)
{
    hdsoft_lexer *lexer = &parser->lexer;
    hdsoft_type type = {0, 0};
    while (lexer->token.kind == HDSOFT_TOKEN_DIRECTIVE) {
        hdsoft_parse_type(lexer->token.text + 1, lexer->token.length - 1, &type);
        hdsoft_lexer_next(lexer);
    }
    if (type.kind == 0) {
        hdsoft_parser_fail(parser, 218, lexer->token.line, ".reg has no type that is known");
        return;
    }
    do {
        if (lexer->token.kind != HDSOFT_TOKEN_WORD) {
            hdsoft_parser_fail(parser, 218, lexer->token.line, ".reg has no name");
            return;
        }
        uint32_t name = hdsoft_name_intern(parser, lexer->token.text, lexer->token.length);
        hdsoft_lexer_next(lexer);
        uint32_t symbol;
        if (hdsoft_parser_accept_sign(parser, '<')) {
            uint64_t count = (lexer->token.kind == HDSOFT_TOKEN_INTEGER) ? lexer->token.value : 0;
            hdsoft_lexer_next(lexer);
            hdsoft_parser_expect_sign(parser, '>');
            symbol = hdsoft_symbol_bind(parser, name, HDSOFT_BIND_RANGE, parser->range_serial++);
            if (symbol != HDSOFT_NONE)
                parser->symbols[symbol].count = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
        } else {
            symbol = hdsoft_symbol_bind(parser, name, HDSOFT_BIND_REGISTER,
                                        (uint32_t)hdsoft_register_new(parser, type.bits));
        }
        if (symbol != HDSOFT_NONE)
            parser->symbols[symbol].bits = type.bits;
    } while (parser->code == 0 && hdsoft_parser_accept_sign(parser, ','));
    hdsoft_parser_expect_sign(parser, ';');
}

bool hdsoft_parse_parameter(hdsoft_parser *parser, hdsoft_declared *out)
{
    variable_declaration declaration;
    memset(&declaration, 0, sizeof declaration);
    if (!parse_qualifiers(parser, &declaration))
        return false;
    const hdsoft_token *token = &parser->lexer.token;
    if (token->kind != HDSOFT_TOKEN_WORD) { /* a prototype's parameter may go without a name */
        declaration.declared.size = (uint64_t)declaration.element_bytes * declaration.vector;
        declaration.declared.name = token->text;
    } else if (!parse_name(parser, &declaration)) {
        return false;
    }
    *out = declaration.declared;
    return true;
}
