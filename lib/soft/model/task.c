/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/check/check.h"
#include "soft/check/fault.h"
#include "soft/model/driver.h"
#include "soft/model/inject.h"
#include "soft/model/module.h"
#include "soft/model/pool.h"

/* A step is short, so that no stream keeps the others waiting. */
#define STEP_BYTES ((uint64_t)1 << 20)
#define STEP_INSTRUCTIONS ((uint64_t)1 << 15)

hdsoft__task *hdsoft__task_new(hdsoft__task_kind kind)
{
    hdsoft__task *task = calloc(1, sizeof *task);
    if (task) {
        task->kind = kind;
        task->references = 1;
    }
    return task;
}

hdsoft__task *hdsoft__task_hold(hdsoft__task *task)
{
    task->references++;
    return task;
}

void hdsoft__task_release(hdsoft__task *task)
{
    if (!task || --task->references)
        return;
    if (task->kind == HDSOFT__TASK_KERNEL) {
        free(task->launch.parameters);
        if (task->launch.function)
            hdsoft__module_release(task->launch.function->module);
    } else if (task->kind == HDSOFT__TASK_COPY) {
        free(task->copy.staged);
    } else if (task->kind == HDSOFT__TASK_RECORD_EVENT || task->kind == HDSOFT__TASK_WAIT_EVENT) {
        hdsoft__event_release(task->event);
    } else if (task->kind == HDSOFT__TASK_FREE) {
        if (task->range.leaving) /* a faulted device dropped it */
            hdsoft__memory_vacate(task->range.memory, &task->range.of);
        hdsoft__task_freed(task);
    }
    free(task);
}

void hdsoft__task_freed(hdsoft__task *task)
{
    hdsoft__leaving *leaving = task->range.leaving;
    if (!leaving)
        return;
    hdsoft__memory_left(leaving);
    if (task->range.pool)
        hdsoft__pool_gave(task->range.pool, leaving->counted);
    task->range.leaving = NULL;
    free(leaving);
}

hdsoft__task *hdsoft__event_task(hdsoft__task_kind kind, hdsoft__event *event)
{
    hdsoft__task *task = hdsoft__task_new(kind);
    if (task) {
        task->event = event;
        event->references++;
    }
    return task;
}

static int fail(int code, const char *what, hdsoft_memory *memory, uint64_t address, char *text, size_t capacity)
{
    char where[256];
    hdsoft_memory_explain(memory, address, where, sizeof where);
    snprintf(text, capacity, "%s touches address 0x%llx: %s", what, (unsigned long long)address, where);
    hdsoft__check_command_fault(memory, address, text);
    return -code;
}

/* The table in which an address would be, of whichever device. */
static hdsoft_memory *memory_of(uint64_t address)
{
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        if (hdsoft__memory_is_device(hdsoft__the.devices[i].memory, address))
            return hdsoft__the.devices[i].memory;
    }
    return hdsoft__the.hosts;
}

/* The host bytes behind [address, address + bytes); NULL: not all of it is in one live range. Sets *memory. */
static unsigned char *resolve(uint64_t address, uint64_t bytes, hdsoft_memory **memory)
{
    hdsoft_range range;
    *memory = memory_of(address);
    if (!hdsoft_memory_find(*memory, address, &range) || range.end - address < bytes)
        return NULL;
    return range.host + (address - range.base);
}

/* ---- copies and fills ---- */

static unsigned char *copy_side(const hdsoft__copy_end *end, uint64_t row, uint64_t slice, uint64_t column,
                                uint64_t bytes, const char *what, char *text, size_t capacity)
{
    uint64_t address = end->address + slice * end->slice + row * end->pitch + column;
    if (end->pageable)
        return (unsigned char *)(uintptr_t)address;
    hdsoft_memory *memory;
    unsigned char *at = resolve(address, bytes, &memory);
    if (!at)
        fail(HDCU_ERROR_ILLEGAL_ADDRESS, what, memory, address, text, capacity);
    return at;
}

/* Ends that no device knows are the program's own business. */
static void tell_copy(hdsoft__operation *operation, const hdsoft__copy *copy, uint64_t row, uint64_t slice,
                      uint64_t column, uint64_t bytes)
{
    uint64_t from = copy->source.address + slice * copy->source.slice + row * copy->source.pitch + column;
    uint64_t to = copy->destination.address + slice * copy->destination.slice + row * copy->destination.pitch + column;
    if (copy->staged || copy->source.pageable)
        from = 0;
    if (copy->destination.pageable)
        to = 0;
    if (from)
        hdsoft__check_read(operation, from, bytes);
    if (to)
        hdsoft__check_write(operation, to, bytes);
    hdsoft__check_moved(operation, from, to, bytes);
}

