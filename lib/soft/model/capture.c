/* SPDX-License-Identifier: MIT */
#include "soft/model/capture.h"

#include <stdlib.h>
#include <string.h>

#include "soft/model/graph.h"

void hdsoft__capture_invalidate(hdsoft__capture *capture)
{
    capture->invalidated = true;
}

static unsigned node_type(const hdsoft__task *task)
{
    switch (task->kind) {
    case HDSOFT__TASK_KERNEL: return HDCU_GRAPH_NODE_TYPE_KERNEL;
    case HDSOFT__TASK_COPY: return HDCU_GRAPH_NODE_TYPE_MEMCPY;
    case HDSOFT__TASK_FILL: return HDCU_GRAPH_NODE_TYPE_MEMSET;
    case HDSOFT__TASK_HOST: return HDCU_GRAPH_NODE_TYPE_HOST;
    case HDSOFT__TASK_WAIT_VALUE:
    case HDSOFT__TASK_WRITE_VALUE: return HDCU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    case HDSOFT__TASK_ALLOCATE: return HDCU_GRAPH_NODE_TYPE_MEM_ALLOC;
    case HDSOFT__TASK_SUSPEND:
    case HDSOFT__TASK_FREE: return HDCU_GRAPH_NODE_TYPE_MEM_FREE;
    case HDSOFT__TASK_RECORD_EVENT: return HDCU_GRAPH_NODE_TYPE_EVENT_RECORD;
    case HDSOFT__TASK_WAIT_EVENT: return HDCU_GRAPH_NODE_TYPE_WAIT_EVENT;
    default: return HDCU_GRAPH_NODE_TYPE_EMPTY;
    }
}

static void leave(hdsoft__stream *stream)
{
    stream->capture = NULL;
    free(stream->capture_nodes);
    stream->capture_nodes = NULL;
    stream->capture_count = 0;
}

/* Apply to every stream of every context. */
static void for_streams(const hdsoft__capture *capture, void (*function)(hdsoft__stream *))
{
    for (hdsoft__context *context = hdsoft__the.contexts; context; context = context->next) {
        for (hdsoft__stream *stream = context->streams; stream; stream = stream->next) {
            if (stream->capture == capture)
                function(stream);
        }
    }
}

static void free_capture(hdsoft__capture *capture)
{
    hdsoft__capture **link = &hdsoft__the.captures;
    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    for_streams(capture, leave);
    hdsoft__graph_destroy(capture->graph);
    free(capture);
}

int hdsoft__capture_begin(hdsoft__stream *stream, unsigned mode)
{
    if (stream->legacy)
        return HDCU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture)
        return HDCU_ERROR_ILLEGAL_STATE;
    hdsoft__capture *capture = calloc(1, sizeof *capture);
    if (!capture)
        return HDCU_ERROR_OUT_OF_MEMORY;
    capture->graph = hdsoft__graph_create();
    if (!capture->graph || !hdsoft__handle_add(capture->graph, HDSOFT__GRAPH)) {
        hdsoft__graph_destroy(capture->graph);
        free(capture);
        return HDCU_ERROR_OUT_OF_MEMORY;
    }
    capture->id = ++hdsoft__the.next_id;
    capture->thread = hdsoft__thread_state()->id;
    capture->mode = mode;
    capture->origin = stream;
    capture->next = hdsoft__the.captures;
    hdsoft__the.captures = capture;
    stream->capture = capture;
    return 0;
}

/* Whether some other stream of the capture is at a node that the origin stream does not depend on. */
static bool unjoined(const hdsoft__capture *capture)
{
    const hdsoft__graph *graph = capture->graph;
    for (size_t i = 0; i < graph->count; i++)
        graph->nodes[i]->mark = 0;
    const hdsoft__stream *origin = capture->origin;
    for (size_t i = 0; i < origin->capture_count; i++)
        origin->capture_nodes[i]->mark = 1;
    /* Nodes are in the order of capture, so dependents come later than what they depend on. */
    for (size_t i = graph->count; i-- > 0;) {
        const hdsoft__node *node = graph->nodes[i];
        for (size_t d = 0; d < node->dependency_count; d++)
            node->dependencies[d].from->mark |= node->mark;
    }
    for (const hdsoft__stream *stream = origin->context->streams; stream; stream = stream->next) {
        for (size_t i = 0; stream->capture == capture && i < stream->capture_count; i++) {
            if (!stream->capture_nodes[i]->mark)
                return true;
        }
    }
    return false;
}

int hdsoft__capture_end(hdsoft__stream *stream, hdsoft__graph **out)
{
    *out = NULL;
    hdsoft__capture *capture = stream->capture;
    if (!capture)
        return HDCU_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) {
        int status = capture->invalidated ? HDCU_ERROR_STREAM_CAPTURE_INVALIDATED
                                          : HDCU_ERROR_STREAM_CAPTURE_UNMATCHED;
        hdsoft__capture_invalidate(capture);
        return status;
    }
    int status = 0;
    if (capture->mode != HDCU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != hdsoft__thread_state()->id)
        status = HDCU_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    else if (capture->invalidated)
        status = HDCU_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (unjoined(capture))
        status = HDCU_ERROR_STREAM_CAPTURE_UNJOINED;
    if (!status) {
        *out = capture->graph;
        capture->graph = NULL;
    }
    free_capture(capture);
    return status;
}

