/* SPDX-License-Identifier: MIT */
/* Moves, conversions, comparisons and selections. */
#include <stdio.h>
#include <string.h>

#include "soft/ptx/parser.h"

static char letter_of(hdsoft_type type)
{
    if (type.kind == 'f' && type.bits >= 32)
        return type.bits == 64 ? 'd' : 'f';
    return type.bits == 1 ? 'p' : type.bits == 64 ? 'q' : type.bits == 32 ? 'w' : 'h';
}

int32_t hdsoft_use_column(hdsoft_parser *parser, const hdsoft_value *value, hdsoft_type type, unsigned number)
{
    if (value->kind != HDSOFT_VALUE_REGISTER) {
        if (value->kind == HDSOFT_VALUE_SPECIAL && type.bits < 32)
            return hdsoft_use(parser, value, 'w', number);
        if (value->kind == HDSOFT_VALUE_INTEGER && type.bits < 32 && type.kind != 's')
            return hdsoft_constant(parser, 32, value->integer & ((1u << type.bits) - 1));
        return hdsoft_use(parser, value, type.bits < 32 ? 'w' : letter_of(type), number);
    }
    if (value->bits < type.bits || value->bits == 1 || value->bits > 64 || value->negated) {
        hdsoft_parser_fail(parser, 218, parser->statement.line, "operand %u of '%s' has %u bits, too few for its type",
                           number + 1, parser->statement.modifier[0], value->bits);
        return HDSOFT_CONSTANT_BIT;
    }
    if (value->bits == 64 && type.bits < 64) {
        int32_t low = hdsoft_register_new(parser, 32);
        hdsoft_emit_temporary(parser, "low_64", low, value->reg, HDSOFT_ABSENT, HDSOFT_ABSENT);
        return low;
    }
    return value->reg;
}

/* --- mov --- */

static void move_pack(hdsoft_parser *parser, hdsoft_statement *statement, hdsoft_type type)
{
    const hdsoft_argument *from = &statement->argument[1];
    char name[32];
    snprintf(name, sizeof name, "pack_%u_%u", type.bits, from->elements);
    const hdsoft_form *form = hdsoft_form_find(parser, name);
    if (!form) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    hdsoft_type part = {'b', (uint8_t)(type.bits / from->elements)};
    int32_t operands[HDSOFT_OPERANDS] = {
        hdsoft_define(parser, &statement->argument[0].value, letter_of((hdsoft_type){'b', type.bits}), 0),
        HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT};
    for (unsigned i = 0; i < from->elements; i++)
        operands[1 + i] = hdsoft_use_column(parser, &from->element[i], part, 1);
    hdsoft_emit_raw(parser, form, operands, 1, (2u << from->elements) - 2);
}

static void move_unpack(hdsoft_parser *parser, hdsoft_statement *statement, hdsoft_type type)
{
    const hdsoft_argument *to = &statement->argument[0];
    char name[32];
    snprintf(name, sizeof name, "unpack_%u_%u", type.bits, to->elements);
    const hdsoft_form *form = hdsoft_form_find(parser, name);
    if (!form) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    unsigned bits = type.bits / to->elements;
    int32_t operands[HDSOFT_OPERANDS] = {
        hdsoft_use(parser, &statement->argument[1].value, letter_of((hdsoft_type){'b', type.bits}), 1),
        HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT};
    for (unsigned i = 0; i < to->elements; i++)
        operands[1 + i] = hdsoft_define(parser, &to->element[i], bits == 32 ? 'w' : 'h', 0);
    hdsoft_emit_raw(parser, form, operands, (2u << to->elements) - 2, 1);
}

static void move_special(hdsoft_parser *parser, const hdsoft_value *from, int32_t to, unsigned bits)
{
    hdsoft_instruction *instruction = hdsoft_emit_named(parser, bits == 64 ? "special_64" : "special_32", to,
                                                        HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT);
    if (instruction)
        instruction->immediate = from->symbol;
}

