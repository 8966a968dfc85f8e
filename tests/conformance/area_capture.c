/* SPDX-License-Identifier: MIT */
/* Stream capture: what it records, and how it ends. The calls that break it are in area_capture_calls.c. */
#include "areas.h"
#include "support.h"

static hdcu_stream capturing(unsigned mode)
{
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    NEED(cuStreamBeginCapture(stream, mode));
    return stream;
}

static void say_state(hdcu_stream stream)
{
    unsigned state = 77;
    STATUS(cuStreamIsCapturing(stream, &state));
    say("%u", state);
}

static hdcu_graph say_end(hdcu_stream stream)
{
    hdcu_graph graph = (hdcu_graph)16;
    STATUS(cuStreamEndCapture(stream, &graph));
    say("%s", !graph ? "null" : graph == (hdcu_graph)16 ? "untouched" : "graph");
    return graph == (hdcu_graph)16 ? NULL : graph;
}

/* Ends without a word: the check is done with it. */
static void drop(hdcu_stream stream)
{
    hdcu_graph graph = NULL;
    if (!cu.cuStreamEndCapture(stream, &graph) && graph)
        cu.cuGraphDestroy(graph);
}

static void say_shape(hdcu_graph graph)
{
    hdcu_graph_node nodes[16];
    size_t count = COUNT_OF(nodes), edges = 0, roots = 0;
    if (!graph) {
        say("no shape");
        return;
    }
    NEED(cuGraphGetNodes(graph, nodes, &count));
    NEED(cuGraphGetEdges(graph, NULL, NULL, &edges));
    NEED(cuGraphGetRootNodes(graph, NULL, &roots));
    say("%zu nodes %zu edges %zu roots", count, edges, roots);
    unsigned seen[16] = {0};
    for (size_t i = 0; i < count; i++) {
        unsigned type = 99;
        NEED(cuGraphNodeGetType(nodes[i], &type));
        seen[type & 15]++;
    }
    for (unsigned type = 0; type < COUNT_OF(seen); type++)
        if (seen[type])
            say("type %u x%u", type, seen[type]);
}

static void launch_and_drop(hdcu_graph graph)
{
    hdcu_graph_exec exec = NULL;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    if (!graph)
        give_up("no graph");
    STATUS(cuGraphInstantiateWithFlags(&exec, graph, 0));
    STATUS(cuGraphLaunch(exec, stream));
    STATUS(cuStreamSynchronize(stream));
    NEED(cuGraphExecDestroy(exec));
    NEED(cuGraphDestroy(graph));
}

static void simple(const check *self)
{
    hdcu_pointer p = new_bytes(8), q = p + 4;
    NEED(cuMemsetD32(p, 1, 2));
    NEED(cuCtxSynchronize());
    hdcu_function copy = KERNEL("copy");
    hdcu_stream stream = capturing((unsigned)self->number);
    say_state(stream);
    STATUS(cuMemsetD32Async(p, 5, 1, stream));
    STATUS(LAUNCH(copy, 1, 1, stream, &p, &q));
    hdcu_graph graph = say_end(stream);
    say_state(stream);
    say_words(p, 2);
    say_shape(graph);
    launch_and_drop(graph);
    say_words(p, 2);
}

