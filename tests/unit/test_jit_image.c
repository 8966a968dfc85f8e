/* SPDX-License-Identifier: MIT */
/* Compiled code as the bytes of an image file: read as it was written, and told from damage and wrong contents. */
#include <hdrt.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "failing_malloc.h"
#include "jit/container.h"
#include "jit/image.h"

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

static hdrt__digest name_of_entry;

static void set_up(void)
{
    name_of_entry = hdrt__digest_of("entry", 5);
}

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

int main(void)
{
    Suite *suite = suite_create("jit image");
    TCase *tests = tcase_create("image");
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, image_round_trip);
    tcase_add_test(tests, image_with_any_bit_flipped_is_a_miss);
    tcase_add_loop_test(tests, image_contents, 0, COUNT(contents));
    tcase_add_test(tests, images_without_memory);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
