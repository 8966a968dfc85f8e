/* SPDX-License-Identifier: MIT */
#include "npy.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
#define ALIGNMENT 64

/* The header's text between two positions; nothing is read outside. */
typedef struct reader {
    const char *at, *end;
} reader;

bool npy_named(const char *path)
{
    size_t length = strlen(path);

    return length > 4 && strcmp(path + length - 4, ".npy") == 0;
}

static void skip_spaces(reader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at))
        r->at++;
}

/* Takes one character if it comes next, after spaces. */
static bool take(reader *r, char wanted)
{
    skip_spaces(r);
    if (r->at == r->end || *r->at != wanted)
        return false;
    r->at++;
    return true;
}

static bool take_word(reader *r, const char *word)
{
    size_t length = strlen(word);

    skip_spaces(r);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0)
        return false;
    r->at += length;
    return true;
}

/* A quoted text without escapes. */
static bool take_text(reader *r, char *out, size_t room)
{
    char quote;
    size_t length = 0;

    skip_spaces(r);
    if (r->at == r->end || (*r->at != '\'' && *r->at != '"'))
        return false;
    quote = *r->at++;
    while (r->at < r->end && *r->at != quote && *r->at != '\\' && length + 1 < room)
        out[length++] = *r->at++;
    out[length] = 0;
    return take(r, quote);
}

static bool take_number(reader *r, uint64_t *out)
{
    skip_spaces(r);
    if (r->at == r->end || !isdigit((unsigned char)*r->at))
        return false;
    for (*out = 0; r->at < r->end && isdigit((unsigned char)*r->at); r->at++)
        if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, (uint64_t)(*r->at - '0'), out))
            return false;
    return true;
}

/* "(3, 4)", "(5,)" or "()": the number of elements. */
static bool take_shape(reader *r, uint64_t *out_count)
{
    uint64_t extent;

    *out_count = 1;
    if (!take(r, '('))
        return false;
    while (!take(r, ')')) {
        if (!take_number(r, &extent) || __builtin_mul_overflow(*out_count, extent, out_count))
            return false;
        take_word(r, "L"); /* Python 2 wrote long integers so */
        if (!take(r, ',') && !(r->at < r->end && *r->at == ')'))
            return false;
    }
    return true;
}

/* '<f4', '|u1', '<U12', '<M8[ns]': bytes of an element, or what is wrong with it. */
static const char *type_bytes(const char *type, uint64_t *out_bytes)
{
    reader r = {type, type + strlen(type)};
    char order = *r.at, kind;

    if (order != '<' && order != '|' && order != '=' && order != '>')
        return "its type is not understood";
    r.at++;
    kind = r.at < r.end ? *r.at++ : 0;
    if (kind == 'O')
        return "it holds Python objects, which no kernel can use";
    if (!kind || !strchr("biufcmMSUVa?", kind))
        return "its type is not understood";
    if (!take_number(&r, out_bytes) || (r.at < r.end && *r.at != '['))
        return "its type is not understood";
    if (kind == 'U' && __builtin_mul_overflow(*out_bytes, 4, out_bytes))
        return "its type is not understood";
    if (order == '>' && *out_bytes > 1 && !strchr("SVa", kind))
        return "its numbers are big-endian, and GPUs are little-endian: convert it first";
    return NULL;
}

/* {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, the keys in any order, each once. */
static const char *parse_header(reader *r, uint64_t *out_bytes)
{
    static const char malformed[] = "its header is malformed";
    char key[16], type[64];
    bool have_type = false, have_order = false, have_shape = false;
    uint64_t count = 0, element = 0;
    const char *trouble;

    if (!take(r, '{'))
        return malformed;
    while (!take(r, '}')) {
        if (!take_text(r, key, sizeof key) || !take(r, ':'))
            return malformed;
        if (strcmp(key, "descr") == 0 && !have_type) {
            if (take(r, '['))
                return "its type is structured, which is not supported: use plain arrays";
            if (!take_text(r, type, sizeof type))
                return malformed;
            trouble = type_bytes(type, &element);
            if (trouble)
                return trouble;
            have_type = true;
        } else if (strcmp(key, "fortran_order") == 0 && !have_order) {
            if (!take_word(r, "True") && !take_word(r, "False"))
                return malformed;
            have_order = true;
        } else if (strcmp(key, "shape") == 0 && !have_shape) {
            if (!take_shape(r, &count))
                return malformed;
            have_shape = true;
        } else {
            return malformed;
        }
        if (!take(r, ',') && !(r->at < r->end && *r->at == '}'))
            return malformed;
    }
    skip_spaces(r);
    if (!have_type || !have_order || !have_shape || r->at != r->end)
        return malformed;
    return __builtin_mul_overflow(count, element, out_bytes) ? "its shape is too large" : NULL;
}

const char *npy_check(const unsigned char *data, uint64_t bytes, uint64_t *out_header_bytes)
{
    uint64_t length, start, array;
    const char *trouble;
    reader r;

    if (bytes < MAGIC_BYTES + 4 || memcmp(data, MAGIC, MAGIC_BYTES) != 0)
        return "it does not begin as a .npy file does";
    if (data[6] < 1 || data[6] > 3)
        return "its version is not 1, 2 or 3";
    start = data[6] == 1 ? 10 : 12;
    if (bytes < start)
        return "it is cut off in the header";
    length = data[8] | (uint64_t)data[9] << 8;
    if (data[6] > 1)
        length |= (uint64_t)data[10] << 16 | (uint64_t)data[11] << 24;
    if (length > bytes - start)
        return "it is cut off in the header";
    r.at = (const char *)data + start;
    r.end = r.at + length;
    trouble = parse_header(&r, &array);
    if (trouble)
        return trouble;
    if (array > bytes - start - length)
        return "it is cut off: its shape needs more bytes";
    if (array < bytes - start - length)
        return "there are bytes behind the array";
    *out_header_bytes = start + length;
    return NULL;
}

size_t npy_bytes_header(uint64_t count, unsigned char header[NPY_HEADER_LIMIT])
{
    char text[NPY_HEADER_LIMIT];
    size_t used = (size_t)snprintf(text, sizeof text, "{'descr': '|u1', 'fortran_order': False, 'shape': (%llu,), }",
                                   (unsigned long long)count);
    size_t total = (10 + used + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, length = total - 10;

    memcpy(header, MAGIC "\x01\x00", 8);
    header[8] = (unsigned char)length;
    header[9] = (unsigned char)(length >> 8);
    memset(header + 10, ' ', length - 1);
    memcpy(header + 10, text, used);
    header[total - 1] = '\n';
    return total;
}
