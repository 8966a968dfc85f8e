/* SPDX-License-Identifier: MIT */
/* The compile worker with the NVRTC that is installed; skipped where there is none. Nothing here needs a GPU. */
#include <check.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "worker_client.h"

#define KERNEL "extern \"C\" __global__ void k(float *p) { p[0] = p[1] * 2.0f; }\n"

static char nvrtc[4096], builtins[4096];
static char *folder;
static worker_process worker;

static bool find_nvrtc_in(const char *base)
{
    static const char *const places[] = {"lib64", "lib", "targets/x86_64-linux/lib", "."};
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
    for (size_t i = 0; base != NULL && i < sizeof places / sizeof *places; i++)
        for (size_t j = 0; j < sizeof names / sizeof *names; j++) {
            char path[2048];
            snprintf(path, sizeof path, "%s/%s/%s", base, places[i], names[j]);
            if (realpath(path, nvrtc) != NULL)
                return true;
        }
    return false;
}

/* libnvrtc-builtins.so.X.Y beside it, not a variant of it. */
static void find_builtins(void)
{
    char lib[4096];
    snprintf(lib, sizeof lib, "%s", nvrtc);
    *strrchr(lib, '/') = '\0';
    DIR *entries = opendir(lib);
    struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL)
        if (strncmp(entry->d_name, "libnvrtc-builtins.so.", 21) == 0 &&
            strlen(lib) + strlen(entry->d_name) + 2 <= sizeof builtins) {
            strcpy(builtins, lib);
            strcat(strcat(builtins, "/"), entry->d_name);
        }
    if (entries != NULL)
        closedir(entries);
}

static void wait_out_the_tick(void)
{
    struct timespec time = {0, 20000000};
    nanosleep(&time, NULL);
}

static void set_up(void)
{
    folder = folder_make();
    worker = worker_start();
}

static void tear_down(void)
{
    worker_stop(&worker);
    folder_remove(folder);
}

static worker_ask ask_for(const char *source)
{
    return (worker_ask){
        .back_end = HDRT_CC_NVRTC, .kind = HDRT_CC_PTX, .lower = 1, .time_limit_ms = 60000, .compiler = nvrtc,
        .builtins = builtins[0] != '\0' ? builtins : NULL, .name = "k.cu", .directory = folder, .arch = "sm_90",
        .source = source,
    };
}

static worker_reply compile(const worker_ask *ask, uint32_t status)
{
    wait_out_the_tick();
    worker_reply reply = worker_compile(&worker, ask);
    ck_assert_msg(reply.arrived && reply.status == status, "%s", worker_print(&reply));
    return reply;
}

static bool lists(const worker_reply *reply, uint32_t tag, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return worker_lists(reply, tag, path);
}

START_TEST(a_kernel)
{
    worker_ask ask = ask_for(KERNEL);
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_says(&reply, HDRT_CC_CODE_PTX, ".visible .entry k("));
    ck_assert(worker_says(&reply, HDRT_CC_CODE_PTX, ".target sm_90"));
    size_t size;
    char *ptx = worker_text(&reply, HDRT_CC_CODE_PTX, 0, &size);
    ck_assert_uint_eq(strlen(ptx), size);
    free(ptx);
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_CODE_CUBIN), 0);
    ck_assert(worker_says(&reply, HDRT_CC_COMPILER_VERSION, "NVRTC 1"));
    ck_assert(worker_says(&reply, HDRT_CC_ARCH_USED, "sm_90"));
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_NO_STORE), 0);
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_DEPENDENCY), 0);
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_ABSENT), 0); /* nor its pseudo files */
    worker_reply_free(&reply);
    ask.kind = HDRT_CC_CUBIN;
    reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_CODE_PTX), 1);
    char *cubin = worker_text(&reply, HDRT_CC_CODE_CUBIN, 0, &size);
    ck_assert_uint_gt(size, 64);
    ck_assert_mem_eq(cubin, "\177ELF", 4);
    free(cubin);
    worker_reply_free(&reply);
}
END_TEST

/* The same request twice, in two processes, with internal-linkage variables that would get a random name. */
START_TEST(compiles_repeat)
{
    worker_ask ask = ask_for("static __device__ int hidden[4];\n"
                             "__global__ void t(int *p) { p[0] = hidden[p[1]]++; }\n");
    ask.kind = HDRT_CC_CUBIN;
    char *first = NULL, *second = NULL;
    size_t first_size = 0, second_size = 0;
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    first = worker_text(&reply, HDRT_CC_CODE_CUBIN, 0, &first_size);
    worker_reply_free(&reply);
    worker_stop(&worker);
    worker = worker_start();
    reply = compile(&ask, HDRT_CC_STATUS_OK);
    second = worker_text(&reply, HDRT_CC_CODE_CUBIN, 0, &second_size);
    worker_reply_free(&reply);
    ck_assert_uint_eq(first_size, second_size);
    ck_assert_mem_eq(first, second, first_size);
    free(first);
    free(second);
}
END_TEST

