/* SPDX-License-Identifier: MIT */
/* Cooperative groups and copies beside the thread, against the CPU. The kernels are in tests/unit/kernels/groups.cu. */
#include "kernel_runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 256

static struct kernel_runner runner;

static void open_groups(void) { kernel_runner_open(&runner, "tests/unit/kernels/groups.cu"); }
static void close_runner(void) { kernel_runner_close(&runner); }

/* ---- the grid ---------------------------------------------------------------------------------------------------- */

static void launch_together(const char *name, hdrt_grid grid, hdrt_args args)
{
    hdrt_launch_options options = HDRT_LAUNCH_OPTIONS_INIT;
    hdrt_kernel *kernel;
    options.grid = grid;
    options.cooperative = true;
    ck_assert_int_eq(hdrt_module_kernel(runner.module, name, &kernel), HDRT_OK);
    hdrt_status status = hdrt_launch_with(runner.queue, kernel, &options, args.pointers, args.kinds, args.count);
    ck_assert_msg(status == HDRT_OK, "%s: %s", name, hdrt_last_error());
}

START_TEST(a_grid_meets_again_and_again)
{
    enum { BLOCKS = 4, BLOCK = 64, COUNT = BLOCKS * BLOCK };
    static unsigned now[COUNT], next[COUNT], results[COUNT];
    int rounds = 7;
    hdrt_grid grid = {{2, 2, 1}, {16, 4, 1}, 0};
    for (unsigned i = 0; i < COUNT; i++)
        now[i] = i * i;
    hdrt_ptr even = kernel_runner_upload(&runner, now, sizeof now);
    hdrt_ptr odd = kernel_runner_allocate(&runner, sizeof now);
    for (int launch = 0; launch < 2; launch++) /* the workspace of the first is as good as new for the second */
        launch_together("passed_around", grid, HDRT_ARGS(launch ? odd : even, launch ? even : odd, rounds));
    for (int round = 0; round < 2 * rounds; round++) {
        for (unsigned i = 0; i < COUNT; i++)
            next[i] = now[(i + COUNT - 1) % COUNT] + (unsigned)(round % rounds);
        memcpy(now, next, sizeof now);
    }
    kernel_runner_free(&runner, odd);
    kernel_runner_take(&runner, results, even, sizeof results);
    ck_assert_mem_eq(results, now, sizeof now);
}
END_TEST

/* ---- groups in a warp -------------------------------------------------------------------------------------------- */

static void make_values(int *values)
{
    for (int i = 0; i < THREADS; i++)
        values[i] = i * 37 % 101;
}

static void expect_in_tile(const int *x, int i, int *out)
{
    int first = i & ~7, sum = 0, before = 0, odd = 0, largest = 0;
    bool three = false;
    for (int k = 0; k < 8; k++) {
        sum += x[first + k];
        before += first + k < i ? x[first + k] : 0;
        odd |= (x[first + k] & 1) << k;
        three |= x[first + k] == 3;
    }
    for (int k = i & ~3; k < (i & ~3) + 4; k++)
        largest = x[k] > largest ? x[k] : largest;
    int all[7] = {i % 8 + 100 * (i % 64 / 8), sum, largest, before, x[first + 7 - i % 8], odd,
                  x[i ^ 1] + (three ? 1000 : 0)};
    memcpy(out, all, sizeof all);
}

START_TEST(tiles_are_groups_of_neighbours)
{
    static int x[THREADS], out[THREADS][7];
    hdrt_grid grid = {{THREADS / 64, 1, 1}, {64, 1, 1}, 0};
    make_values(x);
    hdrt_ptr from = kernel_runner_upload(&runner, x, sizeof x), to = kernel_runner_allocate(&runner, sizeof out);
    kernel_runner_launch(&runner, "in_tiles", grid, HDRT_ARGS(from, to));
    kernel_runner_take(&runner, out, to, sizeof out);
    kernel_runner_free(&runner, from);
    for (int i = 0; i < THREADS; i++) {
        int wanted[7];
        expect_in_tile(x, i, wanted);
        for (int k = 0; k < 7; k++)
            EXPECT(out[i][k] == wanted[k], "thread %d, result %d is %d, not %d", i, k, out[i][k], wanted[k]);
    }
}
END_TEST

