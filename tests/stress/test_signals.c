/* SPDX-License-Identifier: MIT */
/*
 * The compile worker is invisible to the application: its signals, its children and its forks are its own. Each test
 * runs in Check's forked process, in a process group of its own, and compiles for real with clang.
 */
#include <check.h>
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hdrt.h>

#define SIGNALS 1000

static atomic_int signals_handled, children_signalled;
static atomic_bool stop;
static atomic_int compiled, failed;
static char failure[512];

static void handler(int number)
{
    if (number == SIGCHLD)
        atomic_fetch_add(&children_signalled, 1);
    else
        atomic_fetch_add(&signals_handled, 1);
}

static void pause_us(long us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        continue;
}

static hdrt_runtime *runtime_open(void)
{
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    hdrt_runtime *runtime;
    options.driver = HDRT_DRIVER_NONE;
    options.cache_dir = "";
    ck_assert_msg(hdrt_runtime_create(&options, &runtime) == HDRT_OK, "%s", hdrt_last_error());
    return runtime;
}

/* Compile a source that was never seen before. */
static hdrt_status compile_by(hdrt_runtime *runtime, hdrt_compiler compiler, int number)
{
    hdrt_source source = HDRT_SOURCE_INIT;
    hdrt_compile_options options = HDRT_COMPILE_OPTIONS_INIT;
    hdrt_image *image = NULL;
    hdrt_image_info info = HDRT_IMAGE_INFO_INIT;
    char text[256];
    snprintf(text, sizeof text, "extern \"C\" __global__ void k%d(int *p) { *p = %d; }", number, number);
    source.text = text;
    options.compiler = compiler;
    options.kind = HDRT_CODE_PTX;
    hdrt_status status = hdrt_image_compile(runtime, &source, &options, &image);
    if (status == HDRT_OK) {
        char entry[32];
        snprintf(entry, sizeof entry, ".entry k%d", number);
        if (hdrt_image_get_info(image, &info) != HDRT_OK || strstr(info.code, entry) == NULL)
            status = HDRT_ERROR_INTERNAL;
    }
    hdrt_image_destroy(image);
    return status;
}

static hdrt_status compile(hdrt_runtime *runtime, int number)
{
    return compile_by(runtime, HDRT_COMPILER_CLANG, number);
}

static void *compile_until_stopped(void *argument)
{
    for (int number = 1; !atomic_load(&stop); number++) {
        hdrt_status status = compile(argument, number);
        if (status == HDRT_OK) {
            atomic_fetch_add(&compiled, 1);
        } else if (atomic_fetch_add(&failed, 1) == 0) {
            snprintf(failure, sizeof failure, "%s", hdrt_last_error());
        }
    }
    return NULL;
}

static void *reap_until_stopped(void *argument)
{
    atomic_int *seen = argument;
    while (!atomic_load(&stop)) {
        if (waitpid(-1, NULL, WNOHANG) > 0)
            atomic_fetch_add(seen, 1);
        pause_us(200);
    }
    return NULL;
}

static void install(int number)
{
    struct sigaction action = {.sa_handler = handler};
    ck_assert_int_eq(sigaction(number, &action, NULL), 0);
}

