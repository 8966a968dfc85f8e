/* SPDX-License-Identifier: MIT */
/* How kernels run: divergence, meetings of lanes, barriers, calls, memory and everything that is a fault. */
#include "soft_engine.h"

static struct engine engine;

static void close_engine(void)
{
    engine_close(&engine);
}

/* Runs kernel "k" of a module with one parameter, the address of `words` 32-bit words, which are read back. */
static int run_words(const char *body, uint32_t blocks, uint32_t threads, uint32_t *words, size_t count)
{
    engine_open(&engine, body);
    hdsoft_range range = engine_allocate(&engine, count * 4);
    memcpy(range.host, words, count * 4);
    int code = engine_run(&engine, "k", blocks, threads, &range.base);
    memcpy(words, range.host, count * 4);
    return code;
}

/* Thread t has %t; %o is the address of its word, %g that of all words. */
#define KERNEL                                                                                    \
    ".visible .entry k(.param .u64 o)\n{\n.reg .b32 %r<20>, %t;\n.reg .b64 %rd<10>, %o, %g;\n"    \
    ".reg .pred %p<6>;\nld.param.u64 %g, [o];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %o, %t, 4;\n"    \
    "add.u64 %o, %o, %g;\n"
#define STORE "st.global.u32 [%o], %r1;\nret;\n}\n"

/* --- control flow: each thread's word is compared with a formula --- */

struct flow {
    const char *name, *body;
    uint32_t threads;
    uint32_t (*expected)(uint32_t thread);
};

static uint32_t collatz(uint32_t t)
{
    uint32_t steps = 0, n = t + 1;
    for (; n != 1; steps++)
        n = n & 1 ? 3 * n + 1 : n / 2;
    return steps;
}

static uint32_t nested(uint32_t t)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < t % 7; i++) {
        if (i == t % 5)
            continue;
        for (uint32_t j = 0; j <= i; j++) {
            if (j * i > 9)
                break;
            sum += i * 10 + j;
        }
    }
    return sum;
}

static uint32_t fall_through(uint32_t t)
{
    uint32_t r = 0;
    switch (t & 3) {
    case 0:
        r += 1;
        /* fall through */
    case 1:
        r += 10;
        break;
    case 2:
        r += 100;
        /* fall through */
    default:
        r += 1000;
    }
    return r;
}

static uint32_t irreducible(uint32_t t)
{
    uint32_t a = t, count = 0;
    if (t & 1)
        goto second;
first:
    count += 1;
    a += 3;
    if (a > 40)
        return count;
second:
    count += 100;
    a += 5;
    if (a <= 60)
        goto first;
    return count;
}

static uint32_t factorial_depth(uint32_t t)
{
    uint32_t n = t % 9, r = 1;
    for (uint32_t i = 2; i <= n; i++)
        r = r * i + 1;
    return r;
}

static uint32_t doubled_or_squared(uint32_t t)
{
    return t % 3 == 0 ? 2 * t : t % 3 == 1 ? t * t : t + 1000;
}

static uint32_t predicated(uint32_t t)
{
    return t < 3 ? t + 1 : 5;
}

static uint32_t early(uint32_t t)
{
    return t % 4 == 3 ? 0 : 96 - 24;
}

static uint32_t shadowed(uint32_t t)
{
    return t + 7;
}

static const struct flow flows[] = {
    {"loops of different lengths",
     KERNEL "add.u32 %r2, %t, 1;\nmov.u32 %r1, 0;\n$L: setp.eq.u32 %p1, %r2, 1;\n@%p1 bra $E;\nand.b32 %r3, %r2, 1;\n"
            "setp.eq.u32 %p2, %r3, 0;\nadd.u32 %r1, %r1, 1;\n@%p2 bra $H;\nmad.lo.u32 %r2, %r2, 3, 1;\nbra $L;\n"
            "$H: shr.u32 %r2, %r2, 1;\nbra $L;\n$E: " STORE,
     96, collatz},
    {"break and continue",
     KERNEL
     "rem.u32 %r2, %t, 7;\nrem.u32 %r3, %t, 5;\nmov.u32 %r1, 0;\nmov.u32 %r4, 0;\n$I: setp.ge.u32 %p1, %r4, %r2;\n"
     "@%p1 bra $E;\nsetp.eq.u32 %p2, %r4, %r3;\n@%p2 bra $N;\nmov.u32 %r5, 0;\n$J: mul.lo.u32 %r6, %r5, %r4;\n"
     "setp.gt.u32 %p3, %r6, 9;\n@%p3 bra $N;\nmad.lo.u32 %r7, %r4, 10, %r5;\nadd.u32 %r1, %r1, %r7;\n"
     "add.u32 %r5, %r5, 1;\nsetp.le.u32 %p4, %r5, %r4;\n@%p4 bra $J;\n$N: add.u32 %r4, %r4, 1;\nbra $I;\n$E: " STORE,
     100, nested},
    {"a switch that falls through",
     KERNEL "and.b32 %r2, %t, 3;\nmov.u32 %r1, 0;\n$T: .branchtargets $A, $B, $C, $D;\nbrx.idx %r2, $T;\n"
            "$A: add.u32 %r1, %r1, 1;\n$B: add.u32 %r1, %r1, 10;\nbra $E;\n$C: add.u32 %r1, %r1, 100;\n"
            "$D: add.u32 %r1, %r1, 1000;\n$E: " STORE,
     70, fall_through},
    {"a loop with two entries",
     KERNEL "mov.u32 %r2, %t;\nmov.u32 %r1, 0;\nand.b32 %r3, %t, 1;\nsetp.eq.u32 %p1, %r3, 1;\n@%p1 bra $S;\n"
            "$F: add.u32 %r1, %r1, 1;\nadd.u32 %r2, %r2, 3;\nsetp.gt.u32 %p2, %r2, 40;\n@%p2 bra $E;\n"
            "$S: add.u32 %r1, %r1, 100;\nadd.u32 %r2, %r2, 5;\nsetp.le.u32 %p3, %r2, 60;\n@%p3 bra $F;\n$E: " STORE,
     64, irreducible},
    {"recursion to different depths",
     ".func (.param .b32 r) f(.param .b32 n)\n{\n.reg .b32 %x<4>;\n.reg .pred %s;\n.local .align 4 .b8 keep[4];\n"
     "ld.param.u32 %x0, [n];\nst.local.u32 [keep], %x0;\nmov.u32 %x2, 1;\nsetp.lt.u32 %s, %x0, 2;\n@%s bra $X;\n"
     "sub.u32 %x1, %x0, 1;\n{\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a], %x1;\ncall.uni (b), f, (a);\n"
     "ld.param.b32 %x2, [b];\n}\nld.local.u32 %x0, [keep];\nmad.lo.u32 %x2, %x2, %x0, 1;\n$X: st.param.b32 [r], "
     "%x2;\nret;\n}\n" KERNEL
     "rem.u32 %r2, %t, 9;\n{\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a], %r2;\ncall.uni (b), f, (a);\n"
     "ld.param.b32 %r1, [b];\n}\n" STORE,
     96, factorial_depth},
    {"indirect calls with a target for each lane",
     ".func (.reg .b32 r) d(.reg .b32 a)\n{\nshl.b32 r, a, 1;\nret;\n}\n.func (.reg .b32 r) s(.reg .b32 a)\n{\n"
     "mul.lo.u32 r, a, a;\nret;\n}\n.func (.reg .b32 r) m(.reg .b32 a)\n{\nadd.u32 r, a, 1000;\nret;\n}\n"
     ".global .align 8 .u64 table[3] = {d, s, m};\n" KERNEL
     "rem.u32 %r2, %t, 3;\nmul.wide.u32 %rd1, %r2, 8;\nmov.u64 %rd2, table;\nadd.u64 %rd1, %rd1, %rd2;\n"
     "ld.global.u64 %rd3, [%rd1];\n$P: .callprototype (.reg .b32 _) _ (.reg .b32 _);\n"
     "call (%r1), %rd3, (%t), $P;\n" STORE,
     64, doubled_or_squared},
    {"loads of inactive lanes from nowhere",
     KERNEL "mov.u32 %r1, 5;\nsetp.lt.u32 %p1, %t, 3;\nmov.u64 %rd1, 16;\nselp.u64 %rd1, %o, %rd1, %p1;\n"
            "@%p1 st.global.u32 [%rd1], %t;\n@%p1 ld.global.u32 %r1, [%rd1];\n@%p1 add.u32 %r1, %r1, 1;\n" STORE,
     64, predicated},
    {"threads that leave before a barrier",
     ".shared .align 4 .u32 n;\n" KERNEL
     "setp.eq.u32 %p2, %t, 0;\n@%p2 st.shared.u32 [n], 0;\nbar.sync 0;\nand.b32 %r2, %t, 3;\nsetp.eq.u32 %p1, %r2, 3;\n"
     "@%p1 exit;\nred.shared.add.u32 [n], 1;\nbar.sync 0;\nld.shared.u32 %r1, [n];\n" STORE,
     96, early},
    {"registers and labels of an inner scope",
     KERNEL "add.u32 %r1, %t, 3;\n{\n.reg .b32 %r<3>;\n.reg .pred %p1;\nmov.u32 %r1, 99;\nsetp.gt.u32 %p1, %t, 10;\n"
            "@%p1 bra $L;\nmov.u32 %r1, 98;\n$L:\n}\n{\n$L: add.u32 %r1, %r1, 4;\n}\n" STORE,
     40, shadowed},
};

