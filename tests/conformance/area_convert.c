/* SPDX-License-Identifier: MIT */
/* Conversions: rounding, saturation, not-a-number, half and brain floats. */
#include "areas.h"
#include "instructions.h"

#define NAN32 0x7fc00001
#define INF 0x7f800000
#define NINF 0xff800000
#define F(name, text, ...) ROW(name, 'r', text, __VA_ARGS__)

/* 0.5 1.5 2.5 -0.5 -1.5 -2.5 0.75 */
#define TIES {0x3f000000}, {0x3fc00000}, {0x40200000}, {0xbf000000}, {0xbfc00000}, {0xc0200000}, {0x3f400000}
/* nan, inf, -inf, 3e9, -3e9, 1e20, -1e20, -0 */
#define EXTREMES {NAN32}, {INF}, {NINF}, {0x4f32d05e}, {0xcf32d05e}, {0x60ad78ec}, {0xe0ad78ec}, {0x80000000}
#define WIDE_EXTREMES {0x7ff8000000000000}, {0x7ff0000000000000}, {0xfff0000000000000}, \
        {0x41e65a0bc0000000}, {0xc1e65a0bc0000000}, {0x4415af1d78b58c40}, {0xc415af1d78b58c40}

static const check checks[] = {
    F("rni.s32.f32 ties", "cvt.rni.s32.f32 %r0, %f1;", TIES),
    F("rzi.s32.f32 ties", "cvt.rzi.s32.f32 %r0, %f1;", TIES),
    F("rmi.s32.f32 ties", "cvt.rmi.s32.f32 %r0, %f1;", TIES),
    F("rpi.s32.f32 ties", "cvt.rpi.s32.f32 %r0, %f1;", TIES),
    F("rni.f32.f32 ties", "cvt.rni.f32.f32 %f4, %f1; mov.b32 %r0, %f4;", TIES),
    F("rmi.f32.f32 ties", "cvt.rmi.f32.f32 %f4, %f1; mov.b32 %r0, %f4;", TIES),
    F("rzi.s32.f32 extremes", "cvt.rzi.s32.f32 %r0, %f1;", EXTREMES),
    F("rzi.u32.f32 extremes", "cvt.rzi.u32.f32 %r0, %f1;", EXTREMES),
    ROW("rzi.s64.f32 extremes", 'd', "cvt.rzi.s64.f32 %d0, %f1;", EXTREMES),
    ROW("rzi.u64.f32 extremes", 'd', "cvt.rzi.u64.f32 %d0, %f1;", EXTREMES),
    F("rzi.s16.f32 extremes", "cvt.rzi.s16.f32 %h0, %f1; cvt.s32.s16 %r0, %h0;", EXTREMES),
    F("rzi.u8.f32 extremes", "cvt.rzi.u8.f32 %h0, %f1; cvt.u32.u16 %r0, %h0;", {0x43800000}, {0xbf800000},
        {0x42c80000}),
    F("rzi.s8.f32 extremes", "cvt.rzi.s8.f32 %h0, %f1; cvt.s32.s16 %r0, %h0;", {0x43800000}, {0xc3800000},
        {0x42c80000}),
    F("rzi.s32.f64 extremes", "cvt.rzi.s32.f64 %r0, %g1;", WIDE_EXTREMES),
    F("rzi.u32.f64 extremes", "cvt.rzi.u32.f64 %r0, %g1;", WIDE_EXTREMES),
    ROW("rzi.s64.f64 extremes", 'd', "cvt.rzi.s64.f64 %d0, %g1;", WIDE_EXTREMES),
    ROW("rzi.u64.f64 extremes", 'd', "cvt.rzi.u64.f64 %d0, %g1;", WIDE_EXTREMES),
    F("rzi.ftz.s32.f32", "cvt.rpi.ftz.s32.f32 %r0, %f1;", {0x00000001}, {0x3f000000}),
    F("rn.f32.s32", "cvt.rn.f32.s32 %f4, %r1; mov.b32 %r0, %f4;", {0x7fffffff}, {0x80000000}, {0x01000001},
        {0x01000003}),
    F("rz.f32.s32", "cvt.rz.f32.s32 %f4, %r1; mov.b32 %r0, %f4;", {0x7fffffff}, {0xfefffffd}, {0x01000003}),
    F("rp.f32.u32", "cvt.rp.f32.u32 %f4, %r1; mov.b32 %r0, %f4;", {0xffffffff}, {0x01000001}),
    F("rm.f32.u32", "cvt.rm.f32.u32 %f4, %r1; mov.b32 %r0, %f4;", {0xffffffff}, {0x01000001}),
    F("rn.f32.u64", "cvt.rn.f32.u64 %f4, %d1; mov.b32 %r0, %f4;", {0xffffffffffffffff}, {0x8000008000000001},
        {0x8000008000000000}),
    F("rn.f32.s64", "cvt.rn.f32.s64 %f4, %d1; mov.b32 %r0, %f4;", {0x8000000000000000}, {0x7fffffffffffffff}),
    ROW("rn.f64.u64", 'g', "cvt.rn.f64.u64 %g0, %d1;", {0xffffffffffffffff}, {0x8000000000000401}),
    ROW("rz.f64.s64", 'g', "cvt.rz.f64.s64 %g0, %d1;", {0x7fffffffffffffff}, {0x8000000000000001}),
    ROW("f64.f32", 'g', "cvt.f64.f32 %g0, %f1;", {0x00000001}, {NAN32}, {NINF}, {0x3f800001}),
    F("rn.f32.f64", "cvt.rn.f32.f64 %f4, %g1; mov.b32 %r0, %f4;", {0x3ff0000010000000}, {0x3ff0000030000000},
        {0x7fefffffffffffff}, {0x36a0000000000000}, {0x3690000000000000}, {0x47effffff0000000}),
    F("rz.f32.f64", "cvt.rz.f32.f64 %f4, %g1; mov.b32 %r0, %f4;", {0x3ff000001fffffff}, {0x7fefffffffffffff}),
    F("rm.f32.f64", "cvt.rm.f32.f64 %f4, %g1; mov.b32 %r0, %f4;", {0xbff0000000000001}, {0x7fefffffffffffff},
        {0x3ff0000000000001}),
    F("rp.f32.f64", "cvt.rp.f32.f64 %f4, %g1; mov.b32 %r0, %f4;", {0x3ff0000000000001}, {0xffefffffffffffff}),
    F("rn.ftz.f32.f64", "cvt.rn.ftz.f32.f64 %f4, %g1; mov.b32 %r0, %f4;", {0x3690000000000000}, {0x3800000000000000}),
    F("sat.f32.f32", "cvt.sat.f32.f32 %f4, %f1; mov.b32 %r0, %f4;", {0x40000000}, {0xbf800000}, {NAN32}, {0x3f000000},
        {0x80000000}),
    F("rn.sat.f32.f64", "cvt.rn.sat.f32.f64 %f4, %g1; mov.b32 %r0, %f4;", {0x4000000000000000}, {0x7ff8000000000000},
        {0xbff0000000000000}),
    /* between integers */
    F("s32.s8", "cvt.u16.u32 %h0, %r1; cvt.s32.s8 %r0, %h0;", {0x1ff}, {0x7f}, {0x80}),
    F("u32.u8", "cvt.u16.u32 %h0, %r1; cvt.u32.u8 %r0, %h0;", {0x1ff}, {0x80}),
    ROW("s64.s32", 'd', "cvt.s64.s32 %d0, %r1;", {0x80000000}, {5}),
    ROW("u64.s32", 'd', "cvt.u64.s32 %d0, %r1;", {0x80000000}),
    F("sat.s8.s32", "cvt.sat.s8.s32 %h0, %r1; cvt.s32.s16 %r0, %h0;", {300}, {(uint32_t)-300}, {5}),
    F("sat.u8.s32", "cvt.sat.u8.s32 %h0, %r1; cvt.u32.u16 %r0, %h0;", {300}, {(uint32_t)-300}, {5}),
    F("sat.s16.u32", "cvt.sat.s16.u32 %h0, %r1; cvt.s32.s16 %r0, %h0;", {0xffffffff}, {5}),
    F("sat.u32.s64", "cvt.sat.u32.s64 %r0, %d1;", {0xffffffffffffffff}, {0x100000000}, {7}),
    F("sat.s32.u64", "cvt.sat.s32.u64 %r0, %d1;", {0xffffffffffffffff}, {7}),
    /* half */
    F("rn.f16.f32", "cvt.rn.f16.f32 %h0, %f1; cvt.u32.u16 %r0, %h0;", {0x3f801000}, {0x3f803000}, {0x477ff000},
        {0x477fefff}, {0x33000000}, {0x33000001}, {0x33800000}, {INF}, {NAN32}, {0x80000000}),
    F("rz.f16.f32", "cvt.rz.f16.f32 %h0, %f1; cvt.u32.u16 %r0, %h0;", {0x3f801fff}, {0x7f000000}, {0x33ffffff}),
    F("f32.f16", "cvt.u16.u32 %h0, %r1; cvt.f32.f16 %f4, %h0; mov.b32 %r0, %f4;", {0x0001}, {0x03ff}, {0x7bff},
        {0x7c00}, {0xfc00}, {0x8000}),
    F("rn.f16.f64", "cvt.rn.f16.f64 %h0, %g1; cvt.u32.u16 %r0, %h0;", {0x3ff0020000000000}, {0x3ff0020000000001},
        {0x40effe0000000000}),
    F("rni.s32.f16", "cvt.u16.u32 %h0, %r1; cvt.rni.s32.f16 %r0, %h0;", {0x3800}, {0x3e00}, {0x7c00}, {0x7e00},
        {0xfbff}),
    F("rn.f16.s32", "cvt.rn.f16.s32 %h0, %r1; cvt.u32.u16 %r0, %h0;", {2049}, {2051}, {65520}, {65519}, {(uint32_t)-1}),
    F("add.f16", "cvt.u16.u32 %h0, %r1; cvt.u16.u32 %h1, %r2; add.rn.f16 %h2, %h0, %h1; cvt.u32.u16 %r0, %h2;",
        {0x3c00, 0x1000}, {0x7bff, 0x7bff}, {0x0001, 0x0001}, {0x3c00, 0xbc00}),
    F("fma.f16",
        "cvt.u16.u32 %h0, %r1; cvt.u16.u32 %h1, %r2; cvt.u16.u32 %h2, %r3; fma.rn.f16 %h3, %h0, %h1, %h2; "
        "cvt.u32.u16 %r0, %h3;", {0x3c01, 0x3c01, 0xbc02}, {0x0400, 0x3800, 0x0001}),
    F("fma.f16x2", "fma.rn.f16x2 %r0, %r1, %r2, %r3;", {0x3c014000, 0x3c014000, 0xbc024400}),
    F("mul.ftz.f16", "cvt.u16.u32 %h0, %r1; cvt.u16.u32 %h1, %r2; mul.rn.ftz.f16 %h2, %h0, %h1; cvt.u32.u16 %r0, %h2;",
        {0x0400, 0x3800}, {0x0001, 0x4000}),
    F("setp.f16", "cvt.u16.u32 %h0, %r1; cvt.u16.u32 %h1, %r2; setp.lt.f16 %p0, %h0, %h1; selp.u32 %r0, 1, 0, %p0;",
        {0x3c00, 0x4000}, {0x7e00, 0x3c00}, {0x8000, 0x0000}),
    F("rn.bf16.f32", "//sm_80\ncvt.rn.bf16.f32 %h0, %f1; cvt.u32.u16 %r0, %h0;", {0x3f808000}, {0x3f818000},
        {0x7f7fffff}, {INF}),
    F("rz.bf16.f32", "//sm_80\ncvt.rz.bf16.f32 %h0, %f1; cvt.u32.u16 %r0, %h0;", {0x3f80ffff}, {0x7f7fffff}),
    F("rn.bf16x2.f32", "//sm_80\ncvt.rn.bf16x2.f32 %r0, %f1, %f2;", {0x3f800000, 0x40000000}),
    F("rn.f16x2.f32", "//sm_80\ncvt.rn.f16x2.f32 %r0, %f1, %f2;", {0x3f800000, 0x40000000}),
    F("rn.relu.f16.f32", "//sm_80\ncvt.rn.relu.f16.f32 %h0, %f1; cvt.u32.u16 %r0, %h0;", {0xbf800000}, {0x3f800000},
        {0x80000000}),
    F("fma.bf16",
        "//sm_80\ncvt.u16.u32 %h0, %r1; cvt.u16.u32 %h1, %r2; cvt.u16.u32 %h2, %r3; fma.rn.bf16 %h3, %h0, %h1, %h2; "
        "cvt.u32.u16 %r0, %h3;", {0x3f81, 0x3f81, 0xbf82}, {0x4000, 0x4040, 0x3f80}),
};

const area area_convert = {"convert", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
