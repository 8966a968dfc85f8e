/* SPDX-License-Identifier: MIT */
/*
 * A device's memory: its pool, the words that streams wait on, and the bounded pinned memory of snapshots. Made with
 * the device's first queue, ended with the device. The queue's operations use it; the public functions for pinned
 * memory are here too.
 *
 * Locks: `scan` is held while timelines are asked and the snapshots' memory is got, once (so it is taken before a
 * commit lock, never under one); `lock` guards the lists and is a leaf, with no driver call under it.
 */
#ifndef HDRT_MEMORY_MEMORY_H
#define HDRT_MEMORY_MEMORY_H

#include <pthread.h>
#include <stdatomic.h>

#include <hdrt.h>

#include "driver/call.h"

/* Snapshot memory of a device: slots of two sizes, 2 MiB each. */
#define HDRT__SNAPSHOT_SMALL 4096u
#define HDRT__SNAPSHOT_SMALL_COUNT 512u
#define HDRT__SNAPSHOT_LARGE HDRT_WRITE_LIMIT
#define HDRT__SNAPSHOT_LARGE_COUNT 32u

/*
 * A slot of snapshot memory:
 *
 *     FREE --take--> TAKEN --until(event)--> BUSY --event over, seen by a take--> FREE
 *                      +---------------- give ---------------------------------> FREE
 */
typedef struct hdrt__snapshot {
    void *bytes;
    bool large;
    hdrt_event until;
    struct hdrt__snapshot *next;
} hdrt__snapshot;

/* A pinned 64-bit word, and where the device sees it. */
typedef struct hdrt__word {
    _Atomic uint64_t *host;
    hdcu_pointer device;
    struct hdrt__word *next;
} hdrt__word;

typedef struct hdrt__memory hdrt__memory;

/* The device's memory, made on first use. Inside the device's scope, under no lock. NULL with a message on failure. */
hdrt__memory *hdrt__device_memory(hdrt_device *device);

/* ---- device memory: inside the device's scope -------------------------------------------------------------------- */

/* Whether allocations are ordered by streams; without, they are at once and freeing them must wait for the work. */
bool hdrt__memory_pooled(const hdrt__memory *memory);
/* One driver call and no message; with a pool in the stream's order. */
hdrt__call hdrt__memory_alloc(hdrt__memory *memory, hdcu_stream stream, uint64_t bytes, hdcu_pointer *out_pointer);
/* After HDCU_ERROR_OUT_OF_MEMORY: give the pool's unused memory back to the driver, so that another try may succeed. */
void hdrt__memory_trim(hdrt__memory *memory);

/* Whether the driver has the address in the device's pool, still or again. */
bool hdrt__memory_holds(hdrt__memory *memory, hdcu_pointer pointer);

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* Take a word, zero. Inside the device's scope, under no lock but device->lock. \return HDRT_OK, or the failure. */
hdrt_status hdrt__word_take(hdrt__memory *memory, hdrt__word **out_word);
/* The same for who can do without: NULL, and no message, if there is none. */
hdrt__word *hdrt__word_spare(hdrt__memory *memory);
void hdrt__word_give(hdrt__memory *memory, hdrt__word *word);

/* ---- snapshots --------------------------------------------------------------------------------------------------- */

/*
 * Take a slot of at least `bytes` (at most HDRT_WRITE_LIMIT). Inside the device's scope, under no lock.
 * \return HDRT_OK; HDRT_WOULD_BLOCK  all are busy; or a failure.
 */
hdrt_status hdrt__snapshot_take(hdrt__memory *memory, uint64_t bytes, hdrt__snapshot **out_snapshot);
/* The slot is read until `event`. */
void hdrt__snapshot_until(hdrt__memory *memory, hdrt__snapshot *snapshot, hdrt_event event);
/* The slot was not needed after all. */
void hdrt__snapshot_give(hdrt__memory *memory, hdrt__snapshot *snapshot);

/* ---- checks of ranges -------------------------------------------------------------------------------------------- */

/*
 * Check that `bytes` (1 or more) at `pointer` lie in one allocation that the library or the driver knows. Under no lock;
 * enters the device's scope where the driver must be asked.
 *
 * \param what  for the message: "hdrt_copy_htod: the destination"
 * \param out_context  set to the context that it belongs to; NULL where only the driver knows it
 * \return HDRT_OK, HDRT_ERROR_INVALID_ARGUMENT, HDRT_ERROR_DEVICE_LOST.
 */
hdrt_status hdrt__check_device_range(hdrt_device *device, hdrt_ptr pointer, uint64_t bytes, const char *what,
                                     hdcu_context *out_context);

/*
 * Check that `bytes` (1 or more) of host memory are not NULL and end inside the pinned memory in which they begin.
 * \param out_pinned  whether copies of it need no staging by the driver
 */
hdrt_status hdrt__check_host_range(hdrt_device *device, const void *memory, uint64_t bytes, const char *what,
                                   bool *out_pinned);

#endif
