/* SPDX-License-Identifier: MIT */
/*
 * What clang reads that is in no file: the source with the declarations that name expressions become, and in-memory
 * headers, which clang sees in a folder that is nowhere, through an overlay of the file system. Called by clang.c.
 */
#ifndef HDRT_COMPILER_CLANG_MEMORY_H
#define HDRT_COMPILER_CLANG_MEMORY_H

#include "compiler/job.h"

/* The folder of in-memory headers: a name that no real one has. */
#define HDRT__CC_HEADERS_FOLDER "/<in-memory>"

typedef struct hdrt__cc_headers {
    int *fds;     /* one for each, ascending */
    size_t count;
    int overlay;  /* -1: no headers */
} hdrt__cc_headers;

/* A memory object with the bytes, at the lowest free number from `least` on. -1: see errno. */
int hdrt__cc_memory_text(const char *name, const hdrt__cc_buffer *text, int least);
/* `text` with a line directive first, so that clang takes it for a file of that name. */
void hdrt__cc_name_text(hdrt__cc_buffer *out, const char *name, const void *text, size_t size);
/* Declarations that instantiate the request's name expressions and keep their addresses (ptx.h). */
void hdrt__cc_declare_expressions(const hdrt__cc_request *request, hdrt__cc_buffer *out);

/* false: see errno. Free in either case. */
bool hdrt__cc_headers_make(const hdrt__cc_request *request, hdrt__cc_headers *out);
void hdrt__cc_headers_free(hdrt__cc_headers *headers);

#endif
