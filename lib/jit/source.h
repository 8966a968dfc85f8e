/* SPDX-License-Identifier: MIT */
/*
 * A compile's input made definite: the source's bytes read and checked, its names made absolute, its options brought to
 * one spelling. After this nothing depends on the caller's memory, current folder or file.
 */
#ifndef HDRT_JIT_SOURCE_H
#define HDRT_JIT_SOURCE_H

#include <hdrt.h>

#include "jit/key.h"
#include "jit/options.h"

typedef struct hdrt__input {
    char *bytes;       /* malloc'ed */
    const char *text;  /* in bytes, behind a byte-order mark */
    size_t size;
    char *name;        /* what the compiler calls it */
    char *path;        /* of its file, absolute; NULL: it was in memory */
    char *directory;   /* absolute */
    hdrt__option_list options;
    hdrt__text_pair *headers; /* in memory */
    uint32_t header_count;
    char **names; /* name expressions */
    uint32_t name_count;
    char *arch;   /* as asked for, or NULL */
    hdrt_compile_options asked; /* known members of the caller's, its pointers NULL */
} hdrt__input;

/*
 * HDRT_OK; HDRT_ERROR_IO  the file cannot be read; HDRT_ERROR_INVALID_ARGUMENT  bad structs, options, or a NUL in the
 * source; HDRT_ERROR_OUT_OF_MEMORY.
 */
hdrt_status hdrt__input_read(const hdrt_source *source, const hdrt_compile_options *options, hdrt__input *out);
void hdrt__input_free(hdrt__input *input);

#endif
