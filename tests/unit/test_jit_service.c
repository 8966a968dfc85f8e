/* SPDX-License-Identifier: MIT */
/*
 * The compile service as its users see it: asynchronous and batch compiles, cancelling, name expressions, in-memory
 * headers. Compiles are clang's, and NVRTC's where it is installed; compilers that take their time or crash are scripts
 * and stand-ins.
 */
#include <hdrt.h>

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "config.h"

#define CHECK(call) ck_assert_msg((call) == HDRT_OK, "%s", hdrt_last_error())

static char root[64];
static hdrt_runtime *runtime;
static hdrt_device *device;

static const char *in_root(const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, 256, "%s/%s", root, name);
    return path;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

/* A runtime on the soft driver with at most `workers` workers; NULL: the clang that is installed. */
static void make_runtime(const char *clang, uint32_t workers)
{
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    options.driver = HDRT_DRIVER_SOFT;
    options.cache_dir = in_root("cache");
    options.clang = clang;
    options.compile_workers = workers;
    CHECK(hdrt_runtime_create(&options, &runtime));
    CHECK(hdrt_device_open(runtime, 0, NULL, &device));
}

static void set_up(void)
{
    strcpy(root, "/tmp/hdrt-test-service-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void tear_down(void)
{
    char command[256];
    hdrt_device_close(device);
    hdrt_runtime_destroy(runtime);
    device = NULL;
    runtime = NULL;
    /* A thread of the runtime may still write there: its end is not waited for. */
    snprintf(command, sizeof command, "for i in 1 2 3 4 5; do rm -rf %s 2>/dev/null && exit 0; sleep 0.2; done; exit 1",
             root);
    ck_assert_int_eq(system(command), 0);
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static hdrt_source text_source(const char *text)
{
    hdrt_source source = HDRT_SOURCE_INIT;
    source.text = text;
    return source;
}

/* Run a kernel of one int pointer and return what it wrote. */
static int run(hdrt_kernel *kernel)
{
    hdrt_queue *queue;
    hdrt_ptr memory;
    int value = -1;
    CHECK(hdrt_queue_create(device, NULL, &queue));
    CHECK(hdrt_alloc(queue, sizeof value, &memory));
    CHECK(hdrt_launch(queue, kernel, hdrt_grid_1d(1, 1), HDRT_ARGS(memory)));
    CHECK(hdrt_copy_dtoh(queue, &value, memory, sizeof value));
    CHECK(hdrt_queue_synchronize(queue));
    CHECK(hdrt_free(queue, memory));
    hdrt_queue_destroy(queue);
    return value;
}

#define SIMPLE "extern \"C\" __global__ void k(int *p) { *p = 7; }\n"

/* ---- asynchronous ------------------------------------------------------------------------------------------------ */

START_TEST(a_module_comes_later)
{
    hdrt_source source = text_source(SIMPLE);
    hdrt_module *module;
    hdrt_kernel *kernel;
    hdrt_event event;
    make_runtime(NULL, 2);
    CHECK(hdrt_module_compile_async(device, &source, NULL, &module, &event));
    hdrt_status status = hdrt_module_kernel(module, "k", &kernel);
    ck_assert_msg(status == HDRT_NOT_READY || status == HDRT_OK, "%s", hdrt_last_error());
    CHECK(hdrt_event_wait(runtime, event, HDRT_FOREVER));
    CHECK(hdrt_module_status(module));
    CHECK(hdrt_module_kernel(module, "k", &kernel));
    ck_assert_int_eq(run(kernel), 7);
    ck_assert(!hdrt_module_from_cache(module));
    ck_assert(hdrt_device_supports(device, HDRT_FEATURE_ASYNC_COMPILE));
    hdrt_module_cancel(module); /* too late to do anything */
    CHECK(hdrt_module_status(module));
    hdrt_module_destroy(module);
    CHECK(hdrt_event_wait(runtime, event, 0)); /* also after its end */
    CHECK(hdrt_module_compile_async(device, &source, NULL, &module, NULL));
    while (hdrt_module_status(module) == HDRT_NOT_READY)
        usleep(1000);
    ck_assert(hdrt_module_from_cache(module));
    hdrt_module_destroy(module);
}
END_TEST

START_TEST(an_error_comes_later_too)
{
    hdrt_source source = text_source("extern \"C\" __global__ void k(int *p) { *p = nothing; }\n");
    hdrt_module *module;
    hdrt_image *image;
    hdrt_kernel *kernel;
    hdrt_event event;
    make_runtime(NULL, 2);
    CHECK(hdrt_module_compile_async(device, &source, NULL, &module, &event));
    ck_assert_int_eq(hdrt_event_wait(runtime, event, HDRT_FOREVER), HDRT_ERROR_EVENT_FAILED);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "nothing"));
    ck_assert_int_eq(hdrt_module_status(module), HDRT_ERROR_COMPILE);
    ck_assert_msg(strncmp(hdrt_last_error(), "source.cu:1:", 12) == 0, "%s", hdrt_last_error());
    ck_assert_int_eq(hdrt_module_kernel(module, "k", &kernel), HDRT_ERROR_COMPILE);
    ck_assert_int_eq(hdrt_module_preload(module), HDRT_ERROR_COMPILE);
    ck_assert_str_eq(hdrt_module_log(module), "");
    ck_assert_ptr_null(hdrt_module_kernel_name(module, 0));
    hdrt_module_destroy(module);
    /* What is wrong with the call is said by the call. */
    hdrt_compile_options options = HDRT_COMPILE_OPTIONS_INIT;
    const char *const bad[] = {"--no-such-option"};
    options.options = bad;
    options.option_count = 1;
    ck_assert_int_eq(hdrt_module_compile_async(device, &source, &options, &module, &event),
                     HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_null(module);
    /* An image keeps the log and the diagnostics of what failed. */
    CHECK(hdrt_image_compile_async(runtime, &source, NULL, &image, &event));
    ck_assert_int_eq(hdrt_event_wait(runtime, event, HDRT_FOREVER), HDRT_ERROR_EVENT_FAILED);
    ck_assert_int_eq(hdrt_image_status(image), HDRT_ERROR_COMPILE);
    hdrt_diagnostic diagnostic;
    CHECK(hdrt_image_diagnostic(image, 0, &diagnostic));
    ck_assert_uint_eq(diagnostic.line, 1);
    hdrt_image_destroy(image);
}
END_TEST

/* A "clang" that says in the file `began` that it runs, and then takes its time. */
static void make_slow_runtime(uint32_t workers)
{
    char script[512];
    snprintf(script, sizeof script, "#!/bin/sh\ncase \"$*\" in *--version*) exit 0;; esac\necho $$ >>%s\n"
             "exec sleep 60\n", in_root("began"));
    write_file(in_root("slow"), script);
    ck_assert_int_eq(chmod(in_root("slow"), 0755), 0);
    make_runtime(in_root("slow"), workers);
}

static int wait_until_it_runs(void)
{
    int pid = 0;
    for (int i = 0; i < 5000 && pid == 0; i++) {
        FILE *file = fopen(in_root("began"), "r");
        if (file) {
            if (fscanf(file, "%d", &pid) != 1)
                pid = 0;
            fclose(file);
        }
        usleep(2000);
    }
    ck_assert_int_gt(pid, 0);
    return pid;
}

static bool ends_soon(int pid)
{
    for (int i = 0; i < 2500 && kill(pid, 0) == 0; i++)
        usleep(2000);
    return kill(pid, 0) != 0;
}

#define CANCEL_MS 50.0

START_TEST(cancelling_returns_at_once)
{
    hdrt_source source = text_source(SIMPLE), other = text_source(SIMPLE "\n");
    hdrt_module *module, *waiting, *same;
    hdrt_event event, waiting_event, same_event;
    hdrt_kernel *kernel;
    make_slow_runtime(1);
    CHECK(hdrt_module_compile_async(device, &source, NULL, &module, &event));
    int pid = wait_until_it_runs();
    CHECK(hdrt_module_compile_async(device, &other, NULL, &waiting, &waiting_event)); /* for a worker */
    CHECK(hdrt_module_compile_async(device, &source, NULL, &same, &same_event));      /* for the first one */
    usleep(20000);
    double began = now_ms();
    hdrt_module_cancel(waiting);
    ck_assert_int_eq(hdrt_event_wait(runtime, waiting_event, HDRT_FOREVER), HDRT_ERROR_EVENT_FAILED);
    ck_assert_double_lt(now_ms() - began, CANCEL_MS);
    began = now_ms();
    hdrt_module_destroy(same);
    ck_assert_int_eq(hdrt_event_wait(runtime, same_event, 1000000000), HDRT_ERROR_EVENT_FAILED);
    ck_assert_double_lt(now_ms() - began, CANCEL_MS);
    ck_assert_int_eq(hdrt_module_status(module), HDRT_NOT_READY);
    ck_assert_int_eq(hdrt_event_wait(runtime, event, 0), HDRT_TIMEOUT);
    began = now_ms();
    hdrt_module_cancel(module);
    ck_assert_int_eq(hdrt_event_wait(runtime, event, HDRT_FOREVER), HDRT_ERROR_EVENT_FAILED);
    ck_assert_double_lt(now_ms() - began, CANCEL_MS);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "cancelled"));
    ck_assert_int_eq(hdrt_module_status(module), HDRT_ERROR_CANCELLED);
    ck_assert_int_eq(hdrt_module_kernel(module, "k", &kernel), HDRT_ERROR_CANCELLED);
    ck_assert(ends_soon(pid)); /* the compiler too */
    hdrt_module_destroy(waiting);
    hdrt_module_destroy(module);
}
END_TEST

