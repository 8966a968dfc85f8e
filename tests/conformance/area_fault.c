/* SPDX-License-Identifier: MIT */
/* Faults of kernels, what every call says afterwards, what prints. A process each. */
#include "areas.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

#define FAULT(name) kernel_of(module_faults, name)

/* ---- ways to fault: `text` is the kernel, `number` which address it gets ---- */

enum { NULL_PAGE, UNMAPPED, WILD, MISALIGNED, MISALIGNED_WIDE, PAGEABLE, SHARED_END, SHARED_ODD, FREED };

static hdcu_pointer address_of(long which, hdcu_pointer memory)
{
    hdcu_pointer freed = 0;
    switch (which) {
    case NULL_PAGE: return 0;
    case UNMAPPED: return 0x10000;
    case WILD: return (hdcu_pointer)1 << 60;
    case MISALIGNED: return memory + 2;
    case MISALIGNED_WIDE: return memory + 4;
    case SHARED_END: return 0x40000;
    case SHARED_ODD: return 2;
    case FREED:
        NEED(cuMemAlloc(&freed, 64 << 20));
        NEED(cuMemFree(freed));
        return freed;
    default: return (uintptr_t)malloc(64);
    }
}

static void fault(const check *self)
{
    hdcu_pointer memory = new_bytes(64), out = new_bytes(64), again = 0;
    hdcu_function kernel = FAULT(self->text);
    hdcu_pointer at = address_of(self->number, memory);
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    STATUS(LAUNCH(kernel, 1, 1, stream, &at, &out));
    STATUS(cuStreamSynchronize(stream));
    STATUS(cuCtxSynchronize());
    STATUS(cuMemAlloc(&again, 16));
}

static void trap(const check *self)
{
    hdcu_function kernel = FAULT(self->text);
    uint32_t wanted = (uint32_t)self->number;
    STATUS(LAUNCH(kernel, 1, 1, NULL, &wanted));
    STATUS(cuCtxSynchronize());
    STATUS(cuCtxSynchronize());
}

static void asserts(const check *self)
{
    (void)self;
    hdcu_function kernel = FAULT("do_assert");
    capture_output();
    STATUS(LAUNCH(kernel, 1, 1, NULL, NULL));
    STATUS(cuCtxSynchronize());
    STATUS(cuCtxSynchronize());
    say_output();
}

static void inactive_lanes_are_no_matter(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(64), out = new_bytes(4);
    set_word(p, 17);
    STATUS(LAUNCH(FAULT("wild_but_inactive"), 1, 32, NULL, &p, &out));
    STATUS(cuCtxSynchronize());
    say("%u", word_at(out));
}

/* ---- afterwards ---- */

typedef struct things {
    hdcu_stream stream;
    hdcu_event event;
    hdcu_pointer memory;
    void *pinned;
    hdcu_module module;
    hdcu_function kernel;
    hdcu_graph graph;
    hdcu_graph_exec exec;
} things;

static void gather(things *of)
{
    memset(of, 0, sizeof *of);
    NEED(cuStreamCreate(&of->stream, 0));
    NEED(cuEventCreate(&of->event, 0));
    NEED(cuMemAlloc(&of->memory, 64));
    NEED(cuMemHostAlloc(&of->pinned, 64, 0));
    of->kernel = KERNEL("nothing");
    NEED(cuModuleLoadData(&of->module, module_globals));
    NEED(cuGraphCreate(&of->graph, 0));
    NEED(cuGraphInstantiateWithFlags(&of->exec, of->graph, 0));
}

static void break_context(long with_trap)
{
    hdcu_pointer nowhere = 0;
    if (with_trap)
        NEED(LAUNCH(FAULT("do_trap"), 1, 1, NULL, NULL));
    else
        NEED(LAUNCH(FAULT("store_at"), 1, 1, NULL, &nowhere));
    cu.cuCtxSynchronize();
}