static int step_copy(hdsoft__work *work, const hdsoft__copy *copy, uint64_t budget, char *text, size_t capacity)
{
    uint64_t total = copy->width * copy->height * copy->depth;
    budget = budget ? budget : STEP_BYTES;
    while (work->copied < total && budget) {
        uint64_t column = work->copied % copy->width, line = work->copied / copy->width;
        uint64_t row = line % copy->height, slice = line / copy->height;
        uint64_t bytes = copy->width - column < budget ? copy->width - column : budget;
        const unsigned char *from = copy->staged ? (unsigned char *)copy->staged + work->copied
                                                 : copy_side(&copy->source, row, slice, column, bytes,
                                                             "a copy's source", text, capacity);
        unsigned char *to = from ? copy_side(&copy->destination, row, slice, column, bytes, "a copy's destination",
                                             text, capacity) : NULL;
        if (!to)
            return -HDCU_ERROR_ILLEGAL_ADDRESS;
        if (work->operation)
            tell_copy(work->operation, copy, row, slice, column, bytes);
        memmove(to, from, bytes);
        work->copied += bytes;
        budget -= bytes;
    }
    if (work->copied < total)
        return 1;
    work->copied = 0;
    return 0;
}

static void fill_row(unsigned char *at, uint64_t bytes, const hdsoft__fill *fill, uint64_t phase)
{
    if (fill->element_size == 1) {
        memset(at, (int)(fill->value & 0xff), bytes);
        return;
    }
    unsigned char pattern[4];
    memcpy(pattern, &fill->value, sizeof pattern);
    for (uint64_t i = 0; i < bytes; i++)
        at[i] = pattern[(phase + i) & (fill->element_size - 1)];
}

static int step_fill(hdsoft__work *work, const hdsoft__fill *fill, uint64_t budget, char *text, size_t capacity)
{
    uint64_t row_bytes = fill->width * fill->element_size, total = row_bytes * fill->height;
    budget = budget ? budget : STEP_BYTES;
    while (work->copied < total && budget) {
        uint64_t column = work->copied % row_bytes, row = work->copied / row_bytes;
        uint64_t bytes = row_bytes - column < budget ? row_bytes - column : budget;
        uint64_t address = fill->address + row * fill->pitch + column;
        hdsoft_memory *memory;
        unsigned char *at = resolve(address, bytes, &memory);
        if (!at)
            return fail(HDCU_ERROR_ILLEGAL_ADDRESS, "a memset", memory, address, text, capacity);
        if (work->operation)
            hdsoft__check_write(work->operation, address, bytes);
        fill_row(at, bytes, fill, column);
        work->copied += bytes;
        budget -= bytes;
    }
    if (work->copied < total)
        return 1;
    work->copied = 0;
    return 0;
}

/* ---- values ---- */

static uint64_t load_value(const void *at, unsigned bytes)
{
    return bytes == 8 ? __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE)
                      : __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
}

int hdsoft__value_holds(hdsoft__device *device, const hdsoft__task *task)
{
    hdsoft_memory *memory;
    const void *at = resolve(task->value.address, task->value.bytes, &memory);
    if (!at)
        return -HDCU_ERROR_ILLEGAL_ADDRESS;
    uint64_t now = load_value(at, task->value.bytes), wanted = task->value.value;
    switch (task->value.condition) {
    case HDCU_STREAM_WAIT_VALUE_EQ: return now == wanted;
    case HDCU_STREAM_WAIT_VALUE_AND: return (now & wanted) != 0;
    case HDCU_STREAM_WAIT_VALUE_NOR:
        return task->value.bytes == 8 ? ~(now | wanted) != 0 : (uint32_t)~(now | wanted) != 0;
    default: /* a cyclic comparison, as the header defines it */
        return task->value.bytes == 8 ? (int64_t)(now - wanted) >= 0
                                      : (int32_t)((uint32_t)now - (uint32_t)wanted) >= 0;
    }
}

static int step_value(hdsoft__device *device, hdsoft__operation *operation, const hdsoft__task *task, char *text,
                      size_t capacity)
{
    hdsoft_memory *memory;
    void *at = resolve(task->value.address, task->value.bytes, &memory);
    if (!at)
        return fail(HDCU_ERROR_ILLEGAL_ADDRESS, "a stream memory operation", memory, task->value.address, text,
                    capacity);
    if (task->kind == HDSOFT__TASK_WAIT_VALUE) {
        if (hdsoft__value_holds(device, task) <= 0)
            return 2;
        if (operation)
            hdsoft__check_read(operation, task->value.address, task->value.bytes);
        return 0;
    }
    if (operation)
        hdsoft__check_write(operation, task->value.address, task->value.bytes);
    if (task->value.bytes == 8)
        __atomic_store_n((uint64_t *)at, task->value.value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)at, (uint32_t)task->value.value, __ATOMIC_RELEASE);
    return 0;
}

