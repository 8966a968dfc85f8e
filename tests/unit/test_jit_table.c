/* SPDX-License-Identifier: MIT */
/* Kernel tables: the reader of PTX declarations, the reader of cubins (made here by hand), their cache form. */
#include <hdrt.h>

#include <check.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "failing_malloc.h"
#include "jit/kernel.h"
#include "jit/kernel_table.h"

static const char header[] = ".version 8.0\n.target sm_90\n.address_size 64\n";

static hdrt_status read_ptx(const char *body, hdrt__kernel_table *table)
{
    char text[4096];
    snprintf(text, sizeof text, "%s%s", header, body);
    return hdrt__kernel_table_from_ptx(text, strlen(text), table);
}

/* ---- PTX -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *declaration;
    uint32_t size, align, argument_class;
} parameters[] = {
    {".param .u32 p", 4, 4, HDRT_CLASS_INTEGER},
    {".param .s64 p", 8, 8, HDRT_CLASS_INTEGER},
    {".param .u8 p", 1, 1, HDRT_CLASS_INTEGER},
    {".param .f32 p", 4, 4, HDRT_CLASS_FLOAT},
    {".param .f64 p", 8, 8, HDRT_CLASS_FLOAT},
    {".param .b32 p", 4, 4, HDRT_CLASS_UNKNOWN},
    {".param .b64 p", 8, 8, HDRT_CLASS_UNKNOWN},
    {".param .u64 .ptr .global .align 16 p", 8, 8, HDRT_CLASS_INTEGER},
    {".param .u64 .ptr .align 1 p", 8, 8, HDRT_CLASS_INTEGER},
    {".param .align 4 .b8 p[12]", 12, 4, HDRT_CLASS_UNKNOWN},
    {".param .align 16 .b8 p[0x20]", 32, 16, HDRT_CLASS_UNKNOWN},
    {".param .align 8 .f64 p[4]", 32, 8, HDRT_CLASS_UNKNOWN},
    {".param .b8 p[2][3]", 6, 1, HDRT_CLASS_UNKNOWN},
    {".param .v2 .f32 p", 8, 8, HDRT_CLASS_UNKNOWN},
    {".param .f16 p", 2, 2, HDRT_CLASS_UNKNOWN},
    {".param .u32 /* comment */ p // to the end", 4, 4, HDRT_CLASS_INTEGER},
};

START_TEST(ptx_parameter)
{
    hdrt__kernel_table table;
    char body[256];
    snprintf(body, sizeof body, ".visible .entry k(%s\n)\n{ ret; }\n", parameters[_i].declaration);
    ck_assert_int_eq(read_ptx(body, &table), HDRT_OK);
    ck_assert_uint_eq(table.kernel_count, 1);
    ck_assert_str_eq(table.kernels[0].name, "k");
    ck_assert_msg(table.kernels[0].parameters_known, "%s", parameters[_i].declaration);
    ck_assert_uint_eq(table.kernels[0].parameter_count, 1);
    ck_assert_uint_eq(table.kernels[0].parameters[0].offset, 0);
    ck_assert_uint_eq(table.kernels[0].parameters[0].size, parameters[_i].size);
    ck_assert_uint_eq(table.kernels[0].parameters[0].align, parameters[_i].align);
    ck_assert_uint_eq(table.kernels[0].parameters[0].argument_class, parameters[_i].argument_class);
    hdrt__kernel_table_free(&table);
}
END_TEST

/* Declarations whose size cannot be known must not be guessed. */
static const char *const unreadable[] = {
    ".param .mystery p", ".param .u32 p[n]", ".param .align 3 .b8 p[4]", ".param .u64 p[]", ".param .u64",
    ".param .b8 p[18446744073709551615][2]", ".param .b8 p[4294967296]", ".param .b64 p[99999999999999999999]",
};

