/* SPDX-License-Identifier: MIT */
extern "C" __global__ void fmath(const float *x, float *o, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i];
        float r = sqrtf(v) + 1.f / v + rsqrtf(v) + expf(v) + logf(v) + log2f(v) + exp2f(v) + powf(v, 1.7f) +
                  fmodf(v, 0.3f) + floorf(v) + ceilf(v) + truncf(v) + rintf(v) + roundf(v) + fabsf(v) +
                  copysignf(v, -1.f) + fminf(v, 2.f) + fmaxf(v, 3.f) + atan2f(v, 2.f) + erff(v) + cbrtf(v) +
                  hypotf(v, 1.f);
        o[i] = r;
    }
}
extern "C" __global__ void ftrig(const float *x, float *o, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float s, c;
        sincosf(x[i], &s, &c);
        o[i] = s + c * tanf(x[i]);
    }
}
extern "C" __global__ void ffast(const float *x, float *o, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i];
        o[i] = __sinf(v) + __cosf(v) + __expf(v) + __logf(v) + __powf(v, 2.2f) + __fdividef(1.f, v) + __frsqrt_rn(v) +
               __saturatef(v) + __fsqrt_rn(v) + __frcp_rn(v) + __tanf(v) + __log2f(v);
    }
}
extern "C" __global__ void frnd(const float *x, float *o, int *p, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i];
        o[i] = __fadd_rz(v, 1e-7f) + __fadd_ru(v, 1e-7f) + __fmul_rd(v, 1.1f) + __fmaf_rz(v, 1.1f, .3f) +
               __fdiv_rd(v, 3.f) + __fsqrt_ru(v);
        p[i * 8] = (int)v;
        p[i * 8 + 1] = __float2int_rn(v);
        p[i * 8 + 2] = __float2int_ru(v);
        p[i * 8 + 3] = __float2uint_rd(v);
        p[i * 8 + 4] = __float_as_int(v);
        p[i * 8 + 5] = isnan(v) || isinf(v);
        p[i * 8 + 6] = (int)(unsigned char)v;
        p[i * 8 + 7] = (int)(long long)v;
    }
}
extern "C" __global__ void dmath(const double *x, double *o, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        double v = x[i];
        o[i] = sqrt(v) + 1.0 / v + v / 3.7 + rsqrt(v) + exp(v) + log(v) + pow(v, 1.7) + sin(v) + cos(v) + floor(v) +
               trunc(v) + rint(v) + fabs(v) + fma(v, v, 1.0) + fmin(v, 1.) + tanh(v) + fmod(v, .7) + __dadd_rz(v, 1.) +
               __dmul_ru(v, v) + (double)(float)v + (double)(long long)v + (double)(unsigned)v;
    }
}
extern "C" __global__ void mandel(unsigned *o, int w, int h, float x0, float y0, float dx, int it)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= w || py >= h)
        return;
    float cx = x0 + px * dx, cy = y0 + py * dx, zx = 0, zy = 0;
    int k = 0;
    while (k < it && zx * zx + zy * zy < 4.f) {
        float t = zx * zx - zy * zy + cx;
        zy = 2 * zx * zy + cy;
        zx = t;
        k++;
    }
    o[py * w + px] = k;
}
extern "C" __global__ void nbody(const float4 *p, float4 *v, int n, float dt)
{
    __shared__ float4 s[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    float4 m = p[i];
    float ax = 0, ay = 0, az = 0;
    for (int b = 0; b < n; b += 128) {
        s[threadIdx.x] = p[b + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 128; j++) {
            float dx = s[j].x - m.x, dy = s[j].y - m.y, dz = s[j].z - m.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-6f);
            float f = s[j].w * r * r * r;
            ax += dx * f;
            ay += dy * f;
            az += dz * f;
        }
        __syncthreads();
    }
    v[i].x += ax * dt;
    v[i].y += ay * dt;
    v[i].z += az * dt;
}
