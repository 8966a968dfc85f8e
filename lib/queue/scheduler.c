/* SPDX-License-Identifier: MIT */
#include "queue/scheduler.h"

#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/number.h"
#include "base/status.h"
#include "queue/dispatcher.h"
#include "queue/pending.h"
#include "queue/stream_call.h"
#include "driver/thread.h"

/* Streams that are asked whether they are idle before another is made: the more, the more there are. To make one takes as
 * long as to ask sixteen, and half a megabyte of the device's memory for good. */
#define ASKED_LEAST 4u
#define ASKED_MOST 16u
#define ASKED_EACH_NS 20000u
/* How long launches pend while there is other work. */
#define PENDING_NS 60000u
/* From so many on some can be for wide templates alone; single kernels then never miss an idle one. */
#define STREAMS_MANY 16u
/* Processors from which on a second dispatcher does not take what others need. */
#define PROCESSORS_FOR_TWO 8

/* ---- making and ending ------------------------------------------------------------------------------------------- */

static bool stream_complete(void *context, uint32_t index, uint64_t sequence)
{
    const hdrt__scheduler *scheduler = context;
    return index < HDRT__INDICES &&
           sequence <= atomic_load_explicit(&scheduler->completed[index], memory_order_acquire);
}

static hdrt__elision read_elision(void)
{
    static const char *const names[] = {"none", "stream", "pairwise", "transitive"};
    const char *value = hdrt__environment(HDRT__ENV_ELISION);
    for (int i = 0; value && i < 4; i++) {
        if (strcmp(value, names[i]) == 0) {
            return (hdrt__elision)i;
        }
    }
    return HDRT__ELISION_TRANSITIVE;
}

static void read_switches(hdrt__scheduler *scheduler)
{
    const char *recording = hdrt__environment(HDRT__ENV_RECORDING), *limit = hdrt__environment(HDRT__ENV_STREAMS);
    unsigned long streams = limit ? strtoul(limit, NULL, 10) : 0;
    scheduler->elision = read_elision();
    scheduler->eager = recording && strcmp(recording, "eager") == 0;
    scheduler->stream_limit = streams && streams < HDRT__STREAM_LIMIT ? (uint32_t)streams : HDRT__STREAM_LIMIT;
}

static uint32_t dispatchers_wanted(void)
{
    const char *value = hdrt__environment(HDRT__ENV_DISPATCHERS);
    if (value && (strcmp(value, "1") == 0 || strcmp(value, "2") == 0)) {
        return (uint32_t)(value[0] - '0');
    }
    return hdrt__processors() >= PROCESSORS_FOR_TWO ? 2 : 1;
}

static void drop_streams(hdrt__scheduler *scheduler)
{
    uint32_t count = atomic_load(&scheduler->stream_count);
    for (uint32_t i = 0; i < count; i++) {
        hdrt__stream_drop(atomic_load(&scheduler->streams[i]));
    }
    hdrt__stream_drop(scheduler->blocking);
    hdrt__stream_drop(scheduler->relief.stream);
}

static void scheduler_destroy(void *state)
{
    hdrt__scheduler *scheduler = state;
    if (!scheduler) {
        return;
    }
    for (uint32_t i = 0; i < scheduler->dispatcher_count; i++) {
        hdrt__dispatcher_destroy(scheduler->dispatchers[i]);
    }
    hdrt__templates_destroy(scheduler->templates);
    drop_streams(scheduler);
    hdrt__stream_calls_free(scheduler);
    hdrt__segments_free(&scheduler->segments);
    free(scheduler->free_indices);
    free(scheduler->index_sequences);
    pthread_mutex_destroy(&scheduler->lock);
    free(scheduler);
}

/* At hdrt_device_close. */
static void close_device(hdrt_device *device)
{
    hdrt__scheduler *scheduler = atomic_load(&device->scheduler.state);
    if (scheduler) {
        atomic_store(&scheduler->closed, true);
        hdrt__dispatcher_look(scheduler);
    }
}

