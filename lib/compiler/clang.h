/* SPDX-License-Identifier: MIT */
/*
 * The clang back end: a source to PTX by running clang as a child, with the device prelude and the file recorder. What
 * it knows of one clang it keeps in a state that lives as long as the worker.
 */
#ifndef HDRT_COMPILER_CLANG_H
#define HDRT_COMPILER_CLANG_H

#include <sys/stat.h>

#include "compiler/job.h"

typedef struct hdrt__cc_clang_state {
    char *path;             /* of the clang that the rest is about; NULL: none yet */
    struct stat identity;   /* its file, so that a new version under the same name is asked again */
    char version[64];       /* "clang 19.1.7", "" if it would not say */
    bool version_asked;
    unsigned first_unknown; /* lowest target number that it was seen to refuse; 0: none */
} hdrt__cc_clang_state;

void hdrt__cc_compile_clang(hdrt__cc_clang_state *state, const hdrt__cc_request *request, hdrt__cc_reply *reply);
void hdrt__cc_clang_state_free(hdrt__cc_clang_state *state);

#endif
