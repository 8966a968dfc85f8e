/* SPDX-License-Identifier: MIT */
/*
 * The conformance suite: checks of what a CUDA driver answers, asked of an H200's driver and of the soft driver alike.
 * A check calls the driver and *says* what it got; what it said, joined by colons, is its answer. Nothing here judges
 * an answer: the recorded ones of an H200 do (compare.c).
 *
 * Checks live in areas. An area's checks run one after the other in a process of its own; a check that may fault, or
 * that needs a driver as the process found it, is marked ALONE and gets a process to itself. A check that crashes,
 * hangs or leaves the context unwell costs its process, and the rest of the area goes on in a new one (runner.c).
 * The parent never loads the driver. Nothing is linked but the C library.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/cuda_symbols.h"

#define ANSWER_MAX 4096
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

typedef struct check check;
struct check {
    const char *name;
    void (*run)(const check *self);
    bool alone;
    /* For checks that are rows of a table; what they mean is their `run`'s business. */
    long number;
    char kind;
    const char *text;
    const uint64_t (*inputs)[3];
    size_t input_count;
};

/* Operands of a row, three each. */
#define INPUTS(...)                                                                                                    \
    .inputs = (const uint64_t[][3]){__VA_ARGS__},                                                                      \
    .input_count = sizeof((const uint64_t[][3]){__VA_ARGS__}) / sizeof(uint64_t[3])

typedef enum area_needs {
    NEEDS_NOTHING, /* the driver is loaded, cuInit not called */
    NEEDS_INIT,    /* cuInit done, no context */
    NEEDS_CONTEXT, /* a context of its own is current */
} area_needs;

typedef struct area {
    const char *name;
    area_needs needs;
    const check *checks;
    size_t count;
} area;

extern const area *const areas[];
extern const size_t area_count;

/* ---- the driver (driver.c) ---- */

typedef struct driver {
#define CONFORMANCE_MEMBER(name, symbol, version, need, parameters) hdcu_result(*name) parameters;
    HDCU_SYMBOL_LIST(CONFORMANCE_MEMBER)
#undef CONFORMANCE_MEMBER
} driver;

/* What an entry that the driver lacks answers. */
#define ABSENT 9999u

/* Filled in each child; an absent entry answers ABSENT. */
extern driver cu;

/* NULL, or why the driver cannot be had. */
const char *driver_load(const char *kind, const char *library);
/* An entry outside cuda_symbols.h, by its exact symbol; NULL where the driver has none. */
void *driver_symbol(const char *symbol);

/* ---- running (runner.c) ---- */

typedef struct run_options {
    const char *driver, *library, *pattern;
    unsigned jobs, seconds;
    bool verbose;
} run_options;

typedef struct answer {
    const area *area;
    const check *check;
    char *text; /* NULL: not run */
} answer;

/* Every check's name is its area's, a dot, and its own. */
void check_full_name(const answer *of, char out[256]);
bool pattern_matches(const char *pattern, const char *name);
/* The chosen checks, not yet run; NULL without memory. */
answer *answers_list(const char *pattern, size_t *count);
/* Runs them; asks a child for the driver's version and the device's name. False after a line on stderr. */
bool run_all(const run_options *options, answer *answers, size_t count, int *version, char device[256]);
void answers_free(answer *answers, size_t count);

/* ---- comparing (compare.c) ---- */

/* Prints TAP. False if anything differs that is not listed, or the recording cannot be used. */
bool compare(const char *path, const answer *answers, size_t count, bool partial);

#endif
