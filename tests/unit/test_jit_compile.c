/* SPDX-License-Identifier: MIT */
/*
 * From source to code: what is compiled, what comes from the cache, what a header's change does, and what happens when
 * the worker misbehaves. Compiles are real ones by clang; workers that misbehave are shell scripts.
 */
#include <hdrt.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "compiler/protocol.h"
#include "driver/companions.h"
#include "failing_malloc.h"
#include "jit/jit.h"
#include "jit/message.h"
#include "jit/spawn.h"
#include "jit/state.h"
#include "jit/worker.h"

static char root[64];
static hdrt__companions *companions;
static hdrt__jit_config config;
static char cache[96];

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

static void set_up(void)
{
    strcpy(root, "/tmp/hdrt-test-jit-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    ck_assert_int_eq(hdrt__companions_find(NULL, &companions), HDRT_OK);
    snprintf(cache, sizeof cache, "%s/cache", root);
    config = (hdrt__jit_config){.worker = companions->worker, .recorder = companions->recorder,
                                .prelude = companions->prelude, .cache_dir = cache};
}

static void tear_down(void)
{
    char command[128];
    hdrt__companions_free(companions);
    snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

static hdrt__jit *make_jit(void)
{
    hdrt__jit *jit;
    ck_assert_msg(hdrt__jit_create(&config, &jit) == HDRT_OK, "%s", hdrt_last_error());
    return jit;
}

/* Lines of the log that say that a compiler was asked. */
static atomic_uint compiles;
static char last_line[512];

static void count_compiles(void *context, hdrt_log_level level, const char *line)
{
    if (strstr(line, "compiled '"))
        atomic_fetch_add(&compiles, 1);
    else if (strstr(line, "is not cached"))
        snprintf(last_line, sizeof last_line, "%s", line);
}

static hdrt_compile_options clang_options(const char *const *options, uint32_t count)
{
    hdrt_compile_options made = HDRT_COMPILE_OPTIONS_INIT;
    made.compiler = HDRT_COMPILER_CLANG;
    made.options = options;
    made.option_count = count;
    return made;
}

/* Compile a file and say whether it came from the cache. The code is dropped. */
static hdrt_status compile_file(hdrt__jit *jit, const char *path, const hdrt_compile_options *options, bool *from_cache)
{
    hdrt_source source = HDRT_SOURCE_INIT;
    hdrt__target target = {.soft = true};
    hdrt__code *code;
    source.path = path;
    hdrt_status status = hdrt__jit_compile(jit, &source, options, &target, &code, from_cache);
    hdrt__code_drop(code);
    return status;
}

static hdrt_status compile_text(hdrt__jit *jit, const char *text, hdrt__code **code)
{
    hdrt_source source = HDRT_SOURCE_INIT;
    hdrt__target target = {.soft = true};
    bool from_cache;
    source.text = text;
    return hdrt__jit_compile(jit, &source, NULL, &target, code, &from_cache);
}

#define KERNEL "extern \"C\" __global__ void k(int *p) { *p = VALUE; }\n"
#define SIMPLE "extern \"C\" __global__ void k(int *p) { *p = 7; }\n"

/* ---- the cache -------------------------------------------------------------------------------------------------- */

START_TEST(second_time_starts_nothing)
{
    bool from_cache = true;
    hdrt__jit *jit = make_jit();
    write_file(in_root("k.cu"), SIMPLE);
    ck_assert_msg(compile_file(jit, in_root("k.cu"), NULL, &from_cache) == HDRT_OK, "%s", hdrt_last_error());
    ck_assert(!from_cache);
    ck_assert_uint_eq(hdrt__jit_workers_started(jit), 1);
    ck_assert_int_eq(compile_file(jit, in_root("k.cu"), NULL, &from_cache), HDRT_OK);
    ck_assert(from_cache); /* memory */
    hdrt__jit_destroy(jit);
    jit = make_jit();
    ck_assert_int_eq(compile_file(jit, in_root("k.cu"), NULL, &from_cache), HDRT_OK);
    ck_assert(from_cache); /* disk */
    ck_assert_uint_eq(hdrt__jit_workers_started(jit), 0);
    hdrt_compile_options options = HDRT_COMPILE_OPTIONS_INIT;
    options.no_cache = true;
    ck_assert_int_eq(compile_file(jit, in_root("k.cu"), &options, &from_cache), HDRT_OK);
    ck_assert(!from_cache);
    hdrt__jit_destroy(jit);
    /* The same text elsewhere has other names in it. */
    jit = make_jit();
    write_file(in_root("other.cu"), SIMPLE);
    ck_assert_int_eq(compile_file(jit, in_root("other.cu"), NULL, &from_cache), HDRT_OK);
    ck_assert(!from_cache);
    hdrt__jit_destroy(jit);
}
END_TEST

START_TEST(without_a_disk_cache_memory_still_serves)
{
    bool from_cache;
    config.cache_dir = "";
    hdrt__jit *jit = make_jit();
    write_file(in_root("k.cu"), SIMPLE);
    ck_assert_int_eq(compile_file(jit, in_root("k.cu"), NULL, &from_cache), HDRT_OK);
    ck_assert_int_eq(compile_file(jit, in_root("k.cu"), NULL, &from_cache), HDRT_OK);
    ck_assert(from_cache);
    hdrt__jit_destroy(jit);
    ck_assert_int_ne(access(cache, F_OK), 0);
}
END_TEST

START_TEST(damaged_entries_are_made_again)
{
    bool from_cache;
    char command[300];
    write_file(in_root("k.cu"), SIMPLE);
    for (int round = 0; round < 3; round++) {
        hdrt__jit *jit = make_jit();
        ck_assert_int_eq(compile_file(jit, in_root("k.cu"), NULL, &from_cache), HDRT_OK);
        ck_assert_msg(!from_cache, "round %d", round);
        ck_assert_int_eq(compile_file(jit, in_root("k.cu"), NULL, &from_cache), HDRT_OK);
        hdrt__jit_destroy(jit);
        /* A byte in the middle of each image, then of each manifest. */
        snprintf(command, sizeof command, "for f in $(find %s -name '*.%c'); do printf X | dd of=$f bs=1 seek=150 "
                 "conv=notrunc 2>/dev/null; done", cache, round ? 'm' : 'i');
        ck_assert_int_eq(system(command), 0);
    }
}
END_TEST

/* What is done to the headers, and whether the next compile must go to the compiler. */
static void edit(void) { write_file(in_root("second/a.h"), "#define VALUE 2\n"); }
static void restore(void) { write_file(in_root("second/a.h"), "#define VALUE 1\n"); }
static void nothing(void) {}

static void touch(void)
{
    struct timespec past[2] = {{1000000, 0}, {1000000, 0}};
    ck_assert_int_eq(utimensat(AT_FDCWD, in_root("second/a.h"), past, 0), 0);
}

/* As tar and rsync do: other content, same size, the old modification time. */
static void edit_behind_its_time(void)
{
    struct stat before;
    ck_assert_int_eq(stat(in_root("second/a.h"), &before), 0);
    write_file(in_root("second/a.h"), "#define VALUE 3\n");
    struct timespec same[2] = {before.st_atim, before.st_mtim};
    ck_assert_int_eq(utimensat(AT_FDCWD, in_root("second/a.h"), same, 0), 0);
}

static void shadow(void) { write_file(in_root("first/a.h"), "#define VALUE 4\n"); }
static void unshadow(void) { unlink(in_root("first/a.h")); }
static void edit_transitive(void) { write_file(in_root("second/b.h"), "/* changed */\n"); }
static void optional_appears(void) { write_file(in_root("second/optional.h"), "\n"); }

static const struct {
    void (*change)(void);
    bool hit;
    const char *what;
} header_steps[] = {
    {nothing, false, "first compile"},
    {nothing, true, "nothing changed"},
    {touch, true, "touched"},
    {edit, false, "edited"},
    {nothing, true, "edited, again"},
    {restore, true, "as it was at first"},
    {edit_behind_its_time, false, "edited with the old time"},
    {restore, true, "restored again"},
    {shadow, false, "found first elsewhere"},
    {unshadow, true, "found where it was"},
    {edit_transitive, false, "a header of a header"},
    {optional_appears, false, "what __has_include asked for appeared"},
};

START_TEST(headers)
{
    static const char source[] = "#include <a.h>\n" KERNEL;
    bool from_cache;
    char first[256], second[256];
    mkdir(in_root("first"), 0700);
    mkdir(in_root("second"), 0700);
    snprintf(first, sizeof first, "-I%s", in_root("first"));
    snprintf(second, sizeof second, "-I%s", in_root("second"));
    const char *options_given[] = {first, second};
    hdrt_compile_options options = clang_options(options_given, 2);
    write_file(in_root("k.cu"), source);
    write_file(in_root("second/b.h"), "\n");
    write_file(in_root("second/a.h"), "#define VALUE 1\n");
    /* Behind a.h's define, so that restoring a.h's text restores all. */
    write_file(in_root("k.cu"),
               "#include <a.h>\n#include <b.h>\n#if __has_include(<optional.h>)\n#include <optional.h>\n"
               "#endif\n" KERNEL);
    /* Each step with the process's memory of the last, and in what might be another process. */
    hdrt__jit *kept = make_jit();
    for (unsigned i = 0; i < sizeof header_steps / sizeof *header_steps; i++) {
        header_steps[i].change();
        hdrt__jit *fresh = make_jit();
        hdrt__jit *order[2] = {i % 2 ? kept : fresh, i % 2 ? fresh : kept};
        ck_assert_msg(compile_file(order[0], in_root("k.cu"), &options, &from_cache) == HDRT_OK, "%s",
                      hdrt_last_error());
        ck_assert_msg(from_cache == header_steps[i].hit, "step %u: %s", i, header_steps[i].what);
        ck_assert_int_eq(compile_file(order[1], in_root("k.cu"), &options, &from_cache), HDRT_OK);
        ck_assert_msg(from_cache, "step %u, the other: %s", i, header_steps[i].what);
        hdrt__jit_destroy(fresh);
    }
    hdrt__jit_destroy(kept);
}
END_TEST

/* Whether a path is among lines. */
static bool is_line(const char *lines, const char *path)
{
    size_t size = strlen(path);
    for (const char *at = lines; (at = strstr(at, path)); at += size)
        if ((at == lines || at[-1] == '\n') && at[size] == '\n')
            return true;
    return false;
}

/* What was recorded as read is what clang itself lists with -MD: nested, by macro, by a relative path, twice. */
START_TEST(recorded_files_are_those_of_clang)
{
    static char lines[16384];
    char command[1024], include[300];
    const char *clang = NULL, *rule;
    hdrt__found found;
    mkdir(in_root("inc"), 0700);
    mkdir(in_root("inc/deep"), 0700);
    write_file(in_root("inc/a.h"), "#pragma once\n#include \"deep/b.h\"\n");
    write_file(in_root("inc/deep/b.h"), "#include \"../c.h\"\n#define NAME \"deep/d.h\"\n");
    write_file(in_root("inc/c.h"), "\n");
    write_file(in_root("inc/deep/d.h"), "#include <a.h>\n");
    write_file(in_root("inc/unused.h"), "\n");
    write_file(in_root("beside.h"), "#if 0\n#include <unused.h>\n#endif\n");
    write_file(in_root("k.cu"), "#include <a.h>\n#include NAME\n#include \"beside.h\"\n"
                                "extern \"C\" __global__ void k(int *p) { *p = 1; }\n");
    snprintf(include, sizeof include, "-I%s", in_root("inc"));
    const char *given[] = {include};
    hdrt_compile_options options = clang_options(given, 1);
    hdrt__jit *jit = make_jit();
    hdrt_source source = HDRT_SOURCE_INIT;
    hdrt__target target = {.soft = true};
    hdrt__input input;
    hdrt__result result;
    source.path = in_root("k.cu");
    ck_assert_int_eq(hdrt__jit_compiler(jit, HDRT_COMPILER_CLANG, 0, &found), HDRT_OK);
    clang = found.path;
    rule = found.rule;
    ck_assert_ptr_nonnull(rule);
    snprintf(command, sizeof command,
             "'%s' -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 -nocudainc -nocudalib -fsyntax-only -D__global__= "
             "-MD -MF %s/k.d %s %s/k.cu 2>/dev/null; tr -d '\\\\' <%s/k.d | tr ' ' '\\n' | grep '^/' | "
             "xargs realpath | sort -u | grep -v k.cu$", clang, root, include, root, root);
    FILE *output = popen(command, "r");
    size_t size = fread(lines, 1, sizeof lines - 1, output);
    pclose(output);
    lines[size] = '\0';
    ck_assert_msg(is_line(lines, in_root("inc/deep/d.h")), "%s", lines);
    for (int round = 0; round < 2; round++) { /* compiled, then from the cache */
        unsigned ours = 0;
        ck_assert_int_eq(hdrt__input_read(&source, &options, &input), HDRT_OK);
        ck_assert_msg(hdrt__jit_obtain(jit, &input, &target, true, NULL, &result) == HDRT_OK, "%s", hdrt_last_error());
        ck_assert_int_eq(result.from_cache, round);
        for (uint32_t i = 0; i < result.dependency_count; i++) {
            char *real = realpath(result.dependencies[i], NULL);
            bool below = strncmp(real, root, strlen(root)) == 0;
            ck_assert_msg(!below || is_line(lines, real), "%s was recorded, clang does not list it", real);
            ours += below;
            free(real);
        }
        ck_assert_uint_eq(ours, 5);
        hdrt__result_free(&result);
        hdrt__input_free(&input);
    }
    hdrt__jit_destroy(jit);
}
END_TEST

START_TEST(the_right_code_comes_back)
{
    hdrt__code *code;
    hdrt__target target = {.soft = true};
    hdrt_source source = HDRT_SOURCE_INIT;
    bool from_cache;
    char text[32], expected[32];
    mkdir(in_root("second"), 0700);
    write_file(in_root("k.cu"), "#include \"second/a.h\"\n" KERNEL);
    source.path = in_root("k.cu");
    for (int round = 0; round < 2; round++)
        for (int value = 1001; value < 1004; value++) {
            hdrt__jit *jit = make_jit();
            snprintf(text, sizeof text, "#define VALUE %d\n", value);
            write_file(in_root("second/a.h"), text);
            ck_assert_msg(hdrt__jit_compile(jit, &source, NULL, &target, &code, &from_cache) == HDRT_OK, "%s",
                          hdrt_last_error());
            ck_assert_int_eq(from_cache, round == 1);
            snprintf(expected, sizeof expected, "%d", value);
            ck_assert_msg(strstr(code->ptx, expected), "no %s in the PTX", expected);
            ck_assert_str_eq(code->table.kernels[0].name, "k");
            ck_assert_uint_eq(code->table.kernels[0].parameter_count, 1);
            hdrt__code_drop(code);
            hdrt__jit_destroy(jit);
        }
}
END_TEST

START_TEST(other_folders)
{
    bool from_cache;
    static const char *const given[] = {"-Iinc"};
    hdrt_compile_options options = clang_options(given, 1);
    mkdir(in_root("one"), 0700);
    mkdir(in_root("two"), 0700);
    mkdir(in_root("one/inc"), 0700);
    mkdir(in_root("two/inc"), 0700);
    write_file(in_root("one/inc/a.h"), "#define VALUE 1\n");
    write_file(in_root("two/inc/a.h"), "#define VALUE 2\n");
    write_file(in_root("k.cu"), "#include <a.h>\n" KERNEL);
    hdrt__jit *jit = make_jit();
    ck_assert_int_eq(chdir(in_root("one")), 0);
    ck_assert_int_eq(compile_file(jit, in_root("k.cu"), &options, &from_cache), HDRT_OK);
    ck_assert_int_eq(chdir(in_root("two")), 0);
    ck_assert_int_eq(compile_file(jit, in_root("k.cu"), &options, &from_cache), HDRT_OK);
    ck_assert(!from_cache); /* the same words, another folder */
    /* In-memory source that includes nothing: the folder is of no matter. */
    hdrt__code *code;
    hdrt__jit_destroy(jit);
    jit = make_jit();
    ck_assert_int_eq(compile_text(jit, SIMPLE, &code), HDRT_OK);
    hdrt__code_drop(code);
    uint64_t before = hdrt__jit_workers_started(jit);
    ck_assert_int_eq(chdir("/"), 0);
    hdrt__jit_destroy(jit);
    jit = make_jit();
    ck_assert_int_eq(compile_text(jit, SIMPLE, &code), HDRT_OK);
    hdrt__code_drop(code);
    ck_assert_uint_eq(before, 1);
    ck_assert_uint_eq(hdrt__jit_workers_started(jit), 0);
    hdrt__jit_destroy(jit);
}
END_TEST

static const struct {
    const char *text, *header, *words;
} not_stored[] = {
    {"__device__ const char *when = __TIME__;\n" SIMPLE, NULL, "__TIME__"},
    {"#include \"t.h\"\n" SIMPLE, "__device__ const char *when = __DATE__;\n", "t.h' uses __DATE__"},
};

START_TEST(what_is_not_stored)
{
    bool from_cache;
    hdrt_log_set(HDRT_LOG_DEBUG, count_compiles, NULL);
    write_file(in_root("k.cu"), not_stored[_i].text);
    if (not_stored[_i].header)
        write_file(in_root("t.h"), not_stored[_i].header);
    hdrt__jit *jit = make_jit();
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(compile_file(jit, in_root("k.cu"), NULL, &from_cache) == HDRT_OK, "%s", hdrt_last_error());
        ck_assert(!from_cache);
    }
    ck_assert_msg(strstr(last_line, not_stored[_i].words), "%s", last_line);
    hdrt__jit_destroy(jit);
}
END_TEST

/* Stand-ins for NVRTC, of which only the names are looked at: 13.0 where it is found first, 12.4 and 12.8 later. */
static const struct {
    const char *arch;
    uint32_t driver;
    unsigned major, minor;
    bool newer;
} choices[] = {
    {"sm_90", 13000, 13, 0, false},  /* the first in the search */
    {"sm_90", 13010, 13, 0, false},
    {"sm_90", 12040, 12, 4, false},  /* the driver takes no PTX of 13.0 */
    {"sm_90", 12080, 12, 4, false},  /* both would do: the first of them */
    {"sm_120", 12080, 12, 8, false}, /* 12.4 does not know it */
    {"sm_120", 12040, 13, 0, true},  /* nobody suits: the first that knows it, for its cubin */
    {"sm_70", 13000, 12, 4, false},  /* 13.0 knows it no more */
    {"sm_199", 13000, 13, 0, false}, /* nobody knows it: PTX */
    {"sm_199", 12040, 12, 4, false}, /* PTX that the driver takes */
    {"sm_90", 11000, 13, 0, true},
    {NULL, 0, 13, 0, false},         /* no device */
};

static void make_nvrtc(const char *folder, const char *library, const char *builtins)
{
    char path[200], command[300];
    snprintf(command, sizeof command, "mkdir -p %s/%s", root, folder);
    ck_assert_int_eq(system(command), 0);
    snprintf(path, sizeof path, "%s/%s/%s", root, folder, library);
    write_file(path, folder);
    snprintf(path, sizeof path, "%s/%s/%s", root, folder, builtins);
    write_file(path, folder);
}

START_TEST(the_nvrtc_that_suits)
{
    make_nvrtc("home/lib64", "libnvrtc.so.13", "libnvrtc-builtins.so.13.0");
    make_nvrtc("path/lib64", "libnvrtc.so.12", "libnvrtc-builtins.so.12.4");
    make_nvrtc("venv/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib", "libnvrtc.so.12", "libnvrtc-builtins.so.12.8");
    setenv("CUDA_HOME", in_root("home"), 1);
    setenv("CUDA_PATH", in_root("path"), 1);
    setenv("VIRTUAL_ENV", in_root("venv"), 1);
    hdrt__target target = {.nvidia = true, .arch = choices[_i].arch, .driver_version = choices[_i].driver};
    hdrt__jit *jit = make_jit();
    for (int round = 0; round < 2; round++) { /* also when another target was asked for before */
        hdrt__chosen_compiler chosen;
        ck_assert_msg(hdrt__jit_choose(jit, HDRT_COMPILER_NVRTC, &target, &chosen) == HDRT_OK, "%s", hdrt_last_error());
        ck_assert_uint_eq(chosen.found.major, choices[_i].major);
        ck_assert_uint_eq(chosen.found.minor, choices[_i].minor);
        ck_assert_int_eq(chosen.newer_than_driver, choices[_i].newer);
        hdrt__chosen_free(&chosen);
        hdrt__target other = {.nvidia = true, .arch = "sm_90", .driver_version = 12040};
        ck_assert_int_eq(hdrt__jit_choose(jit, HDRT_COMPILER_NVRTC, &other, &chosen), HDRT_OK);
        hdrt__chosen_free(&chosen);
    }
    hdrt__jit_destroy(jit);
    unsetenv("CUDA_HOME");
    unsetenv("CUDA_PATH");
    unsetenv("VIRTUAL_ENV");
}
END_TEST

/* A clang that changes a header behind the compiler's back before it ends. */
START_TEST(header_changed_during_the_compile)
{
    bool from_cache;
    char script[1024];
    hdrt__found clang;
    hdrt__jit *jit = make_jit();
    ck_assert_int_eq(hdrt__jit_compiler(jit, HDRT_COMPILER_CLANG, 0, &clang), HDRT_OK);
    snprintf(script, sizeof script,
             "#!/bin/sh\n%s \"$@\"\ncode=$?\ncase \"$*\" in *-S*) echo '#define VALUE 22' > %s;; esac\n"
             "exit $code\n",
             clang.path, in_root("a.h"));
    write_file(in_root("clang-wrapped"), script);
    ck_assert_int_eq(chmod(in_root("clang-wrapped"), 0755), 0);
    hdrt__jit_destroy(jit);
    config.clang = in_root("clang-wrapped");
    write_file(in_root("k.cu"), "#include \"a.h\"\n" KERNEL);
    hdrt_log_set(HDRT_LOG_DEBUG, count_compiles, NULL);
    jit = make_jit();
    write_file(in_root("a.h"), "#define VALUE 11\n");
    ck_assert_msg(compile_file(jit, in_root("k.cu"), NULL, &from_cache) == HDRT_OK, "%s", hdrt_last_error());
    ck_assert_msg(strstr(last_line, "is not cached"), "%s", last_line);
    write_file(in_root("a.h"), "#define VALUE 11\n");
    ck_assert_int_eq(compile_file(jit, in_root("k.cu"), NULL, &from_cache), HDRT_OK);
    ck_assert(!from_cache);
    hdrt__jit_destroy(jit);
}
END_TEST

/* Threads that want the same kernel compile it once; others go on beside them. */
static char shared_path[256];

static void *compile_on_thread(void *argument)
{
    bool from_cache;
    hdrt_status status = compile_file(argument, shared_path, NULL, &from_cache);
    return (void *)(intptr_t)status;
}

START_TEST(threads_share_a_compile)
{
    pthread_t threads[6];
    strcpy(shared_path, in_root("k.cu"));
    write_file(shared_path, SIMPLE);
    hdrt_log_set(HDRT_LOG_DEBUG, count_compiles, NULL);
    hdrt__jit *jit = make_jit();
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, compile_on_thread, jit), 0);
    for (int i = 0; i < 6; i++) {
        void *status;
        pthread_join(threads[i], &status);
        ck_assert_int_eq((int)(intptr_t)status, HDRT_OK);
    }
    ck_assert_uint_eq(atomic_load(&compiles), 1);
    ck_assert_uint_eq(hdrt__jit_workers_started(jit), 1);
    hdrt__jit_destroy(jit);
}
END_TEST

