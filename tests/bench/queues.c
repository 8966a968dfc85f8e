/* SPDX-License-Identifier: MIT */
/* hdrt-bench queues: many logical queues: what they cost, and how many of their kernels run at once. */
#include "hdrt_bench.h"

#include <stdlib.h>

/* ---- 512 kernels at once ----------------------------------------------------------------------------------------- */

#define AT_ONCE 512u

struct spins {
    unsigned count;
    uint64_t ns; /* of each */
    hdrt_queue *queues[AT_ONCE];
    struct CUstream_st *stream; /* for the graph */
    struct CUgraph_st *graph;
    struct CUgraphExec_st *exec;
};

static void verify_spins(struct bench *b, unsigned count, const char *what)
{
    bench_read(b, count);
    for (unsigned i = 0; i < count; i++) {
        if (b->read[i] != i) {
            bench_fail("%s: kernel %u wrote %u", what, i, b->read[i]);
        }
    }
}

/* How many ran at once: the sum of their times over the wall time. */
static double spin_queues(struct bench *b, const void *argument)
{
    const struct spins *spins = argument;
    bench_clear(b, spins->count);
    double start = bench_now();
    for (uint32_t i = 0; i < spins->count; i++) {
        HDRT(hdrt_launch(spins->queues[i], b->kernels.spin, bench_one(), HDRT_ARGS(spins->ns, bench_word(b, i), i)));
    }
    HDRT(hdrt_device_synchronize(b->device));
    double wall = bench_now() - start;
    verify_spins(b, spins->count, "kernels at once");
    return (double)(spins->count * spins->ns) / wall;
}

static double spin_graph(struct bench *b, const void *argument)
{
    const struct spins *spins = argument;
    bench_clear(b, spins->count);
    double start = bench_now();
    RAW(cuGraphLaunch(spins->exec, spins->stream));
    RAW(cuStreamSynchronize(spins->stream));
    double wall = bench_now() - start;
    verify_spins(b, spins->count, "wide graph");
    return (double)(spins->count * spins->ns) / wall;
}

static void measure_spins(struct bench *b)
{
    static struct spins spins;
    spins.count = bench_size(b, AT_ONCE, 16);
    spins.ns = bench_size(b, 500000, 20000);
    spins.stream = bench_stream(b);
    RAW(cuGraphCreate(&spins.graph, 0));
    for (uint32_t i = 0; i < spins.count; i++) {
        unsigned long long p = bench_word(b, i);
        void *params[] = {&spins.ns, &p, &i};
        struct bench_node_params node = {
            .function = hdrt_kernel_function(b->kernels.spin), .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = params,
        };
        struct CUgraphNode_st *added;
        RAW(cuGraphAddKernelNode(&added, spins.graph, NULL, 0, &node));
        spins.queues[i] = bench_queue(b, false, 0);
    }
    RAW(cuGraphInstantiate(&spins.exec, spins.graph, 0));
    bench_compare(b, (struct bench_row){"512 kernels of 500 us on a queue each: at once", "", .rule = BENCH_AT_LEAST,
                                        .limit = 0.95},
                  6, spin_queues, spin_graph, &spins);
    for (uint32_t i = 0; i < spins.count; i++) {
        hdrt_queue_destroy(spins.queues[i]);
    }
    RAW(cuGraphExecDestroy(spins.exec));
    RAW(cuGraphDestroy(spins.graph));
    RAW(cuStreamDestroy(spins.stream));
}

/* ---- 10,000 queues ----------------------------------------------------------------------------------------------- */

#define QUEUES 10000u

struct lives {
    double create, enqueue, destroy, all; /* ns for each queue */
};

static double free_mib(struct bench *b)
{
    size_t now, all;
    RAW(cuMemGetInfo(&now, &all));
    return (double)now / 1048576;
}

