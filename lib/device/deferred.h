/* SPDX-License-Identifier: MIT */
/*
 * Deferred work of a device: what must wait until nothing uses an object any more, and may not make anybody wait: a
 * destroyed queue's stream, freed pinned memory, an unloaded module. Items are embedded in the objects, so deferring
 * cannot fail. The device's reaper thread, started on first use, looks at them; so does whoever calls
 * hdrt__device_drain.
 *
 * An item holds the device. Locks: `lock` guards the list and the thread's state; nothing is called under it.
 */
#ifndef HDRT_DEVICE_DEFERRED_H
#define HDRT_DEVICE_DEFERRED_H

#include <pthread.h>

#include <hdrt.h>

#include "device/uses.h"

typedef struct hdrt__deferred {
    struct hdrt__deferred *next;
    hdrt__uses uses; /* to be over before */
    /*
     * Called once when they are, on any thread, with no lock held and in no context: enter the device for driver
     * calls; on a lost one that fails, and none may be made. May free the item.
     */
    void (*run)(hdrt_device *device, struct hdrt__deferred *item);
} hdrt__deferred;

/* Run the item when its uses are over: now if they are. Never waits. Not under a lock that `run` takes. */
void hdrt__device_defer(hdrt_device *device, hdrt__deferred *item);
/* Run what is due. Never waits. */
void hdrt__device_drain(hdrt_device *device);

typedef struct hdrt__reaper hdrt__reaper;

hdrt_status hdrt__reaper_create(hdrt__reaper **out_reaper);
/* At the device's end: nothing is deferred any more. The thread ends by itself. NULL accepted. */
void hdrt__reaper_destroy(hdrt__reaper *reaper);

#endif
