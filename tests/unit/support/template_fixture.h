/* SPDX-License-Identifier: MIT */
/*
 * What tests of the template cache share: numbered kernels, streams of their own, and the committer that the cache serves,
 * which they play.
 */
#ifndef HDRT_TESTS_TEMPLATE_FIXTURE_H
#define HDRT_TESTS_TEMPLATE_FIXTURE_H

#include "queue/template.h"

#include "device_fixture.h"

#include "device/device.h"
#include "jit/kernel.h"

#define KERNELS 96u
#define SEVERAL 12u /* modules, where 96 kernels are too few */
#define STREAMS 4u
#define CHUNK 64u

/* Kernel fN(p, v): *p = *p * 31 + v + N; every third one has a parameter between and one after, which it adds; of every
 * sixth the latter is large, and its last word counts. */
static hdrt_module *module;
static hdrt_kernel *kernels[SEVERAL * KERNELS];
static hdrt__templates *templates;
static hdrt__scope scope;
static hdcu_stream streams[STREAMS];
static _Atomic uint64_t numbers[STREAMS];   /* of the last command in each */
static _Atomic uint64_t completed[STREAMS]; /* as far as is known */
static hdcu_pointer sums;                   /* of each stream */
static uint32_t expected[STREAMS];

#define DRIVER (dev->driver)
#define CU_OK(call) ck_assert_uint_eq((call), 0)

static inline bool has_more(uint32_t kernel)
{
    return kernel % 3 == 0;
}

#define LARGE 12u /* words of 64 bits */

static inline bool has_large(uint32_t kernel)
{
    return kernel % 6 == 0;
}

static inline bool is_complete(void *context, uint32_t index, uint64_t sequence)
{
    (void)context;
    return atomic_load(&completed[index]) >= sequence;
}

static inline hdrt_module *load_numbered(void)
{
    hdrt_module *loaded;
    char *text = malloc(KERNELS * 600u + 100u);
    size_t size = (size_t)sprintf(text, ".version 7.4\n.target sm_75\n.address_size 64\n");
    for (uint32_t i = 0; i < KERNELS; i++) {
        size += (size_t)sprintf(text + size,
                                ".visible .entry f%u(.param .u64 p, %s.param .u32 v%s)\n{\n .reg .b32 %%r<6>;\n"
                                " .reg .b64 %%d<2>;\n ld.param.u64 %%d1, [p];\n ld.param.u32 %%r1, [v];\n",
                                i, has_more(i) ? ".param .u8 a, " : "",
                                has_large(i)  ? ", .param .align 8 .b8 b[96]"
                                : has_more(i) ? ", .param .u64 b"
                                              : "");
        if (has_more(i)) {
            size += (size_t)sprintf(text + size,
                                    " ld.param.u8 %%r3, [a];\n ld.param.u32 %%r4, [b%s];\n"
                                    " add.u32 %%r1, %%r1, %%r3;\n add.u32 %%r1, %%r1, %%r4;\n",
                                    has_large(i) ? "+88" : "");
        }
        size += (size_t)sprintf(text + size,
                                " cvta.to.global.u64 %%d1, %%d1;\n ld.global.u32 %%r2, [%%d1];\n"
                                " mul.lo.u32 %%r2, %%r2, 31;\n add.u32 %%r2, %%r2, %%r1;\n add.u32 %%r2, %%r2, %u;\n"
                                " st.global.u32 [%%d1], %%r2;\n ret;\n}\n",
                                i);
    }
    CK_OK(hdrt_module_load(dev, text, size, NULL, &loaded));
    free(text);
    return loaded;
}

/* kernels[first] and so on */
static inline hdrt_module *load_from(uint32_t first)
{
    hdrt_module *loaded = load_numbered();
    for (uint32_t i = 0; i < KERNELS; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        kernels[first + i] = kernel_of(loaded, name);
    }
    return loaded;
}

/* All of the kernels that there can be; and those but the first ones not any more. */
static inline void load_several(hdrt_module *more[SEVERAL - 1])
{
    for (uint32_t i = 0; i < SEVERAL - 1; i++) {
        more[i] = load_from((i + 1) * KERNELS);
    }
}

static inline void forget_several(hdrt_module *more[SEVERAL - 1])
{
    for (uint32_t i = 0; i < SEVERAL - 1; i++) {
        hdrt_module_destroy(more[i]);
    }
    ck_assert(!hdrt__templates_forget(templates));
}

static inline void setup(void)
{
    setup_device();
    module = load_from(0);
    CK_OK(hdrt__device_enter(dev, &scope));
    CU_OK(DRIVER->cuMemAlloc(&sums, STREAMS * sizeof(uint32_t)));
    CU_OK(DRIVER->cuMemsetD32(sums, 0, STREAMS));
    for (uint32_t i = 0; i < STREAMS; i++) {
        CU_OK(DRIVER->cuStreamCreate(&streams[i], HDCU_STREAM_NON_BLOCKING));
        atomic_store(&numbers[i], 0);
        atomic_store(&completed[i], 0);
        expected[i] = 0;
    }
    templates = hdrt__templates_create(dev, is_complete, NULL);
    ck_assert_ptr_nonnull(templates);
}

