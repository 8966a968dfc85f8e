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
/* clang has no managed variables for NVIDIA's devices: these live on the device; hdrt_module_global reaches them. */
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

/* Fast mathematics was asked for: float functions with an approximate instruction are that instruction then, and tiny
 * numbers are zero. */
#if defined(__CLANG_GPU_APPROX_TRANSCENDENTALS__) || defined(__CLANG_CUDA_APPROX_TRANSCENDENTALS__)
#define __HDRT_FAST 1
#define __HDRT_APPROX(op) __nvvm_##op##_approx_ftz_f
#else
#define __HDRT_FAST 0
#define __HDRT_APPROX(op) __nvvm_##op##_approx_f
#endif

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

/* ---- barriers, fences, clocks (__syncthreads itself is a builtin of clang) --------------------------------------- */

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
/* clang gives the address of a copy, never that of a parameter itself. */
__HDRT_FN unsigned int __isGridConstant(const void *) { return 0; }
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

/* An operation in three scopes. OP is the NVVM builtin's, TYPE what the caller sees, CORE what the builtin takes. */
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

/* ---- minimum, maximum, absolute value ---------------------------------------------------------------------------- */

__HDRT_HD float fminf(float a, float b) { return __builtin_fminf(a, b); }
__HDRT_HD float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
__HDRT_HD double fmin(double a, double b) { return __builtin_fmin(a, b); }
__HDRT_HD double fmax(double a, double b) { return __builtin_fmax(a, b); }
__HDRT_HD float fmin(float a, float b) { return __builtin_fminf(a, b); }
__HDRT_HD float fmax(float a, float b) { return __builtin_fmaxf(a, b); }

/* Two different integer types meet in the usual arithmetic type, as in CUDA: unsigned wins. */
#define __HDRT_MINMAX(result, a_type, b_type)                                                                          \
    __HDRT_HD result min(a_type a, b_type b) { return (result)a < (result)b ? (result)a : (result)b; }                 \
    __HDRT_HD result max(a_type a, b_type b) { return (result)a > (result)b ? (result)a : (result)b; }
#define __HDRT_MINMAX3(signed_type, unsigned_type)                                                                     \
    __HDRT_MINMAX(signed_type, signed_type, signed_type)                                                               \
    __HDRT_MINMAX(unsigned_type, unsigned_type, unsigned_type)                                                         \
    __HDRT_MINMAX(unsigned_type, signed_type, unsigned_type)                                                           \
    __HDRT_MINMAX(unsigned_type, unsigned_type, signed_type)

__HDRT_MINMAX3(int, unsigned int)
__HDRT_MINMAX3(long, unsigned long)
__HDRT_MINMAX3(long long, unsigned long long)
__HDRT_HD float min(float a, float b) { return __builtin_fminf(a, b); }
__HDRT_HD float max(float a, float b) { return __builtin_fmaxf(a, b); }
__HDRT_HD double min(double a, double b) { return __builtin_fmin(a, b); }
__HDRT_HD double max(double a, double b) { return __builtin_fmax(a, b); }
__HDRT_HD double min(float a, double b) { return __builtin_fmin(a, b); }
__HDRT_HD double max(float a, double b) { return __builtin_fmax(a, b); }
__HDRT_HD double min(double a, float b) { return __builtin_fmin(a, b); }
__HDRT_HD double max(double a, float b) { return __builtin_fmax(a, b); }

__HDRT_HD unsigned int umin(unsigned int a, unsigned int b) { return a < b ? a : b; }
__HDRT_HD unsigned int umax(unsigned int a, unsigned int b) { return a > b ? a : b; }
__HDRT_HD long long llmin(long long a, long long b) { return a < b ? a : b; }
__HDRT_HD long long llmax(long long a, long long b) { return a > b ? a : b; }
__HDRT_HD unsigned long long ullmin(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
__HDRT_HD unsigned long long ullmax(unsigned long long a, unsigned long long b) { return a > b ? a : b; }

__HDRT_HD int abs(int a) { return a < 0 ? (int)(0 - (unsigned int)a) : a; }
__HDRT_HD long abs(long a) { return a < 0 ? (long)(0 - (unsigned long)a) : a; }
__HDRT_HD long long abs(long long a) { return a < 0 ? (long long)(0 - (unsigned long long)a) : a; }
__HDRT_HD long labs(long a) { return a < 0 ? (long)(0 - (unsigned long)a) : a; }
__HDRT_HD long long llabs(long long a) { return a < 0 ? (long long)(0 - (unsigned long long)a) : a; }
__HDRT_HD float fabsf(float a) { return __builtin_fabsf(a); }
__HDRT_HD double fabs(double a) { return __builtin_fabs(a); }
__HDRT_HD float fabs(float a) { return __builtin_fabsf(a); }
__HDRT_HD float abs(float a) { return __builtin_fabsf(a); }
__HDRT_HD double abs(double a) { return __builtin_fabs(a); }

/* ---- bits and integers ------------------------------------------------------------------------------------------- */

__HDRT_FN int __clz(int a) { return a == 0 ? 32 : __builtin_clz((unsigned int)a); }
__HDRT_FN int __clzll(long long a) { return a == 0 ? 64 : __builtin_clzll((unsigned long long)a); }
__HDRT_FN int __popc(unsigned int a) { return __builtin_popcount(a); }
__HDRT_FN int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
__HDRT_FN unsigned int __brev(unsigned int a) { return __builtin_bitreverse32(a); }
__HDRT_FN unsigned long long __brevll(unsigned long long a) { return __builtin_bitreverse64(a); }
__HDRT_FN int __ffs(int a) { return __builtin_ffs(a); }
__HDRT_FN int __ffsll(long long a) { return __builtin_ffsll(a); }
__HDRT_FN int ffs(int a) { return __builtin_ffs(a); }
__HDRT_FN unsigned short __nv_bswap16(unsigned short a) { return __builtin_bswap16(a); }
__HDRT_FN unsigned int __nv_bswap32(unsigned int a) { return __builtin_bswap32(a); }
__HDRT_FN unsigned long long __nv_bswap64(unsigned long long a) { return __builtin_bswap64(a); }

__HDRT_FN int __mulhi(int a, int b) { return __nvvm_mulhi_i(a, b); }
__HDRT_FN unsigned int __umulhi(unsigned int a, unsigned int b) { return __nvvm_mulhi_ui(a, b); }
__HDRT_FN long long __mul64hi(long long a, long long b) { return __nvvm_mulhi_ll(a, b); }
__HDRT_FN unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return __nvvm_mulhi_ull(a, b); }
__HDRT_FN int mulhi(int a, int b) { return __nvvm_mulhi_i(a, b); }
__HDRT_FN unsigned int umulhi(unsigned int a, unsigned int b) { return __nvvm_mulhi_ui(a, b); }
__HDRT_FN long long mul64hi(long long a, long long b) { return __nvvm_mulhi_ll(a, b); }
__HDRT_FN unsigned long long umul64hi(unsigned long long a, unsigned long long b) { return __nvvm_mulhi_ull(a, b); }
__HDRT_FN int __mul24(int a, int b) { return __nvvm_mul24_i(a, b); }
__HDRT_FN unsigned int __umul24(unsigned int a, unsigned int b) { return __nvvm_mul24_ui(a, b); }
__HDRT_FN unsigned int __sad(int a, int b, unsigned int c) { return (unsigned int)__nvvm_sad_i(a, b, (int)c); }
__HDRT_FN unsigned int __usad(unsigned int a, unsigned int b, unsigned int c) { return __nvvm_sad_ui(a, b, c); }

