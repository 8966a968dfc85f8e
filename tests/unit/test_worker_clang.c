/* SPDX-License-Identifier: MIT */
/* The compile worker with the clang that is installed; skipped where there is none. */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "config.h"
#include "worker_client.h"

#define KERNEL "extern \"C\" __global__ void k(float *p) { p[0] = p[1] * 2.0f; }\n"

static char *folder, *clang;
static worker_process worker;

/* From high to low, as the library looks for it. */
static char *find_clang(void)
{
    static const char *const names[] = {"clang-21", "clang-20", "clang-19", "clang-18", "clang-17",
                                        "clang-16", "clang-15", "clang-14", "clang"};
    char *found = NULL;
    for (size_t i = 0; found == NULL && i < sizeof names / sizeof *names; i++)
        found = find_program(names[i]);
    return found;
}

/* A file changed within the tick of the clock in which it is read is not cached, and rightly; the tests wait it out. */
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
    ck_assert_int_eq(worker_stop(&worker), 0); /* not with a sanitizer's report, either */
    folder_remove(folder);
}

static worker_ask ask_for(const char *source)
{
    worker_ask ask = worker_ask_clang(clang, source);
    ask.directory = folder;
    return ask;
}

static worker_reply compile(const worker_ask *ask, uint32_t status)
{
    wait_out_the_tick();
    worker_reply reply = worker_compile(&worker, ask);
    ck_assert_msg(reply.arrived && reply.status == status, "%s", worker_print(&reply));
    return reply;
}

static char *in_folder(const char *name)
{
    char *path = NULL;
    ck_assert_int_gt(asprintf(&path, "%s/%s", folder, name), 0);
    return path;
}

static bool lists(const worker_reply *reply, uint32_t tag, const char *name)
{
    char *path = in_folder(name);
    bool listed = worker_lists(reply, tag, path);
    free(path);
    return listed;
}

START_TEST(a_kernel)
{
    worker_ask ask = ask_for(KERNEL);
    for (int i = 0; i < 2; i++) {
        worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
        ck_assert(worker_says(&reply, HDRT_CC_CODE_PTX, ".visible .entry k("));
        ck_assert(worker_says(&reply, HDRT_CC_CODE_PTX, ".target sm_80"));
        ck_assert(worker_says(&reply, HDRT_CC_ARCH_USED, "sm_80"));
        ck_assert(worker_says(&reply, HDRT_CC_COMPILER_VERSION, "clang "));
        ck_assert_uint_eq(worker_count(&reply, HDRT_CC_NO_STORE), 0);
        ck_assert_uint_eq(worker_count(&reply, HDRT_CC_UNRESOLVED), 0);
        ck_assert_uint_eq(worker_count(&reply, HDRT_CC_NOTE), 0);
        ck_assert_uint_ge(worker_count(&reply, HDRT_CC_DEPENDENCY), 1); /* the prelude */
        ck_assert_uint_eq(worker_count(&reply, HDRT_CC_DIAGNOSTIC), 0);
        ck_assert_uint_eq(worker_count(&reply, HDRT_CC_LOG), 0);
        worker_reply_free(&reply);
    }
}
END_TEST

START_TEST(errors_have_places)
{
    worker_ask ask = ask_for("#include \"h.h\"\n" KERNEL "__device__ int a =\n    undefined_name;\n#warning careful\n");
    free(folder_write(folder, "h.h", "\n__device__ int b = other_name;\n"));
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_COMPILE);
    char *header = in_folder("h.h");
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "/h.h:2:20: use of undeclared identifier 'other_name'"));
    ck_assert(worker_diagnoses(&reply, header, 2, 20, 3, "use of undeclared identifier 'other_name'"));
    ck_assert(worker_diagnoses(&reply, "k.cu", 4, 5, 3, "use of undeclared identifier 'undefined_name'"));
    ck_assert(worker_diagnoses(&reply, "k.cu", 5, 2, 2, "careful"));
    ck_assert(worker_says(&reply, HDRT_CC_LOG, "undefined_name;\n"));
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_CODE_PTX), 0);
    worker_reply_free(&reply);
    free(header);
}
END_TEST

