/* SPDX-License-Identifier: MIT */
#include "soft/exec/watch.h"

#include <stdlib.h>
#include <string.h>

#include "soft/exec/follow.h"

uint32_t hdsoft_global_lanes(const uint64_t *addresses, uint32_t active)
{
    uint64_t all = 0;
    for (unsigned lane = 0; lane < HDSOFT_LANES; lane++)
        all |= addresses[lane];
    if (!(all & HDSOFT_WINDOW_MASK))
        return active;
    uint32_t found = 0;
    for (unsigned lane = 0; lane < HDSOFT_LANES; lane++)
        found |= (uint32_t)!(addresses[lane] & HDSOFT_WINDOW_MASK) << lane;
    return active & found;
}

/* A copy may read less than its size, and each lane another count. */
static void tell_copy(hdsoft_warp *warp, const hdsoft_instruction *instruction, hdsoft_access *access)
{
    const uint32_t *counts = hdsoft_source(warp, instruction->operand[2]);
    uint32_t size = access->bytes, lanes = access->active, ignored = 0;
    if (instruction->operand[3] != HDSOFT_ABSENT)
        ignored = *(const uint32_t *)hdsoft_source(warp, instruction->operand[3]);
    for (uint32_t rest = lanes & ~ignored; rest;) {
        uint32_t bytes = counts[__builtin_ctz(rest)], alike = 0;
        for (unsigned lane = 0; lane < HDSOFT_LANES; lane++)
            alike |= (uint32_t)(counts[lane] == bytes) << lane;
        access->active = rest & alike;
        access->bytes = bytes < size ? bytes : size;
        if (access->bytes)
            warp->run->watch->access(warp->run->watch->context, access);
        rest &= ~alike;
    }
}

void hdsoft_watch_tell(hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    const hdsoft_run *run = warp->run;
    uint32_t index = hdsoft_index(warp, instruction), flags = instruction->access & 0xff;
    if (flags & HDSOFT_ACCESS_FENCE) {
        run->watch->fence(run->watch->context);
    } else {
        bool atomic = (flags & (HDSOFT_ACCESS_READ | HDSOFT_ACCESS_WRITE)) ==
                      (HDSOFT_ACCESS_READ | HDSOFT_ACCESS_WRITE);
        unsigned operand = atomic || flags & HDSOFT_ACCESS_COPY ? 1 : 0;
        const uint64_t *base = hdsoft_source(warp, instruction->operand[operand]);
        uint64_t addresses[HDSOFT_LANES];
        for (unsigned lane = 0; lane < HDSOFT_LANES; lane++)
            addresses[lane] = base[lane] + (uint64_t)instruction->immediate;
        hdsoft_access access = {.warp = warp, .instruction = index, .bytes = instruction->access >> 8, .flags = flags,
                                .addresses = addresses, .active = hdsoft_global_lanes(addresses, warp->active)};
        if (access.active && flags & HDSOFT_ACCESS_COPY)
            tell_copy(warp, instruction, &access);
        else if (access.active)
            run->watch->access(run->watch->context, &access);
    }
}

static const hdsoft_instruction *watched(hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    hdsoft_watch_tell(warp, instruction);
    return warp->run->program->code[hdsoft_index(warp, instruction)].handler(warp, instruction);
}

bool hdsoft_watch_code(hdsoft_run *run)
{
    size_t count = run->program->code_count;
    hdsoft_instruction *code = malloc((count + 1) * sizeof *code);
    if (!code)
        return false;
    memcpy(code, run->program->code, count * sizeof *code);
    for (size_t i = 0; i < count; i++) {
        if (run->watch->unwritten)
            code[i].handler = hdsoft_followed;
        else if (code[i].access)
            code[i].handler = watched;
    }
    run->code = run->watched_code = code;
    return true;
}

void hdsoft_access_thread(const hdsoft_access *access, unsigned lane, uint32_t block[3], uint32_t thread[3])
{
    const hdsoft_warp *warp = access->warp;
    for (unsigned i = 0; i < 3; i++) {
        block[i] = warp->block->id[i];
        thread[i] = warp->thread_index[i][lane];
    }
}

void hdsoft_program_where(const hdsoft_program *program, uint32_t instruction, hdsoft_place *place)
{
    memset(place, 0, sizeof *place);
    if (instruction >= program->code_count)
        return;
    const hdsoft_function *function = hdsoft_program_function_of(program, instruction);
    place->function = function ? function->name : NULL;
    place->ptx_line = program->origins[instruction].ptx_line;
    if (!hdsoft_program_source(program, instruction, &place->file, &place->line))
        place->file = NULL;
}

uint32_t hdsoft_program_size(const hdsoft_program *program)
{
    return program->code_count;
}