START_TEST(ptx_parameter_that_cannot_be_read)
{
    hdrt__kernel_table table;
    char body[256];
    snprintf(body, sizeof body, ".entry k(.param .u32 a, %s, .param .u32 z) { ret; }\n.entry next() { ret; }\n",
             unreadable[_i]);
    ck_assert_int_eq(read_ptx(body, &table), HDRT_OK);
    ck_assert_uint_eq(table.kernel_count, 2);
    ck_assert_msg(!table.kernels[0].parameters_known, "%s", unreadable[_i]);
    ck_assert(table.kernels[1].parameters_known);
    hdrt__kernel_table_free(&table);
}
END_TEST

START_TEST(ptx_offsets_follow_alignment)
{
    hdrt__kernel_table table;
    static const uint32_t offsets[] = {0, 4, 8, 16, 20, 24, 40};
    ck_assert_int_eq(read_ptx(".visible .entry k(.param .u8 a, .param .f32 b, .param .f64 c, .param .u16 d,\n"
                              " .param .u32 e, .param .align 8 .b8 f[16], .param .u64 g) { ret; }", &table), HDRT_OK);
    ck_assert_uint_eq(table.kernels[0].parameter_count, 7);
    for (unsigned i = 0; i < 7; i++)
        ck_assert_uint_eq(table.kernels[0].parameters[i].offset, offsets[i]);
    hdrt__kernel_table_free(&table);
}
END_TEST

START_TEST(ptx_bodies_are_skipped)
{
    hdrt__kernel_table table;
    hdrt__buffer names = HDRT__BUFFER_INIT;
    ck_assert_int_eq(read_ptx(
        "// .entry commented()\n/* .entry too() { */\n.file 1 \"a } .entry quoted() { b\"\n"
        ".section .debug_str { .b8 1, 2 }\n"
        ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
        ".func (.param .b32 r) helper(.param .b32 x) { { .reg .b32 %r<2>; } ret; }\n"
        ".visible .entry first(.param .u32 a)\n.maxntid 256, 1, 1\n.minnctapersm 2\n{\n"
        "  { // callseq 0, 0\n .param .b64 param0;\n call.uni (retval0), vprintf, (param0, param1);\n }\n"
        "  .global .u32 inner;\n ret;\n}\n"
        ".weak .entry second { ret; }\n"
        ".entry third(\n);\n.entry third(\n) { ret; }\n", &table), HDRT_OK);
    ck_assert_uint_eq(table.kernel_count, 3);
    ck_assert_uint_eq(table.variable_count, 0);
    ck_assert(!table.writable_variables);
    hdrt__kernel_table_names(&table, &names);
    ck_assert_str_eq((char *)names.bytes, "'first', 'second' and 'third'");
    uint32_t index;
    ck_assert_ptr_nonnull(hdrt__kernel_table_find(&table, "second", &index));
    ck_assert_uint_eq(index, 1);
    ck_assert_ptr_null(hdrt__kernel_table_find(&table, "secon", NULL));
    hdrt__buffer_free(&names);
    hdrt__kernel_table_free(&table);
}
END_TEST

static const struct {
    const char *text;
    bool writable;
    unsigned count;
    const char *first;
    uint64_t bytes;
} variables[] = {
    {".global .align 4 .u32 counter;", true, 1, "counter", 4},
    {".visible .const .align 16 .b8 lut[64] = {1, 2, 3};", true, 1, "lut", 64},
    {".global .align 1 .b8 $str[4] = {104, 105, 10};", false, 1, "$str", 4},
    {".global .align 1 .b8 _$_str$1[4] = {104, 105, 10};", false, 1, "_$_str$1", 4},
    {".extern .global .align 4 .b8 there[];", true, 1, "there", 0},
    {".global .u32 a = 1, b[2] = {1, 2}, c;", true, 3, "a", 4},
    {".global .attribute(.managed) .align 8 .b64 m;", true, 1, "m", 8},
    {".global .u64 p = generic(other);", true, 1, "p", 8},
    {".global .texref t;", true, 1, "t", 8},
    {".shared .align 4 .b8 tile[1024];", false, 0, NULL, 0},
};

