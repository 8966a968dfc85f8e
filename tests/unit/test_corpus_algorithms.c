/* SPDX-License-Identifier: MIT */
/* Scans, normalisations, stencils, random numbers, sorts, sparse matrices and graphs, against the CPU. Whole numbers
 * and fractions of two make sums exact in any order; what an approximate function is part of has its error. */
#include "corpus.h"

CORPUS(scan, "06_scan.cu")
CORPUS(normalise, "08_softmax_ln.cu")
CORPUS(stencil, "09_conv_stencil.cu")
CORPUS(integers, "10_rand_int.cu")
CORPUS(sort, "11_sort.cu")
CORPUS(sparse, "26_spmv_bfs.cu")

/* ---- 06 ---- */

START_TEST(a_scan_of_each_block)
{
    enum { N = 1000, BLOCK = 256, BLOCKS = 4 };
    int in[N], out[N], sums[BLOCKS], n = N;
    for (int i = 0; i < N; i++)
        in[i] = (int)(next() % 2001) - 1000;
    hdrt_ptr device_in = UP(in), device_out = ROOM(out), device_sums = ROOM(sums);
    RUN("scan_block", BLOCKS, BLOCK, device_in, device_out, device_sums, n);
    TAKE(out, device_out);
    TAKE(sums, device_sums);
    DROP(device_in);
    for (int i = 0, sum = 0; i < N; i++) {
        sum = i % BLOCK ? sum + in[i] : in[i];
        ck_assert_int_eq(out[i], sum);
        if (i % BLOCK == BLOCK - 1 || i == N - 1)
            ck_assert_int_eq(sums[i / BLOCK], sum);
    }
}
END_TEST

START_TEST(an_exclusive_scan)
{
    enum { N = 512 };
    float in[N], out[N], sum = 0;
    int n = N;
    for (int i = 0; i < N; i++)
        in[i] = (float)(next() % 100);
    hdrt_ptr device = UP(in);
    hdrt_grid grid = {{1, 1, 1}, {N / 2, 1, 1}, sizeof in};
    kernel_runner_launch(&runner, "scan_blelloch", grid, HDRT_ARGS(device, n));
    TAKE(out, device);
    for (int i = 0; i < N; sum += in[i++])
        EXPECT(out[i] == sum, "element %d is %g, not %g", i, (double)out[i], (double)sum);
}
END_TEST

/* ---- 08: rows of N, one warp each ---- */

enum { ROWS = 5, N_ROW = 77, ROW_ALL = ROWS * N_ROW };

static void check_softmax(const char *kernel, double ulps)
{
    float x[ROW_ALL], y[ROW_ALL];
    int n = N_ROW;
    for (int i = 0; i < ROW_ALL; i++)
        x[i] = 12.0f * fraction() - 6.0f;
    hdrt_ptr device_x = UP(x), device_y = ROOM(y);
    RUN(kernel, ROWS, 32, device_x, device_y, n);
    TAKE(y, device_y);
    DROP(device_x);
    for (int row = 0; row < ROWS; row++) {
        const float *r = x + row * N_ROW;
        double greatest = (double)r[0], sum = 0;
        for (int i = 1; i < N_ROW; i++)
            greatest = fmax(greatest, (double)r[i]);
        for (int i = 0; i < N_ROW; i++)
            sum += exp((double)r[i] - greatest);
        for (int i = 0; i < N_ROW; i++)
            close_to(kernel, i, y[row * N_ROW + i], exp((double)r[i] - greatest) / sum, ulps, 0);
    }
}

/* expf: 2 ulp, the difference before it adds half an ulp of up to 12, the sums and the quotient a few. */
START_TEST(softmax) { check_softmax("softmax", 20); }
END_TEST
/* __expf: 2 + 1.16 |x| ulp; __fdividef: 2. */
START_TEST(softmax_by_fast_functions) { check_softmax("softmax_fast", 45); }
END_TEST

