/* SPDX-License-Identifier: MIT */
/* Host calls in queue order. */
#include "base/status.h"
#include "device/callbacks.h"
#include "queue/commit.h"
#include "queue/mark.h"

/* Inside the device's scope, under no lock: the queue's channel, made on its first host call. */
static hdrt_status make_channel(hdrt_queue *queue)
{
    hdrt_device *device = queue->device;
    hdrt__host_channel *channel, *none = NULL;
    hdrt__word *word = NULL;
    hdrt_status status = HDRT_OK;
    if (atomic_load(&queue->entry.channel)) {
        return HDRT_OK;
    }
    hdrt__callbacks *callbacks = hdrt__device_callbacks(device);
    if (!callbacks) {
        return HDRT_ERROR_OUT_OF_MEMORY;
    }
    if (device->limits.stream_wait_64 || device->limits.stream_wait_32) {
        status = hdrt__word_take(queue->memory, &word);
    }
    if (status != HDRT_OK) {
        return status;
    }
    status = hdrt__host_channel_create(callbacks, word ? word->host : NULL, &channel);
    if (status != HDRT_OK) {
        goto give_word;
    }
    pthread_mutex_lock(&queue->commit);
    bool first = atomic_compare_exchange_strong(&queue->entry.channel, &none, channel);
    if (first) {
        queue->word = word;
    }
    pthread_mutex_unlock(&queue->commit);
    if (first) {
        return HDRT_OK;
    }
    hdrt__host_channel_destroy(channel);
give_word:
    if (word) {
        hdrt__word_give(queue->memory, word);
    }
    return status;
}

/* Let the stream wait until the function that has this ticket is over. LOCKED. */
static hdrt__call wait_for_ticket(hdrt_queue *queue, uint64_t ticket)
{
    const hdrt__driver_table *driver = queue->device->driver;
    return queue->device->limits.stream_wait_64
               ? HDRT__CALL(driver, cuStreamWaitValue64, queue->stream, queue->word->device, ticket,
                            HDCU_STREAM_WAIT_VALUE_GEQ)
               : HDRT__CALL(driver, cuStreamWaitValue32, queue->stream, queue->word->device, (uint32_t)ticket,
                            HDCU_STREAM_WAIT_VALUE_GEQ);
}

/*
 * LOCKED: whether nothing is in the stream behind the last host call, so that another can join it and needs no host
 * function of the driver. On a stream that the caller may enqueue on too nobody knows.
 */
static bool joins_last_call(const hdrt__commit *commit)
{
    const hdrt_queue *queue = commit->queue;
    return queue->word && queue->last_host_call && queue->last_host_call + 1 == commit->position &&
           !atomic_load(&queue->foreign_work);
}

/* LOCKED. */
static hdrt_status enqueue_call(hdrt__commit *commit, hdrt_host_function function, void *argument)
{
    hdrt_queue *queue = commit->queue;
    hdrt__host_channel *channel = atomic_load(&queue->entry.channel);
    uint64_t ticket;
    bool joined = joins_last_call(commit);
    hdrt__mark_recorded(queue);
    hdrt_status status =
        hdrt__host_channel_submit(channel, function, argument, hdrt__commit_event(commit), &ticket);
    if (status != HDRT_OK) {
        return status;
    }
    hdrt__call call = {HDCU_SUCCESS, "cuLaunchHostFunc"};
    if (!joined) {
        call = HDRT__CALL(queue->device->driver, cuLaunchHostFunc, queue->stream, hdrt__host_channel_notify, channel);
    }
    if (call.result) {
        hdrt__host_channel_retract(channel);
        return hdrt__commit_failed(commit, call, "a host call");
    }
    if (queue->word) {
        call = wait_for_ticket(queue, ticket);
        if (call.result && joined) {
            hdrt__host_channel_retract(channel);
            return hdrt__commit_failed(commit, call, "a host call");
        }
        if (call.result) {
            hdrt__host_channel_drop_last(channel);
            hdrt__commit_part(commit, 1); /* the notification will come */
            return hdrt__commit_failed(commit, call, "a host call");
        }
        if (joined) {
            hdrt__host_channel_join(channel);
        }
        queue->last_host_call = commit->position;
    }
    atomic_store(&queue->hazard, commit->position);
    hdrt__commit_done(commit, joined ? 1 : HDRT__HOST_CALL_COMMANDS);
    return HDRT_OK;
}

hdrt_status hdrt_queue_host_call(hdrt_queue *queue, hdrt_host_function function, void *argument)
{
    hdrt__commit commit;
    hdrt_status status = hdrt__commit_begin(&commit, queue, "hdrt_queue_host_call");
    if (status != HDRT_OK) {
        return status;
    }
    if (!function) {
        status = hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_queue_host_call: the function is NULL");
    } else {
        status = make_channel(queue);
    }
    if (status == HDRT_OK) {
        status = hdrt__commit_lock(&commit, HDRT__COMMIT_ROOM);
    }
    if (status == HDRT_OK) {
        status = enqueue_call(&commit, function, argument);
    }
    return hdrt__commit_leave(&commit, status);
}
