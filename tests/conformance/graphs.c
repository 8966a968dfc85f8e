/* SPDX-License-Identifier: MIT */
#include "graphs.h"

#include "support.h"

hdcu_graph graph_made(void)
{
    hdcu_graph made = NULL;
    NEED(cuGraphCreate(&made, 0));
    return made;
}

hdcu_graph_exec exec_made(hdcu_graph graph)
{
    hdcu_graph_exec made = NULL;
    NEED(cuGraphInstantiateWithFlags(&made, graph, 0));
    return made;
}

hdcu_kernel_node_params store_params(void **arguments)
{
    return (hdcu_kernel_node_params){.function = KERNEL("store"), .grid_x = 1, .grid_y = 1, .grid_z = 1, .block_x = 1,
                                     .block_y = 1, .block_z = 1, .params = arguments};
}

hdcu_kernel_node_params add_params(void **arguments)
{
    hdcu_kernel_node_params of = store_params(arguments);
    of.function = KERNEL("add");
    return of;
}

hdcu_graph_node kernel_added(hdcu_graph graph, hdcu_graph_node after, const hdcu_kernel_node_params *params)
{
    hdcu_graph_node made = NULL;
    NEED(cuGraphAddKernelNode(&made, graph, after ? &after : NULL, after ? 1 : 0, params));
    return made;
}

hdcu_graph_node empty_added(hdcu_graph graph, hdcu_graph_node after)
{
    hdcu_graph_node made = NULL;
    NEED(cuGraphAddEmptyNode(&made, graph, after ? &after : NULL, after ? 1 : 0));
    return made;
}

hdcu_memcpy3d linear_copy(hdcu_pointer to, hdcu_pointer from, size_t bytes)
{
    return (hdcu_memcpy3d){.source_type = HDCU_MEMORYTYPE_UNIFIED, .source_device = from, .source_pitch = bytes,
                           .source_height = 1, .destination_type = HDCU_MEMORYTYPE_UNIFIED, .destination_device = to,
                           .destination_pitch = bytes, .destination_height = 1, .width_bytes = bytes, .height = 1,
                           .depth = 1};
}

void exec_run(hdcu_graph_exec exec)
{
    hdcu_stream stream = new_stream(HDCU_STREAM_NON_BLOCKING);
    STATUS(cuGraphLaunch(exec, stream));
    STATUS(cuStreamSynchronize(stream));
}

void graph_run(hdcu_graph graph)
{
    hdcu_graph_exec exec = NULL;
    hdcu_result status = cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
    say("%u", status);
    if (status)
        return;
    exec_run(exec);
    NEED(cuGraphExecDestroy(exec));
}
