/* SPDX-License-Identifier: MIT */
/*
 * Recursion through seventeen cases, where each lane has a way and a depth of its own: by a table of branches and by
 * comparisons as clang makes them, in whatever order a seed has lanes run.
 */
#include "soft_engine.h"

#include <stdarg.h>

#define CASES 17u
#define THREADS 96

/* What the module below computes. */
static uint32_t follow(uint32_t state, uint32_t depth)
{
    if (depth == 0)
        return state ^ 0x9e3779b9u;
    uint32_t k = state % CASES, next = state * (2 * k + 3) + k, result = follow(next, depth - 1);
    if (k == CASES - 1)
        result += follow(state + 1, depth / 2);
    return k % 3 == 0 ? result + state : k % 3 == 1 ? result ^ state : result * (2 * k + 1);
}

struct module {
    char text[32768];
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void say(struct module *module, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(module->text + module->length, sizeof module->text - module->length, format, arguments);
    va_end(arguments);
    ck_assert(length >= 0 && (size_t)length < sizeof module->text - module->length);
    module->length += (size_t)length;
}

static void say_call(struct module *module, const char *result, const char *state, const char *depth)
{
    say(module,
        "{\n.param .b32 s;\n.param .b32 d;\n.param .b32 x;\nst.param.b32 [s], %s;\nst.param.b32 [d], %s;\n"
        "call.uni (x), follow, (s, d);\nld.param.b32 %s, [x];\n}\n",
        state, depth, result);
}

static void say_case(struct module *module, uint32_t k)
{
    say(module, "$C%u: mad.lo.u32 %%n, %%s, %u, %u;\nsub.u32 %%m, %%d, 1;\n", k, 2 * k + 3, k);
    say_call(module, "%x", "%n", "%m");
    if (k == CASES - 1) {
        say(module, "add.u32 %%n, %%s, 1;\nshr.u32 %%m, %%d, 1;\n");
        say_call(module, "%y", "%n", "%m");
        say(module, "add.u32 %%x, %%x, %%y;\n");
    }
    if (k % 3 == 0)
        say(module, "add.u32 %%x, %%x, %%s;\n");
    else if (k % 3 == 1)
        say(module, "xor.b32 %%x, %%x, %%s;\n");
    else
        say(module, "mul.lo.u32 %%x, %%x, %u;\n", 2 * k + 1);
    say(module, "bra $E;\n");
}

/* Which case: one branch for all of them, or halves of what is left. */
static void say_switch(struct module *module, bool table)
{
    if (table) {
        say(module, "$T: .branchtargets ");
        for (uint32_t k = 0; k < CASES; k++)
            say(module, "%s$C%u", k ? ", " : "", k);
        say(module, ";\nbrx.idx %%k, $T;\n");
        return;
    }
    for (uint32_t size = 32; size > 1; size /= 2) /* a tree, as nodes of their first case and size */
        for (uint32_t first = 0; first < CASES; first += size) {
            uint32_t middle = first + size / 2;
            say(module, "$N%u_%u: ", size, first);
            if (middle < CASES)
                say(module, "setp.ge.u32 %%p, %%k, %u;\n@%%p bra $N%u_%u;\n", middle, size / 2, middle);
            say(module, "bra $N%u_%u;\n", size / 2, first);
        }
    for (uint32_t k = 0; k < CASES; k++)
        say(module, "$N1_%u: bra $C%u;\n", k, k);
}

static void make(struct module *module, bool table)
{
    module->length = 0;
    say(module, ".func (.param .b32 r) follow(.param .b32 s0, .param .b32 d0)\n{\n"
                ".reg .b32 %%s, %%d, %%k, %%n, %%m, %%x, %%y;\n.reg .pred %%p;\nld.param.b32 %%s, [s0];\nld.param.b32 %%d, [d0];\n"
                "xor.b32 %%x, %%s, 0x9e3779b9;\nsetp.eq.u32 %%p, %%d, 0;\n@%%p bra $E;\nrem.u32 %%k, %%s, %u;\n",
        CASES);
    say_switch(module, table);
    for (uint32_t k = 0; k < CASES; k++)
        say_case(module, k);
    say(module, "$E: st.param.b32 [r], %%x;\nret;\n}\n"
                ".visible .entry k(.param .u64 o)\n{\n.reg .b32 %%t, %%s, %%d, %%x;\n.reg .b64 %%o, %%a;\nmov.u32 %%t, %%tid.x;\nmul.lo.u32 %%s, %%t, 7919;\nrem.u32 %%d, %%t, 13;\n");
    say_call(module, "%x", "%s", "%d");
    say(module, "ld.param.u64 %%o, [o];\nmul.wide.u32 %%a, %%t, 4;\nadd.u64 %%a, %%a, %%o;\nst.global.u32 [%%a], %%x;\n"
                "ret;\n}\n");
}

START_TEST(every_lane_goes_its_way)
{
    static struct module module;
    struct engine engine;
    make(&module, _i);
    engine_open(&engine, module.text);
    hdsoft_range out = engine_allocate(&engine, THREADS * 4);
    for (uint64_t seed = 0; seed < 4; seed++) {
        engine.seed = seed;
        memset(out.host, 0, THREADS * 4);
        int code = engine_run(&engine, "k", 1, THREADS, &out.base);
        ck_assert_msg(code == 0, "%s", engine.fault.text);
        for (uint32_t t = 0; t < THREADS; t++)
            ck_assert_uint_eq(((const uint32_t *)(const void *)out.host)[t], follow(t * 7919, t % 13));
    }
    engine_close(&engine);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("soft_recursion");
    TCase *all = tcase_create("recursion");
    tcase_add_loop_test(all, every_lane_goes_its_way, 0, 2);
    tcase_set_timeout(all, 120);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
