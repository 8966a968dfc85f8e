/* SPDX-License-Identifier: MIT */
/* Handlers that steer: branches, exits, traps, the rounding mode, addresses of a thread's own memory. */
#include "soft/exec/control.h"

#include <fenv.h>
#include <string.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "soft/exec/warp.h"

#define HANDLER(name) \
    static const hdsoft_instruction *handle_##name(hdsoft_warp *warp, const hdsoft_instruction *instruction)

HANDLER(bra)
{
    return warp->code + instruction->target;
}

/* The lanes that go to the lower of the two places go on, the others wait for their turn there. */
HANDLER(bra_if)
{
    uint32_t predicate = *(const uint32_t *)hdsoft_source(warp, instruction->operand[0]);
    uint32_t taken = warp->mask & (instruction->option[0] ? ~predicate : predicate);
    const hdsoft_instruction *target = warp->code + instruction->target, *next = instruction + 1;
    if (taken == warp->mask)
        return target;
    if (taken == 0)
        return next;
    if (target < next) {
        hdsoft_warp_part(warp, next, warp->mask & ~taken);
        return target;
    }
    if (target > next)
        hdsoft_warp_part(warp, target, taken);
    return next;
}

HANDLER(brx)
{
    const uint32_t *index = hdsoft_source(warp, instruction->operand[0]);
    const hdsoft_program *program = warp->run->program;
    const hdsoft_branch_table *table = &program->tables[instruction->target];
    unsigned lane = (unsigned)__builtin_ctz(warp->mask);
    uint32_t choice = index[lane], others = 0;
    if (choice >= table->count)
        return hdsoft_fault_raise(warp, instruction, 719, lane, 0, "brx.idx %u is outside of its table of %u", choice,
                                  table->count);
    for (uint32_t rest = warp->mask; rest; rest &= rest - 1) {
        unsigned other = (unsigned)__builtin_ctz(rest);
        if (index[other] != choice)
            others |= 1u << other;
    }
    if (others) { /* they come here again, with a choice of their own */
        hdsoft_warp_part(warp, instruction, others);
        hdsoft_warp_leave(warp);
    }
    return warp->code + program->branch_targets[table->first + choice];
}

HANDLER(exit)
{
    hdsoft_warp_exit(warp);
    return instruction;
}

HANDLER(trap)
{
    bool no_grid = warp->run->wants_grid_barrier && !warp->run->cooperative;
    return hdsoft_fault_raise(warp, instruction, 719, (unsigned)__builtin_ctz(warp->mask), 0, "trap%s",
                              no_grid ? ": the grid's barrier needs a cooperative launch, which this is not" : "");
}

HANDLER(brkpt)
{
    return hdsoft_fault_raise(warp, instruction, 719, (unsigned)__builtin_ctz(warp->mask), 0,
                              "brkpt without a debugger");
}

HANDLER(poison)
{
    return hdsoft_fault_raise(warp, instruction, 801, (unsigned)__builtin_ctz(warp->mask), 0, "%s",
                              warp->run->program->messages[instruction->target]);
}

/* What memory the host can reach needs is in the accesses themselves; this orders the rest for good measure. */
HANDLER(fence)
{
    __atomic_fetch_add(&warp->run->fence, 1, __ATOMIC_SEQ_CST);
    return instruction + 1;
}

#define LONGEST_SLEEP 1000000u /* ns, as PTX has it */

HANDLER(nanosleep)
{
    const uint32_t *times = hdsoft_source(warp, instruction->operand[0]);
    uint32_t longest = 0;
    for (uint32_t rest = warp->active; rest; rest &= rest - 1) {
        uint32_t time = times[__builtin_ctz(rest)];
        longest = time > longest ? time : longest;
    }
    warp->slept += longest < LONGEST_SLEEP ? longest : LONGEST_SLEEP;
    warp->yield = true;
    hdsoft_warp_leave(warp);
    return instruction + 1;
}

HANDLER(rounded)
{
#if defined(__SSE__)
    static const unsigned modes[] = {_MM_ROUND_NEAREST, _MM_ROUND_TOWARD_ZERO, _MM_ROUND_DOWN, _MM_ROUND_UP};
    unsigned saved = _mm_getcsr();
    _mm_setcsr((saved & ~(unsigned)_MM_ROUND_MASK) | modes[instruction->option[0]]);
    const hdsoft_instruction *next = instruction->inner(warp, instruction);
    _mm_setcsr(saved);
    return next;
#else
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    int saved = fegetround();
    fesetround(modes[instruction->option[0]]);
    const hdsoft_instruction *next = instruction->inner(warp, instruction);
    fesetround(saved);
    return next;
#endif
}

static void write_lanes(hdsoft_warp *warp, int32_t operand, bool wide, const uint64_t values[HDSOFT_LANES])
{
    unsigned char *to = warp->frame + operand;
    for (uint32_t rest = warp->active; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint32_t low = (uint32_t)values[lane];
        if (wide)
            memcpy(to + lane * 8, &values[lane], 8);
        else
            memcpy(to + lane * 4, &low, 4);
    }
}

