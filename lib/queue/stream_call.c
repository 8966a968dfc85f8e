/* SPDX-License-Identifier: MIT */
#include "queue/stream_call.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "queue/scheduler.h"

/*
 *     UNDECIDED --the wait for the word is enqueued--> GO --notification--> BEGUN
 *         +--it was refused: do not call-----------> DROPPED --the same----> BEGUN
 *         +--notification--> NOTIFIED --either of both---------------------> BEGUN
 *     GO, DROPPED --the device is lost: no notification comes--> ABANDONED
 *
 * The call holds the device until it is over or abandoned.
 */
typedef enum call_state {
    CALL_UNDECIDED,
    CALL_GO,
    CALL_DROPPED,
    CALL_NOTIFIED,
    CALL_BEGUN,
    CALL_ABANDONED,
} call_state;

typedef struct hdrt__stream_call_state {
    hdrt__host_job job; /* first */
    struct hdrt__stream_call_state *next, *previous; /* the scheduler's */
    hdrt__scheduler *scheduler;
    hdrt__callbacks *callbacks;
    hdrt__word *word;
    atomic_uint references; /* the notification's, and the flight's: the word is waited for until then */
    _Atomic uint8_t state;  /* a call_state */
} stream_call;

static void enter(hdrt__scheduler *scheduler, stream_call *call)
{
    call->scheduler = scheduler;
    pthread_mutex_lock(&scheduler->lock);
    call->next = scheduler->stream_calls;
    if (call->next) {
        call->next->previous = call;
    }
    scheduler->stream_calls = call;
    pthread_mutex_unlock(&scheduler->lock);
}

static void leave(stream_call *call)
{
    hdrt__scheduler *scheduler = call->scheduler;
    pthread_mutex_lock(&scheduler->lock);
    if (call->previous) {
        call->previous->next = call->next;
    } else {
        scheduler->stream_calls = call->next;
    }
    if (call->next) {
        call->next->previous = call->previous;
    }
    pthread_mutex_unlock(&scheduler->lock);
}

static void call_drop(stream_call *call)
{
    if (atomic_fetch_sub_explicit(&call->references, 1, memory_order_acq_rel) == 1) {
        leave(call);
        hdrt__word_give(call->scheduler->memory, call->word);
        free(call);
    }
}

void hdrt__stream_calls_free(hdrt__scheduler *scheduler)
{
    for (stream_call *call = scheduler->stream_calls, *next; call; call = next) {
        next = call->next;
        free(call);
    }
}

/* On a callback thread. */
static void over(hdrt__host_job *job, bool called)
{
    stream_call *call = (stream_call *)job;
    hdrt_device *device = call->scheduler->device;
    if (called) {
        atomic_store_explicit(call->word->host, 1, memory_order_release);
    }
    call_drop(call);
    hdrt__device_drop(device);
}

static void call_nothing(void *argument)
{
    (void)argument;
}

/* The stream has come to the call, and waits, unless the wait was refused. */
static void begin(stream_call *call)
{
    if (hdrt__callbacks_submit(call->callbacks, &call->job) != HDRT_OK) { /* the first thread was started before */
        hdrt__log(HDRT_LOG_ERROR, "a host call is made on a thread of the driver's, where it may not call CUDA: %s",
                  hdrt_last_error());
        call->job.function(call->job.argument);
        over(&call->job, true);
    }
}

static bool move(stream_call *call, call_state from, call_state to)
{
    uint8_t expected = (uint8_t)from;
    return atomic_compare_exchange_strong(&call->state, &expected, (uint8_t)to);
}

/* On a thread of the driver's. */
static void notify(void *argument)
{
    stream_call *call = argument;
    if (!move(call, CALL_UNDECIDED, CALL_NOTIFIED) &&
        (move(call, CALL_GO, CALL_BEGUN) || move(call, CALL_DROPPED, CALL_BEGUN))) {
        begin(call);
    }
}

static void decide(stream_call *call, call_state decision)
{
    if (decision == CALL_DROPPED) {
        call->job.function = call_nothing;
    }
    if (!move(call, CALL_UNDECIDED, decision)) {
        atomic_store(&call->state, CALL_BEGUN);
        begin(call);
    }
}

typedef struct word_watch {
    hdrt__timeline_watch watch; /* first */
    stream_call *call;
    hdrt__timeline *timeline;
} word_watch;

