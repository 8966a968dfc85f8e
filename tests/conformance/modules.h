/* SPDX-License-Identifier: MIT */
/*
 * Hand-written PTX that checks load: PTX 7.0 for sm_70, so that any driver since 11.0 takes it. The rows of
 * instruction checks make their own (instructions.c).
 */
#ifndef CONFORMANCE_MODULES_H
#define CONFORMANCE_MODULES_H

#include "conformance.h"

extern const char module_basic[];     /* what every area launches */
extern const char module_globals[];   /* variables with initialisers */
extern const char module_faults[];    /* what ends in a fault, or prints */
extern const char module_control[];   /* calls, branches, barriers */
extern const char module_functions[]; /* what function attributes and occupancy are asked of */

/* Each as FOLDER/NAME.ptx. False after a line on stderr. */
bool modules_write(const char *folder);
bool module_write(const char *folder, const char *name, const char *text);

#endif
