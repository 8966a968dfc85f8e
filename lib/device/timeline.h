/* SPDX-License-Identifier: MIT */
/*
 * Timelines: the slots behind every hdrt_event. A slot is what its events are asked about: how far it has come, which
 * ranges failed and why, and who waits. Queues, host timelines and compile futures each own one; they tell it what was
 * given out, completed and failed, and a source's `progress` is asked to look whenever somebody wants to know more.
 *
 * An event's timeline number is a slot's index in the low 32 bits and its generation, from 1, above. States of a slot:
 *
 *     FREE --acquire--> LIVE --retire--> RETIRED --acquire, nobody pins it--> LIVE, with the next generation
 *
 * A retired slot still answers for its last generation: failed ranges and values that never came are failed, all else
 * is complete. Slots that remember failures are taken again last. Events of older generations are complete.
 *
 * A value of a queue goes through three steps: enqueued (given out), committed (handed to the driver), completed. For
 * other timelines committed and completed are one. Whoever needs the second or third may watch: a watch is called once
 * when the value has got there, or never will.
 *
 * Locks: a slot's members are guarded by one of the table's locks, which several slots share (so that a slot is small)
 * and which is a leaf: nothing is called under it but a source's `hold`, which only counts. The table's own lock guards
 * the free lists and is taken before a slot's.
 */
#ifndef HDRT_DEVICE_TIMELINE_H
#define HDRT_DEVICE_TIMELINE_H

#include <pthread.h>
#include <stdatomic.h>

#include <hdrt.h>

/* Why something failed; shared by all that failed with it. NULL stands for a cause that found no memory. */
typedef struct hdrt__failure {
    atomic_uint references;
    hdrt_status status; /* HDRT_ERROR_DEVICE_LOST, or what went wrong first */
    char text[];
} hdrt__failure;

/* NULL if out of memory; the other functions accept it. */
hdrt__failure *hdrt__failure_create(hdrt_status status, const char *text);
hdrt__failure *hdrt__failure_hold(hdrt__failure *failure);
void hdrt__failure_drop(hdrt__failure *failure);
/* The words, for a thread's last message; never NULL. */
const char *hdrt__failure_text(const hdrt__failure *failure);

/* How a timeline's owner is asked to look; the last two may be missing. All NULL for timelines that are only told (host
 * timelines, futures). */
typedef struct hdrt__timeline_source {
    bool (*hold)(void *owner); /* counts only: called under the slot's lock; false: the owner is ending */
    void (*drop)(void *owner);
    /*
     * Find out more, so that `value` will be known complete at some time: tell it through hdrt__timeline_complete and
     * hdrt__timeline_fail. Must not wait for the GPU. A negative status is handed to who asked. Unless `patient` it need
     * not ask if that is in the way of others: HDRT_NOT_READY, ask again; HDRT_WOULD_BLOCK, but rather not soon.
     */
    hdrt_status (*progress)(void *owner, uint64_t value, bool patient);
    /*
     * Somebody waits for `value` without asking: find out more by yourself until unwant is called with what this returned
     * (NULL: it need not be). unwant may be called under any lock, and as long as the slot is not retired.
     */
    void *(*want)(void *owner, uint64_t value);
    void (*unwant)(void *wanted);
} hdrt__timeline_source;

typedef enum hdrt__timeline_state {
    HDRT__TIMELINE_FREE,
    HDRT__TIMELINE_LIVE,
    HDRT__TIMELINE_RETIRED,
} hdrt__timeline_state;

/* Values first to last failed. */
typedef struct hdrt__failed_range {
    uint64_t first, last;
    hdrt__failure *failure;
} hdrt__failed_range;

/* Ranges that a slot can keep without memory, and the most it keeps at all; beyond, neighbours are joined. */
#define HDRT__RANGES_INLINE 1
#define HDRT__RANGES_LIMIT 1024

typedef enum hdrt__timeline_step {
    HDRT__TIMELINE_COMMITTED,
    HDRT__TIMELINE_COMPLETED,
} hdrt__timeline_step;