struct own_source {
    hdrt__jit *jit;
    int number;
    hdrt_status status;
};

static void *compile_own(void *argument)
{
    struct own_source *own = argument;
    char text[128];
    hdrt__code *code;
    snprintf(text, sizeof text, "extern \"C\" __global__ void k%d(int *p) { *p = 1; }\n", own->number);
    own->status = compile_text(own->jit, text, &code);
    hdrt__code_drop(code);
    return NULL;
}

START_TEST(workers_are_limited)
{
    pthread_t threads[5];
    struct own_source sources[5];
    config.compile_workers = 2;
    hdrt__jit *jit = make_jit();
    for (int i = 0; i < 5; i++) {
        sources[i] = (struct own_source){jit, i, HDRT_OK};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, compile_own, &sources[i]), 0);
    }
    for (int i = 0; i < 5; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(sources[i].status, HDRT_OK);
    }
    ck_assert_uint_le(hdrt__jit_workers_started(jit), 2);
    ck_assert_uint_ge(hdrt__jit_workers_started(jit), 1);
    hdrt__jit_destroy(jit);
}
END_TEST

/* NVRTC by the same way: a cubin with its PTX, headers that count, errors with places. Nothing of it is run. */
START_TEST(nvrtc_too)
{
    hdrt_source source = HDRT_SOURCE_INIT;
    hdrt_compile_options options = HDRT_COMPILE_OPTIONS_INIT;
    hdrt__target target = {.nvidia = true, .arch = "sm_90"};
    hdrt__code *code;
    bool from_cache;
    options.compiler = HDRT_COMPILER_NVRTC;
    write_file(in_root("k.cu"), "#include \"a.h\"\n" KERNEL);
    source.path = in_root("k.cu");
    for (int value = 1; value < 4; value++) {
        hdrt__jit *jit = make_jit();
        write_file(in_root("a.h"), value == 2 ? "#define VALUE 2\n" : "#define VALUE 1\n");
        ck_assert_msg(hdrt__jit_compile(jit, &source, &options, &target, &code, &from_cache) == HDRT_OK, "%s",
                      hdrt_last_error());
        ck_assert_int_eq(from_cache, value == 3);
        ck_assert_int_eq(code->kind, HDRT_CODE_CUBIN);
        ck_assert_str_eq(code->arch, "sm_90");
        ck_assert(code->cubin && code->ptx && hdrt__is_cubin(code->cubin, code->cubin_size));
        ck_assert_uint_eq(code->table.kernels[0].parameters[0].argument_class, HDRT_CLASS_INTEGER);
        hdrt__code_drop(code);
        hdrt__jit_destroy(jit);
    }
    hdrt__jit *jit = make_jit();
    write_file(in_root("a.h"), "#define VALUE oops\n");
    ck_assert_int_eq(hdrt__jit_compile(jit, &source, &options, &target, &code, &from_cache), HDRT_ERROR_COMPILE);
    ck_assert_msg(strstr(hdrt_last_error(), "k.cu:2:"), "%s", hdrt_last_error());
    hdrt__code_drop(code);
    hdrt__jit_destroy(jit);
}
END_TEST