START_TEST(ptx_variables)
{
    hdrt__kernel_table table;
    ck_assert_int_eq(read_ptx(variables[_i].text, &table), HDRT_OK);
    ck_assert_uint_eq(table.variable_count, variables[_i].count);
    ck_assert_int_eq(table.writable_variables, variables[_i].writable);
    if (variables[_i].count) {
        ck_assert_str_eq(table.variables[0].name, variables[_i].first);
        ck_assert_uint_eq(table.variables[0].bytes, variables[_i].bytes);
    }
    hdrt__kernel_table_free(&table);
}
END_TEST

START_TEST(ptx_that_is_none)
{
    hdrt__kernel_table table;
    ck_assert_int_eq(hdrt__kernel_table_from_ptx("", 0, &table), HDRT_ERROR_INVALID_IMAGE);
    ck_assert_int_eq(hdrt__kernel_table_from_ptx("int main() {}", 13, &table), HDRT_ERROR_INVALID_IMAGE);
    ck_assert_int_eq(read_ptx(".entry k(.param .u32 a) {\n ret;\n", &table), HDRT_ERROR_INVALID_IMAGE);
    ck_assert_msg(strstr(hdrt_last_error(), "line 4"), "%s", hdrt_last_error());
    ck_assert_int_eq(read_ptx(".global .b8 x[4] = {1, 2", &table), HDRT_ERROR_INVALID_IMAGE);
    ck_assert(!hdrt__is_ptx("", 0));
    ck_assert(!hdrt__is_ptx("\0\0", 2));
    ck_assert(hdrt__is_ptx("// c\n.version 7.0\n", 18));
    ck_assert(hdrt__is_ptx(".version 7.0", 13)); /* its NUL counted */
    ck_assert(!hdrt__is_ptx(".version\0 7.0", 13));
}
END_TEST

/* No prefix and no changed byte of a PTX may make the reader leave its bytes: sanitizers watch. */
START_TEST(ptx_damaged_anyhow)
{
    static const char text[] = ".version 8.0\n.visible .entry k(.param .align 8 .b8 p[16], .param .f32 q)\n"
                               "{ .reg .b32 %r<2>; \"s\\\"\"; ret; } .const .u32 c[2] = {1,2}; /* x */ // y";
    hdrt__kernel_table table;
    for (size_t size = 0; size < sizeof text; size++) {
        char *exact = malloc(size ? size : 1);
        memcpy(exact, text, size);
        if (hdrt__kernel_table_from_ptx(exact, size, &table) == HDRT_OK)
            hdrt__kernel_table_free(&table);
        free(exact);
    }
    for (size_t at = 0; at < sizeof text - 1; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            char *copy = malloc(sizeof text - 1);
            memcpy(copy, text, sizeof text - 1);
            copy[at] ^= (char)(1 << bit);
            if (hdrt__kernel_table_from_ptx(copy, sizeof text - 1, &table) == HDRT_OK)
                hdrt__kernel_table_free(&table);
            free(copy);
        }
}
END_TEST

START_TEST(ptx_without_memory)
{
    hdrt__kernel_table table;
    hdrt_status status = HDRT_OK;
    static const char text[] =
        ".version 8.0\n.entry k(.param .u32 a, .param .u32 b, .param .u32 c) {}\n.global .u32 x;";
    FAILING_MALLOC_EACH(n)
    {
        status = hdrt__kernel_table_from_ptx(text, sizeof text - 1, &table);
        if (status == HDRT_OK)
            hdrt__kernel_table_free(&table);
        else if (status != HDRT_ERROR_OUT_OF_MEMORY)
            abort();
    }
    ck_assert_int_eq(status, HDRT_OK);
}
END_TEST

/* ---- cubins ----------------------------------------------------------------------------------------------------- */

/* A small cubin: null, .shstrtab, .strtab, .symtab, .text.k, .nv.info.k. Built anew for each case. */
struct cubin {
    unsigned char bytes[4096];
    size_t size;
};

enum { SECTIONS = 6, TEXT_SECTION = 4 };

