/* SPDX-License-Identifier: MIT */
#include "queue/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "queue/commit.h"

typedef struct hdrt__graph_recording {
    hdrt_graph *graph;
    hdrt__timeline *timeline;
    uint32_t queue_count;
    hdrt__recorded_queue *queues;
    pthread_mutex_t lock;
    /* Under lock: */
    hdrt__plan *plan;
    uint32_t *events; /* frontiers, queue_count numbers each; value 1 is the first */
    uint32_t event_count, event_capacity;
    hdrt_status broken; /* HDRT_OK: it is not */
    hdrt__failure *failure;
} recording;

/* Under the queue's lock; NULL: it is not recorded. */
static hdrt__recorded_queue *recorded_of(const hdrt_queue *queue)
{
    const hdrt__held *held = hdrt__is_recorded(queue) ? queue->held : NULL;
    while (held && !held->recording) {
        held = held->next;
    }
    return held ? held->recording : NULL;
}

/* ---- breaking ---------------------------------------------------------------------------------------------------- */

/* Captured work is lost: the thread's message says why. Under no lock but a stream's. */
static void break_off(recording *of, hdrt_status status)
{
    hdrt__failure *failure = hdrt__failure_create(status, hdrt_last_error());
    pthread_mutex_lock(&of->lock);
    if (of->broken == HDRT_OK) {
        of->broken = status;
        of->failure = failure;
        failure = NULL;
    }
    pthread_mutex_unlock(&of->lock);
    hdrt__failure_drop(failure);
}

/* HDRT_OK, or what broke it. Under the recording's lock. */
static hdrt_status check_broken(const recording *of)
{
    return of->broken == HDRT_OK ? HDRT_OK : hdrt__fail_with(of->broken, hdrt__failure_text(of->failure));
}

static hdrt_status look_broken(recording *of)
{
    pthread_mutex_lock(&of->lock);
    hdrt_status status = check_broken(of);
    pthread_mutex_unlock(&of->lock);
    return status;
}

/* ---- the caller's own work --------------------------------------------------------------------------------------- */

/* Under the recording's lock. */
static uint32_t list_frontier(const recording *of, const hdrt__recorded_queue *recorded, uint32_t *after)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < of->queue_count; i++) {
        if (recorded->frontier[i]) {
            after[count++] = recorded->frontier[i] - 1;
        }
    }
    return count;
}

/* Under the recording's lock: the newest node is the queue's. */
static void come_to_node(const recording *of, hdrt__recorded_queue *recorded)
{
    memset(recorded->frontier, 0, of->queue_count * sizeof *recorded->frontier);
    recorded->frontier[recorded->index] = of->plan->count;
}

/* Takes the part over. */
static hdrt_status add_part(hdrt__recorded_queue *recorded, const char *function, hdrt__foreign *part)
{
    recording *of = recorded->recording;
    uint32_t after[HDRT_GRAPH_QUEUES];
    pthread_mutex_lock(&of->lock);
    uint32_t count = list_frontier(of, recorded, after);
    hdrt_status status = hdrt__plan_add_foreign(of->plan, function, part, after, count);
    if (status == HDRT_OK) {
        come_to_node(of, recorded);
    }
    pthread_mutex_unlock(&of->lock);
    if (status != HDRT_OK) {
        hdrt__foreign_drop(part);
    }
    return status;
}

/*
 * Under the stream's commit lock, inside the device's scope. A broken recording goes on capturing: until it is ended
 * nothing that the caller enqueues there runs.
 */
static hdrt_status cut(hdrt__recorded_queue *recorded, const char *function, bool goes_on)
{
    hdrt__capture *capture = &recorded->capture;
    recording *of = recorded->recording;
    hdrt__foreign *part = NULL;
    hdrt_status status = look_broken(of);
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt__capture_cut(capture, recorded->queue, function, &part);
    if (part) {
        status = add_part(recorded, function, part);
    }
    if (status == HDRT_OK && goes_on && !capture->is_on) {
        status = hdrt__capture_begin(capture, recorded->queue, function);
    }
    if (status != HDRT_OK) {
        break_off(of, status);
        hdrt__capture_leave(capture, recorded->queue);
        if (goes_on && !hdrt__device_is_lost(recorded->queue->device)) {
            (void)hdrt__capture_begin(capture, recorded->queue, function);
        }
        status = look_broken(of);
    }
    return status;
}

