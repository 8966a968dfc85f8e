/* SPDX-License-Identifier: MIT */
#include "jit/kernel_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "jit/cursor.h"

#define TABLE_FORMAT 2u
#define NAMES_SHOWN 12u

static char *copy_name(const char *name, size_t size)
{
    char *copy = malloc(size + 1);
    if (copy) {
        memcpy(copy, name, size);
        copy[size] = '\0';
    }
    return copy;
}

/* Makes room for one more element; capacities double. */
static bool grow(void **array, uint32_t count, uint32_t *capacity, size_t element)
{
    if (count < *capacity)
        return true;
    if (*capacity > UINT32_MAX / 2)
        return false;
    uint32_t wanted = *capacity ? *capacity * 2 : 8;
    size_t bytes;
    if (!hdrt__size_multiply(wanted, element, &bytes))
        return false;
    void *bigger = realloc(*array, bytes);
    if (!bigger)
        return false;
    *array = bigger;
    *capacity = wanted;
    return true;
}

hdrt__kernel_entry *hdrt__kernel_table_add(hdrt__kernel_table *table, const char *name, size_t name_size)
{
    void *kernels = table->kernels;
    if (!grow(&kernels, table->kernel_count, &table->kernel_capacity, sizeof(*table->kernels)))
        return NULL;
    table->kernels = kernels;
    char *copy = copy_name(name, name_size);
    if (!copy)
        return NULL;
    hdrt__kernel_entry *entry = &table->kernels[table->kernel_count++];
    *entry = (hdrt__kernel_entry){.name = copy, .parameters_known = true};
    return entry;
}

bool hdrt__kernel_entry_add(hdrt__kernel_entry *entry, const hdrt_parameter *parameter)
{
    uint32_t count = entry->parameter_count;
    if (count >= HDRT__PARAMETER_LIMIT)
        return false;
    /* Powers of two as capacities, so that none need be kept. */
    if ((count & (count - 1)) == 0) {
        hdrt_parameter *bigger = realloc(entry->parameters, (count ? (size_t)count * 2 : 1) * sizeof(*bigger));
        if (!bigger)
            return false;
        entry->parameters = bigger;
    }
    entry->parameters[entry->parameter_count++] = *parameter;
    return true;
}

bool hdrt__kernel_table_add_variable(hdrt__kernel_table *table, const char *name, size_t name_size, uint64_t bytes)
{
    void *variables = table->variables;
    if (!grow(&variables, table->variable_count, &table->variable_capacity, sizeof(*table->variables)))
        return false;
    table->variables = variables;
    char *copy = copy_name(name, name_size);
    if (!copy)
        return false;
    table->variables[table->variable_count++] = (hdrt__variable_entry){.name = copy, .bytes = bytes};
    return true;
}

const hdrt__kernel_entry *hdrt__kernel_table_find(const hdrt__kernel_table *table, const char *name,
                                                  uint32_t *out_index)
{
    for (uint32_t i = 0; i < table->kernel_count; i++)
        if (strcmp(table->kernels[i].name, name) == 0) {
            if (out_index)
                *out_index = i;
            return &table->kernels[i];
        }
    return NULL;
}

void hdrt__kernel_table_names(const hdrt__kernel_table *table, hdrt__buffer *text)
{
    if (table->kernel_count == 0)
        hdrt__buffer_text(text, "none");
    for (uint32_t i = 0; i < table->kernel_count; i++) {
        if (i == NAMES_SHOWN) {
            hdrt__buffer_format(text, " and %u more", table->kernel_count - i);
            return;
        }
        const char *before = i == 0 ? "" : i + 1 == table->kernel_count ? " and " : ", ";
        hdrt__buffer_format(text, "%s'%s'", before, table->kernels[i].name);
    }
}

static void write_name(hdrt__buffer *bytes, const char *name)
{
    size_t size = strlen(name);
    hdrt__buffer_u64(bytes, size);
    hdrt__buffer_append(bytes, name, size);
}

