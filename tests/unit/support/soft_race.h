/* SPDX-License-Identifier: MIT */
/* For the tests of the race check: a driver under check with a policy, kernels that touch bytes, and what was reported. */
#ifndef HDRT_TEST_SOFT_RACE_H
#define HDRT_TEST_SOFT_RACE_H

#include "soft.h"

#include <stdio.h>

/* Hand-written: bytes [0, n) of p are written, read, changed atomically (words), or handed over by a flag. */
static const char race_kernels[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry store(.param .u64 p, .param .u32 n)\n"
    "{\n"
    "    .reg .pred %q; .reg .b32 %r<6>; .reg .b64 %a<4>;\n"
    "    ld.param.u64 %a0, [p];\n"
    "    ld.param.u32 %r0, [n];\n"
    "    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"
    "    mad.lo.u32 %r1, %r2, %r3, %r1;\n"
    "    setp.ge.u32 %q, %r1, %r0;\n"
    "    @%q bra DONE;\n"
    "    cvt.u64.u32 %a1, %r1;\n"
    "    add.u64 %a0, %a0, %a1;\n"
    "    st.global.u8 [%a0], %r1;\n" /* line 15 */
    "DONE:\n"
    "    ret;\n"
    "}\n"
    ".visible .entry load(.param .u64 p, .param .u32 n)\n"
    "{\n"
    "    .reg .pred %q; .reg .b32 %r<6>; .reg .b64 %a<4>;\n"
    "    ld.param.u64 %a0, [p];\n"
    "    ld.param.u32 %r0, [n];\n"
    "    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"
    "    mad.lo.u32 %r1, %r2, %r3, %r1;\n"
    "    setp.ge.u32 %q, %r1, %r0;\n"
    "    @%q bra DONE;\n"
    "    cvt.u64.u32 %a1, %r1;\n"
    "    add.u64 %a0, %a0, %a1;\n"
    "    ld.global.u8 %r4, [%a0];\n" /* line 30 */
    "DONE:\n"
    "    ret;\n"
    "}\n"
    ".visible .entry count(.param .u64 p, .param .u32 n)\n"
    "{\n"
    "    .reg .b32 %r<4>; .reg .b64 %a<4>;\n"
    "    ld.param.u64 %a0, [p];\n"
    "    ld.param.u32 %r0, [n];\n"
    "    red.global.add.u32 [%a0], %r0;\n"
    "    ret;\n"
    "}\n"
    /* data[0] is written, then the flag is released. */
    ".visible .entry hand_over(.param .u64 data, .param .u64 flag)\n"
    "{\n"
    "    .reg .b32 %r<4>; .reg .b64 %a<4>;\n"
    "    ld.param.u64 %a0, [data];\n"
    "    ld.param.u64 %a1, [flag];\n"
    "    mov.u32 %r0, 7;\n"
    "    st.global.u32 [%a0], %r0;\n"
    "    mov.u32 %r1, 1;\n"
    "    st.release.gpu.global.u32 [%a1], %r1;\n"
    "    ret;\n"
    "}\n"
    /* The same with a fence; then the data once more, which nobody was told of. */
    ".visible .entry hand_over_early(.param .u64 data, .param .u64 flag)\n"
    "{\n"
    "    .reg .b32 %r<4>; .reg .b64 %a<4>;\n"
    "    ld.param.u64 %a0, [data];\n"
    "    ld.param.u64 %a1, [flag];\n"
    "    mov.u32 %r0, 7;\n"
    "    st.global.u32 [%a0], %r0;\n"
    "    membar.gl;\n"
    "    mov.u32 %r1, 1;\n"
    "    st.volatile.global.u32 [%a1], %r1;\n"
    "    st.global.u32 [%a0], %r1;\n"
    "    ret;\n"
    "}\n"
    /* The flag without any order. */
    ".visible .entry hand_over_loosely(.param .u64 data, .param .u64 flag)\n"
    "{\n"
    "    .reg .b32 %r<4>; .reg .b64 %a<4>;\n"
    "    ld.param.u64 %a0, [data];\n"
    "    ld.param.u64 %a1, [flag];\n"
    "    mov.u32 %r0, 7;\n"
    "    st.global.u32 [%a0], %r0;\n"
    "    mov.u32 %r1, 1;\n"
    "    st.relaxed.gpu.global.u32 [%a1], %r1;\n"
    "    ret;\n"
    "}\n"
    ".visible .entry take_over(.param .u64 data, .param .u64 flag)\n"
    "{\n"
    "    .reg .pred %q; .reg .b32 %r<4>; .reg .b64 %a<4>;\n"
    "    ld.param.u64 %a0, [data];\n"
    "    ld.param.u64 %a1, [flag];\n"
    "AGAIN:\n"
    "    ld.acquire.gpu.global.u32 %r0, [%a1];\n"
    "    setp.eq.u32 %q, %r0, 0;\n"
    "    @%q bra AGAIN;\n"
    "    ld.global.u32 %r1, [%a0];\n"
    "    ret;\n"
    "}\n"
    /* The flag is seen, the data may have been read before. */
    ".visible .entry take_over_loosely(.param .u64 data, .param .u64 flag)\n"
    "{\n"
    "    .reg .pred %q; .reg .b32 %r<4>; .reg .b64 %a<4>;\n"
    "    ld.param.u64 %a0, [data];\n"
    "    ld.param.u64 %a1, [flag];\n"
    "AGAIN:\n"
    "    ld.relaxed.gpu.global.u32 %r0, [%a1];\n"
    "    setp.eq.u32 %q, %r0, 0;\n"
    "    @%q bra AGAIN;\n"
    "    ld.global.u32 %r1, [%a0];\n"
    "    ret;\n"
    "}\n"
    ".visible .entry take_over_behind_a_fence(.param .u64 data, .param .u64 flag)\n"
    "{\n"
    "    .reg .pred %q; .reg .b32 %r<4>; .reg .b64 %a<4>;\n"
    "    ld.param.u64 %a0, [data];\n"
    "    ld.param.u64 %a1, [flag];\n"
    "AGAIN:\n"
    "    ld.relaxed.gpu.global.u32 %r0, [%a1];\n"
    "    setp.eq.u32 %q, %r0, 0;\n"
    "    @%q bra AGAIN;\n"
    "    membar.gl;\n"
    "    ld.global.u32 %r1, [%a0];\n"
    "    ret;\n"
    "}\n";

static unsigned long long (*race_count)(void);
static void (*race_reset)(void);
static void (*race_to)(void (*function)(void *, const char *, const char *, unsigned long long), void *);
static char race_text[65536]; /* of the last report */
static hdcu_module race_module;

static inline void race_keep(void *ignored, const char *kind, const char *text, unsigned long long count)
{
    (void)ignored, (void)kind, (void)count;
    snprintf(race_text, sizeof race_text, "%s", text);
}

static inline void race_start(const char *policy)
{
    setenv("HDSOFT_POLICY", policy, 1);
    setenv("HDSOFT_CHECK", "race", 1);
    soft_start();
    *(void **)&race_count = hdsoft_get_proc_address("hdsoft_report_count");
    *(void **)&race_reset = hdsoft_get_proc_address("hdsoft_report_reset");
    *(void **)&race_to = hdsoft_get_proc_address("hdsoft_set_report");
    race_to(race_keep, NULL);
    OK(cuModuleLoadData(&race_module, race_kernels));
}

static inline void race_launch(hdcu_stream stream, const char *name, hdcu_pointer address, uint64_t other)
{
    hdcu_function function;
    OK(cuModuleGetFunction(&function, race_module, name));
    unsigned n = (unsigned)other, threads = 32;
    bool flag = strncmp(name, "hand", 4) == 0 || strncmp(name, "take", 4) == 0;
    void *arguments[] = {&address, flag ? (void *)&other : (void *)&n};
    unsigned blocks = flag || strcmp(name, "count") == 0 ? 1 : (n + threads - 1) / threads;
    OK(cuLaunchKernel(function, blocks ? blocks : 1, 1, 1, blocks && !flag && strcmp(name, "count") ? threads : 1, 1, 1,
                      0, stream, arguments, NULL));
}

/* How many races all that was enqueued has. */
static inline unsigned long long races(void)
{
    OK(cuCtxSynchronize());
    unsigned long long count = race_count();
    race_reset();
    return count;
}

#define NO_RACE() ck_assert_msg(races() == 0, "a race where there is none: %s", race_text)
#define A_RACE() ck_assert_msg(races() > 0, "the race was not found")

static const char *const race_policies[] = {"eager", "lazy", "random:7", "virtual"};
#define RACE_POLICIES 4

#endif
