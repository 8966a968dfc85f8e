/* SPDX-License-Identifier: MIT */
/**
 * \file hdrt/graph.h
 * Explicit graphs: work that is enqueued once, on one or several queues, and replayed as often as wanted.
 *
 * Between hdrt_graph_begin and hdrt_graph_end, what is enqueued on the queues is recorded instead of run. Each
 * operation becomes a node, numbered from 0 in the order of the calls. Nodes of one queue follow each other; nodes of
 * different queues are unordered unless hdrt_queue_wait orders them: during a recording hdrt_queue_record gives an
 * event of the recording, which only its queues can wait for, and only until it ends.
 *
 * Recorded can be: launches that are not cooperative; copies between device memory and pinned host memory or device
 * memory of the same device, of regions too; fills whose pattern has up to 4 bytes or repeats 4; operations without
 * effect (an empty grid, 0 bytes); waits among the recording queues, and for events that are complete; the caller's own
 * work (below). Everything else returns HDRT_ERROR_UNSUPPORTED, records nothing and leaves the recording as it was.
 * Memory that a graph uses must be there whenever a replay runs; kernels' modules are kept by the graph, but not what
 * the caller's own work uses.
 *
 * The caller's own work: on a queue whose stream is the caller's too (hdrt_queue_adopt, hdrt_queue_stream in
 * hdrt/interop.h), what he enqueues there himself, from any thread, is recorded in call order with the queue's
 * operations. All of it from one to the next call that enqueues on the queue, records an event of it or lets it wait,
 * or to hdrt_graph_end, is one node; where there is nothing, there is none. Such a node counts as any other, from that
 * next call on, also if the call then fails; hdrt_graph_set_launch and the others do not change it.
 *
 * For that the driver captures the stream, in relaxed mode, from hdrt_graph_begin to hdrt_graph_end, and its rules for
 * captured streams (CUDA Driver API, stream management) hold: the stream must not be queried, synchronised or waited
 * for; other streams that go on with its work by a CUevent must be joined by another one before the next call on the
 * queue; CUevents of one such call's work mean nothing after the next; and recorded queues are ordered with each other
 * by hdrt_queue_wait, not by CUevents. If a rule is broken, or the caller ends the capture, work of his is lost. Then
 * the next such call on that queue returns HDRT_ERROR_CAPTURING and says what happened (hdrt_queue_record: a wait for
 * its event does); from there on so does every call that would be recorded on any queue of the recording, and
 * hdrt_graph_end. The same, with its status, if a driver call for it fails. Until the recording is ended nothing that
 * is enqueued on the stream runs.
 *
 * A replay is one operation of the queue that it is enqueued on, ordered like any other: it comes after what is before
 * it there, and its event means that all its nodes are complete. Several replays may be in flight, on several queues.
 */
#ifndef HDRT_GRAPH_H
#define HDRT_GRAPH_H

#ifndef HDRT_H
#error "include <hdrt.h>, not its parts"
#endif

/** Most nodes of a graph. */
#define HDRT_GRAPH_NODES 65536u
/** Most queues of a recording. */
#define HDRT_GRAPH_QUEUES 64u

/** Options of hdrt_graph_create. Start from HDRT_GRAPH_OPTIONS_INIT. */
typedef struct hdrt_graph_options {
    size_t size;          /**< sizeof(hdrt_graph_options) */
    const char *name;     /**< for messages; NULL: "graph". Copied. */
    uint32_t reserved[8]; /**< zero */
} hdrt_graph_options;

#define HDRT_GRAPH_OPTIONS_INIT HDRT_INIT_(hdrt_graph_options)

/** Create an empty graph. \return HDRT_OK; HDRT_ERROR_UNSUPPORTED  the driver has no graphs (before CUDA 12.0);
 *     HDRT_ERROR_INVALID_ARGUMENT, HDRT_ERROR_OUT_OF_MEMORY, HDRT_ERROR_DEVICE_LOST, HDRT_ERROR_FORKED. */
HDRT_EXPORT hdrt_status hdrt_graph_create(hdrt_device *device, const hdrt_graph_options *options,
                                          hdrt_graph **out_graph);

/** Drop the caller's reference. Returns at once; replays already enqueued still run. Ends a recording: what was
 *  recorded is dropped. */
HDRT_EXPORT void hdrt_graph_destroy(hdrt_graph *graph);

