/* SPDX-License-Identifier: MIT */
/*
 * The kernel table of an image: which kernels it has, what their parameters are, and which variables. Read from PTX
 * (the authority) or, where there is only a cubin, from its ELF sections; kept in cache files, so that a warm start
 * reads no PTX. Launches are checked against it.
 *
 * The readers are given untrusted bytes: they check every bound, never fail on what they do not know, and report what
 * they cannot make sense of as "parameters not known", never as something guessed.
 */
#ifndef HDRT_JIT_KERNEL_TABLE_H
#define HDRT_JIT_KERNEL_TABLE_H

#include <hdrt.h>

#include "base/buffer.h"

typedef struct hdrt__kernel_entry {
    char *name;
    hdrt_parameter *parameters;
    uint32_t parameter_count;
    bool parameters_known; /* false: a cubin that does not tell, or PTX with a parameter that we cannot read */
    bool resources_known;  /* only a cubin tells these */
    uint32_t registers, static_shared_bytes, local_bytes;
} hdrt__kernel_entry;

typedef struct hdrt__variable_entry {
    char *name;
    uint64_t bytes; /* 0: not known (declared elsewhere) */
} hdrt__variable_entry;

typedef struct hdrt__kernel_table {
    hdrt__kernel_entry *kernels;
    uint32_t kernel_count, kernel_capacity;
    hdrt__variable_entry *variables;
    uint32_t variable_count, variable_capacity;
    /* A .global or .const variable other than a compiler's string literals: two loads must not share it. */
    bool writable_variables;
} hdrt__kernel_table;

/*
 * Read the entries and variables of PTX text (need not end in a NUL) into an empty table.
 * HDRT_OK, HDRT_ERROR_INVALID_IMAGE (no PTX at all, an unclosed block: what and at which line),
 * HDRT_ERROR_OUT_OF_MEMORY.
 */
hdrt_status hdrt__kernel_table_from_ptx(const char *ptx, size_t size, hdrt__kernel_table *table);

/*
 * Read the kernels of a cubin (an ELF file for EM_CUDA) into an empty table. Parameters have sizes and offsets but no
 * class. Kernels whose parameters the file does not tell are entered with parameters_known false.
 * HDRT_OK, HDRT_ERROR_INVALID_IMAGE, HDRT_ERROR_OUT_OF_MEMORY.
 */
hdrt_status hdrt__kernel_table_from_cubin(const void *cubin, size_t size, hdrt__kernel_table *table);

/* Take over what a cubin tells of the resources of the kernels that the table (of its PTX) has already. */
hdrt_status hdrt__kernel_table_add_resources(const void *cubin, size_t size, hdrt__kernel_table *table);

/* Whether the bytes begin like a cubin, a fatbin (a container of cubins), or could be PTX text. */
bool hdrt__is_cubin(const void *bytes, size_t size);
bool hdrt__is_fatbin(const void *bytes, size_t size);
bool hdrt__is_ptx(const void *bytes, size_t size);

/* Add a kernel (name copied, not NUL-terminated); NULL if out of memory. Good until the next addition. */
hdrt__kernel_entry *hdrt__kernel_table_add(hdrt__kernel_table *table, const char *name, size_t name_size);
/* Add a parameter. false: out of memory, or more than HDRT__PARAMETER_LIMIT. */
#define HDRT__PARAMETER_LIMIT 8192u
bool hdrt__kernel_entry_add(hdrt__kernel_entry *entry, const hdrt_parameter *parameter);
bool hdrt__kernel_table_add_variable(hdrt__kernel_table *table, const char *name, size_t name_size, uint64_t bytes);

/* The kernel of that name, or NULL. */
const hdrt__kernel_entry *hdrt__kernel_table_find(const hdrt__kernel_table *table, const char *name,
                                                  uint32_t *out_index);

/* For messages: "'a', 'b' and 'c'", cut after a dozen; "none" when there is none. */
void hdrt__kernel_table_names(const hdrt__kernel_table *table, hdrt__buffer *text);

/* To and from the bytes of a cache file's section. Reading checks everything; false means: unusable. */
void hdrt__kernel_table_write(const hdrt__kernel_table *table, hdrt__buffer *bytes);
bool hdrt__kernel_table_read(const unsigned char *bytes, size_t size, hdrt__kernel_table *table);

void hdrt__kernel_table_free(hdrt__kernel_table *table);

#endif
