/* SPDX-License-Identifier: MIT */
/*
 * Random programs for the scheduler: up to 240 operations on up to 16 queues at a time of two devices. What an operation
 * touches is ordered by declared edges and by nothing else, so every execution that respects them gives the result that
 * the operations have one after the other, which the model computes.
 */
#ifndef TEST_STRESS_PROGRAM_H
#define TEST_STRESS_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#define PROGRAM_OPS 240u
#define PROGRAM_LIVE 16u    /* queues at a time */
#define PROGRAM_QUEUES 24u  /* and in all */
#define PROGRAM_DEVICES 2u
#define PROGRAM_CELLS 40u
#define PROGRAM_WORDS 16u   /* in a cell */
#define PROGRAM_NONE 0xffffu

/* Cells: by device 16 that are always there, of which the last 4 are allocated and freed; then the host's. */
#define PROGRAM_DEVICE_CELLS 16u
#define PROGRAM_PASSING_CELLS 4u
#define PROGRAM_HOST_CELLS 8u

typedef enum program_kind {
    PROGRAM_MIX,      /* dst = dst * odd + src + value */
    PROGRAM_TURN,     /* dst = rotated dst ^ value */
    PROGRAM_PACK,     /* as MIX, by a kernel whose parameters are longer than an operation */
    PROGRAM_EMPTY,    /* a launch without blocks */
    PROGRAM_FILL,
    PROGRAM_COPY,     /* device to device, of one or two */
    PROGRAM_HTOD,
    PROGRAM_DTOH,
    PROGRAM_WRITE,    /* a snapshot of words made of the value */
    PROGRAM_CALL,     /* a host function does MIX with a host cell */
    PROGRAM_ALLOC,
    PROGRAM_FREE,
    PROGRAM_WAIT,     /* for the event of an earlier operation */
    PROGRAM_GATE,     /* the queue waits for the gate */
    PROGRAM_OPEN,     /* the host opens the gate */
    PROGRAM_SYNC,     /* the host waits for a queue */
    PROGRAM_HOST_WAIT,/* and for an event */
    PROGRAM_QUERY,    /* asks for one */
    PROGRAM_PAUSE,    /* lets others run */
    PROGRAM_CREATE,   /* a queue */
    PROGRAM_DESTROY,
} program_kind;

typedef struct program_op {
    uint8_t kind; /* a program_kind */
    uint8_t queue, dst, src;
    uint16_t event; /* operation whose event it is about */
    uint32_t value;
} program_op;

typedef struct program_queue {
    uint8_t device, submission; /* submission: 0 the configuration's, else an hdrt_submission + 1 */
    int8_t priority;
    bool exclusive, narrow; /* narrow: a ring of few operations */
} program_queue;

typedef struct program_graph {
    uint64_t seed;
    uint32_t op_count, queue_count, wait_count;
    bool gated;
    program_op ops[PROGRAM_OPS];
    program_queue queues[PROGRAM_QUEUES];
} program_graph;

/* What is left after a program: cells and what each operation saw last in its cell. */
typedef struct program_result {
    uint32_t cells[PROGRAM_CELLS][PROGRAM_WORDS];
    uint32_t stamps[PROGRAM_OPS];
} program_result;

typedef struct program_options {
    bool may_block; /* rings may be narrow: the execution goes on while the host waits for room */
    bool no_host;   /* one device, and nothing that is done on the host or that it waits for: for virtual time */
    bool gated;     /* always */
} program_options;

void program_generate(program_graph *program, uint64_t seed, const program_options *options);
/* The first content of cells; `devices` of which there are. */
void program_start(program_result *result, uint64_t seed, uint32_t devices);
void program_model(const program_graph *program, program_result *result);
/* One operation, for messages. \return buffer. */
const char *program_describe(const program_graph *program, uint32_t index, char buffer[160]);

static inline bool program_is_host(uint32_t cell)
{
    return cell >= PROGRAM_DEVICES * PROGRAM_DEVICE_CELLS;
}
static inline uint32_t program_device_of(uint32_t cell)
{
    return cell / PROGRAM_DEVICE_CELLS;
}
static inline bool program_is_passing(uint32_t cell)
{
    return !program_is_host(cell) && cell % PROGRAM_DEVICE_CELLS >= PROGRAM_DEVICE_CELLS - PROGRAM_PASSING_CELLS;
}
static inline uint32_t program_mix(uint32_t dst, uint32_t src, uint32_t value)
{
    return dst * 31u + src + value;
}
static inline uint32_t program_turn(uint32_t dst, uint32_t value)
{
    return (dst << 5 | dst >> 27) ^ value;
}
/* The words of a WRITE, and what PACK's further parameters add up to. */
static inline uint32_t program_word(uint32_t value, uint32_t index)
{
    return value * 2654435761u + index * 40503u;
}
#define PROGRAM_PACKED 16u

static inline uint64_t program_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

#endif
