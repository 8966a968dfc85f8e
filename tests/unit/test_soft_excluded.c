/* SPDX-License-Identifier: MIT */
/*
 * What the soft driver leaves out: a module with such an instruction loads, its other kernels run, and the kernel that
 * reaches it ends with 801 and a text that names the kernel, the instruction and its line in the PTX.
 */
#include "soft.h"

#include <stdio.h>

#define TARGET "sm_90a"

static const char head[] = ".version 8.7\n.target " TARGET "\n.address_size 64\n"
                           ".extern .func (.param .b64 buffer) cudaGetParameterBufferV2(.param .b64 f, .param "
                            ".b64 n);\n"
                           ".extern .func (.param .b32 status) cudaLaunchDeviceV2(.param .b64 buffer, .param "
                            ".b64 stream);\n"
                           ".extern .func (.param .b32 status) cudaDeviceSynchronize();\n"
                           ".global .texref image;\n.global .surfref plane;\n"
                           ".visible .entry fine(.param .u64 out) {\n.reg .u64 %rd<3>;\nld.param.u64 %rd1, [out];\n"
                           "st.global.u32 [%rd1], 7;\nret;\n}\n"
                           ".visible .entry excluded() {\n"
                           ".reg .pred %p<4>;\n.reg .b16 %rs<9>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<9>;\n.reg "
                            ".f32 %f<20>;\n"
                           ".shared .align 16 .b8 tile[512];\nmov.u64 %rd1, tile;\nmov.u32 %r1, tile;\n";

typedef struct excluded {
    const char *area, *text, *named;
} excluded;

