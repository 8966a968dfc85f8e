/* SPDX-License-Identifier: MIT */
/*
 * The kernel cache as a whole, with a stand-in compiler that counts its compiles: what makes a key and what undoing it
 * finds again, explanations, further folders, the size cap, one compile among processes, code that a driver refuses.
 */
#include <hdrt.h>

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "child.h"
#include "jit/container.h"
#include "jit/flight.h"
#include "jit/jit.h"
#include "jit/lookup.h"
#include "jit/sweep.h"

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

static char root[64];
static hdrt__jit_config config;
static char cache[128], compiler[128], prelude[128], worker[512];

static const char *in_root(const char *name)
{
    static char paths[16][256];
    static unsigned next;
    char *path = paths[next++ % 16];
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
    strcpy(root, "/tmp/hdrt-test-cache-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    strcat(strcpy(cache, root), "/cache");
    strcat(strcpy(compiler, root), "/clang");
    strcat(strcpy(prelude, root), "/prelude");
    const char *built = getenv("HDRT_LIBEXEC");
    snprintf(worker, sizeof worker, "%.400s/tests/unit/support/fake_cc", built ? built : ".");
    mkdir(prelude, 0700);
    write_file(in_root("prelude/hdrt_device.h"), "int p;");
    write_file(compiler, "#!/bin/sh\n");
    chmod(compiler, 0700);
    config = (hdrt__jit_config){.worker = worker, .recorder = worker, .prelude = prelude, .cache_dir = cache,
                                .clang = compiler};
    unsetenv("HDRT_CACHE_DIR");
    unsetenv("HDRT_CACHE_READ_ONLY");
    unsetenv("HDRT_CACHE_LIMIT");
}

static void tear_down(void)
{
    char command[192];
    snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", root, root);
    ck_assert_int_eq(system(command), 0);
}

static hdrt__jit *make_jit(void)
{
    hdrt__jit *jit;
    ck_assert_msg(hdrt__jit_create(&config, &jit) == HDRT_OK, "%s", hdrt_last_error());
    return jit;
}

static unsigned compiles(void)
{
    struct stat status;
    return stat(in_root("count"), &status) == 0 ? (unsigned)status.st_size : 0;
}

/* What is compiled: changed by a case, and changed back. */
struct input {
    char source[1024];
    const char *name, *arch, *directory;
    const char *options[8];
    uint32_t option_count;
    const char *header_names[2], *header_texts[2];
    uint32_t header_count;
    const char *expressions[4];
    uint32_t expression_count;
    hdrt_code_kind kind;
    bool lower;
};

static struct input input;

static void plain_input(void)
{
    input = (struct input){.name = "k.cu", .arch = "sm_80"};
    snprintf(input.source, sizeof input.source, "//count %s\n//read %s\n//absent %s\n#include \"a.h\"\n", in_root("count"),
             in_root("second/a.h"), in_root("first/a.h"));
    input.options[0] = "-DA=1";
    input.options[1] = "-DB=2";
    input.option_count = 2;
    mkdir(in_root("first"), 0700);
    mkdir(in_root("second"), 0700);
    write_file(in_root("second/a.h"), "#define A 1\n");
}

/* Compiles with a jit of its own; the code's bytes as a digest, whether it came from the cache. */
static hdrt__digest obtain(bool *from_cache, hdrt_cache_reason *reason)
{
    hdrt__jit *jit = make_jit();
    hdrt__code *code;
    hdrt_source source = HDRT_SOURCE_INIT;
    hdrt_compile_options options = HDRT_COMPILE_OPTIONS_INIT;
    const hdrt__target target = {.soft = true};
    source.text = input.source;
    source.name = input.name;
    source.header_names = input.header_count ? input.header_names : NULL;
    source.header_texts = input.header_count ? input.header_texts : NULL;
    source.header_count = input.header_count;
    options.arch = input.arch;
    options.options = input.options;
    options.option_count = input.option_count;
    options.names = input.expression_count ? input.expressions : NULL;
    options.name_count = input.expression_count;
    options.kind = input.kind;
    options.lower_arch = input.lower;
    hdrt_status status = hdrt__jit_compile(jit, &source, &options, &target, &code, from_cache);
    ck_assert_msg(status == HDRT_OK, "%s", hdrt_last_error());
    hdrt__digest digest = hdrt__digest_of(code->ptx, code->ptx_size);
    if (reason)
        *reason = *from_cache ? HDRT_CACHE_HIT : code->reason;
    hdrt__code_drop(code);
    hdrt__jit_destroy(jit);
    return digest;
}

/* ---- what makes a key ------------------------------------------------------------------------------------------- */

static void change_source(void) { strcat(input.source, "// more\n"); }
static void change_name(void) { input.name = "l.cu"; }
static void change_arch(void) { input.arch = "sm_90"; }
static void change_suffix(void) { input.arch = "sm_80a"; }
static void change_lowering(void) { input.lower = true; }
static void change_option(void) { input.options[1] = "-DB=3"; }
static void add_option(void) { input.options[input.option_count++] = "-lineinfo"; }
static void split_compile(void) { input.options[input.option_count++] = "--split-compile=2"; }
static void ptxas_option(void) { input.options[input.option_count++] = "-Xptxas=-O1"; }

static void swap_options(void)
{
    input.options[0] = "-DB=2";
    input.options[1] = "-DA=1";
}

static void add_header(void)
{
    input.header_names[0] = "virtual.h";
    input.header_texts[0] = "int v;";
    input.header_count = 1;
}

static void other_header(void)
{
    add_header();
    input.header_texts[0] = "int w;";
}

static void add_expression(void)
{
    input.expressions[0] = "k<int>";
    input.expression_count = 1;
}

static void edit_header(void) { write_file(in_root("second/a.h"), "#define A 2\n"); }
static void longer_header(void) { write_file(in_root("second/a.h"), "#define A 1 /* more */\n"); }
static void shadow_header(void) { write_file(in_root("first/a.h"), "#define A 3\n"); }
static void other_compiler(void) { write_file(compiler, "#!/bin/sh\n# another\n"); }
static void other_prelude(void) { write_file(in_root("prelude/hdrt_device.h"), "int q;"); }
static void more_prelude(void) { write_file(in_root("prelude/more.h"), "int q;"); }

static void other_directory(void)
{
    mkdir(in_root("elsewhere"), 0700);
    ck_assert_int_eq(chdir(in_root("elsewhere")), 0);
}

static void header_put_back(void)
{
    write_file(in_root("second/a.h"), "#define A 1\n");
    unlink(in_root("first/a.h"));
    write_file(compiler, "#!/bin/sh\n");
    write_file(in_root("prelude/hdrt_device.h"), "int p;");
    unlink(in_root("prelude/more.h"));
    ck_assert_int_eq(chdir("/"), 0);
}

static const struct {
    const char *what;
    void (*change)(void);
    hdrt_cache_reason reason;
} changes[] = {
    {"source", change_source, HDRT_CACHE_SOURCE_CHANGED},
    {"name", change_name, HDRT_CACHE_NEW},
    {"target", change_arch, HDRT_CACHE_OPTION_CHANGED},
    {"the target's letter", change_suffix, HDRT_CACHE_OPTION_CHANGED},
    {"whether the target may be lowered", change_lowering, HDRT_CACHE_OPTION_CHANGED},
    {"an option's value", change_option, HDRT_CACHE_OPTION_CHANGED},
    {"an option more", add_option, HDRT_CACHE_OPTION_CHANGED},
    {"the options' order", swap_options, HDRT_CACHE_OPTION_CHANGED},
    {"split compilation", split_compile, HDRT_CACHE_OPTION_CHANGED},
    {"an option of ptxas", ptxas_option, HDRT_CACHE_OPTION_CHANGED},
    {"an in-memory header", add_header, HDRT_CACHE_OPTION_CHANGED},
    {"an in-memory header's text", other_header, HDRT_CACHE_OPTION_CHANGED},
    {"a name expression", add_expression, HDRT_CACHE_OPTION_CHANGED},
    {"a header's content", edit_header, HDRT_CACHE_FILE_CHANGED},
    {"a header's size", longer_header, HDRT_CACHE_FILE_CHANGED},
    {"a header that is found first", shadow_header, HDRT_CACHE_FILE_APPEARED},
    {"the compiler", other_compiler, HDRT_CACHE_COMPILER_CHANGED},
    {"the device prelude", other_prelude, HDRT_CACHE_COMPILER_CHANGED},
    {"a header more in the prelude", more_prelude, HDRT_CACHE_COMPILER_CHANGED},
    {"the folder, with includes", other_directory, HDRT_CACHE_OPTION_CHANGED},
};

/* Each part of a key: changed, it is a compile with the right reason; changed back, the old code is found again. */
START_TEST(changed_and_changed_back)
{
    bool from_cache;
    hdrt_cache_reason reason;
    ck_assert_int_eq(chdir("/"), 0);
    plain_input();
    hdrt__digest before = obtain(&from_cache, &reason);
    ck_assert(!from_cache);
    ck_assert_int_eq(reason, HDRT_CACHE_NEW);
    obtain(&from_cache, NULL);
    ck_assert(from_cache);
    ck_assert_uint_eq(compiles(), 1);
    changes[_i].change();
    obtain(&from_cache, &reason);
    ck_assert_msg(!from_cache, "%s", changes[_i].what);
    ck_assert_msg(reason == changes[_i].reason, "%s: %s", changes[_i].what, hdrt_cache_reason_name(reason));
    ck_assert_uint_eq(compiles(), 2);
    obtain(&from_cache, NULL);
    ck_assert_msg(from_cache, "%s again", changes[_i].what);
    plain_input();
    header_put_back();
    hdrt__digest after = obtain(&from_cache, NULL);
    ck_assert_msg(from_cache, "%s undone", changes[_i].what);
    ck_assert(hdrt__digest_equal(&before, &after));
    ck_assert_uint_eq(compiles(), 2);
}
END_TEST

static void touch_header(void)
{
    const struct timespec past[2] = {{1000, 0}, {1000, 0}};
    ck_assert_int_eq(utimensat(AT_FDCWD, in_root("second/a.h"), past, 0), 0);
}

static void replace_header(void)
{
    write_file(in_root("second/b.h"), "#define A 1\n");
    ck_assert_int_eq(rename(in_root("second/b.h"), in_root("second/a.h")), 0);
}

static void touch_compiler(void)
{
    const struct timespec past[2] = {{1000, 0}, {1000, 0}};
    ck_assert_int_eq(utimensat(AT_FDCWD, compiler, past, 0), 0);
}

static void set_environment(void)
{
    setenv("NV_NVVM_VERSION", "nvvm-latest", 1);
    setenv("NVRTC_APPEND_FLAGS", "-G", 1);
    setenv("CPATH", root, 1);
}

static void unrelated_file(void) { write_file(in_root("first/other.h"), "int o;"); }
static void move_away(void) { ck_assert_int_eq(chdir("/tmp"), 0); }

static const struct {
    const char *what;
    void (*change)(void);
} same[] = {
    {"a header touched", touch_header},       {"a header replaced by its like", replace_header},
    {"the compiler touched", touch_compiler}, {"the environment", set_environment},
    {"another file in a folder", unrelated_file},
};

START_TEST(what_changes_nothing)
{
    bool from_cache;
    plain_input();
    hdrt__digest before = obtain(&from_cache, NULL);
    same[_i].change();
    hdrt__digest after = obtain(&from_cache, NULL);
    ck_assert_msg(from_cache, "%s", same[_i].what);
    ck_assert(hdrt__digest_equal(&before, &after));
    ck_assert_uint_eq(compiles(), 1);
}
END_TEST

/* Makes an undamaged entry of another format version: as a later libhdrt would have written it. */
static void set_format(const char *path, unsigned char version)
{
    enum { VERSION_AT = 8 };
    static unsigned char bytes[65536];
    FILE *file = fopen(path, "r+b");
    ck_assert_ptr_nonnull(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    ck_assert_uint_gt(size, HDRT__CHECKSUM_SIZE + VERSION_AT);
    bytes[VERSION_AT] = version;
    hdrt__checksum_of(bytes, size - HDRT__CHECKSUM_SIZE, bytes + size - HDRT__CHECKSUM_SIZE);
    rewind(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

/* Images and manifests of another version: a compile with that reason; with the version back, the old code. */
START_TEST(entries_of_another_version)
{
    bool from_cache;
    hdrt_cache_reason reason;
    char command[600], path[300];
    plain_input();
    hdrt__digest before = obtain(&from_cache, NULL);
    snprintf(command, sizeof command, "find %s -name '*.%c'", cache, _i ? 'm' : 'i');
    FILE *output = popen(command, "r");
    ck_assert_int_eq(fscanf(output, "%299s", path), 1);
    pclose(output);
    set_format(path, HDRT__CONTAINER_VERSION + 1);
    snprintf(command, sizeof command, "cp -a %s %s", cache, in_root("other-version"));
    ck_assert_int_eq(system(command), 0);
    obtain(&from_cache, &reason);
    ck_assert(!from_cache);
    ck_assert_msg(reason == HDRT_CACHE_OTHER_VERSION, "%s", hdrt_cache_reason_name(reason));
    ck_assert_uint_eq(compiles(), 2);
    snprintf(command, sizeof command, "rm -rf %s; mv %s %s", cache, in_root("other-version"), cache);
    ck_assert_int_eq(system(command), 0);
    set_format(path, HDRT__CONTAINER_VERSION);
    hdrt__digest after = obtain(&from_cache, NULL);
    ck_assert(from_cache);
    ck_assert(hdrt__digest_equal(&before, &after));
    ck_assert_uint_eq(compiles(), 2);
}
END_TEST

/* Without includes and debug information the folder does not matter. */
START_TEST(the_folder_of_what_includes_nothing)
{
    bool from_cache;
    plain_input();
    snprintf(input.source, sizeof input.source, "//count %s\n", in_root("count"));
    ck_assert_int_eq(chdir("/"), 0);
    obtain(&from_cache, NULL);
    move_away();
    obtain(&from_cache, NULL);
    ck_assert(from_cache);
    add_option(); /* -lineinfo */
    obtain(&from_cache, NULL);
    ck_assert(!from_cache);
    ck_assert_int_eq(chdir("/"), 0);
    obtain(&from_cache, NULL);
    ck_assert(!from_cache);
    move_away();
    obtain(&from_cache, NULL);
    ck_assert(from_cache);
}
END_TEST

static const char *const timed[] = {"__TIME__", "__DATE__", "__TIMESTAMP__", "CAT(__TI, ME__)", "__TI\\\nME__"};

START_TEST(what_tells_the_time_is_never_stored)
{
    bool from_cache;
    plain_input();
    strcat(input.source, timed[_i]);
    for (int i = 0; i < 2; i++) {
        obtain(&from_cache, NULL);
        ck_assert(!from_cache);
    }
    plain_input();
    write_file(in_root("second/a.h"), timed[_i]);
    obtain(&from_cache, NULL);
    obtain(&from_cache, NULL);
    ck_assert(!from_cache);
    ck_assert_uint_eq(compiles(), 4);
}
END_TEST

/* ---- processes -------------------------------------------------------------------------------------------------- */

START_TEST(a_cold_start_of_many_processes_is_one_compile)
{
    enum { PROCESSES = 16 };
    pid_t children[PROCESSES];
    int gate[2];
    char byte;
    plain_input();
    snprintf(input.source, sizeof input.source, "//count %s\n//delay 300\n", in_root("count"));
    ck_assert_int_eq(pipe(gate), 0);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            bool from_cache;
            close(gate[1]);
            if (read(gate[0], &byte, 1) != 0)
                child_exit(1);
            obtain(&from_cache, NULL);
            child_exit(from_cache ? 10 : 11);
        }
    }
    close(gate[0]);
    close(gate[1]);
    unsigned compiled = 0;
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        waitpid(children[i], &status, 0);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) >= 10);
        compiled += WEXITSTATUS(status) == 11;
    }
    ck_assert_uint_eq(compiled, 1);
    ck_assert_uint_eq(compiles(), 1);
}
END_TEST