void hdsoft_decode_move(hdsoft_parser *parser, hdsoft_statement *statement)
{
    hdsoft_type type = hdsoft_type_of(statement, 0);
    if (statement->arguments != 2 || type.kind == 0 || type.bits > 64 || statement->modifiers != 2) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    const hdsoft_argument *to = &statement->argument[0], *from = &statement->argument[1];
    if (to->address || from->address || (to->vector && from->vector)) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    if (from->vector) {
        move_pack(parser, statement, type);
        return;
    }
    if (to->vector) {
        move_unpack(parser, statement, type);
        return;
    }
    char letter = letter_of(type);
    int32_t destination = hdsoft_define(parser, &to->value, letter, 0);
    if (from->value.kind == HDSOFT_VALUE_SPECIAL) {
        move_special(parser, &from->value, destination, type.bits);
        return;
    }
    hdsoft_value value = from->value;
    int32_t source;
    if (value.kind == HDSOFT_VALUE_SYMBOL && parser->symbols[value.symbol].binding == HDSOFT_BIND_CELL)
        source = hdsoft_constant(parser, type.bits,
                                 parser->symbols[value.symbol].index + (uint64_t)value.addend);
    else
        source = hdsoft_use(parser, &value, letter, 1);
    hdsoft_emit_named(parser, letter == 'p' ? "mov_pred" : type.bits == 64 ? "mov_64" : "mov_32", destination, source,
                      HDSOFT_ABSENT, HDSOFT_ABSENT);
}

/* --- cvt --- */

static const char *type_name(hdsoft_type type, char *text, size_t room)
{
    snprintf(text, room, "%c%u", type.kind == 'b' ? 'u' : type.kind, type.bits);
    return text;
}

static bool read_conversion(const hdsoft_statement *statement, hdsoft_conversion *conversion)
{
    *conversion = (hdsoft_conversion){.to = hdsoft_type_of(statement, 0), .from = hdsoft_type_of(statement, 1)};
    for (unsigned i = 1; i < statement->modifiers; i++) {
        const char *part = statement->modifier[i];
        hdsoft_type type;
        if (strcmp(part, "rni") == 0 || strcmp(part, "rzi") == 0 || strcmp(part, "rmi") == 0 ||
            strcmp(part, "rpi") == 0)
            conversion->integer_rounding = part;
        else if (strcmp(part, "rz") == 0)
            conversion->rounding = HDSOFT_ROUND_ZERO;
        else if (strcmp(part, "rm") == 0)
            conversion->rounding = HDSOFT_ROUND_DOWN;
        else if (strcmp(part, "rp") == 0)
            conversion->rounding = HDSOFT_ROUND_UP;
        else if (strcmp(part, "sat") == 0)
            conversion->saturate = true;
        else if (strcmp(part, "ftz") == 0)
            conversion->flush = true;
        else if (strcmp(part, "relu") == 0)
            conversion->relu = true;
        else if (strcmp(part, "satfinite") == 0)
            conversion->finite = true;
        else if (strcmp(part, "rn") != 0 && !hdsoft_parse_type(part, strlen(part), &type))
            return false;
    }
    bool half = hdsoft_type_is_half(conversion->to), pair = half && conversion->to.bits == 32;
    return conversion->from.kind && conversion->to.bits <= 64 && conversion->from.bits <= 64 &&
           conversion->to.kind != 'p' && conversion->from.kind != 'p' &&
           (half || (!conversion->relu && !conversion->finite)) &&
           (!pair || (conversion->from.kind == 'f' && conversion->from.bits == 32)) &&
           !(hdsoft_type_is_half(conversion->from) && conversion->from.bits == 32) &&
           statement->arguments == (pair ? 3u : 2u);
}

