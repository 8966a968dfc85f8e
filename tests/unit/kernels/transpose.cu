/* SPDX-License-Identifier: MIT */
/* Transposes height x width numbers tile by tile: 32 x 8 threads, each with four rows; the column more of shared memory
 * keeps a warp's accesses on different banks. */
extern "C" __global__ void transpose(const float *__restrict__ in, float *__restrict__ out, int width, int height)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;

    for (int row = 0; row < 32; row += 8)
        if (x < width && y + row < height)
            tile[threadIdx.y + row][threadIdx.x] = in[(y + row) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int row = 0; row < 32; row += 8)
        if (x < height && y + row < width)
            out[(y + row) * height + x] = tile[threadIdx.x][threadIdx.y + row];
}
