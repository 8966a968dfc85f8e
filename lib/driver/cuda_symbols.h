/* SPDX-License-Identifier: MIT */
/*
 * Every entry point of the CUDA driver that libhdrt may call, the soft driver may answer and a test's fake may stand
 * in for. The driver table, its loading, the soft driver's look-up and the proof against cudaTypedefs.h are all
 * written from this one list.
 *
 * X(name, symbol, version, need, parameters)
 *   name        what cuda.h calls it, its name for cuGetProcAddress, and its member in the driver table
 *   symbol      the exact exported symbol of the version that is pinned, for dlsym and hdsoft_get_proc_address
 *   version     the CUDA version at which cuGetProcAddress is asked for it
 *   need        REQUIRED: a driver of 11.4 has it and libhdrt cannot do without; OPTIONAL: NULL in the table where the
 *               driver lacks it, which disables a feature
 *   parameters  types in parentheses; each entry returns hdcu_result
 *
 * Versions are pinned, never "the newest": a newer one has other parameters (cuCtxCreate has had four).
 */
#ifndef HDRT_DRIVER_CUDA_SYMBOLS_H
#define HDRT_DRIVER_CUDA_SYMBOLS_H

#include "driver/cuda_abi.h"

#define HDCU_SYMBOL_LIST(X)                                                                                            \
    /* initialisation and queries */                                                                                   \
    X(cuInit, "cuInit", 2000, REQUIRED, (unsigned))                                                                    \
    X(cuDriverGetVersion, "cuDriverGetVersion", 2020, REQUIRED, (int *))                                               \
    X(cuGetProcAddress, "cuGetProcAddress", 11030, REQUIRED, (const char *, void **, int, uint64_t))                   \
    X(cuGetErrorName, "cuGetErrorName", 6000, REQUIRED, (hdcu_result, const char **))                                  \
    X(cuGetErrorString, "cuGetErrorString", 6000, REQUIRED, (hdcu_result, const char **))                              \
    /* device */                                                                                                       \
    X(cuDeviceGet, "cuDeviceGet", 2000, REQUIRED, (hdcu_device *, int))                                                \
    X(cuDeviceGetCount, "cuDeviceGetCount", 2000, REQUIRED, (int *))                                                   \
    X(cuDeviceGetName, "cuDeviceGetName", 2000, REQUIRED, (char *, int, hdcu_device))                                  \
    X(cuDeviceGetUuid, "cuDeviceGetUuid_v2", 11040, REQUIRED, (hdcu_uuid *, hdcu_device))                              \
    X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", 3020, REQUIRED, (size_t *, hdcu_device))                                \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000, REQUIRED, (int *, unsigned, hdcu_device))                    \
    X(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", 4010, REQUIRED, (char *, int, hdcu_device))                          \
    X(cuDeviceGetByPCIBusId, "cuDeviceGetByPCIBusId", 4010, OPTIONAL, (hdcu_device *, const char *))                   \
    X(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", 4000, REQUIRED, (int *, hdcu_device, hdcu_device))               \
    X(cuDeviceGetP2PAttribute, "cuDeviceGetP2PAttribute", 8000, OPTIONAL,                                              \
      (int *, unsigned, hdcu_device, hdcu_device))                                                                     \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, REQUIRED, (hdcu_context *, hdcu_device))             \
    X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", 11000, REQUIRED, (hdcu_device))                       \
    X(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset_v2", 11000, OPTIONAL, (hdcu_device))                           \
    X(cuDevicePrimaryCtxSetFlags, "cuDevicePrimaryCtxSetFlags_v2", 11000, REQUIRED, (hdcu_device, unsigned))           \
    X(cuDevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", 7000, REQUIRED, (hdcu_device, unsigned *, int *))      \
    X(cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", 11020, REQUIRED, (hdcu_pool *, hdcu_device))             \
    X(cuDeviceGetMemPool, "cuDeviceGetMemPool", 11020, OPTIONAL, (hdcu_pool *, hdcu_device))                           \
    X(cuDeviceSetMemPool, "cuDeviceSetMemPool", 11020, OPTIONAL, (hdcu_device, hdcu_pool))                             \
    /* context */                                                                                                      \
    X(cuCtxCreate, "cuCtxCreate_v2", 3020, REQUIRED, (hdcu_context *, unsigned, hdcu_device))                          \
    X(cuCtxDestroy, "cuCtxDestroy_v2", 4000, REQUIRED, (hdcu_context))                                                 \
    X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", 4000, REQUIRED, (hdcu_context))                                         \
    X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", 4000, REQUIRED, (hdcu_context *))                                         \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, REQUIRED, (hdcu_context))                                              \
    X(cuCtxGetCurrent, "cuCtxGetCurrent", 4000, REQUIRED, (hdcu_context *))                                            \
    X(cuCtxGetDevice, "cuCtxGetDevice", 2000, REQUIRED, (hdcu_device *))                                               \
    X(cuCtxGetFlags, "cuCtxGetFlags", 7000, REQUIRED, (unsigned *))                                                    \
    X(cuCtxGetId, "cuCtxGetId", 12000, OPTIONAL, (hdcu_context, unsigned long long *))                                 \
    X(cuCtxGetApiVersion, "cuCtxGetApiVersion", 3020, OPTIONAL, (hdcu_context, unsigned *))                            \
    X(cuCtxSynchronize, "cuCtxSynchronize", 2000, REQUIRED, (void))                                                    \
    X(cuCtxGetLimit, "cuCtxGetLimit", 3010, REQUIRED, (size_t *, unsigned))                                            \
    X(cuCtxSetLimit, "cuCtxSetLimit", 3010, REQUIRED, (unsigned, size_t))                                              \
    X(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", 5050, REQUIRED, (int *, int *))                      \
    X(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", 4000, OPTIONAL, (hdcu_context, unsigned))                        \
    X(cuCtxDisablePeerAccess, "cuCtxDisablePeerAccess", 4000, OPTIONAL, (hdcu_context))                                \
    /* memory */                                                                                                       \
    X(cuMemGetInfo, "cuMemGetInfo_v2", 3020, REQUIRED, (size_t *, size_t *))                                           \
    X(cuMemAlloc, "cuMemAlloc_v2", 3020, REQUIRED, (hdcu_pointer *, size_t))                                           \
    X(cuMemAllocPitch, "cuMemAllocPitch_v2", 3020, REQUIRED, (hdcu_pointer *, size_t *, size_t, size_t, unsigned))     \
    X(cuMemFree, "cuMemFree_v2", 3020, REQUIRED, (hdcu_pointer))                                                       \
    X(cuMemGetAddressRange, "cuMemGetAddressRange_v2", 3020, REQUIRED, (hdcu_pointer *, size_t *, hdcu_pointer))       \
    X(cuMemAllocHost, "cuMemAllocHost_v2", 3020, REQUIRED, (void **, size_t))                                          \
    X(cuMemFreeHost, "cuMemFreeHost", 2000, REQUIRED, (void *))                                                        \
    X(cuMemHostAlloc, "cuMemHostAlloc", 2020, REQUIRED, (void **, size_t, unsigned))                                   \
    X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2", 3020, REQUIRED, (hdcu_pointer *, void *, unsigned))   \
    X(cuMemHostGetFlags, "cuMemHostGetFlags", 2030, REQUIRED, (unsigned *, void *))                                    \
    X(cuMemHostRegister, "cuMemHostRegister_v2", 6050, REQUIRED, (void *, size_t, unsigned))                           \
    X(cuMemHostUnregister, "cuMemHostUnregister", 4000, REQUIRED, (void *))                                            \
    X(cuMemcpy, "cuMemcpy", 4000, REQUIRED, (hdcu_pointer, hdcu_pointer, size_t))                                      \
    X(cuMemcpyAsync, "cuMemcpyAsync", 4000, REQUIRED, (hdcu_pointer, hdcu_pointer, size_t, hdcu_stream))               \
    X(cuMemcpyHtoD, "cuMemcpyHtoD_v2", 3020, REQUIRED, (hdcu_pointer, const void *, size_t))                           \
    X(cuMemcpyDtoH, "cuMemcpyDtoH_v2", 3020, REQUIRED, (void *, hdcu_pointer, size_t))                                 \
    X(cuMemcpyDtoD, "cuMemcpyDtoD_v2", 3020, REQUIRED, (hdcu_pointer, hdcu_pointer, size_t))                           \
    X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", 3020, REQUIRED, (hdcu_pointer, const void *, size_t, hdcu_stream))    \
    X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", 3020, REQUIRED, (void *, hdcu_pointer, size_t, hdcu_stream))          \
    X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", 3020, REQUIRED, (hdcu_pointer, hdcu_pointer, size_t, hdcu_stream))    \
    X(cuMemcpyPeer, "cuMemcpyPeer", 4000, OPTIONAL, (hdcu_pointer, hdcu_context, hdcu_pointer, hdcu_context, size_t))  \
    X(cuMemcpyPeerAsync, "cuMemcpyPeerAsync", 4000, OPTIONAL,                                                          \
      (hdcu_pointer, hdcu_context, hdcu_pointer, hdcu_context, size_t, hdcu_stream))                                   \
    X(cuMemcpy2D, "cuMemcpy2D_v2", 3020, REQUIRED, (const hdcu_memcpy2d *))                                            \
    X(cuMemcpy2DAsync, "cuMemcpy2DAsync_v2", 3020, REQUIRED, (const hdcu_memcpy2d *, hdcu_stream))                     \
    X(cuMemcpy3D, "cuMemcpy3D_v2", 3020, REQUIRED, (const hdcu_memcpy3d *))                                            \
    X(cuMemcpy3DAsync, "cuMemcpy3DAsync_v2", 3020, REQUIRED, (const hdcu_memcpy3d *, hdcu_stream))                     \
    X(cuMemsetD8, "cuMemsetD8_v2", 3020, REQUIRED, (hdcu_pointer, unsigned char, size_t))                              \
    X(cuMemsetD16, "cuMemsetD16_v2", 3020, REQUIRED, (hdcu_pointer, unsigned short, size_t))                           \
    X(cuMemsetD32, "cuMemsetD32_v2", 3020, REQUIRED, (hdcu_pointer, unsigned, size_t))                                 \
    X(cuMemsetD8Async, "cuMemsetD8Async", 3020, REQUIRED, (hdcu_pointer, unsigned char, size_t, hdcu_stream))          \
    X(cuMemsetD16Async, "cuMemsetD16Async", 3020, REQUIRED, (hdcu_pointer, unsigned short, size_t, hdcu_stream))       \
    X(cuMemsetD32Async, "cuMemsetD32Async", 3020, REQUIRED, (hdcu_pointer, unsigned, size_t, hdcu_stream))             \
    X(cuMemsetD2D8Async, "cuMemsetD2D8Async", 3020, OPTIONAL,                                                          \
      (hdcu_pointer, size_t, unsigned char, size_t, size_t, hdcu_stream))                                              \
    X(cuMemsetD2D32Async, "cuMemsetD2D32Async", 3020, OPTIONAL,                                                        \
      (hdcu_pointer, size_t, unsigned, size_t, size_t, hdcu_stream))                                                   \
    X(cuPointerGetAttribute, "cuPointerGetAttribute", 4000, REQUIRED, (void *, unsigned, hdcu_pointer))                \
    X(cuPointerGetAttributes, "cuPointerGetAttributes", 7000, REQUIRED,                                                \
      (unsigned, unsigned *, void **, hdcu_pointer))                                                                   \
    /* stream-ordered memory */                                                                                        \
    X(cuMemAllocAsync, "cuMemAllocAsync", 11020, REQUIRED, (hdcu_pointer *, size_t, hdcu_stream))                      \
    X(cuMemFreeAsync, "cuMemFreeAsync", 11020, REQUIRED, (hdcu_pointer, hdcu_stream))                                  \
    X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, REQUIRED,                                             \
      (hdcu_pointer *, size_t, hdcu_pool, hdcu_stream))                                                                \
    X(cuMemPoolCreate, "cuMemPoolCreate", 11020, REQUIRED, (hdcu_pool *, const hdcu_pool_properties *))                \
    X(cuMemPoolDestroy, "cuMemPoolDestroy", 11020, REQUIRED, (hdcu_pool))                                              \
    X(cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020, REQUIRED, (hdcu_pool, size_t))                                        \
    X(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", 11020, REQUIRED, (hdcu_pool, unsigned, void *))                  \
    X(cuMemPoolGetAttribute, "cuMemPoolGetAttribute", 11020, REQUIRED, (hdcu_pool, unsigned, void *))                  \
    X(cuMemPoolSetAccess, "cuMemPoolSetAccess", 11020, OPTIONAL, (hdcu_pool, const hdcu_memory_access *, size_t))      \
    X(cuMemPoolGetAccess, "cuMemPoolGetAccess", 11020, OPTIONAL, (unsigned *, hdcu_pool, hdcu_memory_location *))      \
    /* streams */                                                                                                      \
    X(cuStreamCreate, "cuStreamCreate", 2000, REQUIRED, (hdcu_stream *, unsigned))                                     \
    X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", 5050, REQUIRED, (hdcu_stream *, unsigned, int))        \
    X(cuStreamDestroy, "cuStreamDestroy_v2", 4000, REQUIRED, (hdcu_stream))                                            \
    X(cuStreamGetFlags, "cuStreamGetFlags", 5050, REQUIRED, (hdcu_stream, unsigned *))                                 \
    X(cuStreamGetPriority, "cuStreamGetPriority", 5050, REQUIRED, (hdcu_stream, int *))                                \
    X(cuStreamGetId, "cuStreamGetId", 12000, OPTIONAL, (hdcu_stream, unsigned long long *))                            \
    X(cuStreamGetCtx, "cuStreamGetCtx", 9020, REQUIRED, (hdcu_stream, hdcu_context *))                                 \
    X(cuStreamGetDevice, "cuStreamGetDevice", 12080, OPTIONAL, (hdcu_stream, hdcu_device *))                           \
    X(cuStreamQuery, "cuStreamQuery", 2000, REQUIRED, (hdcu_stream))                                                   \
    X(cuStreamSynchronize, "cuStreamSynchronize", 2000, REQUIRED, (hdcu_stream))                                       \
    X(cuStreamWaitEvent, "cuStreamWaitEvent", 3020, REQUIRED, (hdcu_stream, hdcu_event, unsigned))                     \
    X(cuStreamAddCallback, "cuStreamAddCallback", 5000, OPTIONAL,                                                      \
      (hdcu_stream, hdcu_stream_callback, void *, unsigned))                                                           \
    X(cuLaunchHostFunc, "cuLaunchHostFunc", 10000, REQUIRED, (hdcu_stream, hdcu_host_function, void *))                \
    X(cuStreamWaitValue32, "cuStreamWaitValue32_v2", 11070, OPTIONAL,                                                  \
      (hdcu_stream, hdcu_pointer, uint32_t, unsigned))                                                                 \
    X(cuStreamWriteValue32, "cuStreamWriteValue32_v2", 11070, OPTIONAL,                                                \
      (hdcu_stream, hdcu_pointer, uint32_t, unsigned))                                                                 \
    X(cuStreamWaitValue64, "cuStreamWaitValue64_v2", 11070, OPTIONAL,                                                  \
      (hdcu_stream, hdcu_pointer, uint64_t, unsigned))                                                                 \
    X(cuStreamWriteValue64, "cuStreamWriteValue64_v2", 11070, OPTIONAL,                                                \
      (hdcu_stream, hdcu_pointer, uint64_t, unsigned))                                                                 \
    X(cuStreamSetAttribute, "cuStreamSetAttribute", 11000, OPTIONAL,                                                   \
      (hdcu_stream, unsigned, const hdcu_launch_attribute_value *))                                                    \
    X(cuStreamGetAttribute, "cuStreamGetAttribute", 11000, OPTIONAL,                                                   \
      (hdcu_stream, unsigned, hdcu_launch_attribute_value *))                                                          \
    /* capture */                                                                                                      \
    X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", 10010, OPTIONAL, (hdcu_stream, unsigned))                       \
    X(cuStreamEndCapture, "cuStreamEndCapture", 10000, OPTIONAL, (hdcu_stream, hdcu_graph *))                          \
    X(cuStreamIsCapturing, "cuStreamIsCapturing", 10000, REQUIRED, (hdcu_stream, unsigned *))                          \
    X(cuStreamGetCaptureInfo, "cuStreamGetCaptureInfo_v2", 11030, OPTIONAL,                                            \
      (hdcu_stream, unsigned *, uint64_t *, hdcu_graph *, const hdcu_graph_node **, size_t *))                         \
    X(cuStreamUpdateCaptureDependencies, "cuStreamUpdateCaptureDependencies", 11030, OPTIONAL,                         \
      (hdcu_stream, hdcu_graph_node *, size_t, unsigned))                                                              \
    X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", 10010, REQUIRED, (unsigned *))           \
    /* events */                                                                                                       \
    X(cuEventCreate, "cuEventCreate", 2000, REQUIRED, (hdcu_event *, unsigned))                                        \
    X(cuEventRecord, "cuEventRecord", 2000, REQUIRED, (hdcu_event, hdcu_stream))                                       \
    X(cuEventRecordWithFlags, "cuEventRecordWithFlags", 11010, OPTIONAL, (hdcu_event, hdcu_stream, unsigned))          \
    X(cuEventQuery, "cuEventQuery", 2000, REQUIRED, (hdcu_event))                                                      \
    X(cuEventSynchronize, "cuEventSynchronize", 2000, REQUIRED, (hdcu_event))                                          \
    X(cuEventDestroy, "cuEventDestroy_v2", 4000, REQUIRED, (hdcu_event))                                               \
    X(cuEventElapsedTime, "cuEventElapsedTime", 2000, REQUIRED, (float *, hdcu_event, hdcu_event))                     \
    /* modules, libraries, functions */                                                                                \
    X(cuModuleLoad, "cuModuleLoad", 2000, OPTIONAL, (hdcu_module *, const char *))                                     \
    X(cuModuleLoadData, "cuModuleLoadData", 2000, REQUIRED, (hdcu_module *, const void *))                             \
    X(cuModuleLoadDataEx, "cuModuleLoadDataEx", 2010, REQUIRED,                                                        \
      (hdcu_module *, const void *, unsigned, unsigned *, void **))                                                    \
    X(cuModuleUnload, "cuModuleUnload", 2000, REQUIRED, (hdcu_module))                                                 \
    X(cuModuleGetFunction, "cuModuleGetFunction", 2000, REQUIRED, (hdcu_function *, hdcu_module, const char *))        \
    X(cuModuleGetFunctionCount, "cuModuleGetFunctionCount", 12040, OPTIONAL, (unsigned *, hdcu_module))                \
    X(cuModuleEnumerateFunctions, "cuModuleEnumerateFunctions", 12040, OPTIONAL,                                       \
      (hdcu_function *, unsigned, hdcu_module))                                                                        \
    X(cuModuleGetGlobal, "cuModuleGetGlobal_v2", 3020, REQUIRED,                                                       \
      (hdcu_pointer *, size_t *, hdcu_module, const char *))                                                           \
    X(cuModuleGetLoadingMode, "cuModuleGetLoadingMode", 11070, OPTIONAL, (unsigned *))                                 \
    X(cuLibraryLoadData, "cuLibraryLoadData", 12000, OPTIONAL,                                                         \
      (hdcu_library *, const void *, unsigned *, void **, unsigned, unsigned *, void **, unsigned))                    \
    X(cuLibraryUnload, "cuLibraryUnload", 12000, OPTIONAL, (hdcu_library))                                             \
    X(cuLibraryGetKernel, "cuLibraryGetKernel", 12000, OPTIONAL, (hdcu_kernel *, hdcu_library, const char *))          \
    X(cuLibraryGetKernelCount, "cuLibraryGetKernelCount", 12040, OPTIONAL, (unsigned *, hdcu_library))                 \
    X(cuLibraryEnumerateKernels, "cuLibraryEnumerateKernels", 12040, OPTIONAL,                                         \
      (hdcu_kernel *, unsigned, hdcu_library))                                                                         \
    X(cuLibraryGetModule, "cuLibraryGetModule", 12000, OPTIONAL, (hdcu_module *, hdcu_library))                        \
    X(cuLibraryGetGlobal, "cuLibraryGetGlobal", 12000, OPTIONAL,                                                       \
      (hdcu_pointer *, size_t *, hdcu_library, const char *))                                                          \
    X(cuKernelGetFunction, "cuKernelGetFunction", 12000, OPTIONAL, (hdcu_function *, hdcu_kernel))                     \
    X(cuKernelGetAttribute, "cuKernelGetAttribute", 12000, OPTIONAL, (int *, unsigned, hdcu_kernel, hdcu_device))      \
    X(cuKernelSetAttribute, "cuKernelSetAttribute", 12000, OPTIONAL, (unsigned, int, hdcu_kernel, hdcu_device))        \
    X(cuKernelGetName, "cuKernelGetName", 12030, OPTIONAL, (const char **, hdcu_kernel))                               \
    X(cuKernelGetParamInfo, "cuKernelGetParamInfo", 12040, OPTIONAL, (hdcu_kernel, size_t, size_t *, size_t *))        \
    X(cuFuncGetAttribute, "cuFuncGetAttribute", 2020, REQUIRED, (int *, unsigned, hdcu_function))                      \
    X(cuFuncSetAttribute, "cuFuncSetAttribute", 9000, REQUIRED, (hdcu_function, unsigned, int))                        \
    X(cuFuncSetCacheConfig, "cuFuncSetCacheConfig", 3000, OPTIONAL, (hdcu_function, unsigned))                         \
    X(cuFuncGetModule, "cuFuncGetModule", 11000, OPTIONAL, (hdcu_module *, hdcu_function))                             \
    X(cuFuncGetName, "cuFuncGetName", 12030, OPTIONAL, (const char **, hdcu_function))                                 \
    X(cuFuncGetParamInfo, "cuFuncGetParamInfo", 12040, OPTIONAL, (hdcu_function, size_t, size_t *, size_t *))          \
    X(cuFuncLoad, "cuFuncLoad", 12040, OPTIONAL, (hdcu_function))                                                      \
    X(cuFuncIsLoaded, "cuFuncIsLoaded", 12040, OPTIONAL, (unsigned *, hdcu_function))                                  \
    /* launch and occupancy */                                                                                         \
    X(cuLaunchKernel, "cuLaunchKernel", 4000, REQUIRED,                                                                \
      (hdcu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, hdcu_stream, void          \
       **, void **))                                                                                                   \
    X(cuLaunchKernelEx, "cuLaunchKernelEx", 11060, OPTIONAL,                                                           \
      (const hdcu_launch_config *, hdcu_function, void **, void **))                                                   \
    X(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel", 9000, OPTIONAL,                                          \
      (hdcu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, hdcu_stream, void          \
       **))                                                                                                            \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, REQUIRED,      \
      (int *, hdcu_function, int, size_t))                                                                             \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,                                                            \
      "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 7000, REQUIRED,                                          \
      (int *, hdcu_function, int, size_t, unsigned))                                                                   \
    X(cuOccupancyMaxPotentialBlockSize, "cuOccupancyMaxPotentialBlockSize", 6050, OPTIONAL,                            \
      (int *, int *, hdcu_function, hdcu_shared_for_block, size_t, int))                                               \
    X(cuOccupancyAvailableDynamicSMemPerBlock, "cuOccupancyAvailableDynamicSMemPerBlock", 10020, REQUIRED,             \
      (size_t *, hdcu_function, int, int))                                                                             \
    X(cuOccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters", 11070, OPTIONAL,                                   \
      (int *, hdcu_function, const hdcu_launch_config *))                                                              \
    /* profiler */                                                                                                     \
    X(cuProfilerStart, "cuProfilerStart", 4000, OPTIONAL, (void))                                                      \
    X(cuProfilerStop, "cuProfilerStop", 4000, OPTIONAL, (void))                                                        \
    /* graphs */                                                                                                       \
    X(cuGraphCreate, "cuGraphCreate", 10000, OPTIONAL, (hdcu_graph *, unsigned))                                       \
    X(cuGraphDestroy, "cuGraphDestroy", 10000, OPTIONAL, (hdcu_graph))                                                 \
    X(cuGraphClone, "cuGraphClone", 10000, OPTIONAL, (hdcu_graph *, hdcu_graph))                                       \
    X(cuGraphAddKernelNode, "cuGraphAddKernelNode_v2", 12000, OPTIONAL,                                                \
      (hdcu_graph_node *, hdcu_graph, const hdcu_graph_node *, size_t, const hdcu_kernel_node_params *))               \
    X(cuGraphKernelNodeGetParams, "cuGraphKernelNodeGetParams_v2", 12000, OPTIONAL,                                    \
      (hdcu_graph_node, hdcu_kernel_node_params *))                                                                    \
    X(cuGraphKernelNodeGetAttribute, "cuGraphKernelNodeGetAttribute", 11000, OPTIONAL,                                 \
      (hdcu_graph_node, unsigned, hdcu_launch_attribute_value *))                                                      \
    X(cuGraphKernelNodeSetParams, "cuGraphKernelNodeSetParams_v2", 12000, OPTIONAL,                                    \
      (hdcu_graph_node, const hdcu_kernel_node_params *))                                                              \
    X(cuGraphAddMemcpyNode, "cuGraphAddMemcpyNode", 10000, OPTIONAL,                                                   \
      (hdcu_graph_node *, hdcu_graph, const hdcu_graph_node *, size_t, const hdcu_memcpy3d *, hdcu_context))           \
    X(cuGraphAddMemsetNode, "cuGraphAddMemsetNode", 10000, OPTIONAL,                                                   \
      (hdcu_graph_node *, hdcu_graph, const hdcu_graph_node *, size_t, const hdcu_memset_node_params *,                \
       hdcu_context))                                                                                                  \
    X(cuGraphAddBatchMemOpNode, "cuGraphAddBatchMemOpNode", 11070, OPTIONAL,                                           \
      (hdcu_graph_node *, hdcu_graph, const hdcu_graph_node *, size_t, const hdcu_batch_mem_op_node_params *))         \
    X(cuGraphAddHostNode, "cuGraphAddHostNode", 10000, OPTIONAL,                                                       \
      (hdcu_graph_node *, hdcu_graph, const hdcu_graph_node *, size_t, const hdcu_host_node_params *))                 \
    X(cuGraphAddEmptyNode, "cuGraphAddEmptyNode", 10000, OPTIONAL,                                                     \
      (hdcu_graph_node *, hdcu_graph, const hdcu_graph_node *, size_t))                                                \
    X(cuGraphAddChildGraphNode, "cuGraphAddChildGraphNode", 10000, OPTIONAL,                                           \
      (hdcu_graph_node *, hdcu_graph, const hdcu_graph_node *, size_t, hdcu_graph))                                    \
    X(cuGraphAddEventRecordNode, "cuGraphAddEventRecordNode", 11010, OPTIONAL,                                         \
      (hdcu_graph_node *, hdcu_graph, const hdcu_graph_node *, size_t, hdcu_event))                                    \
    X(cuGraphAddEventWaitNode, "cuGraphAddEventWaitNode", 11010, OPTIONAL,                                             \
      (hdcu_graph_node *, hdcu_graph, const hdcu_graph_node *, size_t, hdcu_event))                                    \
    X(cuGraphAddNode, "cuGraphAddNode_v2", 12030, OPTIONAL,                                                            \
      (hdcu_graph_node *, hdcu_graph, const hdcu_graph_node *, const hdcu_graph_edge *, size_t,                        \
       hdcu_graph_node_params *))                                                                                      \
    X(cuGraphAddDependencies, "cuGraphAddDependencies", 10000, OPTIONAL,                                               \
      (hdcu_graph, const hdcu_graph_node *, const hdcu_graph_node *, size_t))                                          \
    X(cuGraphRemoveDependencies, "cuGraphRemoveDependencies", 10000, OPTIONAL,                                         \
      (hdcu_graph, const hdcu_graph_node *, const hdcu_graph_node *, size_t))                                          \
    X(cuGraphDestroyNode, "cuGraphDestroyNode", 10000, OPTIONAL, (hdcu_graph_node))                                    \
    X(cuGraphGetNodes, "cuGraphGetNodes", 10000, OPTIONAL, (hdcu_graph, hdcu_graph_node *, size_t *))                  \
    X(cuGraphGetRootNodes, "cuGraphGetRootNodes", 10000, OPTIONAL, (hdcu_graph, hdcu_graph_node *, size_t *))          \
    X(cuGraphGetEdges, "cuGraphGetEdges", 10000, OPTIONAL,                                                             \
      (hdcu_graph, hdcu_graph_node *, hdcu_graph_node *, size_t *))                                                    \
    X(cuGraphNodeGetType, "cuGraphNodeGetType", 10000, OPTIONAL, (hdcu_graph_node, unsigned *))                        \
    X(cuGraphNodeGetDependencies, "cuGraphNodeGetDependencies", 10000, OPTIONAL,                                       \
      (hdcu_graph_node, hdcu_graph_node *, size_t *))                                                                  \
    X(cuGraphNodeGetDependentNodes, "cuGraphNodeGetDependentNodes", 10000, OPTIONAL,                                   \
      (hdcu_graph_node, hdcu_graph_node *, size_t *))                                                                  \
    X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 11040, OPTIONAL,                                     \
      (hdcu_graph_exec *, hdcu_graph, unsigned long long))                                                             \
    X(cuGraphUpload, "cuGraphUpload", 11010, OPTIONAL, (hdcu_graph_exec, hdcu_stream))                                 \
    X(cuGraphLaunch, "cuGraphLaunch", 10000, OPTIONAL, (hdcu_graph_exec, hdcu_stream))                                 \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", 10000, OPTIONAL, (hdcu_graph_exec))                                    \
    X(cuGraphExecUpdate, "cuGraphExecUpdate_v2", 12000, OPTIONAL,                                                      \
      (hdcu_graph_exec, hdcu_graph, hdcu_graph_update_result *))                                                       \
    X(cuGraphExecKernelNodeSetParams, "cuGraphExecKernelNodeSetParams_v2", 12000, OPTIONAL,                            \
      (hdcu_graph_exec, hdcu_graph_node, const hdcu_kernel_node_params *))                                             \
    X(cuGraphExecMemcpyNodeSetParams, "cuGraphExecMemcpyNodeSetParams", 10020, OPTIONAL,                               \
      (hdcu_graph_exec, hdcu_graph_node, const hdcu_memcpy3d *, hdcu_context))                                         \
    X(cuGraphExecMemsetNodeSetParams, "cuGraphExecMemsetNodeSetParams", 10020, OPTIONAL,                               \
      (hdcu_graph_exec, hdcu_graph_node, const hdcu_memset_node_params *, hdcu_context))                               \
    X(cuGraphExecBatchMemOpNodeSetParams, "cuGraphExecBatchMemOpNodeSetParams", 11070, OPTIONAL,                       \
      (hdcu_graph_exec, hdcu_graph_node, const hdcu_batch_mem_op_node_params *))                                       \
    X(cuGraphExecChildGraphNodeSetParams, "cuGraphExecChildGraphNodeSetParams", 11010, OPTIONAL,                       \
      (hdcu_graph_exec, hdcu_graph_node, hdcu_graph))                                                                  \
    X(cuGraphNodeSetEnabled, "cuGraphNodeSetEnabled", 11060, OPTIONAL, (hdcu_graph_exec, hdcu_graph_node, unsigned))   \
    X(cuGraphNodeGetEnabled, "cuGraphNodeGetEnabled", 11060, OPTIONAL,                                                 \
      (hdcu_graph_exec, hdcu_graph_node, unsigned *))

/* The one symbol that the soft driver exports: the entry with that exact symbol, NULL if it has none. */
#define HDCU_SOFT_LOOKUP "hdsoft_get_proc_address"
typedef void *(*hdcu_soft_lookup)(const char *symbol);

#endif
