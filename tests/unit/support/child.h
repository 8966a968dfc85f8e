/* SPDX-License-Identifier: MIT */
/* Ending a forked child of a test: without the parent's exit handlers, but with what a coverage build has counted. */
#ifndef TEST_CHILD_H
#define TEST_CHILD_H

#include <unistd.h>

#ifdef HDRT_COVERAGE
void __gcov_dump(void);
#endif

__attribute__((noreturn)) static inline void child_exit(int code)
{
#ifdef HDRT_COVERAGE
    __gcov_dump();
#endif
    _exit(code);
}

#endif