/* The stream has come past the wait, or never will. */
static void landed(hdrt__timeline_watch *watch)
{
    word_watch *mine = (word_watch *)watch;
    hdrt_device *device = mine->call->scheduler->device;
    /* Then the scheduler's end frees the call: a notification that came all the same would still find it till then. */
    bool abandoned = hdrt__device_is_lost(device) && move(mine->call, CALL_GO, CALL_ABANDONED);
    call_drop(mine->call);
    hdrt__timeline_unpin(mine->timeline);
    free(mine);
    if (abandoned) {
        hdrt__device_drop(device);
    }
}

static hdrt__call wait_for_word(hdrt_queue *queue, hdrt__stream *stream, const stream_call *call)
{
    const hdrt__driver_table *driver = queue->device->driver;
    return queue->device->limits.stream_wait_64
               ? HDRT__CALL(driver, cuStreamWaitValue64, stream->handle, call->word->device, 1,
                            HDCU_STREAM_WAIT_VALUE_GEQ)
               : HDRT__CALL(driver, cuStreamWaitValue32, stream->handle, call->word->device, 1,
                            HDCU_STREAM_WAIT_VALUE_GEQ);
}

/* The word is given back when the stream has come past it. */
static void watch_word(hdrt_queue *queue, stream_call *call, word_watch *watch, uint64_t position)
{
    hdrt_runtime *runtime = queue->device->runtime;
    watch->call = call;
    watch->timeline = hdrt__timeline_pin(runtime, hdrt__timeline_event(queue->entry.timeline, position));
    watch->watch = (hdrt__timeline_watch){.value = position, .step = HDRT__TIMELINE_COMPLETED, .wake = landed};
    if (!hdrt__timeline_watch_begin(watch->timeline, &watch->watch)) {
        landed(&watch->watch);
    }
}

static hdrt_status enqueue(hdrt_queue *queue, hdrt__stream *stream, stream_call *call, word_watch *watch,
                           uint64_t position, uint32_t *out_commands)
{
    hdrt__call launch = HDRT__CALL(queue->device->driver, cuLaunchHostFunc, stream->handle, notify, call);
    if (launch.result) {
        call_drop(call);
        call_drop(call);
        free(watch);
        hdrt__device_drop(queue->device); /* not the last: the queue has one */
        return hdrt__device_check(queue->device, launch, "a host call");
    }
    *out_commands = HDRT__STREAM_CALL_COMMANDS;
    hdrt__call wait = wait_for_word(queue, stream, call);
    if (wait.result) {
        hdrt_status status = hdrt__device_check(queue->device, wait, "a host call");
        decide(call, CALL_DROPPED);
        if (status == HDRT_ERROR_DEVICE_LOST && move(call, CALL_DROPPED, CALL_ABANDONED)) {
            hdrt__device_drop(queue->device);
        }
        call_drop(call);
        free(watch);
        return status;
    }
    decide(call, CALL_GO);
    watch_word(queue, call, watch, position);
    return HDRT_OK;
}

hdrt_status hdrt__stream_call_unsupported(const hdrt_queue *queue)
{
    return hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                      "a host call on queue '%s', whose stream the caller uses too: this device's streams cannot wait for "
                      "memory: use another queue",
                      HDRT__QUEUE_NAME(queue));
}

hdrt_status hdrt__stream_call(hdrt_queue *queue, hdrt__stream *stream, const hdrt__op *op, uint64_t position,
                              uint32_t *out_commands)
{
    hdrt_device *device = queue->device;
    *out_commands = 0;
    if (!device->limits.stream_wait_64 && !device->limits.stream_wait_32) {
        return hdrt__stream_call_unsupported(queue);
    }
    stream_call *call = calloc(1, sizeof *call);
    word_watch *watch = calloc(1, sizeof *watch);
    if (!call || !watch) {
        free(watch);
        free(call);
        return hdrt__fail_memory(sizeof *call + sizeof *watch, "a host call");
    }
    call->callbacks = hdrt__device_callbacks(device);
    hdrt_status status =
        call->callbacks ? hdrt__word_take(queue->scheduler->memory, &call->word) : (hdrt_status)HDRT_ERROR_OUT_OF_MEMORY;
    if (status != HDRT_OK) {
        free(watch);
        free(call);
        return status;
    }
    enter(queue->scheduler, call);
    hdrt__device_hold(device);
    atomic_init(&call->references, 2);
    call->job = (hdrt__host_job){.function = op->host.function,
                                 .argument = op->host.argument,
                                 .event = hdrt__timeline_event(queue->entry.timeline, position),
                                 .device = device,
                                 .over = over};
    return enqueue(queue, stream, call, watch, position, out_commands);
}
