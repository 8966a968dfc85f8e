/* SPDX-License-Identifier: MIT */
/*
 * The device prelude: what a CUDA C++ source may use without including anything when clang compiles it for libhdrt,
 * as NVRTC gives it when NVRTC does. The compile worker hands it to clang with -include, before the source. It needs no
 * CUDA toolkit and no standard header: of clang's own headers only the built-in variables, since the others want a
 * toolkit or turn plain instructions into library calls.
 *
 * Order of choice for every function: a clang builtin, else an NVVM builtin, else inline PTX; so what has a PTX
 * instruction comes out as that instruction. Functions without one are calls to __nv_NAME, the names of NVIDIA's
 * libdevice; the soft driver answers those from the C library, for a GPU clang links libdevice where one is installed.
 * Atomics go through builtins, since a pointer loses its address space on its way into inline PTX.
 *
 * clang 14 to 19, C++14 and newer, sm_70 to sm_90. Nothing here is for the host's compiler.
 */
#ifndef HDRT_DEVICE_H
#define HDRT_DEVICE_H

#if !defined(__clang__) || !defined(__CUDA__) || !defined(__CUDA_ARCH__)
#error "hdrt_device.h is for clang's device side of a CUDA source: -x cuda --cuda-device-only"
#endif
#pragma clang system_header

/* Sources use this to see that no host code and no standard headers are there. */
#ifndef __CUDACC_RTC__
#define __CUDACC_RTC__ 1
#endif

/* ---- keywords ---------------------------------------------------------------------------------------------------- */

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
/* clang has no managed variables for NVIDIA's devices: these live on the device, and hdrt_module_global reaches them. */
#define __managed__ __attribute__((device))
#define __grid_constant__
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __forceinline__ __inline__ __attribute__((always_inline))
#if __clang_major__ < 15 /* a keyword since */
#define __noinline__ __attribute__((noinline))
#endif
#define __nv_pure__ __attribute__((pure))

#define __HDRT_FN static __inline__ __attribute__((device, always_inline, nodebug, unused))
#define __HDRT_HD static __inline__ __attribute__((host, device, always_inline, nodebug, unused))
#define __HDRT_CONST __attribute__((device, const, nothrow))

/* ---- types ------------------------------------------------------------------------------------------------------- */

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef long clock_t;
typedef __builtin_va_list va_list;
#ifndef NULL
#define NULL __null
#endif

/* Alignment as CUDA's: the whole vector for two and four elements, but never above 16. */
#define __HDRT_VECTOR(name, type, align2, align4)                                                                      \
    struct name##1 { type x; };                                                                                        \
    struct __align__(align2) name##2 { type x, y; };                                                                   \
    struct name##3 { type x, y, z; };                                                                                  \
    struct __align__(align4) name##4 { type x, y, z, w; };                                                             \
    __HDRT_HD name##1 make_##name##1(type x) { return name##1{x}; }                                                    \
    __HDRT_HD name##2 make_##name##2(type x, type y) { return name##2{x, y}; }                                         \
    __HDRT_HD name##3 make_##name##3(type x, type y, type z) { return name##3{x, y, z}; }                              \
    __HDRT_HD name##4 make_##name##4(type x, type y, type z, type w) { return name##4{x, y, z, w}; }

__HDRT_VECTOR(char, signed char, 2, 4)
__HDRT_VECTOR(uchar, unsigned char, 2, 4)
__HDRT_VECTOR(short, short, 4, 8)
__HDRT_VECTOR(ushort, unsigned short, 4, 8)
__HDRT_VECTOR(int, int, 8, 16)
__HDRT_VECTOR(uint, unsigned int, 8, 16)
__HDRT_VECTOR(long, long, 16, 16)
__HDRT_VECTOR(ulong, unsigned long, 16, 16)
__HDRT_VECTOR(longlong, long long, 16, 16)
__HDRT_VECTOR(ulonglong, unsigned long long, 16, 16)
__HDRT_VECTOR(float, float, 8, 16)
__HDRT_VECTOR(double, double, 16, 16)

