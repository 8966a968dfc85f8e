/* SPDX-License-Identifier: MIT */
/* The disk cache's folder and files: damage, hostile neighbours, full disks, races; images and manifests as bytes. */
#include <hdrt.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
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
#include "jit/container.h"
#include "jit/image.h"
#include "jit/manifest.h"
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

/* ---- images as bytes -------------------------------------------------------------------------------------------- */

static hdrt__code *make_code(void)
{
    static const char ptx[] = ".version 8.0\n.entry k(.param .u32 a) { ret; }\n";
    hdrt__code *code = hdrt__code_create();
    ck_assert_ptr_nonnull(code);
    code->name = name_of_entry;
    code->kind = HDRT_CODE_CUBIN;
    code->compiler = HDRT_COMPILER_NVRTC;
    code->ptx = strdup(ptx);
    code->ptx_size = sizeof ptx - 1;
    code->cubin = malloc(3);
    memcpy(code->cubin, "\0c\0", 3);
    code->cubin_size = 3;
    code->note = strdup("lowered");
    code->unresolved = strdup("__nv_expf");
    ck_assert(hdrt__code_add_diagnostic(code, HDRT_SEVERITY_WARNING, 3, 5, "a.cu", 4, "unused", 6));
    ck_assert(hdrt__code_add_diagnostic(code, HDRT_SEVERITY_NOTE, 0, 0, NULL, 0, "no place", 8));
    ck_assert_int_eq(hdrt__code_read_table(code), HDRT_OK);
    return code;
}

START_TEST(image_round_trip)
{
    hdrt_cache_reason reason;
    hdrt__buffer bytes = HDRT__BUFFER_INIT, again = HDRT__BUFFER_INIT;
    hdrt__code *code = make_code();
    hdrt__code_write(code, &bytes);
    ck_assert(!bytes.failed);
    hdrt__code *read = hdrt__code_read(bytes.bytes, bytes.size, &name_of_entry, &reason);
    ck_assert_ptr_nonnull(read);
    ck_assert_int_eq(read->kind, HDRT_CODE_CUBIN);
    ck_assert_mem_eq(read->cubin, "\0c\0", 3);
    ck_assert_str_eq(read->ptx, code->ptx);
    ck_assert_str_eq(read->note, "lowered");
    ck_assert_str_eq(read->unresolved, "__nv_expf");
    ck_assert_uint_eq(read->diagnostic_count, 2);
    ck_assert_str_eq(read->diagnostics[0].file, "a.cu");
    ck_assert_uint_eq(read->diagnostics[0].column, 5);
    ck_assert_ptr_null(read->diagnostics[1].file);
    ck_assert_str_eq(read->table.kernels[0].name, "k");
    hdrt__code_write(read, &again);
    ck_assert_uint_eq(again.size, bytes.size);
    ck_assert_mem_eq(again.bytes, bytes.bytes, bytes.size);
    hdrt__digest other = hdrt__digest_of("other", 5);
    ck_assert_ptr_null(hdrt__code_read(bytes.bytes, bytes.size, &other, &reason)); /* a file under another's name */
    hdrt__code_drop(read);
    hdrt__code_drop(code);
    hdrt__buffer_free(&bytes);
    hdrt__buffer_free(&again);
}
END_TEST

