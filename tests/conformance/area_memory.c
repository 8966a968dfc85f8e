/* SPDX-License-Identifier: MIT */
/* Device and pinned memory: allocation, ranges, misuse of free, registration. */
#include "areas.h"
#include "support.h"

#include <stdlib.h>
#include <sys/mman.h>

static void alloc_zero(const check *self)
{
    (void)self;
    hdcu_pointer p = 16;
    STATUS(cuMemAlloc(&p, 0));
    say("%s", p == 16 ? "untouched" : p ? "set" : "null");
}

static void alloc_misuse(const check *self)
{
    (void)self;
    STATUS(cuMemAlloc(NULL, 16));
}

static void alloc_too_much(const check *self)
{
    (void)self;
    size_t unused, total;
    hdcu_pointer p = 16, q = 0;
    NEED(cuMemGetInfo(&unused, &total));
    STATUS(cuMemAlloc(&p, total * 2));
    say("%s", p == 16 ? "untouched" : p ? "set" : "null");
    STATUS(cuMemAlloc(&p, (size_t)1 << 62));
    STATUS(cuMemAlloc(&p, SIZE_MAX));
    STATUS(cuCtxSynchronize());
    STATUS(cuMemAlloc(&q, 16));
    STATUS(cuMemFree(q));
}

static void alloc_alignment(const check *self)
{
    (void)self;
    hdcu_pointer odd = new_bytes(1), next = new_bytes(3), last = new_bytes(300);
    say("%llu:%llu:%llu", odd % 256, next % 256, last % 256);
    say("%llu", (next - odd) % 512);
}

static void range(const check *self)
{
    hdcu_pointer p = new_bytes(1000), base = 0;
    size_t size = 0;
    STATUS(cuMemGetAddressRange(&base, &size, p + (hdcu_pointer)self->number));
    say("%lld", (long long)(base - p));
    say("%zu", size);
}

static void range_misuse(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(1000), base = 0;
    size_t size = 0;
    char room[16];
    STATUS(cuMemGetAddressRange(NULL, &size, p));
    STATUS(cuMemGetAddressRange(&base, NULL, p));
    STATUS(cuMemGetAddressRange(&base, &size, 0));
    STATUS(cuMemGetAddressRange(&base, &size, 16));
    STATUS(cuMemGetAddressRange(&base, &size, (uintptr_t)room));
}

static void range_freed(const check *self)
{
    (void)self;
    hdcu_pointer p = 0, base = 0;
    size_t size = 0;
    NEED(cuMemAlloc(&p, 1000));
    NEED(cuMemFree(p));
    STATUS(cuMemGetAddressRange(&base, &size, p));
}

static void range_pinned(const check *self)
{
    (void)self;
    char *p = new_pinned(5000);
    hdcu_pointer base = 0;
    size_t size = 0;
    STATUS(cuMemGetAddressRange(&base, &size, (uintptr_t)p + 10));
    say("%d", base == (uintptr_t)p);
    say("%zu", size);
}

static void free_null(const check *self)
{
    (void)self;
    STATUS(cuMemFree(0));
}

static void free_twice(const check *self)
{
    (void)self;
    hdcu_pointer p = 0;
    NEED(cuMemAlloc(&p, 256));
    STATUS(cuMemFree(p));
    STATUS(cuMemFree(p));
    STATUS(cuCtxSynchronize());
}

static void free_interior(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4096);
    STATUS(cuMemFree(p + 256));
    STATUS(cuMemFree(p + 1));
}

static void free_foreign(const check *self)
{
    (void)self;
    char room[64];
    void *pinned = new_pinned(4096), *plain = malloc(64);
    STATUS(cuMemFree(16));
    STATUS(cuMemFree((uintptr_t)room));
    STATUS(cuMemFree((uintptr_t)plain));
    STATUS(cuMemFree((uintptr_t)pinned));
    free(plain);
}

static void free_host_misuse(const check *self)
{
    (void)self;
    hdcu_pointer device = new_bytes(256);
    char *pinned = new_pinned(8192), *plain = malloc(64);
    STATUS(cuMemFreeHost(NULL));
    STATUS(cuMemFreeHost((void *)(uintptr_t)device));
    STATUS(cuMemFreeHost(plain));
    STATUS(cuMemFreeHost(pinned + 4096));
    free(plain);
}

static void free_host_twice(const check *self)
{
    (void)self;
    void *p = NULL;
    NEED(cuMemHostAlloc(&p, 4096, 0));
    STATUS(cuMemFreeHost(p));
    STATUS(cuMemFreeHost(p));
}

static void free_waits_for_nothing(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    hold *held = hold_up(stream);
    hdcu_pointer p = 0;
    STATUS(cuMemAlloc(&p, 4096));
    STATUS(cuStreamQuery(stream));
    release(held);
    STATUS(cuMemFree(p));
    STATUS(cuStreamSynchronize(stream));
}

