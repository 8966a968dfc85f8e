/* SPDX-License-Identifier: MIT */
/* What the language has besides arithmetic: groups, votes, divergence, calls, variables, printing, inline PTX and
 * barriers. Against the CPU, bit for bit. */
#include "corpus.h"

#include <unistd.h>

#define FUNCTION static
#include "kernels/recursion_cases.h"

CORPUS(groups, "14_coop.cu")
CORPUS(votes, "15_vote.cu")
CORPUS(control, "16_control.cu")
CORPUS(variables, "17_globals.cu")
#define PRINTING "tests/unit/kernels/corpus/18_printf.cu"
CORPUS(inline_ptx, "19_asm.cu")
CORPUS(copies, "20_cpasync.cu")
CORPUS(barriers, "25_barriers.cu")

/* ---- 14 ---- */

START_TEST(a_grid_meets_again_and_again)
{
    enum { N = 700, ROUNDS = 6 };
    float a[N], b[N], expected[N], next_of[N];
    int n = N, rounds = ROUNDS;
    hdrt_launch_options options = HDRT_LAUNCH_OPTIONS_INIT;
    hdrt_kernel *kernel;
    for (int i = 0; i < N; i++)
        expected[i] = a[i] = (float)(next() % 4096) * 0x1p12f;
    hdrt_ptr device_a = UP(a), device_b = ROOM(b);
    hdrt_args args = HDRT_ARGS(device_a, device_b, n, rounds);
    options.grid = (hdrt_grid){{4, 1, 1}, {64, 1, 1}, 0};
    options.cooperative = true;
    ck_assert_int_eq(hdrt_module_kernel(runner.module, "grid_sync", &kernel), HDRT_OK);
    ck_assert_int_eq(hdrt_launch_with(runner.queue, kernel, &options, args.pointers, args.kinds, args.count), HDRT_OK);
    TAKE(a, device_a);
    DROP(device_b);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++)
            next_of[i] = 0.5f * expected[i] + 0.25f * (expected[(i + 1) % N] + expected[(i + N - 1) % N]);
        memcpy(expected, next_of, sizeof expected);
    }
    ck_assert_mem_eq(a, expected, sizeof a); /* numbers with few digits: exact, fused or not */
}
END_TEST

START_TEST(tiles_add)
{
    enum { BLOCKS = 3, BLOCK = 96, N = BLOCKS * BLOCK };
    int x[N], out[2] = {5, 0}, n = N, sum = 5;
    for (int i = 0; i < N; i++)
        sum += x[i] = (int)(next() % 1000) - 500;
    hdrt_ptr device_x = UP(x), device_out = UP(out);
    RUN("cg_tile", BLOCKS, BLOCK, device_x, device_out, n);
    TAKE(out, device_out);
    DROP(device_x);
    ck_assert_int_eq(out[0], sum);
    ck_assert_int_ge(out[1], 1); /* how many of a warp still run together is the device's business */
    ck_assert_int_le(out[1], 32);
}
END_TEST

/* ---- 15: two warps ---- */

enum { VOTERS = 64 };

static void expect_votes(const int *x, int t, uint32_t *out)
{
    const int *warp = x + t / 32 * 32;
    uint32_t ballot = 0, like_me = 0, below = (1u << t % 32) - 1;
    int all = 1, any = 0, alike = 1, count = 0;
    for (int i = 0; i < 32; i++) {
        ballot |= (uint32_t)(warp[i] > 3) << i;
        like_me |= (uint32_t)(warp[i] == x[t]) << i;
        all &= warp[i] != 0;
        any |= warp[i] != 0;
        alike &= warp[i] == warp[0];
    }
    for (int i = 0; i < VOTERS; i++)
        count += x[i] != 0;
    *out = ballot + (uint32_t)(all + any) + like_me + (alike ? ~0u : 0) + (uint32_t)alike + ~0u +
           (uint32_t)__builtin_popcount(ballot & below);
    *out += (uint32_t)(count + (count == VOTERS) + (count != 0)) + (uint32_t)warp[(t % 32 & ~7) + (t & 3)];
}

