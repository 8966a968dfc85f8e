/* SPDX-License-Identifier: MIT */
/* Templates for kernels side by side: as many as come, whatever sizes there are, and what drivers cannot or will not do. */
#include "template_fixture.h"

#include "queue/template_table.h"

#define WIDE 600u

static uint32_t run_wide(uint32_t stream, uint32_t kernel, uint32_t count, hdcu_result *out_result)
{
    static one_launch ones[WIDE];
    static hdrt__run_launch run[WIDE];
    hdrt__call call;
    uint32_t before = expected[stream];
    for (uint32_t i = 0; i < count; i++) {
        prepare(&ones[i], &run[i], stream, kernel, 1);
        /* Independent: each has its own word. */
        ones[i].sum = sums + (STREAMS + i) * sizeof(uint32_t);
    }
    expected[stream] = before;
    hdrt__run_place place = {.stream = streams[stream], .index = stream, .sequence = atomic_load(&numbers[stream]) + 1};
    uint32_t went = hdrt__templates_wide(templates, &place, run, count, &call);
    if (went) {
        atomic_store(&numbers[stream], place.sequence);
    }
    *out_result = call.result;
    return went;
}

/* So many side by side, of which `went` go out and are seen to run, each once. */
static void check_wide(uint32_t count, uint32_t went)
{
    uint32_t words[WIDE];
    hdcu_result result;
    CU_OK(DRIVER->cuMemsetD32(sums, 0, STREAMS + WIDE));
    ck_assert_uint_eq(run_wide(0, 1, count, &result), went);
    CU_OK(result);
    synchronize(0);
    CU_OK(DRIVER->cuMemcpyDtoH(words, sums + STREAMS * sizeof *words, sizeof words));
    for (uint32_t i = 0; i < WIDE; i++) {
        ck_assert_uint_eq(words[i], i < went ? 2 : 0);
    }
}

static void make_words(void)
{
    CU_OK(DRIVER->cuMemFree(sums));
    CU_OK(DRIVER->cuMemAlloc(&sums, (STREAMS + WIDE) * sizeof(uint32_t)));
}

/* As many as come: the nodes that are too many are switched off, and on again. */
START_TEST(test_wide)
{
    static const uint32_t counts_then[] = {64, 33, 63, 64, 40};
    hdcu_result result;
    make_words();
    check_wide(7, 0);
    check_wide(7, 0); /* so few are not worth one of their own */
    check_wide(8, 0);
    check_wide(8, 8);
    check_wide(3, 3);
    check_wide(8, 8);
    check_wide(40, 0);
    check_wide(40, 40);
    for (size_t i = 0; i < sizeof counts_then / sizeof counts_then[0]; i++) {
        check_wide(counts_then[i], counts_then[i]);
    }
    check_wide(20, 20); /* by the larger one, though there is none of 32 */
    ck_assert_uint_eq(counts().sequences, 2);
    ck_assert_uint_eq(counts().instances, 2);
    ck_assert_uint_eq(run_wide(0, 1, 40, &result), 40);
    ck_assert_uint_eq(run_wide(1, 1, 20, &result), 0); /* it is in flight: another stream gets one, of the size that fits */
    ck_assert_uint_eq(run_wide(1, 1, 20, &result), 20);
    ck_assert_uint_eq(counts().instances, 3);
    bool branches = !hdrt__templates_wide_in_order(templates);
    ck_assert_uint_eq(counts().bytes, hdrt__template_bytes(8, branches) + hdrt__template_bytes(64, branches) +
                                          hdrt__template_bytes(32, branches));
    synchronize(0);
    synchronize(1);
    renew_templates(dev->driver);
    check_wide(600, 0);
    check_wide(600, 256);
}
END_TEST