START_TEST(headers_hit_and_missed)
{
    free(folder_write(folder, "second/sub/a.h", "#include <b.h>\n#if __has_include(\"maybe.h\")\n#error no\n#endif\n"));
    free(folder_write(folder, "third/b.h", ""));
    worker_ask ask = ask_for("#include \"sub/a.h\"\n" KERNEL);
    ask.options[0] = "-Ifirst", ask.options[1] = "-I", ask.options[2] = "second", ask.options[3] = "-Ithird";
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(lists(&reply, HDRT_CC_DEPENDENCY, "second/sub/a.h"));
    ck_assert(lists(&reply, HDRT_CC_DEPENDENCY, "third/b.h"));
    ck_assert(lists(&reply, HDRT_CC_ABSENT, "first"));    /* the folder itself */
    ck_assert_msg(lists(&reply, HDRT_CC_ABSENT, "sub"), "%s", worker_print(&reply)); /* beside the source */
    ck_assert(lists(&reply, HDRT_CC_ABSENT, "second/b.h"));
    ck_assert(lists(&reply, HDRT_CC_ABSENT, "second/sub/maybe.h"));
    ck_assert(lists(&reply, HDRT_CC_ABSENT, "third/maybe.h"));
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_NO_STORE), 0);
    size_t absent = worker_count(&reply, HDRT_CC_ABSENT);
    for (size_t i = 0; i < absent; i++) { /* it is as it says, and absolute */
        char *path = worker_text(&reply, HDRT_CC_ABSENT, i, NULL);
        ck_assert_int_eq(path[0], '/');
        ck_assert_int_ne(access(path, F_OK), 0);
        ck_assert_msg(strncmp(path, "/proc/", 6) != 0, "%s", path);
        free(path);
    }
    worker_reply_free(&reply);

    free(folder_write(folder, "sub/a.h", "__device__ int shadow;\n")); /* one that comes earlier is taken */
    reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_says(&reply, HDRT_CC_CODE_PTX, "shadow"));
    ck_assert(lists(&reply, HDRT_CC_DEPENDENCY, "sub/a.h"));
    worker_reply_free(&reply);
}
END_TEST

START_TEST(digests_are_of_the_contents)
{
    static const char text[] = "__device__ int from_header;\n";
    char *path = folder_write(folder, "h.h", text);
    worker_ask ask = ask_for("#include \"h.h\"\n" KERNEL);
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    unsigned char digest[32];
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    crypto_generichash(digest, sizeof digest, (const unsigned char *)text, strlen(text), NULL, 0);
    bool found = false;
    size_t size;
    char *field;
    for (size_t i = 0; (field = worker_text(&reply, HDRT_CC_DEPENDENCY, i, &size)) != NULL; i++) {
        const unsigned char *bytes = (unsigned char *)field;
        ck_assert_uint_gt(size, 72);
        if (strcmp(field + 72, path) == 0) {
            found = true;
            ck_assert_uint_eq(hdrt__cc_read_u64(bytes), strlen(text));
            ck_assert_uint_eq(hdrt__cc_read_u64(bytes + 8),
                              (uint64_t)status.st_mtim.tv_sec * 1000000000 + (uint64_t)status.st_mtim.tv_nsec);
            ck_assert_uint_eq(hdrt__cc_read_u64(bytes + 32), status.st_ino);
            ck_assert_mem_eq(bytes + 40, digest, sizeof digest);
        }
        free(field);
    }
    ck_assert(found);
    worker_reply_free(&reply);
    free(path);
}
END_TEST