START_TEST(ends_in_any_order)
{
    hdrt_source source = text_source(SIMPLE);
    hdrt_module *module;
    hdrt_image *image;
    hdrt_compile_options options = HDRT_COMPILE_OPTIONS_INIT;
    options.compiler = HDRT_COMPILER_CLANG;
    make_slow_runtime(2);
    CHECK(hdrt_module_compile_async(device, &source, NULL, &module, NULL));
    CHECK(hdrt_image_compile_async(runtime, &source, &options, &image, NULL));
    int pid = wait_until_it_runs();
    double began = now_ms();
    hdrt_device_close(device);
    hdrt_runtime_destroy(runtime);
    device = NULL;
    runtime = NULL;
    if (_i) {
        hdrt_image_destroy(image);
        hdrt_module_destroy(module);
    } else {
        hdrt_module_destroy(module);
        hdrt_image_destroy(image);
    }
    ck_assert_double_lt(now_ms() - began, 4 * CANCEL_MS);
    ck_assert(ends_soon(pid));
    usleep(50000); /* what is left ends by itself */
}
END_TEST

/* ---- crashes ----------------------------------------------------------------------------------------------------- */

#ifdef HDRT_SANITIZED
#define CRASHES 0 /* the sanitizer takes the signals for itself */
#else
#define CRASHES 3
#endif

