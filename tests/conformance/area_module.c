/* SPDX-License-Identifier: MIT */
/* Modules and libraries: what loads, what is refused and how, variables. */
#include "areas.h"
#include "support.h"

#include <string.h>

#define HEADER ".version 7.0\n.target sm_70\n.address_size 64\n"

/* ---- images ---- */

static void load(const check *self)
{
    hdcu_module module = NULL;
    hdcu_result status = cu.cuModuleLoadData(&module, self->text);
    say("%u", status);
    say("%s", module ? "set" : "null");
    if (!status)
        STATUS(cuModuleUnload(module));
}

static void load_elf(const check *self)
{
    static char image[512] = "\177ELF\2\1\1";
    hdcu_module module = NULL;
    if (self->number)
        memset(image + 16, 0xa5, 64);
    STATUS(cuModuleLoadData(&module, image));
}

static void load_null(const check *self)
{
    (void)self;
    hdcu_module module = NULL;
    STATUS(cuModuleLoadData(&module, NULL));
    STATUS(cuModuleLoadData(NULL, HEADER));
    STATUS(cuModuleUnload(NULL));
}

/* What is left open at loading is found when the kernel is wanted. */
static void unresolved(const check *self)
{
    hdcu_module module = NULL;
    hdcu_function function = NULL;
    hdcu_pointer p = 0;
    unsigned count = 77;
    NEED(cuModuleLoadData(&module, self->text));
    STATUS(cuModuleGetFunctionCount(&count, module));
    say("%u", count);
    STATUS(cuModuleGetFunction(&function, module, "k"));
    hdcu_result status = cu.cuModuleGetGlobal(&p, NULL, module, "nowhere");
    say("%u", status);
    if (function) {
        STATUS(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
        STATUS(cuCtxSynchronize());
    }
    if (!status)
        say("%u", word_at(p));
    STATUS(cuModuleUnload(module));
}

/* The error log: that there is one, that it fits its room, that it names a line. */
static void error_log(const check *self)
{
    char log[1024];
    memset(log, 'x', sizeof log);
    unsigned options[] = {HDCU_JIT_ERROR_LOG_BUFFER, HDCU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)self->number};
    hdcu_module module = NULL;
    STATUS(cuModuleLoadDataEx(&module, self->text, 2, options, values));
    size_t length = strnlen(log, sizeof log);
    say("%s", !length ? "empty" : length < (size_t)self->number ? "text" : "unterminated");
    say("%s", strstr(log, "line ") ? "line" : "no line");
    size_t told = (size_t)(uintptr_t)values[1];
    say("%s", told == length ? "length" : told == length + 1 ? "length with end" : "other length");
    for (size_t i = (size_t)self->number; i < sizeof log; i++)
        if (log[i] != 'x')
            give_up("overrun");
}

static void info_log(const check *self)
{
    (void)self;
    char log[4096] = "untouched";
    float wall = -1;
    unsigned options[] = {HDCU_JIT_INFO_LOG_BUFFER, HDCU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, HDCU_JIT_LOG_VERBOSE,
                          HDCU_JIT_WALL_TIME};
    void *values[] = {log, (void *)sizeof log, (void *)1, NULL};
    hdcu_module module = NULL;
    STATUS(cuModuleLoadDataEx(&module, module_basic, 4, options, values));
    memcpy(&wall, &values[3], sizeof wall);
    say("%s", wall >= 0 ? "timed" : "untimed");
    STATUS(cuModuleUnload(module));
}

static void option(const check *self)
{
    unsigned options[] = {(unsigned)self->number};
    void *values[] = {(void *)(uintptr_t)self->inputs[0][0]};
    hdcu_module module = NULL;
    hdcu_result status = cu.cuModuleLoadDataEx(&module, module_basic, 1, options, values);
    say("%u", status);
    if (!status)
        STATUS(cuModuleUnload(module));
}

