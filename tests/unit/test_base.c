/* SPDX-License-Identifier: MIT */
#include <hdrt.h>

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/buffer.h"
#include "base/digest.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/number.h"
#include "base/status.h"
#include "failing_malloc.h"

START_TEST(status_list_is_consistent)
{
    static const hdrt_status all[] = {
#define VALUE(name, number, text) name,
        HDRT_STATUS_LIST(VALUE)
#undef VALUE
    };
    size_t count = sizeof all / sizeof *all;
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(strncmp(hdrt_status_name(all[i]), "HDRT_", 5), 0);
        ck_assert_str_ne(hdrt_status_text(all[i]), "unknown status");
        for (size_t j = 0; j < i; j++)
            ck_assert_int_ne(all[i], all[j]);
    }
    ck_assert_str_eq(hdrt_status_name(HDRT_ERROR_NO_DEVICE), "HDRT_ERROR_NO_DEVICE");
    ck_assert_str_eq(hdrt_status_name((hdrt_status)-999), "HDRT_STATUS_?");
    ck_assert_str_eq(hdrt_status_text((hdrt_status)-999), "unknown status");
    ck_assert_uint_eq(hdrt_version(), HDRT_VERSION);
}
END_TEST

START_TEST(last_error_is_kept)
{
    ck_assert_int_eq(hdrt__fail(HDRT_ERROR_IO, "cannot read '%s': %d", "x", 7), HDRT_ERROR_IO);
    ck_assert_str_eq(hdrt_last_error(), "cannot read 'x': 7");
    hdrt__fail_prefix("batch %d", 3);
    ck_assert_str_eq(hdrt_last_error(), "batch 3: cannot read 'x': 7");
    /* The new message may be made from the old one. */
    hdrt__fail(HDRT_ERROR_IO, "again: %s", hdrt_last_error());
    ck_assert_str_eq(hdrt_last_error(), "again: batch 3: cannot read 'x': 7");
    ck_assert_int_eq(hdrt__fail_with(HDRT_ERROR_LAUNCH, "stored %s"), HDRT_ERROR_LAUNCH);
    ck_assert_str_eq(hdrt_last_error(), "stored %s");
    hdrt__fail_with(HDRT_ERROR_LAUNCH, hdrt_last_error());
    ck_assert_str_eq(hdrt_last_error(), "stored %s");
    hdrt__fail_with(HDRT_ERROR_LAUNCH, NULL);
    ck_assert_str_eq(hdrt_last_error(), hdrt_status_text(HDRT_ERROR_LAUNCH));
    hdrt__fail(HDRT_ERROR_IO, "cannot format %lc", (wint_t)0x7fffffff);
    ck_assert_str_eq(hdrt_last_error(), "cannot format %lc");
}
END_TEST

START_TEST(long_messages_are_cut)
{
    char *text = malloc(3 * HDRT__MESSAGE_SIZE);
    memset(text, 'a', 3 * HDRT__MESSAGE_SIZE - 1);
    text[3 * HDRT__MESSAGE_SIZE - 1] = 0;
    for (int way = 0; way < 3; way++) {
        if (way == 0)
            hdrt__fail(HDRT_ERROR_IO, "%s", text);
        else if (way == 1)
            hdrt__fail_with(HDRT_ERROR_IO, text);
        else
            hdrt__fail_prefix("prefix");
        const char *last = hdrt_last_error();
        ck_assert_uint_eq(strlen(last), HDRT__MESSAGE_SIZE - 1);
        ck_assert_str_eq(last + HDRT__MESSAGE_SIZE - 4, "...");
    }
    hdrt__fail_prefix("%s", text);
    ck_assert_uint_eq(strlen(hdrt_last_error()), HDRT__MESSAGE_SIZE - 1);
    free(text);
}
END_TEST

static void *fail_elsewhere(void *result)
{
    bool *right = result;
    *right = hdrt_last_error()[0] == 0;
    hdrt__fail(HDRT_ERROR_IO, "elsewhere");
    *right = *right && strcmp(hdrt_last_error(), "elsewhere") == 0;
    return NULL;
}

START_TEST(messages_are_per_thread)
{
    hdrt__fail(HDRT_ERROR_IO, "here");
    pthread_t thread;
    bool right = false;
    ck_assert_int_eq(pthread_create(&thread, NULL, fail_elsewhere, &right), 0);
    pthread_join(thread, NULL);
    ck_assert(right);
    ck_assert_str_eq(hdrt_last_error(), "here");
}
END_TEST

