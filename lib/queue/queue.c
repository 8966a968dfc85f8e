/* SPDX-License-Identifier: MIT */
#include "queue/queue.h"

#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/log.h"
#include "base/status.h"
#include "queue/commit.h"
#include "queue/dispatcher.h"
#include "queue/graph.h"
#include "queue/park.h"
#include "queue/scheduler.h"
#include "driver/thread.h"

hdrt__memory *hdrt__queue_memory(const hdrt_queue *queue)
{
    return queue->scheduler->memory;
}

/* ---- references -------------------------------------------------------------------------------------------------- */

void hdrt__queue_hold(hdrt_queue *queue)
{
    atomic_fetch_add_explicit(&queue->references, 1, memory_order_relaxed);
}

/* Unless it is ending. */
static bool try_hold(void *owner)
{
    hdrt_queue *queue = owner;
    unsigned references = atomic_load(&queue->references);
    while (references && !atomic_compare_exchange_weak(&queue->references, &references, references + 1)) {
    }
    return references != 0;
}

/* Modules and graphs that nothing enqueued uses any more. \return them, off the queue. */
static hdrt__held *held_done(hdrt_queue *queue, uint64_t completed)
{
    hdrt__held *done = NULL;
    pthread_mutex_lock(&queue->lock);
    for (hdrt__held **link = &queue->held; *link;) {
        hdrt__held *held = *link;
        if (held->position <= completed) {
            *link = held->next;
            held->next = done;
            done = held;
        } else {
            link = &held->next;
        }
    }
    pthread_mutex_unlock(&queue->lock);
    return done;
}

static void release_held(hdrt__held *held)
{
    while (held) {
        hdrt__held *next = held->next;
        if (held->module) {
            hdrt__module_release(held->module);
        } else {
            hdrt__plan_drop(held->plan);
            hdrt__graph_drop(held->graph);
        }
        free(held);
        held = next;
    }
}

/* Nobody has it any more, and nothing of it is enqueued or in flight. */
static void end(hdrt_queue *queue)
{
    hdrt_device *device = queue->device;
    hdrt__park_tidy(queue);
    hdrt__device_queue_leave(device, &queue->entry);
    hdrt__order_end(device->runtime->order, hdrt__timeline_event(queue->entry.timeline, 0));
    hdrt__timeline_retire(queue->entry.timeline, queue->failure);
    release_held(held_done(queue, UINT64_MAX));
    for (uint8_t i = 0; i < queue->point_count; i++) {
        hdrt__stream_drop(hdrt__points(queue)[i].stream);
    }
    free(hdrt__points_shrink(queue, 0));
    hdrt__stream_drop(queue->stream);
    hdrt__failure_drop(queue->failure);
    pthread_mutex_destroy(&queue->lock);
    free(queue->entry.name);
    free(queue);
    hdrt__device_drop(device);
}

void hdrt__queue_drop(hdrt_queue *queue)
{
    if (atomic_fetch_sub_explicit(&queue->references, 1, memory_order_acq_rel) == 1) {
        end(queue);
    }
}

/* ---- the timeline's view ----------------------------------------------------------------------------------------- */

static void source_drop(void *owner)
{
    hdrt__queue_drop(owner);
}

static hdrt_status source_progress(void *owner, uint64_t value, bool patient)
{
    hdrt_queue *queue = owner;
    if (!patient && atomic_load_explicit(&queue->scheduler->launching, memory_order_relaxed)) {
        return HDRT_WOULD_BLOCK; /* the driver would answer after that, and the launch take longer */
    }
    return hdrt__queue_poll(queue, value, patient);
}

bool hdrt__queue_add_flight(hdrt_queue *queue)
{
    hdrt__op *op = hdrt__ring_reserve(&queue->ring, &queue->scheduler->segments);
    if (op) {
        op->kind = HDRT__OP_NOTHING;
        op->detail = 1;
        hdrt__ring_publish(&queue->ring);
    }
    return op != NULL;
}

