/* SPDX-License-Identifier: MIT */
/*
 * What launch templates cost and save by themselves, without queues and dispatcher: the numbers behind the constants in
 * lib/queue/template_table.h. On a GPU: `make bench-templates HDRT_DRIVER=cuda`.
 *
 *   sizes      build (graph, exec, first launch), destroy, device memory, and refill and launch for each kernel
 *   among      many kernels in random order: by themselves, by a template for each, by open templates
 *   gated      build and destroy while a kernel runs on another stream: do they wait for it?
 *   patterns   the cache itself against single launches, in turn
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "jit/kernel.h"
#include "queue/template_sequence.h"

#include "clock.h"
#include "patterns.h"

#define KERNELS 1024u
#define LAUNCHES 20000u
#define ROUNDS 5

static hdrt_runtime *runtime;
static hdrt_device *device;
static const hdrt__driver_table *cu;
static hdrt_module *module;
static hdrt_kernel *kernels[KERNELS], *gate;
static hdcu_stream stream, other;
static hdcu_pointer words;
static atomic_bool idle; /* whether all that was launched is complete */

static void must(hdcu_result result, const char *call)
{
    if (result) {
        fprintf(stderr, "templates: %s: %u\n", call, result);
        exit(2);
    }
}
#define MUST(call) must(cu->call, #call)

static void must_be_ok(hdrt_status status, const char *call)
{
    if (status != HDRT_OK) {
        fprintf(stderr, "templates: %s: %s\n", call, hdrt_last_error());
        exit(2);
    }
}
#define OK(call) must_be_ok(call, #call)

