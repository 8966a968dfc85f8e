/* SPDX-License-Identifier: MIT */
/* Element-wise kernels: a stride over the grid, one thread per element, vector types whole and by narrow element. */
extern "C" __global__ void scale_and_add(int n, float a, const float *__restrict__ x, float *__restrict__ y)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}

extern "C" __global__ void add(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        c[i] = a[i] + b[i];
}

extern "C" __global__ void add_by_four(const float4 *__restrict__ a, const float4 *__restrict__ b, float4 *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        float4 x = a[i], y = b[i];
        c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
}

/* Zero extension, a difference cut to 16 bits, and sign extension from 8. */
extern "C" __global__ void widen(const uchar2 *a, short4 *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        uchar2 v = a[i];
        b[i] = make_short4(v.x, v.y, (short)(v.x - v.y), (signed char)v.x);
    }
}
