/* SPDX-License-Identifier: MIT */
/* Short words for the tests of the corpus (tests/unit/kernels/corpus): a runner, its buffers, launches, comparisons. */
#ifndef CORPUS_H
#define CORPUS_H

#include "kernel_runner.h"

#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct kernel_runner runner;

#define CORPUS(name, file)                                                                                             \
    static void open_##name(void) { kernel_runner_open(&runner, "tests/unit/kernels/corpus/" file); }
static inline void close_runner(void) { kernel_runner_close(&runner); }

/* An array on the device, or room for one; what came back from there; the end of one. */
#define UP(array) kernel_runner_upload(&runner, array, sizeof(array))
#define ROOM(array) kernel_runner_allocate(&runner, sizeof(array))
#define TAKE(array, pointer) kernel_runner_take(&runner, array, pointer, sizeof(array))
#define DROP(pointer) kernel_runner_free(&runner, pointer)
#define RUN(kernel, blocks, threads, ...)                                                                              \
    kernel_runner_launch(&runner, kernel, (hdrt_grid){{(uint32_t)(blocks), 1, 1}, {(uint32_t)(threads), 1, 1}, 0},     \
                         HDRT_ARGS(__VA_ARGS__))

/* The same numbers in every run. */
static inline uint32_t next(void)
{
    static uint32_t seed = 12345;
    seed = seed * 1664525u + 1013904223u;
    return seed ^ seed >> 15;
}

static inline float fraction(void) { return (float)(next() >> 8) * 0x1p-24f; }

/* Within `ulps` units in the last place of a float, or `least` for results near zero. */
static inline void close_to(const char *what, int i, float got, double expected, double ulps, double least)
{
    EXPECT(fabs((double)got - expected) <= fabs(expected) * ulps * 0x1p-23 + least, "%s: element %d is %.9g, not %.9g",
           what, i, (double)got, expected);
}

static inline void add_case(Suite *suite, const char *name, void (*open)(void), const TTest *const *tests)
{
    TCase *tests_of = tcase_create(name);
    tcase_add_checked_fixture(tests_of, open, close_runner);
    tcase_set_timeout(tests_of, 120);
    for (; *tests; tests++)
        tcase_add_test(tests_of, *tests);
    suite_add_tcase(suite, tests_of);
}
#define CASE(name, ...) add_case(suite, #name, open_##name, (const TTest *const[]){__VA_ARGS__, NULL})

static inline int run_corpus(Suite *(*make)(void))
{
    const char *skip = kernel_runner_skip();
    if (skip) {
        fputs(skip, stdout);
        return 0;
    }
    SRunner *suite_runner = srunner_create(make());
    srunner_set_tap(suite_runner, "-");
    srunner_run_all(suite_runner, CK_SILENT);
    srunner_free(suite_runner);
    return 0;
}

#endif
