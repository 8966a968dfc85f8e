/* SPDX-License-Identifier: MIT */
#include "device/callbacks.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "device/device.h"
#include "driver/thread.h"

typedef struct host_job {
    struct host_job *next;
    hdrt_host_function function; /* NULL: dropped */
    void *argument;
    hdrt_event event;
    uint64_t ticket;
    bool joined; /* due with the call before it */
} host_job;

struct hdrt__host_channel {
    hdrt__callbacks *callbacks; /* held */
    bool owned;                 /* the queue still has it */
    bool due;                   /* in the list of channels with calls to run */
    bool running;               /* a thread runs one of its calls */
    bool cancelled;
    uint32_t waiting; /* notifications that wait for their function */
    host_job *first, **last;
    uint64_t submitted, notified, finished; /* tickets */
    _Atomic uint64_t *word;
    hdrt__host_channel *next_due;
};

struct hdrt__callbacks {
    atomic_uint references; /* the device's, each channel's, each thread's */
    pthread_mutex_t lock;
    pthread_cond_t work, over; /* for threads; for notifications that wait */
    hdrt__host_channel *first, **last;
    uint32_t threads, idle, in_wait;
    bool stop;
};

static _Thread_local struct {
    hdrt__callbacks *callbacks;
    hdrt_event event;
} current;

static void callbacks_drop(hdrt__callbacks *callbacks)
{
    if (atomic_fetch_sub_explicit(&callbacks->references, 1, memory_order_acq_rel) == 1) {
        pthread_cond_destroy(&callbacks->over);
        pthread_cond_destroy(&callbacks->work);
        pthread_mutex_destroy(&callbacks->lock);
        free(callbacks);
    }
}

hdrt__callbacks *hdrt__device_callbacks(hdrt_device *device)
{
    pthread_mutex_lock(&device->lock);
    hdrt__callbacks *callbacks = device->callbacks;
    if (!callbacks && (callbacks = calloc(1, sizeof *callbacks))) {
        atomic_init(&callbacks->references, 1);
        pthread_mutex_init(&callbacks->lock, NULL);
        pthread_cond_init(&callbacks->work, NULL);
        pthread_cond_init(&callbacks->over, NULL);
        callbacks->last = &callbacks->first;
        device->callbacks = callbacks;
    }
    pthread_mutex_unlock(&device->lock);
    if (!callbacks) {
        hdrt__fail_memory(sizeof *callbacks, "a device's host calls");
    }
    return callbacks;
}

