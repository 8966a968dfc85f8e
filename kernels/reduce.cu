/* SPDX-License-Identifier: MIT */
/*
 * Adds the sum of n numbers to *sum, which the caller sets before (to zero, say). Each thread adds up its share, each
 * warp its threads' by shuffles, the first warp the warps' through shared memory, and one atomic addition per block
 * the blocks'. The block is any multiple of 32 threads, the grid any. The order of the additions, and so the last
 * digits, differ between grids and between runs.
 */
static __device__ float sum_of_warp(float value)
{
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_down_sync(0xffffffffu, value, distance);
    return value;
}

extern "C" __global__ void reduce(const float *x, float *sum, unsigned long long n)
{
    __shared__ float of_warp[32];
    unsigned int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    float value = 0.0f;

    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        value += x[i];
    value = sum_of_warp(value);
    if (lane == 0)
        of_warp[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = sum_of_warp(lane < warps ? of_warp[lane] : 0.0f);
        if (lane == 0)
            atomicAdd(sum, value);
    }
}
