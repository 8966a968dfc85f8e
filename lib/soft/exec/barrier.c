/* SPDX-License-Identifier: MIT */
/*
 * The 16 named barriers of a block. A barrier counts threads. Without a thread count it waits for every thread that
 * has not exited. With one, it counts as hardware does, in whole warps: a warp whose live lanes all come together
 * counts 32.
 */
#include "soft/exec/control.h"
#include "soft/exec/warp.h"

enum { SYNC, ARRIVE, COUNT, ALL, ANY }; /* option[0] */

static void write_result(hdsoft_split *split, const hdsoft_barrier *barrier)
{
    const hdsoft_instruction *instruction = split->next;
    unsigned kind = instruction->option[0];
    if (kind < COUNT || instruction->operand[0] == HDSOFT_ABSENT)
        return;
    uint32_t *to = (uint32_t *)(void *)(split->activation->frame + instruction->operand[0]);
    if (kind == COUNT) {
        for (uint32_t rest = split->lanes; rest; rest &= rest - 1)
            to[__builtin_ctz(rest)] = barrier->true_count;
        return;
    }
    bool result = kind == ALL ? barrier->true_count == barrier->predicate_count : barrier->true_count != 0;
    *to = (*to & ~split->lanes) | (result ? split->lanes : 0);
}

/* Let everyone who waits at the barrier go on if enough have come. */
static bool complete(hdsoft_block *block, uint32_t id)
{
    hdsoft_barrier *barrier = &block->barriers[id];
    if (!barrier->active)
        return false;
    bool met = barrier->expected ? barrier->rounded >= barrier->expected : barrier->threads >= block->live_threads;
    if (!met)
        return false;
    for (uint32_t w = 0; w < block->warp_count; w++) {
        hdsoft_warp *warp = &block->warps[w];
        for (uint32_t i = 0; i < warp->split_count; i++) {
            hdsoft_split *split = &warp->splits[i];
            if (split->state != HDSOFT_SPLIT_BARRIER || split->barrier != id)
                continue;
            write_result(split, barrier);
            split->state = HDSOFT_SPLIT_RUNNABLE;
            split->next++;
        }
    }
    *barrier = (hdsoft_barrier){0};
    return true;
}

void hdsoft_barrier_check(hdsoft_block *block)
{
    for (uint32_t id = 0; id < HDSOFT_BARRIERS; id++)
        complete(block, id);
}

/* Lanes that name another barrier or count come here again. */
static void part_others(hdsoft_warp *warp, const hdsoft_instruction *instruction, const uint32_t *ids,
                        const uint32_t *counts)
{
    unsigned lane = (unsigned)__builtin_ctz(warp->mask);
    uint32_t others = 0;
    for (uint32_t rest = warp->mask; rest; rest &= rest - 1) {
        unsigned other = (unsigned)__builtin_ctz(rest);
        if (ids[other] != ids[lane] || (counts && counts[other] != counts[lane]))
            others |= 1u << other;
    }
    if (others) {
        hdsoft_warp_part(warp, instruction, others);
        hdsoft_warp_leave(warp);
    }
}

static const hdsoft_instruction *handle_barrier(hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    const uint32_t *ids = hdsoft_source(warp, instruction->operand[1]);
    const uint32_t *counts =
        instruction->operand[2] == HDSOFT_ABSENT ? NULL : hdsoft_source(warp, instruction->operand[2]);
    part_others(warp, instruction, ids, counts);
    hdsoft_block *block = warp->block;
    unsigned lane = (unsigned)__builtin_ctz(warp->mask), kind = instruction->option[0];
    uint32_t id = ids[lane], expected = counts ? counts[lane] : 0;
    if (id >= HDSOFT_BARRIERS)
        return hdsoft_fault_raise(warp, instruction, 715, lane, 0, "barrier %u does not exist, there are %d", id,
                                  HDSOFT_BARRIERS);
    if (counts && (expected == 0 || expected % HDSOFT_LANES))
        return hdsoft_fault_raise(warp, instruction, 715, lane, 0,
                                  "barrier %u for %u threads: the count must be a multiple of %u", id, expected,
                                  HDSOFT_LANES);
    hdsoft_barrier *barrier = &block->barriers[id];
    if (barrier->active && barrier->expected != expected)
        return hdsoft_fault_raise(warp, instruction, 719, lane, 0,
                                  "barrier %u is used for %u and for %u threads at once (0: all)", id,
                                  barrier->expected, expected);
    uint32_t threads = (uint32_t)__builtin_popcount(warp->mask);
    barrier->active = true;
    barrier->expected = expected;
    barrier->threads += threads;
    barrier->rounded += warp->mask == warp->live ? HDSOFT_LANES : threads;
    if (kind >= COUNT) {
        uint32_t predicate = *(const uint32_t *)hdsoft_source(warp, instruction->operand[3]);
        barrier->predicate_count += threads;
        barrier->true_count += (uint32_t)__builtin_popcount(predicate & warp->mask);
    }
    hdsoft_split *split = &warp->splits[warp->current];
    if (kind == ARRIVE) {
        complete(block, id);
        if (warp->split_count > 1)
            hdsoft_warp_leave(warp);
        return instruction + 1;
    }
    split->state = HDSOFT_SPLIT_BARRIER;
    split->barrier = id;
    split->next = instruction;
    bool met = complete(block, id);
    if (!met || warp->split_count > 1)
        hdsoft_warp_leave(warp);
    return met ? instruction + 1 : instruction;
}

const hdsoft_form hdsoft_forms_barrier[] = {
    {"barrier", handle_barrier, "w:wwp"},
    {NULL, NULL, NULL},
};
