/* SPDX-License-Identifier: MIT */
/* What the interface has of pools, and this version does not. */
#include "base/status.h"
#include "device/device.h"

hdrt_status hdrt_device_pool_statistics(hdrt_device *device, hdrt_pool_statistics *out_statistics)
{
    hdrt_status status = hdrt__device_begin(device, "hdrt_device_pool_statistics");
    (void)out_statistics;
    return status != HDRT_OK ? status
                             : hdrt__fail(HDRT_ERROR_UNSUPPORTED,
                                          "hdrt_device_pool_statistics: not in this version; hdrt_device_memory_info "
                                          "tells what the whole GPU has free");
}

hdrt_status hdrt_device_pool_trim(hdrt_device *device, uint64_t keep_bytes)
{
    hdrt_status status = hdrt__device_begin(device, "hdrt_device_pool_trim");
    (void)keep_bytes;
    return status != HDRT_OK ? status
                             : hdrt__fail(HDRT_ERROR_UNSUPPORTED, "hdrt_device_pool_trim: not in this version");
}
