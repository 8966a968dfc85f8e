/* SPDX-License-Identifier: MIT */
/* Every case of prelude_cases.h: one thread for each element, whose results lie one after the other. */
#include "prelude_cases.h"

#define NUMBER (int)(blockIdx.x * blockDim.x + threadIdx.x)

/* The lists' lengths, by the number of their entries' members. */
#define COUNT(name, device, host) +1
#define COUNT4(name, function, operation, mode) +1
#define COUNT5(name, function, mode, least, greatest) +1

#define RESULT(name, device, host) *out++ = device;
#define RESULT_32(name, device, host) *out++ = (unsigned)(device);
#define RESULT_64(name, device, host) *out++ = (unsigned long long)(device);

static __device__ unsigned device_vibmax(unsigned a, unsigned b)
{
    bool taken;
    unsigned greatest = __vibmax_u32(a, b, &taken);
    return greatest + taken;
}

static __device__ unsigned device_vibmin_halves(unsigned a, unsigned b)
{
    bool high, low;
    unsigned least = __vibmin_s16x2(a, b, &high, &low);
    return least + low;
}

extern "C" __global__ void cases_32(const unsigned *in_a, const unsigned *in_b, const unsigned *in_c, unsigned *out,
                                    int n)
{
    int i = NUMBER;
    if (i < n) {
        unsigned a = in_a[i], b = in_b[i], c = in_c[i];
        out += i * (0 CASES_32(COUNT));
        CASES_32(RESULT_32)
    }
}

extern "C" __global__ void cases_64(const unsigned long long *in_q, const unsigned long long *in_r,
                                    unsigned long long *out, int n)
{
    int i = NUMBER;
    if (i < n) {
        unsigned long long q = in_q[i], r = in_r[i];
        out += i * (0 CASES_64(COUNT));
        CASES_64(RESULT_64)
    }
}

static __device__ float device_fraction(float f)
{
    float integral;
    return modff(f, &integral);
}

#define ONE_F32(name, function, operation, mode) *out++ = function(f);
#define TWO_F32(name, function, operation, mode) *out++ = function(f, g);
#define THREE_F32(name, function, operation, mode) *out++ = function(f, g, h);
extern "C" __global__ void cases_f32(const float *in_f, const float *in_g, const float *in_h, float *out, int n)
{
    int i = NUMBER;
    if (i < n) {
        float f = in_f[i], g = in_g[i], h = in_h[i];
        out += i * (0 CASES_F32(COUNT) CASES_F32_ONE(COUNT4) CASES_F32_TWO(COUNT4) CASES_F32_THREE(COUNT4));
        CASES_F32(RESULT)
        CASES_F32_ONE(ONE_F32)
        CASES_F32_TWO(TWO_F32)
        CASES_F32_THREE(THREE_F32)
    }
}

#define ONE_F64(name, function, operation, mode) *out++ = function(d);
#define TWO_F64(name, function, operation, mode) *out++ = function(d, e);
#define THREE_F64(name, function, operation, mode) *out++ = function(d, e, k);

extern "C" __global__ void cases_f64(const double *in_d, const double *in_e, const double *in_k, double *out, int n)
{
    int i = NUMBER;
    if (i < n) {
        double d = in_d[i], e = in_e[i], k = in_k[i];
        out += i * (0 CASES_F64(COUNT) CASES_F64_ONE(COUNT4) CASES_F64_TWO(COUNT4) CASES_F64_THREE(COUNT4));
        CASES_F64(RESULT)
        CASES_F64_ONE(ONE_F64)
        CASES_F64_TWO(TWO_F64)
        CASES_F64_THREE(THREE_F64)
    }
}

#define CONVERT(name, function, mode, least, greatest) *out++ = (unsigned long long)function(v);

extern "C" __global__ void from_f32(const float *in, unsigned long long *out, int n)
{
    int i = NUMBER;
    if (i < n) {
        float v = in[i];
        out += i * (0 CASES_CONVERT(COUNT5, float));
        CASES_CONVERT(CONVERT, float)
    }
}

extern "C" __global__ void from_f64(const double *in, unsigned long long *out, int n)
{
    int i = NUMBER;
    if (i < n) {
        double v = in[i];
        out += i * (0 CASES_CONVERT(COUNT5, double));
        CASES_CONVERT(CONVERT, double)
    }
}

#define FROM(name, function, mode, type) *out++ = function((type)q);

extern "C" __global__ void to_f32(const unsigned long long *in, float *out, int n)
{
    int i = NUMBER;
    if (i < n) {
        unsigned long long q = in[i];
        out += i * (0 CASES_F32_FROM(COUNT4));
        CASES_F32_FROM(FROM)
    }
}

extern "C" __global__ void to_f64(const unsigned long long *in, double *out, int n)
{
    int i = NUMBER;
    if (i < n) {
        unsigned long long q = in[i];
        out += i * (0 CASES_F64_FROM(COUNT4));
        CASES_F64_FROM(FROM)
    }
}

#define APPROXIMATE(name, device, host, error) *out++ = device;

extern "C" __global__ void approximate(const float *in, float *out, int n)
{
    int i = NUMBER;
    if (i < n) {
        float f = in[i];
        out += i * (0 CASES_APPROXIMATE(COUNT4));
        CASES_APPROXIMATE(APPROXIMATE)
    }
}
