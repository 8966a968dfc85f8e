/* SPDX-License-Identifier: MIT */
#include "soft_kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char head[] = ".version 7.0\n.target sm_70\n.address_size 64\n";

/* PTX text that grows. */
typedef struct text {
    char *bytes;
    size_t length, capacity;
} text;

static void append(text *to, const char *piece)
{
    size_t length = strlen(piece);
    if (to->length + length + 1 > to->capacity) {
        to->capacity = 2 * (to->length + length + 1);
        to->bytes = realloc(to->bytes, to->capacity);
        if (!to->bytes)
            abort();
    }
    memcpy(to->bytes + to->length, piece, length + 1);
    to->length += length;
}

/* Instructions of a piece without directives: one per semicolon. */
static uint64_t count(const char *piece)
{
    uint64_t instructions = 0;
    for (; *piece; piece++)
        instructions += *piece == ';';
    return instructions;
}

/* Fractions in [0, 1), the same each time. */
static float fraction(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) * 0x1p-24f;
}

static void fill_fractions(float *values, size_t length, uint32_t seed)
{
    for (size_t i = 0; i < length; i++)
        values[i] = fraction(&seed) - 0.5f;
}

/* ---- saxpy: y = a x + y, one element for each thread ---- */

enum { SAXPY_N = 1 << 20, SAXPY_BLOCK = 256 };
static int saxpy_n = SAXPY_N;
static float saxpy_a = 1.25f;

static const char saxpy_declarations[] =
    ".visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y)\n{\n"
    ".reg .pred %p<3>;\n.reg .b32 %r<9>;\n.reg .f32 %f<5>;\n.reg .b64 %rd<8>;\n";
static const char saxpy_body[] =
    "ld.param.u32 %r6, [n];\nmov.u32 %r7, %ctaid.x;\nmov.u32 %r1, %ntid.x;\nmov.u32 %r8, %tid.x;\n"
    "mad.lo.s32 %r2, %r7, %r1, %r8;\nsetp.ge.s32 %p1, %r2, %r6;\n@%p1 bra $done;\n"
    "ld.param.f32 %f1, [a];\nld.param.u64 %rd3, [y];\ncvta.to.global.u64 %rd1, %rd3;\nld.param.u64 %rd4, [x];\n"
    "cvta.to.global.u64 %rd2, %rd4;\nmov.u32 %r5, %nctaid.x;\nmul.lo.s32 %r3, %r5, %r1;\n$next:\n"
    "mul.wide.s32 %rd5, %r2, 4;\nadd.s64 %rd6, %rd2, %rd5;\nld.global.nc.f32 %f2, [%rd6];\n"
    "add.s64 %rd7, %rd1, %rd5;\nld.global.f32 %f3, [%rd7];\nfma.rn.f32 %f4, %f2, %f1, %f3;\n"
    "st.global.f32 [%rd7], %f4;\nadd.s32 %r2, %r2, %r3;\nsetp.lt.s32 %p2, %r2, %r6;\n@%p2 bra $next;\n"
    "$done:\nret;\n";

static char *saxpy_ptx(void *const input[SOFT_BUFFERS], uint64_t *out_instructions)
{
    text ptx = {0};
    (void)input;
    append(&ptx, head);
    append(&ptx, saxpy_declarations);
    append(&ptx, saxpy_body);
    append(&ptx, "}\n");
    *out_instructions = SAXPY_N * count(saxpy_body);
    return ptx.bytes;
}

static void saxpy_fill(void *const input[SOFT_BUFFERS])
{
    fill_fractions(input[0], SAXPY_N, 1);
    fill_fractions(input[1], SAXPY_N, 2);
}

static void saxpy_arguments(hdcu_pointer buffers[SOFT_BUFFERS], void *arguments[SOFT_ARGUMENTS])
{
    arguments[0] = &saxpy_n;
    arguments[1] = &saxpy_a;
    arguments[2] = &buffers[0];
    arguments[3] = &buffers[1];
}

