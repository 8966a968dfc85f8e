/* SPDX-License-Identifier: MIT */
/* Timers, as operations use them. */
#ifndef HDRT_QUEUE_TIMER_H
#define HDRT_QUEUE_TIMER_H

#include <hdrt.h>

#include "driver/cuda_abi.h"

hdcu_event hdrt__timer_event(const hdrt_timer *timer);
void hdrt__timer_hold(hdrt_timer *timer);
/* Under no lock. */
void hdrt__timer_drop(hdrt_timer *timer);

#endif
