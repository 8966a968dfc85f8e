/* SPDX-License-Identifier: MIT */
/*
 * Numbers on the command line, read strictly: no spaces, no rest, no silent wrap. Used for options and arguments alike.
 */
#ifndef HDJIT_NUMBER_H
#define HDJIT_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum number_result {
    NUMBER_OK,
    NUMBER_MALFORMED, /* not a number of this kind at all */
    NUMBER_RANGE,     /* a number, but too large or too small */
};

/* A whole number from 0 to `most`, decimal or 0x hexadecimal. */
enum number_result number_unsigned(const char *text, uint64_t most, uint64_t *out);

/* A whole number from `least` to `most`, decimal or 0x hexadecimal, with an optional sign. */
enum number_result number_signed(const char *text, int64_t least, int64_t most, int64_t *out);

/* A whole number of bytes with an optional K, M or G (powers of 1024), from 0 to `most`. */
enum number_result number_size(const char *text, uint64_t most, uint64_t *out);

/* A floating point number, inf and nan included; one that rounds to infinity or to zero is out of range. */
enum number_result number_float(const char *text, float *out);
enum number_result number_double(const char *text, double *out);

/* X[,Y[,Z]]; what is left out is 1. */
enum number_result number_triple(const char *text, uint32_t out[3]);

#endif
