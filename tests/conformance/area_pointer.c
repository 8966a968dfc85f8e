/* SPDX-License-Identifier: MIT */
/* What the driver knows about an address. */
#include "areas.h"
#include "support.h"

#include <stdlib.h>

static const unsigned asked[] = {
    HDCU_POINTER_ATTRIBUTE_CONTEXT,      HDCU_POINTER_ATTRIBUTE_MEMORY_TYPE,    HDCU_POINTER_ATTRIBUTE_DEVICE_POINTER,
    HDCU_POINTER_ATTRIBUTE_HOST_POINTER, HDCU_POINTER_ATTRIBUTE_IS_MANAGED,     HDCU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
    HDCU_POINTER_ATTRIBUTE_RANGE_SIZE,   HDCU_POINTER_ATTRIBUTE_RANGE_START_ADDR, HDCU_POINTER_ATTRIBUTE_MAPPED,
    HDCU_POINTER_ATTRIBUTE_BUFFER_ID,    HDCU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
};

/* An address as it relates to the one asked about. */
static void say_value(unsigned attribute, uint64_t value, hdcu_pointer of)
{
    switch (attribute) {
    case HDCU_POINTER_ATTRIBUTE_CONTEXT:
        say("%s", !value ? "none" : value == (uintptr_t)own_context ? "own" : "other");
        break;
    case HDCU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case HDCU_POINTER_ATTRIBUTE_HOST_POINTER:
    case HDCU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        if (!value)
            say("none");
        else
            say("%lld", (long long)(value - of));
        break;
    case HDCU_POINTER_ATTRIBUTE_BUFFER_ID: say("%s", value ? "numbered" : "none"); break;
    default: say("%llu", (unsigned long long)value); break;
    }
}

static uint64_t cut(unsigned attribute, uint64_t value)
{
    switch (attribute) {
    case HDCU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case HDCU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return (uint32_t)value;
    case HDCU_POINTER_ATTRIBUTE_IS_MANAGED:
    case HDCU_POINTER_ATTRIBUTE_MAPPED:
    case HDCU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        return (uint8_t)value;
    default: return value;
    }
}

static void say_one_by_one(hdcu_pointer of)
{
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        uint64_t value = 0;
        hdcu_result status = cu.cuPointerGetAttribute(&value, asked[i], of);
        say("%u", status);
        if (!status)
            say_value(asked[i], cut(asked[i], value), of);
    }
}

static void say_together(hdcu_pointer of)
{
    unsigned list[COUNT_OF(asked)];
    uint64_t values[COUNT_OF(asked)] = {0};
    void *places[COUNT_OF(asked)];
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        list[i] = asked[i];
        places[i] = &values[i];
    }
    STATUS(cuPointerGetAttributes(COUNT_OF(asked), list, places, of));
    for (size_t i = 0; i < COUNT_OF(asked); i++)
        say_value(asked[i], cut(asked[i], values[i]), of);
}

enum { DEVICE, INTERIOR, FREED, PINNED_HOST, PINNED_INTERIOR, REGISTERED, PAGEABLE, NULL_ADDRESS, POOLED };

static void ask(const check *self)
{
    hdcu_pointer of = 0;
    char *room = aligned_alloc(4096, 8192);
    switch (self->number) {
    case DEVICE: of = new_bytes(1000); break;
    case INTERIOR: of = new_bytes(1000) + 100; break;
    case FREED:
        NEED(cuMemAlloc(&of, 1000));
        NEED(cuMemFree(of));
        break;
    case PINNED_HOST: of = (uintptr_t)new_pinned(4096); break;
    case PINNED_INTERIOR: of = (uintptr_t)new_pinned(4096) + 100; break;
    case REGISTERED:
        of = (uintptr_t)room;
        NEED(cuMemHostRegister(room, 8192, 0));
        break;
    case PAGEABLE: of = (uintptr_t)room; break;
    case POOLED: NEED(cuMemAllocAsync(&of, 1000, NULL)); break;
    default: break;
    }
    if (self->kind == 't')
        say_together(of);
    else
        say_one_by_one(of);
    if (self->number == REGISTERED)
        NEED(cuMemHostUnregister(room));
    if (self->number == POOLED)
        NEED(cuMemFreeAsync(of, NULL));
    free(room);
}

static void misuse(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(64);
    uint64_t value = 0;
    unsigned list[1] = {HDCU_POINTER_ATTRIBUTE_MEMORY_TYPE}, bad[1] = {999};
    void *places[1] = {&value};
    STATUS(cuPointerGetAttribute(NULL, HDCU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    STATUS(cuPointerGetAttribute(&value, 999, p));
    STATUS(cuPointerGetAttribute(&value, 0, p));
    STATUS(cuPointerGetAttributes(1, bad, places, p));
    STATUS(cuPointerGetAttributes(0, list, places, p));
    STATUS(cuPointerGetAttributes(1, NULL, places, p));
}

static void buffer_ids(const check *self)
{
    (void)self;
    hdcu_pointer a = new_bytes(64), b = new_bytes(64);
    unsigned long long first = 0, same = 0, second = 0;
    STATUS(cuPointerGetAttribute(&first, HDCU_POINTER_ATTRIBUTE_BUFFER_ID, a));
    STATUS(cuPointerGetAttribute(&same, HDCU_POINTER_ATTRIBUTE_BUFFER_ID, a + 10));
    STATUS(cuPointerGetAttribute(&second, HDCU_POINTER_ATTRIBUTE_BUFFER_ID, b));
    say("%d:%d", first == same, first == second);
}

static void range_past_end(const check *self)
{
    (void)self;
    hdcu_pointer a = new_bytes(4 << 20);
    uint64_t size = 0;
    STATUS(cuPointerGetAttribute(&size, HDCU_POINTER_ATTRIBUTE_RANGE_SIZE, a + (4 << 20) - 1));
    say("%llu", (unsigned long long)size);
}

#define KINDS(text, which)                                                                                             \
    {.name = text " one by one", .run = ask, .kind = 'o', .number = which},                                            \
    {.name = text " together", .run = ask, .kind = 't', .number = which}

static const check checks[] = {
    KINDS("device", DEVICE),
    KINDS("interior", INTERIOR),
    KINDS("freed", FREED),
    KINDS("pinned", PINNED_HOST),
    KINDS("pinned interior", PINNED_INTERIOR),
    KINDS("registered", REGISTERED),
    KINDS("pageable", PAGEABLE),
    KINDS("null", NULL_ADDRESS),
    KINDS("pooled", POOLED),
    {.name = "misuse", .run = misuse},
    {.name = "buffer ids", .run = buffer_ids},
    {.name = "range at the last byte", .run = range_past_end},
};

const area area_pointer = {"pointer", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
