/* SPDX-License-Identifier: MIT */
/* Loads, stores, atomics and the arithmetic of address spaces. */
#include <stdio.h>
#include <string.h>

#include "soft/exec/watch.h"
#include "soft/ptx/parser.h"

/* Which state space the modifiers name. */
static hdsoft_space space_of(const hdsoft_statement *statement)
{
    static const struct {
        const char *name;
        hdsoft_space space;
    } spaces[] = {
        {"global", HDSOFT_SPACE_GLOBAL},           {"const", HDSOFT_SPACE_CONSTANT},
        {"shared", HDSOFT_SPACE_SHARED},           {"shared::cta", HDSOFT_SPACE_SHARED},
        {"shared::cluster", HDSOFT_SPACE_SHARED},  {"local", HDSOFT_SPACE_LOCAL},
        {"param", HDSOFT_SPACE_PARAMETER},         {"param::entry", HDSOFT_SPACE_PARAMETER},
        {"param::func", HDSOFT_SPACE_PARAMETER},
    };
    for (unsigned m = 1; m < statement->modifiers; m++)
        for (unsigned i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
            if (strcmp(statement->modifier[m], spaces[i].name) == 0)
                return spaces[i].space;
    return HDSOFT_SPACE_GENERIC;
}

static unsigned vector_of(const hdsoft_statement *statement)
{
    for (unsigned m = 1; m < statement->modifiers; m++) {
        const char *part = statement->modifier[m];
        if (part[0] == 'v' && (part[1] == '2' || part[1] == '4' || part[1] == '8') && part[2] == '\0')
            return (unsigned)(part[1] - '0');
    }
    return 1;
}

int32_t hdsoft_use_base(hdsoft_parser *parser, const hdsoft_argument *argument)
{
    hdsoft_value base = argument->value;
    base.addend = 0;
    switch (base.kind) {
    case HDSOFT_VALUE_REGISTER:
        if (base.bits == 32) { /* shared, local and parameter addresses may have 32 bits */
            int32_t wide = hdsoft_register_new(parser, 64);
            hdsoft_emit_temporary(parser, "cvt_u64_u32", wide, base.reg, HDSOFT_ABSENT, HDSOFT_ABSENT);
            return wide;
        }
        return hdsoft_use(parser, &base, 'q', 1);
    case HDSOFT_VALUE_INTEGER:
        return hdsoft_constant(parser, 64, base.integer);
    case HDSOFT_VALUE_SYMBOL:
        return hdsoft_use_symbol(parser, &base, 64);
    default:
        hdsoft_parser_fail(parser, 218, parser->statement.line, "'%s' has no address", parser->statement.modifier[0]);
        return HDSOFT_CONSTANT_BIT;
    }
}

/* One memory access: where, and how each element is kept. */
typedef struct access_form {
    hdsoft_space space;
    hdsoft_type type;
    unsigned vector;
    int32_t base;     /* ABSENT: a parameter at a known place */
    int64_t offset;
    char name[48];
} access_form;

static const char *width_name(hdsoft_type type, bool load)
{
    switch (type.bits) {
    case 8:
        return !load ? "8" : type.kind == 's' ? "s8" : "u8";
    case 16:
        return !load ? "16" : type.kind == 's' ? "s16" : "u16";
    case 32:
        return "32";
    default:
        return "64";
    }
}

/* A parameter named outright: kernels read the launch's block, functions the cells of their frame. */
static bool parameter_access(hdsoft_parser *parser, const hdsoft_argument *argument, access_form *access,
                             const char **where)
{
    bool entry = parser->program->functions[parser->function].entry;
    *where = entry ? "kernel" : "cell";
    if (argument->value.kind != HDSOFT_VALUE_SYMBOL) {
        access->base = hdsoft_use_base(parser, argument);
        access->offset = argument->value.addend;
        return true;
    }
    const hdsoft_symbol *symbol = &parser->symbols[argument->value.symbol];
    uint64_t bytes = (uint64_t)access->type.bits / 8 * access->vector;
    int64_t addend = argument->value.addend;
    if (symbol->binding != HDSOFT_BIND_CELL && symbol->binding != HDSOFT_BIND_PARAMETER) {
        hdsoft_parser_fail(parser, 218, parser->statement.line, "the address is not that of a parameter");
        return false;
    }
    if (addend < 0 || (uint64_t)addend + bytes > symbol->size) {
        hdsoft_parser_fail(parser, 218, parser->statement.line,
                           "%llu bytes at %lld lie outside of the parameter's %llu", (unsigned long long)bytes,
                           (long long)addend, (unsigned long long)symbol->size);
        return false;
    }
    *where = symbol->binding == HDSOFT_BIND_CELL ? "cell" : "kernel";
    access->base = HDSOFT_ABSENT;
    access->offset = addend + (int64_t)symbol->index;
    return true;
}

static bool read_access(hdsoft_parser *parser, hdsoft_statement *statement, const hdsoft_argument *argument,
                        bool load, access_form *access)
{
    access->space = space_of(statement);
    access->type = hdsoft_type_of(statement, 0);
    access->vector = vector_of(statement);
    unsigned bits = access->type.bits;
    if (bits < 8 || bits > 64 || access->vector > 4 || !argument->address || access->type.kind == 'p')
        return false;
    const char *where = "generic";
    if (access->space == HDSOFT_SPACE_PARAMETER) {
        if (!parameter_access(parser, argument, access, &where))
            return true;
    } else {
        access->base = hdsoft_use_base(parser, argument);
        access->offset = argument->value.addend;
        if (access->space == HDSOFT_SPACE_SHARED)
            where = "shared";
        else if (access->space == HDSOFT_SPACE_LOCAL)
            where = "local";
    }
    snprintf(access->name, sizeof access->name, "%s_%s_%s", load ? "ld" : "st", where, width_name(access->type, load));
    return true;
}

/* What the modifiers say about the order of an access; clang's volatile is .volatile or .relaxed.sys. */
static uint32_t order_of(const hdsoft_statement *statement)
{
    uint32_t flags = 0;
    if (hdsoft_has(statement, "acquire") || hdsoft_has(statement, "acq_rel"))
        flags |= HDSOFT_ACCESS_STRONG | HDSOFT_ACCESS_ACQUIRE;
    if (hdsoft_has(statement, "release") || hdsoft_has(statement, "acq_rel"))
        flags |= HDSOFT_ACCESS_STRONG | HDSOFT_ACCESS_RELEASE;
    if (hdsoft_has(statement, "volatile") || hdsoft_has(statement, "relaxed") || hdsoft_has(statement, "mmio"))
        flags |= HDSOFT_ACCESS_STRONG;
    return flags;
}

static bool is_global(hdsoft_space space)
{
    return space == HDSOFT_SPACE_GENERIC || space == HDSOFT_SPACE_GLOBAL || space == HDSOFT_SPACE_CONSTANT;
}

static void finish_access(hdsoft_parser *parser, hdsoft_instruction *instruction, const access_form *access,
                          uint32_t direction)
{
    if (!instruction)
        return;
    if (is_global(access->space))
        instruction->access = direction | order_of(&parser->statement) | access->type.bits / 8 * access->vector << 8;
    instruction->immediate = access->offset;
    instruction->option[0] = (uint8_t)access->vector;
    instruction->option[1] = (uint8_t)access->space;
    instruction->target = parser->program->range_count++;
}

void hdsoft_decode_load(hdsoft_parser *parser, hdsoft_statement *statement)
{
    access_form access;
    const hdsoft_form *form = NULL;
    if (statement->arguments >= 2 && read_access(parser, statement, &statement->argument[1], true, &access))
        form = parser->code ? NULL : hdsoft_form_find(parser, access.name);
    const hdsoft_argument *to = &statement->argument[0];
    if (!form || (access.vector > 1) != to->vector || (to->vector && to->elements != access.vector)) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    int32_t operands[HDSOFT_OPERANDS] = {access.base, HDSOFT_ABSENT, HDSOFT_ABSENT,
                                         HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT};
    unsigned widened = 0;
    for (unsigned i = 0; i < access.vector; i++) {
        const hdsoft_value *value = to->vector ? &to->element[i] : &to->value;
        bool wide = value->kind == HDSOFT_VALUE_REGISTER && value->bits == 64 && access.type.bits < 64;
        if (value->kind == HDSOFT_VALUE_SINK || wide) {
            operands[1 + i] = hdsoft_register_new(parser, access.type.bits == 64 ? 64 : 32);
            widened |= (unsigned)wide << i;
        } else if (value->kind != HDSOFT_VALUE_REGISTER || value->bits < access.type.bits || value->negated) {
            hdsoft_parser_fail(parser, 218, statement->line, "the destination does not hold %u bits", access.type.bits);
            return;
        } else {
            operands[1 + i] = value->reg;
        }
    }
    unsigned defines = ((1u << access.vector) - 1) << 1;
    finish_access(parser, hdsoft_emit_raw(parser, form, operands, defines, access.base != HDSOFT_ABSENT), &access,
                  HDSOFT_ACCESS_READ);
    for (unsigned i = 0; i < access.vector; i++)
        if (widened >> i & 1)
            hdsoft_emit_named(parser, access.type.kind == 's' ? "cvt_s64_s32" : "cvt_u64_u32",
                              to->vector ? to->element[i].reg : to->value.reg, operands[1 + i], HDSOFT_ABSENT,
                              HDSOFT_ABSENT);
}

void hdsoft_decode_store(hdsoft_parser *parser, hdsoft_statement *statement)
{
    access_form access;
    const hdsoft_form *form = NULL;
    if (statement->arguments >= 2 && read_access(parser, statement, &statement->argument[0], false, &access))
        form = parser->code ? NULL : hdsoft_form_find(parser, access.name);
    const hdsoft_argument *from = &statement->argument[1];
    if (!form || (access.vector > 1) != from->vector || (from->vector && from->elements != access.vector)) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    int32_t operands[HDSOFT_OPERANDS] = {access.base, HDSOFT_ABSENT, HDSOFT_ABSENT,
                                         HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT};
    for (unsigned i = 0; i < access.vector; i++)
        operands[1 + i] =
            hdsoft_use_column(parser, from->vector ? &from->element[i] : &from->value, access.type, 1);
    unsigned uses = ((1u << access.vector) - 1) << 1 | (access.base != HDSOFT_ABSENT);
    finish_access(parser, hdsoft_emit_raw(parser, form, operands, 0, uses), &access, HDSOFT_ACCESS_WRITE);
}

/* atom and red: "atom_generic_add_u32", with operands destination, base, b, c. */
void hdsoft_decode_atomic(hdsoft_parser *parser, hdsoft_statement *statement)
{
    static const char *const operations[] = {"add", "inc", "dec", "min", "max", "and", "or", "xor", "exch", "cas"};
    hdsoft_type type = hdsoft_type_of(statement, 0);
    hdsoft_space space = space_of(statement);
    bool reduce = strcmp(statement->modifier[0], "red") == 0;
    const char *operation = NULL;
    for (unsigned m = 1; m < statement->modifiers; m++)
        for (unsigned i = 0; i < sizeof operations / sizeof operations[0]; i++)
            if (strcmp(statement->modifier[m], operations[i]) == 0)
                operation = operations[i];
    char name[64], of[8] = "?";
    if (type.kind)
        hdsoft_type_name(type, of, sizeof of);
    snprintf(name, sizeof name, "atom_%s_%s_%s", space == HDSOFT_SPACE_SHARED ? "shared" : "generic",
             operation ? operation : "", of);
    const hdsoft_form *form = operation && vector_of(statement) == 1 ? hdsoft_form_signless(parser, name) : NULL;
    unsigned first = reduce ? 0 : 1;
    unsigned sources = form ? (unsigned)strlen(form->signature) - 3 : 0;
    bool usable =
        form && (space == HDSOFT_SPACE_SHARED || space == HDSOFT_SPACE_GENERIC || space == HDSOFT_SPACE_GLOBAL);
    if (!usable || statement->arguments != first + 1 + sources || !statement->argument[first].address) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    int32_t operands[HDSOFT_OPERANDS] = {HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT,
                                         HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT};
    unsigned uses = 2, defines = 0;
    if (!reduce && statement->argument[0].value.kind != HDSOFT_VALUE_SINK) {
        operands[0] = hdsoft_define(parser, &statement->argument[0].value, form->signature[0], 0);
        defines = 1;
    }
    operands[1] = hdsoft_use_base(parser, &statement->argument[first]);
    for (unsigned i = 0; i < sources; i++) {
        operands[2 + i] = hdsoft_use(parser, &statement->argument[first + 1 + i].value, form->signature[3 + i],
                                     first + 1 + i);
        uses |= 4u << i;
    }
    hdsoft_instruction *instruction = hdsoft_emit_raw(parser, form, operands, defines, uses);
    if (instruction) {
        instruction->immediate = statement->argument[first].value.addend;
        instruction->option[1] = (uint8_t)space;
        if (is_global(space))
            instruction->access = HDSOFT_ACCESS_READ | HDSOFT_ACCESS_WRITE | HDSOFT_ACCESS_STRONG |
                                  order_of(statement) | hdsoft_letter_bits(form->signature[3]) / 8 << 8;
        instruction->target = parser->program->range_count++;
    }
}

/* --- cp.async --- */

/* What may follow "cp.async.ca" and "cp.async.cg"; the hints among them have no effect. */
static bool is_copy(const hdsoft_statement *statement)
{
    static const char *const known[] = {"async", "ca", "cg", "shared", "shared::cta", "global", "L2::cache_hint",
                                        "L2::64B", "L2::128B", "L2::256B"};
    for (unsigned m = 1; m < statement->modifiers; m++) {
        bool found = false;
        for (unsigned i = 0; i < sizeof known / sizeof known[0] && !found; i++)
            found = strcmp(statement->modifier[m], known[i]) == 0;
        if (!found)
            return false;
    }
    return (hdsoft_has(statement, "ca") || hdsoft_has(statement, "cg")) && statement->arguments >= 3 &&
           statement->argument[0].address && statement->argument[1].address &&
           statement->argument[2].value.kind == HDSOFT_VALUE_INTEGER;
}

/* The base of an address with its addend. */
static int32_t use_address(hdsoft_parser *parser, const hdsoft_argument *argument)
{
    int32_t base = hdsoft_use_base(parser, argument);
    if (argument->value.addend == 0)
        return base;
    int32_t sum = hdsoft_register_new(parser, 64);
    hdsoft_emit_temporary(parser, "add_u64", sum, base,
                          hdsoft_constant(parser, 64, (uint64_t)argument->value.addend), HDSOFT_ABSENT);
    return sum;
}

void hdsoft_decode_copy(hdsoft_parser *parser, hdsoft_statement *statement)
{
    bool waits = hdsoft_has(statement, "commit_group") || hdsoft_has(statement, "wait_group") ||
                 hdsoft_has(statement, "wait_all");
    if (waits && hdsoft_has(statement, "async") && statement->modifiers == 3)
        return; /* the copy was made at once */
    uint64_t size = statement->argument[2].value.integer;
    if (!is_copy(statement) || (size != 4 && size != 8 && size != 16)) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    int32_t to = use_address(parser, &statement->argument[0]), from = hdsoft_use_base(parser, &statement->argument[1]);
    int32_t count = hdsoft_constant(parser, 32, size), ignore = HDSOFT_ABSENT;
    unsigned optional = statement->arguments - 3 - hdsoft_has(statement, "L2::cache_hint");
    if (optional == 1) {
        const hdsoft_value *value = &statement->argument[3].value;
        if (value->kind == HDSOFT_VALUE_REGISTER && value->bits == 1)
            ignore = hdsoft_use(parser, value, 'p', 3);
        else
            count = hdsoft_use(parser, value, 'w', 3);
    } else if (optional != 0) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    hdsoft_instruction *instruction =
        parser->code ? NULL : hdsoft_emit_named(parser, "cp_async", to, from, count, ignore);
    if (instruction) {
        instruction->immediate = statement->argument[1].value.addend;
        instruction->option[0] = (uint8_t)size;
        instruction->option[1] = HDSOFT_SPACE_GLOBAL;
        instruction->access = HDSOFT_ACCESS_READ | HDSOFT_ACCESS_COPY | (uint32_t)size << 8;
        instruction->target = parser->program->range_count++;
    }
}

/* --- cvta and isspacep: windows are added and taken away; global and constant addresses are generic already --- */

static uint64_t window_of(hdsoft_space space)
{
    return space == HDSOFT_SPACE_SHARED  ? HDSOFT_WINDOW_SHARED
           : space == HDSOFT_SPACE_LOCAL ? HDSOFT_WINDOW_LOCAL
           : space == HDSOFT_SPACE_PARAMETER ? HDSOFT_WINDOW_PARAMETER
                                             : 0;
}

void hdsoft_decode_address(hdsoft_parser *parser, hdsoft_statement *statement)
{
    hdsoft_space space = space_of(statement);
    uint64_t window = window_of(space);
    if (hdsoft_has(statement, "to"))
        window = 0 - window;
    hdsoft_type type = hdsoft_type_of(statement, 0);
    if (statement->arguments != 2 || type.bits != 64 || space == HDSOFT_SPACE_GENERIC ||
        statement->argument[1].address ||
        (space == HDSOFT_SPACE_PARAMETER && !parser->program->functions[parser->function].entry)) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    int32_t to = hdsoft_define(parser, &statement->argument[0].value, 'q', 0);
    int32_t from = hdsoft_use(parser, &statement->argument[1].value, 'q', 1);
    if (window)
        hdsoft_emit_named(parser, "add_u64", to, from, hdsoft_constant(parser, 64, window), HDSOFT_ABSENT);
    else
        hdsoft_emit_named(parser, "mov_64", to, from, HDSOFT_ABSENT, HDSOFT_ABSENT);
}

void hdsoft_decode_is_space(hdsoft_parser *parser, hdsoft_statement *statement)
{
    hdsoft_space space = space_of(statement);
    if (statement->arguments != 2 || space == HDSOFT_SPACE_GENERIC) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    int32_t p = hdsoft_define(parser, &statement->argument[0].value, 'p', 0);
    int32_t address = hdsoft_use(parser, &statement->argument[1].value, 'q', 1);
    hdsoft_instruction *instruction =
        hdsoft_emit_named(parser, "isspacep", p, address, HDSOFT_ABSENT, HDSOFT_ABSENT);
    if (instruction) {
        instruction->immediate = (int64_t)window_of(space);
        instruction->option[1] = (uint8_t)space;
    }
}
