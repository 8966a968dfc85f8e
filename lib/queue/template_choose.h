/* SPDX-License-Identifier: MIT */
/*
 * Which template serves the beginning of a run, and whether to build one: the policy of the template cache. Called by
 * template.c under the cache's lock; makes no driver call. What it drops to make room comes back in the choice, to be
 * destroyed without the lock.
 */
#ifndef HDRT_QUEUE_TEMPLATE_CHOOSE_H
#define HDRT_QUEUE_TEMPLATE_CHOOSE_H

#include <pthread.h>
#include <stdatomic.h>

#include "queue/template_table.h"

/* Streams of which something is remembered; more share a place, which costs time and nothing else. */
#define HDRT__TEMPLATE_STREAMS 256u

/*
 * First launches that may be in flight at once. One brings its instance to the device, for which the driver has little
 * room: behind a gate it blocks in some further one or in a further build, the 33rd at the earliest as far as was seen.
 */
#define HDRT__TEMPLATE_FIRST_LAUNCHES 16u

/* What is remembered of a stream's runs. */
typedef struct hdrt__template_stream {
    hdrt__template_sequence *last; /* chain launched last as a whole cut: most likely the next too */
    uint32_t rest;                 /* launches of a cut that is not built, to be served by open templates */
    uint32_t fresh, uncut;         /* cuts in a row that were never seen before; and launches not cut since then */
    const hdrt_kernel *expected;   /* the first of the rest, if known: else it is another queue's run */
} hdrt__template_stream;

/* Things out of the tables that wait to be destroyed. */
typedef struct hdrt__template_dropped {
    hdrt__template_instance *instances;
    hdrt__template_sequence *sequences;
} hdrt__template_dropped;

struct hdrt__templates {
    hdrt_device *device;
    hdrt__template_complete complete;
    void *context;
    bool enabled;
    atomic_bool released; /* to_release is not empty */
    pthread_mutex_t lock; /* a leaf; guards what follows and the links of sequences and instances */
    bool switches;        /* nodes can be switched off, so that a wide template serves fewer */
    bool rings;           /* a number can be written behind a kernel */
    bool orders;          /* kernels can follow each other in launch order, and begin without waiting for an end */
    uint32_t refusals;    /* kernels with which the driver did not take that */
    hdrt__template_table table;
    hdrt__template_dropped to_release; /* ended: only their modules are held yet */
    hdrt_kernel *left;                 /* and those of kernels that were a node's, one hold each */
    hdrt__template_stream streams[HDRT__TEMPLATE_STREAMS];
    struct {
        uint32_t index;
        uint64_t number; /* 0: none */
    } firsts[HDRT__TEMPLATE_FIRST_LAUNCHES]; /* the last first launches, a ring */
    uint32_t first_count;
};

/* What to do. The instance is taken, or, if it is NULL, one of the sequence is to be built. */
typedef struct hdrt__template_choice {
    hdrt__template_sequence *sequence; /* NULL: no template */
    hdrt__template_instance *instance;
    uint32_t size;   /* launches that go out by it */
    uint32_t direct; /* without one: launches to be made one by one */
    hdrt__template_dropped dropped;
} hdrt__template_choice;

void hdrt__template_choose_chain(hdrt__templates *templates, const hdrt__run_place *place,
                                 const hdrt__run_launch *launches, uint32_t count, bool more,
                                 hdrt__template_choice *choice);
void hdrt__template_choose_wide(hdrt__templates *templates, const hdrt__run_place *place,
                                const hdrt__run_launch *launches, uint32_t count, hdrt__template_choice *choice);
/* Whether there is an instance for these that was launched before: nothing need be built. */
bool hdrt__template_wide_is_ready(const hdrt__templates *templates, const hdrt__run_launch *launches, uint32_t count);

/* The launch of the choice, of so many, is over and had the place's number; 0: it did not happen. */
void hdrt__template_give_back(hdrt__templates *templates, hdrt__template_instance *instance,
                              const hdrt__run_place *place, uint32_t launched);
/* The driver did not take what its nodes should hold: do not use it any more, nor build it soon; an open one only not for
 * this kernel, if it is known which it was. */
void hdrt__template_refuse(hdrt__templates *templates, hdrt__template_sequence *sequence, hdrt_kernel *kernel,
                           hdcu_result result, hdrt__template_dropped *dropped);
/* A node of the instance, which was given back, could not be switched: it goes, and no others are switched. */
void hdrt__template_switch_no_more(hdrt__templates *templates, hdrt__template_instance *instance,
                                   hdrt__template_dropped *dropped);
/* The build of the choice failed. */
void hdrt__template_not_built(hdrt__templates *templates, hdrt__template_sequence *sequence,
                              hdrt__template_dropped *dropped);
/* Out of the tables with all of its instances that are not in flight, and with itself if none is left. \return whether
 * some are left. */
bool hdrt__template_drop(hdrt__templates *templates, hdrt__template_sequence *sequence,
                         hdrt__template_dropped *dropped);
/* The same for what of it holds code that nobody but templates does: all of it, or of an open one single instances. */
bool hdrt__template_drop_unwanted(hdrt__templates *templates, hdrt__template_sequence *sequence,
                                  hdrt__template_dropped *dropped);

#endif