static struct lives live(struct bench *b, hdrt_queue **queues, unsigned count)
{
    struct lives lives;
    bench_clear(b, count);
    double start = bench_now();
    for (unsigned i = 0; i < count; i++) {
        queues[i] = bench_queue(b, false, 0);
    }
    double created = bench_now();
    for (uint32_t i = 0; i < count; i++) {
        HDRT(hdrt_launch(queues[i], b->kernels.store, bench_one(), HDRT_ARGS(bench_word(b, i), i)));
    }
    double enqueued = bench_now();
    for (unsigned i = 0; i < count; i++) {
        hdrt_queue_destroy(queues[i]);
    }
    double destroyed = bench_now();
    HDRT(hdrt_device_synchronize(b->device));
    verify_spins(b, count, "many queues");
    lives.create = (created - start) / count;
    lives.enqueue = (enqueued - created) / count;
    lives.destroy = (destroyed - enqueued) / count;
    lives.all = (destroyed - start) / count;
    return lives;
}

/* Let the library have as many streams as it will: by kernels that run at once, and not side by side from one stream, for
 * neighbours differ in their grids. */
static void make_streams(struct bench *b, hdrt_queue **queues, unsigned count)
{
    uint64_t ns = bench_size(b, 3000000, 20000);
    bench_clear(b, count);
    for (uint32_t i = 0; i < count; i++) {
        hdrt_grid grid = {{1 + i % 2, 1, 1}, {1, 1, 1}, 0};
        queues[i] = bench_queue(b, false, 0);
        HDRT(hdrt_launch(queues[i], b->kernels.spin, grid, HDRT_ARGS(ns, bench_word(b, i), i)));
    }
    HDRT(hdrt_device_synchronize(b->device));
    verify_spins(b, count, "kernels on streams of their own");
    for (unsigned i = 0; i < count; i++) {
        hdrt_queue_destroy(queues[i]);
    }
}

/* Device memory tells of streams too: each takes 0.55 MiB, so 128 take 71 and 10,000 would take 5,500; and of templates, of
 * which 32 MiB are kept at most: more are made whenever so many streams are at work at once as never before. It is flat when
 * many rounds in turn took nothing. */
static double take_all_memory(struct bench *b, hdrt_queue **queues, unsigned count)
{
    double left = free_mib(b);
    for (unsigned round = 0, flat = 0; round < 200 && flat < bench_size(b, 50, 2); round++) {
        live(b, queues, count);
        double now = free_mib(b);
        flat = now == left ? flat + 1 : 0;
        left = now;
    }
    return left;
}

static void measure_lives(struct bench *b)
{
    unsigned count = bench_size(b, QUEUES, 100);
    double create[64], enqueue[64], destroy[64], all[64];
    hdrt_queue **queues = calloc(count, sizeof *queues);
    if (!queues) {
        bench_fail("no memory for %u queues", count);
    }
    double before = free_mib(b);
    make_streams(b, queues, bench_size(b, 512, 16));
    double first = take_all_memory(b, queues, count);
    for (unsigned i = 0; i < b->rounds; i++) {
        struct lives lives = live(b, queues, count);
        create[i] = lives.create;
        enqueue[i] = lives.enqueue;
        destroy[i] = lives.destroy;
        all[i] = lives.all;
    }
    double last = free_mib(b);
    free(queues);
    bench_add(b, (struct bench_row){"10,000 queues: create, one enqueue, destroy", "ns",
                                    bench_quantile(all, b->rounds, 0.5), 0, BENCH_VALUE, 1500});
    bench_add(b, (struct bench_row){"  of which create", "ns", bench_quantile(create, b->rounds, 0.5), 0, BENCH_SHOWN,
                                    0});
    bench_add(b, (struct bench_row){"  of which the enqueue", "ns", bench_quantile(enqueue, b->rounds, 0.5), 0,
                                    BENCH_SHOWN, 0});
    bench_add(b, (struct bench_row){"  of which destroy", "ns", bench_quantile(destroy, b->rounds, 0.5), 0,
                                    BENCH_SHOWN, 0});
    bench_add(b, (struct bench_row){"  device memory in all (128 streams 71, templates 32)", "MiB", before - first, 0,
                                    BENCH_VALUE, 105});
    bench_add(b, (struct bench_row){"  and what further rounds took then", "MiB", first - last, 0, BENCH_VALUE, 2});
}

void bench_queues(struct bench *b)
{
    measure_lives(b);
    measure_spins(b);
}