START_TEST(votes)
{
    for (int round = 0; round < 4; round++) {
        int x[VOTERS];
        uint32_t out[VOTERS], expected;
        for (int i = 0; i < VOTERS; i++)
            x[i] = round == 0 ? 0 : round == 1 ? 5 : (int)(next() % 8) * (round == 2 || i >= 32);
        hdrt_ptr device_x = UP(x), device_out = ROOM(out);
        RUN("vote", 1, VOTERS, device_x, device_out);
        TAKE(out, device_out);
        DROP(device_x);
        for (int t = 0; t < VOTERS; t++) {
            expect_votes(x, t, &expected);
            ck_assert_msg(out[t] == expected, "round %d, thread %d: %08x, not %08x", round, t, out[t], expected);
        }
    }
}
END_TEST

static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

START_TEST(what_is_positive_is_kept)
{
    enum { N = 1000 };
    int x[N], out[N], kept[N], count = 0, expected = 0, n = N;
    for (int i = 0; i < N; i++) {
        x[i] = (int)(next() % 2000) - 1000;
        if (x[i] > 0)
            kept[expected++] = x[i];
    }
    hdrt_ptr device_x = UP(x), device_out = ROOM(out);
    hdrt_ptr device_count = kernel_runner_upload(&runner, &count, sizeof count);
    RUN("compact", 8, 128, device_x, device_out, device_count, n);
    TAKE(out, device_out);
    kernel_runner_take(&runner, &count, device_count, sizeof count);
    DROP(device_x);
    ck_assert_int_eq(count, expected);
    qsort(kept, (size_t)count, sizeof *kept, by_value); /* the order of warps is the device's */
    qsort(out, (size_t)count, sizeof *out, by_value);
    ck_assert_mem_eq(out, kept, (size_t)count * sizeof *out);
}
END_TEST

static int diverged(int t, int v)
{
    int r = 0;
    if (v & 1) {
        for (int i = 0; i < v && i <= 2 * t; i++)
            r += i == t ? 0 : i;
    } else if (v & 2) {
        r = v * 3 + (t > 5 ? -7 : __builtin_popcount((unsigned int)v));
    } else {
        do {
            r += v;
            v >>= 1;
        } while (v);
    }
    return r;
}

START_TEST(divergence)
{
    enum { N = 96 };
    int x[N], out[N];
    for (int i = 0; i < N; i++)
        x[i] = (int)(next() % 64);
    hdrt_ptr device_x = UP(x), device_out = ROOM(out);
    RUN("diverge", 1, N, device_x, device_out);
    TAKE(out, device_out);
    DROP(device_x);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(out[i], diverged(i, x[i]));
}
END_TEST

/* ---- 16 ---- */

static float switched(int operation, float a, float b)
{
    switch (operation) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return a / b;
    case 4: return fminf(a, b);
    case 5: return fmaxf(a, b);
    case 6: return sqrtf(a);
    case 7: /* falls through */
    case 8: return b + 1.f;
    default: return 0;
    }
}

START_TEST(a_switch)
{
    enum { N = 500 };
    int operation[N], n = N;
    float a[N], b[N], out[N];
    for (int i = 0; i < N; i++) {
        operation[i] = (int)(next() % 11) - 1;
        a[i] = 10.0f * fraction();
        b[i] = 0.1f + fraction();
    }
    hdrt_ptr device_operation = UP(operation), device_a = UP(a), device_b = UP(b), device_out = ROOM(out);
    RUN("sw", 4, 128, device_operation, device_a, device_b, device_out, n);
    TAKE(out, device_out);
    DROP(device_operation);
    DROP(device_a);
    DROP(device_b);
    for (int i = 0; i < N; i++)
        EXPECT(out[i] == switched(operation[i], a[i], b[i]), "operation %d of %a and %a is %a", operation[i],
               (double)a[i], (double)b[i], (double)out[i]);
}
END_TEST

