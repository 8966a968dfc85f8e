/* SPDX-License-Identifier: MIT */
/*
 * lib/driver against fake drivers (support/fake_cuda.c), and with every call of it that can fail made to fail. A
 * driver is loaded once per file, so each case loads a copy of the fake of its own.
 */
#include <hdrt.h>

#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include "child.h"
#include "driver/call.h"
#include "driver/companions.h"
#include "driver/error.h"
#include "driver/fork.h"
#include "driver/loader.h"
#include "driver/scope.h"
#include "driver/thread.h"
#include "failing_malloc.h"

/* ---- calls of the C library that are made to fail or lie (linked with --wrap) ---- */

static int atfork_calls_left = -1; /* -1: never fail */
static bool create_fails, realpath_fails;
static const char *dladdr_says; /* NULL: the truth; "": fail */

int __real_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *a, void *(*function)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *a, void *(*function)(void *), void *argument);
char *__real_realpath(const char *path, char *resolved);
char *__wrap_realpath(const char *path, char *resolved);
int __real_dladdr(const void *address, Dl_info *info);
int __wrap_dladdr(const void *address, Dl_info *info);

int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    if (atfork_calls_left == 0)
        return ENOMEM;
    if (atfork_calls_left > 0)
        atfork_calls_left--;
    return __real_pthread_atfork(prepare, parent, child);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *a, void *(*function)(void *), void *argument)
{
    return create_fails ? EAGAIN : __real_pthread_create(thread, a, function, argument);
}

char *__wrap_realpath(const char *path, char *resolved)
{
    if (realpath_fails) {
        errno = ENOMEM;
        return NULL;
    }
    return __real_realpath(path, resolved);
}

int __wrap_dladdr(const void *address, Dl_info *info)
{
    if (!dladdr_says)
        return __real_dladdr(address, info);
    info->dli_fname = dladdr_says;
    return *dladdr_says != 0;
}

/* ---- a folder for each test ---- */

static char folder[64];

static void make_folder(void)
{
    static const char *const behaviours[] = {"FAKE_VERSION", "FAKE_DEVICES", "FAKE_FAILS", "FAKE_LACKS", "FAKE_BLIND",
                                             "FAKE_ALL", "CUDA_VISIBLE_DEVICES", "HDRT_LIBEXEC", "HDRT_DRIVER"};
    for (size_t i = 0; i < sizeof behaviours / sizeof *behaviours; i++)
        unsetenv(behaviours[i]);
    create_fails = realpath_fails = false;
    dladdr_says = NULL;
    snprintf(folder, sizeof folder, "/tmp/hdrt-test-driver-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static void copy(const char *from, const char *to)
{
    char block[1 << 16];
    ssize_t got;
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    ck_assert_msg(in >= 0 && out >= 0, "cannot copy %s to %s", from, to);
    while ((got = read(in, block, sizeof block)) > 0)
        ck_assert_int_eq(write(out, block, (size_t)got), got);
    close(in);
    close(out);
}

/* A fresh copy of a fake; the path is good until the next but 7. */
static const char *fresh(const char *fake)
{
    static char paths[8][128];
    static int number;
    const char *build = getenv("abs_top_builddir");
    char from[512], *path = paths[number % 8];
    snprintf(from, sizeof from, "%s/tests/unit/support/.libs/%s.so", build ? build : ".", fake);
    snprintf(path, sizeof paths[0], "%s/%s-%d.so", folder, fake, number++);
    copy(from, path);
    return path;
}

static void assert_says(const char *words)
{
    ck_assert_msg(strstr(hdrt_last_error(), words) != NULL, "'%s' is not in: %s", words, hdrt_last_error());
}

/* ---- loading ---- */

#define COUNT(...) +1
enum { ENTRIES = 0 HDCU_SYMBOL_LIST(COUNT) };

static const struct {
    const char *name, *symbol, *need;
} list[] = {
#define ENTRY(name, symbol, version, need, parameters) {#name, symbol, #need},
    HDCU_SYMBOL_LIST(ENTRY)
#undef ENTRY
};

START_TEST(a_driver_is_loaded)
{
    const char *path = fresh("fake_cuda");
    hdrt__driver *driver;
    setenv("FAKE_VERSION", "12040", 1);
    setenv("FAKE_DEVICES", "3", 1);
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_CUDA, path, &driver), HDRT_OK);
    ck_assert_int_eq(driver->kind, HDRT_DRIVER_CUDA);
    ck_assert_int_eq(driver->version, 12040);
    ck_assert_int_eq(driver->device_count, 3);
    ck_assert_str_eq(driver->path, path);
    for (size_t i = 0; i < ENTRIES; i++) {
        void *function = hdrt__driver_symbol(driver, list[i].symbol);
        ck_assert_ptr_eq(function, dlsym(driver->library, list[i].symbol));
        ck_assert_ptr_nonnull(function);
    }
    ck_assert_ptr_null(hdrt__driver_symbol(driver, "cuNoSuchThing"));
}
END_TEST