static void code_unwanted(hdrt_device *device)
{
    hdrt__scheduler *scheduler = atomic_load(&device->scheduler.state);
    if (scheduler) {
        atomic_store(&scheduler->unwanted, true);
        hdrt__dispatcher_look(scheduler);
    }
}

typedef struct origin {
    hdrt_device *device;
    hdrt__memory *memory;
} origin;

static void *scheduler_create(void *argument)
{
    const origin *from = argument;
    hdrt_device *device = from->device;
    hdrt__scheduler *scheduler = calloc(1, sizeof *scheduler);
    if (!scheduler) {
        hdrt__fail_memory(sizeof *scheduler, "a device's scheduler");
        return NULL;
    }
    scheduler->device = device;
    scheduler->memory = from->memory;
    hdrt__segments_init(&scheduler->segments);
    hdrt__mutex_init_short(&scheduler->lock);
    read_switches(scheduler);
    uint32_t classes = (uint32_t)(device->limits.priority_least - device->limits.priority_greatest) + 1;
    scheduler->classes = classes > HDRT__CLASSES ? HDRT__CLASSES : classes;
    scheduler->templates = hdrt__templates_create(device, stream_complete, scheduler);
    if (!scheduler->templates) {
        goto destroy;
    }
    uint32_t count = dispatchers_wanted();
    while (scheduler->dispatcher_count < count) {
        hdrt__dispatcher *dispatcher = hdrt__dispatcher_create(scheduler, scheduler->dispatcher_count);
        if (!dispatcher) {
            goto destroy;
        }
        scheduler->dispatchers[scheduler->dispatcher_count++] = dispatcher;
    }
    device->close = close_device;
    atomic_store(&device->unwanted, code_unwanted);
    return scheduler;

destroy:
    scheduler_destroy(scheduler);
    return NULL;
}

hdrt__scheduler *hdrt__device_scheduler(hdrt_device *device)
{
    origin from = {device, hdrt__device_memory(device)};
    return from.memory ? hdrt__attachment_get(&device->scheduler, &device->lock, scheduler_create, &from,
                                              scheduler_destroy)
                       : NULL;
}

/* ---- templates --------------------------------------------------------------------------------------------------- */

hdrt__templates *hdrt__scheduler_use_templates(hdrt__scheduler *scheduler)
{
    atomic_fetch_add(&scheduler->template_users, 1);
    if (!atomic_load(&scheduler->closed)) {
        return scheduler->templates;
    }
    atomic_fetch_sub(&scheduler->template_users, 1);
    return NULL;
}

void hdrt__scheduler_leave_templates(hdrt__scheduler *scheduler)
{
    atomic_fetch_sub(&scheduler->template_users, 1);
}

bool hdrt__scheduler_tidy(hdrt__scheduler *scheduler, bool flying)
{
    if (!scheduler->templates) {
        return false;
    }
    if (atomic_load(&scheduler->closed) && !flying && !atomic_load(&scheduler->template_users)) {
        hdrt__templates *templates = scheduler->templates;
        scheduler->templates = NULL;
        hdrt__templates_destroy(templates);
        return false;
    }
    bool left = atomic_exchange(&scheduler->unwanted, false) && hdrt__templates_forget(scheduler->templates);
    if (left) {
        atomic_store(&scheduler->unwanted, true); /* some are in flight, or a committer has them */
    }
    hdrt__templates_collect(scheduler->templates);
    return left;
}

/* ---- indices ----------------------------------------------------------------------------------------------------- */

uint32_t hdrt__scheduler_take_index(hdrt__scheduler *scheduler, uint64_t *out_sequence)
{
    *out_sequence = 0;
    pthread_mutex_lock(&scheduler->lock);
    uint32_t index = scheduler->free_index_count ? scheduler->free_indices[--scheduler->free_index_count]
                                                 : scheduler->index_count++;
    if (index < scheduler->index_capacity) {
        *out_sequence = scheduler->index_sequences[index];
    }
    pthread_mutex_unlock(&scheduler->lock);
    return index;
}

