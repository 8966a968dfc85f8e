/* SPDX-License-Identifier: MIT */
#include "soft/ptx/program.h"

#include <stdlib.h>
#include <string.h>

void hdsoft_program_destroy(hdsoft_program *program)
{
    if (!program)
        return;
    for (uint32_t i = 0; i < program->function_count; i++) {
        free(program->functions[i].name);
        free(program->functions[i].formals);
    }
    for (uint32_t i = 0; i < program->global_count; i++) {
        free((char *)(uintptr_t)program->globals[i].variable.name);
        free(program->globals[i].bytes);
    }
    for (uint32_t i = 0; i < program->file_count; i++)
        free(program->files[i].name);
    for (uint32_t i = 0; i < program->message_count; i++)
        free(program->messages[i]);
    free(program->code);
    free(program->origins);
    free(program->effects);
    free(program->functions);
    free(program->entries);
    free(program->entry_functions);
    free(program->parameters);
    free(program->globals);
    free(program->shared);
    free(program->constants);
    free(program->relocations);
    free(program->calls);
    free(program->actuals);
    free(program->tables);
    free(program->branch_targets);
    free(program->locations);
    free(program->files);
    free(program->messages);
    free(program);
}

size_t hdsoft_program_entry_count(const hdsoft_program *program)
{
    return program->entry_count;
}

const hdsoft_entry *hdsoft_program_entry(const hdsoft_program *program, size_t index)
{
    return index < program->entry_count ? &program->entries[index] : NULL;
}

const hdsoft_entry *hdsoft_program_find_entry(const hdsoft_program *program, const char *name)
{
    for (uint32_t i = 0; i < program->entry_count; i++)
        if (strcmp(program->entries[i].name, name) == 0)
            return &program->entries[i];
    return NULL;
}

size_t hdsoft_program_variable_count(const hdsoft_program *program)
{
    return program->global_count;
}

const hdsoft_variable *hdsoft_program_variable(const hdsoft_program *program, size_t index)
{
    return index < program->global_count ? &program->globals[index].variable : NULL;
}

bool hdsoft_program_source(const hdsoft_program *program, uint32_t instruction, const char **file, uint32_t *line)
{
    uint32_t location = instruction < program->code_count ? program->origins[instruction].location : 0;
    if (location == 0 || location > program->location_count)
        return false;
    const hdsoft_location *found = &program->locations[location - 1];
    for (uint32_t i = 0; i < program->file_count; i++) {
        if (program->files[i].number == found->file) {
            *file = program->files[i].name;
            *line = found->line;
            return true;
        }
    }
    return false;
}

const hdsoft_function *hdsoft_program_function_of(const hdsoft_program *program, uint32_t instruction)
{
    for (uint32_t i = 0; i < program->function_count; i++) {
        const hdsoft_function *function = &program->functions[i];
        if (function->defined && instruction - function->first < function->count)
            return function;
    }
    return NULL;
}