START_TEST(a_driver_is_loaded_once)
{
    const char *path = fresh("fake_cuda");
    char link[128];
    hdrt__driver *first, *second;
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_CUDA, path, &first), HDRT_OK);
    setenv("FAKE_FAILS", "cuInit=999", 1); /* is not called again */
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_CUDA, path, &second), HDRT_OK);
    ck_assert_ptr_eq(first, second);
    snprintf(link, sizeof link, "%s/link.so", folder);
    ck_assert_int_eq(symlink(path, link), 0);
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_CUDA, link, &second), HDRT_OK);
    ck_assert_ptr_eq(first, second);
}
END_TEST

static void *load_on_thread(void *path)
{
    hdrt__driver *driver;
    return hdrt__driver_load(HDRT_DRIVER_CUDA, path, &driver) == HDRT_OK ? driver : NULL;
}

START_TEST(threads_get_the_same_driver)
{
    char path[128];
    pthread_t threads[8];
    void *drivers[8];
    snprintf(path, sizeof path, "%s", fresh("fake_cuda"));
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, load_on_thread, path), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], &drivers[i]);
    for (int i = 0; i < 8; i++) {
        ck_assert_ptr_nonnull(drivers[i]);
        ck_assert_ptr_eq(drivers[i], drivers[0]);
    }
}
END_TEST

static const struct {
    const char *fails, *version, *devices, *visible;
    hdrt_status status;
    const char *says[2];
} failures[] = {
    {"cuDriverGetVersion=34", NULL, NULL, NULL, HDRT_ERROR_DRIVER_STUB, {"stub", "LD_LIBRARY_PATH"}},
    {"cuInit=34", NULL, NULL, NULL, HDRT_ERROR_DRIVER_STUB, {"stub", "linking"}},
    {NULL, "11020", NULL, NULL, HDRT_ERROR_DRIVER_TOO_OLD, {"11.2", "11.4"}},
    {NULL, "0", NULL, NULL, HDRT_ERROR_DRIVER_TOO_OLD, {"0.0", "11.4"}},
    {"cuInit=36", NULL, NULL, NULL, HDRT_ERROR_DRIVER_TOO_OLD, {"CALL_REQUIRES_NEWER_DRIVER (36)", "cuInit"}},
    {"cuDriverGetVersion=999", NULL, NULL, NULL, HDRT_ERROR_DRIVER, {"version", "CUDA_ERROR_UNKNOWN (999)"}},
    {"cuInit=100", NULL, NULL, NULL, HDRT_ERROR_NO_DEVICE, {"finds no device", "/dev/nvidia"}},
    {"cuInit=100", NULL, NULL, "", HDRT_ERROR_NO_DEVICE, {"CUDA_VISIBLE_DEVICES is ''", "hides"}},
    {"cuInit=100", NULL, NULL, "7", HDRT_ERROR_NO_DEVICE, {"CUDA_VISIBLE_DEVICES is '7'", "unset it"}},
    {NULL, NULL, "0", "9", HDRT_ERROR_NO_DEVICE, {"CUDA_VISIBLE_DEVICES is '9'", "hides"}},
    {NULL, NULL, "0", NULL, HDRT_ERROR_NO_DEVICE, {"finds no device", "GPU"}},
    {NULL, NULL, "-4", NULL, HDRT_ERROR_NO_DEVICE, {"finds no device", "GPU"}},
    {"cuDeviceGetCount=100", NULL, NULL, NULL, HDRT_ERROR_NO_DEVICE, {"finds no device", "GPU"}},
    {"cuDeviceGetCount=999", NULL, NULL, NULL, HDRT_ERROR_DRIVER, {"counting the devices", "(999)"}},
    {"cuInit=803", NULL, NULL, NULL, HDRT_ERROR_DRIVER, {"SYSTEM_DRIVER_MISMATCH (803)", "reboot"}},
    {"cuInit=804", NULL, NULL, NULL, HDRT_ERROR_DRIVER, {"COMPAT_NOT_SUPPORTED_ON_DEVICE (804)", "cuda-compat"}},
    {"cuInit=802", NULL, NULL, NULL, HDRT_ERROR_DRIVER, {"(802)", "fabricmanager"}},
    {"cuInit=3", NULL, NULL, NULL, HDRT_ERROR_DRIVER, {"NOT_INITIALIZED (3)", "forked"}},
    {"cuInit=304", NULL, NULL, NULL, HDRT_ERROR_DRIVER, {"(304)", "nvidia_uvm"}},
    {"cuInit=999", NULL, NULL, NULL, HDRT_ERROR_DRIVER, {"CUDA_ERROR_UNKNOWN (999)", "kernel log"}},
    {"cuInit=46", NULL, NULL, NULL, HDRT_ERROR_DRIVER, {"DEVICE_UNAVAILABLE (46)", "nvidia-smi"}},
    {"cuInit=700", NULL, NULL, NULL, HDRT_ERROR_DRIVER, {"ILLEGAL_ADDRESS (700)", "initialising"}},
    {"cuInit=12345", NULL, NULL, NULL, HDRT_ERROR_DRIVER, {"CUDA_ERROR_? (12345)", "initialising"}},
};