/* Who holds the lock is killed, or does not go on: the others compile. */
START_TEST(holders_of_a_lock_block_nobody)
{
    const hdrt__store_config store_config = {.directory = cache};
    hdrt__digest key = hdrt__digest_of("k", 1);
    hdrt__store *store;
    hdrt__flight flight, other;
    int ready[2];
    char byte;
    ck_assert_int_eq(hdrt__store_open(&store_config, &store), HDRT_OK);
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        if (hdrt__flight_begin(store, &key, 0, NULL, NULL, &flight) != HDRT__FLIGHT_LEADS || write(ready[1], "x", 1) != 1)
            child_exit(1);
        for (;;)
            pause();
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    uint64_t began = hdrt__now_ns();
    ck_assert_int_eq(hdrt__flight_begin(store, &key, began + 50000000, NULL, NULL, &other), HDRT__FLIGHT_LATE);
    ck_assert(hdrt__now_ns() - began < UINT64_C(2000000000));
    hdrt__flight_end(&other);
    hdrt__digest another = hdrt__digest_of("l", 1); /* another key is nobody's */
    ck_assert_int_eq(hdrt__flight_begin(store, &another, 0, NULL, NULL, &other), HDRT__FLIGHT_LEADS);
    hdrt__flight_end(&other);
    kill(child, SIGKILL);
    ck_assert_int_eq(hdrt__flight_begin(store, &key, hdrt__now_ns() + UINT64_C(5000000000), NULL, NULL, &other),
                     other.file >= 0 ? HDRT__FLIGHT_LEADS : HDRT__FLIGHT_LANDED);
    hdrt__flight_end(&other);
    waitpid(child, NULL, 0);
    ck_assert_int_eq(hdrt__flight_begin(store, &key, 0, NULL, NULL, &other), HDRT__FLIGHT_LEADS);
    ck_assert_int_ge(other.file, 0);
    hdrt__flight_end(&other);
    hdrt__store_close(store);
    close(ready[0]);
    close(ready[1]);
}
END_TEST

