/* SPDX-License-Identifier: MIT */
#include "device/callbacks.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "device/device.h"
#include "driver/thread.h"

struct hdrt__callbacks {
    atomic_uint references; /* the device's, each thread's */
    pthread_mutex_t lock;
    pthread_cond_t work;
    hdrt__host_job *first, **last;
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

/* Under the lock, which is let go while the function runs. */
static void run_first(hdrt__callbacks *callbacks)
{
    hdrt__host_job *job = callbacks->first;
    callbacks->first = job->next;
    if (!callbacks->first) {
        callbacks->last = &callbacks->first;
    }
    pthread_mutex_unlock(&callbacks->lock);
    bool called = !hdrt__device_is_lost(job->device);
    if (called) {
        current.event = job->event;
        hdrt__order_call_begin(job->device->runtime->order, job->event);
        job->function(job->argument);
        current.event = (hdrt_event){0, 0};
    }
    hdrt__order_call_end(job->device->runtime->order, job->event);
    hdrt__order_tell(job->device->runtime->order);
    job->over(job, called); /* may be the end of the device: only the thread's own reference is left then */
    pthread_mutex_lock(&callbacks->lock);
}

static void *serve(void *argument)
{
    hdrt__callbacks *callbacks = argument;
    current.callbacks = callbacks;
    pthread_mutex_lock(&callbacks->lock);
    while (callbacks->first || !callbacks->stop) {
        if (callbacks->first) {
            run_first(callbacks);
        } else {
            callbacks->idle++;
            pthread_cond_wait(&callbacks->work, &callbacks->lock);
            callbacks->idle--;
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

hdrt_status hdrt__callbacks_start(hdrt__callbacks *callbacks)
{
    pthread_mutex_lock(&callbacks->lock);
    hdrt_status status = callbacks->threads ? HDRT_OK : start_thread(callbacks);
    pthread_mutex_unlock(&callbacks->lock);
    return status;
}

hdrt_status hdrt__callbacks_submit(hdrt__callbacks *callbacks, hdrt__host_job *job)
{
    pthread_mutex_lock(&callbacks->lock);
    hdrt_status status = callbacks->threads ? HDRT_OK : start_thread(callbacks);
    if (status == HDRT_OK) {
        job->next = NULL;
        *callbacks->last = job;
        callbacks->last = &job->next;
        pthread_cond_signal(&callbacks->work);
        help_waiting(callbacks);
    }
    pthread_mutex_unlock(&callbacks->lock);
    return status;
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
