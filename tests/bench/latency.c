/* SPDX-License-Identifier: MIT */
/* hdrt-bench latency: one launch and its end, on an idle device and beside a queue that is held up. */
#include "hdrt_bench.h"

#include <stdatomic.h>
#include <stdlib.h>

#define ROUND_TRIPS 5000u
#define BEHIND 20000u
/* The gate opens by itself after this, so that a library that waits for it fails instead of hanging. */
#define GATE_NS UINT64_C(20000000000)

static double *samples_of(unsigned count)
{
    double *samples = calloc(count, sizeof *samples);
    if (!samples) {
        bench_fail("no memory for %u samples", count);
    }
    return samples;
}

static double round_trip(struct bench *b, hdrt_queue *queue, uint32_t v)
{
    double start = bench_now();
    HDRT(hdrt_launch(queue, b->kernels.store, bench_one(), HDRT_ARGS(b->words, v)));
    HDRT(hdrt_queue_synchronize(queue));
    return bench_now() - start;
}

static double round_trip_raw(struct bench *b, struct CUstream_st *stream, uint32_t v)
{
    void *params[] = {&b->words, &v};
    double start = bench_now();
    bench_launch_raw(b, stream, b->kernels.store, params);
    RAW(cuStreamSynchronize(stream));
    return bench_now() - start;
}

static void verify(struct bench *b, uint32_t v)
{
    bench_read(b, 1);
    if (b->read[0] != v) {
        bench_fail("launch and synchronise: %u, not %u", b->read[0], v);
    }
}

static void measure_idle(struct bench *b)
{
    unsigned count = bench_size(b, ROUND_TRIPS, 20);
    double *ours = samples_of(count), *raw = samples_of(count);
    hdrt_queue *queue = bench_queue(b, false, 0);
    struct CUstream_st *stream = bench_stream(b);
    for (unsigned i = 0; i < count / 10; i++) {
        round_trip(b, queue, i);
        round_trip_raw(b, stream, i);
    }
    for (unsigned i = 0; i < count; i++) {
        ours[i] = round_trip(b, queue, 2 * i);
        verify(b, 2 * i);
        raw[i] = round_trip_raw(b, stream, 2 * i + 1);
        verify(b, 2 * i + 1);
    }
    bench_add(b, (struct bench_row){"one launch and synchronise on an idle queue, median", "ns",
                                    bench_quantile(ours, count, 0.5), bench_quantile(raw, count, 0.5), BENCH_AT_MOST,
                                    1.1});
    bench_add(b, (struct bench_row){"the same, 99th percentile", "ns", bench_quantile(ours, count, 0.99),
                                    bench_quantile(raw, count, 0.99), BENCH_SHOWN, 0});
    hdrt_queue_destroy(queue);
    RAW(cuStreamDestroy(stream));
    free(raw);
    free(ours);
}

/* ---- beside a gate ----------------------------------------------------------------------------------------------- */

/* Enqueue on a queue that waits for the gate; as many as it takes without waiting itself. */
static unsigned enqueue_behind(struct bench *b, hdrt_queue *queue, unsigned count)
{
    for (uint32_t i = 0; i < count; i++) {
        hdrt_status status =
            hdrt_launch(queue, b->kernels.store, bench_one(), HDRT_ARGS(bench_word(b, i + 1), i));
        if (status == HDRT_WOULD_BLOCK) {
            return i;
        }
        HDRT(status);
    }
    return count;
}

/*
 * The gate's kernel spins until the host writes its flag, so its queue is exclusive, and the one behind it has a ring
 * that takes all: nothing here may wait for the device while the gate is closed, or the flag would never come.
 */
static void measure_gated(struct bench *b)
{
    unsigned count = bench_size(b, ROUND_TRIPS, 20), behind = bench_size(b, BEHIND, 200);
    double *idle = samples_of(count), *gated = samples_of(count);
    _Atomic uint32_t *flag;
    void *pinned;
    HDRT(hdrt_host_alloc(b->device, sizeof *flag, &pinned));
    flag = pinned;
    atomic_store(flag, 0);
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    hdrt_queue *gate = bench_queue(b, true, 0), *held, *other = bench_queue(b, false, 0);
    options.ring_limit = 32768;
    options.back_pressure = HDRT_BACK_PRESSURE_WOULD_BLOCK;
    options.submission = b->submission;
    HDRT(hdrt_queue_create(b->device, &options, &held));
    bench_clear(b, behind + 1);
    for (unsigned i = 0; i < count / 10; i++) {
        round_trip(b, other, i);
    }
    for (unsigned i = 0; i < count; i++) {
        idle[i] = round_trip(b, other, i);
    }
    HDRT(hdrt_launch(gate, b->kernels.gate, bench_one(), HDRT_ARGS((hdrt_ptr)(uintptr_t)pinned, GATE_NS)));
    HDRT(hdrt_queue_wait(held, hdrt_queue_record(gate)));
    unsigned taken = enqueue_behind(b, held, behind);
    for (unsigned i = 0; i < count; i++) {
        gated[i] = round_trip(b, other, i);
    }
    bool closed = hdrt_event_query(b->runtime, hdrt_queue_record(gate)) == HDRT_NOT_READY;
    atomic_store(flag, 1);
    HDRT(hdrt_queue_synchronize(held));
    bench_read(b, behind + 1);
    for (uint32_t i = 0; i < taken; i++) {
        if (b->read[i + 1] != i) {
            bench_fail("behind the gate: launch %u wrote %u", i, b->read[i + 1]);
        }
    }
    if (!closed) {
        bench_fail("the gate opened by itself: something waited for the device, or took longer than %g s",
                   (double)GATE_NS / 1e9);
    }
    bench_add(b, (struct bench_row){"launches that a gated queue took at once (of 20,000)", "", taken, behind,
                                    BENCH_AT_LEAST, 1});
    bench_add(b, (struct bench_row){"launch and synchronise beside it, p99 (raw: ours, idle)", "ns",
                                    bench_quantile(gated, count, 0.99), bench_quantile(idle, count, 0.99),
                                    BENCH_AT_MOST, 1.2});
    bench_add(b, (struct bench_row){"the same, median (raw: ours, idle)", "ns", bench_quantile(gated, count, 0.5),
                                    bench_quantile(idle, count, 0.5), BENCH_SHOWN, 0});
    hdrt_queue_destroy(held);
    hdrt_queue_destroy(other);
    hdrt_queue_destroy(gate);
    hdrt_host_free(b->device, pinned);
    free(gated);
    free(idle);
}

void bench_latency(struct bench *b)
{
    measure_idle(b);
    measure_gated(b);
}
