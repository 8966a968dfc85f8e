/* SPDX-License-Identifier: MIT */
#include "device/uses.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/timeline.h"

/* Forget events that are over: known to be, or with `progress` asked for. */
static void prune(hdrt__uses *uses, hdrt_runtime *runtime, bool progress)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < uses->count; i++) {
        if (!hdrt__event_over(runtime, uses->events[i], progress)) {
            uses->events[kept++] = uses->events[i];
        }
    }
    uses->count = kept;
}

static hdrt_status grow(hdrt__uses *uses)
{
    uint32_t capacity = uses->capacity * 2;
    hdrt_event *events = malloc(capacity * sizeof *events);
    if (!events) {
        return hdrt__fail_memory(capacity * sizeof *events, "the events that an object is used until");
    }
    memcpy(events, uses->events, uses->count * sizeof *events);
    if (uses->events != uses->event_inline) {
        free(uses->events);
    }
    uses->events = events;
    uses->capacity = capacity;
    return HDRT_OK;
}

hdrt_status hdrt__uses_add(hdrt__uses *uses, hdrt_runtime *runtime, hdrt_event event)
{
    if (!uses->events) {
        uses->events = uses->event_inline;
        uses->capacity = HDRT__USES_INLINE;
    }
    for (uint32_t i = 0; i < uses->count; i++) {
        if (uses->events[i].timeline == event.timeline) {
            if (uses->events[i].value < event.value) {
                uses->events[i].value = event.value;
            }
            return HDRT_OK;
        }
    }
    if (uses->count == uses->capacity) {
        prune(uses, runtime, false);
    }
    if (uses->count == uses->capacity) {
        hdrt_status status = grow(uses);
        if (status != HDRT_OK) {
            return status;
        }
    }
    uses->events[uses->count++] = event;
    return HDRT_OK;
}

bool hdrt__uses_over(hdrt__uses *uses, hdrt_runtime *runtime)
{
    if (uses->count) {
        prune(uses, runtime, true);
    }
    return uses->count == 0;
}

hdrt_status hdrt__uses_wait(hdrt__uses *uses, hdrt_runtime *runtime)
{
    while (uses->count) {
        hdrt_status status = hdrt__event_wait_until(runtime, uses->events[uses->count - 1], HDRT_FOREVER, NULL);
        if (!hdrt__status_over(status)) {
            return status;
        }
        uses->count--;
    }
    return HDRT_OK;
}

void hdrt__uses_move(hdrt__uses *from, hdrt__uses *to)
{
    *to = *from;
    if (from->events == from->event_inline) {
        to->events = to->event_inline;
    }
    memset(from, 0, sizeof *from);
}

void hdrt__uses_free(hdrt__uses *uses)
{
    if (uses->events != uses->event_inline) {
        free(uses->events);
    }
    memset(uses, 0, sizeof *uses);
}
