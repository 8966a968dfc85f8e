/* SPDX-License-Identifier: MIT */
/*
 * The wish to cancel a compile, shared by who may utter it (any thread) and the thread that compiles. While a worker is
 * at it, cancelling shuts down the worker's socket: the compile's thread wakes at once, the worker ends by itself.
 */
#ifndef HDRT_JIT_CANCEL_H
#define HDRT_JIT_CANCEL_H

#include <pthread.h>

#include <hdrt.h>

typedef struct hdrt__cancel {
    pthread_mutex_t lock; /* a leaf; guards what follows */
    bool asked;
    int socket; /* of the worker that has the compile; -1: none */
} hdrt__cancel;

void hdrt__cancel_init(hdrt__cancel *cancel);
void hdrt__cancel_end(hdrt__cancel *cancel);
void hdrt__cancel_now(hdrt__cancel *cancel);
/* In all three `cancel` may be NULL: a compile that nobody can cancel. */
bool hdrt__cancel_asked(hdrt__cancel *cancel);
/* Tell which socket to shut down, until hdrt__cancel_detach. false: cancelled already. */
bool hdrt__cancel_attach(hdrt__cancel *cancel, int socket);
void hdrt__cancel_detach(hdrt__cancel *cancel);
/* HDRT_ERROR_CANCELLED with its message. */
hdrt_status hdrt__cancelled(void);

#endif
