/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "soft/check/history.h"
#include "soft/model/capture.h"
#include "soft/model/executor.h"
#include "soft/model/graph.h"
#include "soft/model/simulate.h"

/* Bytes of device memory that a stream costs on an H200. */
#define STREAM_BYTES ((uint64_t)550 << 10)
/* So many unsuccessful queries count as a wait. */
#define QUERIES_FORCE 16

hdsoft__stream *hdsoft__stream_create(hdsoft__context *context, unsigned flags, int priority)
{
    hdsoft__stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    if (!hdsoft__memory_charge(context->device->memory, STREAM_BYTES))
        goto free_stream;
    if (!hdsoft__handle_add(stream, HDSOFT__STREAM))
        goto uncharge;
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    stream->references = 1;
    stream->id = ++hdsoft__the.next_id;
    stream->made = hdsoft__site_here();
    stream->next = context->streams;
    if (stream->next)
        stream->next->previous = stream;
    context->streams = stream;
    return stream;

uncharge:
    hdsoft__memory_uncharge(context->device->memory, STREAM_BYTES);
free_stream:
    free(stream);
    return NULL;
}

void hdsoft__stream_release(hdsoft__stream *stream)
{
    if (--stream->references)
        return;
    free(stream->capture_nodes);
    free(stream);
}

/* A destroyed stream stays in its context until its work is done, so that a synchronisation finds it. */
void hdsoft__stream_retire(hdsoft__stream *stream)
{
    if (stream->next)
        stream->next->previous = stream->previous;
    if (stream->previous)
        stream->previous->next = stream->next;
    else
        stream->context->streams = stream->next;
    hdsoft__history_forget(stream);
    hdsoft__memory_uncharge(stream->context->device->memory, STREAM_BYTES);
    hdsoft__stream_release(stream);
}

void hdsoft__stream_destroy(hdsoft__stream *stream)
{
    hdsoft__capture_drop_stream(stream);
    hdsoft__handle_remove(stream);
    stream->destroyed = true;
    if (!stream->first)
        hdsoft__stream_retire(stream);
}

static hdsoft__stream *per_thread_stream(hdsoft__context *context)
{
    hdsoft__thread *thread = hdsoft__thread_state();
    for (size_t i = 0; i < thread->stream_count; i++) {
        if (thread->streams[i].context == context && !thread->streams[i].stream->destroyed)
            return thread->streams[i].stream;
    }
    void *grown = realloc(thread->streams, (thread->stream_count + 1) * sizeof *thread->streams);
    if (!grown)
        return NULL;
    thread->streams = grown;
    hdsoft__stream *stream = hdsoft__stream_create(context, 0, 0);
    if (!stream)
        return NULL;
    stream->per_thread = true;
    hdsoft__handle_remove(stream); /* it has no handle but 2 */
    thread->streams[thread->stream_count].context = context;
    thread->streams[thread->stream_count].stream = stream;
    thread->stream_count++;
    return stream;
}

int hdsoft__stream_of(hdcu_stream handle, hdsoft__stream **out)
{
    if (handle > HDCU_STREAM_PER_THREAD) {
        if (!hdsoft__handle_is(handle, HDSOFT__STREAM))
            return HDCU_ERROR_INVALID_HANDLE;
        *out = handle;
        return 0;
    }
    hdsoft__context *context;
    int status = hdsoft__current(&context);
    if (status)
        return status;
    bool own = handle == HDCU_STREAM_PER_THREAD || (!handle && hdsoft__own_default_stream);
    *out = own ? per_thread_stream(context) : context->legacy;
    return *out ? 0 : HDCU_ERROR_OUT_OF_MEMORY;
}

int hdsoft__stream_for_work(hdcu_stream handle, hdsoft__stream **out)
{
    int status = hdsoft__stream_of(handle, out);
    if (status)
        return status;
    if ((*out)->capture)
        return (*out)->capture->invalidated ? HDCU_ERROR_STREAM_CAPTURE_INVALIDATED : 0;
    return (*out)->legacy ? hdsoft__capture_legacy_work((*out)->context) : 0;
}

/* ---- commands ---- */

bool hdsoft__reached(const hdsoft__stream *stream, uint64_t position)
{
    return stream->completed >= position;
}

static void add_dependency(hdsoft__command *command, hdsoft__stream *stream, uint64_t position)
{
    if (hdsoft__reached(stream, position))
        return;
    stream->references++;
    command->dependencies[command->dependency_count++] = (hdsoft__dependency){stream, position, NULL};
}

/* The legacy-stream rule: how many streams a command must wait for at most, or, with add, wait for them. */
static size_t legacy_dependencies(hdsoft__stream *stream, hdsoft__command *command)
{
    size_t count = 0;
    if (stream->flags & HDCU_STREAM_NON_BLOCKING)
        return 0;
    if (!stream->legacy) {
        if (command)
            add_dependency(command, stream->context->legacy, stream->context->legacy->issued);
        return 1;
    }
    for (hdsoft__stream *other = stream->context->streams; other; other = other->next) {
        if (other == stream || (other->flags & HDCU_STREAM_NON_BLOCKING) || !other->first)
            continue;
        if (command)
            add_dependency(command, other, other->issued);
        count++;
    }
    return count;
}

