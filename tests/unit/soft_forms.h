/* SPDX-License-Identifier: MIT */
/*
 * One small kernel for each form of instruction, with 64 threads of awkward operands. soft_forms.txt has the forms and
 * what an H200 answers: a digest of the 64 results, or the results themselves where only closeness is asked for.
 * Shared by test_soft_forms.c, which runs them on the soft driver's engine, and tests/conformance/record_forms.c,
 * which runs them on a GPU and writes the file.
 *
 * A line is: kind set compare instructions | answer. Kind is the result's register: h %dh, w %d, q %dq, f %df, d %dd,
 * p %p. Set is the operands': i integers, z the same without divisors of zero, s small second and third ones, f, d
 * floating, t angles, m floats of ordinary size, e halves, k the same of ordinary size. Compare is = or ~.
 */
#ifndef SOFT_FORMS_H
#define SOFT_FORMS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORM_THREADS 64
#define FORM_SOURCES 4
#define FORM_MEMORY 64 /* bytes of global memory that each thread has to itself */

struct form {
    char kind, set, compare;
    char *instructions;
    char *answer; /* NULL: not recorded */
};

struct forms {
    struct form *list;
    size_t count;
};

static inline char *form_copy(const char *text, size_t length)
{
    char *copy = malloc(length + 1);
    if (!copy)
        abort();
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

static inline struct forms forms_read(const char *path)
{
    struct forms forms = {NULL, 0};
    static char line[8192];
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || strlen(line) < 8)
            continue;
        char *bar = strrchr(line, '@');
        bool answered = bar && bar[1] == '=';
        size_t length = answered ? (size_t)(bar - line) - 1 : strlen(line);
        forms.list = realloc(forms.list, (forms.count + 1) * sizeof *forms.list);
        if (!forms.list)
            abort();
        forms.list[forms.count++] = (struct form){line[0], line[2], line[4], form_copy(line + 6, length - 6),
                                                  answered ? form_copy(bar + 2, strlen(bar + 2)) : NULL};
    }
    if (file)
        fclose(file);
    return forms;
}

static inline void forms_free(struct forms *forms)
{
    for (size_t i = 0; i < forms->count; i++) {
        free(forms->list[i].instructions);
        free(forms->list[i].answer);
    }
    free(forms->list);
}

/* --- operands --- */

static const uint64_t form_integers[] = {
    0,
    1,
    2,
    3,
    7,
    31,
    32,
    33,
    63,
    64,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x10000,
    0x7fffffff,
    0x80000000,
    0xffffffff,
    0x100000000,
    0x12345678,
    0x89abcdef,
    0xdeadbeefcafef00d,
    0x7fffffffffffffff,
    0x8000000000000000,
    0xffffffffffffffff,
    0xfffffffffffffffe,
    0xffffffff80000000,
    0x0123456789abcdef,
    0xfedcba9876543210,
    0x5555555555555555,
    0xaaaaaaaaaaaaaaaa,
    0x00ff00ff00ff00ff,
    0xfffffffffffffff9,
    100,
    0xffffffffffffff9c,
    1000003,
};
static const uint32_t form_floats[] = {
    0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x3fc00000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff,
    0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f812345, 0xffc12345,
    0x3dcccccd, 0x3eaaaaab, 0x40200000, 0x40600000, 0xc0200000, 0x3f000000, 0xbf000000, 0x501502f9, 0xd01502f9,
    0x4f000000, 0x4f800000, 0xbe99999a, 0x4b800001, 0x40490fdb, 0x1e3ce508, 0x60ad78ec, 0x437f8000, 0xc3008000,
    0x477fffb3, 0x5f000000, 0x5f800000, 0xdf000001, 0x34000000, 0x3f7fffff, 0x3f800001, 0x00400000, 0x01000000,
};
static const uint64_t form_doubles[] = {
    0, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x3ff8000000000000, 1, 0x8000000000000001,
    0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000,
    0xfff0000000000000, 0x3fb999999999999a, 0x3fd5555555555555, 0x4004000000000000, 0x400c000000000000,
    0xc004000000000000, 0x3fe0000000000000, 0xbfe0000000000000, 0x41dfffffffc00000, 0x41e0000000000000,
    0xc1e0000000200000, 0x41f0000000000000, 0x43e0000000000000, 0x43f0000000000000, 0xc3e0000000000000,
    0x3ff0000010000000, 0x3ff0000030000000, 0x3ff000002fffffff, 0x36a0000000000000, 0x369fffffffffffff,
    0x380fffffe0000000, 0x380ffffff0000000, 0x47efffffe0000000, 0x47effffff0000000, 0x47f0000000000000,
    0x400921fb54442d18, 0x406fffffffffffff, 0xc060200000000000, 0x3cb0000000000000, 0x3ff0000000000001,
    0x3fefffffffffffff, 0x408f400000000000, 0x40efffe000000000,
};