START_TEST(control_flow)
{
    const struct flow *flow = &flows[_i];
    uint32_t words[128] = {0};
    int code = run_words(flow->body, 1, flow->threads, words, flow->threads);
    ck_assert_msg(code == 0, "%s: %s", flow->name, engine.fault.text);
    for (uint32_t t = 0; t < flow->threads; t++)
        ck_assert_msg(words[t] == flow->expected(t), "%s: thread %u has %u, expected %u", flow->name, t, words[t],
                      flow->expected(t));
    close_engine();
}
END_TEST

/* --- progress: kernels that end only if every lane, warp and block gets its turn --- */

struct progress {
    const char *name, *body;
    uint32_t blocks, threads, expected; /* of word 0 */
};

static const struct progress progresses[] = {
    {"a lock between lanes of a warp",
     KERNEL "$A: atom.global.cas.b32 %r1, [%g+4], 0, 1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra $A;\n"
            "ld.volatile.global.u32 %r2, [%g];\nadd.u32 %r2, %r2, 1;\nst.volatile.global.u32 [%g], %r2;\nmembar.gl;\n"
            "atom.global.exch.b32 %r3, [%g+4], 0;\nret;\n}\n",
     1, 32, 32},
    {"two lanes that take turns",
     KERNEL
     "mov.u32 %r4, 0;\nsetp.gt.u32 %p3, %t, 1;\n@%p3 exit;\n$A: ld.volatile.global.u32 %r1, [%g];\n"
     "and.b32 %r2, %r1, 1;\nsetp.ne.u32 %p1, %r2, %t;\n@%p1 bra $A;\nadd.u32 %r1, %r1, 1;\n"
     "st.volatile.global.u32 [%g], %r1;\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %p2, %r4, 50;\n@%p2 bra $A;\nret;\n}\n",
     1, 32, 100},
    {"a warp that waits for another",
     KERNEL "setp.ge.u32 %p1, %t, 32;\n@%p1 bra $B;\n$A: ld.volatile.global.u32 %r1, [%g];\nsetp.eq.u32 %p2, %r1, 0;\n"
            "@%p2 bra $A;\nst.volatile.global.u32 [%g], 9;\nret;\n$B: st.volatile.global.u32 [%g], 1;\nret;\n}\n",
     1, 64, 9},
    {"a block that waits for a later one",
     KERNEL "mov.u32 %r5, %ctaid.x;\nsetp.ne.u32 %p1, %r5, 0;\n@%p1 bra $B;\n$A: ld.volatile.global.u32 %r1, [%g];\n"
            "setp.eq.u32 %p2, %r1, 0;\n@%p2 bra $A;\nst.volatile.global.u32 [%g], 9;\nret;\n"
            "$B: setp.ne.u32 %p1, %r5, 2;\n@%p1 exit;\nst.volatile.global.u32 [%g], 1;\nret;\n}\n",
     3, 32, 9},
    {"a clock that is waited for",
     KERNEL
     "mov.u64 %rd1, %clock64;\n$A: mov.u64 %rd2, %clock64;\nsub.u64 %rd3, %rd2, %rd1;\nsetp.lt.u64 %p1, %rd3, 100000;\n"
     "@%p1 bra $A;\nst.global.u32 [%g], 1;\nret;\n}\n",
     1, 32, 1},
    {"nanosleep lets others go",
     KERNEL "setp.eq.u32 %p1, %t, 31;\n@%p1 bra $B;\n$A: nanosleep.u32 20;\nld.volatile.global.u32 %r1, [%g];\n"
            "setp.eq.u32 %p2, %r1, 0;\n@%p2 bra $A;\nbra $E;\n$B: st.volatile.global.u32 [%g], 7;\n$E: ret;\n}\n",
     1, 32, 7},
};