static const struct {
    const char *source;
    hdrt_status status;
    const char *words;
} crashes[] = {
    {"print this is the end\nabort", HDRT_ERROR_COMPILER_CRASHED, "it aborted; the last that it said: this is the end"},
    {"print so far\naccess", HDRT_ERROR_COMPILER_CRASHED, "so far"},
    {"exit 4", HDRT_ERROR_COMPILER_CRASHED, "in the middle of a compile"},
};

/* A compiler that dies takes nobody along: the message has its last words, and the next compile works. */
START_TEST(a_compiler_that_crashes)
{
    char path[1024];
    const char *build = getenv("abs_top_builddir");
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    hdrt_compile_options compile_options = HDRT_COMPILE_OPTIONS_INIT;
    hdrt_source source = text_source(crashes[_i].source);
    hdrt_image *image;
    hdrt_event event;
    snprintf(path, sizeof path, "%s/tests/unit/support/.libs/fake_nvrtc.so", build ? build : ".");
    options.driver = HDRT_DRIVER_NONE;
    options.cache_dir = "";
    options.nvrtc = path;
    compile_options.kind = HDRT_CODE_PTX;
    CHECK(hdrt_runtime_create(&options, &runtime));
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(hdrt_image_compile(runtime, &source, &compile_options, &image), crashes[_i].status);
        ck_assert_msg(strstr(hdrt_last_error(), crashes[_i].words), "%s", hdrt_last_error());
    }
    CHECK(hdrt_image_compile_async(runtime, &source, &compile_options, &image, &event));
    ck_assert_int_eq(hdrt_event_wait(runtime, event, HDRT_FOREVER), HDRT_ERROR_EVENT_FAILED);
    ck_assert_int_eq(hdrt_image_status(image), crashes[_i].status);
    hdrt_image_destroy(image);
    source.text = "error 1"; /* no command of the stand-in: it answers, with what is no PTX */
    ck_assert_int_ne(hdrt_image_compile(runtime, &source, &compile_options, &image), HDRT_ERROR_COMPILER_CRASHED);
    hdrt_image_destroy(image);
}
END_TEST

