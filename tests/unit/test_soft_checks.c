/* SPDX-License-Identifier: MIT */
/*
 * What the soft driver's checks report, and what they must not: bad accesses, uninitialised reads, leaks and deadlocks.
 * Races are in test_soft_race. Each check has faults that it must find and code close to them that is in order.
 */
#include "soft.h"

#include <stdio.h>
#include <sys/wait.h>

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n.file 1 \"user.cu\"\n"
#define ENTRY(name, body)                                                                                              \
    ".visible .entry " name "(.param .u64 p, .param .u64 q, .param .u64 o) {\n"                                        \
    ".reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %a, %b, %c; .reg .pred %p<4>; .reg .b16 %h<4>;\n"   \
    "ld.param.u64 %a, [p]; ld.param.u64 %b, [q]; ld.param.u64 %c, [o];\n" body "ret;\n}\n"

static const char code[] = HEAD
    /* *(int *)(p + o) = 1 */
    ENTRY("put", "add.s64 %a, %a, %c; mov.u32 %r1, 1;\n.loc 1 12 5\nst.global.u32 [%a], %r1;\n")
    /* *(int *)q = *(int *)(p + o) + 1, over three lines */
    ENTRY("use", "add.s64 %a, %a, %c;\n.loc 1 20 5\nld.global.u32 %r1, [%a];\n.loc 1 21 5\nadd.u32 %r1, %r1, 1;\n"
                 ".loc 1 22 5\nst.global.u32 [%b], %r1;\n")
    /* 8 bytes from p + o to q, of a structure with a gap; and the same by halves, through moves */
    ENTRY("copy", "add.s64 %a, %a, %c;\n.loc 1 30 5\nld.global.u64 %rd1, [%a]; mov.b64 %rd2, %rd1;\n"
                  "st.global.u64 [%b], %rd2;\n")
    ENTRY("halves", "ld.global.v2.u32 {%r1, %r2}, [%a]; mov.b64 %rd1, {%r1, %r2}; mov.b64 {%r3, %r4}, %rd1;\n"
                    "st.global.v2.u32 [%b], {%r3, %r4};\n")
    /* both members are loaded; the first, or the second, is used */
    ENTRY("first", ".loc 1 40 5\nld.global.v2.u32 {%r1, %r2}, [%a]; add.u32 %r1, %r1, 1; st.global.u32 [%b], %r1;\n")
    ENTRY("second", ".loc 1 41 5\nld.global.v2.u32 {%r1, %r2}, [%a]; add.u32 %r2, %r2, 1; st.global.u32 [%b], %r2;\n")
    /* the low half of a word of which the high half is a gap */
    ENTRY("low", "ld.global.u32 %r1, [%a]; and.b32 %r1, %r1, 65535; add.u32 %r1, %r1, 1; st.global.u32 [%b], %r1;\n")
    ENTRY("chosen", "mov.u32 %r3, 7; setp.eq.u64 %p1, %c, 0; ld.global.u32 %r1, [%a]; selp.b32 %r2, %r1, %r3, %p1;\n"
                    "add.u32 %r2, %r2, 1; st.global.u32 [%b], %r2;\n")
    ENTRY("count", ".loc 1 50 5\nred.global.add.u32 [%a], 1;\n")
    ENTRY("lock", "atom.global.exch.b32 %r1, [%a], 1;\n")
    ENTRY("address", ".loc 1 55 5\nld.global.u64 %rd1, [%a]; and.b64 %rd1, %rd1, 4; add.s64 %rd2, %b, %rd1;\n"
                     "mov.u32 %r1, 1; st.global.u32 [%rd2], %r1;\n")
    /* thread t reads what thread 31 - t wrote to shared memory, if o is 0; else only the lower half has written */
    ENTRY("tile", ".shared .align 4 .b8 s[128]; mov.u32 %r1, %tid.x; cvt.u32.u64 %r2, %c; setp.lt.u32 %p1, %r1, 16;\n"
                  "setp.eq.u32 %p2, %r2, 0; or.pred %p1, %p1, %p2; mul.lo.u32 %r3, %r1, 4; mov.u32 %r4, s;\n"
                  "add.u32 %r5, %r4, %r3; @%p1 st.shared.u32 [%r5], %r1; bar.sync 0; sub.u32 %r3, 124, %r3;\n"
                  "add.u32 %r5, %r4, %r3;\n.loc 1 60 5\nld.shared.u32 %r6, [%r5]; add.u32 %r6, %r6, 1;\n"
                  "cvt.u64.u32 %rd1, %r3; add.s64 %b, %b, %rd1; st.global.u32 [%b], %r6;\n")
    /* deadlocks */
    ENTRY("exited", "mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32; @%p1 ret;\n.loc 1 70 5\nbar.sync 1, 64;\n")
    ENTRY("parted", "mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32; @%p1 bra other;\n.loc 1 71 5\n"
                    "bar.sync 1, 64;\nret;\nother:\n.loc 1 72 5\nbar.sync 2, 64;\n")
    ENTRY("met", "bar.sync 0; bar.sync 1, 64; mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32; @%p1 ret; bar.sync 0;\n")
    /* the grid's barrier; with o = 1 the second block goes home */
    ENTRY("grid", "mov.u32 %r1, %ctaid.x; cvt.u64.u32 %rd1, %r1; setp.eq.u64 %p1, %c, 1; setp.eq.u32 %p2, %r1, 1;\n"
                  "and.pred %p1, %p1, %p2; @%p1 ret; mov.b32 %r2, %envreg1; mov.b32 %r3, %envreg2;\n"
                  "mov.b64 %rd2, {%r3, %r2}; setp.eq.u64 %p3, %rd2, 0; @%p3 trap;\nmov.u32 %r4, %nctaid.x;\n"
                  "atom.add.release.gpu.u32 %r5, [%rd2+4], 1;\nagain:\n.loc 1 80 5\n"
                  "ld.acquire.gpu.u32 %r5, [%rd2+4]; setp.lt.u32 %p1, %r5, %r4; @%p1 bra again;\n")
    ;

