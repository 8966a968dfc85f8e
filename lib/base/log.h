/* SPDX-License-Identifier: MIT */
/*
 * The log: lines to the callback of hdrt_log_set, or where HDRT_LOG says. Cheap when off: one relaxed load.
 */
#ifndef HDRT_BASE_LOG_H
#define HDRT_BASE_LOG_H

#include <hdrt.h>

bool hdrt__log_enabled(hdrt_log_level level);
void hdrt__log(hdrt_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
