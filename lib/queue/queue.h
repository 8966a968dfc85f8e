/* SPDX-License-Identifier: MIT */
/*
 * A queue's inside. Enqueuing (enqueue.h) writes an operation into the queue's ring and gives it the next position;
 * committing (commit.h) hands operations to the driver, in order, by one committer at a time: the enqueuing thread where
 * that is quickest, else the device's dispatcher (dispatcher.h). The queue owns no stream, unless it is exclusive.
 *
 * Three counters tell where the queue is: ring.published, the last position; the timeline's committed, and completed.
 *
 *     NONE --a thread takes it--> BUSY --nothing is left, or the quantum is over--> NONE
 *                                   +--waits for another queue's commit, or for a host call--> PARKED --woken--> NONE
 *                                   +--its stream is full, or it waits for the GPU--> STALLED --looked at--> BUSY
 *
 * Whoever leaves BUSY looks into the ring once more; so who publishes and finds a committer need do nothing. Over this:
 *
 *     OPEN --a driver call of an operation fails, or it waits for a failed event--> FAILED
 *     FAILED --hdrt_queue_clear_error--> OPEN
 *
 * and over all lies the device's lost state.
 *
 * Points: what all further operations come after, as places in streams; the first one is the queue's own work, if
 * point_own says so. A queue without points is idle, and goes to any stream.
 *
 * References: the caller's, each flight's in a stream, the dispatcher's lists', a watch's and a host call's. The last
 * one to go ends the queue: then nothing of it is enqueued or in flight.
 *
 * Locks: `lock` guards what is marked with it; it is taken under a stream's commit lock, and under it are only the
 * segments' lock and the timelines'. `points_busy` guards the points, and is a leaf. No driver call is made under it.
 */
#ifndef HDRT_QUEUE_QUEUE_H
#define HDRT_QUEUE_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include <hdrt.h>

#include "device/callbacks.h"
#include "device/device.h"
#include "memory/memory.h"
#include "queue/listing.h"
#include "queue/op.h"
#include "queue/stream.h"

struct hdrt__scheduler;
struct hdrt__recorded_queue;

typedef enum hdrt__queue_state {
    HDRT__QUEUE_OPEN,
    HDRT__QUEUE_FAILED,
} hdrt__queue_state;

typedef enum hdrt__closed {
    HDRT__CLOSED_NOT,
    HDRT__CLOSED,        /* destroyed by the caller */
    HDRT__CLOSED_FLIGHT, /* and its last position is the queue's own, without meaning for others */
} hdrt__closed;

typedef enum hdrt__committer {
    HDRT__COMMITTER_NONE,
    HDRT__COMMITTER_BUSY,
    HDRT__COMMITTER_PARKED,
    HDRT__COMMITTER_STALLED,
} hdrt__committer;

#define HDRT__RING_LIMIT_DEFAULT 4096u
#define HDRT__POINTS_INLINE 2u
#define HDRT__POINTS 8u /* most, in memory of their own as long as there are more */

/* A module, or a graph and its plan, that operations use up to a position; or the recording that it is in. */
typedef struct hdrt__held {
    struct hdrt__held *next;
    hdrt_module *module;
    hdrt_graph *graph;
    struct hdrt__plan *plan; /* with graph */
    struct hdrt__recorded_queue *recording; /* of a queue that is_recorded: taken out by who ends it */
    uint64_t position;
} hdrt__held;

/* Three parts, each for itself in the cache: what hardly changes, what is written by who enqueues, by who commits. */
struct hdrt_queue {
    hdrt__device_queue entry; /* first: the device's view of it, with name and timeline */
    hdrt_device *device; /* held, but by the default queue only after its device was closed */
    struct hdrt__scheduler *scheduler;
    hdrt__stream *stream; /* exclusive: its own, made by the first commit and never changed; else NULL */
    uint32_t ring_limit;
    uint8_t back_pressure, submission;
    uint8_t class;             /* of priority: 0 is the most urgent */
    bool adopted, is_default;
    bool host_called;          /* the committer's: the host call at the head is over */
    _Atomic uint8_t closed;    /* an hdrt__closed */
    atomic_bool foreign_work;  /* the caller may enqueue on the stream too */
    _Atomic uint8_t shard;     /* which dispatcher serves it */
    _Atomic bool listed;       /* in the dispatcher's lists, which hold it */
    _Atomic uint8_t committer; /* an hdrt__committer */
    _Atomic uint8_t state;     /* an hdrt__queue_state; written under lock */
    _Atomic uint8_t wakes;     /* holds that those who woke it could not drop */
    _Atomic uint8_t urgency;   /* the most urgent class of those who wait for it */
    atomic_bool is_recorded;   /* operations go into a graph; written under lock */

    /* Under lock: */
    hdrt__held *held;
    hdrt__failure *failure; /* of a FAILED queue; NULL: it found no memory */
    uint64_t dropped; /* operations up to here are dropped when they are met */
    _Atomic uint64_t hazard; /* last position that may write host memory or wait for what does */