/* Of 16 bits, awkward as f16 or as bf16. */
static const uint16_t form_halves[] = {
    0x0000, 0x8000, 0x3c00, 0xbc00, 0x3c01, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x7bff, 0xfbff,
    0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 0x3800, 0xb800, 0x3555, 0x4248, 0x4000, 0x6800, 0x6801, 0x1000,
    0x0200, 0x3e00, 0x4100, 0xc100, 0x7bfe, 0x5640, 0x3f80, 0xbf80, 0x3f81, 0x007f, 0x0080, 0x8080, 0x7f7f,
    0xff7f, 0x7f80, 0xff80, 0x7fc0, 0x3f00, 0x4049, 0x3eab, 0x4300, 0x1e3d, 0x60ad, 0x5f00, 0x2f80,
};

static inline uint64_t form_half(unsigned at)
{
    uint64_t four = 0;
    for (unsigned i = 0; i < 4; i++, at = at * 7 + 3)
        four |= (uint64_t)form_halves[at % (sizeof form_halves / sizeof form_halves[0])] << 16 * i;
    return four;
}

static inline uint64_t form_number(char set, unsigned thread, unsigned source)
{
    static const unsigned steps[FORM_SOURCES] = {1, 5, 11, 17}, starts[FORM_SOURCES] = {0, 3, 7, 2};
    unsigned at = thread * steps[source] + starts[source];
    float number;
    uint32_t bits;
    switch (set) {
    case 'f':
        return form_floats[at % (sizeof form_floats / sizeof form_floats[0])];
    case 'd':
        return form_doubles[at % (sizeof form_doubles / sizeof form_doubles[0])];
    case 'e':
        return form_half(at);
    case 'k': /* of ordinary size */
        return at % 48 << 8 | (at * 37 & 0xff) | (uint64_t)(at & 1) << 15 | (uint64_t)0x3c00 << 16;
    case 't':
        number = ((int)thread - 32) * 0.098f;
        memcpy(&bits, &number, sizeof bits);
        return bits;
    case 'm':
        number = ((int)(at % 64) - 31.5f) * (source ? 0.37f : 1.7f) * (at % 5 == 0 ? 1e6f : 1.0f);
        memcpy(&bits, &number, sizeof bits);
        return bits;
    case 's':
        if (source > 0)
            return at % 71;
        break;
    default:
        break;
    }
    uint64_t value = form_integers[at % (sizeof form_integers / sizeof form_integers[0])];
    if (set == 'z' && source == 1 && ((value & 0xffff) == 0 || (value & 0xffffffff) == 0))
        value = 77;
    return value;
}

static inline void form_inputs(char set, uint64_t inputs[FORM_THREADS][FORM_SOURCES])
{
    for (unsigned thread = 0; thread < FORM_THREADS; thread++)
        for (unsigned source = 0; source < FORM_SOURCES; source++)
            inputs[thread][source] = form_number(set, thread, source);
}

/* Results begin as this, so that what a guarded instruction leaves alone is seen. */
#define FORM_UNTOUCHED "0x0badcafe"

static const char form_head[] =
    ".version 8.1\n.target sm_90\n.address_size 64\n"
    ".const .align 4 .u32 ctable[4] = {11, 0x22222222, 4294967295, 44};\n"
    ".global .align 4 .b8 gtable[32] = {1,2,3,4, 5,6,7,8, 9,10,11,12, 13,14,15,16, 255,254,253,252, 0,0,0,1};\n"
    ".global .align 8 .u64 gpointer[2] = {generic(gtable)+8, 77};\n"
    ".func (.param .b32 r) fsub(.param .b32 a, .param .b32 b)\n{\n.reg .b32 %x<3>;\nld.param.u32 %x0, [a];\n"
    "ld.param.u32 %x1, [b];\nsub.u32 %x2, %x0, %x1;\nst.param.b32 [r], %x2;\nret;\n}\n"
    ".func (.param .b32 r) fmul(.param .b32 a, .param .b32 b)\n{\n.reg .b32 %x<3>;\nld.param.u32 %x0, [a];\n"
    "ld.param.u32 %x1, [b];\nmul.lo.u32 %x2, %x0, %x1;\nst.param.b32 [r], %x2;\nret;\n}\n"
    ".func (.reg .b32 r) fadd3(.reg .b32 a, .reg .b32 b, .reg .b32 c)\n{\nadd.u32 r, a, b;\nadd.u32 r, r, c;\nret;\n}\n"
    ".func (.param .b64 r) fstruct(.param .align 8 .b8 s[24])\n{\n.reg .b64 %x<3>;\n.reg .b32 %y;\n"
    "ld.param.b64 %x0, [s];\nld.param.b32 %y, [s+12];\ncvt.u64.u32 %x1, %y;\nadd.u64 %x0, %x0, %x1;\n"
    "ld.param.b64 %x1, [s+16];\nxor.b64 %x0, %x0, %x1;\nst.param.b64 [r], %x0;\nret;\n}\n"
    ".func (.param .b32 r) frec(.param .b32 n)\n{\n.reg .b32 %x<4>;\n.reg .pred %s;\n"
    "ld.param.u32 %x0, [n];\nsetp.lt.u32 %s, %x0, 2;\nmov.u32 %x1, %x0;\n@%s bra $DONE;\n"
    "{\n.param .b32 p;\n.param .b32 q;\nsub.u32 %x2, %x0, 1;\nst.param.b32 [p], %x2;\ncall.uni (q), frec, (p);\n"
    "ld.param.b32 %x2, [q];\n}\nmad.lo.u32 %x1, %x2, 3, %x0;\n$DONE:\nst.param.b32 [r], %x1;\nret;\n}\n"
    ".global .align 8 .u64 ftable[2] = {fsub, fmul};\n";

