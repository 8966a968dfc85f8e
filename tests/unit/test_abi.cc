/* SPDX-License-Identifier: MIT */
/*
 * Proof by the compiler that lib/driver/cuda_abi.h and cuda_symbols.h say what CUDA's own headers say: every number,
 * every struct's size and its members' offsets, and of every entry the number, order, size and pointer-ness of the
 * parameters of PFN_<name>_v<version>. Built only where configure found the headers (--with-cuda); what it prints was
 * proved when it was compiled, but for the look-up of the symbols in the toolkit's stub.
 *
 * C++ because only a template can take a function type apart.
 */
#include "driver/cuda_abi.h"
#include "driver/cuda_symbols.h"

/* Before cuda.h, whose macros rename functions (cuMemAlloc is cuMemAlloc_v2 from there on). */
#define OUR_TYPE(name, symbol, version, need, parameters) typedef hdcu_result(*ours_##name) parameters;
HDCU_SYMBOL_LIST(OUR_TYPE)
#undef OUR_TYPE

#include <cuda.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>

#include <dlfcn.h>
#include <stdio.h>
#include <type_traits>

#if CUDA_VERSION < 13000

int main()
{
    printf("1..0 # SKIP the CUDA headers are of version %d.%d; the proof is against 13.0 and newer\n",
           CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    return 0;
}

#else

/* ---- numbers ---- */

static int numbers;
#define SAME_NUMBER(ours, theirs)                                                                                      \
    static_assert((long long)(ours) == (long long)(theirs), #ours " differs from " #theirs)
#define RESULT_NUMBER(name, number) SAME_NUMBER(number, CUDA_##name);
#define DEVICE_NUMBER(name, number) SAME_NUMBER(number, CU_DEVICE_ATTRIBUTE_##name);
#define FUNC_NUMBER(name, number) SAME_NUMBER(number, CU_FUNC_ATTRIBUTE_##name);
#define POINTER_NUMBER(name, number) SAME_NUMBER(number, CU_POINTER_ATTRIBUTE_##name);
#define JIT_NUMBER(name, number) SAME_NUMBER(number, CU_JIT_##name);
#define FLAG_NUMBER(name, number) SAME_NUMBER(number, CU_##name);
#define PARAM_NUMBER(name, number) SAME_NUMBER(number, CU_LAUNCH_PARAM_##name##_AS_INT);
HDCU_RESULT_LIST(RESULT_NUMBER)
HDCU_DEVICE_ATTRIBUTE_LIST(DEVICE_NUMBER)
HDCU_FUNC_ATTRIBUTE_LIST(FUNC_NUMBER)
HDCU_POINTER_ATTRIBUTE_LIST(POINTER_NUMBER)
HDCU_JIT_LIST(JIT_NUMBER)
HDCU_FLAG_LIST(FLAG_NUMBER)
HDCU_LAUNCH_PARAM_LIST(PARAM_NUMBER)

/* ---- types ---- */

/*
 * Two types that are passed in the same place of a call and mean the same: both pointers, or both not; of one size,
 * alignment and register class; pointers to the same, as deep as they go.
 */
template <typename A, typename B> constexpr bool same_type();

template <typename F, typename G> struct same_function : std::false_type {
};
template <typename R, typename... P, typename S, typename... Q> struct same_function<R(P...), S(Q...)> {
    template <bool count_matches, typename dummy = void> struct parameters : std::false_type {
    };
    template <typename dummy> struct parameters<true, dummy> {
        static constexpr bool value = (same_type<P, Q>() && ... && true);
    };
    static constexpr bool value = same_type<R, S>() && parameters<sizeof...(P) == sizeof...(Q)>::value;
};

/* The structs behind handles have no definition: those must be the same by name. */
template <typename T, typename = void> struct is_complete : std::false_type {
};
template <typename T> struct is_complete<T, std::void_t<decltype(sizeof(T))>> : std::true_type {
};

template <typename A, typename B> constexpr bool same_type()
{
    if constexpr (std::is_void_v<A> || std::is_void_v<B>)
        return std::is_void_v<A> && std::is_void_v<B>;
    else if constexpr (std::is_function_v<A> || std::is_function_v<B>)
        return same_function<A, B>::value;
    else if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>)
        return std::is_const_v<std::remove_pointer_t<A>> == std::is_const_v<std::remove_pointer_t<B>> &&
               same_type<std::remove_cv_t<std::remove_pointer_t<A>>, std::remove_cv_t<std::remove_pointer_t<B>>>();
    else if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>)
        return false;
    else if constexpr (!is_complete<A>::value || !is_complete<B>::value)
        return std::is_same_v<A, B>;
    else
        return sizeof(A) == sizeof(B) && alignof(A) == alignof(B) && std::is_class_v<A> == std::is_class_v<B> &&
               std::is_union_v<A> == std::is_union_v<B> && std::is_floating_point_v<A> == std::is_floating_point_v<B>;
}