START_TEST(a_failure_is_told_exactly)
{
    const char *path = fresh("fake_cuda");
    hdrt__driver *driver = (hdrt__driver *)folder;
    if (failures[_i].fails)
        setenv("FAKE_FAILS", failures[_i].fails, 1);
    if (failures[_i].version)
        setenv("FAKE_VERSION", failures[_i].version, 1);
    if (failures[_i].devices)
        setenv("FAKE_DEVICES", failures[_i].devices, 1);
    if (failures[_i].visible)
        setenv("CUDA_VISIBLE_DEVICES", failures[_i].visible, 1);
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_CUDA, path, &driver), failures[_i].status);
    ck_assert_ptr_null(driver);
    assert_says(failures[_i].says[0]);
    assert_says(failures[_i].says[1]);
    /* What was wrong may be put right: nothing of the failure is kept. */
    unsetenv("FAKE_FAILS");
    unsetenv("FAKE_VERSION");
    unsetenv("FAKE_DEVICES");
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_CUDA, path, &driver), HDRT_OK);
}
END_TEST

START_TEST(a_missing_library_is_told)
{
    char path[128];
    hdrt__driver *driver;
    snprintf(path, sizeof path, "%s/nothing.so", folder);
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_CUDA, path, &driver), HDRT_ERROR_NO_DRIVER);
    assert_says("nothing.so");
    assert_says("No such file");
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_CUDA, "libm.so.6", &driver), HDRT_ERROR_NO_DRIVER);
    assert_says("is not a CUDA driver: it lacks cuDriverGetVersion");
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_NONE, NULL, &driver), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt__driver_load((hdrt_driver_kind)99, NULL, &driver), HDRT_ERROR_INVALID_ARGUMENT);
    if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) { /* else this machine has one */
        ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_CUDA, NULL, &driver), HDRT_ERROR_NO_DRIVER);
        assert_says("libcuda.so.1 (libcuda.so.1: cannot open");
        assert_says("/usr/lib/wsl/lib/libcuda.so.1 (");
        assert_says("HDRT_DRIVER=soft");
    }
}
END_TEST

START_TEST(each_entry_may_be_absent)
{
    for (size_t i = 0; i < ENTRIES; i++) {
        hdrt__driver *driver;
        const char *path = fresh("fake_lookup");
        bool exported = strcmp(list[i].symbol, "cuInit") == 0 || strcmp(list[i].symbol, "cuDriverGetVersion") == 0 ||
                        strcmp(list[i].symbol, "cuGetProcAddress") == 0;
        setenv("FAKE_LACKS", list[i].symbol, 1);
        hdrt_status status = hdrt__driver_load(HDRT_DRIVER_CUDA, path, &driver);
        unlink(path);
        if (exported) {
            ck_assert_int_eq(status, HDRT_OK); /* found without cuGetProcAddress */
        } else if (strcmp(list[i].need, "OPTIONAL") == 0) {
            ck_assert_msg(status == HDRT_OK, "without %s: %s", list[i].symbol, hdrt_last_error());
            ck_assert_ptr_null(hdrt__driver_symbol(driver, list[i].symbol));
        } else {
            ck_assert_msg(status == HDRT_ERROR_NO_DRIVER, "without %s: %d", list[i].symbol, status);
            assert_says(list[i].name);
        }
    }
    hdrt__driver *driver;
    setenv("FAKE_LACKS", "cuFuncLoad", 1);
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_CUDA, fresh("fake_lookup"), &driver), HDRT_OK);
    hdrt__call call = HDRT__CALL(&driver->table, cuFuncLoad, NULL);
    ck_assert_uint_eq(call.result, HDCU_ERROR_NOT_SUPPORTED);
    ck_assert_str_eq(call.text, "cuFuncLoad");
}
END_TEST

START_TEST(symbols_serve_where_look_up_does_not)
{
    hdrt__driver *driver;
    setenv("FAKE_BLIND", "1", 1);
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_CUDA, fresh("fake_cuda"), &driver), HDRT_OK);
    ck_assert_ptr_nonnull(hdrt__driver_symbol(driver, "cuMemAlloc_v2"));
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_CUDA, fresh("fake_lookup"), &driver), HDRT_ERROR_NO_DRIVER);
    assert_says("lacks cuGetErrorName");
}
END_TEST

