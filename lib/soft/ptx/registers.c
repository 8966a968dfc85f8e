/* SPDX-License-Identifier: MIT */
/*
 * Virtual registers to slots of the frame. Liveness is that of one thread: a slot is a column of 32 lanes, each of
 * which lives its own life, so divergence needs no care. Registers that several blocks touch get a bit in the blocks'
 * sets; a linear scan over the resulting intervals hands out slots, 32-bit and 64-bit ones from pools of their own, so
 * that an operation never writes over a source of another width. Where the sets would take too much memory every
 * register gets a slot of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "soft/ptx/parser.h"

#define LARGEST_SETS (64u << 20)
#define NOT_GLOBAL UINT32_MAX

enum { POOL_PREDICATE, POOL_32, POOL_64, POOLS };

typedef struct live_interval {
    uint32_t start, end; /* 2 * instruction for a read, + 1 for a write */
    uint32_t slot;
    uint8_t pool;
    bool used;
} live_interval;

typedef struct basic_block {
    uint32_t first, end;
    uint32_t successor[2]; /* NONE if there is none; tables are walked apart */
    uint32_t table;
} basic_block;

typedef struct slot_assignment {
    hdsoft_parser *parser;
    hdsoft_program *program;
    const hdsoft_function *function;
    uint32_t registers, count; /* instructions */
    live_interval *intervals;
    basic_block *blocks;
    uint32_t block_count;
    uint32_t *block_of;  /* per instruction */
    uint32_t *home;      /* per register: the only block that touches it, or NONE */
    uint32_t *number;    /* per register: bit in the sets, or NOT_GLOBAL */
    uint32_t globals, words;
    uint64_t *live_in, *reads, *writes; /* per block */
} slot_assignment;

/* In the order of the parser's flow_handlers. */
typedef enum flow { FLOW_NEXT, FLOW_JUMP, FLOW_BRANCH, FLOW_TABLE, FLOW_EXIT, FLOW_RETURN } flow;

static flow flow_of(const slot_assignment *assignment, uint32_t at)
{
    hdsoft_handler handler = assignment->program->code[at].handler;
    for (unsigned kind = FLOW_JUMP; kind <= FLOW_RETURN; kind++)
        if (handler == assignment->parser->flow_handlers[kind])
            return (flow)kind;
    return FLOW_NEXT;
}

static bool find_blocks(slot_assignment *assignment)
{
    const hdsoft_program *program = assignment->program;
    uint32_t first = assignment->function->first, count = assignment->count;
    unsigned char *leader = calloc(count + 1u, 1), *flows = calloc(count + 1u, 1);
    if (!leader || !flows) {
        free(leader);
        free(flows);
        return false;
    }
    leader[0] = 1;
    for (uint32_t i = 0; i < count; i++) {
        flow kind = flow_of(assignment, first + i);
        flows[i] = (unsigned char)kind;
        if (kind == FLOW_JUMP || kind == FLOW_BRANCH)
            leader[program->code[first + i].target - first] = 1;
        if (kind == FLOW_TABLE) {
            const hdsoft_branch_table *table = &program->tables[program->code[first + i].target];
            for (uint32_t t = 0; t < table->count; t++)
                leader[program->branch_targets[table->first + t] - first] = 1;
        }
        if (kind != FLOW_NEXT)
            leader[i + 1] = 1;
    }
    uint32_t blocks = 0;
    for (uint32_t i = 0; i < count; i++)
        blocks += leader[i];
    assignment->blocks = calloc(blocks + 1u, sizeof *assignment->blocks);
    assignment->block_of = malloc((count + 1u) * sizeof *assignment->block_of);
    bool made = assignment->blocks && assignment->block_of;
    for (uint32_t i = 0, b = HDSOFT_NONE; made && i < count; i++) {
        if (leader[i]) {
            b++;
            assignment->blocks[b] = (basic_block){i, i, {HDSOFT_NONE, HDSOFT_NONE}, HDSOFT_NONE};
        }
        assignment->block_of[i] = b;
        assignment->blocks[b].end = i + 1;
    }
    assignment->block_count = blocks;
    for (uint32_t b = 0; made && b < blocks; b++) {
        basic_block *block = &assignment->blocks[b];
        uint32_t last = block->end - 1, target = program->code[first + last].target;
        flow kind = (flow)flows[last];
        if (kind == FLOW_JUMP || kind == FLOW_BRANCH)
            block->successor[0] = target - first < count ? assignment->block_of[target - first] : HDSOFT_NONE;
        if ((kind == FLOW_NEXT || kind == FLOW_BRANCH) && b + 1 < blocks)
            block->successor[1] = b + 1;
        if (kind == FLOW_TABLE)
            block->table = target;
    }
    free(leader);
    free(flows);
    return made;
}

