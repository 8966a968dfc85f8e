/* SPDX-License-Identifier: MIT */
/*
 * Stream capture: which streams a capture spans, what spoils it, and the nodes that it leaves. All under the driver's
 * lock. A capture that was spoilt stays until its origin stream ends it.
 *
 *   none -> active -> ended (a graph)
 *             |-> invalidated -> ended (901)
 */
#ifndef HDSOFT_MODEL_CAPTURE_H
#define HDSOFT_MODEL_CAPTURE_H

#include "soft/model/driver.h"

int hdsoft__capture_begin(hdsoft__stream *stream, unsigned mode);
/* The graph becomes the caller's; NULL with any status but 0. */
int hdsoft__capture_end(hdsoft__stream *stream, hdsoft__graph **out);
void hdsoft__capture_invalidate(hdsoft__capture *capture);
/* Work for the legacy stream while a blocking stream of the context is captured: 906, and that capture is spoilt. */
int hdsoft__capture_legacy_work(const hdsoft__context *context);
/* The same question without the damage. */
bool hdsoft__capture_blocks_legacy(const hdsoft__context *context);
/* The calling thread is about to make a call that CUDA names unsafe: 900, and what it spoils, or 0. */
int hdsoft__capture_unsafe_call(const hdsoft__thread *thread);
/* cuCtxSynchronize: no mode saves a capture of the context from it. */
int hdsoft__capture_synchronize(const hdsoft__context *context);
/* Add what would have been enqueued; takes the task over. */
int hdsoft__capture_task(hdsoft__stream *stream, hdsoft__task *task);
/* Add a node that the caller made with hdsoft__graph_add for stream->capture->graph: work follows it from now on. */
int hdsoft__capture_follow(hdsoft__stream *stream, hdsoft__node *node);
/* cuEventRecord in a captured stream, and cuStreamWaitEvent on such an event, or by such a stream. */
int hdsoft__capture_record(hdsoft__stream *stream, hdsoft__event *event);
int hdsoft__capture_wait(hdsoft__stream *stream, const hdsoft__event *event);
/* Set or extend what the stream's next node depends on. */
int hdsoft__capture_depend(hdsoft__stream *stream, hdsoft__node *const *nodes, size_t count, bool replace);
/* The capture that an event was last recorded in, while it is on; NULL. */
hdsoft__capture *hdsoft__capture_of_event(const hdsoft__event *event);
/* The stream is being destroyed. */
void hdsoft__capture_drop_stream(hdsoft__stream *stream);

#endif
