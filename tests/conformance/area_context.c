/* SPDX-License-Identifier: MIT */
/* Contexts, their stacks, their limits, and calls without any. Every check leaves the thread without a context. */
#include "areas.h"
#include "support.h"

#include <stdlib.h>

static hdcu_context make(void)
{
    hdcu_context made = NULL;
    NEED(cuCtxCreate(&made, 0, 0));
    return made;
}

static hdcu_context current(void)
{
    hdcu_context found = (hdcu_context)16;
    NEED(cuCtxGetCurrent(&found));
    return found;
}

/* Says which of the two is current. */
static void say_current(hdcu_context a, hdcu_context b)
{
    hdcu_context found = current();
    say("%s", !found ? "none" : found == a ? "a" : found == b ? "b" : "other");
}

static void create_and_destroy(const check *self)
{
    (void)self;
    hdcu_context a = NULL;
    STATUS(cuCtxCreate(&a, 0, 0));
    say_current(a, NULL);
    STATUS(cuCtxDestroy(a));
    say_current(a, NULL);
}

static void create_flags(const check *self)
{
    hdcu_context a = NULL;
    unsigned flags = 0;
    hdcu_result status = cu.cuCtxCreate(&a, (unsigned)self->number, 0);
    say("%u", status);
    if (status)
        return;
    STATUS(cuCtxGetFlags(&flags));
    say("%x", flags);
    NEED(cuCtxDestroy(a));
}

static void create_misuse(const check *self)
{
    (void)self;
    hdcu_context a = NULL;
    STATUS(cuCtxCreate(NULL, 0, 0));
    STATUS(cuCtxCreate(&a, 0, 99));
    STATUS(cuCtxCreate(&a, 0, -1));
    STATUS(cuCtxDestroy(NULL));
}

static void pop_empty(const check *self)
{
    (void)self;
    hdcu_context found = NULL;
    STATUS(cuCtxPopCurrent(&found));
    STATUS(cuCtxPopCurrent(NULL));
}

static void pop_without_out(const check *self)
{
    (void)self;
    hdcu_context a = make();
    STATUS(cuCtxPopCurrent(NULL));
    say_current(a, NULL);
    STATUS(cuCtxDestroy(a));
}

static void push_null(const check *self)
{
    (void)self;
    STATUS(cuCtxPushCurrent(NULL));
    say_current(NULL, NULL);
}

static void stack_of_two(const check *self)
{
    (void)self;
    hdcu_context a = make(), b = make(), popped = NULL;
    say_current(a, b);
    STATUS(cuCtxPopCurrent(&popped));
    say("%d", popped == b);
    say_current(a, b);
    STATUS(cuCtxPopCurrent(&popped));
    say("%d", popped == a);
    say_current(a, b);
    STATUS(cuCtxPopCurrent(&popped));
    NEED(cuCtxDestroy(a));
    NEED(cuCtxDestroy(b));
}

static void push_twice(const check *self)
{
    (void)self;
    hdcu_context a = make(), popped = NULL;
    STATUS(cuCtxPushCurrent(a));
    STATUS(cuCtxPopCurrent(&popped));
    say_current(a, NULL);
    STATUS(cuCtxPopCurrent(&popped));
    say_current(a, NULL);
    STATUS(cuCtxPopCurrent(&popped));
    NEED(cuCtxDestroy(a));
}

static void set_replaces_top(const check *self)
{
    (void)self;
    hdcu_context a = make(), b = make(), popped = NULL;
    STATUS(cuCtxSetCurrent(a));
    say_current(a, b);
    STATUS(cuCtxPopCurrent(&popped));
    say_current(a, b);
    STATUS(cuCtxPopCurrent(&popped));
    say_current(a, b);
    NEED(cuCtxDestroy(a));
    NEED(cuCtxDestroy(b));
}

static void set_null_pops(const check *self)
{
    (void)self;
    hdcu_context a = make(), b = make();
    STATUS(cuCtxSetCurrent(NULL));
    say_current(a, b);
    STATUS(cuCtxSetCurrent(NULL));
    say_current(a, b);
    STATUS(cuCtxSetCurrent(NULL));
    say_current(a, b);
    NEED(cuCtxDestroy(a));
    NEED(cuCtxDestroy(b));
}

static void set_on_empty(const check *self)
{
    (void)self;
    hdcu_context a = make(), popped = NULL;
    NEED(cuCtxPopCurrent(&popped));
    STATUS(cuCtxSetCurrent(a));
    say_current(a, NULL);
    STATUS(cuCtxPopCurrent(&popped));
    say_current(a, NULL);
    NEED(cuCtxDestroy(a));
}

