/* SPDX-License-Identifier: MIT */
__constant__ float ck[25];
extern "C" __global__ void conv5(const float *__restrict__ in, float *out, int w, int h)
{
    __shared__ float t[20][20];
    int tx = threadIdx.x, ty = threadIdx.y;
    int ox = blockIdx.x * 16 + tx, oy = blockIdx.y * 16 + ty;
    for (int j = ty; j < 20; j += 16)
        for (int i = tx; i < 20; i += 16) {
            int x = blockIdx.x * 16 + i - 2, y = blockIdx.y * 16 + j - 2;
            t[j][i] = (x >= 0 && x < w && y >= 0 && y < h) ? in[y * w + x] : 0.f;
        }
    __syncthreads();
    if (ox < w && oy < h) {
        float s = 0;
#pragma unroll
        for (int j = 0; j < 5; j++)
#pragma unroll
            for (int i = 0; i < 5; i++)
                s += ck[j * 5 + i] * t[ty + j][tx + i];
        out[oy * w + ox] = s;
    }
}
extern "C" __global__ void stencil7(const double *__restrict__ u, double *v, int nx, int ny, int nz, double c)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
        z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x > 0 && y > 0 && z > 0 && x < nx - 1 && y < ny - 1 && z < nz - 1) {
        size_t i = ((size_t)z * ny + y) * nx + x;
        v[i] = u[i] + c * (u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] + u[i - (size_t)nx * ny] +
                           u[i + (size_t)nx * ny] - 6 * u[i]);
    }
}
extern "C" __global__ void life(const unsigned char *a, unsigned char *b, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)
        return;
    int n = 0;
    for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++)
            if (i || j)
                n += a[((y + j + h) % h) * w + (x + i + w) % w];
    b[y * w + x] = n == 3 || (n == 2 && a[y * w + x]);
}
