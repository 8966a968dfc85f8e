/* SPDX-License-Identifier: MIT */
#include "device/deferred.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/number.h"
#include "base/status.h"
#include "device/device.h"
#include "driver/thread.h"

/* Shared by the device and the thread: whoever lets go last frees it, so neither ever waits for the other. */
struct hdrt__reaper {
    atomic_uint references;
    pthread_mutex_t lock;
    pthread_cond_t work;
    hdrt_device *device; /* alive while the list is not empty, since items hold it */
    hdrt__deferred *first, **last;
    bool started, stop;
};

hdrt_status hdrt__reaper_create(hdrt__reaper **out_reaper)
{
    hdrt__reaper *reaper = calloc(1, sizeof *reaper);
    if (!reaper) {
        return hdrt__fail_memory(sizeof *reaper, "a device's reaper");
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&reaper->work, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&reaper->lock, NULL);
    atomic_init(&reaper->references, 1);
    reaper->last = &reaper->first;
    *out_reaper = reaper;
    return HDRT_OK;
}

static void reaper_drop(hdrt__reaper *reaper)
{
    if (atomic_fetch_sub_explicit(&reaper->references, 1, memory_order_acq_rel) == 1) {
        pthread_cond_destroy(&reaper->work);
        pthread_mutex_destroy(&reaper->lock);
        free(reaper);
    }
}

void hdrt__reaper_destroy(hdrt__reaper *reaper)
{
    if (!reaper) {
        return;
    }
    pthread_mutex_lock(&reaper->lock);
    reaper->stop = true;
    reaper->device = NULL;
    pthread_cond_signal(&reaper->work);
    pthread_mutex_unlock(&reaper->lock);
    reaper_drop(reaper);
}

static void append(hdrt__reaper *reaper, hdrt__deferred *item)
{
    item->next = NULL;
    *reaper->last = item;
    reaper->last = &item->next;
}

/* Run the items that are due; put the others back. */
static void drain(hdrt__reaper *reaper, hdrt_device *device)
{
    pthread_mutex_lock(&reaper->lock);
    hdrt__deferred *item = reaper->first;
    reaper->first = NULL;
    reaper->last = &reaper->first;
    pthread_mutex_unlock(&reaper->lock);
    while (item) {
        hdrt__deferred *next = item->next;
        if (hdrt__uses_over(&item->uses, device->runtime)) {
            hdrt__uses_free(&item->uses);
            item->run(device, item);
            hdrt__device_drop(device);
        } else {
            pthread_mutex_lock(&reaper->lock);
            append(reaper, item);
            pthread_mutex_unlock(&reaper->lock);
        }
        item = next;
    }
}

/* The reaper thread: looks at growing intervals while something is deferred, sleeps while nothing is. */
static void *reap(void *argument)
{
    const uint64_t shortest_ns = 50000, longest_ns = 2000000;
    hdrt__reaper *reaper = argument;
    uint64_t pause = shortest_ns;
    pthread_mutex_lock(&reaper->lock);
    while (!reaper->stop) {
        if (!reaper->first) {
            pause = shortest_ns;
            pthread_cond_wait(&reaper->work, &reaper->lock);
            continue;
        }
        hdrt_device *device = reaper->device;
        hdrt__device_hold(device);
        pthread_mutex_unlock(&reaper->lock);
        drain(reaper, device);
        hdrt__device_drop(device); /* the last one ends the device, which sets stop */
        pthread_mutex_lock(&reaper->lock);
        if (reaper->first && !reaper->stop) {
            uint64_t until = hdrt__now_ns() + pause;
            struct timespec moment = {.tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u)};
            pthread_cond_timedwait(&reaper->work, &reaper->lock, &moment);
            pause = pause * 2 > longest_ns ? longest_ns : pause * 2;
        }
    }
    pthread_mutex_unlock(&reaper->lock);
    reaper_drop(reaper);
    return NULL;
}

/* Under the reaper's lock. Without a thread the items wait for the next call that drains. */
static void start_thread(hdrt__reaper *reaper, hdrt_device *device)
{
    if (reaper->started) {
        return;
    }
    reaper->device = device;
    atomic_fetch_add_explicit(&reaper->references, 1, memory_order_relaxed);
    pthread_t thread;
    if (hdrt__thread_start(&thread, "hdrt-reaper", reap, reaper) == HDRT_OK) {
        pthread_detach(thread);
        reaper->started = true;
    } else {
        atomic_fetch_sub_explicit(&reaper->references, 1, memory_order_relaxed);
        hdrt__log(HDRT_LOG_ERROR, "device %u: what must wait for the GPU is looked at by later calls only: %s",
                  device->index, hdrt_last_error());
    }
}

void hdrt__device_defer(hdrt_device *device, hdrt__deferred *item)
{
    hdrt__reaper *reaper = device->reaper;
    if (hdrt__uses_over(&item->uses, device->runtime)) {
        hdrt__uses_free(&item->uses);
        item->run(device, item);
        return;
    }
    hdrt__device_hold(device);
    pthread_mutex_lock(&reaper->lock);
    append(reaper, item);
    start_thread(reaper, device);
    pthread_cond_signal(&reaper->work);
    pthread_mutex_unlock(&reaper->lock);
}

void hdrt__device_drain(hdrt_device *device)
{
    hdrt__reaper *reaper = device->reaper;
    pthread_mutex_lock(&reaper->lock);
    bool idle = !reaper->first;
    pthread_mutex_unlock(&reaper->lock);
    if (!idle) {
        drain(reaper, device);
    }
}
