/* SPDX-License-Identifier: MIT */
/*
 * The identifier that linkers write into programs and libraries (NT_GNU_BUILD_ID), a digest of what they linked: which
 * version of a file of a hundred megabytes is there, for the price of reading a few kilobytes.
 */
#ifndef HDRT_JIT_BUILD_ID_H
#define HDRT_JIT_BUILD_ID_H

#include <stdbool.h>

#define HDRT__BUILD_ID_LIMIT 64

/* The identifier of an ELF file in hexadecimal digits; false if it has none. */
bool hdrt__build_id(const char *path, char out[2 * HDRT__BUILD_ID_LIMIT + 1]);

#endif