START_TEST(the_soft_driver_is_loaded)
{
    hdrt__driver *driver;
    char path[128];
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_SOFT, NULL, &driver), HDRT_ERROR_COMPANION);
    snprintf(path, sizeof path, "%s/nothing.so", folder);
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_SOFT, path, &driver), HDRT_ERROR_COMPANION);
    assert_says("No such file");
    int file = open(path, O_CREAT | O_WRONLY, 0755);
    close(file);
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_SOFT, path, &driver), HDRT_ERROR_COMPANION);
    assert_says("file too short");
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_SOFT, fresh("fake_cuda"), &driver), HDRT_ERROR_COMPANION);
    assert_says("lacks hdsoft_get_proc_address");
    setenv("FAKE_LACKS", "cuDriverGetVersion", 1);
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_SOFT, fresh("fake_soft"), &driver), HDRT_ERROR_COMPANION);
    setenv("FAKE_LACKS", "cuMemAlloc_v2", 1);
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_SOFT, fresh("fake_soft"), &driver), HDRT_ERROR_COMPANION);
    assert_says("cuMemAlloc_v2");
    unsetenv("FAKE_LACKS");
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    setenv("FAKE_DEVICES", "0", 1);
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_SOFT, fresh("fake_soft"), &driver), HDRT_ERROR_NO_DEVICE);
    ck_assert_ptr_null(strstr(hdrt_last_error(), "CUDA_VISIBLE_DEVICES"));
    unsetenv("FAKE_DEVICES");
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_SOFT, fresh("fake_soft"), &driver), HDRT_OK);
    ck_assert_int_eq(driver->kind, HDRT_DRIVER_SOFT);
    ck_assert_ptr_null(hdrt__driver_symbol(driver, "cuMemAlloc"));
    ck_assert_ptr_nonnull(hdrt__driver_symbol(driver, "cuMemAlloc_v2"));
}
END_TEST

START_TEST(a_global_driver_does_not_capture_the_soft_one)
{
    hdrt__driver *driver;
    const char *path = fresh("fake_soft");
    ck_assert_ptr_nonnull(dlopen(fresh("fake_cuda"), RTLD_NOW | RTLD_GLOBAL));
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_SOFT, path, &driver), HDRT_OK);
    for (size_t i = 0; i < ENTRIES; i++) {
        Dl_info info;
        ck_assert(dladdr(hdrt__driver_symbol(driver, list[i].symbol), &info));
        ck_assert_str_eq(info.dli_fname, path);
    }
}
END_TEST

START_TEST(loading_survives_lack_of_memory)
{
    const char *path = fresh("fake_cuda");
    char missing[128];
    hdrt__driver *driver = NULL;
    hdrt_status status = HDRT_OK;
    long runs = 0, wrong = 0;
    snprintf(missing, sizeof missing, "%s/missing.so", folder);
    FAILING_MALLOC_EACH(n)
    {
        status = hdrt__driver_load(HDRT_DRIVER_CUDA, path, &driver);
        runs = n;
        wrong += status != HDRT_OK && (status != HDRT_ERROR_OUT_OF_MEMORY || driver);
    }
    ck_assert_int_eq(status, HDRT_OK);
    ck_assert_int_ge(runs, 3);
    ck_assert_int_eq(wrong, 0);
    failing_malloc_arm_from(1);
    status = hdrt__driver_load(HDRT_DRIVER_CUDA, missing, &driver);
    failing_malloc_disarm();
    ck_assert_int_eq(status, HDRT_ERROR_OUT_OF_MEMORY);
    realpath_fails = true;
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_SOFT, fresh("fake_soft"), &driver), HDRT_ERROR_COMPANION);
}
END_TEST

START_TEST(the_kind_is_chosen)
{
    hdrt_driver_kind kind;
    ck_assert_int_eq(hdrt__driver_choose(HDRT_DRIVER_DEFAULT, &kind), HDRT_OK);
    ck_assert_int_eq(kind, HDRT_DRIVER_CUDA);
    setenv("HDRT_DRIVER", "soft", 1);
    ck_assert_int_eq(hdrt__driver_choose(HDRT_DRIVER_DEFAULT, &kind), HDRT_OK);
    ck_assert_int_eq(kind, HDRT_DRIVER_SOFT);
    ck_assert_int_eq(hdrt__driver_choose(HDRT_DRIVER_CUDA, &kind), HDRT_OK);
    ck_assert_int_eq(kind, HDRT_DRIVER_CUDA);
    ck_assert_int_eq(hdrt__driver_choose(HDRT_DRIVER_NONE, &kind), HDRT_OK);
    ck_assert_int_eq(kind, HDRT_DRIVER_NONE);
    setenv("HDRT_DRIVER", "cuda", 1);
    ck_assert_int_eq(hdrt__driver_choose(HDRT_DRIVER_DEFAULT, &kind), HDRT_OK);
    ck_assert_int_eq(kind, HDRT_DRIVER_CUDA);
    setenv("HDRT_DRIVER", "opencl", 1);
    ck_assert_int_eq(hdrt__driver_choose(HDRT_DRIVER_DEFAULT, &kind), HDRT_ERROR_INVALID_ARGUMENT);
    assert_says("'opencl'");
    ck_assert_int_eq(hdrt__driver_choose((hdrt_driver_kind)42, &kind), HDRT_ERROR_INVALID_ARGUMENT);
}
END_TEST

/* ---- fork ---- */

