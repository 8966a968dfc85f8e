/* SPDX-License-Identifier: MIT */
/*
 * Counts how often each byte value occurs among n bytes, and adds the counts to the 256 of bins, which the caller sets
 * before (to zero, say). Each block counts in shared memory first, so that a frequent value is contended by one block's
 * threads and not by all of them. Any grid and block will do.
 */
extern "C" __global__ void histogram(const unsigned char *in, unsigned int *bins, unsigned long long n)
{
    __shared__ unsigned int of_block[256];
    unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;

    for (unsigned int i = threadIdx.x; i < 256; i += blockDim.x)
        of_block[i] = 0;
    __syncthreads();
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        atomicAdd(&of_block[in[i]], 1u);
    __syncthreads();
    for (unsigned int i = threadIdx.x; i < 256; i += blockDim.x)
        if (of_block[i] != 0)
            atomicAdd(&bins[i], of_block[i]);
}