static bool saxpy_check(void *const input[SOFT_BUFFERS], const void *result)
{
    const float *x = input[0], *y = input[1], *got = result;
    for (size_t i = 0; i < SAXPY_N; i++)
        if (got[i] != fmaf(x[i], saxpy_a, y[i]))
            return false;
    return true;
}

/* ---- matmul: c = a b, tiles of 16 x 16 in shared memory ---- */

enum { MATMUL_N = 256, TILE = 16 };
static int matmul_n = MATMUL_N;

static const char matmul_declarations[] =
    ".visible .entry matmul(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n"
    ".reg .pred %p<3>;\n.reg .b32 %r<24>;\n.reg .f32 %f<6>;\n.reg .b64 %rd<21>;\n"
    ".shared .align 4 .b8 tile_a[1024];\n.shared .align 4 .b8 tile_b[1024];\n";
static const char matmul_begin[] =
    "ld.param.u32 %r13, [n];\nld.param.u64 %rd9, [c];\ncvta.to.global.u64 %rd1, %rd9;\nmov.u32 %r1, %tid.x;\n"
    "mov.u32 %r2, %tid.y;\nmov.u32 %r14, %ctaid.y;\nshl.b32 %r15, %r14, 4;\nadd.s32 %r16, %r15, %r2;\n"
    "mov.u32 %r17, %ctaid.x;\nshl.b32 %r3, %r17, 4;\nadd.s32 %r4, %r3, %r1;\nmul.lo.s32 %r5, %r16, %r13;\n"
    "ld.param.u64 %rd8, [a];\nld.param.u64 %rd10, [b];\ncvta.to.global.u64 %rd2, %rd10;\n"
    "cvta.to.global.u64 %rd3, %rd8;\nmul.wide.u32 %rd11, %r2, 64;\nmov.u64 %rd12, tile_a;\n"
    "add.s64 %rd6, %rd12, %rd11;\nmul.wide.u32 %rd13, %r1, 4;\nadd.s64 %rd4, %rd6, %rd13;\nmov.u64 %rd14, tile_b;\n"
    "add.s64 %rd7, %rd14, %rd13;\nadd.s64 %rd5, %rd7, %rd11;\nmad.lo.s32 %r19, %r2, %r13, %r1;\n"
    "add.s32 %r22, %r19, %r3;\nshl.b32 %r7, %r13, 4;\nadd.s32 %r8, %r1, %r5;\nmov.f32 %f5, 0f00000000;\n"
    "mov.b32 %r23, 0;\n";
static const char matmul_load[] =
    "add.s32 %r20, %r8, %r23;\nmul.wide.s32 %rd15, %r20, 4;\nadd.s64 %rd16, %rd3, %rd15;\nld.global.f32 %f1, [%rd16];\n"
    "st.shared.f32 [%rd4], %f1;\nmul.wide.s32 %rd17, %r22, 4;\nadd.s64 %rd18, %rd2, %rd17;\n"
    "ld.global.f32 %f2, [%rd18];\nst.shared.f32 [%rd5], %f2;\nbar.sync 0;\n";
static const char matmul_next[] =
    "bar.sync 0;\nadd.s32 %r23, %r23, 16;\nadd.s32 %r22, %r22, %r7;\nsetp.lt.s32 %p2, %r23, %r13;\n@%p2 bra $tile;\n";
static const char matmul_end[] =
    "add.s32 %r21, %r5, %r4;\nmul.wide.s32 %rd19, %r21, 4;\nadd.s64 %rd20, %rd1, %rd19;\nst.global.f32 [%rd20], %f5;\n"
    "ret;\n";