/* To the process or to its group, at random moments: every one reaches our handler, and every compile is right. */
START_TEST(signals_reach_the_application)
{
    pthread_t thread;
    unsigned seed = 7;
    ck_assert(setpgid(0, 0) == 0 || getpgrp() == getpid());
    install(SIGINT);
    install(SIGTERM);
    install(SIGCHLD);
    hdrt_runtime *runtime = runtime_open();
    ck_assert_int_eq(pthread_create(&thread, NULL, compile_until_stopped, runtime), 0);
    for (int sent = 0; sent < SIGNALS; sent++) {
        pause_us(rand_r(&seed) % 6000);
        int number = sent & 1 ? SIGINT : SIGTERM;
        ck_assert_int_eq(sent & 2 ? kill(-getpgrp(), number) : kill(getpid(), number), 0);
        /* One at a time, since pending signals of one number merge. */
        for (int wait = 0; atomic_load(&signals_handled) <= sent && wait < 5000; wait++)
            pause_us(1000);
        ck_assert_int_eq(atomic_load(&signals_handled), sent + 1);
    }
    /* On a busy machine, and slowed by a sanitizer, few compiles end meanwhile. */
    for (int wait = 0; atomic_load(&compiled) <= 5 && atomic_load(&failed) == 0 && wait < 60000; wait++)
        pause_us(1000);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    ck_assert_msg(atomic_load(&failed) == 0, "%d compiles failed, first: %s", atomic_load(&failed), failure);
    ck_assert_int_gt(atomic_load(&compiled), 5);
    ck_assert_int_eq(atomic_load(&children_signalled), 0);
    hdrt_runtime_destroy(runtime);
}
END_TEST

/* An application that reaps all its children never sees the worker, nor takes it from the library. */
START_TEST(the_worker_is_no_child)
{
    pthread_t compiler, reaper;
    atomic_int seen = 0;
    install(SIGCHLD);
    hdrt_runtime *runtime = runtime_open();
    ck_assert_int_eq(pthread_create(&reaper, NULL, reap_until_stopped, &seen), 0);
    ck_assert_int_eq(pthread_create(&compiler, NULL, compile_until_stopped, runtime), 0);
    for (int wait = 0; atomic_load(&compiled) < 10 && atomic_load(&failed) == 0 && wait < 2000; wait++)
        pause_us(10000);
    atomic_store(&stop, true);
    pthread_join(compiler, NULL);
    pthread_join(reaper, NULL);
    ck_assert_msg(atomic_load(&failed) == 0, "first failure: %s", failure);
    ck_assert_int_ge(atomic_load(&compiled), 10);
    ck_assert_int_eq(atomic_load(&seen), 0);
    ck_assert_int_eq(atomic_load(&children_signalled), 0);
    hdrt_runtime_destroy(runtime);
}
END_TEST

/* A child forked in mid-compile outlives its parent: the parent's compile is right, the child has a clear status. */
START_TEST(a_forked_child_outlives_its_parent)
{
    int report[2];
    ck_assert_int_eq(pipe(report), 0);
    pid_t parent = fork();
    ck_assert_int_ge(parent, 0);
    if (parent == 0) {
        pthread_t thread;
        hdrt_runtime *runtime = runtime_open();
        if (pthread_create(&thread, NULL, compile_until_stopped, runtime) != 0)
            _exit(9);
        while (atomic_load(&compiled) + atomic_load(&failed) == 0)
            pause_us(1000);
        pause_us(10000); /* in the middle of one */
        pid_t child = fork();
        if (child == 0) {
            pause_us(500000); /* the parent is gone */
            hdrt_status status = compile(runtime, 1);
            hdrt_runtime_destroy(runtime);
            if (write(report[1], &status, sizeof status) != sizeof status)
                _exit(8);
            _exit(0);
        }
        atomic_store(&stop, true);
        pthread_join(thread, NULL);
        _exit(child < 0 || atomic_load(&failed) != 0);
    }
    int state;
    ck_assert_int_eq(waitpid(parent, &state, 0), parent);
    ck_assert_msg(WIFEXITED(state) && WEXITSTATUS(state) == 0, "the parent ended with %x", state);
    close(report[1]);
    hdrt_status status = HDRT_OK;
    ck_assert_int_eq(read(report[0], &status, sizeof status), sizeof status);
    ck_assert_int_eq(status, HDRT_ERROR_FORKED);
    /* Nothing else holds the pipe: the worker has no descriptor of ours. */
    ck_assert_int_eq(read(report[0], &status, sizeof status), 0);
    close(report[0]);
}
END_TEST

/* Locale, limits, folder, mask and handlers are the same after a compile. */
#define LIMITS 16

