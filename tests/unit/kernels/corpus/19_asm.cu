/* SPDX-License-Identifier: MIT */
extern "C" __global__ void iasm(const unsigned *a, const unsigned *b, unsigned *o)
{
    int i = threadIdx.x;
    unsigned r0, r1, r2;
    asm("add.cc.u32 %0,%3,%5;\n\taddc.cc.u32 %1,%4,%6;\n\taddc.u32 %2,0,0;"
        : "=r"(r0), "=r"(r1), "=r"(r2)
        : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]));
    unsigned q, l;
    asm("lop3.b32 %0,%1,%2,%3,0x96;" : "=r"(q) : "r"(a[i]), "r"(b[i]), "r"(i));
    asm("{ .reg .pred p; setp.gt.u32 p,%1,5; selp.u32 %0,1,0,p; }" : "=r"(l) : "r"(a[i]));
    unsigned long long w;
    asm("mad.wide.u32 %0,%1,%2,%3;" : "=l"(w) : "r"(r0), "r"(r1), "l"((unsigned long long)7));
    unsigned e;
    asm("bfe.u32 %0,%1,4,8;" : "=r"(e) : "r"(r0));
    asm("bfi.b32 %0,%1,%0,8,8;" : "+r"(e) : "r"(r1));
    unsigned ld;
    asm volatile("ld.global.nc.L1::no_allocate.u32 %0,[%1];" : "=r"(ld) : "l"(a + i));
    asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(q) : "l"(a + i));
    asm volatile("prefetch.global.L2 [%0];" ::"l"(a));
    o[i] = r0 + r1 + r2 + q + l + (unsigned)w + e + ld;
}
extern "C" __global__ void xmem(unsigned *f, unsigned *d)
{
    unsigned v;
    if (threadIdx.x == 0) {
        d[0] = 42;
        asm volatile("st.release.gpu.global.u32 [%0],%1;" ::"l"(f), "r"(1u) : "memory");
    } else {
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0,[%1];" : "=r"(v) : "l"(f) : "memory");
        } while (!v);
        d[threadIdx.x] = d[0];
    }
    asm volatile("red.relaxed.gpu.global.add.u32 [%0],%1;" ::"l"(f + 1), "r"(1u) : "memory");
    __threadfence_block();
    __threadfence_system();
}
extern "C" __global__ void streamld(const float4 *a, float4 *b)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = __ldcs(a + i);
    __stcs(b + i, v);
    float4 w = __ldcg(a + i);
    __stwt(b + i, w);
}
