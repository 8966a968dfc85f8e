/* SPDX-License-Identifier: MIT */
/*
 * The dispatcher: a thread of the device that commits what the enqueuing threads left in rings, looks after streams
 * whose work nobody asks for, and sleeps when there is nothing to do. It never makes a call that can block.
 *
 * Who has something for it lists the queue: without a lock, and a system call only if it sleeps. Listed queues are served by
 * urgency, and in turn, a quantum each. Queues that cannot go on until the GPU has are stalled: they are looked at at
 * growing intervals.
 *
 *     not listed --list--> listed --served--> not listed, or stalled --looked at--> served
 *
 * Where there are processors for it there are two. A queue is served by the one that its shard names: the first, until
 * it has much to do while others wait; queues that wait for each other stay together.
 */
#ifndef HDRT_QUEUE_DISPATCHER_H
#define HDRT_QUEUE_DISPATCHER_H

#include "queue/queue.h"

struct hdrt__scheduler;

/* Operations that a queue may hand over in its turn. */
#define HDRT__QUANTUM 128u

typedef struct hdrt__dispatcher hdrt__dispatcher;

/* With its thread. NULL with a message if there is no memory. */
hdrt__dispatcher *hdrt__dispatcher_create(struct hdrt__scheduler *scheduler, uint32_t index);
/* Wait for the thread to end, unless it is the one that calls. Nothing is listed any more. NULL accepted. */
void hdrt__dispatcher_destroy(hdrt__dispatcher *dispatcher);

/* Let the queue be served. Any thread, any lock. */
void hdrt__dispatcher_list(hdrt_queue *queue);
/* The same with a hold to take over. \return false: it was listed already, and the hold stays the caller's. */
bool hdrt__dispatcher_list_held(hdrt_queue *queue);
/* Let it be served, if something is in its ring and nobody is at it. */
void hdrt__dispatcher_wake(hdrt_queue *queue);
/* A long kernel was launched: if others came with such a one not long ago, wake the dispatcher, which takes some 50 us. */
void hdrt__dispatcher_rouse(struct hdrt__scheduler *scheduler);
/* Whether the producer lies in the list in which the queue would be behind it: it need not park to go on after it. */
bool hdrt__dispatcher_serves_first(const hdrt_queue *producer, const hdrt_queue *queue);
/* Somebody of this class waits for the queue. */
void hdrt__dispatcher_urge(hdrt_queue *queue, uint8_t class);
/* Somebody waits for what is in flight (begins, or ends to): the dispatcher asks for it. */
void hdrt__dispatcher_want(struct hdrt__scheduler *scheduler, bool begins);
bool hdrt__dispatcher_is_wanted(const struct hdrt__scheduler *scheduler);
/* Whether none hands over anything, as far as it looks. */
bool hdrt__dispatchers_rest(const struct hdrt__scheduler *scheduler);
/* Look after the streams: something is in flight that nobody will ask for. */
void hdrt__dispatcher_look(struct hdrt__scheduler *scheduler);

#endif
