/* SPDX-License-Identifier: MIT */
/* Every atomic function that the tests' drivers must know, histograms by them, and a lock. */
extern "C" __global__ void count_bytes(const unsigned char *__restrict__ in, unsigned *bins, int n)
{
    __shared__ unsigned of_block[256];

    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        of_block[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        atomicAdd(&of_block[in[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        if (of_block[i])
            atomicAdd(&bins[i], of_block[i]);
}

/* Thread t of the whole grid is the operand where one is needed. */
extern "C" __global__ void every_int(int *p)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;

    atomicAdd(p + 0, 3);
    atomicSub(p + 1, 2);
    atomicMin(p + 2, -t);
    atomicMax(p + 3, t);
    atomicAnd(p + 4, ~(1 << (t & 31)));
    atomicOr(p + 5, 1 << (t & 31));
    atomicXor(p + 6, t);
    atomicExch(p + 7, 77);
    atomicCAS(p + 8, 0, 5);
    atomicAdd_block(p + 9, 1);
    atomicAdd_system(p + 10, 1);
}

extern "C" __global__ void every_unsigned(unsigned *p)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;

    atomicAdd(p + 0, 0x80000001u);
    atomicSub(p + 1, 1u);
    atomicMin(p + 2, 0xffffffffu - t);
    atomicMax(p + 3, 0x80000000u + t);
    atomicAnd(p + 4, ~(1u << (t & 31)));
    atomicOr(p + 5, 1u << (t & 31));
    atomicXor(p + 6, t);
    atomicInc(p + 7, 99u);
    atomicDec(p + 8, 99u);
    atomicExch(p + 9, 77u);
    atomicMax_block(p + 10, t);
    atomicInc_system(p + 11, 4u);
}

extern "C" __global__ void every_wide(unsigned long long *p, long long *q)
{
    unsigned long long t = blockIdx.x * blockDim.x + threadIdx.x;

    atomicAdd(p + 0, 1ull << 32);
    atomicMin(p + 1, ~0ull - t);
    atomicMax(p + 2, (1ull << 63) + t);
    atomicAnd(p + 3, ~(1ull << (t & 63)));
    atomicOr(p + 4, 1ull << (t & 63));
    atomicXor(p + 5, t << 32);
    atomicExch(p + 6, 1ull << 40);
    atomicCAS(p + 7, 5ull, 1ull << 50);
    atomicAdd_system(p + 8, 3ull);
    atomicMin(q + 0, -(long long)t);
    atomicMax(q + 1, (long long)t);
}

/* Whole numbers, so that the order of the additions does not matter. */
extern "C" __global__ void every_floating(float *f, double *d)
{
    atomicAdd(f + 0, 1.5f);
    atomicExch(f + 1, 2.5f);
    atomicAdd_block(f + 2, 1.0f);
    atomicAdd(d + 0, 2.5);
    atomicAdd_system(d + 1, -1.0);
}

/* What the atomics return: each thread must get another number. */
extern "C" __global__ void draw_numbers(unsigned *counter, unsigned *of_thread, unsigned *chain, unsigned *left)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;

    of_thread[t] = atomicAdd(counter, 1u);
    left[t] = atomicExch(chain, t);
}

/* A product by compare and swap, the way out for every operation that the hardware lacks. */
extern "C" __global__ void multiply_all(const double *x, double *product, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        unsigned long long *bits = (unsigned long long *)product, old = *bits, seen;
        do {
            seen = old;
            old = atomicCAS(bits, seen, (unsigned long long)__double_as_longlong(__longlong_as_double(seen) * x[i]));
        } while (old != seen);
    }
}

extern "C" __global__ void compare_and_swap_16(unsigned short *p, unsigned short *seen)
{
    unsigned short t = threadIdx.x;

    seen[t] = atomicCAS(p + t, (unsigned short)(t / 2), (unsigned short)(t + 1000));
}

/* One thread of each warp takes the lock: more would wait for each other inside their warp. */
extern "C" __global__ void add_under_lock(int *lock, int *sum)
{
    if ((threadIdx.x & 31) == 0) {
        while (atomicCAS(lock, 0, 1) != 0)
            __nanosleep(20);
        __threadfence();
        *(volatile int *)sum = *(volatile int *)sum + 1;
        __threadfence();
        atomicExch(lock, 0);
    }
}