START_TEST(image_with_any_bit_flipped_is_a_miss)
{
    hdrt_cache_reason reason;
    hdrt__buffer bytes = HDRT__BUFFER_INIT;
    hdrt__code *code = make_code();
    hdrt__code_write(code, &bytes);
    for (size_t at = 0; at < bytes.size; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes.bytes[at] ^= (unsigned char)(1u << bit);
            hdrt__code *read = hdrt__code_read(bytes.bytes, bytes.size, &name_of_entry, &reason);
            bytes.bytes[at] ^= (unsigned char)(1u << bit);
            ck_assert_msg(read == NULL, "byte %zu bit %u", at, bit);
            ck_assert_msg(reason == HDRT_CACHE_DAMAGED, "byte %zu bit %u: %s", at, bit, hdrt_cache_reason_name(reason));
        }
    for (size_t size = 0; size < bytes.size; size++) {
        unsigned char *exact = malloc(size ? size : 1);
        memcpy(exact, bytes.bytes, size);
        ck_assert_ptr_null(hdrt__code_read(exact, size, &name_of_entry, &reason));
        ck_assert_msg(reason == HDRT_CACHE_TRUNCATED, "%zu bytes: %s", size, hdrt_cache_reason_name(reason));
        free(exact);
    }
    for (size_t more = 1; more <= 4096; more += more < 32 ? 1 : 507) {
        unsigned char *longer = calloc(1, bytes.size + more);
        memcpy(longer, bytes.bytes, bytes.size);
        ck_assert_ptr_null(hdrt__code_read(longer, bytes.size + more, &name_of_entry, &reason));
        ck_assert_msg(reason == HDRT_CACHE_EXTENDED, "%zu more: %s", more, hdrt_cache_reason_name(reason));
        free(longer);
    }
    memset(bytes.bytes, 0, bytes.size);
    ck_assert_ptr_null(hdrt__code_read(bytes.bytes, bytes.size, &name_of_entry, &reason));
    ck_assert_int_eq(reason, HDRT_CACHE_DAMAGED);
    hdrt__code_drop(code);
    hdrt__buffer_free(&bytes);
}
END_TEST

/* Right digests over wrong contents: what a hostile or later writer could make. */
static void put_kind(hdrt__buffer *bytes, uint32_t kind, uint32_t compiler)
{
    unsigned char numbers[8] = {(unsigned char)kind, 0, 0, 0, (unsigned char)compiler, 0, 0, 0};
    hdrt__container_section(bytes, 2, numbers, sizeof numbers);
}

static const struct {
    const char *what;
    bool good, kind, table, ptx;
    uint32_t tag;
    const char *extra;
    size_t extra_size;
} contents[] = {
    {"all there", true, true, true, true, 0, NULL, 0},
    {"a section of a later version", true, true, true, true, 9999, "new", 3},
    {"no kind", false, false, true, true, 0, NULL, 0},
    {"no code", false, true, true, false, 0, NULL, 0},
    {"no table", false, true, false, true, 0, NULL, 0},
    {"code twice", false, true, true, true, 4, "x", 1},
    {"a NUL in a text", false, true, true, true, 8, "a\0b", 3},
    {"half a diagnostic", false, true, true, true, 11, "\1\0\0\0", 4},
    {"a diagnostic of no severity", false, true, true, true, 11, "\7\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0x", 17},
    {"a bad table", false, true, true, true, 12, "\2\0\0\0", 4},
    {"half a name", false, true, true, true, 1, "x", 1},
};

START_TEST(image_contents)
{
    hdrt_cache_reason reason;
    static const char image_magic[8] = {'H', 'D', 'R', 'T', 'I', 'M', 'G', '\n'};
    hdrt__buffer bytes = HDRT__BUFFER_INIT, table = HDRT__BUFFER_INIT;
    hdrt__kernel_table none = {0};
    hdrt__kernel_table_write(&none, &table);
    hdrt__container_begin(&bytes, image_magic);
    hdrt__container_section(&bytes, 1, name_of_entry.bytes, HDRT__DIGEST_SIZE);
    if (contents[_i].kind)
        put_kind(&bytes, HDRT_CODE_PTX, HDRT_COMPILER_CLANG);
    if (contents[_i].ptx)
        hdrt__container_text(&bytes, 4, ".version 8.0");
    if (contents[_i].table)
        hdrt__container_section(&bytes, 12, table.bytes, table.size);
    if (contents[_i].tag)
        hdrt__container_section(&bytes, contents[_i].tag, contents[_i].extra, contents[_i].extra_size);
    hdrt__container_end(&bytes);
    hdrt__code *code = hdrt__code_read(bytes.bytes, bytes.size, &name_of_entry, &reason);
    ck_assert_msg((code != NULL) == contents[_i].good, "%s", contents[_i].what);
    hdrt__code_drop(code);
    hdrt__buffer_free(&bytes);
    hdrt__buffer_free(&table);
}
END_TEST

