/* SPDX-License-Identifier: MIT */
/*
 * hdrt-bench: what the library costs against the raw driver, in the same process and run. A user of the public headers:
 * the raw driver's entry points come from hdrt/interop.h, so that both sides use the same loaded driver.
 *
 * A benchmark is a file: it measures, verifies what the kernels wrote after the timed part, and adds rows.
 */
#ifndef HDRT_BENCH_H
#define HDRT_BENCH_H

#include <hdrt.h>
#include <hdrt/interop.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the raw driver ---------------------------------------------------------------------------------------------- */

struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;

/* CUDA_KERNEL_NODE_PARAMS, version 2. */
struct bench_node_params {
    struct CUfunc_st *function;
    unsigned grid[3], block[3], shared;
    void **params, **extra;
    void *kernel;
    struct CUctx_st *context;
};

#define BENCH_RAW(X)                                                                                                   \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", (struct CUctx_st *))                                                         \
    X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t *, size_t *))                                                           \
    X(cuMemAlloc, "cuMemAlloc_v2", (unsigned long long *, size_t))                                                     \
    X(cuMemFree, "cuMemFree_v2", (unsigned long long))                                                                 \
    X(cuMemsetD8, "cuMemsetD8_v2", (unsigned long long, unsigned char, size_t))                                        \
    X(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (void *, unsigned long long, size_t))                                           \
    X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (unsigned long long, const void *, size_t, struct CUstream_st *))       \
    X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *, unsigned long long, size_t, struct CUstream_st *))             \
    X(cuStreamCreate, "cuStreamCreate", (struct CUstream_st **, unsigned))                                             \
    X(cuStreamDestroy, "cuStreamDestroy_v2", (struct CUstream_st *))                                                   \
    X(cuStreamSynchronize, "cuStreamSynchronize", (struct CUstream_st *))                                              \
    X(cuStreamWaitEvent, "cuStreamWaitEvent", (struct CUstream_st *, struct CUevent_st *, unsigned))                   \
    X(cuEventCreate, "cuEventCreate", (struct CUevent_st **, unsigned))                                                \
    X(cuEventDestroy, "cuEventDestroy_v2", (struct CUevent_st *))                                                      \
    X(cuEventRecord, "cuEventRecord", (struct CUevent_st *, struct CUstream_st *))                                     \
    X(cuLaunchKernel, "cuLaunchKernel",                                                                                \
      (struct CUfunc_st *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,                       \
       struct CUstream_st *, void **, void **))                                                                        \
    X(cuGraphCreate, "cuGraphCreate", (struct CUgraph_st **, unsigned))                                                \
    X(cuGraphDestroy, "cuGraphDestroy", (struct CUgraph_st *))                                                         \
    X(cuGraphAddKernelNode, "cuGraphAddKernelNode_v2",                                                                 \
      (struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, size_t,                          \
       const struct bench_node_params *))                                                                              \
    X(cuGraphInstantiate, "cuGraphInstantiateWithFlags",                                                               \
      (struct CUgraphExec_st **, struct CUgraph_st *, unsigned long long))                                             \
    X(cuGraphLaunch, "cuGraphLaunch", (struct CUgraphExec_st *, struct CUstream_st *))                                 \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", (struct CUgraphExec_st *))

struct bench_raw {
#define BENCH_RAW_MEMBER(name, symbol, parameters) int(*name) parameters;
    BENCH_RAW(BENCH_RAW_MEMBER)
#undef BENCH_RAW_MEMBER
};

#define BENCH_STREAM_NON_BLOCKING 1u
#define BENCH_EVENT_DISABLE_TIMING 2u

/* ---- kernels, all of one thread (kernels.c) ---------------------------------------------------------------------- */

#define BENCH_SEVEN 7u
#define BENCH_MANY 1024u

struct bench_kernels {
    hdrt_kernel *store;              /* (p, v): *p = v */
    hdrt_kernel *four;               /* (p, v, a, b): *p = v + a + b */
    hdrt_kernel *step;               /* (p, v): *p = v + 1 if *p is v */
    hdrt_kernel *spin;               /* (ns, p, v): *p = v after ns of the GPU's clock */
    hdrt_kernel *gate;               /* (flag, ns): until the host has written a 1 there, or so long */
    hdrt_kernel *seven[BENCH_SEVEN]; /* of as many signatures: *p is made what bench_seven_value tells */
    hdrt_kernel *many[BENCH_MANY];   /* (p, v): *p = v + number */
};