static void load(void)
{
    static char text[KERNELS * 400 + 1000];
    size_t size = (size_t)sprintf(text,
                                  ".version 7.4\n.target sm_75\n.address_size 64\n"
                                  ".visible .entry gate(.param .u64 p, .param .u64 ns)\n{\n .reg .pred %%q;\n"
                                  " .reg .b32 %%r;\n .reg .b64 %%d<6>;\n ld.param.u64 %%d1, [p];\n"
                                  " cvta.to.global.u64 %%d1, %%d1;\n ld.param.u64 %%d2, [ns];\n"
                                  " mov.u64 %%d3, %%globaltimer;\n"
                                  "AGAIN:\n ld.volatile.global.u32 %%r, [%%d1];\n setp.ne.u32 %%q, %%r, 0;\n"
                                  " @%%q ret;\n mov.u64 %%d4, %%globaltimer;\n sub.u64 %%d5, %%d4, %%d3;\n"
                                  " setp.lt.u64 %%q, %%d5, %%d2;\n @%%q bra AGAIN;\n ret;\n}\n");
    for (unsigned i = 0; i < KERNELS; i++) {
        size += (size_t)sprintf(text + size,
                                ".visible .entry k%u(.param .u64 p, .param .u32 v)\n{\n .reg .b32 %%r;\n .reg .b64 %%d;"
                                "\n ld.param.u64 %%d, [p];\n ld.param.u32 %%r, [v];\n add.u32 %%r, %%r, %u;\n"
                                " cvta.to.global.u64 %%d, %%d;\n st.global.u32 [%%d], %%r;\n ret;\n}\n",
                                i, i);
    }
    OK(hdrt_module_load(device, text, size, NULL, &module));
    OK(hdrt_module_kernel(module, "gate", &gate));
    for (unsigned i = 0; i < KERNELS; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%u", i);
        OK(hdrt_module_kernel(module, name, &kernels[i]));
    }
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static uint64_t pointers[LAUNCHES];
static uint32_t values[LAUNCHES], which[LAUNCHES];
static void *params[LAUNCHES][2];
static hdrt__run_launch run[LAUNCHES];
static const hdrt_grid one = {{1, 1, 1}, {1, 1, 1}, 0};

static void prepare(uint32_t count, uint32_t round)
{
    for (uint32_t i = 0; i < count; i++) {
        pointers[i] = words + i * sizeof(uint32_t);
        values[i] = i + round;
        params[i][0] = &pointers[i];
        params[i][1] = &values[i];
        run[i] = (hdrt__run_launch){kernels[which[i]], &one, params[i]};
    }
}

static void launch_directly(const hdrt__run_launch *launch)
{
    MUST(cuLaunchKernel(launch->kernel->function, 1, 1, 1, 1, 1, 1, 0, stream, launch->params, NULL));
}

static void verify(uint32_t count)
{
    static uint32_t read[LAUNCHES];
    MUST(cuMemcpyDtoH(read, words, count * sizeof(uint32_t)));
    for (uint32_t i = 0; i < count; i++) {
        if (read[i] != values[i] + which[i]) {
            fprintf(stderr, "templates: launch %u wrote %u, not %u\n", i, read[i], values[i] + which[i]);
            exit(2);
        }
    }
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static hdrt__template_sequence *make_sequence(uint32_t count, hdrt__template_kind kind)
{
    hdrt__template_sequence *sequence = hdrt__template_sequence_create(run, count, 1, kind);
    if (!sequence) {
        fprintf(stderr, "templates: no memory\n");
        exit(2);
    }
    return sequence;
}

static hdrt__template_instance *make_instance(hdrt__template_sequence *sequence)
{
    hdrt_kernel *left = NULL; /* of one module, which we hold */
    const hdrt__run_place nowhere = {.word = 0}; /* it does not ring */
    hdrt__template_instance *instance =
        hdrt__template_instance_create(sequence, cu, &nowhere, run, sequence->count, &left);
    if (!instance) {
        fprintf(stderr, "templates: a template of %u cannot be built\n", sequence->count);
        exit(2);
    }
    return instance;
}

static void fill_and_launch(hdrt__template_instance *instance, uint32_t at)
{
    hdrt_kernel *left = NULL;
    uint32_t refused;
    must(hdrt__template_instance_fill(instance, cu, run + at, instance->sequence->count, &refused, &left).result,
         "refilling");
    MUST(cuGraphLaunch(instance->exec, stream));
}

static void destroy_instance(hdrt__template_instance *instance)
{
    hdrt__template_instance_end(instance, cu);
    hdrt__template_instance_release(instance);
}

static void destroy_sequence(hdrt__template_sequence *sequence)
{
    hdrt__template_sequence_end(sequence, cu);
    hdrt__template_sequence_release(sequence);
}

static void measure_size(uint32_t count, bool wide, uint32_t copies)
{
    hdrt__template_sequence **sequences = calloc(copies, sizeof *sequences);
    hdrt__template_instance **instances = calloc(copies, sizeof *instances);
    size_t before, after, all;
    if (!sequences || !instances) {
        fprintf(stderr, "templates: no memory\n");
        exit(2);
    }
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        which[i] = wide ? 0 : i % count % 7;
    }
    prepare(LAUNCHES, 0);
    MUST(cuMemGetInfo(&before, &all));
    double start = now();
    for (uint32_t i = 0; i < copies; i++) {
        sequences[i] = make_sequence(count, wide ? HDRT__TEMPLATE_WIDE : HDRT__TEMPLATE_CHAIN);
        instances[i] = make_instance(sequences[i]);
    }
    double built = now();
    for (uint32_t i = 0; i < copies; i++) {
        fill_and_launch(instances[i], 0);
        MUST(cuStreamSynchronize(stream));
    }
    double launched = now();
    MUST(cuMemGetInfo(&after, &all));
    double wall = 1e30;
    for (int round = 1; round <= ROUNDS; round++) {
        prepare(LAUNCHES, (uint32_t)round);
        double begin = now();
        for (uint32_t at = 0; at + count <= LAUNCHES; at += count) {
            fill_and_launch(instances[0], at);
        }
        MUST(cuStreamSynchronize(stream));
        double each = (now() - begin) / (LAUNCHES / count * count);
        wall = each < wall ? each : wall;
        verify(LAUNCHES / count * count);
    }
    double ending = now();
    for (uint32_t i = 0; i < copies; i++) {
        destroy_instance(instances[i]);
        destroy_sequence(sequences[i]);
    }
    printf("%s of %3u: build %7.1f us, first launch and end %7.1f us, destroy %6.1f us, %6.1f KiB, %5.0f ns a kernel\n",
           wide ? "wide " : "chain", count, (built - start) / copies / 1e3, (launched - built) / copies / 1e3,
           (now() - ending) / copies / 1e3, (double)(before > after ? before - after : 0) / copies / 1024, wall);
    free(instances);
    free(sequences);
}

static void measure_gated(void)
{
    _Atomic uint32_t *flag;
    hdcu_pointer address;
    MUST(cuMemHostAlloc((void **)&flag, sizeof *flag, 0));
    MUST(cuMemHostGetDevicePointer(&address, (void *)flag, 0));
    atomic_store(flag, 0);
    uint64_t most = UINT64_C(10000000000); /* so that a driver that waits does not wait for ever */
    void *arguments[] = {&address, &most};
    hdrt__template_sequence *early = make_sequence(64, HDRT__TEMPLATE_CHAIN);
    hdrt__template_instance *instance = make_instance(early);
    MUST(cuLaunchKernel(gate->function, 1, 1, 1, 1, 1, 1, 0, other, arguments, NULL));
    double start = now();
    hdrt__template_sequence *late = make_sequence(64, HDRT__TEMPLATE_CHAIN);
    hdrt__template_instance *second = make_instance(late);
    double built = now();
    fill_and_launch(second, 0);
    MUST(cuStreamSynchronize(stream));
    double launched = now();
    destroy_instance(instance);
    hdrt__template_sequence_end(early, cu);
    double destroyed = now();
    bool closed = cu->cuStreamQuery(other) == HDCU_ERROR_NOT_READY;
    atomic_store(flag, 1);
    MUST(cuStreamSynchronize(other));
    printf("while a kernel runs%s: build %.1f us, first launch and end %.1f us, destroy %.1f us\n",
           closed ? "" : " (it did not hold)", (built - start) / 1e3, (launched - built) / 1e3,
           (destroyed - launched) / 1e3);
    destroy_instance(second);
    destroy_sequence(late);
    hdrt__template_sequence_release(early);
    MUST(cuMemFreeHost((void *)flag));
}

/* ---- among many -------------------------------------------------------------------------------------------------- */

/* \return ns a kernel for random ones of the first `many`: by the template of each, by an open one, or by themselves. */
static double measure_random(hdrt__template_instance *const *each, hdrt__template_instance *open, uint32_t many,
                             uint32_t *state)
{
    uint32_t size = open ? open->sequence->count : 1, count = LAUNCHES / size * size;
    double least = 1e30;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < LAUNCHES; i++) {
            which[i] = pattern_number(state) % many;
        }
        prepare(LAUNCHES, round);
        double start = now();
        for (uint32_t at = 0; at < count; at += size) {
            if (open || each) {
                fill_and_launch(open ? open : each[which[at]], at);
            } else {
                launch_directly(&run[at]);
            }
        }
        MUST(cuStreamSynchronize(stream));
        double ns = (now() - start) / count;
        least = ns < least ? ns : least;
        verify(count);
    }
    return least;
}

