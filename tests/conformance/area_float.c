/* SPDX-License-Identifier: MIT */
/* Floating point: rounding modes, not-a-number, zeros of both signs, subnormal numbers, fused operations. */
#include "areas.h"
#include "instructions.h"

#define ONE 0x3f800000
#define TINY 0x33000000       /* 2^-25 */
#define HALF_ULP 0x33800000   /* 2^-24 */
#define NAN32 0x7fc00001
#define SNAN32 0x7f800001
#define INF 0x7f800000
#define NINF 0xff800000
#define NZERO 0x80000000
#define MAXF 0x7f7fffff
#define SUB 0x00000001
#define MINN 0x00800000       /* the smallest normal number */
#define ONED 0x3ff0000000000000
#define TINYD 0x3c90000000000000 /* 2^-54 */
#define NAND 0x7ff8000000000001
#define INFD 0x7ff0000000000000
#define NZEROD 0x8000000000000000
#define SUBD 0x0000000000000001

#define FOUR(op, rows_one, rows_two, ...)                                                                              \
    ROW(op ".rn", 'f', op ".rn.f32 %f0, " rows_one ";", __VA_ARGS__),                                                  \
    ROW(op ".rz", 'f', op ".rz.f32 %f0, " rows_one ";", __VA_ARGS__),                                                  \
    ROW(op ".rm", 'f', op ".rm.f32 %f0, " rows_one ";", __VA_ARGS__),                                                  \
    ROW(op ".rp", 'f', op ".rp.f32 %f0, " rows_one ";", __VA_ARGS__),                                                  \
    ROW(op ".rn.f64", 'g', op ".rn.f64 %g0, " rows_two ";", WIDE),                                                     \
    ROW(op ".rz.f64", 'g', op ".rz.f64 %g0, " rows_two ";", WIDE),                                                     \
    ROW(op ".rm.f64", 'g', op ".rm.f64 %g0, " rows_two ";", WIDE),                                                     \
    ROW(op ".rp.f64", 'g', op ".rp.f64 %g0, " rows_two ";", WIDE)

/* 1 and a little more, thirds, signs, products that need all bits, subnormal results. */
#define NARROW                                                                                                         \
    {ONE, TINY, ONE}, {ONE, HALF_ULP, NZERO}, {0xbf800000, TINY, TINY}, {0x3f800001, 0x3f800001, 0xbf800002},          \
        {ONE, 0x40400000, 0}, {MINN, 0x3f000001, 0}, {MAXF, MAXF, NINF}, {INF, NINF, ONE}, {0, NZERO, NZERO}
#define WIDE                                                                                                           \
    {ONED, TINYD, ONED}, {ONED, 0x4008000000000000, 0}, {0x3ff0000000000001, 0x3ff0000000000001, 0xbff0000000000002},  \
        {0xbff0000000000000, TINYD, TINYD}, {INFD, 0xfff0000000000000, ONED}, {0, NZEROD, NZEROD},                     \
        {0x7fefffffffffffff, 0x7fefffffffffffff, 0}

