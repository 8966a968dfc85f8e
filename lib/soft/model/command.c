/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "soft/check/history.h"
#include "soft/model/executor.h"
#include "soft/model/graph.h"
#include "soft/model/trace.h"

/* So many commands are kept for the next ones: as many as a stream has launches in turn. Memory that is given back to
 * the system and taken again costs more than all else at an enqueue. */
#define SPARE_MOST HDSOFT__LAUNCH_DEPTH

static hdsoft__command *fresh_command(void)
{
    hdsoft__command *command = hdsoft__the.spare;
    if (!command)
        return calloc(1, sizeof *command);
    hdsoft__the.spare = command->next;
    hdsoft__the.spare_count--;
    memset(command, 0, sizeof *command);
    return command;
}

static void discard_command(hdsoft__command *command)
{
    if (hdsoft__the.spare_count >= SPARE_MOST) {
        free(command);
        return;
    }
    command->next = hdsoft__the.spare;
    hdsoft__the.spare = command;
    hdsoft__the.spare_count++;
}

hdsoft__command *hdsoft__command_new(hdsoft__precedence *order)
{
    hdsoft__command *command = fresh_command();
    if (!command)
        return NULL;
    command->works = command->only;
    command->ready = command->only_ready;
    command->work_count = order ? order->count : 1;
    if (command->work_count > 1) {
        command->works = calloc(command->work_count, sizeof *command->works);
        command->ready = malloc(command->work_count * sizeof *command->ready);
        if (!command->works || !command->ready) {
            free(command->works);
            free(command->ready);
            discard_command(command);
            return NULL;
        }
    }
    if (order)
        order->references++;
    command->order = order;
    command->works_left = command->work_count;
    for (uint32_t i = 0; i < command->work_count; i++) {
        command->works[i].command = command;
        command->works[i].waits = order ? order->waits[i] : 0;
        if (!command->works[i].waits)
            command->ready[command->ready_count++] = i;
    }
    return command;
}

void hdsoft__command_free(hdsoft__command *command)
{
    for (size_t i = 0; i < command->dependency_count; i++)
        hdsoft__stream_release(command->dependencies[i].stream);
    for (uint32_t i = 0; i < command->work_count; i++) {
        hdsoft_run_end(command->works[i].run);
        hdsoft__operation_release(command->works[i].operation);
        hdsoft__task_release(command->works[i].task);
    }
    if (command->works != command->only) {
        free(command->works);
        free(command->ready);
    }
    hdsoft__history_complete(command->history);
    hdsoft__history_release(command->history);
    hdsoft__precedence_release(command->order);
    hdsoft__mark_release(command->mark);
    free(command->dependencies);
    discard_command(command);
}

/* ---- completion ---- */

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
    device->prioritised -= stream->priority < 0;
}

/* The stream's first command is done, or, on a faulted device, dropped. */
static void complete(hdsoft__device *device, hdsoft__stream *stream)
{
    hdsoft__command *command = stream->first;
    bool healthy = !atomic_load(&device->fault);
    stream->first = command->next;
    if (!stream->first) {
        stream->last = NULL;
        leave_busy(device, stream);
    }
    bool satisfied = stream->forced > stream->completed && stream->forced <= command->position;
    hdsoft__the.demand -= satisfied;
    stream->completed = command->position;
    stream->queries = 0;
    if (command->is_launch)
        stream->launches--;
    if (command->mark && healthy)
        command->mark->time = hdsoft__timestamp();
    hdsoft__the.gpu_waits += command->is_wait && healthy;
    device->outstanding--;
    hdsoft__command_free(command);
    if (!stream->first && stream->destroyed)
        hdsoft__stream_retire(stream);
    /* Where a single thread steps all devices nobody but hosts need know, and they need not know of each command. */
    if (hdsoft__the.policy < HDSOFT__RANDOM || satisfied || hdsoft__the.patient || !healthy)
        hdsoft__wake();
}

static hdsoft__stream *droppable(hdsoft__device *device)
{
    hdsoft__stream *stream = device->busy;
    for (hdsoft__stream *at = stream; at;) {
        if (!device->call || device->call->command != at->first)
            return at;
        at = at->busy_next;
        if (at == stream)
            break;
    }
    return NULL;
}