bool hdsoft__capture_blocks_legacy(const hdsoft__context *context)
{
    for (const hdsoft__stream *stream = context->streams; stream; stream = stream->next) {
        if (stream->capture && !(stream->flags & HDCU_STREAM_NON_BLOCKING))
            return true;
    }
    return false;
}

int hdsoft__capture_legacy_work(const hdsoft__context *context)
{
    int status = 0;
    for (hdsoft__stream *stream = context->streams; stream; stream = stream->next) {
        if (stream->capture && !(stream->flags & HDCU_STREAM_NON_BLOCKING)) {
            hdsoft__capture_invalidate(stream->capture);
            status = HDCU_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    return status;
}

int hdsoft__capture_unsafe_call(const hdsoft__thread *thread)
{
    if (!hdsoft__the.captures || thread->capture_mode == HDCU_STREAM_CAPTURE_MODE_RELAXED)
        return 0;
    int status = 0;
    for (hdsoft__capture *capture = hdsoft__the.captures; capture; capture = capture->next) {
        bool mine = capture->thread == thread->id && capture->mode != HDCU_STREAM_CAPTURE_MODE_RELAXED;
        bool others = thread->capture_mode == HDCU_STREAM_CAPTURE_MODE_GLOBAL &&
                      capture->mode == HDCU_STREAM_CAPTURE_MODE_GLOBAL;
        if (mine || others) {
            hdsoft__capture_invalidate(capture);
            status = HDCU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return status;
}

int hdsoft__capture_synchronize(const hdsoft__context *context)
{
    int status = 0;
    for (hdsoft__capture *capture = hdsoft__the.captures; capture; capture = capture->next) {
        if (capture->origin->context == context) {
            hdsoft__capture_invalidate(capture);
            status = HDCU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return status;
}

int hdsoft__capture_depend(hdsoft__stream *stream, hdsoft__node *const *nodes, size_t count, bool replace)
{
    size_t kept = replace ? 0 : stream->capture_count;
    hdsoft__node **grown = malloc((kept + count + 1) * sizeof *grown);
    if (!grown)
        return HDCU_ERROR_OUT_OF_MEMORY;
    if (kept)
        memcpy(grown, stream->capture_nodes, kept * sizeof *grown);
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < kept && grown[at] != nodes[i])
            at++;
        if (at == kept)
            grown[kept++] = nodes[i];
    }
    free(stream->capture_nodes);
    stream->capture_nodes = grown;
    stream->capture_count = kept;
    return 0;
}

int hdsoft__capture_follow(hdsoft__stream *stream, hdsoft__node *node)
{
    return hdsoft__capture_depend(stream, &node, 1, true);
}

int hdsoft__capture_task(hdsoft__stream *stream, hdsoft__task *task)
{
    hdsoft__node *node = hdsoft__graph_add(stream->capture->graph, node_type(task), task, stream->capture_nodes,
                                           stream->capture_count);
    return node ? hdsoft__capture_follow(stream, node) : HDCU_ERROR_OUT_OF_MEMORY;
}

int hdsoft__capture_record(hdsoft__stream *stream, hdsoft__event *event)
{
    size_t bytes = stream->capture_count * sizeof *event->capture_nodes;
    hdsoft__node **nodes = malloc(bytes + 1);
    if (!nodes)
        return HDCU_ERROR_OUT_OF_MEMORY;
    if (bytes)
        memcpy(nodes, stream->capture_nodes, bytes);
    free(event->capture_nodes);
    event->capture_nodes = nodes;
    event->capture_count = stream->capture_count;
    event->capture_id = stream->capture->id;
    return 0;
}

hdsoft__capture *hdsoft__capture_of_event(const hdsoft__event *event)
{
    hdsoft__capture *capture = event->capture_id ? hdsoft__the.captures : NULL;
    while (capture && capture->id != event->capture_id)
        capture = capture->next;
    return capture;
}

int hdsoft__capture_wait(hdsoft__stream *stream, const hdsoft__event *event)
{
    hdsoft__capture *capture = hdsoft__capture_of_event(event);
    if (event->capture_id && !capture)
        return HDCU_ERROR_INVALID_VALUE; /* its capture has ended, and with it the event's meaning */
    if (!capture) {
        hdsoft__capture_invalidate(stream->capture);
        return HDCU_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (capture->invalidated)
        return HDCU_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->legacy) {
        hdsoft__capture_invalidate(capture);
        return HDCU_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (stream->capture && stream->capture != capture) {
        hdsoft__capture_invalidate(stream->capture);
        hdsoft__capture_invalidate(capture);
        return HDCU_ERROR_STREAM_CAPTURE_MERGE;
    }
    stream->capture = capture;
    return hdsoft__capture_depend(stream, event->capture_nodes, event->capture_count, false);
}

void hdsoft__capture_drop_stream(hdsoft__stream *stream)
{
    hdsoft__capture *capture = stream->capture;
    if (!capture)
        return;
    if (capture->origin == stream) {
        free_capture(capture);
        return;
    }
    hdsoft__capture_invalidate(capture);
    leave(stream);
}
