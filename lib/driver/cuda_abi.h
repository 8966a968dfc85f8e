/* SPDX-License-Identifier: MIT */
/*
 * The part of the CUDA driver's binary interface that libhdrt uses and the soft driver answers: types, numbers and
 * structs in our own words, at the versions that cuda_symbols.h pins. No CUDA header is needed to build; where one is
 * there, tests/unit/test_abi.c proves every number, size, offset and signature against it.
 *
 * Handles are pointers to the structs that cuda.h names, so they mix with it without casts. Enumerations are passed as
 * `unsigned`. Included by lib/driver and what stands on it, by lib/soft, and by nothing public.
 */
#ifndef HDRT_DRIVER_CUDA_ABI_H
#define HDRT_DRIVER_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Every CUresult: X(what follows CUDA_ and HDCU_, number). */
#define HDCU_RESULT_LIST(X)                                                                                            \
    X(SUCCESS, 0)                                                                                                      \
    X(ERROR_INVALID_VALUE, 1)                                                                                          \
    X(ERROR_OUT_OF_MEMORY, 2)                                                                                          \
    X(ERROR_NOT_INITIALIZED, 3)                                                                                        \
    X(ERROR_DEINITIALIZED, 4)                                                                                          \
    X(ERROR_PROFILER_DISABLED, 5)                                                                                      \
    X(ERROR_PROFILER_NOT_INITIALIZED, 6)                                                                               \
    X(ERROR_PROFILER_ALREADY_STARTED, 7)                                                                               \
    X(ERROR_PROFILER_ALREADY_STOPPED, 8)                                                                               \
    X(ERROR_STUB_LIBRARY, 34)                                                                                          \
    X(ERROR_CALL_REQUIRES_NEWER_DRIVER, 36)                                                                            \
    X(ERROR_DEVICE_UNAVAILABLE, 46)                                                                                    \
    X(ERROR_NO_DEVICE, 100)                                                                                            \
    X(ERROR_INVALID_DEVICE, 101)                                                                                       \
    X(ERROR_DEVICE_NOT_LICENSED, 102)                                                                                  \
    X(ERROR_INVALID_IMAGE, 200)                                                                                        \
    X(ERROR_INVALID_CONTEXT, 201)                                                                                      \
    X(ERROR_CONTEXT_ALREADY_CURRENT, 202)                                                                              \
    X(ERROR_MAP_FAILED, 205)                                                                                           \
    X(ERROR_UNMAP_FAILED, 206)                                                                                         \
    X(ERROR_ARRAY_IS_MAPPED, 207)                                                                                      \
    X(ERROR_ALREADY_MAPPED, 208)                                                                                       \
    X(ERROR_NO_BINARY_FOR_GPU, 209)                                                                                    \
    X(ERROR_ALREADY_ACQUIRED, 210)                                                                                     \
    X(ERROR_NOT_MAPPED, 211)                                                                                           \
    X(ERROR_NOT_MAPPED_AS_ARRAY, 212)                                                                                  \
    X(ERROR_NOT_MAPPED_AS_POINTER, 213)                                                                                \
    X(ERROR_ECC_UNCORRECTABLE, 214)                                                                                    \
    X(ERROR_UNSUPPORTED_LIMIT, 215)                                                                                    \
    X(ERROR_CONTEXT_ALREADY_IN_USE, 216)                                                                               \
    X(ERROR_PEER_ACCESS_UNSUPPORTED, 217)                                                                              \
    X(ERROR_INVALID_PTX, 218)                                                                                          \
    X(ERROR_INVALID_GRAPHICS_CONTEXT, 219)                                                                             \
    X(ERROR_NVLINK_UNCORRECTABLE, 220)                                                                                 \
    X(ERROR_JIT_COMPILER_NOT_FOUND, 221)                                                                               \
    X(ERROR_UNSUPPORTED_PTX_VERSION, 222)                                                                              \
    X(ERROR_JIT_COMPILATION_DISABLED, 223)                                                                             \
    X(ERROR_UNSUPPORTED_EXEC_AFFINITY, 224)                                                                            \
    X(ERROR_UNSUPPORTED_DEVSIDE_SYNC, 225)                                                                             \
    X(ERROR_CONTAINED, 226)                                                                                            \
    X(ERROR_INVALID_SOURCE, 300)                                                                                       \
    X(ERROR_FILE_NOT_FOUND, 301)                                                                                       \
    X(ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, 302)                                                                       \
    X(ERROR_SHARED_OBJECT_INIT_FAILED, 303)                                                                            \
    X(ERROR_OPERATING_SYSTEM, 304)                                                                                     \
    X(ERROR_INVALID_HANDLE, 400)                                                                                       \
    X(ERROR_ILLEGAL_STATE, 401)                                                                                        \
    X(ERROR_LOSSY_QUERY, 402)                                                                                          \
    X(ERROR_NOT_FOUND, 500)                                                                                            \
    X(ERROR_NOT_READY, 600)                                                                                            \
    X(ERROR_ILLEGAL_ADDRESS, 700)                                                                                      \
    X(ERROR_LAUNCH_OUT_OF_RESOURCES, 701)                                                                              \
    X(ERROR_LAUNCH_TIMEOUT, 702)                                                                                       \
    X(ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, 703)                                                                        \
    X(ERROR_PEER_ACCESS_ALREADY_ENABLED, 704)                                                                          \
    X(ERROR_PEER_ACCESS_NOT_ENABLED, 705)                                                                              \
    X(ERROR_PRIMARY_CONTEXT_ACTIVE, 708)                                                                               \
    X(ERROR_CONTEXT_IS_DESTROYED, 709)                                                                                 \
    X(ERROR_ASSERT, 710)                                                                                               \
    X(ERROR_TOO_MANY_PEERS, 711)                                                                                       \
    X(ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712)                                                                       \
    X(ERROR_HOST_MEMORY_NOT_REGISTERED, 713)                                                                           \
    X(ERROR_HARDWARE_STACK_ERROR, 714)                                                                                 \
    X(ERROR_ILLEGAL_INSTRUCTION, 715)                                                                                  \
    X(ERROR_MISALIGNED_ADDRESS, 716)                                                                                   \
    X(ERROR_INVALID_ADDRESS_SPACE, 717)                                                                                \
    X(ERROR_INVALID_PC, 718)                                                                                           \
    X(ERROR_LAUNCH_FAILED, 719)                                                                                        \
    X(ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720)                                                                         \
    X(ERROR_TENSOR_MEMORY_LEAK, 721)                                                                                   \
    X(ERROR_NOT_PERMITTED, 800)                                                                                        \
    X(ERROR_NOT_SUPPORTED, 801)                                                                                        \
    X(ERROR_SYSTEM_NOT_READY, 802)                                                                                     \
    X(ERROR_SYSTEM_DRIVER_MISMATCH, 803)                                                                               \
    X(ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)                                                                       \
    X(ERROR_MPS_CONNECTION_FAILED, 805)                                                                                \
    X(ERROR_MPS_RPC_FAILURE, 806)                                                                                      \
    X(ERROR_MPS_SERVER_NOT_READY, 807)                                                                                 \
    X(ERROR_MPS_MAX_CLIENTS_REACHED, 808)                                                                              \
    X(ERROR_MPS_MAX_CONNECTIONS_REACHED, 809)                                                                          \
    X(ERROR_MPS_CLIENT_TERMINATED, 810)                                                                                \
    X(ERROR_CDP_NOT_SUPPORTED, 811)                                                                                    \
    X(ERROR_CDP_VERSION_MISMATCH, 812)                                                                                 \
    X(ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                                                                           \
    X(ERROR_STREAM_CAPTURE_INVALIDATED, 901)                                                                           \
    X(ERROR_STREAM_CAPTURE_MERGE, 902)                                                                                 \
    X(ERROR_STREAM_CAPTURE_UNMATCHED, 903)                                                                             \
    X(ERROR_STREAM_CAPTURE_UNJOINED, 904)                                                                              \
    X(ERROR_STREAM_CAPTURE_ISOLATION, 905)                                                                             \
    X(ERROR_STREAM_CAPTURE_IMPLICIT, 906)                                                                              \
    X(ERROR_CAPTURED_EVENT, 907)                                                                                       \
    X(ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)                                                                          \
    X(ERROR_TIMEOUT, 909)                                                                                              \
    X(ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910)                                                                            \
    X(ERROR_EXTERNAL_DEVICE, 911)                                                                                      \
    X(ERROR_INVALID_CLUSTER_SIZE, 912)                                                                                 \
    X(ERROR_FUNCTION_NOT_LOADED, 913)                                                                                  \
    X(ERROR_INVALID_RESOURCE_TYPE, 914)                                                                                \
    X(ERROR_INVALID_RESOURCE_CONFIGURATION, 915)                                                                       \
    X(ERROR_KEY_ROTATION, 916)                                                                                         \
    X(ERROR_UNKNOWN, 999)

/* Device attributes: X(what follows CU_DEVICE_ATTRIBUTE_, number). */
#define HDCU_DEVICE_ATTRIBUTE_LIST(X)                                                                                  \
    X(MAX_THREADS_PER_BLOCK, 1)                                                                                        \
    X(MAX_BLOCK_DIM_X, 2)                                                                                              \
    X(MAX_BLOCK_DIM_Y, 3)                                                                                              \
    X(MAX_BLOCK_DIM_Z, 4)                                                                                              \
    X(MAX_GRID_DIM_X, 5)                                                                                               \
    X(MAX_GRID_DIM_Y, 6)                                                                                               \
    X(MAX_GRID_DIM_Z, 7)                                                                                               \
    X(MAX_SHARED_MEMORY_PER_BLOCK, 8)                                                                                  \
    X(TOTAL_CONSTANT_MEMORY, 9)                                                                                        \
    X(WARP_SIZE, 10)                                                                                                   \
    X(MAX_PITCH, 11)                                                                                                   \
    X(MAX_REGISTERS_PER_BLOCK, 12)                                                                                     \
    X(CLOCK_RATE, 13)                                                                                                  \
    X(TEXTURE_ALIGNMENT, 14)                                                                                           \
    X(GPU_OVERLAP, 15)                                                                                                 \
    X(MULTIPROCESSOR_COUNT, 16)                                                                                        \
    X(KERNEL_EXEC_TIMEOUT, 17)                                                                                         \
    X(INTEGRATED, 18)                                                                                                  \
    X(CAN_MAP_HOST_MEMORY, 19)                                                                                         \
    X(COMPUTE_MODE, 20)                                                                                                \
    X(MAXIMUM_TEXTURE1D_WIDTH, 21)                                                                                     \
    X(MAXIMUM_TEXTURE2D_WIDTH, 22)                                                                                     \
    X(MAXIMUM_TEXTURE2D_HEIGHT, 23)                                                                                    \
    X(MAXIMUM_TEXTURE3D_WIDTH, 24)                                                                                     \
    X(MAXIMUM_TEXTURE3D_HEIGHT, 25)                                                                                    \
    X(MAXIMUM_TEXTURE3D_DEPTH, 26)                                                                                     \
    X(MAXIMUM_TEXTURE2D_LAYERED_WIDTH, 27)                                                                             \
    X(MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, 28)                                                                            \
    X(MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 29)                                                                            \
    X(SURFACE_ALIGNMENT, 30)                                                                                           \
    X(CONCURRENT_KERNELS, 31)                                                                                          \
    X(ECC_ENABLED, 32)                                                                                                 \
    X(PCI_BUS_ID, 33)                                                                                                  \
    X(PCI_DEVICE_ID, 34)                                                                                               \
    X(TCC_DRIVER, 35)                                                                                                  \
    X(MEMORY_CLOCK_RATE, 36)                                                                                           \
    X(GLOBAL_MEMORY_BUS_WIDTH, 37)                                                                                     \
    X(L2_CACHE_SIZE, 38)                                                                                               \
    X(MAX_THREADS_PER_MULTIPROCESSOR, 39)                                                                              \
    X(ASYNC_ENGINE_COUNT, 40)                                                                                          \
    X(UNIFIED_ADDRESSING, 41)                                                                                          \
    X(MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 42)                                                                             \
    X(MAXIMUM_TEXTURE1D_LAYERED_LAYERS, 43)                                                                            \
    X(CAN_TEX2D_GATHER, 44)                                                                                            \
    X(MAXIMUM_TEXTURE2D_GATHER_WIDTH, 45)                                                                              \
    X(MAXIMUM_TEXTURE2D_GATHER_HEIGHT, 46)                                                                             \
    X(MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, 47)                                                                           \
    X(MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, 48)                                                                          \
    X(MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, 49)                                                                           \
    X(PCI_DOMAIN_ID, 50)                                                                                               \
    X(TEXTURE_PITCH_ALIGNMENT, 51)                                                                                     \
    X(MAXIMUM_TEXTURECUBEMAP_WIDTH, 52)                                                                                \
    X(MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, 53)                                                                        \
    X(MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, 54)                                                                       \
    X(MAXIMUM_SURFACE1D_WIDTH, 55)                                                                                     \
    X(MAXIMUM_SURFACE2D_WIDTH, 56)                                                                                     \
    X(MAXIMUM_SURFACE2D_HEIGHT, 57)                                                                                    \
    X(MAXIMUM_SURFACE3D_WIDTH, 58)                                                                                     \
    X(MAXIMUM_SURFACE3D_HEIGHT, 59)                                                                                    \
    X(MAXIMUM_SURFACE3D_DEPTH, 60)                                                                                     \
    X(MAXIMUM_SURFACE1D_LAYERED_WIDTH, 61)                                                                             \
    X(MAXIMUM_SURFACE1D_LAYERED_LAYERS, 62)                                                                            \
    X(MAXIMUM_SURFACE2D_LAYERED_WIDTH, 63)                                                                             \
    X(MAXIMUM_SURFACE2D_LAYERED_HEIGHT, 64)                                                                            \
    X(MAXIMUM_SURFACE2D_LAYERED_LAYERS, 65)                                                                            \
    X(MAXIMUM_SURFACECUBEMAP_WIDTH, 66)                                                                                \
    X(MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, 67)                                                                        \
    X(MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, 68)                                                                       \
    X(MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 69)                                                                              \
    X(MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 70)                                                                              \
    X(MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 71)                                                                             \
    X(MAXIMUM_TEXTURE2D_LINEAR_PITCH, 72)                                                                              \
    X(MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, 73)                                                                           \
    X(MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, 74)                                                                          \
    X(COMPUTE_CAPABILITY_MAJOR, 75)                                                                                    \
    X(COMPUTE_CAPABILITY_MINOR, 76)                                                                                    \
    X(MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, 77)                                                                           \
    X(STREAM_PRIORITIES_SUPPORTED, 78)                                                                                 \
    X(GLOBAL_L1_CACHE_SUPPORTED, 79)                                                                                   \
    X(LOCAL_L1_CACHE_SUPPORTED, 80)                                                                                    \
    X(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81)                                                                        \
    X(MAX_REGISTERS_PER_MULTIPROCESSOR, 82)                                                                            \
    X(MANAGED_MEMORY, 83)                                                                                              \
    X(MULTI_GPU_BOARD, 84)                                                                                             \
    X(MULTI_GPU_BOARD_GROUP_ID, 85)                                                                                    \
    X(HOST_NATIVE_ATOMIC_SUPPORTED, 86)                                                                                \
    X(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 87)                                                                       \
    X(PAGEABLE_MEMORY_ACCESS, 88)                                                                                      \
    X(CONCURRENT_MANAGED_ACCESS, 89)                                                                                   \
    X(COMPUTE_PREEMPTION_SUPPORTED, 90)                                                                                \
    X(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91)                                                                     \
    X(CAN_USE_STREAM_MEM_OPS_V1, 92)                                                                                   \
    X(CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 93)                                                                            \
    X(CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 94)                                                                            \
    X(COOPERATIVE_LAUNCH, 95)                                                                                          \
    X(COOPERATIVE_MULTI_DEVICE_LAUNCH, 96)                                                                             \
    X(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)                                                                           \
    X(CAN_FLUSH_REMOTE_WRITES, 98)                                                                                     \
    X(HOST_REGISTER_SUPPORTED, 99)                                                                                     \
    X(PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 100)                                                               \
    X(DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 101)                                                                        \
    X(VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, 102)                                                                       \
    X(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103)                                                                \
    X(HANDLE_TYPE_WIN32_HANDLE_SUPPORTED, 104)                                                                         \
    X(HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED, 105)                                                                     \
    X(MAX_BLOCKS_PER_MULTIPROCESSOR, 106)                                                                              \
    X(GENERIC_COMPRESSION_SUPPORTED, 107)                                                                              \
    X(MAX_PERSISTING_L2_CACHE_SIZE, 108)                                                                               \
    X(MAX_ACCESS_POLICY_WINDOW_SIZE, 109)                                                                              \
    X(GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 110)                                                                    \
    X(RESERVED_SHARED_MEMORY_PER_BLOCK, 111)                                                                           \
    X(SPARSE_CUDA_ARRAY_SUPPORTED, 112)                                                                                \
    X(READ_ONLY_HOST_REGISTER_SUPPORTED, 113)                                                                          \
    X(TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, 114)                                                                       \
    X(MEMORY_POOLS_SUPPORTED, 115)                                                                                     \
    X(GPU_DIRECT_RDMA_SUPPORTED, 116)                                                                                  \
    X(GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 117)                                                                       \
    X(GPU_DIRECT_RDMA_WRITES_ORDERING, 118)                                                                            \
    X(MEMPOOL_SUPPORTED_HANDLE_TYPES, 119)                                                                             \
    X(CLUSTER_LAUNCH, 120)                                                                                             \
    X(DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, 121)                                                                      \
    X(CAN_USE_64_BIT_STREAM_MEM_OPS, 122)                                                                              \
    X(CAN_USE_STREAM_WAIT_VALUE_NOR, 123)                                                                              \
    X(DMA_BUF_SUPPORTED, 124)                                                                                          \
    X(IPC_EVENT_SUPPORTED, 125)                                                                                        \
    X(MEM_SYNC_DOMAIN_COUNT, 126)                                                                                      \
    X(TENSOR_MAP_ACCESS_SUPPORTED, 127)                                                                                \
    X(HANDLE_TYPE_FABRIC_SUPPORTED, 128)                                                                               \
    X(UNIFIED_FUNCTION_POINTERS, 129)                                                                                  \
    X(NUMA_CONFIG, 130)                                                                                                \
    X(NUMA_ID, 131)                                                                                                    \
    X(MULTICAST_SUPPORTED, 132)                                                                                        \
    X(MPS_ENABLED, 133)                                                                                                \
    X(HOST_NUMA_ID, 134)                                                                                               \
    X(D3D12_CIG_SUPPORTED, 135)                                                                                        \
    X(MEM_DECOMPRESS_ALGORITHM_MASK, 136)                                                                              \
    X(MEM_DECOMPRESS_MAXIMUM_LENGTH, 137)                                                                              \
    X(VULKAN_CIG_SUPPORTED, 138)                                                                                       \
    X(GPU_PCI_DEVICE_ID, 139)                                                                                          \
    X(GPU_PCI_SUBSYSTEM_ID, 140)                                                                                       \
    X(HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 141)                                                              \
    X(HOST_NUMA_MEMORY_POOLS_SUPPORTED, 142)                                                                           \
    X(HOST_NUMA_MULTINODE_IPC_SUPPORTED, 143)                                                                          \
    X(HOST_MEMORY_POOLS_SUPPORTED, 144)                                                                                \
    X(HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 145)                                                                   \
    X(HOST_ALLOC_DMA_BUF_SUPPORTED, 146)                                                                               \
    X(ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED, 147)

/* Function attributes: X(what follows CU_FUNC_ATTRIBUTE_, number). */
#define HDCU_FUNC_ATTRIBUTE_LIST(X)                                                                                    \
    X(MAX_THREADS_PER_BLOCK, 0)                                                                                        \
    X(SHARED_SIZE_BYTES, 1)                                                                                            \
    X(CONST_SIZE_BYTES, 2)                                                                                             \
    X(LOCAL_SIZE_BYTES, 3)                                                                                             \
    X(NUM_REGS, 4)                                                                                                     \
    X(PTX_VERSION, 5)                                                                                                  \
    X(BINARY_VERSION, 6)                                                                                               \
    X(CACHE_MODE_CA, 7)                                                                                                \
    X(MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                                                                                \
    X(PREFERRED_SHARED_MEMORY_CARVEOUT, 9)                                                                             \
    X(CLUSTER_SIZE_MUST_BE_SET, 10)                                                                                    \
    X(REQUIRED_CLUSTER_WIDTH, 11)                                                                                      \
    X(REQUIRED_CLUSTER_HEIGHT, 12)                                                                                     \
    X(REQUIRED_CLUSTER_DEPTH, 13)                                                                                      \
    X(NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 14)                                                                           \
    X(CLUSTER_SCHEDULING_POLICY_PREFERENCE, 15)

/* Pointer attributes: X(what follows CU_POINTER_ATTRIBUTE_, number). */
#define HDCU_POINTER_ATTRIBUTE_LIST(X)                                                                                 \
    X(CONTEXT, 1)                                                                                                      \
    X(MEMORY_TYPE, 2)                                                                                                  \
    X(DEVICE_POINTER, 3)                                                                                               \
    X(HOST_POINTER, 4)                                                                                                 \
    X(P2P_TOKENS, 5)                                                                                                   \
    X(SYNC_MEMOPS, 6)                                                                                                  \
    X(BUFFER_ID, 7)                                                                                                    \
    X(IS_MANAGED, 8)                                                                                                   \
    X(DEVICE_ORDINAL, 9)                                                                                               \
    X(IS_LEGACY_CUDA_IPC_CAPABLE, 10)                                                                                  \
    X(RANGE_START_ADDR, 11)                                                                                            \
    X(RANGE_SIZE, 12)                                                                                                  \
    X(MAPPED, 13)                                                                                                      \
    X(ALLOWED_HANDLE_TYPES, 14)                                                                                        \
    X(IS_GPU_DIRECT_RDMA_CAPABLE, 15)                                                                                  \
    X(ACCESS_FLAGS, 16)                                                                                                \
    X(MEMPOOL_HANDLE, 17)                                                                                              \
    X(MAPPING_SIZE, 18)                                                                                                \
    X(MAPPING_BASE_ADDR, 19)                                                                                           \
    X(MEMORY_BLOCK_ID, 20)                                                                                             \
    X(IS_HW_DECOMPRESS_CAPABLE, 21)

/* Options of module loading: X(what follows CU_JIT_, number). */
#define HDCU_JIT_LIST(X)                                                                                               \
    X(MAX_REGISTERS, 0)                                                                                                \
    X(THREADS_PER_BLOCK, 1)                                                                                            \
    X(WALL_TIME, 2)                                                                                                    \
    X(INFO_LOG_BUFFER, 3)                                                                                              \
    X(INFO_LOG_BUFFER_SIZE_BYTES, 4)                                                                                   \
    X(ERROR_LOG_BUFFER, 5)                                                                                             \
    X(ERROR_LOG_BUFFER_SIZE_BYTES, 6)                                                                                  \
    X(OPTIMIZATION_LEVEL, 7)                                                                                           \
    X(TARGET_FROM_CUCONTEXT, 8)                                                                                        \
    X(TARGET, 9)                                                                                                       \
    X(FALLBACK_STRATEGY, 10)                                                                                           \
    X(GENERATE_DEBUG_INFO, 11)                                                                                         \
    X(LOG_VERBOSE, 12)                                                                                                 \
    X(GENERATE_LINE_INFO, 13)                                                                                          \
    X(CACHE_MODE, 14)                                                                                                  \
    X(NEW_SM3X_OPT, 15)                                                                                                \
    X(FAST_COMPILE, 16)                                                                                                \
    X(GLOBAL_SYMBOL_NAMES, 17)                                                                                         \
    X(GLOBAL_SYMBOL_ADDRESSES, 18)                                                                                     \
    X(GLOBAL_SYMBOL_COUNT, 19)                                                                                         \
    X(LTO, 20)                                                                                                         \
    X(FTZ, 21)                                                                                                         \
    X(PREC_DIV, 22)                                                                                                    \
    X(PREC_SQRT, 23)                                                                                                   \
    X(FMA, 24)                                                                                                         \
    X(REFERENCED_KERNEL_NAMES, 25)                                                                                     \
    X(REFERENCED_KERNEL_COUNT, 26)                                                                                     \
    X(REFERENCED_VARIABLE_NAMES, 27)                                                                                   \
    X(REFERENCED_VARIABLE_COUNT, 28)                                                                                   \
    X(OPTIMIZE_UNUSED_DEVICE_VARIABLES, 29)                                                                            \
    X(POSITION_INDEPENDENT_CODE, 30)                                                                                   \
    X(MIN_CTA_PER_SM, 31)                                                                                              \
    X(MAX_THREADS_PER_BLOCK, 32)                                                                                       \
    X(OVERRIDE_DIRECTIVE_VALUES, 33)                                                                                   \
    X(SPLIT_COMPILE, 34)

/* All other flags and choices: X(what follows CU_, number). */
#define HDCU_FLAG_LIST(X)                                                                                              \
    X(CTX_SCHED_AUTO, 0)                                                                                               \
    X(CTX_SCHED_SPIN, 1)                                                                                               \
    X(CTX_SCHED_YIELD, 2)                                                                                              \
    X(CTX_SCHED_BLOCKING_SYNC, 4)                                                                                      \
    X(CTX_SCHED_MASK, 7)                                                                                               \
    X(CTX_MAP_HOST, 8)                                                                                                 \
    X(CTX_COREDUMP_ENABLE, 32)                                                                                         \
    X(CTX_USER_COREDUMP_ENABLE, 64)                                                                                    \
    X(CTX_SYNC_MEMOPS, 128)                                                                                            \
    X(LIMIT_STACK_SIZE, 0)                                                                                             \
    X(LIMIT_PRINTF_FIFO_SIZE, 1)                                                                                       \
    X(LIMIT_MALLOC_HEAP_SIZE, 2)                                                                                       \
    X(LIMIT_DEV_RUNTIME_SYNC_DEPTH, 3)                                                                                 \
    X(LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 4)                                                                       \
    X(LIMIT_MAX_L2_FETCH_GRANULARITY, 5)                                                                               \
    X(LIMIT_PERSISTING_L2_CACHE_SIZE, 6)                                                                               \
    X(LIMIT_SHMEM_SIZE, 7)                                                                                             \
    X(LIMIT_CIG_ENABLED, 8)                                                                                            \
    X(LIMIT_CIG_SHMEM_FALLBACK_ENABLED, 9)                                                                             \
    X(EVENT_DEFAULT, 0)                                                                                                \
    X(EVENT_BLOCKING_SYNC, 1)                                                                                          \
    X(EVENT_DISABLE_TIMING, 2)                                                                                         \
    X(EVENT_INTERPROCESS, 4)                                                                                           \
    X(EVENT_RECORD_DEFAULT, 0)                                                                                         \
    X(EVENT_RECORD_EXTERNAL, 1)                                                                                        \
    X(EVENT_WAIT_DEFAULT, 0)                                                                                           \
    X(EVENT_WAIT_EXTERNAL, 1)                                                                                          \
    X(STREAM_DEFAULT, 0)                                                                                               \
    X(STREAM_NON_BLOCKING, 1)                                                                                          \
    X(STREAM_WAIT_VALUE_GEQ, 0)                                                                                        \
    X(STREAM_WAIT_VALUE_EQ, 1)                                                                                         \
    X(STREAM_WAIT_VALUE_AND, 2)                                                                                        \
    X(STREAM_WAIT_VALUE_NOR, 3)                                                                                        \
    X(STREAM_WAIT_VALUE_FLUSH, 1073741824)                                                                             \
    X(STREAM_WRITE_VALUE_DEFAULT, 0)                                                                                   \
    X(STREAM_WRITE_VALUE_NO_MEMORY_BARRIER, 1)                                                                         \
    X(STREAM_MEM_OP_WRITE_VALUE_64, 5)                                                                                 \
    X(STREAM_CAPTURE_STATUS_NONE, 0)                                                                                   \
    X(STREAM_CAPTURE_STATUS_ACTIVE, 1)                                                                                 \
    X(STREAM_CAPTURE_STATUS_INVALIDATED, 2)                                                                            \
    X(STREAM_CAPTURE_MODE_GLOBAL, 0)                                                                                   \
    X(STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                                                                             \
    X(STREAM_CAPTURE_MODE_RELAXED, 2)                                                                                  \
    X(STREAM_ADD_CAPTURE_DEPENDENCIES, 0)                                                                              \
    X(STREAM_SET_CAPTURE_DEPENDENCIES, 1)                                                                              \
    X(MEMORYTYPE_HOST, 1)                                                                                              \
    X(MEMORYTYPE_DEVICE, 2)                                                                                            \
    X(MEMORYTYPE_ARRAY, 3)                                                                                             \
    X(MEMORYTYPE_UNIFIED, 4)                                                                                           \
    X(COMPUTEMODE_DEFAULT, 0)                                                                                          \
    X(COMPUTEMODE_PROHIBITED, 2)                                                                                       \
    X(COMPUTEMODE_EXCLUSIVE_PROCESS, 3)                                                                                \
    X(MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, 1)                                                                 \
    X(MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 2)                                                                       \
    X(MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 3)                                                               \
    X(MEMPOOL_ATTR_RELEASE_THRESHOLD, 4)                                                                               \
    X(MEMPOOL_ATTR_RESERVED_MEM_CURRENT, 5)                                                                            \
    X(MEMPOOL_ATTR_RESERVED_MEM_HIGH, 6)                                                                               \
    X(MEMPOOL_ATTR_USED_MEM_CURRENT, 7)                                                                                \
    X(MEMPOOL_ATTR_USED_MEM_HIGH, 8)                                                                                   \
    X(MEM_LOCATION_TYPE_INVALID, 0)                                                                                    \
    X(MEM_LOCATION_TYPE_DEVICE, 1)                                                                                     \
    X(MEM_LOCATION_TYPE_HOST, 2)                                                                                       \
    X(MEM_LOCATION_TYPE_HOST_NUMA, 3)                                                                                  \
    X(MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 4)                                                                          \
    X(MEM_ALLOCATION_TYPE_INVALID, 0)                                                                                  \
    X(MEM_ALLOCATION_TYPE_PINNED, 1)                                                                                   \
    X(MEM_ALLOCATION_TYPE_MANAGED, 2)                                                                                  \
    X(MEM_HANDLE_TYPE_NONE, 0)                                                                                         \
    X(MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1)                                                                        \
    X(MEM_HANDLE_TYPE_WIN32, 2)                                                                                        \
    X(MEM_HANDLE_TYPE_WIN32_KMT, 4)                                                                                    \
    X(MEM_HANDLE_TYPE_FABRIC, 8)                                                                                       \
    X(MEM_ACCESS_FLAGS_PROT_NONE, 0)                                                                                   \
    X(MEM_ACCESS_FLAGS_PROT_READ, 1)                                                                                   \
    X(MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                                                                              \
    X(MODULE_EAGER_LOADING, 1)                                                                                         \
    X(MODULE_LAZY_LOADING, 2)                                                                                          \
    X(FUNCTION_LOADING_STATE_UNLOADED, 0)                                                                              \
    X(FUNCTION_LOADING_STATE_LOADED, 1)                                                                                \
    X(LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE, 0)                                                               \
    X(LIBRARY_BINARY_IS_PRESERVED, 1)                                                                                  \
    X(FUNC_CACHE_PREFER_NONE, 0)                                                                                       \
    X(FUNC_CACHE_PREFER_SHARED, 1)                                                                                     \
    X(FUNC_CACHE_PREFER_L1, 2)                                                                                         \
    X(FUNC_CACHE_PREFER_EQUAL, 3)                                                                                      \
    X(OCCUPANCY_DEFAULT, 0)                                                                                            \
    X(OCCUPANCY_DISABLE_CACHING_OVERRIDE, 1)                                                                           \
    X(DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 1)                                                                        \
    X(DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 2)                                                                        \
    X(DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 3)                                                                 \
    X(DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED, 4)                                                             \
    X(DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED, 5)                                                    \
    X(LAUNCH_ATTRIBUTE_IGNORE, 0)                                                                                      \
    X(LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, 1)                                                                        \
    X(LAUNCH_ATTRIBUTE_COOPERATIVE, 2)                                                                                 \
    X(LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, 3)                                                                      \
    X(LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4)                                                                           \
    X(LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 5)                                                        \
    X(LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)                                                           \
    X(LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, 7)                                                                          \
    X(LAUNCH_ATTRIBUTE_PRIORITY, 8)                                                                                    \
    X(LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, 9)                                                                         \
    X(LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 10)                                                                            \
    X(LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, 11)                                                                \
    X(LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, 12)                                                                    \
    X(LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, 13)                                                               \
    X(LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 14)                                                           \
    X(LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, 16)                                                             \
    X(GRAPH_NODE_TYPE_KERNEL, 0)                                                                                       \
    X(GRAPH_NODE_TYPE_MEMCPY, 1)                                                                                       \
    X(GRAPH_NODE_TYPE_MEMSET, 2)                                                                                       \
    X(GRAPH_NODE_TYPE_HOST, 3)                                                                                         \
    X(GRAPH_NODE_TYPE_GRAPH, 4)                                                                                        \
    X(GRAPH_NODE_TYPE_EMPTY, 5)                                                                                        \
    X(GRAPH_NODE_TYPE_WAIT_EVENT, 6)                                                                                   \
    X(GRAPH_NODE_TYPE_EVENT_RECORD, 7)                                                                                 \
    X(GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, 8)                                                                             \
    X(GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, 9)                                                                               \
    X(GRAPH_NODE_TYPE_MEM_ALLOC, 10)                                                                                   \
    X(GRAPH_NODE_TYPE_MEM_FREE, 11)                                                                                    \
    X(GRAPH_NODE_TYPE_BATCH_MEM_OP, 12)                                                                                \
    X(GRAPH_NODE_TYPE_CONDITIONAL, 13)                                                                                 \
    X(GRAPH_DEPENDENCY_TYPE_DEFAULT, 0)                                                                                \
    X(GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, 1)                                                                           \
    X(GRAPH_EXEC_UPDATE_SUCCESS, 0)                                                                                    \
    X(GRAPH_EXEC_UPDATE_ERROR, 1)                                                                                      \
    X(GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, 2)                                                                     \
    X(GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, 3)                                                                    \
    X(GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED, 4)                                                                     \
    X(GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, 5)                                                                   \
    X(GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, 6)                                                                        \
    X(GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE, 7)                                                          \
    X(GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED, 8)                                                                   \
    X(ACCESS_PROPERTY_NORMAL, 0)                                                                                       \
    X(ACCESS_PROPERTY_STREAMING, 1)                                                                                    \
    X(ACCESS_PROPERTY_PERSISTING, 2)                                                                                   \
    X(GET_PROC_ADDRESS_DEFAULT, 0)                                                                                     \
    X(GET_PROC_ADDRESS_LEGACY_STREAM, 1)                                                                               \
    X(GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, 2)                                                                   \
    X(MEMHOSTALLOC_PORTABLE, 1)                                                                                        \
    X(MEMHOSTALLOC_DEVICEMAP, 2)                                                                                       \
    X(MEMHOSTALLOC_WRITECOMBINED, 4)                                                                                   \
    X(MEMHOSTREGISTER_PORTABLE, 1)                                                                                     \
    X(MEMHOSTREGISTER_DEVICEMAP, 2)                                                                                    \
    X(MEMHOSTREGISTER_IOMEMORY, 4)                                                                                     \
    X(MEMHOSTREGISTER_READ_ONLY, 8)                                                                                    \
    X(GRAPH_KERNEL_NODE_PORT_DEFAULT, 0)                                                                               \
    X(GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 1)                                                                          \
    X(GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, 2)

/* Names in cuLaunchKernel's `extra`, each a number in a pointer: X(what follows CU_LAUNCH_PARAM_, number). */
#define HDCU_LAUNCH_PARAM_LIST(X)                                                                                      \
    X(END, 0)                                                                                                          \
    X(BUFFER_POINTER, 1)                                                                                               \
    X(BUFFER_SIZE, 2)

#define HDCU_ENUM_RESULT_(name, number) HDCU_##name = number,
#define HDCU_ENUM_DEVICE_(name, number) HDCU_DEVICE_ATTRIBUTE_##name = number,
#define HDCU_ENUM_FUNC_(name, number) HDCU_FUNC_ATTRIBUTE_##name = number,
#define HDCU_ENUM_POINTER_(name, number) HDCU_POINTER_ATTRIBUTE_##name = number,
#define HDCU_ENUM_JIT_(name, number) HDCU_JIT_##name = number,
#define HDCU_ENUM_FLAG_(name, number) HDCU_##name = number,
#define HDCU_ENUM_PARAM_(name, number) HDCU_LAUNCH_PARAM_##name = number,
enum {
    HDCU_RESULT_LIST(HDCU_ENUM_RESULT_)
    HDCU_DEVICE_ATTRIBUTE_LIST(HDCU_ENUM_DEVICE_)
    HDCU_FUNC_ATTRIBUTE_LIST(HDCU_ENUM_FUNC_)
    HDCU_POINTER_ATTRIBUTE_LIST(HDCU_ENUM_POINTER_)
    HDCU_JIT_LIST(HDCU_ENUM_JIT_)
    HDCU_FLAG_LIST(HDCU_ENUM_FLAG_)
    HDCU_LAUNCH_PARAM_LIST(HDCU_ENUM_PARAM_)
};
#undef HDCU_ENUM_RESULT_
#undef HDCU_ENUM_DEVICE_
#undef HDCU_ENUM_FUNC_
#undef HDCU_ENUM_POINTER_
#undef HDCU_ENUM_JIT_
#undef HDCU_ENUM_FLAG_
#undef HDCU_ENUM_PARAM_

typedef unsigned hdcu_result; /* CUresult */
typedef int hdcu_device;      /* CUdevice: an ordinal */
typedef unsigned long long hdcu_pointer; /* CUdeviceptr */

typedef struct CUctx_st *hdcu_context;
typedef struct CUmod_st *hdcu_module;
typedef struct CUfunc_st *hdcu_function;
typedef struct CUlib_st *hdcu_library;
typedef struct CUkern_st *hdcu_kernel;
typedef struct CUarray_st *hdcu_array;
typedef struct CUevent_st *hdcu_event;
typedef struct CUstream_st *hdcu_stream;
typedef struct CUgraph_st *hdcu_graph;
typedef struct CUgraphNode_st *hdcu_graph_node;
typedef struct CUgraphExec_st *hdcu_graph_exec;
typedef struct CUmemPoolHandle_st *hdcu_pool;

/* The two streams that are there without being created. */
#define HDCU_STREAM_LEGACY ((hdcu_stream)1)
#define HDCU_STREAM_PER_THREAD ((hdcu_stream)2)

typedef void (*hdcu_host_function)(void *argument);
typedef void (*hdcu_stream_callback)(hdcu_stream stream, hdcu_result result, void *argument);
typedef size_t (*hdcu_shared_for_block)(int threads);

typedef struct hdcu_uuid {
    char bytes[16];
} hdcu_uuid;

/* One side of a copy is told by its memory type: host, device, array or unified (the address says). */
typedef struct hdcu_memcpy2d {
    size_t source_x_bytes, source_y;
    unsigned source_type;
    const void *source_host;
    hdcu_pointer source_device;
    hdcu_array source_array;
    size_t source_pitch;
    size_t destination_x_bytes, destination_y;
    unsigned destination_type;
    void *destination_host;
    hdcu_pointer destination_device;
    hdcu_array destination_array;
    size_t destination_pitch;
    size_t width_bytes, height;
} hdcu_memcpy2d;

typedef struct hdcu_memcpy3d {
    size_t source_x_bytes, source_y, source_z, source_level;
    unsigned source_type;
    const void *source_host;
    hdcu_pointer source_device;
    hdcu_array source_array;
    void *source_reserved; /* NULL */
    size_t source_pitch, source_height;
    size_t destination_x_bytes, destination_y, destination_z, destination_level;
    unsigned destination_type;
    void *destination_host;
    hdcu_pointer destination_device;
    hdcu_array destination_array;
    void *destination_reserved; /* NULL */
    size_t destination_pitch, destination_height;
    size_t width_bytes, height, depth;
} hdcu_memcpy3d;

typedef struct hdcu_memory_location {
    unsigned type;
    int id;
} hdcu_memory_location;

typedef struct hdcu_memory_access {
    hdcu_memory_location location;
    unsigned flags;
} hdcu_memory_access;

typedef struct hdcu_pool_properties {
    unsigned allocation_type;
    unsigned handle_types;
    hdcu_memory_location location;
    void *security_attributes; /* Windows only */
    size_t max_size;           /* 0: the system decides; ignored by drivers before 12.2 */
    unsigned short usage;
    unsigned char reserved[54]; /* zero */
} hdcu_pool_properties;

typedef struct hdcu_access_window {
    void *base;
    size_t bytes;
    float hit_ratio;
    unsigned hit_property, miss_property;
} hdcu_access_window;

/* Value of an attribute of a launch, a kernel node or a stream; which member counts is told by the attribute's id. */
typedef union hdcu_launch_attribute_value {
    char bytes[64];
    hdcu_access_window access_window;
    int cooperative;
    unsigned synchronization_policy;
    struct {
        unsigned x, y, z;
    } cluster;
    unsigned cluster_scheduling;
    int programmatic_serialization;
    struct {
        hdcu_event event;
        int flags;
        int trigger_at_block_start;
    } programmatic_event;
    struct {
        hdcu_event event;
        int flags;
    } completion_event;
    int priority;
    unsigned shared_carveout;
} hdcu_launch_attribute_value;

typedef struct hdcu_launch_attribute {
    unsigned id;
    char padding[4];
    hdcu_launch_attribute_value value;
} hdcu_launch_attribute;

typedef struct hdcu_launch_config {
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes;
    hdcu_stream stream;
    hdcu_launch_attribute *attributes;
    unsigned attribute_count;
} hdcu_launch_config;

typedef struct hdcu_kernel_node_params {
    hdcu_function function;
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes;
    void **params;
    void **extra;
    hdcu_kernel kernel;   /* used when function is NULL */
    hdcu_context context; /* of the kernel; NULL: the current one */
} hdcu_kernel_node_params;

typedef struct hdcu_memset_node_params {
    hdcu_pointer destination;
    size_t pitch;
    unsigned value;
    unsigned element_size; /* 1, 2 or 4 */
    size_t width;          /* in elements */
    size_t height;
} hdcu_memset_node_params;

/* A write of a value, of those that a stream or a graph's node does in a row. */
typedef union hdcu_stream_mem_op {
    unsigned operation;
    struct {
        unsigned operation;
        hdcu_pointer address;
        uint64_t value; /* of a 32-bit one the low half */
        unsigned flags;
        hdcu_pointer alias; /* the driver's */
    } write;
    uint64_t words[6];
} hdcu_stream_mem_op;

typedef struct hdcu_batch_mem_op_node_params {
    hdcu_context context;
    unsigned count;
    hdcu_stream_mem_op *ops;
    unsigned flags; /* zero */
} hdcu_batch_mem_op_node_params;

typedef struct hdcu_host_node_params {
    hdcu_host_function function;
    void *argument;
} hdcu_host_node_params;

typedef struct hdcu_graph_edge {
    unsigned char from_port, to_port, type;
    unsigned char reserved[5]; /* zero */
} hdcu_graph_edge;

typedef struct hdcu_graph_node_params {
    unsigned type;
    int reserved0[3]; /* zero */
    union {
        long long words[29];
        hdcu_kernel_node_params kernel;
    };
    long long reserved1; /* zero */
} hdcu_graph_node_params;

typedef struct hdcu_graph_update_result {
    unsigned result;
    hdcu_graph_node error_node;
    hdcu_graph_node error_from_node;
} hdcu_graph_update_result;

#endif
