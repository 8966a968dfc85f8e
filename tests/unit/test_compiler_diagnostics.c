/* SPDX-License-Identifier: MIT */
/* The pure parts of hdrt-cc: what compilers say, what options mean, what stands in PTX, what a request must be. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/clang_options.h"
#include "compiler/diagnostics.h"
#include "compiler/job.h"
#include "compiler/ptx.h"
#include "failing_malloc.h"

/* -- diagnostics --------------------------------------------------------------------------------------------------- */

/* "file|line|column|severity|text\n" for each. */
static void print_diagnostic(const hdrt__cc_diagnostic *diagnostic, void *context)
{
    FILE *stream = context;
    fprintf(stream, "%.*s|%u|%u|%u|%.*s\n", (int)diagnostic->file_length, diagnostic->file ? diagnostic->file : "",
            diagnostic->line, diagnostic->column, diagnostic->severity, (int)diagnostic->text_length,
            diagnostic->text);
}

typedef size_t parser(const char *, size_t, const char *, hdrt__cc_diagnostic_sink *, void *);

static void expect(parser *parse, const char *log, const char *name, const char *expected)
{
    char *text = NULL;
    size_t size = 0, lines = 0;
    FILE *stream = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(stream);
    size_t count = parse(log, strlen(log), name, print_diagnostic, stream);
    fclose(stream);
    ck_assert_str_eq(text, expected);
    for (const char *at = expected; *at != '\0'; at++)
        lines += *at == '\n';
    if (name == NULL || strchr(name, '\n') == NULL)
        ck_assert_uint_eq(count, lines);
    free(text);
}

typedef struct sample {
    const char *log, *name, *expected;
} sample;

static const sample clang_samples[] = {
    {"k.cu:4:39: error: no member named 'y' in 'S'\n    4 | M(s) = 3;\n      | ^~~~\n"
     "k.cu:1:19: note: expanded from macro 'M'\n#define M(x) (x)->y\n             ~~~  ^\n"
     "k.cu:6:2: warning: hello [-W#warnings]\nk.cu:7:10: fatal error: 'nope.h' file not found\n"
     "1 warning and 2 errors generated when compiling for sm_80.\n",
     "k.cu",
     "k.cu|4|39|3|no member named 'y' in 'S'\nk.cu|1|19|1|expanded from macro 'M'\n"
     "k.cu|6|2|2|hello [-W#warnings]\nk.cu|7|10|3|'nope.h' file not found\n"},
    {"In file included from k.cu:1:\n/a b/h (1).h:3:1: error: unknown type name 'x'\r\n", "k.cu",
     "/a b/h (1).h|3|1|3|unknown type name 'x'\n"},
    {"clang-19: error: unknown argument: '-bogus'\n", "k.cu", "|0|0|3|unknown argument: '-bogus'\n"},
    {"fatal error: error in backend: Undefined external symbol \"__divti3\"\nPLEASE submit a bug report\n"
     "Stack dump:\n0.\tProgram arguments: clang-14: error: no\n",
     "k.cu", "|0|0|3|error in backend: Undefined external symbol \"__divti3\"\n"},
    {"error: too many errors emitted, stopping now", NULL, "|0|0|3|too many errors emitted, stopping now\n"},
    {"warning: unknown warning option\nremark: loop vectorized\n", NULL,
     "|0|0|2|unknown warning option\n|0|0|1|loop vectorized\n"},
    {"k.cu:12: error: only a line\n", NULL, "k.cu|12|0|3|only a line\n"},
    {"/d/\xc3\xa9\xe6\xb8\xac.cu:1:2: error: a: error: b\n", NULL, "/d/\xc3\xa9\xe6\xb8\xac.cu|1|2|3|a: error: b\n"},
    {"a:1:1: error: b.cu:3:4: error: real\n", "a:1:1: error: b.cu", "a:1:1: error: b.cu|3|4|3|real\n"},
    {"x\ny.cu:3:4: warning: real\n", "x\ny.cu", "x\ny.cu|3|4|2|real\n"},
    {"k.cu:99999999999:1: error: no such line\n", NULL, "k.cu:99999999999|1|0|3|no such line\n"},
    {"  t ? error : error: none of this\n/usr/bin/x: error: neither is a file\n", NULL, ""},
    {"\n\n: error: nothing in front\n:3:4: error: no file\n", NULL, ""},
    {"", NULL, ""},
};