/* Whatever is enqueued now is told by a flight; what is enqueued later sees that somebody watches. */
static void *source_want(void *owner, uint64_t value)
{
    hdrt_queue *queue = owner;
    hdrt__dispatcher_want(queue->scheduler, true);
    pthread_mutex_lock(&queue->lock);
    if (value <= hdrt__queue_position(queue) && value > atomic_load(&queue->entry.timeline->completed) &&
        atomic_load(&queue->state) == HDRT__QUEUE_OPEN && !hdrt__queue_add_flight(queue)) {
        hdrt__log(HDRT_LOG_ERROR, "no memory to let queue '%s' tell that it has come to position %llu: it may come late",
                  HDRT__QUEUE_NAME(queue), (unsigned long long)value);
    }
    pthread_mutex_unlock(&queue->lock);
    hdrt__dispatcher_wake(queue);
    return queue->scheduler;
}

static void source_unwant(void *wanted)
{
    hdrt__dispatcher_want(wanted, false);
}

const hdrt__timeline_source hdrt__queue_source = {try_hold, source_drop, source_progress, source_want, source_unwant};

void hdrt__queue_landed(hdrt_queue *queue, uint64_t position)
{
    hdrt__timeline_complete(queue->entry.timeline, position);
    release_held(held_done(queue, position));
}

void hdrt__points_wait(hdrt_queue *queue)
{
    do {
        for (unsigned tries = 1; atomic_load_explicit(&queue->points_busy, memory_order_relaxed); tries++) {
            if (tries % 128 == 0) {
                sched_yield(); /* who has it may have lost its processor */
            }
        }
    } while (atomic_exchange_explicit(&queue->points_busy, true, memory_order_acquire));
}

hdrt__point *hdrt__points_shrink(hdrt_queue *queue, uint8_t count)
{
    hdrt__point *many = NULL;
    if (queue->point_count > HDRT__POINTS_INLINE && count <= HDRT__POINTS_INLINE) {
        many = queue->points_many;
        for (uint8_t i = 0; i < count; i++) {
            queue->points_inline[i] = many[i];
        }
    }
    queue->point_count = count;
    return many;
}

bool hdrt__queue_settle(hdrt_queue *queue)
{
    hdrt__stream *gone[HDRT__POINTS];
    uint8_t count = 0, left = 0;
    for (uint8_t i = 0; i < queue->point_count && !count; i++) {
        count = hdrt__point_complete(&hdrt__points(queue)[i]);
    }
    if (!count) {
        return queue->point_count == 0;
    }
    count = 0;
    hdrt__points_lock(queue);
    for (uint8_t i = 0; i < queue->point_count; i++) {
        if (hdrt__point_complete(&hdrt__points(queue)[i])) {
            queue->point_own &= i != 0;
            gone[count++] = hdrt__points(queue)[i].stream;
        } else {
            hdrt__points(queue)[left++] = hdrt__points(queue)[i];
        }
    }
    hdrt__point *unused = hdrt__points_shrink(queue, left);
    hdrt__points_unlock(queue);
    free(unused);
    while (count) {
        hdrt__stream_drop(gone[--count]);
    }
    return left == 0;
}

bool hdrt__queue_follows(const hdrt_queue *queue, const hdrt__stream *stream)
{
    for (uint8_t i = 0; i < queue->point_count; i++) {
        if (hdrt__points(queue)[i].stream == stream && hdrt__points(queue)[i].sequence == atomic_load(&stream->sequence)) {
            return true;
        }
    }
    return false;
}

