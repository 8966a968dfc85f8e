/* SPDX-License-Identifier: MIT */
/* What programs for GPUs consist of, against the CPU: vectors, tiles in shared memory, reductions, every atomic, locks
 * and matrix products. The kernels are in tests/unit/kernels/. */
#include "kernel_runner.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct kernel_runner runner;

static void open_vectors(void) { kernel_runner_open(&runner, "tests/unit/kernels/vectors.cu"); }
static void open_transpose(void) { kernel_runner_open(&runner, "tests/unit/kernels/transpose.cu"); }
static void open_reductions(void) { kernel_runner_open(&runner, "tests/unit/kernels/reductions.cu"); }
static void open_atomics(void) { kernel_runner_open(&runner, "tests/unit/kernels/atomics.cu"); }
static void open_products(void) { kernel_runner_open(&runner, "tests/unit/kernels/products.cu"); }
static void close_runner(void) { kernel_runner_close(&runner); }

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

/* Small whole numbers, whose sums and products are exact in any order. */
static float *small_numbers(size_t count, unsigned int seed)
{
    float *numbers = allocate(count * sizeof *numbers);

    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        numbers[i] = (float)((int)(seed >> 29) - 3);
    }
    return numbers;
}

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

static const int lengths[] = {1, 31, 32, 33, 127, 128, 129, 1000, 100000};
#define LENGTH_COUNT ((int)(sizeof lengths / sizeof lengths[0]))

static void check_stride(int n)
{
    size_t bytes = (size_t)n * sizeof(float);
    float *x = small_numbers((size_t)n, 1), *y = small_numbers((size_t)n, 2), *result = allocate(bytes);
    hdrt_ptr device_x = kernel_runner_upload(&runner, x, bytes), device_y = kernel_runner_upload(&runner, y, bytes);
    hdrt_grid grid = {{3, 1, 1}, {96, 1, 1}, 0};

    kernel_runner_launch(&runner, "scale_and_add", grid, HDRT_ARGS(n, 5.0f, device_x, device_y));
    kernel_runner_take(&runner, result, device_y, bytes);
    kernel_runner_free(&runner, device_x);
    for (int i = 0; i < n; i++)
        EXPECT(result[i] == 5.0f * x[i] + y[i], "n %d, element %d is %g", n, i, (double)result[i]);
    free(x);
    free(y);
    free(result);
}

START_TEST(a_stride_covers_all)
{
    for (int i = 0; i < LENGTH_COUNT; i++)
        check_stride(lengths[i]);
}
END_TEST

static void check_sums(int n)
{
    size_t bytes = (size_t)n * sizeof(float);
    float *a = allocate(bytes), *b = allocate(bytes), *c = allocate(bytes);

    for (int i = 0; i < n; i++) {
        a[i] = 1.0f / (float)(i + 1);
        b[i] = (float)i * 1e-7f;
    }
    hdrt_ptr device_a = kernel_runner_upload(&runner, a, bytes), device_b = kernel_runner_upload(&runner, b, bytes);
    hdrt_ptr device_c = kernel_runner_allocate(&runner, bytes);
    kernel_runner_launch(&runner, "add", hdrt_grid_1d((uint64_t)n, 128), HDRT_ARGS(device_a, device_b, device_c, n));
    kernel_runner_take(&runner, c, device_c, bytes);
    kernel_runner_free(&runner, device_a);
    kernel_runner_free(&runner, device_b);
    for (int i = 0; i < n; i++)
        EXPECT(c[i] == a[i] + b[i], "n %d, element %d is %a", n, i, (double)c[i]);
    free(a);
    free(b);
    free(c);
}

START_TEST(sums_are_rounded_to_nearest)
{
    for (int i = 0; i < LENGTH_COUNT; i++)
        check_sums(lengths[i]);
}
END_TEST

