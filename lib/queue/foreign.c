/* SPDX-License-Identifier: MIT */
#include "queue/foreign.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "driver/error.h"

/* ---- parts ------------------------------------------------------------------------------------------------------- */

void hdrt__foreign_hold(hdrt__foreign *part)
{
    atomic_fetch_add_explicit(&part->references, 1, memory_order_relaxed);
}

/* Nobody can do anything about a failure. */
static void destroy_graph(const hdrt_device *device, hdcu_graph graph)
{
    hdrt__call call = HDRT__CALL(device->driver, cuGraphDestroy, graph);
    if (call.result) {
        hdrt__log(HDRT_LOG_WARN, "captured work: %s failed: %s", call.text, hdrt__result_name(call.result));
    }
}

void hdrt__foreign_drop(hdrt__foreign *part)
{
    hdrt__scope scope;
    if (!part || atomic_fetch_sub_explicit(&part->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    hdrt_device *device = part->device;
    if (hdrt__device_enter(device, &scope) == HDRT_OK) { /* else it is lost */
        destroy_graph(device, part->graph);
        hdrt__device_leave(device, &scope);
    }
    free(part);
    hdrt__device_drop(device);
}

/* ---- the driver's captures --------------------------------------------------------------------------------------- */

static bool is_possible(const hdrt__driver_table *driver)
{
    return driver->cuStreamBeginCapture && driver->cuStreamEndCapture && driver->cuStreamGetCaptureInfo &&
           driver->cuGraphGetNodes && driver->cuGraphGetEdges && driver->cuGraphNodeGetType &&
           driver->cuGraphAddChildGraphNode && driver->cuGraphExecChildGraphNodeSetParams;
}

/* What of our capture is there: ACTIVE, INVALIDATED, or NONE if the caller has ended it. */
static hdrt__call look(const hdrt__capture *capture, const hdrt_queue *queue, unsigned *out_state,
                       hdcu_graph *out_graph)
{
    uint64_t id = 0;
    hdrt__call call = HDRT__CALL(queue->device->driver, cuStreamGetCaptureInfo, queue->stream->handle, out_state, &id,
                                 out_graph, NULL, NULL);
    if (!call.result && *out_state == HDCU_STREAM_CAPTURE_STATUS_ACTIVE && capture->id && id != capture->id) {
        *out_state = HDCU_STREAM_CAPTURE_STATUS_NONE; /* what is there now is his own */
    }
    return call;
}

static hdrt_status begin_failed(hdrt__call call, hdrt_queue *queue, const char *function)
{
    switch (call.result) {
    case HDCU_ERROR_STREAM_CAPTURE_UNSUPPORTED:
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                          "%s: queue '%s' is on a default stream, which the driver does not capture: adopt a stream "
                          "that was created",
                          function, HDRT__QUEUE_NAME(queue));
    case HDCU_ERROR_ILLEGAL_STATE:
        return hdrt__fail(HDRT_ERROR_CAPTURING,
                          "%s: the stream of queue '%s' is being captured: end the capture first", function,
                          HDRT__QUEUE_NAME(queue));
    default:
        return hdrt__device_check(queue->device, call, "%s: capturing the stream of queue '%s'", function,
                                  HDRT__QUEUE_NAME(queue));
    }
}

hdrt_status hdrt__capture_begin(hdrt__capture *capture, hdrt_queue *queue, const char *function)
{
    const hdrt__driver_table *driver = queue->device->driver;
    hdrt__stream *stream = queue->stream;
    hdrt__stream_mark *mark;
    unsigned state = HDCU_STREAM_CAPTURE_STATUS_NONE;
    if (!is_possible(driver)) {
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                          "%s: the driver of device %u cannot capture the work that the caller enqueues on the stream "
                          "of queue '%s': CUDA 12.0 or newer is needed",
                          function, queue->device->index, HDRT__QUEUE_NAME(queue));
    }
    hdrt__call call = HDRT__CALL(driver, cuStreamIsCapturing, stream->handle, &state);
    if (!call.result && state != HDCU_STREAM_CAPTURE_STATUS_NONE) {
        call.result = HDCU_ERROR_ILLEGAL_STATE; /* before a mark gets into it */
    }
    if (!call.result) {
        call = hdrt__stream_mark_for(stream, atomic_load(&stream->sequence), &mark);
    }
    if (!call.result) {
        call = HDRT__CALL(driver, cuStreamBeginCapture, stream->handle, HDCU_STREAM_CAPTURE_MODE_RELAXED);
        capture->is_on = !call.result;
        capture->id = 0;
    }
    if (!call.result) {
        call = HDRT__CALL(driver, cuStreamGetCaptureInfo, stream->handle, &state, &capture->id, NULL, NULL, NULL);
    }
    return call.result ? begin_failed(call, queue, function) : HDRT_OK;
}