/* ---- folders ---------------------------------------------------------------------------------------------------- */

START_TEST(further_folders_are_only_read)
{
    bool from_cache;
    char command[300];
    const char *shipped = strdup(in_root("shipped"));
    plain_input();
    obtain(&from_cache, NULL);
    ck_assert_int_eq(rename(cache, shipped), 0);
    snprintf(command, sizeof command, "chmod -R a-w %s && find %s | sort | xargs stat -c '%%n %%Y %%s' > %s", shipped,
             shipped, in_root("before"));
    ck_assert_int_eq(system(command), 0);
    config.cache_read_only = &shipped;
    config.cache_read_only_count = 1;
    obtain(&from_cache, NULL);
    ck_assert(from_cache);
    ck_assert_uint_eq(compiles(), 1);
    /* What it does not have goes into the own folder. */
    change_option();
    obtain(&from_cache, NULL);
    ck_assert(!from_cache);
    obtain(&from_cache, NULL);
    ck_assert(from_cache);
    snprintf(command, sizeof command, "find %s | sort | xargs stat -c '%%n %%Y %%s' | cmp - %s", shipped,
             in_root("before"));
    ck_assert_int_eq(system(command), 0);
    /* As an environment variable, with one that is not there. */
    config.cache_read_only = NULL;
    config.cache_read_only_count = 0;
    snprintf(command, sizeof command, "/nowhere/at/all:%s", shipped);
    setenv("HDRT_CACHE_READ_ONLY", command, 1);
    plain_input();
    obtain(&from_cache, NULL);
    ck_assert(from_cache);
    /* One that others may write is not used. */
    snprintf(command, sizeof command, "rm -rf %s; chmod 777 %s", cache, shipped);
    ck_assert_int_eq(system(command), 0);
    obtain(&from_cache, NULL);
    ck_assert(!from_cache);
    free((char *)shipped);
}
END_TEST

