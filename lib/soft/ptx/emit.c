/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/exec/follow.h"
#include "soft/ptx/parser.h"

bool hdsoft_forms_begin(hdsoft_parser *parser)
{
    static const char *const flow[] = {"bra", "bra_if", "brx", "exit", "ret"};
    parser->forms = hdsoft_forms_of(parser->level);
    if (!parser->forms) {
        hdsoft_parser_fail(parser, 2, 0, "out of memory");
        return false;
    }
    parser->form_rounded = hdsoft_form_find(parser, "rounded");
    parser->form_poison = hdsoft_form_find(parser, "poison");
    for (unsigned i = 0; i < sizeof flow / sizeof flow[0]; i++)
        parser->flow_handlers[i + 1] = hdsoft_form_find(parser, flow[i])->handler;
    return true;
}

const hdsoft_form *hdsoft_form_find(const hdsoft_parser *parser, const char *name)
{
    return hdsoft_forms_find(parser->forms, name);
}

unsigned hdsoft_letter_bits(char letter)
{
    switch (letter) {
    case 'h':
        return 16;
    case 'q':
    case 'd':
        return 64;
    case 'p':
        return 1;
    default:
        return 32;
    }
}

hdsoft_instruction *hdsoft_emit_raw(hdsoft_parser *parser, const hdsoft_form *form, const int32_t *operands,
                                    unsigned defines, unsigned uses)
{
    hdsoft_program *program = parser->program;
    uint32_t at = program->code_count;
    if (!hdsoft_parser_room(parser, &program->code, &parser->room.code, at, sizeof *program->code) ||
        !hdsoft_parser_room(parser, &program->origins, &parser->room.origins, at, sizeof *program->origins) ||
        !hdsoft_parser_room(parser, &program->effects, &parser->room.effects, at, sizeof *program->effects))
        return NULL;
    hdsoft_instruction *instruction = &program->code[at];
    *instruction = (hdsoft_instruction){
        .handler = form->handler, .guard = parser->guard, .guard_negated = parser->guard_negated};
    for (unsigned i = 0; i < HDSOFT_OPERANDS; i++) {
        bool present = (defines | uses) >> i & 1;
        bool column = present && (operands[i] == HDSOFT_ABSENT || operands[i] < 0);
        instruction->operand[i] = present ? operands[i] : HDSOFT_ABSENT;
        if (column) {
            defines &= ~(1u << i);
            uses &= ~(1u << i);
        }
    }
    program->effects[at] = (hdsoft_effect){(uint8_t)defines, (uint8_t)uses, hdsoft_flow_of(form->name)};
    program->origins[at] = (hdsoft_origin){parser->statement.line, parser->location};
    program->code_count++;
    return instruction;
}

hdsoft_instruction *hdsoft_emit(hdsoft_parser *parser, const hdsoft_form *form, const int32_t *operands)
{
    unsigned defines = 0, uses = 0, count = 0;
    bool left = true;
    for (const char *letter = form->signature; *letter && count < HDSOFT_OPERANDS; letter++) {
        if (*letter == ':')
            left = false;
        else
            *(left ? &defines : &uses) |= 1u << count++;
    }
    return hdsoft_emit_raw(parser, form, operands, defines, uses);
}

hdsoft_instruction *hdsoft_emit_named(hdsoft_parser *parser, const char *name, int32_t a, int32_t b, int32_t c,
                                      int32_t d)
{
    const int32_t operands[HDSOFT_OPERANDS] = {a, b, c, d, HDSOFT_ABSENT, HDSOFT_ABSENT};
    const hdsoft_form *form = hdsoft_form_find(parser, name);
    if (!form) {
        hdsoft_emit_poison(parser, "'%s' is not supported", name);
        return NULL;
    }
    return hdsoft_emit(parser, form, operands);
}

