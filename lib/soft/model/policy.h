/* SPDX-License-Identifier: MIT */
/*
 * Execution policies: in which order, and when, the commands of streams run. Each is an execution that CUDA allows.
 * HDSOFT_POLICY in the environment names one, or hdsoft_set_policy before the first work; options follow a colon,
 * separated by commas. Read by the driver's start; the executor (executor.h) does what they say.
 *
 *   eager             a command runs as soon as it may. The default.
 *
 *   lazy[:patience=MS]
 *                     a command runs only when the host waits for something that needs it, and then only what it
 *                     needs: work nobody waited for has not happened, which shows missing synchronisation. Asking
 *                     counts as waiting from the 16th unsuccessful query on.
 *
 *   random:SEED[,patience=MS]
 *                     like lazy, commands run only while the host is inside a call: one that waits, or, by the seed's
 *                     choice, any other at its end. Then steps are taken at random, legal ones, of what is needed and
 *                     of what is not: of any stream and device, of any ready node of a graph, as long or as short as
 *                     the seed says, blocks and splits in the seed's order. As nothing runs while the host does, the
 *                     order is a function of the seed and of the host's calls, not of the wall clock or of a race
 *                     between host and executor: the same seed and the same program with one host thread give the
 *                     same trace. Exceptions: a host function that takes more than 100 ms is no longer waited for;
 *                     memory that another host thread writes is seen when it is.
 *
 *   virtual[:KEY=VALUE,...]
 *                     a discrete-event simulation with its own clock; see simulate.h for its model and its keys. Host
 *                     code takes no time. Like random it moves only while the host is inside a call that waits.
 *
 * Where the host neither waits nor asks but looks at memory, a command still runs by itself when it has been enqueued
 * for `patience` milliseconds (1000; 10000 under random and virtual; 0: never).
 *
 * Observers: a thread that called hdsoft_observe(true), such as a library's own completion thread, forces nothing and
 * steps nothing: its queries just answer, and its waits wait for what others force.
 */
#ifndef HDSOFT_MODEL_POLICY_H
#define HDSOFT_MODEL_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum hdsoft__policy {
    HDSOFT__EAGER, HDSOFT__LAZY, HDSOFT__RANDOM, HDSOFT__VIRTUAL,
} hdsoft__policy;

/* The costs of the virtual policy, in its keys' names (simulate.h). */
typedef struct hdsoft__costs {
    uint64_t launch, node, block, copy, fill, record, wait, value, host; /* ns */
    uint64_t instruction;                                                /* ps */
    uint64_t h2d, d2h, d2d, p2p, set;                                    /* MB/s; 0: no time at all */
    uint64_t sms, engines, kernels;
} hdsoft__costs;

typedef struct hdsoft__options {
    hdsoft__policy policy;
    uint64_t seed;
    uint64_t patience; /* ns; UINT64_MAX: for ever */
    hdsoft__costs costs;
} hdsoft__options;

/* The default, eager. */
void hdsoft__options_default(hdsoft__options *options);
/* Returns 0, or 1: the text is none of the above; then *options is the default and `text` says what is wrong. */
int hdsoft__options_read(const char *policy, hdsoft__options *options, char *text, size_t capacity);

#endif
