/* SPDX-License-Identifier: MIT */
__device__ int counter = 7;
__device__ float buf[256];
__constant__ int lut[16] = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597};
__device__ int *ptr = &counter;
__managed__ int mg = 3;
__device__ const char *msg = "hello";
namespace ns
{
template <typename T>
__global__ void addk(T *p, T k)
{
    p[threadIdx.x] += k;
}
} // namespace ns
template __global__ void ns::addk<double>(double *, double);
template __global__ void ns::addk<short>(short *, short);
extern "C" __global__ void globals(int *o)
{
    int t = threadIdx.x;
    buf[t] = t;
    o[t] = atomicAdd(&counter, 1) + lut[t & 15] + *ptr + mg + msg[t & 3];
}