/* ---- functions ---- */

static void get_function(const check *self)
{
    hdcu_function function = NULL;
    STATUS(cuModuleGetFunction(&function, module_of(module_globals), self->text));
    say("%s", function ? "set" : "null");
}

static void get_function_misuse(const check *self)
{
    (void)self;
    hdcu_function function = NULL;
    STATUS(cuModuleGetFunction(NULL, module_of(module_basic), "store"));
    STATUS(cuModuleGetFunction(&function, module_of(module_basic), NULL));
    STATUS(cuModuleGetFunction(&function, module_of(module_basic), ""));
    STATUS(cuModuleGetFunction(&function, NULL, "store"));
}

static void same_function(const check *self)
{
    (void)self;
    hdcu_function a = KERNEL("store"), b = KERNEL("store"), c = KERNEL("add");
    hdcu_module module = NULL;
    const char *name = NULL;
    unsigned state = 77;
    say("%d:%d", a == b, a == c);
    STATUS(cuFuncGetModule(&module, a));
    say("%d", module == module_of(module_basic));
    STATUS(cuFuncGetName(&name, a));
    say("%s", name ? name : "null");
    STATUS(cuFuncLoad(a));
    STATUS(cuFuncIsLoaded(&state, a));
    say("%u", state);
}

static void enumerate(const check *self)
{
    (void)self;
    hdcu_module module = module_of(module_globals);
    hdcu_function functions[8] = {0};
    unsigned count = 77;
    STATUS(cuModuleGetFunctionCount(&count, module));
    say("%u", count);
    STATUS(cuModuleEnumerateFunctions(functions, 8, module));
    say("%d:%d", functions[2] != NULL, functions[3] != NULL);
    STATUS(cuModuleEnumerateFunctions(functions, 0, module));
    STATUS(cuModuleGetFunctionCount(NULL, module));
}

static void loading_mode(const check *self)
{
    (void)self;
    unsigned mode = 77;
    STATUS(cuModuleGetLoadingMode(&mode));
    say("%u", mode);
}

/* ---- variables ---- */

static void get_global(const check *self)
{
    hdcu_pointer p = 0;
    size_t size = 77;
    hdcu_result status = cu.cuModuleGetGlobal(&p, &size, module_of(module_globals), self->text);
    say("%u", status);
    if (!status)
        say("%s:%zu", p ? "set" : "null", size);
}

static void get_global_misuse(const check *self)
{
    (void)self;
    hdcu_module module = module_of(module_globals);
    hdcu_pointer p = 0;
    size_t size = 0;
    STATUS(cuModuleGetGlobal(NULL, &size, module, "counter"));
    say("%zu", size);
    STATUS(cuModuleGetGlobal(&p, NULL, module, "counter"));
    say("%s", p ? "set" : "null");
    STATUS(cuModuleGetGlobal(NULL, NULL, module, "counter"));
    STATUS(cuModuleGetGlobal(&p, &size, module, NULL));
    STATUS(cuModuleGetGlobal(&p, &size, NULL, "counter"));
}

static hdcu_pointer global_of(hdcu_module module, const char *name)
{
    hdcu_pointer p = 0;
    NEED(cuModuleGetGlobal(&p, NULL, module, name));
    return p;
}

static void initialisers(const check *self)
{
    (void)self;
    hdcu_module module = NULL;
    NEED(cuModuleLoadData(&module, module_globals));
    say_words(global_of(module, "counter"), 1);
    say_words(global_of(module, "wide"), 6);
    say_words(global_of(module, "real"), 1);
    say_words(global_of(module, "table"), 4);
    say_words(global_of(module, "space"), 4);
    STATUS(cuModuleUnload(module));
}

