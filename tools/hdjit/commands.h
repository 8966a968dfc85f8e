/* SPDX-License-Identifier: MIT */
/*
 * The subcommands. Each parses the rest of the command line (argv[0] is its name), does its work and returns the exit
 * code; what it prints to standard output is flushed and checked by main.
 */
#ifndef HDJIT_COMMANDS_H
#define HDJIT_COMMANDS_H

#include "options.h"

int command_compile(options *o, int argc, char **argv);
int command_run(options *o, int argc, char **argv);
int command_pipe(options *o, int argc, char **argv);
int command_info(options *o, int argc, char **argv);
int command_env(options *o, int argc, char **argv);
int command_inspect(options *o, int argc, char **argv);
int command_link(options *o, int argc, char **argv);
int command_precompile(options *o, int argc, char **argv);
int command_cache(options *o, int argc, char **argv);

/* Subcommands of cache. */
int command_cache_explain(options *o, int argc, char **argv);

#endif