hdrt_status hdrt__queue_poll(hdrt_queue *queue, uint64_t value, bool patient)
{
    hdrt__point points[HDRT__POINTS];
    hdrt_status status = HDRT_OK;
    uint64_t committed = atomic_load(&queue->entry.timeline->committed); /* before the points, which may be newer */
    if (value > committed) {
        hdrt__dispatcher_wake(queue); /* it may lie there since nobody wanted it */
    }
    hdrt__points_lock(queue);
    uint8_t count = queue->point_count;
    bool own = queue->point_own, complete = true, enough = true;
    for (uint8_t i = 0; i < count; i++) {
        points[i] = hdrt__points(queue)[i];
        hdrt__stream_hold(points[i].stream);
    }
    hdrt__points_unlock(queue);
    for (uint8_t i = 0; i < count; i++) {
        uint64_t sequence = points[i].sequence;
        hdrt_status asked = hdrt__stream_ask(points[i].stream, own && i == 0 ? queue : NULL,
                                             value < committed ? value : committed, &sequence, patient);
        status = status < 0 || asked == HDRT_OK ? status : asked;
        complete &= hdrt__point_complete(&points[i]);
        points[i].sequence = sequence;
        enough &= points[i].since > value || hdrt__point_complete(&points[i]);
        hdrt__stream_drop(points[i].stream);
    }
    if (enough && !hdrt__device_is_lost(queue->device)) {
        hdrt__queue_landed(queue, complete || value > committed ? committed : value);
    }
    return status;
}

/* ---- failing ----------------------------------------------------------------------------------------------------- */

hdrt_status hdrt__queue_failed_status(const hdrt_queue *queue)
{
    return hdrt__fail_with(HDRT_ERROR_QUEUE_FAILED, hdrt__failure_text(queue->failure));
}

hdrt_status hdrt__queue_fail(hdrt_queue *queue, uint64_t position)
{
    hdrt__buffer text = HDRT__BUFFER_INIT;
    if (hdrt__device_is_lost(queue->device)) {
        return hdrt__device_lost_status(queue->device);
    }
    hdrt__buffer_format(&text, "queue '%s' failed at position %llu: %s; what is enqueued after it is dropped until "
                               "hdrt_queue_clear_error",
                        HDRT__QUEUE_NAME(queue), (unsigned long long)position, hdrt_last_error());
    hdrt__failure *failure = text.failed ? NULL : hdrt__failure_create(HDRT_ERROR_QUEUE_FAILED, (char *)text.bytes);
    hdrt__buffer_free(&text);
    pthread_mutex_lock(&queue->lock);
    hdrt__failure *old = queue->failure;
    queue->failure = failure;
    queue->dropped = hdrt__queue_position(queue);
    atomic_store(&queue->state, HDRT__QUEUE_FAILED);
    hdrt_status status = hdrt__queue_failed_status(queue);
    hdrt__timeline_fail(queue->entry.timeline, position, failure); /* before anybody can clear it */
    pthread_mutex_unlock(&queue->lock);
    hdrt__failure_drop(old);
    return status;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static hdrt_status check_options(const hdrt_queue_options *options)
{
    if ((unsigned)options->back_pressure > HDRT_BACK_PRESSURE_GROW ||
        (unsigned)options->submission > HDRT_SUBMISSION_DISPATCHER) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "hdrt_queue_options: back_pressure is %d and submission %d: one is no value of its enum",
                          (int)options->back_pressure, (int)options->submission);
    }
    return HDRT_OK;
}

static uint8_t class_of(const hdrt_device *device, const hdrt__scheduler *scheduler, int32_t priority)
{
    int least = device->limits.priority_least, greatest = device->limits.priority_greatest;
    int clamped = priority > least ? least : priority < greatest ? greatest : priority;
    uint32_t class = (uint32_t)(clamped - greatest);
    return (uint8_t)(class < scheduler->classes ? class : scheduler->classes - 1);
}

static hdrt_queue *queue_new(hdrt_device *device, hdrt__scheduler *scheduler, const hdrt_queue_options *options)
{
    hdrt_queue *queue = aligned_alloc(64, sizeof *queue);
    if (queue) {
        memset(queue, 0, sizeof *queue);
    }
    if (!queue || (options->name && !(queue->entry.name = strdup(options->name)))) {
        hdrt__fail_memory(sizeof *queue, "a queue");
        free(queue);
        return NULL;
    }
    atomic_init(&queue->references, 1);
    atomic_init(&queue->urgency, UINT8_MAX);
    queue->device = device;
    queue->scheduler = scheduler;
    hdrt__mutex_init_short(&queue->lock);
    queue->entry.exclusive = options->exclusive;
    queue->back_pressure = (uint8_t)options->back_pressure;
    queue->submission = (uint8_t)options->submission;
    queue->class = class_of(device, scheduler, options->priority);
    queue->ring_limit = options->ring_limit ? options->ring_limit : HDRT__RING_LIMIT_DEFAULT;
    return queue;
}