START_TEST(everyone_gets_a_turn)
{
    const struct progress *progress = &progresses[_i];
    uint32_t words[64] = {0};
    int code = run_words(progress->body, progress->blocks, progress->threads, words, 64);
    ck_assert_msg(code == 0, "%s: %s", progress->name, engine.fault.text);
    ck_assert_msg(words[0] == progress->expected, "%s: %u, expected %u", progress->name, words[0], progress->expected);
    close_engine();
}
END_TEST

/* --- lanes and warps that meet --- */

static uint32_t half_sums(uint32_t t)
{
    return t < 16 ? 120 : 376;
}

static uint32_t two_places(uint32_t t)
{
    return (t & 1) ? 0xffffffff : 0xffffffff;
}

static uint32_t exited_ballot(uint32_t t)
{
    return t < 8 ? 0 : 0xffffff00;
}

static uint32_t last_warp(uint32_t t)
{
    return t < 32 ? 0xffffffff : 0xff;
}

static uint32_t own_masks(uint32_t t)
{
    return 4 * (t & ~3u) + 6;
}

static uint32_t produced(uint32_t t)
{
    return t < 32 ? 0 : (t - 32) * 3;
}

static uint32_t linear_lane(uint32_t t)
{
    return t % 32 + 100 * (t / 32);
}

static const struct flow meetings[] = {
    {"shuffles of the halves of a warp",
     KERNEL "mov.u32 %r1, %t;\nsetp.lt.u32 %p1, %t, 16;\n@%p1 bra $A;\nmov.u32 %r5, 0xffff0000;\nbra $B;\n$A: mov.u32 "
            "%r5, 0xffff;\n"
            "$B: mov.u32 %r6, 8;\n$L: shfl.sync.bfly.b32 %r2, %r1, %r6, 31, %r5;\nadd.u32 %r1, %r1, %r2;\nshr.u32 %r6, "
            "%r6, 1;\n"
            "setp.ne.u32 %p2, %r6, 0;\n@%p2 bra $L;\n" STORE,
     32, half_sums},
    {"one vote from two places",
     KERNEL
     "and.b32 %r2, %t, 1;\nsetp.eq.u32 %p1, %r2, 1;\nsetp.eq.u32 %p2, %t, %t;\n@%p1 bra $A;\n"
     "vote.sync.ballot.b32 %r1, %p2, 0xffffffff;\nbra $E;\n$A: vote.sync.ballot.b32 %r1, %p2, 0xffffffff;\n$E: " STORE,
     32, two_places},
    {"a vote without lanes that have exited",
     KERNEL "setp.lt.u32 %p1, %t, 8;\n@%p1 exit;\nsetp.eq.u32 %p2, %t, %t;\nvote.sync.ballot.b32 %r1, %p2, "
            "0xffffffff;\n" STORE,
     32, exited_ballot},
    {"lanes that exit while others wait for them",
     KERNEL
     "setp.lt.u32 %p1, %t, 8;\n@%p1 bra $A;\nsetp.eq.u32 %p2, %t, %t;\nvote.sync.ballot.b32 %r1, %p2, 0xffffffff;\n"
     "st.global.u32 [%o], %r1;\nret;\n$A: mov.u32 %r4, 0;\n$L: add.u32 %r4, %r4, 1;\nsetp.lt.u32 %p3, %r4, 3000;\n"
     "@%p3 bra $L;\nexit;\n}\n",
     32, exited_ballot},
    {"a last warp of a few lanes",
     KERNEL "setp.eq.u32 %p2, %t, %t;\nvote.sync.ballot.b32 %r1, %p2, 0xffffffff;\n" STORE, 40, last_warp},
    {"a member mask for each group of four",
     KERNEL "and.b32 %r2, %t, 28;\nmov.u32 %r3, 15;\nshl.b32 %r3, %r3, %r2;\nredux.sync.add.u32 %r1, %t, %r3;\n" STORE,
     32, own_masks},
    {"a producer that only arrives",
     ".shared .align 4 .b8 s[128];\n" KERNEL
     "mov.u64 %rd1, s;\nsetp.lt.u32 %p1, %t, 32;\n@%p1 bra $P;\nbar.sync 1, 64;\nsub.u32 %r2, %t, 32;\n"
     "mul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd1, %rd1, %rd2;\nld.shared.u32 %r1, [%rd1];\nbra $E;\n"
     "$P: mul.lo.u32 %r2, %t, 3;\nmul.wide.u32 %rd2, %t, 4;\nadd.u64 %rd1, %rd1, %rd2;\nst.shared.u32 [%rd1], %r2;\n"
     "bar.arrive 1, 64;\nmov.u32 %r1, 0;\n$E: " STORE,
     64, produced},
    {"lanes and warps in order of threads",
     KERNEL "mov.u32 %r2, %laneid;\nmov.u32 %r3, %warpid;\nmad.lo.u32 %r1, %r3, 100, %r2;\n" STORE, 96, linear_lane},
};

START_TEST(lanes_meet)
{
    const struct flow *flow = &meetings[_i];
    uint32_t words[128] = {0};
    int code = run_words(flow->body, 1, flow->threads, words, flow->threads);
    ck_assert_msg(code == 0, "%s: %s", flow->name, engine.fault.text);
    for (uint32_t t = 0; t < flow->threads; t++)
        ck_assert_msg(words[t] == flow->expected(t), "%s: thread %u has %x, expected %x", flow->name, t, words[t],
                      flow->expected(t));
    close_engine();
}
END_TEST

/* --- faults --- */

struct fault_case {
    const char *name, *body;
    int code;
    const char *says[3];
};

#define ASSERT_DECLARED                                                                                             \
    ".extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n"     \
    ".global .align 1 .b8 words[16] = {105, 32, 60, 32, 110, 0, 102, 46, 99, 117, 0, 107, 0};\n"

