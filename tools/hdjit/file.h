/* SPDX-License-Identifier: MIT */
/*
 * Whole files read into memory, regular or not, and standard input as "-".
 */
#ifndef HDJIT_FILE_H
#define HDJIT_FILE_H

#include <stdint.h>

/*
 * Reads all of `path`. On success *out_data is the caller's to free, with a NUL behind its *out_bytes bytes.
 * Returns 0, or an exit code after a message.
 */
int file_read(const char *path, unsigned char **out_data, uint64_t *out_bytes);

#endif
