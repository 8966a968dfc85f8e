/* SPDX-License-Identifier: MIT */
/* f16 and bf16 in kernels against the CPU. The kernels are in tests/unit/kernels/halves.cu. */
#include "half_formats.h"
#include "kernel_runner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 4096
#define OPERATIONS 11

static struct kernel_runner runner;

static void open_halves(void) { kernel_runner_open(&runner, "tests/unit/kernels/halves.cu"); }
static void close_runner(void) { kernel_runner_close(&runner); }

static hdrt_grid grid_of(int n) { return hdrt_grid_1d((uint64_t)n, 128); }

/* ---- operations -------------------------------------------------------------------------------------------------- */

static const uint16_t awkward[] = {0,      0x8000, 1,      0x8001, 0x3ff,  0x400,  0x8400, 0x3c00, 0xbc00, 0x3c01,
                                   0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x3f80, 0xbf80, 0x3f81, 0x007f, 0x0080,
                                   0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0x6801, 0x1000, 0x4248, 0x3555};
#define AWKWARD ((int)(sizeof awkward / sizeof awkward[0]))

/* Awkward numbers among numbers of all sizes; of bf16 only sizes whose sums a long double holds. */
static void fill(enum format format, uint16_t *values, uint32_t seed)
{
    for (int i = 0; i < COUNT; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint16_t bits = (uint16_t)(seed >> 16);
        if (format == BF16)
            bits = (uint16_t)((bits & 0x87ff) | 0x3800 | (bits >> 3 & 0x400 & bits));
        values[i] = seed >> 8 & 3 ? bits : awkward[(seed >> 10 & 0xff) % AWKWARD];
        if (format == BF16 && (values[i] & 0x7fff) < 0x3000)
            values[i] &= 0x8000;
        if (format == BF16 && (values[i] & 0x7fff) > 0x5000)
            values[i] |= 0x7f80;
    }
}

static uint16_t expected(enum format format, int operation, uint16_t a, uint16_t b, uint16_t c)
{
    long double x = value_of(format, a), y = value_of(format, b), z = value_of(format, c);
    uint16_t fused = rounded(format, x * y + z, 'n');
    long double sum = x + y;
    switch (operation) {
    case 0: return rounded(format, sum, 'n');
    case 1: return rounded(format, x - y, 'n');
    case 2: return rounded(format, x * y, 'n');
    case 3: return rounded(format, x / y, 'n');
    case 4: return fused;
    case 5: return rounded(format, sqrtl(x), 'n');
    case 6: return better(format, a, b, false);
    case 7: return isnan((double)x) || isnan((double)y) ? NOT_A_NUMBER : better(format, a, b, true);
    case 8: return rounded(format, rintl(x), 'n');
    case 9: return rounded(format, sum > 0 ? (sum < 1 ? sum : 1) : 0, 'n');
    default: return fused == NOT_A_NUMBER ? fused : fused & 0x8000 ? 0 : fused;
    }
}

static void check_operations(enum format format, const char *kernel, int width)
{
    static uint16_t a[COUNT], b[COUNT], c[COUNT], out[OPERATIONS * COUNT];
    fill(format, a, 1);
    fill(format, b, 2);
    fill(format, c, 3);
    hdrt_ptr on_device[3] = {kernel_runner_upload(&runner, a, sizeof a), kernel_runner_upload(&runner, b, sizeof b),
                             kernel_runner_upload(&runner, c, sizeof c)};
    hdrt_ptr results = kernel_runner_allocate(&runner, sizeof out);
    int n = COUNT / width;
    kernel_runner_launch(&runner, kernel, grid_of(n), HDRT_ARGS(on_device[0], on_device[1], on_device[2], results, n));
    kernel_runner_take(&runner, out, results, sizeof out);
    for (int i = 0; i < 3; i++)
        kernel_runner_free(&runner, on_device[i]);
    for (int k = 0; k < OPERATIONS; k++) {
        for (int i = 0; i < COUNT; i++) {
            uint16_t wanted = expected(format, k, a[i], b[i], c[i]), is = out[k * COUNT + i];
            EXPECT(same(format, is, wanted), "%s, operation %d of %04x, %04x, %04x is %04x, not %04x", kernel, k, a[i],
                   b[i], c[i], is, wanted);
        }
    }
}

START_TEST(f16_is_rounded_once) { check_operations(F16, "f16_operations", 1); }
END_TEST
START_TEST(f16_pairs_are_two_of_them) { check_operations(F16, "f16_pairs", 2); }
END_TEST
START_TEST(bf16_is_rounded_once) { check_operations(BF16, "bf16_operations", 1); }
END_TEST
START_TEST(bf16_pairs_are_two_of_them) { check_operations(BF16, "bf16_pairs", 2); }
END_TEST