/* ---- errors ----------------------------------------------------------------------------------------------------- */

START_TEST(errors_are_told)
{
    hdrt__code *code;
    hdrt_source source = HDRT_SOURCE_INIT;
    hdrt__target target = {.soft = true};
    bool from_cache;
    char expected[300];
    hdrt__jit *jit = make_jit();
    write_file(in_root("bad.cu"), "extern \"C\" __global__ void k(int *p)\n{\n    *p = nonsense;\n    *p = more;\n}\n");
    source.path = in_root("bad.cu");
    ck_assert_int_eq(hdrt__jit_compile(jit, &source, NULL, &target, &code, &from_cache), HDRT_ERROR_COMPILE);
    snprintf(expected, sizeof expected, "%s:3:10: ", in_root("bad.cu"));
    ck_assert_msg(strncmp(hdrt_last_error(), expected, strlen(expected)) == 0, "%s", hdrt_last_error());
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "nonsense"));
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "and 1 more error)"));
    ck_assert_ptr_nonnull(code);
    ck_assert_uint_ge(code->diagnostic_count, 2);
    ck_assert_uint_eq(code->diagnostics[0].line, 3);
    ck_assert_ptr_null(code->ptx);
    ck_assert_ptr_nonnull(strstr(code->log, "nonsense"));
    hdrt__code_drop(code);
    /* A header that is not there: its coming must be seen, so the failure is not kept. */
    write_file(in_root("k.cu"), "#include \"later.h\"\n" KERNEL);
    source.path = in_root("k.cu");
    ck_assert_int_eq(hdrt__jit_compile(jit, &source, NULL, &target, &code, &from_cache), HDRT_ERROR_COMPILE);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "later.h"));
    hdrt__code_drop(code);
    write_file(in_root("later.h"), "#define VALUE 5\n");
    ck_assert_int_eq(hdrt__jit_compile(jit, &source, NULL, &target, &code, &from_cache), HDRT_OK);
    hdrt__code_drop(code);
    /* A header that is a pipe. */
    write_file(in_root("pipe.cu"), "#include \"pipe.h\"\n" SIMPLE);
    ck_assert_int_eq(mkfifo(in_root("pipe.h"), 0600), 0);
    source.path = in_root("pipe.cu");
    ck_assert_int_eq(hdrt__jit_compile(jit, &source, NULL, &target, &code, &from_cache), HDRT_ERROR_COMPILE);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "pipe.h"));
    hdrt__code_drop(code);
    hdrt__jit_destroy(jit);
}
END_TEST

