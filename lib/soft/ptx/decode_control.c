/* SPDX-License-Identifier: MIT */
/* Branches, calls, barriers and warp-wide operations. */
#include <stdio.h>
#include <string.h>

#include "soft/exec/watch.h"
#include "soft/ptx/parser.h"

static const int32_t no_operands[HDSOFT_OPERANDS] = {HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT,
                                                     HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT};

void hdsoft_decode_branch(hdsoft_parser *parser, hdsoft_statement *statement)
{
    hdsoft_token label = parser->lexer.token;
    if (label.kind != HDSOFT_TOKEN_WORD) {
        hdsoft_parser_fail(parser, 218, statement->line, "'bra' needs a label");
        return;
    }
    hdsoft_lexer_next(&parser->lexer);
    hdsoft_parser_expect_sign(parser, ';');
    int32_t guard = parser->guard;
    parser->guard = HDSOFT_ABSENT;
    uint32_t at = parser->program->code_count;
    hdsoft_instruction *branch = hdsoft_emit_named(parser, guard == HDSOFT_ABSENT ? "bra" : "bra_if", guard,
                                                   HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT);
    if (branch)
        branch->option[0] = parser->guard_negated;
    hdsoft_label_wanted(parser, &label, at, false);
}

/* brx.idx index, table; */
void hdsoft_decode_branch_table(hdsoft_parser *parser, hdsoft_statement *statement)
{
    hdsoft_parse_arguments(parser, statement);
    const hdsoft_value *list = &statement->argument[1].value;
    if (parser->code)
        return;
    if (statement->arguments != 2 || list->kind != HDSOFT_VALUE_SYMBOL ||
        parser->symbols[list->symbol].binding != HDSOFT_BIND_TABLE) {
        hdsoft_parser_fail(parser, 218, statement->line, "'brx.idx' needs an index and a .branchtargets list");
        return;
    }
    uint32_t opened = hdsoft_guard_open(parser);
    int32_t index = hdsoft_use(parser, &statement->argument[0].value, 'w', 0);
    hdsoft_instruction *branch =
        hdsoft_emit_named(parser, "brx", index, HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT);
    if (branch)
        branch->target = parser->symbols[list->symbol].index;
    hdsoft_guard_close(parser, opened);
}

/* name: .branchtargets a, b, c; with ".branchtargets" already read. */
void hdsoft_parse_branch_targets(hdsoft_parser *parser, const hdsoft_token *label)
{
    hdsoft_program *program = parser->program;
    if (!hdsoft_parser_room(parser, &program->tables, &parser->room.tables, program->table_count,
                            sizeof *program->tables))
        return;
    hdsoft_branch_table *table = &program->tables[program->table_count];
    *table = (hdsoft_branch_table){program->branch_target_count, 0};
    do {
        hdsoft_token target = parser->lexer.token;
        if (target.kind != HDSOFT_TOKEN_WORD) {
            hdsoft_parser_fail(parser, 218, target.line, ".branchtargets needs labels");
            return;
        }
        if (!hdsoft_parser_room(parser, &program->branch_targets, &parser->room.branch_targets,
                                program->branch_target_count, sizeof *program->branch_targets))
            return;
        program->branch_targets[program->branch_target_count] = 0;
        hdsoft_label_wanted(parser, &target, program->branch_target_count++, true);
        table->count++;
        hdsoft_lexer_next(&parser->lexer);
    } while (hdsoft_parser_accept_sign(parser, ','));
    hdsoft_parser_expect_sign(parser, ';');
    hdsoft_symbol_bind(parser, hdsoft_name_intern(parser, label->text, label->length), HDSOFT_BIND_TABLE,
                       program->table_count++);
}

/* name: .callprototype ...; and .calltargets: the engine checks calls when they happen. */
void hdsoft_parse_prototype(hdsoft_parser *parser, const hdsoft_token *label)
{
    hdsoft_symbol_bind(parser, hdsoft_name_intern(parser, label->text, label->length), HDSOFT_BIND_PROTOTYPE, 0);
    hdsoft_parser_skip_statement(parser);
}

