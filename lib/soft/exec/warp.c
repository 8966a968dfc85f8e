/* SPDX-License-Identifier: MIT */
#include "soft/exec/warp.h"

/* A split that has run so long while others could have goes to the back. */
#define SPLIT_FUEL 256

static uint64_t next_random(hdsoft_run *run)
{
    run->random ^= run->random << 13;
    run->random ^= run->random >> 7;
    run->random ^= run->random << 17;
    return run->random;
}

void hdsoft_warp_begin(hdsoft_warp *warp)
{
    const hdsoft_function *function = warp->run->function;
    warp->live = warp->valid;
    warp->carry = 0;
    warp->yield = false;
    warp->kernel.lanes = warp->valid;
    warp->split_count = 1;
    warp->splits[0] = (hdsoft_split){
        .next = warp->code + function->first, .activation = &warp->kernel, .lanes = warp->valid};
}

static void remove_split(hdsoft_warp *warp, uint32_t index)
{
    warp->splits[index] = warp->splits[--warp->split_count];
}

void hdsoft_warp_part(hdsoft_warp *warp, const hdsoft_instruction *next, uint32_t lanes)
{
    hdsoft_split *current = &warp->splits[warp->current];
    warp->mask &= ~lanes;
    warp->active = warp->mask;
    current->lanes = warp->mask;
    for (uint32_t i = 0; i < warp->split_count; i++) {
        hdsoft_split *split = &warp->splits[i];
        if (i != warp->current && split->state == HDSOFT_SPLIT_RUNNABLE && split->next == next &&
            split->activation == warp->activation) {
            split->lanes |= lanes;
            lanes = 0;
            break;
        }
    }
    if (lanes)
        warp->splits[warp->split_count++] =
            (hdsoft_split){.next = next, .activation = warp->activation, .lanes = lanes, .turn = warp->turn};
    if (next < warp->limit)
        warp->limit = next;
}

void hdsoft_warp_exit(hdsoft_warp *warp)
{
    uint32_t lanes = warp->mask;
    warp->live &= ~lanes;
    warp->block->live_threads -= (uint32_t)__builtin_popcount(lanes);
    for (hdsoft_activation *activation = warp->activation, *parent; activation; activation = parent) {
        parent = activation->parent;
        hdsoft_activation_drop(warp, activation, lanes);
    }
    remove_split(warp, warp->current);
    warp->current = HDSOFT_NO_SPLIT;
    hdsoft_warp_leave(warp);
    hdsoft_collective_check(warp);
    hdsoft_barrier_check(warp->block);
}

/* Whether a goes before b: the deeper activation, then the lower instruction. */
static bool goes_before(const hdsoft_split *a, const hdsoft_split *b)
{
    if (a->activation->depth != b->activation->depth)
        return a->activation->depth > b->activation->depth;
    return a->next < b->next;
}

/* The split to run now, joined by those that stand at its place; NO_SPLIT if all wait. */
static uint32_t choose(hdsoft_warp *warp, bool rotate)
{
    uint32_t best = HDSOFT_NO_SPLIT;
    for (uint32_t i = 0; i < warp->split_count; i++) {
        const hdsoft_split *split = &warp->splits[i];
        if (split->state != HDSOFT_SPLIT_RUNNABLE)
            continue;
        if (best == HDSOFT_NO_SPLIT || (rotate ? split->turn < warp->splits[best].turn
                                               : goes_before(split, &warp->splits[best])))
            best = i;
    }
    if (best == HDSOFT_NO_SPLIT || warp->split_count == 1)
        return best;
    for (uint32_t i = 0; i < warp->split_count;) {
        const hdsoft_split *split = &warp->splits[i], *chosen = &warp->splits[best];
        if (i != best && split->state == HDSOFT_SPLIT_RUNNABLE && split->next == chosen->next &&
            split->activation == chosen->activation) {
            warp->splits[best].lanes |= split->lanes;
            if (best == warp->split_count - 1)
                best = i;
            remove_split(warp, i);
        } else {
            i++;
        }
    }
    return best;
}

static const hdsoft_instruction *limit_for(const hdsoft_warp *warp, const hdsoft_split *current)
{
    uintptr_t limit = UINTPTR_MAX;
    for (uint32_t i = 0; i < warp->split_count; i++) {
        const hdsoft_split *split = &warp->splits[i];
        if (split->state == HDSOFT_SPLIT_RUNNABLE && split->activation->depth == current->activation->depth &&
            split->next > current->next && (uintptr_t)split->next < limit)
            limit = (uintptr_t)split->next;
    }
    return (const hdsoft_instruction *)limit;
}

/* The inner loop. Answers the next instruction; *fuel goes down by what was run. */
static const hdsoft_instruction *execute(hdsoft_warp *warp, const hdsoft_instruction *next, uint64_t *fuel)
{
    uint64_t left = *fuel;
    do {
        const hdsoft_instruction *instruction = next;
        if (__builtin_expect(instruction->guard != HDSOFT_ABSENT, 0)) {
            uint32_t guard = *(const uint32_t *)(const void *)(warp->frame + instruction->guard);
            warp->active = warp->mask & (instruction->guard_negated ? ~guard : guard);
            next = warp->active ? instruction->handler(warp, instruction) : instruction + 1;
            warp->active = warp->mask;
        } else {
            next = instruction->handler(warp, instruction);
        }
    } while (--left && next < warp->limit);
    *fuel = left;
    return next;
}

uint64_t hdsoft_warp_run(hdsoft_warp *warp, uint64_t fuel)
{
    hdsoft_run *run = warp->run;
    uint64_t executed = 0;
    bool rotate = false;
    while (executed < fuel && warp->split_count && !run->faulted) {
        if (run->seed && warp->split_count > 1 && next_random(run) % 16 == 0)
            rotate = true;
        uint32_t chosen = choose(warp, rotate);
        if (chosen == HDSOFT_NO_SPLIT)
            break;
        hdsoft_split *split = &warp->splits[chosen];
        warp->current = chosen;
        split->turn = ++warp->turn;
        warp->activation = split->activation;
        warp->frame = split->activation->frame;
        warp->mask = warp->active = split->lanes;
        warp->limit = limit_for(warp, split);
        uint64_t left = fuel - executed;
        bool shared_turn = warp->split_count > 1;
        if (shared_turn && left > SPLIT_FUEL)
            left = SPLIT_FUEL;
        uint64_t given = left;
        const hdsoft_instruction *next = execute(warp, split->next, &left);
        if (warp->current != HDSOFT_NO_SPLIT)
            warp->splits[warp->current].next = next;
        executed += given - left;
        rotate = left == 0 && shared_turn;
        if (warp->yield) {
            warp->yield = false;
            rotate = true;
            if (warp->split_count == 1)
                break;
        }
    }
    return executed;
}
