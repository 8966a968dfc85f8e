/* SPDX-License-Identifier: MIT */
/*
 * --check of run and pipe: the soft driver's checks, whose reports are printed and make the exit code 1.
 */
#ifndef HDJIT_CHECK_H
#define HDJIT_CHECK_H

#include "arguments.h"
#include "session.h"

#include <hdrt/soft.h>

/* What the checks of one run need; it must stay where it is. */
typedef struct checks {
    const arguments *args; /* whose memory reports may be about; NULL: no more */
    hdrt_soft_report_count count;
    hdrt_soft_report_flush flush;
} checks;

/* Whether --check fits what is asked of the driver: 0, or an exit code after a message. */
int checks_usage(const options *o);

/*
 * Turns on what --check asks for, if anything, in a session whose device is not open yet. Returns 0, or an exit code
 * after a message.
 */
int checks_begin(const options *o, session *s, checks *c, const arguments *args);

/* The exit code for a run that would end with `code`: the one for a failure if anything was reported so far. */
int checks_look(const checks *c, int code);

/* The same at the end, when the session is closed. Says how many reports there were. */
int checks_end(checks *c, int code);

#endif