/* ---- name expressions and in-memory headers ---------------------------------------------------------------------- */

START_TEST(names_of_templates)
{
    static const char text[] =
        "namespace ns {\n"
        "template<typename T, int N> __global__ void fill(T *p) { *p = N; }\n"
        "__global__ void plain(int *p) { *p = 5; }\n"
        "__constant__ int table[2] = {8, 9};\n"
        "}\n"
        "__global__ void reads(int *p) { *p = ns::table[1]; }\n";
    static const char *const names[] = {"ns::fill<int, 3>", "&ns::fill<int, 4>", "ns::plain", "&ns::table", "reads"};
    hdrt_source source = text_source(text);
    hdrt_compile_options options = HDRT_COMPILE_OPTIONS_INIT;
    hdrt_module *module;
    hdrt_kernel *kernel;
    hdrt_ptr pointer;
    uint64_t bytes;
    options.names = names;
    options.name_count = 5;
    make_runtime(NULL, 2);
    for (int round = 0; round < 2; round++) {
        CHECK(hdrt_module_compile(device, &source, &options, &module));
        ck_assert_int_eq(hdrt_module_from_cache(module), round > 0);
        CHECK(hdrt_module_kernel(module, "ns::fill<int, 3>", &kernel));
        ck_assert_int_eq(run(kernel), 3);
        CHECK(hdrt_module_kernel(module, "ns::fill<int, 4>", &kernel));
        ck_assert_int_eq(run(kernel), 4);
        CHECK(hdrt_module_kernel(module, "ns::plain", &kernel));
        ck_assert_int_eq(run(kernel), 5);
        ck_assert_str_eq(hdrt_kernel_name(kernel), "_ZN2ns5plainEPi");
        CHECK(hdrt_module_kernel(module, "reads", &kernel));
        ck_assert_int_eq(run(kernel), 9);
        CHECK(hdrt_module_global(module, "ns::table", &pointer, &bytes));
        ck_assert_uint_eq(bytes, 8);
        ck_assert_int_eq(hdrt_module_kernel(module, "ns::fill<int,3>", &kernel), HDRT_ERROR_NOT_FOUND);
        ck_assert_int_eq(hdrt_module_global(module, "__hdrt_name_0", &pointer, &bytes), HDRT_ERROR_NOT_FOUND);
        hdrt_module_destroy(module);
        hdrt_device_close(device); /* from disk, the second time */
        hdrt_runtime_destroy(runtime);
        make_runtime(NULL, 2);
    }
    /* One that is not there fails the compile, and says where it stood. */
    static const char *const wrong[] = {"ns::absent<int>"};
    options.names = wrong;
    options.name_count = 1;
    ck_assert_int_eq(hdrt_module_compile(device, &source, &options, &module), HDRT_ERROR_COMPILE);
    ck_assert_msg(strstr(hdrt_last_error(), "absent"), "%s", hdrt_last_error());
}
END_TEST

static const char *const not_expressions[] = {"", " ", "k); int x = (0", "k<1", "a;b", "k // x", "k\n", "k\"", "#k", "k}{"};