static const struct fault_case fault_cases[] = {
    {"one byte behind",
     KERNEL "ld.global.u8 %r1, [%g+256];\n" STORE,
     700,
     {"out of bounds read of 1 bytes", "allocation", "kernel 'k'"}},
    {"one byte before",
     KERNEL "st.global.u8 [%g+-1], %t;\nret;\n}\n",
     700,
     {"out of bounds write of 1 bytes", NULL, NULL}},
    {"half of a word behind",
     KERNEL "ld.global.v2.u32 {%r1, %r2}, [%g+256];\n" STORE,
     700,
     {"read of 8 bytes", NULL, NULL}},
    {"only the last thread", KERNEL "st.global.u32 [%o+132], %t;\nret;\n}\n", 700, {"thread (31,0,0)", NULL, NULL}},
    {"the null page", KERNEL "mov.u64 %rd1, 0;\nld.u32 %r1, [%rd1+8];\n" STORE, 700, {"address 0x8", NULL, NULL}},
    {"a misaligned word", KERNEL "ld.global.u32 %r1, [%g+2];\n" STORE, 716, {"misaligned read of 4 bytes", NULL, NULL}},
    {"a misaligned vector",
     KERNEL "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%g+8];\n" STORE,
     716,
     {"16 bytes", NULL, NULL}},
    {"a misaligned atomic", KERNEL "red.global.add.u32 [%g+1], 1;\nret;\n}\n", 716, {"misaligned write", NULL, NULL}},
    {"shared memory as global",
     ".shared .align 4 .b8 s[16];\n" KERNEL
     "mov.u64 %rd1, s;\ncvta.shared.u64 %rd1, %rd1;\nld.global.u32 %r1, [%rd1];\n" STORE,
     717,
     {"which is shared memory", NULL, NULL}},
    {"behind shared memory",
     ".shared .align 4 .b8 s[16];\n" KERNEL "mov.u64 %rd1, s;\nld.shared.u32 %r1, [%rd1+16];\n" STORE,
     700,
     {"outside of the 16 bytes of shared memory", NULL, NULL}},
    {"behind shared memory, generic",
     ".shared .align 4 .b8 s[16];\n" KERNEL
     "mov.u64 %rd1, s;\ncvta.shared.u64 %rd1, %rd1;\nst.u32 [%rd1+16], %t;\nret;\n}\n",
     700,
     {"shared memory", NULL, NULL}},
    {"behind local memory",
     KERNEL ".local .align 4 .b8 l[8];\nmov.u64 %rd1, l;\nld.local.u32 %r1, [%rd1+8];\n" STORE,
     700,
     {"local", NULL, NULL}},
    {"a constant",
     ".const .align 4 .u32 c = 5;\n" KERNEL "mov.u64 %rd1, c;\nst.u32 [%rd1], 1;\nret;\n}\n",
     700,
     {"to constant memory", NULL, NULL}},
    {"trap", KERNEL "setp.eq.u32 %p1, %t, 5;\n@%p1 trap;\nret;\n}\n", 719, {"thread (5,0,0)", "trap", NULL}},
    {"brkpt", KERNEL "brkpt;\nret;\n}\n", 719, {"brkpt", NULL, NULL}},
    {"a function that is none",
     KERNEL "mov.u64 %rd1, 64;\n$P: .callprototype _ ();\ncall %rd1, (), $P;\nret;\n}\n",
     718,
     {"no function", NULL, NULL}},
    {"a call with other parameters",
     ".func f(.reg .b32 a)\n{\nret;\n}\n" KERNEL
     "mov.u64 %rd1, f;\n$P: .callprototype _ ();\ncall %rd1, (), $P;\nret;\n}\n",
     718,
     {"function 'f'", NULL, NULL}},
    {"a pure virtual function",
     ".extern .func __cxa_pure_virtual ();\n.global .align 8 .u64 table[1] = {__cxa_pure_virtual};\n" KERNEL
     "ld.global.u64 %rd1, [table];\n$P: .callprototype _ ();\ncall %rd1, (), $P;\nret;\n}\n",
     719,
     {"pure virtual", NULL, NULL}},
    {"endless recursion",
     ".func f()\n{\ncall f, ();\nret;\n}\n" KERNEL "call f, ();\nret;\n}\n",
     719,
     {"stack overflow", "function 'f'", NULL}},
    {"an unknown instruction",
     KERNEL "mov.u32 %r1, 1;\ntcgen05.alloc.cta_group::1.b32 [%g], 32;\n" STORE,
     801,
     {"tcgen05.alloc", "PTX line", NULL}},
    {"a barrier for 33 threads",
     KERNEL "mov.u32 %r1, 33;\nbar.sync 1, %r1;\nret;\n}\n",
     715,
     {"multiple of 32", NULL, NULL}},
    {"a deadlock at a barrier", KERNEL "bar.sync 3, 64;\nret;\n}\n", 719, {"deadlock", "wait at barrier 3", NULL}},
    {"a deadlock of two barriers",
     KERNEL "setp.lt.u32 %p1, %t, 9;\n@%p1 bra $A;\nbarrier.sync 1;\nret;\n$A: barrier.sync 2;\nret;\n}\n",
     719,
     {"deadlock", "barrier 1", "barrier 2"}},
    {"a deadlock of a warp",
     KERNEL "setp.lt.u32 %p1, %t, 9;\n@%p1 bra $A;\nbar.warp.sync 0xffffffff;\nret;\n$A: barrier.sync 2;\nret;\n}\n",
     719,
     {"deadlock", "lanes 0xffffffff", NULL}},
    {"a table without that entry",
     KERNEL "$T: .branchtargets $A;\nbrx.idx %t, $T;\n$A: ret;\n}\n",
     719,
     {"outside of its table of 1", NULL, NULL}},
    {"an assertion",
     ASSERT_DECLARED KERNEL
     "mov.u64 %rd1, words;\ncvta.global.u64 %rd1, %rd1;\nadd.u64 %rd2, %rd1, 6;\nadd.u64 %rd3, %rd1, 11;\n"
     "setp.eq.u32 %p1, %t, 2;\n@!%p1 exit;\n{\n.param .b64 a;\n.param .b64 b;\n.param .b32 c;\n.param .b64 d;\n.param "
     ".b64 e;\nst.param.b64 [a], %rd1;\n"
     "st.param.b64 [b], %rd2;\nst.param.b32 [c], 12;\nst.param.b64 [d], %rd3;\nst.param.b64 [e], 1;\n"
     "call __assertfail, (a, b, c, d, e);\n}\nret;\n}\n",
     710,
     {"i < n", "f.cu:12", NULL}},
    {"free of what malloc has not given",
     ".extern .func free (.param .b64 p);\n" KERNEL "{\n.param .b64 a;\nst.param.b64 [a], %g;\nadd.u64 %g, %g, "
                                                    "8;\nst.param.b64 [a], %g;\ncall free, (a);\n}\nret;\n}\n",
     719,
     {"malloc", NULL, NULL}},
};

