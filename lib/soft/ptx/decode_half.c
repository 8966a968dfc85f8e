/* SPDX-License-Identifier: MIT */
/*
 * Instructions of f16 and bf16, single and packed. Their forms are few: format, count and modifiers go into the
 * instruction's options (HDSOFT_HALF_* of exec/forms.h).
 */
#include <stdio.h>
#include <string.h>

#include "soft/ptx/parser.h"

bool hdsoft_type_is_half(hdsoft_type type)
{
    return type.kind == 'e' || type.kind == 'x' || type.kind == 'y' || (type.kind == 'f' && type.bits == 16);
}

void hdsoft_type_name(hdsoft_type type, char *text, size_t room)
{
    if (type.kind == 'e' || type.kind == 'x' || type.kind == 'y')
        snprintf(text, room, "%s", type.kind == 'e' ? "bf16" : type.kind == 'x' ? "f16x2" : "bf16x2");
    else
        snprintf(text, room, "%c%u", type.kind, type.bits);
}

static uint8_t what_of(hdsoft_type type)
{
    bool pair = type.kind == 'x' || type.kind == 'y', brain = type.kind == 'e' || type.kind == 'y';
    return (uint8_t)((pair ? HDSOFT_HALF_PAIR : 0) | (brain ? HDSOFT_HALF_BRAIN : 0));
}

static char letter_of(hdsoft_type type)
{
    return what_of(type) & HDSOFT_HALF_PAIR ? 'w' : 'h';
}

/* The modifiers of arithmetic as bits; false if one is not known here. */
static bool read_how(const hdsoft_statement *statement, unsigned *how)
{
    static const struct {
        const char *name;
        unsigned bits;
    } known[] = {
        {"rn", 0},   {"approx", 0}, {"ftz", HDSOFT_HALF_FLUSH}, {"sat", HDSOFT_HALF_SATURATE},
        {"relu", HDSOFT_HALF_RELU}, {"NaN", HDSOFT_HALF_NAN},   {"xorsign", HDSOFT_HALF_SIGNS}, {"abs", 0},
    };
    *how = 0;
    unsigned types = 0;
    for (unsigned m = 1; m < statement->modifiers; m++) {
        const char *part = statement->modifier[m];
        hdsoft_type type;
        bool found = false;
        if (hdsoft_parse_type(part, strlen(part), &type)) {
            types++;
            continue;
        }
        for (unsigned i = 0; i < sizeof known / sizeof known[0] && !found; i++) {
            found = strcmp(part, known[i].name) == 0;
            *how |= found ? known[i].bits : 0;
        }
        if (!found)
            return false;
    }
    return types == 1;
}

void hdsoft_decode_half(hdsoft_parser *parser, hdsoft_statement *statement)
{
    hdsoft_type type = hdsoft_type_of(statement, 0);
    char name[HDSOFT_NAME_LENGTH + 8];
    unsigned how;
    snprintf(name, sizeof name, "half_%s", statement->modifier[0]);
    const hdsoft_form *form = read_how(statement, &how) ? hdsoft_form_find(parser, name) : NULL;
    unsigned sources = form ? (unsigned)strlen(form->signature) - 2 : 0;
    bool plain = form && statement->arguments == sources + 1;
    for (unsigned i = 0; plain && i < statement->arguments; i++)
        plain = !statement->argument[i].address && !statement->argument[i].vector && !statement->argument[i].pair.kind;
    if (!plain) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    char letter = letter_of(type);
    int32_t operands[HDSOFT_OPERANDS] = {hdsoft_define(parser, &statement->argument[0].value, letter, 0)};
    for (unsigned i = 0; i < sources; i++)
        operands[1 + i] = hdsoft_use(parser, &statement->argument[1 + i].value, letter, 1 + i);
    hdsoft_instruction *instruction = parser->code ? NULL : hdsoft_emit(parser, form, operands);
    if (instruction) {
        instruction->option[0] = (uint8_t)how;
        instruction->option[2] = what_of(type);
    }
}