/* Under lock: room to remember an index. */
static bool grow_indices(hdrt__scheduler *scheduler, uint32_t index)
{
    uint32_t capacity = scheduler->index_capacity ? scheduler->index_capacity : 16;
    while (capacity <= index) {
        capacity *= 2;
    }
    if (capacity == scheduler->index_capacity) {
        return true;
    }
    uint32_t *indices = realloc(scheduler->free_indices, capacity * sizeof *indices);
    if (indices) {
        scheduler->free_indices = indices;
    }
    uint64_t *sequences = indices ? realloc(scheduler->index_sequences, capacity * sizeof *sequences) : NULL;
    if (!sequences) {
        return false;
    }
    memset(sequences + scheduler->index_capacity, 0, (capacity - scheduler->index_capacity) * sizeof *sequences);
    scheduler->index_sequences = sequences;
    scheduler->index_capacity = capacity;
    return true;
}

void hdrt__scheduler_give_index(hdrt__scheduler *scheduler, uint32_t index, uint64_t sequence)
{
    pthread_mutex_lock(&scheduler->lock);
    if (grow_indices(scheduler, index)) { /* without memory the index is used no more */
        scheduler->index_sequences[index] = sequence;
        scheduler->free_indices[scheduler->free_index_count++] = index;
    }
    pthread_mutex_unlock(&scheduler->lock);
}

/* ---- choosing a stream ------------------------------------------------------------------------------------------- */

static bool is_for(const hdrt__stream *stream, uint8_t class)
{
    return stream->class == class && !atomic_load_explicit(&stream->wide, memory_order_relaxed);
}

hdrt__stream *hdrt__scheduler_idle(hdrt__scheduler *scheduler, uint8_t class)
{
    uint32_t count = atomic_load_explicit(&scheduler->stream_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        hdrt__stream *stream = atomic_load_explicit(&scheduler->streams[i], memory_order_relaxed);
        if (is_for(stream, class) && hdrt__stream_outstanding(stream) == 0) {
            return stream;
        }
    }
    return NULL;
}

/* Ask for some streams, others each time: one of them may have become idle. */
static hdrt__stream *ask_for_idle(hdrt__scheduler *scheduler, uint8_t class)
{
    uint32_t count = atomic_load_explicit(&scheduler->stream_count, memory_order_acquire);
    uint64_t now = hdrt__now_ns();
    if (count >= scheduler->stream_limit &&
        now - atomic_load_explicit(&scheduler->asked_at, memory_order_relaxed) < ASKED_EACH_NS) {
        return NULL; /* none is to be made anyway */
    }
    atomic_store_explicit(&scheduler->asked_at, now, memory_order_relaxed);
    uint32_t most = count / 2 < ASKED_LEAST ? ASKED_LEAST : count / 2 < ASKED_MOST ? count / 2 : ASKED_MOST;
    for (uint32_t i = 0; i < most && i < count; i++) {
        uint32_t at = atomic_fetch_add_explicit(&scheduler->asked, 1, memory_order_relaxed) % count;
        hdrt__stream *stream = atomic_load_explicit(&scheduler->streams[at], memory_order_relaxed);
        if (is_for(stream, class)) {
            hdrt__stream_poll(stream, UINT64_MAX);
            if (hdrt__stream_outstanding(stream) == 0) {
                return stream;
            }
        }
    }
    return NULL;
}

/* The one of the class with the fewest commands outstanding; NULL if the class has none. */
static hdrt__stream *least_busy(hdrt__scheduler *scheduler, uint8_t class)
{
    hdrt__stream *least = NULL;
    uint32_t count = atomic_load_explicit(&scheduler->stream_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        hdrt__stream *stream = atomic_load_explicit(&scheduler->streams[i], memory_order_relaxed);
        if (stream->class == class &&
            (!least || hdrt__stream_outstanding(stream) < hdrt__stream_outstanding(least))) {
            least = stream;
        }
    }
    return least;
}

