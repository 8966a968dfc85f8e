/* SPDX-License-Identifier: MIT */
/* External functions that are no mathematics: printing, assertions, the device heap. */
#include <stdio.h>
#include <string.h>

#include "soft/exec/builtin.h"

static void read_text(hdsoft_warp *warp, const hdsoft_instruction *instruction, unsigned lane, uint64_t address,
                      char *text, size_t room)
{
    text[0] = '\0';
    for (size_t i = 0; i + 1 < room && address; i++) {
        text[i + 1] = '\0';
        if (!hdsoft_copy_in(warp, instruction, lane, address + i, text + i, 1) || text[i] == '\0')
            break;
    }
}

/* __assertfail(message, file, line, function, character size): what the runtime prints, for each lane. */
static bool assert_fail(hdsoft_warp *warp, const hdsoft_instruction *instruction, const hdsoft_builtin *builtin,
                        hdsoft_cells *cells)
{
    (void)builtin;
    char message[512] = "", file[256] = "", function[256] = "", line[1400];
    unsigned first = (unsigned)__builtin_ctz(warp->mask);
    for (uint32_t rest = warp->mask; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        read_text(warp, instruction, lane, cells[0][lane], message, sizeof message);
        read_text(warp, instruction, lane, cells[1][lane], file, sizeof file);
        read_text(warp, instruction, lane, cells[3][lane], function, sizeof function);
        if (warp->run->faulted)
            return false;
        int length = snprintf(
            line, sizeof line, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file,
            (uint32_t)cells[2][lane], function, warp->block->id[0], warp->block->id[1], warp->block->id[2],
            warp->thread_index[0][lane], warp->thread_index[1][lane], warp->thread_index[2][lane], message);
        if (warp->run->print && length > 0)
            warp->run->print(warp->run->print_context, line,
                             (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
    }
    hdsoft_fault_raise(warp, instruction, 710, first, 0, "assertion `%s` failed (%s:%u)", message, file,
                       (uint32_t)cells[2][first]);
    return false;
}

/* A block of the device heap outlives the kernel, until it is freed or the memory goes. */
static bool heap_allocate(hdsoft_warp *warp, const hdsoft_instruction *instruction, const hdsoft_builtin *builtin,
                          hdsoft_cells *cells)
{
    (void)instruction, (void)builtin;
    for (uint32_t rest = warp->mask; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        hdsoft_range range;
        uint64_t size = cells[1][lane];
        bool made = size && hdsoft_memory_allocate(warp->run->memory, size, 16, HDSOFT_RANGE_HEAP, &range) == 0;
        cells[0][lane] = made ? range.base : 0;
    }
    return true;
}

static bool heap_free(hdsoft_warp *warp, const hdsoft_instruction *instruction, const hdsoft_builtin *builtin,
                      hdsoft_cells *cells)
{
    (void)builtin;
    for (uint32_t rest = warp->mask; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint64_t address = cells[0][lane];
        hdsoft_range range;
        if (address == 0)
            continue;
        if (!hdsoft_memory_find(warp->run->memory, address, &range) || range.base != address ||
            range.kind != HDSOFT_RANGE_HEAP) {
            hdsoft_fault_raise(warp, instruction, 719, lane, address, "free of 0x%llx, which malloc has not given",
                               (unsigned long long)address);
            return false;
        }
        hdsoft_memory_release(warp->run->memory, address);
    }
    return true;
}

/* What stands in a table of virtual functions for one that no class has defined. */
static bool pure_virtual(hdsoft_warp *warp, const hdsoft_instruction *instruction, const hdsoft_builtin *builtin,
                         hdsoft_cells *cells)
{
    (void)builtin, (void)cells;
    hdsoft_fault_raise(warp, instruction, 719, (unsigned)__builtin_ctz(warp->mask), 0, "call of a pure virtual function");
    return false;
}

const hdsoft_builtin hdsoft_builtins_system[] = {
    {.name = "vprintf", .signature = "w:qq", .call = hdsoft_builtin_print},
    {.name = "__assertfail", .signature = ":qqwqq", .call = assert_fail},
    {.name = "malloc", .signature = "q:q", .call = heap_allocate},
    {.name = "free", .signature = ":q", .call = heap_free},
    {.name = "__cxa_pure_virtual", .signature = ":", .call = pure_virtual},
    {.name = NULL},
};
