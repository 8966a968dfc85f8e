/* SPDX-License-Identifier: MIT */
/*
 * Runs every form of tests/unit/soft_forms.txt on the GPU and prints the file anew, with what it answers:
 *
 *   cc -std=gnu11 -D_GNU_SOURCE -Itests/unit tests/conformance/record_forms.c -o record_forms -ldl
 *   ./record_forms tests/unit/soft_forms.txt [--values] > recorded.txt
 *
 * --values prints all results of all forms instead. Needs NVIDIA's driver and nothing else.
 */
#include <dlfcn.h>
#include <stdbool.h>

#include "soft_forms.h"

#define FORMS_A_MODULE 200

static void *library;

static void *entry(const char *name)
{
    void *address = dlsym(library, name);
    if (!address) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return address;
}

static void check(int code, const char *what)
{
    if (code) {
        fprintf(stderr, "%s: %d\n", what, code);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    struct forms forms = forms_read(argc > 1 ? argv[1] : "tests/unit/soft_forms.txt");
    bool values = argc > 2 && strcmp(argv[2], "--values") == 0;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*init)(unsigned) = (int (*)(unsigned))entry("cuInit");
    int (*retain)(void **, int) = (int (*)(void **, int))entry("cuDevicePrimaryCtxRetain");
    int (*set)(void *) = (int (*)(void *))entry("cuCtxSetCurrent");
    int (*load)(void **, const void *) = (int (*)(void **, const void *))entry("cuModuleLoadData");
    int (*function)(void **, void *, const char *) =
        (int (*)(void **, void *, const char *))entry("cuModuleGetFunction");
    int (*allocate)(uint64_t *, size_t) = (int (*)(uint64_t *, size_t))entry("cuMemAlloc_v2");
    int (*upload)(uint64_t, const void *, size_t) = (int (*)(uint64_t, const void *, size_t))entry("cuMemcpyHtoD_v2");
    int (*download)(void *, uint64_t, size_t) = (int (*)(void *, uint64_t, size_t))entry("cuMemcpyDtoH_v2");
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                  void **) = (int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                      void *, void **, void **))entry("cuLaunchKernel");
    void *context, *module = NULL;
    uint64_t in, out, memory, inputs[FORM_THREADS][FORM_SOURCES], results[FORM_THREADS];
    check(init(0), "cuInit");
    check(retain(&context, 0), "retain");
    check(set(context), "set current");
    check(allocate(&in, sizeof inputs) | allocate(&out, sizeof results) | allocate(&memory, FORM_THREADS * FORM_MEMORY),
          "allocate");
    for (size_t i = 0; i < forms.count; i++) {
        const struct form *form = &forms.list[i];
        if (i % FORMS_A_MODULE == 0) {
            size_t size;
            char *text = forms_module(&forms, i, FORMS_A_MODULE, &size);
            check(load(&module, text), "load");
            free(text);
        }
        char name[32], answer[4096];
        void *kernel, *parameters[] = {&out, &in, &memory};
        snprintf(name, sizeof name, "f%zu", i);
        check(function(&kernel, module, name), name);
        form_inputs(form->set, inputs);
        check(upload(in, inputs, sizeof inputs), "upload");
        check(launch(kernel, 1, 1, 1, FORM_THREADS, 1, 1, 0, NULL, parameters, NULL), name);
        check(download(results, out, sizeof results), form->instructions);
        struct form shown = *form;
        if (values)
            shown.compare = '~';
        form_answer(&shown, results, answer, sizeof answer);
        printf("%c %c %c %s @=%s\n", form->kind, form->set, form->compare, form->instructions, answer);
    }
    forms_free(&forms);
    return 0;
}