/* Add a stream, if the limit allows. The last place is kept for a class that has none. */
static hdrt_status add_stream(hdrt__scheduler *scheduler, uint8_t class, hdrt__stream **out_stream)
{
    hdrt_status status = HDRT_OK;
    *out_stream = NULL;
    pthread_mutex_lock(&scheduler->lock);
    uint32_t count = atomic_load(&scheduler->stream_count);
    bool enough = count + scheduler->making >= scheduler->stream_limit && least_busy(scheduler, class);
    scheduler->making += !enough;
    pthread_mutex_unlock(&scheduler->lock);
    if (enough) {
        return HDRT_OK;
    }
    hdrt__stream *stream = NULL;
    if (count == HDRT__STREAM_LIMIT) {
        status = hdrt__fail(HDRT_ERROR_UNSUPPORTED, "a stream of priority class %u: all %u streams are of other classes",
                            class, HDRT__STREAM_LIMIT);
    } else {
        status = hdrt__stream_create(scheduler, class, true, NULL, &stream);
    }
    pthread_mutex_lock(&scheduler->lock);
    scheduler->making--;
    count = atomic_load(&scheduler->stream_count);
    bool room = status == HDRT_OK && count < HDRT__STREAM_LIMIT;
    if (room) {
        atomic_store_explicit(&scheduler->streams[count], stream, memory_order_relaxed);
        atomic_store_explicit(&scheduler->stream_count, count + 1, memory_order_release);
    }
    pthread_mutex_unlock(&scheduler->lock);
    if (room) {
        *out_stream = stream;
    } else if (status == HDRT_OK) {
        hdrt__stream_drop(stream);
    }
    return status;
}

hdrt_status hdrt__scheduler_stream(hdrt__scheduler *scheduler, uint8_t class, hdrt__stream **out_stream)
{
    hdrt_status status = HDRT_OK;
    *out_stream = hdrt__scheduler_idle(scheduler, class);
    if (!*out_stream) { /* a new one takes half a megabyte of the device's memory, and longer than to ask */
        *out_stream = ask_for_idle(scheduler, class);
    }
    if (!*out_stream) {
        status = add_stream(scheduler, class, out_stream);
    }
    if (!*out_stream && (*out_stream = least_busy(scheduler, class))) {
        return HDRT_OK; /* there is one, whatever kept another from being made */
    }
    return status;
}

/* One more for wide templates, the i-th: theirs alone, unless streams are few. \return false: there is no other. */
static bool add_wide(hdrt__scheduler *scheduler, uint8_t class, uint32_t i)
{
    hdrt__stream **streams = scheduler->wide[class].streams, *stream;
    bool other = hdrt__scheduler_stream(scheduler, class, &stream) == HDRT_OK;
    for (uint32_t j = 0; j < i && other; j++) {
        other = streams[j] != stream;
    }
    if (other) {
        streams[i] = stream;
        atomic_store_explicit(&stream->wide, scheduler->stream_limit >= STREAMS_MANY, memory_order_relaxed);
    }
    return other;
}

/* The one with the least in flight, if that is less than `depth`; of these the first. NULL: there is none. */
static hdrt__stream *wide_with_room(hdrt__scheduler *scheduler, uint8_t class, uint32_t count, uint32_t depth)
{
    hdrt__stream **streams = scheduler->wide[class].streams, *found = NULL;
    uint64_t least = depth;
    for (uint32_t i = 0; i < count && least && (streams[i] || add_wide(scheduler, class, i)); i++) {
        uint64_t outstanding = hdrt__stream_outstanding(streams[i]);
        if (outstanding < least) {
            least = outstanding;
            found = streams[i];
        }
    }
    return found;
}

