/* SPDX-License-Identifier: MIT */
/* For the tests of the soft driver's execution policies: a driver under one, kernels, and what it tells from C. */
#ifndef HDRT_TEST_SOFT_POLICY_H
#define HDRT_TEST_SOFT_POLICY_H

#include "soft.h"

#include <stdatomic.h>

static const char policy_code[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry empty() { ret; }\n"
    /* p[i] = p[i] * 3 + v, of one thread for each i */
    ".visible .entry mix(.param .u64 p, .param .u32 v) {\n"
    "  .reg .b64 %rd<4>; .reg .b32 %r<8>;\n"
    "  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v];\n"
    "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;\n"
    "  mul.wide.u32 %rd2, %r5, 4; add.u64 %rd3, %rd1, %rd2;\n"
    "  ld.global.u32 %r6, [%rd3]; mad.lo.u32 %r7, %r6, 3, %r1; st.global.u32 [%rd3], %r7; ret;\n"
    "}\n"
    /* the order of blocks: each takes a number */
    ".visible .entry number(.param .u64 p) {\n"
    "  .reg .b64 %rd<4>; .reg .b32 %r<4>;\n"
    "  ld.param.u64 %rd1, [p]; atom.global.add.u32 %r1, [%rd1], 1; mov.u32 %r2, %ctaid.x;\n"
    "  mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3+4], %r1; ret;\n"
    "}\n"
    ".visible .entry sleep(.param .u32 t) {\n"
    "  .reg .b32 %r<2>;\n"
    "  ld.param.u32 %r1, [t]; nanosleep.u32 %r1; ret;\n"
    "}\n"
    ".visible .entry times(.param .u64 p) {\n"
    "  .reg .b64 %rd<8>;\n"
    "  ld.param.u64 %rd1, [p]; mov.u64 %rd2, %globaltimer; nanosleep.u32 5000; mov.u64 %rd3, %globaltimer;\n"
    "  sub.u64 %rd4, %rd3, %rd2; st.global.u64 [%rd1], %rd2; st.global.u64 [%rd1+8], %rd4; ret;\n"
    "}\n"
    ".visible .entry wait_for(.param .u64 flag) {\n"
    "  .reg .b64 %rd<2>; .reg .b32 %r<2>; .reg .pred %p<2>;\n"
    "  ld.param.u64 %rd1, [flag];\n"
    "again:\n"
    "  ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra again; ret;\n"
    "}\n"
    ".visible .entry raise(.param .u64 flag) {\n"
    "  .reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
    "  ld.param.u64 %rd1, [flag]; mov.u32 %r1, 1; st.volatile.global.u32 [%rd1], %r1; ret;\n"
    "}\n";

static hdcu_module module;
static int (*set_policy)(const char *policy);
static void (*observe)(bool observing);
static unsigned long long (*trace_hash)(void), (*clock_now)(void), (*makespan)(void), (*gpu_waits)(void);
static void (*clock_advance)(unsigned long long ns);

static inline void start(const char *policy)
{
    *(void **)&set_policy = hdsoft_get_proc_address("hdsoft_set_policy");
    *(void **)&observe = hdsoft_get_proc_address("hdsoft_observe");
    *(void **)&trace_hash = hdsoft_get_proc_address("hdsoft_trace_hash");
    *(void **)&clock_now = hdsoft_get_proc_address("hdsoft_clock_now");
    *(void **)&clock_advance = hdsoft_get_proc_address("hdsoft_clock_advance");
    *(void **)&makespan = hdsoft_get_proc_address("hdsoft_makespan");
    *(void **)&gpu_waits = hdsoft_get_proc_address("hdsoft_gpu_waits");
    setenv("HDSOFT_POLICY", policy, 1);
    soft_start();
    OK(cuModuleLoadData(&module, policy_code));
}

static inline hdcu_function function(const char *name)
{
    hdcu_function found;
    OK(cuModuleGetFunction(&found, module, name));
    return found;
}

static inline void launch(const char *name, unsigned grid, unsigned block, hdcu_stream stream, void **params)
{
    OK(cuLaunchKernel(function(name), grid, 1, 1, block, 1, 1, 0, stream, params, NULL));
}

static _Atomic unsigned noted;
static char notes[32];

static inline void note(void *letter)
{
    notes[atomic_fetch_add(&noted, 1)] = *(const char *)letter;
}

#endif
