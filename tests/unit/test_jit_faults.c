/* SPDX-License-Identifier: MIT */
/*
 * Every system call of the cache failing in turn, with every errno that a file system can plausibly give: the compile's
 * result still comes back, nothing else is touched, no descriptor is left open. Calls are taken over by the linker
 * (--wrap); those on paths and descriptors under the cache's folder count.
 */
#include <hdrt.h>

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "fake_cc.h"
#include "jit/jit.h"

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

static char root[64], cache[128], compiler[128], prelude[128], worker[512];
static hdrt__jit_config config;

/* The call that fails: the n-th under the folder, once or from there on; 0: none. */
static struct {
    bool armed, sticky;
    int error;
    unsigned at, calls;
    char name[32];
} fault;

static bool is_ours(const char *path)
{
    return strncmp(path, cache, strlen(cache)) == 0;
}

static bool fd_is_ours(int fd)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0)
        return false;
    path[size] = '\0';
    return is_ours(path);
}

static bool at_is_ours(int fd, const char *path)
{
    return *path == '/' || fd == AT_FDCWD ? is_ours(path) : fd_is_ours(fd);
}

static bool fails(const char *name)
{
    if (!fault.armed)
        return false;
    fault.calls++;
    if (fault.at == 0 || (fault.sticky ? fault.calls < fault.at : fault.calls != fault.at))
        return false;
    snprintf(fault.name, sizeof fault.name, "%s", name);
    errno = fault.error;
    return true;
}

#define FD_CALL(type, name, declaration, arguments, fd)                                                                \
    type __real_##name declaration;                                                                                    \
    type __wrap_##name declaration;                                                                                    \
    type __wrap_##name declaration                                                                                     \
    {                                                                                                                  \
        int saved = errno;                                                                                             \
        if (fault.armed && fd_is_ours(fd) && fails(#name))                                                             \
            return (type)-1;                                                                                           \
        errno = saved;                                                                                                 \
        return __real_##name arguments;                                                                                \
    }
#define PATH_CALL(type, name, declaration, arguments, fd, path)                                                        \
    type __real_##name declaration;                                                                                    \
    type __wrap_##name declaration;                                                                                    \
    type __wrap_##name declaration                                                                                     \
    {                                                                                                                  \
        int saved = errno;                                                                                             \
        if (fault.armed && at_is_ours(fd, path) && fails(#name))                                                       \
            return (type)-1;                                                                                           \
        errno = saved;                                                                                                 \
        return __real_##name arguments;                                                                                \
    }

FD_CALL(ssize_t, read, (int fd, void *bytes, size_t size), (fd, bytes, size), fd)
FD_CALL(int, fstat, (int fd, struct stat *status), (fd, status), fd)
FD_CALL(int, fstatfs, (int fd, struct statfs *status), (fd, status), fd)
FD_CALL(int, flock, (int fd, int operation), (fd, operation), fd)
FD_CALL(int, futimens, (int fd, const struct timespec times[2]), (fd, times), fd)
FD_CALL(off_t, lseek, (int fd, off_t offset, int whence), (fd, offset, whence), fd)
PATH_CALL(int, fstatat, (int fd, const char *path, struct stat *status, int flags), (fd, path, status, flags), fd, path)
PATH_CALL(int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode), fd, path)
PATH_CALL(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags), fd, path)
PATH_CALL(int, renameat, (int from, const char *path, int to, const char *name), (from, path, to, name), from, path)
PATH_CALL(int, mkdir, (const char *path, mode_t mode), (path, mode), AT_FDCWD, path)
PATH_CALL(int, access, (const char *path, int mode), (path, mode), AT_FDCWD, path)

ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
    if (fault.armed && fd_is_ours(fd) && fails("write")) {
        if (fault.error == 0) /* a short write */
            return __real_write(fd, bytes, size > 1 ? size / 2 : size);
        return -1;
    }
    return __real_write(fd, bytes, size);
}

int __real_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = (flags & O_CREAT) ? va_arg(list, mode_t) : 0;
    va_end(list);
    if (fault.armed && at_is_ours(fd, path) && fails("openat"))
        return -1;
    return __real_openat(fd, path, flags, mode);
}

