/* SPDX-License-Identifier: MIT */
#include "kernel_runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASSERT_OK(call)                                                                                                \
    do {                                                                                                               \
        hdrt_status status_ = (call);                                                                                  \
        ck_assert_msg(status_ == HDRT_OK, "%s: %s: %s", #call, hdrt_status_name(status_), hdrt_last_error());         \
    } while (0)

static bool on_cuda(void)
{
    const char *driver = getenv("HDRT_TEST_DRIVER");

    return driver && strcmp(driver, "cuda") == 0;
}

static hdrt_compiler asked_compiler(void)
{
    const char *compiler = getenv("HDRT_TEST_COMPILER");

    if (compiler && strcmp(compiler, "clang") == 0)
        return HDRT_COMPILER_CLANG;
    if (compiler && strcmp(compiler, "nvrtc") == 0)
        return HDRT_COMPILER_NVRTC;
    return HDRT_COMPILER_AUTO;
}

static bool has_compiler(hdrt_runtime *runtime, hdrt_compiler compiler)
{
    hdrt_compiler_info info = HDRT_COMPILER_INFO_INIT;

    return hdrt_runtime_compiler(runtime, compiler, &info) == HDRT_OK && info.path;
}

const char *kernel_runner_skip(void)
{
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    hdrt_compiler compiler = asked_compiler();
    hdrt_runtime *runtime;
    bool found;

    if (getenv("HDRT_TEST_PTX"))
        return NULL;
    options.driver = HDRT_DRIVER_NONE;
    if (hdrt_runtime_create(&options, &runtime) != HDRT_OK)
        return NULL; /* let the tests say what is wrong */
    if (compiler == HDRT_COMPILER_AUTO)
        found = has_compiler(runtime, HDRT_COMPILER_CLANG) || (on_cuda() && has_compiler(runtime, HDRT_COMPILER_NVRTC));
    else
        found = has_compiler(runtime, compiler);
    hdrt_runtime_destroy(runtime);
    return found ? NULL : "1..0 # SKIP no compiler for the kernels is here\n";
}

static char *read_file(const char *path, size_t *out_length)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    long length = ftell(file);
    ck_assert_int_ge(length, 0);
    rewind(file);
    char *text = malloc((size_t)length + 1);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(fread(text, 1, (size_t)length, file), (size_t)length);
    text[length] = '\0';
    fclose(file);
    *out_length = (size_t)length;
    return text;
}

/* The folder's NAME.ptx for .../NAME.cu. */
static void load_ptx(struct kernel_runner *runner, const char *folder, const char *source)
{
    const char *base = strrchr(source, '/') ? strrchr(source, '/') + 1 : source;
    char path[4096];
    size_t length;

    snprintf(path, sizeof path, "%s/%.*s.ptx", folder, (int)strcspn(base, "."), base);
    char *text = read_file(path, &length);
    ASSERT_OK(hdrt_module_load(runner->device, text, length, NULL, &runner->module));
    free(text);
}

void kernel_runner_open(struct kernel_runner *runner, const char *source)
{
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    hdrt_compile_options compile = HDRT_COMPILE_OPTIONS_INIT;
    hdrt_source file = HDRT_SOURCE_INIT;
    const char *top = getenv("abs_top_srcdir"), *folder = getenv("HDRT_TEST_PTX");
    char path[4096];

    memset(runner, 0, sizeof *runner);
    options.driver = on_cuda() ? HDRT_DRIVER_CUDA : HDRT_DRIVER_SOFT;
    ASSERT_OK(hdrt_runtime_create(&options, &runner->runtime));
    ASSERT_OK(hdrt_device_open(runner->runtime, 0, NULL, &runner->device));
    ASSERT_OK(hdrt_queue_create(runner->device, NULL, &runner->queue));
    if (folder) {
        load_ptx(runner, folder, source);
        return;
    }
    snprintf(path, sizeof path, "%s/%s", top ? top : ".", source);
    file.path = path;
    compile.compiler = asked_compiler();
    compile.arch = getenv("HDRT_TEST_ARCH");
    ASSERT_OK(hdrt_module_compile(runner->device, &file, &compile, &runner->module));
}

void kernel_runner_close(struct kernel_runner *runner)
{
    ASSERT_OK(hdrt_queue_synchronize(runner->queue));
    hdrt_module_destroy(runner->module);
    hdrt_queue_destroy(runner->queue);
    hdrt_device_close(runner->device);
    hdrt_runtime_destroy(runner->runtime);
}

hdrt_ptr kernel_runner_allocate(struct kernel_runner *runner, size_t bytes)
{
    hdrt_ptr pointer = 0;

    ASSERT_OK(hdrt_alloc(runner->queue, bytes ? bytes : 1, &pointer));
    return pointer;
}

hdrt_ptr kernel_runner_upload(struct kernel_runner *runner, const void *data, size_t bytes)
{
    hdrt_ptr pointer = kernel_runner_allocate(runner, bytes);

    if (bytes > 0)
        ASSERT_OK(hdrt_copy_htod(runner->queue, pointer, data, bytes));
    return pointer;
}

void kernel_runner_take(struct kernel_runner *runner, void *data, hdrt_ptr pointer, size_t bytes)
{
    if (bytes > 0)
        ASSERT_OK(hdrt_copy_dtoh(runner->queue, data, pointer, bytes));
    ASSERT_OK(hdrt_free(runner->queue, pointer));
    ASSERT_OK(hdrt_queue_synchronize(runner->queue));
}

void kernel_runner_free(struct kernel_runner *runner, hdrt_ptr pointer)
{
    ASSERT_OK(hdrt_free(runner->queue, pointer));
}

void kernel_runner_launch(struct kernel_runner *runner, const char *kernel, hdrt_grid grid, hdrt_args args)
{
    hdrt_kernel *found;

    ASSERT_OK(hdrt_module_kernel(runner->module, kernel, &found));
    hdrt_status status = hdrt_launch(runner->queue, found, grid, args);
    ck_assert_msg(status == HDRT_OK, "%s: %s: %s", kernel, hdrt_status_name(status), hdrt_last_error());
}