hdrt__stream *hdrt__scheduler_wide(hdrt__scheduler *scheduler, uint8_t class, bool ask)
{
    hdrt__templates *templates = hdrt__scheduler_use_templates(scheduler);
    if (!templates) {
        return NULL;
    }
    bool ordered = hdrt__templates_wide_in_order(templates);
    hdrt__scheduler_leave_templates(scheduler);
    uint32_t count = ordered ? HDRT__WIDE_STREAMS : HDRT__WIDE_BRANCH_STREAMS, depth = ordered ? HDRT__WIDE_DEPTH : 1;
    hdrt__stream *stream = wide_with_room(scheduler, class, count, depth);
    for (uint32_t i = 0; !stream && ask && i < count && scheduler->wide[class].streams[i]; i++) {
        hdrt__stream_poll(scheduler->wide[class].streams[i], UINT64_MAX);
        stream = wide_with_room(scheduler, class, count, depth);
    }
    return stream;
}

void hdrt__scheduler_pend(hdrt__scheduler *scheduler, hdrt__stream *stream)
{
    if (stream->pending_listed) {
        return;
    }
    stream->pending_listed = true;
    pthread_mutex_lock(&scheduler->lock);
    uint32_t count = atomic_load_explicit(&scheduler->pending_count, memory_order_relaxed);
    if (!count) {
        atomic_store_explicit(&scheduler->pending_since, hdrt__now_ns(), memory_order_relaxed);
    }
    scheduler->pending[count] = stream; /* each of them is there at most once */
    atomic_store_explicit(&scheduler->pending_count, count + 1, memory_order_release);
    pthread_mutex_unlock(&scheduler->lock);
}

hdrt__stream *hdrt__scheduler_pending(hdrt__scheduler *scheduler, uint8_t class)
{
    hdrt__stream *found = NULL;
    if (!atomic_load_explicit(&scheduler->pending_count, memory_order_relaxed)) {
        return NULL;
    }
    pthread_mutex_lock(&scheduler->lock);
    for (uint32_t i = atomic_load(&scheduler->pending_count); i-- > 0 && !found;) {
        found = scheduler->pending[i]->class == class ? scheduler->pending[i] : NULL;
    }
    pthread_mutex_unlock(&scheduler->lock);
    return found;
}

void hdrt__scheduler_flush(hdrt__scheduler *scheduler, bool at_once)
{
    hdrt__stream *streams[HDRT__STREAM_LIMIT];
    if (!atomic_load_explicit(&scheduler->pending_count, memory_order_acquire) ||
        (!at_once &&
         hdrt__now_ns() - atomic_load_explicit(&scheduler->pending_since, memory_order_relaxed) < PENDING_NS)) {
        return;
    }
    pthread_mutex_lock(&scheduler->lock);
    uint32_t count = atomic_load_explicit(&scheduler->pending_count, memory_order_relaxed);
    memcpy(streams, scheduler->pending, count * sizeof streams[0]);
    atomic_store_explicit(&scheduler->pending_count, 0, memory_order_relaxed);
    pthread_mutex_unlock(&scheduler->lock);
    for (uint32_t i = 0; i < count; i++) {
        pthread_mutex_lock(&streams[i]->commit);
        streams[i]->pending_listed = false;
        hdrt__pending_flush(streams[i]);
        hdrt__stream_mark_by_count(streams[i]);
        pthread_mutex_unlock(&streams[i]->commit);
    }
}

hdrt_status hdrt__scheduler_blocking(hdrt__scheduler *scheduler, hdrt__stream **out_stream)
{
    hdrt__stream *stream, *mine = NULL;
    hdrt_status status = HDRT_OK;
    pthread_mutex_lock(&scheduler->lock);
    stream = scheduler->blocking;
    pthread_mutex_unlock(&scheduler->lock);
    if (!stream) {
        status = hdrt__stream_create(scheduler, (uint8_t)(scheduler->classes - 1), false, NULL, &mine);
        pthread_mutex_lock(&scheduler->lock);
        if (status == HDRT_OK && !scheduler->blocking) {
            scheduler->blocking = mine;
            mine = NULL;
        }
        stream = scheduler->blocking;
        pthread_mutex_unlock(&scheduler->lock);
        hdrt__stream_drop(mine);
    }
    *out_stream = stream;
    return stream ? HDRT_OK : status;
}
