/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "soft/api/entry.h"
#include "soft/api/outside.h"
#include "soft/check/report.h"
#include "soft/check/site.h"
#include "soft/model/capture.h"
#include "soft/model/executor.h"
#include "soft/model/inject.h"
#include "soft/model/simulate.h"
#include "soft/model/trace.h"

/* What the wrapper sees to; no trait: an initialised driver and a current, healthy context are needed. */
enum {
    FREE = 1,         /* works before cuInit and in a forked child */
    NO_CONTEXT = 2,   /* needs no current context */
    DEAD_CONTEXT = 4, /* a destroyed one will do */
    NOT_STICKY = 8,   /* answers after a fault too */
    UNSAFE = 16,      /* spoils another thread's global capture (measured) */
    IN_CALLBACK = 32, /* allowed inside a host function */
    UNLOCKED = 64,    /* the body takes the lock itself, if at all */
};

/* As an H200 answered, call by call (driver 580.159). */
static unsigned traits_of(hdsoft__entry entry)
{
    switch (entry) {
    case HDSOFT__ENTRY_cuInit:
    case HDSOFT__ENTRY_cuDriverGetVersion:
    case HDSOFT__ENTRY_cuGetProcAddress:
    case HDSOFT__ENTRY_cuGetErrorName:
    case HDSOFT__ENTRY_cuGetErrorString: return FREE | NO_CONTEXT | NOT_STICKY | IN_CALLBACK | UNLOCKED;
    case HDSOFT__ENTRY_cuThreadExchangeStreamCaptureMode: return NO_CONTEXT | NOT_STICKY | IN_CALLBACK;
    case HDSOFT__ENTRY_cuCtxGetDevice:
    case HDSOFT__ENTRY_cuCtxGetFlags: return DEAD_CONTEXT | NOT_STICKY;
    case HDSOFT__ENTRY_cuDeviceGet:
    case HDSOFT__ENTRY_cuDeviceGetCount:
    case HDSOFT__ENTRY_cuDeviceGetName:
    case HDSOFT__ENTRY_cuDeviceGetUuid:
    case HDSOFT__ENTRY_cuDeviceTotalMem:
    case HDSOFT__ENTRY_cuDeviceGetAttribute:
    case HDSOFT__ENTRY_cuDeviceGetPCIBusId:
    case HDSOFT__ENTRY_cuDeviceGetByPCIBusId:
    case HDSOFT__ENTRY_cuDeviceCanAccessPeer:
    case HDSOFT__ENTRY_cuDeviceGetP2PAttribute:
    case HDSOFT__ENTRY_cuDevicePrimaryCtxRetain: /* sticky by its own device */
    case HDSOFT__ENTRY_cuDevicePrimaryCtxRelease:
    case HDSOFT__ENTRY_cuDevicePrimaryCtxReset:
    case HDSOFT__ENTRY_cuDevicePrimaryCtxSetFlags:
    case HDSOFT__ENTRY_cuDevicePrimaryCtxGetState:
    case HDSOFT__ENTRY_cuDeviceGetDefaultMemPool:
    case HDSOFT__ENTRY_cuDeviceGetMemPool:
    case HDSOFT__ENTRY_cuCtxCreate:
    case HDSOFT__ENTRY_cuCtxDestroy:
    case HDSOFT__ENTRY_cuCtxPushCurrent:
    case HDSOFT__ENTRY_cuCtxPopCurrent:
    case HDSOFT__ENTRY_cuCtxSetCurrent:
    case HDSOFT__ENTRY_cuCtxGetCurrent:
    case HDSOFT__ENTRY_cuPointerGetAttribute:
    case HDSOFT__ENTRY_cuPointerGetAttributes:
    case HDSOFT__ENTRY_cuModuleGetLoadingMode:
    case HDSOFT__ENTRY_cuCtxGetId:
    case HDSOFT__ENTRY_cuCtxGetApiVersion:
    case HDSOFT__ENTRY_cuProfilerStart:
    case HDSOFT__ENTRY_cuProfilerStop:
    case HDSOFT__ENTRY_cuLibraryLoadData:
    case HDSOFT__ENTRY_cuKernelGetAttribute:
    case HDSOFT__ENTRY_cuKernelSetAttribute:
    case HDSOFT__ENTRY_cuKernelGetName:
    case HDSOFT__ENTRY_cuKernelGetParamInfo:
    case HDSOFT__ENTRY_cuLibraryGetKernel:
    case HDSOFT__ENTRY_cuLibraryGetKernelCount:
    case HDSOFT__ENTRY_cuLibraryEnumerateKernels: return NO_CONTEXT | NOT_STICKY;
    case HDSOFT__ENTRY_cuMemFree: /* of 0 it is fine anywhere */
    case HDSOFT__ENTRY_cuMemFreeHost: return NO_CONTEXT | UNSAFE;
    case HDSOFT__ENTRY_cuGraphCreate: return NO_CONTEXT | NOT_STICKY;
    case HDSOFT__ENTRY_cuGraphDestroy: return NOT_STICKY;
    case HDSOFT__ENTRY_cuGraphExecDestroy: return NOT_STICKY | UNSAFE;
    case HDSOFT__ENTRY_cuLibraryUnload: return NO_CONTEXT | UNSAFE;
    case HDSOFT__ENTRY_cuStreamQuery:
    case HDSOFT__ENTRY_cuStreamSynchronize:
    case HDSOFT__ENTRY_cuMemAlloc:
    case HDSOFT__ENTRY_cuMemAllocPitch:
    case HDSOFT__ENTRY_cuMemAllocHost:
    case HDSOFT__ENTRY_cuMemHostAlloc:
    case HDSOFT__ENTRY_cuMemHostRegister:
    case HDSOFT__ENTRY_cuMemHostUnregister:
    case HDSOFT__ENTRY_cuModuleUnload:
    case HDSOFT__ENTRY_cuGraphInstantiateWithFlags:
    case HDSOFT__ENTRY_cuMemPoolCreate:
    case HDSOFT__ENTRY_cuMemPoolDestroy:
    case HDSOFT__ENTRY_cuMemPoolTrimTo:
    case HDSOFT__ENTRY_cuMemPoolSetAttribute:
    case HDSOFT__ENTRY_cuCtxSetLimit: return UNSAFE;
    default: return 0;
    }
}