static void check_four_floats(int n)
{
    size_t count = 4 * (size_t)n, bytes = count * sizeof(float);
    float *a = small_numbers(count, 3), *b = small_numbers(count, 4), *c = allocate(bytes);
    hdrt_ptr device_a = kernel_runner_upload(&runner, a, bytes), device_b = kernel_runner_upload(&runner, b, bytes);
    hdrt_ptr device_c = kernel_runner_allocate(&runner, bytes);

    kernel_runner_launch(&runner, "add_by_four", hdrt_grid_1d((uint64_t)n, 64),
                         HDRT_ARGS(device_a, device_b, device_c, n));
    kernel_runner_take(&runner, c, device_c, bytes);
    kernel_runner_free(&runner, device_a);
    kernel_runner_free(&runner, device_b);
    for (size_t i = 0; i < count; i++)
        EXPECT(c[i] == a[i] + b[i], "n %d, element %zu is %g", n, i, (double)c[i]);
    free(a);
    free(b);
    free(c);
}

START_TEST(four_floats_go_at_once)
{
    for (int i = 0; i < LENGTH_COUNT; i++)
        check_four_floats(lengths[i]);
}
END_TEST

/* Every pair of a byte with one of five others. */
START_TEST(narrow_elements_extend_and_wrap)
{
    static const unsigned char others[] = {0, 1, 127, 128, 255};
    unsigned char in[256 * 5 * 2];
    short out[256 * 5 * 4];
    int n = 256 * 5;

    for (int i = 0; i < n; i++) {
        in[2 * i] = (unsigned char)(i / 5);
        in[2 * i + 1] = others[i % 5];
    }
    hdrt_ptr device_in = kernel_runner_upload(&runner, in, sizeof in);
    hdrt_ptr device_out = kernel_runner_allocate(&runner, sizeof out);
    kernel_runner_launch(&runner, "widen", hdrt_grid_1d((uint64_t)n, 128), HDRT_ARGS(device_in, device_out, n));
    kernel_runner_take(&runner, out, device_out, sizeof out);
    kernel_runner_free(&runner, device_in);
    for (int i = 0; i < n; i++) {
        int x = in[2 * i], y = in[2 * i + 1];
        ck_assert_int_eq(out[4 * i], x);
        ck_assert_int_eq(out[4 * i + 1], y);
        ck_assert_int_eq(out[4 * i + 2], x - y);
        ck_assert_int_eq(out[4 * i + 3], x < 128 ? x : x - 256);
    }
}
END_TEST

/* ---- transposition ----------------------------------------------------------------------------------------------- */

static const int rectangles[][2] = {{1, 1}, {32, 32}, {33, 31}, {31, 33}, {64, 96}, {100, 7}, {7, 100}, {257, 129}};

static void check_transpose(int width, int height)
{
    size_t count = (size_t)width * (size_t)height, bytes = count * sizeof(float);
    float *in = allocate(bytes), *out = allocate(bytes);

    for (size_t i = 0; i < count; i++)
        in[i] = (float)i;
    memset(out, 0xff, bytes);
    hdrt_ptr device_in = kernel_runner_upload(&runner, in, bytes);
    hdrt_ptr device_out = kernel_runner_upload(&runner, out, bytes);
    hdrt_grid grid = {{(uint32_t)(width + 31) / 32, (uint32_t)(height + 31) / 32, 1}, {32, 8, 1}, 0};
    kernel_runner_launch(&runner, "transpose", grid, HDRT_ARGS(device_in, device_out, width, height));
    kernel_runner_take(&runner, out, device_out, bytes);
    kernel_runner_free(&runner, device_in);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            EXPECT(out[x * height + y] == in[y * width + x], "%d x %d: column %d, row %d is %g", width, height, x, y,
                   (double)out[x * height + y]);
    free(in);
    free(out);
}

