/* SPDX-License-Identifier: MIT */
/* The cache of launch templates, by itself: chains, what is built and dropped, and failures. */
#include "template_fixture.h"

#include "failing_malloc.h"

#include "jit/module.h"
#include "queue/template_choose.h"
#include "queue/template_cut.h"
#include "queue/template_table.h"

#define TWICE 1200

static const uint32_t numbered[KERNELS] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
    24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
    48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71,
    72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95,
};

/* ---- cutting ----------------------------------------------------------------------------------------------------- */

static uint32_t cut_of(const uint32_t *sequence, uint32_t length, uint32_t phase, uint32_t count, bool more)
{
    static hdrt_kernel stand_in[256];
    hdrt__run_launch run[CHUNK];
    for (uint32_t i = 0; i < count; i++) {
        run[i] = (hdrt__run_launch){&stand_in[sequence[(phase + i) % length]], NULL, NULL};
    }
    return hdrt__template_cut(run, count, more);
}

START_TEST(test_cut_loops)
{
    static const struct {
        uint32_t period, count;
        bool more;
        uint32_t size;
    } cases[] = {
        {1, 64, true, 64}, {2, 64, true, 64},  {3, 64, true, 63},  {5, 64, true, 60},  {7, 64, true, 63},
        {7, 64, false, 63}, {9, 64, true, 63}, {31, 64, true, 62}, {32, 64, true, 64}, {1, 63, false, 32},
        {1, 3, false, 2},   {1, 1, false, 1},  {7, 63, false, 63}, {7, 62, true, 56},  {7, 20, false, 14},
        {7, 13, false, 13}, {4, 12, false, 8}, {64, 64, false, 64}, {20, 12, false, 12},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (uint32_t phase = 0; phase < 3; phase++) {
            uint32_t size = cut_of(numbered, cases[i].period, phase, cases[i].count, cases[i].more);
            ck_assert_msg(size == cases[i].size, "case %zu, phase %u: %u", i, phase, size);
        }
    }
}
END_TEST

/* A loop of 300, of which no window shows more than 64, is cut at the same few places time and again. */
START_TEST(test_cut_long_loop)
{
    uint32_t sequence[300], state = 1;
    unsigned char places[2][300] = {{0}};
    for (uint32_t i = 0; i < 300; i++) {
        sequence[i] = random_number(&state) % 200;
    }
    for (uint32_t start = 0; start < 300; start += 37) {
        uint32_t at = start;
        memset(places, 0, sizeof places);
        while (at < 300 * 16) {
            at += cut_of(sequence, 300, at % 300, CHUNK, true);
            if (at >= 300 * 4) {
                places[at >= 300 * 12][at % 300] = 1;
            }
        }
        /* Not always from one round to the next: kernels' addresses decide, and a few rounds may take turns. */
        for (uint32_t i = 0; i < 300; i++) {
            ck_assert_uint_le(places[1][i], places[0][i]);
        }
    }
}
END_TEST

/* ---- the rules --------------------------------------------------------------------------------------------------- */

/* The largest open templates first, from the second use on; what comes often gets a chain of its own. */
START_TEST(test_second_use)
{
    ck_assert_uint_eq(run_loop(0, numbered, 12, 0, 12, false), 0);
    ck_assert_uint_eq(counts().built, 0);
    ck_assert_uint_eq(run_loop(0, numbered, 12, 0, 12, false), 12);
    ck_assert_uint_eq(counts().built, 2);
    ck_assert_uint_eq(counts().launches, 2); /* of 8 and of 4 */
    for (int i = 0; i < 20; i++) {
        ck_assert_uint_eq(run_loop(0, numbered, 12, 0, 12, false), 12);
    }
    ck_assert_uint_eq(counts().built, 3);
    ck_assert_uint_eq(counts().kernels, 21 * 12);
    ck_assert_uint_lt(counts().launches, 21 + 12);
    /* Other sequences of the same length go by the same open ones. */
    for (uint32_t i = 1; i < 13; i++) {
        ck_assert_uint_eq(run_loop(0, numbered, 13, i, 12, false), 12);
    }
    ck_assert_uint_eq(counts().built, 3);
    check_sum(0);
}
END_TEST

