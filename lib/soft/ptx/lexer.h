/* SPDX-License-Identifier: MIT */
/*
 * PTX text to tokens. Called by the parser only. A lexer never reads outside of its text, always moves on, and after
 * the first error (its own or the parser's) answers nothing but END, so that no loop over tokens can hang.
 */
#ifndef HDSOFT_LEXER_H
#define HDSOFT_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum hdsoft_token_kind {
    HDSOFT_TOKEN_END,
    HDSOFT_TOKEN_WORD,      /* identifier: name, %register, $label, _ */
    HDSOFT_TOKEN_DIRECTIVE, /* .word, dot included; joined: no white space before it */
    HDSOFT_TOKEN_INTEGER,
    HDSOFT_TOKEN_FLOAT,     /* bits of an f64, or of an f32 if single */
    HDSOFT_TOKEN_STRING,    /* without its quotes */
    HDSOFT_TOKEN_SIGN,      /* one character */
} hdsoft_token_kind;

typedef struct hdsoft_token {
    hdsoft_token_kind kind;
    bool joined, single;
    char sign;
    const char *text;
    size_t length;
    uint64_t value;
    uint32_t line;
} hdsoft_token;

typedef struct hdsoft_lexer {
    const char *at, *end;
    uint32_t line;
    const char *problem; /* NULL, or what was wrong with the text */
    hdsoft_token token;  /* the current one */
} hdsoft_lexer;

void hdsoft_lexer_init(hdsoft_lexer *lexer, const char *text, size_t size);
/* Make the next token the current one. */
void hdsoft_lexer_next(hdsoft_lexer *lexer);
/* Give nothing but END from here on. */
void hdsoft_lexer_stop(hdsoft_lexer *lexer);
bool hdsoft_token_is(const hdsoft_token *token, const char *text);

#endif
