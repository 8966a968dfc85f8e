/* SPDX-License-Identifier: MIT */
/* Keys, options, sources, the search for compilers and their identity. */
#include <hdrt.h>

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failing_malloc.h"
#include "jit/find.h"
#include "jit/identity.h"
#include "jit/key.h"
#include "jit/loader_cache.h"
#include "jit/options.h"
#include "jit/source.h"

static char root[64];

static void set_up(void)
{
    strcpy(root, "/tmp/hdrt-test-key-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    unsetenv("HDRT_NVRTC");
    unsetenv("HDRT_CLANG");
    unsetenv("CUDA_HOME");
    unsetenv("CUDA_PATH");
}

static void tear_down(void)
{
    char command[128];
    setenv("PATH", "/usr/bin:/bin", 1);
    snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

static const char *in_root(const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, 256, "%s/%s", root, name);
    return path;
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    char command[300], folder[256];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    snprintf(command, sizeof command, "mkdir -p %s", folder);
    ck_assert_int_eq(system(command), 0);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* ---- keys ------------------------------------------------------------------------------------------------------- */

static char *option_texts[] = {(char *)"-DA=1", (char *)"-DB=2"};
static char *option_swapped[] = {(char *)"-DB=2", (char *)"-DA=1"};
static char *option_joined[] = {(char *)"-DA=1-DB=2"};
static const hdrt__option_list no_options, two_options = {option_texts, 2, 2, false, false},
                               swapped_options = {option_swapped, 2, 2, false, false},
                               joined_options = {option_joined, 1, 1, false, false},
                               debug_options = {option_texts, 2, 2, true, false};
static const hdrt__digest identity_a = {{1}}, identity_b = {{2}};

static hdrt__request plain(void)
{
    return (hdrt__request){.compiler = HDRT_COMPILER_CLANG, .kind = HDRT_CODE_PTX, .arch = "sm_90", .source = "kernel",
                           .source_size = 6, .name = "/a/k.cu", .directory = "/a", .options = &two_options,
                           .identity = &identity_a};
}

static void change_compiler(hdrt__request *r) { r->compiler = HDRT_COMPILER_NVRTC; }
static void change_kind(hdrt__request *r) { r->kind = HDRT_CODE_CUBIN; }
static void change_arch(hdrt__request *r) { r->arch = "sm_90a"; }
static void change_lowering(hdrt__request *r) { r->lower_arch = true; }
static void change_source(hdrt__request *r) { r->source = "kernem"; }
static void change_length(hdrt__request *r) { r->source_size = 5; }
static void change_name(hdrt__request *r) { r->name = "/a/l.cu"; }
static void change_options(hdrt__request *r) { r->options = &no_options; }
static void change_order(hdrt__request *r) { r->options = &swapped_options; }
static void change_joints(hdrt__request *r) { r->options = &joined_options; }
static void change_identity(hdrt__request *r) { r->identity = &identity_b; }
static void change_libdevice(hdrt__request *r) { r->libdevice = "/nowhere/libdevice.10.bc"; }
/* Field boundaries: what one loses the other gains. */
static void move_between(hdrt__request *r)
{
    r->name = "/a/k.cu/a";
    r->directory = "";
}

static void (*const changes[])(hdrt__request *) = {
    change_compiler, change_kind, change_arch, change_lowering, change_source, change_length, change_name,
    change_options, change_order, change_joints, change_identity, change_libdevice, move_between,
};

START_TEST(every_field_is_in_the_key)
{
    hdrt__request request = plain();
    hdrt__digest before = hdrt__request_key(&request);
    changes[_i](&request);
    hdrt__digest changed = hdrt__request_key(&request);
    ck_assert(!hdrt__digest_equal(&before, &changed));
    request = plain();
    hdrt__digest after = hdrt__request_key(&request);
    ck_assert(hdrt__digest_equal(&before, &after));
}
END_TEST

START_TEST(what_cannot_matter_is_not_in_the_key)
{
    hdrt__request request = plain();
    hdrt__digest before = hdrt__request_key(&request);
    request.time_limit_ms = 5;
    request.memory_limit_bytes = 7;
    request.directory = "/elsewhere"; /* nothing is looked up in it */
    hdrt__digest after = hdrt__request_key(&request);
    ck_assert(hdrt__digest_equal(&before, &after));
}
END_TEST

START_TEST(the_folder_counts_where_it_matters)
{
    static const char *const sources[] = {"#include \"a.h\"", "# inc\\\nlude <a>", "inc?\?/\nlude", "#import <x>",
                                          "#embed <x>"};
    for (unsigned i = 0; i < 6; i++) {
        hdrt__request request = plain();
        if (i < 5) {
            request.source = sources[i];
            request.source_size = strlen(sources[i]);
        } else {
            request.options = &debug_options;
        }
        hdrt__digest before = hdrt__request_key(&request);
        request.directory = "/elsewhere";
        hdrt__digest after = hdrt__request_key(&request);
        ck_assert_msg(!hdrt__digest_equal(&before, &after), "case %u", i);
    }
}
END_TEST

/* ---- options ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *given[3];
    const char *canonical;
} spellings[] = {
    {{"-I", "inc"}, "-I/here/inc"},
    {{"-Iinc"}, "-I/here/inc"},
    {{"-I/abs/a b"}, "-I/abs/a b"},
    {{"--include-path=inc"}, "-I/here/inc"},
    {{"--include-path", "/abs"}, "-I/abs"},
    {{"-DX"}, "-DX"},
    {{"-D", "X=\"a b\""}, "-DX=\"a b\""},
    {{"--define-macro=X=1"}, "-DX=1"},
    {{"-UX"}, "-UX"},
    {{"-include", "sub/a.h"}, "--pre-include=/here/sub/a.h"},
    {{"--pre-include=a.h"}, "--pre-include=a.h"},
    {{"-std=c++20"}, "-std=c++20"},
    {{"--std=c++17"}, "-std=c++17"},
    {{"-lineinfo"}, "-lineinfo"},
    {{"--generate-line-info"}, "-lineinfo"},
    {{"-G"}, "-G"},
    {{"--device-debug"}, "-G"},
    {{"-use_fast_math"}, "--use_fast_math"},
    {{"--fmad=false"}, "--fmad=false"},
    {{"-fmad", "true"}, "--fmad=true"},
    {{"--maxrregcount=32"}, "--maxrregcount=32"},
    {{"-maxrregcount", "32"}, "--maxrregcount=32"},
    {{"-Xptxas", "-O1"}, "-Xptxas=-O1"},
    {{"--ptxas-options=-dlcm=cg"}, "-Xptxas=-dlcm=cg"},
    {{"--ptxas-options=--maxrregcount=40"}, "-Xptxas=--maxrregcount=40"},
    {{"-w"}, "-w"},
    {{"-Ofc=mid"}, "--Ofast-compile=mid"},
};

START_TEST(option_spellings)
{
    hdrt__option_list list;
    uint32_t count = spellings[_i].given[1] ? 2 : 1;
    ck_assert_int_eq(hdrt__options_parse(spellings[_i].given, count, "/here", &list), HDRT_OK);
    ck_assert_uint_eq(list.count, 1);
    ck_assert_str_eq(list.items[0], spellings[_i].canonical);
    /* The one spelling is understood itself. */
    hdrt__option_list again;
    ck_assert_int_eq(hdrt__options_parse((const char *const *)list.items, 1, "/there", &again), HDRT_OK);
    ck_assert_str_eq(again.items[0], spellings[_i].canonical);
    hdrt__option_list_free(&again);
    hdrt__option_list_free(&list);
}
END_TEST

static const struct {
    const char *given[2];
    const char *words;
} bad_options[] = {
    {{"--time=/etc/passwd"}, "'--time=/etc/passwd' is not allowed: it writes a file"},
    {{"-time=x"}, "writes"},
    {{"--fdevice-time-trace=x"}, "writes"},
    {{"--pch"}, "'--pch'"},
    {{"--pch-dir=/tmp"}, "'--pch-dir=/tmp' is not allowed"},
    {{"-create-pch=x"}, "writes"},
    {{"-o"}, "writes"},
    {{"--output-file=x"}, "writes"},
    {{"-arch=sm_90"}, "hdrt_compile_options.arch"},
    {{"--gpu-architecture=sm_90"}, "hdrt_compile_options.arch"},
    {{"-rdc=true"}, "link step"},
    {{"-dlto"}, "link step"},
    {{"-O3"}, "-Xptxas=-O3"},
    {{"--frobnicate"}, "'--frobnicate' is not known"},
    {{"-lineinfo=1"}, "not known"},
    {{"-Wl,x"}, "not known"},
    {{"@file"}, "not known"},
    {{"x.cu"}, "not known"},
    {{""}, "empty"},
    {{"-I"}, "'-I' needs a value"},
    {{"-std=c99"}, "expected c++03"},
    {{"--fmad=maybe"}, "true or false"},
    {{"--maxrregcount=many"}, "a number"},
    {{"-Xptxas=-o x"}, "steers code"},
    {{"-Xptxas=--output-file=x"}, "steers code"},
    {{"-Xptxas=-O1 -o x"}, "steers code"},
    {{"-DX=1\n#include </etc/passwd>"}, "line break"},
    {{"-D="}, ""},
};

START_TEST(options_that_are_refused)
{
    hdrt__option_list list;
    hdrt_status status = hdrt__options_parse(bad_options[_i].given, 1, "/here", &list);
    if (*bad_options[_i].words == '\0') {
        hdrt__option_list_free(&list);
        return;
    }
    ck_assert_int_eq(status, HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(hdrt_last_error(), bad_options[_i].words), "%s", hdrt_last_error());
    ck_assert_uint_eq(list.count, 0);
}
END_TEST

START_TEST(option_order_and_flags)
{
    static const char *const given[] = {"-DB", "-I", "x", "-DA", "-lineinfo", "-include", "a.h", "-DA"};
    static const char *const expected[] = {"-DB", "-I/h/x", "-DA", "-lineinfo", "--pre-include=a.h", "-DA"};
    hdrt__option_list list;
    ck_assert_int_eq(hdrt__options_parse(given, 8, "/h", &list), HDRT_OK);
    ck_assert_uint_eq(list.count, 6);
    for (unsigned i = 0; i < 6; i++)
        ck_assert_str_eq(list.items[i], expected[i]);
    ck_assert(list.debug_paths && list.includes);
    hdrt__option_list_free(&list);
    ck_assert_int_eq(hdrt__options_parse(NULL, 0, "/h", &list), HDRT_OK);
    ck_assert_int_eq(hdrt__options_parse(NULL, 1, "/h", &list), HDRT_ERROR_INVALID_ARGUMENT);
    static const char *const with_null[] = {"-DA", NULL};
    ck_assert_int_eq(hdrt__options_parse(with_null, 2, "/h", &list), HDRT_ERROR_INVALID_ARGUMENT);
    hdrt_status status = HDRT_OK;
    FAILING_MALLOC_EACH(n)
    {
        status = hdrt__options_parse(given, 8, "/h", &list);
        hdrt__option_list_free(&list);
        if (status != HDRT_OK && status != HDRT_ERROR_OUT_OF_MEMORY)
            abort();
    }
    ck_assert_int_eq(status, HDRT_OK);
}
END_TEST

START_TEST(targets)
{
    static const char *const good[] = {"sm_75", "sm_90", "sm_90a", "sm_100f", "sm_120"};
    static const char *const bad[] = {"",        "sm_",        "sm_9", "sm_9000", "sm_90b",
                                      "sm_90aa", "compute_90", "90",   "sm_90 ",  "SM_90"};
    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(hdrt__arch_check(good[i]), HDRT_OK);
    for (unsigned i = 0; i < 10; i++)
        ck_assert_int_eq(hdrt__arch_check(bad[i]), HDRT_ERROR_INVALID_ARGUMENT);
}
END_TEST

/* ---- sources ---------------------------------------------------------------------------------------------------- */

static hdrt_status read_text(const char *text, size_t size, hdrt__input *input)
{
    hdrt_source source = HDRT_SOURCE_INIT;
    source.text = text;
    source.length = size;
    return hdrt__input_read(&source, NULL, input);
}

START_TEST(source_bytes)
{
    hdrt__input input;
    ck_assert_int_eq(read_text("\xef\xbb\xbfint a;\r\n", 0, &input), HDRT_OK);
    ck_assert_uint_eq(input.size, 8);
    ck_assert_mem_eq(input.text, "int a;\r\n", 9); /* mark away, CRLF kept, NUL behind */
    ck_assert_str_eq(input.name, "source.cu");
    hdrt__input_free(&input);
    ck_assert_int_eq(read_text("", 0, &input), HDRT_OK);
    ck_assert_uint_eq(input.size, 0);
    hdrt__input_free(&input);
    ck_assert_int_eq(read_text("a\0b", 3, &input), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "NUL at byte 1"));
    ck_assert_int_eq(read_text("\xff\xfei\0n\0", 6, &input), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "UTF-16"));
}
END_TEST

