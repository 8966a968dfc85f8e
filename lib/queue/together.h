/* SPDX-License-Identifier: MIT */
/*
 * Queues that each hold one launch of the same long kernel, and wait for a moment so as to be launched side by side
 * (wide.h), in pieces. A smaller first piece, so that the GPU has something to do while the others come, lost: where each
 * wave of kernels ends when the last one of the wave before did, what counts is how soon the GPU is full.
 *
 * Pieces go to a few streams of their own, in each of them one that runs and one behind it; what is more is held back here.
 * Were they all in flight, the GPU would take from each of them by turns, and all would end, and be told, at the end; and with
 * kernels of others in these streams a piece would wait for those (on an H200, 512 kernels of 500 us beside one graph of all
 * of them: 0.98, 0.95 without a limit, 0.80 where two pieces met in a stream).
 *
 *     gathering --a piece is full, or its time is over--> due --a wide stream has room--> launched --the next piece is
 *                                                          |      launched, or there is nothing else to do--> finished
 *                                                          +--there is no template, they are too few, or none of the
 *                                                             streams gets room for long--> served one by one
 *
 * One for each dispatcher that launches so: the committer of all queues that are in it.
 */
#ifndef HDRT_QUEUE_TOGETHER_H
#define HDRT_QUEUE_TOGETHER_H

#include "queue/queue.h"

/* Launches that take at least so long, in microseconds, wait for others. */
#define HDRT__TOGETHER_LEAST_US 200u

typedef struct hdrt__together hdrt__together;

hdrt__together *hdrt__together_create(void); /* NULL: no memory */
void hdrt__together_destroy(hdrt__together *together);

/* Take over a queue whose committer the caller is, with its hold. \return false: it does not go with these. */
bool hdrt__together_add(hdrt__together *together, hdrt_queue *queue);
/* Launch what can be. \return a queue, the caller's again, that is to be served by itself; NULL: there is none now. */
hdrt_queue *hdrt__together_next(hdrt__together *together);
/* Let go of the queues that were launched last, if that was left for later: before others are served, or before a sleep. */
void hdrt__together_finish(hdrt__together *together);
/* Whether to look: a full piece is there, or what is to be served by itself. */
bool hdrt__together_is_due(const hdrt__together *together);
/* Until when others are likely to come: these made a piece and came soon after others who did, as in a program that does so
 * again and again. 0: no. */
uint64_t hdrt__together_awaited_until(const hdrt__together *together);
/* For how many nanoseconds nothing need be done: 0 while a piece gathers; UINT64_MAX: it is empty. */
uint64_t hdrt__together_pause(const hdrt__together *together);

#endif