static const sample nvrtc_samples[] = {
    {"dir with space/k (1).cu(2): error: unrecognized token\n  \tint b = 3;\n  \t     ^\n\n"
     "dir with space/k (1).cu(2): warning #177-D: variable \"b\" was declared but never referenced\n"
     "  \tint b = 3;\n  \t    ^\n\nRemark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"\n",
     "dir with space/k (1).cu",
     "dir with space/k (1).cu|2|7|3|unrecognized token\n"
     "dir with space/k (1).cu|2|6|2|variable \"b\" was declared but never referenced\n"},
    {"k.cu(1): catastrophic error: cannot open source file \"nope.h\"\n  #include \"nope.h\"\n                   ^\n\n"
     "1 catastrophic error detected in the compilation of \"k.cu\".\nCompilation terminated.\n",
     "k.cu", "k.cu|1|18|3|cannot open source file \"nope.h\"\n"},
    {"k.cu(3): error #20: identifier \"x\" is undefined\n", NULL, "k.cu|3|0|3|identifier \"x\" is undefined\n"},
    {"h(2).h(3): error: brief, without an excerpt\nk.cu(4): error: second\n", "k.cu",
     "h(2).h|3|0|3|brief, without an excerpt\nk.cu|4|0|3|second\n"},
    {"k.cu(3): error: fake below\n  k.cu(9): error: this is source\n  ^\n", "k.cu", "k.cu|3|1|3|fake below\n"},
    {"nvrtc: error: unrecognized option -bogus found\n", "k.cu", "|0|0|3|unrecognized option -bogus found\n"},
    {"ptxas application ptx input, line 38; error   : Not a name of any known instruction: 'bogus'\n"
     "ptxas fatal   : Ptx assembly aborted due to errors\nptxas info    : Used 8 registers\n"
     "ptxas warning : something\n",
     "k.cu",
     "|0|0|3|Not a name of any known instruction: 'bogus'\n|0|0|3|Ptx assembly aborted due to errors\n"
     "|0|0|1|Used 8 registers\n|0|0|2|something\n"},
    {"a(1): error: b(7): error: odd\n", "a(1): error: b", "a(1): error: b|7|0|3|odd\n"},
    {"k.cu(99999999999): error: x\nk.cu(): error: x\nk.cu(3) error: x\n(3): error: x\n", NULL, ""},
    {"k.cu(3): error #: x\nk.cu(3): error #5-: x\nptxas\nptxas ; error\n", NULL, ""},
};

START_TEST(clang_output)
{
    expect(hdrt__cc_parse_clang, clang_samples[_i].log, clang_samples[_i].name, clang_samples[_i].expected);
}
END_TEST

START_TEST(nvrtc_output)
{
    expect(hdrt__cc_parse_nvrtc, nvrtc_samples[_i].log, nvrtc_samples[_i].name, nvrtc_samples[_i].expected);
}
END_TEST

typedef struct bounds {
    const char *begin, *end;
    size_t count;
} bounds;

static void check_bounds(const hdrt__cc_diagnostic *diagnostic, void *context)
{
    bounds *log = context;
    log->count++;
    ck_assert(diagnostic->severity >= 1 && diagnostic->severity <= 3);
    ck_assert(diagnostic->text >= log->begin && diagnostic->text_length <= (size_t)(log->end - diagnostic->text));
    ck_assert_ptr_null(memchr(diagnostic->text, '\n', diagnostic->text_length));
    if (diagnostic->file != NULL)
        ck_assert(diagnostic->file >= log->begin &&
                  diagnostic->file_length <= (size_t)(log->end - diagnostic->file));
}

