/* SPDX-License-Identifier: MIT */
/*
 * The checks' view of commands: which operation a running task is. Called by the model, all of it under the driver's
 * lock; nothing is done while no check follows memory.
 */
#ifndef HDSOFT_CHECK_ORDER_H
#define HDSOFT_CHECK_ORDER_H

#include "soft/check/check.h"
#include "soft/model/driver.h"

/* A work of its stream's first command begins: it gets an operation. */
void hdsoft__order_begin(hdsoft__work *work);
/* The work is done, or its command is dropped. */
void hdsoft__order_end(hdsoft__work *work);

#endif