START_TEST(images_without_memory)
{
    hdrt_cache_reason reason;
    hdrt__buffer bytes = HDRT__BUFFER_INIT;
    hdrt__code *code = make_code(), *read = NULL;
    hdrt__code_write(code, &bytes);
    unsigned misses = 0, unwritten = 0;
    FAILING_MALLOC_EACH(n)
    {
        read = hdrt__code_read(bytes.bytes, bytes.size, &name_of_entry, &reason);
        misses += read == NULL;
        hdrt__code_drop(read);
    }
    FAILING_MALLOC_EACH(n)
    {
        hdrt__buffer second = HDRT__BUFFER_INIT;
        hdrt__code_write(code, &second);
        unwritten += second.failed;
        hdrt__buffer_free(&second);
    }
    ck_assert_uint_gt(misses, 10);
    ck_assert_uint_gt(unwritten, 3);
    hdrt__code_drop(code);
    hdrt__buffer_free(&bytes);
}
END_TEST

/* ---- manifests -------------------------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void record_of(hdrt__record *record, const char *path, const char *absent)
{
    hdrt__stamp stamp;
    size_t size;
    *record = (hdrt__record){0};
    unsigned char *bytes = hdrt__file_read(path, 1000000, &size, &stamp);
    ck_assert_ptr_nonnull(bytes);
    hdrt__digest digest = hdrt__digest_of(bytes, size);
    free(bytes);
    ck_assert(hdrt__record_add_dependency(record, path, strlen(path), &stamp, &digest));
    ck_assert(hdrt__record_add_absent(record, absent, strlen(absent)));
}

/* Much later than any file of this test: then stamps are trusted. */
static uint64_t later(void)
{
    return hdrt__wall_ns() + UINT64_C(10000000000);
}

static void files_of(hdrt__files *files, const char *path, const char *absent, uint64_t when)
{
    hdrt__record record;
    record_of(&record, path, absent);
    ck_assert(hdrt__files_pack(&record, when, files));
    ck_assert(hdrt__files_valid(files));
    hdrt__record_free(&record);
}

/* What a look says, and of which file. */
static hdrt_cache_reason look(hdrt__files *files, bool *refreshed, const char *expected_path)
{
    hdrt__buffer path = HDRT__BUFFER_INIT;
    hdrt_cache_reason reason = hdrt__files_current(files, refreshed, &path);
    if (reason != HDRT_CACHE_HIT && expected_path)
        ck_assert_str_eq((char *)path.bytes, expected_path);
    hdrt__buffer_free(&path);
    return reason;
}

START_TEST(files_are_followed)
{
    char header[128], absent[128], folder[128];
    hdrt__files files;
    bool refreshed;
    struct stat before;
    snprintf(header, sizeof header, "%s/a.h", root);
    snprintf(absent, sizeof absent, "%s/early/a.h", root);
    snprintf(folder, sizeof folder, "%s/early", root);
    write_file(header, "int a = 1;");
    files_of(&files, header, absent, later());
    ck_assert_int_eq(look(&files, &refreshed, NULL), HDRT_CACHE_HIT);
    ck_assert(!refreshed);
    /* Touched: the content decides. */
    struct timespec past[2] = {{1000, 0}, {1000, 0}};
    ck_assert_int_eq(utimensat(AT_FDCWD, header, past, 0), 0);
    ck_assert_int_eq(look(&files, &refreshed, NULL), HDRT_CACHE_HIT);
    /* Same size, same modification time: only ctime tells. */
    ck_assert_int_eq(stat(header, &before), 0);
    write_file(header, "int a = 2;");
    struct timespec same[2] = {before.st_atim, before.st_mtim};
    ck_assert_int_eq(utimensat(AT_FDCWD, header, same, 0), 0);
    ck_assert_int_eq(look(&files, &refreshed, header), HDRT_CACHE_FILE_CHANGED);
    write_file(header, "int a = 1;");
    ck_assert_int_eq(look(&files, &refreshed, NULL), HDRT_CACHE_HIT);
    write_file(header, "int a = 1; ");
    ck_assert_int_eq(look(&files, &refreshed, header), HDRT_CACHE_FILE_CHANGED);
    unlink(header);
    ck_assert_int_eq(look(&files, &refreshed, header), HDRT_CACHE_FILE_GONE);
    ck_assert_int_eq(mkfifo(header, 0600), 0);
    ck_assert_int_eq(look(&files, &refreshed, header), HDRT_CACHE_FILE_CHANGED);
    unlink(header);
    write_file(header, "int a = 1;");
    ck_assert_int_eq(look(&files, &refreshed, NULL), HDRT_CACHE_HIT);
    /* A header that would be found first now. */
    mkdir(folder, 0700);
    ck_assert_int_eq(look(&files, &refreshed, NULL), HDRT_CACHE_HIT);
    mkdir(absent, 0700); /* even a folder of that name */
    ck_assert_int_eq(look(&files, &refreshed, absent), HDRT_CACHE_FILE_APPEARED);
    rmdir(absent);
    ck_assert_int_eq(look(&files, &refreshed, NULL), HDRT_CACHE_HIT);
    hdrt__files_free(&files);
}
END_TEST

