/* SPDX-License-Identifier: MIT */
/* Mathematical functions, directed rounding, f16 and bf16 in whole kernels, against the CPU: bit for bit where IEEE
 * says so, else within the sum of what CUDA documents for each function. */
#include "corpus.h"
#include "half_formats.h"

#include <fenv.h>

CORPUS(math, "12_math.cu")
CORPUS(half, "13_half.cu")

/* ---- 12 ---- */

enum { N = 600 };

/* A sum and the size of its terms, which its errors are measured by. */
struct total {
    double sum, size;
};

static struct total total_of(const double *terms, size_t count)
{
    struct total total = {0, 0};
    for (size_t i = 0; i < count; i++) {
        total.sum += terms[i];
        total.size += fabs(terms[i]);
    }
    return total;
}
#define TOTAL(...) total_of((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static void run_floats(const char *kernel, const float *x, float *out)
{
    int n = N;
    hdrt_ptr device_x = kernel_runner_upload(&runner, x, N * sizeof *x);
    hdrt_ptr device_out = kernel_runner_allocate(&runner, N * sizeof *out);
    RUN(kernel, (N + 127) / 128, 128, device_x, device_out, n);
    kernel_runner_take(&runner, out, device_out, N * sizeof *out);
    DROP(device_x);
}

static struct total functions_of(float f)
{
    double v = (double)f;
    return TOTAL(sqrt(v), 1 / v, 1 / sqrt(v), exp(v), log(v), log2(v), exp2(v), pow(v, (double)1.7f),
                 (double)fmodf(f, 0.3f), floor(v), ceil(v), trunc(v), rint(v), round(v), v, -v, fmin(v, 2), fmax(v, 3),
                 atan2(v, 2), erf(v), cbrt(v), hypot(v, 1));
}

START_TEST(functions_of_floats)
{
    float x[N], out[N];
    for (int i = 0; i < N; i++)
        x[i] = 0.01f + 20.0f * fraction();
    run_floats("fmath", x, out);
    for (int i = 0; i < N; i++) { /* none has more than 4 ulp; 21 sums have half of one each */
        struct total total = functions_of(x[i]);
        close_to("fmath", i, out[i], total.sum, 0, total.size * 8 * 0x1p-23);
    }
}
END_TEST

START_TEST(angles)
{
    float x[N], out[N];
    for (int i = 0; i < N; i++)
        x[i] = (fraction() - 0.5f) * (i % 3 == 0 ? 1e6f : i % 3 == 1 ? 100.0f : 6.0f); /* the reduction is exact */
    run_floats("ftrig", x, out);
    for (int i = 0; i < N; i++) { /* sin, cos: 2 ulp, tan: 4 */
        double s = sin((double)x[i]), term = cos((double)x[i]) * tan((double)x[i]);
        close_to("ftrig", i, out[i], s + term, 0, (fabs(s) + fabs(term)) * 8 * 0x1p-23);
    }
}
END_TEST

START_TEST(fast_functions)
{
    float x[N], out[N];
    for (int i = 0; i < N; i++)
        x[i] = 0.5f + fraction(); /* where the absolute errors of __sinf and __logf, 2^-21, are documented */
    run_floats("ffast", x, out);
    for (int i = 0; i < N; i++) {
        double v = (double)x[i];
        struct total total = TOTAL(sin(v), cos(v), exp(v), log(v), pow(v, (double)2.2f), 1 / v, 1 / sqrt(v),
                                   fmin(v, 1), sqrt(v), 1 / v, tan(v), log2(v));
        close_to("ffast", i, out[i], total.sum, 0, 6 * 0x1p-21 + total.size * 8 * 0x1p-23);
    }
}
END_TEST

/* The processor rounds as the intrinsics are named; volatile, that nothing is computed beforehand. */
static float directed(float number)
{
    volatile float v = number, tiny = 1e-7f, factor = 1.1f, addend = .3f, three = 3.f, terms[6];
    fesetround(FE_TOWARDZERO);
    terms[0] = v + tiny;
    terms[3] = fmaf(v, factor, addend);
    fesetround(FE_UPWARD);
    terms[1] = v + tiny;
    terms[5] = sqrtf(v);
    fesetround(FE_DOWNWARD);
    terms[2] = v * factor;
    terms[4] = v / three;
    fesetround(FE_TONEAREST);
    float sum = terms[0];
    for (int i = 1; i < 6; i++)
        sum += terms[i];
    return sum;
}