START_TEST(faults_say_what_and_where)
{
    const struct fault_case *fault = &fault_cases[_i];
    uint32_t words[64] = {0};
    int code = run_words(fault->body, 1, 32, words, 64);
    ck_assert_msg(code == fault->code, "%s: code %d, expected %d: %s", fault->name, code, fault->code,
                  code ? engine.fault.text : "");
    for (unsigned i = 0; i < 3; i++)
        if (fault->says[i])
            ck_assert_msg(strstr(engine.fault.text, fault->says[i]) != NULL, "%s: '%s' does not say '%s'", fault->name,
                          engine.fault.text, fault->says[i]);
    ck_assert_uint_gt(engine.fault.ptx_line, 0);
    close_engine();
}
END_TEST

START_TEST(an_assertion_prints_as_the_runtime_does)
{
    uint32_t words[64] = {0};
    for (size_t i = 0; i < sizeof fault_cases / sizeof fault_cases[0]; i++)
        if (fault_cases[i].code == 710)
            run_words(fault_cases[i].body, 1, 32, words, 64);
    ck_assert_str_eq(engine.printed, "f.cu:12: k: block: [0,0,0], thread: [2,0,0] Assertion `i < n` failed.\n");
    close_engine();
}
END_TEST

START_TEST(freed_memory_is_out_of_bounds_at_once)
{
    engine_open(&engine, KERNEL "ld.global.u32 %r1, [%o];\n" STORE);
    hdsoft_range range = engine_allocate(&engine, 256);
    ck_assert_int_eq(engine_run(&engine, "k", 1, 32, &range.base), 0);
    hdsoft_memory_release(engine.memory, range.base);
    ck_assert_int_eq(engine_run(&engine, "k", 1, 32, &range.base), 700);
    ck_assert_msg(strstr(engine.fault.text, "freed") != NULL, "%s", engine.fault.text);
    close_engine();
}
END_TEST

START_TEST(a_fault_names_the_source)
{
    uint32_t words[32] = {0};
    int code =
        run_words(".file 1 \"dir/source.cu\"\n" KERNEL ".loc 1 41 5\nmov.u32 %r1, 1;\n.loc 1 42 7, function_name "
                  "$L__info_string0, inlined_at 1 30 2\nld.global.u32 %r1, [%g+4096];\n" STORE,
                  1, 1, words, 32);
    ck_assert_int_eq(code, 700);
    ck_assert_str_eq(engine.fault.source_file, "dir/source.cu");
    ck_assert_uint_eq(engine.fault.source_line, 42);
    ck_assert_msg(strstr(engine.fault.text, "at dir/source.cu:42") != NULL, "%s", engine.fault.text);
    close_engine();
}
END_TEST

/* --- memory --- */

START_TEST(shared_memory_is_laid_out_for_each_kernel)
{
    engine_open(
        &engine,
        ".shared .align 16 .b8 both[64];\n.shared .align 4 .b8 one[100];\n.shared .align 8 .b8 two[4096];\n"
        ".extern .shared .align 16 .b8 x[];\n.extern .shared .align 4 .b8 y[];\n"
        ".func f()\n{\nst.shared.u32 [both], 1;\nret;\n}\n"
        ".entry a()\n{\ncall f, ();\nret;\n}\n"
        ".entry b()\n{\n.shared .align 4 .u32 own;\nst.shared.u32 [own], 3;\ncall f, ();\nst.shared.u32 [two], "
        "1;\nret;\n}\n" KERNEL
        "st.shared.u32 [one], 17;\nst.shared.u32 [x+8], %t;\nld.shared.u32 %r1, [y+8];\nld.shared.u32 %r2, [one];\n"
        "mov.u64 %rd1, x;\nmov.u64 %rd2, y;\nsub.u64 %rd1, %rd1, %rd2;\ncvt.u32.u64 %r3, %rd1;\n"
        "mov.u32 %r4, %dynamic_smem_size;\nst.global.v4.u32 [%g], {%r1, %r2, %r3, %r4};\nret;\n}\n");
    ck_assert_uint_eq(hdsoft_program_find_entry(engine.program, "a")->static_shared_bytes, 64);
    ck_assert_uint_eq(hdsoft_program_find_entry(engine.program, "b")->static_shared_bytes, 72 + 4096);
    ck_assert_uint_eq(hdsoft_program_find_entry(engine.program, "k")->static_shared_bytes, 100);
    hdsoft_range range = engine_allocate(&engine, 64);
    uint32_t words[4];
    engine.dynamic_shared = 12;
    ck_assert_int_eq(engine_run(&engine, "k", 1, 1, &range.base), 0);
    memcpy(words, range.host, sizeof words);
    ck_assert_uint_eq(words[0], 0);
    ck_assert_uint_eq(words[1], 17);
    ck_assert_uint_eq(words[2], 0);
    ck_assert_uint_eq(words[3], 12);
    engine.dynamic_shared = 11;
    ck_assert_int_eq(engine_run(&engine, "k", 1, 1, &range.base), 700);
    close_engine();
}
END_TEST

START_TEST(variables_begin_as_written)
{
    engine_open(&engine, ".global .align 4 .u32 zero[3];\n.global .align 4 .s32 some[5] = {1, -2, 0x30};\n"
                         ".global .align 8 .f64 pi = 3.25;\n.global .align 4 .f32 half[2] = {0f3F000000, -1.5};\n"
                         ".global .align 2 .b8 grid[2][3] = {{1, 2}, {4}};\n.const .align 8 .u64 at = some+8;\n"
                         ".global .align 8 .b8 bytes[9] = {7, 0xFF(generic(some)+4), 0xFF00(generic(some)+4), "
                         "0xFF0000(generic(some)+4)};\n"
                         ".entry k()\n{\nret;\n}\n");
    static const struct {
        uint64_t size;
        unsigned char bytes[24];
    } expected[] = {
        {12, {0}}, {20, {1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0x30}}, {8, {0, 0, 0, 0, 0, 0, 0x0a, 0x40}},
        {8, {0, 0, 0, 0x3f, 0, 0, 0xc0, 0xbf}}, {6, {1, 2, 0, 4}},
    };
    ck_assert_uint_eq(hdsoft_program_variable_count(engine.program), 7);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        hdsoft_range range;
        ck_assert_uint_eq(hdsoft_program_variable(engine.program, i)->size, expected[i].size);
        ck_assert(hdsoft_memory_find(engine.memory, hdsoft_instance_address(engine.instance, i), &range));
        ck_assert_msg(memcmp(range.host, expected[i].bytes, expected[i].size) == 0, "variable %zu", i);
    }
    hdsoft_range range;
    uint64_t some = hdsoft_instance_address(engine.instance, 1), held;
    ck_assert(hdsoft_program_variable(engine.program, 5)->constant);
    ck_assert(hdsoft_memory_find(engine.memory, hdsoft_instance_address(engine.instance, 5), &range));
    memcpy(&held, range.host, sizeof held);
    ck_assert_uint_eq(held, some + 8);
    ck_assert(hdsoft_memory_find(engine.memory, hdsoft_instance_address(engine.instance, 6), &range));
    ck_assert_uint_eq(range.host[0], 7);
    ck_assert_uint_eq(range.host[1], (some + 4) & 0xff);
    ck_assert_uint_eq(range.host[2], (some + 4) >> 8 & 0xff);
    close_engine();
}
END_TEST

