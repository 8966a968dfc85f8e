/* SPDX-License-Identifier: MIT */
/* Which instance a replay goes by, and its launch. */
#include "queue/graph.h"

#include <stdio.h>

#include "base/status.h"
#include "queue/scheduler.h"

/* Under the graph's lock. */
static bool is_complete(const hdrt__scheduler *scheduler, const hdrt__graph_instance *instance)
{
    return !instance->sequence ||
           (instance->stream < HDRT__INDICES &&
            instance->sequence <= atomic_load_explicit(&scheduler->completed[instance->stream], memory_order_acquire));
}

static void enter(hdrt_graph *graph, hdrt__graph_instance *instance)
{
    instance->next = graph->instances;
    graph->instances = instance;
}

/* ---- providing --------------------------------------------------------------------------------------------------- */

/* Under the graph's lock: how many instances the plan's topology has. */
static uint32_t count_instances(const hdrt_graph *graph, const hdrt__plan *plan)
{
    uint32_t count = 0;
    for (const hdrt__graph_instance *i = graph->instances; i; i = i->next) {
        count += i->topology == plan->topology;
    }
    return count;
}

/* Under the graph's lock: a replay of another queue may be in flight, and the driver would let this one wait for it. */
static bool wants_another(const hdrt_graph *graph, const hdrt_queue *queue, uint32_t count)
{
    return queue && count < HDRT__GRAPH_INSTANCES &&
           graph->last.timeline != hdrt__timeline_event(queue->entry.timeline, 0).timeline &&
           !hdrt__event_over(graph->device->runtime, graph->last, false);
}

hdrt_status hdrt__graph_provide(hdrt_graph *graph, const hdrt__plan *plan, const hdrt_queue *queue)
{
    hdrt_device *device = graph->device;
    hdrt__graph_instance *instance;
    hdrt__scope scope;
    if (!plan->count) {
        return HDRT_OK;
    }
    pthread_mutex_lock(&graph->lock);
    uint32_t count = count_instances(graph, plan);
    bool enough = count && !wants_another(graph, queue, count);
    pthread_mutex_unlock(&graph->lock);
    if (enough) {
        return HDRT_OK;
    }
    hdrt_status status = hdrt__device_enter(device, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt__graph_instance_create(device, graph->name, plan, &instance);
    hdrt__device_leave(device, &scope);
    if (status == HDRT_OK) {
        pthread_mutex_lock(&graph->lock);
        enter(graph, instance);
        pthread_mutex_unlock(&graph->lock);
    }
    return count && status != HDRT_ERROR_DEVICE_LOST ? HDRT_OK : status; /* with one, it only has to wait */
}

/* ---- launching --------------------------------------------------------------------------------------------------- */

/* Take the best one of the plan's topology; NULL: there is none that nobody has taken. */
static hdrt__graph_instance *take(hdrt_graph *graph, const hdrt__plan *plan, const hdrt__stream *stream)
{
    hdrt__graph_instance *best = NULL;
    int best_rank = -1;
    pthread_mutex_lock(&graph->lock);
    for (hdrt__graph_instance *i = graph->instances; i; i = i->next) {
        if (i->taken || i->topology != plan->topology) {
            continue;
        }
        int rank = i->sequence && i->stream == stream->entry.index ? 2 : is_complete(stream->scheduler, i) ? 1 : 0;
        if (rank > best_rank || (rank == best_rank && i->turn < best->turn)) {
            best = i;
            best_rank = rank;
        }
    }
    if (best) {
        best->taken = true;
    }
    pthread_mutex_unlock(&graph->lock);
    return best;
}

/* Give it back, launched or not. \return those that nobody needs any more and that are complete. */
static hdrt__graph_instance *give_back(hdrt_graph *graph, hdrt__graph_instance *instance, const hdrt__stream *stream,
                                       bool launched)
{
    hdrt__graph_instance *gone = NULL;
    pthread_mutex_lock(&graph->lock);
    instance->taken = false;
    instance->turn = ++graph->turns;
    if (launched) {
        instance->stream = stream->entry.index;
        instance->sequence = atomic_load(&stream->sequence) + 1;
    }
    for (hdrt__graph_instance **link = &graph->instances; *link;) {
        hdrt__graph_instance *i = *link;
        if (!i->taken && i->topology != graph->plan->topology && is_complete(stream->scheduler, i)) {
            *link = i->next;
            i->next = gone;
            gone = i;
        } else {
            link = &i->next;
        }
    }
    pthread_mutex_unlock(&graph->lock);
    return gone;
}

/* One with the plan's values, taken. What cannot be set in one that is there is built anew. */
static hdrt_status take_filled(hdrt_graph *graph, const hdrt__plan *plan, const hdrt__stream *stream,
                               hdrt__graph_instance **out_instance)
{
    hdrt__graph_instance *instance = take(graph, plan, stream);
    if (instance) {
        if (!instance->sequence) { /* before nodes are set, as in template_sequence.c; what fails shows at the launch */
            (void)HDRT__CALL(graph->device->driver, cuGraphUpload, instance->exec, stream->handle);
        }
        hdrt__call call = hdrt__graph_instance_fill(graph->device, instance, plan);
        if (!call.result) {
            *out_instance = instance;
            return HDRT_OK;
        }
        hdrt_status status = hdrt__device_check(graph->device, call, "changing graph '%s'", graph->name);
        pthread_mutex_lock(&graph->lock);
        instance->taken = false;
        instance->topology = 0; /* it may be in flight: it goes when it is complete */
        pthread_mutex_unlock(&graph->lock);
        if (status == HDRT_ERROR_DEVICE_LOST) {
            return status;
        }
    }
    hdrt_status status = hdrt__graph_instance_create(graph->device, graph->name, plan, &instance);
    if (status == HDRT_OK) {
        pthread_mutex_lock(&graph->lock);
        instance->taken = true;
        enter(graph, instance);
        pthread_mutex_unlock(&graph->lock);
        *out_instance = instance;
    }
    return status;
}

hdrt_status hdrt__graph_hand_over(hdrt_queue *queue, hdrt__stream *stream, const hdrt__op *op, uint64_t position,
                                  uint32_t *out_commands)
{
    hdrt_graph *graph = op->replay.graph;
    const hdrt__plan *plan = op->replay.plan;
    hdrt_device *device = queue->device;
    hdrt__graph_instance *instance;
    char what[64];
    hdrt_status status = take_filled(graph, plan, stream, &instance);
    if (status != HDRT_OK) {
        return status;
    }
    snprintf(what, sizeof what, "graph '%.40s'", graph->name);
    hdrt__device_stream_note(&stream->entry, atomic_load(&stream->sequence) + 1, &queue->entry, position, what);
    hdrt__call call = HDRT__CALL(device->driver, cuGraphLaunch, instance->exec, stream->handle);
    hdrt__graph_instance *gone = give_back(graph, instance, stream, !call.result);
    status = hdrt__device_check(device, call, "replaying graph '%s' of %u nodes", graph->name, plan->count);
    while (gone) {
        hdrt__graph_instance *next = gone->next;
        hdrt__graph_instance_destroy(device, gone);
        gone = next;
    }
    *out_commands = status == HDRT_OK;
    if (status == HDRT_OK) {
        hdrt__stream_work(stream, plan->count);
    }
    return status;
}