START_TEST(source_files)
{
    hdrt__input input;
    hdrt_source source = HDRT_SOURCE_INIT;
    const char *path = in_root("dir \"q\" \xc3\xa9/k.cu");
    char command[256];
    snprintf(command, sizeof command, "mkdir '%s'", in_root("dir \"q\" \xc3\xa9"));
    ck_assert_int_eq(system(command), 0);
    FILE *file = fopen(path, "w");
    fputs("int k;", file);
    fclose(file);
    source.path = path;
    ck_assert_int_eq(hdrt__input_read(&source, NULL, &input), HDRT_OK);
    ck_assert_str_eq(input.name, path);
    ck_assert_str_eq(input.directory, in_root("dir \"q\" \xc3\xa9"));
    hdrt__input_free(&input);
    /* A name changes what messages say, not where includes are found. */
    source.name = "shown.cu";
    ck_assert_int_eq(hdrt__input_read(&source, NULL, &input), HDRT_OK);
    ck_assert_str_eq(input.name, "shown.cu");
    ck_assert_str_eq(input.directory, in_root("dir \"q\" \xc3\xa9"));
    hdrt__input_free(&input);
    source.name = NULL;
    /* A relative path. */
    ck_assert_int_eq(chdir(in_root("dir \"q\" \xc3\xa9")), 0);
    source.path = "k.cu";
    ck_assert_int_eq(hdrt__input_read(&source, NULL, &input), HDRT_OK);
    ck_assert_str_eq(input.name, path);
    hdrt__input_free(&input);
    ck_assert_int_eq(chdir("/"), 0);
    source.path = in_root("none.cu");
    ck_assert_int_eq(hdrt__input_read(&source, NULL, &input), HDRT_ERROR_IO);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "none.cu': No such file"));
    source.path = root;
    ck_assert_int_eq(hdrt__input_read(&source, NULL, &input), HDRT_ERROR_IO);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "it is a folder"));
    source.path = in_root("pipe.cu");
    ck_assert_int_eq(mkfifo(source.path, 0600), 0);
    alarm(5);
    ck_assert_int_eq(hdrt__input_read(&source, NULL, &input), HDRT_ERROR_IO);
    alarm(0);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "no regular file"));
}
END_TEST