static bool setspecific_fails;
int __real_pthread_setspecific(pthread_key_t key, const void *value);
int __wrap_pthread_setspecific(pthread_key_t key, const void *value);
int __wrap_pthread_setspecific(pthread_key_t key, const void *value)
{
    return setspecific_fails ? ENOMEM : __real_pthread_setspecific(key, value);
}

static void *fail_without_key(void *result)
{
    setspecific_fails = true;
    hdrt__fail_memory(42, "a message");
    setspecific_fails = false;
    *(bool *)result = strcmp(hdrt_last_error(), "out of host memory: 42 bytes for a message") == 0;
    return NULL;
}

START_TEST(a_thread_without_a_buffer_reports_too)
{
    pthread_t thread;
    bool right = false;
    ck_assert_int_eq(pthread_create(&thread, NULL, fail_without_key, &right), 0);
    pthread_join(thread, NULL);
    ck_assert(right);
}
END_TEST

typedef struct starved {
    hdrt_status status;
    bool failed;
    char message[256], cut[256], later[256];
} starved;

/* On a thread of its own, which has no buffer yet. */
static void *fail_starved(void *argument)
{
    starved *seen = argument;
    failing_malloc_arm_from(1);
    seen->status = hdrt__fail_memory(123456, "the list of tests");
    seen->failed = failing_malloc_disarm();
    snprintf(seen->message, sizeof seen->message, "%s", hdrt_last_error());
    failing_malloc_arm_from(1);
    for (int i = 0; i < 20; i++)
        hdrt__fail_prefix("while doing something long %d", i);
    failing_malloc_disarm();
    snprintf(seen->cut, sizeof seen->cut, "%s", hdrt_last_error());
    hdrt__fail(HDRT_ERROR_IO, "memory is back");
    snprintf(seen->later, sizeof seen->later, "%s", hdrt_last_error());
    return NULL;
}

START_TEST(out_of_memory_is_reported_without_memory)
{
    starved seen;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, fail_starved, &seen), 0);
    pthread_join(thread, NULL);
    ck_assert(seen.failed);
    ck_assert_int_eq(seen.status, HDRT_ERROR_OUT_OF_MEMORY);
    ck_assert_str_eq(seen.message, "out of host memory: 123456 bytes for the list of tests");
    ck_assert_str_eq(seen.cut + strlen(seen.cut) - 3, "...");
    ck_assert_str_eq(seen.later, "memory is back");
}
END_TEST

typedef struct sample_options {
    size_t size;
    uint32_t number;
    uint32_t reserved[3];
} sample_options;

static hdrt_status read_sample(const void *given, sample_options *known)
{
    return hdrt__options_read("sample_options", given, known, sizeof *known, offsetof(sample_options, reserved));
}

START_TEST(options_protocol)
{
    struct {
        sample_options base;
        uint32_t newer[2];
    } given = {{.size = sizeof(sample_options), .number = 5}, {0}};
    sample_options known;
    ck_assert_int_eq(read_sample(NULL, &known), HDRT_OK);
    ck_assert_uint_eq(known.size, sizeof known);
    ck_assert_uint_eq(known.number, 0);
    ck_assert_int_eq(read_sample(&given, &known), HDRT_OK);
    ck_assert_uint_eq(known.number, 5);

    given.base.reserved[2] = 1;
    ck_assert_int_eq(read_sample(&given, &known), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "sample_options: the reserved byte at offset 20"));
    given.base.reserved[2] = 0;

    given.base.size = sizeof given; /* a newer caller, nothing new set */
    ck_assert_int_eq(read_sample(&given, &known), HDRT_OK);
    ck_assert_uint_eq(known.size, sizeof known);
    given.newer[1] = 1;
    ck_assert_int_eq(read_sample(&given, &known), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "does not know"));

    static const size_t bad[] = {0, 1, 8, 11, SIZE_MAX, 1 << 20};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        given.base.size = bad[i];
        ck_assert_int_eq(read_sample(&given, &known), HDRT_ERROR_INVALID_ARGUMENT);
    }
    given.base.size = offsetof(sample_options, reserved); /* an older caller */
    ck_assert_int_eq(read_sample(&given, &known), HDRT_OK);
    ck_assert_uint_eq(known.number, 5);
}
END_TEST

/* hdrt__options_read takes all bytes from the first reserved one to the end for reserved ones: no padding there. */
#define ENDS_WITHOUT_PADDING(type, last)                                                                               \
    ck_assert_uint_eq(sizeof(type), offsetof(type, last) + sizeof(((type *)0)->last))

