/* SPDX-License-Identifier: MIT */
/*
 * The race check through the library: two queues work at the two halves of one buffer, split at an odd byte, with
 * kernels/upper.cu and with a kernel written by hand. No race; with one byte of overlap a race, which is reported with
 * both kernels' lines and streams.
 */
#include "kernel_runner.h"

#include <hdrt/interop.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 2001u
#define MIDDLE 1001u

static const char hand_written[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry upper(.param .u64 in, .param .u64 out, .param .u64 n)\n"
    "{\n"
    "    .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %d<8>;\n"
    "    ld.param.u64 %d0, [in];\n"
    "    ld.param.u64 %d1, [out];\n"
    "    ld.param.u64 %d2, [n];\n"
    "    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"
    "    mad.lo.u32 %r0, %r0, %r1, %r2;\n"
    "    cvt.u64.u32 %d3, %r0;\n"
    "    setp.ge.u64 %p0, %d3, %d2;\n"
    "    @%p0 bra DONE;\n"
    "    add.u64 %d4, %d0, %d3;\n"
    "    add.u64 %d5, %d1, %d3;\n"
    "    ld.global.u8 %r3, [%d4];\n"
    "    add.u32 %r4, %r3, -97;\n"
    "    setp.lt.u32 %p1, %r4, 26;\n"
    "    add.u32 %r5, %r3, -32;\n"
    "    selp.b32 %r6, %r5, %r3, %p1;\n"
    "    st.global.u8 [%d5], %r6;\n"
    "DONE:\n"
    "    ret;\n"
    "}\n";

static struct kernel_runner runner;
static hdrt_queue *other;
static char text[65536];
static unsigned races;
static const char *where; /* the store */

static void keep(void *ignored, const char *kind, const char *report, unsigned long long count)
{
    (void)ignored, (void)count;
    races += strcmp(kind, "race") == 0;
    snprintf(text, sizeof text, "%s", report);
}

static void must(hdrt_status status)
{
    ck_assert_msg(status == HDRT_OK, "%s", hdrt_last_error());
}

/* On a stream that they share, two queues would be in order by accident. */
static hdrt_queue *make_exclusive(void)
{
    hdrt_queue *queue = NULL;
    hdrt_queue_options options = HDRT_QUEUE_OPTIONS_INIT;
    options.exclusive = true;
    must(hdrt_queue_create(runner.device, &options, &queue));
    return queue;
}

static void watch(void)
{
    void *symbol = hdrt_runtime_driver_symbol(runner.runtime, "hdsoft_set_report");
    void (*report_to)(void (*)(void *, const char *, const char *, unsigned long long), void *);
    ck_assert_ptr_nonnull(symbol);
    memcpy(&report_to, &symbol, sizeof report_to);
    report_to(keep, NULL);
    other = make_exclusive();
}

static void open_device(void)
{
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    options.driver = HDRT_DRIVER_SOFT;
    setenv("HDSOFT_CHECK", "race", 1);
    memset(&runner, 0, sizeof runner);
    must(hdrt_runtime_create(&options, &runner.runtime));
    must(hdrt_device_open(runner.runtime, 0, NULL, &runner.device));
    runner.queue = make_exclusive();
}

static void open_compiled(void)
{
    static const char *const line_info[] = {"-lineinfo"};
    hdrt_compile_options compile = HDRT_COMPILE_OPTIONS_INIT;
    hdrt_source file = HDRT_SOURCE_INIT;
    const char *top = getenv("abs_top_srcdir");
    char path[4096];
    snprintf(path, sizeof path, "%s/kernels/upper.cu", top ? top : ".");
    file.path = path;
    compile.compiler = HDRT_COMPILER_CLANG;
    compile.options = line_info;
    compile.option_count = 1;
    open_device();
    must(hdrt_module_compile(runner.device, &file, &compile, &runner.module));
    where = "upper.cu:13";
    watch();
}

static void open_written(void)
{
    open_device();
    must(hdrt_module_load(runner.device, hand_written, sizeof hand_written, NULL, &runner.module));
    where = "PTX line 22";
    watch();
}

static void close_both(void)
{
    hdrt_queue_destroy(other);
    kernel_runner_close(&runner);
}

/* Two queues, of which the first goes `overlap` bytes too far. */
static void halves(unsigned overlap)
{
    unsigned char bytes[BYTES], result[BYTES];
    hdrt_kernel *kernel;
    for (unsigned i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)('a' + i % 26);
    hdrt_ptr memory = kernel_runner_upload(&runner, bytes, BYTES), middle = memory + MIDDLE;
    must(hdrt_queue_synchronize(runner.queue));
    must(hdrt_module_kernel(runner.module, "upper", &kernel));
    unsigned long long first = MIDDLE + overlap, second = BYTES - MIDDLE;
    must(hdrt_launch(runner.queue, kernel, hdrt_grid_1d(first, 128), HDRT_ARGS(memory, memory, first)));
    must(hdrt_launch(other, kernel, hdrt_grid_1d(second, 128), HDRT_ARGS(middle, middle, second)));
    must(hdrt_queue_synchronize(other));
    kernel_runner_take(&runner, result, memory, BYTES);
    for (unsigned i = 0; i < BYTES; i++)
        ck_assert_int_eq(result[i], 'A' + i % 26);
}

START_TEST(halves_do_not_race)
{
    halves(0);
    ck_assert_msg(races == 0, "%s", text);
}
END_TEST

START_TEST(one_byte_races)
{
    halves(1);
    ck_assert_uint_gt(races, 0);
    const char *first = strstr(text, "by kernel 'upper'");
    ck_assert_msg(first && strstr(first + 1, "by kernel 'upper'"), "%s", text);
    ck_assert_msg(strstr(text, "race: 1 byte at ") && strstr(text, where) && strstr(text, "in stream "), "%s", text);
}
END_TEST

static void add_case(Suite *suite, const char *name, void (*open)(void))
{
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, open, close_both);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, halves_do_not_race);
    tcase_add_test(tcase, one_byte_races);
    suite_add_tcase(suite, tcase);
}

int main(void)
{
    const char *driver = getenv("HDRT_TEST_DRIVER");
    if (driver && strcmp(driver, "cuda") == 0) {
        fputs("1..0 # SKIP the soft driver's own\n", stdout);
        return 0;
    }
    Suite *suite = suite_create("race_upper");
    add_case(suite, "written", open_written);
    if (!kernel_runner_skip())
        add_case(suite, "compiled", open_compiled);
    SRunner *suite_runner = srunner_create(suite);
    srunner_set_tap(suite_runner, "-");
    srunner_run_all(suite_runner, CK_ENV);
    srunner_free(suite_runner);
    return 0;
}
