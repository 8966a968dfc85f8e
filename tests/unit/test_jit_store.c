/* SPDX-License-Identifier: MIT */
/* The disk cache's folder and entries: where they lie, hostile neighbours, full disks, races and killed writers. */
#include <hdrt.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "failing_malloc.h"
#include "jit/store.h"

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

static char root[64];   /* a folder of the test's own */
static char cache[96];  /* root/cache */
static hdrt__digest name_of_entry;

static void set_up(void)
{
    strcpy(root, "/tmp/hdrt-test-store-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    snprintf(cache, sizeof cache, "%s/cache", root);
    name_of_entry = hdrt__digest_of("entry", 5);
    unsetenv("HDRT_CACHE_DIR");
}

static void tear_down(void)
{
    char command[256];
    snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", root, root);
    ck_assert_int_eq(system(command), 0);
}

static hdrt__store *open_store(const char *option)
{
    hdrt__store *store;
    const hdrt__store_config config = {.directory = option};
    ck_assert_int_eq(hdrt__store_open(&config, &store), HDRT_OK);
    return store;
}

static void entry_path(char path[256], char kind)
{
    char hex[2 * HDRT__DIGEST_SIZE + 1];
    hdrt__digest_hex(&name_of_entry, hex);
    snprintf(path, 256, "%s/v1/%.2s/%s.%c", cache, hex, hex + 2, kind);
}

static unsigned char *read_entry(hdrt__store *store, hdrt__entry_kind kind, size_t *size, hdrt_cache_reason *reason)
{
    hdrt_cache_reason unasked;
    return hdrt__store_read(store, 0, &name_of_entry, kind, size, reason ? reason : &unasked);
}

static hdrt_status try_store(const char *option, hdrt__store **store)
{
    const hdrt__store_config config = {.directory = option};
    return hdrt__store_open(&config, store);
}

static bool write_entry(hdrt__store *store, const char *text)
{
    return hdrt__store_write(store, &name_of_entry, HDRT__ENTRY_IMAGE, text, strlen(text));
}

/* Whether the entry is there with this text; NULL: whether it is a miss. */
static bool entry_is(hdrt__store *store, const char *text)
{
    size_t size = 0;
    unsigned char *bytes = read_entry(store, HDRT__ENTRY_IMAGE, &size, NULL);
    bool is = text ? bytes && size == strlen(text) && memcmp(bytes, text, size) == 0 : bytes == NULL;
    free(bytes);
    return is;
}

static unsigned mode_of(const char *path)
{
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    return status.st_mode & 07777;
}

static unsigned files_in(const char *folder)
{
    char command[512];
    unsigned count = 0;
    snprintf(command, sizeof command, "find %s -type f | wc -l", folder);
    FILE *output = popen(command, "r");
    ck_assert_int_eq(fscanf(output, "%u", &count), 1);
    pclose(output);
    return count;
}

/* ---- the folder ------------------------------------------------------------------------------------------------- */

START_TEST(entries_are_kept)
{
    char path[256], tag[128];
    hdrt__store *store = open_store(cache);
    ck_assert_str_eq(hdrt__store_directory(store, 0), cache);
    ck_assert(entry_is(store, NULL));
    ck_assert_int_ne(access(cache, F_OK), 0); /* looking makes nothing */
    ck_assert(write_entry(store, "first"));
    ck_assert(entry_is(store, "first"));
    ck_assert(write_entry(store, "second, longer"));
    ck_assert(entry_is(store, "second, longer"));
    size_t size;
    ck_assert_ptr_null(read_entry(store, HDRT__ENTRY_MANIFEST, &size, NULL));
    ck_assert_ptr_null(hdrt__store_reason(store, 0));
    entry_path(path, 'i');
    ck_assert_uint_eq(mode_of(path), 0600);
    ck_assert_uint_eq(mode_of(cache), 0700);
    snprintf(tag, sizeof tag, "%s/CACHEDIR.TAG", cache);
    ck_assert_int_eq(access(tag, R_OK), 0);
    ck_assert_uint_eq(files_in(cache), 3); /* the tag, the account, and no temporary file */
    hdrt__store_close(store);
    store = open_store(cache);
    ck_assert(entry_is(store, "second, longer"));
    hdrt__store_close(store);
}
END_TEST

START_TEST(places)
{
    char expected[160], relative[8] = "rel";
    hdrt__store *store;
    setenv("HOME", root, 1);
    unsetenv("XDG_CACHE_HOME");
    store = open_store(NULL);
    snprintf(expected, sizeof expected, "%s/.cache/hdrt", root);
    ck_assert_str_eq(hdrt__store_directory(store, 0), expected);
    ck_assert(write_entry(store, "x"));
    ck_assert(entry_is(store, "x"));
    hdrt__store_close(store);
    setenv("XDG_CACHE_HOME", "relative/is/ignored", 1);
    store = open_store(NULL);
    ck_assert_str_eq(hdrt__store_directory(store, 0), expected);
    hdrt__store_close(store);
    snprintf(expected, sizeof expected, "%s/xdg", root);
    setenv("XDG_CACHE_HOME", expected, 1);
    store = open_store(NULL);
    strcat(expected, "/hdrt");
    ck_assert_str_eq(hdrt__store_directory(store, 0), expected);
    hdrt__store_close(store);
    setenv("HDRT_CACHE_DIR", cache, 1);
    store = open_store(NULL);
    ck_assert_str_eq(hdrt__store_directory(store, 0), cache);
    hdrt__store_close(store);
    /* A relative folder stays where the program stood. */
    ck_assert_int_eq(chdir(root), 0);
    store = open_store(relative);
    ck_assert_int_eq(chdir("/"), 0);
    snprintf(expected, sizeof expected, "%s/rel", root);
    ck_assert_str_eq(hdrt__store_directory(store, 0), expected);
    ck_assert(write_entry(store, "y"));
    hdrt__store_close(store);
}
END_TEST

static const struct {
    const char *option, *variable, *home, *words;
} without[] = {
    {"", NULL, "/", "runtime option"},
    {NULL, "off", "/", "HDRT_CACHE_DIR=off"},
    {NULL, NULL, NULL, "HOME"},
    {NULL, NULL, "relative", "HOME"},
};

START_TEST(no_folder)
{
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    if (without[_i].home)
        setenv("HOME", without[_i].home, 1);
    if (without[_i].variable)
        setenv("HDRT_CACHE_DIR", without[_i].variable, 1);
    hdrt__store *store = open_store(without[_i].option);
    ck_assert_ptr_null(hdrt__store_directory(store, 0));
    ck_assert_msg(strstr(hdrt__store_reason(store, 0), without[_i].words), "%s", hdrt__store_reason(store, 0));
    ck_assert(!write_entry(store, "x"));
    ck_assert(entry_is(store, NULL));
    hdrt__store_check(store);
    hdrt__store_close(store);
}
END_TEST

static unsigned warnings;
static char warning[1024];

static void count_warning(void *context, hdrt_log_level level, const char *line)
{
    if (level == HDRT_LOG_WARN) {
        warnings++;
        snprintf(warning, sizeof warning, "%s", line);
    }
}

/* Each makes the cache's folder unusable; then everything misses, and one line says why. */
static void folder_is_a_file(void)
{
    close(open(cache, O_CREAT | O_WRONLY, 0600));
}

static void folder_is_a_link(void)
{
    char other[128];
    snprintf(other, sizeof other, "%s/other", root);
    mkdir(other, 0700);
    ck_assert_int_eq(symlink(other, cache), 0);
}

static void folder_is_writable_by_others(void)
{
    mkdir(cache, 0700);
    chmod(cache, 0777);
}

static void folder_of_shards_is_a_link(void)
{
    char target[160];
    folder_is_a_link();
    unlink(cache);
    mkdir(cache, 0700);
    snprintf(target, sizeof target, "%s/v1", cache);
    ck_assert_int_eq(symlink("../other", target), 0);
}

static void folder_belongs_to_another(void)
{
    mkdir(cache, 0700);
    ck_assert_int_eq(chown(cache, 12345, 12345), 0);
}

static void parent_is_a_file(void)
{
    close(open(cache, O_CREAT | O_WRONLY, 0600));
    strcat(cache, "/below");
}

static const struct {
    void (*make)(void);
    const char *words;
    bool root_only;
} unusable[] = {
    {folder_is_a_file, "no folder", false},
    {folder_is_a_link, "symbolic link", false},
    {folder_is_writable_by_others, "written by other users", false},
    {folder_of_shards_is_a_link, "symbolic link", false},
    {folder_belongs_to_another, "another user", true},
    {parent_is_a_file, "Not a directory", false},
};

START_TEST(unusable_folder)
{
    if (unusable[_i].root_only && geteuid() != 0)
        return;
    unusable[_i].make();
    warnings = 0;
    hdrt_log_set(HDRT_LOG_WARN, count_warning, NULL);
    hdrt__store *store = open_store(cache);
    for (int i = 0; i < 3; i++) {
        ck_assert(entry_is(store, NULL));
        ck_assert(!write_entry(store, "x"));
    }
    hdrt__store_check(store);
    ck_assert_uint_eq(warnings, 1);
    ck_assert_ptr_nonnull(hdrt__store_reason(store, 0));
    ck_assert_msg(strstr(hdrt__store_reason(store, 0), unusable[_i].words), "%s", hdrt__store_reason(store, 0));
    ck_assert_msg(strstr(warning, hdrt__store_reason(store, 0)), "%s", warning);
    ck_assert_uint_le(files_in(root), 1);
    hdrt__store_close(store);
}
END_TEST

/* As an ordinary user, since root may write anywhere: what was stored is still read, one warning, no failure. */
static int read_only_child(void)
{
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 10;
    hdrt__store *store;
    if (try_store(cache, &store) != HDRT_OK || !write_entry(store, "kept"))
        return 11;
    char shard[256], *slash;
    entry_path(shard, 'i');
    slash = strrchr(shard, '/');
    *slash = '\0';
    if (chmod(shard, 0500) != 0 || chmod(cache, 0500) != 0)
        return 12;
    hdrt__store_close(store);
    warnings = 0;
    hdrt_log_set(HDRT_LOG_WARN, count_warning, NULL);
    if (try_store(cache, &store) != HDRT_OK || !entry_is(store, "kept"))
        return 13;
    hdrt__store_check(store);
    if (!hdrt__store_reason(store, 0) || !strstr(hdrt__store_reason(store, 0), "cannot write"))
        return 14;
    if (write_entry(store, "new") || write_entry(store, "new") || !entry_is(store, "kept") || warnings != 1)
        return 15;
    hdrt__store_close(store);
    /* A folder that cannot be made. */
    char none[160];
    snprintf(none, sizeof none, "%s/v1/none/at/all", cache);
    chmod(cache, 0500);
    snprintf(none, sizeof none, "%s/none", cache);
    if (try_store(none, &store) != HDRT_OK)
        return 16;
    hdrt__store_check(store);
    if (!hdrt__store_reason(store, 0) || !strstr(hdrt__store_reason(store, 0), "cannot make"))
        return 17;
    hdrt__store_close(store);
    return 0;
}

START_TEST(read_only_folder)
{
    int status;
    ck_assert_int_eq(chmod(root, 0777), 0);
    pid_t child = fork();
    if (child == 0)
        child_exit(read_only_child());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

/* ---- entries ---------------------------------------------------------------------------------------------------- */

/* Each puts something else where the entry was; it must be a miss, must not hang, and is replaced by the next write. */
static void entry_is_a_link(const char *path)
{
    char other[300];
    snprintf(other, sizeof other, "%s-other", path);
    ck_assert_int_eq(rename(path, other), 0);
    ck_assert_int_eq(symlink(other, path), 0);
}

static void entry_has_two_names(const char *path)
{
    char other[300];
    snprintf(other, sizeof other, "%s-other", path);
    ck_assert_int_eq(link(path, other), 0);
}

static void entry_is_a_pipe(const char *path)
{
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
}

static void entry_is_a_socket(const char *path)
{
    unlink(path);
    ck_assert_int_eq(mknod(path, S_IFSOCK | 0600, 0), 0);
}

/* A device that would be endless to read, or a disk; making one needs rights. */
static void entry_is_a_device(const char *path, mode_t type, dev_t device)
{
    unlink(path);
    if (mknod(path, type | 0600, device) != 0)
        printf("# skipped: no device node can be made: %s\n", strerror(errno));
}

static void entry_is_a_character_device(const char *path)
{
    entry_is_a_device(path, S_IFCHR, makedev(1, 5)); /* /dev/zero */
}

static void entry_is_a_block_device(const char *path)
{
    entry_is_a_device(path, S_IFBLK, makedev(1, 0)); /* /dev/ram0 */
}

static void entry_is_writable_by_others(const char *path)
{
    ck_assert_int_eq(chmod(path, 0666), 0);
}

static void entry_is_empty(const char *path)
{
    ck_assert_int_eq(truncate(path, 0), 0);
}

static void entry_is_huge(const char *path)
{
    ck_assert_int_eq(truncate(path, (off_t)HDRT__ENTRY_LIMIT + 1), 0);
}

static void (*const hostile[])(const char *) = {entry_is_a_link, entry_has_two_names, entry_is_a_pipe,
                                                entry_is_a_socket, entry_is_a_character_device,
                                                entry_is_a_block_device, entry_is_writable_by_others, entry_is_empty, entry_is_huge};

START_TEST(hostile_entry)
{
    char path[256];
    hdrt__store *store = open_store(cache);
    ck_assert(write_entry(store, "good"));
    entry_path(path, 'i');
    hostile[_i](path);
    alarm(10);
    ck_assert(entry_is(store, NULL));
    ck_assert(write_entry(store, "new"));
    ck_assert(entry_is(store, "new"));
    alarm(0);
    hdrt__store_close(store);
}
END_TEST

/* Swaps the folder of an entry for a link to another one and back, until killed. */
static pid_t swap_in_a_loop(const char *folder, const char *name_of_link)
{
    pid_t child = fork();
    while (child == 0)
        if (renameat2(AT_FDCWD, folder, AT_FDCWD, name_of_link, RENAME_EXCHANGE) != 0)
            child_exit(1);
    return child;
}

/* Whatever the moment: the entry or a miss, never what is behind the link, and nothing is written there. */
START_TEST(folder_is_swapped_for_a_link)
{
    char path[256], folder[256], name_of_link[128], elsewhere[128], target[300], command[700];
    unsigned hits = 0, misses = 0;
    int status;
    hdrt__store *store = open_store(cache);
    ck_assert(write_entry(store, "good"));
    entry_path(path, 'i');
    strcpy(folder, path);
    *strrchr(folder, '/') = '\0';
    snprintf(name_of_link, sizeof name_of_link, "%s/link", root);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", root);
    snprintf(target, sizeof target, "%s%s", elsewhere, strrchr(path, '/'));
    ck_assert_int_eq(mkdir(elsewhere, 0700), 0);
    snprintf(command, sizeof command, "printf evil >%s; chmod 600 %s", target, target);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(symlink(elsewhere, name_of_link), 0);
    pid_t child = swap_in_a_loop(folder, name_of_link);
    for (int i = 0; i < 100000; i++) {
        size_t size = 0;
        unsigned char *bytes = read_entry(store, HDRT__ENTRY_IMAGE, &size, NULL);
        ck_assert(!bytes || (size == 4 && memcmp(bytes, "good", 4) == 0));
        hits += bytes != NULL;
        misses += bytes == NULL;
        free(bytes);
        if (i % 1000 == 0)
            write_entry(store, "good"); /* may fail, as it is only a cache */
    }
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status)); /* it swapped until now */
    ck_assert_uint_gt(hits, 0);
    ck_assert_uint_gt(misses, 0);
    ck_assert_uint_eq(files_in(elsewhere), 1);
    snprintf(command, sizeof command, "test \"$(cat %s)\" = evil", target);
    ck_assert_int_eq(system(command), 0);
    hdrt__store_close(store);
}
END_TEST

