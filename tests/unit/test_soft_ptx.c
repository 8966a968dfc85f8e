/* SPDX-License-Identifier: MIT */
/* The PTX parser: what it refuses and how it says so, what it finds in a module, and that no text breaks it. */
#include "soft_engine.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define IN_KERNEL(text)                                                                                                \
    HEAD ".visible .entry k(.param .u64 o)\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .pred %p<4>;\n.reg .f32 "     \
         "%f<4>;\n" text "\nret;\n}\n"

static int parse(const char *text, size_t size, unsigned capability, hdsoft_program **program, char *log, size_t room)
{
    hdsoft_text where = {log, room, 0};
    return hdsoft_program_parse(text, size, capability, program, &where);
}

struct refusal {
    const char *text;
    unsigned capability;
    int code;
    const char *says;
};

static const struct refusal refusals[] = {
    {"", 90, 218, "begins with .version"},
    {"hello", 90, 218, "begins with .version"},
    {".version 9.1\n.target sm_90\n", 90, 222, "PTX version 9.1"},
    {".version x\n", 90, 218, "needs a number"},
    {".version 7.0\n.address_size 64\n", 90, 218, "line 2: .target is expected"},
    {".version 7.0\n.target sm_90\n", 90, 218, "sm_90 needs PTX version 7.8, the code is of 7.0"},
    {".version 8.0\n.target sm_90\n", 80, 209, "the code is for sm_90, the device has compute capability 8.0"},
    {".version 8.0\n.target sm_80a\n", 90, 209, "sm_80a"},
    {".version 8.0\n.target sm_80\n.address_size 32\n", 90, 218, "must be 64"},
    {HEAD ".visible .entry k(\n", 90, 218, "line 5"},
    {HEAD ".visible .entry k()\n{\n", 90, 218, "a function is not closed"},
    {HEAD "/* open", 90, 218, "a comment is not closed"},
    {HEAD ".pragma \"open;\n", 90, 218, "a string is not closed"},
    {HEAD ".nonsense x;\n", 90, 218, "'.nonsense' is not known"},
    {HEAD ".global .u32 a;\n.global .u32 a;\n", 90, 218, "'a' is declared twice"},
    {HEAD ".func f()\n{\nret;\n}\n.entry f()\n{\nret;\n}\n", 90, 218, "'f' is declared twice"},
    {HEAD ".func f()\n{\nret;\n}\n.func f()\n{\nret;\n}\n", 90, 218, "'f' is defined twice"},
    {HEAD ".func f(.param .b32 a)\n{\nret;\n}\n.func f(.param .b64 a);\n", 90, 218, "with other parameters before"},
    {HEAD ".func (.param .b32 r) f()\n{\nret;\n}\n.func f(.param .b32 a);\n", 90, 218,
     "with other parameters before"},
    {HEAD ".global .u32 a[2] = {1, 2, 3};\n", 90, 218, "too many elements"},
    {HEAD ".global .u32 a = b;\n", 90, 218, "'b' cannot be in an initialiser"},
    {HEAD ".global .u32 a[99999999999999];\n", 90, 218, "too large"},
    {HEAD ".global .align 3 .u32 a;\n", 90, 218, "power of two"},
    {HEAD ".global .u32 a[1/0];\n", 90, 218, "divides by zero"},
    {HEAD ".extern .global .u32 a[];\n.entry k()\n{\n.reg .b32 %r1;\nld.global.u32 %r1, [a];\nret;\n}\n", 90, 218,
     "unresolved extern variable 'a'"},
    {HEAD ".extern .func f();\n.entry k()\n{\ncall f, ();\nret;\n}\n", 90, 218, "unresolved extern function 'f'"},
    {HEAD ".extern .func (.param .b32 r) vprintf (.param .b32 f);\n.entry k()\n{\n.reg .b32 %r1;\ncall (%r1), vprintf, "
          "(%r1);\nret;\n}\n",
     90, 218, "unresolved extern function 'vprintf'"},
    {HEAD ".func f(.reg .b32 a)\n{\nret;\n}\n.entry k()\n{\ncall f, ();\nret;\n}\n", 90, 218,
     "passes other parameters"},
    {IN_KERNEL("add.u32 %r1, %r2, %r10;"), 90, 218, "line 10: '%r10' is not declared"},
    {IN_KERNEL("add.u32 %r1, %r2, %rd1;"), 90, 218, "operand 3 of 'add' has 64 bits, expected 32"},
    {IN_KERNEL("add.u32 5, %r2, %r1;"), 90, 218, "operand 1 of 'add' must be a register"},
    {IN_KERNEL("@%r1 bra $L;\n$L:"), 90, 218, "must be a predicate"},
    {IN_KERNEL("bra $L;"), 90, 218, "label '$L' is not defined"},
    {IN_KERNEL("{\n$L:\n}\nbra $L;"), 90, 218, "label '$L' is not defined"},
    {IN_KERNEL("$L:\n$L:"), 90, 218, "defined twice"},
    {IN_KERNEL("ld.param.u64 %rd1, [o+4];"), 90, 218, "outside of the parameter's 8"},
    {IN_KERNEL("add.u32 %r1, %r2, 0x;"), 90, 218, "no digits"},
    {IN_KERNEL("add.u32 %r1, %r2, 99999999999999999999;"), 90, 218, "64 bits"},
    {IN_KERNEL("add.u32 %r1, %r2, 12ab;"), 90, 218, "runs into a name"},
    {IN_KERNEL("add.u32 %r1 %r2, 1;"), 90, 218, "';' is expected, not '%r2'"},
    {IN_KERNEL("setp.lt.u32 %r1, %r2, 1;"), 90, 218, "must be a predicate"},
    {IN_KERNEL("{ .pragma \"nounroll\" }"), 90, 218, "line 10: ';' is expected, not '}'"},
    {IN_KERNEL("{ nobody.knows.this %r1\n}"), 90, 218, "line 11: ';' is expected, not '}'"},
    {IN_KERNEL("{ p: .callprototype _ ()\n}"), 90, 218, "line 11: ';' is expected, not '}'"},
    {HEAD ".pragma \"open\"\n", 90, 218, "';' is expected before the end of the text"},
};