static void addresses(const check *self)
{
    (void)self;
    hdcu_module module = NULL;
    hdcu_pointer out = new_bytes(8);
    hdcu_function follow = NULL;
    NEED(cuModuleLoadData(&module, module_globals));
    NEED(cuModuleGetFunction(&follow, module, "follow"));
    STATUS(LAUNCH(follow, 1, 1, NULL, &out));
    STATUS(cuCtxSynchronize());
    say_words(out, 2);
    STATUS(cuModuleUnload(module));
}

static uint32_t counted(hdcu_module module, hdcu_pointer out)
{
    hdcu_function read = NULL;
    NEED(cuModuleGetFunction(&read, module, "read_counter"));
    NEED(LAUNCH(read, 1, 1, NULL, &out));
    NEED(cuCtxSynchronize());
    return word_at(out);
}

static void two_loads(const check *self)
{
    (void)self;
    hdcu_module a = NULL, b = NULL;
    hdcu_pointer out = new_bytes(4);
    NEED(cuModuleLoadData(&a, module_globals));
    NEED(cuModuleLoadData(&b, module_globals));
    say("%d", global_of(a, "counter") == global_of(b, "counter"));
    say("%u", counted(a, out));
    say("%u", counted(a, out));
    say("%u", counted(b, out));
    set_word(global_of(b, "counter"), 100);
    say("%u", counted(b, out));
    say("%u", counted(a, out));
    STATUS(cuModuleUnload(a));
    say("%u", counted(b, out));
    STATUS(cuModuleUnload(b));
}

static void constants_can_be_set(const check *self)
{
    (void)self;
    hdcu_module module = NULL;
    hdcu_pointer out = new_bytes(16);
    hdcu_function read = NULL;
    NEED(cuModuleLoadData(&module, module_globals));
    set_word(global_of(module, "table") + 4, 99);
    NEED(cuModuleGetFunction(&read, module, "read_table"));
    STATUS(LAUNCH(read, 1, 1, NULL, &out));
    STATUS(cuCtxSynchronize());
    say_words(out, 4);
    STATUS(cuModuleUnload(module));
}

