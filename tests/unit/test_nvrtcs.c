/* SPDX-License-Identifier: MIT */
/*
 * The same questions to each NVRTC that is there: the installed one, and those of other CUDA versions that
 * tests/fetch-nvrtc.sh brought. None needs a GPU. What a version cannot do must be said, not go wrong.
 */
#include <hdrt.h>

#include <check.h>
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(call) ck_assert_msg((call) == HDRT_OK, "%s: %s", nvrtc, hdrt_last_error())
#define MOST 16

static char *nvrtcs[MOST];
static int nvrtc_count;

static const char *nvrtc; /* the one that is asked */
static char root[64];
static hdrt_runtime *runtime;
static hdrt_compiler_info about;

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void open_runtime(int index)
{
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    char cache[96];
    nvrtc = nvrtcs[index];
    strcpy(root, "/tmp/hdrt-test-nvrtcs-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    snprintf(cache, sizeof cache, "%s/cache", root);
    options.driver = HDRT_DRIVER_NONE;
    options.cache_dir = cache;
    options.nvrtc = nvrtc;
    CHECK(hdrt_runtime_create(&options, &runtime));
    about = (hdrt_compiler_info)HDRT_COMPILER_INFO_INIT;
    CHECK(hdrt_runtime_compiler(runtime, HDRT_COMPILER_NVRTC, &about));
    ck_assert_uint_ge(about.version_major, 11);
}

static void close_runtime(void)
{
    char command[128];
    hdrt_runtime_destroy(runtime);
    snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

static hdrt_source text_source(const char *text)
{
    hdrt_source source = HDRT_SOURCE_INIT;
    source.text = text;
    return source;
}

static hdrt_compile_options for_target(const char *arch, hdrt_code_kind kind)
{
    hdrt_compile_options options = HDRT_COMPILE_OPTIONS_INIT;
    options.compiler = HDRT_COMPILER_NVRTC;
    options.arch = arch;
    options.kind = kind;
    return options;
}

static hdrt_image_info info_of(const hdrt_image *image)
{
    hdrt_image_info info = HDRT_IMAGE_INFO_INIT;
    CHECK(hdrt_image_get_info(image, &info));
    return info;
}

#define SIMPLE "extern \"C\" __global__ void k(float *p, int n) { p[n] = 7.0f; }\n"

START_TEST(a_cubin_and_its_ptx)
{
    hdrt_source source = text_source(SIMPLE);
    hdrt_compile_options options = for_target("sm_80", HDRT_CODE_AUTO);
    hdrt_image *image;
    char version[32];
    open_runtime(_i);
    CHECK(hdrt_image_compile(runtime, &source, &options, &image));
    hdrt_image_info info = info_of(image);
    snprintf(version, sizeof version, "NVRTC %u.%u", about.version_major, about.version_minor);
    ck_assert_str_eq(info.compiler_version, version); /* what its files are named is what it says itself */
    ck_assert_int_eq(info.kind, HDRT_CODE_CUBIN);
    ck_assert(info.code_size > 64 && memcmp(info.code, "\177ELF", 4) == 0);
    ck_assert_ptr_nonnull(strstr(info.ptx, ".entry k("));
    ck_assert_uint_eq(info.kernel_count, 1);
    hdrt_image_kernel_info kernel = HDRT_IMAGE_KERNEL_INFO_INIT;
    CHECK(hdrt_image_kernel(image, 0, &kernel));
    ck_assert(strcmp(kernel.name, "k") == 0 && kernel.parameter_count == 2 && kernel.parameters[1].size == 4);
    hdrt_image_destroy(image);
    options.kind = HDRT_CODE_PTX;
    CHECK(hdrt_image_compile(runtime, &source, &options, &image));
    ck_assert_int_eq(info_of(image).kind, HDRT_CODE_PTX);
    hdrt_image_destroy(image);
    close_runtime();
}
END_TEST

START_TEST(names_and_headers_in_memory)
{
    hdrt_source source = text_source("#include \"part/a.h\"\n#include <b.h>\nnamespace ns {\n"
                                     "template<typename T, int N> __global__ void fill(T *p) { *p = N + A + B; }\n"
                                     "__constant__ int table[2] = {8, 9}; }\n");
    static const char *const names[] = {"ns::fill<int, 3>", "&ns::table", "ns::fill<float,4>"};
    static const char *const headers[] = {"part/a.h", "b.h"}, *texts[] = {"#define A 40\n", "#define B 2\n"};
    hdrt_compile_options options = for_target("sm_80", HDRT_CODE_AUTO);
    hdrt_image *image;
    const char *name;
    options.names = names;
    options.name_count = 3;
    source.header_names = headers;
    source.header_texts = texts;
    source.header_count = 2;
    open_runtime(_i);
    for (int round = 0; round < 2; round++) {
        CHECK(hdrt_image_compile(runtime, &source, &options, &image));
        ck_assert_int_eq(info_of(image).from_cache, round);
        ck_assert_uint_eq(info_of(image).kernel_count, 2);
        CHECK(hdrt_image_lowered_name(image, "ns::fill<int, 3>", &name));
        ck_assert_msg(strncmp(name, "_ZN2ns4fillIiLi3EEEvPT_", 24) == 0, "%s", name);
        CHECK(hdrt_image_lowered_name(image, "ns::table", &name));
        ck_assert_str_eq(name, "_ZN2ns5tableE");
        ck_assert_int_eq(hdrt_image_lowered_name(image, "ns::fill<int,3>", &name), HDRT_ERROR_NOT_FOUND);
        hdrt_image_destroy(image);
    }
    static const char *const absent[] = {"ns::absent<int>"};
    options.names = absent;
    options.name_count = 1;
    ck_assert_int_eq(hdrt_image_compile(runtime, &source, &options, &image), HDRT_ERROR_COMPILE);
    ck_assert_msg(strstr(hdrt_last_error(), "absent"), "%s", hdrt_last_error());
    hdrt_image_destroy(image);
    close_runtime();
}
END_TEST

/* A lambda has no name, but its type has one by a device function that returns it. */
START_TEST(lambdas_by_a_function)
{
    hdrt_source source = text_source("__device__ auto twice() { return [](int x) { return 2 * x; }; }\n"
                                     "template<typename F> __global__ void apply(int *p, F f) { *p = f(*p); }\n");
    static const char *const names[] = {"apply<decltype(twice())>"};
    hdrt_compile_options options = for_target("sm_80", HDRT_CODE_AUTO);
    hdrt_image *image;
    const char *name;
    options.names = names;
    options.name_count = 1;
    open_runtime(_i);
    hdrt_status status = hdrt_image_compile(runtime, &source, &options, &image);
    if (about.version_major < 12 && status == HDRT_ERROR_COMPILE) { /* its C++ does not have it, and says where */
        ck_assert_msg(strncmp(hdrt_last_error(), "source.cu:1", 11) == 0, "%s", hdrt_last_error());
    } else {
        CHECK(status);
        CHECK(hdrt_image_lowered_name(image, names[0], &name));
    }
    hdrt_image_destroy(image);
    close_runtime();
}
END_TEST

START_TEST(files_that_were_read)
{
    char source_path[128], header_path[128], include[160];
    const char *given[1];
    hdrt_source source = HDRT_SOURCE_INIT;
    hdrt_compile_options options = for_target("sm_80", HDRT_CODE_AUTO);
    hdrt_image *image;
    open_runtime(_i);
    snprintf(source_path, sizeof source_path, "%s/k.cu", root);
    snprintf(header_path, sizeof header_path, "%s/value.h", root);
    snprintf(include, sizeof include, "-I%s", root);
    write_file(source_path, "#include <value.h>\nextern \"C\" __global__ void k(int *p) { *p = VALUE; }\n");
    write_file(header_path, "#define VALUE 1\n");
    given[0] = include;
    options.options = given;
    options.option_count = 1;
    source.path = source_path;
    usleep(50000); /* the header must not be as young as the compile */
    for (int round = 0; round < 3; round++) {
        if (round == 2) {
            write_file(header_path, "#define VALUE 2\n");
            usleep(50000);
        }
        CHECK(hdrt_image_compile(runtime, &source, &options, &image));
        ck_assert_int_eq(info_of(image).from_cache, round == 1);
        ck_assert_uint_eq(info_of(image).dependency_count, 1);
        ck_assert_str_eq(hdrt_image_dependency(image, 0), header_path);
        ck_assert_ptr_null(hdrt_image_dependency(image, 1));
        hdrt_image_destroy(image);
    }
    close_runtime();
}
END_TEST

/* ---- what NVRTC says it read ------------------------------------------------------------------------------------- */

typedef int compile_call(void *program, int count, const char *const *options);

/* Compiles with NVRTC itself, which writes its time trace to a file of that name and ".json"; whether it can. */
static bool trace(const char *source, const char *include, const char *name)
{
    char option[200], file[200];
    const char *const given[] = {"-arch=sm_80", include, option};
    void *program = NULL, *library = dlopen(about.path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
    int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *);
    compile_call *compile;
    *(void **)&create = dlsym(library, "nvrtcCreateProgram");
    *(void **)&compile = dlsym(library, "nvrtcCompileProgram");
    ck_assert(create && compile);
    snprintf(option, sizeof option, "-fdevice-time-trace=%s", name);
    snprintf(file, sizeof file, "%s.json", name);
    ck_assert_int_eq(create(&program, source, "k.cu", 0, NULL, NULL), 0);
    return compile(program, 3, given) == 0 && access(file, R_OK) == 0;
}

static bool is_recorded(const hdrt_image *image, const char *path)
{
    char real[PATH_MAX];
    const char *recorded;
    for (uint32_t i = 0; (recorded = hdrt_image_dependency(image, i)); i++)
        if (realpath(recorded, real) && strcmp(real, path) == 0)
            return true;
    return false;
}

/* Each header of the trace, which has one event for each that was read, is recorded; returns how many different ones. */
static unsigned headers_of_trace(const char *file, const hdrt_image *image)
{
    static char text[1 << 20], seen[4096];
    char path[PATH_MAX], real[PATH_MAX];
    unsigned count = 0;
    FILE *trace_file = fopen(file, "r");
    ck_assert_ptr_nonnull(trace_file);
    text[fread(text, 1, sizeof text - 1, trace_file)] = '\0';
    fclose(trace_file);
    for (const char *at = text; (at = strstr(at, root)); at += strlen(root)) {
        size_t size = strcspn(at, "\"");
        if (size < 2 || size >= sizeof path || strncmp(at + size - 2, ".h", 2) != 0)
            continue;
        memcpy(path, at, size);
        path[size] = '\0';
        ck_assert_msg(realpath(path, real) != NULL, "%s", path);
        ck_assert_msg(is_recorded(image, real), "%s was read and is not recorded", real);
        if (strstr(seen, real))
            continue;
        ck_assert_uint_lt(strlen(seen) + strlen(real), sizeof seen - 2);
        strcat(strcat(seen, real), "\n");
        count++;
    }
    return count;
}

START_TEST(recorded_files_are_those_of_the_time_trace)
{
    static const char text[] = "#include <a.h>\n#include NAME\n#if 0\n#include <unused.h>\n#endif\n"
                               "extern \"C\" __global__ void k(int *p) { *p = 1; }\n";
    char include[128], name[128], file[140], command[700];
    const char *given[] = {include};
    hdrt_source source = text_source(text);
    hdrt_compile_options options = for_target("sm_80", HDRT_CODE_AUTO);
    hdrt_image *image;
    open_runtime(_i);
    snprintf(command, sizeof command,
             "cd %s && mkdir -p inc/deep && cd inc && echo '#pragma once\n#include \"deep/b.h\"' >a.h && "
             "echo '#include \"../c.h\"\n#define NAME \"deep/d.h\"' >deep/b.h && echo >c.h && "
             "echo '#include <a.h>' >deep/d.h && echo >unused.h", root);
    ck_assert_int_eq(system(command), 0);
    snprintf(include, sizeof include, "-I%s/inc", root);
    snprintf(name, sizeof name, "%s/trace", root);
    snprintf(file, sizeof file, "%s.json", name);
    options.options = given;
    options.option_count = 1;
    CHECK(hdrt_image_compile(runtime, &source, &options, &image));
    ck_assert_uint_eq(info_of(image).dependency_count, 4);
    bool traced = trace(text, include, name);
    unsigned headers = traced ? headers_of_trace(file, image) : 0;
    if (headers == 0 && about.version_major < 13) /* older ones have no trace, or one without headers */
        printf("# skipped: no headers in a time trace of NVRTC %u.%u\n", about.version_major, about.version_minor);
    else
        ck_assert_uint_eq(headers, 4);
    hdrt_image_destroy(image);
    close_runtime();
}
END_TEST

/* ---- changed, and changed back ----------------------------------------------------------------------------------- */

/* The kind of code: another kind is a compile with the reason, and the first is found again with its bytes. */
START_TEST(kinds_are_in_the_key)
{
    const hdrt_source source = text_source(SIMPLE);
    hdrt_code_kind kinds[] = {HDRT_CODE_CUBIN, HDRT_CODE_PTX, HDRT_CODE_LTO_IR};
    hdrt_image *images[3], *again;
    open_runtime(_i);
    int count = about.version_major < 12 ? 2 : 3; /* LTO-IR is of 12 and newer */
    for (int i = 0; i < count; i++) {
        const hdrt_compile_options options = for_target("sm_80", kinds[i]);
        CHECK(hdrt_image_compile(runtime, &source, &options, &images[i]));
        ck_assert(!info_of(images[i]).from_cache);
        ck_assert_int_eq(info_of(images[i]).kind, kinds[i]);
        ck_assert_int_eq(info_of(images[i]).cache_reason, i ? HDRT_CACHE_OPTION_CHANGED : HDRT_CACHE_NEW);
    }
    for (int i = 0; i < count; i++) {
        const hdrt_compile_options options = for_target("sm_80", kinds[i]);
        CHECK(hdrt_image_compile(runtime, &source, &options, &again));
        ck_assert(info_of(again).from_cache);
        ck_assert_uint_eq(info_of(again).code_size, info_of(images[i]).code_size);
        ck_assert_mem_eq(info_of(again).code, info_of(images[i]).code, info_of(again).code_size);
        hdrt_image_destroy(again);
        hdrt_image_destroy(images[i]);
    }
    close_runtime();
}
END_TEST

static void link_is(bool expected_hit, const hdrt_link_input *inputs, uint32_t count, const hdrt_link_options *options)
{
    hdrt_image *linked;
    CHECK(hdrt_image_link(runtime, inputs, count, options, &linked));
    ck_assert_int_eq(info_of(linked).from_cache, expected_hit);
    hdrt_image_destroy(linked);
}

/* A link's inputs, their order, options and target: each changed alone, and changed back. */
START_TEST(links_are_keyed)
{
    static const char *const texts[] = {SIMPLE, "__global__ void l(int *p) { *p = 2; }\n",
                                        "__global__ void l(int *p) { *p = 3; }\n"};
    static const char *const registers[] = {"--maxrregcount=32"};
    const hdrt_compile_options options = for_target("sm_80", HDRT_CODE_LTO_IR);
    hdrt_link_input inputs[3] = {HDRT_LINK_INPUT_INIT, HDRT_LINK_INPUT_INIT, HDRT_LINK_INPUT_INIT};
    hdrt_link_options plain = HDRT_LINK_OPTIONS_INIT, other = HDRT_LINK_OPTIONS_INIT;
    hdrt_image *images[3];
    open_runtime(_i);
    if (about.version_major < 12 || !about.linker_path) {
        printf("# skipped: no links with NVRTC %u.%u here\n", about.version_major, about.version_minor);
        close_runtime();
        return;
    }
    for (int i = 0; i < 3; i++) {
        const hdrt_source source = text_source(texts[i]);
        CHECK(hdrt_image_compile(runtime, &source, &options, &images[i]));
        inputs[i].image = images[i];
    }
    const hdrt_link_input swapped[] = {inputs[1], inputs[0]}, replaced[] = {inputs[0], inputs[2]};
    link_is(false, inputs, 2, &plain);
    link_is(false, swapped, 2, &plain);
    link_is(true, inputs, 2, &plain);
    link_is(false, replaced, 2, &plain);
    link_is(true, inputs, 2, &plain);
    link_is(false, inputs, 1, &plain);
    link_is(true, inputs, 2, &plain);
    other.options = registers;
    other.option_count = 1;
    link_is(false, inputs, 2, &other);
    link_is(true, inputs, 2, &plain);
    other = plain;
    other.arch = "sm_86";
    link_is(false, inputs, 2, &other);
    link_is(true, inputs, 2, &plain);
    for (int i = 0; i < 3; i++)
        hdrt_image_destroy(images[i]);
    close_runtime();
}
END_TEST

START_TEST(errors_have_places)
{
    hdrt_source source = text_source("\n__global__ void k(int *p) {\n    *p = nothing;\n}\n");
    hdrt_compile_options options = for_target("sm_80", HDRT_CODE_AUTO);
    hdrt_image *image;
    hdrt_diagnostic diagnostic;
    open_runtime(_i);
    ck_assert_int_eq(hdrt_image_compile(runtime, &source, &options, &image), HDRT_ERROR_COMPILE);
    CHECK(hdrt_image_diagnostic(image, 0, &diagnostic));
    ck_assert_uint_eq(diagnostic.line, 3);
    ck_assert_msg(strstr(diagnostic.text, "nothing"), "%s", diagnostic.text);
    hdrt_image_destroy(image);
    close_runtime();
}
END_TEST

START_TEST(targets_of_other_times)
{
    hdrt_source source = text_source(SIMPLE);
    hdrt_compile_options options = for_target("sm_199", HDRT_CODE_AUTO);
    hdrt_image *image;
    open_runtime(_i);
    ck_assert_int_eq(hdrt_image_compile(runtime, &source, &options, &image), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(hdrt_last_error(), "sm_199") && strstr(hdrt_last_error(), "sm_90") &&
                      strstr(hdrt_last_error(), about.path), "%s", hdrt_last_error());
    options.lower_arch = true;
    CHECK(hdrt_image_compile(runtime, &source, &options, &image));
    hdrt_image_info info = info_of(image);
    ck_assert_int_eq(info.kind, HDRT_CODE_PTX); /* a cubin of another major number would not run */
    ck_assert_msg(info.note && strstr(info.note, "does not know sm_199"), "%s", info.note);
    ck_assert_ptr_nonnull(strstr(info.code, ".target sm_"));
    hdrt_image_destroy(image);
    close_runtime();
}
END_TEST

START_TEST(several_sources_linked)
{
    hdrt_source sources[2] = {
        text_source("extern \"C\" __device__ int helper(int);\n"
                    "extern \"C\" __global__ void k(int *p, float unused) { *p = helper(*p); }\n"),
        text_source("extern \"C\" __device__ int helper(int x) { return 3 * x; }\n")};
    hdrt_compile_options options = for_target("sm_80", HDRT_CODE_LTO_IR);
    hdrt_compile_item items[2] = {{&sources[0], &options}, {&sources[1], &options}};
    hdrt_image *images[2], *linked;
    hdrt_link_input inputs[2] = {HDRT_LINK_INPUT_INIT, HDRT_LINK_INPUT_INIT};
    hdrt_link_options link_options = HDRT_LINK_OPTIONS_INIT;
    open_runtime(_i);
    hdrt_status status = hdrt_image_compile_batch(runtime, items, 2, images);
    if (about.version_major < 12) {
        ck_assert_int_eq(status, HDRT_ERROR_UNSUPPORTED);
        ck_assert_msg(strstr(hdrt_last_error(), "makes no LTO-IR"), "%s", hdrt_last_error());
        hdrt_image_destroy(images[0]);
        hdrt_image_destroy(images[1]);
        close_runtime();
        return;
    }
    CHECK(status);
    ck_assert_int_eq(info_of(images[0]).kind, HDRT_CODE_LTO_IR);
    inputs[0].image = images[0];
    inputs[1].code = info_of(images[1]).code; /* as bytes that somebody stored */
    inputs[1].code_size = info_of(images[1]).code_size;
    inputs[1].name = "helper";
    status = hdrt_image_link(runtime, inputs, 2, &link_options, &linked);
    if (!about.linker_path) {
        ck_assert_int_eq(status, HDRT_ERROR_UNSUPPORTED);
        ck_assert_msg(strstr(hdrt_last_error(), "nvJitLink"), "%s", hdrt_last_error());
    } else {
        CHECK(status);
        hdrt_image_info info = info_of(linked);
        ck_assert_int_eq(info.kind, HDRT_CODE_CUBIN);
        ck_assert(!info.from_cache);
        ck_assert_msg(strncmp(info.compiler_version, "nvJitLink 1", 11) == 0, "%s", info.compiler_version);
        hdrt_image_kernel_info kernel = HDRT_IMAGE_KERNEL_INFO_INIT;
        CHECK(hdrt_image_kernel(linked, 0, &kernel));
        ck_assert_str_eq(kernel.name, "k");
        ck_assert(!kernel.parameters_known || kernel.parameter_count == 2);
        hdrt_image_destroy(linked);
        CHECK(hdrt_image_link(runtime, inputs, 2, &link_options, &linked));
        ck_assert(info_of(linked).from_cache);
        hdrt_image_destroy(linked);
        link_options.ptx = true;
        CHECK(hdrt_image_link(runtime, inputs, 2, &link_options, &linked));
        ck_assert_ptr_nonnull(strstr(info_of(linked).code, ".entry k("));
        hdrt_image_destroy(linked);
        /* Without the helper it does not link, and the message names what is missing. */
        link_options.ptx = false;
        ck_assert_int_eq(hdrt_image_link(runtime, inputs, 1, &link_options, &linked), HDRT_ERROR_COMPILE);
        ck_assert_msg(strstr(hdrt_last_error(), "helper"), "%s", hdrt_last_error());
        hdrt_image_destroy(linked);
    }
    hdrt_image_destroy(images[0]);
    hdrt_image_destroy(images[1]);
    close_runtime();
}
END_TEST

START_TEST(links_that_are_refused)
{
    static const char ptx[] = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n";
    hdrt_link_input input = HDRT_LINK_INPUT_INIT;
    hdrt_link_options options = HDRT_LINK_OPTIONS_INIT;
    hdrt_image *linked;
    open_runtime(_i);
    ck_assert_int_eq(hdrt_image_link(runtime, NULL, 1, NULL, &linked), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_image_link(runtime, &input, 0, NULL, &linked), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_image_link(runtime, &input, 1, NULL, &linked), HDRT_ERROR_INVALID_ARGUMENT);
    input.code = "what is this";
    input.code_size = 12;
    options.arch = "sm_80";
    ck_assert_int_eq(hdrt_image_link(runtime, &input, 1, &options, &linked), HDRT_ERROR_INVALID_ARGUMENT);
    input.code = ptx;
    input.code_size = sizeof ptx - 1;
    ck_assert_int_eq(hdrt_image_link(runtime, &input, 1, NULL, &linked), HDRT_ERROR_INVALID_ARGUMENT); /* no target */
    options.ptx = true;
    ck_assert_int_eq(hdrt_image_link(runtime, &input, 1, &options, &linked), HDRT_ERROR_INVALID_ARGUMENT);
    options.ptx = false;
    hdrt_status status = hdrt_image_link(runtime, &input, 1, &options, &linked);
    ck_assert_msg(status == (about.linker_path ? HDRT_OK : HDRT_ERROR_UNSUPPORTED), "%s", hdrt_last_error());
    hdrt_image_destroy(linked);
    close_runtime();
}
END_TEST

static void add(const char *path)
{
    char *real = realpath(path, NULL);
    for (int i = 0; real && i < nvrtc_count; i++)
        if (strcmp(real, nvrtcs[i]) == 0) {
            free(real);
            return;
        }
    if (real && nvrtc_count < MOST)
        nvrtcs[nvrtc_count++] = real;
    else
        free(real);
}

static void collect(void)
{
    const char *build = getenv("abs_top_builddir"), *folder = getenv("HDRT_TEST_NVRTC_DIR");
    char pattern[2048];
    glob_t found = {0};
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    hdrt_compiler_info info = HDRT_COMPILER_INFO_INIT;
    hdrt_runtime *none;
    snprintf(pattern, sizeof pattern, "%s%s/*/nvidia/*/lib/libnvrtc.so.1[123]*", folder ? folder : build ? build : ".",
             folder ? "" : "/tests/nvrtc");
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            add(found.gl_pathv[i]);
    globfree(&found);
    options.driver = HDRT_DRIVER_NONE;
    if (hdrt_runtime_create(&options, &none) == HDRT_OK) {
        for (uint32_t i = 0; hdrt_runtime_compiler_at(none, HDRT_COMPILER_NVRTC, i, &info) == HDRT_OK && info.path; i++)
            add(info.path);
        hdrt_runtime_destroy(none);
    }
}

int main(void)
{
    collect();
    if (nvrtc_count == 0) {
        printf("1..0 # SKIP no NVRTC here; tests/fetch-nvrtc.sh brings several\n");
        return 0;
    }
    for (int i = 0; i < nvrtc_count; i++)
        printf("# NVRTC %d: %s\n", i, nvrtcs[i]);
    if (nvrtc_count == 1)
        printf("# only one NVRTC is tested; tests/fetch-nvrtc.sh brings others\n");
    fflush(stdout);
    Suite *suite = suite_create("nvrtcs");
    TCase *cases = tcase_create("nvrtcs");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, a_cubin_and_its_ptx, 0, nvrtc_count);
    tcase_add_loop_test(cases, names_and_headers_in_memory, 0, nvrtc_count);
    tcase_add_loop_test(cases, lambdas_by_a_function, 0, nvrtc_count);
    tcase_add_loop_test(cases, files_that_were_read, 0, nvrtc_count);
    tcase_add_loop_test(cases, recorded_files_are_those_of_the_time_trace, 0, nvrtc_count);
    tcase_add_loop_test(cases, kinds_are_in_the_key, 0, nvrtc_count);
    tcase_add_loop_test(cases, links_are_keyed, 0, nvrtc_count);
    tcase_add_loop_test(cases, errors_have_places, 0, nvrtc_count);
    tcase_add_loop_test(cases, targets_of_other_times, 0, nvrtc_count);
    tcase_add_loop_test(cases, several_sources_linked, 0, nvrtc_count);
    tcase_add_loop_test(cases, links_that_are_refused, 0, nvrtc_count);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    for (int i = 0; i < nvrtc_count; i++)
        free(nvrtcs[i]);
    return 0;
}
