/* SPDX-License-Identifier: MIT */
/*
 * Reading a device's description and limits from the driver, without a context.
 */
#ifndef HDRT_DEVICE_DESCRIBE_H
#define HDRT_DEVICE_DESCRIBE_H

#include "device/device.h"

/* Inside a scope. \return HDRT_OK, or the status of the driver call that failed. */
hdrt_status hdrt__describe_device(const hdrt__driver_table *table, uint32_t index, hdrt_device_info *out_info);
hdrt_status hdrt__describe_limits(const hdrt__driver_table *table, hdcu_device ordinal,
                                  hdrt__device_limits *out_limits);

#endif