static char *matmul_ptx(void *const input[SOFT_BUFFERS], uint64_t *out_instructions)
{
    text ptx = {0};
    uint64_t product = 0;
    (void)input;
    append(&ptx, head);
    append(&ptx, matmul_declarations);
    append(&ptx, matmul_begin);
    append(&ptx, "$tile:\n");
    append(&ptx, matmul_load);
    for (int j = 0; j < TILE; j++) {
        char step[160];
        snprintf(step, sizeof step, "ld.shared.f32 %%f3, [%%rd6+%d];\nld.shared.f32 %%f4, [%%rd7+%d];\n"
                 "fma.rn.f32 %%f5, %%f3, %%f4, %%f5;\n", 4 * j, 4 * TILE * j);
        append(&ptx, step);
        product += count(step);
    }
    append(&ptx, matmul_next);
    append(&ptx, matmul_end);
    append(&ptx, "}\n");
    *out_instructions = (uint64_t)MATMUL_N * MATMUL_N *
                        (count(matmul_begin) + count(matmul_end) +
                         MATMUL_N / TILE * (count(matmul_load) + product + count(matmul_next)));
    return ptx.bytes;
}

static void matmul_fill(void *const input[SOFT_BUFFERS])
{
    fill_fractions(input[0], MATMUL_N * MATMUL_N, 3);
    fill_fractions(input[1], MATMUL_N * MATMUL_N, 4);
    memset(input[2], 0, MATMUL_N * MATMUL_N * sizeof(float));
}

static void matmul_arguments(hdcu_pointer buffers[SOFT_BUFFERS], void *arguments[SOFT_ARGUMENTS])
{
    arguments[0] = &buffers[0];
    arguments[1] = &buffers[1];
    arguments[2] = &buffers[2];
    arguments[3] = &matmul_n;
}

static bool matmul_check(void *const input[SOFT_BUFFERS], const void *result)
{
    const float *a = input[0], *b = input[1], *got = result;
    for (size_t row = 0; row < MATMUL_N; row++) {
        for (size_t column = 0; column < MATMUL_N; column++) {
            float sum = 0;
            for (size_t k = 0; k < MATMUL_N; k++)
                sum = fmaf(a[row * MATMUL_N + k], b[k * MATMUL_N + column], sum);
            if (got[row * MATMUL_N + column] != sum)
                return false;
        }
    }
    return true;
}

/* ---- nbody: each of n bodies is drawn by all, 128 of them in shared memory at a time ---- */

enum { NBODY_N = 2048, NBODY_BLOCK = 128, NBODY_UNROLL = 8 };
static int nbody_n = NBODY_N;
static float nbody_step = 0.01f;

static const char nbody_declarations[] =
    ".visible .entry nbody(.param .u64 p, .param .u64 v, .param .u32 n, .param .f32 dt)\n{\n"
    ".reg .pred %p<4>;\n.reg .b32 %r<12>;\n.reg .f32 %f<32>;\n.reg .b64 %rd<26>;\n"
    ".shared .align 16 .b8 bodies[2048];\n";
static const char nbody_begin[] =
    "ld.param.f32 %f31, [dt];\nld.param.u32 %r4, [n];\nld.param.u64 %rd8, [v];\ncvta.to.global.u64 %rd1, %rd8;\n"
    "mov.u32 %r5, %ctaid.x;\nshl.b32 %r6, %r5, 7;\nmov.u32 %r1, %tid.x;\nadd.s32 %r7, %r6, %r1;\n"
    "ld.param.u64 %rd7, [p];\ncvta.to.global.u64 %rd2, %rd7;\nmul.wide.s32 %rd9, %r7, 16;\nadd.s64 %rd10, %rd2, %rd9;\n"
    "ld.global.v2.f32 {%f1, %f2}, [%rd10];\nld.global.f32 %f3, [%rd10+8];\nmul.wide.u32 %rd11, %r1, 16;\n"
    "mov.u64 %rd12, bodies;\nadd.s64 %rd4, %rd12, %rd11;\nmov.b32 %r11, 0;\nmov.f32 %f28, 0f00000000;\n"
    "mov.f32 %f29, %f28;\nmov.f32 %f30, %f28;\n";