/* Bytes of the samples changed, cut and doubled: in an exact allocation, so that a sanitizer sees one byte too many. */
static void parse_mutant(parser *parse, const sample *from, unsigned *seed)
{
    size_t size = strlen(from->log);
    char *log = malloc(size + 1);
    ck_assert_ptr_nonnull(log);
    memcpy(log, from->log, size);
    static const char bytes[] = ":(); \n\r^#0123456789error\t\0\xff";
    for (int i = 0; size > 0 && i < 1 + rand_r(seed) % 6; i++)
        log[(size_t)rand_r(seed) % size] = bytes[(size_t)rand_r(seed) % (sizeof bytes - 1)];
    size_t cut = size > 0 ? (size_t)rand_r(seed) % (size + 1) : 0;
    char *exact = malloc(cut > 0 ? cut : 1);
    ck_assert_ptr_nonnull(exact);
    memcpy(exact, log, cut);
    bounds all = {exact, exact + cut, 0};
    ck_assert_uint_eq(parse(exact, cut, rand_r(seed) % 2 ? from->name : NULL, check_bounds, &all), all.count);
    free(exact);
    free(log);
}

START_TEST(mutated_output_stays_in_bounds)
{
    unsigned seed = 20261;
    for (int round = 0; round < 400; round++) {
        for (size_t i = 0; i < sizeof clang_samples / sizeof *clang_samples; i++)
            parse_mutant(hdrt__cc_parse_clang, &clang_samples[i], &seed);
        for (size_t i = 0; i < sizeof nvrtc_samples / sizeof *nvrtc_samples; i++)
            parse_mutant(hdrt__cc_parse_nvrtc, &nvrtc_samples[i], &seed);
    }
}
END_TEST

/* -- options ------------------------------------------------------------------------------------------------------- */

typedef struct translation {
    const char *given[4];
    const char *expected; /* joined by blanks; NULL: refused, and the message has what follows */
    const char *message;
} translation;

static const translation translations[] = {
    {{"-Ia b"}, "-I a b", NULL},
    {{"-I", "x", "--include-path=y"}, "-I x -I y", NULL},
    {{"-DN=3", "--define-macro", "M", "-UX"}, "", NULL},
    {{"--pre-include=p.h", "-include", "q.h"}, "-include p.h -include q.h", NULL},
    {{"-std=c++20", "--std=c++14"}, "-std=c++20 -std=c++14", NULL},
    {{"-lineinfo", "-w"}, "-gline-tables-only -w", NULL},
    {{"--fmad=false"}, "-ffp-contract=off", NULL},
    {{"-fmad=true"}, "-ffp-contract=fast", NULL},
    {{"--ftz=true"}, "-D__CUDA_FTZ=1 -fcuda-flush-denormals-to-zero", NULL},
    {{"--ftz=false"}, "-U__CUDA_FTZ -fno-cuda-flush-denormals-to-zero", NULL},
    {{"--prec-div=false", "--prec-sqrt=false"}, "-mllvm -nvptx-prec-divf32=1 -mllvm -nvptx-prec-sqrtf32=0", NULL},
    {{"--prec-div=true"}, "-mllvm -nvptx-prec-divf32=2", NULL},
    {{"--use_fast_math"},
     "-D__USE_FAST_MATH__=1 -fcuda-approx-transcendentals -mllvm -nvptx-prec-divf32=0 -mllvm -nvptx-prec-sqrtf32=0 "
     "-ffp-contract=fast -D__CUDA_FTZ=1 -fcuda-flush-denormals-to-zero",
     NULL},
    {{"-Werror"}, "-Werror", NULL},
    {{"--warning-as-error=all-warnings"}, "-Werror", NULL},
    {{"--warning-as-error=reorder"}, NULL, "'reorder' is not a value of the option '-warning-as-error'"},
    {{"-rdc=true", "--relocatable-device-code=false"}, "-fgpu-rdc", NULL},
    {{"--minimal", "-no-cache", "--device-int128", "--split-compile=0"}, "", NULL},
    {{"--maxrregcount=32", "-G", "--no-source-include"}, "", NULL},
    {{"--restrict"}, NULL, "clang has nothing that corresponds to the option '--restrict'"},
    {{"-Xptxas=-v"}, NULL, "'-Xptxas=-v'"},
    {{"--lineinfox"}, NULL, "'--lineinfox'"},
    {{"-lineinfo=1"}, NULL, "'-lineinfo=1'"},
    {{"---lineinfo"}, NULL, "'---lineinfo'"},
    {{"lineinfo"}, NULL, "'lineinfo'"},
    {{"-"}, NULL, "'-'"},
    {{""}, NULL, "''"},
    {{"--Ix"}, NULL, "'--Ix'"},
    {{"-I"}, NULL, "the option '-I' needs a value"},
    {{"--fmad=maybe"}, NULL, "'maybe' is not a value of the option '-fmad'"},
    {{"--maxrregcount=x"}, NULL, "'x' is not a value"},
    {{"--maxrregcount=-1"}, NULL, "'-1' is not a value"},
    {{"--maxrregcount=256"}, NULL, "'256' is not a value"},
    {{"-arch=sm_90"}, NULL, "'-arch=sm_90': the target is given apart"},
    {{"--gpu-architecture", "sm_90"}, NULL, "'--gpu-architecture': the target is given apart"},
    {{"-rdc=perhaps"}, NULL, "'perhaps'"},
};

