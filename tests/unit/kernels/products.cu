/* SPDX-License-Identifier: MIT */
/* Matrix products as they are taught: one thread per number, tiles in shared memory, and tiles with 4 x 4 numbers in
 * each thread's registers. */
extern "C" __global__ void product_naive(const float *a, const float *b, float *c, int m, int n, int k)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;

    if (row < m && column < n) {
        float sum = 0;
        for (int i = 0; i < k; i++)
            sum += a[row * k + i] * b[i * n + column];
        c[row * n + column] = sum;
    }
}

template <int SIDE> static __device__ void product_by_tiles(const float *a, const float *b, float *c, int n)
{
    __shared__ float tile_a[SIDE][SIDE], tile_b[SIDE][SIDE];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * SIDE + y, column = blockIdx.x * SIDE + x;
    float sum = 0;

    for (int first = 0; first < n; first += SIDE) {
        tile_a[y][x] = a[row * n + first + x];
        tile_b[y][x] = b[(first + y) * n + column];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < SIDE; i++)
            sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

/* n is a multiple of the tile's side. */
extern "C" __global__ void product_tiled_8(const float *a, const float *b, float *c, int n)
{
    product_by_tiles<8>(a, b, c, n);
}

extern "C" __global__ void product_tiled_16(const float *a, const float *b, float *c, int n)
{
    product_by_tiles<16>(a, b, c, n);
}

/* n is a multiple of 64; 256 threads. */
extern "C" __global__ void __launch_bounds__(256)
    product_in_registers(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n)
{
    __shared__ float tile_a[8][64], tile_b[8][64];
    float sum[4][4] = {};
    int t = threadIdx.x, x = t % 16, y = t / 16;

    for (int first = 0; first < n; first += 8) {
        for (int i = t; i < 512; i += 256) {
            tile_a[i / 64][i % 64] = a[(blockIdx.y * 64 + i % 64) * n + first + i / 64];
            tile_b[i / 64][i % 64] = b[(first + i / 64) * n + blockIdx.x * 64 + i % 64];
        }
        __syncthreads();
#pragma unroll
        for (int step = 0; step < 8; step++) {
            float4 left = *(float4 *)&tile_a[step][y * 4], right = *(float4 *)&tile_b[step][x * 4];
            float of_row[4] = {left.x, left.y, left.z, left.w}, of_column[4] = {right.x, right.y, right.z, right.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    sum[i][j] = fmaf(of_row[i], of_column[j], sum[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        *(float4 *)&c[(blockIdx.y * 64 + y * 4 + i) * n + blockIdx.x * 64 + x * 4] =
            make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
}
