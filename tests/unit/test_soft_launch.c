/* SPDX-License-Identifier: MIT */
/*
 * The soft driver with code: modules, functions, launches, occupancy, faults, printf. The PTX is written by hand; the
 * codes are an H200's for the same PTX.
 */
#include "soft.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static const char code[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".global .align 4 .u32 counter = 5;\n"
    ".const .align 4 .u32 factor = 7;\n"
    ".extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 arguments);\n"
    ".global .align 1 .b8 words[7] = {104, 101, 108, 108, 111, 10, 0};\n"
    ".visible .entry empty() { ret; }\n"
    ".visible .entry store(.param .u64 p, .param .u32 v) {\n"
    "  .reg .b64 %rd<3>; .reg .b32 %r<3>;\n"
    "  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v]; st.global.u32 [%rd1], %r1; ret;\n"
    "}\n"
    ".visible .entry count() {\n"
    "  .reg .b32 %r<3>;\n"
    "  ld.const.u32 %r1, [factor]; atom.global.add.u32 %r2, [counter], %r1; ret;\n"
    "}\n"
    ".visible .entry wait(.param .u64 flag) {\n"
    "  .reg .b64 %rd<2>; .reg .b32 %r<2>; .reg .pred %p<2>;\n"
    "  ld.param.u64 %rd1, [flag];\n"
    "again:\n"
    "  ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra again; ret;\n"
    "}\n"
    ".visible .entry trapped() { trap; }\n"
    ".visible .entry misaligned(.param .u64 p) {\n"
    "  .reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
    "  ld.param.u64 %rd1, [p]; mov.u32 %r1, 1; st.global.u32 [%rd1+1], %r1; ret;\n"
    "}\n"
    ".visible .entry broken() { brkpt; ret; }\n"
    ".visible .entry small() .maxntid 64, 1, 1 { ret; }\n"
    ".visible .entry exact() .reqntid 32, 1, 1 { ret; }\n"
    ".visible .entry shared() {\n"
    "  .shared .align 4 .b8 s[1024]; .reg .b32 %r<2>;\n"
    "  mov.u32 %r1, 1; st.shared.u32 [s], %r1; ret;\n"
    "}\n"
    ".visible .entry say() {\n"
    "  .reg .b64 %rd<4>;\n"
    "  mov.u64 %rd1, words; cvta.global.u64 %rd2, %rd1; mov.u64 %rd3, 0;\n"
    "  { .param .b64 p0; .param .b64 p1; .param .b32 r0; st.param.b64 [p0], %rd2; st.param.b64 [p1], %rd3;\n"
    "    call.uni (r0), vprintf, (p0, p1); }\n"
    "  ret;\n"
    "}\n";

static hdcu_module module;

static hdcu_function function(const char *name)
{
    hdcu_function found;
    OK(cuModuleGetFunction(&found, module, name));
    return found;
}

static void start_with_code(void)
{
    soft_start();
    OK(cuModuleLoadData(&module, code));
}

static hdcu_result launch(const char *name, unsigned grid, unsigned block, unsigned shared, hdcu_stream stream,
                          void **params)
{
    return cu.cuLaunchKernel(function(name), grid, 1, 1, block, 1, 1, shared, stream, params, NULL);
}
#define LAUNCH(code, ...) ck_assert_uint_eq(launch(__VA_ARGS__), code)

/* ---- modules ---- */