/* The loop of 7: whole periods, so that one template serves it for ever. */
START_TEST(test_loop_of_seven)
{
    uint32_t phase = 0, served = 0, all = 0;
    for (int i = 0; i < 50; i++, phase += 252, all += 252) {
        served += run_loop(0, numbered, 7, phase, 252, true);
    }
    ck_assert_uint_ge(served, all - 63 - 12); /* of 63 one is left over by open ones */
    ck_assert_uint_le(counts().built, 7);
    hdrt__template_counts before = counts();
    for (int i = 0; i < 50; i++, phase += 252) {
        run_loop(0, numbered, 7, phase, 252, true);
    }
    ck_assert_uint_eq(counts().launches - before.launches, 200);
    ck_assert_uint_eq(counts().kernels - before.kernels, 200 * 63);
    check_sum(0);
}
END_TEST

START_TEST(test_only_changes_are_set)
{
    static const uint32_t which[] = {1, 2, 3, 4, 5, 7, 8, 9};
    one_launch ones[8];
    hdrt__run_launch run[8];
    hdcu_result result;
    if (on_cuda()) {
        return;
    }
    for (uint32_t i = 0; i < 8; i++) {
        prepare(&ones[i], &run[i], 0, which[i], i + 1);
    }
    for (int round = 0; round < 3; round++) {
        commit(0, run, 8, false, &result);
        CU_OK(result);
    }
    unsigned long long before = calls_of("cuGraphExecKernelNodeSetParams");
    ck_assert_uint_eq(commit(0, run, 8, false, &result), 8);
    ck_assert_uint_eq(calls_of("cuGraphExecKernelNodeSetParams"), before);
    ones[2].b[0]++;
    ones[3].value++;
    ones[4].grid.shared = 32;
    ones[7].a++;
    ones[0].a++; /* of which f1 has none */
    ck_assert_uint_eq(commit(0, run, 8, false, &result), 8);
    ck_assert_uint_eq(calls_of("cuGraphExecKernelNodeSetParams"), before + 4);
    ck_assert_uint_eq(counts().built, 1);
    prepare(&ones[6], &run[6], 0, 10, 1); /* another kernel */
    ck_assert_uint_eq(commit(0, run, 8, false, &result), 8);
    ck_assert_uint_eq(calls_of("cuGraphExecKernelNodeSetParams"), before + 5);
    synchronize(0);
}
END_TEST

/* An instance begins with the values of its first launch: set before that, each of its launches would be slower. */
START_TEST(test_first_launch_sets_nothing)
{
    if (on_cuda()) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        run_loop(0, numbered, 10, (uint32_t)i * 10, 10, false);
    }
    ck_assert_uint_eq(counts().built, 2); /* for 8 and for 2 */
    ck_assert_uint_eq(calls_of("cuGraphExecKernelNodeSetParams"), 0);
    run_loop(1, numbered + 20, 10, 0, 10, false); /* the first are in flight; their graphs get other kernels */
    ck_assert_uint_eq(counts().built, 4);
    ck_assert_uint_eq(calls_of("cuGraphExecKernelNodeSetParams"), 0);
    run_loop(1, numbered + 20, 10, 30, 10, false);
    ck_assert_uint_eq(counts().built, 4);
    ck_assert_uint_eq(calls_of("cuGraphExecKernelNodeSetParams"), 10);
    check_sum(0);
    check_sum(1);
}
END_TEST

/* Behind a gate a driver blocks in one of too many first launches. */
START_TEST(test_first_launches_in_flight)
{
    for (uint32_t i = 0; i < 40; i++) {
        for (uint32_t again = 0; again < 12; again++) {
            run_loop(0, numbered + i, 4, 0, 4, false);
        }
    }
    ck_assert_uint_eq(counts().built, 16);
    synchronize(0);
    for (uint32_t i = 0; i < 40; i++) {
        run_loop(0, numbered + i, 4, 0, 4, false);
    }
    ck_assert_uint_gt(counts().built, 16);
    ck_assert_uint_le(counts().built, 32);
    check_sum(0);
}
END_TEST

/* Random kernels of the first `many`, in runs. \return how many by templates. */
static uint32_t run_random(uint32_t many, int rounds, uint32_t *state)
{
    uint32_t sequence[CHUNK * 4], served = 0;
    for (int i = 0; i < rounds; i++) {
        for (uint32_t j = 0; j < CHUNK * 4; j++) {
            sequence[j] = random_number(state) % many;
        }
        served += run_loop(0, sequence, CHUNK * 4, 0, CHUNK * 4, true);
        synchronize(0);
    }
    return served;
}