START_TEST(recursion)
{
    static const int fibonacci[8] = {0, 1, 1, 2, 3, 5, 8, 13};
    int out[64];
    hdrt_ptr device = ROOM(out);
    RUN("rec", 1, 64, device);
    TAKE(out, device);
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(out[i], fibonacci[i & 7]);
}
END_TEST

static void open_recursion(void) { kernel_runner_open(&runner, "tests/unit/kernels/recursion.cu"); }

START_TEST(recursion_by_seventeen_ways)
{
    uint32_t out[192];
    hdrt_ptr device = ROOM(out);
    RUN("recurse", 2, 96, device);
    TAKE(out, device);
    for (uint32_t t = 0; t < 192; t++)
        ck_assert_uint_eq(out[t], evaluate(t * 7919, (int)(t % 11)));
}
END_TEST

START_TEST(pointers_to_functions)
{
    int choice[64];
    float before[64], out[64];
    for (int i = 0; i < 64; i++) {
        choice[i] = (int)next();
        before[i] = out[i] = fraction();
    }
    hdrt_ptr device_choice = UP(choice), device = UP(out);
    RUN("fptr", 1, 64, device_choice, device);
    TAKE(out, device);
    DROP(device_choice);
    for (int i = 0; i < 64; i++)
        EXPECT(out[i] == (choice[i] & 1 ? before[i] + 1 : before[i] * 2), "element %d is %a", i, (double)out[i]);
}
END_TEST

START_TEST(structures_by_value)
{
    struct vector {
        float x, y, z;
        int id;
    } v[40], out[40];
    struct {
        double d[3];
        struct vector v;
    } __attribute__((aligned(16))) q = {{1.5, -2.25, 4}, {7, 0.5f, 9, 3}};
    float k = 3;
    for (int i = 0; i < 40; i++)
        v[i] = (struct vector){(float)i, (float)(2 * i), (float)-i, 100 + i};
    hdrt_ptr device = UP(v);
    RUN("structs", 1, 40, device, q, k);
    TAKE(out, device);
    for (int i = 0; i < 40; i++) {
        struct vector expected = {v[i].x * k + (float)q.d[i % 3] + q.v.y, v[i].y + k, v[i].z - k, v[i].id ^ 1};
        ck_assert_mem_eq(&out[i], &expected, sizeof expected);
    }
}
END_TEST

START_TEST(arrays_of_a_thread)
{
    enum { THREADS = 48, LENGTH = 64 };
    int x[LENGTH * THREADS], out[THREADS], n = 50;
    for (int i = 0; i < LENGTH * THREADS; i++)
        x[i] = (int)(next() % 1000);
    hdrt_ptr device_x = UP(x), device_out = ROOM(out);
    RUN("localarr", 1, THREADS, device_x, device_out, n);
    TAKE(out, device_out);
    DROP(device_x);
    for (int t = 0; t < THREADS; t++) {
        int a[LENGTH], sum = 0;
        for (int i = 0; i < LENGTH; i++)
            a[i] = x[i * THREADS + t];
        for (int i = 0; i < n; i++)
            sum += a[a[i] & 63];
        qsort(a, LENGTH, sizeof *a, by_value);
        ck_assert_int_eq(out[t], sum + a[n & 63]);
    }
}
END_TEST

START_TEST(virtual_functions)
{
    int before[64], out[64], s = 1000;
    for (int i = 0; i < 64; i++)
        before[i] = out[i] = (int)(next() % 1000);
    hdrt_ptr device = UP(out);
    RUN("virt", 1, 64, device, s);
    TAKE(out, device);
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(out[i], i & 1 ? before[i] + s : before[i] * 3);
}
END_TEST

/* ---- 17 ---- */

static void read_variable(const char *name, void *value, size_t bytes)
{
    hdrt_ptr address;
    uint64_t size;
    ck_assert_int_eq(hdrt_module_global(runner.module, name, &address, &size), HDRT_OK);
    ck_assert_uint_eq(size, bytes);
    ck_assert_int_eq(hdrt_copy_dtoh(runner.queue, value, address, bytes), HDRT_OK);
    ck_assert_int_eq(hdrt_queue_synchronize(runner.queue), HDRT_OK);
}

