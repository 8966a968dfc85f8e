/* SPDX-License-Identifier: MIT */
#include "soft/api/outside.h"

#include <fnmatch.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "soft/model/driver.h"

#define TEXTURES "textures, surfaces and arrays"
#define TENSOR_MAPS "tensor maps"
#define CLUSTERS "thread block clusters"
#define GREEN_CONTEXTS "green contexts and device resources"
#define EXTERNAL "memory and semaphores of other interfaces"
#define PROCESSES "sharing between processes"
#define VIRTUAL_MEMORY "mapping of virtual memory, and multicast"
#define MANAGED "managed memory"
#define LINKER "linking of device code"
#define GRAPHS "this kind of graph node or update"
#define DEBUGGING "core dumps and logs of the driver"
#define OLD "interfaces that CUDA has deprecated"
#define OTHER "this call"

/* X(name, symbol, version, area) */
#define OUTSIDE_LIST(X)                                                                                                \
    /* textures, surfaces and arrays */                                                                                \
    X(cuArray3DCreate, "cuArray3DCreate_v2", 2000, TEXTURES)                                                           \
    X(cuArray3DGetDescriptor, "cuArray3DGetDescriptor_v2", 2000, TEXTURES)                                             \
    X(cuArrayCreate, "cuArrayCreate_v2", 2000, TEXTURES)                                                               \
    X(cuArrayDestroy, "cuArrayDestroy", 2000, TEXTURES)                                                                \
    X(cuArrayGetDescriptor, "cuArrayGetDescriptor_v2", 2000, TEXTURES)                                                 \
    X(cuArrayGetMemoryRequirements, "cuArrayGetMemoryRequirements", 11060, TEXTURES)                                   \
    X(cuArrayGetPlane, "cuArrayGetPlane", 11020, TEXTURES)                                                             \
    X(cuArrayGetSparseProperties, "cuArrayGetSparseProperties", 11010, TEXTURES)                                       \
    X(cuDeviceGetTexture1DLinearMaxWidth, "cuDeviceGetTexture1DLinearMaxWidth", 11010, TEXTURES)                       \
    X(cuExternalMemoryGetMappedMipmappedArray, "cuExternalMemoryGetMappedMipmappedArray", 10000, TEXTURES)             \
    X(cuGraphicsResourceGetMappedMipmappedArray, "cuGraphicsResourceGetMappedMipmappedArray", 5000, TEXTURES)          \
    X(cuGraphicsSubResourceGetMappedArray, "cuGraphicsSubResourceGetMappedArray", 3000, TEXTURES)                      \
    X(cuMemMapArrayAsync, "cuMemMapArrayAsync", 11010, TEXTURES)                                                       \
    X(cuMemcpyAtoA, "cuMemcpyAtoA", 2000, TEXTURES)                                                                    \
    X(cuMemcpyAtoD, "cuMemcpyAtoD", 2000, TEXTURES)                                                                    \
    X(cuMemcpyAtoH, "cuMemcpyAtoH", 2000, TEXTURES)                                                                    \
    X(cuMemcpyAtoHAsync, "cuMemcpyAtoHAsync", 2000, TEXTURES)                                                          \
    X(cuMemcpyDtoA, "cuMemcpyDtoA", 2000, TEXTURES)                                                                    \
    X(cuMemcpyHtoA, "cuMemcpyHtoA", 2000, TEXTURES)                                                                    \
    X(cuMemcpyHtoAAsync, "cuMemcpyHtoAAsync", 2000, TEXTURES)                                                          \
    X(cuMipmappedArrayCreate, "cuMipmappedArrayCreate", 5000, TEXTURES)                                                \
    X(cuMipmappedArrayDestroy, "cuMipmappedArrayDestroy", 5000, TEXTURES)                                              \
    X(cuMipmappedArrayGetLevel, "cuMipmappedArrayGetLevel", 5000, TEXTURES)                                            \
    X(cuMipmappedArrayGetMemoryRequirements, "cuMipmappedArrayGetMemoryRequirements", 11060, TEXTURES)                 \
    X(cuMipmappedArrayGetSparseProperties, "cuMipmappedArrayGetSparseProperties", 11010, TEXTURES)                     \
    X(cuModuleGetSurfRef, "cuModuleGetSurfRef", 3000, TEXTURES)                                                        \
    X(cuModuleGetTexRef, "cuModuleGetTexRef", 2000, TEXTURES)                                                          \
    X(cuParamSetTexRef, "cuParamSetTexRef", 2000, TEXTURES)                                                            \
    X(cuSurfObjectCreate, "cuSurfObjectCreate", 5000, TEXTURES)                                                        \
    X(cuSurfObjectDestroy, "cuSurfObjectDestroy", 5000, TEXTURES)                                                      \
    X(cuSurfObjectGetResourceDesc, "cuSurfObjectGetResourceDesc", 5000, TEXTURES)                                      \
    X(cuSurfRefGetArray, "cuSurfRefGetArray", 3000, TEXTURES)                                                          \
    X(cuSurfRefSetArray, "cuSurfRefSetArray", 3000, TEXTURES)                                                          \
    X(cuTexObjectCreate, "cuTexObjectCreate", 5000, TEXTURES)                                                          \
    X(cuTexObjectDestroy, "cuTexObjectDestroy", 5000, TEXTURES)                                                        \
    X(cuTexObjectGetResourceDesc, "cuTexObjectGetResourceDesc", 5000, TEXTURES)                                        \
    X(cuTexObjectGetResourceViewDesc, "cuTexObjectGetResourceViewDesc", 5000, TEXTURES)                                \
    X(cuTexObjectGetTextureDesc, "cuTexObjectGetTextureDesc", 5000, TEXTURES)                                          \
    X(cuTexRefCreate, "cuTexRefCreate", 2000, TEXTURES)                                                                \
    X(cuTexRefDestroy, "cuTexRefDestroy", 2000, TEXTURES)                                                              \
    X(cuTexRefGetAddress, "cuTexRefGetAddress_v2", 2000, TEXTURES)                                                     \
    X(cuTexRefGetAddressMode, "cuTexRefGetAddressMode", 2000, TEXTURES)                                                \
    X(cuTexRefGetArray, "cuTexRefGetArray", 2000, TEXTURES)                                                            \
    X(cuTexRefGetBorderColor, "cuTexRefGetBorderColor", 8000, TEXTURES)                                                \
    X(cuTexRefGetFilterMode, "cuTexRefGetFilterMode", 2000, TEXTURES)                                                  \
    X(cuTexRefGetFlags, "cuTexRefGetFlags", 2000, TEXTURES)                                                            \
    X(cuTexRefGetFormat, "cuTexRefGetFormat", 2000, TEXTURES)                                                          \
    X(cuTexRefGetMaxAnisotropy, "cuTexRefGetMaxAnisotropy", 5000, TEXTURES)                                            \
    X(cuTexRefGetMipmapFilterMode, "cuTexRefGetMipmapFilterMode", 5000, TEXTURES)                                      \
    X(cuTexRefGetMipmapLevelBias, "cuTexRefGetMipmapLevelBias", 5000, TEXTURES)                                        \
    X(cuTexRefGetMipmapLevelClamp, "cuTexRefGetMipmapLevelClamp", 5000, TEXTURES)                                      \
    X(cuTexRefGetMipmappedArray, "cuTexRefGetMipmappedArray", 5000, TEXTURES)                                          \
    X(cuTexRefSetAddress, "cuTexRefSetAddress_v2", 2000, TEXTURES)                                                     \
    X(cuTexRefSetAddress2D, "cuTexRefSetAddress2D_v3", 2020, TEXTURES)                                                 \
    X(cuTexRefSetAddressMode, "cuTexRefSetAddressMode", 2000, TEXTURES)                                                \
    X(cuTexRefSetArray, "cuTexRefSetArray", 2000, TEXTURES)                                                            \
    X(cuTexRefSetBorderColor, "cuTexRefSetBorderColor", 8000, TEXTURES)                                                \
    X(cuTexRefSetFilterMode, "cuTexRefSetFilterMode", 2000, TEXTURES)                                                  \
    X(cuTexRefSetFlags, "cuTexRefSetFlags", 2000, TEXTURES)                                                            \
    X(cuTexRefSetFormat, "cuTexRefSetFormat", 2000, TEXTURES)                                                          \
    X(cuTexRefSetMaxAnisotropy, "cuTexRefSetMaxAnisotropy", 5000, TEXTURES)                                            \
    X(cuTexRefSetMipmapFilterMode, "cuTexRefSetMipmapFilterMode", 5000, TEXTURES)                                      \
    X(cuTexRefSetMipmapLevelBias, "cuTexRefSetMipmapLevelBias", 5000, TEXTURES)                                        \
    X(cuTexRefSetMipmapLevelClamp, "cuTexRefSetMipmapLevelClamp", 5000, TEXTURES)                                      \
    X(cuTexRefSetMipmappedArray, "cuTexRefSetMipmappedArray", 5000, TEXTURES)                                          \
    /* tensor maps */                                                                                                  \
    X(cuTensorMapEncodeIm2col, "cuTensorMapEncodeIm2col", 12000, TENSOR_MAPS)                                          \
    X(cuTensorMapEncodeIm2colWide, "cuTensorMapEncodeIm2colWide", 12080, TENSOR_MAPS)                                  \
    X(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled", 12000, TENSOR_MAPS)                                            \
    X(cuTensorMapReplaceAddress, "cuTensorMapReplaceAddress", 12000, TENSOR_MAPS)                                      \
    /* thread block clusters */                                                                                        \
    X(cuOccupancyMaxPotentialClusterSize, "cuOccupancyMaxPotentialClusterSize", 11070, CLUSTERS)                       \
    /* green contexts and device resources */                                                                          \
    X(cuCtxFromGreenCtx, "cuCtxFromGreenCtx", 12040, GREEN_CONTEXTS)                                                   \
    X(cuCtxGetDevResource, "cuCtxGetDevResource", 12040, GREEN_CONTEXTS)                                               \
    X(cuCtxGetExecAffinity, "cuCtxGetExecAffinity", 11040, GREEN_CONTEXTS)                                             \
    X(cuCtxRecordEvent, "cuCtxRecordEvent", 12050, GREEN_CONTEXTS)                                                     \
    X(cuCtxWaitEvent, "cuCtxWaitEvent", 12050, GREEN_CONTEXTS)                                                         \
    X(cuDevResourceGenerateDesc, "cuDevResourceGenerateDesc", 12040, GREEN_CONTEXTS)                                   \
    X(cuDevSmResourceSplitByCount, "cuDevSmResourceSplitByCount", 12040, GREEN_CONTEXTS)                               \
    X(cuDeviceGetDevResource, "cuDeviceGetDevResource", 12040, GREEN_CONTEXTS)                                         \
    X(cuDeviceGetExecAffinitySupport, "cuDeviceGetExecAffinitySupport", 11040, GREEN_CONTEXTS)                         \
    X(cuGreenCtxCreate, "cuGreenCtxCreate", 12040, GREEN_CONTEXTS)                                                     \
    X(cuGreenCtxDestroy, "cuGreenCtxDestroy", 12040, GREEN_CONTEXTS)                                                   \
    X(cuGreenCtxGetDevResource, "cuGreenCtxGetDevResource", 12040, GREEN_CONTEXTS)                                     \
    X(cuGreenCtxGetId, "cuGreenCtxGetId", 12090, GREEN_CONTEXTS)                                                       \
    X(cuGreenCtxRecordEvent, "cuGreenCtxRecordEvent", 12040, GREEN_CONTEXTS)                                           \
    X(cuGreenCtxStreamCreate, "cuGreenCtxStreamCreate", 12050, GREEN_CONTEXTS)                                         \
    X(cuGreenCtxWaitEvent, "cuGreenCtxWaitEvent", 12040, GREEN_CONTEXTS)                                               \
    X(cuStreamGetGreenCtx, "cuStreamGetGreenCtx", 12040, GREEN_CONTEXTS)                                               \
    /* memory and semaphores of other interfaces */                                                                    \
    X(cuDestroyExternalMemory, "cuDestroyExternalMemory", 10000, EXTERNAL)                                             \
    X(cuDestroyExternalSemaphore, "cuDestroyExternalSemaphore", 10000, EXTERNAL)                                       \
    X(cuDeviceGetNvSciSyncAttributes, "cuDeviceGetNvSciSyncAttributes", 10020, EXTERNAL)                               \
    X(cuExternalMemoryGetMappedBuffer, "cuExternalMemoryGetMappedBuffer", 10000, EXTERNAL)                             \
    X(cuGetExportTable, "cuGetExportTable", 3000, EXTERNAL)                                                            \
    X(cuGraphAddExternalSemaphoresSignalNode, "cuGraphAddExternalSemaphoresSignalNode", 11020, EXTERNAL)               \
    X(cuGraphAddExternalSemaphoresWaitNode, "cuGraphAddExternalSemaphoresWaitNode", 11020, EXTERNAL)                   \
    X(cuGraphExecExternalSemaphoresSignalNodeSetParams,                                                                \
      "cuGraphExecExternalSemaphoresSignalNodeSetParams", 11020, EXTERNAL)                                             \
    X(cuGraphExecExternalSemaphoresWaitNodeSetParams,                                                                  \
      "cuGraphExecExternalSemaphoresWaitNodeSetParams", 11020, EXTERNAL)                                               \
    X(cuGraphExternalSemaphoresSignalNodeGetParams, "cuGraphExternalSemaphoresSignalNodeGetParams", 11020, EXTERNAL)   \
    X(cuGraphExternalSemaphoresSignalNodeSetParams, "cuGraphExternalSemaphoresSignalNodeSetParams", 11020, EXTERNAL)   \
    X(cuGraphExternalSemaphoresWaitNodeGetParams, "cuGraphExternalSemaphoresWaitNodeGetParams", 11020, EXTERNAL)       \
    X(cuGraphExternalSemaphoresWaitNodeSetParams, "cuGraphExternalSemaphoresWaitNodeSetParams", 11020, EXTERNAL)       \
    X(cuGraphicsMapResources, "cuGraphicsMapResources", 3000, EXTERNAL)                                                \
    X(cuGraphicsResourceGetMappedPointer, "cuGraphicsResourceGetMappedPointer_v2", 3000, EXTERNAL)                     \
    X(cuGraphicsResourceSetMapFlags, "cuGraphicsResourceSetMapFlags_v2", 3000, EXTERNAL)                               \
    X(cuGraphicsUnmapResources, "cuGraphicsUnmapResources", 3000, EXTERNAL)                                            \
    X(cuGraphicsUnregisterResource, "cuGraphicsUnregisterResource", 3000, EXTERNAL)                                    \
    X(cuImportExternalMemory, "cuImportExternalMemory", 10000, EXTERNAL)                                               \
    X(cuImportExternalSemaphore, "cuImportExternalSemaphore", 10000, EXTERNAL)                                         \
    X(cuSignalExternalSemaphoresAsync, "cuSignalExternalSemaphoresAsync", 10000, EXTERNAL)                             \
    X(cuWaitExternalSemaphoresAsync, "cuWaitExternalSemaphoresAsync", 10000, EXTERNAL)                                 \
    /* sharing between processes */                                                                                    \
    X(cuCheckpointProcessCheckpoint, "cuCheckpointProcessCheckpoint", 12080, PROCESSES)                                \
    X(cuCheckpointProcessGetRestoreThreadId, "cuCheckpointProcessGetRestoreThreadId", 12080, PROCESSES)                \
    X(cuCheckpointProcessGetState, "cuCheckpointProcessGetState", 12080, PROCESSES)                                    \
    X(cuCheckpointProcessLock, "cuCheckpointProcessLock", 12080, PROCESSES)                                            \
    X(cuCheckpointProcessRestore, "cuCheckpointProcessRestore", 12080, PROCESSES)                                      \
    X(cuCheckpointProcessUnlock, "cuCheckpointProcessUnlock", 12080, PROCESSES)                                        \
    X(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", 4010, PROCESSES)                                                     \
    X(cuIpcGetEventHandle, "cuIpcGetEventHandle", 4010, PROCESSES)                                                     \
    X(cuIpcGetMemHandle, "cuIpcGetMemHandle", 4010, PROCESSES)                                                         \
    X(cuIpcOpenEventHandle, "cuIpcOpenEventHandle", 4010, PROCESSES)                                                   \
    X(cuIpcOpenMemHandle, "cuIpcOpenMemHandle_v2", 4010, PROCESSES)                                                    \
    X(cuMemExportToShareableHandle, "cuMemExportToShareableHandle", 10020, PROCESSES)                                  \
    X(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle", 10020, PROCESSES)                              \
    X(cuMemPoolExportPointer, "cuMemPoolExportPointer", 11020, PROCESSES)                                              \
    X(cuMemPoolExportToShareableHandle, "cuMemPoolExportToShareableHandle", 11020, PROCESSES)                          \
    X(cuMemPoolImportFromShareableHandle, "cuMemPoolImportFromShareableHandle", 11020, PROCESSES)                      \
    X(cuMemPoolImportPointer, "cuMemPoolImportPointer", 11020, PROCESSES)                                              \
    /* mapping of virtual memory, and multicast */                                                                     \
    X(cuFlushGPUDirectRDMAWrites, "cuFlushGPUDirectRDMAWrites", 11030, VIRTUAL_MEMORY)                                 \
    X(cuMemAddressFree, "cuMemAddressFree", 10020, VIRTUAL_MEMORY)                                                     \
    X(cuMemAddressReserve, "cuMemAddressReserve", 10020, VIRTUAL_MEMORY)                                               \
    X(cuMemCreate, "cuMemCreate", 10020, VIRTUAL_MEMORY)                                                               \
    X(cuMemGetAccess, "cuMemGetAccess", 10020, VIRTUAL_MEMORY)                                                         \
    X(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity", 10020, VIRTUAL_MEMORY)                           \
    X(cuMemGetAllocationPropertiesFromHandle, "cuMemGetAllocationPropertiesFromHandle", 10020, VIRTUAL_MEMORY)         \
    X(cuMemGetHandleForAddressRange, "cuMemGetHandleForAddressRange", 11070, VIRTUAL_MEMORY)                           \
    X(cuMemMap, "cuMemMap", 10020, VIRTUAL_MEMORY)                                                                     \
    X(cuMemRelease, "cuMemRelease", 10020, VIRTUAL_MEMORY)                                                             \
    X(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000, VIRTUAL_MEMORY)                               \
    X(cuMemSetAccess, "cuMemSetAccess", 10020, VIRTUAL_MEMORY)                                                         \
    X(cuMemUnmap, "cuMemUnmap", 10020, VIRTUAL_MEMORY)                                                                 \
    X(cuMulticastAddDevice, "cuMulticastAddDevice", 12010, VIRTUAL_MEMORY)                                             \
    X(cuMulticastBindAddr, "cuMulticastBindAddr", 12010, VIRTUAL_MEMORY)                                               \
    X(cuMulticastBindMem, "cuMulticastBindMem", 12010, VIRTUAL_MEMORY)                                                 \
    X(cuMulticastCreate, "cuMulticastCreate", 12010, VIRTUAL_MEMORY)                                                   \
    X(cuMulticastGetGranularity, "cuMulticastGetGranularity", 12010, VIRTUAL_MEMORY)                                   \
    X(cuMulticastUnbind, "cuMulticastUnbind", 12010, VIRTUAL_MEMORY)                                                   \
    /* managed memory */                                                                                               \
    X(cuLibraryGetManaged, "cuLibraryGetManaged", 12000, MANAGED)                                                      \
    X(cuLibraryGetUnifiedFunction, "cuLibraryGetUnifiedFunction", 12000, MANAGED)                                      \
    X(cuMemAdvise, "cuMemAdvise_v2", 8000, MANAGED)                                                                    \
    X(cuMemAllocManaged, "cuMemAllocManaged", 6000, MANAGED)                                                           \
    X(cuMemDiscardAndPrefetchBatchAsync, "cuMemDiscardAndPrefetchBatchAsync", 13000, MANAGED)                          \
    X(cuMemDiscardBatchAsync, "cuMemDiscardBatchAsync", 13000, MANAGED)                                                \
    X(cuMemPrefetchAsync, "cuMemPrefetchAsync", 8000, MANAGED)                                                         \
    X(cuMemPrefetchBatchAsync, "cuMemPrefetchBatchAsync", 13000, MANAGED)                                              \
    X(cuMemRangeGetAttribute, "cuMemRangeGetAttribute", 8000, MANAGED)                                                 \
    X(cuMemRangeGetAttributes, "cuMemRangeGetAttributes", 8000, MANAGED)                                               \
    X(cuStreamAttachMemAsync, "cuStreamAttachMemAsync", 6000, MANAGED)                                                 \
    /* linking of device code */                                                                                       \
    X(cuLibraryLoadFromFile, "cuLibraryLoadFromFile", 12000, LINKER)                                                   \
    X(cuLinkAddData, "cuLinkAddData_v2", 5050, LINKER)                                                                 \
    X(cuLinkAddFile, "cuLinkAddFile_v2", 5050, LINKER)                                                                 \
    X(cuLinkComplete, "cuLinkComplete", 5050, LINKER)                                                                  \
    X(cuLinkCreate, "cuLinkCreate_v2", 5050, LINKER)                                                                   \
    X(cuLinkDestroy, "cuLinkDestroy", 5050, LINKER)                                                                    \
    X(cuModuleLoadFatBinary, "cuModuleLoadFatBinary", 2000, LINKER)                                                    \
    /* this kind of graph node or update */                                                                            \
    X(cuDeviceGetGraphMemAttribute, "cuDeviceGetGraphMemAttribute", 11040, GRAPHS)                                     \
    X(cuDeviceGraphMemTrim, "cuDeviceGraphMemTrim", 11040, GRAPHS)                                                     \
    X(cuDeviceSetGraphMemAttribute, "cuDeviceSetGraphMemAttribute", 11040, GRAPHS)                                     \
    X(cuGraphAddMemAllocNode, "cuGraphAddMemAllocNode", 11040, GRAPHS)                                                 \
    X(cuGraphAddMemFreeNode, "cuGraphAddMemFreeNode", 11040, GRAPHS)                                                   \
    X(cuGraphBatchMemOpNodeGetParams, "cuGraphBatchMemOpNodeGetParams", 11070, GRAPHS)                                 \
    X(cuGraphBatchMemOpNodeSetParams, "cuGraphBatchMemOpNodeSetParams", 11070, GRAPHS)                                 \
    X(cuGraphChildGraphNodeGetGraph, "cuGraphChildGraphNodeGetGraph", 10000, GRAPHS)                                   \
    X(cuGraphConditionalHandleCreate, "cuGraphConditionalHandleCreate", 12030, GRAPHS)                                 \
    X(cuGraphDebugDotPrint, "cuGraphDebugDotPrint", 11030, GRAPHS)                                                     \
    X(cuGraphEventRecordNodeGetEvent, "cuGraphEventRecordNodeGetEvent", 11010, GRAPHS)                                 \
    X(cuGraphEventRecordNodeSetEvent, "cuGraphEventRecordNodeSetEvent", 11010, GRAPHS)                                 \
    X(cuGraphEventWaitNodeGetEvent, "cuGraphEventWaitNodeGetEvent", 11010, GRAPHS)                                     \
    X(cuGraphEventWaitNodeSetEvent, "cuGraphEventWaitNodeSetEvent", 11010, GRAPHS)                                     \
    X(cuGraphExecEventRecordNodeSetEvent, "cuGraphExecEventRecordNodeSetEvent", 11010, GRAPHS)                         \
    X(cuGraphExecEventWaitNodeSetEvent, "cuGraphExecEventWaitNodeSetEvent", 11010, GRAPHS)                             \
    X(cuGraphExecGetFlags, "cuGraphExecGetFlags", 12000, GRAPHS)                                                       \
    X(cuGraphExecHostNodeSetParams, "cuGraphExecHostNodeSetParams", 10020, GRAPHS)                                     \
    X(cuGraphExecNodeSetParams, "cuGraphExecNodeSetParams", 12020, GRAPHS)                                             \
    X(cuGraphHostNodeGetParams, "cuGraphHostNodeGetParams", 10000, GRAPHS)                                             \
    X(cuGraphHostNodeSetParams, "cuGraphHostNodeSetParams", 10000, GRAPHS)                                             \
    X(cuGraphInstantiateWithParams, "cuGraphInstantiateWithParams", 12000, GRAPHS)                                     \
    X(cuGraphKernelNodeCopyAttributes, "cuGraphKernelNodeCopyAttributes", 11000, GRAPHS)                               \
    X(cuGraphKernelNodeSetAttribute, "cuGraphKernelNodeSetAttribute", 11000, GRAPHS)                                   \
    X(cuGraphMemAllocNodeGetParams, "cuGraphMemAllocNodeGetParams", 11040, GRAPHS)                                     \
    X(cuGraphMemFreeNodeGetParams, "cuGraphMemFreeNodeGetParams", 11040, GRAPHS)                                       \
    X(cuGraphMemcpyNodeGetParams, "cuGraphMemcpyNodeGetParams", 10000, GRAPHS)                                         \
    X(cuGraphMemcpyNodeSetParams, "cuGraphMemcpyNodeSetParams", 10000, GRAPHS)                                         \
    X(cuGraphMemsetNodeGetParams, "cuGraphMemsetNodeGetParams", 10000, GRAPHS)                                         \
    X(cuGraphMemsetNodeSetParams, "cuGraphMemsetNodeSetParams", 10000, GRAPHS)                                         \
    X(cuGraphNodeFindInClone, "cuGraphNodeFindInClone", 10000, GRAPHS)                                                 \
    X(cuGraphNodeSetParams, "cuGraphNodeSetParams", 12020, GRAPHS)                                                     \
    X(cuGraphReleaseUserObject, "cuGraphReleaseUserObject", 11030, GRAPHS)                                             \
    X(cuGraphRetainUserObject, "cuGraphRetainUserObject", 11030, GRAPHS)                                               \
    X(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph", 12030, GRAPHS)                                       \
    X(cuUserObjectCreate, "cuUserObjectCreate", 11030, GRAPHS)                                                         \
    X(cuUserObjectRelease, "cuUserObjectRelease", 11030, GRAPHS)                                                       \
    X(cuUserObjectRetain, "cuUserObjectRetain", 11030, GRAPHS)                                                         \
    /* core dumps and logs of the driver */                                                                            \
    X(cuCoredumpGetAttribute, "cuCoredumpGetAttribute", 12010, DEBUGGING)                                              \
    X(cuCoredumpGetAttributeGlobal, "cuCoredumpGetAttributeGlobal", 12010, DEBUGGING)                                  \
    X(cuCoredumpSetAttribute, "cuCoredumpSetAttribute", 12010, DEBUGGING)                                              \
    X(cuCoredumpSetAttributeGlobal, "cuCoredumpSetAttributeGlobal", 12010, DEBUGGING)                                  \
    X(cuDeviceRegisterAsyncNotification, "cuDeviceRegisterAsyncNotification", 12040, DEBUGGING)                        \
    X(cuDeviceUnregisterAsyncNotification, "cuDeviceUnregisterAsyncNotification", 12040, DEBUGGING)                    \
    X(cuLogsCurrent, "cuLogsCurrent", 12090, DEBUGGING)                                                                \
    X(cuLogsDumpToFile, "cuLogsDumpToFile", 12090, DEBUGGING)                                                          \
    X(cuLogsDumpToMemory, "cuLogsDumpToMemory", 12090, DEBUGGING)                                                      \
    X(cuLogsRegisterCallback, "cuLogsRegisterCallback", 12090, DEBUGGING)                                              \
    X(cuLogsUnregisterCallback, "cuLogsUnregisterCallback", 12090, DEBUGGING)                                          \
    /* interfaces that CUDA has deprecated */                                                                          \
    X(cuCtxAttach, "cuCtxAttach", 2000, OLD)                                                                           \
    X(cuCtxDetach, "cuCtxDetach", 2000, OLD)                                                                           \
    X(cuCtxGetSharedMemConfig, "cuCtxGetSharedMemConfig", 4020, OLD)                                                   \
    X(cuCtxSetSharedMemConfig, "cuCtxSetSharedMemConfig", 4020, OLD)                                                   \
    X(cuDeviceComputeCapability, "cuDeviceComputeCapability", 2000, OLD)                                               \
    X(cuDeviceGetProperties, "cuDeviceGetProperties", 2000, OLD)                                                       \
    X(cuFuncSetBlockShape, "cuFuncSetBlockShape", 2000, OLD)                                                           \
    X(cuFuncSetSharedMemConfig, "cuFuncSetSharedMemConfig", 4020, OLD)                                                 \
    X(cuFuncSetSharedSize, "cuFuncSetSharedSize", 2000, OLD)                                                           \
    X(cuLaunch, "cuLaunch", 2000, OLD)                                                                                 \
    X(cuLaunchCooperativeKernelMultiDevice, "cuLaunchCooperativeKernelMultiDevice", 9000, OLD)                         \
    X(cuLaunchGrid, "cuLaunchGrid", 2000, OLD)                                                                         \
    X(cuLaunchGridAsync, "cuLaunchGridAsync", 2000, OLD)                                                               \
    X(cuParamSetSize, "cuParamSetSize", 2000, OLD)                                                                     \
    X(cuParamSetf, "cuParamSetf", 2000, OLD)                                                                           \
    X(cuParamSeti, "cuParamSeti", 2000, OLD)                                                                           \
    X(cuParamSetv, "cuParamSetv", 2000, OLD)                                                                           \
    /* this call */                                                                                                    \
    X(cuCtxGetCacheConfig, "cuCtxGetCacheConfig", 3020, OTHER)                                                         \
    X(cuCtxResetPersistingL2Cache, "cuCtxResetPersistingL2Cache", 11000, OTHER)                                        \
    X(cuCtxSetCacheConfig, "cuCtxSetCacheConfig", 3020, OTHER)                                                         \
    X(cuCtxSetFlags, "cuCtxSetFlags", 12010, OTHER)                                                                    \
    X(cuDeviceGetHostAtomicCapabilities, "cuDeviceGetHostAtomicCapabilities", 13000, OTHER)                            \
    X(cuDeviceGetLuid, "cuDeviceGetLuid", 10000, OTHER)                                                                \
    X(cuDeviceGetP2PAtomicCapabilities, "cuDeviceGetP2PAtomicCapabilities", 13000, OTHER)                              \
    X(cuKernelGetLibrary, "cuKernelGetLibrary", 12050, OTHER)                                                          \
    X(cuKernelSetCacheConfig, "cuKernelSetCacheConfig", 12000, OTHER)                                                  \
    X(cuMemBatchDecompressAsync, "cuMemBatchDecompressAsync", 12060, OTHER)                                            \
    X(cuMemGetDefaultMemPool, "cuMemGetDefaultMemPool", 13000, OTHER)                                                  \
    X(cuMemGetMemPool, "cuMemGetMemPool", 13000, OTHER)                                                                \
    X(cuMemSetMemPool, "cuMemSetMemPool", 13000, OTHER)                                                                \
    X(cuMemcpy2DUnaligned, "cuMemcpy2DUnaligned", 2000, OTHER)                                                         \
    X(cuMemcpy3DBatchAsync, "cuMemcpy3DBatchAsync", 12080, OTHER)                                                      \
    X(cuMemcpy3DPeer, "cuMemcpy3DPeer", 4000, OTHER)                                                                   \
    X(cuMemcpy3DPeerAsync, "cuMemcpy3DPeerAsync", 4000, OTHER)                                                         \
    X(cuMemcpyBatchAsync, "cuMemcpyBatchAsync", 12080, OTHER)                                                          \
    X(cuMemsetD2D16, "cuMemsetD2D16", 2000, OTHER)                                                                     \
    X(cuMemsetD2D16Async, "cuMemsetD2D16Async", 3020, OTHER)                                                           \
    X(cuMemsetD2D32, "cuMemsetD2D32", 2000, OTHER)                                                                     \
    X(cuMemsetD2D8, "cuMemsetD2D8", 2000, OTHER)                                                                       \
    X(cuOccupancyMaxPotentialBlockSizeWithFlags, "cuOccupancyMaxPotentialBlockSizeWithFlags", 7000, OTHER)             \
    X(cuPointerSetAttribute, "cuPointerSetAttribute", 6000, OTHER)                                                     \
    X(cuStreamBatchMemOp, "cuStreamBatchMemOp", 8000, OTHER)                                                           \
    X(cuStreamCopyAttributes, "cuStreamCopyAttributes", 11000, OTHER)

static struct {
    pthread_mutex_t lock;
    char text[160];
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

unsigned hdsoft__outside_answer(const char *name, const char *area, bool *said)
{
    if (!atomic_load(&hdsoft__the.ready) || atomic_load(&hdsoft__the.forked))
        return HDCU_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&last.lock);
    snprintf(last.text, sizeof last.text, "%s: the soft driver does not do %s (801)", name, area);
    if (!*said)
        fprintf(stderr, "libhdsoft: %s\n", last.text);
    *said = true;
    pthread_mutex_unlock(&last.lock);
    return HDCU_ERROR_NOT_SUPPORTED;
}

const char *hdsoft__outside_said(void)
{
    return last.text;
}

/* A function each, so that the answer can name it. The caller clears up what it passed, so none need be declared. */
#define ANSWER(name, symbol, version, area)                                                                            \
    static unsigned answer_##name(void)                                                                                \
    {                                                                                                                  \
        static bool said;                                                                                              \
        return hdsoft__outside_answer(#name, area, &said);                                                             \
    }
OUTSIDE_LIST(ANSWER)

static const hdsoft__outside outside[] = {
#define ROW(name, symbol, version, area) {#name, symbol, version, (void *)answer_##name},
    OUTSIDE_LIST(ROW)
};

#define COUNT (sizeof outside / sizeof *outside)

const hdsoft__outside *hdsoft__outside_by_name(const char *name)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (!strcmp(outside[i].name, name))
            return &outside[i];
    }
    return NULL;
}

const hdsoft__outside *hdsoft__outside_by_symbol(const char *symbol)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (!strcmp(outside[i].symbol, symbol))
            return &outside[i];
    }
    return NULL;
}

bool hdsoft__outside_matches(const char *pattern)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (!fnmatch(pattern, outside[i].name, 0) || !fnmatch(pattern, outside[i].symbol, 0))
            return true;
    }
    return false;
}
