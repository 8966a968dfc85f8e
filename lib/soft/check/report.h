/* SPDX-License-Identifier: MIT */
/*
 * What the checks found, on its way to a person: which checks are on, and reports, each given once with a count.
 * A report is added when its fault is met and given to the sink at the next moment when no lock is held (the end of a
 * command's step, or of the call); the same one again (check, kernel, source line, kind) only counts. Thread-safe; the
 * lock is a leaf. Called by the executor, the checks, and the entry points.
 */
#ifndef HDSOFT_CHECK_REPORT_H
#define HDSOFT_CHECK_REPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "soft/ptx/text.h"

/* Which checks are on; fixed when the first context is made. */
enum {
    HDSOFT_CHECK_MEMORY = 1, /* reports of bad accesses with the allocation and where it was made; deadlocks */
    HDSOFT_CHECK_RACE = 2,
    HDSOFT_CHECK_INIT = 4,   /* uninitialised reads */
    HDSOFT_CHECK_LEAK = 8,   /* what a context's end finds */
};
extern _Atomic unsigned hdsoft__checks_on;

static inline bool hdsoft__checking(unsigned checks)
{
    return (atomic_load_explicit(&hdsoft__checks_on, memory_order_relaxed) & checks) != 0;
}

/* "memory,race" to the set of them; false: *unknown is the word (of *length bytes) that is none. "" is none of them. */
bool hdsoft__checks_parse(const char *text, unsigned *checks, const char **unknown, size_t *length);
/* From C: 0, or 1 for an unknown word, and nothing changes. NULL or "": none. The caller sees to the time. */
int hdsoft__checks_set(const char *text);
/* What HDSOFT_CHECK says, unless C has spoken. An unknown word is told on standard error. */
void hdsoft__checks_from_environment(void);

typedef struct hdsoft__report {
    const char *kind;        /* "out of bounds", "race" ...: the first words of the report */
    const char *kernel;      /* NULL: no kernel */
    const char *source_file; /* NULL: unknown */
    uint32_t source_line, ptx_line;
    uint64_t distinct;       /* told apart by this too: the place where what leaked was made */
    uint64_t allocation;     /* the address of the allocation that it is about; 0: none */
    const char *text;        /* all of it, lines without the last newline */
} hdsoft__report;

/* Add a report, or count it if the same was added before: true if it is new. */
bool hdsoft__report_add(const hdsoft__report *report);
/* Whether it would be new, to spare the text of one that was told. If not, it is counted. */
bool hdsoft__report_is_new(const hdsoft__report *report);
/* Give what was added to the sink. Not under the driver's lock. */
void hdsoft__report_flush(void);
/* How many different reports there were. */
unsigned long long hdsoft__report_count(void);
/* Forget all, for tests and for tools that work in rounds. */
void hdsoft__report_reset(void);
/* Tell of what came again after it was given; at the end of a context or of the process. */
void hdsoft__report_summary(void);

/* Who gets them: kind, text, the address of the allocation that it is about (0: none), and how often it was met so far;
 * for what came again, how often in all with a text that says so. NULL: standard error. Called on any thread, without a
 * lock. */
typedef void (*hdsoft__report_function)(void *context, const char *kind, const char *text,
                                        unsigned long long allocation, unsigned long long count);
void hdsoft__report_to(hdsoft__report_function function, void *context);

#endif
