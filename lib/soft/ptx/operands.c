/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "soft/exec/video.h"
#include "soft/ptx/parser.h"

/* %tid.x is a word and a joined directive; answers the special register's number, or -1. */
static int read_special(hdsoft_parser *parser, const hdsoft_token *word)
{
    char name[64];
    if (word->text[0] != '%' || word->length >= 32)
        return -1;
    memcpy(name, word->text, word->length);
    size_t length = word->length;
    const hdsoft_token *next = &parser->lexer.token;
    bool suffix = next->kind == HDSOFT_TOKEN_DIRECTIVE && next->joined && next->length < 8;
    if (suffix) {
        memcpy(name + length, next->text, next->length);
        length += next->length;
    }
    int number = hdsoft_special_find(name, length);
    if (number >= 0 && suffix)
        hdsoft_lexer_next(&parser->lexer);
    return number;
}

static bool parse_word(hdsoft_parser *parser, hdsoft_value *value)
{
    hdsoft_token word = parser->lexer.token;
    hdsoft_lexer_next(&parser->lexer);
    if (word.length == 1 && word.text[0] == '_') {
        value->kind = HDSOFT_VALUE_SINK;
        return true;
    }
    int32_t reg = hdsoft_register_find(parser, word.text, word.length);
    if (reg >= 0) {
        value->kind = HDSOFT_VALUE_REGISTER;
        value->reg = reg;
        value->bits = parser->register_count ? parser->registers[reg] : 0;
        return true;
    }
    int special = read_special(parser, &word);
    if (special >= 0) {
        value->kind = HDSOFT_VALUE_SPECIAL;
        value->symbol = (uint32_t)special;
        value->bits = hdsoft_special_get(special)->bits;
        return true;
    }
    if (hdsoft_token_is(&word, "WARP_SZ")) {
        value->kind = HDSOFT_VALUE_INTEGER;
        value->integer = HDSOFT_LANES;
        return true;
    }
    uint32_t symbol = hdsoft_symbol_find(parser, word.text, word.length);
    if (symbol == HDSOFT_NONE) {
        hdsoft_parser_fail(parser, 218, word.line, "'%.*s' is not declared", (int)word.length, word.text);
        return false;
    }
    value->kind = HDSOFT_VALUE_SYMBOL;
    value->symbol = symbol;
    return true;
}

bool hdsoft_parse_value(hdsoft_parser *parser, hdsoft_value *value)
{
    *value = (hdsoft_value){0};
    if (hdsoft_parser_accept_sign(parser, '!'))
        value->negated = true;
    const hdsoft_token *token = &parser->lexer.token;
    bool minus = token->kind == HDSOFT_TOKEN_SIGN && token->sign == '-';
    if (minus) { /* -0f3F800000 and -1.0 are no expressions of integers */
        hdsoft_lexer before = parser->lexer;
        hdsoft_lexer_next(&parser->lexer);
        if (parser->lexer.token.kind != HDSOFT_TOKEN_FLOAT)
            parser->lexer = before;
        else
            value->addend = 1;
    }
    if (token->kind == HDSOFT_TOKEN_FLOAT) {
        value->kind = HDSOFT_VALUE_FLOAT;
        value->single = token->single;
        value->integer = token->value ^ (value->addend ? (token->single ? 1ull << 31 : 1ull << 63) : 0);
        value->addend = 0;
        hdsoft_lexer_next(&parser->lexer);
        return true;
    }
    if (token->kind == HDSOFT_TOKEN_WORD)
        return parse_word(parser, value);
    if (token->kind == HDSOFT_TOKEN_INTEGER || token->kind == HDSOFT_TOKEN_SIGN) {
        value->kind = HDSOFT_VALUE_INTEGER;
        value->integer = (uint64_t)hdsoft_parse_expression(parser);
        return parser->code == 0;
    }
    hdsoft_parser_fail(parser, 218, token->line, "an operand is expected, not '%.*s'",
                       (int)(token->length < 40 ? token->length : 40), token->text);
    return false;
}

