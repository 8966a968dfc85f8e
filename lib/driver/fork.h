/* SPDX-License-Identifier: MIT */
/*
 * Knowing that this process is a forked child of the one in which something was made. CUDA does not survive fork: the
 * driver answers NOT_INITIALIZED or hangs, and none of our threads is there. Every public function asks first.
 */
#ifndef HDRT_DRIVER_FORK_H
#define HDRT_DRIVER_FORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hdrt.h>

/* How many forks led to this process since the watch began. Only fork.c writes it. */
extern atomic_uint_fast64_t hdrt__fork_generation;

/*
 * Begin to count forks, and get the number that belongs to this process, to be kept with what is made now.
 * \return HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY. Thread-safe.
 */
hdrt_status hdrt__fork_watch(uint64_t *out_generation);

/* Whether this process is a child of the one that `generation` belongs to: one load and a compare. */
static inline bool hdrt__forked(uint64_t generation)
{
    return atomic_load_explicit(&hdrt__fork_generation, memory_order_relaxed) != generation;
}

#endif
