/* SPDX-License-Identifier: MIT */
#include "driver/fork.h"

#include <pthread.h>

#include "base/status.h"

atomic_uint_fast64_t hdrt__fork_generation;

static pthread_once_t watch_once = PTHREAD_ONCE_INIT;
static bool watching;

static void count_child(void)
{
    atomic_fetch_add_explicit(&hdrt__fork_generation, 1, memory_order_relaxed);
}

static void begin_watch(void)
{
    watching = pthread_atfork(NULL, NULL, count_child) == 0;
}

hdrt_status hdrt__fork_watch(uint64_t *out_generation)
{
    pthread_once(&watch_once, begin_watch);
    if (!watching)
        return hdrt__fail(HDRT_ERROR_OUT_OF_MEMORY, "out of host memory: cannot register a fork handler");
    *out_generation = atomic_load_explicit(&hdrt__fork_generation, memory_order_relaxed);
    return HDRT_OK;
}
