/* SPDX-License-Identifier: MIT */
#include "queue/graph.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "queue/accesses.h"
#include "queue/enqueue.h"
#include "queue/record.h"
#include "queue/scheduler.h"

/* ---- making and ending ------------------------------------------------------------------------------------------- */

hdrt_status hdrt__graph_begin_call(hdrt_graph *graph, const char *function)
{
    if (!graph) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s: the graph is NULL", function);
    }
    return hdrt__device_begin(graph->device, function);
}

void hdrt__graph_hold(hdrt_graph *graph)
{
    atomic_fetch_add_explicit(&graph->references, 1, memory_order_relaxed);
}

/* Under no lock: destroy a list of instances, of which nothing is in flight. */
static void destroy_instances(hdrt_device *device, hdrt__graph_instance *instances)
{
    hdrt__scope scope;
    bool inside = instances && hdrt__device_enter(device, &scope) == HDRT_OK; /* else it is lost */
    while (instances) {
        hdrt__graph_instance *next = instances->next;
        hdrt__graph_instance_destroy(device, instances);
        instances = next;
    }
    if (inside) {
        hdrt__device_leave(device, &scope);
    }
}

static void graph_free(hdrt_graph *graph)
{
    hdrt_device *device = graph->device;
    hdrt__plan_drop(graph->plan);
    pthread_mutex_destroy(&graph->lock);
    free(graph->name);
    free(graph);
    hdrt__device_drop(device);
}

void hdrt__graph_drop(hdrt_graph *graph)
{
    if (atomic_fetch_sub_explicit(&graph->references, 1, memory_order_acq_rel) == 1) {
        destroy_instances(graph->device, graph->instances);
        graph_free(graph);
    }
}

hdrt_status hdrt_graph_create(hdrt_device *device, const hdrt_graph_options *options, hdrt_graph **out_graph)
{
    hdrt_graph_options known;
    if (!out_graph) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_graph_create: out_graph is NULL");
    }
    *out_graph = NULL;
    hdrt_status status = hdrt__device_begin(device, "hdrt_graph_create");
    if (status == HDRT_OK) {
        status = hdrt__options_read("hdrt_graph_options", options, &known, sizeof known,
                                    offsetof(hdrt_graph_options, reserved));
    }
    if (status == HDRT_OK && !hdrt__graph_instance_possible(device->driver)) {
        status = hdrt__fail(HDRT_ERROR_UNSUPPORTED, "hdrt_graph_create: the driver of device %u lacks the interface of "
                                                    "graphs: CUDA 12.0 or newer is needed",
                            device->index);
    }
    if (status != HDRT_OK) {
        return status;
    }
    hdrt_graph *graph = calloc(1, sizeof *graph);
    if (!graph || !(graph->name = strdup(known.name ? known.name : "graph"))) {
        free(graph);
        return hdrt__fail_memory(sizeof *graph, "a graph");
    }
    graph->plan = hdrt__plan_create();
    if (!graph->plan) {
        free(graph->name);
        free(graph);
        return HDRT_ERROR_OUT_OF_MEMORY;
    }
    atomic_init(&graph->references, 1);
    pthread_mutex_init(&graph->lock, NULL);
    graph->device = device;
    hdrt__device_hold(device);
    *out_graph = graph;
    return HDRT_OK;
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

static hdrt_status check_queues(const hdrt_graph *graph, hdrt_queue *const *queues, uint32_t count)
{
    if (!queues || count < 1 || count > HDRT_GRAPH_QUEUES) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_graph_begin: %u queues: 1 to %u are recorded at once",
                          queues ? count : 0, HDRT_GRAPH_QUEUES);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!queues[i] || queues[i]->device != graph->device) {
            return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_graph_begin: queue %u of %u is %s", i, count,
                              queues[i] ? "of another device than the graph" : "NULL");
        }
    }
    return HDRT_OK;
}

/* From IDLE on. Under no lock. */
static hdrt_status leave_idle(hdrt_graph *graph, hdrt__graph_state state, const char *function)
{
    pthread_mutex_lock(&graph->lock);
    bool idle = graph->state == HDRT__GRAPH_IDLE;
    if (idle) {
        graph->state = state;
    }
    pthread_mutex_unlock(&graph->lock);
    return idle ? HDRT_OK
                : hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s: graph '%s' is being recorded: end that first", function,
                             graph->name);
}