static size_t place(struct cubin *cubin, const void *bytes, size_t size)
{
    size_t at = cubin->size;
    memcpy(cubin->bytes + at, bytes, size);
    cubin->size = (at + size + 7) / 8 * 8;
    return at;
}

static void make_cubin(struct cubin *cubin, const unsigned char *info, size_t info_size)
{
    static const char names[] = "\0.shstrtab\0.strtab\0.symtab\0.text.k\0.nv.info.k";
    static const char strings[] = "\0k\0variable\0helper";
    const Elf64_Sym symbols[] = {
        {0},
        {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_other = 0x10, .st_shndx = TEXT_SECTION},
        {.st_name = 3, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), .st_shndx = TEXT_SECTION, .st_size = 12},
        {.st_name = 12, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_other = 0, .st_shndx = TEXT_SECTION},
        {.st_name = 12, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_other = 0x10, .st_shndx = SHN_UNDEF},
    };
    Elf64_Ehdr elf = {.e_type = 2, .e_machine = 190, .e_version = 1, .e_ehsize = sizeof(Elf64_Ehdr),
                      .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = SECTIONS, .e_shstrndx = 1};
    memcpy(elf.e_ident, ELFMAG, SELFMAG);
    elf.e_ident[EI_CLASS] = ELFCLASS64;
    elf.e_ident[EI_DATA] = ELFDATA2LSB;
    *cubin = (struct cubin){.size = sizeof elf};
    Elf64_Shdr sections[SECTIONS] = {
        {0},
        {.sh_name = 1, .sh_type = SHT_STRTAB, .sh_size = sizeof names},
        {.sh_name = 11, .sh_type = SHT_STRTAB, .sh_size = sizeof strings},
        {.sh_name = 19, .sh_type = SHT_SYMTAB, .sh_size = sizeof symbols, .sh_link = 2},
        {.sh_name = 27, .sh_type = SHT_PROGBITS, .sh_size = 8},
        {.sh_name = 35, .sh_type = 0x70000000, .sh_size = info_size, .sh_link = 3, .sh_info = TEXT_SECTION},
    };
    sections[1].sh_offset = place(cubin, names, sizeof names);
    sections[2].sh_offset = place(cubin, strings, sizeof strings);
    sections[3].sh_offset = place(cubin, symbols, sizeof symbols);
    sections[4].sh_offset = place(cubin, "\0\0\0\0\0\0\0", 8);
    sections[5].sh_offset = place(cubin, info, info_size);
    elf.e_shoff = place(cubin, sections, sizeof sections);
    memcpy(cubin->bytes, &elf, sizeof elf);
}

/* A parameter record of the first form: size above bit 18. */
#define PARAMETER(ordinal, offset, size)                                                                               \
    4, 0x17, 12, 0, 0, 0, 0, 0, (ordinal), 0, (offset), 0, 0x00, 0xf0, (unsigned char)((((size) & 0x3f) << 2) | 1),    \
        (unsigned char)((size) >> 6)
/* And of the second, for large ones: the size in the low 16 bits. */
#define PARAMETER_V2(ordinal, offset, size)                                                                            \
    4, 0x45, 12, 0, 0, 0, 0, 0, (ordinal), 0, (unsigned char)((offset)&0xff), (unsigned char)((offset) >> 8),          \
        (unsigned char)((size)&0xff), (unsigned char)((size) >> 8), 0, 0
#define PARAMETER_BYTES(total) 3, 0x19, (unsigned char)((total) & 0xff), (unsigned char)((total) >> 8)
#define OTHERS 3, 0x1b, 0xff, 0, 4, 0x1c, 4, 0, 0x50, 0, 0, 0

