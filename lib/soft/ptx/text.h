/* SPDX-License-Identifier: MIT */
/*
 * Bounded texts: where the parser and the engine write what went wrong. A text is never overrun and always ends in a
 * NUL byte; a NULL text or one without bytes swallows everything.
 */
#ifndef HDSOFT_TEXT_H
#define HDSOFT_TEXT_H

#include <stdarg.h>

#include "soft/exec/engine.h"

void hdsoft_text_append(hdsoft_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hdsoft_text_append_list(hdsoft_text *text, const char *format, va_list arguments);

#endif