/* Call visit for every register that instruction `at` (relative) reads or writes; the guard is a read. */
typedef void (*visitor)(slot_assignment *, uint32_t at, uint32_t reg, bool writes);

static void visit_instruction(slot_assignment *assignment, uint32_t at, visitor visit)
{
    const hdsoft_instruction *instruction = &assignment->program->code[assignment->function->first + at];
    hdsoft_effect effect = assignment->program->effects[assignment->function->first + at];
    if (instruction->guard != HDSOFT_ABSENT)
        visit(assignment, at, (uint32_t)instruction->guard, false);
    for (unsigned i = 0; i < HDSOFT_OPERANDS; i++)
        if (effect.uses >> i & 1)
            visit(assignment, at, (uint32_t)instruction->operand[i], false);
    for (unsigned i = 0; i < HDSOFT_OPERANDS; i++)
        if (effect.defines >> i & 1)
            visit(assignment, at, (uint32_t)instruction->operand[i], true);
}

/* A register's home block; one read there before it is certainly written, or touched elsewhere, is global. */
static void note_home(slot_assignment *assignment, uint32_t at, uint32_t reg, bool writes)
{
    uint32_t block = assignment->block_of[at];
    bool certain = writes && assignment->program->code[assignment->function->first + at].guard == HDSOFT_ABSENT;
    live_interval *interval = &assignment->intervals[reg];
    if (!interval->used) {
        interval->used = true;
        assignment->home[reg] = certain ? block : HDSOFT_NONE;
    } else if (assignment->home[reg] != block) {
        assignment->home[reg] = HDSOFT_NONE;
    }
}

static void note_sets(slot_assignment *assignment, uint32_t at, uint32_t reg, bool writes)
{
    uint32_t bit = assignment->number[reg];
    if (bit == NOT_GLOBAL)
        return;
    size_t word = (size_t)assignment->block_of[at] * assignment->words + bit / 64;
    uint64_t mask = UINT64_C(1) << bit % 64;
    bool certain = writes && assignment->program->code[assignment->function->first + at].guard == HDSOFT_ABSENT;
    if (certain)
        assignment->writes[word] |= mask;
    else if (!writes && !(assignment->writes[word] & mask))
        assignment->reads[word] |= mask;
}

static uint64_t successors_live(const slot_assignment *assignment, const basic_block *block, uint32_t word)
{
    const hdsoft_program *program = assignment->program;
    uint64_t live = 0;
    for (unsigned s = 0; s < 2; s++)
        if (block->successor[s] != HDSOFT_NONE)
            live |= assignment->live_in[(size_t)block->successor[s] * assignment->words + word];
    if (block->table != HDSOFT_NONE) {
        const hdsoft_branch_table *table = &program->tables[block->table];
        for (uint32_t t = 0; t < table->count; t++) {
            uint32_t target = program->branch_targets[table->first + t] - assignment->function->first;
            if (target < assignment->count)
                live |= assignment->live_in[(size_t)assignment->block_of[target] * assignment->words + word];
        }
    }
    return live;
}

static void solve(slot_assignment *assignment)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t b = assignment->block_count; b-- > 0;) {
            size_t base = (size_t)b * assignment->words;
            for (uint32_t w = 0; w < assignment->words; w++) {
                uint64_t out = successors_live(assignment, &assignment->blocks[b], w);
                uint64_t in = assignment->reads[base + w] | (out & ~assignment->writes[base + w]);
                changed |= in != assignment->live_in[base + w];
                assignment->live_in[base + w] = in;
            }
        }
    }
}

static void extend(live_interval *interval, uint32_t position)
{
    if (position < interval->start)
        interval->start = position;
    if (position > interval->end)
        interval->end = position;
}

static void note_interval(slot_assignment *assignment, uint32_t at, uint32_t reg, bool writes)
{
    hdsoft_effect effect = assignment->program->effects[assignment->function->first + at];
    /* With several destinations a source must outlive the instruction. */
    bool several = (effect.defines & (effect.defines - 1)) != 0;
    extend(&assignment->intervals[reg], 2 * at + writes);
    if (!writes && several)
        extend(&assignment->intervals[reg], 2 * at + 1);
}

