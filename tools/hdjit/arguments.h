/* SPDX-License-Identifier: MIT */
/*
 * The ARG words of run and pipe: numbers and files that become a kernel's arguments. The order is arguments_parse,
 * arguments_open (reads inputs, prepares outputs), arguments_allocate, arguments_upload before every launch,
 * arguments_download, arguments_commit; arguments_end always. All return 0, or an exit code after a message.
 */
#ifndef HDJIT_ARGUMENTS_H
#define HDJIT_ARGUMENTS_H

#include "output.h"

#include <hdrt.h>

enum argument_role {
    ARGUMENT_NUMBER,
    ARGUMENT_IN,
    ARGUMENT_INOUT,
    ARGUMENT_OUT,
};

typedef struct argument {
    const char *word; /* as given, for messages */
    enum argument_role role;
    uint32_t kind; /* HDRT_KIND */
    union {
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
        hdrt_ptr pointer;
    } value;             /* what the kernel gets */
    char *file;          /* owned; NULL for numbers */
    unsigned char *data; /* the file: header and content, or the content of `out` */
    uint64_t header;     /* bytes of the .npy header in front */
    uint64_t bytes;      /* bytes behind it */
    output result;       /* where inout and out go */
} argument;

typedef struct arguments {
    argument *list;
    uint32_t count;
} arguments;

int arguments_parse(arguments *args, char *const *words, uint32_t count);

/* Whether one of them reads standard input or writes standard output. */
bool arguments_read_standard_input(const arguments *args);
bool arguments_write_standard_output(const arguments *args);

int arguments_open(arguments *args, int standard_output);
int arguments_allocate(arguments *args, hdrt_queue *queue);

/* Enqueues the copies that bring all pointers to their first content. */
int arguments_upload(arguments *args, hdrt_queue *queue);

/* Enqueues the copies back and waits for them. */
int arguments_download(arguments *args, hdrt_queue *queue);
int arguments_commit(arguments *args);

/* `queue`: where the device memory was allocated; NULL if none was. */
void arguments_end(arguments *args, hdrt_queue *queue);

#endif
