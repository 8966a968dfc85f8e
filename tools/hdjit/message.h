/* SPDX-License-Identifier: MIT */
/*
 * What hdjit says and how it ends: one line a message on standard error, "hdjit: " in front, and the exit codes that
 * the manual promises. Every part of the tool reports through this one, at the place where the failure happened.
 */
#ifndef HDJIT_MESSAGE_H
#define HDJIT_MESSAGE_H

#include <hdrt.h>

enum exit_code {
    EXIT_CODE_OK = 0,
    EXIT_CODE_FAILED = 1,      /* understood, but it did not work */
    EXIT_CODE_USAGE = 2,       /* the command line or environment makes no sense */
    EXIT_CODE_NO_DEVICE = 3,   /* no usable driver or device */
    EXIT_CODE_NO_COMPILER = 4, /* no usable compiler */
    EXIT_CODE_TIME_LIMIT = 5,  /* the compile passed its time limit */
};

/* From now on each line is a JSON object, of compilers' messages too. */
void message_json(bool wanted);

/* Says a compiler's message; `file` NULL: none; line, column 0: not known. */
void message_diagnostic(const hdrt_diagnostic *diagnostic);

/* Says text of a compiler that has no form. */
void message_log(const char *text);

/* Says a line. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says a line and returns `code`. */
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Says "WHAT: the library's last message" and returns `code`, or with `code` < 0 the one that fits `status`. */
int fail_status(int code, hdrt_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same without WHAT, where the message says itself what it is about. */
int fail_last(hdrt_status status);

/* The exit code for a failed call of the library. */
int status_exit_code(hdrt_status status);

#endif