START_TEST(refusals_say_why_and_where)
{
    const struct refusal *refusal = &refusals[_i];
    char log[512];
    hdsoft_program *program = NULL;
    int code = parse(refusal->text, strlen(refusal->text), refusal->capability, &program, log, sizeof log);
    ck_assert_msg(code == refusal->code, "%.60s: %d (%s), expected %d", refusal->text, code, log, refusal->code);
    ck_assert_ptr_null(program);
    ck_assert_msg(strstr(log, refusal->says) != NULL, "'%s' does not say '%s'", log, refusal->says);
}
END_TEST

static const char *const unfinished[] = {
    "ret", "exit", "trap", "bar.sync 0", "bra $L", "call f, ()", "mov.u32 %r1, %r2", "ld.param.u64 %rd1, [o]",
    "st.global.u32 [%rd1], %r1", "@%p1 ret", "@%p1 bra $L", "membar.gl", "fence.acq_rel.gpu", "nanosleep.u32 5",
    "setp.lt.u32 %p1, %r1, 2", "prmt.b32 %r1, %r2, %r3, 5", "atom.global.add.u32 %r1, [%rd1], 1",
    "ld.global.v2.u32 {%r1, %r2}, [%rd1]", ".reg .b32 %x", ".reg .b32 %y<3>", ".shared .align 4 .b8 s[4]",
    ".local .align 4 .b8 l[4]", ".param .b64 q", ".pragma \"nounroll\"", "unknown.op %r1", "brkpt", "pmevent 1",
};

/* Every kind of statement before its block's end: taken with its ';', refused without, with the line of the '}'. */
START_TEST(a_statement_without_its_end_is_refused)
{
    char text[512], log[512];
    hdsoft_program *program = NULL;
    for (int ended = 0; ended < 2; ended++) {
        snprintf(text, sizeof text,
                 HEAD ".func f()\n{\nret;\n}\n.entry k(.param .u64 o)\n{\n.reg .b32 %%r<9>;\n"
                 ".reg .b64 %%rd<9>;\n.reg .pred %%p<4>;\n$L:\n{ %s%s\n}\nret;\n}\n", unfinished[_i], ended ? ";" : "");
        int code = parse(text, strlen(text), 90, &program, log, sizeof log);
        if (ended) {
            ck_assert_msg(code == 0, "%s: %s", unfinished[_i], log);
            hdsoft_program_destroy(program);
        } else {
            ck_assert_msg(code == 218, "%s: %d (%s)", unfinished[_i], code, log);
            ck_assert_msg(strstr(log, "line 15: ") && strstr(log, "not '}'"), "%s: %s", unfinished[_i], log);
        }
    }
}
END_TEST