/* What hardly repeats is hardly built, and goes by open ones: seven kernels, many, those of several modules. */
START_TEST(test_random_order)
{
    static const uint32_t manies[] = {7, KERNELS, SEVERAL * KERNELS};
    hdrt_module *more[SEVERAL - 1];
    uint32_t state = 7;
    load_several(more);
    for (size_t i = 0; i < sizeof manies / sizeof manies[0]; i++) {
        ck_assert_uint_ge(run_random(manies[i], 50, &state), 48 * CHUNK * 4);
        check_sum(0);
    }
    ck_assert_uint_le(counts().built, 6 + 7); /* sizes, and kernels that were left over alone */
    ck_assert_uint_ge(counts().kernels, 12 * counts().launches);
    /* By the largest, by then; but for some, lest what comes again be missed: a loop of more than a template takes. */
    hdrt__template_counts before = counts();
    ck_assert_uint_ge(run_random(SEVERAL * KERNELS, 150, &state), 150 * CHUNK * 4 - 192);
    /* 15 on average if all were cut; where they are cut depends on the kernels' addresses: of 40 runs 30 to 57. */
    ck_assert_uint_ge(counts().kernels - before.kernels, 24 * (counts().launches - before.launches));
    for (uint32_t i = 0; i < 400; i++) {
        before = counts();
        run_loop(0, numbered, KERNELS, i * CHUNK * 4 % KERNELS, CHUNK * 4, true);
        synchronize(0);
    }
    ck_assert_uint_eq(counts().built, before.built);
    ck_assert_uint_ge(counts().sequences, 6 + 2); /* the pieces that it is cut in */
    check_sum(0);
    forget_several(more);
}
END_TEST

/* As if the caller's hold of the module were a template's. */
static void forget_module(void)
{
    atomic_fetch_add(&module->references, HDRT__MODULE_CACHED - 1);
    ck_assert(!hdrt__templates_forget(templates));
    atomic_fetch_sub(&module->references, HDRT__MODULE_CACHED - 1);
}

static bool is_in_open(const hdrt_kernel *kernel)
{
    bool found = false;
    for (uint32_t i = 0; i < HDRT__TEMPLATE_BUCKETS; i++) {
        for (const hdrt__template_sequence *s = templates->table.buckets[i]; s; s = s->next) {
            for (const hdrt__template_instance *in = s->instances; in && in->open; in = in->next) {
                for (uint32_t k = 0; k < s->count; k++) {
                    found |= in->kernels[k] == kernel;
                }
            }
        }
    }
    return found;
}

/* What a node holds of a kernel beside its function would stay: such a kernel is in no open template. Where it comes often it
 * has one of its own. */
START_TEST(test_not_open)
{
    uint32_t state = 8, served = run_random(16, 20, &state);
    ck_assert_uint_ge(served, 18 * CHUNK * 4);
    ck_assert(is_in_open(kernels[5]) && is_in_open(kernels[6]));
    synchronize(0);
    forget_module();
    hdrt__template_counts before = counts();
    kernels[5]->in_clusters = true;
    kernels[6]->single.refused_changes = HDRT__TEMPLATE_CHANGES_REFUSED;
    served = run_random(16, 20, &state);
    ck_assert_uint_ge(served, 20 * CHUNK * 4 * 3 / 4);
    ck_assert(is_in_open(kernels[4]) && !is_in_open(kernels[5]) && !is_in_open(kernels[6]));
    /* Each of them ends a run of the others. */
    ck_assert_uint_ge(counts().launches - before.launches, 20 * CHUNK * 4 / 8);
    check_sum(0);
    for (uint32_t i = 0; i < KERNELS; i++) {
        kernels[i]->in_clusters = true;
    }
    served = run_random(7, 40, &state); /* all of them alone */
    ck_assert_uint_ge(served, 30 * CHUNK * 4);
    /* And in a loop a chain, as soon as it pays. */
    synchronize(0);
    before = counts();
    for (int i = 0; i < 8; i++) {
        served = run_loop(0, numbered + 30, 12, 0, 12, false);
        synchronize(0);
    }
    ck_assert_uint_eq(served, 12);
    check_sum(0);
}
END_TEST

