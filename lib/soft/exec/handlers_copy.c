/* SPDX-License-Identifier: MIT */
/*
 * cp.async: global memory into shared memory. A GPU may make the copy at any time up to the wait for it; here it is
 * made at once, so that committing and waiting have nothing left to do.
 */
#include <string.h>

#include "soft/exec/control.h"
#include "soft/exec/warp.h"

#define LARGEST 16u

/* Read `bytes` of the lane's source; the address is aligned to the whole copy even if less is read. */
static bool fetch(hdsoft_warp *warp, const hdsoft_instruction *instruction, unsigned lane, uint64_t address,
                  uint32_t bytes, uint32_t align, unsigned char *to)
{
    bool host_memory;
    const unsigned char *from =
        hdsoft_locate(warp, instruction, lane, address, bytes, align, HDSOFT_READ, &host_memory);
    if (!from)
        return false;
    if (host_memory)
        return hdsoft_copy_in(warp, instruction, lane, address, to, bytes);
    memcpy(to, from, bytes);
    return true;
}

/* Operands: destination in shared memory, source, how many bytes to read, whether to read none. option[0]: bytes of the
 * copy, which are zero where nothing is read. */
static const hdsoft_instruction *handle_cp_async(hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    const uint64_t *destinations = hdsoft_source(warp, instruction->operand[0]);
    const uint64_t *sources = hdsoft_source(warp, instruction->operand[1]);
    const uint32_t *counts = hdsoft_source(warp, instruction->operand[2]);
    uint32_t size = instruction->option[0], ignored = 0;
    if (instruction->operand[3] != HDSOFT_ABSENT)
        ignored = *(const uint32_t *)hdsoft_source(warp, instruction->operand[3]);
    for (uint32_t rest = warp->active; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint64_t to = destinations[lane], from = sources[lane] + (uint64_t)instruction->immediate;
        uint32_t bytes = ignored >> lane & 1 ? 0 : counts[lane];
        unsigned char data[LARGEST] = {0};
        bytes = bytes < size ? bytes : size;
        if (bytes && !fetch(warp, instruction, lane, from, bytes, size, data))
            return instruction + 1;
        if (to >= warp->shared_bytes || warp->shared_bytes - to < size || to % size)
            return hdsoft_fault_space(warp, instruction, lane, to, size, warp->shared_bytes, "shared", HDSOFT_WRITE);
        memcpy(warp->shared + to, data, size);
    }
    return instruction + 1;
}

const hdsoft_form hdsoft_forms_copy[] = {
    {"cp_async", handle_cp_async, ":qqwp"},
    {NULL, NULL, NULL},
};
