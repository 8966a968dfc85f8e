/* SPDX-License-Identifier: MIT */
/*
 * What the commands that print JSON share: texts that need not be UTF-8, and printing. Everything is gathered into JSON
 * first and then printed in one go, so that a failure on the way prints nothing.
 */
#ifndef HDJIT_JSON_H
#define HDJIT_JSON_H

#include <jansson.h>

/* A text, null for NULL. Of one that is not UTF-8 bytes beyond ASCII are written as \xNN. */
json_t *json_text(const char *value);

/* The text at `key`, "" where there is none. */
const char *json_text_at(const json_t *object, const char *key);

/* Prints to standard output and drops it; NULL is "out of memory". Returns 0 or an exit code. */
int json_show(json_t *value);

#endif