static void info(const check *self)
{
    (void)self;
    size_t unused = 0, total = 0, after = 0, device = 0;
    STATUS(cuMemGetInfo(&unused, &total));
    say("%d", unused <= total && unused);
    NEED(cuDeviceTotalMem(&device, 0));
    say("%d", device == total);
    new_bytes((size_t)1 << 30); /* more than a driver may have kept of what was freed before */
    STATUS(cuMemGetInfo(&after, &total));
    say("%d", after + ((size_t)960 << 20) <= unused);
}

static void info_null(const check *self)
{
    (void)self;
    size_t value = 0;
    STATUS(cuMemGetInfo(NULL, &value));
    STATUS(cuMemGetInfo(&value, NULL));
}

static void pitch(const check *self)
{
    hdcu_pointer p = 16;
    size_t bytes = 77;
    const uint64_t *in = self->inputs[0];
    hdcu_result status = cu.cuMemAllocPitch(&p, &bytes, in[0], in[1], (unsigned)in[2]);
    say("%u", status);
    if (!status)
        say("%zu", bytes);
    if (!status && p)
        STATUS(cuMemFree(p));
}

/* ---- pinned ---- */

static void host_alloc(const check *self)
{
    void *p = NULL;
    unsigned flags = 77;
    hdcu_pointer device = 0;
    hdcu_result status = cu.cuMemHostAlloc(&p, 4096, (unsigned)self->number);
    say("%u", status);
    if (status)
        return;
    STATUS(cuMemHostGetFlags(&flags, p));
    say("%x", flags);
    STATUS(cuMemHostGetDevicePointer(&device, p, 0));
    say("%s", device == (uintptr_t)p ? "same" : "other");
    STATUS(cuMemFreeHost(p));
}

static void host_alloc_misuse(const check *self)
{
    (void)self;
    void *p = (void *)16;
    STATUS(cuMemHostAlloc(&p, 0, 0));
    say("%s", p == (void *)16 ? "untouched" : p ? "set" : "null");
    STATUS(cuMemHostAlloc(NULL, 16, 0));
    STATUS(cuMemAllocHost(NULL, 16));
    STATUS(cuMemAllocHost(&p, 0));
}

static void alloc_host(const check *self)
{
    (void)self;
    void *p = NULL;
    unsigned flags = 77;
    STATUS(cuMemAllocHost(&p, 100));
    STATUS(cuMemHostGetFlags(&flags, p));
    say("%x", flags);
    STATUS(cuMemFreeHost(p));
}

static void host_pointer_misuse(const check *self)
{
    (void)self;
    char room[16], *pinned = new_pinned(8192);
    hdcu_pointer device = 0;
    unsigned flags = 0;
    STATUS(cuMemHostGetDevicePointer(&device, room, 0));
    STATUS(cuMemHostGetDevicePointer(&device, NULL, 0));
    STATUS(cuMemHostGetDevicePointer(NULL, pinned, 0));
    STATUS(cuMemHostGetDevicePointer(&device, pinned, 1));
    STATUS(cuMemHostGetDevicePointer(&device, pinned + 100, 0));
    say("%lld", (long long)(device - (uintptr_t)pinned));
    STATUS(cuMemHostGetFlags(&flags, room));
    STATUS(cuMemHostGetFlags(&flags, pinned + 100));
    STATUS(cuMemHostGetFlags(NULL, pinned));
}

/* ---- registered ---- */

static char *pages(size_t bytes)
{
    char *made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        give_up("no pages");
    made[0] = 1;
    return made;
}

static void register_flags(const check *self)
{
    char *p = pages(8192);
    unsigned flags = 77;
    hdcu_pointer device = 0;
    hdcu_result status = cu.cuMemHostRegister(p, 8192, (unsigned)self->number);
    say("%u", status);
    if (!status) {
        STATUS(cuMemHostGetFlags(&flags, p));
        say("%x", flags);
        STATUS(cuMemHostGetDevicePointer(&device, p, 0));
        say("%s", device == (uintptr_t)p ? "same" : "other");
        STATUS(cuMemHostUnregister(p));
    }
    munmap(p, 8192);
}

static void register_twice(const check *self)
{
    (void)self;
    char *p = pages(16384);
    STATUS(cuMemHostRegister(p, 8192, 0));
    STATUS(cuMemHostRegister(p, 8192, 0));
    STATUS(cuMemHostRegister(p + 4096, 8192, 0));
    STATUS(cuMemHostRegister(p + 8192, 4096, 0));
    STATUS(cuMemHostUnregister(p + 8192));
    STATUS(cuMemHostUnregister(p));
    STATUS(cuMemHostUnregister(p));
    munmap(p, 16384);
}

