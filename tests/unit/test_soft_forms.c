/* SPDX-License-Identifier: MIT */
/* Every form of instruction against what an H200 answers, with the handlers of each x86 level. */
#include <fenv.h>
#include <math.h>

#include "soft_engine.h"
#include "soft_forms.h"

static struct forms forms;
static char *module;
static size_t module_size;

static void read_forms(void)
{
    const char *top = getenv("abs_top_srcdir");
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/unit/soft_forms.txt", top ? top : ".");
    forms = forms_read(path);
    ck_assert_msg(forms.count > 1000, "%s holds %zu forms", path, forms.count);
    module = forms_module(&forms, 0, forms.count, &module_size);
}

static void forget_forms(void)
{
    free(module);
    forms_free(&forms);
}

static double as_number(char kind, uint64_t bits)
{
    float single;
    double number;
    uint32_t low = (uint32_t)bits;
    memcpy(&single, &low, sizeof single);
    memcpy(&number, &bits, sizeof number);
    return kind == 'f' ? (double)single : number;
}

/* Approximations: equally special, or close. '^' marks the coarse ones. */
static bool close_enough(const struct form *form, uint64_t is, uint64_t expected)
{
    double a = as_number(form->kind, is), b = as_number(form->kind, expected);
    double tolerance = form->compare == '^' ? 0x1p-10 : 0x1p-20;
    if (isnan(a) || isnan(b) || isinf(a) || isinf(b))
        return is == expected;
    return fabs(a - b) <= tolerance * fmax(1.0, fmax(fabs(a), fabs(b))) ||
           fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b));
}

static void check_form(const struct form *form, const uint64_t results[FORM_THREADS])
{
    char answer[4096];
    if (form->compare == '=') {
        form_answer(form, results, answer, sizeof answer);
        ck_assert_msg(strcmp(answer, form->answer) == 0, "%s: digest %s, expected %s; first results %llx %llx %llx",
                      form->instructions, answer, form->answer, (unsigned long long)results[0],
                      (unsigned long long)results[1], (unsigned long long)results[2]);
        return;
    }
    char *at = form->answer;
    for (unsigned i = 0; i < FORM_THREADS; i++) {
        uint64_t expected = strtoull(at, &at, 16);
        ck_assert_msg(close_enough(form, results[i], expected), "%s: thread %u gives %llx, expected about %llx",
                      form->instructions, i, (unsigned long long)results[i], (unsigned long long)expected);
    }
}

START_TEST(forms_answer_as_a_gpu_does)
{
    struct engine engine;
    fesetround(FE_UPWARD); /* the thread's own mode is nothing to a kernel, and stays */
    engine_open_text(&engine, module, module_size, _i);
    hdsoft_range in = engine_allocate(&engine, FORM_THREADS * FORM_SOURCES * 8);
    hdsoft_range out = engine_allocate(&engine, FORM_THREADS * 8);
    hdsoft_range memory = engine_allocate(&engine, FORM_THREADS * FORM_MEMORY);
    for (size_t i = 0; i < forms.count; i++) {
        const struct form *form = &forms.list[i];
        uint64_t parameters[] = {out.base, in.base, memory.base}, inputs[FORM_THREADS][FORM_SOURCES];
        uint64_t results[FORM_THREADS];
        char kernel[32];
        snprintf(kernel, sizeof kernel, "f%zu", i);
        form_inputs(form->set, inputs);
        memcpy(in.host, inputs, sizeof inputs);
        int code = engine_run(&engine, kernel, 1, FORM_THREADS, parameters);
        ck_assert_msg(code == 0, "%s: %s", form->instructions, engine.fault.text);
        memcpy(results, out.host, sizeof results);
        check_form(form, results);
    }
    ck_assert_int_eq(fegetround(), FE_UPWARD);
    engine_close(&engine);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("soft_forms");
    TCase *all = tcase_create("forms");
    tcase_add_unchecked_fixture(all, read_forms, forget_forms);
    tcase_add_loop_test(all, forms_answer_as_a_gpu_does, 0, 3);
    tcase_set_timeout(all, 120);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
