/* SPDX-License-Identifier: MIT */
/*
 * What the library itself takes of each launch, on any machine: patterns of launches on a driver that does nothing and
 * takes as long as an H200's (costly_driver.c). `make bench-overhead`. Of a row, `own` is the wall time less the time in
 * the driver's calls; HDRT_TEMPLATES=off and COSTLY_SCALE=0 tell more, and so does a profiler.
 */
#include <hdrt.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "costly_driver.h"
#include "patterns.h"

#define KERNELS 1024u
#define LAUNCHES_EACH 20000u
#define ROUNDS 9

static hdrt_device *device;
static hdrt_kernel *kernels[KERNELS];
static unsigned short which[LAUNCHES_EACH];
static const unsigned long *counts;

static void must(hdrt_status status, const char *call)
{
    if (status != HDRT_OK) {
        fprintf(stderr, "overhead: %s: %s\n", call, hdrt_last_error());
        exit(2);
    }
}
#define OK(call) must(call, #call)

/* ---- rounds: LAUNCHES_EACH launches each ------------------------------------------------------------------------- */

static const hdrt_grid one = {{1, 1, 1}, {1, 1, 1}, 0};

static hdrt_queue *make_queue(bool exclusive)
{
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    hdrt_queue *queue;
    options.exclusive = exclusive;
    OK(hdrt_queue_create(device, &options, &queue));
    return queue;
}

static void launch(hdrt_queue *queue, unsigned i)
{
    unsigned long long address = 4096 + i;
    OK(hdrt_launch(queue, kernels[which[i]], one, HDRT_ARGS(address, i)));
}

/* \return ns of wall time, as the others. */
static double on_one_queue(bool each_waited_for)
{
    hdrt_queue *queue = make_queue(false);
    double start = now();
    for (unsigned i = 0; i < LAUNCHES_EACH; i++) {
        launch(queue, i);
        if (each_waited_for) {
            OK(hdrt_queue_synchronize(queue));
        }
    }
    OK(hdrt_queue_synchronize(queue));
    double wall = now() - start;
    hdrt_queue_destroy(queue);
    return wall;
}

static double one_queue(void)
{
    return on_one_queue(false);
}

static double each_waited_for(void)
{
    return on_one_queue(true);
}

static double exclusive_in_turn(void)
{
    hdrt_queue *queues[2] = {make_queue(true), make_queue(true)};
    double start = now();
    for (unsigned i = 0; i < LAUNCHES_EACH; i++) {
        if (i > 0) {
            OK(hdrt_queue_wait(queues[i % 2], hdrt_queue_record(queues[(i + 1) % 2])));
        }
        launch(queues[i % 2], i);
    }
    OK(hdrt_queue_synchronize(queues[0]));
    OK(hdrt_queue_synchronize(queues[1]));
    double wall = now() - start;
    hdrt_queue_destroy(queues[0]);
    hdrt_queue_destroy(queues[1]);
    return wall;
}

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

static const struct pattern {
    const char *name;
    pattern_function *kernel;
    uint32_t many, first; /* kernels, and which is the first of them */
    double (*round)(void);
} patterns[] = {
    {"each waited for", pattern_in_turn, 1, 99, each_waited_for},
    {"two exclusive in turn", pattern_in_turn, 1, 98, exclusive_in_turn},
    {"loop of 7", pattern_in_turn, 7, 0, one_queue},
    {"7 in random order", pattern_random, 7, 0, one_queue},
    {"48 in random order", pattern_random, 48, 100, one_queue},
    {"128 in random order", pattern_random, 128, 200, one_queue},
    {"1,024 in random order", pattern_random, KERNELS, 0, one_queue},
    {"1,024 in turn", pattern_in_turn, KERNELS, 0, one_queue},
    {"17 of each", pattern_seventeen, KERNELS, 0, one_queue},
    {"64 that come twice", pattern_twice, KERNELS, 0, one_queue},
};

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

static void measure(const struct pattern *pattern)
{
    double wall[ROUNDS], driver[ROUNDS], own[ROUNDS];
    uint32_t state = 1;
    unsigned long before[COUNTS] = {0};
    for (int round = -1; round < ROUNDS; round++) {
        for (unsigned i = 0; i < LAUNCHES_EACH; i++) {
            which[i] = (unsigned short)(pattern->first + pattern->kernel(i, pattern->many, &state));
        }
        if (round == 0) {
            memcpy(before, counts, sizeof before);
        }
        unsigned long spent = counts[SPENT_NS];
        double each = pattern->round() / LAUNCHES_EACH;
        if (round >= 0) {
            wall[round] = each;
            driver[round] = (double)(counts[SPENT_NS] - spent) / LAUNCHES_EACH;
            own[round] = wall[round] - driver[round];
        }
    }
    unsigned long graphs = counts[GRAPHS] - before[GRAPHS];
    printf("%-22s %6.0f %7.0f %6.0f %8lu %8lu %8.1f %7lu %7lu %7lu %7lu\n", pattern->name, median(wall), median(driver),
           median(own), (counts[LAUNCHES] - before[LAUNCHES]) / ROUNDS, graphs / ROUNDS,
           graphs ? (double)(counts[NODES] - before[NODES]) / (double)graphs : 0.0,
           (counts[BUILDS] - before[BUILDS]) / ROUNDS, (counts[RECORDS] - before[RECORDS]) / ROUNDS,
           (counts[QUERIES] - before[QUERIES]) / ROUNDS, (counts[WRITES] - before[WRITES]) / ROUNDS);
}

static void load(void)
{
    static char text[KERNELS * 120 + 200];
    size_t size = (size_t)sprintf(text, ".version 7.4\n.target sm_75\n.address_size 64\n");
    hdrt_module *module;
    for (unsigned i = 0; i < KERNELS; i++) {
        size += (size_t)sprintf(text + size, ".visible .entry k%u(.param .u64 p, .param .u32 v)\n{\n ret;\n}\n", i);
    }
    OK(hdrt_module_load(device, text, size, NULL, &module));
    for (unsigned i = 0; i < KERNELS; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%u", i);
        OK(hdrt_module_kernel(module, name, &kernels[i]));
    }
}

int main(int argc, char **argv)
{
    hdrt_runtime *runtime;
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: overhead COSTLY-DRIVER [PATTERN]   (make bench-overhead)\n");
        return 2;
    }
    options.driver = HDRT_DRIVER_SOFT;
    options.driver_path = argv[1];
    OK(hdrt_runtime_create(&options, &runtime));
    OK(hdrt_device_open(runtime, 0, NULL, &device));
    void *driver = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
    counts = driver ? dlsym(driver, "costly_counts") : NULL;
    if (!counts) {
        fprintf(stderr, "overhead: '%s' counts nothing: %s\n", argv[1], dlerror());
        return 2;
    }
    load();
    printf("ns a launch, medians of %d rounds of %u; then counts for each round\n", ROUNDS, LAUNCHES_EACH);
    printf("%-22s %6s %7s %6s %8s %8s %8s %7s %7s %7s %7s\n", "pattern", "wall", "driver", "own", "direct", "graphs",
           "nodes in", "builds", "marks", "queries", "writes");
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        if (argc == 2 || strcmp(argv[2], patterns[i].name) == 0) {
            measure(&patterns[i]);
        }
    }
    fflush(stdout);
    _Exit(0); /* nothing of what was launched exists */
}
