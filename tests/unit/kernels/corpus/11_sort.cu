/* SPDX-License-Identifier: MIT */
extern "C" __global__ void bitonic(unsigned *d, int j, int k)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, l = i ^ j;
    if (l > i) {
        unsigned a = d[i], b = d[l];
        if ((i & k) == 0 ? (a > b) : (a < b)) {
            d[i] = b;
            d[l] = a;
        }
    }
}
extern "C" __global__ void bitonic_sm(float *d)
{
    __shared__ float s[1024];
    int t = threadIdx.x;
    s[t] = d[blockIdx.x * 1024 + t];
    for (int k = 2; k <= 1024; k <<= 1)
        for (int j = k >> 1; j > 0; j >>= 1) {
            __syncthreads();
            int l = t ^ j;
            if (l > t) {
                bool up = (t & k) == 0;
                float a = s[t], b = s[l];
                if ((a > b) == up) {
                    s[t] = b;
                    s[l] = a;
                }
            }
        }
    __syncthreads();
    d[blockIdx.x * 1024 + t] = s[t];
}
extern "C" __global__ void radix_pass(const unsigned *in, unsigned *cnt, int shift, int n)
{
    __shared__ unsigned h[16];
    if (threadIdx.x < 16)
        h[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned d = (in[i] >> shift) & 15;
        unsigned m = __match_any_sync(__activemask(), d);
        if ((threadIdx.x & 31) == __ffs(m) - 1)
            atomicAdd(&h[d], __popc(m));
    }
    __syncthreads();
    if (threadIdx.x < 16)
        cnt[threadIdx.x * gridDim.x + blockIdx.x] = h[threadIdx.x];
}
