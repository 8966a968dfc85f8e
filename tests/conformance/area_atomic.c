/* SPDX-License-Identifier: MIT */
/* Atomic operations and the forms of loads and stores. Lane 0 has the memory to itself, or all lanes share a word. */
#include "areas.h"
#include "instructions.h"

/* A word of shared memory that begins as operand 1; the answer is what was there, above what is there. */
#define SHARED ".shared .align 16 .b8 word[64]; mov.u32 %r4, word; "
#define ONE32(text)                                                                                                    \
    SHARED "shl.b32 %r9, %lane, 2; and.b32 %r9, %r9, 31; add.u32 %r4, %r4, %r9; st.shared.u32 [%r4], %r1; " text       \
           " ld.shared.u32 %r6, [%r4]; mov.b64 %d0, {%r6, %r5};"
/* Only one lane runs these: rows have one input. */
#define ALONE "setp.ne.u32 %p7, %lane, 0;\n@%p7 bra DONE;\n"
#define SINGLE32(op) ALONE ONE32(op) "\nDONE:"
#define SINGLE64(op)                                                                                                   \
    ALONE SHARED "st.shared.u64 [%r4], %d1; " op " ld.shared.u64 %d6, [%r4]; xor.b64 %d0, %d6, %d5;\nDONE:"

#define ATOM(name, op, ...) ROW(name, 'd', SINGLE32(op), __VA_ARGS__)
#define ATOM64(name, op, ...) ROW(name, 'd', SINGLE64(op), __VA_ARGS__)
#define TOGETHER(name, start, op)                                                                                      \
    WARP(name, SHARED "mov.u32 %r5, " start "; st.shared.u32 [%r4], %r5; bar.sync 0; " op                              \
               " bar.sync 0; ld.shared.u32 %r0, [%r4];")

