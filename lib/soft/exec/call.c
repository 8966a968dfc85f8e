/* SPDX-License-Identifier: MIT */
/*
 * Calls and returns. A call gives its lanes an activation with a frame of its own; lanes that call in different
 * groups, or recurse to different depths, have different activations, and meet again behind the call.
 */
#include <stdlib.h>
#include <string.h>

#include "soft/exec/builtin.h"
#include "soft/exec/control.h"
#include "soft/exec/warp.h"

#define LARGEST_DEPTH 16384
#define LARGEST_LOCAL (UINT64_C(1) << 20) /* bytes per lane */
#define LARGEST_FRAMES (UINT64_C(1) << 30)

static hdsoft_activation *activation_new(hdsoft_run *run, const hdsoft_function *function)
{
    for (hdsoft_activation **link = &run->free_activations; *link; link = &(*link)->next_free) {
        hdsoft_activation *found = *link;
        if (found->function == function) {
            *link = found->next_free;
            return found;
        }
    }
    if (run->frame_bytes_used + function->frame_bytes > LARGEST_FRAMES)
        return NULL;
    hdsoft_activation *activation = calloc(1, sizeof *activation);
    if (!activation)
        return NULL;
    activation->frame = calloc(1, function->frame_bytes + 1u);
    if (!activation->frame) {
        free(activation);
        return NULL;
    }
    activation->function = function;
    run->frame_bytes_used += function->frame_bytes;
    return activation;
}

void hdsoft_activation_drop(hdsoft_warp *warp, hdsoft_activation *activation, uint32_t lanes)
{
    activation->lanes &= ~lanes;
    if (activation->lanes || activation == &warp->kernel)
        return;
    activation->next_free = warp->run->free_activations;
    warp->run->free_activations = activation;
}

void hdsoft_activations_destroy(hdsoft_run *run)
{
    while (run->free_activations) {
        hdsoft_activation *activation = run->free_activations;
        run->free_activations = activation->next_free;
        free(activation->frame);
        free(activation);
    }
}

bool hdsoft_local_reserve(hdsoft_warp *warp, uint64_t bytes)
{
    bytes = (bytes + 7) / 8 * 8;
    if (bytes > warp->local_room) {
        uint64_t room = warp->local_room ? warp->local_room : 64;
        while (room < bytes)
            room *= 2;
        unsigned char *grown = bytes > LARGEST_LOCAL * 16 ? NULL : realloc(warp->local, room * HDSOFT_LANES);
        if (!grown)
            return false;
        memset(grown + warp->local_room * HDSOFT_LANES, 0, (room - warp->local_room) * HDSOFT_LANES);
        warp->local = grown;
        warp->local_room = room;
    }
    if (bytes > warp->local_bytes)
        warp->local_bytes = bytes;
    return true;
}

static unsigned char *row_of(unsigned char *cells, uint32_t offset, uint32_t row)
{
    return cells + (offset / 8 + row) * (size_t)HDSOFT_CELL;
}

/* Arguments: all lanes' rows; what inactive lanes get nobody reads. */
static void pass(const hdsoft_warp *warp, const hdsoft_call *call, const hdsoft_formal *formals, unsigned char *cells)
{
    if (!call->actual_count)
        return; /* a program of such calls has no list of them */
    const hdsoft_formal *actuals = warp->run->program->actuals + call->first_actual;
    for (uint32_t i = call->return_count; i < call->actual_count; i++) {
        uint32_t size = actuals[i].size < formals[i].size ? actuals[i].size : formals[i].size;
        for (uint32_t row = 0; row * 8 < size; row++)
            memcpy(row_of(cells, formals[i].offset, row), row_of(warp->frame, actuals[i].offset, row), HDSOFT_CELL);
    }
}

/* Return values of some lanes. */
static void give_back(const hdsoft_program *program, const hdsoft_call *call, const hdsoft_formal *formals,
                      unsigned char *from, unsigned char *to, uint32_t lanes)
{
    if (!call->return_count)
        return;
    const hdsoft_formal *actuals = program->actuals + call->first_actual;
    for (uint32_t i = 0; i < call->return_count; i++) {
        uint32_t size = actuals[i].size < formals[i].size ? actuals[i].size : formals[i].size;
        for (uint32_t row = 0; row * 8 < size; row++) {
            unsigned char *source = row_of(from, formals[i].offset, row);
            unsigned char *target = row_of(to, actuals[i].offset, row);
            for (uint32_t rest = lanes; rest; rest &= rest - 1)
                memcpy(target + __builtin_ctz(rest) * 8, source + __builtin_ctz(rest) * 8, 8);
        }
    }
}