struct dim3 {
    unsigned int x, y, z;
    __host__ __device__ constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1)
        : x(vx), y(vy), z(vz) {}
    __host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    __host__ __device__ constexpr operator uint3() const { return uint3{x, y, z}; }
};

/* ---- built-in variables ------------------------------------------------------------------------------------------ */

#include <__clang_cuda_builtin_vars.h>

#define __HDRT_TRIPLE(name)                                                                                            \
    __device__ inline __cuda_builtin_##name##_t::operator uint3() const { return uint3{x, y, z}; }                     \
    __device__ inline __cuda_builtin_##name##_t::operator dim3() const { return dim3(x, y, z); }

__HDRT_TRIPLE(threadIdx)
__HDRT_TRIPLE(blockIdx)
__HDRT_TRIPLE(blockDim)
__HDRT_TRIPLE(gridDim)

/* ---- the C library that a kernel has ----------------------------------------------------------------------------- */

extern "C" {
__device__ int printf(const char *, ...);
__device__ void *malloc(size_t);
__device__ void free(void *);
__device__ void *memcpy(void *, const void *, size_t);
__device__ void *memset(void *, int, size_t);
/* Not noreturn: clang then leaves the thread without an exit, and ptxas loses the paths' meeting point. */
__device__ void __assertfail(const char *, const char *, unsigned int, const char *, size_t);
}

#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition)                                                                                              \
    ((condition) ? (void)0 : __assertfail(#condition, __FILE__, __LINE__, __func__, sizeof(char)))
#endif

__device__ inline void *operator new(size_t size) { return malloc(size); }
__device__ inline void *operator new[](size_t size) { return malloc(size); }
__device__ inline void *operator new(size_t, void *place) noexcept { return place; }
__device__ inline void *operator new[](size_t, void *place) noexcept { return place; }
__device__ inline void operator delete(void *pointer) noexcept { free(pointer); }
__device__ inline void operator delete[](void *pointer) noexcept { free(pointer); }
__device__ inline void operator delete(void *pointer, size_t) noexcept { free(pointer); }
__device__ inline void operator delete[](void *pointer, size_t) noexcept { free(pointer); }

namespace std {
template <class T> struct __hdrt_bare { typedef T type; };
template <class T> struct __hdrt_bare<T &> { typedef T type; };
template <class T> struct __hdrt_bare<T &&> { typedef T type; };

template <class T> __host__ __device__ constexpr typename __hdrt_bare<T>::type &&move(T &&value) noexcept
{
    return static_cast<typename __hdrt_bare<T>::type &&>(value);
}
template <class T> __host__ __device__ constexpr T &&forward(typename __hdrt_bare<T>::type &value) noexcept
{
    return static_cast<T &&>(value);
}
template <class T> __host__ __device__ constexpr T &&forward(typename __hdrt_bare<T>::type &&value) noexcept
{
    return static_cast<T &&>(value);
}

/* The layout is the one that clang fills for a braced list. */
template <class T> class initializer_list {
    const T *first;
    size_t count;

public:
    typedef T value_type;
    typedef const T *iterator;
    typedef const T *const_iterator;
    __host__ __device__ constexpr initializer_list() noexcept : first(nullptr), count(0) {}
    __host__ __device__ constexpr size_t size() const noexcept { return count; }
    __host__ __device__ constexpr const T *begin() const noexcept { return first; }
    __host__ __device__ constexpr const T *end() const noexcept { return first + count; }
};
} // namespace std

/* ---- barriers, fences, clocks (__syncthreads itself is a builtin of clang) ---------------------------------------- */

__HDRT_FN int __syncthreads_count(int predicate) { return __nvvm_bar0_popc(predicate); }
__HDRT_FN int __syncthreads_and(int predicate) { return __nvvm_bar0_and(predicate); }
__HDRT_FN int __syncthreads_or(int predicate) { return __nvvm_bar0_or(predicate); }
__HDRT_FN void __barrier_sync(unsigned int id) { __nvvm_barrier_sync(id); }
__HDRT_FN void __barrier_sync_count(unsigned int id, unsigned int count) { __nvvm_barrier_sync_cnt(id, count); }
__HDRT_FN void __syncwarp(unsigned int mask = 0xffffffffu) { __nvvm_bar_warp_sync(mask); }
__HDRT_FN void __threadfence_block() { __nvvm_membar_cta(); }
__HDRT_FN void __threadfence() { __nvvm_membar_gl(); }
__HDRT_FN void __threadfence_system() { __nvvm_membar_sys(); }

__HDRT_FN void __nanosleep(unsigned int ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns) : "memory"); }
__HDRT_FN long long clock64() { return (long long)__nvvm_read_ptx_sreg_clock64(); }
__HDRT_FN clock_t clock() { return (clock_t)__nvvm_read_ptx_sreg_clock64(); }
__HDRT_FN void __trap() { asm volatile("trap;"); }
__HDRT_FN void __brkpt() { asm volatile("brkpt;"); }
#define __prof_trigger(n) asm volatile("pmevent %0;" ::"n"(n))