static void destroy_not_current(const check *self)
{
    (void)self;
    hdcu_context a = make(), b = make();
    STATUS(cuCtxDestroy(a));
    say_current(a, b);
    STATUS(cuCtxSynchronize());
    STATUS(cuCtxDestroy(b));
}

static void destroyed_below(const check *self)
{
    (void)self;
    hdcu_context a = make(), b = make(), popped = NULL;
    hdcu_pointer pointer = 0;
    NEED(cuCtxDestroy(a));
    STATUS(cuCtxPopCurrent(&popped));
    say("%d", popped == b);
    STATUS(cuCtxSynchronize());
    STATUS(cuMemAlloc(&pointer, 16));
    STATUS(cuCtxSetCurrent(NULL));
    STATUS(cuCtxDestroy(b));
}

typedef struct elsewhere {
    hdcu_context context;
    hdcu_result set, synchronize, allocate, stream;
    hdcu_context seen;
} elsewhere;

static void use_destroyed(void *argument)
{
    elsewhere *of = argument;
    hdcu_pointer pointer = 0;
    hdcu_stream stream = NULL;
    of->set = cu.cuCtxSetCurrent(of->context);
    cu.cuCtxDestroy(of->seen); /* from here: the context is current to the other thread */
    of->synchronize = cu.cuCtxSynchronize();
    of->allocate = cu.cuMemAlloc(&pointer, 16);
    of->stream = cu.cuStreamCreate(&stream, 0);
}

/* Here it stays current although another thread destroys it. */
static void destroyed_elsewhere(const check *self)
{
    (void)self;
    hdcu_context a = make();
    hdcu_pointer pointer = 0;
    hdcu_stream stream = NULL;
    hdcu_event event = NULL;
    elsewhere of = {.seen = a};
    in_thread(use_destroyed, &of);
    say("%u", of.synchronize);
    STATUS(cuCtxSynchronize());
    STATUS(cuMemAlloc(&pointer, 16));
    STATUS(cuStreamCreate(&stream, 0));
    STATUS(cuEventCreate(&event, 0));
    STATUS(cuMemFree(0));
    say("%d", current() == a);
    STATUS(cuCtxSetCurrent(NULL));
}

static void look_from_thread(void *argument)
{
    elsewhere *of = argument;
    hdcu_pointer pointer = 0;
    of->seen = (hdcu_context)16;
    of->synchronize = cu.cuCtxGetCurrent(&of->seen);
    of->allocate = cu.cuMemAlloc(&pointer, 16);
    of->set = cu.cuCtxSetCurrent(of->context);
    of->stream = cu.cuMemAlloc(&pointer, 16);
}

static void other_thread(const check *self)
{
    (void)self;
    hdcu_context a = make();
    elsewhere of = {.context = a};
    in_thread(look_from_thread, &of);
    say("%u", of.synchronize);
    say("%s", of.seen ? "some" : "none");
    say("%u:%u:%u", of.allocate, of.set, of.stream);
    NEED(cuCtxDestroy(a));
}

static void device_of(const check *self)
{
    (void)self;
    hdcu_device device = -5;
    hdcu_context a = make();
    STATUS(cuCtxGetDevice(&device));
    say("%d", device);
    STATUS(cuCtxGetDevice(NULL));
    STATUS(cuCtxGetFlags(NULL));
    STATUS(cuCtxGetCurrent(NULL));
    NEED(cuCtxDestroy(a));
}

static void limit(const check *self)
{
    size_t value = 0;
    hdcu_context a = make();
    hdcu_result status = cu.cuCtxGetLimit(&value, (unsigned)self->number);
    say("%u", status);
    if (!status)
        say("%zu", value);
    NEED(cuCtxDestroy(a));
}

static void set_limit(const check *self)
{
    size_t value = 0;
    hdcu_context a = make();
    STATUS(cuCtxSetLimit((unsigned)self->number, self->inputs[0][0]));
    STATUS(cuCtxGetLimit(&value, (unsigned)self->number));
    say("%zu", value);
    NEED(cuCtxDestroy(a));
}

static void limit_misuse(const check *self)
{
    (void)self;
    size_t value = 0;
    hdcu_context a = make();
    STATUS(cuCtxGetLimit(NULL, 0));
    STATUS(cuCtxGetLimit(&value, 99));
    STATUS(cuCtxSetLimit(99, 1));
    STATUS(cuCtxSetLimit(HDCU_LIMIT_STACK_SIZE, (size_t)1 << 40));
    NEED(cuCtxDestroy(a));
}

