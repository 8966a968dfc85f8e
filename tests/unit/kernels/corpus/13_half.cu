/* SPDX-License-Identifier: MIT */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
extern "C" __global__ void hmath(const __half *a, const __half *b, __half *o, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        __half x = a[i], y = b[i];
        o[i] = __hadd(__hfma(x, y, x), __hmul(__hsub(x, y), __float2half(0.5f)));
        o[i + n] = __hmax(x, y);
        o[i + 2 * n] = hexp(x);
        o[i + 3 * n] = __hdiv(x, y);
        o[i + 4 * n] = hsqrt(x);
        if (__hgt(x, y))
            o[i + 5 * n] = __hneg(x);
        o[i + 6 * n] = __int2half_rn(i);
    }
}
extern "C" __global__ void h2axpy(const __half2 *a, __half2 *y, __half2 k, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = __hfma2(k, a[i], y[i]);
}
#if __CUDA_ARCH__ >= 800
extern "C" __global__ void bfmath(const __nv_bfloat16 *a, __nv_bfloat16 *o, float *f, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        __nv_bfloat16 x = a[i];
        o[i] = __hadd(__hmul(x, x), __float2bfloat16(1.f));
        f[i] = __bfloat162float(x);
        o[i + n] = __hmax(x, o[i]);
        __nv_bfloat162 p = __floats2bfloat162_rn(f[i], f[i] + 1.f);
        ((__nv_bfloat162 *)o)[n + i] = __hfma2(p, p, p);
    }
}
#endif
