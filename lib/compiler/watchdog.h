/* SPDX-License-Identifier: MIT */
/*
 * The thread that ends hdrt-cc when the client is gone, in the middle of a compile too, and that keeps the time limit
 * of a compile which nothing else can interrupt. Started once by main.c; armed by nvrtc.c.
 */
#ifndef HDRT_COMPILER_WATCHDOG_H
#define HDRT_COMPILER_WATCHDOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0, or an errno. */
int hdrt__cc_watchdog_start(int socket);
/* Whether a request is being worked on: between them the main thread sees the end of the socket itself. */
void hdrt__cc_watchdog_busy(bool busy);
/* At the deadline send `reply`, which stays valid until disarmed, and end the process. */
void hdrt__cc_watchdog_arm(int64_t deadline_ns, const unsigned char *reply, size_t size);
/* Returns in time, or not at all. */
void hdrt__cc_watchdog_disarm(void);
/* Send all of it; false: the client is gone. Async-signal-safe. */
bool hdrt__cc_send(int socket, const unsigned char *bytes, size_t size);

#endif