START_TEST(memory_of_the_host_is_reached)
{
    engine_open(&engine,
                KERNEL "ld.global.u32 %r1, [%g];\natom.sys.global.add.u32 %r2, [%g+8], 1;\nadd.u32 %r1, %r1, 1;\n"
                       "mul.wide.u32 %rd1, %t, 1;\nadd.u64 %rd1, %rd1, %g;\nst.global.u8 [%rd1+64], %t;\n"
                       "st.global.u32 [%g+4], %r1;\nst.global.u64 [%g+16], %g;\nld.global.u16 %r3, "
                       "[%g+64];\nst.global.u16 [%g+24], %r3;\nret;\n}\n");
    hdsoft__allocation like = {.owner = &engine};
    void *memory;
    ck_assert_int_eq(hdsoft__memory_map_host(engine.hosts, 4096, &like, &memory), 0);
    uint32_t *words = memory;
    memset(words, 0, 4096);
    words[0] = 41;
    uint64_t parameter = (uint64_t)(uintptr_t)memory;
    ck_assert_msg(engine_run(&engine, "k", 1, 32, &parameter) == 0, "%s", engine.fault.text);
    ck_assert_uint_eq(words[1], 42);
    ck_assert_uint_eq(words[2], 32);
    ck_assert_uint_eq(words[6], 0x0100);
    ck_assert_uint_eq(((unsigned char *)memory)[64 + 31], 31);
    hdsoft__memory_unmap_host(engine.hosts, parameter);
    close_engine();
}
END_TEST

START_TEST(parameters_keep_their_places)
{
    engine_open(
        &engine,
        ".entry k(.param .u8 a, .param .align 16 .b8 big[4096], .param .f32 x, .param .u64 out)\n{\n.reg .b32 %r<5>;\n"
        ".reg .b64 %rd<5>;\n.reg .f32 %f<2>;\nld.param.u64 %rd1, [out];\nld.param.u8 %r1, [a];\nld.param.u32 %r2, "
        "[big+4092];\n"
        "ld.param.f32 %f1, [x];\nmov.u64 %rd2, big;\nld.param.u32 %r3, [%rd2+4];\ncvta.param.u64 %rd3, %rd2;\nld.u32 "
        "%r4, [%rd3+8];\n"
        "st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};\nst.global.f32 [%rd1+16], %f1;\nret;\n}\n");
    const hdsoft_entry *entry = hdsoft_program_find_entry(engine.program, "k");
    ck_assert_uint_eq(entry->parameter_count, 4);
    ck_assert_uint_eq(entry->parameters[1].offset, 16);
    ck_assert_uint_eq(entry->parameters[1].size, 4096);
    ck_assert_uint_eq(entry->parameters[1].align, 16);
    ck_assert_int_eq(entry->parameters[1].kind, 'b');
    ck_assert_uint_eq(entry->parameters[2].offset, 4112);
    ck_assert_int_eq(entry->parameters[2].kind, 'f');
    ck_assert_uint_eq(entry->parameters[3].offset, 4120);
    ck_assert_uint_eq(entry->parameter_bytes, 4128);
    unsigned char block[4128] = {7};
    hdsoft_range range = engine_allocate(&engine, 64);
    uint32_t numbers[] = {11, 22, 33};
    float x = 2.5f;
    memcpy(block + 16 + 4092, &numbers[0], 4);
    memcpy(block + 16 + 4, &numbers[1], 8);
    memcpy(block + 4112, &x, 4);
    memcpy(block + 4120, &range.base, 8);
    ck_assert_msg(engine_run(&engine, "k", 1, 1, block) == 0, "%s", engine.fault.text);
    uint32_t words[5], expected[5] = {7, 11, 22, 33, 0x40200000};
    memcpy(words, range.host, sizeof words);
    ck_assert_mem_eq(words, expected, sizeof words);
    close_engine();
}
END_TEST

/* A declaration that comes after the body changes nothing of it. */
START_TEST(functions_may_be_declared_again)
{
    static const char body[] =
        ".func (.param .b32 r) twice(.param .b32 a)\n{\n.reg .b32 %r<3>;\nld.param.u32 %r1, [a];\n"
        "add.u32 %r2, %r1, %r1;\nst.param.b32 [r], %r2;\nret;\n}\n"
        ".func (.param .b32 r) twice(.param .b32 a);\n"
        ".entry k(.param .u64 o)\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [o];\nmov.u32 %r1, 21;\n"
        "{\n.param .b32 a;\n.param .b32 r;\nst.param.b32 [a], %r1;\ncall.uni (r), twice, (a);\nld.param.b32 %r2, [r];\n"
        "}\nst.global.u32 [%rd1], %r2;\nret;\n}\n"
        ".entry k(.param .u64 o);\n.func (.param .b32 r) twice(.param .b32 a);\n";
    engine_open(&engine, body);
    hdsoft_range range = engine_allocate(&engine, 4);
    ck_assert_msg(engine_run(&engine, "k", 1, 1, &range.base) == 0, "%s", engine.fault.text);
    ck_assert_uint_eq(*(uint32_t *)range.host, 42);
    close_engine();
}
END_TEST