static const char form_begin[] =
    "{\n.reg .b32 %a, %b, %c, %e, %d, %t;\n.reg .b64 %aq, %bq, %cq, %eq, %dq, %in, %out, %m, %tq, %sh;\n"
    ".reg .b16 %ah, %bh, %ch, %dh;\n.reg .f32 %af, %bf, %cf, %df;\n.reg .f64 %ad, %bd, %cd, %dd;\n.reg .pred %p, %q;\n"
    ".local .align 16 .b8 lo[32];\n.shared .align 16 .b8 sh[2048];\n"
    "ld.param.u64 %out, [o];\nld.param.u64 %in, [i];\nld.param.u64 %m, [g];\n"
    "cvta.to.global.u64 %out, %out;\ncvta.to.global.u64 %in, %in;\ncvta.to.global.u64 %m, %m;\n"
    "mov.u32 %t, %tid.x;\nmul.wide.u32 %tq, %t, 32;\nadd.u64 %in, %in, %tq;\nmov.u64 %sh, sh;\nadd.u64 %sh, %sh, %tq;\n"
    "mul.wide.u32 %tq, %t, 64;\nadd.u64 %m, %m, %tq;\nmul.wide.u32 %tq, %t, 8;\nadd.u64 %out, %out, %tq;\n"
    "ld.global.u64 %aq, [%in];\nld.global.u64 %bq, [%in+8];\nld.global.u64 %cq, [%in+16];\nld.global.u64 %eq, "
    "[%in+24];\n"
    "st.global.u64 [%m], %aq;\nst.global.u64 [%m+8], %bq;\n"
    "cvt.u32.u64 %a, %aq;\ncvt.u32.u64 %b, %bq;\ncvt.u32.u64 %c, %cq;\ncvt.u32.u64 %e, %eq;\n"
    "cvt.u16.u64 %ah, %aq;\ncvt.u16.u64 %bh, %bq;\ncvt.u16.u64 %ch, %cq;\n"
    "mov.b32 %af, %a;\nmov.b32 %bf, %b;\nmov.b32 %cf, %c;\nmov.b64 %ad, %aq;\nmov.b64 %bd, %bq;\nmov.b64 %cd, %cq;\n"
    "and.b32 %t, %a, 1;\nsetp.eq.u32 %p, %t, 1;\nand.b32 %t, %b, 1;\nsetp.eq.u32 %q, %t, 1;\n"
    "mov.u32 %d, " FORM_UNTOUCHED ";\nmov.u64 %dq, " FORM_UNTOUCHED ";\nmov.u16 %dh, 77;\nmov.b32 %df, %d;\n"
    "mov.b64 %dd, %dq;\n";

/* The text of kernel number `index` of a form. */
static inline void form_kernel(const struct form *form, size_t index, FILE *out)
{
    const char *end = form->kind == 'h'   ? "cvt.u64.u16 %dq, %dh;"
                      : form->kind == 'w' ? "cvt.u64.u32 %dq, %d;"
                      : form->kind == 'f' ? "mov.b32 %d, %df;\ncvt.u64.u32 %dq, %d;"
                      : form->kind == 'd' ? "mov.b64 %dq, %dd;"
                      : form->kind == 'p' ? "selp.u64 %dq, 1, 0, %p;"
                                          : "";
    fprintf(
        out,
        ".visible .entry f%zu(.param .u64 o, .param .u64 i, .param .u64 g)\n%s%s\n%s\nst.global.u64 [%%out], %%dq;\n"
        "ret;\n}\n",
        index, form_begin, form->instructions, end);
}

static inline char *forms_module(const struct forms *forms, size_t first, size_t count, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    if (!out)
        abort();
    fputs(form_head, out);
    for (size_t i = first; i < first + count && i < forms->count; i++)
        form_kernel(&forms->list[i], i, out);
    fclose(out);
    return text;
}

/* --- answers --- */

static inline void form_answer(const struct form *form, const uint64_t results[FORM_THREADS], char *text, size_t room)
{
    size_t length = 0;
    if (form->compare == '=') {
        uint64_t digest = UINT64_C(0xcbf29ce484222325);
        for (unsigned i = 0; i < FORM_THREADS; i++)
            for (unsigned byte = 0; byte < 8; byte++)
                digest = (digest ^ (results[i] >> 8 * byte & 0xff)) * UINT64_C(0x100000001b3);
        snprintf(text, room, "%016llx", (unsigned long long)digest);
        return;
    }
    for (unsigned i = 0; i < FORM_THREADS; i++)
        length +=
            (size_t)snprintf(text + length, room - length, "%s%llx", i ? " " : "", (unsigned long long)results[i]);
}

#endif