START_TEST(entry_is_a_folder)
{
    char path[256];
    hdrt__store *store = open_store(cache);
    ck_assert(write_entry(store, "good"));
    entry_path(path, 'i');
    unlink(path);
    mkdir(path, 0700);
    ck_assert(entry_is(store, NULL));
    ck_assert(!write_entry(store, "new")); /* a rename cannot replace it */
    ck_assert_uint_eq(files_in(cache), 2);
    hdrt__store_close(store);
}
END_TEST

static void *never(void *argument)
{
    ck_abort_msg("SIGXFSZ was delivered");
    return argument;
}

static void on_limit(int number)
{
    never(NULL);
}

/* The process's file size limit stands for a full disk: the same path, and a signal that would end the program. */
START_TEST(full_disk)
{
    static char large[65536];
    struct rlimit limit, before;
    sigset_t pending;
    hdrt__store *store = open_store(cache);
    ck_assert(write_entry(store, "small"));
    signal(SIGXFSZ, on_limit);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &limit);
    warnings = 0;
    hdrt_log_set(HDRT_LOG_WARN, count_warning, NULL);
    bool stored = hdrt__store_write(store, &name_of_entry, HDRT__ENTRY_IMAGE, large, sizeof large);
    bool again = hdrt__store_write(store, &name_of_entry, HDRT__ENTRY_IMAGE, large, sizeof large);
    setrlimit(RLIMIT_FSIZE, &before);
    ck_assert(!stored && !again);
    ck_assert_uint_eq(warnings, 1);
    sigpending(&pending);
    ck_assert_int_eq(sigismember(&pending, SIGXFSZ), 0);
    ck_assert(entry_is(store, "small"));
    ck_assert_uint_eq(files_in(cache), 3); /* no half file is left */
    ck_assert(hdrt__store_write(store, &name_of_entry, HDRT__ENTRY_IMAGE, large, sizeof large)); /* room again */
    hdrt__store_close(store);
}
END_TEST

