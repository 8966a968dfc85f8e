/* SPDX-License-Identifier: MIT */
/*
 * Threads that can never go on: all of a block wait for each other, or all blocks of a cooperative launch that are left
 * wait at the grid's barrier for one that has ended. Both are faults that say who waits where. A spin on other memory
 * may be ended by the host or another kernel, so nobody can tell, and it is left alone.
 */
#ifndef HDSOFT_DEADLOCK_H
#define HDSOFT_DEADLOCK_H

#include "soft/exec/warp.h"

/* No thread of the block can go on. */
void hdsoft_deadlock_block(hdsoft_block *block);
/* All resident blocks have had a turn: a fault if for several such rounds all that is left of them spins at the grid's
 * barrier or waits for those that do. */
void hdsoft_deadlock_look(hdsoft_run *run);

#endif
