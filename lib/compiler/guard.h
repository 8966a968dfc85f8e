/* SPDX-License-Identifier: MIT */
/*
 * What stands around a compile inside this process: limits on memory and processor time, the deadline, and an answer
 * to the client if the compiler takes the process down. Called by nvrtc.c from the main thread.
 */
#ifndef HDRT_COMPILER_GUARD_H
#define HDRT_COMPILER_GUARD_H

#include <stdbool.h>

#include <sys/resource.h>

#include "compiler/job.h"

enum { HDRT__CC_GUARD_REPLIES = 5 };

typedef struct hdrt__cc_guard {
    hdrt__cc_buffer replies[HDRT__CC_GUARD_REPLIES]; /* prepared, because a dying process cannot prepare them */
    struct rlimit address_space, processor;              /* as they were */
    int said;                                            /* memory object that takes standard error */
} hdrt__cc_guard;

/* false: the reply says why not; nothing is to be undone. */
bool hdrt__cc_guard_begin(hdrt__cc_guard *guard, int socket, const hdrt__cc_request *request, hdrt__cc_reply *reply);
/* Undo it all. What was printed on standard error meanwhile is appended to `log`. */
void hdrt__cc_guard_end(hdrt__cc_guard *guard, hdrt__cc_buffer *log);

#endif
