/* SPDX-License-Identifier: MIT */
/*
 * Finding compilers without starting or loading one: NVRTC's library with its builtins, clang's program, libdevice.
 * An explicit place (runtime option, environment) is the only one that is searched.
 */
#ifndef HDRT_JIT_FIND_H
#define HDRT_JIT_FIND_H

#include <hdrt.h>

typedef struct hdrt__found {
    char *path;     /* absolute, as found (links not resolved); NULL: not found */
    char *builtins; /* NVRTC's builtins beside it; NULL: not found, or clang */
    char *rule;     /* which rule found it: "HDRT_NVRTC", "CUDA_HOME", ...; if not found, all that was tried */
} hdrt__found;

/* HDRT_OK, found or not; HDRT_ERROR_OUT_OF_MEMORY. `option` may be NULL. Free with hdrt__found_free. */
hdrt_status hdrt__find_nvrtc(const char *option, hdrt__found *out);
hdrt_status hdrt__find_clang(const char *option, hdrt__found *out);
void hdrt__found_free(hdrt__found *found);

/* NVIDIA's libdevice of a toolkit (CUDA_HOME, CUDA_PATH, /usr/local/cuda, the one of `nvrtc`); malloc'ed, or NULL. */
char *hdrt__find_libdevice(const char *nvrtc);

#endif
