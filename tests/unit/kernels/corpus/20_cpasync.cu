/* SPDX-License-Identifier: MIT */
#include <cuda_pipeline.h>
extern "C" __global__ void cpasync(const float4 *__restrict__ g, float *o, int n)
{
    __shared__ float4 s[2][128];
    int t = threadIdx.x;
    float acc = 0;
    __pipeline_memcpy_async(&s[0][t], &g[t], 16);
    __pipeline_commit();
    for (int i = 1; i <= n; i++) {
        if (i < n) {
            __pipeline_memcpy_async(&s[i & 1][t], &g[i * 128 + t], 16);
        }
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        float4 v = s[(i - 1) & 1][127 - t];
        acc += v.x + v.y + v.z + v.w;
        __syncthreads();
    }
    o[t] = acc;
}
