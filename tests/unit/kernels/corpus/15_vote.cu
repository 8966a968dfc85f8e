/* SPDX-License-Identifier: MIT */
extern "C" __global__ void vote(const int *x, unsigned *o)
{
    int t = threadIdx.x;
    int p = x[t];
    unsigned b = __ballot_sync(~0u, p > 3);
    int all = __all_sync(~0u, p), any = __any_sync(~0u, p);
    unsigned m = __match_any_sync(~0u, p);
    int pr;
    unsigned ma = __match_all_sync(~0u, p, &pr);
    __syncwarp();
    unsigned am = __activemask();
    unsigned lt;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
    o[t] = b + all + any + m + ma + pr + am + __popc(b & lt);
    int c = __syncthreads_count(p), a = __syncthreads_and(p), r = __syncthreads_or(p);
    o[t] += c + a + r;
    int idx = __shfl_sync(~0u, p, t & 3, 8);
    o[t] += idx;
}
extern "C" __global__ void compact(const int *x, int *o, int *cnt, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool k = i < n && x[i] > 0;
    unsigned m = __ballot_sync(~0u, k);
    int lane = threadIdx.x & 31;
    int base;
    if (lane == 0)
        base = atomicAdd(cnt, __popc(m));
    base = __shfl_sync(~0u, base, 0);
    if (k)
        o[base + __popc(m & ((1u << lane) - 1))] = x[i];
}
extern "C" __global__ void diverge(const int *x, int *o)
{
    int t = threadIdx.x;
    int v = x[t];
    int r = 0;
    if (v & 1) {
        for (int i = 0; i < v; i++) {
            if (i == t)
                continue;
            if (i > 2 * t)
                break;
            r += i;
        }
    } else if (v & 2) {
        r = v * 3;
        if (t > 5)
            r -= 7;
        else
            r += __popc(v);
    } else {
        do {
            r += v;
            v >>= 1;
        } while (v);
    }
    o[t] = r;
}