START_TEST(variables_with_initial_values)
{
    static const int lut[16] = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597};
    int out[32], counter, seen[32] = {0};
    float buffer[256];
    hdrt_ptr device = ROOM(out);
    RUN("globals", 1, 32, device);
    TAKE(out, device);
    read_variable("counter", &counter, sizeof counter);
    read_variable("buf", buffer, sizeof buffer);
    ck_assert_int_eq(counter, 7 + 32);
    for (int t = 0; t < 32; t++) { /* *ptr is read when all of the warp have counted */
        int before = out[t] - lut[t & 15] - counter - 3 - "hello"[t & 3] - 7;
        ck_assert_msg(before >= 0 && before < 32 && !seen[before], "thread %d saw %d", t, before + 7);
        seen[before] = 1;
        EXPECT(buffer[t] == (float)t, "buf[%d] is %g", t, (double)buffer[t]);
    }
}
END_TEST

START_TEST(instances_of_a_template)
{
    double wide[32], k = 0.5;
    short narrow[32], j = -3;
    for (int i = 0; i < 32; i++) {
        wide[i] = i;
        narrow[i] = (short)(i * 1000);
    }
    hdrt_ptr device_wide = UP(wide), device_narrow = UP(narrow);
    RUN("_ZN2ns4addkIdEEvPT_S1_", 1, 32, device_wide, k);
    RUN("_ZN2ns4addkIsEEvPT_S1_", 1, 32, device_narrow, j);
    TAKE(wide, device_wide);
    TAKE(narrow, device_narrow);
    for (int i = 0; i < 32; i++) {
        EXPECT(wide[i] == i + 0.5, "element %d is %g", i, wide[i]);
        ck_assert_int_eq(narrow[i], i * 1000 - 3);
    }
}
END_TEST

/* ---- 18 ---- */

static void open_printing(void) { kernel_runner_open(&runner, PRINTING); }

/* What kernels print goes to standard output, at the latest when their module goes. */
START_TEST(a_kernel_prints)
{
    char text[4096], line[64];
    int n = 5;
    float f = 2.5f;
    hdrt_ptr nowhere = 0x1234;
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    open_printing();
    fflush(stdout);
    int saved = dup(1);
    ck_assert_int_ge(saved, 0);
    ck_assert_int_eq(dup2(fileno(file), 1), 1);
    RUN("pf", 1, 32, n, f, nowhere);
    close_runner();
    fflush(stdout);
    dup2(saved, 1);
    close(saved);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (int t = 0; t < 32; t++) {
        snprintf(line, sizeof line, "t=%d f=2.500000\n", t);
        ck_assert_msg(strstr(text, line) != NULL, "thread %d is not in: %s", t, text);
    }
    ck_assert_msg(strstr(text, "n=5 lit a00000000 0x1234\n") != NULL, "%s", text);
}
END_TEST

START_TEST(assertions_that_hold)
{
    int x[32] = {0}, beyond = 100;
    hdrt_ptr device = UP(x);
    RUN("as", 1, 32, device);
    RUN("tr", 1, 32, beyond);
    TAKE(x, device);
}
END_TEST

START_TEST(clocks_and_places)
{
    int64_t out[4] = {-1, -1, -1, -1};
    hdrt_ptr device = UP(out);
    RUN("clk", 1, 1, device);
    TAKE(out, device);
    ck_assert_int_ge(out[0], 0);
    ck_assert_int_ge(out[1], 0);
    ck_assert_int_lt(out[1], 1024);
    ck_assert_int_gt(out[3], 0);
}
END_TEST