/* The same with a kernel that is in clusters, where there are such: its neighbours' nodes never held it. */
START_TEST(test_clusters)
{
    hdrt_kernel *pair[2];
    hdrt_module *clusters = load_clusters(&pair[0], &pair[1]);
    uint32_t in_pair = on_cuda() ? 2 : 1, seen[16];
    hdcu_pointer counts_of[16];
    hdcu_result result;
    pair[1]->in_clusters |= !on_cuda();
    CU_OK(DRIVER->cuMemAlloc(&counts_of[0], sizeof seen));
    for (uint32_t round = 0; round < 64; round++) {
        static const hdrt_grid four = {{4, 1, 1}, {1, 1, 1}, 0};
        void *params[16][1];
        hdrt__run_launch run[16];
        for (uint32_t i = 0; i < 16; i++) {
            counts_of[i] = counts_of[0] + i * sizeof seen[0];
            params[i][0] = &counts_of[i];
            run[i] = (hdrt__run_launch){pair[(round >> i % 6) % 2], &four, params[i]};
        }
        commit(0, run, 16, false, &result);
        CU_OK(result);
        synchronize(0);
        CU_OK(DRIVER->cuMemcpyDtoH(seen, counts_of[0], sizeof seen));
        for (uint32_t i = 0; i < 16; i++) {
            ck_assert_uint_eq(seen[i], run[i].kernel == pair[1] ? in_pair : 1);
        }
    }
    ck_assert_uint_gt(counts().kernels, 64);
    CU_OK(DRIVER->cuMemFree(counts_of[0]));
    hdrt_module_destroy(clusters);
    ck_assert(!hdrt__templates_forget(templates));
}
END_TEST

/* All kernels of all modules, each once in each round by itself, in an order of its own. \return how many by templates. */
static uint32_t run_seldom(int rounds, uint32_t *state)
{
    static uint32_t sequence[SEVERAL * KERNELS];
    uint32_t served = 0;
    for (int round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < SEVERAL * KERNELS; i++) {
            uint32_t j = random_number(state) % (i + 1);
            sequence[i] = sequence[j];
            sequence[j] = i;
        }
        for (uint32_t i = 0; i < SEVERAL * KERNELS; i++) {
            served += run_loop(0, sequence + i, 1, 0, 1, false);
        }
        synchronize(0);
    }
    return served;
}

/* One launch of kernel 0, whose number is to be written into the word. \return whether it will be. */
static bool launch_ringing(hdcu_pointer word)
{
    one_launch one;
    hdrt__run_launch launch;
    uint32_t one_by_one;
    hdrt__call call;
    prepare(&one, &launch, 0, 0, 7);
    hdrt__run_place place = {
        .stream = streams[0], .index = 0, .sequence = atomic_load(&numbers[0]) + 1, .word = word};
    if (hdrt__templates_chain(templates, &place, &launch, 1, false, &one_by_one, &call)) {
        atomic_store(&numbers[0], place.sequence);
    } else {
        CU_OK(call.result);
        CU_OK(direct(0, &launch));
    }
    synchronize(0);
    uint64_t written = 0;
    CU_OK(DRIVER->cuMemcpyDtoH(&written, word, sizeof written));
    ck_assert(written == place.sequence || !place.rings);
    ck_assert(written < place.sequence || place.rings);
    return place.rings;
}

/* Whatever there is for the kernel alone, also where it was the last that went there; and there is room for it where others
 * were not used lately. */
START_TEST(test_ringing)
{
    hdcu_pointer word;
    const uint32_t alone[] = {0}, others[] = {1, 2, 3, 4, 5, 6};
    CU_OK(DRIVER->cuMemAlloc(&word, sizeof(uint64_t)));
    CU_OK(DRIVER->cuMemsetD8(word, 0, sizeof(uint64_t)));
    hdrt__templates_limit(templates, 3 * hdrt__template_bytes(6, false));
    for (uint32_t i = 0; i < 100; i++) {
        run_loop(0, others, 6, 0, 6, false);
        run_loop(1, others, 6, 0, 6, false);
        run_loop(0, alone, 1, i, 1, false);
        synchronize(0);
        synchronize(1);
    }
    uint32_t rang = 0;
    for (uint32_t i = 0; i < 20; i++) {
        rang += launch_ringing(word);
    }
    ck_assert_uint_eq(rang, 0); /* all is in use */
    for (uint32_t i = 0; i < HDRT__TEMPLATE_RECENT / 16; i++) {
        run_loop(0, alone, 1, i, 1, false);
    }
    for (uint32_t i = 0; i < 20; i++) {
        rang += launch_ringing(word);
    }
    ck_assert_uint_eq(rang, 20);
    CU_OK(DRIVER->cuMemFree(word));
    check_sum(0);
    check_sum(1);
}
END_TEST

