/* SPDX-License-Identifier: MIT */
#ifndef HDRT_BENCH_CLOCK_H
#define HDRT_BENCH_CLOCK_H

#include <time.h>

/* In ns, from some moment on. */
static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

#endif