static hdrt__cc_request with_options(const char *const *given)
{
    hdrt__cc_request request = {.options.items = (const char **)given};
    while (request.options.count < 4 && given[request.options.count] != NULL)
        request.options.count++;
    return request;
}

START_TEST(options_for_clang)
{
    const translation *test = &translations[_i];
    hdrt__cc_request request = with_options(test->given);
    hdrt__cc_clang_options options;
    hdrt__cc_reply reply = {0};
    bool taken = hdrt__cc_clang_translate(&request, &options, &reply);
    ck_assert_int_eq(taken, test->expected != NULL);
    if (taken) {
        hdrt__cc_buffer joined = {0};
        hdrt__cc_buffer_text(&joined, "");
        for (size_t i = 0; i < options.arguments.count; i++)
            hdrt__cc_buffer_format(&joined, "%s%s", i > 0 ? " " : "", options.arguments.items[i]);
        ck_assert_str_eq((char *)joined.bytes, test->expected);
        hdrt__cc_buffer_free(&joined);
    } else {
        ck_assert_uint_eq(reply.status, HDRT_CC_STATUS_OPTION);
        ck_assert_msg(strstr((char *)reply.message.bytes, test->message) != NULL, "%s", reply.message.bytes);
    }
    hdrt__cc_reply_free(&reply);
    hdrt__cc_clang_options_free(&options);
}
END_TEST

START_TEST(options_that_are_no_arguments)
{
    const char *const given[4] = {"--maxrregcount=32", "-G", "--no-source-include", "-Ifolder"};
    hdrt__cc_request request = with_options(given);
    hdrt__cc_clang_options options;
    hdrt__cc_reply reply = {0};
    ck_assert(hdrt__cc_clang_translate(&request, &options, &reply));
    ck_assert_uint_eq(options.max_registers, 32);
    ck_assert(options.debug && options.no_source_include);
    ck_assert_uint_eq(options.folders.count, 1);
    ck_assert_str_eq(options.folders.items[0], "folder");
    hdrt__cc_clang_options_free(&options);
}
END_TEST