/* The files that clang itself says it depended on are the files that were recorded. */
START_TEST(dependencies_are_those_of_clang)
{
    char *real = folder_write(folder, "inc/real.h", "#pragma once\n#include \"other.h\"\n");
    free(folder_write(folder, "inc/other.h", "#define ANSWER 42\n"));
    static const char text[] = "#include <real.h>\n#include MACRO\n" KERNEL "int __device__ a = ANSWER;";
    char *source = folder_write(folder, "k.cu", text);
    worker_ask ask = ask_for(text);
    ask.options[0] = "-Iinc", ask.options[1] = "-DMACRO=<other.h>";
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    char command[8192], line[8192];
    const char *build = build_folder();
    snprintf(command, sizeof command,
             "cd '%s' && '%s' -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 --cuda-path=/nonexistent -nocudainc "
             "-nocudalib -nostdlibinc -Xclang -target-feature -Xclang +ptx75 -std=c++17 -isystem '%s/kernels/include' "
             "-include '%s/kernels/include/hdrt_device.h' -Iinc '-DMACRO=<other.h>' -M k.cu",
             folder, clang, build, build);
    FILE *stream = popen(command, "re");
    ck_assert_ptr_nonnull(stream);
    size_t expected = 0;
    while (fgets(line, sizeof line, stream) != NULL)
        for (char *word = strtok(line, " \\\n"); word != NULL; word = strtok(NULL, " \\\n")) {
            if (word[strlen(word) - 1] == ':' || strcmp(word, "k.cu") == 0)
                continue;
            expected++;
            ck_assert_msg(word[0] == '/' ? worker_lists(&reply, HDRT_CC_DEPENDENCY, word)
                                         : lists(&reply, HDRT_CC_DEPENDENCY, word),
                          "clang read '%s'; %s", word, worker_print(&reply));
        }
    ck_assert_int_eq(pclose(stream), 0);
    ck_assert_uint_ge(expected, 3);
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_DEPENDENCY), expected);
    worker_reply_free(&reply);
    free(source);
    free(real);
}
END_TEST

START_TEST(things_that_are_no_files)
{
    char *fifo = in_folder("fifo.h");
    ck_assert_int_eq(mkfifo(fifo, 0666), 0);
    worker_ask ask = ask_for("#include \"fifo.h\"\n" KERNEL);
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_COMPILE);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "k.cu:1:10: 'fifo.h' file not found"));
    ck_assert(worker_diagnoses(&reply, fifo, 0, 0, 1, "this is a named pipe, not a regular file, and was not opened"));
    ck_assert(worker_says(&reply, HDRT_CC_LOG, "fifo.h: note: this is a named pipe"));
    worker_reply_free(&reply);
    ask.source = "#include \"/dev/zero\"\n" KERNEL;
    reply = compile(&ask, HDRT_CC_STATUS_COMPILE);
    ck_assert(worker_diagnoses(&reply, "/dev/zero", 0, 0, 1, "this is a device"));
    worker_reply_free(&reply);
    ask.source = "#include \"0\"\n#include \"4\"\n" KERNEL; /* names of descriptors, in the folder of the source */
    reply = compile(&ask, HDRT_CC_STATUS_COMPILE);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "'0' file not found"));
    worker_reply_free(&reply);

    ask.source = "#if __has_include(\"fifo.h\")\n#error no\n#endif\n" KERNEL; /* one that decides without an error */
    reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_says(&reply, HDRT_CC_NO_STORE, "fifo.h' is a named pipe"));
    worker_reply_free(&reply);
    free(fifo);
}
END_TEST

START_TEST(names_with_anything_in_them)
{
    static const char *const names[] = {
        "a b.cu", "it's \"quoted\".cu", "inc_\xc3\xa9\xe6\xb8\xac/\xe2\x82\xac.cu", "#$&;:%1.cu", "back\\slash.cu",
        "line\nfeed.cu", "-dash.cu", "a:1:2: error: b.cu",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *source = folder_write(folder, names[i], "");
        worker_ask ask = ask_for("__device__ const char n[] = __FILE__;\n"
                                 "static_assert(sizeof(n) == LENGTH, \"\");\n\n" KERNEL
                                 "__device__ int bad = nothing;\n");
        char length[64];
        snprintf(length, sizeof length, "-DLENGTH=%zu", strlen(source) + 1);
        ask.name = source;
        ask.options[0] = length, ask.options[1] = "-lineinfo";
        worker_reply reply = compile(&ask, HDRT_CC_STATUS_COMPILE);
        ck_assert_msg(worker_diagnoses(&reply, source, 5, 22, 3, "use of undeclared identifier 'nothing'"), "%s",
                      worker_print(&reply));
        ck_assert_uint_eq(worker_count(&reply, HDRT_CC_DIAGNOSTIC), 1);
        worker_reply_free(&reply);
        ask.options[2] = "-Dnothing=1";
        reply = compile(&ask, HDRT_CC_STATUS_OK);
        ck_assert_uint_eq(worker_count(&reply, HDRT_CC_NO_STORE), 0);
        worker_reply_free(&reply);
        free(source);
    }
}
END_TEST