static hdrt__template_instance *make_first(uint32_t first, uint32_t count, hdrt__template_kind kind)
{
    for (uint32_t i = 0; i < count; i++) {
        which[i] = first + i;
    }
    prepare(count, 0);
    hdrt__template_instance *instance = make_instance(make_sequence(count, kind));
    fill_and_launch(instance, 0);
    return instance;
}

static void destroy(hdrt__template_instance *instance)
{
    hdrt__template_sequence *sequence = instance->sequence;
    destroy_instance(instance);
    destroy_sequence(sequence);
}

static void measure_among(void)
{
    static hdrt__template_instance *each[KERNELS], *open[6];
    static const uint32_t manies[] = {1, 7, 32, 64, 128, 256, KERNELS};
    uint32_t state = 7;
    for (uint32_t i = 0; i < KERNELS; i++) {
        each[i] = make_first(i, 1, HDRT__TEMPLATE_CHAIN);
    }
    for (uint32_t i = 0; i < 6; i++) {
        open[i] = make_first(0, 2u << i, HDRT__TEMPLATE_OPEN);
    }
    MUST(cuStreamSynchronize(stream));
    for (uint32_t i = 0; i < sizeof manies / sizeof manies[0]; i++) {
        printf("one of %4u in random order, ns a kernel: direct %5.0f, by its template %5.0f, by open ones", manies[i],
               measure_random(NULL, NULL, manies[i], &state), measure_random(each, NULL, manies[i], &state));
        for (uint32_t j = 0; j < 6; j++) {
            printf(", of %u %5.0f", 2u << j, measure_random(NULL, open[j], manies[i], &state));
        }
        printf("\n");
    }
    for (uint32_t i = 0; i < KERNELS; i++) {
        destroy(each[i]);
    }
    for (uint32_t i = 0; i < 6; i++) {
        destroy(open[i]);
    }
}

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

