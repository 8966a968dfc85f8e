/* SPDX-License-Identifier: MIT */
#include "queue/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/number.h"
#include "base/status.h"
#include "jit/kernel.h"
#include "queue/bell.h"
#include "queue/dispatcher.h"
#include "queue/pending.h"
#include "queue/queue.h"
#include "queue/scheduler.h"
#include "driver/thread.h"

/* The first few launches of a kernel that find their stream idle are measured, and then the next one that does after so
 * many others. */
#define MEASURED_FIRST 4u
#define UNMEASURED 7u

/* ---- making and ending ------------------------------------------------------------------------------------------- */

hdrt_status hdrt__stream_create(hdrt__scheduler *scheduler, uint8_t class, bool shared, hdcu_stream adopted,
                                hdrt__stream **out_stream)
{
    hdrt_device *device = scheduler->device;
    hdrt__stream *stream = calloc(1, sizeof *stream);
    if (!stream) {
        return hdrt__fail_memory(sizeof *stream, "a stream");
    }
    stream->handle = adopted;
    stream->adopted = adopted != NULL;
    if (!adopted) {
        hdrt__call call = HDRT__CALL(device->driver, cuStreamCreateWithPriority, &stream->handle,
                                     HDCU_STREAM_NON_BLOCKING, device->limits.priority_greatest + class);
        hdrt_status status = hdrt__device_check(device, call, "a stream on device %u", device->index);
        if (status != HDRT_OK) {
            free(stream);
            return status;
        }
    }
    atomic_init(&stream->references, 1);
    stream->scheduler = scheduler;
    stream->device = device;
    stream->class = class;
    stream->shared = shared;
    hdrt__mutex_init_short(&stream->commit);
    uint64_t sequence;
    stream->entry.index = hdrt__scheduler_take_index(scheduler, &sequence);
    atomic_init(&stream->sequence, sequence);
    atomic_init(&stream->entry.completed, sequence);
    hdrt__bell_hang(stream);
    hdrt__device_stream_enter(device, &stream->entry);
    *out_stream = stream;
    return HDRT_OK;
}

void hdrt__stream_hold(hdrt__stream *stream)
{
    atomic_fetch_add_explicit(&stream->references, 1, memory_order_relaxed);
}

static void free_rings(hdrt__stream *stream)
{
    for (uint32_t i = 0; i < stream->mark_capacity; i++) {
        free(stream->marks[i].clock);
    }
    for (uint32_t i = 0; i < stream->mark_count; i++) {
        hdrt__mark_drop(stream->device, stream->marks[(stream->mark_first + i) & (stream->mark_capacity - 1)].mark);
    }
    free(stream->marks);
    free(stream->flights);
    free(stream->clock);
    hdrt__pending_free(stream->pending);
}