static const struct {
    const char *image;
    unsigned code;
    const char *log;
} images[] = {
    {"garbage", 200, "neither PTX"},
    {"", 200, NULL},
    {".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry a(){ add.u32 %r1, %r2, %r3; }\n", 218, "line 4"},
    {".version 99.0\n.target sm_70\n.address_size 64\n", 222, NULL},
    {".version 8.8\n.target sm_100\n.address_size 64\n", 218, NULL},
    {"// words first\n.version 7.0\n.target sm_70\n.address_size 64\n", 0, NULL},
    {"\177ELF\2\1\1aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 200, "ELF"},

    {"\xb1\x43\x62\x46", 209, "fat binary"},
};

START_TEST(image_codes)
{
    soft_start();
    char log[512] = "";
    unsigned options[] = {HDCU_JIT_ERROR_LOG_BUFFER, HDCU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, HDCU_JIT_WALL_TIME};
    void *values[] = {log, (void *)sizeof log, NULL};
    char padded[4096] = "";
    strcpy(padded, images[_i].image);
    IS(cuModuleLoadDataEx(&module, padded, 3, options, values), images[_i].code);
    if (images[_i].log)
        ck_assert_msg(strstr(log, images[_i].log) != NULL, "log: %s", log);
    ck_assert_uint_eq((uintptr_t)values[1], strlen(log));
    IS(cuModuleLoadData(&module, padded), images[_i].code);
}
END_TEST

START_TEST(cubins_are_refused)
{
    soft_start();
    unsigned char cubin[64] = "\177ELF\2\1\1";
    cubin[18] = 190;
    IS(cuModuleLoadData(&module, cubin), 209);
    IS(cuModuleLoadData(&module, NULL), 1);
    unsigned option = 99;
    void *value = NULL;
    IS(cuModuleLoadDataEx(&module, code, 1, &option, &value), 1);
    /* A log that is too small is cut, and says how much of it there is. */
    char log[8];
    unsigned options[] = {HDCU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, HDCU_JIT_ERROR_LOG_BUFFER};
    void *values[] = {(void *)sizeof log, log};
    IS(cuModuleLoadDataEx(&module, "garbage", 2, options, values), 200);
    ck_assert_uint_eq(strlen(log), 7);
}
END_TEST

START_TEST(modules)
{
    start_with_code();
    hdcu_function found, all[20];
    hdcu_module owner;
    hdcu_pointer address;
    size_t bytes, offset, size;
    unsigned count, word;
    const char *name;
    IS(cuModuleGetFunction(&found, module, "nope"), 500);
    IS(cuModuleGetFunction(&found, module, ""), 1);
    OK(cuModuleGetFunctionCount(&count, module));
    ck_assert_uint_eq(count, 11);
    OK(cuModuleEnumerateFunctions(all, 20, module));
    OK(cuFuncGetName(&name, all[1]));
    ck_assert_str_eq(name, "store");
    OK(cuFuncGetModule(&owner, all[1]));
    ck_assert_ptr_eq(owner, module);
    OK(cuFuncGetParamInfo(all[1], 0, &offset, &size));
    ck_assert_uint_eq(offset + size, 8);
    OK(cuFuncGetParamInfo(all[1], 1, &offset, &size));
    ck_assert_uint_eq(offset, 8);
    ck_assert_uint_eq(size, 4);
    IS(cuFuncGetParamInfo(all[1], 2, &offset, &size), 1);
    OK(cuModuleGetGlobal(&address, &bytes, module, "counter"));
    ck_assert_uint_eq(bytes, 4);
    OK(cuMemcpyDtoH(&word, address, 4));
    ck_assert_uint_eq(word, 5);
    IS(cuModuleGetGlobal(&address, &bytes, module, "zz"), 500);
    IS(cuModuleGetGlobal(NULL, NULL, module, "counter"), 1);
    OK(cuModuleGetGlobal(&address, &bytes, module, "factor"));
    word = 10;
    OK(cuMemcpyHtoD(address, &word, 4));
    LAUNCH(0, "count", 2, 1, 0, NULL, NULL);
    OK(cuModuleGetGlobal(&address, NULL, module, "counter"));
    OK(cuMemcpyDtoH(&word, address, 4));
    ck_assert_uint_eq(word, 25);
    found = all[1];
    OK(cuModuleUnload(module));
    IS(cuModuleUnload(module), 400);
    IS(cuModuleUnload(NULL), 400);
    IS(cuFuncGetAttribute((int *)&word, 0, found), 400);
    IS(cuLaunchKernel(found, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 400);
}
END_TEST

/* What is wrong with a library's code is told who wants something of it. */
START_TEST(broken_libraries)
{
    soft_start();
    static const char bad[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                              ".visible .entry k() { add.u32 %a, %a, 1; }\n";
    hdcu_library library;
    hdcu_kernel kernel, all[2];
    hdcu_pointer address;
    size_t bytes;
    char log[256] = "";
    unsigned options[] = {HDCU_JIT_ERROR_LOG_BUFFER, HDCU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES}, count = 7;
    void *values[] = {log, (void *)sizeof log};
    OK(cuLibraryLoadData(&library, bad, options, values, 2, NULL, NULL, 0));
    ck_assert_msg(strstr(log, "line 4") != NULL, "%s", log);
    OK(cuLibraryGetKernelCount(&count, library));
    ck_assert_uint_eq(count, 0);
    OK(cuLibraryEnumerateKernels(all, 2, library));
    IS(cuLibraryGetKernel(&kernel, library, "k"), 218);
    IS(cuLibraryGetModule(&module, library), 218);
    IS(cuLibraryGetGlobal(&address, &bytes, library, "v"), 218);
    OK(cuLibraryUnload(library));
    IS(cuLibraryUnload(library), 400);
}
END_TEST

START_TEST(libraries)
{
    soft_start();
    hdcu_library library;
    hdcu_kernel kernel, all[20];
    hdcu_function found;
    hdcu_pointer address, memory = new_memory(4);
    size_t bytes;
    unsigned count, value = 3, word = 0;
    int number;
    const char *name;
    void *params[] = {&memory, &value};
    OK(cuLibraryLoadData(&library, code, NULL, NULL, 0, NULL, NULL, 0));
    IS(cuLibraryGetKernel(&kernel, library, "nope"), 500);
    OK(cuLibraryGetKernel(&kernel, library, "store"));
    OK(cuLibraryGetKernelCount(&count, library));
    ck_assert_uint_eq(count, 11);
    OK(cuLibraryEnumerateKernels(all, 20, library));
    OK(cuKernelGetName(&name, all[0]));
    ck_assert_str_eq(name, "empty");
    OK(cuKernelSetAttribute(HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, kernel, 0));
    OK(cuKernelGetAttribute(&number, HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0));
    ck_assert_int_eq(number, 100000);
    OK(cuLaunchKernel((hdcu_function)(void *)kernel, 1, 1, 1, 1, 1, 1, 100000, NULL, params, NULL));
    OK(cuMemcpyDtoH(&word, memory, 4));
    ck_assert_uint_eq(word, 3);
    OK(cuKernelGetFunction(&found, kernel));
    OK(cuFuncGetAttribute(&number, HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, found));
    ck_assert_int_eq(number, 100000);
    IS(cuKernelGetAttribute(&number, 0, (hdcu_kernel)(void *)found, 0), 400);
    OK(cuLibraryGetModule(&module, library));
    IS(cuModuleUnload(module), 400);
    OK(cuLibraryGetGlobal(&address, &bytes, library, "counter"));
    IS(cuLibraryGetGlobal(&address, &bytes, library, "nope"), 500);
    OK(cuLibraryUnload(library));
    IS(cuLibraryUnload(library), 400);
    IS(cuKernelGetFunction(&found, kernel), 400);
}
END_TEST

/* ---- functions ---- */

static const struct {
    const char *name;
    unsigned attribute;
    int value;
} function_attributes[] = {
    {"empty", HDCU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {"small", HDCU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 64},
    {"shared", HDCU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1024}, {"empty", HDCU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, 4},
    {"empty", HDCU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 0}, {"empty", HDCU_FUNC_ATTRIBUTE_PTX_VERSION, 70},
    {"empty", HDCU_FUNC_ATTRIBUTE_BINARY_VERSION, 90}, {"empty", HDCU_FUNC_ATTRIBUTE_CACHE_MODE_CA, 0},
    {"empty", HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 49152},
    {"shared", HDCU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 48128},
    {"empty", HDCU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1},
};

START_TEST(functions_have_attributes)
{
    start_with_code();
    int value = -7;
    OK(cuFuncGetAttribute(&value, function_attributes[_i].attribute, function(function_attributes[_i].name)));
    ck_assert_int_eq(value, function_attributes[_i].value);
    IS(cuFuncGetAttribute(&value, 16, function("empty")), 1);
}
END_TEST

static const struct {
    const char *name;
    unsigned attribute;
    int value;
    unsigned code;
} settings[] = {
    {"empty", 8, 232448, 0}, {"empty", 8, 232449, 1}, {"empty", 8, -1, 1}, {"empty", 8, 100, 0},
    {"shared", 8, 232448, 1}, {"shared", 8, 231424, 0}, {"empty", 9, 100, 0}, {"empty", 9, 101, 1},
    {"empty", 9, -1, 0}, {"empty", 0, 1, 1}, {"empty", 99, 1, 1},
};

START_TEST(function_settings)
{
    start_with_code();
    IS(cuFuncSetAttribute(function(settings[_i].name), settings[_i].attribute, settings[_i].value), settings[_i].code);
}
END_TEST

START_TEST(occupancy)
{
    start_with_code();
    static const struct {
        int threads, blocks;
        size_t dynamic;
    } cases[] = {{32, 32, 0}, {64, 32, 0}, {128, 16, 0}, {256, 8, 0}, {512, 4, 0}, {1024, 2, 0}, {32, 11, 20000},
                 {32, 5, 40000}, {32, 0, 60000}, {1025, 0, 0}};
    int blocks, grid, block;
    size_t bytes;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function("empty"), cases[i].threads, cases[i].dynamic));
        ck_assert_int_eq(blocks, cases[i].blocks);
    }
    IS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function("empty"), 0, 0), 1);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function("empty"), NULL, 0, 0));
    ck_assert_int_eq(grid, 264);
    ck_assert_int_eq(block, 1024);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function("small"), NULL, 0, 0));
    ck_assert_int_eq(grid, 4224);
    ck_assert_int_eq(block, 64);
    static const size_t available[] = {48128, 48128, 48128, 28160, 13568};
    for (int i = 0; i < 5; i++) {
        OK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function("shared"), 1 << i, 128));
        ck_assert_uint_eq(bytes, available[i]);
    }
    IS(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function("shared"), 17, 128), 1);
}
END_TEST