START_TEST(directed_rounding_and_conversions)
{
    float x[N], out[N];
    int parts[N][8], n = N;
    for (int i = 0; i < N; i++)
        x[i] = i < 256 ? (float)i * 0.5f : 255.0f * fraction();
    hdrt_ptr device_x = UP(x), device_out = ROOM(out), device_parts = ROOM(parts);
    RUN("frnd", (N + 127) / 128, 128, device_x, device_out, device_parts, n);
    TAKE(out, device_out);
    TAKE(parts, device_parts);
    DROP(device_x);
    for (int i = 0; i < N; i++) {
        float v = x[i];
        int bits;
        memcpy(&bits, &v, sizeof bits);
        EXPECT(out[i] == directed(v), "frnd of %a is %a, not %a", (double)v, (double)out[i], (double)directed(v));
        const int expected[8] = {(int)v, (int)rintf(v), (int)ceilf(v), (int)v, bits, 0, (int)v, (int)v};
        ck_assert_mem_eq(parts[i], expected, sizeof expected);
    }
}
END_TEST

START_TEST(functions_of_doubles)
{
    double x[N], out[N];
    int n = N;
    for (int i = 0; i < N; i++)
        x[i] = 0.01 + 20.0 * (double)fraction();
    hdrt_ptr device_x = UP(x), device_out = ROOM(out);
    RUN("dmath", (N + 127) / 128, 128, device_x, device_out, n);
    TAKE(out, device_out);
    DROP(device_x);
    for (int i = 0; i < N; i++) {
        double v = x[i];
        struct total total =
            TOTAL(sqrt(v), 1 / v, v / 3.7, 1 / sqrt(v), exp(v), log(v), pow(v, 1.7), sin(v), cos(v), floor(v), trunc(v),
                  rint(v), v, fma(v, v, 1), fmin(v, 1), tanh(v), fmod(v, .7), v + 1, v * v, (double)(float)v,
                  trunc(v), trunc(v));
        EXPECT(fabs(out[i] - total.sum) <= total.size * 8 * 0x1p-52, "dmath of %a is %a, not %a", v, out[i], total.sum);
    }
}
END_TEST

/* With and without fusing; where both agree, every rounding does. */
static unsigned int escape(float cx, float cy, unsigned int most, bool fused)
{
    float zx = 0, zy = 0;
    unsigned int k = 0;
    for (; k < most; k++) {
        volatile float xx = zx * zx, yy = zy * zy, sum = xx + yy, difference = xx - yy, xy = 2 * zx * zy;
        if ((fused ? fmaf(zx, zx, yy) : sum) >= 4.f)
            break;
        float t = (fused ? fmaf(zx, zx, -yy) : difference) + cx;
        zy = fused ? fmaf(2 * zx, zy, cy) : xy + cy;
        zx = t;
    }
    return k;
}

START_TEST(mandelbrot)
{
    enum { W = 60, H = 40 };
    static unsigned int out[W * H];
    int w = W, h = H, most = 24, uncertain = 0;
    float x0 = -2, y0 = -1.25f, dx = 0.0625f;
    hdrt_ptr device = ROOM(out);
    kernel_runner_launch(&runner, "mandel", (hdrt_grid){{4, 5, 1}, {16, 8, 1}, 0},
                         HDRT_ARGS(device, w, h, x0, y0, dx, most));
    TAKE(out, device);
    for (int y = 0; y < H; y++) {
        for (int x = 0; x < W; x++) {
            float cx = x0 + (float)x * dx, cy = y0 + (float)y * dx;
            unsigned int k = escape(cx, cy, (unsigned int)most, true);
            if (k != escape(cx, cy, (unsigned int)most, false))
                uncertain++;
            else
                ck_assert_uint_eq(out[y * W + x], k);
        }
    }
    ck_assert_int_lt(uncertain, W * H / 100);
}
END_TEST

START_TEST(bodies)
{
    enum { BODIES = 256 };
    float p[BODIES][4], v[BODIES][4], before[BODIES][4], step = 0.01f;
    int n = BODIES;
    for (int i = 0; i < BODIES; i++)
        for (int c = 0; c < 4; c++) {
            p[i][c] = fraction() - 0.5f;
            before[i][c] = v[i][c] = fraction() - 0.5f;
        }
    hdrt_ptr device_p = UP(p), device_v = UP(v);
    RUN("nbody", BODIES / 128, 128, device_p, device_v, n, step);
    TAKE(v, device_v);
    DROP(device_p);
    for (int i = 0; i < BODIES; i++) {
        double sum[3] = {0}, size[3] = {0};
        for (int j = 0; j < BODIES; j++) {
            double d[3], square = 1e-6;
            for (int c = 0; c < 3; c++) {
                d[c] = (double)p[j][c] - (double)p[i][c];
                square += d[c] * d[c];
            }
            for (int c = 0; c < 3; c++) {
                double term = d[c] * (double)p[j][3] / (square * sqrt(square));
                sum[c] += term;
                size[c] += fabs(term);
            }
        }
        for (int c = 0; c < 3; c++) /* rsqrtf: 2 ulp, cubed; the squares' sum and up to 256 sums of terms */
            close_to("nbody", i, v[i][c], (double)before[i][c] + (double)step * sum[c], 1,
                     (double)step * size[c] * 40 * 0x1p-23);
        ck_assert_mem_eq(&v[i][3], &before[i][3], sizeof(float));
    }
}
END_TEST

/* ---- 13 ---- */

