/* SPDX-License-Identifier: MIT */
/* hdrt-bench threads: several threads that launch at once; and what the library's own threads do when there is nothing
 * to do. */
#include "hdrt_bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define THREADS 8u

struct worker {
    struct bench *b;
    pthread_barrier_t *start;
    unsigned index, count;
    bool raw;
};

static void *work(void *argument)
{
    const struct worker *worker = argument;
    struct bench *b = worker->b;
    size_t first = (size_t)worker->index * worker->count;
    hdrt_queue *queue = worker->raw ? NULL : bench_queue(b, false, 0);
    struct CUstream_st *stream = NULL;
    if (worker->raw) {
        RAW(cuCtxSetCurrent(hdrt_device_context(b->device)));
        stream = bench_stream(b);
    }
    pthread_barrier_wait(worker->start);
    for (uint32_t i = 0; i < worker->count; i++) {
        unsigned long long p = bench_word(b, first + i);
        void *params[] = {&p, &i};
        if (worker->raw) {
            bench_launch_raw(b, stream, b->kernels.store, params);
        } else {
            HDRT(hdrt_launch(queue, b->kernels.store, bench_one(), HDRT_ARGS(p, i)));
        }
    }
    if (worker->raw) {
        RAW(cuStreamSynchronize(stream));
    } else {
        HDRT(hdrt_queue_synchronize(queue));
    }
    pthread_barrier_wait(worker->start);
    if (worker->raw) {
        RAW(cuStreamDestroy(stream));
    }
    hdrt_queue_destroy(queue);
    return NULL;
}

static double run_workers(struct bench *b, bool raw)
{
    unsigned count = bench_size(b, 10000, 100);
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_t barrier;
    bench_clear(b, (size_t)THREADS * count);
    if (pthread_barrier_init(&barrier, NULL, THREADS + 1) != 0) {
        bench_fail("no barrier");
    }
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){b, &barrier, i, count, raw};
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) {
            bench_fail("no thread");
        }
    }
    pthread_barrier_wait(&barrier);
    double start = bench_now();
    pthread_barrier_wait(&barrier);
    double ns = (bench_now() - start) / ((double)THREADS * count);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&barrier);
    bench_read(b, (size_t)THREADS * count);
    for (uint32_t i = 0; i < THREADS * count; i++) {
        if (b->read[i] != i % count) {
            bench_fail("8 threads%s: launch %u wrote %u", raw ? ", raw" : "", i, b->read[i]);
        }
    }
    return ns;
}

static double on_queues(struct bench *b, const void *argument)
{
    (void)argument;
    return run_workers(b, false);
}

static double on_streams(struct bench *b, const void *argument)
{
    (void)argument;
    return run_workers(b, true);
}

/* ---- nothing to do ----------------------------------------------------------------------------------------------- */

static double seconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Processor time of all other threads of the process while this one sleeps, in per cent of a core. */
static void measure_idle(struct bench *b)
{
    struct timespec time = {b->smoke ? 0 : 2, b->smoke ? 50000000 : 0}, settle = {0, 100000000};
    hdrt_queue *queue = bench_queue(b, false, 0);
    HDRT(hdrt_launch(queue, b->kernels.store, bench_one(), HDRT_ARGS(b->words, 1u)));
    HDRT(hdrt_queue_synchronize(queue));
    nanosleep(&settle, NULL); /* the dispatcher spins for a while before it sleeps */
    double wall = bench_now() / 1e9;
    double used = seconds(CLOCK_PROCESS_CPUTIME_ID) - seconds(CLOCK_THREAD_CPUTIME_ID);
    nanosleep(&time, NULL);
    used = seconds(CLOCK_PROCESS_CPUTIME_ID) - seconds(CLOCK_THREAD_CPUTIME_ID) - used;
    wall = bench_now() / 1e9 - wall;
    hdrt_queue_destroy(queue);
    /* The two clocks are read one after the other, which can make it less than nothing. */
    bench_add(b, (struct bench_row){"dispatcher's processor time when nothing is enqueued", "%",
                                    used > 0 ? used / wall * 100 : 0, 0, BENCH_VALUE, 1});
}

void bench_threads(struct bench *b)
{
    bench_compare(b, (struct bench_row){"8 threads on 8 queues, wall per kernel over all", "ns",
                                        .rule = BENCH_TIMES_BELOW, .limit = 3.5},
                  3, on_queues, on_streams, NULL);
    measure_idle(b);
}
