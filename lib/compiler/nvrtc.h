/* SPDX-License-Identifier: MIT */
/*
 * The NVRTC back end: a source to PTX or to cubin and PTX, inside this process, which exists so that it may be ended
 * by it. What it knows of one libnvrtc it keeps in a state that lives as long as the worker; libraries are never
 * closed.
 */
#ifndef HDRT_COMPILER_NVRTC_H
#define HDRT_COMPILER_NVRTC_H

#include "compiler/job.h"

typedef struct hdrt__cc_nvrtc_state hdrt__cc_nvrtc_state;

/* `*state` is NULL at first; `socket` is where an answer goes if the process dies of the compile. */
void hdrt__cc_compile_nvrtc(hdrt__cc_nvrtc_state **state, int socket, const hdrt__cc_request *request,
                            hdrt__cc_reply *reply);
void hdrt__cc_nvrtc_state_free(hdrt__cc_nvrtc_state *state);

#endif