    _Alignas(64) pthread_mutex_t lock;
    uint64_t room_until; /* under lock: there is room for positions below, as far as is known */
    hdrt__ring ring;     /* its first half is of this part, its second of the next */
    union { /* written by the committer, under points_busy, as is their number: hdrt__points */
        hdrt__point points_inline[HDRT__POINTS_INLINE];
        hdrt__point *points_many; /* malloc'ed, HDRT__POINTS */
    };
    uint8_t point_count;
    bool point_own;
    atomic_bool points_busy; /* a lock of its own, so that who enqueues and who commits do not meet */
    /* The committer's: */
    bool parked;      /* under the runtime's parking lock, with parked_on and parked_at */
    atomic_uint references;
    hdrt_queue *parked_on;     /* held, until somebody may drop it; NULL: on a host timeline */
    hdrt__listing_link listing; /* the dispatcher's */
    union {
        hdrt__timeline *parked_at; /* PARKED: pinned; NULL: the producer's, which is held */
        hdrt__stream *stalled_by;  /* STALLED: held; NULL: its own completion */
    };
    union {
        hdrt__timeline_watch watch; /* PARKED */
        hdrt_queue *next_stalled;   /* STALLED: the dispatcher's */
        uint64_t later_at;          /* BUSY: where it last let a producer go first; anything after the others */
    };
};

_Static_assert(sizeof(hdrt_queue) + sizeof(hdrt__timeline) <= 512, "thousands of idle queues are cheap");
_Static_assert(offsetof(hdrt_queue, ring.head) % 64 == 0, "who enqueues and who commits write lines of their own");

static inline uint64_t hdrt__queue_position(const hdrt_queue *queue)
{
    return atomic_load(&queue->ring.published);
}

/* A leaf, held for some loads and stores. */
void hdrt__points_wait(hdrt_queue *queue);
static inline void hdrt__points_lock(hdrt_queue *queue)
{
    if (atomic_exchange_explicit(&queue->points_busy, true, memory_order_acquire)) {
        hdrt__points_wait(queue);
    }
}
static inline void hdrt__points_unlock(hdrt_queue *queue)
{
    atomic_store_explicit(&queue->points_busy, false, memory_order_release);
}

/* The committer, or under points_busy. */
static inline hdrt__point *hdrt__points(const hdrt_queue *queue)
{
    return queue->point_count > HDRT__POINTS_INLINE ? queue->points_many : (hdrt__point *)queue->points_inline;
}
/* The committer, under points_busy: of its points the first `count` are left. \return what to free under no lock. */
hdrt__point *hdrt__points_shrink(hdrt_queue *queue, uint8_t count);

/* Make a queue, on `stream` if that is not NULL. As hdrt_queue_create. `held`: whether it holds the device. */
hdrt_status hdrt__queue_make(hdrt_device *device, const hdrt_queue_options *options, hdcu_stream stream, bool held,
                             hdrt_queue **out_queue);
/* The device's memory. */
hdrt__memory *hdrt__queue_memory(const hdrt_queue *queue);
void hdrt__queue_hold(hdrt_queue *queue);
/* Under no lock. */
void hdrt__queue_drop(hdrt_queue *queue);
/* The caller lets go of it. Never waits. */
void hdrt__queue_close(hdrt_queue *queue);

/* An operation without effect whose flight tells when all before it is complete. Under its lock. \return false: no
 * memory. The dispatcher is to be woken. */
bool hdrt__queue_add_flight(hdrt_queue *queue);
/* All up to `position` is complete: tell the timeline, let go of code. Under no lock. */
void hdrt__queue_landed(hdrt_queue *queue, uint64_t position);
/* Forget the points that are complete. \return whether none is left. Under no lock. */
bool hdrt__queue_settle(hdrt_queue *queue);
/* The committer: whether one of its points is the stream's end. */
bool hdrt__queue_follows(const hdrt_queue *queue, const hdrt__stream *stream);
/* The queue is closed: values that were never enqueued will not come. */
void hdrt__queue_end_values(hdrt_queue *queue);
/* Ask the driver for what the queue's position `value` still needs. Under no lock. Unless `patient` it does not wait
 * for threads that are at its streams. \return HDRT_OK; HDRT_NOT_READY: so it did not ask; or why it cannot be asked. */
hdrt_status hdrt__queue_poll(hdrt_queue *queue, uint64_t value, bool patient);

/*
 * The queue fails at `position`: all that was enqueued from there on is dropped. The words are the thread's last
 * message. Under no lock but a stream's. \return HDRT_ERROR_QUEUE_FAILED with the queue's message.
 */
hdrt_status hdrt__queue_fail(hdrt_queue *queue, uint64_t position);

/* The timeline source of queues: tells them from other timelines. */
extern const hdrt__timeline_source hdrt__queue_source;

/* The beginning of public functions: NULL, forked, lost. */
hdrt_status hdrt__queue_begin(hdrt_queue *queue, const char *function);
/* HDRT_ERROR_QUEUE_FAILED with the queue's cause in the thread's message. Under its lock. */
hdrt_status hdrt__queue_failed_status(const hdrt_queue *queue);

/* "queue 3", for messages: valid to the end of the enclosing block. */
#define HDRT__QUEUE_NAME(queue) hdrt__device_queue_name(&(queue)->entry, (char[HDRT__QUEUE_NAME_BYTES]){0})

#endif
