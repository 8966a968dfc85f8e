/* SPDX-License-Identifier: MIT */
/*
 * Bundles: what is written comes back, damage is refused, and each device gets what suits it best. The code is
 * hand-written PTX; cubins are stand-ins, because the choice looks at their target only.
 */
#include <hdrt.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/bundle.h"

#define CHECK(call) ck_assert_msg((call) == HDRT_OK, "%s", hdrt_last_error())

static hdrt_image *ptx_image(const char *arch, const char *kernel)
{
    char text[512];
    hdrt_image *image;
    snprintf(text, sizeof text,
             ".version 8.6\n.target %s\n.address_size 64\n.visible .entry %s(.param .u64 p)\n{\n    ret;\n}\n", arch,
             kernel);
    CHECK(hdrt_image_read(text, strlen(text), kernel, &image));
    return image;
}

/* Three images in a buffer that the caller frees. */
static void *make_bundle(size_t *out_size)
{
    hdrt_image *images[] = {ptx_image("sm_75", "oldest"), ptx_image("sm_90", "fits"), ptx_image("sm_100", "newest")};
    size_t size = 0;
    CHECK(hdrt_bundle_write((const hdrt_image *const *)images, 3, NULL, &size));
    void *bytes = malloc(size);
    ck_assert_ptr_nonnull(bytes);
    CHECK(hdrt_bundle_write((const hdrt_image *const *)images, 3, bytes, &size));
    for (int i = 0; i < 3; i++)
        hdrt_image_destroy(images[i]);
    *out_size = size;
    return bytes;
}

START_TEST(comes_back)
{
    static const char *const archs[] = {"sm_75", "sm_90", "sm_100"}, *const kernels[] = {"oldest", "fits", "newest"};
    hdrt_image *image;
    size_t size;
    void *bytes = make_bundle(&size);
    for (uint32_t i = 0; i < 3; i++) {
        hdrt_image_info info = HDRT_IMAGE_INFO_INIT;
        hdrt_image_kernel_info kernel = HDRT_IMAGE_KERNEL_INFO_INIT;
        CHECK(hdrt_bundle_image(bytes, size, i, "here", &image));
        CHECK(hdrt_image_get_info(image, &info));
        CHECK(hdrt_image_kernel(image, 0, &kernel));
        ck_assert_str_eq(info.arch, archs[i]);
        ck_assert_str_eq(kernel.name, kernels[i]);
        ck_assert_uint_eq(kernel.parameter_count, 1);
        hdrt_image_destroy(image);
    }
    ck_assert_int_eq(hdrt_bundle_image(bytes, size, 3, "here", &image), HDRT_ERROR_NOT_FOUND);
    ck_assert_ptr_null(image);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "'here' has 3 images"));
    ck_assert_int_eq(hdrt_image_read(bytes, size, "here", &image), HDRT_ERROR_INVALID_IMAGE);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "hdrt_bundle_image"));
    free(bytes);
}
END_TEST

START_TEST(is_written_only_if_it_fits)
{
    hdrt_image *image = ptx_image("sm_80", "k");
    const hdrt_image *const images[] = {image, NULL};
    char room[8];
    size_t size = sizeof room;
    ck_assert_int_eq(hdrt_bundle_write(images, 1, room, &size), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "the buffer 8"));
    ck_assert_int_eq(hdrt_bundle_write(images, 0, NULL, &size), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_bundle_write(images, 1, NULL, NULL), HDRT_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(hdrt_bundle_write(images, 2, NULL, &size), HDRT_ERROR_INVALID_ARGUMENT);
    hdrt_image_destroy(image);
}
END_TEST

START_TEST(damage_is_refused)
{
    hdrt_image *image;
    size_t size;
    unsigned char *bytes = make_bundle(&size);
    for (size_t at = 0; at < size; at++) {
        bytes[at] ^= 1u << (at % 8);
        ck_assert_int_eq(hdrt_bundle_image(bytes, size, 1, "bad", &image), HDRT_ERROR_INVALID_IMAGE);
        bytes[at] ^= 1u << (at % 8);
    }
    for (size_t cut = 0; cut < size; cut += 7)
        ck_assert_int_eq(hdrt_bundle_image(bytes, cut, 1, "short", &image), HDRT_ERROR_INVALID_IMAGE);
    free(bytes);
}
END_TEST

