/* SPDX-License-Identifier: MIT */
/*
 * What runs commands: threads, and the steps of which every policy's order is made. The eager and the lazy policy have
 * an executor thread for each device; random and virtual have one for all devices, so that nothing depends on how the
 * system schedules threads. Host functions are called by a caller thread for each device, one at a time.
 *
 *   work:  waits for others of its command -> ready -> begun -> done
 *   command: its stream's first, and dependencies met -> its ready works are stepped -> none left -> completed
 *
 * Everything here is called with the driver's lock held.
 */
#ifndef HDSOFT_MODEL_EXECUTOR_H
#define HDSOFT_MODEL_EXECUTOR_H

#include "soft/model/driver.h"

/* How often memory is looked at that a stream waits for, at first and at most. */
#define HDSOFT__POLL_FIRST_NS 20000u
#define HDSOFT__POLL_MOST_NS 500000u

/* Starts what a device's commands need. 0 or 304. */
int hdsoft__executor_start(hdsoft__device *device);
/* Something was forced or allowed: whoever runs the device's commands looks again. */
void hdsoft__executor_signal(hdsoft__device *device);
/* A command was enqueued. */
void hdsoft__executor_enqueued(hdsoft__device *device);
/* Sleep until signalled; until a time of hdsoft__now, UINT64_MAX: without end. */
void hdsoft__executor_sleep(hdsoft__device *device, uint64_t until);

/* ---- command.c ---- */
/* A command with one work, or with one for each of an order's places. NULL: 2. */
hdsoft__command *hdsoft__command_new(hdsoft__precedence *order);
void hdsoft__command_free(hdsoft__command *command);
/* Whether the first command's dependencies are met. With force, those that are not are forced. */
bool hdsoft__dependencies_met(hdsoft__command *command, bool force);
/* Whether a ready work must wait for memory, another event or the caller thread: what nobody will announce. */
bool hdsoft__must_poll(hdsoft__device *device, const hdsoft__work *work, bool force);
/* One step. What got done by it is told: followers become ready, the last work completes the command, and frees it.
 * Takes the lock away meanwhile. Returns as hdsoft__task_step, or -1 for any fault. */
int hdsoft__work_step(hdsoft__device *device, hdsoft__work *work, uint64_t budget);
/* The same without telling: for who tells later. */
int hdsoft__work_step_only(hdsoft__device *device, hdsoft__work *work, uint64_t budget);
/* Give a host function to the caller thread, if that is free. */
bool hdsoft__work_call(hdsoft__device *device, hdsoft__work *work);
void hdsoft__work_done(hdsoft__work *work);
/* All of it has begun: what follows it in launch order is ready. Once. */
void hdsoft__work_begun(hdsoft__work *work);
/* Take the oldest ready work, or the n-th, out of its command's list, as if it were done. */
hdsoft__work *hdsoft__work_take(hdsoft__command *command, uint32_t index);
/* Drop all that a faulted device still had to do, but for what lies behind a host function that is being called. */
void hdsoft__drain(hdsoft__device *device);
/* Commands that were idle may try again. */
void hdsoft__retry_idle(hdsoft__device *device);
/* Force what has been waiting for longer than patience; *until becomes the next time to look, if that is sooner. */
void hdsoft__force_overdue(hdsoft__device *device, uint64_t *until);

/* Force every stream's first command, of all devices. */
void hdsoft__force_heads(void);

/* ---- random.c ---- */
void *hdsoft__random_main(void *unused);
/* A call of a host thread has done its work: what the seed makes of it. Takes the lock away for a while. */
void hdsoft__random_after_call(void);
/* A query that was unsuccessful so far, and, with force, often enough to count as a wait for one more step. */
void hdsoft__random_query(hdsoft__stream *stream, uint64_t position, bool force);

#endif