static void empty(const check *self)
{
    (void)self;
    hdcu_stream stream = capturing(HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    hdcu_graph graph = say_end(stream);
    say_shape(graph);
    launch_and_drop(graph);
}

static void arguments_are_copied(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    uint32_t value = 7;
    hdcu_function store = KERNEL("store");
    hdcu_stream stream = capturing(HDCU_STREAM_CAPTURE_MODE_RELAXED);
    STATUS(LAUNCH(store, 1, 1, stream, &p, &value));
    value = 8;
    launch_and_drop(say_end(stream));
    say("%u", word_at(p));
}

static void begin_misuse(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(0);
    STATUS(cuStreamBeginCapture(NULL, 0));
    STATUS(cuStreamBeginCapture(HDCU_STREAM_LEGACY, 0));
    STATUS(cuStreamBeginCapture(stream, 9));
    say_state(stream);
}

static void begin_twice(const check *self)
{
    (void)self;
    hdcu_stream stream = capturing(HDCU_STREAM_CAPTURE_MODE_RELAXED);
    STATUS(cuStreamBeginCapture(stream, HDCU_STREAM_CAPTURE_MODE_RELAXED));
    say_state(stream);
    drop(stream);
}

static void begin_with_work_pending(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    hold *held = hold_up(stream);
    STATUS(cuStreamBeginCapture(stream, HDCU_STREAM_CAPTURE_MODE_RELAXED));
    hdcu_graph graph = say_end(stream);
    STATUS(cuStreamQuery(stream));
    release(held);
    STATUS(cuStreamSynchronize(stream));
    NEED(cuGraphDestroy(graph));
}

static void begin_per_thread(const check *self)
{
    (void)self;
    STATUS(cuStreamBeginCapture(HDCU_STREAM_PER_THREAD, HDCU_STREAM_CAPTURE_MODE_RELAXED));
    say_state(HDCU_STREAM_PER_THREAD);
    drop(HDCU_STREAM_PER_THREAD);
}

static void end_without_begin(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(0);
    say_end(stream);
    say_end(NULL);
}

static void end_null(const check *self)
{
    (void)self;
    hdcu_stream stream = capturing(HDCU_STREAM_CAPTURE_MODE_RELAXED);
    STATUS(cuStreamEndCapture(stream, NULL));
    say_state(stream);
    drop(stream);
}

static void is_capturing_null(const check *self)
{
    (void)self;
    hdcu_stream stream = new_stream(0);
    STATUS(cuStreamIsCapturing(stream, NULL));
    say_state(stream);
    say_state(NULL);
}

/* ---- the legacy stream beside a capture ---- */

static void legacy_beside(const check *self)
{
    hdcu_pointer p = new_bytes(4);
    hdcu_stream stream = new_stream((unsigned)self->number);
    NEED(cuStreamBeginCapture(stream, HDCU_STREAM_CAPTURE_MODE_RELAXED));
    say_state(NULL);
    say_state(stream);
    STATUS(cuMemsetD32Async(p, 1, 1, NULL));
    say_state(stream);
    drop(stream);
}

static void legacy_record_beside(const check *self)
{
    hdcu_stream stream = new_stream((unsigned)self->number);
    hdcu_event event = new_event(0);
    NEED(cuStreamBeginCapture(stream, HDCU_STREAM_CAPTURE_MODE_RELAXED));
    STATUS(cuEventRecord(event, NULL));
    say_end(stream);
    say_state(stream);
}

/* ---- forks and joins ---- */

static void fork_and_join(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(8);
    hdcu_event fork = new_event(HDCU_EVENT_DISABLE_TIMING), join = new_event(HDCU_EVENT_DISABLE_TIMING);
    hdcu_stream b = new_stream(HDCU_STREAM_NON_BLOCKING), a = capturing(HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    STATUS(cuEventRecord(fork, a));
    STATUS(cuStreamWaitEvent(b, fork, 0));
    say_state(b);
    STATUS(cuMemsetD32Async(p, 3, 1, b));
    STATUS(cuMemsetD32Async(p + 4, 4, 1, a));
    STATUS(cuEventRecord(join, b));
    STATUS(cuStreamWaitEvent(a, join, 0));
    STATUS(cuMemsetD32Async(p, 5, 1, a));
    hdcu_graph graph = say_end(a);
    say_state(b);
    say_shape(graph);
    launch_and_drop(graph);
    say_words(p, 2);
}

static void unjoined(const check *self)
{
    hdcu_pointer p = new_bytes(4);
    hdcu_event fork = new_event(HDCU_EVENT_DISABLE_TIMING);
    hdcu_stream b = new_stream(HDCU_STREAM_NON_BLOCKING), a = capturing(HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    NEED(cuEventRecord(fork, a));
    NEED(cuStreamWaitEvent(b, fork, 0));
    if (self->number)
        NEED(cuMemsetD32Async(p, 3, 1, b));
    say_end(a);
    say_state(a);
    say_state(b);
}

static void end_on_another_stream(const check *self)
{
    (void)self;
    hdcu_event fork = new_event(HDCU_EVENT_DISABLE_TIMING);
    hdcu_stream b = new_stream(HDCU_STREAM_NON_BLOCKING), a = capturing(HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    NEED(cuEventRecord(fork, a));
    NEED(cuStreamWaitEvent(b, fork, 0));
    say_end(b);
    say_state(a);
    say_state(b);
    drop(a);
}

static void isolation(const check *self)
{
    (void)self;
    hdcu_event before = new_event(HDCU_EVENT_DISABLE_TIMING);
    hdcu_stream other = new_stream(HDCU_STREAM_NON_BLOCKING);
    NEED(cuEventRecord(before, other));
    hdcu_stream stream = capturing(HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    STATUS(cuStreamWaitEvent(stream, before, 0));
    say_state(stream);
    say_end(stream);
}

static void wait_for_never_recorded(const check *self)
{
    (void)self;
    hdcu_event never = new_event(HDCU_EVENT_DISABLE_TIMING);
    hdcu_stream stream = capturing(HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    STATUS(cuStreamWaitEvent(stream, never, 0));
    say_end(stream);
}

static void merge(const check *self)
{
    (void)self;
    hdcu_event event = new_event(HDCU_EVENT_DISABLE_TIMING);
    hdcu_stream a = capturing(HDCU_STREAM_CAPTURE_MODE_GLOBAL), b = capturing(HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    NEED(cuEventRecord(event, a));
    STATUS(cuStreamWaitEvent(b, event, 0));
    say_state(a);
    say_state(b);
    say_end(a);
    say_end(b);
}

static void captured_event(const check *self)
{
    hdcu_event event = new_event(0), other = new_event(0);
    float milliseconds = 0;
    NEED(cuEventRecord(other, NULL));
    NEED(cuCtxSynchronize());
    hdcu_stream stream = capturing(HDCU_STREAM_CAPTURE_MODE_RELAXED);
    NEED(cuEventRecord(event, stream));
    switch (self->number) {
    case 0: STATUS(cuEventQuery(event)); break;
    case 1: STATUS(cuEventSynchronize(event)); break;
    case 2: STATUS(cuEventElapsedTime(&milliseconds, other, event)); break;
    default: break;
    }
    say_state(stream);
    say_end(stream);
}

static void captured_event_afterwards(const check *self)
{
    (void)self;
    hdcu_event event = new_event(0);
    hdcu_stream other = new_stream(HDCU_STREAM_NON_BLOCKING), stream = capturing(HDCU_STREAM_CAPTURE_MODE_RELAXED);
    NEED(cuEventRecord(event, stream));
    drop(stream);
    STATUS(cuEventQuery(event));
    STATUS(cuEventSynchronize(event));
    STATUS(cuStreamWaitEvent(other, event, 0));
    STATUS(cuStreamSynchronize(other));
    STATUS(cuEventRecord(event, other));
    STATUS(cuEventSynchronize(event));
}

static void external_events(const check *self)
{
    (void)self;
    hdcu_event event = new_event(HDCU_EVENT_DISABLE_TIMING), other = new_event(HDCU_EVENT_DISABLE_TIMING);
    hdcu_stream stream = capturing(HDCU_STREAM_CAPTURE_MODE_RELAXED);
    STATUS(cuStreamWaitEvent(stream, other, HDCU_EVENT_WAIT_EXTERNAL));
    STATUS(cuEventRecordWithFlags(event, stream, HDCU_EVENT_RECORD_EXTERNAL));
    STATUS(cuEventQuery(event));
    hdcu_graph graph = say_end(stream);
    say_shape(graph);
    launch_and_drop(graph);
    STATUS(cuEventQuery(event));
}

/* ---- threads ---- */

typedef struct ending {
    hdcu_stream stream;
    hdcu_graph graph;
    hdcu_result set, got;
} ending;

static void end_there(void *argument)
{
    ending *of = argument;
    of->set = cu.cuCtxSetCurrent(own_context);
    of->got = cu.cuStreamEndCapture(of->stream, &of->graph);
}

static void end_in_another_thread(const check *self)
{
    ending of = {.stream = capturing((unsigned)self->number)};
    in_thread(end_there, &of);
    say("%u:%s", of.got, of.graph ? "graph" : "null");
    say_state(of.stream);
    if (of.graph)
        cu.cuGraphDestroy(of.graph);
    else
        drop(of.stream);
}

static void exchange(const check *self)
{
    (void)self;
    unsigned mode = HDCU_STREAM_CAPTURE_MODE_RELAXED;
    STATUS(cuThreadExchangeStreamCaptureMode(&mode));
    say("%u", mode);
    mode = HDCU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    STATUS(cuThreadExchangeStreamCaptureMode(&mode));
    say("%u", mode);
    mode = 9;
    STATUS(cuThreadExchangeStreamCaptureMode(&mode));
    say("%u", mode);
    mode = HDCU_STREAM_CAPTURE_MODE_GLOBAL;
    STATUS(cuThreadExchangeStreamCaptureMode(&mode));
    say("%u", mode);
}

/* ---- after invalidation ---- */

static void invalidated(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    hdcu_event event = new_event(HDCU_EVENT_DISABLE_TIMING);
    uint32_t value = 1;
    hdcu_function store = KERNEL("store");
    hdcu_stream stream = capturing(HDCU_STREAM_CAPTURE_MODE_RELAXED);
    STATUS(cuStreamSynchronize(stream));
    say_state(stream);
    STATUS(LAUNCH(store, 1, 1, stream, &p, &value));
    STATUS(cuMemsetD32Async(p, 1, 1, stream));
    STATUS(cuEventRecord(event, stream));
    STATUS(cuStreamWaitEvent(stream, event, 0));
    STATUS(cuStreamQuery(stream));
    STATUS(cuStreamBeginCapture(stream, HDCU_STREAM_CAPTURE_MODE_RELAXED));
    say_end(stream);
    say_state(stream);
    STATUS(LAUNCH(store, 1, 1, stream, &p, &value));
    STATUS(cuStreamSynchronize(stream));
}

static void destroy_captured_stream(const check *self)
{
    (void)self;
    hdcu_stream stream = NULL;
    NEED(cuStreamCreate(&stream, HDCU_STREAM_NON_BLOCKING));
    NEED(cuStreamBeginCapture(stream, HDCU_STREAM_CAPTURE_MODE_RELAXED));
    STATUS(cuStreamDestroy(stream));
    STATUS(cuCtxSynchronize());
}

/* ---- what becomes a node ---- */

static void count_up(void *argument)
{
    ++*(volatile uint32_t *)argument;
}

static void host_node(const check *self)
{
    (void)self;
    volatile uint32_t count = 0;
    hdcu_stream stream = capturing(HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    STATUS(cuLaunchHostFunc(stream, count_up, (void *)&count));
    hdcu_graph graph = say_end(stream);
    say("%u", count);
    say_shape(graph);
    launch_and_drop(graph);
    say("%u", count);
}

static void copy_nodes(const check *self)
{
    (void)self;
    uint32_t *pinned = new_pinned(4);
    hdcu_pointer p = new_bytes(8);
    set_word(p + 4, 6);
    pinned[0] = 5;
    hdcu_stream stream = capturing(HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    STATUS(cuMemcpyHtoDAsync(p, pinned, 4, stream));
    STATUS(cuMemcpyDtoHAsync(pinned, p + 4, 4, stream));
    STATUS(cuMemcpyDtoDAsync(p + 4, p, 4, stream));
    hdcu_graph graph = say_end(stream);
    say_shape(graph);
    launch_and_drop(graph);
    say("%u", pinned[0]);
    say_words(p, 2);
}

static void pageable_copy(const check *self)
{
    (void)self;
    static uint32_t word = 5;
    hdcu_pointer p = new_bytes(4);
    hdcu_stream stream = capturing(HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    STATUS(cuMemcpyHtoDAsync(p, &word, 4, stream));
    say_state(stream);
    drop(stream);
}

static void memory_nodes(const check *self)
{
    (void)self;
    hdcu_pointer p = 0;
    hdcu_stream stream = capturing(HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    STATUS(cuMemAllocAsync(&p, 1000, stream));
    STATUS(cuMemsetD8Async(p, 1, 1000, stream));
    STATUS(cuMemFreeAsync(p, stream));
    hdcu_graph graph = say_end(stream);
    say_shape(graph);
    launch_and_drop(graph);
}

static void callback_in_capture(const check *self)
{
    (void)self;
    hdcu_stream stream = capturing(HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    STATUS(cuStreamAddCallback(stream, (hdcu_stream_callback)(void *)count_up, NULL, 0));
    say_end(stream);
}

static void values_in_capture(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    hdcu_stream stream = capturing(HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    STATUS(cuStreamWriteValue32(stream, p, 1, 0));
    say_state(stream);
    drop(stream);
}

static void graph_in_capture(const check *self)
{
    (void)self;
    hdcu_graph inner = NULL;
    hdcu_graph_exec exec = NULL;
    hdcu_stream stream = capturing(HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    inner = say_end(stream);
    NEED(cuGraphInstantiateWithFlags(&exec, inner, 0));
    NEED(cuStreamBeginCapture(stream, HDCU_STREAM_CAPTURE_MODE_GLOBAL));
    STATUS(cuGraphLaunch(exec, stream));
    hdcu_graph graph = say_end(stream);
    say_shape(graph);
    if (graph)
        NEED(cuGraphDestroy(graph));
    NEED(cuGraphExecDestroy(exec));
    NEED(cuGraphDestroy(inner));
}

static void info(const check *self)
{
    (void)self;
    hdcu_pointer p = new_bytes(4);
    unsigned state = 77;
    uint64_t id = 0, none = 77;
    hdcu_graph graph = NULL;
    const hdcu_graph_node *dependencies = NULL;
    size_t count = 77;
    hdcu_stream free_one = new_stream(0), stream = capturing(HDCU_STREAM_CAPTURE_MODE_GLOBAL);
    STATUS(cuStreamGetCaptureInfo(free_one, &state, &none, NULL, NULL, NULL));
    say("%u", state);
    STATUS(cuStreamGetCaptureInfo(stream, &state, &id, &graph, &dependencies, &count));
    say("%u:%d:%d:%zu", state, id != 0, graph != NULL, count);
    NEED(cuMemsetD32Async(p, 1, 1, stream));
    STATUS(cuStreamGetCaptureInfo(stream, &state, &id, &graph, &dependencies, &count));
    say("%zu", count);
    STATUS(cuStreamUpdateCaptureDependencies(stream, NULL, 0, HDCU_STREAM_SET_CAPTURE_DEPENDENCIES));
    STATUS(cuStreamGetCaptureInfo(stream, &state, &id, &graph, &dependencies, &count));
    say("%zu", count);
    NEED(cuMemsetD32Async(p, 2, 1, stream));
    hdcu_graph made = say_end(stream);
    say("%d", made == graph);
    say_shape(made);
    if (made)
        NEED(cuGraphDestroy(made));
}

static const check checks[] = {
    {.name = "global", .run = simple, .number = HDCU_STREAM_CAPTURE_MODE_GLOBAL},
    {.name = "thread-local", .run = simple, .number = HDCU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
    {.name = "relaxed", .run = simple, .number = HDCU_STREAM_CAPTURE_MODE_RELAXED},
    {.name = "empty", .run = empty},
    {.name = "arguments are copied", .run = arguments_are_copied},
    {.name = "begin misuse", .run = begin_misuse},
    {.name = "begin twice", .run = begin_twice},
    {.name = "begin with work pending", .run = begin_with_work_pending},
    {.name = "begin per-thread", .run = begin_per_thread},
    {.name = "end without begin", .run = end_without_begin},
    {.name = "end into null", .run = end_null, .alone = true},
    {.name = "is capturing", .run = is_capturing_null},
    {.name = "legacy beside a blocking stream", .run = legacy_beside, .number = 0},
    {.name = "legacy beside a non-blocking stream", .run = legacy_beside, .number = 1},
    {.name = "legacy record beside a blocking stream", .run = legacy_record_beside, .number = 0},
    {.name = "legacy record beside a non-blocking stream", .run = legacy_record_beside, .number = 1},
    {.name = "fork and join", .run = fork_and_join},
    {.name = "unjoined without work", .run = unjoined, .number = 0},
    {.name = "unjoined with work", .run = unjoined, .number = 1},
    {.name = "end on another stream", .run = end_on_another_stream},
    {.name = "isolation", .run = isolation},
    {.name = "wait for a never recorded event", .run = wait_for_never_recorded},
    {.name = "merge", .run = merge},
    {.name = "captured event: query", .run = captured_event, .number = 0},
    {.name = "captured event: synchronize", .run = captured_event, .number = 1},
    {.name = "captured event: elapsed", .run = captured_event, .number = 2},
    {.name = "captured event afterwards", .run = captured_event_afterwards},
    {.name = "external events", .run = external_events},
    {.name = "end in another thread: global", .run = end_in_another_thread, .number = 0},
    {.name = "end in another thread: thread-local", .run = end_in_another_thread, .number = 1},
    {.name = "end in another thread: relaxed", .run = end_in_another_thread, .number = 2},
    {.name = "exchange mode", .run = exchange},
    {.name = "invalidated", .run = invalidated},
    {.name = "destroy the captured stream", .run = destroy_captured_stream, .alone = true},
    {.name = "host node", .run = host_node},
    {.name = "copy nodes", .run = copy_nodes},
    {.name = "pageable copy", .run = pageable_copy},
    {.name = "memory nodes", .run = memory_nodes},
    {.name = "callback", .run = callback_in_capture},
    {.name = "values", .run = values_in_capture},
    {.name = "graph launch", .run = graph_in_capture},
    {.name = "info", .run = info},
};

const area area_capture = {"capture", NEEDS_CONTEXT, checks, COUNT_OF(checks)};
