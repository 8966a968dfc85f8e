/* SPDX-License-Identifier: MIT */
/*
 * The back end that links: nvJitLink opened in this process, under the same guard as NVRTC. Called by main.c from the
 * main thread.
 */
#ifndef HDRT_COMPILER_NVJITLINK_H
#define HDRT_COMPILER_NVJITLINK_H

#include "compiler/job.h"

typedef struct hdrt__cc_nvjitlink_state hdrt__cc_nvjitlink_state;

/* *state is NULL at first, kept between requests, and freed with hdrt__cc_nvjitlink_state_free (NULL accepted). */
void hdrt__cc_link(hdrt__cc_nvjitlink_state **state, int socket, const hdrt__cc_request *request,
                   hdrt__cc_reply *reply);
void hdrt__cc_nvjitlink_state_free(hdrt__cc_nvjitlink_state *state);

#endif