void hdsoft_decode_leave(hdsoft_parser *parser, hdsoft_statement *statement)
{
    const char *name = statement->modifier[0];
    bool ret = strcmp(name, "ret") == 0;
    const hdsoft_function *function = &parser->program->functions[parser->function];
    if (ret && function->entry) {
        name = "exit";
    } else if (ret) { /* return values that are registers go to their cells now */
        for (uint32_t i = 0; i < function->return_count; i++) {
            hdsoft_formal reg = parser->register_formals[i];
            if (reg.size == 0)
                continue;
            int32_t operands[HDSOFT_OPERANDS] = {HDSOFT_ABSENT, (int32_t)reg.offset, HDSOFT_ABSENT,
                                                 HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT};
            hdsoft_instruction *store = hdsoft_emit_raw(
                parser, hdsoft_form_find(parser, reg.size == 64 ? "st_cell_64" : "st_cell_32"), operands, 0, 2);
            if (store) {
                store->option[0] = 1;
                store->immediate = parser->program->functions[parser->function].formals[i].offset;
            }
        }
    }
    hdsoft_emit_named(parser, name, HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT);
}

/* Fences order nothing that is not ordered here; hints have no effect. nanosleep lets others go first, and takes its
 * time on a virtual clock. */
void hdsoft_decode_nothing(hdsoft_parser *parser, hdsoft_statement *statement)
{
    const char *name = statement->modifier[0];
    if (strcmp(name, "fence") == 0 || strcmp(name, "membar") == 0) {
        hdsoft_instruction *fence =
            hdsoft_emit_named(parser, "fence", HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT);
        if (fence && !hdsoft_has(statement, "cta"))
            fence->access = HDSOFT_ACCESS_FENCE;
    } else if (strcmp(name, "nanosleep") == 0) {
        int32_t time = hdsoft_use(parser, &statement->argument[0].value, 'w', 0);
        hdsoft_emit_named(parser, "nanosleep", time, HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT);
    }
}

/* bar and barrier: operands result, barrier, threads, predicate; option[0] says what happens. */
void hdsoft_decode_barrier(hdsoft_parser *parser, hdsoft_statement *statement)
{
    enum { SYNC, ARRIVE, COUNT, ALL, ANY };
    int32_t operands[HDSOFT_OPERANDS];
    memcpy(operands, no_operands, sizeof operands);
    unsigned arguments = statement->arguments, next = 0, defines = 0, uses = 2, kind = SYNC;
    if (hdsoft_has(statement, "warp")) {
        if (arguments == 1)
            operands[5] = hdsoft_use(parser, &statement->argument[0].value, 'w', 0);
        const hdsoft_form *form = hdsoft_form_find(parser, "barrier_warp");
        if (arguments != 1 || !form)
            hdsoft_decode_unknown(parser, statement);
        else
            hdsoft_emit_raw(parser, form, operands, 0, 1u << 5);
        return;
    }
    bool reduce = hdsoft_has(statement, "red");
    if (reduce)
        kind = hdsoft_has(statement, "popc") ? COUNT : hdsoft_has(statement, "and") ? ALL : ANY;
    else if (hdsoft_has(statement, "arrive"))
        kind = ARRIVE;
    unsigned least = kind == ARRIVE ? 2 : reduce ? 3 : 1, most = kind == ARRIVE ? 2 : reduce ? 4 : 2;
    if (hdsoft_has(statement, "cluster") || (kind == SYNC && !hdsoft_has(statement, "sync")) || arguments < least ||
        arguments > most) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    if (reduce) {
        operands[0] = hdsoft_define(parser, &statement->argument[next++].value, kind == COUNT ? 'w' : 'p', 0);
        defines = 1;
    }
    operands[1] = hdsoft_use(parser, &statement->argument[next].value, 'w', next);
    next++;
    if (next + reduce < arguments) {
        operands[2] = hdsoft_use(parser, &statement->argument[next].value, 'w', next);
        uses |= 4;
        next++;
    }
    if (reduce) {
        operands[3] = hdsoft_use(parser, &statement->argument[next].value, 'p', next);
        uses |= 8;
    }
    hdsoft_instruction *instruction =
        hdsoft_emit_raw(parser, hdsoft_form_find(parser, "barrier"), operands, defines, uses);
    if (instruction)
        instruction->option[0] = (uint8_t)kind;
}