START_TEST(errors_have_places)
{
    free(folder_write(folder, "h.h", "\n\t__device__ int b = other_name;\n"));
    worker_ask ask = ask_for("#include \"h.h\"\r\n" KERNEL "__device__ int a =\r\n    undefined_name;\r\n");
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_COMPILE);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "h.h:2:21: identifier \"other_name\" is undefined"));
    ck_assert_msg(worker_diagnoses(&reply, "k.cu", 4, 5, 3, "identifier \"undefined_name\" is undefined"), "%s",
                  worker_print(&reply));
    worker_reply_free(&reply);
    ask.source = "#include \"nope.h\"\n" KERNEL;
    reply = compile(&ask, HDRT_CC_STATUS_COMPILE);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "cannot open source file \"nope.h\""));
    worker_reply_free(&reply);
    ask.source = "__global__ void k(int *p) { asm(\"bogus.u32 x;\"); }\n"; /* ptxas finds that one */
    ask.kind = HDRT_CC_CUBIN;
    reply = compile(&ask, HDRT_CC_STATUS_COMPILE);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "Not a name of any known instruction: 'bogus'"));
    worker_reply_free(&reply);
}
END_TEST

START_TEST(headers_hit_and_missed)
{
    free(folder_write(folder, "second/sub/a.h", "#include <b.h>\n#if __has_include(\"maybe.h\")\n#error no\n#endif\n"));
    free(folder_write(folder, "third/b.h", "__device__ int in_b;\n"));
    worker_ask ask = ask_for("#include \"sub/a.h\"\n" KERNEL);
    ask.options[0] = "-Ifirst", ask.options[1] = "-I", ask.options[2] = "second", ask.options[3] = "-Ithird";
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(lists(&reply, HDRT_CC_DEPENDENCY, "second/sub/a.h"));
    ck_assert(lists(&reply, HDRT_CC_DEPENDENCY, "third/b.h"));
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_DEPENDENCY), 2);
    ck_assert(lists(&reply, HDRT_CC_ABSENT, "sub/a.h"));
    ck_assert(lists(&reply, HDRT_CC_ABSENT, "first/sub/a.h"));
    ck_assert(lists(&reply, HDRT_CC_ABSENT, "second/b.h"));
    ck_assert(lists(&reply, HDRT_CC_ABSENT, "third/maybe.h"));
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_NO_STORE), 0);
    worker_reply_free(&reply);
    free(folder_write(folder, "first/sub/a.h", "__device__ int shadow;\n"));
    reply = compile(&ask, HDRT_CC_STATUS_OK); /* the same worker: nothing is remembered */
    ck_assert(worker_says(&reply, HDRT_CC_CODE_PTX, "shadow"));
    worker_reply_free(&reply);
}
END_TEST

/* A source that is a file in the folder too, and includes itself. */
START_TEST(source_that_is_a_file)
{
    char *source = folder_write(folder, "own.cu", "#pragma once\n__device__ int twice;\n");
    worker_ask ask = ask_for("#ifndef G\n#define G\n#include \"own.cu\"\n#endif\n" KERNEL);
    ask.name = source;
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_says(&reply, HDRT_CC_CODE_PTX, "twice"));
    ck_assert(worker_lists(&reply, HDRT_CC_DEPENDENCY, source));
    worker_reply_free(&reply);
    ask.source = KERNEL;
    reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_DEPENDENCY), 0);
    worker_reply_free(&reply);
    free(source);
}
END_TEST

START_TEST(includes_that_are_not_recorded)
{
    worker_ask ask = ask_for("#if 0\n#include \"never.h\"\n#endif\n" KERNEL);
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_says(&reply, HDRT_CC_NO_STORE, "the source includes files, but none was recorded"));
    worker_reply_free(&reply);
    ask.source = KERNEL "__device__ const char t[] = __TIME__;\n";
    reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_says(&reply, HDRT_CC_NO_STORE, "the source uses __TIME__"));
    worker_reply_free(&reply);
}
END_TEST