static void global_range(const check *self)
{
    (void)self;
    hdcu_pointer p = global_of(module_of(module_globals), "space"), base = 0;
    size_t size = 0;
    unsigned type = 77;
    hdcu_result status = cu.cuMemGetAddressRange(&base, &size, p);
    say("%u", status);
    STATUS(cuPointerGetAttribute(&type, HDCU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    say("%u", type);
    STATUS(cuMemFree(p));
}

static void unload_while_pending(const check *self)
{
    (void)self;
    hdcu_module module = NULL;
    hdcu_pointer out = new_bytes(4);
    hdcu_function read = NULL;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    NEED(cuModuleLoadData(&module, module_globals));
    NEED(cuModuleGetFunction(&read, module, "read_counter"));
    STATUS(LAUNCH(read, 1, 1, stream, &out));
    STATUS(cuStreamSynchronize(stream));
    STATUS(cuModuleUnload(module));
    say("%u", word_at(out));
}

/* ---- libraries ---- */

static hdcu_library library(void)
{
    hdcu_library made = NULL;
    NEED(cuLibraryLoadData(&made, module_globals, NULL, NULL, 0, NULL, NULL, 0));
    return made;
}

static void library_use(const check *self)
{
    (void)self;
    hdcu_library of = library();
    hdcu_kernel kernel = NULL;
    hdcu_function function = NULL;
    hdcu_pointer out = new_bytes(4);
    const char *name = NULL;
    unsigned count = 77;
    STATUS(cuLibraryGetKernelCount(&count, of));
    say("%u", count);
    STATUS(cuLibraryGetKernel(&kernel, of, "read_counter"));
    STATUS(cuKernelGetName(&name, kernel));
    say("%s", name ? name : "null");
    STATUS(cuKernelGetFunction(&function, kernel));
    STATUS(LAUNCH(function, 1, 1, NULL, &out));
    STATUS(cuCtxSynchronize());
    say("%u", word_at(out));
    STATUS(LAUNCH((hdcu_function)(void *)kernel, 1, 1, NULL, &out));
    STATUS(cuCtxSynchronize());
    say("%u", word_at(out));
    STATUS(cuLibraryUnload(of));
}

static void library_misuse(const check *self)
{
    (void)self;
    hdcu_library of = library(), bad = NULL;
    hdcu_kernel kernel = NULL;
    hdcu_pointer p = 0;
    size_t size = 0;
    STATUS(cuLibraryGetKernel(&kernel, of, "no_such_kernel"));
    STATUS(cuLibraryGetKernel(NULL, of, "read_counter"));
    STATUS(cuLibraryGetKernel(&kernel, of, NULL));
    STATUS(cuLibraryGetGlobal(&p, &size, of, "no_such_variable"));
    STATUS(cuLibraryLoadData(NULL, module_globals, NULL, NULL, 0, NULL, NULL, 0));
    STATUS(cuLibraryLoadData(&bad, NULL, NULL, NULL, 0, NULL, NULL, 0));
    STATUS(cuLibraryUnload(NULL));
    STATUS(cuLibraryUnload(of));
}

static void library_bad_image(const check *self)
{
    hdcu_library of = NULL;
    hdcu_kernel kernel = NULL;
    hdcu_function function = NULL;
    hdcu_result status = cu.cuLibraryLoadData(&of, self->text, NULL, NULL, 0, NULL, NULL, 0);
    say("%u", status);
    if (status)
        return;
    status = cu.cuLibraryGetKernel(&kernel, of, "k");
    say("%u", status);
    if (!status)
        STATUS(cuKernelGetFunction(&function, kernel));
    STATUS(cuLibraryUnload(of));
}

/* A library's code is looked at when something of it is wanted. */
static void library_bad_parts(const check *self)
{
    hdcu_library of = NULL;
    hdcu_kernel kernels[2] = {0};
    hdcu_module module = NULL;
    hdcu_pointer p = 0;
    size_t size = 0;
    unsigned count = 77;
    NEED(cuLibraryLoadData(&of, self->text, NULL, NULL, 0, NULL, NULL, 0));
    switch (self->number) {
    case 0: STATUS(cuLibraryGetKernelCount(&count, of)); break;
    case 1: STATUS(cuLibraryEnumerateKernels(kernels, 2, of)); break;
    case 2: STATUS(cuLibraryGetModule(&module, of)); break;
    default: STATUS(cuLibraryGetGlobal(&p, &size, of, "v")); break;
    }
    STATUS(cuLibraryGetKernel(&kernels[0], of, "k"));
    STATUS(cuLibraryUnload(of));
}

static void library_log(const check *self)
{
    static char log[1024];
    unsigned options[] = {HDCU_JIT_ERROR_LOG_BUFFER, HDCU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    static void *values[] = {log, (void *)sizeof log};
    hdcu_library of = NULL;
    hdcu_kernel kernel = NULL;
    STATUS(cuLibraryLoadData(&of, self->text, options, values, 2, NULL, NULL, 0));
    say("%s", log[0] ? "text" : "empty");
    STATUS(cuLibraryGetKernel(&kernel, of, "k"));
    say("%s", log[0] ? "text" : "empty");
    STATUS(cuLibraryUnload(of));
}

static void library_parts(const check *self)
{
    (void)self;
    hdcu_library of = library();
    hdcu_module module = NULL;
    hdcu_pointer p = 0, q = 0;
    size_t size = 0;
    hdcu_kernel kernels[8] = {0};
    STATUS(cuLibraryGetModule(&module, of));
    STATUS(cuLibraryGetGlobal(&p, &size, of, "counter"));
    say("%zu", size);
    STATUS(cuModuleGetGlobal(&q, NULL, module, "counter"));
    say("%d", p == q);
    STATUS(cuLibraryEnumerateKernels(kernels, 8, of));
    say("%d:%d", kernels[2] != NULL, kernels[3] != NULL);
    STATUS(cuLibraryUnload(of));
}

static void kernel_attributes(const check *self)
{
    (void)self;
    hdcu_library of = library();
    hdcu_kernel kernel = NULL;
    hdcu_function function = NULL;
    int value = 77;
    size_t offset = 77, size = 77;
    NEED(cuLibraryGetKernel(&kernel, of, "read_counter"));
    STATUS(cuKernelGetAttribute(&value, HDCU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
    say("%d", value);
    STATUS(cuKernelGetAttribute(&value, HDCU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 99));
    STATUS(cuKernelSetAttribute(HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, kernel, 0));
    STATUS(cuKernelGetFunction(&function, kernel));
    STATUS(cuFuncGetAttribute(&value, HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    say("%d", value);
    STATUS(cuKernelGetParamInfo(kernel, 0, &offset, &size));
    say("%zu:%zu", offset, size);
    STATUS(cuKernelGetParamInfo(kernel, 1, &offset, &size));
    STATUS(cuLibraryUnload(of));
}

#define LOAD(text_, image) {.name = "load " text_, .run = load, .text = image}
#define OPTION(text_, which, value) {.name = "option " text_, .run = option, .number = which, INPUTS({value})}
#define BAD_LIBRARY(text_, image) {.name = "library " text_, .run = library_bad_image, .text = image}
#define BAD_PARTS(text_, which)                                                                                        \
    {.name = "bad library: " text_, .run = library_bad_parts, .text = SYNTAX, .number = which}
#define SYNTAX HEADER ".visible .entry k()\n{\n    .reg .b32 %r<2>;\n    mov.u32 %r0 1;\n    ret;\n}\n"
#define UNRESOLVED                                                                                                     \
    HEADER ".extern .global .u32 nowhere;\n.visible .entry k() { .reg .u32 %r0; ld.global.u32 %r0, [nowhere]; "        \
           "st.global.u32 [nowhere], %r0; ret; }\n"

static const check checks[] = {
    LOAD("header alone", HEADER),
    LOAD("one kernel", HEADER ".visible .entry k() { ret; }\n"),
    LOAD("nothing", ""),
    LOAD("words", "hello, world"),
    LOAD("blank lines first", "\n\n  // a comment\n" HEADER ".visible .entry k() { ret; }\n"),
    LOAD("no version", ".target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n"),
    LOAD("no target", ".version 7.0\n.address_size 64\n.visible .entry k() { ret; }\n"),
    LOAD("version 99.0", ".version 99.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n"),
    LOAD("version 9.9", ".version 9.9\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n"),
    LOAD("version 6.0", ".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n"),
    LOAD("target sm_80", ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"),
    LOAD("target sm_90", ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n"),
    LOAD("target sm_90 of version 7.0",
        ".version 7.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n"),
    LOAD("target sm_100", ".version 8.6\n.target sm_100\n.address_size 64\n.visible .entry k() { ret; }\n"),
    LOAD("target sm_11", ".version 7.0\n.target sm_11\n.address_size 64\n.visible .entry k() { ret; }\n"),
    LOAD("target nonsense", ".version 7.0\n.target sm_7x\n.address_size 64\n.visible .entry k() { ret; }\n"),
    LOAD("syntax error", SYNTAX),
    LOAD("unknown instruction", HEADER ".visible .entry k() { .reg .b32 %r<2>; nosuch.u32 %r0, 1; ret; }\n"),
    LOAD("undeclared register", HEADER ".visible .entry k() { mov.u32 %r0, 1; ret; }\n"),
    LOAD("undeclared label", HEADER ".visible .entry k() { bra NOWHERE; }\n"),
    LOAD("unclosed body", HEADER ".visible .entry k() { ret;\n"),
    LOAD("kernel twice", HEADER ".visible .entry k() { ret; }\n.visible .entry k() { ret; }\n"),
    LOAD("unresolved function", HEADER ".extern .func nowhere();\n.visible .entry k() { call nowhere, (); ret; }\n"),
    LOAD("unresolved variable", UNRESOLVED),
    {.name = "unresolved variable", .run = unresolved, .text = UNRESOLVED, .alone = true},
    LOAD("too much shared memory",
        HEADER ".visible .entry k() { .shared .b8 all[65536]; .reg .b32 %r<2>; mov.u32 %r0, 1; "
        "st.shared.u32 [all], %r0; ret; }\n"),
    LOAD("variable twice", HEADER ".visible .global .u32 v;\n.visible .global .u32 v;\n"),
    {.name = "load elf of zeros", .run = load_elf, .number = 0},
    {.name = "load elf of noise", .run = load_elf, .number = 1, .alone = true},
    {.name = "load null", .run = load_null},
    {.name = "error log", .run = error_log, .text = SYNTAX, .number = 1000},
    {.name = "error log cut", .run = error_log, .text = SYNTAX, .number = 10},
    {.name = "error log of version 99.0", .run = error_log, .text = ".version 99.0\n.target sm_70\n.address_size 64\n",
     .number = 1000},
    {.name = "error log of words", .run = error_log, .text = "hello, world", .number = 1000},
    {.name = "info log", .run = info_log},
    OPTION("unknown 999", 999, 0),
    OPTION("max registers 32", HDCU_JIT_MAX_REGISTERS, 32),
    OPTION("optimization 0", HDCU_JIT_OPTIMIZATION_LEVEL, 0),
    OPTION("optimization 9", HDCU_JIT_OPTIMIZATION_LEVEL, 9),
    OPTION("line info", HDCU_JIT_GENERATE_LINE_INFO, 1),
    OPTION("target 90", HDCU_JIT_TARGET, 90),
    OPTION("target 12345", HDCU_JIT_TARGET, 12345),
    {.name = "function", .run = get_function, .text = "read_counter"},
    {.name = "function missing", .run = get_function, .text = "no_such_function"},
    {.name = "function that is a variable", .run = get_function, .text = "counter"},
    {.name = "function misuse", .run = get_function_misuse},
    {.name = "same function", .run = same_function},
    {.name = "enumerate", .run = enumerate},
    {.name = "loading mode", .run = loading_mode},
    {.name = "global counter", .run = get_global, .text = "counter"},
    {.name = "global wide", .run = get_global, .text = "wide"},
    {.name = "global bytes", .run = get_global, .text = "bytes"},
    {.name = "global space", .run = get_global, .text = "space"},
    {.name = "global constant", .run = get_global, .text = "table"},
    {.name = "global missing", .run = get_global, .text = "no_such_variable"},
    {.name = "global that is a function", .run = get_global, .text = "read_counter"},
    {.name = "global misuse", .run = get_global_misuse},
    {.name = "initialisers", .run = initialisers},
    {.name = "addresses in initialisers", .run = addresses},
    {.name = "two loads have their own variables", .run = two_loads},
    {.name = "constants can be set", .run = constants_can_be_set},
    {.name = "range of a variable", .run = global_range},
    {.name = "unload after use", .run = unload_while_pending},
    {.name = "library", .run = library_use},
    {.name = "library misuse", .run = library_misuse},
    BAD_LIBRARY("of words", "hello, world"),
    BAD_LIBRARY("with a syntax error", SYNTAX),
    BAD_LIBRARY("of version 99.0", ".version 99.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n"),
    BAD_PARTS("count", 0),
    BAD_PARTS("kernels", 1),
    BAD_PARTS("module", 2),
    BAD_PARTS("variable", 3),
    {.name = "bad library: log", .run = library_log, .text = SYNTAX},
    {.name = "library's parts", .run = library_parts},
    {.name = "kernel attributes", .run = kernel_attributes},
};

const area area_module = {"module", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
