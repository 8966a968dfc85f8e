/* SPDX-License-Identifier: MIT */
/* What sources may call beyond plain C: every case of kernels/prelude_cases.h on the device against the same said for
 * the CPU, bit for bit where CUDA promises that. */
#include "kernel_runner.h"

#include <check.h>
#include <fenv.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/prelude_cases.h"

static struct kernel_runner runner;

static void open_prelude(void) { kernel_runner_open(&runner, "tests/unit/kernels/prelude.cu"); }
static void open_library(void) { kernel_runner_open(&runner, "tests/unit/kernels/prelude_library.cu"); }
static void close_runner(void) { kernel_runner_close(&runner); }

/* ---- the CPU's side ---------------------------------------------------------------------------------------------- */

static unsigned long long host_reverse(unsigned long long v)
{
    unsigned long long result = 0;

    for (int i = 0; i < 64; i++)
        result |= (v >> i & 1) << (63 - i);
    return result;
}

static unsigned int host_signed_24(unsigned int v)
{
    return (unsigned int)((int)(v << 8) >> 8);
}

static unsigned int host_distance(long long x, long long y)
{
    return (unsigned int)(x > y ? x - y : y - x);
}

static unsigned long long host_pair(unsigned int low, unsigned int high)
{
    return (unsigned long long)high << 32 | low;
}