hdsoft_instruction *hdsoft_emit_temporary(hdsoft_parser *parser, const char *name, int32_t a, int32_t b, int32_t c,
                                          int32_t d)
{
    int32_t guard = parser->guard;
    parser->guard = HDSOFT_ABSENT;
    hdsoft_instruction *instruction = hdsoft_emit_named(parser, name, a, b, c, d);
    parser->guard = guard;
    return instruction;
}

void hdsoft_emit_poison(hdsoft_parser *parser, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int prefix = snprintf(text, sizeof text, "line %u: ", parser->statement.line);
    vsnprintf(text + prefix, sizeof text - (size_t)prefix, format, arguments);
    va_end(arguments);
    static const int32_t none[HDSOFT_OPERANDS] = {HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT,
                                                  HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT};
    hdsoft_program *program = parser->program;
    if (!hdsoft_parser_room(parser, &program->messages, &parser->room.messages, program->message_count,
                            sizeof *program->messages))
        return;
    char *copy = hdsoft_parser_copy(parser, text, strlen(text));
    if (!copy)
        return;
    program->messages[program->message_count++] = copy;
    hdsoft_instruction *instruction = hdsoft_emit(parser, parser->form_poison, none);
    if (instruction)
        instruction->target = program->message_count - 1;
}

/* A new broadcast column, or HDSOFT_NONE. */
static uint32_t new_column(hdsoft_parser *parser, unsigned bits, uint64_t value)
{
    hdsoft_program *program = parser->program;
    uint32_t bytes = bits == 64 ? HDSOFT_LANES * 8 : HDSOFT_LANES * 4;
    while (program->constant_bytes + bytes > parser->room.constants) {
        uint32_t room = parser->room.constants ? parser->room.constants * 2 : 4096;
        unsigned char *grown = room < (1u << 30) ? realloc(program->constants, room) : NULL;
        if (!grown) {
            hdsoft_parser_fail(parser, 2, parser->statement.line, "out of memory");
            return HDSOFT_NONE;
        }
        program->constants = grown;
        parser->room.constants = room;
    }
    uint32_t offset = program->constant_bytes;
    for (unsigned lane = 0; lane < HDSOFT_LANES; lane++) {
        uint32_t low = (uint32_t)value;
        if (bits == 64)
            memcpy(program->constants + offset + lane * 8, &value, 8);
        else
            memcpy(program->constants + offset + lane * 4, &low, 4);
    }
    program->constant_bytes += bytes;
    return offset;
}

int32_t hdsoft_constant(hdsoft_parser *parser, unsigned bits, uint64_t value)
{
    unsigned column = bits == 64 ? 64 : 32;
    if (bits == 1)
        value = value ? HDSOFT_ALL_LANES : 0;
    else if (bits < 64)
        value &= (UINT64_C(1) << bits) - 1;
    uint32_t *slot = hdsoft_map_slot(parser, &parser->constants, column, value);
    if (!slot)
        return HDSOFT_CONSTANT_BIT;
    if (*slot == HDSOFT_NONE) {
        uint32_t offset = new_column(parser, column, value);
        *slot = offset == HDSOFT_NONE ? 0 : offset;
    }
    return (int32_t)(*slot | (uint32_t)HDSOFT_CONSTANT_BIT);
}

int32_t hdsoft_constant_address(hdsoft_parser *parser, unsigned bits, hdsoft_symbol_kind kind, uint32_t symbol,
                                int64_t addend)
{
    hdsoft_program *program = parser->program;
    uint64_t key = ((uint64_t)kind + 1) << 56 | (uint64_t)bits << 40 | symbol;
    uint32_t *slot = hdsoft_map_slot(parser, &parser->constants, key, (uint64_t)addend);
    if (!slot)
        return HDSOFT_CONSTANT_BIT;
    if (*slot == HDSOFT_NONE) {
        uint32_t offset = new_column(parser, bits, 0);
        *slot = offset == HDSOFT_NONE ? 0 : offset;
        if (offset != HDSOFT_NONE && hdsoft_parser_room(parser, &program->relocations, &parser->room.relocations,
                                                        program->relocation_count, sizeof *program->relocations))
            program->relocations[program->relocation_count++] = (hdsoft_relocation){
                .kind = kind, .symbol = symbol, .in_constants = true, .width = bits == 64 ? 8 : 4, .offset = offset,
                .addend = addend};
    }
    return (int32_t)(*slot | (uint32_t)HDSOFT_CONSTANT_BIT);
}

