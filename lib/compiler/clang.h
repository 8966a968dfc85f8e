/* SPDX-License-Identifier: MIT */
/*
 * The clang back end: a source to PTX by running clang as a child, with the device prelude and the file recorder.
 * Called by main.c, from the main thread.
 */
#ifndef HDRT_COMPILER_CLANG_H
#define HDRT_COMPILER_CLANG_H

#include "compiler/clang_state.h"
#include "compiler/job.h"

void hdrt__cc_compile_clang(hdrt__cc_clang_state *state, const hdrt__cc_request *request, hdrt__cc_reply *reply);

#endif