/* A folder whose times are trusted: everything that can put a name into it must still show. */
START_TEST(folders_tell_what_comes_into_them)
{
    char header[128], folder[128], absent[128], elsewhere[128], other[128];
    hdrt__files files;
    bool refreshed;
    snprintf(header, sizeof header, "%s/a.h", root);
    snprintf(folder, sizeof folder, "%s/early", root);
    snprintf(absent, sizeof absent, "%s/early/a.h", root);
    snprintf(elsewhere, sizeof elsewhere, "%s/target.h", root);
    snprintf(other, sizeof other, "%s/early/other.h", root);
    write_file(header, "int a = 1;");
    mkdir(folder, 0700);
    files_of(&files, header, absent, later());
    ck_assert_int_eq(look(&files, &refreshed, NULL), HDRT_CACHE_HIT);
    write_file(other, ""); /* another name: looked at closely, still a hit */
    ck_assert_int_eq(look(&files, &refreshed, NULL), HDRT_CACHE_HIT);
    write_file(absent, "int a = 3;");
    ck_assert_int_eq(look(&files, &refreshed, absent), HDRT_CACHE_FILE_APPEARED);
    unlink(absent);
    ck_assert_int_eq(look(&files, &refreshed, NULL), HDRT_CACHE_HIT);
    ck_assert_int_eq(rename(other, absent), 0);
    ck_assert_int_eq(look(&files, &refreshed, absent), HDRT_CACHE_FILE_APPEARED);
    unlink(absent);
    /* The folder's own time set back does not hide it: the change time does not go back. */
    struct stat before;
    ck_assert_int_eq(stat(folder, &before), 0);
    write_file(absent, "int a = 3;");
    struct timespec same[2] = {before.st_atim, before.st_mtim};
    ck_assert_int_eq(utimensat(AT_FDCWD, folder, same, 0), 0);
    ck_assert_int_eq(look(&files, &refreshed, absent), HDRT_CACHE_FILE_APPEARED);
    unlink(absent);
    hdrt__files_free(&files);
    /* A link to nothing is absent, and its folder does not change when what it leads to comes. */
    ck_assert_int_eq(symlink(elsewhere, absent), 0);
    files_of(&files, header, absent, later());
    ck_assert_int_eq(look(&files, &refreshed, NULL), HDRT_CACHE_HIT);
    write_file(elsewhere, "int a = 4;");
    ck_assert_int_eq(look(&files, &refreshed, absent), HDRT_CACHE_FILE_APPEARED);
    unlink(elsewhere);
    unlink(absent);
    hdrt__files_free(&files);
    /* The folder replaced by another that has it, also through a link. */
    files_of(&files, header, absent, later());
    char aside[100];
    snprintf(aside, sizeof aside, "%s/aside", root);
    mkdir(aside, 0700);
    snprintf(other, sizeof other, "%s/a.h", aside);
    write_file(other, "int a = 5;");
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert_int_eq(look(&files, &refreshed, NULL), HDRT_CACHE_HIT); /* gone: nothing can be in it */
    ck_assert_int_eq(symlink(aside, folder), 0);
    ck_assert_int_eq(look(&files, &refreshed, absent), HDRT_CACHE_FILE_APPEARED);
    hdrt__files_free(&files);
}
END_TEST

