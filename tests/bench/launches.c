/* SPDX-License-Identifier: MIT */
/* hdrt-bench launch: enqueueing, runs of small kernels in all patterns, and the values that each launch must see. */
#include "hdrt_bench.h"

#include <stdlib.h>

#include "patterns.h"

#define MANY_RUNS 20000u

static void expect(struct bench *b, size_t index, uint32_t value, const char *what)
{
    if (b->read[index] != value) {
        bench_fail("%s: launch %zu wrote %u, not %u", what, index, b->read[index], value);
    }
}

/* ---- a burst within the ring limit: the host's time alone -------------------------------------------------------- */

#define BURST 1000u

static void verify_four(struct bench *b, size_t count, const char *what)
{
    bench_read(b, count);
    for (size_t i = 0; i < count; i++) {
        expect(b, i, (uint32_t)i + 3, what);
    }
}

static double enqueue_four(struct bench *b, hdrt_queue *queue, size_t count)
{
    double start = bench_now();
    for (size_t i = 0; i < count; i++) {
        HDRT(hdrt_launch(queue, b->kernels.four, bench_one(), HDRT_ARGS(bench_word(b, i), (uint32_t)i, 1u, 2u)));
    }
    return start;
}

static double enqueue_four_raw(struct bench *b, struct CUstream_st *stream, size_t count)
{
    uint32_t one = 1, two = 2;
    double start = bench_now();
    for (size_t i = 0; i < count; i++) {
        unsigned long long p = bench_word(b, i);
        uint32_t v = (uint32_t)i;
        void *params[] = {&p, &v, &one, &two};
        bench_launch_raw(b, stream, b->kernels.four, params);
    }
    return start;
}

static double burst(struct bench *b, const void *argument)
{
    hdrt_queue *queue = bench_queue(b, false, 0);
    (void)argument;
    bench_clear(b, BURST);
    double start = enqueue_four(b, queue, BURST);
    double ns = (bench_now() - start) / BURST;
    HDRT(hdrt_queue_synchronize(queue));
    hdrt_queue_destroy(queue);
    verify_four(b, BURST, "burst");
    return ns;
}

static double burst_raw(struct bench *b, const void *argument)
{
    struct CUstream_st *stream = bench_stream(b);
    (void)argument;
    bench_clear(b, BURST);
    double start = enqueue_four_raw(b, stream, BURST);
    double ns = (bench_now() - start) / BURST;
    RAW(cuStreamSynchronize(stream));
    RAW(cuStreamDestroy(stream));
    verify_four(b, BURST, "burst, raw");
    return ns;
}

/* ---- runs: wall time for each kernel ----------------------------------------------------------------------------- */

static double run_four(struct bench *b, const void *argument)
{
    unsigned count = bench_size(b, MANY_RUNS, 500);
    hdrt_queue *queue = bench_queue(b, false, 0);
    (void)argument;
    bench_clear(b, count);
    double start = enqueue_four(b, queue, count);
    HDRT(hdrt_queue_synchronize(queue));
    double ns = (bench_now() - start) / count;
    hdrt_queue_destroy(queue);
    verify_four(b, count, "4 arguments");
    return ns;
}

static double run_four_raw(struct bench *b, const void *argument)
{
    unsigned count = bench_size(b, MANY_RUNS, 500);
    struct CUstream_st *stream = bench_stream(b);
    (void)argument;
    bench_clear(b, count);
    double start = enqueue_four_raw(b, stream, count);
    RAW(cuStreamSynchronize(stream));
    double ns = (bench_now() - start) / count;
    RAW(cuStreamDestroy(stream));
    verify_four(b, count, "4 arguments, raw");
    return ns;
}

/* A pattern: which kernel the i-th launch is of. */
struct pattern {
    bool seven; /* of the seven, else of the many */
    unsigned short *which;
    unsigned count;
};

