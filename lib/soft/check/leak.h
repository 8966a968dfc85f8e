/* SPDX-License-Identifier: MIT */
/*
 * What a context's end finds that nobody gave back: allocations, streams, events and modules, each with the place where
 * it was made. Freed memory that a pool keeps is no leak, nor is what the driver made for itself (the default streams,
 * a library's modules). A context that is still there when the process ends is looked at then. Locked.
 */
#ifndef HDSOFT_CHECK_LEAK_H
#define HDSOFT_CHECK_LEAK_H

#include "soft/model/driver.h"

/* The context's work is done, and what is left in it goes next. */
void hdsoft__check_leaks(hdsoft__context *context);
#endif