START_TEST(transpose_is_exact)
{
    for (int i = 0; i < (int)(sizeof rectangles / sizeof rectangles[0]); i++)
        check_transpose(rectangles[i][0], rectangles[i][1]);
}
END_TEST

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static void check_shuffles(int n)
{
    float *x = small_numbers((size_t)n, 9), sum = 0.5f, expected = 0.5f;

    for (int i = 0; i < n; i++)
        expected += x[i];
    hdrt_ptr device_x = kernel_runner_upload(&runner, x, (size_t)n * sizeof *x);
    hdrt_ptr device_sum = kernel_runner_upload(&runner, &sum, sizeof sum);
    hdrt_grid grid = {{4, 1, 1}, {160, 1, 1}, 0};
    kernel_runner_launch(&runner, "sum_by_shuffles", grid, HDRT_ARGS(device_x, device_sum, n));
    kernel_runner_take(&runner, &sum, device_sum, sizeof sum);
    kernel_runner_free(&runner, device_x);
    ck_assert_float_eq(sum, expected);
    free(x);
}

START_TEST(shuffles_add_all)
{
    for (int i = 0; i < LENGTH_COUNT; i++)
        check_shuffles(lengths[i]);
}
END_TEST

static void check_tree(unsigned int block)
{
    enum { N = 10000, MOST = (N + 31) / 32 };
    unsigned int blocks = (N + block - 1) / block;
    int x[N], out[MOST], n = N;

    for (int i = 0; i < N; i++)
        x[i] = i * 7919 - 1000000;
    hdrt_ptr device_x = kernel_runner_upload(&runner, x, sizeof x);
    hdrt_ptr device_out = kernel_runner_allocate(&runner, sizeof out);
    hdrt_grid grid = hdrt_grid_shared(hdrt_grid_1d(N, block), block * (uint32_t)sizeof(int));
    kernel_runner_launch(&runner, "sum_in_shared", grid, HDRT_ARGS(device_x, device_out, n));
    kernel_runner_take(&runner, out, device_out, blocks * sizeof(int));
    kernel_runner_free(&runner, device_x);
    for (unsigned int b = 0; b < blocks; b++) {
        unsigned int expected = 0; /* wraps as the device's does */
        for (unsigned int i = b * block; i < (b + 1) * block && i < N; i++)
            expected += (unsigned int)x[i];
        ck_assert_int_eq(out[b], (int)expected);
    }
}

START_TEST(a_tree_in_dynamic_shared_memory_adds_all)
{
    for (int i = 0; i < 6; i++)
        check_tree(32u << i);
}
END_TEST

static void check_last_block(unsigned int blocks)
{
    enum { N = 20000 };
    unsigned int count = 0;
    double *x = allocate(N * sizeof *x), sum = -1.0, expected = 0.0;
    int n = N;

    for (int i = 0; i < N; i++) {
        x[i] = (double)((i * 37) % 1001) * 0.25;
        expected += x[i];
    }
    hdrt_ptr device_x = kernel_runner_upload(&runner, x, N * sizeof *x);
    hdrt_ptr of_block = kernel_runner_allocate(&runner, blocks * sizeof(double));
    hdrt_ptr device_sum = kernel_runner_upload(&runner, &sum, sizeof sum);
    hdrt_ptr device_count = kernel_runner_upload(&runner, &count, sizeof count);
    for (int round = 0; round < 3; round++) /* the counter must have come back to zero */
        kernel_runner_launch(&runner, "sum_by_last_block", (hdrt_grid){{blocks, 1, 1}, {128, 1, 1}, 0},
                             HDRT_ARGS(device_x, of_block, device_sum, device_count, n));
    kernel_runner_take(&runner, &sum, device_sum, sizeof sum);
    kernel_runner_take(&runner, &count, device_count, sizeof count);
    kernel_runner_free(&runner, of_block);
    kernel_runner_free(&runner, device_x);
    ck_assert_double_eq(sum, expected);
    ck_assert_uint_eq(count, 0);
    free(x);
}

START_TEST(the_last_block_sees_all_sums)
{
    for (int i = 1; i < 9; i++)
        check_last_block((unsigned int)i);
}
END_TEST

