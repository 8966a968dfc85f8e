/* SPDX-License-Identifier: MIT */
/* What went wrong, in one sentence: the kernel, the source line, the thread and the memory around. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "soft/exec/warp.h"
#include "soft/ptx/text.h"

static void name_thread(const hdsoft_warp *warp, unsigned lane, hdsoft_fault *fault)
{
    for (unsigned i = 0; i < 3; i++) {
        fault->block[i] = warp->block->id[i];
        fault->thread[i] = warp->thread_index[i][lane];
    }
}

static void name_place(const hdsoft_run *run, uint32_t index, hdsoft_fault *fault, hdsoft_text *text)
{
    const hdsoft_function *function = hdsoft_program_function_of(run->program, index);
    const char *file;
    hdsoft_text_append(text, "kernel '%s'", run->entry->name);
    if (function && function != run->function)
        hdsoft_text_append(text, " in function '%s'", function->name);
    if (index < run->program->code_count)
        fault->ptx_line = run->program->origins[index].ptx_line;
    if (hdsoft_program_source(run->program, index, &file, &fault->source_line)) {
        snprintf(fault->source_file, sizeof fault->source_file, "%s", file);
        hdsoft_text_append(text, " at %s:%u", fault->source_file, fault->source_line);
    }
    hdsoft_text_append(text, " (PTX line %u), block (%u,%u,%u) thread (%u,%u,%u): ", fault->ptx_line, fault->block[0],
                       fault->block[1], fault->block[2], fault->thread[0], fault->thread[1], fault->thread[2]);
}

const hdsoft_instruction *hdsoft_fault_raise(hdsoft_warp *warp, const hdsoft_instruction *instruction, int code,
                                             unsigned lane, uint64_t address, const char *format, ...)
{
    hdsoft_run *run = warp->run;
    hdsoft_warp_leave(warp);
    if (run->faulted)
        return instruction + 1;
    run->faulted = true;
    hdsoft_fault *fault = &run->fault;
    memset(fault, 0, sizeof *fault);
    fault->code = code;
    fault->address = address;
    name_thread(warp, lane, fault);
    hdsoft_text text = {fault->text, sizeof fault->text, 0};
    name_place(run, hdsoft_index(warp, instruction), fault, &text);
    va_list arguments;
    va_start(arguments, format);
    hdsoft_text_append_list(&text, format, arguments);
    va_end(arguments);
    return instruction + 1;
}

const hdsoft_instruction *hdsoft_fault_space(hdsoft_warp *warp, const hdsoft_instruction *instruction, unsigned lane,
                                             uint64_t address, uint32_t size, uint64_t limit, const char *space,
                                             int write)
{
    const char *what = write ? "write" : "read";
    if (address < limit && limit - address >= size && address % size)
        return hdsoft_fault_raise(warp, instruction, 716, lane, address,
                                  "misaligned %s of %u bytes at %s address 0x%llx", what, size, space,
                                  (unsigned long long)address);
    return hdsoft_fault_raise(warp, instruction, 700, lane, address,
                              "%s of %u bytes at %s address 0x%llx, outside of the %llu bytes of %s memory", what, size,
                              space, (unsigned long long)address, (unsigned long long)limit, space);
}