static void priorities(const check *self)
{
    (void)self;
    int least = -77, greatest = -77;
    hdcu_context a = make();
    STATUS(cuCtxGetStreamPriorityRange(&least, &greatest));
    say("%d:%d", least, greatest);
    STATUS(cuCtxGetStreamPriorityRange(NULL, NULL));
    NEED(cuCtxDestroy(a));
}

/* ---- two contexts of one device ---- */

static void other_contexts_memory(const check *self)
{
    (void)self;
    hdcu_pointer pointer = 0;
    uint32_t value = 5, back = 0;
    hdcu_context a = make();
    NEED(cuMemAlloc(&pointer, 64));
    hdcu_context b = make();
    STATUS(cuMemcpyHtoD(pointer, &value, 4));
    STATUS(cuMemcpyDtoH(&back, pointer, 4));
    say("%u", back);
    STATUS(cuMemFree(pointer));
    NEED(cuCtxDestroy(b));
    NEED(cuCtxDestroy(a));
}

static void other_contexts_stream(const check *self)
{
    (void)self;
    hdcu_stream stream = NULL;
    hdcu_event event = NULL;
    hdcu_context found = NULL, a = make();
    NEED(cuStreamCreate(&stream, 0));
    hdcu_context b = make();
    NEED(cuEventCreate(&event, 0));
    STATUS(cuStreamSynchronize(stream));
    STATUS(cuStreamQuery(stream));
    STATUS(cuStreamGetCtx(stream, &found));
    say("%d", found == a);
    STATUS(cuEventRecord(event, stream));
    STATUS(cuStreamWaitEvent(stream, event, 0));
    STATUS(cuStreamDestroy(stream));
    NEED(cuCtxDestroy(b));
    NEED(cuCtxDestroy(a));
}

static void peer_misuse(const check *self)
{
    (void)self;
    hdcu_context a = make();
    STATUS(cuCtxEnablePeerAccess(a, 0));
    STATUS(cuCtxEnablePeerAccess(a, 1));
    STATUS(cuCtxDisablePeerAccess(a));
    hdcu_context b = make();
    STATUS(cuCtxEnablePeerAccess(a, 0));
    NEED(cuCtxDestroy(b));
    NEED(cuCtxDestroy(a));
}

/* ---- without a context ---- */

#define WITHOUT(entry, declarations, ...)                                                                              \
    static void without_##entry(const check *self)                                                                     \
    {                                                                                                                  \
        (void)self;                                                                                                    \
        declarations;                                                                                                  \
        STATUS(entry(__VA_ARGS__));                                                                                    \
    }

WITHOUT(cuCtxGetDevice, hdcu_device device = 0, &device)
WITHOUT(cuCtxGetFlags, unsigned flags = 0, &flags)
WITHOUT(cuCtxSynchronize, )
WITHOUT(cuCtxGetLimit, size_t value = 0, &value, 0)
WITHOUT(cuCtxSetLimit, , 0, 1024)
WITHOUT(cuCtxGetStreamPriorityRange, int least = 0; int greatest = 0, &least, &greatest)
WITHOUT(cuMemGetInfo, size_t unused = 0; size_t total = 0, &unused, &total)
WITHOUT(cuMemAlloc, hdcu_pointer pointer = 0, &pointer, 16)
WITHOUT(cuMemFree, , 0)
WITHOUT(cuMemAllocHost, void *pointer = NULL, &pointer, 16)
WITHOUT(cuMemHostAlloc, void *pointer = NULL, &pointer, 16, 0)
WITHOUT(cuMemFreeHost, , NULL)
WITHOUT(cuMemHostRegister, char room[64], room, 64, 0)
WITHOUT(cuMemcpyHtoD, char room[4] = "", 4096, room, 4)
WITHOUT(cuMemcpy, char room[4] = "", (uintptr_t)room, (uintptr_t)room, 4)
WITHOUT(cuMemsetD8, , 4096, 0, 4)
WITHOUT(cuPointerGetAttribute, unsigned type = 0, &type, HDCU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4096)
WITHOUT(cuStreamCreate, hdcu_stream stream = NULL, &stream, 0)
WITHOUT(cuStreamSynchronize, , NULL)
WITHOUT(cuStreamQuery, , NULL)
WITHOUT(cuEventCreate, hdcu_event event = NULL, &event, 0)
WITHOUT(cuModuleLoadData, hdcu_module module = NULL, &module, ".version 7.0\n.target sm_70\n.address_size 64\n")
WITHOUT(cuMemAllocAsync, hdcu_pointer pointer = 0, &pointer, 16, NULL)
WITHOUT(cuGraphCreate, hdcu_graph graph = NULL, &graph, 0)

