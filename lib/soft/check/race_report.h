/* SPDX-License-Identifier: MIT */
/* What is said of a race, and of a race check that cannot go on. Under hdsoft__check_lock but where it says so. */
#ifndef HDSOFT_CHECK_RACE_REPORT_H
#define HDSOFT_CHECK_RACE_REPORT_H

#include "soft/check/check.h"

/* The first to touch the bytes is `before`. */
void hdsoft__race_report(const hdsoft__touch *now, const hdsoft__touch *before, uint64_t address, uint64_t bytes);

#endif
