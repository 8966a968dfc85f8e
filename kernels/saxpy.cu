/* SPDX-License-Identifier: MIT */
/*
 * y = a * x + y over n numbers. Any grid and block will do: each thread goes on by the whole grid's width until the
 * numbers are used up. The product and the sum are one fused multiply-add, rounded once.
 */
extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned long long n)
{
    unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;

    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        y[i] = fmaf(a, x[i], y[i]);
}