START_TEST(memory_from_the_device_heap)
{
    uint64_t out[32] = {0};
    hdrt_ptr device = UP(out);
    RUN("mal", 1, 32, device);
    TAKE(out, device);
    for (int i = 0; i < 32; i++) {
        ck_assert_uint_ne(out[i], 0);
        ck_assert_uint_eq(out[i] % 16, 0);
        for (int j = 0; j < i; j++) /* the one that was freed may come again */
            ck_assert_msg(out[i] != out[j] || i == 1 || j == 1, "threads %d and %d share memory", i, j);
    }
}
END_TEST

/* The device is lost, in this process only. */
static void close_lost(void)
{
    ck_assert_int_eq(hdrt_queue_synchronize(runner.queue), HDRT_ERROR_DEVICE_LOST);
    hdrt_module_destroy(runner.module);
    hdrt_queue_destroy(runner.queue);
    hdrt_device_close(runner.device);
    hdrt_runtime_destroy(runner.runtime);
}

START_TEST(an_assertion_fails)
{
    int x[32] = {0};
    x[9] = -1;
    hdrt_ptr device = UP(x);
    RUN("as", 1, 32, device);
    ck_assert_int_eq(hdrt_queue_synchronize(runner.queue), HDRT_ERROR_DEVICE_LOST);
    ck_assert_msg(strstr(hdrt_last_error(), "CUDA_ERROR_ASSERT") != NULL, "%s", hdrt_last_error());
}
END_TEST

START_TEST(a_thread_traps)
{
    int n = _i ? -1 : 4; /* thread 4 traps, or thread 0 meets a breakpoint */
    RUN("tr", 1, 32, n);
    ck_assert_int_eq(hdrt_queue_synchronize(runner.queue), HDRT_ERROR_DEVICE_LOST);
    ck_assert_msg(strstr(hdrt_last_error(), "CUDA_ERROR_LAUNCH_FAILED") != NULL, "%s", hdrt_last_error());
}
END_TEST

/* ---- 19 ---- */

START_TEST(inline_instructions)
{
    uint32_t a[64], b[64], out[64];
    for (int i = 0; i < 64; i++) {
        a[i] = i < 2 ? ~next() | 0xf0000000 : next() % 12; /* the first two carry */
        b[i] = i < 2 ? 0x20000000 : next();
    }
    hdrt_ptr device_a = UP(a), device_b = UP(b), device_out = ROOM(out);
    RUN("iasm", 1, 64, device_a, device_b, device_out);
    TAKE(out, device_out);
    DROP(device_a);
    DROP(device_b);
    uint64_t low = (uint64_t)a[0] + b[0], high = (uint64_t)a[1] + b[1] + (low >> 32);
    uint32_t r0 = (uint32_t)low, r1 = (uint32_t)high, r2 = (uint32_t)(high >> 32);
    uint32_t field = r0 >> 4 & 0xff, wide = r0 * r1 + 7;
    field = (field & 0xffff00ff) | (r1 & 0xff) << 8;
    for (int i = 0; i < 64; i++)
        ck_assert_uint_eq(out[i], r0 + r1 + r2 + a[i] + (a[i] > 5) + wide + field + a[i]);
}
END_TEST

START_TEST(a_flag_is_released_and_acquired)
{
    uint32_t flags[2] = {0}, data[96] = {0};
    hdrt_ptr device_flags = UP(flags), device_data = UP(data);
    RUN("xmem", 1, 96, device_flags, device_data);
    TAKE(flags, device_flags);
    TAKE(data, device_data);
    ck_assert_uint_eq(flags[0], 1);
    ck_assert_uint_eq(flags[1], 96);
    for (int i = 0; i < 96; i++)
        ck_assert_uint_eq(data[i], 42);
}
END_TEST

START_TEST(loads_and_stores_with_hints)
{
    float a[128][4], b[128][4];
    for (int i = 0; i < 128; i++)
        for (int c = 0; c < 4; c++)
            a[i][c] = fraction();
    hdrt_ptr device_a = UP(a), device_b = ROOM(b);
    RUN("streamld", 2, 64, device_a, device_b);
    TAKE(b, device_b);
    DROP(device_a);
    ck_assert_mem_eq(b, a, sizeof b);
}
END_TEST

/* ---- 20 ---- */

