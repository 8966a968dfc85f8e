/* SPDX-License-Identifier: MIT */
#include "soft/ptx/parser.h"

#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#include "soft/ptx/text.h"

#define NEWEST_VERSION 90 /* .version 9.0 */

void hdsoft_parser_fail(hdsoft_parser *parser, int code, uint32_t line, const char *format, ...)
{
    if (parser->code)
        return;
    parser->code = code;
    va_list arguments;
    va_start(arguments, format);
    if (parser->lexer.problem) { /* what the parser misses then is only a consequence */
        hdsoft_text_append(parser->log, "line %u: %s", parser->lexer.line, parser->lexer.problem);
    } else {
        if (line)
            hdsoft_text_append(parser->log, "line %u: ", line);
        hdsoft_text_append_list(parser->log, format, arguments);
    }
    va_end(arguments);
    hdsoft_lexer_stop(&parser->lexer);
}

bool hdsoft_parser_room(hdsoft_parser *parser, void *array_address, uint32_t *room, uint32_t count, size_t element)
{
    if (count < *room)
        return true;
    uint32_t wanted = *room ? *room * 2 : 16;
    void *array, *grown = NULL;
    memcpy(&array, array_address, sizeof array);
    if (wanted > *room && wanted <= (1u << 30) && (size_t)wanted <= SIZE_MAX / element)
        grown = realloc(array, wanted * element);
    if (!grown) {
        hdsoft_parser_fail(parser, 2, parser->lexer.token.line, "out of memory");
        return false;
    }
    memcpy(array_address, &grown, sizeof grown);
    *room = wanted;
    return true;
}