START_TEST(notes)
{
    hdrt__code *code;
    hdrt__jit *jit = make_jit();
    ck_assert_int_eq(compile_text(jit, "", &code), HDRT_OK);
    ck_assert_msg(code->note && strstr(code->note, "the source is empty"), "%s", code->note);
    hdrt__code_drop(code);
    ck_assert_int_eq(compile_text(jit, "__device__ int f() { return 1; }", &code), HDRT_OK);
    ck_assert_msg(code->note && strstr(code->note, "no __global__"), "%s", code->note);
    hdrt__code_drop(code);
    ck_assert_int_eq(compile_text(jit, "\xef\xbb\xbf" SIMPLE "\r\n", &code), HDRT_OK);
    ck_assert_uint_eq(code->table.kernel_count, 1);
    hdrt__code_drop(code);
    hdrt__jit_destroy(jit);
}
END_TEST

START_TEST(what_compilers_cannot)
{
    hdrt_source source = HDRT_SOURCE_INIT;
    hdrt_compile_options options = HDRT_COMPILE_OPTIONS_INIT;
    hdrt__target soft = {.soft = true}, any = {.soft = false};
    hdrt__code *code;
    bool from_cache;
    hdrt__jit *jit = make_jit();
    source.text = SIMPLE;
    options.compiler = HDRT_COMPILER_NVRTC;
    ck_assert_int_eq(hdrt__jit_compile(jit, &source, &options, &soft, &code, &from_cache), HDRT_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "NVIDIA GPUs only"));
    options.compiler = HDRT_COMPILER_CLANG;
    options.kind = HDRT_CODE_CUBIN;
    ck_assert_int_eq(hdrt__jit_compile(jit, &source, &options, &any, &code, &from_cache), HDRT_ERROR_UNSUPPORTED);
    options.kind = HDRT_CODE_AUTO;
    options.arch = "sm_999";
    ck_assert_int_eq(hdrt__jit_compile(jit, &source, &options, &soft, &code, &from_cache), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(hdrt_last_error(), "sm_999"), "%s", hdrt_last_error());
    options.lower_arch = true;
    ck_assert_msg(hdrt__jit_compile(jit, &source, &options, &soft, &code, &from_cache) == HDRT_OK, "%s",
                  hdrt_last_error());
    ck_assert_ptr_nonnull(code->note);
    ck_assert_str_ne(code->arch, "sm_999");
    hdrt__code_drop(code);
    hdrt__jit_destroy(jit);
    /* No compiler at all. */
    config.clang = "/nowhere/clang";
    config.nvrtc = "/nowhere/nvrtc";
    jit = make_jit();
    options = (hdrt_compile_options)HDRT_COMPILE_OPTIONS_INIT;
    ck_assert_int_eq(hdrt__jit_compile(jit, &source, &options, &any, &code, &from_cache), HDRT_ERROR_NO_COMPILER);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "/nowhere/clang"));
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "/nowhere/nvrtc"));
    ck_assert_int_eq(hdrt__jit_compile(jit, &source, &options, &soft, &code, &from_cache), HDRT_ERROR_NO_COMPILER);
    ck_assert_ptr_null(strstr(hdrt_last_error(), "/nowhere/nvrtc"));
    hdrt__jit_destroy(jit);
}
END_TEST

