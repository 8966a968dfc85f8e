/* SPDX-License-Identifier: MIT */
/*
 * Result files: written beside their place and renamed into it, so that a failure, at whatever moment, leaves what was
 * there untouched. What is no regular file (a device, a pipe, "-" for standard output) is written directly.
 *
 * The order is output_open for each (finds most trouble before any work is done), output_write, then output_finish for
 * each; output_close always.
 */
#ifndef HDJIT_OUTPUT_H
#define HDJIT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct output {
    const char *name; /* for messages, borrowed */
    char *path;       /* where it goes, links followed; NULL: written directly */
    char *temporary;  /* its present name; NULL: it has none yet */
    int fd;
    bool owned; /* fd is ours to close */
} output;

#define OUTPUT_NONE {.fd = -1}

/*
 * `standard_output`: the descriptor for "-", which is then the output's own; -1 if there is none. Returns 0, or an exit
 * code after a message.
 */
int output_open(output *out, const char *path, int standard_output);
int output_write(output *out, const void *data, uint64_t bytes);

/* Gives the file its name. */
int output_finish(output *out);

/* Drops the file unless it was finished. */
void output_close(output *out);

/* Writes all; returns false with errno on failure. Waits where the descriptor does not block. */
bool write_all(int fd, const void *data, uint64_t bytes);

/*
 * A descriptor of its own for standard output, with descriptor 1 pointed at standard error: so data and whatever a
 * driver prints for a kernel do not mix. To be called before a driver is loaded. -1 with errno if it is closed.
 */
int take_standard_output(void);

/* Fills a closed 0, 1 or 2 with something that refuses use, lest a file opened later be taken for it. */
void protect_standard_streams(void);

#endif