START_TEST(names_that_cannot_be)
{
    hdrt_source source = text_source(SIMPLE);
    hdrt_compile_options options = HDRT_COMPILE_OPTIONS_INIT;
    hdrt_module *module;
    options.names = &not_expressions[_i];
    options.name_count = 1;
    make_runtime(NULL, 1);
    hdrt_status status = hdrt_module_compile(device, &source, &options, &module);
    /* An angle bracket may also mean less: that is for the compiler to say. */
    ck_assert_int_eq(status, strchr(not_expressions[_i], '<') ? HDRT_ERROR_COMPILE : HDRT_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(headers_in_memory)
{
    hdrt_source source = text_source("#include \"part/a.h\"\n#include <b.h>\n#if __has_include(\"part/c.h\")\n#error c\n"
                                     "#endif\nextern \"C\" __global__ void k(int *p) { *p = A + B; }\n");
    const char *const names[] = {"part/a.h", "b.h"};
    const char *texts[] = {"#include \"b.h\"\n#define A 40\n", "#pragma once\n#define B 2\n"};
    hdrt_module *module;
    hdrt_kernel *kernel;
    source.header_names = names;
    source.header_texts = texts;
    source.header_count = 2;
    make_runtime(NULL, 2);
    CHECK(hdrt_module_compile(device, &source, NULL, &module));
    CHECK(hdrt_module_kernel(module, "k", &kernel));
    ck_assert_int_eq(run(kernel), 42);
    hdrt_module_destroy(module);
    texts[1] = "#pragma once\n#define B 3\n"; /* is part of the key */
    CHECK(hdrt_module_compile(device, &source, NULL, &module));
    ck_assert(!hdrt_module_from_cache(module));
    CHECK(hdrt_module_kernel(module, "k", &kernel));
    ck_assert_int_eq(run(kernel), 43);
    hdrt_module_destroy(module);
    texts[1] = "#pragma once\n#define B 2\n";
    CHECK(hdrt_module_compile(device, &source, NULL, &module));
    ck_assert(hdrt_module_from_cache(module));
    hdrt_module_destroy(module);
    texts[1] = "#error from memory\n";
    ck_assert_int_eq(hdrt_module_compile(device, &source, NULL, &module), HDRT_ERROR_COMPILE);
    ck_assert_msg(strstr(hdrt_last_error(), "b.h:1") && strstr(hdrt_last_error(), "from memory"), "%s",
                  hdrt_last_error());
}
END_TEST

START_TEST(header_names_that_cannot_be)
{
    static const char *const names[] = {"", "/a.h", "../a.h", "a/../b.h", "./a.h", "a//b.h", "a/", "a\"b.h", "a\n.h"};
    static const char *const text = "";
    hdrt_source source = text_source(SIMPLE);
    hdrt_image *image;
    source.header_names = &names[_i];
    source.header_texts = &text;
    source.header_count = 1;
    make_runtime(NULL, 1);
    ck_assert_int_eq(hdrt_image_compile(runtime, &source, NULL, &image), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "in-memory header"));
}
END_TEST

/* ---- recording --------------------------------------------------------------------------------------------------- */

START_TEST(compiles_are_recorded)
{
    static const char *const given[] = {"-DA=\"x\"", "-I", "relative"}, *const names[] = {"k"};
    static const char *const header_names[] = {"h.h"}, *const header_texts[] = {"#define B 1\n"};
    hdrt_source source = text_source(SIMPLE "// \xff\n"), file = HDRT_SOURCE_INIT;
    hdrt_compile_options options = HDRT_COMPILE_OPTIONS_INIT;
    hdrt_module *module;
    char text[8192] = "";
    setenv("HDRT_RECORD", in_root("record"), 1);
    make_runtime(NULL, 1);
    CHECK(hdrt_module_compile(device, &source, NULL, &module));
    unsetenv("HDRT_RECORD"); /* asked for on the first compile */
    hdrt_module_destroy(module);
    write_file(in_root("k.cu"), SIMPLE);
    file.path = in_root("k.cu");
    file.header_names = header_names;
    file.header_texts = header_texts;
    file.header_count = 1;
    options.options = given;
    options.option_count = 3;
    options.names = names;
    options.name_count = 1;
    for (int i = 0; i < 2; i++) { /* the second time from the cache: recorded once */
        CHECK(hdrt_module_compile(device, &file, &options, &module));
        hdrt_module_destroy(module);
    }
    source.text = "error";
    ck_assert_int_eq(hdrt_module_compile(device, &source, NULL, &module), HDRT_ERROR_COMPILE); /* not recorded */
    FILE *stream = fopen(in_root("record"), "r");
    ck_assert_ptr_nonnull(stream);
    size_t size = fread(text, 1, sizeof text - 1, stream);
    fclose(stream);
    char *second = strchr(text, '\n');
    ck_assert_ptr_nonnull(second);
    ck_assert_ptr_eq(strchr(second + 1, '\n'), text + size - 1);
    *second++ = '\0';
    ck_assert_msg(strstr(text, "\"text_base64\":\"") && strstr(text, "\"name\":\"source.cu\"") &&
                      strstr(text, "\"compiler\":\"clang\",\"kind\":\"ptx\",\"arch\":\"sm_") &&
                      strstr(text, "\"lower_arch\":true,\"libdevice\":false}"), "%s", text);
    ck_assert_msg(strstr(second, "\"path\":\"/tmp/hdrt-test-service-") && !strstr(second, "\"text\":\"extern") &&
                      strstr(second, "\"headers\":[{\"name\":\"h.h\",\"text\":\"#define B 1\\n\"}]") &&
                      strstr(second, "\"options\":[\"-DA=\\\"x\\\"\",\"-I/") && strstr(second, "\"names\":[\"k\"]"),
                  "%s", second);
}
END_TEST

/* ---- batches ----------------------------------------------------------------------------------------------------- */

START_TEST(a_batch)
{
    hdrt_source sources[6];
    hdrt_compile_item items[6];
    hdrt_image *images[6];
    char texts[6][128];
    hdrt_compile_options options = HDRT_COMPILE_OPTIONS_INIT;
    options.compiler = HDRT_COMPILER_CLANG;
    make_runtime(NULL, 2);
    for (int i = 0; i < 6; i++) {
        snprintf(texts[i], sizeof texts[i], i == 3 ? "error %d" : "extern \"C\" __global__ void k(int *p) { *p = %d; }",
                 i);
        sources[i] = text_source(texts[i]);
        items[i] = (hdrt_compile_item){&sources[i], &options};
    }
    sources[3].name = "third.cu";
    ck_assert_int_eq(hdrt_image_compile_batch(runtime, items, 6, images), HDRT_ERROR_COMPILE);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "third.cu"));
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(hdrt_image_status(images[i]), i == 3 ? HDRT_ERROR_COMPILE : HDRT_OK);
        hdrt_module *module;
        hdrt_kernel *kernel;
        if (i != 3) {
            CHECK(hdrt_module_load_image(device, images[i], &module));
            CHECK(hdrt_module_kernel(module, "k", &kernel));
            ck_assert_int_eq(run(kernel), i);
            hdrt_module_destroy(module);
        }
        hdrt_image_destroy(images[i]);
    }
    CHECK(hdrt_image_compile_batch(runtime, NULL, 0, NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("service");
    TCase *cases = tcase_create("service");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, a_module_comes_later);
    tcase_add_test(cases, an_error_comes_later_too);
    tcase_add_test(cases, cancelling_returns_at_once);
    tcase_add_loop_test(cases, ends_in_any_order, 0, 2);
    tcase_add_loop_test(cases, a_compiler_that_crashes, 0, CRASHES);
    tcase_add_test(cases, names_of_templates);
    tcase_add_loop_test(cases, names_that_cannot_be, 0, (int)(sizeof not_expressions / sizeof *not_expressions));
    tcase_add_test(cases, headers_in_memory);
    tcase_add_loop_test(cases, header_names_that_cannot_be, 0, 9);
    tcase_add_test(cases, compiles_are_recorded);
    tcase_add_test(cases, a_batch);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
