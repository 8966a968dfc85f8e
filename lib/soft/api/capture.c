/* SPDX-License-Identifier: MIT */
#include "soft/model/capture.h"

#include "soft/api/entry.h"
#include "soft/model/graph.h"

hdcu_result hdsoft__cuStreamBeginCapture(hdcu_stream handle, unsigned mode)
{
    hdsoft__stream *stream;
    if (mode > HDCU_STREAM_CAPTURE_MODE_RELAXED)
        return HDCU_ERROR_INVALID_VALUE;
    int status = hdsoft__stream_of(handle, &stream);
    return (hdcu_result)(status ? status : hdsoft__capture_begin(stream, mode));
}

hdcu_result hdsoft__cuStreamEndCapture(hdcu_stream handle, hdcu_graph *out)
{
    hdsoft__stream *stream;
    hdsoft__graph *graph = NULL;
    int status = hdsoft__stream_of(handle, &stream);
    if (!status)
        status = hdsoft__capture_end(stream, &graph);
    if (out)
        *out = graph;
    else
        hdsoft__graph_destroy(graph);
    return (hdcu_result)status;
}

static unsigned status_of(const hdsoft__stream *stream)
{
    if (!stream->capture)
        return HDCU_STREAM_CAPTURE_STATUS_NONE;
    return stream->capture->invalidated ? HDCU_STREAM_CAPTURE_STATUS_INVALIDATED : HDCU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static int find(hdcu_stream handle, const void *out, hdsoft__stream **stream)
{
    int status = out ? hdsoft__stream_of(handle, stream) : HDCU_ERROR_INVALID_VALUE;
    if (!status && (*stream)->legacy && hdsoft__capture_blocks_legacy((*stream)->context))
        status = HDCU_ERROR_STREAM_CAPTURE_IMPLICIT;
    return status;
}

hdcu_result hdsoft__cuStreamIsCapturing(hdcu_stream handle, unsigned *out)
{
    hdsoft__stream *stream;
    int status = find(handle, out, &stream);
    if (!status)
        *out = status_of(stream);
    return (hdcu_result)status;
}

hdcu_result hdsoft__cuStreamGetCaptureInfo(hdcu_stream handle, unsigned *out, uint64_t *id, hdcu_graph *graph,
                                           const hdcu_graph_node **nodes, size_t *count)
{
    hdsoft__stream *stream;
    int status = find(handle, out, &stream);
    if (status)
        return (hdcu_result)status;
    *out = status_of(stream);
    if (*out != HDCU_STREAM_CAPTURE_STATUS_ACTIVE)
        return 0;
    if (id)
        *id = stream->capture->id;
    if (graph)
        *graph = stream->capture->graph;
    if (nodes)
        *nodes = (const hdcu_graph_node *)stream->capture_nodes;
    if (count)
        *count = stream->capture_count;
    return 0;
}

hdcu_result hdsoft__cuStreamUpdateCaptureDependencies(hdcu_stream handle, hdcu_graph_node *nodes, size_t count,
                                                      unsigned flags)
{
    hdsoft__stream *stream;
    if ((!nodes && count) || flags > HDCU_STREAM_SET_CAPTURE_DEPENDENCIES)
        return HDCU_ERROR_INVALID_VALUE;
    int status = hdsoft__stream_for_work(handle, &stream);
    if (!status && !stream->capture)
        status = HDCU_ERROR_ILLEGAL_STATE;
    for (size_t i = 0; !status && i < count; i++) {
        if (!hdsoft__handle_is(nodes[i], HDSOFT__NODE) || nodes[i]->graph != stream->capture->graph)
            status = HDCU_ERROR_INVALID_VALUE;
    }
    if (!status)
        status = hdsoft__capture_depend(stream, nodes, count, flags == HDCU_STREAM_SET_CAPTURE_DEPENDENCIES);
    return (hdcu_result)status;
}

hdcu_result hdsoft__cuThreadExchangeStreamCaptureMode(unsigned *mode)
{
    hdsoft__thread *thread = hdsoft__thread_state();
    if (!mode || *mode > HDCU_STREAM_CAPTURE_MODE_RELAXED)
        return HDCU_ERROR_INVALID_VALUE;
    unsigned before = thread->capture_mode;
    thread->capture_mode = *mode;
    *mode = before;
    return 0;
}
