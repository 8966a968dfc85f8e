/* SPDX-License-Identifier: MIT */
/* The soft driver's failures on request, hidden entry points, and the entry points that it only refuses. */
#include "soft.h"

#include <fcntl.h>
#include <hdrt/soft.h>
#include <stdio.h>

static hdrt_soft_inject_error inject_error;
static hdrt_soft_last_unsupported last_unsupported;

static void setup(void)
{
    soft_table();
    *(void **)&inject_error = hdsoft_get_proc_address("hdsoft_inject_error");
    *(void **)&last_unsupported = hdsoft_get_proc_address("hdsoft_last_unsupported");
}

static void start(void)
{
    setup();
    soft_start();
}

#define RULES(text) ck_assert_msg(soft_inject(text) == 0, "%s", inject_error())

static hdcu_result allocate(void)
{
    hdcu_pointer pointer;
    hdcu_result status = cu.cuMemAlloc(&pointer, 4);
    if (!status)
        OK(cuMemFree(pointer));
    return status;
}

/* ---- calls ---- */

START_TEST(nth_later_and_every_call)
{
    start();
    RULES("cuMemAlloc:2=2; cuMemAlloc:4+=CUDA_ERROR_INVALID_VALUE;");
    static const unsigned expected[] = {0, 2, 0, 1, 1, 1};
    for (size_t i = 0; i < 6; i++)
        ck_assert_uint_eq(allocate(), expected[i]);
    RULES(NULL);
    ck_assert_uint_eq(allocate(), 0);
    RULES("cuMemAlloc_v2:*=2");
    ck_assert_uint_eq(allocate(), 2);
    ck_assert_uint_eq(allocate(), 2);
}
END_TEST

/* A pattern counts all calls that it fits together. */
START_TEST(patterns)
{
    start();
    void *host;
    RULES("cuMem*Alloc*:3=2");
    ck_assert_uint_eq(allocate(), 0);
    OK(cuMemHostAlloc(&host, 4, 0));
    ck_assert_uint_eq(allocate(), 2);
    ck_assert_uint_eq(allocate(), 0);
    RULES("cu*:1=999");
    IS(cuMemFreeHost(host), 999);
    OK(cuMemFreeHost(host));
}
END_TEST

static unsigned count_failures(const char *rules, unsigned char struck[1000])
{
    unsigned failures = 0;
    RULES(NULL);
    RULES(rules);
    for (size_t i = 0; i < 1000; i++) {
        size_t free_bytes, total;
        struck[i] = cu.cuMemGetInfo(&free_bytes, &total) == 2;
        failures += struck[i];
    }
    return failures;
}

START_TEST(probability)
{
    start();
    unsigned char one[1000], same[1000], other[1000];
    unsigned failures = count_failures("cuMemGetInfo:p0.1@7=2", one);
    ck_assert_uint_ge(failures, 60);
    ck_assert_uint_le(failures, 140);
    ck_assert_uint_eq(count_failures("cuMemGetInfo:p0.1@7=2", same), failures);
    ck_assert_mem_eq(one, same, sizeof one);
    count_failures("cuMemGetInfo:p0.1@8=2", other);
    ck_assert_int_ne(memcmp(one, other, sizeof one), 0);
    ck_assert_uint_eq(count_failures("cuMemGetInfo:p0=2", one), 0);
    ck_assert_uint_eq(count_failures("cuMemGetInfo:p1=2", one), 1000);
    ck_assert_uint_eq(count_failures("cuMemGetInfo:p1.0@18446744073709551615=2", one), 1000);
}
END_TEST

/* cuInit and what comes before it can fail too. */
START_TEST(from_the_environment)
{
    setenv("HDSOFT_FAIL", "cuDriverGetVersion:1=999;cuInit:2=100;cuCtxCreate:1=2", 1);
    setup();
    int version;
    IS(cuDriverGetVersion(&version), 999);
    OK(cuDriverGetVersion(&version));
    OK(cuInit(0));
    IS(cuInit(0), 100);
    OK(cuInit(0));
    hdcu_context own;
    IS(cuCtxCreate(&own, 0, 0), 2);
    OK(cuCtxCreate(&own, 0, 0));
}
END_TEST