START_TEST(things_that_are_no_files)
{
    char fifo[4096];
    snprintf(fifo, sizeof fifo, "%s/fifo.h", folder);
    ck_assert_int_eq(mkfifo(fifo, 0666), 0);
    worker_ask ask = ask_for("#include \"fifo.h\"\n" KERNEL);
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_COMPILE);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "cannot open source file \"fifo.h\""));
    ck_assert(worker_diagnoses(&reply, fifo, 0, 0, 1, "this is a named pipe, not a regular file, and was not opened"));
    worker_reply_free(&reply);
    ask.source = "#include \"/dev/zero\"\n" KERNEL;
    reply = compile(&ask, HDRT_CC_STATUS_COMPILE);
    ck_assert(worker_diagnoses(&reply, "/dev/zero", 0, 0, 1, "this is a device"));
    worker_reply_free(&reply);
}
END_TEST

START_TEST(names_with_anything_in_them)
{
    static const char *const names[] = {
        "a b.cu", "it's \"quoted\".cu", "inc_\xc3\xa9\xe6\xb8\xac/\xe2\x82\xac.cu", "#$&;:%1.cu", "(3): error: x.cu",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *source = folder_write(folder, names[i], "");
        char own[4096];
        snprintf(own, sizeof own, "%.*s", (int)(strrchr(source, '/') - source), source);
        char *header = folder_write(own, "own.h", "__device__ int from_own;\n");
        worker_ask ask = ask_for("#include \"own.h\"\n" KERNEL "__device__ int bad = nothing;\n");
        ask.name = source;
        worker_reply reply = compile(&ask, HDRT_CC_STATUS_COMPILE);
        ck_assert_msg(worker_diagnoses(&reply, source, 3, 22, 3, "identifier \"nothing\" is undefined"), "%s",
                      worker_print(&reply));
        worker_reply_free(&reply);
        ask.options[0] = "-Dnothing=1";
        reply = compile(&ask, HDRT_CC_STATUS_OK);
        ck_assert(worker_lists(&reply, HDRT_CC_DEPENDENCY, header));
        worker_reply_free(&reply);
        free(header);
        free(source);
    }
}
END_TEST

START_TEST(targets)
{
    worker_ask ask = ask_for(KERNEL);
    ask.kind = HDRT_CC_CUBIN;
    ask.arch = "sm_999";
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_says(&reply, HDRT_CC_NOTE, "does not know sm_999; compiled for sm_"));
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_CODE_CUBIN), 0); /* it would not run there */
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_CODE_PTX), 1);
    worker_reply_free(&reply);
    ask.lower = 0;
    reply = compile(&ask, HDRT_CC_STATUS_OPTION);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "does not know the target sm_999; it knows sm_"));
    worker_reply_free(&reply);
    ask.arch = "sm_80a"; /* a letter that it does not have */
    reply = compile(&ask, HDRT_CC_STATUS_OPTION);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "does not know the target sm_80a"));
    worker_reply_free(&reply);
    ask.lower = 1;
    reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_says(&reply, HDRT_CC_ARCH_USED, "sm_80"));
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_CODE_CUBIN), 1);
    worker_reply_free(&reply);
    ask.arch = "sm_30";
    reply = compile(&ask, HDRT_CC_STATUS_OPTION);
    worker_reply_free(&reply);
}
END_TEST

START_TEST(options_it_does_not_take)
{
    worker_ask ask = ask_for(KERNEL);
    ask.options[0] = "--no-such-option";
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OPTION);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "--no-such-option"));
    worker_reply_free(&reply);
    ask.options[0] = "-arch=sm_80";
    reply = compile(&ask, HDRT_CC_STATUS_OPTION);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "'-arch=sm_80': the target is given apart"));
    worker_reply_free(&reply);
}
END_TEST

START_TEST(libraries_that_are_not_nvrtc)
{
    worker_ask ask = ask_for(KERNEL);
    char recorder[4096], message[8192];
    snprintf(recorder, sizeof recorder, "%s/.libs/libhdrt-record.so", build_folder());
    ask.builtins = NULL;
    ask.compiler = "/nonexistent/libnvrtc.so";
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_NO_COMPILER);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "/nonexistent/libnvrtc.so"));
    worker_reply_free(&reply);
    ask.compiler = recorder;
    reply = compile(&ask, HDRT_CC_STATUS_NO_COMPILER);
    snprintf(message, sizeof message, "'%s' has no function nvrtc", recorder);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, message));
    worker_reply_free(&reply);
    ask.compiler = nvrtc;
    ask.builtins = "/nonexistent/libnvrtc-builtins.so";
    reply = compile(&ask, HDRT_CC_STATUS_NO_COMPILER);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "builtins"));
    worker_reply_free(&reply);
    ask = ask_for(KERNEL);
    reply = compile(&ask, HDRT_CC_STATUS_OK);
    worker_reply_free(&reply);
    ask.directory = "/nonexistent";
    reply = compile(&ask, HDRT_CC_STATUS_IO);
    worker_reply_free(&reply);
}
END_TEST

