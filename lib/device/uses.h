/* SPDX-License-Identifier: MIT */
/*
 * Uses: the events after which nothing uses an object any more. Kept by pinned memory, modules and the like, under
 * their own lock; one event per timeline is enough, so they stay few.
 */
#ifndef HDRT_DEVICE_USES_H
#define HDRT_DEVICE_USES_H

#include <hdrt.h>

#define HDRT__USES_INLINE 2

typedef struct hdrt__uses {
    hdrt_event *events; /* event_inline or malloc'ed; NULL in an empty set of zeros */
    uint32_t count, capacity;
    hdrt_event event_inline[HDRT__USES_INLINE];
} hdrt__uses;

/* The object is used up to `event`. \return HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY. */
hdrt_status hdrt__uses_add(hdrt__uses *uses, hdrt_runtime *runtime, hdrt_event event);
/* Whether all are over (failed counts as over); asks the driver where that is not known, and forgets those that are. */
bool hdrt__uses_over(hdrt__uses *uses, hdrt_runtime *runtime);
/* Wait on the host until all are over. \return HDRT_OK, or why the driver could not be asked. */
hdrt_status hdrt__uses_wait(hdrt__uses *uses, hdrt_runtime *runtime);
/* Hand the events over to an empty set. */
void hdrt__uses_move(hdrt__uses *from, hdrt__uses *to);
void hdrt__uses_free(hdrt__uses *uses);

#endif
