/* SPDX-License-Identifier: MIT */
/*
 * Host calls: the library's callback threads, one set per device, and the channels through which queues hand functions
 * to them. A channel keeps a queue's calls in order; the driver only notifies it (no CUDA call is allowed there), a
 * callback thread runs the function and then writes the channel's word, on which the stream waits. So a host function
 * may call the library, and only its own queue stands still meanwhile.
 *
 * One thread as a rule; one more whenever all are inside a wait of the library and a call is due, so a host function
 * that waits for another's effect gets it. Threads end when the device does. A call:
 *
 *     SUBMITTED --notify--> DUE --a thread is free--> RUNNING --returns--> over, the word has its ticket
 *         +--- retract: never enqueued ---> gone
 *         +--- joined to the call before it: due with that one, without a notification of its own
 *         +--- drop or cancel ---> DUE or never; the function is not called
 *
 * Locks: the set's `lock` guards everything here and is a leaf; host functions run without it.
 */
#ifndef HDRT_DEVICE_CALLBACKS_H
#define HDRT_DEVICE_CALLBACKS_H

#include <stdatomic.h>

#include <hdrt.h>

typedef struct hdrt__callbacks hdrt__callbacks;
typedef struct hdrt__host_channel hdrt__host_channel;

/* Most callback threads of a device. */
#define HDRT__CALLBACK_THREADS 64u

/* The device's set, made on first use. NULL with a message if there is no memory. */
hdrt__callbacks *hdrt__device_callbacks(hdrt_device *device);
/* At the device's end. Never waits: threads and channels keep what they still need. NULL accepted. */
void hdrt__callbacks_destroy(hdrt__callbacks *callbacks);

/*
 * A channel for a queue. `word` is written with the ticket of each call that is over; NULL: the driver's notification
 * waits for the function instead. \return HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY.
 */
hdrt_status hdrt__host_channel_create(hdrt__callbacks *callbacks, _Atomic uint64_t *word,
                                      hdrt__host_channel **out_channel);
/* The queue needs it no more; nothing is in flight, or the device is lost. NULL accepted. */
void hdrt__host_channel_destroy(hdrt__host_channel *channel);

/*
 * Announce a call that stands for `event`. Starts the first thread if need be. \return HDRT_OK with the ticket;
 * HDRT_ERROR_OUT_OF_MEMORY.
 */
hdrt_status hdrt__host_channel_submit(hdrt__host_channel *channel, hdrt_host_function function, void *argument,
                                      hdrt_event event, uint64_t *out_ticket);
/*
 * Join the last call submitted to the one before: nothing else is in the stream between them, so it is due with that
 * one, and hdrt__host_channel_notify must not be called for it.
 */
void hdrt__host_channel_join(hdrt__host_channel *channel);
/* Undo the last submit: the driver did not take the notification. */
void hdrt__host_channel_retract(hdrt__host_channel *channel);
/* Do not call the last one submitted, although its notification will come. */
void hdrt__host_channel_drop_last(hdrt__host_channel *channel);
/* The device is lost: no function that has not begun is called, the word is written no more. */
void hdrt__host_channel_cancel(hdrt__host_channel *channel);
/* What the driver is given to call, with the channel as argument. Makes no CUDA call. */
void hdrt__host_channel_notify(void *channel);

/* The event of the host call that this thread is running; the zero event elsewhere. */
hdrt_event hdrt__callback_current(void);
/* Around a wait of the library, on any thread: on a callback thread another one may be started meanwhile. */
void hdrt__callback_wait_begin(void);
void hdrt__callback_wait_end(void);

#endif