START_TEST(the_device_heap_gives_and_takes)
{
    engine_open(
        &engine,
        ".extern .func (.param .b64 r) malloc (.param .b64 n);\n.extern .func free (.param .b64 p);\n" KERNEL
        "{\n.param .b64 a;\n.param .b64 b;\nst.param.b64 [a], 40;\ncall (b), malloc, (a);\nld.param.b64 %rd1, [b];\n}\n"
        "st.u32 [%rd1+36], %t;\nld.u32 %r1, [%rd1+36];\n{\n.param .b64 a;\nst.param.b64 [a], %rd1;\ncall free, "
        "(a);\n}\n"
        "{\n.param .b64 a;\n.param .b64 b;\nst.param.b64 [a], 1000000000000;\ncall (b), malloc, (a);\nld.param.b64 "
        "%rd1, [b];\n}\n"
        "setp.ne.u64 %p1, %rd1, 0;\n@%p1 mov.u32 %r1, 999;\n" STORE);
    hdsoft_range range = engine_allocate(&engine, 256);
    uint64_t used = hdsoft__memory_used(engine.memory);
    ck_assert_msg(engine_run(&engine, "k", 1, 64, &range.base) == 0, "%s", engine.fault.text);
    for (uint32_t t = 0; t < 64; t++)
        ck_assert_uint_eq(((uint32_t *)(void *)range.host)[t], t);
    ck_assert_uint_eq(hdsoft__memory_used(engine.memory), used);
    close_engine();
}
END_TEST

/* Blocks of 1000 bytes, until there are no more; then one for each that is given back. */
START_TEST(the_device_heap_has_an_end)
{
    engine_open(
        &engine,
        ".extern .func (.param .b64 r) malloc (.param .b64 n);\n.extern .func free (.param .b64 p);\n" KERNEL
        "mov.u32 %r1, 0;\nmov.u64 %rd2, 0;\n$L: mov.u64 %rd1, %rd2;\n{\n.param .b64 a;\n.param .b64 b;\n"
        "st.param.b64 [a], 1000;\ncall (b), malloc, (a);\nld.param.b64 %rd2, [b];\n}\n"
        "setp.eq.u64 %p1, %rd2, 0;\n@%p1 bra $F;\nadd.u32 %r1, %r1, 1;\nbra $L;\n"
        "$F: {\n.param .b64 a;\nst.param.b64 [a], %rd1;\ncall free, (a);\n}\n"
        "{\n.param .b64 a;\n.param .b64 b;\nst.param.b64 [a], 1008;\ncall (b), malloc, (a);\n"
        "ld.param.b64 %rd2, [b];\n}\nsetp.eq.u64 %p1, %rd2, 0;\n@%p1 mov.u32 %r1, 0;\n" STORE);
    hdsoft_range range = engine_allocate(&engine, 256);
    hdsoft__memory_limit_heap(engine.memory, 100 * 1008 + 999);
    ck_assert_msg(engine_run(&engine, "k", 1, 1, &range.base) == 0, "%s", engine.fault.text);
    uint32_t blocks;
    memcpy(&blocks, range.host, sizeof blocks);
    ck_assert_uint_eq(blocks, 100);
    ck_assert_int_eq(engine_run(&engine, "k", 1, 1, &range.base), 0); /* what the first has taken stays */
    memcpy(&blocks, range.host, sizeof blocks);
    ck_assert_uint_eq(blocks, 0);
    close_engine();
}
END_TEST

/* --- printing --- */

START_TEST(printing_follows_the_format)
{
    /* "%d|%u|%5.2f|%s|%c|%lld|%x|%%|%-4d|%p|%*d\n" */
    engine_open(&engine,
                ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
                ".global .align 1 .b8 text[3] = {104, 105, 0};\n"
                ".global .align 1 .b8 format[48] = "
                "{37,100,124,37,117,124,37,53,46,50,102,124,37,115,124,37,99,124,37,108,108,100,124,37,120,"
                "124,37,37,124,37,45,52,100,124,37,112,124,37,42,100,10,0};\n" KERNEL
                ".local .align 8 .b8 l[80];\nmov.u64 %rd1, l;\nst.local.u32 [l], -7;\nst.local.u32 [l+4], 4294967295;\n"
                "st.local.f64 [l+8], 0d400921FB54442D18;\nmov.u64 %rd2, text;\nst.local.u64 [l+16], "
                "%rd2;\nst.local.u32 [l+24], 65;\n"
                "st.local.u64 [l+32], -5000000000;\nst.local.u32 [l+40], 255;\nst.local.u32 [l+44], 3;\nst.local.u64 "
                "[l+48], 4096;\n"
                "st.local.u32 [l+56], 6;\nst.local.u32 [l+60], %t;\ncvta.local.u64 %rd1, %rd1;\nmov.u64 %rd3, format;\n"
                "setp.eq.u32 %p1, %t, 1;\n@%p1 exit;\n{\n.param .b64 a;\n.param .b64 b;\n.param .b32 c;\nst.param.b64 "
                "[a], %rd3;\nst.param.b64 [b], %rd1;\n"
                "call (c), vprintf, (a, b);\nld.param.b32 %r1, [c];\n}\n" STORE);
    hdsoft_range range = engine_allocate(&engine, 256);
    ck_assert_msg(engine_run(&engine, "k", 1, 3, &range.base) == 0, "%s", engine.fault.text);
    ck_assert_str_eq(engine.printed, "-7|4294967295| 3.14|hi|A|-5000000000|ff|%|3   |0x1000|     0\n"
                                     "-7|4294967295| 3.14|hi|A|-5000000000|ff|%|3   |0x1000|     2\n");
    close_engine();
}
END_TEST

/* --- runs --- */

#define SUM_BLOCKS                                                                                                  \
    ".shared .align 4 .b8 s[256];\n"                                                                                \
    KERNEL "mov.u64 %rd1, s;\nmul.wide.u32 %rd2, %t, 4;\nadd.u64 %rd1, %rd1, %rd2;\nmov.u32 %r2, %ctaid.x;\n"       \
           "mov.u32 %r3, %ntid.x;\nmad.lo.u32 %r1, %r2, %r3, %t;\nst.shared.u32 [%rd1], %r1;\nbar.sync 0;\n"        \
           "setp.ne.u32 %p1, %t, 0;\n@%p1 exit;\nmov.u32 %r1, 0;\nmov.u32 %r4, 0;\nmov.u64 %rd1, s;\n"              \
           "$L: ld.shared.u32 %r5, [%rd1];\nadd.u32 %r1, %r1, %r5;\nadd.u64 %rd1, %rd1, 4;\nadd.u32 %r4, %r4, 1;\n" \
           "setp.lt.u32 %p2, %r4, %r3;\n@%p2 bra $L;\nred.global.add.u32 [%g], %r1;\n"                              \
           "mul.wide.u32 %rd3, %r2, 4;\nadd.u64 %rd3, %rd3, %g;\nst.global.u32 [%rd3+4], %r1;\nret;\n}\n"

