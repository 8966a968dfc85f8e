/* SPDX-License-Identifier: MIT */
/*
 * The order check (HDRT_CHECK=order): races between queues, found from what operations declare to read and write and
 * from the order that the program asked for. What comes about by accident, since two queues share a stream or one is
 * quicker, does not count, so a race is told although it went well.
 *
 * The order that counts: of a queue's operations; hdrt_queue_wait; and what the host knew to be over when it enqueued
 * (it waited for it, asked for it, or was called by it). What any thread of the host knows counts for all of them: the
 * check may miss a race so, and does not invent one.
 *
 * Each queue is a line of records. A record is looked at when all that it waits for was; so they are looked at in an
 * order that agrees with the declared one, and may wait here for an event that is not enqueued yet:
 *
 *     noted --all before it in its line, and what it waits for, was looked at--> looked at, and gone
 *
 * Lines have numbers in clocks; a line that has ended gives its number away once the host knows that all of it is over.
 *
 * Locks: one of its own, a leaf. Reports are kept and told by hdrt__order_tell, which must be called under no lock.
 * Everything accepts NULL: nothing is checked.
 */
#ifndef HDRT_ORDER_ORDER_H
#define HDRT_ORDER_ORDER_H

#include <hdrt.h>

#include "order/shadow.h"

typedef struct hdrt__order hdrt__order;

/* What the environment asks for. \return HDRT_OK, and NULL if nothing is to be checked; HDRT_ERROR_INVALID_ARGUMENT
 * (HDRT_CHECK has something else), HDRT_ERROR_OUT_OF_MEMORY. */
hdrt_status hdrt__order_create(hdrt__order **out_order);
/* Tells what is left, and how many races there were. */
void hdrt__order_destroy(hdrt__order *order);

/* Log what was found since the last call. Under no lock. */
void hdrt__order_tell(hdrt__order *order);
/* Another race, in words. */
void hdrt__order_report(hdrt__order *order, const char *text);
uint64_t hdrt__order_count(hdrt__order *order);
/* The words for a conflict; `order`: what is missing between the two. */
void hdrt__order_words(char *text, size_t size, const hdrt__access *access, const hdrt__toucher *toucher,
                       const hdrt__toucher *other, bool other_writes, uint64_t address, const char *order);

/* ---- queues ------------------------------------------------------------------------------------------------------ */

/* The operation at the event, which is the queue's last position now, touches this. `queue`: its name. In the order of
   positions; one may come several times. */
void hdrt__order_operation(hdrt__order *order, hdrt_event event, const char *queue, const char *what,
                           const hdrt__access *accesses, uint32_t count);
/* The block of memory goes when the queue is there; at once if the event is of no queue. */
void hdrt__order_forget(hdrt__order *order, hdrt_event event, uint64_t block);
/* From the position of `event` on its queue comes after `awaited`. The position need not be enqueued. */
void hdrt__order_wait(hdrt__order *order, hdrt_event event, const char *queue, hdrt_event awaited);
/* The same after everything that was noted: nobody knows what it waits for. */
void hdrt__order_wait_unknown(hdrt__order *order, hdrt_event event, const char *queue);
/* The caller may order work on the queue's stream himself. */
void hdrt__order_foreign(hdrt__order *order, hdrt_event event, const char *queue);
/* Somebody waits for the event of a queue, of which positions up to `enqueued` are enqueued. */
void hdrt__order_queue(hdrt__order *order, hdrt_event event, const char *queue, uint64_t enqueued);
/* Nothing more comes on this timeline. */
void hdrt__order_end(hdrt__order *order, hdrt_event event);

/* ---- the host ---------------------------------------------------------------------------------------------------- */

/* The host knows that the event is over. */
void hdrt__order_known(hdrt__order *order, hdrt_event event);
/* A host call is enqueued; begins; is over. */
void hdrt__order_call(hdrt__order *order, hdrt_event event, const char *queue);
void hdrt__order_call_begin(hdrt__order *order, hdrt_event event);
void hdrt__order_call_end(hdrt__order *order, hdrt_event event);
/* A host timeline is there; has come to the event. */
void hdrt__order_timeline(hdrt__order *order, hdrt_event event);
void hdrt__order_signal(hdrt__order *order, hdrt_event event);

#endif