/* Run `body` in a child and return its exit code. */
static int in_child(int (*body)(void *argument), void *argument)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        child_exit(body(argument));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

typedef struct forked_case {
    const char *cuda, *soft;
    uint64_t generation;
} forked_case;

static int use_in_child(void *argument)
{
    const forked_case *made = argument;
    hdrt__driver *driver;
    uint64_t generation;
    if (!hdrt__forked(made->generation))
        return 1;
    if (hdrt__driver_load(HDRT_DRIVER_CUDA, made->cuda, &driver) != HDRT_ERROR_FORKED || driver)
        return 2;
    if (hdrt__driver_load(HDRT_DRIVER_SOFT, made->soft, &driver) != HDRT_OK)
        return 3;
    if (hdrt__fork_watch(&generation) != HDRT_OK || hdrt__forked(generation))
        return 4;
    return 0;
}

START_TEST(a_forked_child_is_known)
{
    forked_case made = {fresh("fake_cuda"), fresh("fake_soft"), 0};
    hdrt__driver *driver;
    ck_assert_int_eq(hdrt__fork_watch(&made.generation), HDRT_OK);
    /* Even a cuInit that failed has begun something that does not survive fork. */
    setenv("FAKE_FAILS", "cuInit=999", 1);
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_CUDA, made.cuda, &driver), HDRT_ERROR_DRIVER);
    unsetenv("FAKE_FAILS");
    ck_assert_int_eq(in_child(use_in_child, &made), 0);
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_CUDA, made.cuda, &driver), HDRT_OK);
    ck_assert_int_eq(in_child(use_in_child, &made), 0);
    ck_assert(!hdrt__forked(made.generation));
}
END_TEST

static int load_without_atfork(void *path)
{
    hdrt__driver *driver;
    hdrt_status status = hdrt__driver_load(HDRT_DRIVER_SOFT, path, &driver);
    return status == HDRT_ERROR_OUT_OF_MEMORY && strstr(hdrt_last_error(), "fork handler") ? 0 : 1;
}

START_TEST(no_fork_handler_is_told)
{
    char path[128];
    snprintf(path, sizeof path, "%s", fresh("fake_soft"));
    for (atfork_calls_left = 0; atfork_calls_left < 2; atfork_calls_left++)
        ck_assert_int_eq(in_child(load_without_atfork, path), 0);
    atfork_calls_left = -1;
}
END_TEST

/* ---- errors ---- */

START_TEST(the_lost_set_is_exact)
{
    static const unsigned lost[] = {226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911};
    for (unsigned result = 0; result < 1100; result++) {
        bool expected = false;
        for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
            expected = expected || lost[i] == result;
        ck_assert_msg(hdrt__result_is_lost(result) == expected, "%u", result);
        ck_assert_int_eq(hdrt__result_status(result) == HDRT_ERROR_DEVICE_LOST, expected);
    }
}
END_TEST

START_TEST(every_code_has_a_name)
{
    static const struct {
        hdcu_result result;
        const char *name;
    } all[] = {
#define NAME(name, number) {number, "CUDA_" #name},
        HDCU_RESULT_LIST(NAME)
#undef NAME
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ck_assert_str_eq(hdrt__result_name(all[i].result), all[i].name);
        ck_assert(hdrt__result_text(all[i].result)[0] != 0);
        ck_assert(all[i].result == 0 || hdrt__result_status(all[i].result) != HDRT_OK);
    }
    ck_assert_str_eq(hdrt__result_name(4242), "CUDA_ERROR_?");
    ck_assert_int_eq(hdrt__result_status(4242), HDRT_ERROR_DRIVER);
    ck_assert_int_eq(hdrt__result_status(HDCU_ERROR_OUT_OF_MEMORY), HDRT_ERROR_OUT_OF_DEVICE_MEMORY);
    ck_assert_int_eq(hdrt__result_status(HDCU_ERROR_NOT_READY), HDRT_NOT_READY);
    ck_assert_int_eq(hdrt__result_status(HDCU_ERROR_STREAM_CAPTURE_UNSUPPORTED), HDRT_ERROR_CAPTURING);
    ck_assert_int_eq(hdrt__result_status(HDCU_ERROR_INVALID_PTX), HDRT_ERROR_INVALID_IMAGE);
    ck_assert_int_eq(hdrt__result_status(HDCU_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE), HDRT_ERROR_LAUNCH);
}
END_TEST

