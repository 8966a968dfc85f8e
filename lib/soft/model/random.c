/* SPDX-License-Identifier: MIT */
/*
 * The random policy. The executor runs while some host thread waits for something (hdsoft__the.demand), or has granted
 * it a number of steps and waits until they are taken; so it never runs beside the host.
 */
#include <pthread.h>
#include <stdlib.h>

#include "soft/model/executor.h"
#include "soft/model/trace.h"

/* So many kernels of one graph are at work at once. */
#define CONCURRENT 128
/* Steps until the mood may change: what is needed, what is not, which streams come first. */
#define MOOD_STEPS 48
/* A call in so many is followed by up to so many steps. */
#define CALLS_PER_GRANT 4
#define GRANT_MOST 8
#define QUERY_GRANT 64
/* A host function is waited for as long, so that its end has a fixed place among the steps. */
#define HOST_GRACE_NS 100000000u

static struct {
    uint64_t state;
    bool seeded;
    unsigned grants, mood_left;
    enum { NEEDED, NEEDED_FIRST, ANY } mood;
    uint64_t favours;                          /* hashed with a stream's identity: who comes first */
    uint64_t called[HDSOFT__DEVICES];          /* when the host function began that is running */
} fate;

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t draw(void)
{
    if (!fate.seeded) {
        fate.state = mix(hdsoft__the.options.seed + 1);
        fate.seeded = true;
    }
    return mix(fate.state += UINT64_C(0x9e3779b97f4a7c15));
}

/* ---- choosing ---- */

/* How much a stream's works are preferred; 0: not now. */
static uint64_t weigh(const hdsoft__stream *stream)
{
    bool needed = stream->first->position <= stream->forced;
    if (fate.mood == NEEDED && !needed)
        return 0;
    uint64_t weight = (uint64_t)(1 - stream->priority) * (fate.mood == NEEDED_FIRST && needed ? 4 : 1);
    return (stream->id * UINT64_C(0xd6e8feb86659fd93) ^ fate.favours) >> 17 & 1 ? weight : 8 * weight;
}

typedef struct lottery {
    bool anybody;     /* those that are not needed too */
    bool poll;        /* some wait for what nobody announces */
    uint64_t total;   /* the weights of all works that can be stepped */
    uint64_t ticket;  /* whose share of the total this is, */
    hdsoft__work *found; /* is found; looked for from the second round on */
} lottery;

static bool can_step(hdsoft__device *device, const hdsoft__work *work, bool *poll)
{
    if (work->calling)
        return false;
    if (device->call && work->task && work->task->kind == HDSOFT__TASK_HOST)
        return false;
    if (!hdsoft__must_poll(device, work, false))
        return true;
    *poll = true;
    return false;
}

static void consider(hdsoft__device *device, hdsoft__stream *stream, lottery *choice)
{
    hdsoft__command *command = stream->first;
    if (!hdsoft__dependencies_met(command, command->position <= stream->forced))
        return;
    uint64_t weight = weigh(stream);
    weight = weight || !choice->anybody ? weight : 1;
    uint32_t count = command->ready_count < CONCURRENT ? command->ready_count : CONCURRENT;
    for (uint32_t i = 0; weight && i < count && !choice->found; i++) {
        hdsoft__work *work = &command->works[command->ready[i]];
        if (!can_step(device, work, &choice->poll))
            continue;
        choice->total += weight;
        if (choice->total > choice->ticket)
            choice->found = work;
    }
}

static void consider_all(lottery *choice)
{
    choice->total = 0;
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        hdsoft__device *device = &hdsoft__the.devices[i];
        hdsoft__stream *stream = device->busy, *first = stream;
        if (!stream || atomic_load(&device->fault))
            continue;
        do {
            consider(device, stream, choice);
            stream = stream->busy_next;
        } while (stream != first && !choice->found);
    }
}

static hdsoft__work *choose(bool *poll)
{
    lottery choice = {.ticket = UINT64_MAX};
    bool forced;
    do { /* what is needed may need others, which are needed from then on */
        unsigned demand = hdsoft__the.demand;
        consider_all(&choice);
        forced = hdsoft__the.demand != demand;
    } while (forced);
    if (!choice.total) {
        choice.anybody = true;
        consider_all(&choice);
    }
    *poll = choice.poll;
    if (!choice.total)
        return NULL;
    choice.ticket = draw() % choice.total;
    consider_all(&choice);
    *poll |= !choice.found; /* memory that another thread wrote meanwhile */
    return choice.found;
}