static int (*check)(const char *words);
static unsigned long long (*report_count)(void);
static void (*set_report)(void (*function)(void *, const char *, const char *, unsigned long long, unsigned long long),
                          void *context);
static void (*report_flush)(void);

static char told[65536], kinds[1024];
static hdcu_module module;

static void collect(void *unused, const char *kind, const char *text, unsigned long long allocation,
                    unsigned long long count)
{
    (void)unused, (void)allocation, (void)count;
    snprintf(kinds + strlen(kinds), sizeof kinds - strlen(kinds), "%s;", kind);
    snprintf(told + strlen(told), sizeof told - strlen(told), "%s\n", text);
}

static void find_symbols(void)
{
    soft_table();
    *(void **)&check = hdsoft_get_proc_address("hdsoft_check");
    *(void **)&report_count = hdsoft_get_proc_address("hdsoft_report_count");
    *(void **)&set_report = hdsoft_get_proc_address("hdsoft_set_report");
    *(void **)&report_flush = hdsoft_get_proc_address("hdsoft_report_flush");
    ck_assert(check && report_count && set_report && report_flush);
}

static void start(const char *words)
{
    find_symbols();
    ck_assert_int_eq(check(words), 0);
    set_report(collect, NULL);
    soft_start();
    OK(cuModuleLoadData(&module, code));
}

static hdcu_result run_in(hdcu_stream stream, const char *name, unsigned threads, hdcu_pointer p, hdcu_pointer q,
                          unsigned long long o)
{
    hdcu_function function;
    void *params[] = {&p, &q, &o};
    OK(cuModuleGetFunction(&function, module, name));
    return cu.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, stream, params, NULL);
}

/* Launches and waits. */
static hdcu_result run(const char *name, unsigned threads, hdcu_pointer p, hdcu_pointer q, unsigned long long o)
{
    hdcu_result status = run_in(NULL, name, threads, p, q, o);
    return status ? status : cu.cuCtxSynchronize();
}