START_TEST(source_structs)
{
    hdrt__input input;
    hdrt_source source = HDRT_SOURCE_INIT;
    hdrt_compile_options options = HDRT_COMPILE_OPTIONS_INIT;
    const char *name = "x";
    ck_assert_int_eq(hdrt__input_read(NULL, NULL, &input), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt__input_read(&source, NULL, &input), HDRT_ERROR_INVALID_ARGUMENT);
    source.text = "";
    source.header_names = &name;
    source.header_count = 1;
    ck_assert_int_eq(hdrt__input_read(&source, NULL, &input), HDRT_ERROR_INVALID_ARGUMENT);
    source.header_names = NULL;
    source.header_count = 0;
    source.reserved = 1;
    ck_assert_int_eq(hdrt__input_read(&source, NULL, &input), HDRT_ERROR_INVALID_ARGUMENT);
    source.reserved = 0;
    source.name = "";
    ck_assert_int_eq(hdrt__input_read(&source, NULL, &input), HDRT_ERROR_INVALID_ARGUMENT);
    source.name = "two\nlines";
    ck_assert_int_eq(hdrt__input_read(&source, NULL, &input), HDRT_ERROR_INVALID_ARGUMENT);
    source.name = NULL;
    options.name_count = 1;
    ck_assert_int_eq(hdrt__input_read(&source, &options, &input), HDRT_ERROR_INVALID_ARGUMENT);
    options.name_count = 0;
    options.arch = "sm_bad";
    ck_assert_int_eq(hdrt__input_read(&source, &options, &input), HDRT_ERROR_INVALID_ARGUMENT);
    options.arch = NULL;
    options.compiler = (hdrt_compiler)7;
    ck_assert_int_eq(hdrt__input_read(&source, &options, &input), HDRT_ERROR_INVALID_ARGUMENT);
    options.compiler = HDRT_COMPILER_AUTO;
    options.reserved[7] = 1;
    ck_assert_int_eq(hdrt__input_read(&source, &options, &input), HDRT_ERROR_INVALID_ARGUMENT);
    options.reserved[7] = 0;
    hdrt_status status = HDRT_OK;
    FAILING_MALLOC_EACH(n)
    {
        status = hdrt__input_read(&source, &options, &input);
        hdrt__input_free(&input);
    }
    ck_assert_int_eq(status, HDRT_OK);
}
END_TEST

