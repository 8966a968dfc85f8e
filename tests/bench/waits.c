/* SPDX-License-Identifier: MIT */
/* hdrt-bench wait: what a dependency between two queues costs, there and back. */
#include "hdrt_bench.h"

/* Each hop's kernel counts on only if the one before it has: one hop out of order, and the count is short. */
static void verify(struct bench *b, unsigned hops, const char *what)
{
    bench_read(b, 1);
    if (b->read[0] != hops) {
        bench_fail("%s: %u of %u hops came in order", what, b->read[0], hops);
    }
}

static void reset(struct bench *b)
{
    RAW(cuMemsetD8(b->words, 0, sizeof(uint32_t)));
    RAW(cuStreamSynchronize(NULL));
}

static double ping_pong(struct bench *b, const void *argument)
{
    const bool *exclusive = argument;
    unsigned hops = bench_size(b, 20000, 200);
    hdrt_queue *queues[2] = {bench_queue(b, *exclusive, 0), bench_queue(b, *exclusive, 0)};
    reset(b);
    double start = bench_now();
    for (unsigned i = 0; i < hops; i++) {
        hdrt_queue *queue = queues[i % 2];
        if (i > 0) {
            HDRT(hdrt_queue_wait(queue, hdrt_queue_record(queues[(i + 1) % 2])));
        }
        HDRT(hdrt_launch(queue, b->kernels.step, bench_one(), HDRT_ARGS(b->words, i)));
    }
    HDRT(hdrt_queue_synchronize(queues[0]));
    HDRT(hdrt_queue_synchronize(queues[1]));
    double ns = (bench_now() - start) / hops;
    hdrt_queue_destroy(queues[0]);
    hdrt_queue_destroy(queues[1]);
    verify(b, hops, "ping-pong");
    return ns;
}

static double ping_pong_raw(struct bench *b, const void *argument)
{
    unsigned hops = bench_size(b, 20000, 200);
    struct CUstream_st *streams[2] = {bench_stream(b), bench_stream(b)};
    struct CUevent_st *events[2];
    (void)argument;
    RAW(cuEventCreate(&events[0], BENCH_EVENT_DISABLE_TIMING));
    RAW(cuEventCreate(&events[1], BENCH_EVENT_DISABLE_TIMING));
    reset(b);
    double start = bench_now();
    for (unsigned i = 0; i < hops; i++) {
        void *params[] = {&b->words, &i};
        if (i > 0) {
            RAW(cuStreamWaitEvent(streams[i % 2], events[(i + 1) % 2], 0));
        }
        bench_launch_raw(b, streams[i % 2], b->kernels.step, params);
        RAW(cuEventRecord(events[i % 2], streams[i % 2]));
    }
    RAW(cuStreamSynchronize(streams[0]));
    RAW(cuStreamSynchronize(streams[1]));
    double ns = (bench_now() - start) / hops;
    for (int i = 0; i < 2; i++) {
        RAW(cuEventDestroy(events[i]));
        RAW(cuStreamDestroy(streams[i]));
    }
    verify(b, hops, "ping-pong, raw");
    return ns;
}

void bench_waits(struct bench *b)
{
    static const bool shared = false, exclusive = true;
    bench_compare(b, (struct bench_row){"ping-pong of 20,000 dependencies between two queues", "ns",
                                        .rule = BENCH_AT_MOST, .limit = 0.7},
                  2, ping_pong, ping_pong_raw, &shared);
    bench_compare(b, (struct bench_row){"the same between two exclusive queues", "ns", .rule = BENCH_AT_MOST,
                                        .limit = 1.1},
                  2, ping_pong, ping_pong_raw, &exclusive);
}
