/* SPDX-License-Identifier: MIT */
/*
 * What a driver keeps of work in many streams. On an H200 each launch, mark and write of a context takes 1 to 5 us longer
 * after many streams had kernels that ran side by side, for good: asking for the streams, or waiting for each, changes
 * nothing. What ends it is whatever waits for the context as a whole, which no library may do to its host program (and which
 * breaks other threads' captures), or a host function in any stream. So now and then there is one that does nothing.
 *
 * It comes in a stream of its own, which stands for 0.1 to 0.4 ms meanwhile, and only where several streams had work since the
 * last one. The dispatcher does it when it has nothing else to do; who launches and waits without it lets it look.
 */
#ifndef HDRT_QUEUE_RELIEF_H
#define HDRT_QUEUE_RELIEF_H

#include "queue/stream.h"

/* The least time from one to the next, and commands that there must have been since. */
#define HDRT__RELIEF_NS 50000000u
#define HDRT__RELIEF_COMMANDS 1000u

typedef struct hdrt__relief {
    hdrt__stream *stream; /* the dispatcher's; NULL: none was needed yet */
    bool refused;         /* the driver does not */
    uint64_t given_ns, commands; /* when it did, and how many there had been then */
    _Atomic uint64_t wanted_ns;
} hdrt__relief;

/* The first dispatcher, inside the scope, under no lock. */
void hdrt__relief_give(struct hdrt__scheduler *scheduler);
/* Any thread: let the dispatcher look, if nobody has for so long. */
void hdrt__relief_want(struct hdrt__scheduler *scheduler, uint64_t now_ns);

#endif