/* ---- the search ------------------------------------------------------------------------------------------------- */

START_TEST(nvrtc_by_name)
{
    hdrt__found found;
    write_file(in_root("lib64/libnvrtc.so.13"), "x", 1);
    write_file(in_root("lib64/libnvrtc-builtins.so.13.1"), "x", 1);
    write_file(in_root("flat/libnvrtc.so.12"), "x", 1);
    write_file(in_root("real/libnvrtc.so.12.4.127"), "x", 1);
    write_file(in_root("real/libnvrtc-builtins.so.12.4"), "x", 1);
    write_file(in_root("real/libnvrtc-builtins.so.12.5"), "x", 1);
    write_file(in_root("empty/readme"), "x", 1);
    /* A toolkit's folder, the library's folder, the file itself. */
    ck_assert_int_eq(hdrt__find_nvrtc(root, &found), HDRT_OK);
    ck_assert_str_eq(found.path, in_root("lib64/libnvrtc.so.13"));
    ck_assert_str_eq(found.builtins, in_root("lib64/libnvrtc-builtins.so.13.1"));
    ck_assert_str_eq(found.rule, "the runtime option nvrtc");
    hdrt__found_free(&found);
    ck_assert_int_eq(hdrt__find_nvrtc(in_root("flat"), &found), HDRT_OK);
    ck_assert_str_eq(found.path, in_root("flat/libnvrtc.so.12"));
    ck_assert_ptr_null(found.builtins);
    hdrt__found_free(&found);
    /* The library's own version chooses among several builtins. */
    ck_assert_int_eq(symlink("libnvrtc.so.12.4.127", in_root("real/libnvrtc.so.12")), 0);
    setenv("HDRT_NVRTC", in_root("real/libnvrtc.so.12"), 1);
    ck_assert_int_eq(hdrt__find_nvrtc(NULL, &found), HDRT_OK);
    ck_assert_str_eq(found.path, in_root("real/libnvrtc.so.12"));
    ck_assert_str_eq(found.builtins, in_root("real/libnvrtc-builtins.so.12.4"));
    ck_assert_str_eq(found.rule, "HDRT_NVRTC");
    hdrt__found_free(&found);
    /* What was asked for and is not there is not looked for elsewhere. */
    ck_assert_int_eq(hdrt__find_nvrtc(in_root("empty"), &found), HDRT_OK);
    ck_assert_ptr_null(found.path);
    ck_assert_msg(strstr(found.rule, "empty' (no libnvrtc"), "%s", found.rule);
    hdrt__found_free(&found);
    ck_assert_int_eq(hdrt__find_nvrtc(in_root("nowhere"), &found), HDRT_OK);
    ck_assert_ptr_null(found.path);
    ck_assert_msg(strstr(found.rule, "no such file"), "%s", found.rule);
    hdrt__found_free(&found);
    unsetenv("HDRT_NVRTC");
    setenv("CUDA_PATH", root, 1);
    ck_assert_int_eq(hdrt__find_nvrtc(NULL, &found), HDRT_OK);
    ck_assert_str_eq(found.rule, "CUDA_PATH");
    hdrt__found_free(&found);
    unsetenv("CUDA_PATH");
    setenv("LD_LIBRARY_PATH", in_root("flat"), 1);
    ck_assert_int_eq(hdrt__find_nvrtc(NULL, &found), HDRT_OK);
    ck_assert_str_eq(found.path, in_root("flat/libnvrtc.so.12"));
    ck_assert_str_eq(found.rule, "LD_LIBRARY_PATH");
    hdrt__found_free(&found);
}
END_TEST