/* Kernels of which each comes alone and seldom gain nothing by templates for one, and none is built; such as come often do. */
START_TEST(test_seldom)
{
    hdrt_module *more[SEVERAL - 1];
    uint32_t state = 5, served = 0;
    load_several(more);
    ck_assert_uint_eq(run_seldom(10, &state), 0);
    ck_assert_uint_eq(counts().built, 0);
    for (uint32_t i = 0; i < 600 * CHUNK; i++) {
        uint32_t often = random_number(&state) % 64;
        served += run_loop(0, &often, 1, 0, 1, false) * (i >= 450 * CHUNK);
        if (i % CHUNK == 0) {
            synchronize(0);
        }
    }
    ck_assert_uint_ge(served, 100 * CHUNK);
    check_sum(0);
    forget_several(more);
}
END_TEST

/* Sequences that each come twice and never again: no chain is built of them. */
START_TEST(test_twice)
{
    hdrt_module *more[SEVERAL - 1];
    uint32_t state = 6, sequence[CHUNK], served = 0;
    load_several(more);
    for (int i = 0; i < TWICE; i++) {
        for (uint32_t j = 0; j < CHUNK; j++) {
            sequence[j] = random_number(&state) % (SEVERAL * KERNELS);
        }
        served += run_loop(0, sequence, CHUNK, 0, CHUNK, true);
        served += run_loop(0, sequence, CHUNK, 0, CHUNK, true);
        synchronize(0);
    }
    ck_assert_uint_ge(served, TWICE * 2 * CHUNK * 95 / 100);
    ck_assert_uint_le(counts().built, 20);
    check_sum(0);
    forget_several(more);
}
END_TEST

static uint64_t templates_limit;

/* Sixteen kernels from this one on, time and again. */
static void run_sixteen(uint32_t stream, uint32_t first, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        run_loop(stream, numbered + first, 16, 0, 16, false);
        ck_assert_uint_le(counts().bytes, templates_limit);
    }
}

/* Room for an open one and one chain: of several in turn one stays, until it was not used for long. */
START_TEST(test_eviction)
{
    templates_limit = hdrt__template_bytes(16, false) * 5 / 2;
    hdrt__templates_limit(templates, templates_limit);
    for (uint32_t round = 0; round < 80; round++) {
        for (uint32_t which = 0; which < 4; which++) {
            run_sixteen(0, which * 16, 1);
        }
        synchronize(0);
    }
    ck_assert_uint_eq(counts().built, 2);
    ck_assert_uint_eq(counts().evicted, 0);
    check_sum(0);
    run_sixteen(0, 0, 1); /* stays in flight */
    ck_assert_uint_eq(counts().launches * 16, counts().kernels);
    run_sixteen(1, 80, 1 + HDRT__TEMPLATE_RECENT / 16);
    ck_assert_uint_eq(counts().evicted, 0);
    check_sum(0);
    run_sixteen(1, 80, 4);
    ck_assert_uint_eq(counts().evicted, 1);
    ck_assert_uint_eq(counts().instances, 2);
    check_sum(0);
    check_sum(1);
}
END_TEST

START_TEST(test_instance_for_each_busy_stream)
{
    for (int i = 0; i < 12; i++) {
        run_loop(0, numbered, 10, 0, 10, false);
    }
    ck_assert_uint_eq(counts().instances, 3); /* open ones for 8 and for 2, and the chain */
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_eq(run_loop(1, numbered, 10, 0, 10, false), 10);
        ck_assert_uint_eq(run_loop(0, numbered, 10, 0, 10, false), 10);
    }
    ck_assert_uint_eq(counts().instances, 4);
    /* An idle one is taken over instead. */
    synchronize(0);
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_eq(run_loop(2, numbered, 10, 0, 10, false), 10);
    }
    ck_assert_uint_eq(counts().instances, 4);
    for (uint32_t i = 0; i < 3; i++) {
        check_sum(i);
    }
}
END_TEST

