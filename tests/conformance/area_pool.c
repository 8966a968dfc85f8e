/* SPDX-License-Identifier: MIT */
/* Stream-ordered memory. */
#include "areas.h"
#include "support.h"

static hdcu_pool_properties properties(void)
{
    return (hdcu_pool_properties){.allocation_type = HDCU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = HDCU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
}

static hdcu_pool make_pool(void)
{
    hdcu_pool made = NULL;
    hdcu_pool_properties of = properties();
    NEED(cuMemPoolCreate(&made, &of));
    return made;
}

static void use(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    hdcu_pointer p = 0;
    uint32_t *back = new_pinned(8);
    STATUS(cuMemAllocAsync(&p, 1000, stream));
    STATUS(cuMemsetD32Async(p, 7, 250, stream));
    STATUS(cuMemcpyDtoHAsync(back, p + 996, 4, stream));
    STATUS(cuMemFreeAsync(p, stream));
    STATUS(cuStreamSynchronize(stream));
    say("%u", back[0]);
}

static void kernel_use(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(0);
    hdcu_pointer p = 0;
    uint32_t value = 31;
    STATUS(cuMemAllocAsync(&p, 64, stream));
    STATUS(LAUNCH(KERNEL("store"), 1, 1, stream, &p, &value));
    STATUS(cuStreamSynchronize(stream));
    say("%u", word_at(p));
    STATUS(cuMemFreeAsync(p, stream));
}

static void misuse(const check *self)
{
    (void)self;
    hdcu_pointer p = 16;
    STATUS(cuMemAllocAsync(&p, 0, NULL));
    say("%s", p == 16 ? "untouched" : p ? "set" : "null");
    STATUS(cuMemAllocAsync(NULL, 16, NULL));
    STATUS(cuMemFreeAsync(0, NULL));
    STATUS(cuMemFreeAsync(16, NULL));
    STATUS(cuMemAllocAsync(&p, (size_t)1 << 50, NULL));
    STATUS(cuCtxSynchronize());
}

static void free_twice(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(0);
    hdcu_pointer p = 0;
    NEED(cuMemAllocAsync(&p, 4096, stream));
    STATUS(cuMemFreeAsync(p, stream));
    STATUS(cuMemFreeAsync(p, stream));
    STATUS(cuStreamSynchronize(stream));
    STATUS(cuMemFreeAsync(p, stream));
}

static void free_interior(const check *self)
{
    (void)self;
    hdcu_pointer p = 0;
    NEED(cuMemAllocAsync(&p, 4096, NULL));
    STATUS(cuMemFreeAsync(p + 512, NULL));
    STATUS(cuMemFreeAsync(p, NULL));
    STATUS(cuCtxSynchronize());
}

static void free_plainly(const check *self)
{
    (void)self;
    hdcu_pointer p = 0;
    NEED(cuMemAllocAsync(&p, 4096, NULL));
    NEED(cuCtxSynchronize());
    STATUS(cuMemFree(p));
    STATUS(cuMemFree(p));
}

static void free_plain_async(const check *self)
{
    (void)self;
    hdcu_pointer p = 0;
    NEED(cuMemAlloc(&p, 4096));
    STATUS(cuMemFreeAsync(p, NULL));
    STATUS(cuCtxSynchronize());
    STATUS(cuMemFree(p));
}

static void free_on_other_stream(const check *self)
{
    (void)self;
    hdcu_stream a = new_stream(HDCU_STREAM_NON_BLOCKING), b = new_stream(HDCU_STREAM_NON_BLOCKING);
    hdcu_event event = new_event(HDCU_EVENT_DISABLE_TIMING);
    hdcu_pointer p = 0;
    STATUS(cuMemAllocAsync(&p, 4096, a));
    STATUS(cuEventRecord(event, a));
    STATUS(cuStreamWaitEvent(b, event, 0));
    STATUS(cuMemsetD8Async(p, 1, 4096, b));
    STATUS(cuMemFreeAsync(p, b));
    STATUS(cuStreamSynchronize(b));
    STATUS(cuStreamSynchronize(a));
}

static void reuse_in_stream(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(0);
    hdcu_pointer first = 0, second = 0;
    NEED(cuMemAllocAsync(&first, 1 << 20, stream));
    NEED(cuMemFreeAsync(first, stream));
    NEED(cuMemAllocAsync(&second, 1 << 20, stream));
    say("%s", first == second ? "same" : "other");
    NEED(cuMemFreeAsync(second, stream));
}

static void no_reuse_while_live(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(0);
    hdcu_pointer first = 0, second = 0;
    NEED(cuMemAllocAsync(&first, 1 << 20, stream));
    NEED(cuMemAllocAsync(&second, 1 << 20, stream));
    say("%s", first + (1 << 20) <= second || second + (1 << 20) <= first ? "apart" : "overlap");
    NEED(cuMemFreeAsync(second, stream));
    NEED(cuMemFreeAsync(first, stream));
}

static void alloc_while_held(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    hold *held = hold_up(stream);
    hdcu_pointer p = 0;
    STATUS(cuMemAllocAsync(&p, 4096, stream));
    say("%s", p ? "set" : "null");
    STATUS(cuMemFreeAsync(p, stream));
    STATUS(cuStreamQuery(stream));
    release(held);
    STATUS(cuStreamSynchronize(stream));
}

/* ---- pools ---- */

static void default_pool(const check *self)
{
    (void)self;
    hdcu_pool standard = NULL, now = NULL;
    STATUS(cuDeviceGetDefaultMemPool(&standard, 0));
    STATUS(cuDeviceGetMemPool(&now, 0));
    say("%d", standard && standard == now);
    STATUS(cuDeviceGetDefaultMemPool(NULL, 0));
    STATUS(cuDeviceGetDefaultMemPool(&standard, 99));
    STATUS(cuMemPoolDestroy(standard));
}

static void attributes(const check *self)
{
    (void)self;
    hdcu_pool pool = make_pool();
    for (unsigned attribute = HDCU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES;
         attribute <= HDCU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES; attribute++) {
        int value = 77;
        STATUS(cuMemPoolGetAttribute(pool, attribute, &value));
        say("%d", value);
    }
    for (unsigned attribute = HDCU_MEMPOOL_ATTR_RELEASE_THRESHOLD; attribute <= HDCU_MEMPOOL_ATTR_USED_MEM_HIGH;
         attribute++) {
        uint64_t value = 77;
        STATUS(cuMemPoolGetAttribute(pool, attribute, &value));
        say("%llu", (unsigned long long)value);
    }
    STATUS(cuMemPoolDestroy(pool));
}

static void set_attributes(const check *self)
{
    (void)self;
    hdcu_pool pool = make_pool();
    int off = 0, flag = 77;
    uint64_t threshold = 12345678, value = 0, five = 5, zero = 0;
    STATUS(cuMemPoolSetAttribute(pool, HDCU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &off));
    STATUS(cuMemPoolGetAttribute(pool, HDCU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &flag));
    say("%d", flag);
    STATUS(cuMemPoolSetAttribute(pool, HDCU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    STATUS(cuMemPoolGetAttribute(pool, HDCU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    say("%llu", (unsigned long long)value);
    STATUS(cuMemPoolSetAttribute(pool, HDCU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero));
    STATUS(cuMemPoolSetAttribute(pool, HDCU_MEMPOOL_ATTR_USED_MEM_HIGH, &five));
    STATUS(cuMemPoolSetAttribute(pool, HDCU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    STATUS(cuMemPoolSetAttribute(pool, HDCU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
    STATUS(cuMemPoolSetAttribute(pool, 99, &zero));
    STATUS(cuMemPoolGetAttribute(pool, 99, &value));
    STATUS(cuMemPoolGetAttribute(pool, HDCU_MEMPOOL_ATTR_USED_MEM_HIGH, NULL));
    STATUS(cuMemPoolDestroy(pool));
}

static void used(const check *self)
{
    (void)self;
    hdcu_pool pool = make_pool();
    hdcu_pointer p = 0;
    uint64_t value = 0;
    STATUS(cuMemAllocFromPoolAsync(&p, 1000, pool, NULL));
    NEED(cuMemPoolGetAttribute(pool, HDCU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    say("%llu", (unsigned long long)value);
    NEED(cuMemPoolGetAttribute(pool, HDCU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    say("%llu", (unsigned long long)value);
    STATUS(cuMemFreeAsync(p, NULL));
    NEED(cuCtxSynchronize());
    NEED(cuMemPoolGetAttribute(pool, HDCU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    say("%llu", (unsigned long long)value);
    NEED(cuMemPoolGetAttribute(pool, HDCU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    say("%llu", (unsigned long long)value);
    NEED(cuMemPoolGetAttribute(pool, HDCU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    say("%llu", (unsigned long long)value);
    STATUS(cuMemPoolDestroy(pool));
}

static void threshold_and_trim(const check *self)
{
    (void)self;
    hdcu_pool pool = make_pool();
    hdcu_pointer p = 0;
    uint64_t keep = UINT64_MAX, value = 0;
    NEED(cuMemPoolSetAttribute(pool, HDCU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    NEED(cuMemAllocFromPoolAsync(&p, 1 << 20, pool, NULL));
    NEED(cuMemFreeAsync(p, NULL));
    NEED(cuCtxSynchronize());
    NEED(cuMemPoolGetAttribute(pool, HDCU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    say("%s", value >= 1 << 20 ? "kept" : "released");
    STATUS(cuMemPoolTrimTo(pool, 0));
    NEED(cuMemPoolGetAttribute(pool, HDCU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    say("%llu", (unsigned long long)value);
    STATUS(cuMemPoolDestroy(pool));
}

/* Misuse number n, of properties that would be well. */
static void create_misuse(const check *self)
{
    hdcu_pool pool = NULL;
    hdcu_pool_properties of = properties();
    switch (self->number) {
    case 0: of.allocation_type = 0; break;
    case 1: of.allocation_type = 99; break;
    case 2: of.location.type = 0; break;
    case 3: of.location.id = 99; break;
    case 4: of.handle_types = 0x100; break;
    case 5: of.reserved[0] = 1; break;
    default: break;
    }
    STATUS(cuMemPoolCreate(self->number == 7 ? NULL : &pool, self->number == 6 ? NULL : &of));
}

static void destroy_with_live(const check *self)
{
    (void)self;
    hdcu_pool pool = make_pool();
    hdcu_pointer p = 0;
    NEED(cuMemAllocFromPoolAsync(&p, 1000, pool, NULL));
    NEED(cuCtxSynchronize());
    STATUS(cuMemPoolDestroy(pool));
    STATUS(cuMemsetD8(p, 1, 1000));
    STATUS(cuMemFreeAsync(p, NULL));
    STATUS(cuCtxSynchronize());
}

static void current_pool(const check *self)
{
    (void)self;
    hdcu_pool pool = make_pool(), now = NULL, standard = NULL;
    hdcu_pointer p = 0;
    uint64_t value = 0;
    NEED(cuDeviceGetDefaultMemPool(&standard, 0));
    STATUS(cuDeviceSetMemPool(0, pool));
    STATUS(cuDeviceGetMemPool(&now, 0));
    say("%d", now == pool);
    NEED(cuMemAllocAsync(&p, 1000, NULL));
    NEED(cuMemPoolGetAttribute(pool, HDCU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    say("%d", value != 0);
    NEED(cuMemFreeAsync(p, NULL));
    NEED(cuCtxSynchronize());
    STATUS(cuMemPoolDestroy(pool));
    STATUS(cuDeviceGetMemPool(&now, 0));
    say("%d", now == standard);
    STATUS(cuDeviceSetMemPool(0, NULL));
}

static void access(const check *self)
{
    (void)self;
    hdcu_pool pool = make_pool();
    hdcu_memory_location here = {.type = HDCU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    hdcu_memory_access wanted = {here, HDCU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    unsigned flags = 77;
    STATUS(cuMemPoolGetAccess(&flags, pool, &here));
    say("%u", flags);
    STATUS(cuMemPoolSetAccess(pool, &wanted, 1));
    wanted.flags = HDCU_MEM_ACCESS_FLAGS_PROT_NONE;
    STATUS(cuMemPoolSetAccess(pool, &wanted, 1));
    wanted.location.id = 99;
    STATUS(cuMemPoolSetAccess(pool, &wanted, 1));
    STATUS(cuMemPoolSetAccess(pool, &wanted, 0));
    STATUS(cuMemPoolDestroy(pool));
}

static const check checks[] = {
    {.name = "use", .run = use},
    {.name = "kernel use", .run = kernel_use},
    {.name = "misuse", .run = misuse},
    {.name = "free twice", .run = free_twice, .alone = true},
    {.name = "free interior", .run = free_interior},
    {.name = "free plainly", .run = free_plainly},
    {.name = "free plain memory async", .run = free_plain_async},
    {.name = "free on another stream", .run = free_on_other_stream},
    {.name = "reuse in a stream", .run = reuse_in_stream},
    {.name = "no reuse while live", .run = no_reuse_while_live},
    {.name = "alloc while held", .run = alloc_while_held},
    {.name = "default pool", .run = default_pool},
    {.name = "attributes", .run = attributes},
    {.name = "set attributes", .run = set_attributes},
    {.name = "used", .run = used},
    {.name = "threshold and trim", .run = threshold_and_trim},
    {.name = "create: type 0", .run = create_misuse, .number = 0},
    {.name = "create: type 99", .run = create_misuse, .number = 1},
    {.name = "create: location 0", .run = create_misuse, .number = 2},
    {.name = "create: device 99", .run = create_misuse, .number = 3},
    {.name = "create: handle type", .run = create_misuse, .number = 4},
    {.name = "create: reserved set", .run = create_misuse, .number = 5},
    {.name = "create: null properties", .run = create_misuse, .number = 6},
    {.name = "create: null out", .run = create_misuse, .number = 7},
    {.name = "destroy with live memory", .run = destroy_with_live},
    {.name = "current pool", .run = current_pool},
    {.name = "access", .run = access},
};

const area area_pool = {"pool", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
