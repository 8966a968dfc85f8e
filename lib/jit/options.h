/* SPDX-License-Identifier: MIT */
/*
 * Compile options: the list of those allowed (NVRTC's spellings), brought to one spelling each, order kept. An allow-
 * list, because options may come from configuration files and some of a compiler's write files or run on other inputs.
 *
 * One spelling, one element each, is what goes into the key and to the worker:
 *
 *     -IDIR (absolute)  -DNAME[=TEXT]  -UNAME  --pre-include=FILE (absolute if it has a folder)
 *     -std=c++17  -G  -lineinfo  -w
 *     --use_fast_math  --ftz=true  --prec-div=true  --prec-sqrt=true  --fmad=true  --maxrregcount=N  -Xptxas=OPTION ...
 *
 * (the whole list is the table in options.c). What a compiler cannot do with one of them is the worker's to say.
 */
#ifndef HDRT_JIT_OPTIONS_H
#define HDRT_JIT_OPTIONS_H

#include <hdrt.h>

typedef struct hdrt__option_list {
    char **items;
    uint32_t count, capacity;
    bool debug_paths; /* -G or -lineinfo: the folder of the compile gets into the code */
    bool includes;    /* --pre-include: other files get in, whatever the source says */
} hdrt__option_list;

/*
 * Canonical options of `given`. Relative folders and files are made absolute from `directory`, the current one.
 * HDRT_OK; HDRT_ERROR_INVALID_ARGUMENT naming the option and why; HDRT_ERROR_OUT_OF_MEMORY.
 */
hdrt_status hdrt__options_parse(const char *const *given, uint32_t count, const char *directory,
                                hdrt__option_list *out_list);
void hdrt__option_list_free(hdrt__option_list *list);

/* A target: "sm_" and 2 or 3 digits, then at most one of a, f. Says what is wrong. HDRT_OK,
 * HDRT_ERROR_INVALID_ARGUMENT. */
hdrt_status hdrt__arch_check(const char *arch);

#endif