void hdsoft_reference_add(hdsoft_parser *parser, uint32_t to)
{
    if (parser->function == HDSOFT_NONE ||
        !hdsoft_parser_room(parser, &parser->references, &parser->room.references, parser->reference_count,
                            sizeof *parser->references))
        return;
    for (uint32_t i = parser->reference_count, n = 0; i-- > 0 && n < 4; n++)
        if (parser->references[i].from == parser->function && parser->references[i].to == to)
            return;
    parser->references[parser->reference_count].from = parser->function;
    parser->references[parser->reference_count++].to = to;
}

void hdsoft_address_taken(hdsoft_parser *parser, uint32_t function)
{
    uint32_t kept = parser->function;
    parser->function = HDSOFT_ANY_ADDRESS_TAKEN;
    hdsoft_reference_add(parser, function);
    parser->function = kept;
}

int32_t hdsoft_use_symbol(hdsoft_parser *parser, const hdsoft_value *value, unsigned bits)
{
    hdsoft_symbol symbol = parser->symbols[value->symbol];
    const hdsoft_name *name = &parser->names[symbol.name];
    int32_t temporary;
    hdsoft_instruction *instruction;
    switch (symbol.binding) {
    case HDSOFT_BIND_GLOBAL:
        return hdsoft_constant_address(parser, bits, HDSOFT_SYMBOL_GLOBAL, symbol.index, value->addend);
    case HDSOFT_BIND_FUNCTION:
        hdsoft_reference_add(parser, symbol.index);
        hdsoft_address_taken(parser, symbol.index);
        return hdsoft_constant_address(parser, bits, HDSOFT_SYMBOL_FUNCTION, symbol.index, value->addend);
    case HDSOFT_BIND_SHARED:
        hdsoft_reference_add(parser, symbol.index | 1u << 31);
        if (!parser->program->shared[symbol.index].dynamic)
            return hdsoft_constant_address(parser, bits, HDSOFT_SYMBOL_SHARED, symbol.index, value->addend);
        break;
    case HDSOFT_BIND_LOCAL:
        break;
    case HDSOFT_BIND_PARAMETER:
        return hdsoft_constant(parser, bits, symbol.index + (uint64_t)value->addend);
    case HDSOFT_BIND_TABLE:
        return hdsoft_constant(parser, bits, symbol.index);
    default:
        hdsoft_parser_fail(parser, 218, parser->statement.line, "'%.*s' has no address that can be taken",
                           (int)name->length, name->text);
        return HDSOFT_CONSTANT_BIT;
    }
    temporary = hdsoft_register_new(parser, bits);
    instruction = hdsoft_emit_temporary(parser,
                                        symbol.binding == HDSOFT_BIND_LOCAL
                                            ? (bits == 64 ? "local_address_64" : "local_address_32")
                                            : (bits == 64 ? "dynamic_shared_64" : "dynamic_shared_32"),
                                        temporary, HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT);
    if (instruction)
        instruction->immediate = value->addend + (symbol.binding == HDSOFT_BIND_LOCAL ? (int64_t)symbol.index : 0);
    return temporary;
}

static bool bits_fit(unsigned have, char letter)
{
    if (letter == 'w') /* a 16-bit or 8-bit register lives in the same column; b8 has no arithmetic of its own */
        return have == 32;
    if (letter == 'h')
        return have == 16 || have == 8;
    return have == hdsoft_letter_bits(letter);
}

