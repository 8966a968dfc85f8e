/* SPDX-License-Identifier: MIT */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void grid_sync(float *a, float *b, int n, int it)
{
    cg::grid_group g = cg::this_grid();
    for (int k = 0; k < it; k++) {
        for (int i = g.thread_rank(); i < n; i += g.size())
            b[i] = 0.5f * a[i] + 0.25f * (a[(i + 1) % n] + a[(i + n - 1) % n]);
        g.sync();
        float *t = a;
        a = b;
        b = t;
    }
}
extern "C" __global__ void cg_tile(const int *x, int *o, int n)
{
    cg::thread_block b = cg::this_thread_block();
    auto t = cg::tiled_partition<16>(b);
    int v = x[b.group_index().x * b.size() + b.thread_rank()];
    int s = cg::reduce(t, v, cg::plus<int>());
    t.sync();
    if (t.thread_rank() == 0)
        atomicAdd(o, s);
    auto c = cg::coalesced_threads();
    if (c.thread_rank() == 0)
        o[1] = c.size();
    b.sync();
}