/* A quoted include starts in the folder of the source, wherever the program is and whatever the folder is called. */
START_TEST(quoted_include_beside_the_source)
{
    char *header = folder_write(folder, "d \xc3\xa9 'x'/h.h", "__device__ int from_beside;\n");
    char *source = in_folder("d \xc3\xa9 'x'/k.cu");
    worker_ask ask = ask_for("#include \"h.h\"\r\n" KERNEL);
    ask.name = source;
    ask.directory = "/";
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_says(&reply, HDRT_CC_CODE_PTX, "from_beside"));
    ck_assert(worker_lists(&reply, HDRT_CC_DEPENDENCY, header));
    worker_reply_free(&reply);
    ask.options[0] = "--no-source-include";
    reply = compile(&ask, HDRT_CC_STATUS_COMPILE);
    worker_reply_free(&reply);
    ask.options[0] = NULL;
    ask.name = "d \xc3\xa9 'x'/k.cu"; /* relative to the folder of the request */
    ask.directory = folder;
    reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_lists(&reply, HDRT_CC_DEPENDENCY, header));
    worker_reply_free(&reply);
    free(source);
    free(header);
}
END_TEST

START_TEST(carriage_returns)
{
    worker_ask ask = ask_for("#define TWO \\\r\n  2\r\nextern \"C\" __global__ void k(int *p)\r\n{\r\n  p[0] = TWO;\r\n"
                             "}\r\n__device__ int a = x;\r\n");
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_COMPILE);
    ck_assert(worker_diagnoses(&reply, "k.cu", 7, 20, 3, "use of undeclared identifier 'x'"));
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_DIAGNOSTIC), 1);
    worker_reply_free(&reply);
}
END_TEST

START_TEST(time_macros_are_not_stored)
{
    worker_ask ask = ask_for(KERNEL "__device__ char t[] = __TIME__;\n");
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_says(&reply, HDRT_CC_NO_STORE, "the source uses __TIME__"));
    worker_reply_free(&reply);
    free(folder_write(folder, "h.h", "__device__ char t[] = __DATE__;\n"));
    ask.source = "#include \"h.h\"\n" KERNEL;
    reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_says(&reply, HDRT_CC_NO_STORE, "h.h' uses __DATE__"));
    worker_reply_free(&reply);
    ask.source = KERNEL "__device__ char t[] = T;\n";
    ask.options[0] = "-DT=__TIMESTAMP__";
    reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_says(&reply, HDRT_CC_NO_STORE, "the source uses __TIMESTAMP__"));
    worker_reply_free(&reply);
}
END_TEST

/* The stand-in for clang changes the header when clang has read it: what was hashed is not what was compiled. */
START_TEST(a_header_that_changes_is_not_stored)
{
    free(folder_write(folder, "h.h", "__device__ int one;\n"));
    char script[8192];
    snprintf(script, sizeof script, "'%s' \"$@\"; status=$?; sleep 0.05; echo '__device__ int two;' > '%s/h.h'; "
             "exit $status", clang, folder);
    char *wrapper = folder_script(folder, "wrapper", script);
    worker_ask ask = ask_for("#include \"h.h\"\n" KERNEL);
    ask.compiler = wrapper;
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_says(&reply, HDRT_CC_CODE_PTX, "one"));
    ck_assert_msg(worker_says(&reply, HDRT_CC_NO_STORE, "h.h' changed during the compile"), "%s",
                  worker_print(&reply));
    worker_reply_free(&reply);
    free(wrapper);

    snprintf(script, sizeof script, "'%s' \"$@\"; status=$?; rm '%s/h.h'; exit $status", clang, folder);
    wrapper = folder_script(folder, "remover", script);
    ask.compiler = wrapper;
    reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_says(&reply, HDRT_CC_NO_STORE, "h.h' could not be read again: No such file"));
    worker_reply_free(&reply);
    free(wrapper);
}
END_TEST

START_TEST(targets)
{
    worker_ask ask = ask_for(KERNEL);
    ask.arch = "sm_999";
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_says(&reply, HDRT_CC_NOTE, "does not know sm_999; compiled for sm_"));
    ck_assert(!worker_says(&reply, HDRT_CC_ARCH_USED, "sm_999"));
    worker_reply_free(&reply);
    ask.arch = "sm_86";
    reply = compile(&ask, HDRT_CC_STATUS_OK); /* what it learned of high ones says nothing of this one */
    ck_assert(worker_says(&reply, HDRT_CC_CODE_PTX, ".target sm_86"));
    worker_reply_free(&reply);
    ask.arch = "sm_999";
    ask.lower = 0;
    reply = compile(&ask, HDRT_CC_STATUS_OPTION);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "does not know the target sm_999; it knows sm_"));
    worker_reply_free(&reply);
}
END_TEST

