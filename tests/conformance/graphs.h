/* SPDX-License-Identifier: MIT */
/* Small graphs for the two areas about them. Everything is given up when the process ends. */
#ifndef CONFORMANCE_GRAPHS_H
#define CONFORMANCE_GRAPHS_H

#include "conformance.h"

hdcu_graph graph_made(void);
hdcu_graph_exec exec_made(hdcu_graph graph);
/* The parameters of one thread that stores a word: `arguments` are an address and a value. */
hdcu_kernel_node_params store_params(void **arguments);
/* The same, but adding to the word. */
hdcu_kernel_node_params add_params(void **arguments);
/* `after` may be NULL. */
hdcu_graph_node kernel_added(hdcu_graph graph, hdcu_graph_node after, const hdcu_kernel_node_params *params);
hdcu_graph_node empty_added(hdcu_graph graph, hdcu_graph_node after);
hdcu_memcpy3d linear_copy(hdcu_pointer to, hdcu_pointer from, size_t bytes);
/* Says how instantiating, launching and synchronizing went. */
void graph_run(hdcu_graph graph);
void exec_run(hdcu_graph_exec exec);

#endif
