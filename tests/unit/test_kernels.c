/* SPDX-License-Identifier: MIT */
/* Each kernel of kernels/ against the CPU, at the sizes where blocks, warps and grids begin and end. */
#include "kernel_runner.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 256u

static struct kernel_runner runner;

static void open_saxpy(void) { kernel_runner_open(&runner, "kernels/saxpy.cu"); }
static void open_upper(void) { kernel_runner_open(&runner, "kernels/upper.cu"); }
static void open_xor(void) { kernel_runner_open(&runner, "kernels/xor.cu"); }
static void open_matmul(void) { kernel_runner_open(&runner, "kernels/matmul.cu"); }
static void open_reduce(void) { kernel_runner_open(&runner, "kernels/reduce.cu"); }
static void open_histogram(void) { kernel_runner_open(&runner, "kernels/histogram.cu"); }
static void close_runner(void) { kernel_runner_close(&runner); }

/* Elements and the grid: 0 blocks means as many as the elements need, else the threads stride or idle. */
static const struct {
    unsigned long long n;
    unsigned int blocks;
} sizes[] = {
    {0, 0},   {0, 1},   {1, 0},      {1, 3},    {31, 0},     {32, 0},        {33, 1},
    {255, 0}, {256, 0}, {257, 0},    {257, 1},  {1000, 5},   {65535, 0},     {65537, 7},
    {1u << 20, 64},     {(1u << 20) + 1, 0},
};
#define SIZE_COUNT ((int)(sizeof sizes / sizeof sizes[0]))

static hdrt_grid grid_of(int index)
{
    hdrt_grid grid = hdrt_grid_1d(sizes[index].n, BLOCK);

    if (sizes[index].blocks > 0)
        grid.grid[0] = sizes[index].blocks;
    return grid;
}

/* The same bytes in each run. */
static void fill_bytes(unsigned char *bytes, size_t count, unsigned int seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)(seed >> 24);
    }
}

/* Small whole numbers, whose sums are exact in any order. */
static void fill_numbers(float *numbers, size_t count, unsigned int seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        numbers[i] = (float)((int)(seed >> 29) - 3);
    }
}

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static void check_saxpy(int index)
{
    unsigned long long n = sizes[index].n;
    size_t bytes = (size_t)n * sizeof(float);
    float *x = allocate(bytes), *y = allocate(bytes), *result = allocate(bytes);

    for (unsigned long long i = 0; i < n; i++) {
        x[i] = (float)i * 0.37f - 100.0f;
        y[i] = 1.0f / (float)(i + 3);
    }
    hdrt_ptr device_x = kernel_runner_upload(&runner, x, bytes), device_y = kernel_runner_upload(&runner, y, bytes);
    kernel_runner_launch(&runner, "saxpy", grid_of(index), HDRT_ARGS(2.7f, device_x, device_y, n));
    kernel_runner_take(&runner, result, device_y, bytes);
    kernel_runner_free(&runner, device_x);
    for (unsigned long long i = 0; i < n; i++)
        EXPECT(result[i] == fmaf(2.7f, x[i], y[i]), "n %llu, element %llu is %a", n, i, (double)result[i]);
    free(x);
    free(y);
    free(result);
}

START_TEST(saxpy_is_exact)
{
    for (int i = 0; i < SIZE_COUNT; i++)
        check_saxpy(i);
}
END_TEST

/* A byte filter's buffers; behind the output lies a guard that must not change. */
#define GUARD 16u

struct filter {
    unsigned char *in, *out;
    size_t n;
    hdrt_ptr device_in, device_out;
};

static struct filter filter_begin(int index)
{
    struct filter filter = {.n = (size_t)sizes[index].n};

    filter.in = allocate(filter.n);
    filter.out = allocate(filter.n + GUARD);
    fill_bytes(filter.in, filter.n, 7u + (unsigned int)index);
    memset(filter.out, 0xee, filter.n + GUARD);
    filter.device_in = kernel_runner_upload(&runner, filter.in, filter.n);
    filter.device_out = kernel_runner_upload(&runner, filter.out, filter.n + GUARD);
    return filter;
}

static void filter_read(struct filter *filter)
{
    kernel_runner_take(&runner, filter->out, filter->device_out, filter->n + GUARD);
    kernel_runner_free(&runner, filter->device_in);
    for (size_t i = 0; i < GUARD; i++)
        ck_assert_msg(filter->out[filter->n + i] == 0xee, "n %zu: byte %zu behind the end changed", filter->n, i);
}

static void filter_end(struct filter *filter)
{
    free(filter->in);
    free(filter->out);
}