static void queue_free(hdrt_queue *queue)
{
    hdrt__stream_drop(queue->stream);
    pthread_mutex_destroy(&queue->lock);
    free(queue->entry.name);
    free(queue);
}

/* The device's scheduler; only the first queue has to enter the scope for it. */
static hdrt__scheduler *scheduler_of(hdrt_device *device)
{
    hdrt__scope scope;
    hdrt__scheduler *scheduler = atomic_load(&device->scheduler.state);
    if (!scheduler && hdrt__device_enter(device, &scope) == HDRT_OK) {
        scheduler = hdrt__device_scheduler(device);
        hdrt__device_leave(device, &scope);
    }
    return scheduler;
}

hdrt_status hdrt__queue_make(hdrt_device *device, const hdrt_queue_options *options, hdcu_stream stream, bool held,
                             hdrt_queue **out_queue)
{
    hdrt_status status = check_options(options);
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__scheduler *scheduler = scheduler_of(device);
    if (!scheduler) {
        return hdrt__device_is_lost(device) ? hdrt__device_lost_status(device) : HDRT_ERROR_OUT_OF_MEMORY;
    }
    hdrt_queue *queue = queue_new(device, scheduler, options);
    if (!queue) {
        return HDRT_ERROR_OUT_OF_MEMORY;
    }
    if (stream) {
        queue->adopted = true;
        atomic_store(&queue->foreign_work, true);
        status = hdrt__stream_create(scheduler, queue->class, false, stream, &queue->stream);
    }
    if (status == HDRT_OK) {
        status = hdrt__timeline_acquire(device->runtime, &hdrt__queue_source, queue, &queue->entry.timeline);
    }
    if (status != HDRT_OK) {
        queue_free(queue);
        return status;
    }
    hdrt__device_queue_enter(device, &queue->entry);
    if (stream) {
        hdrt__order_foreign(device->runtime->order, hdrt__timeline_event(queue->entry.timeline, 0),
                            HDRT__QUEUE_NAME(queue));
    }
    queue->is_default = !held;
    if (held) {
        hdrt__device_hold(device);
    }
    *out_queue = queue;
    return HDRT_OK;
}

hdrt_status hdrt_queue_create(hdrt_device *device, const hdrt_queue_options *options, hdrt_queue **out_queue)
{
    hdrt_queue_options known;
    if (!out_queue) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_queue_create: out_queue is NULL");
    }
    *out_queue = NULL;
    hdrt_status status = hdrt__device_begin(device, "hdrt_queue_create");
    if (status == HDRT_OK) {
        status = hdrt__options_read("hdrt_queue_options", options, &known, sizeof known,
                                    offsetof(hdrt_queue_options, reserved));
    }
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__device_drain(device);
    return hdrt__queue_make(device, &known, NULL, true, out_queue);
}

