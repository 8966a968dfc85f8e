/* SPDX-License-Identifier: MIT */
/*
 * Values that were read from memory which nobody has written, followed through registers until something is done with
 * them. Reading them is no fault: structures are copied with their padding, and loads are wide. So a load only marks
 * the registers; moves, packing and stores carry the mark along (a store hands it back to the watch, which remembers it
 * for those bytes); any other use is told to the watch, once. Works on the watched copy of the code (exec/watch.h) of a
 * run whose watch asks for it; the marks belong to a warp. Of global memory the watch knows what was written; of
 * shared memory the block does.
 *
 * Of a value of which some bytes are written, bit operations may take just those: their results are taken for good.
 * Marks end where a value goes into local or parameter memory.
 */
#ifndef HDSOFT_FOLLOW_H
#define HDSOFT_FOLLOW_H

#include "soft/exec/warp.h"

/* What the instruction does to values, in hdsoft_effect.flow; the low half: of PACK and UNPACK, bytes of a part. */
enum {
    HDSOFT_FLOW_USE = 0,
    HDSOFT_FLOW_COPY = 16,
    HDSOFT_FLOW_SELECT = 32,
    HDSOFT_FLOW_PACK = 48,
    HDSOFT_FLOW_UNPACK = 64,
    HDSOFT_FLOW_BITS = 80,
    /* Memory; the low half: bytes of an element. Operands are as handlers_memory.c and handlers_atomic.c have them. */
    HDSOFT_FLOW_LOAD = 96,
    HDSOFT_FLOW_STORE = 112,
    HDSOFT_FLOW_ATOMIC = 128,
    HDSOFT_FLOW_EXCHANGE = 144, /* an atomic operation that needs nothing of the old value */
    HDSOFT_FLOW_KEEP = 160,     /* a store to memory that is not followed */
    HDSOFT_FLOW_ASYNC = 176,    /* cp.async */
    /* Neither values nor memory, but of interest to those who look for a loop that only waits (deadlock.c). */
    HDSOFT_FLOW_BRANCH = 192,
    HDSOFT_FLOW_OTHER = 208,    /* goes elsewhere, meets other threads, or looks at a clock */
    HDSOFT_FLOW_KIND = 0xf0,
};

/* By the name of a form. */
uint8_t hdsoft_flow_of(const char *form);

/* The handler of every instruction of a run whose values are followed. */
const hdsoft_instruction *hdsoft_followed(hdsoft_warp *warp, const hdsoft_instruction *instruction);
/* Blocks of such a run; for those of others these do nothing. False: no memory. */
bool hdsoft_follow_create(hdsoft_block *block);
void hdsoft_follow_destroy(hdsoft_block *block);
void hdsoft_follow_begin(hdsoft_block *block); /* it is another block from now on */

#endif
