/* SPDX-License-Identifier: MIT */
/*
 * hdrt-bench copies: queues that each copy in, run a kernel and copy out, some times in turn. The library makes copies in
 * the stream where the queue's kernels are; the raw driver beside it makes them in a stream for each direction, with
 * events to and fro. What is shown decides whether that is worth its events.
 */
#include "hdrt_bench.h"

#include <stdlib.h>
#include <string.h>

#define TURNS 4u
#define COMPUTE_STREAMS 128u
#define SPIN_NS 20000u

struct copies {
    unsigned queues, kib; /* of each copy */
    unsigned char *in, *out;
    unsigned long long memory;
    hdrt_queue **ours;
};

static const struct {
    const char *measure;
    unsigned queues, kib;
} cases[] = {
    {"copy in, kernel, copy out: 4 queues, 4 MiB each", 4, 4096},
    {"64 queues, 1 MiB each", 64, 1024},
    {"256 queues, 256 KiB each", 256, 256},
    {"512 queues, 64 KiB each", 512, 64},
};

static size_t bytes_of(const struct copies *c)
{
    return (size_t)c->kib << 10;
}

static void fill_host(struct copies *c)
{
    for (size_t i = 0; i < c->queues * bytes_of(c); i += sizeof(uint32_t)) {
        uint32_t word = (uint32_t)i * 2654435761u;
        memcpy(c->in + i, &word, sizeof word);
    }
    memset(c->out, 0, c->queues * bytes_of(c));
}

/* The first word is the last kernel's, the others are as they were sent. */
static void verify(const struct copies *c, const char *what)
{
    for (unsigned q = 0; q < c->queues; q++) {
        uint32_t first, expected = q * TURNS + TURNS - 1;
        size_t at = q * bytes_of(c);
        memcpy(&first, c->out + at, sizeof first);
        if (first != expected || memcmp(c->in + at + 4, c->out + at + 4, bytes_of(c) - 4) != 0) {
            bench_fail("%s: queue %u brought back %u, or other bytes", what, q, first);
        }
    }
}

static double run_ours(struct bench *b, const void *argument)
{
    struct copies *c = *(struct copies *const *)argument;
    size_t bytes = bytes_of(c);
    fill_host(c);
    double start = bench_now();
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        for (uint32_t q = 0; q < c->queues; q++) {
            hdrt_ptr memory = c->memory + q * bytes;
            HDRT(hdrt_copy_htod(c->ours[q], memory, c->in + q * bytes, bytes));
            HDRT(hdrt_launch(c->ours[q], b->kernels.spin, bench_one(),
                             HDRT_ARGS((uint64_t)SPIN_NS, memory, q * TURNS + turn)));
            HDRT(hdrt_copy_dtoh(c->ours[q], c->out + q * bytes, memory, bytes));
        }
    }
    HDRT(hdrt_device_synchronize(b->device));
    double us = (bench_now() - start) / 1000;
    verify(c, "copies");
    return us;
}

struct direction_streams {
    struct CUstream_st *in, *out, *compute[COMPUTE_STREAMS];
    unsigned count;
};

static void turn_raw(struct bench *b, struct copies *c, struct direction_streams *s, struct CUevent_st **events,
                     uint32_t q, uint32_t turn)
{
    size_t bytes = bytes_of(c);
    unsigned long long memory = c->memory + q * bytes;
    uint64_t ns = SPIN_NS;
    uint32_t value = q * TURNS + turn;
    void *params[] = {&ns, &memory, &value};
    struct CUstream_st *compute = s->compute[q % s->count];
    struct CUevent_st **mine = events + 3 * q;
    if (turn) {
        RAW(cuStreamWaitEvent(s->in, mine[2], 0));
    }
    RAW(cuMemcpyHtoDAsync(memory, c->in + q * bytes, bytes, s->in));
    RAW(cuEventRecord(mine[0], s->in));
    RAW(cuStreamWaitEvent(compute, mine[0], 0));
    bench_launch_raw(b, compute, b->kernels.spin, params);
    RAW(cuEventRecord(mine[1], compute));
    RAW(cuStreamWaitEvent(s->out, mine[1], 0));
    RAW(cuMemcpyDtoHAsync(c->out + q * bytes, memory, bytes, s->out));
    RAW(cuEventRecord(mine[2], s->out));
}

static double run_raw(struct bench *b, const void *argument)
{
    struct copies *c = *(struct copies *const *)argument;
    struct direction_streams s = {.in = bench_stream(b), .out = bench_stream(b)};
    struct CUevent_st **events = calloc(3 * c->queues, sizeof(struct CUevent_st *));
    s.count = c->queues < COMPUTE_STREAMS ? c->queues : COMPUTE_STREAMS;
    if (!events) {
        bench_fail("no memory for events");
    }
    for (unsigned i = 0; i < s.count; i++) {
        s.compute[i] = bench_stream(b);
    }
    for (unsigned i = 0; i < 3 * c->queues; i++) {
        RAW(cuEventCreate(&events[i], BENCH_EVENT_DISABLE_TIMING));
    }
    fill_host(c);
    double start = bench_now();
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        for (uint32_t q = 0; q < c->queues; q++) {
            turn_raw(b, c, &s, events, q, turn);
        }
    }
    RAW(cuStreamSynchronize(s.out));
    double us = (bench_now() - start) / 1000;
    verify(c, "copies, raw");
    for (unsigned i = 0; i < 3 * c->queues; i++) {
        RAW(cuEventDestroy(events[i]));
    }
    for (unsigned i = 0; i < s.count; i++) {
        RAW(cuStreamDestroy(s.compute[i]));
    }
    RAW(cuStreamDestroy(s.in));
    RAW(cuStreamDestroy(s.out));
    free(events);
    return us;
}

static void measure(struct bench *b, size_t index)
{
    struct copies c = {.queues = bench_size(b, cases[index].queues, 3), .kib = bench_size(b, cases[index].kib, 16)};
    struct copies *argument = &c;
    size_t all = c.queues * bytes_of(&c);
    c.ours = calloc(c.queues, sizeof(hdrt_queue *));
    if (!c.ours) {
        bench_fail("no memory for queues");
    }
    for (unsigned q = 0; q < c.queues; q++) {
        c.ours[q] = bench_queue(b, false, 0);
    }
    HDRT(hdrt_host_alloc(b->device, all, (void **)&c.in));
    HDRT(hdrt_host_alloc(b->device, all, (void **)&c.out));
    RAW(cuMemAlloc(&c.memory, all));
    bench_compare(b, (struct bench_row){cases[index].measure, "us", .rule = BENCH_SHOWN}, 2, run_ours, run_raw,
                  &argument);
    HDRT(hdrt_host_free(b->device, c.in));
    HDRT(hdrt_host_free(b->device, c.out));
    RAW(cuMemFree(c.memory));
    for (unsigned q = 0; q < c.queues; q++) {
        hdrt_queue_destroy(c.ours[q]);
    }
    free(c.ours);
}

void bench_copies(struct bench *b)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        measure(b, i);
    }
}