/* The cache made anew, of what this driver can do. */
static inline void renew_templates(const hdrt__driver_table *driver)
{
    const hdrt__driver_table *own = dev->driver;
    hdrt__templates_destroy(templates);
    dev->driver = driver;
    templates = hdrt__templates_create(dev, is_complete, NULL);
    dev->driver = own;
    ck_assert_ptr_nonnull(templates);
}

static inline void teardown(void)
{
    hdrt__templates_destroy(templates);
    for (uint32_t i = 0; i < STREAMS; i++) {
        CU_OK(DRIVER->cuStreamDestroy(streams[i]));
    }
    CU_OK(DRIVER->cuMemFree(sums));
    hdrt__device_leave(dev, &scope);
    hdrt_module_destroy(module);
    teardown_device();
}

/* ---- the committer ----------------------------------------------------------------------------------------------- */

typedef struct one_launch {
    hdcu_pointer sum;
    uint32_t value;
    uint8_t a;
    uint64_t b[LARGE];
    void *params[4];
    hdrt_grid grid;
} one_launch;

static inline void prepare(one_launch *one, hdrt__run_launch *launch, uint32_t stream, uint32_t kernel, uint32_t value)
{
    one->sum = sums + stream * sizeof(uint32_t);
    one->value = value;
    one->a = (uint8_t)(value * 7);
    one->b[has_large(kernel) ? LARGE - 1 : 0] = value * 3;
    one->grid = (hdrt_grid){{1, 1, 1}, {1, 1, 1}, value % 5 == 0 ? 16 : 0};
    one->params[0] = &one->sum;
    one->params[1] = has_more(kernel) ? (void *)&one->a : (void *)&one->value;
    one->params[2] = &one->value;
    one->params[3] = one->b;
    *launch = (hdrt__run_launch){kernels[kernel], &one->grid, one->params};
    expected[stream] = expected[stream] * 31 + value + kernel % KERNELS;
    if (has_more(kernel)) {
        expected[stream] += one->a + value * 3;
    }
}

static inline hdcu_result direct(uint32_t stream, const hdrt__run_launch *l)
{
    const hdrt_grid *g = l->grid;
    atomic_fetch_add(&numbers[stream], 1);
    return DRIVER->cuLaunchKernel(l->kernel->function, g->grid[0], g->grid[1], g->grid[2], g->block[0], g->block[1],
                                  g->block[2], g->shared, streams[stream], l->params, NULL);
}

/* Commit a run as the dispatcher would. \return launches that went by templates. Asserts nothing. */
static inline uint32_t commit(uint32_t stream, const hdrt__run_launch *run, uint32_t count, bool more, hdcu_result *out_result)
{
    uint32_t served = 0;
    *out_result = 0;
    for (uint32_t done = 0; done < count && !*out_result;) {
        uint32_t one_by_one = 0;
        hdrt__call call;
        hdrt__run_place place = {.stream = streams[stream], .index = stream, .sequence = atomic_load(&numbers[stream]) + 1};
        uint32_t went =
            hdrt__templates_chain(templates, &place, run + done, count - done, more, &one_by_one, &call);
        *out_result = call.result;
        if (went) {
            atomic_store(&numbers[stream], place.sequence);
            served += went;
        }
        for (uint32_t i = 0; !went && i < one_by_one && !*out_result; i++) {
            *out_result = direct(stream, &run[done + i]);
        }
        done += went ? went : one_by_one;
    }
    return served;
}

/* `count` launches of the kernels in `sequence`, round and round from `phase` on. \return how many by templates. */
static inline uint32_t run_loop(uint32_t stream, const uint32_t *sequence, uint32_t length, uint32_t phase, uint32_t count,
                         bool more)
{
    static one_launch ones[STREAMS][CHUNK * 4];
    static hdrt__run_launch launches[STREAMS][CHUNK * 4];
    hdcu_result result;
    ck_assert_uint_le(count, CHUNK * 4);
    for (uint32_t i = 0; i < count; i++) {
        prepare(&ones[stream][i], &launches[stream][i], stream, sequence[(phase + i) % length], phase * 131 + i);
    }
    uint32_t served = commit(stream, launches[stream], count, more, &result);
    CU_OK(result);
    return served;
}

static inline void synchronize(uint32_t stream)
{
    CU_OK(DRIVER->cuStreamSynchronize(streams[stream]));
    atomic_store(&completed[stream], atomic_load(&numbers[stream]));
}

static inline void check_sum(uint32_t stream)
{
    uint32_t sum = 0;
    synchronize(stream);
    CU_OK(DRIVER->cuMemcpyDtoH(&sum, sums + stream * sizeof sum, sizeof sum));
    ck_assert_uint_eq(sum, expected[stream]);
}

static inline hdrt__template_counts counts(void)
{
    hdrt__template_counts all;
    hdrt__templates_count(templates, &all);
    return all;
}

static inline uint32_t random_number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

#endif