/* ---- launches ---- */

static const struct {
    const char *name;
    unsigned grid[3], block[3], shared, code;
} launches[] = {
    {"empty", {0, 1, 1}, {1, 1, 1}, 0, 1}, {"empty", {1, 1, 1}, {0, 1, 1}, 0, 1},
    {"empty", {1, 1, 1}, {1025, 1, 1}, 0, 1}, {"empty", {1, 1, 1}, {1, 1, 65}, 0, 1},
    {"empty", {1, 65536, 1}, {1, 1, 1}, 0, 1}, {"empty", {0x80000000u, 1, 1}, {1, 1, 1}, 0, 1},
    {"empty", {1, 1, 1}, {32, 32, 1}, 0, 0}, {"empty", {1, 1, 1}, {33, 32, 1}, 0, 1},
    {"empty", {1, 1, 1}, {1, 1, 1}, 49152, 0}, {"empty", {1, 1, 1}, {1, 1, 1}, 49153, 1},
    {"empty", {1, 1, 1}, {1, 1, 1}, 300000, 1}, {"shared", {1, 1, 1}, {1, 1, 1}, 49152, 1},
    {"shared", {1, 1, 1}, {1, 1, 1}, 48128, 0}, {"shared", {1, 1, 1}, {1, 1, 1}, 48129, 1},
    {"small", {1, 1, 1}, {65, 1, 1}, 0, 1}, {"small", {1, 1, 1}, {64, 1, 1}, 0, 0},
    {"exact", {1, 1, 1}, {32, 1, 1}, 0, 0}, {"exact", {1, 1, 1}, {33, 1, 1}, 0, 1},
    {"exact", {1, 1, 1}, {16, 1, 1}, 0, 1},
};

