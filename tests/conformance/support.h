/* SPDX-License-Identifier: MIT */
/*
 * What checks are written with: saying, needing, objects that are given back after the check, streams that are held
 * up, kernels by name. Everything is of the child process that runs the check.
 */
#ifndef CONFORMANCE_SUPPORT_H
#define CONFORMANCE_SUPPORT_H

#include "conformance.h"
#include "modules.h"

/* Adds a piece to the answer, after a colon if it is not the first. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The status of a driver call is the usual piece. */
#define STATUS(call) say("%u", cu.call)
/* What must work before the check can ask anything; otherwise the answer says that it did not, and the check ends. */
#define NEED(call) need(cu.call, #call)
void need(hdcu_result status, const char *call);
_Noreturn void give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Objects that live until the check ends, unless the check uses the driver's own call to make them. */
hdcu_pointer new_bytes(size_t bytes);
void *new_pinned(size_t bytes);
hdcu_stream new_stream(unsigned flags);
hdcu_event new_event(unsigned flags);

/* The context that NEEDS_CONTEXT made current. */
extern hdcu_context own_context;

/* Holds up a stream until `release`: it waits for a value in pinned memory. `release_all` is called after a check. */
typedef struct hold hold;
hold *hold_up(hdcu_stream stream);
void release(hold *held);
void release_all(void);

/* Puts what the check left behind back in order; false if the process cannot be used further. */
bool tidy_up(void);

/* Between 32-bit words on the device and here. */
uint32_t word_at(hdcu_pointer address);
void set_word(hdcu_pointer address, uint32_t value);
/* The first `count` words, each said as hexadecimal. */
void say_words(hdcu_pointer address, size_t count);

/* A module of modules.c, loaded once per process into own_context, and a kernel of it. */
hdcu_module module_of(const char *text);
hdcu_function kernel_of(const char *text, const char *name);

/* Before a stream is held up by other means than hold_up: code must not be loaded while it is. */
void load_shared_kernels(void);

/* Kernels of the module that every area shares. */
#define KERNEL(name) kernel_of(module_basic, name)
#define ARGUMENTS(...) ((void *[]){__VA_ARGS__})
#define LAUNCH(function, grid, block, stream, ...)                                                                     \
    cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, ARGUMENTS(__VA_ARGS__), NULL)

/* Runs `body` in another thread and waits for it. */
void in_thread(void (*body)(void *argument), void *argument);

/* What the process has written to standard output or error since the check began, newlines as '|'. */
void say_output(void);
void capture_output(void);

#endif
