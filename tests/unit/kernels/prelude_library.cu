/* SPDX-License-Identifier: MIT */
/* The cases of prelude_cases.h that call library functions; apart, since a GPU runs clang's code of them only with
 * NVIDIA's libdevice linked in. */
#include "prelude_cases.h"

#define COUNT(name, device, host) +1
#define RESULT(name, device, host) *out++ = device;

static __device__ float device_sine_and_cosine(float f)
{
    float sine, cosine;
    sincosf(f, &sine, &cosine);
    return sine + 2.0f * cosine;
}

static __device__ float device_mantissa_and_exponent(float f)
{
    int exponent;
    float mantissa = frexpf(f, &exponent);
    return mantissa + (float)exponent;
}

extern "C" __global__ void library_f32(const float *in, float *out, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) {
        float f = in[i], g = 3.0f - f;
        out += i * (0 CASES_LIBRARY_F32(COUNT));
        CASES_LIBRARY_F32(RESULT)
    }
}

extern "C" __global__ void library_f64(const double *in, double *out, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) {
        double d = in[i], e = 3.0 - d;
        out += i * (0 CASES_LIBRARY_F64(COUNT));
        CASES_LIBRARY_F64(RESULT)
    }
}