/* Where `named` is NULL the first word of the text is what the message must hold. */
static const excluded cases[] = {
    {"textures", "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [image, {%f5, %f6}];", NULL},
    {"textures", "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd2, {%r2}];", NULL},
    {"textures", "tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [image, {%f5, %f6}];", NULL},
    {"textures", "txq.width.b32 %r2, [image];", NULL},
    {"surfaces", "suld.b.1d.b32.trap {%r2}, [plane, {%r3}];", NULL},
    {"surfaces", "sust.b.1d.b32.trap [plane, {%r3}], {%r2};", NULL},
    {"surfaces", "sured.b.add.1d.u32.trap [plane, {%r3}], %r2;", NULL},
    {"surfaces", "suq.width.b32 %r2, [plane];", NULL},
    {"fp8", "cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;", NULL},
    {"fp8", "cvt.rn.satfinite.e5m2x2.f32 %rs1, %f1, %f2;", NULL},
    {"fp8", "cvt.rn.f16x2.e4m3x2 %r2, %rs1;", NULL},
    {"mbarrier", "mbarrier.init.shared.b64 [%rd1], 1;", NULL},
    {"mbarrier", "mbarrier.arrive.shared.b64 %rd2, [%rd1];", NULL},
    {"mbarrier", "mbarrier.arrive.expect_tx.shared::cta.b64 %rd2, [%r1], 16;", NULL},
    {"mbarrier", "mbarrier.try_wait.parity.shared.b64 %p1, [%rd1], 0;", NULL},
    {"mbarrier", "mbarrier.inval.shared.b64 [%rd1];", NULL},
    {"mbarrier", "cp.async.mbarrier.arrive.shared.b64 [%rd1];", NULL},
    {"dependent launches", "griddepcontrol.wait;", NULL},
    {"dependent launches", "griddepcontrol.launch_dependents;", NULL},
    {"matrices", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%rd1];", NULL},
    {"matrices", "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%rd1], {%r2};", NULL},
    {"matrices", "movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r3;", NULL},
    {"matrices", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r2, %r3, %r4, %r5}, "
     "{%r6, %r7}, "
                 "{%f1, %f2, %f3, %f4};", NULL},
    {"matrices", "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r2, %r3}, {%r4, %r5}, "
                 "{%f1, %f2, %f3, %f4}, %r6, 0x0;", NULL},
    {"matrices", "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}, "
     "[%rd1], %r10;", NULL},
    {"matrices", "wmma.mma.sync.aligned.row.row.m16n16k16.f16.f16 {%r2, %r3, %r4, %r5}, {%r2, %r3, %r4, %r5, %r6, %r7, "
                 "%r8, %r9}, {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}, {%r2, %r3, %r4, %r5};", NULL},
    {"matrices", "wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [%rd1], {%r2, %r3, %r4, %r5}, %r10;", NULL},
    {"clusters", "barrier.cluster.arrive;", NULL},
    {"clusters", "barrier.cluster.wait;", NULL},
    {"clusters", "mapa.shared::cluster.u32 %r2, %r1, %r3;", NULL},
    {"clusters", "getctarank.shared::cluster.u32 %r2, %r1;", NULL},
    {"clusters", "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];", NULL},
    {"bulk copies", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd2], 16, "
     "[%r2];", NULL},
    {"bulk copies", "cp.async.bulk.commit_group;", NULL},
    {"bulk copies", "cp.async.bulk.wait_group 0;", NULL},
    {"bulk copies", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [%r1], 16;", NULL},
    {"bulk copies", "cp.async.bulk.prefetch.L2.global [%rd2], 16;", NULL},
    {"tensor maps", "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd2, "
     "{%r2}], [%r3];", NULL},
    {"tensor maps", "prefetch.tensormap [%rd2];", NULL},
    {"tensor maps", "tensormap.replace.tile.rank.global.b1024.b32 [%rd2], 1;", NULL},
    {"tensor maps", "fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;", NULL},
    {"wgmma", "wgmma.fence.sync.aligned;", NULL},
    {"wgmma", "wgmma.commit_group.sync.aligned;", NULL},
    {"wgmma", "wgmma.wait_group.sync.aligned 0;", NULL},
    {"wgmma", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd2, %rd3, 1, 1, 1, 0, "
     "0;", NULL},
    {"wgmma", "setmaxnreg.inc.sync.aligned.u32 40;", NULL},
    {"tcgen05", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;", NULL},
    {"tcgen05", "tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd2, %rd3, %r3, %p1;", NULL},
    {"tcgen05", "tcgen05.ld.sync.aligned.16x64b.x1.b32 {%r2}, [%r3];", NULL},
    {"dynamic parallelism",
     "{ .param .b64 f; .param .b64 n; .param .b64 b; st.param.b64 [f], %rd2; st.param.b64 [n], %rd3; "
     "call.uni (b), cudaGetParameterBufferV2, (f, n); ld.param.b64 %rd4, [b]; }",
     "cudaGetParameterBufferV2"},
    {"dynamic parallelism",
     "{ .param .b64 b; .param .b64 s; .param .b32 r; st.param.b64 [b], %rd2; st.param.b64 [s], %rd3; "
     "call.uni (r), cudaLaunchDeviceV2, (b, s); ld.param.b32 %r2, [r]; }",
     "cudaLaunchDeviceV2"},
    {"fences of the asynchronous proxy", "fence.proxy.async;", NULL},
    {"fences of the asynchronous proxy", "fence.mbarrier_init.release.cluster;", NULL},
    {"dynamic parallelism", "{ .param .b32 r; call.uni (r), cudaDeviceSynchronize, (); ld.param.b32 %r2, [r]; }",
     "cudaDeviceSynchronize"},
};

static unsigned lines_of(const char *text)
{
    unsigned lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

START_TEST(only_the_kernel_that_reaches_it_fails)
{
    const excluded *one = &cases[_i];
    char ptx[8192], word[128], line[32];
    snprintf(ptx, sizeof ptx, "%s%s\nret;\n}\n", head, one->text);
    snprintf(word, sizeof word, "%.*s", (int)strcspn(one->text, " ;"), one->text);
    snprintf(line, sizeof line, "line %u", lines_of(head) + 1);
    soft_start();
    hdcu_module module;
    hdcu_function fine, bad;
    char log[1000] = "";
    unsigned options[] = {HDCU_JIT_ERROR_LOG_BUFFER, HDCU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    hdcu_result status = cu.cuModuleLoadDataEx(&module, ptx, 2, options, values);
    ck_assert_msg(status == 0, "%s: %s does not load: %u %s", one->area, word, status, log);
    OK(cuModuleGetFunction(&fine, module, "fine"));
    OK(cuModuleGetFunction(&bad, module, "excluded"));
    hdcu_pointer out = new_memory(4);
    unsigned value = 0;
    void *arguments[] = {&out};
    OK(cuLaunchKernel(fine, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
    OK(cuMemcpyDtoH(&value, out, 4));
    ck_assert_uint_eq(value, 7);
    ck_assert_str_eq(soft_last_fault(), "");
    OK(cuLaunchKernel(bad, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    status = cu.cuCtxSynchronize();
    ck_assert_msg(status == 801, "%s: %s: %u, %s", one->area, word, status, soft_last_fault());
    const char *named = one->named ? one->named : word;
    ck_assert_msg(strstr(soft_last_fault(), named) && strstr(soft_last_fault(), line) &&
                      strstr(soft_last_fault(), "kernel 'excluded'"),
                  "expected kernel excluded, %s and %s in: %s", named, line, soft_last_fault());
}
END_TEST

/* The same in a branch that no thread takes. */
START_TEST(what_is_not_reached_does_no_harm)
{
    char ptx[16384];
    size_t length = (size_t)snprintf(ptx, sizeof ptx, "%sbra.uni $END;\n", head);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        length += (size_t)snprintf(ptx + length, sizeof ptx - length, "%s\n", cases[i].text);
    snprintf(ptx + length, sizeof ptx - length, "$END:\nret;\n}\n");
    soft_start();
    hdcu_module module;
    hdcu_function bad;
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&bad, module, "excluded"));
    OK(cuLaunchKernel(bad, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("excluded");
    tcase_add_loop_test(tcase, only_the_kernel_that_reaches_it_fails, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(tcase, what_is_not_reached_does_no_harm);
    Suite *suite = suite_create("soft driver: instructions that it leaves out");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
