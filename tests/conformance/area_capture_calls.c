/* SPDX-License-Identifier: MIT */
/*
 * Calls beside a capture: in each of the three modes, from the thread that captures, and from another one in each mode
 * of its own. The answer is the call's status, the capture's state after it, and what ends it.
 */
#include "areas.h"
#include "support.h"

#include <stdlib.h>
#include <sys/mman.h>

/* What the calls need, made before the capture begins. */
typedef struct room {
    hdcu_stream captured, other, doomed;
    hdcu_event event, recorded, doomed_event;
    hdcu_pointer memory, doomed_memory;
    void *pinned, *pages, *doomed_pinned;
    hdcu_module module, doomed_module;
    hdcu_graph graph;
    hdcu_graph_exec exec;
    hdcu_function kernel;
} room;

enum {
    STREAM_SYNCHRONIZE, STREAM_QUERY, OWN_SYNCHRONIZE, OWN_QUERY, CONTEXT_SYNCHRONIZE, EVENT_QUERY, EVENT_SYNCHRONIZE,
    ELAPSED, MEM_ALLOC, MEM_FREE, HOST_ALLOC, FREE_HOST, HOST_REGISTER, COPY_SYNC, FILL_SYNC, ALLOC_ASYNC,
    LAUNCH_OTHER, COPY_OTHER, MODULE_LOAD, MODULE_UNLOAD, GET_FUNCTION, GRAPH_CREATE, GRAPH_INSTANTIATE, GRAPH_LAUNCH,
    STREAM_CREATE, STREAM_DESTROY, EVENT_CREATE, EVENT_DESTROY, EVENT_RECORD, MEM_INFO, CONTEXT_CREATE, SET_LIMIT,
    POINTER_ATTRIBUTE, OCCUPANCY,
};

static hdcu_result call_memory(int which, room *of)
{
    uint32_t word = 0;
    hdcu_pointer p = 0;
    void *host = NULL;
    size_t bytes = 0, total = 0;
    switch (which) {
    case MEM_ALLOC: return cu.cuMemAlloc(&p, 64);
    case MEM_FREE: return cu.cuMemFree(of->doomed_memory);
    case HOST_ALLOC: return cu.cuMemHostAlloc(&host, 64, 0);
    case FREE_HOST: return cu.cuMemFreeHost(of->doomed_pinned);
    case HOST_REGISTER: return cu.cuMemHostRegister(of->pages, 4096, 0);
    case COPY_SYNC: return cu.cuMemcpyHtoD(of->memory, &word, 4);
    case FILL_SYNC: return cu.cuMemsetD32(of->memory, 1, 1);
    case ALLOC_ASYNC: return cu.cuMemAllocAsync(&p, 64, of->other);
    case COPY_OTHER: return cu.cuMemcpyHtoDAsync(of->memory, of->pinned, 4, of->other);
    case MEM_INFO: return cu.cuMemGetInfo(&bytes, &total);
    default: return cu.cuPointerGetAttribute(&word, HDCU_POINTER_ATTRIBUTE_MEMORY_TYPE, of->memory);
    }
}

static hdcu_result call_code(int which, room *of)
{
    hdcu_module module = NULL;
    hdcu_function function = NULL;
    hdcu_graph graph = NULL;
    hdcu_graph_exec exec = NULL;
    int blocks = 0;
    switch (which) {
    case MODULE_LOAD: return cu.cuModuleLoadData(&module, module_globals);
    case MODULE_UNLOAD: return cu.cuModuleUnload(of->doomed_module);
    case GET_FUNCTION: return cu.cuModuleGetFunction(&function, of->module, "store");
    case GRAPH_CREATE: return cu.cuGraphCreate(&graph, 0);
    case GRAPH_INSTANTIATE: return cu.cuGraphInstantiateWithFlags(&exec, of->graph, 0);
    case GRAPH_LAUNCH: return cu.cuGraphLaunch(of->exec, of->other);
    case LAUNCH_OTHER: return cu.cuLaunchKernel(of->kernel, 1, 1, 1, 1, 1, 1, 0, of->other, NULL, NULL);
    default: return cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, of->kernel, 32, 0);
    }
}

