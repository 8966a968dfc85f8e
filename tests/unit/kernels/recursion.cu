/* SPDX-License-Identifier: MIT */
/* Every lane recurses by a way of its own, to a depth of its own. */
#define FUNCTION __device__ __noinline__
#include "recursion_cases.h"

extern "C" __global__ void recurse(unsigned int *out)
{
    unsigned int t = blockIdx.x * blockDim.x + threadIdx.x;
    out[t] = evaluate(t * 7919, (int)(t % 11));
}