void hdrt__kernel_table_write(const hdrt__kernel_table *table, hdrt__buffer *bytes)
{
    hdrt__buffer_u32(bytes, TABLE_FORMAT);
    hdrt__buffer_u32(bytes, table->writable_variables);
    hdrt__buffer_u32(bytes, table->kernel_count);
    for (uint32_t i = 0; i < table->kernel_count; i++) {
        const hdrt__kernel_entry *kernel = &table->kernels[i];
        write_name(bytes, kernel->name);
        hdrt__buffer_u32(bytes, kernel->parameters_known);
        hdrt__buffer_u32(bytes, kernel->resources_known);
        hdrt__buffer_u32(bytes, kernel->registers);
        hdrt__buffer_u32(bytes, kernel->static_shared_bytes);
        hdrt__buffer_u32(bytes, kernel->local_bytes);
        hdrt__buffer_u32(bytes, kernel->parameter_count);
        for (uint32_t p = 0; p < kernel->parameter_count; p++) {
            hdrt__buffer_u32(bytes, kernel->parameters[p].offset);
            hdrt__buffer_u32(bytes, kernel->parameters[p].size);
            hdrt__buffer_u32(bytes, kernel->parameters[p].align);
            hdrt__buffer_u32(bytes, kernel->parameters[p].argument_class);
        }
    }
    hdrt__buffer_u32(bytes, table->variable_count);
    for (uint32_t i = 0; i < table->variable_count; i++) {
        write_name(bytes, table->variables[i].name);
        hdrt__buffer_u64(bytes, table->variables[i].bytes);
    }
}

/* A name without a NUL in it, since tables keep C strings. */
static const char *read_name(hdrt__cursor *cursor, size_t *out_size)
{
    const unsigned char *name = hdrt__cursor_bytes(cursor, hdrt__cursor_u64(cursor), out_size);
    if (!name || memchr(name, 0, *out_size)) {
        cursor->failed = true;
        return NULL;
    }
    return (const char *)name;
}

static bool read_kernel(hdrt__cursor *cursor, hdrt__kernel_table *table)
{
    size_t size;
    const char *name = read_name(cursor, &size);
    hdrt__kernel_entry *kernel = name ? hdrt__kernel_table_add(table, name, size) : NULL;
    if (!kernel)
        return false;
    kernel->parameters_known = hdrt__cursor_u32(cursor) != 0;
    kernel->resources_known = hdrt__cursor_u32(cursor) != 0;
    kernel->registers = hdrt__cursor_u32(cursor);
    kernel->static_shared_bytes = hdrt__cursor_u32(cursor);
    kernel->local_bytes = hdrt__cursor_u32(cursor);
    uint32_t count = hdrt__cursor_u32(cursor);
    for (uint32_t p = 0; p < count && !cursor->failed; p++) {
        hdrt_parameter parameter;
        parameter.offset = hdrt__cursor_u32(cursor);
        parameter.size = hdrt__cursor_u32(cursor);
        parameter.align = hdrt__cursor_u32(cursor);
        parameter.argument_class = hdrt__cursor_u32(cursor);
        if (cursor->failed || !hdrt__kernel_entry_add(kernel, &parameter))
            return false;
    }
    return !cursor->failed;
}

bool hdrt__kernel_table_read(const unsigned char *bytes, size_t size, hdrt__kernel_table *table)
{
    hdrt__cursor cursor = {bytes, size, false};
    *table = (hdrt__kernel_table){0};
    if (hdrt__cursor_u32(&cursor) != TABLE_FORMAT)
        return false;
    table->writable_variables = hdrt__cursor_u32(&cursor) != 0;
    uint32_t kernels = hdrt__cursor_u32(&cursor);
    for (uint32_t i = 0; i < kernels && !cursor.failed; i++)
        if (!read_kernel(&cursor, table))
            goto free_table;
    uint32_t variables = hdrt__cursor_u32(&cursor);
    for (uint32_t i = 0; i < variables && !cursor.failed; i++) {
        size_t name_size;
        const char *name = read_name(&cursor, &name_size);
        uint64_t variable_bytes = hdrt__cursor_u64(&cursor);
        if (cursor.failed || !hdrt__kernel_table_add_variable(table, name, name_size, variable_bytes))
            goto free_table;
    }
    if (!cursor.failed && cursor.left == 0)
        return true;
free_table:
    hdrt__kernel_table_free(table);
    return false;
}

void hdrt__kernel_table_free(hdrt__kernel_table *table)
{
    for (uint32_t i = 0; i < table->kernel_count; i++) {
        free(table->kernels[i].name);
        free(table->kernels[i].parameters);
    }
    for (uint32_t i = 0; i < table->variable_count; i++)
        free(table->variables[i].name);
    free(table->kernels);
    free(table->variables);
    *table = (hdrt__kernel_table){0};
}