/* A driver of before 11.6 switches no nodes: what comes is cut. */
START_TEST(test_wide_without_switches)
{
    hdrt__driver_table less = *dev->driver;
    less.cuGraphNodeSetEnabled = NULL;
    renew_templates(&less);
    make_words();
    check_wide(40, 0);
    check_wide(40, 32);
    check_wide(32, 32);
    check_wide(3, 0);
    check_wide(63, 32);
    ck_assert_uint_eq(hdrt__templates_wide_rest(templates, 63), 7);
    renew_templates(dev->driver);
    ck_assert_uint_eq(hdrt__templates_wide_rest(templates, 63), 0);
}
END_TEST

/* Where kernels do not follow each other in launch order each is a branch: an older driver, or an older device. */
START_TEST(test_wide_of_branches)
{
    make_words();
    for (int which = 0; which < 3; which++) {
        hdrt__driver_table less = *dev->driver;
        less.cuGraphAddNode = which ? less.cuGraphAddNode : NULL;
        dev->limits.launch_order = which != 1;
        renew_templates(&less);
        ck_assert_int_eq(hdrt__templates_wide_in_order(templates), which == 2);
        check_wide(40, 0);
        check_wide(40, 40);
        check_wide(64, 64);
        ck_assert_uint_eq(counts().bytes, hdrt__template_bytes(64, which != 2));
    }
}
END_TEST

START_TEST(test_wide_without_graphs)
{
    hdrt__driver_table less = *dev->driver;
    less.cuGraphInstantiateWithFlags = NULL;
    renew_templates(&less);
    make_words();
    check_wide(8, 0);
    check_wide(8, 0);
    ck_assert_uint_eq(hdrt__templates_wide_rest(templates, 8), 8);
}
END_TEST

/* ---- failures ---------------------------------------------------------------------------------------------------- */

/* A node that cannot be switched: that instance goes, and from then on what comes is cut, as on an older driver. */
START_TEST(test_switch_fails)
{
    make_words();
    check_wide(64, 0);
    check_wide(64, 64);
    inject("cuGraphNodeSetEnabled:3=2");
    check_wide(40, 0);
    inject(NULL);
    ck_assert_uint_eq(counts().instances, 0);
    check_wide(64, 64);
    check_wide(40, 0);
    check_wide(40, 32);
    ck_assert_uint_eq(hdrt__templates_wide_rest(templates, 63), 7);
}
END_TEST

/* A kernel that does not take launch order gets branches, the next time already; one that has no memory is asked again, and
 * so is one with which something else is wrong. */
START_TEST(test_launch_order_refused)
{
    static const struct {
        const char *rule;
        bool refused;
    } cases[] = {
        {"cuGraphAddNode:1=801", true}, {"cuGraphAddNode:5=1", true},         {"cuGraphInstantiateWithFlags:1=801", true},
        {"cuGraphAddNode:1=2", false},  {"cuGraphInstantiateWithFlags:1=2", false}, {"cuGraphAddKernelNode:1=1", false},
    };
    make_words();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        renew_templates(dev->driver);
        kernels[1]->single.refuses_order = false;
        check_wide(64, 0);
        inject(cases[i].rule);
        check_wide(64, 0);
        inject(NULL);
        ck_assert(hdrt__templates_wide_in_order(templates)); /* for others */
        ck_assert_int_eq(kernels[1]->single.refuses_order, cases[i].refused);
        ck_assert_uint_eq(counts().bytes, 0);
        ck_assert_uint_eq(counts().sequences, 0);
        if (cases[i].refused) {
            check_wide(64, 64);
            ck_assert_uint_eq(counts().bytes, hdrt__template_bytes(64, true));
        }
    }
}
END_TEST

