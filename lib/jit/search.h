/* SPDX-License-Identifier: MIT */
/* What the searches for compilers share: what was tried, what was found. For find.c and find_nvrtc.c. */
#ifndef HDRT_JIT_SEARCH_H
#define HDRT_JIT_SEARCH_H

#include "base/buffer.h"
#include "jit/find.h"

/* A search in progress: what was tried, and the results. */
typedef struct hdrt__search {
    hdrt__buffer tried; /* its `failed`: memory is out, and the search must not say that nothing is there */
    hdrt__found_list *list;
} hdrt__search;

/* Note a place that was tried, for the message if nothing is found at all. */
void hdrt__search_note(hdrt__search *search, const char *rule, const char *what);
/* "folder/name", malloc'ed; NULL if memory is out, which the search then knows. */
char *hdrt__search_join(hdrt__search *search, const char *folder, const char *name);
/* Takes `path` (malloc'ed, made absolute; NULL: memory is out) as a result, unless it is the same file as another. */
void hdrt__search_take(hdrt__search *search, char *path, const char *rule);
/* Ends the search. HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY. */
hdrt_status hdrt__search_end(hdrt__search *search);

bool hdrt__is_file(const char *path);
bool hdrt__is_folder(const char *path);
bool hdrt__is_program(const char *path);
/* A program by name in the colon-separated folders; relative ones are left out. */
char *hdrt__search_program(hdrt__search *search, const char *folders, const char *name);
/* PATH, or what stands for it. */
const char *hdrt__program_folders(void);

#endif