enum { HALVES = 512 };

static uint16_t moderate(enum format format)
{
    return rounded(format, (long double)(fraction() * 8.0f - 4.0f), 'n');
}

static uint16_t sum_of(enum format format, long double exact) { return rounded(format, exact, 'n'); }
static long double value(enum format format, uint16_t bits) { return (long double)value_of(format, bits); }

START_TEST(halves)
{
    static uint16_t a[HALVES], b[HALVES], out[7 * HALVES];
    int n = HALVES;
    for (int i = 0; i < HALVES; i++) {
        a[i] = moderate(F16);
        b[i] = moderate(F16);
    }
    memset(out, 0, sizeof out);
    hdrt_ptr device_a = UP(a), device_b = UP(b), device_out = UP(out);
    RUN("hmath", HALVES / 128, 128, device_a, device_b, device_out, n);
    TAKE(out, device_out);
    DROP(device_a);
    DROP(device_b);
    for (int i = 0; i < HALVES; i++) {
        long double x = value(F16, a[i]), y = value(F16, b[i]);
        long double fused = value(F16, sum_of(F16, x * y + x)), half = value(F16, sum_of(F16, x - y)) / 2;
        const uint16_t expected[7] = {
            sum_of(F16, fused + value(F16, sum_of(F16, half))), better(F16, a[i], b[i], true), 0, sum_of(F16, x / y),
            sum_of(F16, sqrtl(x)), x > y ? a[i] ^ 0x8000 : 0, sum_of(F16, i)};
        for (int k = 0; k < 7; k++)
            if (k != 2)
                EXPECT(same(F16, out[k * HALVES + i], expected[k]), "hmath of %04x and %04x, result %d: %04x, not %04x",
                       a[i], b[i], k, out[k * HALVES + i], expected[k]);
        int distance = (int)out[2 * HALVES + i] - (int)sum_of(F16, expl(x));
        EXPECT(abs(distance) <= 1, "hexp of %04x is %04x", a[i], out[2 * HALVES + i]);
    }
}
END_TEST

START_TEST(pairs_of_halves)
{
    static uint16_t a[2 * HALVES], y[2 * HALVES], out[2 * HALVES];
    struct pair {
        uint16_t low, high;
    } __attribute__((aligned(4))) k = {moderate(F16), moderate(F16)};
    int n = HALVES;
    for (int i = 0; i < 2 * HALVES; i++) {
        a[i] = moderate(F16);
        y[i] = moderate(F16);
    }
    hdrt_ptr device_a = UP(a), device_y = UP(y);
    RUN("h2axpy", HALVES / 128, 128, device_a, device_y, k, n);
    TAKE(out, device_y);
    DROP(device_a);
    for (int i = 0; i < 2 * HALVES; i++)
        ck_assert_uint_eq(out[i],
                          sum_of(F16, value(F16, i % 2 ? k.high : k.low) * value(F16, a[i]) + value(F16, y[i])));
}
END_TEST

START_TEST(brain_floats)
{
    static uint16_t a[HALVES], out[4 * HALVES];
    static float wide[HALVES];
    int n = HALVES;
    hdrt_kernel *kernel;
    if (hdrt_module_kernel(runner.module, "bfmath", &kernel) != HDRT_OK) { /* it is for sm_80 and newer */
        const char *arch = getenv("HDRT_TEST_ARCH");
        ck_assert_msg(arch && strcmp(arch, "sm_80") < 0, "%s", hdrt_last_error());
        return;
    }
    for (int i = 0; i < HALVES; i++)
        a[i] = moderate(BF16);
    hdrt_ptr device_a = UP(a), device_out = ROOM(out), device_wide = ROOM(wide);
    RUN("bfmath", HALVES / 128, 128, device_a, device_out, device_wide, n);
    TAKE(out, device_out);
    TAKE(wide, device_wide);
    DROP(device_a);
    for (int i = 0; i < HALVES; i++) {
        long double x = value(BF16, a[i]);
        uint16_t square = sum_of(BF16, value(BF16, sum_of(BF16, x * x)) + 1);
        ck_assert_uint_eq(out[i], square);
        EXPECT((long double)wide[i] == x, "%04x widens to %a", a[i], (double)wide[i]);
        ck_assert_uint_eq(out[HALVES + i], better(BF16, a[i], square, true));
        for (int c = 0; c < 2; c++) {
            long double p = value(BF16, sum_of(BF16, (long double)(wide[i] + (float)c)));
            ck_assert_uint_eq(out[2 * (HALVES + i) + c], sum_of(BF16, p * p + p));
        }
    }
}
END_TEST

static Suite *corpus_suite(void)
{
    Suite *suite = suite_create("corpus_numbers");
    CASE(math, functions_of_floats, angles, fast_functions, directed_rounding_and_conversions, functions_of_doubles,
         mandelbrot, bodies);
    CASE(half, halves, pairs_of_halves, brain_floats);
    return suite;
}

int main(void) { return run_corpus(corpus_suite); }
