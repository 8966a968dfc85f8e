/* SPDX-License-Identifier: MIT */
/* Events: what a wait binds to, what a query sees, elapsed time's statuses. */
#include "areas.h"
#include "support.h"

static void create(const check *self)
{
    hdcu_event event = NULL;
    hdcu_result status = cu.cuEventCreate(&event, (unsigned)self->number);
    say("%u", status);
    if (!status)
        STATUS(cuEventDestroy(event));
}

static void misuse(const check *self)
{
    (void)self;
    hdcu_event event = new_event(0);
    hdcu_stream stream = new_stream(0);
    STATUS(cuEventCreate(NULL, 0));
    STATUS(cuEventRecord(NULL, stream));
    STATUS(cuEventQuery(NULL));
    STATUS(cuEventSynchronize(NULL));
    STATUS(cuEventDestroy(NULL));
    STATUS(cuStreamWaitEvent(stream, NULL, 0));
    STATUS(cuStreamWaitEvent(stream, event, 7));
    STATUS(cuEventRecordWithFlags(event, stream, 9));
    STATUS(cuCtxSynchronize());
}

static void external_outside_capture(const check *self)
{
    (void)self;
    hdcu_event event = new_event(0);
    hdcu_stream stream = new_stream(0);
    STATUS(cuEventRecordWithFlags(event, stream, HDCU_EVENT_RECORD_EXTERNAL));
    STATUS(cuStreamWaitEvent(stream, event, HDCU_EVENT_WAIT_EXTERNAL));
    STATUS(cuEventRecordWithFlags(event, stream, HDCU_EVENT_RECORD_DEFAULT));
    STATUS(cuStreamSynchronize(stream));
}

static void never_recorded(const check *self)
{
    (void)self;
    hdcu_event event = new_event(0);
    hdcu_stream stream = new_stream(0);
    STATUS(cuEventQuery(event));
    STATUS(cuEventSynchronize(event));
    STATUS(cuStreamWaitEvent(stream, event, 0));
    STATUS(cuStreamSynchronize(stream));
}

static void query(const check *self)
{
    hdcu_event event = new_event((unsigned)self->number);
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    hold *held = hold_up(stream);
    STATUS(cuEventRecord(event, stream));
    STATUS(cuEventQuery(event));
    release(held);
    STATUS(cuEventSynchronize(event));
    STATUS(cuEventQuery(event));
}

static void wait(const check *self)
{
    (void)self;
    hdcu_event event = new_event(HDCU_EVENT_DISABLE_TIMING);
    hdcu_stream a = new_stream(HDCU_STREAM_NON_BLOCKING), b = new_stream(HDCU_STREAM_NON_BLOCKING);
    hdcu_pointer p = new_bytes(8), q = p + 4;
    NEED(cuMemsetD32(p, 1, 2));
    NEED(cuCtxSynchronize());
    hold *held = hold_up(a);
    STATUS(cuMemsetD32Async(p, 2, 1, a));
    STATUS(cuEventRecord(event, a));
    STATUS(cuStreamWaitEvent(b, event, 0));
    STATUS(LAUNCH(KERNEL("copy"), 1, 1, b, &p, &q));
    STATUS(cuStreamQuery(b));
    release(held);
    STATUS(cuStreamSynchronize(b));
    say_words(p, 2);
}

static void wait_binds_at_the_call(const check *self)
{
    (void)self;
    hdcu_event event = new_event(HDCU_EVENT_DISABLE_TIMING);
    hdcu_stream a = new_stream(HDCU_STREAM_NON_BLOCKING), b = new_stream(HDCU_STREAM_NON_BLOCKING);
    hdcu_stream c = new_stream(HDCU_STREAM_NON_BLOCKING);
    hold *held = hold_up(a);
    STATUS(cuEventRecord(event, a));
    STATUS(cuStreamWaitEvent(b, event, 0));
    STATUS(cuEventRecord(event, c));
    STATUS(cuEventSynchronize(event));
    STATUS(cuStreamQuery(b));
    release(held);
    STATUS(cuStreamSynchronize(b));
}