START_TEST(the_folder_is_kept_small)
{
    bool from_cache;
    hdrt_cache_summary summary;
    config.cache_limit_bytes = 100000; /* some twenty kernels */
    plain_input();
    for (int i = 0; i < 60; i++) {
        snprintf(input.source, sizeof input.source, "//count %s\n// %d\n", in_root("count"), i);
        obtain(&from_cache, NULL);
        ck_assert(!from_cache);
        if (i == 0) {
            /* Used long ago: the first to go. */
            char command[200];
            snprintf(command, sizeof command, "find %s -name '*.i' | xargs touch -d '2 days ago'", cache);
            ck_assert_int_eq(system(command), 0);
        }
    }
    obtain(&from_cache, NULL);
    ck_assert(from_cache); /* the newest is there */
    const hdrt__store_config store_config = {.directory = cache};
    hdrt__store *store;
    ck_assert_int_eq(hdrt__store_open(&store_config, &store), HDRT_OK);
    ck_assert_int_eq(hdrt__sweep_trim(hdrt__store_root(store, 0, false), UINT64_MAX - 1, 0, &summary), HDRT_OK);
    ck_assert_msg(summary.bytes <= 110000, "%llu bytes", (unsigned long long)summary.bytes);
    ck_assert_int_gt(summary.files, 10);
    ck_assert_int_eq(hdrt__sweep_trim(hdrt__store_root(store, 0, false), 20000, 0, &summary), HDRT_OK);
    ck_assert_int_gt(summary.removed_files, 0);
    ck_assert_int_eq(hdrt__sweep_trim(hdrt__store_root(store, 0, false), UINT64_MAX - 1, 0, &summary), HDRT_OK);
    ck_assert_msg(summary.bytes <= 20000, "%llu bytes", (unsigned long long)summary.bytes);
    ck_assert_int_eq(hdrt__sweep_clear(hdrt__store_root(store, 0, false), &summary), HDRT_OK);
    ck_assert_int_eq(hdrt__sweep_trim(hdrt__store_root(store, 0, false), 20000, 0, &summary), HDRT_OK);
    ck_assert_int_eq(summary.files, 0);
    hdrt__store_close(store);
    obtain(&from_cache, NULL);
    ck_assert(!from_cache);
}
END_TEST

