/* SPDX-License-Identifier: MIT */
#include "soft/check/history.h"

#include <stdlib.h>
#include <string.h>

#include "soft/check/race.h"
#include "soft/model/module.h"

struct hdsoft__history {
    unsigned references;
    bool begun, done;
    hdsoft__history *older, *newer;  /* of those that are not done */
    hdsoft__history **before;        /* until it begins */
    size_t before_count;
    hdsoft__clock *host;             /* what the host knew when it enqueued this */
    hdsoft__clock *start, *end;      /* before its first task, after its last */
    uint32_t count;
    hdsoft__clock **places;          /* what each task comes after besides start; once it is done, with itself */
};

static struct {
    hdsoft__history *oldest, *newest; /* not done, in the order of their making */
    uint64_t *times;                  /* of the chains but the host's, which is race.c's: how far each has got */
    uint32_t chain_count;
    uint32_t *idle;                   /* chains without a stream */
    uint32_t idle_count;
} all;

static const char *const no_memory = "there is no memory for what happened before what";

static bool racing(void)
{
    return hdsoft__checking(HDSOFT_CHECK_RACE);
}

static void join(hdsoft__clock **clock, hdsoft__clock *other)
{
    if (!hdsoft__clock_join(clock, other))
        hdsoft__race_give_up(no_memory);
}

/* ---- chains ---- */

static bool grow(void **array, size_t count, size_t size)
{
    void *grown = realloc(*array, count * size);
    if (grown)
        *array = grown;
    return grown != NULL;
}

/* A chain that nobody has: one whose operations are all known to the host, so that to be behind its latest is no news
 * to anybody, or a new one. 0: no memory. */
static uint32_t unused_chain(void)
{
    hdsoft__clock *host = hdsoft__host_clock();
    uint32_t found = 0;
    for (uint32_t i = all.idle_count, tries = 0; i-- > 0 && tries < 64 && !found; tries++) {
        uint32_t chain = all.idle[i];
        if (hdsoft__clock_knows(host, chain, all.times[chain])) {
            all.idle[i] = all.idle[--all.idle_count];
            found = chain;
        }
    }
    hdsoft__clock_release(host);
    if (found)
        return found;
    uint32_t next = all.chain_count ? all.chain_count : HDSOFT__HOST_CHAIN + 1;
    /* Room in `idle` for every chain, so that giving one back cannot fail. */
    if (!grow((void **)&all.times, next + 1u, sizeof *all.times) ||
        !grow((void **)&all.idle, next + 1u, sizeof *all.idle))
        return 0;
    all.times[next] = 0;
    all.chain_count = next + 1;
    return next;
}

/* One of the stream's chains all of which the clock knows, or one more for it. */
static uint32_t chain_for(hdsoft__stream *stream, const hdsoft__clock *clock)
{
    for (uint32_t i = 0; i < stream->chain_count; i++) {
        if (hdsoft__clock_knows(clock, stream->chains[i], all.times[stream->chains[i]]))
            return stream->chains[i];
    }
    if (!grow((void **)&stream->chains, stream->chain_count + 1u, sizeof *stream->chains))
        return 0;
    uint32_t chain = unused_chain();
    if (chain)
        stream->chains[stream->chain_count++] = chain;
    return chain;
}

void hdsoft__history_forget(hdsoft__stream *stream)
{
    if (stream->history) {
        join(&stream->context->departed, stream->history->done ? stream->history->end : stream->history->host);
        hdsoft__history_release(stream->history);
        stream->history = NULL;
    }
    for (uint32_t i = 0; i < stream->chain_count; i++)
        all.idle[all.idle_count++] = stream->chains[i];
    free(stream->chains);
    stream->chains = NULL;
    stream->chain_count = 0;
}

/* ---- making ---- */

static void publish_floor(void)
{
    hdsoft__race_floor(all.oldest ? hdsoft__clock_hold(all.oldest->host) : hdsoft__host_clock());
}

static hdsoft__history *new_history(size_t most_before, uint32_t count)
{
    hdsoft__history *history = calloc(1, sizeof *history);
    if (!history)
        goto fail;
    history->references = 1;
    history->count = count;
    history->before = malloc((most_before + 1) * sizeof *history->before);
    history->places = calloc(count + 1u, sizeof *history->places);
    if (!history->before || !history->places)
        goto fail;
    history->host = hdsoft__host_clock();
    return history;

fail:
    hdsoft__history_release(history);
    hdsoft__race_give_up(no_memory);
    return NULL;
}

static void add_before(hdsoft__history *history, hdsoft__history *before)
{
    if (before)
        history->before[history->before_count++] = hdsoft__history_hold(before);
}

