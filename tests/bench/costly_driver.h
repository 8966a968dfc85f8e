/* SPDX-License-Identifier: MIT */
/* What the driver of `make bench-overhead` counts in its array costly_counts, for who measures. */
#ifndef HDRT_BENCH_COSTLY_DRIVER_H
#define HDRT_BENCH_COSTLY_DRIVER_H

enum { LAUNCHES, GRAPHS, NODES, BUILDS, RECORDS, QUERIES, WRITES, SPENT_NS, COUNTS };

#endif