static const hdsoft_instruction *call_builtin(hdsoft_warp *warp, const hdsoft_instruction *instruction,
                                              const hdsoft_call *call, const hdsoft_function *function)
{
    uint64_t cells[HDSOFT_BUILTIN_ARGUMENTS][HDSOFT_LANES];
    memset(cells, 0, sizeof cells);
    pass(warp, call, function->formals, (unsigned char *)cells);
    if (!function->builtin->call(warp, instruction, function->builtin, cells))
        return instruction + 1;
    give_back(warp->run->program, call, function->formals, (unsigned char *)cells, warp->frame, warp->mask);
    return instruction + 1;
}

static const hdsoft_instruction *enter(hdsoft_warp *warp, const hdsoft_instruction *instruction,
                                       const hdsoft_function *function)
{
    const hdsoft_call *call = &warp->run->program->calls[instruction->target];
    unsigned lane = (unsigned)__builtin_ctz(warp->mask);
    if (function->builtin)
        return call_builtin(warp, instruction, call, function);
    hdsoft_activation *parent = warp->activation;
    uint32_t local_base = parent->local_base + (parent->function->local_bytes + 15) / 16 * 16;
    hdsoft_activation *activation = NULL;
    if (parent->depth < LARGEST_DEPTH && local_base + (uint64_t)function->local_bytes <= LARGEST_LOCAL &&
        hdsoft_local_reserve(warp, local_base + (uint64_t)function->local_bytes))
        activation = activation_new(warp->run, function);
    if (!activation)
        return hdsoft_fault_raise(warp, instruction, 719, lane, 0,
                                  "stack overflow: %u calls deep, %u bytes of local memory per thread", parent->depth,
                                  local_base);
    pass(warp, call, function->formals, activation->frame);
    activation->parent = parent;
    activation->call = instruction;
    activation->lanes = warp->mask;
    activation->depth = parent->depth + 1;
    activation->local_base = local_base;
    warp->activation = activation;
    warp->frame = activation->frame;
    warp->splits[warp->current].activation = activation;
    warp->limit = (const hdsoft_instruction *)UINTPTR_MAX; /* the deepest goes first */
    return warp->code + function->first;
}

static const hdsoft_instruction *handle_call(hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    const hdsoft_program *program = warp->run->program;
    return enter(warp, instruction, &program->functions[program->calls[instruction->target].function]);
}

/* Lanes with another target come here again. */
static const hdsoft_instruction *handle_call_indirect(hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    const hdsoft_program *program = warp->run->program;
    const hdsoft_call *call = &program->calls[instruction->target];
    const uint64_t *addresses = hdsoft_source(warp, instruction->operand[0]);
    unsigned lane = (unsigned)__builtin_ctz(warp->mask);
    uint64_t address = addresses[lane];
    uint64_t index = (address - HDSOFT_WINDOW_CODE) / 16 - 1;
    if (address % 16 || address <= HDSOFT_WINDOW_CODE || index >= program->function_count)
        return hdsoft_fault_raise(warp, instruction, 718, lane, address, "call of 0x%llx, which is no function",
                                  (unsigned long long)address);
    const hdsoft_function *function = &program->functions[index];
    bool fits = (function->defined || function->builtin) && !function->entry &&
                function->formal_count == call->actual_count && function->return_count == call->return_count;
    if (!fits)
        return hdsoft_fault_raise(warp, instruction, 718, lane, address,
                                  "call of function '%s' passes other parameters than it is declared with",
                                  function->name);
    uint32_t others = 0;
    for (uint32_t rest = warp->mask; rest; rest &= rest - 1)
        if (addresses[__builtin_ctz(rest)] != address)
            others |= rest & (0 - rest);
    if (others)
        hdsoft_warp_part(warp, instruction, others);
    const hdsoft_instruction *next = enter(warp, instruction, function);
    if (others && function->builtin)
        hdsoft_warp_leave(warp);
    return next;
}

static const hdsoft_instruction *handle_ret(hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    hdsoft_activation *activation = warp->activation, *parent = activation->parent;
    const hdsoft_program *program = warp->run->program;
    if (!parent) {
        hdsoft_warp_exit(warp);
        return instruction;
    }
    give_back(program, &program->calls[activation->call->target], activation->function->formals, activation->frame,
              parent->frame, warp->mask);
    const hdsoft_instruction *next = activation->call + 1;
    hdsoft_activation_drop(warp, activation, warp->mask);
    warp->activation = parent;
    warp->frame = parent->frame;
    warp->splits[warp->current].activation = parent;
    if (warp->split_count > 1)
        hdsoft_warp_leave(warp);
    return next;
}

const hdsoft_form hdsoft_forms_call[] = {
    {"call", handle_call, ":"},
    {"call_indirect", handle_call_indirect, ":q"},
    {"ret", handle_ret, ":"},
    {NULL, NULL, NULL},
};
