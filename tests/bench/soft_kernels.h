/* SPDX-License-Identifier: MIT */
/*
 * The kernels that tests/bench/soft.c times: PTX by hand, shaped like what clang makes of the usual CUDA sources, with
 * input, reference result and the exact number of instructions that their threads execute.
 */
#ifndef SOFT_KERNELS_H
#define SOFT_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/cuda_table.h"

#define SOFT_BUFFERS 3
#define SOFT_ARGUMENTS 4

typedef struct soft_kernel {
    const char *name;
    double limit; /* nanoseconds for one instruction of one thread */
    unsigned grid[3], block[3];
    size_t bytes[SOFT_BUFFERS]; /* of each buffer; 0: there is none */
    /* The module's text, to be freed; *out_instructions: what a launch executes on this input. */
    char *(*ptx)(void *const input[SOFT_BUFFERS], uint64_t *out_instructions);
    void (*fill)(void *const input[SOFT_BUFFERS]);
    /* Where the kernel's arguments are; buffers: the device's addresses. */
    void (*arguments)(hdcu_pointer buffers[SOFT_BUFFERS], void *arguments[SOFT_ARGUMENTS]);
    unsigned result; /* the buffer that is checked */
    bool (*check)(void *const input[SOFT_BUFFERS], const void *result);
} soft_kernel;

extern const soft_kernel soft_kernels[];
extern const unsigned soft_kernel_count;

#endif
