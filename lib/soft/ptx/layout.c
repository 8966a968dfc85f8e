/* SPDX-License-Identifier: MIT */
/*
 * After the last function: what each entry reaches, where its static shared variables lie, and addresses of shared
 * variables and functions in the constants. A shared variable has one offset in the whole module: those that several
 * entries reach lie first, the others behind them, entry by entry.
 */
#include <stdlib.h>
#include <string.h>

#include "soft/ptx/parser.h"

#define SHARED_BIT (1u << 31)

typedef struct reach_walk {
    hdsoft_parser *parser;
    uint32_t nodes;          /* functions, and one more for "any function whose address is taken" */
    uint32_t *first;         /* references of node n: [first[n], first[n + 1]) of targets */
    uint32_t *targets;
    uint32_t *stamp, *shared_stamp, *stack, *shared_entries;
} reach_walk;

static uint32_t node_of(const reach_walk *walk, uint32_t function)
{
    return function == HDSOFT_ANY_ADDRESS_TAKEN ? walk->nodes - 1 : function;
}

static bool walk_begin(reach_walk *walk, hdsoft_parser *parser)
{
    const hdsoft_program *program = parser->program;
    walk->parser = parser;
    walk->nodes = program->function_count + 1;
    size_t shared = program->shared_count + 1u;
    walk->first = calloc(walk->nodes + 1u, sizeof *walk->first);
    walk->targets = calloc(parser->reference_count + 1u, sizeof *walk->targets);
    walk->stamp = calloc(walk->nodes, sizeof *walk->stamp);
    walk->shared_stamp = calloc(shared, sizeof *walk->shared_stamp);
    walk->stack = calloc(walk->nodes + 1u, sizeof *walk->stack);
    walk->shared_entries = calloc(shared, sizeof *walk->shared_entries);
    if (!walk->first || !walk->targets || !walk->stamp || !walk->shared_stamp || !walk->stack ||
        !walk->shared_entries)
        return false;
    for (uint32_t i = 0; i < parser->reference_count; i++)
        walk->first[node_of(walk, parser->references[i].from) + 1]++;
    for (uint32_t n = 0; n < walk->nodes; n++)
        walk->first[n + 1] += walk->first[n];
    for (uint32_t i = 0; i < parser->reference_count; i++) {
        uint32_t node = node_of(walk, parser->references[i].from);
        walk->targets[walk->first[node] + walk->stamp[node]++] = parser->references[i].to;
    }
    memset(walk->stamp, 0, walk->nodes * sizeof *walk->stamp);
    return true;
}

static void walk_end(reach_walk *walk)
{
    free(walk->first);
    free(walk->targets);
    free(walk->stamp);
    free(walk->shared_stamp);
    free(walk->stack);
    free(walk->shared_entries);
}

/* Visit all that `start` reaches; per shared variable (once) and per function. */
static void reach(reach_walk *walk, uint32_t start, uint32_t stamp,
                  void (*shared)(struct reach_walk *, uint32_t, void *),
                  void (*function)(struct reach_walk *, uint32_t, void *), void *context)
{
    uint32_t height = 0;
    walk->stack[height++] = start;
    walk->stamp[start] = stamp;
    while (height) {
        uint32_t node = walk->stack[--height];
        if (function && node != walk->nodes - 1)
            function(walk, node, context);
        for (uint32_t i = walk->first[node]; i < walk->first[node + 1]; i++) {
            uint32_t to = walk->targets[i];
            if (to != HDSOFT_ANY_ADDRESS_TAKEN && (to & SHARED_BIT)) {
                uint32_t variable = to & ~SHARED_BIT;
                if (walk->shared_stamp[variable] != stamp) {
                    walk->shared_stamp[variable] = stamp;
                    shared(walk, variable, context);
                }
                continue;
            }
            uint32_t next = node_of(walk, to);
            if (walk->stamp[next] != stamp) {
                walk->stamp[next] = stamp;
                walk->stack[height++] = next;
            }
        }
    }
}

static void count_entry(reach_walk *walk, uint32_t variable, void *context)
{
    (void)context;
    walk->shared_entries[variable]++;
}

typedef struct shared_placing {
    uint64_t end;   /* of the variables that this entry reaches */
    bool alone;               /* place those that only this entry reaches */
    uint32_t registers;
    uint64_t local;
} shared_placing;

static void place_shared(reach_walk *walk, uint32_t index, void *context)
{
    shared_placing *placing = context;
    hdsoft_shared *variable = &walk->parser->program->shared[index];
    bool common = walk->shared_entries[index] > 1;
    if (variable->dynamic)
        return;
    if (placing->alone && !common) {
        uint64_t offset = (placing->end + variable->align - 1) / variable->align * variable->align;
        variable->offset = (uint32_t)offset;
        placing->end = offset + variable->size;
    } else if (!placing->alone && common && variable->offset + variable->size > placing->end) {
        placing->end = variable->offset + variable->size;
    }
    if (placing->end > UINT32_MAX / 2)
        hdsoft_parser_fail(walk->parser, 218, 0, "the shared variables of a kernel are too large");
}

static void count_registers(reach_walk *walk, uint32_t function, void *context)
{
    shared_placing *placing = context;
    const hdsoft_function *reached = &walk->parser->program->functions[function];
    if (reached->register_units > placing->registers)
        placing->registers = reached->register_units;
    placing->local += reached->local_bytes;
}