static hdcu_result call(int which, room *of)
{
    hdcu_stream stream = NULL;
    hdcu_event event = NULL;
    hdcu_context context = NULL;
    hdcu_result status;
    float milliseconds = 0;
    switch (which) {
    case STREAM_SYNCHRONIZE: return cu.cuStreamSynchronize(of->other);
    case STREAM_QUERY: return cu.cuStreamQuery(of->other);
    case OWN_SYNCHRONIZE: return cu.cuStreamSynchronize(of->captured);
    case OWN_QUERY: return cu.cuStreamQuery(of->captured);
    case CONTEXT_SYNCHRONIZE: return cu.cuCtxSynchronize();
    case EVENT_QUERY: return cu.cuEventQuery(of->recorded);
    case EVENT_SYNCHRONIZE: return cu.cuEventSynchronize(of->recorded);
    case ELAPSED: return cu.cuEventElapsedTime(&milliseconds, of->recorded, of->recorded);
    case STREAM_CREATE: return cu.cuStreamCreate(&stream, HDCU_STREAM_NON_BLOCKING);
    case STREAM_DESTROY: return cu.cuStreamDestroy(of->doomed);
    case EVENT_CREATE: return cu.cuEventCreate(&event, 0);
    case EVENT_DESTROY: return cu.cuEventDestroy(of->doomed_event);
    case EVENT_RECORD: return cu.cuEventRecord(of->event, of->other);
    case SET_LIMIT: return cu.cuCtxSetLimit(HDCU_LIMIT_STACK_SIZE, 2048);
    case CONTEXT_CREATE:
        status = cu.cuCtxCreate(&context, 0, 0);
        if (!status)
            cu.cuCtxPopCurrent(NULL);
        return status;
    case MEM_ALLOC: case MEM_FREE: case HOST_ALLOC: case FREE_HOST: case HOST_REGISTER: case COPY_SYNC:
    case FILL_SYNC: case ALLOC_ASYNC: case COPY_OTHER: case MEM_INFO: case POINTER_ATTRIBUTE:
        return call_memory(which, of);
    default: return call_code(which, of);
    }
}

static void furnish(room *of)
{
    *of = (room){.captured = new_stream(HDCU_STREAM_NON_BLOCKING), .other = new_stream(HDCU_STREAM_NON_BLOCKING),
                 .event = new_event(0), .recorded = new_event(0), .memory = new_bytes(64), .pinned = new_pinned(64)};
    NEED(cuStreamCreate(&of->doomed, HDCU_STREAM_NON_BLOCKING));
    NEED(cuEventCreate(&of->doomed_event, 0));
    NEED(cuMemAlloc(&of->doomed_memory, 64));
    NEED(cuMemHostAlloc(&of->doomed_pinned, 64, 0));
    NEED(cuModuleLoadData(&of->doomed_module, module_globals));
    of->module = module_of(module_basic);
    of->kernel = KERNEL("nothing");
    of->pages = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(cuGraphCreate(&of->graph, 0));
    NEED(cuGraphInstantiateWithFlags(&of->exec, of->graph, 0));
    NEED(cuEventRecord(of->recorded, of->other));
    NEED(cuLaunchKernel(of->kernel, 1, 1, 1, 1, 1, 1, 0, of->other, NULL, NULL));
    NEED(cuCtxSynchronize());
}

typedef struct elsewhere {
    room *room;
    int which;
    unsigned mode;
    hdcu_result set, status;
} elsewhere;

static void call_elsewhere(void *argument)
{
    elsewhere *of = argument;
    of->set = cu.cuCtxSetCurrent(own_context);
    unsigned mode = of->mode;
    cu.cuThreadExchangeStreamCaptureMode(&mode);
    of->status = call(of->which, of->room);
}

/* `text` is two letters: the capture's mode, and whose call it is: s(ame thread), or another thread's mode. */
static void beside(const check *self)
{
    static const unsigned modes[128] = {['g'] = HDCU_STREAM_CAPTURE_MODE_GLOBAL,
                                        ['t'] = HDCU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                        ['r'] = HDCU_STREAM_CAPTURE_MODE_RELAXED};
    room of;
    hdcu_graph graph = NULL;
    unsigned state = 77;
    furnish(&of);
    NEED(cuStreamBeginCapture(of.captured, modes[(unsigned char)self->text[0]]));
    if (self->text[1] == 's') {
        say("%u", call((int)self->number, &of));
    } else {
        elsewhere there = {.room = &of, .which = (int)self->number, .mode = modes[(unsigned char)self->text[1]]};
        in_thread(call_elsewhere, &there);
        say("%u", there.status);
    }
    STATUS(cuStreamIsCapturing(of.captured, &state));
    say("%u", state);
    STATUS(cuStreamEndCapture(of.captured, &graph));
    say("%s", graph ? "graph" : "null");
}