/* A failing close has closed. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    int saved = errno;
    bool failing = fault.armed && fd_is_ours(fd) && fails("close");
    errno = saved;
    int result = __real_close(fd);
    if (failing)
        errno = fault.error;
    return failing ? -1 : result;
}

int __real_fcntl(int fd, int command, void *argument);
int __wrap_fcntl(int fd, int command, void *argument);
int __wrap_fcntl(int fd, int command, void *argument)
{
    if (fault.armed && fd_is_ours(fd) && fails("fcntl"))
        return -1;
    return __real_fcntl(fd, command, argument);
}

DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd)
{
    if (fault.armed && fd_is_ours(fd) && fails("fdopendir"))
        return NULL;
    return __real_fdopendir(fd);
}

struct dirent *__real_readdir(DIR *stream);
struct dirent *__wrap_readdir(DIR *stream);
struct dirent *__wrap_readdir(DIR *stream)
{
    if (fault.armed && fd_is_ours(dirfd(stream)) && fails("readdir"))
        return NULL;
    return __real_readdir(stream);
}

/* ---- the cases -------------------------------------------------------------------------------------------------- */

static void set_up(void)
{
    const char *built = getenv("HDRT_LIBEXEC");
    strcpy(root, "/tmp/hdrt-test-faults-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    strcat(strcpy(cache, root), "/cache");
    strcat(strcpy(compiler, root), "/clang");
    strcat(strcpy(prelude, root), "/prelude");
    mkdir(prelude, 0700);
    snprintf(worker, sizeof worker, "%.400s/tests/unit/support/fake_cc", built ? built : ".");
    close(open(compiler, O_WRONLY | O_CREAT, 0700));
    const struct timespec past[2] = {{1000, 0}, {1000, 0}};
    utimensat(AT_FDCWD, compiler, past, 0);
    config = (hdrt__jit_config){.worker = worker, .recorder = worker, .prelude = prelude, .cache_dir = cache,
                                .clang = compiler, .cache_limit_bytes = 60000};
}

static void clear(void)
{
    char command[192];
    snprintf(command, sizeof command, "rm -rf %s", cache);
    ck_assert_int_eq(system(command), 0);
}

static void tear_down(void)
{
    char command[192];
    snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (__real_readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* One source compiled by a jit of its own; its code must be what the stand-in makes of it. */
static bool compile_once(const char *text, hdrt__digest *out_code)
{
    hdrt__jit *jit;
    hdrt__code *code = NULL;
    bool from_cache = false;
    hdrt_source source = HDRT_SOURCE_INIT;
    const hdrt__target target = {.soft = true};
    source.text = text;
    source.name = "k.cu";
    if (hdrt__jit_create(&config, &jit) != HDRT_OK)
        return false;
    hdrt_status status = hdrt__jit_compile(jit, &source, NULL, &target, &code, &from_cache);
    bool good = status == HDRT_OK && code && code->ptx;
    if (good)
        *out_code = hdrt__digest_of(code->ptx, code->ptx_size);
    else
        fprintf(stderr, "# %s\n", hdrt_last_error());
    hdrt__code_drop(code);
    hdrt__jit_destroy(jit);
    return good;
}

static const struct {
    const char *name;
    int error;
} errors[] = {
    {"short write", 0}, {"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EROFS", EROFS},
    {"EACCES", EACCES}, {"EPERM", EPERM},   {"EMFILE", EMFILE}, {"ENFILE", ENFILE}, {"EINTR", EINTR},
    {"ESTALE", ESTALE}, {"EBUSY", EBUSY},   {"ENOLCK", ENOLCK}, {"ENOENT", ENOENT}, {"ENOTDIR", ENOTDIR},
    {"ELOOP", ELOOP},   {"EINVAL", EINVAL}, {"ENOMEM", ENOMEM}, {"EEXIST", EEXIST}, {"ENAMETOOLONG", ENAMETOOLONG},
    {"EOPNOTSUPP", EOPNOTSUPP}, {"EAGAIN", EAGAIN}, {"ETIMEDOUT", ETIMEDOUT},
};

/* The first compile, into an empty folder; the second, which finds it; and one that has to make room. */
static unsigned run_with(unsigned at, int error, bool sticky, const char *text, const hdrt__digest *expected)
{
    hdrt__digest code = {{0}};
    unsigned before = open_descriptors();
    fault.at = at;
    fault.error = error;
    fault.sticky = sticky;
    fault.calls = 0;
    fault.armed = true;
    bool good = compile_once(text, &code);
    fault.armed = false;
    ck_assert_msg(good, "call %u (%s) failing with %s", at, fault.name, strerror(error));
    ck_assert_msg(hdrt__digest_equal(&code, expected), "call %u (%s) failing with %s: other code", at, fault.name,
                  strerror(error));
    ck_assert_msg(open_descriptors() == before, "call %u (%s) failing with %s leaves a descriptor", at, fault.name,
                  strerror(error));
    return fault.calls;
}

static const char text[] = "// the kernel\n";

static hdrt__digest expect(void)
{
    hdrt__digest expected;
    ck_assert(compile_once(text, &expected));
    return expected;
}

START_TEST(a_cold_compile_survives)
{
    int error = errors[_i].error;
    hdrt__digest expected = expect();
    clear();
    unsigned calls = run_with(0, 0, false, text, &expected);
    ck_assert_uint_gt(calls, 40);
    for (unsigned at = 1; at <= calls; at++) {
        clear();
        run_with(at, error, false, text, &expected);
    }
}
END_TEST

START_TEST(a_hit_survives)
{
    int error = errors[_i].error;
    hdrt__digest expected = expect();
    unsigned calls = run_with(0, 0, false, text, &expected);
    ck_assert_uint_gt(calls, 15);
    for (unsigned at = 1; at <= calls; at++)
        run_with(at, error, false, text, &expected);
}
END_TEST

/* From some call on nothing works any more: a disk that is gone, descriptors that are out. */
START_TEST(a_cache_that_fails_for_good_survives)
{
    int error = errors[_i].error;
    hdrt__digest expected = expect();
    if (error == EINTR || error == 0)
        return; /* a call that is always interrupted would be asked again for ever */
    clear();
    unsigned calls = run_with(0, 0, false, text, &expected);
    for (unsigned at = 1; at <= calls; at += 7) {
        clear();
        run_with(at, error, true, text, &expected);
    }
}
END_TEST

START_TEST(making_room_survives)
{
    static const int some[] = {EIO, ENOENT, EACCES, ENOSPC};
    hdrt__digest expected = expect();
    for (int e = 0; e < COUNT(some); e++) {
        unsigned calls = 200;
        for (unsigned at = 40; at <= calls; at += 15) {
            char filler[64];
            hdrt__digest unused;
            clear();
            for (int i = 0; i < 8; i++) {
                snprintf(filler, sizeof filler, "// filler %d\n", i);
                ck_assert(compile_once(filler, &unused));
            }
            config.cache_limit_bytes = 30000; /* what is there is more than that already */
            calls = run_with(at, some[e], false, text, &expected);
            config.cache_limit_bytes = 60000;
        }
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *made = suite_create("faults");
    TCase *tests = tcase_create("faults");
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, a_cold_compile_survives, 0, COUNT(errors));
    tcase_add_loop_test(tests, a_hit_survives, 0, COUNT(errors));
    tcase_add_loop_test(tests, a_cache_that_fails_for_good_survives, 0, COUNT(errors));
    tcase_add_test(tests, making_room_survives);
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