/* Six megabytes of initialiser: seconds of compiling, and gigabytes. */
static char *heavy_source(void)
{
    hdrt__cc_buffer text = {0};
    hdrt__cc_buffer_text(&text, KERNEL "__device__ int big[10000000] = {");
    for (int i = 0; i < 3000000; i++)
        hdrt__cc_buffer_text(&text, "1,");
    hdrt__cc_buffer_text(&text, "};\n");
    ck_assert(!text.failed);
    return (char *)text.bytes;
}

START_TEST(a_time_limit)
{
    char *source = heavy_source();
    worker_ask ask = ask_for(source);
    ask.time_limit_ms = 700;
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_LIMIT);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "did not finish within 700 ms"));
    worker_reply_free(&reply);
    ck_assert_int_eq(worker_wait(&worker, 5000), 0); /* it cannot go on after that */
    close(worker.socket);
    worker = worker_start();
    ask = ask_for(KERNEL);
    reply = compile(&ask, HDRT_CC_STATUS_OK);
    worker_reply_free(&reply);
    free(source);
}
END_TEST

START_TEST(a_memory_limit)
{
#ifndef HDRT_SANITIZED
    char *source = heavy_source();
    worker_ask ask = ask_for(source);
    ask.memory_limit = 400u << 20;
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_LIMIT);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "ended under a memory limit of 419430400 bytes"));
    worker_reply_free(&reply);
    ck_assert_int_ne(worker_wait(&worker, 5000), -1);
    close(worker.socket);
    worker = worker_start();
    free(source);
#endif
}
END_TEST

START_TEST(closed_socket_in_a_compile)
{
    char *source = heavy_source();
    worker_ask ask = ask_for(source);
    worker_send(&worker, &ask);
    struct timespec time = {0, 300000000};
    nanosleep(&time, NULL);
    ck_assert(process_lives(worker.pid));
    worker_stop(&worker);
    worker = worker_start();
    free(source);
}
END_TEST

/* More than the stack of a thread with 256 KiB holds. */
START_TEST(deep_nesting)
{
    hdrt__cc_buffer text = {0};
    hdrt__cc_buffer_text(&text, KERNEL "__device__ int f(int i) { return ");
    for (int i = 0; i < 20000; i++)
        hdrt__cc_buffer_text(&text, "(");
    hdrt__cc_buffer_text(&text, "i");
    for (int i = 0; i < 20000; i++)
        hdrt__cc_buffer_text(&text, ")");
    hdrt__cc_buffer_text(&text, "; }\n");
    worker_ask ask = ask_for((char *)text.bytes);
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    worker_reply_free(&reply);
    hdrt__cc_buffer_free(&text);
}
END_TEST

int main(void)
{
    if (!find_nvrtc_in(getenv("CUDA_HOME")) && !find_nvrtc_in(getenv("CUDA_PATH")) &&
        !find_nvrtc_in("/usr/local/cuda") && !find_nvrtc_in("/usr/lib/x86_64-linux-gnu")) {
        puts("1..0 # SKIP no NVRTC 12 or 13 in CUDA_HOME, CUDA_PATH or /usr/local/cuda");
        return 0;
    }
    find_builtins();
    printf("# %s\n", nvrtc);
    fflush(stdout);
    Suite *suite = suite_create("worker_nvrtc");
    TCase *tests = tcase_create("nvrtc");
    tcase_set_timeout(tests, 180);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_kernel);
    tcase_add_test(tests, compiles_repeat);
    tcase_add_test(tests, errors_have_places);
    tcase_add_test(tests, headers_hit_and_missed);
    tcase_add_test(tests, source_that_is_a_file);
    tcase_add_test(tests, includes_that_are_not_recorded);
    tcase_add_test(tests, things_that_are_no_files);
    tcase_add_test(tests, names_with_anything_in_them);
    tcase_add_test(tests, targets);
    tcase_add_test(tests, options_it_does_not_take);
    tcase_add_test(tests, libraries_that_are_not_nvrtc);
    tcase_add_test(tests, a_time_limit);
    tcase_add_test(tests, a_memory_limit);
    tcase_add_test(tests, closed_socket_in_a_compile);
    tcase_add_test(tests, deep_nesting);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