static void make_package(const char *folder, const char *name, const char *builtins)
{
    char path[180];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    write_file(in_root(path), "x", 1);
    snprintf(path, sizeof path, "%s/%s", folder, builtins);
    write_file(in_root(path), "x", 1);
}

static bool is_12_4(const hdrt__found *found, void *context)
{
    (void)context;
    return found->major == 12 && found->minor == 4;
}

static const hdrt__found *find_in(const hdrt__found_list *list, const char *path)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i].path && strcmp(list->items[i].path, path) == 0)
            return &list->items[i];
    ck_abort_msg("%s is not in the list", path);
}

/* Python packages of 11.8, 12 and 13, each with its own layout, in the places where Python has them. */
START_TEST(nvrtcs_of_python)
{
    hdrt__found_list list;
    char path[600];
    make_package("home/.local/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib", "libnvrtc.so.11.2",
                 "libnvrtc-builtins.so.11.8");
    make_package("venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib", "libnvrtc.so.12",
                 "libnvrtc-builtins.so.12.4");
    write_file(in_root("venv/lib/python3.11/site-packages/nvidia/nvjitlink/lib/libnvJitLink.so.12"), "x", 1);
    make_package("venv/lib/python3.11/site-packages/nvidia/cu13/lib", "libnvrtc.so.13", "libnvrtc-builtins.so.13.0");
    make_package("conda[x]/lib", "libnvrtc.so.12", "libnvrtc-builtins.so.12.6");
    setenv("CUDA_HOME", in_root("nothing"), 1);
    setenv("VIRTUAL_ENV", in_root("venv"), 1);
    setenv("CONDA_PREFIX", in_root("conda[x]"), 1);
    setenv("HOME", in_root("home"), 1);
    unsetenv("PYTHONUSERBASE");
    unsetenv("LD_LIBRARY_PATH");
    ck_assert_int_eq(hdrt__find_nvrtcs(NULL, NULL, NULL, &list), HDRT_OK);
    snprintf(path, sizeof path, "%s/venv/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13", root);
    const hdrt__found *newest = find_in(&list, path);
    ck_assert_uint_eq(newest->major, 13);
    ck_assert_uint_eq(newest->minor, 0);
    ck_assert_ptr_null(newest->linker);
    ck_assert_str_eq(newest->rule, "the Python packages of VIRTUAL_ENV");
    snprintf(path, sizeof path, "%s/venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", root);
    const hdrt__found *middle = find_in(&list, path);
    ck_assert_uint_eq(middle->minor, 4);
    ck_assert_msg(middle->linker && strstr(middle->linker, "/nvjitlink/lib/libnvJitLink.so.12"), "%s", middle->linker);
    ck_assert_ptr_eq(middle, newest + 1); /* in one environment CUDA 13's come first */
    snprintf(path, sizeof path, "%s/conda[x]/lib/libnvrtc.so.12", root);
    ck_assert_uint_eq(find_in(&list, path)->minor, 6);
    snprintf(path, sizeof path, "%s/home/.local/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2",
             root);
    const hdrt__found *oldest = find_in(&list, path); /* whose name says 11.2 */
    ck_assert_uint_eq(oldest->major, 11);
    ck_assert_uint_eq(oldest->minor, 8);
    ck_assert_msg(strstr(oldest->builtins, "libnvrtc-builtins.so.11.8"), "%s", oldest->builtins);
    ck_assert_str_eq(oldest->rule, "the user's Python packages");
    hdrt__found_list_free(&list);
    /* A search that may end early does. */
    setenv("CUDA_HOME", in_root("home/.local/lib/python3.9/site-packages/nvidia/cuda_nvrtc"), 1);
    setenv("CUDA_PATH", in_root("venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc"), 1);
    ck_assert_int_eq(hdrt__find_nvrtcs(NULL, is_12_4, NULL, &list), HDRT_OK);
    ck_assert_uint_eq(list.count, 2);
    hdrt__found_list_free(&list);
    unsetenv("CUDA_HOME");
    unsetenv("CUDA_PATH");
}
END_TEST