/* ---- comparisons ------------------------------------------------------------------------------------------------- */

static unsigned comparisons(double x, double y)
{
    bool less = x < y, equal = x == y, greater = x > y, none = !less && !equal && !greater;
    bool bits[] = {equal,         less || greater, less,        less || equal, greater,
                   greater || equal, equal || none, !equal,     less || none,  !greater,
                   greater || none,  !less,         isnan(x),   equal,         less};
    unsigned all = 0;
    for (unsigned i = 0; i < sizeof bits; i++)
        all |= (unsigned)bits[i] << i;
    return all;
}

START_TEST(comparisons_know_numbers_from_nans)
{
    static uint16_t a[COUNT], b[COUNT];
    static unsigned f16[COUNT], bf16[COUNT];
    int n = COUNT;
    fill(F16, a, 4);
    fill(F16, b, 5);
    for (int i = 0; i < COUNT; i += 3)
        b[i] = a[i];
    hdrt_ptr x = kernel_runner_upload(&runner, a, sizeof a), y = kernel_runner_upload(&runner, b, sizeof b);
    hdrt_ptr first = kernel_runner_allocate(&runner, sizeof f16), second = kernel_runner_allocate(&runner, sizeof bf16);
    kernel_runner_launch(&runner, "compare", grid_of(n), HDRT_ARGS(x, y, first, x, y, second, n));
    kernel_runner_take(&runner, f16, first, sizeof f16);
    kernel_runner_take(&runner, bf16, second, sizeof bf16);
    kernel_runner_free(&runner, x);
    kernel_runner_free(&runner, y);
    for (int i = 0; i < COUNT; i++) {
        EXPECT(f16[i] == comparisons(value_of(F16, a[i]), value_of(F16, b[i])), "f16 %04x and %04x: %x", a[i], b[i],
               f16[i]);
        EXPECT(bf16[i] == comparisons(value_of(BF16, a[i]), value_of(BF16, b[i])), "bf16 %04x and %04x: %x", a[i],
               b[i], bf16[i]);
    }
}
END_TEST

/* ---- conversions ------------------------------------------------------------------------------------------------- */

static int whole_of(double value, bool nearest)
{
    value = nearest ? rint(value) : trunc(value);
    return isnan(value) ? 0 : value >= 2147483647.0 ? INT32_MAX : value <= -2147483648.0 ? INT32_MIN : (int)value;
}

static void check_conversions(const float *from, const uint16_t *out, const float *back, const int *whole)
{
    static const char modes[] = "nzdu";
    for (int i = 0; i < COUNT; i++) {
        int as_integer;
        memcpy(&as_integer, &from[i], sizeof as_integer);
        for (int k = 0; k < 10; k++) {
            enum format format = (k >= 4 && k < 8) || k == 9 ? BF16 : F16;
            long double exact = k < 8 ? (long double)from[i] : (long double)as_integer;
            uint16_t wanted = rounded(format, exact, k < 8 ? modes[k % 4] : 'n');
            EXPECT(same(format, out[k * COUNT + i], wanted), "conversion %d of %a (%d) is %04x, not %04x", k,
                   (double)from[i], as_integer, out[k * COUNT + i], wanted);
        }
        double f16 = value_of(F16, out[i]), bf16 = value_of(BF16, out[4 * COUNT + i]);
        EXPECT(isnan(f16) ? isnan(back[i]) : back[i] == f16, "%a comes back as %a", f16, (double)back[i]);
        EXPECT(isnan(bf16) ? isnan(back[COUNT + i]) : back[COUNT + i] == bf16, "%a comes back as %a", bf16,
               (double)back[COUNT + i]);
        EXPECT(whole[i] == whole_of(f16, true), "%a becomes %d", f16, whole[i]);
        EXPECT(whole[COUNT + i] == whole_of(bf16, false), "%a becomes %d", bf16, whole[COUNT + i]);
    }
}