START_TEST(cubin_parameters)
{
    static const unsigned char info[] = {OTHERS, PARAMETER(2, 16, 12), PARAMETER(1, 8, 8), PARAMETER(0, 0, 4),
                                         PARAMETER_BYTES(28)};
    struct cubin cubin;
    hdrt__kernel_table table;
    make_cubin(&cubin, info, sizeof info);
    ck_assert(hdrt__is_cubin(cubin.bytes, cubin.size));
    ck_assert_int_eq(hdrt__kernel_table_from_cubin(cubin.bytes, cubin.size, &table), HDRT_OK);
    ck_assert_uint_eq(table.kernel_count, 1);
    ck_assert_str_eq(table.kernels[0].name, "k");
    ck_assert(table.kernels[0].parameters_known);
    ck_assert_uint_eq(table.kernels[0].parameter_count, 3);
    static const hdrt_parameter expected[] = {{0, 4, 4, 0}, {8, 8, 8, 0}, {16, 12, 4, 0}};
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(table.kernels[0].parameters[i].offset, expected[i].offset);
        ck_assert_uint_eq(table.kernels[0].parameters[i].size, expected[i].size);
        ck_assert_uint_eq(table.kernels[0].parameters[i].align, expected[i].align);
        ck_assert_uint_eq(table.kernels[0].parameters[i].argument_class, HDRT_CLASS_UNKNOWN);
    }
    ck_assert_uint_eq(table.variable_count, 1);
    ck_assert_str_eq(table.variables[0].name, "variable");
    ck_assert_uint_eq(table.variables[0].bytes, 12);
    ck_assert(table.writable_variables);
    hdrt__kernel_table_free(&table);
}
END_TEST

static const struct {
    const char *what;
    unsigned char info[64];
    size_t size;
    bool known;
    uint32_t count;
} infos[] = {
#define INFO(what, known, count, ...) {what, {__VA_ARGS__}, sizeof((unsigned char[]){__VA_ARGS__}), known, count}
    INFO("no parameters", true, 0, OTHERS),
    INFO("large ones", true, 2, PARAMETER_V2(1, 20000, 8), PARAMETER_V2(0, 0, 20000), PARAMETER_BYTES(20008)),
    INFO("records missing", false, 0, OTHERS, PARAMETER_BYTES(16)),
    INFO("an ordinal missing", false, 2, PARAMETER(1, 8, 8), PARAMETER_BYTES(16)),
    INFO("one twice", false, 1, PARAMETER(0, 0, 8), PARAMETER(0, 0, 8), PARAMETER_BYTES(8)),
    INFO("overlapping", false, 2, PARAMETER(0, 0, 8), PARAMETER(1, 4, 8), PARAMETER_BYTES(12)),
    INFO("another total", false, 1, PARAMETER(0, 0, 8), PARAMETER_BYTES(12)),
    INFO("no size", false, 0, PARAMETER(0, 0, 0), PARAMETER_BYTES(0)),
    INFO("an ordinal out of reach", false, 0, 4, 0x17, 12, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0xf0, 0x21, 0),
    INFO("a record that ends early", false, 0, 4, 0x17, 4, 0, 0, 0, 0, 0),
    INFO("a record beyond the section", false, 0, 4, 0x17, 200, 0, 0, 0, 0, 0),
    INFO("half a record", false, 0, OTHERS, 3),
};

START_TEST(cubin_info)
{
    struct cubin cubin;
    hdrt__kernel_table table;
    make_cubin(&cubin, infos[_i].info, infos[_i].size);
    ck_assert_int_eq(hdrt__kernel_table_from_cubin(cubin.bytes, cubin.size, &table), HDRT_OK);
    ck_assert_uint_eq(table.kernel_count, 1);
    ck_assert_msg(table.kernels[0].parameters_known == infos[_i].known, "%s", infos[_i].what);
    ck_assert_msg(table.kernels[0].parameter_count == infos[_i].count, "%s: %u", infos[_i].what,
                  table.kernels[0].parameter_count);
    hdrt__kernel_table_free(&table);
}
END_TEST