static const hdsoft_form *find_conversion(hdsoft_parser *parser, const hdsoft_conversion *conversion)
{
    char name[64], to[8], from[8];
    bool from_float = conversion->from.kind == 'f', to_float = conversion->to.kind == 'f';
    const char *how = "";
    if (from_float && !to_float)
        how = conversion->integer_rounding ? conversion->integer_rounding : "rzi";
    else if (from_float && conversion->integer_rounding)
        how = conversion->integer_rounding;
    else if (!from_float && !to_float && conversion->saturate)
        how = "sat";
    snprintf(name, sizeof name, "cvt_%s%s%s_%s", how, *how ? "_" : "", type_name(conversion->to, to, sizeof to),
             type_name(conversion->from, from, sizeof from));
    return hdsoft_form_find(parser, name);
}

/* cvt to anything but f16 and bf16; source: ABSENT, it is the statement's. */
static void convert_column(hdsoft_parser *parser, hdsoft_statement *statement, const hdsoft_conversion *conversion,
                           int32_t source)
{
    const hdsoft_form *form = find_conversion(parser, conversion);
    if (!form) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    const hdsoft_value *to = &statement->argument[0].value;
    if (to->kind != HDSOFT_VALUE_REGISTER || to->bits < conversion->to.bits || to->bits > 64) {
        hdsoft_parser_fail(parser, 218, statement->line, "operand 1 of 'cvt' does not hold %u bits",
                           conversion->to.bits);
        return;
    }
    if (source == HDSOFT_ABSENT)
        source = hdsoft_use_column(parser, &statement->argument[1].value, conversion->from, 1);
    if (conversion->flush && conversion->from.kind == 'f') { /* to f32, what is too small before rounding is zero */
        bool wide = conversion->from.bits == 64;
        int32_t copy = hdsoft_register_new(parser, wide ? 64 : 32);
        hdsoft_instruction *flush = hdsoft_emit_temporary(parser, wide ? "cvt_flush_f64_f64" : "flush_f32", copy,
                                                          source, HDSOFT_ABSENT, HDSOFT_ABSENT);
        if (flush)
            flush->option[1] = (uint8_t)conversion->rounding;
        source = copy;
    }
    /* The last of up to four operations writes the destination, the others temporaries. */
    bool flushes = conversion->flush && conversion->to.kind == 'f' && conversion->to.bits == 32;
    bool saturate = conversion->saturate && conversion->to.kind == 'f';
    bool widen = to->bits == 64 && conversion->to.bits < 64;
    int32_t guard = parser->guard;
    unsigned bits = conversion->to.bits == 64 ? 64 : 32;
    int32_t result = flushes || saturate || widen ? hdsoft_register_new(parser, bits) : to->reg;
    if (result != to->reg)
        parser->guard = HDSOFT_ABSENT;
    hdsoft_instruction *instruction = hdsoft_emit(parser, form, (int32_t[HDSOFT_OPERANDS]){result, source});
    if (instruction && conversion->rounding) {
        instruction->inner = instruction->handler;
        instruction->handler = parser->form_rounded->handler;
        instruction->option[0] = (uint8_t)conversion->rounding;
    }
    if (flushes) {
        int32_t next = saturate || widen ? hdsoft_register_new(parser, 32) : to->reg;
        parser->guard = next == to->reg ? guard : HDSOFT_ABSENT;
        hdsoft_emit_named(parser, "flush_f32", next, result, HDSOFT_ABSENT, HDSOFT_ABSENT);
        result = next;
    }
    if (saturate) {
        int32_t next = widen ? hdsoft_register_new(parser, bits) : to->reg;
        parser->guard = next == to->reg ? guard : HDSOFT_ABSENT;
        hdsoft_emit_named(parser, bits == 64 ? "saturate_f64" : "saturate_f32", next, result, HDSOFT_ABSENT,
                          HDSOFT_ABSENT);
        result = next;
    }
    parser->guard = guard;
    if (widen)
        hdsoft_emit_named(parser, conversion->to.kind == 's' ? "cvt_s64_s32" : "cvt_u64_u32", to->reg, result,
                          HDSOFT_ABSENT, HDSOFT_ABSENT);
}