static void make_program(const char *path)
{
    write_file(path, "#!/bin/sh\n", 10);
    ck_assert_int_eq(chmod(path, 0755), 0);
}

START_TEST(clang_by_version)
{
    hdrt__found found;
    char path[600];
    make_program(in_root("one/clang-9"));
    make_program(in_root("one/clang-13")); /* older than what is supported: never chosen */
    make_program(in_root("one/clang-15"));
    make_program(in_root("one/clang"));
    make_program(in_root("two/clang-22"));
    write_file(in_root("two/clang-23"), "not executable", 14);
    snprintf(path, sizeof path, "%s:%s:.:", in_root("one"), in_root("two"));
    setenv("PATH", path, 1);
    ck_assert_int_eq(hdrt__find_clang(NULL, &found), HDRT_OK);
    ck_assert_str_eq(found.path, in_root("two/clang-22"));
    hdrt__found_free(&found);
    setenv("PATH", in_root("one"), 1);
    ck_assert_int_eq(hdrt__find_clang(NULL, &found), HDRT_OK);
    ck_assert_str_eq(found.path, in_root("one/clang-15"));
    ck_assert_str_eq(found.rule, "PATH");
    hdrt__found_free(&found);
    unlink(in_root("one/clang-15"));
    ck_assert_int_eq(hdrt__find_clang(NULL, &found), HDRT_OK);
    ck_assert_str_eq(found.path, in_root("one/clang"));
    hdrt__found_free(&found);
    unlink(in_root("one/clang"));
    ck_assert_int_eq(hdrt__find_clang(NULL, &found), HDRT_OK);
    ck_assert_ptr_null(found.path);
    ck_assert_msg(strstr(found.rule, "HDRT_CLANG") && strstr(found.rule, in_root("one")), "%s", found.rule);
    ck_assert_msg(strstr(found.rule, "down to clang-14 and clang in PATH"), "%s", found.rule);
    hdrt__found_free(&found);
    setenv("HDRT_CLANG", "clang-9", 1); /* a name is looked for in PATH */
    ck_assert_int_eq(hdrt__find_clang(NULL, &found), HDRT_OK);
    ck_assert_str_eq(found.path, in_root("one/clang-9"));
    ck_assert_str_eq(found.rule, "HDRT_CLANG");
    hdrt__found_free(&found);
    ck_assert_int_eq(hdrt__find_clang(in_root("two/clang-22"), &found), HDRT_OK);
    ck_assert_str_eq(found.rule, "the runtime option clang");
    hdrt__found_free(&found);
    ck_assert_int_eq(hdrt__find_clang("/nowhere/clang", &found), HDRT_OK);
    ck_assert_ptr_null(found.path);
    hdrt__found_free(&found);
    hdrt_status status = HDRT_OK;
    FAILING_MALLOC_EACH(n)
    {
        status = hdrt__find_clang(in_root("two/clang-22"), &found);
        hdrt__found_free(&found);
    }
    ck_assert_int_eq(status, HDRT_OK);
}
END_TEST