static unsigned int host_bytes(unsigned int a, unsigned int b, unsigned int selector)
{
    unsigned int result = 0;

    for (int i = 0; i < 4; i++)
        result |= (unsigned int)(host_pair(a, b) >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    return result;
}

/* Lane x of a with BITS, from byte FIRST of b on eight bits each. */
static unsigned int host_dot(unsigned int a, unsigned int b, unsigned int c, int bits, int first, bool is_signed)
{
    unsigned int result = c;

    for (int i = 0; i < 32 / bits; i++) {
        unsigned int x = a >> bits * i & ((1u << bits) - 1), y = b >> 8 * (first + i) & 0xff;
        if (is_signed) {
            x = bits == 8 ? (unsigned int)(signed char)x : (unsigned int)(short)x;
            y = (unsigned int)(signed char)y;
        }
        result += x * y;
    }
    return result;
}

static int host_clip(int v, int low, int high)
{
    return v < low ? low : v > high ? high : v;
}

static unsigned int host_relu(unsigned int v)
{
    return v >> 31 ? 0 : v;
}

/* Away from zero. */
static int host_half(int sum)
{
    return sum >= 0 ? (sum + 1) / 2 : (sum - 1) / 2;
}

static unsigned int host_lanes_distance(unsigned int a, unsigned int b, bool is_signed)
{
    unsigned int result = 0;

    for (int at = 0; at < 32; at += 8)
        result += is_signed ? host_distance((signed char)(a >> at), (signed char)(b >> at))
                            : host_distance((unsigned char)(a >> at), (unsigned char)(b >> at));
    return result;
}

#define HOST_LANES(bits, type, expression)                                                                             \
    ({                                                                                                                 \
        unsigned int lanes_ = 0;                                                                                       \
        for (int at_ = 0; at_ < 32; at_ += bits) {                                                                     \
            int x = (type)(a >> at_), y = (type)(b >> at_);                                                            \
            (void)y;                                                                                                   \
            lanes_ |= ((unsigned int)(expression) & ((1u << bits) - 1)) << at_;                                        \
        }                                                                                                              \
        lanes_;                                                                                                        \
    })

static float host_fraction(float f)
{
    float integral;
    return modff(f, &integral);
}

static double host_mantissa_and_exponent(float f)
{
    int exponent;
    double mantissa = frexp(f, &exponent);
    return mantissa + exponent;
}

/* One operation in a rounding mode; volatile, so that it is neither moved nor done by the compiler. */
#define HOST_ROUND(name, type, fused, root)                                                                            \
    static type name(char operation, type x, type y, type z, int mode)                                                 \
    {                                                                                                                  \
        volatile type a = x, b = y, c = z, result = 0;                                                                 \
        EXPECT(fesetround(mode) == 0, "rounding mode %d", mode);                                                       \
        switch (operation) {                                                                                           \
        case '+': result = a + b; break;                                                                               \
        case '-': result = a - b; break;                                                                               \
        case '*': result = a * b; break;                                                                               \
        case '/': result = a / b; break;                                                                               \
        case 'r': result = (type)1 / a; break;                                                                         \
        case 's': result = root(a); break;                                                                             \
        case 'f': result = fused(a, b, c); break;                                                                      \
        }                                                                                                              \
        EXPECT(fesetround(FE_TONEAREST) == 0, "rounding to nearest");                                                  \
        return result;                                                                                                 \
    }

HOST_ROUND(host_round_f32, float, fmaf, sqrtf)
HOST_ROUND(host_round_f64, double, fma, sqrt)

/* Out of range is the nearest in range. Not a number is zero, but the sign bit where 64 bits are on either side. */
static unsigned long long host_to_integer(double v, bool from_double, int mode, long double least, long double greatest)
{
    bool wide = greatest > 0xffffffffu;
    volatile long double exact = v, whole;

    if (isnan(v))
        return wide ? 1ull << 63 : !from_double ? 0 : least < 0 ? (unsigned long long)INT_MIN : 1ull << 31;
    EXPECT(fesetround(mode) == 0, "rounding mode %d", mode);
    whole = rintl(exact);
    EXPECT(fesetround(FE_TONEAREST) == 0, "rounding to nearest");
    whole = whole < least ? least : whole > greatest ? greatest : whole;
    return whole < 0 ? (unsigned long long)(long long)whole : (unsigned long long)whole;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static const unsigned int words[] = {
    0,          1,          2,          3,          7,          31,         32,         33,         0x7f,
    0x80,       0xff,       0x100,      0x7fff,     0x8000,     0xffff,     0x10000,    0x00800000, 0x007fffff,
    0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0xfffffffe, 0xffffff80, 0x01020304, 0x80808080, 0x7f7f7f7f,
    0x80007fff, 0x7fff8000, 0xdeadbeef, 0x12345678, 0xff00ff00,
};

/* The whole line of floats: zeros, the least and greatest of each kind, halves, limits of the integers, no numbers. */
static const float floats[] = {
    0.0f,       -0.0f,       0x1p-149f,   -0x1p-149f,  0x1.fffffcp-127f, 0x1p-126f, 0x1.fffffep127f, -0x1.fffffep127f,
    INFINITY,   -INFINITY,   NAN,         1.0f,        -1.0f,            0.5f,      -0.5f,           1.5f,
    -1.5f,      2.5f,        -2.5f,       0.49999997f, -0.49999997f,     3.5f,      8388607.5f,      8388609.0f,
    -8388607.5f, 0x1p31f,    -0x1p31f,    0x1p32f,     0x1.fffffep30f,   0x1p63f,   -0x1p63f,        0x1p64f,
    0x1.fffffep62f, 1e-10f,  1.0f / 3.0f, 123456.789f, 0x1.fffffep-1f,   1.0000001f, 3.14159265f,    -1e30f,
};

#define WORD_COUNT ((int)(sizeof words / sizeof words[0]))
#define FLOAT_COUNT ((int)(sizeof floats / sizeof floats[0]))

static unsigned int next_random(unsigned int *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state ^ *state >> 15;
}

static void *allocate(size_t count, size_t each)
{
    void *memory = calloc(count, each);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

/* Runs KERNEL(inputs..., out, n) and gives what it wrote, PER results of EACH bytes for each element. */
static void *run(const char *kernel, int n, int count, const void *const *inputs, size_t input_bytes, int per,
                 size_t each)
{
    hdrt_ptr pointers[4];
    const void *arguments[5];
    uint32_t kinds[5];
    size_t bytes = (size_t)n * (size_t)per * each;
    void *out = allocate((size_t)n * (size_t)per, each);

    for (int i = 0; i < count; i++)
        pointers[i] = kernel_runner_upload(&runner, inputs[i], (size_t)n * input_bytes);
    pointers[count] = kernel_runner_upload(&runner, out, bytes);
    for (int i = 0; i <= count; i++) {
        arguments[i] = &pointers[i];
        kinds[i] = HDRT_KIND(HDRT_CLASS_INTEGER, 8);
    }
    arguments[count + 1] = &n;
    kinds[count + 1] = HDRT_KIND(HDRT_CLASS_INTEGER, 4);
    kernel_runner_launch(&runner, kernel, hdrt_grid_1d((uint64_t)n, 128),
                         (hdrt_args){arguments, kinds, (uint32_t)count + 2});
    kernel_runner_take(&runner, out, pointers[count], bytes);
    for (int i = 0; i < count; i++)
        kernel_runner_free(&runner, pointers[i]);
    return out;
}

#define COUNT(name, device, host) +1
#define COUNT4(name, function, operation, mode) +1
#define COUNT5(name, function, mode, least, greatest) +1

static void assert_equal_f32(const char *name, float got, float expected, const float *in)
{
    EXPECT(memcmp(&got, &expected, sizeof got) == 0 || (isnan(got) && isnan(expected)),
           "%s of %a, %a, %a is %a and not %a", name, (double)in[0], (double)in[1], (double)in[2], (double)got,
           (double)expected);
}

static void assert_equal_f64(const char *name, double got, double expected, const double *in)
{
    EXPECT(memcmp(&got, &expected, sizeof got) == 0 || (isnan(got) && isnan(expected)),
           "%s of %a, %a, %a is %a and not %a", name, in[0], in[1], in[2], got, expected);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

/* All pairs of the special words, then random ones. */
START_TEST(integers_of_32_bits)
{
    enum { SPECIAL = WORD_COUNT * WORD_COUNT, N = SPECIAL + 1000 };
    unsigned int *in[3], seed = 1;

    for (int k = 0; k < 3; k++) {
        in[k] = allocate(N, sizeof(unsigned int));
        for (int i = 0; i < N; i++)
            in[k][i] = next_random(&seed);
    }
    for (int i = 0; i < SPECIAL; i++) {
        in[0][i] = words[i % WORD_COUNT];
        in[1][i] = words[i / WORD_COUNT];
        in[2][i] = words[(i + i / WORD_COUNT) % WORD_COUNT];
    }
    unsigned int *out = run("cases_32", N, 3, (const void *const *)in, 4, 0 CASES_32(COUNT), 4), *next = out;
    for (int i = 0; i < N; i++) {
        unsigned int a = in[0][i], b = in[1][i], c = in[2][i];
#define CHECK(name, device, host)                                                                                      \
    {                                                                                                                  \
        unsigned int expected = (unsigned int)(host);                                                                  \
        EXPECT(*next == expected, "%s of %x, %x, %x is %x and not %x", #name, a, b, c, *next, expected);               \
        next++;                                                                                                        \
    }
        CASES_32(CHECK)
#undef CHECK
    }
    for (int k = 0; k < 3; k++)
        free(in[k]);
    free(out);
}
END_TEST

START_TEST(integers_of_64_bits)
{
    enum { SPECIAL = WORD_COUNT * WORD_COUNT, N = SPECIAL + 1000 };
    unsigned long long *in[2];
    unsigned int seed = 2;

    for (int k = 0; k < 2; k++) {
        in[k] = allocate(N, sizeof(unsigned long long));
        for (int i = 0; i < N; i++)
            in[k][i] = (unsigned long long)next_random(&seed) << 32 | next_random(&seed);
    }
    for (int i = 0; i < SPECIAL; i++) {
        in[0][i] = host_pair(words[i % WORD_COUNT], words[i / WORD_COUNT]);
        in[1][i] = host_pair(words[i / WORD_COUNT], words[(i * 7 + 3) % WORD_COUNT]);
    }
    unsigned long long *out = run("cases_64", N, 2, (const void *const *)in, 8, 0 CASES_64(COUNT), 8), *next = out;
    for (int i = 0; i < N; i++) {
        unsigned long long q = in[0][i], r = in[1][i];
#define CHECK(name, device, host)                                                                                      \
    {                                                                                                                  \
        unsigned long long expected = (unsigned long long)(host);                                                      \
        EXPECT(*next == expected, "%s of %llx, %llx is %llx and not %llx", #name, q, r, *next, expected);              \
        next++;                                                                                                        \
    }
        CASES_64(CHECK)
#undef CHECK
    }
    free(in[0]);
    free(in[1]);
    free(out);
}
END_TEST

START_TEST(operations_on_floats)
{
    enum { SPECIAL = FLOAT_COUNT * FLOAT_COUNT, N = SPECIAL + 1000 };
    float *in[3];
    unsigned int seed = 3;

    for (int k = 0; k < 3; k++) {
        in[k] = allocate(N, sizeof(float));
        for (int i = 0; i < N; i++) {
            unsigned int bits = next_random(&seed);
            memcpy(&in[k][i], &bits, 4);
        }
    }
    for (int i = 0; i < SPECIAL; i++) {
        in[0][i] = floats[i % FLOAT_COUNT];
        in[1][i] = floats[i / FLOAT_COUNT];
        in[2][i] = floats[(i + i / FLOAT_COUNT) % FLOAT_COUNT];
    }
    int per = 0 CASES_F32(COUNT) CASES_F32_ONE(COUNT4) CASES_F32_TWO(COUNT4) CASES_F32_THREE(COUNT4);
    float *out = run("cases_f32", N, 3, (const void *const *)in, 4, per, 4), *next = out;
    for (int i = 0; i < N; i++) {
        float f = in[0][i], g = in[1][i], h = in[2][i], operands[] = {f, g, h};
#define CHECK(name, device, host) assert_equal_f32(#name, *next++, host, operands);
#define CHECK4(name, function, operation, mode)                                                                        \
    assert_equal_f32(#name, *next++, host_round_f32(operation, f, g, h, mode), operands);
        CASES_F32(CHECK)
        CASES_F32_ONE(CHECK4)
        CASES_F32_TWO(CHECK4)
        CASES_F32_THREE(CHECK4)
#undef CHECK
#undef CHECK4
    }
    for (int k = 0; k < 3; k++)
        free(in[k]);
    free(out);
}
END_TEST

START_TEST(operations_on_doubles)
{
    enum { SPECIAL = FLOAT_COUNT * FLOAT_COUNT, N = SPECIAL + 1000 };
    double *in[3];
    unsigned int seed = 4;

    for (int k = 0; k < 3; k++) {
        in[k] = allocate(N, sizeof(double));
        for (int i = 0; i < N; i++) {
            unsigned long long bits = (unsigned long long)next_random(&seed) << 32 | next_random(&seed);
            memcpy(&in[k][i], &bits, 8);
        }
    }
    for (int i = 0; i < SPECIAL; i++) {
        in[0][i] = (double)floats[i % FLOAT_COUNT] * (1.0 + 0x1p-40);
        in[1][i] = floats[i / FLOAT_COUNT];
        in[2][i] = floats[(i + i / FLOAT_COUNT) % FLOAT_COUNT];
    }
    int per = 0 CASES_F64(COUNT) CASES_F64_ONE(COUNT4) CASES_F64_TWO(COUNT4) CASES_F64_THREE(COUNT4);
    double *out = run("cases_f64", N, 3, (const void *const *)in, 8, per, 8), *next = out;
    for (int i = 0; i < N; i++) {
        double d = in[0][i], e = in[1][i], k = in[2][i], operands[] = {d, e, k};
#define CHECK(name, device, host) assert_equal_f64(#name, *next++, host, operands);
#define CHECK4(name, function, operation, mode)                                                                        \
    assert_equal_f64(#name, *next++, host_round_f64(operation, d, e, k, mode), operands);
        CASES_F64(CHECK)
        CASES_F64_ONE(CHECK4)
        CASES_F64_TWO(CHECK4)
        CASES_F64_THREE(CHECK4)
#undef CHECK
#undef CHECK4
    }
    for (int k = 0; k < 3; k++)
        free(in[k]);
    free(out);
}
END_TEST

#define CHECK(name, function, mode, least, greatest)                                                                   \
    {                                                                                                                  \
        unsigned long long expected = host_to_integer((double)in[i], sizeof in[i] == 8, mode, least, greatest);        \
        EXPECT(*next == expected, "%s of %a is %llx and not %llx", #name, (double)in[i], *next, expected);             \
        next++;                                                                                                        \
    }

START_TEST(floats_to_integers)
{
    enum { N = FLOAT_COUNT + 500 };
    float in[N];
    const void *inputs[] = {in};
    unsigned int seed = 5;

    for (int i = 0; i < N; i++)
        in[i] = i < FLOAT_COUNT ? floats[i]
                                : ldexpf((float)(int)next_random(&seed), (int)(next_random(&seed) % 68) - 33);
    unsigned long long *out = run("from_f32", N, 1, inputs, 4, 0 CASES_CONVERT(COUNT5, float), 8), *next = out;
    for (int i = 0; i < N; i++) {
        CASES_CONVERT(CHECK, float)
    }
    free(out);
}
END_TEST

START_TEST(doubles_to_integers)
{
    enum { N = FLOAT_COUNT + 500 };
    double in[N];
    const void *inputs[] = {in};
    unsigned int seed = 6;

    for (int i = 0; i < N; i++)
        in[i] = i < FLOAT_COUNT ? floats[i]
                                : ldexp((double)(int)next_random(&seed) + 0x1p-20, (int)(next_random(&seed) % 68) - 33);
    unsigned long long *out = run("from_f64", N, 1, inputs, 8, 0 CASES_CONVERT(COUNT5, double), 8), *next = out;
    for (int i = 0; i < N; i++) {
        CASES_CONVERT(CHECK, double)
    }
    free(out);
}
END_TEST

#undef CHECK

/* 64 bits down to floating point: exact zeros and ones, halves of the last place, the limits. */
static void fill_integers(unsigned long long *in, int n)
{
    unsigned int seed = 7;

    for (int i = 0; i < n; i++) {
        int shift = (int)(next_random(&seed) % 64);
        unsigned long long v = (unsigned long long)next_random(&seed) << 32 | next_random(&seed);
        in[i] = i < WORD_COUNT ? host_pair(words[i], words[(i * 5) % WORD_COUNT])
              : i % 3               ? v >> shift
                                    : (1ull << shift) + (1ull << shift / 2) + (unsigned int)(i % 3);
    }
}

#define CHECK(name, function, mode, type)                                                                              \
    {                                                                                                                  \
        volatile type from = (type)in[i];                                                                              \
        EXPECT(fesetround(mode) == 0, "rounding mode %d", mode);                                                       \
        volatile __typeof__(*next) expected = (__typeof__(*next))from;                                                 \
        EXPECT(fesetround(FE_TONEAREST) == 0, "rounding to nearest");                                                  \
        EXPECT(*next == expected, "%s of %llx is %a and not %a", #name, in[i], (double)*next, (double)expected);       \
        next++;                                                                                                        \
    }

START_TEST(integers_to_floats)
{
    enum { N = 600 };
    unsigned long long in[N];
    const void *inputs[] = {in};

    fill_integers(in, N);
    float *out = run("to_f32", N, 1, inputs, 8, 0 CASES_F32_FROM(COUNT4), 4), *next = out;
    for (int i = 0; i < N; i++) {
        CASES_F32_FROM(CHECK)
    }
    free(out);
}
END_TEST

START_TEST(integers_to_doubles)
{
    enum { N = 600 };
    unsigned long long in[N];
    const void *inputs[] = {in};

    fill_integers(in, N);
    double *out = run("to_f64", N, 1, inputs, 8, 0 CASES_F64_FROM(COUNT4), 8), *next = out;
    for (int i = 0; i < N; i++) {
        CASES_F64_FROM(CHECK)
    }
    free(out);
}
END_TEST

#undef CHECK

static void assert_near(const char *name, double got, double expected, double error, double in)
{
    double scale = fabs(expected) > 1.0 ? fabs(expected) : 1.0;

    EXPECT(fabs(got - expected) <= error * scale, "%s of %.9g is %.17g and not %.17g", name, in, got, expected);
}

START_TEST(approximations)
{
    enum { N = 300 };
    float in[N];
    const void *inputs[] = {in};

    for (int i = 0; i < N; i++)
        in[i] = 0.01f * (float)(i + 1);
    float *out = run("approximate", N, 1, inputs, 4, 0 CASES_APPROXIMATE(COUNT4), 4), *next = out;
    for (int i = 0; i < N; i++) {
        float f = in[i];
#define CHECK(name, device, host, error) assert_near(#name, (double)*next++, host, error, (double)f);
        CASES_APPROXIMATE(CHECK)
#undef CHECK
    }
    free(out);
}
END_TEST

START_TEST(library_of_floats)
{
    enum { N = 300 };
    float in[N];
    const void *inputs[] = {in};

    for (int i = 0; i < N; i++)
        in[i] = 0.00997f * (float)(i + 1);
    float *out = run("library_f32", N, 1, inputs, 4, 0 CASES_LIBRARY_F32(COUNT), 4), *next = out;
    for (int i = 0; i < N; i++) {
        float f = in[i], g = 3.0f - f;
#define CHECK(name, device, host) assert_near(#name, (double)*next++, host, 4e-6, (double)f);
        CASES_LIBRARY_F32(CHECK)
#undef CHECK
    }
    free(out);
}
END_TEST

START_TEST(library_of_doubles)
{
    enum { N = 300 };
    double in[N];
    const void *inputs[] = {in};

    for (int i = 0; i < N; i++)
        in[i] = 0.00997 * (i + 1);
    double *out = run("library_f64", N, 1, inputs, 8, 0 CASES_LIBRARY_F64(COUNT), 8), *next = out;
    for (int i = 0; i < N; i++) {
        double d = in[i], e = 3.0 - d;
#define CHECK(name, device, host) assert_near(#name, *next++, host, 1e-13, d);
        CASES_LIBRARY_F64(CHECK)
#undef CHECK
    }
    free(out);
}
END_TEST

int main(void)
{
    const char *skip = kernel_runner_skip();
    if (skip) {
        fputs(skip, stdout);
        return 0;
    }
    Suite *suite = suite_create("prelude");
    TCase *tests = tcase_create("prelude"), *library = tcase_create("library");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, open_prelude, close_runner);
    tcase_add_test(tests, integers_of_32_bits);
    tcase_add_test(tests, integers_of_64_bits);
    tcase_add_test(tests, operations_on_floats);
    tcase_add_test(tests, operations_on_doubles);
    tcase_add_test(tests, floats_to_integers);
    tcase_add_test(tests, doubles_to_integers);
    tcase_add_test(tests, integers_to_floats);
    tcase_add_test(tests, integers_to_doubles);
    tcase_add_test(tests, approximations);
    suite_add_tcase(suite, tests);
    tcase_set_timeout(library, 120);
    tcase_add_checked_fixture(library, open_library, close_runner);
    tcase_add_test(library, library_of_floats);
    tcase_add_test(library, library_of_doubles);
    suite_add_tcase(suite, library);
    SRunner *suite_runner = srunner_create(suite);
    srunner_set_tap(suite_runner, "-");
    srunner_run_all(suite_runner, CK_SILENT);
    srunner_free(suite_runner);
    return 0;
}
