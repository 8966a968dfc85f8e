/* SPDX-License-Identifier: MIT */
#include "areas.h"

const area *const areas[] = {
    &area_init,
    &area_error,
    &area_device,
    &area_context,
    &area_primary,
    &area_memory,
    &area_copy,
    &area_pointer,
    &area_pool,
    &area_stream,
    &area_event,
    &area_host,
    &area_value,
    &area_capture,
    &area_capture_calls,
    &area_graph,
    &area_exec,
    &area_module,
    &area_function,
    &area_launch,
    &area_fault,
    &area_integer,
    &area_float,
    &area_convert,
    &area_warp,
    &area_control,
    &area_atomic,
};

const size_t area_count = COUNT_OF(areas);