START_TEST(layers_are_normalised)
{
    float x[ROW_ALL], gain[N_ROW], bias[N_ROW], y[ROW_ALL], epsilon = 1e-5f;
    int n = N_ROW;
    for (int i = 0; i < ROW_ALL; i++)
        x[i] = 4.0f * fraction() - 2.0f;
    for (int i = 0; i < N_ROW; i++) {
        gain[i] = 1.0f + fraction();
        bias[i] = fraction();
    }
    hdrt_ptr device_x = UP(x), device_gain = UP(gain), device_bias = UP(bias), device_y = ROOM(y);
    RUN("layernorm", ROWS, 32, device_x, device_gain, device_bias, device_y, n, epsilon);
    TAKE(y, device_y);
    DROP(device_x);
    DROP(device_gain);
    DROP(device_bias);
    for (int row = 0; row < ROWS; row++) {
        const float *r = x + row * N_ROW;
        double sum = 0, squares = 0;
        for (int i = 0; i < N_ROW; i++) {
            sum += (double)r[i];
            squares += (double)r[i] * (double)r[i];
        }
        double mean = sum / N_ROW, scale = 1 / sqrt(squares / N_ROW - mean * mean + (double)epsilon);
        for (int i = 0; i < N_ROW; i++)
            close_to("layernorm", i, y[row * N_ROW + i],
                     ((double)r[i] - mean) * scale * (double)gain[i] + (double)bias[i], 4, 3e-6);
    }
}
END_TEST

START_TEST(gelu)
{
    enum { N = 300 };
    float x[N], y[N];
    int n = N;
    for (int i = 0; i < N; i++)
        x[i] = 8.0f * fraction() - 4.0f;
    hdrt_ptr device_x = UP(x), device_y = ROOM(y);
    RUN("gelu", 3, 128, device_x, device_y, n);
    TAKE(y, device_y);
    DROP(device_x);
    for (int i = 0; i < N; i++) {
        double v = (double)x[i];
        close_to("gelu", i, y[i], 0.5 * v * (1 + tanh((double)0.7978845608f * (v + (double)0.044715f * v * v * v))), 4,
                 2e-6);
    }
}
END_TEST

/* ---- 09 ---- */

START_TEST(a_convolution_with_constants)
{
    enum { W = 37, H = 29 };
    float in[W * H], out[W * H], weights[25];
    int w = W, h = H;
    hdrt_ptr constants = 0;
    uint64_t bytes = 0;
    for (int i = 0; i < W * H; i++)
        in[i] = (float)(int)(next() % 17) - 8.0f;
    for (int i = 0; i < 25; i++)
        weights[i] = (float)(int)(next() % 9) * 0.25f - 1.0f;
    ck_assert_int_eq(hdrt_module_global(runner.module, "ck", &constants, &bytes), HDRT_OK);
    ck_assert_uint_eq(bytes, sizeof weights);
    ck_assert_int_eq(hdrt_copy_htod(runner.queue, constants, weights, sizeof weights), HDRT_OK);
    hdrt_ptr device_in = UP(in), device_out = ROOM(out);
    kernel_runner_launch(&runner, "conv5", (hdrt_grid){{(W + 15) / 16, (H + 15) / 16, 1}, {16, 16, 1}, 0},
                         HDRT_ARGS(device_in, device_out, w, h));
    TAKE(out, device_out);
    DROP(device_in);
    for (int y = 0; y < H; y++) {
        for (int x = 0; x < W; x++) {
            float sum = 0;
            for (int j = -2; j <= 2; j++)
                for (int i = -2; i <= 2; i++)
                    if (x + i >= 0 && x + i < W && y + j >= 0 && y + j < H)
                        sum += weights[(j + 2) * 5 + i + 2] * in[(y + j) * W + x + i];
            EXPECT(out[y * W + x] == sum, "pixel %d, %d is %g, not %g", x, y, (double)out[y * W + x], (double)sum);
        }
    }
}
END_TEST