START_TEST(conversions_in_every_mode)
{
    static float from[COUNT], back[2 * COUNT];
    static uint16_t out[10 * COUNT];
    static int whole[2 * COUNT];
    uint32_t seed = 6;
    int n = COUNT;
    for (int i = 0; i < COUNT; i++) {
        uint32_t bits = seed = seed * 1664525u + 1013904223u;
        if (i % 4 == 0) /* near the middle between two */
            bits = (bits & 0xffff8000u & 0xc7ffffffu) | 0x38000000u | (uint32_t)(i / 4 % 3 - 1);
        if (i % 4 == 1)
            bits = (bits & 0x87ffe000u) | 0x30001000u;
        memcpy(&from[i], &bits, sizeof bits);
    }
    hdrt_ptr x = kernel_runner_upload(&runner, from, sizeof from), y = kernel_runner_allocate(&runner, sizeof out);
    hdrt_ptr z = kernel_runner_allocate(&runner, sizeof back), w = kernel_runner_allocate(&runner, sizeof whole);
    kernel_runner_launch(&runner, "convert", grid_of(n), HDRT_ARGS(x, y, z, w, n));
    kernel_runner_take(&runner, out, y, sizeof out);
    kernel_runner_take(&runner, back, z, sizeof back);
    kernel_runner_take(&runner, whole, w, sizeof whole);
    kernel_runner_free(&runner, x);
    check_conversions(from, out, back, whole);
}
END_TEST

/* ---- functions and atomics --------------------------------------------------------------------------------------- */

static double function(int k, double x, double positive)
{
    double results[] = {exp(x), exp2(x), log(positive), sin(x), cos(x), tanh(x), 1 / sqrt(positive), 1 / positive};
    return results[k];
}

/* Two units in the last place, or of 2^-10 where the result is small. */
START_TEST(functions_are_close)
{
    enum { FUNCTIONS = 8, N = 2048 };
    static uint16_t a[N], out[FUNCTIONS * N];
    int n = N;
    for (int i = 0; i < N; i++)
        a[i] = rounded(F16, (i - N / 2) / 128.0L, 'n');
    hdrt_ptr x = kernel_runner_upload(&runner, a, sizeof a), y = kernel_runner_allocate(&runner, sizeof out);
    kernel_runner_launch(&runner, "functions", grid_of(n), HDRT_ARGS(x, y, n));
    kernel_runner_take(&runner, out, y, sizeof out);
    kernel_runner_free(&runner, x);
    for (int k = 0; k < FUNCTIONS; k++) {
        for (int i = 0; i < N; i++) {
            double argument = value_of(F16, a[i]);
            double positive = value_of(F16, rounded(F16, fabs(argument) + 0.25L, 'n'));
            double wanted = function(k, argument, positive), is = value_of(F16, out[k * N + i]);
            EXPECT(fabs(is - wanted) <= fmax(fabs(wanted) * 0x1p-10, 0x1p-20), "function %d of %g is %g, not %g", k,
                   argument, is, wanted);
        }
    }
}
END_TEST

START_TEST(atomics_add_in_16_bits)
{
    uint16_t zeros[8] = {0}, sums[4][2];
    hdrt_ptr at = kernel_runner_upload(&runner, zeros, sizeof zeros);
    hdrt_grid grid = {{2, 1, 1}, {64, 1, 1}, 0};
    kernel_runner_launch(&runner, "add_to", grid, HDRT_ARGS(at, at + 4, at + 8, at + 12));
    kernel_runner_take(&runner, sums, at, sizeof sums);
    ck_assert_uint_eq(sums[0][0], rounded(F16, 128, 'n'));
    ck_assert_uint_eq(sums[0][1], 0);
    ck_assert_uint_eq(sums[1][0], rounded(F16, 128 + 2 * 128, 'n'));
    ck_assert_uint_eq(sums[1][1], rounded(F16, 2 * 128 + 128, 'n'));
    ck_assert_uint_eq(sums[2][0], rounded(BF16, 128, 'n'));
    ck_assert_uint_eq(sums[3][0], rounded(BF16, 128, 'n'));
    ck_assert_uint_eq(sums[3][1], rounded(BF16, 256, 'n'));
}
END_TEST

int main(void)
{
    const char *skip = kernel_runner_skip();
    if (skip) {
        fputs(skip, stdout);
        return 0;
    }
    Suite *suite = suite_create("halves");
    TCase *tests = tcase_create("halves");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, open_halves, close_runner);
    tcase_add_test(tests, f16_is_rounded_once);
    tcase_add_test(tests, f16_pairs_are_two_of_them);
    tcase_add_test(tests, bf16_is_rounded_once);
    tcase_add_test(tests, bf16_pairs_are_two_of_them);
    tcase_add_test(tests, comparisons_know_numbers_from_nans);
    tcase_add_test(tests, conversions_in_every_mode);
    tcase_add_test(tests, functions_are_close);
    tcase_add_test(tests, atomics_add_in_16_bits);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_set_tap(suite_runner, "-");
    srunner_run_all(suite_runner, CK_SILENT);
    srunner_free(suite_runner);
    return 0;
}
