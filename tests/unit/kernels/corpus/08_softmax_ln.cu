/* SPDX-License-Identifier: MIT */
#define INFINITY __int_as_float(0x7f800000)
__device__ __forceinline__ float wmax(float v)
{
    for (int o = 16; o; o >>= 1)
        v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
    return v;
}
__device__ __forceinline__ float wsum(float v)
{
    for (int o = 16; o; o >>= 1)
        v += __shfl_xor_sync(~0u, v, o);
    return v;
}
extern "C" __global__ void softmax(const float *x, float *y, int n)
{
    const float *r = x + (size_t)blockIdx.x * n;
    float m = -INFINITY;
    for (int i = threadIdx.x; i < n; i += 32)
        m = fmaxf(m, r[i]);
    m = wmax(m);
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 32)
        s += expf(r[i] - m);
    s = wsum(s);
    for (int i = threadIdx.x; i < n; i += 32)
        y[(size_t)blockIdx.x * n + i] = expf(r[i] - m) / s;
}
extern "C" __global__ void softmax_fast(const float *x, float *y, int n)
{
    const float *r = x + (size_t)blockIdx.x * n;
    float m = -INFINITY;
    for (int i = threadIdx.x; i < n; i += 32)
        m = fmaxf(m, r[i]);
    m = wmax(m);
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 32)
        s += __expf(r[i] - m);
    s = wsum(s);
    for (int i = threadIdx.x; i < n; i += 32)
        y[(size_t)blockIdx.x * n + i] = __fdividef(__expf(r[i] - m), s);
}
extern "C" __global__ void layernorm(const float *x, const float *g, const float *b, float *y, int n, float eps)
{
    const float *r = x + (size_t)blockIdx.x * n;
    float s = 0, q = 0;
    for (int i = threadIdx.x; i < n; i += 32) {
        s += r[i];
        q += r[i] * r[i];
    }
    s = wsum(s) / n;
    q = wsum(q) / n - s * s;
    float k = rsqrtf(q + eps);
    for (int i = threadIdx.x; i < n; i += 32)
        y[(size_t)blockIdx.x * n + i] = (r[i] - s) * k * g[i] + b[i];
}
extern "C" __global__ void gelu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i];
        y[i] = 0.5f * v * (1.f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
    }
}