START_TEST(libdevice_of_a_toolkit)
{
    write_file(in_root("cuda/nvvm/libdevice/libdevice.10.bc"), "x", 1);
    write_file(in_root("cuda/targets/x86_64-linux/lib/libnvrtc.so.13"), "x", 1);
    char *path = hdrt__find_libdevice(in_root("cuda/targets/x86_64-linux/lib/libnvrtc.so.13"));
    ck_assert_str_eq(path, in_root("cuda/nvvm/libdevice/libdevice.10.bc"));
    free(path);
    setenv("CUDA_HOME", in_root("cuda"), 1);
    path = hdrt__find_libdevice(NULL);
    ck_assert_str_eq(path, in_root("cuda/nvvm/libdevice/libdevice.10.bc"));
    free(path);
}
END_TEST

/* An ld.so.cache of the new format with one entry, and the same behind one of the old. */
static size_t make_loader_cache(unsigned char *bytes, bool old_first)
{
    size_t base = 0;
    memset(bytes, 0, 512);
    if (old_first) {
        memcpy(bytes, "ld.so-1.7.0", 11);
        bytes[12] = 1; /* one entry of 12 bytes: 28, rounded up to 32 */
        base = 32;
    }
    unsigned char *cache = bytes + base;
    memcpy(cache, "glibc-ld.so.cache1.1", 20);
    cache[20] = 2;
    unsigned char *entry = cache + 48;
    for (unsigned i = 0; i < 2; i++, entry += 24) {
        entry[0] = 3;
        entry[1] = 3;
#if defined(__aarch64__)
        entry[1] = 0x0a;
#endif
        entry[4] = (unsigned char)(i ? 100 : 120);
        entry[8] = (unsigned char)(i ? 140 : 160);
    }
    strcpy((char *)cache + 100, "libnvrtc.so.13");
    strcpy((char *)cache + 120, "libother.so.1");
    strcpy((char *)cache + 140, "/opt/n/lib");
    strcpy((char *)cache + 160, "/opt/o/lib");
    return base + 171;
}

START_TEST(loader_cache)
{
    unsigned char bytes[512];
    for (int old_first = 0; old_first < 2; old_first++) {
        size_t size = make_loader_cache(bytes, old_first);
        char *path = hdrt__loader_cache_find(bytes, size, "libnvrtc.so.13");
        ck_assert_str_eq(path, "/opt/n/lib");
        free(path);
        ck_assert_ptr_null(hdrt__loader_cache_find(bytes, size, "libnvrtc.so.12"));
        for (size_t cut = 0; cut < size; cut++) {
            unsigned char *exact = malloc(cut ? cut : 1);
            memcpy(exact, bytes, cut);
            free(hdrt__loader_cache_find(exact, cut, "libnvrtc.so.13"));
            free(exact);
        }
        for (size_t at = 0; at < size; at++)
            for (unsigned bit = 0; bit < 8; bit++) {
                unsigned char *exact = malloc(size);
                memcpy(exact, bytes, size);
                exact[at] ^= (unsigned char)(1u << bit);
                free(hdrt__loader_cache_find(exact, size, "libnvrtc.so.13"));
                free(exact);
            }
    }
}
END_TEST

START_TEST(libraries_of_a_program)
{
    static const char *const c_library[] = {"libc.so", NULL};
    hdrt__buffer paths = HDRT__BUFFER_INIT;
    /* This test itself needs libc, which the loader's cache or folders have. */
    hdrt__elf_needed("/proc/self/exe", c_library, &paths);
    ck_assert_uint_gt(paths.size, 0);
    ck_assert_int_eq(paths.bytes[0], '/');
    ck_assert_int_eq(access((char *)paths.bytes, R_OK), 0);
    hdrt__buffer_free(&paths);
    /* A damaged file gives nothing, and no reader leaves its bytes. */
    static unsigned char bytes[16384];
    FILE *self = fopen("/proc/self/exe", "r");
    size_t size = fread(bytes, 1, sizeof bytes, self);
    fclose(self);
    for (size_t cut = 0; cut < size; cut += 997) {
        write_file(in_root("elf"), bytes, cut);
        hdrt__elf_needed(in_root("elf"), c_library, &paths);
    }
    hdrt__elf_needed(in_root("none"), c_library, &paths);
    hdrt__buffer_free(&paths);
}
END_TEST

