/* SPDX-License-Identifier: MIT */
/* hdrt-bench latency: one launch and its end, on an idle device and beside a queue that is held up. */
#include "hdrt_bench.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define ROUND_TRIPS 5000u
#define BEHIND 20000u
/* The gate opens by itself after this, so that a library that waits for it fails instead of hanging. */
#define GATE_NS UINT64_C(20000000000)
/* What is enqueued behind the gate is handed over meanwhile, as far as it is. */
#define SETTLE_NS 20000000

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

/* The gate's kernel spins until the host writes its flag. */
struct gate {
    hdrt_queue *queue; /* exclusive */
    hdrt_queue *held;  /* the one behind it, with a ring that takes all */
    _Atomic uint32_t *flag;
    void *pinned;
};

static void gate_create(struct bench *b, struct gate *gate)
{
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.ring_limit = 32768;
    options.back_pressure = HDRT_BACK_PRESSURE_WOULD_BLOCK;
    options.submission = b->submission;
    gate->queue = bench_queue(b, true, 0);
    HDRT(hdrt_queue_create(b->device, &options, &gate->held));
    HDRT(hdrt_host_alloc(b->device, sizeof *gate->flag, &gate->pinned));
    gate->flag = gate->pinned;
}

static void gate_destroy(struct bench *b, struct gate *gate)
{
    hdrt_queue_destroy(gate->held);
    hdrt_queue_destroy(gate->queue);
    hdrt_host_free(b->device, gate->pinned);
}

static void round_trips(struct bench *b, hdrt_queue *queue, double *samples, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        samples[i] = round_trip(b, queue, i);
    }
}

/*
 * Round trips beside the closed gate and what it holds. Nothing here may wait for the device meanwhile, or the flag would
 * never come. \return how many launches the queue behind it took.
 */
static unsigned beside_gate(struct bench *b, struct gate *gate, hdrt_queue *other, double *samples, unsigned count)
{
    unsigned behind = bench_size(b, BEHIND, 200);
    bench_clear(b, behind + 1);
    atomic_store(gate->flag, 0);
    HDRT(hdrt_launch(gate->queue, b->kernels.gate, bench_one(),
                     HDRT_ARGS((hdrt_ptr)(uintptr_t)gate->pinned, GATE_NS)));
    HDRT(hdrt_queue_wait(gate->held, hdrt_queue_record(gate->queue)));
    unsigned taken = enqueue_behind(b, gate->held, behind);
    nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
    round_trips(b, other, samples, count / 10);
    round_trips(b, other, samples, count);
    bool closed = hdrt_event_query(b->runtime, hdrt_queue_record(gate->queue)) == HDRT_NOT_READY;
    atomic_store(gate->flag, 1);
    HDRT(hdrt_queue_synchronize(gate->held));
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
    return taken;
}

/* By turns with the idle device. A round trip in a hundred meets a tick of the system's clock, so many are needed. */
static void measure_gated(struct bench *b)
{
    unsigned count = bench_size(b, ROUND_TRIPS, 20), all = count * b->rounds, taken = UINT32_MAX;
    double *idle = samples_of(all), *gated = samples_of(all);
    hdrt_queue *other = bench_queue(b, false, 0);
    struct gate gate;
    gate_create(b, &gate);
    round_trips(b, other, idle, count / 10);
    for (unsigned i = 0; i < b->rounds; i++) {
        round_trips(b, other, idle + i * count, count);
        unsigned took = beside_gate(b, &gate, other, gated + i * count, count);
        taken = took < taken ? took : taken;
    }
    bench_add(b, (struct bench_row){"launches that a gated queue took at once (of 20,000)", "", taken,
                                    bench_size(b, BEHIND, 200), BENCH_AT_LEAST, 1});
    bench_add(b, (struct bench_row){"launch and synchronise beside it, p99 (raw: ours, idle)", "ns",
                                    bench_quantile(gated, all, 0.99), bench_quantile(idle, all, 0.99), BENCH_AT_MOST,
                                    1.2});
    bench_add(b, (struct bench_row){"the same, median (raw: ours, idle)", "ns", bench_quantile(gated, all, 0.5),
                                    bench_quantile(idle, all, 0.5), BENCH_SHOWN, 0});
    gate_destroy(b, &gate);
    hdrt_queue_destroy(other);
    free(gated);
    free(idle);
}

void bench_latency(struct bench *b)
{
    measure_idle(b);
    measure_gated(b);
}
