/* SPDX-License-Identifier: MIT */
/*
 * c = a * b for matrices stored by rows: a is m x k, b is k x n, c is m x n. The block is 16 x 16 threads and the grid
 * ceil(n / 16) x ceil(m / 16): each block computes one tile of c and reads a and b tile by tile through shared memory,
 * so that every number comes from global memory once per tile and not once per product. The edges need not be
 * multiples of 16: what lies outside counts as zero. Each sum runs over k in order, by fused multiply-adds.
 */
#define TILE 16

extern "C" __global__ void __launch_bounds__(TILE * TILE)
    matmul(const float *a, const float *b, float *c, unsigned int m, unsigned int n, unsigned int k)
{
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    unsigned int x = threadIdx.x, y = threadIdx.y;
    unsigned int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0.0f;

    for (unsigned int first = 0; first < k; first += TILE) {
        tile_a[y][x] = row < m && first + x < k ? a[(size_t)row * k + first + x] : 0.0f;
        tile_b[y][x] = first + y < k && column < n ? b[(size_t)(first + y) * n + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i++)
            sum = fmaf(tile_a[y][i], tile_b[i][x], sum);
        __syncthreads();
    }
    if (row < m && column < n)
        c[(size_t)row * n + column] = sum;
}
