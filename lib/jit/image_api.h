/* SPDX-License-Identifier: MIT */
/*
 * The public image's inside. It is made by a blocking call and whole from the start, or by an asynchronous one, and
 * then under way until its future is over: who asks sees its result only after that.
 */
#ifndef HDRT_JIT_IMAGE_API_H
#define HDRT_JIT_IMAGE_API_H

#include <stdatomic.h>

#include <hdrt.h>

#include "jit/future.h"
#include "jit/jit.h"

struct hdrt_image {
    atomic_uint references; /* the caller's, its job's */
    char *name;             /* the source's, for messages */
    hdrt__future *future;   /* NULL: made by a blocking call */
    hdrt_status status;     /* of one without a future: HDRT_OK or HDRT_ERROR_COMPILE */
    char *message;          /* of that status */
    char *written;          /* by hdrt_image_write; NULL: not yet */
    hdrt__result result;    /* not to be looked at before the future is over */
};

/* NULL with a message if out of memory. `name` is copied. */
hdrt_image *hdrt__image_create(const char *name);
/* A whole image of a result, whose parts it takes over if this succeeds. `status` is that of the compile. */
hdrt_status hdrt__image_finish(const char *name, hdrt_status status, hdrt__result *result, hdrt_image **out_image);
void hdrt__image_release(hdrt_image *image);
/*
 * The image's code, borrowed. HDRT_OK, also where it is only a log; HDRT_NOT_READY; what the compile failed with, if
 * there is nothing of it; HDRT_ERROR_INVALID_ARGUMENT for NULL, with `function` in the message.
 */
hdrt_status hdrt__image_code(const hdrt_image *image, const char *function, hdrt__code **out_code);

#endif