START_TEST(unreadable_environment)
{
    setenv("HDSOFT_FAIL", "cuMemAlloc:1=2;cuNope:1=2", 1);
    FILE *text = tmpfile();
    int kept = dup(2);
    char line[400] = "";
    dup2(fileno(text), 2);
    setup();
    hdcu_result status = cu.cuInit(0);
    dup2(kept, 2);
    rewind(text);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, text));
    fclose(text);
    ck_assert_uint_eq(status, 1);
    ck_assert_msg(strstr(line, "libhdsoft: HDSOFT_FAIL: character 16, at \"cuNope:1=2\": the soft driver has no entry "
                               "point of that name") != NULL,
                  "%s", line);
}
END_TEST

START_TEST(unreadable_rules)
{
    static const struct {
        const char *rules, *error;
    } cases[] = {
        {"cuNope:1=2", "character 1, at \"cuNope:1=2\": the soft driver has no entry point of that name"},
        {"zz*:1=2", "character 1, at \"zz*:1=2\": the soft driver has no entry point"},
        {"cuMemAlloc", "character 11, at \"\": expected : and which call"},
        {"cuMemAlloc:=2", "character 12, at \"=2\": expected which call"},
        {"cuMemAlloc:0=2", "character 12, at \"0=2\": expected which call"},
        {"cuMemAlloc:99999999999999999999=2", "character 12, at \"99999999999999999999=2\": expected which call"},
        {"cuMemAlloc:1", "character 13, at \"\": expected = and the code"},
        {"cuMemAlloc:1=", "character 14, at \"\": expected a code"},
        {"cuMemAlloc:1=0", "character 14, at \"0\": expected a code from 1"},
        {"cuMemAlloc:1=2x", "character 15, at \"x\": expected the rule's end"},
        {"cuMemAlloc:1=CUDA_NOPE", "character 14, at \"CUDA_NOPE\": expected a code: a number, or a name"},
        {"cuMemAlloc:1=CUDA_SUCCESS", "character 14, at \"CUDA_SUCCESS\": expected a code"},
        {"cuMemAlloc:p=2", "character 13, at \"=2\": expected a probability"},
        {"cuMemAlloc:p1.5=2", "character 13, at \"1.5=2\": expected a probability"},
        {"cuMemAlloc:p0.5@=2", "character 17, at \"=2\": expected the seed"},
        {"cuMemAlloc@1=2", "character 11, at \"@1=2\": expected :"},
        {"fault:1=2", "character 1, at \"fault:1=2\": the soft driver has no entry point"},
        {"fault@=2", "character 7, at \"=2\": expected which call"},
        {"hide=", "character 6, at \"\": expected a driver call's name"},
        {"hide=cuInit,,cuMemAlloc", "character 13, at \",cuMemAlloc\": expected a driver call's name"},
        {"hide=cuNope", "character 6, at \"cuNope\": the soft driver has no entry point"},
        {"version=12", "character 9, at \"12\": expected a driver version"},
        {"version=13010", "character 9, at \"13010\": expected a driver version"},
        {"memory=0", "character 8, at \"0\": expected bytes"},
        {"memory=64Q", "character 10, at \"Q\": expected the rule's end"},
        {"memory=99999999999G", "character 8, at \"99999999999G\": expected bytes"},
        {"  ; cuMemAlloc:1=2 ;", "character 19, at \" \": expected the rule's end"},
    };
    start();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(soft_inject(cases[i].rules) == 1, "%s", cases[i].rules);
        ck_assert_msg(strncmp(inject_error(), cases[i].error, strlen(cases[i].error)) == 0, "%s: %s", cases[i].rules,
                      inject_error());
    }
    char long_name[200] = "";
    memset(long_name, 'c', 150);
    strcat(long_name, ":1=2");
    ck_assert_int_eq(soft_inject(long_name), 1);
    ck_assert_uint_eq(allocate(), 0); /* not one of them counts */
    ck_assert_int_eq(soft_inject("memory=64M"), 1);
    ck_assert_ptr_nonnull(strstr(inject_error(), "before cuInit"));
    RULES("");
    ck_assert_str_eq(inject_error(), "");
}
END_TEST