#define TOLD(text) ck_assert_msg(strstr(told, text) != NULL, "'%s' is missing in: %s", text, told)
#define NOTHING() ck_assert_msg(report_count() == 0, "told: %s", told)
#define ONE(kind) ck_assert_msg(report_count() == 1 && strcmp(kinds, kind ";") == 0, "%s told: %s", kinds, told)

/* ---- accesses ---- */

START_TEST(an_overrun_is_placed)
{
    start("memory");
    hdcu_pointer memory = new_memory(400);
    ck_assert_uint_eq(run("put", 1, memory, 0, 412), 700);
    ONE("out of bounds");
    TOLD("kernel 'put' at user.cu:12 (PTX line ");
    TOLD("block (0,0,0) thread (0,0,0)");
    TOLD("12 bytes past allocation #");
    TOLD(" of 400 bytes");
    TOLD("was made by cuMemAlloc_v2\n        at test_soft_checks+0x");
}
END_TEST

START_TEST(an_overrun_does_not_land_in_the_next_allocation)
{
    start("memory");
    hdcu_pointer first = new_memory(4096), second = new_memory(4096);
    ck_assert_uint_ge(second, first + 8192);
    ck_assert_uint_eq(run("put", 1, first, 0, 4096 + 1024), 700);
    ONE("out of bounds");
    TOLD("1024 bytes past allocation #");
}
END_TEST

START_TEST(an_underrun_is_placed)
{
    start("memory");
    hdcu_pointer memory = new_memory(64);
    ck_assert_uint_eq(run("put", 1, memory, 0, (unsigned long long)-4), 700);
    ONE("out of bounds");
    TOLD("4 bytes before allocation #");
}
END_TEST

START_TEST(the_last_element_is_inside)
{
    start("memory,init");
    hdcu_pointer memory = new_memory(400);
    ck_assert_uint_eq(run("put", 1, memory, 0, 396), 0);
    NOTHING();
}
END_TEST

START_TEST(a_misaligned_access_is_told)
{
    start("memory");
    ck_assert_uint_eq(run("put", 1, new_memory(64), 0, 2), 716);
    ONE("misaligned");
    TOLD("user.cu:12");
}
END_TEST

START_TEST(freed_memory_is_known)
{
    start("memory");
    hdcu_pointer memory = new_memory(64);
    OK(cuMemFree(memory));
    ck_assert_uint_eq(run("put", 1, memory, 0, 8), 700);
    ONE("use after free");
    TOLD("byte 8 of allocation #");
    TOLD("was made by cuMemAlloc_v2");
    TOLD("it was freed by cuMemFree_v2\n        at test_soft_checks+0x");
}
END_TEST

START_TEST(memory_freed_in_a_stream_is_known)
{
    start("memory");
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    hdcu_pointer memory;
    OK(cuMemAllocAsync(&memory, 64, stream));
    ck_assert_uint_eq(run_in(stream, "put", 1, memory, 0, 0), 0);
    OK(cuMemFreeAsync(memory, stream));
    ck_assert_uint_eq(run_in(stream, "put", 1, memory, 0, 0), 0);
    IS(cuStreamSynchronize(stream), 700);
    ONE("use after free");
    TOLD("it was freed by cuMemFreeAsync");
}
END_TEST

START_TEST(another_stream_may_free_what_it_waited_for)
{
    start("memory,init,leak");
    hdcu_stream user = new_stream(HDCU_STREAM_NON_BLOCKING), owner = new_stream(HDCU_STREAM_NON_BLOCKING);
    hdcu_event made = new_event(0), used = new_event(0);
    hdcu_pointer memory;
    OK(cuMemAllocAsync(&memory, 64, owner));
    OK(cuEventRecord(made, owner));
    OK(cuStreamWaitEvent(user, made, 0));
    ck_assert_uint_eq(run_in(user, "put", 1, memory, 0, 0), 0);
    OK(cuEventRecord(used, user));
    OK(cuStreamWaitEvent(owner, used, 0));
    OK(cuMemFreeAsync(memory, owner));
    OK(cuStreamSynchronize(owner));
    NOTHING();
}
END_TEST

