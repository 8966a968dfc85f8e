/* SPDX-License-Identifier: MIT */
/*
 * NumPy's .npy files, versions 1 to 3: the header is checked, never trusted, and kept byte for byte, so that what is
 * written back has the type and shape of what was read.
 */
#ifndef HDJIT_NPY_H
#define HDJIT_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a file's name says that it is a .npy file. */
bool npy_named(const char *path);

/*
 * Checks the header at the start of `data`, and that the rest is exactly the array. Returns NULL and the header's size,
 * or what is wrong with it, in words.
 */
const char *npy_check(const unsigned char *data, uint64_t bytes, uint64_t *out_header_bytes);

/* Most bytes of a header that npy_bytes_header makes. */
#define NPY_HEADER_LIMIT 192

/* Makes the header of a one-dimensional array of `count` bytes; returns its size. */
size_t npy_bytes_header(uint64_t count, unsigned char header[NPY_HEADER_LIMIT]);

#endif
