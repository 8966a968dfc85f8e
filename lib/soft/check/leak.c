/* SPDX-License-Identifier: MIT */
#include "soft/check/leak.h"

#include <stdlib.h>
#include <time.h>

#include "soft/check/report.h"
#include "soft/model/module.h"

#define TEXT_BYTES 4096
/* How long the end of a process waits for a thread that is inside of the driver. */
#define PATIENCE_NS 200000000

/* What was made at one place counts as one leak. `what` has its size or its number in. */
static void report_leak(const char *what, const void *kind_of_thing, const hdsoft__site *made)
{
    char bytes[TEXT_BYTES];
    hdsoft_text text = {bytes, sizeof bytes, 0};
    hdsoft_text_append(&text, "leak: %s was never given back; it was made by ", what);
    hdsoft__site_describe(made, &text);
    hdsoft__report report = {.kind = "leak",
                             .distinct = (uint64_t)(uintptr_t)made ^ (uint64_t)(uintptr_t)kind_of_thing,
                             .text = bytes};
    hdsoft__report_add(&report);
}

static void describe_allocation(const hdsoft__allocation *allocation, char *bytes, size_t capacity)
{
    hdsoft_text text = {bytes, capacity, 0};
    bool host = allocation->range.kind == HDSOFT_RANGE_HOST;
    hdsoft_text_append(&text, "%s #%llu of %llu bytes at 0x%llx",
                       allocation->registered ? "registered host memory" : host ? "pinned host memory" : "allocation",
                       (unsigned long long)allocation->range.id,
                       (unsigned long long)(allocation->range.end - allocation->range.base),
                       (unsigned long long)allocation->range.base);
}

static void check_memory(hdsoft_memory *memory, const hdsoft__context *context)
{
    hdsoft__allocation allocation;
    char what[128];
    for (uint64_t from = 0; hdsoft__memory_next_owned(memory, context, from, &allocation);
         from = allocation.range.end) {
        if (allocation.range.end <= from)
            break; /* one that waits for addresses it took over: they are not in order, and never alone */
        if (allocation.freeing)
            continue;
        describe_allocation(&allocation, what, sizeof what);
        report_leak(what, memory, allocation.made);
    }
}

void hdsoft__check_leaks(hdsoft__context *context)
{
    /* After a fault nobody is expected to give anything back. */
    if (!hdsoft__checking(HDSOFT_CHECK_LEAK) || atomic_load(&context->device->fault))
        return;
    static const char stream_leak, event_leak, module_leak;
    check_memory(context->device->memory, context);
    check_memory(hdsoft__the.hosts, context);
    for (const hdsoft__stream *stream = context->streams; stream; stream = stream->next) {
        if (!stream->destroyed && !stream->legacy && !stream->per_thread)
            report_leak("a stream", &stream_leak, stream->made);
    }
    for (const hdsoft__event *event = context->events; event; event = event->next)
        report_leak("an event", &event_leak, event->made);
    for (const hdsoft__module *module = context->modules; module; module = module->next) {
        if (!module->library)
            report_leak("a module", &module_leak, module->made);
    }
}

/* Behind all that the program does at its exit: its own functions for that, and its objects' destructors. */
static __attribute__((destructor)) void at_exit(void)
{
    if (!hdsoft__checking(~0u) || atomic_load(&hdsoft__the.forked))
        return;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += PATIENCE_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_mutex_timedlock(&hdsoft__the.lock, &until))
        return;
    for (hdsoft__context *context = hdsoft__the.contexts; context; context = context->next) {
        if (!context->destroyed)
            hdsoft__check_leaks(context);
    }
    hdsoft__unlock();
    hdsoft__report_summary();
}