START_TEST(identities)
{
    hdrt__identity before, after;
    make_program(in_root("clang"));
    write_file(in_root("worker"), "w", 1);
    write_file(in_root("prelude/hdrt_device.h"), "int p;", 6);
    hdrt__found found = {.path = (char *)in_root("clang")};
    char worker[256], prelude[256], clang[256];
    strcpy(worker, in_root("worker"));
    strcpy(prelude, in_root("prelude"));
    strcpy(clang, in_root("clang"));
    found.path = clang;
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(hdrt__identity_of(HDRT_COMPILER_CLANG, &found, worker, prelude, NULL, NULL, &before), HDRT_OK);
        ck_assert(hdrt__identity_current(&before));
        struct timespec past[2] = {{1000 + i, 0}, {1000 + i, 0}};
        if (i == 0)
            write_file(in_root("clang"), "#!/bin/sh \n", 11);
        else if (i == 1)
            ck_assert_int_eq(utimensat(AT_FDCWD, clang, past, 0), 0);
        else if (i == 2)
            write_file(in_root("worker"), "ww", 2);
        else if (i == 3)
            write_file(in_root("prelude/hdrt_device.h"), "int q;", 6);
        else
            write_file(in_root("prelude/more.h"), "int q;", 6);
        if (i < 4)
            ck_assert_msg(!hdrt__identity_current(&before), "case %d", i);
        ck_assert_int_eq(hdrt__identity_of(HDRT_COMPILER_CLANG, &found, worker, prelude, NULL, NULL, &after), HDRT_OK);
        /* What it is made of counts, not when it was installed. */
        ck_assert_msg(hdrt__digest_equal(&before.digest, &after.digest) == (i == 1), "case %d", i);
        hdrt__identity_free(&before);
        hdrt__identity_free(&after);
    }
    hdrt_status status = HDRT_OK;
    FAILING_MALLOC_EACH(n)
    {
        status = hdrt__identity_of(HDRT_COMPILER_CLANG, &found, worker, prelude, NULL, NULL, &after);
        hdrt__identity_free(&after);
    }
    ck_assert_int_eq(status, HDRT_OK);
    /* A link to the compiler is the same compiler; a moved worker too. */
    ck_assert_int_eq(hdrt__identity_of(HDRT_COMPILER_CLANG, &found, worker, prelude, NULL, NULL, &before), HDRT_OK);
    ck_assert_int_eq(symlink("clang", in_root("clang-link")), 0);
    ck_assert_int_eq(rename(worker, in_root("moved")), 0);
    found.path = (char *)in_root("clang-link");
    ck_assert_int_eq(hdrt__identity_of(HDRT_COMPILER_CLANG, &found, in_root("moved"), prelude, NULL, NULL, &after), HDRT_OK);
    ck_assert(hdrt__digest_equal(&before.digest, &after.digest));
    hdrt__identity_free(&before);
    hdrt__identity_free(&after);
    found.path = (char *)in_root("gone");
    ck_assert_int_eq(hdrt__identity_of(HDRT_COMPILER_CLANG, &found, NULL, NULL, NULL, NULL, &after), HDRT_ERROR_NO_COMPILER);
}
END_TEST

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

int main(void)
{
    Suite *suite = suite_create("jit key");
    TCase *tests = tcase_create("key");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, every_field_is_in_the_key, 0, COUNT(changes));
    tcase_add_test(tests, what_cannot_matter_is_not_in_the_key);
    tcase_add_test(tests, the_folder_counts_where_it_matters);
    tcase_add_loop_test(tests, option_spellings, 0, COUNT(spellings));
    tcase_add_loop_test(tests, options_that_are_refused, 0, COUNT(bad_options));
    tcase_add_test(tests, option_order_and_flags);
    tcase_add_test(tests, targets);
    tcase_add_test(tests, source_bytes);
    tcase_add_test(tests, source_files);
    tcase_add_test(tests, source_structs);
    tcase_add_test(tests, nvrtc_by_name);
    tcase_add_test(tests, nvrtcs_of_python);
    tcase_add_test(tests, clang_by_version);
    tcase_add_test(tests, libdevice_of_a_toolkit);
    tcase_add_test(tests, loader_cache);
    tcase_add_test(tests, libraries_of_a_program);
    tcase_add_test(tests, identities);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