START_TEST(a_copy_that_overruns_is_told)
{
    start("memory");
    hdcu_pointer memory = new_memory(64), other = new_memory(128);
    hdcu_stream stream = new_stream(0);
    OK(cuMemFree(memory));
    hdcu_result status = cu.cuMemcpyDtoDAsync(other, memory, 64, stream);
    if (!status) { /* not refused at once: the fault is found when it runs */
        cu.cuStreamSynchronize(stream);
        ONE("use after free");
        TOLD("a copy's source");
    }
}
END_TEST

/* ---- uninitialised memory ---- */

START_TEST(an_unwritten_value_is_told_where_it_is_loaded_and_used)
{
    start("init");
    hdcu_pointer memory = new_memory(64), result = new_memory(64);
    ck_assert_uint_eq(run("use", 1, memory, result, 8), 0);
    ONE("uninitialised read");
    TOLD("kernel 'use' at user.cu:20 (PTX line ");
    TOLD("uses 4 bytes at address 0x");
    TOLD("byte 8 of allocation #");
    TOLD("the use is at user.cu:21");
    TOLD("was made by cuMemAlloc_v2");
}
END_TEST

static const struct {
    const char *what, *kernel;
    unsigned set_from, set_bytes; /* of 16 bytes */
    unsigned long long o;
    bool told;
} reads[] = {
    {"all is set", "use", 0, 16, 0, false},
    {"just what is read is set", "use", 8, 4, 8, false},
    {"one byte of it is not", "use", 9, 7, 8, true},
    {"a structure is copied with its gap", "copy", 0, 5, 0, false},
    {"it is copied through two registers", "halves", 0, 4, 0, false},
    {"only the member that is set is used", "first", 0, 4, 0, false},
    {"the other one is used", "second", 0, 4, 0, true},
    {"the half word that is set is used", "low", 0, 2, 0, false},
    {"neither half is set", "low", 8, 8, 0, true},
    {"the value that is not set is not chosen", "chosen", 8, 8, 1, false},
    {"it is chosen", "chosen", 8, 8, 0, true},
    {"an atomic sum begins with zero", "count", 0, 4, 0, false},
    {"it begins with nothing", "count", 4, 4, 0, true},
    {"a lock is set without a look at it", "lock", 4, 4, 0, false},
    {"an address comes of nothing", "address", 8, 8, 0, true},
};

START_TEST(reads_of_what_is_set_in_part)
{
    start("memory,init");
    hdcu_pointer memory = new_memory(16), result = new_memory(16);
    OK(cuMemsetD8(memory + reads[_i].set_from, 0, reads[_i].set_bytes));
    ck_assert_msg(run(reads[_i].kernel, 1, memory, result, reads[_i].o) == 0, "%s: %s", reads[_i].what,
                  soft_last_fault());
    ck_assert_msg(report_count() == reads[_i].told, "%s: %s", reads[_i].what, told);
    ck_assert_msg(!reads[_i].told || strcmp(kinds, "uninitialised read;") == 0, "%s: %s", reads[_i].what, kinds);
}
END_TEST

START_TEST(what_was_copied_unwritten_stays_so)
{
    start("init");
    hdcu_pointer memory = new_memory(16), moved = new_memory(16), again = new_memory(16), result = new_memory(16);
    OK(cuMemsetD8(memory, 0, 4));
    ck_assert_uint_eq(run("copy", 1, memory, moved, 0), 0);
    OK(cuMemcpyDtoD(again, moved, 8));
    NOTHING();
    ck_assert_uint_eq(run("use", 1, again, result, 0), 0);
    NOTHING();
    ck_assert_uint_eq(run("use", 1, again, result, 4), 0);
    ONE("uninitialised read");
}
END_TEST