/* Under the lock: context, fault, capture. */
static hdcu_result check(unsigned traits)
{
    hdsoft__context *context;
    int status = hdsoft__current(&context);
    if (status == HDCU_ERROR_CONTEXT_IS_DESTROYED && (traits & DEAD_CONTEXT))
        status = 0;
    if (status && (!(traits & NO_CONTEXT) || status == HDCU_ERROR_OUT_OF_MEMORY))
        return (hdcu_result)status;
    if (context && !(traits & NOT_STICKY) && atomic_load(&context->device->fault))
        return atomic_load(&context->device->fault);
    return traits & UNSAFE ? (hdcu_result)hdsoft__capture_unsafe_call(hdsoft__thread_state()) : 0;
}

/* A failure that was asked for; a sticky one stays. */
static hdcu_result injected(hdsoft__entry entry, unsigned code)
{
    hdsoft__context *context = NULL;
    if (hdsoft__is_sticky(code) && atomic_load(&hdsoft__the.ready) && !atomic_load(&hdsoft__the.forked)) {
        char text[128] = "a fault was injected into ";
        strncat(text, hdsoft__entry_symbol(entry), sizeof text - strlen(text) - 1);
        hdsoft__lock();
        hdsoft__current(&context);
        if (context)
            hdsoft__fault(context->device, code, text);
        hdsoft__unlock();
    }
    return code;
}

/* Questions make nothing and enqueue nothing: reports never name them. Programs ask some of them all the time. */
static bool asks_only(hdsoft__entry entry)
{
    const char *symbol = hdsoft__entry_symbol(entry);
    return strstr(symbol, "Get") || strstr(symbol, "Query") || strstr(symbol, "Current");
}