START_TEST(companions_that_are_missing)
{
    hdrt__code *code;
    hdrt__jit_config whole = config;
    config.worker = NULL;
    hdrt__jit *jit = make_jit();
    ck_assert_int_eq(compile_text(jit, SIMPLE, &code), HDRT_ERROR_COMPANION);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "hdrt-cc"));
    hdrt__jit_destroy(jit);
    config = whole;
    config.prelude = NULL;
    jit = make_jit();
    ck_assert_int_eq(compile_text(jit, SIMPLE, &code), HDRT_ERROR_COMPANION);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "prelude"));
    hdrt__jit_destroy(jit);
    config = whole;
    config.worker = "/nowhere/hdrt-cc";
    jit = make_jit();
    ck_assert_int_eq(compile_text(jit, SIMPLE, &code), HDRT_ERROR_COMPANION);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "No such file"));
    hdrt__jit_destroy(jit);
}
END_TEST

/* ---- workers that misbehave ------------------------------------------------------------------------------------- */

static void make_script(const char *name, const char *body)
{
    char script[1024];
    snprintf(script, sizeof script, "#!/bin/sh\n%s\n", body);
    write_file(in_root(name), script);
    ck_assert_int_eq(chmod(in_root(name), 0755), 0);
}

/* Reads the header and all of a request whose length is told in its last eight bytes; enough for these tests. */
#define TAKE "dd bs=24 count=1 <&3 >/dev/null 2>&1; dd bs=65536 count=1 <&3 >/dev/null 2>&1; "
#define REPLY(version, type, length)                                                                                   \
    "printf 'HDCC\\" version "\\000\\000\\000\\" type "\\000\\000\\000\\000\\000\\000\\000" length "' >&3; "

