/* SPDX-License-Identifier: MIT */
/* Host calls in queue order. */
#include "base/status.h"
#include "queue/enqueue.h"
#include "queue/stream_call.h"

hdrt_status hdrt_queue_host_call(hdrt_queue *queue, hdrt_host_function function, void *argument)
{
    hdrt__enqueue enqueue;
    hdrt__op *op;
    hdrt_status status = hdrt__enqueue_begin(&enqueue, queue, "hdrt_queue_host_call");
    if (status != HDRT_OK) {
        return status;
    }
    if (!function) {
        return hdrt__fail(HDRT_ERROR_INVALID_ARGUMENT, "hdrt_queue_host_call: the function is NULL");
    }
    const hdrt__device_limits *limits = &queue->device->limits;
    if (atomic_load(&queue->foreign_work) && !limits->stream_wait_64 && !limits->stream_wait_32) {
        return hdrt__stream_call_unsupported(queue);
    }
    hdrt__callbacks *callbacks = hdrt__device_callbacks(queue->device);
    status = callbacks ? hdrt__callbacks_start(callbacks) : (hdrt_status)HDRT_ERROR_OUT_OF_MEMORY;
    if (status != HDRT_OK) {
        return status; /* later it would fail the queue */
    }
    status = hdrt__enqueue_reserve(&enqueue, HDRT__OP_HOST, &op);
    if (status != HDRT_OK) {
        return status;
    }
    op->host.function = function;
    op->host.argument = argument;
    atomic_store(&queue->hazard, enqueue.position);
    return hdrt__enqueue_publish(&enqueue);
}