START_TEST(macros_are_directives)
{
    const char *const given[4] = {"-DT=float", "-DF(a,b)=a=b", "--undefine-macro=U\nnone", "-DM=1\n#error of this"};
    hdrt__cc_request request = with_options(given);
    hdrt__cc_clang_options options;
    hdrt__cc_reply reply = {0};
    ck_assert(hdrt__cc_clang_translate(&request, &options, &reply));
    ck_assert_str_eq((char *)options.macros.bytes, "#define T float\n#define F(a,b) a=b\n#undef U\n#define M 1\n");
    hdrt__cc_clang_options_free(&options);
    const char *const bad[4] = {"-D=1"};
    request = with_options(bad);
    ck_assert(!hdrt__cc_clang_translate(&request, &options, &reply));
    hdrt__cc_clang_options_free(&options);
    hdrt__cc_reply_free(&reply);
}
END_TEST

/* -- PTX ----------------------------------------------------------------------------------------------------------- */

static const char some_ptx[] =
    ".version 7.5\n.extern .func  (.param .b32 func_retval0) vprintf\n(\n\t.param .b64 vprintf_param_0\n)\n;\n"
    ".extern .func  (.param .b32 func_retval0) __nv_expf\n(\n)\n;\n.extern .func other$_1\n(\n)\n;\n"
    ".extern .func __assertfail\n(\n)\n;\n.extern .shared .align 4 .b8 dynamic[];\n"
    ".visible .entry a(\n\t.param .u64 a_param_0\n)\n{\n\tret;\n}\n"
    ".weak .entry b(\n)\n.maxntid 64, 1, 1\n{\n\t{\n\t}\n\tret;\n}\n"
    ".entry c(\n)\n.maxnreg 16\n{\n\tret;\n}\n.func d(\n)\n{\n\tret;\n}\n";

static void append_name(const char *name, size_t length, void *context)
{
    hdrt__cc_buffer_append(context, name, length);
    hdrt__cc_buffer_text(context, " ");
}

START_TEST(externals_of_ptx)
{
    hdrt__cc_buffer names = {0};
    hdrt__cc_ptx_externals(some_ptx, strlen(some_ptx), append_name, &names);
    ck_assert_str_eq((char *)names.bytes, "__nv_expf other$_1 ");
    hdrt__cc_buffer_free(&names);
    for (size_t cut = 0; cut < sizeof some_ptx; cut++) { /* in an exact allocation */
        char *exact = malloc(cut > 0 ? cut : 1);
        ck_assert_ptr_nonnull(exact);
        memcpy(exact, some_ptx, cut);
        hdrt__cc_ptx_externals(exact, cut, append_name, &names);
        hdrt__cc_ptx_limit_registers(exact, cut, 8, &names);
        hdrt__cc_ptx_mend_debug_names(exact, cut, &names);
        free(exact);
    }
    ck_assert(!names.failed);
    hdrt__cc_buffer_free(&names);
}
END_TEST

START_TEST(register_limits_in_ptx)
{
    hdrt__cc_buffer out = {0};
    hdrt__cc_ptx_limit_registers(some_ptx, strlen(some_ptx), 24, &out);
    const char *ptx = (char *)out.bytes;
    ck_assert_ptr_nonnull(strstr(ptx, "a_param_0\n)\n.maxnreg 24\n{\n"));
    ck_assert_ptr_nonnull(strstr(ptx, ".maxntid 64, 1, 1\n.maxnreg 24\n{\n\t{\n"));
    ck_assert_ptr_nonnull(strstr(ptx, ")\n.maxnreg 16\n{\n"));
    ck_assert_ptr_nonnull(strstr(ptx, ".func d(\n)\n{\n"));
    ck_assert_uint_eq(out.size, strlen(some_ptx) + 2 * strlen(".maxnreg 24\n"));
    hdrt__cc_buffer_free(&out);
}
END_TEST

