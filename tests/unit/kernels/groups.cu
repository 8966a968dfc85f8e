/* SPDX-License-Identifier: MIT */
/* Cooperative groups: the grid's barrier, tiles, coalesced threads, partitions and scans; copies beside the thread. */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_pipeline.h>
namespace cg = cooperative_groups;

/* In every round each thread adds what its left neighbour in the grid wrote in the round before. */
extern "C" __global__ void passed_around(unsigned int *even, unsigned int *odd, int rounds)
{
    cg::grid_group grid = cg::this_grid();
    unsigned int rank = grid.thread_rank(), count = grid.size();
    for (int round = 0; round < rounds; round++) {
        unsigned int *from = round & 1 ? odd : even, *to = round & 1 ? even : odd;
        to[rank] = ((volatile unsigned int *)from)[(rank + count - 1) % count] + round;
        grid.sync();
    }
}

/* Per thread: rank in its tile of 8, the tile's sum, its largest, the sum before the thread, the value of the mirrored
 * rank, and who votes for it. */
extern "C" __global__ void in_tiles(const int *x, int *out)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    auto part = cg::tiled_partition<4>(tile);
    int i = block.group_index().x * block.size() + block.thread_rank(), value = x[i];
    out += 7 * i;
    out[0] = tile.thread_rank() + 100 * tile.meta_group_rank();
    out[1] = cg::reduce(tile, value, cg::plus<int>());
    out[2] = cg::reduce(part, value, cg::greater<int>());
    out[3] = cg::exclusive_scan(tile, value, cg::plus<int>());
    out[4] = tile.shfl(value, 7 - tile.thread_rank());
    out[5] = tile.ballot(value & 1);
    out[6] = tile.shfl_xor(value, 1) + (tile.any(value == 3) ? 1000 : 0);
}

/* Only threads with an odd value meet: size, rank, their sum, and the sum of those with the same remainder by 3. */
extern "C" __global__ void among_the_odd(const int *x, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, value = x[i];
    out += 5 * i;
    for (int k = 0; k < 5; k++)
        out[k] = -1;
    if (value & 1) {
        cg::coalesced_group odd = cg::coalesced_threads();
        out[0] = odd.size();
        out[1] = odd.thread_rank();
        out[2] = cg::reduce(odd, value, cg::plus<int>());
        cg::coalesced_group same = cg::labeled_partition(odd, value % 3);
        out[3] = cg::reduce(same, value, cg::plus<int>());
        out[4] = cg::inclusive_scan(cg::binary_partition(odd, value > 50), 1);
        odd.sync();
    }
}

/* Sums of mirrored elements of n rows of 128 float4, through two buffers that are filled ahead. */
extern "C" __global__ void ahead(const float4 *rows, float *out, int n)
{
    __shared__ float4 buffer[2][128];
    int t = threadIdx.x;
    float sum = 0;
    __pipeline_memcpy_async(&buffer[0][t], &rows[t], sizeof(float4));
    __pipeline_commit();
    for (int i = 1; i <= n; i++) {
        if (i < n)
            __pipeline_memcpy_async(&buffer[i & 1][t], &rows[i * 128 + t], sizeof(float4));
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        float4 v = buffer[(i - 1) & 1][127 - t];
        sum += v.x + 2 * v.y + 3 * v.z + 4 * v.w;
        __syncthreads();
    }
    out[t] = sum;
}

/* 4 and 8 bytes, and what is left out is zero. */
extern "C" __global__ void narrow_copies(const unsigned int *from, unsigned int *out)
{
    __shared__ __align__(16) unsigned int words[4 * 64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&words[t], &from[t], 4);
    __pipeline_memcpy_async(&words[64 + 2 * t], &from[2 * (63 - t)], 8, t & 1 ? 4 : 0);
    __pipeline_memcpy_async(&words[192 + t], &from[t], 4, t & 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    for (int i = t; i < 256; i += 64)
        out[i] = words[i];
}
