/* SPDX-License-Identifier: MIT */
/*
 * Operations and the rings that hold them until they are handed to the driver. An operation is 128 bytes with its
 * parameters inside; longer ones lie outside. Rings are made of segments of two sizes from the device's pool: a queue
 * with nothing to hand over owns none, one with little owns a small one.
 *
 * Operation:  written by the enqueuing thread, under the queue's lock --published--> read by the committer --consumed
 *
 * A position is an operation's number. It is flagged, at any time before it is committed, by whoever lets another queue
 * wait for it: the commit then ends there, and a mark comes exactly there if one is needed.
 */
#ifndef HDRT_QUEUE_OP_H
#define HDRT_QUEUE_OP_H

#include <pthread.h>
#include <stdatomic.h>

#include <hdrt.h>

#include "device/callbacks.h"
#include "jit/kernel.h"
#include "memory/registry.h"

typedef enum hdrt__op_kind {
    HDRT__OP_NOTHING,   /* takes its position; with `detail` it has a flight, though no command */
    HDRT__OP_LAUNCH,
    HDRT__OP_COPY,
    HDRT__OP_REGION,
    HDRT__OP_FILL,
    HDRT__OP_TIMESTAMP,
    HDRT__OP_CUDA_RECORD, /* of an event of the caller's */
    HDRT__OP_FREE,
    HDRT__OP_REPLAY,    /* of a graph */
    HDRT__OP_FOREIGN,   /* stands for what the caller enqueued on the stream himself */
    HDRT__OP_WAIT,      /* for an event: no command of its own */
    HDRT__OP_FOLLOW,    /* for a point in a stream: the same */
    HDRT__OP_HOST,      /* a host call: no command either */
} hdrt__op_kind;

struct hdrt__stream;
struct hdrt__region;
struct hdrt__plan;

/* What is up to `sequence` in a stream. Holds the stream. */
typedef struct hdrt__point {
    struct hdrt__stream *stream;
    uint64_t sequence;
    uint64_t since; /* of a queue's: its first position that comes after the point */
} hdrt__point;

#define HDRT__OP_BYTES 128u
#define HDRT__OP_INLINE_PARAMETERS 72u

typedef enum hdrt__copy_kind {
    HDRT__COPY_HTOD, HDRT__COPY_DTOH, HDRT__COPY_DTOD, HDRT__COPY_PEER
} hdrt__copy_kind;

typedef struct hdrt__op {
    uint8_t kind; /* an hdrt__op_kind */
    bool cooperative; /* of a launch */
    uint8_t detail;   /* of a copy: an hdrt__copy_kind */
    _Atomic uint8_t flagged; /* how many wait for it; last: compilers read the others together */
    uint32_t parameter_bytes;
    union {
        struct {
            hdrt_kernel *kernel; /* its module is held by the queue */
            void *outside;       /* the parameters, malloc'ed, if they are longer */
            hdrt_grid grid;
            uint32_t padding;
            unsigned char inside[HDRT__OP_INLINE_PARAMETERS];
        } launch;
        struct {
            hdrt_ptr dst, src;
            void *host;
            uint64_t bytes;
            hdcu_context dst_context, src_context; /* of a peer copy */
        } copy;
        struct hdrt__region *region; /* malloc'ed */
        struct {
            hdrt_ptr dst;
            uint64_t count;
            uint32_t pattern_bytes;
            unsigned char pattern[16];
        } fill;
        hdrt_timer *timer; /* held */
        hdcu_event cuda_event; /* the caller's */
        hdrt__range *range; /* taken out of the registry */
        struct {
            hdrt_graph *graph; /* both held by the queue */
            struct hdrt__plan *plan;
        } replay;
        struct {
            hdrt_event event;
            hdrt_queue *producer; /* held; NULL: a host timeline's, or it has ended */
        } wait;
        hdrt__point point; /* held */
        struct {
            hdrt_host_function function;
            void *argument;
        } host;
    };
} hdrt__op;

_Static_assert(sizeof(hdrt__op) == HDRT__OP_BYTES, "an operation has two cache lines");

/* Of a launch: where its parameters lie. */
static inline unsigned char *hdrt__op_parameters(const hdrt__op *op)
{
    return op->launch.outside ? op->launch.outside : (unsigned char *)(uintptr_t)op->launch.inside;
}

/* What messages call a copy or a fill; NULL for the others, which are named where they are noted. */
const char *hdrt__op_words(const hdrt__op *op);

#define HDRT__SEGMENT_SMALL 4u
#define HDRT__SEGMENT_LARGE 64u

typedef struct hdrt__segment {
    struct hdrt__segment *_Atomic next;
    uint64_t first; /* position of ops[0] */
    uint32_t capacity;
    hdrt__op ops[];
} hdrt__segment;

/* The device's segments: those in no ring are kept for the next, up to a bound. */
typedef struct hdrt__segments {
    pthread_mutex_t lock; /* a leaf */
    hdrt__segment *free[2];
    uint32_t count[2];
} hdrt__segments;

void hdrt__segments_init(hdrt__segments *segments);
void hdrt__segments_free(hdrt__segments *segments);

/*
 * A ring: writers take turns (under the queue's lock), and so do readers (the committer, without it). A reader takes the
 * lock only to give segments back.
 */
typedef struct hdrt__ring {
    hdrt__segment *tail; /* writers' */
    _Atomic uint64_t published;
    hdrt__segment *head; /* the reader's; moved under the writers' lock */
    _Atomic uint64_t consumed; /* last position that was read */
} hdrt__ring;

/* The place of position published + 1, flag cleared; NULL if there is no memory. */
hdrt__op *hdrt__ring_reserve(hdrt__ring *ring, hdrt__segments *segments);
static inline void hdrt__ring_publish(hdrt__ring *ring)
{
    atomic_fetch_add(&ring->published, 1);
}
/* The operation `ahead` places behind the first one that was not consumed; NULL if it is not published. */
hdrt__op *hdrt__ring_ahead(hdrt__ring *ring, uint32_t ahead);
/* How many are published and not consumed: for who reads many. Looking slows the writers down. */
uint64_t hdrt__ring_ready(const hdrt__ring *ring);
/* One of those that are ready. */
hdrt__op *hdrt__ring_at(const hdrt__ring *ring, uint32_t ahead);
/* The segment that it is in, and its place there. */
hdrt__segment *hdrt__ring_segment_at(const hdrt__ring *ring, uint32_t ahead, uint32_t *out_index);
/* The first `count` are done with. `lock`: the writers'. */
void hdrt__ring_consume(hdrt__ring *ring, uint32_t count, hdrt__segments *segments, pthread_mutex_t *lock);
/* Under the writers' lock: flag the operation at `position`, unless it is consumed. */
void hdrt__ring_flag(hdrt__ring *ring, uint64_t position);

#endif
