/* SPDX-License-Identifier: MIT */
/*
 * The pool of compile workers: starts hdrt-cc when needed, gives each one compile at a time, and passes messages back
 * and forth with a time limit. It knows the frame of a message (compiler/protocol.h), not its fields.
 *
 * A worker is idle or belongs to one thread. Its socket is also in a list of the process, which a forked child closes:
 * otherwise the child would keep its parent's workers alive.
 */
#ifndef HDRT_JIT_WORKER_H
#define HDRT_JIT_WORKER_H

#include <hdrt.h>

#include "base/buffer.h"
#include "jit/cancel.h"

typedef struct hdrt__worker_pool hdrt__worker_pool;

/*
 * A pool of at most `limit` workers (0: as many as processors, at most 8) of the program at `program` (copied). Starts
 * none. HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY.
 */
hdrt_status hdrt__worker_pool_create(const char *program, uint32_t limit, hdrt__worker_pool **out_pool);
/* How many workers a pool asked for with `limit` has at most. */
uint32_t hdrt__worker_limit(uint32_t limit);
/* No exchange is going on. Ends the workers. In a forked child it only frees memory. NULL accepted. */
void hdrt__worker_pool_destroy(hdrt__worker_pool *pool);

/*
 * Send the payload of a compile request and receive the reply's, from an idle worker or a new one; waits for one when
 * all are busy. *out_reply is malloc'ed.
 *
 * HDRT_OK; HDRT_ERROR_COMPILER_CRASHED  the worker ended instead of answering; HDRT_ERROR_COMPILE_LIMIT  it did not
 * answer within time_limit_ms and the protocol's grace, and was killed; HDRT_ERROR_COMPANION  it cannot be started or
 * is of another build; HDRT_ERROR_CANCELLED  by `cancel`, which may be NULL: the worker is killed;
 * HDRT_ERROR_FORKED; HDRT_ERROR_OUT_OF_MEMORY.
 */
hdrt_status hdrt__worker_exchange(hdrt__worker_pool *pool, const void *request, size_t size, uint32_t time_limit_ms,
                                  hdrt__cancel *cancel, unsigned char **out_reply, size_t *out_size);

/* How many workers were started so far. */
uint64_t hdrt__worker_pool_started(const hdrt__worker_pool *pool);

#endif