static hdcu_result enter(hdsoft__entry entry, void *return_address)
{
    unsigned traits = traits_of(entry), code = hdsoft__inject_call(entry);
    if (hdsoft__checking(~0u))
        hdsoft__site_enter(asks_only(entry) ? NULL : hdsoft__entry_symbol(entry), return_address);
    if (!(traits & FREE)) {
        if (atomic_load(&hdsoft__the.forked) || !atomic_load(&hdsoft__the.ready))
            return HDCU_ERROR_NOT_INITIALIZED;
        const hdsoft__thread *thread = hdsoft__thread_state();
        if (!thread)
            return HDCU_ERROR_OUT_OF_MEMORY;
        if (thread->in_callback && !(traits & IN_CALLBACK))
            return HDCU_ERROR_NOT_PERMITTED;
    }
    if (code)
        return injected(entry, code);
    if (traits & UNLOCKED)
        return 0;
    hdsoft__lock();
    hdcu_result status = check(traits);
    if (status)
        hdsoft__unlock();
    if (hdsoft__is_sticky(status))
        hdsoft__print_flush(); /* what an assertion said belongs to the first call that tells of it */
    return status;
}

static void leave(hdsoft__entry entry)
{
    if (!(traits_of(entry) & UNLOCKED)) {
        if (hdsoft__the.policy == HDSOFT__RANDOM)
            hdsoft__random_after_call();
        hdsoft__unlock();
    }
    if (hdsoft__checking(~0u))
        hdsoft__report_flush();
}

static hdcu_result unsupported(const char *name)
{
    static bool said_clusters, said_attributes;
    bool clusters = strstr(name, "Clusters") != NULL;
    return hdsoft__outside_answer(name, clusters ? "thread block clusters" : "attributes of streams",
                                  clusters ? &said_clusters : &said_attributes);
}

/* ---- the wrappers, from the list ---- */

#define COUNT_(a, b, c, d, e, f, g, h, i, j, k, n, ...) n
#define COUNT(...) COUNT_(__VA_ARGS__, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

#define NAMED_1(a) a a1
#define NAMED_2(a, b) NAMED_1(a), b a2
#define NAMED_3(a, b, c) NAMED_2(a, b), c a3
#define NAMED_4(a, b, c, d) NAMED_3(a, b, c), d a4
#define NAMED_5(a, b, c, d, e) NAMED_4(a, b, c, d), e a5
#define NAMED_6(a, b, c, d, e, f) NAMED_5(a, b, c, d, e), f a6
#define NAMED_7(a, b, c, d, e, f, g) NAMED_6(a, b, c, d, e, f), g a7
#define NAMED_8(a, b, c, d, e, f, g, h) NAMED_7(a, b, c, d, e, f, g), h a8
#define NAMED_9(a, b, c, d, e, f, g, h, i) NAMED_8(a, b, c, d, e, f, g, h), i a9
#define NAMED_10(a, b, c, d, e, f, g, h, i, j) NAMED_9(a, b, c, d, e, f, g, h, i), j a10
#define NAMED_11(a, b, c, d, e, f, g, h, i, j, k) NAMED_10(a, b, c, d, e, f, g, h, i, j), k a11
#define NAMED(...) PASTE(NAMED_, COUNT(__VA_ARGS__))(__VA_ARGS__)

#define PASSED_1 a1
#define PASSED_2 PASSED_1, a2
#define PASSED_3 PASSED_2, a3
#define PASSED_4 PASSED_3, a4
#define PASSED_5 PASSED_4, a5
#define PASSED_6 PASSED_5, a6
#define PASSED_7 PASSED_6, a7
#define PASSED_8 PASSED_7, a8
#define PASSED_9 PASSED_8, a9
#define PASSED_10 PASSED_9, a10
#define PASSED_11 PASSED_10, a11
#define PASSED(...) PASTE(PASSED_, COUNT(__VA_ARGS__))

/* IS(WHAT_, name) is 1 if WHAT_name is defined as MARK, else 0. */
#define MARK ~, 1
#define SECOND(a, b, ...) b
#define IS_(...) SECOND(__VA_ARGS__, 0, 0)
#define IS(what, name) IS_(PASTE(what, name))

#define VOID_cuCtxSynchronize MARK
#define VOID_cuProfilerStart MARK
#define VOID_cuProfilerStop MARK

/* Entries of the list that answer 801: outside of what the soft driver does. */
#define UNSUPPORTED_cuOccupancyMaxActiveClusters MARK
#define UNSUPPORTED_cuStreamSetAttribute MARK
#define UNSUPPORTED_cuStreamGetAttribute MARK