START_TEST(a_stencil_in_three_dimensions)
{
    enum { X = 19, Y = 11, Z = 7, ALL = X * Y * Z };
    double u[ALL], v[ALL] = {0}, c = 0.125;
    int nx = X, ny = Y, nz = Z;
    for (int i = 0; i < ALL; i++)
        u[i] = (double)(int)(next() % 1000) - 500;
    hdrt_ptr device_u = UP(u), device_v = UP(v);
    kernel_runner_launch(&runner, "stencil7", (hdrt_grid){{3, 3, 4}, {8, 4, 2}, 0},
                         HDRT_ARGS(device_u, device_v, nx, ny, nz, c));
    TAKE(v, device_v);
    DROP(device_u);
    for (int z = 0; z < Z; z++) {
        for (int y = 0; y < Y; y++) {
            for (int x = 0; x < X; x++) {
                int i = (z * Y + y) * X + x;
                bool inside = x > 0 && y > 0 && z > 0 && x < X - 1 && y < Y - 1 && z < Z - 1;
                double expected = inside ? u[i] + c * (u[i - 1] + u[i + 1] + u[i - X] + u[i + X] + u[i - X * Y] +
                                                       u[i + X * Y] - 6 * u[i])
                                         : 0;
                EXPECT(v[i] == expected, "cell %d, %d, %d is %g, not %g", x, y, z, v[i], expected);
            }
        }
    }
}
END_TEST

START_TEST(life)
{
    enum { W = 50, H = 21 };
    unsigned char a[W * H], b[W * H];
    int w = W, h = H;
    for (int i = 0; i < W * H; i++)
        a[i] = next() % 3 == 0;
    hdrt_ptr device_a = UP(a), device_b = ROOM(b);
    kernel_runner_launch(&runner, "life", (hdrt_grid){{2, 3, 1}, {32, 8, 1}, 0}, HDRT_ARGS(device_a, device_b, w, h));
    TAKE(b, device_b);
    DROP(device_a);
    for (int y = 0; y < H; y++) {
        for (int x = 0; x < W; x++) {
            int neighbours = -a[y * W + x];
            for (int j = -1; j <= 1; j++)
                for (int i = -1; i <= 1; i++)
                    neighbours += a[(y + j + H) % H * W + (x + i + W) % W];
            ck_assert_int_eq(b[y * W + x], neighbours == 3 || (neighbours == 2 && a[y * W + x]));
        }
    }
}
END_TEST

/* ---- 10 ---- */

static uint32_t pcg(uint32_t v)
{
    uint32_t s = v * 747796405u + 2891336453u, w = ((s >> ((s >> 28) + 4)) ^ s) * 277803737u;
    return (w >> 22) ^ w;
}

START_TEST(random_numbers)
{
    enum { N = 1000 };
    float out[N];
    unsigned int start = 99;
    int n = N;
    hdrt_ptr device = ROOM(out);
    RUN("rnd", 8, 128, device, start, n);
    TAKE(out, device);
    for (int i = 0; i < N; i++)
        EXPECT(out[i] == (float)pcg(pcg((uint32_t)i) ^ start) * 2.3283064365386963e-10f, "number %d is %a", i,
               (double)out[i]);
}
END_TEST

START_TEST(philox)
{
    enum { N = 96 };
    uint32_t out[N][4], k0 = 0xdeadbeef, k1 = 17;
    hdrt_ptr device = ROOM(out);
    RUN("philox", 3, 32, device, k0, k1);
    TAKE(out, device);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t c[4] = {i, 0, 0, 0}, a = k0, b = k1;
        for (int round = 0; round < 10; round++, a += 0x9E3779B9u, b += 0xBB67AE85u) {
            uint64_t p = UINT64_C(0xD2511F53) * c[0], q = UINT64_C(0xCD9E8D57) * c[2];
            uint32_t mixed[4] = {(uint32_t)(q >> 32) ^ c[1] ^ a, (uint32_t)q, (uint32_t)(p >> 32) ^ c[3] ^ b,
                                 (uint32_t)p};
            memcpy(c, mixed, sizeof c);
        }
        ck_assert_mem_eq(out[i], c, sizeof c);
    }
}
END_TEST