static const struct {
    const char *text;
    uint64_t bytes;
} sizes[] = {
    {"512", 512}, {"1K", 1024}, {"512M", UINT64_C(512) << 20}, {"2G", UINT64_C(2) << 30}, {"1T", UINT64_C(1) << 40},
    {"3GiB", UINT64_C(3) << 30}, {"", 0}, {"G", 0}, {"1X", 0}, {"1Gx", 0}, {"-1", 0}, {"99999999999999999999", 0},
    {"99999999999T", 0},
};

START_TEST(sizes_are_read)
{
    for (int i = 0; i < COUNT(sizes); i++)
        ck_assert_msg(hdrt__size_parse(sizes[i].text) == sizes[i].bytes, "%s", sizes[i].text);
}
END_TEST

/* Code that a driver refused: set aside, compiled again, found again after that. */
START_TEST(refused_code_is_compiled_again)
{
    hdrt__jit *jit;
    hdrt__code *code;
    bool from_cache;
    hdrt_source source = HDRT_SOURCE_INIT;
    const hdrt__target target = {.soft = true};
    plain_input();
    source.text = input.source;
    source.name = "k.cu";
    for (int shipped = 0; shipped < 2; shipped++) {
        const char *folder = in_root("shipped");
        jit = make_jit();
        ck_assert_int_eq(hdrt__jit_compile(jit, &source, NULL, &target, &code, &from_cache), HDRT_OK);
        hdrt__code_drop(code);
        hdrt__jit_destroy(jit);
        if (shipped) {
            ck_assert_int_eq(rename(cache, folder), 0);
            config.cache_read_only = &folder;
            config.cache_read_only_count = 1;
        }
        unsigned before = compiles();
        jit = make_jit();
        ck_assert_int_eq(hdrt__jit_compile(jit, &source, NULL, &target, &code, &from_cache), HDRT_OK);
        ck_assert(from_cache);
        hdrt__jit_reject(jit, code);
        hdrt__code_drop(code);
        ck_assert_int_eq(hdrt__jit_compile(jit, &source, NULL, &target, &code, &from_cache), HDRT_OK);
        ck_assert(!from_cache);
        ck_assert_int_eq(code->reason, HDRT_CACHE_QUARANTINED);
        hdrt__code_drop(code);
        ck_assert_int_eq(hdrt__jit_compile(jit, &source, NULL, &target, &code, &from_cache), HDRT_OK);
        ck_assert(from_cache);
        hdrt__code_drop(code);
        ck_assert_uint_eq(compiles(), before + 1);
        hdrt__jit_destroy(jit);
    }
}
END_TEST