int32_t hdsoft_half_as_single(hdsoft_parser *parser, int32_t source, hdsoft_type type, bool high, bool flush)
{
    int32_t single = hdsoft_register_new(parser, 32);
    hdsoft_instruction *instruction =
        hdsoft_emit_temporary(parser, "single_half", single, source, HDSOFT_ABSENT, HDSOFT_ABSENT);
    if (instruction) {
        instruction->option[0] = flush ? HDSOFT_HALF_FLUSH : 0;
        instruction->option[1] = high;
        instruction->option[2] = what_of(type);
    }
    return single;
}

/* --- cvt to f16 and bf16: through double precision, which holds every source but the widest integers --- */

static int32_t single_as_double(hdsoft_parser *parser, const hdsoft_conversion *conversion, int32_t single)
{
    if (conversion->flush) {
        int32_t flushed = hdsoft_register_new(parser, 32);
        hdsoft_emit_temporary(parser, "flush_f32", flushed, single, HDSOFT_ABSENT, HDSOFT_ABSENT);
        single = flushed;
    }
    if (conversion->integer_rounding) {
        char name[24];
        int32_t whole = hdsoft_register_new(parser, 32);
        snprintf(name, sizeof name, "cvt_%s_f32_f32", conversion->integer_rounding);
        hdsoft_emit_temporary(parser, name, whole, single, HDSOFT_ABSENT, HDSOFT_ABSENT);
        single = whole;
    }
    int32_t wide = hdsoft_register_new(parser, 64);
    hdsoft_emit_temporary(parser, "cvt_f64_f32", wide, single, HDSOFT_ABSENT, HDSOFT_ABSENT);
    return wide;
}

/* The source as a double or a 64-bit integer, and the form that takes it. */
static int32_t wide_source(hdsoft_parser *parser, const hdsoft_conversion *conversion, int32_t source,
                           const char **form)
{
    hdsoft_type from = conversion->from;
    *form = "half_f64";
    if (from.kind == 'f' && from.bits == 32)
        return single_as_double(parser, conversion, source);
    if (from.kind != 'f' && from.bits == 64)
        *form = from.kind == 's' ? "half_s64" : "half_u64";
    if (from.bits == 64)
        return source;
    char name[24];
    int32_t wide = hdsoft_register_new(parser, 64);
    snprintf(name, sizeof name, "cvt_f64_%c%u", from.kind == 's' ? 's' : 'u', from.bits);
    hdsoft_emit_temporary(parser, name, wide, source, HDSOFT_ABSENT, HDSOFT_ABSENT);
    return wide;
}

void hdsoft_convert_to_half(hdsoft_parser *parser, hdsoft_statement *statement, const hdsoft_conversion *conversion,
                            int32_t source)
{
    bool pair = what_of(conversion->to) & HDSOFT_HALF_PAIR;
    const char *form;
    int32_t first = wide_source(parser, conversion, source, &form), second = HDSOFT_ABSENT;
    if (pair) {
        form = "halves_f64";
        second = single_as_double(parser, conversion,
                                  hdsoft_use(parser, &statement->argument[2].value, 'f', 2));
    }
    int32_t to = hdsoft_define(parser, &statement->argument[0].value, letter_of(conversion->to), 0);
    hdsoft_instruction *instruction =
        parser->code ? NULL : hdsoft_emit_named(parser, form, to, first, second, HDSOFT_ABSENT);
    if (instruction) {
        instruction->option[0] = (uint8_t)((conversion->saturate ? HDSOFT_HALF_SATURATE : 0) |
                                           (conversion->relu ? HDSOFT_HALF_RELU : 0) |
                                           (conversion->finite ? HDSOFT_HALF_FINITE : 0));
        instruction->option[1] = (uint8_t)conversion->rounding;
        instruction->option[2] = what_of(conversion->to);
    }
}
