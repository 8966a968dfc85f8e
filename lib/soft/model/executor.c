/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "soft/check/order.h"
#include "soft/model/driver.h"

/* How often memory is looked at that a stream waits for, at first and at most. */
#define POLL_FIRST_NS 20000u
#define POLL_MOST_NS 500000u

void hdsoft__command_free(hdsoft__command *command)
{
    hdsoft_run_end(command->run);
    hdsoft__order_end(command);
    for (size_t i = 0; i < command->dependency_count; i++)
        hdsoft__stream_release(command->dependencies[i].stream);
    for (size_t i = 0; i < command->task_count; i++)
        hdsoft__task_release(command->tasks[i]);
    if (command->tasks != command->only)
        free(command->tasks);
    hdsoft__mark_release(command->mark);
    free(command->dependencies);
    free(command);
}

static void leave_busy(hdsoft__device *device, hdsoft__stream *stream)
{
    if (stream->busy_next == stream) {
        device->busy = NULL;
    } else {
        stream->busy_previous->busy_next = stream->busy_next;
        stream->busy_next->busy_previous = stream->busy_previous;
        if (device->busy == stream)
            device->busy = stream->busy_next;
    }
    stream->busy_next = stream->busy_previous = NULL;
}

/* The stream's first command is done, or, on a faulted device, dropped. */
static void complete(hdsoft__device *device, hdsoft__stream *stream)
{
    hdsoft__command *command = stream->first;
    stream->first = command->next;
    if (!stream->first) {
        stream->last = NULL;
        leave_busy(device, stream);
    }
    stream->completed = command->position;
    stream->queries = 0;
    if (command->is_launch)
        stream->launches--;
    if (command->mark && !atomic_load(&device->fault))
        command->mark->time = hdsoft__now();
    device->outstanding--;
    hdsoft__command_free(command);
    if (!stream->first && stream->destroyed)
        hdsoft__stream_retire(stream);
    hdsoft__wake();
}

static hdsoft__stream *droppable(hdsoft__device *device)
{
    hdsoft__stream *stream = device->busy;
    for (hdsoft__stream *at = stream; at;) {
        if (!at->first->calling)
            return at;
        at = at->busy_next;
        if (at == stream)
            break;
    }
    return NULL;
}

/* Drop all that a faulted device still had to do, but for what lies behind a host function that is being called. */
static void drain(hdsoft__device *device)
{
    hdsoft__stream *stream;
    while ((stream = droppable(device)))
        complete(device, stream);
}

/* Whether the memory that a wait-value command waits for is as wanted. */
static bool value_ready(hdsoft__device *device, const hdsoft__task *task)
{
    hdsoft__memory_use_begin(hdsoft__the.hosts);
    int holds = hdsoft__value_holds(device, task);
    hdsoft__memory_use_end(hdsoft__the.hosts);
    return holds != 0; /* gone memory is found, and reported, by the step */
}

static bool dependencies_met(hdsoft__command *command)
{
    while (command->dependency_count) {
        hdsoft__dependency *last = &command->dependencies[command->dependency_count - 1];
        if (!hdsoft__reached(last->stream, last->position)) {
            hdsoft__force(last->stream, last->position);
            return false;
        }
        command->dependency_count--;
        hdsoft__stream_release(last->stream);
    }
    return true;
}

/* Whether the mark that an event has now is reached. */
static bool event_reached(const hdsoft__event *event)
{
    const hdsoft__mark *mark = event->mark;
    if (!mark || hdsoft__reached(mark->at.stream, mark->at.position))
        return true;
    hdsoft__force(mark->at.stream, mark->at.position);
    return false;
}

/* Whether what the command does next must wait for something that nobody will announce. */
static bool must_poll(hdsoft__device *device, const hdsoft__command *command)
{
    if (command->idle || command->task_index == command->task_count)
        return command->idle;
    const hdsoft__task *task = command->tasks[command->task_index];
    if (task->kind == HDSOFT__TASK_WAIT_EVENT)
        return !event_reached(task->event);
    return task->kind == HDSOFT__TASK_WAIT_VALUE && !value_ready(device, task);
}

/* Whether the stream's first command may take a step. */
static bool may_step(hdsoft__device *device, hdsoft__stream *stream, bool *poll, uint64_t *until)
{
    hdsoft__command *command = stream->first;
    if (command->calling)
        return false;
    if (hdsoft__the.policy == HDSOFT__LAZY && command->position > stream->forced && !command->run) {
        if (hdsoft__now() < command->deadline) {
            *until = command->deadline < *until ? command->deadline : *until;
            return false;
        }
        stream->forced = command->position;
    }
    if (!dependencies_met(command))
        return false;
    bool waits = must_poll(device, command);
    *poll |= waits;
    return !waits;
}

static hdsoft__stream *pick(hdsoft__device *device, bool *poll, uint64_t *until)
{
    hdsoft__stream *stream = device->busy;
    if (!stream)
        return NULL;
    do {
        if (may_step(device, stream, poll, until))
            return stream;
        stream = stream->busy_next;
    } while (stream != device->busy);
    return NULL;
}