START_TEST(sizes_that_are_refused)
{
    hdrt__store *store = open_store(cache);
    ck_assert(!hdrt__store_write(store, &name_of_entry, HDRT__ENTRY_IMAGE, "", 0));
    ck_assert(!hdrt__store_write(store, &name_of_entry, HDRT__ENTRY_IMAGE, "", (size_t)HDRT__ENTRY_LIMIT + 1));
    ck_assert_int_ne(access(cache, F_OK), 0);
    hdrt__store_close(store);
}
END_TEST

START_TEST(stale_temporary_files_go)
{
    char path[256], old[300], young[300];
    struct timespec times[2] = {{1, 0}, {1, 0}};
    hdrt__store *store = open_store(cache);
    ck_assert(write_entry(store, "x"));
    entry_path(path, 'i');
    *strrchr(path, '/') = '\0';
    snprintf(old, sizeof old, "%s/.tmp-1-old", path);
    snprintf(young, sizeof young, "%s/.tmp-1-young", path);
    close(open(old, O_CREAT | O_WRONLY, 0600));
    close(open(young, O_CREAT | O_WRONLY, 0600));
    ck_assert_int_eq(utimensat(AT_FDCWD, old, times, 0), 0);
    ck_assert(write_entry(store, "y"));
    ck_assert_int_ne(access(old, F_OK), 0);
    ck_assert_int_eq(access(young, F_OK), 0);
    hdrt__store_close(store);
}
END_TEST