/* Its stream may be captured. Does not change while the queue is recorded. */
static bool is_captured(const hdrt_queue *queue)
{
    return atomic_load_explicit(&queue->foreign_work, memory_order_relaxed);
}

hdrt_status hdrt__record_cut(hdrt_queue *queue, const char *function)
{
    hdrt__scope scope;
    hdrt_status status = HDRT_OK;
    if (!hdrt__is_recorded(queue) || !is_captured(queue)) {
        return HDRT_OK;
    }
    pthread_mutex_lock(&queue->stream->commit); /* who ends the recording needs it too */
    pthread_mutex_lock(&queue->lock);
    hdrt__recorded_queue *recorded = recorded_of(queue);
    pthread_mutex_unlock(&queue->lock);
    if (recorded && (status = hdrt__device_enter(queue->device, &scope)) != HDRT_OK) {
        break_off(recorded->recording, status);
    } else if (recorded) {
        status = recorded->capture.is_on ? cut(recorded, function, true) : look_broken(recorded->recording);
        hdrt__device_leave(queue->device, &scope);
    }
    pthread_mutex_unlock(&queue->stream->commit);
    return status;
}

/* ---- beginning and ending ---------------------------------------------------------------------------------------- */

/* Events of the recording mean nothing to others: their timeline has failed. */
static hdrt_status make_timeline(recording *of)
{
    hdrt_status status = hdrt__timeline_acquire(of->graph->device->runtime, NULL, NULL, &of->timeline);
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__failure *failure = hdrt__failure_create(
        HDRT_ERROR_EVENT_FAILED,
        "an event of a graph's recording: only queues of that recording can wait for it, until it ends");
    hdrt__timeline_fail(of->timeline, 1, failure);
    hdrt__failure_drop(failure);
    return HDRT_OK;
}

static void recording_free(recording *of)
{
    if (of->timeline) {
        hdrt__timeline_retire(of->timeline, NULL);
    }
    for (uint32_t i = 0; of->queues && i < of->queue_count; i++) {
        free(of->queues[i].frontier);
    }
    pthread_mutex_destroy(&of->lock);
    hdrt__failure_drop(of->failure);
    free(of->events);
    free(of->queues);
    free(of);
}

static recording *recording_new(hdrt_graph *graph, hdrt_queue *const *queues, uint32_t count)
{
    recording *of = calloc(1, sizeof *of);
    if (!of) {
        hdrt__fail_memory(sizeof *of, "a graph's recording");
        return NULL;
    }
    pthread_mutex_init(&of->lock, NULL);
    of->graph = graph;
    of->queue_count = count;
    of->queues = calloc(count, sizeof *of->queues);
    bool made = of->queues != NULL;
    for (uint32_t i = 0; made && i < count; i++) {
        of->queues[i] = (hdrt__recorded_queue){
            .recording = of, .queue = queues[i], .index = i, .frontier = calloc(count, sizeof(uint32_t))};
        made = of->queues[i].frontier != NULL;
    }
    if (!made) {
        hdrt__fail_memory(count * count * sizeof(uint32_t), "a graph's recording");
    } else {
        of->plan = hdrt__plan_create();
        made = of->plan && make_timeline(of) == HDRT_OK;
    }
    if (!made) {
        hdrt__plan_drop(of->plan);
        recording_free(of);
        return NULL;
    }
    return of;
}

/*
 * Before a stream is captured all that the queue has is handed over, its waits too, and has a mark behind it, so that
 * it goes on and others can wait for it. Under no lock.
 */
static hdrt_status settle(hdrt_queue *queue)
{
    bool needed = is_captured(queue) && !hdrt__is_recorded(queue);
    return needed ? hdrt__enqueue_foreign(queue, "hdrt_graph_begin") : HDRT_OK;
}

