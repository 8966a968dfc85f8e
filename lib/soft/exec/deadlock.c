/* SPDX-License-Identifier: MIT */
#include "soft/exec/deadlock.h"

#include <string.h>

#include "soft/exec/follow.h"
#include "soft/ptx/text.h"

/* Most places that are named. */
#define PLACES 6u
/* A spin is a loop of no more instructions. */
#define LONGEST_SPIN 32u
#define WORKSPACE_BYTES 1024u
/* Rounds in which nothing but spinning happened. */
#define ROUNDS 8u

/* Who waits for the same at the same instruction. */
typedef struct place {
    const hdsoft_instruction *at;
    hdsoft_split_state state;
    uint32_t detail; /* barrier or members */
    uint32_t threads, warp, warps;
} place;

/* How many places there are; those beyond PLACES are only counted. */
static unsigned gather(const hdsoft_block *block, place places[PLACES])
{
    unsigned count = 0;
    for (uint32_t w = 0; w < block->warp_count; w++) {
        const hdsoft_warp *warp = &block->warps[w];
        for (uint32_t i = 0; i < warp->split_count; i++) {
            const hdsoft_split *split = &warp->splits[i];
            uint32_t detail = split->state == HDSOFT_SPLIT_BARRIER ? split->barrier : split->members;
            unsigned p = 0, known = count < PLACES ? count : PLACES;
            while (p < known && (places[p].at != split->next || places[p].state != split->state ||
                                 places[p].detail != detail))
                p++;
            if (p == known) {
                count++;
                if (p == PLACES)
                    continue;
                places[p] = (place){.at = split->next, .state = split->state, .detail = detail, .warp = w};
            }
            places[p].threads += (uint32_t)__builtin_popcount(split->lanes);
            places[p].warps++;
        }
    }
    return count;
}

static void append_line(const hdsoft_run *run, uint32_t index, hdsoft_text *text)
{
    uint32_t line;
    const char *file;
    if (hdsoft_program_source(run->program, index, &file, &line))
        hdsoft_text_append(text, " (%s:%u)", file, line);
    else
        hdsoft_text_append(text, " (PTX line %u)", run->program->origins[index].ptx_line);
}

static void describe_barrier(const hdsoft_block *block, uint32_t id, hdsoft_text *text)
{
    const hdsoft_barrier *barrier = &block->barriers[id];
    hdsoft_text_append(text, "barrier %u", id);
    if (barrier->expected)
        hdsoft_text_append(text, ", which has %u of the %u threads that it is for", barrier->rounded,
                           barrier->expected);
}

static void describe(const hdsoft_block *block, hdsoft_text *text)
{
    place places[PLACES];
    unsigned count = gather(block, places);
    for (unsigned p = 0; p < count && p < PLACES; p++) {
        hdsoft_text_append(text, "; %u threads", places[p].threads);
        if (places[p].warps == 1)
            hdsoft_text_append(text, " of warp %u", places[p].warp);
        hdsoft_text_append(text, " wait at ");
        if (places[p].state == HDSOFT_SPLIT_BARRIER)
            describe_barrier(block, places[p].detail, text);
        else
            hdsoft_text_append(text, "a warp operation of lanes 0x%08x", places[p].detail);
        append_line(block->run, hdsoft_index(&block->warps[0], places[p].at), text);
    }
    if (count > PLACES)
        hdsoft_text_append(text, "; others elsewhere");
    uint32_t exited = block->run->threads - block->live_threads;
    if (exited)
        hdsoft_text_append(text, "; %u threads have exited", exited);
}

void hdsoft_deadlock_block(hdsoft_block *block)
{
    char waiting[480];
    hdsoft_text text = {waiting, sizeof waiting, 0};
    waiting[0] = '\0';
    describe(block, &text);
    for (uint32_t w = 0; w < block->warp_count; w++) {
        hdsoft_warp *warp = &block->warps[w];
        if (warp->split_count == 0)
            continue;
        hdsoft_fault_raise(warp, warp->splits[0].next, 719, (unsigned)__builtin_ctz(warp->splits[0].lanes), 0,
                           "deadlock: %u threads of the block are left and none can go on%s", block->live_threads,
                           waiting);
        block->run->fault.deadlock = true;
        return;
    }
}