/* Spent rules make room; too many at once are refused as one. */
START_TEST(room_for_rules)
{
    start();
    char many[4096] = "";
    for (int i = 0; i < 65; i++)
        strcat(many, "cuMemGetInfo:1000=2;");
    ck_assert_int_eq(soft_inject(many), 1);
    many[64 * strlen("cuMemGetInfo:1000=2;")] = '\0';
    RULES(many);
    ck_assert_int_eq(soft_inject("cuMemAlloc:1=2"), 1);
    ck_assert_ptr_nonnull(strstr(inject_error(), "more than 64 rules"));
    RULES(NULL);
    for (int i = 0; i < 200; i++) {
        RULES("cuMemAlloc:1=2");
        ck_assert_uint_eq(allocate(), 2);
    }
}
END_TEST

/* ---- commands ---- */

static const char ptx[] = ".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n";

static hdcu_function nothing(void)
{
    hdcu_module module;
    hdcu_function function;
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&function, module, "nothing"));
    return function;
}

START_TEST(faults_of_commands)
{
    start();
    hdcu_function function = nothing();
    hdcu_pointer memory = new_memory(64);
    hdcu_stream stream = new_stream(0);
    OK(cuMemsetD8Async(memory, 0, 64, stream));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    OK(cuStreamSynchronize(stream));
    RULES("command@2=700"); /* the launch is the first command, the memset the second */
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    OK(cuStreamSynchronize(stream));
    OK(cuMemsetD8Async(memory, 0, 64, stream));
    IS(cuStreamSynchronize(stream), 700);
    IS(cuMemsetD8Async(memory, 0, 64, stream), 700);
    ck_assert_ptr_nonnull(strstr(soft_last_fault(), "injected into a command that is no kernel"));
}
END_TEST

START_TEST(faults_of_kernels)
{
    start();
    hdcu_function function = nothing();
    hdcu_pointer memory = new_memory(64);
    RULES("fault@2=CUDA_ERROR_ASSERT");
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuMemsetD8Async(memory, 0, 64, NULL)); /* no kernel */
    OK(cuCtxSynchronize());
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    IS(cuCtxSynchronize(), 710);
    ck_assert_str_eq(soft_last_fault(), "kernel nothing: fault 710 was injected");
}
END_TEST

/* Work that is behind the fault ends, so nothing waits for ever: a gate that nobody opens, a wait for an event. */
START_TEST(a_fault_hangs_nobody)
{
    start();
    hdcu_function function = nothing();
    hdcu_stream first = new_stream(HDCU_STREAM_NON_BLOCKING), second = new_stream(HDCU_STREAM_NON_BLOCKING);
    hdcu_event event = new_event(0);
    gate_on(first);
    OK(cuEventRecord(event, first));
    OK(cuStreamWaitEvent(second, event, 0));
    RULES("fault@p1@3=719");
    hdcu_stream third = new_stream(HDCU_STREAM_NON_BLOCKING);
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, third, NULL, NULL));
    IS(cuStreamSynchronize(third), 719);
    IS(cuStreamSynchronize(second), 719);
    IS(cuStreamSynchronize(first), 719);
    IS(cuEventSynchronize(event), 719);
    IS(cuCtxSynchronize(), 719);
}
END_TEST