START_TEST(cubin_damaged_anyhow)
{
    static const unsigned char info[] = {OTHERS, PARAMETER(1, 8, 8), PARAMETER(0, 0, 4), PARAMETER_BYTES(16)};
    struct cubin whole;
    hdrt__kernel_table table;
    make_cubin(&whole, info, sizeof info);
    for (size_t size = 0; size < whole.size; size++) {
        unsigned char *exact = malloc(size ? size : 1);
        memcpy(exact, whole.bytes, size);
        if (hdrt__kernel_table_from_cubin(exact, size, &table) == HDRT_OK)
            hdrt__kernel_table_free(&table);
        free(exact);
    }
    for (size_t at = 0; at < whole.size; at++)
        for (unsigned value = 0; value < 5; value++) {
            static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
            unsigned char *copy = malloc(whole.size);
            memcpy(copy, whole.bytes, whole.size);
            copy[at] = values[value];
            if (hdrt__kernel_table_from_cubin(copy, whole.size, &table) == HDRT_OK)
                hdrt__kernel_table_free(&table);
            free(copy);
        }
    ck_assert(!hdrt__is_cubin(whole.bytes, 63));
    ck_assert(hdrt__is_fatbin("\x50\xed\x55\xba....", 8));
    ck_assert(!hdrt__is_fatbin("\x50\xed", 2));
}
END_TEST

START_TEST(cubin_without_memory)
{
    static const unsigned char info[] = {PARAMETER(1, 8, 8), PARAMETER(0, 0, 4), PARAMETER_BYTES(16)};
    struct cubin cubin;
    hdrt__kernel_table table;
    unsigned refused = 0, unknown = 0;
    make_cubin(&cubin, info, sizeof info);
    FAILING_MALLOC_EACH(n)
    {
        if (hdrt__kernel_table_from_cubin(cubin.bytes, cubin.size, &table) == HDRT_OK) {
            unknown += !table.kernels[0].parameters_known;
            hdrt__kernel_table_free(&table);
        } else {
            refused++;
        }
    }
    ck_assert_uint_gt(refused, 2);
    ck_assert_uint_gt(unknown, 0); /* a parameter without memory is one that is not known */
}
END_TEST

/* ---- the cache form --------------------------------------------------------------------------------------------- */

START_TEST(written_and_read_again)
{
    hdrt__kernel_table table, again;
    hdrt__buffer bytes = HDRT__BUFFER_INIT, second = HDRT__BUFFER_INIT;
    ck_assert_int_eq(read_ptx(".entry a(.param .u32 x, .param .align 8 .b8 s[24]) {}\n.entry b(.param .mystery m) {}\n"
                              ".const .f32 c[7];", &table), HDRT_OK);
    hdrt__kernel_table_write(&table, &bytes);
    ck_assert(hdrt__kernel_table_read(bytes.bytes, bytes.size, &again));
    hdrt__kernel_table_write(&again, &second);
    ck_assert_uint_eq(bytes.size, second.size);
    ck_assert_mem_eq(bytes.bytes, second.bytes, bytes.size);
    ck_assert(!again.kernels[1].parameters_known);
    hdrt__kernel_table_free(&again);
    for (size_t size = 0; size < bytes.size; size++) {
        unsigned char *exact = malloc(size ? size : 1);
        memcpy(exact, bytes.bytes, size);
        ck_assert(!hdrt__kernel_table_read(exact, size, &again));
        free(exact);
    }
    hdrt__kernel_table_free(&table);
    hdrt__buffer_free(&bytes);
    hdrt__buffer_free(&second);
}
END_TEST

/* ---- arguments -------------------------------------------------------------------------------------------------- */

static const hdrt_parameter saxpy_parameters[] = {
    {0, 4, 4, HDRT_CLASS_FLOAT}, {8, 8, 8, HDRT_CLASS_INTEGER}, {16, 12, 4, HDRT_CLASS_UNKNOWN}};