static const struct {
    const char *what, *body;
    hdrt_status status;
    const char *words;
} misbehaviours[] = {
    {"ends at once", "exit 3", HDRT_ERROR_COMPILER_CRASHED, "in the middle of a compile"},
    {"is killed", TAKE "kill -9 $$", HDRT_ERROR_COMPILER_CRASHED, "in the middle of a compile"},
    {"is silent", TAKE "exec sleep 60", HDRT_ERROR_COMPILE_LIMIT, "time limit of 50 ms"},
    {"never reads", "exec sleep 60", HDRT_ERROR_COMPILE_LIMIT, "time limit"},
    {"speaks another version", TAKE REPLY("007", "002", "\\000\\000\\000\\000\\000\\000\\000\\000") "sleep 60",
     HDRT_ERROR_COMPANION, "version 7"},
    {"speaks nonsense", TAKE "printf 'HTTP/1.1 400 Bad Request, go away' >&3; sleep 60", HDRT_ERROR_COMPANION,
     "another build"},
    {"answers with another type", TAKE REPLY("002", "001", "\\000\\000\\000\\000\\000\\000\\000\\000") "sleep 60",
     HDRT_ERROR_COMPANION, "another build"},
    {"promises too much", TAKE REPLY("002", "002", "\\377\\377\\377\\377\\377\\000\\000\\000") "sleep 60",
     HDRT_ERROR_COMPANION, "another build"},
    {"promises much and ends", TAKE REPLY("002", "002", "\\000\\000\\000\\010\\000\\000\\000\\000") "exit 0",
     HDRT_ERROR_COMPILER_CRASHED, ""},
    {"answers nothing", TAKE REPLY("002", "002", "\\000\\000\\000\\000\\000\\000\\000\\000") "exit 0",
     HDRT_ERROR_COMPANION, "malformed"},
    {"answers a broken field",
     TAKE REPLY("002", "002", "\\005\\000\\000\\000\\000\\000\\000\\000") "printf abcde >&3; exit 0",
     HDRT_ERROR_COMPANION, "malformed"},
    {"ends half-way", TAKE "printf HDCC >&3", HDRT_ERROR_COMPILER_CRASHED, ""},
};