START_TEST(a_warp_reduces_at_once)
{
    enum { WARPS = 12 };
    unsigned int x[WARPS * 32], out[WARPS * 5], seed = 17;

    for (int i = 0; i < WARPS * 32; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = seed >> (i / 32); /* of some warps all are odd, of most not */
        if (i / 32 % 3 == 0)
            x[i] |= 1;
    }
    hdrt_ptr device_x = kernel_runner_upload(&runner, x, sizeof x);
    hdrt_ptr device_out = kernel_runner_allocate(&runner, sizeof out);
    kernel_runner_launch(&runner, "reduce_warp", hdrt_grid_1d(WARPS * 32, 96), HDRT_ARGS(device_x, device_out));
    kernel_runner_take(&runner, out, device_out, sizeof out);
    kernel_runner_free(&runner, device_x);
    for (int w = 0; w < WARPS; w++) {
        unsigned int sum = 0, least = ~0u, greatest = 0, parity = 0, odd = 1;
        for (int i = 32 * w; i < 32 * (w + 1); i++) {
            sum += x[i];
            least = x[i] < least ? x[i] : least;
            greatest = x[i] > greatest ? x[i] : greatest;
            parity ^= x[i];
            odd &= x[i];
        }
        ck_assert_uint_eq(out[5 * w], sum);
        ck_assert_uint_eq(out[5 * w + 1], least);
        ck_assert_uint_eq(out[5 * w + 2], greatest);
        ck_assert_uint_eq(out[5 * w + 3], parity);
        ck_assert_uint_eq(out[5 * w + 4], odd & 1);
    }
}
END_TEST

/* ---- atomics ----------------------------------------------------------------------------------------------------- */

enum { BLOCKS = 5, THREADS = 96, ALL = BLOCKS * THREADS };
static const hdrt_grid atomics_grid = {{BLOCKS, 1, 1}, {THREADS, 1, 1}, 0};

static void check_count(int n)
{
    unsigned char *in = allocate((size_t)n);
    unsigned int bins[256] = {0}, expected[256] = {0};

    for (int i = 0; i < n; i++) {
        in[i] = (unsigned char)((unsigned int)i * (unsigned int)i >> 3);
        expected[in[i]]++;
    }
    hdrt_ptr device_in = kernel_runner_upload(&runner, in, (size_t)n);
    hdrt_ptr device_bins = kernel_runner_upload(&runner, bins, sizeof bins);
    kernel_runner_launch(&runner, "count_bytes", (hdrt_grid){{3, 1, 1}, {128, 1, 1}, 0},
                         HDRT_ARGS(device_in, device_bins, n));
    kernel_runner_take(&runner, bins, device_bins, sizeof bins);
    kernel_runner_free(&runner, device_in);
    ck_assert_mem_eq(bins, expected, sizeof bins);
    free(in);
}

START_TEST(bytes_are_counted)
{
    for (int i = 0; i < LENGTH_COUNT; i++)
        check_count(lengths[i]);
}
END_TEST

static unsigned int xor_of_threads(void)
{
    unsigned int all = 0;

    for (unsigned int t = 0; t < ALL; t++)
        all ^= t;
    return all;
}

START_TEST(int_atomics)
{
    int p[11] = {5, 5, 5, 5, -1, 0, 0, 0, 0, 0, 0};
    const int expected[11] = {5 + 3 * ALL, 5 - 2 * ALL, -(ALL - 1), ALL - 1, 0, -1, (int)xor_of_threads(), 77, 5, ALL,
                              ALL};
    hdrt_ptr device = kernel_runner_upload(&runner, p, sizeof p);

    kernel_runner_launch(&runner, "every_int", atomics_grid, HDRT_ARGS(device));
    kernel_runner_take(&runner, p, device, sizeof p);
    for (int i = 0; i < 11; i++)
        if (i != 9)
            ck_assert_msg(p[i] == expected[i], "value %d is %d and not %d", i, p[i], expected[i]);
    ck_assert_int_ge(p[9], THREADS); /* block scope promises nothing between blocks */
}
END_TEST