/* ---- steps ---- */

static uint64_t draw_budget(const hdsoft__work *work)
{
    bool bytes = work->task && work->task->kind != HDSOFT__TASK_KERNEL;
    unsigned bits = 5 + (unsigned)(draw() % (bytes ? 16 : 11));
    return 1 + draw() % ((uint64_t)1 << bits);
}

static void change_mood(void)
{
    if (fate.mood_left && --fate.mood_left)
        return;
    fate.mood_left = MOOD_STEPS;
    fate.mood = draw() % 3;
    fate.favours = draw();
}

static void step(hdsoft__work *work)
{
    hdsoft__device *device = work->command->stream->context->device;
    uint64_t budget = draw_budget(work);
    if (!work->begun)
        work->seed = draw() | 1;
    if (work->task && work->task->kind == HDSOFT__TASK_HOST)
        fate.called[device->ordinal] = hdsoft__now();
    hdsoft__trace_note(work->command->stream->id << 32 ^ budget);
    int status = hdsoft__work_step(device, work, budget);
    if (status != 2) {
        for (unsigned i = 0; i < hdsoft__the.device_count; i++)
            hdsoft__retry_idle(&hdsoft__the.devices[i]);
    }
}

/* Until when a running host function must be waited for; 0: none, or none any more. */
static uint64_t host_grace(void)
{
    uint64_t now = hdsoft__now(), until = 0;
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        uint64_t end = fate.called[i] + HOST_GRACE_NS;
        if (hdsoft__the.devices[i].call && end > now && end > until)
            until = end;
    }
    return until;
}

static void end_grants(void)
{
    if (!fate.grants)
        return;
    fate.grants = 0;
    hdsoft__wake();
}

static bool must_rest(uint64_t *until)
{
    for (unsigned i = 0; i < hdsoft__the.device_count; i++) {
        if (atomic_load(&hdsoft__the.devices[i].fault))
            hdsoft__drain(&hdsoft__the.devices[i]);
        hdsoft__force_overdue(&hdsoft__the.devices[i], until);
    }
    return !hdsoft__the.demand && !fate.grants;
}

void *hdsoft__random_main(void *first)
{
    uint64_t pause = HDSOFT__POLL_FIRST_NS;
    hdsoft__lock();
    for (;;) {
        uint64_t until = UINT64_MAX, grace;
        bool poll = false;
        if (must_rest(&until)) {
            hdsoft__executor_sleep(first, until);
            continue;
        }
        if ((grace = host_grace())) {
            hdsoft__executor_sleep(first, grace);
            continue;
        }
        change_mood();
        hdsoft__work *work = choose(&poll);
        if (work) {
            step(work);
            pause = HDSOFT__POLL_FIRST_NS;
            if (fate.grants == 1)
                end_grants();
            fate.grants -= fate.grants > 0;
            continue;
        }
        end_grants();
        if (poll && hdsoft__the.demand) {
            hdsoft__executor_sleep(first, hdsoft__now() + pause);
            pause = pause < HDSOFT__POLL_MOST_NS ? 2 * pause : HDSOFT__POLL_MOST_NS;
            for (unsigned i = 0; i < hdsoft__the.device_count; i++)
                hdsoft__retry_idle(&hdsoft__the.devices[i]);
        } else if (hdsoft__the.demand) {
            hdsoft__executor_sleep(first, until);
        }
    }
    return NULL;
}

/* ---- the host's side ---- */

static void grant(unsigned steps)
{
    bool left = false;
    for (unsigned i = 0; i < hdsoft__the.device_count; i++)
        left |= hdsoft__the.devices[i].outstanding > 0;
    if (!left)
        return;
    fate.grants += steps;
    hdsoft__executor_signal(&hdsoft__the.devices[0]);
    while (fate.grants)
        hdsoft__wait_progress();
}

void hdsoft__random_after_call(void)
{
    const hdsoft__thread *thread = hdsoft__thread_state();
    bool left = false;
    for (unsigned i = 0; i < hdsoft__the.device_count; i++)
        left |= hdsoft__the.devices[i].outstanding > 0;
    if (!left || !thread || thread->observing || thread->in_callback)
        return;
    if (draw() % CALLS_PER_GRANT == 0)
        grant(1 + (unsigned)(draw() % GRANT_MOST));
}

void hdsoft__random_query(hdsoft__stream *stream, uint64_t position, bool force)
{
    if (force && !hdsoft__reached(stream, position))
        grant(QUERY_GRANT);
}
