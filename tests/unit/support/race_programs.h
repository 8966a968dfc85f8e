/* SPDX-License-Identifier: MIT */
/*
 * Random programs for tests of race checks: operations on byte ranges of a few buffers, spread over lanes (queues or
 * streams, each in order by itself), with just the edges that they need, each of them needed. As it is, a program has
 * no race; without any one of its edges it has one. What the operations are is the test's own: it says which of them
 * read and write, and enqueues them. The same seed gives the same programs.
 */
#ifndef TEST_RACE_PROGRAMS_H
#define TEST_RACE_PROGRAMS_H

#include <stdint.h>

enum { PROGRAM_LANES = 4, PROGRAM_MOST = 24, PROGRAM_BUFFERS = 3, PROGRAM_BUFFER_BYTES = 96 };

/* What operations of a kind do with memory. */
typedef enum program_access {
    PROGRAM_READS,
    PROGRAM_WRITES,
    PROGRAM_COPIES, /* reads a range of one buffer and writes one of the same size of another */
    PROGRAM_COUNTS, /* changes one aligned word atomically: two of them have no conflict */
} program_access;

typedef struct program_range {
    unsigned buffer, first, count; /* count 0: none */
} program_range;

typedef struct program_operation {
    unsigned kind; /* index into the generator's kinds */
    unsigned lane;
    program_range read, write;
    unsigned before; /* a bit for each operation that an edge leads here from; they come before it in the program */
} program_operation;

typedef struct program {
    program_operation operations[PROGRAM_MOST];
    unsigned count, edges;
} program;

typedef struct program_generator {
    const program_access *kinds;
    unsigned kind_count, most; /* most: operations in a program are fewer; 6 to PROGRAM_MOST */
    uint64_t state; /* the seed, not 0; each draw changes it */
} program_generator;

/* Draw a program; it has an edge at least. */
void program_draw(program_generator *from, program *out);
/* Take away one of the edges of a program that was just drawn, which one is drawn too; p->edges stays. */
void program_remove_edge(program_generator *from, program *p);

#endif
