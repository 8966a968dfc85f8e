/* SPDX-License-Identifier: MIT */
/*
 * What a worker knows of the clang that it runs: asked once and kept, because asking takes as long as a small compile.
 */
#ifndef HDRT_COMPILER_CLANG_STATE_H
#define HDRT_COMPILER_CLANG_STATE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "compiler/job.h"

typedef struct hdrt__cc_clang_state {
    char *path;             /* of the clang that the rest is about; NULL: none yet */
    struct stat identity;   /* its file, so that a new version under the same name is asked again */
    char version[64];       /* "clang 19.1.7", "" if it would not say */
    bool version_asked;
    unsigned first_unknown; /* lowest target number that it was seen to refuse; 0: none */
} hdrt__cc_clang_state;

/* Begin anew if `path` is another clang than before. false: no memory. */
bool hdrt__cc_clang_state_begin(hdrt__cc_clang_state *state, const char *path);
void hdrt__cc_clang_state_free(hdrt__cc_clang_state *state);
void hdrt__cc_clang_learn_version(hdrt__cc_clang_state *state, const hdrt__cc_request *request);
/* "sm_20 sm_21 ... sm_90a", as clang lists its targets; left empty if it does not. */
void hdrt__cc_clang_list_targets(const hdrt__cc_request *request, hdrt__cc_buffer *out);

#endif