void hdsoft__drain(hdsoft__device *device)
{
    hdsoft__stream *stream;
    while ((stream = droppable(device)))
        complete(device, stream);
}

/* What of a task is done under the lock: pools are counted when the stream gets to the free, graphs record events. */
static void finish_task(hdsoft__stream *stream, hdsoft__task *task, hdsoft__operation *operation)
{
    if (task->kind == HDSOFT__TASK_HOST)
        hdsoft__history_return(operation);
    if (task->kind == HDSOFT__TASK_WAIT_EVENT && task->event->mark)
        hdsoft__history_met(operation, task->event->mark->at.history);
    if (task->kind == HDSOFT__TASK_RECORD_EVENT) {
        hdsoft__mark *mark = hdsoft__mark_reached(stream);
        if (mark) {
            mark->at.history = hdsoft__history_so_far(operation);
            hdsoft__mark_release(task->event->mark);
            task->event->mark = mark;
            task->event->capture_id = 0;
        }
    }
    hdsoft__the.gpu_waits += task->kind == HDSOFT__TASK_WAIT_EVENT;
    if (task->kind == HDSOFT__TASK_FREE)
        hdsoft__task_freed(task);
}

static void begin_operation(hdsoft__work *work)
{
    hdsoft__command *command = work->command;
    if (work->task && !work->operation)
        work->operation = hdsoft__history_begin(command->stream, command->history,
                                                (uint32_t)(work - command->works), work->task, command->enqueued);
}

static void leave_ready(hdsoft__command *command, uint32_t index)
{
    command->ready_count--;
    memmove(command->ready + index, command->ready + index + 1,
            (command->ready_count - index) * sizeof *command->ready);
    if (command->turn > index)
        command->turn--;
}

hdsoft__work *hdsoft__work_take(hdsoft__command *command, uint32_t index)
{
    hdsoft__work *work = &command->works[command->ready[index]];
    leave_ready(command, index);
    return work;
}

/* Those that wait until it is done, or in launch order. Until it ends, its history is that of what comes before it. */
static void release_followers(hdsoft__command *command, uint32_t place, uint32_t kind)
{
    const hdsoft__precedence *order = command->order;
    for (uint32_t i = order ? order->first[place] : 0; order && i < order->first[place + 1]; i++) {
        uint32_t follower = order->followers[i] & ~HDSOFT__IN_LAUNCH_ORDER;
        if ((order->followers[i] & HDSOFT__IN_LAUNCH_ORDER) != kind)
            continue;
        hdsoft__history_follow(command->history, place, follower);
        if (!--command->works[follower].waits)
            command->ready[command->ready_count++] = follower;
    }
}

void hdsoft__work_begun(hdsoft__work *work)
{
    release_followers(work->command, (uint32_t)(work - work->command->works), HDSOFT__IN_LAUNCH_ORDER);
}

void hdsoft__work_done(hdsoft__work *work)
{
    hdsoft__command *command = work->command;
    hdsoft__stream *stream = command->stream;
    uint32_t place = (uint32_t)(work - command->works);
    hdsoft__trace_end(work);
    begin_operation(work);
    if (work->task)
        finish_task(stream, work->task, work->operation);
    hdsoft__history_end(command->history, place, work->operation);
    work->operation = NULL;
    for (uint32_t i = 0; i < command->ready_count; i++) {
        if (command->ready[i] == place) {
            leave_ready(command, i);
            break;
        }
    }
    release_followers(command, place, 0);
    if (!--command->works_left)
        complete(stream->context->device, stream);
}

/* ---- what holds a command up ---- */

bool hdsoft__dependencies_met(hdsoft__command *command, bool force)
{
    while (command->dependency_count) {
        hdsoft__dependency *last = &command->dependencies[command->dependency_count - 1];
        if (!hdsoft__reached(last->stream, last->position)) {
            if (force)
                hdsoft__force(last->stream, last->position);
            return false;
        }
        command->dependency_count--;
        hdsoft__stream_release(last->stream);
    }
    return true;
}

