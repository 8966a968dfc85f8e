/* SPDX-License-Identifier: MIT */
/*
 * Starting library threads. They block all signals, so that the application's handlers run on the application's
 * threads, and have a name for debuggers.
 */
#ifndef HDRT_DRIVER_THREAD_H
#define HDRT_DRIVER_THREAD_H

#include <pthread.h>
#include <stdint.h>

#include <hdrt.h>

/*
 * Start function(argument) on a joinable thread with all signals blocked; it must not detach itself.
 * \param name  for debuggers, cut to 15 characters; also names the thread in the message of a failure
 * \return HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY (no memory, or the limit of threads).
 */
hdrt_status hdrt__thread_start(pthread_t *out_thread, const char *name, void *(*function)(void *), void *argument);

/*
 * A mutex that is held for some tens of nanoseconds: who finds it taken spins for a moment before it sleeps, since to
 * sleep and to be woken takes a hundred times as long.
 */
void hdrt__mutex_init_short(pthread_mutex_t *mutex);

/* How many processors this process may use. */
uint32_t hdrt__processors(void);

/* Let a moment pass without giving the processor away. */
static inline void hdrt__relax(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

#endif
