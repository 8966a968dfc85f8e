/* SPDX-License-Identifier: MIT */
/* The kernels of hdrt-bench: hand-written PTX, so that the soft driver and a GPU run the same. */
#include "hdrt_bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STORE(value) " cvta.to.global.u64 %d1, %d1;\n st.global.u32 [%d1], " value ";\n ret;\n}\n"
#define REGISTERS " .reg .pred %q;\n .reg .b32 %r<8>;\n .reg .b64 %d<6>;\n .reg .f32 %f;\n"
#define P " ld.param.u64 %d1, [p];\n"
#define V " ld.param.u32 %r1, [v];\n"
#define ADD(name) " ld.param.u32 %r2, [" name "];\n add.u32 %r1, %r1, %r2;\n"

static const char fixed[] =
    ".version 7.4\n.target sm_75\n.address_size 64\n"
    ".visible .entry store(.param .u64 p, .param .u32 v)\n{\n" REGISTERS P V STORE("%r1")
    ".visible .entry four(.param .u64 p, .param .u32 v, .param .u32 a, .param .u32 b)\n{\n"
    REGISTERS P V ADD("a") ADD("b") STORE("%r1")
    ".visible .entry step(.param .u64 p, .param .u32 v)\n{\n" REGISTERS P V
    " cvta.to.global.u64 %d1, %d1;\n ld.global.u32 %r2, [%d1];\n setp.ne.u32 %q, %r1, %r2;\n @%q ret;\n"
    " add.u32 %r1, %r1, 1;\n st.global.u32 [%d1], %r1;\n ret;\n}\n"
    ".visible .entry spin(.param .u64 ns, .param .u64 p, .param .u32 v)\n{\n" REGISTERS P V
    " ld.param.u64 %d2, [ns];\n mov.u64 %d3, %globaltimer;\n"
    "AGAIN:\n mov.u64 %d4, %globaltimer;\n sub.u64 %d5, %d4, %d3;\n setp.lt.u64 %q, %d5, %d2;\n @%q bra AGAIN;\n"
    STORE("%r1")
    ".visible .entry gate(.param .u64 p, .param .u64 ns)\n{\n" REGISTERS P
    " cvta.to.global.u64 %d1, %d1;\n ld.param.u64 %d2, [ns];\n mov.u64 %d3, %globaltimer;\n"
    "AGAIN:\n ld.volatile.global.u32 %r1, [%d1];\n setp.ne.u32 %q, %r1, 0;\n @%q ret;\n"
    " mov.u64 %d4, %globaltimer;\n sub.u64 %d5, %d4, %d3;\n setp.lt.u64 %q, %d5, %d2;\n @%q bra AGAIN;\n ret;\n}\n"
    ".visible .entry s0(.param .u64 p, .param .u32 v)\n{\n" REGISTERS P V STORE("%r1")
    ".visible .entry s1(.param .u64 p, .param .u32 v, .param .u32 a)\n{\n" REGISTERS P V ADD("a") STORE("%r1")
    ".visible .entry s2(.param .u64 w, .param .u64 p)\n{\n" REGISTERS P
    " ld.param.u64 %d2, [w];\n cvt.u32.u64 %r1, %d2;\n" STORE("%r1")
    ".visible .entry s3(.param .u64 p, .param .f32 f)\n{\n" REGISTERS P
    " ld.param.f32 %f, [f];\n cvt.rzi.u32.f32 %r1, %f;\n" STORE("%r1")
    ".visible .entry s4(.param .u32 a, .param .u64 p, .param .u32 v)\n{\n" REGISTERS P V ADD("a") STORE("%r1")
    ".visible .entry s5(.param .u64 p, .param .u32 v, .param .u32 a, .param .u64 w)\n{\n" REGISTERS P V ADD("a")
    " ld.param.u64 %d2, [w];\n cvt.u32.u64 %r2, %d2;\n add.u32 %r1, %r1, %r2;\n" STORE("%r1")
    ".visible .entry s6(.param .u64 p, .param .u32 v, .param .u32 a, .param .u32 b, .param .u32 c)\n{\n"
    REGISTERS P V ADD("a") ADD("b") ADD("c") STORE("%r1");

