/* SPDX-License-Identifier: MIT */
/* A driver without an engine: code can be looked at, not run. The engine's own definitions take precedence. */
#include "soft/exec/engine.h"

#define WEAK __attribute__((weak))

WEAK int hdsoft_program_parse(const char *ptx, size_t size, unsigned capability, hdsoft_program **out, hdsoft_text *log)
{
    return 801;
}

WEAK void hdsoft_program_destroy(hdsoft_program *program)
{
}

WEAK size_t hdsoft_program_entry_count(const hdsoft_program *program)
{
    return 0;
}

WEAK const hdsoft_entry *hdsoft_program_entry(const hdsoft_program *program, size_t index)
{
    return NULL;
}

WEAK size_t hdsoft_program_variable_count(const hdsoft_program *program)
{
    return 0;
}

WEAK const hdsoft_variable *hdsoft_program_variable(const hdsoft_program *program, size_t index)
{
    return NULL;
}

WEAK int hdsoft_instance_create(const hdsoft_program *program, hdsoft_memory *memory, hdsoft_instance **out,
                                hdsoft_text *log)
{
    return 801;
}

WEAK void hdsoft_instance_destroy(hdsoft_instance *instance)
{
}

WEAK uint64_t hdsoft_instance_address(const hdsoft_instance *instance, size_t index)
{
    return 0;
}

WEAK int hdsoft_run_begin(const hdsoft_launch *launch, hdsoft_run **out)
{
    return 801;
}

WEAK int hdsoft_run_step(hdsoft_run *run, uint64_t budget, uint64_t *executed, hdsoft_fault *fault)
{
    return -1;
}

WEAK void hdsoft_run_end(hdsoft_run *run)
{
}
