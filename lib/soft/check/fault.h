/* SPDX-License-Identifier: MIT */
/*
 * Reports of faults: a kernel's, or those of a copy, a memset or a stream memory operation, with the allocation that
 * was missed, where it was made and where it was freed. Called by the executor when HDSOFT_CHECK_MEMORY is on, without
 * the driver's lock.
 */
#ifndef HDSOFT_CHECK_FAULT_H
#define HDSOFT_CHECK_FAULT_H

#include "soft/exec/engine.h"
#include "soft/model/memory.h"

void hdsoft__check_fault(hdsoft_memory *memory, const char *kernel, const hdsoft_fault *fault);
/* `text` names the command and the address. */
void hdsoft__check_command_fault(hdsoft_memory *memory, uint64_t address, const char *text);
/* A cooperative launch is refused because not all of its blocks can be resident. */
void hdsoft__check_cooperative(const char *kernel, uint64_t blocks, uint64_t fit);
/* Lines about the allocation that an address is in, or near: what it is, where it was made and freed. Answers its
 * address; 0: there is none near. */
uint64_t hdsoft__describe_allocation(hdsoft_memory *memory, uint64_t address, hdsoft_text *text);

#endif
