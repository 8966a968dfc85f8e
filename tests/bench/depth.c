/* SPDX-License-Identifier: MIT */
/*
 * How many commands of each kind a stream takes behind a closed gate before the driver's call blocks: the number that
 * lib/queue/commit.h must stay below, so that no asynchronous call waits for the GPU. Run by hand on a GPU:
 *
 *   cc -Ilib tests/bench/depth.c -ldl -lpthread -o depth && ./depth
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver/cuda_table.h"

#define MOST 6000

static hdrt__driver_table cu;
static volatile unsigned *gate;
static hdcu_pointer gate_address;
static atomic_int calls, opened_at;
static atomic_bool finished;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void must(hdcu_result result, const char *what)
{
    if (result != 0) {
        fprintf(stderr, "%s: %d\n", what, (int)result);
        exit(1);
    }
}
#define MUST(call) must(cu.call, #call)

static void nothing(void *argument)
{
    (void)argument;
}

/* Opens the gate when the caller has stood still for a second: it is blocked in call number `opened_at`. */
static void *watch(void *argument)
{
    int seen = -1, still = 0;
    (void)argument;
    while (!atomic_load(&finished) && still < 10) {
        int count = atomic_load(&calls);
        still = count == seen ? still + 1 : 0;
        seen = count;
        usleep(100000);
    }
    if (!atomic_load(&finished)) {
        atomic_store(&opened_at, seen);
        *gate = 1;
    }
    return NULL;
}

enum kind { HOST_FUNCTION, WAIT_VALUE, WRITE_VALUE, HOST_AND_WAIT, EVENT, WAIT_EVENT, MEMSET, COPY, LAUNCH, ALLOCATE, KINDS };
static const char *const names[KINDS] = {"cuLaunchHostFunc", "cuStreamWaitValue32", "cuStreamWriteValue32",
    "cuLaunchHostFunc + cuStreamWaitValue32", "cuEventRecord", "cuEventRecord + cuStreamWaitEvent", "cuMemsetD8Async",
    "cuMemcpyHtoDAsync (pinned)", "cuLaunchKernel", "cuMemAllocAsync + cuMemFreeAsync"};

/* What another stream can do meanwhile, behind 200 of them. */
static void neighbour(hdcu_stream other, hdcu_pointer memory)
{
    double begin = now();
    hdcu_pointer piece;
    MUST(cuMemAllocAsync(&piece, 4096, other));
    double allocated = now();
    MUST(cuMemsetD8Async(memory, 7, 4096, other));
    MUST(cuMemcpyDtoHAsync((void *)(gate + 1024), memory, 4096, other));
    MUST(cuMemFreeAsync(piece, other));
    double enqueued = now();
    MUST(cuStreamSynchronize(other));
    printf("%-42s   another stream behind 200: allocation %.0f us, enqueuing %.0f us, synchronising %.0f us\n", "",
           (allocated - begin) * 1e6, (enqueued - allocated) * 1e6, (now() - enqueued) * 1e6);
}

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry empty() { ret; }\n";

static void measure(enum kind kind, hdcu_function function, hdcu_pointer memory)
{
    hdcu_stream stream, other;
    hdcu_event event, foreign;
    pthread_t thread;
    double worst = 0;
    *gate = 0;
    atomic_store(&calls, 0);
    atomic_store(&opened_at, -1);
    atomic_store(&finished, false);
    MUST(cuStreamCreate(&stream, 1));
    MUST(cuStreamCreate(&other, 1));
    MUST(cuEventCreate(&event, 2));
    MUST(cuEventCreate(&foreign, 2));
    MUST(cuStreamWaitValue32(stream, gate_address, 1, 0));
    pthread_create(&thread, NULL, watch, NULL);
    for (int i = 0; i < MOST && atomic_load(&opened_at) < 0; i++) {
        double begin = now();
        hdcu_pointer piece;
        switch (kind) {
        case HOST_FUNCTION: MUST(cuLaunchHostFunc(stream, nothing, NULL)); break;
        case WAIT_VALUE: MUST(cuStreamWaitValue32(stream, gate_address, 1, 0)); break;
        case WRITE_VALUE: MUST(cuStreamWriteValue32(stream, gate_address + 64, 1, 0)); break;
        case HOST_AND_WAIT:
            MUST(cuLaunchHostFunc(stream, nothing, NULL));
            MUST(cuStreamWaitValue32(stream, gate_address, 1, 0));
            break;
        case EVENT: MUST(cuEventRecord(event, stream)); break;
        case WAIT_EVENT:
            MUST(cuEventRecord(foreign, other));
            MUST(cuStreamWaitEvent(stream, foreign, 0));
            break;
        case MEMSET: MUST(cuMemsetD8Async(memory, 1, 4096, stream)); break;
        case COPY: MUST(cuMemcpyHtoDAsync(memory, (void *)(gate + 64), 1024, stream)); break;
        case LAUNCH: MUST(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL)); break;
        case ALLOCATE:
            MUST(cuMemAllocAsync(&piece, 4096, stream));
            MUST(cuMemFreeAsync(piece, stream));
            break;
        default: break;
        }
        worst = now() - begin > worst ? now() - begin : worst;
        atomic_fetch_add(&calls, 1);
        if (i == 200)
            neighbour(other, memory);
    }
    atomic_store(&finished, true);
    pthread_join(thread, NULL);
    *gate = 1;
    MUST(cuStreamSynchronize(stream));
    if (atomic_load(&opened_at) >= 0)
        printf("%-42s blocks at call %d\n", names[kind], atomic_load(&opened_at) + 1);
    else
        printf("%-42s does not block within %d calls (worst %.1f us)\n", names[kind], MOST, worst * 1e6);
    fflush(stdout);
}

int main(void)
{
    hdcu_device device;
    hdcu_context context;
    hdcu_module module;
    hdcu_function function;
    hdcu_pointer memory;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *host;
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
#define RESOLVE(name, symbol, ...) cu.name = (__typeof__(cu.name))dlsym(library, symbol);
    HDCU_SYMBOL_LIST(RESOLVE)
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&function, module, "empty"));
    MUST(cuMemHostAlloc(&host, 65536, 0));
    MUST(cuMemHostGetDevicePointer(&gate_address, host, 0));
    MUST(cuMemAlloc(&memory, 4096));
    gate = host;
    for (int kind = 0; kind < KINDS; kind++)
        measure((enum kind)kind, function, memory);
    return 0;
}