/* ---- the grid's barrier ---- */

static unsigned flow_at(const hdsoft_run *run, uint32_t index)
{
    return run->program->effects[index].flow & HDSOFT_FLOW_KIND;
}

/* Whether the load, by all of the lanes, is of the grid's workspace, which nothing but this launch can reach. */
static bool loads_workspace(const hdsoft_warp *warp, const hdsoft_split *split, uint32_t index)
{
    const hdsoft_run *run = warp->run;
    const hdsoft_instruction *load = &run->code[index];
    if (load->option[1] == HDSOFT_SPACE_SHARED || load->operand[0] == HDSOFT_ABSENT || load->operand[0] < 0)
        return false;
    const uint64_t *base = (const uint64_t *)(const void *)(split->activation->frame + load->operand[0]);
    for (uint32_t rest = split->lanes; rest; rest &= rest - 1) {
        uint64_t address = base[__builtin_ctz(rest)] + (uint64_t)load->immediate;
        if (address - run->workspace >= WORKSPACE_BYTES)
            return false;
    }
    return true;
}

/* Whether the lanes are in a loop that does nothing but look at the grid's workspace. */
static bool spins(const hdsoft_warp *warp, const hdsoft_split *split)
{
    const hdsoft_run *run = warp->run;
    uint32_t at = (uint32_t)(split->next - run->code), end = at, loads = 0;
    while (end < run->program->code_count && end - at < LONGEST_SPIN &&
           (flow_at(run, end) != HDSOFT_FLOW_BRANCH || run->code[end].target > at))
        end++;
    if (end >= run->program->code_count || end - at >= LONGEST_SPIN || end - run->code[end].target >= LONGEST_SPIN)
        return false;
    for (uint32_t i = run->code[end].target; i < end; i++) {
        unsigned flow = flow_at(run, i);
        if (flow == HDSOFT_FLOW_LOAD) {
            if (!loads_workspace(warp, split, i))
                return false;
            loads++;
        } else if (flow >= HDSOFT_FLOW_LOAD && flow != HDSOFT_FLOW_BRANCH) {
            return false;
        }
    }
    return loads != 0;
}

/* A split that spins; NULL if some thread of the block does something else, or all wait, which its own look finds. */
static hdsoft_warp *spinning_warp(hdsoft_block *block, hdsoft_split **split)
{
    hdsoft_warp *found = NULL;
    for (uint32_t w = 0; w < block->warp_count; w++) {
        hdsoft_warp *warp = &block->warps[w];
        for (uint32_t i = 0; i < warp->split_count; i++) {
            if (warp->splits[i].state != HDSOFT_SPLIT_RUNNABLE)
                continue;
            if (!spins(warp, &warp->splits[i]))
                return NULL;
            if (!found)
                *split = &warp->splits[i];
            found = found ? found : warp;
        }
    }
    return found;
}

void hdsoft_deadlock_look(hdsoft_run *run)
{
    hdsoft_warp *warp = NULL;
    hdsoft_split *split = NULL;
    if (!run->workspace || run->resident == 0)
        return;
    for (uint32_t i = 0; i < run->context_count; i++) {
        hdsoft_split *other = NULL;
        hdsoft_warp *spinner = run->contexts[i]->resident ? spinning_warp(run->contexts[i], &other) : NULL;
        if (run->contexts[i]->resident && !spinner) {
            run->stuck_rounds = 0;
            return;
        }
        if (spinner && !warp) {
            warp = spinner;
            split = other;
        }
    }
    if (++run->stuck_rounds < ROUNDS)
        return;
    hdsoft_fault_raise(warp, split->next, 719, (unsigned)__builtin_ctz(split->lanes), 0,
                       "deadlock: %u blocks wait at the grid's barrier and %llu have ended without coming to it",
                       run->resident, (unsigned long long)(run->blocks - run->resident));
    run->fault.deadlock = true;
}