/* Processes that write and read the same entry at once: every read is one of the whole texts, and every write succeeds,
   though the first of them tidies up what others are just writing. */
START_TEST(processes_race)
{
    enum { PROCESSES = 4, ROUNDS = 150 };
    pid_t children[PROCESSES];
    for (int p = 0; p < PROCESSES; p++) {
        children[p] = fork();
        if (children[p] == 0) {
            static char text[20000];
            hdrt__store *store;
            if (try_store(cache, &store) != HDRT_OK)
                child_exit(1);
            for (int i = 0; i < ROUNDS; i++) {
                size_t size = 0;
                memset(text, 'a' + p, sizeof text);
                if (!hdrt__store_write(store, &name_of_entry, HDRT__ENTRY_IMAGE, text, sizeof text - (size_t)p))
                    child_exit(2);
                unsigned char *bytes = read_entry(store, HDRT__ENTRY_IMAGE, &size, NULL);
                if (!bytes || size + (size_t)(bytes[0] - 'a') != sizeof text || bytes[size - 1] != bytes[0])
                    child_exit(3);
                free(bytes);
            }
            hdrt__store_close(store);
            child_exit(0);
        }
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status;
        ck_assert_int_eq(waitpid(children[p], &status, 0), children[p]);
        ck_assert(WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), 0);
    }
    ck_assert_uint_eq(files_in(cache), 3);
}
END_TEST