static void option_gives(const char *option, const char *source, const char *in_ptx)
{
    worker_ask ask = ask_for(source);
    ask.options[0] = option;
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert_msg(worker_says(&reply, HDRT_CC_CODE_PTX, in_ptx), "%s", option);
    worker_reply_free(&reply);
}

/* The prelude asks for NDEBUG where it defines assert, so this one macro comes before it. */
START_TEST(ndebug_switches_assert_off)
{
    static const struct {
        const char *options[2];
        bool asserts;
    } cases[] = {{{NULL}, true}, {{"-DNDEBUG"}, false}, {{"-DNDEBUG=1"}, false}, {{"--define-macro=NDEBUG"}, false},
                 {{"-DNDEBUG", "-UNDEBUG"}, true}, {{"-UNDEBUG", "-DNDEBUG"}, false}, {{"-DNDEBUGGER"}, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        worker_ask ask = ask_for("extern \"C\" __global__ void k(float *p) { assert(p[0] > 1); p[0] = 1; }\n");
        for (size_t k = 0; k < 2; k++)
            ask.options[k] = cases[i].options[k];
        worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
        ck_assert_msg(worker_says(&reply, HDRT_CC_CODE_PTX, "__assertfail") == cases[i].asserts, "case %zu", i);
        worker_reply_free(&reply);
    }
}
END_TEST

/* Names of the user's macros may be names of the prelude's template parameters; pre-includes see them. */
START_TEST(macros_come_after_the_prelude)
{
    free(folder_write(folder, "p.h", "__device__ T from_pre_include = F(3);\n"));
    worker_ask ask = ask_for("#include \"h.h\"\n" KERNEL "#ifndef M\n#error M\n#endif\n__device__ int line = X;\n");
    free(folder_write(folder, "h.h", "__device__ int n = N;\n"));
    ask.options[0] = "-DT=unsigned", ask.options[1] = "-DF(p)=p*p", ask.options[2] = "-DM", ask.options[3] = "-DN=4711";
    ask.options[4] = "--pre-include=p.h", ask.options[5] = "-Dx=bad bad", ask.options[6] = "-UX";
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_COMPILE);
    ck_assert(worker_diagnoses(&reply, "k.cu", 6, 23, 3, "use of undeclared identifier 'X'"));
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_DIAGNOSTIC), 1);
    worker_reply_free(&reply);
    ask.options[6] = "-DX=value";
    reply = compile(&ask, HDRT_CC_STATUS_COMPILE);
    ck_assert_msg(worker_diagnoses(&reply, "<command line>", 6, 11, 1, "expanded from macro 'X'"), "%s",
                  worker_print(&reply));
    worker_reply_free(&reply);
    ask.options[6] = "-DX=5";
    reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_says(&reply, HDRT_CC_CODE_PTX, "4711"));
    ck_assert(worker_says(&reply, HDRT_CC_CODE_PTX, "from_pre_include"));
    ck_assert(lists(&reply, HDRT_CC_DEPENDENCY, "p.h"));
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_NO_STORE), 0);
    worker_reply_free(&reply);
}
END_TEST

START_TEST(options_take_effect)
{
    static const char arithmetic[] = "extern \"C\" __global__ void k(float *p) { p[0] = p[1] * p[2] + p[3] / p[4]; }\n";
    option_gives("-w", arithmetic, "fma.rn.f32");
    option_gives("--fmad=false", arithmetic, "add.rn.f32");
    option_gives("--ftz=true", arithmetic, "fma.rn.ftz.f32");
    option_gives("--use_fast_math", arithmetic, "div.approx.ftz.f32");
    option_gives("--prec-div=false", arithmetic, "div.full.f32");
    option_gives("-lineinfo", arithmetic, ".loc");
    option_gives("-G", arithmetic, ".loc");
    option_gives("-G", arithmetic, ", debug");
    option_gives("--maxrregcount=24", arithmetic, ".maxnreg 24\n{");
    option_gives("-DN=1234", KERNEL "__device__ int n = N;\n", "1234");
    option_gives("-std=c++20", KERNEL "template <class T> concept C = sizeof(T) > 0;\n", ".entry k(");
    worker_ask ask = ask_for("#warning w\n" KERNEL);
    ask.options[0] = "-Werror";
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_COMPILE);
    worker_reply_free(&reply);
    ask.options[0] = "--restrict";
    reply = compile(&ask, HDRT_CC_STATUS_OPTION);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "'--restrict'"));
    worker_reply_free(&reply);
    ask.options[0] = "-std=c++47";
    reply = compile(&ask, HDRT_CC_STATUS_OPTION);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "c++47"));
    worker_reply_free(&reply);
}
END_TEST