START_TEST(copies_beside_the_thread)
{
    enum { ROWS = 5, THREADS = 128 };
    static float in[ROWS][THREADS][4], out[THREADS];
    int n = ROWS;
    for (int row = 0; row < ROWS; row++)
        for (int t = 0; t < THREADS; t++)
            for (int c = 0; c < 4; c++)
                in[row][t][c] = (float)(next() % 256);
    hdrt_ptr device_in = UP(in), device_out = ROOM(out);
    RUN("cpasync", 1, THREADS, device_in, device_out, n);
    TAKE(out, device_out);
    DROP(device_in);
    for (int t = 0; t < THREADS; t++) {
        float sum = 0;
        for (int row = 0; row < ROWS; row++)
            for (int c = 0; c < 4; c++)
                sum += in[row][THREADS - 1 - t][c];
        EXPECT(out[t] == sum, "thread %d has %g, not %g", t, (double)out[t], (double)sum);
    }
}
END_TEST

/* ---- 25 ---- */

START_TEST(a_barrier_with_a_name)
{
    int out[64] = {0};
    hdrt_ptr device = UP(out);
    RUN("named_bar", 1, 64, device);
    TAKE(out, device);
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(out[i], i < 32 ? 0 : (i - 32) * 3);
}
END_TEST

START_TEST(some_leave_before_the_barrier)
{
    for (int n = 1; n <= 256; n += 51) {
        int out[256];
        memset(out, 0xff, sizeof out);
        hdrt_ptr device = UP(out);
        RUN("early_exit_bar", 1, 256, device, n);
        TAKE(out, device);
        for (int i = 0; i < 256; i++)
            ck_assert_int_eq(out[i], i < n ? n - 1 - i : -1);
    }
}
END_TEST

START_TEST(barriers_in_a_loop)
{
    enum { N = 160, ROUNDS = 9 };
    float a[N], expected[N], next_of[N];
    int n = N, rounds = ROUNDS;
    for (int i = 0; i < N; i++)
        expected[i] = a[i] = (float)(next() % 1024) * 1024.0f;
    hdrt_ptr device = UP(a);
    kernel_runner_launch(&runner, "loopbar", (hdrt_grid){{1, 1, 1}, {N, 1, 1}, 2 * sizeof a},
                         HDRT_ARGS(device, n, rounds));
    TAKE(a, device);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++)
            next_of[i] = 0.5f * (expected[(i + 1) % N] + expected[(i + N - 1) % N]);
        memcpy(expected, next_of, sizeof expected);
    }
    ck_assert_mem_eq(a, expected, sizeof a);
}
END_TEST

static Suite *corpus_suite(void)
{
    Suite *suite = suite_create("corpus_language");
    CASE(groups, a_grid_meets_again_and_again, tiles_add);
    CASE(votes, votes, what_is_positive_is_kept, divergence);
    CASE(control, a_switch, recursion, pointers_to_functions, structures_by_value, arrays_of_a_thread,
         virtual_functions);
    CASE(recursion, recursion_by_seventeen_ways);
    CASE(variables, variables_with_initial_values, instances_of_a_template);
    CASE(printing, assertions_that_hold, clocks_and_places, memory_from_the_device_heap);
    CASE(inline_ptx, inline_instructions, a_flag_is_released_and_acquired, loads_and_stores_with_hints);
    CASE(copies, copies_beside_the_thread);
    CASE(barriers, a_barrier_with_a_name, some_leave_before_the_barrier, barriers_in_a_loop);
    TCase *prints = tcase_create("prints");
    tcase_add_test(prints, a_kernel_prints);
    suite_add_tcase(suite, prints);
    TCase *lost = tcase_create("lost");
    tcase_add_checked_fixture(lost, open_printing, close_lost);
    tcase_add_test(lost, an_assertion_fails);
    tcase_add_loop_test(lost, a_thread_traps, 0, 2);
    suite_add_tcase(suite, lost);
    return suite;
}

int main(void) { return run_corpus(corpus_suite); }