/* The queue is recorded: nothing is published any more but flights, which have no commands. */
static hdrt_status begin_capture(hdrt__recorded_queue *recorded)
{
    hdrt_queue *queue = recorded->queue;
    hdrt__scope scope;
    hdrt_status status = hdrt__wait_committed(queue, hdrt__queue_position(queue), "hdrt_graph_begin");
    if (status == HDRT_OK) {
        status = hdrt__device_enter(queue->device, &scope);
    }
    if (status != HDRT_OK) {
        return status;
    }
    pthread_mutex_lock(&queue->stream->commit);
    status = hdrt__capture_begin(&recorded->capture, queue, "hdrt_graph_begin");
    pthread_mutex_unlock(&queue->stream->commit);
    hdrt__device_leave(queue->device, &scope);
    return status;
}

/* Under the stream's commit lock. On a lost device nothing is left to do. */
static void end_capture(hdrt__recorded_queue *recorded, bool keep)
{
    hdrt_device *device = recorded->queue->device;
    hdrt__scope scope;
    if (!recorded->capture.is_on) {
        return;
    }
    hdrt_status status = hdrt__device_enter(device, &scope);
    if (status != HDRT_OK && !hdrt__device_is_lost(device)) { /* a stream that stays captured is of no use to anybody */
        status = hdrt__device_enter(device, &scope);
    }
    if (status != HDRT_OK) {
        break_off(recorded->recording, status);
        return;
    }
    if (keep) {
        (void)cut(recorded, "hdrt_graph_end", false);
    }
    hdrt__capture_leave(&recorded->capture, recorded->queue);
    hdrt__device_leave(device, &scope);
}

static void detach(hdrt__recorded_queue *recorded, bool keep)
{
    hdrt_queue *queue = recorded->queue;
    bool captured = is_captured(queue);
    if (captured) {
        pthread_mutex_lock(&queue->stream->commit);
        end_capture(recorded, keep);
    }
    pthread_mutex_lock(&queue->lock);
    hdrt__held **link = &queue->held;
    while (*link != &recorded->held) {
        link = &(*link)->next;
    }
    *link = recorded->held.next;
    atomic_store(&queue->is_recorded, false);
    pthread_mutex_unlock(&queue->lock);
    if (captured) {
        pthread_mutex_unlock(&queue->stream->commit);
    }
    hdrt__queue_drop(queue);
}

/* Under the queue's lock. */
static hdrt_status check_queue(hdrt_queue *queue)
{
    if (hdrt__is_recorded(queue)) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "hdrt_graph_begin: queue '%s' is being recorded already: each queue can be once",
                          HDRT__QUEUE_NAME(queue));
    }
    return atomic_load(&queue->state) == HDRT__QUEUE_FAILED ? hdrt__queue_failed_status(queue) : HDRT_OK;
}

/* What other threads enqueue on a queue that is recorded and then is not is lost: so all are looked at before. */
static hdrt_status check_queues(hdrt_queue *const *queues, uint32_t count)
{
    hdrt_status status = HDRT_OK;
    for (uint32_t i = 0; i < count && status == HDRT_OK; i++) {
        pthread_mutex_lock(&queues[i]->lock);
        status = check_queue(queues[i]);
        pthread_mutex_unlock(&queues[i]->lock);
    }
    return status;
}

static hdrt_status attach(hdrt__recorded_queue *recorded)
{
    hdrt_queue *queue = recorded->queue;
    pthread_mutex_lock(&queue->lock);
    hdrt_status status = check_queue(queue);
    if (status == HDRT_OK) {
        hdrt__queue_hold(queue);
        recorded->held = (hdrt__held){.next = queue->held, .recording = recorded, .position = UINT64_MAX};
        queue->held = &recorded->held;
        atomic_store(&queue->is_recorded, true);
    }
    pthread_mutex_unlock(&queue->lock);
    if (status == HDRT_OK && is_captured(queue)) {
        status = begin_capture(recorded);
        if (status != HDRT_OK) {
            detach(recorded, false);
        }
    }
    return status;
}