void hdsoft_decode_convert(hdsoft_parser *parser, hdsoft_statement *statement)
{
    hdsoft_conversion conversion;
    if (!read_conversion(statement, &conversion) || statement->argument[0].vector || statement->argument[1].vector) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    bool from_half = hdsoft_type_is_half(conversion.from), to_half = hdsoft_type_is_half(conversion.to);
    int32_t source = HDSOFT_ABSENT;
    if (from_half && conversion.to.kind == 'f' && conversion.to.bits == 64 && conversion.from.kind == 'f') {
        source = hdsoft_use_column(parser, &statement->argument[1].value, conversion.from, 1);
        int32_t to = hdsoft_define(parser, &statement->argument[0].value, 'd', 0);
        hdsoft_emit_named(parser, "double_half", to, source, HDSOFT_ABSENT, HDSOFT_ABSENT);
        return;
    }
    if (from_half) {
        source = hdsoft_use_column(parser, &statement->argument[1].value, (hdsoft_type){'b', 16}, 1);
        source = hdsoft_half_as_single(parser, source, conversion.from, false, false);
        conversion.from = (hdsoft_type){'f', 32};
    } else if (to_half) {
        source = hdsoft_use_column(parser, &statement->argument[1].value, conversion.from, 1);
    }
    if (to_half) {
        hdsoft_convert_to_half(parser, statement, &conversion, source);
        return;
    }
    convert_column(parser, statement, &conversion, source);
}

/* --- setp, set, selp, slct --- */

typedef struct comparison_form {
    char name[64];
    const char *combine; /* "and", "or", "xor" or NULL */
} comparison_form;

static bool read_comparison(const hdsoft_statement *statement, hdsoft_type type, comparison_form *comparison)
{
    const char *relation = statement->modifiers > 1 ? statement->modifier[1] : "";
    static const char *const same[][2] = {{"lo", "lt"}, {"ls", "le"}, {"hi", "gt"}, {"hs", "ge"}};
    for (unsigned i = 0; i < sizeof same / sizeof same[0]; i++)
        if (strcmp(relation, same[i][0]) == 0)
            relation = same[i][1];
    bool flush = false;
    comparison->combine = NULL;
    for (unsigned i = 2; i < statement->modifiers; i++) {
        const char *part = statement->modifier[i];
        if (strcmp(part, "and") == 0 || strcmp(part, "or") == 0 || strcmp(part, "xor") == 0)
            comparison->combine = part;
        flush |= strcmp(part, "ftz") == 0;
    }
    if (hdsoft_type_is_half(type)) /* is compared as f32 */
        type = (hdsoft_type){'f', 32};
    snprintf(comparison->name, sizeof comparison->name, "setp_%.8s%s_%c%u", relation, flush ? "_ftz" : "", type.kind,
             type.bits);
    return true;
}

/* The comparison of a and b, combined with c if there is one, into predicate p and its counterpart into q (or none). */
static void emit_comparison(hdsoft_parser *parser, const hdsoft_form *form, const comparison_form *comparison,
                            const int32_t sources[3], int32_t p, int32_t q)
{
    int32_t guard = parser->guard;
    bool plain = !comparison->combine && q == HDSOFT_ABSENT;
    int32_t result = plain ? p : hdsoft_register_new(parser, 1);
    parser->guard = plain ? guard : HDSOFT_ABSENT;
    hdsoft_emit(parser, form, (int32_t[HDSOFT_OPERANDS]){result, sources[0], sources[1]});
    parser->guard = guard;
    if (plain)
        return;
    int32_t inverse = HDSOFT_ABSENT, combined = sources[2];
    if (q != HDSOFT_ABSENT) {
        inverse = hdsoft_register_new(parser, 1);
        hdsoft_emit_temporary(parser, "not_pred", inverse, result, HDSOFT_ABSENT, HDSOFT_ABSENT);
        if (comparison->combine && combined >= 0) { /* p may be the same register as c */
            combined = hdsoft_register_new(parser, 1);
            hdsoft_emit_temporary(parser, "mov_pred", combined, sources[2], HDSOFT_ABSENT, HDSOFT_ABSENT);
        }
    }
    char name[16] = "mov_pred";
    if (comparison->combine)
        snprintf(name, sizeof name, "%s_pred", comparison->combine);
    hdsoft_emit_named(parser, name, p, result, comparison->combine ? sources[2] : HDSOFT_ABSENT, HDSOFT_ABSENT);
    if (q != HDSOFT_ABSENT)
        hdsoft_emit_named(parser, name, q, inverse, comparison->combine ? combined : HDSOFT_ABSENT, HDSOFT_ABSENT);
}