static void wait_before_record(const check *self)
{
    (void)self;
    hdcu_event event = new_event(HDCU_EVENT_DISABLE_TIMING);
    hdcu_stream a = new_stream(HDCU_STREAM_NON_BLOCKING), b = new_stream(HDCU_STREAM_NON_BLOCKING);
    hold *held = hold_up(a);
    STATUS(cuStreamWaitEvent(b, event, 0));
    STATUS(cuEventRecord(event, a));
    STATUS(cuStreamSynchronize(b));
    STATUS(cuEventQuery(event));
    release(held);
    STATUS(cuStreamSynchronize(a));
}

static void record_again(const check *self)
{
    (void)self;
    hdcu_event event = new_event(HDCU_EVENT_DISABLE_TIMING);
    hdcu_stream a = new_stream(HDCU_STREAM_NON_BLOCKING), b = new_stream(HDCU_STREAM_NON_BLOCKING);
    STATUS(cuEventRecord(event, b));
    STATUS(cuEventSynchronize(event));
    hold *held = hold_up(a);
    STATUS(cuEventRecord(event, a));
    STATUS(cuEventQuery(event));
    STATUS(cuEventRecord(event, b));
    STATUS(cuEventSynchronize(event));
    STATUS(cuEventQuery(event));
    release(held);
    STATUS(cuStreamSynchronize(a));
}

static void wait_on_own_stream(const check *self)
{
    (void)self;
    hdcu_event event = new_event(0);
    hdcu_stream stream = new_stream(0);
    STATUS(cuEventRecord(event, stream));
    STATUS(cuStreamWaitEvent(stream, event, 0));
    STATUS(cuStreamSynchronize(stream));
}

static void destroy_pending(const check *self)
{
    (void)self;
    hdcu_event event = NULL;
    hdcu_stream a = new_stream(HDCU_STREAM_NON_BLOCKING), b = new_stream(HDCU_STREAM_NON_BLOCKING);
    NEED(cuEventCreate(&event, 0));
    hold *held = hold_up(a);
    STATUS(cuEventRecord(event, a));
    STATUS(cuStreamWaitEvent(b, event, 0));
    STATUS(cuEventDestroy(event));
    STATUS(cuStreamQuery(b));
    release(held);
    STATUS(cuStreamSynchronize(b));
}

static void outlives_stream(const check *self)
{
    (void)self;
    hdcu_event event = new_event(0);
    hdcu_stream stream = NULL;
    NEED(cuStreamCreate(&stream, HDCU_STREAM_NON_BLOCKING));
    hold *held = hold_up(stream);
    STATUS(cuEventRecord(event, stream));
    STATUS(cuStreamDestroy(stream));
    STATUS(cuEventQuery(event));
    release(held);
    STATUS(cuEventSynchronize(event));
}

static void legacy_record(const check *self)
{
    (void)self;
    hdcu_event event = new_event(0);
    hdcu_stream a = new_stream(HDCU_STREAM_DEFAULT);
    hold *held = hold_up(a);
    STATUS(cuEventRecord(event, NULL));
    STATUS(cuEventQuery(event));
    release(held);
    STATUS(cuEventSynchronize(event));
}

/* ---- elapsed time ---- */

static void elapsed(const check *self)
{
    (void)self;
    hdcu_event start = new_event(0), end = new_event(0);
    hdcu_stream stream = new_stream(0);
    float milliseconds = -1;
    STATUS(cuEventRecord(start, stream));
    STATUS(cuEventRecord(end, stream));
    STATUS(cuEventSynchronize(end));
    STATUS(cuEventElapsedTime(&milliseconds, start, end));
    say("%s", milliseconds >= 0 && milliseconds < 10000 ? "plausible" : "implausible");
    STATUS(cuEventElapsedTime(&milliseconds, start, start));
    say("%g", milliseconds);
    STATUS(cuEventElapsedTime(NULL, start, end));
}