#define WITHOUT_CHECK(entry) {.name = "without " #entry, .run = without_##entry}

static const check checks[] = {
    {.name = "create and destroy", .run = create_and_destroy},
    {.name = "flags 0", .run = create_flags, .number = 0},
    {.name = "flags spin", .run = create_flags, .number = 1},
    {.name = "flags yield", .run = create_flags, .number = 2},
    {.name = "flags blocking", .run = create_flags, .number = 4},
    {.name = "flags map host", .run = create_flags, .number = 8},
    {.name = "flags two schedules", .run = create_flags, .number = 3},
    {.name = "flags unknown", .run = create_flags, .number = 0x10000},
    {.name = "create misuse", .run = create_misuse},
    {.name = "pop empty", .run = pop_empty},
    {.name = "pop without out", .run = pop_without_out},
    {.name = "push null", .run = push_null},
    {.name = "stack of two", .run = stack_of_two},
    {.name = "push twice", .run = push_twice},
    {.name = "set replaces top", .run = set_replaces_top},
    {.name = "set null pops", .run = set_null_pops},
    {.name = "set on empty", .run = set_on_empty},
    {.name = "destroy not current", .run = destroy_not_current},
    {.name = "destroyed below", .run = destroyed_below, .alone = true},
    {.name = "destroyed elsewhere", .run = destroyed_elsewhere, .alone = true},
    {.name = "other thread", .run = other_thread},
    {.name = "device", .run = device_of},
    {.name = "limit stack", .run = limit, .number = HDCU_LIMIT_STACK_SIZE},
    {.name = "limit printf", .run = limit, .number = HDCU_LIMIT_PRINTF_FIFO_SIZE},
    {.name = "limit heap", .run = limit, .number = HDCU_LIMIT_MALLOC_HEAP_SIZE},
    {.name = "limit fetch granularity", .run = limit, .number = HDCU_LIMIT_MAX_L2_FETCH_GRANULARITY},
    {.name = "limit persisting", .run = limit, .number = HDCU_LIMIT_PERSISTING_L2_CACHE_SIZE},
    {.name = "set stack 4096", .run = set_limit, .number = HDCU_LIMIT_STACK_SIZE, INPUTS({4096})},
    {.name = "set stack 1", .run = set_limit, .number = HDCU_LIMIT_STACK_SIZE, INPUTS({1})},
    {.name = "set stack 5000", .run = set_limit, .number = HDCU_LIMIT_STACK_SIZE, INPUTS({5000})},
    {.name = "set heap 16 MiB", .run = set_limit, .number = HDCU_LIMIT_MALLOC_HEAP_SIZE, INPUTS({16 << 20})},
    {.name = "set printf 2 MiB", .run = set_limit, .number = HDCU_LIMIT_PRINTF_FIFO_SIZE, INPUTS({2 << 20})},
    {.name = "limit misuse", .run = limit_misuse},
    {.name = "priorities", .run = priorities},
    {.name = "another context's memory", .run = other_contexts_memory},
    {.name = "another context's stream", .run = other_contexts_stream},
    {.name = "peer misuse", .run = peer_misuse},
    WITHOUT_CHECK(cuCtxGetDevice),
    WITHOUT_CHECK(cuCtxGetFlags),
    WITHOUT_CHECK(cuCtxSynchronize),
    WITHOUT_CHECK(cuCtxGetLimit),
    WITHOUT_CHECK(cuCtxSetLimit),
    WITHOUT_CHECK(cuCtxGetStreamPriorityRange),
    WITHOUT_CHECK(cuMemGetInfo),
    WITHOUT_CHECK(cuMemAlloc),
    WITHOUT_CHECK(cuMemFree),
    WITHOUT_CHECK(cuMemAllocHost),
    WITHOUT_CHECK(cuMemHostAlloc),
    WITHOUT_CHECK(cuMemFreeHost),
    WITHOUT_CHECK(cuMemHostRegister),
    WITHOUT_CHECK(cuMemcpyHtoD),
    WITHOUT_CHECK(cuMemcpy),
    WITHOUT_CHECK(cuMemsetD8),
    WITHOUT_CHECK(cuPointerGetAttribute),
    WITHOUT_CHECK(cuStreamCreate),
    WITHOUT_CHECK(cuStreamSynchronize),
    WITHOUT_CHECK(cuStreamQuery),
    WITHOUT_CHECK(cuEventCreate),
    WITHOUT_CHECK(cuModuleLoadData),
    WITHOUT_CHECK(cuMemAllocAsync),
    WITHOUT_CHECK(cuGraphCreate),
};

const area area_context = {"context", NEEDS_INIT, checks, COUNT_OF(checks)};
