/* SPDX-License-Identifier: MIT */
/*
 * External functions that the engine provides: vprintf, __assertfail, malloc, free (system.c, print.c) and libdevice's
 * mathematics (math.c). Arguments and results sit in cells, one row of 32 lanes each, results first.
 */
#ifndef HDSOFT_BUILTIN_H
#define HDSOFT_BUILTIN_H

#include "soft/exec/warp.h"

#define HDSOFT_BUILTIN_ARGUMENTS 8

typedef uint64_t hdsoft_cells[HDSOFT_LANES];

struct hdsoft_builtin {
    const char *name;
    const char *signature; /* as of forms: results, ':', arguments */
    /* For the lanes of warp->mask; false after a fault. */
    bool (*call)(hdsoft_warp *warp, const hdsoft_instruction *instruction, const hdsoft_builtin *builtin,
                 hdsoft_cells *cells);
    union { /* what the shared callers of math.c call */
        float (*f)(float);
        float (*ff)(float, float);
        float (*fff)(float, float, float);
        double (*d)(double);
        double (*dd)(double, double);
        double (*ddd)(double, double, double);
        float (*fi)(float, int);
        double (*di)(double, int);
        float (*i_f)(int, float);
        double (*i_d)(int, double);
        int (*to_int)(float);
        int (*to_int_d)(double);
    } function;
};

extern const hdsoft_builtin hdsoft_builtins_math[];   /* ended by a NULL name */
extern const hdsoft_builtin hdsoft_builtins_system[];

bool hdsoft_builtin_print(hdsoft_warp *warp, const hdsoft_instruction *instruction, const hdsoft_builtin *builtin,
                          hdsoft_cells *cells);

#endif