/* ---- kernels ---- */

static int begin_kernel(hdsoft__device *device, hdsoft__work *work, const hdsoft__launch *launch, char *text,
                        size_t capacity)
{
    const hdsoft__function *function = launch->function;
    hdsoft_launch details = {
        .instance = function->module->instance, .entry = function->entry,
        .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
        .block = {launch->block[0], launch->block[1], launch->block[2]},
        .dynamic_shared_bytes = launch->shared_bytes, .parameters = launch->parameters, .memory = device->memory,
        .cooperative = launch->cooperative, .multiprocessors = 132, .seed = work->seed, .print = hdsoft__print,
        .print_context = device, .watch = work->operation ? hdsoft__operation_watch(work->operation) : NULL,
    };
    if (hdsoft__the.policy == HDSOFT__VIRTUAL) {
        work->simulated.clock =
            (hdsoft_virtual_clock){work->simulated.since, hdsoft__the.options.costs.instruction};
        details.clock = &work->simulated.clock;
    }
    int status = hdsoft_run_begin(&details, &work->run);
    if (status)
        snprintf(text, capacity, "kernel %s: no host memory to run it in", function->entry->name);
    return -status;
}

static int step_kernel(hdsoft__device *device, hdsoft__work *work, const hdsoft__launch *launch, uint64_t budget,
                       char *text, size_t capacity)
{
    if (!work->run) {
        int status = begin_kernel(device, work, launch, text, capacity);
        if (status)
            return status;
    }
    hdsoft_fault fault = {0};
    uint64_t executed = 0;
    int status = hdsoft_run_step(work->run, budget ? budget : STEP_INSTRUCTIONS, &executed, &fault);
    work->executed += executed;
    work->slept = hdsoft_run_slept(work->run);
    if (status == 1)
        return executed ? 1 : 2;
    hdsoft_run_end(work->run);
    work->run = NULL;
    if (status == 0)
        return 0;
    const char *name = launch->function->entry->name;
    hdsoft__check_fault(device->memory, name, &fault);
    if (strstr(fault.text, name))
        snprintf(text, capacity, "%s", fault.text);
    else
        snprintf(text, capacity, "kernel %s: %s", name, fault.text);
    return fault.code ? -fault.code : -HDCU_ERROR_LAUNCH_FAILED;
}

/* At a task's first step: a fault that was asked for, or 0. */
static unsigned injected_fault(hdsoft__work *work, const hdsoft__task *task, char *text, size_t capacity)
{
    if (work->tried)
        return 0;
    work->tried = true;
    bool kernel = task->kind == HDSOFT__TASK_KERNEL;
    unsigned code = hdsoft__inject_command(kernel);
    if (code && kernel)
        snprintf(text, capacity, "kernel %s: fault %u was injected", task->launch.function->entry->name, code);
    else if (code)
        snprintf(text, capacity, "fault %u was injected into a command that is no kernel", code);
    return code;
}

/* ---- memory that comes and goes in a stream's order ---- */

static void step_range(hdsoft__operation *operation, const hdsoft__task *task)
{
    if (operation && task->kind != HDSOFT__TASK_ALLOCATE)
        hdsoft__check_freed(operation, &task->range.of);
    if (task->kind == HDSOFT__TASK_ALLOCATE)
        hdsoft__memory_activate(task->range.memory, &task->range.of);
    else if (task->kind == HDSOFT__TASK_SUSPEND)
        hdsoft__memory_suspend(task->range.memory, task->range.of.base);
    else
        hdsoft__memory_vacate(task->range.memory, &task->range.of);
    if (operation && task->kind == HDSOFT__TASK_ALLOCATE)
        hdsoft__check_allocated(operation, &task->range.of);
}

int hdsoft__task_step(hdsoft__device *device, hdsoft__work *work, uint64_t budget, char *text, size_t capacity)
{
    const hdsoft__task *task = work->task;
    unsigned injected = injected_fault(work, task, text, capacity);
    if (injected)
        return -(int)injected;
    switch (task->kind) {
    case HDSOFT__TASK_KERNEL: return step_kernel(device, work, &task->launch, budget, text, capacity);
    case HDSOFT__TASK_COPY: return step_copy(work, &task->copy, budget, text, capacity);
    case HDSOFT__TASK_FILL: return step_fill(work, &task->fill, budget, text, capacity);
    case HDSOFT__TASK_WAIT_VALUE:
    case HDSOFT__TASK_WRITE_VALUE: return step_value(device, work->operation, task, text, capacity);
    case HDSOFT__TASK_ALLOCATE:
    case HDSOFT__TASK_SUSPEND:
    case HDSOFT__TASK_FREE: step_range(work->operation, task); return 0;
    default: return 0;
    }
}