/* Where several kernels do not it is the driver. */
START_TEST(test_launch_order_refused_by_the_driver)
{
    hdcu_result result;
    make_words();
    inject("cuGraphAddNode:*=801");
    for (uint32_t kernel = 1; kernel <= 2; kernel++) {
        ck_assert(hdrt__templates_wide_in_order(templates));
        ck_assert_uint_eq(run_wide(0, kernel, 64, &result), 0);
        ck_assert_uint_eq(run_wide(0, kernel, 64, &result), 0);
    }
    ck_assert(!hdrt__templates_wide_in_order(templates));
    inject(NULL);
    ck_assert_uint_eq(run_wide(0, 3, 64, &result), 0);
    ck_assert_uint_eq(run_wide(0, 3, 64, &result), 64);
    synchronize(0);
    ck_assert_uint_eq(counts().bytes, hdrt__template_bytes(64, true));
}
END_TEST

/* A further instance that cannot be made says nothing of that, and leaves the sequence as it is. */
START_TEST(test_launch_order_is_not_refused_later)
{
    hdcu_result result;
    make_words();
    check_wide(64, 0);
    check_wide(64, 64);
    ck_assert_uint_eq(run_wide(0, 1, 64, &result), 64);
    inject("cuGraphInstantiateWithFlags:1=801");
    ck_assert_uint_eq(run_wide(1, 1, 64, &result), 0); /* the other one is in flight */
    inject(NULL);
    ck_assert(!kernels[1]->single.refuses_order);
    ck_assert_uint_eq(counts().sequences, 1);
    ck_assert_uint_eq(counts().bytes, hdrt__template_bytes(64, false));
    ck_assert_uint_eq(run_wide(1, 1, 64, &result), 64);
    ck_assert_uint_eq(counts().bytes, 2 * hdrt__template_bytes(64, false));
    synchronize(0);
    synchronize(1);
}
END_TEST

/* Whatever comes, and whatever fails of it: as many words are written as are said to have gone, the first ones. */
START_TEST(test_wide_at_random)
{
    static const char *const rules[] = {NULL, "cuGraphExecKernelNodeSetParams:p0.01@9=2", "cuGraphNodeSetEnabled:p0.01@7=2"};
    uint32_t state = 11, words[WIDE];
    make_words();
    for (size_t rule = 0; rule < sizeof rules / sizeof rules[0]; rule++) {
        inject(rules[rule]);
        for (int i = 0; i < 500; i++) {
            hdcu_result result;
            uint32_t count = random_number(&state) % (random_number(&state) % 4 ? 70 : 300);
            uint32_t stream = random_number(&state) % STREAMS;
            CU_OK(DRIVER->cuMemsetD32(sums, 0, STREAMS + WIDE));
            uint32_t went = run_wide(stream, random_number(&state) % 2, count, &result);
            CU_OK(result);
            CU_OK(DRIVER->cuStreamSynchronize(streams[stream]));
            if (random_number(&state) % 3) {
                synchronize(stream); /* else it counts as in flight */
            }
            CU_OK(DRIVER->cuMemcpyDtoH(words, sums + STREAMS * sizeof(uint32_t), sizeof words));
            for (uint32_t j = 0; j < WIDE; j++) {
                ck_assert_int_eq(words[j] != 0, j < went);
            }
        }
        inject(NULL);
    }
    ck_assert_uint_ge(counts().kernels, 10000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("template_wide");
    TCase *rules = tcase_create("rules"), *failures = tcase_create("failures");
    tcase_add_checked_fixture(rules, setup, teardown);
    tcase_set_timeout(rules, 120);
    tcase_add_test(rules, test_wide);
    tcase_add_test(rules, test_wide_without_switches);
    tcase_add_test(rules, test_wide_of_branches);
    tcase_add_test(rules, test_wide_without_graphs);
    suite_add_tcase(suite, rules);

    tcase_add_checked_fixture(failures, setup, teardown);
    tcase_set_timeout(failures, 120);
    tcase_add_test(failures, test_switch_fails);
    tcase_add_test(failures, test_launch_order_refused);
    tcase_add_test(failures, test_launch_order_refused_by_the_driver);
    tcase_add_test(failures, test_launch_order_is_not_refused_later);
    tcase_add_test(failures, test_wide_at_random);
    add_soft_tcase(suite, failures, "failures");
    return run_suite(suite);
}
