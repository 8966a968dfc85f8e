/* SPDX-License-Identifier: MIT */
#include "queue/queue.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "device/callbacks.h"
#include "queue/mark.h"

/* ---- references and the timeline's view -------------------------------------------------------------------------- */

void hdrt__queue_hold(hdrt_queue *queue)
{
    atomic_fetch_add_explicit(&queue->references, 1, memory_order_relaxed);
}

void hdrt__queue_drop(hdrt_queue *queue)
{
    if (atomic_fetch_sub_explicit(&queue->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    hdrt_device *device = queue->device;
    hdrt__failure_drop(queue->failure);
    pthread_mutex_destroy(&queue->commit);
    pthread_mutex_destroy(&queue->entry.recent_lock);
    free(queue->entry.name);
    free(queue);
    hdrt__device_drop(device);
}

static void source_hold(void *owner)
{
    hdrt__queue_hold(owner);
}

static void source_drop(void *owner)
{
    hdrt__queue_drop(owner);
}

static void entry_hold(hdrt__device_queue *entry)
{
    hdrt__queue_hold((hdrt_queue *)entry);
}

/* A stream that its owner is capturing now cannot be asked: its events would become part of the capture. */
static bool being_captured(hdrt_queue *queue)
{
    unsigned capturing = HDCU_STREAM_CAPTURE_STATUS_NONE;
    return atomic_load_explicit(&queue->foreign_work, memory_order_relaxed) &&
           !HDRT__CALL(queue->device->driver, cuStreamIsCapturing, queue->stream, &capturing).result &&
           capturing != HDCU_STREAM_CAPTURE_STATUS_NONE;
}

static hdrt_status source_progress(void *owner, uint64_t value)
{
    hdrt_queue *queue = owner;
    hdrt__scope scope;
    hdrt_status status = hdrt__device_enter(queue->device, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    pthread_mutex_lock(&queue->commit);
    if (!queue->finished && !hdrt__device_is_lost(queue->device) && !being_captured(queue)) {
        uint64_t committed = atomic_load(&queue->committed);
        status = hdrt__mark_progress(queue, value < committed ? value : committed);
    }
    hdrt__held_module *done = hdrt__modules_done(queue);
    pthread_mutex_unlock(&queue->commit);
    hdrt__device_leave(queue->device, &scope);
    hdrt__modules_release(done);
    return status;
}

const hdrt__timeline_source hdrt__queue_source = {source_hold, source_drop, source_progress};

/* ---- making ------------------------------------------------------------------------------------------------------ */

static hdrt_status check_options(const hdrt_queue_options *options)
{
    if ((unsigned)options->back_pressure > HDRT_BACK_PRESSURE_GROW ||
        (unsigned)options->submission > HDRT_SUBMISSION_DISPATCHER) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT,
                          "hdrt_queue_options: back_pressure is %d and submission %d: one is no value of its enum",
                          (int)options->back_pressure, (int)options->submission);
    }
    if (options->back_pressure == HDRT_BACK_PRESSURE_GROW) {
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED, "hdrt_queue_options: HDRT_BACK_PRESSURE_GROW is not in this version");
    }
    if (options->submission == HDRT_SUBMISSION_DISPATCHER) {
        return hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                          "hdrt_queue_options: HDRT_SUBMISSION_DISPATCHER is not in this version");
    }
    return HDRT_OK;
}

static int clamp_priority(const hdrt_device *device, int32_t priority)
{
    int least = device->limits.priority_least, greatest = device->limits.priority_greatest;
    return priority > least ? least : priority < greatest ? greatest : priority;
}

static hdrt_status make_name(hdrt_queue *queue, const char *name)
{
    char number[32];
    if (!name) {
        pthread_mutex_lock(&queue->device->queues_lock);
        snprintf(number, sizeof number, "queue %llu", (unsigned long long)++queue->device->queues_made);
        pthread_mutex_unlock(&queue->device->queues_lock);
        name = number;
    }
    queue->entry.name = strdup(name);
    return queue->entry.name ? HDRT_OK : hdrt__fail_memory(strlen(name) + 1, "a queue's name");
}

static hdrt_queue *queue_new(hdrt_device *device, const hdrt_queue_options *options)
{
    hdrt_queue *queue = calloc(1, sizeof *queue);
    if (!queue) {
        hdrt__fail_memory(sizeof *queue, "a queue");
        return NULL;
    }
    atomic_init(&queue->references, 1);
    queue->device = device;
    pthread_mutex_init(&queue->commit, NULL);
    pthread_mutex_init(&queue->entry.recent_lock, NULL);
    queue->entry.hold = entry_hold;
    queue->entry.exclusive = options->exclusive;
    queue->back_pressure = options->back_pressure;
    queue->ring_limit = options->ring_limit ? options->ring_limit : HDRT__RING_LIMIT_DEFAULT;
    queue->mark_interval = queue->ring_limit / 4 ? queue->ring_limit / 4 : 1;
    hdrt__device_hold(device);
    return queue;
}

/* Inside the device's scope: the stream, and what else needs the driver. */
static hdrt_status make_stream(hdrt_queue *queue, const hdrt_queue_options *options, hdcu_stream stream)
{
    hdrt_device *device = queue->device;
    queue->memory = hdrt__device_memory(device);
    if (!queue->memory) {
        return hdrt__device_is_lost(device) ? hdrt__device_lost_status(device) : HDRT_ERROR_OUT_OF_MEMORY;
    }
    if (stream) {
        queue->stream = stream;
        queue->adopted = true;
        atomic_store(&queue->foreign_work, true);
        return HDRT_OK;
    }
    hdrt__call call = HDRT__CALL(device->driver, cuStreamCreateWithPriority, &queue->stream, HDCU_STREAM_NON_BLOCKING,
                                 clamp_priority(device, options->priority));
    return hdrt__device_check(device, call, "a stream for queue '%s'", queue->entry.name);
}