#define NAMED_OR_VOID_0(...) (NAMED(__VA_ARGS__))
#define NAMED_OR_VOID_1(...) (void)
#define PASSED_OR_VOID_0(...) (PASSED(__VA_ARGS__))
#define PASSED_OR_VOID_1(...) ()
#define BODY_0(name, ...) hdsoft__##name PASTE(PASSED_OR_VOID_, IS(VOID_, name))(__VA_ARGS__)
#define BODY_1(name, ...) unsupported(#name)
#define UNPACK(...) __VA_ARGS__

#define WRAP_(name, ...)                                                                                               \
    static hdcu_result enter_##name PASTE(NAMED_OR_VOID_, IS(VOID_, name))(__VA_ARGS__)                                \
    {                                                                                                                  \
        hdcu_result status = enter(HDSOFT__ENTRY_##name, __builtin_return_address(0));                                 \
        if (!status) {                                                                                                 \
            status = PASTE(BODY_, IS(UNSUPPORTED_, name))(name, __VA_ARGS__);                                          \
            leave(HDSOFT__ENTRY_##name);                                                                               \
        }                                                                                                              \
        return status;                                                                                                 \
    }
#define WRAP(name, symbol, version, need, parameters) WRAP_(name, UNPACK parameters)
HDCU_SYMBOL_LIST(WRAP)

/* The same with the thread's own stream as the default one. */
#define WRAP_OWN_(name, ...)                                                                                           \
    static hdcu_result own_##name PASTE(NAMED_OR_VOID_, IS(VOID_, name))(__VA_ARGS__)                                  \
    {                                                                                                                  \
        hdsoft__own_default_stream = true;                                                                             \
        hdcu_result status = enter_##name PASTE(PASSED_OR_VOID_, IS(VOID_, name))(__VA_ARGS__);                        \
        hdsoft__own_default_stream = false;                                                                            \
        return status;                                                                                                 \
    }
#define WRAP_OWN(name, symbol, version, need, parameters) WRAP_OWN_(name, UNPACK parameters)
HDCU_SYMBOL_LIST(WRAP_OWN)

static const struct {
    const char *name, *symbol;
    int version;
    void *function, *own;
} table[] = {
#define ROW(name, symbol, version, need, parameters)                                                                   \
    {#name, symbol, version, (void *)enter_##name, (void *)own_##name},
    HDCU_SYMBOL_LIST(ROW)
};

/* From these versions on the plain name means another interface than the pinned one. */
static int superseded_at(const char *name)
{
    static const struct {
        const char *name;
        int version;
    } newer[] = {
        {"cuGetProcAddress", 12000}, {"cuCtxCreate", 11040}, {"cuCtxGetDevice", 13000}, {"cuCtxSynchronize", 13000},
        {"cuStreamGetCtx", 12050}, {"cuStreamGetCaptureInfo", 12030}, {"cuStreamUpdateCaptureDependencies", 12030},
        {"cuGraphAddDependencies", 12030}, {"cuGraphRemoveDependencies", 12030}, {"cuGraphGetEdges", 12030},
        {"cuGraphNodeGetDependencies", 12030}, {"cuGraphNodeGetDependentNodes", 12030},
        {"cuEventElapsedTime", 12080},
    };
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++) {
        if (!strcmp(newer[i].name, name))
            return newer[i].version;
    }
    return 1 << 30;
}

#define PROC_FLAGS (HDCU_GET_PROC_ADDRESS_LEGACY_STREAM | HDCU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)

/* How cuGetProcAddress of CUDA 12 tells it. */
enum { PROC_FOUND, PROC_UNKNOWN, PROC_TOO_OLD };

static unsigned find_procedure(const char *name, int version, uint64_t flags, void **out)
{
    if (!strcmp(name, "cuGraphInstantiate") && version >= 12000)
        name = "cuGraphInstantiateWithFlags"; /* which it means from there on */
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].name, name) || table[i].version > hdsoft__api_version() ||
            version >= superseded_at(name) || hdsoft__inject_hides(table[i].name, table[i].symbol))
            continue;
        if (table[i].version > version)
            return PROC_TOO_OLD;
        *out = flags & HDCU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ? table[i].own : table[i].function;
        return PROC_FOUND;
    }
    const hdsoft__outside *outside = hdsoft__outside_by_name(name);
    if (!outside || outside->version > hdsoft__api_version() || hdsoft__inject_hides(outside->name, outside->symbol))
        return PROC_UNKNOWN;
    if (outside->version > version)
        return PROC_TOO_OLD;
    *out = outside->function;
    return PROC_FOUND;
}