/**
 * Record what is enqueued on these queues from now on. Their earlier work is not touched and goes on. If the caller may
 * enqueue on a queue's stream too, this call waits, if need be, until what was enqueued before is handed over, as
 * hdrt_queue_stream does.
 *
 * A graph may be recorded again, whatever it has: until hdrt_graph_end, replays are of what it had before.
 * \param queues  `count` queues of the graph's device, 1 to HDRT_GRAPH_QUEUES, each once
 * \return HDRT_OK; HDRT_ERROR_INVALID_ARGUMENT  the graph is being recorded, or a queue is, or is of another device;
 *     HDRT_ERROR_QUEUE_FAILED, HDRT_ERROR_OUT_OF_MEMORY, HDRT_ERROR_DEVICE_LOST, HDRT_ERROR_FORKED. If the caller may
 *     enqueue on a queue's stream also HDRT_ERROR_CAPTURING  he captures it; HDRT_WOULD_BLOCK  as hdrt_queue_stream;
 *     HDRT_ERROR_UNSUPPORTED  it is one of CUDA's default streams, or the driver lacks the interface (before CUDA
 *     12.0); HDRT_ERROR_DRIVER, HDRT_ERROR_OUT_OF_DEVICE_MEMORY. On failure no queue is recorded, no stream captured;
 *     what other threads enqueued on the queues during the call may be dropped then.
 */
HDRT_EXPORT hdrt_status hdrt_graph_begin(hdrt_graph *graph, hdrt_queue *const *queues, uint32_t count);

/**
 * End the recording: replays are of it from now on, and the queues run what they are given again.
 *
 * Cheap where nothing but values changed since the last recording: nodes of the same kinds in the same order keep what
 * was built for them. Makes driver calls otherwise.
 * \return HDRT_OK; HDRT_ERROR_INVALID_ARGUMENT  no recording; HDRT_ERROR_DEVICE_LOST, HDRT_ERROR_FORKED. In all other
 *     cases the graph is what it was before the recording, which is over: HDRT_ERROR_DRIVER,
 *     HDRT_ERROR_OUT_OF_DEVICE_MEMORY, HDRT_ERROR_OUT_OF_MEMORY  it could not be built; HDRT_ERROR_CAPTURING, or what a
 *     call returned before  the caller's own work was lost; HDRT_ERROR_UNSUPPORTED  some of that work allocates or frees
 *     memory, which the driver takes into no other graph, or with it there are more than HDRT_GRAPH_NODES nodes.
 */
HDRT_EXPORT hdrt_status hdrt_graph_end(hdrt_graph *graph);

/** How many nodes the graph has; during a recording, how many were recorded, so the next one's number, where no work of
 *  the caller's own waits to become one. Directly after a call that added a node: that one's number + 1. 0 for NULL. */
HDRT_EXPORT uint32_t hdrt_graph_node_count(hdrt_graph *graph);

/**
 * Enqueue a replay of the graph as it is now: later changes do not touch it. A graph without nodes: an ordered no-op.
 * \return as hdrt_launch_with; HDRT_ERROR_INVALID_ARGUMENT also for another device's graph; HDRT_ERROR_UNSUPPORTED
 *     the queue is being recorded; HDRT_ERROR_DRIVER, HDRT_ERROR_OUT_OF_DEVICE_MEMORY also  the driver could not build
 *     what it needs: nothing was enqueued.
 */
HDRT_EXPORT hdrt_status hdrt_graph_replay(hdrt_queue *queue, hdrt_graph *graph);

/* ---- changing nodes -------------------------------------------------------------------------------------------- */

/*
 * These change a node of a graph that is not being recorded, for replays enqueued later. Arguments are checked as
 * those of the operation are. \return as it; HDRT_ERROR_INVALID_ARGUMENT also for a node of another kind,
 * HDRT_ERROR_NOT_FOUND for a number that the graph does not have. On failure nothing changed.
 */

/** New arguments for a launch, and a new geometry if `grid` is not NULL; the kernel stays. */
HDRT_EXPORT hdrt_status hdrt_graph_set_launch(hdrt_graph *graph, uint32_t node, const hdrt_grid *grid, hdrt_args args);

/** New places and sizes for a copy, as hdrt_copy_region has them; host memory must be pinned. A plain copy of n bytes
 *  has a width of n and a height and depth of 1, and pitches do not matter. */
HDRT_EXPORT hdrt_status hdrt_graph_set_copy(hdrt_graph *graph, uint32_t node, const hdrt_region_side *dst,
                                            const hdrt_region_side *src, uint64_t width, uint64_t height,
                                            uint64_t depth);

/** A new place, pattern and count for a fill, as hdrt_fill has them. */
HDRT_EXPORT hdrt_status hdrt_graph_set_fill(hdrt_graph *graph, uint32_t node, hdrt_ptr dst, const void *pattern,
                                            uint32_t pattern_bytes, uint64_t count);

#endif