/* What front ends write, taken or skipped without a word. */
static const char *const accepted[] = {
    HEAD,
    HEAD "//\n/* two\nlines */\n\t// .globl k\n",
    ".version 7.8\r\n.target sm_70, texmode_independent, debug\r\n.address_size 64\r\n",
    HEAD ".file 1 \"/a b/c.cu\", 1700000000, 1234\n.section .debug_str\n{\n$L__info_string0:\n.b8 95,90,0\n}\n.section "
         ".debug_abbrev { .b8 1 }\n",
    HEAD ".weak .shared .align 4 .b8 s[4];\n.visible .const .align 4 .f32 c[2] = {0f3F800000, 1.5};\n.global "
         ".attribute(.managed) .u32 m;\n",
    HEAD ".visible .global .texref t;\n.global .samplerref s;\n.weak .global .u32 w;\n.weak .global .u32 w;\n",
    HEAD ".visible .entry k(.param .u64 .ptr .global .align 1 o, .param .align 8 .b8 s[16])\n.maxntid 256, 1, "
         "1\n.minnctapersm 2\n.maxnreg 64\n{\n.pragma \"nounroll\";\nret;\n}\n",
    HEAD ".func (.param .b64 r) f(.param .b64 a, .param .align 4 .b8 b[12]) .noreturn;\n.visible .func (.param .b64 r) "
         "f(.param .b64 a, .param .align 4 .b8 b[12])\n{\nret;\n}\n",
    HEAD ".extern .global .u32 a;\n.entry k()\n{\n.reg .b32 %r1;\nld.global.u32 %r1, [a];\nret;\n}\n",
    IN_KERNEL("ld.global.L1::evict_last.L2::128B.v2.b32 {%r1, %r2}, [%rd1+16];"),
    IN_KERNEL("{ .reg .pred %p1; setp.lt.s32 %p1, %r1, -1; @!%p1 bra.uni $X; $X: }"),
    IN_KERNEL("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f1}, [%rd1, {%f1, %f2}];"),
    IN_KERNEL("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%rd1], %r1;"),
    IN_KERNEL("add.u32 %r1, %r2, (1 << 4) + -3 * 2 | 0x40;\nmov.b32 %r1, 0f3F800000;\nmov.f32 %f1, -1.25e2;"),
    IN_KERNEL("mov.u64 %rd1, k;\nmov.u32 %r1, WARP_SZ;\nmov.u32 %r2, %tid.x;"),
};

START_TEST(dialects_are_taken)
{
    char log[512];
    hdsoft_program *program;
    const char *text = accepted[_i];
    int code = parse(text, strlen(text) + 1, 90, &program, log, sizeof log);
    ck_assert_msg(code == 0, "%s: %s", text, log);
    hdsoft_program_destroy(program);
}
END_TEST

START_TEST(entries_are_described)
{
    static const char text[] = HEAD
        ".shared .align 4 .b8 other[400];\n.entry first()\n.reqntid 32, 4\n{\nst.shared.u32 [other], 1;\nret;\n}\n"
        ".entry second(.param .s16 a, .param .f64 b)\n.maxntid 512\n{\n.local .align 16 .b8 l[20];\n"
        ".shared .align 8 .b8 s[24];\n.reg .b64 %rd<40>;\n.reg .b32 %r<40>;\nst.shared.u32 [s], 1;\nmov.u64 %rd1, "
        "1;\nmov.u64 %rd2, 2;\n"
        "mov.u64 %rd3, 3;\nadd.u64 %rd4, %rd1, %rd2;\nadd.u64 %rd5, %rd4, %rd3;\nst.local.u64 [l], %rd5;\nret;\n}\n";
    char log[512];
    hdsoft_program *program;
    ck_assert_msg(parse(text, sizeof text, 90, &program, log, sizeof log) == 0, "%s", log);
    ck_assert_uint_eq(hdsoft_program_entry_count(program), 2);
    const hdsoft_entry *first = hdsoft_program_entry(program, 0),
                       *second = hdsoft_program_find_entry(program, "second");
    ck_assert_ptr_null(hdsoft_program_entry(program, 2));
    ck_assert_ptr_null(hdsoft_program_find_entry(program, "third"));
    ck_assert_str_eq(first->name, "first");
    ck_assert_uint_eq(first->max_threads, 128);
    ck_assert_uint_eq(first->required_block[1], 4);
    ck_assert_uint_eq(first->required_block[2], 1);
    ck_assert_uint_eq(first->static_shared_bytes, 400);
    ck_assert_uint_eq(second->max_threads, 512);
    ck_assert_uint_eq(second->required_block[0], 0);
    ck_assert_uint_eq(second->static_shared_bytes, 24);
    ck_assert_uint_eq(second->local_bytes, 20);
    ck_assert_uint_eq(second->parameter_count, 2);
    ck_assert_uint_eq(second->parameters[1].offset, 8);
    ck_assert_int_eq(second->parameters[0].kind, 'i');
    ck_assert_int_eq(second->parameters[1].kind, 'f');
    ck_assert_uint_ge(second->register_count, 6);
    ck_assert_uint_le(second->register_count, 24); /* what lives, not the 120 units declared */
    hdsoft_program_destroy(program);
}
END_TEST