static int32_t wrong_width(hdsoft_parser *parser, const hdsoft_value *value, char letter, unsigned number)
{
    unsigned wanted = hdsoft_letter_bits(letter);
    if (wanted == 1)
        hdsoft_parser_fail(parser, 218, parser->statement.line, "operand %u of '%s' must be a predicate", number + 1,
                           parser->statement.modifier[0]);
    else
        hdsoft_parser_fail(parser, 218, parser->statement.line, "operand %u of '%s' has %u bits, expected %u",
                           number + 1, parser->statement.modifier[0], value->bits, wanted);
    return HDSOFT_CONSTANT_BIT;
}

static uint64_t float_bits(const hdsoft_value *value, bool wide)
{
    double as_double;
    float as_float;
    if (value->kind == HDSOFT_VALUE_INTEGER) {
        as_double = (double)(int64_t)value->integer;
        as_float = (float)as_double;
    } else if (value->single) {
        uint32_t bits = (uint32_t)value->integer;
        memcpy(&as_float, &bits, sizeof bits);
        if (!wide)
            return bits;
        as_double = as_float;
    } else {
        memcpy(&as_double, &value->integer, sizeof as_double);
        if (wide)
            return value->integer;
        as_float = (float)as_double;
    }
    uint64_t result = 0;
    if (wide)
        memcpy(&result, &as_double, sizeof as_double);
    else
        memcpy(&result, &as_float, sizeof as_float);
    return result;
}

static int32_t use_constant(hdsoft_parser *parser, const hdsoft_value *value, char letter)
{
    unsigned bits = hdsoft_letter_bits(letter);
    if (letter == 'f' || letter == 'd')
        return hdsoft_constant(parser, bits, float_bits(value, letter == 'd'));
    if (value->kind == HDSOFT_VALUE_FLOAT) /* mov.b32 %r1, 0f3F800000 */
        return hdsoft_constant(parser, bits, float_bits(value, bits == 64));
    return hdsoft_constant(parser, bits, value->negated ? !value->integer : value->integer);
}

int32_t hdsoft_use(hdsoft_parser *parser, const hdsoft_value *value, char letter, unsigned number)
{
    unsigned bits = hdsoft_letter_bits(letter);
    switch (value->kind) {
    case HDSOFT_VALUE_REGISTER:
        if (!bits_fit(value->bits, letter))
            return wrong_width(parser, value, letter, number);
        if (!value->negated)
            return value->reg;
        int32_t inverse = hdsoft_register_new(parser, 1);
        hdsoft_emit_temporary(parser, "not_pred", inverse, value->reg, HDSOFT_ABSENT, HDSOFT_ABSENT);
        return inverse;
    case HDSOFT_VALUE_INTEGER:
    case HDSOFT_VALUE_FLOAT:
        return use_constant(parser, value, letter);
    case HDSOFT_VALUE_SYMBOL:
        if (bits < 32)
            break;
        return hdsoft_use_symbol(parser, value, bits);
    case HDSOFT_VALUE_SPECIAL: {
        int32_t copy = hdsoft_register_new(parser, bits);
        hdsoft_instruction *instruction = hdsoft_emit_temporary(parser, bits == 64 ? "special_64" : "special_32", copy,
                                                            HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT);
        if (instruction)
            instruction->immediate = value->symbol;
        return copy;
    }
    default:
        break;
    }
    hdsoft_parser_fail(parser, 218, parser->statement.line, "operand %u of '%s' cannot be read", number + 1,
                       parser->statement.modifier[0]);
    return HDSOFT_CONSTANT_BIT;
}

int32_t hdsoft_define(hdsoft_parser *parser, const hdsoft_value *value, char letter, unsigned number)
{
    if (value->kind == HDSOFT_VALUE_SINK)
        return hdsoft_register_new(parser, hdsoft_letter_bits(letter));
    if (value->kind != HDSOFT_VALUE_REGISTER || value->negated) {
        hdsoft_parser_fail(parser, 218, parser->statement.line, "operand %u of '%s' must be a register", number + 1,
                           parser->statement.modifier[0]);
        return 0;
    }
    if (!bits_fit(value->bits, letter))
        wrong_width(parser, value, letter, number);
    return value->reg;
}
