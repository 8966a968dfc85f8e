/* SPDX-License-Identifier: MIT */
#include "soft/ptx/lexer.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_NUMBER 64

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Bytes above 127 are taken as letters: front ends let them through in names. */
static bool is_word_start(char c)
{
    return is_letter(c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool is_word(char c)
{
    return is_letter(c) || is_digit(c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static int digit_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

void hdsoft_lexer_init(hdsoft_lexer *lexer, const char *text, size_t size)
{
    memset(lexer, 0, sizeof *lexer);
    lexer->at = text;
    lexer->end = text + size;
    lexer->line = 1;
}

void hdsoft_lexer_stop(hdsoft_lexer *lexer)
{
    lexer->at = lexer->end;
    lexer->token = (hdsoft_token){.kind = HDSOFT_TOKEN_END, .text = lexer->end, .line = lexer->line};
}

static void fail(hdsoft_lexer *lexer, const char *problem)
{
    if (!lexer->problem)
        lexer->problem = problem;
    hdsoft_lexer_stop(lexer);
}

bool hdsoft_token_is(const hdsoft_token *token, const char *text)
{
    size_t length = strlen(text);
    return token->length == length && memcmp(token->text, text, length) == 0 && token->kind != HDSOFT_TOKEN_STRING;
}

/* Skip white space and comments; false after an error. */
static bool skip_blank(hdsoft_lexer *lexer)
{
    while (lexer->at < lexer->end) {
        char c = *lexer->at;
        if (c == '\n') {
            lexer->line++;
            lexer->at++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            lexer->at++;
        } else if (c == '/' && lexer->end - lexer->at > 1 && lexer->at[1] == '/') {
            const char *newline = memchr(lexer->at, '\n', (size_t)(lexer->end - lexer->at));
            lexer->at = newline ? newline : lexer->end;
        } else if (c == '/' && lexer->end - lexer->at > 1 && lexer->at[1] == '*') {
            lexer->at += 2;
            while (lexer->end - lexer->at > 1 && !(lexer->at[0] == '*' && lexer->at[1] == '/'))
                lexer->line += *lexer->at++ == '\n';
            if (lexer->end - lexer->at < 2) {
                fail(lexer, "a comment is not closed");
                return false;
            }
            lexer->at += 2;
        } else {
            break;
        }
    }
    return true;
}

/* 0f and 0d constants: exactly 8 and 16 hexadecimal digits. */
static bool read_float_bits(hdsoft_lexer *lexer, hdsoft_token *token)
{
    const char *at = lexer->at;
    size_t left = (size_t)(lexer->end - at);
    if (left < 10 || at[0] != '0')
        return false;
    bool single = at[1] == 'f' || at[1] == 'F';
    if (!single && at[1] != 'd' && at[1] != 'D')
        return false;
    size_t digits = single ? 8 : 16;
    if (left < 2 + digits)
        return false;
    uint64_t bits = 0;
    for (size_t i = 0; i < digits; i++) {
        int value = digit_value(at[2 + i]);
        if (value > 15)
            return false;
        bits = bits << 4 | (unsigned)value;
    }
    token->kind = HDSOFT_TOKEN_FLOAT;
    token->single = single;
    token->value = bits;
    lexer->at += 2 + digits;
    return true;
}

/* Decimal floating point: copied out, since the text need not end in a NUL byte. */
static bool read_decimal_float(hdsoft_lexer *lexer, hdsoft_token *token)
{
    const char *at = lexer->at;
    while (at < lexer->end && is_digit(*at))
        at++;
    bool fraction = at < lexer->end && *at == '.' && at + 1 < lexer->end && is_digit(at[1]);
    bool bare_point = at + 1 < lexer->end && *at == '.' && (at[1] == 'e' || at[1] == 'E');
    if (fraction || bare_point)
        for (at++; at < lexer->end && is_digit(*at);)
            at++;
    bool exponent = false;
    if (at + 1 < lexer->end && (*at == 'e' || *at == 'E')) {
        const char *digits = at + 1 + (at[1] == '+' || at[1] == '-');
        if (digits < lexer->end && is_digit(*digits)) {
            exponent = true;
            for (at = digits; at < lexer->end && is_digit(*at);)
                at++;
        }
    }
    if (!fraction && !exponent && !bare_point)
        return false;
    char copy[LONGEST_NUMBER];
    size_t length = (size_t)(at - lexer->at);
    if (length >= sizeof copy) {
        fail(lexer, "a number is too long");
        return true;
    }
    memcpy(copy, lexer->at, length);
    copy[length] = '\0';
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale) {
        fail(lexer, "out of memory");
        return true;
    }
    double value = strtod_l(copy, NULL, c_locale);
    freelocale(c_locale);
    memcpy(&token->value, &value, sizeof value);
    token->kind = HDSOFT_TOKEN_FLOAT;
    lexer->at = at;
    return true;
}

static void read_integer(hdsoft_lexer *lexer, hdsoft_token *token)
{
    unsigned base = 10;
    const char *at = lexer->at;
    if (*at == '0' && lexer->end - at > 1) {
        char kind = at[1];
        base = kind == 'x' || kind == 'X' ? 16 : kind == 'b' || kind == 'B' ? 2 : is_digit(kind) ? 8 : 10;
        at += base == 16 || base == 2 ? 2 : base == 8 ? 1 : 0;
    }
    const char *first = at;
    uint64_t value = 0;
    while (at < lexer->end && (unsigned)digit_value(*at) < base) {
        unsigned digit = (unsigned)digit_value(*at++);
        if (value > (UINT64_MAX - digit) / base) {
            fail(lexer, "an integer does not fit in 64 bits");
            return;
        }
        value = value * base + digit;
    }
    if (at == first) {
        fail(lexer, "a number has no digits");
        return;
    }
    if (at < lexer->end && (*at == 'U' || *at == 'u'))
        at++;
    if (at < lexer->end && is_word(*at)) {
        fail(lexer, "a number runs into a name");
        return;
    }
    token->kind = HDSOFT_TOKEN_INTEGER;
    token->value = value;
    lexer->at = at;
}

static void read_string(hdsoft_lexer *lexer, hdsoft_token *token)
{
    const char *at = lexer->at + 1;
    while (at < lexer->end && *at != '"' && *at != '\n')
        at += *at == '\\' && lexer->end - at > 1 && at[1] != '\n' ? 2 : 1;
    if (at >= lexer->end || *at != '"') {
        fail(lexer, "a string is not closed");
        return;
    }
    token->kind = HDSOFT_TOKEN_STRING;
    token->text = lexer->at + 1;
    token->length = (size_t)(at - token->text);
    lexer->at = at + 1;
}

/* .word, where the word may hold "::" (.shared::cta) and, after a name, begin with a digit (.2d). */
static void read_directive(hdsoft_lexer *lexer, hdsoft_token *token)
{
    lexer->at++;
    while (lexer->at < lexer->end) {
        if (is_word(*lexer->at))
            lexer->at++;
        else if (lexer->end - lexer->at > 2 && lexer->at[0] == ':' && lexer->at[1] == ':' && is_word(lexer->at[2]))
            lexer->at += 2;
        else
            break;
    }
    token->kind = HDSOFT_TOKEN_DIRECTIVE;
}

void hdsoft_lexer_next(hdsoft_lexer *lexer)
{
    const char *before = lexer->at;
    if (!skip_blank(lexer))
        return;
    if (lexer->at >= lexer->end) {
        hdsoft_lexer_stop(lexer);
        return;
    }
    hdsoft_token token = {.text = lexer->at, .line = lexer->line, .joined = lexer->at == before};
    char c = *lexer->at;
    bool more = lexer->end - lexer->at > 1;
    if (c == '.' && more && (is_word_start(lexer->at[1]) || (token.joined && is_digit(lexer->at[1])))) {
        read_directive(lexer, &token);
    } else if (is_word_start(c) || (c == '%' && more && is_word(lexer->at[1]))) {
        do
            lexer->at++;
        while (lexer->at < lexer->end && is_word(*lexer->at));
        token.kind = HDSOFT_TOKEN_WORD;
    } else if (is_digit(c) || (c == '.' && more && is_digit(lexer->at[1]))) {
        if (!read_float_bits(lexer, &token) && !read_decimal_float(lexer, &token))
            read_integer(lexer, &token);
    } else if (c == '"') {
        read_string(lexer, &token);
    } else if (c == '\0') {
        fail(lexer, "the text holds a NUL byte");
    } else {
        token.kind = HDSOFT_TOKEN_SIGN;
        token.sign = c;
        lexer->at++;
    }
    if (lexer->problem)
        return;
    if (token.kind != HDSOFT_TOKEN_STRING)
        token.length = (size_t)(lexer->at - token.text);
    lexer->token = token;
}