static void call_host(hdsoft__device *device, hdsoft__stream *stream)
{
    hdsoft__command *command = stream->first;
    command->calling = true;
    if (device->calling_stream) {
        /* One at a time; the others wait for their turn in the streams. */
        command->calling = false;
        command->idle = true;
        return;
    }
    device->calling_stream = stream;
    pthread_cond_signal(&device->calls);
}

/* What of a task is done under the lock: pools are counted when the stream gets to the free, graphs record events. */
static void task_finished(hdsoft__stream *stream, hdsoft__command *command)
{
    hdsoft__task *task = command->tasks[command->task_index++];
    hdsoft__order_end(command);
    if (task->kind == HDSOFT__TASK_RECORD_EVENT) {
        hdsoft__mark *mark = hdsoft__mark_reached(stream);
        if (mark) {
            hdsoft__mark_release(task->event->mark);
            task->event->mark = mark;
            task->event->capture_id = 0;
        }
    }
    if (task->kind == HDSOFT__TASK_FREE)
        hdsoft__task_freed(task);
}

static void step(hdsoft__device *device, hdsoft__stream *stream)
{
    hdsoft__command *command = stream->first;
    if (command->task_index < command->task_count) {
        char text[1024];
        hdsoft__order_begin(stream, command);
        if (command->tasks[command->task_index]->kind == HDSOFT__TASK_HOST) {
            call_host(device, stream);
            return;
        }
        device->stepping = stream;
        hdsoft__unlock();
        hdsoft__memory_use_begin(hdsoft__the.hosts);
        if (command->operation)
            hdsoft__check_lock();
        int status = hdsoft__task_step(device, command, text, sizeof text);
        if (command->operation)
            hdsoft__check_unlock();
        hdsoft__memory_use_end(hdsoft__the.hosts);
        hdsoft__report_flush();
        hdsoft__lock();
        device->stepping = NULL;
        if (atomic_load(&device->fault))
            hdsoft__wake(); /* somebody may wait for the step to end */
        if (status < 0)
            hdsoft__fault(device, (unsigned)-status, text);
        command->idle = status == 2;
        if (status)
            return;
        task_finished(stream, command);
        if (command->task_index < command->task_count)
            return;
    }
    complete(device, stream);
}

static void wait_until(hdsoft__device *device, uint64_t time)
{
    struct timespec at = {(time_t)(time / 1000000000u), (long)(time % 1000000000u)};
    pthread_cond_timedwait(&device->work, &hdsoft__the.lock, &at);
}

static void retry_idle(hdsoft__device *device)
{
    hdsoft__stream *stream = device->busy;
    if (!stream)
        return;
    do {
        stream->first->idle = false;
        stream = stream->busy_next;
    } while (stream != device->busy);
}

static void *executor_main(void *argument)
{
    hdsoft__device *device = argument;
    uint64_t pause = POLL_FIRST_NS;
    hdsoft__lock();
    for (;;) {
        bool poll = false;
        uint64_t until = UINT64_MAX;
        if (atomic_load(&device->fault))
            drain(device);
        device->look_again = false;
        hdsoft__stream *stream = atomic_load(&device->fault) ? NULL : pick(device, &poll, &until);
        if (!stream && device->look_again)
            continue; /* a dependency was forced that lies in a stream already passed */
        if (stream) {
            device->busy = stream->busy_next;
            step(device, stream);
            pause = POLL_FIRST_NS;
        } else if (poll) {
            wait_until(device, hdsoft__now() + pause);
            pause = pause < POLL_MOST_NS ? 2 * pause : POLL_MOST_NS;
            retry_idle(device);
        } else if (until != UINT64_MAX) {
            wait_until(device, until);
        } else {
            pthread_cond_wait(&device->work, &hdsoft__the.lock);
        }
    }
    return NULL;
}

static void *caller_main(void *argument)
{
    hdsoft__device *device = argument;
    hdsoft__lock();
    hdsoft__thread *thread = hdsoft__thread_state();
    if (thread)
        thread->in_callback = true;
    for (;;) {
        while (!device->calling_stream)
            pthread_cond_wait(&device->calls, &hdsoft__the.lock);
        hdsoft__stream *stream = device->calling_stream;
        hdsoft__command *command = stream->first;
        const hdsoft__task *task = command->tasks[command->task_index];
        unsigned fault = atomic_load(&device->fault);
        hdsoft__unlock();
        if (task->host.callback)
            task->host.callback(task->host.stream, fault, task->host.argument);
        else if (!fault)
            task->host.function(task->host.argument);
        hdsoft__lock();
        device->calling_stream = NULL;
        command->calling = false;
        retry_idle(device);
        task_finished(stream, command);
        if (command->task_index == command->task_count)
            complete(device, stream);
        hdsoft__wake();
    }
    return NULL;
}

int hdsoft__executor_start(hdsoft__device *device)
{
    if (device->started)
        return 0;
    if (!device->caller_started) {
        int status = hdsoft__start_thread(caller_main, device);
        if (status)
            return status;
        device->caller_started = true;
    }
    int status = hdsoft__start_thread(executor_main, device);
    device->started = !status;
    return status;
}
