/* SPDX-License-Identifier: MIT */
/*
 * The trace: what was executed, in the order of its execution. HDSOFT_TRACE=FILE has it written there, a line where a
 * command begins and one where it ends:
 *
 *     begin 0 stream 3 command 7 kernel scale grid 4,1,1 block 256,1,1 shared 0
 *     end 0 stream 3 command 7
 *
 * after the words: the device, the stream's identity (cuStreamGetId), and how many commands of the stream it makes;
 * then, for a graph's launch, `node` and its place. Under the virtual policy a line starts with the time in ns.
 * A running hash of all this is always kept. No address and no real time goes into either, so that they can be
 * compared between runs. Called by the executor, locked.
 */
#ifndef HDSOFT_MODEL_TRACE_H
#define HDSOFT_MODEL_TRACE_H

#include "soft/model/driver.h"

void hdsoft__trace_from_environment(void);
void hdsoft__trace_begin(const hdsoft__work *work);
void hdsoft__trace_end(const hdsoft__work *work);
/* Something else that decides the order, such as a step's length: only hashed. */
void hdsoft__trace_note(uint64_t number);
uint64_t hdsoft__trace_hash(void);

#endif