/* A writer killed at any moment leaves no entry that can be read wrongly. */
START_TEST(writers_are_killed)
{
    static char text[200000];
    memset(text, 'k', sizeof text);
    hdrt__store *store = open_store(cache);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            hdrt__store *own;
            if (try_store(cache, &own) == HDRT_OK)
                for (;;)
                    hdrt__store_write(own, &name_of_entry, HDRT__ENTRY_IMAGE, text, sizeof text);
            child_exit(1);
        }
        usleep(2000 + (unsigned)i * 137);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        size_t size = 0;
        unsigned char *bytes = read_entry(store, HDRT__ENTRY_IMAGE, &size, NULL);
        ck_assert(!bytes || (size == sizeof text && bytes[0] == 'k' && bytes[size - 1] == 'k'));
        free(bytes);
    }
    hdrt__store_close(store);
}
END_TEST

START_TEST(store_without_memory)
{
    hdrt_status status = HDRT_OK;
    hdrt__store *store = NULL;
    FAILING_MALLOC_EACH(n)
    {
        status = try_store(cache, &store);
        if (status == HDRT_OK) {
            write_entry(store, "x");
            entry_is(store, "x");
            hdrt__store_check(store);
        }
        hdrt__store_close(store);
    }
    ck_assert_int_eq(status, HDRT_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("jit store");
    TCase *tests = tcase_create("store");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, entries_are_kept);
    tcase_add_test(tests, places);
    tcase_add_loop_test(tests, no_folder, 0, COUNT(without));
    tcase_add_loop_test(tests, unusable_folder, 0, COUNT(unusable));
    tcase_add_test(tests, read_only_folder);
    tcase_add_loop_test(tests, hostile_entry, 0, COUNT(hostile));
    tcase_add_test(tests, entry_is_a_folder);
    tcase_add_test(tests, folder_is_swapped_for_a_link);
    tcase_add_test(tests, full_disk);
    tcase_add_test(tests, sizes_that_are_refused);
    tcase_add_test(tests, stale_temporary_files_go);
    tcase_add_test(tests, processes_race);
    tcase_add_test(tests, writers_are_killed);
    tcase_add_test(tests, store_without_memory);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