START_TEST(names_in_debug_information)
{
    static const char ptx[] = ".global .b8 __func___$_a[4];\n\t.section .debug_info\n\t{\n.b64 __func__.a\n.b64 12\n"
                              ".b64 a.b.c // x.y\n.b32 .debug_abbrev\n.b64 Ltmp1\n\t}\n.b64 z.";
    hdrt__cc_buffer out = {0};
    hdrt__cc_ptx_mend_debug_names(ptx, strlen(ptx), &out);
    ck_assert_str_eq((char *)out.bytes,
                     ".global .b8 __func___$_a[4];\n\t.section .debug_info\n\t{\n.b64 __func___$_a\n.b64 12\n"
                     ".b64 a_$_b_$_c // x.y\n.b32 .debug_abbrev\n.b64 Ltmp1\n\t}\n.b64 z_$_");
    hdrt__cc_buffer_free(&out);
}
END_TEST

/* -- requests ------------------------------------------------------------------------------------------------------ */

static void number(hdrt__cc_buffer *payload, uint32_t tag, uint32_t value)
{
    unsigned char bytes[4] = {(unsigned char)value, (unsigned char)(value >> 8), 0, 0};
    hdrt__cc_buffer_field(payload, tag, bytes, 4);
}

static void text(hdrt__cc_buffer *payload, uint32_t tag, const char *value)
{
    hdrt__cc_buffer_field(payload, tag, value, strlen(value));
}

static hdrt__cc_buffer good_request(void)
{
    hdrt__cc_buffer payload = {0};
    number(&payload, HDRT_CC_BACK_END, HDRT_CC_CLANG);
    number(&payload, HDRT_CC_KIND, HDRT_CC_PTX);
    text(&payload, HDRT_CC_COMPILER_PATH, "/usr/bin/clang");
    text(&payload, HDRT_CC_SOURCE, "");
    text(&payload, HDRT_CC_NAME, "k.cu");
    text(&payload, HDRT_CC_DIRECTORY, "/");
    text(&payload, HDRT_CC_PRELUDE, "/p");
    text(&payload, HDRT_CC_RECORDER, "/r");
    text(&payload, HDRT_CC_ARCH, "sm_90a");
    return payload;
}

typedef struct defect {
    uint32_t tag;
    const char *bytes;
    size_t size;
    const char *message;
} defect;

static const defect defects[] = {
    {HDRT_CC_BACK_END, "\7\0\0\0", 4, "neither NVRTC nor clang"},
    {HDRT_CC_BACK_END, "\1\0\0", 3, "not a number"},
    {HDRT_CC_KIND, "\0\0\0\0", 4, "neither PTX nor cubin"},
    {HDRT_CC_KIND, "", 0, "not a number"},
    {HDRT_CC_TIME_LIMIT, "12345", 5, "not a number"},
    {HDRT_CC_MEMORY_LIMIT, "1234", 4, "not a number"},
    {HDRT_CC_ARCH_LOWER, "\3\0\0\0", 4, "neither 0 nor 1"},
    {HDRT_CC_HEADER_NAME, "a.h", 3, "has no text"},
    {HDRT_CC_HEADER_TEXT, "int a;", 6, "has no text"},
    {HDRT_CC_INPUT, "\3\0\0\0\1\0\0\0ax", 10, "inputs are for a link"},
    {HDRT_CC_INPUT, "\3\0\0\0\3\0\0\0ax", 10, "input of a link is damaged"},
    {HDRT_CC_INPUT, "\7\0\0\0\1\0\0\0ax", 10, "input of a link is damaged"},
    {HDRT_CC_INPUT, "\3\0\0", 3, "input of a link is damaged"},
    {HDRT_CC_INPUT, "\3\0\0\0\2\0\0\0a\0x", 11, "input of a link is damaged"},
    {HDRT_CC_BACK_END, "\3\0\0\0", 4, "a link, which needs some"},
    {HDRT_CC_NAME, "again", 5, "there twice"},
    {HDRT_CC_OPTION, "-D\0X", 4, "holds a NUL"},
    {HDRT_CC_LIBDEVICE, "relative.bc", 11, "absolute"},
    {HDRT_CC_BUILTINS_PATH, "", 0, "absolute"},
    {77, "x", 1, "unknown tag"},
    {0, "", 0, "unknown tag"},
};

