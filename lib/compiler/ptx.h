/* SPDX-License-Identifier: MIT */
/* What clang.c needs to see in, and do to, the PTX that clang wrote. Works on any text, right or not. */
#ifndef HDRT_COMPILER_PTX_H
#define HDRT_COMPILER_PTX_H

#include <stddef.h>
#include <stdint.h>

#include "compiler/buffer.h"

/* Call `sink` with each function that is declared .extern and not supplied by the driver (vprintf and so on). */
void hdrt__cc_ptx_externals(const char *ptx, size_t size, void (*sink)(const char *name, size_t length, void *context),
                            void *context);
/* Copy the PTX with `.maxnreg count` on every kernel that has none: --maxrregcount, which clang has no option for. */
void hdrt__cc_ptx_limit_registers(const char *ptx, size_t size, uint32_t count, hdrt__cc_buffer *out);
/*
 * Copy the PTX with names in its debug information spelled as in its code: LLVM writes `x.y` there for what it calls
 * `x_$_y` elsewhere (private variables such as __func__), which ptxas refuses.
 */
void hdrt__cc_ptx_mend_debug_names(const char *ptx, size_t size, hdrt__cc_buffer *out);

/*
 * Variables by which name expressions were instantiated: prefix, number, and the address of what is named as initial
 * value. `sink` is told the number and the name; `out` gets the PTX without them, and without the declarations of
 * kernels ahead of their definitions that they gave rise to.
 */
#define HDRT__CC_NAME_PREFIX "__hdrt_name_"
void hdrt__cc_ptx_take_names(const char *ptx, size_t size,
                             void (*sink)(size_t number, const char *name, size_t length, void *context),
                             void *context, hdrt__cc_buffer *out);

#endif
