/* SPDX-License-Identifier: MIT */
/*
 * hdrt-cc's side of interpose.c: while a compile runs inside the process, NVRTC's file calls are noted in its set.
 * Outside of that the calls pass untouched.
 */
#ifndef HDRT_COMPILER_WATCH_H
#define HDRT_COMPILER_WATCH_H

#include "compiler/files.h"

void hdrt__cc_watch_begin(hdrt__cc_files *files);
void hdrt__cc_watch_end(void);

#endif
