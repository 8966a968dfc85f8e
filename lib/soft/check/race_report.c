/* SPDX-License-Identifier: MIT */
#include "soft/check/race_report.h"

#include "soft/check/fault.h"
#include "soft/check/race.h"
#include "soft/model/driver.h"

#define TEXT_BYTES 8192

/* The table in which an address would be, of whichever device. */
static hdsoft_memory *memory_of(uint64_t address)
{
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        if (hdsoft__memory_is_device(hdsoft__the.devices[i].memory, address))
            return hdsoft__the.devices[i].memory;
    }
    return hdsoft__the.hosts;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Races between the same places in program and kernels are one. */
static uint64_t places_of(const hdsoft__touch *now, const hdsoft__touch *before)
{
    uint64_t hash = mix(mix(1, (uintptr_t)now->operation->enqueued), (uintptr_t)before->operation->enqueued);
    return mix(mix(hash, now->instruction), (uint64_t)before->instruction << 8 | before->operation->kind);
}

void hdsoft__race_report(const hdsoft__touch *now, const hdsoft__touch *before, uint64_t address, uint64_t bytes)
{
    hdsoft_place place = {0};
    if (now->operation->kernel)
        hdsoft__lines_find(now->operation->lines, now->instruction, &place);
    char full[TEXT_BYTES];
    hdsoft_text text = {full, sizeof full, 0};
    hdsoft__report report = {.kind = "race", .kernel = now->operation->kernel,
                             .source_file = place.file, .source_line = place.line, .ptx_line = place.ptx_line,
                             .distinct = places_of(now, before), .text = full};
    if (!hdsoft__report_is_new(&report))
        return;
    hdsoft_text_append(&text, "race: %llu byte%s at 0x%llx, touched by two operations that nothing orders\n    ",
                       (unsigned long long)bytes, bytes == 1 ? "" : "s", (unsigned long long)address);
    hdsoft__describe_touch(now, &text);
    hdsoft_text_append(&text, "\n    ");
    hdsoft__describe_touch(before, &text);
    hdsoft__describe_allocation(memory_of(address), address, &text);
    hdsoft__report_add(&report);
}

void hdsoft__race_give_up(const char *why)
{
    if (!(atomic_fetch_and(&hdsoft__checks_on, ~(unsigned)HDSOFT_CHECK_RACE) & HDSOFT_CHECK_RACE))
        return;
    char full[256];
    hdsoft_text text = {full, sizeof full, 0};
    hdsoft_text_append(&text, "race check stopped: %s; races from here on are not found", why);
    hdsoft__report_add(&(hdsoft__report){.kind = "race check stopped", .text = full});
}
