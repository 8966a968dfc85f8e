/* SPDX-License-Identifier: MIT */
#include "json.h"

#include "message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *json_text(const char *value)
{
    json_t *result = value ? json_string(value) : json_null();
    char *escaped;
    size_t used = 0;

    if (result)
        return result;
    escaped = calloc(4, strlen(value) + 1);
    if (!escaped)
        return NULL;
    for (; *value; value++)
        used += (size_t)sprintf(escaped + used, (unsigned char)*value < 0x80 ? "%c" : "\\x%02x", (unsigned char)*value);
    result = json_string(escaped);
    free(escaped);
    return result;
}

const char *json_text_at(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value ? value : "";
}

int json_show(json_t *value)
{
    if (!value)
        return fail(EXIT_CODE_FAILED, "out of memory");
    /* A failure to write shows when main flushes. */
    if (json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY) == 0)
        putchar('\n');
    json_decref(value);
    return 0;
}