/* [register], [symbol+8], [register+-4], [64] */
static void parse_address(hdsoft_parser *parser, hdsoft_argument *argument)
{
    argument->address = true;
    hdsoft_parse_value(parser, &argument->value);
    const hdsoft_token *token = &parser->lexer.token;
    bool offset = token->kind == HDSOFT_TOKEN_SIGN && (token->sign == '+' || token->sign == '-');
    if (hdsoft_parser_accept_sign(parser, '+') || offset)
        argument->value.addend = hdsoft_parse_expression(parser);
    hdsoft_parser_expect_sign(parser, ']');
}

static void parse_vector(hdsoft_parser *parser, hdsoft_argument *argument)
{
    argument->vector = true;
    do {
        if (argument->elements == HDSOFT_VECTOR) {
            hdsoft_parser_fail(parser, 218, parser->lexer.token.line, "a vector has more than %d elements",
                               HDSOFT_VECTOR);
            return;
        }
        hdsoft_parse_value(parser, &argument->element[argument->elements++]);
    } while (hdsoft_parser_accept_sign(parser, ','));
    hdsoft_parser_expect_sign(parser, '}');
}

/* -%r1.h0: of these instructions, operands may have a sign and be a part of the register. */
static bool is_video(const hdsoft_statement *statement)
{
    const char *name = statement->modifier[0];
    return name[0] == 'v' && strcmp(name, "vote") != 0;
}

static void parse_minus(hdsoft_parser *parser, hdsoft_argument *argument)
{
    hdsoft_lexer before = parser->lexer;
    if (!hdsoft_parser_accept_sign(parser, '-'))
        return;
    argument->negative = parser->lexer.token.kind == HDSOFT_TOKEN_WORD;
    if (!argument->negative)
        parser->lexer = before;
}

static void parse_part(hdsoft_parser *parser, hdsoft_argument *argument)
{
    static const char *const parts[] = {".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};
    const hdsoft_token *token = &parser->lexer.token;
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (token->kind == HDSOFT_TOKEN_DIRECTIVE && token->joined && hdsoft_token_is(token, parts[i])) {
            argument->part = (uint8_t)(HDSOFT_PART_BYTE_0 + i);
            hdsoft_lexer_next(&parser->lexer);
            return;
        }
    }
}

static void parse_argument(hdsoft_parser *parser, hdsoft_argument *argument)
{
    if (hdsoft_parser_accept_sign(parser, '[')) {
        parse_address(parser, argument);
        return;
    }
    if (hdsoft_parser_accept_sign(parser, '{')) {
        parse_vector(parser, argument);
        return;
    }
    bool video = is_video(&parser->statement);
    if (video)
        parse_minus(parser, argument);
    if (!hdsoft_parse_value(parser, &argument->value))
        return;
    if (video)
        parse_part(parser, argument);
    if (hdsoft_parser_accept_sign(parser, '|')) {
        hdsoft_parse_value(parser, &argument->pair);
    } else if (argument->value.kind == HDSOFT_VALUE_SYMBOL) {
        const hdsoft_token *token = &parser->lexer.token;
        bool minus = token->kind == HDSOFT_TOKEN_SIGN && token->sign == '-';
        if (hdsoft_parser_accept_sign(parser, '+') || minus)
            argument->value.addend = hdsoft_parse_expression(parser);
    }
}

void hdsoft_parse_arguments(hdsoft_parser *parser, hdsoft_statement *statement)
{
    if (hdsoft_parser_accept_sign(parser, ';'))
        return;
    do {
        if (statement->arguments == HDSOFT_ARGUMENTS) {
            hdsoft_parser_fail(parser, 218, statement->line, "'%s' has more than %d operands", statement->modifier[0],
                               HDSOFT_ARGUMENTS);
            return;
        }
        hdsoft_argument *argument = &statement->argument[statement->arguments++];
        memset(argument, 0, sizeof *argument);
        parse_argument(parser, argument);
    } while (parser->code == 0 && hdsoft_parser_accept_sign(parser, ','));
    hdsoft_parser_expect_sign(parser, ';');
}