START_TEST(unsigned_atomics)
{
    unsigned int p[12] = {7, 7, ~0u, 7, ~0u, 0, 0, 0, 0, 0, 0, 0};
    const unsigned int expected[12] = {7 + ALL * 0x80000001u, 7u - ALL, ~0u - (ALL - 1), 0x80000000u + ALL - 1,
                                       0, ~0u, xor_of_threads(), ALL % 100, (100 - ALL % 100) % 100, 77, ALL - 1,
                                       ALL % 5};
    hdrt_ptr device = kernel_runner_upload(&runner, p, sizeof p);

    kernel_runner_launch(&runner, "every_unsigned", atomics_grid, HDRT_ARGS(device));
    kernel_runner_take(&runner, p, device, sizeof p);
    for (int i = 0; i < 12; i++)
        if (i != 10)
            ck_assert_msg(p[i] == expected[i], "value %d is %u and not %u", i, p[i], expected[i]);
    ck_assert_uint_ge(p[10], THREADS - 1); /* block scope promises nothing between blocks */
}
END_TEST

START_TEST(wide_atomics)
{
    unsigned long long p[9] = {1, ~0ull, 0, ~0ull, 0, 0, 0, 5, 1};
    long long q[2] = {5, -5};
    const unsigned long long expected[9] = {
        1 + ((unsigned long long)ALL << 32), ~0ull - (ALL - 1), (1ull << 63) + ALL - 1, 0, ~0ull,
        (unsigned long long)xor_of_threads() << 32, 1ull << 40, 1ull << 50, 1 + 3 * ALL};
    hdrt_ptr device_p = kernel_runner_upload(&runner, p, sizeof p);
    hdrt_ptr device_q = kernel_runner_upload(&runner, q, sizeof q);

    kernel_runner_launch(&runner, "every_wide", atomics_grid, HDRT_ARGS(device_p, device_q));
    kernel_runner_take(&runner, p, device_p, sizeof p);
    kernel_runner_take(&runner, q, device_q, sizeof q);
    for (int i = 0; i < 9; i++)
        ck_assert_msg(p[i] == expected[i], "value %d is %llx and not %llx", i, p[i], expected[i]);
    ck_assert_int_eq(q[0], -(ALL - 1));
    ck_assert_int_eq(q[1], ALL - 1);
}
END_TEST

START_TEST(floating_atomics)
{
    float f[3] = {0.5f, 0.0f, 0.0f};
    double d[2] = {0.5, 0.0};
    hdrt_ptr device_f = kernel_runner_upload(&runner, f, sizeof f);
    hdrt_ptr device_d = kernel_runner_upload(&runner, d, sizeof d);

    kernel_runner_launch(&runner, "every_floating", (hdrt_grid){{1, 1, 1}, {THREADS, 1, 1}, 0},
                         HDRT_ARGS(device_f, device_d));
    kernel_runner_take(&runner, f, device_f, sizeof f);
    kernel_runner_take(&runner, d, device_d, sizeof d);
    ck_assert_float_eq(f[0], 0.5f + 1.5f * THREADS);
    ck_assert_float_eq(f[1], 2.5f);
    ck_assert_float_eq(f[2], 1.0f * THREADS);
    ck_assert_double_eq(d[0], 0.5 + 2.5 * THREADS);
    ck_assert_double_eq(d[1], -1.0 * THREADS);
}
END_TEST

/* Each number 0..ALL-1 once, and each value that passed through the chain once. */
START_TEST(atomics_return_what_was_there)
{
    unsigned int counter = 0, chain = ALL, of_thread[ALL], left[ALL];
    bool drawn[ALL] = {false}, passed[ALL + 1] = {false};
    hdrt_ptr device_counter = kernel_runner_upload(&runner, &counter, sizeof counter);
    hdrt_ptr device_chain = kernel_runner_upload(&runner, &chain, sizeof chain);
    hdrt_ptr device_of_thread = kernel_runner_allocate(&runner, sizeof of_thread);
    hdrt_ptr device_left = kernel_runner_allocate(&runner, sizeof left);

    kernel_runner_launch(&runner, "draw_numbers", atomics_grid,
                         HDRT_ARGS(device_counter, device_of_thread, device_chain, device_left));
    kernel_runner_take(&runner, &counter, device_counter, sizeof counter);
    kernel_runner_take(&runner, &chain, device_chain, sizeof chain);
    kernel_runner_take(&runner, of_thread, device_of_thread, sizeof of_thread);
    kernel_runner_take(&runner, left, device_left, sizeof left);
    ck_assert_uint_eq(counter, ALL);
    ck_assert_uint_lt(chain, ALL);
    passed[chain] = true;
    for (int t = 0; t < ALL; t++) {
        ck_assert_uint_lt(of_thread[t], ALL);
        ck_assert_msg(!drawn[of_thread[t]], "%u was drawn twice", of_thread[t]);
        drawn[of_thread[t]] = true;
        ck_assert_uint_le(left[t], ALL);
        ck_assert_msg(!passed[left[t]], "%u passed twice", left[t]);
        passed[left[t]] = true;
    }
}
END_TEST