START_TEST(launch_codes)
{
    start_with_code();
    const unsigned *grid = launches[_i].grid, *block = launches[_i].block;
    IS(cuLaunchKernel(function(launches[_i].name), grid[0], grid[1], grid[2], block[0], block[1], block[2],
                      launches[_i].shared, NULL, NULL, NULL), launches[_i].code);
    OK(cuCtxSynchronize());
}
END_TEST

START_TEST(launch_arguments)
{
    start_with_code();
    hdcu_pointer memory = new_memory(64);
    unsigned value = 42, word;
    void *params[] = {&memory, &value};
    unsigned char buffer[16] = {0};
    size_t size = 12;
    void *extra[] = {(void *)HDCU_LAUNCH_PARAM_BUFFER_POINTER, buffer, (void *)HDCU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     (void *)HDCU_LAUNCH_PARAM_END};
    hdcu_function store = function("store");
    memcpy(buffer, &memory, 8);
    buffer[8] = 43;
    LAUNCH(1, "store", 1, 1, 0, NULL, NULL);
    LAUNCH(0, "store", 1, 1, 0, NULL, params);
    value = 1; /* copied at the call */
    OK(cuMemcpyDtoH(&word, memory, 4));
    ck_assert_uint_eq(word, 42);
    OK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    OK(cuMemcpyDtoH(&word, memory, 4));
    ck_assert_uint_eq(word, 43);
    size = 16;
    IS(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), 701);
    IS(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra), 1);
    IS(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), 400);
    hdcu_context own;
    OK(cuCtxCreate(&own, 0, 0));
    IS(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), 400); /* the other context's stream */
}
END_TEST