START_TEST(a_copy_in_a_memset_and_a_kernel_write)
{
    static const int bytes[4];
    start("init");
    hdcu_pointer memory = new_memory(16), result = new_memory(16);
    OK(cuMemcpyHtoD(memory, bytes, 4));
    OK(cuMemsetD32(memory + 4, 0, 1));
    ck_assert_uint_eq(run("put", 1, memory, 0, 8), 0);
    for (unsigned long long o = 0; o < 12; o += 4)
        ck_assert_uint_eq(run("use", 1, memory, result, o), 0);
    NOTHING();
    ck_assert_uint_eq(run("use", 1, memory, result, 12), 0);
    ONE("uninitialised read");
}
END_TEST

START_TEST(memory_that_is_allocated_again_is_unwritten)
{
    start("init");
    hdcu_stream stream = new_stream(0);
    hdcu_pointer memory, result = new_memory(16);
    for (int i = 0; i < 2; i++) {
        OK(cuMemAllocAsync(&memory, 64, stream));
        if (i == 0)
            OK(cuMemsetD8Async(memory, 0, 64, stream));
        ck_assert_uint_eq(run_in(stream, "use", 1, memory, result, 0), 0);
        OK(cuMemFreeAsync(memory, stream));
        OK(cuStreamSynchronize(stream));
        ck_assert_uint_eq(report_count(), i);
    }
}
END_TEST

START_TEST(a_copy_to_the_host_is_told)
{
    char bytes[64];
    start("init");
    hdcu_pointer memory = new_memory(64);
    OK(cuMemsetD8(memory, 0, 40));
    OK(cuMemcpyDtoH(bytes, memory, 40));
    NOTHING();
    OK(cuMemcpyDtoH(bytes, memory, 64));
    ONE("uninitialised copy");
    TOLD("24 of 64 bytes");
    TOLD("byte 40 of allocation #");
}
END_TEST

START_TEST(gaps_of_structures_go_to_the_host)
{
    char bytes[256];
    start("init");
    hdcu_pointer memory = new_memory(256);
    for (hdcu_pointer at = memory; at < memory + 256; at += 16)
        OK(cuMemsetD8(at, 0, 12));
    OK(cuMemcpyDtoH(bytes, memory, 256));
    NOTHING();
    OK(cuMemcpyDtoH(bytes, memory + 100, 40)); /* from within one to within another */
    NOTHING();
}
END_TEST

START_TEST(shared_memory_is_unwritten_at_first)
{
    start("init");
    hdcu_pointer result = new_memory(128);
    ck_assert_uint_eq(run("tile", 32, 0, result, 0), 0);
    NOTHING();
    ck_assert_uint_eq(run("tile", 32, 0, result, 1), 0);
    ONE("uninitialised read");
    TOLD("kernel 'tile' at user.cu:60");
    TOLD("of shared memory that no thread of the block has written");
}
END_TEST

START_TEST(the_same_again_is_counted)
{
    start("init");
    hdcu_pointer memory = new_memory(64), result = new_memory(64);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(run("use", 1, memory, result, 8), 0);
    ONE("uninitialised read");
    ck_assert_ptr_null(strstr(told, "again"));
    report_flush();
    TOLD("kernel 'use' at user.cu:20: the same again, 3 times in all");
    ck_assert_uint_eq(report_count(), 1);
}
END_TEST

/* ---- leaks ---- */

static void leave_things(hdcu_context own, bool leave)
{
    hdcu_pointer memory = new_memory(100), pooled;
    void *pinned = new_pinned(4096);
    hdcu_stream stream = new_stream(0);
    hdcu_event event = new_event(0);
    hdcu_module loaded;
    OK(cuModuleLoadData(&loaded, code));
    OK(cuMemAllocAsync(&pooled, 200, stream));
    if (!leave) {
        OK(cuMemFreeAsync(pooled, stream)); /* its pool keeps it, which is no leak */
        OK(cuModuleUnload(loaded));
        OK(cuEventDestroy(event));
        OK(cuStreamDestroy(stream));
        OK(cuMemFreeHost(pinned));
        OK(cuMemFree(memory));
    }
    OK(cuCtxDestroy(own));
}