void hdrt__queue_end_values(hdrt_queue *queue)
{
    hdrt__failure *failure = hdrt__failure_create(HDRT_ERROR_EVENT_FAILED,
                                                  "the queue was destroyed before this value was enqueued");
    pthread_mutex_lock(&queue->lock);
    hdrt__timeline_fail(queue->entry.timeline, hdrt__queue_position(queue) + 1, failure);
    pthread_mutex_unlock(&queue->lock);
    hdrt__failure_drop(failure);
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

/* Its waits may be for work of others that no flight of its own stands for: let one. (Not after it has failed, which may be
 * at any moment: nothing would drop it, and whoever serves the queue would turn round for ever.) */
static void leave_flight(hdrt_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    if (atomic_load(&queue->state) != HDRT__QUEUE_OPEN) {
        pthread_mutex_unlock(&queue->lock);
        return;
    }
    if (hdrt__queue_add_flight(queue)) {
        atomic_store(&queue->closed, HDRT__CLOSED_FLIGHT);
    } else {
        hdrt__log(HDRT_LOG_ERROR, "no memory to let queue '%s' end in order: what waits for its last waits fails",
                  HDRT__QUEUE_NAME(queue));
    }
    pthread_mutex_unlock(&queue->lock);
}

void hdrt__queue_close(hdrt_queue *queue)
{
    uint64_t position = hdrt__queue_position(queue);
    hdrt__failure *never = hdrt__failure_create(HDRT_ERROR_EVENT_FAILED,
                                                "the queue was destroyed before this value was enqueued");
    atomic_store(&queue->closed, HDRT__CLOSED);
    hdrt__timeline_end(queue->entry.timeline, position, never); /* who waits for more holds the queue */
    hdrt__failure_drop(never);
    if (position > atomic_load(&queue->entry.timeline->completed)) {
        if (!hdrt__device_is_lost(queue->device)) {
            leave_flight(queue);
        }
        hdrt__dispatcher_wake(queue); /* on a lost device, to drop what is there */
        hdrt__dispatcher_look(queue->scheduler);
    }
    if (atomic_load(&queue->entry.timeline->watched)) {
        hdrt__queue_end_values(queue);
    }
    hdrt__queue_drop(queue);
}

void hdrt_queue_destroy(hdrt_queue *queue)
{
    if (queue && !queue->is_default && !hdrt__runtime_forked(queue->device->runtime)) {
        hdrt__queue_close(queue);
    }
}

/* ---- the beginning of public functions, and asking --------------------------------------------------------------- */

hdrt_status hdrt__queue_begin(hdrt_queue *queue, const char *function)
{
    if (!queue) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "%s: the queue is NULL", function);
    }
    return hdrt__device_begin(queue->device, function);
}

hdrt_device *hdrt_queue_device(const hdrt_queue *queue)
{
    return queue ? queue->device : NULL;
}

hdrt_status hdrt_queue_error(hdrt_queue *queue)
{
    hdrt_status status = hdrt__queue_begin(queue, "hdrt_queue_error");
    if (status != HDRT_OK) {
        return status;
    }
    pthread_mutex_lock(&queue->lock);
    if (atomic_load(&queue->state) == HDRT__QUEUE_FAILED) {
        status = hdrt__queue_failed_status(queue);
    }
    pthread_mutex_unlock(&queue->lock);
    return status;
}

/* Under the lock: an operation without effect, so that the queue's last position is not one that failed. */
static bool reopen(hdrt_queue *queue)
{
    hdrt__op *op = hdrt__ring_reserve(&queue->ring, &queue->scheduler->segments);
    if (!op) {
        return false;
    }
    hdrt__timeline_reopen(queue->entry.timeline, hdrt__queue_position(queue));
    op->kind = HDRT__OP_NOTHING;
    op->detail = 0;
    hdrt__ring_publish(&queue->ring);
    atomic_store(&queue->state, HDRT__QUEUE_OPEN);
    return true;
}

hdrt_status hdrt_queue_clear_error(hdrt_queue *queue)
{
    hdrt__failure *failure = NULL;
    hdrt_status status = hdrt__queue_begin(queue, "hdrt_queue_clear_error");
    if (status != HDRT_OK) {
        return status;
    }
    pthread_mutex_lock(&queue->lock);
    if (atomic_load(&queue->state) == HDRT__QUEUE_FAILED) {
        if (reopen(queue)) {
            failure = queue->failure;
            queue->failure = NULL;
        } else {
            status = hdrt__fail_memory(sizeof(hdrt__segment), "a queue's operations");
        }
    }
    pthread_mutex_unlock(&queue->lock);
    hdrt__failure_drop(failure);
    if (hdrt__committer_take(queue, HDRT__COMMITTER_NONE)) {
        hdrt__queue_commit(queue);
    }
    return hdrt__device_is_lost(queue->device) ? hdrt__device_lost_status(queue->device) : status;
}
