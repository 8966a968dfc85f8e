/* SPDX-License-Identifier: MIT */
/*
 * A kernel whose time can be set, to measure how well pipe overlaps it with copies:
 *
 *   hdjit pipe tests/bench/rounds.cu rounds --batch=16M --measure=1G u32:ROUNDS
 *
 * with ROUNDS such that kernel and two-way time are about equal (3600 on an H200). Four bytes a thread: the threads past
 * the end do nothing.
 */
extern "C" __global__ void rounds(const unsigned char *in, unsigned char *out, unsigned long long n, unsigned rounds)
{
    unsigned long long i = 4 * (blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x);

    if (i + 4 <= n) {
        unsigned value = *(const unsigned *)(in + i);

        for (unsigned r = 0; r < rounds; r++)
            value = value * 1664525u + 1013904223u;
        *(unsigned *)(out + i) = value;
    } else {
        for (; i < n; i++)
            out[i] = in[i];
    }
}
