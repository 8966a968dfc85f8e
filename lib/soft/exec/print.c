/* SPDX-License-Identifier: MIT */
/*
 * vprintf(format, arguments): the front end has packed the arguments into a buffer, each aligned to its size, small
 * integers widened to int and float to double.
 */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "soft/exec/builtin.h"
#include "soft/ptx/text.h"

#define LONGEST_FORMAT 4096
#define LONGEST_TEXT 16384
#define LONGEST_SPEC 40

typedef struct print_state {
    hdsoft_warp *warp;
    const hdsoft_instruction *instruction;
    unsigned lane;
    uint64_t next;     /* address of the next argument */
    int arguments;
    bool failed;
    hdsoft_text text;
} print_state;

/* A string of generic memory, cut at room - 1 bytes; false after a fault. */
static bool read_string(hdsoft_warp *warp, const hdsoft_instruction *instruction, unsigned lane, uint64_t address,
                        char *text, size_t room)
{
    for (size_t i = 0; i + 1 < room; i++) {
        if (!hdsoft_copy_in(warp, instruction, lane, address + i, text + i, 1))
            return false;
        if (text[i] == '\0')
            return true;
    }
    text[room - 1] = '\0';
    return true;
}

static uint64_t next_argument(print_state *state, unsigned size)
{
    uint64_t value = 0;
    state->next = (state->next + size - 1) / size * size;
    if (!state->failed && !hdsoft_copy_in(state->warp, state->instruction, state->lane, state->next, &value, size))
        state->failed = true;
    state->next += size;
    state->arguments++;
    return value;
}

/* The spec has a copy of "%-08.3" without its length modifier; long long is put in for 64-bit integers. */
static void print_integer(print_state *state, char *spec, char conversion, bool wide)
{
    size_t length = strlen(spec);
    memcpy(spec + length, "ll", 2);
    spec[length + 2] = conversion;
    spec[length + 3] = '\0';
    uint64_t value = next_argument(state, wide ? 8 : 4);
    bool is_signed = conversion == 'd' || conversion == 'i';
    if (!wide)
        value = is_signed ? (uint64_t)(int64_t)(int32_t)value : (uint32_t)value;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    hdsoft_text_append(&state->text, spec, (long long)value);
#pragma GCC diagnostic pop
}

static void print_one(print_state *state, char *spec, char conversion, bool wide)
{
    size_t length = strlen(spec);
    char string[1024];
    uint64_t bits;
    double number;
    switch (conversion) {
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        print_integer(state, spec, conversion, wide);
        return;
    case 'p':
        hdsoft_text_append(&state->text, "0x%llx", (unsigned long long)next_argument(state, 8));
        return;
    default:
        break;
    }
    spec[length] = conversion;
    spec[length + 1] = '\0';
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (conversion == 'c') {
        hdsoft_text_append(&state->text, spec, (int)next_argument(state, 4));
    } else if (conversion == 's') {
        bits = next_argument(state, 8);
        if (bits == 0)
            strcpy(string, "(null)");
        else if (state->failed ||
                 !read_string(state->warp, state->instruction, state->lane, bits, string, sizeof string))
            state->failed = true;
        if (!state->failed)
            hdsoft_text_append(&state->text, spec, string);
    } else if (strchr("fFeEgGaA", conversion)) {
        bits = next_argument(state, 8);
        memcpy(&number, &bits, sizeof number);
        hdsoft_text_append(&state->text, spec, number);
    } else { /* not known: as written */
        hdsoft_text_append(&state->text, "%s", spec);
    }
#pragma GCC diagnostic pop
}

/* One conversion at *at, which stands behind the '%'. */
static void print_conversion(print_state *state, const char **at)
{
    char spec[LONGEST_SPEC + 8] = "%";
    size_t length = 1;
    bool wide = false;
    const char *c = *at;
    for (; *c && strchr("-+ #0123456789.*", *c); c++) {
        if (*c == '*') { /* the width is an argument */
            int width = (int)next_argument(state, 4);
            width = width > 9999 ? 9999 : width < -9999 ? -9999 : width;
            if (length < LONGEST_SPEC - 8)
                length += (size_t)snprintf(spec + length, LONGEST_SPEC - length, "%d", width);
        } else if (length < LONGEST_SPEC) {
            spec[length++] = *c;
        }
    }
    spec[length] = '\0';
    /* A width of more than four digits would only make a long text of blanks. */
    for (size_t i = 1, digits = 0; i < length; i++) {
        digits = spec[i] >= '0' && spec[i] <= '9' ? digits + 1 : 0;
        if (digits > 4)
            spec[i] = '\0', length = i;
    }
    for (; *c && strchr("hlLqjzt", *c); c++)
        wide |= *c == 'l' || *c == 'q' || *c == 'j' || *c == 'z' || *c == 't';
    if (*c == '%')
        hdsoft_text_append(&state->text, "%%");
    else if (*c)
        print_one(state, spec, *c, wide);
    *at = *c ? c + 1 : c;
}

static bool print_lane(print_state *state, const char *format)
{
    const char *at = format;
    while (*at && !state->failed) {
        size_t plain = strcspn(at, "%");
        hdsoft_text_append(&state->text, "%.*s", (int)plain, at);
        at += plain;
        if (*at == '%') {
            at++;
            print_conversion(state, &at);
        }
    }
    return !state->failed;
}

bool hdsoft_builtin_print(hdsoft_warp *warp, const hdsoft_instruction *instruction, const hdsoft_builtin *builtin,
                          hdsoft_cells *cells)
{
    (void)builtin;
    char format[LONGEST_FORMAT], text[LONGEST_TEXT];
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = c_locale ? uselocale(c_locale) : (locale_t)0;
    bool going = true;
    for (uint32_t rest = warp->mask; rest && going; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        print_state state = {.warp = warp, .instruction = instruction, .lane = lane, .next = cells[2][lane],
                             .text = {text, sizeof text, 0}};
        text[0] = '\0';
        going = read_string(warp, instruction, lane, cells[1][lane], format, sizeof format) &&
                print_lane(&state, format);
        if (going && warp->run->print)
            warp->run->print(warp->run->print_context, text, state.text.length);
        cells[0][lane] = (uint32_t)state.arguments;
    }
    if (c_locale) {
        uselocale(before);
        freelocale(c_locale);
    }
    return going;
}