hdcu_result hdsoft__cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
    if (!name || !out || flags > PROC_FLAGS)
        return HDCU_ERROR_INVALID_VALUE;
    return find_procedure(name, version, flags, out) == PROC_FOUND ? 0 : HDCU_ERROR_NOT_FOUND;
}

static hdcu_result get_procedure(const char *name, void **out, int version, uint64_t flags, unsigned *status)
{
    if (!name || !out || flags > PROC_FLAGS)
        return HDCU_ERROR_INVALID_VALUE;
    *out = NULL;
    unsigned found = find_procedure(name, version, flags, out);
    if (status)
        *status = found;
    return found == PROC_FOUND || status ? 0 : HDCU_ERROR_NOT_FOUND;
}

/* ---- what is exported, and what it leads to ---- */

static const char *last_fault(void)
{
    return atomic_load(&hdsoft__the.fault_told) ? hdsoft__the.fault_text : "";
}

static void observe(bool observing)
{
    hdsoft__thread *thread = atomic_load(&hdsoft__the.ready) ? hdsoft__thread_state() : NULL;
    if (thread)
        thread->observing = observing;
}

static unsigned long long trace_hash(void)
{
    hdsoft__lock();
    uint64_t hash = hdsoft__trace_hash();
    hdsoft__unlock();
    return hash;
}

static unsigned long long call_count(const char *entry)
{
    return hdsoft__call_count(entry);
}

/* 0; 1: an unknown word; 2: a context was made already, whose memory was not watched. */
static int choose_checks(const char *words)
{
    hdsoft__lock();
    int status = hdsoft__the.contexts ? 2 : hdsoft__checks_set(words);
    hdsoft__unlock();
    return status;
}

__attribute__((visibility("default"))) void *hdsoft_get_proc_address(const char *symbol);

void *hdsoft_get_proc_address(const char *symbol)
{
    static const struct {
        const char *name;
        void *function;
    } extras[] = {
        {"hdsoft_last_fault", (void *)last_fault},
        {"hdsoft_inject", (void *)hdsoft__inject},
        {"hdsoft_inject_error", (void *)hdsoft__inject_error},
        {"hdsoft_last_unsupported", (void *)hdsoft__outside_said},
        {"hdsoft_call_count", (void *)call_count},
        {"hdsoft_set_policy", (void *)hdsoft__driver_set_policy},
        {"hdsoft_observe", (void *)observe},
        {"hdsoft_trace_hash", (void *)trace_hash},
        {"hdsoft_clock_advance", (void *)hdsoft__clock_advance},
        {"hdsoft_clock_now", (void *)hdsoft__clock_now},
        {"hdsoft_makespan", (void *)hdsoft__makespan},
        {"hdsoft_gpu_waits", (void *)hdsoft__gpu_waits},
        {"hdsoft_set_printf", (void *)hdsoft__print_to},
        {"hdsoft_check", (void *)choose_checks},
        {"hdsoft_report_count", (void *)hdsoft__report_count},
        {"hdsoft_set_report", (void *)hdsoft__report_to},
        {"hdsoft_report_flush", (void *)hdsoft__report_summary},
        {"hdsoft_report_reset", (void *)hdsoft__report_reset},
        {"cuGetProcAddress_v2", (void *)get_procedure},
    };
    if (!symbol)
        return NULL;
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
        if (!strcmp(extras[i].name, symbol))
            return extras[i].function;
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (!strcmp(table[i].symbol, symbol))
            return table[i].version <= hdsoft__api_version() && !hdsoft__inject_hides(table[i].name, symbol)
                       ? table[i].function
                       : NULL;
    }
    const hdsoft__outside *outside = hdsoft__outside_by_symbol(symbol);
    return outside && outside->version <= hdsoft__api_version() && !hdsoft__inject_hides(outside->name, symbol)
               ? outside->function
               : NULL;
}