START_TEST(worker_misbehaves)
{
    hdrt__worker_pool *pool;
    unsigned char *reply = NULL;
    size_t size;
    struct timespec begin, end;
    make_script("worker", misbehaviours[_i].body);
    ck_assert_int_eq(hdrt__worker_pool_create(in_root("worker"), 1, &pool), HDRT_OK);
    /* The pool is as good as before afterwards; waiting twice shows no more than once. */
    for (int round = misbehaviours[_i].status == HDRT_ERROR_COMPILE_LIMIT; round < 2; round++) {
        hdrt__reply decoded;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        hdrt_status status = hdrt__worker_exchange(pool, "request", 7, 50, NULL, &reply, &size);
        clock_gettime(CLOCK_MONOTONIC, &end);
        if (status == HDRT_OK)
            status = hdrt__message_reply(reply, size, &decoded);
        free(reply);
        ck_assert_msg(status == misbehaviours[_i].status, "%s: %s: %s", misbehaviours[_i].what,
                      hdrt_status_name(status), hdrt_last_error());
        ck_assert_msg(strstr(hdrt_last_error(), misbehaviours[_i].words), "%s", hdrt_last_error());
        ck_assert_int_lt(end.tv_sec - begin.tv_sec, 6);
    }
    hdrt__worker_pool_destroy(pool);
}
END_TEST

START_TEST(the_next_compile_works)
{
    hdrt__code *code;
    char body[700];
    snprintf(body, sizeof body, "if [ -e %s ]; then rm %s; " TAKE "kill -9 $$; fi\nexec %s --fd=3", in_root("flag"),
             in_root("flag"), companions->worker);
    make_script("worker", body);
    write_file(in_root("flag"), "");
    char worker[256];
    strcpy(worker, in_root("worker"));
    config.worker = worker;
    hdrt__jit *jit = make_jit();
    ck_assert_int_eq(compile_text(jit, SIMPLE, &code), HDRT_ERROR_COMPILER_CRASHED);
    ck_assert_ptr_null(code);
    ck_assert_msg(compile_text(jit, SIMPLE, &code) == HDRT_OK, "%s", hdrt_last_error());
    hdrt__code_drop(code);
    ck_assert_uint_eq(hdrt__jit_workers_started(jit), 2);
    hdrt__jit_destroy(jit);
}
END_TEST

/* An idle worker that ended, as they do after a minute, is replaced without a word. */
START_TEST(idle_workers_may_end)
{
    hdrt__code *code;
    char body[700];
    snprintf(body, sizeof body, "echo $$ > %s\nexec %s --fd=3", in_root("pid"), companions->worker);
    make_script("worker", body);
    char worker[256];
    strcpy(worker, in_root("worker"));
    config.worker = worker;
    hdrt__jit *jit = make_jit();
    ck_assert_int_eq(compile_text(jit, SIMPLE, &code), HDRT_OK);
    hdrt__code_drop(code);
    int pid = 0;
    FILE *file = fopen(in_root("pid"), "r");
    ck_assert_int_eq(fscanf(file, "%d", &pid), 1);
    fclose(file);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    while (kill(pid, 0) == 0)
        usleep(1000);
    ck_assert_msg(compile_text(jit, SIMPLE " // changed", &code) == HDRT_OK, "%s", hdrt_last_error());
    hdrt__code_drop(code);
    ck_assert_uint_eq(hdrt__jit_workers_started(jit), 2);
    hdrt__jit_destroy(jit);
}
END_TEST

/* What a worker inherits: nothing but its socket, a clean mask, default dispositions, a session of its own. */
START_TEST(what_a_worker_inherits)
{
    hdrt__worker_pool *pool;
    unsigned char *reply = NULL;
    size_t size;
    char body[1024], line[256];
    sigset_t blocked;
    /* The mask is read by the shell itself: while it starts others, it blocks signals of its own accord. */
    snprintf(body, sizeof body,
             "{ ls -l /proc/$$/fd | sed 's/.* \\([0-9]*\\) -> /\\1 /'; while read -r line; do "
             "echo \"$line\"; done < /proc/$$/status; "
             "cut -d' ' -f5,6 /proc/$$/stat; echo $$; pwd; env; } > %s 2>&1; kill -9 $$", in_root("seen"));
    make_script("worker", body);
    sigfillset(&blocked);
    sigdelset(&blocked, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    setenv("NVRTC_APPEND_FLAGS", "-G", 1);
    setenv("SECRET", "x", 1);
    int leaked = open("/dev/zero", O_RDONLY);
    ck_assert_int_ge(leaked, 0);
    ck_assert_int_eq(hdrt__worker_pool_create(in_root("worker"), 1, &pool), HDRT_OK);
    ck_assert_int_eq(hdrt__worker_exchange(pool, "request", 7, 5000, NULL, &reply, &size), HDRT_ERROR_COMPILER_CRASHED);
    hdrt__worker_pool_destroy(pool);
    FILE *seen = fopen(in_root("seen"), "r");
    ck_assert_ptr_nonnull(seen);
    unsigned sockets = 0, masks = 0;
    while (fgets(line, sizeof line, seen)) {
        unsigned long long bits;
        ck_assert_msg(!strstr(line, "/dev/zero"), "%s", line);
        ck_assert_msg(!strstr(line, "SECRET") && !strstr(line, "NVRTC"), "%s", line);
        if (strstr(line, "socket:")) {
            ck_assert_msg(line[0] == '3' && line[1] == ' ', "%s", line);
            sockets++;
        }
        if (sscanf(line, "SigBlk: %llx", &bits) == 1 || sscanf(line, "SigIgn: %llx", &bits) == 1) {
            ck_assert_msg(bits == 0, "%s", line);
            masks++;
        }
    }
    fclose(seen);
    ck_assert_uint_eq(sockets, 1);
    ck_assert_uint_eq(masks, 2);
    close(leaked);
    signal(SIGCHLD, SIG_DFL);
}
END_TEST

/* Low descriptors that are closed in the application, so that its socket gets one of them. */
START_TEST(descriptors_that_were_closed)
{
    hdrt__process process;
    int pair[2];
    char *arguments[] = {(char *)"sh", NULL}, *environment[] = {(char *)"PATH=/usr/bin:/bin", NULL}, byte = 0;
    make_script("worker", "printf y >&3");
    char worker[256];
    strcpy(worker, in_root("worker"));
    int saved = dup(STDERR_FILENO);
    int saved_out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 50);
    close(0);
    close(1);
    close(2);
    hdrt_status status = HDRT_ERROR_INTERNAL;
    ssize_t got = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
        status = hdrt__spawn(worker, arguments, environment, pair[1], pair[0], &process);
        close(pair[1]);
        got = read(pair[0], &byte, 1);
        close(pair[0]);
        hdrt__process_end(&process);
    }
    open("/dev/null", O_RDWR);
    dup2(saved_out, STDOUT_FILENO);
    dup2(saved, STDERR_FILENO);
    ck_assert_int_eq(status, HDRT_OK);
    ck_assert_int_eq((int)got, 1);
    ck_assert_int_eq(byte, 'y');
    ck_assert_int_eq(waitpid(-1, NULL, 0), -1);
    ck_assert_int_eq(errno, ECHILD);
}
END_TEST

