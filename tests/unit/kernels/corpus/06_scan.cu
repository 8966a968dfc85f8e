/* SPDX-License-Identifier: MIT */
extern "C" __global__ void scan_block(const int *in, int *out, int *sums, int n)
{
    __shared__ int w[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? in[i] : 0;
    int lane = threadIdx.x & 31, wid = threadIdx.x >> 5;
#pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
        int t = __shfl_up_sync(~0u, v, o);
        if (lane >= o)
            v += t;
    }
    if (lane == 31)
        w[wid] = v;
    __syncthreads();
    if (wid == 0) {
        int s = lane < (blockDim.x >> 5) ? w[lane] : 0;
        for (int o = 1; o < 32; o <<= 1) {
            int t = __shfl_up_sync(~0u, s, o);
            if (lane >= o)
                s += t;
        }
        w[lane] = s;
    }
    __syncthreads();
    if (wid)
        v += w[wid - 1];
    if (i < n)
        out[i] = v;
    if (threadIdx.x == blockDim.x - 1 && sums)
        sums[blockIdx.x] = v;
}
extern "C" __global__ void scan_blelloch(float *d, int n)
{
    extern __shared__ float t[];
    int th = threadIdx.x;
    int off = 1;
    t[2 * th] = d[2 * th];
    t[2 * th + 1] = d[2 * th + 1];
    for (int k = n >> 1; k > 0; k >>= 1) {
        __syncthreads();
        if (th < k) {
            int a = off * (2 * th + 1) - 1, b = off * (2 * th + 2) - 1;
            t[b] += t[a];
        }
        off *= 2;
    }
    if (th == 0)
        t[n - 1] = 0;
    for (int k = 1; k < n; k *= 2) {
        off >>= 1;
        __syncthreads();
        if (th < k) {
            int a = off * (2 * th + 1) - 1, b = off * (2 * th + 2) - 1;
            float x = t[a];
            t[a] = t[b];
            t[b] += x;
        }
    }
    __syncthreads();
    d[2 * th] = t[2 * th];
    d[2 * th + 1] = t[2 * th + 1];
}
