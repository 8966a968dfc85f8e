/* SPDX-License-Identifier: MIT */
/*
 * What the latest write of a value told those who read it: by address, the clock of who released it. Under
 * hdsoft__check_lock.
 */
#ifndef HDSOFT_CHECK_RELEASE_H
#define HDSOFT_CHECK_RELEASE_H

#include "soft/check/clock.h"

/* The value at the address is from an operation with this clock, or, with `more`, also still from those before: an
 * atomic operation carries on what it has read. False: no memory. */
bool hdsoft__release(uint64_t address, hdsoft__clock *clock, bool more);
/* NULL: nobody's. */
hdsoft__clock *hdsoft__released(uint64_t address);
/* The memory is gone. */
void hdsoft__release_forget(uint64_t base, uint64_t end);

#endif
