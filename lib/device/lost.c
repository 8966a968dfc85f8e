/* SPDX-License-Identifier: MIT */
/* The lost state, and what a device knows of its queues for it. */
#include "device/device.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/log.h"
#include "base/status.h"
#include "driver/error.h"
#include "driver/loader.h"
#include "driver/thread.h"

static const char words_without_memory[] =
    "the device had a fault, and its message found no memory; this process can no longer use the device: "
    "start a new one";

/* ---- the message ------------------------------------------------------------------------------------------------- */

/* Under recent_lock. */
static void name_operation(hdrt__buffer *text, const hdrt__recent_launch *launch)
{
    char number[HDRT__QUEUE_NAME_BYTES];
    snprintf(number, sizeof number, "queue %u", launch->queue_number);
    hdrt__buffer_text(text, launch->label);
    if (launch->grid.block[0]) {
        hdrt__buffer_format(text, " <<<(%u,%u,%u), (%u,%u,%u), %u>>>", launch->grid.grid[0], launch->grid.grid[1],
                            launch->grid.grid[2], launch->grid.block[0], launch->grid.block[1], launch->grid.block[2],
                            launch->grid.shared);
    }
    hdrt__buffer_format(text, " of queue '%s' at position %llu", launch->queue[0] ? launch->queue : number,
                        (unsigned long long)launch->position);
}

/* Under queues_lock: the operations of a stream that are not known complete. */
static void name_operations(hdrt__buffer *text, hdrt__device_stream *stream, uint32_t *count)
{
    uint64_t completed = atomic_load(&stream->completed);
    pthread_mutex_lock(&stream->recent_lock);
    uint64_t first = stream->recent_count > HDRT__RECENT_LAUNCHES ? stream->recent_count - HDRT__RECENT_LAUNCHES : 0;
    bool named = false;
    for (uint64_t i = first; i < stream->recent_count; i++) {
        const hdrt__recent_launch *launch = &stream->recent[i % HDRT__RECENT_LAUNCHES];
        if (launch->sequence <= completed) {
            continue;
        }
        if (!named) {
            hdrt__buffer_format(text, "%s on stream %u: ", *count ? ";" : "", stream->index);
            if (i == first && first > 0) {
                hdrt__buffer_text(text, "earlier ones, then ");
            }
        }
        hdrt__buffer_text(text, named ? ", " : "");
        name_operation(text, launch);
        named = true;
        ++*count;
    }
    pthread_mutex_unlock(&stream->recent_lock);
}

bool hdrt__device_stream_oldest(hdrt__device_stream *stream, hdrt__buffer *text)
{
    uint64_t completed = atomic_load(&stream->completed);
    pthread_mutex_lock(&stream->recent_lock);
    uint64_t i = stream->recent_count > HDRT__RECENT_LAUNCHES ? stream->recent_count - HDRT__RECENT_LAUNCHES : 0;
    while (i < stream->recent_count && stream->recent[i % HDRT__RECENT_LAUNCHES].sequence <= completed) {
        i++;
    }
    bool found = i < stream->recent_count;
    if (found) {
        name_operation(text, &stream->recent[i % HDRT__RECENT_LAUNCHES]);
    }
    pthread_mutex_unlock(&stream->recent_lock);
    return found;
}

/* What the soft driver says of its last fault; no driver call, and NULL on NVIDIA's. */
static const char *soft_words(const hdrt_device *device)
{
    const char *(*last_fault)(void) = NULL;
    if (device->runtime->kind == HDRT_DRIVER_SOFT) {
        void *symbol = hdrt__driver_symbol(device->runtime->driver, "hdsoft_last_fault");
        memcpy(&last_fault, &symbol, sizeof last_fault);
    }
    return last_fault ? last_fault() : NULL;
}

/* Under queues_lock. */
static hdrt__failure *describe_fault(hdrt_device *device, hdrt__call call, const char *what)
{
    hdrt__buffer text = HDRT__BUFFER_INIT;
    uint32_t count = 0;
    hdrt__buffer_format(&text, "device %u (%s) is lost: %s: %s failed: %s (%u): %s; in flight:", device->index,
                        device->info.name, what, call.text, hdrt__result_name(call.result), call.result,
                        hdrt__result_text(call.result));
    for (hdrt__device_stream *stream = device->streams; stream; stream = stream->next) {
        name_operations(&text, stream, &count);
    }
    if (!count) {
        hdrt__buffer_text(&text, " none known");
    }
    const char *words = soft_words(device);
    if (words && *words) {
        hdrt__buffer_format(&text, "; %s", words);
    }
    hdrt__buffer_text(&text, "; this process can no longer use the device: start a new one");
    hdrt__failure *failure = text.failed ? NULL : hdrt__failure_create(HDRT_ERROR_DEVICE_LOST, (char *)text.bytes);
    hdrt__buffer_free(&text);
    return failure ? failure : hdrt__failure_create(HDRT_ERROR_DEVICE_LOST, words_without_memory);
}

/* ---- losing ------------------------------------------------------------------------------------------------------ */

/* Under queues_lock, once: no driver call begins after this. */
static void become_lost(hdrt_device *device, hdrt__failure *failure)
{
    device->lost = hdrt__failure_hold(failure);
    atomic_store_explicit(&device->state, HDRT__DEVICE_LOST, memory_order_release);
    for (hdrt__device_queue *queue = device->queues; queue; queue = queue->next) {
        hdrt__timeline_fail_rest(queue->timeline, failure);
    }
    hdrt__log(HDRT_LOG_ERROR, "%s", hdrt__failure_text(failure));
}

