/* SPDX-License-Identifier: MIT */
/* Launches: each limit reached and passed by one, parameters, shared memory, attributes, cooperation. */
#include "areas.h"
#include "support.h"

#include <string.h>

typedef struct shape {
    unsigned grid[3], block[3], shared;
} shape;

static hdcu_result launch_shaped(hdcu_function function, const shape *of, void **arguments)
{
    return cu.cuLaunchKernel(function, of->grid[0], of->grid[1], of->grid[2], of->block[0], of->block[1], of->block[2],
                             of->shared, NULL, arguments, NULL);
}

/* Two inputs, the grid and the block; `number` is the dynamic shared memory. */
static shape shape_of(const check *self)
{
    const uint64_t *grid = self->inputs[0], *block = self->inputs[1];
    return (shape){{(unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2]},
                   {(unsigned)block[0], (unsigned)block[1], (unsigned)block[2]}, (unsigned)self->number};
}

static void limit(const check *self)
{
    shape of = shape_of(self);
    say("%u", launch_shaped(KERNEL("nothing"), &of, NULL));
    STATUS(cuCtxSynchronize());
}

/* Bounds that the kernel itself declares. */
static void bound(const check *self)
{
    const uint64_t *in = self->inputs[0];
    shape of = {{1, 1, 1}, {(unsigned)in[0], (unsigned)in[1], 1}, 0};
    say("%u", launch_shaped(KERNEL(self->text), &of, NULL));
    STATUS(cuCtxSynchronize());
}

static void static_and_dynamic(const check *self)
{
    hdcu_pointer p = new_bytes(4);
    shape of = {{1, 1, 1}, {1, 1, 1}, (unsigned)self->number};
    say("%u", launch_shaped(KERNEL("static_shared"), &of, ARGUMENTS(&p)));
    STATUS(cuCtxSynchronize());
}

static void opted_in(const check *self)
{
    hdcu_module module = NULL;
    hdcu_function function = NULL;
    hdcu_pointer p = new_bytes(8);
    uint32_t last = (uint32_t)self->number - 4;
    shape of = {{1, 1, 1}, {1, 1, 1}, (unsigned)self->number};
    NEED(cuModuleLoadData(&module, module_basic));
    NEED(cuModuleGetFunction(&function, module, "dynamic_shared"));
    say("%u", launch_shaped(function, &of, ARGUMENTS(&p, &last)));
    STATUS(cuFuncSetAttribute(function, HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)self->number));
    say("%u", launch_shaped(function, &of, ARGUMENTS(&p, &last)));
    STATUS(cuCtxSynchronize());
    say_words(p, 2);
    of.shared += 1;
    say("%u", launch_shaped(function, &of, ARGUMENTS(&p, &last)));
    NEED(cuModuleUnload(module));
}

static void both_shared(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(12);
    shape of = {{1, 1, 1}, {1, 1, 1}, 64};
    say("%u", launch_shaped(KERNEL("both_shared"), &of, ARGUMENTS(&p)));
    STATUS(cuCtxSynchronize());
    say_words(p, 2);
}

/* ---- identity ---- */

static void identity(const check *self)
{
    shape of = shape_of(self);
    size_t count = (size_t)of.grid[0] * of.grid[1] * of.grid[2] * of.block[0] * of.block[1] * of.block[2];
    static uint32_t words[16384];
    hdcu_pointer p = new_bytes(sizeof words);
    NEED(cuMemsetD8(p, 0xff, sizeof words));
    say("%u", launch_shaped(KERNEL("identity"), &of, ARGUMENTS(&p)));
    NEED(cuMemcpyDtoH(words, p, sizeof words));
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        wrong += words[i] != (i < count ? i : 0xffffffff);
    say("%zu of %zu wrong", wrong, count);
}

static void dimensions(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(64);
    shape of = {{2, 3, 4}, {5, 6, 7}, 0};
    NEED(cuMemsetD8(p, 0, 64));
    say("%u", launch_shaped(KERNEL("place"), &of, ARGUMENTS(&p)));
    STATUS(cuCtxSynchronize());
    uint32_t words[7];
    NEED(cuMemcpyDtoH(words, p, sizeof words));
    for (size_t i = 1; i < COUNT_OF(words); i++)
        say("%u", words[i]);
}