/* What a command in the stream comes after by the order of streams. */
static void add_streams(hdsoft__history *history, const hdsoft__stream *stream)
{
    const hdsoft__context *context = stream->context;
    add_before(history, stream->history);
    if (stream->flags & HDCU_STREAM_NON_BLOCKING)
        return;
    if (!stream->legacy) {
        add_before(history, context->legacy->history);
        return;
    }
    join(&history->host, context->departed);
    for (const hdsoft__stream *other = context->streams; other; other = other->next) {
        if (other != stream && !(other->flags & HDCU_STREAM_NON_BLOCKING))
            add_before(history, other->history);
    }
}

static size_t stream_count(const hdsoft__context *context)
{
    size_t count = 0;
    for (const hdsoft__stream *stream = context->streams; stream; stream = stream->next)
        count++;
    return count;
}

hdsoft__history *hdsoft__history_new(hdsoft__stream *stream, const hdsoft__dependency *dependencies, size_t count,
                                     uint32_t tasks)
{
    if (!racing())
        return NULL;
    size_t streams = stream->legacy ? stream_count(stream->context) : 2;
    hdsoft__history *history = new_history(streams + count, tasks);
    if (!history)
        return NULL;
    add_streams(history, stream);
    for (size_t i = 0; i < count; i++)
        add_before(history, dependencies[i].history);
    history->older = all.newest;
    *(all.newest ? &all.newest->newer : &all.oldest) = history;
    all.newest = history;
    hdsoft__history_release(stream->history);
    stream->history = hdsoft__history_hold(history);
    return history;
}

hdsoft__history *hdsoft__history_hold(hdsoft__history *history)
{
    if (history)
        history->references++;
    return history;
}

static void drop_before(hdsoft__history *history)
{
    for (size_t i = 0; i < history->before_count; i++)
        hdsoft__history_release(history->before[i]);
    free(history->before);
    history->before = NULL;
    history->before_count = 0;
}

void hdsoft__history_release(hdsoft__history *history)
{
    if (!history || --history->references)
        return;
    drop_before(history);
    for (uint32_t i = 0; history->places && i < history->count; i++)
        hdsoft__clock_release(history->places[i]);
    free(history->places);
    hdsoft__clock_release(history->host);
    hdsoft__clock_release(history->start);
    hdsoft__clock_release(history->end);
    free(history);
}

hdsoft__history *hdsoft__history_so_far(const hdsoft__operation *operation)
{
    hdsoft__history *history = operation && operation->race ? new_history(0, 0) : NULL;
    if (history) {
        history->begun = history->done = true;
        history->end = hdsoft__clock_hold(hdsoft__race_clock(operation->race));
    }
    return history;
}

/* ---- running ---- */

static void begin_command(hdsoft__history *history)
{
    if (history->begun)
        return;
    history->begun = true;
    history->start = hdsoft__clock_hold(history->host);
    for (size_t i = 0; i < history->before_count; i++) {
        const hdsoft__history *before = history->before[i];
        join(&history->start, before->done ? before->end : before->host); /* not done: dropped after a fault */
    }
    drop_before(history);
    history->end = hdsoft__clock_hold(history->start);
}

static hdsoft__operation_kind kind_of(const hdsoft__task *task)
{
    switch (task->kind) {
    case HDSOFT__TASK_KERNEL: return HDSOFT__OPERATION_KERNEL;
    case HDSOFT__TASK_COPY: return HDSOFT__OPERATION_COPY;
    case HDSOFT__TASK_FILL: return HDSOFT__OPERATION_FILL;
    case HDSOFT__TASK_WAIT_VALUE: return HDSOFT__OPERATION_WAIT_VALUE;
    case HDSOFT__TASK_WRITE_VALUE: return HDSOFT__OPERATION_WRITE_VALUE;
    case HDSOFT__TASK_ALLOCATE: return HDSOFT__OPERATION_ALLOCATE;
    case HDSOFT__TASK_SUSPEND:
    case HDSOFT__TASK_FREE: return HDSOFT__OPERATION_FREE;
    default: return HDSOFT__OPERATION_OTHER;
    }
}

static struct hdsoft__race *begin_race(hdsoft__stream *stream, hdsoft__history *history, uint32_t place)
{
    begin_command(history);
    hdsoft__clock *clock = hdsoft__clock_hold(history->start);
    if (place < history->count)
        join(&clock, history->places[place]);
    uint32_t chain = chain_for(stream, clock);
    uint64_t time = chain ? all.times[chain] + 1 : 0;
    if (chain)
        all.times[chain] += HDSOFT__TIMES_OF_AN_OPERATION;
    publish_floor();
    if (chain && hdsoft__clock_learn(&clock, chain, time))
        return hdsoft__race_new(chain, time, clock);
    hdsoft__clock_release(clock);
    hdsoft__race_give_up(no_memory);
    return NULL;
}

