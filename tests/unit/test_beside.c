/* SPDX-License-Identifier: MIT */
/*
 * The soft driver beside a libcuda that is loaded globally and answers every call wrongly: none of the soft driver's
 * own calls, nor any of libhdrt's, may be captured by it.
 */
#include <hdrt.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 1000u

/* void plus(unsigned *values, unsigned n): adds 3 to each. */
static const char plus_ptx[] = ".version 7.0\n"
                               ".target sm_70\n"
                               ".address_size 64\n"
                               ".visible .entry plus(.param .u64 values, .param .u32 n)\n"
                               "{\n"
                               "    .reg .pred %p<2>;\n"
                               "    .reg .b32 %r<7>;\n"
                               "    .reg .b64 %d<5>;\n"
                               "    ld.param.u64 %d1, [values];\n"
                               "    ld.param.u32 %r1, [n];\n"
                               "    mov.u32 %r2, %ctaid.x;\n"
                               "    mov.u32 %r3, %ntid.x;\n"
                               "    mov.u32 %r4, %tid.x;\n"
                               "    mad.lo.s32 %r5, %r2, %r3, %r4;\n"
                               "    setp.ge.u32 %p1, %r5, %r1;\n"
                               "    @%p1 bra done;\n"
                               "    cvta.to.global.u64 %d2, %d1;\n"
                               "    mul.wide.u32 %d3, %r5, 4;\n"
                               "    add.s64 %d4, %d2, %d3;\n"
                               "    ld.global.u32 %r6, [%d4];\n"
                               "    add.s32 %r6, %r6, 3;\n"
                               "    st.global.u32 [%d4], %r6;\n"
                               "done:\n"
                               "    ret;\n"
                               "}\n";

static int number;

static bool result(bool right, const char *what)
{
    printf("%s %d - %s\n", right ? "ok" : "not ok", ++number, what);
    if (!right)
        printf("# %s\n", hdrt_last_error());
    return right;
}

/* Whether a wrong libcuda is now in the process for all to see. */
static bool load_wrong_libcuda(void)
{
    char path[1024];
    const char *build = getenv("abs_top_builddir");
    snprintf(path, sizeof path, "%s/tests/unit/support/.libs/fake_cuda.so", build ? build : ".");
    setenv("FAKE_ALL", "999", 1);
    if (!dlopen(path, RTLD_NOW | RTLD_GLOBAL)) {
        printf("# %s\n", dlerror());
        return false;
    }
    unsigned (*alloc)(unsigned long long *, size_t);
    void *found = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
    memcpy(&alloc, &found, sizeof alloc);
    unsigned long long pointer;
    return alloc && alloc(&pointer, 16) == 999;
}

static hdrt_status compute(hdrt_device *device, uint32_t *values)
{
    hdrt_module *module = NULL;
    hdrt_kernel *plus = NULL;
    hdrt_queue *queue = hdrt_device_default_queue(device);
    hdrt_ptr memory = 0;
    hdrt_status status = hdrt_module_load(device, plus_ptx, sizeof plus_ptx - 1, NULL, &module);
    if (!status)
        status = hdrt_module_kernel(module, "plus", &plus);
    if (!status)
        status = hdrt_alloc(queue, COUNT * sizeof *values, &memory);
    if (!status)
        status = hdrt_copy_htod(queue, memory, values, COUNT * sizeof *values);
    if (!status)
        status = hdrt_launch(queue, plus, hdrt_grid_1d(COUNT, 128), HDRT_ARGS(memory, COUNT));
    if (!status)
        status = hdrt_copy_dtoh(queue, values, memory, COUNT * sizeof *values);
    if (!status)
        status = hdrt_free(queue, memory);
    if (!status)
        status = hdrt_queue_synchronize(queue);
    hdrt_module_destroy(module);
    return status;
}

int main(void)
{
    hdrt_runtime_options options = HDRT_RUNTIME_OPTIONS_INIT;
    hdrt_runtime *runtime;
    hdrt_device *device = NULL;
    uint32_t values[COUNT];
    bool right = true;

    bool wrong = load_wrong_libcuda();
    options.driver = HDRT_DRIVER_SOFT;
    options.cache_dir = "";
    hdrt_status status = hdrt_runtime_create(&options, &runtime);
    if (status == HDRT_ERROR_COMPANION) {
        printf("1..0 # SKIP %s\n", hdrt_last_error());
        return 0;
    }
    printf("1..4\n");
    result(wrong, "a global libcuda answers every call with an error");
    if (!result(status == HDRT_OK, "the soft driver starts beside it"))
        return 1;
    for (uint32_t i = 0; i < COUNT; i++)
        values[i] = i * i;
    status = hdrt_device_open(runtime, 0, NULL, &device);
    if (!status)
        status = compute(device, values);
    result(status == HDRT_OK, "copies and a kernel run");
    for (uint32_t i = 0; i < COUNT; i++)
        right = right && values[i] == i * i + 3;
    result(right, "and give what the kernel computes");
    hdrt_device_close(device);
    hdrt_runtime_destroy(runtime);
    return 0;
}