/* Shared by setp and set: sources[2] is the predicate to combine with. */
static const hdsoft_form *compare_sources(hdsoft_parser *parser, hdsoft_statement *statement, hdsoft_type type,
                                          comparison_form *comparison, int32_t sources[3])
{
    read_comparison(statement, type, comparison);
    const hdsoft_form *form = hdsoft_form_signless(parser, comparison->name);
    if (!form || statement->arguments != (comparison->combine ? 4u : 3u)) {
        hdsoft_decode_unknown(parser, statement);
        return NULL;
    }
    bool half = hdsoft_type_is_half(type);
    for (unsigned i = 0; i < 2; i++) {
        char letter = half ? letter_of(type) : form->signature[2 + i];
        sources[i] = hdsoft_use(parser, &statement->argument[1 + i].value, letter, 1 + i);
        if (half && type.bits == 16)
            sources[i] = hdsoft_half_as_single(parser, sources[i], type, false, hdsoft_has(statement, "ftz"));
    }
    sources[2] = comparison->combine ? hdsoft_use(parser, &statement->argument[3].value, 'p', 3) : HDSOFT_ABSENT;
    return form;
}

/* Two comparisons, of the lower and the upper numbers of words, into p and q. */
static void compare_halves(hdsoft_parser *parser, const hdsoft_statement *statement, hdsoft_type type,
                           const hdsoft_form *form, const comparison_form *comparison, const int32_t words[3],
                           int32_t p, int32_t q)
{
    int32_t sources[3] = {HDSOFT_ABSENT, HDSOFT_ABSENT, words[2]};
    bool flush = hdsoft_has(statement, "ftz");
    if (comparison->combine && words[2] >= 0) { /* p may be the same register */
        sources[2] = hdsoft_register_new(parser, 1);
        hdsoft_emit_temporary(parser, "mov_pred", sources[2], words[2], HDSOFT_ABSENT, HDSOFT_ABSENT);
    }
    for (unsigned high = 0; high < 2; high++) {
        for (unsigned i = 0; i < 2; i++)
            sources[i] = hdsoft_half_as_single(parser, words[i], type, high, flush);
        emit_comparison(parser, form, comparison, sources, high ? q : p, HDSOFT_ABSENT);
    }
}

void hdsoft_decode_compare(hdsoft_parser *parser, hdsoft_statement *statement)
{
    comparison_form comparison;
    int32_t sources[3];
    hdsoft_type type = hdsoft_type_of(statement, 0);
    const hdsoft_form *form = compare_sources(parser, statement, type, &comparison, sources);
    if (!form)
        return;
    const hdsoft_argument *to = &statement->argument[0];
    int32_t p = hdsoft_define(parser, &to->value, 'p', 0);
    int32_t q = to->pair.kind && to->pair.kind != HDSOFT_VALUE_SINK ? hdsoft_define(parser, &to->pair, 'p', 0)
                                                                    : HDSOFT_ABSENT;
    if (!hdsoft_type_is_half(type) || type.bits == 16)
        emit_comparison(parser, form, &comparison, sources, p, q);
    else
        compare_halves(parser, statement, type, form, &comparison, sources, p,
                       q == HDSOFT_ABSENT ? hdsoft_register_new(parser, 1) : q);
}

/* What set writes for true: 1 of a floating type, all bits of an integer. */
static uint32_t truth_of(hdsoft_type type)
{
    return type.kind == 'e' || type.kind == 'y'   ? 0x3f80
           : type.kind == 'x' || type.bits == 16 ? (type.kind == 'f' || type.kind == 'x' ? 0x3c00 : 0xffff)
           : type.kind == 'f'                     ? 0x3f800000
                                                  : UINT32_MAX;
}

