/* SPDX-License-Identifier: MIT */
/*
 * Uninitialised reads: one bit for each byte of device memory says whether it was ever written since its allocation.
 * Copies carry the bits along; a kernel's use of an unwritten value, and a copy of unwritten bytes to the host, are
 * reported. Called by check.c while HDSOFT_CHECK_INIT is on, under hdsoft__check_lock.
 *
 * Gaps between a structure's members are never written, and go to the host with it: gaps of up to 3 bytes, or of up to
 * 7 that come again and again at one distance through the whole copy, are taken for such.
 */
#ifndef HDSOFT_CHECK_INIT_H
#define HDSOFT_CHECK_INIT_H

#include "soft/check/check.h"

void hdsoft__init_appeared(const hdsoft_range *range);
void hdsoft__init_written(uint64_t address, uint64_t bytes);
void hdsoft__init_moved(const hdsoft__operation *operation, uint64_t from, uint64_t to, uint64_t bytes);
/* A kernel's, as an hdsoft_watch has them. */
void hdsoft__init_access(const hdsoft_access *access);
bool hdsoft__init_unwritten(void *operation, const hdsoft_access *access, uint32_t masks[32]);
void hdsoft__init_left(void *operation, const hdsoft_access *access, const uint32_t masks[32]);
void hdsoft__init_used(void *operation, const hdsoft_unwritten_use *use);

#endif