static void check_upper(int index)
{
    struct filter filter = filter_begin(index);
    const unsigned char *in = filter.in, *out = filter.out;

    kernel_runner_launch(&runner, "upper", grid_of(index),
                         HDRT_ARGS(filter.device_in, filter.device_out, sizes[index].n));
    filter_read(&filter);
    for (size_t i = 0; i < filter.n; i++)
        EXPECT(out[i] == (in[i] >= 'a' && in[i] <= 'z' ? in[i] - 32 : in[i]), "n %zu, byte %zu: %02x gives %02x",
               filter.n, i, in[i], out[i]);
    filter_end(&filter);
}

START_TEST(upper_is_tr)
{
    for (int i = 0; i < SIZE_COUNT; i++)
        check_upper(i);
}
END_TEST

START_TEST(upper_knows_every_byte)
{
    unsigned char in[256], out[256];

    for (int i = 0; i < 256; i++)
        in[i] = (unsigned char)i;
    hdrt_ptr device_in = kernel_runner_upload(&runner, in, 256), device_out = kernel_runner_allocate(&runner, 256);
    kernel_runner_launch(&runner, "upper", hdrt_grid_1d(256, 64), HDRT_ARGS(device_in, device_out, 256ull));
    kernel_runner_take(&runner, out, device_out, 256);
    kernel_runner_free(&runner, device_in);
    for (int i = 0; i < 256; i++)
        ck_assert_int_eq(out[i], i >= 'a' && i <= 'z' ? i - 32 : i);
}
END_TEST

static void check_xor(int index)
{
    struct filter filter = filter_begin(index);

    kernel_runner_launch(&runner, "xor_bytes", grid_of(index),
                         HDRT_ARGS(filter.device_in, filter.device_out, sizes[index].n, 0x123456a7u));
    filter_read(&filter);
    for (size_t i = 0; i < filter.n; i++)
        EXPECT(filter.out[i] == (filter.in[i] ^ 0xa7), "n %zu, byte %zu: %02x gives %02x", filter.n, i,
               filter.in[i], filter.out[i]);
    filter_end(&filter);
}

START_TEST(xor_takes_the_lowest_byte)
{
    for (int i = 0; i < SIZE_COUNT; i++)
        check_xor(i);
}
END_TEST

/* Rows and columns of the result, and the length of the sums. */
static const unsigned int shapes[][3] = {
    {1, 1, 1}, {1, 1, 40}, {16, 16, 16}, {15, 16, 17}, {17, 15, 16}, {16, 17, 15}, {33, 1, 5}, {1, 33, 5}, {64, 48, 80},
    {0, 5, 3}, {5, 4, 0},
};

static void check_matmul(int index)
{
    unsigned int m = shapes[index][0], n = shapes[index][1], k = shapes[index][2];
    size_t a_count = (size_t)m * k, b_count = (size_t)k * n, c_count = (size_t)m * n;
    float *a = allocate(a_count * sizeof *a), *b = allocate(b_count * sizeof *b), *c = allocate(c_count * sizeof *c);

    for (size_t i = 0; i < a_count; i++)
        a[i] = (float)(i % 17) * 0.3f - 2.0f;
    for (size_t i = 0; i < b_count; i++)
        b[i] = (float)(i % 23) * 0.7f - 7.0f;
    memset(c, 0xff, c_count * sizeof *c);
    hdrt_ptr device_a = kernel_runner_upload(&runner, a, a_count * sizeof *a);
    hdrt_ptr device_b = kernel_runner_upload(&runner, b, b_count * sizeof *b);
    hdrt_ptr device_c = kernel_runner_upload(&runner, c, c_count * sizeof *c);
    kernel_runner_launch(&runner, "matmul", hdrt_grid_2d(n, m, 16, 16),
                         HDRT_ARGS(device_a, device_b, device_c, m, n, k));
    kernel_runner_take(&runner, c, device_c, c_count * sizeof *c);
    kernel_runner_free(&runner, device_a);
    kernel_runner_free(&runner, device_b);
    for (unsigned int row = 0; row < m; row++) {
        for (unsigned int column = 0; column < n; column++) {
            float sum = 0.0f;
            for (unsigned int i = 0; i < k; i++)
                sum = fmaf(a[(size_t)row * k + i], b[(size_t)i * n + column], sum);
            EXPECT(c[(size_t)row * n + column] == sum, "%u x %u x %u: row %u, column %u is %a and not %a", m, n,
                   k, row, column, (double)c[(size_t)row * n + column], (double)sum);
        }
    }
    free(a);
    free(b);
    free(c);
}

START_TEST(matmul_is_exact)
{
    for (int i = 0; i < (int)(sizeof shapes / sizeof shapes[0]); i++)
        check_matmul(i);
}
END_TEST

