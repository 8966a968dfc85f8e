/* SPDX-License-Identifier: MIT */
/*
 * The whole engine on untrusted text, under libFuzzer (fuzz.sh builds and runs it): parse it, place its globals, and
 * run every entry for a little, among them entries that fault, that wait for ever and that start from random parameters.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "soft/exec/engine.h"
#include "soft/model/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ENTRIES 16

static void run_entry(const hdsoft_instance *instance, const hdsoft_entry *entry, hdsoft_memory *memory,
                      const unsigned char *parameters, bool cooperative)
{
    hdsoft_launch launch = {.instance = instance, .entry = entry, .grid = {2, 1, 1}, .block = {40, 1, 1},
                            .parameters = parameters, .memory = memory, .multiprocessors = 1,
                            .dynamic_shared_bytes = 64, .cooperative = cooperative, .seed = cooperative ? 7 : 0};
    hdsoft_run *run;
    hdsoft_fault fault;
    if (hdsoft_run_begin(&launch, &run))
        return;
    for (int step = 0; step < 4 && hdsoft_run_step(run, 2000, NULL, &fault) == 1;)
        step++;
    hdsoft_run_end(run);
}

/* Once with zeros, once with an address that is there and numbers that are small. */
static void run_all(const hdsoft_program *program, const hdsoft_instance *instance, hdsoft_memory *memory)
{
    static const unsigned char zeros[32768];
    static unsigned char addresses[32768];
    hdsoft_range range;
    if (hdsoft_memory_allocate(memory, 4096, 256, HDSOFT_RANGE_DEVICE, &range))
        return;
    for (size_t i = 0; i + 8 <= sizeof addresses; i += 8)
        memcpy(addresses + i, &range.base, 8);
    size_t count = hdsoft_program_entry_count(program);
    for (size_t i = 0; i < count && i < ENTRIES; i++) {
        run_entry(instance, hdsoft_program_entry(program, i), memory, zeros, false);
        run_entry(instance, hdsoft_program_entry(program, i), memory, addresses, true);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char log[512];
    hdsoft_text text = {log, sizeof log, 0};
    hdsoft_program *program;
    hdsoft_instance *instance;
    if (hdsoft_program_parse((const char *)data, size, 90, &program, &text))
        return 0;
    hdsoft_memory *hosts = hdsoft__memory_create(0, NULL);
    hdsoft_memory *memory = hosts ? hdsoft__memory_create(1u << 24, hosts) : NULL;
    if (memory && hdsoft_instance_create(program, memory, &instance, &text) == 0) {
        run_all(program, instance, memory);
        hdsoft_instance_destroy(instance);
    }
    if (memory)
        hdsoft__memory_destroy(memory);
    if (hosts)
        hdsoft__memory_destroy(hosts);
    hdsoft_program_destroy(program);
    return 0;
}
