/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Control of the soft driver, libhdsoft.so, from a test: failures on request, and what it tells beyond CUDA's
 * interface. Nothing here is a function of libhdrt: take the addresses from the driver,
 *
 *     void *symbol = hdrt_runtime_driver_symbol(runtime, "hdsoft_inject");
 *     hdrt_soft_inject inject;
 *     memcpy(&inject, &symbol, sizeof inject);
 *     inject("cuMemAlloc:3=2");
 *
 * or, without libhdrt, from hdsoft_get_proc_address, the one symbol that the module exports. On another driver the
 * address is NULL.
 *
 * Rules
 * -----
 * Rules are separated by semicolons; blanks before a rule are skipped. The environment variable HDSOFT_FAIL holds rules
 * from the first driver call on (not in privileged programs). They are of these kinds:
 *
 *     CALL:WHEN=CODE       a driver call fails: it does nothing and returns CODE
 *     fault@WHEN=CODE      a kernel ends with that fault when it begins
 *     command@WHEN=CODE    the same for any command of a stream but host functions: kernels, copies, memsets, ...
 *     hide=NAME,NAME,...   the driver does not have these entry points
 *     version=NUMBER       the driver is of that version, like 11040, and has no newer entry points
 *     memory=BYTES         a device has so much memory, like 64M; before cuInit only
 *
 * CALL and NAME are CUDA's names (cuMemAlloc), exported symbols (cuMemAlloc_v2) or shell patterns (cuMemAlloc*, which
 * fits cuMemAllocHost too). A pattern counts all calls that it fits together. CODE is a CUresult's number or its name in
 * cuda.h (CUDA_ERROR_OUT_OF_MEMORY). WHEN is one of
 *
 *     3        the third call from now on, once
 *     3+       the third and all later ones
 *     *        every call
 *     p0.01    each call with that probability, as the seed 1 has it
 *     p0.01@7  the same by the seed 7: the same seed strikes the same calls
 *
 * A code that is sticky on a GPU (700, 719 and their like) makes the current context's device faulty here too, and
 * a fault of a command does so with any code. Of several rules that strike at one call the first one's code is
 * returned. A hidden or newer entry point is not found by cuGetProcAddress and hdsoft_get_proc_address; who has its
 * address already keeps it.
 *
 * A rule that cannot be read makes cuInit return 1 (invalid value) with a line on stderr if it is in HDSOFT_FAIL;
 * hdsoft_inject returns 1. Either tells the character where reading ended and what was expected there.
 *
 * HDSOFT_CALLS=FILE appends a line for each driver call to FILE: the entry point's symbol, which call of it this is,
 * and a number that is the same for calls from the same place by the same way (a hash of the call's backtrace).
 */
#ifndef HDRT_SOFT_H
#define HDRT_SOFT_H

#ifdef __cplusplus
extern "C" {
#endif

/** hdsoft_inject: add rules; NULL forgets all of them, those of HDSOFT_FAIL too. Returns 0, or 1: a rule cannot be read
    or there is no room for it, and none of them counts. Thread-safe. */
typedef int (*hdrt_soft_inject)(const char *rules);

/** hdsoft_inject_error: what was wrong with the last rules; "" if nothing. Valid until hdsoft_inject is called again. */
typedef const char *(*hdrt_soft_inject_error)(void);

/** hdsoft_call_count: how often an entry point was called in this process, failed calls too, by its name or its symbol;
    0 for a name that is not there. Thread-safe. */
typedef unsigned long long (*hdrt_soft_call_count)(const char *entry);

/** hdsoft_last_fault: one sentence about the first fault of any device: kernel, source line, thread, address. "" if
    there was none. Thread-safe. */
typedef const char *(*hdrt_soft_last_fault)(void);

/** hdsoft_last_unsupported: which call answered last that the soft driver does not do it (801), and what that is. ""
    before. */
typedef const char *(*hdrt_soft_last_unsupported)(void);

#ifdef __cplusplus
}
#endif

#endif
