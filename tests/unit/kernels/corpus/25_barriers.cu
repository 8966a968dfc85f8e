/* SPDX-License-Identifier: MIT */
extern "C" __global__ void named_bar(int *o)
{
    __shared__ int s[64];
    int w = threadIdx.x >> 5;
    if (w == 0) {
        s[threadIdx.x] = threadIdx.x * 3;
        asm volatile("bar.arrive 1,64;");
    } else {
        asm volatile("bar.sync 1,64;");
        o[threadIdx.x] = s[threadIdx.x - 32];
    }
}
extern "C" __global__ void early_exit_bar(int *o, int n)
{
    __shared__ int s[256];
    int t = threadIdx.x;
    if (t >= n)
        return;
    s[t] = t;
    __syncthreads();
    o[t] = s[n - 1 - t];
}
extern "C" __global__ void loopbar(float *a, int n, int it)
{
    extern __shared__ float sm[];
    float *p = sm;
    float *q = sm + blockDim.x;
    p[threadIdx.x] = a[threadIdx.x];
    for (int k = 0; k < it; k++) {
        __syncthreads();
        int t = threadIdx.x;
        q[t] = 0.5f * (p[(t + 1) % n] + p[(t + n - 1) % n]);
        float *x = p;
        p = q;
        q = x;
    }
    a[threadIdx.x] = p[threadIdx.x];
}