static double run_pattern(struct bench *b, const void *argument)
{
    const struct pattern *pattern = argument;
    hdrt_queue *queue = bench_queue(b, false, 0);
    bench_clear(b, pattern->count);
    double start = bench_now();
    for (uint32_t i = 0; i < pattern->count; i++) {
        if (pattern->seven) {
            bench_launch_seven(b, queue, pattern->which[i], bench_word(b, i), i);
        } else {
            HDRT(hdrt_launch(queue, b->kernels.many[pattern->which[i]], bench_one(), HDRT_ARGS(bench_word(b, i), i)));
        }
    }
    HDRT(hdrt_queue_synchronize(queue));
    double ns = (bench_now() - start) / pattern->count;
    hdrt_queue_destroy(queue);
    bench_read(b, pattern->count);
    for (uint32_t i = 0; i < pattern->count; i++) {
        expect(b, i, pattern->seven ? bench_seven_value(pattern->which[i], i) : i + pattern->which[i], "pattern");
    }
    return ns;
}

static double run_pattern_raw(struct bench *b, const void *argument)
{
    const struct pattern *pattern = argument;
    struct CUstream_st *stream = bench_stream(b);
    bench_clear(b, pattern->count);
    double start = bench_now();
    for (uint32_t i = 0; i < pattern->count; i++) {
        unsigned long long p = bench_word(b, i);
        void *params[] = {&p, &i};
        if (pattern->seven) {
            bench_launch_seven_raw(b, stream, pattern->which[i], p, i);
        } else {
            bench_launch_raw(b, stream, b->kernels.many[pattern->which[i]], params);
        }
    }
    RAW(cuStreamSynchronize(stream));
    double ns = (bench_now() - start) / pattern->count;
    RAW(cuStreamDestroy(stream));
    bench_read(b, pattern->count);
    for (uint32_t i = 0; i < pattern->count; i++) {
        expect(b, i, pattern->seven ? bench_seven_value(pattern->which[i], i) : i + pattern->which[i],
               "pattern, raw");
    }
    return ns;
}

/* ---- the patterns ------------------------------------------------------------------------------------------------ */

static const struct {
    const char *measure;
    bool seven, changes; /* the seven kernels of different signatures; whether each round is another one */
    pattern_function *kernel;
    uint32_t many;
    enum bench_rule rule;
    double limit;
} patterns[] = {
    {"loop of 7 kernels of different signatures", true, false, pattern_in_turn, BENCH_SEVEN, BENCH_TIMES_BELOW, 3.5},
    {"the same 7 in random order", true, true, pattern_random, BENCH_SEVEN, BENCH_TIMES_BELOW, 1.6},
    {"1,024 kernels in random order", false, true, pattern_random, BENCH_MANY, BENCH_AT_MOST, 1.05},
    {"1,024 kernels in turn", false, false, pattern_in_turn, BENCH_MANY, BENCH_AT_MOST, 1.05},
    {"17 of each of 1,024 kernels in turn", false, false, pattern_seventeen, BENCH_MANY, BENCH_AT_MOST, 1.05},
    {"sequences of 64 kernels that each come twice", false, true, pattern_twice, BENCH_MANY, BENCH_AT_MOST, 1.05},
};

/* A fresh pattern in each round, for those of which nothing may come again. */
struct changing {
    struct pattern pattern;
    pattern_function *kernel;
    uint32_t many, state;
    bool changes;
};

static double run_changing(struct bench *b, const void *argument)
{
    struct changing *changing = *(struct changing *const *)argument;
    for (unsigned i = 0; changing->changes && i < changing->pattern.count; i++) {
        changing->pattern.which[i] = (unsigned short)changing->kernel(i, changing->many, &changing->state);
    }
    return run_pattern(b, &changing->pattern);
}

static double run_changing_raw(struct bench *b, const void *argument)
{
    const struct changing *changing = *(struct changing *const *)argument;
    return run_pattern_raw(b, &changing->pattern);
}

static void measure_pattern(struct bench *b, size_t index)
{
    struct changing changing = {
        .pattern = {.seven = patterns[index].seven, .count = bench_size(b, MANY_RUNS, 600)},
        .kernel = patterns[index].kernel,
        .many = patterns[index].many,
        .changes = patterns[index].changes,
        .state = (uint32_t)index + 1,
    };
    struct changing *argument = &changing;
    changing.pattern.which = calloc(changing.pattern.count, sizeof *changing.pattern.which);
    if (!changing.pattern.which) {
        bench_fail("no memory for a pattern");
    }
    for (unsigned i = 0; i < changing.pattern.count; i++) {
        changing.pattern.which[i] = (unsigned short)changing.kernel(i, changing.many, &changing.state);
    }
    bench_compare(b,
                  (struct bench_row){patterns[index].measure, "ns", .rule = patterns[index].rule,
                                     .limit = patterns[index].limit},
                  patterns[index].changes ? 1 : 3, run_changing, run_changing_raw, &argument);
    free(changing.pattern.which);
}