/* Nor on another device, which waits for the one that faults: its commands are dropped, and so count as over. */
START_TEST(a_fault_lets_other_devices_go)
{
    static const char *const policies[] = {"eager", "lazy", "random:3", "virtual"};
    hdcu_context second;
    setenv("HDSOFT_POLICY", policies[_i], 1);
    setup();
    soft_start_two();
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    hdcu_pointer here = new_memory(64);
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    OK(cuCtxSetCurrent(second));
    hdcu_pointer far = new_memory(64);
    hdcu_stream there = new_stream(HDCU_STREAM_NON_BLOCKING);
    hdcu_event event = new_event(0);
    gate closed = gate_on(there); /* the fault comes when all is enqueued */
    RULES("command@2=700");
    OK(cuMemsetD8Async(far, 1, 64, there));
    OK(cuEventRecord(event, there));
    OK(cuCtxSetCurrent(context));
    OK(cuStreamWaitEvent(stream, event, 0));
    OK(cuMemsetD8Async(here, 1, 64, stream));
    gate_open(closed);
    OK(cuCtxSynchronize());
    OK(cuCtxSetCurrent(second));
    IS(cuCtxSynchronize(), 700);
}
END_TEST

/* ---- what the driver has ---- */

START_TEST(hidden_entry_points)
{
    start();
    void *function;
    OK(cuGetProcAddress("cuGraphAddNode", &function, 12030, 0));
    RULES("hide=cuGraphAddNode,cuMemcpy*,cuTensorMapEncodeTiled");
    IS(cuGetProcAddress("cuGraphAddNode", &function, 12030, 0), 500);
    IS(cuGetProcAddress("cuMemcpyHtoD", &function, 12030, 0), 500);
    IS(cuGetProcAddress("cuTensorMapEncodeTiled", &function, 12030, 0), 500);
    ck_assert_ptr_null(hdsoft_get_proc_address("cuGraphAddNode_v2"));
    ck_assert_ptr_null(hdsoft_get_proc_address("cuMemcpy2DAsync_v2"));
    OK(cuGetProcAddress("cuGraphAddKernelNode", &function, 12030, 0));
    hdcu_result (*newer)(const char *, void **, int, uint64_t, unsigned *);
    *(void **)&newer = hdsoft_get_proc_address("cuGetProcAddress_v2");
    unsigned how = 9;
    ck_assert_uint_eq(newer("cuGraphAddNode", &function, 12030, 0, &how), 0);
    ck_assert_uint_eq(how, 1); /* no such symbol */
    ck_assert_ptr_null(function);
    RULES(NULL);
    OK(cuGetProcAddress("cuGraphAddNode", &function, 12030, 0));
}
END_TEST

/* Of every version exactly the entry points are there that are not newer. */
START_TEST(older_versions)
{
    static const struct {
        const char *name, *symbol;
        int version;
    } entries[] = {
#define ENTRY(name, symbol, version, need, parameters) {#name, symbol, version},
        HDCU_SYMBOL_LIST(ENTRY)
#undef ENTRY
    };
    static const int versions[] = {11040, 12000, 12010, 12030, 12040, 12080, 13000};
    start();
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++) {
        char rule[32];
        int told;
        snprintf(rule, sizeof rule, "version=%d", versions[v]);
        RULES(rule);
        OK(cuDriverGetVersion(&told));
        ck_assert_int_eq(told, versions[v]);
        for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
            void *function;
            bool there = entries[i].version <= versions[v];
            ck_assert_msg((hdsoft_get_proc_address(entries[i].symbol) != NULL) == there, "%s of %d in %d",
                          entries[i].symbol, entries[i].version, versions[v]);
            IS(cuGetProcAddress(entries[i].name, &function, entries[i].version, 0), there ? 0 : 500);
        }
    }
    RULES(NULL);
    int told;
    OK(cuDriverGetVersion(&told));
    ck_assert_int_eq(told, 13000);
}
END_TEST

