/* SPDX-License-Identifier: MIT */
extern "C" __global__ void sw(const int *op, const float *a, const float *b, float *o, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float r;
    switch (op[i]) {
    case 0:
        r = a[i] + b[i];
        break;
    case 1:
        r = a[i] - b[i];
        break;
    case 2:
        r = a[i] * b[i];
        break;
    case 3:
        r = a[i] / b[i];
        break;
    case 4:
        r = fminf(a[i], b[i]);
        break;
    case 5:
        r = fmaxf(a[i], b[i]);
        break;
    case 6:
        r = sqrtf(a[i]);
        break;
    case 7:
        r = -a[i];
    case 8:
        r = b[i] + 1.f;
        break;
    default:
        r = 0;
    }
    o[i] = r;
}
__device__ __noinline__ int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
extern "C" __global__ void rec(int *o)
{
    o[threadIdx.x] = fib(threadIdx.x & 7);
}
__device__ __noinline__ float f1(float x)
{
    return x * 2;
}
__device__ __noinline__ float f2(float x)
{
    return x + 1;
}
typedef float (*fp)(float);
__device__ fp table[2] = {f1, f2};
extern "C" __global__ void fptr(const int *s, float *o)
{
    o[threadIdx.x] = table[s[threadIdx.x] & 1](o[threadIdx.x]);
}
struct V {
    float x, y, z;
    int id;
};
struct __align__(16) Q
{
    double d[3];
    V v;
};
__device__ __noinline__ V mk(V a, float k)
{
    a.x *= k;
    a.y += k;
    a.z -= k;
    a.id ^= 1;
    return a;
}
extern "C" __global__ void structs(V *v, Q q, float k)
{
    V r = mk(v[threadIdx.x], k);
    r.x += (float)q.d[threadIdx.x % 3] + q.v.y;
    v[threadIdx.x] = r;
}
extern "C" __global__ void localarr(const int *x, int *o, int n)
{
    int a[64];
    for (int i = 0; i < 64; i++)
        a[i] = x[i * blockDim.x + threadIdx.x];
    int s = 0;
    for (int i = 0; i < n; i++)
        s += a[a[i] & 63];
    for (int i = 1; i < 64; i++) {
        int k = a[i], j = i - 1;
        while (j >= 0 && a[j] > k) {
            a[j + 1] = a[j];
            j--;
        }
        a[j + 1] = k;
    }
    o[threadIdx.x] = s + a[n & 63];
}
struct B {
    __device__ virtual int f(int) = 0;
};
struct D1 : B {
    int k;
    __device__ D1(int a) : k(a)
    {
    }
    __device__ int f(int x)
    {
        return x + k;
    }
};
struct D2 : B {
    __device__ int f(int x)
    {
        return x * 3;
    }
};
extern "C" __global__ void virt(int *o, int s)
{
    D1 a(s);
    D2 b;
    B *p = (threadIdx.x & 1) ? (B *)&a : (B *)&b;
    o[threadIdx.x] = p->f(o[threadIdx.x]);
}
