/* SPDX-License-Identifier: MIT */
/*
 * The soft driver's answers, all but kernels (test_soft_launch.c). The expected codes are what an H200 gave for the
 * same calls (driver 580.159, CUDA 13.0), unless a case says otherwise.
 */
#include "soft.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* ---- start ---- */

START_TEST(before_initialisation)
{
    hdcu_pointer pointer;
    hdcu_device device;
    int number;
    const char *name;
    soft_table();
    IS(cuMemAlloc(&pointer, 16), 3);
    IS(cuDeviceGetCount(&number), 3);
    IS(cuCtxGetCurrent(&context), 3);
    OK(cuDriverGetVersion(&number));
    ck_assert_int_eq(number, 13000);
    OK(cuGetErrorName(700, &name));
    ck_assert_str_eq(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
    IS(cuInit(1), 1);
    OK(cuInit(0));
    OK(cuInit(0));
    IS(cuDeviceGet(&device, 7), 101);
    IS(cuDeviceGet(&device, -1), 101);
    IS(cuMemAlloc(&pointer, 16), 201);
    OK(cuMemFree(0));
    IS(cuCtxPopCurrent(&context), 201);
    IS(cuDevicePrimaryCtxRelease(0), 201);
    OK(cuDevicePrimaryCtxReset(0));
    IS(cuCtxPushCurrent(NULL), 1);
}
END_TEST

START_TEST(error_names)
{
    const char *text = "";
    soft_table();
#define NAMED(name, number)                                                                                            \
    OK(cuGetErrorName(number, &text));                                                                                 \
    ck_assert_str_eq(text, "CUDA_" #name);                                                                             \
    OK(cuGetErrorString(number, &text));                                                                               \
    ck_assert_uint_gt(strlen(text), 3);
    HDCU_RESULT_LIST(NAMED)
    IS(cuGetErrorName(12345, &text), 1);
    ck_assert_ptr_null(text);
    OK(cuGetErrorString(719, &text));
    ck_assert_str_eq(text, "unspecified launch failure");
}
END_TEST

START_TEST(procedure_addresses)
{
    void *function;
    soft_table();
    OK(cuGetProcAddress("cuMemAlloc", &function, 11040, 0));
    ck_assert_ptr_eq(function, *(void **)&cu.cuMemAlloc);
    IS(cuGetProcAddress("cuMemAlloc_v2", &function, 12000, 0), 500);
    ck_assert_ptr_eq(function, *(void **)&cu.cuMemAlloc); /* left alone */
    OK(cuGetProcAddress("cuStreamQuery", &function, 12000, HDCU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
    ck_assert_ptr_ne(function, *(void **)&cu.cuStreamQuery);
    IS(cuGetProcAddress("cuStreamQuery", &function, 12000, 64), 1);
    IS(cuGetProcAddress("cuNope", &function, 12000, 0), 500);
    IS(cuGetProcAddress("cuGraphCreate", &function, 9000, 0), 500);
    IS(cuGetProcAddress("cuCtxCreate", &function, 13000, 0), 500); /* that is another interface */
    ck_assert_ptr_null(hdsoft_get_proc_address("cuNope"));
    ck_assert_ptr_null(hdsoft_get_proc_address("cuMemAlloc"));
    setenv("HDSOFT_DRIVER_VERSION", "11040", 1);
    ck_assert_ptr_null(hdsoft_get_proc_address("cuLaunchKernelEx"));
    ck_assert_ptr_nonnull(hdsoft_get_proc_address("cuLaunchKernel"));
}
END_TEST

START_TEST(no_devices)
{
    setenv("HDSOFT_DEVICES", "0", 1);
    soft_table();
    IS(cuInit(0), 100);
    IS(cuDevicePrimaryCtxRetain(&context, 0), 3);
}
END_TEST

START_TEST(one_exported_symbol)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/.libs/libhdsoft.so", getenv("abs_top_builddir") ? getenv("abs_top_builddir") : ".");
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(module != NULL, "%s", dlerror());
    hdcu_soft_lookup lookup;
    *(void **)&lookup = dlsym(module, HDCU_SOFT_LOOKUP);
    ck_assert_ptr_nonnull(*(void **)&lookup);
    ck_assert_ptr_null(dlsym(module, "hdsoft__cuInit"));
    ck_assert_ptr_null(dlsym(module, "hdsoft_run_step"));
    ck_assert_ptr_nonnull(lookup("cuInit"));
    ck_assert_ptr_ne(lookup("cuInit"), hdsoft_get_proc_address("cuInit"));
}
END_TEST

/* ---- devices ---- */

static const struct {
    unsigned attribute;
    int value;
} attributes[] = {
    {HDCU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024}, {HDCU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {HDCU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647}, {HDCU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {HDCU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132}, {HDCU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {HDCU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9}, {HDCU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {HDCU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448}, {HDCU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {HDCU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1}, {HDCU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0},
    {HDCU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1}, {HDCU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {HDCU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
};

START_TEST(device_attributes)
{
    soft_start();
    int value;
    OK(cuDeviceGetAttribute(&value, attributes[_i].attribute, 0));
    ck_assert_int_eq(value, attributes[_i].value);
}
END_TEST

START_TEST(devices)
{
    soft_start_two();
    int value;
    size_t bytes, free_bytes;
    char name[100];
    hdcu_device device;
    hdcu_uuid one, other;
    IS(cuDeviceGetAttribute(&value, 0, 0), 1);
    IS(cuDeviceGetAttribute(&value, 148, 0), 1);
    IS(cuDeviceGetAttribute(&value, 1, 5), 101);
    for (unsigned i = 1; i < 148; i++)
        OK(cuDeviceGetAttribute(&value, i, 1));
    OK(cuDeviceGetCount(&value));
    ck_assert_int_eq(value, 2);
    OK(cuDeviceGetName(name, sizeof name, 0));
    ck_assert_ptr_nonnull(strstr(name, "software"));
    OK(cuDeviceTotalMem(&bytes, 0));
    OK(cuMemGetInfo(&free_bytes, &bytes));
    ck_assert_uint_eq(bytes, (size_t)16 << 30);
    ck_assert_uint_lt(free_bytes, bytes);
    OK(cuDeviceGetUuid(&one, 0));
    OK(cuDeviceGetUuid(&other, 1));
    ck_assert(memcmp(&one, &other, sizeof one));
    OK(cuDeviceGetPCIBusId(name, sizeof name, 1));
    OK(cuDeviceGetByPCIBusId(&device, name));
    ck_assert_int_eq(device, 1);
    OK(cuDeviceCanAccessPeer(&value, 0, 1));
    ck_assert_int_eq(value, 1);
    OK(cuDeviceCanAccessPeer(&value, 0, 0));
    ck_assert_int_eq(value, 0);
}
END_TEST

/* ---- contexts ---- */

START_TEST(primary_context)
{
    soft_start();
    unsigned flags;
    int active;
    hdcu_context same;
    hdcu_pointer pointer;
    hdcu_device device;
    OK(cuDevicePrimaryCtxSetFlags(0, 4));
    OK(cuCtxGetFlags(&flags));
    ck_assert_uint_eq(flags, 12);
    IS(cuDevicePrimaryCtxSetFlags(0, 0xffff), 1);
    OK(cuDevicePrimaryCtxRetain(&same, 0));
    ck_assert_ptr_eq(same, context);
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    ck_assert_int_eq(active, 1);
    pointer = new_memory(16);
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    ck_assert_int_eq(active, 0);
    OK(cuCtxGetCurrent(&same));
    IS(cuMemAlloc(&pointer, 16), 709);
    OK(cuCtxGetDevice(&device));
    IS(cuCtxSynchronize(), 709);
    IS(cuMemFree(pointer), 709);
    IS(cuDevicePrimaryCtxRelease(0), 201);
    OK(cuCtxSetCurrent(context));
    OK(cuDevicePrimaryCtxRetain(&same, 0));
    ck_assert_ptr_eq(same, context);
    OK(cuMemAlloc(&pointer, 16));
    OK(cuCtxPopCurrent(&same));
    IS(cuCtxPopCurrent(&same), 201);
}
END_TEST

START_TEST(own_contexts)
{
    soft_start();
    hdcu_context one, other, current;
    hdcu_pointer pointer;
    size_t before, after, total;
    OK(cuCtxPopCurrent(NULL));
    OK(cuCtxCreate(&one, 0, 0));
    OK(cuCtxCreate(&other, 0, 0));
    OK(cuMemGetInfo(&before, &total));
    pointer = new_memory(1 << 20);
    new_stream(1);
    new_event(0);
    new_pinned(100);
    OK(cuCtxGetCurrent(&current));
    ck_assert_ptr_eq(current, other);
    OK(cuCtxDestroy(other));
    OK(cuCtxGetCurrent(&current));
    ck_assert_ptr_eq(current, one);
    OK(cuMemGetInfo(&after, &total));
    ck_assert_uint_gt(after, before);
    IS(cuMemFree(pointer), 1); /* it went with its context */
    IS(cuCtxDestroy(other), 709);
    OK(cuCtxPushCurrent(one));
    OK(cuCtxDestroy(one));
    OK(cuCtxGetCurrent(&current));
    ck_assert_ptr_eq(current, one);
    IS(cuMemAlloc(&pointer, 16), 709);
    OK(cuCtxPopCurrent(&current));
    IS(cuCtxPopCurrent(&current), 201);
    IS(cuCtxDestroy(NULL), 1);
    IS(cuCtxCreate(&one, 0x1000, 0), 1);
    IS(cuCtxCreate(&one, 3, 0), 1);
    IS(cuCtxCreate(&one, 0, 9), 101);
}
END_TEST

static const struct {
    unsigned limit, get_code, set_code;
    size_t value, set, then;
} limits[] = {
    {0, 0, 0, 1024, 2000, 2000}, {1, 0, 0, 8650752, 100, 524288}, {2, 0, 0, 8388608, 1000, 4194304},
    {3, 215, 215, 0, 0, 0}, {4, 0, 0, 2048, 4096, 4096}, {5, 0, 0, 64, 128, 128}, {6, 0, 0, 11796480, 0, 0},
    {7, 0, 800, 232448, 5, 232448}, {8, 0, 800, 0, 1, 0}, {9, 215, 215, 0, 0, 0}, {99, 1, 1, 0, 0, 0},
};

START_TEST(context_limits)
{
    soft_start();
    size_t value = 77;
    IS(cuCtxGetLimit(&value, limits[_i].limit), limits[_i].get_code);
    if (!limits[_i].get_code)
        ck_assert_uint_eq(value, limits[_i].value);
    IS(cuCtxSetLimit(limits[_i].limit, limits[_i].set), limits[_i].set_code);
    if (limits[_i].get_code)
        return;
    OK(cuCtxGetLimit(&value, limits[_i].limit));
    ck_assert_uint_eq(value, limits[_i].then);
}
END_TEST

/* ---- memory ---- */

START_TEST(device_memory)
{
    soft_start();
    hdcu_pointer pointer, other, base;
    size_t bytes;
    IS(cuMemAlloc(&pointer, 0), 1);
    IS(cuMemAlloc(NULL, 4), 1);
    IS(cuMemAlloc(&pointer, (size_t)1 << 50), 2);
    pointer = new_memory(100);
    other = new_memory(1);
    ck_assert_uint_ge(other - pointer, 512 + 100); /* room between them, so that an overrun is found */
    ck_assert_uint_eq(pointer % 512, 0);
    IS(cuMemFree(pointer + 4), 1);
    IS(cuMemFree(12345), 1);
    OK(cuMemFree(other));
    IS(cuMemFree(other), 1);
    OK(cuMemGetAddressRange(&base, &bytes, pointer + 99));
    ck_assert_uint_eq(base, pointer);
    ck_assert_uint_eq(bytes, 100);
    IS(cuMemGetAddressRange(&base, &bytes, pointer + 100), 500);
    IS(cuMemGetAddressRange(&base, &bytes, 64), 500);
    unsigned word;
    pointer = new_memory(4);
    OK(cuMemcpyDtoH(&word, pointer, 4));
    ck_assert_uint_eq(word, 0x7ff7a5a5); /* fresh memory is never zero by luck */
}
END_TEST

START_TEST(large_memory_is_lazy)
{
    soft_start();
    hdcu_pointer pointer = new_memory((size_t)12 << 30), rest;
    unsigned word;
    OK(cuMemcpyDtoH(&word, pointer + ((hdcu_pointer)9 << 30), 4));
    ck_assert_uint_eq(word, 0x7ff7a5a5);
    IS(cuMemAlloc(&rest, (size_t)5 << 30), 2);
    OK(cuMemFree(pointer));
    OK(cuMemAlloc(&rest, (size_t)5 << 30));
}
END_TEST

static void touch(hdcu_pointer pointer)
{
    *(volatile char *)(uintptr_t)pointer = 1;
}

START_TEST(host_cannot_follow_device_pointers)
{
    soft_start();
    signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would end the process in its own way */
    touch(new_memory(64)); /* a signal ends this process, and the test expects it */
}
END_TEST

START_TEST(pinned_memory)
{
    soft_start();
    unsigned char page[64];
    void *pinned, *nothing = page;
    hdcu_pointer pointer;
    unsigned flags;
    pinned = new_pinned(4096);
    OK(cuMemHostAlloc(&nothing, 0, 0));
    ck_assert_ptr_null(nothing);
    IS(cuMemHostAlloc(&nothing, 10, 0xff), 1);
    OK(cuMemHostGetDevicePointer(&pointer, (char *)pinned + 8, 0));
    ck_assert_uint_eq(pointer, (uintptr_t)pinned + 8);
    IS(cuMemHostGetDevicePointer(&pointer, pinned, 1), 1);
    IS(cuMemHostGetDevicePointer(&pointer, page, 0), 1);
    OK(cuMemHostGetFlags(&flags, pinned));
    ck_assert_uint_eq(flags, 2);
    IS(cuMemHostGetFlags(&flags, page), 1);
    IS(cuMemFree((uintptr_t)pinned), 1);
    IS(cuMemFreeHost(page), 1);
    OK(cuMemFreeHost(NULL));
    IS(cuMemFreeHost((char *)pinned + 8), 1);
    OK(cuMemFreeHost(pinned));
    IS(cuMemFreeHost(pinned), 1);
}
END_TEST

START_TEST(registered_memory)
{
    soft_start();
    hdcu_pointer pointer, device = new_memory(64);
    unsigned char page[64];
    char *at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OK(cuMemHostRegister(at, 8192, 0));
    IS(cuMemHostRegister(at, 8192, 0), 712);
    IS(cuMemHostRegister(at + 4096, 8192, 0), 712);
    OK(cuMemHostRegister(at + 20000, 100, 0));
    OK(cuMemHostRegister(at + 20200, 100, 0));
    OK(cuMemHostGetDevicePointer(&pointer, at + 20050, 0));
    ck_assert_uint_eq(pointer, (uintptr_t)at + 20050);
    IS(cuMemHostRegister(NULL, 100, 0), 1);
    IS(cuMemHostRegister(at, 0, 0), 1);
    IS(cuMemHostRegister((void *)4096, 100, 0), 1);
    IS(cuMemHostRegister(at + 65536, 4096, 0xf0), 1);
    IS(cuMemcpyHtoD(device, at + 8190, 8), 1); /* half of it pinned */
    IS(cuMemcpyHtoDAsync(device, at + 8190, 8, NULL), 1);
    IS(cuMemHostUnregister(at + 4096), 1);
    OK(cuMemHostUnregister(at));
    IS(cuMemHostUnregister(at), 713);
    IS(cuMemHostUnregister(page), 713);
    IS(cuMemFreeHost(at + 20000), 1);
    OK(cuMemHostUnregister(at + 20000));
    IS(cuMemHostUnregister(NULL), 1);
}
END_TEST

START_TEST(pointer_attributes)
{
    soft_start();
    hdcu_pointer device = new_memory(100), base;
    char *pinned = new_pinned(4096), page[16];
    hdcu_context owner = NULL;
    unsigned type = 9;
    int ordinal = 9;
    OK(cuPointerGetAttribute(&owner, HDCU_POINTER_ATTRIBUTE_CONTEXT, device + 4));
    ck_assert_ptr_eq(owner, context);
    OK(cuPointerGetAttribute(&type, HDCU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 4));
    ck_assert_uint_eq(type, HDCU_MEMORYTYPE_DEVICE);
    OK(cuPointerGetAttribute(&type, HDCU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)pinned + 4));
    ck_assert_uint_eq(type, HDCU_MEMORYTYPE_HOST);
    OK(cuPointerGetAttribute(&base, HDCU_POINTER_ATTRIBUTE_RANGE_START_ADDR, device + 4));
    ck_assert_uint_eq(base, device);
    IS(cuPointerGetAttribute(&base, HDCU_POINTER_ATTRIBUTE_HOST_POINTER, device), 1);
    IS(cuPointerGetAttribute(&type, HDCU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)page), 1);
    unsigned which[] = {HDCU_POINTER_ATTRIBUTE_CONTEXT, HDCU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                        HDCU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&owner, &type, &ordinal};
    OK(cuPointerGetAttributes(3, which, values, (uintptr_t)page));
    ck_assert_ptr_null(owner);
    ck_assert_uint_eq(type, 0);
    ck_assert_int_eq(ordinal, -2);
    OK(cuMemFree(device));
    IS(cuPointerGetAttribute(&type, HDCU_POINTER_ATTRIBUTE_MEMORY_TYPE, device), 1);
}
END_TEST

START_TEST(stream_ordered_memory)
{
    soft_start();
    hdcu_stream stream = new_stream(1);
    hdcu_pointer pointer, plain = new_memory(64);
    hdcu_pool pool, own;
    uint64_t value;
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemAllocAsync(&pointer, 100, stream));
    OK(cuMemPoolGetAttribute(pool, HDCU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    ck_assert_uint_eq(value, 100);
    IS(cuMemFreeAsync(pointer + 4, stream), 1);
    OK(cuMemsetD8Async(pointer, 7, 100, stream));
    OK(cuMemFreeAsync(pointer, stream));
    IS(cuMemFreeAsync(pointer, stream), 1);
    OK(cuMemFreeAsync(0, stream));
    OK(cuMemFreeAsync(plain, stream));
    OK(cuStreamSynchronize(stream));
    IS(cuMemFree(plain), 1);
    OK(cuMemPoolGetAttribute(pool, HDCU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    ck_assert_uint_eq(value, 0);
    OK(cuMemPoolGetAttribute(pool, HDCU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    ck_assert_uint_eq(value, 100);
    OK(cuMemAllocAsync(&pointer, 100, stream));
    OK(cuMemFree(pointer));
    IS(cuMemFree(pointer), 1);
    IS(cuMemAllocAsync(&pointer, (size_t)1 << 50, stream), 2);
    IS(cuMemPoolDestroy(pool), 1);
    hdcu_pool_properties properties = {.allocation_type = 1, .location = {1, 0}};
    OK(cuMemPoolCreate(&own, &properties));
    OK(cuMemAllocFromPoolAsync(&pointer, 64, own, stream));
    OK(cuMemPoolDestroy(own));
    IS(cuMemAllocFromPoolAsync(&pointer, 64, own, stream), 1);
    OK(cuMemFreeAsync(pointer, stream));
    OK(cuStreamSynchronize(stream));
}
END_TEST

/* What runs before its allocation's turn, or after its free's, is found. */
START_TEST(stream_order_of_memory_is_kept)
{
    soft_start();
    hdcu_stream one = new_stream(1), other = new_stream(1);
    hdcu_pointer pointer;
    gate closed = gate_on(one);
    OK(cuMemAllocAsync(&pointer, 64, one));
    OK(cuMemsetD8Async(pointer, 1, 64, other)); /* nothing orders it behind the allocation */
    IS(cuStreamSynchronize(other), 700);
    ck_assert_ptr_nonnull(strstr(soft_last_fault(), "has not allocated yet"));
    gate_open(closed);
}
END_TEST

START_TEST(use_after_free_is_explained)
{
    soft_start();
    hdcu_stream one = new_stream(1), other = new_stream(1);
    hdcu_pointer pointer;
    OK(cuMemAllocAsync(&pointer, 64, one));
    OK(cuStreamSynchronize(one));
    gate closed = gate_on(other);
    OK(cuMemsetD8Async(pointer, 1, 64, other));
    OK(cuMemFreeAsync(pointer, one));
    OK(cuStreamSynchronize(one));
    gate_open(closed);
    IS(cuStreamSynchronize(other), 700);
    ck_assert_ptr_nonnull(strstr(soft_last_fault(), "freed"));
    IS(cuStreamSynchronize(one), 700);
}
END_TEST

/* Measured: freeing waits for what was enqueued after the allocation, and only for that. */
START_TEST(free_waits_for_possible_users)
{
    soft_start();
    hdcu_stream stream = new_stream(1);
    hdcu_pointer before = new_memory(64);
    gate closed = gate_on(stream);
    hdcu_pointer after = new_memory(64);
    OK(cuMemFree(after)); /* nothing enqueued since: returns although the stream is held */
    OK(cuMemsetD8Async(before, 1, 64, stream));
    gate_open(closed);
    OK(cuMemFree(before));
    OK(cuStreamQuery(stream));
}
END_TEST

/* ---- copies ---- */

START_TEST(copy_codes)
{
    soft_start();
    unsigned char host[128] = {0};
    hdcu_pointer device = new_memory(100), pinned = (uintptr_t)new_pinned(4096);
    OK(cuMemcpyHtoD(device, host, 64));
    IS(cuMemcpyHtoD(device, host, 101), 1);
    IS(cuMemcpyHtoD(device + 90, host, 11), 1);
    OK(cuMemcpyHtoD(device, host, 0));
    OK(cuMemcpyHtoD(0, host, 0));
    IS(cuMemcpyHtoD(0, host, 4), 1);
    IS(cuMemcpyHtoD(device, NULL, 4), 1);
    IS(cuMemcpyDtoH(NULL, device, 4), 1);
    OK(cuMemcpyHtoD(device, (void *)(uintptr_t)device, 4));
    OK(cuMemcpyDtoD(device, device + 8, 4));
    IS(cuMemcpyDtoD(device, (uintptr_t)host, 4), 1);
    OK(cuMemcpy(device, (uintptr_t)host, 4));
    OK(cuMemcpy((uintptr_t)host, (uintptr_t)(host + 8), 4));
    OK(cuMemsetD8(device, 1, 100));
    IS(cuMemsetD8(device, 1, 101), 1);
    OK(cuMemsetD32(device, 1, 4));
    IS(cuMemsetD32(device + 1, 1, 4), 1);
    IS(cuMemsetD16(device + 1, 1, 4), 1);
    OK(cuMemsetD8(device, 1, 0));
    IS(cuMemsetD8((uintptr_t)host, 1, 4), 1);
    OK(cuMemsetD8(pinned, 1, 4));
    OK(cuMemsetD2D8Async(device, 16, 1, 8, 4, NULL));
    IS(cuMemsetD2D8Async(device, 4, 1, 8, 4, NULL), 1);
    IS(cuMemsetD2D8Async(device, 64, 1, 8, 4, NULL), 1);
    OK(cuMemsetD2D8Async(device, 0, 1, 8, 1, NULL));
}
END_TEST

static const struct {
    size_t width, height, source_pitch, destination_pitch;
    unsigned source_type, destination_type, code;
} regions[] = {
    {8, 8, 8, 8, 1, 2, 0}, {9, 8, 8, 8, 1, 2, 1}, {8, 8, 0, 8, 1, 2, 0}, {8, 8, 7, 8, 1, 2, 1}, {8, 0, 8, 8, 1, 2, 0},
    {0, 8, 8, 8, 1, 2, 0}, {8, 8, 8, 16, 1, 2, 1}, {8, 8, 8, 8, 9, 2, 1}, {8, 8, 8, 8, 1, 0, 1},
    {8, 8, 8, 8, 3, 2, 1},
};

START_TEST(region_codes)
{
    soft_start();
    char host[256] = {0};
    hdcu_memcpy2d region = {
        .source_type = regions[_i].source_type, .source_host = host, .source_pitch = regions[_i].source_pitch,
        .destination_type = regions[_i].destination_type, .destination_device = new_memory(100),
        .destination_pitch = regions[_i].destination_pitch, .width_bytes = regions[_i].width,
        .height = regions[_i].height,
    };
    IS(cuMemcpy2D(&region), regions[_i].code);
    IS(cuMemcpy2DAsync(&region, NULL), regions[_i].code);
    IS(cuMemcpy2D(NULL), 1);
    OK(cuCtxSynchronize());
}
END_TEST

START_TEST(copies_move_bytes)
{
    soft_start();
    enum { N = 3 << 20 };
    hdcu_stream stream = new_stream(1);
    unsigned char *from = new_pinned(N), *to = new_pinned(N), *pageable = malloc(N);
    hdcu_pointer one = new_memory(N), other = new_memory(N);
    for (size_t i = 0; i < N; i++)
        from[i] = (unsigned char)(i * 7 + (i >> 9));
    OK(cuMemcpyHtoDAsync(one, from, N, stream));
    OK(cuMemcpyDtoDAsync(other, one, N, stream));
    OK(cuMemcpyDtoHAsync(to, other, N, stream));
    OK(cuStreamSynchronize(stream));
    ck_assert(!memcmp(from, to, N));
    OK(cuMemcpyDtoH(pageable, other, N));
    ck_assert(!memcmp(from, pageable, N));
    memset(pageable, 3, N);
    OK(cuMemcpyHtoDAsync(one, pageable, N, stream)); /* too large to be staged: returns when it is read */
    memset(pageable, 4, N);
    OK(cuMemcpyDtoH(to, one, N));
    ck_assert_uint_eq(to[0], 3);
    ck_assert_uint_eq(to[N - 1], 3);
    OK(cuMemsetD16(one, 0x0102, N / 2));
    OK(cuMemsetD32(one + 4, 0x03040506, 1));
    OK(cuMemcpyDtoH(to, one, 12));
    ck_assert(!memcmp(to, "\2\1\2\1\6\5\4\3\2\1\2\1", 12));
    free(pageable);
}
END_TEST

START_TEST(boxes_move_bytes)
{
    soft_start();
    unsigned char *from = new_pinned(4096), *to = new_pinned(4096);
    hdcu_pointer device = new_memory(4096);
    for (size_t i = 0; i < 4096; i++)
        from[i] = (unsigned char)(i * 31 >> 3);
    OK(cuMemsetD8(device, 0, 4096));
    hdcu_memcpy3d in = {
        .source_x_bytes = 3, .source_y = 2, .source_z = 1, .source_type = HDCU_MEMORYTYPE_HOST, .source_host = from,
        .source_pitch = 16, .source_height = 8, .destination_x_bytes = 1, .destination_y = 1, .destination_z = 2,
        .destination_type = HDCU_MEMORYTYPE_DEVICE, .destination_device = device, .destination_pitch = 32,
        .destination_height = 6, .width_bytes = 5, .height = 4, .depth = 3,
    };
    OK(cuMemcpy3D(&in));
    OK(cuMemcpyDtoH(to, device, 4096));
    size_t set = 0;
    for (size_t z = 0; z < 3; z++) {
        for (size_t y = 0; y < 4; y++) {
            for (size_t x = 0; x < 5; x++, set++)
                ck_assert_uint_eq(to[(z + 2) * 192 + (y + 1) * 32 + x + 1], from[(z + 1) * 128 + (y + 2) * 16 + x + 3]);
        }
    }
    ck_assert_uint_eq(to[0] + to[2 * 192 + 32], 0);
    OK(cuMemsetD2D32Async(device, 64, 0xffffffff, 2, 3, NULL));
    OK(cuMemcpyDtoH(to, device, 192));
    ck_assert_uint_eq(to[64 + 7], 0xff);
    ck_assert_uint_eq(to[64 + 8] + to[63], 0);
}
END_TEST

START_TEST(pageable_copies)
{
    soft_start();
    hdcu_stream stream = new_stream(1);
    hdcu_pointer device = new_memory(1 << 20);
    char *pageable = malloc(1 << 20), result[4];
    memset(pageable, 1, 1 << 20);
    gate closed = gate_on(stream);
    OK(cuMemcpyHtoDAsync(device, pageable, 1 << 20, stream)); /* read at the call */
    memset(pageable, 2, 1 << 20);
    IS(cuStreamQuery(stream), 600);
    gate_open(closed);
    OK(cuMemcpyDtoHAsync(result, device, 4, stream)); /* returns when it is done */
    ck_assert_int_eq(result[3], 1);
    free(pageable);
}
END_TEST

/* A pinned copy reads its source when it runs: overwriting it too early shows. */
START_TEST(pinned_copies_are_asynchronous)
{
    soft_start();
    hdcu_stream stream = new_stream(1);
    char *pinned = new_pinned(64), result[4];
    hdcu_pointer device = new_memory(64);
    memset(pinned, 1, 64);
    gate closed = gate_on(stream);
    OK(cuMemcpyHtoDAsync(device, pinned, 64, stream));
    memset(pinned, 2, 64);
    gate_open(closed);
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(result, device, 4));
    ck_assert_int_eq(result[0], 2);
}
END_TEST

START_TEST(copies_between_devices)
{
    soft_start_two();
    hdcu_context second;
    hdcu_pointer here = new_memory(64), there;
    char result[64];
    OK(cuMemsetD8(here, 5, 64));
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxSetCurrent(second));
    there = new_memory(64);
    OK(cuMemcpyPeer(there, second, here, context, 64));
    OK(cuMemcpyDtoH(result, there, 64));
    ck_assert_int_eq(result[63], 5);
    OK(cuCtxEnablePeerAccess(context, 0));
    IS(cuCtxEnablePeerAccess(context, 0), 704);
    OK(cuCtxDisablePeerAccess(context));
    IS(cuCtxDisablePeerAccess(context), 705);
    /* An event of one device orders a stream of the other. */
    hdcu_stream far = new_stream(1);
    OK(cuCtxSetCurrent(context));
    hdcu_stream near = new_stream(1);
    hdcu_event event = new_event(HDCU_EVENT_DISABLE_TIMING);
    gate closed = gate_on(near);
    OK(cuMemsetD8Async(here, 6, 64, near));
    OK(cuEventRecord(event, near));
    OK(cuStreamWaitEvent(far, event, 0));
    OK(cuMemcpyPeerAsync(there, second, here, context, 64, far));
    IS(cuStreamQuery(far), 600);
    gate_open(closed);
    OK(cuStreamSynchronize(far));
    OK(cuMemcpyDtoH(result, there, 64));
    ck_assert_int_eq(result[0], 6);
}
END_TEST

static void add(Suite *suite, const char *name, const TTest *const *tests, size_t count, double timeout)
{
    TCase *group = tcase_create(name);
    tcase_set_timeout(group, timeout);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(group, tests[i]);
    suite_add_tcase(suite, group);
}
#define GROUP(suite, name, ...)                                                                                        \
    add(suite, name, (const TTest *const[]){__VA_ARGS__},                                                              \
        sizeof((const TTest *const[]){__VA_ARGS__}) / sizeof(void *), 30)

int main(void)
{
    Suite *suite = suite_create("soft_api");
    GROUP(suite, "start", before_initialisation, error_names, procedure_addresses, no_devices, one_exported_symbol);
    GROUP(suite, "devices", devices);
    GROUP(suite, "contexts", primary_context, own_contexts);
    GROUP(suite, "memory", device_memory, large_memory_is_lazy, pinned_memory, registered_memory, pointer_attributes,
          stream_ordered_memory, stream_order_of_memory_is_kept, use_after_free_is_explained,
          free_waits_for_possible_users);
    GROUP(suite, "copies", copy_codes, copies_move_bytes, boxes_move_bytes, pageable_copies,
          pinned_copies_are_asynchronous, copies_between_devices);
    TCase *tables = tcase_create("tables");
    tcase_add_loop_test(tables, device_attributes, 0, sizeof attributes / sizeof *attributes);
    tcase_add_loop_test(tables, context_limits, 0, sizeof limits / sizeof *limits);
    tcase_add_loop_test(tables, region_codes, 0, sizeof regions / sizeof *regions);
    tcase_add_test_raise_signal(tables, host_cannot_follow_device_pointers, SIGSEGV);
    suite_add_tcase(suite, tables);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