static void check_reduce(int index)
{
    unsigned long long n = sizes[index].n;
    size_t bytes = (size_t)n * sizeof(float);
    float *x = allocate(bytes), sum = 10.0f, expected = 10.0f;

    fill_numbers(x, (size_t)n, 3u);
    for (unsigned long long i = 0; i < n; i++)
        expected += x[i];
    hdrt_ptr device_x = kernel_runner_upload(&runner, x, bytes);
    hdrt_ptr device_sum = kernel_runner_upload(&runner, &sum, sizeof sum);
    kernel_runner_launch(&runner, "reduce", grid_of(index), HDRT_ARGS(device_x, device_sum, n));
    kernel_runner_take(&runner, &sum, device_sum, sizeof sum);
    kernel_runner_free(&runner, device_x);
    ck_assert_msg(sum == expected, "n %llu: %g and not %g", n, (double)sum, (double)expected);
    free(x);
}

START_TEST(reduce_adds_all)
{
    for (int i = 0; i < SIZE_COUNT; i++)
        check_reduce(i);
}
END_TEST

/* Every block that the kernel admits: from one warp to thirty-two. */
static void check_reduce_of_warps(int warps)
{
    float x[3000], sum = 0.0f, expected = 0.0f;

    fill_numbers(x, 3000, 5u);
    for (int i = 0; i < 3000; i++)
        expected += x[i];
    hdrt_ptr device_x = kernel_runner_upload(&runner, x, sizeof x);
    hdrt_ptr device_sum = kernel_runner_upload(&runner, &sum, sizeof sum);
    kernel_runner_launch(&runner, "reduce", hdrt_grid_1d(3000, 32u * (unsigned int)warps),
                         HDRT_ARGS(device_x, device_sum, 3000ull));
    kernel_runner_take(&runner, &sum, device_sum, sizeof sum);
    kernel_runner_free(&runner, device_x);
    ck_assert_msg(sum == expected, "%d warps: %g and not %g", warps, (double)sum, (double)expected);
}

START_TEST(reduce_takes_any_number_of_warps)
{
    for (int i = 1; i < 33; i++)
        check_reduce_of_warps(i);
}
END_TEST

static void check_histogram(int index)
{
    unsigned long long n = sizes[index].n;
    unsigned char *in = allocate((size_t)n);
    unsigned int bins[256], expected[256];

    fill_bytes(in, (size_t)n, 11u);
    for (unsigned long long i = 0; i < n; i += 3) /* one value far more often than the rest */
        in[i] = 200;
    for (unsigned int i = 0; i < 256; i++)
        bins[i] = expected[i] = i;
    for (unsigned long long i = 0; i < n; i++)
        expected[in[i]]++;
    hdrt_ptr device_in = kernel_runner_upload(&runner, in, (size_t)n);
    hdrt_ptr device_bins = kernel_runner_upload(&runner, bins, sizeof bins);
    kernel_runner_launch(&runner, "histogram", grid_of(index), HDRT_ARGS(device_in, device_bins, n));
    kernel_runner_take(&runner, bins, device_bins, sizeof bins);
    kernel_runner_free(&runner, device_in);
    for (int i = 0; i < 256; i++)
        ck_assert_msg(bins[i] == expected[i], "n %llu: value %d occurs %u times and not %u", n, i, bins[i],
                      expected[i]);
    free(in);
}

START_TEST(histogram_counts_all)
{
    for (int i = 0; i < SIZE_COUNT; i++)
        check_histogram(i);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name, void (*open)(void))
{
    TCase *tests = tcase_create(name);

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, open, close_runner);
    suite_add_tcase(suite, tests);
    return tests;
}

int main(void)
{
    const char *skip = kernel_runner_skip();
    if (skip) {
        fputs(skip, stdout);
        return 0;
    }
    Suite *suite = suite_create("kernels");
    tcase_add_test(add_case(suite, "saxpy", open_saxpy), saxpy_is_exact);
    TCase *upper = add_case(suite, "upper", open_upper);
    tcase_add_test(upper, upper_is_tr);
    tcase_add_test(upper, upper_knows_every_byte);
    tcase_add_test(add_case(suite, "xor", open_xor), xor_takes_the_lowest_byte);
    tcase_add_test(add_case(suite, "matmul", open_matmul), matmul_is_exact);
    TCase *reduce = add_case(suite, "reduce", open_reduce);
    tcase_add_test(reduce, reduce_adds_all);
    tcase_add_test(reduce, reduce_takes_any_number_of_warps);
    tcase_add_test(add_case(suite, "histogram", open_histogram), histogram_counts_all);
    SRunner *suite_runner = srunner_create(suite);
    srunner_set_tap(suite_runner, "-");
    srunner_run_all(suite_runner, CK_SILENT);
    srunner_free(suite_runner);
    return 0;
}
