/* SPDX-License-Identifier: MIT */
/*
 * A queue's inside. Every public function that enqueues goes the same way (commit.h): begin, check what arguments can
 * tell, take the commit lock with room in the ring, make the driver calls of one operation, end. In this version each
 * queue owns one stream and the caller commits; what stands above, positions, marks and failures, stays when a
 * dispatcher commits and queues share streams.
 *
 * Positions: each operation has one, counted from 1, taken under the commit lock. Two counters tell where the queue is:
 *
 *     position   last one taken, failed ones included
 *     committed  last one whose operation was handed over to the driver (or was a no-op)
 *
 * A position is complete when the timeline says so, which it learns from marks (mark.h). State:
 *
 *     OPEN --a driver call of an operation fails, or it waits for a failed event--> FAILED
 *     FAILED --hdrt_queue_clear_error--> OPEN
 *
 * and over both lies the device's lost state. Destroyed queues live on until their work is over (`closing`).
 *
 * Locks: `commit` guards what is marked with it and orders the stream's driver calls. Never two commit locks at once.
 */
#ifndef HDRT_QUEUE_QUEUE_H
#define HDRT_QUEUE_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>

#include <hdrt.h>

#include "device/device.h"
#include "memory/memory.h"

typedef enum hdrt__queue_state {
    HDRT__QUEUE_OPEN,
    HDRT__QUEUE_FAILED,
} hdrt__queue_state;

/* A recorded mark: complete means that all positions up to this one are. */
typedef struct hdrt__ring_mark {
    uint64_t position;
    uint64_t commands; /* driver commands of the stream up to here */
    hdrt__mark *mark;
} hdrt__ring_mark;

/*
 * Driver commands outstanding in a stream: below the number at which the driver's calls block (1021 launches), with
 * room for what a failed queue still frees. Marks can be no more than that.
 */
#define HDRT__COMMAND_LIMIT 900u
#define HDRT__COMMAND_LIMIT_FREE 980u
#define HDRT__MARK_LIMIT 1024u
/*
 * What a host call counts for: behind a closed gate the driver takes only 55 host functions with waits in turn before its
 * call blocks (tests/bench/depth.c), so at most 50 are outstanding.
 */
#define HDRT__HOST_CALL_COMMANDS 18u
/* Commands after which a mark is recorded although nobody asked for one. */
#define HDRT__MARK_INTERVAL 64u
#define HDRT__RING_LIMIT_DEFAULT 4096u

/* A module that operations in flight use, up to a position. */
typedef struct hdrt__held_module {
    struct hdrt__held_module *next;
    hdrt_module *module;
    uint64_t position;
} hdrt__held_module;

struct hdrt_queue {
    hdrt__device_queue entry; /* first: the device's view of it, with name and timeline */
    atomic_uint references;   /* its life's, and whoever looks at it just now */
    hdrt_device *device;      /* held, but by the default queue only after its device was closed */
    hdrt__memory *memory;
    hdcu_stream stream;
    bool adopted;              /* the stream is the caller's */
    bool is_default;
    atomic_bool foreign_work;  /* the caller may enqueue on the stream too */
    uint32_t ring_limit, mark_interval;
    hdrt_back_pressure back_pressure;
    atomic_bool closed; /* destroyed by the caller */

    pthread_mutex_t commit;
    /* Under commit, but for the loads of atomic ones: */
    _Atomic hdrt__queue_state state;
    hdrt__failure *failure; /* of a FAILED queue; NULL: it found no memory */
    uint64_t position;
    _Atomic uint64_t committed;
    uint64_t recorded; /* highest position that hdrt_queue_record gave out */
    _Atomic uint64_t hazard; /* last position that may write host memory or wait for what does */
    uint64_t commands, commands_completed;
    hdrt__ring_mark *marks; /* a ring of mark_capacity, a power of two */
    uint32_t mark_first, mark_count, mark_capacity;
    hdrt__held_module *modules;
    hdrt__word *word; /* of the channel */
    uint64_t last_host_call; /* position of the last one that the stream waits for, 0: none */
    bool finished;    /* the stream and the marks are gone */

    hdrt__deferred closing;
};

/* Make a queue on a stream of its own, or on `stream`. As hdrt_queue_create. `held`: whether it holds the device. */
hdrt_status hdrt__queue_make(hdrt_device *device, const hdrt_queue_options *options, hdcu_stream stream, bool held,
                             hdrt_queue **out_queue);
void hdrt__queue_hold(hdrt_queue *queue);
void hdrt__queue_drop(hdrt_queue *queue);
/* Let the queue end when its work is over. Never waits. */
void hdrt__queue_close(hdrt_queue *queue);

/* The timeline source of queues: tells them from other timelines. */
extern const hdrt__timeline_source hdrt__queue_source;

/* The beginning of public functions: NULL, forked, lost. */
hdrt_status hdrt__queue_begin(hdrt_queue *queue, const char *function);
/* HDRT_ERROR_QUEUE_FAILED with the queue's cause in the thread's message. Under the commit lock. */
hdrt_status hdrt__queue_failed_status(const hdrt_queue *queue);

#endif