START_TEST(young_files_are_read_again)
{
    char header[128], absent[128];
    hdrt__files files;
    hdrt__record record;
    hdrt__buffer text = HDRT__BUFFER_INIT;
    bool refreshed;
    snprintf(header, sizeof header, "%s/a.h", root);
    snprintf(absent, sizeof absent, "%s/b.h", root);
    write_file(header, "int a = 1;");
    record_of(&record, header, absent);
    ck_assert_ptr_null(hdrt__record_settle(&record, hdrt__wall_ns(), &text));
    ck_assert(hdrt__files_pack(&record, hdrt__wall_ns(), &files));
    ck_assert_int_eq(look(&files, &refreshed, NULL), HDRT_CACHE_HIT);
    ck_assert(!refreshed); /* still too young */
    write_file(absent, "");
    ck_assert_int_eq(look(&files, &refreshed, absent), HDRT_CACHE_FILE_APPEARED);
    unlink(absent);
    sleep(3);
    ck_assert_int_eq(look(&files, &refreshed, NULL), HDRT_CACHE_HIT);
    ck_assert(refreshed);
    ck_assert_int_eq(look(&files, &refreshed, NULL), HDRT_CACHE_HIT);
    ck_assert(!refreshed); /* known now */
    hdrt__files_free(&files);
    hdrt__record_free(&record);
    hdrt__buffer_free(&text);
}
END_TEST

START_TEST(records_are_settled)
{
    char header[128], absent[128];
    hdrt__record record;
    hdrt__buffer text = HDRT__BUFFER_INIT;
    snprintf(header, sizeof header, "%s/a.h", root);
    snprintf(absent, sizeof absent, "%s/b.h", root);
    write_file(header, "int a = 1;");
    record_of(&record, header, absent);
    /* Written a moment ago: its times cannot tell a second write, so they are not kept. */
    ck_assert_ptr_null(hdrt__record_settle(&record, hdrt__wall_ns(), &text));
    ck_assert_uint_eq(record.dependencies[0].stamp.mtime_ns, 0);
    /* Much later it would have been kept. */
    ck_assert_ptr_null(hdrt__record_settle(&record, later(), &text));
    ck_assert_uint_ne(record.dependencies[0].stamp.mtime_ns, 0);
    write_file(absent, "");
    ck_assert_ptr_nonnull(strstr(hdrt__record_settle(&record, 0, &text), "b.h' appeared"));
    hdrt__buffer_free(&text);
    unlink(absent);
    write_file(header, "int a = 2;");
    ck_assert_ptr_nonnull(strstr(hdrt__record_settle(&record, 0, &text), "a.h' changed"));
    hdrt__buffer_free(&text);
    hdrt__record_free(&record);
    write_file(header, "const char *t = __TIME__;");
    record_of(&record, header, absent);
    ck_assert_ptr_nonnull(strstr(hdrt__record_settle(&record, 0, &text), "date or time"));
    hdrt__buffer_free(&text);
    hdrt__record_free(&record);
}
END_TEST

/* Bytes that no writer of ours made: never read past their end, never taken for files. */
START_TEST(damaged_files_are_told)
{
    char header[128], absent[128];
    hdrt__files files;
    bool refreshed;
    snprintf(header, sizeof header, "%s/a.h", root);
    snprintf(absent, sizeof absent, "%s/early/a.h", root);
    write_file(header, "int a = 1;");
    files_of(&files, header, absent, later());
    for (size_t size = 0; size < files.size; size++) {
        hdrt__files cut = {malloc(size + 1), size, NULL};
        cut.block = cut.bytes;
        memcpy(cut.bytes, files.bytes, size);
        ck_assert(!hdrt__files_valid(&cut));
        ck_assert_int_ne(hdrt__files_current(&cut, &refreshed, NULL), HDRT_CACHE_HIT);
        hdrt__files_free(&cut);
    }
    for (size_t at = 0; at < 12; at++) {
        hdrt__files changed;
        ck_assert(hdrt__files_copy(&files, &changed));
        changed.bytes[at] ^= 0xff;
        hdrt__files_valid(&changed);
        hdrt__files_current(&changed, &refreshed, NULL);
        hdrt__files_free(&changed);
    }
    hdrt__files_free(&files);
}
END_TEST

