/* SPDX-License-Identifier: MIT */
/*
 * The scheduler of a device: what its queues share. Streams made on demand up to a limit, which queues take in turn;
 * the pool of ring segments; the templates; the dispatcher. An attachment of the device, made with its first queue.
 *
 * Locks: `lock` guards the tables and is a leaf but for the creation of a stream; `parking` orders what is known of
 * queues that wait for queues, and is taken under no other lock.
 */
#ifndef HDRT_QUEUE_SCHEDULER_H
#define HDRT_QUEUE_SCHEDULER_H

#include "queue/op.h"
#include "queue/queue.h"
#include "queue/relief.h"
#include "queue/stream.h"
#include "queue/template.h"
#include "queue/wide.h"

#define HDRT__STREAM_LIMIT 128u /* shared streams: concurrency of 500 us kernels is 92 on 128, 99 on 256 */
#define HDRT__INDICES 512u      /* of streams whose templates are told when they are free again */
#define HDRT__DISPATCHERS 2u     /* threads that commit, where there are processors for them */
#define HDRT__CLASSES 8u        /* of priority */

/* How much is known of what a stream comes after. All but the last are for comparison. */
typedef enum hdrt__elision {
    HDRT__ELISION_NONE,       /* each wait is a wait of the GPU */
    HDRT__ELISION_STREAM,     /* but not for the same stream, and not for what is complete */
    HDRT__ELISION_PAIRWISE,   /* nor for what the stream itself waited for before */
    HDRT__ELISION_TRANSITIVE, /* nor for what that had waited for */
} hdrt__elision;

typedef struct hdrt__dispatcher hdrt__dispatcher;

typedef struct hdrt__scheduler {
    hdrt_device *device;
    hdrt__memory *memory;
    hdrt__segments segments;
    hdrt__templates *templates;
    atomic_bool closed;            /* the caller has closed the device: no more templates, which hold it */
    _Atomic uint32_t template_users;
    hdrt__elision elision;
    bool eager; /* a mark after every operation */
    uint32_t stream_limit;
    uint32_t classes; /* of priority that the device has */
    pthread_mutex_t lock;
    /* Under lock; the first stream_count streams may be read without. */
    hdrt__stream *_Atomic streams[HDRT__STREAM_LIMIT];
    _Atomic uint32_t stream_count, asked;
    uint32_t making; /* streams that are just being made */
    _Atomic uint64_t asked_at; /* when streams were last asked whether they are idle */
    _Atomic uint32_t index_count;
    uint32_t index_capacity, *free_indices, free_index_count;
    uint64_t *index_sequences; /* where the numbers of a stream with this index go on */
    _Atomic uint64_t completed[HDRT__INDICES]; /* of the streams, by index */
    hdrt__word *bells[HDRT__INDICES];          /* theirs (bell.h), set once, when the first one gets its index */
    struct {
        hdrt__stream *streams[HDRT__WIDE_BRANCH_STREAMS]; /* shared ones */
    } wide[HDRT__CLASSES]; /* the first dispatcher's */
    hdrt__stream *pending[HDRT__STREAM_LIMIT]; /* shared ones in which launches pend */
    _Atomic uint32_t pending_count;
    _Atomic uint64_t pending_since;
    struct hdrt__stream_call_state *stream_calls; /* that are to be notified */
    /* The last command that an enqueuing thread handed over itself. */
    hdrt__stream *_Atomic inline_stream; /* a shared one */
    _Atomic uint64_t inline_sequence, inline_time;
    atomic_bool unwanted;      /* templates hold code that nobody else does */
    atomic_bool launching;     /* the first dispatcher is in a launch that takes long, and holds the driver's lock */
    hdrt__relief relief;       /* the first dispatcher's */
    hdrt__stream *blocking;    /* for copies of pageable memory, whose calls wait for the GPU */
    hdrt__dispatcher *dispatchers[HDRT__DISPATCHERS];
    uint32_t dispatcher_count;
} hdrt__scheduler;

/* The device's scheduler, made on first use. Inside the device's scope. NULL with a message on failure. */
hdrt__scheduler *hdrt__device_scheduler(hdrt_device *device);

/* An index for a new stream that no living one has, and the sequence number that it begins with. */
uint32_t hdrt__scheduler_take_index(hdrt__scheduler *scheduler, uint64_t *out_sequence);
void hdrt__scheduler_give_index(hdrt__scheduler *scheduler, uint32_t index, uint64_t sequence);

/* How many indices have been given out, as far as clocks know them: a number that only grows. */
static inline uint32_t hdrt__scheduler_clocks(const hdrt__scheduler *scheduler)
{
    uint32_t count = atomic_load_explicit(&scheduler->index_count, memory_order_acquire);
    return count < HDRT__CLOCKS ? count : HDRT__CLOCKS;
}

/* A shared stream of the class that has nothing to do, as far as is known; NULL if there is none. Not held. */
hdrt__stream *hdrt__scheduler_idle(hdrt__scheduler *scheduler, uint8_t class);
/* One that is idle, or made, or the least busy. Inside the device's scope. Not held: shared streams stay. */
hdrt_status hdrt__scheduler_stream(hdrt__scheduler *scheduler, uint8_t class, hdrt__stream **out_stream);
/* The templates, until hdrt__scheduler_leave_templates; NULL: there are none any more. */
hdrt__templates *hdrt__scheduler_use_templates(hdrt__scheduler *scheduler);
void hdrt__scheduler_leave_templates(hdrt__scheduler *scheduler);
/* Under no lock, inside the scope: release what templates hold; with nothing in flight, all after the close. \return whether
 * it is to be called again soon. */
bool hdrt__scheduler_tidy(hdrt__scheduler *scheduler, bool flying);
/* A stream for a wide template, with nothing or little to do (wide.h); NULL: none of the few. `ask`: the driver. Inside the
   device's scope. */
hdrt__stream *hdrt__scheduler_wide(hdrt__scheduler *scheduler, uint8_t class, bool ask);
/* Launches pend in a shared stream: under its commit lock. */
void hdrt__scheduler_pend(hdrt__scheduler *scheduler, hdrt__stream *stream);
/* A stream of the class in which launches pend; NULL: there is none. Not held. */
hdrt__stream *hdrt__scheduler_pending(hdrt__scheduler *scheduler, uint8_t class);
/* Hand over what pends, if it has for long or `at_once`. Under no lock, inside the scope. */
void hdrt__scheduler_flush(hdrt__scheduler *scheduler, bool at_once);
/* The stream for calls that wait. Inside the device's scope. */
hdrt_status hdrt__scheduler_blocking(hdrt__scheduler *scheduler, hdrt__stream **out_stream);

#endif