START_TEST(compare_and_swap_makes_any_atomic)
{
    enum { N = 200 };
    double x[N], product = 3.0, expected = 3.0;
    int n = N;

    for (int i = 0; i < N; i++) {
        x[i] = i % 3 == 0 ? 2.0 : i % 3 == 1 ? 0.5 : -1.0; /* powers of two: exact in any order */
        expected *= x[i];
    }
    hdrt_ptr device_x = kernel_runner_upload(&runner, x, sizeof x);
    hdrt_ptr device_product = kernel_runner_upload(&runner, &product, sizeof product);
    kernel_runner_launch(&runner, "multiply_all", hdrt_grid_1d(N, 64), HDRT_ARGS(device_x, device_product, n));
    kernel_runner_take(&runner, &product, device_product, sizeof product);
    kernel_runner_free(&runner, device_x);
    ck_assert_double_eq(product, expected);
}
END_TEST

START_TEST(compare_and_swap_of_16_bits)
{
    unsigned short p[64], seen[64];

    for (int t = 0; t < 64; t++)
        p[t] = t % 2 == 0 ? (unsigned short)(t / 2) : 0xffff;
    hdrt_ptr device_p = kernel_runner_upload(&runner, p, sizeof p);
    hdrt_ptr device_seen = kernel_runner_allocate(&runner, sizeof seen);
    kernel_runner_launch(&runner, "compare_and_swap_16", (hdrt_grid){{1, 1, 1}, {64, 1, 1}, 0},
                         HDRT_ARGS(device_p, device_seen));
    kernel_runner_take(&runner, p, device_p, sizeof p);
    kernel_runner_take(&runner, seen, device_seen, sizeof seen);
    for (int t = 0; t < 64; t++) {
        ck_assert_uint_eq(seen[t], t % 2 == 0 ? (unsigned int)t / 2 : 0xffffu);
        ck_assert_uint_eq(p[t], t % 2 == 0 ? (unsigned int)t + 1000 : 0xffffu);
    }
}
END_TEST

START_TEST(a_lock_excludes)
{
    int lock = 0, sum = 0;
    hdrt_ptr device_lock = kernel_runner_upload(&runner, &lock, sizeof lock);
    hdrt_ptr device_sum = kernel_runner_upload(&runner, &sum, sizeof sum);

    kernel_runner_launch(&runner, "add_under_lock", (hdrt_grid){{16, 1, 1}, {128, 1, 1}, 0},
                         HDRT_ARGS(device_lock, device_sum));
    kernel_runner_take(&runner, &lock, device_lock, sizeof lock);
    kernel_runner_take(&runner, &sum, device_sum, sizeof sum);
    ck_assert_int_eq(sum, 16 * 128 / 32);
    ck_assert_int_eq(lock, 0);
}
END_TEST

/* ---- matrix products --------------------------------------------------------------------------------------------- */