START_TEST(malformed_requests)
{
    const defect *test = &defects[_i];
    hdrt__cc_buffer payload = good_request();
    hdrt__cc_buffer_field(&payload, test->tag, test->bytes, test->size);
    hdrt__cc_request request;
    hdrt__cc_reply reply = {0};
    ck_assert(!hdrt__cc_request_parse(&request, payload.bytes, payload.size, &reply));
    ck_assert_uint_eq(reply.status, HDRT_CC_STATUS_PROTOCOL);
    ck_assert_msg(strstr((char *)reply.message.bytes, test->message) != NULL, "%s", reply.message.bytes);
    hdrt__cc_request_free(&request);
    hdrt__cc_reply_free(&reply);
    hdrt__cc_buffer_free(&payload);
}
END_TEST

START_TEST(requests_cut_anywhere)
{
    hdrt__cc_buffer payload = good_request();
    for (size_t cut = 0; cut <= payload.size; cut++) {
        unsigned char *exact = malloc(cut > 0 ? cut : 1);
        ck_assert_ptr_nonnull(exact);
        memcpy(exact, payload.bytes, cut);
        hdrt__cc_request request;
        hdrt__cc_reply reply = {0};
        ck_assert_int_eq(hdrt__cc_request_parse(&request, exact, cut, &reply), cut == payload.size);
        hdrt__cc_request_free(&request);
        hdrt__cc_reply_free(&reply);
        free(exact);
    }
    hdrt__cc_buffer_free(&payload);
}
END_TEST

START_TEST(targets_are_checked)
{
    static const struct {
        const char *arch;
        bool good;
    } cases[] = {{"sm_90", true},  {"sm_100f", true}, {"sm_9", false},   {"sm_1000", false},
                 {"sm_90b", false}, {"sm_90ax", false}, {"compute_90", false}, {"", false}, {"sm_", false}};
    hdrt__cc_buffer payload = good_request();
    size_t before = payload.size - 12 - strlen("sm_90a");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        payload.size = before;
        text(&payload, HDRT_CC_ARCH, cases[i].arch);
        hdrt__cc_request request;
        hdrt__cc_reply reply = {0};
        ck_assert_int_eq(hdrt__cc_request_parse(&request, payload.bytes, payload.size, &reply), cases[i].good);
        hdrt__cc_request_free(&request);
        hdrt__cc_reply_free(&reply);
    }
    hdrt__cc_buffer_free(&payload);
}
END_TEST

START_TEST(no_memory_for_a_request)
{
    hdrt__cc_buffer payload = good_request();
    text(&payload, HDRT_CC_OPTION, "-w");
    long failures = 0, others = 0;
    FAILING_MALLOC_EACH(n)
    {
        hdrt__cc_request request;
        hdrt__cc_reply reply = {0};
        if (!hdrt__cc_request_parse(&request, payload.bytes, payload.size, &reply)) {
            failures++;
            others += reply.status != HDRT_CC_STATUS_MEMORY;
        }
        hdrt__cc_request_free(&request);
        hdrt__cc_reply_free(&reply);
    }
    ck_assert_int_ge(failures, 1);
    ck_assert_int_eq(others, 0);
    hdrt__cc_buffer_free(&payload);
}
END_TEST