START_TEST(time_macros)
{
    static const char *const with[] = {"__DATE__", "x = __TIME__;", "(__TIMESTAMP__)", "__TI\\\nME__", "__DA\\  \r\nTE__",
                                       "a(__TI, ME__)", "__TIMEST?\?/\nAMP__", "#define C(a,b) a##b\nC(__, TIME__)"};
    static const char *const none[] = {"",         "x__DATE__",    "__DATE__x", "__TIME_",
                                       "__date__", "__DATE__2",    "__TI MAMP__", "__TIMES, TAMP_",
                                       "a \\\n b", "_ME__ __TI_", "__", "_ __ _"};
    for (int i = 0; i < COUNT(with); i++)
        ck_assert_msg(hdrt__has_time_macro(with[i], strlen(with[i])), "%s", with[i]);
    for (int i = 0; i < COUNT(none); i++)
        ck_assert_msg(!hdrt__has_time_macro(none[i], strlen(none[i])), "%s", none[i]);
}
END_TEST

static void make_state(hdrt__state *state, unsigned number)
{
    static const unsigned char no_files[4];
    *state = (hdrt__state){.reason = strdup("why")};
    state->image.bytes[0] = (unsigned char)number;
    const hdrt__files empty = {(unsigned char *)no_files, sizeof no_files, NULL};
    ck_assert(hdrt__files_copy(&empty, &state->files));
}

static hdrt_cache_reason read_copy(const hdrt__buffer *bytes, size_t size, const hdrt__digest *key, bool fields,
                                   hdrt__manifest *out)
{
    unsigned char *copy = malloc(size + 1); /* to be given away */
    ck_assert_ptr_nonnull(copy);
    if (size)
        memcpy(copy, bytes->bytes, size);
    return hdrt__manifest_read(copy, size, key, fields, out);
}