/* Any damage to any entry of a key: a compile with the reason, and the entry is whole again. */
START_TEST(damage_is_told_and_mended)
{
    static const struct {
        const char *command;
        hdrt_cache_reason reason;
    } damages[] = {
        {"printf X | dd of=$f bs=1 seek=150 conv=notrunc 2>/dev/null", HDRT_CACHE_DAMAGED},
        {"truncate -s -1 $f", HDRT_CACHE_TRUNCATED},
        {"truncate -s 20 $f", HDRT_CACHE_TRUNCATED},
        {"truncate -s 0 $f", HDRT_CACHE_TRUNCATED},
        {"printf X >> $f", HDRT_CACHE_EXTENDED},
        {"chmod 666 $f", HDRT_CACHE_REFUSED},
        {"ln $f $f.more", HDRT_CACHE_REFUSED},
        {"mv $f $f.x; ln -s $f.x $f", HDRT_CACHE_REFUSED},
        {"rm $f; mkfifo $f", HDRT_CACHE_REFUSED},
        {"truncate -s 1G $f", HDRT_CACHE_REFUSED},
    };
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < COUNT(damages); i++) {
            char command[400];
            bool from_cache;
            hdrt_cache_reason reason;
            plain_input();
            snprintf(input.source, sizeof input.source, "//count %s\n// %d %d\n", in_root("count"), kind, i);
            obtain(&from_cache, NULL);
            snprintf(command, sizeof command, "for f in $(find %s -name '*.%c'); do %s; done", cache, kind ? 'm' : 'i',
                     damages[i].command);
            ck_assert_int_eq(system(command), 0);
            obtain(&from_cache, &reason);
            ck_assert_msg(!from_cache && reason == damages[i].reason, "%s: %s", damages[i].command,
                          hdrt_cache_reason_name(reason));
            obtain(&from_cache, NULL);
            ck_assert_msg(from_cache, "%s", damages[i].command);
            snprintf(command, sizeof command, "rm -rf %s", cache);
            ck_assert_int_eq(system(command), 0);
        }
}
END_TEST