/* ---- 10^6 values ------------------------------------------------------------------------------------------------- */

/* Loops of changing length and phase, runs of one kernel, and chance, so that functions change while others of the
 * same templates are in flight. */
static unsigned mixed(unsigned i, uint32_t *state)
{
    unsigned period = 1 + i / 4096 % 7;
    return i / 512 % 4 == 3 ? pattern_number(state) % BENCH_SEVEN : (i / 1000 + i % period) % BENCH_SEVEN;
}

static void measure_values(struct bench *b)
{
    unsigned count = bench_size(b, 1000000, 5000), wrong = 0;
    uint32_t state = 9;
    hdrt_queue *queue = bench_queue(b, false, 0);
    bench_clear(b, count);
    double start = bench_now();
    for (unsigned i = 0; i < count; i++) {
        bench_launch_seven(b, queue, mixed(i, &state), bench_word(b, i), i);
    }
    HDRT(hdrt_queue_synchronize(queue));
    double ns = (bench_now() - start) / count;
    hdrt_queue_destroy(queue);
    bench_read(b, count);
    state = 9;
    for (unsigned i = 0; i < count; i++) {
        wrong += b->read[i] != bench_seven_value(mixed(i, &state), i);
    }
    bench_add(b, (struct bench_row){"10^6 launches, functions changing in flight: wrong values", "", wrong, 0,
                                    BENCH_VALUE, 0});
    bench_add(b, (struct bench_row){"the same, wall per kernel", "ns", ns, 0, BENCH_SHOWN, 0});
    if (wrong) {
        bench_fail("%u of %u launches did not write their value", wrong, count);
    }
}

/*
 * One queue alone on the GPU, then one stream. As soon as a kernel was ever launched in another stream of the context, a
 * chain takes a fifth longer on an H200, for good; who launches one by one does not notice. (Run this before others.)
 */
static void measure_alone(struct bench *b, const struct changing *const *two)
{
    struct bench_row first = {"20,000 launches of one small kernel, 2 arguments, alone", "ns", .rule = BENCH_TIMES_BELOW,
                              .limit = 4};
    struct bench_row second = {"20,000 launches of one small kernel, 4 arguments, alone", "ns",
                               .rule = BENCH_TIMES_BELOW, .limit = 4};
    b->alone = true;
    first.ours = bench_measure(b, 3, run_changing, two);
    second.ours = bench_measure(b, 3, run_four, NULL);
    b->alone = false;
    first.raw = bench_measure(b, 3, run_changing_raw, two);
    second.raw = bench_measure(b, 3, run_four_raw, NULL);
    bench_add(b, first);
    bench_add(b, second);
}

void bench_launches(struct bench *b)
{
    struct changing same = {
        .pattern = {.count = bench_size(b, MANY_RUNS, 500)},
    };
    const struct changing *argument = &same;
    same.pattern.which = calloc(same.pattern.count, sizeof *same.pattern.which);
    if (!same.pattern.which) {
        bench_fail("no memory for a pattern");
    }
    measure_alone(b, &argument);
    bench_compare(b, (struct bench_row){"enqueue of a 4-argument launch, burst of 1,000", "ns",
                                        .rule = BENCH_TIMES_BELOW, .limit = 30},
                  3, burst, burst_raw, NULL);
    bench_compare(b, (struct bench_row){"the same in turn with the raw driver's, 2 arguments", "ns",
                                        .rule = BENCH_TIMES_BELOW, .limit = 4},
                  3, run_changing, run_changing_raw, &argument);
    free(same.pattern.which);
    bench_compare(b, (struct bench_row){"the same in turn with the raw driver's, 4 arguments", "ns",
                                        .rule = BENCH_TIMES_BELOW, .limit = 4},
                  3, run_four, run_four_raw, NULL);
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        measure_pattern(b, i);
    }
    measure_values(b);
}