hdrt_status hdrt__queue_make(hdrt_device *device, const hdrt_queue_options *options, hdcu_stream stream, bool held,
                             hdrt_queue **out_queue)
{
    hdrt__scope scope;
    hdrt_status status = check_options(options);
    if (status == HDRT_OK) {
        status = hdrt__device_enter(device, &scope);
    }
    if (status != HDRT_OK) {
        return status;
    }
    hdrt_queue *queue = queue_new(device, options);
    if (!queue) {
        status = HDRT_ERROR_OUT_OF_MEMORY;
        goto leave;
    }
    status = make_name(queue, options->name);
    if (status == HDRT_OK) {
        status = make_stream(queue, options, stream);
    }
    if (status != HDRT_OK) {
        goto drop_queue;
    }
    status = hdrt__timeline_acquire(device->runtime, &hdrt__queue_source, queue, &queue->entry.timeline);
    if (status != HDRT_OK) {
        goto destroy_stream;
    }
    hdrt__device_queue_enter(device, &queue->entry);
    if (!held) {
        queue->is_default = true;
        atomic_fetch_sub(&device->references, 1); /* the caller has one: it is not the last */
    }
    *out_queue = queue;
    hdrt__device_leave(device, &scope);
    return HDRT_OK;

destroy_stream:
    if (!queue->adopted) {
        (void)HDRT__CALL(device->driver, cuStreamDestroy, queue->stream);
    }
drop_queue:
    hdrt__queue_drop(queue);
leave:
    hdrt__device_leave(device, &scope);
    return status;
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

/* ---- ending ------------------------------------------------------------------------------------------------------ */

/* Under the commit lock, inside the device's scope unless that is lost: the stream's end. */
static void end_stream(hdrt_queue *queue, bool inside)
{
    queue->finished = true;
    hdrt__marks_free(queue);
    queue->commands_completed = queue->commands;
    if (!queue->adopted && inside && !hdrt__device_is_lost(queue->device)) {
        hdrt__call call = HDRT__CALL(queue->device->driver, cuStreamDestroy, queue->stream);
        if (hdrt__device_check(queue->device, call, "queue '%s': destroying its stream", queue->entry.name)) {
            hdrt__log(HDRT_LOG_ERROR, "%s", hdrt_last_error());
        }
    }
}

/* Deferred until the queue's work is over. */
static void finish(hdrt_device *device, hdrt__deferred *item)
{
    hdrt_queue *queue = (hdrt_queue *)((char *)item - offsetof(hdrt_queue, closing));
    hdrt__scope scope;
    bool inside = hdrt__device_enter(device, &scope) == HDRT_OK;
    pthread_mutex_lock(&queue->commit); /* who still looks at the queue is waited for, and finds it finished after */
    end_stream(queue, inside);
    hdrt__held_module *modules = queue->modules;
    queue->modules = NULL;
    pthread_mutex_unlock(&queue->commit);
    if (inside) {
        hdrt__device_leave(device, &scope);
    }
    hdrt__device_queue_leave(device, &queue->entry);
    hdrt__timeline_retire(queue->entry.timeline, queue->failure);
    hdrt__modules_release(modules);
    hdrt__host_channel_destroy(atomic_exchange(&queue->entry.channel, NULL));
    if (queue->word) {
        hdrt__word_give(queue->memory, queue->word);
    }
    hdrt__queue_drop(queue);
}

void hdrt__queue_close(hdrt_queue *queue)
{
    hdrt_device *device = queue->device;
    pthread_mutex_lock(&queue->commit); /* a host function may close the queue while its own call is being committed */
    atomic_store(&queue->closed, true);
    hdrt_event last = hdrt__timeline_event(queue->entry.timeline, atomic_load(&queue->committed));
    pthread_mutex_unlock(&queue->commit);
    hdrt__uses_add(&queue->closing.uses, device->runtime, last); /* one event needs no memory */
    queue->closing.run = finish;
    hdrt__device_hold(device); /* the queue's own may go in between */
    hdrt__device_defer(device, &queue->closing);
    hdrt__device_drop(device);
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

hdrt_status hdrt__queue_failed_status(const hdrt_queue *queue)
{
    return hdrt__fail_with(HDRT_ERROR_QUEUE_FAILED, hdrt__failure_text(queue->failure));
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
    pthread_mutex_lock(&queue->commit);
    if (atomic_load(&queue->state) == HDRT__QUEUE_FAILED) {
        status = hdrt__queue_failed_status(queue);
    }
    pthread_mutex_unlock(&queue->commit);
    return status;
}

hdrt_status hdrt_queue_clear_error(hdrt_queue *queue)
{
    hdrt_status status = hdrt__queue_begin(queue, "hdrt_queue_clear_error");
    if (status != HDRT_OK) {
        return status;
    }
    pthread_mutex_lock(&queue->commit);
    if (atomic_load(&queue->state) == HDRT__QUEUE_FAILED) {
        hdrt__timeline_reopen(queue->entry.timeline, queue->position);
        hdrt__failure_drop(queue->failure);
        queue->failure = NULL;
        atomic_store(&queue->state, HDRT__QUEUE_OPEN);
        /* An empty operation, so that the queue's last position is not the one that failed. */
        atomic_store(&queue->committed, ++queue->position);
        hdrt__timeline_enqueue(queue->entry.timeline, queue->position);
        hdrt__mark_idle(queue);
    }
    pthread_mutex_unlock(&queue->commit);
    return hdrt__device_is_lost(queue->device) ? hdrt__device_lost_status(queue->device) : HDRT_OK;
}