/* Means rounded down and up, without the carry that a + b would lose. */
__HDRT_FN int __hadd(int a, int b) { return (a & b) + ((a ^ b) >> 1); }
__HDRT_FN int __rhadd(int a, int b) { return (a | b) - ((a ^ b) >> 1); }
__HDRT_FN unsigned int __uhadd(unsigned int a, unsigned int b) { return (a & b) + ((a ^ b) >> 1); }
__HDRT_FN unsigned int __urhadd(unsigned int a, unsigned int b) { return (a | b) - ((a ^ b) >> 1); }

__HDRT_FN unsigned int __byte_perm(unsigned int a, unsigned int b, unsigned int selector)
{
    return (unsigned int)__nvvm_prmt(a, b, selector);
}

__HDRT_FN unsigned int __fns(unsigned int mask, unsigned int base, int offset)
{
    return __nvvm_fns(mask, base, offset);
}

#define __HDRT_FUNNEL(name, ptx)                                                                                       \
    __HDRT_FN unsigned int name(unsigned int low, unsigned int high, unsigned int shift)                               \
    {                                                                                                                  \
        unsigned int result;                                                                                           \
        asm("shf." ptx ".b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(shift));                       \
        return result;                                                                                                 \
    }

__HDRT_FUNNEL(__funnelshift_l, "l.wrap")
__HDRT_FUNNEL(__funnelshift_lc, "l.clamp")
__HDRT_FUNNEL(__funnelshift_r, "r.wrap")
__HDRT_FUNNEL(__funnelshift_rc, "r.clamp")

/* Sums of products of packed numbers; the forms with vectors take their bits. */
#define __HDRT_DOT(name, ptx, type, a_type, b_type)                                                                    \
    __HDRT_FN type name(type a, type b, type c)                                                                        \
    {                                                                                                                  \
        type result;                                                                                                   \
        asm(ptx " %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));                                           \
        return result;                                                                                                 \
    }                                                                                                                  \
    __HDRT_FN type name(a_type a, b_type b, type c)                                                                    \
    {                                                                                                                  \
        return name(__builtin_bit_cast(type, a), __builtin_bit_cast(type, b), c);                                      \
    }

__HDRT_DOT(__dp4a, "dp4a.s32.s32", int, char4, char4)
__HDRT_DOT(__dp4a, "dp4a.u32.u32", unsigned int, uchar4, uchar4)
__HDRT_DOT(__dp2a_lo, "dp2a.lo.s32.s32", int, short2, char4)
__HDRT_DOT(__dp2a_lo, "dp2a.lo.u32.u32", unsigned int, ushort2, uchar4)
__HDRT_DOT(__dp2a_hi, "dp2a.hi.s32.s32", int, short2, char4)
__HDRT_DOT(__dp2a_hi, "dp2a.hi.u32.u32", unsigned int, ushort2, uchar4)

/* ---- bit casts and conversions ----------------------------------------------------------------------------------- */

__HDRT_HD int __float_as_int(float a) { return __builtin_bit_cast(int, a); }
__HDRT_HD unsigned int __float_as_uint(float a) { return __builtin_bit_cast(unsigned int, a); }
__HDRT_HD float __int_as_float(int a) { return __builtin_bit_cast(float, a); }
__HDRT_HD float __uint_as_float(unsigned int a) { return __builtin_bit_cast(float, a); }
__HDRT_HD long long __double_as_longlong(double a) { return __builtin_bit_cast(long long, a); }
__HDRT_HD double __longlong_as_double(long long a) { return __builtin_bit_cast(double, a); }
__HDRT_FN int __double2hiint(double a) { return (int)(__builtin_bit_cast(unsigned long long, a) >> 32); }
__HDRT_FN int __double2loint(double a) { return (int)__builtin_bit_cast(unsigned long long, a); }
__HDRT_FN double __hiloint2double(int high, int low)
{
    return __builtin_bit_cast(double, (unsigned long long)(unsigned int)high << 32 | (unsigned int)low);
}

#define __HDRT_CONVERT(name, builtin, to, from)                                                                        \
    __HDRT_FN to name##_rn(from a) { return (to)builtin##_rn(a); }                                                     \
    __HDRT_FN to name##_rz(from a) { return (to)builtin##_rz(a); }                                                     \
    __HDRT_FN to name##_ru(from a) { return (to)builtin##_rp(a); }                                                     \
    __HDRT_FN to name##_rd(from a) { return (to)builtin##_rm(a); }

__HDRT_CONVERT(__float2int, __nvvm_f2i, int, float)
__HDRT_CONVERT(__float2uint, __nvvm_f2ui, unsigned int, float)
__HDRT_CONVERT(__float2ll, __nvvm_f2ll, long long, float)
__HDRT_CONVERT(__float2ull, __nvvm_f2ull, unsigned long long, float)
__HDRT_CONVERT(__double2int, __nvvm_d2i, int, double)
__HDRT_CONVERT(__double2uint, __nvvm_d2ui, unsigned int, double)
__HDRT_CONVERT(__double2ll, __nvvm_d2ll, long long, double)
__HDRT_CONVERT(__double2ull, __nvvm_d2ull, unsigned long long, double)
__HDRT_CONVERT(__double2float, __nvvm_d2f, float, double)

/* Towards zero is inline PTX here: LLVM takes its builtin for the plain conversion, which rounds to nearest. */
#define __HDRT_CONVERT_INTEGER(name, builtin, ptx, to, to_letter, from, from_letter)                                   \
    __HDRT_FN to name##_rn(from a) { return (to)a; }                                                                   \
    __HDRT_FN to name##_rz(from a)                                                                                     \
    {                                                                                                                  \
        to result;                                                                                                     \
        asm("cvt.rz." ptx " %0, %1;" : "=" to_letter(result) : from_letter(a));                                        \
        return result;                                                                                                 \
    }                                                                                                                  \
    __HDRT_FN to name##_ru(from a) { return builtin##_rp(a); }                                                         \
    __HDRT_FN to name##_rd(from a) { return builtin##_rm(a); }

__HDRT_CONVERT_INTEGER(__int2float, __nvvm_i2f, "f32.s32", float, "f", int, "r")
__HDRT_CONVERT_INTEGER(__uint2float, __nvvm_ui2f, "f32.u32", float, "f", unsigned int, "r")
__HDRT_CONVERT_INTEGER(__ll2float, __nvvm_ll2f, "f32.s64", float, "f", long long, "l")
__HDRT_CONVERT_INTEGER(__ull2float, __nvvm_ull2f, "f32.u64", float, "f", unsigned long long, "l")
__HDRT_CONVERT_INTEGER(__ll2double, __nvvm_ll2d, "f64.s64", double, "d", long long, "l")
__HDRT_CONVERT_INTEGER(__ull2double, __nvvm_ull2d, "f64.u64", double, "d", unsigned long long, "l")
__HDRT_FN double __int2double_rn(int a) { return (double)a; }
__HDRT_FN double __uint2double_rn(unsigned int a) { return (double)a; }

/* ---- arithmetic with a given rounding ---------------------------------------------------------------------------- */

/*
 * Sums and products to nearest are inline PTX: LLVM takes its own builtins for plain sums and products there, and
 * would fuse a product and a sum, which these functions exist to prevent. A difference is sub, for the sign of zero.
 */
#define __HDRT_ROUND_ASM(name, ptx, type, letter)                                                                      \
    __HDRT_FN type name(type a, type b)                                                                                \
    {                                                                                                                  \
        type result;                                                                                                   \
        asm(ptx " %0, %1, %2;" : "=" letter(result) : letter(a), letter(b));                                           \
        return result;                                                                                                 \
    }
#define __HDRT_ROUND_ASM4(name, op, ptx, type, letter)                                                                 \
    __HDRT_ROUND_ASM(name##_rn, op ".rn." ptx, type, letter)                                                           \
    __HDRT_ROUND_ASM(name##_rz, op ".rz." ptx, type, letter)                                                           \
    __HDRT_ROUND_ASM(name##_ru, op ".rp." ptx, type, letter)                                                           \
    __HDRT_ROUND_ASM(name##_rd, op ".rm." ptx, type, letter)

__HDRT_ROUND_ASM4(__fadd, "add", "f32", float, "f")
__HDRT_ROUND_ASM4(__fsub, "sub", "f32", float, "f")
__HDRT_ROUND_ASM4(__fmul, "mul", "f32", float, "f")
__HDRT_ROUND_ASM4(__dadd, "add", "f64", double, "d")
__HDRT_ROUND_ASM4(__dsub, "sub", "f64", double, "d")
__HDRT_ROUND_ASM4(__dmul, "mul", "f64", double, "d")

#define __HDRT_ROUND(name, op, suffix, params, args, type)                                                             \
    __HDRT_FN type name##_rn params { return __nvvm_##op##_rn_##suffix args; }                                         \
    __HDRT_FN type name##_rz params { return __nvvm_##op##_rz_##suffix args; }                                         \
    __HDRT_FN type name##_ru params { return __nvvm_##op##_rp_##suffix args; }                                         \
    __HDRT_FN type name##_rd params { return __nvvm_##op##_rm_##suffix args; }

__HDRT_ROUND(__fdiv, div, f, (float a, float b), (a, b), float)
__HDRT_ROUND(__ddiv, div, d, (double a, double b), (a, b), double)
__HDRT_ROUND(__fmaf, fma, f, (float a, float b, float c), (a, b, c), float)
__HDRT_ROUND(__fmaf_ieee, fma, f, (float a, float b, float c), (a, b, c), float)
__HDRT_ROUND(__fma, fma, d, (double a, double b, double c), (a, b, c), double)
__HDRT_ROUND(__frcp, rcp, f, (float a), (a), float)
__HDRT_ROUND(__drcp, rcp, d, (double a), (a), double)
__HDRT_ROUND(__fsqrt, sqrt, f, (float a), (a), float)
__HDRT_ROUND(__dsqrt, sqrt, d, (double a), (a), double)

/* Rounding the double result once more gives the nearest float for every float: all of them were compared. */
__HDRT_FN float __frsqrt_rn(float a) { return (float)__nvvm_rcp_rn_d(__nvvm_sqrt_rn_d((double)a)); }

/* ---- mathematics with an instruction ----------------------------------------------------------------------------- */

#if __HDRT_FAST
__HDRT_FN float sqrtf(float a) { return __HDRT_APPROX(sqrt)(a); }
#else
__HDRT_FN float sqrtf(float a) { return __nvvm_sqrt_rn_f(a); }
#endif
__HDRT_FN double sqrt(double a) { return __nvvm_sqrt_rn_d(a); }
__HDRT_FN float sqrt(float a) { return sqrtf(a); }
__HDRT_FN float rsqrtf(float a) { return __HDRT_APPROX(rsqrt)(a); }
__HDRT_FN double rsqrt(double a) { return __nvvm_rsqrt_approx_d(a); }
__HDRT_FN float rsqrt(float a) { return rsqrtf(a); }
__HDRT_FN float exp2f(float a) { return __HDRT_APPROX(ex2)(a); }
__HDRT_FN float exp2(float a) { return exp2f(a); }
__HDRT_FN float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__HDRT_FN double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
__HDRT_FN float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

/* Inline PTX: clang's builtin comes out as four instructions. PTX takes the sign first. */
__HDRT_FN float copysignf(float a, float b)
{
    float result;
    asm("copysign.f32 %0, %1, %2;" : "=f"(result) : "f"(b), "f"(a));
    return result;
}
__HDRT_FN double copysign(double a, double b)
{
    double result;
    asm("copysign.f64 %0, %1, %2;" : "=d"(result) : "d"(b), "d"(a));
    return result;
}
__HDRT_FN float copysign(float a, float b) { return copysignf(a, b); }

#define __HDRT_ROUND_TO_INTEGRAL(name)                                                                                 \
    __HDRT_FN float name##f(float a) { return __builtin_##name##f(a); }                                                \
    __HDRT_FN double name(double a) { return __builtin_##name(a); }                                                    \
    __HDRT_FN float name(float a) { return __builtin_##name##f(a); }

__HDRT_ROUND_TO_INTEGRAL(floor)
__HDRT_ROUND_TO_INTEGRAL(ceil)
__HDRT_ROUND_TO_INTEGRAL(trunc)
__HDRT_ROUND_TO_INTEGRAL(rint)
__HDRT_ROUND_TO_INTEGRAL(nearbyint)

/* Half away from zero: add half, towards zero so that the sum never rounds up to the next integer, and cut. */
__HDRT_FN float roundf(float a) { return truncf(__nvvm_add_rz_f(a, copysignf(0.5f, a))); }
__HDRT_FN double round(double a) { return trunc(__nvvm_add_rz_d(a, copysign(0.5, a))); }
__HDRT_FN float round(float a) { return roundf(a); }
__HDRT_FN long lrintf(float a) { return (long)__nvvm_f2ll_rn(a); }
__HDRT_FN long lrint(double a) { return (long)__nvvm_d2ll_rn(a); }
__HDRT_FN long lrint(float a) { return lrintf(a); }
__HDRT_FN long long llrintf(float a) { return __nvvm_f2ll_rn(a); }
__HDRT_FN long long llrint(double a) { return __nvvm_d2ll_rn(a); }
__HDRT_FN long long llrint(float a) { return llrintf(a); }
__HDRT_FN long lroundf(float a) { return (long)__nvvm_f2ll_rz(roundf(a)); }
__HDRT_FN long lround(double a) { return (long)__nvvm_d2ll_rz(round(a)); }
__HDRT_FN long lround(float a) { return lroundf(a); }
__HDRT_FN long long llroundf(float a) { return __nvvm_f2ll_rz(roundf(a)); }
__HDRT_FN long long llround(double a) { return __nvvm_d2ll_rz(round(a)); }
__HDRT_FN long long llround(float a) { return llroundf(a); }

__HDRT_FN float fdimf(float a, float b) { return a <= b ? 0.0f : a - b; }
__HDRT_FN double fdim(double a, double b) { return a <= b ? 0.0 : a - b; }
__HDRT_FN float fdim(float a, float b) { return fdimf(a, b); }

__HDRT_FN float __saturatef(float a) { return __nvvm_saturate_f(a); }
__HDRT_FN float __fdividef(float a, float b) { return __HDRT_APPROX(div)(a, b); }
__HDRT_FN float fdividef(float a, float b) { return __HDRT_APPROX(div)(a, b); }
__HDRT_FN float __sinf(float a) { return __HDRT_APPROX(sin)(a); }
__HDRT_FN float __cosf(float a) { return __HDRT_APPROX(cos)(a); }
__HDRT_FN float __tanf(float a) { return __HDRT_APPROX(div)(__HDRT_APPROX(sin)(a), __HDRT_APPROX(cos)(a)); }
__HDRT_FN float __log2f(float a) { return __HDRT_APPROX(lg2)(a); }
__HDRT_FN float __logf(float a) { return __HDRT_APPROX(lg2)(a) * 0x1.62e43p-1f; }
__HDRT_FN float __log10f(float a) { return __HDRT_APPROX(lg2)(a) * 0x1.344136p-2f; }
__HDRT_FN float __exp2f(float a) { return __HDRT_APPROX(ex2)(a); }
__HDRT_FN float __expf(float a) { return __HDRT_APPROX(ex2)(a * 0x1.715476p+0f); }
__HDRT_FN float __exp10f(float a) { return __HDRT_APPROX(ex2)(a * 0x1.a934fp+1f); }
__HDRT_FN float __powf(float a, float b) { return __HDRT_APPROX(ex2)(b * __HDRT_APPROX(lg2)(a)); }
__HDRT_FN void __sincosf(float a, float *sine, float *cosine)
{
    *sine = __sinf(a);
    *cosine = __cosf(a);
}
/* By the bits' order and not by comparison with itself, so that fast mathematics cannot take them away. */
__HDRT_HD bool isnan(float a) { return (__float_as_uint(a) & 0x7fffffffu) > 0x7f800000u; }
__HDRT_HD bool isnan(double a) { return (__double_as_longlong(a) & 0x7fffffffffffffffll) > 0x7ff0000000000000ll; }
__HDRT_HD bool isinf(float a) { return (__float_as_uint(a) & 0x7fffffffu) == 0x7f800000u; }
__HDRT_HD bool isinf(double a) { return (__double_as_longlong(a) & 0x7fffffffffffffffll) == 0x7ff0000000000000ll; }
__HDRT_HD bool isfinite(float a) { return (__float_as_uint(a) & 0x7fffffffu) < 0x7f800000u; }
__HDRT_HD bool isfinite(double a) { return (__double_as_longlong(a) & 0x7fffffffffffffffll) < 0x7ff0000000000000ll; }
__HDRT_HD bool signbit(float a) { return __float_as_int(a) < 0; }
__HDRT_HD bool signbit(double a) { return __double_as_longlong(a) < 0; }
__HDRT_HD int __isnanf(float a) { return isnan(a); }
__HDRT_HD int __isnan(double a) { return isnan(a); }
__HDRT_HD int __isinff(float a) { return isinf(a); }
__HDRT_HD int __isinf(double a) { return isinf(a); }
__HDRT_HD int __finitef(float a) { return isfinite(a); }
__HDRT_HD int __finite(double a) { return isfinite(a); }
__HDRT_HD int __signbitf(float a) { return signbit(a); }
__HDRT_HD int __signbit(double a) { return signbit(a); }

__HDRT_FN float nanf(const char *) { return __int_as_float(0x7fffffff); }
__HDRT_FN double nan(const char *) { return __longlong_as_double(0x7fffffffffffffffll); }

/* ---- mathematics without an instruction -------------------------------------------------------------------------- */

/* NAME with the float form NAMEf, under C's names and C++'s overload; the symbols are libdevice's. */
#define __HDRT_LIBRARY(name, params, fparams)                                                                    \
    __HDRT_CONST double name params __asm__("__nv_" #name);                                                            \
    __HDRT_CONST float name##f fparams __asm__("__nv_" #name "f");                                                     \
    __HDRT_CONST float name fparams __asm__("__nv_" #name "f");
#define __HDRT_LIBRARY1(name) __HDRT_LIBRARY(name, (double), (float))
#define __HDRT_LIBRARY2(name) __HDRT_LIBRARY(name, (double, double), (float, float))
#define __HDRT_LIBRARY3(name) __HDRT_LIBRARY(name, (double, double, double), (float, float, float))
#define __HDRT_LIBRARY4(name) \
    __HDRT_LIBRARY(name, (double, double, double, double), (float, float, float, float))
#define __HDRT_LIBRARY_INT(name) __HDRT_LIBRARY(name, (double, int), (float, int))

#if __HDRT_FAST
#define __HDRT_FAST1(name)                                                                                             \
    __HDRT_CONST double name(double) __asm__("__nv_" #name);                                                           \
    __HDRT_FN float name##f(float a) { return __##name##f(a); }                                                        \
    __HDRT_FN float name(float a) { return __##name##f(a); }
#else
#define __HDRT_FAST1(name) __HDRT_LIBRARY1(name)
#endif

__HDRT_FAST1(sin)
__HDRT_FAST1(cos)
__HDRT_FAST1(tan)
__HDRT_FAST1(exp)
__HDRT_FAST1(exp10)
__HDRT_FAST1(log)
__HDRT_FAST1(log2)
__HDRT_FAST1(log10)

__HDRT_CONST double exp2(double) __asm__("__nv_exp2");
__HDRT_CONST double pow(double, double) __asm__("__nv_pow");
__HDRT_CONST double pow(double, int) __asm__("__nv_powi");
__HDRT_CONST float pow(float, int) __asm__("__nv_powif");
#if __HDRT_FAST
__HDRT_FN float powf(float a, float b) { return __powf(a, b); }
__HDRT_FN void sincosf(float a, float *sine, float *cosine) { __sincosf(a, sine, cosine); }
#else
__HDRT_CONST float powf(float, float) __asm__("__nv_powf");
__device__ void sincosf(float, float *, float *) __asm__("__nv_sincosf");
#endif
__HDRT_FN float pow(float a, float b) { return powf(a, b); }
__device__ void sincos(double, double *, double *) __asm__("__nv_sincos");
__HDRT_FN void sincos(float a, float *sine, float *cosine) { sincosf(a, sine, cosine); }

/* These write a second result, or read an array. */
#define __HDRT_LIBRARY_POINTER(name, params, fparams)                                                                  \
    __device__ double name params __asm__("__nv_" #name);                                                              \
    __device__ float name##f fparams __asm__("__nv_" #name "f");                                                       \
    __device__ float name fparams __asm__("__nv_" #name "f");

__HDRT_LIBRARY_POINTER(frexp, (double, int *), (float, int *))
__HDRT_LIBRARY_POINTER(norm, (int, const double *), (int, const float *))
__HDRT_LIBRARY_POINTER(rnorm, (int, const double *), (int, const float *))
__HDRT_LIBRARY_POINTER(remquo, (double, double, int *), (float, float, int *))
__device__ void sincospi(double, double *, double *) __asm__("__nv_sincospi");
__device__ void sincospif(float, float *, float *) __asm__("__nv_sincospif");
__device__ void sincospi(float, float *, float *) __asm__("__nv_sincospif");
__HDRT_CONST double jn(int, double) __asm__("__nv_jn");
__HDRT_CONST float jnf(int, float) __asm__("__nv_jnf");
__HDRT_CONST double yn(int, double) __asm__("__nv_yn");
__HDRT_CONST float ynf(int, float) __asm__("__nv_ynf");
__HDRT_CONST int ilogb(double) __asm__("__nv_ilogb");
__HDRT_CONST int ilogbf(float) __asm__("__nv_ilogbf");
__HDRT_CONST int ilogb(float) __asm__("__nv_ilogbf");

/* The fraction keeps the sign, also where it is zero; an infinite number has the fraction zero. */
__HDRT_FN float modff(float a, float *integral)
{
    *integral = truncf(a);
    return copysignf(isinf(a) ? 0.0f : a - *integral, a);
}
__HDRT_FN double modf(double a, double *integral)
{
    *integral = trunc(a);
    return copysign(isinf(a) ? 0.0 : a - *integral, a);
}
__HDRT_FN float modf(float a, float *integral) { return modff(a, integral); }

__HDRT_LIBRARY1(acos)
__HDRT_LIBRARY1(acosh)
__HDRT_LIBRARY1(asin)
__HDRT_LIBRARY1(asinh)
__HDRT_LIBRARY1(atan)
__HDRT_LIBRARY1(atanh)
__HDRT_LIBRARY2(atan2)
__HDRT_LIBRARY1(cbrt)
__HDRT_LIBRARY1(cosh)
__HDRT_LIBRARY1(cospi)
__HDRT_LIBRARY1(cyl_bessel_i0)
__HDRT_LIBRARY1(cyl_bessel_i1)
__HDRT_LIBRARY1(erf)
__HDRT_LIBRARY1(erfc)
__HDRT_LIBRARY1(erfcinv)
__HDRT_LIBRARY1(erfcx)
__HDRT_LIBRARY1(erfinv)
__HDRT_LIBRARY1(expm1)
__HDRT_LIBRARY2(fmod)
__HDRT_LIBRARY2(hypot)
__HDRT_LIBRARY1(j0)
__HDRT_LIBRARY1(j1)
__HDRT_LIBRARY_INT(ldexp)
__HDRT_LIBRARY1(lgamma)
__HDRT_LIBRARY1(log1p)
__HDRT_LIBRARY1(logb)
__HDRT_LIBRARY2(nextafter)
__HDRT_LIBRARY3(norm3d)
__HDRT_LIBRARY4(norm4d)
__HDRT_LIBRARY1(normcdf)
__HDRT_LIBRARY1(normcdfinv)
__HDRT_LIBRARY1(rcbrt)
__HDRT_LIBRARY2(remainder)
__HDRT_LIBRARY2(rhypot)
__HDRT_LIBRARY3(rnorm3d)
__HDRT_LIBRARY4(rnorm4d)
__HDRT_LIBRARY_INT(scalbn)
__HDRT_LIBRARY1(sinh)
__HDRT_LIBRARY1(sinpi)
__HDRT_LIBRARY1(tanh)
__HDRT_LIBRARY1(tgamma)
__HDRT_LIBRARY1(y0)
__HDRT_LIBRARY1(y1)

__HDRT_FN double scalbln(double a, long b) { return scalbn(a, (int)max(-9999l, min(b, 9999l))); }
__HDRT_FN float scalblnf(float a, long b) { return scalbnf(a, (int)max(-9999l, min(b, 9999l))); }
__HDRT_FN float scalbln(float a, long b) { return scalblnf(a, b); }

__HDRT_FN float __tanhf(float a)
{
#if __CUDA_ARCH__ >= 750
    float result;
    asm("tanh.approx.f32 %0, %1;" : "=f"(result) : "f"(a));
    return result;
#else
    return tanhf(a);
#endif
}

/* ---- warps ------------------------------------------------------------------------------------------------------- */

__HDRT_FN unsigned int __activemask()
{
    unsigned int mask;
    asm volatile("activemask.b32 %0;" : "=r"(mask));
    return mask;
}

__HDRT_FN int __all_sync(unsigned int mask, int predicate) { return __nvvm_vote_all_sync(mask, predicate != 0); }
__HDRT_FN int __any_sync(unsigned int mask, int predicate) { return __nvvm_vote_any_sync(mask, predicate != 0); }
__HDRT_FN int __uni_sync(unsigned int mask, int predicate) { return __nvvm_vote_uni_sync(mask, predicate != 0); }
__HDRT_FN unsigned int __ballot_sync(unsigned int mask, int predicate)
{
    return __nvvm_vote_ballot_sync(mask, predicate != 0);
}

/*
 * The last operand of shfl says where a segment of WIDTH lanes begins and, except for up, that it ends at lane 31.
 * Eight bytes go as two times four. Lanes that nobody reads from may give a variable that they never set.
 */
#if __has_attribute(maybe_undef)
#define __HDRT_ANY(type) __attribute__((maybe_undef)) type
#else /* clang before 16: what is only referred to may be undefined */
#define __HDRT_ANY(type) const type &
#endif
#define __HDRT_SHUFFLE4(function, mode, end, type, core, suffix, lane_type)                                            \
    __HDRT_FN type function(unsigned int mask, __HDRT_ANY(type) value, lane_type lane, int width = 32)                 \
    {                                                                                                                  \
        return __builtin_bit_cast(type, __nvvm_shfl_sync_##mode##_##suffix(mask, __builtin_bit_cast(core, value),      \
                                                                           (int)lane, ((32 - width) << 8) | end));     \
    }
#define __HDRT_SHUFFLE8(function, mode, end, type, lane_type)                                                          \
    __HDRT_FN type function(unsigned int mask, __HDRT_ANY(type) value, lane_type lane, int width = 32)                 \
    {                                                                                                                  \
        unsigned long long bits = __builtin_bit_cast(unsigned long long, value);                                       \
        int bound = ((32 - width) << 8) | end;                                                                         \
        unsigned int low = (unsigned int)__nvvm_shfl_sync_##mode##_i32(mask, (int)bits, (int)lane, bound);             \
        unsigned int high = (unsigned int)__nvvm_shfl_sync_##mode##_i32(mask, (int)(bits >> 32), (int)lane, bound);    \
        return __builtin_bit_cast(type, (unsigned long long)high << 32 | low);                                         \
    }
#define __HDRT_SHUFFLE(function, mode, end, lane_type)                                                                 \
    __HDRT_SHUFFLE4(function, mode, end, int, int, i32, lane_type)                                                     \
    __HDRT_SHUFFLE4(function, mode, end, unsigned int, int, i32, lane_type)                                            \
    __HDRT_SHUFFLE4(function, mode, end, float, float, f32, lane_type)                                                 \
    __HDRT_SHUFFLE8(function, mode, end, long, lane_type)                                                              \
    __HDRT_SHUFFLE8(function, mode, end, unsigned long, lane_type)                                                     \
    __HDRT_SHUFFLE8(function, mode, end, long long, lane_type)                                                         \
    __HDRT_SHUFFLE8(function, mode, end, unsigned long long, lane_type)                                                \
    __HDRT_SHUFFLE8(function, mode, end, double, lane_type)

__HDRT_SHUFFLE(__shfl_sync, idx, 0x1f, int)
__HDRT_SHUFFLE(__shfl_up_sync, up, 0, unsigned int)
__HDRT_SHUFFLE(__shfl_down_sync, down, 0x1f, unsigned int)
__HDRT_SHUFFLE(__shfl_xor_sync, bfly, 0x1f, int)

/* Inline PTX: clang 14's builtin for 64 bits has the wrong type of result. */
#define __HDRT_MATCH(type, core, ptx, letter)                                                                          \
    __HDRT_FN unsigned int __match_any_sync(unsigned int mask, type value)                                             \
    {                                                                                                                  \
        unsigned int same;                                                                                             \
        asm volatile("match.any.sync." ptx " %0, %1, %2;"                                                              \
                     : "=r"(same)                                                                                      \
                     : letter(__builtin_bit_cast(core, value)), "r"(mask));                                            \
        return same;                                                                                                   \
    }                                                                                                                  \
    __HDRT_FN unsigned int __match_all_sync(unsigned int mask, type value, int *all)                                   \
    {                                                                                                                  \
        unsigned int same;                                                                                             \
        int predicate;                                                                                                 \
        asm volatile("{ .reg .pred %%all; match.all.sync." ptx " %0|%%all, %2, %3; selp.s32 %1, 1, 0, %%all; }"        \
                     : "=r"(same), "=r"(predicate)                                                                     \
                     : letter(__builtin_bit_cast(core, value)), "r"(mask));                                            \
        *all = predicate;                                                                                              \
        return same;                                                                                                   \
    }

__HDRT_MATCH(int, unsigned int, "b32", "r")
__HDRT_MATCH(unsigned int, unsigned int, "b32", "r")
__HDRT_MATCH(float, unsigned int, "b32", "r")
__HDRT_MATCH(long, unsigned long long, "b64", "l")
__HDRT_MATCH(unsigned long, unsigned long long, "b64", "l")
__HDRT_MATCH(long long, unsigned long long, "b64", "l")
__HDRT_MATCH(unsigned long long, unsigned long long, "b64", "l")
__HDRT_MATCH(double, unsigned long long, "b64", "l")

#if __CUDA_ARCH__ >= 800
#define __HDRT_REDUX(name, op, type)                                                                                   \
    __HDRT_FN type name(unsigned int mask, type value) { return (type)__nvvm_redux_sync_##op(value, mask); }

__HDRT_REDUX(__reduce_add_sync, add, int)
__HDRT_REDUX(__reduce_add_sync, add, unsigned int)
__HDRT_REDUX(__reduce_min_sync, min, int)
__HDRT_REDUX(__reduce_min_sync, umin, unsigned int)
__HDRT_REDUX(__reduce_max_sync, max, int)
__HDRT_REDUX(__reduce_max_sync, umax, unsigned int)
__HDRT_REDUX(__reduce_and_sync, and, unsigned int)
__HDRT_REDUX(__reduce_or_sync, or, unsigned int)
__HDRT_REDUX(__reduce_xor_sync, xor, unsigned int)
#endif

/* ---- loads and stores with a cache hint -------------------------------------------------------------------------- */

/*
 * A load or store moves the bits of any type of 1, 2, 4, 8 or 16 bytes that is aligned to its size: CUDA's list of
 * types without a function for each.
 */
template <int size> struct __hdrt_bits;
template <> struct __hdrt_bits<1> { typedef unsigned char type; };
template <> struct __hdrt_bits<2> { typedef unsigned short type; };
template <> struct __hdrt_bits<4> { typedef unsigned int type; };
template <> struct __hdrt_bits<8> { typedef unsigned long long type; };
template <> struct __hdrt_bits<16> { typedef ulonglong2 type; };

#define __HDRT_LOAD(name, core)                                                                                        \
    template <class T> __HDRT_FN T name(const T *p)                                                                    \
    {                                                                                                                  \
        static_assert(alignof(T) == sizeof(T), #name " takes scalars and vectors of two or four");                     \
        return __builtin_bit_cast(T, core((const typename __hdrt_bits<sizeof(T)>::type *)p));                          \
    }

/* Read-only for the kernel's whole life, by clang's builtins, which keep the address arithmetic in the instruction. */
__HDRT_FN unsigned char __hdrt_ldg(const unsigned char *p) { return __nvvm_ldg_uc(p); }
__HDRT_FN unsigned short __hdrt_ldg(const unsigned short *p) { return __nvvm_ldg_us(p); }
__HDRT_FN unsigned int __hdrt_ldg(const unsigned int *p) { return __nvvm_ldg_ui(p); }
__HDRT_FN unsigned long long __hdrt_ldg(const unsigned long long *p) { return __nvvm_ldg_ull(p); }
__HDRT_FN ulonglong2 __hdrt_ldg(const ulonglong2 *p)
{
    typedef unsigned long long pair __attribute__((ext_vector_type(2)));
    return __builtin_bit_cast(ulonglong2, __nvvm_ldg_ull2((const pair *)p));
}
__HDRT_LOAD(__ldg, __hdrt_ldg)

/* The other hints have no builtin. A byte travels in a register of 32 bits: there is none of 8. */
#define __HDRT_HINT_LOAD1(core, hint, type, bits, letter, register_type)                                               \
    __HDRT_FN type core(const type *p)                                                                                 \
    {                                                                                                                  \
        register_type v;                                                                                               \
        asm volatile("ld.global." hint "." bits " %0, [%1];" : "=" letter(v) : "l"(p) : "memory");                     \
        return (type)v;                                                                                                \
    }
#define __HDRT_HINT_LOAD(name, hint)                                                                                   \
    __HDRT_HINT_LOAD1(__hdrt##name, hint, unsigned char, "u8", "r", unsigned int)                                      \
    __HDRT_HINT_LOAD1(__hdrt##name, hint, unsigned short, "u16", "h", unsigned short)                                  \
    __HDRT_HINT_LOAD1(__hdrt##name, hint, unsigned int, "u32", "r", unsigned int)                                      \
    __HDRT_HINT_LOAD1(__hdrt##name, hint, unsigned long long, "u64", "l", unsigned long long)                          \
    __HDRT_FN ulonglong2 __hdrt##name(const ulonglong2 *p)                                                             \
    {                                                                                                                  \
        ulonglong2 v;                                                                                                  \
        asm volatile("ld.global." hint ".v2.u64 {%0, %1}, [%2];" : "=l"(v.x), "=l"(v.y) : "l"(p) : "memory");          \
        return v;                                                                                                      \
    }                                                                                                                  \
    __HDRT_LOAD(name, __hdrt##name)

#define __HDRT_HINT_STORE1(core, hint, type, bits, letter, register_type)                                              \
    __HDRT_FN void core(type *p, type v)                                                                               \
    {                                                                                                                  \
        asm volatile("st.global." hint "." bits " [%0], %1;" ::"l"(p), letter((register_type)v) : "memory");           \
    }
#define __HDRT_HINT_STORE(name, hint)                                                                                  \
    __HDRT_HINT_STORE1(__hdrt##name, hint, unsigned char, "u8", "r", unsigned int)                                     \
    __HDRT_HINT_STORE1(__hdrt##name, hint, unsigned short, "u16", "h", unsigned short)                                 \
    __HDRT_HINT_STORE1(__hdrt##name, hint, unsigned int, "u32", "r", unsigned int)                                     \
    __HDRT_HINT_STORE1(__hdrt##name, hint, unsigned long long, "u64", "l", unsigned long long)                         \
    __HDRT_FN void __hdrt##name(ulonglong2 *p, ulonglong2 v)                                                           \
    {                                                                                                                  \
        asm volatile("st.global." hint ".v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(v.x), "l"(v.y) : "memory");             \
    }                                                                                                                  \
    template <class T> __HDRT_FN void name(T *p, typename __hdrt_same<T>::type v)                                      \
    {                                                                                                                  \
        typedef typename __hdrt_bits<sizeof(T)>::type core;                                                            \
        static_assert(alignof(T) == sizeof(T), #name " takes scalars and vectors of two or four");                     \
        __hdrt##name((core *)p, __builtin_bit_cast(core, v));                                                          \
    }

/* The pointer alone decides the type: what is stored converts to it. */
template <class T> struct __hdrt_same { typedef T type; };

__HDRT_HINT_LOAD(__ldca, "ca")
__HDRT_HINT_LOAD(__ldcg, "cg")
__HDRT_HINT_LOAD(__ldcs, "cs")
__HDRT_HINT_LOAD(__ldlu, "lu")
__HDRT_HINT_LOAD(__ldcv, "cv")
__HDRT_HINT_STORE(__stwb, "wb")
__HDRT_HINT_STORE(__stcg, "cg")
__HDRT_HINT_STORE(__stcs, "cs")
__HDRT_HINT_STORE(__stwt, "wt")

/* ---- packed halfwords and bytes ---------------------------------------------------------------------------------- */

enum __hdrt_lane_op {
    __hdrt_lane_add, __hdrt_lane_sub, __hdrt_lane_addss, __hdrt_lane_subss, __hdrt_lane_addus, __hdrt_lane_subus,
    __hdrt_lane_avg, __hdrt_lane_hadd, __hdrt_lane_max, __hdrt_lane_min, __hdrt_lane_absdiff, __hdrt_lane_abs,
    __hdrt_lane_absss, __hdrt_lane_neg, __hdrt_lane_negss, __hdrt_lane_eq, __hdrt_lane_ne, __hdrt_lane_ge,
    __hdrt_lane_gt, __hdrt_lane_le, __hdrt_lane_lt
};

__HDRT_FN int __hdrt_lane_read(unsigned int word, int at, int bits, bool is_signed)
{
    unsigned int top = word << (32 - bits - at);
    return is_signed ? (int)top >> (32 - bits) : (int)(top >> (32 - bits));
}

__HDRT_FN int __hdrt_lane_clip(int v, int low, int high) { return v < low ? low : v > high ? high : v; }

/* What one lane gives; of it the lane keeps its low bits. Means round away from zero, halved sums down. */
__HDRT_FN int __hdrt_lane_of(__hdrt_lane_op op, int x, int y, int bits)
{
    int high = (1 << (bits - 1)) - 1, low = -high - 1;

    switch (op) {
    case __hdrt_lane_add: return x + y;
    case __hdrt_lane_sub: return x - y;
    case __hdrt_lane_addss: return __hdrt_lane_clip(x + y, low, high);
    case __hdrt_lane_subss: return __hdrt_lane_clip(x - y, low, high);
    case __hdrt_lane_addus: return __hdrt_lane_clip(x + y, 0, high - low);
    case __hdrt_lane_subus: return __hdrt_lane_clip(x - y, 0, high - low);
    case __hdrt_lane_avg: return (x + y + (x + y >= 0)) >> 1;
    case __hdrt_lane_hadd: return (x + y) >> 1;
    case __hdrt_lane_max: return x > y ? x : y;
    case __hdrt_lane_min: return x < y ? x : y;
    case __hdrt_lane_absdiff: return x > y ? x - y : y - x;
    case __hdrt_lane_abs: return x < 0 ? -x : x;
    case __hdrt_lane_absss: return __hdrt_lane_clip(x < 0 ? -x : x, low, high);
    case __hdrt_lane_neg: return -x;
    case __hdrt_lane_negss: return __hdrt_lane_clip(-x, low, high);
    case __hdrt_lane_eq: return x == y;
    case __hdrt_lane_ne: return x != y;
    case __hdrt_lane_ge: return x >= y;
    case __hdrt_lane_gt: return x > y;
    case __hdrt_lane_le: return x <= y;
    case __hdrt_lane_lt: return x < y;
    }
    return 0;
}

/* All lanes; FACTOR is what a lane's result is multiplied by, -1 to fill it with ones. Inlined, nothing but the one
 * operation is left. */
__HDRT_FN unsigned int __hdrt_lanes(__hdrt_lane_op op, unsigned int a, unsigned int b, int bits, bool is_signed,
                                    int factor = 1)
{
    unsigned int result = 0, mask = (1u << bits) - 1;

#pragma unroll
    for (int at = 0; at < 32; at += bits) {
        int x = __hdrt_lane_read(a, at, bits, is_signed), y = __hdrt_lane_read(b, at, bits, is_signed);
        result |= ((unsigned int)(__hdrt_lane_of(op, x, y, bits) * factor) & mask) << at;
    }
    return result;
}

__HDRT_FN unsigned int __hdrt_lanes_sad(unsigned int a, unsigned int b, int bits, bool is_signed)
{
    unsigned int result = 0;

#pragma unroll
    for (int at = 0; at < 32; at += bits) {
        int x = __hdrt_lane_read(a, at, bits, is_signed), y = __hdrt_lane_read(b, at, bits, is_signed);
        result += (unsigned int)(x > y ? x - y : y - x);
    }
    return result;
}

#define __HDRT_LANES2(name, op, is_signed)                                                                             \
    __HDRT_FN unsigned int name##2(unsigned int a, unsigned int b) { return __hdrt_lanes(op, a, b, 16, is_signed); }   \
    __HDRT_FN unsigned int name##4(unsigned int a, unsigned int b) { return __hdrt_lanes(op, a, b, 8, is_signed); }
#define __HDRT_LANES1(name, op)                                                                                        \
    __HDRT_FN unsigned int name##2(unsigned int a) { return __hdrt_lanes(op, a, 0, 16, true); }                        \
    __HDRT_FN unsigned int name##4(unsigned int a) { return __hdrt_lanes(op, a, 0, 8, true); }
/* vcmp fills the lane with ones, vset gives one. */
#define __HDRT_LANES_COMPARE(name, op, is_signed)                                                                      \
    __HDRT_FN unsigned int __vcmp##name##2(unsigned int a, unsigned int b)                                             \
    {                                                                                                                  \
        return __hdrt_lanes(op, a, b, 16, is_signed, -1);                                                              \
    }                                                                                                                  \
    __HDRT_FN unsigned int __vcmp##name##4(unsigned int a, unsigned int b)                                             \
    {                                                                                                                  \
        return __hdrt_lanes(op, a, b, 8, is_signed, -1);                                                               \
    }                                                                                                                  \
    __HDRT_LANES2(__vset##name, op, is_signed)

__HDRT_LANES2(__vadd, __hdrt_lane_add, false)
__HDRT_LANES2(__vsub, __hdrt_lane_sub, false)
__HDRT_LANES2(__vaddss, __hdrt_lane_addss, true)
__HDRT_LANES2(__vsubss, __hdrt_lane_subss, true)
__HDRT_LANES2(__vaddus, __hdrt_lane_addus, false)
__HDRT_LANES2(__vsubus, __hdrt_lane_subus, false)
__HDRT_LANES2(__vavgs, __hdrt_lane_avg, true)
__HDRT_LANES2(__vavgu, __hdrt_lane_avg, false)
__HDRT_LANES2(__vhaddu, __hdrt_lane_hadd, false)
__HDRT_LANES2(__vmaxs, __hdrt_lane_max, true)
__HDRT_LANES2(__vmaxu, __hdrt_lane_max, false)
__HDRT_LANES2(__vmins, __hdrt_lane_min, true)
__HDRT_LANES2(__vminu, __hdrt_lane_min, false)
__HDRT_LANES2(__vabsdiffs, __hdrt_lane_absdiff, true)
__HDRT_LANES2(__vabsdiffu, __hdrt_lane_absdiff, false)
__HDRT_LANES1(__vabs, __hdrt_lane_abs)
__HDRT_LANES1(__vabsss, __hdrt_lane_absss)
__HDRT_LANES1(__vneg, __hdrt_lane_neg)
__HDRT_LANES1(__vnegss, __hdrt_lane_negss)
__HDRT_LANES_COMPARE(eq, __hdrt_lane_eq, false)
__HDRT_LANES_COMPARE(ne, __hdrt_lane_ne, false)
__HDRT_LANES_COMPARE(ges, __hdrt_lane_ge, true)
__HDRT_LANES_COMPARE(geu, __hdrt_lane_ge, false)
__HDRT_LANES_COMPARE(gts, __hdrt_lane_gt, true)
__HDRT_LANES_COMPARE(gtu, __hdrt_lane_gt, false)
__HDRT_LANES_COMPARE(les, __hdrt_lane_le, true)
__HDRT_LANES_COMPARE(leu, __hdrt_lane_le, false)
__HDRT_LANES_COMPARE(lts, __hdrt_lane_lt, true)
__HDRT_LANES_COMPARE(ltu, __hdrt_lane_lt, false)
__HDRT_FN unsigned int __vsads2(unsigned int a, unsigned int b) { return __hdrt_lanes_sad(a, b, 16, true); }
__HDRT_FN unsigned int __vsads4(unsigned int a, unsigned int b) { return __hdrt_lanes_sad(a, b, 8, true); }
__HDRT_FN unsigned int __vsadu2(unsigned int a, unsigned int b) { return __hdrt_lanes_sad(a, b, 16, false); }
__HDRT_FN unsigned int __vsadu4(unsigned int a, unsigned int b) { return __hdrt_lanes_sad(a, b, 8, false); }

/* ---- the greatest and least of sums and of three, as dynamic programming uses them ------------------------------- */

/* The better of x and y; relu: never below zero. */
__HDRT_FN int __hdrt_best(bool greatest, int x, int y, bool relu = false)
{
    int best = (greatest ? x > y : x < y) ? x : y;
    return relu && best < 0 ? 0 : best;
}
__HDRT_FN unsigned int __hdrt_best_unsigned(bool greatest, unsigned int x, unsigned int y)
{
    return (greatest ? x > y : x < y) ? x : y;
}

/* Per halfword the best of x and c, where x is the sum of a and b, cut to the halfword, or the better of them. */
__HDRT_FN unsigned int __hdrt_best_halves(bool greatest, bool sum, bool is_signed, bool relu, unsigned int a,
                                          unsigned int b, unsigned int c)
{
    unsigned int result = 0;

#pragma unroll
    for (int at = 0; at < 32; at += 16) {
        int x = __hdrt_lane_read(a, at, 16, is_signed), y = __hdrt_lane_read(b, at, 16, is_signed);
        int z = __hdrt_lane_read(c, at, 16, is_signed);
        int first = sum ? __hdrt_lane_read((unsigned int)(x + y), 0, 16, is_signed) : __hdrt_best(greatest, x, y);
        result |= ((unsigned int)__hdrt_best(greatest, first, z, relu) & 0xffffu) << at;
    }
    return result;
}

#define __HDRT_BEST_HALVES(which, greatest, suffix, is_signed, relu)                                                   \
    __HDRT_FN unsigned int __viadd##which##suffix(unsigned int a, unsigned int b, unsigned int c)                      \
    {                                                                                                                  \
        return __hdrt_best_halves(greatest, true, is_signed, relu, a, b, c);                                           \
    }                                                                                                                  \
    __HDRT_FN unsigned int __vi##which##3##suffix(unsigned int a, unsigned int b, unsigned int c)                      \
    {                                                                                                                  \
        return __hdrt_best_halves(greatest, false, is_signed, relu, a, b, c);                                          \
    }
#define __HDRT_BEST_SIGNED(which, greatest, suffix, relu)                                                              \
    __HDRT_FN int __viadd##which##suffix(int a, int b, int c)                                                          \
    {                                                                                                                  \
        return __hdrt_best(greatest, (int)((unsigned int)a + (unsigned int)b), c, relu);                               \
    }                                                                                                                  \
    __HDRT_FN int __vi##which##3##suffix(int a, int b, int c)                                                          \
    {                                                                                                                  \
        return __hdrt_best(greatest, __hdrt_best(greatest, a, b), c, relu);                                            \
    }
/* The forms with a predicate say whether a is the one taken; equal counts as a. */
#define __HDRT_BEST(which, greatest, op)                                                                               \
    __HDRT_BEST_SIGNED(which, greatest, _s32, false)                                                                   \
    __HDRT_BEST_SIGNED(which, greatest, _s32_relu, true)                                                               \
    __HDRT_BEST_HALVES(which, greatest, _s16x2, true, false)                                                           \
    __HDRT_BEST_HALVES(which, greatest, _s16x2_relu, true, true)                                                       \
    __HDRT_BEST_HALVES(which, greatest, _u16x2, false, false)                                                          \
    __HDRT_FN unsigned int __viadd##which##_u32(unsigned int a, unsigned int b, unsigned int c)                        \
    {                                                                                                                  \
        return __hdrt_best_unsigned(greatest, a + b, c);                                                               \
    }                                                                                                                  \
    __HDRT_FN unsigned int __vi##which##3_u32(unsigned int a, unsigned int b, unsigned int c)                          \
    {                                                                                                                  \
        return __hdrt_best_unsigned(greatest, __hdrt_best_unsigned(greatest, a, b), c);                                \
    }                                                                                                                  \
    __HDRT_FN int __vi##which##_s32_relu(int a, int b) { return __hdrt_best(greatest, a, b, true); }                   \
    __HDRT_FN unsigned int __vi##which##_s16x2_relu(unsigned int a, unsigned int b)                                    \
    {                                                                                                                  \
        return __hdrt_best_halves(greatest, false, true, true, a, b, b);                                               \
    }                                                                                                                  \
    __HDRT_FN int __vib##which##_s32(int a, int b, bool *taken) { return (*taken = a op b) ? a : b; }                  \
    __HDRT_FN unsigned int __vib##which##_u32(unsigned int a, unsigned int b, bool *taken)                             \
    {                                                                                                                  \
        return (*taken = a op b) ? a : b;                                                                              \
    }                                                                                                                  \
    __HDRT_FN unsigned int __vib##which##_s16x2(unsigned int a, unsigned int b, bool *high, bool *low)                 \
    {                                                                                                                  \
        *high = (short)(a >> 16) op (short)(b >> 16);                                                                  \
        *low = (short)a op (short)b;                                                                                   \
        return (*high ? a : b) & 0xffff0000u | (*low ? a : b) & 0xffffu;                                               \
    }                                                                                                                  \
    __HDRT_FN unsigned int __vib##which##_u16x2(unsigned int a, unsigned int b, bool *high, bool *low)                 \
    {                                                                                                                  \
        *high = a >> 16 op b >> 16;                                                                                    \
        *low = (unsigned short)a op(unsigned short) b;                                                                 \
        return (*high ? a : b) & 0xffff0000u | (*low ? a : b) & 0xffffu;                                               \
    }

__HDRT_BEST(max, true, >=)
__HDRT_BEST(min, false, <=)

#endif /* HDRT_DEVICE_H */