static void enter_busy(hdsoft__stream *stream)
{
    hdsoft__device *device = stream->context->device;
    device->prioritised += stream->priority < 0;
    if (!device->busy) {
        device->busy = stream->busy_next = stream->busy_previous = stream;
        return;
    }
    stream->busy_next = device->busy;
    stream->busy_previous = device->busy->busy_previous;
    stream->busy_previous->busy_next = stream;
    stream->busy_next->busy_previous = stream;
}

static int append(hdsoft__stream *stream, hdsoft__command *command, const hdsoft__dependency *dependencies,
                  size_t count)
{
    size_t most = count + legacy_dependencies(stream, NULL);
    if (most) {
        command->dependencies = malloc(most * sizeof *command->dependencies);
        if (!command->dependencies)
            return HDCU_ERROR_OUT_OF_MEMORY;
    }
    int status = hdsoft__executor_start(stream->context->device);
    if (status)
        return status;
    legacy_dependencies(stream, command);
    for (size_t i = 0; i < count; i++)
        add_dependency(command, dependencies[i].stream, dependencies[i].position);
    command->stream = stream;
    command->position = ++stream->issued;
    command->sequence = ++hdsoft__the.next_sequence;
    command->enqueued = hdsoft__site_here();
    command->history = hdsoft__history_new(stream, dependencies, count, command->work_count);
    if (hdsoft__the.policy != HDSOFT__EAGER && hdsoft__the.options.patience != UINT64_MAX)
        command->deadline = hdsoft__now() + hdsoft__the.options.patience;
    if (command->is_launch)
        stream->launches++;
    if (stream->last)
        stream->last->next = command;
    else
        stream->first = command;
    stream->last = command;
    if (stream->first == command)
        enter_busy(stream);
    stream->context->device->outstanding++;
    hdsoft__executor_enqueued(stream->context->device);
    return 0;
}

static int enqueue(hdsoft__stream *stream, hdsoft__command *command, const hdsoft__dependency *dependencies,
                   size_t count, uint64_t *position)
{
    int status = append(stream, command, dependencies, count);
    if (status)
        hdsoft__command_free(command);
    else if (position)
        *position = command->position;
    return status;
}

int hdsoft__enqueue(hdsoft__stream *stream, hdsoft__task *task, const hdsoft__dependency *dependencies, size_t count,
                    uint64_t *position)
{
    hdsoft__command *command = hdsoft__command_new(NULL);
    if (!command) {
        hdsoft__task_release(task);
        return HDCU_ERROR_OUT_OF_MEMORY;
    }
    command->works[0].task = task;
    command->is_launch = task && task->kind == HDSOFT__TASK_KERNEL;
    return enqueue(stream, command, dependencies, count, position);
}

int hdsoft__enqueue_event_wait(hdsoft__stream *stream, const hdsoft__dependency *dependency)
{
    hdsoft__command *command = hdsoft__command_new(NULL);
    if (!command)
        return HDCU_ERROR_OUT_OF_MEMORY;
    command->is_wait = true;
    return enqueue(stream, command, dependency, 1, NULL);
}

int hdsoft__enqueue_graph(hdsoft__stream *stream, hdsoft__task **tasks, hdsoft__precedence *order, uint64_t *position)
{
    hdsoft__command *command = hdsoft__command_new(order);
    if (!command) {
        for (uint32_t i = 0; i < order->count; i++)
            hdsoft__task_release(tasks[i]);
        return HDCU_ERROR_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < order->count; i++)
        command->works[i].task = tasks[i];
    command->is_launch = true;
    return enqueue(stream, command, NULL, 0, position);
}

int hdsoft__submit(hdsoft__stream *stream, hdsoft__task *task, uint64_t *position)
{
    if (stream->capture) {
        int status = hdsoft__capture_task(stream, task);
        if (position)
            *position = 0;
        return status;
    }
    return hdsoft__enqueue(stream, task, NULL, 0, position);
}

/* ---- waiting ---- */

void hdsoft__force(hdsoft__stream *stream, uint64_t position)
{
    if (stream->forced >= position)
        return;
    hdsoft__the.demand += stream->forced <= stream->completed && position > stream->completed;
    stream->forced = position;
    stream->context->device->look_again = true;
    hdsoft__executor_signal(stream->context->device);
}

void hdsoft__demand(hdsoft__stream *stream, uint64_t position)
{
    const hdsoft__thread *thread = hdsoft__thread_state();
    if (!thread || !thread->observing)
        hdsoft__force(stream, position);
}

bool hdsoft__query(hdsoft__stream *stream, uint64_t position, unsigned *queries)
{
    const hdsoft__thread *thread = hdsoft__thread_state();
    if (thread && thread->observing)
        return hdsoft__reached(stream, position);
    unsigned asked = ++*queries;
    stream->references++;
    switch (hdsoft__the.policy) {
    case HDSOFT__VIRTUAL: hdsoft__simulate_query(stream, position, asked >= QUERIES_FORCE); break;
    case HDSOFT__RANDOM: hdsoft__random_query(stream, position, asked >= QUERIES_FORCE); break;
    default:
        if (asked >= QUERIES_FORCE)
            hdsoft__force(stream, position);
    }
    bool reached = hdsoft__reached(stream, position);
    hdsoft__stream_release(stream);
    return reached;
}