START_TEST(cooperative_and_extended_launches)
{
    start_with_code();
    static const struct {
        unsigned id, code;
    } zeros[] = {{0, 0}, {1, 0}, {2, 0}, {3, 1}, {4, 0}, {5, 0}, {6, 0}, {7, 400}, {8, 0}, {9, 0}, {10, 0}, {11, 0},
                 {12, 400}, {13, 801}, {14, 0}, {15, 1}, {16, 0}, {17, 1}};
    hdcu_function empty = function("empty");
    OK(cuLaunchCooperativeKernel(empty, 8 * 132, 1, 1, 256, 1, 1, 0, NULL, NULL));
    IS(cuLaunchCooperativeKernel(empty, 8 * 132 + 1, 1, 1, 256, 1, 1, 0, NULL, NULL), 720);
    hdcu_launch_attribute attribute;
    hdcu_launch_config config = {1, 1, 1, 1, 1, 1, 0, NULL, &attribute, 1};
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        memset(&attribute, 0, sizeof attribute);
        attribute.id = zeros[i].id;
        IS(cuLaunchKernelEx(&config, empty, NULL, NULL), zeros[i].code);
    }
    attribute.id = HDCU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.cluster.x = 2;
    IS(cuLaunchKernelEx(&config, empty, NULL, NULL), 801);
    attribute.id = HDCU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    config.grid_x = 8 * 132 * 4 + 1;
    config.block_x = 256;
    IS(cuLaunchKernelEx(&config, empty, NULL, NULL), 720);
    OK(cuCtxSynchronize());
}
END_TEST

START_TEST(launches_are_asynchronous)
{
    start_with_code();
    hdcu_stream one = new_stream(1), other = new_stream(1);
    unsigned *flag = new_pinned(4), value = 9, word;
    hdcu_pointer memory = new_memory(4), address = (uintptr_t)flag;
    void *waits[] = {&address}, *params[] = {&memory, &value};
    *flag = 0;
    LAUNCH(0, "wait", 1, 32, 0, one, waits); /* spins until the host says so */
    LAUNCH(0, "store", 1, 1, 0, other, params);
    OK(cuStreamSynchronize(other)); /* beside the spinning one */
    OK(cuMemcpyDtoHAsync(&word, memory, 4, other));
    ck_assert_uint_eq(word, 9);
    IS(cuStreamQuery(one), 600);
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    OK(cuStreamSynchronize(one));
}
END_TEST

static void *load_more(void *argument)
{
    hdcu_module more;
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&more, code));
    atomic_store((_Atomic int *)argument, 1);
    return NULL;
}

static void *launch_meanwhile(void *argument)
{
    OK(cuCtxSetCurrent(context));
    LAUNCH(0, "empty", 1, 1, 0, argument, NULL);
    return NULL;
}

