/* SPDX-License-Identifier: MIT */
/**
 * \file hdrt/interop.h
 * Raw CUDA handles out and in, without cuda.h. Include after <hdrt.h>.
 *
 * The structs have CUDA's own tags, so these pointers are CUcontext, CUstream, CUevent and so on without casts where
 * cuda.h is included too. Handles stay the owner's: do not destroy what you got here.
 */
#ifndef HDRT_INTEROP_H
#define HDRT_INTEROP_H

#include <hdrt.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUmod_st;
struct CUfunc_st;

/** The device's CUcontext. */
HDRT_EXPORT struct CUctx_st *hdrt_device_context(const hdrt_device *device);

/** The device's CUdevice ordinal. */
HDRT_EXPORT int hdrt_device_ordinal(const hdrt_device *device);

/** The module's CUmodule; valid while the module is. */
HDRT_EXPORT struct CUmod_st *hdrt_module_handle(const hdrt_module *module);

/** The kernel's CUfunction; valid while its module is. */
HDRT_EXPORT struct CUfunc_st *hdrt_kernel_function(const hdrt_kernel *kernel);

/**
 * The CUstream of an *exclusive* queue, on which the caller may enqueue too; its own work is ordered with the queue's
 * by call order. So from here on each call on the queue hands over what it enqueues, and waits, if need be, until what
 * is before is handed over: a wait for an event that is not enqueued yet holds the caller up. This call waits for that
 * too. With HDRT_BACK_PRESSURE_WOULD_BLOCK, and in a host function of the queue, such calls return HDRT_WOULD_BLOCK
 * instead and enqueue nothing.
 *
 * While the queue is recorded into a graph the stream is captured, and what the caller enqueues there becomes part of
 * the graph (hdrt/graph.h has the rules); the capture is not his to end.
 *
 * \return HDRT_OK; HDRT_ERROR_UNSUPPORTED  the queue is not exclusive, or it is being recorded and its stream was not
 *     given out before; HDRT_WOULD_BLOCK; HDRT_ERROR_QUEUE_FAILED; HDRT_ERROR_DEVICE_LOST.
 */
HDRT_EXPORT hdrt_status hdrt_queue_stream(hdrt_queue *queue, struct CUstream_st **out_stream);

/**
 * Make a queue on a foreign stream, which must outlive the queue and all events of it that are still waited for. Its
 * calls order themselves with the caller's own work as those of hdrt_queue_stream, and so do its recordings. While the
 * caller captures the stream himself, calls that would enqueue on the queue return HDRT_ERROR_CAPTURING.
 * \return as hdrt_queue_create; HDRT_ERROR_CAPTURING  the stream is being captured; HDRT_ERROR_INVALID_ARGUMENT  the
 *     stream is of another context.
 */
HDRT_EXPORT hdrt_status hdrt_queue_adopt(hdrt_device *device, struct CUstream_st *stream,
                                         const hdrt_queue_options *options, hdrt_queue **out_queue);

/** Let `queue` wait for what the caller's CUevent stands for now. \return as hdrt_launch; HDRT_ERROR_DRIVER  the driver
 *  refuses the event: nothing was enqueued. */
HDRT_EXPORT hdrt_status hdrt_queue_wait_cuda_event(hdrt_queue *queue, struct CUevent_st *event);

/** Record the caller's CUevent behind all that was enqueued on `queue`. Waits until that is handed to the driver, which
 *  it is not while the queue waits for an event that is not enqueued yet, or for a host call: with
 *  HDRT_BACK_PRESSURE_WOULD_BLOCK the call returns HDRT_WOULD_BLOCK then. \return as hdrt_launch. */
HDRT_EXPORT hdrt_status hdrt_queue_record_cuda_event(hdrt_queue *queue, struct CUevent_st *event);

/** The driver's entry point by its exact name (e.g. "cuStreamQuery"), NULL if this driver has none. */
HDRT_EXPORT void *hdrt_runtime_driver_symbol(hdrt_runtime *runtime, const char *name);

#ifdef __cplusplus
}
#endif

#endif