START_TEST(functions_that_nobody_defines)
{
    worker_ask ask = ask_for("extern \"C\" __device__ float __nv_odd(float);\n"
                             "extern \"C\" __global__ void k(float *p)\n{\n    p[0] = __nv_odd(p[1]);\n"
                             "    printf(\"%f\", p[0]);\n}\n");
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_lists(&reply, HDRT_CC_UNRESOLVED, "__nv_odd"));
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_UNRESOLVED), 1); /* not vprintf */
    worker_reply_free(&reply);
}
END_TEST

START_TEST(a_time_limit_in_clang)
{
    worker_ask ask = ask_for("template <int N> struct t { t<N - 1> a; t<N - 2> b[N]; static constexpr int v = "
                             "t<N - 1>::v + 1; };\ntemplate <> struct t<0> {static constexpr int v = 0;};\n"
                             "template <> struct t<1> {static constexpr int v = 0;};\n"
                             "constexpr int f(int n) { int s = 0; for (int i = 0; i < n; i++) s += i & 3; return s; }\n"
                             "__device__ int a[f(1000000) ? 1 : 2];\n" KERNEL);
    ask.time_limit_ms = 5; /* nothing compiles in that */
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_LIMIT);
    worker_reply_free(&reply);
    ask.source = KERNEL;
    ask.time_limit_ms = 30000;
    reply = compile(&ask, HDRT_CC_STATUS_OK); /* and the next one is as good as ever */
    worker_reply_free(&reply);
}
END_TEST

START_TEST(a_memory_limit_in_clang)
{
#ifndef HDRT_SANITIZED
    worker_ask ask = ask_for(KERNEL);
    for (uint64_t mebibytes = 8; mebibytes <= 512; mebibytes *= 2) {
        ask.memory_limit = mebibytes << 20;
        worker_reply reply = worker_compile(&worker, &ask);
        ck_assert_msg(reply.status == HDRT_CC_STATUS_OK || reply.status == HDRT_CC_STATUS_LIMIT ||
                          reply.status == HDRT_CC_STATUS_CRASHED,
                      "%u MiB: %s", (unsigned)mebibytes, worker_print(&reply));
        if (mebibytes == 32)
            ck_assert_msg(reply.status == HDRT_CC_STATUS_LIMIT, "%s", worker_print(&reply));
        worker_reply_free(&reply);
    }
    ask.memory_limit = 1; /* not even the program's start: the kernel ends it by a signal */
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_LIMIT);
    ck_assert_msg(worker_says(&reply, HDRT_CC_MESSAGE, "ended under a memory limit of 1 bytes"), "%s",
                  worker_print(&reply));
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "--memory-limit"));
    worker_reply_free(&reply);
#endif
}
END_TEST

START_TEST(no_recorder)
{
    char *no_library = folder_write(folder, "recorder", "not a library");
    worker_ask ask = ask_for(KERNEL);
    ask.recorder = no_library;
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_says(&reply, HDRT_CC_NO_STORE, "did not run in"));
    worker_reply_free(&reply);
    ck_assert_int_eq(remove(no_library), 0);
    reply = compile(&ask, HDRT_CC_STATUS_IO);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, no_library));
    worker_reply_free(&reply);
    ask.recorder = NULL;
    ask.prelude = folder; /* there is none in it */
    reply = compile(&ask, HDRT_CC_STATUS_COMPILE);
    ck_assert(worker_says(&reply, HDRT_CC_MESSAGE, "hdrt_device.h' file not found"));
    worker_reply_free(&reply);
    free(no_library);
}
END_TEST