START_TEST(the_soft_driver_gets_what_fits)
{
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    hdrt_runtime *runtime;
    hdrt_device *device;
    hdrt_module *module;
    hdrt_image *images[1];
    hdrt_kernel *kernel;
    size_t size;
    void *bytes = make_bundle(&size);
    options.driver = HDRT_DRIVER_SOFT;
    options.cache_dir = "";
    CHECK(hdrt_runtime_create(&options, &runtime));
    CHECK(hdrt_device_open(runtime, 0, NULL, &device));
    CHECK(hdrt_module_load(device, bytes, size, NULL, &module));
    CHECK(hdrt_module_kernel(module, "fits", &kernel));
    hdrt_module_destroy(module);
    free(bytes);

    images[0] = ptx_image("sm_100", "newest");
    const void *file;
    CHECK(hdrt_image_write(images[0], &file, &size));
    CHECK(hdrt_bundle_write((const hdrt_image *const *)images, 1, NULL, &size));
    bytes = malloc(size);
    ck_assert_ptr_nonnull(bytes);
    CHECK(hdrt_bundle_write((const hdrt_image *const *)images, 1, bytes, &size));
    ck_assert_int_eq(hdrt_module_load(device, bytes, size, NULL, &module), HDRT_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(hdrt_last_error(), "it has sm_100 PTX"));
    hdrt_image_destroy(images[0]);
    free(bytes);

    images[0] = ptx_image("sm_80", "alone");
    CHECK(hdrt_image_write(images[0], &file, &size));
    CHECK(hdrt_module_load(device, file, size, NULL, &module));
    CHECK(hdrt_module_kernel(module, "alone", &kernel));
    hdrt_module_destroy(module);
    hdrt_image_destroy(images[0]);
    hdrt_device_close(device);
    hdrt_runtime_destroy(runtime);
}
END_TEST

/* Each pair: for the device `arch`, code `better` is preferred to code `worse`; NULL: `worse` does not suit at all. */
static const struct {
    const char *arch, *better, *worse;
} choices[] = {
    {"sm_89", "sm_89 cubin", "sm_80 cubin"},   {"sm_90", "sm_90a cubin", "sm_90 cubin"},
    {"sm_90", NULL, "sm_80 cubin"},            {"sm_86", "sm_86 cubin", "sm_80 cubin"},
    {"sm_86", "sm_80 cubin", "sm_86 ptx"},     {"sm_90", "sm_90 ptx", "sm_80 ptx"},
    {"sm_103", "sm_103 cubin", "sm_100f cubin"}, {"sm_103", "sm_100f cubin", "sm_100 cubin"},
    {"sm_90", NULL, "sm_100 cubin"},           {"sm_90", NULL, "sm_100 ptx"},
    {"sm_80", NULL, "sm_86 cubin"},            {"sm_100", NULL, "sm_90 cubin"},
    {"sm_103", NULL, "sm_100a ptx"},           {"sm_90", NULL, "sm_80f ptx"},
    {"sm_120", NULL, "sm_100f cubin"},         {"sm_90", NULL, "sm_90 newer"},
    {"sm_90", NULL, "sm_90x cubin"},           {"sm_90", NULL, "compute_90 ptx"},
};

static uint32_t fit(const char *arch, const char *words, uint32_t driver_version)
{
    hdrt__target target = {.nvidia = true, .arch = arch, .driver_version = driver_version};
    hdrt__code *code = hdrt__code_create();
    const char *kind = strchr(words, ' ') + 1;
    ck_assert_ptr_nonnull(code);
    free(code->arch);
    code->arch = strndup(words, (size_t)(kind - words) - 1);
    code->compiler = HDRT_COMPILER_NVRTC;
    code->kind = strcmp(kind, "cubin") == 0 ? HDRT_CODE_CUBIN : HDRT_CODE_PTX;
    if (code->kind == HDRT_CODE_CUBIN)
        code->cubin = calloc(1, 1);
    else
        code->ptx = strdup("");
    free(code->compiler_version);
    code->compiler_version = strdup(strcmp(kind, "newer") == 0 ? "NVRTC 13.1" : "NVRTC 12.9");
    uint32_t found = hdrt__bundle_fit(code, &target);
    hdrt__code_drop(code);
    return found;
}

START_TEST(each_device_gets_the_best)
{
    uint32_t worse = fit(choices[_i].arch, choices[_i].worse, 13000);
    if (choices[_i].better)
        ck_assert_msg(fit(choices[_i].arch, choices[_i].better, 13000) > worse && worse > 0, "%s: %s or %s",
                      choices[_i].arch, choices[_i].better, choices[_i].worse);
    else
        ck_assert_msg(worse == 0, "%s on %s", choices[_i].worse, choices[_i].arch);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("jit bundle");
    TCase *cases = tcase_create("bundle");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, comes_back);
    tcase_add_test(cases, is_written_only_if_it_fits);
    tcase_add_test(cases, damage_is_refused);
    tcase_add_test(cases, the_soft_driver_gets_what_fits);
    tcase_add_loop_test(cases, each_device_gets_the_best, 0, (int)(sizeof choices / sizeof *choices));
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
