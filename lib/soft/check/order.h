/* SPDX-License-Identifier: MIT */
/*
 * The checks' view of commands: which operation a running task is. Called by the model, all of it under the driver's
 * lock; nothing is done while no check follows memory.
 */
#ifndef HDSOFT_CHECK_ORDER_H
#define HDSOFT_CHECK_ORDER_H

#include "soft/check/check.h"
#include "soft/model/driver.h"

/* The stream's first command begins its next task: it gets an operation. */
void hdsoft__order_begin(hdsoft__stream *stream, hdsoft__command *command);
/* The task is done, or the command is dropped. */
void hdsoft__order_end(hdsoft__command *command);

#endif