/* Whether the memory that a wait-value command waits for is as wanted. */
static bool value_ready(hdsoft__device *device, const hdsoft__task *task)
{
    hdsoft__memory_use_begin(hdsoft__the.hosts);
    int holds = hdsoft__value_holds(device, task);
    hdsoft__memory_use_end(hdsoft__the.hosts);
    return holds != 0; /* gone memory is found, and reported, by the step */
}

/* Whether the mark that an event has now is reached. */
static bool event_reached(const hdsoft__event *event, bool force)
{
    const hdsoft__mark *mark = event->mark;
    if (!mark || hdsoft__reached(mark->at.stream, mark->at.position))
        return true;
    if (force)
        hdsoft__force(mark->at.stream, mark->at.position);
    return false;
}

bool hdsoft__must_poll(hdsoft__device *device, const hdsoft__work *work, bool force)
{
    if (work->idle || !work->task)
        return work->idle;
    switch (work->task->kind) {
    case HDSOFT__TASK_WAIT_EVENT: return !event_reached(work->task->event, force);
    case HDSOFT__TASK_WAIT_VALUE: return !value_ready(device, work->task);
    default: return false;
    }
}

void hdsoft__retry_idle(hdsoft__device *device)
{
    hdsoft__stream *stream = device->busy;
    if (!stream)
        return;
    do {
        const hdsoft__command *command = stream->first;
        for (uint32_t i = 0; i < command->ready_count; i++)
            command->works[command->ready[i]].idle = false;
        stream = stream->busy_next;
    } while (stream != device->busy);
}

void hdsoft__force_heads(void)
{
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        hdsoft__stream *stream = hdsoft__the.devices[i].busy;
        if (!stream)
            continue;
        do {
            hdsoft__force(stream, stream->first->position);
            stream = stream->busy_next;
        } while (stream != hdsoft__the.devices[i].busy);
    }
}

void hdsoft__force_overdue(hdsoft__device *device, uint64_t *until)
{
    hdsoft__stream *stream = device->busy;
    if (!stream || hdsoft__the.options.patience == UINT64_MAX)
        return;
    uint64_t now = hdsoft__now();
    do {
        const hdsoft__command *command = stream->first;
        if (command->position > stream->forced) {
            if (command->deadline <= now)
                hdsoft__force(stream, command->position);
            else if (command->deadline < *until)
                *until = command->deadline;
        }
        stream = stream->busy_next;
    } while (stream != device->busy);
}

/* ---- steps ---- */

bool hdsoft__work_call(hdsoft__device *device, hdsoft__work *work)
{
    if (device->call) {
        work->idle = true; /* one at a time; the others wait for their turn in the streams */
        return false;
    }
    hdsoft__trace_begin(work);
    begin_operation(work);
    hdsoft__history_call(work->operation);
    work->begun = work->calling = work->command->begun = true;
    device->call = work;
    pthread_cond_signal(&device->calls);
    return true;
}

int hdsoft__work_step_only(hdsoft__device *device, hdsoft__work *work, uint64_t budget)
{
    if (!work->begun) {
        hdsoft__trace_begin(work);
        hdsoft__work_begun(work);
    }
    work->begun = work->command->begun = true;
    if (!work->task)
        return 0;
    char text[1024];
    begin_operation(work);
    device->stepping = work->command->stream;
    hdsoft__unlock();
    hdsoft__memory_use_begin(hdsoft__the.hosts);
    if (work->operation)
        hdsoft__check_lock();
    int status = hdsoft__task_step(device, work, budget, text, sizeof text);
    if (work->operation)
        hdsoft__check_unlock();
    hdsoft__memory_use_end(hdsoft__the.hosts);
    hdsoft__report_flush();
    hdsoft__lock();
    device->stepping = NULL;
    if (atomic_load(&device->fault))
        hdsoft__wake(); /* somebody may wait for the step to end */
    if (status < 0)
        hdsoft__fault(device, (unsigned)-status, text);
    work->idle = status == 2;
    return status < 0 ? -1 : status;
}

int hdsoft__work_step(hdsoft__device *device, hdsoft__work *work, uint64_t budget)
{
    if (work->task && work->task->kind == HDSOFT__TASK_HOST)
        return hdsoft__work_call(device, work) ? 1 : 2;
    int status = hdsoft__work_step_only(device, work, budget);
    if (!status)
        hdsoft__work_done(work);
    return status;
}