START_TEST(a_failed_call_has_words)
{
    hdrt__call call = {HDCU_ERROR_OUT_OF_MEMORY, "cuMemAlloc"};
    ck_assert_int_eq(hdrt__call_failed(call, "allocating %d bytes", 64), HDRT_ERROR_OUT_OF_DEVICE_MEMORY);
    ck_assert_str_eq(hdrt_last_error(), "allocating 64 bytes: cuMemAlloc failed: "
                                        "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
    call.result = HDCU_SUCCESS;
    ck_assert_int_eq(hdrt__call_failed(call, "nothing"), HDRT_OK);
    assert_says("allocating 64 bytes");
    call.result = HDCU_ERROR_UNKNOWN; /* words that cannot be formatted do not hide the call */
    ck_assert_int_eq(hdrt__call_failed(call, "%lc", (wint_t)0x7fffffff), HDRT_ERROR_DRIVER);
    assert_says(": cuMemAlloc failed: CUDA_ERROR_UNKNOWN (999)");
}
END_TEST

/* ---- scopes ---- */

static hdrt__driver *scope_driver(void)
{
    hdrt__driver *driver;
    ck_assert_int_eq(hdrt__driver_load(HDRT_DRIVER_CUDA, fresh("fake_cuda"), &driver), HDRT_OK);
    return driver;
}

/* What the fake thinks of this thread. */
static void assert_thread(hdrt__driver *driver, hdcu_context context, unsigned mode)
{
    hdcu_context current;
    unsigned was = mode;
    ck_assert_uint_eq(driver->table.cuCtxGetCurrent(&current), 0);
    ck_assert_ptr_eq(current, context);
    driver->table.cuThreadExchangeStreamCaptureMode(&was);
    ck_assert_uint_eq(was, mode);
}

START_TEST(a_scope_leaves_nothing_behind)
{
    hdrt__driver *driver = scope_driver();
    const hdrt__driver_table *table = &driver->table;
    hdcu_context theirs = (hdcu_context)16, ours = (hdcu_context)32;
    hdrt__scope scope, inner;
    table->cuCtxPushCurrent(theirs);
    assert_thread(driver, theirs, HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    ck_assert_uint_eq(hdrt__scope_enter(table, ours, &scope).result, 0);
    assert_thread(driver, ours, HDCU_STREAM_CAPTURE_MODE_RELAXED);
    ck_assert_uint_eq(hdrt__scope_enter(table, NULL, &inner).result, 0);
    assert_thread(driver, ours, HDCU_STREAM_CAPTURE_MODE_RELAXED);
    hdrt__scope_leave(table, &inner);
    assert_thread(driver, ours, HDCU_STREAM_CAPTURE_MODE_RELAXED);
    hdrt__scope_leave(table, &scope);
    assert_thread(driver, theirs, HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    ck_assert_uint_eq(hdrt__scope_relax_thread(table).result, 0);
    assert_thread(driver, theirs, HDCU_STREAM_CAPTURE_MODE_RELAXED);
}
END_TEST

START_TEST(a_scope_that_fails_changes_nothing)
{
    hdrt__driver *driver = scope_driver();
    const hdrt__driver_table *table = &driver->table;
    hdrt__scope scope;
    setenv("FAKE_FAILS", "cuCtxPushCurrent_v2=201", 1);
    hdrt__call call = hdrt__scope_enter(table, (hdcu_context)32, &scope);
    ck_assert_uint_eq(call.result, 201);
    ck_assert_str_eq(call.text, "cuCtxPushCurrent");
    assert_thread(driver, NULL, HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    setenv("FAKE_FAILS", "cuThreadExchangeStreamCaptureMode=3", 1);
    call = hdrt__scope_enter(table, (hdcu_context)32, &scope);
    ck_assert_uint_eq(call.result, 3);
    ck_assert_uint_eq(hdrt__scope_relax_thread(table).result, 3);
    unsetenv("FAKE_FAILS");
    assert_thread(driver, NULL, HDCU_STREAM_CAPTURE_MODE_GLOBAL);
}
END_TEST

static void keep_line(void *context, hdrt_log_level level, const char *line)
{
    if (level == HDRT_LOG_ERROR)
        snprintf(context, 128, "%s", line);
}

START_TEST(a_scope_that_cannot_be_left_is_logged)
{
    hdrt__driver *driver = scope_driver();
    char line[128] = "";
    hdrt__scope scope;
    hdrt_log_set(HDRT_LOG_ERROR, keep_line, line);
    ck_assert_uint_eq(hdrt__scope_enter(&driver->table, (hdcu_context)32, &scope).result, 0);
    setenv("FAKE_FAILS", "cuCtxPopCurrent_v2=4", 1);
    hdrt__scope_leave(&driver->table, &scope);
    ck_assert_ptr_nonnull(strstr(line, "context could not be restored: cuCtxPopCurrent: CUDA_ERROR_DEINITIALIZED (4)"));
    assert_thread(driver, (hdcu_context)32, HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    setenv("FAKE_FAILS", "cuThreadExchangeStreamCaptureMode=4", 1);
    scope.pushed = false;
    hdrt__scope_leave(&driver->table, &scope);
    ck_assert_ptr_nonnull(strstr(line, "capture mode could not be restored"));
    hdrt_log_set(HDRT_LOG_NONE, NULL, NULL);
}
END_TEST

/* ---- threads ---- */

static void *look_at_thread(void *mask)
{
    pthread_sigmask(SIG_SETMASK, NULL, mask);
    usleep(20000); /* until it has its name */
    char *name = calloc(1, 16);
    pthread_getname_np(pthread_self(), name, 16);
    return name;
}

START_TEST(library_threads_block_signals)
{
    sigset_t before, after, inside;
    pthread_t thread;
    void *name;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    ck_assert_int_eq(hdrt__thread_start(&thread, "hdrt-a-rather-long-name", look_at_thread, &inside), HDRT_OK);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    pthread_join(thread, &name);
    for (int number = 1; number < SIGRTMAX; number++) {
        bool unblockable = number == SIGKILL || number == SIGSTOP || (number >= 32 && number < SIGRTMIN);
        ck_assert_msg(unblockable || sigismember(&inside, number), "signal %d", number);
        ck_assert_int_eq(sigismember(&before, number), sigismember(&after, number));
    }
    ck_assert_str_eq(name, "hdrt-a-rather-l");
    free(name);
    create_fails = true;
    hdrt_status status = hdrt__thread_start(&thread, "hdrt-worker", look_at_thread, &inside);
    create_fails = false;
    ck_assert_int_eq(status, HDRT_ERROR_OUT_OF_MEMORY);
    assert_says("cannot start the thread 'hdrt-worker'");
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    ck_assert_int_eq(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
}
END_TEST

/* ---- companions ---- */

/* Make folder/path and the folders on the way to it. */
static void put(const char *path, int mode)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s/%s", folder, path);
    for (char *slash = strchr(whole + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        ck_assert(mkdir(whole, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    int file = open(whole, O_CREAT | O_WRONLY | O_CLOEXEC, mode);
    ck_assert_msg(file >= 0, "cannot make %s", whole);
    close(file);
}

static const char *under(const char *path)
{
    static char whole[4][512];
    static int number;
    char *text = whole[number++ % 4];
    snprintf(text, sizeof whole[0], "%s/%s", folder, path);
    return text;
}

static void find(const char *option, hdrt__companions **found)
{
    ck_assert_int_eq(hdrt__companions_find(option, found), HDRT_OK);
}

START_TEST(an_option_names_the_folder)
{
    hdrt__companions *found;
    put("flat/hdrt-cc", 0755);
    put("flat/.libs/libhdsoft.so", 0644);
    put("flat/include/hdrt_device.h", 0644);
    put("other/hdrt-cc", 0755);
    put("other/libhdrt-record.so", 0644);
    setenv("HDRT_LIBEXEC", under("other"), 1);
    find(under("flat"), &found);
    ck_assert_str_eq(found->rule, "option");
    ck_assert_str_eq(found->worker, under("flat/hdrt-cc"));
    ck_assert_str_eq(found->soft, under("flat/.libs/libhdsoft.so"));
    ck_assert_str_eq(found->prelude, under("flat/include"));
    ck_assert_ptr_null(found->recorder); /* never from elsewhere */
    ck_assert_int_eq(hdrt__companion_missing(found, "libhdrt-record.so", "clang's recording"), HDRT_ERROR_COMPANION);
    assert_says(under("flat'"));
    assert_says("libhdrt-record.so is missing");
    hdrt__companions_free(found);
    find(NULL, &found);
    ck_assert_str_eq(found->rule, "HDRT_LIBEXEC");
    ck_assert_str_eq(found->worker, under("other/hdrt-cc"));
    ck_assert_str_eq(found->recorder, under("other/libhdrt-record.so"));
    hdrt__companions_free(found);
    find(under("no such folder"), &found); /* what was asked for is not replaced */
    ck_assert_ptr_null(found->rule);
    ck_assert_ptr_null(found->worker);
    hdrt__companion_missing(found, "hdrt-cc", "compiling");
    assert_says("no such folder");
    hdrt__companions_free(found);
    hdrt__companions_free(NULL);
}
END_TEST

START_TEST(only_usable_files_count)
{
    hdrt__companions *found;
    put("bad/hdrt-cc", 0644);                /* not executable */
    put("bad/libhdsoft.so/file", 0644);      /* a folder */
    put("bad/include/other.h", 0644);        /* no prelude */
    put("bad/kernels/include/hdrt_device.h", 0644);
    find(under("bad"), &found);
    ck_assert_ptr_null(found->worker);
    ck_assert_ptr_null(found->soft);
    ck_assert_str_eq(found->prelude, under("bad/kernels/include"));
    hdrt__companions_free(found);
}
END_TEST

START_TEST(the_build_tree_is_found)
{
    hdrt__companions *found;
    put("build/.libs/libhdrt.so.0.0.0", 0755);
    put("build/hdrt-cc", 0755);
    put("build/.libs/libhdsoft.so", 0755);
    put("build/.libs/libhdrt-record.so", 0755);
    put("build/kernels/include/hdrt_device.h", 0644);
    dladdr_says = under("build/.libs/libhdrt.so.0.0.0");
    find(NULL, &found);
    dladdr_says = NULL;
    ck_assert_str_eq(found->rule, "beside libhdrt");
    ck_assert_str_eq(found->worker, under("build/hdrt-cc"));
    ck_assert_str_eq(found->soft, under("build/.libs/libhdsoft.so"));
    ck_assert_str_eq(found->recorder, under("build/.libs/libhdrt-record.so"));
    ck_assert_str_eq(found->prelude, under("build/kernels/include"));
    hdrt__companions_free(found);
}
END_TEST

START_TEST(a_moved_installation_is_found)
{
    hdrt__companions *found;
    put("moved" HDRT_LIBDIR "/libhdrt.so.0.0.0", 0755);
    put("moved" HDRT_PKGLIBEXECDIR "/hdrt-cc", 0755);
    put("moved" HDRT_PKGLIBDIR "/libhdsoft.so", 0755);
    put("moved" HDRT_PKGDATADIR "/include/hdrt_device.h", 0644);
    ck_assert_int_eq(symlink(under("moved" HDRT_LIBDIR "/libhdrt.so.0.0.0"), under("libhdrt.so")), 0);
    dladdr_says = under("libhdrt.so");
    find(NULL, &found);
    ck_assert_str_eq(found->rule, "beside libhdrt");
    ck_assert_str_eq(found->worker, under("moved" HDRT_PKGLIBEXECDIR "/hdrt-cc"));
    ck_assert_str_eq(found->soft, under("moved" HDRT_PKGLIBDIR "/libhdsoft.so"));
    ck_assert_str_eq(found->prelude, under("moved" HDRT_PKGDATADIR "/include"));
    hdrt__companions_free(found);

    /* Nothing beside it, or the loader does not say where it is: the configured folders. */
    for (int i = 0; i < 2; i++) {
        dladdr_says = i ? under("flat.so") : "";
        find(NULL, &found);
        ck_assert_ptr_nonnull(strstr(found->searched, HDRT_PKGLIBEXECDIR));
        ck_assert(!found->rule || strcmp(found->rule, "configured") == 0);
        hdrt__companions_free(found);
    }
}
END_TEST

START_TEST(finding_survives_lack_of_memory)
{
    hdrt__companions *found = NULL;
    hdrt_status status = HDRT_OK;
    long runs = 0, wrong = 0;
    put("moved" HDRT_LIBDIR "/libhdrt.so.0.0.0", 0755);
    put("moved" HDRT_PKGLIBEXECDIR "/hdrt-cc", 0755);
    put("moved" HDRT_PKGDATADIR "/include/hdrt_device.h", 0644);
    dladdr_says = under("moved" HDRT_LIBDIR "/libhdrt.so.0.0.0");
    FAILING_MALLOC_EACH(n)
    {
        hdrt__companions_free(found);
        status = hdrt__companions_find(NULL, &found);
        runs = n;
        wrong += status != HDRT_OK && (status != HDRT_ERROR_OUT_OF_MEMORY || found);
    }
    ck_assert_int_eq(status, HDRT_OK);
    ck_assert_int_ge(runs, 8);
    ck_assert_int_eq(wrong, 0);
    ck_assert_ptr_nonnull(found->worker);
    hdrt__companions_free(found);
    realpath_fails = true;
    status = hdrt__companions_find(under("moved" HDRT_PKGLIBEXECDIR), &found);
    realpath_fails = false;
    ck_assert_int_eq(status, HDRT_ERROR_OUT_OF_MEMORY);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("driver");
    TCase *tests = tcase_create("driver");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, no_fork_handler_is_told); /* before anything has registered one */
    tcase_add_test(tests, a_driver_is_loaded);
    tcase_add_test(tests, a_driver_is_loaded_once);
    tcase_add_test(tests, threads_get_the_same_driver);
    tcase_add_loop_test(tests, a_failure_is_told_exactly, 0, (int)(sizeof failures / sizeof *failures));
    tcase_add_test(tests, a_missing_library_is_told);
    tcase_add_test(tests, each_entry_may_be_absent);
    tcase_add_test(tests, symbols_serve_where_look_up_does_not);
    tcase_add_test(tests, the_soft_driver_is_loaded);
    tcase_add_test(tests, a_global_driver_does_not_capture_the_soft_one);
    tcase_add_test(tests, loading_survives_lack_of_memory);
    tcase_add_test(tests, the_kind_is_chosen);
    tcase_add_test(tests, the_lost_set_is_exact);
    tcase_add_test(tests, every_code_has_a_name);
    tcase_add_test(tests, a_failed_call_has_words);
    tcase_add_test(tests, a_scope_leaves_nothing_behind);
    tcase_add_test(tests, a_scope_that_fails_changes_nothing);
    tcase_add_test(tests, a_scope_that_cannot_be_left_is_logged);
    tcase_add_test(tests, library_threads_block_signals);
    tcase_add_test(tests, an_option_names_the_folder);
    tcase_add_test(tests, only_usable_files_count);
    tcase_add_test(tests, the_build_tree_is_found);
    tcase_add_test(tests, a_moved_installation_is_found);
    tcase_add_test(tests, finding_survives_lack_of_memory);
    tcase_add_test(tests, a_forked_child_is_known);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