/* What the caller did, and what he is to do. */
static hdrt_status spoilt(hdrt_queue *queue, const char *function, const char *what)
{
    return hdrt__fail(HDRT_ERROR_CAPTURING,
                      "%s: what the caller enqueued on the stream of queue '%s' is lost: %s; end the recording, and "
                      "record again without that",
                      function, HDRT__QUEUE_NAME(queue), what);
}

static hdrt_status cut_failed(hdrt__call call, hdrt_queue *queue, const char *function)
{
    switch (call.result) {
    case HDCU_ERROR_STREAM_CAPTURE_UNJOINED:
        return spoilt(queue, function,
                      "other streams go on with it that were not joined before this call (a CUevent recorded in each, "
                      "and waited for in this stream)");
    case HDCU_ERROR_STREAM_CAPTURE_INVALIDATED:
        return spoilt(queue, function,
                      "the capture was invalidated by a call that is forbidden while a stream is captured");
    case HDCU_ERROR_ILLEGAL_STATE:
        return spoilt(queue, function, "the caller ended the stream's capture himself, which hdrt_graph_end does");
    default:
        return hdrt__device_check(queue->device, call, "%s: what the caller enqueued on the stream of queue '%s'",
                                  function, HDRT__QUEUE_NAME(queue));
    }
}

/* How many nodes were captured. A capture that cannot be gone on with is told as ending it would be. */
static hdrt__call count_nodes(const hdrt__capture *capture, const hdrt_queue *queue, size_t *out_count)
{
    unsigned state = HDCU_STREAM_CAPTURE_STATUS_NONE;
    hdcu_graph graph = NULL;
    *out_count = 0;
    hdrt__call call = look(capture, queue, &state, &graph);
    if (!call.result && state == HDCU_STREAM_CAPTURE_STATUS_ACTIVE) {
        call = HDRT__CALL(queue->device->driver, cuGraphGetNodes, graph, NULL, out_count);
    } else if (!call.result) {
        call.result = state == HDCU_STREAM_CAPTURE_STATUS_NONE ? HDCU_ERROR_ILLEGAL_STATE
                                                               : HDCU_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    return call;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* Of the host. */
#define NO_MEMORY ((hdrt__call){HDCU_ERROR_OUT_OF_MEMORY, NULL})

typedef struct shape_node {
    hdcu_graph_node handle;
    uint64_t number;
} shape_node;

static int by_handle(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const shape_node *)a)->handle, y = (uintptr_t)((const shape_node *)b)->handle;
    return x < y ? -1 : x > y;
}

static uint64_t number_of(const shape_node *nodes, size_t count, hdcu_graph_node handle)
{
    shape_node key = {handle, 0};
    const shape_node *found = bsearch(&key, nodes, count, sizeof *nodes, by_handle);
    return found ? found->number : UINT64_MAX;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (b + 1) * UINT64_C(0xc2b2ae3d27d4eb4f);
    return (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
}

/* What a kernel node has beside its parameters: a node that is set to another's parameters keeps its own (an H200, the shape
 * of clusters, without an error). */
static uint64_t hash_attributes(const hdrt__driver_table *driver, hdcu_graph_node node)
{
    static const unsigned asked[] = {
        HDCU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, HDCU_LAUNCH_ATTRIBUTE_COOPERATIVE,
        HDCU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,    HDCU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
        HDCU_LAUNCH_ATTRIBUTE_PRIORITY,             HDCU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
        HDCU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,      HDCU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
        HDCU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
    };
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        hdcu_launch_attribute_value value;
        memset(&value, 0, sizeof value);
        if (!HDRT__CALL(driver, cuGraphKernelNodeGetAttribute, node, asked[i], &value).result) { /* else it has none */
            for (size_t at = 0; at < sizeof value.bytes; at += sizeof hash) {
                uint64_t word;
                memcpy(&word, value.bytes + at, sizeof word);
                hash = mix(hash, word);
            }
        }
    }
    return hash;
}

/* The nodes by their numbers in the order of the capture, their kinds, and of kernels what else they have. */
static hdrt__call hash_nodes(const hdrt__driver_table *driver, hdcu_graph graph, shape_node *nodes, size_t count,
                             uint64_t *shape, bool *nested)
{
    hdcu_graph_node *handles = malloc(count * sizeof *handles);
    if (!handles) {
        return NO_MEMORY;
    }
    hdrt__call call = HDRT__CALL(driver, cuGraphGetNodes, graph, handles, &count);
    for (size_t i = 0; i < count && !call.result; i++) {
        unsigned kind = 0;
        call = HDRT__CALL(driver, cuGraphNodeGetType, handles[i], &kind);
        nodes[i] = (shape_node){handles[i], i};
        *shape += mix(i, kind);
        if (kind == HDCU_GRAPH_NODE_TYPE_KERNEL) {
            *shape += mix(i, hash_attributes(driver, handles[i]));
        }
        *nested |= kind == HDCU_GRAPH_NODE_TYPE_GRAPH;
    }
    free(handles);
    qsort(nodes, count, sizeof *nodes, by_handle);
    return call;
}

