/* SPDX-License-Identifier: MIT */
#include "number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Digits from the first character on; the strto functions would skip spaces and take a sign. */
static enum number_result digits(const char *text, const char **out_end, uint64_t *out)
{
    int base = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10;
    const char *first = base == 16 ? text + 2 : text;
    char *end;

    if (base == 16 ? !isxdigit((unsigned char)*first) : !isdigit((unsigned char)*first))
        return NUMBER_MALFORMED;
    errno = 0;
    *out = strtoull(first, &end, base);
    *out_end = end;
    return errno == ERANGE ? NUMBER_RANGE : NUMBER_OK;
}

enum number_result number_unsigned(const char *text, uint64_t most, uint64_t *out)
{
    const char *end = text;
    enum number_result result = digits(text, &end, out);

    if (result == NUMBER_MALFORMED || *end)
        return NUMBER_MALFORMED;
    return result == NUMBER_OK && *out > most ? NUMBER_RANGE : result;
}

enum number_result number_signed(const char *text, int64_t least, int64_t most, int64_t *out)
{
    bool negative = text[0] == '-';
    uint64_t magnitude;
    enum number_result result = number_unsigned(negative || text[0] == '+' ? text + 1 : text, UINT64_MAX, &magnitude);

    if (result != NUMBER_OK)
        return result;
    if (magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return NUMBER_RANGE;
    *out = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return *out < least || *out > most ? NUMBER_RANGE : NUMBER_OK;
}

enum number_result number_size(const char *text, uint64_t most, uint64_t *out)
{
    static const char suffixes[] = "KMG";
    const char *end = text, *suffix;
    enum number_result result = digits(text, &end, out);
    unsigned shift = 0;

    if (result == NUMBER_MALFORMED)
        return result;
    if (*end && (suffix = strchr(suffixes, toupper((unsigned char)*end)))) {
        shift = 10 * (unsigned)(suffix - suffixes + 1);
        end++;
    }
    if (*end)
        return NUMBER_MALFORMED;
    if (result != NUMBER_OK || *out > most >> shift)
        return NUMBER_RANGE;
    *out <<= shift;
    return NUMBER_OK;
}

/* strtod skips spaces. */
static bool begins_a_number(const char *text)
{
    return *text && !isspace((unsigned char)*text);
}

enum number_result number_float(const char *text, float *out)
{
    char *end;

    if (!begins_a_number(text))
        return NUMBER_MALFORMED;
    errno = 0;
    *out = strtof(text, &end);
    if (end == text || *end)
        return NUMBER_MALFORMED;
    return errno == ERANGE && (isinf(*out) || *out == 0) ? NUMBER_RANGE : NUMBER_OK;
}

enum number_result number_double(const char *text, double *out)
{
    char *end;

    if (!begins_a_number(text))
        return NUMBER_MALFORMED;
    errno = 0;
    *out = strtod(text, &end);
    if (end == text || *end)
        return NUMBER_MALFORMED;
    return errno == ERANGE && (isinf(*out) || *out == 0) ? NUMBER_RANGE : NUMBER_OK;
}

enum number_result number_triple(const char *text, uint32_t out[3])
{
    const char *rest = text;

    out[0] = out[1] = out[2] = 1;
    for (int i = 0; i < 3; i++) {
        const char *end = rest;
        uint64_t value;
        enum number_result result = digits(rest, &end, &value);

        if (result == NUMBER_MALFORMED || (*end && (*end != ',' || i == 2)))
            return NUMBER_MALFORMED;
        if (result != NUMBER_OK || value > UINT32_MAX)
            return NUMBER_RANGE;
        out[i] = (uint32_t)value;
        if (!*end)
            break;
        rest = end + 1;
    }
    return NUMBER_OK;
}
