/* SPDX-License-Identifier: MIT */
/*
 * Rules for make that say what a compile read, in the form of the other compilers' -M options.
 */
#ifndef HDJIT_DEPFILE_H
#define HDJIT_DEPFILE_H

#include "options.h"

/* A file name as make reads it; malloc'ed, NULL without memory. `target`: it stands before the colon. */
char *depfile_quote(const char *name, bool target);

/*
 * Writes the rule of a compile of `source` to `file` ("-": standard output, which is then `standard_output`). The
 * target is that of the options, else `target`. Returns 0, or an exit code after a message.
 */
int depfile_write(const options *o, const char *source, const char *target, const char *file, int standard_output,
                  hdrt_image *const *images, uint32_t count);

#endif