/* ---- address spaces ---------------------------------------------------------------------------------------------- */

__HDRT_FN unsigned int __isGlobal(const void *p) { return __nvvm_isspacep_global(p); }
__HDRT_FN unsigned int __isShared(const void *p) { return __nvvm_isspacep_shared(p); }
__HDRT_FN unsigned int __isConstant(const void *p) { return __nvvm_isspacep_const(p); }
__HDRT_FN unsigned int __isLocal(const void *p) { return __nvvm_isspacep_local(p); }

#define __HDRT_CVTA(name, number)                                                                                      \
    __HDRT_FN size_t __cvta_generic_to_##name(const void *p)                                                           \
    {                                                                                                                  \
        return (size_t)(__attribute__((address_space(number))) const void *)p;                                         \
    }                                                                                                                  \
    __HDRT_FN void *__cvta_##name##_to_generic(size_t p)                                                               \
    {                                                                                                                  \
        return (void *)(__attribute__((address_space(number))) void *)p;                                               \
    }

__HDRT_CVTA(global, 1)
__HDRT_CVTA(shared, 3)
__HDRT_CVTA(constant, 4)
__HDRT_CVTA(local, 5)

/* ---- atomics ----------------------------------------------------------------------------------------------------- */

/* One operation in its three scopes. NAME is of the NVVM builtin, TYPE what the caller sees, CORE what the builtin takes. */
#define __HDRT_ATOMIC(function, op, suffix, type, core)                                                                \
    __HDRT_FN type function(type *p, type v)                                                                           \
    {                                                                                                                  \
        return __builtin_bit_cast(type, __nvvm_atom_##op##_gen_##suffix((core *)p, __builtin_bit_cast(core, v)));      \
    }                                                                                                                  \
    __HDRT_FN type function##_block(type *p, type v)                                                                   \
    {                                                                                                                  \
        return __builtin_bit_cast(type, __nvvm_atom_cta_##op##_gen_##suffix((core *)p, __builtin_bit_cast(core, v)));  \
    }                                                                                                                  \
    __HDRT_FN type function##_system(type *p, type v)                                                                  \
    {                                                                                                                  \
        return __builtin_bit_cast(type, __nvvm_atom_sys_##op##_gen_##suffix((core *)p, __builtin_bit_cast(core, v)));  \
    }

#define __HDRT_ATOMIC_BITS(function, op)                                                                               \
    __HDRT_ATOMIC(function, op, i, int, int)                                                                           \
    __HDRT_ATOMIC(function, op, i, unsigned int, int)                                                                  \
    __HDRT_ATOMIC(function, op, ll, unsigned long long, long long)

#define __HDRT_ATOMIC_ORDER(function, op)                                                                              \
    __HDRT_ATOMIC(function, op, i, int, int)                                                                           \
    __HDRT_ATOMIC(function, op, ui, unsigned int, unsigned int)                                                        \
    __HDRT_ATOMIC(function, op, ll, long long, long long)                                                              \
    __HDRT_ATOMIC(function, op, ull, unsigned long long, unsigned long long)

__HDRT_ATOMIC_BITS(atomicAdd, add)
__HDRT_ATOMIC(atomicAdd, add, f, float, float)
__HDRT_ATOMIC(atomicAdd, add, d, double, double)
__HDRT_ATOMIC_BITS(atomicExch, xchg)
__HDRT_ATOMIC(atomicExch, xchg, i, float, int)
__HDRT_ATOMIC_BITS(atomicAnd, and)
__HDRT_ATOMIC_BITS(atomicOr, or)
__HDRT_ATOMIC_BITS(atomicXor, xor)
__HDRT_ATOMIC_ORDER(atomicMin, min)
__HDRT_ATOMIC_ORDER(atomicMax, max)
__HDRT_ATOMIC(atomicInc, inc, ui, unsigned int, unsigned int)
__HDRT_ATOMIC(atomicDec, dec, ui, unsigned int, unsigned int)

/* There is no atom.sub: the sum with the negative is the same, on every bit. */
#define __HDRT_ATOMIC_SUB(scope, type)                                                                                 \
    __HDRT_FN type atomicSub##scope(type *p, type v) { return atomicAdd##scope(p, (type)(0u - (unsigned int)v)); }

__HDRT_ATOMIC_SUB(, int)
__HDRT_ATOMIC_SUB(, unsigned int)
__HDRT_ATOMIC_SUB(_block, int)
__HDRT_ATOMIC_SUB(_block, unsigned int)
__HDRT_ATOMIC_SUB(_system, int)
__HDRT_ATOMIC_SUB(_system, unsigned int)

#define __HDRT_ATOMIC_CAS(scope, builtin, suffix, type, core)                                                          \
    __HDRT_FN type atomicCAS##scope(type *p, type expected, type v)                                                    \
    {                                                                                                                  \
        return (type)__nvvm_atom_##builtin##cas_gen_##suffix((core *)p, (core)expected, (core)v);                      \
    }

__HDRT_ATOMIC_CAS(, , i, int, int)
__HDRT_ATOMIC_CAS(, , i, unsigned int, int)
__HDRT_ATOMIC_CAS(, , ll, unsigned long long, long long)
__HDRT_ATOMIC_CAS(_block, cta_, i, int, int)
__HDRT_ATOMIC_CAS(_block, cta_, i, unsigned int, int)
__HDRT_ATOMIC_CAS(_block, cta_, ll, unsigned long long, long long)
__HDRT_ATOMIC_CAS(_system, sys_, i, int, int)
__HDRT_ATOMIC_CAS(_system, sys_, i, unsigned int, int)
__HDRT_ATOMIC_CAS(_system, sys_, ll, unsigned long long, long long)

/* clang 14 and 16 have no builtin for 16 bits. */
#define __HDRT_ATOMIC_CAS16(name, ptx)                                                                                 \
    __HDRT_FN unsigned short name(unsigned short *p, unsigned short expected, unsigned short v)                        \
    {                                                                                                                  \
        unsigned short old;                                                                                            \
        asm volatile("atom" ptx ".cas.b16 %0, [%1], %2, %3;" : "=h"(old) : "l"(p), "h"(expected), "h"(v) : "memory");  \
        return old;                                                                                                    \
    }

__HDRT_ATOMIC_CAS16(atomicCAS, "")
__HDRT_ATOMIC_CAS16(atomicCAS_block, ".cta")
__HDRT_ATOMIC_CAS16(atomicCAS_system, ".sys")

#endif /* HDRT_DEVICE_H */
