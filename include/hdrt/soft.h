/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Control of the soft driver, libhdsoft.so, from a test: failures on request, checks of what programs do to memory, and
 * the order in which work is executed, what it tells beyond CUDA's interface. Nothing here is a function of libhdrt:
 * take the addresses from the driver,
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
 * fits cuMemAllocHost too). A pattern counts all calls that it fits together. CODE is a CUresult's number or its name
 * in cuda.h (CUDA_ERROR_OUT_OF_MEMORY). WHEN is one of
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
 * and two numbers that are the same for calls from the same place: hashes of the nearest two callers, and of the whole
 * backtrace.
 *
 * Policies
 * --------
 * HDSOFT_POLICY (not in privileged programs), or hdsoft_set_policy, says in which order and when the commands of
 * streams run. Each policy is an execution that CUDA allows. A word that is none is told on stderr and counts as eager.
 *
 *     eager                 a command runs as soon as it may (the default)
 *     lazy[:patience=MS]    only when the host waits for something that needs it, and then only what it needs: a
 *                           missing synchronisation shows as work that has not happened. From the 16th unsuccessful
 *                           query on asking counts as waiting
 *     random:SEED[,patience=MS]
 *                           legal steps drawn at random: of any stream and device, of any ready node of a graph, of
 *                           what is needed and of what is not, long and short, blocks and splits of warps in any
 *                           order. Streams of higher priority are drawn more often. Commands run only while the host
 *                           is in a call (one that waits, or by the seed's choice any other, at its end), never
 *                           beside it: the same seed and the same program with one host thread give the same trace.
 *                           Host functions of more than 100 ms, and memory that other host threads write, are
 *                           beyond this
 *     virtual[:KEY=NUMBER,...]
 *                           a simulation with a clock of its own, in which copies, blocks of kernels and events take
 *                           the time that the keys say, and host code none. cuEventElapsedTime, overlap and the length
 *                           of a whole program are exact, and the same on any machine. The work is really done
 *
 * Under the last three a command still runs by itself when it was enqueued `patience` milliseconds ago, for hosts that
 * only look at memory: 1000 for lazy, 10000 for the others; 0 means never.
 *
 * Virtual time starts at 0. It moves while a thread waits in a call, to when what it waits for is done; by
 * hdsoft_clock_advance, which stands for host code; and from the 16th unsuccessful query on, each moves it to the next
 * thing that happens. The keys, with their defaults, which resemble an H200; times are in ns, speeds in GB/s (0: any
 * number of bytes takes no time), and numbers may have a fraction where a fraction can count:
 *
 *     launch=1000 node=750    before a kernel's blocks: launched by itself, as a graph's node
 *     instruction=1 block=0   a block takes `block`, `instruction` for each of its warp-instructions (the mean over the
 *                             kernel's blocks) and the time that it sleeps in nanosleep, which is exact: a kernel of
 *                             nanosleeps with instruction=0 is as long as is wanted
 *     sms=132 kernels=128     multiprocessors of a device, each of which holds as many blocks as occupancy says;
 *                             kernels on a device at once. Blocks that do not fit wait: first those of the stream of
 *                             higher priority, then those of the earlier kernel. A cooperative kernel begins as a whole
 *     copy=1500 h2d=54 d2h=55 d2d=2000 p2p=395 engines=1
 *                             a copy takes `copy` and its bytes at the speed of its direction, and an engine all the
 *                             while; so many engines a device has for each direction. Directions do not slow each other
 *     fill=1200 set=2000      a memset, beside anything else
 *     record=200 wait=1500    an event's record, whose time is the end of it; a stream's wait for an event, after that
 *     value=900 host=5000     a wait for a value (after it holds) or a write of one; a host function, one at a time
 *
 * In kernels %globaltimer tells the virtual clock and clock64 the same at 1.98 GHz; a look at either takes 32 ns.
 *
 * HDSOFT_TRACE=FILE writes a line where a command begins and one where it ends, in the order of their execution, under
 * each policy; nothing in it depends on addresses or on real time, so two runs can be compared.
 *
 * Checks
 * ------
 * HDSOFT_CHECK (not in privileged programs), or hdsoft_check, turns checks on; words with commas between:
 *
 *     memory   bad accesses of kernels, copies and memsets, with the allocation that was missed and where it was made
 *              and freed; a wider distance between allocations; barriers that are never met
 *     race     accesses of different streams, or of a stream and the host's calls, that nothing orders
 *     init     uses of values from device or shared memory that nobody has written, and copies of such bytes to the
 *              host. What is only copied, in a kernel or by a copy, is not reported but followed
 *     leak     allocations, streams, events and modules that are left when their context ends (cuCtxDestroy, the last
 *              release or a reset of the primary one, the end of the process)
 *
 * A report names the kernel, the source line if the PTX has lines (-lineinfo), the PTX line, block and thread, the
 * address, and the host's backtrace where an allocation was made, as addresses in program and libraries. Reports go to
 * standard error, or to a function. The same one again (kind, kernel, line) is only counted; how often it came is told
 * when the process ends or hdsoft_report_flush is called.
 */
#ifndef HDRT_SOFT_H
#define HDRT_SOFT_H

#include <stdbool.h>

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

/** hdsoft_set_policy: as HDSOFT_POLICY, instead of it. Returns 0; 1: not a policy, or work has begun under another one.
    Thread-safe. */
typedef int (*hdrt_soft_set_policy)(const char *policy);

/** hdsoft_observe: from now on the calling thread's queries force nothing and its waits wait for what others force, or
    the contrary again. For a library's own completion thread, which would otherwise do the program's waiting for it.
    After cuInit. */
typedef void (*hdrt_soft_observe)(bool observing);

/** hdsoft_trace_hash: a number made of all that was executed until now and of its order; the trace's content and more,
    such as the lengths of steps. Thread-safe. */
typedef unsigned long long (*hdrt_soft_trace_hash)(void);

/** hdsoft_clock_advance: host code has taken so many ns of virtual time; what happens meanwhile has happened on return.
    Does nothing under other policies and in host functions. Thread-safe. */
typedef void (*hdrt_soft_clock_advance)(unsigned long long ns);

/** hdsoft_clock_now: virtual time in ns; under other policies the monotonic clock's. Thread-safe. */
typedef unsigned long long (*hdrt_soft_clock_now)(void);

/** hdsoft_makespan: virtual time in ns at which the last command so far was done. Thread-safe. */
typedef unsigned long long (*hdrt_soft_makespan)(void);

/** hdsoft_gpu_waits: how many waits for events streams have gone through, those of graphs too, under any policy. A wait
    for an event that was reached at the call is none. Thread-safe. */
typedef unsigned long long (*hdrt_soft_gpu_waits)(void);

/** hdsoft_check: turn on the checks that are named, instead of those of HDSOFT_CHECK; NULL or "": none. Returns 0; 1: a
    word is unknown; 2: a context was made already, whose memory was not watched from the start. Thread-safe. */
typedef int (*hdrt_soft_check)(const char *words);

/** Gets reports: kind ("out of bounds", "race", "leak" ...), text (lines, without the last newline), the address of the
    allocation that it is about (0: none), and how often it was met by now. Called on any thread, without a lock; it may
    call the driver. */
typedef void (*hdrt_soft_report_function)(void *context, const char *kind, const char *text,
                                          unsigned long long allocation, unsigned long long count);

/** hdsoft_set_report: where reports go from now on; NULL: standard error. Thread-safe. */
typedef void (*hdrt_soft_set_report)(hdrt_soft_report_function function, void *context);

/** hdsoft_report_count: how many different reports there were. Thread-safe. */
typedef unsigned long long (*hdrt_soft_report_count)(void);

/** hdsoft_report_flush: give what was not given yet, and what came again, with its count. Thread-safe. */
typedef void (*hdrt_soft_report_flush)(void);

/** hdsoft_report_reset: forget all reports; the same ones are new then. Thread-safe. */
typedef void (*hdrt_soft_report_reset)(void);

#ifdef __cplusplus
}
#endif

#endif