/* ---- fork ------------------------------------------------------------------------------------------------------- */

static int forked_child(hdrt__jit *jit)
{
    hdrt__code *code;
    if (compile_text(jit, SIMPLE " // in the child", &code) != HDRT_ERROR_FORKED)
        return 1;
    hdrt__jit_destroy(jit);
    /* One of its own works. */
    if (hdrt__jit_create(&config, &jit) != HDRT_OK)
        return 2;
    if (compile_text(jit, SIMPLE " // by the child", &code) != HDRT_OK)
        return 3;
    hdrt__code_drop(code);
    hdrt__jit_destroy(jit);
    return 0;
}

START_TEST(a_forked_child)
{
    hdrt__code *code;
    int status;
    hdrt__jit *jit = make_jit();
    ck_assert_int_eq(compile_text(jit, SIMPLE, &code), HDRT_OK);
    hdrt__code_drop(code);
    pid_t child = fork();
    if (child == 0)
        child_exit(forked_child(jit));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    /* The parent's worker is still there. */
    ck_assert_int_eq(compile_text(jit, SIMPLE " // in the parent", &code), HDRT_OK);
    hdrt__code_drop(code);
    ck_assert_uint_eq(hdrt__jit_workers_started(jit), 1);
    hdrt__jit_destroy(jit);
}
END_TEST

/* A process that adopts orphans is given none of ours to reap. */
START_TEST(an_application_that_adopts_orphans)
{
    hdrt__code *code;
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    hdrt__jit *jit = make_jit();
    ck_assert_int_eq(compile_text(jit, SIMPLE, &code), HDRT_OK);
    hdrt__code_drop(code);
    hdrt__jit_destroy(jit);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}
END_TEST

/* ---- lack of memory --------------------------------------------------------------------------------------------- */

START_TEST(a_hit_without_memory)
{
    bool from_cache;
    hdrt_status status = HDRT_OK, wrong = HDRT_OK;
    hdrt__jit *jit = make_jit();
    char path[256];
    strcpy(path, in_root("k.cu"));
    write_file(path, SIMPLE);
    ck_assert_int_eq(compile_file(jit, path, NULL, &from_cache), HDRT_OK);
    hdrt__jit_destroy(jit);
    unsigned refused = 0;
    FAILING_MALLOC_EACH(n)
    {
        status = hdrt__jit_create(&config, &jit);
        if (status == HDRT_OK)
            status = compile_file(jit, path, NULL, &from_cache); /* what a failure makes a miss is compiled */
        refused += status == HDRT_ERROR_OUT_OF_MEMORY;
        if (status != HDRT_OK && status != HDRT_ERROR_OUT_OF_MEMORY)
            wrong = wrong ? wrong : status;
        hdrt__jit_destroy(jit);
    }
    ck_assert_int_eq(wrong, HDRT_OK);
    ck_assert_int_eq(status, HDRT_OK);
    ck_assert_uint_gt(refused, 10);
}
END_TEST

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

static bool is_there(hdrt_compiler compiler)
{
    hdrt__found found;
    hdrt_status status =
        compiler == HDRT_COMPILER_CLANG ? hdrt__find_clang(NULL, &found) : hdrt__find_nvrtc(NULL, &found);
    bool there = status == HDRT_OK && found.path;
    hdrt__found_free(&found);
    return there;
}

static void add_clang_tests(TCase *tests)
{
    tcase_add_test(tests, second_time_starts_nothing);
    tcase_add_test(tests, without_a_disk_cache_memory_still_serves);
    tcase_add_test(tests, damaged_entries_are_made_again);
    tcase_add_test(tests, headers);
    tcase_add_test(tests, recorded_files_are_those_of_clang);
    tcase_add_test(tests, the_right_code_comes_back);
    tcase_add_test(tests, other_folders);
    tcase_add_loop_test(tests, what_is_not_stored, 0, COUNT(not_stored));
    tcase_add_test(tests, header_changed_during_the_compile);
    tcase_add_loop_test(tests, the_nvrtc_that_suits, 0, (int)(sizeof choices / sizeof *choices));
    tcase_add_test(tests, threads_share_a_compile);
    tcase_add_test(tests, workers_are_limited);
    tcase_add_test(tests, errors_are_told);
    tcase_add_test(tests, notes);
    tcase_add_test(tests, what_compilers_cannot);
    tcase_add_test(tests, companions_that_are_missing);
    tcase_add_test(tests, the_next_compile_works);
    tcase_add_test(tests, idle_workers_may_end);
    tcase_add_test(tests, a_forked_child);
    tcase_add_test(tests, an_application_that_adopts_orphans);
    tcase_add_test(tests, a_hit_without_memory);
}

/* Shown as tests of their own, so that an absence is seen. */
START_TEST(clang_is_missing)
{
}
END_TEST

START_TEST(nvrtc_is_missing)
{
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("jit compile");
    TCase *tests = tcase_create("compile");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, worker_misbehaves, 0, COUNT(misbehaviours));
    tcase_add_test(tests, what_a_worker_inherits);
    tcase_add_test(tests, descriptors_that_were_closed);
    if (is_there(HDRT_COMPILER_NVRTC))
        tcase_add_test(tests, nvrtc_too);
    else
        tcase_add_test(tests, nvrtc_is_missing);
    if (is_there(HDRT_COMPILER_CLANG))
        add_clang_tests(tests);
    else
        tcase_add_test(tests, clang_is_missing);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
