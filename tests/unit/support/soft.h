/* SPDX-License-Identifier: MIT */
/*
 * For the tests of the soft driver's entry points: a table of them, taken from the driver in this program, and a few
 * words that keep the cases short. Every test runs in a process of its own, so each starts a fresh driver.
 */
#ifndef HDRT_TEST_SOFT_H
#define HDRT_TEST_SOFT_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver/cuda_table.h"

void *hdsoft_get_proc_address(const char *symbol);

static hdrt__driver_table cu;
static hdcu_context context;

static int (*soft_inject)(const char *rules);
static unsigned long long (*soft_call_count)(const char *entry);
static const char *(*soft_last_fault)(void);
static void (*soft_set_printf)(void (*function)(void *, const char *, size_t), void *argument);

#define IS(call, code) ck_assert_uint_eq(cu.call, (hdcu_result)(code))
#define OK(call) IS(call, 0)

static inline void soft_table(void)
{
#define FILL(name, symbol, version, need, parameters)                                                                  \
    *(void **)&cu.name = hdsoft_get_proc_address(symbol);                                                              \
    ck_assert_msg(cu.name != NULL, "%s is not there", symbol);
    HDCU_SYMBOL_LIST(FILL)
#undef FILL
    *(void **)&soft_inject = hdsoft_get_proc_address("hdsoft_inject");
    *(void **)&soft_call_count = hdsoft_get_proc_address("hdsoft_call_count");
    *(void **)&soft_last_fault = hdsoft_get_proc_address("hdsoft_last_fault");
    *(void **)&soft_set_printf = hdsoft_get_proc_address("hdsoft_set_printf");
}

/* A driver with the primary context current. */
static inline void soft_start(void)
{
    soft_table();
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
}

static inline void soft_start_lazy(void)
{
    setenv("HDSOFT_POLICY", "lazy", 1);
    soft_start();
}

static inline void soft_start_two(void)
{
    setenv("HDSOFT_DEVICES", "2", 1);
    soft_start();
}

/* A stream is held at a gate until the gate is opened. */
typedef struct gate {
    uint32_t *flag;
} gate;

static inline gate gate_on(hdcu_stream stream)
{
    gate new_gate;
    OK(cuMemHostAlloc((void **)&new_gate.flag, 4, 0));
    *new_gate.flag = 0;
    OK(cuStreamWaitValue32(stream, (hdcu_pointer)(uintptr_t)new_gate.flag, 1, HDCU_STREAM_WAIT_VALUE_GEQ));
    return new_gate;
}

static inline void gate_open(gate opened)
{
    __atomic_store_n(opened.flag, 1, __ATOMIC_RELEASE);
}

static inline double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static inline hdcu_stream new_stream(unsigned flags)
{
    hdcu_stream stream;
    OK(cuStreamCreate(&stream, flags));
    return stream;
}

static inline hdcu_pointer new_memory(size_t bytes)
{
    hdcu_pointer pointer;
    OK(cuMemAlloc(&pointer, bytes));
    return pointer;
}

static inline void *new_pinned(size_t bytes)
{
    void *pointer;
    OK(cuMemHostAlloc(&pointer, bytes, 0));
    return pointer;
}

static inline hdcu_event new_event(unsigned flags)
{
    hdcu_event event;
    OK(cuEventCreate(&event, flags));
    return event;
}

#endif