START_TEST(little_memory)
{
    setup();
    RULES("memory=64M");
    soft_start();
    size_t free_bytes, total;
    hdcu_pointer pointer;
    OK(cuMemGetInfo(&free_bytes, &total));
    ck_assert_uint_eq(total, 64u << 20);
    IS(cuMemAlloc(&pointer, 64u << 20), 2);
    OK(cuMemAlloc(&pointer, 1u << 20));
}
END_TEST

START_TEST(calls_are_written_down)
{
    char path[] = "/tmp/hdsoft-calls-XXXXXX", line[200], symbol[64];
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    setenv("HDSOFT_CALLS", path, 1);
    start();
    unsigned long long numbers[3], places[3], number, place;
    unsigned found = 0;
    volatile int twice = 2; /* a loop in the program too */
    for (int i = 0; i < twice; i++)
        allocate();
    hdcu_pointer pointer;
    OK(cuMemAlloc(&pointer, 4));
    FILE *text = fdopen(file, "r");
    while (fgets(line, sizeof line, text)) {
        ck_assert_int_eq(sscanf(line, "%63s %llu %*x %llx", symbol, &number, &place), 3);
        if (strcmp(symbol, "cuMemAlloc_v2") == 0 && found < 3) {
            numbers[found] = number;
            places[found++] = place;
        }
    }
    fclose(text);
    unlink(path);
    ck_assert_uint_eq(found, 3);
    ck_assert_uint_eq(numbers[0], 1);
    ck_assert_uint_eq(numbers[2], 3);
    ck_assert_uint_eq(places[0], places[1]);
    ck_assert_uint_ne(places[0], places[2]);
}
END_TEST

/* ---- outside of what it does ---- */

START_TEST(calls_outside)
{
    static const struct {
        const char *name, *area;
        int version;
    } cases[] = {
        {"cuTexObjectCreate", "textures, surfaces and arrays", 5000},
        {"cuSurfObjectCreate", "textures, surfaces and arrays", 5000},
        {"cuArrayCreate", "textures, surfaces and arrays", 3020},
        {"cuMemcpyAtoH", "textures, surfaces and arrays", 3020},
        {"cuModuleGetTexRef", "textures, surfaces and arrays", 2000},
        {"cuTensorMapEncodeTiled", "tensor maps", 12000},
        {"cuOccupancyMaxPotentialClusterSize", "thread block clusters", 11070},
        {"cuOccupancyMaxActiveClusters", "thread block clusters", 11070},
        {"cuStreamSetAttribute", "attributes of streams", 11000},
        {"cuMemAllocManaged", "managed memory", 6000},
        {"cuMemPrefetchAsync", "managed memory", 12020},
        {"cuMemAdvise", "managed memory", 12020},
        {"cuStreamAttachMemAsync", "managed memory", 7000},
        {"cuLibraryGetManaged", "managed memory", 12000},
        {"cuLinkCreate", "linking of device code", 6050},
        {"cuLinkAddData", "linking of device code", 6050},
        {"cuLinkComplete", "linking of device code", 5050},
        {"cuLinkDestroy", "linking of device code", 5050},
        {"cuModuleLoadFatBinary", "linking of device code", 2000},
        {"cuGraphAddMemAllocNode", "this kind of graph node or update", 11040},
        {"cuGraphAddMemFreeNode", "this kind of graph node or update", 11040},
        {"cuGraphInstantiateWithParams", "this kind of graph node or update", 12000},
        {"cuGraphDebugDotPrint", "this kind of graph node or update", 11030},
        {"cuStreamBeginCaptureToGraph", "this kind of graph node or update", 12030},
        {"cuCtxRecordEvent", "green contexts and device resources", 12050},
        {"cuCtxWaitEvent", "green contexts and device resources", 12050},
        {"cuMemCreate", "mapping of virtual memory, and multicast", 10020},
        {"cuMulticastCreate", "mapping of virtual memory, and multicast", 12010},
        {"cuIpcGetMemHandle", "sharing between processes", 4010},
        {"cuImportExternalMemory", "memory and semaphores of other interfaces", 10000},
        {"cuDeviceGetLuid", "this call", 10000},
    };
    setup();
    hdcu_result (*function)(void *, void *, void *, void *, void *, void *, void *, void *);
    OK(cuGetProcAddress("cuTexObjectCreate", (void **)&function, 13000, 0));
    ck_assert_uint_eq(function(0, 0, 0, 0, 0, 0, 0, 0), 3); /* before cuInit as all others */
    soft_start();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(cu.cuGetProcAddress(cases[i].name, (void **)&function, 13000, 0) == 0, "%s", cases[i].name);
        ck_assert_msg(function(0, 0, 0, 0, 0, 0, 0, 0) == 801, "%s", cases[i].name);
        ck_assert_msg(strstr(last_unsupported(), cases[i].name) && strstr(last_unsupported(), cases[i].area), "%s",
                      last_unsupported());
        IS(cuGetProcAddress(cases[i].name, (void **)&function, 1000, 0), 500); /* nobody knew it then */
    }
    IS(cuGetProcAddress("cudaLaunchDevice", (void **)&function, 13000, 0), 500); /* of the runtime: no entry point */
}
END_TEST