hdsoft__operation *hdsoft__history_begin(hdsoft__stream *stream, hdsoft__history *history, uint32_t place,
                                         const hdsoft__task *task, const hdsoft__site *enqueued)
{
    if (!hdsoft__checking_memory())
        return NULL;
    const char *kernel = NULL;
    hdsoft__lines *lines = NULL;
    if (task->kind == HDSOFT__TASK_KERNEL) {
        hdsoft__image *image = task->launch.function->module->image;
        if (!image->lines)
            image->lines = hdsoft__lines_new(image->program);
        lines = image->lines;
        kernel = task->launch.function->entry->name;
    }
    hdsoft__operation *operation = hdsoft__operation_new(kind_of(task), stream->id, enqueued, kernel, lines);
    if (operation && history && racing())
        operation->race = begin_race(stream, history, place);
    return operation;
}

void hdsoft__history_end(hdsoft__history *history, uint32_t place, hdsoft__operation *operation)
{
    if (history && place < history->count) {
        begin_command(history);
        if (operation && operation->race) {
            hdsoft__race_end(operation->race);
            join(&history->places[place], hdsoft__race_clock(operation->race));
        }
        join(&history->end, history->places[place]);
    }
    hdsoft__operation_release(operation);
}

void hdsoft__history_follow(hdsoft__history *history, uint32_t place, uint32_t later)
{
    if (history && place < history->count && later < history->count)
        join(&history->places[later], history->places[place]);
}

void hdsoft__history_complete(hdsoft__history *history)
{
    if (!history || history->done)
        return;
    begin_command(history);
    history->done = true;
    *(history->older ? &history->older->newer : &all.oldest) = history->newer;
    *(history->newer ? &history->newer->older : &all.newest) = history->older;
    history->older = history->newer = NULL;
    publish_floor();
}

/* ---- meetings ---- */

void hdsoft__history_call(hdsoft__operation *operation)
{
    if (operation && operation->race)
        hdsoft__host_learn(hdsoft__race_clock(operation->race));
}

void hdsoft__history_return(hdsoft__operation *operation)
{
    if (!operation || !operation->race)
        return;
    hdsoft__clock *host = hdsoft__host_clock();
    hdsoft__race_learn(operation->race, host);
    hdsoft__clock_release(host);
}

void hdsoft__history_met(hdsoft__operation *operation, const hdsoft__history *history)
{
    if (operation && operation->race && history && history->done)
        hdsoft__race_learn(operation->race, history->end);
}

/* ---- the host ---- */

hdsoft__history *hdsoft__history_expect(hdsoft__stream *stream)
{
    hdsoft__history *history =
        racing() ? new_history(stream->legacy ? stream_count(stream->context) : 2, 0) : NULL;
    if (history && stream->legacy)
        add_streams(history, stream);
    else if (history)
        add_before(history, stream->history);
    return history;
}

hdsoft__history *hdsoft__history_expect_all(const hdsoft__device *device, const hdsoft__context *context)
{
    size_t count = 0;
    for (const hdsoft__context *at = hdsoft__the.contexts; at; at = at->next)
        count += stream_count(at);
    hdsoft__history *history = racing() ? new_history(count, 0) : NULL;
    for (const hdsoft__context *at = hdsoft__the.contexts; history && at; at = at->next) {
        if (at->device != device || (context && at != context))
            continue;
        join(&history->host, at->departed);
        for (const hdsoft__stream *stream = at->streams; stream; stream = stream->next)
            add_before(history, stream->history);
    }
    return history;
}

void hdsoft__history_saw(hdsoft__history *history, bool success)
{
    if (history && success) {
        hdsoft__host_learn(history->host);
        for (size_t i = 0; i < history->before_count; i++) {
            if (history->before[i]->done)
                hdsoft__host_learn(history->before[i]->end);
        }
        if (history->done)
            hdsoft__host_learn(history->end);
    }
    hdsoft__history_release(history);
}

hdsoft__operation *hdsoft__history_host_operation(hdsoft__operation_kind kind)
{
    if (!racing())
        return NULL;
    hdsoft__operation *operation = hdsoft__operation_new(kind, 0, hdsoft__site_here(), NULL, NULL);
    if (operation) {
        uint64_t time = hdsoft__host_step();
        operation->race = hdsoft__race_new(HDSOFT__HOST_CHAIN, time, hdsoft__host_clock());
    }
    return operation;
}