hdrt_status hdrt__graph_recording_create(hdrt_graph *graph, hdrt_queue *const *queues, uint32_t count,
                                   recording **out_recording)
{
    recording *of = recording_new(graph, queues, count);
    hdrt_status status = of ? check_queues(queues, count) : HDRT_ERROR_OUT_OF_MEMORY;
    uint32_t attached = 0;
    for (uint32_t i = 0; i < count && status == HDRT_OK; i++) {
        status = settle(queues[i]); /* first all: one may wait for another */
    }
    while (status == HDRT_OK && attached < count) {
        status = attach(&of->queues[attached]);
        attached += status == HDRT_OK;
    }
    if (of && status != HDRT_OK) {
        while (attached) {
            detach(&of->queues[--attached], false);
        }
        hdrt__plan_drop(of->plan);
        recording_free(of);
        of = NULL;
    }
    *out_recording = of;
    return status;
}

hdrt_status hdrt__graph_recording_end(recording *of, bool keep)
{
    for (uint32_t i = 0; i < of->queue_count; i++) {
        detach(&of->queues[i], keep);
    }
    return look_broken(of);
}

hdrt__plan *hdrt__graph_recording_destroy(recording *of)
{
    hdrt__plan *plan = of->plan;
    recording_free(of);
    return plan;
}

uint32_t hdrt__graph_recording_count(recording *of)
{
    pthread_mutex_lock(&of->lock);
    uint32_t count = of->plan->count;
    pthread_mutex_unlock(&of->lock);
    return count;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

hdrt_status hdrt__record_refuse(const char *function, const char *what)
{
    return hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                      "%s: the queue is being recorded into a graph, which holds no %s: end the recording first",
                      function, what);
}

hdrt_status hdrt__record_check(const char *function, hdrt__op_kind kind)
{
    switch (kind) {
    case HDRT__OP_NOTHING:
    case HDRT__OP_LAUNCH:
    case HDRT__OP_COPY:
    case HDRT__OP_REGION:
    case HDRT__OP_FILL:
        return HDRT_OK;
    case HDRT__OP_HOST:
        return hdrt__record_refuse(function, "host calls");
    case HDRT__OP_TIMESTAMP:
        return hdrt__record_refuse(function, "timestamps");
    case HDRT__OP_FREE:
        return hdrt__record_refuse(function, "allocations and frees");
    case HDRT__OP_REPLAY:
        return hdrt__record_refuse(function, "other graphs");
    default:
        return hdrt__record_refuse(function, "waits for others and events of the caller's");
    }
}

/* Under the recording's lock. */
static hdrt_status add_node(recording *of, hdrt__recorded_queue *recorded, const char *function, const hdrt__op *op)
{
    uint32_t after[HDRT_GRAPH_QUEUES], count = list_frontier(of, recorded, after);
    hdrt_status status = check_broken(of);
    if (status == HDRT_OK) {
        status = hdrt__plan_add(of->plan, function, op, after, count);
    }
    if (status == HDRT_OK) {
        come_to_node(of, recorded);
    }
    return status;
}

