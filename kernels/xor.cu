/* SPDX-License-Identifier: MIT */
/*
 * Every byte exclusive-ored with the lowest byte of the key; doing it twice gives the input back. One byte of key, so
 * that the result does not depend on where `hdjit pipe` cuts its batches. Any grid and block will do.
 */
extern "C" __global__ void xor_bytes(const unsigned char *in, unsigned char *out, unsigned long long n,
                                     unsigned int key)
{
    unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;

    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        out[i] = (unsigned char)(in[i] ^ key);
}