/* ---- the benchmark ----------------------------------------------------------------------------------------------- */

/* How a row is judged. */
enum bench_rule {
    BENCH_SHOWN,       /* not */
    BENCH_TIMES_BELOW, /* raw / ours at least the limit */
    BENCH_AT_MOST,     /* ours / raw at most the limit */
    BENCH_AT_LEAST,    /* ours / raw at least the limit */
    BENCH_VALUE,       /* ours at most the limit */
};

struct bench_row {
    const char *measure, *unit;
    double ours, raw; /* raw 0: there is none */
    enum bench_rule rule;
    double limit;
};

struct bench {
    hdrt_runtime *runtime;
    hdrt_device *device;
    struct bench_raw cu;
    struct bench_kernels kernels;
    hdrt_module *module;
    hdrt_submission submission;
    bool smoke;           /* tiny sizes: does everything work? */
    bool alone;           /* nothing was put into a stream of the raw driver's so far, nor is by bench_clear */
    unsigned rounds;      /* of each measurement, after as many to warm up as it needs */
    unsigned long long words; /* device memory for what kernels write */
    uint32_t *read;       /* as much of the host's */
    size_t word_count;
    struct bench_row rows[64];
    double quotients[64]; /* of the rows, ours / raw by pairs of rounds; 0: of what is in the row */
    unsigned row_count;
};

/* End the program with the words: what a benchmark needs does not work. */
void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
#define HDRT(call)                                                                                                     \
    do {                                                                                                               \
        hdrt_status bench_status_ = (call);                                                                            \
        if (bench_status_ != HDRT_OK)                                                                                  \
            bench_fail("%s: %s: %s", #call, hdrt_status_name(bench_status_), hdrt_last_error());                       \
    } while (0)
#define RAW(call)                                                                                                      \
    do {                                                                                                               \
        int bench_result_ = b->cu.call;                                                                                \
        if (bench_result_)                                                                                             \
            bench_fail("%s: %d", #call, bench_result_);                                                                \
    } while (0)

double bench_now(void); /* ns */
double bench_quantile(double *samples, unsigned count, double quantile);
/* The full size, or the tiny one. */
static inline unsigned bench_size(const struct bench *b, unsigned full, unsigned tiny)
{
    return b->smoke ? tiny : full;
}

void bench_add(struct bench *b, struct bench_row row);

/* One round of a measurement: ns for each item, after having verified what was written. */
typedef double (*bench_round)(struct bench *b, const void *argument);
/*
 * Rounds of both in turn after `warm` of each, and the medians as ours and raw of the row. The ratio is the median of
 * those of each pair of rounds: a machine that becomes slower for a while does so for both.
 */
void bench_compare(struct bench *b, struct bench_row row, unsigned warm, bench_round ours, bench_round raw,
                   const void *argument);
/* The median of rounds of one of them. */
double bench_measure(struct bench *b, unsigned warm, bench_round round, const void *argument);

hdrt_queue *bench_queue(struct bench *b, bool exclusive, uint32_t ring_limit);
struct CUstream_st *bench_stream(struct bench *b);

void bench_load_kernels(struct bench *b);
/* Fill the words with what no kernel writes; read them back. All work must be over. */
#define BENCH_UNWRITTEN UINT32_C(0xeeeeeeee)
void bench_clear(struct bench *b, size_t count);
void bench_read(struct bench *b, size_t count);
static inline unsigned long long bench_word(const struct bench *b, size_t index)
{
    return b->words + index * sizeof(uint32_t);
}

/* Launches of one thread, by the library and raw. */
static inline hdrt_grid bench_one(void)
{
    return (hdrt_grid){{1, 1, 1}, {1, 1, 1}, 0};
}
void bench_launch_raw(struct bench *b, struct CUstream_st *stream, hdrt_kernel *kernel, void **params);
void bench_launch_seven(struct bench *b, hdrt_queue *queue, unsigned which, unsigned long long p, uint32_t v);
void bench_launch_seven_raw(struct bench *b, struct CUstream_st *stream, unsigned which, unsigned long long p,
                            uint32_t v);
uint32_t bench_seven_value(unsigned which, uint32_t v);

/* The benchmarks. */
void bench_launches(struct bench *b);
void bench_waits(struct bench *b);
void bench_queues(struct bench *b);
void bench_latency(struct bench *b);
void bench_threads(struct bench *b);
void bench_copies(struct bench *b);

#endif