/* The template must be able to say no. */
static_assert(!same_type<int(int), int(int, int)>(), "a parameter more");
static_assert(!same_type<int(int *), int(long)>(), "a pointer for a number");
static_assert(!same_type<int(int, long), int(long, int)>(), "another order");
static_assert(!same_type<int(int *), int(const int *)>(), "another constness");
static_assert(!same_type<int(int *), int(int **)>(), "another depth");
static_assert(!same_type<int(CUcontext), int(CUstream)>(), "another handle");
static_assert(!same_type<int(float), int(int)>(), "another register");
static_assert(!same_type<int(long *), int(int *)>(), "another size behind a pointer");
static_assert(same_type<unsigned(unsigned, unsigned *), CUresult(CUlimit, CUlimit *)>(), "enumerations as unsigned");

#define SAME_ENTRY(name, symbol, version, need, parameters)                                                            \
    static_assert(same_type<std::remove_pointer_t<ours_##name>, std::remove_pointer_t<PFN_##name##_v##version>>(),     \
                  "parameters differ from PFN_" #name "_v" #version);
HDCU_SYMBOL_LIST(SAME_ENTRY)

static_assert(same_type<hdcu_host_function, CUhostFn>(), "host function");
static_assert(same_type<hdcu_stream_callback, CUstreamCallback>(), "stream callback");
static_assert(same_type<hdcu_shared_for_block, CUoccupancyB2DSize>(), "shared memory for a block");
static_assert(std::is_same_v<hdcu_pointer, CUdeviceptr> && std::is_same_v<hdcu_device, CUdevice>, "plain types");

/* ---- structs ---- */

#define SAME_STRUCT(ours, theirs)                                                                                      \
    static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs), #ours " differs from " #theirs)