START_TEST(test_forget)
{
    hdrt_module *other = load_numbered();
    hdrt_kernel *mine = kernels[0];
    for (int i = 0; i < 12; i++) {
        run_loop(0, numbered, 10, 0, 10, false);
        run_loop(1, numbered + 20, 10, 0, 10, false);
        synchronize(0);
        synchronize(1);
    }
    kernels[0] = kernel_of(other, "f0");
    for (int i = 0; i < 12; i++) {
        run_loop(2, numbered, 10, 0, 10, false);
    }
    kernels[0] = mine;
    ck_assert_uint_eq(counts().sequences, 5); /* three chains, and open ones for 8 and for 2 */
    ck_assert(!hdrt__templates_forget(templates)); /* all is wanted */
    ck_assert_uint_eq(counts().sequences, 5);
    unsigned long long unloaded = on_cuda() ? 0 : calls_of("cuModuleUnload");
    hdrt_module_destroy(other);
    ck_assert(hdrt__templates_forget(templates)); /* in flight */
    synchronize(2);
    ck_assert(!hdrt__templates_forget(templates));
    if (!on_cuda()) {
        ck_assert_uint_eq(calls_of("cuModuleUnload"), unloaded + 1);
    }
    ck_assert_uint_eq(counts().sequences, 4); /* the open one for 8 lost but an instance, of which a node held it */
    ck_assert_uint_eq(run_loop(0, numbered, 10, 0, 10, false), 10);
    synchronize(0);
    synchronize(1);
    forget_module();
    ck_assert_uint_eq(counts().instances, 0);
    ck_assert_uint_eq(counts().bytes, 0);
    for (uint32_t i = 0; i < 3; i++) {
        check_sum(i);
    }
}
END_TEST

/* A node of an open template keeps the module of what it runs, and lets go of it when it runs another's kernel. */
START_TEST(test_open_lets_go)
{
    hdrt_module *other = load_from(KERNELS);
    uint32_t theirs[8];
    for (uint32_t i = 0; i < 8; i++) {
        theirs[i] = KERNELS + i;
    }
    for (uint32_t i = 0; i < 3; i++) {
        run_loop(0, numbered + i, 8, 0, 8, false);
    }
    run_loop(0, theirs, 8, 3, 8, false);
    synchronize(0);
    unsigned long long unloaded = on_cuda() ? 0 : calls_of("cuModuleUnload");
    hdrt_module_destroy(other);
    run_loop(0, numbered, 8, 2, 8, false);
    ck_assert_uint_eq(counts().built, 1);
    if (!on_cuda()) {
        ck_assert_uint_eq(calls_of("cuModuleUnload"), unloaded); /* not under whatever lock the caller has */
    }
    hdrt__templates_collect(templates);
    if (!on_cuda()) {
        ck_assert_uint_eq(calls_of("cuModuleUnload"), unloaded + 1);
    }
    check_sum(0);
}
END_TEST

/* Functions and values change while earlier launches are in flight. */
START_TEST(test_values)
{
    uint32_t state = 11;
    for (uint32_t done = 0; done < 100000;) {
        uint32_t stream = random_number(&state) % STREAMS, count = 1 + random_number(&state) % (CHUNK * 4);
        uint32_t length = 1 + random_number(&state) % 3 * 3, from = random_number(&state) % 2 * 8;
        run_loop(stream, numbered + from, length, random_number(&state) % 2, count, random_number(&state) % 2);
        done += count;
        if (random_number(&state) % 8 == 0) {
            synchronize(random_number(&state) % STREAMS);
        }
    }
    ck_assert_uint_ge(counts().kernels, 30000);
    for (uint32_t i = 0; i < STREAMS; i++) {
        check_sum(i);
    }
}
END_TEST

static void *commit_many(void *argument)
{
    uint32_t stream = (uint32_t)(uintptr_t)argument, state = stream + 1;
    hdrt__scope mine;
    CK_OK(hdrt__device_enter(dev, &mine));
    for (int i = 0; i < 150; i++) {
        run_loop(stream, numbered, 1 + random_number(&state) % 9, 0, 1 + random_number(&state) % 100, i % 2);
        if (i % 16 == 15) {
            synchronize(stream);
        }
    }
    hdrt__device_leave(dev, &mine);
    return NULL;
}

START_TEST(test_several_committers)
{
    pthread_t threads[STREAMS];
    hdrt__templates_limit(templates, hdrt__template_bytes(64, false) * 5);
    for (uintptr_t i = 0; i < STREAMS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, commit_many, (void *)i), 0);
    }
    for (uint32_t i = 0; i < STREAMS; i++) {
        pthread_join(threads[i], NULL);
    }
    ck_assert_uint_le(counts().bytes, hdrt__template_bytes(64, false) * 5);
    for (uint32_t i = 0; i < STREAMS; i++) {
        check_sum(i);
    }
}
END_TEST

/* ---- failures ---------------------------------------------------------------------------------------------------- */

START_TEST(test_off)
{
    setenv("HDRT_TEMPLATES", "off", 1);
    renew_templates(dev->driver);
    unsetenv("HDRT_TEMPLATES");
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_eq(run_loop(0, numbered, 10, 0, 10, false), 0);
    }
    forget_module();
    check_sum(0);
}
END_TEST