/* %tid, %ntid, %ctaid and %nctaid come first in the list of special registers, and most often in kernels. */
static void special_index(hdsoft_warp *warp, int32_t operand, uint32_t number)
{
    const uint32_t *const sizes[] = {warp->run->block, warp->block->id, warp->run->grid};
    uint32_t *to = (uint32_t *)(void *)(warp->frame + operand);
    const uint32_t *from = warp->thread_index[number % 3];
    uint32_t same[HDSOFT_LANES];
    if (number >= 3) {
        uint32_t value = sizes[number / 3 - 1][number % 3];
        for (unsigned lane = 0; lane < HDSOFT_LANES; lane++)
            same[lane] = value;
        from = same;
    }
    if (warp->active == HDSOFT_ALL_LANES) {
        memcpy(to, from, HDSOFT_LANES * sizeof *to);
        return;
    }
    for (uint32_t rest = warp->active; rest; rest &= rest - 1)
        to[__builtin_ctz(rest)] = from[__builtin_ctz(rest)];
}

static const hdsoft_instruction *special(hdsoft_warp *warp, const hdsoft_instruction *instruction, bool wide)
{
    if (!wide && (uint64_t)instruction->immediate < 12) {
        special_index(warp, instruction->operand[0], (uint32_t)instruction->immediate);
        return instruction + 1;
    }
    uint64_t values[HDSOFT_LANES];
    if (hdsoft_special_read(warp, instruction, (uint32_t)instruction->immediate, values))
        write_lanes(warp, instruction->operand[0], wide, values);
    return instruction + 1;
}

HANDLER(special_32)
{
    return special(warp, instruction, false);
}

HANDLER(special_64)
{
    return special(warp, instruction, true);
}

static const hdsoft_instruction *same(hdsoft_warp *warp, const hdsoft_instruction *instruction, bool wide,
                                      uint64_t value)
{
    uint64_t values[HDSOFT_LANES];
    for (unsigned lane = 0; lane < HDSOFT_LANES; lane++)
        values[lane] = value;
    write_lanes(warp, instruction->operand[0], wide, values);
    return instruction + 1;
}

HANDLER(local_address_32)
{
    return same(warp, instruction, false, warp->activation->local_base + (uint64_t)instruction->immediate);
}

HANDLER(local_address_64)
{
    return same(warp, instruction, true, warp->activation->local_base + (uint64_t)instruction->immediate);
}

HANDLER(dynamic_shared_32)
{
    return same(warp, instruction, false, warp->run->dynamic_offset + (uint64_t)instruction->immediate);
}

HANDLER(dynamic_shared_64)
{
    return same(warp, instruction, true, warp->run->dynamic_offset + (uint64_t)instruction->immediate);
}

HANDLER(isspacep)
{
    const uint64_t *addresses = hdsoft_source(warp, instruction->operand[1]);
    uint32_t *to = (uint32_t *)(void *)(warp->frame + instruction->operand[0]), result = 0;
    bool constant = instruction->option[1] == HDSOFT_SPACE_CONSTANT;
    for (uint32_t rest = warp->active; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        bool in_window = (addresses[lane] & HDSOFT_WINDOW_MASK) == (uint64_t)instruction->immediate;
        if (in_window && instruction->immediate == 0) { /* global and constant share what has no window */
            hdsoft_range range;
            bool found = hdsoft_memory_find(warp->run->memory, addresses[lane], &range);
            in_window = constant ? found && range.kind == HDSOFT_RANGE_CONSTANT
                                 : !found || range.kind != HDSOFT_RANGE_CONSTANT;
        }
        result |= (uint32_t)in_window << lane;
    }
    *to = (*to & ~warp->active) | result;
    return instruction + 1;
}

const hdsoft_form hdsoft_forms_control[] = {
    {"bra", handle_bra, ":"},
    {"bra_if", handle_bra_if, ":p"},
    {"brx", handle_brx, ":w"},
    {"exit", handle_exit, ":"},
    {"trap", handle_trap, ":"},
    {"brkpt", handle_brkpt, ":"},
    {"poison", handle_poison, ":"},
    {"fence", handle_fence, ":"},
    {"nanosleep", handle_nanosleep, ":w"},
    {"rounded", handle_rounded, ":"},
    {"special_32", handle_special_32, "w:"},
    {"special_64", handle_special_64, "q:"},
    {"local_address_32", handle_local_address_32, "w:"},
    {"local_address_64", handle_local_address_64, "q:"},
    {"dynamic_shared_32", handle_dynamic_shared_32, "w:"},
    {"dynamic_shared_64", handle_dynamic_shared_64, "q:"},
    {"isspacep", handle_isspacep, "p:q"},
    {NULL, NULL, NULL},
};
