/* SPDX-License-Identifier: MIT */
/*
 * Streams, as the scheduler knows them: their commands have sequence numbers; marks (CUevents in a ring) tell how far
 * the GPU is; the flight list tells which positions of which queues that completes; the clock tells what of other
 * streams all further commands come after.
 *
 *     sequence   last command that was handed over
 *     completed  last one known complete: entry.completed
 *
 * Marks, oldest first, each with the sequence it stands for and the clock that the stream had then. A wait for a point
 * uses the oldest mark at or after it; if there is none, one is recorded at the end. Before the stream itself waits, what
 * it has done so far is marked. Who waits on the host needs no mark (bell.h).
 *
 * Locks: `commit` orders the driver calls on the stream and guards what is marked with it. Never two of them at once.
 * A queue's lock may be taken under it. Driver calls are made under it; none of them can block, since a stream never has
 * more than HDRT__COMMAND_LIMIT commands outstanding.
 */
#ifndef HDRT_QUEUE_STREAM_H
#define HDRT_QUEUE_STREAM_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/device.h"
#include "queue/op.h"

struct hdrt__scheduler;

/* Far below the number at which the driver's calls block (1021 launches); a template launch is one command. */
#define HDRT__COMMAND_LIMIT 256u
/* Commands, and operations in them, after which a mark is recorded although nobody asked for one. */
#define HDRT__MARK_INTERVAL 32u
#define HDRT__MARK_WORK 512u
/* Streams that clocks know, by index; what is beyond is waited for each time. */
#define HDRT__CLOCKS 256u

typedef struct hdrt__stream_mark {
    uint64_t sequence;
    hdrt__mark *mark;
    uint64_t *clock; /* HDRT__CLOCKS, or NULL: nothing */
} hdrt__stream_mark;

/* Positions of a queue up to this one are complete when the stream has come to `sequence`. Holds the queue. */
typedef struct hdrt__flight {
    hdrt_queue *queue;
    uint64_t position, sequence;
} hdrt__flight;

typedef struct hdrt__stream {
    hdrt__device_stream entry; /* first */
    atomic_uint references;    /* the scheduler's or the exclusive queue's, each point's */
    struct hdrt__scheduler *scheduler;
    hdrt_device *device;
    hdcu_stream handle;
    uint8_t class;  /* of priority */
    bool shared;    /* by queues that the scheduler puts there */
    bool adopted;   /* the handle is the caller's */
    atomic_bool wide; /* many kernels side by side go there: of others only what waits for one of them alone */
    _Atomic uint32_t joined; /* queues that are to be put behind its end without a wait */

    pthread_mutex_t commit;
    /* Under commit, but for the loads of atomic ones: */
    _Atomic uint64_t sequence;
    hdrt__stream_mark *marks; /* a ring of mark_capacity, a power of two */
    uint32_t mark_first, mark_count, mark_capacity;
    hdrt__flight *flights; /* the same */
    uint32_t flight_first, flight_count, flight_capacity;
    const hdrt_queue *flew; /* whose operation is the last; only to be compared */
    uint64_t *clock; /* HDRT__CLOCKS; NULL: it never waited for another stream */
    uint32_t work;   /* operations since the last mark */
    bool small_runs; /* the last launches went out in parts much smaller than a template can be */
    struct hdrt__pending *pending; /* launches that wait for more (pending.h); NULL: there never were any */
    bool is_pending;               /* some do, as the last command of the stream */
    bool pending_listed;           /* a dispatcher has it in its list */
    struct {
        _Atomic uint64_t rung;     /* the last number that is to be written (bell.h); 0: never */
        _Atomic uint64_t asked_ns; /* when it was rung, or the driver asked instead of hearing it */
        _Atomic uint64_t heeded;   /* the last one whose end somebody waited for while it was the last */
        uint64_t alone;            /* the last one that was launched alone into the idle stream */
        uint64_t unasked;          /* the last one of these that rang by itself */
        uint8_t streak;            /* how often in a row such a one was heeded */
        uint8_t expected;          /* and how often it must have been for the next one to ring by itself */
        bool refused;              /* the driver does not write here */
    } bell;
    uint8_t due;     /* how many wait for its end; the next command, unless it is theirs, comes after a mark */
    struct {
        hdrt_kernel *kernel; /* its module is held; NULL: none is measured */
        uint64_t sequence, begin_ns;
    } measured; /* a launch that went to the idle stream */
    struct {
        uint64_t completed, since_ns; /* it has been there since; 0: nothing was in flight */
        bool told;
    } watched; /* the first dispatcher's, for the watchdog */
    _Atomic uint64_t polled; /* the dispatcher's round in which it was asked */
} hdrt__stream;