static void check_product(const char *kernel, int n, hdrt_grid grid, bool rectangular)
{
    int m = rectangular ? n - 1 : n, k = rectangular ? n + 3 : n;
    size_t a_count = (size_t)(m * k), b_count = (size_t)(k * n), c_count = (size_t)(m * n);
    float *a = small_numbers(a_count, 21), *b = small_numbers(b_count, 22), *c = allocate(c_count * sizeof *c);
    hdrt_ptr device_a = kernel_runner_upload(&runner, a, a_count * sizeof *a);
    hdrt_ptr device_b = kernel_runner_upload(&runner, b, b_count * sizeof *b);
    hdrt_ptr device_c = kernel_runner_allocate(&runner, c_count * sizeof *c);

    if (rectangular)
        kernel_runner_launch(&runner, kernel, grid, HDRT_ARGS(device_a, device_b, device_c, m, n, k));
    else
        kernel_runner_launch(&runner, kernel, grid, HDRT_ARGS(device_a, device_b, device_c, n));
    kernel_runner_take(&runner, c, device_c, c_count * sizeof *c);
    kernel_runner_free(&runner, device_a);
    kernel_runner_free(&runner, device_b);
    for (int row = 0; row < m; row++) {
        for (int column = 0; column < n; column++) {
            float sum = 0.0f;
            for (int i = 0; i < k; i++)
                sum += a[row * k + i] * b[i * n + column];
            EXPECT(c[row * n + column] == sum, "%s, n %d, row %d, column %d: %g and not %g", kernel, n, row,
                   column, (double)c[row * n + column], (double)sum);
        }
    }
    free(a);
    free(b);
    free(c);
}

START_TEST(product_of_any_shape)
{
    static const unsigned int sides[] = {2, 16, 17, 50};

    for (int i = 0; i < 4; i++)
        check_product("product_naive", (int)sides[i], hdrt_grid_2d(sides[i], sides[i], 16, 8), true);
}
END_TEST

START_TEST(product_by_tiles)
{
    for (unsigned int n = 16; n <= 48; n += 16) {
        check_product("product_tiled_8", (int)n, hdrt_grid_2d(n, n, 8, 8), false);
        check_product("product_tiled_16", (int)n, hdrt_grid_2d(n, n, 16, 16), false);
    }
}
END_TEST

START_TEST(product_in_registers)
{
    for (unsigned int n = 64; n <= 128; n += 64)
        check_product("product_in_registers", (int)n, (hdrt_grid){{n / 64, n / 64, 1}, {256, 1, 1}, 0}, false);
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

static Suite *corpus_suite(void)
{
    Suite *suite = suite_create("corpus");
    TCase *vectors = add_case(suite, "vectors", open_vectors);
    tcase_add_test(vectors, a_stride_covers_all);
    tcase_add_test(vectors, sums_are_rounded_to_nearest);
    tcase_add_test(vectors, four_floats_go_at_once);
    tcase_add_test(vectors, narrow_elements_extend_and_wrap);
    tcase_add_test(add_case(suite, "transpose", open_transpose), transpose_is_exact);
    TCase *reductions = add_case(suite, "reductions", open_reductions);
    tcase_add_test(reductions, shuffles_add_all);
    tcase_add_test(reductions, a_tree_in_dynamic_shared_memory_adds_all);
    tcase_add_test(reductions, the_last_block_sees_all_sums);
    tcase_add_test(reductions, a_warp_reduces_at_once);
    TCase *atomics = add_case(suite, "atomics", open_atomics);
    tcase_add_test(atomics, bytes_are_counted);
    tcase_add_test(atomics, int_atomics);
    tcase_add_test(atomics, unsigned_atomics);
    tcase_add_test(atomics, wide_atomics);
    tcase_add_test(atomics, floating_atomics);
    tcase_add_test(atomics, atomics_return_what_was_there);
    tcase_add_test(atomics, compare_and_swap_makes_any_atomic);
    tcase_add_test(atomics, compare_and_swap_of_16_bits);
    tcase_add_test(atomics, a_lock_excludes);
    TCase *products = add_case(suite, "products", open_products);
    tcase_add_test(products, product_of_any_shape);
    tcase_add_test(products, product_by_tiles);
    tcase_add_test(products, product_in_registers);
    return suite;
}

int main(void)
{
    const char *skip = kernel_runner_skip();
    if (skip) {
        fputs(skip, stdout);
        return 0;
    }
    SRunner *suite_runner = srunner_create(corpus_suite());
    srunner_set_tap(suite_runner, "-");
    srunner_run_all(suite_runner, CK_SILENT);
    srunner_free(suite_runner);
    return 0;
}
