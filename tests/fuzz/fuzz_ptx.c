/* SPDX-License-Identifier: MIT */
/*
 * The PTX parser, and a short run of what it accepts, under libFuzzer:
 *
 *   clang-19 -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fno-strict-aliasing -DHDSOFT_LEVEL=base \
 *     -Ilib tests/fuzz/fuzz_ptx.c lib/soft/ptx/[a-z]*.c lib/soft/exec/[a-z]*.c lib/soft/model/memory.c \
 *     lib/soft/model/address_space.c -lm -o fuzz_ptx
 *   ./fuzz_ptx -max_len=4096 corpus/
 */
#include <stdint.h>
#include <stdlib.h>

#include "soft/exec/engine.h"
#include "soft/model/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_one(const hdsoft_program *program, const hdsoft_instance *instance, hdsoft_memory *memory)
{
    static const unsigned char parameters[32768];
    for (size_t i = 0; i < hdsoft_program_entry_count(program) && i < 2; i++) {
        hdsoft_launch launch = {.instance = instance, .entry = hdsoft_program_entry(program, i), .grid = {2, 1, 1},
                                .block = {40, 1, 1}, .parameters = parameters, .memory = memory, .multiprocessors = 1,
                                .dynamic_shared_bytes = 64};
        hdsoft_run *run;
        hdsoft_fault fault;
        if (hdsoft_run_begin(&launch, &run))
            continue;
        for (int step = 0; step < 4 && hdsoft_run_step(run, 2000, NULL, &fault) == 1;)
            step++;
        hdsoft_run_end(run);
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
        run_one(program, instance, memory);
        hdsoft_instance_destroy(instance);
    }
    if (memory)
        hdsoft__memory_destroy(memory);
    if (hosts)
        hdsoft__memory_destroy(hosts);
    hdsoft_program_destroy(program);
    return 0;
}
