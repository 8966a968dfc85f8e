/* SPDX-License-Identifier: MIT */
#include "driver/thread.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

hdrt_status hdrt__thread_start(pthread_t *out_thread, const char *name, void *(*function)(void *), void *argument)
{
    /* A thread inherits the mask of the one that starts it: no moment in which it could take a signal. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(out_thread, NULL, function, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return hdrt__fail(HDRT_ERROR_OUT_OF_MEMORY, "cannot start the thread '%s': %s", name, strerror(error));

    char label[16];
    snprintf(label, sizeof label, "%s", name);
    pthread_setname_np(*out_thread, label); /* only for debuggers */
    return HDRT_OK;
}

void hdrt__mutex_init_short(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t adaptive;
    pthread_mutexattr_init(&adaptive);
    pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(mutex, &adaptive);
    pthread_mutexattr_destroy(&adaptive);
}

uint32_t hdrt__processors(void)
{
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    bool told = sched_getaffinity(0, sizeof set, &set) == 0; /* not beyond 1,024 of them */
    return told && CPU_COUNT(&set) < online ? (uint32_t)CPU_COUNT(&set) : online > 0 ? (uint32_t)online : 1;
}
