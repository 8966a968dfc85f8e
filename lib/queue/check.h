/* SPDX-License-Identifier: MIT */
/* What can be told of an operation's arguments before it is enqueued, for those who have them from elsewhere too. */
#ifndef HDRT_QUEUE_CHECK_H
#define HDRT_QUEUE_CHECK_H

#include <hdrt.h>

#include "queue/region.h"

/* A kernel of the device. \return as hdrt_launch_with. */
hdrt_status hdrt__check_launch(hdrt_device *device, hdrt_kernel *kernel, const hdrt_grid *grid,
                               const void *const *args, const uint32_t *kinds, uint32_t count);
/* \return as hdrt_fill. */
hdrt_status hdrt__check_fill(hdrt_device *device, hdrt_ptr dst, const void *pattern, uint32_t pattern_bytes,
                             uint64_t count);
/* Sets contexts, and whether the host side is pinned. \return as hdrt_copy_region. */
hdrt_status hdrt__check_region(hdrt_device *device, hdrt__region *box);

#endif
