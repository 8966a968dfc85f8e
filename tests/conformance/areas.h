/* SPDX-License-Identifier: MIT */
/* One area per file area_NAME.c. */
#ifndef CONFORMANCE_AREAS_H
#define CONFORMANCE_AREAS_H

#include "conformance.h"

extern const area area_init, area_error, area_device, area_context, area_primary,
    area_memory, area_copy, area_pointer, area_pool,
    area_stream, area_event, area_host, area_value,
    area_capture, area_capture_calls,
    area_graph, area_exec, area_module, area_function, area_launch,
    area_fault, area_integer, area_float, area_convert, area_warp, area_control, area_atomic;

#endif