/* FACTS, Loading code: a load waits for what runs, and launches of other threads wait for the load. */
START_TEST(loading_waits_for_kernels)
{
    start_with_code();
    hdcu_stream one = new_stream(1), other = new_stream(1);
    unsigned *flag = new_pinned(4);
    hdcu_pointer address = (uintptr_t)flag;
    void *waits[] = {&address};
    _Atomic int done = 0;
    pthread_t loader, launcher;
    *flag = 0;
    LAUNCH(0, "wait", 1, 1, 0, one, waits);
    pthread_create(&loader, NULL, load_more, &done);
    usleep(20000);
    ck_assert_int_eq(atomic_load(&done), 0);
    unsigned long long before = soft_call_count("cuLaunchKernel");
    pthread_create(&launcher, NULL, launch_meanwhile, other);
    while (soft_call_count("cuLaunchKernel") == before)
        usleep(100);
    usleep(10000);
    OK(cuStreamQuery(other)); /* nothing there yet: the launch is held up */
    hdcu_pointer memory = new_memory(64);
    OK(cuMemFree(memory)); /* these do not wait */
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    pthread_join(loader, NULL);
    pthread_join(launcher, NULL);
    OK(cuCtxSynchronize());
}
END_TEST

START_TEST(kernels_in_graphs)
{
    start_with_code();
    hdcu_stream stream = new_stream(1);
    hdcu_pointer memory = new_memory(8);
    unsigned value = 1, words[2];
    void *params[] = {&memory, &value};
    hdcu_graph graph;
    hdcu_graph_node node, captured;
    hdcu_graph_exec exec;
    size_t count = 1;
    hdcu_kernel_node_params node_params = {0}, read;
    OK(cuStreamBeginCapture(stream, 0));
    LAUNCH(0, "store", 1, 1, 0, stream, params);
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphGetNodes(graph, &captured, &count));
    OK(cuGraphKernelNodeGetParams(captured, &read));
    ck_assert_ptr_eq(read.function, function("store"));
    ck_assert_uint_eq(*(unsigned *)read.params[1], 1);
    IS(cuGraphAddKernelNode(&node, graph, &captured, 1, &node_params), 400);
    memory += 4;
    value = 2;
    node_params = read;
    node_params.params = params;
    OK(cuGraphAddKernelNode(&node, graph, &captured, 1, &node_params));
    node_params.shared_bytes = 49153;
    IS(cuGraphKernelNodeSetParams(node, &node_params), 1);
    node_params.shared_bytes = 0;
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (unsigned i = 0; i < 50; i++) { /* refilled while the launch before is in flight */
        value = 100 + i;
        OK(cuGraphExecKernelNodeSetParams(exec, node, &node_params));
        OK(cuGraphLaunch(exec, stream));
    }
    OK(cuModuleUnload(module)); /* graphs keep their code */
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(words, memory - 4, 8));
    ck_assert_uint_eq(words[0], 1);
    ck_assert_uint_eq(words[1], 149);
}
END_TEST

/* ---- faults ---- */

static const struct {
    const char *name;
    unsigned code;
    const char *words;
} faults[] = {
    {"store", 700, "store"}, {"trapped", 719, "trapped"}, {"misaligned", 716, "misaligned"}, {"broken", 719, "broken"},
};

START_TEST(kernel_faults)
{
    start_with_code();
    hdcu_stream stream = new_stream(1);
    hdcu_pointer memory = _i == 0 ? 16 : new_memory(64), pointer;
    hdcu_event event = new_event(0);
    hdcu_module more;
    unsigned value = 1;
    void *params[] = {&memory, &value};
    LAUNCH(0, faults[_i].name, 1, 1, 0, stream, params);
    cu.cuEventRecord(event, stream);
    IS(cuStreamSynchronize(stream), faults[_i].code);
    IS(cuEventQuery(event), faults[_i].code);
    IS(cuMemAlloc(&pointer, 4), faults[_i].code);
    IS(cuModuleLoadData(&more, code), faults[_i].code);
    IS(cuModuleUnload(module), faults[_i].code);
    OK(cuDevicePrimaryCtxRelease(0));
    IS(cuDevicePrimaryCtxRetain(&context, 0), faults[_i].code);
    ck_assert_msg(strstr(soft_last_fault(), faults[_i].words) != NULL, "fault: %s", soft_last_fault());
}
END_TEST