/* An installation that was moved to where nothing can be said about it in LD_PRELOAD. */
START_TEST(companions_in_an_odd_place)
{
    char command[8192];
    snprintf(command, sizeof command, "mkdir '%s/a b:c' && cp '%s/.libs/libhdrt-record.so' "
             "'%s/kernels/include/hdrt_device.h' '%s/a b:c'", folder, build_folder(), build_folder(), folder);
    ck_assert_int_eq(system(command), 0);
    char *prelude = in_folder("a b:c"), *recorder = in_folder("a b:c/libhdrt-record.so");
    worker_ask ask = ask_for(KERNEL);
    ask.prelude = prelude;
    ask.recorder = recorder;
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(lists(&reply, HDRT_CC_DEPENDENCY, "a b:c/hdrt_device.h"));
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_NO_STORE), 0);
    worker_reply_free(&reply);
    free(prelude);
    free(recorder);
}
END_TEST

START_TEST(headers_by_links)
{
    free(folder_write(folder, "real/h.h", ""));
    char *dangling = in_folder("d.h");
    ck_assert_int_eq(symlink("nowhere", dangling), 0);
    worker_ask ask = ask_for("");
    worker_reply reply;
    ask.source = "#if __has_include(\"d.h\")\n#error no\n#endif\n" KERNEL;
    reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_lists(&reply, HDRT_CC_ABSENT, dangling)); /* as good as not there */
    ck_assert_uint_eq(worker_count(&reply, HDRT_CC_NO_STORE), 0);
    worker_reply_free(&reply);
    ask.source = "#include \"l.h\"\n" KERNEL;
    free(dangling);
    dangling = in_folder("l.h");
    ck_assert_int_eq(symlink("real/h.h", dangling), 0);
    reply = compile(&ask, HDRT_CC_STATUS_OK);
    ck_assert(worker_lists(&reply, HDRT_CC_DEPENDENCY, dangling)); /* under the name that was asked for */
    worker_reply_free(&reply);
    free(dangling);
}
END_TEST

static int count_descriptors(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *entries = opendir(path);
    ck_assert_ptr_nonnull(entries);
    int count = 0;
    while (readdir(entries) != NULL)
        count++;
    closedir(entries);
    return count;
}

START_TEST(nothing_is_left_open)
{
    worker_ask ask = ask_for(KERNEL);
    worker_reply reply = compile(&ask, HDRT_CC_STATUS_OK);
    worker_reply_free(&reply);
    int before = count_descriptors(worker.pid);
    for (int i = 0; i < 4; i++) {
        ask.source = i % 2 ? KERNEL : "#error x\n";
        reply = compile(&ask, i % 2 ? HDRT_CC_STATUS_OK : HDRT_CC_STATUS_COMPILE);
        worker_reply_free(&reply);
    }
    ck_assert_int_eq(count_descriptors(worker.pid), before);
}
END_TEST

int main(void)
{
    clang = find_clang();
    if (clang == NULL) {
        puts("1..0 # SKIP no clang along PATH");
        return 0;
    }
    printf("# %s\n", clang);
    fflush(stdout);
    Suite *suite = suite_create("worker_clang");
    TCase *tests = tcase_create("clang");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_kernel);
    tcase_add_test(tests, errors_have_places);
    tcase_add_test(tests, headers_hit_and_missed);
    tcase_add_test(tests, digests_are_of_the_contents);
    tcase_add_test(tests, dependencies_are_those_of_clang);
    tcase_add_test(tests, things_that_are_no_files);
    tcase_add_test(tests, names_with_anything_in_them);
    tcase_add_test(tests, quoted_include_beside_the_source);
    tcase_add_test(tests, carriage_returns);
    tcase_add_test(tests, time_macros_are_not_stored);
    tcase_add_test(tests, a_header_that_changes_is_not_stored);
    tcase_add_test(tests, targets);
    tcase_add_test(tests, macros_come_after_the_prelude);
    tcase_add_test(tests, options_take_effect);
    tcase_add_test(tests, functions_that_nobody_defines);
    tcase_add_test(tests, a_time_limit_in_clang);
    tcase_add_test(tests, a_memory_limit_in_clang);
    tcase_add_test(tests, ndebug_switches_assert_off);
    tcase_add_test(tests, no_recorder);
    tcase_add_test(tests, companions_in_an_odd_place);
    tcase_add_test(tests, headers_by_links);
    tcase_add_test(tests, nothing_is_left_open);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    free(clang);
    return 0;
}