static void layout_entries(reach_walk *walk)
{
    hdsoft_program *program = walk->parser->program;
    uint32_t stamp = 0;
    for (uint32_t e = 0; e < program->entry_count; e++)
        reach(walk, program->entry_functions[e], ++stamp, count_entry, NULL, NULL);
    uint64_t common = 0;
    for (uint32_t i = 0; i < program->shared_count; i++) {
        hdsoft_shared *variable = &program->shared[i];
        if (walk->shared_entries[i] < 2 || variable->dynamic)
            continue;
        common = (common + variable->align - 1) / variable->align * variable->align;
        variable->offset = common < UINT32_MAX / 2 ? (uint32_t)common : 0;
        common += variable->size;
    }
    for (uint32_t e = 0; e < program->entry_count && walk->parser->code == 0; e++) {
        shared_placing placing = {0};
        reach(walk, program->entry_functions[e], ++stamp, place_shared, count_registers, &placing);
        placing.alone = true;
        reach(walk, program->entry_functions[e], ++stamp, place_shared, NULL, &placing);
        hdsoft_entry *entry = &program->entries[e];
        entry->static_shared_bytes = (uint32_t)placing.end;
        entry->local_bytes = placing.local < UINT32_MAX ? (uint32_t)placing.local : UINT32_MAX;
        uint32_t registers = (placing.registers + 8 + 7) / 8 * 8; /* ptxas keeps a few and rounds up */
        entry->register_count = registers > 255 ? 255 : registers;
    }
    uint32_t parameter = 0;
    for (uint32_t e = 0; e < program->entry_count; e++) {
        program->entries[e].parameters = program->parameters ? program->parameters + parameter : NULL;
        parameter += program->entries[e].parameter_count;
    }
}

static void check_calls(hdsoft_parser *parser)
{
    hdsoft_program *program = parser->program;
    for (uint32_t i = 0; i < program->function_count; i++) {
        hdsoft_function *function = &program->functions[i];
        const hdsoft_builtin *builtin =
            function->defined || function->entry ? NULL : hdsoft_builtin_find(function->name);
        if (builtin && hdsoft_builtin_fits(builtin, function))
            function->builtin = builtin;
    }
    for (uint32_t i = 0; i < program->call_count && parser->code == 0; i++) {
        const hdsoft_call *call = &program->calls[i];
        if (call->function == HDSOFT_NO_FUNCTION)
            continue;
        const hdsoft_function *function = &program->functions[call->function];
        if (!function->defined && !function->builtin)
            hdsoft_parser_fail(parser, 218, call->line, "unresolved extern function '%s'", function->name);
        else if (function->entry)
            hdsoft_parser_fail(parser, 218, call->line, "kernel '%s' cannot be called", function->name);
        else if (function->formal_count != call->actual_count || function->return_count != call->return_count)
            hdsoft_parser_fail(parser, 218, call->line, "call of '%s' passes other parameters than it is declared with",
                               function->name);
    }
}

static void write_column(hdsoft_program *program, const hdsoft_relocation *relocation, uint64_t address)
{
    for (unsigned lane = 0; lane < HDSOFT_LANES; lane++)
        memcpy(program->constants + relocation->offset + lane * relocation->width, &address, relocation->width);
}

/* Addresses that are the same in every instance are written now; those of globals stay. */
static void settle_relocations(hdsoft_parser *parser)
{
    hdsoft_program *program = parser->program;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < program->relocation_count && parser->code == 0; i++) {
        const hdsoft_relocation *relocation = &program->relocations[i];
        if (relocation->kind == HDSOFT_SYMBOL_GLOBAL && !program->globals[relocation->symbol].defined &&
            !program->globals[relocation->symbol].variable.size) {
            /* One of known size is there and zero, as on an H200. */
            const hdsoft_global *global = &program->globals[relocation->symbol];
            hdsoft_parser_fail(parser, 218, global->line, "unresolved extern variable '%s'", global->variable.name);
        } else if (relocation->kind == HDSOFT_SYMBOL_FUNCTION && !program->functions[relocation->symbol].defined &&
                   !program->functions[relocation->symbol].builtin) {
            hdsoft_parser_fail(parser, 218, program->functions[relocation->symbol].line,
                               "unresolved extern function '%s'", program->functions[relocation->symbol].name);
        } else if (relocation->in_constants && relocation->kind == HDSOFT_SYMBOL_FUNCTION) {
            write_column(program, relocation,
                         HDSOFT_WINDOW_CODE + (relocation->symbol + UINT64_C(1)) * 16 + (uint64_t)relocation->addend);
        } else if (relocation->in_constants && relocation->kind == HDSOFT_SYMBOL_SHARED) {
            write_column(program, relocation,
                         program->shared[relocation->symbol].offset + (uint64_t)relocation->addend);
        } else {
            program->relocations[kept++] = *relocation;
        }
    }
    if (parser->code == 0)
        program->relocation_count = kept;
}

bool hdsoft_layout(hdsoft_parser *parser)
{
    reach_walk walk = {0};
    if (walk_begin(&walk, parser))
        layout_entries(&walk);
    else
        hdsoft_parser_fail(parser, 2, 0, "out of memory");
    walk_end(&walk);
    if (parser->code == 0)
        check_calls(parser);
    if (parser->code == 0)
        settle_relocations(parser);
    return parser->code == 0;
}
