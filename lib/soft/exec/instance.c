/* SPDX-License-Identifier: MIT */
#include "soft/exec/instance.h"

#include <stdlib.h>
#include <string.h>

#include "soft/ptx/text.h"

static uint64_t address_of(const hdsoft_instance *instance, const hdsoft_relocation *relocation)
{
    uint64_t address = relocation->kind == HDSOFT_SYMBOL_FUNCTION
                           ? HDSOFT_WINDOW_CODE + (relocation->symbol + UINT64_C(1)) * 16
                           : instance->ranges[relocation->symbol].base;
    return (address + (uint64_t)relocation->addend) >> relocation->shift;
}

static void relocate(hdsoft_instance *instance)
{
    const hdsoft_program *program = instance->program;
    for (uint32_t i = 0; i < program->relocation_count; i++) {
        const hdsoft_relocation *relocation = &program->relocations[i];
        uint64_t address = address_of(instance, relocation);
        if (relocation->in_constants) {
            for (unsigned lane = 0; lane < HDSOFT_LANES; lane++)
                memcpy(instance->constants + relocation->offset + lane * relocation->width, &address,
                       relocation->width);
        } else if (relocation->offset + relocation->width <= program->globals[relocation->global].variable.size) {
            memcpy(instance->ranges[relocation->global].host + relocation->offset, &address, relocation->width);
        }
    }
}

static int place_globals(hdsoft_instance *instance, hdsoft_text *log)
{
    const hdsoft_program *program = instance->program;
    for (uint32_t i = 0; i < program->global_count; i++) {
        const hdsoft_global *global = &program->globals[i];
        uint64_t size = global->variable.size ? global->variable.size : 1;
        int code = hdsoft_memory_allocate(instance->memory, size, global->variable.align,
                                          global->variable.constant ? HDSOFT_RANGE_CONSTANT : HDSOFT_RANGE_GLOBAL,
                                          &instance->ranges[i]);
        if (code) {
            hdsoft_text_append(log, "no memory for variable '%s' of %llu bytes", global->variable.name,
                               (unsigned long long)size);
            return code;
        }
        instance->range_count = i + 1;
        memset(instance->ranges[i].host, 0, size);
        if (global->filled)
            memcpy(instance->ranges[i].host, global->bytes, global->filled);
    }
    return 0;
}

int hdsoft_instance_create(const hdsoft_program *program, hdsoft_memory *memory, hdsoft_instance **out,
                           hdsoft_text *log)
{
    *out = NULL;
    int code = 2;
    hdsoft_instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        goto no_memory;
    instance->program = program;
    instance->memory = memory;
    instance->ranges = calloc(program->global_count + 1u, sizeof *instance->ranges);
    instance->constants = aligned_alloc(128, (program->constant_bytes + 255u) / 128 * 128);
    if (!instance->ranges || !instance->constants)
        goto no_memory;
    if (program->constant_bytes)
        memcpy(instance->constants, program->constants, program->constant_bytes);
    code = place_globals(instance, log);
    if (code)
        goto destroy;
    relocate(instance);
    *out = instance;
    return 0;
no_memory:
    hdsoft_text_append(log, "out of memory");
destroy:
    hdsoft_instance_destroy(instance);
    return code;
}

void hdsoft_instance_destroy(hdsoft_instance *instance)
{
    if (!instance)
        return;
    for (uint32_t i = 0; i < instance->range_count; i++)
        hdsoft_memory_release(instance->memory, instance->ranges[i].base);
    free(instance->ranges);
    free(instance->constants);
    free(instance);
}

uint64_t hdsoft_instance_address(const hdsoft_instance *instance, size_t index)
{
    return index < instance->range_count ? instance->ranges[index].base : 0;
}