/* --- shfl, vote, match, redux, activemask, elect: operands result, predicate, three sources, member mask --- */

static unsigned choice(const hdsoft_statement *statement, const char *const *names)
{
    for (unsigned n = 0; names[n]; n++)
        if (hdsoft_has(statement, names[n]))
            return n;
    return 255;
}

typedef struct warp_form {
    const char *name;
    unsigned option, sources, kind;
    char result; /* letter of the destination */
    char source; /* of the first source */
    bool mask;   /* a member mask follows */
} warp_form;

static bool read_warp_form(const hdsoft_statement *statement, warp_form *form)
{
    static const char *const shuffles[] = {"up", "down", "bfly", "idx", NULL};
    static const char *const votes[] = {"all", "any", "uni", "ballot", NULL};
    static const char *const matches[] = {"any", "all", NULL};
    static const char *const reductions[] = {"add", "min", "max", "and", "or", "xor", NULL};
    const char *name = statement->modifier[0];
    hdsoft_type type = hdsoft_type_of(statement, 0);
    *form = (warp_form){.name = name, .result = type.bits == 1 ? 'p' : type.bits == 64 ? 'q' : 'w', .source = 'w',
                        .mask = hdsoft_has(statement, "sync")};
    if (strcmp(name, "shfl") == 0) {
        form->option = choice(statement, shuffles);
        form->sources = 3;
    } else if (strcmp(name, "vote") == 0) {
        form->option = choice(statement, votes);
        form->sources = 1;
        form->source = 'p';
    } else if (strcmp(name, "match") == 0) {
        form->option = choice(statement, matches);
        form->sources = 1;
        form->source = type.bits == 64 ? 'q' : 'w';
        form->kind = type.bits == 64;
        form->result = 'w';
    } else if (strcmp(name, "redux") == 0) {
        form->option = choice(statement, reductions);
        form->kind = type.kind == 's';
        form->sources = 1;
        if (type.kind == 'f' || type.bits != 32)
            return false;
    } else if (strcmp(name, "elect") == 0) {
        form->result = 'w';
    } else { /* activemask */
        form->mask = false;
    }
    return form->option != 255;
}

void hdsoft_decode_warp(hdsoft_parser *parser, hdsoft_statement *statement)
{
    warp_form warp;
    const hdsoft_form *form = read_warp_form(statement, &warp) ? hdsoft_form_find(parser, warp.name) : NULL;
    if (!form || statement->arguments != 1 + warp.sources + warp.mask) {
        hdsoft_decode_unknown(parser, statement);
        return;
    }
    int32_t operands[HDSOFT_OPERANDS];
    memcpy(operands, no_operands, sizeof operands);
    const hdsoft_argument *to = &statement->argument[0];
    unsigned defines = 0, uses = 0;
    unsigned place = warp.result == 'p';
    operands[place] = hdsoft_define(parser, &to->value, warp.result, 0);
    defines |= 1u << place;
    if (to->pair.kind) {
        operands[1] = hdsoft_define(parser, &to->pair, 'p', 0);
        defines |= 2;
    }
    for (unsigned i = 0; i < warp.sources; i++) {
        operands[2 + i] = hdsoft_use(parser, &statement->argument[1 + i].value, i ? 'w' : warp.source, 1 + i);
        uses |= 4u << i;
    }
    if (warp.mask) {
        operands[5] = hdsoft_use(parser, &statement->argument[1 + warp.sources].value, 'w', 1 + warp.sources);
        uses |= 1u << 5;
    }
    hdsoft_instruction *instruction = hdsoft_emit_raw(parser, form, operands, defines, uses);
    if (instruction) {
        instruction->option[0] = (uint8_t)warp.option;
        instruction->option[1] = (uint8_t)warp.kind;
    }
}