hdrt_status hdrt_graph_begin(hdrt_graph *graph, hdrt_queue *const *queues, uint32_t count)
{
    struct hdrt__graph_recording *recording;
    hdrt_status status = hdrt__graph_begin_call(graph, "hdrt_graph_begin");
    if (status == HDRT_OK) {
        status = check_queues(graph, queues, count);
    }
    if (status == HDRT_OK) {
        status = leave_idle(graph, HDRT__GRAPH_BUILDING, "hdrt_graph_begin");
    }
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt__graph_recording_create(graph, queues, count, &recording);
    pthread_mutex_lock(&graph->lock);
    graph->state = status == HDRT_OK ? HDRT__GRAPH_RECORDING : HDRT__GRAPH_IDLE;
    graph->recording = recording;
    pthread_mutex_unlock(&graph->lock);
    return status;
}

/* The recording, ended, and its plan; NULL: there is none. The graph is BUILDING then. *out_status: what broke it.
   `keep`: the plan is wanted. */
static hdrt__plan *end_recording(hdrt_graph *graph, bool keep, hdrt_status *out_status)
{
    *out_status = HDRT_OK;
    pthread_mutex_lock(&graph->lock);
    struct hdrt__graph_recording *recording = graph->recording;
    if (recording) {
        graph->recording = NULL;
        graph->state = HDRT__GRAPH_BUILDING;
    }
    pthread_mutex_unlock(&graph->lock);
    if (!recording) {
        return NULL;
    }
    *out_status = hdrt__graph_recording_end(recording, keep);
    return hdrt__graph_recording_destroy(recording);
}

void hdrt__graph_stamp(hdrt_graph *graph, hdrt__plan *plan)
{
    const hdrt__plan *old = graph->plan;
    bool same = hdrt__plan_same_topology(old, plan);
    plan->topology = same && old->topology ? old->topology : ++graph->topologies;
    for (uint32_t i = 0; i < plan->count; i++) {
        bool kept = same && hdrt__plan_same_values(&old->nodes[i], &plan->nodes[i]);
        plan->nodes[i].stamp = kept ? old->nodes[i].stamp : ++graph->stamps;
    }
}

hdrt__plan *hdrt__graph_take_plan(hdrt_graph *graph, hdrt__plan *plan)
{
    hdrt__plan *old = graph->plan;
    graph->plan = plan;
    return old;
}

hdrt_status hdrt_graph_end(hdrt_graph *graph)
{
    hdrt_status status = hdrt__graph_begin_call(graph, "hdrt_graph_end");
    if (!graph || status == HDRT_ERROR_FORKED) {
        return status;
    }
    hdrt_status broken;
    /* On a lost device too: the queues go on failing by themselves. */
    hdrt__plan *plan = end_recording(graph, true, &broken);
    if (!plan) {
        return status != HDRT_OK ? status
                                 : hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                                              "hdrt_graph_end: graph '%s' is not being recorded", graph->name);
    }
    status = status == HDRT_OK ? broken : status;
    if (status == HDRT_OK) {
        hdrt__accesses_check_plan(graph->device, graph->name, plan);
        pthread_mutex_lock(&graph->lock);
        hdrt__graph_stamp(graph, plan);
        pthread_mutex_unlock(&graph->lock);
        status = hdrt__graph_provide(graph, plan, NULL);
    }
    pthread_mutex_lock(&graph->lock);
    if (status == HDRT_OK) {
        plan = hdrt__graph_take_plan(graph, plan);
    }
    graph->state = HDRT__GRAPH_IDLE;
    pthread_mutex_unlock(&graph->lock);
    hdrt__plan_drop(plan);
    return status;
}

void hdrt_graph_destroy(hdrt_graph *graph)
{
    if (graph && !hdrt__runtime_forked(graph->device->runtime)) {
        hdrt_status broken;
        hdrt__plan_drop(end_recording(graph, false, &broken));
        hdrt__graph_drop(graph);
    }
}

