/* SPDX-License-Identifier: MIT */
#include "soft/ptx/text.h"

#include <stdio.h>

void hdsoft_text_append_list(hdsoft_text *text, const char *format, va_list arguments)
{
    if (!text || !text->bytes || text->length >= text->capacity)
        return;
    size_t room = text->capacity - text->length;
    int wanted = vsnprintf(text->bytes + text->length, room, format, arguments);
    if (wanted < 0)
        text->bytes[text->length] = '\0';
    else
        text->length += (size_t)wanted < room ? (size_t)wanted : room - 1;
}

void hdsoft_text_append(hdsoft_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    hdsoft_text_append_list(text, format, arguments);
    va_end(arguments);
}