/* Somebody to be told. Embedded; its owner keeps it alive until it was called or hdrt__timeline_unwatch took it back. */
typedef struct hdrt__timeline_watch {
    struct hdrt__timeline_watch *next;
    uint64_t value;
    hdrt__timeline_step step;
    /* Called once, with no lock held, on whichever thread got the timeline there. */
    void (*wake)(struct hdrt__timeline_watch *watch);
} hdrt__timeline_watch;

typedef struct hdrt__timeline {
    hdrt_runtime *runtime;
    uint32_t index;
    _Atomic uint32_t generation;
    _Atomic uint64_t enqueued;  /* last value given out (queues) or signalled (host timelines) */
    _Atomic uint64_t committed; /* all values up to it that did not fail were handed over */
    _Atomic uint64_t completed; /* all values up to it that did not fail are complete */
    _Atomic uint32_t failures;  /* failed ranges, the open one included: 0 lets readers go without the lock */
    _Atomic uint32_t watched;   /* number of watches: 0 lets a commit go without the lock */
    uint64_t changes;           /* counts what was told */
    uint32_t pins;              /* who may look at it now; not taken again meanwhile */
    uint8_t state;              /* an hdrt__timeline_state */
    bool open;                  /* all values from open_first on fail with open_failure */
    bool ending;                /* since they never come; not counted as a failure */
    const hdrt__timeline_source *source;
    void *owner;
    hdrt__timeline_watch *watches;
    uint64_t open_first;
    hdrt__failure *open_failure;
    hdrt__failed_range *ranges; /* ascending, below open_first; range_inline or malloc'ed */
    uint32_t range_count, range_capacity;
    hdrt__failed_range range_inline[HDRT__RANGES_INLINE];
    struct hdrt__timeline *next_free;
} hdrt__timeline;

/* A lock that slots share, and where their waiters sleep. */
typedef struct hdrt__timeline_stripe {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* completed, failed, retired */
} hdrt__timeline_stripe;
#define HDRT__TIMELINE_STRIPES 64u

#define HDRT__TIMELINE_CHUNK 256u   /* slots allocated together */
#define HDRT__TIMELINE_CHUNKS 8192u /* about two million timelines at once in a runtime */
#define HDRT__TIMELINES_REMEMBERED 1024u /* retired slots with failures that are kept from being taken again */

typedef struct hdrt__timeline_list {
    hdrt__timeline *first, **last;
    uint32_t count;
} hdrt__timeline_list;

typedef struct hdrt__timeline_table {
    pthread_mutex_t lock; /* guards all but the readers' loads of chunks, and the stripes */
    hdrt__timeline_stripe stripes[HDRT__TIMELINE_STRIPES];
    hdrt__timeline *_Atomic chunks[HDRT__TIMELINE_CHUNKS];
    uint32_t chunk_count;
    hdrt__timeline_list free;       /* free, or retired without failures */
    hdrt__timeline_list remembered; /* retired with failures */
} hdrt__timeline_table;

hdrt_status hdrt__timeline_table_create(hdrt_runtime *runtime, hdrt__timeline_table **out_table);
void hdrt__timeline_table_destroy(hdrt__timeline_table *table); /* NULL accepted; no timeline is live, nobody waits */

/* ---- for owners -------------------------------------------------------------------------------------------------- */

/* Take a slot; source may be NULL. The caller's until hdrt__timeline_retire. HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY. */
hdrt_status hdrt__timeline_acquire(hdrt_runtime *runtime, const hdrt__timeline_source *source, void *owner,
                                   hdrt__timeline **out_timeline);
/*
 * Give the slot back: values above the last one given out fail with `failure` (held by the slot; NULL: words of its
 * own), the rest keeps its answer. The owner is not called after this returns.
 */
void hdrt__timeline_retire(hdrt__timeline *timeline, hdrt__failure *failure);
/*
 * No value after `last` will come: they fail with `failure` (held by the slot), and who waits for one is told. The rest
 * goes on; the slot is retired later. Once.
 */
