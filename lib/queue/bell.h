/* SPDX-License-Identifier: MIT */
/*
 * The bell of a stream: a word of pinned memory into which the GPU writes the number of the command that it has come to.
 * Who waits on the host for a stream's end rings it, and from then on looks at memory instead of asking the driver: on an
 * H200 a mark and the asking for it make a round trip 550 ns longer, and every look costs 700 to 1500 ns.
 *
 *     SILENT --ring: the number of the stream's end is to be written--> RUNG --the word has it-----------------> SILENT
 *                                                                      RUNG --not heard for HDRT__BELL_NS-----> ASKED
 *                            (a fault, say: nothing is written then)   ASKED --the driver says that all is over--> SILENT
 *
 * A word belongs to an index of streams, not to a stream: numbers only grow with those that have an index after each other,
 * so what was still to be written for one that ended tells the next nothing new.
 */
#ifndef HDRT_QUEUE_BELL_H
#define HDRT_QUEUE_BELL_H

#include "queue/stream.h"

/* For so long after it was rung, or the driver asked, the driver is not asked. */
#define HDRT__BELL_NS 20000u

typedef enum hdrt__bell_state {
    HDRT__BELL_SILENT,
    HDRT__BELL_RUNG,
    HDRT__BELL_OVERDUE, /* the driver is to be asked, once */
} hdrt__bell_state;

/* Under commit, inside the scope, with nothing pending in the stream: let the number of its end be written, for who waits
 * for what comes after `from`. \return whether it will be; else there is none here, or it is rung already. */
bool hdrt__bell_ring(hdrt__stream *stream, uint64_t from);

/* Under commit: for this number. */
hdrt__bell_state hdrt__bell_state_for(hdrt__stream *stream, uint64_t sequence);

/* How far the stream is, as the word says; 0: it says nothing. Under commit. */
uint64_t hdrt__bell_heard(const hdrt__stream *stream);

/* Under no lock: it is rung for this number and not heard, nothing was handed over since, and the driver need not be asked. */
bool hdrt__bell_is_awaited(const hdrt__stream *stream, uint64_t sequence);

#endif
