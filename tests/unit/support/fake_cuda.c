/* SPDX-License-Identifier: MIT */
/*
 * A fake driver for tests, built as three modules:
 *   fake_cuda.so    exports every symbol of cuda_symbols.h, as libcuda does
 *   fake_lookup.so  exports what is needed to begin with (FAKE_LOOKUP_ONLY); cuGetProcAddress knows the rest
 *   fake_soft.so    exports hdsoft_get_proc_address alone (FAKE_SOFT)
 * The environment says how it behaves, read at each call:
 *   FAKE_VERSION=11040   what cuDriverGetVersion says      FAKE_DEVICES=1        what cuDeviceGetCount says
 *   FAKE_FAILS=cuInit=3  this symbol returns that code     FAKE_LACKS=cuFuncLoad this symbol cannot be looked up
 *   FAKE_BLIND=1         cuGetProcAddress finds nothing    FAKE_ALL=999          every entry returns this code
 * Contexts are a stack of pointers per thread, and the capture mode is kept per thread, so that tests can see what a
 * scope leaves behind. Every other entry succeeds and does nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/cuda_symbols.h"

#ifdef __clang__
#pragma clang diagnostic ignored "-Wc2x-extensions" /* definitions without parameter names */
#endif

#if defined FAKE_SOFT || defined FAKE_LOOKUP_ONLY
#define SHOWN
#else
#define SHOWN __attribute__((visibility("default")))
#endif
#ifdef FAKE_SOFT
#define SHOWN_TO_BEGIN
#else
#define SHOWN_TO_BEGIN __attribute__((visibility("default")))
#endif

/* Which entries are written out below: IS_WRITTEN(cuInit) is 1, IS_WRITTEN(cuMemAlloc) is 0. */
#define WRITTEN_cuInit ~, 1
#define WRITTEN_cuDriverGetVersion ~, 1
#define WRITTEN_cuGetProcAddress ~, 1
#define WRITTEN_cuDeviceGetCount ~, 1
#define WRITTEN_cuCtxPushCurrent ~, 1
#define WRITTEN_cuCtxPopCurrent ~, 1
#define WRITTEN_cuCtxGetCurrent ~, 1
#define WRITTEN_cuThreadExchangeStreamCaptureMode ~, 1
#define SECOND(first, second, ...) second
#define SECOND_OF(...) SECOND(__VA_ARGS__)
#define IS_WRITTEN(name) SECOND_OF(WRITTEN_##name, 0, ~)
#define JOIN(a, b) a##b
#define JOIN_OF(a, b) JOIN(a, b)

static hdcu_result answer(const char *symbol)
{
    const char *all = getenv("FAKE_ALL"), *fails = getenv("FAKE_FAILS");
    if (all)
        return (hdcu_result)strtoul(all, NULL, 10);
    size_t length = strlen(symbol);
    if (fails && strncmp(fails, symbol, length) == 0 && fails[length] == '=')
        return (hdcu_result)strtoul(fails + length + 1, NULL, 10);
    return HDCU_SUCCESS;
}

static int number(const char *variable, int otherwise)
{
    const char *value = getenv(variable);
    return value ? atoi(value) : otherwise;
}

#define DECLARE(name, symbol, version, need, parameters) SHOWN hdcu_result fake_##name parameters __asm__(symbol);
#define DECLARE_TO_BEGIN(name, symbol, parameters) SHOWN_TO_BEGIN hdcu_result fake_##name parameters __asm__(symbol);
DECLARE_TO_BEGIN(cuInit, "cuInit", (unsigned))
DECLARE_TO_BEGIN(cuDriverGetVersion, "cuDriverGetVersion", (int *))
DECLARE_TO_BEGIN(cuGetProcAddress, "cuGetProcAddress", (const char *, void **, int, uint64_t))
HDCU_SYMBOL_LIST(DECLARE)

#define DEFINE_1(name, symbol, parameters)
#define DEFINE_0(name, symbol, parameters)                                                                             \
    hdcu_result fake_##name parameters                                                                                 \
    {                                                                                                                  \
        return answer(symbol);                                                                                         \
    }
#define DEFINE(name, symbol, version, need, parameters) JOIN_OF(DEFINE_, IS_WRITTEN(name))(name, symbol, parameters)
HDCU_SYMBOL_LIST(DEFINE)

static const struct {
    const char *name, *symbol;
    int version;
    void *function;
} entries[] = {
#define ENTRY(name, symbol, version, need, parameters) {#name, symbol, version, (void *)(uintptr_t)fake_##name},
    HDCU_SYMBOL_LIST(ENTRY)
};

/* By exact symbol (version 0), or by name and version as cuGetProcAddress does. */
static void *look_up(const char *name, int version)
{
    const char *lacks = getenv("FAKE_LACKS");
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        if (strcmp(version ? entries[i].name : entries[i].symbol, name) != 0)
            continue;
        if (lacks && strcmp(lacks, entries[i].symbol) == 0)
            return NULL;
        return !version || version == entries[i].version ? entries[i].function : NULL;
    }
    return NULL;
}

hdcu_result fake_cuInit(unsigned flags)
{
    return flags ? HDCU_ERROR_INVALID_VALUE : answer("cuInit");
}

hdcu_result fake_cuDriverGetVersion(int *out_version)
{
    *out_version = number("FAKE_VERSION", 13000);
    return answer("cuDriverGetVersion");
}

hdcu_result fake_cuGetProcAddress(const char *name, void **out_function, int version, uint64_t flags)
{
    *out_function = NULL;
    if (flags != HDCU_GET_PROC_ADDRESS_LEGACY_STREAM)
        return HDCU_ERROR_INVALID_VALUE;
    if (!getenv("FAKE_BLIND"))
        *out_function = look_up(name, version);
    return *out_function ? HDCU_SUCCESS : HDCU_ERROR_NOT_FOUND;
}

hdcu_result fake_cuDeviceGetCount(int *out_count)
{
    *out_count = number("FAKE_DEVICES", 1);
    return answer("cuDeviceGetCount");
}

static _Thread_local hdcu_context stack[8];
static _Thread_local int depth;
static _Thread_local unsigned capture_mode = HDCU_STREAM_CAPTURE_MODE_GLOBAL;

hdcu_result fake_cuCtxPushCurrent(hdcu_context context)
{
    hdcu_result result = answer("cuCtxPushCurrent_v2");
    if (!result)
        stack[depth++] = context;
    return result;
}

hdcu_result fake_cuCtxPopCurrent(hdcu_context *out_context)
{
    hdcu_result result = answer("cuCtxPopCurrent_v2");
    if (!result && !depth)
        return HDCU_ERROR_INVALID_CONTEXT;
    if (!result)
        *out_context = stack[--depth];
    return result;
}

hdcu_result fake_cuCtxGetCurrent(hdcu_context *out_context)
{
    *out_context = depth ? stack[depth - 1] : NULL;
    return answer("cuCtxGetCurrent");
}

hdcu_result fake_cuThreadExchangeStreamCaptureMode(unsigned *mode)
{
    hdcu_result result = answer("cuThreadExchangeStreamCaptureMode");
    unsigned before = capture_mode;
    if (!result) {
        capture_mode = *mode;
        *mode = before;
    }
    return result;
}

#ifdef FAKE_SOFT
__attribute__((visibility("default"))) void *hdsoft_get_proc_address(const char *symbol);
void *hdsoft_get_proc_address(const char *symbol)
{
    return look_up(symbol, 0);
}
#endif