START_TEST(overruns_are_found_by_the_byte)
{
    start_with_code();
    hdcu_pointer memory = new_memory(100), end = memory + 100;
    unsigned value = 1;
    void *params[] = {&end, &value};
    memory += 96;
    LAUNCH(0, "store", 1, 1, 0, NULL, (void *[]){&memory, &value});
    OK(cuCtxSynchronize());
    LAUNCH(0, "store", 1, 1, 0, NULL, params);
    IS(cuCtxSynchronize(), 700);
    ck_assert_msg(strstr(soft_last_fault(), "0 bytes past allocation") != NULL, "fault: %s", soft_last_fault());
}
END_TEST

START_TEST(injected_kernel_fault)
{
    start_with_code();
    ck_assert_int_eq(soft_inject("fault@3=714"), 0);
    for (int i = 0; i < 2; i++) {
        LAUNCH(0, "empty", 1, 1, 0, NULL, NULL);
        OK(cuCtxSynchronize());
    }
    LAUNCH(0, "empty", 1, 1, 0, NULL, NULL);
    IS(cuCtxSynchronize(), 714);
    ck_assert_ptr_nonnull(strstr(soft_last_fault(), "empty"));
}
END_TEST

/* ---- printf ---- */

static void collect(void *argument, const char *bytes, size_t length)
{
    strncat(argument, bytes, length);
}

START_TEST(printf_comes_out_at_synchronisation)
{
    start_with_code();
    char said[256] = "";
    hdcu_stream stream = new_stream(1);
    soft_set_printf(collect, said);
    LAUNCH(0, "say", 1, 2, 0, stream, NULL);
    while (cu.cuStreamQuery(stream) == 600)
        usleep(100);
    ck_assert_str_eq(said, "");
    OK(cuStreamSynchronize(stream));
    ck_assert_str_eq(said, "hello\nhello\n");
}
END_TEST

START_TEST(printf_goes_to_standard_output)
{
    start_with_code();
    char text[64] = "";
    int ends[2], saved = dup(1);
    ck_assert_int_eq(pipe(ends), 0);
    fflush(stdout);
    dup2(ends[1], 1);
    LAUNCH(0, "say", 1, 1, 0, NULL, NULL);
    OK(cuCtxSynchronize());
    fflush(stdout);
    dup2(saved, 1);
    ck_assert_int_eq(read(ends[0], text, sizeof text - 1), 6);
    ck_assert_str_eq(text, "hello\n");
}
END_TEST

static void *launch_many(void *argument)
{
    hdcu_pointer memory;
    hdcu_stream stream;
    unsigned value, word;
    void *params[] = {&memory, &value};
    OK(cuCtxSetCurrent(context));
    stream = new_stream(1);
    memory = new_memory(4);
    for (value = 1; value < 150; value++)
        LAUNCH(0, "store", 1, 32, 0, stream, params);
    OK(cuMemcpyDtoHAsync(&word, memory, 4, stream));
    ck_assert_uint_eq(word, 149);
    return NULL;
}

START_TEST(threads_launch)
{
    start_with_code();
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, launch_many, NULL);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

int main(void)
{
    static const TTest *const *const single[] = {
        &cubins_are_refused, &modules, &broken_libraries, &libraries, &occupancy, &launch_arguments,
        &cooperative_and_extended_launches, &launches_are_asynchronous, &loading_waits_for_kernels, &kernels_in_graphs,
        &overruns_are_found_by_the_byte,
        &injected_kernel_fault, &printf_comes_out_at_synchronisation, &printf_goes_to_standard_output, &threads_launch,
    };
    Suite *suite = suite_create("soft_launch");
    TCase *group = tcase_create("all");
    tcase_set_timeout(group, 60);
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        tcase_add_test(group, *single[i]);
    tcase_add_loop_test(group, image_codes, 0, sizeof images / sizeof *images);
    tcase_add_loop_test(group, functions_have_attributes, 0, sizeof function_attributes / sizeof *function_attributes);
    tcase_add_loop_test(group, function_settings, 0, sizeof settings / sizeof *settings);
    tcase_add_loop_test(group, launch_codes, 0, sizeof launches / sizeof *launches);
    tcase_add_loop_test(group, kernel_faults, 0, sizeof faults / sizeof *faults);
    suite_add_tcase(suite, group);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
