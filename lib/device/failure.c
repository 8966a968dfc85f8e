/* SPDX-License-Identifier: MIT */
#include "device/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"

hdrt__failure *hdrt__failure_create(hdrt_status status, const char *text)
{
    size_t length = strlen(text), bytes;
    if (!hdrt__size_add(sizeof(hdrt__failure) + 1, length, &bytes)) {
        return NULL;
    }
    hdrt__failure *failure = malloc(bytes);
    if (!failure) {
        return NULL;
    }
    atomic_init(&failure->references, 1);
    failure->status = status;
    memcpy(failure->text, text, length + 1);
    return failure;
}

hdrt__failure *hdrt__failure_hold(hdrt__failure *failure)
{
    if (failure) {
        atomic_fetch_add_explicit(&failure->references, 1, memory_order_relaxed);
    }
    return failure;
}

void hdrt__failure_drop(hdrt__failure *failure)
{
    if (failure && atomic_fetch_sub_explicit(&failure->references, 1, memory_order_acq_rel) == 1) {
        free(failure);
    }
}

const char *hdrt__failure_text(const hdrt__failure *failure)
{
    return failure ? failure->text : "the cause found no memory to be kept in";
}
