/* SPDX-License-Identifier: MIT */
/*
 * Failures on request: HDSOFT_FAIL in the environment, hdsoft_inject from C; include/hdrt/soft.h describes the rules.
 * The wrappers of the entry points ask at each call, the executor before each command, the look-ups for each name.
 * inject_rules.c reads rules, inject.c keeps them,
 * call_log.c writes down which calls there were to aim at. Thread-safe; takes no lock but its own, which is a leaf.
 *
 * Codes that are sticky on an H200 poison the current context's device here too.
 */
#ifndef HDSOFT_MODEL_INJECT_H
#define HDSOFT_MODEL_INJECT_H

#include <stdbool.h>
#include <stddef.h>

#include "soft/model/entries.h"

#define HDSOFT__RULES 64
#define HDSOFT__PATTERN 64
#define HDSOFT__ENTRY_WORDS ((HDSOFT__ENTRIES + 63) / 64)

typedef enum hdsoft__rule_kind {
    HDSOFT__RULE_CALL,
    HDSOFT__RULE_KERNEL,
    HDSOFT__RULE_COMMAND,
    HDSOFT__RULE_HIDE,
    HDSOFT__RULE_VERSION,
    HDSOFT__RULE_MEMORY,
} hdsoft__rule_kind;

typedef enum hdsoft__rule_when { HDSOFT__WHEN_NTH, HDSOFT__WHEN_FROM, HDSOFT__WHEN_CHANCE } hdsoft__rule_when;

typedef struct hdsoft__rule {
    hdsoft__rule_kind kind;
    hdsoft__rule_when when;
    unsigned code;
    uint64_t left;                          /* NTH: calls until it strikes, 0: spent. FROM: until the first it strikes */
    uint64_t random, threshold;             /* CHANCE: the generator's state; strikes below the threshold, of 2^53 */
    uint64_t entries[HDSOFT__ENTRY_WORDS];  /* CALL: which */
    char pattern[HDSOFT__PATTERN];          /* HIDE: which */
    uint64_t value;                         /* VERSION, MEMORY */
} hdsoft__rule;

/* ---- inject_rules.c ---- */

/* Read rules. 0 and *count of them; 1: *error says which character is wrong and why, and nothing was read. */
int hdsoft__rules_read(const char *text, hdsoft__rule rules[HDSOFT__RULES], size_t *count, char *error,
                       size_t error_size);
/* A number of bytes with K, M or G behind it; false: it is none. */
bool hdsoft__bytes_read(const char *text, const char **end, uint64_t *bytes);

/* ---- inject.c ---- */

/* Add rules; NULL forgets all of them. 0, or 1: hdsoft__inject_error tells which character is wrong; none counts. */
int hdsoft__inject(const char *rules);
const char *hdsoft__inject_error(void);
/* Read HDSOFT_FAIL, once. 0, or 1: it cannot be read, which a line on stderr has told. */
int hdsoft__inject_from_environment(void);
/* A call begins: counted. Returns the code that it must fail with, or 0. */
unsigned hdsoft__inject_call(hdsoft__entry entry);
/* A command of a device begins, a kernel or not: the same. */
unsigned hdsoft__inject_command(bool kernel);
/* Whether an entry point is hidden by its name or its symbol. */
bool hdsoft__inject_hides(const char *name, const char *symbol);
/* The driver version and bytes of device memory that rules ask for; 0: none do. */
int hdsoft__inject_version(void);
uint64_t hdsoft__inject_memory(void);
uint64_t hdsoft__call_count(const char *name);

/* ---- call_log.c ---- */

/* A line for a call in the file that HDSOFT_CALLS names, if it does. */
void hdsoft__call_log(hdsoft__entry entry, uint64_t number);

#endif