/* All variables, one a line; malloc'ed. */
static char *environment(void)
{
    size_t size = 1;
    for (char **entry = environ; *entry; entry++)
        size += strlen(*entry) + 1;
    char *text = calloc(1, size);
    ck_assert_ptr_nonnull(text);
    for (char **entry = environ; *entry; entry++)
        strcat(strcat(text, *entry), "\n");
    return text;
}

/* Also with NVRTC where there is one, which changes a process that it compiles in. */
START_TEST(the_process_is_left_as_it_was)
{
    char before[4096], after[4096];
    sigset_t mask_before, mask_after;
    struct sigaction action, actions[32];
    struct rlimit limits[LIMITS], limit;
    hdrt_compiler_info nvrtc = HDRT_COMPILER_INFO_INIT;
    ck_assert_ptr_nonnull(setlocale(LC_ALL, "C.UTF-8"));
    hdrt_runtime *runtime = runtime_open();
    char *variables = environment();
    for (int i = 0; i < LIMITS; i++)
        ck_assert_int_eq(getrlimit(i, &limits[i]), 0);
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    pthread_sigmask(SIG_SETMASK, NULL, &mask_before);
    for (int number = 1; number < 32; number++)
        ck_assert_int_eq(sigaction(number, NULL, &actions[number]), 0);
    ck_assert_int_eq(compile(runtime, 3), HDRT_OK);
    ck_assert_int_eq(hdrt_runtime_compiler(runtime, HDRT_COMPILER_NVRTC, &nvrtc), HDRT_OK);
    if (nvrtc.path)
        ck_assert_msg(compile_by(runtime, HDRT_COMPILER_NVRTC, 4) == HDRT_OK, "%s", hdrt_last_error());
    ck_assert_str_eq(setlocale(LC_ALL, NULL), "C.UTF-8");
    char *variables_after = environment();
    ck_assert_str_eq(variables, variables_after);
    free(variables_after);
    free(variables);
    for (int i = 0; i < LIMITS; i++) {
        ck_assert_int_eq(getrlimit(i, &limit), 0);
        ck_assert_msg(limit.rlim_cur == limits[i].rlim_cur && limit.rlim_max == limits[i].rlim_max,
                      "resource limit %d changed", i);
    }
    ck_assert_ptr_nonnull(getcwd(after, sizeof after));
    ck_assert_str_eq(before, after);
    pthread_sigmask(SIG_SETMASK, NULL, &mask_after);
    for (int number = 1; number < 32; number++) {
        ck_assert_int_eq(sigismember(&mask_before, number), sigismember(&mask_after, number));
        ck_assert_int_eq(sigaction(number, NULL, &action), 0);
        ck_assert_msg(action.sa_handler == actions[number].sa_handler, "the handler of signal %d changed", number);
    }
    hdrt_runtime_destroy(runtime);
}
END_TEST

int main(void)
{
    /* Look for clang in a process of its own: this one stays as a plain program would be. */
    pid_t probe = fork();
    if (probe == 0) {
        hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
        hdrt_compiler_info info = HDRT_COMPILER_INFO_INIT;
        hdrt_runtime *runtime;
        options.driver = HDRT_DRIVER_NONE;
        _exit(hdrt_runtime_create(&options, &runtime) != HDRT_OK ||
              hdrt_runtime_compiler(runtime, HDRT_COMPILER_CLANG, &info) != HDRT_OK || info.path == NULL);
    }
    int state;
    if (probe < 0 || waitpid(probe, &state, 0) != probe || state != 0) {
        puts("1..0 # SKIP no clang to compile with");
        return 0;
    }
    Suite *suite = suite_create("signals");
    TCase *tests = tcase_create("compiles");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, signals_reach_the_application);
    tcase_add_test(tests, the_worker_is_no_child);
    tcase_add_test(tests, a_forked_child_outlives_its_parent);
    tcase_add_test(tests, the_process_is_left_as_it_was);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
