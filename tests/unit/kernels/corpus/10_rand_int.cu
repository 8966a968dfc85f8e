/* SPDX-License-Identifier: MIT */
__device__ unsigned pcg(unsigned v)
{
    unsigned s = v * 747796405u + 2891336453u;
    unsigned w = ((s >> ((s >> 28) + 4)) ^ s) * 277803737u;
    return (w >> 22) ^ w;
}
extern "C" __global__ void rnd(float *o, unsigned seed, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        o[i] = pcg(pcg(i) ^ seed) * 2.3283064365386963e-10f;
}
extern "C" __global__ void philox(uint4 *o, unsigned k0, unsigned k1)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    uint4 c = make_uint4(i, 0, 0, 0);
#pragma unroll
    for (int r = 0; r < 10; r++) {
        unsigned h0 = __umulhi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x, h1 = __umulhi(0xCD9E8D57u, c.z),
                 l1 = 0xCD9E8D57u * c.z;
        c = make_uint4(h1 ^ c.y ^ k0, l1, h0 ^ c.w ^ k1, l0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    o[i] = c;
}
extern "C" __global__ void int64ops(const long long *a, const long long *b, long long *o, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        long long x = a[i], y = b[i];
        o[i * 8] = x * y;
        o[i * 8 + 1] = y ? x / y : 0;
        o[i * 8 + 2] = y ? x % y : 0;
        o[i * 8 + 3] = __mul64hi(x, y);
        o[i * 8 + 4] = x >> (y & 63);
        o[i * 8 + 5] = (long long)((unsigned long long)x / ((unsigned long long)y | 1));
        o[i * 8 + 6] = __popcll(x) + __clzll(y) + __ffsll(x);
        o[i * 8 + 7] = (long long)__brevll(x) ^ min(x, y) ^ llabs(y);
    }
}
extern "C" __global__ void u128(const unsigned long long *a, unsigned long long *o)
{
    unsigned __int128 x = ((unsigned __int128)a[0] << 64) | a[1], y = ((unsigned __int128)a[2] << 64) | a[3];
    unsigned __int128 m = x * y, s = x + y, d = x - y;
    o[0] = (unsigned long long)(m >> 64);
    o[1] = (unsigned long long)m;
    o[2] = (unsigned long long)(s >> 64);
    o[3] = (unsigned long long)s;
    o[4] = (unsigned long long)(d >> 64);
    o[5] = (unsigned long long)d;
    o[6] = x < y;
}
#if !defined(__clang__) || __clang_major__ > 16 /* earlier ones have no division of 128 bits */
extern "C" __global__ void u128div(const unsigned long long *a, unsigned long long *o)
{
    unsigned __int128 x = ((unsigned __int128)a[0] << 64) | a[1], y = ((unsigned __int128)a[2] << 64) | a[3];
    unsigned __int128 m = x / y;
    o[0] = (unsigned long long)(m >> 64);
    o[1] = (unsigned long long)m;
}
#endif
extern "C" __global__ void bits(const unsigned *a, unsigned *o, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned x = a[i];
        unsigned y = a[(i + 1) % n];
        o[i] = __popc(x) + __clz(x) + __ffs(x) + __brev(x) + __byte_perm(x, y, 0x1357) + __funnelshift_l(x, y, 7) +
               __funnelshift_rc(x, y, y) + __sad((int)x, (int)y, 1u) + __mul24((int)x, (int)y) + __usad(x, y, 3u) +
               __vadd4(x, y) + __vabsdiffu4(x, y) + __dp4a(x, y, 7u) + __uhadd(x, y) + (x / 7u) + (x % 10u) +
               __rhadd((int)x, (int)y) + ((x >> 5) & 0x1ff) + (((int)(x << 7)) >> 20);
    }
}
