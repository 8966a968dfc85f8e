/* SPDX-License-Identifier: MIT */
/*
 * The virtual policy: a discrete-event simulation of the devices. Work is really executed, and its bytes are right, but
 * when it runs and for how long is computed, so that cuEventElapsedTime, overlap and a program's length are exact,
 * the same on any machine and at any load.
 *
 * The clock starts at 0 ns. It moves only while a host thread waits in a call, to when what it waits for is done;
 * by hdsoft_clock_advance, which stands for host code that takes so long; and by asking: from the 16th unsuccessful
 * query on, each moves it to the next thing that happens. Host code and calls take no time by themselves.
 *
 * A command begins when it is its stream's first, its dependencies are done and it has been enqueued. Then:
 *
 *   kernel        `launch` ns (in a graph `node`), then each block takes its share of the multiprocessors for `block`
 *                 ns, `instruction` ns for each warp-instruction (the mean over the kernel's blocks) and what it sleeps
 *                 in nanosleep. A multiprocessor holds as many blocks of a kernel as occupancy says, alone or beside
 *                 others' in proportion; there are `sms`. Blocks that do not fit wait; those of the higher priority go
 *                 first, then those of the earlier kernel; a cooperative kernel begins when all its blocks fit. At
 *                 most `kernels` kernels are on a device at once.
 *                 %globaltimer tells this clock, clock64 the same at 1.98 GHz; a look at either takes 32 ns.
 *   copy          `copy` ns and its bytes at `h2d`, `d2h`, `d2d` or `p2p` (between devices) GB/s, all of it on one of
 *                 the `engines` of the stream's device for that direction. Host to host counts as d2h.
 *   memset        `fill` ns and its bytes at `set` GB/s; it needs no engine
 *   event record  `record` ns; the event's time is when they are over
 *   event wait    `wait` ns after the event. A wait for an event that is reached at the call is none.
 *   wait value    `value` ns after the condition holds;  write value: `value` ns, then it writes
 *   host function `host` ns; one at a time for each device
 *   allocation, free, empty node: no time
 *
 * Defaults, like an H200: launch=1000 node=750 block=0 instruction=1 copy=1500 fill=1200 record=200 wait=1500 value=900
 * host=5000 h2d=54 d2h=55 d2d=2000 p2p=395 set=2000 sms=132 engines=1 kernels=128. 0 GB/s: copies take no time but
 * `copy`.
 *
 * The order of execution agrees with the clock: a kernel is executed when its first block begins, everything else
 * when it ends. Kernels that are on a device at the same time and wait for each other are stepped in turn; one that
 * spins for long does not hold up the clock.
 */
#ifndef HDSOFT_MODEL_SIMULATE_H
#define HDSOFT_MODEL_SIMULATE_H

#include "soft/model/driver.h"

void *hdsoft__simulate_main(void *first_device);
/* A host function has returned to the caller thread. locked */
void hdsoft__simulate_returned(hdsoft__work *work);
/* A query by a host thread: what is due by now happens first; with force, the clock goes on by one event. locked */
void hdsoft__simulate_query(hdsoft__stream *stream, uint64_t position, bool force);

/* What hdsoft_clock_advance, hdsoft_clock_now, hdsoft_makespan and hdsoft_gpu_waits are. Not locked. */
void hdsoft__clock_advance(unsigned long long ns);
unsigned long long hdsoft__clock_now(void);
/* When the last command was completed, on the virtual clock. */
unsigned long long hdsoft__makespan(void);
/* How many waits for events streams went through, under any policy. */
unsigned long long hdsoft__gpu_waits(void);

#endif