/* --- call --- */

typedef struct call_form {
    hdsoft_value returned[16];
    unsigned returned_count;
    hdsoft_call call;
} call_form;

/* A register or constant argument goes through a cell of its own. */
static hdsoft_formal actual_in(hdsoft_parser *parser, const hdsoft_value *value)
{
    if (value->kind == HDSOFT_VALUE_SYMBOL && parser->symbols[value->symbol].binding == HDSOFT_BIND_CELL) {
        const hdsoft_symbol *symbol = &parser->symbols[value->symbol];
        return (hdsoft_formal){symbol->index, (uint32_t)symbol->size};
    }
    bool wide = value->kind == HDSOFT_VALUE_REGISTER ? value->bits == 64 : value->kind == HDSOFT_VALUE_SYMBOL;
    hdsoft_formal actual = {hdsoft_cells_new(parser, 8), wide ? 8 : 4};
    hdsoft_type type = {'b', wide ? 64 : value->kind == HDSOFT_VALUE_REGISTER && value->bits < 32 ? value->bits : 32};
    int32_t operands[HDSOFT_OPERANDS];
    memcpy(operands, no_operands, sizeof operands);
    operands[1] = hdsoft_use_column(parser, value, type, 0);
    hdsoft_instruction *store =
        hdsoft_emit_raw(parser, hdsoft_form_find(parser, wide ? "st_cell_64" : "st_cell_32"), operands, 0, 2);
    if (store) {
        store->option[0] = 1;
        store->immediate = actual.offset;
    }
    return actual;
}

static hdsoft_formal actual_out(hdsoft_parser *parser, const hdsoft_value *value)
{
    if (value->kind == HDSOFT_VALUE_SYMBOL && parser->symbols[value->symbol].binding == HDSOFT_BIND_CELL)
        return actual_in(parser, value);
    if (value->kind != HDSOFT_VALUE_REGISTER)
        hdsoft_parser_fail(parser, 218, parser->statement.line, "a return value of 'call' must be a variable");
    return (hdsoft_formal){hdsoft_cells_new(parser, 8), value->bits == 64 ? 8 : 4};
}

static void add_actual(hdsoft_parser *parser, hdsoft_formal actual)
{
    hdsoft_program *program = parser->program;
    if (hdsoft_parser_room(parser, &program->actuals, &parser->room.actuals, program->actual_count,
                           sizeof *program->actuals))
        program->actuals[program->actual_count++] = actual;
}

/* (a, b): the values between parentheses; returned ones are kept for after the call. */
static unsigned parse_actuals(hdsoft_parser *parser, call_form *form, bool returned)
{
    unsigned count = 0;
    if (hdsoft_parser_accept_sign(parser, ')'))
        return 0;
    do {
        hdsoft_value value;
        if (!hdsoft_parse_value(parser, &value))
            break;
        if (!returned) {
            add_actual(parser, actual_in(parser, &value));
        } else if (form->returned_count < 16) {
            form->returned[form->returned_count++] = value;
            add_actual(parser, actual_out(parser, &value));
        }
        count++;
    } while (parser->code == 0 && hdsoft_parser_accept_sign(parser, ','));
    hdsoft_parser_expect_sign(parser, ')');
    return count;
}

