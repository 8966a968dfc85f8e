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
 * by call order. \return HDRT_OK; HDRT_ERROR_UNSUPPORTED  the queue is not exclusive; HDRT_ERROR_DEVICE_LOST.
 */
HDRT_EXPORT hdrt_status hdrt_queue_stream(hdrt_queue *queue, struct CUstream_st **out_stream);

/**
 * Make a queue on a foreign stream, which must outlive the queue and all events of it that are still waited for.
 * \return as hdrt_queue_create; HDRT_ERROR_CAPTURING  the stream is being captured; HDRT_ERROR_INVALID_ARGUMENT  the
 *     stream is of another context.
 */
HDRT_EXPORT hdrt_status hdrt_queue_adopt(hdrt_device *device, struct CUstream_st *stream,
                                         const hdrt_queue_options *options, hdrt_queue **out_queue);

/** Let `queue` wait for what the caller's CUevent stands for now. */
HDRT_EXPORT hdrt_status hdrt_queue_wait_cuda_event(hdrt_queue *queue, struct CUevent_st *event);

/** Record the caller's CUevent behind all that was enqueued on `queue`. */
HDRT_EXPORT hdrt_status hdrt_queue_record_cuda_event(hdrt_queue *queue, struct CUevent_st *event);

/** The driver's entry point by its exact name (e.g. "cuStreamQuery"), NULL if this driver has none. */
HDRT_EXPORT void *hdrt_runtime_driver_symbol(hdrt_runtime *runtime, const char *name);

#ifdef __cplusplus
}
#endif

#endif