static uint64_t reversed(uint64_t value, unsigned int bits)
{
    uint64_t result = 0;
    for (unsigned int i = 0; i < bits; i++)
        result |= (value >> i & 1) << (bits - 1 - i);
    return result;
}

START_TEST(whole_numbers_of_64_bits)
{
    enum { N = 200 };
    static const int64_t corners[] = {0, 1, -1, INT64_MAX, INT64_MIN + 1, 1ll << 32, -(1ll << 32), 0xffffffffll};
    int64_t a[N], b[N], out[N][8];
    int n = N;
    for (int i = 0; i < N; i++) {
        a[i] = i < 64 ? corners[i / 8] : (int64_t)((uint64_t)next() << 32 | next());
        b[i] = i < 64 ? corners[i % 8] : (int64_t)((uint64_t)next() << 32 | next()) >> next() % 60;
    }
    hdrt_ptr device_a = UP(a), device_b = UP(b), device_out = ROOM(out);
    RUN("int64ops", 2, 128, device_a, device_b, device_out, n);
    TAKE(out, device_out);
    DROP(device_a);
    DROP(device_b);
    for (int i = 0; i < N; i++) {
        int64_t x = a[i], y = b[i], smaller = x < y ? x : y;
        const int64_t expected[8] = {
            (int64_t)((uint64_t)x * (uint64_t)y), y ? x / y : 0, y ? x % y : 0, (int64_t)((__int128)x * y >> 64),
            x >> (y & 63), (int64_t)((uint64_t)x / ((uint64_t)y | 1)),
            __builtin_popcountll((uint64_t)x) + (y ? __builtin_clzll((uint64_t)y) : 64) + __builtin_ffsll(x),
            (int64_t)reversed((uint64_t)x, 64) ^ smaller ^ (y < 0 ? -y : y)};
        for (int k = 0; k < 8; k++)
            ck_assert_msg(out[i][k] == expected[k], "%lld and %lld, result %d: %lld, not %lld", (long long)x,
                          (long long)y, k, (long long)out[i][k], (long long)expected[k]);
    }
}
END_TEST

START_TEST(whole_numbers_of_128_bits)
{
    hdrt_kernel *division;
    for (int round = 0; round < 40; round++) {
        uint64_t in[4], out[7], quotient[2];
        for (int i = 0; i < 4; i++)
            in[i] = (uint64_t)next() << 32 | next();
        if (round % 2)
            in[2] = 0; /* a divisor of one word */
        unsigned __int128 x = (unsigned __int128)in[0] << 64 | in[1], y = (unsigned __int128)in[2] << 64 | in[3];
        hdrt_ptr device_in = UP(in), device_out = ROOM(out), device_quotient = ROOM(quotient);
        RUN("u128", 1, 1, device_in, device_out);
        bool divides = hdrt_module_kernel(runner.module, "u128div", &division) == HDRT_OK; /* not with old clangs */
        if (divides)
            RUN("u128div", 1, 1, device_in, device_quotient);
        TAKE(out, device_out);
        TAKE(quotient, device_quotient);
        DROP(device_in);
        unsigned __int128 results[4] = {x * y, x + y, x - y, x / y};
        for (int k = 0; k < 3; k++) {
            ck_assert_uint_eq(out[2 * k], (uint64_t)(results[k] >> 64));
            ck_assert_uint_eq(out[2 * k + 1], (uint64_t)results[k]);
        }
        ck_assert_uint_eq(out[6], x < y);
        if (divides) {
            ck_assert_uint_eq(quotient[0], (uint64_t)(results[3] >> 64));
            ck_assert_uint_eq(quotient[1], (uint64_t)results[3]);
        }
    }
}
END_TEST

static uint32_t byte(uint32_t value, int i) { return value >> 8 * i & 0xff; }
static uint32_t distance(int64_t a, int64_t b) { return (uint32_t)(a > b ? a - b : b - a); }