/* ---- parameters ---- */

typedef struct packed {
    hdcu_pointer out;
    uint8_t a;
    uint16_t b;
    uint32_t c;
    uint64_t d;
    float e;
    double f;
    struct {
        _Alignas(16) uint32_t words[5];
    } g;
} packed;

static packed values(hdcu_pointer out)
{
    return (packed){out, 0xa1, 0xb2b3, 0xc4c5c6c7, 0xd1d2d3d4d5d6d7d8, 1.5f, -2.25, {{1, 2, 3, 4, 5}}};
}

static void mixed(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(64);
    packed of = values(p);
    NEED(cuMemsetD8(p, 0, 64));
    shape one = {{1, 1, 1}, {1, 1, 1}, 0};
    void **arguments = ARGUMENTS(&of.out, &of.a, &of.b, &of.c, &of.d, &of.e, &of.f, &of.g);
    say("%u", launch_shaped(KERNEL("mixed"), &one, arguments));
    of = (packed){0};
    STATUS(cuCtxSynchronize());
    say_words(p, 10);
}

static hdcu_result launch_extra(const char *name, void *buffer, size_t size, void **arguments)
{
    void *extra[] = {(void *)HDCU_LAUNCH_PARAM_BUFFER_POINTER, buffer, (void *)HDCU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     (void *)HDCU_LAUNCH_PARAM_END};
    return cu.cuLaunchKernel(KERNEL(name), 1, 1, 1, 1, 1, 1, 0, NULL, arguments, extra);
}

static void extra(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(64);
    packed of = values(p);
    NEED(cuMemsetD8(p, 0, 64));
    say("%u", launch_extra("mixed", &of, offsetof(packed, g) + 20, NULL));
    of = (packed){0};
    STATUS(cuCtxSynchronize());
    say_words(p, 10);
}

static void extra_of_size(const check *self)
{
    hdcu_pointer p = new_bytes(64);
    char buffer[256] = "";
    uint32_t value = 5;
    memcpy(buffer, &p, 8);
    memcpy(buffer + 8, &value, 4);
    say("%u", launch_extra("store", buffer, (size_t)self->number, NULL)); /* what a short one writes is undefined */
}

static void extra_and_parameters(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(64);
    uint32_t value = 5;
    char buffer[16] = "";
    memcpy(buffer, &p, 8);
    say("%u", launch_extra("store", buffer, 12, ARGUMENTS(&p, &value)));
    STATUS(cuCtxSynchronize());
}

static void extra_misuse(const check *self)
{
    (void)self;
    char buffer[16] = "";
    void *only_end[] = {(void *)HDCU_LAUNCH_PARAM_END}, *no_size[] = {(void *)HDCU_LAUNCH_PARAM_BUFFER_POINTER, buffer,
                                                                      (void *)HDCU_LAUNCH_PARAM_END};
    void *unknown[] = {(void *)77, buffer, (void *)HDCU_LAUNCH_PARAM_END};
    hdcu_function nothing = KERNEL("nothing");
    STATUS(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, only_end));
    STATUS(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, no_size));
    STATUS(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, unknown));
}

