/* SPDX-License-Identifier: MIT */
/*
 * What run and pipe share: from options to a kernel on a device, and its launch.
 */
#ifndef HDJIT_LAUNCH_H
#define HDJIT_LAUNCH_H

#include "arguments.h"
#include "check.h"
#include "session.h"

/*
 * Opens driver and device, turns the checks on, and loads `kernel` of `file`. Reports may be about `args`. Returns 0, or
 * an exit code after a message.
 */
int launch_open(const options *o, session *s, checks *c, const arguments *args, const char *file, const char *kernel,
                hdrt_module **out_module, hdrt_kernel **out_kernel);

/* One argument that stands before those of the command line. */
typedef struct leading_argument {
    const void *value;
    uint32_t kind; /* HDRT_KIND */
} leading_argument;

/* Most of them. */
#define LEADING_LIMIT 3

/* Says so if --grid has a zero, which makes every launch a no-op. */
void launch_note_zero_grid(const options *o);

/* Enqueues a launch with the options' block and shared memory. */
int launch_kernel(const options *o, hdrt_queue *queue, hdrt_kernel *kernel, const uint32_t grid[3],
                  const leading_argument *leading, uint32_t leading_count, const arguments *args);

#endif