START_TEST(counters_are_kept)
{
    bool from_cache;
    uint64_t values[HDRT__STAT_COUNT];
    const hdrt__store_config store_config = {.directory = cache};
    hdrt__store *store;
    plain_input();
    obtain(&from_cache, NULL);
    obtain(&from_cache, NULL);
    change_option();
    obtain(&from_cache, NULL);
    ck_assert_int_eq(hdrt__store_open(&store_config, &store), HDRT_OK);
    hdrt__stats_read(hdrt__store_root(store, 0, false), values);
    ck_assert_uint_eq(values[HDRT__STAT_COMPILES], 2);
    ck_assert_uint_eq(values[HDRT__STAT_STORED], 2);
    ck_assert_uint_eq(values[HDRT__STAT_DISK_HITS], 1);
    ck_assert_uint_eq(values[HDRT__STAT_MISSES + HDRT_CACHE_NEW], 1);
    ck_assert_uint_eq(values[HDRT__STAT_MISSES + HDRT_CACHE_OPTION_CHANGED], 1);
    hdrt__stats_merge(hdrt__store_root(store, 0, false), NULL);
    hdrt__stats_read(hdrt__store_root(store, 0, false), values);
    ck_assert_uint_eq(values[HDRT__STAT_COMPILES], 0);
    hdrt__store_close(store);
}
END_TEST

static Suite *suite(void)
{
    Suite *made = suite_create("cache");
    TCase *tests = tcase_create("cache");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, changed_and_changed_back, 0, COUNT(changes));
    tcase_add_loop_test(tests, what_changes_nothing, 0, COUNT(same));
    tcase_add_loop_test(tests, entries_of_another_version, 0, 2);
    tcase_add_test(tests, the_folder_of_what_includes_nothing);
    tcase_add_loop_test(tests, what_tells_the_time_is_never_stored, 0, COUNT(timed));
    tcase_add_test(tests, a_cold_start_of_many_processes_is_one_compile);
    tcase_add_test(tests, holders_of_a_lock_block_nobody);
    tcase_add_test(tests, further_folders_are_only_read);
    tcase_add_test(tests, the_folder_is_kept_small);
    tcase_add_test(tests, sizes_are_read);
    tcase_add_test(tests, refused_code_is_compiled_again);
    tcase_add_test(tests, damage_is_told_and_mended);
    tcase_add_test(tests, counters_are_kept);
    suite_add_tcase(made, tests);
    return made;
}

int main(void)
{
    SRunner *runner = srunner_create(suite());
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
