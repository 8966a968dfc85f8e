/* SPDX-License-Identifier: MIT */
/* The primary context. A process each: its flags and its count outlive a check. */
#include "areas.h"
#include "support.h"

static void say_state(void)
{
    unsigned flags = 77;
    int active = 77;
    STATUS(cuDevicePrimaryCtxGetState(0, &flags, &active));
    say("%x:%d", flags, active);
}

static void life(const check *self)
{
    (void)self;
    hdcu_context primary = NULL, again = NULL, now = (hdcu_context)16;
    say_state();
    STATUS(cuDevicePrimaryCtxRetain(&primary, 0));
    STATUS(cuDevicePrimaryCtxRetain(&again, 0));
    say("%d", primary == again && primary);
    say_state();
    STATUS(cuCtxGetCurrent(&now));
    say("%s", now ? "current" : "none");
    STATUS(cuDevicePrimaryCtxRelease(0));
    say_state();
    STATUS(cuDevicePrimaryCtxRelease(0));
    say_state();
}

static void release_unretained(const check *self)
{
    (void)self;
    STATUS(cuDevicePrimaryCtxRelease(0));
    STATUS(cuDevicePrimaryCtxRelease(99));
}

static void flags_before(const check *self)
{
    hdcu_context primary = NULL;
    unsigned flags = 0;
    STATUS(cuDevicePrimaryCtxSetFlags(0, (unsigned)self->number));
    say_state();
    NEED(cuDevicePrimaryCtxRetain(&primary, 0));
    NEED(cuCtxSetCurrent(primary));
    STATUS(cuCtxGetFlags(&flags));
    say("%x", flags);
    say_state();
}

static void flags_while_active(const check *self)
{
    (void)self;
    hdcu_context primary = NULL;
    unsigned flags = 0;
    NEED(cuDevicePrimaryCtxRetain(&primary, 0));
    NEED(cuCtxSetCurrent(primary));
    STATUS(cuDevicePrimaryCtxSetFlags(0, HDCU_CTX_SCHED_BLOCKING_SYNC));
    say_state();
    STATUS(cuCtxGetFlags(&flags));
    say("%x", flags);
}

static void misuse(const check *self)
{
    (void)self;
    hdcu_context primary = NULL;
    unsigned flags = 0;
    int active = 0;
    STATUS(cuDevicePrimaryCtxRetain(NULL, 0));
    STATUS(cuDevicePrimaryCtxRetain(&primary, 99));
    STATUS(cuDevicePrimaryCtxSetFlags(0, 0x10000));
    STATUS(cuDevicePrimaryCtxSetFlags(99, 0));
    STATUS(cuDevicePrimaryCtxGetState(99, &flags, &active));
    STATUS(cuDevicePrimaryCtxGetState(0, NULL, &active));
    STATUS(cuDevicePrimaryCtxGetState(0, &flags, NULL));
}

static void destroy(const check *self)
{
    (void)self;
    hdcu_context primary = NULL;
    NEED(cuDevicePrimaryCtxRetain(&primary, 0));
    STATUS(cuCtxDestroy(primary));
    say_state();
    STATUS(cuCtxSetCurrent(primary));
    STATUS(cuCtxSynchronize());
}

static void reset_inactive(const check *self)
{
    (void)self;
    STATUS(cuDevicePrimaryCtxReset(0));
    say_state();
    STATUS(cuDevicePrimaryCtxReset(99));
}

static void reset_active(const check *self)
{
    (void)self;
    hdcu_context primary = NULL, again = NULL;
    hdcu_pointer pointer = 0;
    NEED(cuDevicePrimaryCtxRetain(&primary, 0));
    NEED(cuCtxSetCurrent(primary));
    NEED(cuMemAlloc(&pointer, 64));
    STATUS(cuDevicePrimaryCtxReset(0));
    say_state();
    STATUS(cuDevicePrimaryCtxRetain(&again, 0));
    STATUS(cuCtxSetCurrent(again));
    STATUS(cuMemAlloc(&pointer, 64));
}

static void released_while_current(const check *self)
{
    (void)self;
    hdcu_context primary = NULL, now = NULL;
    hdcu_pointer pointer = 0;
    NEED(cuDevicePrimaryCtxRetain(&primary, 0));
    NEED(cuCtxSetCurrent(primary));
    STATUS(cuDevicePrimaryCtxRelease(0));
    say_state();
    STATUS(cuCtxGetCurrent(&now));
    say("%d", now == primary);
    STATUS(cuMemAlloc(&pointer, 64));
    STATUS(cuCtxSynchronize());
}

static void beside_own(const check *self)
{
    (void)self;
    hdcu_context primary = NULL, own = NULL;
    NEED(cuDevicePrimaryCtxRetain(&primary, 0));
    STATUS(cuCtxCreate(&own, 0, 0));
    say("%d", own != primary);
    STATUS(cuCtxPushCurrent(primary));
    STATUS(cuCtxSynchronize());
    STATUS(cuCtxPopCurrent(NULL));
    STATUS(cuCtxDestroy(own));
    say_state();
}

static const check checks[] = {
    {.name = "life", .run = life, .alone = true},
    {.name = "release unretained", .run = release_unretained, .alone = true},
    {.name = "flags before: blocking", .run = flags_before, .alone = true, .number = HDCU_CTX_SCHED_BLOCKING_SYNC},
    {.name = "flags before: map host", .run = flags_before, .alone = true, .number = HDCU_CTX_MAP_HOST},
    {.name = "flags while active", .run = flags_while_active, .alone = true},
    {.name = "misuse", .run = misuse, .alone = true},
    {.name = "destroy", .run = destroy, .alone = true},
    {.name = "reset inactive", .run = reset_inactive, .alone = true},
    {.name = "reset active", .run = reset_active, .alone = true},
    {.name = "released while current", .run = released_while_current, .alone = true},
    {.name = "beside a context of one's own", .run = beside_own, .alone = true},
};

const area area_primary = {"primary", NEEDS_INIT, checks, COUNT_OF(checks)};