static bool is_complete(void *context, uint32_t index, uint64_t sequence)
{
    (void)context;
    (void)index;
    (void)sequence;
    return atomic_load(&idle);
}

static const struct pattern {
    const char *name;
    pattern_function *kernel;
    uint32_t many;
} patterns[] = {
    {"one kernel", pattern_in_turn, 1},
    {"loop of 7", pattern_in_turn, 7},
    {"7 in random order", pattern_random, 7},
    {"1,024 in random order", pattern_random, KERNELS},
    {"1,024 in turn", pattern_in_turn, KERNELS},
    {"17 of each", pattern_seventeen, KERNELS},
    {"loop of 300", pattern_in_turn, 300},
    {"64 that come twice", pattern_twice, KERNELS},
};

static void commit(hdrt__templates *templates, uint64_t *number)
{
    for (uint32_t at = 0; at < LAUNCHES;) {
        uint32_t direct, left = LAUNCHES - at;
        hdrt__call call;
        hdrt__run_place place = {.stream = stream, .index = 0, .sequence = ++*number};
        uint32_t went = hdrt__templates_chain(templates, &place, run + at, left < 64 ? left : 64, left > 64, &direct,
                                              &call);
        must(call.result, "cuGraphLaunch");
        for (uint32_t i = 0; !went && i < direct; i++) {
            launch_directly(&run[at + i]);
        }
        at += went ? went : direct;
    }
}

static void measure_pattern(const struct pattern *pattern)
{
    hdrt__templates *templates = hdrt__templates_create(device, is_complete, NULL);
    uint32_t state = 5;
    uint64_t number = 0;
    if (!templates) {
        fprintf(stderr, "templates: %s\n", hdrt_last_error());
        exit(2);
    }
    printf("%-26s", pattern->name);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < LAUNCHES; i++) {
            which[i] = pattern->kernel(i, pattern->many, &state);
        }
        prepare(LAUNCHES, round);
        double start = now();
        for (uint32_t i = 0; i < LAUNCHES; i++) {
            launch_directly(&run[i]);
        }
        MUST(cuStreamSynchronize(stream));
        double between = now();
        atomic_store(&idle, false);
        commit(templates, &number);
        MUST(cuStreamSynchronize(stream));
        double end = now();
        atomic_store(&idle, true);
        verify(LAUNCHES);
        printf(" %5.0f/%5.0f=%4.2f", (between - start) / LAUNCHES, (end - between) / LAUNCHES,
               (between - start) / (end - between));
    }
    hdrt__template_counts counts;
    hdrt__templates_count(templates, &counts);
    printf("  built %llu\n", (unsigned long long)counts.built);
    hdrt__templates_destroy(templates);
}

int main(void)
{
    hdrt__scope scope;
    OK(hdrt_runtime_create(NULL, &runtime));
    OK(hdrt_device_open(runtime, 0, NULL, &device));
    cu = device->driver;
    load();
    OK(hdrt__device_enter(device, &scope));
    MUST(cuMemAlloc(&words, LAUNCHES * sizeof(uint32_t)));
    MUST(cuStreamCreate(&stream, HDCU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&other, HDCU_STREAM_NON_BLOCKING));
    for (uint32_t size = 1; size <= 64; size *= 2) {
        measure_size(size, false, 256);
    }
    for (uint32_t size = 8; size <= 512; size *= 4) {
        measure_size(size, true, 8);
    }
    measure_among();
    measure_gated();
    printf("ns a kernel, direct/templates=ratio, %d rounds of %u\n", ROUNDS, LAUNCHES);
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        measure_pattern(&patterns[i]);
    }
    MUST(cuStreamDestroy(other));
    MUST(cuStreamDestroy(stream));
    MUST(cuMemFree(words));
    hdrt__device_leave(device, &scope);
    hdrt_module_destroy(module);
    hdrt_device_close(device);
    hdrt_runtime_destroy(runtime);
    return 0;
}