START_TEST(seeds_change_the_order_only)
{
    uint64_t instructions = 0;
    for (uint64_t seed = 0; seed < 6; seed++) {
        engine_open(&engine, SUM_BLOCKS);
        hdsoft_range range = engine_allocate(&engine, 4096);
        engine.seed = seed;
        ck_assert_int_eq(engine_run(&engine, "k", 50, 64, &range.base), 0);
        uint32_t *words = (uint32_t *)(void *)range.host;
        ck_assert_uint_eq(words[0], 3200 * 3199 / 2);
        for (uint32_t b = 0; b < 50; b++)
            ck_assert_uint_eq(words[1 + b], 64 * (64 * b) + 2016);
        ck_assert(seed == 0 || instructions == engine.executed);
        instructions = engine.executed;
        close_engine();
    }
}
END_TEST

START_TEST(a_run_goes_on_where_it_stopped)
{
    engine_open(&engine, SUM_BLOCKS);
    hdsoft_range range = engine_allocate(&engine, 4096);
    hdsoft_launch launch = {.instance = engine.instance, .entry = hdsoft_program_entry(engine.program, 0),
                            .grid = {7, 2, 1}, .block = {64, 1, 1}, .parameters = &range.base, .memory = engine.memory,
                            .multiprocessors = 2};
    hdsoft_run *run;
    hdsoft_fault fault;
    uint64_t executed, steps = 0;
    ck_assert_int_eq(hdsoft_run_begin(&launch, &run), 0);
    while (hdsoft_run_step(run, 10, &executed, &fault) == 1)
        steps += executed > 0;
    ck_assert_uint_gt(steps, 10);
    hdsoft_run_end(run);
    ck_assert_uint_eq(((uint32_t *)(void *)range.host)[0], 2 * (448 * 447 / 2));
    ck_assert_int_eq(hdsoft_run_begin(&launch, &run), 0);
    ck_assert_int_eq(hdsoft_run_step(run, 100, NULL, &fault), 1);
    hdsoft_run_end(run);
    hdsoft_run_end(NULL);
    close_engine();
}
END_TEST

START_TEST(a_run_may_end_in_the_midst_of_calls)
{
    engine_open(&engine, ".func f(.reg .b32 n)\n{\n.reg .pred %p;\n$L: setp.gt.u32 %p, n, 20;\n@%p bra $L;\nadd.u32 n, "
                         "n, 1;\ncall f, (n);\nret;\n}\n" KERNEL "call f, (%t);\nret;\n}\n");
    uint64_t parameter = 0;
    hdsoft_launch launch = {.instance = engine.instance, .entry = hdsoft_program_entry(engine.program, 0),
                            .grid = {2, 1, 1}, .block = {64, 1, 1}, .parameters = &parameter, .memory = engine.memory};
    hdsoft_run *run;
    hdsoft_fault fault;
    ck_assert_int_eq(hdsoft_run_begin(&launch, &run), 0);
    ck_assert_int_eq(hdsoft_run_step(run, 100000, NULL, &fault), 1);
    hdsoft_run_end(run);
    close_engine();
}
END_TEST

/* A grid barrier as cooperative groups make it: the workspace in %envreg, a counter, a spin. */
START_TEST(all_blocks_of_a_cooperative_launch_are_resident)
{
    engine_open(
        &engine, KERNEL
        "mov.b32 %r1, %envreg1;\nmov.b32 %r2, %envreg2;\nmov.b64 %rd1, {%r2, %r1};\nmov.u32 %r3, %nctaid.x;\n"
        "mov.u32 %r6, 0;\n$R: red.global.add.u32 [%g], 1;\nbar.sync 0;\nadd.u32 %r6, %r6, 1;\nsetp.ne.u32 %p1, %t, 0;\n"
        "@%p1 bra $W;\natom.add.release.gpu.u32 %r4, [%rd1], 1;\nmul.lo.u32 %r7, %r3, %r6;\n$S: ld.acquire.gpu.u32 "
        "%r5, [%rd1];\n"
        "setp.lt.u32 %p2, %r5, %r7;\n@%p2 bra $S;\n$W: bar.sync 0;\nld.volatile.global.u32 %r8, [%g];\nmov.u32 %r9, "
        "%ntid.x;\n"
        "mul.lo.u32 %r9, %r9, %r7;\nsetp.lt.u32 %p3, %r8, %r9;\n@%p3 trap;\nsetp.lt.u32 %p4, %r6, 5;\n@%p4 bra "
        "$R;\nret;\n}\n");
    hdsoft_range range = engine_allocate(&engine, 64);
    engine.cooperative = true;
    uint64_t used = hdsoft__memory_used(engine.memory);
    ck_assert_msg(engine_run(&engine, "k", 12, 64, &range.base) == 0, "%s", engine.fault.text);
    ck_assert_uint_eq(*(uint32_t *)(void *)range.host, 12 * 64 * 5);
    ck_assert_uint_eq(hdsoft__memory_used(engine.memory), used);
    close_engine();
}
END_TEST

#define COUNT(list) ((int)(sizeof(list) / sizeof(list)[0]))

int main(void)
{
    Suite *suite = suite_create("soft_exec");
    TCase *all = tcase_create("exec");
    tcase_add_loop_test(all, control_flow, 0, COUNT(flows));
    tcase_add_loop_test(all, everyone_gets_a_turn, 0, COUNT(progresses));
    tcase_add_loop_test(all, lanes_meet, 0, COUNT(meetings));
    tcase_add_loop_test(all, faults_say_what_and_where, 0, COUNT(fault_cases));
    tcase_add_test(all, an_assertion_prints_as_the_runtime_does);
    tcase_add_test(all, freed_memory_is_out_of_bounds_at_once);
    tcase_add_test(all, a_fault_names_the_source);
    tcase_add_test(all, shared_memory_is_laid_out_for_each_kernel);
    tcase_add_test(all, variables_begin_as_written);
    tcase_add_test(all, memory_of_the_host_is_reached);
    tcase_add_test(all, parameters_keep_their_places);
    tcase_add_test(all, functions_may_be_declared_again);
    tcase_add_test(all, the_device_heap_gives_and_takes);
    tcase_add_test(all, the_device_heap_has_an_end);
    tcase_add_test(all, printing_follows_the_format);
    tcase_add_test(all, seeds_change_the_order_only);
    tcase_add_test(all, a_run_goes_on_where_it_stopped);
    tcase_add_test(all, a_run_may_end_in_the_midst_of_calls);
    tcase_add_test(all, all_blocks_of_a_cooperative_launch_are_resident);
    tcase_set_timeout(all, 60);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
