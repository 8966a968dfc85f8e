/* SPDX-License-Identifier: MIT */
/* Manifests: the files that a compile read or looked for in vain, as they change, come and go; and their bytes. */
#include <hdrt.h>

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failing_malloc.h"
#include "jit/manifest.h"

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

static char root[64]; /* a folder of the test's own */
static hdrt__digest name_of_entry;

static void set_up(void)
{
    strcpy(root, "/tmp/hdrt-test-manifest-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    name_of_entry = hdrt__digest_of("entry", 5);
}

static void tear_down(void)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

/* ---- files that were read or looked for in vain ----------------------------------------------------------------- */

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

/* ---- manifests -------------------------------------------------------------------------------------------------- */

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
    Suite *suite = suite_create("jit manifest");
    TCase *tests = tcase_create("manifest");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
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