/* The sum that kernel "bits" makes of two words. */
static uint32_t bits(uint32_t x, uint32_t y)
{
    int32_t sx = (int32_t)x, sy = (int32_t)y;
    uint32_t sum = (uint32_t)__builtin_popcount(x) + (x ? (uint32_t)__builtin_clz(x) : 32);
    uint64_t both = (uint64_t)y << 32 | x;
    unsigned int shift = y < 32 ? y : 32;
    uint32_t added = 0, apart = 0, dot = 7;
    sum += (uint32_t)__builtin_ffs(sx) + (uint32_t)reversed(x, 32);
    sum += byte(x, 1) << 24 | byte(x, 3) << 16 | byte(y, 1) << 8 | byte(y, 3); /* selector 0x1357 */
    sum += (uint32_t)(both << 7 >> 32) + (uint32_t)(both >> shift);
    sum += distance(sx, sy) + 1 + (uint32_t)((int32_t)(x << 8) >> 8) * (uint32_t)((int32_t)(y << 8) >> 8);
    sum += distance(x, y) + 3;
    for (int i = 0; i < 4; i++) {
        added |= ((byte(x, i) + byte(y, i)) & 0xff) << 8 * i;
        apart |= distance(byte(x, i), byte(y, i)) << 8 * i;
        dot += byte(x, i) * byte(y, i);
    }
    sum += added + apart + dot + (uint32_t)(((uint64_t)x + y) >> 1) + x / 7 + x % 10;
    return sum + (uint32_t)(((int64_t)sx + sy + 1) >> 1) + (x >> 5 & 0x1ff) + (uint32_t)((int32_t)(x << 7) >> 20);
}

START_TEST(operations_on_bits)
{
    enum { N = 500 };
    static const uint32_t corners[] = {0, 1, 0xffffffff, 0x80000000, 0x7fffffff, 31, 32, 33, 0xff, 0x00ff00ff};
    uint32_t in[N], out[N];
    int n = N;
    for (int i = 0; i < N; i++)
        in[i] = i < 100 && i % 2 ? corners[i / 2 % 10] : i < 50 ? corners[i / 10] : next();
    hdrt_ptr device_in = UP(in), device_out = ROOM(out);
    RUN("bits", 4, 128, device_in, device_out, n);
    TAKE(out, device_out);
    DROP(device_in);
    for (int i = 0; i < N; i++)
        ck_assert_msg(out[i] == bits(in[i], in[(i + 1) % N]), "%08x and %08x: %08x, not %08x", in[i], in[(i + 1) % N],
                      out[i], bits(in[i], in[(i + 1) % N]));
}
END_TEST

/* ---- 11 ---- */

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

START_TEST(a_sort_step_by_step)
{
    enum { N = 1024 };
    uint32_t keys[N], sorted[N];
    for (int i = 0; i < N; i++)
        keys[i] = next() % 700;
    hdrt_ptr device = UP(keys);
    for (int k = 2; k <= N; k *= 2)
        for (int j = k / 2; j > 0; j /= 2)
            RUN("bitonic", 4, 256, device, j, k);
    TAKE(sorted, device);
    qsort(keys, N, sizeof *keys, by_value);
    ck_assert_mem_eq(sorted, keys, sizeof keys);
}
END_TEST

START_TEST(a_sort_in_shared_memory)
{
    enum { N = 1024, BLOCKS = 3 };
    float keys[BLOCKS * N], sorted[BLOCKS * N];
    for (int i = 0; i < BLOCKS * N; i++)
        keys[i] = fraction(); /* positive: ordered as their bits are */
    hdrt_ptr device = UP(keys);
    RUN("bitonic_sm", BLOCKS, N, device);
    TAKE(sorted, device);
    for (int block = 0; block < BLOCKS; block++)
        qsort(keys + block * N, N, sizeof *keys, by_value);
    ck_assert_mem_eq(sorted, keys, sizeof keys);
}
END_TEST