/* Return values that are registers come out of their cells. */
static void fetch_returned(hdsoft_parser *parser, const call_form *form)
{
    for (unsigned i = 0; i < form->returned_count && i < form->call.return_count; i++) {
        const hdsoft_value *value = &form->returned[i];
        if (value->kind != HDSOFT_VALUE_REGISTER)
            continue;
        int32_t operands[HDSOFT_OPERANDS];
        memcpy(operands, no_operands, sizeof operands);
        operands[1] = value->reg;
        hdsoft_instruction *load = hdsoft_emit_raw(
            parser, hdsoft_form_find(parser, value->bits == 64 ? "ld_cell_64" : "ld_cell_32"), operands, 2, 0);
        if (load) {
            load->option[0] = 1;
            load->immediate = parser->program->actuals[form->call.first_actual + i].offset;
        }
    }
}

/* CUDA's runtime for kernels, which a kernel calls to launch others; a driver has it from a library that is linked. */
static bool is_device_runtime(const hdsoft_program *program, uint32_t index)
{
    const hdsoft_function *function = index == HDSOFT_NO_FUNCTION ? NULL : &program->functions[index];
    return function && !function->defined && !function->entry &&
           (strncmp(function->name, "cuda", 4) == 0 || strncmp(function->name, "__cudaCDP2", 10) == 0);
}

void hdsoft_decode_call(hdsoft_parser *parser, hdsoft_statement *statement)
{
    hdsoft_program *program = parser->program;
    uint32_t opened = hdsoft_guard_open(parser);
    call_form form;
    memset(&form, 0, sizeof form);
    form.call = (hdsoft_call){.function = HDSOFT_NO_FUNCTION, .first_actual = program->actual_count,
                              .line = statement->line};
    if (hdsoft_parser_accept_sign(parser, '('))
        form.call.return_count = parse_actuals(parser, &form, true);
    if (form.call.return_count)
        hdsoft_parser_expect_sign(parser, ',');
    hdsoft_value callee;
    if (!hdsoft_parse_value(parser, &callee))
        return;
    int32_t address = HDSOFT_ABSENT;
    if (callee.kind == HDSOFT_VALUE_SYMBOL && parser->symbols[callee.symbol].binding == HDSOFT_BIND_FUNCTION) {
        form.call.function = parser->symbols[callee.symbol].index;
        hdsoft_reference_add(parser, form.call.function);
    } else {
        address = hdsoft_use(parser, &callee, 'q', 1);
        hdsoft_reference_add(parser, HDSOFT_ANY_ADDRESS_TAKEN); /* anything whose address is taken */
    }
    if (hdsoft_parser_accept_sign(parser, ',')) {
        if (hdsoft_parser_accept_sign(parser, '(')) {
            form.call.actual_count = parse_actuals(parser, &form, false);
            if (hdsoft_parser_accept_sign(parser, ','))
                hdsoft_lexer_next(&parser->lexer); /* the prototype's or target list's name */
        } else {
            hdsoft_lexer_next(&parser->lexer);
        }
    }
    hdsoft_parser_expect_sign(parser, ';');
    form.call.actual_count += form.call.return_count;
    if (parser->code == 0 && is_device_runtime(program, form.call.function)) {
        hdsoft_emit_poison(parser, "'%s': dynamic parallelism is not supported by the soft driver",
                           program->functions[form.call.function].name);
        hdsoft_guard_close(parser, opened);
        return;
    }
    if (parser->code || !hdsoft_parser_room(parser, &program->calls, &parser->room.calls, program->call_count,
                                            sizeof *program->calls))
        return;
    program->calls[program->call_count] = form.call;
    hdsoft_instruction *instruction = hdsoft_emit_named(parser, address == HDSOFT_ABSENT ? "call" : "call_indirect",
                                                        address, HDSOFT_ABSENT, HDSOFT_ABSENT, HDSOFT_ABSENT);
    if (instruction)
        instruction->target = program->call_count;
    program->call_count++;
    fetch_returned(parser, &form);
    hdsoft_guard_close(parser, opened);
}