void hdrt__stream_drop(hdrt__stream *stream)
{
    hdrt__scope scope;
    if (!stream || atomic_fetch_sub_explicit(&stream->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    hdrt_device *device = stream->device;
    if (!stream->adopted && hdrt__device_enter(device, &scope) == HDRT_OK) {
        hdrt__call call = HDRT__CALL(device->driver, cuStreamDestroy, stream->handle);
        if (hdrt__device_check(device, call, "destroying stream %u", stream->entry.index)) {
            hdrt__log(HDRT_LOG_ERROR, "%s", hdrt_last_error());
        }
        hdrt__device_leave(device, &scope);
    }
    hdrt__device_stream_leave(device, &stream->entry);
    hdrt__scheduler_give_index(stream->scheduler, stream->entry.index, atomic_load(&stream->sequence));
    free_rings(stream);
    pthread_mutex_destroy(&stream->commit);
    free(stream);
}

static void set_completed(hdrt__stream *stream, uint64_t sequence)
{
    atomic_store_explicit(&stream->entry.completed, sequence, memory_order_release);
    if (stream->entry.index < HDRT__INDICES) {
        atomic_store_explicit(&stream->scheduler->completed[stream->entry.index], sequence, memory_order_release);
    }
}

/* ---- flights ----------------------------------------------------------------------------------------------------- */

static hdrt__flight *flight_at(const hdrt__stream *stream, uint32_t index)
{
    return &stream->flights[(stream->flight_first + index) & (stream->flight_capacity - 1)];
}

bool hdrt__stream_reserve_flights(hdrt__stream *stream, uint32_t count)
{
    uint32_t capacity = stream->flight_capacity ? stream->flight_capacity : 8;
    if (stream->flight_count + count <= stream->flight_capacity) {
        return true;
    }
    while (stream->flight_count + count > capacity) {
        capacity *= 2;
    }
    hdrt__flight *flights = malloc(capacity * sizeof *flights);
    if (!flights) {
        return false;
    }
    for (uint32_t i = 0; i < stream->flight_count; i++) {
        flights[i] = *flight_at(stream, i);
    }
    free(stream->flights);
    stream->flights = flights;
    stream->flight_first = 0;
    stream->flight_capacity = capacity;
    return true;
}

void hdrt__stream_fly(hdrt__stream *stream, hdrt_queue *queue, uint64_t position)
{
    uint64_t sequence = atomic_load_explicit(&stream->sequence, memory_order_relaxed);
    stream->flew = queue;
    for (uint32_t i = stream->flight_count; i-- > 0 && flight_at(stream, i)->sequence == sequence;) {
        if (flight_at(stream, i)->queue == queue) {
            flight_at(stream, i)->position = position;
            return;
        }
    }
    hdrt__queue_hold(queue);
    *flight_at(stream, stream->flight_count++) = (hdrt__flight){queue, position, sequence};
}

uint64_t hdrt__stream_sequence_of(hdrt__stream *stream, const hdrt_queue *queue, uint64_t position)
{
    uint64_t sequence = atomic_load_explicit(&stream->sequence, memory_order_relaxed);
    for (uint32_t i = stream->flight_count; i-- > 0;) { /* from the newest: it is mostly one of the last */
        const hdrt__flight *flight = flight_at(stream, i);
        if (flight->queue == queue && flight->position < position) {
            break;
        }
        if (flight->queue == queue) {
            sequence = flight->sequence;
        }
    }
    return sequence;
}

/* ---- marks ------------------------------------------------------------------------------------------------------- */

static hdrt__stream_mark *mark_at(hdrt__stream *stream, uint32_t index)
{
    return &stream->marks[(stream->mark_first + index) & (stream->mark_capacity - 1)];
}

static bool make_room(hdrt__stream *stream)
{
    if (stream->mark_count < stream->mark_capacity) {
        return true;
    }
    uint32_t capacity = stream->mark_capacity ? stream->mark_capacity * 2 : 4;
    hdrt__stream_mark *marks = calloc(capacity, sizeof *marks);
    if (!marks) {
        return false;
    }
    for (uint32_t i = 0; i < stream->mark_count; i++) {
        marks[i] = *mark_at(stream, i);
    }
    free(stream->marks);
    stream->marks = marks;
    stream->mark_first = 0;
    stream->mark_capacity = capacity;
    return true;
}

/* What the mark remembers of the stream's clock. Without memory it remembers nothing, and others wait more often. */
static void keep_clock(hdrt__stream *stream, hdrt__stream_mark *mark)
{
    if (!stream->clock) {
        free(mark->clock);
        mark->clock = NULL;
        return;
    }
    if (!mark->clock) {
        mark->clock = calloc(HDRT__CLOCKS, sizeof *mark->clock);
    }
    if (mark->clock) {
        memcpy(mark->clock, stream->clock, hdrt__scheduler_clocks(stream->scheduler) * sizeof *mark->clock);
    }
}

/* A stream that is being captured gets no marks, which would become part of the capture; those that it has tell. */
static bool being_captured(const hdrt__stream *stream)
{
    unsigned capturing = HDCU_STREAM_CAPTURE_STATUS_NONE;
    return !stream->shared &&
           !HDRT__CALL(stream->device->driver, cuStreamIsCapturing, stream->handle, &capturing).result &&
           capturing != HDCU_STREAM_CAPTURE_STATUS_NONE;
}

static hdrt__call record(hdrt__stream *stream)
{
    hdrt__mark *event;
    if (hdrt__pending_flush(stream) != HDRT_OK) {
        return (hdrt__call){HDCU_ERROR_UNKNOWN, "cuLaunchKernel"};
    }
    if (!make_room(stream)) {
        return (hdrt__call){HDCU_ERROR_OUT_OF_MEMORY, "cuEventRecord"};
    }
    if (being_captured(stream)) {
        return (hdrt__call){HDCU_ERROR_STREAM_CAPTURE_UNSUPPORTED, "cuEventRecord"};
    }
    hdrt__call call = hdrt__device_mark_take(stream->device, &event);
    if (call.result) {
        return call;
    }
    call = HDRT__CALL(stream->device->driver, cuEventRecord, event->event, stream->handle);
    if (call.result) {
        hdrt__mark_drop(stream->device, event);
        return call;
    }
    hdrt__stream_mark *mark = mark_at(stream, stream->mark_count++);
    mark->sequence = atomic_load_explicit(&stream->sequence, memory_order_relaxed);
    mark->mark = event;
    stream->work = 0;
    stream->due = 0;
    keep_clock(stream, mark);
    return call;
}

/* Index of the oldest mark at or after a sequence; mark_count if there is none. */
static uint32_t oldest_after(hdrt__stream *stream, uint64_t sequence)
{
    uint32_t low = 0, high = stream->mark_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (mark_at(stream, middle)->sequence < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

hdrt__call hdrt__stream_mark_for(hdrt__stream *stream, uint64_t sequence, hdrt__stream_mark **out_mark)
{
    hdrt__call call = {HDCU_SUCCESS, "cuEventRecord"};
    *out_mark = NULL;
    if (sequence <= atomic_load(&stream->entry.completed)) {
        return call;
    }
    uint32_t index = oldest_after(stream, sequence);
    if (index == stream->mark_count) {
        call = record(stream);
        if (call.result) {
            return call;
        }
    }
    *out_mark = mark_at(stream, index);
    return call;
}

void hdrt__stream_due(hdrt__stream *stream, const hdrt_queue *queue)
{
    if (hdrt__bell_is_rung(stream)) {
        hdrt__stream_mark_end(stream);
    }
    if (!stream->due) {
        return;
    }
    bool producers = stream->flew == queue;
    if (stream->due == 1 && !producers && hdrt__queue_follows(queue, stream)) {
        stream->due = 0; /* the only one that waits goes on here */
    } else {
        hdrt__stream_mark_end(stream);
    }
}

static uint64_t newest_marked(hdrt__stream *stream)
{
    return stream->mark_count ? mark_at(stream, stream->mark_count - 1)->sequence
                              : atomic_load(&stream->entry.completed);
}

void hdrt__stream_mark_end(hdrt__stream *stream)
{
    if (newest_marked(stream) == atomic_load_explicit(&stream->sequence, memory_order_relaxed) ||
        hdrt__device_is_lost(stream->device)) {
        return;
    }
    hdrt__call call = record(stream);
    if (call.result && call.result != HDCU_ERROR_STREAM_CAPTURE_UNSUPPORTED) {
        hdrt__device_check(stream->device, call, "marking stream %u", stream->entry.index);
    }
}

void hdrt__stream_mark_before_wait(hdrt__stream *stream)
{
    if (stream->flight_count && flight_at(stream, stream->flight_count - 1)->sequence > newest_marked(stream)) {
        hdrt__stream_mark_end(stream);
    }
}

void hdrt__stream_mark_by_count(hdrt__stream *stream)
{
    if (atomic_load_explicit(&stream->sequence, memory_order_relaxed) - newest_marked(stream) >= HDRT__MARK_INTERVAL ||
        stream->work >= HDRT__MARK_WORK) {
        hdrt__stream_mark_end(stream);
    }
}

void hdrt__stream_join(hdrt__stream *stream, const hdrt__stream *other, uint64_t sequence, const uint64_t *clock,
                       uint32_t count)
{
    uint32_t index = other->entry.index;
    if (other->device != stream->device) {
        return;
    }
    if (!stream->clock && !(stream->clock = calloc(HDRT__CLOCKS, sizeof *stream->clock))) {
        return; /* it knows nothing, and waits once more the next time */
    }
    if (stream->scheduler->elision == HDRT__ELISION_TRANSITIVE) {
        for (uint32_t i = 0; i < count; i++) {
            stream->clock[i] = clock[i] > stream->clock[i] ? clock[i] : stream->clock[i];
        }
    }
    if (index < HDRT__CLOCKS && sequence > stream->clock[index]) {
        stream->clock[index] = sequence;
    }
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

uint64_t hdrt__stream_measure_from(const hdrt__stream *stream, const hdrt_kernel *kernel)
{
    bool due = !atomic_load_explicit(&kernel->unmeasured, memory_order_relaxed);
    return due && !stream->measured.kernel && hdrt__stream_outstanding(stream) == 0 ? hdrt__now_ns() : 0;
}

/* It stays due until one was measured: a fixed place in the program's loop might never find the stream idle. */
static void count_measured(hdrt_kernel *kernel, bool is_measured)
{
    uint8_t measured = atomic_load_explicit(&kernel->measured, memory_order_relaxed);
    uint8_t left = atomic_load_explicit(&kernel->unmeasured, memory_order_relaxed);
    if (is_measured && measured < MEASURED_FIRST) {
        atomic_store_explicit(&kernel->measured, measured + 1, memory_order_relaxed);
    } else if (is_measured) {
        atomic_store_explicit(&kernel->unmeasured, UNMEASURED, memory_order_relaxed);
    } else if (left) {
        atomic_store_explicit(&kernel->unmeasured, left - 1, memory_order_relaxed);
    }
}

void hdrt__stream_measure(hdrt__stream *stream, hdrt_kernel *kernel, uint64_t begin_ns)
{
    count_measured(kernel, begin_ns != 0);
    if (begin_ns) {
        hdrt__module_hold(kernel->module); /* others may know earlier that the launch is over */
        stream->measured.kernel = kernel;
        stream->measured.sequence = atomic_load_explicit(&stream->sequence, memory_order_relaxed);
        stream->measured.begin_ns = begin_ns;
    }
}

/* \return the module to let go of after the lock, or NULL. */
static hdrt_module *end_measure(hdrt__stream *stream)
{
    hdrt_kernel *kernel = stream->measured.kernel;
    if (!kernel || stream->measured.sequence > atomic_load(&stream->entry.completed)) {
        return NULL;
    }
    if (!hdrt__device_is_lost(stream->device)) {
        uint64_t us = (hdrt__now_ns() - stream->measured.begin_ns) / 1000;
        uint64_t old = atomic_load_explicit(&kernel->expected_us, memory_order_relaxed);
        /* It may have been asked for late: the least is nearest to the truth, though not for ever. */
        uint64_t now = !old || us < old ? us + 1 : old + (us - old) / 8;
        atomic_store_explicit(&kernel->expected_us, now > UINT32_MAX ? UINT32_MAX : (uint32_t)now,
                              memory_order_relaxed);
    }
    stream->measured.kernel = NULL;
    return kernel->module;
}

/* ---- asking the driver ------------------------------------------------------------------------------------------- */

/* The marks up to this one are complete. */
static void complete_up_to(hdrt__stream *stream, uint32_t index)
{
    set_completed(stream, mark_at(stream, index)->sequence);
    for (uint32_t i = 0; i <= index; i++) {
        hdrt__mark_drop(stream->device, mark_at(stream, i)->mark);
    }
    stream->mark_first = (stream->mark_first + index + 1) & (stream->mark_capacity - 1);
    stream->mark_count -= index + 1;
}

/* Under commit: what the bell tells. */
static void hear(hdrt__stream *stream)
{
    uint64_t heard = hdrt__bell_heard(stream);
    if (heard > atomic_load_explicit(&stream->entry.completed, memory_order_relaxed)) {
        uint32_t index = oldest_after(stream, heard + 1);
        if (index) {
            complete_up_to(stream, index - 1);
        }
        set_completed(stream, heard);
    }
}

/* No mark can be had, or the bell is overdue: the stream as a whole still answers, also for what pends, so that goes first. */
static hdrt_status ask_stream(hdrt__stream *stream)
{
    hdrt__pending_flush(stream); /* its failure is its queues' */
    hdrt__call call = HDRT__CALL(stream->device->driver, cuStreamQuery, stream->handle);
    if (call.result == HDCU_ERROR_NOT_READY) {
        return HDRT_OK;
    }
    hdrt_status status = hdrt__device_check(stream->device, call, "asking for the work of stream %u",
                                            stream->entry.index);
    if (status == HDRT_OK) {
        if (stream->mark_count) {
            complete_up_to(stream, stream->mark_count - 1);
        }
        set_completed(stream, atomic_load(&stream->sequence));
    }
    return status;
}

/* \return HDRT_OK if complete, HDRT_NOT_READY, or a failure. */
static hdrt_status ask_mark(hdrt__stream *stream, uint32_t index)
{
    hdrt__call call = HDRT__CALL(stream->device->driver, cuEventQuery, mark_at(stream, index)->mark->event);
    if (call.result == HDCU_ERROR_NOT_READY) {
        return HDRT_NOT_READY;
    }
    return hdrt__device_check(stream->device, call, "asking for the work of stream %u", stream->entry.index);
}

/*
 * Under commit: how far the first `end` marks are complete. They become so in their order, and often there are many that
 * are and many that are not: with growing steps from the oldest, then by halves.
 */
static hdrt_status ask_from_oldest(hdrt__stream *stream, uint32_t end)
{
    hdrt_status status = HDRT_OK;
    uint32_t done = 0;
    bool grows = true;
    for (uint32_t step = 1; done < end; step = grows ? step * 2 : (end - done + 1) / 2) {
        uint32_t probe = step < end - done ? done + step : end;
        status = ask_mark(stream, probe - 1);
        if (status < 0) {
            break;
        }
        if (status == HDRT_OK) {
            done = probe;
        } else {
            end = probe - 1;
            grows = false;
        }
    }
    if (done) {
        complete_up_to(stream, done - 1);
    }
    return status < 0 ? status : HDRT_OK;
}

/* Under commit: what has a mark, or is to get one: first the mark for `sequence`, so that one call is enough if that is
 * complete; else those before it. */
static hdrt_status ask_marks(hdrt__stream *stream, uint64_t sequence)
{
    hdrt__stream_mark *mark;
    hdrt__call call = hdrt__stream_mark_for(stream, sequence, &mark);
    if (call.result) {
        hdrt_status status = hdrt__device_check(stream->device, call, "marking stream %u", stream->entry.index);
        return status == HDRT_ERROR_DEVICE_LOST ? status : ask_stream(stream);
    }
    uint32_t end = stream->mark_count;
    if (mark) {
        end = oldest_after(stream, sequence);
        hdrt_status status = ask_mark(stream, end);
        if (status == HDRT_OK) {
            complete_up_to(stream, end);
        }
        if (status <= HDRT_OK) {
            return status;
        }
    }
    return ask_from_oldest(stream, end);
}

/* Under commit. Where nothing is marked and somebody `waits`, the bell is rung instead, but not while a dispatcher launches: it
 * takes the driver's lock for longer than a mark. */
static hdrt_status ask(hdrt__stream *stream, uint64_t sequence, bool waits)
{
    if (sequence == HDRT__STREAM_MARKED) {
        if (stream->mark_count) {
            return ask_from_oldest(stream, stream->mark_count);
        }
        sequence = atomic_load(&stream->entry.completed) + 1;
    }
    if (sequence > newest_marked(stream)) {
        switch (hdrt__bell_state_for(stream, sequence)) {
        case HDRT__BELL_RUNG: return HDRT_OK;
        case HDRT__BELL_OVERDUE: return ask_stream(stream);
        default: break;
        }
        if (waits && !stream->mark_count && hdrt__dispatchers_rest(stream->scheduler) &&
            hdrt__pending_flush(stream) == HDRT_OK && !stream->mark_count &&
            (hdrt__bell_ring(stream) || hdrt__bell_state_for(stream, sequence) == HDRT__BELL_RUNG)) {
            return HDRT_OK;
        }
    }
    return ask_marks(stream, sequence);
}

/* Under commit: take off the flights that have landed, as many as fit. */
static uint32_t land(hdrt__stream *stream, hdrt__flight *landed, uint32_t capacity)
{
    uint32_t count = 0;
    uint64_t completed = atomic_load(&stream->entry.completed);
    while (count < capacity && stream->flight_count && flight_at(stream, 0)->sequence <= completed) {
        landed[count++] = *flight_at(stream, 0);
        stream->flight_first = (stream->flight_first + 1) & (stream->flight_capacity - 1);
        stream->flight_count--;
    }
    return count;
}

/* Under commit. */
static hdrt_status ask_the_driver(hdrt__stream *stream, uint64_t sequence, bool waits)
{
    hdrt__scope scope;
    hdrt_status status = hdrt__device_enter(stream->device, &scope);
    if (status != HDRT_OK) {
        return status;
    }
    if (!hdrt__device_is_lost(stream->device) && hdrt__stream_outstanding(stream)) {
        uint64_t end = atomic_load(&stream->sequence);
        status = being_captured(stream) ? ask_from_oldest(stream, stream->mark_count)
                                        : ask(stream, sequence < end ? sequence : end, waits);
    }
    hdrt__device_leave(stream->device, &scope);
    return status;
}

hdrt_status hdrt__stream_ask(hdrt__stream *stream, const hdrt_queue *queue, uint64_t position, uint64_t *sequence,
                             bool patient)
{
    hdrt__flight landed[32];
    uint32_t count;
    hdrt_device *device = stream->device;
    if (!patient) {
        hdrt__bell_heed(stream);
    }
    if (hdrt__bell_is_awaited(stream)) {
        return HDRT_OK; /* and nothing is marked that could be asked for */
    }
    if (patient) {
        pthread_mutex_lock(&stream->commit);
    } else if (pthread_mutex_trylock(&stream->commit) != 0) {
        return HDRT_NOT_READY; /* before any driver call, which would be in the way too */
    }
    hdrt__device_hold(device); /* the last flight may be the last that kept it */
    if (queue) {
        *sequence = hdrt__stream_sequence_of(stream, queue, position);
    }
    hear(stream);
    bool known = *sequence != HDRT__STREAM_MARKED && *sequence <= atomic_load(&stream->entry.completed);
    hdrt_status status =
        known && !hdrt__device_is_lost(device) ? HDRT_OK : ask_the_driver(stream, *sequence, !patient);
    for (;;) {
        if (hdrt__device_is_lost(device)) { /* nothing of it will be heard again: let go of the queues */
            set_completed(stream, atomic_load(&stream->sequence));
        }
        hdrt_module *measured = end_measure(stream);
        count = land(stream, landed, sizeof landed / sizeof landed[0]);
        pthread_mutex_unlock(&stream->commit);
        if (measured) {
            hdrt__module_release(measured);
        }
        for (uint32_t i = 0; i < count; i++) {
            hdrt__queue_landed(landed[i].queue, landed[i].position);
            hdrt__queue_drop(landed[i].queue);
        }
        if (count < sizeof landed / sizeof landed[0]) {
            break;
        }
        pthread_mutex_lock(&stream->commit); /* for the rest, which others wait for */
    }
    hdrt__device_drop(device);
    return status;
}

hdrt_status hdrt__stream_poll(hdrt__stream *stream, uint64_t sequence)
{
    return hdrt__stream_ask(stream, NULL, 0, &sequence, true);
}