static void register_misuse(const check *self)
{
    (void)self;
    char *p = pages(8192), *pinned = new_pinned(4096);
    STATUS(cuMemHostRegister(NULL, 4096, 0));
    STATUS(cuMemHostRegister(p, 0, 0));
    STATUS(cuMemHostRegister(p, 4096, 0x100));
    STATUS(cuMemHostRegister(pinned, 4096, 0));
    STATUS(cuMemHostUnregister(NULL));
    STATUS(cuMemHostUnregister(p));
    STATUS(cuMemHostUnregister(pinned));
    munmap(p, 8192);
}

static void register_odd(const check *self)
{
    (void)self;
    char *p = pages(8192);
    STATUS(cuMemHostRegister(p + 100, 1000, 0));
    STATUS(cuMemHostUnregister(p));
    STATUS(cuMemHostUnregister(p + 100));
    munmap(p, 8192);
}

static void unregister_interior(const check *self)
{
    (void)self;
    char *p = pages(8192);
    NEED(cuMemHostRegister(p, 8192, 0));
    STATUS(cuMemHostUnregister(p + 4096));
    STATUS(cuMemFreeHost(p));
    STATUS(cuMemHostUnregister(p));
    munmap(p, 8192);
}

static void kernel_on_registered(const check *self)
{
    (void)self;
    char *p = pages(4096);
    hdcu_pointer device = 0;
    uint32_t value = 99;
    NEED(cuMemHostRegister(p, 4096, HDCU_MEMHOSTREGISTER_DEVICEMAP));
    NEED(cuMemHostGetDevicePointer(&device, p, 0));
    device += 8;
    STATUS(LAUNCH(KERNEL("store"), 1, 1, NULL, &device, &value));
    STATUS(cuCtxSynchronize());
    say("%u", *(uint32_t *)(p + 8));
    STATUS(cuMemHostUnregister(p));
    munmap(p, 4096);
}

static void kernel_on_pinned(const check *self)
{
    (void)self;
    uint32_t *p = new_pinned(4096), value = 98;
    hdcu_pointer device = (uintptr_t)(p + 5);
    STATUS(LAUNCH(KERNEL("store"), 1, 1, NULL, &device, &value));
    STATUS(cuCtxSynchronize());
    say("%u", p[5]);
}

static const check checks[] = {
    {.name = "alloc 0", .run = alloc_zero},
    {.name = "alloc misuse", .run = alloc_misuse},
    {.name = "alloc too much", .run = alloc_too_much},
    {.name = "alloc alignment", .run = alloc_alignment},
    {.name = "range first byte", .run = range, .number = 0},
    {.name = "range middle", .run = range, .number = 500},
    {.name = "range last byte", .run = range, .number = 999},
    {.name = "range misuse", .run = range_misuse},
    {.name = "range freed", .run = range_freed},
    {.name = "range pinned", .run = range_pinned},
    {.name = "free null", .run = free_null},
    {.name = "free twice", .run = free_twice},
    {.name = "free interior", .run = free_interior},
    {.name = "free foreign", .run = free_foreign},
    {.name = "free host misuse", .run = free_host_misuse},
    {.name = "free host twice", .run = free_host_twice},
    {.name = "alloc while a stream is busy", .run = free_waits_for_nothing},
    {.name = "info", .run = info},
    {.name = "info null", .run = info_null},
    {.name = "pitch 100 x 4", .run = pitch, INPUTS({100, 4, 4})},
    {.name = "pitch 512 x 4", .run = pitch, INPUTS({512, 4, 4})},
    {.name = "pitch 513 x 4", .run = pitch, INPUTS({513, 4, 16})},
    {.name = "pitch element 3", .run = pitch, INPUTS({100, 4, 3})},
    {.name = "pitch element 32", .run = pitch, INPUTS({100, 4, 32})},
    {.name = "pitch width 0", .run = pitch, INPUTS({0, 4, 4})},
    {.name = "pitch height 0", .run = pitch, INPUTS({100, 0, 4})},
    {.name = "host alloc flags 0", .run = host_alloc, .number = 0},
    {.name = "host alloc portable", .run = host_alloc, .number = 1},
    {.name = "host alloc device map", .run = host_alloc, .number = 2},
    {.name = "host alloc write combined", .run = host_alloc, .number = 4},
    {.name = "host alloc flags 8", .run = host_alloc, .number = 8},
    {.name = "host alloc misuse", .run = host_alloc_misuse},
    {.name = "alloc host", .run = alloc_host},
    {.name = "host pointer misuse", .run = host_pointer_misuse},
    {.name = "register flags 0", .run = register_flags, .number = 0},
    {.name = "register portable", .run = register_flags, .number = 1},
    {.name = "register device map", .run = register_flags, .number = 2},
    {.name = "register twice", .run = register_twice},
    {.name = "register misuse", .run = register_misuse},
    {.name = "register odd", .run = register_odd},
    {.name = "unregister interior", .run = unregister_interior},
    {.name = "kernel on registered", .run = kernel_on_registered},
    {.name = "kernel on pinned", .run = kernel_on_pinned},
};

const area area_memory = {"memory", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