static const char nbody_load[] =
    "add.s32 %r9, %r11, %r1;\nmul.wide.u32 %rd14, %r9, 16;\nadd.s64 %rd15, %rd2, %rd14;\n"
    "ld.global.u64 %rd16, [%rd15+8];\nst.shared.u64 [%rd4+8], %rd16;\nld.global.u64 %rd17, [%rd15];\n"
    "st.shared.u64 [%rd4], %rd17;\nbar.sync 0;\nmov.u64 %rd22, 0;\n";
static const char nbody_pair[] = /* behind the load of %f4 to %f7 */
    "sub.f32 %f8, %f4, %f1;\nsub.f32 %f9, %f5, %f2;\nsub.f32 %f10, %f6, %f3;\nmul.f32 %f11, %f9, %f9;\n"
    "fma.rn.f32 %f12, %f8, %f8, %f11;\nfma.rn.f32 %f13, %f10, %f10, %f12;\nadd.f32 %f14, %f13, 0f358637BD;\n"
    "rsqrt.approx.f32 %f15, %f14;\nmul.f32 %f16, %f15, %f7;\nmul.f32 %f17, %f15, %f16;\nmul.f32 %f18, %f15, %f17;\n"
    "fma.rn.f32 %f28, %f8, %f18, %f28;\nfma.rn.f32 %f29, %f9, %f18, %f29;\nfma.rn.f32 %f30, %f10, %f18, %f30;\n";
static const char nbody_inner[] = "add.s64 %rd22, %rd22, 128;\nsetp.ne.s64 %p2, %rd22, 2048;\n@%p2 bra $pairs;\n";
static const char nbody_next[] =
    "bar.sync 0;\nadd.s32 %r11, %r11, 128;\nsetp.lt.s32 %p3, %r11, %r4;\n@%p3 bra $bodies;\n";
static const char nbody_end[] =
    "add.s64 %rd20, %rd1, %rd9;\nld.global.v2.f32 {%f4, %f5}, [%rd20];\nfma.rn.f32 %f4, %f28, %f31, %f4;\n"
    "fma.rn.f32 %f5, %f29, %f31, %f5;\nst.global.v2.f32 [%rd20], {%f4, %f5};\nld.global.f32 %f6, [%rd20+8];\n"
    "fma.rn.f32 %f6, %f30, %f31, %f6;\nst.global.f32 [%rd20+8], %f6;\nret;\n";

static char *nbody_ptx(void *const input[SOFT_BUFFERS], uint64_t *out_instructions)
{
    text ptx = {0};
    uint64_t pairs = 1; /* the address */
    (void)input;
    append(&ptx, head);
    append(&ptx, nbody_declarations);
    append(&ptx, nbody_begin);
    append(&ptx, "$bodies:\n");
    append(&ptx, nbody_load);
    append(&ptx, "$pairs:\nadd.s64 %rd19, %rd12, %rd22;\n");
    for (int j = 0; j < NBODY_UNROLL; j++) {
        char load[80];
        snprintf(load, sizeof load, "ld.shared.v4.f32 {%%f4, %%f5, %%f6, %%f7}, [%%rd19+%d];\n", 16 * j);
        append(&ptx, load);
        append(&ptx, nbody_pair);
        pairs += count(load) + count(nbody_pair);
    }
    append(&ptx, nbody_inner);
    append(&ptx, nbody_next);
    append(&ptx, nbody_end);
    append(&ptx, "}\n");
    pairs = NBODY_BLOCK / NBODY_UNROLL * (pairs + count(nbody_inner));
    *out_instructions = NBODY_N * (count(nbody_begin) + count(nbody_end) +
                                   NBODY_N / NBODY_BLOCK * (count(nbody_load) + pairs + count(nbody_next)));
    return ptx.bytes;
}

static void nbody_fill(void *const input[SOFT_BUFFERS])
{
    fill_fractions(input[0], 4 * NBODY_N, 5);
    fill_fractions(input[1], 4 * NBODY_N, 6);
}