char *hdsoft_parser_copy(hdsoft_parser *parser, const char *text, size_t length)
{
    char *copy = malloc(length + 1);
    if (!copy) {
        hdsoft_parser_fail(parser, 2, parser->lexer.token.line, "out of memory");
        return NULL;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

bool hdsoft_parser_accept(hdsoft_parser *parser, const char *word)
{
    if (parser->lexer.token.kind == HDSOFT_TOKEN_END || !hdsoft_token_is(&parser->lexer.token, word))
        return false;
    hdsoft_lexer_next(&parser->lexer);
    return true;
}

bool hdsoft_parser_accept_sign(hdsoft_parser *parser, char sign)
{
    if (parser->lexer.token.kind != HDSOFT_TOKEN_SIGN || parser->lexer.token.sign != sign)
        return false;
    hdsoft_lexer_next(&parser->lexer);
    return true;
}

void hdsoft_parser_expect_sign(hdsoft_parser *parser, char sign)
{
    if (hdsoft_parser_accept_sign(parser, sign))
        return;
    const hdsoft_token *token = &parser->lexer.token;
    if (token->kind != HDSOFT_TOKEN_END)
        hdsoft_parser_fail(parser, 218, token->line, "'%c' is expected, not '%.*s'", sign,
                           (int)(token->length < 40 ? token->length : 40), token->text);
    else
        hdsoft_parser_fail(parser, 218, token->line, "'%c' is expected before the end of the text", sign);
}

/* Past the next ";" outside of braces; it must come before a closing brace that was not opened here. */
void hdsoft_parser_skip_statement(hdsoft_parser *parser)
{
    unsigned open = 0;
    while (parser->lexer.token.kind != HDSOFT_TOKEN_END) {
        const hdsoft_token *token = &parser->lexer.token;
        char sign = token->kind == HDSOFT_TOKEN_SIGN ? token->sign : '\0';
        if (sign == '}' && open == 0)
            break;
        open += sign == '{';
        open -= sign == '}';
        hdsoft_lexer_next(&parser->lexer);
        if (sign == ';' && open == 0)
            return;
    }
    hdsoft_parser_expect_sign(parser, ';');
}

static void skip_braces(hdsoft_parser *parser)
{
    unsigned open = 0;
    do {
        const hdsoft_token *token = &parser->lexer.token;
        if (token->kind == HDSOFT_TOKEN_SIGN)
            open += (token->sign == '{') - (unsigned)(token->sign == '}');
        hdsoft_lexer_next(&parser->lexer);
    } while (open && parser->lexer.token.kind != HDSOFT_TOKEN_END);
}

/* --- directives --- */

static void parse_version(hdsoft_parser *parser)
{
    const hdsoft_token *token = &parser->lexer.token;
    double version = 0;
    if (token->kind == HDSOFT_TOKEN_FLOAT && !token->single)
        memcpy(&version, &token->value, sizeof version);
    if (version < 1.0 || version > 99.0) {
        hdsoft_parser_fail(parser, 218, token->line, ".version needs a number such as 7.8");
        return;
    }
    parser->program->version = (unsigned)(version * 10 + 0.5);
    if (parser->program->version > NEWEST_VERSION)
        hdsoft_parser_fail(parser, 222, token->line, "PTX version %u.%u is newer than %u.%u",
                           parser->program->version / 10, parser->program->version % 10, NEWEST_VERSION / 10,
                           NEWEST_VERSION % 10);
    hdsoft_lexer_next(&parser->lexer);
}

/* The first version of PTX, times ten, that has a target; an H200's assembler holds the two against each other. */
static unsigned first_version(unsigned target, bool exact)
{
    static const struct {
        unsigned target, version;
    } first[] = {{60, 50}, {61, 50}, {62, 50}, {70, 60}, {72, 61}, {75, 63}, {80, 70}, {86, 71}, {87, 74}, {89, 78},
                 {90, 78}};
    if (exact)
        return 80;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (first[i].target == target)
            return first[i].version;
    return 0;
}

static void parse_target(hdsoft_parser *parser)
{
    do {
        hdsoft_token word = parser->lexer.token;
        hdsoft_lexer_next(&parser->lexer);
        if (word.kind != HDSOFT_TOKEN_WORD) {
            hdsoft_parser_fail(parser, 218, word.line, ".target needs a name such as sm_80");
            return;
        }
        if (word.length < 4 || memcmp(word.text, "sm_", 3) != 0)
            continue;
        unsigned target = 0;
        size_t at = 3;
        while (at < word.length && at < 7 && word.text[at] >= '0' && word.text[at] <= '9')
            target = target * 10 + (unsigned)(word.text[at++] - '0');
        bool exact = at < word.length; /* sm_90a runs on 9.0 only */
        parser->program->target = target;
        if (target > parser->compute_capability || (exact && target != parser->compute_capability))
            hdsoft_parser_fail(parser, 209, word.line, "the code is for %.*s, the device has compute capability %u.%u",
                               (int)(word.length < 20 ? word.length : 20), word.text, parser->compute_capability / 10,
                               parser->compute_capability % 10);
        unsigned first = first_version(target, exact);
        if (parser->program->version < first)
            hdsoft_parser_fail(parser, 218, word.line, "%.*s needs PTX version %u.%u, the code is of %u.%u",
                               (int)(word.length < 20 ? word.length : 20), word.text, first / 10, first % 10,
                               parser->program->version / 10, parser->program->version % 10);
    } while (hdsoft_parser_accept_sign(parser, ','));
}

/* .file 1 "name", with ", time, size" behind it in older dialects */
static void parse_file(hdsoft_parser *parser)
{
    hdsoft_program *program = parser->program;
    uint64_t number = parser->lexer.token.value;
    hdsoft_lexer_next(&parser->lexer);
    hdsoft_token name = parser->lexer.token;
    if (name.kind != HDSOFT_TOKEN_STRING) {
        hdsoft_parser_fail(parser, 218, name.line, ".file needs a number and a name");
        return;
    }
    hdsoft_lexer_next(&parser->lexer);
    while (hdsoft_parser_accept_sign(parser, ','))
        hdsoft_lexer_next(&parser->lexer);
    if (!hdsoft_parser_room(parser, &program->files, &parser->room.files, program->file_count, sizeof *program->files))
        return;
    char *copy = hdsoft_parser_copy(parser, name.text, name.length);
    if (copy)
        program->files[program->file_count++] = (hdsoft_file){(uint32_t)number, copy};
}

static uint64_t next_integer(hdsoft_parser *parser)
{
    uint64_t value = parser->lexer.token.kind == HDSOFT_TOKEN_INTEGER ? parser->lexer.token.value : 0;
    if (parser->lexer.token.kind != HDSOFT_TOKEN_INTEGER)
        hdsoft_parser_fail(parser, 218, parser->lexer.token.line, "a number is expected");
    hdsoft_lexer_next(&parser->lexer);
    return value;
}

/* .loc file line column [, function_name label, inlined_at file line column] */
static void parse_location(hdsoft_parser *parser)
{
    hdsoft_program *program = parser->program;
    hdsoft_location location = {(uint32_t)next_integer(parser), 0};
    location.line = (uint32_t)next_integer(parser);
    next_integer(parser);
    while (hdsoft_parser_accept_sign(parser, ',')) {
        bool inlined = hdsoft_token_is(&parser->lexer.token, "inlined_at");
        hdsoft_lexer_next(&parser->lexer);
        if (inlined) {
            next_integer(parser);
            next_integer(parser);
            next_integer(parser);
        } else {
            hdsoft_lexer_next(&parser->lexer);
            if (hdsoft_parser_accept_sign(parser, '+'))
                next_integer(parser);
        }
    }
    if (parser->code == 0 && hdsoft_parser_room(parser, &program->locations, &parser->room.locations,
                                                program->location_count, sizeof *program->locations)) {
        program->locations[program->location_count++] = location;
        parser->location = program->location_count;
    }
}

static bool space_directive(const hdsoft_token *token, hdsoft_space *space)
{
    static const struct {
        const char *name;
        hdsoft_space space;
    } spaces[] = {{".global", HDSOFT_SPACE_GLOBAL}, {".const", HDSOFT_SPACE_CONSTANT}, {".shared", HDSOFT_SPACE_SHARED},
                  {".local", HDSOFT_SPACE_LOCAL},   {".param", HDSOFT_SPACE_PARAMETER}, {".tex", HDSOFT_SPACE_GLOBAL}};
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
        if (hdsoft_token_is(token, spaces[i].name)) {
            *space = spaces[i].space;
            return true;
        }
    }
    return false;
}

/* --- function bodies --- */

static void parse_label(hdsoft_parser *parser, const hdsoft_token *label)
{
    if (hdsoft_parser_accept(parser, ".branchtargets")) {
        hdsoft_parse_branch_targets(parser, label);
        return;
    }
    if (hdsoft_token_is(&parser->lexer.token, ".callprototype") ||
        hdsoft_token_is(&parser->lexer.token, ".calltargets")) {
        hdsoft_parse_prototype(parser, label);
        return;
    }
    uint32_t found = hdsoft_symbol_find(parser, label->text, label->length);
    if (found != HDSOFT_NONE && parser->symbols[found].depth == parser->depth) {
        hdsoft_parser_fail(parser, 218, label->line, "label '%.*s' is defined twice", (int)label->length, label->text);
        return;
    }
    hdsoft_symbol_bind(parser, hdsoft_name_intern(parser, label->text, label->length), HDSOFT_BIND_LABEL,
                       parser->program->code_count);
}

static void parse_body_directive(hdsoft_parser *parser)
{
    hdsoft_token word = parser->lexer.token;
    hdsoft_space space;
    hdsoft_lexer_next(&parser->lexer);
    if (hdsoft_token_is(&word, ".reg"))
        hdsoft_parse_registers(parser);
    else if (space_directive(&word, &space))
        hdsoft_parse_variable(parser, space, false, false);
    else if (hdsoft_token_is(&word, ".extern") && hdsoft_parser_accept(parser, ".shared"))
        hdsoft_parse_variable(parser, HDSOFT_SPACE_SHARED, true, false);
    else if (hdsoft_token_is(&word, ".loc"))
        parse_location(parser);
    else if (hdsoft_token_is(&word, ".pragma"))
        hdsoft_parser_skip_statement(parser);
    else if (hdsoft_token_is(&word, ".file"))
        parse_file(parser);
    else
        hdsoft_parser_fail(parser, 218, word.line, "directive '%.*s' is not known in a function",
                           (int)(word.length < 60 ? word.length : 60), word.text);
}

/* From "{" to its "}". */
static void parse_body(hdsoft_parser *parser)
{
    hdsoft_lexer *lexer = &parser->lexer;
    uint32_t outer = parser->depth;
    hdsoft_lexer_next(lexer);
    hdsoft_scope_open(parser);
    while (lexer->token.kind != HDSOFT_TOKEN_END && parser->depth > outer) {
        if (hdsoft_parser_accept_sign(parser, '{')) {
            hdsoft_scope_open(parser);
        } else if (lexer->token.kind == HDSOFT_TOKEN_SIGN && lexer->token.sign == '}') {
            hdsoft_scope_close(parser);
            hdsoft_lexer_next(lexer);
        } else if (hdsoft_parser_accept_sign(parser, ';')) {
            continue;
        } else if (lexer->token.kind == HDSOFT_TOKEN_DIRECTIVE) {
            parse_body_directive(parser);
        } else {
            hdsoft_token word = lexer->token;
            hdsoft_lexer ahead = *lexer;
            hdsoft_lexer_next(&ahead);
            if (word.kind == HDSOFT_TOKEN_WORD && ahead.token.kind == HDSOFT_TOKEN_SIGN && ahead.token.sign == ':') {
                *lexer = ahead;
                hdsoft_lexer_next(lexer);
                parse_label(parser, &word);
            } else {
                hdsoft_decode(parser);
            }
        }
    }
    if (parser->depth > outer)
        hdsoft_parser_fail(parser, 218, lexer->token.line, "a function is not closed");
}

/* --- functions --- */

static uint32_t function_declare(hdsoft_parser *parser, const hdsoft_token *name, bool entry, bool weak)
{
    hdsoft_program *program = parser->program;
    uint32_t found = hdsoft_symbol_find(parser, name->text, name->length);
    if (found != HDSOFT_NONE) {
        if (parser->symbols[found].binding != HDSOFT_BIND_FUNCTION ||
            program->functions[parser->symbols[found].index].entry != entry) {
            hdsoft_parser_fail(parser, 218, name->line, "'%.*s' is declared twice", (int)name->length, name->text);
            return HDSOFT_NONE;
        }
        return parser->symbols[found].index;
    }
    if (!hdsoft_parser_room(parser, &program->functions, &parser->room.functions, program->function_count,
                            sizeof *program->functions))
        return HDSOFT_NONE;
    char *copy = hdsoft_parser_copy(parser, name->text, name->length);
    if (!copy)
        return HDSOFT_NONE;
    program->functions[program->function_count] =
        (hdsoft_function){.name = copy, .entry = entry, .weak = weak, .line = name->line};
    hdsoft_symbol_bind(parser, hdsoft_name_intern(parser, name->text, name->length), HDSOFT_BIND_FUNCTION,
                       program->function_count);
    return program->function_count++;
}

static void function_begin(hdsoft_parser *parser)
{
    parser->register_count = 0;
    parser->range_serial = 0;
    parser->cell_bytes = 0;
    parser->location = 0;
    parser->register_formal_count = 0;
    parser->guard = HDSOFT_ABSENT;
    hdsoft_map_clear(&parser->numbered);
    hdsoft_scope_open(parser);
}

/* ( .param ... , .reg ... ) of a .func into formals; the "(" has been read. Answers how many. */
static uint32_t parse_formals(hdsoft_parser *parser, hdsoft_formal **formals, uint32_t *count)
{
    uint32_t before = *count;
    if (hdsoft_parser_accept_sign(parser, ')'))
        return 0;
    do {
        hdsoft_declared declared;
        hdsoft_formal formal, reg = {0, 0};
        if (!hdsoft_parse_parameter(parser, &declared))
            return 0;
        if (!hdsoft_parser_room(parser, formals, &parser->room.formals, *count, sizeof **formals))
            return 0;
        uint32_t had = parser->room.formals;
        formal = (hdsoft_formal){hdsoft_cells_new(parser, declared.size), (uint32_t)declared.size};
        uint32_t name = declared.length ? hdsoft_name_intern(parser, declared.name, declared.length) : HDSOFT_NONE;
        if (declared.is_register) {
            reg = (hdsoft_formal){(uint32_t)hdsoft_register_new(parser, declared.type.bits), declared.type.bits};
            uint32_t symbol = hdsoft_symbol_bind(parser, name, HDSOFT_BIND_REGISTER, reg.offset);
            if (symbol != HDSOFT_NONE)
                parser->symbols[symbol].bits = declared.type.bits;
        } else {
            uint32_t symbol = hdsoft_symbol_bind(parser, name, HDSOFT_BIND_CELL, formal.offset);
            if (symbol != HDSOFT_NONE)
                parser->symbols[symbol].size = declared.size;
        }
        hdsoft_formal *registers = realloc(parser->register_formals, had * sizeof *registers);
        if (!registers) {
            hdsoft_parser_fail(parser, 2, declared.align, "out of memory");
            return 0;
        }
        parser->register_formals = registers;
        registers[*count] = reg;
        (*formals)[(*count)++] = formal;
        parser->register_formal_count = *count;
    } while (parser->code == 0 && hdsoft_parser_accept_sign(parser, ','));
    hdsoft_parser_expect_sign(parser, ')');
    return *count - before;
}

/* Formal parameters that are registers are loaded from their cells first. */
static void load_register_formals(hdsoft_parser *parser, const hdsoft_function *function)
{
    parser->statement.line = function->line;
    for (uint32_t i = function->return_count; i < function->formal_count; i++) {
        hdsoft_formal reg = parser->register_formals[i];
        if (reg.size == 0)
            continue;
        const int32_t operands[HDSOFT_OPERANDS] = {HDSOFT_ABSENT, (int32_t)reg.offset, HDSOFT_ABSENT,
                                                   HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT};
        hdsoft_instruction *load = hdsoft_emit_raw(
            parser, hdsoft_form_find(parser, reg.size == 64 ? "ld_cell_64" : "ld_cell_32"), operands, 2, 0);
        if (load) {
            load->option[0] = 1;
            load->immediate = function->formals[i].offset;
        }
    }
}

static void function_body(hdsoft_parser *parser, uint32_t index)
{
    hdsoft_program *program = parser->program;
    if (program->functions[index].defined) {
        hdsoft_parser_fail(parser, 218, parser->lexer.token.line, "function '%s' is defined twice",
                           program->functions[index].name);
        return;
    }
    program->functions[index].defined = true;
    program->functions[index].first = program->code_count;
    load_register_formals(parser, &program->functions[index]);
    parse_body(parser);
    if (parser->code)
        return;
    parser->guard = HDSOFT_ABSENT;
    parser->statement.modifier[0] = "ret"; /* the end of a body returns */
    parser->statement.modifiers = 1;
    parser->statement.line = parser->lexer.token.line;
    hdsoft_decode_leave(parser, &parser->statement);
    program->functions[index].count = program->code_count - program->functions[index].first;
}

/* After the scope, whose end finds the labels that are missing. A declaration has nothing to finish. */
static void finish_function(hdsoft_parser *parser, uint32_t index, bool has_body)
{
    hdsoft_scope_close(parser);
    parser->function = HDSOFT_NONE;
    hdsoft_function *function = &parser->program->functions[index];
    if (parser->code || !has_body)
        return;
    function->cell_rows = (parser->cell_bytes + 7) / 8;
    if (!hdsoft_registers_assign(parser, function))
        hdsoft_parser_fail(parser, 2, function->line, "out of memory");
}

/* The name of a .func stands behind its return values, which belong to an inner scope: look ahead for it. */
static hdsoft_token name_ahead(const hdsoft_parser *parser)
{
    hdsoft_lexer ahead = parser->lexer;
    if (ahead.token.kind == HDSOFT_TOKEN_SIGN && ahead.token.sign == '(') {
        while (ahead.token.kind != HDSOFT_TOKEN_END &&
               !(ahead.token.kind == HDSOFT_TOKEN_SIGN && ahead.token.sign == ')'))
            hdsoft_lexer_next(&ahead);
        hdsoft_lexer_next(&ahead);
    }
    return ahead.token;
}

static bool same_formals(const hdsoft_function *function, const hdsoft_formal *formals, uint32_t count,
                         uint32_t returned)
{
    if (function->formal_count != count || function->return_count != returned)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (function->formals[i].size != formals[i].size)
            return false;
    return true;
}

/* What stands between the parameters and the body of a .func: .noreturn, .attribute(...), .abi_preserve 8 */
static void skip_function_directives(hdsoft_parser *parser)
{
    while (parser->lexer.token.kind == HDSOFT_TOKEN_DIRECTIVE) {
        hdsoft_lexer_next(&parser->lexer);
        while (parser->lexer.token.kind == HDSOFT_TOKEN_INTEGER)
            hdsoft_lexer_next(&parser->lexer);
    }
}

static void parse_function(hdsoft_parser *parser, bool weak)
{
    hdsoft_token name = name_ahead(parser);
    if (name.kind != HDSOFT_TOKEN_WORD) {
        hdsoft_parser_fail(parser, 218, name.line, ".func has no name");
        return;
    }
    uint32_t index = function_declare(parser, &name, false, weak);
    if (index == HDSOFT_NONE)
        return;
    hdsoft_formal *formals = NULL;
    uint32_t count = 0, returned = 0;
    parser->room.formals = 0;
    parser->function = index;
    function_begin(parser);
    if (hdsoft_parser_accept_sign(parser, '('))
        returned = parse_formals(parser, &formals, &count);
    hdsoft_lexer_next(&parser->lexer);
    if (hdsoft_parser_accept_sign(parser, '('))
        parse_formals(parser, &formals, &count);
    hdsoft_function *function = &parser->program->functions[index];
    if (function->formals && !same_formals(function, formals, count, returned))
        hdsoft_parser_fail(parser, 218, name.line, "'%s' is declared with other parameters before", function->name);
    if (parser->code || function->defined) { /* what the body was made for stays */
        free(formals);
    } else {
        free(function->formals);
        function->formals = formals;
        function->formal_count = count;
        function->return_count = returned;
    }
    skip_function_directives(parser);
    bool has_body = false;
    if (!hdsoft_parser_accept_sign(parser, ';') && parser->code == 0) {
        has_body = parser->lexer.token.kind == HDSOFT_TOKEN_SIGN && parser->lexer.token.sign == '{';
        if (has_body)
            function_body(parser, index);
        else
            hdsoft_parser_expect_sign(parser, '{');
    }
    finish_function(parser, index, has_body);
}

/* --- kernels --- */

static void parse_kernel_parameters(hdsoft_parser *parser, hdsoft_entry *entry)
{
    hdsoft_program *program = parser->program;
    uint64_t offset = 0;
    if (!hdsoft_parser_accept_sign(parser, '(') || hdsoft_parser_accept_sign(parser, ')'))
        return;
    do {
        hdsoft_declared declared;
        if (!hdsoft_parse_parameter(parser, &declared))
            return;
        uint64_t align = declared.align ? declared.align : 1;
        offset = (offset + align - 1) / align * align;
        if (offset + declared.size > 32764) {
            hdsoft_parser_fail(parser, 218, parser->lexer.token.line,
                               "the parameters of '%s' take more than 32764 bytes", entry->name);
            return;
        }
        if (!hdsoft_parser_room(parser, &program->parameters, &parser->room.parameters, program->parameter_count,
                                sizeof *program->parameters))
            return;
        bool bytes = declared.type.bits == 8 && declared.size != 1;
        program->parameters[program->parameter_count++] = (hdsoft_parameter){
            .offset = (uint32_t)offset, .size = (uint32_t)declared.size, .align = (uint32_t)align,
            .kind = bytes ? 'b' : declared.type.kind == 'f' ? 'f' : 'i'};
        entry->parameter_count++;
        uint32_t symbol = hdsoft_symbol_bind(parser, hdsoft_name_intern(parser, declared.name, declared.length),
                                             HDSOFT_BIND_PARAMETER, (uint32_t)offset);
        if (symbol != HDSOFT_NONE)
            parser->symbols[symbol].size = declared.size;
        offset += declared.size;
        entry->parameter_bytes = (uint32_t)offset;
    } while (parser->code == 0 && hdsoft_parser_accept_sign(parser, ','));
    hdsoft_parser_expect_sign(parser, ')');
}

static void parse_kernel_directives(hdsoft_parser *parser, hdsoft_entry *entry)
{
    hdsoft_lexer *lexer = &parser->lexer;
    while (lexer->token.kind == HDSOFT_TOKEN_DIRECTIVE) {
        hdsoft_token word = lexer->token;
        uint64_t number[3] = {1, 1, 1};
        unsigned count = 0;
        hdsoft_lexer_next(lexer);
        while (lexer->token.kind == HDSOFT_TOKEN_INTEGER) {
            if (count < 3)
                number[count++] = lexer->token.value;
            hdsoft_lexer_next(lexer);
            if (!hdsoft_parser_accept_sign(parser, ','))
                break;
        }
        bool required = hdsoft_token_is(&word, ".reqntid");
        if (hdsoft_token_is(&word, ".pragma"))
            hdsoft_parser_skip_statement(parser);
        if (!required && !hdsoft_token_is(&word, ".maxntid"))
            continue;
        uint64_t threads = number[0] * number[1] * number[2];
        if (number[0] > 1024 || number[1] > 1024 || number[2] > 1024 || threads == 0 || threads > 1024) {
            hdsoft_parser_fail(parser, 218, word.line, "'%s' asks for an impossible block", entry->name);
            return;
        }
        entry->max_threads = (uint32_t)threads;
        for (unsigned i = 0; required && i < 3; i++)
            entry->required_block[i] = (uint32_t)number[i];
    }
}

static void parse_kernel(hdsoft_parser *parser, bool weak)
{
    hdsoft_program *program = parser->program;
    hdsoft_token name = parser->lexer.token;
    if (name.kind != HDSOFT_TOKEN_WORD) {
        hdsoft_parser_fail(parser, 218, name.line, ".entry has no name");
        return;
    }
    hdsoft_lexer_next(&parser->lexer);
    uint32_t index = function_declare(parser, &name, true, weak);
    if (index == HDSOFT_NONE)
        return;
    parser->function = index;
    hdsoft_entry entry = {.name = program->functions[index].name, .max_threads = 1024};
    uint32_t first = program->parameter_count;
    function_begin(parser);
    parse_kernel_parameters(parser, &entry);
    parse_kernel_directives(parser, &entry);
    bool has_body = parser->lexer.token.kind == HDSOFT_TOKEN_SIGN && parser->lexer.token.sign == '{';
    if (hdsoft_parser_accept_sign(parser, ';')) { /* a declaration only */
        program->parameter_count = first;
    } else if (has_body) {
        function_body(parser, index);
        if (parser->code == 0 &&
            hdsoft_parser_room(parser, &program->entries, &parser->room.entries, program->entry_count,
                               sizeof *program->entries) &&
            hdsoft_parser_room(parser, &program->entry_functions, &parser->room.entry_functions, program->entry_count,
                               sizeof *program->entry_functions)) {
            program->entry_functions[program->entry_count] = index;
            program->entries[program->entry_count++] = entry;
        }
    } else {
        hdsoft_parser_expect_sign(parser, '{');
    }
    finish_function(parser, index, has_body);
}

/* --- the module --- */

static void parse_module_directive(hdsoft_parser *parser)
{
    hdsoft_lexer *lexer = &parser->lexer;
    bool external = false, weak = false;
    hdsoft_token word;
    for (;;) {
        word = lexer->token;
        hdsoft_lexer_next(lexer);
        if (hdsoft_token_is(&word, ".extern"))
            external = true;
        else if (hdsoft_token_is(&word, ".weak") || hdsoft_token_is(&word, ".common"))
            weak = true;
        else if (!hdsoft_token_is(&word, ".visible"))
            break;
    }
    hdsoft_space space;
    if (hdsoft_token_is(&word, ".version"))
        parse_version(parser);
    else if (hdsoft_token_is(&word, ".target"))
        parse_target(parser);
    else if (hdsoft_token_is(&word, ".address_size")) {
        if (next_integer(parser) != 64)
            hdsoft_parser_fail(parser, 218, word.line, ".address_size must be 64");
    } else if (hdsoft_token_is(&word, ".entry"))
        parse_kernel(parser, weak);
    else if (hdsoft_token_is(&word, ".func"))
        parse_function(parser, weak);
    else if (space_directive(&word, &space) && space < HDSOFT_SPACE_LOCAL)
        hdsoft_parse_variable(parser, space, external, weak);
    else if (hdsoft_token_is(&word, ".file"))
        parse_file(parser);
    else if (hdsoft_token_is(&word, ".section")) {
        while (lexer->token.kind == HDSOFT_TOKEN_DIRECTIVE || lexer->token.kind == HDSOFT_TOKEN_WORD)
            hdsoft_lexer_next(lexer);
        skip_braces(parser);
    } else if (hdsoft_token_is(&word, ".pragma") || hdsoft_token_is(&word, ".alias"))
        hdsoft_parser_skip_statement(parser);
    else
        hdsoft_parser_fail(parser, 218, word.line, "'%.*s' is not known in a module",
                           (int)(word.length < 60 ? word.length : 60), word.text);
}

static void parse_module(hdsoft_parser *parser)
{
    hdsoft_lexer *lexer = &parser->lexer;
    hdsoft_lexer_next(lexer);
    if (hdsoft_token_is(&lexer->token, ".version"))
        parse_module_directive(parser);
    else if (!lexer->problem)
        hdsoft_parser_fail(parser, 218, lexer->token.line, "PTX begins with .version");
    if (!hdsoft_token_is(&lexer->token, ".target") && !lexer->problem)
        hdsoft_parser_fail(parser, 218, lexer->token.line, ".target is expected behind .version");
    while (lexer->token.kind != HDSOFT_TOKEN_END) {
        if (lexer->token.kind == HDSOFT_TOKEN_DIRECTIVE)
            parse_module_directive(parser);
        else if (!hdsoft_parser_accept_sign(parser, ';'))
            hdsoft_parser_fail(parser, 218, lexer->token.line, "a directive is expected, not '%.*s'",
                               (int)(lexer->token.length < 40 ? lexer->token.length : 40), lexer->token.text);
    }
    if (lexer->problem)
        hdsoft_parser_fail(parser, 218, lexer->line, "%s", lexer->problem);
    if (parser->code == 0)
        hdsoft_layout(parser);
}

int hdsoft_program_parse(const char *ptx, size_t size, unsigned compute_capability, hdsoft_program **out,
                         hdsoft_text *log)
{
    return hdsoft_program_parse_level(ptx, size, compute_capability, -1, out, log);
}

int hdsoft_program_parse_level(const char *ptx, size_t size, unsigned compute_capability, int level,
                               hdsoft_program **out, hdsoft_text *log)
{
    *out = NULL;
    if (log && log->bytes && log->capacity)
        log->bytes[log->length = 0] = '\0';
    if (size && ptx[size - 1] == '\0')
        size--;
    hdsoft_parser *parser = calloc(1, sizeof *parser);
    hdsoft_program *program = calloc(1, sizeof *program);
    int code = 2;
    if (!parser || !program || size > (1u << 30)) {
        hdsoft_text_append(log, "out of memory");
        goto free_parser;
    }
    parser->program = program;
    parser->log = log;
    parser->compute_capability = compute_capability;
    parser->level = level;
    parser->function = HDSOFT_NONE;
    hdsoft_lexer_init(&parser->lexer, ptx, size);
    fenv_t saved; /* constants are rounded to nearest, whatever the caller's thread does */
    fegetenv(&saved);
    fesetenv(FE_DFL_ENV);
    if (hdsoft_forms_begin(parser))
        parse_module(parser);
    fesetenv(&saved);
    code = parser->code;
    hdsoft_symbols_destroy(parser);
    free(parser->registers);
    free(parser->register_formals);
    free(parser->references);
free_parser:
    free(parser);
    if (code)
        hdsoft_program_destroy(program);
    else
        *out = program;
    return code;
}