START_TEST(no_memory_for_a_reply)
{
    long failures = 0, wrong = 0;
    FAILING_MALLOC_EACH(n)
    {
        hdrt__cc_reply reply = {0};
        hdrt__cc_buffer message = {0};
        hdrt__cc_reply_fail(&reply, HDRT_CC_STATUS_COMPILE, "%s", "words");
        hdrt__cc_reply_text(&reply, HDRT_CC_NOTE, "%d", 3);
        hdrt__cc_reply_diagnostic(&reply, "f", 1, 1, 2, 3, "t", 1);
        hdrt__cc_reply_finish(&reply, &message);
        failures += message.failed;
        wrong += !message.failed && message.size != 24 + 16 + 17 + 13 + 30;
        hdrt__cc_buffer_free(&message);
        hdrt__cc_reply_free(&reply);
    }
    ck_assert_int_ge(failures, 3);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

/* -- questions about a source -------------------------------------------------------------------------------------- */

START_TEST(sources_that_include)
{
    static const struct {
        const char *source;
        bool includes;
    } cases[] = {
        {"#include \"a.h\"\n", true},
        {"int x;\n  #  include_next <a>\n", true},
        {"#if __has_include(<a>)\n#endif", true},
        {"%:include <a>\n", true},
        {"?\?=include <a>\n", true},
        {"#\\\ninclude <a>\n", true},
        {"#\\\r\ninclude <a>\n", true},
        {"#embed \"x\"\n", true},
        {"/* includes nothing */\nint include;\n", false},
        {"#define A\nint include = 1;\n", false},
        {"include", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hdrt__cc_request request = {.source = cases[i].source, .source_size = strlen(cases[i].source)};
        ck_assert_msg(hdrt__cc_includes_anything(&request) == cases[i].includes, "%s", cases[i].source);
    }
    static const char *const pre_include[][1] = {{"--pre-include=a.h"}, {"-include"}, {"-pre-include=a"}};
    for (size_t i = 0; i < 3; i++) {
        hdrt__cc_request request = {.source = "", .options = {(const char **)pre_include[i], 1, 1}};
        ck_assert(hdrt__cc_includes_anything(&request));
    }
    ck_assert_str_eq(hdrt__cc_time_macro("x __TIME__", 10), "__TIME__");
    ck_assert_ptr_null(hdrt__cc_time_macro("x __TIME__", 9));
    ck_assert_ptr_null(hdrt__cc_time_macro("DATE", 4));
}
END_TEST

START_TEST(folders_of_sources)
{
    static const struct {
        const char *name, *directory, *folder;
    } cases[] = {
        {"k.cu", "/a/b", "/a/b"}, {"s/k.cu", "/a/b", "/a/b/s"}, {"/x/k.cu", "/a/b", "/x"}, {"/k.cu", "/a", "/"},
        {"k.cu", "/", "/"},       {"../k.cu", "/a", "/a/.."},   {"./s/.//k.cu", "/a/./b/", "/a/b/s"},
        {"/.k/.../..k/k.cu", "/", "/.k/.../..k"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hdrt__cc_request request = {.name = cases[i].name, .directory = cases[i].directory};
        char *folder = hdrt__cc_source_directory(&request);
        ck_assert_str_eq(folder, cases[i].folder);
        free(folder);
    }
}
END_TEST

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

int main(void)
{
    Suite *suite = suite_create("compiler_diagnostics");
    TCase *tests = tcase_create("pure");
    tcase_add_loop_test(tests, clang_output, 0, COUNT(clang_samples));
    tcase_add_loop_test(tests, nvrtc_output, 0, COUNT(nvrtc_samples));
    tcase_add_test(tests, mutated_output_stays_in_bounds);
    tcase_add_loop_test(tests, options_for_clang, 0, COUNT(translations));
    tcase_add_test(tests, options_that_are_no_arguments);
    tcase_add_test(tests, macros_are_directives);
    tcase_add_test(tests, externals_of_ptx);
    tcase_add_test(tests, register_limits_in_ptx);
    tcase_add_test(tests, names_in_debug_information);
    tcase_add_loop_test(tests, malformed_requests, 0, COUNT(defects));
    tcase_add_test(tests, requests_cut_anywhere);
    tcase_add_test(tests, targets_are_checked);
    tcase_add_test(tests, no_memory_for_a_request);
    tcase_add_test(tests, no_memory_for_a_reply);
    tcase_add_test(tests, sources_that_include);
    tcase_add_test(tests, folders_of_sources);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
