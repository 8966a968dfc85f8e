/* SPDX-License-Identifier: MIT */
/*
 * The kernel cache and image files through the public header alone: where the cache is, what it counted and holds,
 * damage found and removed, trimming, clearing, explanations; images as bytes. Needs clang, and no GPU.
 */
#include <hdrt.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(call) ck_assert_msg((call) == HDRT_OK, "%s", hdrt_last_error())

static char root[64], cache[96], image_path[512];
static hdrt_runtime *runtime;
static const char *const kernel = "extern \"C\" __global__ void k(int *p) { *p = VALUE; }\n";

static void set_up(void)
{
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    strcpy(root, "/tmp/hdrt-test-public-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    snprintf(cache, sizeof cache, "%s/cache", root);
    unsetenv("HDRT_CACHE_LIMIT");
    unsetenv("HDRT_CACHE_READ_ONLY");
    options.driver = HDRT_DRIVER_NONE;
    options.cache_dir = cache;
    CHECK(hdrt_runtime_create(&options, &runtime));
}

static void tear_down(void)
{
    char command[128];
    hdrt_runtime_destroy(runtime);
    snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

static hdrt_source kernel_source(void)
{
    hdrt_source source = HDRT_SOURCE_INIT;
    source.text = kernel;
    source.name = "k.cu";
    return source;
}

static hdrt_compile_options kernel_options(const char *const *value)
{
    hdrt_compile_options options = HDRT_COMPILE_OPTIONS_INIT;
    options.compiler = HDRT_COMPILER_CLANG;
    options.arch = "sm_80";
    options.options = value;
    options.option_count = 1;
    return options;
}

static hdrt_image *compile(const char *value, bool expected_hit)
{
    const hdrt_source source = kernel_source();
    const hdrt_compile_options options = kernel_options(&value);
    hdrt_image_info info = HDRT_IMAGE_INFO_INIT;
    hdrt_image *image;
    CHECK(hdrt_image_compile(runtime, &source, &options, &image));
    CHECK(hdrt_image_get_info(image, &info));
    ck_assert_int_eq(info.from_cache, expected_hit);
    return image;
}

static bool no_clang(void)
{
    hdrt_compiler_info info = HDRT_COMPILER_INFO_INIT;
    if (hdrt_runtime_compiler(runtime, HDRT_COMPILER_CLANG, &info) == HDRT_OK)
        return false;
    printf("# skipped: %s\n", hdrt_last_error());
    return true;
}

/* Counts the images and remembers the last one's path. */
static bool count_image(void *context, const hdrt_cache_entry *entry)
{
    unsigned *count = context;
    ck_assert_int_eq(entry->reason, HDRT_CACHE_HIT);
    ck_assert_uint_eq(entry->folder, 0);
    if (entry->kind != HDRT_CACHE_IMAGE)
        return true;
    ck_assert_str_eq(entry->arch, "sm_80");
    ck_assert_str_eq(entry->kernels, "k");
    ck_assert_uint_eq(entry->kernel_count, 1);
    ck_assert_uint_gt(entry->bytes, 0);
    snprintf(image_path, sizeof image_path, "%s", entry->path);
    (*count)++;
    return true;
}

static bool count_bad(void *context, const hdrt_cache_entry *entry)
{
    unsigned *count = context;
    ck_assert_int_eq(entry->reason, HDRT_CACHE_TRUNCATED);
    ck_assert_str_eq(entry->path, image_path);
    (*count)++;
    return true;
}

static unsigned images(void)
{
    unsigned count = 0;
    CHECK(hdrt_cache_list(runtime, count_image, &count));
    return count;
}

START_TEST(where_it_is)
{
    hdrt_cache_info info = HDRT_CACHE_INFO_INIT;
    CHECK(hdrt_cache_get_info(runtime, &info));
    ck_assert_str_eq(info.directory, cache);
    ck_assert_ptr_null(info.reason);
    ck_assert_uint_eq(info.limit_bytes, UINT64_C(1) << 30);
    ck_assert_uint_eq(info.read_only_count, 0);
    ck_assert_ptr_null(hdrt_cache_read_only(runtime, 0, NULL));
    ck_assert_int_eq(access(cache, F_OK), -1); /* looking makes nothing */
    ck_assert_uint_eq(images(), 0);
    ck_assert_int_eq(hdrt_cache_get_info(NULL, &info), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_cache_get_info(runtime, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_cache_list(runtime, NULL, NULL), HDRT_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(what_it_holds_and_did)
{
    hdrt_cache_stats stats = HDRT_CACHE_STATS_INIT;
    hdrt_cache_summary summary = HDRT_CACHE_SUMMARY_INIT;
    unsigned bad = 0;
    if (no_clang())
        return;
    hdrt_image_destroy(compile("-DVALUE=1", false));
    hdrt_image_destroy(compile("-DVALUE=1", true));
    hdrt_image_destroy(compile("-DVALUE=2", false));
    ck_assert_uint_eq(images(), 2);
    CHECK(hdrt_cache_get_stats(runtime, HDRT_CACHE_THIS_RUNTIME, &stats));
    ck_assert_uint_eq(stats.compiles, 2);
    ck_assert_uint_eq(stats.stored, 2);
    ck_assert_uint_eq(stats.memory_hits + stats.disk_hits, 1);
    ck_assert_uint_eq(stats.misses[HDRT_CACHE_NEW], 1);
    ck_assert_uint_eq(stats.misses[HDRT_CACHE_OPTION_CHANGED], 1);
    CHECK(hdrt_cache_reset_stats(runtime));
    CHECK(hdrt_cache_get_stats(runtime, HDRT_CACHE_THIS_RUNTIME, &stats));
    ck_assert_uint_eq(stats.compiles, 0);

    CHECK(hdrt_cache_verify(runtime, false, count_bad, &bad, &summary));
    ck_assert_uint_eq(bad, 0);
    ck_assert_uint_eq(summary.bad_files, 0);
    ck_assert_uint_ge(summary.files, 4);
    ck_assert_int_eq(truncate(image_path, 100), 0);
    CHECK(hdrt_cache_verify(runtime, true, count_bad, &bad, &summary));
    ck_assert_uint_eq(bad, 1);
    ck_assert_uint_eq(summary.bad_files, 1);
    ck_assert_uint_eq(summary.removed_files, 1);
    ck_assert_uint_eq(images(), 1);
    CHECK(hdrt_cache_trim(runtime, 1, 0, &summary));
    ck_assert_uint_eq(images(), 0);
    CHECK(hdrt_cache_clear(runtime, &summary));
    CHECK(hdrt_cache_verify(runtime, false, NULL, NULL, &summary));
    ck_assert_uint_eq(summary.bad_files, 0);
}
END_TEST

/* The explanation of an invocation: its reason, and the options that are other than those of the last compile. */
static void explain(const char *value, hdrt_cache_reason reason, const char *changed)
{
    const hdrt_source source = kernel_source();
    const hdrt_compile_options options = kernel_options(&value);
    hdrt_explanation_info info = HDRT_EXPLANATION_INFO_INIT;
    hdrt_explanation *explanation;
    hdrt_difference difference;
    bool found = changed == NULL;
    CHECK(hdrt_cache_explain(runtime, &source, &options, &explanation));
    CHECK(hdrt_explanation_get_info(explanation, &info));
    ck_assert_msg(info.reason == reason, "%s", info.text);
    ck_assert_uint_eq(strlen(info.key), 64);
    ck_assert_int_eq(info.image != NULL, reason == HDRT_CACHE_HIT);
    for (uint32_t i = 0; i < info.difference_count; i++) {
        CHECK(hdrt_explanation_difference(explanation, i, &difference));
        found = found || (difference.now && strstr(difference.now, changed));
    }
    ck_assert_msg(found, "%s", info.text);
    ck_assert_int_eq(hdrt_explanation_difference(explanation, info.difference_count, &difference),
                     HDRT_ERROR_NOT_FOUND);
    hdrt_explanation_destroy(explanation);
}

START_TEST(why)
{
    if (no_clang())
        return;
    explain("-DVALUE=1", HDRT_CACHE_NEW, NULL);
    hdrt_image_destroy(compile("-DVALUE=1", false));
    explain("-DVALUE=1", HDRT_CACHE_HIT, NULL);
    explain("-DVALUE=2", HDRT_CACHE_OPTION_CHANGED, "VALUE=2");
    explain("-DVALUE=1", HDRT_CACHE_HIT, NULL);
    hdrt_explanation_destroy(NULL);
}
END_TEST

/* An image file has all that the image had; with any byte changed or missing it is refused. */
START_TEST(images_as_bytes)
{
    static const char text[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                               ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n    ret;\n}\n";
    hdrt_image *first, *again, *bad;
    hdrt_image_info info = HDRT_IMAGE_INFO_INIT;
    hdrt_image_kernel_info about = HDRT_IMAGE_KERNEL_INFO_INIT;
    const void *bytes;
    size_t size;
    CHECK(hdrt_image_read(text, strlen(text), "k.ptx", &first));
    CHECK(hdrt_image_write(first, &bytes, &size));
    CHECK(hdrt_image_read(bytes, size, "k.i", &again));
    CHECK(hdrt_image_get_info(again, &info));
    ck_assert_int_eq(info.kind, HDRT_CODE_PTX);
    ck_assert_str_eq(info.arch, "sm_80");
    ck_assert_uint_eq(info.code_size, strlen(text));
    ck_assert_mem_eq(info.code, text, sizeof text);
    ck_assert_uint_eq(info.kernel_count, 1);
    CHECK(hdrt_image_kernel(again, 0, &about));
    ck_assert_str_eq(about.name, "k");
    ck_assert_uint_eq(about.parameter_count, 2);
    unsigned char *copy = malloc(size);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, size);
    for (size_t at = 0; at < size; at++) {
        copy[at] ^= 1u << (at % 8);
        ck_assert_int_eq(hdrt_image_read(copy, size, "bad", &bad), HDRT_ERROR_INVALID_IMAGE);
        ck_assert_ptr_null(bad);
        copy[at] ^= 1u << (at % 8);
        ck_assert_int_ne(hdrt_image_read(copy, at, "short", &bad), HDRT_OK);
        ck_assert_ptr_null(bad);
    }
    ck_assert_int_eq(hdrt_image_write(NULL, &bytes, &size), HDRT_ERROR_INVALID_ARGUMENT);
    free(copy);
    hdrt_image_destroy(again);
    hdrt_image_destroy(first);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("public cache");
    TCase *tests = tcase_create("public cache");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, where_it_is);
    tcase_add_test(tests, what_it_holds_and_did);
    tcase_add_test(tests, why);
    tcase_add_test(tests, images_as_bytes);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