hdrt_status hdrt__record_operation(hdrt__enqueue *enqueue)
{
    hdrt__recorded_queue *recorded = recorded_of(enqueue->queue);
    recording *of = recorded->recording;
    pthread_mutex_lock(&of->lock);
    hdrt_status status = add_node(of, recorded, enqueue->function, &enqueue->recorded);
    pthread_mutex_unlock(&of->lock);
    hdrt__op_release(enqueue->queue, &enqueue->recorded, true);
    return status;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* Under the recording's lock: a copy of the frontier. \return its value; 0: no memory. */
static uint64_t keep_frontier(recording *of, const uint32_t *frontier)
{
    size_t numbers = of->queue_count;
    const uint32_t *newest = of->event_count ? of->events + (of->event_count - 1) * numbers : NULL;
    if (newest && memcmp(newest, frontier, numbers * sizeof *frontier) == 0) {
        return of->event_count;
    }
    if (of->event_count == of->event_capacity) {
        uint32_t capacity = of->event_capacity ? of->event_capacity * 2 : 16;
        uint32_t *events = realloc(of->events, capacity * numbers * sizeof *events);
        if (!events) {
            return 0;
        }
        of->events = events;
        of->event_capacity = capacity;
    }
    memcpy(of->events + of->event_count++ * numbers, frontier, numbers * sizeof *frontier);
    return of->event_count;
}

bool hdrt__record_event(hdrt_queue *queue, hdrt_event *out_event)
{
    if (!hdrt__is_recorded(queue)) {
        return false;
    }
    bool cut_off = hdrt__record_cut(queue, "hdrt_queue_record") == HDRT_OK;
    pthread_mutex_lock(&queue->lock);
    hdrt__recorded_queue *recorded = recorded_of(queue);
    if (recorded) {
        recording *of = recorded->recording;
        pthread_mutex_lock(&of->lock);
        uint64_t value = cut_off ? keep_frontier(of, recorded->frontier) : 0;
        pthread_mutex_unlock(&of->lock);
        /* Without memory, or broken, it is an event that no queue knows, so that a wait for it fails. */
        *out_event = hdrt__timeline_event(of->timeline, value ? value : UINT64_MAX);
    }
    pthread_mutex_unlock(&queue->lock);
    return recorded != NULL;
}

/* The queue's next node comes after the event too. */
static hdrt_status follow_event(recording *of, hdrt__recorded_queue *recorded, hdrt_event event)
{
    pthread_mutex_lock(&of->lock);
    hdrt_status status = check_broken(of);
    if (status == HDRT_OK && event.value <= of->event_count) {
        const uint32_t *frontier = of->events + (event.value - 1) * of->queue_count;
        for (uint32_t i = 0; i < of->queue_count; i++) {
            if (frontier[i] > recorded->frontier[i]) {
                recorded->frontier[i] = frontier[i];
            }
        }
    } else if (status == HDRT_OK) {
        status = hdrt__fail(HDRT_ERROR_OUT_OF_MEMORY, "hdrt_queue_wait: there was no memory for this event");
    }
    pthread_mutex_unlock(&of->lock);
    return status;
}

/* Under the queue's lock. */
static hdrt_status wait_for(hdrt_queue *queue, hdrt__recorded_queue *recorded, hdrt_event event)
{
    recording *of = recorded->recording;
    if (event.timeline == hdrt__timeline_event(of->timeline, 0).timeline && event.value) {
        return follow_event(of, recorded, event);
    }
    hdrt__failure *failure;
    hdrt_status status = hdrt__event_look(queue->device->runtime, event, false, &failure);
    if (status == HDRT_NOT_READY) {
        status = hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                            "hdrt_queue_wait: queue '%s' is being recorded into a graph, which cannot wait for what is "
                            "outside of it: let the queue that it is replayed on wait",
                            HDRT__QUEUE_NAME(queue));
    } else if (status == HDRT_ERROR_EVENT_FAILED || status == HDRT_ERROR_DEVICE_LOST) {
        hdrt__fail_with(status, hdrt__failure_text(failure));
    } else if (status != HDRT_OK) {
        status = hdrt__fail(status, "hdrt_queue_wait: event {0x%llx, %llu} is of no timeline of this runtime",
                            (unsigned long long)event.timeline, (unsigned long long)event.value);
    }
    hdrt__failure_drop(failure);
    return status;
}

bool hdrt__record_wait(hdrt_queue *queue, hdrt_event event, hdrt_status *out_status)
{
    if (!hdrt__is_recorded(queue)) {
        return false;
    }
    *out_status = hdrt__record_cut(queue, "hdrt_queue_wait");
    if (*out_status != HDRT_OK) {
        return true;
    }
    pthread_mutex_lock(&queue->lock);
    hdrt__recorded_queue *recorded = recorded_of(queue);
    if (recorded) {
        *out_status = wait_for(queue, recorded, event);
    }
    pthread_mutex_unlock(&queue->lock);
    return recorded != NULL;
}