void hdrt__timeline_end(hdrt__timeline *timeline, uint64_t last, hdrt__failure *failure);
hdrt_event hdrt__timeline_event(const hdrt__timeline *timeline, uint64_t value);
/* Values up to `value` are given out. */
void hdrt__timeline_enqueue(hdrt__timeline *timeline, uint64_t value);
/* Values up to `value` were handed over. Wakes watches. */
void hdrt__timeline_commit(hdrt__timeline *timeline, uint64_t value);
/* All values up to `value` that have not failed are complete; raises the other two. Wakes waiters and watches. */
void hdrt__timeline_complete(hdrt__timeline *timeline, uint64_t value);
/*
 * All values from `first` on fail, until hdrt__timeline_reopen. If they do already, only those before change. The slot
 * takes its own hold of `failure`. Values known complete stay so. Wakes waiters.
 */
void hdrt__timeline_fail(hdrt__timeline *timeline, uint64_t first, hdrt__failure *failure);
/* Fail all that is not known complete. \return the first value that failed. */
uint64_t hdrt__timeline_fail_rest(hdrt__timeline *timeline, hdrt__failure *failure);
/* What was failed up to `last` stays failed, values above it count anew. */
void hdrt__timeline_reopen(hdrt__timeline *timeline, uint64_t last);

/* ---- for who asks ------------------------------------------------------------------------------------------------ */

/*
 * What is known of an event; with `progress`, after asking its source. Keeps no message for the thread.
 *
 * out_failure, if not NULL, is set to the cause with a hold of the caller's, or NULL.
 * \return HDRT_OK, HDRT_NOT_READY, HDRT_ERROR_EVENT_FAILED, HDRT_ERROR_DEVICE_LOST, HDRT_ERROR_INVALID_ARGUMENT (no
 *     timeline of this runtime), or what progress failed with, which never reads as over.
 */
hdrt_status hdrt__event_look(hdrt_runtime *runtime, hdrt_event event, bool progress, hdrt__failure **out_failure);
/* Whether a status of an event says that what was before it is over. A driver that cannot be asked has not said so. */
static inline bool hdrt__status_over(hdrt_status status)
{
    return status == HDRT_OK || status == HDRT_ERROR_EVENT_FAILED || status == HDRT_ERROR_DEVICE_LOST ||
           status == HDRT_ERROR_INVALID_ARGUMENT;
}

/* Whether an event is over, one way or the other. */
static inline bool hdrt__event_over(hdrt_runtime *runtime, hdrt_event event, bool progress)
{
    return hdrt__status_over(hdrt__event_look(runtime, event, progress, NULL));
}

/* Wait up to `deadline` (hdrt__deadline); HDRT_TIMEOUT past it, HDRT_ERROR_CYCLE in a host function that the event
 * comes after. Otherwise as hdrt__event_look. */
hdrt_status hdrt__event_wait_until(hdrt_runtime *runtime, hdrt_event event, uint64_t deadline,
                                   hdrt__failure **out_failure);
/*
 * The slot of an event of this runtime, pinned: not taken again until hdrt__timeline_unpin. NULL if the event's
 * generation is over or there is no such slot.
 */
hdrt__timeline *hdrt__timeline_pin(hdrt_runtime *runtime, hdrt_event event);
void hdrt__timeline_unpin(hdrt__timeline *timeline);
/*
 * Call watch->wake when the value has got to the step, has failed, or can never come. The slot is pinned by the caller,
 * and stays so until the watch is over. \return false: it is there already, and wake is not called.
 */
bool hdrt__timeline_watch_begin(hdrt__timeline *timeline, hdrt__timeline_watch *watch);
/* Take a watch back. \return false: wake was called, or is just being called. */
bool hdrt__timeline_unwatch(hdrt__timeline *timeline, hdrt__timeline_watch *watch);
/*
 * Somebody waits for the value of a pinned timeline without asking. *out_source: whose unwant takes what this returns.
 * Under no lock. \return NULL: nobody need be told that it is over.
 */
void *hdrt__timeline_want(hdrt__timeline *timeline, uint64_t value, const hdrt__timeline_source **out_source);
/* The owner of a pinned timeline with a hold of the caller's, if it is live and its source is this one; else NULL. */
void *hdrt__timeline_owner(hdrt__timeline *timeline, const hdrt__timeline_source *source);

#endif