static void note_block_intervals(slot_assignment *assignment)
{
    uint32_t *registers = malloc((assignment->globals + 1u) * sizeof *registers);
    for (uint32_t r = 0; registers && r < assignment->registers; r++)
        if (assignment->number[r] != NOT_GLOBAL)
            registers[assignment->number[r]] = r;
    for (uint32_t b = 0; registers && b < assignment->block_count; b++) {
        const basic_block *block = &assignment->blocks[b];
        for (uint32_t w = 0; w < assignment->words; w++) {
            uint64_t in = assignment->live_in[(size_t)b * assignment->words + w];
            uint64_t out = successors_live(assignment, block, w);
            for (uint64_t rest = in | out; rest; rest &= rest - 1) {
                unsigned bit = (unsigned)__builtin_ctzll(rest);
                live_interval *interval = &assignment->intervals[registers[w * 64 + bit]];
                if (in >> bit & 1)
                    extend(interval, 2 * block->first);
                if (out >> bit & 1)
                    extend(interval, 2 * block->end);
            }
        }
    }
    if (!registers) /* without the list every global register lives all the time */
        for (uint32_t r = 0; r < assignment->registers; r++)
            if (assignment->number[r] != NOT_GLOBAL)
                assignment->intervals[r].start = 0, assignment->intervals[r].end = 2 * assignment->count;
    free(registers);
}

static void everywhere(slot_assignment *assignment)
{
    for (uint32_t r = 0; r < assignment->registers; r++)
        assignment->intervals[r].start = 0, assignment->intervals[r].end = 2 * assignment->count;
}

static bool find_intervals(slot_assignment *assignment)
{
    for (uint32_t i = 0; i < assignment->count; i++)
        visit_instruction(assignment, i, note_home);
    assignment->globals = 0;
    for (uint32_t r = 0; r < assignment->registers; r++) {
        bool global = assignment->intervals[r].used && assignment->home[r] == HDSOFT_NONE;
        assignment->number[r] = global ? assignment->globals++ : NOT_GLOBAL;
    }
    assignment->words = (assignment->globals + 63) / 64;
    uint64_t bytes = (uint64_t)assignment->words * assignment->block_count * 8;
    if (bytes > LARGEST_SETS) {
        everywhere(assignment);
        return true;
    }
    size_t elements = (size_t)assignment->words * assignment->block_count + 1;
    assignment->live_in = calloc(elements, 8);
    assignment->reads = calloc(elements, 8);
    assignment->writes = calloc(elements, 8);
    if (!assignment->live_in || !assignment->reads || !assignment->writes)
        return false;
    for (uint32_t i = 0; i < assignment->count; i++)
        visit_instruction(assignment, i, note_sets);
    solve(assignment);
    for (uint32_t i = 0; i < assignment->count; i++)
        visit_instruction(assignment, i, note_interval);
    note_block_intervals(assignment);
    return true;
}

/* --- linear scan --- */

typedef struct slot_scan {
    uint32_t *ends; /* binary heap of (end, slot) pairs, per pool */
    uint32_t active;
    uint32_t *free_slots;
    uint32_t free_count, slots;
} slot_scan;

static void heap_push(slot_scan *scan, uint32_t end, uint32_t slot)
{
    uint32_t at = scan->active++;
    while (at && scan->ends[2 * ((at - 1) / 2)] > end) {
        scan->ends[2 * at] = scan->ends[2 * ((at - 1) / 2)];
        scan->ends[2 * at + 1] = scan->ends[2 * ((at - 1) / 2) + 1];
        at = (at - 1) / 2;
    }
    scan->ends[2 * at] = end;
    scan->ends[2 * at + 1] = slot;
}

static uint32_t heap_pop(slot_scan *scan)
{
    uint32_t slot = scan->ends[1];
    uint32_t end = scan->ends[2 * --scan->active], moved = scan->ends[2 * scan->active + 1], at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= scan->active)
            break;
        if (child + 1 < scan->active && scan->ends[2 * (child + 1)] < scan->ends[2 * child])
            child++;
        if (scan->ends[2 * child] >= end)
            break;
        scan->ends[2 * at] = scan->ends[2 * child];
        scan->ends[2 * at + 1] = scan->ends[2 * child + 1];
        at = child;
    }
    scan->ends[2 * at] = end;
    scan->ends[2 * at + 1] = moved;
    return slot;
}

static int by_start(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;
    return left[0] != right[0] ? (left[0] < right[0] ? -1 : 1) : left[1] < right[1] ? -1 : left[1] > right[1];
}