int hdsoft__wait(hdsoft__stream *stream, uint64_t position)
{
    hdsoft__device *device = stream->context->device;
    stream->references++;
    hdsoft__demand(stream, position);
    /* After a fault the command may still be at work, with the caller's own memory. */
    bool forced = stream->forced >= position;
    hdsoft__the.patient += !forced;
    while (!hdsoft__reached(stream, position) && (!atomic_load(&device->fault) || device->stepping == stream))
        hdsoft__wait_progress();
    hdsoft__the.patient -= !forced;
    hdsoft__stream_release(stream);
    return (int)atomic_load(&device->fault);
}

int hdsoft__wait_for_room(hdsoft__stream *stream)
{
    hdsoft__device *device = stream->context->device;
    stream->references++;
    hdsoft__the.patient++;
    while ((stream->launches >= HDSOFT__LAUNCH_DEPTH || device->loading) && !atomic_load(&device->fault)) {
        if (stream->launches >= HDSOFT__LAUNCH_DEPTH)
            hdsoft__demand(stream, stream->completed + 1);
        hdsoft__wait_progress();
    }
    hdsoft__the.patient--;
    bool gone = stream->destroyed;
    hdsoft__stream_release(stream);
    if (gone)
        return HDCU_ERROR_INVALID_HANDLE;
    return (int)atomic_load(&device->fault);
}

/* A stream of the device whose work up to `sequence` is not done yet. */
static hdsoft__stream *unfinished(hdsoft__device *device, const hdsoft__context *context, uint64_t sequence,
                                  uint64_t *position)
{
    hdsoft__stream *stream = device->busy;
    if (!stream)
        return NULL;
    hdsoft__stream *found = NULL;
    do {
        if ((!context || stream->context == context) && stream->first->sequence <= sequence) {
            /* All of them must be forced before one is waited for: they may need each other's room to run in. */
            uint64_t last = stream->first->position;
            for (const hdsoft__command *at = stream->first; at && at->sequence <= sequence; at = at->next)
                last = at->position;
            hdsoft__demand(stream, last);
            found = stream;
            *position = last;
        }
        stream = stream->busy_next;
    } while (stream != device->busy);
    return found;
}

int hdsoft__wait_all(hdsoft__device *device, const hdsoft__context *context)
{
    uint64_t sequence = hdsoft__the.next_sequence, position;
    hdsoft__stream *stream;
    hdsoft__history *seen = hdsoft__history_expect_all(device, context);
    while (!atomic_load(&device->fault) && (stream = unfinished(device, context, sequence, &position)))
        hdsoft__wait(stream, position);
    hdsoft__history_saw(seen, true);
    return (int)atomic_load(&device->fault);
}

int hdsoft__wait_since(hdsoft__device *device, uint64_t birth)
{
    const hdsoft__stream *stream = device->busy;
    bool later = false;
    if (stream) {
        do {
            later = stream->last->sequence > birth;
            stream = stream->busy_next;
        } while (!later && stream != device->busy);
    }
    if (later)
        return hdsoft__wait_all(device, NULL);
    hdsoft__history_saw(hdsoft__history_expect_all(device, NULL), true); /* it would have been waited for */
    return (int)atomic_load(&device->fault);
}

/* ---- marks ---- */

hdsoft__mark *hdsoft__mark_enqueue(hdsoft__stream *stream)
{
    hdsoft__mark *mark = calloc(1, sizeof *mark);
    hdsoft__command *command = mark ? hdsoft__command_new(NULL) : NULL;
    if (!command) {
        free(mark);
        return NULL;
    }
    mark->references = 2; /* the event's and the command's */
    command->mark = mark;
    if (enqueue(stream, command, NULL, 0, &mark->at.position)) {
        free(mark); /* the command let go of its share */
        return NULL;
    }
    mark->at.stream = stream;
    mark->at.history = hdsoft__history_hold(command->history);
    stream->references++;
    return mark;
}

hdsoft__mark *hdsoft__mark_reached(hdsoft__stream *stream)
{
    hdsoft__mark *mark = calloc(1, sizeof *mark);
    if (!mark)
        return NULL;
    mark->references = 1;
    mark->at = (hdsoft__dependency){stream, stream->completed, NULL};
    mark->time = hdsoft__timestamp();
    stream->references++;
    return mark;
}

void hdsoft__event_release(hdsoft__event *event)
{
    if (--event->references)
        return;
    hdsoft__mark_release(event->mark);
    free(event->capture_nodes);
    free(event);
}

void hdsoft__mark_release(hdsoft__mark *mark)
{
    if (!mark || --mark->references)
        return;
    hdsoft__history_release(mark->at.history);
    if (mark->at.stream)
        hdsoft__stream_release(mark->at.stream);
    free(mark);
}
