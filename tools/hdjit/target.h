/* SPDX-License-Identifier: MIT */
/*
 * What a compile without a device is for, where the command line leaves that open: used by compile, and by what must
 * look at the same compile.
 */
#ifndef HDJIT_TARGET_H
#define HDJIT_TARGET_H

#include "options.h"

#define TARGET_ROOM 16

/* Decides the compiler that the kind of code or the driver asked for needs. */
void target_compiler(options *o);

/*
 * Sets the target of `wanted` unless one was given: the device's, found without opening it, to be lowered to what the
 * compiler knows; sm_80 where there is none, which a line says. `arch` is where it is put. Returns 0, or an exit code
 * after a message.
 */
int target_choose(const options *o, hdrt_compile_options *wanted, char arch[TARGET_ROOM]);

#endif