static void sticks_to_work(const check *self)
{
    things of;
    uint32_t word = 0;
    gather(&of);
    break_context(self->number);
    STATUS(cuCtxSynchronize());
    STATUS(cuStreamSynchronize(of.stream));
    STATUS(cuStreamQuery(of.stream));
    STATUS(cuLaunchKernel(of.kernel, 1, 1, 1, 1, 1, 1, 0, of.stream, NULL, NULL));
    STATUS(cuMemcpyHtoD(of.memory, &word, 4));
    STATUS(cuMemcpyDtoH(&word, of.memory, 4));
    STATUS(cuMemcpyHtoDAsync(of.memory, of.pinned, 4, of.stream));
    STATUS(cuMemsetD8(of.memory, 1, 4));
    STATUS(cuMemsetD8Async(of.memory, 1, 4, of.stream));
    STATUS(cuEventRecord(of.event, of.stream));
    STATUS(cuEventQuery(of.event));
    STATUS(cuEventSynchronize(of.event));
    STATUS(cuStreamWaitEvent(of.stream, of.event, 0));
    STATUS(cuGraphLaunch(of.exec, of.stream));
    STATUS(cuStreamWriteValue32(of.stream, of.memory, 1, 0));
}

static void sticks_to_creation(const check *self)
{
    things of;
    hdcu_pointer p = 0;
    void *host = NULL;
    hdcu_stream stream = NULL;
    hdcu_event event = NULL;
    hdcu_module module = NULL;
    hdcu_function function = NULL;
    hdcu_graph_exec exec = NULL;
    hdcu_graph graph = NULL;
    gather(&of);
    break_context(self->number);
    STATUS(cuMemAlloc(&p, 16));
    STATUS(cuMemHostAlloc(&host, 16, 0));
    STATUS(cuMemAllocAsync(&p, 16, of.stream));
    STATUS(cuStreamCreate(&stream, 0));
    STATUS(cuEventCreate(&event, 0));
    STATUS(cuModuleLoadData(&module, module_functions));
    STATUS(cuModuleGetFunction(&function, of.module, "follow"));
    STATUS(cuGraphCreate(&graph, 0));
    STATUS(cuGraphInstantiateWithFlags(&exec, of.graph, 0));
}

static void sticks_to_release(const check *self)
{
    things of;
    gather(&of);
    break_context(self->number);
    STATUS(cuMemFree(of.memory));
    STATUS(cuMemFreeHost(of.pinned));
    STATUS(cuEventDestroy(of.event));
    STATUS(cuStreamDestroy(of.stream));
    STATUS(cuModuleUnload(of.module));
    STATUS(cuGraphExecDestroy(of.exec));
    STATUS(cuGraphDestroy(of.graph));
    STATUS(cuCtxDestroy(own_context));
}