START_TEST(newly_answered)
{
    start();
    unsigned long long id, other_id;
    unsigned version;
    hdcu_context other;
    OK(cuCtxGetId(NULL, &id));
    OK(cuCtxGetId(context, &other_id));
    ck_assert_uint_eq(id, other_id);
    OK(cuCtxCreate(&other, 0, 0));
    OK(cuCtxGetId(other, &other_id));
    ck_assert_uint_ne(id, other_id);
    IS(cuCtxGetId(NULL, NULL), 1);
    OK(cuCtxGetApiVersion(other, &version));
    ck_assert_uint_eq(version, 3020);
    IS(cuCtxGetApiVersion((hdcu_context)(uintptr_t)0x4444, &version), 201);
    OK(cuProfilerStart());
    OK(cuProfilerStop());
    void *function, *with_flags;
    OK(cuGetProcAddress("cuGraphInstantiate", &function, 12000, 0));
    OK(cuGetProcAddress("cuGraphInstantiateWithFlags", &with_flags, 12000, 0));
    ck_assert_ptr_eq(function, with_flags);
}
END_TEST

START_TEST(modules_from_files)
{
    char path[] = "/tmp/hdsoft-module-XXXXXX";
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, ptx, strlen(ptx)), (int)strlen(ptx));
    close(file);
    start();
    hdcu_module module;
    hdcu_function function;
    OK(cuModuleLoad(&module, path));
    OK(cuModuleGetFunction(&function, module, "nothing"));
    unlink(path);
    IS(cuModuleLoad(&module, path), 301);
    IS(cuModuleLoad(&module, "/"), 301);
    IS(cuModuleLoad(&module, NULL), 1);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("inject");
    tcase_add_test(cases, nth_later_and_every_call);
    tcase_add_test(cases, patterns);
    tcase_add_test(cases, probability);
    tcase_add_test(cases, from_the_environment);
    tcase_add_test(cases, unreadable_environment);
    tcase_add_test(cases, unreadable_rules);
    tcase_add_test(cases, room_for_rules);
    tcase_add_test(cases, faults_of_commands);
    tcase_add_test(cases, faults_of_kernels);
    tcase_add_test(cases, a_fault_hangs_nobody);
    tcase_add_loop_test(cases, a_fault_lets_other_devices_go, 0, 4);
    tcase_add_test(cases, hidden_entry_points);
    tcase_add_test(cases, older_versions);
    tcase_add_test(cases, little_memory);
    tcase_add_test(cases, calls_are_written_down);
    tcase_add_test(cases, calls_outside);
    tcase_add_test(cases, newly_answered);
    tcase_add_test(cases, modules_from_files);
    Suite *suite = suite_create("soft driver: failures on request");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