static void expect_among_odd(const int *x, int i, int *out)
{
    int all[5] = {0};
    for (int k = i & ~31; k < (i & ~31) + 32; k++) {
        if (!(x[k] & 1))
            continue;
        all[0]++;
        all[1] += k < i;
        all[2] += x[k];
        all[3] += x[k] % 3 == x[i] % 3 ? x[k] : 0;
        all[4] += k <= i && (x[k] > 50) == (x[i] > 50);
    }
    if (!(x[i] & 1))
        memset(all, 0xff, sizeof all);
    memcpy(out, all, sizeof all);
}

START_TEST(threads_that_run_together_are_a_group)
{
    static int x[THREADS], out[THREADS][5];
    hdrt_grid grid = {{1, 1, 1}, {THREADS, 1, 1}, 0};
    make_values(x);
    hdrt_ptr from = kernel_runner_upload(&runner, x, sizeof x), to = kernel_runner_allocate(&runner, sizeof out);
    kernel_runner_launch(&runner, "among_the_odd", grid, HDRT_ARGS(from, to));
    kernel_runner_take(&runner, out, to, sizeof out);
    kernel_runner_free(&runner, from);
    for (int i = 0; i < THREADS; i++) {
        int wanted[5];
        expect_among_odd(x, i, wanted);
        for (int k = 0; k < 5; k++)
            EXPECT(out[i][k] == wanted[k], "thread %d, result %d is %d, not %d", i, k, out[i][k], wanted[k]);
    }
}
END_TEST

/* ---- copies ------------------------------------------------------------------------------------------------------ */

START_TEST(rows_are_copied_ahead)
{
    enum { ROWS = 9 };
    static float rows[ROWS][128][4], out[128];
    int n = ROWS;
    hdrt_grid grid = {{1, 1, 1}, {128, 1, 1}, 0};
    for (int i = 0; i < ROWS * 512; i++)
        (&rows[0][0][0])[i] = (float)(i % 61);
    hdrt_ptr from = kernel_runner_upload(&runner, rows, sizeof rows), to = kernel_runner_allocate(&runner, sizeof out);
    kernel_runner_launch(&runner, "ahead", grid, HDRT_ARGS(from, to, n));
    kernel_runner_take(&runner, out, to, sizeof out);
    kernel_runner_free(&runner, from);
    for (int t = 0; t < 128; t++) {
        float sum = 0;
        for (int i = 0; i < ROWS; i++)
            for (int k = 0; k < 4; k++)
                sum += (float)(k + 1) * rows[i][127 - t][k];
        EXPECT(out[t] == sum, "thread %d: %g, not %g", t, (double)out[t], (double)sum);
    }
}
END_TEST

START_TEST(narrow_copies_fill_with_zeros)
{
    unsigned from[128], out[256];
    hdrt_grid grid = {{1, 1, 1}, {64, 1, 1}, 0};
    for (unsigned i = 0; i < 128; i++)
        from[i] = 0x01010101u * (i + 1);
    hdrt_ptr source = kernel_runner_upload(&runner, from, sizeof from);
    hdrt_ptr to = kernel_runner_allocate(&runner, sizeof out);
    kernel_runner_launch(&runner, "narrow_copies", grid, HDRT_ARGS(source, to));
    kernel_runner_take(&runner, out, to, sizeof out);
    kernel_runner_free(&runner, source);
    for (unsigned t = 0; t < 64; t++) {
        EXPECT(out[t] == from[t], "word %u is %x", t, out[t]);
        EXPECT(out[64 + 2 * t] == from[2 * (63 - t)], "pair %u begins with %x", t, out[64 + 2 * t]);
        EXPECT(out[65 + 2 * t] == (t & 1 ? 0 : from[2 * (63 - t) + 1]), "pair %u ends with %x", t, out[65 + 2 * t]);
        EXPECT(out[192 + t] == (t & 4 ? 0 : from[t]), "word %u or nothing is %x", t, out[192 + t]);
    }
}
END_TEST

int main(void)
{
    const char *skip = kernel_runner_skip();
    if (skip) {
        fputs(skip, stdout);
        return 0;
    }
    Suite *suite = suite_create("groups");
    TCase *tests = tcase_create("groups");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, open_groups, close_runner);
    tcase_add_test(tests, a_grid_meets_again_and_again);
    tcase_add_test(tests, tiles_are_groups_of_neighbours);
    tcase_add_test(tests, threads_that_run_together_are_a_group);
    tcase_add_test(tests, rows_are_copied_ahead);
    tcase_add_test(tests, narrow_copies_fill_with_zeros);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_set_tap(suite_runner, "-");
    srunner_run_all(suite_runner, CK_SILENT);
    srunner_free(suite_runner);
    return 0;
}