static void elapsed_without_timing(const check *self)
{
    hdcu_event start = new_event(self->number & 1 ? HDCU_EVENT_DISABLE_TIMING : 0);
    hdcu_event end = new_event(self->number & 2 ? HDCU_EVENT_DISABLE_TIMING : 0);
    float milliseconds = -1;
    STATUS(cuEventRecord(start, NULL));
    STATUS(cuEventRecord(end, NULL));
    STATUS(cuEventSynchronize(end));
    STATUS(cuEventElapsedTime(&milliseconds, start, end));
}

static void elapsed_not_recorded(const check *self)
{
    hdcu_event start = new_event(0), end = new_event(0);
    float milliseconds = -1;
    if (self->number & 1)
        STATUS(cuEventRecord(start, NULL));
    if (self->number & 2)
        STATUS(cuEventRecord(end, NULL));
    STATUS(cuCtxSynchronize());
    STATUS(cuEventElapsedTime(&milliseconds, start, end));
}

static void elapsed_not_complete(const check *self)
{
    (void)self;
    hdcu_event start = new_event(0), end = new_event(0);
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    float milliseconds = -1;
    STATUS(cuEventRecord(start, stream));
    hold *held = hold_up(stream);
    STATUS(cuEventRecord(end, stream));
    STATUS(cuEventElapsedTime(&milliseconds, start, end));
    STATUS(cuEventElapsedTime(&milliseconds, end, start));
    release(held);
    STATUS(cuEventSynchronize(end));
    STATUS(cuEventElapsedTime(&milliseconds, start, end));
}

static void elapsed_null(const check *self)
{
    (void)self;
    hdcu_event event = new_event(0);
    float milliseconds = -1;
    STATUS(cuEventElapsedTime(&milliseconds, NULL, event));
    STATUS(cuEventElapsedTime(&milliseconds, event, NULL));
}

static const check checks[] = {
    {.name = "create flags 0", .run = create, .number = 0},
    {.name = "create blocking sync", .run = create, .number = 1},
    {.name = "create without timing", .run = create, .number = 2},
    {.name = "create interprocess", .run = create, .number = 4},
    {.name = "create interprocess without timing", .run = create, .number = 6},
    {.name = "create flags 8", .run = create, .number = 8},
    {.name = "misuse", .run = misuse},
    {.name = "external outside capture", .run = external_outside_capture},
    {.name = "never recorded", .run = never_recorded},
    {.name = "query", .run = query, .number = 0},
    {.name = "query blocking sync", .run = query, .number = 1},
    {.name = "query without timing", .run = query, .number = 2},
    {.name = "wait", .run = wait},
    {.name = "wait binds at the call", .run = wait_binds_at_the_call},
    {.name = "wait before record", .run = wait_before_record},
    {.name = "record again", .run = record_again},
    {.name = "wait on its own stream", .run = wait_on_own_stream},
    {.name = "destroy pending", .run = destroy_pending},
    {.name = "outlives its stream", .run = outlives_stream},
    {.name = "recorded in the legacy stream", .run = legacy_record},
    {.name = "elapsed", .run = elapsed},
    {.name = "elapsed: start without timing", .run = elapsed_without_timing, .number = 1},
    {.name = "elapsed: end without timing", .run = elapsed_without_timing, .number = 2},
    {.name = "elapsed: both without timing", .run = elapsed_without_timing, .number = 3},
    {.name = "elapsed: none recorded", .run = elapsed_not_recorded, .number = 0},
    {.name = "elapsed: only start recorded", .run = elapsed_not_recorded, .number = 1},
    {.name = "elapsed: only end recorded", .run = elapsed_not_recorded, .number = 2},
    {.name = "elapsed: not complete", .run = elapsed_not_complete},
    {.name = "elapsed: null", .run = elapsed_null},
};

const area area_event = {"event", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
