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
};

const size_t area_count = COUNT_OF(areas);