static void does_not_stick_to(const check *self)
{
    things of;
    int value = 0;
    unsigned flags = 0;
    size_t bytes = 0, total = 0;
    hdcu_context context = NULL;
    hdcu_device device = 0;
    const char *name = NULL;
    gather(&of);
    break_context(self->number);
    STATUS(cuDriverGetVersion(&value));
    STATUS(cuGetErrorName(700, &name));
    STATUS(cuDeviceGetCount(&value));
    STATUS(cuDeviceGetAttribute(&value, HDCU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    STATUS(cuCtxGetCurrent(&context));
    STATUS(cuCtxGetDevice(&device));
    STATUS(cuCtxGetFlags(&flags));
    STATUS(cuMemGetInfo(&bytes, &total));
    STATUS(cuPointerGetAttribute(&value, HDCU_POINTER_ATTRIBUTE_MEMORY_TYPE, of.memory));
    STATUS(cuFuncGetAttribute(&value, HDCU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, of.kernel));
    STATUS(cuStreamGetFlags(of.stream, &flags));
    STATUS(cuCtxPopCurrent(&context));
    STATUS(cuCtxPushCurrent(context));
}

static void destroy_and_create(const check *self)
{
    hdcu_context another = NULL;
    break_context(self->number);
    STATUS(cuCtxDestroy(own_context));
    STATUS(cuCtxCreate(&another, 0, 0));
}

static void reset_primary(const check *self)
{
    (void)self;
    hdcu_context primary = NULL;
    hdcu_pointer p = 0;
    NEED(cuDevicePrimaryCtxRetain(&primary, 0));
    NEED(cuCtxSetCurrent(primary));
    hdcu_module module = NULL;
    hdcu_function kernel = NULL;
    NEED(cuModuleLoadData(&module, module_faults));
    NEED(cuModuleGetFunction(&kernel, module, "store_at"));
    NEED(LAUNCH(kernel, 1, 1, NULL, &p));
    STATUS(cuCtxSynchronize());
    STATUS(cuDevicePrimaryCtxReset(0));
    STATUS(cuDevicePrimaryCtxRetain(&primary, 0));
}

static void other_context(const check *self)
{
    hdcu_context another = NULL;
    NEED(cuCtxCreate(&another, 0, 0));
    NEED(cuCtxPopCurrent(NULL));
    break_context(self->number);
    STATUS(cuCtxSynchronize());
    NEED(cuCtxPushCurrent(another));
    hdcu_pointer p = 0;
    STATUS(cuCtxSynchronize());
    STATUS(cuMemAlloc(&p, 16));
}

/* Loaded, so that it can be launched while a stream is held up. */
static hdcu_function loaded_fault(void)
{
    hdcu_function kernel = FAULT("store_at");
    cu.cuFuncLoad(kernel);
    return kernel;
}

static void events_and_queries(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    hdcu_event before = new_event(0), after = new_event(0);
    hdcu_pointer nowhere = 0;
    float milliseconds = 0;
    hdcu_function kernel = loaded_fault();
    STATUS(cuEventRecord(before, stream));
    hold *held = hold_up(stream);
    STATUS(LAUNCH(kernel, 1, 1, stream, &nowhere));
    STATUS(cuEventRecord(after, stream));
    release(held);
    STATUS(cuEventSynchronize(after));
    STATUS(cuEventQuery(before));
    STATUS(cuEventQuery(after));
    STATUS(cuStreamQuery(stream));
    STATUS(cuEventElapsedTime(&milliseconds, before, after));
}

static void copy_notices(const check *self)
{
    (void)self;
    hdcu_pointer nowhere = 0, p = new_bytes(4);
    uint32_t word = 0;
    STATUS(LAUNCH(FAULT("store_at"), 1, 1, NULL, &nowhere));
    STATUS(cuMemcpyDtoH(&word, p, 4));
}

static void note(hdcu_stream stream, hdcu_result status, void *argument)
{
    (void)stream;
    *(volatile hdcu_result *)argument = status;
}

static void callback_after(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    volatile hdcu_result seen = 77;
    hdcu_pointer nowhere = 0;
    hdcu_function kernel = loaded_fault();
    hold *held = hold_up(stream);
    STATUS(LAUNCH(kernel, 1, 1, stream, &nowhere));
    STATUS(cuStreamAddCallback(stream, note, (void *)&seen, 0));
    release(held);
    STATUS(cuStreamSynchronize(stream));
    say("%u", seen);
}

static void graph_faults(const check *self)
{
    (void)self;
    hdcu_graph graph = NULL;
    hdcu_graph_exec exec = NULL;
    hdcu_pointer nowhere = 0;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    hdcu_function kernel = FAULT("store_at");
    NEED(cuStreamBeginCapture(stream, HDCU_STREAM_CAPTURE_MODE_RELAXED));
    NEED(LAUNCH(kernel, 1, 1, stream, &nowhere));
    NEED(cuStreamEndCapture(stream, &graph));
    NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
    STATUS(cuGraphLaunch(exec, stream));
    STATUS(cuStreamSynchronize(stream));
    STATUS(cuGraphLaunch(exec, stream));
}

/* ---- errors that do not stick ---- */

static void refused_launches_do_not_stick(const check *self)
{
    (void)self;
    hdcu_pointer p = 0;
    STATUS(cuLaunchKernel(KERNEL("nothing"), 1, 1, 1, 2000, 1, 1, 0, NULL, NULL, NULL));
    STATUS(cuCtxSynchronize());
    STATUS(cuLaunchKernel(KERNEL("nothing"), 1, 1, 1, 1, 1, 1, 60000, NULL, NULL, NULL));
    STATUS(cuCtxSynchronize());
    STATUS(cuLaunchCooperativeKernel(KERNEL("nothing"), 100000, 1, 1, 1024, 1, 1, 0, NULL, NULL));
    STATUS(cuCtxSynchronize());
    STATUS(cuMemAlloc(&p, (size_t)1 << 60));
    STATUS(cuCtxSynchronize());
    STATUS(cuLaunchKernel(KERNEL("nothing"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    STATUS(cuCtxSynchronize());
}

/* ---- printing ---- */

static void prints(const check *self)
{
    (void)self;
    uint32_t i = 42;
    double f = 1.5;
    capture_output();
    STATUS(LAUNCH(FAULT("print"), 1, 1, NULL, &i, &f));
    STATUS(cuCtxSynchronize());
    say_output();
}

static void print_result(const check *self)
{
    (void)self;
    hdcu_pointer out = new_bytes(4);
    capture_output();
    STATUS(LAUNCH(FAULT("print_count"), 2, 2, NULL, &out));
    STATUS(cuCtxSynchronize());
    say("%d", (int)word_at(out));
    say_output();
}

static void print_at_stream_synchronize(const check *self)
{
    (void)self;
    hdcu_pointer out = new_bytes(4);
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    capture_output();
    STATUS(LAUNCH(FAULT("print_count"), 1, 1, stream, &out));
    STATUS(cuStreamSynchronize(stream));
    say_output();
}

#define FAULTS(text_, kernel, which) {.name = text_, .run = fault, .text = kernel, .number = which, .alone = true}
#define AFTER(text_, function)                                                                                         \
    {.name = text_ " after 700", .run = function, .number = 0, .alone = true},                                         \
    {.name = text_ " after a trap", .run = function, .number = 1, .alone = true}

static const check checks[] = {
    FAULTS("store at null", "store_at", NULL_PAGE),
    FAULTS("store unmapped", "store_at", UNMAPPED),
    FAULTS("store wild", "store_at", WILD),
    FAULTS("store freed", "store_at", FREED),
    FAULTS("load at null", "load_at", NULL_PAGE),
    FAULTS("load unmapped", "load_at", UNMAPPED),
    FAULTS("atomic at null", "atomic_at", NULL_PAGE),
    FAULTS("generic store at null", "generic_at", NULL_PAGE),
    FAULTS("generic store wild", "generic_at", WILD),
    FAULTS("store misaligned", "store_at", MISALIGNED),
    FAULTS("load misaligned", "load_at", MISALIGNED),
    FAULTS("load of four words misaligned", "load_wide_at", MISALIGNED_WIDE),
    FAULTS("atomic misaligned", "atomic_at", MISALIGNED),
    FAULTS("shared far out of bounds", "shared_at", SHARED_END),
    FAULTS("shared misaligned", "shared_at", SHARED_ODD),
    {.name = "trap", .run = trap, .text = "do_trap", .alone = true},
    {.name = "trap under a predicate", .run = trap, .text = "trap_if", .number = 1, .alone = true},
    {.name = "trap not reached", .run = trap, .text = "trap_if", .number = 0, .alone = true},
    {.name = "assert", .run = asserts, .alone = true},
    {.name = "inactive lanes", .run = inactive_lanes_are_no_matter, .alone = true},
    AFTER("work", sticks_to_work),
    AFTER("creation", sticks_to_creation),
    AFTER("release", sticks_to_release),
    AFTER("questions", does_not_stick_to),
    AFTER("a new context", destroy_and_create),
    AFTER("another context", other_context),
    {.name = "the primary context reset", .run = reset_primary, .alone = true},
    {.name = "events and queries", .run = events_and_queries, .alone = true},
    {.name = "copy notices", .run = copy_notices, .alone = true},
    {.name = "callback after a fault", .run = callback_after, .alone = true},
    {.name = "graph faults", .run = graph_faults, .alone = true},
    {.name = "refused calls do not stick", .run = refused_launches_do_not_stick, .alone = true},
    {.name = "printf", .run = prints, .alone = true},
    {.name = "printf's result", .run = print_result, .alone = true},
    {.name = "printf at stream synchronize", .run = print_at_stream_synchronize, .alone = true},
};

const area area_fault = {"fault", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