START_TEST(test_driver_without_graphs)
{
    hdrt__driver_table less = *dev->driver;
    less.cuGraphInstantiateWithFlags = NULL;
    renew_templates(&less);
    ck_assert_uint_eq(run_loop(0, numbered, 1, 0, CHUNK, false), 0);
    ck_assert_uint_eq(run_loop(0, numbered, 1, 0, CHUNK, false), 0);
    check_sum(0);
}
END_TEST

static void make_cache(void)
{
    templates = hdrt__templates_create(dev, is_complete, NULL);
}

/* A first use, a build, refills, another stream's instance, a wide one. \return the first failed launch's result. */
static hdcu_result use_all(uint32_t *out_served)
{
    static one_launch ones[16];
    static hdrt__run_launch run[16];
    hdcu_result result = 0, first = 0;
    *out_served = 0;
    for (uint32_t round = 0; round < 8; round++) {
        for (uint32_t i = 0; i < 16; i++) {
            prepare(&ones[i], &run[i], round % 2, 2 + i, round * 16 + i);
        }
        *out_served += commit(round % 2, run, 16, false, &result);
        first = first ? first : result;
    }
    return first;
}

static const char *const graph_calls[] = {
    "cuGraphCreate",      "cuGraphAddKernelNode",           "cuGraphInstantiateWithFlags", "cuGraphDestroy",
    "cuGraphExecDestroy", "cuGraphExecKernelNodeSetParams",
};

static void check_balance(void)
{
    ck_assert_uint_eq(counts().instances, 0);
    ck_assert_uint_eq(counts().sequences, 0);
    ck_assert_uint_eq(counts().bytes, 0);
}

/* Whatever of the building or refilling fails, the launches go out, in order, and later all is well again. */
START_TEST(test_each_call_fails)
{
    char rule[96];
    uint32_t served, least = UINT32_MAX;
    hdrt__templates_destroy(templates);
    for (size_t c = 0; c < sizeof graph_calls / sizeof graph_calls[0]; c++) {
        for (int nth = 1; nth <= 34; nth += nth < 4 ? 1 : 6) {
            make_cache();
            snprintf(rule, sizeof rule, "%s:%d=2", graph_calls[c], nth);
            inject(rule);
            ck_assert_uint_eq(use_all(&served), 0);
            least = served < least ? served : least;
            check_sum(0);
            check_sum(1);
            forget_module();
            inject(NULL);
            check_balance();
            hdrt__templates_destroy(templates);
        }
    }
    ck_assert_uint_lt(least, 7 * 16);
    make_cache();
    ck_assert_uint_eq(use_all(&served), 0);
    ck_assert_uint_ge(served, 6 * 16);
}
END_TEST

/* A kernel that a driver does not take in place of another, time and again, is in no open template any more; a lack of
 * memory passes. */
START_TEST(test_change_is_refused)
{
    static const char *const rules[] = {"cuGraphExecKernelNodeSetParams:1=2", "cuGraphExecKernelNodeSetParams:1=801"};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        for (uint32_t phase = 0; phase < 3; phase++) {
            run_loop(0, numbered, 17, phase, 16, false);
        }
        for (uint32_t times = 0; times < HDRT__TEMPLATE_CHANGES_REFUSED; times++) {
            run_loop(0, numbered, 17, 9 + times, 16, false);
            inject(rules[i]);
            run_loop(0, numbered, 17, 3, 16, false);
            inject(NULL);
        }
        ck_assert_uint_eq(kernels[3]->single.refused_changes, i ? HDRT__TEMPLATE_CHANGES_REFUSED : 0);
        check_sum(0);
        uint32_t served = run_loop(0, numbered, 17, 15, 16, false);
        ck_assert_msg(i ? served < 16 && served >= 8 : served == 16, "rule %zu: %u", i, served);
        check_sum(0);
    }
}
END_TEST

/* A launch that fails is told, nothing of it went out, and the template is still good. */
START_TEST(test_launch_fails)
{
    one_launch ones[16];
    hdrt__run_launch run[16];
    hdcu_result result;
    for (int round = 0; round < 3; round++) {
        run_loop(0, numbered, 16, 0, 16, false);
    }
    inject("cuGraphLaunch:1=2");
    uint32_t before = expected[0];
    for (uint32_t i = 0; i < 16; i++) {
        prepare(&ones[i], &run[i], 0, i, i);
    }
    ck_assert_uint_eq(commit(0, run, 16, false, &result), 0);
    ck_assert_uint_eq(result, 2);
    expected[0] = before;
    check_sum(0);
    ck_assert_uint_eq(run_loop(0, numbered, 16, 0, 16, false), 16);
    check_sum(0);
}
END_TEST

