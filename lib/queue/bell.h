/* SPDX-License-Identifier: MIT */
/*
 * The bell of a stream: a word of pinned memory into which the GPU writes the number of the command that it has come to.
 * Who waits on the host for a stream's end rings it, and from then on looks at memory instead of asking the driver: on an
 * H200 a mark and the asking for it make a round trip 550 ns longer, and every look costs 700 to 1500 ns.
 *
 *     SILENT --ring: the number of the stream's end is to be written--> RUNG --the word has it-----------------> SILENT
 *                                                                       RUNG --not heard for HDRT__BELL_NS-----> OVERDUE
 *             (after a fault, say, nothing is written)               OVERDUE --the driver was asked, once------> RUNG
 *
 * It is rung only where no mark is to be asked for, by who waits, or by a launch whose end will be waited for, as it looks. A
 * command that follows while it is rung comes after a mark: so whoever wants less than the end is not told later than by marks
 * alone.
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

/* A new stream, inside the scope: a word for its index, if there is none yet and one can be had. */
void hdrt__bell_hang(hdrt__stream *stream);

/* Under commit, inside the scope, with nothing pending in the stream: let the number of its end be written. \return whether
 * it will be; else there is no word, or the driver refuses, or it is rung already. */
bool hdrt__bell_ring(hdrt__stream *stream);

/*
 * Under commit, inside the scope, before a launch that goes out alone: the address of the word where it is to ring too, since
 * the stream is idle, and those before it that found it so were waited for at once; else 0. On an H200 a launch and a write
 * are two submissions of 1.5 and 1 us, and where the driver is not relieved (relief.h) 3.9 and 3.5; the kernel and its write
 * together one of 2.5 or 6.
 */
hdcu_pointer hdrt__bell_expect(hdrt__stream *stream);
/* Under commit: what it was expected for is launched, and is the last command; it rings. */
void hdrt__bell_rings(hdrt__stream *stream);
/* Under no lock: somebody waits for something in the stream, and looks all the time. */
void hdrt__bell_heed(hdrt__stream *stream);

/* Under commit: for this number. */
hdrt__bell_state hdrt__bell_state_for(hdrt__stream *stream, uint64_t sequence);

/* How far the stream is, as the word says; 0: it says nothing. Under commit, or after it was rung. */
uint64_t hdrt__bell_heard(const hdrt__stream *stream);

/* Under commit: whether it is rung and not heard. */
bool hdrt__bell_is_rung(const hdrt__stream *stream);

/* Under no lock: the same for all that is in the stream, and the driver need not be asked. */
bool hdrt__bell_is_awaited(const hdrt__stream *stream);

#endif