static const check checks[] = {
    FOUR("add", "%f1, %f2", "%g1, %g2", NARROW),
    FOUR("mul", "%f1, %f2", "%g1, %g2", NARROW),
    FOUR("fma", "%f1, %f2, %f3", "%g1, %g2, %g3", NARROW),
    FOUR("div", "%f1, %f2", "%g1, %g2", NARROW),
    FOUR("sqrt", "%f2", "%g2", NARROW),
    FOUR("rcp", "%f2", "%g2", NARROW),
    ROW("sub.rn", 'f', "sub.rn.f32 %f0, %f1, %f2;", NARROW),
    ROW("sub.rm zero", 'f', "sub.rm.f32 %f0, %f1, %f2;", {ONE, ONE}, {0, 0}),
    /* the answer of arithmetic that is not a number, bit by bit */
    ROW("nan of add", 'r', "add.rn.f32 %f4, %f1, %f2; mov.b32 %r0, %f4;", {NAN32, ONE}, {ONE, SNAN32}, {INF, NINF},
        {0xffc12345, ONE}),
    ROW("nan of mul", 'r', "mul.rn.f32 %f4, %f1, %f2; mov.b32 %r0, %f4;", {INF, 0}, {NAN32, 0}),
    ROW("nan of sqrt", 'r', "sqrt.rn.f32 %f4, %f1; mov.b32 %r0, %f4;", {0xbf800000}, {NZERO}),
    ROW("neg of nan", 'r', "neg.f32 %f4, %f1; abs.f32 %f5, %f4; mov.b32 %r0, %f5;", {ONE}, {NZERO}),
    ROW("mov of nan", 'r', "mov.f32 %f4, %f1; mov.b32 %r0, %f4;", {SNAN32}, {0xffc12345}),
    /* minimum and maximum */
    ROW("min.f32", 'f', "min.f32 %f0, %f1, %f2;", {ONE, NAN32}, {NAN32, ONE}, {NAN32, NAN32}, {0, NZERO}, {NZERO, 0},
        {NINF, ONE}),
    ROW("max.f32", 'f', "max.f32 %f0, %f1, %f2;", {ONE, NAN32}, {NAN32, ONE}, {NAN32, NAN32}, {0, NZERO}, {NZERO, 0},
        {INF, ONE}),
    ROW("min.NaN.f32", 'f', "//sm_80\nmin.NaN.f32 %f0, %f1, %f2;", {ONE, NAN32}, {NAN32, ONE}, {0, NZERO},
        {ONE, 0x40000000}),
    ROW("max.NaN.f32", 'f', "//sm_80\nmax.NaN.f32 %f0, %f1, %f2;", {ONE, NAN32}, {NAN32, ONE}, {0, NZERO},
        {ONE, 0x40000000}),
    ROW("min.ftz.f32", 'f', "min.ftz.f32 %f0, %f1, %f2;", {SUB, ONE}, {0x80000001, ONE}),
    ROW("min.f64", 'g', "min.f64 %g0, %g1, %g2;", {ONED, NAND}, {NAND, NAND}, {0, NZEROD}, {NZEROD, 0}),
    ROW("max.f64", 'g', "max.f64 %g0, %g1, %g2;", {ONED, NAND}, {0, NZEROD}, {NZEROD, 0}, {INFD, ONED}),
    ROW("copysign", 'f', "copysign.f32 %f0, %f1, %f2;", {NZERO, ONE}, {ONE, 0xc0000000}),
    ROW("copysign.f64", 'g', "copysign.f64 %g0, %g1, %g2;", {NZEROD, ONED}, {0, 0xc000000000000000}),
    /* subnormal numbers */
    ROW("add subnormal", 'f', "add.rn.f32 %f0, %f1, %f2;", {SUB, SUB}, {0x007fffff, SUB}, {0x80000001, SUB}),
    ROW("add.ftz subnormal", 'f', "add.ftz.f32 %f0, %f1, %f2;", {SUB, SUB}, {0x007fffff, SUB}, {MINN, 0x80800001},
        {0x80000001, 0x80000001}),
    ROW("mul.ftz subnormal", 'f', "mul.ftz.f32 %f0, %f1, %f2;", {MINN, 0x3f000000}, {SUB, 0x7f000000}),
    ROW("fma.ftz subnormal", 'f', "fma.rn.ftz.f32 %f0, %f1, %f2, %f3;", {MINN, 0x3f000000, 0}, {SUB, ONE, ONE},
        {MINN, 0x3f000000, MINN}),
    ROW("div.ftz subnormal", 'f', "div.rn.ftz.f32 %f0, %f1, %f2;", {MINN, 0x40000000}, {SUB, SUB}, {ONE, SUB}),
    ROW("sqrt.ftz subnormal", 'f', "sqrt.rn.ftz.f32 %f0, %f1;", {SUB}, {0x80000001}),
    ROW("neg.ftz", 'f', "neg.ftz.f32 %f0, %f1;", {SUB}, {0x80000001}),
    ROW("abs.ftz", 'f', "abs.ftz.f32 %f0, %f1;", {0x80000001}, {NZERO}),
    ROW("setp.ftz", 'r', "setp.gt.ftz.f32 %p0, %f1, %f2; selp.u32 %r0, 1, 0, %p0;", {SUB, 0}, {MINN, SUB}),
    ROW("mul subnormal f64", 'g', "mul.rn.f64 %g0, %g1, %g2;", {0x0010000000000000, 0x3fe0000000000000},
        {SUBD, 0x3fe0000000000000}),
    /* saturation */
    ROW("add.sat", 'f', "add.sat.f32 %f0, %f1, %f2;", {ONE, ONE}, {0xbf800000, 0}, {NAN32, ONE}, {INF, ONE},
        {NZERO, NZERO}, {0x3e800000, 0x3e800000}),
    ROW("fma.sat", 'f', "fma.rn.sat.f32 %f0, %f1, %f2, %f3;", {ONE, ONE, ONE}, {NAN32, ONE, ONE}, {INF, 0, ONE}),
    ROW("mul.sat", 'f', "mul.rz.sat.f32 %f0, %f1, %f2;", {0x40000000, ONE}, {0xc0000000, ONE},
        {0x3f000000, 0x3f000000}),
    /* one rounding, not two */
    ROW("fma is fused", 'f', "fma.rn.f32 %f0, %f1, %f2, %f3;", {0x3f800001, 0x3f800001, 0xbf800002},
        {0x3f8ccccd, 0x3f8ccccd, 0xbf9ae148}),
    ROW("mul then add is not", 'f', "mul.rn.f32 %f4, %f1, %f2; add.rn.f32 %f0, %f4, %f3;",
        {0x3f800001, 0x3f800001, 0xbf800002}, {0x3f8ccccd, 0x3f8ccccd, 0xbf9ae148}),
    ROW("fma f64 is fused", 'g', "fma.rn.f64 %g0, %g1, %g2, %g3;",
        {0x3ff0000000000001, 0x3ff0000000000001, 0xbff0000000000002}),
    /* comparisons */
    ROW("setp.lt nan", 'r',
        "setp.lt.f32 %p0|%p1, %f1, %f2; selp.u32 %r4, 1, 0, %p0; selp.u32 %r5, 2, 0, %p1; add.u32 %r0, %r4, %r5;",
        {NAN32, ONE}, {ONE, NAN32}, {0, ONE}),
    ROW("setp.ltu nan", 'r', "setp.ltu.f32 %p0, %f1, %f2; selp.u32 %r0, 1, 0, %p0;", {NAN32, ONE}, {ONE, 0}, {0, ONE}),
    ROW("setp.ne nan", 'r', "setp.ne.f32 %p0, %f1, %f2; selp.u32 %r0, 1, 0, %p0;", {NAN32, NAN32}, {ONE, ONE},
        {ONE, 0}),
    ROW("setp.neu nan", 'r', "setp.neu.f32 %p0, %f1, %f2; selp.u32 %r0, 1, 0, %p0;", {NAN32, NAN32}, {ONE, ONE}),
    ROW("setp.eq zeros", 'r', "setp.eq.f32 %p0, %f1, %f2; selp.u32 %r0, 1, 0, %p0;", {0, NZERO}),
    ROW("setp.num", 'r', "setp.num.f32 %p0, %f1, %f2; selp.u32 %r0, 1, 0, %p0;", {NAN32, ONE}, {ONE, ONE}),
    ROW("setp.nan", 'r', "setp.nan.f64 %p0, %g1, %g2; selp.u32 %r0, 1, 0, %p0;", {NAND, ONED}, {ONED, ONED}),
    /* testp */
    ROW("testp.finite", 'r', "testp.finite.f32 %p0, %f1; selp.u32 %r0, 1, 0, %p0;", {ONE}, {INF}, {NAN32}, {SUB}),
    ROW("testp.infinite", 'r', "testp.infinite.f32 %p0, %f1; selp.u32 %r0, 1, 0, %p0;", {NINF}, {ONE}, {NAN32}),
    ROW("testp.number", 'r', "testp.number.f32 %p0, %f1; selp.u32 %r0, 1, 0, %p0;", {ONE}, {INF}, {NAN32}),
    ROW("testp.notanumber", 'r', "testp.notanumber.f64 %p0, %g1; selp.u32 %r0, 1, 0, %p0;", {NAND}, {ONED}, {INFD}),
    ROW("testp.normal", 'r', "testp.normal.f32 %p0, %f1; selp.u32 %r0, 1, 0, %p0;", {ONE}, {SUB}, {0}, {INF}),
    ROW("testp.subnormal", 'r', "testp.subnormal.f32 %p0, %f1; selp.u32 %r0, 1, 0, %p0;", {SUB}, {ONE}, {0}, {NZERO}),
    /* approximations where the result is exact or special */
    ROW("rcp.approx special", 'f', "rcp.approx.f32 %f0, %f1;", {0}, {NZERO}, {INF}, {NINF}, {NAN32}, {0x40000000}),
    ROW("rcp.approx.ftz special", 'f', "rcp.approx.ftz.f32 %f0, %f1;", {SUB}, {0x80000001}, {INF}),
    ROW("sqrt.approx special", 'f', "sqrt.approx.f32 %f0, %f1;", {0}, {NZERO}, {INF}, {0xbf800000}, {NAN32}),
    ROW("rsqrt.approx special", 'f', "rsqrt.approx.f32 %f0, %f1;", {0}, {NZERO}, {INF}, {0xbf800000}, {0x40800000}),
    ROW("ex2.approx special", 'f', "ex2.approx.f32 %f0, %f1;", {0}, {NZERO}, {INF}, {NINF}, {NAN32}, {0x43800000},
        {0xc3800000}, {0x40400000}),
    ROW("ex2.approx.ftz special", 'f', "ex2.approx.ftz.f32 %f0, %f1;", {SUB}, {0xc3000000}, {ONE}),
    ROW("lg2.approx special", 'f', "lg2.approx.f32 %f0, %f1;", {0}, {NZERO}, {INF}, {0xbf800000}, {ONE}, {0x41000000}),
    ROW("sin.approx special", 'f', "sin.approx.f32 %f0, %f1;", {0}, {NZERO}, {INF}, {NAN32}),
    ROW("cos.approx special", 'f', "cos.approx.f32 %f0, %f1;", {0}, {NZERO}, {INF}, {NAN32}),
    ROW("div.full special", 'f', "div.full.f32 %f0, %f1, %f2;", {ONE, 0}, {0, 0}, {INF, INF}, {0x40800000, 0x40000000}),
    ROW("div.approx special", 'f', "div.approx.f32 %f0, %f1, %f2;", {ONE, 0}, {0, 0}, {ONE, INF},
        {0x40800000, 0x40000000}),
    ROW("tanh.approx special", 'f', "//sm_80\ntanh.approx.f32 %f0, %f1;", {0}, {INF}, {NINF}, {NAN32}),
    /* approximations within CUDA's documented error: the difference from the exact result, in units of 2^-20 */
    ROW("sin.approx error", 'r',
        "sin.approx.f32 %f4, %f1; sub.f32 %f5, %f4, %f2; abs.f32 %f5, %f5; setp.lt.f32 %p0, %f5, 0f35800000; "
        "selp.u32 %r0, 1, 0, %p0;", {0x3f800000, 0x3f576aa4}, {0xbf000000, 0xbef57744}, {0x40000000, 0x3f68c7b7}),
    ROW("cos.approx error", 'r',
        "cos.approx.f32 %f4, %f1; sub.f32 %f5, %f4, %f2; abs.f32 %f5, %f5; setp.lt.f32 %p0, %f5, 0f35800000; "
        "selp.u32 %r0, 1, 0, %p0;", {0x3f800000, 0x3f0a5140}, {0x40000000, 0xbed51133}),
    ROW("ex2.approx error", 'r',
        "ex2.approx.f32 %f4, %f1; sub.f32 %f5, %f4, %f2; abs.f32 %f5, %f5; setp.lt.f32 %p0, %f5, 0f35800000; "
        "selp.u32 %r0, 1, 0, %p0;", {0x3f000000, 0x3fb504f3}, {0xbf000000, 0x3f3504f3}),
    ROW("lg2.approx error", 'r',
        "lg2.approx.f32 %f4, %f1; sub.f32 %f5, %f4, %f2; abs.f32 %f5, %f5; setp.lt.f32 %p0, %f5, 0f35800000; "
        "selp.u32 %r0, 1, 0, %p0;", {0x40400000, 0x3fcae00d}, {0x40a00000, 0x40149a78}),
    ROW("rsqrt.approx error", 'r',
        "rsqrt.approx.f32 %f4, %f1; sub.f32 %f5, %f4, %f2; abs.f32 %f5, %f5; setp.lt.f32 %p0, %f5, 0f35800000; "
        "selp.u32 %r0, 1, 0, %p0;", {0x40000000, 0x3f3504f3}, {0x40400000, 0x3f13cd3a}),
    /* double precision reciprocals that are approximations by nature */
    ROW("rcp.approx.ftz.f64", 'r',
        "rcp.approx.ftz.f64 %g4, %g1; mul.rn.f64 %g5, %g4, %g1; sub.rn.f64 %g5, %g5, 0d3FF0000000000000; "
        "abs.f64 %g5, %g5; setp.lt.f64 %p0, %g5, 0d3EB0000000000000; selp.u32 %r0, 1, 0, %p0;", {0x4008000000000000},
        {0x3fb999999999999a}),
};

const area area_float = {"float", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