/* Registers are given slots by what lives: a long chain of temporaries must not take a slot each. */
START_TEST(slots_are_shared)
{
    char *text = NULL, log[512];
    size_t size;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    fputs(HEAD ".entry k(.param .u64 o)\n{\n.reg .b32 %r<3001>;\nmov.u32 %r0, 1;\n", out);
    for (int i = 1; i <= 3000; i++)
        fprintf(out, "add.u32 %%r%d, %%r%d, %d;\n", i, i - 1, i % 7);
    fputs("ret;\n}\n", out);
    fclose(out);
    hdsoft_program *program;
    ck_assert_msg(parse(text, size, 90, &program, log, sizeof log) == 0, "%s", log);
    ck_assert_uint_le(program->functions[0].frame_bytes, 1024);
    hdsoft_program_destroy(program);
    free(text);
}
END_TEST

/* --- hostile texts --- */

static const char sample[] = HEAD
    ".file 1 \"x.cu\"\n.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
    ".global .align 4 .u32 g[2][3] = {{1, 2}, {0xFF(h), 5}};\n.global .u32 h = 7;\n.const .f64 d[2] = {1.5, "
    "0d3FF0000000000000};\n"
    ".extern .shared .align 16 .b8 x[];\n"
    ".func (.param .b32 r) f(.param .b32 a, .param .align 8 .b8 s[16])\n{\n.reg .b32 %r<4>;\nld.param.u32 %r1, [a];\n"
    "st.param.b32 [r], %r1;\nret;\n}\n"
    ".visible .entry k(.param .u64 o, .param .f32 v) .maxntid 64\n{\n.local .align 8 .b8 l[32];\n.reg .pred "
    "%p<4>;\n.reg .b32 %r<20>;\n"
    ".reg .b64 %rd<10>;\n.reg .f32 %f<5>;\n.loc 1 3 5\nld.param.u64 %rd1, [o];\ncvta.to.global.u64 %rd1, "
    "%rd1;\nmov.u32 %r1, %tid.x;\n"
    "mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\nsetp.lt.and.s32 %p1|%p2, %r1, 5, !%p3;\n@!%p1 bra $L1;\n"
    "{\n.param .b32 p0;\n.param .align 8 .b8 p1[16];\n.param .b32 r0;\nst.param.v2.b32 [p1+8], {%r1, "
    "%r2};\nst.param.b32 [p0], %r1;\n"
    "call.uni (r0), f, (p0, p1);\nld.param.b32 %r3, [r0];\n}\n$T: .branchtargets $L1, $L2;\nbrx.idx %r1, $T;\n$L1: "
    "fma.rz.ftz.sat.f32 %f1, %f2, 0f3F800000, 1.5e-3;\n"
    "mov.b64 {%r4, %r5}, %rd2;\natom.global.cas.b32 %r6, [%rd3+-4], %r1, 0x10;\nshfl.sync.idx.b32 %r7|%p2, %r1, %r2, "
    "31, -1;\nbar.red.popc.u32 %r8, 0, %p1;\n"
    "$L2: ld.local.v4.u32 {%r1, _, %r3, %r4}, [l+16];\nunknown.op.x %r1, {%r2, [%rd1]}, \"s\";\nret;\n}\n.section "
    ".debug { .b8 1, 2 }\n";