static void no_parameters(const check *self)
{
    (void)self;
    STATUS(cuLaunchKernel(KERNEL("store"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    STATUS(cuCtxSynchronize());
    STATUS(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

/* ---- cuLaunchKernelEx ---- */

static void extended(const check *self)
{
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 15;
    hdcu_launch_attribute attribute = {.id = (unsigned)self->number};
    switch (self->number) {
    case HDCU_LAUNCH_ATTRIBUTE_COOPERATIVE: attribute.value.cooperative = 1; break;
    case HDCU_LAUNCH_ATTRIBUTE_PRIORITY: attribute.value.priority = -1; break;
    default: break;
    }
    hdcu_launch_config of = {1, 1, 1, 1, 1, 1, 0, NULL, &attribute, self->kind == 'n' ? 0 : 1};
    NEED(cuMemsetD8(p, 0, 4));
    STATUS(cuLaunchKernelEx(&of, KERNEL("store"), ARGUMENTS(&p, &value), NULL));
    STATUS(cuCtxSynchronize());
    say("%u", word_at(p));
}

static void extended_misuse(const check *self)
{
    (void)self;
    hdcu_launch_config of = {1, 1, 1, 1025, 1, 1, 0, NULL, NULL, 0};
    STATUS(cuLaunchKernelEx(&of, KERNEL("nothing"), NULL, NULL));
    of.block_x = 1;
    STATUS(cuLaunchKernelEx(&of, NULL, NULL, NULL));
    STATUS(cuLaunchKernelEx(NULL, KERNEL("nothing"), NULL, NULL));
    of.attribute_count = 1;
    STATUS(cuLaunchKernelEx(&of, KERNEL("nothing"), NULL, NULL));
    STATUS(cuCtxSynchronize());
}

/* ---- cooperation ---- */

static void cooperative(const check *self)
{
    hdcu_pointer p = new_bytes(4);
    const uint64_t *in = self->inputs[0];
    set_word(p, 0);
    STATUS(cuLaunchCooperativeKernel(KERNEL(self->text), (unsigned)in[0], 1, 1, (unsigned)in[1], 1, 1, (unsigned)in[2],
                                     NULL, ARGUMENTS(&p)));
    STATUS(cuCtxSynchronize());
    say("%u", word_at(p));
}

static void plain_too_large_is_no_matter(const check *self)
{
    (void)self;
    STATUS(cuLaunchKernel(KERNEL("nothing"), 100000, 1, 1, 1024, 1, 1, 0, NULL, NULL, NULL));
    STATUS(cuCtxSynchronize());
}

static void function_of_other_context(const check *self)
{
    (void)self;
    hdcu_function function = KERNEL("nothing");
    hdcu_context other = NULL;
    hdcu_stream stream = NULL;
    NEED(cuCtxCreate(&other, 0, 0));
    NEED(cuStreamCreate(&stream, 0));
    STATUS(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    STATUS(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    STATUS(cuCtxSynchronize());
    NEED(cuCtxDestroy(other));
}

#define COOPERATIVE(text_, kernel, blocks, threads, shared)                                                            \
    {.name = "cooperative " text_, .run = cooperative, .text = kernel, INPUTS({blocks, threads, shared})}
#define BOUND(text_, kernel, x, y) {.name = "bound " text_, .run = bound, .text = kernel, INPUTS({x, y})}
#define IDENTITY(text_, ...) {.name = "identity " text_, .run = identity, INPUTS(__VA_ARGS__)}
#define LIMIT(text_, shared_bytes, ...) {.name = text_, .run = limit, .number = shared_bytes, INPUTS(__VA_ARGS__)}

static const check checks[] = {
    LIMIT("block 1024", 0, {1, 1, 1}, {1024, 1, 1}),
    LIMIT("block 1025", 0, {1, 1, 1}, {1025, 1, 1}),
    LIMIT("block y 1024", 0, {1, 1, 1}, {1, 1024, 1}),
    LIMIT("block y 1025", 0, {1, 1, 1}, {1, 1025, 1}),
    LIMIT("block z 64", 0, {1, 1, 1}, {1, 1, 64}),
    LIMIT("block z 65", 0, {1, 1, 1}, {1, 1, 65}),
    LIMIT("block 16 x 8 x 8", 0, {1, 1, 1}, {16, 8, 8}),
    LIMIT("block 5 x 205", 0, {1, 1, 1}, {5, 205, 1}),
    LIMIT("block 32 x 33", 0, {1, 1, 1}, {32, 33, 1}),
    LIMIT("block 2^31 x 2", 0, {1, 1, 1}, {0x80000000, 2, 1}),
    LIMIT("grid y 65535", 0, {1, 65535, 1}, {1, 1, 1}),
    LIMIT("grid y 65536", 0, {1, 65536, 1}, {1, 1, 1}),
    LIMIT("grid z 65535", 0, {1, 1, 65535}, {1, 1, 1}),
    LIMIT("grid z 65536", 0, {1, 1, 65536}, {1, 1, 1}),
    LIMIT("grid x 2^31", 0, {0x80000000, 1, 1}, {1, 1, 1}),
    LIMIT("grid x 0", 0, {0, 1, 1}, {1, 1, 1}),
    LIMIT("grid y 0", 0, {1, 0, 1}, {1, 1, 1}),
    LIMIT("grid z 0", 0, {1, 1, 0}, {1, 1, 1}),
    LIMIT("block x 0", 0, {1, 1, 1}, {0, 1, 1}),
    LIMIT("block y 0", 0, {1, 1, 1}, {1, 0, 1}),
    LIMIT("block z 0", 0, {1, 1, 1}, {1, 1, 0}),
    LIMIT("shared 49152", 49152, {1, 1, 1}, {1, 1, 1}),
    LIMIT("shared 49153", 49153, {1, 1, 1}, {1, 1, 1}),
    LIMIT("shared 2^32 - 1", 0xffffffff, {1, 1, 1}, {1, 1, 1}),
    BOUND("64 by 64", "at_most_64", 64, 1),
    BOUND("64 by 65", "at_most_64", 65, 1),
    BOUND("8 x 8 by 64 x 1", "at_most_8x8", 64, 1),
    BOUND("8 x 8 by 8 x 9", "at_most_8x8", 8, 9),
    BOUND("exactly 32 by 32", "exactly_32", 32, 1),
    BOUND("exactly 32 by 16", "exactly_32", 16, 1),
    BOUND("exactly 32 by 64", "exactly_32", 64, 1),
    {.name = "static 1024 + dynamic 48128", .run = static_and_dynamic, .number = 48128},
    {.name = "static 1024 + dynamic 48129", .run = static_and_dynamic, .number = 48129},
    {.name = "opted in to 65536", .run = opted_in, .number = 65536},
    {.name = "opted in to 232448", .run = opted_in, .number = 232448},
    {.name = "static and dynamic apart", .run = both_shared},
    IDENTITY("1-D", {7, 1, 1}, {100, 1, 1}),
    IDENTITY("2-D", {3, 5, 1}, {9, 7, 1}),
    IDENTITY("3-D", {3, 2, 4}, {5, 3, 6}),
    IDENTITY("full blocks", {16, 1, 1}, {1024, 1, 1}),
    {.name = "dimensions", .run = dimensions},
    {.name = "mixed parameters", .run = mixed},
    {.name = "mixed parameters in a buffer", .run = extra},
    {.name = "buffer exact", .run = extra_of_size, .number = 12, .alone = true},
    {.name = "buffer short", .run = extra_of_size, .number = 8, .alone = true},
    {.name = "buffer padded", .run = extra_of_size, .number = 16, .alone = true},
    {.name = "buffer of 0", .run = extra_of_size, .number = 0, .alone = true},
    {.name = "buffer and parameters", .run = extra_and_parameters},
    {.name = "buffer misuse", .run = extra_misuse, .alone = true},
    {.name = "no parameters", .run = no_parameters, .alone = true},
    {.name = "extended", .run = extended, .kind = 'n'},
    {.name = "extended: ignored attribute", .run = extended, .number = HDCU_LAUNCH_ATTRIBUTE_IGNORE},
    {.name = "extended: cooperative", .run = extended, .number = HDCU_LAUNCH_ATTRIBUTE_COOPERATIVE},
    {.name = "extended: priority", .run = extended, .number = HDCU_LAUNCH_ATTRIBUTE_PRIORITY},
    {.name = "extended: unknown attribute", .run = extended, .number = 99},
    {.name = "extended misuse", .run = extended_misuse, .alone = true},
    COOPERATIVE("one block", "wait_together", 1, 1, 0),
    COOPERATIVE("132 blocks", "wait_together", 132, 1, 0),
    COOPERATIVE("264 blocks of 1024", "wait_together", 264, 1024, 0),
    COOPERATIVE("265 blocks of 1024", "wait_together", 265, 1024, 0),
    COOPERATIVE("4224 blocks of 32", "wait_together", 4224, 32, 0),
    COOPERATIVE("4225 blocks of 32", "wait_together", 4225, 32, 0),
    COOPERATIVE("528 blocks with 49152", "wait_together", 528, 32, 49152),
    COOPERATIVE("529 blocks with 49152", "wait_together", 529, 32, 49152),
    COOPERATIVE("block of 1025", "wait_together", 1, 1025, 0),
    COOPERATIVE("no blocks", "wait_together", 0, 1, 0),
    {.name = "large grid", .run = plain_too_large_is_no_matter},
    {.name = "function of another context", .run = function_of_other_context},
};

const area area_launch = {"launch", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