#define SAME(text_, which)                                                                                             \
    {.name = text_ ": global", .run = beside, .number = which, .text = "gs"},                                          \
    {.name = text_ ": thread-local", .run = beside, .number = which, .text = "ts"},                                    \
    {.name = text_ ": relaxed", .run = beside, .number = which, .text = "rs"}
#define OTHER(text_, which)                                                                                            \
    {.name = text_ ", another thread: global", .run = beside, .number = which, .text = "gg"},                          \
    {.name = text_ ", another thread relaxed: global", .run = beside, .number = which, .text = "gr"},                  \
    {.name = text_ ", another thread: thread-local", .run = beside, .number = which, .text = "tg"},                    \
    {.name = text_ ", another thread: relaxed", .run = beside, .number = which, .text = "rg"}
#define GLOBAL(text_, which) {.name = text_ ": global", .run = beside, .number = which, .text = "gs"}

static const check checks[] = {
    SAME("cuStreamSynchronize", STREAM_SYNCHRONIZE),
    SAME("cuStreamQuery", STREAM_QUERY),
    SAME("cuStreamSynchronize of itself", OWN_SYNCHRONIZE),
    SAME("cuStreamQuery of itself", OWN_QUERY),
    SAME("cuCtxSynchronize", CONTEXT_SYNCHRONIZE),
    SAME("cuEventQuery", EVENT_QUERY),
    SAME("cuEventSynchronize", EVENT_SYNCHRONIZE),
    SAME("cuEventElapsedTime", ELAPSED),
    SAME("cuMemAlloc", MEM_ALLOC),
    SAME("cuMemFree", MEM_FREE),
    SAME("cuMemHostAlloc", HOST_ALLOC),
    SAME("cuMemFreeHost", FREE_HOST),
    SAME("cuMemHostRegister", HOST_REGISTER),
    SAME("cuMemcpyHtoD", COPY_SYNC),
    SAME("cuMemsetD32", FILL_SYNC),
    SAME("cuMemAllocAsync", ALLOC_ASYNC),
    SAME("cuModuleLoadData", MODULE_LOAD),
    SAME("cuModuleUnload", MODULE_UNLOAD),
    SAME("cuGraphInstantiate", GRAPH_INSTANTIATE),
    SAME("cuGraphLaunch", GRAPH_LAUNCH),
    SAME("cuStreamDestroy", STREAM_DESTROY),
    SAME("cuEventDestroy", EVENT_DESTROY),
    GLOBAL("cuLaunchKernel elsewhere", LAUNCH_OTHER),
    GLOBAL("cuMemcpyHtoDAsync elsewhere", COPY_OTHER),
    GLOBAL("cuEventRecord elsewhere", EVENT_RECORD),
    GLOBAL("cuModuleGetFunction", GET_FUNCTION),
    GLOBAL("cuGraphCreate", GRAPH_CREATE),
    GLOBAL("cuStreamCreate", STREAM_CREATE),
    GLOBAL("cuEventCreate", EVENT_CREATE),
    GLOBAL("cuMemGetInfo", MEM_INFO),
    GLOBAL("cuCtxCreate", CONTEXT_CREATE),
    GLOBAL("cuCtxSetLimit", SET_LIMIT),
    GLOBAL("cuPointerGetAttribute", POINTER_ATTRIBUTE),
    GLOBAL("cuOccupancyMaxActiveBlocksPerMultiprocessor", OCCUPANCY),
    OTHER("cuEventQuery", EVENT_QUERY),
    OTHER("cuEventSynchronize", EVENT_SYNCHRONIZE),
    OTHER("cuStreamSynchronize", STREAM_SYNCHRONIZE),
    OTHER("cuGraphInstantiate", GRAPH_INSTANTIATE),
    OTHER("cuMemAlloc", MEM_ALLOC),
    OTHER("cuMemAllocAsync", ALLOC_ASYNC),
    OTHER("cuMemFree", MEM_FREE),
    OTHER("cuMemHostAlloc", HOST_ALLOC),
    OTHER("cuMemFreeHost", FREE_HOST),
    OTHER("cuModuleUnload", MODULE_UNLOAD),
    OTHER("cuCtxSynchronize", CONTEXT_SYNCHRONIZE),
    OTHER("cuLaunchKernel", LAUNCH_OTHER),
};

const area area_capture_calls = {"capturing", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