static hdrt_kernel *find(struct bench *b, const char *format, ...)
{
    char name[16];
    hdrt_kernel *kernel;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    HDRT(hdrt_module_kernel(b->module, name, &kernel));
    return kernel;
}

void bench_load_kernels(struct bench *b)
{
    size_t size = sizeof fixed - 1, capacity = sizeof fixed + BENCH_MANY * 400u;
    char *text = malloc(capacity);
    if (!text) {
        bench_fail("no memory for the kernels' text");
    }
    memcpy(text, fixed, sizeof fixed);
    for (unsigned i = 0; i < BENCH_MANY; i++) {
        size += (size_t)snprintf(text + size, capacity - size,
                                 ".visible .entry m%u(.param .u64 p, .param .u32 v)\n{\n .reg .b32 %%r<8>;\n"
                                 " .reg .b64 %%d<6>;\n ld.param.u64 %%d1, [p];\n ld.param.u32 %%r1, [v];\n"
                                 " add.u32 %%r1, %%r1, %u;\n cvta.to.global.u64 %%d1, %%d1;\n"
                                 " st.global.u32 [%%d1], %%r1;\n ret;\n}\n",
                                 i, i);
    }
    HDRT(hdrt_module_load(b->device, text, size, NULL, &b->module));
    free(text);
    struct bench_kernels *k = &b->kernels;
    *k = (struct bench_kernels){
        .store = find(b, "store"),
        .four = find(b, "four"),
        .step = find(b, "step"),
        .spin = find(b, "spin"),
        .gate = find(b, "gate"),
    };
    for (unsigned i = 0; i < BENCH_SEVEN; i++) {
        k->seven[i] = find(b, "s%u", i);
    }
    for (unsigned i = 0; i < BENCH_MANY; i++) {
        k->many[i] = find(b, "m%u", i);
    }
}

void bench_launch_raw(struct bench *b, struct CUstream_st *stream, hdrt_kernel *kernel, void **params)
{
    RAW(cuLaunchKernel(hdrt_kernel_function(kernel), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

uint32_t bench_seven_value(unsigned which, uint32_t v)
{
    static const uint32_t more[BENCH_SEVEN] = {0, 1, 0, 0, 1, 3, 6};
    return v + more[which];
}

void bench_launch_seven(struct bench *b, hdrt_queue *queue, unsigned which, unsigned long long p, uint32_t v)
{
    hdrt_kernel *kernel = b->kernels.seven[which];
    hdrt_grid one = bench_one();
    switch (which) {
    case 0: HDRT(hdrt_launch(queue, kernel, one, HDRT_ARGS(p, v))); break;
    case 1: HDRT(hdrt_launch(queue, kernel, one, HDRT_ARGS(p, v, 1u))); break;
    case 2: HDRT(hdrt_launch(queue, kernel, one, HDRT_ARGS((uint64_t)v, p))); break;
    case 3: HDRT(hdrt_launch(queue, kernel, one, HDRT_ARGS(p, (float)v))); break;
    case 4: HDRT(hdrt_launch(queue, kernel, one, HDRT_ARGS(1u, p, v))); break;
    case 5: HDRT(hdrt_launch(queue, kernel, one, HDRT_ARGS(p, v, 1u, (uint64_t)2))); break;
    default: HDRT(hdrt_launch(queue, kernel, one, HDRT_ARGS(p, v, 1u, 2u, 3u))); break;
    }
}

void bench_launch_seven_raw(struct bench *b, struct CUstream_st *stream, unsigned which, unsigned long long p,
                            uint32_t v)
{
    uint32_t one = 1, two = 2, three = 3;
    uint64_t wide = which == 2 ? v : 2;
    float f = (float)v;
    void *all[BENCH_SEVEN][5] = {
        {&p, &v}, {&p, &v, &one}, {&wide, &p}, {&p, &f}, {&one, &p, &v}, {&p, &v, &one, &wide},
        {&p, &v, &one, &two, &three},
    };
    bench_launch_raw(b, stream, b->kernels.seven[which], all[which]);
}
