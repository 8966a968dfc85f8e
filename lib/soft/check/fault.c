/* SPDX-License-Identifier: MIT */
#include "soft/check/fault.h"

#include <stdlib.h>

#include "driver/cuda_abi.h"
#include "soft/check/report.h"

#define TEXT_BYTES 4096

uint64_t hdsoft__describe_allocation(hdsoft_memory *memory, uint64_t address, hdsoft_text *text)
{
    hdsoft__allocation allocation;
    bool gone;
    if (!hdsoft__memory_neighbour(memory, address, &allocation, &gone))
        return 0;
    const char *what = allocation.range.kind == HDSOFT_RANGE_HOST       ? "host memory"
                       : allocation.range.kind == HDSOFT_RANGE_GLOBAL   ? "global variable"
                       : allocation.range.kind == HDSOFT_RANGE_CONSTANT ? "constant variable"
                                                                        : "allocation";
    hdsoft_text_append(text, "\n    %s #%llu, %llu bytes at 0x%llx, was made by ", what,
                       (unsigned long long)allocation.range.id,
                       (unsigned long long)(allocation.range.end - allocation.range.base),
                       (unsigned long long)allocation.range.base);
    if (allocation.range.kind != HDSOFT_RANGE_HEAP)
        hdsoft__site_describe(allocation.made, text);
    else
        hdsoft_text_append(text, "a kernel's malloc");
    if (allocation.freed) {
        hdsoft_text_append(text, "\n    it was freed by ");
        hdsoft__site_describe(allocation.freed, text);
    }
    return allocation.range.base;
}

static const char *kind_of(hdsoft_memory *memory, unsigned code, uint64_t address, bool deadlock)
{
    hdsoft__allocation allocation;
    bool gone;
    switch (code) {
    case HDCU_ERROR_ILLEGAL_ADDRESS:
        if (hdsoft__memory_neighbour(memory, address, &allocation, &gone) && gone && address < allocation.range.end)
            return "use after free";
        return "out of bounds";
    case HDCU_ERROR_MISALIGNED_ADDRESS: return "misaligned";
    case HDCU_ERROR_INVALID_ADDRESS_SPACE: return "wrong memory";
    case HDCU_ERROR_ASSERT: return "assertion";
    default: return deadlock ? "deadlock" : "fault";
    }
}

void hdsoft__check_fault(hdsoft_memory *memory, const char *kernel, const hdsoft_fault *fault)
{
    if (!hdsoft__checking(HDSOFT_CHECK_MEMORY))
        return;
    char bytes[TEXT_BYTES];
    hdsoft_text text = {bytes, sizeof bytes, 0};
    const char *kind = kind_of(memory, (unsigned)fault->code, fault->address, fault->deadlock);
    uint64_t allocation = 0;
    hdsoft_text_append(&text, "%s: %s", kind, fault->text);
    if (fault->code == HDCU_ERROR_ILLEGAL_ADDRESS)
        allocation = hdsoft__describe_allocation(memory, fault->address, &text);
    hdsoft__report report = {.kind = kind,
                             .kernel = kernel,
                             .source_file = fault->source_line ? fault->source_file : NULL,
                             .source_line = fault->source_line,
                             .ptx_line = fault->ptx_line,
                             .allocation = allocation,
                             .text = bytes};
    hdsoft__report_add(&report);
}

void hdsoft__check_command_fault(hdsoft_memory *memory, uint64_t address, const char *what)
{
    if (!hdsoft__checking(HDSOFT_CHECK_MEMORY))
        return;
    char bytes[TEXT_BYTES];
    hdsoft_text text = {bytes, sizeof bytes, 0};
    const char *kind = kind_of(memory, HDCU_ERROR_ILLEGAL_ADDRESS, address, false);
    hdsoft_text_append(&text, "%s: %s", kind, what);
    uint64_t allocation = hdsoft__describe_allocation(memory, address, &text);
    hdsoft__report report = {.kind = kind, .allocation = allocation, .text = bytes};
    hdsoft__report_add(&report);
}

void hdsoft__check_cooperative(const char *kernel, uint64_t blocks, uint64_t fit)
{
    if (!hdsoft__checking(HDSOFT_CHECK_MEMORY))
        return;
    char bytes[TEXT_BYTES];
    hdsoft_text text = {bytes, sizeof bytes, 0};
    hdsoft_text_append(&text,
                       "deadlock: kernel '%s' would never meet at the grid's barrier: the cooperative launch of %llu "
                       "blocks is refused, as the device holds %llu of them at a time\n    the launch was ",
                       kernel, (unsigned long long)blocks, (unsigned long long)fit);
    hdsoft__site_describe(hdsoft__site_here(), &text);
    hdsoft__report report = {.kind = "deadlock", .kernel = kernel, .text = bytes};
    hdsoft__report_add(&report);
}
