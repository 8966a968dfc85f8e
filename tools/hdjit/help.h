/* SPDX-License-Identifier: MIT */
/*
 * The texts of --help and --version, made from the option table, and the names of the subcommands.
 */
#ifndef HDJIT_HELP_H
#define HDJIT_HELP_H

#include "options.h"

/* Print to standard output. */
void help_print(enum command command);
void version_print(void);

/* "compile, run or info": the subcommands of COMMAND_NONE or COMMAND_CACHE, for messages. */
const char *command_list(enum command parent, char *room, size_t size);

/* The name that the user types for a subcommand ("" for COMMAND_NONE), and back (COMMAND_NONE: no such). */
const char *command_name(enum command command);
enum command command_by_name(enum command parent, const char *name);

#endif