static void feed(const char *text, size_t size)
{
    char log[256];
    hdsoft_program *program;
    char *exact = malloc(size ? size : 1); /* so that reading past the end is seen */
    ck_assert_ptr_nonnull(exact);
    memcpy(exact, text, size);
    if (parse(exact, size, 90, &program, log, sizeof log) == 0)
        hdsoft_program_destroy(program);
    free(exact);
}

START_TEST(every_beginning_of_a_module_is_survived)
{
    for (size_t size = 0; size <= sizeof sample; size++)
        feed(sample, size);
}
END_TEST

START_TEST(damage_is_survived)
{
    static const char signs[] = ";{}()[],.@|!+-*/%<>=:_$\"0x9\n \0";
    char text[2 * sizeof sample];
    uint32_t random = 12345;
    for (int round = 0; round < 6000; round++) {
        size_t size = sizeof sample - 1;
        memcpy(text, sample, size);
        for (int change = 0; change < 1 + round % 4; change++) {
            random = random * 1664525u + 1013904223u;
            size_t at = random % size, length = 1 + (random >> 20) % 12;
            switch (random >> 28 & 3) {
            case 0:
                text[at] = signs[(random >> 8) % sizeof signs];
                break;
            case 1: /* cut out */
                length = at + length > size ? size - at : length;
                memmove(text + at, text + at + length, size - at - length);
                size -= length;
                break;
            case 2: { /* repeat a piece elsewhere */
                size_t from = (random >> 4) % (size - 20);
                memmove(text + at + 20, text + at, size - at);
                memmove(text + at, text + (from < at ? from : from + 20), 20);
                size += 20;
                break;
            }
            default:
                text[at] = (char)(random >> 9);
            }
        }
        feed(text, size);
    }
}
END_TEST

START_TEST(deep_nesting_is_refused)
{
    static const struct {
        const char *before, *repeated;
    } deep[] = {{HEAD ".entry k()\n{\n", "{"},      {HEAD ".global .u32 a = ", "("},
                {HEAD ".global .u32 a = ", "-"},    {HEAD ".global .u32 a = ", "1?"},
                {HEAD ".global .u32 a[2] = ", "{"}, {HEAD ".global .u32 a = ", "1+("}};
    for (size_t i = 0; i < sizeof deep / sizeof deep[0]; i++) {
        char log[256], *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        ck_assert_ptr_nonnull(out);
        fputs(deep[i].before, out);
        for (int n = 0; n < 100000; n++)
            fputs(deep[i].repeated, out);
        fclose(out);
        hdsoft_program *program;
        ck_assert_int_eq(parse(text, size, 90, &program, log, sizeof log), 218);
        free(text);
    }
}
END_TEST

/* A few bytes of text must not ask for much memory. */
START_TEST(small_texts_take_little_memory)
{
    static const char *const small[] = {
        HEAD ".entry k()\n{\n.reg .b32 %r<4000000000>;\nmov.u32 %r3999999999, 1;\nret;\n}\n",
        HEAD ".global .u32 a[2][500000000] = {{1}, {2}};\n",
        HEAD ".func f(.param .b8 a[4000000000])\n{\nret;\n}\n",
        HEAD ".entry k()\n{\n.local .b8 a[4000000000];\nret;\n}\n",
        HEAD ".shared .b8 a[4000000000];\n",
    };
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
        feed(small[i], strlen(small[i]));
}
END_TEST

#define COUNT(list) ((int)(sizeof(list) / sizeof(list)[0]))

int main(void)
{
    Suite *suite = suite_create("soft_ptx");
    TCase *all = tcase_create("ptx");
    tcase_add_loop_test(all, refusals_say_why_and_where, 0, COUNT(refusals));
    tcase_add_loop_test(all, a_statement_without_its_end_is_refused, 0, COUNT(unfinished));
    tcase_add_loop_test(all, dialects_are_taken, 0, COUNT(accepted));
    tcase_add_test(all, entries_are_described);
    tcase_add_test(all, slots_are_shared);
    tcase_add_test(all, every_beginning_of_a_module_is_survived);
    tcase_add_test(all, damage_is_survived);
    tcase_add_test(all, deep_nesting_is_refused);
    tcase_add_test(all, small_texts_take_little_memory);
    tcase_set_timeout(all, 120);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
