/* SPDX-License-Identifier: MIT */
extern "C" __global__ void spmv_csr(const int *rp, const int *ci, const double *v, const double *x, double *y, int n)
{
    int r = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, l = threadIdx.x & 31;
    if (r < n) {
        double s = 0;
        for (int j = rp[r] + l; j < rp[r + 1]; j += 32)
            s += v[j] * x[ci[j]];
        for (int o = 16; o; o >>= 1)
            s += __shfl_down_sync(~0u, s, o);
        if (!l)
            y[r] = s;
    }
}
extern "C" __global__ void bfs(const int *rp, const int *ci, int *dist, int lvl, int n, int *changed)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && dist[i] == lvl)
        for (int j = rp[i]; j < rp[i + 1]; j++) {
            int c = ci[j];
            if (atomicCAS(&dist[c], -1, lvl + 1) == -1)
                *changed = 1;
        }
}
extern "C" __global__ void bscholes(const float *S, const float *X, const float *T, float *C, float r, float v, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float q = sqrtf(T[i]);
        float d1 = (logf(S[i] / X[i]) + (r + 0.5f * v * v) * T[i]) / (v * q), d2 = d1 - v * q;
        float e = expf(-r * T[i]);
        C[i] = S[i] * normcdff(d1) - X[i] * e * normcdff(d2);
    }
}
extern "C" __global__ void fft_radix2(float2 *d, int n, int s)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 2) {
        int k = i & (s - 1), b = ((i >> __ffs(s) - 1) << __ffs(s)) | k;
        float a = -3.14159265f * k / s, sn, cs;
        __sincosf(a, &sn, &cs);
        float2 u = d[b], t = d[b + s];
        float2 w = make_float2(t.x * cs - t.y * sn, t.x * sn + t.y * cs);
        d[b] = make_float2(u.x + w.x, u.y + w.y);
        d[b + s] = make_float2(u.x - w.x, u.y - w.y);
    }
}
extern "C" __global__ void sha1ish(const uint4 *in, uint4 *o)
{
    uint4 a = in[threadIdx.x];
    for (int r = 0; r < 64; r++) {
        unsigned f = (a.x & a.y) ^ (~a.x & a.z) ^ __funnelshift_r(a.w, a.w, 7 + r % 5);
        a = make_uint4(f + a.w + 0x5a827999u * r, a.x, __funnelshift_l(a.y, a.y, 30), a.z);
    }
    o[threadIdx.x] = a;
}