START_TEST(option_structs_have_no_padding_at_their_end)
{
    ENDS_WITHOUT_PADDING(hdrt_runtime_options, reserved);
    ENDS_WITHOUT_PADDING(hdrt_device_options, reserved);
    ENDS_WITHOUT_PADDING(hdrt_compile_options, reserved);
    ENDS_WITHOUT_PADDING(hdrt_queue_options, reserved);
    ENDS_WITHOUT_PADDING(hdrt_launch_options, reserved);
}
END_TEST

START_TEST(info_protocol)
{
    struct {
        sample_options base;
        uint32_t newer;
    } given = {{.size = sizeof(sample_options) + 4}, 9};
    sample_options full = {.size = 77, .number = 3, .reserved = {1, 2, 4}};
    ck_assert_int_eq(hdrt__info_write("sample", &given, &full, sizeof full), HDRT_OK);
    ck_assert_uint_eq(given.base.size, sizeof(sample_options) + 4);
    ck_assert_uint_eq(given.base.reserved[2], 4);
    ck_assert_uint_eq(given.newer, 0);
    given.base = (sample_options){.size = 12, .reserved = {8}};
    ck_assert_int_eq(hdrt__info_write("sample", &given, &full, sizeof full), HDRT_OK);
    ck_assert_uint_eq(given.base.number, 3);
    ck_assert_uint_eq(given.base.reserved[0], 8);
    ck_assert_int_eq(hdrt__info_write("sample", NULL, &full, sizeof full), HDRT_ERROR_INVALID_ARGUMENT);
    given.base.size = 8;
    ck_assert_int_eq(hdrt__info_write("sample", &given, &full, sizeof full), HDRT_ERROR_INVALID_ARGUMENT);
    given.base.size = SIZE_MAX;
    ck_assert_int_eq(hdrt__info_write("sample", &given, &full, sizeof full), HDRT_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(buffer_grows)
{
    hdrt__buffer buffer = HDRT__BUFFER_INIT;
    size_t size = 99;
    char *taken = hdrt__buffer_take(&buffer, &size);
    ck_assert_str_eq(taken, "");
    ck_assert_uint_eq(size, 0);
    free(taken);
    for (int i = 0; i < 1000; i++)
        hdrt__buffer_format(&buffer, "%03d", i);
    hdrt__buffer_text(&buffer, "|");
    hdrt__buffer_u32(&buffer, 0x44434241);
    hdrt__buffer_u64(&buffer, 0x4847464544434241u);
    ck_assert(!buffer.failed);
    taken = hdrt__buffer_take(&buffer, &size);
    ck_assert_uint_eq(size, 3013);
    ck_assert_str_eq(taken + 2997, "999|ABCDABCDEFGH");
    free(taken);
    hdrt__buffer_format(&buffer, "cannot format %lc", (wint_t)0x7fffffff);
    ck_assert(buffer.failed);
    hdrt__buffer_free(&buffer);
    hdrt__buffer_append(&buffer, "x", SIZE_MAX);
    ck_assert(buffer.failed);
    hdrt__buffer_text(&buffer, "y");
    ck_assert_ptr_null(hdrt__buffer_take(&buffer, &size));
    ck_assert(!buffer.failed);
}
END_TEST

START_TEST(buffer_survives_lack_of_memory)
{
    long runs = 0;
    char *taken = NULL;
    bool always_null = true;
    FAILING_MALLOC_EACH(n)
    {
        free(taken);
        hdrt__buffer buffer = HDRT__BUFFER_INIT;
        hdrt__buffer_text(&buffer, "begin");
        for (int i = 0; i < 100; i++)
            hdrt__buffer_format(&buffer, "%d,", i);
        taken = hdrt__buffer_take(&buffer, NULL);
        if (taken)
            runs = n;
        else
            always_null = always_null && buffer.bytes == NULL;
    }
    ck_assert_int_ge(runs, 3);
    ck_assert(always_null);
    ck_assert_int_eq(strncmp(taken, "begin0,1,", 9), 0);
    free(taken);
}
END_TEST

/* Every bit, every cut and every length of zeros makes another checksum, and one value is known. */
START_TEST(checksum_tells_damage)
{
    unsigned char bytes[300], all[300][HDRT__CHECKSUM_SIZE], whole[HDRT__CHECKSUM_SIZE], other[HDRT__CHECKSUM_SIZE];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7);
    hdrt__checksum_of(bytes, sizeof bytes, whole);
    for (unsigned bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        hdrt__checksum_of(bytes, sizeof bytes, other);
        ck_assert(memcmp(other, whole, sizeof whole) != 0);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (unsigned size = 0; size < sizeof bytes; size++) {
        hdrt__checksum_of(bytes, size, other);
        ck_assert(memcmp(other, whole, sizeof whole) != 0);
    }
    memset(bytes, 0, sizeof bytes);
    for (unsigned size = 0; size < sizeof bytes; size++) {
        hdrt__checksum_of(bytes, size, all[size]);
        for (unsigned shorter = 0; shorter < size; shorter++)
            ck_assert(memcmp(all[size], all[shorter], sizeof whole) != 0);
    }
    /* Of nothing it is the second half of the key: entries stay readable as long as this holds. */
    ck_assert_mem_eq(all[0], "sum, no secret\0", sizeof all[0]);
}
END_TEST

START_TEST(digest_is_blake2b)
{
    /* BLAKE2b-256 of "abc", from the reference implementation (b2sum -l 256). */
    char hex[2 * HDRT__DIGEST_SIZE + 1];
    hdrt__digest digest = hdrt__digest_of("abc", 3), parsed;
    hdrt__digest_hex(&digest, hex);
    ck_assert_str_eq(hex, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
    ck_assert(hdrt__digest_parse(hex, &parsed));
    ck_assert(hdrt__digest_equal(&digest, &parsed));
    hex[5] = 'A';
    ck_assert(!hdrt__digest_parse(hex, &parsed));
    ck_assert(!hdrt__digest_parse("bd", &parsed));
    ck_assert(!hdrt__digest_parse("", &parsed));
    hex[5] = 'a';
    char longer[80];
    snprintf(longer, sizeof longer, "%s0", hex);
    ck_assert(!hdrt__digest_parse(longer, &parsed));
    digest = hdrt__digest_of(NULL, 0);
    hdrt__digest_hex(&digest, hex);
    ck_assert_int_eq(strncmp(hex, "0e5751c026e543b2", 16), 0);
}
END_TEST

START_TEST(fields_do_not_run_together)
{
    hdrt__digest digests[9];
    for (int i = 0; i < 9; i++) {
        hdrt__hasher hasher;
        hdrt__hasher_begin(&hasher, i == 0 ? "other" : "purpose");
        switch (i) {
        case 0: case 1: hdrt__hasher_text(&hasher, 1, "ab"); hdrt__hasher_text(&hasher, 1, "c"); break;
        case 2: hdrt__hasher_text(&hasher, 1, "a"); hdrt__hasher_text(&hasher, 1, "bc"); break;
        case 3: hdrt__hasher_text(&hasher, 2, "ab"); hdrt__hasher_text(&hasher, 1, "c"); break;
        case 4: hdrt__hasher_text(&hasher, 1, ""); break;
        case 5: hdrt__hasher_text(&hasher, 1, NULL); break;
        case 6: hdrt__hasher_field(&hasher, 1, "", 0); break;
        case 7: hdrt__hasher_number(&hasher, 1, 0x4142434445464748u); break;
        case 8: hdrt__hasher_text(&hasher, 1, "HGFEDCBA"); break;
        }
        digests[i] = hdrt__hasher_end(&hasher);
        for (int j = 0; j < i; j++)
            ck_assert(!hdrt__digest_equal(&digests[i], &digests[j]));
    }
}
END_TEST

START_TEST(numbers)
{
    size_t size;
    ck_assert(hdrt__size_add(1, 2, &size) && size == 3);
    ck_assert(!hdrt__size_add(SIZE_MAX, 1, &size));
    ck_assert(!hdrt__size_multiply(SIZE_MAX / 2, 3, &size));
    uint64_t now = hdrt__now_ns();
    ck_assert_uint_ge(hdrt__deadline(1000), now + 1000);
    ck_assert_uint_eq(hdrt__deadline(HDRT_FOREVER), UINT64_MAX);
    ck_assert_uint_eq(hdrt__deadline(UINT64_MAX - 1), UINT64_MAX);
    static const char *const paths[][3] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"/", "b", "/b"}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char *path = hdrt__path_join(paths[i][0], paths[i][1]);
        ck_assert_str_eq(path, paths[i][2]);
        free(path);
    }
    failing_malloc_arm(1);
    char *path = hdrt__path_join("a", "b");
    failing_malloc_disarm();
    ck_assert_ptr_null(path);
}
END_TEST

START_TEST(environment_table)
{
    hdrt_environment_variable variable;
    uint32_t count = 0;
    setenv("HDRT_CLANG", "/some/clang", 1);
    setenv("HDRT_NVRTC", "", 1);
    while (hdrt_environment_get(count, &variable) == HDRT_OK) {
        ck_assert_int_eq(strncmp(variable.name, "HDRT_", 5), 0);
        ck_assert(strlen(variable.meaning) > 10);
        if (strcmp(variable.name, "HDRT_CLANG") == 0)
            ck_assert_str_eq(variable.value, "/some/clang");
        if (strcmp(variable.name, "HDRT_NVRTC") == 0)
            ck_assert_ptr_null(variable.value);
        count++;
    }
    ck_assert_uint_eq(count, HDRT__ENV_COUNT);
    ck_assert_int_eq(hdrt_environment_get(count, &variable), HDRT_ERROR_NOT_FOUND);
    ck_assert_int_eq(hdrt_environment_get(0, NULL), HDRT_ERROR_INVALID_ARGUMENT);
}
END_TEST

typedef struct captured_log {
    int lines;
    hdrt_log_level level;
    size_t length;
    char line[64];
} captured_log;

static void capture_line(void *context, hdrt_log_level level, const char *line)
{
    captured_log *log = context;
    log->lines++;
    log->level = level;
    log->length = strlen(line);
    snprintf(log->line, sizeof log->line, "%s", line);
}

START_TEST(log_goes_to_the_callback)
{
    captured_log log = {0};
    unsetenv("HDRT_LOG");
    ck_assert(!hdrt__log_enabled(HDRT_LOG_ERROR));
    hdrt_log_set(HDRT_LOG_WARN, capture_line, &log);
    ck_assert(!hdrt__log_enabled(HDRT_LOG_NONE));
    ck_assert(hdrt__log_enabled(HDRT_LOG_WARN) && !hdrt__log_enabled(HDRT_LOG_INFO));
    hdrt__log(HDRT_LOG_INFO, "not wanted");
    ck_assert_int_eq(log.lines, 0);
    hdrt__log(HDRT_LOG_ERROR, "two\nlines %d", 2);
    ck_assert_int_eq(log.lines, 1);
    ck_assert_int_eq(log.level, HDRT_LOG_ERROR);
    ck_assert_str_eq(log.line, "two lines 2");
    hdrt__log(HDRT_LOG_WARN, "%s%5000d", "much too long", 1);
    ck_assert_int_eq(log.lines, 2);
    ck_assert_uint_eq(log.length, 4095);
    hdrt__log(HDRT_LOG_WARN, "cannot format %lc", (wint_t)0x7fffffff);
    log.lines = 1;
    hdrt__log((hdrt_log_level)77, "no such level");
    ck_assert_int_eq(log.lines, 1);
    hdrt_log_set(HDRT_LOG_DEBUG, NULL, NULL);
    ck_assert(!hdrt__log_enabled(HDRT_LOG_ERROR));
}
END_TEST

START_TEST(log_goes_to_standard_error)
{
    char text[128] = "";
    int pipes[2], saved = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe(pipes), 0);
    setenv("HDRT_LOG", "info", 1);
    hdrt_log_set(HDRT_LOG_NONE, NULL, NULL);
    dup2(pipes[1], STDERR_FILENO);
    hdrt__log(HDRT_LOG_DEBUG, "too much");
    hdrt__log(HDRT_LOG_INFO, "chose %s", "soft");
    dup2(saved, STDERR_FILENO);
    close(pipes[1]);
    ck_assert_int_gt(read(pipes[0], text, sizeof text - 1), 0);
    ck_assert_str_eq(text, "hdrt: info: chose soft\n");
    close(pipes[0]);
    close(saved);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base");
    TCase *tests = tcase_create("base");
    tcase_add_test(tests, status_list_is_consistent);
    tcase_add_test(tests, last_error_is_kept);
    tcase_add_test(tests, long_messages_are_cut);
    tcase_add_test(tests, messages_are_per_thread);
    tcase_add_test(tests, out_of_memory_is_reported_without_memory);
    tcase_add_test(tests, a_thread_without_a_buffer_reports_too);
    tcase_add_test(tests, options_protocol);
    tcase_add_test(tests, option_structs_have_no_padding_at_their_end);
    tcase_add_test(tests, info_protocol);
    tcase_add_test(tests, buffer_grows);
    tcase_add_test(tests, buffer_survives_lack_of_memory);
    tcase_add_test(tests, digest_is_blake2b);
    tcase_add_test(tests, checksum_tells_damage);
    tcase_add_test(tests, fields_do_not_run_together);
    tcase_add_test(tests, numbers);
    tcase_add_test(tests, environment_table);
    tcase_add_test(tests, log_goes_to_the_callback);
    tcase_add_test(tests, log_goes_to_standard_error);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
