/* SPDX-License-Identifier: MIT */
/* Every operation of f16 and bf16 that has one right answer, and some that have a close one. Results of operation k lie
 * at out[k * n + i]; the host's list is in the same order. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T> static __device__ void exact_operations(const T *a, const T *b, const T *c, T *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    T x = a[i], y = b[i], z = c[i];
    out[i] = x + y;
    out[n + i] = x - y;
    out[2 * n + i] = x * y;
    out[3 * n + i] = x / y;
    out[4 * n + i] = __hfma(x, y, z);
    out[5 * n + i] = hsqrt(x);
    out[6 * n + i] = __hmin(x, y);
    out[7 * n + i] = __hmax_nan(x, y);
    out[8 * n + i] = hrint(x);
    out[9 * n + i] = __hadd_sat(x, y);
    out[10 * n + i] = __hfma_relu(x, y, z);
}

extern "C" __global__ void f16_operations(const __half *a, const __half *b, const __half *c, __half *out, int n)
{
    exact_operations(a, b, c, out, n);
}

extern "C" __global__ void bf16_operations(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const __nv_bfloat16 *c,
                                           __nv_bfloat16 *out, int n)
{
    exact_operations(a, b, c, out, n);
}

/* Two at once: the same bits as one by one. */
template <class T2> static __device__ void pair_operations(const T2 *a, const T2 *b, const T2 *c, T2 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    T2 x = a[i], y = b[i], z = c[i];
    out[i] = __hadd2(x, y);
    out[n + i] = __hsub2(x, y);
    out[2 * n + i] = __hmul2(x, y);
    out[3 * n + i] = __h2div(x, y);
    out[4 * n + i] = __hfma2(x, y, z);
    out[5 * n + i] = h2sqrt(x);
    out[6 * n + i] = __hmin2(x, y);
    out[7 * n + i] = __hmax2_nan(x, y);
    out[8 * n + i] = h2rint(x);
    out[9 * n + i] = __hadd2_sat(x, y);
    out[10 * n + i] = __hfma2_relu(x, y, z);
}

extern "C" __global__ void f16_pairs(const __half2 *a, const __half2 *b, const __half2 *c, __half2 *out, int n)
{
    pair_operations(a, b, c, out, n);
}

extern "C" __global__ void bf16_pairs(const __nv_bfloat162 *a, const __nv_bfloat162 *b, const __nv_bfloat162 *c,
                                      __nv_bfloat162 *out, int n)
{
    pair_operations(a, b, c, out, n);
}

/* One bit for each comparison. */
template <class T> static __device__ unsigned int comparisons(T x, T y)
{
    return __heq(x, y) | __hne(x, y) << 1 | __hlt(x, y) << 2 | __hle(x, y) << 3 | __hgt(x, y) << 4 |
           __hge(x, y) << 5 | __hequ(x, y) << 6 | __hneu(x, y) << 7 | __hltu(x, y) << 8 | __hleu(x, y) << 9 |
           __hgtu(x, y) << 10 | __hgeu(x, y) << 11 | __hisnan(x) << 12 | (x == y) << 13 | (x < y) << 14;
}

extern "C" __global__ void compare(const __half *a, const __half *b, unsigned int *f16, const __nv_bfloat16 *c,
                                   const __nv_bfloat16 *d, unsigned int *bf16, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    f16[i] = comparisons(a[i], b[i]);
    bf16[i] = comparisons(c[i], d[i]);
}

/* Floats and integers to both formats in every mode, and back. */
extern "C" __global__ void convert(const float *from, unsigned short *out, float *back, int *whole, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = from[i];
    out[i] = __half_as_ushort(__float2half_rn(x));
    out[n + i] = __half_as_ushort(__float2half_rz(x));
    out[2 * n + i] = __half_as_ushort(__float2half_rd(x));
    out[3 * n + i] = __half_as_ushort(__float2half_ru(x));
    out[4 * n + i] = __bfloat16_as_ushort(__float2bfloat16_rn(x));
    out[5 * n + i] = __bfloat16_as_ushort(__float2bfloat16_rz(x));
    out[6 * n + i] = __bfloat16_as_ushort(__float2bfloat16_rd(x));
    out[7 * n + i] = __bfloat16_as_ushort(__float2bfloat16_ru(x));
    out[8 * n + i] = __half_as_ushort(__int2half_rn(__float_as_int(x)));
    out[9 * n + i] = __bfloat16_as_ushort(__int2bfloat16_rn(__float_as_int(x)));
    back[i] = __half2float(__float2half_rn(x));
    back[n + i] = __bfloat162float(__float2bfloat16_rn(x));
    whole[i] = __half2int_rn(__float2half_rn(x));
    whole[n + i] = __bfloat162int_rz(__float2bfloat16_rn(x));
}

/* Functions with a tolerance, of f16 in [-8, 8] and of what is positive. */
extern "C" __global__ void functions(const __half *a, __half *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __half x = a[i], positive = __habs(x) + __half(0.25f);
    out[i] = hexp(x);
    out[n + i] = hexp2(x);
    out[2 * n + i] = hlog(positive);
    out[3 * n + i] = hsin(x);
    out[4 * n + i] = hcos(x);
    out[5 * n + i] = htanh(x);
    out[6 * n + i] = hrsqrt(positive);
    out[7 * n + i] = hrcp(positive);
}

/* Small whole numbers add exactly in any order. */
extern "C" __global__ void add_to(__half *f16, __half2 *f16x2, __nv_bfloat16 *bf16, __nv_bfloat162 *bf16x2)
{
    atomicAdd(f16, __half(1));
    atomicAdd(f16x2, __floats2half2_rn(1.0f, 2.0f));
    atomicAdd(bf16, __nv_bfloat16(1));
    atomicAdd(bf16x2, __floats2bfloat162_rn(1.0f, 2.0f));
    __shared__ __half2 of_block;
    if (threadIdx.x == 0)
        of_block = __half2(__half(0), __half(0));
    __syncthreads();
    atomicAdd(&of_block, __floats2half2_rn(2.0f, 1.0f));
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(f16x2, of_block);
}