START_TEST(manifest_round_trip)
{
    hdrt__manifest manifest = {.key = name_of_entry}, read;
    hdrt__buffer bytes = HDRT__BUFFER_INIT;
    hdrt__state state;
    ck_assert(hdrt__fields_add(&manifest.fields, 5, "sm_80", 5));
    ck_assert(hdrt__fields_add(&manifest.fields, 9, NULL, 0));
    /* More states than are kept, the newest first, and one again. */
    for (unsigned i = 0; i < HDRT__STATE_LIMIT + 4; i++) {
        make_state(&state, i);
        hdrt__manifest_add(&manifest, &state);
        ck_assert_ptr_null(state.files.bytes);
    }
    make_state(&state, 10);
    hdrt__manifest_add(&manifest, &state);
    ck_assert_uint_eq(manifest.count, HDRT__STATE_LIMIT);
    ck_assert_uint_eq(manifest.states[0].image.bytes[0], 10);
    ck_assert_uint_eq(manifest.states[1].image.bytes[0], HDRT__STATE_LIMIT + 3);
    for (unsigned i = 1; i < HDRT__STATE_LIMIT; i++)
        ck_assert_uint_ne(manifest.states[i].image.bytes[0], 10);
    hdrt__manifest_write(&manifest, &bytes);
    ck_assert_int_eq(read_copy(&bytes, bytes.size, &name_of_entry, true, &read), HDRT_CACHE_HIT);
    ck_assert_uint_eq(read.count, HDRT__STATE_LIMIT);
    ck_assert_uint_eq(read.fields.count, 2);
    ck_assert_str_eq(read.fields.items[0].value, "sm_80");
    ck_assert_ptr_null(read.fields.items[1].value);
    ck_assert_str_eq(read.states[1].reason, "why");
    hdrt__manifest_free(&read);
    ck_assert_int_eq(read_copy(&bytes, bytes.size, &name_of_entry, false, &read), HDRT_CACHE_HIT);
    ck_assert_uint_eq(read.fields.count, 0);
    hdrt__manifest_free(&read);
    hdrt__digest other = hdrt__digest_of("x", 1);
    ck_assert_int_eq(read_copy(&bytes, bytes.size, &other, true, &read), HDRT_CACHE_MISPLACED);
    for (size_t size = 0; size < bytes.size; size += 7)
        ck_assert_int_eq(read_copy(&bytes, size, &name_of_entry, true, &read), HDRT_CACHE_TRUNCATED);
    for (size_t at = 0; at < bytes.size; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes.bytes[at] ^= (unsigned char)(1u << bit);
            ck_assert_int_eq(read_copy(&bytes, bytes.size, &name_of_entry, true, &read),
                             HDRT_CACHE_DAMAGED);
            bytes.bytes[at] ^= (unsigned char)(1u << bit);
        }
    FAILING_MALLOC_EACH(n)
    {
        unsigned char *copy = malloc(bytes.size);
        if (copy)
            memcpy(copy, bytes.bytes, bytes.size);
        if (copy && hdrt__manifest_read(copy, bytes.size, &name_of_entry, true, &read) == HDRT_CACHE_HIT)
            hdrt__manifest_free(&read);
    }
    /* A single state's files stay in the bytes that were read, and live as long as they do. */
    while (manifest.count > 1)
        hdrt__state_free(&manifest.states[--manifest.count]);
    hdrt__buffer_free(&bytes);
    bytes = (hdrt__buffer)HDRT__BUFFER_INIT;
    hdrt__manifest_write(&manifest, &bytes);
    ck_assert_int_eq(read_copy(&bytes, bytes.size, &name_of_entry, true, &read), HDRT_CACHE_HIT);
    ck_assert_uint_eq(read.count, 1);
    state = read.states[0];
    read.count = 0;
    hdrt__manifest_free(&read);
    ck_assert(hdrt__files_valid(&state.files));
    hdrt__state_free(&state);
    hdrt__manifest_free(&manifest);
    hdrt__buffer_free(&bytes);
}
END_TEST

START_TEST(image_names_depend_on_contents)
{
    hdrt__stamp stamp = {1, 2, 3, 4, 5}, other_stamp = {9, 9, 9, 9, 9};
    hdrt__digest digest = hdrt__digest_of("1", 1), changed = hdrt__digest_of("2", 1);
    hdrt__digest names[5];
    for (unsigned i = 0; i < 5; i++) {
        hdrt__record record = {0};
        hdrt__record_add_dependency(&record, i == 3 ? "/b" : "/a", 2, i == 1 ? &other_stamp : &stamp,
                                    i == 2 ? &changed : &digest);
        if (i == 4)
            hdrt__record_add_absent(&record, "/x", 2);
        names[i] = hdrt__record_image(&name_of_entry, &record);
        hdrt__record_free(&record);
    }
    ck_assert(hdrt__digest_equal(&names[0], &names[1])); /* stamps are no contents */
    for (unsigned i = 2; i < 5; i++)
        ck_assert(!hdrt__digest_equal(&names[0], &names[i]));
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
    tcase_add_test(tests, image_round_trip);
    tcase_add_test(tests, image_with_any_bit_flipped_is_a_miss);
    tcase_add_loop_test(tests, image_contents, 0, COUNT(contents));
    tcase_add_test(tests, images_without_memory);
    tcase_add_test(tests, files_are_followed);
    tcase_add_test(tests, folders_tell_what_comes_into_them);
    tcase_add_test(tests, young_files_are_read_again);
    tcase_add_test(tests, damaged_files_are_told);
    tcase_add_test(tests, records_are_settled);
    tcase_add_test(tests, time_macros);
    tcase_add_test(tests, manifest_round_trip);
    tcase_add_test(tests, image_names_depend_on_contents);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