void hdrt__callbacks_destroy(hdrt__callbacks *callbacks)
{
    if (!callbacks) {
        return;
    }
    pthread_mutex_lock(&callbacks->lock);
    callbacks->stop = true;
    pthread_cond_broadcast(&callbacks->work);
    pthread_mutex_unlock(&callbacks->lock);
    callbacks_drop(callbacks);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* Under the lock: free a channel that neither its queue nor a thread nor a notification has. */
static bool channel_gone(hdrt__host_channel *channel)
{
    return !channel->owned && !channel->due && !channel->running && channel->waiting == 0;
}

static void channel_free(hdrt__host_channel *channel)
{
    for (host_job *job = channel->first, *next; job; job = next) {
        next = job->next;
        free(job);
    }
    callbacks_drop(channel->callbacks);
    free(channel);
}

/* Under the lock. */
static void make_due(hdrt__callbacks *callbacks, hdrt__host_channel *channel)
{
    if (!channel->due && !channel->running && channel->notified > channel->finished) {
        channel->due = true;
        channel->next_due = NULL;
        *callbacks->last = channel;
        callbacks->last = &channel->next_due;
        pthread_cond_signal(&callbacks->work);
    }
}

/* Under the lock, which is let go while the function runs. */
static void run_one(hdrt__callbacks *callbacks, hdrt__host_channel *channel)
{
    host_job *job = channel->first;
    if (job) {
        channel->first = job->next;
        if (!channel->first) {
            channel->last = &channel->first;
        }
    }
    channel->running = true;
    pthread_mutex_unlock(&callbacks->lock);
    if (job && job->function) {
        current.event = job->event;
        job->function(job->argument);
        current.event = (hdrt_event){0, 0};
    }
    free(job);
    pthread_mutex_lock(&callbacks->lock);
    channel->running = false;
    channel->finished++;
    if (channel->word && !channel->cancelled) {
        atomic_store_explicit(channel->word, channel->finished, memory_order_release);
    }
    pthread_cond_broadcast(&callbacks->over);
}

static void *serve(void *argument)
{
    hdrt__callbacks *callbacks = argument;
    current.callbacks = callbacks;
    pthread_mutex_lock(&callbacks->lock);
    while (callbacks->first || !callbacks->stop) {
        hdrt__host_channel *channel = callbacks->first;
        if (!channel) {
            callbacks->idle++;
            pthread_cond_wait(&callbacks->work, &callbacks->lock);
            callbacks->idle--;
            continue;
        }
        callbacks->first = channel->next_due;
        if (!callbacks->first) {
            callbacks->last = &callbacks->first;
        }
        channel->due = false;
        run_one(callbacks, channel);
        make_due(callbacks, channel);
        if (channel_gone(channel)) {
            pthread_mutex_unlock(&callbacks->lock);
            channel_free(channel);
            pthread_mutex_lock(&callbacks->lock);
        }
    }
    callbacks->threads--;
    pthread_mutex_unlock(&callbacks->lock);
    current.callbacks = NULL;
    callbacks_drop(callbacks);
    return NULL;
}

/* Under the lock. */
static hdrt_status start_thread(hdrt__callbacks *callbacks)
{
    pthread_t thread;
    atomic_fetch_add_explicit(&callbacks->references, 1, memory_order_relaxed);
    hdrt_status status = hdrt__thread_start(&thread, "hdrt-callback", serve, callbacks);
    if (status != HDRT_OK) {
        atomic_fetch_sub_explicit(&callbacks->references, 1, memory_order_relaxed);
        return status;
    }
    pthread_detach(thread);
    callbacks->threads++;
    return HDRT_OK;
}

/* Under the lock: another thread if a call is due and all there are stand in a wait of the library. */
static void help_waiting(hdrt__callbacks *callbacks)
{
    if (callbacks->first && callbacks->idle == 0 && callbacks->in_wait == callbacks->threads &&
        callbacks->threads < HDRT__CALLBACK_THREADS) {
        if (start_thread(callbacks) != HDRT_OK) {
            hdrt__log(HDRT_LOG_ERROR, "host calls that are due wait for one that runs: %s", hdrt_last_error());
        }
    }
}

hdrt_event hdrt__callback_current(void)
{
    return current.event;
}

void hdrt__callback_wait_begin(void)
{
    hdrt__callbacks *callbacks = current.callbacks;
    if (callbacks) {
        pthread_mutex_lock(&callbacks->lock);
        callbacks->in_wait++;
        help_waiting(callbacks);
        pthread_mutex_unlock(&callbacks->lock);
    }
}

void hdrt__callback_wait_end(void)
{
    hdrt__callbacks *callbacks = current.callbacks;
    if (callbacks) {
        pthread_mutex_lock(&callbacks->lock);
        callbacks->in_wait--;
        pthread_mutex_unlock(&callbacks->lock);
    }
}

/* ---- channels ---------------------------------------------------------------------------------------------------- */

hdrt_status hdrt__host_channel_create(hdrt__callbacks *callbacks, _Atomic uint64_t *word,
                                      hdrt__host_channel **out_channel)
{
    hdrt__host_channel *channel = calloc(1, sizeof *channel);
    if (!channel) {
        return hdrt__fail_memory(sizeof *channel, "a queue's host calls");
    }
    channel->callbacks = callbacks;
    atomic_fetch_add_explicit(&callbacks->references, 1, memory_order_relaxed);
    channel->owned = true;
    channel->word = word;
    channel->last = &channel->first;
    *out_channel = channel;
    return HDRT_OK;
}

void hdrt__host_channel_destroy(hdrt__host_channel *channel)
{
    if (!channel) {
        return;
    }
    hdrt__callbacks *callbacks = channel->callbacks;
    pthread_mutex_lock(&callbacks->lock);
    channel->owned = false;
    channel->cancelled = true; /* the word is another queue's from now on */
    bool gone = channel_gone(channel);
    pthread_mutex_unlock(&callbacks->lock);
    if (gone) {
        channel_free(channel);
    }
}

hdrt_status hdrt__host_channel_submit(hdrt__host_channel *channel, hdrt_host_function function, void *argument,
                                      hdrt_event event, uint64_t *out_ticket)
{
    hdrt__callbacks *callbacks = channel->callbacks;
    host_job *job = malloc(sizeof *job);
    if (!job) {
        return hdrt__fail_memory(sizeof *job, "a host call");
    }
    *job = (host_job){.function = function, .argument = argument, .event = event};
    pthread_mutex_lock(&callbacks->lock);
    hdrt_status status = callbacks->threads ? HDRT_OK : start_thread(callbacks);
    if (status == HDRT_OK) {
        *channel->last = job;
        channel->last = &job->next;
        *out_ticket = job->ticket = ++channel->submitted;
    }
    pthread_mutex_unlock(&callbacks->lock);
    if (status != HDRT_OK) {
        free(job);
    }
    return status;
}

/* Under the lock: the calls that are joined to the last notified one are due with it. */
static void notify_joined(hdrt__host_channel *channel)
{
    for (const host_job *job = channel->first; job; job = job->next) {
        if (job->joined && job->ticket == channel->notified + 1) {
            channel->notified++;
        }
    }
}

void hdrt__host_channel_join(hdrt__host_channel *channel)
{
    hdrt__callbacks *callbacks = channel->callbacks;
    pthread_mutex_lock(&callbacks->lock);
    /* It has not been notified, so it is still the last in the list. */
    host_job *job = channel->first;
    while (job && job->next) {
        job = job->next;
    }
    if (job) {
        job->joined = true;
        notify_joined(channel);
        make_due(callbacks, channel);
        help_waiting(callbacks);
    }
    pthread_mutex_unlock(&callbacks->lock);
}

void hdrt__host_channel_retract(hdrt__host_channel *channel)
{
    pthread_mutex_lock(&channel->callbacks->lock);
    host_job **link = &channel->first;
    while (*link && (*link)->next) {
        link = &(*link)->next;
    }
    host_job *job = *link;
    if (job) {
        *link = NULL;
        channel->last = link;
        channel->submitted--;
    }
    pthread_mutex_unlock(&channel->callbacks->lock);
    free(job);
}

void hdrt__host_channel_drop_last(hdrt__host_channel *channel)
{
    pthread_mutex_lock(&channel->callbacks->lock);
    host_job *job = channel->first;
    while (job && job->next) {
        job = job->next;
    }
    if (job) {
        job->function = NULL;
    }
    pthread_mutex_unlock(&channel->callbacks->lock);
}

void hdrt__host_channel_cancel(hdrt__host_channel *channel)
{
    pthread_mutex_lock(&channel->callbacks->lock);
    channel->cancelled = true;
    for (host_job *job = channel->first; job; job = job->next) {
        job->function = NULL;
    }
    pthread_cond_broadcast(&channel->callbacks->over);
    pthread_mutex_unlock(&channel->callbacks->lock);
}

void hdrt__host_channel_notify(void *argument)
{
    hdrt__host_channel *channel = argument;
    hdrt__callbacks *callbacks = channel->callbacks;
    pthread_mutex_lock(&callbacks->lock);
    uint64_t ticket = ++channel->notified;
    notify_joined(channel);
    make_due(callbacks, channel);
    help_waiting(callbacks);
    bool gone = false;
    if (!channel->word) {
        channel->waiting++;
        while (channel->finished < ticket && !channel->cancelled) {
            pthread_cond_wait(&callbacks->over, &callbacks->lock);
        }
        channel->waiting--;
        gone = channel_gone(channel);
    }
    pthread_mutex_unlock(&callbacks->lock);
    if (gone) {
        channel_free(channel);
    }
}
