/* SPDX-License-Identifier: MIT */
/*
 * What has happened before what: the history of each command. Made when the command is enqueued, from what it comes
 * after (its stream, the legacy stream's rule, the event that it waits for, all that the host knows to be done); its
 * clock is known once those have run. So an edge counts because it was declared, not because of who ran first.
 *
 * All host threads count as one: what one of them has seen done, the others may know, by ways that no driver sees.
 * For the same reason a host function, and a value written to host memory, tell the host of what came before them.
 *
 * Called by the model and the entry points, all of it under the driver's lock; with the race check off, histories are
 * NULL and nothing is done, but that a running task is an operation as soon as any check follows memory.
 */
#ifndef HDSOFT_CHECK_HISTORY_H
#define HDSOFT_CHECK_HISTORY_H

#include "soft/check/check.h"
#include "soft/model/driver.h"

/* A command joins its stream: `dependencies` are its own, `tasks` how many it has. NULL while races are not looked for. */
hdsoft__history *hdsoft__history_new(hdsoft__stream *stream, const hdsoft__dependency *dependencies, size_t count,
                                     uint32_t tasks);
hdsoft__history *hdsoft__history_hold(hdsoft__history *history);
void hdsoft__history_release(hdsoft__history *history);  /* NULL is fine, here and below */
/* Of a stream up to now, done: for an event that a graph records. */
hdsoft__history *hdsoft__history_so_far(const hdsoft__operation *operation);

/* A task of the stream's first command begins: its operation, or NULL. `place` numbers the command's tasks. */
hdsoft__operation *hdsoft__history_begin(hdsoft__stream *stream, hdsoft__history *history, uint32_t place,
                                         const hdsoft__task *task, const hdsoft__site *enqueued);
/* It is done; takes the operation over. `operation` may be NULL: nothing but a place in a graph's order. */
void hdsoft__history_end(hdsoft__history *history, uint32_t place, hdsoft__operation *operation);
/* In a graph: `later` comes after `place`, which is done. */
void hdsoft__history_follow(hdsoft__history *history, uint32_t place, uint32_t later);
/* The command is done, or dropped. */
void hdsoft__history_complete(hdsoft__history *history);

/* A host function is called, and returns. */
void hdsoft__history_call(hdsoft__operation *operation);
void hdsoft__history_return(hdsoft__operation *operation);
/* A graph's wait for an event is over. */
void hdsoft__history_met(hdsoft__operation *operation, const hdsoft__history *history);

/*
 * The host waits for, or asks about, commands: expect before, saw after it was told that they are done. Those between
 * are not seen. NULL where races are not looked for; hdsoft__history_saw lets go of what it is given.
 */
hdsoft__history *hdsoft__history_expect(hdsoft__stream *stream);   /* with the legacy stream's rule */
hdsoft__history *hdsoft__history_expect_all(const hdsoft__device *device, const hdsoft__context *context);
void hdsoft__history_saw(hdsoft__history *history, bool success);
/* An operation of the host's own, after all that it knows; to be released. */
hdsoft__operation *hdsoft__history_host_operation(hdsoft__operation_kind kind);

/* The stream's memory goes. */
void hdsoft__history_forget(hdsoft__stream *stream);

#endif
