/* SPDX-License-Identifier: MIT */
/* Boxes in strided memory, as operations keep them. */
#ifndef HDRT_QUEUE_REGION_H
#define HDRT_QUEUE_REGION_H

#include "driver/call.h"
#include "queue/queue.h"

typedef struct hdrt__region {
    uint64_t width, height, depth;
    hdrt_region_side dst, src;
    hdcu_context dst_context, src_context;
    bool pinned; /* of the host side, if there is one */
} hdrt__region;

/* A node's parameters, of a copy within one device. */
hdcu_memcpy3d hdrt__region_params(const hdrt__region *region);
/* Hand the copy over. */
hdrt__call hdrt__region_copy(hdrt_queue *queue, hdcu_stream stream, const hdrt__region *region);

#endif
