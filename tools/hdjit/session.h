/* SPDX-License-Identifier: MIT */
/*
 * The runtime and device that a subcommand works with: which driver is taken, and what is said about it.
 */
#ifndef HDJIT_SESSION_H
#define HDJIT_SESSION_H

#include "options.h"

typedef struct session {
    hdrt_runtime *runtime;
    hdrt_device *device; /* NULL until session_open_device */
    bool soft;           /* the driver is the soft one */
} session;

/* Creates a runtime with `kind` as the options say otherwise. Says nothing. */
hdrt_status session_runtime(const options *o, hdrt_driver_kind kind, hdrt_runtime **out_runtime);

/*
 * Loads the driver that the options ask for, with --driver=auto NVIDIA's if it has a device, else the soft one, which
 * it says. Returns 0, or an exit code after a message.
 */
int session_open(const options *o, session *s);

/* Opens the device that the options ask for. */
int session_open_device(const options *o, session *s);

/* For what needs no driver. */
int session_open_compile_only(const options *o, session *s);

void session_close(session *s);

#endif
