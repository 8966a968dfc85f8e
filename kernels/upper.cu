/* SPDX-License-Identifier: MIT */
/*
 * The letters a to z of ASCII become A to Z, every other byte stays; what `tr a-z A-Z` does in the C locale. The first
 * three parameters are those that `hdjit pipe` passes. Any grid and block will do.
 */
extern "C" __global__ void upper(const unsigned char *in, unsigned char *out, unsigned long long n)
{
    unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;

    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        unsigned int c = in[i];

        out[i] = (unsigned char)(c - 'a' < 26u ? c - 'a' + 'A' : c);
    }
}