START_TEST(what_is_left_in_a_context_is_told)
{
    start("leak");
    hdcu_context own;
    OK(cuCtxCreate(&own, 0, 0));
    leave_things(own, true);
    ck_assert_uint_eq(report_count(), 6);
    TOLD("leak: allocation #");
    TOLD(" of 100 bytes at 0x");
    TOLD(" of 200 bytes at 0x");
    TOLD("leak: pinned host memory #");
    TOLD("leak: a stream was never given back; it was made by cuStreamCreate\n        at test_soft_checks+0x");
    TOLD("leak: an event was never given back; it was made by cuEventCreate");
    TOLD("leak: a module was never given back; it was made by cuModuleLoadData");
}
END_TEST

START_TEST(what_was_given_back_is_no_leak)
{
    start("leak");
    hdcu_context own;
    OK(cuCtxCreate(&own, 0, 0));
    leave_things(own, false);
    NOTHING();
}
END_TEST

START_TEST(the_last_release_of_the_primary_context_tells)
{
    start("leak");
    OK(cuModuleUnload(module));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    new_event(0);
    OK(cuDevicePrimaryCtxRelease(0));
    NOTHING();
    OK(cuDevicePrimaryCtxRelease(0));
    ONE("leak");
}
END_TEST

/* What a process that ends in a forked child says. */
static void end_a_process(bool leave, char *text, size_t capacity)
{
    int ends[2], status;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        setenv("HDSOFT_CHECK", "leak", 1);
        soft_start();
        if (leave)
            new_stream(0);
        exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t more; (more = read(ends[0], text + length, capacity - 1 - length)) > 0;)
        length += (size_t)more;
    text[length] = '\0';
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x, %s", status, text);
}

START_TEST(the_end_of_the_process_tells)
{
    char text[4096];
    end_a_process(true, text, sizeof text);
    ck_assert_msg(strstr(text, "hdsoft: leak: a stream was never given back") == text, "%s", text);
    end_a_process(false, text, sizeof text);
    ck_assert_str_eq(text, "");
}
END_TEST

/* ---- deadlocks ---- */

START_TEST(a_barrier_that_exited_threads_miss)
{
    start("memory");
    ck_assert_uint_eq(run("exited", 64, 0, 0, 0), 719);
    ONE("deadlock");
    TOLD("32 threads of warp 0 wait at barrier 1, which has 32 of the 64 threads that it is for (user.cu:70)");
    TOLD("32 threads have exited");
}
END_TEST

START_TEST(barriers_that_wait_for_each_other)
{
    start("memory");
    ck_assert_uint_eq(run("parted", 64, 0, 0, 0), 719);
    ONE("deadlock");
    TOLD("barrier 1, which has 32 of the 64 threads that it is for (user.cu:71)");
    TOLD("barrier 2, which has 32 of the 64 threads that it is for (user.cu:72)");
}
END_TEST

START_TEST(barriers_that_are_met)
{
    start("memory");
    ck_assert_uint_eq(run("met", 64, 0, 0, 0), 0);
    NOTHING();
}
END_TEST

static hdcu_result run_grid(unsigned long long o)
{
    hdcu_pointer none = 0;
    hdcu_function function;
    void *params[] = {&none, &none, &o};
    OK(cuModuleGetFunction(&function, module, "grid"));
    OK(cuLaunchCooperativeKernel(function, 4, 1, 1, 1, 1, 1, 0, NULL, params));
    return cu.cuCtxSynchronize();
}

START_TEST(the_grids_barrier_misses_a_block)
{
    start("memory");
    ck_assert_uint_eq(run_grid(0), 0);
    NOTHING();
    ck_assert_uint_eq(run_grid(1), 719);
    ONE("deadlock");
    TOLD("3 blocks wait at the grid's barrier and 1 have ended without coming to it");
    TOLD("user.cu:80");
}
END_TEST

