/* SPDX-License-Identifier: MIT */
#include "instructions.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "modules.h"
#include "support.h"

#define LANES 32

static const char before[] =
    ".address_size 64\n"
    ".visible .entry row(.param .u64 in, .param .u64 out)\n"
    "{\n"
    "    .reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<32>; .reg .b64 %d<32>; .reg .f32 %f<32>; .reg .f64 %g<32>;\n"
    "    .reg .b32 %lane; .reg .b64 %from, %to, %at;\n"
    "    ld.param.u64 %from, [in]; ld.param.u64 %to, [out];\n"
    "    mov.u32 %lane, %tid.x;\n"
    "    mul.wide.u32 %at, %lane, 24; add.u64 %from, %from, %at;\n"
    "    mul.wide.u32 %at, %lane, 8; add.u64 %to, %to, %at;\n"
    "    ld.global.b64 %d1, [%from]; ld.global.b64 %d2, [%from+8]; ld.global.b64 %d3, [%from+16];\n"
    "    cvt.u32.u64 %r1, %d1; cvt.u32.u64 %r2, %d2; cvt.u32.u64 %r3, %d3;\n"
    "    mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3;\n"
    "    mov.b64 %g1, %d1; mov.b64 %g2, %d2; mov.b64 %g3, %d3;\n"
    "    mov.b64 %d0, 0; mov.b32 %r0, 0; mov.b32 %f0, 0f00000000; mov.b64 %g0, 0d0000000000000000;\n"
    "    ";

/* Rows that need an instruction of sm_80 or of PTX 7.6 begin with this. */
static const char newer[] = "//sm_80\n";

static void compose(const check *row, char *out, size_t room)
{
    static const char *const stores[] = {
        ['r'] = "cvt.u64.u32 %d0, %r0; ", ['f'] = "mov.b32 %r0, %f0; cvt.u64.u32 %d0, %r0; ",
        ['g'] = "mov.b64 %d0, %g0; ", ['d'] = ""};
    bool is_newer = !strncmp(row->text, newer, strlen(newer));
    const char *version = is_newer ? "7.6\n.target sm_80" : "7.0\n.target sm_70";
    snprintf(out, room, ".version %s\n%s%s\n    %sst.global.b64 [%%to], %%d0;\n    ret;\n}\n", version, before,
             row->text, stores[(unsigned char)row->kind]);
}

static void say_lane(char kind, uint64_t bits)
{
    double wide;
    float narrow;
    uint32_t low = (uint32_t)bits;
    memcpy(&wide, &bits, sizeof wide);
    memcpy(&narrow, &low, sizeof narrow);
    if ((kind == 'f' && isnan(narrow)) || (kind == 'g' && isnan(wide)))
        say("nan");
    else
        say("%llx", (unsigned long long)bits);
}

void run_instruction(const check *self)
{
    char text[8192];
    uint64_t in[LANES][3] = {0}, out[LANES] = {0};
    compose(self, text, sizeof text);
    for (size_t i = 0; i < LANES; i++)
        memcpy(in[i], self->inputs[i < self->input_count ? i : self->input_count - 1], sizeof in[i]);
    hdcu_module module = NULL;
    hdcu_function row = NULL;
    NEED(cuModuleLoadData(&module, text));
    NEED(cuModuleGetFunction(&row, module, "row"));
    hdcu_pointer from = new_bytes(sizeof in), to = new_bytes(sizeof out);
    NEED(cuMemcpyHtoD(from, in, sizeof in));
    NEED(LAUNCH(row, 1, LANES, NULL, &from, &to));
    NEED(cuCtxSynchronize());
    NEED(cuMemcpyDtoH(out, to, sizeof out));
    size_t lanes = self->number ? (size_t)self->number : self->input_count;
    for (size_t i = 0; i < lanes && i < LANES; i++)
        say_lane(self->kind, out[i]);
    NEED(cuModuleUnload(module));
}

bool instructions_write(const char *folder)
{
    for (size_t a = 0; a < area_count; a++) {
        for (size_t i = 0; i < areas[a]->count; i++) {
            const check *row = &areas[a]->checks[i];
            char text[8192], name[256];
            if (row->run != run_instruction)
                continue;
            snprintf(name, sizeof name, "%s.%s", areas[a]->name, row->name);
            compose(row, text, sizeof text);
            if (!module_write(folder, name, text))
                return false;
        }
    }
    return true;
}