#define SAME_MEMBER(ours, member, theirs, their_member)                                                                \
    static_assert(offsetof(ours, member) == offsetof(theirs, their_member) &&                                          \
                      sizeof(((ours *)0)->member) == sizeof(((theirs *)0)->their_member),                              \
                  #ours "." #member " differs from " #theirs "." #their_member)

SAME_STRUCT(hdcu_uuid, CUuuid);
SAME_MEMBER(hdcu_uuid, bytes, CUuuid, bytes);

#define COPY_MEMBERS(ours, theirs)                                                                                     \
    SAME_STRUCT(ours, theirs);                                                                                         \
    SAME_MEMBER(ours, source_x_bytes, theirs, srcXInBytes);                                                            \
    SAME_MEMBER(ours, source_y, theirs, srcY);                                                                         \
    SAME_MEMBER(ours, source_type, theirs, srcMemoryType);                                                             \
    SAME_MEMBER(ours, source_host, theirs, srcHost);                                                                   \
    SAME_MEMBER(ours, source_device, theirs, srcDevice);                                                               \
    SAME_MEMBER(ours, source_array, theirs, srcArray);                                                                 \
    SAME_MEMBER(ours, source_pitch, theirs, srcPitch);                                                                 \
    SAME_MEMBER(ours, destination_x_bytes, theirs, dstXInBytes);                                                       \
    SAME_MEMBER(ours, destination_y, theirs, dstY);                                                                    \
    SAME_MEMBER(ours, destination_type, theirs, dstMemoryType);                                                        \
    SAME_MEMBER(ours, destination_host, theirs, dstHost);                                                              \
    SAME_MEMBER(ours, destination_device, theirs, dstDevice);                                                          \
    SAME_MEMBER(ours, destination_array, theirs, dstArray);                                                            \
    SAME_MEMBER(ours, destination_pitch, theirs, dstPitch);                                                            \
    SAME_MEMBER(ours, width_bytes, theirs, WidthInBytes);                                                              \
    SAME_MEMBER(ours, height, theirs, Height)
COPY_MEMBERS(hdcu_memcpy2d, CUDA_MEMCPY2D_v2);
COPY_MEMBERS(hdcu_memcpy3d, CUDA_MEMCPY3D_v2);
SAME_MEMBER(hdcu_memcpy3d, source_z, CUDA_MEMCPY3D_v2, srcZ);
SAME_MEMBER(hdcu_memcpy3d, source_level, CUDA_MEMCPY3D_v2, srcLOD);
SAME_MEMBER(hdcu_memcpy3d, source_reserved, CUDA_MEMCPY3D_v2, reserved0);
SAME_MEMBER(hdcu_memcpy3d, source_height, CUDA_MEMCPY3D_v2, srcHeight);
SAME_MEMBER(hdcu_memcpy3d, destination_z, CUDA_MEMCPY3D_v2, dstZ);
SAME_MEMBER(hdcu_memcpy3d, destination_level, CUDA_MEMCPY3D_v2, dstLOD);
SAME_MEMBER(hdcu_memcpy3d, destination_reserved, CUDA_MEMCPY3D_v2, reserved1);
SAME_MEMBER(hdcu_memcpy3d, destination_height, CUDA_MEMCPY3D_v2, dstHeight);
SAME_MEMBER(hdcu_memcpy3d, depth, CUDA_MEMCPY3D_v2, Depth);

SAME_STRUCT(hdcu_memory_location, CUmemLocation_v1);
SAME_MEMBER(hdcu_memory_location, type, CUmemLocation_v1, type);
SAME_MEMBER(hdcu_memory_location, id, CUmemLocation_v1, id);
SAME_STRUCT(hdcu_memory_access, CUmemAccessDesc_v1);
SAME_MEMBER(hdcu_memory_access, location, CUmemAccessDesc_v1, location);
SAME_MEMBER(hdcu_memory_access, flags, CUmemAccessDesc_v1, flags);
SAME_STRUCT(hdcu_pool_properties, CUmemPoolProps_v1);
SAME_MEMBER(hdcu_pool_properties, allocation_type, CUmemPoolProps_v1, allocType);
SAME_MEMBER(hdcu_pool_properties, handle_types, CUmemPoolProps_v1, handleTypes);
SAME_MEMBER(hdcu_pool_properties, location, CUmemPoolProps_v1, location);
SAME_MEMBER(hdcu_pool_properties, security_attributes, CUmemPoolProps_v1, win32SecurityAttributes);
SAME_MEMBER(hdcu_pool_properties, max_size, CUmemPoolProps_v1, maxSize);
SAME_MEMBER(hdcu_pool_properties, usage, CUmemPoolProps_v1, usage);
SAME_MEMBER(hdcu_pool_properties, reserved, CUmemPoolProps_v1, reserved);

SAME_STRUCT(hdcu_access_window, CUaccessPolicyWindow_v1);
SAME_MEMBER(hdcu_access_window, base, CUaccessPolicyWindow_v1, base_ptr);
SAME_MEMBER(hdcu_access_window, bytes, CUaccessPolicyWindow_v1, num_bytes);
SAME_MEMBER(hdcu_access_window, hit_ratio, CUaccessPolicyWindow_v1, hitRatio);
SAME_MEMBER(hdcu_access_window, hit_property, CUaccessPolicyWindow_v1, hitProp);
SAME_MEMBER(hdcu_access_window, miss_property, CUaccessPolicyWindow_v1, missProp);

SAME_STRUCT(hdcu_launch_attribute_value, CUlaunchAttributeValue);
SAME_STRUCT(hdcu_launch_attribute_value, CUstreamAttrValue_v1);
SAME_MEMBER(hdcu_launch_attribute_value, access_window, CUlaunchAttributeValue, accessPolicyWindow);
SAME_MEMBER(hdcu_launch_attribute_value, cooperative, CUlaunchAttributeValue, cooperative);
SAME_MEMBER(hdcu_launch_attribute_value, synchronization_policy, CUlaunchAttributeValue, syncPolicy);
SAME_MEMBER(hdcu_launch_attribute_value, cluster, CUlaunchAttributeValue, clusterDim);
SAME_MEMBER(hdcu_launch_attribute_value, cluster_scheduling, CUlaunchAttributeValue, clusterSchedulingPolicyPreference);
SAME_MEMBER(hdcu_launch_attribute_value, programmatic_serialization, CUlaunchAttributeValue,
            programmaticStreamSerializationAllowed);
SAME_MEMBER(hdcu_launch_attribute_value, programmatic_event.event, CUlaunchAttributeValue, programmaticEvent.event);
SAME_MEMBER(hdcu_launch_attribute_value, programmatic_event.flags, CUlaunchAttributeValue, programmaticEvent.flags);
SAME_MEMBER(hdcu_launch_attribute_value, programmatic_event.trigger_at_block_start, CUlaunchAttributeValue,
            programmaticEvent.triggerAtBlockStart);
SAME_MEMBER(hdcu_launch_attribute_value, completion_event.event, CUlaunchAttributeValue, launchCompletionEvent.event);
SAME_MEMBER(hdcu_launch_attribute_value, completion_event.flags, CUlaunchAttributeValue, launchCompletionEvent.flags);
SAME_MEMBER(hdcu_launch_attribute_value, priority, CUlaunchAttributeValue, priority);
SAME_MEMBER(hdcu_launch_attribute_value, shared_carveout, CUlaunchAttributeValue, sharedMemCarveout);
SAME_STRUCT(hdcu_launch_attribute, CUlaunchAttribute);
SAME_MEMBER(hdcu_launch_attribute, id, CUlaunchAttribute, id);
SAME_MEMBER(hdcu_launch_attribute, value, CUlaunchAttribute, value);

SAME_STRUCT(hdcu_launch_config, CUlaunchConfig);
SAME_MEMBER(hdcu_launch_config, grid_x, CUlaunchConfig, gridDimX);
SAME_MEMBER(hdcu_launch_config, grid_y, CUlaunchConfig, gridDimY);
SAME_MEMBER(hdcu_launch_config, grid_z, CUlaunchConfig, gridDimZ);
SAME_MEMBER(hdcu_launch_config, block_x, CUlaunchConfig, blockDimX);
SAME_MEMBER(hdcu_launch_config, block_y, CUlaunchConfig, blockDimY);
SAME_MEMBER(hdcu_launch_config, block_z, CUlaunchConfig, blockDimZ);
SAME_MEMBER(hdcu_launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_MEMBER(hdcu_launch_config, stream, CUlaunchConfig, hStream);
SAME_MEMBER(hdcu_launch_config, attributes, CUlaunchConfig, attrs);
SAME_MEMBER(hdcu_launch_config, attribute_count, CUlaunchConfig, numAttrs);

#define KERNEL_NODE_MEMBERS(theirs)                                                                                    \
    SAME_STRUCT(hdcu_kernel_node_params, theirs);                                                                      \
    SAME_MEMBER(hdcu_kernel_node_params, function, theirs, func);                                                      \
    SAME_MEMBER(hdcu_kernel_node_params, grid_x, theirs, gridDimX);                                                    \
    SAME_MEMBER(hdcu_kernel_node_params, grid_y, theirs, gridDimY);                                                    \
    SAME_MEMBER(hdcu_kernel_node_params, grid_z, theirs, gridDimZ);                                                    \
    SAME_MEMBER(hdcu_kernel_node_params, block_x, theirs, blockDimX);                                                  \
    SAME_MEMBER(hdcu_kernel_node_params, block_y, theirs, blockDimY);                                                  \
    SAME_MEMBER(hdcu_kernel_node_params, block_z, theirs, blockDimZ);                                                  \
    SAME_MEMBER(hdcu_kernel_node_params, shared_bytes, theirs, sharedMemBytes);                                        \
    SAME_MEMBER(hdcu_kernel_node_params, params, theirs, kernelParams);                                                \
    SAME_MEMBER(hdcu_kernel_node_params, extra, theirs, extra);                                                        \
    SAME_MEMBER(hdcu_kernel_node_params, kernel, theirs, kern);                                                        \
    SAME_MEMBER(hdcu_kernel_node_params, context, theirs, ctx)
KERNEL_NODE_MEMBERS(CUDA_KERNEL_NODE_PARAMS_v2);
KERNEL_NODE_MEMBERS(CUDA_KERNEL_NODE_PARAMS_v3); /* the one in CUgraphNodeParams */

SAME_STRUCT(hdcu_memset_node_params, CUDA_MEMSET_NODE_PARAMS_v1);
SAME_MEMBER(hdcu_memset_node_params, destination, CUDA_MEMSET_NODE_PARAMS_v1, dst);
SAME_MEMBER(hdcu_memset_node_params, pitch, CUDA_MEMSET_NODE_PARAMS_v1, pitch);
SAME_MEMBER(hdcu_memset_node_params, value, CUDA_MEMSET_NODE_PARAMS_v1, value);
SAME_MEMBER(hdcu_memset_node_params, element_size, CUDA_MEMSET_NODE_PARAMS_v1, elementSize);
SAME_MEMBER(hdcu_memset_node_params, width, CUDA_MEMSET_NODE_PARAMS_v1, width);
SAME_MEMBER(hdcu_memset_node_params, height, CUDA_MEMSET_NODE_PARAMS_v1, height);
SAME_STRUCT(hdcu_stream_mem_op, CUstreamBatchMemOpParams);
SAME_MEMBER(hdcu_stream_mem_op, write.operation, CUstreamBatchMemOpParams, writeValue.operation);
SAME_MEMBER(hdcu_stream_mem_op, write.address, CUstreamBatchMemOpParams, writeValue.address);
SAME_MEMBER(hdcu_stream_mem_op, write.value, CUstreamBatchMemOpParams, writeValue.value64);
SAME_MEMBER(hdcu_stream_mem_op, write.flags, CUstreamBatchMemOpParams, writeValue.flags);
SAME_MEMBER(hdcu_stream_mem_op, write.alias, CUstreamBatchMemOpParams, writeValue.alias);
SAME_STRUCT(hdcu_batch_mem_op_node_params, CUDA_BATCH_MEM_OP_NODE_PARAMS);
SAME_MEMBER(hdcu_batch_mem_op_node_params, context, CUDA_BATCH_MEM_OP_NODE_PARAMS, ctx);
SAME_MEMBER(hdcu_batch_mem_op_node_params, count, CUDA_BATCH_MEM_OP_NODE_PARAMS, count);
SAME_MEMBER(hdcu_batch_mem_op_node_params, ops, CUDA_BATCH_MEM_OP_NODE_PARAMS, paramArray);
SAME_MEMBER(hdcu_batch_mem_op_node_params, flags, CUDA_BATCH_MEM_OP_NODE_PARAMS, flags);
SAME_STRUCT(hdcu_host_node_params, CUDA_HOST_NODE_PARAMS_v1);
SAME_MEMBER(hdcu_host_node_params, function, CUDA_HOST_NODE_PARAMS_v1, fn);
SAME_MEMBER(hdcu_host_node_params, argument, CUDA_HOST_NODE_PARAMS_v1, userData);

SAME_STRUCT(hdcu_graph_edge, CUgraphEdgeData);
SAME_MEMBER(hdcu_graph_edge, from_port, CUgraphEdgeData, from_port);
SAME_MEMBER(hdcu_graph_edge, to_port, CUgraphEdgeData, to_port);
SAME_MEMBER(hdcu_graph_edge, type, CUgraphEdgeData, type);
SAME_MEMBER(hdcu_graph_edge, reserved, CUgraphEdgeData, reserved);
SAME_STRUCT(hdcu_graph_node_params, CUgraphNodeParams);
SAME_MEMBER(hdcu_graph_node_params, type, CUgraphNodeParams, type);
SAME_MEMBER(hdcu_graph_node_params, reserved0, CUgraphNodeParams, reserved0);
SAME_MEMBER(hdcu_graph_node_params, words, CUgraphNodeParams, reserved1);
SAME_MEMBER(hdcu_graph_node_params, kernel, CUgraphNodeParams, kernel);
SAME_MEMBER(hdcu_graph_node_params, reserved1, CUgraphNodeParams, reserved2);
SAME_STRUCT(hdcu_graph_update_result, CUgraphExecUpdateResultInfo);
SAME_MEMBER(hdcu_graph_update_result, result, CUgraphExecUpdateResultInfo, result);
SAME_MEMBER(hdcu_graph_update_result, error_node, CUgraphExecUpdateResultInfo, errorNode);
SAME_MEMBER(hdcu_graph_update_result, error_from_node, CUgraphExecUpdateResultInfo, errorFromNode);

/* ---- symbols ---- */

static const char *const symbols[] = {
#define SYMBOL(name, symbol, version, need, parameters) symbol,
    HDCU_SYMBOL_LIST(SYMBOL)
#undef SYMBOL
};

/* The toolkit's stub exports every symbol that the driver does. */
static void look_up_symbols()
{
    void *stub = dlopen(CUDA_STUB, RTLD_LAZY | RTLD_LOCAL);
    if (!stub) {
        printf("ok 4 - every symbol is exported by the toolkit's stub # SKIP no %s\n", CUDA_STUB);
        return;
    }
    bool all = true;
    for (const char *symbol : symbols)
        if (!dlsym(stub, symbol)) {
            printf("# the stub has no %s\n", symbol);
            all = false;
        }
    printf("%s 4 - every symbol is exported by the toolkit's stub\n", all ? "ok" : "not ok");
}

int main()
{
#define COUNT(name, number) numbers++;
    HDCU_RESULT_LIST(COUNT)
    HDCU_DEVICE_ATTRIBUTE_LIST(COUNT)
    HDCU_FUNC_ATTRIBUTE_LIST(COUNT)
    HDCU_POINTER_ATTRIBUTE_LIST(COUNT)
    HDCU_JIT_LIST(COUNT)
    HDCU_FLAG_LIST(COUNT)
    HDCU_LAUNCH_PARAM_LIST(COUNT)
    printf("1..4\n");
    printf("ok 1 - %d numbers are those of cuda.h %d.%d\n", numbers, CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    printf("ok 2 - sizes and offsets of all structs are those of cuda.h\n");
    printf("ok 3 - the parameters of %zu entries are those of cudaTypedefs.h\n", sizeof symbols / sizeof *symbols);
    look_up_symbols();
    return 0;
}

#endif
