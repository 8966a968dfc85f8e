/* SPDX-License-Identifier: MIT */
/*
 * The engine of pipe: batches go from standard input through a kernel to standard output, with three threads and three
 * queues, so that reading, copying in, computing, copying out and writing overlap.
 *
 *   reader thread     reads a batch into pinned memory as soon as the copy in that last used it is complete
 *   the caller        enqueues copy in and kernel when a batch was read, copy out when pinned memory is free for it
 *   writer thread     waits for a batch's copy out and writes it, in order
 *
 * A slot has four buffers (pinned in, device in, device out, pinned out), each reused at its own moment, batch b using
 * slot b mod depth: memory does not depend on the amount of data. The queues are ordered by events:
 *
 *   copy in of b    after the kernel of b - depth        (device in is free)
 *   kernel of b     after the copy in of b, and after the copy out of b - depth (device out is free)
 *   copy out of b   after the kernel of b
 *
 * pipeline_io.c has the two threads; the rest is in pipeline.c.
 */
#ifndef HDJIT_PIPELINE_H
#define HDJIT_PIPELINE_H

#include "arguments.h"
#include "options.h"
#include "session.h"
#include "timeline.h"

#include <pthread.h>

#define DRAWN_LIMIT 8

/* What --stats prints. */
typedef struct pipeline_totals {
    uint64_t bytes, batches;
    double seconds;                       /* from the first read to the last write */
    int64_t device_ns;                    /* from the first copy in's start to the last copy out's end */
    int64_t busy_ns[ROW_COUNT];           /* sum over the batches */
    double two_way_bytes_per_ns;          /* --measure: each way, while both go at once */
    timeline_batch drawn[DRAWN_LIMIT];    /* the first batches */
    uint32_t drawn_count;
} pipeline_totals;

/* Where one batch's data is; see above. */
typedef struct pipeline_slot {
    unsigned char *in, *out;
    hdrt_ptr device_in, device_out;
    uint64_t in_bytes;
    hdrt_event copied_in, computed, copied_out;
} pipeline_slot;

/* A batch from launch to written; there are up to 2 * depth of these at a time. */
typedef struct pipeline_batch {
    uint64_t bytes;
    hdrt_timer *start[ROW_COUNT], *end[ROW_COUNT]; /* NULL without --stats */
} pipeline_batch;

typedef struct pipeline {
    const options *o;
    hdrt_runtime *runtime;
    hdrt_device *device;
    hdrt_kernel *kernel;
    const arguments *args;
    hdrt_queue *queues[ROW_COUNT];
    hdrt_timer *begin;       /* NULL without --stats */
    pipeline_slot *slots;    /* depth */
    pipeline_batch *batches; /* 2 * depth */
    int output;              /* standard output's descriptor */
    int cancel;              /* eventfd: readable when the reader is to stop */
    bool watch_output;       /* output is a pipe whose reader may vanish */
    bool progress;           /* draw it on standard error */
    bool lock_made, changed_made;

    pthread_mutex_t lock;   /* guards what follows */
    pthread_cond_t changed; /* any of it changed */
    uint64_t read, launched, drained, written; /* batches that have got so far; drained: copy out enqueued */
    bool input_ended;       /* `read` is final */
    bool stopped;           /* end at once, with `code` */
    int code;

    pipeline_totals totals; /* the writer's, until it has ended */
} pipeline;

/* Makes queues, memory and timers. Returns 0, or an exit code after a message; pipeline_close always. */
int pipeline_open(pipeline *p, const options *o, session *s, hdrt_kernel *kernel, const arguments *args, int output_fd);

/* Runs all batches. *out_complete is false if the output's reader vanished, which is no failure. */
int pipeline_run(pipeline *p, bool *out_complete);
void pipeline_close(pipeline *p);

/* The threads. */
void *pipeline_reader(void *context);
void *pipeline_writer(void *context);

/* Ends everything with `code`; the first one counts. */
void pipeline_stop(pipeline *p, int code);

/* Seconds of a clock that only goes forward. */
double pipeline_clock(void);

#endif
