/* SPDX-License-Identifier: MIT */
/* Sums by the ways that programs use: shuffles, a tree in dynamic shared memory, the last block to finish, and the
 * instruction that reduces a warp. */
static __device__ float sum_of_warp(float value)
{
    for (int distance = 16; distance; distance >>= 1)
        value += __shfl_down_sync(0xffffffffu, value, distance);
    return value;
}

/* Adds to *out; the block is a multiple of 32 threads. */
extern "C" __global__ void sum_by_shuffles(const float *__restrict__ x, float *out, int n)
{
    __shared__ float of_warp[32];
    float value = 0;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        value += x[i];
    value = sum_of_warp(value);
    if (lane == 0)
        of_warp[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = lane < blockDim.x >> 5 ? of_warp[lane] : 0.0f;
        value = sum_of_warp(value);
        if (lane == 0)
            atomicAdd(out, value);
    }
}

/* One sum per block; the block is a power of two, dynamic shared memory an int for each thread. */
extern "C" __global__ void sum_in_shared(const int *x, int *out, int n)
{
    extern __shared__ int part[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;

    part[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half >>= 1) {
        if (t < half)
            part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}

/* The block that comes last adds the blocks' sums up; 128 threads; *count is zero before and after. */
extern "C" __global__ void sum_by_last_block(const double *x, volatile double *of_block, double *out, unsigned *count,
                                             int n)
{
    __shared__ double part[128];
    __shared__ bool last;
    int t = threadIdx.x;
    double value = 0;

    for (int i = blockIdx.x * 128 + t; i < n; i += 128 * gridDim.x)
        value += x[i];
    part[t] = value;
    __syncthreads();
    for (int half = 64; half > 0; half >>= 1) {
        if (t < half)
            part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) {
        of_block[blockIdx.x] = part[0];
        __threadfence();
        last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) {
        double sum = 0;
        for (int i = 0; i < gridDim.x; i++)
            sum += of_block[i];
        *out = sum;
    }
}

/* Five numbers for each warp: sum, least, greatest, exclusive or, and whether all are odd. Before sm_80 there is no
 * such instruction: shuffles do the same. */
extern "C" __global__ void reduce_warp(const unsigned *x, unsigned *out)
{
    unsigned value = x[blockIdx.x * blockDim.x + threadIdx.x], sum, least, greatest, parity;

#if __CUDA_ARCH__ >= 800
    sum = __reduce_add_sync(0xffffffffu, value);
    least = __reduce_min_sync(0xffffffffu, value);
    greatest = __reduce_max_sync(0xffffffffu, value);
    parity = __reduce_xor_sync(0xffffffffu, value);
#else
    sum = least = greatest = parity = value;
    for (int lane = 16; lane; lane >>= 1) {
        sum += __shfl_xor_sync(0xffffffffu, sum, lane);
        least = min(least, __shfl_xor_sync(0xffffffffu, least, lane));
        greatest = max(greatest, __shfl_xor_sync(0xffffffffu, greatest, lane));
        parity ^= __shfl_xor_sync(0xffffffffu, parity, lane);
    }
#endif
    int odd = __all_sync(0xffffffffu, value & 1);

    if ((threadIdx.x & 31) == 0) {
        unsigned *of_warp = out + 5 * ((blockIdx.x * blockDim.x + threadIdx.x) >> 5);
        of_warp[0] = sum;
        of_warp[1] = least;
        of_warp[2] = greatest;
        of_warp[3] = parity;
        of_warp[4] = odd != 0;
    }
}