static const struct {
    uint32_t kinds[4], count;
    hdrt_status status;
    const char *words[3];
} launches[] = {
    {{HDRT_KIND(2, 4), HDRT_KIND(1, 8), HDRT_KIND(0, 12)}, 3, HDRT_OK, {0}},
    {{HDRT_KIND(0, 4), HDRT_KIND(0, 8), HDRT_KIND(1, 12)}, 3, HDRT_OK, {0}},
    {{HDRT_KIND(2, 4), HDRT_KIND(1, 8)}, 2, HDRT_ERROR_LAUNCH,
     {"'saxpy': 2 arguments given, the kernel has 3 parameters", "4-byte floating point, 8-byte integer or pointer, "
                                                                  "12-byte bytes"}},
    {{0}, 0, HDRT_ERROR_LAUNCH, {"0 arguments"}},
    {{HDRT_KIND(2, 8), HDRT_KIND(1, 8), HDRT_KIND(0, 12)}, 3, HDRT_ERROR_LAUNCH,
     {"argument 1 of 3", "is 8-byte floating point, the parameter is 4-byte floating point", "2.0f"}},
    {{HDRT_KIND(1, 4), HDRT_KIND(1, 8), HDRT_KIND(0, 12)}, 3, HDRT_ERROR_LAUNCH, {"argument 1", "not converted"}},
    {{HDRT_KIND(2, 4), HDRT_KIND(2, 8), HDRT_KIND(0, 12)}, 3, HDRT_ERROR_LAUNCH,
     {"argument 2", "8-byte floating point, the parameter is 8-byte integer or pointer"}},
    {{HDRT_KIND(2, 4), HDRT_KIND(1, 4), HDRT_KIND(0, 12)}, 3, HDRT_ERROR_LAUNCH, {"argument 2", "4-byte integer"}},
    {{HDRT_KIND(2, 4), HDRT_KIND(1, 8), HDRT_KIND(0, 16)}, 3, HDRT_ERROR_LAUNCH, {"argument 3", "16-byte bytes"}},
};

START_TEST(arguments)
{
    const hdrt_kernel kernel = {.name = "saxpy", .parameter_count = 3, .parameters = saxpy_parameters};
    float value = 0;
    const void *args[] = {&value, &value, &value, &value};
    ck_assert_int_eq(hdrt__kernel_check_arguments(&kernel, args, launches[_i].kinds, launches[_i].count),
                     launches[_i].status);
    for (unsigned i = 0; i < 3 && launches[_i].words[i]; i++)
        ck_assert_msg(strstr(hdrt_last_error(), launches[_i].words[i]), "'%s' is not in '%s'", launches[_i].words[i],
                      hdrt_last_error());
}
END_TEST

START_TEST(arguments_that_are_missing)
{
    const hdrt_kernel kernel = {.name = "saxpy", .parameter_count = 3, .parameters = saxpy_parameters},
                      none = {.name = "n"};
    const void *args[] = {&kernel, NULL, &kernel};
    ck_assert_int_eq(hdrt__kernel_check_arguments(&kernel, args, NULL, 3), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt__kernel_check_arguments(&kernel, NULL, launches[0].kinds, 3), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt__kernel_check_arguments(&kernel, args, launches[0].kinds, 3), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt__kernel_check_arguments(&none, NULL, NULL, 0), HDRT_OK);
}
END_TEST

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

int main(void)
{
    Suite *suite = suite_create("jit table");
    TCase *tests = tcase_create("table");
    tcase_add_loop_test(tests, ptx_parameter, 0, COUNT(parameters));
    tcase_add_loop_test(tests, ptx_parameter_that_cannot_be_read, 0, COUNT(unreadable));
    tcase_add_test(tests, ptx_offsets_follow_alignment);
    tcase_add_test(tests, ptx_bodies_are_skipped);
    tcase_add_loop_test(tests, ptx_variables, 0, COUNT(variables));
    tcase_add_test(tests, ptx_that_is_none);
    tcase_add_test(tests, ptx_damaged_anyhow);
    tcase_add_test(tests, ptx_without_memory);
    tcase_add_test(tests, cubin_parameters);
    tcase_add_loop_test(tests, cubin_info, 0, COUNT(infos));
    tcase_add_test(tests, cubin_damaged_anyhow);
    tcase_add_test(tests, cubin_without_memory);
    tcase_add_test(tests, written_and_read_again);
    tcase_add_loop_test(tests, arguments, 0, COUNT(launches));
    tcase_add_test(tests, arguments_that_are_missing);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
