/* SPDX-License-Identifier: MIT */
/*
 * Running a compiler as a child: in its own process group, with nothing but the descriptors given, limits on memory
 * and output, a deadline, and what it says on standard error kept up to a bound. Called by clang.c from the main
 * thread, one child at a time; the watchdog (main.c) may end the process meanwhile, and takes the child along.
 */
#ifndef HDRT_COMPILER_CHILD_H
#define HDRT_COMPILER_CHILD_H

#include <stdint.h>
#include <sys/types.h>

#include "compiler/buffer.h"

#define HDRT__CC_CHILD_FDS 5 /* numbered from 3 in the child */
/* The worker keeps all numbers below occupied: 0 to 2, the child's, and the one that carries an exec's failure. */
#define HDRT__CC_FIRST_FREE_FD (3 + HDRT__CC_CHILD_FDS + 1)

typedef struct hdrt__cc_command {
    const char *const *argv; /* argv[0] is the program's absolute path */
    const char *const *environment;
    const char *directory;   /* where it runs */
    int output;              /* becomes its standard output */
    int fds[HDRT__CC_CHILD_FDS]; /* become 3, 4, 5, 6, 7; -1: none */
    const int *kept;         /* descriptors that the child has by the same numbers, ascending */
    size_t kept_count;
    uint64_t memory_limit;   /* of address space, 0: none */
    uint64_t file_limit;     /* of anything it writes */
    int64_t deadline_ns;     /* monotonic */
} hdrt__cc_command;

enum hdrt__cc_end {
    HDRT__CC_EXITED,      /* code: exit status */
    HDRT__CC_SIGNALLED,   /* code: signal */
    HDRT__CC_TIMED_OUT,
    HDRT__CC_NOT_STARTED, /* code: errno of execve, or of chdir if step says so */
    HDRT__CC_NO_CHILD,    /* code: errno of what the worker itself needed */
};

typedef struct hdrt__cc_outcome {
    enum hdrt__cc_end end;
    int code;
    bool in_directory;    /* NOT_STARTED: it was the folder that could not be entered */
    uint64_t peak_bytes;  /* most memory that it had in RAM */
    hdrt__cc_buffer said; /* standard error, cut at 4 MiB */
} hdrt__cc_outcome;

void hdrt__cc_run(const hdrt__cc_command *command, hdrt__cc_outcome *outcome);
/* What a child may write at most if `wanted` is its file_limit: a hard limit of the process may be lower. */
uint64_t hdrt__cc_file_limit(uint64_t wanted);
/* For the watchdog: kill what runs now. Async-signal-safe. */
void hdrt__cc_kill_child(void);

#endif
