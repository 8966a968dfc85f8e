/* SPDX-License-Identifier: MIT */
/*
 * Finding compilers without starting or loading one: NVRTC's libraries with their builtins and linkers, clang's
 * program, libdevice. An explicit place (runtime option, environment) is the only one that is searched.
 */
#ifndef HDRT_JIT_FIND_H
#define HDRT_JIT_FIND_H

#include <hdrt.h>

typedef struct hdrt__found {
    char *path;     /* absolute, as found (links not resolved); NULL: not found */
    char *builtins; /* NVRTC's builtins beside it; NULL: not found, or clang */
    char *linker;   /* nvJitLink of the same major version, beside it or in the package next to it; NULL: not found */
    char *rule;     /* which rule found it: "HDRT_NVRTC", "CUDA_HOME", ...; if not found, all that was tried */
    unsigned major, minor; /* of NVRTC, as its files are named; 0, 0: they do not tell */
} hdrt__found;

/* Compilers of one kind, in the order of the search. If there is none, one without a path tells what was tried. */
typedef struct hdrt__found_list {
    hdrt__found *items;
    uint32_t count, capacity;
} hdrt__found_list;

/* Whether a search may end with one that was found, so that most programs do not search all places. */
typedef bool hdrt__found_enough(const hdrt__found *found, void *context);

/*
 * HDRT_OK, found or not; HDRT_ERROR_OUT_OF_MEMORY. `option` may be NULL; so may `enough`: then all are found. Free with
 * hdrt__found_list_free.
 */
hdrt_status hdrt__find_nvrtcs(const char *option, hdrt__found_enough *enough, void *context, hdrt__found_list *out);
hdrt_status hdrt__find_clangs(const char *option, hdrt__found_list *out);
void hdrt__found_list_free(hdrt__found_list *list);

/* Only the first. Free with hdrt__found_free. */
hdrt_status hdrt__find_nvrtc(const char *option, hdrt__found *out);
hdrt_status hdrt__find_clang(const char *option, hdrt__found *out);
void hdrt__found_free(hdrt__found *found);

/* NVIDIA's libdevice of a toolkit (CUDA_HOME, CUDA_PATH, /usr/local/cuda, the one of `nvrtc`); malloc'ed, or NULL. */
char *hdrt__find_libdevice(const char *nvrtc);

#endif
