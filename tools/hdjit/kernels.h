/* SPDX-License-Identifier: MIT */
/*
 * The kernels of an image, for people and as JSON.
 */
#ifndef HDJIT_KERNELS_H
#define HDJIT_KERNELS_H

#include <hdrt.h>

#include <jansson.h>

/* Prints to standard output, each line behind `indent`. Returns 0, or an exit code after a message. */
int kernels_print(const hdrt_image *image, const char *indent);

/* An array; NULL without memory. */
json_t *kernels_json(const hdrt_image *image);

#endif