/* Slots for all intervals; answers the worst number of 32-bit units that live at once in *units. */
static bool scan_intervals(slot_assignment *assignment, slot_scan scans[POOLS], uint32_t *units)
{
    uint32_t count = 0;
    uint32_t *order = malloc((assignment->registers + 1u) * 2 * sizeof *order);
    bool made = order != NULL;
    for (unsigned p = 0; p < POOLS; p++) {
        scans[p].ends = malloc((assignment->registers + 1u) * 2 * sizeof *scans[p].ends);
        scans[p].free_slots = malloc((assignment->registers + 1u) * sizeof *scans[p].free_slots);
        made = made && scans[p].ends && scans[p].free_slots;
    }
    for (uint32_t r = 0; made && r < assignment->registers; r++) {
        if (!assignment->intervals[r].used)
            continue;
        order[2 * count] = assignment->intervals[r].start;
        order[2 * count++ + 1] = r;
    }
    if (made)
        qsort(order, count, 2 * sizeof *order, by_start);
    for (uint32_t i = 0; made && i < count; i++) {
        live_interval *interval = &assignment->intervals[order[2 * i + 1]];
        for (unsigned p = 0; p < POOLS; p++) /* expire in all pools, for the count of units */
            while (scans[p].active && scans[p].ends[0] < interval->start)
                scans[p].free_slots[scans[p].free_count++] = heap_pop(&scans[p]);
        slot_scan *scan = &scans[interval->pool];
        interval->slot = scan->free_count ? scan->free_slots[--scan->free_count] : scan->slots++;
        heap_push(scan, interval->end, interval->slot);
        uint32_t live = scans[POOL_32].active + 2 * scans[POOL_64].active;
        *units = live > *units ? live : *units;
    }
    for (unsigned p = 0; p < POOLS; p++) {
        free(scans[p].ends);
        free(scans[p].free_slots);
    }
    free(order);
    return made;
}

static void rewrite(slot_assignment *assignment, const uint32_t base[POOLS])
{
    static const uint32_t bytes[POOLS] = {4, HDSOFT_LANES * 4, HDSOFT_LANES * 8};
    for (uint32_t i = 0; i < assignment->count; i++) {
        hdsoft_instruction *instruction = &assignment->program->code[assignment->function->first + i];
        hdsoft_effect effect = assignment->program->effects[assignment->function->first + i];
        unsigned touched = effect.defines | effect.uses;
        for (unsigned o = 0; o < HDSOFT_OPERANDS; o++) {
            if (!(touched >> o & 1))
                continue;
            const live_interval *interval = &assignment->intervals[instruction->operand[o]];
            instruction->operand[o] = (int32_t)(base[interval->pool] + interval->slot * bytes[interval->pool]);
        }
        if (instruction->guard != HDSOFT_ABSENT) {
            const live_interval *interval = &assignment->intervals[instruction->guard];
            instruction->guard = (int32_t)(base[interval->pool] + interval->slot * bytes[interval->pool]);
        }
    }
}

bool hdsoft_registers_assign(hdsoft_parser *parser, hdsoft_function *function)
{
    slot_assignment assignment = {.parser = parser, .program = parser->program, .function = function,
                             .registers = parser->register_count, .count = function->count};
    slot_scan scans[POOLS];
    memset(scans, 0, sizeof scans);
    assignment.intervals = calloc(assignment.registers + 1u, sizeof *assignment.intervals);
    assignment.home = calloc(assignment.registers + 1u, sizeof *assignment.home);
    assignment.number = calloc(assignment.registers + 1u, sizeof *assignment.number);
    bool made = assignment.intervals && assignment.home && assignment.number;
    for (uint32_t r = 0; made && r < assignment.registers; r++) {
        unsigned bits = parser->registers[r];
        assignment.intervals[r] = (live_interval){
            .start = UINT32_MAX, .pool = bits == 1 ? POOL_PREDICATE : bits >= 64 ? POOL_64 : POOL_32};
    }
    uint32_t units = 0;
    made = made && find_blocks(&assignment) && find_intervals(&assignment) &&
           scan_intervals(&assignment, scans, &units);
    if (made) {
        uint32_t base[POOLS];
        base[POOL_PREDICATE] = function->cell_rows * HDSOFT_CELL;
        base[POOL_32] = (base[POOL_PREDICATE] + scans[POOL_PREDICATE].slots * 4 + 127) / 128 * 128;
        base[POOL_64] = base[POOL_32] + scans[POOL_32].slots * HDSOFT_LANES * 4;
        uint64_t end = base[POOL_64] + (uint64_t)scans[POOL_64].slots * HDSOFT_LANES * 8;
        made = end < (1u << 30);
        function->frame_bytes = (uint32_t)end;
        function->register_units = units;
        rewrite(&assignment, base);
    }
    free(assignment.intervals);
    free(assignment.home);
    free(assignment.number);
    free(assignment.blocks);
    free(assignment.block_of);
    free(assignment.live_in);
    free(assignment.reads);
    free(assignment.writes);
    return made;
}
