/* SPDX-License-Identifier: MIT */
#include "soft/model/executor.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "soft/model/simulate.h"

/* So many kernels of one graph are at work at once, like on an H200. */
#define CONCURRENT 128
/* Of so many picks one does not look at priorities: a hint must not starve anybody. */
#define FAIR_PICKS 4
/* After so many looks at memory that nobody writes, the lazy policy lets others go on, who may be meant to write it. */
#define LAZY_POLLS 8

/* ---- picking ---- */

/* Whether the stream's first command may begin, or go on. */
static bool may_begin(hdsoft__stream *stream)
{
    hdsoft__command *command = stream->first;
    if (hdsoft__the.policy == HDSOFT__LAZY && command->position > stream->forced && !command->begun)
        return false;
    return hdsoft__dependencies_met(command, true);
}

/* A ready work of the stream's first command that can be stepped: another one each time. NULL: none. */
static hdsoft__work *pick_work(hdsoft__device *device, hdsoft__stream *stream, bool *poll)
{
    hdsoft__command *command = stream->first;
    if (!may_begin(stream))
        return NULL;
    uint32_t count = command->ready_count < CONCURRENT ? command->ready_count : CONCURRENT;
    for (uint32_t i = 0; i < count; i++) {
        command->turn = command->turn + 1 < count ? command->turn + 1 : 0;
        hdsoft__work *work = &command->works[command->ready[command->turn]];
        if (work->calling)
            continue;
        if (!hdsoft__must_poll(device, work, true))
            return work;
        *poll = true;
    }
    return NULL;
}

static hdsoft__work *pick(hdsoft__device *device, bool *poll)
{
    hdsoft__stream *stream = device->busy;
    if (!stream)
        return NULL;
    bool by_priority = device->prioritised && ++device->picks % FAIR_PICKS;
    hdsoft__work *found = NULL;
    do {
        if (!found || stream->priority < found->command->stream->priority) {
            hdsoft__work *work = pick_work(device, stream, poll);
            found = work ? work : found;
            if (found && !by_priority)
                break;
        }
        stream = stream->busy_next;
    } while (stream != device->busy);
    return found;
}

/* ---- threads ---- */

void hdsoft__executor_sleep(hdsoft__device *device, uint64_t until)
{
    if (until == UINT64_MAX) {
        device->resting = true;
        pthread_cond_wait(&device->work, &hdsoft__the.lock);
        device->resting = false;
        return;
    }
    struct timespec at = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    pthread_cond_timedwait(&device->work, &hdsoft__the.lock, &at);
}

static void *executor_main(void *argument)
{
    hdsoft__device *device = argument;
    uint64_t pause = HDSOFT__POLL_FIRST_NS;
    unsigned polls = 0;
    hdsoft__lock();
    for (;;) {
        bool poll = false;
        uint64_t until = UINT64_MAX;
        if (atomic_load(&device->fault))
            hdsoft__drain(device);
        device->look_again = false;
        if (hdsoft__the.policy == HDSOFT__LAZY)
            hdsoft__force_overdue(device, &until);
        hdsoft__work *work = atomic_load(&device->fault) ? NULL : pick(device, &poll);
        if (!work && device->look_again)
            continue; /* a dependency was forced that lies in a stream already passed */
        if (work) {
            device->busy = work->command->stream->busy_next;
            hdsoft__work_step(device, work, 0);
            pause = HDSOFT__POLL_FIRST_NS;
            polls = 0;
        } else if (poll) {
            uint64_t next = hdsoft__now() + pause;
            hdsoft__executor_sleep(device, next < until ? next : until);
            pause = pause < HDSOFT__POLL_MOST_NS ? 2 * pause : HDSOFT__POLL_MOST_NS;
            hdsoft__retry_idle(device);
            if (++polls % LAZY_POLLS == 0)
                hdsoft__force_heads();
        } else {
            hdsoft__executor_sleep(device, until);
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
        while (!device->call)
            pthread_cond_wait(&device->calls, &hdsoft__the.lock);
        hdsoft__work *work = device->call;
        const hdsoft__task *task = work->task;
        unsigned fault = atomic_load(&device->fault);
        hdsoft__unlock();
        if (task->host.callback)
            task->host.callback(task->host.stream, fault, task->host.argument);
        else if (!fault)
            task->host.function(task->host.argument);
        hdsoft__lock();
        device->call = NULL;
        work->calling = false;
        hdsoft__retry_idle(device);
        if (hdsoft__the.policy == HDSOFT__VIRTUAL && !atomic_load(&device->fault))
            hdsoft__simulate_returned(work);
        else
            hdsoft__work_done(work);
        hdsoft__wake();
    }
    return NULL;
}

/* Whose condition the thread that runs a device's commands sleeps on. */
static hdsoft__device *runner(hdsoft__device *device)
{
    return hdsoft__the.policy >= HDSOFT__RANDOM ? &hdsoft__the.devices[0] : device;
}

static int start_runner(hdsoft__device *device)
{
    hdsoft__device *first = runner(device);
    void *(*main)(void *) = hdsoft__the.policy == HDSOFT__RANDOM    ? hdsoft__random_main
                            : hdsoft__the.policy == HDSOFT__VIRTUAL ? hdsoft__simulate_main
                                                                    : executor_main;
    if (first->running)
        return 0;
    int status = hdsoft__start_thread(main, first);
    first->running = !status;
    return status;
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
    int status = start_runner(device);
    device->started = !status;
    return status;
}

void hdsoft__executor_signal(hdsoft__device *device)
{
    pthread_cond_signal(&runner(device)->work);
}

void hdsoft__executor_enqueued(hdsoft__device *device)
{
    /* Under random and virtual nothing begins by itself, but in the end. */
    if (hdsoft__the.policy < HDSOFT__RANDOM ||
        (runner(device)->resting && hdsoft__the.options.patience != UINT64_MAX))
        hdsoft__executor_signal(device);
}
