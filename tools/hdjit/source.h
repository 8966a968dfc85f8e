/* SPDX-License-Identifier: MIT */
/*
 * From the FILE of a command line to code: compiling with the options given, the compiler's messages on standard error,
 * and loading into a device.
 */
#ifndef HDJIT_SOURCE_H
#define HDJIT_SOURCE_H

#include "session.h"

/* Whether a file's name ends so, letter case ignored. */
bool source_ends(const char *path, const char *ending);

/*
 * Compiles `path` ("-": standard input), for the session's device if it is open. Messages of the compiler and notes go
 * to standard error. Returns 0, or an exit code after a message.
 */
int source_compile(session *s, const char *path, const hdrt_compile_options *wanted, hdrt_image **out_image);

#define SOURCE_STDIN "<stdin>" /* its name in messages */

/* The same for several targets side by side; on failure some of the images may be there, to be destroyed. */
int source_compile_all(session *s, const char *path, const hdrt_compile_options *wanted, uint32_t count,
                       hdrt_image **out_images);

/* Fills in a source: `path`, or what was read from standard input. */
void source_describe(hdrt_source *source, const char *path, const unsigned char *text, uint64_t length);

/* Says why a call about a source failed before any compiler ran, and returns the exit code. */
int source_failed(const char *name, hdrt_status status);

/* Says what the compiler said: its diagnostics, or the plain log. true: there was something. */
bool source_print_messages(const hdrt_image *image, const hdrt_image_info *info);

/* Prints what the compiler was called with to standard error. */
void source_print_command(const hdrt_image *image);

/* What the options say about a compile. `wanted` borrows from them. */
void source_wanted(const options *o, hdrt_compile_options *wanted);

/* Loads a .ptx or .cubin file, or compiles any other and loads that. */
int source_load(const options *o, session *s, const char *path, hdrt_module **out_module);

/* Fills the variables of --set from their files, waiting for the copies. */
int source_set_variables(const options *o, hdrt_module *module, hdrt_queue *queue);

#endif