uint32_t hdrt_graph_node_count(hdrt_graph *graph)
{
    if (!graph) {
        return 0;
    }
    pthread_mutex_lock(&graph->lock);
    uint32_t count = graph->recording ? hdrt__graph_recording_count(graph->recording) : graph->plan->count;
    pthread_mutex_unlock(&graph->lock);
    return count;
}

/* ---- replaying --------------------------------------------------------------------------------------------------- */

/* RESERVED: keep the plan until the operation is over, and with it the graph. */
static hdrt_status hold_plan(const hdrt__enqueue *enqueue, hdrt_graph *graph, hdrt__plan *plan)
{
    hdrt_queue *queue = enqueue->queue;
    hdrt__held *held = queue->held;
    while (held && held->plan != plan) {
        held = held->next;
    }
    if (!held) {
        held = calloc(1, sizeof *held);
        if (!held) {
            return hdrt__fail_memory(sizeof *held, "the hold of a graph");
        }
        held->plan = plan;
        held->graph = graph;
        held->next = queue->held;
        queue->held = held;
        hdrt__plan_hold(plan);
        hdrt__graph_hold(graph);
    }
    held->position = enqueue->position;
    return HDRT_OK;
}

/* RESERVED: pinned memory is used until the replay is over. */
static hdrt_status use_host_memory(const hdrt__enqueue *enqueue, const hdrt__plan *plan)
{
    hdrt_status status = HDRT_OK;
    for (uint32_t i = 0; i < plan->count && status == HDRT_OK; i++) {
        const hdrt__plan_node *node = &plan->nodes[i];
        if (node->kind == HDRT__PLAN_FOREIGN) { /* who knows what it writes */
            atomic_store(&enqueue->queue->hazard, enqueue->position);
        }
        if (node->kind != HDRT__PLAN_COPY) {
            continue;
        }
        const void *host = node->copy.dst.host ? node->copy.dst.host : node->copy.src.host;
        if (host) {
            status = hdrt__registry_use(enqueue->queue->device->runtime, host, hdrt__enqueue_event(enqueue));
        }
        if (node->copy.dst.host) {
            atomic_store(&enqueue->queue->hazard, enqueue->position);
        }
    }
    return status;
}

static hdrt_status enqueue_replay(hdrt__enqueue *enqueue, hdrt_graph *graph, hdrt__plan *plan)
{
    hdrt__op *op;
    hdrt_status status = hdrt__enqueue_reserve(enqueue, HDRT__OP_REPLAY, &op);
    if (status != HDRT_OK) {
        return status;
    }
    status = use_host_memory(enqueue, plan);
    if (status == HDRT_OK) {
        status = hold_plan(enqueue, graph, plan);
    }
    if (status != HDRT_OK) {
        return hdrt__enqueue_cancel(enqueue, status);
    }
    op->replay.graph = graph;
    op->replay.plan = plan;
    pthread_mutex_lock(&graph->lock);
    graph->last = hdrt__enqueue_event(enqueue);
    pthread_mutex_unlock(&graph->lock);
    atomic_store_explicit(&enqueue->queue->entry.last_launch, enqueue->position, memory_order_release);
    return hdrt__enqueue_publish(enqueue);
}

hdrt_status hdrt_graph_replay(hdrt_queue *queue, hdrt_graph *graph)
{
    hdrt__enqueue enqueue;
    hdrt_status status = hdrt__enqueue_begin(&enqueue, queue, "hdrt_graph_replay");
    if (status != HDRT_OK) {
        return status;
    }
    if (!graph || graph->device != queue->device) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_graph_replay: the graph is %s",
                          graph ? "of another device than the queue" : "NULL");
    }
    if (hdrt__is_recorded(queue)) {
        return hdrt__record_check("hdrt_graph_replay", HDRT__OP_REPLAY);
    }
    pthread_mutex_lock(&graph->lock);
    hdrt__plan *plan = graph->plan;
    hdrt__plan_hold(plan);
    pthread_mutex_unlock(&graph->lock);
    if (!plan->count) {
        status = hdrt__enqueue_nothing(&enqueue);
    } else {
        status = hdrt__graph_provide(graph, plan, queue);
        if (status == HDRT_OK) {
            status = enqueue_replay(&enqueue, graph, plan);
        }
    }
    hdrt__plan_drop(plan);
    return status;
}