void hdsoft_decode_set(hdsoft_parser *parser, hdsoft_statement *statement)
{
    hdsoft_type to = hdsoft_type_of(statement, 0), from = hdsoft_type_of(statement, 1);
    comparison_form comparison;
    int32_t sources[3];
    bool pair = hdsoft_type_is_half(from) && from.bits == 32;
    if ((to.bits != 32 && to.bits != 16) || (pair && to.bits != 32)) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    const hdsoft_form *form = compare_sources(parser, statement, from, &comparison, sources);
    if (!form)
        return;
    int32_t guard = parser->guard, p = hdsoft_register_new(parser, 1), q = HDSOFT_ABSENT;
    parser->guard = HDSOFT_ABSENT;
    if (pair)
        compare_halves(parser, statement, from, form, &comparison, sources, p, q = hdsoft_register_new(parser, 1));
    else
        emit_comparison(parser, form, &comparison, sources, p, HDSOFT_ABSENT);
    int32_t destination = hdsoft_define(parser, &statement->argument[0].value, to.bits == 32 ? 'w' : 'h', 0);
    uint32_t truth = pair ? truth_of(to) & 0xffff : truth_of(to);
    int32_t yes = hdsoft_constant(parser, 32, truth), no = hdsoft_constant(parser, 32, 0);
    if (pair) {
        int32_t low = hdsoft_register_new(parser, 32), high = hdsoft_register_new(parser, 32);
        hdsoft_emit_named(parser, "selp_32", low, yes, no, p);
        hdsoft_emit_named(parser, "selp_32", high, yes, no, q);
        parser->guard = guard;
        hdsoft_emit_named(parser, "pack_32_2", destination, low, high, HDSOFT_ABSENT);
        return;
    }
    parser->guard = guard;
    hdsoft_emit_named(parser, "selp_32", destination, yes, no, p);
}

void hdsoft_decode_select(hdsoft_parser *parser, hdsoft_statement *statement)
{
    hdsoft_type type = hdsoft_type_of(statement, 0);
    if (statement->arguments != 4 || type.bits < 16 || type.bits > 64) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    char letter = letter_of(type);
    int32_t to = hdsoft_define(parser, &statement->argument[0].value, letter, 0);
    int32_t a = hdsoft_use(parser, &statement->argument[1].value, letter, 1);
    int32_t b = hdsoft_use(parser, &statement->argument[2].value, letter, 2);
    int32_t p = hdsoft_use(parser, &statement->argument[3].value, 'p', 3);
    hdsoft_emit_named(parser, type.bits == 64 ? "selp_64" : "selp_32", to, a, b, p);
}

void hdsoft_decode_select_sign(hdsoft_parser *parser, hdsoft_statement *statement)
{
    hdsoft_type type = hdsoft_type_of(statement, 0), by = hdsoft_type_of(statement, 1);
    if (statement->arguments != 4 || type.bits < 16 || type.bits > 64 || by.bits != 32) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    char letter = letter_of(type);
    int32_t to = hdsoft_define(parser, &statement->argument[0].value, letter, 0);
    int32_t a = hdsoft_use(parser, &statement->argument[1].value, letter, 1);
    int32_t b = hdsoft_use(parser, &statement->argument[2].value, letter, 2);
    int32_t c = hdsoft_use(parser, &statement->argument[3].value, letter_of(by), 3);
    int32_t p = hdsoft_register_new(parser, 1);
    const char *test = by.kind != 'f'                 ? "setp_ge_s32"
                       : hdsoft_has(statement, "ftz") ? "setp_ge_ftz_f32"
                                                      : "setp_ge_f32";
    hdsoft_emit_temporary(parser, test, p, c, hdsoft_constant(parser, 32, 0), HDSOFT_ABSENT);
    hdsoft_emit_named(parser, type.bits == 64 ? "selp_64" : "selp_32", to, a, b, p);
}
