/* SPDX-License-Identifier: MIT */
/*
 * The watchdog: tells the log of streams that do not go on. The first dispatcher asks it whenever it has looked at the
 * streams in flight; it makes no driver call. How long an operation has been in flight is known from the first look on.
 */
#ifndef HDRT_QUEUE_WATCHDOG_H
#define HDRT_QUEUE_WATCHDOG_H

#include "queue/stream.h"

/* The first dispatcher: this stream was just asked how far it is. */
void hdrt__watchdog_look(hdrt__stream *stream);

#endif