static void nbody_arguments(hdcu_pointer buffers[SOFT_BUFFERS], void *arguments[SOFT_ARGUMENTS])
{
    arguments[0] = &buffers[0];
    arguments[1] = &buffers[1];
    arguments[2] = &nbody_n;
    arguments[3] = &nbody_step;
}

/* rsqrt.approx is within 2^-22.9; the sums are compared with what their terms' sizes allow. */
static bool nbody_check(void *const input[SOFT_BUFFERS], const void *result)
{
    const float(*p)[4] = input[0], (*v)[4] = input[1], (*got)[4] = result;
    for (size_t i = 0; i < NBODY_N; i += 37) {
        double sum[3] = {0}, size[3] = {0};
        for (size_t j = 0; j < NBODY_N; j++) {
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
        for (int c = 0; c < 3; c++) {
            double expected = (double)v[i][c] + sum[c] * (double)nbody_step;
            if (!(fabs((double)got[i][c] - expected) <= size[c] * (double)nbody_step * 1e-5 + 1e-6))
                return false;
        }
    }
    return true;
}

/* ---- bitonic: 1024 numbers sorted in shared memory by each block ---- */

enum { BITONIC_N = 1024, BITONIC_BLOCKS = 32 };

static const char bitonic_declarations[] =
    ".visible .entry bitonic(.param .u64 d)\n{\n.reg .pred %p<9>;\n.reg .b32 %r<15>;\n.reg .f32 %f<5>;\n"
    ".reg .b64 %rd<11>;\n.shared .align 4 .b8 keys[4096];\n";
static const char bitonic_begin[] =
    "ld.param.u64 %rd4, [d];\ncvta.to.global.u64 %rd5, %rd4;\nmov.u32 %r1, %tid.x;\nmov.u32 %r10, %ctaid.x;\n"
    "shl.b32 %r11, %r10, 10;\nor.b32 %r12, %r11, %r1;\nmul.wide.u32 %rd6, %r12, 4;\nadd.s64 %rd1, %rd5, %rd6;\n"
    "ld.global.f32 %f3, [%rd1];\nmul.wide.u32 %rd7, %r1, 4;\nmov.u64 %rd8, keys;\nadd.s64 %rd2, %rd8, %rd7;\n"
    "st.shared.f32 [%rd2], %f3;\nmov.b32 %r13, 2;\n";
static const char bitonic_size[] = "shr.s32 %r14, %r13, 1;\nand.b32 %r4, %r13, %r1;\nsetp.ne.s32 %p3, %r4, 0;\n";
static const char bitonic_step[] =
    "mov.u32 %r6, %r14;\nbar.sync 0;\nxor.b32 %r7, %r6, %r1;\nsetp.le.s32 %p2, %r7, %r1;\n@%p2 bra $passed;\n";
static const char bitonic_compare[] =
    "ld.shared.f32 %f1, [%rd2];\nmul.wide.u32 %rd9, %r7, 4;\nadd.s64 %rd3, %rd8, %rd9;\nld.shared.f32 %f2, [%rd3];\n"
    "setp.gt.f32 %p4, %f1, %f2;\nxor.pred %p5, %p3, %p4;\nnot.pred %p6, %p5;\n@%p6 bra $passed;\n";
static const char bitonic_swap[] = "st.shared.f32 [%rd2], %f2;\nst.shared.f32 [%rd3], %f1;\n";
static const char bitonic_passed[] = "shr.u32 %r14, %r6, 1;\nsetp.ge.u32 %p7, %r6, 2;\n@%p7 bra $step;\n";
static const char bitonic_next[] = "shl.b32 %r13, %r13, 1;\nsetp.lt.s32 %p8, %r13, 1025;\n@%p8 bra $size;\n";
static const char bitonic_end[] = "bar.sync 0;\nld.shared.f32 %f4, [%rd2];\nst.global.f32 [%rd1], %f4;\nret;\n";

/* Sorts one block's numbers as the kernel does; answers the instructions of its threads. */
static uint64_t bitonic_sort(float *keys)
{
    uint64_t executed = BITONIC_N * (count(bitonic_begin) + count(bitonic_end));
    for (unsigned size = 2; size <= BITONIC_N; size *= 2) {
        executed += BITONIC_N * (count(bitonic_size) + count(bitonic_next));
        for (unsigned step = size / 2; step > 0; step /= 2) {
            executed += BITONIC_N * (count(bitonic_step) + count(bitonic_passed));
            for (unsigned t = 0; t < BITONIC_N; t++) {
                unsigned other = t ^ step;
                if (other <= t)
                    continue;
                executed += count(bitonic_compare);
                if ((keys[t] > keys[other]) == ((t & size) != 0))
                    continue;
                executed += count(bitonic_swap);
                float key = keys[t];
                keys[t] = keys[other];
                keys[other] = key;
            }
        }
    }
    return executed;
}

static char *bitonic_ptx(void *const input[SOFT_BUFFERS], uint64_t *out_instructions)
{
    const char *const pieces[] = {head, bitonic_declarations, bitonic_begin, "$size:\n", bitonic_size, "$step:\n",
                                  bitonic_step, bitonic_compare, bitonic_swap, "$passed:\n", bitonic_passed,
                                  bitonic_next, bitonic_end, "}\n"};
    text ptx = {0};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        append(&ptx, pieces[i]);
    *out_instructions = 0;
    for (size_t block = 0; block < BITONIC_BLOCKS; block++) {
        float keys[BITONIC_N];
        memcpy(keys, (const float *)input[0] + block * BITONIC_N, sizeof keys);
        *out_instructions += bitonic_sort(keys);
    }
    return ptx.bytes;
}

static void bitonic_fill(void *const input[SOFT_BUFFERS])
{
    fill_fractions(input[0], BITONIC_N * BITONIC_BLOCKS, 7);
}

static void bitonic_arguments(hdcu_pointer buffers[SOFT_BUFFERS], void *arguments[SOFT_ARGUMENTS])
{
    arguments[0] = &buffers[0];
}

static bool bitonic_check(void *const input[SOFT_BUFFERS], const void *result)
{
    for (size_t block = 0; block < BITONIC_BLOCKS; block++) {
        float keys[BITONIC_N];
        memcpy(keys, (const float *)input[0] + block * BITONIC_N, sizeof keys);
        bitonic_sort(keys);
        for (size_t i = 1; i < BITONIC_N; i++)
            if (keys[i - 1] > keys[i])
                return false;
        if (memcmp(keys, (const float *)result + block * BITONIC_N, sizeof keys) != 0)
            return false;
    }
    return true;
}

const soft_kernel soft_kernels[] = {
    {"saxpy", 0.6, {SAXPY_N / SAXPY_BLOCK, 1, 1}, {SAXPY_BLOCK, 1, 1}, {SAXPY_N * 4, SAXPY_N * 4, 0},
     saxpy_ptx, saxpy_fill, saxpy_arguments, 1, saxpy_check},
    {"matmul", 0.6, {MATMUL_N / TILE, MATMUL_N / TILE, 1}, {TILE, TILE, 1},
     {MATMUL_N * MATMUL_N * 4, MATMUL_N * MATMUL_N * 4, MATMUL_N * MATMUL_N * 4},
     matmul_ptx, matmul_fill, matmul_arguments, 2, matmul_check},
    {"nbody", 0.6, {NBODY_N / NBODY_BLOCK, 1, 1}, {NBODY_BLOCK, 1, 1}, {NBODY_N * 16, NBODY_N * 16, 0},
     nbody_ptx, nbody_fill, nbody_arguments, 1, nbody_check},
    {"bitonic", 1.2, {BITONIC_BLOCKS, 1, 1}, {BITONIC_N, 1, 1}, {BITONIC_BLOCKS * BITONIC_N * 4, 0, 0},
     bitonic_ptx, bitonic_fill, bitonic_arguments, 0, bitonic_check},
};
const unsigned soft_kernel_count = sizeof soft_kernels / sizeof soft_kernels[0];