void hdrt__device_lose(hdrt_device *device, hdrt__call call, const char *what)
{
    hdrt_runtime *runtime = device->runtime;
    hdrt__device_fault *fault = &runtime->faults[device->index];
    pthread_mutex_lock(&device->queues_lock);
    if (!hdrt__device_is_lost(device)) {
        hdrt__failure *failure = describe_fault(device, call, what);
        pthread_mutex_lock(&runtime->lock);
        if (!atomic_load(&fault->lost)) {
            fault->failure = hdrt__failure_hold(failure);
            atomic_store_explicit(&fault->lost, true, memory_order_release);
        }
        pthread_mutex_unlock(&runtime->lock);
        become_lost(device, failure);
        hdrt__failure_drop(failure);
    }
    pthread_mutex_unlock(&device->queues_lock);
}

void hdrt__device_share_fault(hdrt_device *device)
{
    pthread_mutex_lock(&device->queues_lock);
    if (!hdrt__device_is_lost(device)) {
        become_lost(device, device->runtime->faults[device->index].failure);
    }
    pthread_mutex_unlock(&device->queues_lock);
}

hdrt_status hdrt__device_lost_status(const hdrt_device *device)
{
    return hdrt__fail_with(HDRT_ERROR_DEVICE_LOST, device->lost ? device->lost->text : words_without_memory);
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

void hdrt__device_queue_enter(hdrt_device *device, hdrt__device_queue *queue)
{
    pthread_mutex_lock(&device->queues_lock);
    queue->number = ++device->queues_made;
    queue->previous = NULL;
    queue->next = device->queues;
    if (queue->next) {
        queue->next->previous = queue;
    }
    device->queues = queue;
    if (hdrt__device_is_lost(device)) {
        hdrt__timeline_fail_rest(queue->timeline, device->lost);
    }
    pthread_mutex_unlock(&device->queues_lock);
}

void hdrt__device_queue_leave(hdrt_device *device, hdrt__device_queue *queue)
{
    pthread_mutex_lock(&device->queues_lock);
    if (queue->previous) {
        queue->previous->next = queue->next;
    } else {
        device->queues = queue->next;
    }
    if (queue->next) {
        queue->next->previous = queue->previous;
    }
    pthread_mutex_unlock(&device->queues_lock);
}

const char *hdrt__device_queue_name(const hdrt__device_queue *queue, char buffer[HDRT__QUEUE_NAME_BYTES])
{
    if (queue->name) {
        return queue->name;
    }
    snprintf(buffer, HDRT__QUEUE_NAME_BYTES, "queue %u", queue->number);
    return buffer;
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

void hdrt__device_stream_enter(hdrt_device *device, hdrt__device_stream *stream)
{
    hdrt__mutex_init_short(&stream->recent_lock);
    pthread_mutex_lock(&device->queues_lock);
    stream->previous = NULL;
    stream->next = device->streams;
    if (stream->next) {
        stream->next->previous = stream;
    }
    device->streams = stream;
    pthread_mutex_unlock(&device->queues_lock);
}

void hdrt__device_stream_leave(hdrt_device *device, hdrt__device_stream *stream)
{
    pthread_mutex_lock(&device->queues_lock);
    if (stream->previous) {
        stream->previous->next = stream->next;
    } else {
        device->streams = stream->next;
    }
    if (stream->next) {
        stream->next->previous = stream->previous;
    }
    pthread_mutex_unlock(&device->queues_lock);
    pthread_mutex_destroy(&stream->recent_lock);
}

static void copy_cut(char *to, size_t size, const char *from)
{
    size_t length = strnlen(from, size - 1);
    memcpy(to, from, length);
    to[length] = '\0';
}

void hdrt__device_label(char label[HDRT__LABEL_BYTES], const char *name)
{
    copy_cut(label, HDRT__LABEL_BYTES, name);
}

void hdrt__device_stream_launch(hdrt__device_stream *stream, uint64_t sequence, const hdrt__device_queue *queue,
                                uint64_t position, const char label[HDRT__LABEL_BYTES], const hdrt_grid *grid)
{
    pthread_mutex_lock(&stream->recent_lock);
    hdrt__recent_launch *launch = &stream->recent[stream->recent_count++ % HDRT__RECENT_LAUNCHES];
    launch->sequence = sequence;
    launch->position = position;
    launch->grid = *grid;
    launch->queue_number = queue->number;
    copy_cut(launch->queue, sizeof launch->queue, queue->name ? queue->name : "");
    memcpy(launch->label, label, HDRT__LABEL_BYTES);
    pthread_mutex_unlock(&stream->recent_lock);
}

void hdrt__device_stream_note(hdrt__device_stream *stream, uint64_t sequence, const hdrt__device_queue *queue,
                              uint64_t position, const char *what)
{
    const hdrt_grid none = {{0}, {0}, 0};
    char label[HDRT__LABEL_BYTES];
    hdrt__device_label(label, what);
    hdrt__device_stream_launch(stream, sequence, queue, position, label, &none);
}

hdrt_status hdrt__device_launches(hdrt_device *device, hdrt__uses *uses)
{
    hdrt_status status = HDRT_OK;
    pthread_mutex_lock(&device->queues_lock);
    for (hdrt__device_queue *queue = device->queues; queue && status == HDRT_OK; queue = queue->next) {
        uint64_t position = atomic_load_explicit(&queue->last_launch, memory_order_acquire);
        if (!queue->exclusive && position > atomic_load(&queue->timeline->completed)) {
            status = hdrt__uses_add(uses, device->runtime, hdrt__timeline_event(queue->timeline, position));
        }
    }
    pthread_mutex_unlock(&device->queues_lock);
    return status;
}
