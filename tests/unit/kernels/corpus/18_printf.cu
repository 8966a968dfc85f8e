/* SPDX-License-Identifier: MIT */

extern "C" __global__ void pf(int n, float f, const char *s)
{
    printf("t=%d f=%f\n", threadIdx.x, f);
    if (threadIdx.x == 0)
        printf("n=%d %s %llx %p\n", n, "lit", (unsigned long long)n << 33, (void *)s);
}
extern "C" __global__ void as(const int *x)
{
    assert(x[threadIdx.x] >= 0);
}
extern "C" __global__ void tr(int n)
{
    if (threadIdx.x == n)
        __trap();
    if (threadIdx.x == n + 1)
        __brkpt();
}
extern "C" __global__ void clk(long long *o)
{
    long long a = clock64();
    unsigned s;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(s));
    o[0] = clock64() - a;
    o[1] = s;
    o[2] = clock();
    unsigned long long g;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g));
    o[3] = g;
}
extern "C" __global__ void mal(int **o)
{
    int *p = (int *)malloc(16);
    if (p) {
        p[0] = threadIdx.x;
        o[threadIdx.x] = p;
    }
    if (threadIdx.x == 1)
        free(p);
}