/* The template for one kernel that was refused while it is in flight makes room for another. */
START_TEST(test_refused_in_flight)
{
    uint32_t served = 0;
    for (int i = 0; i < 200; i++) {
        run_loop(0, numbered, 1, (uint32_t)i, 1, false);
        synchronize(0);
    }
    run_loop(0, numbered, 1, 500, 1, false); /* in flight */
    ck_assert_uint_eq(counts().instances, 1);
    inject("cuGraphExecKernelNodeSetParams:1=2");
    run_loop(0, numbered, 1, 501, 1, false);
    inject(NULL);
    synchronize(0);
    for (int i = 0; i < 3000; i++) {
        served += run_loop(0, numbered, 1, (uint32_t)i, 1, false);
        synchronize(0);
    }
    ck_assert_uint_ge(served, 1500);
    check_sum(0);
}
END_TEST

START_TEST(test_each_allocation_fails)
{
    uint32_t served = 0;
    long allocations = 0;
    hdcu_result result = 0;
    hdrt__templates_destroy(templates);
    FAILING_MALLOC_EACH(n)
    {
        hdcu_result this_result = 0;
        make_cache();
        if (templates) {
            this_result = use_all(&served);
            DRIVER->cuStreamSynchronize(streams[0]);
            DRIVER->cuStreamSynchronize(streams[1]);
            hdrt__templates_destroy(templates);
            templates = NULL;
        }
        result = result ? result : this_result;
        allocations = n;
    }
    ck_assert_uint_eq(result, 0);
    ck_assert_int_gt(allocations, 8);
    ck_assert_uint_ge(served, 6 * 16);
    check_sum(0);
    check_sum(1);
    make_cache();
    ck_assert_ptr_nonnull(templates);
}
END_TEST

/* On a lost device nothing is called, and all is freed. */
START_TEST(test_lost)
{
    for (int i = 0; i < 3; i++) {
        run_loop(0, numbered, 10, 0, 10, false);
    }
    synchronize(0);
    hdrt__device_lose(dev, (hdrt__call){700, "cuStreamSynchronize"}, "a test");
    unsigned long long before = calls_of("cuGraphExecDestroy") + calls_of("cuGraphDestroy");
    hdrt__templates_destroy(templates);
    ck_assert_uint_eq(calls_of("cuGraphExecDestroy") + calls_of("cuGraphDestroy"), before);
    templates = NULL;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("template");
    TCase *pure = tcase_create("cuts");
    tcase_add_test(pure, test_cut_loops);
    tcase_add_test(pure, test_cut_long_loop);
    suite_add_tcase(suite, pure);

    TCase *rules = tcase_create("rules");
    tcase_add_checked_fixture(rules, setup, teardown);
    tcase_set_timeout(rules, 120);
    tcase_add_test(rules, test_second_use);
    tcase_add_test(rules, test_loop_of_seven);
    tcase_add_test(rules, test_only_changes_are_set);
    tcase_add_test(rules, test_first_launch_sets_nothing);
    tcase_add_test(rules, test_first_launches_in_flight);
    tcase_add_test(rules, test_random_order);
    tcase_add_test(rules, test_not_open);
    tcase_add_test(rules, test_clusters);
    tcase_add_test(rules, test_ringing);
    tcase_add_test(rules, test_seldom);
    tcase_add_test(rules, test_twice);
    tcase_add_test(rules, test_eviction);
    tcase_add_test(rules, test_instance_for_each_busy_stream);
    tcase_add_test(rules, test_forget);
    tcase_add_test(rules, test_open_lets_go);
    tcase_add_test(rules, test_values);
    tcase_add_test(rules, test_several_committers);
    tcase_add_test(rules, test_off);
    tcase_add_test(rules, test_driver_without_graphs);
    suite_add_tcase(suite, rules);

    TCase *failures = tcase_create("failures");
    tcase_add_checked_fixture(failures, setup, teardown);
    tcase_set_timeout(failures, 120);
    tcase_add_test(failures, test_each_call_fails);
    tcase_add_test(failures, test_change_is_refused);
    tcase_add_test(failures, test_launch_fails);
    tcase_add_test(failures, test_refused_in_flight);
    tcase_add_test(failures, test_each_allocation_fails);
    tcase_add_test(failures, test_lost);
    add_soft_tcase(suite, failures, "failures");
    return run_suite(suite);
}
