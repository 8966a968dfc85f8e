/* SPDX-License-Identifier: MIT */
/*
 * The table of instruction forms: what the decoder (lib/soft/ptx) may put into a program. A form has a name made of
 * opcode, modifiers and type ("add_u32"), the handler that runs it for 32 lanes, and a signature: the operands'
 * classes, destinations before the colon.
 *
 *   h 16-bit register   w 32-bit   q 64-bit   f 32-bit, floating immediate   d 64-bit, floating immediate   p predicate
 *
 * Arithmetic handlers exist in several builds of the same source for different x86 levels; hdsoft_forms_of picks the
 * best for this processor. Immutable data; any thread.
 */
#ifndef HDSOFT_FORMS_H
#define HDSOFT_FORMS_H

#include "soft/ptx/program.h"

typedef struct hdsoft_form {
    const char *name; /* NULL ends a table */
    hdsoft_handler handler;
    const char *signature;
} hdsoft_form;

/* The forms of an x86 level by name; made when first asked for, kept for good. */
typedef struct hdsoft_forms hdsoft_forms;

/* Those for this processor; level as in hdsoft_program_parse_level. NULL: out of memory. */
const hdsoft_forms *hdsoft_forms_of(int level);
/* NULL if there is none of that name. */
const hdsoft_form *hdsoft_forms_find(const hdsoft_forms *forms, const char *name);

/* Special registers, in the order of their numbers; hdsoft_special_find answers -1 for an unknown name. */
typedef struct hdsoft_special {
    const char *name;
    uint8_t bits;
} hdsoft_special;
int hdsoft_special_find(const char *name, size_t length);
const hdsoft_special *hdsoft_special_get(int number);

/* External functions that the engine provides (vprintf, __nv_expf ...); NULL if there is none of that name. */
const hdsoft_builtin *hdsoft_builtin_find(const char *name);
/* Whether a declaration has the sizes that the builtin's signature says. */
bool hdsoft_builtin_fits(const hdsoft_builtin *builtin, const hdsoft_function *function);

/* Rounding modes of the "rounded" form, in option[0]. */
enum { HDSOFT_ROUND_NEAREST, HDSOFT_ROUND_ZERO, HDSOFT_ROUND_DOWN, HDSOFT_ROUND_UP };

/* f16 and bf16: how, in option[0] ... */
enum {
    HDSOFT_HALF_FLUSH = 1,    /* subnormal operands and results are zero */
    HDSOFT_HALF_SATURATE = 2, /* into [0, 1] */
    HDSOFT_HALF_RELU = 4,     /* negative results are zero */
    HDSOFT_HALF_NAN = 8,      /* min, max: a NaN wins */
    HDSOFT_HALF_SIGNS = 16,   /* min, max: of the magnitudes, with the product's sign */
    HDSOFT_HALF_FINITE = 32,  /* cvt: the largest number instead of infinity */
};
/* ... and what, in option[2]. */
enum { HDSOFT_HALF_BRAIN = 1 /* bf16 */, HDSOFT_HALF_PAIR = 2 /* two in a word */ };

#endif
