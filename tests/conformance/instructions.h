/* SPDX-License-Identifier: MIT */
/*
 * Checks that are rows: a few PTX instructions, operands, and what comes out. Lane i of one warp runs row input i: its
 * three operands arrive as %d1..%d3 (64 bits), %r1..%r3 (their low words), %f1..%f3 and %g1..%g3 (the same bits); the
 * result is left in the register that the kind names: r (%r0), d (%d0), f (%f0), g (%g0). The answer is the lanes'
 * results as hexadecimal; any NaN of f and g is "nan". %lane holds the lane's number, and registers 4 to 31 of each
 * class, %h0 to %h15 (16 bits) and %p0 to %p7 are free.
 */
#ifndef CONFORMANCE_INSTRUCTIONS_H
#define CONFORMANCE_INSTRUCTIONS_H

#include "conformance.h"

void run_instruction(const check *self);

#define ROW(row_name, row_kind, row_text, ...)                                                                         \
    {.name = row_name, .run = run_instruction, .kind = row_kind, .text = row_text, INPUTS(__VA_ARGS__)}
/* The results of all 32 lanes, which differ by what the row makes of %lane. */
#define WARP(row_name, row_text)                                                                                       \
    {.name = row_name, .run = run_instruction, .kind = 'r', .text = row_text, .number = 32, INPUTS({0})}

bool instructions_write(const char *folder);

#endif