static const check checks[] = {
    ATOM("atom.add.u32", "atom.shared.add.u32 %r5, [%r4], %r2;", {0xffffffff, 2}),
    ATOM("atom.inc below", "atom.shared.inc.u32 %r5, [%r4], %r2;", {4, 5}),
    ATOM("atom.inc at the bound", "atom.shared.inc.u32 %r5, [%r4], %r2;", {5, 5}),
    ATOM("atom.inc above", "atom.shared.inc.u32 %r5, [%r4], %r2;", {9, 5}),
    ATOM("atom.dec", "atom.shared.dec.u32 %r5, [%r4], %r2;", {4, 5}),
    ATOM("atom.dec of 0", "atom.shared.dec.u32 %r5, [%r4], %r2;", {0, 5}),
    ATOM("atom.dec above", "atom.shared.dec.u32 %r5, [%r4], %r2;", {9, 5}),
    ATOM("atom.min.s32", "atom.shared.min.s32 %r5, [%r4], %r2;", {5, 0xffffffff}),
    ATOM("atom.min.u32", "atom.shared.min.u32 %r5, [%r4], %r2;", {5, 0xffffffff}),
    ATOM("atom.max.s32", "atom.shared.max.s32 %r5, [%r4], %r2;", {5, 0xffffffff}),
    ATOM("atom.max.u32", "atom.shared.max.u32 %r5, [%r4], %r2;", {5, 0xffffffff}),
    ATOM("atom.and", "atom.shared.and.b32 %r5, [%r4], %r2;", {0xff00, 0x0ff0}),
    ATOM("atom.or", "atom.shared.or.b32 %r5, [%r4], %r2;", {0xff00, 0x0ff0}),
    ATOM("atom.xor", "atom.shared.xor.b32 %r5, [%r4], %r2;", {0xff00, 0x0ff0}),
    ATOM("atom.exch", "atom.shared.exch.b32 %r5, [%r4], %r2;", {1, 2}),
    ATOM("atom.cas equal", "atom.shared.cas.b32 %r5, [%r4], %r2, %r3;", {7, 7, 9}),
    ATOM("atom.cas unequal", "atom.shared.cas.b32 %r5, [%r4], %r2, %r3;", {7, 8, 9}),
    ATOM("atom.add.f32", "atom.shared.add.f32 %f5, [%r4], %f2; mov.b32 %r5, %f5;", {0x3f800000, 0x40000000}),
    ATOM("atom.add.f32 subnormal in shared memory", "atom.shared.add.f32 %f5, [%r4], %f2; mov.b32 %r5, %f5;",
        {0x00000001, 0x00000001}),
    ATOM("red.shared.add", "red.shared.add.u32 [%r4], %r2; mov.u32 %r5, 0;", {5, 6}),
    ATOM64("atom.add.u64", "atom.shared.add.u64 %d5, [%r4], %d2;", {0xffffffffffffffff, 3}),
    ATOM64("atom.min.s64", "atom.shared.min.s64 %d5, [%r4], %d2;", {5, 0xffffffffffffffff}),
    ATOM64("atom.max.u64", "atom.shared.max.u64 %d5, [%r4], %d2;", {5, 0xffffffffffffffff}),
    ATOM64("atom.cas.b64", "atom.shared.cas.b64 %d5, [%r4], %d2, %d3;", {7, 7, 0x900000000}),
    ATOM64("atom.exch.b64", "atom.shared.exch.b64 %d5, [%r4], %d2;", {7, 0x123456789abcdef0}),
    ATOM64("atom.add.f64", "atom.shared.add.f64 %g5, [%r4], %g2; mov.b64 %d5, %g5;",
        {0x3ff0000000000000, 0x4000000000000000}),
    TOGETHER("32 adds", "0", "atom.shared.add.u32 %r6, [%r4], %lane;"),
    TOGETHER("32 maxima", "0", "atom.shared.max.u32 %r6, [%r4], %lane;"),
    TOGETHER("32 incs", "0", "mov.u32 %r7, 9; atom.shared.inc.u32 %r6, [%r4], %r7;"),
    TOGETHER("32 ors", "0", "mov.u32 %r7, 1; shl.b32 %r7, %r7, %lane; red.shared.or.b32 [%r4], %r7;"),
    TOGETHER("generic atomic", "0", "cvt.u64.u32 %d4, %r4; cvta.shared.u64 %d4, %d4; atom.add.u32 %r6, [%d4], 1;"),
    /* in the row's own output, so global memory */
    ROW("global atom.add", 'd',
        "st.global.u64 [%to], %d1; atom.global.add.u64 %d4, [%to], %d2; ld.global.u64 %d5, [%to]; "
        "xor.b64 %d0, %d4, %d5;", {10, 5}, {0xffffffffffffffff, 1}),
    ROW("global atom.add.f32 subnormal", 'd',
        "st.global.u32 [%to], %r1; atom.global.add.f32 %f4, [%to], %f2; ld.global.u32 %r5, [%to]; mov.b32 %r4, %f4; "
        "mov.b64 %d0, {%r5, %r4};", {1, 1}, {0x00800000, 0x80000001}),
    ROW("global atom.cas.b16", 'd',
        "st.global.u32 [%to], %r1; cvt.u16.u32 %h0, %r2; cvt.u16.u32 %h1, %r3; "
        "atom.global.cas.b16 %h2, [%to+2], %h0, %h1; ld.global.u32 %r5, [%to]; cvt.u32.u16 %r4, %h2; "
        "mov.b64 %d0, {%r5, %r4};", {0x00070001, 7, 9}, {0x00070001, 8, 9}),
    ROW("atom.acq_rel", 'd',
        "st.global.u32 [%to], %r1; atom.acq_rel.gpu.global.add.u32 %r4, [%to], %r2; "
        "ld.acquire.gpu.global.u32 %r5, [%to]; mov.b64 %d0, {%r5, %r4};", {5, 6}),
    ROW("red.release", 'd',
        "st.release.gpu.global.u32 [%to], %r1; red.release.gpu.global.max.u32 [%to], %r2; "
        "ld.relaxed.gpu.global.u32 %r5, [%to]; mov.b64 %d0, {%r5, %r5};", {5, 6}),
    ROW("atom.add.f16x2", 'r',
        "st.global.u32 [%to], %r1; atom.global.add.noftz.f16x2 %r4, [%to], %r2; ld.global.u32 %r5, [%to]; "
        "xor.b32 %r0, %r4, %r5;", {0x3c004000, 0x3c003c00}),
    ROW("atom.global.min.s64", 'd',
        "st.global.u64 [%to], %d1; atom.global.min.s64 %d4, [%to], %d2; ld.global.u64 %d5, [%to]; "
        "xor.b64 %d0, %d4, %d5;", {5, 0xfffffffffffffff0}),
    /* forms of loads and stores */
    ROW("ld.u8 and s8", 'd',
        "st.global.u64 [%to], %d1; ld.global.u8 %r4, [%to+1]; ld.global.s8 %r5, [%to+1]; mov.b64 %d0, {%r4, %r5};",
        {0xff80}, {0x7f00}),
    ROW("ld.u16 and s16", 'd',
        "st.global.u64 [%to], %d1; ld.global.u16 %r4, [%to+2]; ld.global.s16 %r5, [%to+2]; mov.b64 %d0, {%r4, %r5};",
        {0x80000000}, {0x7fff0000}),
    ROW("st.u8 truncates", 'd', "st.global.u64 [%to], %d1; st.global.u8 [%to+3], %r2; ld.global.u64 %d0, [%to];",
        {0, 0x1ab}),
    ROW("ld.s32 into 64 bits", 'd', "st.global.u64 [%to], %d1; ld.global.s32 %d0, [%to];", {0x80000000}, {5}),
    ROW("ld.v2", 'd',
        "st.global.v2.u32 [%to], {%r1, %r2}; ld.global.v2.u32 {%r4, %r5}, [%to]; mov.b64 %d0, {%r5, %r4};", {1, 2}),
    ROW("ld.v4 shared", 'd',
        SINGLE32("st.shared.v4.u32 [word+16], {%r1, %r2, %r3, %r9}; "
        "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [word+16]; add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7;"), {1, 2, 3}),
    ROW("ld.v4.u8", 'r',
        "st.global.u64 [%to], %d1; ld.global.v4.u8 {%h0, %h1, %h2, %h3}, [%to]; cvt.u32.u16 %r4, %h0; "
        "cvt.u32.u16 %r5, %h3; shl.b32 %r4, %r4, 8; or.b32 %r0, %r4, %r5;", {0x44332211}),
    ROW("ld.nc", 'd', "ld.global.nc.u64 %d0, [%from];", {0x123456789}),
    ROW("cvta to shared and back", 'd', "cvta.shared.u64 %d4, %d1; cvta.to.shared.u64 %d0, %d4;", {16}, {256}),
    ROW("generic load of global", 'd', "cvta.global.u64 %d4, %from; ld.u64 %d0, [%d4+8];", {1, 77}),
    ROW("mov of packed", 'd',
        "mov.b64 {%r4, %r5}, %d1; mov.b32 {%h0, %h1}, %r4; mov.b32 %r4, {%h1, %h0}; mov.b64 %d0, {%r5, %r4};",
        {0x1122334455667788}),
    ROW("mov.v4 of bytes", 'r',
        "mov.b64 {%h0, %h1, %h2, %h3}, %d1; cvt.u32.u16 %r4, %h3; cvt.u32.u16 %r5, %h0; shl.b32 %r4, %r4, 16; "
        "or.b32 %r0, %r4, %r5;", {0x1122334455667788}),
    ROW("clock advances", 'r',
        "mov.u32 %r4, %clock; mov.u64 %d4, %clock64; mov.u64 %d5, %clock64; setp.le.u64 %p0, %d4, %d5; "
        "selp.u32 %r0, 1, 0, %p0;", {0}),
    ROW("globaltimer is set", 'r', "mov.u64 %d4, %globaltimer; setp.ne.u64 %p0, %d4, 0; selp.u32 %r0, 1, 0, %p0;", {0}),
    ROW("nanosleep", 'r', "nanosleep.u32 100; mov.u32 %r0, 1;", {0}),
    ROW("fences", 'r', "membar.cta; membar.gl; membar.sys; fence.sc.gpu; fence.acq_rel.cta; mov.u32 %r0, 1;", {0}),
    ROW("cp.async", 'd',
        "//sm_80\n" ALONE SHARED "cvt.u64.u32 %d4, %r4; cp.async.ca.shared.global [%r4], [%from], 8; "
        "cp.async.commit_group; cp.async.wait_group 0; ld.shared.u64 %d0, [%r4];\nDONE:", {0x1234567890}),
    ROW("cp.async with zeros", 'd',
        "//sm_80\n" ALONE SHARED "st.shared.u64 [%r4], %d2; cp.async.ca.shared.global [%r4], [%from], 8, 4; "
        "cp.async.wait_all; ld.shared.u64 %d0, [%r4];\nDONE:", {0x1122334455667788, 0xffffffffffffffff}),
    ROW("prefetch", 'r', "prefetch.global.L2 [%from]; prefetchu.L1 [%from]; mov.u32 %r0, 1;", {0}),
};

const area area_atomic = {"memory forms", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
