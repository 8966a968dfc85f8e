/* SPDX-License-Identifier: MIT */
/*
 * Modules and kernels: loading, sharing, lifetimes, variables, parameters, limits of blocks and shared memory. On the
 * soft driver, or with HDRT_TEST_DRIVER=cuda on an NVIDIA GPU. Where a driver cannot do wrong by itself, single entries
 * of its table are replaced.
 */
#include <hdrt.h>

#include <check.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "failing_malloc.h"
#include "jit/find.h"
#include "jit/jit.h"
#include "jit/kernel.h"
#include "jit/module.h"
#include "memory/registry.h"

static hdrt_runtime *runtime;
static hdrt_device *device;
static char root[64];

static bool on_gpu(void)
{
    const char *driver = getenv("HDRT_TEST_DRIVER");
    return driver && strcmp(driver, "cuda") == 0;
}

#define CHECK(call) ck_assert_msg((call) == HDRT_OK, "%s", hdrt_last_error())

static void set_up(void)
{
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    strcpy(root, "/tmp/hdrt-test-module-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    options.driver = on_gpu() ? HDRT_DRIVER_CUDA : HDRT_DRIVER_SOFT;
    options.cache_dir = root;
    CHECK(hdrt_runtime_create(&options, &runtime));
    CHECK(hdrt_device_open(runtime, 0, NULL, &device));
}

static void tear_down(void)
{
    char command[128];
    hdrt_device_close(device);
    hdrt_runtime_destroy(runtime);
    snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

static hdrt_status open_code(hdrt__code *code, const char *name, bool from_cache, bool shareable, hdrt_module **module)
{
    hdrt__open_options options = {.name = name, .from_cache = from_cache, .shareable = shareable};
    return hdrt__module_open(device, code, &options, module);
}

#define HEADER ".version 8.0\n.target sm_90\n.address_size 64\n"
static const char two_kernels[] = HEADER
    ".visible .entry first(.param .u64 p, .param .f32 a, .param .align 4 .b8 s[12]) { ret; }\n"
    ".visible .entry _Z6secondi(.param .u32 n) { ret; }\n";
static const char with_variables[] = HEADER
    ".visible .global .align 4 .u32 counter;\n.visible .const .align 4 .b8 table[64];\n"
    ".visible .entry k() { ret; }\n";
static const char with_shared[] = HEADER
    ".visible .entry k() { .shared .align 4 .b8 tile[16384]; .reg .b32 %r<2>; mov.u32 %r1, tile; ret; }\n";

static hdrt_module *load(const char *ptx)
{
    hdrt_module *module;
    CHECK(hdrt_module_load(device, ptx, strlen(ptx), NULL, &module));
    return module;
}

static hdrt_kernel *kernel_of(hdrt_module *module, const char *name)
{
    hdrt_kernel *kernel;
    CHECK(hdrt_module_kernel(module, name, &kernel));
    return kernel;
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

START_TEST(kernels_and_parameters)
{
    hdrt_parameter parameter;
    hdrt_kernel *again, *kernel;
    hdrt_module *module = load(two_kernels);
    ck_assert_str_eq(hdrt_module_kernel_name(module, 0), "first");
    ck_assert_str_eq(hdrt_module_kernel_name(module, 1), "_Z6secondi");
    ck_assert_ptr_null(hdrt_module_kernel_name(module, 2));
    ck_assert_ptr_null(hdrt_module_kernel_name(NULL, 0));
    kernel = kernel_of(module, "first");
    again = kernel_of(module, "first");
    ck_assert_ptr_eq(kernel, again);
    ck_assert_str_eq(hdrt_kernel_name(kernel), "first");
    static const hdrt_parameter expected[] = {{0, 8, 8, HDRT_CLASS_INTEGER}, {8, 4, 4, HDRT_CLASS_FLOAT},
                                              {12, 12, 4, HDRT_CLASS_UNKNOWN}};
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(hdrt_kernel_parameter(kernel, i, &parameter));
        ck_assert_mem_eq(&parameter, &expected[i], sizeof parameter);
    }
    ck_assert_uint_eq(kernel->parameter_bytes, 24);
    ck_assert_int_eq(hdrt_kernel_parameter(kernel, 3, &parameter), HDRT_ERROR_NOT_FOUND);
    ck_assert_int_eq(hdrt_kernel_parameter(NULL, 0, &parameter), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_module_kernel(module, "third", &kernel), HDRT_ERROR_NOT_FOUND);
    ck_assert_ptr_null(kernel);
    ck_assert_msg(strstr(hdrt_last_error(), "'first' and '_Z6secondi'"), "%s", hdrt_last_error());
    ck_assert_int_eq(hdrt_module_kernel(module, "second", &kernel), HDRT_ERROR_NOT_FOUND);
    ck_assert_msg(strstr(hdrt_last_error(), "extern \"C\""), "%s", hdrt_last_error());
    ck_assert_int_eq(hdrt_module_kernel(NULL, "first", &kernel), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_module_kernel(module, NULL, &kernel), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_str_eq(hdrt_module_log(module), "");
    ck_assert(!hdrt_module_from_cache(module));
    hdrt_module_destroy(module);
    hdrt_module_destroy(NULL);
}
END_TEST

static unsigned char not_code[64];

static const struct {
    const char *what;
    const void *code;
    size_t size;
    hdrt_status status;
    const char *words;
} refused[] = {
    {"nothing", "", 0, HDRT_ERROR_INVALID_ARGUMENT, "empty"},
    {"NULL", NULL, 5, HDRT_ERROR_INVALID_ARGUMENT, "NULL"},
    {"text", "int main() {}", 13, HDRT_ERROR_INVALID_IMAGE, "'named': it is neither a cubin nor PTX"},
    {"zeros", not_code, sizeof not_code, HDRT_ERROR_INVALID_IMAGE, "neither"},
    {"a fatbin", "\x50\xed\x55\xba\1\0\0\0", 8, HDRT_ERROR_UNSUPPORTED, "fatbin"},
    {"PTX that ends early", HEADER ".entry k() {", sizeof(HEADER ".entry k() {") - 1, HDRT_ERROR_INVALID_IMAGE,
     "line 4"},
    {"PTX that the driver refuses", HEADER ".entry k() { add.u32 %x, %x, 1; }",
     sizeof(HEADER ".entry k() { add.u32 %x, %x, 1; }") - 1, HDRT_ERROR_INVALID_IMAGE, "line 4"},
};

START_TEST(code_that_is_refused)
{
    hdrt_load_options options = HDRT_LOAD_OPTIONS_INIT;
    hdrt_module *module = (hdrt_module *)&module;
    options.name = "named";
    hdrt_status status = hdrt_module_load(device, refused[_i].code, refused[_i].size, &options, &module);
    ck_assert_msg(status == refused[_i].status, "%s: %s", refused[_i].what, hdrt_last_error());
    ck_assert_msg(strstr(hdrt_last_error(), refused[_i].words), "%s", hdrt_last_error());
    ck_assert_ptr_null(module);
}
END_TEST

START_TEST(calls_that_are_refused)
{
    hdrt_load_options options = HDRT_LOAD_OPTIONS_INIT;
    hdrt_source source = HDRT_SOURCE_INIT;
    hdrt_module *module;
    hdrt_event event;
    ck_assert_int_eq(hdrt_module_load(NULL, two_kernels, 5, NULL, &module), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_module_load(device, two_kernels, 5, NULL, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    options.reserved[3] = 1;
    ck_assert_int_eq(hdrt_module_load(device, two_kernels, 5, &options, &module), HDRT_ERROR_INVALID_ARGUMENT);
    source.text = "";
    ck_assert_int_eq(hdrt_module_compile(NULL, &source, NULL, &module), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_module_compile(device, &source, NULL, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_module_compile(device, NULL, NULL, &module), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_module_compile_async(device, NULL, NULL, &module, &event), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_module_load_image(device, NULL, &module), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_image_compile(NULL, &source, NULL, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    hdrt_image *image;
    ck_assert_int_eq(hdrt_image_compile(NULL, &source, NULL, &image), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_image_compile_for(NULL, &source, NULL, &image), HDRT_ERROR_INVALID_ARGUMENT);
    hdrt_image_info info = HDRT_IMAGE_INFO_INIT;
    ck_assert_int_eq(hdrt_image_get_info(NULL, &info), HDRT_ERROR_INVALID_ARGUMENT);
    hdrt_image_destroy(NULL);
}
END_TEST

START_TEST(a_cubin_is_not_for_the_soft_driver)
{
    hdrt_module *module;
    Elf64_Ehdr elf = {.e_machine = 190, .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 1, .e_shoff = sizeof(Elf64_Ehdr)};
    unsigned char cubin[sizeof elf + sizeof(Elf64_Shdr)] = {0};
    memcpy(elf.e_ident, ELFMAG, SELFMAG);
    elf.e_ident[EI_CLASS] = ELFCLASS64;
    elf.e_ident[EI_DATA] = ELFDATA2LSB;
    memcpy(cubin, &elf, sizeof elf);
    ck_assert_int_eq(hdrt_module_load(device, cubin, sizeof cubin, NULL, &module), HDRT_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "the soft driver runs PTX only"));
}
END_TEST

/* Code of NVRTC, which NVIDIA allows on its GPUs only: refused although it is PTX. */
START_TEST(code_of_nvrtc_is_not_for_the_soft_driver)
{
    hdrt_module *module;
    hdrt__code *code = hdrt__code_create();
    code->compiler = HDRT_COMPILER_NVRTC;
    code->kind = HDRT_CODE_PTX;
    code->ptx = strdup(two_kernels);
    code->ptx_size = sizeof two_kernels - 1;
    ck_assert_int_eq(open_code(code, "x", false, true, &module), HDRT_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "NVIDIA GPUs only"));
    hdrt__code_drop(code);
}
END_TEST

/* ---- variables -------------------------------------------------------------------------------------------------- */

START_TEST(variables)
{
    hdrt_ptr counter = 0, table = 0, again = 0;
    uint64_t bytes = 0;
    hdrt__place place;
    hdrt_module *module = load(with_variables);
    CHECK(hdrt_module_global(module, "counter", &counter, &bytes));
    ck_assert_uint_eq(bytes, 4);
    CHECK(hdrt_module_global(module, "table", &table, &bytes));
    ck_assert_uint_eq(bytes, 64);
    CHECK(hdrt_module_global(module, "table", &again, NULL));
    ck_assert_uint_eq(again, table);
    ck_assert(hdrt__registry_find(runtime, false, table + 63, &place));
    ck_assert_int_eq(place.kind, HDRT__RANGE_SYMBOL);
    ck_assert_int_eq(hdrt_module_global(module, "nothing", &again, NULL), HDRT_ERROR_NOT_FOUND);
    ck_assert_msg(strstr(hdrt_last_error(), "'counter', 'table'"), "%s", hdrt_last_error());
    ck_assert_int_eq(hdrt_module_global(module, NULL, &again, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_module_global(NULL, "x", &again, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    hdrt_module_destroy(module);
    ck_assert(!hdrt__registry_find(runtime, false, table, &place)); /* gone with the code */
}
END_TEST

/* ---- sharing ---------------------------------------------------------------------------------------------------- */

static hdrt__code *named_code(const char *ptx)
{
    hdrt__code *code = hdrt__code_create();
    code->kind = HDRT_CODE_PTX;
    code->compiler = HDRT_COMPILER_CLANG;
    code->ptx = strdup(ptx);
    code->ptx_size = strlen(ptx);
    code->name = hdrt__digest_of(ptx, strlen(ptx));
    CHECK(hdrt__code_read_table(code));
    return code;
}

START_TEST(modules_of_one_key_are_one)
{
    hdrt_module *first, *second, *third;
    hdrt__code *code = named_code(two_kernels);
    CHECK(open_code(code, "x", false, true, &first));
    CHECK(open_code(code, "x", true, true, &second));
    ck_assert(!hdrt_module_from_cache(first)); /* each holder is told its own story */
    ck_assert(hdrt_module_from_cache(second));
    ck_assert_ptr_eq(kernel_of(first, "first"), kernel_of(second, "first"));
    CHECK(open_code(code, "x", true, false, &third));
    ck_assert_ptr_ne(kernel_of(first, "first"), kernel_of(third, "first"));
    hdrt_kernel *kernel = kernel_of(second, "first");
    hdrt_module_destroy(first);
    hdrt_module_destroy(third);
    ck_assert_str_eq(hdrt_kernel_name(kernel), "first");
    ck_assert_ptr_eq(kernel_of(second, "first"), kernel);
    hdrt_module_destroy(second);
    CHECK(open_code(code, "x", true, true, &first)); /* kept loaded meanwhile */
    ck_assert_ptr_eq(kernel_of(first, "first"), kernel);
    hdrt_module_destroy(first);
    hdrt__code_drop(code);
}
END_TEST

START_TEST(modules_with_variables_are_their_own)
{
    hdrt_module *first, *second;
    hdrt_ptr a, b;
    hdrt__code *code = named_code(with_variables);
    CHECK(open_code(code, "x", false, true, &first));
    CHECK(open_code(code, "x", true, true, &second));
    CHECK(hdrt_module_global(first, "counter", &a, NULL));
    CHECK(hdrt_module_global(second, "counter", &b, NULL));
    ck_assert_uint_ne(a, b);
    hdrt_module_destroy(first);
    hdrt_module_destroy(second);
    hdrt__code_drop(code);
}
END_TEST

/* Opened, used and destroyed by several threads at once, with the same code: TSan and ASan watch. */
static void *open_and_close(void *argument)
{
    for (int i = 0; i < 200; i++) {
        hdrt_module *module;
        hdrt_kernel *kernel;
        if (open_code(argument, "x", true, true, &module) != HDRT_OK)
            return argument;
        if (hdrt_module_kernel(module, i % 2 ? "first" : "_Z6secondi", &kernel) != HDRT_OK) {
            hdrt_module_destroy(module);
            return argument;
        }
        hdrt__module_hold(kernel->module);
        hdrt_module_destroy(module);
        if (hdrt_kernel_name(kernel)[0] != (i % 2 ? 'f' : '_'))
            return argument;
        hdrt__module_release(kernel->module);
    }
    return NULL;
}

START_TEST(threads_share_modules)
{
    pthread_t threads[4];
    hdrt__code *code = named_code(two_kernels);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, open_and_close, code), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
    hdrt__code_drop(code);
}
END_TEST

START_TEST(any_order_of_ends)
{
    hdrt_module *module = load(two_kernels);
    hdrt_kernel *kernel = kernel_of(module, "first");
    hdrt__module_hold(kernel->module); /* an operation in flight */
    hdrt_module_destroy(module);
    hdrt_device_close(device);
    hdrt_runtime_destroy(runtime);
    ck_assert_str_eq(kernel->name, "first");
    ck_assert_uint_eq(kernel->parameter_count, 3);
    hdrt__module_release(kernel->module); /* the last hold of all three */
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    options.driver = on_gpu() ? HDRT_DRIVER_CUDA : HDRT_DRIVER_SOFT;
    CHECK(hdrt_runtime_create(&options, &runtime));
    CHECK(hdrt_device_open(runtime, 0, NULL, &device));
}
END_TEST

/* ---- limits ----------------------------------------------------------------------------------------------------- */

static const struct {
    hdrt_grid grid;
    hdrt_status status;
    const char *words;
} blocks[] = {
    {{{1, 1, 1}, {32, 1, 1}, 0}, HDRT_OK, ""},
    {{{1, 1, 1}, {1024, 1, 1}, 0}, HDRT_OK, ""},
    {{{1, 1, 1}, {0, 1, 1}, 0}, HDRT_ERROR_LAUNCH, "block x is 0: expected 1 to 1024"},
    {{{1, 1, 1}, {1, 0, 1}, 0}, HDRT_ERROR_LAUNCH, "block y is 0"},
    {{{1, 1, 1}, {1, 1, 65}, 0}, HDRT_ERROR_LAUNCH, "block z is 65: expected 1 to 64"},
    {{{1, 1, 1}, {1025, 1, 1}, 0}, HDRT_ERROR_LAUNCH, "block x is 1025"},
    {{{1, 1, 1}, {64, 32, 1}, 0}, HDRT_ERROR_LAUNCH, "64 x 32 x 1 has 2048 threads"},
    {{{1, 1, 1}, {1024, 1024, 64}, 0}, HDRT_ERROR_LAUNCH, "67108864 threads"},
    {{{1, 1, 1}, {32, 1, 1}, 32768}, HDRT_OK, ""},
    {{{1, 1, 1}, {32, 1, 1}, 32769}, HDRT_OK, ""},
    {{{1, 1, 1}, {32, 1, 1}, 200000}, HDRT_OK, ""},
    {{{1, 1, 1}, {32, 1, 1}, 232448 - 16384}, HDRT_OK, ""},
    {{{1, 1, 1}, {32, 1, 1}, 232448 - 16384 + 1}, HDRT_ERROR_LAUNCH, "16384 of its own and 216065 dynamic"},
    {{{1, 1, 1}, {32, 1, 1}, UINT32_MAX}, HDRT_ERROR_LAUNCH, "at most 232448"},
};

START_TEST(block_limits)
{
    hdrt__scope scope;
    hdrt_module *module = load(with_shared);
    hdrt_kernel *kernel = kernel_of(module, "k");
    ck_assert_uint_eq(kernel->static_shared_bytes, 16384);
    CHECK(hdrt__device_enter(device, &scope));
    hdrt_status status = hdrt__kernel_check_block(kernel, &blocks[_i].grid);
    hdrt__device_leave(device, &scope);
    ck_assert_msg(status == blocks[_i].status, "%s", hdrt_last_error());
    if (status != HDRT_OK)
        ck_assert_msg(strstr(hdrt_last_error(), blocks[_i].words), "%s", hdrt_last_error());
    hdrt_module_destroy(module);
}
END_TEST

/* Replaced entries of the soft driver's table. */
static hdrt__driver_table replaced;
static int set_calls, set_value;
static hdcu_result answer;

static void replace_table(void)
{
    replaced = *device->driver;
    device->driver = &replaced;
    set_calls = 0;
    answer = HDCU_SUCCESS;
}

static hdcu_result count_set(hdcu_function function, unsigned which, int value)
{
    set_calls++;
    set_value = value;
    return answer;
}

START_TEST(shared_memory_is_raised_and_never_lowered)
{
    hdrt__scope scope;
    hdrt_grid grid = {{1, 1, 1}, {32, 1, 1}, 0};
    hdrt_module *module = load(with_shared);
    hdrt_kernel *kernel = kernel_of(module, "k");
    static const struct {
        uint32_t bytes;
        int calls;
    } steps[] = {{0, 0}, {32768, 0}, {32769, 1}, {1000, 1}, {100000, 2}, {50000, 2}, {100000, 2}};
    replace_table();
    replaced.cuFuncSetAttribute = count_set;
    CHECK(hdrt__device_enter(device, &scope));
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        grid.shared = steps[i].bytes;
        CHECK(hdrt__kernel_check_block(kernel, &grid));
        ck_assert_int_eq(set_calls, steps[i].calls);
    }
    ck_assert_int_eq(set_value, 100000);
    answer = HDCU_ERROR_INVALID_VALUE;
    grid.shared = 150000;
    ck_assert_int_ne(hdrt__kernel_check_block(kernel, &grid), HDRT_OK);
    ck_assert_msg(strstr(hdrt_last_error(), "150000 bytes of dynamic shared memory for kernel 'k'"), "%s",
                  hdrt_last_error());
    ck_assert_uint_eq(kernel->dynamic_shared_bytes, 100000);
    hdrt__device_leave(device, &scope);
    hdrt_module_destroy(module);
}
END_TEST

START_TEST(attributes_and_occupancy)
{
    hdrt_kernel_info info = HDRT_KERNEL_INFO_INIT;
    uint32_t blocks_there = 0, with_more = 0;
    hdrt_module *module = load(with_shared);
    hdrt_kernel *kernel = kernel_of(module, "k");
    CHECK(hdrt_kernel_attributes(kernel, &info));
    ck_assert_uint_eq(info.static_shared_bytes, 16384);
    ck_assert_uint_eq(info.parameter_count, 0);
    ck_assert_uint_ge(info.max_threads_per_block, 32);
    CHECK(hdrt_kernel_occupancy(kernel, 128, 0, &blocks_there));
    ck_assert_uint_ge(blocks_there, 1);
    CHECK(hdrt_kernel_occupancy(kernel, 128, 100000, &with_more));
    ck_assert_uint_lt(with_more, blocks_there);
    ck_assert_int_eq(hdrt_kernel_occupancy(kernel, 0, 0, &with_more), HDRT_ERROR_LAUNCH);
    ck_assert_int_eq(hdrt_kernel_occupancy(kernel, 2000, 0, &with_more), HDRT_ERROR_LAUNCH);
    ck_assert_int_eq(hdrt_kernel_occupancy(kernel, 128, 1u << 30, &with_more), HDRT_ERROR_LAUNCH);
    ck_assert_int_eq(hdrt_kernel_occupancy(kernel, 128, 0, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_kernel_attributes(NULL, &info), HDRT_ERROR_INVALID_ARGUMENT);
    hdrt_module_destroy(module);
}
END_TEST

/* ---- what the driver says of parameters ------------------------------------------------------------------------- */

static size_t told_sizes[4], told_offsets[4], told_count;

static hdcu_result tell_parameters(hdcu_function function, size_t index, size_t *offset, size_t *size)
{
    if (index >= told_count)
        return HDCU_ERROR_INVALID_VALUE;
    *offset = told_offsets[index];
    *size = told_sizes[index];
    return answer;
}

static hdrt_status kernel_with(size_t count, size_t second_size, bool known, hdrt_kernel **kernel, hdrt_module **module)
{
    hdrt__code *code = named_code(HEADER ".visible .entry k(.param .u64 p, .param .f32 a) { ret; }\n");
    told_count = count;
    told_sizes[0] = 8;
    told_sizes[1] = second_size;
    told_offsets[1] = 8;
    if (!known) { /* as for a cubin that does not tell */
        code->table.kernels[0].parameters_known = false;
        code->table.kernels[0].parameter_count = 0;
    }
    hdrt_status status = open_code(code, "x", false, false, module);
    hdrt__code_drop(code);
    return status == HDRT_OK ? hdrt_module_kernel(*module, "k", kernel) : status;
}

START_TEST(the_driver_is_asked_about_parameters)
{
    hdrt_module *module;
    hdrt_kernel *kernel;
    replace_table();
    replaced.cuFuncGetParamInfo = tell_parameters;
    device->limits.parameter_info = true;
    CHECK(kernel_with(2, 4, true, &kernel, &module));
    ck_assert_uint_eq(kernel->parameters[1].argument_class, HDRT_CLASS_FLOAT); /* the table is the authority */
    hdrt_module_destroy(module);
    ck_assert_int_eq(kernel_with(2, 8, true, &kernel, &module), HDRT_ERROR_INVALID_IMAGE);
    ck_assert_msg(strstr(hdrt_last_error(), "parameter 1 of kernel 'k' has 4 bytes at 8 by its table, and 8 at 8"),
                  "%s", hdrt_last_error());
    hdrt_module_destroy(module);
    ck_assert_int_eq(kernel_with(1, 4, true, &kernel, &module), HDRT_ERROR_INVALID_IMAGE);
    hdrt_module_destroy(module);
    CHECK(kernel_with(2, 4, false, &kernel, &module));
    ck_assert_uint_eq(kernel->parameter_count, 2);
    ck_assert_uint_eq(kernel->parameters[1].argument_class, HDRT_CLASS_UNKNOWN);
    hdrt_module_destroy(module);
    answer = HDCU_ERROR_NOT_SUPPORTED;
    ck_assert_int_ne(kernel_with(2, 4, false, &kernel, &module), HDRT_OK);
    hdrt_module_destroy(module);
    answer = HDCU_SUCCESS;
    replaced.cuFuncGetParamInfo = NULL;
    device->limits.parameter_info = false;
    ck_assert_int_eq(kernel_with(2, 4, false, &kernel, &module), HDRT_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "cannot be read"));
    hdrt_module_destroy(module);
}
END_TEST

/* ---- failures of the driver ------------------------------------------------------------------------------------- */

static unsigned loads;

/* A driver that takes no cubin. */
static hdcu_result refuse_cubins(hdcu_module *module, const void *image, unsigned count, unsigned *options,
                                 void **values)
{
    loads++;
    *module = (hdcu_module)(uintptr_t)0x10;
    if (memcmp(image, ELFMAG, SELFMAG) != 0)
        return HDCU_SUCCESS;
    for (unsigned i = 0; i < count; i++)
        if (options[i] == HDCU_JIT_ERROR_LOG_BUFFER)
            strcpy(values[i], "no kernel image\n\n");
    return HDCU_ERROR_NO_BINARY_FOR_GPU;
}

static hdcu_result accept_unload(hdcu_module module)
{
    return HDCU_SUCCESS;
}

/* The handle is none, which NVIDIA's driver would look at. */
static hdcu_result refuse_functions(hdcu_function *function, hdcu_module module, const char *name)
{
    return HDCU_ERROR_INVALID_HANDLE;
}

START_TEST(a_refused_cubin_falls_back_to_its_ptx)
{
    static hdrt__code *code; /* so that a test that ends early has not lost it */
    hdrt_module *module;
    code = named_code(two_kernels);
    code->kind = HDRT_CODE_CUBIN;
    code->cubin = malloc(8);
    memcpy(code->cubin, ELFMAG "....", 8);
    code->cubin_size = 8;
    replace_table();
    replaced.cuModuleLoadDataEx = refuse_cubins;
    replaced.cuModuleUnload = accept_unload;
    replaced.cuModuleGetFunction = refuse_functions;
    hdrt_driver_kind kind = runtime->kind;
    runtime->kind = HDRT_DRIVER_CUDA; /* as far as the jit sees */
    CHECK(open_code(code, "x", false, false, &module));
    ck_assert_uint_eq(loads, 2);
    hdrt_module_destroy(module);
    free(code->ptx);
    code->ptx = NULL;
    ck_assert_int_eq(open_code(code, "x", false, false, &module), HDRT_ERROR_INVALID_IMAGE);
    ck_assert_msg(strstr(hdrt_last_error(), "the driver says: no kernel image"), "%s", hdrt_last_error());
    /* Functions that only libdevice has are told before the driver is asked. */
    code->unresolved = strdup("__nv_expf, __nv_sinf");
    loads = 0;
    ck_assert_int_eq(open_code(code, "x", false, false, &module), HDRT_ERROR_UNSUPPORTED);
    ck_assert_uint_eq(loads, 0);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "__nv_expf, __nv_sinf"));
    hdrt__code_drop(code);
    runtime->kind = kind;
}
END_TEST

static hdcu_result fault(hdcu_module module)
{
    return HDCU_ERROR_ILLEGAL_ADDRESS;
}

START_TEST(a_fault_at_unloading_loses_the_device)
{
    hdrt_module *module = load(two_kernels), *other = load(two_kernels);
    hdrt_kernel *kernel = kernel_of(other, "first");
    hdrt_kernel_info info = HDRT_KERNEL_INFO_INIT;
    replace_table();
    replaced.cuModuleUnload = fault;
    hdrt_module_destroy(module);
    ck_assert(hdrt__device_is_lost(device));
    ck_assert_int_eq(hdrt_module_kernel(other, "_Z6secondi", &kernel), HDRT_ERROR_DEVICE_LOST);
    ck_assert_int_eq(hdrt_kernel_attributes(other->kernels[0], &info), HDRT_ERROR_DEVICE_LOST);
    ck_assert_int_eq(hdrt_module_load(device, two_kernels, sizeof two_kernels - 1, NULL, &module),
                     HDRT_ERROR_DEVICE_LOST);
    hdrt_module_destroy(other); /* makes no driver call: it would count */
}
END_TEST

START_TEST(modules_without_memory)
{
    hdrt_status status = HDRT_OK, wrong = HDRT_OK;
    hdrt_module *module;
    hdrt_kernel *kernel;
    unsigned refusals = 0;
    FAILING_MALLOC_EACH(n)
    {
        status = hdrt_module_load(device, with_variables, sizeof with_variables - 1, NULL, &module);
        if (status == HDRT_OK) {
            status = hdrt_module_kernel(module, "k", &kernel);
            if (status == HDRT_OK)
                status = hdrt_module_global(module, "counter", NULL, NULL);
            hdrt_module_destroy(module);
        }
        refusals += status == HDRT_ERROR_OUT_OF_MEMORY;
        if (status != HDRT_OK && status != HDRT_ERROR_OUT_OF_MEMORY)
            wrong = status;
    }
    ck_assert_int_eq(wrong, HDRT_OK);
    ck_assert_int_eq(status, HDRT_OK);
    ck_assert_uint_gt(refusals, 8);
}
END_TEST

/* ---- compiling for a device ------------------------------------------------------------------------------------- */

START_TEST(compiled_for_the_device)
{
    hdrt_source source = HDRT_SOURCE_INIT;
    hdrt_compile_options options = HDRT_COMPILE_OPTIONS_INIT;
    hdrt_module *module, *again;
    hdrt_image *image;
    hdrt_image_info info = HDRT_IMAGE_INFO_INIT;
    hdrt_diagnostic diagnostic;
    source.text = "extern \"C\" __global__ void k(float a, int *p) { *p = (int)a; }\n";
    CHECK(hdrt_module_compile(device, &source, NULL, &module));
    ck_assert(!hdrt_module_from_cache(module));
    CHECK(hdrt_module_compile(device, &source, NULL, &again));
    ck_assert(hdrt_module_from_cache(again));
    ck_assert_ptr_eq(kernel_of(module, "k"), kernel_of(again, "k"));
    hdrt_module_destroy(module);
    hdrt_module_destroy(again);
    CHECK(hdrt_image_compile_for(device, &source, NULL, &image));
    CHECK(hdrt_image_get_info(image, &info));
    ck_assert_str_eq(info.arch, "sm_90");
    ck_assert(info.from_cache);
    if (info.kind == HDRT_CODE_PTX)
        ck_assert_uint_eq(strlen(info.code), info.code_size);
    ck_assert_int_eq(info.kind == HDRT_CODE_CUBIN, info.compiler == HDRT_COMPILER_NVRTC);
    if (!on_gpu())
        ck_assert_int_eq(info.compiler, HDRT_COMPILER_CLANG);
    CHECK(hdrt_module_load_image(device, image, &module));
    hdrt_module_destroy(module);
    hdrt_image_destroy(image);
    /* Another target is other code. */
    CHECK(hdrt_image_compile(runtime, &source, NULL, &image));
    CHECK(hdrt_image_get_info(image, &info));
    ck_assert_int_eq(hdrt_image_diagnostic(image, 0, &diagnostic), HDRT_ERROR_NOT_FOUND);
    hdrt_image_destroy(image);
    options.compiler = HDRT_COMPILER_NVRTC;
    if (!on_gpu()) {
        ck_assert_int_eq(hdrt_module_compile(device, &source, &options, &module), HDRT_ERROR_UNSUPPORTED);
        ck_assert_ptr_null(module);
    }
    /* A source with an error: an image that has what the compiler said, and no code. */
    source.text = "extern \"C\" __global__ void k() { oops; }\n";
    ck_assert_int_eq(hdrt_module_compile(device, &source, NULL, &module), HDRT_ERROR_COMPILE);
    ck_assert_ptr_null(module);
    ck_assert_int_eq(hdrt_image_compile_for(device, &source, NULL, &image), HDRT_ERROR_COMPILE);
    ck_assert_msg(strncmp(hdrt_last_error(), "source.cu:1:", 12) == 0, "%s", hdrt_last_error());
    CHECK(hdrt_image_diagnostic(image, 0, &diagnostic));
    ck_assert_uint_eq(diagnostic.line, 1);
    ck_assert_int_eq(diagnostic.severity, HDRT_SEVERITY_ERROR);
    ck_assert_int_eq(hdrt_module_load_image(device, image, &module), HDRT_ERROR_INVALID_ARGUMENT);
    hdrt_image_destroy(image);
}
END_TEST

/* A cubin as its own image, on a GPU: what its file tells of parameters agrees with the driver. */
START_TEST(a_cubin_by_itself)
{
    hdrt_source source = HDRT_SOURCE_INIT;
    hdrt_compile_options options = HDRT_COMPILE_OPTIONS_INIT;
    hdrt_image *image;
    hdrt_image_info info = HDRT_IMAGE_INFO_INIT;
    hdrt_module *module;
    hdrt_kernel *kernel;
    options.compiler = HDRT_COMPILER_NVRTC;
    source.text = "struct S { double a; char b; };\n"
                  "extern \"C\" __global__ void k(float *p, float a, S s, short t, bool b) { *p = a + s.a + t + b; }\n";
    CHECK(hdrt_image_compile_for(device, &source, &options, &image));
    CHECK(hdrt_image_get_info(image, &info));
    ck_assert_int_eq(info.kind, HDRT_CODE_CUBIN);
    CHECK(hdrt_module_load(device, info.code, info.code_size, NULL, &module));
    kernel = kernel_of(module, "k");
    static const uint32_t offsets[] = {0, 8, 16, 32, 34}, sizes[] = {8, 4, 16, 2, 1};
    ck_assert_uint_eq(kernel->parameter_count, 5);
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_eq(kernel->parameters[i].offset, offsets[i]);
        ck_assert_uint_eq(kernel->parameters[i].size, sizes[i]);
    }
    hdrt_module_destroy(module);
    hdrt_image_destroy(image);
}
END_TEST

START_TEST(what_the_runtime_has)
{
    hdrt_runtime_info info = HDRT_RUNTIME_INFO_INIT;
    hdrt_compiler_info compiler = HDRT_COMPILER_INFO_INIT;
    CHECK(hdrt_runtime_get_info(runtime, &info));
    ck_assert_int_eq(info.driver, on_gpu() ? HDRT_DRIVER_CUDA : HDRT_DRIVER_SOFT);
    ck_assert_str_eq(info.cache_dir, root);
    ck_assert_ptr_null(info.cache_reason);
    ck_assert_uint_ge(info.device_count, 1);
    ck_assert_ptr_nonnull(info.libexec_worker);
    for (int i = HDRT_COMPILER_NVRTC; i <= HDRT_COMPILER_CLANG; i++) {
        CHECK(hdrt_runtime_compiler(runtime, (hdrt_compiler)i, &compiler));
        ck_assert_ptr_nonnull(compiler.rule);
    }
    ck_assert_int_eq(hdrt_runtime_compiler(runtime, HDRT_COMPILER_AUTO, &compiler), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_runtime_compiler(NULL, HDRT_COMPILER_CLANG, &compiler), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_runtime_get_info(NULL, &info), HDRT_ERROR_INVALID_ARGUMENT);
    info.size = 3;
    ck_assert_int_eq(hdrt_runtime_get_info(runtime, &info), HDRT_ERROR_INVALID_ARGUMENT);
}
END_TEST

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

static bool is_there(hdrt_compiler compiler)
{
    hdrt__found found;
    hdrt_status status =
        compiler == HDRT_COMPILER_CLANG ? hdrt__find_clang(NULL, &found) : hdrt__find_nvrtc(NULL, &found);
    bool there = status == HDRT_OK && found.path;
    hdrt__found_free(&found);
    return there;
}

START_TEST(compiler_is_missing)
{
    /* Shown as a test of its own, so that the absence is seen. */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("jit module");
    TCase *tests = tcase_create("module");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, kernels_and_parameters);
    tcase_add_loop_test(tests, code_that_is_refused, 0, COUNT(refused));
    tcase_add_test(tests, calls_that_are_refused);
    if (!on_gpu()) {
        tcase_add_test(tests, a_cubin_is_not_for_the_soft_driver);
        tcase_add_test(tests, code_of_nvrtc_is_not_for_the_soft_driver);
    } else if (is_there(HDRT_COMPILER_NVRTC)) {
        tcase_add_test(tests, a_cubin_by_itself);
    }
    tcase_add_test(tests, variables);
    tcase_add_test(tests, modules_of_one_key_are_one);
    tcase_add_test(tests, modules_with_variables_are_their_own);
    tcase_add_test(tests, threads_share_modules);
    tcase_add_test(tests, any_order_of_ends);
    tcase_add_loop_test(tests, block_limits, 0, COUNT(blocks));
    tcase_add_test(tests, shared_memory_is_raised_and_never_lowered);
    tcase_add_test(tests, attributes_and_occupancy);
    tcase_add_test(tests, the_driver_is_asked_about_parameters);
    tcase_add_test(tests, a_refused_cubin_falls_back_to_its_ptx);
    tcase_add_test(tests, a_fault_at_unloading_loses_the_device);
    tcase_add_test(tests, modules_without_memory);
    tcase_add_test(tests, what_the_runtime_has);
    if (is_there(HDRT_COMPILER_CLANG) || (on_gpu() && is_there(HDRT_COMPILER_NVRTC)))
        tcase_add_test(tests, compiled_for_the_device);
    else
        tcase_add_test(tests, compiler_is_missing);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