START_TEST(the_grids_barrier_needs_its_launch)
{
    start("memory");
    ck_assert_uint_eq(run("grid", 1, 0, 0, 0), 719);
    ONE("fault");
    TOLD("the grid's barrier needs a cooperative launch");
}
END_TEST

START_TEST(a_grid_that_cannot_meet_is_refused)
{
    hdcu_pointer none = 0;
    hdcu_function function;
    void *params[] = {&none, &none, &none};
    start("memory");
    OK(cuModuleGetFunction(&function, module, "grid"));
    IS(cuLaunchCooperativeKernel(function, 132 * 32 + 1, 1, 1, 64, 1, 1, 0, NULL, params), 720);
    ONE("deadlock");
    TOLD("kernel 'grid' would never meet");
    TOLD("4225 blocks");
    TOLD("the launch was cuLaunchCooperativeKernel\n        at test_soft_checks+0x");
}
END_TEST

/* ---- the switch ---- */

START_TEST(words_are_checked)
{
    find_symbols();
    ck_assert_int_eq(check("memory,nonsense"), 1);
    ck_assert_int_eq(check("memory,,init"), 1);
    ck_assert_int_eq(check("memory,race,init,leak"), 0);
    ck_assert_int_eq(check(""), 0);
    soft_start();
    ck_assert_int_eq(check("memory"), 2);
}
END_TEST

START_TEST(without_checks_nothing_is_told)
{
    start("");
    hdcu_pointer memory = new_memory(64), result = new_memory(64);
    ck_assert_uint_eq(run("use", 1, memory, result, 8), 0);
    ck_assert_uint_eq(run("put", 1, memory, 0, 64), 700);
    NOTHING();
}
END_TEST

#define COUNT(list) ((int)(sizeof(list) / sizeof(list)[0]))

int main(void)
{
    Suite *suite = suite_create("soft_checks");
    TCase *all = tcase_create("checks");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, an_overrun_is_placed);
    tcase_add_test(all, an_overrun_does_not_land_in_the_next_allocation);
    tcase_add_test(all, an_underrun_is_placed);
    tcase_add_test(all, the_last_element_is_inside);
    tcase_add_test(all, a_misaligned_access_is_told);
    tcase_add_test(all, freed_memory_is_known);
    tcase_add_test(all, memory_freed_in_a_stream_is_known);
    tcase_add_test(all, another_stream_may_free_what_it_waited_for);
    tcase_add_test(all, a_copy_that_overruns_is_told);
    tcase_add_test(all, an_unwritten_value_is_told_where_it_is_loaded_and_used);
    tcase_add_loop_test(all, reads_of_what_is_set_in_part, 0, COUNT(reads));
    tcase_add_test(all, what_was_copied_unwritten_stays_so);
    tcase_add_test(all, a_copy_in_a_memset_and_a_kernel_write);
    tcase_add_test(all, memory_that_is_allocated_again_is_unwritten);
    tcase_add_test(all, a_copy_to_the_host_is_told);
    tcase_add_test(all, gaps_of_structures_go_to_the_host);
    tcase_add_test(all, shared_memory_is_unwritten_at_first);
    tcase_add_test(all, the_same_again_is_counted);
    tcase_add_test(all, what_is_left_in_a_context_is_told);
    tcase_add_test(all, what_was_given_back_is_no_leak);
    tcase_add_test(all, the_last_release_of_the_primary_context_tells);
    tcase_add_test(all, the_end_of_the_process_tells);
    tcase_add_test(all, a_barrier_that_exited_threads_miss);
    tcase_add_test(all, barriers_that_wait_for_each_other);
    tcase_add_test(all, barriers_that_are_met);
    tcase_add_test(all, the_grids_barrier_misses_a_block);
    tcase_add_test(all, the_grids_barrier_needs_its_launch);
    tcase_add_test(all, a_grid_that_cannot_meet_is_refused);
    tcase_add_test(all, words_are_checked);
    tcase_add_test(all, without_checks_nothing_is_told);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