static inline uint64_t hdrt__stream_outstanding(const hdrt__stream *stream)
{
    uint64_t completed = atomic_load_explicit(&stream->entry.completed, memory_order_acquire);
    return atomic_load_explicit(&stream->sequence, memory_order_relaxed) - completed;
}

static inline bool hdrt__point_complete(const hdrt__point *point)
{
    return point->sequence <= atomic_load_explicit(&point->stream->entry.completed, memory_order_acquire);
}

/* Inside the device's scope: a stream of this priority class, or around a handle of the caller's. */
hdrt_status hdrt__stream_create(struct hdrt__scheduler *scheduler, uint8_t class, bool shared, hdcu_stream adopted,
                                hdrt__stream **out_stream);
void hdrt__stream_hold(hdrt__stream *stream);
/* The last one to let go destroys it: under no lock, in or out of the scope. NULL accepted. */
void hdrt__stream_drop(hdrt__stream *stream);

/* ---- under commit, inside the device's scope --------------------------------------------------------------------- */

/* `commands` more were handed over. */
static inline void hdrt__stream_advance(hdrt__stream *stream, uint32_t commands)
{
    atomic_store_explicit(&stream->sequence, stream->sequence + commands, memory_order_release);
}

/* And so many operations were in them. */
static inline void hdrt__stream_work(hdrt__stream *stream, uint32_t operations)
{
    stream->work += operations;
}

/* Before a launch: the time, if it is to be measured how long it takes, since the stream is idle; else 0. Some are enough of
 * a kernel of which it is known. */
uint64_t hdrt__stream_measure_from(const hdrt__stream *stream, const hdrt_kernel *kernel);
/* The last command is the launch of this kernel; begin_ns: what the time was before, 0: it is not measured. */
void hdrt__stream_measure(hdrt__stream *stream, hdrt_kernel *kernel, uint64_t begin_ns);

/* The queue is at `position` when all that is in the stream now is complete. Room must have been made. */
void hdrt__stream_fly(hdrt__stream *stream, hdrt_queue *queue, uint64_t position);
/* Room for so many more flights. \return false if there is no memory. */
bool hdrt__stream_reserve_flights(hdrt__stream *stream, uint32_t count);
/* The sequence at which a queue's position is complete: of its oldest flight at or after it; the stream's if none is. */
uint64_t hdrt__stream_sequence_of(hdrt__stream *stream, const hdrt_queue *queue, uint64_t position);

/* The oldest mark at or after `sequence`, recorded if there is none; NULL: complete. The ring's. */
hdrt__call hdrt__stream_mark_for(hdrt__stream *stream, uint64_t sequence, hdrt__stream_mark **out_mark);
/* Record a mark at the end, if there is none. A failure that is no fault is left to who needs the mark. */
void hdrt__stream_mark_end(hdrt__stream *stream);
/* A queue's command is about to follow: record the mark that others wait for, or have rung for, if it would come too late
 * after it. */
void hdrt__stream_due(hdrt__stream *stream, const hdrt_queue *queue);
/*
 * The stream is about to wait, for how long nobody knows: record a mark for the operations that have none yet, since
 * whoever asks for them later would wait too.
 */
void hdrt__stream_mark_before_wait(hdrt__stream *stream);
/* The same as hdrt__stream_mark_end if one is due by count. */
void hdrt__stream_mark_by_count(hdrt__stream *stream);

/* All further commands come after what `clock`, of so many streams, says and after `sequence` of `other`. */
void hdrt__stream_join(hdrt__stream *stream, const hdrt__stream *other, uint64_t sequence, const uint64_t *clock,
                       uint32_t count);
static inline bool hdrt__stream_covers(const hdrt__stream *stream, const hdrt__point *point)
{
    uint32_t index = point->stream->entry.index;
    return stream->clock && point->stream->device == stream->device && index < HDRT__CLOCKS &&
           point->sequence <= stream->clock[index];
}

/* ---- under no lock ----------------------------------------------------------------------------------------------- */

/* Instead of a sequence to ask for: how far what is marked is complete. Only if nothing is, the oldest gets a mark. */
#define HDRT__STREAM_MARKED UINT64_C(0)
/*
 * Ask the driver how far the stream is, so that `sequence` will be known complete at some time; tells the timelines of
 * those queues whose positions that completes. Enters the device's scope. \return HDRT_OK, or why it cannot be asked.
 */
hdrt_status hdrt__stream_poll(hdrt__stream *stream, uint64_t sequence);

/*
 * The same for *sequence; with a queue that is found out first: where its `position` is complete. Unless `patient` it does
 * not wait for who hands over more: HDRT_NOT_READY.
 */
hdrt_status hdrt__stream_ask(hdrt__stream *stream, const hdrt_queue *queue, uint64_t position, uint64_t *sequence,
                             bool patient);

#endif