/* In whatever order the driver tells them. */
static hdrt__call hash_edges(const hdrt__driver_table *driver, hdcu_graph graph, const shape_node *nodes, size_t count,
                             uint64_t *shape)
{
    size_t edges = 0;
    hdrt__call call = HDRT__CALL(driver, cuGraphGetEdges, graph, NULL, NULL, &edges);
    if (call.result || !edges) {
        return call;
    }
    hdcu_graph_node *ends = malloc(2 * edges * sizeof *ends);
    if (!ends) {
        return NO_MEMORY;
    }
    call = HDRT__CALL(driver, cuGraphGetEdges, graph, ends, ends + edges, &edges);
    for (size_t i = 0; i < edges && !call.result; i++) {
        *shape += mix(number_of(nodes, count, ends[i]) << 32, number_of(nodes, count, ends[edges + i]));
    }
    free(ends);
    return call;
}

/* Another shape than all others. */
static uint64_t fresh_shape(void)
{
    static _Atomic uint64_t fresh;
    return mix(UINT64_MAX - 1, atomic_fetch_add(&fresh, 1));
}

static hdrt__call find_shape(const hdrt__driver_table *driver, hdrt__foreign *part, size_t count)
{
    shape_node *nodes = malloc(count * sizeof *nodes);
    if (!nodes) {
        return NO_MEMORY;
    }
    bool nested = false;
    part->shape = count;
    hdrt__call call = hash_nodes(driver, part->graph, nodes, count, &part->shape, &nested);
    if (!call.result) {
        call = hash_edges(driver, part->graph, nodes, count, &part->shape);
    }
    /* Some edges are more than a pair, as those of dependent launches, or there is more than these nodes. */
    if (call.result == HDCU_ERROR_LOSSY_QUERY || (!call.result && nested)) {
        part->shape = fresh_shape();
        call.result = HDCU_SUCCESS;
    }
    free(nodes);
    return call;
}

/* ---- cutting ----------------------------------------------------------------------------------------------------- */

hdrt_status hdrt__capture_cut(hdrt__capture *capture, hdrt_queue *queue, const char *function,
                              hdrt__foreign **out_part)
{
    size_t count;
    *out_part = NULL;
    hdrt__call call = count_nodes(capture, queue, &count);
    if (call.result) {
        return cut_failed(call, queue, function);
    }
    if (!count) {
        return HDRT_OK;
    }
    hdrt__foreign *part = calloc(1, sizeof *part);
    if (!part) {
        return hdrt__fail_memory(sizeof *part, "captured work");
    }
    call = HDRT__CALL(queue->device->driver, cuStreamEndCapture, queue->stream->handle, &part->graph);
    if (call.result) {
        free(part);
        return cut_failed(call, queue, function);
    }
    capture->is_on = false;
    atomic_init(&part->references, 1);
    hdrt__device_hold(queue->device);
    part->device = queue->device;
    call = find_shape(queue->device->driver, part, count);
    if (call.result) {
        hdrt__foreign_drop(part);
        return call.text ? cut_failed(call, queue, function)
                         : hdrt__fail_memory(count * sizeof(shape_node), "captured work");
    }
    *out_part = part;
    return HDRT_OK;
}

/* \return whether it may still be on. */
static bool end_capture(const hdrt__capture *capture, const hdrt_queue *queue)
{
    unsigned state = HDCU_STREAM_CAPTURE_STATUS_NONE;
    hdcu_graph graph = NULL;
    hdrt__call call = look(capture, queue, &state, &graph);
    if (!call.result && state == HDCU_STREAM_CAPTURE_STATUS_NONE) {
        return false;
    }
    graph = NULL;
    call = HDRT__CALL(queue->device->driver, cuStreamEndCapture, queue->stream->handle, &graph);
    if (call.result) {
        return true;
    }
    destroy_graph(queue->device, graph);
    return false;
}

void hdrt__capture_leave(hdrt__capture *capture, hdrt_queue *queue)
{
    /* A failure mostly means that the capture is over, which only the driver knows. */
    for (int tries = 0; capture->is_on && tries < 3 && !hdrt__device_is_lost(queue->device); tries++) {
        capture->is_on = end_capture(capture, queue);
    }
    if (capture->is_on && !hdrt__device_is_lost(queue->device)) {
        hdrt__log(HDRT_LOG_ERROR, "the capture of the stream of queue '%s' could not be ended",
                  HDRT__QUEUE_NAME(queue));
    }
    capture->is_on = false;
}