START_TEST(digits_are_counted)
{
    enum { N = 5000, BLOCKS = 4 };
    uint32_t in[N], counts[16 * BLOCKS], expected[16 * BLOCKS] = {0};
    int shift = 8, n = N;
    for (int i = 0; i < N; i++) {
        in[i] = next() & next();
        expected[(in[i] >> shift & 15) * BLOCKS + (uint32_t)(i / 128 % BLOCKS)]++;
    }
    hdrt_ptr device_in = UP(in), device_counts = ROOM(counts);
    RUN("radix_pass", BLOCKS, 128, device_in, device_counts, shift, n);
    TAKE(counts, device_counts);
    DROP(device_in);
    ck_assert_mem_eq(counts, expected, sizeof counts);
}
END_TEST

/* ---- 26: a random graph, as rows of columns ---- */

enum { NODES = 200, EDGES = NODES * 40 };
static int row[NODES + 1], column[EDGES];

static void make_graph(unsigned int most)
{
    for (int i = 0; i < NODES; i++) {
        int degree = (int)(next() % most);
        row[i + 1] = row[i] + degree;
        for (int j = row[i]; j < row[i + 1]; j++)
            column[j] = (int)(next() % NODES);
    }
}

START_TEST(a_sparse_product)
{
    double values[EDGES], x[NODES], y[NODES];
    int n = NODES;
    make_graph(40);
    for (int i = 0; i < EDGES; i++)
        values[i] = (double)(next() % 64) - 32;
    for (int i = 0; i < NODES; i++)
        x[i] = (double)(next() % 64) * 0.5;
    hdrt_ptr device_row = UP(row), device_column = UP(column), device_values = UP(values), device_x = UP(x),
             device_y = ROOM(y);
    RUN("spmv_csr", NODES * 32 / 128, 128, device_row, device_column, device_values, device_x, device_y, n);
    TAKE(y, device_y);
    DROP(device_row);
    DROP(device_column);
    DROP(device_values);
    DROP(device_x);
    for (int i = 0; i < NODES; i++) {
        double sum = 0;
        for (int j = row[i]; j < row[i + 1]; j++)
            sum += values[j] * x[column[j]];
        EXPECT(y[i] == sum, "row %d is %g, not %g", i, y[i], sum);
    }
}
END_TEST

START_TEST(a_breadth_first_search)
{
    int distances[NODES], expected[NODES], changed = 1, n = NODES;
    make_graph(4);
    memset(expected, 0xff, sizeof expected);
    expected[0] = 0;
    memcpy(distances, expected, sizeof distances);
    hdrt_ptr device_row = UP(row), device_column = UP(column), device_distances = UP(distances);
    for (int level = 0; changed; level++) {
        changed = 0;
        hdrt_ptr device_changed = kernel_runner_upload(&runner, &changed, sizeof changed);
        RUN("bfs", 2, 128, device_row, device_column, device_distances, level, n, device_changed);
        kernel_runner_take(&runner, &changed, device_changed, sizeof changed);
        int found = 0;
        for (int i = 0; i < NODES; i++)
            for (int j = row[i]; expected[i] == level && j < row[i + 1]; j++)
                if (expected[column[j]] == -1) {
                    expected[column[j]] = level + 1;
                    found = 1;
                }
        ck_assert_int_eq(changed, found);
    }
    TAKE(distances, device_distances);
    DROP(device_row);
    DROP(device_column);
    ck_assert_mem_eq(distances, expected, sizeof distances);
}
END_TEST

static double normal(double x) { return 0.5 * erfc(-x / sqrt(2)); }

START_TEST(prices_of_options)
{
    enum { N = 200 };
    float spot[N], strike[N], years[N], call[N], rate = 0.03f, volatility = 0.25f;
    int n = N;
    for (int i = 0; i < N; i++) {
        spot[i] = 80.0f + 40.0f * fraction();
        strike[i] = 80.0f + 40.0f * fraction();
        years[i] = 0.25f + 2.0f * fraction();
    }
    hdrt_ptr device_spot = UP(spot), device_strike = UP(strike), device_years = UP(years), device_call = ROOM(call);
    RUN("bscholes", 2, 128, device_spot, device_strike, device_years, device_call, rate, volatility, n);
    TAKE(call, device_call);
    DROP(device_spot);
    DROP(device_strike);
    DROP(device_years);
    for (int i = 0; i < N; i++) {
        double s = (double)spot[i], k = (double)strike[i], t = (double)years[i], v = (double)volatility;
        double first = (log(s / k) + ((double)rate + 0.5 * v * v) * t) / (v * sqrt(t)), second = first - v * sqrt(t);
        /* each of two terms of up to 100 has a few roundings of 2^-24 and normcdff's 5 ulp */
        close_to("bscholes", i, call[i], s * normal(first) - k * exp(-(double)rate * t) * normal(second), 0, 2e-4);
    }
}
END_TEST

static void transform(double (*data)[2], int n)
{
    for (int s = 1; s < n; s *= 2)
        for (int i = 0; i < n / 2; i++) {
            int k = i & (s - 1), b = i / s * 2 * s + k;
            double angle = -M_PI * k / s, c = cos(angle), d = sin(angle);
            double x = data[b + s][0] * c - data[b + s][1] * d, y = data[b + s][0] * d + data[b + s][1] * c;
            data[b + s][0] = data[b][0] - x;
            data[b + s][1] = data[b][1] - y;
            data[b][0] += x;
            data[b][1] += y;
        }
}

START_TEST(a_fourier_transform)
{
    enum { N = 256 };
    float data[N][2];
    double expected[N][2];
    int n = N;
    for (int i = 0; i < N; i++)
        for (int c = 0; c < 2; c++)
            expected[i][c] = (double)(data[i][c] = fraction() - 0.5f);
    hdrt_ptr device = UP(data);
    for (int s = 1; s < N; s *= 2)
        RUN("fft_radix2", 1, N / 2, device, n, s);
    TAKE(data, device);
    transform(expected, N);
    for (int i = 0; i < N; i++) /* __sincosf: absolutely 2^-21; eight stages, each on sums of up to 256 halves */
        for (int c = 0; c < 2; c++)
            close_to("fft_radix2", i, data[i][c], expected[i][c], 0, 8 * 0x1p-21 * 16);
}
END_TEST

static uint32_t rotated(uint32_t value, unsigned int left) { return value << left | value >> ((32 - left) & 31); }

START_TEST(a_hash)
{
    enum { N = 64 };
    uint32_t in[N][4], out[N][4];
    for (int i = 0; i < N; i++)
        for (int c = 0; c < 4; c++)
            in[i][c] = next();
    hdrt_ptr device_in = UP(in), device_out = ROOM(out);
    RUN("sha1ish", 1, N, device_in, device_out);
    TAKE(out, device_out);
    DROP(device_in);
    for (int i = 0; i < N; i++) {
        uint32_t a[4];
        memcpy(a, in[i], sizeof a);
        for (uint32_t r = 0; r < 64; r++) {
            uint32_t f = (a[0] & a[1]) ^ (~a[0] & a[2]) ^ rotated(a[3], 32 - (7 + r % 5));
            uint32_t mixed[4] = {f + a[3] + 0x5a827999u * r, a[0], rotated(a[1], 30), a[2]};
            memcpy(a, mixed, sizeof a);
        }
        ck_assert_mem_eq(out[i], a, sizeof a);
    }
}
END_TEST

static Suite *corpus_suite(void)
{
    Suite *suite = suite_create("corpus_algorithms");
    CASE(scan, a_scan_of_each_block, an_exclusive_scan);
    CASE(normalise, softmax, softmax_by_fast_functions, layers_are_normalised, gelu);
    CASE(stencil, a_convolution_with_constants, a_stencil_in_three_dimensions, life);
    CASE(integers, random_numbers, philox, whole_numbers_of_64_bits, whole_numbers_of_128_bits, operations_on_bits);
    CASE(sort, a_sort_step_by_step, a_sort_in_shared_memory, digits_are_counted);
    CASE(sparse, a_sparse_product, a_breadth_first_search, prices_of_options, a_fourier_transform, a_hash);
    return suite;
}

int main(void) { return run_corpus(corpus_suite); }
